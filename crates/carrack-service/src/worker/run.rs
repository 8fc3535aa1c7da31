//! An attempt from its order to its end.

use std::io::Read;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::request::Reach;
use carrack_engine::Context;
use rustix::process::{nice, setsid};

use super::attempt::Attempt;
use super::called::Called;
use super::ends::{self, OpenEnd};
use super::failures::{can_pass, is_source_error, told};
use super::history::History;
use super::in_flight::InFlightFile;
use super::limit::{Limit, Over};
use super::lock::Lock;
use super::look;
use super::markers::Markers;
use super::order::{Order, PairOrder};
use super::pass::Counted;
use super::teller::{Teller, now};
use super::visits::PairVisits;
use super::{checking, copying, planning, removal};
use crate::journal::{EndKind, Item, Record, Recovered, Writer};
use crate::model::{EventKind, ItemState, TaskFailure, TaskKind, keep_out_of_cores};
use carrack_core::report::ItemKind;

/// Exit codes: the command line's, where they mean the same.
const DONE: u8 = 0;
const OTHER: u8 = 1;
const USAGE: u8 = 2;
const PARTIAL: u8 = 23;
const STOPPED: u8 = 75;

/// An order that is longer is none.
const ORDER_BYTES_MAX: u64 = 1 << 30;
/// Passes over a pair after which items that failed are not tried again by themselves.
const PASSES: u32 = 3;
/// How long a worker that was not born with the lock waits for it.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// What a worker is given by its process.
pub struct Means<'a> {
    /// What the engine works with. Its `stop` ends the attempt in good order.
    pub context: Context,
    /// How hosts are reached.
    pub reach: Reach,
    /// Where the order comes from, as one JSON document and nothing behind it.
    pub input: &'a mut dyn Read,
    /// Standard output: the task's lock, where the service has started the worker.
    pub output: BorrowedFd<'a>,
}

/// Carries out the attempt that standard input orders, and answers with the exit code of the process.
pub fn run(means: Means<'_>) -> u8 {
    let order = match prepare(means.input) {
        Ok(order) => order,
        Err(why) => return complain(USAGE, &why),
    };
    super::give_up_rights(order.pairs.iter().flat_map(PairOrder::ends));
    super::go_first();
    if order.nice > 0
        && let Err(error) = nice(i32::from(order.nice))
    {
        // The system's refusal costs nobody the task.
        complain(OTHER, &format!("its priority cannot be lowered: {error}"));
    }
    let lock = match take_lock(&order, means.output) {
        Ok(lock) => lock,
        Err(why) => return complain(OTHER, &why),
    };
    let stop = means.context.stop.child();
    let context = Context { stop, ..means.context };
    let code = match begin(&order, &lock, context, means.reach) {
        Ok(attempt) => attempt.carry_out(),
        Err(why) => complain(OTHER, &why),
    };
    drop(lock);
    code
}

/// For the task's log: what went wrong before, or with, the journal.
fn complain(code: u8, why: &str) -> u8 {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "worker: {why}");
    code
}

fn prepare(input: &mut dyn Read) -> Result<Order, String> {
    // Before there is a secret: no core holds one, and nobody else of this account reads this process's memory.
    keep_out_of_cores().map_err(|error| format!("secrets cannot be kept out of core dumps: {error}"))?;
    // The end of the service, or of its terminal, is none of the worker's. It fails where it is so already.
    let _ = setsid();
    let mut text = Vec::new();
    let read = input.take(ORDER_BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| format!("the order on standard input cannot be read: {error}"))?;
    // What is wrong with it is told without its text: that has secrets.
    serde_json::from_slice(&text)
        .map_err(|error| format!("standard input holds no order: line {}, column {}", error.line(), error.column()))
}

fn take_lock(order: &Order, output: BorrowedFd<'_>) -> Result<Lock, String> {
    let directory = &order.directory;
    let failed = |error| format!("{}: the lock: {error}", directory.display());
    if let Some(lock) = Lock::inherited(directory, output).map_err(failed)? {
        return Ok(lock);
    }
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match Lock::take(directory).map_err(failed)? {
            Some(lock) => return Ok(lock),
            None if Instant::now() >= until => {
                return Err(format!("{}: another worker carries out the task", directory.display()));
            }
            None => std::thread::park_timeout(Duration::from_millis(100)),
        }
    }
}

