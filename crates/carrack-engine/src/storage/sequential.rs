//! A stream of bytes in order: standard output, a device, a FIFO. What it was given cannot be taken back.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use carrack_core::digest::FileDigests;
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::Durability;
use carrack_sys::file;

use super::properties::{Properties, WriteOptions, Writes};
use super::write::{Destination, NewFile, Opening, Part, SmallFile, Stored};
use crate::error::{failure, io_failure};
use crate::sync::lock;

/// A stream that one file is written to.
pub struct Sequential(Arc<Mutex<SequentialOutput>>);

struct SequentialOutput {
    out: Box<dyn Write + Send>,
    position: u64,
    /// Whether what it has is lost with the power until it is flushed.
    is_disk: bool,
}

/// A disk, or a part of one: what it is given lies in the cache until it is flushed, and only then it tells that it
/// could not be written.
struct Disk(File);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        file::sync_data(&self.0)
    }
}

impl Sequential {
    /// Writes to this.
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(SequentialOutput { out, position: 0, is_disk: false })))
    }

    /// Writes to a disk, which has all of it on stable storage when the file is whole, unless nothing is to be durable.
    pub fn to_disk(disk: File) -> Self {
        Self(Arc::new(Mutex::new(SequentialOutput { out: Box::new(Disk(disk)), position: 0, is_disk: true })))
    }

    fn part(&self, options: &WriteOptions) -> SequentialPart {
        SequentialPart { output: Arc::clone(&self.0), durability: options.durability }
    }
}

/// The file that the stream is given.
struct SequentialPart {
    output: Arc<Mutex<SequentialOutput>>,
    durability: Durability,
}

impl SequentialPart {
    fn lock(&self) -> MutexGuard<'_, SequentialOutput> {
        lock(&self.output)
    }

    fn failed(what: &'static str, error: &io::Error) -> Failure {
        let failed = io_failure(Side::Destination, what, error);
        if error.kind() == io::ErrorKind::BrokenPipe { failed.for_reason(Reason::ReaderGone) } else { failed }
    }
}

impl Destination for Sequential {
    fn properties(&self) -> Properties {
        Properties { keeps: true, writes: Writes::InOrder, ..Properties::NOTHING }
    }

    fn begin(&self, _file: &NewFile<'_>, options: &WriteOptions, _believe: bool) -> Result<Opening, Failure> {
        Ok(Opening::Fresh(Arc::new(self.part(options))))
    }

    fn write_small(&self, _small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure> {
        let next = self.part(options);
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
        stream.out.write_all(bytes).map_err(|error| Self::failed("write", &error))?;
        stream.position += bytes.len() as u64;
        Ok(())
    }

    /// All that the stream will get of the file has been written.
    fn finish(&self, _size: u64) -> Result<(), Failure> {
        let mut stream = self.lock();
        if stream.is_disk && self.durability == Durability::None {
            return Ok(());
        }
        let what = if stream.is_disk { "sync" } else { "write" };
        stream.out.flush().map_err(|error| Self::failed(what, &error))
    }

    fn publish(&self, _digests: FileDigests) -> Result<bool, Failure> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk tells only when it is synced that it could not be written.
    struct Lost;

    impl Write for Lost {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::Error::other("the disk is gone"))
        }
    }

    #[test]
    fn disk_that_loses_what_it_was_given_fails_its_file_where_that_is_to_be_durable() {
        let finished = |is_disk, durability| {
            let output = SequentialOutput { out: Box::new(Lost), position: 0, is_disk };
            let part = SequentialPart { output: Arc::new(Mutex::new(output)), durability };
            part.write(0, b"content").unwrap();
            part.finish(7).map_err(|why| why.message())
        };
        assert!(finished(true, Durability::Group).unwrap_err().contains("sync: "));
        assert!(finished(true, Durability::Each).is_err());
        assert_eq!(finished(true, Durability::None), Ok(()));
        assert!(finished(false, Durability::None).unwrap_err().contains("write: "), "a stream is asked in any case");
    }
}
