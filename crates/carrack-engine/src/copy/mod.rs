//! A whole request: bring up an end for the sources and one for the destination, settle where everything goes, connect
//! the two, let them work, and report. The bytes go straight between the ends; the command watches.

mod attempts;
mod begin;
mod connect;
mod dry_run;
mod ends;
mod events;
mod handle;
mod held_back;
mod open;
mod resolve;
mod streams;
mod tune;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::report::{ErrorCode, Event, Failure, Report};
use carrack_core::request::{CopyOptions, CopyRequest, Encrypt, LinkKind, LinkSet, MainDigest, Verify};
use carrack_core::wire::control::{Ask, SessionKey, Sink};
use carrack_core::wire::expected::Expected;

use crate::context::{Context, check_tuning};
use crate::end::{End, EndId, Inbox, Note};
use crate::error::failure;
use crate::stop::Until;
use crate::storage::place::Place;
use attempts::{Attempts, jittered};
use connect::Connecting;
use ends::Ends;
use events::Events;
pub use handle::{Copy, Handle};
use held_back::HeldBack;
use open::check_overlaps;
use resolve::Plan;
use streams::Streams;
use tune::Tune;

/// What is said where a source may grow, unless it is read twice.
const GROWING: &str = "a source that is overwritten in place, not appended to, is not noticed where sources may grow; to verify by \
                       reading the source once more notices it";

/// What is said before the first byte where the data goes in the clear, and nothing that cannot be forged covers its
/// content. Both were asked for; that one takes away what the other counts on may not be known.
fn forgeable(request: &CopyRequest) -> Option<String> {
    let options = &request.options;
    let why = match options.digest.main {
        Some(MainDigest::Blake3) => return None,
        Some(MainDigest::Xxh128) => "xxh128 finds accidents only",
        None => "there is no digest of it",
    };
    let clear = options.encrypt == Encrypt::None && options.links != LinkSet::only(LinkKind::Tunnel);
    clear.then(|| {
        format!(
            "the data goes in the clear, and {why}: whoever is on the path could alter content and nobody would notice; \
             encryption or BLAKE3 would show it"
        )
    })
}

/// What is known of a copy before it has begun.
fn new_report(options: &CopyOptions) -> Report {
    Report {
        verify: Some(options.verify),
        digest: options.digest.main,
        encrypt: Some(options.encrypt),
        durability: Some(options.durability),
        ..Report::default()
    }
}

/// Carries out a request. Failures of items are in the report, and so is the error that ended the whole early, if
/// one did.
fn run(request: &CopyRequest, context: &Context, events: &Arc<Events>, start: Instant, until: Until) -> Report {
    let options = &request.options;
    let mut report = new_report(options);
    // Notes come from the threads that read ssh's messages, too. One that still waits for a host when the
    // run has ended tells nobody.
    let telling = Arc::clone(events);
    let note: Note = Arc::new(move |text| telling.tell(Event::Note(text)));
    let mut copying = Copying {
        request,
        context,
        events,
        note,
        inbox: Inbox::default(),
        report: &mut report,
        plan: None,
        key: SessionKey { id: [0; 16], secret: [0; 32], encrypt: options.encrypt },
        attempts: Attempts::new(options, Arc::clone(&context.tuning), start),
        until,
        session: 0,
        used_up: None,
        last: None,
        most_landed: (0, 0),
        held_back: HeldBack::new(context.tuning.stretch, Instant::now()),
        tune: None,
        found: None,
        expected: Expected::default(),
    };
    let result = copying.run();
    report.error = result.err();
    report.elapsed = start.elapsed();
    report
}

/// The state of one run of a copy, over all its attempts.
struct Copying<'a> {
    request: &'a CopyRequest,
    context: &'a Context,
    events: &'a Events,
    note: Note,
    inbox: Inbox,
    report: &'a mut Report,
    /// What the first session settled: the second finds other things at the destination, but was asked for the same.
    plan: Option<Plan>,
    /// The session's.
    key: SessionKey,
    attempts: Attempts,
    /// When the run is given up.
    until: Until,
    /// Sessions before this one.
    session: u32,
    /// What has been used up, so that there can be no other session.
    used_up: Option<&'static str>,
    /// Why the last session was lost.
    last: Option<Failure>,
    /// The most items and bytes that any session had at the destination.
    most_landed: (u64, u64),
    held_back: HeldBack,
    /// Finds out how many streams are best, where that is not settled.
    tune: Option<Tune>,
    /// What it has found in this run.
    found: Option<u16>,
    /// Which items the source may tell of.
    expected: Expected,
}

