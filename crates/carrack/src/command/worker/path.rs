//! The path between two endpoints, measured for the service as `carrack bench net` measures it.

use std::time::Duration;

use carrack_core::failure::Failure;
use carrack_core::request::{CopyOptions, Reach};
use carrack_engine::Context;
use carrack_measure::result::{Measurement, Row, Warning, value};
use carrack_service::model::PathWay;
use carrack_service::worker::paths::{PathEnds, PathOrder, PathTold, measured};

use crate::bench::ladder::{STREAMS, TellRow};
use crate::bench::net::plan::{NetChoice, NetMode, NetWay};
use crate::bench::net::row::{MIN_RTT, RESENT_SHARE, RETRANSMITS, RTT};
use crate::bench::net::{NetRequest, measure, path};

/// How long each way is measured: long enough for TCP to find the rate of a path of 200 ms.
const TIME: Duration = Duration::from_secs(5);
/// What is left out before that.
const WARM_UP: Duration = Duration::from_secs(1);

/// Measures what was ordered.
pub fn carry_out(order: &PathOrder, reach: &Reach, context: &Context) -> PathTold {
    measured(order, reach, |PathEnds { from, to }| {
        let request = NetRequest {
            from: from.0,
            to: to.0,
            options: CopyOptions {
                source: from.1,
                destination: to.1,
                rate_limit: order.rate_limit,
                ..CopyOptions::default()
            },
            choice: NetChoice {
                streams: vec![order.streams],
                modes: vec![NetMode::Verified],
                ways: vec![NetWay::There, NetWay::Back],
            },
            time: TIME,
            warm_up: WARM_UP,
            discard: false,
            path: true,
            only_path: false,
        };
        let mut notes = Notes(Vec::new());
        let (measured, failure) = measure(&request, context, &mut notes);
        told(&measured, notes.0, failure)
    })
}

fn told(measured: &Measurement, notes: Vec<String>, failure: Option<Failure>) -> (PathTold, Option<Failure>) {
    let way = |way: NetWay| {
        let row = |name: &str| measured.rows.iter().find(|row| row.name == name);
        way_of(row(way.name()), row(&path::name(way)))
    };
    let told = PathTold { there: way(NetWay::There), back: way(NetWay::Back), notes, failure: None };
    (told, failure)
}

/// One direction: its transfer, and its routers.
fn way_of(row: Option<&Row>, route: Option<&Row>) -> PathWay {
    let number = |name: &str| row.and_then(|row| row.value(name));
    let of_route = |name: &str| route.and_then(|row| row.value(name)).map(|number| number as u32);
    PathWay {
        bytes_per_second: number(value::BYTES_PER_SECOND),
        streams: number(STREAMS).map(|streams| streams as u32),
        round_trip_us: number(MIN_RTT),
        round_trip_longest_us: number(RTT),
        retransmits: number(RETRANSMITS).map(|count| count as u64),
        resent_share: number(RESENT_SHARE),
        hops: of_route(path::HOPS),
        packet_bytes: of_route(path::MTU),
        labels: row.map(|row| row.labels.clone()).unwrap_or_default(),
        error: row.and_then(|row| row.error.clone()),
    }
}

/// What a person should know; rows are taken from the whole.
struct Notes(Vec<String>);

impl TellRow for Notes {
    fn row(&mut self, _: &Row) {}

    fn warning(&mut self, _: &Warning) {}

    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_told_way_by_way_with_what_is_known_of_each() {
        let mut there = Row { name: "there".to_owned(), labels: vec!["processor".to_owned()], ..Row::default() };
        let numbers = [
            (value::BYTES_PER_SECOND, 1e8),
            (STREAMS, 4.0),
            (MIN_RTT, 20_100.0),
            (RTT, 31_000.0),
            (RETRANSMITS, 7.0),
            (RESENT_SHARE, 0.0002),
        ];
        numbers.iter().for_each(|(name, number)| there.put(name, *number));
        let back = Row { name: "back".to_owned(), error: Some("lost".to_owned()), ..Row::default() };
        let mut routers = Row { name: "path there".to_owned(), ..Row::default() };
        routers.put(path::HOPS, 3.0);
        routers.put(path::MTU, 1500.0);
        let measured = Measurement { rows: vec![routers, there, back], ..Measurement::default() };
        let (told, _) = told(&measured, vec!["a note".to_owned()], None);
        let expected = PathWay {
            bytes_per_second: Some(1e8),
            streams: Some(4),
            round_trip_us: Some(20_100.0),
            round_trip_longest_us: Some(31_000.0),
            retransmits: Some(7),
            resent_share: Some(0.0002),
            hops: Some(3),
            packet_bytes: Some(1500),
            labels: vec!["processor".to_owned()],
            error: None,
        };
        assert_eq!(told.there, expected);
        assert_eq!(told.back, PathWay { error: Some("lost".to_owned()), ..PathWay::default() });
        assert_eq!(told.notes, ["a note"]);
    }
}
