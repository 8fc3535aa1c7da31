//! What is made, changed or deleted at the destination: told to the command, where it wants to know.
//!
//! What stands at a name is looked at before anything is written there; a directory, before anything is written into
//! it, because that changes its time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrack_core::attributes::{Attributes, CopyFacts, Lacks, Time};
use carrack_core::ids::ItemId;
use carrack_core::path::{above, split_name};
use carrack_core::plan::change::{ChangeRules, ChangeState};
use carrack_core::plan::compare::State;
use carrack_core::report::{Differences, Done, FileDigests, ItemChange, ItemKind};
use carrack_core::special::SpecialFile;
use carrack_core::wire::control::{Tell, TransferOptions};
use carrack_core::wire::linked::LinkedNames;
use carrack_core::wire::peer::{AskedItem, ItemResult, Offer};
use twox_hash::XxHash3_128;

use crate::storage::giving::Giving;
use crate::storage::properties::Properties;
use crate::storage::write::{Destination, StandingItem};
use crate::sync::lock;

/// Changes told to the command at once, and bytes of their paths: far from the bounds of a message.
const TOLD_AT_ONCE: usize = 256;
const TOLD_BYTES: usize = 64 << 10;

type TellCommand = dyn Fn(Tell) + Send + Sync;

/// Tells of changes.
pub(super) struct Changes {
    rules: ChangeRules,
    giving: Giving,
    tell: Box<TellCommand>,
    waiting: Mutex<UntoldChanges>,
    /// Directories as they were, by the digest of their path.
    directories: Mutex<HashMap<u64, DirectoryBefore>>,
    /// Large files that are under way.
    offered: Mutex<HashMap<ItemId, ItemChange>>,
}

/// Changes that have not been told.
struct UntoldChanges {
    list: Vec<ItemChange>,
    bytes: usize,
    told: Instant,
    /// The last word has been said.
    is_closed: bool,
}

/// What a directory was before this session wrote into it.
#[derive(Clone, Copy)]
enum DirectoryBefore {
    There(ChangeState),
    Absent,
    /// It was not there, and has been told of.
    Told,
}

/// Changes of a bundle's items that are told when they have their names, by the index of the item.
pub(super) type BundledChanges = BTreeMap<u32, ItemChange>;

impl Changes {
    /// Nothing told yet. `top` is the destination as it was before it was opened.
    pub fn new(
        options: &TransferOptions,
        giving: Giving,
        properties: &Properties,
        top: Option<StandingItem>,
        tell: Box<TellCommand>,
    ) -> Self {
        let rules = ChangeRules {
            compare: options.compare,
            times: properties.times.is_some() && !options.no_times,
            permissions: properties.permissions,
            window_ns: options.window_ns,
        };
        let directories = Mutex::new(HashMap::from([(short_digest(b""), before(top))]));
        let waiting = UntoldChanges { list: Vec::new(), bytes: 0, told: Instant::now(), is_closed: false };
        Self { rules, giving, tell, waiting: Mutex::new(waiting), directories, offered: Mutex::default() }
    }

    /// Tells of a change, with others.
    pub fn push(&self, change: ItemChange) {
        let mut waiting = lock(&self.waiting);
        if waiting.is_closed {
            return;
        }
        waiting.bytes += change.path.len() + change.leads_to.len();
        waiting.list.push(change);
        if waiting.list.len() >= TOLD_AT_ONCE || waiting.bytes >= TOLD_BYTES {
            self.tell(&mut waiting);
        }
    }

    fn tell(&self, waiting: &mut UntoldChanges) {
        (waiting.bytes, waiting.told) = (0, Instant::now());
        if !waiting.list.is_empty() {
            // Under the lock: nothing is told behind the last word.
            (self.tell)(Tell::Changes(std::mem::take(&mut waiting.list)));
        }
    }

    /// Tells what has waited for so long.
    pub fn tell_due(&self, patience: Duration) {
        let mut waiting = lock(&self.waiting);
        if waiting.told.elapsed() >= patience && !waiting.is_closed {
            self.tell(&mut waiting);
        }
    }

    /// Tells all, and nothing from now on.
    pub fn close(&self) {
        let mut waiting = lock(&self.waiting);
        if !waiting.is_closed {
            self.tell(&mut waiting);
        }
        waiting.is_closed = true;
    }

    /// Looks at a directory, and at those above it, before anything is written into it.
    pub fn note_directory(&self, destination: &dyn Destination, path: &[u8]) {
        // Under the lock: nobody else writes into it before it has been looked at.
        let mut directories = lock(&self.directories);
        if directories.contains_key(&short_digest(path)) {
            return;
        }
        for directory in above(path).chain([path]) {
            let look = || before(destination.standing_directory(directory).ok().flatten());
            directories.entry(short_digest(directory)).or_insert_with(look);
        }
    }

