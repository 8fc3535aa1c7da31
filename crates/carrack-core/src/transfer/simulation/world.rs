//! The simulation's clock, its events, and what the engine does around the machines.

mod in_flight;
mod scanner;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::{Duration, Instant};

use super::disk::Disk;
use super::link::Stream;
use super::plan::{Crash, Mutant, Plan, Rng};
use super::source::{Source, SourceItem, Stat};
use super::store::{Found, Store};
use super::verdict::Verdict;
use crate::attributes::OtherAttributes;
use crate::digest::{BlockDigest, FileDigests};
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::limits;
use crate::report::{ItemKind, ItemReport};
use crate::request::{Durability, Verify};
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::receiver::{Receiver, ReceiverAction, ReceiverConfig};
use crate::transfer::sender::{InFlight, Sender, SenderAction, SenderConfig};
use crate::wire::peer::{Answer, AskedIndex, DirectoryAttributes, Offer, PeerMessage, QueryItem, Question};

/// Something that happens at a moment.
#[derive(Debug)]
pub enum Event {
    Scan,
    Wake,
    Sender(StreamId, u64),
    Receiver(StreamId),
    Written(StreamId, u64),
    /// The receiver's end has no more to read.
    Ended(StreamId),
    /// The connection is reset.
    Cut(StreamId),
    /// The sender's end sees that.
    Noticed(StreamId),
    ToSender(PeerMessage),
    ToReceiver(PeerMessage),
    SourceChanged(usize),
    Checked(ItemId),
    /// The next block of a second reading, and what was read of it before.
    ReadAgain(ItemId, Vec<BlockDigest>),
    Opened(Offer),
    Published(ItemId, FileDigests, u64),
    Committed(BundleId),
    Directories(Vec<DirectoryAttributes>),
    Synced,
    Blackout,
    Abort,
    /// Another data connection is made.
    Connect,
    /// So many more streams, or fewer.
    Streams(i16),
    Rescanned(Box<ScannedItem>, u32),
    /// A followed source is looked at, after so many times.
    Followed(ItemId, u64),
    Checkpointed(ItemId, Vec<(u64, BlockDigest)>),
    Looked(BundleId, Vec<QueryItem>),
    Compared(BundleId, Question),
    ContentRead(AskedIndex),
    ContentCompared(AskedIndex),
    Chunked(AskedIndex),
    SourcesRemoved,
    Deleted,
    LookedUp(BundleId, usize),
}

struct Scheduled(Duration, u64, Event);

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Both machines, the links and disks between them, and the clock.
pub struct World {
    pub plan: Plan,
    pub rng: Rng,
    pub base: Instant,
    /// Since `base`.
    pub clock: Duration,
    events: BinaryHeap<Reverse<Scheduled>>,
    pub sender: Sender,
    pub in_flight: InFlight,
    pub receiver: Receiver,
    pub source: Source,
    pub disk: Disk,
    pub streams: Vec<Stream>,
    scanned: usize,
    /// All names have been told, where that comes first.
    named: bool,
    scan_waits: bool,
    /// When the last message arrives, each way: they keep their order.
    to_sender_at: Duration,
    to_receiver_at: Duration,
    pub bundles_out: BTreeSet<BundleId>,
    offers_out: BTreeSet<ItemId>,
    pub sources_closed: BTreeSet<ItemId>,
    /// The version of each offered source when it was offered.
    pub opened_as: BTreeMap<ItemId, (usize, u64)>,
    /// Of each offered source that has been opened: its item, and what it looked like then.
    pub opened: BTreeMap<ItemId, (usize, Stat)>,
    /// What second readings gave of offered sources.
    pub read_twice: BTreeMap<ItemId, FileDigests>,
    pub reports: Vec<ItemReport>,
    /// What the sender says that it has copied; and of that, what is not what it was and stays.
    copied: Vec<ScannedItem>,
    pub sources_kept: Option<Vec<ItemReport>>,
    /// Files whose content is being compared.
    pub undecided: BTreeMap<AskedIndex, Vec<u8>>,
    pub aborted: bool,
    pub verdict: Verdict,
    pub store: Store,
    /// What an earlier session of the row has left.
    pub found: Found,
    /// The source's clock when the session began.
    pub clock_base: i64,
    steps: u64,
    /// The receiver, or its host, is no more.
    pub crashed: bool,
    /// What the receiver said that it holds.
    pub told_held: BTreeMap<(ItemId, u64), BlockDigest>,
    /// Item of the source and block: held, and right.
    pub held_right: BTreeSet<(usize, u64)>,
    /// Published by an earlier session, as the receiver said.
    pub known: BTreeSet<Vec<u8>>,
    /// Not there when the scan came by.
    pub unseen: BTreeSet<usize>,
    ticking_at: Option<Duration>,
}

