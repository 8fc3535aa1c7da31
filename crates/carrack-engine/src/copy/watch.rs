//! A session at work: what the ends tell is passed on and counted, until both have ended.

use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::pace::limit::Stage;
use carrack_core::pace::streams::Change;
use carrack_core::path::check_relative;
use carrack_core::report::{
    DestinationCounts, Done, ErrorCode, Event, Failure, FileDigests, ItemChange, ItemFailure, ItemKind, ItemReport,
    Outcome, PathTrace, Progress, RateFall, Reason, Report, Side, UnkeptAttributes,
};
use carrack_core::request::LinkKind;
use carrack_core::timeline::Happened;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::control::{Ask, Ended, Tell};

use super::ends::{Ends, misbehaved, name_end};
use super::streams::Streams;
use super::tune::Tune;
use super::{Copying, held_back};
use crate::end::{EndId, Incoming, Waited};
use crate::error::failure;

/// What fell within so much of a fall that was told is the same.
const SAME_FALL: Duration = Duration::from_secs(5);

/// Seconds before a fall, at least: where it is known that the rate fell,
const KNOWN_BEFORE_SECONDS: f64 = 0.5;
/// and where that is to be found out.
const BEFORE_SECONDS: f64 = 2.5;

impl Copying<'_> {
    /// Passes on what the ends tell, until both have ended, and keeps the streams up.
    pub(super) fn watch(&mut self, ends: &mut Ends, streams: &mut Streams) -> Result<(), Failure> {
        self.ask_for_paths(ends)?;
        let mut waiting = vec![EndId::Source, EndId::Destination];
        let mut first_failure: Option<Failure> = None;
        let (mut heard, mut failed_at) = (Instant::now(), None);
        while !waiting.is_empty() {
            let working = waiting.contains(&EndId::Source) && first_failure.is_none();
            if working {
                streams.work(ends, Instant::now())?;
                self.measured.work(ends, Instant::now())?;
            }
            // One side's failure reaches the other through the peer conversation; if it does not,
            // the second does not hold us.
            let patience = self.context.tuning.other_end_patience;
            let patience = failed_at.map(|at: Instant| (heard + patience).min(at + 2 * patience));
            let next = patience.or_else(|| {
                if working { [streams.due(), self.measured.due()].into_iter().flatten().min() } else { None }
            });
            let incoming = match self.inbox.wait_until(next, &self.note, &|_| true) {
                Ok(Waited::Word(incoming)) => incoming,
                Ok(Waited::Deadline) => {
                    match (patience, first_failure.take()) {
                        (Some(patience), Some(first)) if Instant::now() >= patience => return Err(first),
                        (_, first) => first_failure = first,
                    }
                    continue;
                }
                Err(error) => return Err(first_failure.unwrap_or(error)),
            };
            if first_failure.is_none() && self.is_told(&incoming, &waiting)? {
                continue;
            }
            let now = Instant::now();
            // Nor does one that goes on talking.
            if patience.is_some_and(|patience| now >= patience)
                && let Some(first) = first_failure.take()
            {
                return Err(first);
            }
            // Where the time goes is told for as long as an end is there, and a stream may be lost, whether or
            // not anything gets anywhere.
            if !matches!(incoming.tell, Ok(Tell::Stages(_) | Tell::StreamLost(_) | Tell::Sample(_) | Tell::Clock(_))) {
                heard = now;
            }
            if self.measured.handle_answer(&incoming, now) {
                continue;
            }
            if let Some(at) = self.traces.iter().position(|asked| *asked == (incoming.end, incoming.request)) {
                self.traces.swap_remove(at);
                self.handle_trace(ends, incoming)?;
                continue;
            }
            if incoming.request != 0 {
                streams.handle_answer(incoming, &self.note, now);
                continue;
            }
            // A stream's end may be told a moment after the transfer's.
            let late = matches!(incoming.tell, Ok(Tell::StreamLost(_)));
            if !waiting.contains(&incoming.end) && first_failure.is_none() && !late {
                return Err(misbehaved(ends, incoming.end, "went on after it had said that all had ended"));
            }
            if let Some((end, failed)) = self.handle_unasked(ends, incoming, streams)? {
                waiting.retain(|waiting| *waiting != end);
                let sent_all = end == EndId::Source && failed.is_none() && first_failure.is_none();
                let failed = failed.map(|failed| self.name_failure(ends, end, &waiting, failed));
                first_failure = first_of(first_failure, failed, end.side());
                failed_at = failed_at.or_else(|| first_failure.is_some().then_some(now));
                if sent_all && !waiting.is_empty() {
                    // A receiver says that it has everything before its sender ends, so one whose sender has ended
                    // can only have a little left to do, which stopping it does not touch, however long that takes.
                    // If it has not, it fails now.
                    ends.destination.ask(Ask::Cancel)?;
                }
            }
        }
        self.record_last_fall();
        first_failure.map_or(Ok(()), Err)
    }

    /// Whether an end was lost that had said all that it had to say.
    ///
    /// # Errors
    /// When the source's end was lost while it deleted what had been copied: begun anew, it would not find it.
    fn is_told(&self, incoming: &Incoming, waiting: &[EndId]) -> Result<bool, Failure> {
        let Err(why) = &incoming.tell else { return Ok(false) };
        if self.request.options.remove_sources && waiting == [EndId::Source] && incoming.end == EndId::Source {
            let what = format!("all has been copied; the source's end was lost while it deleted files there: {why}");
            return Err(failure(ErrorCode::InputOutput, Side::Source, what).for_reason(Reason::RemovalCutShort));
        }
        Ok(!waiting.contains(&incoming.end))
    }

    /// Asks both ends for the way to the other, if that is wanted.
    fn ask_for_paths(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        self.traces.clear();
        if !self.request.options.trace {
            return Ok(());
        }
        for id in [EndId::Source, EndId::Destination] {
            let end = ends.get(id);
            let request = end.ask(Ask::Trace)?;
            self.traces.push((id, request));
        }
        Ok(())
    }

    fn handle_trace(&self, ends: &Ends, incoming: Incoming) -> Result<(), Failure> {
        let path = match incoming.tell {
            Ok(Tell::Traced(path)) => *path,
            // The transfer does not depend on it.
            Err(why) => PathTrace { why: why.to_string(), ..PathTrace::default() },
            Ok(_) => return Err(misbehaved(ends, incoming.end, "answered what was not asked")),
        };
        self.events.tell(Event::Path { side: incoming.end.side(), path });
        Ok(())
    }

    /// Names whose failure it was. A receiver that had to be stopped, because its sender was through,
    /// was waiting for the sender.
    fn name_failure(&self, ends: &Ends, end: EndId, waiting: &[EndId], failed: Failure) -> Failure {
        if end == EndId::Destination && waiting.is_empty() && failed.code == ErrorCode::Interrupted {
            return misbehaved(ends, EndId::Source, "said that all had ended before the other side had");
        }
        name_end(ends, end, failed)
    }

    /// Passes on what an end told unasked; which it is, if that was its last word, and how it ended.
    fn handle_unasked(
        &mut self,
        ends: &mut Ends,
        incoming: Incoming,
        streams: &mut Streams,
    ) -> Result<Option<(EndId, Option<Failure>)>, Failure> {
        let end = incoming.end;
        match incoming.tell? {
            Tell::Failed(refusal) => return Err(name_end(ends, end, refusal)),
            Tell::Progress(progress) if end == EndId::Source => {
                self.handle_progress(&progress, streams);
                self.events.tell(Event::Progress(progress));
            }
            Tell::Stages(stages) => {
                let change = self.tune.as_mut().and_then(|tune| tune.handle_stages(end, stages, streams));
                change.into_iter().for_each(|change| self.streams_change(change));
                let fall = self.held_back.handle_stages(end, stages.times, self.most_landed.1, Instant::now());
                // While the user thinks nothing moves.
                let fall = fall.filter(|_| !self.asking.has_asked());
                fall.into_iter().for_each(|fall| self.rate_fell(fall));
                // Within a process there is none: each side then waits for the other's turn on the processors.
                let memory = self.report.link.as_ref().is_some_and(|link| link.kind == LinkKind::Memory);
                let overall = self.held_back.overall();
                self.report.limit = overall.filter(|limit| !(memory && limit.stage == Stage::Network));
            }
            Tell::Sample(sample) => {
                let told = self.measured.handle_sample(end, *sample, Instant::now());
                self.events.tell(Event::Sample(Box::new(told)));
                self.tell_steps(false);
            }
            Tell::InFlight(list) if end == EndId::Source && self.request.options.items_in_flight => {
                let refused = |error| ends.at(end).misbehaved(&error);
                list.iter().try_for_each(|item| self.check_path(&item.path)).map_err(refused)?;
                self.events.tell(Event::InFlight(list));
            }
            Tell::InFlight(_) => return Err(misbehaved(ends, end, "told of files in flight, which was not asked")),
            Tell::Items(items) if items.iter().all(|item| teller(&item.outcome) == end) => {
                let refused = |error| ends.at(end).misbehaved(&error);
                items.iter().try_for_each(|item| self.check_item(item)).map_err(refused)?;
                items.into_iter().for_each(|item| self.handle_item(item));
            }
            Tell::Items(_) => return Err(misbehaved(ends, end, "told of items, which only the other side does")),
            Tell::Changes(changes) if end == EndId::Destination && self.request.options.item_changes => {
                let refused = |error| ends.at(end).misbehaved(&error);
                changes.iter().try_for_each(|change| self.check_change(change)).map_err(refused)?;
                changes.into_iter().for_each(|change| self.tell_slowly(Event::Changed(change)));
            }
            Tell::Changes(_) => return Err(misbehaved(ends, end, "told of changes, which nobody had asked it for")),
            Tell::StreamLost(lost) if end == EndId::Source => {
                let now = Instant::now();
                let what = if lost.failure.is_none() { Happened::StreamRetired } else { Happened::StreamLost };
                self.measured.mark(what, now);
                self.events.tell(Event::StreamEnded { failure: lost.failure.clone() });
                streams.handle_stream_lost(lost, now);
            }
            Tell::Deletion(extent) if end == EndId::Destination => self.ask_user(ends, extent)?,
            Tell::Ended(ended) => return Ok(Some((end, self.handle_ended(ends, end, *ended)))),
            _ => {}
        }
        Ok(None)
    }

    fn streams_change(&mut self, change: Change) {
        self.known.iter_mut().for_each(|known| known.found = self.tune.as_ref().map(Tune::best));
        self.measured.mark(Happened::Streams { before: change.before, streams: change.streams }, Instant::now());
        self.report.link.iter_mut().for_each(|link| link.streams = change.streams);
        self.events.tell(Event::Streams(change));
    }

    fn rate_fell(&mut self, fall: RateFall) {
        let now = Instant::now();
        // Stretches are long: the samples know in which second it was.
        let fall = match self.measured.fall(KNOWN_BEFORE_SECONDS, now) {
            Some((over, step)) => RateFall { rate: step.after, usual: step.before, over, ..fall },
            None => fall,
        };
        let fall = self.mark_fall(fall, now);
        self.events.tell(Event::Note(held_back::words(&fall)));
        self.events.tell(Event::RateFell(fall));
    }

    /// Marks a fall where it was; the fall with what held the copy back since.
    fn mark_fall(&mut self, fall: RateFall, now: Instant) -> RateFall {
        let (link, is_reader) =
            (self.report.link.as_ref(), fall.limit.is_some_and(|limit| limit.stage == Stage::Reader));
        let measured = link.filter(|_| !is_reader).and_then(|link| {
            let memory = link.kind == LinkKind::Memory;
            self.measured.verdict(Some(fall.over), memory, now)
        });
        // What was as slow as asked for is not told at all.
        let measured = measured.map(|verdict| verdict.limit).filter(|limit| limit.stage != Stage::RateLimit);
        let (rate, usual) = (fall.rate as u64, fall.usual as u64);
        let at = now.checked_sub(fall.over).unwrap_or(now);
        self.measured.mark(Happened::RateFell { rate, usual }, at);
        self.fell_at = Some(at);
        RateFall { limit: measured.or(fall.limit), ..fall }
    }

    /// A fall that came too late for a whole stretch is part of what is recorded, and no news any more.
    fn record_last_fall(&mut self) {
        let now = Instant::now();
        let Some((over, step)) = self.measured.fall(BEFORE_SECONDS, now) else { return };
        let at = now.checked_sub(over).unwrap_or(now);
        let is_told = self.fell_at.is_some_and(|told| told + SAME_FALL > at);
        let is_as_asked = self.held_back.overall().is_some_and(|limit| limit.stage == Stage::RateLimit);
        if !is_told && !is_as_asked {
            let fall = RateFall { rate: step.after, usual: step.before, over, limit: None };
            let fall = self.mark_fall(fall, now);
            self.events.tell(Event::RateFell(fall));
        }
    }

    fn handle_progress(&mut self, progress: &Progress, streams: &mut Streams) {
        self.tune.iter_mut().for_each(|tune| tune.handle_progress(progress));
        let (files, bytes) = (progress.files_done, progress.bytes_done);
        streams.handle_landed((files, bytes));
        let further = (self.most_landed.0.max(files), self.most_landed.1.max(bytes));
        if further != self.most_landed {
            self.most_landed = further;
            self.attempts.handle_gain();
        }
    }

    /// An item's path goes into lists that other commands read: it must be one that was to be copied. What has no path
    /// of its own, the content of a directory, can only have failed.
    fn check_item(&self, item: &ItemReport) -> Result<(), ProtocolError> {
        if item.path.is_empty() && matches!(item.outcome, Outcome::Failed(_)) {
            return Ok(());
        }
        self.check_path(&item.path)
    }

    /// As [`Self::check_item`]. The destination itself may be made or changed, too.
    fn check_change(&self, change: &ItemChange) -> Result<(), ProtocolError> {
        if change.path.is_empty() && change.kind == ItemKind::Directory && change.done != Done::Deleted {
            return self.expected.check(b"");
        }
        self.check_path(&change.path)
    }

    fn check_path(&self, path: &[u8]) -> Result<(), ProtocolError> {
        check_relative(path).map_err(|error| ProtocolError::path(path, error))?;
        self.expected.check(path)
    }

    fn handle_item(&mut self, item: ItemReport) {
        if let Outcome::Failed(failure) = &item.outcome {
            self.keep_failure(&item.path, failure);
        }
        self.tell_slowly(Event::Item(item));
    }

    /// Whoever reads of it may be slow: that is waited for here.
    pub(super) fn tell_slowly(&mut self, event: Event) {
        let began = Instant::now();
        self.events.tell(event);
        self.held_back.read_in(began.elapsed());
    }

    /// Names that may be gone are told as failures of their items, after all that the sender has told of these.
    fn keep_unsynced(&mut self, ended: &Ended) -> Result<(), ProtocolError> {
        let why = "had got its name when a sync failed, and may be gone, or not whole";
        self.unsynced_count = ended.unsynced.count.max(ended.unsynced.paths.len() as u64);
        for path in &ended.unsynced.paths {
            let outcome = Outcome::Failed(failure(ErrorCode::InputOutput, Side::Destination, why));
            let (kind, digests) = (ItemKind::File, FileDigests::default());
            let item = ItemReport { path: path.clone(), kind, size: 0, digests, judgment: None, outcome };
            self.check_item(&item)?;
            self.unsynced.push(item);
        }
        Ok(())
    }

    /// See [`Self::keep_unsynced`]: when both ends have ended, or are not waited for. The sender has counted them as
    /// done.
    pub(super) fn tell_unsynced(&mut self) {
        let count = std::mem::take(&mut self.unsynced_count);
        let counts = &mut self.report.counts;
        let files = counts.files.min(count);
        counts.files -= files;
        counts.symlinks = counts.symlinks.saturating_sub(count - files);
        add(&mut counts.files_failed, count);
        std::mem::take(&mut self.unsynced).into_iter().for_each(|item| self.handle_item(item));
    }

    fn handle_ended(&mut self, ends: &Ends, end: EndId, ended: Ended) -> Option<Failure> {
        if end == EndId::Destination
            && let Err(error) = self.keep_unsynced(&ended)
        {
            return Some(ends.destination.misbehaved(&error));
        }
        let report = &mut *self.report;
        // They add up over the sessions of a run.
        report.faults = report.faults.plus(&ended.faults.told_by(end.side()));
        report.undeleted = ended.undeleted.or(report.undeleted.take());
        if end == EndId::Source {
            report.counts = ended.counts;
            report.durable = report.durable.map(|_| ended.durable);
        } else {
            self.is_deleting = false;
            report.unkept_permissions = ended.unkept_permissions;
            report.unkept_directories = ended.unkept_directories;
            report.unkept_times = ended.unkept_times;
            let files_not_read_back =
                report.at_destination.files_not_read_back.max(ended.at_destination.files_not_read_back);
            let sum = report.at_destination.plus(&ended.at_destination);
            report.at_destination = DestinationCounts { files_not_read_back, ..sum };
            report.unfinished = ended.unfinished;
        }
        unkept_attributes(report, ended.unkept_attributes);
        ended.failure
    }

    pub(super) fn keep_failure(&mut self, path: &[u8], failure: &Failure) {
        if self.report.failures.len() < limits::FAILURES_TOLD {
            self.report.failures.push(ItemFailure { path: path.to_vec(), failure: failure.clone() });
        }
    }
}

