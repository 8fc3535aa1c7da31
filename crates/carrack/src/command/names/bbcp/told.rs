//! What a copy says in bbcp's words: lines that scripts read.

use std::time::{Duration, Instant};

use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Event, ItemKind, ItemReport, Outcome, Progress, Report};

use super::NAME;
use crate::command::names::line::{LineError, OldLine};
use crate::command::names::runner::Teller;
use crate::command::names::step::CopyStep;
use crate::command::names::told::{NamesVoice, Pace, PaceMoment};
use crate::error::CommandError;
use crate::exit;
use crate::output::human;

/// What bbcp ends with where a name exists and may not be replaced,
const EXISTS: u8 = 22;
/// a time limit has passed,
const TIME_OVER: u8 = 128;
/// a checksum is another than was expected,
const CHECKSUM: u8 = 172;
/// or the other host was not reached.
const UNREACHED: u8 = 255;

/// Tells of the copies of one line.
#[derive(Debug)]
pub struct BbcpTeller {
    told: NamesVoice,
    /// Between two lines of progress.
    progress: Option<Pace>,
    verbose: bool,
    reports: bool,
    /// What becomes of names that exist.
    existing: ExistingNames,
    target: Vec<u8>,
    begun: Instant,
    last: Instant,
    files: u64,
    bytes: u64,
    kept: u64,
    different: u64,
}

/// What becomes of names that exist, where they may not be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExistingNames {
    /// They are an error.
    Refused,
    /// They are no error.
    Omitted,
    /// They are no error where they are their sources already.
    ToCompare,
}

impl BbcpTeller {
    /// As the line asks for.
    ///
    /// # Errors
    /// A number that is none; a log that cannot be opened.
    pub fn new(line: &OldLine) -> Result<Result<Self, CommandError>, LineError> {
        let every = line.number("-P", 1, u64::from(u32::MAX))?.map(Duration::from_secs);
        let told = match line.value("-l").map(NamesVoice::to_file).transpose() {
            Ok(told) => told.unwrap_or_default(),
            Err(error) => return Ok(Err(error)),
        };
        let now = Instant::now();
        let mut teller = Self {
            told,
            progress: every.map(Pace::new),
            verbose: line.has("-v") || line.has("-V"),
            reports: line.has("-V") || line.has("-D"),
            existing: match (line.has("-O"), line.has("-a")) {
                (true, _) => ExistingNames::Omitted,
                (false, true) => ExistingNames::ToCompare,
                (false, false) => ExistingNames::Refused,
            },
            target: line.places.last().cloned().unwrap_or_default(),
            begun: now,
            last: now,
            files: 0,
            bytes: 0,
            kept: 0,
            different: 0,
        };
        if line.has("-V") {
            for given in line.without_effect() {
                teller.told.line(&format!("{NAME}: {} has no effect: {}", given.typed, given.row.why));
            }
        }
        Ok(Ok(teller))
    }

    /// Says why the line ends. Answers with its exit code.
    pub fn fail(&mut self, error: &CommandError) -> u8 {
        self.told.error(NAME, error);
        code_of(error.failure.code)
    }

    /// All copies have been made.
    pub fn all_done(&mut self) {
        if self.verbose {
            let files = if self.files == 1 { "file" } else { "files" };
            let rate = rate(self.bytes, self.begun.elapsed());
            self.told.line(&format!("{} {files} copied at effectively {rate}", self.files));
        }
    }

    /// Whether what exists has to be compared with its source; asked once for each copy.
    pub fn compares_next(&mut self) -> bool {
        self.existing == ExistingNames::ToCompare && std::mem::take(&mut self.kept) > 0
    }

    fn progress(&mut self, counts: &Progress) {
        let Some(moment) = self.progress.as_mut().and_then(|pace| pace.due(counts)) else { return };
        let line = progress_line(counts, moment, self.verbose, &time_of_day());
        self.told.line(&line);
    }

    fn item(&mut self, item: &ItemReport) {
        let path = self.shown(item);
        match item.outcome {
            Outcome::Kept => {
                self.kept += 1;
                if self.existing == ExistingNames::Refused {
                    self.told.line(&format!("{NAME}: {path} already exists; -f replaces it"));
                }
            }
            Outcome::Planned if item.kind != ItemKind::Directory => {
                self.different += 1;
                self.told.line(&format!("{NAME}: {path} already exists, and is another file; -f replaces it"));
            }
            Outcome::Published if matches!(item.kind, ItemKind::File | ItemKind::Symlink) => {
                (self.files, self.bytes) = (self.files + 1, self.bytes.saturating_add(item.size));
                let rate = rate(item.size, self.last.elapsed());
                self.last = Instant::now();
                if self.verbose {
                    self.told.line(&format!("File {path} created; {} bytes at {rate}", item.size));
                }
            }
            _ => {}
        }
    }

    /// The path of an item at the target.
    fn shown(&self, item: &ItemReport) -> String {
        let path = self.target.splitn(2, |&byte| byte == b':').last().unwrap_or_default();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        match name == item.path && !name.is_empty() {
            true => display_bytes(path).to_string(),
            false => {
                display_bytes(&[path, if path.ends_with(b"/") { b"" } else { b"/" }, &item.path].concat()).to_string()
            }
        }
    }
}

