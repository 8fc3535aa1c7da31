//! What the storage under a directory can do: bytes a second, single operations and their times, small files.
//!
//! [`plan`] says what is measured, [`crate::workers`] does and times it, `data_rows` and `file_rows` make rows of it.
//! Each row begins with a file whose content is on storage and, unless the cache is what is measured, not in memory;
//! what the kernel says of that stands in the row.

mod data_rows;
mod file_rows;
pub mod order;
pub mod plan;
mod rows;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use carrack_core::path::display_bytes;

use crate::error::Error;
use crate::facts;
use crate::residency::{self, Cache};
use crate::result::{Measurement, Row, Warning, value};
use crate::scratch::{self, Scratch};
use crate::{data, facts::Mount};
use data_rows::DataFiles;
use plan::{Choice, Mode, Operation, Rate, Step};

/// What shall be measured.
#[derive(Clone, Debug)]
pub struct Request {
    /// The directory whose storage is measured. A hidden directory is made in it, and removed again.
    pub directory: PathBuf,
    /// What is measured.
    pub choice: Choice,
    /// Bytes of all data files together; else as much as the storage writes in a few seconds.
    pub size: Option<u64>,
    /// Small files.
    pub files: u64,
}

/// What happens during a measurement.
pub enum Event<'a> {
    /// Leftovers of an earlier measurement, which was killed, were removed.
    Swept(&'a [String]),
    /// A row begins: its number from 1, and how many there are.
    Step(&'a Step, usize, usize),
    /// A row is there.
    Row(&'a Row),
    /// A doubt about all rows.
    Warning(&'a Warning),
}

/// Share of the free space that may be used.
const FREE_SHARE: f64 = 0.9;
/// Of what is free, the size that is found by itself uses no more.
const AUTO_FREE_SHARE: f64 = 0.25;
const AUTO_MOST: u64 = 16 << 30;
const AUTO_LEAST: u64 = 64 << 20;
/// A size that is found by itself is a multiple of the largest record of a full round.
const AUTO_UNIT: u64 = 16 << 20;
/// Where there is too little room for that.
const AUTO_UNIT_LEAST: u64 = 1 << 20;
/// How long the storage shall need to write a size that is found by itself.
const AUTO_SECONDS: f64 = 3.0;
/// How long it writes to find that out.
const TRIAL: Duration = Duration::from_millis(400);
const TRIAL_RECORD: u64 = 4 << 20;
/// A rate of writing above this share of the generator's may be the generator's.
const DATA_SHARE: f64 = 0.5;

/// Measures, and tells each row when it is there. `stop` is asked all the time.
///
/// # Errors
/// Why it ended early. Whatever it ends with, nothing stays in the directory.
pub fn measure(
    request: &Request,
    stop: &(dyn Fn() -> bool + Sync),
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Measurement, Error> {
    let (begin, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let steps = request.choice.steps();
    check_memory(&steps, residency::memory_bytes())?;
    let shown = display_bytes(request.directory.as_os_str().as_encoded_bytes()).to_string();
    let reading = Error::while_doing(format!("read the directory {shown}"));
    let swept = scratch::sweep(&request.directory).map_err(reading)?;
    if !swept.is_empty() {
        tell(Event::Swept(&swept));
    }
    let mut facts = facts::host().0;
    facts.extend(facts::storage(&request.directory).0);
    let mount = facts::mount_of(&request.directory).unwrap_or_default();
    let scratch =
        Scratch::create(&request.directory).map_err(Error::while_doing(format!("make a directory in {shown}")))?;
    let cache = Cache::of(scratch.directory(), &mount.kind);
    let mut files = DataFiles::new(&scratch, cache, stop);
    let size = size(request, &mut files)?;
    check_room(size, request, &scratch)?;
    files.set_size(size);
    let data_rate = data::rate(1 << 20, Duration::from_millis(30));
    let mut measured = Measurement {
        kind: "disk".to_owned(),
        target: shown,
        started,
        settings: settings(request, size, data_rate),
        facts,
        ..Measurement::default()
    };
    let mut doubts = Doubts { measured: &mut measured, tell };
    doubts.about_place(&mount, cache, size);
    let count = steps.len();
    for (index, step) in steps.iter().enumerate() {
        (doubts.tell)(Event::Step(step, index + 1, count));
        let rows = match step.operation {
            Operation::Files => file_rows::measure(&scratch, step, request.files, stop)?,
            _ => doubts.data_row(&mut files, step, data_rate)?,
        };
        for row in rows {
            (doubts.tell)(Event::Row(&row));
            doubts.measured.rows.push(row);
        }
        if stop() {
            return Err(Error::Stopped);
        }
    }
    measured.elapsed = begin.elapsed();
    Ok(measured)
}

fn settings(request: &Request, size: u64, data_rate: f64) -> Vec<(String, String)> {
    let mut settings = vec![("size_bytes".to_owned(), size.to_string())];
    settings.push(("full".to_owned(), request.choice.full.to_string()));
    if let Some(limit) = request.choice.limit {
        settings.push(("limit_seconds".to_owned(), limit.as_secs_f64().to_string()));
    }
    settings.push(("data_bytes_per_second".to_owned(), format!("{data_rate:.0}")));
    settings
}

/// What the threads of a step need at a time must fit into memory with room for the cache.
fn check_memory(steps: &[Step], memory: u64) -> Result<(), Error> {
    let needed = steps.iter().map(memory_of).max().unwrap_or(0);
    if needed > memory / residency::MEMORY_PART { Err(Error::Memory { needed, memory }) } else { Ok(()) }
}

/// Bytes that all threads of a step need at a time.
fn memory_of(step: &Step) -> u64 {
    /// A thread's stack, its histogram and its series.
    const THREAD: u64 = 64 << 10;
    let record = usize::try_from(step.record).unwrap_or(usize::MAX);
    let buffer = if step.operation.is_write() { data::Records::pool_bytes(record) } else { record };
    let each = (buffer as u64).saturating_add(THREAD);
    each.saturating_mul(step.depth as u64).saturating_mul(step.threads as u64)
}

/// Refuses what would leave less than a tenth of the free space free.
fn check_room(size: u64, request: &Request, scratch: &Scratch) -> Result<(), Error> {
    /// What a small file takes, its entry included.
    const FILE: u64 = 8192;
    let space = scratch.directory().free_space().map_err(Error::while_doing("ask for free space"))?;
    let needed = size.saturating_add(request.files.saturating_mul(FILE));
    let free = space.bytes_available;
    if needed as f64 > free as f64 * FREE_SHARE || request.files > space.inodes_available {
        return Err(Error::NoRoom { needed, free });
    }
    Ok(())
}

/// The size that was asked for, else what the storage writes in a few seconds, bounded by memory and free space.
fn size(request: &Request, files: &mut DataFiles<'_>) -> Result<u64, Error> {
    if let Some(size) = request.size {
        return Ok(size);
    }
    let space = files.scratch().directory().free_space().map_err(Error::while_doing("ask for free space"))?;
    let memory = residency::memory_bytes();
    // A file system in memory leaves some of it to others.
    let of_memory = if files.cache() == Cache::Everything { memory / 8 } else { memory.saturating_mul(2) };
    let of_free = (space.bytes_available as f64 * AUTO_FREE_SHARE) as u64;
    let most = of_memory.min(of_free).min(AUTO_MOST);
    let trial = Step {
        operation: Operation::Write,
        mode: Mode::Direct,
        record: TRIAL_RECORD,
        depth: 1,
        threads: 1,
        rate: None,
        limit: Some(TRIAL),
    };
    if most < TRIAL_RECORD {
        return Ok(AUTO_UNIT_LEAST);
    }
    files.set_size(most);
    let row = match files.measure(&trial)? {
        None => files.measure(&Step { mode: Mode::Dsync, ..trial })?,
        row => row,
    };
    let rate = row.and_then(|row| row.value(value::BYTES_PER_SECOND)).unwrap_or(0.0);
    let seconds = if request.choice.full { 2.0 * AUTO_SECONDS } else { AUTO_SECONDS };
    let wanted = ((rate * seconds) as u64).max(AUTO_LEAST).min(most);
    let unit = if wanted >= AUTO_UNIT { AUTO_UNIT } else { AUTO_UNIT_LEAST };
    Ok((wanted / unit).max(1) * unit)
}

/// Tells doubts, each once.
struct Doubts<'a, 'b> {
    measured: &'a mut Measurement,
    tell: &'b mut dyn FnMut(Event<'_>),
}

impl Doubts<'_, '_> {
    fn warn(&mut self, word: &str, text: String) {
        if self.measured.warnings.iter().any(|known| known.word == word) {
            return;
        }
        let warning = Warning { word: word.to_owned(), text };
        (self.tell)(Event::Warning(&warning));
        self.measured.warnings.push(warning);
    }

    fn about_place(&mut self, mount: &Mount, cache: Cache, size: u64) {
        let memory = residency::memory_bytes();
        match cache {
            Cache::Everything => {
                let text = format!("{} lies in memory ({}): no disk is measured", self.measured.target, mount.kind);
                self.warn("memory", text);
            }
            Cache::Own => {
                let text =
                    "ZFS has a cache of its own, which cannot be asked: use a size of twice the memory".to_owned();
                self.warn("cache-unknown", text);
            }
            Cache::Pages if size < memory.saturating_mul(2) => {
                let text = "the files are smaller than twice the memory: a controller or a virtual machine's host may \
                            cache them unseen"
                    .to_owned();
                self.warn("small", text);
            }
            Cache::Pages => {}
        }
        let loop_file = self.measured.facts.iter().find(|(name, _)| name == "disk.loop_file");
        if let Some((_, file)) = loop_file.cloned() {
            self.warn("loop", format!("this is a loop device on {file}: what that lies on may cache as well"));
        }
    }

    /// The row of a step with data files; none where the file system has no direct access.
    fn data_row(&mut self, files: &mut DataFiles<'_>, step: &Step, data_rate: f64) -> Result<Vec<Row>, Error> {
        let step = match step.rate {
            Some(Rate::OfMost(share)) => match self.most(step) {
                // Without a row to take it from, there is nothing to take a share of.
                None => return Ok(Vec::new()),
                Some(most) => files.arrivals(step, most * share),
            },
            _ => step.clone(),
        };
        let Some(row) = files.measure(&step)? else {
            self.warn(
                "no-direct",
                "this file system has no direct access (O_DIRECT): such rows are left out".to_owned(),
            );
            return Ok(Vec::new());
        };
        if step.operation.is_write() && row.value(value::BYTES_PER_SECOND) > Some(data_rate * DATA_SHARE) {
            let rate = data_rate / 1e9;
            self.warn(
                "data",
                format!("test data is made at {rate:.1} GB/s a thread: faster writing cannot be measured"),
            );
        }
        Ok(vec![row])
    }

    /// Operations a second of the same row without a rate.
    fn most(&self, step: &Step) -> Option<f64> {
        let same = Step { rate: None, ..step.clone() };
        let conditions = data_rows::conditions(&same);
        let row =
            self.measured.rows.iter().find(|row| row.name == step.operation.name() && row.conditions == conditions);
        row.and_then(|row| row.value(value::OPERATIONS_PER_SECOND))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_checked_is_what_the_threads_take() {
        let step = |operation, record, depth, threads| Step {
            operation,
            mode: Mode::Direct,
            record,
            depth,
            threads,
            rate: None,
            limit: None,
        };
        // A thread that writes has a pool of a mebibyte, however small its records are.
        for (operation, record, least) in [
            (Operation::RandomWrite, 4096, 16 << 30),
            (Operation::RandomRead, 4096, 64 << 20),
            (Operation::Write, 16 << 20, 256 << 30),
        ] {
            let step = step(operation, record, 1024, 16);
            let (needed, threads) = (memory_of(&step), 1024 * 16);
            assert!((least..least + threads * (128 << 10)).contains(&needed), "{operation:?} {record}: {needed}");
            let refused = check_memory(std::slice::from_ref(&step), needed * 4 - 4);
            assert!(matches!(refused, Err(Error::Memory { needed: told, .. }) if told == needed), "{refused:?}");
            assert!(check_memory(&[step], needed * 4).is_ok());
        }
        assert_eq!(memory_of(&step(Operation::Read, u64::MAX, 2, 2)), u64::MAX);
    }
}
