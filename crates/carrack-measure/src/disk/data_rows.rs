//! Rows about a few large files: written, read, in order and in no order.

use std::fs::File;
use std::io;

use carrack_sys::dir::Dir;
use carrack_sys::file::{drop_cache, read_full_at, sync_data, write_all_at};
use carrack_sys::gauge::{self, IoMode, Mapping};

use super::order::Order;
use super::plan::{Mode, Operation, Rate, Step};
use super::rows::{rate_labels, row_of};
use crate::data::{Aligned, Records};
use crate::error::Error;
use crate::residency::{self, Cache};
use crate::result::{Row, label, value};
use crate::scratch::Scratch;
use crate::workers::{self, Done, Job, Operate};

/// Record with which a file is written that a row needs and no row has written.
const LAY_RECORD: u64 = 1 << 20;

/// Operations in no order that a worker takes at a time.
const CLAIM: u64 = 16;

/// Opens a file of a directory, and creates it where it is missing.
type OpenFile = fn(&Dir, &[u8], IoMode) -> io::Result<File>;

/// The data files of a measurement: what is in them, and who has read them.
pub struct DataFiles<'a> {
    scratch: &'a Scratch,
    cache: Cache,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// Opens a data file: [`gauge::open`].
    open: OpenFile,
    size: u64,
    laid: Option<Laid>,
    /// The last row has read all files through the cache.
    warm: bool,
    /// Makes orders and bytes differ from row to row.
    seed: u64,
}

/// Files that are there.
#[derive(Clone, Copy, Debug)]
struct Laid {
    files: usize,
    /// Of each; all of it has been written.
    bytes: u64,
    /// It is as long as it shall be, or as it became in the time that it had.
    final_length: bool,
}

impl<'a> DataFiles<'a> {
    /// No files yet, and no size.
    pub fn new(scratch: &'a Scratch, cache: Cache, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { scratch, cache, stop, open: gauge::open, size: 0, laid: None, warm: false, seed: 1 }
    }

