//! Processor time of this process and of the busiest processor of the host while something is measured.

use std::time::Instant;

/// What processors have done up to a moment.
#[derive(Clone, Debug)]
pub struct Mark {
    at: Instant,
    process_seconds: f64,
    processors: Vec<Ticks>,
}

/// Time of one processor, in ticks of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
}

/// What processors did between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processors that this process kept busy: 1.5 is one and a half.
    pub process: f64,
    /// The busiest processor of the host, whoever used it, from 0 to 1; `None` where the system does not say.
    pub busiest: Option<f64>,
}

impl Mark {
    /// Notes what processors have done so far.
    pub fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self { at: Instant::now(), process_seconds: carrack_sys::host::cpu_seconds(), processors: parse(&stat) }
    }

    /// What they did since.
    pub fn usage(&self) -> Usage {
        let now = Self::now();
        let elapsed = now.at.duration_since(self.at).as_secs_f64();
        let process = if elapsed > 0.0 { (now.process_seconds - self.process_seconds).max(0.0) / elapsed } else { 0.0 };
        Usage { process, busiest: busiest(&self.processors, &now.processors) }
    }
}

/// The largest share of busy ticks; `None` if no processor has had ten ticks, which would say nothing.
fn busiest(before: &[Ticks], after: &[Ticks]) -> Option<f64> {
    let shares = before.iter().zip(after).filter_map(|(before, after)| {
        let all = after.all.saturating_sub(before.all);
        let busy = after.busy.saturating_sub(before.busy).min(all);
        (all >= 10).then(|| busy as f64 / all as f64)
    });
    shares.reduce(f64::max)
}

/// The lines `cpuN user nice system idle iowait irq softirq steal …` of `/proc/stat`.
fn parse(stat: &str) -> Vec<Ticks> {
    let each = stat.lines().filter(|line| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    });
    each.map(|line| {
        let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // Guest time is part of user time already.
        let all: u64 = ticks.iter().take(8).sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Ticks { busy: all - idle, all }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busiest_processor_is_found() {
        let before = "cpu  9 9 9 9\ncpu0 100 0 100 800 0 0 0 0 50\ncpu1 0 0 0 1000 0 0 0 0\nintr 5\n";
        let after = "cpu  9 9 9 9\ncpu0 140 0 110 840 10 0 0 0 90\ncpu1 0 0 10 1090 0 0 0 0\nintr 6\n";
        assert_eq!(busiest(&parse(before), &parse(after)), Some(0.5));
        assert_eq!(busiest(&parse(before), &parse(before)), None);
        assert_eq!(busiest(&[], &[]), None);
    }

    #[test]
    fn usage_counts_what_this_process_burns() {
        let mark = Mark::now();
        let mut work = 0u64;
        while mark.at.elapsed().as_millis() < 50 {
            work = std::hint::black_box(crate::data::mix(work));
        }
        assert!(mark.usage().process > 0.0);
    }
}
