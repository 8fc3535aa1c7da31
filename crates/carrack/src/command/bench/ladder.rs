//! `carrack bench ladder`: between two places, where on the way from memory to disk the rate is lost.

use carrack_core::location::Location;
use carrack_core::options::Streams;
use carrack_core::request::{CopyOptions, EndOptions, LinkSet, Reach, Verify};
use carrack_measure::result::{Row, Warning};
use clap::Command;

use super::shown::{BenchOutput, with_plain_output};
use crate::bench::ladder::{LadderPlace, LadderRequest, TellRow, measure};
use crate::cli::flag::{Positional, Value};
use crate::cli::flags::Flags;
use crate::cli::option_flags::typed::{DIGEST, ENCRYPT};
use crate::command::context::context;
use crate::command::copy::options::{DATA_ADDRESS, LINK, PORTS};
use crate::command::reach::{self, credential, reach};
use crate::error::CommandError;
use carrack_core::size::parse_size;

const A: Positional = Positional::one("a", "A");
const B: Positional = Positional::one("b", "B");
const SIZE: Value<u64> = Value::new("size", "SIZE", parse_rung, "Bytes of each rung [default: 1G]");
const SIZE_DEFAULT: u64 = 1 << 30;
const STREAMS: Value<Option<u16>> = Value::new(
    "streams",
    "LIST",
    |text| Streams::parse(text).map(Streams::fixed),
    "Numbers of data connections, separated by commas; auto is what a copy chooses [default: auto]",
);
const RUNS: Value<usize> =
    Value::new("runs", "N", parse_runs, "Copies of each rung, of which the median counts [default: 3]");
const RUNS_DEFAULT: usize = 3;
const SOURCE_RAM: Value<Vec<u8>> = Value::path(
    "source-ram",
    "DIR",
    "Directory in memory at the host of A; on a node, below its root [default: /dev/shm; none on a node]",
);
const DESTINATION_RAM: Value<Vec<u8>> = Value::path(
    "destination-ram",
    "DIR",
    "Directory in memory at the host of B; on a node, below its root [default: as above]",
);
/// What Linux has on every host.
const SHARED_MEMORY: &[u8] = b"/dev/shm";
/// Less is over before a rate is there.
const SIZE_MIN: u64 = 8 << 20;
const RUNS_MAX: usize = 99;

const NOTES: &str = "\
A and B are directories: here, on an ssh host (host:dir), on a node (carrack://host/dir). Rungs, from bottom
to top: zero->null, ram->null, ram->ram, disk->null, disk->ram, random->disk, disk->disk. Each is an ordinary
copy; loss is the share of the rate of the rung that it stands on. With several --streams there is a ladder for
each, and the last line tells which was the fastest.

Files on disk are synced before they count. Before a file of this host is read, it is dropped from the cache; on
another host, files of 64M and more bypass the cache, and smaller ones may be read from it. All files lie in
hidden directories, which are removed at the end; after a kill, the next ladder there removes them.";

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("ladder")
        .about("Measure copies from A to B, from memory to memory up to disk to disk")
        .after_help(NOTES)
        .arg(A.arg().required(true).help("Directory that the bytes come from"))
        .arg(B.arg().required(true).help("Directory that they go to"))
        .args([SIZE.arg(), RUNS.arg(), SOURCE_RAM.arg(), DESTINATION_RAM.arg()])
        .args([STREAMS.arg(), ENCRYPT.arg(), DIGEST.arg()])
        .args(reach::args())
        .args([PORTS.arg(), DATA_ADDRESS.arg(), LINK.arg()].map(|arg| arg.help_heading("Hosts")));
    with_plain_output(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let (source, destination) = (directory(flags, &A)?, directory(flags, &B)?);
    let credential = credential(flags, &[source.clone(), destination.clone()])?;
    let request = LadderRequest {
        source: place(source, flags.get(&SOURCE_RAM)?),
        destination: place(destination, flags.get(&DESTINATION_RAM)?),
        size: flags.get(&SIZE)?.unwrap_or(SIZE_DEFAULT),
        runs: flags.get(&RUNS)?.unwrap_or(RUNS_DEFAULT),
        streams: Some(flags.all(&STREAMS)?).filter(|list| !list.is_empty()).unwrap_or_else(|| vec![None]),
        options: options(flags, &EndOptions { credential, ..EndOptions::default() })?,
    };
    let mut shown = BenchOutput::of_measuring(flags)?;
    let (measured, failure) = measure(&request, &context(), &mut shown)?;
    shown.finish_with(&measured, failure)
}