    /// Sets the bytes of all files together.
    pub fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    /// Where the files are.
    pub fn scratch(&self) -> &'a Scratch {
        self.scratch
    }

    /// What the file system keeps in memory.
    pub fn cache(&self) -> Cache {
        self.cache
    }

    /// The same step with operations that are due so many times a second.
    pub fn arrivals(&self, step: &Step, per_second: f64) -> Step {
        Step { rate: Some(Rate::PerSecond(per_second.max(1.0))), ..step.clone() }
    }

    /// Measures a row; `None` where the file system has no direct access.
    ///
    /// # Errors
    /// What the system says, and being stopped.
    pub fn measure(&mut self, step: &Step) -> Result<Option<Row>, Error> {
        self.seed += 1;
        let row = if step.operation == Operation::Write { self.write_new(step) } else { self.visit(step) };
        match row {
            Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::Unsupported => Ok(None),
            row => row.map(Some),
        }
    }

    fn write_new(&mut self, step: &Step) -> Result<Row, Error> {
        let operations = self.operations(step, self.size / step.threads as u64)?;
        let files = self.fresh(step)?;
        let done = self.run(step, &files, operations)?;
        let bytes = done.operations_least * step.record;
        // A way of writing that waits for the disk each time may have come to nothing in its time: what is read
        // afterwards is then written by a quicker one.
        let quick = matches!(step.mode, Mode::Cached | Mode::Fdatasync);
        let whole = done.operations_least == operations;
        self.laid = Some(Laid { files: step.threads, bytes, final_length: whole || quick });
        self.warm = false;
        let unwritten = (step.mode == Mode::Cached).then(|| unwritten(&files, bytes)).flatten();
        Ok(self.row(step, &done, None, unwritten))
    }

    /// Everything but a new file.
    fn visit(&mut self, step: &Step) -> Result<Row, Error> {
        let laid = self.lay(step)?;
        let operations = self.operations(step, laid.bytes.min(self.size / step.threads as u64))?;
        let files = self.open(step, step.threads)?;
        let length = operations * step.record;
        if step.operation == Operation::Reread {
            self.warm_up(&files, length)?;
        } else {
            forget(&files)?;
        }
        let random = step.operation.is_random();
        // In order, the system reads ahead for a descriptor, so workers on one file share it. In no order nothing is
        // read ahead: each worker has a descriptor of its own, or they would wait for each other at its count of users.
        let own = if random && step.depth > 1 { self.open(step, step.threads * step.depth)? } else { Vec::new() };
        let handles = if own.is_empty() { &files } else { &own };
        let order = if random { gauge::Order::Random } else { gauge::Order::Sequential };
        handles.iter().for_each(|file| gauge::expect_order(file, order));
        let buffered_read = !step.operation.is_write() && step.mode != Mode::Direct;
        let before = if buffered_read { cached(&files, length) } else { None };
        let done = self.run(step, handles, operations)?;
        self.warm = buffered_read && !random && done.operations_least == operations;
        let unwritten =
            (step.operation.is_write() && step.mode == Mode::Cached).then(|| unwritten(&files, length)).flatten();
        Ok(self.row(step, &done, before, unwritten))
    }

    /// How many records a file of these bytes has.
    fn operations(&self, step: &Step, bytes: u64) -> Result<u64, Error> {
        match bytes / step.record {
            0 => Err(Error::Impossible(format!(
                "a record of {} bytes does not fit into a file of {bytes} bytes",
                step.record
            ))),
            count => Ok(count),
        }
    }

    /// New, empty files in place of the old ones, which are gone even if this fails.
    fn fresh(&mut self, step: &Step) -> Result<Vec<File>, Error> {
        let old = self.laid.take().map_or(0, |laid| laid.files);
        for number in 0..old.max(step.threads) {
            match self.scratch.directory().unlink(&Scratch::data_name(number)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(Error::while_doing("remove a file"))?,
            }
        }
        self.open(step, step.threads)
    }

    /// Opens the files of a step, `count` times in all: all descriptors of the first file come first.
    fn open(&self, step: &Step, count: usize) -> Result<Vec<File>, Error> {
        let access = match step.mode {
            Mode::Cached | Mode::Fdatasync => IoMode::Buffered,
            Mode::Dsync => IoMode::Dsync,
            Mode::Direct => IoMode::Direct,
        };
        let each = count / step.threads;
        let open = |number| (self.open)(self.scratch.directory(), &Scratch::data_name(number / each), access);
        let files: io::Result<Vec<File>> = (0..count).map(open).collect();
        files.map_err(Error::while_doing("open a file"))
    }

    /// Sees to it that there are files to visit: those of the last write, where they are as many and as long as is
    /// wanted, or as long as they became.
    fn lay(&mut self, step: &Step) -> Result<Laid, Error> {
        let wanted = self.size / step.threads as u64;
        if let Some(laid) = self.laid.filter(|laid| laid.files == step.threads)
            && (laid.final_length || laid.bytes + step.record.max(LAY_RECORD) > wanted)
        {
            return Ok(laid);
        }
        let record = LAY_RECORD.min(wanted).max(512);
        let lay = Step { operation: Operation::Write, mode: Mode::Fdatasync, record, depth: 1, rate: None, ..*step };
        self.write_new(&lay)?;
        self.laid.ok_or(Error::Stopped)
    }

    /// Reads the files through the cache, unless the last row did.
    fn warm_up(&self, files: &[File], length: u64) -> Result<(), Error> {
        if self.warm {
            return Ok(());
        }
        let mut buffer = vec![0; LAY_RECORD as usize];
        for file in files {
            let mut offset = 0;
            while offset < length {
                if (self.stop)() {
                    return Err(Error::Stopped);
                }
                read_full_at(file, &mut buffer, offset).map_err(Error::while_doing("read"))?;
                offset += buffer.len() as u64;
            }
        }
        Ok(())
    }

    /// `files` has one descriptor for each file, or one for each worker.
    fn run(&self, step: &Step, files: &[File], operations: u64) -> Result<Done, Error> {
        let mapped = matches!(step.operation, Operation::MmapRead | Operation::MmapWrite);
        let map = |file: &File| Mapping::new(file, operations * step.record);
        let maps: io::Result<Vec<Mapping>> = files.iter().filter(|_| mapped).map(map).collect();
        let maps = maps.map_err(Error::while_doing("map a file into memory"))?;
        let visit = Visit { step, files, maps: &maps, operations, seed: self.seed };
        let make = |file: usize, worker: usize| visit.operate(file, worker);
        let syncs = step.operation.is_write() && step.mode == Mode::Fdatasync;
        let each = files.len() / step.threads;
        let finish = |file: usize| if syncs { sync_data(&files[file * each]) } else { Ok(()) };
        let job = Job {
            files: step.threads,
            depth: step.depth,
            operations,
            claim: if step.operation.is_random() { CLAIM } else { 1 },
            limit: step.limit,
            rate: match step.rate {
                Some(Rate::PerSecond(rate)) => Some(rate),
                _ => None,
            },
            make: &make,
            finish: &finish,
            stop: self.stop,
        };
        let done = workers::run(&job).map_err(Error::while_doing(step.operation.name()))?;
        if done.stopped { Err(Error::Stopped) } else { Ok(done) }
    }

    fn row(&self, step: &Step, done: &Done, cached: Option<f64>, unwritten: Option<f64>) -> Row {
        let mut row = row_of(step.operation.name(), conditions(step), done);
        let workers = step.threads * step.depth;
        let seconds = done.elapsed.as_secs_f64();
        row.put(value::BYTES_PER_SECOND, done.bytes as f64 / seconds);
        if workers > 1 {
            let (first, bytes) = done.first_done;
            row.put(value::FIRST_DONE_SECONDS, first.as_secs_f64());
            row.put(value::FIRST_DONE_BYTES_PER_SECOND, bytes as f64 / first.as_secs_f64());
        }
        if step.operation.is_write() && step.mode == Mode::Fdatasync {
            row.put(value::SYNC_SECONDS, done.elapsed.saturating_sub(done.operated).as_secs_f64());
        }
        if let Some(Rate::PerSecond(rate)) = step.rate {
            row.put(value::ARRIVALS_PER_SECOND, rate);
        }
        if let Some(share) = cached {
            row.put(value::CACHED, share);
        }
        if let Some(share) = unwritten {
            row.put(value::UNWRITTEN, share);
        }
        let direct = step.mode == Mode::Direct;
        // A write that waits for storage, at its end or each time, did not end in the cache.
        let label = match (step.operation.is_write(), step.mode) {
            (true, Mode::Cached) => residency::label(self.cache, unwritten, false),
            (true, _) => residency::label(self.cache, Some(0.0), true),
            (false, _) => residency::label(self.cache, cached, direct),
        };
        row.labels.extend(label.map(str::to_owned));
        rate_labels(&mut row, done);
        if step.operation.is_write() && step.mode == Mode::Fdatasync {
            // Until the sync at the end the page cache took what was written: how fast says nothing of the storage.
            row.values.retain(|(name, _)| name != value::SETTLED_BYTES_PER_SECOND && name != value::CHANGE);
            row.labels.retain(|label| label != label::UNSTEADY && label != label::SHORT);
        }
        row
    }
}

