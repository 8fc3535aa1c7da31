//! Settings and counters of TCP.

use super::HostFacts;
use crate::known::{Known, Unknown};

impl HostFacts<'_> {
    /// The largest buffer that TCP gives to a connection by itself: for what it receives (`tcp_rmem`), in bytes.
    pub fn receive_buffer(&self) -> Known<f64> {
        self.third("ipv4/tcp_rmem")
    }

    /// The same for what it sends (`tcp_wmem`).
    pub fn send_buffer(&self) -> Known<f64> {
        self.third("ipv4/tcp_wmem")
    }

    fn third(&self, name: &str) -> Known<f64> {
        let numbers = self.numbers(&format!("proc/sys/net/{name}"))?;
        numbers.get(2).map(|bytes| *bytes as f64).ok_or_else(|| Unknown(format!("{name} has no third number")))
    }

    /// The part of a receive buffer that becomes a window, as `tcp_adv_win_scale` has it.
    pub fn window_share(&self) -> f64 {
        match self.network_number("ipv4/tcp_adv_win_scale") {
            Ok(scale @ 1..=8) => 1.0 - 0.5_f64.powi(scale as i32),
            Ok(scale @ -8..=-1) => 0.5_f64.powi(-scale as i32),
            Ok(_) | Err(_) => 0.5,
        }
    }

    /// The congestion control that connections get.
    pub fn congestion(&self) -> Known<&str> {
        self.text("proc/sys/net/ipv4/tcp_congestion_control")
    }

    /// Those that can be had without loading a module.
    pub fn congestions(&self) -> Known<Vec<&str>> {
        Ok(self.text("proc/sys/net/ipv4/tcp_available_congestion_control")?.split_whitespace().collect())
    }

    /// A counter of `/proc/net/netstat` or `/proc/net/snmp`, which have a line of names above each line of numbers.
    pub fn counter(&self, file: &str, group: &str, name: &str) -> Known<u64> {
        let text = self.text(file)?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let place = names.split_whitespace().position(|one| one == name);
        let value = place.and_then(|place| values.split_whitespace().nth(place)?.parse().ok());
        value.ok_or_else(|| Unknown(format!("/{file} has no {name}")))
    }

    /// What each processor's queue of received packets has met: packets, dropped ones, and how often time was over.
    pub fn softnet(&self) -> Known<(u64, u64, u64)> {
        let text = self.text("proc/net/softnet_stat")?;
        let mut sums = (0, 0, 0);
        for line in text.lines() {
            let mut numbers = line.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
            let mut next = || {
                numbers
                    .next()
                    .flatten()
                    .ok_or_else(|| Unknown("/proc/net/softnet_stat is not as it should be".to_owned()))
            };
            let mut add = |sum: u64| next().map(|number| sum.saturating_add(number));
            sums = (add(sums.0)?, add(sums.1)?, add(sums.2)?);
        }
        Ok(sums)
    }

    /// Memory that TCP has now, and the limits above which it saves and refuses, in pages.
    pub fn tcp_memory(&self) -> Known<(u64, u64, u64)> {
        let limits = self.numbers("proc/sys/net/ipv4/tcp_mem")?;
        let text = self.text("proc/net/sockstat")?;
        let line = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
        let mut words = line.split_whitespace().skip_while(|word| *word != "mem").skip(1);
        let used = words.next().and_then(|word| word.parse().ok());
        match (used, limits.len() < 3) {
            (Some(used), false) => Ok((used, limits[1], limits[2])),
            _ => Err(Unknown("the kernel does not tell TCP's memory".to_owned())),
        }
    }
}