fn begin<'a>(order: &'a Order, lock: &Lock, context: Context, reach: Reach) -> Result<Attempt<'a>, String> {
    let told = |error: crate::journal::JournalError| error.to_string();
    let is_expected = |path: &[u8]| std::str::from_utf8(path).is_ok_and(|path| order.expect_digests.contains_key(path));
    let (history, recovered) = History::read(&order.directory, &is_expected).map_err(told)?;
    if history.fence >= order.fence {
        let (own, later) = (order.fence, history.fence);
        return Err(format!("attempt {own} has been overtaken by attempt {later}, and does nothing"));
    }
    let process = std::process::id();
    lock.sign(process, order.fence).map_err(|error| format!("{}: the lock: {error}", order.directory.display()))?;
    let mut journal = Writer::open(&recovered).map_err(told)?;
    journal.reserve().map_err(told)?;
    let failed = Writer::begin_failed(&order.directory).map_err(told)?;
    let program = env!("CARGO_PKG_VERSION").to_owned();
    let began = Record::Began { fence: order.fence, time: now(), process, program };
    let teller =
        Teller::start((journal, failed), &history, order.pairs.len(), Limit::of(order), context.stop.clone(), &began)?;
    tell_recovered(&teller, &recovered);
    let markers = Markers::load(&order.directory)?;
    let reached = history.reached;
    let ended: u64 = history.pairs.values().map(|pair| pair.progress.bytes_moved).sum();
    let open_bytes = history.progress.bytes_moved.saturating_sub(ended);
    Ok(Attempt {
        order,
        context,
        history,
        teller,
        in_flight: InFlightFile::begin(&order.directory, order.fence),
        reach,
        markers,
        open_bytes,
        reached,
        called: Called::default(),
        visits: PairVisits::default(),
        fatal: None,
        held: None,
        passing: None,
    })
}

fn tell_recovered(teller: &Teller, recovered: &Recovered) {
    if recovered.cut_bytes == 0 {
        return;
    }
    let mut text = format!("the last {} bytes of the journal were torn, and are cut off", recovered.cut_bytes);
    if let Some(aside) = &recovered.kept_aside {
        text = format!("a record of the journal is damaged; it and what stood behind it is in {}", aside.display());
    }
    teller.event(EventKind::Fault, text, serde_json::json!({ "cut_bytes": recovered.cut_bytes }));
}

