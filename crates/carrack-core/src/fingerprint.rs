//! What tells one state of a source's file from all others.

/// What tells one state of one file from all others, as the host says that has the file: opaque to everybody else. Of
/// two only equality counts, and equality means that nothing of the file has changed.
pub type Fingerprint = [u8; 16];
