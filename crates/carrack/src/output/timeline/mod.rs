//! `--timeline FILE`: what both ends measured, and what happened, in a file.
//!
//! JSON Lines, each an object as `--json` prints it, with one field more: `at_us`, microseconds since the copy began.
//!
//! | line | what it is |
//! |---|---|
//! | `timeline` | the first: what was asked for, and of which program |
//! | `ends` | a session begins: what both ends are |
//! | `sample` | what an end has measured; also each stream by itself |
//! | `step` | a step of a session's start was taken |
//! | `link`, `streams`, `stream-ended`, `session-lost`, `rate-fell`, `resolved`, `program`, `note` | what happened |
//! | `error`, `summary` | the last: how it ended, and the report |
//!
//! The file is written as the copy goes, so a copy that is killed leaves one that can be read: only its last lines are
//! missing. It stays small: see [`write::TimelineFile`].

#[cfg(feature = "terminal")]
mod happened;
#[cfg(feature = "terminal")]
pub mod objects;
#[cfg(feature = "terminal")]
pub mod page;
#[cfg(feature = "terminal")]
mod panels;
#[cfg(feature = "terminal")]
pub mod phases;
#[cfg(any(test, feature = "terminal"))]
pub mod read;
#[cfg(feature = "terminal")]
pub mod start;
#[cfg(feature = "terminal")]
pub mod terminal;
#[cfg(feature = "terminal")]
mod told;
#[cfg(feature = "terminal")]
pub mod view;
pub mod write;

#[cfg(test)]
mod tests;

#[cfg(test)]
#[cfg(feature = "terminal")]
mod page_tests;
