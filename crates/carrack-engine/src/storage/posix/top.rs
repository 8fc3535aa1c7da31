//! The directory at the top of a destination that is itself the copy of a directory.
//!
//! One that was there before keeps its owner, its permissions and its access control lists, unless something else was
//! asked for: whoever copies into a home or a shared directory does not mean to open or close it. One that the copy
//! makes gets those of its source; the marker tells a later session that it is one.

use std::io;

use carrack_core::attributes::{Attribute, AttributeKind, Attributes, KeptAttributes, OtherAttributes};
use carrack_sys::dir::Dir;

use super::extended::Holder;
use super::faked::shown;
use super::tree::Tree;
use crate::storage::giving::Giving;

/// The permissions of a directory that is made and will have those of its source: until then nobody else comes in.
pub const CLOSED: u32 = 0o700;

/// What a directory has that keeps its own.
///
/// # Errors
/// When it cannot be looked at.
pub fn kept_by(top: &Dir, kept: KeptAttributes, fakes: bool) -> io::Result<Attributes> {
    let stat = top.stat_self()?;
    let stat = if fakes { shown(stat, Holder::Directory(top)) } else { stat };
    let owners = [(AttributeKind::OWNER, stat.uid), (AttributeKind::GROUP, stat.gid)];
    let owners = owners.map(|(kind, number)| Attribute::number(kind, number));
    let lists = Giving::new(KeptAttributes { acls: kept.acls, ..KeptAttributes::NONE }, false);
    let lists = lists.listed(Holder::Directory(top));
    let lists = [AttributeKind::ACL, AttributeKind::NFS4_ACL].map(|kind| lists.of_kind(kind).cloned());
    let bits = (stat.mode & 0o7000 != 0).then(|| Attribute::special_bits(stat.mode));
    let others = owners.into_iter().chain(bits).chain(lists.into_iter().flatten()).collect();
    let others = OtherAttributes::new(others).unwrap_or_default();
    Ok(Attributes { mode: stat.mode & 0o7777, mtime: None, others })
}

impl Tree {
    /// Whether an earlier session of the copy has made the directory.
    pub fn made_top(&self) -> bool {
        self.shared.journal.as_ref().is_some_and(|journal| journal.made_top())
    }

    /// The same, where the directory itself keeps this.
    #[must_use]
    pub fn below(mut self, top: Option<Attributes>) -> Self {
        self.top = top;
        self
    }

    /// What the directory itself keeps, whatever its source has.
    pub fn kept_by_top(&self) -> Option<&Attributes> {
        self.top.as_ref()
    }
}
