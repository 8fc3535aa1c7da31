//! Writing a timeline as the copy goes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant, SystemTime};

use carrack_core::report::{EndSample, Event, Report, Side};
use carrack_core::request::CopyRequest;
use serde_json::{Value, json};

use crate::output::{hints, json, sample};

/// Bytes of samples after which only every second one is written.
const STEP_BYTES: u64 = 8 << 20;
/// What samples of one end are apart, at least, from the first step on; twice as much from each further one.
const APART: Duration = Duration::from_secs(2);

/// A timeline that is being written.
///
/// A sample a second of a copy that takes a week would fill gigabytes, where there are many streams. So after each
/// [`STEP_BYTES`] of samples they are written half as often as before. Counters are cumulative: nothing is lost but
/// the moments in between. Of each end the last sample is always written.
pub struct TimelineFile {
    out: BufWriter<File>,
    start: Instant,
    apart_us: u64,
    step_bytes: u64,
    ends: [EndProgress; 2],
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

#[derive(Default)]
struct EndProgress {
    written_us: Option<u64>,
    /// The newest sample, if it was not written.
    held: Option<(SystemTime, EndSample)>,
}

/// What a copy was asked for, for the first line.
pub fn asked(request: &CopyRequest) -> Value {
    let options = &request.options;
    json!({
        "sources": request.sources.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "destination": request.destination.to_string(),
        "streams": options.streams,
        "block_bytes": options.block_bytes,
        "rate_limit": options.rate_limit,
        "congestion": options.congestion.map(|congestion| congestion.name().to_owned()),
        "compress": options.compress,
        "encrypt": options.encrypt.name(),
        "verify": options.verify.name(),
        "digest": options.digest.main.map(carrack_core::request::MainDigest::name),
        "durability": options.durability.name(),
        "existing": options.existing.name(),
    })
}

/// The first line: what was asked for, of which program, on which system.
pub fn first(asked: Value, system: &str, time: SystemTime) -> Value {
    let fields = json!({ "program": env!("CARGO_PKG_VERSION"), "system": system, "asked": asked, "at_us": 0 });
    json::object("timeline", time, fields)
}

impl TimelineFile {
    /// Begins a file, over what has this name, with its first line.
    ///
    /// # Errors
    /// What the system says to creating and writing it.
    pub fn create(path: &[u8], asked: Value, time: SystemTime) -> io::Result<Self> {
        let out = BufWriter::new(File::create(OsString::from_vec(path.to_vec()))?);
        let (start, ends) = (Instant::now(), Default::default());
        let mut file = Self { out, start, apart_us: 0, step_bytes: 0, ends, error: None };
        file.line(first(asked, &carrack_sys::host::system_version(), time))?;
        file.out.flush()?;
        Ok(file)
    }

    /// Takes an event. Items and progress are told elsewhere.
    pub fn event(&mut self, event: &Event, time: SystemTime) {
        if self.error.is_none() {
            self.error = self.add(event, time).err();
        }
    }

    fn add(&mut self, event: &Event, time: SystemTime) -> io::Result<()> {
        match event {
            Event::Progress(_) | Event::InFlight(_) | Event::Item(_) | Event::Changed(_) => return Ok(()),
            Event::Sample(told) => self.sample(told, time)?,
            event => {
                if let Event::SessionLost { .. } = event {
                    self.write_held()?;
                }
                self.line(json::event(event, time))?;
            }
        }
        // A copy that is killed leaves whole lines.
        self.out.flush()
    }

    fn sample(&mut self, told: &EndSample, time: SystemTime) -> io::Result<()> {
        let (at_us, apart_us) = (told.point.at_us, self.apart_us);
        let end = &mut self.ends[usize::from(told.side == Side::Destination)];
        if end.written_us.is_some_and(|written| at_us.saturating_sub(written) < apart_us) {
            end.held = Some((time, told.clone()));
            return Ok(());
        }
        (end.written_us, end.held) = (Some(at_us), None);
        self.step_bytes += self.line(json::object("sample", time, sample::value(told, true)))?;
        if self.step_bytes > STEP_BYTES {
            self.step_bytes = 0;
            let apart = u64::try_from(APART.as_micros()).unwrap_or(u64::MAX);
            self.apart_us = self.apart_us.saturating_mul(2).max(apart);
        }
        Ok(())
    }

    /// Writes the last sample of each end, if it was passed over.
    fn write_held(&mut self) -> io::Result<()> {
        for at in 0..self.ends.len() {
            if let Some((time, told)) = self.ends[at].held.take() {
                self.line(json::object("sample", time, sample::value(&told, true)))?;
            }
        }
        Ok(())
    }

    /// Writes a line, with its moment where it has none; says how many bytes it has.
    fn line(&mut self, mut object: Value) -> io::Result<u64> {
        if object.get("at_us").is_none() {
            object["at_us"] = json!(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        let mut text = json::text(&object);
        text.push('\n');
        self.out.write_all(text.as_bytes())?;
        Ok(text.len() as u64)
    }

    /// Ends it with the report.
    ///
    /// # Errors
    /// The first thing that went wrong, whenever it did.
    pub fn finish(mut self, report: &Report, dry_run: bool, exit_code: u8, time: SystemTime) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.write_held()?;
        if let Some(error) = &report.error {
            self.line(json::error(error, hints::of(error), &[], exit_code, time))?;
        }
        self.line(json::summary(report, dry_run, exit_code, time))?;
        self.out.flush()
    }
}
