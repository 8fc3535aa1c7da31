//! The data streams of a simulation: a thread at each end, as the engine has them, and frames on the way.

use std::collections::VecDeque;
use std::time::Duration;

use super::disk::Entry;
use super::plan::Mutant;
use super::source::digest_of;
use super::store::{TORN, ZEROS};
use super::world::{Event, World};
use crate::digest::BlockDigest;
use crate::failure::{ErrorCode, Failure, Side};
use crate::report::ItemKind;
use crate::transfer::ScannedItem;
use crate::transfer::receiver::Begin;
use crate::transfer::sender::{BlockJob, Job, Next, SentItem};
use crate::wire::frame::Trailer;
use crate::wire::peer::ItemResult;

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
    WaitingFor(u16),
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
        item: u64,
        offset: u64,
        length: u32,
        whole: bool,
        hole: bool,
        content: Option<u64>,
    },
    Bundle {
        id: u64,
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

fn lost() -> Failure {
    Failure::new(ErrorCode::ConnectionLost, Side::Link, "reset")
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
        let number = self.streams.len() as u16;
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
        self.receiver.handle_stream(number);
        self.sender.handle_stream(number);
    }

    /// So many streams are to end in good order.
    pub fn retire(&mut self, count: u16) {
        let ended = self.sender.outcome().is_some();
        let chosen = self.sender.retire(count.into());
        assert!(chosen <= count.into() && !(ended && chosen > 0));
        let staying = (0..self.streams.len() as u16).filter(|&stream| !self.sender.is_retiring(stream)).count();
        assert!(staying > 0, "all streams are to end");
    }

    fn stream(&mut self, stream: u16) -> &mut Stream {
        &mut self.streams[usize::from(stream)]
    }

    /// Waiting streams ask for work, in any order.
    pub fn ask_all(&mut self) {
        let mut waiting: Vec<u16> = (0..self.streams.len() as u16).collect();
        waiting.retain(|&stream| matches!(self.streams[usize::from(stream)].sending, Sending::Waiting));
        while !waiting.is_empty() {
            let place = self.rng.below(waiting.len() as u64) as usize;
            self.ask(waiting.swap_remove(place));
        }
    }

    fn ask(&mut self, stream: u16) {
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
                    self.sender.handle_source_rests(stream, until);
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
                    self.sender.handle_stream_lost(stream, &lost());
                    assert_eq!(before, format!("{:?}", self.sender));
                }
                self.enter(stream, Sending::Over, Duration::ZERO);
                let delay = self.plan.latency + self.rng.up_to(Duration::from_micros(100));
                self.after(delay, Event::Ended(stream));
            }
        }
    }

    /// Goes on to a state of the sender's thread, which ends after `delay`.
    fn enter(&mut self, stream: u16, sending: Sending, delay: Duration) {
        let stream_state = self.stream(stream);
        stream_state.token += 1;
        stream_state.sending = sending;
        let token = stream_state.token;
        self.after(delay, Event::Sender(stream, token));
    }

    /// The sender's thread has come to the end of what it was doing.
    pub fn step_sender(&mut self, stream: u16, token: u64) {
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

    fn have_read(&mut self, stream: u16, job: Job) {
        if let Job::Check(block) = &job {
            return self.have_checked(stream, block);
        }
        let content = self.read(&job);
        if let (Job::Block(block), Content::Block { length, .. }) = (&job, &content)
            && block.unsized_source
        {
            let read = self.sender.scanned(block.item).map(|scanned| self.source.number(scanned));
            let end = read.is_some_and(|item| block.offset + u64::from(*length) == self.source.items[item].size);
            self.sender.handle_read(block.item, block.offset, *length, end);
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

    fn have_checked(&mut self, stream: u16, block: &BlockJob) {
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
        self.sender.handle_block_checked(stream, block.item, block.offset, result);
        if !late {
            self.stream(stream).sending = Sending::Waiting;
            if broken {
                self.lose(stream);
            }
        }
    }

    /// Why an offered item could not be read.
    fn unread(&self, item: u64) -> Failure {
        let changed = self.opened_as.get(&item).is_some_and(|&(item, version)| {
            !self.source.items[item].gone && self.source.items[item].version != version
        });
        if changed && self.plan.resumes { changing() } else { unread() }
    }

    fn have_written(&mut self, stream: u16, job: Job, content: Content) {
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
    fn cut_short(&mut self, stream: u16, job: &Job, content: &Content) {
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

    fn lose(&mut self, stream: u16) {
        self.sender.handle_stream_lost(stream, &lost());
        self.stream(stream).sending = Sending::Over;
        self.stream(stream).token += 1;
        if self.plan.resumes {
            self.verdict.all_lost += u64::from(self.streams.iter().all(|stream| stream.broken));
            let delay = if self.rng.chance(200) { Duration::from_secs(5) } else { Duration::from_millis(50) };
            let delay = self.rng.up_to(delay);
            // Whatever happens to a network, it does not go on for ever.
            self.plan.loss = if self.streams.len() < 60 { self.plan.loss } else { 0 };
            self.after(delay, Event::Connect);
        } else if self.plan.redials && self.streams.len() < 60 && self.sender.outcome().is_none() {
            self.connect();
        }
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
        let (size, mtime) = match self.plan.resumes {
            true => (source.scanned.size.unwrap_or(0), source.scanned.attributes.mtime),
            false => (item.size.unwrap_or(0), item.attributes.mtime),
        };
        let grown = size > self.plan.tuning.bundled_file_bytes_max;
        let changing = grown || self.plan.resumes && self.rng.chance(self.plan.source_change) && self.rng.chance(300);
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
        }
    }

    fn read_block(&self, block: &BlockJob, fails: bool) -> Content {
        let index = block.offset / u64::from(self.plan.options.block_bytes);
        let item = self.sender.scanned(block.item).map(|scanned| self.source.number(scanned));
        // Of a source that has another length by now, what is asked for may not be there.
        let resized = item.is_some_and(|item| {
            self.plan.resumes
                && !block.unsized_source
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

    fn report(&mut self, stream: u16, job: &Job, content: &Content) {
        match (job, content) {
            (Job::Block(block), Content::Block { length, content, .. }) => {
                let result = content.map(|content| (*length, digest_of(content)));
                let result = result.ok_or_else(|| self.unread(block.item));
                self.sender.handle_block_sent(stream, block.item, block.offset, result);
            }
            (Job::Bundle(bundle), Content::Bundle { entries, .. }) => {
                let sent = |entry: &Entry| SentItem {
                    size: entry.size,
                    digest: entry.content.map_or(BlockDigest::default(), digest_of),
                    failure: entry.content.is_none().then(if entry.changing { changing } else { unread }),
                };
                self.sender.handle_bundle_sent(bundle.id, entries.iter().map(sent).collect());
            }
            _ => panic!("a job gives content of its kind"),
        }
    }

    /// The connection is reset: what has not arrived by a moment soon after never does.
    pub fn cut(&mut self, stream: u16) {
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
    pub fn notice(&mut self, stream: u16) {
        match std::mem::replace(&mut self.stream(stream).sending, Sending::Over) {
            Sending::Waiting => self.lose(stream),
            Sending::Writing(job, content) => self.cut_short(stream, &job, &content),
            other => self.stream(stream).sending = other,
        }
    }

    /// The receiver's thread goes on as far as it can.
    pub fn step_receiver(&mut self, stream: u16) {
        loop {
            let state = self.stream(stream);
            let over = state.receiving == Receiving::Over;
            let finishing = matches!(state.receiving, Receiving::Finishing { .. });
            if over || finishing {
                return;
            }
            let front = state.frames.front().map(|frame| (frame.begin, frame.end));
            let cut = state.ended && front.is_none_or(|(_, end)| end.is_none());
            if state.shut || cut {
                return self.close(stream);
            }
            match (state.receiving, front) {
                (Receiving::Idle | Receiving::WaitingFor(_), Some((begin, _))) if begin <= self.clock => {
                    if !self.begin(stream) {
                        return;
                    }
                }
                (Receiving::Taking { write }, Some((_, Some(end)))) if end <= self.clock => {
                    let delay = self.disk_delay();
                    let state = self.stream(stream);
                    state.receiving = Receiving::Finishing { write };
                    state.finishing_token += 1;
                    let token = state.finishing_token;
                    return self.after(delay, Event::Written(stream, token));
                }
                _ => return,
            }
        }
    }

    fn close(&mut self, stream: u16) {
        let state = self.stream(stream);
        state.receiving = Receiving::Over;
        let (was_broken, latency) = (std::mem::replace(&mut state.broken, true), self.plan.latency);
        self.disk.end(stream);
        self.receiver.handle_stream_closed(stream);
        if !was_broken {
            self.after(latency, Event::Noticed(stream));
        }
        for other in 0..self.streams.len() as u16 {
            if self.stream(other).receiving == Receiving::WaitingFor(stream) {
                self.after(Duration::ZERO, Event::Receiver(other));
            }
        }
    }

    /// A frame begins; false when it has to wait.
    fn begin(&mut self, stream: u16) -> bool {
        let Some(Frame { content, .. }) = self.stream(stream).frames.front() else {
            return false;
        };
        let begin = match *content {
            Content::Bundle { id, .. } => self.receiver.begin_bundle(stream, id),
            Content::Block { item, offset, length, whole, hole, .. } => {
                let begin = self.receiver.begin_block(stream, item, offset, length, whole);
                let begin = begin.expect("the sender keeps to the protocol");
                if begin == Begin::Write {
                    self.disk.begin(stream, item, offset);
                    self.begin_in_store(item, offset, hole);
                }
                begin
            }
        };
        self.verdict.discarded += u64::from(begin == Begin::Discard);
        self.stream(stream).receiving = match begin {
            Begin::Write => Receiving::Taking { write: true },
            Begin::Discard => Receiving::Taking { write: false },
            Begin::WaitFor(other) => {
                self.verdict.waits += 1;
                Receiving::WaitingFor(other)
            }
        };
        !matches!(begin, Begin::WaitFor(_))
    }

    fn begin_in_store(&mut self, item: u64, offset: u64, hole: bool) {
        let index = offset / u64::from(self.plan.options.block_bytes);
        let part = &self.disk.parts[&item];
        if self.plan.resumes {
            let number = self.source.find(&part.path);
            assert!(!self.held_right.contains(&(number, index)), "block {index} of {number} was held, and comes again");
        }
        let file = part.file;
        self.store.begin(file, index, self.plan.mutant != Some(Mutant::ClaimKept));
        if !self.is_hole_there(item, index, hole) {
            // From here on it is neither what it was nor what it will be.
            self.store.write(file, index, TORN);
        }
    }

    /// A hole need not be written where nothing has been since this session made the file.
    fn is_hole_there(&self, item: u64, index: u64, hole: bool) -> bool {
        let part = &self.disk.parts[&item];
        let untouched = part.fresh && !self.store.is_written(part.file, index);
        hole && (untouched || self.plan.mutant == Some(Mutant::HoleNotWritten))
    }

    /// The receiver's thread has written a frame.
    pub fn have_received(&mut self, stream: u16, token: u64) {
        let state = self.stream(stream);
        let Receiving::Finishing { write } = state.receiving else {
            return;
        };
        if state.finishing_token != token {
            return;
        }
        state.receiving = Receiving::Idle;
        let frame = state.frames.pop_front().expect("it was being written");
        match frame.content {
            _ if !write => {}
            Content::Bundle { id, entries } => self.bundle_written(stream, id, entries),
            Content::Block { item, offset, length, content, hole, .. } => {
                self.block_written(stream, item, offset, length, (content, hole))
            }
        }
        self.disk.end(stream);
        self.after(Duration::ZERO, Event::Receiver(stream));
    }

    fn bundle_written(&mut self, stream: u16, id: u64, mut entries: Vec<Entry>) {
        for entry in &mut entries {
            let has_digest = self.source.items[entry.item].scanned.kind == ItemKind::File;
            entry.altered = has_digest && self.rng.chance(self.plan.corruption);
            self.verdict.corruptions += u64::from(entry.altered && entry.content.is_some());
        }
        let again = entries.iter().find(|entry| self.known.contains(&entry.path));
        assert!(again.is_none(), "{again:?} is known, and comes again");
        if self.receiver.handle_bundle(stream, id, entries.iter().map(|entry| entry.size).sum()) {
            self.disk.bundles.insert(id, entries);
        }
    }

    fn block_written(&mut self, stream: u16, item: u64, offset: u64, length: u32, came: (Option<u64>, bool)) {
        let (content, hole) = came;
        if self.rng.chance(self.plan.write_failure) && self.rng.chance(300) {
            let failure = Failure::new(ErrorCode::NoSpace, Side::Destination, "full");
            self.forget_right(item);
            return self.receiver.handle_write_failed(stream, item, failure);
        }
        let altered = self.rng.chance(self.plan.corruption) && !hole;
        let (index, swapped) = (offset / u64::from(self.plan.options.block_bytes), content.map(|content| content ^ 1));
        let misplaced = self.plan.mutant.filter(|_| self.rng.chance(100) && self.disk.parts.contains_key(&item));
        let arrived = if misplaced == Some(Mutant::SwappedOnTheWay) { swapped } else { content };
        let theirs = arrived.map_or(BlockDigest::default(), digest_of);
        let ours = if altered { digest_of(!0) } else { theirs };
        let trailer = Trailer { whole: arrived.is_some(), digest: theirs };
        self.receiver.handle_block(stream, item, offset, length, ours, &trailer);
        let stopped = self.receiver.outcome().is_some();
        let Some(part) = self.disk.parts.get_mut(&item) else {
            return;
        };
        let (Some(arrived), false) = (arrived, stopped) else {
            return;
        };
        if altered {
            self.verdict.corruptions += 1;
            return;
        }
        self.verdict.misplaced += u64::from(misplaced.is_some());
        let on_disk = if misplaced == Some(Mutant::SwappedOnDisk) { swapped } else { Some(arrived) };
        let file = part.file;
        let is_there = self.is_hole_there(item, index, hole);
        self.verdict.holes += u64::from(hole && !is_there);
        if let Some(content) = on_disk.filter(|_| !is_there) {
            self.store.write(file, index, content);
        }
        // It may have been refused for being another than before.
        if self.disk.parts.contains_key(&item) {
            self.disk.land(item, offset);
        }
    }

    /// What the receiver made of a bundle's entry before it had its name.
    pub fn entry_result(&mut self, entry: &Entry) -> ItemResult {
        let failure = Failure::new(ErrorCode::PermissionDenied, Side::Destination, "refused");
        match entry.content {
            None => ItemResult::Dropped,
            Some(_) if entry.altered => ItemResult::Mismatch,
            Some(_) if self.rng.chance(self.plan.commit_failure) => ItemResult::Failed(failure),
            Some(_) if self.rng.chance(self.plan.keep) => ItemResult::Kept,
            Some(_) => ItemResult::Published,
        }
    }
}
