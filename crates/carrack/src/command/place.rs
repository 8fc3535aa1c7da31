//! What the file verbs share: places that stay open, one way to go through several locations, one way to end.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use carrack_core::filter::Filters;
use carrack_core::location::Location;
use carrack_core::report::{ErrorCode, Event, Failure};
use carrack_core::request::EndOptions;
use carrack_engine::Context;
use carrack_engine::files::Files;
use serde_json::{Value, json};

use super::context::context;
use super::named::VerbPlace;
use super::reach::{self, JSON, QUIET, VERBOSE};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{self, format, human, json as objects, say};

/// A file verb while it runs.
pub struct VerbRun<'a> {
    verb: &'static str,
    flags: &'a Flags<'a>,
    /// Whether standard output carries JSON.
    pub json: bool,
    /// Only errors are told.
    pub quiet: bool,
    /// It ends when nobody reads its lines any more: it does nothing else.
    pub only_reads: bool,
    /// Each thing that is done is told, and how hosts are reached.
    is_verbose: bool,
    /// Lines for standard output.
    pub out: Lines,
    /// For the node that is named; with several named its credential names no file.
    options: EndOptions,
    context: Context,
    /// What is left out at every place.
    filters: Filters,
    /// One for each host that was named, so that ten paths there cost one login.
    open: Vec<(VerbPlace, Files)>,
    /// What went well: entries, directories, digests.
    pub done: u64,
    failures: Vec<Failure>,
    failed: u64,
}

/// Failures kept to find the exit code; the rest are counted.
const FAILURES_KEPT: usize = carrack_core::limits::FAILURES_TOLD;

impl<'a> VerbRun<'a> {
    /// Begins a verb.
    ///
    /// # Errors
    /// A usage error in the flags.
    pub fn new(verb: &'static str, flags: &'a Flags<'a>) -> Result<Self, CommandError> {
        let json = flags.has(&JSON);
        let reach = reach::reach(flags)?;
        let run = Self {
            verb,
            flags,
            json,
            quiet: flags.has(&QUIET),
            only_reads: matches!(verb, "check" | "ls" | "stat" | "sum" | "du"),
            is_verbose: flags.has_if_known(&VERBOSE) && !flags.has(&QUIET),
            out: Lines::stdout(json),
            options: EndOptions { reach, ..EndOptions::default() },
            context: context(),
            filters: Filters::default(),
            open: Vec::new(),
            done: 0,
            failures: Vec::new(),
            failed: 0,
        };
        // What it has to say is part of what was asked for: if it cannot be said, nothing is done.
        if json { run.out.check().map(|()| run) } else { Ok(run) }
    }

    /// Leaves something out of all that it lists or counts.
    pub fn without(mut self, left_out: Filters) -> Self {
        self.filters = left_out;
        self
    }

    /// Does something at each location in turn. One that fails is told, and the next one tried; a signal ends it all.
    ///
    /// # Errors
    /// A location without a path, or one token file for several nodes, before anything is done; a signal.
    pub fn each(
        &mut self,
        places: &[VerbPlace],
        mut action: impl FnMut(&mut Self, &mut Files, &VerbPlace) -> Result<(), Failure>,
    ) -> Result<(), CommandError> {
        for place in places {
            self.path_of(place)?;
        }
        let others = places.iter().filter(|place| place.endpoint().is_none()).map(VerbPlace::location);
        self.options.credential = reach::credential(self.flags, &others.cloned().collect::<Vec<_>>())?;
        for place in places {
            let result = self.take(place).and_then(|(opened, mut files)| {
                let result = action(self, &mut files, place);
                self.open.push((opened, files));
                result
            });
            match result {
                Ok(()) => {}
                Err(failure) if is_stop(&failure) => return Err(failure.into()),
                Err(failure) => {
                    let is_pattern = failure.code == ErrorCode::NotFound && place.shown().contains(&b'*');
                    self.fail(place.shown(), place.tell(failure));
                    if is_pattern && !matches!(place.location(), Location::Local(_)) {
                        say(" hint: patterns are not expanded there: name a directory, with --include or --exclude");
                    }
                }
            }
        }
        Ok(())
    }

