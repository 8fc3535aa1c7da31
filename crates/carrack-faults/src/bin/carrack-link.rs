//! Two hosts with a long way between them, for the benchmark and for trying things out. `carrack-link --help` says how.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, ExitCode};
use std::time::Duration;

use carrack_faults::link::{ADDRESSES, Host, Link, Setup};
use clap::{Arg, ArgMatches, value_parser};

/// How often it is looked whether the end has been asked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

const AFTER_HELP: &str = "\
Prints the hosts as NAME ADDRESS, one a line, once they are there. Programs are run on them by `ip netns exec NAME ...`.
With COMMAND, runs it on this host, with NEAR, FAR (names), NEAR_ADDRESS and FAR_ADDRESS set, and ends with it.
Without, stays until its standard input is closed or it is sent SIGTERM or SIGINT; each line there changes the link:
  loss P | corrupt P | double P | reorder P MS | largest BYTES | rate RATE | flow-rate RATE | rtt MS
At the end it prints what became of the packets on standard error. Needs root.";

fn cli() -> clap::Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let number = |name, value, help| option(name, value, help).value_parser(value_parser!(f64)).default_value("0");
    clap::Command::new("carrack-link")
        .about("Makes two network namespaces, joined by an emulated link")
        .after_help(AFTER_HELP)
        .arg(option("name", "NAME", "The hosts are NAME-near and NAME-far").default_value("carrack-link"))
        .arg(number("rtt-ms", "MS", "Time there and back"))
        .arg(option("rate", "RATE", "As in 500mbit, 1gbit, 2.5gbit; none is no limit").default_value("none"))
        .arg(option("flow-rate", "RATE", "Of each connection").default_value("none"))
        .arg(
            option("queue-kib", "KIB", "Queue before the link [default: rate x rtt, at least 256]")
                .value_parser(value_parser!(u64)),
        )
        .arg(number("loss", "P", "Probability that a packet is lost"))
        .arg(number("corrupt", "P", "Probability that a bit of a packet is flipped, unseen by TCP"))
        .arg(number("double", "P", "Probability that a packet comes twice"))
        .arg(number("reorder", "P", "Probability that a packet comes late"))
        .arg(option("reorder-ms", "MS", "How late").value_parser(value_parser!(f64)).default_value("1"))
        .arg(option("largest", "BYTES", "Larger packets vanish").value_parser(value_parser!(u64)))
        .arg(
            option("mtu", "BYTES", "Largest packet of the devices")
                .value_parser(value_parser!(u32))
                .default_value("9000"),
        )
        .arg(option("cc", "NAME", "Congestion control of both hosts"))
        .arg(
            option("tcp-buffer-mib", "MIB", "How large TCP's buffers may become; 0: the kernel's limits")
                .value_parser(value_parser!(u64))
                .default_value("128"),
        )
        .arg(option("seed", "N", "Of what happens by chance").value_parser(value_parser!(u64)).default_value("0"))
        .arg(Arg::new("command").value_name("COMMAND").num_args(0..).last(true))
}

fn main() -> ExitCode {
    let matches = cli().get_matches();
    carrack_sys::signal::install();
    match run(&matches) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("carrack-link: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(matches: &ArgMatches) -> Result<ExitCode, String> {
    let name = text(matches, "name");
    let lock = format!("/run/{name}.lock");
    let held = File::create(&lock).map_err(|error| format!("{lock}: {error}"))?;
    held.try_lock().map_err(|error| format!("{lock}: {error} (is another link of this name up?)"))?;
    let code = with_link(matches, name);
    let _ = std::fs::remove_file(&lock);
    code
}

fn with_link(matches: &ArgMatches, name: &str) -> Result<ExitCode, String> {
    let link = make(matches, name)?;
    let command = matches.get_many::<String>("command").map(Iterator::collect::<Vec<_>>).unwrap_or_default();
    let code = if command.is_empty() {
        announce(&link)?;
        serve(&link);
        Ok(ExitCode::SUCCESS)
    } else {
        run_command(&link, &command)
    };
    for (from, host) in [("near", Host::Near), ("far", Host::Far)] {
        eprintln!("from {from}: {:?}", link.counts(host));
    }
    code
}

fn make(matches: &ArgMatches, name: &str) -> Result<Link, String> {
    let number = |name: &str| *matches.get_one::<f64>(name).expect("has a default");
    let whole = |name: &str| matches.get_one::<u64>(name).copied();
    let (rate, flow_rate) = (rate(text(matches, "rate"))?, rate(text(matches, "flow-rate"))?);
    let setup = Setup {
        mtu: *matches.get_one("mtu").expect("has a default"),
        congestion_control: matches.get_one::<String>("cc").cloned(),
        tcp_buffer_bytes: whole("tcp-buffer-mib").filter(|mib| *mib > 0).map(|mib| mib << 20),
        seed: whole("seed").unwrap_or_default(),
    };
    let delay = milliseconds(number("rtt-ms") / 2.0)?;
    let late = milliseconds(number("reorder-ms"))?;
    Link::new(name, &setup, |knobs| {
        knobs.delay(delay);
        knobs.rate(rate);
        knobs.flow_rate(flow_rate);
        knobs.queue(whole("queue-kib").map(|kib| kib << 10));
        knobs.largest(whole("largest"));
        knobs.lose(number("loss"));
        knobs.corrupt(number("corrupt"));
        knobs.double(number("double"));
        knobs.reorder(number("reorder"), late);
    })
}

fn announce(link: &Link) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let mut line = |host, address| writeln!(out, "{} {address}", link.host(host).name());
    let told = line(Host::Near, ADDRESSES[0]).and_then(|()| line(Host::Far, ADDRESSES[1]));
    told.and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))
}

