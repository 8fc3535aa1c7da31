//! Makers of faults, for tests: a network that resets and stalls, a disk that lies, a machine that loses its power.
//!
//! Each maker is a value that a test holds: the fault is switched by methods while the program runs, and all of it is gone
//! when the value is dropped. Nothing here is linked into the program. What chooses by chance takes a seed, so that a run can
//! be had again as far as the machine allows it. Makers panic when they cannot do their work: a test whose fault did not
//! happen has shown nothing.

#![allow(clippy::unwrap_used)]

pub mod chance;
pub mod proxy;
pub mod race;
pub mod strace;
pub mod watch;
