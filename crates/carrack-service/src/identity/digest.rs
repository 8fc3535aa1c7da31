//! Digests and random bytes of what proves somebody.

use std::io;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut whole = [0; 32];
    whole.copy_from_slice(digest(&SHA256, bytes).as_ref());
    whole
}

/// Whether two secrets, or their digests, are the same, in a time that does not tell where they differ.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one, other).is_ok()
}

/// Bytes that nobody can guess.
///
/// # Errors
/// When the system gives none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(bytes)
}
