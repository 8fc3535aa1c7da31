//! What outlives a session at the modelled destination: part files, names, the marker; and what a crash or a
//! power cut makes of them.
//!
//! A write is in the cache at once and durable only after a sync. A sync that fails is told once: the pages are clean
//! then, whether or not the cache still has them, and no later sync writes them. After a power cut each write that was
//! not synced is there, is not there, or is torn, each for itself; renames that were not synced may be undone; of the
//! marker there is what was synced, and maybe more from there on.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Rng;
use super::source::digest_of;
use crate::attributes::Time;
use crate::digest::{BlockDigest, FileDigests};
use crate::report::ItemKind;
use crate::transfer::Fingerprint;

/// Content of what was torn.
pub const TORN: u64 = !7;
/// Content of a hole, and of what was never written.
pub const ZEROS: u64 = !5;
/// Content of what somebody else wrote.
const FOREIGN: u64 = !77;

#[derive(Debug, Default)]
pub struct Store {
    boot: u64,
    last_file: u64,
    last_inode: u64,
    /// Counts every write.
    writes: u64,
    /// Under each name the standings since the last sync, the visible one last.
    pub names: BTreeMap<Vec<u8>, Vec<Option<Standing>>>,
    pub files: BTreeMap<u64, PartFile>,
    marker: Option<Marker>,
    /// File and block of every claim that holds.
    claims: BTreeMap<(u64, u64), BlockDigest>,
}

/// What stands under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub blake3: [u8; 32],
    pub size: u64,
    pub mtime: Option<Time>,
    /// Which file it is, in the order in which they got their names.
    pub inode: u64,
    /// The content was synced before the rename.
    pub synced: bool,
    /// A power cut has taken some of it.
    pub torn: bool,
}

#[derive(Debug, Default)]
pub struct PartFile {
    cells: BTreeMap<u64, Cell>,
    /// What tells that it is the file that it was, untouched: which write was the last.
    identity: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    cached: Option<u64>,
    durable: Option<u64>,
    dirty: bool,
}

#[derive(Debug, Default)]
struct Marker {
    records: Vec<Record>,
    synced: usize,
}

#[derive(Clone, Debug)]
pub enum Record {
    Session {
        boot: u64,
        durable: bool,
    },
    Part {
        file: u64,
        path: Vec<u8>,
        size: u64,
    },
    /// Without a digest: the claim is taken back.
    Blocks {
        file: u64,
        blocks: Vec<(u64, Option<BlockDigest>)>,
    },
    Published {
        path: Vec<u8>,
        kind: ItemKind,
        source: Fingerprint,
        inode: u64,
        digests: FileDigests,
    },
    Dropped {
        file: u64,
    },
    /// The file as a session in good order has left it.
    Left {
        file: u64,
        identity: u64,
    },
}

/// What the marker says at the start of a session.
#[derive(Debug, Default)]
pub struct Found {
    pub parts: BTreeMap<Vec<u8>, FoundPart>,
    pub published: BTreeMap<Vec<u8>, FoundName>,
}

#[derive(Clone, Debug)]
pub struct FoundPart {
    pub file: u64,
    pub size: u64,
    /// Claim, and the boot that it was made in.
    pub blocks: BTreeMap<u64, (BlockDigest, u64)>,
}

#[derive(Clone, Debug)]
pub struct FoundName {
    pub kind: ItemKind,
    pub source: Fingerprint,
    pub inode: u64,
    pub digests: FileDigests,
}

impl Store {
    pub fn create(&mut self) -> u64 {
        self.last_file += 1;
        self.files.insert(self.last_file, PartFile::default());
        self.last_file
    }

    /// A part file has become a name.
    pub fn consume(&mut self, file: u64) {
        self.files.remove(&file);
        self.claims.retain(|&(other, _), _| other != file);
    }

    pub fn remove(&mut self, file: u64) {
        self.files.remove(&file);
        if self.marker.is_some() {
            self.append(Record::Dropped { file }, true);
        }
    }

    fn cell(&mut self, file: u64, index: u64) -> &mut Cell {
        self.writes += 1;
        let file = self.files.get_mut(&file).expect("what is written is there");
        file.identity = self.writes;
        file.cells.entry(index).or_default()
    }

    /// A block is about to be written.
    pub fn begin(&mut self, file: u64, index: u64, withdraw: bool) {
        if withdraw {
            self.withdraw(file, index);
        }
        assert!(!self.claims.contains_key(&(file, index)), "a block that the marker claims is written over");
    }

    /// Takes a claim back.
    pub fn withdraw(&mut self, file: u64, index: u64) {
        if self.claims.contains_key(&(file, index)) {
            self.append(Record::Blocks { file, blocks: vec![(index, None)] }, true);
        }
    }

