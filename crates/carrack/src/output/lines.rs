//! Standard output as lines. Its first error is kept and told at the end: a copy does not stop because nobody reads,
//! but that something was not taken is not success.

use std::io::{self, BufWriter, Write};

use carrack_core::path::drives_terminal;
use serde_json::Value;

use super::json;
use super::stream::{self, Out};
use crate::error::CommandError;

/// A writer of lines.
pub struct Lines<W: Write = Out> {
    out: Option<BufWriter<W>>,
    /// Whether somebody waits for each line: a terminal, or a program that reads JSON.
    at_once: bool,
    error: Option<io::Error>,
}

impl Lines {
    /// Standard output; `at_once` if each line shall leave at once even to a pipe.
    pub fn stdout(at_once: bool) -> Self {
        let at_once = at_once || stream::output_is_terminal();
        match stream::output() {
            Ok(out) => Self::to(out, at_once),
            Err(error) => Self { out: None, at_once, error: Some(error) },
        }
    }
}

impl<W: Write> Lines<W> {
    fn to(out: W, at_once: bool) -> Self {
        Self { out: Some(BufWriter::new(out)), at_once, error: None }
    }

    /// The first error so far: nothing that is written from now on arrives.
    pub fn check(&self) -> Result<(), CommandError> {
        self.error.as_ref().map_or(Ok(()), |error| Err(stream::not_written(error)))
    }

    /// Writes a line; the line feed is added.
    pub fn line(&mut self, line: &[u8]) {
        let Some(out) = self.out.as_mut().filter(|_| self.error.is_none()) else { return };
        let written = out.write_all(line).and_then(|()| out.write_all(b"\n"));
        self.error = written.and_then(|()| if self.at_once { out.flush() } else { Ok(()) }).err();
        self.forget_what_is_left();
    }

    /// A buffer tries once more to write what it holds when it is dropped: after an error nobody
    /// is to be waited for again.
    fn forget_what_is_left(&mut self) {
        if self.error.is_some() {
            self.out.take().map(BufWriter::into_parts);
        }
    }

    /// Writes an object.
    pub fn json(&mut self, value: &Value) {
        let mut line = json::text(value);
        // The serializer escapes C0 alone, and a person may look at this, too. Such characters stand in strings only.
        if line.contains(drives_terminal) {
            // JSON knows code units of UTF-16: two for a character beyond the first 65536.
            let units = |character: char| {
                character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            };
            let escaped = |character: char| match drives_terminal(character) {
                true => units(character),
                false => character.to_string(),
            };
            line = line.chars().map(escaped).collect();
        }
        self.line(line.as_bytes());
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The first error of writing. That the reader has gone (`| head`) is one.
    pub fn finish(mut self) -> Result<(), CommandError> {
        if let Some(out) = self.out.as_mut().filter(|_| self.error.is_none()) {
            self.error = out.flush().err();
            self.forget_what_is_left();
        }
        self.check()
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
        let text = "\n\u{9b}\u{202e}\u{feff}\u{e0041}";
        lines.json(&serde_json::json!({"b": text}));
        lines.finish().expect("written");
        assert_eq!(buffer, b"a\n{\"b\":\"\\n\\u009b\\u202e\\ufeff\\udb40\\udc41\"}\n");
        let back: Value = serde_json::from_slice(&buffer[2..]).expect("JSON");
        assert_eq!(back["b"], text);
    }

    #[test]
    fn lines_that_are_not_taken_are_an_error_at_once_or_at_the_end() {
        for (kind, code) in [
            (io::ErrorKind::StorageFull, crate::exit::FILE),
            (io::ErrorKind::BrokenPipe, crate::exit::READER_GONE),
            // Only a deadline gives a reader up without a signal.
            (io::ErrorKind::TimedOut, crate::exit::TIMEOUT),
        ] {
            for at_once in [true, false] {
                let mut lines = Lines::to(Failing(kind), at_once);
                lines.line(b"a");
                assert_eq!(lines.check().is_err(), at_once);
                lines.line(b"b");
                assert_eq!(lines.finish().expect_err("not taken").exit_code(), code);
            }
        }
    }
}
