//! The receiving end: streams, commits, pump.

mod at_work;
mod slow;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::hash_map;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::attributes::{Attributes, OtherAttributes};
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, FileDigests, Side};
use carrack_core::request::Verify;
use carrack_core::transfer::machine::Machine;
use carrack_core::transfer::receiver::{ArrivedBlock, Begin, Opened, Receiver, ReceiverAction, ReceiverConfig};
use carrack_core::tuning::{SLICE_BYTES, Tuning};
use carrack_core::wire::ProtocolError;
use carrack_core::wire::attributes;
use carrack_core::wire::control::{Ended, Tell, TransferOptions};
use carrack_core::wire::expected::Expected;
use carrack_core::wire::frame::{
    self, ENTRY_HEADER_BYTES, EntryHeader, EntryKind, FINGERPRINT_BYTES, HEADER_BYTES, Header, TRAILER_BYTES, Trailer,
};
use carrack_core::wire::peer::{DirectoryAttributes, ItemResult, Offer, PeerMessage};
use carrack_sys::bulk::Pipe;

use self::at_work::AtWork;
use self::slow::{Checkpoint, Look, Workers};
use super::{StageReports, Voice, keep_thread, stream_failure, write_options};
use crate::data::hasher::BlockHasher;
use crate::data::stages::{Stages, Waits};
use crate::data::stream::{Connection, InStream};
use crate::data::traffic::Traffic;
use crate::error::{failure, protocol_failure};
use crate::net::socket::Socket;
use crate::panics::contain;
use crate::storage::descriptors::open_parts_max;
use crate::storage::properties::{Properties, WriteOptions};
use crate::storage::write::{Begun, Destination, Entry, NewDirectory, NewFile, Opening, Part, SmallFile, Stored};
use crate::sync::{lock, wait_timeout};

/// Commits that wait while one group is being published: beyond, streams wait too.
const COMMITS_WAITING: usize = 256;

