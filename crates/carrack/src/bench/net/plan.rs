//! What is measured in which order: few rows by default, so that it ends within a minute.

use carrack_core::words;

words! {
    /// What is done to the bytes on their way.
    pub enum NetMode {
        0 Clear "clear" "no TLS and no digest: what the network carries"
        1 Encrypted "encrypted" "TLS, and no digest"
        2 Verified "verified" "TLS, and BLAKE3 on both sides: what a copy does"
    }
}

words! {
    /// Which way the bytes go.
    pub enum NetWay {
        0 There "there" "from the first host to the second"
        1 Back "back" "from the second host to the first"
        2 Both "both" "both ways at once"
    }
}

/// One transfer, or two at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetStep {
    /// Data connections of each transfer; `None` for as many as a copy chooses.
    pub streams: Option<u16>,
    /// What is done to the bytes.
    pub mode: NetMode,
    /// Which way they go.
    pub way: NetWay,
}

/// What was asked for; an empty list for what is usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetChoice {
    /// Numbers of data connections.
    pub streams: Vec<Option<u16>>,
    /// What is done to the bytes.
    pub modes: Vec<NetMode>,
    /// Which way they go.
    pub ways: Vec<NetWay>,
}

/// One connection; few; and what a copy has on a near path.
const STREAMS: [Option<u16>; 3] = [Some(1), Some(4), Some(8)];

impl NetChoice {
    /// The steps: every number of connections in the first mode, and the other modes with the last number. Where both
    /// were chosen, each goes with each.
    pub fn steps(&self) -> Vec<NetStep> {
        let or = |own: &[NetMode], all: &[NetMode]| if own.is_empty() { all.to_vec() } else { own.to_vec() };
        let modes = or(&self.modes, NetMode::ALL);
        let streams = if self.streams.is_empty() { STREAMS.to_vec() } else { self.streams.clone() };
        let ways = if self.ways.is_empty() { NetWay::ALL.to_vec() } else { self.ways.clone() };
        let every = !self.streams.is_empty() && !self.modes.is_empty();
        let mut steps = Vec::new();
        for &way in &ways {
            for (number, &mode) in modes.iter().enumerate() {
                let all = every || (number == 0 && (way != NetWay::Both || !self.streams.is_empty()));
                let chosen = if all { &streams[..] } else { &streams[streams.len() - 1..] };
                let wanted = every || number == 0 || way != NetWay::Both || !self.modes.is_empty();
                steps.extend(chosen.iter().filter(|_| wanted).map(|&streams| NetStep { streams, mode, way }));
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(choice: &NetChoice) -> Vec<String> {
        let each = choice.steps().into_iter().map(|step| {
            let streams = step.streams.map_or_else(|| "auto".to_owned(), |streams| streams.to_string());
            format!("{} {} {streams}", step.way.name(), step.mode.name())
        });
        each.collect()
    }

    #[test]
    fn steps_show_streams_first_and_then_the_price_of_each_mode() {
        let all = [
            "there clear 1",
            "there clear 4",
            "there clear 8",
            "there encrypted 8",
            "there verified 8",
            "back clear 1",
            "back clear 4",
            "back clear 8",
            "back encrypted 8",
            "back verified 8",
            "both clear 8",
        ];
        assert_eq!(told(&NetChoice::default()), all);
    }

    #[test]
    fn steps_are_those_that_were_chosen() {
        let choice = NetChoice {
            streams: vec![Some(1), None],
            modes: vec![NetMode::Verified, NetMode::Clear],
            ways: vec![NetWay::Back],
        };
        assert_eq!(told(&choice), ["back verified 1", "back verified auto", "back clear 1", "back clear auto"]);
        let choice = NetChoice { modes: vec![NetMode::Encrypted], ways: vec![NetWay::Both], ..NetChoice::default() };
        assert_eq!(told(&choice), ["both encrypted 8"]);
        let choice = NetChoice { streams: vec![Some(2)], ways: vec![NetWay::There], ..NetChoice::default() };
        assert_eq!(told(&choice), ["there clear 2", "there encrypted 2", "there verified 2"]);
    }
}
