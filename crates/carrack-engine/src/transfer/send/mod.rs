//! The sending end: scan, streams, pump.

mod bundle;
mod following;
mod pump;
mod removal;
mod scan;
mod sources;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use carrack_core::backup::Backup;
use carrack_core::expected::ExpectedDigests;
use carrack_core::filter::Filters;
use carrack_core::ids::{BundleId, ItemId, StreamId};
use carrack_core::limits;
use carrack_core::pace::RateLimit;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::Verify;
use carrack_core::selection::Selection;
use carrack_core::timeline::{Queue, QueueFill, Sample, StartStep};
use carrack_core::transfer::ScannedItem;
use carrack_core::transfer::sender::{Sender, SenderConfig};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::{StreamLost, Tell, TransferOptions};
use carrack_core::wire::peer::AskedIndex;
use carrack_sys::host::cpu_count;

use self::following::FollowedSources;
use self::removal::Copied;
use self::stream::SendStream;
use super::driver::Driver;
use super::measure::all_streams;
use super::{Voice, content_readers, stream_failure};
use crate::data::pieces::{PackedBytes, PiecePacker};
use crate::data::stream::{Connection, OutStream, Protection};
use crate::error::{describe, failure};
use crate::net::socket::Socket;
use crate::storage::read::{Freshness, Reader, Root};
use crate::storage::workers::MetadataWorkers;
use crate::sync::lock;

/// Large files that are read once more at the same time.
const SECOND_READERS: usize = 2;

/// What is sent of the sources, and what it must be.
#[derive(Default)]
pub struct SendChoice {
    /// Of the roots, only this.
    pub selection: Option<Selection>,
    /// What is left out.
    pub filters: Filters,
    /// Where the destination keeps what it replaces, nothing goes.
    pub backup: Option<Backup>,
    /// Digests without which files get no name.
    pub expected: ExpectedDigests,
}

/// The sending end of a transfer.
pub struct SendRun {
    pub(super) driver: Arc<Driver<Sender>>,
    roots: Vec<Root>,
    /// Of the roots, only this; taken by the scan.
    selection: Mutex<Option<Selection>>,
    /// What is left out.
    filters: Filters,
    backup: Option<Backup>,
    freshness: Freshness,
    /// Open files of items that are sent in blocks: one for all streams, until the item has ended.
    sources: Mutex<HashMap<ItemId, Arc<dyn Reader>>>,
    /// Streams cut off because they were slow.
    cut: Mutex<HashSet<StreamId>>,
    /// Streams cut off because their paths take no large packets.
    stuck: Mutex<HashSet<StreamId>>,
    limit: Option<Mutex<RateLimit>>,
    /// Digests without which files get no name.
    expected: ExpectedDigests,
    /// Whether there has been a data connection.
    linked: AtomicBool,
    /// Who looks at files of the sources, and who opens those that travel in bundles.
    listing: MetadataWorkers,
    finding: MetadataWorkers,
    /// Sources to be read once more, where that was asked for.
    again: Mutex<VecDeque<ItemId>>,
    /// Sources that are looked at while they grow.
    followed: FollowedSources,
    /// Files to be read and compared with those of the destination.
    contents: Mutex<VecDeque<(AskedIndex, ScannedItem, bool)>>,
    /// What the destination is about to delete: number of the question, and paths.
    doubts: Mutex<VecDeque<(BundleId, Vec<Vec<u8>>)>>,
    /// Markers and part files of Carrack's own that the scan has left out.
    own: AtomicU64,
    /// What has been copied, and is to be deleted at the end.
    copied: Mutex<Copied>,
    /// What has been compressed.
    packed: Arc<PackedBytes>,
}