    /// The path of a place that has one.
    ///
    /// # Errors
    /// A usage error.
    pub fn path_of<'b>(&self, place: &'b VerbPlace) -> Result<&'b [u8], CommandError> {
        let location = place.location();
        location.path().ok_or_else(|| {
            CommandError::usage(format!("{} needs a place with files, and {location} is none", self.verb))
        })
    }

    /// An open place, taken out of the list so that the run stays free; opened if it is not there.
    fn take(&mut self, place: &VerbPlace) -> Result<(VerbPlace, Files), Failure> {
        if let Some(index) = self.open.iter().position(|(opened, _)| opened.is_beside(place)) {
            return Ok(self.open.swap_remove(index));
        }
        let (quiet, verbose) = (self.quiet || self.json, u8::from(self.is_verbose));
        let (sent, begun) = (OnceLock::new(), Instant::now());
        let credential = place.credential().unwrap_or_else(|| self.options.credential.clone());
        let options = EndOptions { credential, ..self.options.clone() };
        let mut files = Files::open(place.location(), &options, &self.context, &|event| match event {
            Event::Note(_) if !quiet => human::event(&event, 0).iter().for_each(|line| say(line)),
            Event::ProgramSent(ref program) => {
                human::event(&event, verbose).iter().for_each(|line| say(line));
                sent.set(program.clone()).unwrap_or_default();
            }
            _ => {}
        })?;
        if let (Some(sent), true) = (sent.get(), self.json) {
            self.json("program", objects::program(sent));
        }
        if self.is_verbose {
            say(&format!("reached: {} in {}", place.name(), format::duration(begun.elapsed())));
        }
        files.leave_out(&self.filters)?;
        Ok((place.clone(), files))
    }

    /// Tells something that was done, where that is asked for.
    pub fn tell(&self, done: impl FnOnce() -> String) {
        if self.is_verbose {
            say(&done());
        }
    }

    /// Tells a failure, and remembers it for the exit code.
    pub fn fail(&mut self, path: &[u8], failure: Failure) {
        say(&human::failed_path(path, &failure));
        self.count_failed(path, failure);
    }

    /// Remembers a failure that has been told, and writes it in JSON.
    pub fn count_failed(&mut self, path: &[u8], failure: Failure) {
        if self.json {
            let fields = json!({ "outcome": "failed", "error": objects::failure(&failure) });
            self.json("item", objects::with_path(fields, path));
        }
        self.failed += 1;
        if self.failures.len() < FAILURES_KEPT {
            self.failures.push(failure);
        }
    }

    /// Writes an object.
    pub fn json(&mut self, kind: &str, fields: Value) {
        self.out.json(&objects::object(kind, SystemTime::now(), fields));
        self.leave_if_unwritten();
    }

    /// Writes a line.
    pub fn line(&mut self, line: &[u8]) {
        self.out.line(line);
        self.leave_if_unwritten();
    }

    /// A listing cannot be stopped from within; when its reader has gone (`| head`) there is nothing left
    /// to do, and a verb that only reads leaves nothing behind that would have to be tidied. The others go
    /// on, and end with the error.
    fn leave_if_unwritten(&self) {
        if let (true, Err(error)) = (self.only_reads, self.out.check()) {
            output::error(&error, false);
            carrack_sys::host::exit_at_once(error.exit_code());
        }
    }

    /// Ends the verb: a summary in JSON, and the exit code.
    ///
    /// # Errors
    /// What standard output did not take.
    pub fn finish(self) -> Result<u8, CommandError> {
        self.finish_with(exit::DONE, json!({}))
    }

    /// The same, where it ends with `otherwise` if nothing has failed, and has more to say.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_with(mut self, otherwise: u8, mut more: Value) -> Result<u8, CommandError> {
        let exit_code = match exit_code(self.done, self.failed, &self.failures) {
            exit::DONE => otherwise,
            code => code,
        };
        if self.json {
            more["verb"] = self.verb.into();
            more["exit_code"] = exit_code.into();
            more["done"] = self.done.into();
            more["failed"] = self.failed.into();
            self.json("summary", more);
        }
        self.out.finish()?;
        Ok(exit_code)
    }
}

/// If nothing went well and all failed for one reason, that reason; else "some failed".
fn exit_code(done: u64, failed: u64, failures: &[Failure]) -> u8 {
    let mut codes = failures.iter().map(|failure| exit::of_code(failure.code));
    match codes.next() {
        Some(first) if done == 0 && codes.all(|code| code == first) => first,
        _ => exit::of_items(failed, 0, failures),
    }
}

fn is_stop(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::Interrupted | ErrorCode::Terminated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::report::Side;

    #[test]
    fn exit_codes_of_several_locations() {
        use ErrorCode as E;
        let cases: &[(u64, &[ErrorCode], u8)] = &[
            (1, &[], exit::DONE),
            (0, &[], exit::DONE),
            (0, &[E::NotFound], exit::FILE),
            (0, &[E::NotFound, E::NotEmpty], exit::FILE),
            (0, &[E::NotFound, E::ConnectFailed], exit::PARTIAL),
            (1, &[E::NotFound], exit::PARTIAL),
            (0, &[E::AuthenticationFailed], exit::AUTHENTICATION),
        ];
        for (done, codes, expected) in cases {
            let failures: Vec<Failure> = codes.iter().map(|code| Failure::new(*code, Side::Source, "")).collect();
            assert_eq!(exit_code(*done, failures.len() as u64, &failures), *expected, "{done} {codes:?}");
        }
    }
}
