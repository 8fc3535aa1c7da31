//! The entries of a directory in memory: 40 bytes each, and their names, in blocks that never move.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use carrack_core::attributes::Time;
use carrack_core::report::ItemKind;
use carrack_engine::files::ListEntry;

use super::told;
use crate::model::{FileEntry, text_of};

/// What all listings of one worker take: a million entries with short names, and some more. The directory's owner
/// chooses how long names, targets of links and errors are.
pub const BYTES_MAX: usize = 100 << 20;
/// What an entry takes beside its row and its name: its places in the orders that are kept and made.
const ORDER_BYTES: usize = 24;
/// Bytes of names in a block.
const NAMES_BLOCK: usize = 1 << 20;
/// Entries in a block.
const ROWS_BLOCK: usize = 1 << 14;

/// The entries of one directory, in the order of the file system.
#[derive(Default)]
pub struct Rows {
    rows: Vec<Vec<Row>>,
    names: Vec<Vec<u8>>,
    /// What few entries have.
    extras: Vec<Extra>,
    count: usize,
    /// What it takes, and what all listings together do.
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The last block, or another where that has no room for so much more.
fn block<T>(blocks: &mut Vec<Vec<T>>, more: usize, most: usize) -> &mut Vec<T> {
    if blocks.last().is_none_or(|last| last.len() + more > most) {
        blocks.push(Vec::new());
    }
    let last = blocks.len() - 1;
    &mut blocks[last]
}

/// Puts something at the end of a block, which grows up to its size and no further. How many more it has room for.
fn fill<T>(block: &mut Vec<T>, more: impl ExactSizeIterator<Item = T>, most: usize) -> usize {
    let before = block.capacity();
    if before - block.len() < more.len() {
        block.reserve_exact((2 * before).clamp(64, most).max(block.len() + more.len()) - block.len());
    }
    block.extend(more);
    block.capacity() - before
}

struct Row {
    size: u64,
    seconds: i64,
    nanos: u32,
    mode: u32,
    name_at: u32,
    /// In `extras`, one more than the place; 0: none.
    extra: u32,
    name_bytes: u16,
    kind: ItemKind,
}

struct Extra {
    link_target: Box<[u8]>,
    error: Option<Box<str>>,
}

impl Rows {
    /// Those of a listing whose bytes count with those of others.
    pub fn counted(all: &Arc<AtomicUsize>) -> Self {
        let mut rows = Self::default();
        rows.all = Arc::clone(all);
        rows
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// None, in their place.
    pub fn emptied(&self) -> Self {
        Self::counted(&self.all)
    }

    /// What they take in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn take(&mut self, more: usize) {
        self.bytes += more;
        self.all.fetch_add(more, Ordering::Relaxed);
    }

    /// Adds an entry. False: there is no room for it.
    pub fn push(&mut self, entry: &ListEntry) -> bool {
        let Ok(name_bytes) = u16::try_from(entry.path.len()) else { return false };
        if self.all.load(Ordering::Relaxed) >= BYTES_MAX {
            return false;
        }
        let mut extra = 0;
        let mut more = ORDER_BYTES;
        if entry.error.is_some() || !entry.link_target.is_empty() {
            let error = entry.error.as_ref().map(|failure| failure.message_of(&entry.path).into_boxed_str());
            more += size_of::<Extra>() + entry.link_target.len() + error.as_ref().map_or(0, |error| error.len());
            self.extras.push(Extra { link_target: entry.link_target.clone().into_boxed_slice(), error });
            // No more than there are entries.
            extra = u32::try_from(self.extras.len()).unwrap_or(0);
        }
        let names = block(&mut self.names, entry.path.len(), NAMES_BLOCK);
        let name_at = names.len();
        more += fill(names, entry.path.iter().copied(), NAMES_BLOCK);
        // Blocks are as few as fit into the bound, and a place in one has 20 bits.
        let name_at = u32::try_from((self.names.len() - 1) * NAMES_BLOCK + name_at).unwrap_or(u32::MAX);
        let row = Row {
            size: entry.size,
            seconds: entry.mtime.seconds,
            nanos: entry.mtime.nanos,
            mode: entry.mode,
            name_at,
            extra,
            name_bytes,
            kind: entry.kind,
        };
        more += fill(block(&mut self.rows, 1, ROWS_BLOCK), std::iter::once(row), ROWS_BLOCK) * size_of::<Row>();
        self.count += 1;
        self.take(more);
        true
    }

