//! Compares the two ends of a pair, and tells what differs. A check that was broken off goes on behind the last path
//! that it has kept.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::plan::check::{CheckCounts, CheckFinding, CheckedFacts};
use carrack_core::report::{Event, ItemKind};
use carrack_core::request::{Compare, CopyOptions, CopyRequest};
use carrack_engine::Context;
use carrack_engine::check::{CheckEvent, CheckPosition, ComparisonReport, check_behind};
use carrack_engine::sync::lock;

use super::attempt::Attempt;
use super::ends::{OpenEnd, copy_options};
use super::failures::told;
use super::history::CheckSoFar;
use super::order::Order;
use super::pass::Counted;
use super::receipts::CheckReceipt;
use crate::journal::{CheckMark, Item, JournalError, Reader, Record, Withdrawn};
use crate::model::{CheckTally, DIFFERENCES, EventKind, ItemState, Progress, TaskFailure};

/// How often it is kept how far a check has come, while something is found.
const MARK_EVERY: Duration = Duration::from_millis(500);

/// Compares both ends of a pair.
///
/// # Errors
/// What ended it early. Items that could not be read are none of it.
pub fn check(
    attempt: &mut Attempt<'_>,
    pair: u32,
    place: &[u8],
    source: &OpenEnd,
    destination: &OpenEnd,
) -> Result<(), Failure> {
    let of_journal = |why| Failure::new(ErrorCode::InputOutput, Side::Command, why);
    let request = request(attempt, source, destination)?;
    let known = attempt.history.pairs.remove(&pair).filter(|known| !known.place.is_empty());
    let is_known = known.is_some();
    // Whoever asks for another attempt of a check that was done wants all of it compared again.
    let is_again = attempt.history.is_done;
    let known = known.filter(|known| known.place == place && !is_again && !known.is_asked_again);
    if known.as_ref().is_some_and(|known| known.passes > 0 && !known.is_open) {
        let failed = failed_of(&attempt.order.directory, pair).map_err(|error| of_journal(error.to_string()))?;
        attempt.teller.failed_before(failed.iter());
        return Ok(());
    }
    // Which names are of one file is known of those that were seen: hard links are compared from the beginning.
    let so_far = known.and_then(|known| known.check).filter(|_| !request.options.kept.hard_links);
    let (so_far, receipt) = begin_receipt(attempt.order, pair, so_far).map_err(of_journal)?;
    match &so_far {
        Some(so_far) => attempt.teller.continue_check(pair, place, so_far),
        None => {
            // It was compared before, or at another place.
            if is_known {
                attempt.teller.forget_check(&attempt.order.directory, pair).map_err(of_journal)?;
            }
            attempt.teller.begin_pass(pair, place, Progress::default());
            attempt.teller.record(&Record::Checked(CheckMark { pair, ..CheckMark::default() }));
        }
    }
    let context = Context {
        local: source.place.clone(),
        local_destination: Some(destination.place.clone()),
        ..attempt.context.clone()
    };
    let mut checking = Checking::new(attempt, pair, so_far, receipt);
    let position = checking.position();
    if !position.after.is_empty() {
        let text = "goes on behind the last path that was compared".to_owned();
        let detail = serde_json::json!({ "pair": pair, "compared": checking.mark.tally.compared() });
        checking.attempt.teller.event(EventKind::Note, text, detail);
    }
    // Notes come from the threads of both sides; they are told by this one.
    let (notes, losses) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let observer = |event: Event| match event {
        Event::Note(text) => lock(&notes).push(text),
        Event::SessionLost { failure, .. } => lock(&losses).push(failure),
        _ => {}
    };
    let report = check_behind(&request, &position, &context, &observer, &mut |event| {
        for text in std::mem::take(&mut *lock(&notes)) {
            checking.attempt.teller.event(EventKind::Note, text, serde_json::json!({}));
        }
        for failure in std::mem::take(&mut *lock(&losses)) {
            checking.lost(&failure);
        }
        match event {
            CheckEvent::Found(path, finding, counts) => checking.found(path, finding, counts),
            CheckEvent::Progress(counts) => checking.counted(counts),
        }
    });
    checking.counted(report.counts);
    checking.keep();
    checking.sign(&report, &request.options);
    if let Some(error) = report.error {
        return Err(error);
    }
    attempt.note_reached();
    attempt.teller.end_pass(false);
    CheckReceipt::forget(attempt.order, pair);
    Ok(())
}

