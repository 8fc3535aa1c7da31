//! Deletes: what a task is to delete, and the sources of what a task has moved.

use carrack_engine::sync::{lock, unpoisoned};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::filter::FileBounds;
use carrack_core::path::bare;
use carrack_core::report::{Event, ItemKind, ItemReport, Outcome, Report};
use carrack_core::request::Digests;
use carrack_engine::files::{Files, ListEntry};
use carrack_engine::{Copy, threads};

use super::attempt::Attempt;
use super::ends::{OpenEnd, copy_options};
use super::history::{PairHistory, Rest};
use super::places::{below, is_contents, open, path_of, source_path};
use crate::journal::{Item, ItemFilter, JournalError, each_item, failed_last};
use crate::model::{EventKind, ItemState, Progress};

/// Connections by which sources are deleted: each answer takes a round trip.
const LANES: usize = 4;
/// Items that wait for one.
const WAITING: usize = 64;

/// Deletes what a pair names, with all that is below it.
///
/// # Errors
/// What ended it early. Entries that cannot be deleted are items that failed.
pub fn delete(attempt: &mut Attempt<'_>, pair: u32, place: &[u8], source: &OpenEnd) -> Result<(), Failure> {
    match attempt.history.rest(pair, place) {
        // What has its name by now is something else.
        Rest::Look => return Ok(()),
        Rest::Anew => attempt.begin_anew(pair, source, None)?,
        Rest::Whole | Rest::Failed => {}
    }
    // What earlier attempts have deleted is deleted, and what they could not delete is tried again.
    let history = attempt.history.pairs.get(&pair);
    let was_begun = history.is_some_and(PairHistory::was_begun);
    let before = history.map(|pair| pair.progress.clone()).unwrap_or_default();
    let before = Progress { items_failed: 0, ..before };
    let deleted_before = before.items_done;
    let path = path_of(source)?;
    let path = bare(path);
    if path.is_empty() || path == b"." {
        return Err(Failure::new(ErrorCode::Usage, Side::Source, "the root itself is not deleted"));
    }
    let mut files = open(source, &attempt.context)?;
    attempt.note_reached();
    let there = match files.stat(path) {
        Ok(there) => Some(there),
        // An earlier attempt has found it there. It may have deleted it, and not lived to tell.
        Err(why) if why.code == ErrorCode::NotFound && was_begun => None,
        Err(why) => return Err(Failure { side: Side::Source, ..why }),
    };
    attempt.teller.begin_pass(pair, place, before);
    let (mut begun, mut removed) = (0, 0);
    if let Some(there) = &there {
        begun = check_ceiling(attempt, (pair, deleted_before), &mut files, path, there)?;
        removed = files.remove(path, true, &mut |entry| tell_stuck(attempt, pair, entry))?;
    }
    let kind = there.map_or(ItemKind::File, |there| there.kind);
    let item = Item { pair, path: Vec::new(), kind, state: ItemState::Done, size: 0, digest: None, failure: None };
    attempt.teller.end_deleting(begun, removed, item);
    attempt.teller.end_pass(false);
    Ok(())
}

fn tell_stuck(attempt: &Attempt<'_>, pair: u32, entry: ListEntry) {
    let why = entry.error.unwrap_or_else(|| Failure::new(ErrorCode::Other, Side::Source, "cannot be deleted"));
    let failure = Some(attempt.told(&why, &entry.path));
    let (path, kind, state) = (entry.path, entry.kind, ItemState::Failed);
    attempt.teller.item(Item { pair, path, kind, state, size: 0, digest: None, failure }, false, false);
}

