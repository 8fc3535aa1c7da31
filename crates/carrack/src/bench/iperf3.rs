//! A result of `bench net` as iperf3 writes its own with `-J`, for programs that read that: perfSONAR, scripts.
//!
//! One document is one test: a row, or both directions at once. What of iperf3's document is not known is left out
//! (user and system time apart), empty (a far host's congestion control) or 0 (buffer sizes).

use std::net::SocketAddr;
use std::time::{Duration, UNIX_EPOCH};

use carrack_core::tuning::SLICE_BYTES;
use carrack_measure::network::{Interval, StreamInterval};
use carrack_measure::result::{Measurement, Row, value};
use serde_json::{Map, Value, json};

use super::ladder::{DESTINATION_PROCESSORS, SOURCE_PROCESSORS};
use super::net::row::{AT_ONCE, RETRANSMITS};
use super::net::{ADDRESS, CONGESTION};
use crate::cli::location::parse_location;

/// Headers of IP and TCP, with which the kernel counts a path's largest packet.
const HEADERS_4_BYTES: u64 = 40;
/// The same of IPv6.
const HEADERS_6_BYTES: u64 = 60;

/// The end of the year 9999: no later one has four digits.
const LAST_SECOND: u64 = 253_402_300_799;

/// A document for each test, in order. One that failed says why, as iperf3 does.
pub fn documents(measured: &Measurement) -> Vec<Value> {
    let mut documents = Vec::new();
    let mut rows = measured.rows.iter().filter(|row| row.condition(AT_ONCE).is_some()).peekable();
    while let Some(row) = rows.next() {
        if row.value(value::BYTES_PER_SECOND).is_none() {
            let error = row.error.as_deref().unwrap_or("nothing came");
            documents.push(json!({ "start": { "connected": [] }, "intervals": [], "end": {}, "error": error }));
            continue;
        }
        let at_once = |row: &Row| row.condition(AT_ONCE) == Some("yes");
        let back = rows.next_if(|back| at_once(row) && at_once(back) && (row.name != back.name));
        documents.push(Test { measured, row, back }.document());
    }
    documents
}

/// One test.
struct Test<'a> {
    measured: &'a Measurement,
    row: &'a Row,
    /// What went the other way at the same time.
    back: Option<&'a Row>,
}

