//! What an earlier session published and need not be sent again: its source is what it was, and at its name stands the
//! very file that it became, untouched. Where the file system cannot prove the latter, or storage is to be read anyway,
//! the file is read again first.

use std::fs::File;
use std::sync::atomic::Ordering;

use carrack_core::attributes::{AttributeKind, Attributes, CopyFacts, Lacks, OtherAttributes};
use carrack_core::digest::{FileTree, block_count, block_length};
use carrack_core::path::split_name;
use carrack_core::plan::compare::is_one_time;
use carrack_core::report::{FileDigests, ItemKind};
use carrack_core::request::{Digests, Durability, Verify};
use carrack_core::transfer::Fingerprint;
use carrack_core::transfer::marker::{Published, PublishedItem, published_key};
use carrack_core::tuning::SLICE_BYTES;
use carrack_sys::dir::{Kind, Links, Stat, stat_file_uncached};
use carrack_sys::file;

use super::Tree;
use crate::data::hasher::BlockHasher;
use crate::storage::descriptors::patiently;
use crate::storage::giving::MODE_MASK;
use crate::storage::identity::Ground;
use crate::storage::posix::directories::OpenDir;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::giving::facts_of;
use crate::storage::posix::times::time_of;
use crate::storage::posix::unkept::ToKeep;
use crate::storage::properties::WriteOptions;
use crate::storage::write::{EarlierItem, NewFile};
use crate::sync::lock;

/// A file or link that an earlier session published, as it stands there.
pub struct Standing {
    /// Its digests, as far as they are wanted.
    pub digests: FileDigests,
    kind: ItemKind,
    pub(super) stat: Stat,
    ground: Ground,
    /// Two names may be one there.
    folds: bool,
    /// It has got something now, and what it has not kept was told by that.
    is_told: bool,
}

impl Standing {
    /// Whether it has to be read before it is believed.
    pub fn needs_reading(&self, verify: Verify) -> bool {
        // What a link says cannot be changed, only replaced.
        self.kind == ItemKind::File && (verify == Verify::Disk || !self.ground.proves_content(&self.stat))
    }
}

impl Tree {
    /// Items that earlier sessions published, as far as the marker tells: worth asking for by [`Tree::known`]. None
    /// without a digest by which they could be proved.
    pub fn known_count(&self, wanted: Digests) -> u64 {
        self.shared.journal.as_ref().filter(|_| wanted.main.is_some()).map_or(0, |journal| journal.known_count())
    }

    /// Whether an item need not be sent; then its digests. May take long, unless `stop` says that
    /// nobody wants to know any more.
    pub fn known(
        &self,
        item: &EarlierItem<'_>,
        options: &WriteOptions,
        stop: &dyn Fn() -> bool,
    ) -> Option<FileDigests> {
        let standing = self.find_published(item.path, item.kind, item.fingerprint?, options.digests)?;
        if !self.is_given(item.path, &standing.stat, item.mode, item.others) {
            return None;
        }
        let is_same = !standing.needs_reading(options.verify)
            || self.is_still_the_same(item.path, &standing, item.block_bytes, options, stop);
        let standing = if is_same { self.with_plain(item, standing)? } else { return None };
        let wanted = ToKeep { mode: item.mode, mtime: item.mtime, others: item.others };
        Some(self.believe(item.path, &standing, &wanted))
    }

    /// What stands there, if it has what an offered file is to have, or has got it now. One that has to be read first
    /// gets its permissions and its time after that.
    pub(super) fn serves(&self, standing: Standing, offer: &NewFile<'_>, options: &WriteOptions) -> Option<Standing> {
        if !self.is_given(offer.path, &standing.stat, Some(offer.attributes.mode), &offer.attributes.others) {
            return None;
        }
        let is_first_read = standing.needs_reading(options.verify);
        if is_first_read { Some(standing) } else { self.with_plain(&offer.as_earlier(options), standing) }
    }

