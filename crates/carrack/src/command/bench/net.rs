//! `carrack bench net`: the path to a host, or between two, without storage.

use std::time::Duration;

use carrack_core::credential::Credential;
use carrack_core::location::{Location, parse_port};
use carrack_core::options::Streams;
use carrack_core::request::{CopyOptions, EndOptions, LinkSet, Reach};
use clap::Command;

use super::shown::{BenchOutput, wants_iperf3, with_network_output};
use crate::bench::net::plan::{NetChoice, NetMode, NetWay};
use crate::bench::net::theirs::{self, Iperf3Server, TheirRequest};
use crate::bench::net::{NetRequest, listening, measure};
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::option_flags::typed::CONGESTION;
use crate::command::context::context;
use crate::command::copy::options::{
    DATA_ADDRESS, DESTINATION_TOKEN_FILE, LINK, PORTS, SOURCE_TOKEN_FILE, credentials,
};
use crate::command::reach::{self, reach};
use crate::error::CommandError;
use carrack_core::duration::{parse_duration, parse_timeout};

const HOST: Positional = Positional::one("host", "HOST");
const HOST2: Positional = Positional::one("host2", "HOST2");
const STREAMS: Value<Option<u16>> = Value::new(
    "streams",
    "LIST",
    |text| Streams::parse(text).map(Streams::fixed),
    "Numbers of data connections, separated by commas; auto is what a copy chooses [default: 1,4,8]",
);
const MODES: Value<NetMode> = Value::word(
    "mode",
    "LIST",
    NetMode::ALL,
    "Several are separated by commas [default: the first with every number of streams, the others with the last]",
);
const WAYS: Value<NetWay> =
    Value::word("way", "LIST", NetWay::ALL, "Several are separated by commas [default: all, one after the other]");
const TIME: Value<Duration> = Value::new("time", "TIME", parse_time, "How long each row is measured [default: 3s]");
const OMIT: Value<Duration> =
    Value::new("omit", "TIME", parse_omit, "Warm-up of each row in whole seconds, which does not count [default: 1s]");
const DISCARD: Switch =
    Switch::new("discard", "In the clear, have the receiver's kernel throw the bytes away uncopied");
const NO_PATH: Switch = Switch::new("no-path", "Do not look for the routers on the way and the largest packet");
const ONLY_PATH: Switch =
    Switch::new("only-path", "Look for the routers on the way and the largest packet, and measure nothing");
const IPERF3: Value<Iperf3Server> = Value::new(
    "iperf3",
    "HOST",
    Iperf3Server::parse,
    "In place of HOST, ask an iperf3 server at HOST[:PORT], by the iperf3 that is installed here",
);
const IPERF3_LISTEN: Value<u16> = Value::new(
    "iperf3-listen",
    "PORT",
    |text| parse_port(text).filter(|port| *port > 0).ok_or_else(|| format!("{text:?} is not a port: use 1 to 65535")),
    "In place of HOST, wait at PORT for one test of somebody's iperf3 client, by the iperf3 that is installed here",
);
const EACH_SECOND: Switch = Switch::new(
    "each-second",
    "Below each row, a line for each second: bytes, segments sent again, window, round trip",
);
const TIME_DEFAULT: Duration = Duration::from_secs(3);
const OMIT_DEFAULT: Duration = Duration::from_secs(1);
/// A node ends a transfer after five minutes.
const TIME_MAX: Duration = Duration::from_secs(240);
const OMIT_MAX: Duration = Duration::from_secs(30);

const NOTES: &str = "\
HOST is host: for ssh, carrack://host for a node. One end makes zeros and the other takes them into memory, as
an application does, over the connections that a copy uses. clear, encrypted and verified show what encryption
and digests cost. Seconds and bytes are those of the receiver, retransmits, round trip and window those of the
sender. cpu A is the sender's program, cpu B the receiver's. p5: the rate of the slowest 5 % of seconds, as a
share of the mean. --format iperf3 measures one stream in the clear, there, unless something else is chosen.

First both ends look for the way to each other, as tracepath does: datagrams to UDP ports from 44444 on, and
what routers say of them. What nobody answers stays unknown.