/// The conditions of a row.
pub(super) fn conditions(step: &Step) -> Vec<(String, String)> {
    let mut conditions = vec![
        ("mode".to_owned(), step.mode.name().to_owned()),
        ("record_bytes".to_owned(), step.record.to_string()),
        ("depth".to_owned(), step.depth.to_string()),
        ("threads".to_owned(), step.threads.to_string()),
    ];
    if step.rate.is_some() {
        conditions.push(("arrivals".to_owned(), "fixed".to_owned()));
    }
    conditions
}

/// Writes out what is dirty, and has the cache let go of it.
fn forget(files: &[File]) -> Result<(), Error> {
    for file in files {
        sync_data(file).and_then(|()| drop_cache(file, 0, 0)).map_err(Error::while_doing("empty the cache"))?;
    }
    Ok(())
}

/// The share of the files' first `length` bytes that is in the page cache.
fn cached(files: &[File], length: u64) -> Option<f64> {
    mean(files.iter().map(|file| residency::cached_share(file, length)))
}

fn unwritten(files: &[File], length: u64) -> Option<f64> {
    mean(files.iter().map(|file| residency::unwritten_share(file, length)))
}

/// `None` if one of them is unknown.
fn mean(shares: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let shares: Vec<f64> = shares.collect::<Option<_>>()?;
    Some(shares.iter().sum::<f64>() / shares.len().max(1) as f64)
}

/// One pass over the files.
struct Visit<'a> {
    step: &'a Step,
    /// One descriptor for each file, or one for each worker.
    files: &'a [File],
    maps: &'a [Mapping],
    operations: u64,
    seed: u64,
}

