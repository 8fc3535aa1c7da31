//! What a copy does with sources that grow while it goes on.

use std::time::Duration;

use crate::duration::parse_duration;
use crate::words::{quoted, words};

words! {
    /// What becomes of a source that grows while it is copied.
    #[derive(Default)]
    pub enum GrowingSources {
        #[default]
        0 Refuse "refuse" "a file that grows while it is read is sent again, and fails if it never rests"
        1 Snapshot "snapshot" "copy what it had when it was listed"
        2 Follow "follow" "copy what is appended, until nothing has been for a while"
    }
}

/// How long a file that is followed must not have grown, so that it counts as whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingIdle {
    text: String,
    time: Duration,
}

impl GrowingIdle {
    /// The shortest: less is the pause of any program that writes.
    pub const SHORTEST: Duration = Duration::from_millis(100);
    /// The longest: a day.
    pub const LONGEST: Duration = Duration::from_secs(86_400);
    /// What nobody has asked for otherwise.
    pub const DEFAULT: Duration = Duration::from_secs(5);

    /// Parses a duration within the bounds.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let time = parse_duration(text)?;
        match (Self::SHORTEST..=Self::LONGEST).contains(&time) {
            true => Ok(Self { text: text.to_owned(), time }),
            false => Err(format!("{} is no such time: use 100ms to 1d", quoted(text))),
        }
    }

    /// As it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// As a time.
    pub const fn time(&self) -> Duration {
        self.time
    }
}

/// The name of a lock file beside each file that is followed, in which `*` stands for that file's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GrowingLock {
    text: [u8; Self::BYTES_MAX],
    length: u8,
}

impl GrowingLock {
    /// The longest, in bytes.
    pub const BYTES_MAX: usize = 63;

    /// Parses a name: no path, and not the file's own.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fits = (1..=Self::BYTES_MAX).contains(&text.len()) && text.matches('*').count() <= 1;
        let is_name = !text.contains(|c: char| c == '/' || c.is_control()) && !matches!(text, "." | ".." | "*");
        if !fits || !is_name {
            return Err(format!("{} is no name of a lock file: use one such as 'run.lock' or '.*.lock'", quoted(text)));
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { text: bytes, length: text.len() as u8 })
    }

    /// As it was typed.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.text[..usize::from(self.length)]).unwrap_or_default()
    }

    /// The lock file of a file with this name.
    pub fn of(&self, name: &[u8]) -> Vec<u8> {
        match self.text().split_once('*') {
            Some((before, after)) => [before.as_bytes(), name, after.as_bytes()].concat(),
            None => self.text().into(),
        }
    }
}

impl std::fmt::Debug for GrowingLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_idle_is_within_its_bounds() {
        for (text, millis) in [("100ms", 100), ("5s", 5000), ("2", 2000), ("1d", 86_400_000)] {
            assert_eq!(GrowingIdle::parse(text).map(|idle| idle.time()), Ok(Duration::from_millis(millis)));
        }
        for text in ["", "0", "99ms", "1d1ms", "2d", "-1s", "soon"] {
            assert!(GrowingIdle::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn lock_files_have_a_name() {
        for (text, lock) in [("run.lock", "run.lock"), (".*.lock", ".log.1.lock"), ("*~", "log.1~")] {
            assert_eq!(GrowingLock::parse(text).map(|named| named.of(b"log.1")), Ok(lock.as_bytes().to_vec()));
        }
        let long = "n".repeat(64);
        for text in ["", ".", "..", "*", "**", "*.*", "a/b", "/lock", "a\n", &long] {
            assert!(GrowingLock::parse(text).is_err(), "{text:?}");
        }
    }
}
