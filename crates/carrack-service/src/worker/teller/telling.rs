//! What a task's attempt has done so far: what its teller's thread and its work share.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use carrack_core::failure::Side;
use carrack_engine::{Stop, StopReason};

use super::super::failures::told;
use super::super::limit::{Limit as TimeLimit, Over};
use super::super::pass::{Counted, Pass, add};
use super::now;
use crate::journal::{AttemptEnd, EndCounts, EndKind, JournalError, Record, Sample, Writer};
use crate::model::{Progress, Rates, TaskFailure};

/// What the rate now is taken over.
const NOW: Duration = Duration::from_secs(5);
pub const FIVE_MINUTES: Duration = Duration::from_secs(300);

/// The state that the thread and the work share.
pub struct Telling {
    pub journal: Writer,
    pub failed: Writer,
    /// Of each pair that no pass is under way over.
    pub pairs: Vec<Option<Progress>>,
    /// The pair that a pass is over.
    pub current: Option<(u32, Pass)>,
    /// What was told last before this attempt.
    pub before: Progress,
    /// The most that was told so far: less is not shown while what is there is found again.
    pub floor: Progress,
    /// Items of each pair that count as done and could not be compared.
    pub remembered: Vec<u64>,
    /// When the attempt ends at the latest.
    pub limit: TimeLimit,
    /// Why it was ended by that.
    pub over: Option<Over>,
    /// A pair was given up before all of it was found again.
    pub lost_pair: bool,
    pub in_all: Counted,
    pub streams: u32,
    pub source: Option<EndCounts>,
    pub destination: Option<EndCounts>,
    pub limited_by: Option<String>,
    /// Bytes at the destination, for rates.
    pub rates: VecDeque<(Instant, u64)>,
    /// Time of earlier attempts.
    pub active_before: Duration,
    pub began: Instant,
    /// The first failed item's reason.
    pub first_failure: Option<TaskFailure>,
    /// Whether another attempt can help any failed item.
    pub any_can_pass: bool,
    /// Why the journal cannot be written.
    pub broken: Option<JournalError>,
    pub ended: bool,
}

impl Telling {
    /// Without a thread to tell how it goes, the attempt ends before anything is done; another may find one.
    pub fn end_at_once(&mut self, began: &Record, why: &io::Error) -> String {
        let failure = told(&carrack_engine::system_failure(Side::Command, why), b"", false);
        let end = AttemptEnd {
            time: now(),
            kind: EndKind::Failed,
            progress: self.progress(),
            failure: Some(failure),
            got_somewhere: false,
            late: false,
        };
        let written = self.journal.append(began).and_then(|()| self.journal.append(&Record::Ended(end)));
        let written = written.and_then(|()| self.journal.finish());
        written.map_or_else(|error| format!("{why}; and {error}"), |()| why.to_string())
    }

    pub fn append(&mut self, stop: &Stop, record: &Record) {
        let written = self.journal.append(record);
        self.notice(stop, written);
    }

    /// Tells how far it is.
    pub fn sample(&mut self, stop: &Stop, progress: Progress) {
        let (streams, source, destination) = (self.streams, self.source, self.destination);
        self.append(stop, &Record::Sample(Sample { time: now(), progress, streams, source, destination }));
    }

    /// Tells how far it is, at once. What could not be written is an error.
    pub fn sample_now(&mut self, stop: &Stop) -> Result<(), String> {
        let progress = self.progress();
        self.sample(stop, progress);
        self.write(stop);
        self.check_written()
    }

    /// # Errors
    /// Why the journal cannot be written.
    pub fn check_written(&self) -> Result<(), String> {
        self.broken.as_ref().map_or(Ok(()), |error| Err(error.to_string()))
    }

    pub fn write(&mut self, stop: &Stop) {
        let written = self.journal.flush().and_then(|()| self.journal.reserve());
        self.notice(stop, written);
    }

    /// A worker that can tell nothing does nothing: what it does would be done again, or twice.
    pub fn notice(&mut self, stop: &Stop, written: Result<(), JournalError>) {
        if let Err(error) = written {
            self.broken.get_or_insert(error);
            stop.request(StopReason::Cancel);
        }
    }

    pub fn note_failure(&mut self, failure: &TaskFailure) {
        let (first, any) = match &mut self.current {
            Some((_, pass)) => (&mut pass.first_failure, &mut pass.any_can_pass),
            None => (&mut self.first_failure, &mut self.any_can_pass),
        };
        first.get_or_insert_with(|| failure.clone());
        *any |= failure.retryable;
    }

    /// Ends the pass under way; its failures are the attempt's.
    pub fn take_current(&mut self) -> Option<(u32, Pass)> {
        let (pair, mut pass) = self.current.take()?;
        self.first_failure = self.first_failure.take().or_else(|| pass.first_failure.take());
        self.any_can_pass |= pass.any_can_pass;
        Some((pair, pass))
    }

    /// What all pairs have done, the pass under way included.
    pub fn sum(&self) -> Progress {
        let mut sum = Progress { scan_complete: true, ..Progress::default() };
        for (number, pair) in self.pairs.iter().enumerate() {
            let under_way = self.current.as_ref().filter(|(pair, _)| *pair as usize == number);
            let pair = under_way.map(|(_, pass)| pass.progress()).or_else(|| pair.clone());
            sum.scan_complete &= pair.as_ref().is_some_and(|pair| pair.scan_complete);
            pair.iter().for_each(|pair| add(&mut sum, pair));
        }
        sum.limited_by.clone_from(&self.limited_by);
        self.in_all.tell(&mut sum);
        sum.items_remembered = self.remembered.iter().sum();
        sum
    }

    /// What was shown until now is not taken back.
    pub fn raise_floor(&mut self) {
        self.floor = self.progress();
    }

    /// Ends the work once its time is over.
    pub fn check_limit(&mut self, stop: &Stop) {
        if let Some(over) = self.limit.over() {
            self.over.get_or_insert(over);
            stop.request(StopReason::Cancel);
        }
    }

    pub fn progress(&self) -> Progress {
        let (mut sum, floor) = (self.sum(), &self.floor);
        let fields = [
            (&mut sum.items_total, floor.items_total),
            (&mut sum.items_done, floor.items_done),
            (&mut sum.items_skipped, floor.items_skipped),
            (&mut sum.bytes_total, floor.bytes_total),
            (&mut sum.bytes_moved, floor.bytes_moved),
            (&mut sum.bytes_verified, floor.bytes_verified),
        ];
        fields.into_iter().for_each(|(field, floor)| *field = floor.max(*field));
        sum.rates = self.rates(sum.bytes_moved);
        let left = sum.bytes_total.saturating_sub(sum.bytes_moved + sum.bytes_skipped) as f64;
        let rate = sum.rates.five_minutes;
        sum.eta_seconds = (sum.scan_complete && rate > 0.0).then(|| (left / rate).ceil() as u64);
        sum
    }

    fn rates(&self, bytes: u64) -> Rates {
        let now = Instant::now();
        let over = |window: Duration| {
            let first = self.rates.iter().find(|(at, _)| now.duration_since(*at) <= window);
            first.map_or(0.0, |(at, then)| rate(bytes.saturating_sub(*then), now.duration_since(*at)))
        };
        let active = self.active_before + self.began.elapsed();
        Rates { now: over(NOW), five_minutes: over(FIVE_MINUTES), all: rate(bytes, active) }
    }
}

fn rate(bytes: u64, time: Duration) -> f64 {
    // Of a shorter time nothing can be said.
    if time < Duration::from_millis(100) { 0.0 } else { bytes as f64 / time.as_secs_f64() }
}
