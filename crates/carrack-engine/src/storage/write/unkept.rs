//! What a destination has not kept.

use carrack_core::attributes::{Attributes, Time};
use carrack_core::report::{Unkept, UnkeptAttributes, UnkeptDirectories};

/// What was not kept in one session so far of what items were to have.
#[derive(Clone, Debug, Default)]
pub struct UnkeptSoFar {
    /// Permissions that differ from those that were wanted.
    pub permissions: Option<Unkept<u32>>,
    /// The directories among these.
    pub directories: UnkeptDirectories,
    /// Modification times that differ from those that were wanted.
    pub times: Option<Unkept<Time>>,
    /// Attributes of further kinds.
    pub attributes: Option<UnkeptAttributes>,
}

impl UnkeptSoFar {
    /// Compares what an item was to have with what it has.
    pub fn note(&mut self, path: &[u8], wanted: &Attributes, kept: &Attributes) {
        fn note<T: PartialEq>(so_far: &mut Option<Unkept<T>>, path: &[u8], wanted: T, kept: T) {
            if wanted != kept {
                so_far.get_or_insert(Unkept { count: 0, path: path.to_vec(), wanted, kept }).count += 1;
            }
        }
        note(&mut self.permissions, path, wanted.mode & 0o777, kept.mode & 0o777);
        if let Some(wanted) = wanted.mtime {
            note(&mut self.times, path, wanted, kept.mtime.unwrap_or_default());
        }
        UnkeptAttributes::note(&mut self.attributes, || path.to_vec(), wanted.others.without(&kept.others).kinds());
    }
}