/// The receiving end of a transfer.
pub struct ReceiveRun {
    machine: Mutex<Receiver>,
    changed: Condvar,
    options: TransferOptions,
    tuning: Arc<Tuning>,
    destination: Box<dyn Destination>,
    /// What can be done there.
    properties: Properties,
    /// How files are written there.
    writing: WriteOptions,
    /// What the command has asked for.
    expected: Expected,
    /// Directories that came, and whose attributes have not come.
    directories_unset: AtomicUsize,
    /// Open part files by item: several streams write blocks of one.
    parts: Mutex<HashMap<u64, Arc<dyn Part>>>,
    /// Item and index of blocks that the marker claims from an earlier session.
    claimed: Mutex<HashSet<(u64, u64)>>,
    /// As many as there are descriptors for; the other offers wait.
    parts_max: usize,
    /// Bundles that have come whole and wait to be committed.
    staged: Mutex<HashMap<u64, Staged>>,
    sockets: Mutex<HashMap<u16, Arc<Socket>>>,
    stages: Arc<Stages>,
    /// Streams that ended because what came over them had been altered.
    streams_altered: AtomicU64,
    /// Part files of earlier sessions that were read again before they were believed, and how many bytes of them.
    reread: (AtomicU64, AtomicU64),
    /// Items that an earlier session published, read back and found to be something else: offers to be opened
    /// again, and their numbers.
    disbelieved: Mutex<(VecDeque<Offer>, HashSet<u64>)>,
    voice: Voice,
    /// Threads that may touch files: those of the streams, and those that read again.
    at_work: Arc<AtWork>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A bundle's items, written under hidden names.
#[derive(Default)]
struct Staged {
    entries: Vec<(u32, Box<dyn Entry>)>,
    exceptions: Vec<(u32, ItemResult)>,
    /// Of the blocks of attributes that have come with the entries.
    attribute_bytes: u64,
}

/// What the thread of the commits does, in the order in which the machine decides it.
enum Commit {
    Publish { item: u64, digests: FileDigests, size: u64 },
    Bundle(u64),
    Directories(Vec<DirectoryAttributes>),
    Sync,
}

/// Why a stream's thread ends.
enum StreamError {
    Connection(io::Error),
    Protocol(ProtocolError),
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<ProtocolError> for StreamError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl ReceiveRun {
    /// Starts the pump and the commits; data is written as streams are added.
    pub fn start(
        options: TransferOptions,
        destination: Box<dyn Destination>,
        expected: Expected,
        voice: Voice,
        tuning: Arc<Tuning>,
    ) -> Arc<Self> {
        // Blocks are checkpointed to be found again after a crash, or to be read back one by one.
        let properties = destination.properties();
        let marked = properties.atomic_publish && (properties.resumes || options.verify == Verify::Disk);
        let run = Arc::new(Self {
            machine: Mutex::new(Receiver::new(ReceiverConfig { options, checkpoints: marked, tuning: *tuning })),
            changed: Condvar::new(),
            options,
            tuning,
            destination,
            properties,
            writing: write_options(&options),
            expected,
            directories_unset: AtomicUsize::new(0),
            parts: Mutex::default(),
            claimed: Mutex::default(),
            parts_max: open_parts_max(),
            staged: Mutex::default(),
            sockets: Mutex::default(),
            stages: Arc::default(),
            streams_altered: AtomicU64::new(0),
            reread: Default::default(),
            disbelieved: Mutex::default(),
            voice,
            at_work: Arc::default(),
            threads: Mutex::default(),
        });
        let workers = Workers::start(&run);
        let pumped = Arc::clone(&run);
        lock(&run.threads).push(std::thread::spawn(move || pumped.pump_to_the_end(workers)));
        run
    }

    /// Starts a thread that ends with the transfer. Part files are left to the next session only when it has ended.
    fn spawn(self: &Arc<Self>, what: &'static str, work: impl FnOnce(&Self) + Send + 'static) {
        let at_work = self.at_work.enter();
        let thread = self.start_thread(what, move |run| {
            // Also when the work panics, and after everything that it held.
            let _at_work = at_work;
            work(run);
        });
        keep_thread(&self.threads, thread);
    }

    /// Should the thread panic, the transfer has failed: nobody is to wait for what it would have done.
    fn start_thread(self: &Arc<Self>, what: &'static str, work: impl FnOnce(&Self) + Send + 'static) -> JoinHandle<()> {
        let run = Arc::clone(self);
        std::thread::spawn(move || {
            if let Err(why) = contain(Side::Destination, what, || work(&run)) {
                run.cancel(why);
            }
        })
    }

    /// See [`super::Running::join`].
    pub fn join(&self) {
        // A stream whose peer says nothing more and does not hang up would wait for ever, and so would this.
        for socket in lock(&self.sockets).values() {
            socket.abort();
        }
        while let Some(thread) = { lock(&self.threads).pop() } {
            let _ = thread.join();
        }
    }

    /// Tells the machine something, and wakes everybody.
    fn tell<T>(&self, input: impl FnOnce(&mut Receiver) -> T) -> T {
        let result = input(&mut lock(&self.machine));
        self.changed.notify_all();
        result
    }

    /// See [`super::Running::handle_peer`].
    pub fn handle_peer(&self, bytes: &[u8]) {
        self.tell(|machine| {
            let handled = PeerMessage::decode(bytes).and_then(|message| {
                self.check_expected(&message)?;
                machine.handle_message(Instant::now(), message)
            });
            if let Err(error) = handled {
                machine.fail(protocol_failure(Side::Source, &error));
            }
        });
    }

    fn check_expected(&self, message: &PeerMessage) -> Result<(), ProtocolError> {
        match message {
            // A source that names files which the command did not ask for would write over others of the destination.
            PeerMessage::Offer(offer) => self.expected.check(&offer.path),
            PeerMessage::FinishContents(_) => self.expected.check(b""),
            PeerMessage::Query { items, .. } => items.iter().try_for_each(|item| self.expected.check(&item.path)),
            PeerMessage::Directories(list) => {
                list.iter().try_for_each(|one| self.expected.check(&one.path))?;
                // They wait until they are set, so there may be no more of them than were made.
                let made = &self.directories_unset;
                let rest = made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |made| made.checked_sub(list.len()));
                rest.map(|_| ()).map_err(|_| {
                    ProtocolError::violation("the sender sent attributes of more directories than it sent")
                })
            }
            _ => Ok(()),
        }
    }

    /// See [`super::Running::cancel`].
    pub fn cancel(&self, why: Failure) {
        self.tell(|machine| machine.fail(why));
    }

