//! How a measurement is shown while it runs and at its end, and that it is kept: the same for every kind.

use std::io::Write;
use std::time::SystemTime;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::words;
use carrack_engine::io_failure;
use carrack_measure::error::Error;
use carrack_measure::result::{Measurement, Row, Warning};
use clap::Command;
use serde_json::json;

use crate::bench::table::Table;
use crate::bench::{bonnie, csv, document, each_second, fio, html, iperf3, kept, ladder, load, net, table};
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::command::reach::{JSON, QUIET};
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::part_file::OutputFile;
use crate::output::{format, json as objects, say};

words! {
    /// How numbers are printed.
    pub enum Format {
        Table "table" "a table for people"
        Csv "csv" "a line for each row, with a heading"
        Bonnie "bonnie" "bonnie++'s line, for bon_csv2html"
        Fio "fio-json+" "fio's JSON with the bins of all times, for fio_jsonplus_clat2csv"
        Iperf3 "iperf3" "iperf3's JSON, a document for each test"
    }
}

const FORMAT: Value<Format> = Value::word("format", "FORMAT", Format::ALL, "[default: table]");
/// The same flag of what measures storage.
const DISK_FORMAT: Value<Format> =
    Value::word("format", "FORMAT", &[Format::Table, Format::Csv, Format::Bonnie, Format::Fio], "[default: table]");
/// The same flag of what measures a network.
const NETWORK_FORMAT: Value<Format> =
    Value::word("format", "FORMAT", &[Format::Table, Format::Csv, Format::Iperf3], "[default: table]");
/// The same flag of what measures something else: other programs' forms have no place for it.
const PLAIN_FORMAT: Value<Format> = Value::word("format", "FORMAT", &[Format::Table, Format::Csv], "[default: table]");
const HTML: Value<Vec<u8>> = Value::path("html", "FILE", "Write a page with plots to FILE as well");
const NO_KEEP: Switch = Switch::new("no-keep", "Do not keep the result");

/// Adds the flags of a verb that shows a result that was kept.
pub fn with_formats(verb: Command) -> Command {
    verb.args([FORMAT.arg(), HTML.arg()].map(|arg| arg.help_heading("Output")))
}

/// Adds the flags of a verb that measures storage.
pub fn with_output(verb: Command) -> Command {
    with_output_of(verb, &DISK_FORMAT)
}

/// Adds the flags of a verb that measures something else.
pub fn with_plain_output(verb: Command) -> Command {
    with_output_of(verb, &PLAIN_FORMAT)
}

/// Adds the flags of a verb that measures a network.
pub fn with_network_output(verb: Command) -> Command {
    with_output_of(verb, &NETWORK_FORMAT)
}

fn with_output_of(verb: Command, format: &Value<Format>) -> Command {
    verb.args([format.arg(), HTML.arg(), NO_KEEP.arg()].map(|arg| arg.help_heading("Output")))
}

/// Whether iperf3's JSON was asked for, of which programs expect one document.
///
/// # Errors
/// A format that there is not.
pub fn wants_iperf3(flags: &Flags) -> Result<bool, CommandError> {
    Ok(flags.get(&FORMAT)? == Some(Format::Iperf3))
}

/// Shows rows as they come, and the whole at the end.
pub struct BenchOutput {
    format: Format,
    json: bool,
    quiet: bool,
    keep: bool,
    page: Option<Page>,
    out: Lines,
    table: Table,
    /// A line for each second is shown below a row.
    seconds: bool,
}

impl BenchOutput {
    /// Opens what is written to, before anything is measured.
    ///
    /// # Errors
    /// A flag that does not go with another, or a file that cannot be written.
    pub fn open(flags: &Flags, keep: bool) -> Result<Self, CommandError> {
        let (format, json) = (flags.get(&FORMAT)?, flags.has(&JSON));
        if json && format.is_some() {
            return Err(CommandError::usage("--json and --format: choose one of them"));
        }
        let page = flags.given(&HTML).map(|given| Page::create(given.value)).transpose()?;
        let out = Lines::stdout(true);
        out.check()?;
        let format = format.unwrap_or(Format::Table);
        Ok(Self { format, json, quiet: flags.has(&QUIET), keep, page, out, table: Table::default(), seconds: false })
    }

