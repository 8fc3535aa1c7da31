//! Lock files beside sources that grow.

use std::io;

use carrack_core::failure::ErrorCode;
use carrack_core::growing::GrowingLock;
use carrack_core::path::{join, split_name};
use carrack_core::transfer::ScannedItem;

use super::links::Unseen;
use super::source::{PosixSource, RootKind};
use crate::error::code_of;

/// Whether the lock file of an item stands beside it, whatever that is.
///
/// # Errors
/// When it cannot be told.
pub fn is_locked(root: &PosixSource, item: &ScannedItem, lock: GrowingLock) -> io::Result<bool> {
    let beside = |path: &[u8]| {
        let (parent, name) = split_name(path);
        join(parent, &lock.of(name))
    };
    let seen = match &root.kind {
        RootKind::Directory(top) => match root.links.at(top, &beside(&item.path)) {
            Ok(_) | Err(Unseen::Link(_)) => Ok(()),
            Err(Unseen::Entry(error)) => Err(error),
        },
        RootKind::Entry(..) if root.is_alone => return Ok(false),
        RootKind::Entry(parent, path, links) => parent.stat(&beside(path), *links).map(drop),
    };
    match seen {
        Err(error) if code_of(&error) == ErrorCode::NotFound => Ok(false),
        seen => seen.map(|()| true),
    }
}
