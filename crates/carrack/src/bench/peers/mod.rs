//! Carrack beside other programs, on the same data between the same two places. Every program is run as a user runs
//! it: as a command, which logs in and ends. They take turns, and the result of every run is compared.

pub mod contest;
pub mod data;
pub mod ends;
pub mod far;
pub mod lines;
pub mod over_time;
pub mod page;
pub mod processor;
pub mod remote_iperf3;
pub mod run;
pub mod server;
pub mod tool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use carrack_core::failure::Failure;
use carrack_core::location::Location;
use carrack_core::request::EndOptions;
use carrack_core::words;
use carrack_engine::Context;
use carrack_measure::facts;
use carrack_measure::result::{Measurement, Row, value};

use self::contest::{Contest, Runs};
use self::data::Data;
use self::tool::Tool;
use super::ladder::TellRow;

/// What to measure.
pub struct PeersRequest {
    /// Where the data is, and where it goes: directories, one of which is on this host.
    pub a: Location,
    /// See [`Self::a`].
    pub b: Location,
    /// The programs; none stands for all.
    pub tools: Vec<Tool>,
    /// What is moved, in this order.
    pub data: Vec<Data>,
    /// The tree of the user's that is among it, if one is: a directory of this host.
    pub tree: Option<PathBuf>,
    /// Sessions at once, in this order.
    pub sessions: Vec<usize>,
    /// Where the source is read from, in this order.
    pub caches: Vec<SourceCache>,
    /// Runs of each program with each of those, of which the median counts.
    pub runs: usize,
    /// Connections of programs that are told how many.
    pub streams: u16,
    /// A run that takes longer is ended.
    pub timeout: Duration,
    /// Whether the clock runs until the destination's file system is synced.
    pub sync: bool,
    /// Servers that run already at the other host, by the address of the very directory that A or B is there.
    pub node: Option<String>,
    /// See [`Self::node`].
    pub rsyncd: Option<String>,
    /// See [`Self::node`].
    pub gridftp: Option<String>,
    /// See [`Self::node`].
    pub xrootd: Option<String>,
    /// See [`Self::node`].
    pub http: Option<String>,
    /// How this program reaches the other host by itself.
    pub end: EndOptions,
    /// Flags for the commands of Carrack that are run.
    pub carrack_words: Vec<OsString>,
    /// The flag with a token for the node that was named.
    pub token_words: Vec<OsString>,
    /// What a copy by Carrack is encrypted with, and verified by, where that was chosen.
    pub carrack_does: CarrackDoes,
    /// This program.
    pub carrack: PathBuf,
}

/// What Carrack does besides moving bytes, where that is not the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct CarrackDoes {
    /// The word for its encryption.
    pub encrypts: Option<&'static str>,
    /// The word for its digest.
    pub verifies: Option<&'static str>,
}

impl CarrackDoes {
    /// Both words of a tool's row.
    pub fn words(&self, tool: Tool) -> [&'static str; 2] {
        let of = |chosen: Option<&'static str>, usual| chosen.filter(|_| tool.is_carrack()).unwrap_or(usual);
        [of(self.encrypts, tool.encrypts()), of(self.verifies, tool.verifies())]
    }
}

words! {
    /// Where the source is read from.
    pub enum SourceCache {
        0 Warm "warm" "from memory, as far as it fits"
        1 Cold "cold" "from its storage: its host drops it from memory before each run"
    }
}

