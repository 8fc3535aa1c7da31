//! A run: sessions one after the other, until one has done what was asked for or nothing is tried again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::report::{ErrorCode, Event, Failure, Report};
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_core::timeline::Happened;
use carrack_core::wire::control::SessionKey;
use carrack_core::wire::expected::Expected;

use super::Copying;
use super::asking::Asking;
use super::attempts::{Attempts, jittered};
use super::events::Events;
use super::held_back::HeldBack;
use super::known::Known;
use super::measured::Measured;
use crate::context::{Context, check_tuning};
use crate::end::{Inbox, Note};
use crate::error::failure;
use crate::stop::Until;

/// What is known of a copy before it has begun.
pub(super) fn new_report(options: &CopyOptions) -> Report {
    Report {
        verify: Some(options.verify),
        digest: options.digest.main,
        encrypt: Some(options.encrypt),
        references: options.references.clone(),
        existing: Some(options.existing),
        durability: Some(options.durability),
        ..Report::default()
    }
}

/// Carries out a request. Failures of items are in the report, and so is the error that ended the whole early, if
/// one did.
pub(super) fn run(
    request: &CopyRequest,
    context: &Context,
    events: &Arc<Events>,
    start: Instant,
    until: Until,
) -> Report {
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
        is_deleting: false,
        untold_deletion: false,
        last: None,
        most_landed: (0, 0),
        unsynced: Vec::new(),
        unsynced_count: 0,
        held_back: HeldBack::new(context.tuning.stretch, Instant::now()),
        measured: Measured::new(Arc::clone(&context.tuning), start),
        tune: None,
        known: None,
        expected: Expected::default(),
        asking: Asking::default(),
        traces: Vec::new(),
        fell_at: None,
    };
    let result = copying.run();
    copying.tell_absence();
    copying.keep_found();
    let timeline = copying.measured.take_timeline();
    report.timeline = Some(Arc::new(timeline));
    report.error = result.err();
    report.elapsed = start.elapsed();
    report
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

    /// Keeps what the run has found for the next copy over the same way.
    fn keep_found(&mut self) {
        if let Some((way, found)) = self.known.as_mut().and_then(Known::take_new) {
            let note = &self.note;
            self.context.tuned.keep(&way, &[found], &|text| note(text));
        }
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
                // No number of attempts would have been enough.
                _ if !self.attempts.may_pass(&why) => why,
                tried => {
                    let given_up = format!("given up after {} attempts in a row", tried + 1);
                    failure(why.code, why.side, given_up).caused_by(why)
                }
            });
        };
        self.report.faults.sessions_lost += 1;
        let pause = jittered(longest);
        let over = Instant::now() + pause;
        self.measured.mark(Happened::SessionLost, Instant::now());
        self.events.tell(Event::SessionLost { failure: why.clone(), attempt, pause });
        let why = self.last.insert(why);
        while Instant::now() < over {
            self.until.check().map_err(|error| after(error, why))?;
            let left = over.saturating_duration_since(Instant::now());
            std::thread::park_timeout(left.min(Duration::from_millis(50)));
        }
        Ok(())
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