    /// A directory has been made or found.
    pub fn directory_made(&self, path: &[u8], mtime: Option<Time>) {
        let mut directories = lock(&self.directories);
        if let Some(known @ DirectoryBefore::Absent) = directories.get_mut(&short_digest(path)) {
            *known = DirectoryBefore::Told;
            drop(directories);
            self.push(directory(path, mtime, Done::Created));
        }
    }

    /// A directory has got its attributes, and lacked this before. One that nobody has noted was not touched.
    pub fn directory_set(&self, path: &[u8], attributes: &Attributes, lacked: Lacks) {
        let known = lock(&self.directories).get(&short_digest(path)).copied();
        match known {
            Some(DirectoryBefore::There(there)) => {
                let mode = self.giving.mode_without(attributes.mode, &attributes.others, lacked);
                let facts = self.giving.wanted(mode, &attributes.others, &there.facts, true);
                let state = State { kind: ItemKind::Directory, size: 0, mtime: attributes.mtime };
                let wanted = ChangeState { state, facts, lacks: Lacks::default() };
                let done = self.rules.set(&wanted, &ChangeState { lacks: lacked, ..there });
                done.into_iter().for_each(|done| self.push(directory(path, attributes.mtime, done)));
            }
            Some(DirectoryBefore::Absent) => self.directory_made(path, attributes.mtime),
            Some(DirectoryBefore::Told) | None => {}
        }
    }

    /// What writing an item will change.
    pub fn of_written(&self, destination: &dyn Destination, item: &AskedItem) -> ItemChange {
        self.note_directory(destination, split_name(&item.path).0);
        let lacks = |there| StandingItem { lacks: destination.lacks(&item.path, &item.others), ..there };
        let there = standing(destination, &item.path).map(lacks);
        self.written(destination, item, there.as_ref())
    }

    /// What a further name of a file will change.
    pub fn of_further_name(&self, destination: &dyn Destination, item: &AskedItem, linked: &LinkedNames) -> ItemChange {
        self.note_directory(destination, split_name(&item.path).0);
        let first = linked.names.iter().find_map(|name| standing(destination, name)).map(|first| first.state);
        let (size, kind) = first.map_or((0, item.kind), |first| (first.size, first.kind));
        let item = AskedItem { size, kind, ..item.clone() };
        let there = standing(destination, &item.path);
        ItemChange { digests: linked.digests, ..self.further_name(&item, &linked.names[0], there.as_ref()) }
    }

    /// The same in a dry run.
    pub fn further_name(&self, item: &AskedItem, first: &[u8], there: Option<&StandingItem>) -> ItemChange {
        let there = there.map(|there| StandingItem { lacks: Lacks::default(), ..*there });
        let done = match self.rules.written(
            &self.state_of(item, there.as_ref()),
            there.as_ref().map(item_state).as_ref(),
            true,
        ) {
            // Of these a name is told by what they say.
            _ if item.kind == ItemKind::Symlink => Done::Linked,
            Done::Replaced(differs) => Done::Replaced(Differences { content: false, ..differs }),
            done => done,
        };
        ItemChange { leads_to: first.to_vec(), ..change(item, done) }
    }

    /// The same, where what stands there is known.
    pub fn written(&self, destination: &dyn Destination, item: &AskedItem, there: Option<&StandingItem>) -> ItemChange {
        let says_the_same =
            there.is_some_and(|there| there.state.kind == item.kind) && says_the_same(destination, item);
        change(item, self.rules.written(&self.state_of(item, there), there.map(item_state).as_ref(), says_the_same))
    }

    /// An item that is there has got the attributes of its source.
    pub fn attributes_set(&self, item: &AskedItem, there: &StandingItem) {
        let done = self.rules.set(&self.state_of(item, Some(there)), &item_state(there));
        done.into_iter().for_each(|done| self.push(change(item, done)));
    }

    /// What making an item of a reference directory's file changes: told by how it differs from that.
    /// A link in the place of an `old_name` is a new name.
    pub fn referred(
        &self,
        item: &AskedItem,
        found: &StandingItem,
        is_linked: bool,
        old_name: Option<&[u8]>,
    ) -> ItemChange {
        if let Some(old_name) = old_name {
            return ItemChange { leads_to: old_name.to_vec(), ..change(item, Done::Renamed) };
        }
        let differs = match self.rules.written(&self.state_of(item, Some(found)), Some(&item_state(found)), false) {
            Done::Replaced(differs) => differs,
            _ => Differences::default(),
        };
        // What was copied is what was found to be the same.
        let differs = Differences { content: false, ..differs };
        change(item, if is_linked { Done::Linked } else { Done::Copied(differs) })
    }