/// A condition of a row whose source was not in memory.
pub const CACHE: &str = "cache";
/// Bytes a second that this host's network carried in the fastest second.
pub const PEAK: &str = "peak_bytes_per_second";
/// When the rate fell for good, and what it was before and after.
pub const FELL: [&str; 3] = ["fell_after_seconds", "before_fall_bytes_per_second", "after_fall_bytes_per_second"];
/// The conditions of a row: what was moved, by how many sessions at once, and what was done with it on the way.
pub const DATA: &str = "data";
/// See [`DATA`].
pub const SESSIONS: &str = "sessions";
/// See [`DATA`].
pub const ENCRYPTS: &str = "encrypts";
/// See [`DATA`].
pub const VERIFIES: &str = "verifies";
/// Of a row about a program that could not take part: there is no data.
pub const NO_DATA: &str = "-";
/// Processor time of this host's side and of the other's, and of both for each 10^9 bytes.
pub const CPU_HERE: &str = "cpu_seconds_here";
/// See [`CPU_HERE`].
pub const CPU_THERE: &str = "cpu_seconds_there";
/// See [`CPU_HERE`].
pub const CPU_OF_GIGABYTE: &str = "cpu_seconds_per_gigabyte";
/// The slowest and the fastest run.
pub const LEAST: &str = "least_bytes_per_second";
/// See [`LEAST`].
pub const MOST: &str = "most_bytes_per_second";
/// Files a second.
pub const FILES_PER_SECOND: &str = "files_per_second";
/// Runs that were right, of which the median counts.
pub const RUNS: &str = "runs";

/// Measures, and tells the rows of each kind of data when all of them are there, the fastest first. With what was
/// measured comes what ended it early.
///
/// # Errors
/// Why nothing was measured. Whatever it ends with, nothing stays at either place.
pub fn measure(
    request: &PeersRequest,
    context: &Context,
    tell: &mut dyn TellRow,
) -> Result<(Measurement, Option<Failure>), Failure> {
    let (begin, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let mut contest = Contest::open(request, context, tell)?;
    let mut measured = Measurement {
        kind: "peers".to_owned(),
        target: format!("{} {}", request.a, request.b),
        started,
        settings: settings(request),
        facts: facts::host().0,
        ..Measurement::default()
    };
    measured.facts.extend(contest.versions());
    let mut ended = None;
    for case in cases(request) {
        if ended.is_some() {
            break;
        }
        let (rows, failure) = contest.case(case, tell);
        rows.iter().for_each(|row| tell.row(row));
        measured.rows.extend(rows);
        ended = failure;
    }
    for row in contest.absent() {
        tell.row(&row);
        measured.rows.push(row);
    }
    drop(contest);
    measured.elapsed = begin.elapsed();
    Ok((measured, ended))
}

/// What is moved, by how many sessions at once, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeersCase {
    /// What is moved.
    pub data: Data,
    /// Copies at once.
    pub sessions: usize,
    /// Where the source is read from.
    pub cache: SourceCache,
}

fn cases(request: &PeersRequest) -> Vec<PeersCase> {
    let mut cases = Vec::new();
    for &data in &request.data {
        for &sessions in &request.sessions {
            cases.extend(request.caches.iter().map(|&cache| PeersCase { data, sessions, cache }));
        }
    }
    cases
}