impl<'a> Visit<'a> {
    /// What a worker does again and again.
    fn operate(&self, file: usize, worker: usize) -> Operate<'a> {
        let (record, count) = (self.step.record, self.operations);
        let order = self.order(file);
        let place = move |at| order.record(at, count) * record;
        let bytes = usize::try_from(record).unwrap_or(usize::MAX);
        let records = || Records::new(bytes, self.seed.wrapping_mul(1 << 20).wrapping_add(worker as u64));
        let open = &self.files[if self.files.len() > self.step.threads { worker } else { file }];
        match self.step.operation {
            Operation::MmapRead => {
                let (map, mut buffer) = (&self.maps[file], Aligned::new(bytes));
                Box::new(move |at| {
                    map.read(place(at), buffer.bytes());
                    Ok(record)
                })
            }
            Operation::MmapWrite => {
                let (map, mut records) = (&self.maps[file], records());
                Box::new(move |at| {
                    map.write(place(at), records.next_record());
                    Ok(record)
                })
            }
            write if write.is_write() => {
                let mut records = records();
                Box::new(move |at| write_all_at(open, records.next_record(), place(at)).map(|()| record))
            }
            _ => {
                let mut buffer = Aligned::new(bytes);
                Box::new(move |at| match read_full_at(open, buffer.bytes(), place(at))? {
                    read if read == bytes => Ok(record),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                })
            }
        }
    }

    fn order(&self, file: usize) -> Order {
        match self.step.operation {
            Operation::Backward => Order::Backward,
            Operation::Strided => Order::Strided,
            random if random.is_random() => Order::Random { seed: self.seed.wrapping_add(file as u64) },
            _ => Order::Forward,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::series::Series;

    /// As Linux opens a file where the file system has no direct access: the file is made all the same.
    fn open_without_direct(directory: &Dir, name: &[u8], access: IoMode) -> io::Result<File> {
        match access {
            IoMode::Direct => {
                gauge::open(directory, name, IoMode::Buffered)?;
                Err(io::ErrorKind::Unsupported.into())
            }
            access => gauge::open(directory, name, access),
        }
    }

    #[test]
    fn row_that_syncs_at_its_end_has_no_settled_rate() {
        let place = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(place.path()).unwrap();
        let files = DataFiles::new(&scratch, Cache::Pages, &|| false);
        let step = |mode| Step {
            operation: Operation::Write,
            mode,
            record: 64 << 10,
            depth: 1,
            threads: 1,
            rate: None,
            limit: None,
        };
        // Four seconds into the page cache, and six until all of it had reached the storage.
        let done = Done {
            bytes: 4000,
            elapsed: Duration::from_secs(10),
            operated: Duration::from_secs(4),
            series: Series::new(Duration::from_millis(100), vec![100.0; 40]),
            ..Done::default()
        };
        let settled = |mode| files.row(&step(mode), &done, None, None).value(value::SETTLED_BYTES_PER_SECOND);
        assert_eq!((settled(Mode::Direct), settled(Mode::Fdatasync)), (Some(1000.0), None));
        let row = files.row(&step(Mode::Fdatasync), &done, None, None);
        assert_eq!(row.value(value::BYTES_PER_SECOND), Some(400.0));
    }

    #[test]
    fn files_that_a_refused_row_removed_are_laid_again() {
        let place = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(place.path()).unwrap();
        let mut files = DataFiles::new(&scratch, Cache::Pages, &|| false);
        files.open = open_without_direct;
        files.set_size(1 << 20);
        let step =
            |operation, mode| Step { operation, mode, record: 64 << 10, depth: 1, threads: 1, rate: None, limit: None };
        // A round as it is made: in every mode a new file, and then what is done with it.
        assert!(files.measure(&step(Operation::Write, Mode::Cached)).unwrap().is_some());
        assert!(files.measure(&step(Operation::Write, Mode::Direct)).unwrap().is_none());
        for operation in [Operation::MmapRead, Operation::Read, Operation::MmapWrite] {
            let row = files.measure(&step(operation, Mode::Cached)).unwrap().unwrap();
            assert_eq!(row.value(value::BYTES), Some(f64::from(1 << 20)), "{operation:?}");
        }
    }
}
