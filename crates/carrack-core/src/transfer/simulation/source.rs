//! The modelled source: items whose content is a number for each block, and may change.

use blake3::hazmat::{self, Mode};

use super::plan::{Mutant, Plan, Rng, mix};
use super::store::ZEROS;
use crate::attributes::{Attribute, AttributeKind, Attributes, OtherAttributes, Time};
use crate::digest::{BlockDigest, XXH128_BYTES, block_count, block_length};
use crate::report::ItemKind;
use crate::transfer::{Fingerprint, ScannedItem};

/// The digests of content of this number, wherever it stands: as long as an XXH3-128, so that it
/// can be one of either kind.
pub fn digest_of(content: u64) -> BlockDigest {
    let mut main = [0; 32];
    for (part, bytes) in main[..XXH128_BYTES].chunks_mut(8).enumerate() {
        bytes.copy_from_slice(&mix(content.wrapping_add(part as u64)).to_be_bytes());
    }
    BlockDigest { main, adler32: content as u32 % 65521, crc32c: mix(content) as u32 }
}

/// The BLAKE3 of a whole file from its blocks, by the definition of the tree.
pub fn whole_blake3(blocks: &[u64], size: u64, block_bytes: u32) -> [u8; 32] {
    let leaf = |start: u64| digest_of(blocks[(start / u64::from(block_bytes)) as usize]).main;
    fn subtree(start: u64, bytes: u64, block_bytes: u64, leaf: &dyn Fn(u64) -> [u8; 32]) -> [u8; 32] {
        if bytes <= block_bytes {
            return leaf(start);
        }
        let left = hazmat::left_subtree_len(bytes);
        let halves = (subtree(start, left, block_bytes, leaf), subtree(start + left, bytes - left, block_bytes, leaf));
        hazmat::merge_subtrees_non_root(&halves.0, &halves.1, Mode::Hash)
    }
    if size <= u64::from(block_bytes) {
        return leaf(0);
    }
    let left = hazmat::left_subtree_len(size);
    let block_bytes = u64::from(block_bytes);
    let halves = (subtree(0, left, block_bytes, &leaf), subtree(left, size - left, block_bytes, &leaf));
    *hazmat::merge_subtrees_root(&halves.0, &halves.1, Mode::Hash).as_bytes()
}

#[derive(Debug)]
pub struct SourceItem {
    pub scanned: ScannedItem,
    /// Bytes, whether or not the scan could see that.
    pub size: u64,
    /// Which of its states it is in now: another has another content.
    pub version: u64,
    states: Vec<PastState>,
    inode: u64,
    /// A later source of the same name: it is no item of its own, and never to be copied.
    pub twin: bool,
    pub gone: bool,
}

/// What a source was at some time.
#[derive(Clone, Copy, Debug)]
struct PastState {
    size: u64,
    inode: u64,
    stat: Stat,
}

/// What a file system shows of a file: size, and when it was written and last changed.
pub type Stat = (Option<u64>, Option<Time>, Option<Time>);

impl SourceItem {
    /// As it is now.
    pub fn stat(&self) -> Stat {
        (self.scanned.size, self.scanned.attributes.mtime, self.scanned.changed)
    }

    /// Whether it has ever been anything else.
    pub fn has_changed(&self) -> bool {
        self.states.len() > 1
    }
}

#[derive(Debug, Default)]
pub struct Source {
    pub items: Vec<SourceItem>,
    pub block_bytes: u32,
    /// Files up to this size are bundled.
    bundled_max: u64,
    pub mutant: Option<Mutant>,
    /// Blocks of large files may be holes.
    holes: bool,
    /// Seconds that its clock takes for one moment; 0 when it tells nanoseconds.
    grain: i64,
    last_inode: u64,
    /// Which host the files are on.
    host: u64,
}

/// Seconds that the coarsest of clocks takes for one moment.
pub const GRAIN: i64 = 2;
/// Changed before all else, by every clock.
const LONG_AGO: Option<Time> = Some(Time::new(-1000, 0));