fn settings(request: &PeersRequest) -> Vec<(String, String)> {
    let data = request.data.iter().map(|data| data.condition()).collect::<Vec<_>>().join(",");
    let sessions = request.sessions.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let words = request.carrack_words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    [
        ("data", data),
        ("sessions", sessions),
        ("runs", request.runs.to_string()),
        ("streams_of_others", request.streams.to_string()),
        ("timeout_seconds", request.timeout.as_secs().to_string()),
        ("sync", if request.sync { "yes" } else { "no" }.to_owned()),
        ("carrack_flags", words),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// The row of a tool: of its runs that were right the one in the middle counts.
pub fn row(tool: Tool, does: [&str; 2], case: PeersCase, runs: &Runs) -> Row {
    let PeersCase { data, sessions, cache } = case;
    let mut row = Row { name: tool.name().to_owned(), error: runs.fault.clone(), ..Row::default() };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    row.conditions = vec![
        pair(DATA, &data.condition()),
        pair(SESSIONS, &sessions.to_string()),
        pair(ENCRYPTS, does[0]),
        pair(VERIFIES, does[1]),
    ];
    row.conditions.extend((cache == SourceCache::Cold).then(|| pair(CACHE, cache.name())));
    let mut by_rate: Vec<_> = runs.each.iter().collect();
    by_rate.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    let (Some(slowest), Some(fastest)) = (by_rate.first(), by_rate.last()) else { return row };
    // The lower one of two in the middle.
    let middle = by_rate[(by_rate.len() - 1) / 2];
    row.put(value::BYTES, middle.bytes);
    row.put(value::SECONDS, middle.seconds);
    row.put(value::BYTES_PER_SECOND, middle.rate());
    row.put(LEAST, slowest.rate());
    row.put(MOST, fastest.rate());
    row.put(RUNS, by_rate.len() as f64);
    if let Some(over) = &middle.over {
        over.peak().into_iter().for_each(|peak| row.put(PEAK, peak));
        if let Some(fall) = over.fall() {
            FELL.into_iter().zip([fall.at, fall.before, fall.after]).for_each(|(name, value)| row.put(name, value));
        }
        row.series = over.series().cloned();
    }
    // Of a tree of the user's the bytes count: its files have any size.
    if matches!(data, Data::Tree { .. }) && data.files() > 1 {
        row.put(FILES_PER_SECOND, (data.files() * sessions as u64) as f64 / middle.seconds);
    }
    // Time is counted in ticks on the other side: the middle of all runs says more than that of one.
    let here = median(runs.each.iter().map(|run| Some(run.here)));
    let there = median(runs.each.iter().map(|run| run.there));
    here.into_iter().for_each(|seconds| row.put(CPU_HERE, seconds));
    there.into_iter().for_each(|seconds| row.put(CPU_THERE, seconds));
    if let (Some(here), Some(there)) = (here, there) {
        row.put(CPU_OF_GIGABYTE, (here + there) / (middle.bytes / 1e9));
    }
    row
}

/// The middle of some numbers; `None` if one of them is not known.
fn median(numbers: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut all: Vec<f64> = numbers.collect::<Option<_>>()?;
    all.sort_by(f64::total_cmp);
    all.get(all.len().saturating_sub(1) / 2).copied()
}

/// The row of a program that could not take part.
pub fn absent_row(tool: Tool, why: &str) -> Row {
    let conditions = vec![(DATA.to_owned(), NO_DATA.to_owned())];
    Row { name: tool.name().to_owned(), conditions, error: Some(why.to_owned()), ..Row::default() }
}

#[cfg(test)]
mod tests {
    use super::contest::OneRun;
    use super::*;

    #[test]
    fn row_has_the_middle_of_all_runs() {
        let run = |seconds: f64, there: Option<f64>| OneRun { bytes: 2e9, seconds, here: seconds, there, over: None };
        let runs = Runs { each: vec![run(4.0, Some(0.5)), run(1.0, Some(1.5)), run(2.0, Some(1.0))], fault: None };
        let tree = Data::Tree { files: 1000, size: 1_000_000 };
        let case = PeersCase { data: tree, sessions: 2, cache: SourceCache::Warm };
        let made = row(Tool::Scp, ["ssh", "transit"], case, &runs);
        let value = |name: &str| made.value(name);
        assert_eq!((value(value::BYTES_PER_SECOND), value(LEAST), value(MOST)), (Some(1e9), Some(5e8), Some(2e9)));
        assert_eq!((value(CPU_HERE), value(CPU_THERE), value(CPU_OF_GIGABYTE)), (Some(2.0), Some(1.0), Some(1.5)));
        assert_eq!((value(FILES_PER_SECOND), value(RUNS)), (Some(1000.0), Some(3.0)));
        assert_eq!((made.condition(SESSIONS), made.condition(VERIFIES)), (Some("2"), Some("transit")));
        // What is not known of one run is not known of the row.
        let runs = Runs { each: vec![run(1.0, None), run(2.0, Some(1.0))], fault: Some("why".to_owned()) };
        let case = PeersCase { data: Data::File(1), sessions: 1, cache: SourceCache::Cold };
        let made = row(Tool::Scp, ["ssh", "transit"], case, &runs);
        assert_eq!(made.condition(CACHE), Some("cold"));
        assert_eq!((made.value(CPU_THERE), made.value(CPU_OF_GIGABYTE)), (None, None));
        assert_eq!((made.value(CPU_HERE), made.error.as_deref()), (Some(1.0), Some("why")));
    }

    #[test]
    fn columns_say_what_carrack_was_told_to_do() {
        let does = CarrackDoes { encrypts: Some("no"), verifies: None };
        assert_eq!((does.words(Tool::CarrackNode), does.words(Tool::Scp)), (["no", "BLAKE3"], ["ssh", "transit"]));
    }
}
