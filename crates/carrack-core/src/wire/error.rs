//! What is said of a peer that breaks the protocol.

use std::fmt;

use crate::failure::ErrorCode;
use crate::path::{self, PathError};

/// The peer broke the protocol. The session ends; nothing of what it sent is acted upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// [`ErrorCode::ProtocolViolation`] mostly.
    pub code: ErrorCode,
    /// What the peer did.
    pub what: String,
}

impl ProtocolError {
    /// A violation, in words: "the peer …".
    pub fn violation(what: impl Into<String>) -> Self {
        Self { code: ErrorCode::ProtocolViolation, what: what.into() }
    }

    /// A path that may not be used.
    pub fn path(path: &[u8], error: PathError) -> Self {
        let shown = path::display_bytes(&path[..path.len().min(200)]);
        Self { code: ErrorCode::BadPath, what: format!("the peer sent the path \"{shown}\": {error}") }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ProtocolError {}
