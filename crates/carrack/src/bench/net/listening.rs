//! A client of iperf3 of somebody else as the far end: the iperf3 that is installed here waits for one, and what it
//! says is a result like any other.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::display_bytes;
use carrack_engine::Context;
use carrack_measure::facts;
use carrack_measure::result::{Measurement, Row};
use serde_json::Value;

use super::plan::{NetMode, NetStep, NetWay};
use super::row;
use super::said::{self, SaidWay};
use crate::bench::ladder::{TellRow, incomplete};

/// Between two servers, so that one that cannot run does not keep a processor busy.
const AGAIN: Duration = Duration::from_millis(200);
/// A server for one test. It ends with its standard input, so that none is left if this process is killed.
const SERVER: &str = "command -v iperf3 >/dev/null || { echo '{\"error\":\"it is not installed here\"}'; exit 127; }
exec 3<&0
iperf3 -s -1 -J -p \"$1\" 3<&- </dev/null & server=$!
(cat <&3 >/dev/null; kill $server) >/dev/null 2>&1 & watch=$!
wait $server; status=$?
kill $watch
exit $status";

/// Waits at `port` until a client has made one test, and tells its rows. What ended it early stands beside what was
/// measured. The client chooses streams, direction and time.
pub fn measure(port: u16, context: &Context, tell: &mut dyn TellRow) -> (Measurement, Option<Failure>) {
    let (begin, started, mut facts) = (Instant::now(), carrack_sys::host::clock_seconds(), facts::host().0);
    tell.note(&format!(
        "an iperf3 server waits for one test at port {port}; on the other host: iperf3 -c THIS_HOST -p {port}"
    ));
    let said = loop {
        let mut command = Command::new("sh");
        command.args(["-c", SERVER, "sh", &port.to_string()]).stdin(Stdio::piped());
        match said::document_of(&mut command, None, context) {
            // A scanner, or whoever else connects and leaves.
            Err(why) if why.code == ErrorCode::ConnectionLost => {
                tell.note("somebody connected and made no test: it waits again");
                std::thread::sleep(AGAIN);
            }
            other => break other,
        }
    };
    let (rows, settings, client, failure) = match said {
        Ok(said) => {
            facts.push(("iperf3".to_owned(), said::version(&said)));
            (rows(&said), settings(&said), client(&said), None)
        }
        Err(why) => {
            let step = NetStep { streams: None, mode: NetMode::Clear, way: NetWay::Back };
            let row = Row { error: Some(why.to_string()), ..row::named(step, true) };
            (vec![row], Vec::new(), String::new(), Some(why))
        }
    };
    rows.iter().for_each(|row| tell.row(row));
    let first = rows.iter().find_map(|row| row.error.clone());
    let failure = failure.or_else(|| first.map(|why| Failure::new(ErrorCode::ConnectFailed, Side::Link, why)));
    let measured = Measurement {
        kind: "net".to_owned(),
        target: format!("iperf3 client {client}").trim_end().to_owned(),
        started,
        elapsed: begin.elapsed(),
        settings: settings.into_iter().chain([("far_end".to_owned(), "iperf3 client".to_owned())]).collect(),
        facts,
        warnings: failure.as_ref().map(incomplete).into_iter().collect(),
        rows,
    };
    (measured, failure)
}

/// One row, or two where the client sends and receives at once.
fn rows(said: &Value) -> Vec<Row> {
    let of_test = |name: &str| said.pointer(&format!("/start/test_start/{name}"));
    let number = |name: &str| of_test(name).and_then(Value::as_u64);
    let streams = number("num_streams").and_then(|streams| u16::try_from(streams).ok());
    let both = said.pointer("/end/sum_sent_bidir_reverse").is_some();
    // The client sends unless it was told otherwise.
    let back = number("reverse") != Some(1);
    let directions = if both {
        let way = |back, suffix, sends| SaidWay { back, suffix, sends: Some(sends) };
        vec![way(true, "", false), way(false, "_bidir_reverse", true)]
    } else {
        vec![SaidWay::only(back)]
    };
    let row_of = |direction: SaidWay| {
        let way = if both { NetWay::Both } else { [NetWay::There, NetWay::Back][usize::from(direction.back)] };
        let mut row = row::named(NetStep { streams, mode: NetMode::Clear, way }, direction.back);
        match of_test("protocol").and_then(Value::as_str) {
            Some("TCP") => said::fill(&mut row, said, direction),
            other => {
                let other = display_bytes(other.unwrap_or("nothing that is known").as_bytes()).to_string();
                row.error = Some(format!("the client measured {other}: only TCP is kept"));
            }
        }
        row
    };
    directions.into_iter().map(row_of).collect()
}

