//! `--timeline FILE`: what both ends measured, and what happened, in a file.
//!
//! JSON Lines, each an object as `--json` prints it, with one field more: `at_us`, microseconds since the copy began.
//!
//! | line | what it is |
//! |---|---|
//! | `timeline` | the first: what was asked for, and of which program |
//! | `ends` | a session begins: what both ends are |
//! | `sample` | what an end has measured; also each stream by itself |
//! | `link`, `streams`, `stream-ended`, `session-lost`, `rate-fell`, `resolved`, `program`, `note` | what happened |
//! | `error`, `summary` | the last: how it ended, and the report |
//!
//! The file is written as the copy goes, so a copy that is killed leaves one that can be read: only its last lines are
//! missing. It stays small: see [`write::TimelineFile`].

#[cfg_attr(not(test), allow(dead_code, reason = "`carrack report` reads what is written here"))]
pub mod read;
pub mod write;

#[cfg(test)]
mod tests;
