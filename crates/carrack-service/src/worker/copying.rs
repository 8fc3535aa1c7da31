//! Copies one pair: all of it, or what failed in the pass before.

use std::collections::BTreeMap;

use carrack_core::expected::ExpectedDigests;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::limits;
use carrack_core::options::DeleteLimit;
use carrack_core::report::{Event, ItemKind, ItemReport, Outcome, Report};
use carrack_core::request::{Compare, CopyOptions, CopyRequest, Durability, Reflink, Verify};
use carrack_core::timeline::{Sample, Work};
use carrack_engine::{Context, Copy, Handle};
use serde_json::json;

use super::attempt::Attempt;
use super::ends::{OpenEnd, copy_options};
use super::failures::{can_pass, is_source_error};
use super::history::{PairHistory, Rest, Told};
use super::look;
use super::order::Order;
use super::pass::{Counted, unkept};
use super::planning;
use super::receipts::PairReceipt;
use super::removal;
use crate::journal::{EndCounts, Item};
use crate::model::{Ceilings, EventKind, ItemState, Progress, TaskFailure, TaskKind, TokenUse};

/// A pass over a pair.
struct Copying<'a, 'b> {
    attempt: &'a mut Attempt<'b>,
    pair: u32,
    history: PairHistory,
    /// It is over what failed before, by path, and not over the whole pair.
    again: bool,
    verified: bool,
    /// What stays that was to be deleted has been told.
    told_plan: bool,
    /// The most bytes that any session had at the destination.
    landed: u64,
    /// Bytes that sessions before the one under way had there.
    landed_before: u64,
    /// The receipt of the pair, where there is to be one.
    receipt: Option<PairReceipt>,
}

/// Copies what is left of a pair and, where the task moves, deletes the sources of what was copied.
///
/// # Errors
/// What ended the copy early. Failed items are none of it.
pub fn copy(
    attempt: &mut Attempt<'_>,
    pair: u32,
    place: &[u8],
    source: &OpenEnd,
    destination: &OpenEnd,
) -> Result<(), Failure> {
    if attempt.history.pairs.get(&pair).is_some_and(|history| history.has_plan) {
        planning::forget(attempt, pair)?;
    }
    if !planning::check_ground(attempt, pair, place, source, destination)? {
        return Ok(());
    }
    let rest = attempt.history.rest(pair, place);
    match rest {
        Rest::Whole => {}
        Rest::Anew => attempt.begin_anew(pair, source, Some(destination))?,
        Rest::Failed | Rest::Look => look::compare(attempt, pair, source, destination)?,
    }
    let history = attempt.history.pairs.remove(&pair).unwrap_or_default();
    let (is_done, sources_deleted) = (history.passes > 0 && history.failed.is_empty(), history.sources_deleted);
    let mut remnant = history.remnant();
    remnant.place = place.to_vec();
    attempt.history.pairs.insert(pair, remnant);
    let moves = attempt.order.kind == TaskKind::Move;
    let mut ended = Ok(None);
    if !is_done {
        // What is not among the paths that failed may have to be deleted, too.
        let again = history.is_by_paths() && !attempt.order.options.deletes();
        let before = if again { history.progress.clone() } else { Progress::default() };
        attempt.teller.begin_pass(pair, place, before);
        let verified = copy_options(attempt.order)?.verify != Verify::None;
        let mut history = history;
        if !again && history.passes > 0 {
            // All of its items come once more.
            let told = Told::read_all(&attempt.order.directory, pair);
            history.told =
                told.map_err(|error| Failure::new(ErrorCode::InputOutput, Side::Command, error.to_string()))?;
        }
        let mut copying = Copying {
            attempt,
            pair,
            history,
            again,
            verified,
            told_plan: false,
            landed: 0,
            landed_before: 0,
            receipt: None,
        };
        ended = copying.pass(source, destination).map(Some);
        let attempt = &mut *copying.attempt;
        if ended.is_ok() {
            attempt.teller.end_pass(false);
        }
    }
    let report = ended?;
    if !moves || (is_done && sources_deleted) || attempt.is_over() {
        return Ok(());
    }
    match removal::delete_sources(attempt, pair, source, destination, report.as_ref()) {
        Err(why) if !can_pass(&why, attempt.reached) && !attempt.is_over() => {
            // All that was copied stays copied, and is not copied again.
            let failure = Some(attempt.told(&why, b""));
            attempt.teller.item(whole_pair(pair, failure), false, false);
            attempt.teller.end_pass(true);
            Ok(())
        }
        other => other,
    }
}

