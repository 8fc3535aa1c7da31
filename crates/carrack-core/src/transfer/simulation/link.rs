//! The data streams of a simulation: a thread at each end, as the engine has them, and frames on the way.

mod receiving;

use std::collections::VecDeque;
use std::time::Duration;

use super::disk::Entry;
use super::plan::Mutant;
use super::source::digest_of;
use super::store::ZEROS;
use super::world::{Event, World};
use crate::digest::BlockDigest;
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::report::ItemKind;
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::sender::{BlockJob, Job, Next, SentItem};

/// Both ends of a data connection.
#[derive(Debug)]
pub struct Stream {
    /// Reset by either side or by the network.
    pub broken: bool,
    pub sending: Sending,
    /// Events of an earlier state are ignored.
    token: u64,
    wake: Option<Duration>,
    frames: VecDeque<Frame>,
    pub receiving: Receiving,
    finishing_token: u64,
    /// No more frames come than have arrived.
    ended: bool,
    /// The receiver shuts its end.
    pub shut: bool,
}

/// What the sender's thread does.
#[derive(Debug)]
pub enum Sending {
    Waiting,
    Reading(Job),
    Writing(Job, Content),
    Reporting(Job, Content),
    Over,
}

/// What the receiver's thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiving {
    Idle,
    WaitingFor(StreamId),
    Taking { write: bool },
    Finishing { write: bool },
    Over,
}

#[derive(Debug)]
struct Frame {
    content: Content,
    begin: Duration,
    /// `None` while it is being sent, and for ever when that was cut short.
    end: Option<Duration>,
}

#[derive(Clone, Debug)]
pub enum Content {
    /// A hole carries no content.
    Block {
        item: ItemId,
        offset: u64,
        length: u32,
        whole: bool,
        hole: bool,
        content: Option<u64>,
    },
    Bundle {
        id: BundleId,
        entries: Vec<Entry>,
    },
}

impl Content {
    fn bytes(&self) -> u64 {
        match self {
            Self::Block { hole: true, .. } => 0,
            Self::Block { length, .. } => u64::from(*length),
            Self::Bundle { entries, .. } => entries.iter().map(|entry| 100 + entry.size).sum(),
        }
    }
}

fn unread() -> Failure {
    Failure::new(ErrorCode::SourceVanished, Side::Source, "gone")
}

fn changing() -> Failure {
    Failure::new(ErrorCode::SourceChanged, Side::Source, "changed")
}

impl Stream {
    pub fn mark_ended(&mut self) {
        self.ended = true;
    }
}

impl World {
    /// A new data connection.
    pub fn connect(&mut self) {
        let stream = StreamId(self.streams.len() as u16);
        self.streams.push(Stream {
            broken: false,
            sending: Sending::Waiting,
            token: 0,
            wake: None,
            frames: VecDeque::new(),
            receiving: Receiving::Idle,
            finishing_token: 0,
            ended: false,
            shut: false,
        });
        self.receiver.handle_stream(self.now(), stream);
        self.sender.handle_stream(self.now(), stream);
    }

    /// So many streams are to end in good order.
    pub fn retire(&mut self, count: u16) {
        let ended = self.sender.outcome().is_some();
        let chosen = self.sender.retire(count.into());
        assert!(chosen <= count.into() && !(ended && chosen > 0));
        let staying = self.stream_ids().filter(|&stream| !self.sender.is_retiring(stream)).count();
        assert!(staying > 0, "all streams are to end");
    }

    /// So many more are wanted: those that were asked to end and are still there go on, and the rest is made.
    pub fn want_more(&mut self, count: u16) {
        let retiring = |world: &Self| world.stream_ids().filter(|&stream| world.sender.is_retiring(stream)).count();
        let before = retiring(self);
        let woken = self.sender.wake(count.into());
        assert!(woken <= count.into() && retiring(self) == before - woken);
        self.verdict.woken += woken as u64;
        (woken..count.into()).for_each(|_| self.reconnect());
    }

    /// All that have ever been made.
    pub fn stream_ids(&self) -> impl Iterator<Item = StreamId> + use<> {
        (0..self.streams.len() as u16).map(StreamId)
    }

