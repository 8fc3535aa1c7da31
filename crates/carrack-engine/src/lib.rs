//! Drives a transfer: threads, sockets, files. What to do is decided in `carrack_core`; how a system call is made, in `carrack_sys`.
//!
//! - [`copy`](copy::copy) carries out a whole request: it opens an *end* for the sources and one for the destination,
//!   introduces them to each other and watches;
//! - an end is an *agent* ([`agent`]): in this process, at the far side of an ssh session, or in a node ([`node`]). All three run the
//!   same code and speak the same messages;
//! - [`net`] has sockets and TLS, [`data`] the streams of frames over them, [`control`] reaches agents over ssh and at nodes, [`storage`]
//!   reads and writes files, `transfer` ties them to the two machines of the core;
//! - [`files`] are the verbs of a file manager.
//!
//! Plain threads and blocking calls throughout: streams are few, and a thread that waits in `write` is the simplest back-pressure.

// What clippy.toml forbids the product.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros))]

pub mod agent;
pub mod context;
pub mod control;
pub mod copy;
pub mod data;
pub mod end;
pub mod error;
pub mod files;
pub mod net;
pub mod node;
pub mod own_files;
mod panics;
pub mod standard;
pub mod stop;
pub mod storage;
mod sync;
mod transfer;
