//! Sessions in a database: the relational layout of STORE §2, in SQLite and PostgreSQL.
//!
//! A commit writes the units it touched; everything else is shared rows. This module must not know
//! selectors, arguments or providers; `engine` asks it for sessions, snapshots and parts of them.
//!
//! | part | files |
//! |---|---|
//! | databases | `sql`, `sqlite`, `postgres`, `postgres_client`, `home`, `schema` |
//! | errors | `error` |

mod catalog;
mod decode;
mod encode;
mod error;
mod garbage;
mod home;
mod lease;
mod load;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_client;
mod present;
mod schema;
mod sql;
mod sqlite;
mod write;

pub use error::StoreError;

#[cfg(test)]
mod tests;
