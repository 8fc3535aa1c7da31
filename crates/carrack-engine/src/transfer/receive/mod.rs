//! The receiving end: streams, commits, pump.

mod at_work;
mod bundle;
mod changes;
mod commit;
mod comparing;
mod judging;
mod only_there;
mod owners;
mod patching;
mod pump;
mod referring;
mod renaming;
mod sharing;
mod slow;
mod stream;
mod sweep;
mod taking_over;
#[cfg(test)]
mod tests;

use std::collections::hash_map;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use carrack_core::attributes::{Attributes, Time};
use carrack_core::ids::{BundleId, ItemId, StreamId};
use carrack_core::limits;
use carrack_core::report::{Failure, Side, UnkeptAttributes};
use carrack_core::request::{Renames, Verify};
use carrack_core::timeline::{Queue, QueueFill, Sample, StartStep};
use carrack_core::transfer::machine::Machine;
use carrack_core::transfer::receiver::{Receiver, ReceiverConfig};
use carrack_core::tuning::Tuning;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::control::{Tell, TransferOptions};
use carrack_core::wire::expected::Expected;
use carrack_core::wire::peer::{ItemResult, Offer, PeerMessage};
use carrack_sys::bulk::Pipe;
use carrack_sys::host::cpu_count;

use self::at_work::AtWork;
use self::bundle::WaitingItem;
use self::changes::{BundledChanges, Changes};
use self::comparing::{Contents, UserAnswer};
pub use self::owners::MappedAccounts;
use self::owners::{LastTold, Owners};
use self::referring::Referring;
use self::renaming::Renaming;
use self::sharing::Sharing;
use self::slow::Workers;
use self::stream::{ReceiveStream, StreamError};
use self::sweep::Sweep;
pub use self::sweep::SweepOrder;
use self::taking_over::TakingOver;
use super::driver::Driver;
use super::{SourcesHere, Voice, content_readers, stream_failure, write_options};
use crate::data::stream::{Connection, InStream};
use crate::error::protocol_failure;
use crate::storage::descriptors::open_parts_max;
use crate::storage::giving::Giving;
use crate::storage::posix::references::References;
use crate::storage::properties::{Properties, WriteOptions};
use crate::storage::workers::MetadataWorkers;
use crate::storage::write::{Destination, Entry, NewFile, Part, StandingItem};
use crate::sync::lock;

/// What is received, and what becomes of what is there.
#[derive(Default)]
pub struct ReceiveChoice {
    /// What the command has asked for.
    pub expected: Expected,
    /// What only the destination has is deleted.
    pub sweep: Option<SweepOrder>,
    /// Directories at the destination that may have a file already.
    pub references: Option<References>,
    /// Owners and groups that become others.
    pub accounts: MappedAccounts,
    /// The destination as it was before it was opened, where that is known.
    pub top: Option<Option<StandingItem>>,
    /// The sender, where it is in this process.
    pub sources: Option<SourcesHere>,
}