impl Source {
    pub fn new(plan: &Plan, rng: &mut Rng) -> Self {
        let bundled_max = plan.tuning.bundled_file_bytes_max;
        let mut source = Self { block_bytes: plan.options.block_bytes, bundled_max, ..Self::default() };
        (source.holes, source.grain) = (plan.seed.is_multiple_of(2), (plan.seed / 2 % 3) as i64);
        let mut directory = String::new();
        let large_every = plan.small_items / plan.large_files.max(1) + 1;
        let (mut small, mut large) = (plan.small_items, plan.large_files);
        for number in 0u64.. {
            if small + large == 0 {
                break;
            }
            let path = |name: &str| format!("{directory}{name}{number}").into_bytes();
            if large > 0 && (small == 0 || number % large_every == 0) {
                large -= 1;
                let path = path("large");
                source.add_large(path, rng);
                continue;
            }
            small -= 1;
            match rng.below(20) {
                0 | 1 => {
                    let path = path("d");
                    directory = format!("{}/", String::from_utf8_lossy(&path));
                    if directory.len() > 60 {
                        directory.clear();
                    }
                    source.add(path, ItemKind::Directory, 0);
                }
                2 => source.add(path("link"), ItemKind::Symlink, 0),
                3 => source.add(path("special"), ItemKind::Special, 0),
                4 | 5 => source.add(path("empty"), ItemKind::File, 0),
                _ => source.add(path("f"), ItemKind::File, rng.below(50_000)),
            }
        }
        if plan.seed.is_multiple_of(5) {
            source.add_twins();
        }
        source
    }

    /// Another source has some of the same names.
    fn add_twins(&mut self) {
        for number in 0..self.items.len() {
            let ScannedItem { path, kind, size, .. } = self.items[number].scanned.clone();
            if kind == ItemKind::File && size.is_some() && number % 3 == 0 {
                self.add(path, kind, self.items[number].size);
                let twin = self.items.last_mut().expect("it has been added");
                (twin.scanned.root, twin.twin) = (1, true);
            }
        }
    }

    fn add(&mut self, path: Vec<u8>, kind: ItemKind, size: u64) {
        let size_told = (kind == ItemKind::File).then_some(size);
        let scanned = ScannedItem {
            size: size_told,
            attributes: Attributes { others: others_of(self.items.len()), ..Attributes::new(0o644, Time::new(1, 2)) },
            changed: LONG_AGO,
            ..ScannedItem::new(0, path, kind)
        };
        self.last_inode += 1;
        let (inode, twin, gone) = (self.last_inode, false, false);
        self.items.push(SourceItem { scanned, size, version: 0, states: Vec::new(), inode, twin, gone });
        self.note(self.items.len() - 1);
    }

    /// An item has come into a new state: its content is what it never was.
    fn note(&mut self, item: usize) {
        let item = &mut self.items[item];
        item.version = item.states.len() as u64;
        item.states.push(PastState { size: item.size, inode: item.inode, stat: item.stat() });
    }

    fn add_large(&mut self, path: Vec<u8>, rng: &mut Rng) {
        let block = u64::from(self.block_bytes);
        let unsized_source = rng.chance(250);
        let size = match rng.below(6) {
            0 => block * rng.below(20),
            1 => rng.below(20),
            _ => rng.below(20 * block),
        };
        let least = if unsized_source { 0 } else { self.bundled_max + 1 };
        self.add(path, ItemKind::File, size.max(least));
        let holes = self.holes;
        let item = self.items.last_mut().expect("it has been added");
        if unsized_source {
            item.scanned.size = None;
            // It never had a size that anybody could see: when this state comes back, it has none either.
            item.states[0].stat = item.stat();
        } else {
            item.scanned.sparse = holes;
        }
    }

    /// An item as a scan finds it at this second of the source's clock.
    pub fn scanned(&self, item: usize, second: i64) -> ScannedItem {
        ScannedItem { fingerprint: self.fingerprint(item, second), ..self.items[item].scanned.clone() }
    }

