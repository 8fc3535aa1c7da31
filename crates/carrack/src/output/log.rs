//! `--log-file`: what is said to a person, with the time, appended to a file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use super::format;
use super::stream::{self, Out};

/// A log that is open.
pub struct Log {
    file: Out,
    error: Option<io::Error>,
}

impl Log {
    /// Opens it for appending.
    ///
    /// # Errors
    /// What the system says to opening it.
    pub fn open(path: &[u8]) -> io::Result<Self> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let file = match fs::metadata(path) {
            Ok(found) if !found.is_file() => carrack_sys::standard::open_in_place(path, stream::is_over)?,
            _ => OpenOptions::new().append(true).create(true).open(path)?,
        };
        Ok(Self { file: stream::patient(file), error: None })
    }

    /// Adds a line. Written at once: a log is read most when the program did not come to its end.
    pub fn line(&mut self, time: SystemTime, line: &str) {
        if self.error.is_none() {
            // One write, so that two programs may share a log.
            let line = format!("{} {line}\n", format::rfc3339(time));
            self.error = self.file.write_all(line.as_bytes()).err();
        }
    }

    /// The first error of writing.
    pub fn finish(self) -> io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_with_the_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        for text in ["one", "two"] {
            let mut log = Log::open(path.as_os_str().as_bytes()).expect("opened");
            log.line(SystemTime::UNIX_EPOCH, text);
            log.finish().expect("written");
        }
        let text = std::fs::read_to_string(&path).expect("read");
        assert_eq!(text, "1970-01-01T00:00:00.000Z one\n1970-01-01T00:00:00.000Z two\n");
    }
}
