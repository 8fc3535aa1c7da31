//! What a destination has already: what stands at a path, and what a reference directory has.

use carrack_core::attributes::{Attributes, CopyFacts, Lacks};
use carrack_core::plan::compare::State;
use carrack_sys::dir::{Dir, Stat};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingItem {
    /// What it is, its size and time.
    pub state: State,
    /// Its owner, group and permission bits.
    pub facts: CopyFacts,
    /// Device and inode, where they tell it from others.
    pub file: Option<(u64, u64)>,
    /// Two names may be one where it stands: whether it is this name's, [`claim`](super::Destination::claim) says.
    pub folds: bool,
    /// A file with further names: what is set of one is set of all.
    pub is_shared: bool,
    /// It was being written in place when an earlier session ended, and may be a mixture.
    pub is_mixture: bool,
    /// What it lacks of what an item has that it was compared with ([`lacks`](super::Destination::lacks)).
    pub lacks: Lacks,
}

impl StandingItem {
    /// The file system that it is on, as far as that is known.
    pub fn device(&self) -> Option<u64> {
        self.file.map(|(device, _)| device)
    }
}

/// A file that a reference directory has, and that an item is to become.
pub struct Referred<'a> {
    /// Relative to the destination.
    pub path: &'a [u8],
    /// What it is to have.
    pub attributes: Attributes,
    /// The path where it was found; the directory that it is in there, and what it was then.
    pub found_at: &'a [u8],
    /// See above.
    pub directory: &'a Dir,
    /// See above.
    pub found: &'a Stat,
    /// As a hard link, which has all of its attributes already; else it is copied.
    pub as_link: bool,
}
