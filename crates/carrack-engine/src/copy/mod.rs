//! A whole request: bring up an end for the sources and one for the destination, settle where everything goes, connect the two,
//! let them work, and report. The bytes go straight between the ends; the command watches.

mod attempts;
mod connect;
mod held_back;
mod resolve;
mod streams;
mod tune;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::pace::limit::Stage;
use carrack_core::pace::streams::Change;
use carrack_core::path::{check_relative, display_bytes};
use carrack_core::report::{
    ErrorCode, Event, Failure, ItemFailure, ItemKind, ItemReport, Outcome, Progress, Report, Side,
};
use carrack_core::request::{CopyRequest, Durability, Encrypt, LinkKind, MainDigest, Verify};
use carrack_core::selection::{Selected, Selection, place};
use carrack_core::wire::bounds::Expected;
use carrack_core::wire::control::{
    Ask, Begin, Empty, Ended, Item, List, Options, Paths, ReceiveRole, Role, SendRole, SessionKey, Tell,
    TransferOptions,
};
use carrack_core::wire::{
    PROTOCOL_VERSION, ProtocolError, VERSION_FINGERPRINT, VERSION_OVERLAPS, VERSION_VERIFY_SOURCE, VERSION_XXH128,
    peer_text,
};

use crate::end::{End, EndId, Inbox, Incoming, NO_ANSWER, Note};
use crate::error::failure;
use crate::stop::stopped;
use crate::storage::names::is_own_path;
use attempts::{Attempts, jittered};
use connect::Connecting;
use held_back::HeldBack;
use resolve::Plan;
use streams::Streams;
use tune::Tune;

type Observer<'a> = &'a (dyn Fn(Event) + Send + Sync);

/// After one end's failure: how long the other may say nothing, and half of how long it may take to end.
const PATIENCE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Bytes of selected paths in one message, roughly.
const SELECT_BYTES: usize = 128 << 10;

/// What is said where a source may grow, unless it is read twice.
const GROWING: &str = "with --allow-growing a source that is overwritten in place, not appended to, is not noticed; --verify source \
                       notices it";

/// What is said before the first byte where the data goes in the clear, and nothing that cannot be forged covers its content. Both were
/// asked for; that one takes away what the other counts on may not be known.
fn forgeable(request: &CopyRequest) -> Option<String> {
    let options = &request.options;
    let why = match options.digest.main {
        Some(MainDigest::Blake3) => return None,
        Some(MainDigest::Xxh128) => "xxh128 finds accidents only",
        None => "there is no digest of it",
    };
    let clear = options.encrypt == Encrypt::None && options.reach.link != Some(LinkKind::Tunnel);
    clear.then(|| {
        format!(
            "the data goes in the clear, and {why}: whoever is on the path could alter content and nobody would notice; without \
             --encrypt none, or with --digest blake3, they could not"
        )
    })
}

/// Carries out a request. Failures of items are in the report, and so is the error that ended the whole early, if one did.
pub fn copy(request: &CopyRequest, observer: Observer<'_>) -> Report {
    let start = Instant::now();
    let options = &request.options;
    let mut report = Report {
        verify: Some(options.verify),
        digest: options.digest.main,
        encrypt: Some(options.encrypt),
        durability: Some(options.durability),
        ..Report::default()
    };
    let result = std::thread::scope(|scope| {
        // Notes come from the threads that read ssh's messages; they are handed on from here, in order. A thread that still waits for
        // a host when the run has ended must not hold it up: its notes go nowhere.
        let (sender, notes) = mpsc::sync_channel::<String>(limits::NOTES_WAITING);
        scope.spawn(move || notes.iter().for_each(|text| observer(Event::Note(text))));
        let sender = Arc::new(Mutex::new(Some(sender)));
        let lock = |sender: &Mutex<Option<mpsc::SyncSender<String>>>| {
            sender.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let notes = Arc::clone(&sender);
        let note: Note = Arc::new(move |text| drop(lock(&notes).map(|notes| notes.send(text))));
        let mut copying = Copying {
            request,
            observer,
            note,
            inbox: Inbox::default(),
            report: &mut report,
            plan: None,
            key: SessionKey { id: [0; 16], secret: [0; 32], encrypt: options.encrypt },
            attempts: Attempts::new(options, start),
            end: options.deadline.and_then(|deadline| start.checked_add(deadline)),
            session: 0,
            spent: None,
            furthest: (0, 0),
            held_back: HeldBack::new(Instant::now()),
            tune: None,
            found: None,
            expected: Expected::default(),
        };
        let result = copying.run();
        sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        result
    });
    report.error = result.err();
    report.elapsed = start.elapsed();
    report
}

/// One run.
struct Copying<'a> {
    request: &'a CopyRequest,
    observer: Observer<'a>,
    note: Note,
    inbox: Inbox,
    report: &'a mut Report,
    /// What the first session settled: the second finds other things at the destination, but was asked for the same.
    plan: Option<Plan>,
    /// The session's.
    key: SessionKey,
    attempts: Attempts,
    /// When the run is given up.
    end: Option<Instant>,
    /// Sessions before this one.
    session: u32,
    /// What has been used up, so that there can be no other session.
    spent: Option<&'static str>,
    /// The most items and bytes that any session had at the destination.
    furthest: (u64, u64),
    held_back: HeldBack,
    /// Finds out how many streams are best, where that is not settled.
    tune: Option<Tune>,
    /// What it has found in this run.
    found: Option<u16>,
    /// Which items the source may tell of.
    expected: Expected,
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

    /// Processors of the smaller host.
    fn processors(&self) -> usize {
        self.source.welcome.processors.min(self.destination.welcome.processors) as usize
    }

    /// The protocol that both speak.
    fn version(&self) -> u32 {
        self.source.welcome.version.min(self.destination.welcome.version).clamp(1, PROTOCOL_VERSION)
    }
}

