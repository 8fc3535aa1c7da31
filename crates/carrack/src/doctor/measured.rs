//! What this host can do by itself: its storage reads and writes directly for some seconds each, and a processor hashes
//! and seals. The results stand in the evidence beside what the host has said.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrack_core::evidence::EvidenceText;
use carrack_core::failure::Failure;
use carrack_core::location::Location;
use carrack_core::report::Event;
use carrack_doctor::Situation;
use carrack_engine::Context;
use carrack_measure::cpu;
use carrack_measure::disk::plan::{Choice, Mode, Operation};
use carrack_measure::disk::{self, Request};
use carrack_measure::error::Error;
use carrack_measure::result::value::BYTES_PER_SECOND;

use super::diagnosis::DoctorRequest;

/// Each of reading and writing takes no longer.
const STORAGE_TIME: Duration = Duration::from_secs(10);
/// For each kind of work of a processor; there are some twenty.
const PROCESSOR_TIME: Duration = Duration::from_millis(100);
/// Bytes of a write: what a copy writes at a time.
const RECORD: u64 = 4 << 20;

/// Measures this host, and puts the results into its evidence. What cannot be measured says why.
///
/// # Errors
/// When the work is to stop.
pub fn measure(
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    situation: &mut Situation,
) -> Result<(), Failure> {
    let Some(directory) = directory(request) else { return Ok(()) };
    let Ok(evidence) = &mut situation.near.evidence else { return Ok(()) };
    let stop = || context.stop.requested().is_some();
    let mut texts = Vec::new();
    match storage(&directory, Mode::Direct, STORAGE_TIME, &stop, observer) {
        Ok(rates) => texts.extend(rates.map(|(name, rate)| (format!("measured/storage/{name}"), found(rate)))),
        Err(why) => {
            texts.extend(["write", "read"].map(|name| (format!("measured/storage/{name}"), failed(&why))));
        }
    }
    if !stop() {
        match cpu::measure(PROCESSOR_TIME, &stop, &mut |_| {}) {
            Ok(measured) => {
                let one = measured.rows.iter().filter(|row| row.condition("processors") == Some("one"));
                let rates = one.filter_map(|row| Some((row.name.clone(), row.value(BYTES_PER_SECOND)?)));
                texts.extend(rates.map(|(name, rate)| (format!("measured/processor/{name}"), found(rate))));
            }
            Err(why) => texts.push(("measured/processor/blake3+aes-128-gcm".to_owned(), failed(&why))),
        }
    }
    texts.into_iter().for_each(|(name, text)| evidence.put(&name, text));
    context.stop.check()
}

/// The directory of this host that is concerned; `None` where another host has it.
pub fn directory(request: &DoctorRequest) -> Option<PathBuf> {
    match &request.near.0 {
        Location::Local(path) => Some(PathBuf::from(OsStr::from_bytes(path))),
        _ => None,
    }
}

/// Bytes a second that one file is written and read at.
///
/// # Errors
/// Why nothing was measured. The hidden directory is gone in any case.
pub fn storage(
    directory: &Path,
    mode: Mode,
    time: Duration,
    stop: &(dyn Fn() -> bool + Sync),
    observer: &(dyn Fn(Event) + Send + Sync),
) -> Result<[(&'static str, f64); 2], Error> {
    let operations = [Operation::Write, Operation::Read];
    let choice = Choice {
        operations: operations.to_vec(),
        modes: vec![mode],
        records: vec![RECORD],
        limit: Some(time),
        ..Choice::default()
    };
    let request = Request { directory: directory.to_owned(), choice, size: None, files: 1 };
    let measured = disk::measure(&request, stop, &mut |event| {
        if let disk::Event::Swept(names) = event {
            let text = format!("removed what a measurement that was killed had left: {}", names.join(", "));
            observer(Event::Note(text));
        }
    })?;
    let rate = |operation: Operation| {
        let row = measured.rows.iter().find(|row| row.name == operation.name());
        let rate = row.and_then(|row| row.value(BYTES_PER_SECOND));
        let why = row.and_then(|row| row.error.clone()).unwrap_or_else(|| "it told no rate".to_owned());
        rate.ok_or_else(|| Error::Impossible(format!("{}: {why}", operation.name())))
    };
    Ok([("write", rate(Operation::Write)?), ("read", rate(Operation::Read)?)])
}

fn found(rate: f64) -> EvidenceText {
    EvidenceText::Found(format!("{rate:.0}"))
}

fn failed(why: &Error) -> EvidenceText {
    let source = std::error::Error::source(why).map(|source| format!(": {source}")).unwrap_or_default();
    EvidenceText::Failed(format!("{why}{source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_measured_and_nothing_stays() {
        let directory = tempfile::tempdir().unwrap();
        let time = Duration::from_millis(200);
        // Where direct access cannot be, as in memory, a sync tells the same.
        let rates = storage(directory.path(), Mode::Fdatasync, time, &|| false, &|_| {}).unwrap();
        assert!(rates.iter().all(|(_, rate)| *rate > 0.0), "{rates:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(storage(&directory.path().join("none"), Mode::Fdatasync, time, &|| false, &|_| {}).is_err());
    }
}
