//! A stream of bytes in order: standard output, a device, a FIFO. What it was given cannot be taken back.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use carrack_core::digest::FileDigests;
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};

use super::properties::{Properties, WriteOptions, Writes};
use super::write::{Destination, NewFile, Opening, Part, SmallFile, Stored};
use crate::error::{failure, io_failure};
use crate::sync::lock;

/// A stream that one file is written to.
pub struct Sequential(Arc<Mutex<SequentialOutput>>);

struct SequentialOutput {
    out: Box<dyn Write + Send>,
    position: u64,
}

impl Sequential {
    /// Writes to this.
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(SequentialOutput { out, position: 0 })))
    }
}

/// The file that the stream is given.
struct SequentialPart(Arc<Mutex<SequentialOutput>>);

impl SequentialPart {
    fn lock(&self) -> MutexGuard<'_, SequentialOutput> {
        lock(&self.0)
    }

    fn not_taken(&self, error: &io::Error) -> Failure {
        let failed = io_failure(Side::Destination, "write", error);
        if error.kind() == io::ErrorKind::BrokenPipe { failed.for_reason(Reason::ReaderGone) } else { failed }
    }
}

impl Destination for Sequential {
    fn properties(&self) -> Properties {
        Properties { keeps: true, writes: Writes::InOrder, ..Properties::NOTHING }
    }

    fn begin(&self, _file: &NewFile<'_>, _options: &WriteOptions, _believe: bool) -> Result<Opening, Failure> {
        Ok(Opening::Fresh(Arc::new(SequentialPart(Arc::clone(&self.0)))))
    }

    fn write_small(&self, _small: &SmallFile<'_>, _options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        let next = SequentialPart(Arc::clone(&self.0));
        next.write(0, content)?;
        next.finish(content.len() as u64)?;
        Ok(Stored::Done)
    }
}

impl Part for SequentialPart {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let mut stream = self.lock();
        if offset != stream.position {
            let message = "a block had to be sent again, and output to a stream cannot be undone: the reader already has the bytes";
            return Err(failure(ErrorCode::Unsupported, Side::Destination, message));
        }
        stream.out.write_all(bytes).map_err(|error| self.not_taken(&error))?;
        stream.position += bytes.len() as u64;
        Ok(())
    }

    /// All that the stream will get of the file has been written.
    fn finish(&self, _size: u64) -> Result<(), Failure> {
        self.lock().out.flush().map_err(|error| self.not_taken(&error))
    }

    fn publish(&self, _digests: FileDigests) -> Result<bool, Failure> {
        Ok(true)
    }
}
