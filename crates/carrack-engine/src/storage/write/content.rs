//! What content is proved by.

use carrack_core::digest::{BlockDigest, FileDigests};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::request::Digests;

use crate::data::hasher::BlockHasher;
use crate::error::failure;

/// Compares what storage gives back of a whole file with what it was verified by.
///
/// # Errors
/// With [`ErrorCode::DigestMismatch`] when it is something else.
pub fn compare(content: &[u8], expected: FileDigests) -> Result<(), Failure> {
    compare_pieces([Ok(content)].into_iter(), expected)
}

/// The same of a file that comes in pieces, in their order.
///
/// # Errors
/// Those of [`compare`], and the first of a piece.
pub fn compare_pieces<P: AsRef<[u8]>>(
    mut pieces: impl Iterator<Item = Result<P, Failure>>,
    expected: FileDigests,
) -> Result<(), Failure> {
    let mut hasher = BlockHasher::new(Digests { main: expected.kinds().main, ..Digests::NONE }, 0);
    pieces.try_for_each(|piece| piece.map(|piece| hasher.update(piece.as_ref())))?;
    let found = hasher.finish(true);
    if expected.main().is_none_or(|main| main == found.main) {
        return Ok(());
    }
    let message = "storage gives back other bytes than were written; the file was not given its name";
    Err(failure(ErrorCode::DigestMismatch, Side::Destination, message))
}

/// The digests of a block that begins at `offset` of its file; `whole` if that has no other.
pub fn block_digest(content: &[u8], offset: u64, whole: bool, wanted: Digests) -> BlockDigest {
    let mut hasher = BlockHasher::new(wanted, offset);
    hasher.update(content);
    hasher.finish(whole)
}
