//! What a data stream's thread does: it takes jobs, and sends blocks.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::digest::BlockDigest;
use carrack_core::ids::{ItemId, StreamId};
use carrack_core::report::Failure;
use carrack_core::timeline::Work;
use carrack_core::transfer::sender::{BlockJob, Job, Next};
use carrack_core::tuning::SLICE_BYTES;
use carrack_core::wire::frame::{Header, Trailer};
use carrack_core::wire::patch;

use super::SendRun;
use crate::data::hasher::BlockHasher;
use crate::data::stream::OutStream;
use crate::storage::read::{Reader, Reading};

/// How often a stream that waits looks whether its connection is still there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// One stream's thread.
pub(super) struct SendStream<'a> {
    pub(super) run: &'a SendRun,
    pub(super) number: StreamId,
    pub(super) out: OutStream,
    pub(super) slice: Vec<u8>,
    pub(super) content: Vec<u8>,
    /// Bytes of attributes that the bundle has room for, which is being sent.
    pub(super) attributes_left: usize,
    /// When it was last seen that the connection is still there.
    pub(super) looked: Instant,
    /// Whose content it has sent last.
    of: Option<ItemId>,
}

impl<'a> SendStream<'a> {
    pub(super) fn new(run: &'a SendRun, number: StreamId, out: OutStream) -> Self {
        let (slice, content, looked) = (vec![0; SLICE_BYTES], Vec::new(), Instant::now());
        Self { run, number, out, slice, content, attributes_left: 0, looked, of: None }
    }

