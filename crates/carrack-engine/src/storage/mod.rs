//! Where bytes are read and written.
//!
//! [`store`], [`read`], [`write`](mod@write) and [`properties`] are the contract of every such place. [`posix`] is the
//! file systems of this host; [`sequential`] a stream (with [`pipe`], a FIFO whose reader may come later), [`null`] a
//! destination that forgets, [`synthetic`] bytes that are made up, [`stdin`] standard input. [`overlap`] finds sources
//! of one copy that have the same names.

pub mod conformance;
pub mod fault;
pub mod memory;
pub mod null;
pub mod over;
pub mod overlap;
pub mod pipe;
pub mod posix;
#[allow(dead_code, reason = "it names what other stores do, too")]
pub mod properties;
pub mod rate;
pub mod read;
pub mod sequential;
pub mod stdin;
#[allow(dead_code, reason = "the contract asks more of a store than a copy between file systems does")]
pub mod store;
pub mod synthetic;
pub mod write;

pub(crate) use posix::names;
pub use posix::{collect, descriptors, identity, place, source, times, walk};
