//! Carrying out what the sender decides, and telling the command.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::report::{Counts, Failure, ItemInFlight, ItemReport, Outcome, Progress, Side};
use carrack_core::request::Verify;
use carrack_core::transfer::sender::{InFlight, Sender, SenderAction, SenderTotals};
use carrack_core::wire::control::{Ended, Tell};
use carrack_core::wire::failure_bytes;

use super::super::driver::Pump;
use super::SendRun;
use crate::data::path_watch::PathWatch;
use crate::panics::contain;
use crate::sync::lock;

/// Items told to the command in one message.
const ITEMS_PER_MESSAGE: usize = 500;
/// What an item takes in a message beside its path and its failure's text, at most: digests and numbers.
const ITEM_BYTES: usize = 256;

/// What the sending end's pump keeps from one round to the next.
struct SendPump<'a> {
    run: &'a Arc<SendRun>,
    /// Reports that wait to be told.
    items: Vec<ItemReport>,
    /// When the command was last told.
    told: Instant,
    paths: PathWatch,
    progress: Progress,
    in_flight: InFlight,
    /// The files in flight, where that is to be told.
    news: Option<Vec<ItemInFlight>>,
    totals: SenderTotals,
    /// The pump came to its end, and the totals are the transfer's.
    ended: bool,
}

impl Pump<Sender> for SendPump<'_> {
    fn prepare(&mut self) {
        self.run.cut_stuck(&mut self.paths);
    }

    fn look(&mut self, machine: &Sender, actions: &[SenderAction]) {
        (self.progress, self.totals) = (machine.progress(), machine.totals());
        self.news = self.in_flight.look(Instant::now(), machine);
        // Where reports have been taken, the scan may go on.
        if actions.iter().any(|action| matches!(action, SenderAction::Report(_))) {
            self.run.driver.wake();
        }
    }

    fn rest(&self) -> Duration {
        // In time for the next progress.
        self.run.driver.tuning.progress_interval.saturating_sub(self.told.elapsed()).max(Duration::from_millis(1))
    }

    fn carry_out(&mut self, action: SenderAction) {
        self.run.carry_out(action, &mut self.items);
    }

    fn end_round(&mut self, last: bool) {
        // In the round in which it was looked at: what is told of as ended is so before, or comes behind it.
        if let Some(list) = self.news.take() {
            (self.run.driver.voice.command)(Tell::InFlight(list));
        }
        let due = self.told.elapsed() >= self.run.driver.tuning.progress_interval;
        // The last reports go before the end is told: after it the command reads no more.
        if due || self.items.len() >= ITEMS_PER_MESSAGE || last {
            self.told = Instant::now();
            self.run.tell_command(Tell::Progress(self.progress), &mut self.items);
        }
        self.ended = last;
    }
}

impl SendRun {
    /// Pumps, and tells the command how the transfer ended.
    pub(super) fn pump(self: &Arc<Self>) {
        let mut pump = SendPump {
            run: self,
            items: Vec::new(),
            told: Instant::now(),
            paths: PathWatch::default(),
            progress: Progress::default(),
            in_flight: InFlight::default(),
            news: None,
            totals: SenderTotals::default(),
            ended: false,
        };
        let outcome = self.driver.pump_to_the_end(&mut pump);
        // After a panic nothing is known for sure.
        let totals = if pump.ended { pump.totals } else { SenderTotals::default() };
        if let Err(why) = contain(Side::Source, "the end of the transfer", || self.end(outcome, totals)) {
            self.end(Err(why), SenderTotals::default());
        }
    }

    /// Ends streams over which nothing that fills a packet gets through: they can be made with smaller ones.
    pub(super) fn cut_stuck(&self, paths: &mut PathWatch) {
        for number in paths.look(Instant::now(), &self.driver.sockets) {
            // Noted before the socket is cut: its thread ends at once and tells the command why.
            lock(&self.stuck).insert(number);
            self.driver.abort(number);
        }
    }

