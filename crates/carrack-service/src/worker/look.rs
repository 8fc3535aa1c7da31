//! Compares what a journal calls done with what is at the destination now, before an attempt counts it.
//!
//! An item is there if the destination has what the source has: kind, size and modification time, or where a link
//! leads. A file that differs in its time alone is read, and its digest is compared with that of the journal. Where the
//! source is not there any more, kind and size decide, and the item is only *remembered*. Both sides are listed, so
//! that a million files cost no million round trips; 48 bytes are kept for each item.

use std::collections::BTreeSet;
use std::path::Path;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::bare;
use carrack_core::report::ItemKind;
use carrack_core::request::Digests;
use carrack_engine::files::{Files, ListEntry};

use super::attempt::Attempt;
use super::ends::OpenEnd;
use super::places::{below, is_contents, open, source_path};
use crate::journal::{Item, JournalError, Reader, Record, Withdrawn};
use crate::model::{EventKind, ItemState};

/// The file, below a task's directory, that has digests compared, too.
const RECHECK: &str = "recheck";
/// A directory is listed, and not each of its entries looked at, from so many of them on.
const LISTED_FROM: usize = 16;

/// What was found.
#[derive(Debug, Default)]
pub struct Looked {
    /// Items that are as the source has them, or have the digest that the journal tells.
    pub there: u64,
    /// Items that count though they could not be compared.
    pub remembered: u64,
    /// Why they could not.
    pub why: Option<String>,
    /// Items that are gone or have changed, with where their records begin.
    pub lost: Vec<(u64, Item)>,
    /// Where records begin that a later one of the same path has replaced.
    pub replaced: Vec<u64>,
}

/// Has the next attempts of a task compare digests, until one has compared all.
///
/// # Errors
/// Those of the file.
pub fn ask_for_digests(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    std::fs::write(directory.join(RECHECK), "")
}

/// Whether digests are to be compared.
pub fn digests_wanted(directory: &Path) -> bool {
    directory.join(RECHECK).exists()
}

/// All has been compared.
pub fn digests_compared(directory: &Path) {
    // Where it stays, the next attempt compares once more.
    let _ = std::fs::remove_file(directory.join(RECHECK));
}

/// What is known of an item on both sides. Facts are digests of what is compared; 0 stands for nothing.
#[derive(Clone, Copy, Default)]
struct Known {
    path: u64,
    /// Where the last record of this path begins.
    record: u64,
    there: u64,
    there_size: u64,
    here: u64,
    /// As a file system has it that keeps whole seconds.
    here_coarse: u64,
}

/// The items of a pair that an attempt would count as done.
struct Items(Vec<Known>);

impl Items {
    fn of(&mut self, path: &[u8]) -> Option<&mut Known> {
        let path = short_digest(&[path]);
        let at = self.0.binary_search_by_key(&path, |known| known.path).ok()?;
        self.0.get_mut(at)
    }

    fn found_there(&mut self, path: &[u8], entry: &ListEntry) {
        if let Some(known) = self.of(path) {
            (known.there, known.there_size) = (facts(entry, false), entry.size);
        }
    }

    fn found_here(&mut self, path: &[u8], entry: &ListEntry) {
        if let Some(known) = self.of(path) {
            (known.here, known.here_coarse) = (facts(entry, false), facts(entry, true));
        }
    }
}

fn short_digest(parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().as_bytes().first_chunk().map_or(1, |bytes| u64::from_le_bytes(*bytes).max(1))
}

fn facts(entry: &ListEntry, coarse: bool) -> u64 {
    let nanos = if coarse { 0 } else { entry.mtime.nanos };
    match entry.kind {
        ItemKind::Directory => short_digest(&[b"directory"]),
        ItemKind::Symlink => short_digest(&[b"link", &entry.link_target]),
        kind => short_digest(&[
            &kind.number().to_le_bytes(),
            &entry.size.to_le_bytes(),
            &entry.mtime.seconds.to_le_bytes(),
            &nanos.to_le_bytes(),
        ]),
    }
}

/// Whether an item counts as done, or as deleted. What was skipped because nothing was there counts, too, and cannot be
/// compared.
fn counts(item: &Item, pair: u32) -> bool {
    let was_done = item.state != ItemState::Failed && !item.state.is_plan();
    item.pair == pair && !item.path.is_empty() && was_done && item.failure.is_none()
}

fn of_journal(error: &JournalError) -> Failure {
    Failure::new(ErrorCode::InputOutput, Side::Command, error.to_string())
}

fn is_missing(why: &Failure) -> bool {
    matches!(why.code, ErrorCode::NotFound | ErrorCode::NotADirectory)
}

/// A look at a pair.
struct Look<'a> {
    attempt: &'a Attempt<'a>,
    pair: u32,
    source: &'a OpenEnd,
    destination: &'a OpenEnd,
    /// The destination is a file: the one that was copied.
    to_file: bool,
    /// What the destination could not list, it is asked about one by one.
    partly_listed: bool,
    items: Items,
}

