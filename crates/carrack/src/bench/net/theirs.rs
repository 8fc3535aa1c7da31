//! An iperf3 server of somebody else as the far end: the iperf3 that is installed here asks it, and what it says is a
//! result like any other.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::display_bytes;
use carrack_engine::{Context, system_failure, threads};
use carrack_measure::facts;
use carrack_measure::network::{Interval, StreamInterval};
use carrack_measure::result::{Measurement, Row, value};
use serde_json::Value;

use super::plan::{NetChoice, NetMode, NetStep, NetWay};
use super::row::{self, P5, RETRANSMITS, RTT, WINDOW};
use crate::bench::ladder::{DESTINATION_PROCESSORS, SOURCE_PROCESSORS, STREAMS, TellRow, incomplete};

/// A server of iperf3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iperf3Server {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What to ask it for.
pub struct TheirRequest {
    /// Whom.
    pub server: Iperf3Server,
    /// Which rows: in the clear, as it sends nothing else, and each way by itself.
    pub choice: NetChoice,
    /// How long each is measured.
    pub time: Duration,
    /// What is left out before that.
    pub warm_up: Duration,
    /// The congestion control of the sender, where one was asked for.
    pub congestion: Option<String>,
}

/// The port that iperf3 has, unless it is told another.
const PORT: u16 = 5201;
/// Beyond the time of the test itself: it connects, and both sides tell what they counted.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of what it says: an hour with 128 streams has less.
const SAID_BYTES: u64 = 256 << 20;

impl Iperf3Server {
    /// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.
    ///
    /// # Errors
    /// A sentence, for what is no such place.
    pub fn parse(text: &str) -> Result<Self, String> {
        let no = || format!("{text:?} is no host of an iperf3 server: use HOST or HOST:PORT");
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some(""))),
            None if text.matches(':').count() == 1 => {
                text.split_once(':').map(|(host, port)| (host, Some(port))).unwrap_or((text, Some("")))
            }
            None => (text, Some("")),
        };
        let port = match port.ok_or_else(no)? {
            "" => PORT,
            port => port.parse().map_err(|_| no())?,
        };
        // What begins with a dash would be taken for an option.
        let is_name = !host.is_empty() && !host.starts_with('-') && !host.contains(char::is_whitespace);
        if is_name && port > 0 { Ok(Self { host: host.to_owned(), port }) } else { Err(no()) }
    }
}

/// Measures, and tells each row when it is there. What ended it early stands beside what was measured.
pub fn measure(request: &TheirRequest, context: &Context, tell: &mut dyn TellRow) -> (Measurement, Option<Failure>) {
    let (begin, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let (mut rows, mut first, mut facts) = (Vec::new(), None, facts::host().0);
    for step in steps(&request.choice) {
        let mut row = row::named(step, step.way == NetWay::Back);
        if first.as_ref().is_some_and(|why: &Failure| why.code == ErrorCode::Interrupted) {
            break;
        }
        match ask(request, step, context) {
            Ok(said) => {
                fill(&mut row, &said, step.way == NetWay::Back);
                let version = said.pointer("/start/version").and_then(Value::as_str).unwrap_or_default();
                if !facts.iter().any(|(name, _)| name == "iperf3") {
                    facts.push(("iperf3".to_owned(), display_bytes(version.as_bytes()).to_string()));
                }
            }
            Err(why) => {
                row.error = Some(why.to_string());
                first.get_or_insert(why);
            }
        }
        tell.row(&row);
        rows.push(row);
    }
    let settings = [
        ("time_seconds", Some(request.time.as_secs_f64().to_string())),
        ("warm_up_seconds", Some(request.warm_up.as_secs_f64().to_string())),
        (super::CONGESTION, request.congestion.clone()),
        ("far_end", Some("iperf3".to_owned())),
    ];
    let measured = Measurement {
        kind: "net".to_owned(),
        target: format!("iperf3 {}:{}", request.server.host, request.server.port),
        started,
        elapsed: begin.elapsed(),
        settings: settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
        facts,
        warnings: first.as_ref().map(incomplete).into_iter().collect(),
        rows,
    };
    (measured, first)
}

/// A server serves one test at a time, in the clear.
fn steps(choice: &NetChoice) -> Vec<NetStep> {
    let ways = if choice.ways.is_empty() { vec![NetWay::There, NetWay::Back] } else { choice.ways.clone() };
    let choice = NetChoice { modes: vec![NetMode::Clear], ways, ..choice.clone() };
    choice.steps().into_iter().filter(|step| step.way != NetWay::Both).collect()
}

fn arguments(request: &TheirRequest, step: NetStep) -> Vec<String> {
    let mut words = vec!["-J".to_owned()];
    let seconds = |time: Duration| time.as_secs().max(1).to_string();
    for (flag, value) in [
        ("-c", request.server.host.clone()),
        ("-p", request.server.port.to_string()),
        ("-t", seconds(request.time)),
        ("-P", step.streams.unwrap_or(1).to_string()),
    ] {
        words.extend([flag.to_owned(), value]);
    }
    if !request.warm_up.is_zero() {
        words.extend(["-O".to_owned(), seconds(request.warm_up)]);
    }
    words.extend((step.way == NetWay::Back).then(|| "-R".to_owned()));
    words.extend(request.congestion.iter().flat_map(|control| ["-C".to_owned(), control.clone()]));
    words
}

/// Runs iperf3 for one test, and gives its document.
fn ask(request: &TheirRequest, step: NetStep, context: &Context) -> Result<Value, Failure> {
    let fault = |code, why: String| Failure::new(code, Side::Link, why);
    let mut child = Command::new("iperf3")
        .args(arguments(request, step))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "iperf3 is not installed here".to_owned(),
                _ => format!("iperf3 cannot be started: {error}"),
            };
            Failure::new(ErrorCode::ConnectFailed, Side::Command, why)
        })?;
    let (teller, told) = mpsc::channel();
    let pipe = child.stdout.take();
    let reading = threads::start("what iperf3 says", move || {
        let mut said = Vec::new();
        let _ = pipe.map(|pipe| pipe.take(SAID_BYTES).read_to_end(&mut said));
        let _ = teller.send(said);
    });
    let end = Instant::now() + request.time + request.warm_up + PATIENCE;
    let ended = reading.map_err(|error| system_failure(Side::Command, &error)).and_then(|_| {
        loop {
            if let Some(status) = child.try_wait().map_err(|error| system_failure(Side::Command, &error))? {
                return Ok(status);
            }
            context.stop.check()?;
            if Instant::now() >= end {
                return Err(fault(ErrorCode::Silence, "iperf3 did not end in time".to_owned()));
            }
            std::thread::sleep(LOOK);
        }
    });
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    ended?;
    let said = told.recv_timeout(PATIENCE).unwrap_or_default();
    let document: Value = serde_json::from_slice(&said)
        .map_err(|error| fault(ErrorCode::ConnectFailed, format!("what iperf3 says cannot be read: {error}")))?;
    match document.get("error").and_then(Value::as_str) {
        Some(why) => Err(fault(ErrorCode::ConnectFailed, format!("iperf3: {}", display_bytes(why.as_bytes())))),
        None => Ok(document),
    }
}

