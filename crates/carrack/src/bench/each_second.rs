//! Below a row of a network, what each second of it had: as iperf3 prints it.

use std::time::Duration;

use carrack_measure::network::{Interval, StreamInterval};
use carrack_measure::result::Row;

use super::numbers;

/// A line for each interval of a row: its connections together. None for a row that has none.
pub fn lines(row: &Row) -> Vec<String> {
    row.intervals.iter().filter(|one| one.seconds > 0.0).map(line).collect()
}

fn line(one: &Interval) -> String {
    let sum = |value: fn(&StreamInterval) -> u64| one.streams.iter().map(value).fold(0, u64::saturating_add);
    let rate = numbers::rate(sum(|stream| stream.bytes) as f64 / one.seconds);
    let rtt = one.streams.iter().map(|stream| stream.rtt_us).max().unwrap_or(0);
    let (retransmits, window) = (sum(|stream| stream.retransmits), sum(|stream| stream.cwnd_bytes));
    // What is not told is 0, as of what an iperf3 server sends.
    let is_told = window > 0 || rtt > 0;
    let or_dash = |text: String| if is_told { text } else { "-".to_owned() };
    let omitted = if one.is_warm_up { "  (warm-up)" } else { "" };
    format!(
        "  {:>6.1}-{:<6.1} s {rate:>10}  Retr {:>6}  Cwnd {:>8}  rtt {:>8}{omitted}",
        one.start_seconds,
        one.start_seconds + one.seconds,
        or_dash(retransmits.to_string()),
        or_dash(numbers::amount(window as f64)),
        or_dash(numbers::time(Duration::from_micros(rtt))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_a_line_for_all_its_connections() {
        let stream = |bytes, retransmits| StreamInterval {
            bytes,
            retransmits,
            cwnd_bytes: 1 << 20,
            rtt_us: 20_100 + retransmits,
            ..StreamInterval::default()
        };
        let interval = |start_seconds: f64, is_warm_up| Interval {
            start_seconds,
            seconds: 1.0,
            is_warm_up,
            streams: vec![stream(60_000_000, 3), stream(64_000_000, 0)],
        };
        let row = Row { intervals: vec![interval(0.0, true), interval(1.0, false)], ..Row::default() };
        let lines = lines(&row);
        assert!(lines[0].contains("0.0-1.0") && lines[0].ends_with("(warm-up)"), "{lines:?}");
        let second = &lines[1];
        assert!(second.contains("1.0-2.0") && second.contains("124") && second.contains("Retr      3"), "{second}");
        assert!(second.contains("Cwnd") && second.contains("rtt") && !second.contains("warm-up"), "{second}");
        assert!(super::lines(&Row::default()).is_empty());
    }
}
