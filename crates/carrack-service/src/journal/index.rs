//! Where the items of a task stand in its journals, so that a window anywhere among a million of them is read at once.
//! An index is made once for what is asked for (states, a part of the path) and grows with the journals. It keeps one
//! mark for some hundred items, not the items.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::JournalError;
use super::format::{FAILED, JOURNAL};
use super::reader::{Reader, read_at_most};
use super::record::{Item, Record};
use super::withdrawn::Withdrawn;
use crate::model::ItemState;

/// A mark is kept for so many items that pass.
const ITEMS_PER_MARK: u64 = 256;
/// And at the next item behind so many records, so that no window has to read over more.
const RECORDS_PER_MARK: u64 = 2048;
/// Bytes by which a file is known again.
const SEAL_BYTES: usize = 24;
/// How often the clock is looked at while an index is made.
const RECORDS_PER_LOOK: u64 = 1024;

/// Which items are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemQuery {
    /// In one of these states; none: in any.
    pub states: Vec<ItemState>,
    /// Whose path contains this, in whatever case; with `*` or `?`, whose whole path is like it.
    pub text: Option<String>,
}

/// An [`ItemQuery`] as it is compared.
#[derive(Debug)]
struct Wanted {
    states: Vec<ItemState>,
    /// In lower case.
    text: Option<Vec<char>>,
}

impl Wanted {
    fn takes(&self, item: &Item) -> bool {
        let is_like = |text: &Vec<char>| path_is_like(&item.path, text);
        (self.states.is_empty() || self.states.contains(&item.state)) && self.text.as_ref().is_none_or(is_like)
    }
}

fn letters(text: &str) -> Vec<char> {
    text.to_lowercase().chars().collect()
}

/// Whether a path contains a text, in whatever case; with `*` (any characters) or `?` (one) in it, whether the whole
/// path is like it.
fn path_is_like(path: &[u8], text: &[char]) -> bool {
    let path = letters(&String::from_utf8_lossy(path));
    if text.iter().any(|letter| matches!(letter, '*' | '?')) {
        return is_like(&path, text);
    }
    text.is_empty() || path.windows(text.len()).any(|window| window == text)
}

/// In time of at most the product of both lengths, whatever the pattern is.
fn is_like(text: &[char], pattern: &[char]) -> bool {
    let (mut at, mut of) = (0, 0);
    // Where the last star stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[at] => {
                at += 1;
                of += 1;
            }
            _ => match &mut star {
                Some((place, taken)) => {
                    *taken += 1;
                    at = *taken;
                    of = *place + 1;
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|letter| *letter == '*')
}

/// Some of the items that pass, by their place among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemWindow {
    /// Failed ones first; then the others in the order in which they ended.
    pub items: Vec<Item>,
    /// How many there are in all, as far as the journals have been read.
    pub total: u64,
    /// Whether the journals have been read to their ends.
    pub is_complete: bool,
}

/// How long journals are read for one window.
struct ReadTimes {
    /// While items are missing that the window shows.
    until: Instant,
    /// Once only the number of all is missing: whoever asked sees the items, and asks again for the number.
    enough: Instant,
}

/// Where items stand.
#[derive(Debug)]
pub struct ItemIndex {
    query: Wanted,
    /// Failed ones, and the others.
    parts: [Part; 2],
}

/// Of one journal.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    failed: bool,
    /// The file, and the last bytes that were read of it: each attempt begins the one of failed items anew.
    file: Option<(u64, u64)>,
    seal: Vec<u8>,
    /// What does not count of it.
    withdrawn: Withdrawn,
    /// Read so far.
    offset: u64,
    /// Items that pass.
    count: u64,
    /// In order: the number of an item, and where its record begins.
    marks: Vec<(u64, u64)>,
    records_since_mark: u64,
}

impl Part {
    fn new(path: PathBuf, failed: bool) -> Self {
        Self {
            path,
            failed,
            file: None,
            seal: Vec::new(),
            withdrawn: Withdrawn::default(),
            offset: 0,
            count: 0,
            marks: Vec::new(),
            records_since_mark: 0,
        }
    }

    fn takes(&self, query: &Wanted, record: &Record) -> bool {
        matches!(record, Record::Item(item) if (item.state == ItemState::Failed) == self.failed && query.takes(item))
    }

