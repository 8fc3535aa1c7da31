//! What a copy says in globus-url-copy's words: lines that scripts read.

use std::time::{Duration, Instant};

use carrack_core::path::display_bytes;
use carrack_core::report::{Event, ItemKind, ItemReport, Outcome, Report};

use super::url::Url;
use super::{FAILED, NAME};
use crate::command::names::line::OldLine;
use crate::command::names::runner::Teller;
use crate::command::names::step::CopyStep;
use crate::command::names::told::{NamesVoice, Pace, PaceMoment};
use crate::exit;
use crate::output::{human, stream};

/// Between two lines of progress.
const EVERY: Duration = Duration::from_secs(1);
const MIB: f64 = 1_048_576.0;

/// Tells of the copies of one line.
#[derive(Debug)]
pub struct GucTeller {
    told: NamesVoice,
    /// Places and names are told,
    names: bool,
    /// and bytes and rates.
    rates: bool,
    quiet: bool,
    reports: bool,
    pace: Pace,
    /// Bytes that were told last.
    bytes: u64,
    repeats: bool,
    /// The source and the name that a single file gets.
    single: Option<(Vec<u8>, Vec<u8>)>,
}

impl GucTeller {
    /// As the line asks for.
    pub fn new(line: &OldLine) -> Self {
        Self {
            told: NamesVoice::default(),
            names: line.has("-v") || line.has("-vb"),
            rates: line.has("-vb"),
            quiet: line.has("-q"),
            reports: line.has("-dbg"),
            pace: Pace::new(EVERY),
            bytes: 0,
            repeats: false,
            single: None,
        }
    }

    /// A copy begins.
    pub fn begin(&mut self, source: &Url, destination: &Url, repeats: bool) {
        self.pace = Pace::new(EVERY);
        (self.bytes, self.repeats) = (0, repeats);
        let is_file = !source.typed.ends_with('/') && source.wildcards().is_none();
        let name = if destination.place.path.ends_with(b"/") { source } else { destination }.place.name();
        self.single = is_file.then(|| (source.place.name().to_vec(), name.to_vec()));
        if self.names && !repeats {
            let directory = |typed: &str| typed[..typed.rfind('/').map_or(0, |at| at + 1)].to_owned();
            print(&format!("Source: {}\nDest:   {}\n", directory(&source.typed), directory(&destination.typed)));
        }
    }

    fn item(&mut self, item: &ItemReport) {
        let is_told = self.names && item.kind != ItemKind::Directory && item.outcome == Outcome::Published;
        if !is_told {
            return;
        }
        let name = display_bytes(&item.path).to_string();
        match &self.single {
            Some((source, to)) if source != to && *to == item.path => {
                print(&format!("  {}  ->  {name}\n", display_bytes(source)));
            }
            _ => print(&format!("  {name}\n")),
        }
    }

    fn rate(&mut self, moment: PaceMoment) {
        self.bytes = moment.bytes;
        print(&rate_line(moment));
    }
}

impl Teller for GucTeller {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Linked(_) => self.pace.begin(),
            Event::Progress(counts) if self.rates => {
                if let Some(moment) = self.pace.due(counts) {
                    self.rate(moment);
                }
            }
            Event::Item(item) => self.item(item),
            event if !self.quiet => self.told.notes(NAME, event),
            _ => {}
        }
    }

    fn ended(&mut self, _: &CopyStep, report: &Report) -> u8 {
        let bytes = report.counts.bytes;
        if self.rates && !self.repeats {
            if bytes > 0 {
                print("\n");
                let moment = self.pace.moment(bytes, Instant::now());
                self.rate(moment);
            }
            print("\n");
        }
        if self.reports {
            human::report(report, false).iter().for_each(|line| self.told.line(line));
        }
        self.told.failures("\nerror", report);
        if exit::of_report(report) == exit::DONE { exit::DONE } else { FAILED }
    }
}

/// What ends with a carriage return, so that the next such line stands in its place on a terminal.
fn rate_line(moment: PaceMoment) -> String {
    let (average, instant) = (moment.average / MIB, moment.instant / MIB);
    format!("{:>13} bytes {average:>12.2} MB/sec avg {instant:>12.2} MB/sec inst\r", moment.bytes)
}

/// Standard output. A reader that has left ends the line as it does other tools.
fn print(text: &str) {
    if let Err(error) = stream::print(text.as_bytes()) {
        crate::output::error(&error, false);
        carrack_sys::host::exit_at_once(error.exit_code());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_as_scripts_read_them() {
        let moment = PaceMoment { bytes: 225_443_840, average: 164.27 * MIB, instant: 214.0 * MIB };
        let expected = "    225443840 bytes       164.27 MB/sec avg       214.00 MB/sec inst\r";
        assert_eq!(rate_line(moment), expected);
    }
}