    fn stream(&mut self, stream: StreamId) -> &mut Stream {
        &mut self.streams[usize::from(stream.0)]
    }

    /// Waiting streams ask for work, in any order.
    pub fn ask_all(&mut self) {
        let mut waiting: Vec<StreamId> = self.stream_ids().collect();
        waiting.retain(|&stream| matches!(self.streams[usize::from(stream.0)].sending, Sending::Waiting));
        while !waiting.is_empty() {
            let place = self.rng.below(waiting.len() as u64) as usize;
            self.ask(waiting.swap_remove(place));
        }
    }

    fn ask(&mut self, stream: StreamId) {
        match self.sender.next_job(self.now(), stream) {
            Next::Job(job) => {
                assert!(!self.sender.is_retiring(stream), "stream {stream} is to end, and is given {job:?}");
                if let Job::Bundle(bundle) = &job {
                    self.bundles_out.insert(bundle.id);
                }
                let rest = match &job {
                    Job::Block(block) | Job::Check(block) => self.rest(block.item),
                    Job::Bundle(_) => Duration::ZERO,
                };
                if !rest.is_zero() {
                    let until = self.now() + rest;
                    self.sender.handle_source_rests(self.now(), stream, until);
                }
                let delay = rest + self.disk_delay();
                self.enter(stream, Sending::Reading(job), delay);
            }
            Next::Wait(None) => {}
            Next::Wait(Some(until)) => {
                let until = until - self.base;
                assert!(until > self.clock, "stream {stream} is to ask again at once, for ever");
                let wake = self.stream(stream).wake;
                if wake.is_none_or(|wake| wake <= self.clock || wake > until) {
                    self.stream(stream).wake = Some(until);
                    self.at(until, Event::Wake);
                }
            }
            Next::End => {
                if self.sender.outcome().is_none() && self.sender.is_retiring(stream) {
                    self.verdict.retired += 1;
                    // What the network does to it from now on is nobody's loss any more.
                    let before = format!("{:?}", self.sender);
                    self.sender.handle_stream_lost(self.now(), stream);
                    assert_eq!(before, format!("{:?}", self.sender));
                }
                self.enter(stream, Sending::Over, Duration::ZERO);
                let delay = self.plan.latency + self.rng.up_to(Duration::from_micros(100));
                self.after(delay, Event::Ended(stream));
            }
        }
    }

    /// Goes on to a state of the sender's thread, which ends after `delay`.
    fn enter(&mut self, stream: StreamId, sending: Sending, delay: Duration) {
        let stream_state = self.stream(stream);
        stream_state.token += 1;
        stream_state.sending = sending;
        let token = stream_state.token;
        self.after(delay, Event::Sender(stream, token));
    }

    /// The sender's thread has come to the end of what it was doing.
    pub fn step_sender(&mut self, stream: StreamId, token: u64) {
        if self.stream(stream).token != token {
            return;
        }
        let sending = std::mem::replace(&mut self.stream(stream).sending, Sending::Over);
        match sending {
            Sending::Reading(job) => self.have_read(stream, job),
            Sending::Writing(job, content) => self.have_written(stream, job, content),
            Sending::Reporting(job, content) => {
                self.report(stream, &job, &content);
                self.stream(stream).sending = Sending::Waiting;
                if self.stream(stream).broken {
                    self.lose(stream);
                }
            }
            Sending::Waiting | Sending::Over => self.stream(stream).sending = sending,
        }
    }

    fn have_read(&mut self, stream: StreamId, job: Job) {
        if let Job::Check(block) = &job {
            return self.have_checked(stream, block);
        }
        let content = self.read(&job);
        if let (Job::Block(block), Content::Block { length, .. }) = (&job, &content)
            && block.unsized_source
        {
            let read = self.sender.scanned(block.item).map(|scanned| self.source.number(scanned));
            let end = read.is_some_and(|item| block.offset + u64::from(*length) == self.source.items[item].size);
            self.sender.handle_read(self.now(), block.item, block.offset, *length, end);
        }
        if self.stream(stream).broken {
            return self.cut_short(stream, &job, &content);
        }
        if self.rng.chance(self.plan.loss) {
            let delay = self.rng.up_to(Duration::from_millis(100));
            self.after(delay, Event::Cut(stream));
        }
        let mut delay = Duration::from_nanos(content.bytes() * 1_000_000_000 / self.plan.bytes_per_second);
        if self.rng.chance(self.plan.stall) {
            self.verdict.stalls += 1;
            delay += self.rng.up_to(Duration::from_secs(60));
        }
        let begin = self.clock + self.plan.latency;
        self.stream(stream).frames.push_back(Frame { content: content.clone(), begin, end: None });
        self.at(begin, Event::Receiver(stream));
        self.enter(stream, Sending::Writing(job, content), delay);
    }