    /// See [`super::Running::add_stream`].
    pub fn add_stream(self: &Arc<Self>, connection: Connection) {
        let number = connection.number;
        match lock(&self.sockets).entry(number) {
            hash_map::Entry::Vacant(free) => free.insert(Arc::clone(&connection.socket)),
            hash_map::Entry::Occupied(_) => {
                // A number twice would make two streams one: whoever did that does not follow the protocol.
                let what = ProtocolError::violation(format!("the peer made data connection {number} twice"));
                return self.cancel(protocol_failure(Side::Source, &what));
            }
        };
        let failed = self.tell(|machine| {
            machine.handle_stream(Instant::now(), number);
            matches!(machine.outcome(), Some(Err(_)))
        });
        if failed {
            // Those that came before have been cut off: this one would read until the peer hangs up.
            connection.socket.abort();
        }
        self.spawn("a data stream", move |run| {
            let input = InStream::new(connection, Arc::clone(&run.stages));
            // Only where nobody looks at the bytes they can go from the socket to the file inside the kernel.
            let pipe = if run.options.digests.any() || !input.is_clear() { None } else { Pipe::new().ok() };
            let mut stream = StreamWork { run, number, input, scratch: Vec::new(), pipe };
            let ended = stream.work();
            run.tell(|machine| {
                machine.handle_stream_closed(Instant::now(), number);
                match ended {
                    Ok(()) => {}
                    Err(StreamError::Protocol(error)) => machine.fail(protocol_failure(Side::Source, &error)),
                    // The sender sees it too, and sends what was lost on another stream.
                    Err(StreamError::Connection(error)) if error.kind() == io::ErrorKind::InvalidData => {
                        let why = stream_failure(number, &error);
                        if !run.options.version.remakes_streams() {
                            return machine.fail(why);
                        }
                        // Counted and told: a network that alters bytes is worth knowing of, though the copy comes out
                        // right.
                        run.streams_altered.fetch_add(1, Ordering::Relaxed);
                        (run.voice.command)(Tell::Note(format!("{}; what it carried is sent again", why.message())));
                    }
                    Err(StreamError::Connection(_)) => {}
                }
            });
            // Closed, not only shut down: a sender whose window is full learns of it by the reset that only closing
            // sends. Not earlier, so that the reason that is told is ours.
            lock(&run.sockets).remove(&number);
        });
    }

    /// Pumps. After a panic nobody carries out any more what the machine decides: both sides are told here.
    fn pump_to_the_end(self: &Arc<Self>, workers: Workers) {
        let pumped = contain(Side::Destination, "the pump", || self.pump(&workers));
        let outcome = pumped.unwrap_or_else(|why| {
            self.cancel(why.clone());
            let say = || (self.voice.peer)(&PeerMessage::Fail(why.clone()));
            let _ = contain(Side::Destination, "the last word", say);
            Err(why)
        });
        let is_told = Cell::new(false);
        let ended = contain(Side::Destination, "the end of the transfer", || self.end(&outcome, workers, &is_told));
        if let (Err(why), false) = (ended, is_told.get()) {
            self.tell_ended(Err(why));
        }
    }

    /// Carries out what the machine decides, until the transfer has ended; tells how.
    fn pump(self: &Arc<Self>, workers: &Workers) -> Result<(), Failure> {
        let mut offers = VecDeque::new();
        let mut reports = StageReports::new(&self.options, &self.tuning);
        loop {
            // Each time round, because any action may have closed a part file and made room.
            self.open_waiting(&mut offers);
            reports.tell(&self.voice, &self.stages, Traffic::default, false);
            self.tell_stalled();
            let mut machine = lock(&self.machine);
            // The machine has no clock: what it decides after a while, it decides when it is told the time.
            machine.handle_time(Instant::now());
            let mut actions = Vec::new();
            while let Some(action) = machine.poll_action() {
                actions.push(action);
            }
            let outcome = machine.outcome();
            // Only when there is nothing left to do: the last actions tell the other side how it ended.
            if let (true, Some(outcome)) = (actions.is_empty(), outcome.clone()) {
                drop(machine);
                reports.tell(&self.voice, &self.stages, Traffic::default, true);
                return outcome;
            }
            if actions.is_empty() {
                let most = self.tuning.stages_interval;
                let deadline = machine.next_deadline();
                let left = deadline.map_or(most, |deadline| deadline.saturating_duration_since(Instant::now()));
                drop(self.changed.wait_timeout(machine, left.min(most)));
                continue;
            }
            // Without the lock: an action may wait for a file or for the connection, and the streams need the machine.
            drop(machine);
            for action in actions {
                self.carry_out(action, &mut offers, workers);
            }
        }
    }