    /// What stands there, with its permissions and its time: the session that published it may have been asked for
    /// others. Where those are not surely kept, or a list or a note beside the file says more, it stays as it is.
    fn with_plain(&self, item: &EarlierItem<'_>, standing: Standing) -> Option<Standing> {
        let EarlierItem { path, mode, mtime, others, fingerprint, .. } = *item;
        let (giving, Standing { stat, ground, .. }) = (self.shared.giving(), &standing);
        let has_list = giving.kept().acls && others.kinds().any(AttributeKind::is_access_list);
        if giving.fakes() || has_list || !ground.is_plain() {
            return Some(standing);
        }
        let window_ns = self.shared.window_ns.load(Ordering::Relaxed);
        let has_time = is_one_time(Some(time_of(stat.mtime)), mtime, window_ns);
        let now = facts_of(stat);
        let wanted = mode.map(|mode| giving.mode(mode, others, &now));
        if has_time && wanted.is_none_or(|wanted| wanted & 0o777 == now.mode & 0o777) {
            return Some(standing);
        }
        let file = (stat.device, stat.inode);
        let attributes = Attributes { mode: mode.unwrap_or(now.mode), mtime, others: others.clone() };
        self.set_attributes(path, &attributes, Some(file)).ok()?;
        let (parent, name) = split_name(path);
        let stat = self.shared.directories.find(parent)?.dir.stat_uncached(name, Links::Refuse).ok()?;
        if (stat.device, stat.inode) != file {
            return None;
        }
        // By what it is known has changed with it.
        if let (Some(journal), Some(source), Some(stored)) = (&self.shared.journal, fingerprint, ground.identity(&stat))
        {
            let key = published_key(&PublishedItem { kind: standing.kind, path, source, stored });
            journal.published(Published { key, digests: standing.digests });
        }
        Some(Standing { stat, is_told: true, ..standing })
    }

    /// Whether an item has what is given beside permissions and times, or gets it here, where that needs no new file:
    /// an earlier session may have kept none.
    fn is_given(&self, path: &[u8], stat: &Stat, mode: Option<u32>, others: &OtherAttributes) -> bool {
        let giving = self.shared.giving();
        if !giving.gives() {
            return true;
        }
        let (parent, name) = split_name(path);
        let there = if giving.fakes() { self.shared.directories.find(parent) } else { None };
        let stat = &there.map_or(*stat, |there| giving.shown(*stat, Holder::Entry(&there.dir, name)));
        let now = facts_of(stat);
        let mode = mode.unwrap_or(now.mode & 0o777 | others.special_bits());
        let wanted = giving.wanted(mode, others, &now, false);
        let has_bits = stat.kind == Kind::Symlink || (wanted.mode ^ now.mode) & 0o7000 == 0;
        let has_owners = (wanted.owner, wanted.group) == (now.owner, now.group);
        has_owners && has_bits && self.has_listed((path, stat), &wanted, others)
    }

    /// Whether a file has what only extended attributes show, or has got it now, as far as it can: the session that
    /// published it may not have been asked to keep it.
    fn has_listed(&self, (path, stat): (&[u8], &Stat), wanted: &CopyFacts, others: &OtherAttributes) -> bool {
        let (giving, now) = (self.shared.giving(), facts_of(stat));
        let lacks = if stat.kind == Kind::File { self.lacks(path, others) } else { Lacks::default() };
        if !lacks.any() {
            return true;
        }
        if giving.makes_anew((wanted, others), &now, lacks, stat.links > 1) {
            return false;
        }
        let attributes = Attributes { mode: wanted.mode, mtime: Some(time_of(stat.mtime)), others: others.clone() };
        self.set_attributes(path, &attributes, Some((stat.device, stat.inode))).is_ok()
    }

    /// What an earlier session published of an item and still stands at its name.
    pub(super) fn find_published(
        &self,
        path: &[u8],
        kind: ItemKind,
        source: Fingerprint,
        wanted: Digests,
    ) -> Option<Standing> {
        if self.known_count(wanted) == 0 {
            return None;
        }
        let (parent, name) = split_name(path);
        let directory = self.shared.directories.find(parent)?;
        let stat = directory.dir.stat_uncached(name, Links::Refuse).ok()?;
        let (expected, wanted) = match kind {
            ItemKind::File => (Kind::File, wanted),
            ItemKind::Symlink => (Kind::Symlink, Digests::NONE),
            _ => return None,
        };
        let stored = directory.file_system.ground.identity(&stat).filter(|_| stat.kind == expected)?;
        let key = published_key(&PublishedItem { kind, path, source, stored });
        let digests = self.shared.journal.as_ref()?.known(&key, wanted)?;
        let (ground, folds) = (directory.file_system.ground, directory.folds());
        Some(Standing { digests, kind, stat, ground, folds, is_told: false })
    }

