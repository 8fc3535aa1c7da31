//! A receipt is made: items as they come, put in order, joined with what the destination has, written and signed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};

use carrack_core::failure::Failure;
use carrack_core::path::{above, split_name, within};
use carrack_core::plan::check::{CheckedItem, CheckedState, listing_order};
use carrack_core::report::{ItemKind, ItemReport};
use data_encoding::HEXLOWER;

use crate::error::ReceiptError;
use crate::form::{LINE_BYTES, STATEMENT_BYTES, VERSION};
use crate::item::{ItemOutcome, ReceiptItem};
use crate::key::ReceiptKey;
use crate::signature::{Signature, Signed};
use crate::sorted::{Sorted, Sorting};
use crate::statement::Statement;
use crate::tops::Tops;

/// And the most bytes of a reason.
const WHY_BYTES: usize = 4 << 10;

/// Gives the next item of a listing, in [`listing_order`].
pub type Pull<'a> = &'a mut dyn FnMut() -> Result<Option<CheckedItem>, Failure>;

/// The items of a receipt that is to be made.
pub struct Draft {
    sorting: Sorting,
    tops: Tops,
    /// The directory of the last item, which has been added with those above it.
    holding: Vec<u8>,
    /// The first error; nothing is taken after it.
    error: Option<io::Error>,
}

impl Draft {
    /// `spool` is an empty file that nobody else has: items wait there.
    pub fn new(spool: File) -> Self {
        Self { sorting: Sorting::new(spool), tops: Tops::default(), holding: Vec::new(), error: None }
    }

    /// Forgets all items: they are told again.
    pub fn start_over(&mut self) {
        self.sorting.clear();
        (self.tops, self.holding) = (Tops::default(), Vec::new());
    }

    /// What a copy has told of an item. An item that is told again is meant as it is told last.
    pub fn item(&mut self, item: &ItemReport) {
        if let Some(item) = ReceiptItem::of(item) {
            self.add(item);
        }
    }

    /// Adds an item, in the place of what was said of it before.
    pub fn add(&mut self, mut item: ReceiptItem) {
        if self.error.is_some() {
            return;
        }
        if let Some(why) = item.why.as_mut().filter(|why| why.len() > WHY_BYTES) {
            let end = (0..=WHY_BYTES).rev().find(|&end| why.is_char_boundary(end)).unwrap_or_default();
            why.truncate(end);
        }
        self.tops.add(&item.path);
        let line = item.line();
        let held = if item.outcome.is_claimed() { self.add_directories(&item.path) } else { Ok(()) };
        self.error = held.and_then(|()| self.sorting.push(item.path, line.into_bytes())).err();
    }

    /// The directories that an item lies in: they are claimed with it.
    fn add_directories(&mut self, path: &[u8]) -> io::Result<()> {
        let (directory, _) = split_name(path);
        if directory == self.holding {
            return Ok(());
        }
        // Those above the one before have been added with it.
        let is_added = |held: &[u8]| within(&self.holding, held).is_some();
        let new: Vec<&[u8]> = above(path).filter(|held| !held.is_empty() && !is_added(held)).collect();
        for held in new {
            self.sorting.push_weakly(held.to_vec(), ReceiptItem::holding(held).line().into_bytes())?;
        }
        self.holding = directory.to_vec();
        Ok(())
    }

    /// The first names of all paths, where they are few: what is to be listed to find the items.
    pub fn tops(&self) -> Option<Vec<Vec<u8>>> {
        self.tops.few()
    }

