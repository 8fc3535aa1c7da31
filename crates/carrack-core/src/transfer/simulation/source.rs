//! The modelled source: items whose content is a number for each block, and may change.

use blake3::hazmat::{self, Mode};

use super::plan::{Plan, Rng, mix};
use crate::digest::{BlockDigest, XXH128_BYTES, block_count, block_length};
use crate::report::ItemKind;
use crate::transfer::{Fingerprint, ScannedItem};
use crate::tuning;

/// The digests of content of this number, wherever it stands: as long as an XXH3-128, so that it can be one of either kind.
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
    /// Counts up with each change.
    pub version: u64,
    /// Bytes of each version.
    sizes: Vec<u64>,
    pub gone: bool,
}

#[derive(Debug)]
pub struct Source {
    pub items: Vec<SourceItem>,
    pub block_bytes: u32,
    /// A mutant: the time of the last change is not looked at.
    pub ignores_changes: bool,
}

/// Seconds that the coarsest of clocks takes for one moment.
const GRAIN: i64 = 2;

impl Source {
    pub fn new(plan: &Plan, rng: &mut Rng) -> Self {
        let mut source = Self { items: Vec::new(), block_bytes: plan.options.block_bytes, ignores_changes: false };
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
        source
    }

    fn add(&mut self, path: Vec<u8>, kind: ItemKind, size: u64) {
        let mtime = Some((1, 2));
        let size_told = (kind == ItemKind::File).then_some(size);
        let changed = Some((-1000, 0));
        let fingerprint = None;
        let scanned = ScannedItem {
            root: 0,
            path,
            kind,
            size: size_told,
            mode: 0o644,
            mtime,
            sparse: false,
            changed,
            file: None,
            fingerprint,
        };
        self.items.push(SourceItem { scanned, size, version: 0, sizes: vec![size], gone: false });
    }

    fn add_large(&mut self, path: Vec<u8>, rng: &mut Rng) {
        let block = u64::from(self.block_bytes);
        let unsized_source = rng.chance(250);
        let size = match rng.below(6) {
            0 => block * rng.below(20),
            1 => rng.below(20),
            _ => rng.below(20 * block),
        };
        let least = if unsized_source { 0 } else { tuning::BUNDLED_FILE_BYTES_MAX + 1 };
        self.add(path, ItemKind::File, size.max(least));
        if let Some(item) = self.items.last_mut().filter(|_| unsized_source) {
            item.scanned.size = None;
        }
    }

    /// An item as a scan finds it at this second of the source's clock.
    pub fn scanned(&self, item: usize, second: i64) -> ScannedItem {
        ScannedItem { fingerprint: self.fingerprint(item, second), ..self.items[item].scanned.clone() }
    }

    /// What an item is known by at this second: nothing if it may change once more within what its times tell apart.
    pub fn fingerprint(&self, item: usize, second: i64) -> Option<Fingerprint> {
        let scanned = &self.items[item].scanned;
        let (changed, mtime) = (scanned.changed?, scanned.mtime.unwrap_or_default());
        let changed = if self.ignores_changes { (i64::MIN, 0) } else { changed };
        // What ends when it ends cannot be read again.
        if changed.0 >= second - GRAIN || scanned.kind == ItemKind::File && scanned.size.is_none() {
            return None;
        }
        let size = scanned.size.unwrap_or(u64::MAX);
        let state = [item as u64, size, changed.0 as u64, changed.1.into(), mtime.0 as u64, mtime.1.into()];
        let number = state.into_iter().fold(0, |number, part| mix(number ^ part));
        Some((u128::from(number) << 64 | u128::from(mix(!number))).to_be_bytes())
    }

    /// Another content, and nothing of it to be seen.
    pub fn change_content(&mut self, item: usize) {
        let item = &mut self.items[item];
        item.version += 1;
        item.sizes.push(item.size);
    }

    /// Another content, at this second of the source's clock. What the file system shows of it, besides that it changed, may be
    /// the same.
    pub fn change(&mut self, item: usize, second: i64, rng: &mut Rng) {
        let block = u64::from(self.block_bytes);
        let item = &mut self.items[item];
        item.version += 1;
        item.scanned.changed = Some((second, rng.below(1_000_000_000) as u32));
        if rng.chance(500) {
            item.scanned.mtime = Some((second, 0));
        }
        if let Some(size) = item.scanned.size.as_mut().filter(|_| rng.chance(300)) {
            item.size = if *size <= tuning::BUNDLED_FILE_BYTES_MAX && rng.chance(700) {
                rng.below(50_000)
            } else {
                tuning::BUNDLED_FILE_BYTES_MAX + 1 + rng.below(10 * block)
            };
            *size = item.size;
        }
        item.sizes.push(item.size);
    }

    /// The number of an item's path, which is unique.
    pub fn find(&self, path: &[u8]) -> usize {
        let number = path.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |place| place + 1);
        let number: usize = String::from_utf8_lossy(&path[number..]).parse().expect("names end in their number");
        assert_eq!(self.items[number].scanned.path, path);
        number
    }

    /// A block as it is now.
    pub fn block(&self, item: usize, index: u64) -> u64 {
        block_at(item, self.items[item].version, index)
    }

    /// Whether this is what some version of the item was.
    pub fn is_version(&self, item: usize, size: u64, blake3: [u8; 32]) -> bool {
        let versions = 0..=self.items[item].version;
        versions.rev().any(|version| {
            let had = self.items[item].sizes[version as usize];
            had == size && self.blake3_of(item, version, had) == blake3
        })
    }

    /// Whether this is what the item is now.
    pub fn is_now(&self, item: usize, size: u64, blake3: [u8; 32]) -> bool {
        let source = &self.items[item];
        source.size == size && self.blake3_of(item, source.version, size) == blake3
    }

    fn blake3_of(&self, item: usize, version: u64, size: u64) -> [u8; 32] {
        let scanned = &self.items[item].scanned;
        let bundled = scanned.size.is_some() && size <= tuning::BUNDLED_FILE_BYTES_MAX;
        if scanned.kind != ItemKind::File || bundled {
            return digest_of(content_at(item, version)).main;
        }
        let blocks = (0..block_count(size, self.block_bytes)).map(|index| block_at(item, version, index));
        whole_blake3(&blocks.collect::<Vec<u64>>(), size, self.block_bytes)
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

fn block_at(item: usize, version: u64, index: u64) -> u64 {
    mix(mix((item as u64) << 20 | index).wrapping_add(version))
}

fn content_at(item: usize, version: u64) -> u64 {
    mix(!(item as u64)).wrapping_add(version)
}
