//! The directory at the top of a destination that is itself the copy of a directory.
//!
//! One that was there before keeps its owner, its permissions and its access control lists, unless something else was
//! asked for: whoever copies into a home or a shared directory does not mean to open or close it. One that the copy
//! makes gets those of its source. A later session sees which of the two it is by [`UNFINISHED`].

use std::io;

use carrack_core::attributes::{Attribute, AttributeKind, Attributes, KeptAttributes, OtherAttributes, Time};
use carrack_sys::dir::{Dir, Stat};
use carrack_sys::host;

use super::extended::Holder;
use super::faked::shown;
use crate::storage::giving::Giving;

/// The permissions that a copy makes its top with: it is nobody else's before what is below has its own. The sticky bit
/// says that it has not got those of its source yet.
pub const UNFINISHED: u32 = 0o1700;

/// Whether a copy has made it, and not finished it.
pub fn is_unfinished(stat: &Stat) -> bool {
    stat.mode & 0o1777 == UNFINISHED && stat.uid == host::user_id()
}

/// A copy of a part of a directory has none whose permissions the top could have: it gets those of any other new
/// directory.
pub fn finish(top: &Dir) {
    if top.stat_self().is_ok_and(|stat| is_unfinished(&stat)) {
        // Who cannot change it leaves it closed.
        let _ = top.set_own_mode(0o777 & !host::umask());
    }
}

/// What the top keeps, as it is to be given to it; `None` of one that this copy, or an earlier session of one, made.
///
/// # Errors
/// When it cannot be looked at.
pub fn kept_by(top: &Dir, is_new: bool, kept: KeptAttributes, fakes: bool) -> io::Result<Option<Attributes>> {
    let stat = top.stat_self()?;
    if is_new || is_unfinished(&stat) {
        return Ok(None);
    }
    let stat = if fakes { shown(stat, Holder::Directory(top)) } else { stat };
    let owners = [(AttributeKind::OWNER, stat.uid), (AttributeKind::GROUP, stat.gid)];
    let owners = owners.map(|(kind, number)| Attribute::number(kind, number));
    let lists =
        Giving::new(KeptAttributes { acls: kept.acls, ..KeptAttributes::NONE }, false).listed(Holder::Directory(top));
    let lists = [AttributeKind::ACL, AttributeKind::NFS4_ACL].map(|kind| lists.of_kind(kind).cloned());
    let bits = (stat.mode & 0o7000 != 0).then(|| Attribute::special_bits(stat.mode));
    let others = OtherAttributes::new(owners.into_iter().chain(bits).chain(lists.into_iter().flatten()).collect())
        .unwrap_or_default();
    Ok(Some(Attributes { mode: stat.mode & 0o7777, mtime: None::<Time>, others }))
}