/// Compares what earlier attempts have done of a pair with what is there. What is not there is to be done again.
///
/// # Errors
/// What keeps the destination from being looked at.
pub fn compare(attempt: &mut Attempt<'_>, pair: u32, source: &OpenEnd, destination: &OpenEnd) -> Result<(), Failure> {
    let Looked { there, remembered, why, lost, replaced } = look(attempt, pair, source, destination)?;
    attempt.teller.remember(pair, remembered);
    let mut text = format!("{there} items of earlier attempts are at the destination");
    if remembered > 0 {
        let why = why.unwrap_or_else(|| "their sources are not there any more".to_owned());
        text += &format!(", {remembered} are only remembered ({why})");
    }
    if !lost.is_empty() {
        text += &format!(", {} are gone or have changed and are copied again", lost.len());
    }
    let detail = serde_json::json!({
        "pair": pair, "there": there, "remembered": remembered, "lost": lost.len(),
    });
    if there + remembered > 0 || !lost.is_empty() {
        attempt.note_reached();
        attempt.teller.event(EventKind::Note, text, detail);
    }
    if lost.is_empty() && replaced.is_empty() {
        return Ok(());
    }
    let Some(history) = attempt.history.pairs.get_mut(&pair) else { return Ok(()) };
    let told = attempt.teller.tell_lost(&attempt.order.directory, pair, history, &lost, &replaced);
    history.progress = told.map_err(|why| Failure::new(ErrorCode::InputOutput, Side::Command, why))?;
    history.failed.extend(lost.into_iter().map(|(_, item)| item.path));
    Ok(())
}

/// Compares the items of a pair that earlier attempts have done, and that are not on the way to be done again.
///
/// # Errors
/// What keeps the destination from being looked at. A source that cannot be looked at is none.
fn look(attempt: &Attempt<'_>, pair: u32, source: &OpenEnd, destination: &OpenEnd) -> Result<Looked, Failure> {
    let (mut items, mut tops, mut flat) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    each_counted(attempt, pair, &mut |record, item| {
        items.push(Known { path: short_digest(&[&item.path]), record, ..Known::default() });
        if !item.state.is_of_source() {
            return Ok(());
        }
        match item.path.iter().position(|&byte| byte == b'/') {
            Some(slash) => drop(tops.insert(item.path[..slash].to_vec())),
            None => drop(flat.insert(item.path)),
        }
        Ok(())
    })?;
    // Of a path that was told twice, the last record is what it is.
    items.sort_unstable_by_key(|known| (known.path, std::cmp::Reverse(known.record)));
    items.dedup_by_key(|known| known.path);
    let mut look =
        Look { attempt, pair, source, destination, to_file: false, partly_listed: false, items: Items(items) };
    if look.items.0.is_empty() {
        return Ok(Looked::default());
    }
    let Some(to) = destination.location.path() else {
        let remembered = look.items.0.len() as u64;
        let why = Some("the destination keeps nothing".to_owned());
        return Ok(Looked { remembered, why, ..Looked::default() });
    };
    let at_destination = |why: Failure| Failure { side: Side::Destination, ..why };
    let mut there = open(destination, &attempt.context).map_err(at_destination)?;
    look.to_file = there.stat(to).is_ok_and(|found| found.kind != ItemKind::Directory);
    look.list_there(&mut there, &tops, &flat).map_err(at_destination)?;
    let why = look.list_here(&tops, &flat).err();
    let mut looked = look.judge(&mut there)?;
    looked.why = why.map(|why| attempt.called.name(why).to_string());
    Ok(looked)
}

fn each_counted(
    attempt: &Attempt<'_>,
    pair: u32,
    each: &mut dyn FnMut(u64, Item) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let directory = &attempt.order.directory;
    let withdrawn = Withdrawn::load(directory).map_err(|error| of_journal(&error))?;
    let mut reader = Reader::open(directory).without(withdrawn);
    while let Some(record) = reader.next_record().map_err(|error| of_journal(&error))? {
        if let Record::Item(item) = record
            && counts(&item, pair)
        {
            each(reader.record_began(), item)?;
        }
    }
    Ok(())
}