/// What a document of iperf3 says, as a row.
fn fill(row: &mut Row, said: &Value, back: bool) {
    let number = |place: &str| said.pointer(place).and_then(Value::as_f64);
    // The receiver's count is the one that has arrived.
    let sum = if said.pointer("/end/sum_received/bytes").is_some() { "/end/sum_received" } else { "/end/sum_sent" };
    let (bytes, seconds) = (number(&format!("{sum}/bytes")), number(&format!("{sum}/seconds")));
    let (Some(bytes), Some(seconds)) = (bytes, seconds.filter(|seconds| *seconds > 0.0)) else {
        row.error = Some(row::NOTHING_CAME.to_owned());
        return;
    };
    row.put(value::BYTES, bytes);
    row.put(value::SECONDS, seconds);
    row.put(value::BYTES_PER_SECOND, bytes / seconds);
    row.intervals = said.get("intervals").and_then(Value::as_array).into_iter().flatten().map(interval).collect();
    let mut rates: Vec<f64> = row
        .intervals
        .iter()
        .filter(|one| !one.is_warm_up && one.seconds > 0.0)
        .map(|one| one.streams.iter().map(|stream| stream.bytes as f64).sum::<f64>() / one.seconds)
        .collect();
    rates.sort_by(f64::total_cmp);
    let slowest = if rates.len() > 1 { rates[((rates.len() - 1) as f64 * 0.05).round() as usize] } else { f64::NAN };
    row.put(P5, slowest);
    row.put(STREAMS, said.pointer("/end/streams").and_then(Value::as_array).map_or(f64::NAN, |all| all.len() as f64));
    row.put(RETRANSMITS, number("/end/sum_sent/retransmits").unwrap_or(f64::NAN));
    let [here, there] = ["host_total", "remote_total"].map(|name| {
        number(&format!("/end/cpu_utilization_percent/{name}")).map_or(f64::NAN, |percent| percent / 100.0)
    });
    let (source, destination) = if back { (there, here) } else { (here, there) };
    row.put(value::PROCESSORS, here);
    row.put(SOURCE_PROCESSORS, source);
    row.put(DESTINATION_PROCESSORS, destination);
    let of_streams = |name: &str| {
        let streams = said.pointer("/end/streams").and_then(Value::as_array).into_iter().flatten();
        let all: Vec<f64> = streams.filter_map(|one| one.pointer("/sender")?.get(name)?.as_f64()).collect();
        (!all.is_empty()).then_some(all)
    };
    // Of what the other side sends, its kernel's numbers are 0: nobody tells them here.
    let told = |all: Vec<f64>| Some(all).filter(|all| all.iter().any(|value| *value > 0.0));
    let peak = |name: &str| of_streams(name).and_then(told).and_then(|all| all.into_iter().reduce(f64::max));
    row.put(RTT, peak("max_rtt").unwrap_or(f64::NAN));
    let shortest = of_streams("min_rtt").and_then(|all| all.into_iter().filter(|us| *us > 0.0).reduce(f64::min));
    row.put("min_rtt_us", shortest.unwrap_or(f64::NAN));
    row.put(WINDOW, of_streams("max_snd_cwnd").and_then(told).map_or(f64::NAN, |all| all.into_iter().sum()));
}