impl Copying<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        while let Err(why) = self.session() {
            self.pause_after(why)?;
            self.session += 1;
        }
        Ok(())
    }

    /// Waits before the next session.
    ///
    /// # Errors
    /// Why the run ends, if there will be none.
    fn pause_after(&mut self, mut why: Failure) -> Result<(), Failure> {
        if let (Some(spent), true) = (self.spent, why.code.may_pass()) {
            why.message = format!("{}; {spent}, so nothing is tried again", why.message);
            return Err(why);
        }
        let Some((attempt, longest)) = self.attempts.next(&why, Instant::now()) else {
            match self.attempts.in_a_row() {
                0 => {}
                tried => why.message = format!("{}; given up after {} attempts in a row", why.message, tried + 1),
            }
            return Err(why);
        };
        self.report.faults.sessions_lost += 1;
        let pause = jittered(longest);
        let over = Instant::now() + pause;
        (self.observer)(Event::SessionLost { failure: why.clone(), attempt, pause });
        while Instant::now() < over {
            let waiting = Inbox::until(self.end);
            waiting.check().map_err(|error| after(error, &why))?;
            let left = over.saturating_duration_since(Instant::now());
            std::thread::park_timeout(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }

    fn session(&mut self) -> Result<(), Failure> {
        // What the ends of the session before may still say goes nowhere.
        self.inbox = Inbox::until(self.end);
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
                let plan = resolve::resolve(self.request, ends, &mut self.inbox, &self.note)?;
                let sources = self.request.sources.iter().map(ToString::to_string).collect();
                (self.observer)(Event::Resolved { sources, targets: plan.shown.clone() });
                plan
            }
        };
        let plan = self.plan.insert(plan).clone();
        self.expected = Expected::new(plan.targets());
        let selection = self.selection(&plan)?;
        if self.request.options.dry_run {
            return self.count(&plan, selection, &mut ends.source);
        }
        self.check_versions(ends)?;
        check_overlaps(&plan, &ends.source)?;
        let told = forgeable(self.request).filter(|_| self.session == 0 && !ends.are_here());
        told.into_iter().for_each(|note| (self.observer)(Event::Note(note)));
        self.report.durable = (plan.sink == 0).then_some(false);
        ends.source.introduce(&ends.destination);
        let begun = self.begin_receiving(&plan, ends)?;
        let (request, key) = (self.request, self.key.clone());
        let link = Connecting::start(request, &plan, key, &self.note, ends, &mut self.inbox)?;
        // While connections are made, the sender looks at its files and offers them. What can be read only once is not touched before
        // there is a way for it.
        let early = plan.once().is_none();
        if early {
            self.begin_sending(&plan, selection.as_ref(), begun, ends)?;
        }
        let link = link.finish(self.found, ends, &mut self.inbox)?;
        self.attempts.linked();
        (self.observer)(Event::Linked(link.report.clone()));
        if self.request.options.allow_growing && self.request.options.verify != Verify::Source && self.session == 0 {
            (self.observer)(Event::Note(GROWING.to_owned()));
        }
        self.report.link = Some(link.report.clone());
        let moving = Instant::now();
        self.held_back.session(u64::from(plan.block_bytes) * u64::from(link.report.streams), moving);
        self.tune = Tune::new(self.request, plan.in_order, &link, ends);
        let mut streams = Streams::new(link, ends.version(), moving);
        streams.work(ends, moving)?;
        if !early {
            self.begin_sending(&plan, selection.as_ref(), begun, ends)?;
        }
        let result = self.watch(ends, &mut streams);
        self.report.moving += moving.elapsed();
        self.report.limit = self.held_back.reader(self.report.moving).or(self.report.limit);
        result
    }

    /// Both ends at once: two ssh logins cost the time of one. Whoever hangs, the run can end meanwhile.
    fn open_ends(&mut self) -> Result<Ends, Failure> {
        let options = &self.request.options;
        let first =
            self.request.sources.first().ok_or_else(|| failure(ErrorCode::Usage, Side::Command, "nothing to copy"))?;
        if let Some(other) = self.request.sources.iter().find(|location| !same_host(first, location)) {
            let message = format!("{first} and {other} are on different hosts: copy from one host at a time");
            return Err(failure(ErrorCode::Usage, Side::Command, message));
        }
        let (sender, opened) = mpsc::channel();
        let (for_source, for_destination) = self.request.credentials();
        let places = [
            (EndId::Source, place_of(first), for_source),
            (EndId::Destination, place_of(&self.request.destination), for_destination),
        ];
        for (id, place, credential) in places {
            let (sender, words, note, reach) =
                (sender.clone(), self.inbox.share(), Arc::clone(&self.note), options.reach.clone());
            std::thread::spawn(move || {
                if let Err(unwanted) = sender.send((id, End::open(id, &place, &credential, &reach, words, &note)))
                    && let (_, Ok(end)) = unwanted.0
                {
                    end.close();
                }
            });
        }
        drop(sender);
        let (mut source, mut destination) = (None, None);
        while source.is_none() || destination.is_none() {
            match opened.recv_timeout(Duration::from_millis(50)) {
                Ok((EndId::Source, end)) => source = Some(end),
                Ok((EndId::Destination, end)) => destination = Some(end),
                Err(RecvTimeoutError::Timeout) => self.inbox.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failure(ErrorCode::Internal, Side::Command, "a thread ended early"));
                }
            }
        }
        let (source, destination) = match (source, destination) {
            (Some(Ok(source)), Some(Ok(destination))) => (source, destination),
            (Some(Err(why)), other) | (other, Some(Err(why))) => {
                if let Some(Ok(end)) = other {
                    end.close();
                }
                return Err(why);
            }
            _ => return Err(failure(ErrorCode::Internal, Side::Command, "an end was not opened")),
        };
        let mut ends = Ends { source, destination };
        let asked = self.ask_early(&mut ends);
        let has_failed = asked.is_err();
        let (inbox, reach) = (&mut self.inbox, &self.request.options.reach);
        let greeted = asked
            .and_then(|()| ends.source.welcomed(inbox, reach, &self.note))
            .and_then(|()| ends.destination.welcomed(inbox, reach, &self.note));
        let Err(why) = greeted else { return Ok(ends) };
        let refusal = inbox.refusal(has_failed).map(|(end, refusal)| ends.get(end).refused(refusal));
        ends.close();
        Err(refusal.unwrap_or(why))
    }

    /// What will be asked whatever the ends say of themselves goes out right behind the greeting.
    fn ask_early(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        if self.plan.is_none() {
            resolve::ask_early(self.request, ends)?;
        }
        self.key = connect::session_key(self.request.options.encrypt)?;
        if self.request.options.dry_run { Ok(()) } else { connect::ask_early(self.request, &self.key, ends) }
    }

    /// What an end of the version before cannot do is refused, not left out.
    fn check_versions(&self, ends: &Ends) -> Result<(), Failure> {
        let options = &self.request.options;
        let xxh128 = options.digest.main == Some(MainDigest::Xxh128);
        let wanted = [
            (&ends.source, options.only.is_some(), 2, "--files-from"),
            (&ends.source, options.allow_growing, 2, "--allow-growing"),
            (&ends.destination, options.durability == Durability::Each, 2, "--durable each"),
            (&ends.source, options.verify == Verify::Source, VERSION_VERIFY_SOURCE, "--verify source"),
            (&ends.source, xxh128, VERSION_XXH128, "--digest xxh128"),
            (&ends.destination, xxh128, VERSION_XXH128, "--digest xxh128"),
        ];
        let mut asked = wanted.into_iter().filter(|&(_, is_asked, ..)| is_asked);
        asked.try_for_each(|(end, _, version, flag)| end.check_knows(version, flag))
    }

    /// What `--files-from` chose, if it was given.
    fn selection(&self, plan: &Plan) -> Result<Option<Selection>, Failure> {
        let Some(only) = &self.request.options.only else { return Ok(None) };
        let mut selection = Selection::default();
        for path in only {
            let is_named = |target: &[u8]| {
                target.is_empty() || path.strip_prefix(target).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
            };
            if !plan.sources.iter().any(|source| is_named(&source.target)) {
                let message = format!(
                    "--files-from names {}, which is not among what would be copied: its paths are relative to the destination, as the report \
                     names them",
                    display_bytes(path)
                );
                return Err(failure(ErrorCode::Usage, Side::Command, message));
            }
            selection.add(path.clone());
        }
        Ok(Some(selection))
    }

    fn select(&mut self, selection: Option<&Selection>, ends: &mut Ends) -> Result<(), Failure> {
        let Some(selection) = selection else { return Ok(()) };
        let (mut page, mut bytes) = (Vec::new(), 0);
        let mut pages = Vec::new();
        for path in selection.paths() {
            if bytes > SELECT_BYTES {
                pages.push(std::mem::take(&mut page));
                bytes = 0;
            }
            bytes += path.len() + 8;
            page.push(path.to_vec());
        }
        pages.push(page);
        for paths in pages {
            ends.source.request(&mut self.inbox, &self.note, Ask::Select(Paths { paths }))?;
        }
        Ok(())
    }

    /// Has the receiver begin, and does not wait for its answer: over a long path it comes while the data connection is made.
    fn begin_receiving(&mut self, plan: &Plan, ends: &mut Ends) -> Result<u64, Failure> {
        if plan.in_order {
            // Whoever reads a FIFO meets its end when this session ends, whether or not anything came.
            self.spent = plan.once();
        }
        let options = &self.request.options;
        // Of the second reading of a source the receiver knows nothing, whatever its version.
        let verify = if options.verify == Verify::Source { Verify::Wire } else { options.verify };
        let message = self.transfer_options(plan, ends, verify);
        let mut receive = ReceiveRole {
            directory: plan.directory.clone(),
            sink: plan.sink,
            targets: plan.targets(),
            ..ReceiveRole::default()
        };
        if ends.version() >= 2 {
            receive.marker = plan.marker.clone();
            // A later session of this run goes on from where this run stood.
            receive.anew = !options.resume && self.session == 0;
            receive.source_clock = ends.source.welcome.clock_seconds;
        }
        ends.destination.ask(Ask::Begin(Begin { options: Some(message), role: Some(Role::Receive(receive)) }))
    }

    /// Has the sender begin, once the receiver has: what the sender says must find somebody.
    fn begin_sending(
        &mut self,
        plan: &Plan,
        selection: Option<&Selection>,
        begun: u64,
        ends: &mut Ends,
    ) -> Result<(), Failure> {
        self.select(selection, ends)?;
        // From here on bytes may be taken, and written, that there are only once.
        self.spent = plan.once();
        let began = ends.destination.answer(&mut self.inbox, &self.note, begun)?;
        let known = ends.version() >= 2 && matches!(began, Tell::Done(counted) if counted.count > 0);
        let role = Role::Send(SendRole { sources: plan.sources.clone(), known });
        let verify = self.request.options.verify;
        let begin = Begin { options: Some(self.transfer_options(plan, ends, verify)), role: Some(role) };
        ends.source.request(&mut self.inbox, &self.note, Ask::Begin(begin)).map(|_| ())
    }

    fn transfer_options(&self, plan: &Plan, ends: &Ends, verify: Verify) -> Options {
        let options = &self.request.options;
        let version = ends.version();
        let transfer = TransferOptions {
            block_bytes: plan.block_bytes,
            digests: options.digest,
            verify,
            existing: options.existing,
            rate_limit: options.rate_limit,
            congestion: options.congestion,
            item_events: options.item_events,
            // How many there will be is settled by the first connection, which may not be there yet; no end has to know.
            streams: options.streams.unwrap_or(1),
            version,
            durability: if version >= 2 { options.durability } else { Durability::Group },
            allow_growing: options.allow_growing,
        };
        let message = transfer.to_message(self.key.id);
        if version >= 2 { message } else { Options { version: 0, ..message } }
    }

    /// Passes on what the ends tell, until both have ended, and keeps the streams up.
    fn watch(&mut self, ends: &mut Ends, streams: &mut Streams) -> Result<(), Failure> {
        let mut waiting = vec![EndId::Source, EndId::Destination];
        let mut first_failure: Option<Failure> = None;
        let (mut heard, mut failed_at) = (Instant::now(), None);
        while !waiting.is_empty() {
            let working = waiting.contains(&EndId::Source) && first_failure.is_none();
            if working {
                streams.work(ends, Instant::now())?;
            }
            // One side's failure reaches the other through the peer conversation; if it does not, the second does not hold us.
            let patience =
                failed_at.map(|at: Instant| (heard + PATIENCE_AFTER_FAILURE).min(at + 2 * PATIENCE_AFTER_FAILURE));
            let next = patience.or_else(|| if working { streams.due() } else { None });
            let incoming = match self.inbox.wait(next, &self.note, &|_| true) {
                Ok(incoming) => incoming,
                Err(error) if error.code == ErrorCode::Silence && error.message == NO_ANSWER => {
                    match (patience, first_failure.take()) {
                        (Some(patience), Some(first)) if Instant::now() >= patience => return Err(first),
                        (_, first) => first_failure = first,
                    }
                    continue;
                }
                Err(error) => return Err(first_failure.unwrap_or(error)),
            };
            let now = Instant::now();
            // Nor does one that goes on talking.
            if patience.is_some_and(|patience| now >= patience)
                && let Some(first) = first_failure.take()
            {
                return Err(first);
            }
            // Where the time goes is told for as long as an end is there, and a stream may be lost, whether or not anything gets anywhere.
            if !matches!(incoming.tell, Ok(Tell::Stages(_) | Tell::StreamLost(_))) {
                heard = now;
            }
            if incoming.request != 0 {
                streams.answered(incoming, &self.note, now);
                continue;
            }
            // A stream's end may be told a moment after the transfer's.
            let late = matches!(incoming.tell, Ok(Tell::StreamLost(_)));
            if !waiting.contains(&incoming.end) && first_failure.is_none() && !late {
                return Err(misbehaved(ends, incoming.end, "went on after it had said that all had ended"));
            }
            if let Some((end, failed)) = self.told(ends, incoming, streams)? {
                waiting.retain(|waiting| *waiting != end);
                let sent_all = end == EndId::Source && failed.is_none() && first_failure.is_none();
                let failed = failed.map(|failed| self.ended_by(ends, end, &waiting, failed));
                first_failure = first_failure.or(failed);
                failed_at = failed_at.or_else(|| first_failure.is_some().then_some(now));
                if sent_all && !waiting.is_empty() {
                    // A receiver says that it has everything before its sender ends, so one whose sender has ended can only have
                    // a little left to do, which stopping it does not touch, however long that takes. If it has not, it fails now.
                    ends.destination.ask(Ask::Cancel(Empty {}))?;
                }
            }
        }
        first_failure.map_or(Ok(()), Err)
    }

    /// Names whose failure it was. A receiver that had to be stopped, because its sender was through, was waiting for the sender.
    fn ended_by(&self, ends: &Ends, end: EndId, waiting: &[EndId], failed: Failure) -> Failure {
        if end == EndId::Destination && waiting.is_empty() && failed.code == ErrorCode::Interrupted {
            return misbehaved(ends, EndId::Source, "said that all had ended before the other side had");
        }
        name_end(ends, end, failed)
    }

    /// Passes on what an end told unasked; which it is, if that was its last word, and how it ended.
    fn told(
        &mut self,
        ends: &Ends,
        incoming: Incoming,
        streams: &mut Streams,
    ) -> Result<Option<(EndId, Option<Failure>)>, Failure> {
        let end = incoming.end;
        match incoming.tell? {
            Tell::Failed(refusal) => return Err(name_end(ends, end, refusal.into())),
            Tell::Progress(progress) if end == EndId::Source => {
                let progress = Progress::from(progress);
                self.advanced(&progress, streams);
                (self.observer)(Event::Progress(progress));
            }
            Tell::Stages(stages) => {
                let change = self.tune.as_mut().and_then(|tune| tune.told(end, stages, streams));
                change.into_iter().for_each(|change| self.streams_change(change));
                let note = self.held_back.told(end, stages.into(), self.furthest.1, Instant::now());
                note.into_iter().for_each(|note| (self.observer)(Event::Note(note)));
                // Within a process there is none: each side then waits for the other's turn on the processors.
                let memory = self.report.link.as_ref().is_some_and(|link| link.kind == LinkKind::Memory);
                let overall = self.held_back.overall();
                self.report.limit = overall.filter(|limit| !(memory && limit.stage == Stage::Network));
            }
            Tell::Items(items) if end == EndId::Source => {
                let refused = |error| ends.source.misbehaved(&error);
                items.list.iter().try_for_each(|item| self.check_item(item)).map_err(refused)?;
                items.list.into_iter().for_each(|item| self.item(item.into()));
            }
            Tell::Items(_) => return Err(misbehaved(ends, end, "told of items, which only the other side does")),
            Tell::StreamLost(lost) if end == EndId::Source => streams.lost(lost, Instant::now()),
            Tell::Ended(ended) => return Ok(Some((end, self.ended(ends, end, ended)))),
            _ => {}
        }
        Ok(None)
    }

    fn streams_change(&mut self, change: Change) {
        self.found = self.tune.as_ref().map(Tune::best);
        self.report.link.iter_mut().for_each(|link| link.streams = change.streams);
        (self.observer)(Event::Streams(change));
    }

    fn advanced(&mut self, progress: &Progress, streams: &mut Streams) {
        self.tune.iter_mut().for_each(|tune| tune.advanced(progress));
        let (files, bytes) = (progress.files_done, progress.bytes_done);
        streams.advanced((files, bytes));
        let further = (self.furthest.0.max(files), self.furthest.1.max(bytes));
        if further != self.furthest {
            self.furthest = further;
            self.attempts.gained();
        }
    }

    /// An item's path goes into lists that other commands read: it must be one that was to be copied. What has no path of its own, the
    /// content of a directory, can only have failed.
    fn check_item(&self, item: &Item) -> Result<(), ProtocolError> {
        if item.path.is_empty() && matches!(ItemReport::from(item.clone()).outcome, Outcome::Failed(_)) {
            return Ok(());
        }
        check_relative(&item.path).map_err(|error| ProtocolError::path(&item.path, error))?;
        self.expected.check(&item.path)
    }

    fn item(&mut self, item: ItemReport) {
        if let Outcome::Failed(failure) = &item.outcome {
            self.keep_failure(&item.path, failure);
        }
        // Whoever reads of it may be slow: that is waited for here.
        let began = Instant::now();
        (self.observer)(Event::Item(item));
        self.held_back.read_in(began.elapsed());
    }

    fn ended(&mut self, ends: &Ends, end: EndId, ended: Ended) -> Option<Failure> {
        let report = &mut *self.report;
        let faults = &mut report.faults;
        if end == EndId::Source {
            report.files = ended.files;
            report.symlinks = ended.symlinks;
            report.directories = ended.directories;
            report.bytes = ended.bytes;
            report.files_kept = ended.kept;
            report.files_failed = ended.failed;
            report.files_vanished = ended.vanished;
            report.specials_skipped = ended.specials;
            report.leftovers_skipped = ended.leftovers;
            report.files_resumed = ended.resumed_files;
            report.bytes_resumed = ended.resumed_bytes;
            report.durable = report.durable.map(|_| ended.durable);
            if report.verify == Some(Verify::Disk) && ends.destination.welcome.version < VERSION_FINGERPRINT {
                report.files_not_read_back = ended.resumed_files;
            }
            // Faults add up over the sessions of a run.
            add(&mut faults.digest_mismatches, ended.mismatches);
            add(&mut faults.resent_after_loss, ended.resent);
            add(&mut faults.stragglers, ended.stragglers);
            add(&mut faults.streams_lost, ended.streams_lost);
            add(&mut faults.items_again, ended.items_again);
        } else {
            add(&mut faults.streams_altered, ended.streams_altered);
            add(&mut faults.blocks_rotten, ended.blocks_rotten);
            report.unkept_permissions = ended.unkept_permissions.map(Into::into);
            report.unkept_times = ended.unkept_times.map(Into::into);
            add(&mut report.parts_reread, ended.parts_reread);
            add(&mut report.bytes_reread, ended.bytes_reread);
            report.files_not_read_back = report.files_not_read_back.max(ended.files_not_read_back);
        }
        ended.failure.map(Failure::from)
    }

    /// Counts what would be copied.
    fn count(&mut self, plan: &Plan, mut selection: Option<Selection>, source: &mut End) -> Result<(), Failure> {
        if selection.is_none() {
            self.report.directories = plan.directories;
        }
        for (number, wanted) in plan.sources.iter().enumerate() {
            let mut covers = |path: &[u8]| {
                let path = place(&wanted.target, path);
                selection.as_mut().map_or(Selected::Wanted, |selection| {
                    selection.found(&path);
                    selection.covers(&path)
                })
            };
            let root = covers(b"");
            if wanted.synthetic != 0 {
                if root == Selected::Wanted {
                    add(&mut self.report.files, 1);
                    add(&mut self.report.bytes, wanted.size);
                }
                continue;
            }
            if root == Selected::No {
                continue;
            }
            // An older source end does not look whether two sources have the same names.
            let sources = plan.overlapping(number);
            let list = List { path: wanted.path.clone(), recursive: true, sources, ..List::default() };
            let request = source.ask(Ask::List(list))?;
            while let Tell::Page(page) = source.answer(&mut self.inbox, &self.note, request)? {
                for entry in page.entries {
                    let kind = carrack_core::wire::control::kind_from_number(entry.kind);
                    // Of a source that is a file the listing names the file, not a path below it.
                    let is_root = plan.files.contains(&wanted.target);
                    match if is_root { root } else { covers(&entry.path) } {
                        Selected::Wanted => {}
                        Selected::Above if kind == Some(ItemKind::Directory) => {}
                        Selected::Above | Selected::No => continue,
                    }
                    if let Some(failure) = entry.failure {
                        self.failed(place(&wanted.target, if is_root { b"" } else { &entry.path }), failure.into());
                        continue;
                    }
                    if !is_root && is_own_path(&entry.path, kind) {
                        add(&mut self.report.leftovers_skipped, 1);
                        continue;
                    }
                    match kind {
                        Some(ItemKind::File) => {
                            add(&mut self.report.files, 1);
                            add(&mut self.report.bytes, entry.size);
                        }
                        Some(ItemKind::Directory) => add(&mut self.report.directories, 1),
                        Some(ItemKind::Symlink) => add(&mut self.report.symlinks, 1),
                        _ => {
                            add(&mut self.report.specials_skipped, 1);
                            add(&mut self.report.files_failed, 1);
                        }
                    }
                }
            }
        }
        add(&mut self.report.files_failed, selection.map_or(0, |selection| selection.missing().count() as u64));
        Ok(())
    }

    /// Something that a dry run has found would fail.
    fn failed(&mut self, path: Vec<u8>, failure: Failure) {
        add(&mut self.report.files_failed, 1);
        self.keep_failure(&path, &failure);
    }

    fn keep_failure(&mut self, path: &[u8], failure: &Failure) {
        if self.report.failures.len() < limits::FAILURES_TOLD {
            self.report.failures.push(ItemFailure { path: path.to_vec(), failure: failure.clone() });
        }
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

/// An older source end does not look whether two sources have the same names, and one would replace the other without a word.
fn check_overlaps(plan: &Plan, source: &End) -> Result<(), Failure> {
    let contents = plan.sources.iter().any(|source| source.target.is_empty());
    if plan.sources.len() < 2 || !contents || plan.sink != 0 || source.welcome.version >= VERSION_OVERLAPS {
        return Ok(());
    }
    let message = format!(
        "{}: its carrack {} does not look whether several sources have the same names: update it, or copy them one after the other",
        source.name,
        peer_text(&source.welcome.program)
    );
    Err(failure(ErrorCode::VersionMismatch, Side::Source, message))
}

/// An end of the run, with what it was waiting for.
fn after(mut end: Failure, why: &Failure) -> Failure {
    if end.code == ErrorCode::DeadlinePassed {
        end.message = format!("{} (the last attempt failed: {})", end.message, why.message);
    }
    end
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

/// What a peer counts may be any number.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
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