    /// What an item is known by at this second: nothing if it may change once more within what its times tell apart.
    pub fn fingerprint(&self, item: usize, second: i64) -> Option<Fingerprint> {
        let scanned = &self.items[item].scanned;
        let believed = matches!(self.mutant, Some(Mutant::FreshBelieved | Mutant::ChangeIgnored));
        // What ends when it ends cannot be read again.
        if !(believed || self.is_settled(item, second)) || scanned.kind == ItemKind::File && scanned.size.is_none() {
            return None;
        }
        Some(self.fingerprint_of(item, self.items[item].inode, self.items[item].stat()))
    }

    fn fingerprint_of(&self, item: usize, inode: u64, (size, mtime, changed): Stat) -> Fingerprint {
        let seen = |ignored: Mutant, what: u64| if self.mutant == Some(ignored) { 0 } else { what };
        let (mtime, changed) = (mtime.unwrap_or_default(), changed.unwrap_or_default());
        let state = [
            item as u64,
            size.unwrap_or(u64::MAX),
            mtime.seconds as u64,
            mtime.nanos.into(),
            seen(Mutant::ChangeIgnored, changed.seconds as u64),
            seen(Mutant::ChangeIgnored, changed.nanos.into()),
            seen(Mutant::IdentityIgnored, inode),
            seen(Mutant::HostIgnored, self.host),
        ];
        let number = state.into_iter().fold(0, |number, part| mix(number ^ part));
        (u128::from(number) << 64 | u128::from(mix(!number))).to_be_bytes()
    }

    /// Whether the item had this content when it had this fingerprint.
    pub fn had(&self, item: usize, fingerprint: Fingerprint, size: u64, blake3: [u8; 32]) -> bool {
        let states = self.items[item].states.iter().enumerate();
        let mut of_it = states.filter(|(_, state)| self.fingerprint_of(item, state.inode, state.stat) == fingerprint);
        of_it.any(|(version, state)| state.size == size && self.is_content(item, version as u64, size, blake3))
    }

    /// Whether it would show if an item were changed at this second, or later.
    pub fn is_settled(&self, item: usize, second: i64) -> bool {
        self.items[item].scanned.changed.is_none_or(|changed| changed.seconds < second - GRAIN)
    }

    /// Another content, and nothing of it to be seen.
    pub fn change_content(&mut self, item: usize) {
        self.note(item);
    }

    /// Another file of the same size, of long ago, has come to the name: its directory was exchanged, another one
    /// mounted. Or one that was there before is back.
    pub fn exchange(&mut self, number: usize, rng: &mut Rng) {
        let item = &mut self.items[number];
        let back = item.states.iter().rposition(|state| state.inode != item.inode).filter(|_| rng.chance(300));
        if let Some(back) = back {
            let PastState { size, inode, stat } = item.states[back];
            (item.version, item.size, item.inode) = (back as u64, size, inode);
            (item.scanned.size, item.scanned.attributes.mtime, item.scanned.changed) = stat;
            return;
        }
        self.last_inode += 1;
        (item.inode, item.scanned.changed) = (self.last_inode, LONG_AGO);
        self.note(number);
    }

    /// All of it lies on another host from now on, where it looks the same.
    pub fn exchange_host(&mut self) {
        self.host += 1;
        let files = |kind| matches!(kind, ItemKind::File | ItemKind::Symlink);
        let items: Vec<usize> = (0..self.items.len()).filter(|&item| files(self.items[item].scanned.kind)).collect();
        for item in items {
            // No file of before comes back.
            let SourceItem { states, inode, .. } = &mut self.items[item];
            states.iter_mut().for_each(|state| state.inode = *inode);
            self.note(item);
        }
    }

    /// Another content, at this second of the source's clock. What the file system shows of it, besides that it
    /// changed, may be the same.
    pub fn change(&mut self, item: usize, second: i64, rng: &mut Rng) {
        let block = u64::from(self.block_bytes);
        let number = item;
        let item = &mut self.items[item];
        let nanos = rng.below(1_000_000_000) as u32;
        let changed = if self.grain == 0 {
            Time::new(second, nanos)
        } else {
            Time::new(second - second.rem_euclid(self.grain), 0)
        };
        item.scanned.changed = Some(changed);
        if rng.chance(500) {
            item.scanned.attributes.mtime = Some(Time::new(changed.seconds, 0));
        }
        if let Some(size) = item.scanned.size.as_mut().filter(|_| rng.chance(300)) {
            item.size = if *size <= self.bundled_max && rng.chance(700) {
                rng.below(50_000)
            } else {
                self.bundled_max + 1 + rng.below(10 * block)
            };
            *size = item.size;
        }
        self.note(number);
    }

