//! A bar, drawn by `indicatif`, with the counts beside it.

use carrack_sys::sync::lock;
use std::io::{self, IsTerminal};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use carrack_core::report::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::super::progress::progress_in;
use super::super::stream;

/// A person's eye follows no more.
const DRAWS_PER_SECOND: u8 = 10;

/// A bar on standard error.
pub struct Bar {
    bar: ProgressBar,
    /// How long it is drawn.
    bar_columns: AtomicUsize,
}

impl Bar {
    /// A bar on a terminal; `None` where standard error is none, or one that cannot draw.
    pub fn on_terminal() -> Option<Self> {
        // A terminal that nobody names may not understand what moves the cursor.
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let draws = io::stderr().is_terminal() && !dumb;
        draws.then(Self::new)
    }

    /// A bar on standard error, whatever that is.
    pub fn anywhere() -> Option<Self> {
        Some(Self::new())
    }

    fn new() -> Self {
        let target = ProgressDrawTarget::term_like_with_hz(Box::<Ansi>::default(), DRAWS_PER_SECOND);
        let bar_columns = bar_columns(usize::from(columns()));
        let bar = ProgressBar::with_draw_target(Some(1), target).with_style(style(bar_columns));
        Self { bar, bar_columns: AtomicUsize::new(bar_columns) }
    }

    /// Shows counts, in words beside the bar; `rate` is in bytes a second.
    pub fn draw(&self, counts: &Progress, rate: Option<f64>) {
        let columns = usize::from(columns());
        let bar = bar_columns(columns);
        if self.bar_columns.swap(bar, Ordering::Relaxed) != bar {
            self.bar.set_style(style(bar));
        }
        // Its brackets, a space, and the last column, where a terminal would go to the next line.
        let text = progress_in(counts, rate, columns.saturating_sub(bar + 4));
        // A tree of empty files has no bytes to count.
        let (done, found) = match counts.bytes_found {
            0 => (counts.files_done, counts.files_found),
            bytes => (counts.bytes_done, bytes),
        };
        // Each of these may draw, as often as the terminal is allowed to: the words first.
        self.bar.set_message(text);
        self.bar.update(|state| {
            // A bar of no length would be full.
            state.set_len(found.max(1));
            state.set_pos(done.min(found));
        });
    }

    /// Calls `print` while the bar is away.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar of this length. No colours, so that NO_COLOR has nothing to turn off.
fn style(bar_columns: usize) -> ProgressStyle {
    let style = ProgressStyle::with_template(&format!("[{{bar:{bar_columns}}}] {{wide_msg}}"));
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// How long a bar is on a terminal of this width: percent, rate and time left stand beside it in any case.
fn bar_columns(columns: usize) -> usize {
    match columns {
        0..60 => 5,
        60..120 => 10,
        _ => 40,
    }
}

/// How wide the terminal is; else what `COLUMNS` says, else 80.
fn columns() -> u16 {
    let variable = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = carrack_sys::standard::columns(io::stderr()).or_else(variable);
    columns.filter(|columns| *columns > 0).unwrap_or(80)
}

/// Standard error as a terminal, also where it does not say that it is one (`-P`). What is drawn goes the way of all
/// that is said there: a terminal that nobody reads holds up no signal.
#[derive(Debug, Default)]
struct Ansi {
    /// Drawn, and not written yet.
    drawn: Mutex<String>,
}

impl Ansi {
    fn drawn(&self) -> MutexGuard<'_, String> {
        lock(&self.drawn)
    }

    fn put(&self, text: &str) -> io::Result<()> {
        self.drawn().push_str(text);
        Ok(())
    }

    /// A cursor movement; by zero it would move by one.
    fn go(&self, by: usize, direction: char) -> io::Result<()> {
        if by == 0 { Ok(()) } else { self.put(&format!("\x1b[{by}{direction}")) }
    }
}

impl TermLike for Ansi {
    fn width(&self) -> u16 {
        columns()
    }

    fn move_cursor_up(&self, by: usize) -> io::Result<()> {
        self.go(by, 'A')
    }

    fn move_cursor_down(&self, by: usize) -> io::Result<()> {
        self.go(by, 'B')
    }

    fn move_cursor_right(&self, by: usize) -> io::Result<()> {
        self.go(by, 'C')
    }

    fn move_cursor_left(&self, by: usize) -> io::Result<()> {
        self.go(by, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.put(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.put(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.put("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let drawn = mem::take(&mut *self.drawn());
        stream::say(&drawn);
        Ok(())
    }
}
