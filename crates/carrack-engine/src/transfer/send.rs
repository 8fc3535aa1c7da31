//! The sending end: scan, streams, pump.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::attributes::OtherAttributes;
use carrack_core::digest::{BlockDigest, FileTree, block_count, block_length};
use carrack_core::limits;
use carrack_core::pace::RateLimit;
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, ItemReport, Outcome, Reason, Side};
use carrack_core::request::Verify;
use carrack_core::selection::Selection;
use carrack_core::transfer::ScannedItem;
use carrack_core::transfer::machine::Machine;
use carrack_core::transfer::sender::{
    BlockJob, Bundle, Job, Next, Sender, SenderAction, SenderConfig, SenderTotals, SentItem, changed_unseen,
};
use carrack_core::tuning::{SLICE_BYTES, Tuning};
use carrack_core::wire::attributes;
use carrack_core::wire::control::{Ended, StreamLost, Tell, TransferOptions};
use carrack_core::wire::failure_bytes;
use carrack_core::wire::frame::{EntryHeader, EntryKind, Header, Trailer};
use carrack_core::wire::peer::PeerMessage;

use super::{StageReports, Voice, keep_thread, stream_failure};
use crate::data::hasher::BlockHasher;
use crate::data::path_watch::PathWatch;
use crate::data::stages::{Stages, Waits};
use crate::data::stream::{Connection, OutStream, Protection};
use crate::data::traffic::TrafficCount;
use crate::error::{describe, failure, protocol_failure};
use crate::net::socket::Socket;
use crate::panics::contain;
use crate::storage::overlap::Overlaps;
use crate::storage::read::{Found, Freshness, OpenOptions, Reader, Reading, Root, missing};
use crate::sync::{lock, wait, wait_timeout};

/// Items told to the command in one message.
const ITEMS_PER_MESSAGE: usize = 500;
/// What an item takes in a message beside its path and its failure's text, at most: digests and numbers.
const ITEM_BYTES: usize = 256;
/// How often a stream that waits looks whether its connection is still there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Found items handed to the machine at once.
const SCAN_BATCH: usize = 64;
/// Found items handed to the machine before there is a data connection: what is told of them waits at the command.
const SCAN_AHEAD: usize = 4096;
/// Large files that are read once more at the same time.
const SECOND_READERS: usize = 2;

