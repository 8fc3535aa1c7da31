//! `carrack doctor`: what is wrong with a host, or with a pair, and the line that mends it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::report::Event;
use carrack_core::request::{EndOptions, Reach};
use carrack_doctor::{Severity, Wish};
use clap::Command;
use serde_json::json;

use super::context::context;
use super::copy::options::{DATA_ADDRESS, DESTINATION_TOKEN_FILE, PORTS, SOURCE_TOKEN_FILE, credentials};
use super::reach::{self, JSON, QUIET};
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::size::parse_rate;
use crate::doctor::change::{self, FixOptions};
use crate::doctor::{Diagnosis, DoctorRequest, examine, fix, objects, page, recorded, terminal};
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{format, human, json as with_type, say};
use carrack_core::duration::parse_timeout;

const HOST: Positional = Positional::one("host", "HOST");
const HOST2: Positional = Positional::one("host2", "HOST2");
const RATE: Value<Option<u64>> = Value::new(
    "rate",
    "RATE",
    parse_rate,
    "Bytes a second that the path should carry, like 1.2GB [default: what the slower interface carries]",
);
const STREAMS: Value<u16> =
    Value::new("streams", "N", parse_streams, "Data connections of the copies that matter [default: 8]");
const RTT: Value<Duration> = Value::new(
    "rtt",
    "TIME",
    parse_timeout,
    "Round trip of the path that matters, where no HOST is there to be measured",
);
const NO_MEASURE: Switch = Switch::new("no-measure", "Send nothing over the path but what it takes to ask");
const MEASURE_HOST: Switch = Switch::new(
    "measure-host",
    "Also write and read in the directory for up to 10 seconds each, and measure what a processor hashes and encrypts",
);
const FIX: Switch = Switch::new(
    "fix",
    "Set the kernel parameters that are named for this host, now and for every boot, and measure what that brings",
);
const LABEL: Value<String> =
    Value::new("label", "LABEL", parse_label, "Name under which --fix keeps the state before it [default: the time]");
const WITH_QDISC: Switch = Switch::new("with-qdisc", "Let --fix set the default queueing discipline as well");
const DIFF: Value<String> = Value::new(
    "diff",
    "LABEL",
    parse_label,
    "Show what is not as it was before the fix of this name, and change nothing",
);
const UNDO: Value<String> =
    Value::new("undo", "LABEL", parse_label, "Restore what there was before the fix of this name");
const ALL: Switch = Switch::short('a', "all", "Also list what is as it should be");

const HTML: Value<Vec<u8>> =
    Value::path("html", "OUT", "Write a page to OUT instead; - is standard output. The page loads nothing");
const RECORD: Value<Vec<u8>> = Value::path(
    "record",
    "DIR",
    "Also write what the hosts said to DIR, a file for each text, for somebody else to look at",
);
const READ: Value<Vec<u8>> =
    Value::path("read", "DIR", "In place of hosts, examine what --record has written to DIR, here or elsewhere");

const NOTES: &str = "\
HOST is host: or host:DIRECTORY for ssh, carrack://host for a node, or a directory of this host. Without HOST
this host is examined; with one, both and the path between them; with two, those. Nothing is changed anywhere,
unless --fix says so, and then on this host only.

Each finding says what was found, what should be, what that costs on this path, the line that mends it, and on what
the threshold rests. Where something cannot be known, it says so. docs/doctor.md has every rule with its reason.

The path is measured for some ten seconds: it is full for three of them each way.

The exit code is 0 if there is nothing to mend, 1 for warnings, and 3 for failures.";

/// What clap knows of it.
pub fn command() -> Command {
    let of_hosts = [HOST.name, HOST2.name, FIX.name, DIFF.name, UNDO.name, NO_MEASURE.name, MEASURE_HOST.name];
    Command::new("doctor")
        .about("Find what is wrong with a host, or with two and the path between them, and what mends it")
        .after_help(NOTES)
        .arg(HOST.arg().help("Host to examine together with this one, or a directory of this host"))
        .arg(HOST2.arg().help("Another host: then HOST and this one are examined"))
        .args([RATE.arg(), STREAMS.arg(), RTT.arg(), NO_MEASURE.arg(), MEASURE_HOST.arg(), ALL.arg()])
        .args([HTML.arg(), RECORD.arg(), READ.arg().conflicts_with_all(of_hosts)])
        .args([FIX.arg(), LABEL.arg(), WITH_QDISC.arg(), DIFF.arg(), UNDO.arg()].map(|arg| arg.help_heading("Mending")))
        .args(reach::args())
        .args(
            [SOURCE_TOKEN_FILE.arg(), DESTINATION_TOKEN_FILE.arg(), PORTS.arg(), DATA_ADDRESS.arg()]
                .map(|arg| arg.help_heading("Hosts")),
        )
        .args([QUIET, JSON].map(|flag| flag.arg().help_heading("Output")))
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let mut host = change::this_host();
    match (flags.get(&DIFF)?, flags.get(&UNDO)?, flags.has(&FIX)) {
        (None, None, _) => diagnose(flags),
        (Some(label), None, false) => told(flags, "diff", &change::difference(&host, &label)?),
        (None, Some(label), false) => told(flags, "undo", &change::undo(&mut host, &label)?),
        _ => Err(CommandError::usage("only one of --fix, --diff and --undo can be done at a time")),
    }
}