/// Counts before anything is deleted, where a token says how much may be: how many are told as about to be. Of a
/// deletion that is cut short nobody knows how far it came, so that all of it counts. With or without a token, a disk
/// has it that the pass has begun: a later attempt then knows why the place is gone.
fn check_ceiling(
    attempt: &Attempt<'_>,
    (pair, deleted_before): (u32, u64),
    files: &mut Files,
    path: &[u8],
    there: &ListEntry,
) -> Result<u64, Failure> {
    let begin = |count| {
        let kept = attempt.teller.begin_deleting(count);
        kept.map(|()| count).map_err(|why| Failure::new(ErrorCode::InputOutput, Side::Command, why))
    };
    let Some(most) = attempt.order.ceilings.deletions else { return begin(0) };
    let others = attempt.teller.of_others(pair);
    let most = most.saturating_sub(deleted_before.saturating_add(others.items_done).saturating_add(others.items_lost));
    let mut count: u64 = 1;
    if there.kind == ItemKind::Directory {
        files.list(path, true, &mut |_| count += 1)?;
    }
    if count <= most {
        return begin(count);
    }
    let mut why = format!("{count} items would be deleted, and the token that submitted the task has {most} left");
    if others.items_lost > 0 {
        why += &format!("; {} others count as deleted, because a deletion was cut short", others.items_lost);
    }
    Err(Failure::new(ErrorCode::Usage, Side::Command, why))
}

/// What the threads that delete sources share.
struct Lanes<'a> {
    attempt: &'a Attempt<'a>,
    pair: u32,
    source: &'a OpenEnd,
    destination: &'a OpenEnd,
    /// The destination is a file: the one that was copied.
    to_file: bool,
    /// Modification times say nothing: the destination has not kept them.
    times_lost: bool,
    /// Which files are moved, by their sizes and ages.
    files: FileBounds,
    items: Mutex<Receiver<Item>>,
    /// Why a thread has given up.
    lost: Mutex<Option<Failure>>,
}

