//! What stands at a name, and may still be the same in the file that replaces it.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use carrack_core::digest::block_count;
use carrack_core::wire::patch::block_chunk_bytes;
use carrack_sys::dir::{Kind, stat_file};

use super::Tree;
use crate::storage::properties::WriteOptions;
use crate::storage::write::NewFile;

impl Tree {
    /// The file that stands at the name of an offered one, where something of it is to be taken over, and the indexes
    /// of the blocks that it has.
    pub(super) fn standing_file(&self, offer: &NewFile<'_>, options: &WriteOptions) -> Option<(Arc<File>, Range<u64>)> {
        let size = offer.size.filter(|_| options.takes_over)?;
        let file = self.open_standing(offer.path).ok()??;
        let stat = stat_file(&file).ok().filter(|stat| stat.kind == Kind::File)?;
        let standing = standing_blocks(stat.size, size, options);
        (!standing.is_empty()).then(|| (Arc::new(file), standing))
    }
}

/// The blocks of a file of `size` bytes that one of `there` bytes may have, all or a part that is worth telling of;
/// none where nothing can be compared.
pub(super) fn standing_blocks(there: u64, size: u64, options: &WriteOptions) -> Range<u64> {
    if there == 0 || options.digests.main.is_none() {
        return 0..0;
    }
    let all = block_count(size, options.block_bytes);
    // The last one may be shorter.
    if there >= size {
        return 0..all;
    }
    let (whole, rest) = (there / u64::from(options.block_bytes), there % u64::from(options.block_bytes));
    let has_chunks = block_chunk_bytes(size, options.block_bytes).is_some_and(|bytes| rest >= bytes.into());
    0..(whole + u64::from(has_chunks)).min(all)
}
