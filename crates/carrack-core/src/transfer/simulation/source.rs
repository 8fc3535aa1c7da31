//! The modelled source: items whose content is a number for each block, and may change.

use blake3::hazmat::{self, Mode};

use super::plan::{Plan, Rng, mix};
use crate::digest::{BlockDigest, block_count, block_length};
use crate::report::ItemKind;
use crate::transfer::ScannedItem;
use crate::tuning;

/// The digests of content of this number, wherever it stands.
pub fn digest_of(content: u64) -> BlockDigest {
    let mut blake3 = [0; 32];
    for (part, bytes) in blake3.chunks_mut(8).enumerate() {
        bytes.copy_from_slice(&mix(content.wrapping_add(part as u64)).to_be_bytes());
    }
    BlockDigest { blake3, adler32: content as u32 % 65521, crc32c: mix(content) as u32 }
}

/// The BLAKE3 of a whole file from its blocks, by the definition of the tree.
pub fn whole_blake3(blocks: &[u64], size: u64, block_bytes: u32) -> [u8; 32] {
    let leaf = |start: u64| digest_of(blocks[(start / u64::from(block_bytes)) as usize]).blake3;
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
    pub gone: bool,
}

#[derive(Debug)]
pub struct Source {
    pub items: Vec<SourceItem>,
    pub block_bytes: u32,
}

impl Source {
    pub fn new(plan: &Plan, rng: &mut Rng) -> Self {
        let mut source = Self { items: Vec::new(), block_bytes: plan.options.block_bytes };
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
        let scanned =
            ScannedItem { root: 0, path, kind, size: size_told, mode: 0o644, mtime, sparse: false, changed: None };
        self.items.push(SourceItem { scanned, size, version: 0, gone: false });
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
    pub fn is_version(&self, item: usize, blake3: [u8; 32]) -> bool {
        let kind = self.items[item].scanned.kind;
        let small = kind != ItemKind::File
            || self.items[item].scanned.size.is_some_and(|size| size <= tuning::BUNDLED_FILE_BYTES_MAX);
        (0..=self.items[item].version).any(|version| {
            if small {
                return digest_of(content_at(item, version)).blake3 == blake3;
            }
            let blocks: Vec<u64> = (0..self.blocks(item)).map(|index| block_at(item, version, index)).collect();
            whole_blake3(&blocks, self.items[item].size, self.block_bytes) == blake3
        })
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
