//! What a command says: to a person on standard error, to a program as JSON on standard output, to a log and to
//! a manifest.
//!
//! [`Output`] takes the events of a copy from any thread and its report at the end. In a copy standard output carries
//! nothing but data, JSON or the manifest, one of them at most.

mod brief;
pub mod csv;
mod failed_list;
mod figures;
pub mod format;
pub mod hints;
#[cfg(test)]
mod hints_tests;
pub mod human;
mod in_flight;
pub mod itemized;
pub mod json;
pub mod lines;
mod log;
pub mod manifest;
mod options;
pub mod part_file;
#[cfg(feature = "terminal")]
pub mod plot;
#[cfg(feature = "service")]
pub mod problem_hints;
mod progress;
pub mod question;
#[cfg(feature = "terminal")]
pub mod receipt;
#[cfg_attr(not(feature = "terminal"), allow(dead_code, reason = "the slim build writes samples, and reads none"))]
mod sample;
mod screen;
pub mod stream;
mod synced;
pub mod timeline;
mod unsent;

use carrack_sys::sync::lock;
use std::sync::{Mutex, MutexGuard};
use std::time::{Instant, SystemTime};

use carrack_core::path::display_bytes;
use carrack_core::report::{Event, ItemChange, ItemInFlight, Outcome, Report};

use crate::error::CommandError;
use crate::exit;
pub use failed_list::FAILED_LIST_LINE;
use failed_list::FailedList;
use lines::Lines;
use log::Log;
use manifest::Manifest;
pub use options::{BarChoice, CopyTarget, OutputOptions, TimelineOptions};
use screen::Screen;
use timeline::write::TimelineFile;

/// Everything that listens to one copy.
pub struct Output {
    options: OutputOptions,
    state: Mutex<OutputState>,
}

struct OutputState {
    screen: Screen,
    json: Option<Lines>,
    /// Standard output, where it has a line for each change.
    itemized: Option<Lines>,
    log: Option<Log>,
    manifest: Option<Manifest>,
    failed_list: Option<FailedList>,
    timeline: Option<TimelineFile>,
    /// When progress is next told in JSON.
    json_progress: Instant,
    /// What is told with it.
    in_flight: Vec<ItemInFlight>,
}

impl Output {
    /// Opens what has to be opened, before anything is moved.
    ///
    /// # Errors
    /// A log, a manifest or another file that cannot be made.
    pub fn open(options: OutputOptions) -> Result<Self, CommandError> {
        let now = Instant::now();
        let json = options.json.then(|| Lines::stdout(true));
        // A program that reads JSON is told of changes there.
        let itemized = (options.lines.is_some() && !options.json).then(|| Lines::stdout(true));
        json.iter().chain(&itemized).try_for_each(Lines::check)?;
        let log = options
            .log_file
            .as_deref()
            .map(|path| Log::open(path).map_err(|error| CommandError::file("cannot append to the log", path, &error)));
        let manifest = options.manifest.as_deref().map(|path| {
            Manifest::create(path).map_err(|error| CommandError::file("cannot write the manifest", path, &error))
        });
        let failed_list = options.failed_list.as_deref().map(|path| {
            FailedList::create(path)
                .map_err(|error| CommandError::file("cannot write the list of failed items", path, &error))
        });
        let timeline = options.timeline.as_ref().map(|TimelineOptions { path, asked }| {
            let file = TimelineFile::create(path, asked.clone(), SystemTime::now());
            file.map_err(|error| CommandError::file("cannot write the timeline", path, &error))
        });
        // A program that reads JSON sees progress there; a person beside it may still have a bar.
        let bar = if options.quiet { BarChoice::Never } else { options.bar };
        let state = OutputState {
            screen: Screen::new(bar, !options.json, options.stats, now),
            json,
            itemized,
            log: log.transpose()?,
            manifest: manifest.transpose()?,
            failed_list: failed_list.transpose()?,
            timeline: timeline.transpose()?,
            json_progress: now + options.stats,
            in_flight: Vec::new(),
        };
        Ok(Self { options, state: Mutex::new(state) })
    }

