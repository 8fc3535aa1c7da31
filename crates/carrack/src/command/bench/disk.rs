//! `carrack bench disk`: what the storage under a directory can do.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use carrack_core::location::Location;
use carrack_measure::disk::plan::{Choice, Mode, Operation};
use carrack_measure::disk::{Event, Request, measure};
use clap::Command;

use super::shown::{BenchOutput, refused, with_output};
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use carrack_core::duration::parse_duration;
use carrack_core::size::parse_size;

const SIZE: Value<u64> = Value::new(
    "size",
    "SIZE",
    parse_size,
    "Bytes of all data files together [default: what the storage writes in 3 seconds, 6 with --full]",
);
const OPERATIONS: Value<Operation> =
    Value::word("op", "LIST", Operation::ALL, "Several are separated by commas [default: each of them once]");
const MODES: Value<Mode> = Value::word(
    "mode",
    "LIST",
    Mode::ALL,
    "Several are separated by commas [default: those that suit each operation; cached, if anything else is chosen]",
);
const RECORDS: Value<u64> = Value::new(
    "record",
    "LIST",
    parse_record,
    "Bytes of one read or write [default: 4K at random, else 1M; with --full 4K to 16M]",
);
const DEPTHS: Value<usize> = Value::new(
    "depth",
    "LIST",
    parse_count,
    "Operations under way at a time on each file, by as many threads [default: 1; 1 and 16 at random]",
);
const THREADS: Value<usize> =
    Value::new("threads", "LIST", parse_count, "Files that are worked on at a time [default: 1]");
const RATE: Value<f64> = Value::new(
    "rate",
    "N",
    parse_rate,
    "Operations at random that are due each second, however long each takes; times count from when each was due \
     [default: as many as possible, then half of that]",
);
const TIME: Value<Duration> = Value::new(
    "time",
    "TIME",
    parse_duration,
    "Limit for each row; 0 is no limit [default: 3s, 1.5s at random, 10s with --full]",
);
const FILES: Value<u64> =
    Value::new("files", "N", parse_files, "Small files to create, look up and delete [default: 16384]");
const FULL: Switch = Switch::new("full", "Every operation with every record size, as iozone -a and bonnie++ do");
const PATH: Positional = Positional::one("path", "PATH");

/// Records larger than this are a slip of the finger.
const RECORD_MAX: u64 = 1 << 30;
/// Direct access needs multiples of a sector.
const SECTOR: u64 = 512;
const WORKERS_MAX: usize = 1024;
const FILES_DEFAULT: u64 = 16384;
const FILES_MAX: u64 = 100_000_000;

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("disk")
        .about("Measure the storage under a directory; takes less than a minute")
        .after_help(NOTES)
        .args([SIZE.arg(), OPERATIONS.arg(), MODES.arg(), RECORDS.arg(), DEPTHS.arg(), THREADS.arg()])
        .args([RATE.arg(), TIME.arg(), FILES.arg(), FULL.arg()])
        .arg(PATH.arg().required(true).help("Directory on the file system to measure"));
    with_output(verb)
}

const NOTES: &str = "\
Columns: rec is the record size; settled is the rate in the second half; 1st done is the rate of all
threads up to the moment when the first of them had nothing left to do.

The kernel is asked whether bytes came from the cache: such rows are labelled. The files lie in a hidden
directory below PATH, which is removed at the end; after a kill, the next measurement there removes it.
A tenth of the free space stays free.";

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let request = Request {
        directory: directory(flags)?,
        choice: Choice {
            operations: flags.all(&OPERATIONS)?,
            modes: flags.all(&MODES)?,
            records: flags.all(&RECORDS)?,
            depths: flags.all(&DEPTHS)?,
            threads: flags.all(&THREADS)?,
            rate: flags.get(&RATE)?,
            full: flags.has(&FULL),
            limit: flags.get(&TIME)?,
        },
        size: flags.get(&SIZE)?,
        files: flags.get(&FILES)?.unwrap_or(FILES_DEFAULT),
    };
    let mut shown = BenchOutput::of_measuring(flags)?;
    let stop = || carrack_sys::signal::stop_requested().is_some();
    let measured = measure(&request, &stop, &mut |event| match event {
        Event::Swept(names) => {
            shown.note(&format!("removed what a measurement that was killed had left: {}", names.join(", ")));
        }
        Event::Warning(warning) => shown.warning(warning),
        Event::Row(row) => shown.row(row),
        Event::Step(..) => {}
    });
    shown.finish(&measured.map_err(refused)?)
}

fn directory(flags: &Flags) -> Result<PathBuf, CommandError> {
    match flags.location(&PATH)? {
        Location::Local(path) => Ok(PathBuf::from(OsStr::from_bytes(&path))),
        other => Err(CommandError::usage(format!("bench disk measures a directory here, not {other}"))
            .hint("run it on the host that has the directory: ssh HOST carrack bench disk PATH")),
    }
}

fn parse_record(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes > 0 && bytes <= RECORD_MAX && bytes.is_multiple_of(SECTOR) => Ok(bytes),
        _ => Err(format!("{text:?} is no record size: use a multiple of {SECTOR} bytes, up to 1G")),
    }
}

fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=WORKERS_MAX).contains(count));
    count.ok_or_else(|| format!("{text:?} is no count: use 1 to {WORKERS_MAX}"))
}

fn parse_files(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=FILES_MAX).contains(count));
    count.ok_or_else(|| format!("{text:?} is no number of files: use 1 to {FILES_MAX}"))
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.1..=1e9).contains(rate));
    rate.ok_or_else(|| format!("{text:?} is no rate: use operations a second, from 0.1 on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_within_their_bounds() {
        assert_eq!((parse_record("4K"), parse_record("1G")), (Ok(4096), Ok(1 << 30)));
        for text in ["0", "1000", "2G", "x"] {
            assert!(parse_record(text).is_err(), "{text}");
        }
        assert_eq!(parse_count("1024"), Ok(1024));
        assert!(
            ["0", "1025", "-1", ""]
                .iter()
                .all(|text| parse_count(text).is_err() && parse_files(text).is_err() || *text == "1025")
        );
        assert_eq!(parse_rate("2.5"), Ok(2.5));
        assert!(["0", "-1", "NaN", "inf", "x"].iter().all(|text| parse_rate(text).is_err()));
    }
}
