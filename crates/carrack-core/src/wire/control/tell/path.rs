//! The way to the other end as fields of a message, and from there back.

use std::net::IpAddr;
use std::time::Duration;

use crate::limits;
use crate::report::{Hop, PathTrace};
use crate::wire::control::raw;
use crate::wire::{ProtocolError, peer_text};

impl From<PathTrace> for raw::Traced {
    fn from(path: PathTrace) -> Self {
        let text = |address: Option<IpAddr>| address.map(|address| address.to_string()).unwrap_or_default();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
        let hop =
            |hop: Hop| raw::TracedHop { address: text(hop.address), round_trip_us: hop.round_trip.map_or(0, micros) };
        Self {
            to: text(path.to),
            hops: path.hops.into_iter().map(hop).collect(),
            reached: path.reached,
            mtu_bytes: path.mtu_bytes.unwrap_or(0),
            is_mtu_proved: path.is_mtu_proved,
            drops_large_packets: path.drops_large_packets,
            why: path.why,
        }
    }
}

/// Every address is one, or nobody's.
impl TryFrom<raw::Traced> for PathTrace {
    type Error = ProtocolError;

    fn try_from(traced: raw::Traced) -> Result<Self, ProtocolError> {
        if traced.hops.len() > limits::PATH_HOPS {
            let count = traced.hops.len();
            return Err(ProtocolError::violation(format!("the peer told a way of {count} steps")));
        }
        let address = |text: &str| match text {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| ProtocolError::violation("the peer told an address that is none"))
            }
        };
        let hop = |hop: &raw::TracedHop| {
            let time = Some(hop.round_trip_us).filter(|time| *time > 0).map(Duration::from_micros);
            Ok(Hop { address: address(&hop.address)?, round_trip: time })
        };
        Ok(Self {
            to: address(&traced.to)?,
            hops: traced.hops.iter().map(hop).collect::<Result<_, ProtocolError>>()?,
            reached: traced.reached,
            mtu_bytes: Some(traced.mtu_bytes).filter(|bytes| *bytes > 0),
            is_mtu_proved: traced.is_mtu_proved,
            drops_large_packets: traced.drops_large_packets,
            why: peer_text(&traced.why),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_of_a_peer_is_bounded_and_has_addresses_only() {
        let hop = |address: &str| raw::TracedHop { address: address.to_owned(), round_trip_us: 7 };
        let told = |hops: Vec<raw::TracedHop>, to: &str| {
            PathTrace::try_from(raw::Traced { hops, to: to.to_owned(), ..raw::Traced::default() })
        };
        let good = told(vec![hop("10.0.0.1"), hop(""), hop("fd77::2")], "fd77::2").unwrap();
        assert_eq!((good.hops.len(), good.hops[1].address, good.mtu_bytes), (3, None, None));
        assert!(told(vec![hop("\u{1b}[2J")], "").is_err() && told(Vec::new(), "host").is_err());
        assert!(told(vec![hop(""); limits::PATH_HOPS + 1], "").is_err());
    }
}