/// The receiving end of a transfer.
pub struct ReceiveRun {
    pub(super) driver: Arc<Driver<Receiver>>,
    destination: Box<dyn Destination>,
    /// What can be done there.
    properties: Properties,
    /// How files are written there.
    writing: WriteOptions,
    /// What items get of the attributes of their sources beside permissions and times.
    giving: Giving,
    owners: Owners,
    /// What the command has asked for.
    expected: Expected,
    /// Directories that came, and whose attributes have not come.
    directories_unset: AtomicUsize,
    /// What only the destination has, where that is to be deleted.
    sweep: Option<Sweep>,
    /// What the user is asked before that.
    asked: Mutex<UserAnswer>,
    /// Tells what becomes of items, where the command wants to know.
    changes: Option<Arc<Changes>>,
    /// Who looks at what stands there, to be compared; and items that were given attributes.
    comparing: MetadataWorkers,
    attributes_set: AtomicU64,
    /// Files whose content is being compared.
    contents: Contents,
    /// Reference directories and the destination itself, where it is looked into.
    referring: Option<Referring>,
    /// What only the destination has, where the source may have renamed it.
    renaming: Option<Arc<Renaming>>,
    /// Items of kinds that the store does not have.
    left_out: Mutex<Option<UnkeptAttributes>>,
    /// Open part files by item: several streams write blocks of one.
    parts: Mutex<HashMap<ItemId, Arc<dyn Part>>>,
    /// Whether of files that have changed what stands at their names is taken over.
    taking_over: TakingOver,
    /// Whether files share their blocks with their sources.
    sharing: Sharing,
    /// Item and index of blocks that the marker claims from an earlier session.
    claimed: Mutex<HashSet<(ItemId, u64)>>,
    /// As many as there are descriptors for; the other offers wait.
    parts_max: usize,
    /// Bundles that have come whole and wait to be committed.
    staged: Mutex<HashMap<BundleId, Staged>>,
    /// Commits that wait for their thread.
    commits_waiting: AtomicUsize,
    /// Files and links that this session has given their names.
    items_published: AtomicU64,
    /// Streams that ended because what came over them had been altered.
    streams_altered: AtomicU64,
    /// Part files of earlier sessions that were read again before they were believed, and how many bytes of them.
    reread: (AtomicU64, AtomicU64),
    /// Items that an earlier session published, read back and found to be something else: offers to be opened
    /// again, and their numbers.
    disbelieved: Mutex<(VecDeque<Offer>, HashSet<ItemId>)>,
    /// Who makes small files, and who gives them their names.
    creating: MetadataWorkers,
    publishing: MetadataWorkers,
    /// Threads that may touch files: those of the streams, and those that read again.
    at_work: Arc<AtWork>,
}

/// A bundle's items, written under hidden names.
#[derive(Default)]
struct Staged {
    entries: Vec<(u32, Box<dyn Entry>)>,
    exceptions: Vec<(u32, ItemResult)>,
    /// What is told once the items have their names.
    changes: BundledChanges,
    /// Of the blocks of attributes that have come with the entries.
    attribute_bytes: u64,
    /// Items that have come whole and are not written yet; none where each is written as it comes.
    waiting: Vec<WaitingItem>,
}

impl ReceiveRun {
    /// Starts the pump and the commits; data is written as streams are added.
    pub fn start(
        options: TransferOptions,
        destination: Box<dyn Destination>,
        ReceiveChoice { expected, sweep, references, accounts, top, sources }: ReceiveChoice,
        voice: Voice,
        tuning: Arc<Tuning>,
    ) -> Result<Arc<Self>, Failure> {
        // Blocks are checkpointed to be found again after a crash, or to be read back one by one.
        let properties = destination.properties();
        let marked = properties.atomic_publish && (properties.resumes || options.verify == Verify::Disk);
        let config = ReceiverConfig { options, checkpoints: marked, tuning: *tuning };
        let command = Arc::clone(&voice.command);
        let tell =
            options.item_events.then_some(Box::new(move |items| command(Tell::Items(items))) as sweep::TellItems);
        let changes = options.item_changes.then(|| {
            let top = top.unwrap_or_else(|| destination.standing(&[b""], None).pop()?.ok()?);
            let command = Arc::clone(&voice.command);
            // Of a destination that is yet to be made nobody can say what it keeps.
            let is_there = properties.keeps || !options.plan_only;
            let told = if is_there { properties } else { Properties::FILES };
            Arc::new(Changes::new(
                &options,
                Giving::new(options.kept, options.fake_super),
                &told,
                top,
                Box::new(move |tell| command(tell)),
            ))
        });
        let finds_renames = options.renames != Renames::Never && sweep.is_some() && references.is_some();
        let giving = Giving::new(options.kept, options.fake_super);
        let renaming = finds_renames.then(|| Arc::new(Renaming::new(options.renames)));
        let sweep = sweep.map(|order| Sweep::new(order, tell, changes.clone(), renaming.clone()));
        let run = Arc::new(Self {
            driver: Driver::new(Receiver::new(config), options, voice, Arc::clone(&tuning)),
            destination,
            properties,
            writing: write_options(&options),
            giving,
            owners: Owners::new(options.kept, accounts),
            expected,
            directories_unset: AtomicUsize::new(0),
            sweep,
            asked: Mutex::default(),
            changes,
            comparing: MetadataWorkers::new(&tuning, tuning.scan_threads(cpu_count())),
            attributes_set: AtomicU64::new(0),
            contents: Contents::default(),
            referring: references.map(Referring::new),
            renaming,
            left_out: Mutex::default(),
            parts: Mutex::default(),
            taking_over: TakingOver::new(options.delta),
            sharing: Sharing::new(sources.filter(|_| options.shares)),
            claimed: Mutex::default(),
            parts_max: open_parts_max(),
            staged: Mutex::default(),
            commits_waiting: AtomicUsize::new(0),
            items_published: AtomicU64::new(0),
            streams_altered: AtomicU64::new(0),
            reread: Default::default(),
            disbelieved: Mutex::default(),
            creating: MetadataWorkers::new(&tuning, 1),
            publishing: MetadataWorkers::new(&tuning, tuning.publish_threads(cpu_count())),
            at_work: Arc::default(),
        });
        let measured = Arc::clone(&run);
        run.driver.start_sampling(move |sample| measured.describe(sample));
        if options.reads_to_compare() || options.patches() {
            (0..content_readers()).for_each(|_| run.spawn("reading to compare", Self::read_contents));
        }
        run.start_referring();
        let pumped = Arc::clone(&run);
        let started =
            Workers::start(&run).and_then(|workers| run.driver.try_spawn("the pump", move || pumped.pump(workers)));
        let Err(why) = started else { return Ok(run) };
        // Those that have been started end when nobody can hand them anything in.
        run.driver.end_sampling(true);
        let outcome = Err(why.clone());
        run.leave_parts(&outcome);
        Err(why)
    }

