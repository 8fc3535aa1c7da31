//! What is seen while a copy runs: a bar on a terminal, else a line now and then. Always on standard error.

#[cfg(feature = "terminal")]
mod bar;
#[cfg(not(feature = "terminal"))]
#[path = "screen/no_bar.rs"]
mod bar;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use carrack_core::report::Progress;

use super::options::BarChoice;
use super::progress::progress;
use super::{format, stream};
use bar::Bar;

/// The rate shown is over this long: shorter flickers, longer hides a stall.
const RATE_WINDOW: Duration = Duration::from_secs(5);
/// Samples kept for it, whatever the engine's pace.
const RATE_SAMPLES: usize = 64;

/// Standard error, with or without a bar.
pub struct Screen {
    /// Nothing is said any more.
    is_silent: bool,
    kind: ProgressDisplay,
    meter: ProgressMeter,
}

enum ProgressDisplay {
    Bar(Bar),
    /// A line when `next` has come, then every so often.
    Lines {
        every: Duration,
        next: Instant,
    },
    Still,
}

impl Screen {
    /// A bar or lines, as chosen; `lines` says whether lines may replace a bar where none can be drawn, which is
    /// everywhere for a program without the feature `terminal`.
    pub fn new(choice: BarChoice, lines: bool, every: Duration, now: Instant) -> Self {
        let bar = match choice {
            BarChoice::Always => Bar::anywhere(),
            BarChoice::Terminal => Bar::on_terminal(),
            BarChoice::Never => None,
        };
        let kind = match bar {
            Some(bar) => ProgressDisplay::Bar(bar),
            None if choice != BarChoice::Never && lines && !every.is_zero() => {
                ProgressDisplay::Lines { every, next: now + every }
            }
            None => ProgressDisplay::Still,
        };
        Self { is_silent: false, kind, meter: ProgressMeter::default() }
    }

    /// Says nothing from now on.
    pub fn set_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    /// Prints a line, above the bar if there is one.
    pub fn say(&self, line: &str) {
        if self.is_silent {
            return;
        }
        self.aside(|| stream::say_line(line));
    }

    /// Has something printed that may be seen above the bar.
    pub fn aside(&self, print: impl FnOnce()) {
        match &self.kind {
            ProgressDisplay::Bar(bar) => bar.suspend(print),
            ProgressDisplay::Lines { .. } | ProgressDisplay::Still => print(),
        }
    }

    /// Shows counts; `asked` is whether somebody wants a line just now (SIGUSR1).
    pub fn progress(&mut self, counts: &Progress, asked: bool, now: Instant) {
        self.meter.add(now, counts.bytes_done);
        let rate = self.meter.rate();
        let due = match &mut self.kind {
            ProgressDisplay::Bar(bar) => {
                bar.draw(counts, rate);
                false
            }
            ProgressDisplay::Lines { every, next } if now >= *next => {
                *next = now + *every;
                true
            }
            ProgressDisplay::Lines { .. } | ProgressDisplay::Still => false,
        };
        if asked || due {
            self.say(&progress(counts, rate));
        }
    }

    /// Takes the bar away, and shows no more how the copy stands.
    pub fn stand_still(&mut self) {
        self.end();
        self.kind = ProgressDisplay::Still;
    }

    /// Takes the bar away: what is said from now on stays.
    pub fn end(&self) {
        if let ProgressDisplay::Bar(bar) = &self.kind {
            bar.end();
        }
    }
}

/// Bytes a second over the last few seconds.
#[derive(Debug, Default)]
struct ProgressMeter {
    samples: VecDeque<(Instant, u64)>,
}

impl ProgressMeter {
    fn add(&mut self, now: Instant, bytes: u64) {
        self.samples.push_back((now, bytes));
        // The oldest kept is the last one outside the window, so that a rate is over the whole of it.
        while self.samples.len() > RATE_SAMPLES
            || self.samples.get(1).is_some_and(|second| now.saturating_duration_since(second.0) >= RATE_WINDOW)
        {
            self.samples.pop_front();
        }
    }

    fn rate(&self) -> Option<f64> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        format::per_second(last.1.saturating_sub(first.1), last.0.saturating_duration_since(first.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_of_the_last_seconds() {
        let start = Instant::now();
        let mut meter = ProgressMeter::default();
        assert_eq!(meter.rate(), None);
        meter.add(start, 0);
        assert_eq!(meter.rate(), None);
        for second in 1..=10 {
            meter.add(start + Duration::from_secs(second), second * 100);
        }
        assert_eq!(meter.rate(), Some(100.0));
        // Ten fast seconds, five still ones.
        for second in 11..=15 {
            meter.add(start + Duration::from_secs(second), 1000);
        }
        assert_eq!(meter.rate(), Some(0.0));
    }

    #[test]
    fn samples_are_bounded() {
        let start = Instant::now();
        let mut meter = ProgressMeter::default();
        for millis in 0..4000 {
            meter.add(start + Duration::from_millis(millis), millis);
        }
        assert!(meter.samples.len() <= RATE_SAMPLES);
        assert_eq!(meter.rate().map(f64::round), Some(1000.0));
    }

    #[test]
    fn bytes_going_backwards_are_no_rate() {
        let start = Instant::now();
        let mut meter = ProgressMeter::default();
        meter.add(start, 100);
        meter.add(start + Duration::from_secs(1), 50);
        assert_eq!(meter.rate(), Some(0.0));
    }
}