/// The receipt that the task is to have, and where the check goes on: from the beginning, if what was found until then
/// is not there for the receipt.
fn begin_receipt(
    order: &Order,
    pair: u32,
    so_far: Option<CheckSoFar>,
) -> Result<(Option<CheckSoFar>, Option<CheckReceipt>), String> {
    let of_receipt = |why| format!("the receipt: {why}");
    if order.receipt.is_none() {
        return Ok((so_far, None));
    }
    // Behind no path it is the beginning.
    let so_far = so_far.filter(|so_far| !so_far.mark.after.is_empty());
    if let Some(so_far) = so_far
        && let Some(receipt) = CheckReceipt::go_on(order, pair, &so_far.mark.after).map_err(of_receipt)?
    {
        return Ok((Some(so_far), Some(receipt)));
    }
    Ok((None, CheckReceipt::begin(order, pair).map_err(of_receipt)?))
}

/// Items of a pair that could not be read.
fn failed_of(directory: &Path, pair: u32) -> Result<Vec<Item>, JournalError> {
    let mut reader = Reader::open(directory).without(Withdrawn::load(directory)?);
    let mut failed = Vec::new();
    while let Some(record) = reader.next_record()? {
        if let Record::Item(item) = record
            && item.pair == pair
            && item.state == ItemState::Failed
        {
            failed.push(item);
        }
    }
    Ok(failed)
}

/// The copy that would make the second like the first.
fn request(attempt: &Attempt<'_>, source: &OpenEnd, destination: &OpenEnd) -> Result<CopyRequest, Failure> {
    let order = attempt.order;
    let mut options = copy_options(order)?;
    options.compare = order.options.compare.unwrap_or(Compare::SizeAndTime);
    let only = order.options.only.as_ref();
    options.only = only.map(|only| only.iter().map(|path| path.clone().into_bytes()).collect());
    options.source = source.options.clone();
    options.destination = destination.options.clone();
    Ok(CopyRequest { sources: vec![source.location.clone()], destination: destination.location.clone(), options })
}

/// A check under way.
struct Checking<'a, 'b> {
    attempt: &'a mut Attempt<'b>,
    /// How far it has come.
    mark: CheckMark,
    /// When that was kept, and whether more was found since.
    kept: Instant,
    is_new: bool,
    before: Option<CheckSoFar>,
    /// The receipt, where there is to be one.
    receipt: Option<CheckReceipt>,
}

impl<'a, 'b> Checking<'a, 'b> {
    fn new(attempt: &'a mut Attempt<'b>, pair: u32, before: Option<CheckSoFar>, receipt: Option<CheckReceipt>) -> Self {
        let mark = before.as_ref().map_or_else(CheckMark::default, |before| before.mark.clone());
        Self { attempt, mark: CheckMark { pair, ..mark }, kept: Instant::now(), is_new: false, before, receipt }
    }

    fn position(&self) -> CheckPosition {
        let CheckMark { after, tally, failed, .. } = &self.mark;
        let unread = self.before.iter().flat_map(|before| &before.failed).map(|item| {
            let is_destination = item.failure.as_ref().is_some_and(|why| why.side == Side::Destination.name());
            (if is_destination { Side::Destination } else { Side::Source }, item.path.clone())
        });
        CheckPosition { after: after.clone(), counts: counts_of(tally, *failed), unread: unread.collect() }
    }