    pub fn write(&mut self, file: u64, index: u64, content: u64) {
        let cell = self.cell(file, index);
        (cell.cached, cell.dirty) = (Some(content), true);
    }

    /// As it can be read; what was never written is there too. `None` when there is no such file.
    pub fn read(&self, file: u64, index: u64) -> Option<u64> {
        let cell = self.files.get(&file)?.cells.get(&index);
        Some(cell.and_then(|cell| cell.cached).unwrap_or(ZEROS))
    }

    /// Whether a block has ever been written.
    pub fn is_written(&self, file: u64, index: u64) -> bool {
        self.files.get(&file).is_some_and(|file| file.cells.contains_key(&index))
    }

    /// The marker tells how a part file was left.
    pub fn left(&mut self, file: u64) {
        if let Some(identity) = self.files.get(&file).map(|file| file.identity) {
            self.append(Record::Left { file, identity }, false);
        }
    }

    /// Somebody else writes to part files, makes holes in them, replaces them, or puts older copies in
    /// their place. Says how many.
    pub fn alter_parts(&mut self, rng: &mut Rng) -> u64 {
        let mut altered = 0;
        for file in self.files.values_mut() {
            if rng.chance(500) {
                continue;
            }
            (self.writes, file.identity) = (self.writes + 1, self.writes + 1);
            let (how, share) = (rng.below(3), [200, 1000][rng.below(2) as usize]);
            for cell in file.cells.values_mut().filter(|_| rng.chance(share)) {
                let content = [Some(FOREIGN), None, cell.cached][how as usize];
                (cell.cached, cell.durable, cell.dirty) = (content, content, false);
                altered += 1;
            }
        }
        altered
    }

    /// Storage gives back something else from now on.
    pub fn rot(&mut self, file: u64, index: u64) {
        let cell = self.cell(file, index);
        (cell.cached, cell.durable) = (Some(TORN - 1), Some(TORN - 1));
    }

    pub fn sync(&mut self, file: u64) {
        let Some(file) = self.files.get_mut(&file) else { return };
        for cell in file.cells.values_mut().filter(|cell| cell.dirty) {
            (cell.durable, cell.dirty) = (cell.cached, false);
        }
    }

    /// A sync that fails: what was to be written is lost, and the cache may still show it or not.
    pub fn sync_in_vain(&mut self, file: u64, rng: &mut Rng) {
        let Some(file) = self.files.get_mut(&file) else { return };
        for cell in file.cells.values_mut().filter(|cell| cell.dirty) {
            cell.dirty = false;
            if rng.chance(500) {
                cell.cached = cell.durable;
            }
        }
    }

    /// Whether everything in the file has reached the disk.
    pub fn is_synced(&self, file: u64) -> bool {
        self.files.get(&file).is_some_and(|file| file.cells.values().all(|cell| cell.durable == cell.cached))
    }

    pub fn start_session(&mut self, durable: bool) {
        let boot = self.boot;
        self.marker.get_or_insert_default();
        self.append(Record::Session { boot, durable }, durable);
        self.sync_marker();
    }

    /// Writes a record, which is not synced yet. What it claims must be so: durable, where anything is.
    pub fn append(&mut self, record: Record, durable: bool) {
        let marker = self.marker.get_or_insert_default();
        marker.records.push(record.clone());
        match record {
            Record::Blocks { file, blocks } => {
                for (index, digest) in blocks {
                    match digest {
                        Some(digest) => self.claims.insert((file, index), digest),
                        None => self.claims.remove(&(file, index)),
                    };
                    self.check_claim(file, index, durable);
                }
            }
            Record::Dropped { file } => self.claims.retain(|&(other, _), _| other != file),
            Record::Session { .. } | Record::Part { .. } | Record::Published { .. } | Record::Left { .. } => {}
        }
    }

    fn check_claim(&self, file: u64, index: u64, durable: bool) {
        let Some(digest) = self.claims.get(&(file, index)) else { return };
        let cell = self.files.get(&file).and_then(|file| file.cells.get(&index)).copied().unwrap_or_default();
        let there = if durable { cell.durable } else { cell.cached };
        assert_eq!(
            digest_of(there.unwrap_or(ZEROS)),
            *digest,
            "the marker claims block {index} of part {file}, which is not there (durable: {durable})"
        );
    }

    pub fn has_claims(&self, file: u64) -> bool {
        self.claims.range((file, 0)..=(file, u64::MAX)).next().is_some()
    }

    pub fn sync_marker(&mut self) {
        if let Some(marker) = &mut self.marker {
            marker.synced = marker.records.len();
        }
    }