/// How the copies of a measurement are made.
fn options(flags: &Flags, end: &EndOptions) -> Result<CopyOptions, CommandError> {
    let reach = Reach { ports: flags.get(&PORTS)?, data_address: flags.get(&DATA_ADDRESS)?, ..reach(flags)? };
    let end = EndOptions { reach, ..end.clone() };
    let default = CopyOptions::default();
    let digest = flags.get(&DIGEST)?.unwrap_or(default.digest);
    Ok(CopyOptions {
        // What nothing is compared by is not compared.
        verify: if digest.main.is_some() { default.verify } else { Verify::None },
        digest,
        encrypt: flags.get(&ENCRYPT)?.unwrap_or(default.encrypt),
        links: flags.get(&LINK)?.map_or(default.links, LinkSet::only),
        source: end.clone(),
        destination: end,
        ..default
    })
}

fn directory(flags: &Flags, which: &Positional) -> Result<Location, CommandError> {
    match flags.location(which)? {
        found @ (Location::Local(_) | Location::Ssh { .. } | Location::Node { .. }) => Ok(found),
        other => Err(CommandError::usage(format!("a ladder stands between two directories, and {other} is none"))),
    }
}

fn place(directory: Location, asked: Option<Vec<u8>>) -> LadderPlace {
    let is_asked = asked.is_some();
    let path = asked.or_else(|| directory.node().is_none().then(|| SHARED_MEMORY.to_vec()));
    let ram = path.map(|path| directory.with_path(path));
    LadderPlace { directory, ram, is_asked }
}

impl TellRow for BenchOutput {
    fn row(&mut self, row: &Row) {
        Self::row(self, row);
    }

    fn warning(&mut self, warning: &Warning) {
        Self::warning(self, warning);
    }

    fn note(&mut self, text: &str) {
        Self::note(self, text);
    }
}

fn parse_rung(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes >= SIZE_MIN => Ok(bytes),
        _ => Err(format!("{text:?} is too little to measure: use 8M or more")),
    }
}

fn parse_runs(text: &str) -> Result<usize, String> {
    let runs = text.parse().ok().filter(|runs| (1..=RUNS_MAX).contains(runs));
    runs.ok_or_else(|| format!("{text:?} is no number of runs: use 1 to {RUNS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::location::parse_location;

    #[test]
    fn values_have_bounds() {
        assert_eq!((parse_rung("8M"), parse_runs("99")), (Ok(8 << 20), Ok(99)));
        assert!(["0", "7M", "x"].iter().all(|text| parse_rung(text).is_err()));
        assert!(["0", "100", "-1", "x"].iter().all(|text| parse_runs(text).is_err()));
    }

    #[test]
    fn hosts_have_memory_where_linux_has_it_and_nodes_where_they_are_told() {
        let place_of = |typed: &str, asked: Option<&str>| {
            let location = parse_location(typed.as_bytes()).expect("a location");
            place(location, asked.map(|path| path.as_bytes().to_vec())).ram.map(|ram| ram.to_string())
        };
        assert_eq!(place_of("d", None).as_deref(), Some("/dev/shm"));
        assert_eq!(place_of("far:d", None).as_deref(), Some("far:/dev/shm"));
        assert_eq!(place_of("carrack://far/d", None), None);
        assert_eq!(place_of("carrack://far/d", Some("ram")).as_deref(), Some("carrack://far:7420/ram"));
    }
}