pub fn failure(code: ErrorCode) -> Failure {
    Failure::new(code, Side::Destination, "as planned")
}

impl World {
    const EVENTS_MAX: u64 = 5_000_000;

    pub fn new(plan: Plan) -> Self {
        let mut rng = Rng::new(!plan.seed);
        let source = Source::new(&plan, &mut rng);
        Self::session(plan, source, Store::default(), 0)
    }

    /// A session that begins at this second of the source's clock, with what there is at both ends.
    pub fn session(plan: Plan, source: Source, mut store: Store, clock_base: i64) -> Self {
        let rng = Rng::new(!plan.seed.rotate_left(7));
        let found = store.replay(plan.mutant == Some(Mutant::PartBelieved));
        store.start_session(plan.options.durability != Durability::None);
        let known = !found.published.is_empty();
        let config = SenderConfig { options: plan.options, targets: vec![Vec::new(); 2], known, tuning: plan.tuning };
        let checkpoints = plan.mutant != Some(Mutant::PublishUnchecked);
        let mut world = Self {
            sender: Sender::new(config),
            in_flight: InFlight::default(),
            receiver: Receiver::new(ReceiverConfig { options: plan.options, checkpoints, tuning: plan.tuning }),
            source,
            rng,
            // Where a clock starts is its own affair; only differences count.
            base: Instant::now(),
            clock: Duration::ZERO,
            events: BinaryHeap::new(),
            disk: Disk::default(),
            streams: Vec::new(),
            scanned: 0,
            named: false,
            scan_waits: false,
            to_sender_at: Duration::ZERO,
            to_receiver_at: Duration::ZERO,
            bundles_out: BTreeSet::new(),
            offers_out: BTreeSet::new(),
            sources_closed: BTreeSet::new(),
            opened_as: BTreeMap::new(),
            opened: BTreeMap::new(),
            read_twice: BTreeMap::new(),
            reports: Vec::new(),
            copied: Vec::new(),
            sources_kept: None,
            undecided: BTreeMap::new(),
            aborted: false,
            verdict: Verdict { transfers: 1, ..Verdict::default() },
            store,
            found,
            clock_base,
            steps: 0,
            crashed: false,
            told_held: BTreeMap::new(),
            held_right: BTreeSet::new(),
            known: BTreeSet::new(),
            unseen: BTreeSet::new(),
            ticking_at: None,
            plan,
        };
        world.prepare();
        world
    }

    fn prepare(&mut self) {
        for _ in 0..self.plan.streams {
            self.connect();
        }
        self.after(Duration::ZERO, Event::Scan);
        for (moment, event) in [(self.plan.blackout, Event::Blackout), (self.plan.abort, Event::Abort)] {
            if let Some(moment) = moment {
                self.at(moment, event);
            }
        }
        for (moment, change) in self.plan.changes_of_streams.clone() {
            self.at(moment, Event::Streams(change));
        }
        for item in 0..self.source.items.len() {
            let kind = self.source.items[item].scanned.kind;
            if kind != ItemKind::Directory && self.rng.chance(self.plan.source_change) {
                let moment = self.rng.up_to(Duration::from_millis(300));
                self.at(moment, Event::SourceChanged(item));
            }
        }
    }

    pub fn now(&self) -> Instant {
        self.base + self.clock
    }

    pub fn at(&mut self, moment: Duration, event: Event) {
        self.events.push(Reverse(Scheduled(moment, self.rng.next(), event)));
    }

    pub fn after(&mut self, delay: Duration, event: Event) {
        self.at(self.clock + delay, event);
    }

    pub fn disk_delay(&mut self) -> Duration {
        // Mostly quick, now and then as slow as the plan says.
        let most = if self.rng.chance(100) { self.plan.disk_delay } else { self.plan.disk_delay / 50 };
        self.rng.up_to(most)
    }

    /// Until nothing is left to happen.
    pub fn run(mut self) -> Verdict {
        self.play();
        self.finish();
        self.verdict
    }

    pub fn play(&mut self) {
        let mut count = 0;
        self.settle();
        while let Some(Reverse(Scheduled(moment, _, event))) = self.events.pop() {
            if self.step() {
                return;
            }
            count += 1;
            assert!(count < Self::EVENTS_MAX, "the transfer does not end");
            self.clock = moment;
            self.handle(event);
            self.settle();
            self.check_bounds();
            self.check_in_flight();
        }
    }

