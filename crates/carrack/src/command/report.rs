//! `carrack report`: what the file of `--timeline` shows, in a terminal or as a page.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};
use clap::Command;
use serde_json::json;

use super::reach::JSON;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::part_file::OutputFile;
use crate::output::plot::text::Paper;
use crate::output::timeline::read::{self, ReadError, Recording};
use crate::output::timeline::view::View;
use crate::output::timeline::{objects, page, phases, start, terminal};
use crate::output::{json as with_type, stream};

const FILE: Positional = Positional::one("file", "FILE");
const HTML: Value<Vec<u8>> =
    Value::path("html", "OUT", "Write a page with plots to OUT instead; - is standard output. The page loads nothing");
const ASCII: Switch = Switch::new("ascii", "Use no characters beyond ASCII [default: as the locale says]");

/// Columns of the lines that are printed: as many as every terminal has.
const COLUMNS: usize = 80;

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("report")
        .about("Show the timeline of a copy: what both ends measured, and what limited the rate")
        .after_help(
            "Examples:\n  \
             carrack --timeline run42.timeline run42 cluster:/scratch/\n  \
             carrack report run42.timeline\n  \
             carrack report run42.timeline --html run42.html\n\n\
             The file of a copy that is still running, or that was killed, is shown up to its last whole line.",
        )
        .arg(FILE.arg().required(true).help("File that `carrack copy --timeline FILE` wrote; - is standard input"))
        .args([HTML.arg(), ASCII.arg(), JSON.arg()])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some(file) = flags.words(&FILE).next() else {
        return Err(CommandError::usage("report needs a file"));
    };
    let (html, json) = (flags.get(&HTML)?, flags.has(&JSON));
    if json && html.as_deref() == Some(b"-") {
        return Err(CommandError::usage("--json and --html=- both write to standard output"));
    }
    let recording = recording(file)?;
    let view = View::of(&recording);
    if let Some(out) = &html {
        write(out, &page::page(&view))?;
    }
    if json {
        objects(&view)?;
    } else if html.is_none() {
        let paper = Paper { columns: COLUMNS, is_ascii: flags.has(&ASCII) || !is_utf8_locale() };
        let mut out = Lines::stdout(false);
        terminal::lines(&view, paper).iter().for_each(|line| out.line(line.as_bytes()));
        out.finish()?;
    }
    Ok(exit::DONE)
}

fn recording(file: &OsString) -> Result<Recording, CommandError> {
    let (name, input): (&[u8], std::io::Result<Box<dyn Read>>) = match file.as_bytes() {
        b"-" => (b"standard input", stream::input().map(|input| Box::new(input) as Box<dyn Read>)),
        path => (path, File::open(file).map(|file| Box::new(file) as Box<dyn Read>)),
    };
    let cannot = |error: &std::io::Error| CommandError::file("cannot read", name, error);
    let input = input.map_err(|error| cannot(&error))?;
    read::read(BufReader::new(input)).map_err(|error| match error {
        ReadError::Io(error) => cannot(&error),
        wrong @ ReadError::Line { .. } => {
            let message = format!("{}: {wrong}", display_bytes(name));
            CommandError::from(Failure::new(ErrorCode::Usage, Side::Command, message))
                .hint("give a file that --timeline has written")
        }
    })
}

/// Writes the page; a file gets its name when it is whole.
pub(super) fn write(out: &[u8], page: &str) -> Result<(), CommandError> {
    if out == b"-" {
        return stream::print(page.as_bytes());
    }
    let written = OutputFile::create(out).and_then(|mut file| {
        file.write_all(page.as_bytes())?;
        file.publish()
    });
    written.map_err(|error| CommandError::file("cannot write the page", out, &error))
}

fn objects(view: &View<'_>) -> Result<(), CommandError> {
    let mut out = Lines::stdout(false);
    let time = SystemTime::now();
    out.json(&with_type::object("report", time, objects::report(view)));
    for step in start::rows(view.recording) {
        out.json(&with_type::object("step", time, step.fields()));
    }
    for phase in phases::phases(view) {
        out.json(&with_type::object("phase", time, objects::phase(&phase)));
    }
    let summary = json!({ "verb": "report", "exit_code": exit::DONE, "done": 1, "failed": 0 });
    out.json(&with_type::object("summary", time, summary));
    out.finish()
}

/// Whether the user's locale has UTF-8, by the variables that decide it, in their order.
fn is_utf8_locale() -> bool {
    let set = |name: &&str| std::env::var_os(name).filter(|value| !value.is_empty());
    ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).is_some_and(is_utf8)
}

fn is_utf8(locale: OsString) -> bool {
    let locale = locale.into_vec().to_ascii_lowercase();
    [&b"utf-8"[..], b"utf8"].iter().any(|name| locale.windows(name.len()).any(|part| part == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_with_utf8_is_known_in_its_spellings() {
        for (locale, is_one) in
            [("C.UTF-8", true), ("de_DE.utf8", true), ("C", false), ("POSIX", false), ("en_US.ISO-8859-1", false)]
        {
            assert_eq!(is_utf8(locale.into()), is_one, "{locale}");
        }
    }
}
