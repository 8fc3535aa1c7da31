//! Processor time of this process and of the busiest processor of the host while something is measured.

use std::time::{Duration, Instant};

use carrack_sys::measure::{Busy, processors};

/// Ten ticks of most systems, in which processor time is counted.
const LEAST: Duration = Duration::from_millis(100);

/// What processors have done up to a moment.
#[derive(Clone, Debug)]
pub struct Mark {
    at: Instant,
    process_seconds: f64,
    processors: Vec<Busy>,
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
        let processors = processors().unwrap_or_default().each;
        Self { at: Instant::now(), process_seconds: carrack_sys::host::cpu_seconds(), processors }
    }

    /// What they did since.
    pub fn usage(&self) -> Usage {
        let now = Self::now();
        let elapsed = now.at.duration_since(self.at).as_secs_f64();
        let process = if elapsed > 0.0 { (now.process_seconds - self.process_seconds).max(0.0) / elapsed } else { 0.0 };
        Usage { process, busiest: busiest(&self.processors, &now.processors) }
    }
}

/// The largest share of busy time; `None` if no processor has had [`LEAST`], which would say nothing.
fn busiest(before: &[Busy], after: &[Busy]) -> Option<f64> {
    // What the hypervisor gave to others this host did not have: for whoever waits, the processor was busy.
    let used = |time: &Busy| time.busy.saturating_add(time.stolen);
    let shares = before.iter().zip(after).filter_map(|(before, after)| {
        let busy = used(after).saturating_sub(used(before));
        let all = busy.saturating_add(after.idle.saturating_sub(before.idle));
        (all >= LEAST).then(|| busy.as_secs_f64() / all.as_secs_f64())
    });
    shares.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busiest_processor_is_found() {
        let time = |[busy, idle, stolen]: [u64; 3]| Busy {
            busy: Duration::from_millis(busy * 10),
            idle: Duration::from_millis(idle * 10),
            stolen: Duration::from_millis(stolen * 10),
            ..Busy::default()
        };
        let before = [[200, 800, 0], [0, 1000, 0]].map(time);
        let after = [[240, 850, 10], [10, 1090, 0]].map(time);
        assert_eq!(busiest(&before, &after), Some(0.5));
        assert_eq!(busiest(&before, &before), None);
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