    /// Makes the part files that there are descriptors for. The rest waits until one of those that are open is
    /// published or discarded: the sender sends no block before its offer is answered.
    fn open_waiting(self: &Arc<Self>, offers: &mut VecDeque<Offer>) {
        offers.extend(lock(&self.disbelieved).0.drain(..));
        while lock(&self.parts).len() < self.parts_max
            && let Some(offer) = offers.pop_front()
        {
            // Read back once and found to be something else: believed again, it would be read back for ever.
            let believe = !lock(&self.disbelieved).1.contains(&offer.item);
            let opened = self.destination.begin(&new_file(&offer), &self.writing, believe);
            let ran_out = matches!(&opened, Err(failure) if failure.code == ErrorCode::ResourceLimit);
            // Others may have taken the descriptors. While a part file is open, one will be free; with none open,
            // waiting would never end, and the item fails.
            if ran_out && !lock(&self.parts).is_empty() {
                return offers.push_front(offer);
            }
            let told = match opened {
                Ok(Opening::Resumed { part, held, doubtful }) => {
                    self.take_up(&offer, part, held, doubtful);
                    continue;
                }
                Ok(Opening::Fresh(part)) => {
                    lock(&self.parts).insert(offer.item, part);
                    Opened::Ready
                }
                Ok(Opening::MayBePresent) => {
                    self.look_at_published(offer);
                    continue;
                }
                Ok(Opening::Present(digests)) => Opened::Present(digests),
                Ok(Opening::Keep) => Opened::Keep,
                Err(failure) => Opened::Refused(failure),
            };
            self.tell(|machine| machine.handle_opened(Instant::now(), offer.item, told));
        }
    }

    fn carry_out(&self, action: ReceiverAction, offers: &mut VecDeque<Offer>, workers: &Workers) {
        let commit = match action {
            ReceiverAction::Send(message) => {
                // A control connection that is gone ends the whole session; its reader notices. What cannot be said
                // at all would be waited for.
                if let Err(error) = (self.voice.peer)(&message)
                    && error.kind() == io::ErrorKind::InvalidInput
                {
                    self.cancel(failure(ErrorCode::Internal, Side::Destination, error.to_string()));
                }
                return;
            }
            ReceiverAction::Open(offer) => return offers.push_back(offer),
            ReceiverAction::Discard(item) => {
                // Its name goes here; streams that still write to it write to a file without one.
                if let Some(part) = lock(&self.parts).remove(&item) {
                    part.remove();
                }
                return;
            }
            ReceiverAction::CloseStream(number) => {
                if let Some(socket) = lock(&self.sockets).get(&number) {
                    socket.abort();
                }
                return;
            }
            // The other sides leave only after this one.
            ReceiverAction::Checkpoint { item, blocks } => {
                let _ = workers.checkpoints.send(Checkpoint { item, blocks });
                return;
            }
            ReceiverAction::Look { bundle, items } => {
                let _ = workers.looks.send(Look { bundle, items });
                return;
            }
            ReceiverAction::Publish { item, digests, size } => Commit::Publish { item, digests, size },
            ReceiverAction::Commit(bundle) => Commit::Bundle(bundle),
            ReceiverAction::ApplyDirectories(list) => Commit::Directories(list),
            ReceiverAction::Sync => Commit::Sync,
        };
        // Waits when many commits wait: what is written must not run ahead of what is synced without bound.
        let _ = workers.commits.send(commit);
    }

    /// Leaves nothing behind but what has its name and what the next session can use, and tells the command how the
    /// transfer ended: `is_told` then.
    ///
    /// Small files have the same hidden name in every session that owns the marker. A thread of this session that
    /// writes or removes one after the marker is free would destroy that of the next session. So the marker stays
    /// locked until the last of them has left. If storage holds one for long, the command is told earlier: its next
    /// session uses another marker.
    fn end(&self, outcome: &Result<(), Failure>, workers: Workers, is_told: &Cell<bool>) {
        if outcome.is_err() {
            for socket in lock(&self.sockets).values() {
                socket.abort();
            }
            // What is about to get its name still may, for a while, and nothing after that: a call that hangs may
            // return long after the next session has given a newer file that name.
            self.destination.close_in(self.tuning.leave_patience);
        }
        self.changed.notify_all();
        // What they have begun is done before the marker is left.
        workers.finish();
        if outcome.is_err() && self.properties.atomic_publish && !self.at_work.all_left(self.tuning.leave_patience) {
            self.tell_ended(outcome.clone());
            is_told.set(true);
            self.at_work.wait_for_all();
        }
        // The transfer was ended early: what nobody will commit goes.
        for (_, staged) in lock(&self.staged).drain() {
            staged.entries.iter().for_each(|(_, entry)| entry.remove());
        }
        self.leave_parts(outcome);
        if !is_told.get() {
            self.tell_ended(outcome.clone());
            is_told.set(true);
        }
    }

