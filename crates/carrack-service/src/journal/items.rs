//! The items of a task, page by page: in bounded memory, whatever their number.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use super::error::JournalError;
use super::format::{FAILED, JOURNAL};
use super::reader::Reader;
use super::record::{Item, Record};
use super::withdrawn::Withdrawn;
use crate::model::ItemState;

/// Which items are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemFilter {
    /// In one of these states; none: in any.
    pub states: Vec<ItemState>,
    /// Of this pair of the task.
    pub pair: Option<u32>,
}

impl ItemFilter {
    fn wants(&self, state: ItemState) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }

    fn takes(&self, item: &Item) -> bool {
        self.wants(item.state) && self.pair.is_none_or(|pair| pair == item.pair)
    }
}

/// Where a page ended. Its text is opaque to whoever keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Failed items come first.
    failed: bool,
    offset: u64,
}

impl Cursor {
    /// From its text.
    pub fn parse(text: &str) -> Option<Self> {
        let (failed, offset) = match text.split_at_checked(1)? {
            ("f", offset) => (true, offset),
            ("j", offset) => (false, offset),
            _ => return None,
        };
        Some(Self { failed, offset: offset.parse().ok()? })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.failed { 'f' } else { 'j' }, self.offset)
    }
}

/// Some items of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemPage {
    /// Failed ones first; then the others in the order in which they ended.
    pub items: Vec<Item>,
    /// Where the next page begins; none: these were the last so far.
    pub next: Option<Cursor>,
}

/// Items that are done, skipped, deleted or planned, by whichever attempt, and those that failed in the attempt under
/// way or the last one.
///
/// # Errors
/// If a journal cannot be read.
pub fn items(
    directory: &Path,
    filter: &ItemFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<ItemPage, JournalError> {
    let mut page = ItemPage::default();
    let start = after.unwrap_or(Cursor { failed: true, offset: 0 });
    for failed in [true, false] {
        if failed && !start.failed {
            continue;
        }
        let wanted = match failed {
            true => filter.wants(ItemState::Failed),
            false => ItemState::ALL.iter().any(|state| *state != ItemState::Failed && filter.wants(*state)),
        };
        if !wanted {
            continue;
        }
        let offset = if failed == start.failed { start.offset } else { 0 };
        let mut reader = Reader::of(directory.join(if failed { FAILED } else { JOURNAL }), offset);
        if !failed {
            reader = reader.without(Withdrawn::load(directory)?);
        }
        loop {
            if page.items.len() >= limit {
                page.next = Some(Cursor { failed, offset: reader.offset() });
                return Ok(page);
            }
            match reader.next_record()? {
                None => break,
                Some(Record::Item(item)) if (item.state == ItemState::Failed) == failed && filter.takes(&item) => {
                    page.items.push(item);
                }
                Some(_) => {}
            }
        }
    }
    Ok(page)
}

/// Paths of a pair that a pass which came to its end could not copy, and that none has copied since. What was told of
/// them before counts no more: what stood at the destination may have been altered.
///
/// # Errors
/// If a journal cannot be read.
pub fn failed_last(directory: &Path, pair: u32) -> Result<BTreeSet<Vec<u8>>, JournalError> {
    let mut reader = Reader::open(directory).without(Withdrawn::load(directory)?);
    let (mut failed, mut under_way) = (BTreeSet::new(), BTreeSet::new());
    while let Some(record) = reader.next_record()? {
        match record {
            Record::Item(item) if item.pair == pair && item.state == ItemState::Failed => {
                under_way.insert(item.path);
            }
            Record::Item(item) if item.pair == pair && item.state == ItemState::Done => {
                failed.remove(&item.path);
                under_way.remove(&item.path);
            }
            // A source that could not be deleted was copied.
            Record::PairEnded(end) if end.pair == pair && end.of_sources => under_way.clear(),
            Record::PairEnded(end) if end.pair == pair => failed.append(&mut under_way),
            // What a pass that was broken off could not copy is tried again.
            Record::Began { .. } => under_way.clear(),
            _ => {}
        }
    }
    Ok(failed)
}

/// Hands out all items, as [`items`] does.
///
/// # Errors
/// If a journal cannot be read, and those of `each`.
pub fn each_item<E: From<JournalError>>(
    directory: &Path,
    filter: &ItemFilter,
    mut each: impl FnMut(Item) -> Result<(), E>,
) -> Result<(), E> {
    const PAGE: usize = 1000;
    let mut after = None;
    loop {
        let page = items(directory, filter, after, PAGE)?;
        page.items.into_iter().try_for_each(&mut each)?;
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}