    fn have_checked(&mut self, stream: StreamId, block: &BlockJob) {
        let broken = self.stream(stream).broken;
        let late = broken && self.rng.chance(300);
        if late {
            self.lose(stream);
        }
        let index = block.offset / u64::from(self.plan.options.block_bytes);
        let fails = self.rng.chance(self.plan.read_failure) && self.rng.chance(300);
        let opens = self.open_source(block.item);
        let result = match self.plan.mutant {
            Some(Mutant::ConfirmUnread) => Ok(self.told_held.get(&(block.item, index)).copied().unwrap_or_default()),
            _ => match self.read_block(block, fails || !opens) {
                Content::Block { content: Some(content), .. } => Ok(digest_of(content)),
                _ => Err(self.unread(block.item)),
            },
        };
        // Compared by the model too: what is held and is right must not be sent.
        self.verdict.compared += 1;
        self.sender.handle_block_checked(self.now(), stream, block.item, block.offset, result);
        if !late {
            self.stream(stream).sending = Sending::Waiting;
            if broken {
                self.lose(stream);
            }
        }
    }

    /// Why an offered item could not be read.
    fn unread(&self, item: ItemId) -> Failure {
        let changed = self.opened_as.get(&item).is_some_and(|&(item, version)| {
            !self.source.items[item].gone && self.source.items[item].version != version
        });
        if changed { changing() } else { unread() }
    }

    fn have_written(&mut self, stream: StreamId, job: Job, content: Content) {
        if self.stream(stream).broken {
            return self.cut_short(stream, &job, &content);
        }
        let end = self.clock + self.plan.latency;
        if let Some(frame) = self.stream(stream).frames.back_mut() {
            frame.end = Some(end);
        }
        self.at(end, Event::Receiver(stream));
        let delay = self.rng.up_to(self.plan.report_delay);
        self.enter(stream, Sending::Reporting(job, content), delay);
    }

    /// The stream broke before all was sent. What was read may be told all the same.
    fn cut_short(&mut self, stream: StreamId, job: &Job, content: &Content) {
        let told = self.rng.below(3);
        let read = matches!(content, Content::Block { content: Some(_), .. });
        if told == 0 && read {
            self.report(stream, job, content);
        }
        self.lose(stream);
        if told == 1 && read {
            self.report(stream, job, content);
        }
    }

    fn lose(&mut self, stream: StreamId) {
        self.sender.handle_stream_lost(self.now(), stream);
        self.stream(stream).sending = Sending::Over;
        self.stream(stream).token += 1;
        self.verdict.all_lost += u64::from(self.streams.iter().all(|stream| stream.broken));
        let delay = if self.rng.chance(200) { Duration::from_secs(5) } else { Duration::from_millis(50) };
        let delay = self.rng.up_to(delay);
        // Whatever happens to a network, it does not go on for ever.
        self.plan.loss = if self.streams.len() < 60 { self.plan.loss } else { 0 };
        self.after(delay, Event::Connect);
    }

    fn read(&mut self, job: &Job) -> Content {
        let fails = self.rng.chance(self.plan.read_failure) && self.rng.chance(300);
        match job {
            Job::Check(block) | Job::Block(block) => {
                let opens = self.open_source(block.item);
                self.read_block(block, fails || !opens)
            }
            Job::Bundle(bundle) => {
                let entries = bundle.items.iter().map(|item| self.read_entry(item)).collect();
                Content::Bundle { id: bundle.id, entries }
            }
        }
    }

