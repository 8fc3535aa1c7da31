//! `carrack doctor`: what is wrong with a host, or with a pair, and the line that mends it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use carrack_core::evidence::EvidenceText;
use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::report::Event;
use carrack_core::request::{EndOptions, Reach};
use carrack_doctor::{Severity, Wish};
use carrack_sys::facts::{FactText, write_tree};
use clap::Command;
use serde_json::json;

use super::context::context;
use super::copy::options::{DATA_ADDRESS, DESTINATION_TOKEN_FILE, PORTS, SOURCE_TOKEN_FILE, credentials};
use super::reach::{self, JSON, QUIET};
use crate::cli::duration::parse_timeout;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::size::parse_rate;
use crate::doctor::{Diagnosis, DoctorRequest, examine, objects, page, terminal};
use crate::error::CommandError;
use crate::output::lines::Lines;
use crate::output::{format, human, json as with_type, say};
use crate::slim;

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
const ALL: Switch = Switch::short('a', "all", "Also list what is as it should be");

const HTML: Value<Vec<u8>> =
    Value::path("html", "OUT", "Write a page to OUT instead; - is standard output. The page loads nothing");
const RECORD: Value<Vec<u8>> = Value::path(
    "record",
    "DIR",
    "Also write what the hosts said to DIR, a file for each text, for somebody else to look at",
);

const NOTES: &str = "\
HOST is host: or host:DIRECTORY for ssh, carrack://host for a node, or a directory of this host. Without HOST
this host is examined; with one, both and the path between them; with two, those. Nothing is changed anywhere.

Each finding says what was found, what should be, what that costs on this path, the line that mends it, and on what
the threshold rests. Where something cannot be known, it says so. docs/doctor.md has every rule with its reason.

The path is measured for some ten seconds: it is full for three of them each way.

The exit code is 0 if there is nothing to mend, 1 for warnings, and 3 for failures.";

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("doctor")
        .about("Find what is wrong with a host, or with two and the path between them, and what mends it")
        .after_help(NOTES)
        .arg(HOST.arg().help("Host to examine together with this one, or a directory of this host"))
        .arg(HOST2.arg().help("Another host: then HOST and this one are examined"))
        .args([RATE.arg(), STREAMS.arg(), RTT.arg(), NO_MEASURE.arg(), ALL.arg(), HTML.arg(), RECORD.arg()])
        .args(reach::args())
        .args(
            [SOURCE_TOKEN_FILE.arg(), DESTINATION_TOKEN_FILE.arg(), PORTS.arg(), DATA_ADDRESS.arg()]
                .map(|arg| arg.help_heading("Hosts")),
        )
        .args([QUIET, JSON].map(|flag| flag.arg().help_heading("Output")))
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
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
    let request = request(flags, near, far)?;
    let html = flags.get(&HTML)?;
    if flags.has(&JSON) && html.as_deref() == Some(b"-") {
        return Err(CommandError::usage("--json and --html=- both write to standard output"));
    }
    let (as_json, quiet) = (flags.has(&JSON), flags.has(&QUIET));
    let observer = move |event: Event| {
        if !quiet && !as_json {
            human::event(&event, 0).iter().for_each(|line| say(line));
        }
    };
    let diagnosis = examine(&request, &context(), &observer)?;
    if let Some(directory) = flags.get(&RECORD)? {
        record(&diagnosis, &directory)?;
    }
    if let Some(out) = &html {
        super::report::write(out, &page::page(&diagnosis, &format::rfc3339(SystemTime::now())))?;
    }
    let mut out = Lines::stdout(as_json);
    if as_json {
        let time = SystemTime::now();
        for finding in &diagnosis.findings {
            out.json(&with_type::object("finding", time, objects::finding(finding, &diagnosis)));
        }
        let (ok, failed) = (diagnosis.count(Severity::Ok), diagnosis.count(Severity::Failure));
        let (exit_code, warnings) = (diagnosis.exit_code(), diagnosis.count(Severity::Warning));
        let fields = json!({ "verb": "doctor", "exit_code": exit_code, "done": ok, "failed": failed + warnings });
        out.json(&with_type::object("summary", time, fields));
    } else if html.is_none() {
        terminal::lines(&diagnosis, flags.has(&ALL)).iter().for_each(|line| out.line(line.as_bytes()));
    }
    out.finish()?;
    Ok(diagnosis.exit_code())
}

/// Writes the evidence of each host to a directory of its own.
fn record(diagnosis: &Diagnosis, directory: &[u8]) -> Result<(), CommandError> {
    for (name, evidence) in &diagnosis.evidence {
        let texts: Vec<(String, FactText)> =
            evidence.iter().map(|(name, text)| (name.to_owned(), fact(text))).collect();
        let below = Path::new(OsStr::from_bytes(directory)).join(name);
        write_tree(&below, &texts).map_err(|error| CommandError::file("cannot write", directory, &error))?;
    }
    Ok(())
}

fn fact(text: &EvidenceText) -> FactText {
    match text {
        EvidenceText::Found(text) => FactText::Found(text.clone()),
        EvidenceText::Absent => FactText::Absent,
        EvidenceText::Denied => FactText::Denied,
        EvidenceText::Failed(why) => FactText::Failed(why.clone()),
    }
}

fn request(flags: &Flags, near: Location, far: Option<Location>) -> Result<DoctorRequest, CommandError> {
    let second = far.clone().unwrap_or_else(|| near.clone());
    let (first, second) = credentials(flags, std::slice::from_ref(&near), &second)?;
    let reach = Reach { ports: flags.get(&PORTS)?, data_address: flags.get(&DATA_ADDRESS)?, ..reach::reach(flags)? };
    let reach = Reach { push: slim::push(reach.push), ..reach };
    let end = |credential| EndOptions { credential, reach: reach.clone() };
    let wish = Wish {
        rate: flags.get(&RATE)?.flatten().map(|rate| rate as f64),
        streams: flags.get(&STREAMS)?,
        round_trip: flags.get(&RTT)?,
    };
    let measures = !flags.has(&NO_MEASURE);
    Ok(DoctorRequest { near: (near, end(first)), far: far.map(|far| (far, end(second))), wish, measures })
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
