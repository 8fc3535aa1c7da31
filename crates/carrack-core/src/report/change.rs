//! What was done to an item at the destination.

use super::{FileDigests, ItemKind};
use crate::attributes::Time;

/// An item that was made, changed or deleted at the destination; or would be, in a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemChange {
    /// Relative to the destination directory; empty for that itself.
    pub path: Vec<u8>,
    /// A file, a link or a directory.
    pub kind: ItemKind,
    /// Bytes of content.
    pub size: u64,
    /// Modification time of its source; `None` where that has none, and of what was deleted.
    pub mtime: Option<Time>,
    /// What a link says; the old name of what was renamed; of a further name of a file, but a link, one that it has.
    pub leads_to: Vec<u8>,
    /// Digests of the whole file, as the receiver computed them.
    pub digests: FileDigests,
    /// What was done.
    pub done: Done,
}

impl ItemChange {
    /// Whether it is a further name of a file, which has the one that it leads to.
    pub fn is_further_name(&self) -> bool {
        let is_told = !self.leads_to.is_empty();
        is_told
            && match self.kind {
                ItemKind::Symlink => self.done == Done::Linked,
                _ => matches!(self.done, Done::Created | Done::Replaced(_)),
            }
    }
}

/// What was done to an item at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing of its kind stood there: it was made.
    Created,
    /// The content of a file was copied, or a link made, in the place of one that differed in this.
    Replaced(Differences),
    /// A reference directory has it, and it got its name as a hard link to that.
    Linked,
    /// It was copied at the destination, from a reference directory whose file differs in this.
    Copied(Differences),
    /// Only the destination had it, under the name that `leads_to` says: it was renamed.
    Renamed,
    /// Its attributes alone were set, which differed in this.
    Set(Differences),
    /// Only the destination had it: it is gone.
    Deleted,
}

impl Done {
    /// Whether the content of a file was copied.
    pub fn has_content(self) -> bool {
        matches!(self, Self::Created | Self::Replaced(_))
    }
}

/// In what something differed from what took its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// What it held: of a file, that its content was compared; of a link, what it said.
    pub content: bool,
    /// Bytes of a file.
    pub size: bool,
    /// Its modification time, which was set.
    pub time: bool,
    /// Permissions, which were set.
    pub permissions: bool,
    /// The time was not set: it is that of writing it.
    pub time_is_of_writing: bool,
    /// Its owner, which was set.
    pub owner: bool,
    /// Its group, which was set.
    pub group: bool,
    /// Its access control list, which was set.
    pub acl: bool,
    /// Its extended attributes, which were set.
    pub xattrs: bool,
}

impl Differences {
    /// Whether attributes differed that were set.
    pub fn any_attribute(self) -> bool {
        self.time || self.permissions || self.owner || self.group || self.acl || self.xattrs
    }
}