    pub fn remove_marker(&mut self) {
        self.marker = None;
        self.claims.clear();
    }

    pub fn standing(&self, path: &[u8]) -> Option<&Standing> {
        self.names.get(path)?.last()?.as_ref()
    }

    pub fn rename(&mut self, path: &[u8], mut standing: Standing) {
        self.last_inode += 1;
        standing.inode = self.last_inode;
        self.names.entry(path.to_vec()).or_insert_with(|| vec![None]).push(Some(standing));
    }

    /// Every name as it stands has reached the disk.
    pub fn sync_names(&mut self) {
        self.names.values_mut().for_each(|standings| _ = standings.drain(..standings.len() - 1));
    }

    pub fn names_synced(&self) -> bool {
        self.names.values().all(|standings| standings.len() == 1)
    }

    pub fn power_cut(&mut self, rng: &mut Rng) {
        self.boot += 1;
        for file in self.files.values_mut() {
            for cell in file.cells.values_mut().filter(|cell| cell.cached != cell.durable) {
                match rng.below(3) {
                    0 if cell.dirty => cell.durable = cell.cached,
                    1 => cell.durable = Some(TORN),
                    _ => {}
                }
            }
            file.cells.values_mut().for_each(|cell| (cell.cached, cell.dirty) = (cell.durable, false));
        }
        for standings in self.names.values_mut() {
            let left = rng.below(standings.len() as u64) as usize;
            standings.truncate(left + 1);
            standings.drain(..left);
            if let Some(standing) = standings[0].as_mut().filter(|standing| !standing.synced) {
                standing.torn = rng.chance(500);
                standing.synced = true;
            }
        }
        if let Some(marker) = &mut self.marker {
            let kept = marker.synced + rng.below((marker.records.len() - marker.synced) as u64 + 1) as usize;
            marker.records.truncate(kept);
            marker.synced = kept;
        }
        // What is claimed from here on is what a replay says.
        self.claims.clear();
    }

    /// What the marker says, as a receiver reads it when it starts. Claims of another boot, and of a part file
    /// that is not as a session has left it, are not believed: what is in the part file is digested anew.
    /// `believed` is a mutant that does.
    pub fn replay(&mut self, believed: bool) -> Found {
        let mut found = Found::default();
        let mut left = BTreeMap::new();
        let (mut boot, mut durable) = (0, false);
        let mut paths = BTreeMap::new();
        let records = self.marker.as_ref().map_or(&[][..], |marker| &marker.records);
        for record in records.iter().cloned() {
            match record {
                Record::Session { boot: b, durable: d } => (boot, durable) = (b, d),
                Record::Part { file, path, size } => {
                    paths.insert(file, path.clone());
                    found.parts.insert(path, FoundPart { file, size, blocks: BTreeMap::new() });
                }
                Record::Blocks { file, blocks } => {
                    left.remove(&file);
                    let part = paths.get(&file).and_then(|path| found.parts.get_mut(path));
                    let Some(part) = part.filter(|part| part.file == file) else { continue };
                    for (index, digest) in blocks {
                        match digest {
                            Some(digest) => part.blocks.insert(index, (digest, boot)),
                            None => part.blocks.remove(&index),
                        };
                    }
                }
                Record::Published { path, kind, source, inode, digests } if boot == self.boot || durable => {
                    found.published.insert(path, FoundName { kind, source, inode, digests });
                }
                Record::Published { .. } => {}
                Record::Dropped { file } => found.parts.retain(|_, part| part.file != file),
                Record::Left { file, identity } => _ = left.insert(file, identity),
            }
        }
        found.parts.retain(|_, part| self.files.contains_key(&part.file));
        for part in found.parts.values_mut() {
            let file = &self.files[&part.file];
            let untouched = believed || left.get(&part.file) == Some(&file.identity);
            for (index, (digest, made)) in &mut part.blocks {
                if *made != self.boot || !untouched {
                    let there = file.cells.get(index).and_then(|cell| cell.cached);
                    *digest = digest_of(there.unwrap_or(ZEROS));
                }
            }
        }
        self.claims.clear();
        for part in found.parts.values() {
            self.claims.extend(part.blocks.iter().map(|(&index, &(digest, _))| ((part.file, index), digest)));
        }
        let claimed: BTreeSet<u64> = found.parts.values().map(|part| part.file).collect();
        self.files.retain(|file, _| claimed.contains(file));
        self.check_all_claims();
        found
    }

    /// Everything that the marker claims is in the part files as they can be read.
    pub fn check_all_claims(&self) {
        self.claims.keys().for_each(|&(file, index)| self.check_claim(file, index, false));
    }
}