With --iperf3 the far end is somebody's iperf3 server, as perfSONAR hosts have: retransmits, window and round
trip are what iperf3 tells. With --iperf3-listen it is somebody's iperf3 client, which then chooses direction,
streams and time: what it sends goes back. Its result is kept, shown and compared like any other.

A host that cannot be measured is a row with the reason, and the exit code is that of the reason.";

/// What clap knows of it.
pub fn command() -> Command {
    let of_iperf3 = [IPERF3.name, IPERF3_LISTEN.name];
    let host = HOST.arg().required_unless_present_any(of_iperf3).conflicts_with_all(of_iperf3);
    let chosen = [IPERF3.name, STREAMS.name, MODES.name, WAYS.name, TIME.name, OMIT.name, CONGESTION.name];
    let verb = Command::new("net")
        .about("Measure the path to a host, or from HOST to HOST2, from memory to memory")
        .after_help(NOTES)
        .arg(host.help("Host to measure the path to"))
        .arg(HOST2.arg().help("Second host: `there` then means from HOST to HOST2 [default: from here to HOST]"))
        .args([
            STREAMS.arg(),
            MODES.arg(),
            WAYS.arg(),
            TIME.arg(),
            OMIT.arg(),
            DISCARD.arg(),
            NO_PATH.arg(),
            ONLY_PATH.arg().conflicts_with_all(
                [&chosen[..], &[NO_PATH.name, DISCARD.name, EACH_SECOND.name, IPERF3_LISTEN.name]].concat(),
            ),
            CONGESTION.arg(),
            IPERF3.arg(),
            IPERF3_LISTEN.arg().conflicts_with_all([&chosen[..], &[NO_PATH.name, DISCARD.name, LINK.name]].concat()),
            EACH_SECOND.arg(),
        ])
        .args(reach::args())
        .args(
            [SOURCE_TOKEN_FILE.arg(), DESTINATION_TOKEN_FILE.arg(), PORTS.arg(), DATA_ADDRESS.arg(), LINK.arg()]
                .map(|arg| arg.help_heading("Hosts")),
        );
    with_network_output(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    if let Some(server) = flags.get(&IPERF3)? {
        return ask_iperf3(flags, server);
    }
    if let Some(port) = flags.get(&IPERF3_LISTEN)? {
        let mut shown = BenchOutput::of_measuring(flags)?;
        shown.show_seconds(flags.has(&EACH_SECOND));
        let (measured, failure) = listening::measure(port, &context(), &mut shown);
        return shown.finish_with(&measured, failure);
    }
    let host = flags.location(&HOST)?;
    let (from, to) = match flags.words(&HOST2).next() {
        Some(_) => (host, flags.location(&HOST2)?),
        None => (Location::Local(Vec::new()), host),
    };
    let is_third_party = flags.words(&HOST2).next().is_some();
    for place in [Some(&to), Some(&from).filter(|_| is_third_party)].into_iter().flatten() {
        check_host(place)?;
    }
    let credentials = credentials(flags, std::slice::from_ref(&from), &to)?;
    let request = NetRequest {
        from,
        to,
        options: options(flags, credentials)?,
        choice: choice(flags)?,
        time: flags.get(&TIME)?.unwrap_or(TIME_DEFAULT),
        warm_up: flags.get(&OMIT)?.unwrap_or(OMIT_DEFAULT),
        discard: flags.has(&DISCARD),
        // iperf3's document has no place for it.
        path: !flags.has(&NO_PATH) && !wants_iperf3(flags)?,
        only_path: flags.has(&ONLY_PATH),
    };
    if request.only_path && !request.path {
        return Err(CommandError::usage("--format iperf3 has no place for the way: leave --only-path out"));
    }
    let mut shown = BenchOutput::of_measuring(flags)?;
    shown.show_seconds(flags.has(&EACH_SECOND));
    let (measured, failure) = measure(&request, &context(), &mut shown);
    shown.finish_with(&measured, failure)
}

/// Nobody there has Carrack: what iperf3 measures is kept as a result of its own.
fn ask_iperf3(flags: &Flags, server: Iperf3Server) -> Result<u8, CommandError> {
    let choice = choice(flags)?;
    if choice.modes.iter().any(|mode| *mode != NetMode::Clear) || choice.ways.contains(&NetWay::Both) {
        return Err(CommandError::usage("an iperf3 server takes bytes in the clear, one way at a time"));
    }
    let request = TheirRequest {
        server,
        choice,
        time: flags.get(&TIME)?.unwrap_or(TIME_DEFAULT),
        warm_up: flags.get(&OMIT)?.unwrap_or(OMIT_DEFAULT),
        congestion: flags.get(&CONGESTION)?.map(|control| control.name().to_owned()),
    };
    let mut shown = BenchOutput::of_measuring(flags)?;
    shown.show_seconds(flags.has(&EACH_SECOND));
    let (measured, failure) = theirs::measure(&request, &context(), &mut shown);
    shown.finish_with(&measured, failure)
}

/// Programs that read iperf3's JSON expect one document, and so one test is usual there.
fn choice(flags: &Flags) -> Result<NetChoice, CommandError> {
    let mut choice = NetChoice { streams: flags.all(&STREAMS)?, modes: flags.all(&MODES)?, ways: flags.all(&WAYS)? };
    if wants_iperf3(flags)? {
        let NetChoice { streams, modes, ways } = &mut choice;
        streams.extend(streams.is_empty().then_some(Some(1)));
        modes.extend(modes.is_empty().then_some(NetMode::Clear));
        ways.extend(ways.is_empty().then_some(NetWay::There));
    }
    Ok(choice)
}

fn options(flags: &Flags, (source, destination): (Credential, Credential)) -> Result<CopyOptions, CommandError> {
    let reach = Reach { ports: flags.get(&PORTS)?, data_address: flags.get(&DATA_ADDRESS)?, ..reach(flags)? };
    let end = |credential| EndOptions { credential, reach: reach.clone(), ..EndOptions::default() };
    let default = CopyOptions::default();
    Ok(CopyOptions {
        congestion: flags.get(&CONGESTION)?,
        links: flags.get(&LINK)?.map_or(default.links, LinkSet::only),
        source: end(source),
        destination: end(destination),
        ..default
    })
}

fn check_host(place: &Location) -> Result<(), CommandError> {
    match place {
        Location::Ssh { .. } | Location::Node { .. } => Ok(()),
        Location::Local(path) => {
            let path = carrack_core::path::display_bytes(path);
            let hint = "use host: for ssh, or carrack://host for a node";
            Err(CommandError::usage(format!("{path} names no host")).hint(hint))
        }
        other => Err(CommandError::usage(format!("{other} names no host"))),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    match parse_timeout(text)? {
        time if time < Duration::from_secs(1) => Err(format!("{text:?} is too short to measure: use 1s or more")),
        time if time > TIME_MAX => Err(format!("{text:?} is too long: a row takes {} s at most", TIME_MAX.as_secs())),
        time => Ok(time),
    }
}

fn parse_omit(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        time if time > OMIT_MAX => Err(format!("{text:?} is too long: use {} s at most", OMIT_MAX.as_secs())),
        // Hosts tell what they have counted once a second.
        time if time.subsec_nanos() != 0 => Err(format!("{text:?} is not a whole number of seconds")),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_bounds() {
        let streams = |text: &str| STREAMS.read(text.into());
        assert_eq!((streams("auto"), streams("256")), (Ok(None), Ok(Some(256))));
        assert!(["0", "257", "x", ""].iter().all(|text| streams(text).is_err()));
        assert_eq!((parse_time("1s"), parse_time("4m")), (Ok(Duration::from_secs(1)), Ok(TIME_MAX)));
        assert!(["0", "0s", "500ms", "5m", "x"].iter().all(|text| parse_time(text).is_err()));
        assert_eq!(parse_omit("0"), Ok(Duration::ZERO));
        assert!(["31s", "-1", "", "500ms"].iter().all(|text| parse_omit(text).is_err()));
        // A row ends before a node ends it.
        assert!(TIME_MAX + OMIT_MAX + Duration::from_secs(10) < carrack_core::tuning::Tuning::DEFAULT.measure_longest);
    }
}
