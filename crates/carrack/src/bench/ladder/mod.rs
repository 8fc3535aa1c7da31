//! The ladder between two places: the same bytes from memory to memory, and then by one more thing at a time up to a
//! copy from disk to disk. Every rung is an ordinary copy.

mod room;
pub mod rung;

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::{Location, SyntheticKind};
use carrack_core::request::{CopyOptions, CopyRequest, Verify};
use carrack_engine::Context;
use carrack_measure::result::{Measurement, Row, Warning, label, value};
use carrack_measure::{facts, residency};

use self::rung::{LADDER, Rung, RungSink, RungSource};
use super::moved::{self, Moved, UNCOUNTED};
use crate::far_scratch::{FarScratch, LostHosts};

/// What to measure.
pub struct LadderRequest {
    /// Where the bytes come from: a directory.
    pub source: LadderPlace,
    /// Where they go.
    pub destination: LadderPlace,
    /// Bytes of each rung.
    pub size: u64,
    /// Copies of each rung; the median counts.
    pub runs: usize,
    /// Numbers of data connections, of which each has a ladder of its own; `None` is what a copy chooses.
    pub streams: Vec<Option<u16>>,
    /// How they are copied.
    pub options: CopyOptions,
}

/// One end of the ladder.
pub struct LadderPlace {
    /// Its directory on disk.
    pub directory: Location,
    /// A directory of the same host in memory, if one is known; `is_asked` says that a person named it.
    pub ram: Option<Location>,
    /// Whether a person has named it.
    pub is_asked: bool,
}

/// What is told while it is measured.
pub trait TellRow {
    /// A rung is there.
    fn row(&mut self, row: &Row);
    /// A doubt about all of them.
    fn warning(&mut self, warning: &Warning);
    /// What a person should know.
    fn note(&mut self, text: &str);
}

/// The value of a row that says which share of the rate below is lost.
pub const LOSS: &str = "loss";
/// Processors that the source's process kept busy.
pub const SOURCE_PROCESSORS: &str = "source_processors";
/// The same of the destination's.
pub const DESTINATION_PROCESSORS: &str = "destination_processors";
/// Data connections at the end.
pub const STREAMS: &str = "streams";
/// The condition of a row that tells how many of them were asked for, where a ladder was climbed with several numbers.
pub const ASKED: &str = "asked_streams";

/// The file that rungs read, and the one that they write.
const FROM: &str = "from";
const TO: &str = "to";
/// A file whose storage is asked whether it is memory, in bytes: not so small that it travels in a bundle.
const PROBE_BYTES: u64 = 4 << 20;
/// Files of this size and more are written, and read, past the cache.
const PAST_CACHE_BYTES: u64 = carrack_core::tuning::Tuning::DEFAULT.past_cache_file_bytes;

/// The directories of one end, and what is known of them.
struct LadderEnd {
    place: Location,
    disk: FarScratch,
    ram: Option<FarScratch>,
    /// Why memory that is known there cannot be used.
    lacks: Option<String>,
    /// The storage is memory, too.
    disk_is_memory: bool,
}

