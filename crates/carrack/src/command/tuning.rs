//! `carrack tuning`: what copies have found about the ways between hosts, and begin with the next time.

use std::path::PathBuf;
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_engine::tuned::{FoundNumber, KeptWay, Knob, TuningFile};
use clap::Command;
use serde_json::json;

use super::reach::JSON;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::directories::state_directory;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{format, json as objects, say};

const ONE: Positional = Positional::one("one", "HOST");
const OTHER: Positional = Positional::one("other", "HOST");

/// What clap knows of it.
pub fn command() -> Command {
    let host = |positional: Positional, help| positional.arg().help(help);
    let of = |command: Command| {
        command
            .arg(host(ONE, "A host, as carrack tuning show names it; without it, all pairs"))
            .arg(host(OTHER, "The other host of the pair; the order does not matter"))
    };
    let show = Command::new("show").about("Show what is kept: from, to, link, number, rate, and when it was found");
    let clear = Command::new("clear").about("Forget it, of one pair of hosts or of all");
    Command::new("tuning")
        .about("Show or forget what copies have found, and begin with the next time")
        .after_help(
            "A copy between two hosts keeps the number of streams that it found best. The next copy over the same\n\
             kind of link, in the same direction, begins with it. A copy with --streams, --bwlimit, --congestion or\n\
             --polite neither reads nor keeps anything.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(JSON.arg().global(true))
        .subcommands([of(show), of(clear)])
}

/// The file that keeps it.
pub fn path() -> PathBuf {
    state_directory().join("tuning")
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("tuning needs show or clear"));
    };
    let json = flags.has(&JSON);
    let hosts: Vec<String> = [&ONE, &OTHER].into_iter().filter_map(|one| host(&flags, one)).collect();
    let pair = match &hosts[..] {
        [] => None,
        [one, other] => Some((&one[..], &other[..])),
        _ => return Err(CommandError::usage("a pair is two hosts").hint("carrack tuning show names them")),
    };
    let file = TuningFile::new(path());
    match action {
        "show" => show(&file, pair, json)?,
        _ => clear(&file, pair, json)?,
    }
    Ok(exit::DONE)
}

fn host(flags: &Flags, positional: &Positional) -> Option<String> {
    flags.words(positional).next().map(|word| word.to_string_lossy().to_ascii_lowercase())
}

fn show(file: &TuningFile, pair: Option<(&str, &str)>, json: bool) -> Result<(), CommandError> {
    let mut entries = file.entries().map_err(|why| unusable(&why.to_string()))?;
    entries.retain(|(way, _)| pair.is_none_or(|pair| way.is_between(pair)));
    entries.sort_by(|(one, of_one), (other, of_other)| (one, of_one.knob.name()).cmp(&(other, of_other.knob.name())));
    let mut out = Lines::stdout(json);
    for (way, found) in &entries {
        if json {
            let fields = json!({
                "from": way.from, "to": way.to, "link": way.link, "knob": found.knob.name(), "number": found.number,
                "rate": found.rate, "found": time(found),
            });
            out.json(&objects::object("tuning", SystemTime::now(), fields));
        } else {
            out.line(line(way, found).as_bytes());
        }
    }
    if entries.is_empty() && !json {
        say("nothing is kept");
    }
    out.finish()
}

fn line(way: &KeptWay, found: &FoundNumber) -> String {
    let (what, rate) = match found.knob {
        Knob::Streams => {
            (format::counted(found.number.into(), "stream", "streams"), format::rate_bytes(found.rate as f64))
        }
        knob => {
            let what = format!("{} to {}", format::counted(found.number.into(), "worker", "workers"), knob.name());
            (what, format!("{} files/s", format::count(found.rate)))
        }
    };
    let KeptWay { from, to, link } = way;
    let hosts = [from, to, link].map(|word| display_bytes(word.as_bytes()).to_string());
    format!("{} to {}, {}: {what}, {rate}, found {}", hosts[0], hosts[1], hosts[2], time(found))
}

fn time(found: &FoundNumber) -> String {
    format::rfc3339_seconds(i64::try_from(found.at).unwrap_or(0))
}

fn clear(file: &TuningFile, pair: Option<(&str, &str)>, json: bool) -> Result<(), CommandError> {
    let count = file.forget(pair).map_err(|why| unusable(&why))?;
    if !json {
        say(&format!("{} forgotten", format::counted(count as u64, "number is", "numbers are")));
        return Ok(());
    }
    let mut out = Lines::stdout(true);
    out.json(&objects::object("tuning-cleared", SystemTime::now(), json!({ "numbers": count })));
    out.finish()
}

fn unusable(why: &str) -> CommandError {
    let why = std::io::Error::other(why.to_owned());
    CommandError::file("cannot use", path().as_os_str().as_encoded_bytes(), &why)
        .hint("carrack tuning clear forgets all of it")
}