    /// It stays, and is this copy's. `wanted` is what it is to have, as far as that is known.
    pub fn believe(&self, path: &[u8], standing: &Standing, wanted: &ToKeep<'_>) -> FileDigests {
        // Whatever has been given and could not be is looked at once more.
        if !standing.is_told {
            self.look_unkept(path, &standing.stat, wanted);
        }
        if standing.folds {
            let mut published = lock(&self.shared.published);
            published.insert((standing.stat.device, standing.stat.inode), path.to_vec());
        }
        self.shared.count_in_memory(standing.kind, &standing.ground);
        // No sync of this session has covered it yet.
        if self.shared.durability == Durability::Group {
            self.shared.directories.syncs.named(standing.stat.device, path);
        }
        standing.digests
    }

    /// Notes of what stands at a path what it has not kept.
    fn look_unkept(&self, path: &[u8], stat: &Stat, wanted: &ToKeep<'_>) {
        let giving = self.shared.giving();
        let found = self.shared.directories.find(split_name(path).0);
        let holder = found.as_ref().map(|parent| Holder::Entry(&parent.dir, split_name(path).1));
        let stat = holder.map_or(*stat, |holder| giving.shown(*stat, holder));
        let listed = holder.map(|holder| giving.listed_of(holder, wanted.others));
        self.shared.unkept.look(|| path.to_vec(), wanted, &stat, &listed.unwrap_or_default());
    }

    /// See [`crate::storage::write::Destination::note_unkept`].
    pub fn note_unkept(&self, path: &[u8], Attributes { mode, mtime, others }: &Attributes) {
        let (parent, name) = split_name(path);
        let Some(stat) = self.shared.directories.find(parent).and_then(|found| found.dir.stat_at(name).ok()) else {
            return;
        };
        let mode = (stat.kind != Kind::Symlink).then_some(mode & MODE_MASK);
        self.look_unkept(path, &stat, &ToKeep { mode, mtime: *mtime, others });
    }

    /// Reads what stands there, with `--verify disk` past the cache. `block_bytes` is told of a file that travels in
    /// blocks: its digest is made of theirs.
    pub fn is_still_the_same(
        &self,
        path: &[u8],
        standing: &Standing,
        block_bytes: Option<u32>,
        options: &WriteOptions,
        stop: &dyn Fn() -> bool,
    ) -> bool {
        let (parent, name) = split_name(path);
        let open = |directory: &OpenDir| patiently(|| directory.dir.open_read(name, Links::Refuse));
        let Ok(opened) = self.shared.directories.within(parent, "open to read back", open) else { return false };
        let is_it = || {
            let now = stat_file_uncached(&opened).ok().and_then(|stat| standing.ground.identity(&stat));
            now.is_some() && now == standing.ground.identity(&standing.stat)
        };
        // Only what has reached storage is let go of by the cache.
        let past_cache = || {
            options.verify != Verify::Disk
                || file::sync_data(&opened).and_then(|()| file::drop_cache(&opened, 0, 0)).is_ok()
        };
        let read = || {
            let _entered = self.shared.watch.enter("read back", &path.into());
            read_digests(&opened, standing.stat.size, options.digests, block_bytes, stop)
        };
        is_it() && past_cache() && read() == Some(standing.digests) && is_it()
    }
}

/// The digests of a file as it can be read; `None` when it cannot be, or nobody wants to know any more.
pub(super) fn read_digests(
    opened: &File,
    size: u64,
    wanted: Digests,
    block_bytes: Option<u32>,
    stop: &dyn Fn() -> bool,
) -> Option<FileDigests> {
    let Some(block_bytes) = block_bytes else {
        return Some(read_range(opened, 0, size, wanted, stop)?.finish(true).as_file(wanted));
    };
    let mut tree = FileTree::new(block_bytes, wanted);
    let count = block_count(size, block_bytes);
    for index in 0..count {
        let (start, length) = (index * u64::from(block_bytes), block_length(index, size, block_bytes));
        tree.insert(index, length, read_range(opened, start, length, wanted, stop)?.finish(count == 1));
    }
    tree.finish(size)
}

fn read_range(opened: &File, start: u64, length: u64, wanted: Digests, stop: &dyn Fn() -> bool) -> Option<BlockHasher> {
    let mut hasher = BlockHasher::new(wanted, start);
    let mut slice = vec![0; SLICE_BYTES.min(usize::try_from(length).unwrap_or(SLICE_BYTES))];
    let mut done = 0;
    while done < length {
        let want = (length - done).min(SLICE_BYTES as u64) as usize;
        let read = file::read_full_at(opened, &mut slice[..want], start + done).ok()?;
        if read < want || stop() {
            return None;
        }
        hasher.update(&slice[..want]);
        done += want as u64;
    }
    Some(hasher)
}
