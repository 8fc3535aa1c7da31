//! Reading objects.

use std::io;
use std::sync::Arc;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::{check_relative, display_bytes};
use carrack_core::report::ItemKind;
use carrack_core::selection::Selected;
use carrack_core::transfer::{Fingerprint, ScannedItem};

use super::{Bucket, Object, below, journal, kept, look, prefix};
use crate::error::failure;
use crate::storage::read::{Found, OpenOptions, Reader, Source, There, Walk};

/// An object, or all below a key.
pub(super) struct ObjectSource {
    pub bucket: Arc<dyn Bucket>,
    pub top: Vec<u8>,
    pub is_directory: bool,
}

fn scanned(item: ScannedItem, object: Object) -> ScannedItem {
    ScannedItem { size: Some(object.size), fingerprint: Some(object.version), attributes: kept(), ..item }
}

impl ObjectSource {
    fn head(&self, path: &[u8]) -> Result<Object, Failure> {
        let vanished = || failure(ErrorCode::SourceVanished, Side::Source, "vanished after it was listed");
        self.bucket.head(&below(&self.top, path))?.ok_or_else(vanished)
    }

    /// What an object below the top is; `None` for one that was not selected.
    fn found(walk: &Walk<'_>, path: &[u8], object: Object) -> Option<Found> {
        if journal::is_own(path) {
            return Some(Found::Own);
        }
        if let Err(why) = check_relative(path) {
            let message = format!("the key {} is no path of a file: {why}", display_bytes(path));
            let item = walk.item(b"", ItemKind::File);
            return Some(Found::Failure(item, failure(ErrorCode::Unsupported, Side::Source, message)));
        }
        let is_wanted = walk.covers_without_directories(path) == Selected::Wanted;
        is_wanted.then(|| Found::Item(scanned(walk.item(path, ItemKind::File), object)))
    }
}

impl Source for ObjectSource {
    fn walks_in_order(&self) -> bool {
        false
    }

    fn filters(&self) -> bool {
        false
    }

    fn is_directory(&self) -> bool {
        self.is_directory
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        if !self.is_directory {
            let item = walk.item(b"", ItemKind::File);
            each(match self.head(b"") {
                Ok(object) => Found::Item(scanned(item, object)),
                Err(why) => Found::Failure(item, why),
            });
            return;
        }
        let prefix = prefix(&self.top);
        let listed = self.bucket.list(&prefix, &mut |key, object| {
            let path = key.strip_prefix(&prefix[..]).unwrap_or(key);
            Self::found(walk, path, object).is_none_or(&mut *each)
        });
        if let Err(why) = listed {
            each(Found::Failure(walk.item(b"", ItemKind::Directory), why));
        }
    }

    fn look_again(&self, item: &ScannedItem) -> Result<ScannedItem, Failure> {
        Ok(scanned(item.clone(), self.head(&item.path)?))
    }

    fn find(&self, path: &[u8]) -> io::Result<There> {
        let failed = |why: Failure| io::Error::other(why.message());
        let ends = (0..path.len()).filter(|&end| path[end] == b'/').chain([path.len()]);
        for above in ends.map(|end| &path[..end]).filter(|above| !self.is_directory || !above.is_empty()) {
            if self.bucket.head(&below(&self.top, above)).map_err(failed)?.is_some() {
                return Ok(There::Other(above.to_vec()));
            }
        }
        let there = look(&*self.bucket, &below(&self.top, path)).map_err(failed)?;
        Ok(there.map_or(There::Nothing, |_| There::Directory(kept())))
    }

    fn open(&self, item: &ScannedItem, _options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        let (bucket, key) = (Arc::clone(&self.bucket), below(&self.top, &item.path));
        Ok(Box::new(ObjectReader { bucket, key, object: self.head(&item.path)? }))
    }
}

/// An object in the version that it had when it was opened.
struct ObjectReader {
    bucket: Arc<dyn Bucket>,
    key: Vec<u8>,
    object: Object,
}

impl Reader for ObjectReader {
    fn size(&self) -> Option<u64> {
        Some(self.object.size)
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        Some(self.object.version)
    }

    fn check_unchanged(&self) -> Result<(), Failure> {
        let now = self.bucket.head(&self.key)?;
        let changed = || failure(ErrorCode::SourceChanged, Side::Source, "changed while it was read");
        if now == Some(self.object) { Ok(()) } else { Err(changed()) }
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > self.object.size) {
            return Err(failure(ErrorCode::SourceChanged, Side::Source, "ends before").at_offset(offset));
        }
        if out.is_empty() { Ok(()) } else { self.bucket.get(&self.key, self.object.version, offset, out) }
    }
}