/// The sending end of a transfer.
pub struct SendRun {
    machine: Mutex<Sender>,
    changed: Condvar,
    options: TransferOptions,
    tuning: Arc<Tuning>,
    roots: Vec<Root>,
    /// Of the roots, only this; taken by the scan.
    selection: Mutex<Option<Selection>>,
    freshness: Freshness,
    /// Open files of items that are sent in blocks: one for all streams, until the item has ended.
    sources: Mutex<HashMap<u64, Arc<dyn Reader>>>,
    /// Connections of the streams that are at work, to cut one off from another thread: its own may hang in a write.
    sockets: Mutex<HashMap<u16, Arc<Socket>>>,
    /// Streams cut off because they were slow.
    cut: Mutex<HashSet<u16>>,
    /// Streams cut off because their paths take no large packets.
    stuck: Mutex<HashSet<u16>>,
    limit: Option<Mutex<RateLimit>>,
    /// Whether there has been a data connection.
    linked: AtomicBool,
    /// Sources to be read once more, where that was asked for.
    again: Mutex<VecDeque<u64>>,
    /// Markers and part files of Carrack's own that the scan has left out.
    own: AtomicU64,
    stages: Arc<Stages>,
    traffic: TrafficCount,
    voice: Voice,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SendRun {
    /// Starts the pump; data flows as streams are added.
    /// With `known` the receiver is asked what it has from an earlier session before anything small is sent.
    pub fn start(
        options: TransferOptions,
        roots: Vec<Root>,
        selection: Option<Selection>,
        known: bool,
        voice: Voice,
        tuning: Arc<Tuning>,
    ) -> Arc<Self> {
        let config = SenderConfig {
            options,
            targets: roots.iter().map(|root| root.target.clone()).collect(),
            known,
            tuning: *tuning,
        };
        let run = Arc::new(Self {
            machine: Mutex::new(Sender::new(config)),
            changed: Condvar::new(),
            options,
            tuning,
            roots,
            selection: Mutex::new(selection),
            // What the receiver has already is told by them alone.
            freshness: if known { Freshness::Stored } else { Freshness::Cached },
            sources: Mutex::default(),
            sockets: Mutex::default(),
            cut: Mutex::default(),
            stuck: Mutex::default(),
            limit: options.rate_limit.map(|rate| Mutex::new(RateLimit::new(rate))),
            linked: AtomicBool::new(false),
            again: Mutex::default(),
            own: AtomicU64::new(0),
            stages: Arc::default(),
            traffic: TrafficCount::default(),
            voice,
            threads: Mutex::default(),
        });
        run.spawn("the pump", Self::pump_to_the_end);
        if options.verify == Verify::Source {
            // Threads of their own: a stream that reads sources again would send nothing meanwhile.
            (0..SECOND_READERS).for_each(|_| run.spawn("reading sources once more", Self::read_once_more));
        }
        run
    }

    /// Starts the scan. The answer to the first offer may come at once, and must find a run that
    /// its owner knows of already.
    pub fn look_for_sources(self: &Arc<Self>) {
        self.spawn("the scan", Self::scan);
    }

    /// Starts a thread. Should it panic, the transfer has failed: nobody is to wait for what it would have done.
    fn spawn(self: &Arc<Self>, what: &'static str, work: impl FnOnce(&Self) + Send + 'static) {
        let run = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            if let Err(why) = contain(Side::Source, what, || work(&run)) {
                run.cancel(why);
            }
        });
        keep_thread(&self.threads, thread);
    }

    /// See [`super::Running::join`].
    pub fn join(&self) {
        // A stream whose peer says nothing more and does not hang up would wait for ever, and so would this.
        for socket in lock(&self.sockets).values() {
            socket.abort();
        }
        // The lock is given back before each wait: a thread that is waited for may itself be starting one.
        while let Some(thread) = { lock(&self.threads).pop() } {
            let _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sender> {
        lock(&self.machine)
    }

    /// Tells the machine something, and wakes everybody.
    fn tell<T>(&self, input: impl FnOnce(&mut Sender) -> T) -> T {
        let result = input(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// See [`super::Running::handle_peer`].
    pub fn handle_peer(&self, bytes: &[u8]) {
        self.tell(|machine| {
            let handled =
                PeerMessage::decode(bytes).and_then(|message| machine.handle_message(Instant::now(), message));
            if let Err(error) = handled {
                machine.fail(protocol_failure(Side::Destination, &error));
            }
        });
    }

    /// See [`super::Running::cancel`].
    pub fn cancel(&self, why: Failure) {
        self.tell(|machine| machine.fail(why));
    }

    /// See [`super::Running::add_stream`].
    pub fn add_stream(self: &Arc<Self>, connection: Connection) {
        // Before anything else: the scan waits for it.
        self.linked.store(true, Ordering::Relaxed);
        // What was asked of connections must hold for every one, so one that refuses it ends the copy: it would be
        // slower or ruder than was asked for, and nobody would know.
        if let Err(why) = self.shape(&connection.socket) {
            return self.cancel(why);
        }
        let number = connection.number;
        lock(&self.sockets).insert(number, Arc::clone(&connection.socket));
        // Between two ends of one process nothing can be late on a network: no stream is cut off there.
        let within_process = matches!(connection.protection, Protection::Memory);
        self.tell(|machine| {
            if within_process {
                machine.handle_within_process(Instant::now());
            }
            machine.handle_stream(Instant::now(), number);
        });
        self.spawn("a data stream", move |run| {
            let mut stream = StreamWork {
                run,
                number,
                out: OutStream::new(connection, Arc::clone(&run.stages), &run.tuning),
                slice: vec![0; SLICE_BYTES],
                content: Vec::new(),
                looked: Instant::now(),
            };
            let worked = stream.work();
            // What the connection has carried goes on counting after its socket has gone.
            run.traffic.leave(&mut lock(&run.sockets), number);
            drop(stream);
            run.stream_over(number, worked);
        });
    }

    /// A stream's thread has ended: tells why, if it was not with the transfer.
    fn stream_over(&self, number: u16, worked: io::Result<()>) {
        // A stream that was asked to end is told to the command, too, though nothing failed: the command counts how
        // many it has.
        let retired = self.lock().is_retiring(number);
        if worked.is_ok() && !retired {
            return;
        }
        let why = worked.err().map(|error| stream_failure(number, &error));
        // What it carried is sent again on another stream; nothing else knows of it.
        if let Some(why) = &why {
            self.tell(|machine| machine.handle_stream_lost(Instant::now(), number, why));
        }
        if self.lock().outcome().is_some() {
            // The receiver had all it wanted, and has closed its side.
            return;
        }
        if let Some(why) = &why {
            // A connection that this side has cut off fails as if the network had: the user is told the reason, not the
            // symptom.
            let cut = lock(&self.cut).contains(&number);
            let slow = || format!("data connection {number} was slow and was cut off; what it carried goes on another");
            (self.voice.command)(Tell::Note(if cut { slow() } else { why.message() }));
        }
        if self.options.version.remakes_streams() {
            // The command may make another.
            let stuck = lock(&self.stuck).contains(&number);
            (self.voice.command)(Tell::StreamLost(StreamLost { failure: why, stuck, retired }));
        }
        // Last: until here it was asked whether the stream was to end.
        self.lock().forget_stream(number);
    }

    /// See [`super::Running::retire`].
    pub fn retire(&self, count: u32) -> u64 {
        self.tell(|machine| machine.retire(count as usize)) as u64
    }

    /// What was asked of the connection itself.
    fn shape(&self, socket: &Socket) -> Result<(), Failure> {
        if let Some(rate) = self.options.rate_limit {
            // The bucket lets slices through one by one; between two of them the kernel spreads
            // the packets, where it can.
            socket.pace(rate);
        }
        let Some(wanted) = self.options.congestion else { return Ok(()) };
        socket.set_congestion_control(wanted.name()).map_err(|error| {
            let why = format!(
                "the system refuses the congestion control {} ({}); it lets everybody use: {}",
                wanted.name(),
                describe(&error),
                carrack_sys::host::allowed_congestion_controls()
            );
            failure(ErrorCode::Usage, Side::Source, why).for_reason(Reason::CongestionRefused)
        })
    }

    /// Walks the sources and hands in what it finds; at the end what was selected and is not there.
    fn scan(&self) {
        let selection = lock(&self.selection).take();
        let mut ahead = 0;
        let overlaps = Overlaps::new(&self.roots, selection.as_ref());
        for (number, root) in self.roots.iter().enumerate() {
            let mut batch = Vec::with_capacity(SCAN_BATCH);
            let mut since = Instant::now();
            root.walk(number as u32, selection.as_ref(), self.freshness, &mut |found| {
                batch.push(overlaps.check(found));
                // A slow listing must not keep back what it has found.
                let full = batch.len() >= SCAN_BATCH || since.elapsed() > Duration::from_millis(2);
                if !full {
                    return true;
                }
                since = Instant::now();
                self.take_found(&mut batch, &mut ahead)
            });
            if !self.take_found(&mut batch, &mut ahead) {
                return;
            }
        }
        // A selected path that no source has is a failure of its own: a list of files would be shortened without a
        // word.
        let mut absent = selection.iter().flat_map(|selection| missing(&self.roots, selection)).peekable();
        while absent.peek().is_some() {
            if !self.take_found(&mut absent.by_ref().take(SCAN_BATCH).collect(), &mut ahead) {
                return;
            }
        }
        self.tell(|machine| machine.handle_scan_complete(Instant::now()));
    }

    /// Hands in what the scan found, once there is room; before there is a data connection, `ahead` counts how much
    /// there is. False when the transfer has ended.
    fn take_found(&self, batch: &mut Vec<Found>, ahead: &mut usize) -> bool {
        *ahead += batch.len();
        let mut machine = self.lock();
        loop {
            if machine.outcome().is_some() {
                return false;
            }
            // The scan is far quicker than any network. Without a bound the machine would hold every name of a tree,
            // and the command every report of it.
            if machine.wants_items() && (*ahead <= SCAN_AHEAD || self.linked.load(Ordering::Relaxed)) {
                break;
            }
            machine = wait(&self.changed, machine);
        }
        let now = Instant::now();
        for found in batch.drain(..) {
            match found {
                Found::Item(item) => machine.handle_item(now, item),
                Found::Failure(item, why) => machine.handle_scan_failure(now, &item, why),
                Found::Own => {
                    self.own.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        drop(machine);
        self.changed.notify_all();
        true
    }

    /// Pumps. After a panic nobody carries out any more what the machine decides: both sides are told here.
    fn pump_to_the_end(&self) {
        if let Err(why) = contain(Side::Source, "the pump", || self.pump()) {
            self.cancel(why.clone());
            let _ = contain(Side::Source, "the last word", || (self.voice.peer)(&PeerMessage::Fail(why.clone())));
            self.end(Err(why), SenderTotals::default());
        }
    }

    /// Carries out what the machine decides, until the transfer has ended.
    fn pump(&self) {
        let mut items = Vec::new();
        let mut told = Instant::now();
        let mut reports = StageReports::new(&self.options, &self.tuning);
        let mut paths = PathWatch::default();
        loop {
            if self.options.version.remakes_streams() {
                self.cut_stuck(&mut paths);
            }
            let mut machine = self.lock();
            // All of them under one lock, carried out without it: each may wait for a file or for the connection, and
            // the streams need the machine meanwhile.
            let mut actions = Vec::new();
            while let Some(action) = machine.poll_action() {
                actions.push(action);
            }
            let outcome = machine.outcome();
            let (progress, totals) = (machine.progress(), machine.totals());
            if actions.is_empty() && outcome.is_none() {
                // Woken by any input, and in time for the next progress.
                let left = self.tuning.progress_interval.saturating_sub(told.elapsed()).max(Duration::from_millis(1));
                drop(wait_timeout(&self.changed, machine, left));
            } else {
                drop(machine);
            }
            let idle = actions.is_empty();
            // Where reports have been taken, the scan may go on.
            if actions.iter().any(|action| matches!(action, SenderAction::Report(_))) {
                self.changed.notify_all();
            }
            for action in actions {
                self.carry_out(action, &mut items);
            }
            if told.elapsed() >= self.tuning.progress_interval
                || items.len() >= ITEMS_PER_MESSAGE
                // The last reports go before the end is told: after it the command reads no more.
                || (idle && outcome.is_some())
            {
                told = Instant::now();
                self.tell_command(Tell::Progress(progress), &mut items);
            }
            let over = idle && outcome.is_some();
            reports.tell(&self.voice, &self.stages, || self.traffic.so_far(&self.sockets), over);
            // Only when there is nothing left to do: the last actions tell the other side how it ended.
            if let (true, Some(outcome)) = (over, outcome) {
                return self.end(outcome, totals);
            }
        }
    }

    /// Reads sources once more that have been sent, until the transfer has ended.
    fn read_once_more(&self) {
        let mut slice = vec![0; SLICE_BYTES];
        loop {
            let mut machine = self.lock();
            let item = loop {
                if machine.outcome().is_some() {
                    return;
                }
                let next = lock(&self.again).pop_front();
                match next {
                    Some(item) => break item,
                    None => machine = wait(&self.changed, machine),
                }
            };
            let was_read = machine.was_read(item);
            drop(machine);
            // The same open file that was sent: another file under its name would prove nothing.
            let source = lock(&self.sources).get(&item).cloned();
            let result = source.zip(was_read).map_or(Ok(None), |(source, was_read)| {
                let second = self.second_reading(&*source, was_read, &mut slice);
                // The times tell more of what has happened, if they tell.
                source.check_unchanged().and(second)
            });
            self.tell(|machine| machine.handle_source_checked(Instant::now(), item, result));
        }
    }

    /// The digests of a source that is read a second time; `None` where it cannot be, and when the
    /// transfer has ended meanwhile.
    fn second_reading(
        &self,
        source: &dyn Reader,
        (size, sparse): (u64, bool),
        slice: &mut [u8],
    ) -> Result<Option<FileDigests>, Failure> {
        // A pipe gives its bytes once.
        if source.size().is_none() {
            return Ok(None);
        }
        let block_bytes = self.options.block_bytes;
        let mut tree = FileTree::new(block_bytes, self.options.digests);
        let blocks = block_count(size, block_bytes);
        for index in 0..blocks {
            let (offset, length) = (index * u64::from(block_bytes), block_length(index, size, block_bytes));
            let job =
                BlockJob { item: 0, offset, length: length as u32, whole: blocks == 1, unsized_source: false, sparse };
            // In the blocks in which it was sent: the digest is made of theirs, and XXH3-128 of a block depends on its
            // place.
            tree.insert(index, length, self.digest(source, job, slice)?);
            // After each block: a second reading may take as long as the copy, and a cancelled one must not hold up the
            // end.
            if self.lock().outcome().is_some() {
                return Ok(None);
            }
        }
        Ok(tree.finish(size))
    }

    /// Reads a block and sends nothing.
    fn digest(&self, source: &dyn Reader, job: BlockJob, slice: &mut [u8]) -> Result<BlockDigest, Failure> {
        let hole = job.sparse && source.is_hole(job.offset, u64::from(job.length));
        let _reading = (!hole).then(|| Reading::begin(source, job.offset, job.length.into()));
        let mut hasher = BlockHasher::new(self.options.digests, job.offset);
        let mut read = 0;
        while read < job.length as usize {
            let most = slice.len().min(job.length as usize - read);
            let slice = &mut slice[..most];
            // A hole reads as zeros: its digest is that of the zeros which the receiver has there.
            if hole {
                slice.fill(0);
            } else {
                source.read_at(job.offset + read as u64, slice)?;
            }
            hasher.update(slice);
            read += slice.len();
        }
        Ok(hasher.finish(job.whole))
    }

    /// Ends streams over which nothing that fills a packet gets through: they can be made with smaller ones.
    fn cut_stuck(&self, paths: &mut PathWatch) {
        for number in paths.look(Instant::now(), &self.sockets) {
            // Noted before the socket is cut: its thread ends at once and tells the command why.
            lock(&self.stuck).insert(number);
            if let Some(socket) = lock(&self.sockets).get(&number) {
                socket.abort();
            }
        }
    }

    fn tell_command(&self, progress: Tell, items: &mut Vec<ItemReport>) {
        (self.voice.command)(progress);
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
            (self.voice.command)(Tell::Items(list));
        }
    }

    fn carry_out(&self, action: SenderAction, items: &mut Vec<ItemReport>) {
        match action {
            SenderAction::Send(message) => {
                // A control connection that is gone ends the whole session; its reader notices.
                let _ = (self.voice.peer)(&message);
            }
            SenderAction::CheckSource(item) if self.options.verify == Verify::Source => {
                lock(&self.again).push_back(item);
                self.changed.notify_all();
            }
            SenderAction::CheckSource(item) => {
                let source = lock(&self.sources).get(&item).cloned();
                // Size and times as they were when it was opened: a file that changed while it was sent is a mixture.
                let result = source.map_or(Ok(()), |source| source.check_unchanged()).map(|()| None);
                self.tell(|machine| machine.handle_source_checked(Instant::now(), item, result));
            }
            SenderAction::CloseSource(item) => {
                lock(&self.sources).remove(&item);
            }
            SenderAction::AbortStream(number) => {
                lock(&self.cut).insert(number);
                if let Some(socket) = lock(&self.sockets).get(&number) {
                    socket.abort();
                }
            }
            SenderAction::Report(report) => items.push(*report),
            // The file is listed anew: what it was before would fail the same check again.
            SenderAction::Rescan { scanned, attempt } => {
                let found = self.root(&scanned).and_then(|root| root.source.look_again(&scanned));
                self.tell(|machine| machine.handle_rescanned(Instant::now(), &scanned, attempt, found));
            }
        }
    }

    fn end(&self, outcome: Result<(), Failure>, totals: SenderTotals) {
        // Streams that hang in a write to a peer that takes nothing would not hear that it is over.
        if outcome.is_err() {
            for socket in lock(&self.sockets).values() {
                socket.abort();
            }
        }
        self.changed.notify_all();
        (self.voice.command)(Tell::Ended(Box::new(Ended {
            files: totals.files,
            symlinks: totals.symlinks,
            directories: totals.directories,
            bytes: totals.bytes,
            kept: totals.kept,
            failed: totals.failed,
            vanished: totals.vanished,
            specials: totals.specials,
            mismatches: totals.faults.digest_mismatches,
            resent: totals.faults.resent_after_loss,
            stragglers: totals.faults.stragglers,
            streams_lost: totals.faults.streams_lost,
            durable: totals.durable,
            failure: outcome.err(),
            resumed_files: totals.files_resumed,
            resumed_bytes: totals.bytes_resumed,
            items_again: totals.faults.items_again,
            leftovers: self.own.load(Ordering::Relaxed),
            ..Ended::default()
        })));
    }

    fn source_of(&self, item: u64, stream: u16) -> Result<Arc<dyn Reader>, Failure> {
        if let Some(source) = lock(&self.sources).get(&item) {
            return Ok(Arc::clone(source));
        }
        // Opened without any lock: on a file system that hangs only this stream waits.
        let scanned = self.lock().scanned(item).cloned();
        let scanned = scanned.ok_or_else(|| failure(ErrorCode::Internal, Side::Source, "the item has ended"))?;
        let opened = self.open(&scanned, stream)?;
        // What is opened must be what was listed: the receiver was told its size and its times.
        opened.check_listed(&scanned)?;
        let mut sources = lock(&self.sources);
        // Another stream may have been quicker: all must read the same open file.
        Ok(Arc::clone(sources.entry(item).or_insert_with(|| Arc::from(opened))))
    }

    fn open(&self, item: &ScannedItem, stream: u16) -> Result<Box<dyn Reader>, Failure> {
        let mut rest = |time| self.rest(stream, time);
        let may_grow = self.options.allow_growing;
        let mut options = OpenOptions { tuning: &self.tuning, may_grow, rest: &mut rest };
        let opened = self.root(item)?.source.open(item, &mut options)?;
        // A file that may grow is never refused for its size, so nothing else would notice another one under its name.
        if may_grow {
            opened.check_listed(item)?;
        }
        Ok(opened)
    }

    /// Lets so much time pass, for a source that a stream waits for; false when the transfer has ended.
    fn rest(&self, stream: u16, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut machine = self.lock();
        // The machine is told, so that the stream is not taken for one that is late.
        machine.handle_source_rests(Instant::now(), stream, until);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || machine.outcome().is_some() {
                return machine.outcome().is_none();
            }
            machine = wait_timeout(&self.changed, machine, left);
        }
    }

    fn entry(&self, kind: EntryKind, item: &ScannedItem, target: &[u8], size: usize) -> EntryHeader {
        // Of a directory they come at the end.
        let (version, is_directory) = (self.options.version, kind == EntryKind::Directory);
        let others = Some(&item.attributes.others).filter(|_| !is_directory && version.has_attributes());
        EntryHeader {
            kind,
            fingerprinted: !is_directory && version.has_fingerprints() && item.fingerprint.is_some(),
            attribute_bytes: others.map_or(0, |others| others.encoded_bytes() as u16),
            path_bytes: target.len() as u16,
            mode: item.attributes.mode,
            size: size as u32,
            mtime: item.attributes.mtime.unwrap_or_default(),
        }
    }

    fn root(&self, item: &ScannedItem) -> Result<&Root, Failure> {
        self.roots
            .get(item.root as usize)
            .ok_or_else(|| failure(ErrorCode::Internal, Side::Source, "an item without a source"))
    }

    fn pace(&self, bytes: usize) {
        if let Some(limit) = &self.limit {
            let mut wait = lock(limit).reserve(Instant::now(), bytes as u64);
            // In parts: at a low rate a slice waits for longer than what holds the streams back may remain unknown.
            while !wait.is_zero() {
                let part = wait.min(self.tuning.stages_interval);
                self.stages.wait(Waits::Pacing, || std::thread::sleep(part));
                wait -= part;
            }
        }
    }
}

/// One stream's thread.
struct StreamWork<'a> {
    run: &'a SendRun,
    number: u16,
    out: OutStream,
    slice: Vec<u8>,
    content: Vec<u8>,
    /// When it was last seen that the connection is still there.
    looked: Instant,
}

impl StreamWork<'_> {
    fn work(&mut self) -> io::Result<()> {
        loop {
            let mut machine = self.run.lock();
            let next = machine.next_job(Instant::now(), self.number);
            match next {
                Next::Job(job) => {
                    drop(machine);
                    // Taking a job may have made room for the scan, or have cut off a straggler.
                    self.run.changed.notify_all();
                    let stages = Arc::clone(&self.run.stages);
                    match job {
                        Job::Block(block) => stages.carry(|| self.send_block(block))?,
                        Job::Bundle(bundle) => stages.carry(|| self.send_bundle(&bundle))?,
                        Job::Check(block) => {
                            self.check_block(block);
                            // Nothing is written, so nothing else would notice that the connection has gone.
                            self.look_for_end()?;
                        }
                    }
                }
                Next::Wait(until) => {
                    let now = Instant::now();
                    let left = until.map_or(LOOK_INTERVAL, |until| until.saturating_duration_since(now));
                    drop(self.run.changed.wait_timeout(machine, left.min(LOOK_INTERVAL)));
                    self.look_for_end()?;
                }
                // The end is said, so that the receiver can tell it from a connection that broke.
                Next::End => {
                    drop(machine);
                    self.out.meta(&[&Header::End.encode()])?;
                    return self.out.finish();
                }
            }
        }
    }

    /// Who only writes does not hear that the connection has ended after the last write: everything may lie in a buffer
    /// of the system that nobody will ever empty. A receiver says nothing here, so whatever could be read is an end.
    fn look_for_end(&mut self) -> io::Result<()> {
        if self.looked.elapsed() < LOOK_INTERVAL {
            return Ok(());
        }
        self.looked = Instant::now();
        let ready = carrack_sys::socket::wait(&*self.out.socket(), true, false, Some(Duration::ZERO))?;
        if ready.read {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the other side has closed it"));
        }
        if self.out.socket().is_silent() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    fn send_block(&mut self, job: BlockJob) -> io::Result<()> {
        // A source that fails is the item's failure, not the stream's: the others go on over it.
        let source = match self.run.source_of(job.item, self.number) {
            Ok(source) => source,
            Err(why) => {
                self.block_done(job, Err(why));
                return Ok(());
            }
        };
        let source = &*source;
        if job.unsized_source {
            return self.send_next(job, source);
        }
        let hole = job.sparse && source.is_hole(job.offset, u64::from(job.length));
        let header = Header::Block { item: job.item, offset: job.offset, length: job.length, hole, whole: job.whole };
        self.out.meta(&[&header.encode()])?;
        let _reading = (!hole).then(|| Reading::begin(source, job.offset, job.length.into()));
        let mut hasher = BlockHasher::new(self.run.options.digests, job.offset);
        let mut read = Ok(());
        let mut sent = if hole { 0 } else { self.send_unseen(job, source)? };
        let zeros = hole || source.is_zeros();
        if zeros {
            self.slice.fill(0);
        }
        // The header has promised a length. Where reading fails the rest is sent as it comes and the trailer calls the
        // block void: the connection stays good for other items.
        while sent < job.length as usize {
            let slice = &mut self.slice[..(job.length as usize - sent).min(SLICE_BYTES)];
            if !zeros && read.is_ok() {
                read = self.run.stages.wait(Waits::Storage, || source.read_at(job.offset + sent as u64, slice));
            }
            hasher.update(slice);
            let length = slice.len();
            if !hole {
                self.run.pace(length);
                self.out.payload(&self.slice[..length])?;
            }
            sent += length;
        }
        let digest = hasher.finish(job.whole);
        self.out.meta(&[&Trailer { whole: read.is_ok(), digest }.encode()])?;
        self.out.flush()?;
        self.block_done(job, read.map(|()| (job.length, digest)));
        Ok(())
    }

    /// Where nobody asked for a digest the kernel sends the file by itself. Says how many bytes
    /// of the block it has sent.
    fn send_unseen(&mut self, job: BlockJob, source: &dyn Reader) -> io::Result<usize> {
        let Some(file) = source.file().filter(|_| !self.run.options.digests.any()) else { return Ok(0) };
        let mut sent = 0;
        while sent < job.length as usize {
            let slice = (job.length as usize - sent).min(SLICE_BYTES);
            let count = self.out.file(file, job.offset + sent as u64, slice)?;
            self.run.pace(count);
            sent += count;
            // The file is shorter than it was, or the kernel does not send it: the caller reads the rest, and finds out
            // which.
            if count < slice {
                break;
            }
        }
        Ok(sent)
    }

    /// Reads a block that the receiver holds from an earlier attempt, and tells its digest.
    fn check_block(&mut self, job: BlockJob) {
        let source = self.run.source_of(job.item, self.number);
        let result = source.and_then(|source| self.run.digest(&*source, job, &mut self.slice));
        self.run
            .tell(|machine| machine.handle_block_checked(Instant::now(), self.number, job.item, job.offset, result));
    }

    /// The next block of a source whose size is not known: read whole before its header can be written.
    fn send_next(&mut self, job: BlockJob, source: &dyn Reader) -> io::Result<()> {
        self.content.resize(job.length as usize, 0);
        let (run, content) = (&self.run, &mut self.content);
        let is_over = || run.lock().outcome().is_some();
        let read = run.stages.wait(Waits::Storage, || source.read_next(job.offset, content, &is_over));
        let (length, end) = match read {
            Ok(read) => read,
            Err(why) => {
                self.block_done(job, Err(why));
                return Ok(());
            }
        };
        // Before the block is sent: the next one can be read by another stream meanwhile.
        self.run.tell(|machine| machine.handle_read(Instant::now(), job.item, job.offset, length as u32, end));
        let whole = end && job.offset == 0;
        let header = Header::Block { item: job.item, offset: job.offset, length: length as u32, hole: false, whole };
        self.out.meta(&[&header.encode()])?;
        let mut hasher = BlockHasher::new(self.run.options.digests, job.offset);
        for slice in self.content[..length].chunks(SLICE_BYTES) {
            hasher.update(slice);
            self.run.pace(slice.len());
            self.out.payload(slice)?;
        }
        let digest = hasher.finish(whole);
        self.out.meta(&[&Trailer { whole: true, digest }.encode()])?;
        self.out.flush()?;
        self.block_done(job, Ok((length as u32, digest)));
        Ok(())
    }

    fn block_done(&self, job: BlockJob, result: Result<(u32, BlockDigest), Failure>) {
        self.run.tell(|machine| machine.handle_block_sent(Instant::now(), self.number, job.item, job.offset, result));
    }

    fn send_bundle(&mut self, bundle: &Bundle) -> io::Result<()> {
        let header = Header::Bundle { bundle: bundle.id, entries: bundle.items.len() as u32 };
        self.out.meta(&[&header.encode()])?;
        let mut sent = Vec::with_capacity(bundle.items.len());
        for item in &bundle.items {
            let target = self.run.lock().target(item);
            sent.push(match item.kind {
                ItemKind::File => self.send_file(item, &target)?,
                ItemKind::Symlink => self.send_link(item, &target)?,
                ItemKind::Directory | ItemKind::Special => {
                    self.out.meta(&[&self.run.entry(EntryKind::Directory, item, &target, 0).encode(), &target])?;
                    SentItem { size: 0, digest: BlockDigest::default(), failure: None }
                }
            });
        }
        self.out.flush()?;
        self.run.tell(|machine| machine.handle_bundle_sent(Instant::now(), bundle.id, sent));
        Ok(())
    }

    fn send_file(&mut self, item: &ScannedItem, target: &[u8]) -> io::Result<SentItem> {
        self.content.clear();
        let mut described = item.clone();
        let twice = self.run.options.verify == Verify::Source;
        let (run, stream, content) = (self.run, self.number, &mut self.content);
        let read = run.stages.wait_briefly(Waits::Storage, || {
            run.open(item, stream).and_then(|source| {
                // Those of the file that is open, not those of the listing: content and attributes belong together.
                described.attributes = source.attributes(item);
                let most = item.size.filter(|_| source.size().is_none()).unwrap_or(run.tuning.bundled_file_bytes_max);
                source.read_whole(content, most as usize)?;
                // Of what grows, a part is copied: that is not what is known by it.
                if let Some(size) = source.size() {
                    described.fingerprint = source.fingerprint().filter(|_| size == content.len() as u64);
                }
                let same = !twice || source.size().is_none() || {
                    let mut second = Vec::with_capacity(content.len());
                    source.read_whole(&mut second, most as usize)?;
                    second == *content
                };
                source.check_unchanged().and_then(|()| if same { Ok(()) } else { Err(changed_unseen()) })
            })
        });
        // Nothing of it is worth sending: the trailer says that it is not whole, and the receiver drops it.
        if read.is_err() {
            self.content.clear();
        }
        self.run.pace(self.content.len());
        let mut hasher = BlockHasher::new(self.run.options.digests, 0);
        hasher.update(&self.content);
        let digest = hasher.finish(true);
        let header = self.run.entry(EntryKind::File, &described, target, self.content.len());
        let attributes = attributes_of(&header, &described);
        self.out.meta(&[&header.encode(), fingerprint_of(&header, &described), &attributes, target])?;
        self.out.payload(&self.content)?;
        self.out.meta(&[&Trailer { whole: read.is_ok(), digest }.encode()])?;
        Ok(SentItem { size: self.content.len() as u64, digest, failure: read.err() })
    }

    fn send_link(&mut self, item: &ScannedItem, target: &[u8]) -> io::Result<SentItem> {
        let leads_to = self.run.root(item).and_then(|root| root.source.link_target(&item.path));
        // A link that cannot be read is sent as an empty file that is not whole: the receiver drops it.
        match leads_to {
            Ok((leads_to, fingerprint)) => {
                let described = ScannedItem { fingerprint, ..item.clone() };
                let header = self.run.entry(EntryKind::Symlink, &described, target, leads_to.len());
                let attributes = attributes_of(&header, &described);
                let fingerprint = fingerprint_of(&header, &described);
                self.out.meta(&[&header.encode(), fingerprint, &attributes, target, &leads_to])?;
                Ok(SentItem { size: 0, digest: BlockDigest::default(), failure: None })
            }
            Err(why) => {
                // Only a file has a trailer that can say so.
                let mut described = ScannedItem { fingerprint: None, ..item.clone() };
                described.attributes.others = OtherAttributes::default();
                self.out.meta(&[&self.run.entry(EntryKind::File, &described, target, 0).encode(), target])?;
                self.out.meta(&[&Trailer { whole: false, digest: BlockDigest::default() }.encode()])?;
                Ok(SentItem { size: 0, digest: BlockDigest::default(), failure: Some(why) })
            }
        }
    }
}

/// Bytes of what a message says of why an item failed.
fn words_of(outcome: &Outcome) -> usize {
    if let Outcome::Failed(why) = outcome { failure_bytes(why) } else { 0 }
}

/// The block of attributes that precedes the path of an entry, if its header says so.
fn attributes_of(header: &EntryHeader, item: &ScannedItem) -> Vec<u8> {
    if header.attribute_bytes == 0 { Vec::new() } else { attributes::encode(&item.attributes.others) }
}

/// What precedes the path of an entry, if its header says so.
fn fingerprint_of<'a>(header: &EntryHeader, item: &'a ScannedItem) -> &'a [u8] {
    item.fingerprint.as_ref().filter(|_| header.fingerprinted).map_or(&[], |fingerprint| fingerprint)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use carrack_core::request::{Digests, Durability, Existing};
    use carrack_core::wire::Version;

    use super::*;
    use crate::storage::synthetic::Synthetic;

    /// What the peer answers is handed in by whoever has started the run: it must know the run before
    /// there is anything to answer.
    #[test]
    fn offers_wait_until_the_owner_knows_the_run_and_then_for_no_stream() {
        let digests = Digests::BLAKE3;
        let options = TransferOptions {
            block_bytes: 1 << 20,
            digests,
            verify: Verify::Wire,
            existing: Existing::Replace,
            rate_limit: None,
            congestion: None,
            item_events: false,
            version: Version::V1,
            durability: Durability::Group,
            allow_growing: false,
        };
        let (said, hear) = mpsc::channel();
        let voice = Voice {
            peer: Arc::new(move |message| {
                let _ = said.send(message.clone());
                Ok(())
            }),
            command: Arc::new(|_| {}),
        };
        let root = Root { source: Box::new(Synthetic::Zeros(5 << 20)), target: b"zeros".to_vec(), typed: Vec::new() };
        let run = SendRun::start(options, vec![root], None, false, voice, Arc::default());
        let early = hear.recv_timeout(Duration::from_millis(200));
        run.look_for_sources();
        let offered = hear.recv_timeout(Duration::from_secs(20)).unwrap();
        run.cancel(failure(ErrorCode::Interrupted, Side::Command, "the test is over"));
        run.join();
        assert!(matches!(offered, PeerMessage::Offer(_)), "{offered:?}");
        assert!(early.is_err(), "{early:?}");
    }
}