impl Attempt<'_> {
    fn carry_out(mut self) -> u8 {
        let order = self.order;
        for (number, pair) in (0..).zip(&order.pairs) {
            if self.check_limit().is_some() || self.is_over() {
                break;
            }
            self.work(number, pair);
            if order.kind == TaskKind::Delete {
                continue;
            }
            // What was read may be many; it is of no use to the pairs that follow.
            if let Some(history) = self.history.pairs.get_mut(&number) {
                history.told = super::history::Told::default();
            }
        }
        if !self.is_over() && self.passing.is_none() {
            if !self.order.preview {
                self.tell_unseen();
            }
            look::digests_compared(&self.order.directory);
            // What is not there any more was sent again.
            let resent = Counted { bytes_resent: self.open_bytes, ..Counted::default() };
            self.teller.counted_in_all(resent);
        }
        self.end()
    }

    fn work(&mut self, number: u32, pair: &PairOrder) {
        self.called = Called::of(pair);
        self.visits.begin(pair, self.order.kind);
        let place = pair.place();
        let opened = self.open(pair);
        if let Ok((source, destination)) = &opened {
            self.called.opened(source, destination.as_ref());
        }
        let result = opened.and_then(|(source, destination)| match (self.order.kind, destination) {
            (TaskKind::Delete, _) => removal::delete(self, number, &place, &source),
            (TaskKind::Check, Some(destination)) => checking::check(self, number, &place, &source, &destination),
            (_, Some(destination)) if self.order.preview => {
                planning::preview(self, number, &place, &source, &destination)
            }
            (_, Some(destination)) => copying::copy(self, number, &place, &source, &destination),
            (_, None) => Err(Failure::new(ErrorCode::Usage, Side::Destination, "the pair names no destination")),
        });
        if let Err(why) = result {
            self.lose_pair(number, pair, &why);
        }
    }

    fn open(&self, pair: &PairOrder) -> Result<(OpenEnd, Option<OpenEnd>), Failure> {
        let source = ends::open(&pair.source, Side::Source, &self.reach)?;
        let destination = pair.destination.as_ref().map(|end| ends::open(end, Side::Destination, &self.reach));
        let destination = destination.transpose()?;
        ends::check_may_change(self.order.kind, &source, destination.as_ref())?;
        Ok((source, destination))
    }

    /// A pair has come to an early end. Where that can pass, a later attempt goes on with it; else it has failed, and
    /// holds up none of the others.
    fn lose_pair(&mut self, number: u32, pair: &PairOrder, why: &Failure) {
        if self.is_over() {
            self.check_limit();
            self.teller.leave_pass();
            return;
        }
        self.visits.failed(why);
        if can_pass(why, self.reached) {
            let failure = self.told(why, b"");
            self.teller.event(EventKind::Fault, failure.why.clone(), serde_json::json!({ "pair": number }));
            self.passing.get_or_insert(failure);
            self.teller.leave_pass();
            return;
        }
        // What was told of it stays, and so does the place that this was told of.
        let history = self.history.pairs.entry(number).or_default();
        let place = if history.place.is_empty() { pair.place() } else { history.place.clone() };
        let before = history.progress.clone();
        self.teller.begin_pass(number, &place, before);
        let skipped = self.order.skip_source_errors && is_source_error(why);
        let state = if skipped { ItemState::Skipped } else { ItemState::Failed };
        let failure = Some(self.told(why, &ends::name(pair)));
        // Without a path of its own: a later pass is over the whole pair.
        let item = Item { pair: number, path: Vec::new(), kind: ItemKind::File, state, size: 0, digest: None, failure };
        self.teller.item(item, false, false);
        self.teller.lose_pair();
    }

    /// Files whose digests were expected, and that no pair has: nobody knows what they are.
    fn tell_unseen(&mut self) {
        for path in self.order.expect_digests.keys() {
            if self.history.expected_seen.contains(path.as_bytes()) {
                continue;
            }
            let why = Failure::new(ErrorCode::NotFound, Side::Source, "its digest was expected, and it was not copied");
            let failure = Some(told(&why, path.as_bytes(), self.reached));
            let (path, kind, state) = (path.clone().into_bytes(), ItemKind::File, ItemState::Failed);
            self.teller.item(Item { pair: 0, path, kind, state, size: 0, digest: None, failure }, false, false);
        }
    }

    fn end(mut self) -> u8 {
        let over = self.check_limit();
        let (first, any_can_pass) = self.teller.failures();
        let few = self.history.pairs.values().all(|pair| pair.passes + 1 < PASSES);
        let (kind, failure) = if let Some((why, full)) = self.teller.broken() {
            let code = if full { ErrorCode::NoSpace } else { ErrorCode::InputOutput };
            let failure = told(&Failure::new(code, Side::Command, why), b"", self.reached);
            (EndKind::Failed, Some(TaskFailure { retryable: true, ..failure }))
        } else if let Some(fatal) = &self.fatal {
            (EndKind::Failed, Some(TaskFailure { retryable: false, ..told(fatal, b"", self.reached) }))
        } else if self.context.stop.requested().is_some() {
            (EndKind::Stopped, None)
        } else if let Some(held) = self.held.take() {
            (EndKind::Held, Some(held))
        } else if let Some(passing) = self.passing.take() {
            (EndKind::Failed, Some(passing))
        } else if any_can_pass && few {
            (EndKind::Failed, first.map(|first| TaskFailure { retryable: true, ..first }))
        } else {
            (EndKind::Done, first)
        };
        for visit in self.visits.take() {
            self.teller.record(&Record::Visited(visit));
        }
        let code = match (kind, &failure) {
            (EndKind::Done, None) => DONE,
            (EndKind::Done, Some(_)) => PARTIAL,
            (EndKind::Stopped, _) => STOPPED,
            (EndKind::Failed | EndKind::Held, _) => OTHER,
        };
        let is_late = over == Some(Over::Deadline)
            && self.fatal.as_ref().is_some_and(|why| why.code == ErrorCode::DeadlinePassed);
        match self.teller.end(kind, failure, is_late) {
            Ok(()) => code,
            Err(error) => complain(OTHER, &error.to_string()),
        }
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
