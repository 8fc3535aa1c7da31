//! What an entry of a directory is.

use carrack_core::report::ItemKind;
use carrack_core::special::{SpecialFile, SpecialKind};
use carrack_sys::dir::{Kind, Stat};

/// A kind of the system as messages have it.
pub fn kind_of(kind: Kind) -> ItemKind {
    match kind {
        Kind::File => ItemKind::File,
        Kind::Dir => ItemKind::Directory,
        Kind::Symlink => ItemKind::Symlink,
        _ => ItemKind::Special,
    }
}

/// What something is that holds nothing; `None` of all else, and of what has no name here.
pub fn special_of(stat: &Stat) -> Option<SpecialFile> {
    let (kind, (major, minor)) = match stat.kind {
        Kind::Fifo => (SpecialKind::Fifo, (0, 0)),
        Kind::Socket => (SpecialKind::Socket, (0, 0)),
        Kind::BlockDevice => (SpecialKind::Block, stat.numbers),
        Kind::CharDevice => (SpecialKind::Character, stat.numbers),
        Kind::File | Kind::Dir | Kind::Symlink | Kind::Unknown => return None,
    };
    Some(SpecialFile { kind, major, minor })
}

/// The kind of something special, as the system has it.
pub fn system_kind(special: SpecialFile) -> Kind {
    match special.kind {
        SpecialKind::Fifo => Kind::Fifo,
        SpecialKind::Socket => Kind::Socket,
        SpecialKind::Block => Kind::BlockDevice,
        SpecialKind::Character => Kind::CharDevice,
    }
}