impl Copying<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        check_tuning(&self.context.tuning)?;
        while let Err(why) = self.session() {
            // What was lost because the command has to end says nothing of why it ends.
            let told = self.until.check().err().filter(|_| why.code.may_pass());
            self.pause_after(told.unwrap_or(why))?;
            self.session += 1;
        }
        Ok(())
    }

    /// Waits before the next session.
    ///
    /// # Errors
    /// Why the run ends, if there will be none.
    fn pause_after(&mut self, why: Failure) -> Result<(), Failure> {
        if matches!(why.code, ErrorCode::Interrupted | ErrorCode::Terminated | ErrorCode::DeadlinePassed) {
            let last = self.last.as_ref().filter(|_| self.attempts.in_a_row() > 0);
            return Err(last.map_or(why.clone(), |last| after(why, last)));
        }
        if let (Some(used_up), true) = (self.used_up, why.code.may_pass()) {
            return Err(failure(why.code, why.side, format!("{used_up}, so nothing is tried again")).caused_by(why));
        }
        let Some((attempt, longest)) = self.attempts.next(&why, Instant::now()) else {
            return Err(match self.attempts.in_a_row() {
                0 => why,
                tried => {
                    let given_up = format!("given up after {} attempts in a row", tried + 1);
                    failure(why.code, why.side, given_up).caused_by(why)
                }
            });
        };
        self.report.faults.sessions_lost += 1;
        let pause = jittered(longest);
        let over = Instant::now() + pause;
        self.events.tell(Event::SessionLost { failure: why.clone(), attempt, pause });
        let why = self.last.insert(why);
        while Instant::now() < over {
            self.until.check().map_err(|error| after(error, why))?;
            let left = over.saturating_duration_since(Instant::now());
            std::thread::park_timeout(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }

    fn session(&mut self) -> Result<(), Failure> {
        // What the ends of the session before may still say goes nowhere.
        self.inbox = Inbox::until(self.until.clone());
        self.start_over();
        let mut ends = self.open_ends()?;
        let result = self.run_with(&mut ends);
        if result.is_err() {
            self.cancel(&mut ends);
        }
        ends.close();
        result
    }

    /// A session tells everything itself.
    fn start_over(&mut self) {
        self.report.failures.clear();
        (self.report.unkept_permissions, self.report.unkept_times) = (None, None);
        self.report.unkept_attributes = None;
        if self.request.options.dry_run {
            let report = &mut *self.report;
            (report.files, report.symlinks, report.directories, report.bytes) = (0, 0, 0, 0);
            (report.files_failed, report.specials_skipped, report.leftovers_skipped) = (0, 0, 0);
        }
    }

    fn run_with(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => {
                let mut plan = resolve::resolve(self.request, ends, &mut self.inbox, &self.note)?;
                if let Some(Place::Stored(_, store)) = self.context.stores.of(&self.request.destination)?
                    && let Some(bytes) = store.properties().block_bytes
                {
                    plan.block_bytes = plan.block_bytes.clamp(bytes.smallest, bytes.largest);
                }
                let sources = self.request.sources.iter().map(ToString::to_string).collect();
                self.events.tell(Event::Resolved { sources, targets: plan.shown.clone() });
                plan
            }
        };
        let plan = self.plan.insert(plan).clone();
        self.expected = Expected::new(plan.targets());
        let selection = self.selection(&plan)?;
        if self.request.options.dry_run {
            self.select_overlapping(&plan, selection.as_ref(), ends)?;
            return self.count(&plan, selection, &mut ends.source);
        }
        self.check_versions(ends)?;
        check_overlaps(&plan, &ends.source)?;
        let told = forgeable(self.request).filter(|_| self.session == 0 && !ends.are_here());
        told.into_iter().for_each(|note| self.events.tell(Event::Note(note)));
        self.report.durable = (plan.sink == Sink::Files).then_some(false);
        ends.source.introduce(&ends.destination);
        let begun = self.begin_receiving(&plan, ends)?;
        let (request, key) = (self.request, self.key.clone());
        let link = Connecting::start(request, &plan, key, &self.note, ends, &mut self.inbox)?;
        // While connections are made, the sender looks at its files and offers them. What can be read only once is not
        // touched before there is a way for it.
        let early = plan.single_use().is_none();
        if early {
            self.begin_sending(&plan, selection.as_ref(), begun, ends)?;
        }
        let link = link.finish(self.found, ends, &mut self.inbox)?;
        self.attempts.handle_link();
        self.events.tell(Event::Linked(link.report.clone()));
        if self.request.options.allow_growing && self.request.options.verify != Verify::Source && self.session == 0 {
            self.events.tell(Event::Note(GROWING.to_owned()));
        }
        self.report.link = Some(link.report.clone());
        let moving = Instant::now();
        self.held_back.session(u64::from(plan.block_bytes) * u64::from(link.report.streams), moving);
        self.tune = Tune::new(self.request, plan.in_order, &link, ends);
        let mut streams = Streams::new(link, ends.version(), Arc::clone(&ends.tuning), moving);
        streams.work(ends, moving)?;
        if !early {
            self.begin_sending(&plan, selection.as_ref(), begun, ends)?;
        }
        let result = self.watch(ends, &mut streams);
        self.report.moving += moving.elapsed();
        self.report.limit = self.held_back.reader(self.report.moving).or(self.report.limit);
        result
    }

    /// Tells both ends to stop and clean up, and gives them a moment for it.
    fn cancel(&mut self, ends: &mut Ends) {
        [&ends.source, &ends.destination].into_iter().for_each(End::leave_soon);
        let told = [ends.source.ask(Ask::Cancel), ends.destination.ask(Ask::Cancel)];
        let deadline = Instant::now() + ends.tuning.last_words;
        for (end, request) in [EndId::Source, EndId::Destination].into_iter().zip(told) {
            let Ok(request) = request else { continue };
            // After a signal, waiting would end at once: the answers are not needed, only time to give them.
            if self.context.stop.requested().is_none() {
                let _ = self
                    .inbox
                    .wait(Some(deadline), &self.note, &|incoming| incoming.end == end && incoming.request == request);
            }
        }
    }
}

/// An end of the run, with what it was waiting for.
fn after(end: Failure, why: &Failure) -> Failure {
    if end.code != ErrorCode::DeadlinePassed {
        return end;
    }
    let whole = format!("{}, and the last attempt failed", end.why);
    Failure { why: whole, ..end }.caused_by(why.clone())
}
