//! What is seen while a copy runs: a bar on a terminal, else a line now and then. Always on standard error.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use carrack_core::report::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::{format, human, stream};

/// Whether a bar is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarChoice {
    /// On a terminal that can draw one; elsewhere lines.
    Terminal,
    /// Everywhere.
    Always,
    /// Neither bar nor lines.
    Never,
}

/// A person's eye follows no more.
const DRAWS_PER_SECOND: u8 = 10;
/// The rate shown is over this long: shorter flickers, longer hides a stall.
const RATE_WINDOW: Duration = Duration::from_secs(5);
/// Samples kept for it, whatever the engine's pace.
const RATE_SAMPLES: usize = 64;

/// Standard error, with or without a bar.
pub struct Screen {
    kind: Kind,
    meter: Meter,
}

enum Kind {
    Bar(ProgressBar),
    /// A line when `next` has come, then every so often.
    Lines {
        every: Duration,
        next: Instant,
    },
    Still,
}

impl Screen {
    /// A bar or lines, as chosen; `lines` says whether lines may replace a bar where none can be drawn.
    pub fn new(choice: BarChoice, lines: bool, every: Duration, now: Instant) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let kind = match choice {
            BarChoice::Always => {
                Kind::Bar(bar(ProgressDrawTarget::term_like_with_hz(Box::new(Ansi), DRAWS_PER_SECOND)))
            }
            BarChoice::Terminal if io::stderr().is_terminal() && !dumb => {
                Kind::Bar(bar(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND)))
            }
            BarChoice::Terminal if lines && !every.is_zero() => Kind::Lines { every, next: now + every },
            BarChoice::Terminal | BarChoice::Never => Kind::Still,
        };
        Self { kind, meter: Meter::default() }
    }

    /// Prints a line, above the bar if there is one.
    pub fn say(&self, line: &str) {
        let print = || super::say(line);
        match &self.kind {
            Kind::Bar(bar) => bar.suspend(print),
            Kind::Lines { .. } | Kind::Still => print(),
        }
    }

    /// Shows counts; `asked` is whether somebody wants a line just now (SIGUSR1).
    pub fn progress(&mut self, counts: &Progress, asked: bool, now: Instant) {
        self.meter.add(now, counts.bytes_done);
        let text = human::progress(counts, self.meter.rate());
        let due = match &mut self.kind {
            Kind::Bar(bar) => {
                draw(bar, counts, &text);
                false
            }
            Kind::Lines { every, next } if now >= *next => {
                *next = now + *every;
                true
            }
            Kind::Lines { .. } | Kind::Still => false,
        };
        if asked || due {
            self.say(&text);
        }
    }

    /// Takes the bar away: what is said from now on stays.
    pub fn end(&self) {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}

fn bar(target: ProgressDrawTarget) -> ProgressBar {
    // No colours, so that NO_COLOR has nothing to turn off.
    let style = ProgressStyle::with_template("[{bar:10}] {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    ProgressBar::with_draw_target(Some(1), target).with_style(style)
}

fn draw(bar: &ProgressBar, counts: &Progress, text: &str) {
    // A tree of empty files has no bytes to count.
    let (done, found) = match counts.bytes_found {
        0 => (counts.files_done, counts.files_found),
        bytes => (counts.bytes_done, bytes),
    };
    // Each of these may draw, as often as the terminal is allowed to: the words first.
    bar.set_message(text.to_owned());
    bar.update(|state| {
        // A bar of no length would be full.
        state.set_len(found.max(1));
        state.set_pos(done.min(found));
    });
}

/// Bytes a second over the last few seconds.
#[derive(Debug, Default)]
struct Meter {
    samples: VecDeque<(Instant, u64)>,
}

impl Meter {
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

/// Standard error taken for a terminal although it does not say that it is one (`-P`).
#[derive(Debug)]
struct Ansi;

impl Ansi {
    fn put(text: &str) -> io::Result<()> {
        stream::say(text);
        Ok(())
    }

    /// A cursor movement; by zero it would move by one.
    fn go(by: usize, direction: char) -> io::Result<()> {
        if by == 0 { Ok(()) } else { Self::put(&format!("\x1b[{by}{direction}")) }
    }
}

impl TermLike for Ansi {
    fn width(&self) -> u16 {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        columns.filter(|columns| *columns > 0).unwrap_or(80)
    }

    fn move_cursor_up(&self, by: usize) -> io::Result<()> {
        Self::go(by, 'A')
    }

    fn move_cursor_down(&self, by: usize) -> io::Result<()> {
        Self::go(by, 'B')
    }

    fn move_cursor_right(&self, by: usize) -> io::Result<()> {
        Self::go(by, 'C')
    }

    fn move_cursor_left(&self, by: usize) -> io::Result<()> {
        Self::go(by, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        Self::put(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        Self::put(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        Self::put("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_last_seconds() {
        let start = Instant::now();
        let mut meter = Meter::default();
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
        let mut meter = Meter::default();
        for millis in 0..4000 {
            meter.add(start + Duration::from_millis(millis), millis);
        }
        assert!(meter.samples.len() <= RATE_SAMPLES);
        assert_eq!(meter.rate().map(f64::round), Some(1000.0));
    }

    #[test]
    fn bytes_going_backwards_are_no_rate() {
        let start = Instant::now();
        let mut meter = Meter::default();
        meter.add(start, 100);
        meter.add(start + Duration::from_secs(1), 50);
        assert_eq!(meter.rate(), Some(0.0));
    }
}
