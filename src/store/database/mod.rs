//! The databases: what they have to do, and how each spells it. They must not know the layout's meaning.

pub(crate) mod home;
pub(crate) mod new_file;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_client;
pub(crate) mod sql;
pub(crate) mod sqlite;