    /// The number of an item.
    pub fn number(&self, scanned: &ScannedItem) -> usize {
        let twin = |item: &SourceItem| item.twin && item.scanned.path == scanned.path;
        match scanned.root {
            0 => self.find(&scanned.path),
            _ => self.items.iter().position(twin).expect("a twin of the second root"),
        }
    }

    /// The number of a path's first item.
    pub fn find(&self, path: &[u8]) -> usize {
        let number = path.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |place| place + 1);
        let number: usize = String::from_utf8_lossy(&path[number..]).parse().expect("names end in their number");
        assert_eq!(self.items[number].scanned.path, path);
        number
    }

    /// A block as it is now.
    pub fn block(&self, item: usize, index: u64) -> u64 {
        self.block_of(item, self.items[item].version, index)
    }

    fn block_of(&self, item: usize, version: u64, index: u64) -> u64 {
        let block = mix(mix((item as u64) << 20 | index).wrapping_add(version));
        if self.items[item].scanned.sparse && mix(!block).is_multiple_of(4) { ZEROS } else { block }
    }

    /// Whether this is what some version of the item was.
    pub fn is_version(&self, item: usize, size: u64, blake3: [u8; 32]) -> bool {
        let states = self.items[item].states.iter().enumerate().rev();
        let mut of_this_size = states.filter(|(_, state)| state.size == size);
        of_this_size.any(|(version, state)| self.is_content(item, version as u64, state.size, blake3))
    }

    /// Whether what the file system shows of the item now tells it from all that it was before.
    pub fn shows_changes(&self, item: usize) -> bool {
        let SourceItem { states, version, .. } = &self.items[item];
        let now = self.items[item].stat();
        (0..).zip(states).all(|(number, state)| number == *version || state.stat != now)
    }

    /// Whether this is what the item is now.
    pub fn is_now(&self, item: usize, size: u64, blake3: [u8; 32]) -> bool {
        let source = &self.items[item];
        source.size == size && self.is_content(item, source.version, size, blake3)
    }

    /// Whether a version of an item has this digest. A small file travels whole, or in blocks where it is followed.
    fn is_content(&self, item: usize, version: u64, size: u64, blake3: [u8; 32]) -> bool {
        let scanned = &self.items[item].scanned;
        let is_small = scanned.kind != ItemKind::File || scanned.size.is_some() && size <= self.bundled_max;
        if is_small && digest_of(content_at(item, version)).main == blake3 {
            return true;
        }
        let blocks = (0..block_count(size, self.block_bytes)).map(|index| self.block_of(item, version, index));
        whole_blake3(&blocks.collect::<Vec<u64>>(), size, self.block_bytes) == blake3
    }

    pub fn block_length(&self, item: usize, index: u64) -> u32 {
        block_length(index, self.items[item].size, self.block_bytes) as u32
    }

    pub fn blocks(&self, item: usize) -> u64 {
        block_count(self.items[item].size, self.block_bytes)
    }

    /// Content of a whole small file, or a link's target.
    pub fn content(&self, item: usize) -> u64 {
        content_at(item, self.items[item].version)
    }
}

/// Attributes beside permissions and time; a few items have some.
fn others_of(item: usize) -> OtherAttributes {
    let attribute = Attribute { kind: AttributeKind(item as u16 | 1), value: Box::from(&b"value"[..]) };
    let some = if item % 5 == 3 { vec![attribute] } else { Vec::new() };
    OtherAttributes::new(some).expect("one is in order")
}

fn content_at(item: usize, version: u64) -> u64 {
    mix(!(item as u64)).wrapping_add(version)
}