/// What the client has chosen.
fn settings(said: &Value) -> Vec<(String, String)> {
    let of = |name: &str, place: &str| {
        let seconds = said.pointer(place).and_then(Value::as_f64)?;
        Some((name.to_owned(), seconds.to_string()))
    };
    let times = [("time_seconds", "/start/test_start/duration"), ("warm_up_seconds", "/start/test_start/omit")];
    times.into_iter().filter_map(|(name, place)| of(name, place)).collect()
}

fn client(said: &Value) -> String {
    let host = said.pointer("/start/accepted_connection/host").and_then(Value::as_str).unwrap_or_default();
    display_bytes(host.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use carrack_measure::result::value;
    use serde_json::json;

    use super::*;
    use crate::bench::net::row::RETRANSMITS;

    /// What a server says of a test: `sums` by their names.
    fn said(protocol: &str, reverse: u64, streams: &Value, sums: &Value) -> Value {
        let mut end = sums.clone();
        end["streams"] = streams.clone();
        json!({
            "start": {
                "version": "iperf 3.12",
                "accepted_connection": { "host": "192.0.2.7", "port": 5000 },
                "test_start": { "protocol": protocol, "num_streams": 1, "reverse": reverse, "duration": 10, "omit": 1 },
            },
            "intervals": [],
            "end": end,
        })
    }

    #[test]
    fn direction_is_the_one_that_the_client_chose() {
        let sum = |bytes: u64| json!({ "bytes": bytes, "seconds": 2.0, "retransmits": 3 });
        let stream = |sends: bool| json!({ "sender": { "sender": sends, "max_snd_cwnd": 90, "max_rtt": 60 } });
        let names = |rows: &[Row]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        let sent = said("TCP", 0, &json!([stream(false)]), &json!({ "sum_sent": sum(0), "sum_received": sum(500) }));
        let taken = rows(&sent);
        assert_eq!((names(&taken), taken[0].value(value::BYTES)), (vec!["back".to_owned()], Some(500.0)));
        // The client is told what has arrived, and this host is not.
        let fetched = said("TCP", 1, &json!([stream(true)]), &json!({ "sum_sent": sum(800), "sum_received": sum(0) }));
        let taken = rows(&fetched);
        assert_eq!((names(&taken), taken[0].value(value::BYTES)), (vec!["there".to_owned()], Some(800.0)));
        assert_eq!(taken[0].value(RETRANSMITS), Some(3.0));
        let sums = json!({
            "sum_sent": sum(0), "sum_received": sum(500),
            "sum_sent_bidir_reverse": sum(800), "sum_received_bidir_reverse": sum(0),
        });
        let taken = rows(&said("TCP", 0, &json!([stream(false), stream(true)]), &sums));
        assert_eq!(names(&taken), ["back", "there"]);
        assert_eq!((taken[0].value(value::BYTES), taken[1].value(value::BYTES)), (Some(500.0), Some(800.0)));
        assert_eq!(taken[1].value(crate::bench::ladder::STREAMS), Some(1.0), "of two, one sends");
        assert_eq!(client(&sent), "192.0.2.7");
        let expected = [("time_seconds", "10"), ("warm_up_seconds", "1")];
        assert_eq!(settings(&sent), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_is_no_tcp_is_refused_by_name() {
        let taken = rows(&said("UDP", 0, &json!([]), &json!({ "sum": { "bytes": 1, "seconds": 1.0 } })));
        assert_eq!(taken[0].error.as_deref(), Some("the client measured UDP: only TCP is kept"));
        assert_eq!(
            rows(&json!({}))[0].error.as_deref(),
            Some("the client measured nothing that is known: only TCP is kept")
        );
    }
}
