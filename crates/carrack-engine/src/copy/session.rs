//! One session of a run: the ends are opened, agree on what goes where, are connected, and work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::growing::GrowingSources;
use carrack_core::report::{Counts, ErrorCode, Event, Failure, LinkReport, Side};
use carrack_core::request::{CopyRequest, Encrypt, InPlace, LinkKind, LinkSet, MainDigest, Verify};
use carrack_core::timeline::StartStep;
use carrack_core::wire::control::{Ask, Sink, Tell};
use carrack_core::wire::expected::Expected;

use super::Copying;
use super::connect::{Connecting, Link};
use super::ends::{Ends, name_end};
use super::fit::fit;
use super::ground::{check_mounted, check_same_disks};
use super::known::Known;
use super::resolve::{Plan, resolve};
use super::streams::Streams;
use super::tune::Tune;
use crate::end::{End, EndId, Inbox};
use crate::storage::place::Place;

/// A link that is away for so long is told.
const AWAY_TOLD: Duration = Duration::from_secs(5);

/// What is said before the first byte where files are written over.
const IN_PLACE: &str = "files are written over where they stand: until one is whole, its name holds a mixture of old and new, \
                        and its time is 0; run the same command again if this one does not end";

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

impl Copying<'_> {
    pub(super) fn session(&mut self) -> Result<(), Failure> {
        // What the ends of the session before may still say goes nowhere.
        self.inbox = Inbox::until(self.until.clone());
        self.start_over();
        self.measured.reach(Instant::now());
        let mut ends = self.open_ends()?;
        let result = self.run_with(&mut ends).map_err(|why| self.reason(&ends, why));
        self.asking.end();
        if result.is_err() {
            self.cancel(&mut ends);
        }
        ends.close();
        result
    }

    /// Why the session failed: an end that has ended it says so, and that its connections went is only what came of it.
    fn reason(&mut self, ends: &Ends, failed: Failure) -> Failure {
        if !failed.code.may_pass() {
            return failed;
        }
        self.inbox.last_words().map_or(failed, |(end, why)| name_end(ends, end, why))
    }

    /// A session tells everything itself.
    fn start_over(&mut self) {
        self.report.failures.clear();
        self.report.undeleted = None;
        (self.report.unkept_permissions, self.report.unkept_times) = (None, None);
        self.report.unkept_attributes = None;
        self.report.unkept_directories = Default::default();
        if self.request.options.dry_run {
            self.report.counts = Counts::default();
        }
    }

    fn tell_resolved(&self, plan: &Plan) {
        let CopyRequest { sources, destination, .. } = self.request;
        let directory = (plan.sink == Sink::Files).then(|| destination.with_path(plan.directory.clone()));
        let sources = sources.iter().map(ToString::to_string).collect();
        self.events.tell(Event::Resolved { sources, targets: plan.shown.clone(), directory });
    }

    /// What goes where: found by the first session, and looked at by the later ones.
    fn planned(&mut self, ends: &mut Ends) -> Result<Plan, Failure> {
        check_mounted(self.request, &mut ends.source, &mut self.inbox, &self.note)?;
        // The plan stays: a later session asks once more.
        if let Some(plan) = &self.plan {
            check_same_disks(self.request, ends, (&mut self.inbox, &self.note), plan)?;
        }
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => {
                let mut plan = resolve(self.request, ends, &mut self.inbox, &self.note)?;
                if let Some(Place::Stored(_, store)) = self.context.stores.of(&self.request.destination)? {
                    let notes = fit(&mut plan, &self.request.options, &store.properties())?;
                    notes.into_iter().for_each(|note| self.events.tell(Event::Note(note)));
                }
                self.tell_resolved(&plan);
                plan
            }
        };
        Ok(self.plan.insert(plan).clone())
    }

    fn run_with(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let plan = self.planned(ends)?;
        self.report.file_systems = plan.file_systems;
        self.measured.step(Side::Command, StartStep::Resolve, Instant::now());
        self.expected = Expected::new(plan.targets());
        let selection = self.selection(&plan)?;
        if self.request.options.dry_run && !self.request.options.plans() {
            return self.count(&plan, &mut ends.source);
        }
        let told = forgeable(self.request).filter(|_| self.session == 0 && !ends.are_here());
        let in_place = self.session == 0 && self.request.options.in_place != InPlace::Never;
        let told = told.into_iter().chain(in_place.then(|| IN_PLACE.to_owned()));
        told.for_each(|note| self.events.tell(Event::Note(note)));
        self.report.durable = (plan.sink == Sink::Files).then_some(false);
        self.report.unfinished_in = plan.directory.clone();
        ends.source.introduce(&ends.destination);
        let begun = self.begin_receiving(&plan, ends)?;
        let (request, key) = (self.request, self.key.clone());
        let known = match self.known.take() {
            Some(known) => known,
            None => Known::look_up(request, &plan, ends, self.context, &self.note),
        };
        let known = self.known.insert(known).clone();
        let link = Connecting::start(request, &plan, key, &self.note, &known, ends, &mut self.inbox)?;
        self.measured.step(Side::Link, StartStep::Dial, Instant::now());
        // While connections are made, the sender looks at its files and offers them. What can be read only once is not
        // touched before there is a way for it.
        let early = plan.single_use().is_none();
        // Of files that are offered the receiver says by itself what it has: the first offer does not wait for that.
        let ahead = early && plan.all_offered && !plan.may_clash();
        if early {
            self.begin_sending(&plan, selection.as_ref(), (!ahead).then_some(begun), ends)?;
        }
        let link = self.finish_link(link, ahead.then_some(begun), ends)?;
        if self.request.options.growing != GrowingSources::Refuse
            && self.request.options.verify != Verify::Source
            && self.session == 0
        {
            self.events.tell(Event::Note(GROWING.to_owned()));
        }
        self.report.link = Some(link.report.clone());
        let link_told = link.report.clone();
        let moving = Instant::now();
        self.held_back.session(u64::from(plan.block_bytes) * u64::from(link.report.streams), moving);
        let told = self.measured.session(self.session, &link, ends, moving);
        self.events.tell(Event::Ends(Box::new(told)));
        self.tune = Tune::new(self.request, plan.one_stream, &link, ends);
        let mut streams = Streams::new(link, Arc::clone(&ends.tuning), moving);
        streams.work(ends, moving)?;
        if !early {
            self.begin_sending(&plan, selection.as_ref(), Some(begun), ends)?;
        }
        let result = self.watch(ends, &mut streams);
        self.tell_unsynced();
        self.tell_steps(true);
        self.report.moving += moving.elapsed().saturating_sub(self.asking.take_thought());
        if let (Some(known), Some(found)) = (&mut self.known, self.tune.as_ref().and_then(Tune::found)) {
            known.handle_found(link_told.kind, found);
        }
        self.judge(&link_told);
        result
    }

    /// Waits until the ends are connected, and until the receiver has `begun`, if that has not been waited for. If it
    /// refuses to, that is the reason, whatever became of the connections.
    fn finish_link(&mut self, link: Connecting<'_>, begun: Option<u64>, ends: &mut Ends) -> Result<Link, Failure> {
        let link = link.finish(ends, &mut self.inbox);
        if let Some(begun) = begun {
            let by = link.is_err().then(Instant::now);
            // Of names that become one nothing has to be known where nobody asks before it sends.
            let mut answer = || ends.destination.answer_by(by, &mut self.inbox, &self.note, begun);
            let began = std::iter::from_fn(|| Some(answer())).find(|told| !matches!(told, Ok(Tell::FoldsCase)));
            match began {
                Some(Err(why)) if link.is_ok() || why.code != ErrorCode::Silence => return Err(why),
                _ => {}
            }
        }
        let link = link?;
        ends.use_prepared(&link.report);
        self.attempts.handle_link();
        self.events.tell(Event::Linked(link.report.clone()));
        Ok(link)
    }

    /// Tells the steps of the session's start, once both ends have told theirs, or when it is `over`.
    pub(super) fn tell_steps(&mut self, over: bool) {
        let session = self.session;
        let steps = self.measured.take_steps(over).into_iter();
        steps.for_each(|taken| self.events.tell(Event::Step { session, taken }));
    }

    /// What held the run back so far: by what both ends measured.
    fn judge(&mut self, link: &LinkReport) {
        let memory = link.kind == LinkKind::Memory;
        let now = Instant::now();
        let report = &mut *self.report;
        (report.limit_fact, report.limit_next) = (None, None);
        if let Some(limit) = self.held_back.reader(report.moving) {
            report.limit = Some(limit);
        } else if let Some(verdict) = self.measured.verdict(None, memory, now) {
            (report.limit, report.limit_fact, report.limit_next) = (Some(verdict.limit), verdict.fact, verdict.next);
        }
        self.measured.end_session(now);
    }

    /// Says how long nothing came through, if that was for long: nothing else tells it where it passed by itself.
    pub(super) fn tell_absence(&self) {
        let away = Duration::from_micros(self.measured.away_us());
        if away >= AWAY_TOLD {
            let seconds = away.as_secs_f64();
            self.events
                .tell(Event::Note(format!("there was no link between the hosts for {seconds:.0} s of this copy")));
        }
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