    /// What an item is to be in the place of another.
    fn state_of(&self, item: &AskedItem, there: Option<&StandingItem>) -> ChangeState {
        let lacks = there.map_or(Lacks::default(), |there| there.lacks);
        let there = there.map_or(CopyFacts { owner: 0, group: 0, mode: 0 }, |there| there.facts);
        let mode = self.giving.mode_without(item.mode, &item.others, lacks);
        let wanted = self.giving.wanted(mode, &item.others, &there, item.kind == ItemKind::Directory);
        let facts = match item.kind {
            // Nothing can be written down beside a link.
            ItemKind::Symlink if self.giving.fakes() => there,
            // Permissions of a link mean nothing.
            ItemKind::Symlink => CopyFacts { mode: there.mode, ..wanted },
            _ => wanted,
        };
        let state = State { kind: item.kind, size: item.size, mtime: item.mtime };
        ChangeState { state, facts, lacks: Lacks::default() }
    }

    /// A large file is about to be opened.
    pub fn offered(&self, destination: &dyn Destination, offer: &Offer) {
        let item = AskedItem {
            path: offer.path.clone(),
            kind: ItemKind::File,
            size: offer.size.unwrap_or(0),
            mtime: offer.attributes.mtime,
            mode: offer.attributes.mode,
            others: offer.attributes.others.clone(),
            leads_to: Vec::new(),
            hard_link: None,
        };
        let change = self.of_written(destination, &item);
        lock(&self.offered).insert(offer.item, change);
    }

    /// A large file has got its name, or has ended otherwise: then there are no digests of it.
    pub fn offered_ended(&self, item: ItemId, published: Option<(u64, FileDigests)>) {
        let change = lock(&self.offered).remove(&item);
        if let (Some(change), Some((size, digests))) = (change, published) {
            self.push(ItemChange { size, digests, ..change });
        }
    }

    /// A bundle's items have got their names, but for those of which something is said.
    pub fn bundle_ended(&self, changes: BundledChanges, said: &[(u32, ItemResult)]) {
        let said: HashMap<u32, &ItemResult> = said.iter().map(|(index, result)| (*index, result)).collect();
        for (index, change) in changes {
            match (said.get(&index), change.done) {
                (None, _) => self.push(change),
                // It has what its file has.
                (Some(ItemResult::Same), _) if change.is_further_name() => {}
                (Some(ItemResult::Same), Done::Replaced(differs)) if differs.any_attribute() => {
                    let differs = Differences { content: false, time_is_of_writing: false, ..differs };
                    self.push(ItemChange { done: Done::Set(differs), ..change });
                }
                (Some(_), _) => {}
            }
        }
    }

    /// What only the destination has is gone.
    pub fn deleted(&self, path: &[u8], kind: ItemKind, size: u64) {
        let (path, mtime, leads_to, digests) = (path.to_vec(), None, Vec::new(), FileDigests::default());
        self.push(ItemChange { path, kind, size, mtime, leads_to, digests, done: Done::Deleted });
    }
}

/// Whether a link says, or something special is, what it is to.
pub(super) fn says_the_same(destination: &dyn Destination, item: &AskedItem) -> bool {
    match item.kind {
        ItemKind::Symlink => destination.is_link_to(&item.path, &item.leads_to),
        ItemKind::Special => {
            SpecialFile::decode(&item.leads_to).is_some_and(|special| destination.is_special(&item.path, special))
        }
        ItemKind::File | ItemKind::Directory => false,
    }
}

/// A digest of 8 bytes, where it does no harm if two are one.
pub(super) fn short_digest(name: &[u8]) -> u64 {
    XxHash3_128::oneshot(name) as u64
}

fn standing(destination: &dyn Destination, path: &[u8]) -> Option<StandingItem> {
    // What cannot be looked at cannot be written to either, which is told.
    destination.standing(&[path], None).pop()?.ok()?
}

fn before(there: Option<StandingItem>) -> DirectoryBefore {
    match there {
        Some(there) if there.state.kind == ItemKind::Directory => DirectoryBefore::There(item_state(&there)),
        _ => DirectoryBefore::Absent,
    }
}

fn item_state(there: &StandingItem) -> ChangeState {
    let facts = CopyFacts { mode: there.facts.mode & 0o7777, ..there.facts };
    ChangeState { state: there.state, facts, lacks: there.lacks }
}

fn change(item: &AskedItem, done: Done) -> ItemChange {
    let AskedItem { path, kind, size, mtime, leads_to, .. } = item.clone();
    let leads_to = if kind == ItemKind::Symlink { leads_to } else { Vec::new() };
    ItemChange { path, kind, size, mtime, leads_to, digests: FileDigests::default(), done }
}