impl Teller for BbcpTeller {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Resolved { targets, .. } if self.verbose || self.progress.is_some() => {
                for target in targets {
                    self.told.line(&format!("{NAME}: Creating {}", human::safe(target)));
                }
            }
            Event::Linked(_) => {
                self.last = Instant::now();
                self.progress.iter_mut().for_each(Pace::begin);
            }
            Event::Progress(counts) => self.progress(counts),
            Event::Item(item) => self.item(item),
            event => self.told.notes(NAME, event),
        }
    }

    fn ended(&mut self, _: &CopyStep, report: &Report) -> u8 {
        if self.reports {
            human::report(report, false).iter().for_each(|line| self.told.line(line));
        }
        self.told.failures(NAME, report);
        match exit_of(report) {
            exit::DONE if self.different > 0 || self.existing == ExistingNames::Refused && self.kept > 0 => EXISTS,
            code => code,
        }
    }
}

/// `bbcp: 261129 10:42:43  17% done; 2.2 GB/s`; a person who wants more is told the average, too.
fn progress_line(counts: &Progress, moment: PaceMoment, verbose: bool, time: &str) -> String {
    let percent = match counts.bytes_found {
        0 => 0,
        found => u128::from(counts.bytes_done) * 100 / u128::from(found),
    };
    // What has not been found yet counts, too.
    let percent = percent.min(if counts.scan_complete { 100 } else { 99 });
    let average = scaled(moment.average);
    match verbose {
        false => format!("{NAME}: {time} {percent:>2}% done; {average}"),
        true => format!("{NAME}: {time} {percent:>2}% done; {}, avg {average}", scaled(moment.instant)),
    }
}

/// The time here, as `YYMMDD HH:MM:SS`.
fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%y%m%d %H:%M:%S").to_string()
}

fn rate(bytes: u64, time: Duration) -> String {
    scaled(bytes as f64 / time.as_secs_f64().max(1e-9))
}

/// Bytes a second, in steps of 1024.
fn scaled(mut rate: f64) -> String {
    let units = ["B/s", "KB/s", "MB/s", "GB/s"];
    let mut unit = 0;
    while rate >= 1023.95 && unit + 1 < units.len() {
        (rate, unit) = (rate / 1024.0, unit + 1);
    }
    format!("{rate:.1} {}", units[unit])
}

/// The exit code of a copy.
pub fn exit_of(report: &Report) -> u8 {
    let first = report.failures.first().map(|item| item.failure.code);
    match report.error.as_ref().map(|error| error.code).or(first) {
        Some(code) => code_of(code),
        None => exit::of_report(report),
    }
}

/// The exit code of an error: where bbcp ends with the number of a system's error, that number.
pub fn code_of(code: ErrorCode) -> u8 {
    use ErrorCode as E;
    match code {
        // bbcp says of a directory, too, that it is no such file.
        E::NotFound | E::SourceVanished | E::IsADirectory => 2,
        E::InputOutput => 5,
        E::PermissionDenied | E::OutsideRoot | E::NodeReadOnly => 13,
        E::NotADirectory => 20,
        E::AlreadyExists | E::NotEmpty | E::SameFile => EXISTS,
        E::FileTooLarge => 27,
        E::NoSpace => 28,
        E::ReadOnlyFileSystem => 30,
        E::NameTooLong => 36,
        E::QuotaExceeded => 122,
        E::DeadlinePassed => TIME_OVER,
        E::DigestMismatch => CHECKSUM,
        E::ConnectFailed | E::ConnectionLost | E::AgentMissing | E::AgentRefused | E::NoLink | E::HostUnknown => {
            UNREACHED
        }
        E::Usage => super::WRONG_LINE,
        // What bbcp has no number for: a signal, a peer that breaks the protocol.
        other => exit::of_code(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_as_scripts_read_it() {
        let counts = |done, found, scan_complete| Progress {
            bytes_done: done,
            bytes_found: found,
            scan_complete,
            ..Progress::default()
        };
        let moment = PaceMoment { bytes: 0, average: 2.25 * f64::from(1 << 30), instant: 1024.0 };
        for (counts, verbose, expected) in [
            (counts(17, 100, true), false, "bbcp: T 17% done; 2.2 GB/s"),
            (counts(0, 0, false), false, "bbcp: T  0% done; 2.2 GB/s"),
            (counts(9, 9, false), false, "bbcp: T 99% done; 2.2 GB/s"),
            (counts(9, 9, true), true, "bbcp: T 100% done; 1.0 KB/s, avg 2.2 GB/s"),
            (counts(5, 100, true), true, "bbcp: T  5% done; 1.0 KB/s, avg 2.2 GB/s"),
        ] {
            assert_eq!(progress_line(&counts, moment, verbose, "T"), expected);
        }
        assert_eq!((scaled(0.0), scaled(1023.99)), ("0.0 B/s".into(), "1.0 KB/s".into()));
    }

    #[test]
    fn exit_codes_are_never_those_of_success() {
        for code in ErrorCode::ALL {
            assert_ne!(code_of(*code), exit::DONE, "{}", code.name());
        }
    }
}