impl Copying<'_, '_> {
    fn pass(&mut self, source: &OpenEnd, destination: &OpenEnd) -> Result<Report, Failure> {
        let mut options = copy_options(self.attempt.order)?;
        options.moves = self.attempt.order.kind == TaskKind::Move;
        options.items_in_flight = true;
        let failed = std::mem::take(&mut self.history.failed);
        let again = self.again;
        options.only = if again { Some(selected(&failed)) } else { self.wanted() };
        if let Some(order) = &mut options.delete {
            planning::bound(self.attempt, order);
            // So many in all attempts together.
            order.most = order.most.map(|most| most.saturating_sub(self.deleted()));
            if let Some(left) = self.deletions_left().filter(|left| order.most.is_none_or(|most| most > *left)) {
                (order.most, order.partial) = (Some(left), false);
            }
        }
        let marker = self.marker_key(again.then_some(&failed[..]));
        let kept = self.attempt.markers.keep((self.pair, marker));
        kept.map_err(|why| Failure::new(ErrorCode::InputOutput, Side::Command, why))?;
        options.marker_key = Some(marker);
        options.expected = expected_of(&self.attempt.order.expect_digests);
        if !destination.ownership && !options.fake_super {
            options.kept = options.kept.without_privileges();
        }
        options.source = source.options.clone();
        options.destination = destination.options.clone();
        if self.attempt.order.receipt.is_some() {
            // A receipt tells digests.
            options.reflink = Reflink::Never;
        }
        let durable = options.durability != Durability::None;
        let request =
            CopyRequest { sources: vec![source.location.clone()], destination: destination.location.clone(), options };
        let context = Context {
            local: source.place.clone(),
            local_destination: Some(destination.place.clone()),
            gives_ownership: destination.ownership,
            ..self.attempt.context.clone()
        };
        self.check_beforehand(&request, &context)?;
        self.receipt = PairReceipt::begin(self.attempt.order, self.pair)
            .map_err(|why| Failure::new(ErrorCode::InputOutput, Side::Command, format!("the receipt: {why}")))?;
        let options = request.options.clone();
        let mut handle = Copy::start(request, &context);
        self.follow(&mut handle);
        let report = handle.wait();
        self.attempt.in_flight.end();
        self.count(&report);
        if let Some(error) = report.error {
            return Err(error);
        }
        self.sign(&report, &options, &Context { local: destination.place.clone(), ..context });
        if let Some(why) = &report.undeleted {
            let failure = Some(self.attempt.told(why, b""));
            self.attempt.teller.item(whole_pair(self.pair, failure), false, false);
            let counts = &report.at_destination;
            planning::undeleted(self.attempt, why, (counts.items_only_there, counts.bytes_only_there))?;
        }
        if durable && report.durable == Some(false) && self.attempt.order.kind == TaskKind::Move {
            let why = "what was copied has not reached stable storage, so no source is deleted";
            return Err(Failure::new(ErrorCode::InputOutput, Side::Destination, why));
        }
        Ok(report)
    }

    fn note_for_receipt(&mut self, event: &Event) {
        let Some(receipt) = &mut self.receipt else { return };
        match event {
            // Where an endpoint is, its users need not know.
            Event::Item(ItemReport { path, outcome: Outcome::Failed(why), .. }) => {
                let Event::Item(item) = event.clone() else { return };
                let why = Failure { why: self.attempt.told(why, path).why, ..why.clone() };
                receipt.making.event(&Event::Item(ItemReport { outcome: Outcome::Failed(why), ..item }));
            }
            event => receipt.making.event(event),
        }
    }

    /// Makes the receipt. The task has done what it was to do without it, too.
    fn sign(&mut self, report: &Report, options: &CopyOptions, context: &Context) {
        let Some(receipt) = self.receipt.take() else { return };
        let made = receipt.finish(self.attempt.order, report, options, context);
        self.attempt.tell_receipt(self.pair, made);
    }

    /// What the task has selected of its sources.
    fn wanted(&self) -> Option<Vec<Vec<u8>>> {
        let only = self.attempt.order.options.only.as_ref()?;
        Some(only.iter().map(|path| path.clone().into_bytes()).collect())
    }