    /// Writes the receipt and signs it. `found` lists what the destination has now; without it the items have no
    /// attributes, and `statement` should say why.
    ///
    /// # Errors
    /// When items could not be kept, the receipt cannot be written, or the destination cannot be listed.
    pub fn write(
        self,
        found: Option<Pull<'_>>,
        mut statement: Statement,
        key: &ReceiptKey,
        out: &mut dyn Write,
    ) -> Result<Statement, ReceiptError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        let mut joined = Joined { items: self.sorting.sorted()?, found, next: None, unlisted: BTreeSet::new() };
        let mut out = SignedOut { out, signed: Signed::new(), items: blake3::Hasher::new(), is_of_items: false };
        out.line(&format!("{{\"carrack_receipt\":{VERSION}}}"), LINE_BYTES)?;
        out.is_of_items = true;
        while let Some(item) = joined.next()? {
            *statement.outcomes.entry(item.outcome.name().to_owned()).or_default() += 1;
            statement.bytes += if item.outcome.is_claimed() { item.size } else { 0 };
            statement.items += 1;
            out.line(&item.line(), LINE_BYTES)?;
        }
        out.is_of_items = false;
        statement.carrack_receipt = VERSION;
        statement.items_blake3 = HEXLOWER.encode(out.items.finalize().as_bytes());
        statement.complete();
        let line = serde_json::to_string(&statement).map_err(io::Error::other)?;
        out.line(&line, STATEMENT_BYTES)?;
        let signature = Signature::make(key, &out.signed.finish());
        out.out.write_all(signature.armored().as_bytes())?;
        Ok(statement)
    }
}

/// Items in their order, with what the destination has.
struct Joined<'a> {
    items: Sorted,
    found: Option<Pull<'a>>,
    /// The next of the destination's.
    next: Option<CheckedItem>,
    /// Its directories that could not be listed.
    unlisted: BTreeSet<Vec<u8>>,
}

impl Joined<'_> {
    fn next(&mut self) -> Result<Option<ReceiptItem>, ReceiptError> {
        while let Some((_, line)) = self.items.next()? {
            let text = std::str::from_utf8(&line).map_err(io::Error::other)?;
            let mut item = ReceiptItem::parse(text).map_err(io::Error::other)?;
            if self.found.is_some() {
                self.look(&mut item)?;
            }
            // Of a directory that nobody has looked at there is nothing to say.
            if item.outcome != ItemOutcome::Holds || item.found.is_some() {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    fn look(&mut self, item: &mut ReceiptItem) -> Result<(), ReceiptError> {
        loop {
            if self.next.is_none() {
                self.next = self.found.as_mut().map_or(Ok(None), |pull| pull())?;
            }
            let is_before = |next: &CheckedItem| listing_order(&next.path, &item.path).is_lt();
            match self.next.take_if(|next| is_before(next)) {
                Some(CheckedItem { path, told: CheckedState::Unlisted(_) }) => {
                    self.unlisted.insert(path);
                }
                Some(_) => {}
                None => break,
            }
        }
        let is_same = |next: &CheckedItem| next.path == item.path;
        match self.next.as_ref().filter(|next| is_same(next)).map(|next| &next.told) {
            Some(CheckedState::There(facts)) => item.with(facts),
            // It is there, and is not looked at further.
            Some(CheckedState::LeftOut | CheckedState::Failed(_) | CheckedState::Unlisted(_)) => {}
            None if item.outcome == ItemOutcome::Holds => {}
            None if item.outcome.is_claimed() && !self.is_hidden(&item.path) => {
                item.is_another("nothing stood there when the receipt was made");
            }
            None => {}
        }
        if item.kind == ItemKind::File && item.outcome == ItemOutcome::Changed {
            item.size = 0;
        }
        Ok(())
    }

    /// Whether the directory of a path could not be listed.
    fn is_hidden(&self, path: &[u8]) -> bool {
        self.unlisted.contains(&b""[..]) || above(path).any(|directory| self.unlisted.contains(directory))
    }
}

/// What is written, with what it comes to.
struct SignedOut<'a> {
    out: &'a mut dyn Write,
    signed: Signed,
    items: blake3::Hasher,
    is_of_items: bool,
}

impl SignedOut<'_> {
    fn line(&mut self, text: &str, bytes_max: usize) -> io::Result<()> {
        if text.len() >= bytes_max {
            return Err(io::Error::other("an item, or the list of sources, is longer than a line of a receipt may be"));
        }
        for part in [text.as_bytes(), b"\n"] {
            self.out.write_all(part)?;
            self.signed.update(part);
            if self.is_of_items {
                self.items.update(part);
            }
        }
        Ok(())
    }
}