    /// The same for a verb that measures, which may be told not to keep the result.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn of_measuring(flags: &Flags) -> Result<Self, CommandError> {
        Self::open(flags, !flags.has(&NO_KEEP))
    }

    /// From now on a line for each second is shown below each row that has them.
    pub fn show_seconds(&mut self, seconds: bool) {
        self.seconds = seconds;
    }

    /// Tells a person something, and a program that reads JSON.
    pub fn note(&mut self, text: &str) {
        if self.json {
            self.out.json(&objects::object("note", SystemTime::now(), json!({ "message": text })));
        } else if !self.quiet {
            say(&format!("note: {text}"));
        }
    }

    /// Shows a doubt about all rows.
    pub fn warning(&mut self, warning: &Warning) {
        self.note(&warning.text);
    }

    /// Shows a row. What is one document in the end waits for the end.
    pub fn row(&mut self, row: &Row) {
        if self.json {
            self.out.json(&objects::object("row", SystemTime::now(), document::row_in_short(row)));
        } else if self.format == Format::Table {
            let seconds = if self.seconds { each_second::lines(row) } else { Vec::new() };
            for line in self.table.row(row).into_iter().chain(seconds) {
                self.out.line(line.as_bytes());
            }
        }
    }

    /// Shows what was not shown row by row, keeps the result, and ends the output.
    ///
    /// # Errors
    /// What could not be written or kept.
    pub fn finish(self, measured: &Measurement) -> Result<u8, CommandError> {
        self.finish_with(measured, None)
    }

    /// The same for a measurement of which something is missing, and why. It is kept if it has any number; the command
    /// ends with the failure.
    ///
    /// # Errors
    /// As [`Self::finish`], and the failure.
    pub fn finish_with(self, measured: &Measurement, failure: Option<Failure>) -> Result<u8, CommandError> {
        let keep = failure.is_none() || net::has_numbers(measured);
        let failure = failure.map(CommandError::from);
        let exit_code = failure.as_ref().map_or(exit::DONE, CommandError::exit_code);
        self.finish_and(measured, exit_code, keep)?;
        failure.map_or(Ok(exit_code), Err)
    }

    /// The same for a measurement that is whole and says by its exit code what it found.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_coded(self, measured: &Measurement, exit_code: u8) -> Result<u8, CommandError> {
        self.finish_and(measured, exit_code, true)?;
        Ok(exit_code)
    }

    fn finish_and(mut self, measured: &Measurement, exit_code: u8, keep: bool) -> Result<(), CommandError> {
        self.show_end(measured)?;
        if let Some(page) = self.page.take() {
            page.publish(measured)?;
        }
        let id = if self.keep && keep { Some(kept::keep(measured)?) } else { None };
        if self.json {
            let mut fields = json!({
                "verb": "bench",
                "exit_code": exit_code,
                "kind": measured.kind,
                "target": measured.target,
                "elapsed_seconds": measured.elapsed.as_secs_f64(),
                "rows": measured.rows.len(),
                "id": id,
            });
            if let Some(verdict) = ladder::verdict(measured) {
                fields["verdict"] = json!(verdict);
            }
            self.out.json(&objects::object("summary", SystemTime::now(), fields));
        } else if let Some(id) = id.filter(|_| !self.quiet) {
            say(&format!("kept as {id}, after {}", format::duration(measured.elapsed)));
        }
        self.out.finish()
    }

    /// A result of one kind that was asked for in the form of another.
    fn unfit(&self, measured: &Measurement) -> CommandError {
        let message = format!("--format {}: this is a result of bench {}", self.format.name(), measured.kind);
        CommandError::usage(message).hint("use table or csv")
    }

    /// What is shown once there are all rows.
    fn show_end(&mut self, measured: &Measurement) -> Result<(), CommandError> {
        match self.format {
            _ if self.json => {}
            Format::Table => {
                self.table.rest().iter().for_each(|line| self.out.line(line.as_bytes()));
                let legend = self.table.legend();
                if !legend.is_empty() {
                    self.out.line(b"");
                }
                legend.iter().for_each(|line| self.out.line(line.as_bytes()));
                if let Some(verdict) = ladder::verdict(measured) {
                    self.out.line(b"");
                    self.out.line(verdict.as_bytes());
                }
            }
            Format::Csv => {
                self.out.line(csv::heading().as_bytes());
                // Of hosts and of the crowd as a whole a line of numbers says nothing: the page and --json have them.
                let rows = measured.rows.iter().filter(|row| !load::rows::is_of_crowd(row));
                rows.for_each(|row| self.out.line(csv::row(row).as_bytes()));
            }
            Format::Bonnie | Format::Fio if measured.kind != "disk" => {
                return Err(self.unfit(measured));
            }
            Format::Iperf3 if measured.kind != "net" => return Err(self.unfit(measured)),
            Format::Iperf3 => {
                iperf3::documents(measured).iter().for_each(|one| self.out.line(format!("{one:#}").as_bytes()));
            }
            Format::Bonnie => self.out.line(bonnie::line(measured).as_bytes()),
            Format::Fio => self.out.line(format!("{:#}", fio::document(measured)).as_bytes()),
        }
        Ok(())
    }

    /// Shows the heading of a measurement that is over, and then all of it.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn whole(mut self, measured: &Measurement) -> Result<u8, CommandError> {
        if self.format == Format::Table && !self.json {
            let started = format::rfc3339_seconds(measured.started);
            let mut lines = table::headline(measured);
            lines.push(format!("{started}, {}", format::duration(measured.elapsed)));
            lines.push(String::new());
            lines.iter().for_each(|line| self.out.line(line.as_bytes()));
        }
        measured.rows.iter().for_each(|row| self.row(row));
        self.finish(measured)
    }
}