impl SendRun {
    /// Starts the pump; data flows as streams are added.
    /// With `known` the receiver is asked what it has from an earlier session before anything small is sent.
    pub fn start(
        options: TransferOptions,
        roots: Vec<Root>,
        SendChoice { selection, filters, backup, expected }: SendChoice,
        known: bool,
        voice: Voice,
        tuning: Arc<Tuning>,
    ) -> Result<Arc<Self>, Failure> {
        let config = SenderConfig {
            options,
            targets: roots.iter().map(|root| root.target.clone()).collect(),
            known,
            tuning: *tuning,
        };
        let mut machine = Sender::new(config);
        machine.expect(expected.clone());
        let run = Arc::new(Self {
            driver: Driver::new(machine, options, voice, Arc::clone(&tuning)),
            expected,
            roots,
            selection: Mutex::new(selection),
            filters,
            backup,
            // What the receiver has already is told by them alone.
            freshness: if known { Freshness::Stored } else { Freshness::Cached },
            sources: Mutex::default(),
            cut: Mutex::default(),
            stuck: Mutex::default(),
            limit: options.rate_limit.map(|rate| Mutex::new(RateLimit::new(rate))),
            linked: AtomicBool::new(false),
            listing: MetadataWorkers::new(&tuning, tuning.scan_threads(cpu_count())),
            finding: MetadataWorkers::new(&tuning, 1),
            again: Mutex::default(),
            followed: FollowedSources::default(),
            contents: Mutex::default(),
            doubts: Mutex::default(),
            own: AtomicU64::new(0),
            copied: Mutex::default(),
            packed: Arc::default(),
        });
        let measured = Arc::clone(&run);
        run.driver.start_sampling(move |sample| measured.describe(sample));
        let pumping = Arc::clone(&run);
        if let Err(why) = run.driver.try_spawn("the pump", move || pumping.pump()) {
            run.driver.end_sampling(true);
            return Err(why);
        }
        if options.verify == Verify::Source {
            // Threads of their own: a stream that reads sources again would send nothing meanwhile.
            (0..SECOND_READERS).for_each(|_| run.spawn("reading sources once more", Self::read_once_more));
        }
        if options.follows() {
            run.spawn("following sources", Self::follow_sources);
        }
        if options.reads_to_compare() {
            (0..content_readers()).for_each(|_| run.spawn("reading to compare", Self::read_contents));
        }
        Ok(run)
    }

    /// Starts the scan. The answer to the first offer may come at once, and must find a run that
    /// its owner knows of already.
    pub fn look_for_sources(self: &Arc<Self>) {
        self.spawn("the scan", Self::scan);
    }

    /// Starts a thread. Should it panic, the transfer has failed: nobody is to wait for what it would have done.
    fn spawn(self: &Arc<Self>, what: &'static str, work: impl FnOnce(&Self) + Send + 'static) {
        let run = Arc::clone(self);
        self.driver.spawn(what, move || work(&run));
    }

    /// See [`super::Running::add_stream`].
    pub fn add_stream(self: &Arc<Self>, connection: Connection) {
        // Before anything else: the scan waits for it.
        self.linked.store(true, Ordering::Relaxed);
        self.driver.stages.step(StartStep::Stream);
        // What was asked of connections must hold for every one, so one that refuses it ends the copy: it would be
        // slower or ruder than was asked for, and nobody would know.
        if let Err(why) = self.shape(&connection.socket) {
            return self.driver.cancel(why);
        }
        let number = connection.number;
        lock(&self.driver.sockets).insert(number, Arc::clone(&connection.socket));
        // Between two ends of one process nothing can be late on a network: no stream is cut off there.
        let within_process = matches!(connection.protection, Protection::Memory);
        self.driver.tell(|machine| {
            if within_process {
                machine.handle_within_process(Instant::now());
            }
            machine.handle_stream(Instant::now(), number);
        });
        let run = Arc::clone(self);
        let started = self.driver.try_spawn("a data stream", move || {
            let run = &*run;
            let _counted = run.driver.crew.enter(number);
            let _caller = run.finding.enter();
            let mut out = OutStream::new(connection, Arc::clone(&run.driver.stages), &run.driver.tuning);
            if run.driver.options.compress {
                out.cut_into_pieces(PiecePacker::new(Arc::clone(&run.packed)));
            }
            let mut stream = SendStream::new(run, number, out);
            let worked = stream.work();
            // What the connection has carried goes on counting after its socket has gone.
            run.driver.traffic.leave(&mut lock(&run.driver.sockets), number);
            drop(stream);
            run.stream_over(number, worked);
        });
        if let Err(why) = started {
            self.lose_unstarted(number, why);
        }
    }

