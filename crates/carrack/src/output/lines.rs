//! Standard output as lines. Its first error is kept and told at the end; a copy does not stop because nobody reads.

use std::io::{self, BufWriter, IsTerminal, Write};

use carrack_core::path::drives_terminal;
use serde_json::Value;

use crate::error::CommandError;

/// A writer of lines.
pub struct Lines<W: Write = io::Stdout> {
    out: BufWriter<W>,
    /// Whether somebody waits for each line: a terminal, or a program that reads JSON.
    at_once: bool,
    error: Option<io::Error>,
}

impl Lines {
    /// Standard output; `at_once` if each line shall leave at once even to a pipe.
    pub fn stdout(at_once: bool) -> Self {
        let out = io::stdout();
        let at_once = at_once || out.is_terminal();
        Self::to(out, at_once)
    }
}

impl<W: Write> Lines<W> {
    fn to(out: W, at_once: bool) -> Self {
        Self { out: BufWriter::new(out), at_once, error: None }
    }

    /// Writes a line; the line feed is added.
    pub fn line(&mut self, line: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let written = self.out.write_all(line).and_then(|()| self.out.write_all(b"\n"));
        let written = written.and_then(|()| if self.at_once { self.out.flush() } else { Ok(()) });
        self.error = written.err();
    }

    /// Writes an object.
    pub fn json(&mut self, value: &Value) {
        let mut line = value.to_string();
        // The serializer escapes C0 alone, and a person may look at this, too. Such characters stand in strings only.
        if line.contains(drives_terminal) {
            let escaped = |character: char| match drives_terminal(character) {
                true => format!("\\u{:04x}", u32::from(character)),
                false => character.to_string(),
            };
            line = line.chars().map(escaped).collect();
        }
        self.line(line.as_bytes());
    }

    /// Whether the reader has gone (`| head`): no line will be read any more.
    pub fn reader_gone(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Flushes.
    ///
    /// # Errors
    /// The first error of writing. A reader that has gone is none.
    pub fn finish(mut self) -> Result<(), CommandError> {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
        match &self.error {
            Some(error) if !self.reader_gone() => Err(CommandError::file("cannot write to", b"standard output", error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_leave_at_once_or_at_the_end() {
        let mut buffer = Vec::new();
        let mut lines = Lines::to(&mut buffer, false);
        lines.line(b"a");
        lines.json(&serde_json::json!({"b": "\n\u{9b}\u{202e}"}));
        lines.finish().expect("written");
        assert_eq!(buffer, b"a\n{\"b\":\"\\n\\u009b\\u202e\"}\n");
    }

    #[test]
    fn a_full_disk_is_told_and_a_gone_reader_is_not() {
        let mut lines = Lines::to(Failing(io::ErrorKind::StorageFull), true);
        lines.line(b"a");
        assert!(!lines.reader_gone());
        assert_eq!(lines.finish().expect_err("full").exit_code(), crate::exit::FILE);

        let mut lines = Lines::to(Failing(io::ErrorKind::BrokenPipe), true);
        lines.line(b"a");
        assert!(lines.reader_gone());
        lines.finish().expect("no error");
    }
}
