//! Entries as somebody wants to see them: sorted by a field, without those that a filter leaves out.
//!
//! A million entries are sorted by keys of fixed size. What all names begin with is left out of the keys, so that they
//! tell apart names which differ late; equal keys are followed by a comparison of the names.

use carrack_core::report::ItemKind;

use super::natural::{Comparer, write_key};
use super::rows::Rows;
use crate::model::{SortField, text_of};

/// All entries in the order of one field, the least first.
pub struct Sorted {
    pub field: SortField,
    /// Of how many entries it was made.
    pub covered: usize,
    order: Vec<u32>,
}

/// What is compared first: the field, then the beginning of the name.
type SortKey = (u64, u128, u32);

impl Sorted {
    /// Sorts all entries.
    pub fn of(rows: &Rows, field: SortField) -> Self {
        let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let mut key = Vec::with_capacity(512);
        let skipped = common(rows, count, &mut key);
        let mut keys: Vec<SortKey> = (0..count)
            .map(|place| {
                key.clear();
                write_key(rows.name(place), &mut key);
                let mut bytes = [0; 16];
                let rest = key.get(skipped..).unwrap_or_default();
                let length = rest.len().min(bytes.len());
                bytes[..length].copy_from_slice(&rest[..length]);
                (primary(rows, place, field), u128::from_be_bytes(bytes), place)
            })
            .collect();
        let mut comparer = Comparer::default();
        keys.sort_unstable_by(|one, other| {
            let by_key = (one.0, one.1).cmp(&(other.0, other.1));
            by_key.then_with(|| comparer.compare(rows.name(one.2), rows.name(other.2)))
        });
        Self { field, covered: rows.len(), order: keys.into_iter().map(|(_, _, place)| place).collect() }
    }
}

/// How many bytes the keys of all names begin with alike.
fn common(rows: &Rows, count: u32, key: &mut Vec<u8>) -> usize {
    let mut first = Vec::new();
    for place in 0..count {
        key.clear();
        write_key(rows.name(place), key);
        if place == 0 {
            first.clone_from(key);
        }
        let alike = first.iter().zip(key.iter()).take_while(|(one, other)| one == other).count();
        first.truncate(alike);
        if first.is_empty() {
            break;
        }
    }
    first.len()
}

fn primary(rows: &Rows, place: u32, field: SortField) -> u64 {
    let kind = rows.kind(place);
    match field {
        SortField::Name => u64::from(kind != ItemKind::Directory),
        SortField::Size => rows.size(place),
        SortField::Modified => rows.modified(place),
        SortField::Kind => match kind {
            ItemKind::Directory => 0,
            ItemKind::File => 1,
            ItemKind::Symlink => 2,
            ItemKind::Special => 3,
        },
    }
}

/// Which names are wanted.
pub enum Filter {
    /// All.
    All,
    /// Those with this in them, in lower case.
    Contains(String),
    /// Those that this pattern fits as a whole, in lower case.
    Glob(Vec<char>),
}

impl Filter {
    /// Parses a filter: a text that names have in them, or with `*` and `?` a pattern of whole names.
    pub fn parse(text: &str) -> Self {
        let text = text.to_lowercase();
        if text.is_empty() {
            Self::All
        } else if text.contains(['*', '?']) {
            Self::Glob(text.chars().collect())
        } else {
            Self::Contains(text)
        }
    }

    /// Whether a name is wanted. `scratch` is overwritten.
    fn takes(&self, name: &[u8], scratch: &mut String) -> bool {
        if matches!(self, Self::All) {
            return true;
        }
        scratch.clear();
        match std::str::from_utf8(name) {
            Ok(text) if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'%') => {
                scratch.push_str(text);
                scratch.make_ascii_lowercase();
            }
            // As it is shown.
            _ => scratch.push_str(&text_of(name).to_lowercase()),
        }
        match self {
            Self::All => true,
            Self::Contains(part) => scratch.contains(part.as_str()),
            Self::Glob(pattern) => fits(pattern, scratch),
        }
    }
}

/// Whether a pattern fits a whole text. Only the last `*` is ever gone back to: it takes no longer than their product.
fn fits(pattern: &[char], text: &str) -> bool {
    let (mut at, mut rest) = (0, text.chars());
    // Behind the last star, and what it has not taken yet.
    let mut star: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        if pattern.get(at) == Some(&'*') {
            at += 1;
            star = Some((at, rest.clone()));
            continue;
        }
        match rest.next() {
            None if at == pattern.len() => return true,
            Some(character) if pattern.get(at).is_some_and(|one| *one == '?' || *one == character) => {
                at += 1;
                continue;
            }
            _ => {}
        }
        // The star takes one more.
        let Some((behind, taken)) = &mut star else { return false };
        if taken.next().is_none() {
            return false;
        }
        at = *behind;
        rest = taken.clone();
    }
}

/// The entries that a filter takes, in the order of a field.
pub struct View {
    pub field: SortField,
    pub filter: String,
    pub hidden: bool,
    /// Of how many entries it was made.
    pub covered: usize,
    order: Vec<u32>,
    /// How many of the first are directories that stay first in either direction.
    directories: usize,
    /// Bytes of the files among them.
    pub bytes: u64,
}

impl View {
    /// Those of sorted entries that are wanted; with `hidden` also those whose name begins with a point.
    pub fn of(rows: &Rows, sorted: &Sorted, filter: &str, hidden: bool) -> Self {
        let (parsed, mut scratch) = (Filter::parse(filter), String::new());
        let is_wanted = |place: &u32| {
            let name = rows.name(*place);
            (hidden || !name.starts_with(b".")) && parsed.takes(name, &mut scratch)
        };
        let order: Vec<u32> = sorted.order.iter().copied().filter(is_wanted).collect();
        let directories = match sorted.field {
            SortField::Name | SortField::Kind => {
                order.partition_point(|place| rows.kind(*place) == ItemKind::Directory)
            }
            SortField::Size | SortField::Modified => 0,
        };
        let files = order.iter().filter(|place| rows.kind(**place) == ItemKind::File);
        let bytes = files.fold(0u64, |sum, place| sum.saturating_add(rows.size(*place)));
        let (field, covered) = (sorted.field, sorted.covered);
        Self { field, filter: filter.to_owned(), hidden, covered, order, directories, bytes }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The entry at a place of the view; `descending`: in the other direction.
    pub fn place(&self, index: usize, descending: bool) -> Option<u32> {
        if index >= self.order.len() {
            return None;
        }
        let at = match descending {
            false => index,
            true if index < self.directories => self.directories - 1 - index,
            true => self.order.len() - 1 - (index - self.directories),
        };
        self.order.get(at).copied()
    }

    /// Where a name is: the name itself, else the first that begins with it, in whatever case.
    pub fn find(&self, rows: &Rows, name: &[u8], shown: &str, descending: bool) -> Option<usize> {
        let places = || (0..self.order.len()).filter_map(|index| Some((index, self.place(index, descending)?)));
        let exact = places().find(|(_, place)| rows.name(*place) == name);
        let begins = shown.to_lowercase();
        let found = exact.or_else(|| {
            let begins_so = |place: u32| text_of(rows.name(place)).to_lowercase().starts_with(&begins);
            places().find(|(_, place)| begins_so(*place))
        });
        found.map(|(index, _)| index)
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
