//! Managed transfers: tasks that survive anything. One process holds the ledger (SQLite), decides what runs next, and
//! answers the API. Each task runs in a worker, a process of its own, which moves the bytes with the engine and writes
//! a journal. No byte of a transfer passes through the service. File workers serve files to the API.
//!
//! Async, HTTP and SQL are here and nowhere else in Carrack.

// What clippy.toml forbids the product.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod api;
pub mod bench;
pub mod client;
pub mod clock;
pub mod faults;
pub mod files;
pub mod identity;
pub mod journal;
pub mod ledger;
pub mod model;
pub mod operate;
pub mod schedule;
pub mod service;
pub mod supervise;
pub mod worker;