    /// One more thing has happened: whether somebody stops here.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        let Some((_, crash)) = self.plan.crash.filter(|&(at, _)| at + 1 == self.steps) else {
            return self.crashed;
        };
        match crash {
            Crash::Receiver | Crash::Power => self.crashed = true,
            // The command is gone: both ends notice, and the receiver ends in order.
            Crash::Sender => {
                self.aborted = true;
                self.sender.fail(failure(ErrorCode::ConnectionLost));
                self.receiver.fail(failure(ErrorCode::ConnectionLost));
            }
        }
        self.crashed
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Scan => self.scan(),
            Event::Wake => {}
            Event::Sender(stream, token) => self.step_sender(stream, token),
            Event::Receiver(stream) => self.step_receiver(stream),
            Event::Written(stream, token) => self.have_received(stream, token),
            Event::Ended(stream) => {
                self.streams[usize::from(stream.0)].mark_ended();
                self.step_receiver(stream);
            }
            Event::Cut(stream) => self.cut(stream),
            Event::Noticed(stream) => self.notice(stream),
            Event::ToSender(message) => self.tell_sender(message),
            Event::ToReceiver(message) => {
                self.receiver.handle_message(self.now(), message).expect("the sender keeps to the protocol")
            }
            Event::SourceChanged(item) => self.change_source(item),
            Event::Checked(number) => self.check_source(number, None),
            Event::ReadAgain(number, read) => self.read_again(number, read),
            Event::Opened(offer) => self.open(offer),
            Event::Published(item, digests, size) => self.publish(item, digests, size),
            Event::Committed(bundle) => self.commit(bundle),
            Event::Directories(list) => self.apply_directories(list),
            Event::Synced => self.sync_all(),
            Event::Connect => self.reconnect(),
            Event::Streams(more) if more > 0 => self.want_more(more.unsigned_abs()),
            Event::Streams(fewer) => self.retire(fewer.unsigned_abs()),
            Event::Rescanned(scanned, attempt) => self.rescan(&scanned, attempt),
            Event::Followed(number, looks) => self.follow(number, looks),
            Event::Checkpointed(item, blocks) => self.checkpoint(item, blocks),
            Event::Looked(bundle, items) => self.look(bundle, items),
            Event::Compared(number, question) => self.compare(number, question),
            Event::ContentRead(asked) => self.sender.handle_content_read(self.now(), asked, Ok([7; 32])),
            Event::LookedUp(number, paths) => self.sender.handle_looked_up(self.now(), number, vec![true; paths]),
            Event::ContentCompared(asked) => {
                let path = self.undecided.remove(&asked).expect("it was asked about");
                let same = self.holds_what_is_now(&path);
                self.receiver.handle_content_compared(self.now(), asked, same, Vec::new());
            }
            Event::Chunked(asked) => {
                let chunks = vec![7; self.rng.below(2) as usize];
                self.receiver.handle_content_compared(self.now(), asked, false, chunks);
            }
            Event::SourcesRemoved => self.remove_sources(),
            // It waits for the source's answer.
            Event::Deleted if self.receiver.outcome().is_none() && self.receiver.take_still_there().is_none() => {
                self.after(Duration::from_millis(1), Event::Deleted);
            }
            Event::Deleted => self.receiver.handle_deleted(),
            Event::Blackout => self.stream_ids().for_each(|stream| self.cut(stream)),
            Event::Abort => {
                self.aborted = true;
                match self.rng.chance(500) {
                    true => self.sender.fail(failure(ErrorCode::Interrupted)),
                    false => self.receiver.fail(failure(ErrorCode::Interrupted)),
                }
            }
        }
    }

    /// By the source's clock.
    pub fn second(&self) -> i64 {
        self.clock_base + self.clock.as_secs() as i64
    }

    /// Carries out what both sides want done, until neither wants anything.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(action) = self.sender.poll_action() {
                quiet = false;
                if self.step() {
                    return;
                }
                self.act_for_sender(action);
            }
            let now = self.now();
            self.receiver.handle_time(now);
            while let Some(action) = self.receiver.poll_action() {
                quiet = false;
                if self.step() {
                    return;
                }
                self.act_for_receiver(action);
            }
            self.tick_later();
            if std::mem::take(&mut self.scan_waits) {
                match self.sender.wants_items() || self.sender.outcome().is_some() {
                    true => self.after(Duration::ZERO, Event::Scan),
                    false => self.scan_waits = true,
                }
            }
            self.ask_all();
            if quiet {
                return;
            }
        }
    }

    fn act_for_sender(&mut self, action: SenderAction) {
        match action {
            SenderAction::Send(message) => {
                if let PeerMessage::Offer(offer) = &message {
                    let item = self.source.find(&offer.path);
                    self.opened_as.insert(offer.item, (item, self.source.items[item].version));
                    self.offers_out.insert(offer.item);
                }
                let delay = self.plan.control_latency + self.rng.up_to(self.plan.control_latency);
                self.to_receiver_at = self.to_receiver_at.max(self.clock + delay) + Duration::from_nanos(1);
                self.check_attributes(&message);
                let message = self.over_the_wire(message);
                self.at(self.to_receiver_at, Event::ToReceiver(message));
            }
            SenderAction::CheckSource(number) => {
                let delay = self.disk_delay();
                let twice = self.plan.options.verify == Verify::Source;
                self.after(delay, if twice { Event::ReadAgain(number, Vec::new()) } else { Event::Checked(number) });
            }
            SenderAction::Follow(number) => self.look_at_followed(number, 0),
            SenderAction::CloseSource(number) => {
                assert!(self.sources_closed.insert(number), "the source of item {number} is closed twice");
            }
            SenderAction::AbortStream(stream) => {
                self.verdict.stragglers += 1;
                self.cut(stream);
            }
            SenderAction::Report(report) => self.sources_kept.as_mut().unwrap_or(&mut self.reports).push(*report),
            SenderAction::Copied(item) => self.copied.push(*item),
            SenderAction::RemoveSources => {
                let delay = self.disk_delay();
                self.sources_kept = Some(Vec::new());
                self.after(delay, Event::SourcesRemoved);
            }
            SenderAction::LookUp { number, paths } => {
                let delay = self.disk_delay();
                self.after(delay, Event::LookedUp(number, paths.len()));
            }
            SenderAction::ReadContent { asked, .. } => {
                let delay = self.disk_delay();
                self.after(delay, Event::ContentRead(asked));
            }
            SenderAction::Rescan { scanned, attempt } => {
                self.verdict.again += 1;
                let delay = self.disk_delay();
                self.after(delay, Event::Rescanned(Box::new(scanned), attempt));
            }
        }
    }

    /// Whatever still is what was copied goes: it has to be at the destination, and durable.
    fn remove_sources(&mut self) {
        assert!(self.plan.options.removes_sources && self.durable() && self.store.names_synced());
        let mut removed = 0;
        for item in std::mem::take(&mut self.copied) {
            let number = self.source.find(&item.path);
            let source = &self.source.items[number];
            if source.gone || source.stat() != (item.size, item.attributes.mtime, item.changed) {
                self.sender.handle_source_kept(&item, failure(ErrorCode::SourceChanged));
                continue;
            }
            let is_elsewhere = self.holds_what_is_now(&item.path) || !self.source.shows_changes(number);
            assert!(is_elsewhere, "{item:?} is deleted and is nowhere else");
            removed += 1;
        }
        self.verdict.removed += removed;
        self.sender.handle_sources_removed(removed);
    }

    /// Whether the destination has what the source has.
    pub fn holds_what_is_now(&self, path: &[u8]) -> bool {
        let number = self.source.find(path);
        self.store.standing(path).is_some_and(|name| !name.torn && self.source.is_now(number, name.size, name.blake3))
    }

    /// A receiver is told of all attributes, and of no others.
    fn check_attributes(&self, message: &PeerMessage) {
        let check = |path: &[u8], told: &OtherAttributes| {
            let mut items = self.source.items.iter().filter(|item| item.scanned.path == path);
            let is_it = |item: &SourceItem| item.scanned.attributes.others == *told;
            assert!(items.any(is_it), "{path:?} has other attributes");
        };
        match message {
            PeerMessage::Offer(offer) => check(&offer.path, &offer.attributes.others),
            PeerMessage::Directories(list) => list.iter().for_each(|one| check(&one.path, &one.attributes.others)),
            PeerMessage::Query { items, .. } => items.iter().for_each(|item| check(&item.path, &item.others)),
            _ => {}
        }
    }

    fn over_the_wire(&mut self, message: PeerMessage) -> PeerMessage {
        if !self.rng.chance(100) {
            return message;
        }
        let bytes = message.encode();
        assert!(bytes.len() <= limits::MESSAGE_BYTES, "a message of {} bytes", bytes.len());
        let decoded = PeerMessage::decode(&bytes).expect("what one side says the other understands");
        assert_eq!(decoded, message);
        decoded
    }

    fn tell_sender(&mut self, message: PeerMessage) {
        match &message {
            PeerMessage::Done { item, .. } | PeerMessage::Answer { item, answer: Answer::Keep | Answer::Refuse(_) } => {
                assert!(self.offers_out.remove(item), "item {item} ends twice");
            }
            PeerMessage::Answer { item, answer: Answer::Present(_) } => {
                assert!(self.offers_out.remove(item), "item {item} ends twice");
            }
            PeerMessage::Held { item, first, digests, .. } => {
                let told = (*first..).zip(digests).map(|(index, &digest)| ((*item, index), digest));
                self.told_held.extend(told);
            }
            PeerMessage::BundleDone { bundle, .. } => {
                assert!(self.bundles_out.remove(bundle), "bundle {bundle} ends twice")
            }
            _ => {}
        }
        let now = self.now();
        self.sender.handle_message(now, message).expect("the receiver keeps to the protocol");
    }

    fn tick_later(&mut self) {
        let Some(deadline) = self.receiver.next_deadline() else { return };
        let deadline = (deadline - self.base).max(self.clock);
        if self.ticking_at.is_none_or(|at| at <= self.clock || deadline < at) {
            self.ticking_at = Some(deadline);
            self.at(deadline, Event::Wake);
        }
    }

    pub(super) fn reconnect(&mut self) {
        if self.sender.outcome().is_none() && self.receiver.outcome().is_none() {
            self.connect();
        }
    }

    fn act_for_receiver(&mut self, action: ReceiverAction) {
        let delay = self.disk_delay();
        match action {
            ReceiverAction::Send(message) => {
                let delay = self.plan.control_latency + self.rng.up_to(self.plan.control_latency);
                self.to_sender_at = self.to_sender_at.max(self.clock + delay) + Duration::from_nanos(1);
                let message = self.over_the_wire(message);
                self.at(self.to_sender_at, Event::ToSender(message));
            }
            ReceiverAction::Open(offer) => {
                assert!(self.disk.opening.insert(offer.item));
                self.after(delay, Event::Opened(offer));
            }
            ReceiverAction::Publish { item, digests, size, .. } => {
                let part = self.disk.parts.get_mut(&item).expect("what is published was opened");
                assert!(!std::mem::replace(&mut part.publishing, true), "item {item} is published twice");
                assert!(!part.checkpointing, "item {item} is published while it is checkpointed");
                self.after(delay, Event::Published(item, digests, size));
            }
            ReceiverAction::Discard(item) => {
                let part = self.disk.parts.remove(&item).expect("what is discarded was opened");
                assert!(!part.publishing, "item {item} is discarded while it is published");
                let number = self.source.find(&part.path);
                self.held_right.retain(|&(other, _)| other != number);
                self.store.remove(part.file);
            }
            ReceiverAction::Commit(bundle) => {
                assert!(self.disk.bundles.contains_key(&bundle));
                self.after(delay, Event::Committed(bundle));
            }
            ReceiverAction::CloseStream(stream) => {
                self.verdict.closed += 1;
                self.streams[usize::from(stream.0)].shut = true;
                self.after(delay / 10, Event::Receiver(stream));
            }
            ReceiverAction::ApplyDirectories(list) => self.after(delay, Event::Directories(list)),
            ReceiverAction::Sync => self.after(delay, Event::Synced),
            ReceiverAction::Checkpoint { item, blocks } => {
                let part = self.disk.parts.get_mut(&item).expect("what is checkpointed is open");
                assert!(!part.publishing, "item {item} is checkpointed while it is published");
                assert!(!std::mem::replace(&mut part.checkpointing, true), "item {item} has two checkpoints at once");
                self.after(delay, Event::Checkpointed(item, blocks));
            }
            ReceiverAction::Look { bundle, items } => self.after(delay, Event::Looked(bundle, items)),
            ReceiverAction::Compare { number, question } => self.after(delay, Event::Compared(number, question)),
            ReceiverAction::CompareContent { asked, .. } => self.after(delay, Event::ContentCompared(asked)),
            ReceiverAction::Delete { .. } => {
                self.receiver.ask_still_there(vec![b"only".to_vec()]);
                if self.plan.options.deletes_first {
                    self.after(delay, Event::Deleted);
                }
            }
        }
    }

    fn check_bounds(&self) {
        self.disk.check_bounds();
        assert!(self.bundles_out.len() <= limits::UNACKNOWLEDGED_BUNDLES, "more bundles under way than allowed");
        assert!(self.offers_out.len() <= limits::OFFERED_ITEMS, "more offers under way than allowed");
        let progress = self.sender.progress();
        assert!(progress.bytes_done <= progress.bytes_found, "more is done than was found: {progress:?}");
    }
}
