//! Reads a journal while a worker appends to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::body::{decode, is_item, is_kind};
use super::error::JournalError;
use super::format::{BODY_BYTES_MAX, HEAD_BYTES, JOURNAL, MAGIC, TAIL_BYTES};
use super::record::Record;
use super::withdrawn::Withdrawn;

/// Bytes that are read at once.
const READ_BYTES: usize = 128 << 10;
/// Behind bytes that are no record, so far is looked for one.
const SEARCH_BYTES: usize = 4 << 20;

/// Reads records in order, and goes on where it stood once more of them are there.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    /// `None` until there is one.
    file: Option<File>,
    /// Where the next record begins.
    offset: u64,
    /// What stands in the file from `start` on.
    buffer: Vec<u8>,
    start: u64,
    /// Up to this length of the file, no record stands behind the bytes at `offset`, which are none.
    searched: u64,
    /// Records of items are checked and passed over.
    without_items: bool,
    /// Where the last record begins that was handed out.
    record_began: u64,
    /// Records that do not count any more are passed over.
    withdrawn: Withdrawn,
}

/// What stands at a place of a file.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Standing {
    /// A record, or one of a kind that is not known here, and its length with all that belongs to it.
    Record(Option<Record>, usize),
    /// A part of one, or none.
    Nothing,
}

impl Reader {
    /// Reads the journal of a task from its beginning. The file need not be there yet.
    pub fn open(directory: &Path) -> Self {
        Self::open_at(directory, 0)
    }

    /// Reads on from where another reader stood.
    pub fn open_at(directory: &Path, offset: u64) -> Self {
        Self::of(directory.join(JOURNAL), offset)
    }

    pub(super) fn of(path: PathBuf, offset: u64) -> Self {
        Self {
            path,
            file: None,
            offset,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            without_items: false,
            record_began: offset,
            withdrawn: Withdrawn::default(),
        }
    }

    /// Passes over what does not count any more.
    #[must_use]
    pub fn without(self, withdrawn: Withdrawn) -> Self {
        Self { withdrawn, ..self }
    }

    /// Passes over items, which are most of the records.
    #[must_use]
    pub fn without_items(self) -> Self {
        Self { without_items: true, ..self }
    }

    /// Where the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the last record begins that was handed out.
    pub fn record_began(&self) -> u64 {
        self.record_began
    }

    /// The next record; `None` where no more is there yet.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] where whole records stand behind something that is none.
    pub fn next_record(&mut self) -> Result<Option<Record>, JournalError> {
        loop {
            let Some(file) = self.file.take().map_or_else(|| self.open_file(), |file| Ok(Some(file)))? else {
                return Ok(None);
            };
            let standing = self.take_next(&file);
            self.file = Some(file);
            match standing? {
                Standing::Record(record, length) => {
                    self.record_began = self.offset;
                    self.offset += length as u64;
                    if let Some(record) = record.filter(|record| !self.withdrawn.hides(self.record_began, record)) {
                        return Ok(Some(record));
                    }
                }
                Standing::Nothing => {
                    // What is torn may be cut off and written anew: it is read again.
                    self.buffer.clear();
                    return Ok(None);
                }
            }
        }
    }

    fn open_file(&self) -> Result<Option<File>, JournalError> {
        match File::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(JournalError::call("open", &self.path)(error)),
        }
    }

    fn take_next(&mut self, file: &File) -> Result<Standing, JournalError> {
        if self.offset < MAGIC.len() as u64 {
            let mut magic = [0; MAGIC.len()];
            let length = read_at_most(file, &mut magic, 0).map_err(JournalError::call("read", &self.path))?;
            if length < magic.len() {
                return Ok(Standing::Nothing);
            }
            if magic != *MAGIC {
                return Err(JournalError::Foreign { path: self.path.clone() });
            }
            self.offset = MAGIC.len() as u64;
        }
        loop {
            let head = self.have(file, HEAD_BYTES)?;
            let length = head.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
            if let Some(length) = length.filter(|length| head.len() == HEAD_BYTES && *length <= BODY_BYTES_MAX) {
                let without_items = self.without_items;
                let standing = standing(self.have(file, HEAD_BYTES + length + TAIL_BYTES)?, without_items);
                if matches!(standing, Standing::Record(..)) {
                    return Ok(standing);
                }
            }
            if !self.has_come_since(file)? {
                return Ok(Standing::Nothing);
            }
            self.buffer.clear();
        }
    }

    /// The next so many bytes; fewer at the file's end.
    fn have(&mut self, file: &File, count: usize) -> Result<&[u8], JournalError> {
        let end = self.start + self.buffer.len() as u64;
        if self.buffer.is_empty() || self.offset < self.start || self.offset + count as u64 > end {
            let kept = usize::try_from(self.offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
            if self.offset < self.start || kept >= self.buffer.len() {
                self.buffer.clear();
            } else {
                self.buffer.drain(..kept);
            }
            self.start = self.offset;
            let had = self.buffer.len();
            self.buffer.resize(had + READ_BYTES.max(count), 0);
            let from = self.start + had as u64;
            let read =
                read_at_most(file, &mut self.buffer[had..], from).map_err(JournalError::call("read", &self.path))?;
            self.buffer.truncate(had + read);
        }
        let from = (self.offset - self.start) as usize;
        Ok(&self.buffer[from..self.buffer.len().min(from + count)])
    }

    /// Whether a whole record stands at `offset` by now: the worker may have written it since it was looked for.
    /// Otherwise the bytes there are the torn end of the file.
    ///
    /// # Errors
    /// If a whole record stands behind bytes that are none.
    fn has_come_since(&mut self, file: &File) -> Result<bool, JournalError> {
        let length = file.metadata().map_err(JournalError::call("stat", &self.path))?.len();
        if length <= self.searched.max(self.offset) {
            return Ok(false);
        }
        let portion = usize::try_from(length - self.offset).unwrap_or(SEARCH_BYTES).min(SEARCH_BYTES);
        let mut bytes = vec![0; portion];
        let read = read_at_most(file, &mut bytes, self.offset).map_err(JournalError::call("read", &self.path))?;
        bytes.truncate(read);
        let is_record = |start: usize| matches!(standing(&bytes[start..], false), Standing::Record(..));
        if is_record(0) {
            return Ok(true);
        }
        if (1..read).any(is_record) {
            return Err(JournalError::Damaged { path: self.path.clone(), offset: self.offset });
        }
        self.searched = length;
        Ok(false)
    }
}

/// What stands at the beginning of these bytes.
fn standing(bytes: &[u8], without_items: bool) -> Standing {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Standing::Nothing };
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if length > BODY_BYTES_MAX || !is_kind(head[4]) {
        return Standing::Nothing;
    }
    let Some(sum) = rest.get(length..).and_then(|rest| rest.first_chunk::<TAIL_BYTES>()) else {
        return Standing::Nothing;
    };
    if crc32c::crc32c(&bytes[..HEAD_BYTES + length]) != u32::from_le_bytes(*sum) {
        return Standing::Nothing;
    }
    if without_items && is_item(head[4]) {
        return Standing::Record(None, HEAD_BYTES + length + TAIL_BYTES);
    }
    match decode(head[4], &rest[..length]) {
        Ok(record) => Standing::Record(record, HEAD_BYTES + length + TAIL_BYTES),
        Err(()) => Standing::Nothing,
    }
}

/// Reads until the buffer is full or the file has ended.
pub(super) fn read_at_most(file: &File, buffer: &mut [u8], from: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], from + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