    /// The last word to the command.
    fn tell_ended(&self, outcome: Result<(), Failure>) {
        let blocks_rotten = lock(&self.machine).blocks_rotten();
        let unkept = self.destination.unkept();
        // What lies in memory was not read back from storage, and the report must not say that it was.
        let in_memory = if self.options.verify == Verify::Disk { self.destination.files_in_memory() } else { 0 };
        (self.voice.command)(Tell::Ended(Box::new(Ended {
            blocks_rotten,
            parts_reread: self.reread.0.load(Ordering::Relaxed),
            bytes_reread: self.reread.1.load(Ordering::Relaxed),
            files_not_read_back: in_memory,
            streams_altered: self.streams_altered.load(Ordering::Relaxed),
            failure: outcome.err(),
            unkept_permissions: unkept.permissions,
            unkept_times: unkept.times,
            unkept_attributes: unkept.attributes,
            ..Ended::default()
        })));
    }

    /// Publishes in groups: whatever has come meanwhile is synced together, then renamed.
    fn commit_all(&self, work: &mpsc::Receiver<Commit>) {
        while let Ok(first) = work.recv() {
            // A sync costs the same for one file as for hundreds: whatever waits by now shares one.
            let group: Vec<Commit> =
                std::iter::once(first).chain(std::iter::from_fn(|| work.try_recv().ok())).collect();
            let synced = self.sync_group(&group);
            for commit in group {
                self.commit(commit, &synced);
            }
            // After the renames: the marker may call published only what has its name.
            self.destination.written_down();
        }
    }

    fn sync_group(&self, group: &[Commit]) -> Result<(), Failure> {
        let staged = lock(&self.staged);
        let needed = group.iter().any(|commit| {
            let Commit::Bundle(bundle) = commit else { return false };
            staged.get(bundle).is_some_and(|staged| staged.entries.iter().any(|(_, entry)| entry.awaits_sync()))
        });
        // The sync may take seconds, and the streams hand in bundles meanwhile.
        drop(staged);
        if needed { self.destination.sync_group() } else { Ok(()) }
    }

    fn commit(&self, commit: Commit, synced: &Result<(), Failure>) {
        match commit {
            Commit::Publish { item, digests, size } => {
                let part = lock(&self.parts).remove(&item);
                let result = match part.map_or(Ok(true), |part| self.publish(&*part, digests, size)) {
                    Ok(true) => ItemResult::Published,
                    Ok(false) => ItemResult::Kept,
                    Err(why) => self.lost(why),
                };
                self.tell(|machine| machine.handle_published(Instant::now(), item, result));
            }
            Commit::Bundle(bundle) => {
                let Staged { entries, mut exceptions, .. } = lock(&self.staged).remove(&bundle).unwrap_or_default();
                for (index, entry) in entries {
                    // What is not synced cannot be read back from storage, nor published.
                    let checked = synced.clone().and_then(|()| entry.verify());
                    let published = checked.inspect_err(|_| entry.remove()).and_then(|()| entry.publish());
                    match published {
                        Ok(true) => {}
                        Ok(false) => exceptions.push((index, ItemResult::Kept)),
                        Err(why) => exceptions.push((index, self.lost(why))),
                    }
                }
                self.tell(|machine| machine.handle_committed(Instant::now(), bundle, exceptions));
            }
            Commit::Directories(list) => {
                // Last of all, when nothing is made below any more: each new entry would change its directory's time,
                // and permissions without writing would refuse it.
                let list =
                    list.into_iter().map(|DirectoryAttributes { path, attributes }| NewDirectory { path, attributes });
                let failures = self.destination.apply_directories(&list.collect::<Vec<_>>());
                self.tell(|machine| machine.handle_directories_applied(Instant::now(), failures));
            }
            Commit::Sync => {
                let synced = self.destination.sync_all();
                self.tell(|machine| match synced {
                    Ok(durable) => machine.handle_synced(Instant::now(), durable),
                    Err(why) => machine.fail(why),
                });
            }
        }
    }

    /// `false` when what has come to stand there is to be kept.
    fn publish(&self, part: &dyn Part, digests: FileDigests, size: u64) -> Result<bool, Failure> {
        // Where there are checkpoints every block has been read back.
        let read_back = self.options.verify == Verify::Disk && !self.options.version.can_resume();
        let verify = || if read_back { part.verify(size, digests) } else { Ok(()) };
        // Synced first, read back then, renamed last: the name is never on anything that is less than that.
        part.finish(size).and_then(|()| verify()).inspect_err(|_| part.remove())?;
        part.publish(digests)
    }

