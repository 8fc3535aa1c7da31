//! What rows about a network have beside numbers: how each connection went, interval by interval, and the way that
//! packets take.

/// One connection in one interval, as the sender's kernel counts it. What the kernel does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamInterval {
    /// Its number in the row.
    pub stream: u64,
    /// Bytes that the other host has acknowledged in the interval.
    pub bytes: u64,
    /// Segments sent again in the interval.
    pub retransmits: u64,
    /// Congestion window at the end, in bytes.
    pub cwnd_bytes: u64,
    /// The other host's receive window at the end, in bytes.
    pub window_bytes: u64,
    /// Smoothed round trip at the end, in microseconds.
    pub rtt_us: u64,
    /// How far round trips differ from it, in microseconds.
    pub rtt_var_us: u64,
    /// The largest packet that the path takes, in bytes.
    pub path_mtu_bytes: u64,
}

impl StreamInterval {
    /// The names of its fields, in the order of [`Self::values`].
    pub const NAMES: [&'static str; 8] =
        ["stream", "bytes", "retransmits", "cwnd_bytes", "window_bytes", "rtt_us", "rtt_var_us", "path_mtu_bytes"];

    /// Its fields.
    pub fn values(&self) -> [u64; 8] {
        [
            self.stream,
            self.bytes,
            self.retransmits,
            self.cwnd_bytes,
            self.window_bytes,
            self.rtt_us,
            self.rtt_var_us,
            self.path_mtu_bytes,
        ]
    }

    /// From its fields. Those that are missing are 0, further ones are passed over.
    pub fn from_values(values: impl IntoIterator<Item = u64>) -> Self {
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or(0);
        Self {
            stream: next(),
            bytes: next(),
            retransmits: next(),
            cwnd_bytes: next(),
            window_bytes: next(),
            rtt_us: next(),
            rtt_var_us: next(),
            path_mtu_bytes: next(),
        }
    }
}

/// All connections in one interval of about a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// When it begins, in seconds since the transfer began.
    pub start_seconds: f64,
    /// How long it is.
    pub seconds: f64,
    /// It belongs to the warm-up, and counts nowhere.
    pub is_warm_up: bool,
    /// Each connection that was there.
    pub streams: Vec<StreamInterval>,
}

/// The way that packets take from one host to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// Routers and the host itself, the nearest first.
    pub hops: Vec<RouteHop>,
    /// The host has answered.
    pub reached: bool,
    /// A packet of the size that the row has has got there whole. Otherwise the sending host takes it for possible.
    pub is_mtu_proved: bool,
    /// Larger packets vanish, and no router says so.
    pub drops_large_packets: bool,
    /// Why something could not be found; empty where everything was.
    pub why: String,
}

/// One step of the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteHop {
    /// Who answered; `None` if nobody did.
    pub address: Option<String>,
    /// How long that took, in microseconds.
    pub rtt_us: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_stream_comes_back_from_its_values() {
        let all = StreamInterval::from_values(1..);
        assert_eq!(all.values(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(StreamInterval::NAMES.len(), all.values().len());
        assert_eq!(StreamInterval::from_values([7]), StreamInterval { stream: 7, ..StreamInterval::default() });
    }
}