fn directory(path: &[u8], mtime: Option<Time>, done: Done) -> ItemChange {
    let (path, leads_to, digests) = (path.to_vec(), Vec::new(), FileDigests::default());
    ItemChange { path, kind: ItemKind::Directory, size: 0, mtime, leads_to, digests, done }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use carrack_core::attributes::OtherAttributes;
    use carrack_core::request::{CopyOptions, Durability, Verify};
    use carrack_core::wire::Version;
    use carrack_sys::dir::Dir;

    use super::*;
    use crate::storage::posix::tree::Tree;

    /// What was told.
    type Told = Arc<Mutex<Vec<(String, Done)>>>;

    /// A tree with a file, a link and a directory, and who tells of changes there into a list.
    fn changes(place: &std::path::Path) -> (Tree, Changes, Told) {
        std::fs::create_dir(place.join("d")).unwrap();
        std::fs::write(place.join("d/f"), "old").unwrap();
        std::os::unix::fs::symlink("f", place.join("d/l")).unwrap();
        let root = Dir::open_ambient(place).unwrap();
        let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
        let options = CopyOptions { item_changes: true, ..CopyOptions::default() };
        let options = TransferOptions::of(&options, Verify::Wire, 1 << 20, Version::NEWEST);
        let told = Told::default();
        let heard = Arc::clone(&told);
        let tell = move |tell| {
            let Tell::Changes(changes) = tell else { panic!("{tell:?}") };
            let named = |change: ItemChange| (String::from_utf8(change.path).unwrap(), change.done);
            lock(&heard).extend(changes.into_iter().map(named));
        };
        let giving = Giving::new(options.kept, options.fake_super);
        let changes = Changes::new(&options, giving, &Properties::FILES, standing(&tree, b""), Box::new(tell));
        (tree, changes, told)
    }

    fn asked(path: &str, kind: ItemKind, leads_to: &str) -> AskedItem {
        let (mtime, leads_to) = (Some(Time::new(1, 5)), leads_to.as_bytes().to_vec());
        let (path, others) = (path.as_bytes().to_vec(), OtherAttributes::default());
        AskedItem { path, kind, size: 3, mtime, mode: 0o644, others, leads_to, hard_link: None }
    }

    #[test]
    fn bundle_tells_what_got_its_name_and_what_was_the_same() {
        let place = tempfile::tempdir().unwrap();
        let (tree, changes, told) = changes(place.path());
        let items = [
            asked("d/f", ItemKind::File, ""),
            asked("d/new", ItemKind::File, ""),
            asked("d/l", ItemKind::Symlink, "f"),
            asked("d/failed", ItemKind::File, ""),
        ];
        let bundled: BundledChanges = (0..).zip(items.iter().map(|item| changes.of_written(&tree, item))).collect();
        let failed = crate::error::failure(
            carrack_core::report::ErrorCode::NoSpace,
            carrack_core::report::Side::Destination,
            "full",
        );
        changes.bundle_ended(bundled, &[(2, ItemResult::Same), (3, ItemResult::Failed(failed))]);
        assert!(lock(&told).is_empty(), "told together");
        changes.close();
        let time = Differences { time: true, ..Differences::default() };
        let expected = [("d/f", Done::Replaced(time)), ("d/new", Done::Created), ("d/l", Done::Set(time))];
        assert_eq!(*lock(&told), expected.map(|(path, done)| (path.to_owned(), done)));
        changes.push(changes.of_written(&tree, &items[0]));
        changes.close();
        assert_eq!(lock(&told).len(), 3, "nothing is told behind the last word");
    }

    /// Writing into a directory changes its time, and is not what is told of it.
    #[test]
    fn directory_is_told_by_what_it_was_before() {
        let place = tempfile::tempdir().unwrap();
        let (tree, changes, told) = changes(place.path());
        let there = standing(&tree, b"d").unwrap();
        let same = Attributes { mode: there.facts.mode, mtime: there.state.mtime, ..Attributes::default() };
        changes.note_directory(&tree, b"d");
        std::fs::write(place.path().join("d/more"), "x").unwrap();
        changes.note_directory(&tree, b"d");
        changes.directory_set(b"d", &same, Lacks::default());
        changes.note_directory(&tree, b"e/f");
        for path in [&b"e"[..], b"e/f", b"e", b"d"] {
            tree.make_directory(path).unwrap();
            changes.directory_made(path, None);
        }
        changes.directory_set(b"e", &same, Lacks::default());
        changes.directory_set(b"unknown", &same, Lacks::default());
        changes.directory_set(b"d", &Attributes { mode: 0o700, ..same }, Lacks::default());
        changes.close();
        let permissions = Differences { permissions: true, ..Differences::default() };
        let expected = [("e", Done::Created), ("e/f", Done::Created), ("d", Done::Set(permissions))];
        assert_eq!(*lock(&told), expected.map(|(path, done)| (path.to_owned(), done)));
    }
}