    /// Takes an event, from any thread.
    pub fn event(&self, event: &Event) {
        let mut state = self.lock();
        let now = Instant::now();
        if let Event::Progress(counts) = event {
            let asked = carrack_sys::signal::take_report_request();
            state.screen.progress(counts, asked, now);
            let due = !self.options.stats.is_zero() && now >= state.json_progress;
            if !due {
                return;
            }
            state.json_progress = now + self.options.stats;
        }
        if let Event::InFlight(list) = event {
            return state.in_flight.clone_from(list);
        }
        let time = SystemTime::now();
        let OutputState { json, in_flight: list, .. } = &mut *state;
        if let Some(json) = json {
            let mut object = json::event(event, time);
            if let Event::Progress(_) = event {
                object["in_flight"] = in_flight::value(list);
            }
            json.json(&object);
        }
        if let Some(timeline) = &mut state.timeline {
            timeline.event(event, time);
        }
        if let Event::Item(item) = event {
            state.in_flight.retain(|file| file.path != item.path);
            if let Some(manifest) = &mut state.manifest {
                manifest.item(item);
            }
            if let Some(list) = &mut state.failed_list {
                list.item(item);
            }
            if let (Outcome::Failed(failure), Some(log)) = (&item.outcome, &mut state.log) {
                log.line(time, &human::failed_item(&item.path, failure));
            }
        }
        if let Event::Changed(change) = event {
            self.change(&mut state, change, time);
        }
        if let Event::SessionLost { .. } = event {
            state.in_flight.clear();
            state.manifest.iter_mut().for_each(Manifest::session_lost);
            state.failed_list.iter_mut().for_each(FailedList::session_lost);
        }
        for line in human::event(event, self.options.verbose) {
            self.tell(&mut state, time, &line);
        }
    }

    /// Shows how the copy stands no more: a question is to stand there.
    pub fn make_room_for_a_question(&self) {
        self.lock().screen.stand_still();
    }

    /// A line for a change, on standard output and in the log.
    fn change(&self, state: &mut OutputState, change: &ItemChange, time: SystemTime) {
        let format = self.options.lines.as_ref();
        let Some(line) = format.and_then(|format| format.line(change, self.options.direction, time)) else { return };
        if let Some(log) = &mut state.log {
            log.line(time, &line);
        }
        if let Some(itemized) = &mut state.itemized {
            state.screen.aside(|| itemized.line(line.as_bytes()));
        }
    }

    /// Something more was made than the copy: for a person, a log and a program.
    #[cfg(feature = "terminal")]
    pub fn made(&self, line: &str, kind: &str, fields: serde_json::Value) {
        let (mut state, time) = (self.lock(), SystemTime::now());
        if let Some(json) = &mut state.json {
            json.json(&json::object(kind, time, fields));
        }
        self.tell(&mut state, time, line);
    }

    /// Ends everything, tells the report, and answers with the exit code. `unmade` is what else went wrong.
    pub fn finish(&self, report: &Report, unmade: Option<CommandError>) -> u8 {
        let mut exit_code = match self.options.destination {
            CopyTarget::Stdout => exit::of_stream(report),
            _ => exit::of_report(report),
        };
        if self.options.strict {
            exit_code = exit::of_kept(exit_code, report);
        }
        let mut state = self.lock();
        state.screen.set_silent(exit_code == exit::READER_GONE);
        let time = SystemTime::now();
        state.screen.end();
        // After an error, too: what was published stays, and what is said of it is true.
        if report.error.is_none() || report.counts.names_made() > 0 || report.counts.directories > 0 {
            let lines = human::report(report, self.options.dry_run);
            let is_brief = self.options.verbose == 0 && !self.options.dry_run;
            for line in if is_brief { brief::shortened(report, lines) } else { lines } {
                self.tell(&mut state, time, &line);
            }
            for line in figures::figures(report).iter().filter(|_| self.options.figures) {
                self.tell(&mut state, time, line);
            }
            if let Some(line) = human::unfinished(report, &self.options.destination) {
                self.tell(&mut state, time, &line);
            }
        }
        if self.options.verbose > 0 {
            human::left_out(report).iter().for_each(|line| self.tell(&mut state, time, line));
            human::unkept_directories(report).iter().for_each(|line| self.tell(&mut state, time, line));
        }
        for line in human::failures(report) {
            state.screen.say(&line);
        }
        if let (Some(error), Some(log)) = (&report.error, &mut state.log) {
            log.line(time, &format!("error: {}", human::failure(error)));
        }
        let mut errors: Vec<CommandError> = unmade.into_iter().collect();
        if let Some(manifest) = state.manifest.take() {
            errors.extend(self.end_manifest(&mut state, manifest, report.error.is_none()).err());
        }
        if let Some(list) = state.failed_list.take() {
            errors.extend(self.end_failed_list(&mut state, list, report.error.is_none()).err());
        }
        if let Some(timeline) = state.timeline.take() {
            let path = self.options.timeline.as_ref().map_or(&b""[..], |timeline| &timeline.path);
            let ended = timeline.finish(report, self.options.dry_run, exit_code, time);
            errors.extend(ended.err().map(|error| CommandError::file("cannot write the timeline", path, &error)));
        }
        errors.extend(state.itemized.take().and_then(|lines| lines.finish().err()));
        if let Some(log) = state.log.take() {
            let path = self.options.log_file.as_deref().unwrap_or_default();
            let ended = log.finish();
            errors.extend(ended.err().map(|error| CommandError::file("cannot append to the log", path, &error)));
        }
        // The copy itself went well, but not all that was asked for is there.
        if let (exit::DONE, Some(error)) = (exit_code, errors.first()) {
            exit_code = error.exit_code();
        }
        if let Some(mut json) = state.json.take() {
            for error in report.error.iter().chain(errors.iter().map(|error| &error.failure)) {
                json.json(&json::error(error, hints::of(error), &[], exit_code, time));
            }
            json.json(&json::summary(report, self.options.dry_run, exit_code, time));
            errors.extend(json.finish().err());
        }
        for error in errors.iter().filter(|error| !error.is_silent()) {
            state.screen.say(&format!("error: {error}"));
        }
        match (exit_code, errors.first()) {
            (exit::DONE, Some(error)) => error.exit_code(),
            _ => exit_code,
        }
    }

