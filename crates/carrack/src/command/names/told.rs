//! What both programs' tellers share: where lines go, what a table says, the pace of progress.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use carrack_core::report::{Event, Failure, Progress, Report};

use crate::cli::foreign::{Follows, ForeignEffect, ForeignFlag};
use crate::error::CommandError;
use crate::output::{hints, human, stream};

/// Standard error, or a file in its place.
#[derive(Debug, Default)]
pub struct NamesVoice(Option<File>);

impl NamesVoice {
    /// Appends to a file.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn to_file(path: &[u8]) -> Result<Self, CommandError> {
        let opened = OpenOptions::new().create(true).append(true).open(std::ffi::OsStr::from_bytes(path));
        opened.map(|file| Self(Some(file))).map_err(|error| CommandError::file("cannot append to", path, &error))
    }

    /// A line.
    pub fn line(&mut self, line: &str) {
        match &mut self.0 {
            // Whoever named the file has nowhere else to be told that it is full.
            Some(file) => drop(file.write_all(format!("{line}\n").as_bytes())),
            None => stream::say_line(line),
        }
    }

    /// An error that ended a command, begun by the program's name.
    pub fn error(&mut self, program: &str, error: &CommandError) {
        if error.is_silent() {
            return;
        }
        self.line(&format!("{program}: {error}"));
        for hint in &error.hints {
            self.line(&format!("{program}: hint: {hint}"));
        }
    }

    /// What failed: the items, and what ended the copy.
    pub fn failures(&mut self, program: &str, report: &Report) {
        for item in &report.failures {
            self.line(&format!("{program}: {}", human::safe(&item.failure.message_of(&item.path))));
        }
        let untold = report.counts.files_failed.saturating_sub(report.failures.len() as u64);
        if untold > 0 {
            self.line(&format!("{program}: {untold} further items failed"));
        }
        if let Some(failure) = &report.error {
            self.line(&format!("{program}: {}", with_hint(failure)));
        }
    }

    /// What a person should know.
    pub fn notes(&mut self, program: &str, event: &Event) {
        if matches!(event, Event::Note(_) | Event::SessionLost { .. }) {
            human::event(event, 0).iter().for_each(|line| self.line(&format!("{program}: {line}")));
        }
    }
}

fn with_hint(failure: &Failure) -> String {
    human::failure_with(failure, hints::of(failure))
}

/// Measures the pace of a copy.
#[derive(Debug)]
pub struct Pace {
    begun: Instant,
    last: (Instant, u64),
    every: Duration,
}

/// A moment of a copy.
#[derive(Clone, Copy, Debug)]
pub struct PaceMoment {
    /// Bytes that are there.
    pub bytes: u64,
    /// Bytes a second since the copy began,
    pub average: f64,
    /// and since the moment before.
    pub instant: f64,
}

impl Pace {
    /// Of a copy that begins now, and is told of so often.
    pub fn new(every: Duration) -> Self {
        let now = Instant::now();
        Self { begun: now, last: (now, 0), every }
    }

    /// Data begins to move.
    pub fn begin(&mut self) {
        *self = Self::new(self.every);
    }

    /// The moment, where it is time for one.
    pub fn due(&mut self, counts: &Progress) -> Option<PaceMoment> {
        let now = Instant::now();
        (now.duration_since(self.last.0) >= self.every).then(|| self.moment(counts.bytes_done, now))
    }

    /// The moment, now.
    pub fn moment(&mut self, bytes: u64, now: Instant) -> PaceMoment {
        let rate = |bytes: u64, since: Instant| {
            let seconds = now.duration_since(since).as_secs_f64();
            if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
        };
        let average = rate(bytes, self.begun);
        let instant = rate(bytes.saturating_sub(self.last.1), self.last.0);
        self.last = (now, bytes);
        PaceMoment { bytes, average, instant }
    }
}

/// What a program's table says, for its help.
pub fn help(table: &[ForeignFlag]) -> String {
    let mut text = String::new();
    for row in table {
        let word = match row.follows {
            Follows::Nothing => "",
            Follows::Word => " WORD",
            Follows::Perhaps(_) => " [WORD]",
        };
        let what = match row.effect {
            ForeignEffect::Always => "taken, without effect",
            ForeignEffect::Taken(_) => "taken",
            _ => "refused",
        };
        text += &format!("  {}{word}\n      {what}: {}\n", row.names.join(", "), row.why);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_is_since_the_start_and_since_the_moment_before() {
        let mut pace = Pace::new(Duration::from_secs(1));
        let begun = pace.begun;
        let first = pace.moment(100, begun + Duration::from_secs(1));
        assert_eq!((first.bytes, first.average, first.instant), (100, 100.0, 100.0));
        let second = pace.moment(500, begun + Duration::from_secs(2));
        assert_eq!((second.average, second.instant), (250.0, 400.0));
        assert_eq!(pace.moment(500, begun + Duration::from_secs(2)).instant, 0.0);
    }
}
