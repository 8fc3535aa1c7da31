//! What an iperf3 says of a test, its client or its server, as rows.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::display_bytes;
use carrack_engine::{Context, system_failure, threads};
use carrack_measure::network::{Interval, StreamInterval};
use carrack_measure::result::{Row, value};
use serde_json::Value;

use super::row::{self, MIN_RTT, P5, RETRANSMITS, RTT, WINDOW};
use crate::bench::ladder::{DESTINATION_PROCESSORS, SOURCE_PROCESSORS, STREAMS};

const LOOK: Duration = Duration::from_millis(50);
/// How long the rest of its output may take once it has ended.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of what it says: an hour with 128 streams has less.
const SAID_BYTES: u64 = 256 << 20;

/// Why there is no document where iperf3 has ended without a word.
const NOTHING_SAID: &str = "iperf3 ended, and said nothing of a test";

/// What a document has of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaidWay {
    /// The bytes go from the other host to this one.
    pub back: bool,
    /// What iperf3 adds to the names of its sums.
    pub suffix: &'static str,
    /// Only the streams that this host sends, or receives; `None` where all go the same way.
    pub sends: Option<bool>,
}

impl SaidWay {
    /// The only one of a test.
    pub fn only(back: bool) -> Self {
        Self { back, suffix: "", sends: None }
    }

    /// Whether a stream goes this way.
    fn has(self, stream: &Value) -> bool {
        self.sends.is_none() || stream.get("sender").and_then(Value::as_bool) == self.sends
    }
}