    fn read_entry(&mut self, item: &ScannedItem) -> Entry {
        let number = self.source.number(item);
        // Of a directory nothing is read.
        let gone = self.source.items[number].gone || self.rng.chance(self.plan.read_failure);
        let source = &self.source.items[number];
        let (size, mtime) = (source.scanned.size.unwrap_or(0), source.scanned.attributes.mtime);
        let grown = size > self.plan.tuning.bundled_file_bytes_max;
        let changing = grown || self.rng.chance(self.plan.source_change) && self.rng.chance(300);
        let file = item.kind == ItemKind::File;
        let readable = item.kind == ItemKind::Directory || !(gone || changing && file);
        let content = readable.then(|| self.source.content(number));
        let size = if content.is_some() { size } else { 0 };
        Entry {
            item: number,
            path: item.path.clone(),
            size,
            mtime,
            fingerprint: self.source.fingerprint(number, self.second()),
            content,
            changing: changing && !gone,
            altered: false,
            patched: item.chunks.is_some(),
        }
    }

    fn read_block(&self, block: &BlockJob, fails: bool) -> Content {
        let index = block.offset / u64::from(self.plan.options.block_bytes);
        let item = self.sender.scanned(block.item).map(|scanned| self.source.number(scanned));
        // Of a source that has another length by now, what is asked for may not be there.
        let resized = item.is_some_and(|item| {
            !block.unsized_source
                && self
                    .sender
                    .scanned(block.item)
                    .is_none_or(|scanned| scanned.size != self.source.items[item].scanned.size)
        });
        // An item may end while its block is being read.
        let content = item
            .filter(|&item| !fails && !resized && !self.source.items[item].gone)
            .map(|item| self.source.block(item, index));
        if resized {
            return Content::Block {
                item: block.item,
                offset: block.offset,
                length: block.length,
                whole: block.whole,
                hole: false,
                content,
            };
        }
        let length = item.map_or(block.length, |item| self.source.block_length(item, index));
        let whole = item.map_or(block.whole, |item| self.source.blocks(item) == 1);
        assert!(block.unsized_source || item.is_none() || (length, whole) == (block.length, block.whole));
        let hole = block.sparse && content == Some(ZEROS);
        Content::Block { item: block.item, offset: block.offset, length, whole, hole, content }
    }

    fn report(&mut self, stream: StreamId, job: &Job, content: &Content) {
        match (job, content) {
            (Job::Block(block), Content::Block { length, content, .. }) => {
                let result = content.map(|content| (*length, digest_of(content)));
                let result = result.ok_or_else(|| self.unread(block.item));
                self.sender.handle_block_sent(self.now(), stream, block.item, block.offset, result);
            }
            (Job::Bundle(bundle), Content::Bundle { entries, .. }) => {
                let sent = |entry: &Entry| SentItem {
                    size: entry.size,
                    taken_over: if entry.patched { entry.size / 2 } else { 0 },
                    digest: entry.content.map_or(BlockDigest::default(), digest_of),
                    failure: entry.content.is_none().then(if entry.changing { changing } else { unread }),
                };
                self.sender.handle_bundle_sent(self.now(), bundle.id, entries.iter().map(sent).collect());
            }
            _ => panic!("a job gives content of its kind"),
        }
    }

    /// The connection is reset: what has not arrived by a moment soon after never does.
    pub fn cut(&mut self, stream: StreamId) {
        if self.stream(stream).broken {
            return;
        }
        self.verdict.cuts += 1;
        let last = self.clock + self.rng.up_to(self.plan.latency);
        let state = self.stream(stream);
        state.broken = true;
        for frame in &mut state.frames {
            frame.end = frame.end.filter(|&end| end <= last);
        }
        let far = if self.rng.chance(200) { Duration::from_secs(20) } else { self.plan.latency };
        let notice = self.plan.latency + self.rng.up_to(far);
        self.after(notice, Event::Ended(stream));
        let notice = self.rng.up_to(Duration::from_millis(50));
        self.after(notice, Event::Noticed(stream));
    }

    /// The sender's thread sees that its connection is gone, unless it is in the middle of reading.
    pub fn notice(&mut self, stream: StreamId) {
        match std::mem::replace(&mut self.stream(stream).sending, Sending::Over) {
            Sending::Waiting => self.lose(stream),
            Sending::Writing(job, content) => self.cut_short(stream, &job, &content),
            other => self.stream(stream).sending = other,
        }
    }
}
