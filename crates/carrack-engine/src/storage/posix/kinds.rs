//! What an entry of a directory is.

use carrack_core::report::ItemKind;
use carrack_sys::dir::Kind;

/// A kind of the system as messages have it.
pub fn kind_of(kind: Kind) -> ItemKind {
    match kind {
        Kind::File => ItemKind::File,
        Kind::Dir => ItemKind::Directory,
        Kind::Symlink => ItemKind::Symlink,
        _ => ItemKind::Special,
    }
}