    /// As [`Self::try_spawn`]. Where the system gives no thread, the transfer has failed.
    fn spawn(self: &Arc<Self>, what: &'static str, work: impl FnOnce(&Self) + Send + 'static) {
        if let Err(why) = self.try_spawn(what, work) {
            self.driver.cancel(why);
        }
    }

    /// Starts a thread that ends with the transfer. Part files are left to the next session only when it has ended.
    ///
    /// # Errors
    /// When the system gives no thread.
    fn try_spawn(
        self: &Arc<Self>,
        what: &'static str,
        work: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<(), Failure> {
        let (run, at_work) = (Arc::clone(self), self.at_work.enter());
        self.driver.try_spawn(what, move || {
            // Also when the work panics, and after everything that it held.
            let _at_work = at_work;
            work(&run);
        })
    }

    /// Starts a thread that is waited for where the transfer ends.
    ///
    /// # Errors
    /// When the system gives no thread.
    fn start_thread(
        self: &Arc<Self>,
        what: &'static str,
        work: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<JoinHandle<()>, Failure> {
        let run = Arc::clone(self);
        self.driver.start_thread(what, move || work(&run))
    }

    /// What a sample tells of this end beside its streams.
    fn describe(&self, sample: &mut Sample) {
        sample.items = self.items_published.load(Ordering::Relaxed);
        let parts = lock(&self.parts).len();
        let commits = self.commits_waiting.load(Ordering::Relaxed);
        let fill = |queue, used, size| QueueFill { queue, used: used as u64, size: size as u64 };
        sample.queues.push(fill(Queue::Commits, commits, slow::COMMITS_WAITING));
        sample.queues.push(fill(Queue::Parts, parts, self.parts_max.min(limits::OPEN_ITEMS)));
    }

    pub(super) fn check_expected(&self, message: &PeerMessage) -> Result<(), ProtocolError> {
        match message {
            // A source that names files which the command did not ask for would write over others of the destination.
            PeerMessage::Offer(offer) => self.expected.check(&offer.path),
            PeerMessage::FinishContents(_) => self.expected.check(b""),
            PeerMessage::Compare { question, .. } => {
                let items = question.items.iter().map(|item| &item.path);
                let links = question.items.iter().flat_map(|item| &item.hard_link).flat_map(|link| &link.names);
                let listed = question.listed.iter().map(|(path, _)| path).chain(links);
                items.chain(&question.names).chain(listed).try_for_each(|path| self.expected.check(path))
            }
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

    /// See [`super::Running::add_stream`].
    pub fn add_stream(self: &Arc<Self>, connection: Connection) {
        let number = connection.number;
        self.driver.stages.step(StartStep::Stream);
        match lock(&self.driver.sockets).entry(number) {
            hash_map::Entry::Vacant(free) => free.insert(Arc::clone(&connection.socket)),
            hash_map::Entry::Occupied(_) => {
                // A number twice would make two streams one: whoever did that does not follow the protocol.
                let what = ProtocolError::violation(format!("the peer made data connection {number} twice"));
                return self.driver.cancel(protocol_failure(Side::Source, &what));
            }
        };
        let failed = self.driver.tell(|machine| {
            machine.handle_stream(Instant::now(), number);
            matches!(machine.outcome(), Some(Err(_)))
        });
        if failed {
            // Those that came before have been cut off: this one would read until the peer hangs up.
            connection.socket.abort();
        }
        let socket = Arc::clone(&connection.socket);
        let started = self.try_spawn("a data stream", move |run| {
            let _counted = run.driver.crew.enter(number);
            let _caller = run.creating.enter();
            let mut input = InStream::new(connection, Arc::clone(&run.driver.stages));
            if run.driver.options.compress {
                input.cut_into_pieces();
            }
            // Only where nobody looks at the bytes they can go from the socket to the file inside the kernel.
            let pipe = if run.driver.options.digests.any() || !input.is_clear() { None } else { Pipe::new().ok() };
            let mut stream =
                ReceiveStream { run, number, input, scratch: Vec::new(), pipe, last_others: LastTold::default() };
            let ended = stream.work();
            run.driver.tell(|machine| {
                machine.handle_stream_closed(Instant::now(), number);
                match ended {
                    Ok(()) => {}
                    Err(StreamError::Protocol(error)) => machine.fail(protocol_failure(Side::Source, &error)),
                    // The sender has another socket, which stays as it is: it would wait for ever, unless it has given
                    // this stream up.
                    Err(StreamError::Connection(error))
                        if number == StreamId::TUNNEL && !machine.is_given_up(number) =>
                    {
                        machine.fail(stream_failure(number, &error));
                    }
                    // The sender sees it too, and sends what was lost on another stream.
                    Err(StreamError::Connection(error)) if error.kind() == io::ErrorKind::InvalidData => {
                        let why = stream_failure(number, &error);
                        // Counted and told: a network that alters bytes is worth knowing of, though the copy comes out
                        // right.
                        run.streams_altered.fetch_add(1, Ordering::Relaxed);
                        (run.driver.voice.command)(Tell::Note(format!(
                            "{}; what it carried is sent again",
                            why.message()
                        )));
                    }
                    Err(StreamError::Connection(_)) => {}
                }
            });
            // Closed, not only shut down: a sender whose window is full learns of it by the reset that only closing
            // sends. Not earlier, so that the reason that is told is ours.
            run.driver.traffic.leave(&mut lock(&run.driver.sockets), number);
        });
        if let Err(why) = started {
            socket.abort();
            self.lose_unstarted(number, why);
        }
    }

    /// There is no thread for a stream. The sender goes on with the others; without any the copy fails.
    fn lose_unstarted(&self, number: StreamId, why: Failure) {
        let is_only = {
            let mut sockets = lock(&self.driver.sockets);
            self.driver.traffic.leave(&mut sockets, number);
            sockets.is_empty()
        };
        self.driver.tell(|machine| machine.handle_stream_closed(Instant::now(), number));
        if is_only {
            return self.driver.cancel(why);
        }
        (self.driver.voice.command)(Tell::Note(format!("the copy goes on with fewer streams: {}", why.message())));
    }
}

impl ReceiveRun {
    /// The modification time that an item is to have; `None` where none is set.
    fn time_to_set(&self, mtime: Option<Time>) -> Option<Time> {
        mtime.filter(|_| !self.driver.options.no_times)
    }
}

/// An offer, as stores take it.
fn new_file<'a>(offer: &'a Offer, attributes: Attributes, properties: &Properties) -> NewFile<'a> {
    let Offer { path, size, sparse, fingerprint, .. } = offer;
    let sparse = *sparse && properties.sparse;
    NewFile { path, size: *size, attributes, sparse, fingerprint: *fingerprint }
}