    fn found(&mut self, path: &[u8], finding: &CheckFinding, counts: CheckCounts) {
        if !self.attempt.reached {
            self.attempt.note_reached();
        }
        let item = self.item(path, finding);
        let failure = if let CheckFinding::Failed(why) = finding { Some(why) } else { None };
        self.attempt.visits.tried(path, failure);
        match (&mut self.receipt, failure) {
            // Where an endpoint is, its users need not know.
            (Some(receipt), Some(why)) => {
                let why = Failure { why: self.attempt.told(why, path).why, ..why.clone() };
                receipt.found(path, &CheckFinding::Failed(why));
            }
            (Some(receipt), None) => receipt.found(path, finding),
            (None, _) => {}
        }
        let was_told = self.before.as_mut().is_some_and(|before| before.told.remove(path).is_some());
        if let Some(item) = item.filter(|_| !was_told) {
            self.attempt.teller.item(item, false, false);
        }
        // What could not be read may come out of its place.
        if failure.is_none() && !path.is_empty() {
            self.mark.after = path.to_vec();
            self.is_new = true;
        }
        self.counted(counts);
    }

    fn item(&self, path: &[u8], finding: &CheckFinding) -> Option<Item> {
        let item = |state, facts: &CheckedFacts, failure| Item {
            pair: self.mark.pair,
            path: path.to_vec(),
            kind: facts.state.kind,
            state,
            size: facts.state.size,
            digest: facts.digests.blake3,
            failure,
        };
        Some(match finding {
            CheckFinding::Same(_) => return None,
            CheckFinding::OnlySource(facts) => item(ItemState::OnlySource, facts, None),
            CheckFinding::OnlyDestination(facts) => item(ItemState::OnlyDestination, facts, None),
            CheckFinding::Differs(facts, differs) => {
                let why = differs.words().collect::<Vec<_>>().join(", ");
                let why = Failure::new(ErrorCode::Other, Side::Destination, why);
                let failure = TaskFailure { code: DIFFERENCES.to_owned(), ..told(&why, b"", false) };
                item(ItemState::Different, &facts[0], Some(failure))
            }
            CheckFinding::Failed(why) => Item {
                pair: self.mark.pair,
                path: path.to_vec(),
                kind: ItemKind::File,
                state: ItemState::Failed,
                size: 0,
                digest: None,
                // Another attempt would compare all of it anew: whoever wants that asks for it.
                failure: Some(TaskFailure { retryable: false, ..self.attempt.told(why, path) }),
            },
        })
    }

    fn counted(&mut self, counts: CheckCounts) {
        let CheckCounts { same, differing, only_source, only_destination, failed, bytes, timeless, unlinked, untold } =
            counts;
        let tally =
            CheckTally { same, different: differing, only_source, only_destination, bytes, timeless, unlinked, untold };
        (self.mark.tally, self.mark.failed) = (tally, failed);
        self.attempt.teller.update(|pass| pass.checked(tally, failed));
        if self.is_new && self.kept.elapsed() >= MARK_EVERY {
            self.keep();
        }
    }

    /// Keeps how far it has come.
    fn keep(&mut self) {
        if self.mark.after.is_empty() {
            return;
        }
        if let Some(receipt) = &mut self.receipt {
            receipt.keep(&self.mark.after);
        }
        self.attempt.teller.record(&Record::Checked(self.mark.clone()));
        (self.kept, self.is_new) = (Instant::now(), false);
    }

    /// Makes the receipt of a check that has come to its end. The task has done what it was to do without it, too.
    fn sign(&mut self, report: &ComparisonReport, options: &CopyOptions) {
        let Some(receipt) = self.receipt.take().filter(|_| report.error.is_none()) else { return };
        let failed = self.before.as_ref().map_or(&[][..], |before| &before.failed);
        let made = receipt.finish(self.attempt.order, report, options, failed);
        self.attempt.tell_receipt(self.mark.pair, made);
    }

    fn lost(&mut self, failure: &Failure) {
        self.attempt.visits.failed(failure);
        let lost = self.attempt.told(failure, b"");
        let text = format!("a session was lost: {}", lost.why);
        self.attempt.teller.counted_in_all(Counted { faults: 1, ..Counted::default() });
        self.attempt.teller.event(EventKind::Fault, text, serde_json::json!({ "lost": lost }));
    }
}

fn counts_of(tally: &CheckTally, failed: u64) -> CheckCounts {
    let CheckTally { same, different, only_source, only_destination, bytes, timeless, unlinked, untold } = *tally;
    CheckCounts { same, differing: different, only_source, only_destination, failed, bytes, timeless, unlinked, untold }
}