    pub(super) fn work(&mut self) -> io::Result<()> {
        loop {
            let mut machine = self.run.driver.lock();
            let next = machine.next_job(Instant::now(), self.number);
            match next {
                Next::Job(job) => {
                    drop(machine);
                    // Taking a job may have made room for the scan, or have cut off a straggler.
                    self.run.driver.wake();
                    let stages = Arc::clone(&self.run.driver.stages);
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
                    drop(self.run.driver.wait_timeout(machine, left.min(LOOK_INTERVAL)));
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

    /// Sends content at the rate that was asked for: that of the bytes that travel.
    pub(super) fn send_content(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.out.is_cut() {
            self.run.pace(bytes.len());
            return self.out.payload(bytes);
        }
        self.out.payload(bytes)?;
        let began = Instant::now();
        self.run.pace(self.out.take_travelled());
        self.out.paced(began.elapsed());
        Ok(())
    }

    /// The next content is of another item, or of many.
    pub(super) fn begin_content(&mut self, of: Option<ItemId>) {
        if self.of != of || of.is_none() {
            self.of = of;
            self.out.begin_content();
        }
    }

    fn send_block(&mut self, job: BlockJob) -> io::Result<()> {
        self.begin_content(Some(job.item));
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
        if job.patched && !hole && self.send_changed(job, source)? {
            return Ok(());
        }
        let header = Header::Block { item: job.item, offset: job.offset, length: job.length, hole, whole: job.whole };
        self.out.meta(&[&header.encode()])?;
        let _reading = (!hole).then(|| Reading::begin(source, job.offset, job.length.into()));
        let mut hasher = BlockHasher::new(self.run.driver.options.digests, job.offset);
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
                read = self.run.driver.stages.wait(Work::Read, || source.read_at(job.offset + sent as u64, slice));
            }
            self.run.driver.stages.work(Work::Hash, slice.len(), || hasher.update(slice));
            let length = slice.len();
            if !hole {
                let slice = std::mem::take(&mut self.slice);
                let sent = self.send_content(&slice[..length]);
                self.slice = slice;
                sent?;
            }
            sent += length;
        }
        let digest = hasher.finish(job.whole);
        self.out.meta(&[&Trailer { whole: read.is_ok(), digest }.encode()])?;
        self.out.flush()?;
        self.block_done(job, read.map(|()| (job.length, digest)));
        Ok(())
    }

    /// Sends a block of which the receiver has told the chunks: those that differ, or all of it where that is less.
    /// False where it cannot be read: then it goes as any other.
    fn send_changed(&mut self, job: BlockJob, source: &dyn Reader) -> io::Result<bool> {
        let Some((bytes, told)) = self.run.driver.lock().chunks_of(job.item, job.offset) else { return Ok(false) };
        self.content.resize(job.length as usize, 0);
        let _reading = Reading::begin(source, job.offset, job.length.into());
        let content = &mut self.content;
        if self.run.driver.stages.wait(Work::Read, || source.read_at(job.offset, content)).is_err() {
            return Ok(false);
        }
        let patch = self.run.driver.stages.work(Work::Hash, content.len(), || patch::of_chunks(content, bytes, &told));
        // Also where it is none: an earlier attempt may have sent one.
        let there = patch.as_ref().map_or(0, |(_, there)| *there);
        self.run.driver.lock().handle_patched(job.item, job.offset, there);
        self.send_read(job, job.length, job.whole, patch.map(|(patch, _)| patch))?;
        Ok(true)
    }

    /// Sends a block that has been read, or the patch that makes it.
    fn send_read(&mut self, job: BlockJob, length: u32, whole: bool, patch: Option<Vec<u8>>) -> io::Result<()> {
        let BlockJob { item, offset, .. } = job;
        let header = match &patch {
            // Shorter than the block, which has at most `u32` bytes.
            Some(patch) => Header::PatchedBlock { item, offset, length: patch.len() as u32, whole },
            None => Header::Block { item, offset, length, hole: false, whole },
        };
        self.out.meta(&[&header.encode()])?;
        let mut hasher = BlockHasher::new(self.run.driver.options.digests, offset);
        let content = std::mem::take(&mut self.content);
        for slice in content[..length as usize].chunks(SLICE_BYTES) {
            self.run.driver.stages.work(Work::Hash, slice.len(), || hasher.update(slice));
            if patch.is_none() {
                self.send_content(slice)?;
            }
        }
        self.content = content;
        for slice in patch.iter().flat_map(|patch| patch.chunks(SLICE_BYTES)) {
            self.send_content(slice)?;
        }
        let digest = hasher.finish(whole);
        self.out.meta(&[&Trailer { whole: true, digest }.encode()])?;
        self.out.flush()?;
        self.block_done(job, Ok((length, digest)));
        Ok(())
    }

    /// Where nobody asked for a digest the kernel sends the file by itself. Says how many bytes
    /// of the block it has sent.
    fn send_unseen(&mut self, job: BlockJob, source: &dyn Reader) -> io::Result<usize> {
        let Some(file) = source.file().filter(|_| !self.run.driver.options.digests.any()) else { return Ok(0) };
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
            .driver
            .tell(|machine| machine.handle_block_checked(Instant::now(), self.number, job.item, job.offset, result));
    }

    /// The next block of a source whose size is not known: read whole before its header can be written.
    fn send_next(&mut self, job: BlockJob, source: &dyn Reader) -> io::Result<()> {
        self.content.resize(job.length as usize, 0);
        let (run, content) = (&self.run, &mut self.content);
        let is_over = || run.driver.is_over();
        let read = run.driver.stages.wait(Work::Read, || source.read_next(job.offset, content, &is_over));
        let (length, end) = match read {
            Ok(read) => read,
            Err(why) => {
                self.block_done(job, Err(why));
                return Ok(());
            }
        };
        // Before the block is sent: the next one can be read by another stream meanwhile.
        self.run.driver.tell(|machine| machine.handle_read(Instant::now(), job.item, job.offset, length as u32, end));
        self.send_read(job, length as u32, end && job.offset == 0, None)
    }

    fn block_done(&self, job: BlockJob, result: Result<(u32, BlockDigest), Failure>) {
        self.run
            .driver
            .tell(|machine| machine.handle_block_sent(Instant::now(), self.number, job.item, job.offset, result));
    }
}
