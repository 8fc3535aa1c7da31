//! Part files that a killed session has left and no session takes up again: small files and links, of which no marker
//! tells, and large files that were made right before the end. They go when a later session of the same copy comes to
//! their directory.
//!
//! A tag belongs to whoever holds its marker's lock, so nothing of a living session goes: what has this session's own
//! tag before this session has put anything into the directory was left by one that is gone, and for the tag of another
//! marker its lock is held meanwhile.

use std::collections::HashSet;
use std::sync::Mutex;

use carrack_core::transfer::marker::Tag;
use carrack_sys::dir::{Dir, DirEntry, Kind};
use carrack_sys::file;

use super::directories::Identity;
use super::marker::{Journal, hold};
use super::names::{PartKind, part_kind};
use crate::sync::lock;

/// What earlier sessions of a copy may have left.
pub struct Stale {
    root: Dir,
    /// The tag of the session's own marker, which an earlier session has used; and the numbers in the names of part
    /// files that may be taken up.
    own: Option<(Tag, HashSet<u64>)>,
    /// Tags of markers that are no more.
    forgotten: Vec<Tag>,
    /// Other markers of the same copy, and their tags.
    others: Vec<(Vec<u8>, Tag)>,
    /// Directories that have been looked at: one may have several paths.
    seen: Mutex<HashSet<Identity>>,
}

impl Stale {
    /// To be asked before the session makes anything. `None` if nothing can have been left.
    pub fn of(journal: &Journal) -> Option<Self> {
        let own = journal.is_resumed().then(|| (journal.tag(), journal.left_numbers()));
        let (forgotten, others) = (journal.forgotten().to_vec(), journal.others());
        if own.is_none() && forgotten.is_empty() && others.is_empty() {
            return None;
        }
        Some(Self { root: journal.root().try_clone().ok()?, own, forgotten, others, seen: Mutex::default() })
    }

    /// Removes from a directory what was left there. Nothing of this session may be in it yet. What cannot be removed,
    /// or listed, stays.
    pub fn remove_from(&self, directory: &Dir) {
        let Ok(stat) = directory.stat_self() else { return };
        if !lock(&self.seen).insert((stat.device, stat.inode)) {
            return;
        }
        let mut foreign: Vec<(Tag, Vec<u8>)> = Vec::new();
        let Ok(mut entries) = directory.entries() else { return };
        let mut batch = Vec::new();
        while entries.next_batch(&mut batch).unwrap_or(false) {
            for DirEntry { name, kind, .. } in batch.drain(..) {
                let Some((tag, part)) = part_kind(&name) else { continue };
                let kind = kind.or_else(|| directory.stat_at(&name).ok().map(|stat| stat.kind));
                if matches!(kind, None | Some(Kind::Dir | Kind::Unknown)) {
                    continue;
                }
                let nobodys = self.forgotten.contains(&tag)
                    || self.own.as_ref().is_some_and(|(own, left)| match part {
                        PartKind::Small => *own == tag,
                        PartKind::Numbered(number) => *own == tag && !left.contains(&number),
                        PartKind::Other => false,
                    });
                if nobodys {
                    let _ = directory.unlink(&name);
                } else if part == PartKind::Small && self.others.iter().any(|(_, other)| *other == tag) {
                    foreign.push((tag, name));
                }
            }
        }
        for (marker, tag) in &self.others {
            let mut names = foreign.iter().filter(|(theirs, _)| theirs == tag).peekable();
            // Whoever holds it is at work.
            if names.peek().is_some()
                && let Some(held) = hold(&self.root, marker)
            {
                names.for_each(|(_, name)| drop(directory.unlink(name)));
                let _ = file::unlock(&held);
            }
        }
    }
}
