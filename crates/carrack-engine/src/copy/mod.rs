//! A whole request: bring up an end for the sources and one for the destination, settle where everything goes, connect the two,
//! let them work, and report. The bytes go straight between the ends; the command watches.

mod connect;
mod resolve;

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::report::{
    ErrorCode, Event, Failure, Faults, ItemFailure, ItemKind, ItemReport, Outcome, Progress, Report, Side,
};
use carrack_core::request::CopyRequest;
use carrack_core::wire::control::{Ask, Begin, Empty, Ended, ReceiveRole, Role, SendRole, Tell, TransferOptions};

use crate::end::{End, EndId, Inbox, Note, stopped};
use crate::error::failure;
use resolve::Plan;

type Observer<'a> = &'a (dyn Fn(Event) + Send + Sync);

/// Carries out a request. Failures of items are in the report, and so is the error that ended the whole early, if one did.
pub fn copy(request: &CopyRequest, observer: Observer<'_>) -> Report {
    let start = Instant::now();
    let mut report =
        Report { verify: Some(request.options.verify), encrypt: Some(request.options.encrypt), ..Report::default() };
    let result = std::thread::scope(|scope| {
        // Notes come from the threads that read ssh's messages; they are handed on from here, in order.
        let (sender, notes) = std::sync::mpsc::channel::<String>();
        scope.spawn(move || notes.iter().for_each(|text| observer(Event::Note(text))));
        let note: Note = Arc::new(move |text| drop(sender.send(text)));
        let mut copying = Copying { request, observer, note, inbox: Inbox::default(), report: &mut report };
        copying.run()
    });
    report.error = result.err();
    report.elapsed = start.elapsed();
    report
}

struct Copying<'a> {
    request: &'a CopyRequest,
    observer: Observer<'a>,
    note: Note,
    inbox: Inbox,
    report: &'a mut Report,
}

/// The two ends of a copy.
pub(crate) struct Ends {
    source: End,
    destination: End,
}

impl Ends {
    fn close(self) {
        self.source.close();
        self.destination.close();
    }
}