    /// What was written is of no use. Where storage has lost it, writing it again to another place may help.
    fn lost(&self, why: Failure) -> ItemResult {
        let again = matches!(why.code, ErrorCode::InputOutput | ErrorCode::DigestMismatch);
        if again && self.options.version.can_resume() { ItemResult::Again(why) } else { ItemResult::Failed(why) }
    }
}

/// An offer, as stores take it.
fn new_file(offer: &Offer) -> NewFile<'_> {
    let Offer { item: _, path, size, attributes, sparse, fingerprint } = offer;
    NewFile { path, size: *size, attributes: attributes.clone(), sparse: *sparse, fingerprint: *fingerprint }
}

/// One stream's thread.
struct StreamWork<'a> {
    run: &'a ReceiveRun,
    number: u16,
    input: InStream,
    scratch: Vec<u8>,
    /// From the socket to files inside the kernel, where nobody looks at the bytes.
    pipe: Option<Pipe>,
}

impl StreamWork<'_> {
    fn work(&mut self) -> Result<(), StreamError> {
        let stages = Arc::clone(&self.run.stages);
        loop {
            let mut header = [0; HEADER_BYTES];
            self.input.meta(&mut header)?;
            // A header is all that tells where the next one begins: one that makes no sense ends the transfer.
            match Header::decode(&header, self.run.options.block_bytes)? {
                Header::End => return Ok(()),
                Header::Block { item, offset, length, hole, whole } => {
                    stages.carry(|| self.block(item, offset, length, hole, whole))?;
                }
                Header::Bundle { bundle, entries } => stages.carry(|| self.bundle(bundle, entries))?,
            }
        }
    }

    /// Asks until no other stream is writing the same.
    fn begin(&self, ask: impl Fn(&mut Receiver) -> Result<Begin, ProtocolError>) -> Result<Begin, StreamError> {
        let deadline = Instant::now() + self.run.tuning.silence;
        let mut machine = lock(&self.run.machine);
        loop {
            match ask(&mut machine)? {
                // Another stream has the same block or bundle and is still in a write of it: two of them at one offset
                // could leave a mixture. It lands, or is cut off and leaves.
                Begin::WaitFor(_) if Instant::now() < deadline => {
                    self.run.changed.notify_all();
                    machine = wait_timeout(&self.run.changed, machine, Duration::from_secs(1));
                }
                Begin::WaitFor(other) => {
                    let what = format!("data connection {other} could not be ended");
                    return Err(StreamError::Connection(io::Error::other(what)));
                }
                begin => return Ok(begin),
            }
        }
    }

    fn block(&mut self, item: u64, offset: u64, length: u32, hole: bool, whole: bool) -> Result<(), StreamError> {
        // The machine decides before a byte is written: a block of an item that ended is read and dropped, because the
        // stream goes on behind it.
        let begin = self.begin(|machine| machine.begin_block(self.number, item, offset, length, whole))?;
        let part = (begin == Begin::Write).then(|| lock(&self.run.parts).get(&item).cloned()).flatten();
        if let Some(part) = part.as_deref() {
            // Before the first byte: a crash in the midst of the block must not leave a marker that still calls it
            // whole.
            self.run.take_claim_back(item, offset, part);
        }
        let mut hasher = BlockHasher::new(self.run.options.digests, offset);
        let mut written = Ok(());
        if hole {
            if let Some(part) = part.as_deref() {
                let write = || part.write_hole(offset, length.into());
                written = self.run.stages.wait(Waits::Storage, write);
                hash_zeros(&mut hasher, length as usize);
            }
        } else {
            let unseen = part.as_deref().map_or(Ok(0), |part| self.unseen(part, offset, length, &mut written))?;
            let (run, mut at) = (self.run, offset + unseen);
            self.input.payload(u64::from(length) - unseen, &mut |slice| {
                if let Some(part) = part.as_deref() {
                    hasher.update(slice);
                    // After an error the rest is read and dropped: the connection is in order, and carries other items.
                    if written.is_ok() {
                        written = run.stages.wait(Waits::Storage, || part.write(at, slice));
                    }
                }
                at += slice.len() as u64;
                Ok::<(), StreamError>(())
            })?;
        }
        let mut trailer = [0; TRAILER_BYTES];
        self.input.meta(&mut trailer)?;
        let trailer = Trailer::decode(&trailer, self.run.options.digests)?;
        if let (Some(part), Ok(())) = (part.as_deref(), &written) {
            written = self.run.stages.wait(Waits::Storage, || part.end_block(offset, length.into()));
        }
        // Ours is the digest of the bytes as they came; the machine compares it with the sender's and asks again for
        // the block that differs.
        if begin == Begin::Write {
            let ours = hasher.finish(whole);
            self.run.tell(|machine| match written {
                Ok(()) => machine.handle_block(
                    Instant::now(),
                    self.number,
                    ArrivedBlock { item, offset, length },
                    ours,
                    &trailer,
                ),
                Err(why) => machine.handle_write_failed(Instant::now(), self.number, item, why),
            });
        }
        Ok(())
    }

    /// Where nobody asked for a digest the kernel takes payload from the socket to the file by itself. Says how many
    /// bytes of the block it has taken; what was not written is `written`'s error.
    fn unseen(
        &mut self,
        part: &dyn Part,
        offset: u64,
        length: u32,
        written: &mut Result<(), Failure>,
    ) -> Result<u64, StreamError> {
        if self.run.options.digests.any() || !self.input.is_clear() {
            return Ok(0);
        }
        let length = u64::from(length);
        // What has come with the header.
        let mut done = length.min(self.input.received() as u64);
        let (run, mut at) = (self.run, offset);
        self.input.payload(done, &mut |slice| {
            if written.is_ok() {
                *written = run.stages.wait(Waits::Storage, || part.write(at, slice));
            }
            at += slice.len() as u64;
            Ok::<(), StreamError>(())
        })?;
        while done < length && written.is_ok() {
            let most = usize::try_from(length - done).unwrap_or(usize::MAX);
            let taken = if !run.properties.keeps {
                self.input.discard(most)?
            } else if let Some(pipe) = self.pipe.as_mut().filter(|_| part.splices()) {
                let taken = self.input.splice(pipe, most)?;
                *written = run.stages.wait(Waits::Storage, || part.write_from(offset + done, pipe));
                taken
            } else {
                0
            };
            if taken == 0 {
                // Not here: the rest passes through the process.
                break;
            }
            done += taken as u64;
        }
        if self.pipe.as_ref().is_some_and(|pipe| pipe.holds() > 0) {
            // A write failed and left bytes in the pipe: the next block would begin with them.
            self.pipe = Pipe::new().ok();
        }
        Ok(done)
    }

    fn bundle(&mut self, bundle: u64, entries: u32) -> Result<(), StreamError> {
        let begin = self.begin(|machine| Ok(machine.begin_bundle(self.number, bundle)))?;
        let mut staged = Staged::default();
        let mut bytes = 0;
        let result =
            (0..entries).try_for_each(|index| self.entry(index, begin == Begin::Write, &mut bytes, &mut staged));
        if begin != Begin::Write {
            return result;
        }
        if let Err(error) = result {
            // The stream broke in the midst of it: the whole bundle comes again, under the same hidden names.
            staged.entries.iter().for_each(|(_, entry)| entry.remove());
            return Err(error);
        }
        // Before the machine hears of it: its order to commit may come at once.
        lock(&self.run.staged).insert(bundle, staged);
        let wanted = self.run.tell(|machine| machine.handle_bundle(Instant::now(), self.number, bundle, bytes));
        if !wanted && let Some(staged) = lock(&self.run.staged).remove(&bundle) {
            staged.entries.iter().for_each(|(_, entry)| entry.remove());
        }
        Ok(())
    }

    fn entry(&mut self, index: u32, keep: bool, bytes: &mut u64, staged: &mut Staged) -> Result<(), StreamError> {
        let mut header = [0; ENTRY_HEADER_BYTES];
        self.input.peek(&mut header)?;
        let entry = EntryHeader::decode(&header)?;
        *bytes += if entry.kind == EntryKind::File { entry.size.into() } else { 0 };
        staged.attribute_bytes += u64::from(entry.attribute_bytes);
        if *bytes + staged.attribute_bytes > limits::BUNDLE_BYTES {
            let message = "the sender sent a bundle of more bytes than the protocol allows";
            return Err(ProtocolError::violation(message).into());
        }
        let target_bytes = if entry.kind == EntryKind::Symlink { entry.size as usize } else { 0 };
        let fingerprint_bytes = if entry.fingerprinted { FINGERPRINT_BYTES } else { 0 };
        let (attribute_bytes, path_bytes) = (usize::from(entry.attribute_bytes), usize::from(entry.path_bytes));
        let mut named = vec![0; fingerprint_bytes + attribute_bytes + path_bytes + target_bytes];
        self.input.meta_after(&header, &mut named)?;
        let (fingerprint, named) = named.split_at(fingerprint_bytes);
        let (block, named) = named.split_at(attribute_bytes);
        let (path, target) = named.split_at(path_bytes);
        // Checked before it reaches any call: a name such as `..` or one that begins with a slash would lead out.
        frame::check_entry_path(path)?;
        self.run.expected.check(path)?;
        let others = if block.is_empty() { OtherAttributes::default() } else { attributes::decode(block)? };
        let attributes = Attributes { mode: entry.mode, mtime: Some(entry.mtime), others };
        let fingerprint = fingerprint.try_into().ok();
        let digests = FileDigests::default();
        let small = SmallFile { path, attributes, fingerprint, digests, read_back: false };
        let (destination, writing) = (&self.run.destination, &self.run.writing);
        let written = match entry.kind {
            EntryKind::File => {
                return self.small_file(index, entry.size, small, keep, staged);
            }
            EntryKind::Directory => {
                // Counted also where it is not made: the attributes come for each that was sent.
                self.run.directories_unset.fetch_add(1, Ordering::Relaxed);
                let made = if keep { destination.make_directory(path) } else { Ok(()) };
                made.map(|()| Stored::Done)
            }
            EntryKind::Symlink if keep => destination.write_link(&small, writing, target),
            EntryKind::Symlink => Ok(Stored::Done),
        };
        note_written(index, written, staged);
        Ok(())
    }

    /// Content of more than a slice is written as it comes, and removed again if it is not what it should be: a file of
    /// a bundle may have megabytes, and there may be a thousand streams.
    fn small_file(
        &mut self,
        index: u32,
        size: u32,
        mut small: SmallFile<'_>,
        keep: bool,
        staged: &mut Staged,
    ) -> Result<(), StreamError> {
        let run = self.run;
        // Of a store that keeps nothing no byte is handed over.
        let keeps = keep && run.properties.keeps;
        let mut begun = Ok(Begun::AtOnce);
        if keeps && size as usize > self.input.slice_bytes() {
            let begin = || run.destination.begin_small(&small, &run.writing, u64::from(size));
            begun = run.stages.wait_briefly(Waits::Storage, begin);
        }
        let in_memory = keeps && matches!(begun, Ok(Begun::AtOnce));
        let mut hasher = BlockHasher::new(run.options.digests, 0);
        let content = &mut self.scratch;
        content.clear();
        self.input.payload(u64::from(size), &mut |slice| {
            if keep {
                hasher.update(slice);
            }
            if let Ok(Begun::Growing(growing)) = &mut begun {
                run.stages.wait(Waits::Storage, || growing.write(slice));
            } else if in_memory {
                content.extend_from_slice(slice);
            }
            Ok::<(), StreamError>(())
        })?;
        let mut trailer = [0; TRAILER_BYTES];
        self.input.meta(&mut trailer)?;
        let trailer = Trailer::decode(&trailer, run.options.digests)?;
        if !keep {
            return Ok(());
        }
        // The sender could not read it, says why by itself, and may send it once more.
        if !trailer.whole {
            staged.exceptions.push((index, ItemResult::Dropped));
            return Ok(());
        }
        let ours = hasher.finish(true);
        if self.run.options.digests.main.is_some() && ours.main != trailer.digest.main {
            staged.exceptions.push((index, ItemResult::Mismatch));
            return Ok(());
        }
        small.digests = ours.as_file(run.options.digests);
        small.read_back = run.options.verify == Verify::Disk;
        let written = begun.and_then(|begun| match begun {
            Begun::Kept => Ok(Stored::Kept),
            Begun::Growing(growing) => run.stages.wait_briefly(Waits::Storage, || growing.finish(&small)),
            Begun::AtOnce if !keeps => Ok(Stored::Done),
            Begun::AtOnce => {
                let write = || run.destination.write_small(&small, &run.writing, content);
                run.stages.wait_briefly(Waits::Storage, write)
            }
        });
        note_written(index, written, staged);
        Ok(())
    }
}

fn hash_zeros(hasher: &mut BlockHasher, length: usize) {
    let zeros = vec![0; SLICE_BYTES.min(length)];
    (0..length).step_by(SLICE_BYTES).for_each(|done| hasher.update(&zeros[..zeros.len().min(length - done)]));
}

/// Notes what became of an item, where there is something left to do or to say.
fn note_written(index: u32, written: Result<Stored, Failure>, staged: &mut Staged) {
    match written {
        Ok(Stored::Hidden(entry)) => staged.entries.push((index, entry)),
        Ok(Stored::Done) => {}
        Ok(Stored::Kept) => staged.exceptions.push((index, ItemResult::Kept)),
        Err(why) => staged.exceptions.push((index, ItemResult::Failed(why))),
    }
}
