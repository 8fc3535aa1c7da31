//! `carrack bench list`, `show` and `diff`: results that were kept.

use std::borrow::Cow;
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use clap::Command;
use serde_json::{Value, json};

use super::shown::{BenchOutput, with_formats};
use crate::bench::diff::{self, Difference};
use crate::bench::kept::{self, Kept};
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::command::reach::JSON;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{format, json as objects, say};

const RESULT: Positional = Positional::one("result", "RESULT");
const OLD: Positional = Positional::one("old", "OLD");
const NEW: Positional = Positional::one("new", "NEW");

const NAMES: &str = "A RESULT is a name from carrack bench list, the beginning of one, or the path of a file.";

/// What clap knows of `list`.
pub fn list_command() -> Command {
    Command::new("list").visible_alias("ls").about("List the results that were kept, the oldest first")
}

/// What clap knows of `show`.
pub fn show_command() -> Command {
    let verb = Command::new("show")
        .about("Show a result that was kept")
        .after_help(NAMES)
        .arg(RESULT.arg().help("Name of the result [default: the last one]"));
    with_formats(verb)
}

/// What clap knows of `diff`.
pub fn diff_command() -> Command {
    Command::new("diff")
        .about("Compare two results, and the host at the time of each")
        .after_help(NAMES)
        .arg(OLD.arg().help("The earlier result [default: the last one of the same kind and place before NEW]"))
        .arg(NEW.arg().help("The later result [default: the last one]"))
}

fn all() -> Result<Vec<Kept>, CommandError> {
    kept::all(&mut |note| say(&format!("note: {note}")))
}

fn word(flags: &Flags, positional: &Positional) -> Option<String> {
    flags.words(positional).next().map(|word| word.to_string_lossy().into_owned())
}

/// Runs `list`.
pub fn list(flags: &Flags) -> Result<u8, CommandError> {
    let json = flags.has(&JSON);
    let mut out = Lines::stdout(json);
    for kept in all()? {
        let measured = &kept.measured;
        if json {
            let fields = json!({
                "id": kept.id,
                "kind": measured.kind,
                "target": measured.target,
                "started": format::rfc3339_seconds(measured.started),
                "rows": measured.rows.len(),
            });
            let fields = objects::with_path(fields, kept.path.as_os_str().as_encoded_bytes());
            out.json(&objects::object("result", SystemTime::now(), fields));
        } else {
            let target = display_bytes(measured.target.as_bytes());
            let rows = format::counted(measured.rows.len() as u64, "row", "rows");
            out.line(format!("{:<24} {rows:>10}  {target}", kept.id).as_bytes());
        }
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// Runs `show`.
pub fn show(flags: &Flags) -> Result<u8, CommandError> {
    let all = all()?;
    let kept = match word(flags, &RESULT) {
        Some(name) => kept::find(&all, &name)?,
        None => Cow::Borrowed(all.last().ok_or_else(none)?),
    };
    BenchOutput::open(flags, false)?.whole(&kept.measured)
}

fn none() -> CommandError {
    CommandError::usage("no result was kept yet").hint("carrack bench disk PATH measures and keeps one")
}

/// Runs `diff`.
pub fn diff(flags: &Flags) -> Result<u8, CommandError> {
    let all = all()?;
    let new = match word(flags, &NEW) {
        Some(name) => kept::find(&all, &name)?,
        None => Cow::Borrowed(all.last().ok_or_else(none)?),
    };
    let old = match word(flags, &OLD) {
        Some(name) => kept::find(&all, &name)?,
        None => Cow::Borrowed(before(&all, &new)?),
    };
    if old.measured.kind != new.measured.kind {
        let message = format!("{} is of {}, {} of {}", old.id, old.measured.kind, new.id, new.measured.kind);
        return Err(CommandError::usage(message));
    }
    let changes = diff::changes(&old.measured, &new.measured);
    let json = flags.has(&JSON);
    let mut out = Lines::stdout(json);
    if json {
        changes.iter().for_each(|change| out.json(&objects::object("change", SystemTime::now(), fields(change))));
    } else {
        out.line(format!("{} and {}", old.id, new.id).as_bytes());
        diff::lines(&changes).iter().for_each(|line| out.line(line.as_bytes()));
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// The last result before another, of the same kind and place.
fn before<'a>(all: &'a [Kept], new: &Kept) -> Result<&'a Kept, CommandError> {
    let is_like = |kept: &&Kept| {
        kept.id != new.id
            && kept.measured.started <= new.measured.started
            && (&kept.measured.kind, &kept.measured.target) == (&new.measured.kind, &new.measured.target)
    };
    all.iter().rfind(is_like).ok_or_else(|| {
        CommandError::usage(format!("no earlier result is like {}", new.id)).hint("carrack bench list shows all")
    })
}

fn fields(change: &Difference) -> Value {
    match change {
        Difference::Fact { name, old, new } => json!({ "what": "fact", "name": name, "old": old, "new": new }),
        Difference::Number { row, value, old, new } => json!({
            "what": "number",
            "name": value,
            "row": diff::called(row),
            "old": old,
            "new": new,
            "share": diff::share(*old, *new),
        }),
        Difference::Labels { row, old, new } => {
            json!({ "what": "labels", "name": diff::called(row), "old": old.join(" "), "new": new.join(" ") })
        }
        Difference::Only { row, is_new } => {
            let (old, new) = if *is_new { ("", "measured") } else { ("measured", "") };
            json!({ "what": "row", "name": diff::called(row), "old": old, "new": new })
        }
    }
}
