//! `--failed-list`: the paths of the items that failed, one a line, as `--files-from` reads them by the first one.
//!
//! A path stands as it is shown: printable UTF-8 as it is, any other byte as `\xNN`, a backslash doubled. Only a copy
//! that came to its end knows all of them, so only then does the list get its name.

use std::io::{self, Write};

use carrack_core::path::display_bytes;
use carrack_core::report::{ItemReport, Outcome};

use super::part_file::OutputFile;

/// The first line of each list, by which it is known from others.
pub const FAILED_LIST_LINE: &[u8] = b"# carrack failed-list\n";

/// A list that is being written.
pub struct FailedList {
    file: OutputFile,
    /// The connection was lost: items are told again from the start.
    again: bool,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl FailedList {
    /// Begins a list.
    ///
    /// # Errors
    /// What the system says to creating `FILE.part`.
    pub fn create(path: &[u8]) -> io::Result<Self> {
        let mut list = Self { file: OutputFile::create(path)?, again: false, error: None };
        list.file.write_all(FAILED_LIST_LINE)?;
        Ok(list)
    }

    /// Adds an item, if it failed.
    pub fn item(&mut self, item: &ItemReport) {
        if self.error.is_none() {
            self.error = self.add(item).err();
        }
    }

    fn add(&mut self, item: &ItemReport) -> io::Result<()> {
        self.start_over()?;
        match item.outcome {
            Outcome::Failed(_) => writeln!(self.file, "{}", display_bytes(&item.path)),
            _ => Ok(()),
        }
    }

    fn start_over(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.again) {
            self.file.start_over()?;
            self.file.write_all(FAILED_LIST_LINE)?;
        }
        Ok(())
    }

    /// From now on items are told again from the start.
    pub fn session_lost(&mut self) {
        self.again = true;
    }

    /// Ends it: with its name if the copy came to its end, else nothing of it stays.
    ///
    /// # Errors
    /// The first thing that went wrong, whenever it did.
    pub fn finish(mut self, complete: bool) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if complete {
            self.start_over()?;
        }
        if complete { self.file.publish() } else { self.file.discard() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::files_from::{FileList, parse_list};
    use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, Side};

    fn item(path: &[u8], failed: bool) -> ItemReport {
        let why = Failure::new(ErrorCode::NoSpace, Side::Destination, "");
        let outcome = if failed { Outcome::Failed(why) } else { Outcome::Published };
        let (path, digests) = (path.to_vec(), FileDigests::default());
        ItemReport { path, kind: ItemKind::File, size: 1, digests, judgment: None, outcome }
    }

    #[test]
    fn failed_list_gives_every_path_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = directory.path().join("list");
        let mut paths: Vec<Vec<u8>> =
            (1..=255).filter(|byte| *byte != b'/').map(|byte| vec![b'a', byte, b'b']).collect();
        paths.extend(
            [&b"a\\nb"[..], b"\\x0a", b" ", b"\xe2\x80\xae", b"\xff\xfe/x", "ü/ß".as_bytes()].map(<[u8]>::to_vec),
        );
        let mut list = FailedList::create(name.as_os_str().as_encoded_bytes()).expect("created");
        list.item(&item(b"copied", false));
        paths.iter().for_each(|path| list.item(&item(path, true)));
        list.finish(true).expect("finished");
        let text = std::fs::read(&name).expect("read");
        assert!(text.is_ascii() || std::str::from_utf8(&text).is_ok());
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), paths.len() + 1);
        assert_eq!(parse_list(&text, b'\n'), Ok(FileList { paths, is_below_sources: false }));
    }

    #[test]
    fn lost_session_starts_over_and_an_end_before_the_end_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = directory.path().join("list");
        let path = name.as_os_str().as_encoded_bytes();
        let mut list = FailedList::create(path).expect("created");
        list.item(&item(b"first", true));
        list.session_lost();
        list.item(&item(b"second", true));
        list.finish(true).expect("finished");
        assert_eq!(std::fs::read(&name).expect("read"), [FAILED_LIST_LINE, b"second\n"].concat());
        let mut list = FailedList::create(path).expect("created");
        list.item(&item(b"third", true));
        list.finish(false).expect("finished");
        assert_eq!(std::fs::read(&name).expect("read"), [FAILED_LIST_LINE, b"second\n"].concat(), "the old list stays");
        assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 1);
        let mut list = FailedList::create(path).expect("created");
        list.item(&item(b"fourth", true));
        list.session_lost();
        list.finish(true).expect("finished");
        assert_eq!(std::fs::read(&name).expect("read"), FAILED_LIST_LINE);
    }
}
