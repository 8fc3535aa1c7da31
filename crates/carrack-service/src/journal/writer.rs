//! Appends to a journal. Only the worker that holds the task's lock does.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use super::body::encode;
use super::error::JournalError;
use super::format::{FAILED, JOURNAL, MAGIC};
use super::reader::Reader;
use super::record::Record;
use super::withdrawn::Withdrawn;

/// The list of failed items while it is written anew.
const FAILED_NEXT: &str = "failed.next";
/// Records that wait are written once they are so many bytes.
const BATCH_BYTES: usize = 64 << 10;
/// Storage is kept free for so many bytes behind the end: an attempt that finds the file system full can still tell
/// how it ended.
const RESERVE_BYTES: u64 = 256 << 10;

/// What stood in a journal.
#[derive(Debug)]
pub struct Recovered {
    path: PathBuf,
    /// Where the whole records end.
    end: u64,
    /// Bytes behind that are no record, or stand behind such.
    pub cut_bytes: u64,
    /// Where these bytes are kept, if records may be among them.
    pub kept_aside: Option<PathBuf>,
}

/// Reads what earlier workers have told and what still counts of it, and finds where to go on.
///
/// # Errors
/// If the file cannot be read, or is no journal.
pub fn recover(directory: &Path, each: &mut dyn FnMut(Record)) -> Result<Recovered, JournalError> {
    let path = directory.join(JOURNAL);
    let mut withdrawn = Withdrawn::load(directory)?;
    let mut reader = Reader::of(path.clone(), 0).without(withdrawn.clone());
    let damaged = loop {
        match reader.next_record() {
            Ok(Some(record)) => each(record),
            Ok(None) => break false,
            Err(JournalError::Damaged { .. }) => break true,
            Err(error) => return Err(error),
        }
    };
    let end = reader.offset();
    let length = match std::fs::metadata(&path) {
        Ok(facts) => facts.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(JournalError::call("stat", &path)(error)),
    };
    if withdrawn.cut(end) {
        withdrawn.save(directory)?;
    }
    let kept_aside = if damaged { Some(keep_aside(&path, end)?) } else { None };
    Ok(Recovered { path, end, cut_bytes: length.saturating_sub(end), kept_aside })
}

/// Copies what stands from `offset` on to a file beside the journal.
fn keep_aside(path: &Path, offset: u64) -> Result<PathBuf, JournalError> {
    let aside = path.with_extension(format!("damaged-{offset}"));
    let copy = || {
        let from = File::open(path)?;
        let mut to = create(&aside, true)?;
        let (mut buffer, mut at) = (vec![0; BATCH_BYTES], offset);
        loop {
            match super::reader::read_at_most(&from, &mut buffer, at)? {
                0 => return to.sync_all(),
                read => {
                    to.write_all(&buffer[..read])?;
                    at += read as u64;
                }
            }
        }
    };
    copy().map_err(JournalError::call("write", &aside))?;
    Ok(aside)
}

fn create(path: &Path, anew: bool) -> io::Result<File> {
    File::options().write(true).create(true).truncate(anew).mode(0o600).open(path)
}

/// Appends records.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    /// Where the next batch begins: all before is written.
    end: u64,
    /// Waits to be written.
    batch: Vec<u8>,
    /// Up to here storage is kept free.
    reserved: u64,
}

impl Writer {
    /// Goes on behind the last whole record.
    ///
    /// # Errors
    /// Those of the file.
    pub fn open(recovered: &Recovered) -> Result<Self, JournalError> {
        let path = &recovered.path;
        let file = create(path, false).map_err(JournalError::call("open", path))?;
        file.set_len(recovered.end).map_err(JournalError::call("cut", path))?;
        Self::begin(path.clone(), file, recovered.end)
    }

    /// Begins the list of failed items anew.
    ///
    /// # Errors
    /// Those of the file.
    pub fn begin_failed(directory: &Path) -> Result<Self, JournalError> {
        let path = directory.join(FAILED);
        let file = create(&path, true).map_err(JournalError::call("open", &path))?;
        Self::begin(path, file, 0)
    }

    /// Begins the list of failed items anew, without those of a pair.
    ///
    /// # Errors
    /// Those of the files.
    pub fn keep_failed(directory: &Path, without: u32) -> Result<Self, JournalError> {
        let (path, next) = (directory.join(FAILED), directory.join(FAILED_NEXT));
        let file = create(&next, true).map_err(JournalError::call("open", &next))?;
        let mut writer = Self::begin(path.clone(), file, 0)?;
        let mut reader = Reader::of(path.clone(), 0);
        while let Some(record) = reader.next_record()? {
            if !matches!(&record, Record::Item(item) if item.pair == without) {
                writer.append(&record)?;
            }
        }
        writer.flush()?;
        std::fs::rename(&next, &path).map_err(JournalError::call("rename", &next))?;
        Ok(writer)
    }

    fn begin(path: PathBuf, file: File, end: u64) -> Result<Self, JournalError> {
        let mut writer = Self { path, file, end, batch: Vec::new(), reserved: 0 };
        if end == 0 {
            writer.batch.extend_from_slice(MAGIC);
            writer.flush()?;
        }
        Ok(writer)
    }

    /// Adds a record. It is written with the batch that it is of.
    ///
    /// # Errors
    /// Those of writing. The records that wait stay, and are written with the next batch.
    pub fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        encode(record, &mut self.batch);
        if self.batch.len() >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Where the next record will begin.
    pub fn end(&self) -> u64 {
        self.end + self.batch.len() as u64
    }

    /// Writes all that waits.
    ///
    /// # Errors
    /// Those of writing.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        // A batch that was written in part is written again, at the same place.
        self.file.write_all_at(&self.batch, self.end).map_err(JournalError::call("write", &self.path))?;
        self.end += self.batch.len() as u64;
        self.batch.clear();
        Ok(())
    }

    /// Keeps storage free behind the end, where the file system can.
    ///
    /// # Errors
    /// If it is full.
    pub fn reserve(&mut self) -> Result<(), JournalError> {
        let wanted = self.end + self.batch.len() as u64 + RESERVE_BYTES;
        if self.reserved >= wanted {
            return Ok(());
        }
        let reserved = rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.end, 2 * RESERVE_BYTES);
        match reserved.map_err(io::Error::from) {
            Ok(()) => self.reserved = self.end + 2 * RESERVE_BYTES,
            Err(error)
                if error.kind() == io::ErrorKind::StorageFull || error.kind() == io::ErrorKind::QuotaExceeded =>
            {
                return Err(JournalError::call("reserve", &self.path)(error));
            }
            // It cannot do so: then nothing is reserved.
            Err(_) => self.reserved = u64::MAX,
        }
        Ok(())
    }

    /// Another handle, for syncing what is written while more is appended.
    ///
    /// # Errors
    /// If no handle is left.
    pub fn handle(&self) -> Result<File, JournalError> {
        self.file.try_clone().map_err(JournalError::call("open", &self.path))
    }

    /// Writes all that waits, gives back what was kept free, and has all of it reach stable storage.
    ///
    /// # Errors
    /// Those of writing and syncing.
    pub fn finish(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        self.file.set_len(self.end).map_err(JournalError::call("cut", &self.path))?;
        self.file.sync_all().map_err(JournalError::call("sync", &self.path))
    }
}