/// Runs iperf3 for one test, until then at most, and gives its document.
///
/// # Errors
/// Why there is none: what iperf3 says, or that it could not be run, or is to stop.
pub fn document_of(command: &mut Command, end: Option<Instant>, context: &Context) -> Result<Value, Failure> {
    let fault = |code, why: String| Failure::new(code, Side::Link, why);
    // A group of its own: a key that interrupts goes to this program, which then ends the group.
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| {
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
    let ended = reading.map_err(|error| system_failure(Side::Command, &error)).and_then(|_| {
        loop {
            if let Some(status) = child.try_wait().map_err(|error| system_failure(Side::Command, &error))? {
                return Ok(status);
            }
            context.stop.check()?;
            if end.is_some_and(|end| Instant::now() >= end) {
                return Err(fault(ErrorCode::Silence, "iperf3 did not end in time".to_owned()));
            }
            std::thread::sleep(LOOK);
        }
    });
    if ended.is_err() {
        carrack_sys::host::end_group(child.id(), false);
        let _ = child.kill();
        let _ = child.wait();
    }
    ended?;
    let said = told.recv_timeout(PATIENCE).unwrap_or_default();
    // A warning may stand before it.
    let begin = said.iter().position(|byte| *byte == b'{').unwrap_or(said.len());
    if begin == said.len() {
        return Err(fault(ErrorCode::ConnectionLost, NOTHING_SAID.to_owned()));
    }
    let document: Value = serde_json::from_slice(&said[begin..])
        .map_err(|error| fault(ErrorCode::ConnectFailed, format!("what iperf3 says cannot be read: {error}")))?;
    match document.get("error").and_then(Value::as_str) {
        // Whoever connected was no client of iperf3, or has gone.
        Some(why) if why.contains("unable to receive") => {
            Err(fault(ErrorCode::ConnectionLost, format!("iperf3: {}", display_bytes(why.as_bytes()))))
        }
        Some(why) => Err(fault(ErrorCode::ConnectFailed, format!("iperf3: {}", display_bytes(why.as_bytes())))),
        None => Ok(document),
    }
}

/// The version of iperf3 that a document is of.
pub fn version(said: &Value) -> String {
    let version = said.pointer("/start/version").and_then(Value::as_str).unwrap_or_default();
    display_bytes(version.as_bytes()).to_string()
}

/// Puts one direction of a document into a row. `host_total` is this host in both, a server's document and a client's.
pub fn fill(row: &mut Row, said: &Value, direction: SaidWay) {
    let SaidWay { back, suffix, .. } = direction;
    let number = |place: &str| said.pointer(place).and_then(Value::as_f64);
    // The receiver's count is the one that has arrived. A server that sends is never told it, and has a 0 there.
    let counted = |name: &str| number(&format!("/end/{name}{suffix}/bytes")).is_some_and(|bytes| bytes > 0.0);
    let sum = if counted("sum_received") { "sum_received" } else { "sum_sent" };
    let (bytes, seconds) =
        (number(&format!("/end/{sum}{suffix}/bytes")), number(&format!("/end/{sum}{suffix}/seconds")));
    let (Some(bytes), Some(seconds)) = (bytes, seconds.filter(|seconds| *seconds > 0.0)) else {
        row.error = Some(row::NOTHING_CAME.to_owned());
        return;
    };
    row.put(value::BYTES, bytes);
    row.put(value::SECONDS, seconds);
    row.put(value::BYTES_PER_SECOND, bytes / seconds);
    let all = said.get("intervals").and_then(Value::as_array).into_iter().flatten();
    row.intervals = all.map(|one| interval(one, direction)).collect();
    row.put(P5, slowest(&row.intervals));
    let ended = said.pointer("/end/streams").and_then(Value::as_array).into_iter().flatten();
    let streams: Vec<&Value> = ended.filter_map(|one| one.get("sender").filter(|one| direction.has(one))).collect();
    row.put(STREAMS, if streams.is_empty() { f64::NAN } else { streams.len() as f64 });
    row.put(RETRANSMITS, number(&format!("/end/sum_sent{suffix}/retransmits")).unwrap_or(f64::NAN));
    // A host that does not tell has a 0.
    let [here, there] = ["host_total", "remote_total"].map(|name| {
        let percent = number(&format!("/end/cpu_utilization_percent/{name}")).filter(|percent| *percent > 0.0);
        percent.map_or(f64::NAN, |percent| percent / 100.0)
    });
    let (source, destination) = if back { (there, here) } else { (here, there) };
    row.put(value::PROCESSORS, here);
    row.put(SOURCE_PROCESSORS, source);
    row.put(DESTINATION_PROCESSORS, destination);
    // Of what the other side sends, its kernel's numbers are 0: nobody tells them here.
    let of_streams = |name: &str| {
        let all: Vec<f64> = streams.iter().filter_map(|sender| sender.get(name)?.as_f64()).collect();
        Some(all).filter(|all| all.iter().any(|value| *value > 0.0))
    };
    row.put(RTT, of_streams("max_rtt").and_then(|all| all.into_iter().reduce(f64::max)).unwrap_or(f64::NAN));
    let shortest = of_streams("min_rtt").and_then(|all| all.into_iter().filter(|us| *us > 0.0).reduce(f64::min));
    row.put(MIN_RTT, shortest.unwrap_or(f64::NAN));
    row.put(WINDOW, of_streams("max_snd_cwnd").map_or(f64::NAN, |all| all.into_iter().sum()));
}

/// Bytes a second in the slowest 5 % of the seconds that count; one second is no slowest of several.
fn slowest(intervals: &[Interval]) -> f64 {
    let counted = intervals.iter().filter(|one| !one.is_warm_up && one.seconds > 0.0);
    let bytes = |one: &Interval| one.streams.iter().map(|stream| stream.bytes as f64).sum::<f64>();
    let mut rates: Vec<f64> = counted.map(|one| bytes(one) / one.seconds).collect();
    rates.sort_by(f64::total_cmp);
    if rates.len() > 1 { rates[((rates.len() - 1) as f64 * 0.05).round() as usize] } else { f64::NAN }
}

fn interval(said: &Value, direction: SaidWay) -> Interval {
    let sum = format!("/sum{}", direction.suffix);
    let number = |name: &str| said.pointer(&format!("{sum}/{name}")).and_then(Value::as_f64).unwrap_or(0.0);
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
    let streams = said.get("streams").and_then(Value::as_array).into_iter().flatten();
    Interval {
        start_seconds: number("start"),
        seconds: number("seconds"),
        is_warm_up: said.pointer(&format!("{sum}/omitted")).and_then(Value::as_bool).unwrap_or(false),
        streams: streams.filter(|one| direction.has(one)).map(stream).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        fill(&mut row, &said, SaidWay::only(false));
        let value_of = |name: &str| row.value(name);
        assert_eq!((value_of(value::BYTES), value_of(value::BYTES_PER_SECOND)), (Some(990.0), Some(495.0)));
        assert_eq!((value_of(RETRANSMITS), value_of(RTT), value_of(WINDOW)), (Some(4.0), Some(60.0), Some(90.0)));
        assert_eq!((value_of(SOURCE_PROCESSORS), value_of(DESTINATION_PROCESSORS)), (Some(0.5), Some(0.25)));
        assert_eq!((row.intervals.len(), row.intervals[1].streams[0].cwnd_bytes), (2, 70));
        let mut back = Row::default();
        fill(&mut back, &said, SaidWay::only(true));
        assert_eq!(back.value(SOURCE_PROCESSORS), Some(0.25));
        let mut empty = Row::default();
        fill(&mut empty, &json!({ "end": {} }), SaidWay::only(false));
        assert_eq!(empty.error.as_deref(), Some("nothing came"));
    }
}
