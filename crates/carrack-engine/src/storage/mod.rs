//! Where bytes are read and written.
//!
//! [`store`], [`read`], [`write`](mod@write) and [`properties`] are the contract of every such place. [`posix`] is the
//! file systems of this host; [`sequential`] a stream (with [`pipe`], a FIFO whose reader may come later), [`null`] a
//! destination that forgets, [`synthetic`] bytes that are made up, [`stdin`] standard input. [`overlap`] finds sources
//! of one copy that have the same names. [`workers`] makes calls for metadata, several at once where they are slow.
//!
//! [`over`] is a store over another one that asks a hook before each call: for what may not be done there, and for
//! tests.

pub mod giving;
pub mod null;
pub mod objects;
pub mod over;
pub mod overlap;
pub mod pipe;
pub mod posix;
pub mod properties;
pub mod read;
pub mod sequential;
pub mod stdin;
pub mod store;
pub mod synthetic;
pub mod workers;
pub mod write;

pub(crate) use posix::names;
pub use posix::{collect, descriptors, entering, identity, place, refusal, source, times};