/// Deletes the sources of all items of a pair that are at the destination: each one only where it still is what was
/// copied. Directories go once nothing but directories is left in them, all of which are at the destination.
///
/// # Errors
/// What ended it early. Sources that cannot be deleted are items that failed.
pub fn delete_sources(
    attempt: &mut Attempt<'_>,
    pair: u32,
    source: &OpenEnd,
    destination: &OpenEnd,
    report: Option<&Report>,
) -> Result<(), Failure> {
    attempt.teller.begin_sources(pair, report.is_some());
    let to = path_of(destination)?;
    let to_file = open(destination, &attempt.context)?.stat(to).is_ok_and(|there| there.kind != ItemKind::Directory);
    let unkept = report.is_some_and(|report| report.unkept_times.is_some());
    let times_lost = unkept || attempt.order.options.no_times;
    let (sender, items) = sync_channel(WAITING);
    let (items, lost) = (Mutex::new(items), Mutex::new(None));
    let files = copy_options(attempt.order)?.filters.files;
    let failed = failed_last(&attempt.order.directory, pair)
        .map_err(|error| Failure::new(ErrorCode::InputOutput, Side::Command, error.to_string()))?;
    let lanes = Lanes { attempt, pair, source, destination, to_file, times_lost, files, items, lost };
    let filter = ItemFilter { states: vec![ItemState::Done], pair: Some(pair) };
    let fed = std::thread::scope(|scope| {
        // One is enough; the others make it faster.
        for number in 0..LANES {
            match threads::start_scoped(scope, "deleting sources", || lanes.run()) {
                Err(error) if number == 0 => return Err(Fed::NoThread(error)),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        let fed = each_item(&attempt.order.directory, &filter, |item| {
            if failed.contains(&item.path) {
                return Ok(());
            }
            // Nobody takes it: all threads have given up.
            sender.send(item).map_err(|_| Fed::Lost)
        });
        drop(sender);
        fed
    });
    let lost = unpoisoned(lanes.lost.into_inner());
    if let Some(why) = lost {
        return Err(why);
    }
    match fed {
        Err(Fed::Journal(error)) => {
            return Err(Failure::new(ErrorCode::InputOutput, Side::Command, error.to_string()));
        }
        Err(Fed::NoThread(error)) => return Err(carrack_engine::system_failure(Side::Command, &error)),
        Err(Fed::Lost) | Ok(_) => {}
    }
    attempt.context.stop.check()?;
    delete_directories(attempt, source, destination)?;
    attempt.teller.end_pass(true);
    Ok(())
}

/// Why not all items were handed out.
enum Fed {
    Journal(JournalError),
    Lost,
    NoThread(std::io::Error),
}

impl From<JournalError> for Fed {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl Lanes<'_> {
    fn run(&self) {
        let opened = open(self.source, &self.attempt.context)
            .and_then(|source| Ok((source, open(self.destination, &self.attempt.context)?)));
        let result = opened.and_then(|(mut source, mut destination)| {
            while let Some(item) = self.next() {
                self.delete(&item, &mut source, &mut destination)?;
            }
            Ok(())
        });
        if let Err(why) = result {
            lock(&self.lost).get_or_insert(why);
            // Whoever hands out items is not to wait for a taker.
            while self.next().is_some() {}
        }
    }

    fn next(&self) -> Option<Item> {
        lock(&self.items).recv().ok()
    }

    fn delete(&self, item: &Item, source: &mut Files, destination: &mut Files) -> Result<(), Failure> {
        self.attempt.context.stop.check()?;
        if item.kind == ItemKind::Directory || item.path.is_empty() {
            return Ok(());
        }
        let from = source_path(&self.source.location, &item.path);
        // Whoever asks a host about files knows no sides.
        let of = |side| move |why: Failure| if why.side == Side::Source { Failure { side, ..why } } else { why };
        let to = destination.stat(&self.destination_path(&item.path)).map_err(of(Side::Destination));
        let here = match source.stat(&from) {
            Ok(here) => here,
            Err(why) if why.code == ErrorCode::NotFound => return Ok(()),
            Err(why) => return self.stuck(item, why),
        };
        let same = match to {
            Ok(there) => self.is_same(&here, &there) && self.is_still(item, (&here, &there), source, destination)?,
            Err(why) if why.code == ErrorCode::NotFound => {
                let why = "what was copied is gone from the destination, so its source was not deleted";
                return self.stuck(item, Failure::new(ErrorCode::NotFound, Side::Destination, why));
            }
            Err(why) => return self.stuck(item, why),
        };
        if !same {
            return self.changed(item);
        }
        match source.remove_unchanged(&from, &here) {
            Ok(()) => Ok(()),
            Err(why) if why.code == ErrorCode::SourceChanged => self.changed(item),
            Err(why) if why.code == ErrorCode::NotFound => Ok(()),
            Err(why) => self.stuck(item, why),
        }
    }

    fn changed(&self, item: &Item) -> Result<(), Failure> {
        let why = "the source is not what was copied any more, and was not deleted";
        self.stuck(item, Failure::new(ErrorCode::SourceChanged, Side::Source, why))
    }

    fn destination_path(&self, item: &[u8]) -> Vec<u8> {
        let to = self.destination.location.path().unwrap_or_default();
        if self.to_file { to.to_vec() } else { below(to, item) }
    }

    fn is_same(&self, here: &ListEntry, there: &ListEntry) -> bool {
        let coarse = there.mtime.nanos == 0 && there.mtime.seconds == here.mtime.seconds;
        let same_time = self.times_lost || here.mtime == there.mtime || coarse;
        match (here.kind, there.kind) {
            (ItemKind::Symlink, ItemKind::Symlink) => here.link_target == there.link_target,
            (ItemKind::File, ItemKind::File) => here.size == there.size && same_time,
            _ => false,
        }
    }

    /// Whether a source is still one that is moved, and what was copied: where times do not tell that, it is read.
    ///
    /// # Errors
    /// As [`Lanes::stuck`].
    fn is_still(
        &self,
        item: &Item,
        (here, there): (&ListEntry, &ListEntry),
        source: &mut Files,
        destination: &mut Files,
    ) -> Result<bool, Failure> {
        if here.kind != ItemKind::File {
            return Ok(true);
        }
        if self.files.take(Some(here.size), Some(here.mtime)) != Some(true) {
            return Ok(false);
        }
        // Within one second of a destination that counts in seconds it may have been written anew.
        if !self.times_lost && here.mtime == there.mtime {
            return Ok(true);
        }
        let path = source_path(&self.source.location, &item.path);
        let digest = |files: &mut Files, path: &[u8]| match files.sum_file(path, Digests::BLAKE3) {
            Err(why) if why.code.may_pass() => Err(why),
            summed => Ok(summed.ok().and_then(|digests| digests.blake3)),
        };
        let Some(found) = digest(source, bare(&path))? else { return Ok(false) };
        // One that was there already, or has another digest, is read there, too.
        let wanted = match item.digest {
            Some(wanted) => Some(wanted),
            None => digest(destination, bare(&self.destination_path(&item.path)))?,
        };
        Ok(wanted == Some(found))
    }

    /// # Errors
    /// The failure itself where the connection is lost: the next attempt goes on.
    fn stuck(&self, item: &Item, why: Failure) -> Result<(), Failure> {
        if why.code.may_pass() || self.attempt.context.stop.requested().is_some() {
            return Err(why);
        }
        let mut failure = self.attempt.told(&why, &item.path);
        // Copied is copied: another attempt finds the source no other.
        failure.retryable = false;
        let item = Item { pair: self.pair, state: ItemState::Failed, failure: Some(failure), ..item.clone() };
        self.attempt.teller.item(item, false, false);
        Ok(())
    }
}

/// Deletes directories that hold nothing else, where all of them are at the destination. What is put there meanwhile
/// stays: nothing but an empty directory goes.
fn delete_directories(attempt: &Attempt<'_>, source: &OpenEnd, destination: &OpenEnd) -> Result<(), Failure> {
    let path = path_of(source)?;
    let mut files = open(source, &attempt.context)?;
    match files.stat(if bare(path).is_empty() { path } else { bare(path) }) {
        Ok(there) if there.kind == ItemKind::Directory => {}
        _ => return Ok(()),
    }
    let contents = is_contents(path);
    let (mut left, mut directories, mut tops) = (0u64, 0u64, Vec::new());
    files.list(path, true, &mut |entry| {
        if entry.kind != ItemKind::Directory || entry.error.is_some() {
            left += 1;
            return;
        }
        directories += 1;
        if contents && !entry.path.contains(&b'/') {
            tops.push(below(bare(path), &entry.path));
        }
    })?;
    if !contents {
        tops.push(bare(path).to_vec());
    }
    if left == 0 && directories > 0 {
        left = uncopied(attempt, source, destination, directories)?;
    }
    let tell =
        |text: String, left: u64| attempt.teller.event(EventKind::Note, text, serde_json::json!({ "left": left }));
    if left > 0 {
        tell(format!("{left} entries are left at the source, and so are its directories"), left);
        return Ok(());
    }
    for top in tops {
        match files.remove_empty(&top, &mut |_| left += 1) {
            Ok(_) => {}
            Err(why) if why.code == ErrorCode::NotFound => {}
            // Something came to be there after the look.
            Err(why) if matches!(why.code, ErrorCode::NotEmpty | ErrorCode::NotADirectory) => left += 1,
            Err(why) => return Err(why),
        }
    }
    if left > 0 {
        tell(format!("{left} entries came to be at the source meanwhile, and their directories are left"), left);
    }
    Ok(())
}

/// Of so many directories below the source, how many the move has not copied: they were made after it looked, or its
/// rules leave them out. The journal does not tell directories, so the engine says once more which ones the copy takes,
/// and the destination which ones it has.
fn uncopied(attempt: &Attempt<'_>, source: &OpenEnd, destination: &OpenEnd, directories: u64) -> Result<u64, Failure> {
    let (mut request, context) = attempt.dry_run(source, destination)?;
    request.options.delete = None;
    let (to, mut files) = (path_of(destination)?, open(destination, &attempt.context)?);
    let contents = is_contents(path_of(source)?);
    let is_below = |path: &[u8]| if contents { !path.is_empty() } else { path.contains(&b'/') };
    let (mut copied, mut failed) = (0, None);
    let mut listing = Copy::start(request, &context);
    while let Some(event) = listing.next_event() {
        let Event::Item(ItemReport { path, kind: ItemKind::Directory, outcome: Outcome::Planned, .. }) = event else {
            continue;
        };
        match files.stat(&below(to, &path)) {
            Ok(there) => copied += u64::from(there.kind == ItemKind::Directory && is_below(&path)),
            Err(why) if matches!(why.code, ErrorCode::NotFound | ErrorCode::NotADirectory) => {}
            Err(why) => {
                let side = if why.side == Side::Source { Side::Destination } else { why.side };
                failed.get_or_insert(Failure { side, ..why });
                listing.cancel();
            }
        }
    }
    let error = listing.wait().error;
    failed.or(error).map_or(Ok(directories.saturating_sub(copied)), Err)
}
