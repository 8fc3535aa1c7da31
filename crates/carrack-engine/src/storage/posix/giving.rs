//! Giving items the owner, group and permissions that they are to have.

use std::fs::File;
use std::io;

use carrack_core::attributes::{AttributeKind, CopyFacts, OtherAttributes};
use carrack_sys::dir::{self, Dir, Stat};
use carrack_sys::file;

use super::unkept::if_it_can;
use crate::storage::giving::{Giving, MODE_MASK};

/// What gets something.
#[derive(Clone, Copy)]
pub enum Getting<'a> {
    /// An open file.
    File(&'a File),
    /// A symbolic link in a directory.
    Link(&'a Dir, &'a [u8]),
    /// An open directory.
    Directory(&'a Dir),
}

impl Getting<'_> {
    fn stat(self) -> io::Result<Stat> {
        match self {
            Self::File(file) => dir::stat_file(file),
            Self::Link(dir, name) => dir.stat_at(name),
            Self::Directory(dir) => dir.stat_self(),
        }
    }

    fn set_owner(self, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        match self {
            Self::File(file) => dir::set_owner(file, owner, group),
            Self::Link(dir, name) => dir.set_link_owner(name, owner, group),
            Self::Directory(dir) => dir.set_own_owner(owner, group),
        }
    }

    fn set_mode(self, mode: u32) -> io::Result<()> {
        match self {
            Self::File(file) => file::set_mode(file, mode),
            // It has none.
            Self::Link(..) => Ok(()),
            Self::Directory(dir) => dir.set_own_mode(mode),
        }
    }
}

/// What is shown of an item that every file system shows.
pub fn facts_of(stat: &Stat) -> CopyFacts {
    CopyFacts { owner: stat.uid, group: stat.gid, mode: stat.mode & 0o7777 }
}

impl Giving {
    /// Gives owner and group, as far as they are kept; whether the item has all of these attributes by that.
    ///
    /// # Errors
    /// Those of the system but refusals.
    pub fn give_owners(&self, getting: Getting<'_>, others: &OtherAttributes) -> io::Result<bool> {
        let (owner, group) = self.owners(others);
        let is_given = |kind| match kind {
            AttributeKind::OWNER => owner.is_some(),
            AttributeKind::GROUP => group.is_some(),
            _ => false,
        };
        let has_all = others.kinds().all(is_given);
        if owner.is_none() && group.is_none() {
            return Ok(has_all);
        }
        let set = |owner, group| match getting.set_owner(owner, group) {
            // A number that this system does not have, in a container; and an owner who has no room left.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::QuotaExceeded) => {
                Ok(false)
            }
            set => if_it_can(set),
        };
        let is_set = set(owner, group)?;
        if !is_set && owner.is_some() && group.is_some() {
            // A group may be given where an owner may not.
            set(None, group)?;
        }
        Ok(is_set && has_all)
    }

    /// Gives the permissions that something new is to have: a part file has 0600, but for what the umask takes away.
    ///
    /// # Errors
    /// Those of the system but refusals, which it says.
    pub fn give_new_mode(&self, getting: Getting<'_>, mode: u32, others: &OtherAttributes) -> io::Result<bool> {
        let special = mode & 0o7000 != 0 && self.gives_special_bits();
        let mode = if special { self.mode(mode, others, &facts_of(&getting.stat()?)) } else { mode & MODE_MASK };
        if_it_can(getting.set_mode(mode))
    }

    /// Gives owner, group and permissions to something that was there, as far as it has others. `had` are the
    /// permissions that count as its own.
    ///
    /// # Errors
    /// Those of the system but refusals.
    pub fn give(&self, getting: Getting<'_>, mode: u32, others: &OtherAttributes, had: u32) -> io::Result<()> {
        let before = CopyFacts { mode: had, ..facts_of(&getting.stat()?) };
        let is_directory = matches!(getting, Getting::Directory(_));
        let wanted = self.wanted(mode, others, &before, is_directory);
        if (wanted.owner, wanted.group) != (before.owner, before.group) {
            self.give_owners(getting, others)?;
        }
        if matches!(getting, Getting::Link(..)) {
            return Ok(());
        }
        // Another owner takes special bits away, and what was refused is not there.
        let now = facts_of(&getting.stat()?);
        let mode = self.mode_with(mode, others, &before, (now.owner, now.group), is_directory);
        if mode != now.mode {
            if_it_can(getting.set_mode(mode))?;
        }
        Ok(())
    }
}
