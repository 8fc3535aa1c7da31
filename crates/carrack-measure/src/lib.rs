//! Measures what a host can do by itself: its storage ([`disk`]) and its processors ([`cpu`]).
//!
//! A measurement is a list of [`result::Row`]s with the facts of the host ([`facts`]), so that a result of today can be
//! compared with one of next month. Every row says how far it may be trusted: whether bytes came from the cache
//! ([`residency`]), whether the rate had settled ([`steady`]).
//!
//! The crate knows no flag, no terminal and no environment. What it writes lies in a directory of its own
//! ([`scratch`]), which is removed at the end, or by the next measurement there if this one was killed.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

pub mod cpu;
pub mod data;
pub mod disk;
pub mod error;
pub mod facts;
pub mod histogram;
pub mod network;
pub mod residency;
pub mod result;
pub mod scratch;
pub mod series;
pub mod steady;
pub mod usage;
pub mod workers;