impl Look<'_> {
    fn there_path(&self, item: &[u8]) -> Vec<u8> {
        let to = self.destination.location.path().unwrap_or_default();
        if self.to_file { to.to_vec() } else { below(to, item) }
    }

    fn list_there(
        &mut self,
        files: &mut Files,
        tops: &BTreeSet<Vec<u8>>,
        flat: &BTreeSet<Vec<u8>>,
    ) -> Result<(), Failure> {
        let stop = self.attempt.context.stop.clone();
        for top in tops {
            stop.check()?;
            let (path, mut errors) = (self.there_path(top), false);
            let items = &mut self.items;
            let listed = files.list(&path, true, &mut |entry| match entry.error {
                Some(_) => errors = true,
                None => items.found_there(&below(top, &entry.path), &entry),
            });
            self.partly_listed |= errors;
            listed.or_else(|why| if is_missing(&why) { Ok(()) } else { Err(why) })?;
        }
        if flat.len() >= LISTED_FROM && !self.to_file {
            let (path, items) = (self.destination.location.path().unwrap_or_default().to_vec(), &mut self.items);
            let listed = files.list(&path, false, &mut |entry| match entry.error {
                Some(_) => self.partly_listed = true,
                None => items.found_there(&entry.path, &entry),
            });
            return listed.or_else(|why| if is_missing(&why) { Ok(()) } else { Err(why) });
        }
        for path in flat {
            stop.check()?;
            match files.stat(&self.there_path(path)) {
                Ok(entry) => self.items.found_there(path, &entry),
                Err(why) if is_missing(&why) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn list_here(&mut self, tops: &BTreeSet<Vec<u8>>, flat: &BTreeSet<Vec<u8>>) -> Result<(), Failure> {
        let location = &self.source.location;
        let Some(from) = location.path() else {
            return Err(Failure::new(ErrorCode::Usage, Side::Source, "the source makes its bytes up"));
        };
        let mut files = open(self.source, &self.attempt.context)?;
        for top in tops {
            self.attempt.context.stop.check()?;
            let items = &mut self.items;
            let listed = files.list(&source_path(location, top), true, &mut |entry| {
                if entry.error.is_none() {
                    items.found_here(&below(top, &entry.path), &entry);
                }
            });
            listed.or_else(|why| if is_missing(&why) { Ok(()) } else { Err(why) })?;
        }
        if flat.len() >= LISTED_FROM && is_contents(from) {
            let items = &mut self.items;
            return files.list(from, false, &mut |entry| {
                if entry.error.is_none() {
                    items.found_here(&entry.path, &entry);
                }
            });
        }
        for path in flat {
            match files.stat(&source_path(location, path)) {
                Ok(entry) => self.items.found_here(path, &entry),
                Err(why) if is_missing(&why) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Goes over the items once more, now that both sides are known.
    fn judge(&mut self, there: &mut Files) -> Result<Looked, Failure> {
        let recheck = digests_wanted(&self.attempt.order.directory);
        let mut looked = Looked::default();
        let (attempt, pair) = (self.attempt, self.pair);
        each_counted(attempt, pair, &mut |offset, item| {
            attempt.context.stop.check()?;
            if self.items.of(&item.path).is_some_and(|known| known.record != offset) {
                looked.replaced.push(offset);
                return Ok(());
            }
            // It is to be gone.
            if !item.state.is_of_source() {
                return Ok(());
            }
            match self.verdict(&item, recheck, there)? {
                Verdict::There => looked.there += 1,
                Verdict::Remembered => looked.remembered += 1,
                Verdict::Lost => looked.lost.push((offset, item)),
            }
            Ok(())
        })?;
        Ok(looked)
    }

    fn verdict(&mut self, item: &Item, recheck: bool, there: &mut Files) -> Result<Verdict, Failure> {
        let path = self.there_path(&item.path);
        let Some(mut known) = self.items.of(&item.path).copied() else { return Ok(Verdict::Remembered) };
        if known.there == 0 && self.partly_listed {
            match there.stat(&path) {
                Ok(entry) => (known.there, known.there_size) = (facts(&entry, false), entry.size),
                Err(why) if is_missing(&why) => {}
                Err(why) if why.code.may_pass() => return Err(Failure { side: Side::Destination, ..why }),
                Err(_) => return Ok(Verdict::Remembered),
            }
        }
        let is_file = item.kind == ItemKind::File;
        if known.there == 0 || (is_file && known.there_size != item.size) {
            return Ok(Verdict::Lost);
        }
        let is_same = known.here != 0 && (known.there == known.here || known.there == known.here_coarse);
        let digest = item.digest.filter(|_| is_file && item.state == ItemState::Done);
        match (is_same, known.here == 0, digest) {
            (true, _, None) => Ok(Verdict::There),
            (true, _, Some(_)) if !recheck => Ok(Verdict::There),
            (false, true, _) if !recheck => Ok(Verdict::Remembered),
            (_, _, Some(digest)) => self.compare(&path, digest, there),
            (false, true, None) => Ok(Verdict::Remembered),
            (false, false, None) => Ok(Verdict::Lost),
        }
    }

    /// Reads a file at the destination.
    fn compare(&self, path: &[u8], digest: [u8; 32], there: &mut Files) -> Result<Verdict, Failure> {
        let mut found = None;
        let summed = there.sum(bare(path), Digests::BLAKE3, &mut |sum| found = Some(sum.result));
        match (summed, found) {
            (Ok(()), Some(Ok(digests))) if digests.blake3 == Some(digest) => Ok(Verdict::There),
            (Err(why), _) | (Ok(()), Some(Err(why))) if why.code.may_pass() => {
                Err(Failure { side: Side::Destination, ..why })
            }
            _ => Ok(Verdict::Lost),
        }
    }
}

/// What became of an item that was done.
enum Verdict {
    There,
    Remembered,
    Lost,
}