impl Test<'_> {
    fn document(&self) -> Value {
        json!({ "start": self.start(), "intervals": self.intervals(), "end": self.end() })
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let found = self.measured.settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn seconds(&self, name: &str) -> u64 {
        self.setting(name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0).round() as u64
    }

    /// Its rows, that which goes back being the second of two, with a name for their sums, and what is added to the
    /// numbers of their connections: each direction counts its own from 0, and in one document no two are the same.
    fn rows(&self) -> impl Iterator<Item = (&Row, &'static str, u64)> {
        let further = numbers(self.row).max().map_or(0, |most| most.saturating_add(1));
        std::iter::once((self.row, "", 0)).chain(self.back.map(|back| (back, "_bidir_reverse", further)))
    }

    fn fact(&self, name: &str) -> &str {
        let found = self.measured.facts.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn start(&self) -> Value {
        let (host, port) = host_and_port(self.fact(ADDRESS), &self.measured.target);
        let connected = self.rows().flat_map(|(row, _, further)| {
            last_streams(row).iter().map(move |stream| stream.stream.saturating_add(further))
        });
        let connected = connected.map(|socket| {
            json!({ "socket": socket, "local_host": "", "local_port": 0, "remote_host": host, "remote_port": port })
        });
        let started = self.measured.started;
        let mtu = last_streams(self.row).iter().map(|stream| stream.path_mtu_bytes).max().unwrap_or(0);
        let headers = if host.contains(':') { HEADERS_6_BYTES } else { HEADERS_4_BYTES };
        // Of both ways at once iperf3 tells the number of each.
        let streams = self.rows().map(|(row, ..)| last_streams(row).len()).max().unwrap_or(0);
        let bytes = |row: &Row| row.value(value::BYTES).unwrap_or(0.0) as u64;
        json!({
            "connected": connected.collect::<Vec<_>>(),
            "version": concat!("carrack ", env!("CARGO_PKG_VERSION")),
            "system_info": format!("{} {} {}", self.fact("system"), self.fact("host"), self.fact("kernel")),
            "timestamp": {
                "time": http_date(started),
                "timesecs": started,
                "timemillisecs": started.saturating_mul(1000),
            },
            "connecting_to": { "host": host, "port": port },
            "cookie": format!("carrack-{started}"),
            "tcp_mss_default": mtu.saturating_sub(headers),
            "target_bitrate": 0,
            "fq_rate": 0,
            "sock_bufsize": 0,
            "sndbuf_actual": 0,
            "rcvbuf_actual": 0,
            "test_start": {
                "protocol": "TCP",
                "num_streams": streams,
                "blksize": SLICE_BYTES,
                "omit": self.seconds("warm_up_seconds"),
                "duration": self.seconds("time_seconds"),
                "bytes": 0,
                "blocks": 0,
                "reverse": u8::from(self.is_back()),
                "tos": 0,
                "target_bitrate": 0,
                "bidir": u8::from(self.back.is_some()),
                "fqrate": 0,
                "interval": 1,
            },
            "carrack": {
                "mode": self.row.condition("mode"),
                "received_bytes": bytes(self.row),
                "labels": self.row.labels,
                "error": self.row.error,
            },
        })
    }

    /// Whether the first of its rows goes from the far host to the near one.
    fn is_back(&self) -> bool {
        self.row.name == "back"
    }

    fn intervals(&self) -> Vec<Value> {
        let count = self.row.intervals.len().max(self.back.map_or(0, |back| back.intervals.len()));
        (0..count).map(|index| self.interval(index)).collect()
    }

    fn interval(&self, index: usize) -> Value {
        let mut object = Map::new();
        let mut streams = Vec::new();
        for (row, suffix, further) in self.rows() {
            let Some(interval) = row.intervals.get(index) else { continue };
            let is_sender = row.name != "back";
            let span = Span::of(row, index);
            streams.extend(interval.streams.iter().map(|stream| {
                let mut one = span.amount(stream.bytes as f64, is_sender);
                one.insert("socket".to_owned(), json!(stream.stream.saturating_add(further)));
                one.extend(counters(stream));
                one.insert("omitted".to_owned(), json!(interval.is_warm_up));
                Value::Object(one)
            }));
            let total =
                |count: fn(&StreamInterval) -> u64| interval.streams.iter().map(count).fold(0, u64::saturating_add);
            let mut all = span.amount(total(|stream| stream.bytes) as f64, is_sender);
            all.insert("retransmits".to_owned(), json!(total(|stream| stream.retransmits)));
            all.insert("omitted".to_owned(), json!(interval.is_warm_up));
            object.insert(format!("sum{suffix}"), Value::Object(all));
        }
        object.insert("streams".to_owned(), Value::Array(streams));
        Value::Object(object)
    }

    fn end(&self) -> Value {
        let mut object = Map::new();
        let mut streams = Vec::new();
        for (row, suffix, further) in self.rows() {
            let is_sender = row.name != "back";
            let each = per_stream(row);
            let span = Span::whole(row);
            let sent = each.iter().map(|stream| stream.bytes).fold(0, u64::saturating_add);
            let mut sum = span.amount(sent as f64, is_sender);
            sum.insert("retransmits".to_owned(), json!(row.value(RETRANSMITS).unwrap_or(0.0) as u64));
            object.insert(format!("sum_sent{suffix}"), Value::Object(sum));
            let received = Span { start: 0.0, seconds: row.value(value::SECONDS).unwrap_or(span.seconds) };
            let bytes = row.value(value::BYTES).unwrap_or(0.0);
            object.insert(format!("sum_received{suffix}"), Value::Object(received.amount(bytes, is_sender)));
            streams.extend(each.iter().map(|stream| end_of_stream(stream, further, &span, is_sender)));
        }
        let percent = |name: &str| self.row.value(name).unwrap_or(0.0) * 100.0;
        let (sender, receiver) = (percent(SOURCE_PROCESSORS), percent(DESTINATION_PROCESSORS));
        let (host, remote) = if self.is_back() { (receiver, sender) } else { (sender, receiver) };
        // Of the far host nothing is known, and nothing of this one where two others are measured.
        let own = if self.measured.target.contains(' ') { "" } else { self.fact("net.ipv4.tcp_congestion_control") };
        let (sender, receiver) = if self.is_back() { ("", own) } else { (own, "") };
        // What was asked for is the sender's, and of two senders that of both.
        let asked = self.setting(CONGESTION);
        let sender = asked.unwrap_or(sender);
        let receiver = asked.filter(|_| self.back.is_some()).unwrap_or(receiver);
        object.insert("streams".to_owned(), Value::Array(streams));
        object.insert("cpu_utilization_percent".to_owned(), json!({ "host_total": host, "remote_total": remote }));
        object.insert("sender_tcp_congestion".to_owned(), json!(sender));
        object.insert("receiver_tcp_congestion".to_owned(), json!(receiver));
        Value::Object(object)
    }
}

/// The connections that a row had at its end.
fn last_streams(row: &Row) -> &[StreamInterval] {
    row.intervals.last().map(|interval| &interval.streams[..]).unwrap_or_default()
}

/// The numbers of all connections that a row ever had.
fn numbers(row: &Row) -> impl Iterator<Item = u64> {
    row.intervals.iter().flat_map(|interval| &interval.streams).map(|stream| stream.stream)
}

/// A time from the end of the warm-up on; of the warm-up itself, from its beginning on.
struct Span {
    start: f64,
    seconds: f64,
}

impl Span {
    fn of(row: &Row, index: usize) -> Self {
        let interval = &row.intervals[index];
        let first = row.intervals.iter().find(|other| other.is_warm_up == interval.is_warm_up).unwrap_or(interval);
        Self { start: interval.start_seconds - first.start_seconds, seconds: interval.seconds }
    }

    fn whole(row: &Row) -> Self {
        Self { start: 0.0, seconds: counted(row).map(|interval| interval.seconds).sum() }
    }

    fn amount(&self, bytes: f64, is_sender: bool) -> Map<String, Value> {
        let per_second = if self.seconds > 0.0 { bytes * 8.0 / self.seconds } else { 0.0 };
        let fields = [
            ("start", json!(self.start)),
            ("end", json!(self.start + self.seconds)),
            ("seconds", json!(self.seconds)),
            ("bytes", json!(bytes as u64)),
            ("bits_per_second", json!(per_second)),
            ("sender", json!(is_sender)),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn counted(row: &Row) -> impl Iterator<Item = &Interval> {
    row.intervals.iter().filter(|interval| !interval.is_warm_up)
}

fn counters(stream: &StreamInterval) -> Map<String, Value> {
    let fields = [
        ("retransmits", stream.retransmits),
        ("snd_cwnd", stream.cwnd_bytes),
        ("snd_wnd", stream.window_bytes),
        ("rtt", stream.rtt_us),
        ("rttvar", stream.rtt_var_us),
        ("pmtu", stream.path_mtu_bytes),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// A connection over the time that counts.
#[derive(Default)]
struct StreamTotal {
    stream: u64,
    bytes: u64,
    retransmits: u64,
    cwnd_max: u64,
    window_max: u64,
    rtts: Vec<u64>,
}

fn per_stream(row: &Row) -> Vec<StreamTotal> {
    let mut all: Vec<StreamTotal> = Vec::new();
    for stream in counted(row).flat_map(|interval| &interval.streams) {
        let known = all.iter().position(|total| total.stream == stream.stream).unwrap_or_else(|| {
            all.push(StreamTotal { stream: stream.stream, ..StreamTotal::default() });
            all.len() - 1
        });
        let total = &mut all[known];
        total.bytes = total.bytes.saturating_add(stream.bytes);
        total.retransmits = total.retransmits.saturating_add(stream.retransmits);
        total.cwnd_max = total.cwnd_max.max(stream.cwnd_bytes);
        total.window_max = total.window_max.max(stream.window_bytes);
        total.rtts.push(stream.rtt_us);
    }
    all
}

/// `further` is added to its number.
fn end_of_stream(stream: &StreamTotal, further: u64, span: &Span, is_sender: bool) -> Value {
    let mut receiver = span.amount(stream.bytes as f64, is_sender);
    receiver.insert("socket".to_owned(), json!(stream.stream.saturating_add(further)));
    let mut sender = receiver.clone();
    let mean = stream.rtts.iter().copied().fold(0, u64::saturating_add) / (stream.rtts.len() as u64).max(1);
    for (name, number) in [
        ("retransmits", stream.retransmits),
        ("snd_cwnd", stream.cwnd_max),
        ("max_snd_cwnd", stream.cwnd_max),
        ("max_snd_wnd", stream.window_max),
        ("max_rtt", stream.rtts.iter().copied().max().unwrap_or(0)),
        ("min_rtt", stream.rtts.iter().copied().min().unwrap_or(0)),
        ("mean_rtt", mean),
    ] {
        sender.insert(name.to_owned(), json!(number));
    }
    sender.insert("omitted".to_owned(), json!(false));
    json!({ "sender": sender, "receiver": receiver })
}

/// The host that was measured, by the address that data went to, else as it was typed; and the port of a node. Results
/// of earlier versions have addresses with ports.
fn host_and_port(address: &str, target: &str) -> (String, u16) {
    let port = || {
        let place = parse_location(target.split(' ').next_back().unwrap_or_default().as_bytes());
        place.ok().and_then(|place| place.node().map(|node| node.port)).unwrap_or(0)
    };
    match address.parse::<SocketAddr>() {
        Ok(address) => (address.ip().to_string(), address.port()),
        Err(_) if address.is_empty() => (target.to_owned(), port()),
        Err(_) => (address.to_owned(), port()),
    }
}

/// As RFC 9110 has it: `Mon, 23 Nov 2026 00:31:00 GMT`.
fn http_date(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = u64::try_from(seconds).unwrap_or(0).min(LAST_SECOND);
    let day = DAYS[(seconds / 86_400 % 7) as usize];
    // `2026-11-23T00:31:00.000Z`
    let text = crate::output::format::rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<usize>().ok()).unwrap_or(1);
    let month = MONTHS[(number(5, 7).max(1) - 1).min(11)];
    format!("{day}, {} {month} {} {} GMT", &text[8..10], &text[0..4], &text[11..19])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a second of warm-up and two that count, with two connections.
    fn row(name: &str, at_once: &str) -> Row {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let stream = |stream, bytes| StreamInterval {
            stream,
            bytes,
            retransmits: stream + 1,
            cwnd_bytes: 10 * bytes,
            window_bytes: 20 * bytes,
            rtt_us: 50 + bytes,
            rtt_var_us: 5,
            path_mtu_bytes: 1500,
        };
        let interval = |second: u64| Interval {
            start_seconds: second as f64,
            seconds: 1.0,
            is_warm_up: second == 0,
            streams: vec![stream(0, 100 * second), stream(1, 200 * second)],
        };
        let mut row = Row { name: name.to_owned(), ..Row::default() };
        row.conditions = vec![pair("connections", "2"), pair("mode", "clear"), pair("at_once", at_once)];
        row.put(value::BYTES, 880.0);
        row.put(value::SECONDS, 2.0);
        row.put(value::BYTES_PER_SECOND, 440.0);
        row.put(RETRANSMITS, 6.0);
        row.put(SOURCE_PROCESSORS, 0.5);
        row.put(DESTINATION_PROCESSORS, 0.25);
        row.intervals = (0..3).map(interval).collect();
        row
    }

    fn measured(rows: Vec<Row>) -> Measurement {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Measurement {
            kind: "net".to_owned(),
            target: "carrack://far:7420/".to_owned(),
            started: 1_795_393_860,
            settings: vec![pair("time_seconds", "2"), pair("warm_up_seconds", "1")],
            facts: vec![pair("link.address", "fd77::2"), pair("net.ipv4.tcp_congestion_control", "cubic")],
            rows,
            ..Measurement::default()
        }
    }

    /// A field, and whether a value is of its kind.
    type Field = (&'static str, fn(&Value) -> bool);

    /// What perfSONAR's parser reads, with the kind of each: of every interval, its streams and their sum, and of the
    /// end, the sums and the sender of every stream.
    const STREAM: [Field; 9] = [
        ("socket", Value::is_u64),
        ("start", Value::is_number),
        ("end", Value::is_number),
        ("bytes", Value::is_u64),
        ("bits_per_second", Value::is_number),
        ("retransmits", Value::is_u64),
        ("snd_cwnd", Value::is_u64),
        ("rtt", Value::is_u64),
        ("omitted", Value::is_boolean),
    ];
    const SUM: [&str; 5] = ["start", "end", "bytes", "bits_per_second", "seconds"];

    #[track_caller]
    fn check(object: &Value, fields: &[Field]) {
        for (name, is_right) in fields {
            assert!(is_right(&object[*name]), "{name}: {object}");
        }
    }

    #[test]
    fn iperf3_document_has_every_field_that_perfsonar_reads() {
        let documents = documents(&measured(vec![row("there", "no")]));
        let [document] = &documents[..] else { panic!("{documents:?}") };
        let sums = SUM.map(|name| (name, Value::is_number as fn(&Value) -> bool));
        let intervals = document["intervals"].as_array().unwrap();
        assert_eq!(intervals.len(), 3);
        for interval in intervals {
            assert_eq!(interval["streams"].as_array().unwrap().len(), 2);
            interval["streams"].as_array().unwrap().iter().for_each(|stream| check(stream, &STREAM));
            check(&interval["sum"], &sums);
        }
        check(&document["end"]["sum_sent"], &sums);
        check(&document["end"]["sum_received"], &sums);
        // At the end the round trip is a mean.
        let mut of_end = STREAM.to_vec();
        of_end.iter_mut().filter(|(name, _)| *name == "rtt").for_each(|(name, _)| *name = "mean_rtt");
        for stream in document["end"]["streams"].as_array().unwrap() {
            check(&stream["sender"], &of_end);
        }
    }

    #[test]
    fn iperf3_document_counts_what_counts() {
        let document = &documents(&measured(vec![row("there", "no")]))[0];
        let (sent, received) = (&document["end"]["sum_sent"], &document["end"]["sum_received"]);
        assert_eq!(
            (&sent["bytes"], &sent["bits_per_second"], &sent["retransmits"]),
            (&json!(900), &json!(3600.0), &json!(6))
        );
        assert_eq!((&received["bytes"], &received["bits_per_second"]), (&json!(880), &json!(3520.0)));
        let omitted: Vec<_> =
            document["intervals"].as_array().unwrap().iter().map(|one| &one["sum"]["omitted"]).collect();
        assert_eq!(omitted, [true, false, false]);
        // Time begins anew behind the warm-up.
        assert_eq!(document["intervals"][1]["streams"][0]["start"], 0.0);
        assert_eq!(document["intervals"][2]["streams"][1]["end"], 2.0);
        let stream = &document["end"]["streams"][1]["sender"];
        assert_eq!(
            (&stream["max_snd_cwnd"], &stream["mean_rtt"], &stream["min_rtt"]),
            (&json!(4000), &json!(350), &json!(250))
        );
        let start = &document["start"];
        assert_eq!(start["connecting_to"], json!({ "host": "fd77::2", "port": 7420 }));
        assert_eq!(start["timestamp"]["time"], "Mon, 23 Nov 2026 00:31:00 GMT");
        assert_eq!(start["tcp_mss_default"], 1440);
        assert_eq!(document["end"]["sender_tcp_congestion"], "cubic");
    }

    #[test]
    fn iperf3_document_has_the_congestion_control_that_was_asked_for() {
        let mut asked = measured(vec![row("there", "no"), row("back", "no"), row("there", "yes"), row("back", "yes")]);
        let told = |measured: &Measurement| -> Vec<String> {
            let ends = documents(measured).into_iter().map(|one| one["end"].clone());
            ends.map(|end| format!("{} {}", end["sender_tcp_congestion"], end["receiver_tcp_congestion"])).collect()
        };
        assert_eq!(told(&asked), [r#""cubic" """#, r#""" "cubic""#, r#""cubic" """#]);
        asked.settings.push((CONGESTION.to_owned(), "bbr".to_owned()));
        assert_eq!(told(&asked), [r#""bbr" """#, r#""bbr" "cubic""#, r#""bbr" "bbr""#]);
    }

    #[test]
    fn address_of_a_link_may_have_its_port_or_not() {
        let node = "carrack://far:7420/";
        assert_eq!(host_and_port("10.0.0.2", node), ("10.0.0.2".to_owned(), 7420));
        assert_eq!(host_and_port("[fd77::2]:7421", node), ("fd77::2".to_owned(), 7421));
        assert_eq!(host_and_port("fd77::2", "far:"), ("fd77::2".to_owned(), 0));
        assert_eq!(host_and_port("", "far:"), ("far:".to_owned(), 0));
    }

    #[test]
    fn iperf3_documents_are_one_for_each_test() {
        let absent = Row { values: Vec::new(), error: Some("refused".to_owned()), ..row("back", "no") };
        let rows = vec![row("there", "no"), absent, row("there", "yes"), row("back", "yes"), row("back", "no")];
        let mut documents = documents(&measured(rows));
        assert_eq!(documents.remove(1)["error"], "refused");
        let flags: Vec<_> = documents
            .iter()
            .map(|one| &one["start"]["test_start"])
            .map(|test| (test["bidir"].as_u64(), test["reverse"].as_u64()))
            .collect();
        assert_eq!(flags, [(Some(0), Some(0)), (Some(1), Some(0)), (Some(0), Some(1))]);
        let both = &documents[1];
        let sockets = |list: &Value, place: &str| -> Vec<Option<u64>> {
            list.as_array().unwrap().iter().map(|one| one.pointer(place).and_then(Value::as_u64)).collect()
        };
        let four = [Some(0), Some(1), Some(2), Some(3)];
        assert_eq!(sockets(&both["intervals"][0]["streams"], "/socket"), four);
        assert_eq!(sockets(&both["start"]["connected"], "/socket"), four);
        assert_eq!(sockets(&both["end"]["streams"], "/sender/socket"), four);
        assert_eq!(both["start"]["test_start"]["num_streams"], 2);
        assert!(both["intervals"][1]["sum_bidir_reverse"]["bytes"].is_u64());
        assert!(both["end"]["sum_received_bidir_reverse"]["bytes"].is_u64());
    }
}