    /// Begins anew where the file is another one than that which was read, or less of it counts.
    fn look(&mut self) -> Result<(), JournalError> {
        let opened = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(JournalError::call("open", &self.path)(error)),
        };
        let facts = opened.as_ref().map(File::metadata).transpose().map_err(JournalError::call("stat", &self.path))?;
        let file = facts.map(|facts| (facts.dev(), facts.ino()));
        let seal = self.sealed(opened.as_ref(), self.seal.len())?;
        let withdrawn = match self.path.parent() {
            Some(directory) if !self.failed => Withdrawn::load(directory)?,
            _ => Withdrawn::default(),
        };
        if file != self.file || seal != self.seal || withdrawn != self.withdrawn {
            *self = Self { file, withdrawn, ..Self::new(std::mem::take(&mut self.path), self.failed) };
        }
        Ok(())
    }

    /// The last bytes that were read, as they are now: of a record's end, its checksum.
    fn sealed(&self, file: Option<&File>, length: usize) -> Result<Vec<u8>, JournalError> {
        let mut bytes = vec![0; length];
        let Some(file) = file else { return Ok(Vec::new()) };
        let from = self.offset.saturating_sub(length as u64);
        let read = read_at_most(file, &mut bytes, from).map_err(JournalError::call("read", &self.path))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Reads what is new. Whether the end was reached before the time was up: that of a window, or the shorter one of a
    /// window that needs so many items and has them.
    fn grow(&mut self, query: &Wanted, needed: u64, times: &ReadTimes) -> Result<bool, JournalError> {
        self.look()?;
        let mut reader = Reader::of(self.path.clone(), self.offset).without(self.withdrawn.clone());
        let mut is_complete = true;
        for number in 1u64.. {
            let Some(record) = reader.next_record()? else { break };
            let begins = reader.record_began();
            self.offset = reader.offset();
            self.records_since_mark += 1;
            if self.takes(query, &record) {
                let is_far = self.records_since_mark > RECORDS_PER_MARK
                    || self.marks.last().is_none_or(|(item, _)| self.count - item >= ITEMS_PER_MARK);
                if is_far {
                    self.marks.push((self.count, begins));
                    self.records_since_mark = 0;
                }
                self.count += 1;
            }
            let until = if self.count >= needed { times.enough } else { times.until };
            if number.is_multiple_of(RECORDS_PER_LOOK) && Instant::now() >= until {
                is_complete = false;
                break;
            }
        }
        // What a writer appends is read through another descriptor: the file may be a new one by now, and is found out
        // by the next look.
        let length = SEAL_BYTES.min(usize::try_from(self.offset).unwrap_or(SEAL_BYTES));
        self.seal = self.sealed(File::open(&self.path).ok().as_ref(), length)?;
        Ok(is_complete)
    }

    /// Adds items to a window, from the one with this number on.
    fn read(&self, query: &Wanted, from: u64, limit: usize, items: &mut Vec<Item>) -> Result<(), JournalError> {
        let Some((number, begins)) = self.marks[..self.marks.partition_point(|(item, _)| *item <= from)].last() else {
            return Ok(());
        };
        let mut reader = Reader::of(self.path.clone(), *begins).without(self.withdrawn.clone());
        let mut number = *number;
        while number < self.count && items.len() < limit {
            let Some(record) = reader.next_record()? else { break };
            if !self.takes(query, &record) {
                continue;
            }
            if let (true, Record::Item(item)) = (number >= from, record) {
                items.push(item);
            }
            number += 1;
        }
        Ok(())
    }
}

impl ItemIndex {
    /// One of the journals in a task's directory. Nothing is read yet.
    pub fn new(directory: &Path, query: ItemQuery) -> Self {
        let parts = [Part::new(directory.join(FAILED), true), Part::new(directory.join(JOURNAL), false)];
        let query = Wanted { states: query.states, text: query.text.as_deref().map(letters) };
        Self { query, parts }
    }

    /// Reads what the journals have got since, for so long as `patience` says at most, and no longer than `enough` once
    /// the items are found; then `limit` items from the one at `offset` on.
    ///
    /// # Errors
    /// If a journal cannot be read.
    pub fn window(
        &mut self,
        offset: u64,
        limit: usize,
        [patience, enough]: [Duration; 2],
    ) -> Result<ItemWindow, JournalError> {
        let now = Instant::now();
        let times = ReadTimes { until: now + patience, enough: now + enough };
        let mut window = ItemWindow { is_complete: true, ..ItemWindow::default() };
        let mut needed = offset.saturating_add(limit as u64);
        for part in &mut self.parts {
            window.is_complete &= part.grow(&self.query, needed, &times)?;
            needed = needed.saturating_sub(part.count);
        }
        for part in &self.parts {
            let from = offset.saturating_sub(window.total);
            if from < part.count && window.items.len() < limit {
                part.read(&self.query, from, limit, &mut window.items)?;
            }
            window.total += part.count;
        }
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_paths_are_found_by_a_part_or_a_pattern() {
        for (path, text, found) in [
            ("run/Large.dat", "large", true),
            ("run/Large.dat", "*.DAT", true),
            ("run/Large.dat", "*.txt", false),
            ("run/Large.dat", "run/?arge.*", true),
            ("run/Large.dat", "large*", false),
            ("run/Large.dat", "", true),
            ("é/É", "é/é", true),
            ("a", "ab", false),
            ("abcabd", "*abd", true),
            ("", "*", true),
            ("", "?", false),
        ] {
            assert_eq!(path_is_like(path.as_bytes(), &letters(text)), found, "{path} {text}");
        }
        // A pattern made to take long does not.
        assert!(!path_is_like(&[b'a'; 4000], &letters(&format!("{}b", "*a".repeat(500)))));
    }
}
