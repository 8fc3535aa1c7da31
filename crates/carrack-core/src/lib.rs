//! Carrack's decisions, without its hands.
//!
//! Everything that has to be right whatever the machine does lives here: what was asked for ([`request`]), what may
//! travel ([`wire`]), which block goes down which stream and when a name may appear ([`transfer`]), how fast
//! ([`pace`]). Nothing here opens a file, a socket or a thread, reads a clock or draws a random number: time and seeds
//! are arguments, and payload bytes never pass through. That is what lets two peers run against each other in a test on
//! a clock of the test's own, and replay any failure from its seed.

// What clippy.toml forbids the product.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros))]

pub mod accounts;
pub mod agents;
pub mod attributes;
pub mod backup;
pub mod chance;
pub mod credential;
pub mod digest;
pub mod duration;
pub mod evidence;
pub mod expected;
pub mod failure;
pub mod filter;
pub mod fingerprint;
pub mod grant;
mod groups;
pub mod growing;
pub mod ids;
pub mod judgment;
pub mod limits;
pub mod location;
pub mod mode_change;
pub mod options;
pub mod pace;
pub mod path;
pub mod pin;
pub mod plan;
pub mod reference;
pub mod report;
pub mod request;
pub mod selection;
pub mod size;
pub mod special;
pub mod timeline;
pub mod transfer;
pub mod tuning;
pub mod unicode;
pub mod wire;
pub mod words;