fn told(flags: &Flags, action: &str, change: &change::HostChange) -> Result<u8, CommandError> {
    let mut out = Lines::stdout(flags.has(&JSON));
    change::tell(action, change, &mut out, flags.has(&JSON));
    if !flags.has(&JSON) && change.settings.is_empty() {
        out.line(b"everything is as it was");
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// The hosts that are examined.
fn places(flags: &Flags) -> Result<(Location, Option<Location>), CommandError> {
    let is_named = |host: &Positional| flags.words(host).next().is_some();
    let here = || Location::Local(b".".to_vec());
    let (near, far) = match (is_named(&HOST), is_named(&HOST2)) {
        (false, _) => (here(), None),
        (true, false) => match flags.location(&HOST)? {
            own @ Location::Local(_) => (own, None),
            host => (here(), Some(host)),
        },
        (true, true) => (flags.location(&HOST)?, Some(flags.location(&HOST2)?)),
    };
    for place in [Some(&near), far.as_ref()].into_iter().flatten() {
        if !matches!(place, Location::Local(_) | Location::Ssh { .. } | Location::Node { .. }) {
            let hint = "use host: for ssh, carrack://host for a node, or a directory of this host";
            return Err(CommandError::usage(format!("{place} names no host")).hint(hint));
        }
    }
    Ok((near, far))
}

fn diagnose(flags: &Flags) -> Result<u8, CommandError> {
    let (near, far) = places(flags)?;
    let request = request(flags, near, far)?;
    let html = flags.get(&HTML)?;
    if flags.has(&JSON) && html.as_deref() == Some(b"-") {
        return Err(CommandError::usage("--json and --html=- both write to standard output"));
    }
    if flags.has(&FIX) && html.as_deref() == Some(b"-") {
        return Err(CommandError::usage("--fix and --html=- both write to standard output"));
    }
    let (as_json, quiet) = (flags.has(&JSON), flags.has(&QUIET));
    let observer = move |event: Event| {
        if !quiet && !as_json {
            human::event(&event, 0).iter().for_each(|line| say(line));
        }
    };
    let context = context();
    let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
    let situation = match flags.get(&READ)? {
        None => examine(&request, &context, &observer)?,
        Some(from) => recorded::read(&path(&from), request.wish)
            .map_err(|error| CommandError::file("cannot read what was recorded in", &from, &error))?,
    };
    let diagnosis = Diagnosis::of(&situation);
    if let Some(to) = flags.get(&RECORD)? {
        recorded::write(&situation, &path(&to)).map_err(|error| CommandError::file("cannot write", &to, &error))?;
    }
    if let Some(out) = &html {
        super::report::write(out, &page::page(&diagnosis, &format::rfc3339(SystemTime::now())))?;
    }
    let mut out = Lines::stdout(as_json);
    if as_json {
        let object = |finding| with_type::object("finding", SystemTime::now(), objects::finding(finding, &diagnosis));
        diagnosis.findings.iter().for_each(|finding| out.json(&object(finding)));
    } else if html.is_none() {
        terminal::lines(&diagnosis, flags.has(&ALL)).iter().for_each(|line| out.line(line.as_bytes()));
    }
    if flags.has(&FIX) {
        let options = FixOptions { label: flags.get(&LABEL)?, with_queueing: flags.has(&WITH_QDISC) };
        match change::fix(&request, &context, &observer, &situation, &options)? {
            Some(change) => change::tell("fix", &change, &mut out, as_json),
            None if as_json => {}
            None => out.line(b"--fix has nothing to set on this host"),
        }
    }
    if as_json {
        out.json(&summary(&diagnosis));
    }
    out.finish()?;
    Ok(diagnosis.exit_code())
}

fn summary(diagnosis: &Diagnosis) -> serde_json::Value {
    let (ok, failed) = (diagnosis.count(Severity::Ok), diagnosis.count(Severity::Failure));
    let (exit_code, warnings) = (diagnosis.exit_code(), diagnosis.count(Severity::Warning));
    let fields = json!({ "verb": "doctor", "exit_code": exit_code, "done": ok, "failed": failed + warnings });
    with_type::object("summary", SystemTime::now(), fields)
}

fn parse_label(text: &str) -> Result<String, String> {
    if fix::is_label(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is no label: use letters, digits, . _ and -"))
    }
}

fn request(flags: &Flags, near: Location, far: Option<Location>) -> Result<DoctorRequest, CommandError> {
    let second = far.clone().unwrap_or_else(|| near.clone());
    let (first, second) = credentials(flags, std::slice::from_ref(&near), &second)?;
    let reach = Reach { ports: flags.get(&PORTS)?, data_address: flags.get(&DATA_ADDRESS)?, ..reach::reach(flags)? };
    let end = |credential| EndOptions { credential, reach: reach.clone(), ..EndOptions::default() };
    let wish = Wish {
        rate: flags.get(&RATE)?.flatten().map(|rate| rate as f64),
        streams: flags.get(&STREAMS)?,
        round_trip: flags.get(&RTT)?,
    };
    let (measures, measures_host) = (!flags.has(&NO_MEASURE), flags.has(&MEASURE_HOST));
    let (near, far) = ((near, end(first)), far.map(|far| (far, end(second))));
    Ok(DoctorRequest { near, far, wish, measures, measures_host })
}

fn parse_streams(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(streams) if (1..=limits::STREAMS).contains(&streams) => Ok(streams),
        _ => Err(format!("{text:?} is not a number of streams: use 1 to {}", limits::STREAMS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_bounds() {
        assert_eq!((parse_streams("1"), parse_streams("256")), (Ok(1), Ok(256)));
        assert!(["0", "257", "x", ""].iter().all(|text| parse_streams(text).is_err()));
    }
}
