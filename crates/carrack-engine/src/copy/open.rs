//! The beginning of a session: both ends are brought up, and must know what is asked of them.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use carrack_core::location::Location;
use carrack_core::report::{ErrorCode, Event, Failure, Reason, Side};
use carrack_sys::threads;

use super::ends::Ends;
use super::{Copying, connect, resolve};
use crate::context::Context;
use crate::end::{End, EndId};
use crate::error::{failure, system_failure};
use crate::stop::StopReason;
use crate::transfer::SourcesHere;

/// How long those are waited for that were being started when the run was given up.
const LOGINS_END_IN: Duration = Duration::from_secs(2);

impl Copying<'_> {
    /// Both ends at once: two ssh logins cost the time of one. Whoever hangs, the run can end meanwhile.
    pub(super) fn open_ends(&mut self) -> Result<Ends, Failure> {
        let options = &self.request.options;
        let first =
            self.request.sources.first().ok_or_else(|| failure(ErrorCode::Usage, Side::Command, "nothing to copy"))?;
        check_beside(first, &self.request.sources)?;
        // Each on a thread of its own, which nobody joins: a connection may hang for as long as it likes.
        let (sender, opened) = mpsc::channel();
        let opening = self.context.stop.child();
        let sources = SourcesHere::default();
        let places = [
            (EndId::Source, place_of(first), &options.source),
            (EndId::Destination, place_of(&self.request.destination), &options.destination),
        ];
        for (id, place, options) in places {
            let (sender, words, note) = (sender.clone(), self.inbox.share(), Arc::clone(&self.note));
            let sources = sources.clone();
            let (options, context) = (options.clone(), Context { stop: opening.clone(), ..self.context.clone() });
            let open = move || {
                // The run has ended meanwhile: an agent that nobody talks to would stay on its host.
                if let Err(unwanted) =
                    sender.send((id, End::open(id, &place, &options, (&context, Some(&sources)), words, &note)))
                    && let (_, Ok(end)) = unwanted.0
                {
                    end.close();
                }
            };
            if let Err(error) = threads::start("opening an end", open) {
                // What the other end is being opened with ends when nobody waits for it.
                opening.request(StopReason::Cancel);
                return Err(system_failure(Side::Command, &error));
            }
        }
        // Only the threads have one now: when both are gone without a word, receiving fails instead of waiting.
        drop(sender);
        let (mut source, mut destination) = (None, None);
        while source.is_none() || destination.is_none() {
            match opened.recv_timeout(Duration::from_millis(50)) {
                Ok((EndId::Source, end)) => source = Some(end),
                Ok((EndId::Destination, end)) => destination = Some(end),
                // A signal or the deadline ends the wait for a login.
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(why) = self.inbox.check() {
                        opening.request(StopReason::Cancel);
                        self.await_logins(&opened, [source, destination]);
                        return Err(why);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failure(ErrorCode::Internal, Side::Command, "a thread ended early"));
                }
            }
        }
        let (source, destination) = match (source, destination) {
            (Some(Ok(source)), Some(Ok(destination))) => (source, destination),
            // One end without the other is of no use, and its agent would wait for requests.
            (Some(Err(why)), other) | (other, Some(Err(why))) => {
                if let Some(Ok(end)) = other {
                    end.close();
                }
                return Err(why);
            }
            _ => return Err(failure(ErrorCode::Internal, Side::Command, "an end was not opened")),
        };
        for sent in [&source, &destination].into_iter().filter_map(|end| end.program_sent.as_ref()) {
            self.events.tell(Event::ProgramSent(sent.clone()));
        }
        let mut ends = Ends { source, destination, tuning: Arc::clone(&self.context.tuning), prepared: None };
        // Sent before the answers to the greetings are read: one round trip for both, which counts on a far path.
        let asked = self.ask_early(&mut ends);
        let (inbox, options) = (&mut self.inbox, &self.request.options);
        let greeted = asked
            .and_then(|()| ends.source.take_welcome(inbox, &options.source.reach, &self.note))
            .and_then(|()| ends.destination.take_welcome(inbox, &options.destination.reach, &self.note));
        let Err(why) = greeted else { return Ok(ends) };
        // An end that refuses says why and hangs up. The requests behind the greeting then fail at a closed connection,
        // and that is not what the user should read.
        let refusal = inbox.last_words().map(|(end, refusal)| ends.get(end).refused(refusal));
        ends.close();
        Err(refusal.unwrap_or(why))
    }

    /// Waits for a moment until every ssh has ended that was being started and is not wanted any more: the process may
    /// end next, and would leave them behind.
    fn await_logins(&self, opened: &Receiver<(EndId, Result<End, Failure>)>, there: [Option<Result<End, Failure>>; 2]) {
        let locations = [self.request.sources.first(), Some(&self.request.destination)];
        let is_login = |location: Option<&Location>| matches!(location.map(Location::host), Some(Location::Ssh { .. }));
        let missing = locations.into_iter().zip(&there).filter(|(location, end)| is_login(*location) && end.is_none());
        let mut missing = missing.count();
        there.into_iter().flatten().flatten().for_each(End::close);
        let deadline = Instant::now() + LOGINS_END_IN;
        while missing > 0
            && let Ok((id, end)) = opened.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            missing -= usize::from(is_login(locations[usize::from(id == EndId::Destination)]));
            end.into_iter().for_each(End::close);
        }
    }

    /// What will be asked whatever the ends say of themselves goes out right behind the greeting.
    fn ask_early(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        if self.plan.is_none() {
            resolve::ask_early(self.request, ends)?;
        }
        self.key = connect::session_key(self.request.options.encrypt)?;
        if self.request.options.dry_run && !self.request.options.plans() {
            return Ok(());
        }
        connect::ask_early(self.request, &self.key, ends)?;
        ends.prepared = connect::prepare(self.request, ends, self.context);
        Ok(())
    }
}

/// All sources are on one host.
fn check_beside(first: &Location, sources: &[Location]) -> Result<(), Failure> {
    let Some(other) = sources.iter().find(|location| !Location::is_beside(first, location)) else { return Ok(()) };
    let message = format!("{first} and {other} are on different hosts");
    Err(failure(ErrorCode::Usage, Side::Command, message).for_reason(Reason::SeveralHosts))
}

/// The place where an agent is needed for a location: synthetic ones are in this process.
fn place_of(location: &Location) -> Location {
    let location = location.host();
    let is_elsewhere = location.is_remote() || matches!(location, Location::Store { .. } | Location::Endpoint { .. });
    if is_elsewhere { location.clone() } else { Location::Local(Vec::new()) }
}
