//! What a data stream's thread does: it reads what comes, and writes blocks.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::ids::{ItemId, StreamId};
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::timeline::Work;
use carrack_core::transfer::receiver::{ArrivedBlock, BlockStart, Receiver};
use carrack_core::tuning::SLICE_BYTES;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::frame::{HEADER_BYTES, Header, TRAILER_BYTES, Trailer};
use carrack_sys::bulk::Pipe;

use super::ReceiveRun;
use super::owners::LastTold;
use crate::data::hasher::BlockHasher;
use crate::data::stream::InStream;
use crate::error::failure;
use crate::storage::write::Part;
use crate::sync::lock;

/// Why a stream's thread ends.
pub(super) enum StreamError {
    Connection(io::Error),
    Protocol(ProtocolError),
}

/// What nobody but the peer can have done is its violation.
impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        let violation = error.get_ref().and_then(|inner| inner.downcast_ref::<ProtocolError>());
        match violation {
            Some(violation) => Self::Protocol(violation.clone()),
            None => Self::Connection(error),
        }
    }
}

impl From<ProtocolError> for StreamError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

/// One stream's thread.
pub(super) struct ReceiveStream<'a> {
    pub(super) run: &'a ReceiveRun,
    pub(super) number: StreamId,
    pub(super) input: InStream,
    pub(super) scratch: Vec<u8>,
    /// From the socket to files inside the kernel, where nobody looks at the bytes.
    pub(super) pipe: Option<Pipe>,
    pub(super) last_others: LastTold,
}

/// A block that has begun.
pub(super) struct BlockWrite {
    block: ArrivedBlock,
    /// It is all of the file.
    whole: bool,
    /// Else it is read and dropped.
    is_wanted: bool,
    pub(super) part: Option<Arc<dyn Part>>,
    /// Whether all of it so far could be written.
    pub(super) written: Result<(), Failure>,
}

