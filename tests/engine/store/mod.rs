//! The store, from outside: `pactql::Store` and raw SQL over what it wrote (STORE §2 and §3).

mod child;
mod damage;
mod disks;
mod erase;
#[cfg(feature = "parquet")]
pub(crate) mod fleet;
mod grown;
mod imports;
mod kills;
mod layout;
mod leases;
mod many;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod place;
mod records;
mod runs;
#[cfg(all(unix, feature = "postgres"))]
mod servers;
mod sound;
mod texts;

#[cfg(all(unix, feature = "postgres"))]
#[path = "../../support/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test uses a part")]
pub(crate) mod server;