/// The file of a page: begun before anything is measured, and removed if nothing came of it.
struct Page {
    path: Vec<u8>,
    file: Option<OutputFile>,
}

impl Page {
    fn create(path: Vec<u8>) -> Result<Self, CommandError> {
        match OutputFile::create(&path) {
            Ok(file) => Ok(Self { path, file: Some(file) }),
            Err(error) => Err(CommandError::file("cannot write", &path, &error)),
        }
    }

    fn publish(mut self, measured: &Measurement) -> Result<(), CommandError> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let written = file.write_all(html::page(measured).as_bytes()).and_then(|()| file.publish());
        written.map_err(|error| CommandError::file("cannot write", &self.path, &error))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // What cannot be removed stays as FILE.part; the error that ended the measurement is told.
            let _ = file.discard();
        }
    }
}

/// An error of a measurement as the command tells it.
pub fn refused(error: Error) -> CommandError {
    let failure = |code, why: String| Failure::new(code, Side::Command, why);
    match error {
        Error::Stopped => match carrack_sys::signal::stop_requested() {
            Some(carrack_sys::signal::StopSignal::Terminate | carrack_sys::signal::StopSignal::Hangup) => {
                failure(ErrorCode::Terminated, "terminated".to_owned()).into()
            }
            _ => failure(ErrorCode::Interrupted, "interrupted".to_owned()).into(),
        },
        Error::NoRoom { needed, free } => {
            let why = format!(
                "the measurement would write {}, and {} are free: a tenth of them stays free",
                format::size_exact(needed),
                format::size_exact(free)
            );
            CommandError::from(failure(ErrorCode::NoSpace, why)).hint("give a smaller --size")
        }
        Error::Memory { .. } => {
            CommandError::usage(error.to_string()).hint("give a smaller --record, --depth or --threads")
        }
        Error::Impossible(why) => CommandError::usage(why),
        Error::System { what, source } => io_failure(Side::Command, what, &source).into(),
    }
}