impl ReceiveStream<'_> {
    pub(super) fn work(&mut self) -> Result<(), StreamError> {
        let stages = Arc::clone(&self.run.driver.stages);
        loop {
            let mut header = [0; HEADER_BYTES];
            self.input.meta(&mut header)?;
            // A header is all that tells where the next one begins: one that makes no sense ends the transfer.
            match Header::decode(&header, self.run.driver.options.block_bytes)? {
                Header::End => return Ok(()),
                Header::Block { item, offset, length, hole, whole } => {
                    let (run, carried) = (self.run, if hole { 0 } else { length });
                    let carry = || stages.carry(|| self.block(item, offset, length, hole, whole));
                    run.taking_over.arriving.measure(carried.into(), carry)?;
                }
                Header::PatchedBlock { item, offset, length, whole } => {
                    let run = self.run;
                    let carry = || stages.carry(|| self.patched_block(item, offset, length, whole));
                    run.taking_over.arriving.measure(length.into(), carry)?;
                }
                Header::Bundle { bundle, entries } => stages.carry(|| self.bundle(bundle, entries))?,
            }
        }
    }

    /// Asks until no other stream is writing the same.
    pub(super) fn begin(
        &self,
        ask: impl Fn(&mut Receiver) -> Result<BlockStart, ProtocolError>,
    ) -> Result<BlockStart, StreamError> {
        let deadline = Instant::now() + self.run.driver.tuning.silence;
        let mut machine = self.run.driver.lock();
        loop {
            match ask(&mut machine)? {
                // Another stream has the same block or bundle and is still in a write of it: two of them at one offset
                // could leave a mixture. It lands, or is cut off and leaves.
                BlockStart::WaitFor(_) if Instant::now() < deadline => {
                    self.run.driver.wake();
                    machine = self.run.driver.wait_timeout(machine, Duration::from_secs(1));
                }
                BlockStart::WaitFor(other) => {
                    let what = format!("data connection {other} could not be ended");
                    return Err(StreamError::Connection(io::Error::other(what)));
                }
                begin => return Ok(begin),
            }
        }
    }

    fn block(&mut self, item: ItemId, offset: u64, length: u32, hole: bool, whole: bool) -> Result<(), StreamError> {
        let mut write = self.begin_block(ArrivedBlock { item, offset, length }, whole)?;
        let (part, written) = (write.part.clone(), &mut write.written);
        let mut hasher = BlockHasher::new(self.run.driver.options.digests, offset);
        if hole {
            if let Some(part) = part.as_deref() {
                let write = || part.write_hole(offset, length.into());
                *written = self.run.driver.stages.wait(Work::Write, write);
                hash_zeros(&mut hasher, length as usize);
            }
        } else {
            let unseen = part.as_deref().map_or(Ok(0), |part| self.unseen(part, offset, length, written))?;
            let (run, mut at) = (self.run, offset + unseen);
            self.input.payload(u64::from(length) - unseen, &mut |slice| {
                if let Some(part) = part.as_deref() {
                    run.driver.stages.work(Work::Hash, slice.len(), || hasher.update(slice));
                    // After an error the rest is read and dropped: the connection is in order, and carries other items.
                    if written.is_ok() {
                        *written = run.driver.stages.wait(Work::Write, || part.write(at, slice));
                    }
                }
                at += slice.len() as u64;
                Ok::<(), StreamError>(())
            })?;
        }
        let mut trailer = [0; TRAILER_BYTES];
        self.input.meta(&mut trailer)?;
        let trailer = Trailer::decode(&trailer, self.run.driver.options.digests)?;
        self.end_block(write, hasher, &trailer);
        Ok(())
    }

    /// Whether a block is to be written, and where.
    pub(super) fn begin_block(&self, block: ArrivedBlock, whole: bool) -> Result<BlockWrite, StreamError> {
        let ArrivedBlock { item, offset, length } = block;
        // The machine decides before a byte is written: a block of an item that ended is read and dropped, because the
        // stream goes on behind it.
        let begin = self.begin(|machine| machine.begin_block(self.number, item, offset, length, whole))?;
        let is_wanted = begin == BlockStart::Write;
        let part = is_wanted.then(|| lock(&self.run.parts).get(&item).cloned()).flatten();
        if let Some(part) = part.as_deref() {
            // Before the first byte: a crash in the midst of the block must not leave a marker that still calls it
            // whole.
            self.run.take_claim_back(item, offset, part);
        }
        // The item may have been discarded since the machine was asked. Then nothing is written, and nothing lands.
        let gone = || failure(ErrorCode::Internal, Side::Destination, "the file of a block has been removed");
        let written = if is_wanted && part.is_none() { Err(gone()) } else { Ok(()) };
        Ok(BlockWrite { block, whole, is_wanted, part, written })
    }

    /// What came of it. The hasher has seen the bytes as they came; the machine compares their digest with the sender's
    /// and asks again for the block that differs.
    pub(super) fn end_block(&self, write: BlockWrite, hasher: BlockHasher, trailer: &Trailer) {
        let BlockWrite { block, whole, is_wanted, part, mut written } = write;
        if !is_wanted {
            return;
        }
        if let (Some(part), Ok(())) = (part.as_deref(), &written) {
            written = self.run.driver.stages.wait(Work::Write, || part.end_block(block.offset, block.length.into()));
        }
        self.run.driver.tell(|machine| match written {
            Ok(()) => machine.handle_block(Instant::now(), self.number, block, hasher.finish(whole), trailer),
            Err(why) => machine.handle_write_failed(Instant::now(), self.number, block.item, why),
        });
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
        if self.run.driver.options.digests.any() || !self.input.is_clear() {
            return Ok(0);
        }
        let length = u64::from(length);
        // What has come with the header.
        let mut done = length.min(self.input.received() as u64);
        let (run, mut at) = (self.run, offset);
        self.input.payload(done, &mut |slice| {
            if written.is_ok() {
                *written = run.driver.stages.wait(Work::Write, || part.write(at, slice));
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
                *written = run.driver.stages.wait(Work::Write, || part.write_from(offset + done, pipe));
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
}

fn hash_zeros(hasher: &mut BlockHasher, length: usize) {
    let zeros = vec![0; SLICE_BYTES.min(length)];
    (0..length).step_by(SLICE_BYTES).for_each(|done| hasher.update(&zeros[..zeros.len().min(length - done)]));
}