    fn row(&self, place: u32) -> &Row {
        &self.rows[place as usize / ROWS_BLOCK][place as usize % ROWS_BLOCK]
    }

    /// The name of an entry.
    pub fn name(&self, place: u32) -> &[u8] {
        let row = self.row(place);
        let (block, from) = (row.name_at as usize / NAMES_BLOCK, row.name_at as usize % NAMES_BLOCK);
        &self.names[block][from..from + usize::from(row.name_bytes)]
    }

    /// What an entry is.
    pub fn kind(&self, place: u32) -> ItemKind {
        self.row(place).kind
    }

    /// The size of an entry.
    pub fn size(&self, place: u32) -> u64 {
        self.row(place).size
    }

    /// When an entry was modified, in an order of numbers.
    pub fn modified(&self, place: u32) -> u64 {
        let row = self.row(place);
        let nanos = row.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(row.nanos));
        nanos.cast_unsigned() ^ (1 << 63)
    }

    /// An entry as a document.
    pub fn entry(&self, place: u32) -> FileEntry {
        let row = self.row(place);
        let extra = (row.extra as usize).checked_sub(1).and_then(|at| self.extras.get(at));
        FileEntry {
            name: text_of(self.name(place)),
            kind: told::kind(row.kind),
            size: row.size,
            modified: told::moment(Time { seconds: row.seconds, nanos: row.nanos }),
            mode: row.mode,
            link_target: extra.filter(|_| row.kind == ItemKind::Symlink).map(|extra| text_of(&extra.link_target)),
            error: extra.and_then(|extra| extra.error.as_deref()).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::failure::{ErrorCode, Failure, Side};

    use super::*;

    fn short(path: Vec<u8>) -> ListEntry {
        ListEntry {
            path,
            kind: ItemKind::Symlink,
            size: 0,
            mode: 0,
            mtime: Time::default(),
            link_target: Vec::new(),
            error: None,
            allocated: None,
            twin: None,
            names: 0,
            attributes: Default::default(),
        }
    }

    #[test]
    fn rows_are_bounded_by_what_they_take_and_not_by_their_number() {
        let long = vec![b'x'; 4000];
        let failure = Failure::new(ErrorCode::InputOutput, Side::Source, "y".repeat(1000));
        let mut rows = Rows::default();
        let entry = |number: u32| ListEntry {
            link_target: long.clone(),
            error: Some(failure.clone()),
            ..short([&number.to_be_bytes()[..], &[b'n'; 250]].concat())
        };
        let took = (0..1_000_000).take_while(|number| rows.push(&entry(*number))).count();
        assert!(took < BYTES_MAX / 5000 && took > BYTES_MAX / 6000, "{took}");
        assert!(rows.bytes() >= BYTES_MAX && rows.bytes() < BYTES_MAX + 2 * NAMES_BLOCK);
        // What one listing takes is not there for another, until it is dropped.
        let mut other = Rows::counted(&rows.all);
        assert!(!other.push(&entry(0)));
        drop(rows);
        assert!(other.push(&entry(0)));
        assert_eq!(other.all.load(Ordering::Relaxed), other.bytes());
    }

    #[test]
    fn rows_and_names_are_found_in_every_block() {
        let mut rows = Rows::default();
        let name = |number: u32| number.to_string().repeat(1 + number as usize % 40).into_bytes();
        for number in 0..50_000 {
            let entry = ListEntry { size: number.into(), ..short(name(number)) };
            assert!(rows.push(&entry));
        }
        assert!(rows.names.len() > 2 && rows.rows.len() > 2);
        for number in 0..50_000 {
            assert!(rows.name(number) == name(number) && rows.size(number) == u64::from(number), "{number}");
        }
        assert_eq!(rows.len(), 50_000);
    }
}
