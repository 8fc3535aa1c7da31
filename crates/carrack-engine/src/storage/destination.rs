//! Writing: hidden part files in the target's own directory, renamed when whole.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use carrack_core::digest::BlockDigest;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::tuning::SLICE_BYTES;
use carrack_core::wire::control::TransferOptions;
use carrack_core::wire::peer::Offer;

pub use super::part::{PartEntry, PartFile};
pub use super::tree::{OpenedPart, SmallFile, Standing, Tree};
use crate::error::{failure, io_failure};

/// Where a transfer writes to.
pub enum Destination {
    /// Files below a directory.
    Tree(Tree),
    /// Nothing is kept.
    Null,
    /// One stream of bytes, in order: standard output, a device, a FIFO.
    Sequential(Mutex<Sequential>),
}

/// A stream of bytes in order.
pub struct Sequential {
    out: Box<dyn Write + Send>,
    position: u64,
}

impl Destination {
    /// Writes to a stream.
    pub fn sequential(out: Box<dyn Write + Send>) -> Self {
        Self::Sequential(Mutex::new(Sequential { out, position: 0 }))
    }

    /// Makes the place where an offered file grows, or says why not. See [`Tree::open_part`].
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn open_part(&self, offer: &Offer, options: &TransferOptions, believe: bool) -> Result<Opening, Failure> {
        Ok(match self {
            Self::Tree(tree) => match tree.open_part(offer, options, believe)? {
                OpenedPart::Fresh(part) => Opening::Fresh(Part::File(Box::new(part))),
                OpenedPart::Resumed { part, held, doubtful } => {
                    Opening::Resumed { part: Part::File(Box::new(part)), held, doubtful }
                }
                OpenedPart::Present(standing) => Opening::Present(standing),
                OpenedPart::Keep => Opening::Keep,
            },
            Self::Null => Opening::Fresh(Part::Null),
            Self::Sequential(_) => Opening::Fresh(Part::Sequential),
        })
    }

    /// Writes bytes of a part.
    ///
    /// # Errors
    /// Those of the file system; out of order on a stream.
    pub fn write(&self, part: &Part, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        match (part, self) {
            (Part::File(part), _) => part.write(offset, bytes),
            (Part::Sequential, Self::Sequential(stream)) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                if offset != stream.position {
                    let message =
                        "a block had to be sent again, and what has been written to a stream cannot be taken back";
                    return Err(failure(ErrorCode::Unsupported, Side::Destination, message));
                }
                stream.out.write_all(bytes).map_err(|error| io_failure(Side::Destination, "write", &error))?;
                stream.position += bytes.len() as u64;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A block of a part is a hole: it reads as zeros afterwards, whatever was there.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub fn write_hole(&self, part: &Part, offset: u64, length: u64) -> Result<(), Failure> {
        if let Part::File(part) = part {
            return part.write_hole(offset, length);
        }
        let zeros = vec![0; SLICE_BYTES.min(length as usize)];
        (0..length)
            .step_by(SLICE_BYTES)
            .try_for_each(|done| self.write(part, offset + done, &zeros[..zeros.len().min((length - done) as usize)]))
    }

    /// All that a stream will get of the file has been written.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn end_stream(&self) -> Result<(), Failure> {
        let Self::Sequential(stream) = self else { return Ok(()) };
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.out.flush().map_err(|error| io_failure(Side::Destination, "write", &error))
    }
}

/// What opening the place for an offered file came to.
pub enum Opening {
    /// The name stays as it is, as was asked for.
    Keep,
    /// A new one, with nothing in it.
    Fresh(Part),
    /// See [`OpenedPart::Resumed`].
    Resumed {
        /// The part file.
        part: Part,
        /// Blocks that are there.
        held: Vec<(u64, BlockDigest)>,
        /// Indexes of blocks that may be there.
        doubtful: Vec<u64>,
    },
    /// See [`OpenedPart::Present`].
    Present(Standing),
}

/// Where an offered file grows.
pub enum Part {
    /// A part file.
    File(Box<PartFile>),
    /// Nowhere.
    Null,
    /// At the end of a stream.
    Sequential,
}
