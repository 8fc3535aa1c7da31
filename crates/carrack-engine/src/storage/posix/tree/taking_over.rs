//! What stands at a name, and may still be the same in the file that replaces it.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use carrack_core::digest::block_count;
use carrack_sys::dir::{Kind, stat_file};

use super::Tree;
use crate::storage::properties::WriteOptions;
use crate::storage::write::NewFile;

impl Tree {
    /// The file that stands at the name of an offered one, where something of it is to be taken over, and the indexes
    /// of the blocks that it has.
    pub(super) fn standing_file(&self, offer: &NewFile<'_>, options: &WriteOptions) -> Option<(Arc<File>, Range<u64>)> {
        // Without digests nothing can be compared.
        let size = offer.size.filter(|_| options.takes_over && options.digests.main.is_some())?;
        let file = self.open_standing(offer.path).ok()??;
        let stat = stat_file(&file).ok().filter(|stat| stat.kind == Kind::File)?;
        let whole = stat.size / u64::from(options.block_bytes);
        let all = block_count(size, options.block_bytes);
        // The last one may be shorter.
        let standing = 0..if stat.size >= size { all } else { whole.min(all) };
        (!standing.is_empty() && stat.size > 0).then(|| (Arc::new(file), standing))
    }
}