impl Copying<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let mut ends = self.open_ends()?;
        let result = self.run_with(&mut ends);
        if result.is_err() {
            self.cancel(&mut ends);
        }
        ends.close();
        result
    }

    fn run_with(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let plan = resolve::resolve(self.request, ends, &mut self.inbox, &self.note)?;
        let sources = self.request.sources.iter().map(ToString::to_string).collect();
        (self.observer)(Event::Resolved { sources, targets: plan.shown.clone() });
        if self.request.options.dry_run {
            return self.count(&plan, &mut ends.source);
        }
        self.report.durable = (plan.sink == 0).then_some(false);
        ends.source.introduce(&ends.destination);
        let link = connect::connect(self.request, &plan, ends, &mut self.inbox, &self.note)?;
        (self.observer)(Event::Linked(link.report.clone()));
        self.report.link = Some(link.report.clone());
        let moving = Instant::now();
        self.begin(&plan, ends, &link)?;
        connect::add_streams(&link, ends)?;
        let result = self.watch(ends);
        self.report.moving = moving.elapsed();
        result
    }

    /// Both ends at once: two ssh logins cost the time of one.
    fn open_ends(&mut self) -> Result<Ends, Failure> {
        let options = &self.request.options;
        let first =
            self.request.sources.first().ok_or_else(|| failure(ErrorCode::Usage, Side::Command, "nothing to copy"))?;
        let (source, destination) = (place_of(first), place_of(&self.request.destination));
        if let Some(other) = self.request.sources.iter().find(|location| !same_host(first, location)) {
            let message = format!("{first} and {other} are on different hosts: copy from one host at a time");
            return Err(failure(ErrorCode::Usage, Side::Command, message));
        }
        let (source, destination) = std::thread::scope(|scope| {
            let (inbox, note, reach) = (&self.inbox, &self.note, &options.reach);
            let sharing = inbox.share();
            let far = scope.spawn(move || End::open(EndId::Destination, &destination, reach, sharing, note));
            let near = End::open(EndId::Source, &source, reach, inbox.share(), note);
            let far =
                far.join().unwrap_or_else(|_| Err(failure(ErrorCode::Internal, Side::Command, "a thread ended early")));
            (near, far)
        });
        let mut ends = Ends { source: source?, destination: destination? };
        let greeted = ends
            .source
            .welcomed(&mut self.inbox, &options.reach, &self.note)
            .and_then(|()| ends.destination.welcomed(&mut self.inbox, &options.reach, &self.note));
        if let Err(refusal) = greeted {
            ends.close();
            return Err(refusal);
        }
        Ok(ends)
    }

    fn begin(&mut self, plan: &Plan, ends: &mut Ends, link: &connect::Link) -> Result<(), Failure> {
        let options = &self.request.options;
        let transfer = TransferOptions {
            block_bytes: options.block_bytes,
            digests: options.digest,
            verify: options.verify,
            existing: options.existing,
            rate_limit: options.rate_limit,
            item_events: options.item_events,
            streams: link.report.streams,
            version: 1,
            durability: options.durability,
            allow_growing: options.allow_growing,
        };
        let message = transfer.to_message(link.key.id);
        // The receiver first: what the sender says must find somebody.
        let targets = plan.targets();
        let receive =
            ReceiveRole { directory: plan.directory.clone(), sink: plan.sink, targets, ..ReceiveRole::default() };
        let begin = Begin { options: Some(message.clone()), role: Some(Role::Receive(receive)) };
        ends.destination.request(&mut self.inbox, &self.note, Ask::Begin(begin))?;
        let begin = Begin {
            options: Some(message),
            role: Some(Role::Send(SendRole { sources: plan.sources.clone(), known: false })),
        };
        ends.source.request(&mut self.inbox, &self.note, Ask::Begin(begin)).map(|_| ())
    }

    /// Passes on what the ends tell, until both have ended.
    fn watch(&mut self, ends: &Ends) -> Result<(), Failure> {
        let mut waiting = vec![EndId::Source, EndId::Destination];
        let mut first_failure: Option<Failure> = None;
        while !waiting.is_empty() {
            // One side's failure reaches the other through the peer conversation; if it does not, the second does not hold us.
            // And a sender has ended only after its receiver has.
            let patience = match &first_failure {
                Some(_) => Some(Duration::from_secs(5)),
                None => (!waiting.contains(&EndId::Source)).then_some(Duration::from_secs(5)),
            };
            let deadline = patience.map(|patience| Instant::now() + patience);
            let incoming = match self.inbox.wait(deadline, &self.note, &|incoming| incoming.request == 0) {
                Ok(incoming) => incoming,
                Err(error) if error.code == ErrorCode::Silence && first_failure.is_none() => {
                    return Err(misbehaved(ends, EndId::Source, "said that all had ended before the other side had"));
                }
                Err(error) => return Err(first_failure.unwrap_or(error)),
            };
            if !waiting.contains(&incoming.end) && first_failure.is_none() {
                return Err(misbehaved(ends, incoming.end, "went on after it had said that all had ended"));
            }
            match incoming.tell? {
                Tell::Failed(refusal) => return Err(name_end(ends, incoming.end, refusal.into())),
                Tell::Progress(progress) => (self.observer)(Event::Progress(Progress::from(progress))),
                Tell::Items(items) => items.list.into_iter().for_each(|item| self.item(item.into())),
                Tell::Ended(ended) => {
                    waiting.retain(|end| *end != incoming.end);
                    let failed = self.ended(incoming.end, ended);
                    first_failure = first_failure.or(failed.map(|failed| name_end(ends, incoming.end, failed)));
                }
                _ => {}
            }
        }
        first_failure.map_or(Ok(()), Err)
    }

    fn item(&mut self, item: ItemReport) {
        if let Outcome::Failed(failure) = &item.outcome
            && self.report.failures.len() < limits::FAILURES_TOLD
        {
            self.report.failures.push(ItemFailure { path: item.path.clone(), failure: failure.clone() });
        }
        (self.observer)(Event::Item(item));
    }

    fn ended(&mut self, end: EndId, ended: Ended) -> Option<Failure> {
        if end == EndId::Source {
            let report = &mut *self.report;
            report.files = ended.files;
            report.symlinks = ended.symlinks;
            report.directories = ended.directories;
            report.bytes = ended.bytes;
            report.files_kept = ended.kept;
            report.files_failed = ended.failed;
            report.files_vanished = ended.vanished;
            report.specials_skipped = ended.specials;
            report.durable = report.durable.map(|_| ended.durable);
            report.faults = Faults {
                digest_mismatches: ended.mismatches,
                resent_after_loss: ended.resent,
                stragglers: ended.stragglers,
                streams_lost: ended.streams_lost,
                ..Faults::default()
            };
        }
        ended.failure.map(Failure::from)
    }

    /// Counts what would be copied.
    fn count(&mut self, plan: &Plan, source: &mut End) -> Result<(), Failure> {
        self.report.directories = plan.directories;
        for wanted in &plan.sources {
            if wanted.synthetic != 0 {
                self.report.files += 1;
                self.report.bytes += wanted.size;
                continue;
            }
            let list = carrack_core::wire::control::List { path: wanted.path.clone(), recursive: true, itself: false };
            let request = source.ask(Ask::List(list))?;
            while let Tell::Page(page) = source.answer(&mut self.inbox, &self.note, request)? {
                for entry in page.entries {
                    match carrack_core::wire::control::kind_from_number(entry.kind) {
                        _ if entry.failure.is_some() => self.report.files_failed += 1,
                        Some(ItemKind::File) => {
                            self.report.files += 1;
                            self.report.bytes += entry.size;
                        }
                        Some(ItemKind::Directory) => self.report.directories += 1,
                        Some(ItemKind::Symlink) => self.report.symlinks += 1,
                        _ => {
                            self.report.specials_skipped += 1;
                            self.report.files_failed += 1;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells both ends to stop and clean up, and gives them a moment for it.
    fn cancel(&mut self, ends: &mut Ends) {
        let told = [ends.source.ask(Ask::Cancel(Empty {})), ends.destination.ask(Ask::Cancel(Empty {}))];
        let deadline = Instant::now() + Duration::from_secs(2);
        for (end, request) in [EndId::Source, EndId::Destination].into_iter().zip(told) {
            let Ok(request) = request else { continue };
            // After a signal, waiting would end at once: the answers are not needed, only time to give them.
            if stopped().is_none() {
                let _ = self
                    .inbox
                    .wait(Some(deadline), &self.note, &|incoming| incoming.end == end && incoming.request == request);
            }
        }
    }
}

/// The place where an agent is needed for a location: synthetic ones are in this process.
fn place_of(location: &Location) -> Location {
    if location.is_remote() { location.clone() } else { Location::Local(Vec::new()) }
}

fn same_host(a: &Location, b: &Location) -> bool {
    match (a, b) {
        (Location::Ssh { host: a, .. }, Location::Ssh { host: b, .. }) => a == b,
        (Location::Node { node: a, .. }, Location::Node { node: b, .. }) => a == b,
        _ => !a.is_remote() && !b.is_remote(),
    }
}

fn misbehaved(ends: &Ends, id: EndId, what: &str) -> Failure {
    let failed = failure(ErrorCode::ProtocolViolation, id.side(), format!("the {} {what}", id.side()));
    name_end(ends, id, failed)
}

fn name_end(ends: &Ends, id: EndId, mut failure: Failure) -> Failure {
    let end = if id == EndId::Source { &ends.source } else { &ends.destination };
    if !end.is_here() && !failure.message.starts_with(&end.name) {
        failure.message = format!("{}: {}", end.name, failure.message);
    }
    failure
}