/// Does what standard input says until it ends, or a signal comes.
fn serve(link: &Link) {
    let input = rustix::stdio::stdin();
    let mut waiting = Vec::new();
    while carrack_sys::signal::stop_requested().is_none() {
        let mut fds = [rustix::event::PollFd::new(&input, rustix::event::PollFlags::IN)];
        let timeout = LOOK_INTERVAL.try_into().expect("it is short");
        // A signal that comes before the wait is seen after it.
        if !rustix::event::poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            continue;
        }
        let mut bytes = [0; 4096];
        match std::io::stdin().read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => waiting.extend_from_slice(&bytes[..count]),
        }
        while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = waiting.drain(..=end).collect();
            if let Err(message) = change(link, String::from_utf8_lossy(&line).trim()) {
                eprintln!("carrack-link: {message}");
            }
        }
    }
}

/// Changes the link as a line of input says.
fn change(link: &Link, line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("not a number: {word}"));
    match words[..] {
        [] => {}
        ["loss", p] => number(p).map(|p| link.both(|knobs| knobs.lose(p)))?,
        ["corrupt", p] => number(p).map(|p| link.both(|knobs| knobs.corrupt(p)))?,
        ["double", p] => number(p).map(|p| link.both(|knobs| knobs.double(p)))?,
        ["reorder", p, by] => {
            let (p, by) = (number(p)?, milliseconds(number(by)?)?);
            link.both(|knobs| knobs.reorder(p, by));
        }
        ["largest", bytes] => number(bytes).map(|bytes| link.both(|knobs| knobs.largest(Some(bytes as u64))))?,
        ["rate", limit] => rate(limit).map(|limit| link.both(|knobs| knobs.rate(limit)))?,
        ["flow-rate", limit] => rate(limit).map(|limit| link.both(|knobs| knobs.flow_rate(limit)))?,
        ["rtt", time] => {
            let delay = milliseconds(number(time)? / 2.0)?;
            link.both(|knobs| knobs.delay(delay));
        }
        _ => return Err(format!("not understood: {line}")),
    }
    Ok(())
}

fn run_command(link: &Link, command: &[&String]) -> Result<ExitCode, String> {
    let mut child = Command::new(command[0]);
    child.args(&command[1..]);
    child.env("NEAR", link.host(Host::Near).name()).env("NEAR_ADDRESS", ADDRESSES[0]);
    child.env("FAR", link.host(Host::Far).name()).env("FAR_ADDRESS", ADDRESSES[1]);
    let mut child = child.spawn().map_err(|error| format!("{}: {error}", command[0]))?;
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{}: {error}", command[0]))? {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(ExitCode::from(code.unwrap_or(1)));
        }
        if carrack_sys::signal::stop_requested().is_some() && !asked {
            carrack_sys::host::terminate(child.id());
            asked = true;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).expect("has a default")
}

fn milliseconds(value: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value / 1e3).map_err(|error| format!("{value} ms: {error}"))
}

/// Bits per second; `None` for no limit.
fn rate(text: &str) -> Result<Option<u64>, String> {
    if text == "none" {
        return Ok(None);
    }
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];
    let parsed = units.iter().find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor));
    let parsed = parsed.filter(|bits| *bits >= 1.0);
    parsed.map(|bits| Some(bits as u64)).ok_or_else(|| format!("not a rate: {text} (as in 500mbit, 2.5gbit, none)"))
}
