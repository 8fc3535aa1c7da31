//! Items that were told as done and do not count any more: of a place that the task's endpoint does not name any more,
//! or not found again at the destination. A journal only grows, so a small file beside it says which of its records
//! are passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::JournalError;
use super::record::Record;

/// The file, below a task's directory. It is absent where all that was told counts.
const WITHDRAWN: &str = "withdrawn";
/// The file while it is written.
const WITHDRAWN_NEXT: &str = "withdrawn.next";

/// Which records of a journal do not count any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// All that was told of a pair before this place in the journal.
    pairs: BTreeMap<u32, u64>,
    /// Single items, by where their records begin.
    items: BTreeSet<u64>,
}

impl Withdrawn {
    /// What is withdrawn of a task's journal.
    ///
    /// # Errors
    /// If the file cannot be read, or says something else.
    pub fn load(directory: &Path) -> Result<Self, JournalError> {
        let path = directory.join(WITHDRAWN);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).ok_or(JournalError::Foreign { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(JournalError::call("read", &path)(error)),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut withdrawn = Self::default();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["pair", pair, before] => drop(withdrawn.pairs.insert(pair.parse().ok()?, before.parse().ok()?)),
                ["item", offset] => drop(withdrawn.items.insert(offset.parse().ok()?)),
                _ => return None,
            }
        }
        Some(withdrawn)
    }

    /// Keeps it on stable storage.
    ///
    /// # Errors
    /// Those of the file.
    pub fn save(&self, directory: &Path) -> Result<(), JournalError> {
        let mut text = String::new();
        for (pair, before) in &self.pairs {
            let _ = writeln!(text, "pair {pair} {before}");
        }
        for offset in &self.items {
            let _ = writeln!(text, "item {offset}");
        }
        let (path, next) = (directory.join(WITHDRAWN), directory.join(WITHDRAWN_NEXT));
        let write = || {
            let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&next, &path)
        };
        write().map_err(JournalError::call("write", &path))
    }

    /// Withdraws all that was told of a pair before this place in the journal.
    pub fn pair(&mut self, pair: u32, before: u64) {
        self.pairs.insert(pair, before);
    }

    /// Withdraws the item whose record begins here.
    pub fn item(&mut self, offset: u64) {
        self.items.insert(offset);
    }

    /// Forgets what is about records behind the journal's end: others will stand there. Whether that was any.
    pub fn cut(&mut self, end: u64) -> bool {
        let before = self.clone();
        self.items.retain(|offset| *offset < end);
        self.pairs.values_mut().for_each(|until| *until = end.min(*until));
        *self != before
    }

    /// Whether a record that begins here is passed over. Where a pass began stays known, so that its place does.
    pub fn hides(&self, offset: u64, record: &Record) -> bool {
        let is_old = |pair: u32| self.pairs.get(&pair).is_some_and(|before| offset < *before);
        match record {
            Record::Item(item) => is_old(item.pair) || self.items.contains(&offset),
            Record::PairEnded(end) => is_old(end.pair),
            _ => false,
        }
    }
}