    pub(super) fn tell_command(&self, progress: Tell, items: &mut Vec<ItemReport>) {
        (self.driver.voice.command)(progress);
        while !items.is_empty() {
            // As many as surely fit into one message.
            let mut bytes = 0;
            let fits = items.iter().take(ITEMS_PER_MESSAGE).take_while(|item| {
                bytes += item.path.len() + words_of(&item.outcome) + ITEM_BYTES;
                bytes <= limits::MESSAGE_BYTES
            });
            // One at least, or an item with the longest texts would never go.
            let fits = fits.count().max(1);
            let rest = items.split_off(fits);
            let list = std::mem::replace(items, rest);
            (self.driver.voice.command)(Tell::Items(list));
        }
    }

    pub(super) fn carry_out(self: &Arc<Self>, action: SenderAction, items: &mut Vec<ItemReport>) {
        match action {
            SenderAction::Send(message) => {
                // A control connection that is gone ends the whole session; its reader notices.
                let _ = (self.driver.voice.peer)(&message);
            }
            SenderAction::CheckSource(item) if self.driver.options.verify == Verify::Source => {
                self.driver.queue(&self.again, item);
            }
            SenderAction::Follow(item) => self.driver.queue(&self.followed.begun, item),
            SenderAction::CheckSource(item) => {
                let source = lock(&self.sources).get(&item).cloned();
                // Size and times as they were when it was opened: a file that changed while it was sent is a mixture.
                let result = source.map_or(Ok(()), |source| source.check_unchanged());
                let result = result.and_then(|()| self.check_followed(item)).map(|()| None);
                self.driver.tell(|machine| machine.handle_source_checked(Instant::now(), item, result));
            }
            SenderAction::CloseSource(item) => {
                lock(&self.sources).remove(&item);
                self.forget_followed(item);
            }
            SenderAction::AbortStream(number) => {
                lock(&self.cut).insert(number);
                self.driver.abort(number);
            }
            SenderAction::Report(report) => items.push(*report),
            SenderAction::Copied(item) => self.note_copied(&item),
            SenderAction::RemoveSources => self.spawn("deleting sources", Self::remove_sources),
            SenderAction::ReadContent { asked, scanned, samples } => {
                self.driver.queue(&self.contents, (asked, scanned, samples));
            }
            SenderAction::LookUp { number, paths } => self.driver.queue(&self.doubts, (number, paths)),
            // The file is listed anew: what it was before would fail the same check again.
            SenderAction::Rescan { scanned, attempt } => {
                let found = self.root(&scanned).and_then(|root| root.source.look_again(&scanned));
                self.driver.tell(|machine| machine.handle_rescanned(Instant::now(), &scanned, attempt, found));
            }
        }
    }

    /// With what is counted beside the machine.
    fn counted(&self, counts: Counts) -> Counts {
        let [leftovers_skipped, bytes_compressed, bytes_compressed_to, bytes_not_shrunk] =
            [&self.own, &self.packed.plain, &self.packed.packed, &self.packed.not_shrunk]
                .map(|count| count.load(Ordering::Relaxed));
        Counts { leftovers_skipped, bytes_compressed, bytes_compressed_to, bytes_not_shrunk, ..counts }
    }

    pub(super) fn end(&self, outcome: Result<(), Failure>, totals: SenderTotals) {
        // Streams that hang in a write to a peer that takes nothing would not hear that it is over.
        if outcome.is_err() {
            self.driver.abort_all();
        }
        self.driver.wake();
        (self.driver.voice.command)(Tell::Ended(Box::new(Ended {
            counts: self.counted(totals.counts),
            faults: totals.faults.told_by(Side::Source),
            durable: totals.durable,
            undeleted: self.why_sources_stay(&outcome, totals.durable),
            failure: outcome.err(),
            ..Ended::default()
        })));
    }
}

/// Bytes of what a message says of why an item failed.
fn words_of(outcome: &Outcome) -> usize {
    if let Outcome::Failed(why) = outcome { failure_bytes(why) } else { 0 }
}
