//! The way between the two hosts, both ways: routers, and the largest packet.

use std::time::{Duration, Instant};

use carrack_core::report::PathTrace;
use carrack_measure::network::{Route, RouteHop};
use carrack_measure::result::Row;

use super::plan::NetWay;
use crate::bench::moved::Moved;

/// Steps up to the last that is known.
pub const HOPS: &str = "hops";
/// The largest packet that gets there whole, in bytes.
pub const MTU: &str = "mtu_bytes";
/// Bytes a second that flow while the way is looked for: they keep the connections, and nobody notices them.
pub const RATE: u64 = 64 << 10;
/// Neither end takes longer: a search ends after 20 seconds, and what was found has to come here.
const PATIENCE: Duration = Duration::from_secs(25);

/// Whether both ends have told, or will not.
pub fn is_enough(moved: &Moved, since: Instant) -> bool {
    (moved.source.path.is_some() && moved.destination.path.is_some()) || since.elapsed() >= PATIENCE
}

/// What the row of a way is called.
pub fn name(way: NetWay) -> String {
    format!("path {}", way.name())
}

/// The row of the way in one direction.
pub fn row(path: Option<&PathTrace>, back: bool, failure: Option<String>) -> Row {
    let way = if back { NetWay::Back } else { NetWay::There };
    let mut row = Row { name: name(way), error: failure, ..Row::default() };
    let Some(path) = path else {
        row.error.get_or_insert_with(|| "the sending host does not look for the way".to_owned());
        return row;
    };
    let hops = path.hops.iter().map(|hop| RouteHop {
        address: hop.address.map(|address| address.to_string()),
        rtt_us: hop.round_trip.map(|time| time.as_secs_f64() * 1e6),
    });
    row.error = None;
    row.put(HOPS, path.hops.len() as f64);
    row.put(MTU, path.mtu_bytes.map_or(f64::NAN, f64::from));
    row.route = Some(Route {
        hops: hops.collect(),
        reached: path.reached,
        is_mtu_proved: path.is_mtu_proved,
        drops_large_packets: path.drops_large_packets,
        why: path.why.clone(),
    });
    row
}

/// What a later result is compared by: other routers explain other numbers.
pub fn facts(rows: &[Row]) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for row in rows {
        let Some(route) = &row.route else { continue };
        let hops = route.hops.iter().map(|hop| hop.address.clone().unwrap_or_else(|| "?".to_owned()));
        let name = row.name.replace(' ', ".");
        facts.push((format!("{name}.hops"), hops.collect::<Vec<_>>().join(" ")));
        facts.extend(row.value(MTU).map(|bytes| (format!("{name}.mtu_bytes"), bytes.to_string())));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::report::Hop;

    #[test]
    fn row_of_a_way_has_its_hops_and_says_what_is_not_known() {
        let hop = |address: &str| Hop { address: address.parse().ok(), round_trip: Some(Duration::from_micros(300)) };
        let path = PathTrace {
            hops: vec![hop("10.0.0.1"), Hop::default(), hop("fd77::2")],
            mtu_bytes: Some(1400),
            why: "nobody behind hop 3 answers probes".to_owned(),
            ..PathTrace::default()
        };
        let row = row(Some(&path), true, None);
        assert_eq!((row.name.as_str(), row.value(HOPS), row.value(MTU)), ("path back", Some(3.0), Some(1400.0)));
        let told = facts(std::slice::from_ref(&row));
        assert_eq!(told[0], ("path.back.hops".to_owned(), "10.0.0.1 ? fd77::2".to_owned()));
        assert_eq!(told[1], ("path.back.mtu_bytes".to_owned(), "1400".to_owned()));
        let unknown = super::row(None, false, None);
        assert!(unknown.route.is_none() && unknown.error.is_some() && facts(&[unknown]).is_empty());
    }
}
