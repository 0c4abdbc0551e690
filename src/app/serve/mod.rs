//! The page and the HTTP interface of `pactql view` and `pactql serve` (INSPECT §5).
//!
//! ```text
//! listen       the port, connections and their limits, the end
//!   routes     what is at which path
//!     write    changes of sessions of a store, each done once
//!     events   what has grown, as server-sent events
//!     openapi  the interface as a document
//!     app      what requests share; failures as responses
//!       guard    who may ask: tokens, hosts, origins; headers of security; the page
//!       hub      who gets events
//!       metrics  counts and times
//!   places     where the sessions are: stores, files, folders, the logs of this machine
//! ```
//! [`crate::app::calls`] makes the answers, in the same bytes as the command line's. One thread talks to clients; answers
//! are made on other threads, as many at a time as there are processors. This module does not know the command line.

mod app;
mod events;
mod guard;
mod hub;
mod listen;
mod metrics;
mod openapi;
mod places;
mod routes;
mod write;

pub(crate) use guard::{new_token, read_token};
pub(crate) use listen::{ServeOptions, serve};
pub(crate) use openapi::document as openapi;
pub(crate) use places::Places;