    /// There is no thread for a stream. The copy goes on with those that it has; without any it fails.
    fn lose_unstarted(&self, number: StreamId, why: Failure) {
        let is_only = {
            let mut sockets = lock(&self.driver.sockets);
            self.driver.traffic.leave(&mut sockets, number);
            sockets.is_empty()
        };
        if is_only {
            return self.driver.cancel(why);
        }
        self.driver.tell(|machine| machine.handle_stream_lost(Instant::now(), number));
        (self.driver.voice.command)(Tell::Note(format!("the copy goes on with fewer streams: {}", why.message())));
        let lost = StreamLost { failure: Some(why), stuck: false, retired: false };
        (self.driver.voice.command)(Tell::StreamLost(lost));
        self.driver.lock().forget_stream(number);
    }

    /// A stream's thread has ended: tells why, if it was not with the transfer.
    fn stream_over(&self, number: StreamId, worked: io::Result<()>) {
        // A stream that was asked to end is told to the command, too, though nothing failed: the command counts how
        // many it has.
        let why = worked.err().map(|error| stream_failure(number, &error));
        // Under one lock: between the two it might be woken. What it carried is sent again on another stream; nothing
        // else knows of it.
        let retired = self.driver.tell(|machine| {
            let retired = machine.is_retiring(number);
            if why.is_some() {
                machine.handle_stream_lost(Instant::now(), number);
            }
            retired
        });
        if why.is_none() && !retired {
            return;
        }
        if self.driver.is_over() {
            // The receiver had all it wanted, and has closed its side.
            return;
        }
        if let Some(why) = &why {
            // A connection that this side has cut off fails as if the network had: the user is told the reason, not the
            // symptom.
            let cut = lock(&self.cut).contains(&number);
            let slow = || format!("data connection {number} was slow and was cut off; what it carried goes on another");
            (self.driver.voice.command)(Tell::Note(if cut { slow() } else { why.message() }));
        }
        // The command may make another.
        let stuck = lock(&self.stuck).contains(&number);
        (self.driver.voice.command)(Tell::StreamLost(StreamLost { failure: why, stuck, retired }));
        // Last: until here it was asked whether the stream was to end.
        self.driver.lock().forget_stream(number);
    }

    /// What a sample tells of this end beside its streams.
    fn describe(&self, sample: &mut Sample) {
        let machine = self.driver.lock();
        sample.items = machine.progress().files_done;
        // What is parked says nothing of the path as it is now.
        let at_work = sample.streams.iter().filter(|stream| !machine.is_retiring(StreamId(stream.number)));
        sample.state = all_streams(at_work);
        let [bundles, offers] = machine.waiting();
        drop(machine);
        let fill = |queue, used, size| QueueFill { queue, used: used as u64, size: size as u64 };
        sample.queues.push(fill(Queue::Bundles, bundles, limits::QUEUED_BUNDLES));
        sample.queues.push(fill(Queue::Offers, offers, limits::OFFERED_ITEMS));
    }

    /// See [`super::Running::retire`].
    pub fn retire(&self, count: u32) -> u64 {
        self.driver.tell(|machine| machine.retire(count as usize)) as u64
    }

    /// See [`super::Running::wake`].
    pub fn wake(&self, count: u32) -> u64 {
        self.driver.tell(|machine| machine.wake(count as usize)) as u64
    }

    /// What was asked of the connection itself.
    fn shape(&self, socket: &Socket) -> Result<(), Failure> {
        if let Some(rate) = self.driver.options.rate_limit {
            // The bucket lets slices through one by one; between two of them the kernel spreads
            // the packets, where it can.
            socket.pace(rate);
        }
        let Some(wanted) = self.driver.options.congestion else { return Ok(()) };
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
}