    /// By what another attempt finds what this one leaves at the destination: the same pass over the same pair.
    fn marker_key(&self, again: Option<&[Vec<u8>]>) -> [u8; limits::MARKER_KEY_BYTES] {
        let mut hasher = blake3::Hasher::new_derive_key("carrack task marker 1");
        hasher.update(self.attempt.order.task.as_bytes()).update(&[0]).update(&self.pair.to_le_bytes());
        for path in again.unwrap_or_default() {
            hasher.update(&(path.len() as u64).to_le_bytes()).update(path);
        }
        let mut key = [0; limits::MARKER_KEY_BYTES];
        hasher.finalize_xof().fill(&mut key);
        key
    }

    fn follow(&mut self, handle: &mut Handle) {
        while let Some(event) = handle.next_event() {
            self.note_for_receipt(&event);
            self.handle(event);
            if self.attempt.fatal.is_some() {
                handle.cancel();
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let teller = &self.attempt.teller;
        match event {
            Event::Item(item) => self.handle_item(item),
            Event::Resolved { directory: Some(directory), .. } => self.attempt.visits.resolved(&directory),
            Event::Progress(progress) => {
                self.landed = self.landed.max(progress.bytes_done);
                teller.update(|pass| {
                    pass.found = (progress.files_found, progress.bytes_found);
                    (pass.scan_complete, pass.bytes_moved) = (progress.scan_complete, progress.bytes_done);
                });
                self.check_ceilings(progress.files_found, progress.bytes_found);
            }
            Event::InFlight(files) => self.attempt.in_flight.tell(self.pair, files),
            Event::Linked(link) => {
                self.attempt.note_reached();
                let teller = &self.attempt.teller;
                teller.streams(link.streams.into());
                let text = format!("{} link with {} streams, {}", link.kind.name(), link.streams, link.cipher);
                let detail = json!({ "link": link.kind.name(), "streams": link.streams, "cipher": link.cipher });
                teller.event(EventKind::Note, text, detail);
            }
            Event::Streams(change) => {
                teller.streams(change.streams.into());
                let text = format!("{} streams in the place of {}: {}", change.streams, change.before, change.reason);
                teller.event(EventKind::Note, text, json!({ "streams": change.streams, "before": change.before }));
            }
            Event::Sample(told) => teller.counted(told.side, counts_of(&told.point.sample)),
            Event::Note(text) => teller.event(EventKind::Note, text, json!({})),
            Event::RateFell(fall) => teller.limited(fall.limit),
            Event::SessionLost { failure, attempt, pause } => {
                self.attempt.in_flight.end();
                self.attempt.visits.failed(&failure);
                let teller = &self.attempt.teller;
                teller.counted_in_all(Counted { faults: 1, ..Counted::default() });
                self.landed_before = self.landed;
                // The attempt has not failed by it: it is no `failure`.
                let lost = self.attempt.told(&failure, b"");
                let detail = json!({ "attempt": attempt, "pause_seconds": pause.as_secs_f64(), "lost": lost });
                teller.event(
                    EventKind::Fault,
                    format!("a session was lost: {}", self.attempt.called.name(failure)),
                    detail,
                );
                // All items are told anew.
                let lost = match teller.start_over(&self.attempt.order.directory) {
                    Ok(told) => {
                        self.history.told = told;
                        let forgets = std::mem::take(&mut self.told_plan);
                        if forgets { planning::forget(self.attempt, self.pair) } else { Ok(()) }
                    }
                    Err(why) => Err(Failure::new(ErrorCode::InputOutput, Side::Command, why)),
                };
                if let Err(why) = lost {
                    self.attempt.give_up(why);
                }
            }
            Event::StreamEnded { failure: Some(failure) } => {
                self.attempt.visits.failed(&failure);
                let teller = &self.attempt.teller;
                teller.counted_in_all(Counted { faults: 1, ..Counted::default() });
                teller.event(
                    EventKind::Note,
                    format!("a data connection was lost: {}", self.attempt.called.name(failure)),
                    json!({}),
                );
            }
            _ => {}
        }
    }

    fn handle_item(&mut self, report: ItemReport) {
        match report.outcome {
            Outcome::Deleted => {
                let (items_deleted, bytes_deleted) = (1, report.size);
                self.attempt.teller.counted_in_all(Counted { items_deleted, bytes_deleted, ..Counted::default() });
            }
            // Why it stays is told once, of all together.
            Outcome::ToDelete => self.told_plan = true,
            _ => {}
        }
        let (mut item, failed) = self.judge(report);
        if item.state != ItemState::ToDelete {
            self.attempt.visits.tried(&item.path, failed.as_ref());
        }
        if item.state == ItemState::Failed
            && self.attempt.order.skip_source_errors
            && failed.as_ref().is_some_and(is_source_error)
        {
            item.state = ItemState::Skipped;
        }
        if let Some(failure) = failed.filter(|failure| failure.code == ErrorCode::QuotaExceeded)
            && self.attempt.order.fail_on_quota_errors
        {
            self.attempt.give_up(failure.at_path(&item.path[..]));
        }
        let was_told = item.state.is_settled() && self.history.told.has(&item);
        self.attempt.teller.item(item, self.verified, was_told);
    }

    /// Whether what is the same has been proved to be so: a move may then delete its source.
    fn proves_same(&self) -> bool {
        let Order { kind, options, .. } = self.attempt.order;
        *kind == TaskKind::Move && options.compare == Some(Compare::Content)
    }

    /// What became of an item, with a digest that was expected.
    fn judge(&mut self, report: ItemReport) -> (Item, Option<Failure>) {
        let ItemReport { path, kind, size, digests, outcome, judgment: _ } = report;
        // Of a file that was left as it was, what was told is the source's.
        let digest = digests.blake3.filter(|_| !matches!(outcome, Outcome::Kept | Outcome::Same));
        let (mut state, mut failure) = match outcome {
            Outcome::Published => (ItemState::Done, None),
            Outcome::Same if self.proves_same() => (ItemState::Done, None),
            // What is the same by size and time has not been read: a move leaves its source.
            Outcome::Kept | Outcome::Same | Outcome::Planned => (ItemState::Skipped, None),
            Outcome::Deleted => (ItemState::Deleted, None),
            Outcome::ToDelete => (ItemState::ToDelete, None),
            Outcome::Failed(failure) => (ItemState::Failed, Some(failure)),
        };
        let expected = std::str::from_utf8(&path)
            .ok()
            .filter(|_| state.is_of_source())
            .and_then(|path| self.attempt.order.expect_digests.get(path));
        if let Some(expected) = expected {
            self.attempt.history.expected_seen.insert(path.clone());
            if state != ItemState::Failed && !is_digest(expected, digest) {
                state = ItemState::Failed;
                failure = Some(unexpected(expected, digest));
            }
        }
        let told = failure.as_ref().map(|failure| self.attempt.told(failure, &path));
        (Item { pair: self.pair, path, kind, state, size, digest, failure: told }, failure)
    }

    /// Counts before anything is copied, where a token says how much may be: small files are copied as soon as they
    /// are found.
    fn check_beforehand(&mut self, request: &CopyRequest, context: &Context) -> Result<(), Failure> {
        let Ceilings { entries, bytes, deletions, .. } = self.ceilings();
        if entries.is_none() && bytes.is_none() && deletions.is_none() {
            return Ok(());
        }
        let mut request = request.clone();
        request.options.dry_run = true;
        let report = Copy::start(request, context).wait();
        let counts = &report.counts;
        self.check_ceilings(counts.names_made() + counts.directories, counts.bytes);
        self.check_deletions(report.at_destination.items_only_there);
        match (report.error, &self.attempt.fatal) {
            (Some(why), _) => Err(why),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Ok(()),
        }
    }

    /// What the token still allows the task. A move deletes what it has copied, and a copy nothing but what it was told
    /// to.
    fn ceilings(&self) -> Ceilings {
        let Order { ceilings, kind, options, .. } = self.attempt.order;
        let deletions = ceilings.deletions.filter(|_| *kind == TaskKind::Move || options.deletes());
        Ceilings { deletions, ..*ceilings }
    }

    /// How many items all attempts have deleted at the destination.
    fn deleted(&self) -> u64 {
        self.attempt.teller.of_others(self.pair).items_deleted
    }

    /// How many more the token lets the task delete.
    fn deletions_left(&self) -> Option<u64> {
        self.ceilings().deletions.map(|most| most.saturating_sub(self.deleted()))
    }

    /// Of the items that only the destination has, not more are to be deleted than the token has left.
    fn check_deletions(&mut self, only_there: u64) {
        let Some(left) = self.deletions_left().filter(|_| self.attempt.order.options.deletes()) else { return };
        let deleted = match self.attempt.order.options.max_delete {
            Some(DeleteLimit::Items(most)) if only_there > most => 0,
            Some(DeleteLimit::Partial(most)) => only_there.min(most),
            _ => only_there,
        };
        if deleted > left {
            let why = format!(
                "{deleted} items would be deleted at the destination, and the token which submitted the task has \
                 {left} deletions left"
            );
            self.attempt.give_up(Failure::new(ErrorCode::Usage, Side::Command, why));
        }
    }

    /// What this pair has, with what the other pairs of the task have done, is not to be more than the token has left.
    fn check_ceilings(&mut self, entries: u64, bytes: u64) {
        let (so_far, others) = (&self.history.progress, self.attempt.teller.of_others(self.pair));
        let sum = |all: &[u64]| all.iter().copied().fold(0, u64::saturating_add);
        let items = sum(&[entries.max(so_far.items_total), others.items_total, others.items_lost]);
        let bytes = sum(&[bytes.max(so_far.bytes_total), others.bytes_total, others.bytes_lost, others.bytes_resent]);
        let moves = self.attempt.order.kind == TaskKind::Move;
        let deletions = if moves { items } else { others.items_deleted };
        let found = TokenUse { entries: items, bytes, deletions };
        if let Some(most) = found.over(&self.ceilings()) {
            let mut why =
                format!("the sources are more than the {most} that the token which submitted the task has left");
            if others.items_lost + others.bytes_resent > 0 {
                why += "; what was copied already and has to be copied again counts again";
            }
            self.attempt.give_up(Failure::new(ErrorCode::Usage, Side::Command, why));
        }
    }

    fn count(&mut self, report: &Report) {
        let resumed = report.counts.bytes_resumed + report.counts.bytes_taken_over;
        // Of a session that was lost nobody has told what it found.
        let resent = if report.error.is_none() { self.landed_before.saturating_sub(resumed) } else { 0 };
        self.attempt.open_bytes = self.attempt.open_bytes.saturating_sub(resumed);
        let faults = &report.faults;
        self.attempt.visits.copied(report.file_systems, faults);
        let repaired = faults.digest_mismatches + faults.blocks_rotten + faults.items_again;
        self.attempt.teller.limited(report.limit);
        self.attempt.teller.counted_in_all(Counted {
            faults: repaired,
            bytes_resent: resent,
            unkept: unkept(report),
            ..Counted::default()
        });
    }
}

/// What failed of a pair as a whole.
fn whole_pair(pair: u32, failure: Option<TaskFailure>) -> Item {
    let (kind, state) = (ItemKind::Directory, ItemState::Failed);
    Item { pair, path: Vec::new(), kind, state, size: 0, digest: None, failure }
}

/// What work waits for storage. The rest waits for the connection, for the rate limit, or for nothing.
const STORAGE: [Work; 8] =
    [Work::List, Work::Find, Work::Read, Work::Create, Work::Write, Work::Begin, Work::Sync, Work::Publish];

/// What the journal keeps of what an end has measured.
fn counts_of(sample: &Sample) -> EndCounts {
    EndCounts {
        processor_us: sample.processor.process_us,
        storage_wait_us: STORAGE.iter().map(|&work| sample.stages.of(work).waited_us).sum(),
        retransmits: sample.counts.retransmits,
    }
}

/// The paths of a pass over what failed. A directory stands for what is in it.
fn selected(failed: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut paths = failed.to_vec();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// As the engine takes them. What is no digest is judged here alone.
fn expected_of(expected: &BTreeMap<String, String>) -> ExpectedDigests {
    let digest = |text: &String| Some(*blake3::Hash::from_hex(text.to_ascii_lowercase()).ok()?.as_bytes());
    let valid = expected.iter().filter_map(|(path, text)| Some((path.clone().into_bytes(), digest(text)?)));
    ExpectedDigests::new(valid.collect())
}

/// Whether a digest is there and is the one that was expected.
fn is_digest(expected: &str, digest: Option<[u8; 32]>) -> bool {
    digest.is_some_and(|digest| blake3::Hash::from(digest).to_hex().eq_ignore_ascii_case(expected))
}

fn unexpected(expected: &str, digest: Option<[u8; 32]>) -> Failure {
    let found = match digest {
        Some(digest) => format!("its BLAKE3 digest is {}", blake3::Hash::from(digest).to_hex()),
        None => "its BLAKE3 digest is not known".to_owned(),
    };
    Failure::new(ErrorCode::DigestMismatch, Side::Source, format!("{found}, and {expected} was expected"))
}