    fn end_manifest(&self, state: &mut OutputState, manifest: Manifest, complete: bool) -> Result<(), CommandError> {
        let path = self.options.manifest.as_deref().unwrap_or_default();
        let written =
            manifest.finish(complete).map_err(|error| CommandError::file("cannot write the manifest", path, &error))?;
        if written.left_out > 0 {
            let files = format::counted(written.left_out, "file", "files");
            self.note(state, format!("{files} left out of the manifest: b3sum cannot read names that are not UTF-8"));
        }
        if let Some(part) = written.unfinished {
            let part = display_bytes(part.as_os_str().as_encoded_bytes()).to_string();
            self.note(state, format!("the manifest of what was copied so far stayed in {part}"));
        }
        Ok(())
    }

    fn end_failed_list(&self, state: &mut OutputState, list: FailedList, complete: bool) -> Result<(), CommandError> {
        let path = self.options.failed_list.as_deref().unwrap_or_default();
        list.finish(complete)
            .map_err(|error| CommandError::file("cannot write the list of failed items", path, &error))?;
        if !complete {
            let name = display_bytes(path);
            self.note(
                state,
                format!("{name} was not written: the copy ended early, and what is missing is not known file by file; run the same command again"),
            );
        }
        Ok(())
    }

    fn note(&self, state: &mut OutputState, note: String) {
        self.tell(state, SystemTime::now(), &format!("note: {note}"));
        if let Some(json) = &mut state.json {
            json.json(&json::event(&Event::Note(note), SystemTime::now()));
        }
    }

    /// To the log always, to a person unless only errors are wanted or a program reads the same as JSON.
    fn tell(&self, state: &mut OutputState, time: SystemTime, line: &str) {
        if let Some(log) = &mut state.log {
            log.line(time, line);
        }
        if !self.options.quiet && !self.options.json {
            state.screen.say(line);
        }
    }

    /// A thread that panicked while it told something leaves lines, not a broken invariant.
    fn lock(&self) -> MutexGuard<'_, OutputState> {
        lock(&self.state)
    }
}

/// Tells why a command ended: to a person always, to a program if it asked.
pub fn error(error: &CommandError, as_json: bool) {
    if error.is_silent() {
        return;
    }
    say(&format!("error: {error}"));
    for hint in &error.hints {
        say(&format!(" hint: {hint}"));
    }
    if as_json {
        let mut lines = Lines::stdout(true);
        let (hint, exit_code) = (human::hint_of_error(error), error.exit_code());
        lines.json(&json::error(&error.failure, hint, &error.hints, exit_code, SystemTime::now()));
        // If this fails, too, standard error has said it.
        let _ = lines.finish();
    }
}

/// A line on standard error.
pub fn say(line: &str) {
    stream::say_line(line);
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;

#[cfg(test)]
mod golden_tests;