/// Measures, and tells each rung when it is there. What ended it early stands beside the rungs that were measured.
///
/// # Errors
/// Why it could not begin. Whatever it ends with, nothing stays at either place.
pub fn measure(
    request: &LadderRequest,
    context: &Context,
    tell: &mut dyn TellRow,
) -> Result<(Measurement, Option<Failure>), Failure> {
    let (begin, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let mut ladder = Ladder::begin(request, context, tell)?;
    let mut measured = Measurement {
        kind: "ladder".to_owned(),
        target: format!("{} {}", request.source.directory, request.destination.directory),
        started,
        settings: settings(request),
        facts: facts::host().0,
        warnings: std::mem::take(&mut ladder.warnings),
        ..Measurement::default()
    };
    let mut failure = None;
    for streams in &request.streams {
        ladder.streams = *streams;
        if let Err(why) = ladder.climb_all(&mut measured.rows, tell) {
            measured.warnings.push(incomplete(&why));
            failure = Some(why);
            break;
        }
    }
    measured.elapsed = begin.elapsed();
    Ok((measured, failure))
}

/// What a result says of which a part is missing.
pub fn incomplete(why: &Failure) -> Warning {
    Warning { word: label::INCOMPLETE.to_owned(), text: format!("not everything was measured: {why}") }
}

/// Where the loss enters, of a ladder that was measured. One of which rungs are missing at the top says nothing: the
/// loss may enter there.
pub fn verdict(measured: &Measurement) -> Option<String> {
    let is_whole = measured.warnings.iter().all(|warning| warning.word != label::INCOMPLETE);
    if measured.kind != "ladder" || !is_whole {
        return None;
    }
    let rate = |row: &Row| Some((row.name.clone(), row.value(value::BYTES_PER_SECOND)?));
    let rates = |rows: &[Row]| rows.iter().filter_map(rate).collect::<Vec<_>>();
    let ladders: Vec<&[Row]> =
        measured.rows.chunk_by(|one, next| one.condition(ASKED) == next.condition(ASKED)).collect();
    let top = |rows: &[Row]| rates(rows).last().map_or(0.0, |(_, rate)| *rate);
    // Of several, the one whose copies are the fastest.
    let best = ladders.into_iter().max_by(|one, other| top(one).total_cmp(&top(other)))?;
    let verdict = rung::verdict(&rates(best))?;
    Some(match best.first().and_then(|row| row.condition(ASKED)) {
        None => verdict,
        Some(streams) => format!("fastest with {}; {verdict}", counted(streams)),
    })
}

/// `8 streams`.
fn counted(streams: &str) -> String {
    match streams {
        "auto" => "as many streams as a copy chooses".to_owned(),
        "1" => "1 stream".to_owned(),
        _ => format!("{streams} streams"),
    }
}

fn asked(streams: Option<u16>) -> String {
    streams.map_or_else(|| "auto".to_owned(), |streams| streams.to_string())
}

fn settings(request: &LadderRequest) -> Vec<(String, String)> {
    let options = &request.options;
    let digest = options.digest.main.map_or("none", carrack_core::request::MainDigest::name);
    [
        ("size_bytes", request.size.to_string()),
        ("runs", request.runs.to_string()),
        ("streams", request.streams.iter().map(|streams| asked(*streams)).collect::<Vec<_>>().join(",")),
        ("encrypt", options.encrypt.name().to_owned()),
        ("digest", digest.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

struct Ladder<'a> {
    request: &'a LadderRequest,
    context: &'a Context,
    source: LadderEnd,
    destination: LadderEnd,
    /// Of the ladder that is climbed.
    streams: Option<u16>,
    warnings: Vec<Warning>,
}

impl<'a> Ladder<'a> {
    /// Makes the directories at both ends and the files that are read, if there is room for all.
    fn begin(request: &'a LadderRequest, context: &'a Context, tell: &mut dyn TellRow) -> Result<Self, Failure> {
        let [source_lacks, destination_lacks] = room::check(request, context, &mut |text| tell.note(text))?;
        let lost = LostHosts::default();
        let open = |place: &LadderPlace, lacks: Option<String>, numbers: [usize; 2], tell: &mut dyn TellRow| {
            let options = if numbers[0] == 0 { &request.options.source } else { &request.options.destination };
            let mut note = |text: &str| tell.note(text);
            let disk = FarScratch::create(&place.directory, "ladder", numbers[0], options, context, &lost, &mut note)?;
            let ram = place.ram.as_ref().filter(|_| lacks.is_none());
            let ram = match ram
                .map(|ram| FarScratch::create(ram, "ladder", numbers[1], options, context, &lost, &mut note))
            {
                Some(Err(why)) if place.is_asked => return Err(why),
                found => found.and_then(Result::ok),
            };
            Ok::<_, Failure>(LadderEnd { place: place.directory.clone(), disk, ram, lacks, disk_is_memory: false })
        };
        let source = open(&request.source, source_lacks, [0, 1], tell)?;
        let destination = open(&request.destination, destination_lacks, [2, 3], tell)?;
        let mut ladder = Self { request, context, source, destination, streams: None, warnings: Vec::new() };
        ladder.make_files(tell)?;
        for warning in &ladder.warnings {
            tell.warning(warning);
        }
        Ok(ladder)
    }

    fn warn(&mut self, word: &str, text: String) {
        self.warnings.push(Warning { word: word.to_owned(), text });
    }

    /// The files that rungs read; and what is meant for memory is asked whether it is, what is meant for a disk, too.
    fn make_files(&mut self, tell: &mut dyn TellRow) -> Result<(), Failure> {
        self.source.disk_is_memory = self.make(&self.source.disk.file(FROM), true, self.request.size, tell)?;
        let disk = self.destination.disk.file(TO);
        self.destination.disk_is_memory = self.make(&disk, false, PROBE_BYTES, tell)?;
        for of_source in [true, false] {
            let (end, place, flag) = match of_source {
                true => (&self.source, &self.request.source, "--source-ram"),
                false => (&self.destination, &self.request.destination, "--destination-ram"),
            };
            let (name, size) = if of_source { (FROM, self.request.size) } else { (TO, PROBE_BYTES) };
            let file = end.ram.as_ref().map(|ram| ram.file(name));
            let is_memory = file.map(|file| self.make(&file, of_source, size, tell)).transpose()?;
            match is_memory {
                Some(true) => {}
                Some(false) if place.is_asked => {
                    let why = format!("{flag} is not in memory: what was written there was read back from storage");
                    return Err(Failure::new(ErrorCode::Usage, Side::Command, why));
                }
                _ => {
                    let unknown = || format!("no directory in memory is known there ({flag} DIR)");
                    let why = end.lacks.clone().unwrap_or_else(unknown);
                    let text = format!("rungs with memory at {} are left out: {why}", place.directory);
                    self.warn("no-memory", text);
                    let end = if of_source { &mut self.source } else { &mut self.destination };
                    end.ram = None;
                }
            }
        }
        for (end, side) in [(&self.source, "source"), (&self.destination, "destination")] {
            if end.disk_is_memory {
                let text = format!("{} lies in memory: rungs with the {side}'s disk measure none", end.place);
                self.warnings.push(Warning { word: "memory".to_owned(), text });
            }
        }
        Ok(())
    }

    /// Makes a file of random bytes, on storage; whether its storage is memory. The bytes come from this host: no host
    /// need be able to reach itself.
    fn make(&self, file: &Location, at_source: bool, size: u64, tell: &mut dyn TellRow) -> Result<bool, Failure> {
        let mut request = self.copy(Location::Random(size), file.clone());
        request.options.verify = Verify::Disk;
        request.options.digest = CopyOptions::default().digest;
        if at_source {
            request.options.destination = self.request.options.source.clone();
        }
        let made = self.watch(request, tell)?;
        Ok(made.not_read_back > 0)
    }

    fn copy(&self, from: Location, to: Location) -> CopyRequest {
        let options = CopyOptions { resume: false, retries: 0, streams: self.streams, ..self.request.options.clone() };
        CopyRequest { sources: vec![from], destination: to, options }
    }

    fn watch(&self, request: CopyRequest, tell: &mut dyn TellRow) -> Result<Moved, Failure> {
        moved::watch(request, self.context, &mut |text| tell.note(text))
    }

    /// Measures all rungs with one number of data connections.
    fn climb_all(&mut self, rows: &mut Vec<Row>, tell: &mut dyn TellRow) -> Result<(), Failure> {
        let mut rates: Vec<(String, f64)> = Vec::new();
        for rung in LADDER {
            let Some(mut row) = self.climb(&rung, tell)? else { continue };
            let rate = row.value(value::BYTES_PER_SECOND).unwrap_or_default();
            if let Some((_, below)) = rung.stands_on(&rates) {
                row.put(LOSS, rung::loss(rate, *below));
            }
            if self.request.streams.len() > 1 {
                row.conditions.push((ASKED.to_owned(), asked(self.streams)));
            }
            rates.push((rung.name(), rate));
            tell.row(&row);
            rows.push(row);
        }
        Ok(())
    }

    /// Measures a rung; nothing where an end has no directory in memory.
    fn climb(&mut self, rung: &Rung, tell: &mut dyn TellRow) -> Result<Option<Row>, Failure> {
        let size = self.request.size;
        let from = match rung.from {
            RungSource::Zero => Some(self.source.place.synthetic(SyntheticKind::Zeros(size))),
            RungSource::Random => Some(self.source.place.synthetic(SyntheticKind::Random(size))),
            RungSource::Ram => self.source.ram.as_ref().map(|ram| ram.file(FROM)),
            RungSource::Disk => Some(self.source.disk.file(FROM)),
        };
        let to = match rung.to {
            RungSink::Null => Some(self.destination.place.synthetic(SyntheticKind::Null)),
            RungSink::Ram => self.destination.ram.as_ref().map(|ram| ram.file(TO)),
            RungSink::Disk => Some(self.destination.disk.file(TO)),
        };
        let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
        let mut runs: Vec<(Moved, Option<f64>)> = Vec::new();
        for _ in 0..self.request.runs {
            match (rung.to, &mut self.destination.ram) {
                (RungSink::Ram, Some(ram)) => ram.remove(TO)?,
                (RungSink::Disk, _) => self.destination.disk.remove(TO)?,
                _ => {}
            }
            let cached = if rung.from == RungSource::Disk { cool(&from) } else { None };
            let moved = self.watch(self.copy(from.clone(), to.clone()), tell)?;
            let of_devices = moved.source.device_bytes_read().filter(|_| rung.from == RungSource::Disk);
            let unread = of_devices.and_then(|read| unread_share(read, size, moved.moving));
            runs.push((moved, cached.or(unread)));
        }
        match (rung.to, &mut self.destination.ram) {
            (RungSink::Ram, Some(ram)) => ram.remove(TO)?,
            (RungSink::Disk, _) => self.destination.disk.remove(TO)?,
            _ => {}
        }
        Ok(Some(self.row(rung, runs)))
    }

    fn row(&self, rung: &Rung, mut runs: Vec<(Moved, Option<f64>)>) -> Row {
        runs.sort_by(|(a, _), (b, _)| a.rate().total_cmp(&b.rate()));
        let (least, most) = (runs.first().map(|run| run.0.rate()), runs.last().map(|run| run.0.rate()));
        let mut row = Row { name: rung.name(), ..Row::default() };
        let mut condition = |name: &str, value: &str| row.conditions.push((name.to_owned(), value.to_owned()));
        condition("source", rung.from.name());
        condition("sink", rung.to.name());
        let Some((middle, cached)) = runs.get(runs.len().saturating_sub(1) / 2) else { return row };
        if let Some(link) = &middle.link {
            condition("link", link.kind.name());
            row.put(STREAMS, link.streams.into());
        }
        row.put(value::BYTES, middle.bytes as f64);
        row.put(value::SECONDS, middle.moving.as_secs_f64());
        row.put(value::BYTES_PER_SECOND, middle.rate());
        row.put("least_bytes_per_second", least.unwrap_or_default());
        row.put("most_bytes_per_second", most.unwrap_or_default());
        row.put("runs", runs.len() as f64);
        row.put(value::PROCESSORS, middle.here);
        let are_here = [!self.source.place.is_remote(), !self.destination.place.is_remote()];
        let [of_source, of_destination] = processors(middle, are_here);
        row.put(SOURCE_PROCESSORS, of_source);
        row.put(DESTINATION_PROCESSORS, of_destination);
        let reads = rung.from == RungSource::Disk;
        if (reads && self.source.disk_is_memory) || (rung.to == RungSink::Disk && self.destination.disk_is_memory) {
            row.labels.push(label::MEMORY.to_owned());
        }
        // One copy that was not synced is enough to doubt the rung, whichever of them counts.
        let is_synced = runs.iter().all(|(moved, _)| moved.durable == Some(true));
        if rung.to == RungSink::Disk && !is_synced {
            row.labels.push(label::NOT_SYNCED.to_owned());
        }
        if reads && !self.source.disk_is_memory {
            row.put(value::CACHED, cached.unwrap_or(f64::NAN));
            // Where nobody tells, a large file has passed the cache by when it was made, and when it was read.
            let known = cached.or((self.request.size >= PAST_CACHE_BYTES).then_some(0.0));
            row.labels.extend(residency::label(residency::Cache::Pages, known, false).map(str::to_owned));
        }
        row
    }
}

/// Processors of the source's and of the destination's process; NaN where that is not known. `are_here` says which of
/// them are in this process. Both are one process then, which is told once.
fn processors(moved: &Moved, are_here: [bool; 2]) -> [f64; 2] {
    // An end that does not tell may be in this process, which knows of itself.
    let of = |told: Option<f64>, is_here: bool| told.unwrap_or(if is_here { moved.here } else { f64::NAN });
    let of_destination = match are_here {
        [true, true] => f64::NAN,
        [_, is_here] => of(moved.destination.processors(), is_here),
    };
    [of(moved.source.processors(), are_here[0]), of_destination]
}

/// Which share of a file its devices have not read while it was copied in so long: an end counts from [`UNCOUNTED`] on,
/// and has read at the same rate before. `None` where nothing was counted.
fn unread_share(read: u64, size: u64, moving: Duration) -> Option<f64> {
    let counted = size as f64 * (1.0 - UNCOUNTED.as_secs_f64() / moving.as_secs_f64());
    (counted > 0.0).then(|| 1.0 - (read as f64 / counted).min(1.0))
}

/// Drops a file of this host from the cache, and tells which share is there all the same.
fn cool(file: &Location) -> Option<f64> {
    let Location::Local(path) = file else { return None };
    let file = File::open(Path::new(OsStr::from_bytes(path))).ok()?;
    let size = file.metadata().ok()?.len();
    // What cannot be dropped shows in what is cached.
    let _ = carrack_sys::file::drop_cache(&file, 0, 0);
    residency::cached_share(&file, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::moved::EndSeen;
    use carrack_core::timeline::{ProcessorTime, Sample};

    fn sample(process_us: u64) -> Sample {
        Sample { processor: ProcessorTime { process_us, ..ProcessorTime::default() }, ..Sample::default() }
    }

    #[test]
    fn processors_of_one_process_are_told_once() {
        let end = |process_us| EndSeen {
            begin_us: Some(0),
            samples: vec![(1_100_000, sample(process_us))],
            ..EndSeen::default()
        };
        let moved = Moved { here: 0.7, source: end(500_000), destination: end(250_000), ..Moved::default() };
        assert_eq!(processors(&moved, [true, false]), [0.5, 0.25]);
        let [source, destination] = processors(&moved, [true, true]);
        assert!(source == 0.5 && destination.is_nan(), "{source} {destination}");
        let silent = Moved { here: 0.7, ..Moved::default() };
        let [source, destination] = processors(&silent, [false, true]);
        assert!(source.is_nan() && destination == 0.7, "{source} {destination}");
    }

    #[test]
    fn ladder_without_its_upper_rungs_has_no_verdict() {
        let row = |name: &str, rate: f64| {
            let mut row = Row { name: name.to_owned(), ..Row::default() };
            row.put(value::BYTES_PER_SECOND, rate);
            row
        };
        let rows = vec![row("zero->null", 4e9), row("disk->null", 1e9)];
        let mut measured = Measurement { kind: "ladder".to_owned(), rows, ..Measurement::default() };
        assert!(verdict(&measured).is_some());
        let why = Failure::new(ErrorCode::Interrupted, Side::Command, "interrupted");
        measured.warnings.push(incomplete(&why));
        assert_eq!(verdict(&measured), None);
    }

    #[test]
    fn ladder_of_several_numbers_of_streams_is_judged_where_it_is_fastest() {
        let row = |name: &str, streams: &str, rate: f64| {
            let conditions = vec![(ASKED.to_owned(), streams.to_owned())];
            let mut row = Row { name: name.to_owned(), conditions, ..Row::default() };
            row.put(value::BYTES_PER_SECOND, rate);
            row
        };
        let rows = |fast: f64| {
            vec![
                row("zero->null", "1", 1e9),
                row("disk->null", "1", 1e9),
                row("zero->null", "8", 4e9),
                row("disk->null", "8", fast),
            ]
        };
        let told = |fast| {
            verdict(&Measurement { kind: "ladder".to_owned(), rows: rows(fast), ..Measurement::default() }).unwrap()
        };
        assert!(told(2e9).starts_with("fastest with 8 streams; the loss enters at disk->null"), "{}", told(2e9));
        assert!(told(5e8).starts_with("fastest with 1 stream; no rung loses"), "{}", told(5e8));
    }

    /// At 5 GB/s a quarter of a file is read before anything is counted.
    #[test]
    fn bytes_read_before_devices_are_counted_are_not_said_to_be_cached() {
        let share = |read: f64, moving: Duration| {
            let size = 1 << 30;
            unread_share((read * size as f64) as u64, size, moving).map(|share| (share * 100.0).round())
        };
        assert_eq!((share(0.75, UNCOUNTED * 4), share(0.95, UNCOUNTED * 20)), (Some(0.0), Some(0.0)));
        assert_eq!((share(0.0, UNCOUNTED * 4), share(0.375, UNCOUNTED * 4)), (Some(100.0), Some(50.0)));
        assert_eq!((share(0.5, UNCOUNTED * 1000), share(2.0, UNCOUNTED * 2)), (Some(50.0), Some(0.0)));
        assert_eq!((share(0.0, UNCOUNTED), share(0.0, Duration::ZERO)), (None, None), "nothing was counted");
    }
}