fn interval(said: &Value) -> Interval {
    let number = |place: &str| said.pointer(place).and_then(Value::as_f64).unwrap_or(0.0);
    let stream = |one: &Value| {
        let whole = |name: &str| one.get(name).and_then(Value::as_u64).unwrap_or(0);
        StreamInterval {
            stream: whole("socket"),
            bytes: whole("bytes"),
            retransmits: whole("retransmits"),
            cwnd_bytes: whole("snd_cwnd"),
            window_bytes: whole("snd_wnd"),
            rtt_us: whole("rtt"),
            rtt_var_us: whole("rttvar"),
            path_mtu_bytes: whole("pmtu"),
        }
    };
    Interval {
        start_seconds: number("/sum/start"),
        seconds: number("/sum/seconds"),
        is_warm_up: said.pointer("/sum/omitted").and_then(Value::as_bool).unwrap_or(false),
        streams: said.get("streams").and_then(Value::as_array).into_iter().flatten().map(stream).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_have_a_port_or_the_usual_one() {
        let of = |text: &str| Iperf3Server::parse(text).map(|server| (server.host, server.port)).ok();
        let place = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(of("perfsonar.example.org"), place("perfsonar.example.org", 5201));
        assert_eq!((of("far:5301"), of("[fd77::2]:5301")), (place("far", 5301), place("fd77::2", 5301)));
        assert_eq!((of("fd77::2"), of("[fd77::2]")), (place("fd77::2", 5201), place("fd77::2", 5201)));
        for bad in ["", "-c", "far:x", "far:0", "far:", "a b", "[::1]x"] {
            assert_eq!(of(bad), (bad == "far:").then(|| ("far".to_owned(), 5201)), "{bad:?}");
        }
    }

    #[test]
    fn tests_are_asked_for_as_they_were_chosen() {
        let request = TheirRequest {
            server: Iperf3Server { host: "far".to_owned(), port: 5301 },
            choice: NetChoice { streams: vec![Some(1), Some(8)], ..NetChoice::default() },
            time: Duration::from_secs(3),
            warm_up: Duration::from_secs(1),
            congestion: Some("bbr".to_owned()),
        };
        let lines: Vec<String> =
            steps(&request.choice).into_iter().map(|step| arguments(&request, step).join(" ")).collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!(lines[0], "-J -c far -p 5301 -t 3 -P 1 -O 1 -C bbr");
        assert_eq!(lines[3], "-J -c far -p 5301 -t 3 -P 8 -O 1 -R -C bbr");
    }

    #[test]
    fn what_iperf3_says_is_a_row() {
        let stream =
            json!({ "socket": 5, "bytes": 500, "retransmits": 2, "snd_cwnd": 70, "rtt": 40, "omitted": false });
        let sum = |start: f64| json!({ "start": start, "seconds": 1.0, "omitted": false });
        let sender = json!({ "max_rtt": 60, "min_rtt": 30, "max_snd_cwnd": 90 });
        let said = json!({
            "intervals": [
                { "streams": [stream], "sum": sum(0.0) },
                { "streams": [stream], "sum": sum(1.0) },
            ],
            "end": {
                "streams": [{ "sender": sender }],
                "sum_sent": { "bytes": 1000, "seconds": 2.0, "retransmits": 4 },
                "sum_received": { "bytes": 990, "seconds": 2.0 },
                "cpu_utilization_percent": { "host_total": 50.0, "remote_total": 25.0 },
            },
        });
        let mut row = Row::default();
        fill(&mut row, &said, false);
        let value_of = |name: &str| row.value(name);
        assert_eq!((value_of(value::BYTES), value_of(value::BYTES_PER_SECOND)), (Some(990.0), Some(495.0)));
        assert_eq!((value_of(RETRANSMITS), value_of(RTT), value_of(WINDOW)), (Some(4.0), Some(60.0), Some(90.0)));
        assert_eq!((value_of(SOURCE_PROCESSORS), value_of(DESTINATION_PROCESSORS)), (Some(0.5), Some(0.25)));
        assert_eq!((row.intervals.len(), row.intervals[1].streams[0].cwnd_bytes), (2, 70));
        let mut back = Row::default();
        fill(&mut back, &said, true);
        assert_eq!(back.value(SOURCE_PROCESSORS), Some(0.25));
        let mut empty = Row::default();
        fill(&mut empty, &json!({ "end": {} }), false);
        assert_eq!(empty.error.as_deref(), Some("nothing came"));
    }
}
