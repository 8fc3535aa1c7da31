//! The entries of a directory in memory: 40 bytes each, and their names in one buffer.

use carrack_core::attributes::Time;
use carrack_core::report::ItemKind;
use carrack_engine::files::ListEntry;

use super::told;
use crate::model::{FileEntry, text_of};

/// What all listings of one worker take: some two million entries with short names. The directory's owner chooses how
/// long names, targets of links and errors are.
pub const BYTES_MAX: usize = 176 << 20;
/// What an entry takes beside its name: its row, and its places in the orders that are kept and made.
const ENTRY_BYTES: usize = 64;

/// The entries of one directory, in the order of the file system.
#[derive(Default)]
pub struct Rows {
    rows: Vec<Row>,
    names: Vec<u8>,
    /// What few entries have.
    extras: Vec<Extra>,
    /// Of the extras.
    extra_bytes: usize,
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
    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// What they take in memory.
    pub fn bytes(&self) -> usize {
        self.rows.len() * ENTRY_BYTES + self.names.len() + self.extra_bytes
    }

    /// Adds an entry. False: there is no room for it.
    pub fn push(&mut self, entry: &ListEntry) -> bool {
        let place = (u32::try_from(self.names.len()), u16::try_from(entry.path.len()));
        let (Ok(name_at), Ok(name_bytes)) = place else { return false };
        if self.bytes() >= BYTES_MAX {
            return false;
        }
        let mut extra = 0;
        if entry.error.is_some() || !entry.link_target.is_empty() {
            let error = entry.error.as_ref().map(|failure| failure.message_of(&entry.path).into_boxed_str());
            self.extra_bytes +=
                size_of::<Extra>() + entry.link_target.len() + error.as_ref().map_or(0, |error| error.len());
            self.extras.push(Extra { link_target: entry.link_target.clone().into_boxed_slice(), error });
            // No more than there are entries.
            extra = u32::try_from(self.extras.len()).unwrap_or(0);
        }
        self.names.extend_from_slice(&entry.path);
        self.rows.push(Row {
            size: entry.size,
            seconds: entry.mtime.seconds,
            nanos: entry.mtime.nanos,
            mode: entry.mode,
            name_at,
            extra,
            name_bytes,
            kind: entry.kind,
        });
        true
    }

    /// Gives back the room that was taken for more entries.
    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.names.shrink_to_fit();
    }

    /// The name of an entry.
    pub fn name(&self, place: u32) -> &[u8] {
        let row = &self.rows[place as usize];
        let from = row.name_at as usize;
        &self.names[from..from + usize::from(row.name_bytes)]
    }

    /// What an entry is.
    pub fn kind(&self, place: u32) -> ItemKind {
        self.rows[place as usize].kind
    }

    /// The size of an entry.
    pub fn size(&self, place: u32) -> u64 {
        self.rows[place as usize].size
    }

    /// When an entry was modified, in an order of numbers.
    pub fn modified(&self, place: u32) -> u64 {
        let row = &self.rows[place as usize];
        let nanos = row.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(row.nanos));
        nanos.cast_unsigned() ^ (1 << 63)
    }

    /// An entry as a document.
    pub fn entry(&self, place: u32) -> FileEntry {
        let row = &self.rows[place as usize];
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

    #[test]
    fn rows_are_bounded_by_what_they_take_and_not_by_their_number() {
        let long = vec![b'x'; 4000];
        let failure = Failure::new(ErrorCode::InputOutput, Side::Source, "y".repeat(1000));
        let mut rows = Rows::default();
        let entry = |number: u32| ListEntry {
            path: [&number.to_be_bytes()[..], &[b'n'; 250]].concat(),
            kind: ItemKind::Symlink,
            size: 0,
            mode: 0,
            mtime: Time::default(),
            link_target: long.clone(),
            error: Some(failure.clone()),
            allocated: None,
            twin: None,
        };
        let took = (0..1_000_000).take_while(|number| rows.push(&entry(*number))).count();
        assert!(took < BYTES_MAX / 5000 && took > BYTES_MAX / 6000, "{took}");
        assert!(rows.bytes() >= BYTES_MAX && rows.bytes() < BYTES_MAX + 10_000);
    }
}