/// The failure of a session in which both ends failed: mostly the second follows from the first. But where a connection
/// was lost, the other end may be the one that knows why; and what failed at the side of the second, it tells best
/// itself.
fn first_of(first: Option<Failure>, second: Option<Failure>, side_of_second: Side) -> Option<Failure> {
    let knows_why = |second: &Failure| second.reason.is_some() && !second.code.may_pass();
    match (first, second) {
        (Some(first), Some(second)) if first.code.may_pass() && knows_why(&second) => Some(second),
        (Some(first), Some(second)) if [first.side, second.side] == [side_of_second; 2] => Some(second),
        (first, second) => first.or(second),
    }
}

/// The end that tells of an item.
fn teller(outcome: &Outcome) -> EndId {
    match outcome {
        Outcome::Deleted | Outcome::ToDelete => EndId::Destination,
        _ => EndId::Source,
    }
}

/// They add up over the sessions of a run.
fn unkept_attributes(report: &mut Report, told: Option<UnkeptAttributes>) {
    let Some(told) = told else { return };
    match &mut report.unkept_attributes {
        Some(so_far) => so_far.add(told),
        None => report.unkept_attributes = Some(told),
    }
}

/// What a peer counts may be any number.
pub(super) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_of_a_side_is_told_by_its_own_end_whichever_comes_first() {
        let of = |side, why: &str| Some(failure(ErrorCode::Usage, side, why));
        let why = |first, second, side| first_of(first, second, side).map(|failure| failure.why);
        let (passed_on, own) = (of(Side::Source, "passed on"), of(Side::Source, "own"));
        assert_eq!(why(passed_on.clone(), own.clone(), Side::Source).as_deref(), Some("own"));
        assert_eq!(why(own.clone(), passed_on, Side::Destination).as_deref(), Some("own"));
        let follows = of(Side::Link, "follows from it");
        assert_eq!(why(own, follows, Side::Destination).as_deref(), Some("own"));
    }
}
