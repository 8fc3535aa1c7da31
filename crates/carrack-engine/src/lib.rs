//! Copies files and directories between this host, hosts that ssh reaches, and Carrack's nodes; lists and changes what
//! is there; serves a node.
//!
//! A [`Context`] says what work may use: when it is to stop, which nodes it knows, what it may reach on this host.
//! Nothing here reads the environment, a standard stream or a signal, prints, or ends the process. What is asked for is
//! in [`carrack_core::request`], what is told in [`carrack_core::report`].
//!
//! - [`Copy::start`] begins a copy; its [`Handle`] tells what happens, cancels it, and waits for its report. A copy is
//!   paused by cancelling it: the same request, started again, goes on from there.
//! - [`files::Files`] are the verbs of a file manager, at any kind of place.
//! - [`check::check`] compares what two places have, and changes nothing.
//! - [`examine::pair`] asks hosts what they are made of, and tries connections between them.
//! - [`node::Node::start`] serves a directory to other hosts; other protocols can have a [`node::Door`] on its port.
//! - [`FarSide`] is what a program does that ssh has started on another host; a [`FarPart`] does something else there.
//!
//! ```no_run
//! use carrack_core::location::Location;
//! use carrack_core::request::{CopyOptions, CopyRequest};
//! use carrack_engine::{Context, Copy};
//!
//! let local = |path: &str| Location::Local(path.as_bytes().to_vec());
//! let (sources, destination) = (vec![local("results")], local("/archive/"));
//! let request = CopyRequest { sources, destination, options: CopyOptions::default() };
//! let mut copy = Copy::start(request, &Context::default());
//! while let Some(event) = copy.next_event() {
//!     println!("{event:?}"); // Or store it, or draw it; and copy.cancel() when nobody wants more.
//! }
//! let report = copy.wait();
//! assert!(report.error.is_none() && report.counts.files_failed == 0);
//! ```
//!
//! Plain threads and blocking calls throughout: streams are few, and a thread that waits in `write` is the simplest
//! back-pressure. How the parts stand on each other is in ARCHITECTURE.md.

// What clippy.toml forbids the product.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros))]

mod agent;
pub mod check;
mod context;
mod control;
mod copy;
mod data;
mod end;
mod error;
pub mod examine;
pub mod files;
mod kept_tuning;
mod net;
pub mod node;
mod own_files;
mod panics;
mod standard;
mod stop;
mod storage;

#[cfg(feature = "testing")]
pub mod testing;
mod transfer;

pub use agent::FarSide;
pub use context::{Asker, Context};
pub use control::far_part::{FarPart, FarSession};
pub use copy::{Copy, Handle};
pub use error::{io_failure, system_failure};
pub use standard::Standard;
pub use stop::{Stop, StopReason};
pub use storage::place::{Place, Stores};

/// The keys of nodes: which one a node must show, in memory, in a file, or as somebody else keeps them.
pub mod keys {
    pub use crate::control::known_nodes::{ExpectedKey, KnownKeys, KnownNodes, MemoryKeys};
    pub use crate::net::tls::{PinnedKey, ShownKey};
}

/// What copies have found about the ways between hosts: kept in a file, or as somebody else keeps it.
pub mod tuned {
    pub use crate::kept_tuning::{ForgetTuning, FoundNumber, KeptTuning, KeptWay, Knob, TuningFile, UnreadTuning};
}

/// The one place that makes threads: a host that has none left is an error as data.
pub mod threads {
    pub use carrack_sys::threads::{NoThread, start, start_named, start_scoped};
}

/// Locks that outlive a panic of whoever holds them, and what threads wait for.
pub mod sync {
    pub use carrack_sys::sync::{Latch, lock, unpoisoned, wait, wait_timeout};
}

/// Stores: what each place promises that bytes are read from and written to.
pub mod stores {
    pub use crate::storage::{objects, over, properties, read, store, workers, write};
}

/// Files that only their owner may read: bearer tokens, and how such a file is read and written.
pub mod secrets {
    pub use crate::control::token::read_token;
    pub use crate::own_files::{Unread, read_secret, write_whole};
}
