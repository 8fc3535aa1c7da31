//! When an attempt ends at the latest: by the task's deadline, which may change while it runs, and by the token that
//! submitted the task.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::order::Order;
use crate::clock::Moment;

/// The file, below a task's directory, in which the service says what the deadline is by now.
const DEADLINE: &str = "deadline";
/// The file while it is written.
const DEADLINE_NEXT: &str = "deadline.next";
/// What stands there where the task has none.
const NONE: &str = "none";

/// What has ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The task's deadline has passed.
    Deadline,
    /// The token that submitted the task allows no more time.
    Ceiling,
}

impl Over {
    /// In words.
    pub fn why(self) -> &'static str {
        match self {
            Self::Deadline => "the task's deadline has passed",
            Self::Ceiling => "the task has run for as long as the token that submitted it allows",
        }
    }
}

/// When an attempt ends at the latest.
#[derive(Debug)]
pub struct Limit {
    path: PathBuf,
    /// What the file said last.
    said: String,
    deadline: Option<Instant>,
    ceiling: Option<Instant>,
}

impl Limit {
    /// Of an attempt that begins now.
    pub fn of(order: &Order) -> Self {
        let ceiling = order.ceilings.run_seconds.map(Duration::from_secs);
        Self {
            path: order.directory.join(DEADLINE),
            said: String::new(),
            deadline: order.deadline.and_then(instant_of),
            ceiling: ceiling.and_then(|time| Instant::now().checked_add(time)),
        }
    }

    /// What has passed, by what the service says now.
    pub fn over(&mut self) -> Option<Over> {
        self.look();
        let passed = |at: Option<Instant>| at.is_some_and(|at| Instant::now() >= at);
        match (passed(self.deadline), passed(self.ceiling)) {
            (_, true) => Some(Over::Ceiling),
            (true, false) => Some(Over::Deadline),
            _ => None,
        }
    }

    /// Reads the file. What cannot be read changes nothing.
    fn look(&mut self) {
        let Ok(text) = std::fs::read_to_string(&self.path) else { return };
        if text == self.said {
            return;
        }
        match text.parse() {
            _ if text == NONE => self.deadline = None,
            Ok(micros) => self.deadline = instant_of(Moment(micros)),
            Err(_) => return,
        }
        self.said = text;
    }
}

fn instant_of(deadline: Moment) -> Option<Instant> {
    Instant::now().checked_add(deadline.since(SystemTime::now().into()))
}

/// Says to whatever worker carries out the task, or will, what its deadline is.
///
/// # Errors
/// Those of the file.
pub fn tell_deadline(directory: &Path, deadline: Option<Moment>) -> std::io::Result<()> {
    let text = deadline.map_or_else(|| NONE.to_owned(), |deadline| deadline.0.to_string());
    let (path, next) = (directory.join(DEADLINE), directory.join(DEADLINE_NEXT));
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    std::fs::write(&next, text)?;
    std::fs::rename(next, path)
}
