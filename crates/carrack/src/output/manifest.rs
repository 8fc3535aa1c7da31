//! `--manifest`: the digest of every published file, in the format that `b3sum -c` reads.
//!
//! Written to `FILE.part` and renamed when the copy has come to its end, so that a manifest under its name is complete.

use std::io::{self, Write};
use std::path::PathBuf;

use carrack_core::path::display_bytes;
use carrack_core::report::{ItemKind, ItemReport, Outcome};
use data_encoding::HEXLOWER;

use super::part_file::OutputFile;
use super::stream;

/// A manifest that is being written.
pub struct Manifest {
    out: OutputFile,
    /// It goes to a terminal, which gets nothing that it could obey.
    terminal: bool,
    lines: u64,
    left_out: u64,
    /// The connection was lost: items are told again from the start.
    again: bool,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

/// How a manifest ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ManifestOutcome {
    /// Files whose names are not UTF-8: `b3sum -c` cannot read them.
    pub left_out: u64,
    /// Where it stayed, if the copy did not come to its end.
    pub unfinished: Option<PathBuf>,
}

impl Manifest {
    /// Begins a manifest; `-` is standard output, at the end.
    ///
    /// # Errors
    /// What the system says to creating `FILE.part`.
    pub fn create(path: &[u8]) -> io::Result<Self> {
        let standard = path == b"-";
        let out = if standard { OutputFile::standard_output()? } else { OutputFile::create(path)? };
        let terminal = standard && stream::output_is_terminal();
        Ok(Self { out, terminal, lines: 0, left_out: 0, again: false, error: None })
    }

    /// Adds an item, if it is a published file.
    pub fn item(&mut self, item: &ItemReport) {
        if self.error.is_none() {
            self.error = self.add(item).err();
        }
    }

    fn add(&mut self, item: &ItemReport) -> io::Result<()> {
        self.start_over_if_told()?;
        let published = item.outcome == Outcome::Published && item.kind == ItemKind::File;
        let Some(digest) = item.digests.blake3.filter(|_| published) else {
            return Ok(());
        };
        if std::str::from_utf8(&item.path).is_err() {
            self.left_out += 1;
            return Ok(());
        }
        self.lines += 1;
        let shown = self.terminal.then(|| display_bytes(&item.path).to_string().into_bytes());
        let line = line(&HEXLOWER.encode(&digest), shown.as_ref().unwrap_or(&item.path));
        self.out.write_all(&line)
    }

    /// From now on items are told again from the start.
    pub fn session_lost(&mut self) {
        self.again = true;
    }

    /// Not earlier than with the first item that is told again: if there is none, what was
    /// copied before is all there is.
    fn start_over_if_told(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.again) {
            return Ok(());
        }
        (self.lines, self.left_out) = (0, 0);
        self.out.start_over()
    }

    /// Ends it. Only after a copy that came to its end does the manifest get its name.
    ///
    /// # Errors
    /// The first thing that went wrong, whenever it did.
    pub fn finish(mut self, complete: bool) -> io::Result<ManifestOutcome> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if complete {
            self.start_over_if_told()?;
        }
        let mut written = ManifestOutcome { left_out: self.left_out, unfinished: None };
        match complete {
            true => self.out.publish()?,
            false if self.lines == 0 => self.out.discard()?,
            false => written.unfinished = self.out.leave()?,
        }
        Ok(written)
    }
}

/// One line as b3sum and sha256sum print it: digest, two spaces, name. A name with a backslash or a line feed is
/// escaped, and a backslash before the digest says so.
pub fn line(digest_hex: &str, name: &[u8]) -> Vec<u8> {
    let (name, escaped) = escape(name);
    let mut line = Vec::with_capacity(digest_hex.len() + name.len() + 4);
    line.extend_from_slice(if escaped { b"\\" } else { b"" });
    line.extend_from_slice(digest_hex.as_bytes());
    line.extend_from_slice(b"  ");
    line.extend_from_slice(&name);
    line.push(b'\n');
    line
}

/// The name for a line of digests, and whether it had to be escaped.
pub fn escape(name: &[u8]) -> (Vec<u8>, bool) {
    // b3sum before 1.5 reads no `\r`, but needs none except at the end of a line, where every version drops it.
    let carriage_return = name.ends_with(b"\r");
    if !name.iter().any(|byte| matches!(byte, b'\\' | b'\n')) && !carriage_return {
        return (name.to_vec(), false);
    }
    let mut escaped = Vec::with_capacity(name.len() + 2);
    for &byte in name {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' if carriage_return => escaped.extend_from_slice(b"\\r"),
            _ => escaped.push(byte),
        }
    }
    (escaped, true)
}

/// The name that was escaped so.
pub fn unescape(escaped: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        name.push(match (byte, bytes.as_slice().first()) {
            (b'\\', Some(&letter)) => {
                bytes.next();
                match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    other => other,
                }
            }
            _ => byte,
        });
    }
    name
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use carrack_core::report::FileDigests;

    fn item(path: &[u8], outcome: Outcome) -> ItemReport {
        let digests = FileDigests { blake3: Some([0xab; 32]), ..FileDigests::default() };
        ItemReport { path: path.to_vec(), kind: ItemKind::File, size: 1, digests, judgment: None, outcome }
    }

    #[test]
    fn lines_as_b3sum_prints_them() {
        let cases: &[(&[u8], &[u8])] = &[
            (b"a/b", b"00  a/b\n"),
            (b"a b ", b"00  a b \n"),
            (b"a\\b", b"\\00  a\\\\b\n"),
            (b"a\nb", b"\\00  a\\nb\n"),
            (b"\\n", b"\\00  \\\\n\n"),
            (b"a\rb", b"00  a\rb\n"),
            (b"a\r", b"\\00  a\\r\n"),
            (b"-", b"00  -\n"),
            (b"\xff", b"00  \xff\n"),
        ];
        for (name, expected) in cases {
            assert_eq!(line("00", name), *expected);
        }
    }

    #[test]
    fn manifest_gets_its_name_at_the_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sums");
        let part = directory.path().join("sums.part");
        fs::write(&path, "old").expect("written");
        let bytes = path.as_os_str().as_encoded_bytes();
        let mut manifest = Manifest::create(bytes).expect("created");
        manifest.item(&item(b"a\\b", Outcome::Published));
        manifest.item(&item(b"kept", Outcome::Kept));
        manifest.item(&item(b"\xff", Outcome::Published));
        manifest.item(&ItemReport { kind: ItemKind::Symlink, ..item(b"link", Outcome::Published) });
        assert_eq!(fs::read(&path).expect("read"), b"old");
        let written = manifest.finish(true).expect("finished");
        assert_eq!(written, ManifestOutcome { left_out: 1, unfinished: None });
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(text, format!("\\{}  a\\\\b\n", "ab".repeat(32)));
        assert!(!part.exists());
    }

    #[test]
    fn lost_session_starts_over_with_the_first_item_told_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sums");
        let bytes = path.as_os_str().as_encoded_bytes();
        for (told_again, complete, expected) in [(true, true, "b"), (true, false, "b"), (false, false, "a")] {
            let mut manifest = Manifest::create(bytes).expect("created");
            manifest.item(&item(b"a", Outcome::Published));
            manifest.session_lost();
            if told_again {
                manifest.item(&item(b"b", Outcome::Published));
            }
            let written = manifest.finish(complete).expect("finished");
            let text = fs::read_to_string(written.unfinished.as_ref().unwrap_or(&path)).expect("read");
            assert_eq!(text, format!("{}  {expected}\n", "ab".repeat(32)));
        }
    }

    #[test]
    fn manifest_of_nothing_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sums");
        let manifest = Manifest::create(path.as_os_str().as_encoded_bytes()).expect("created");
        assert_eq!(manifest.finish(false).expect("finished"), ManifestOutcome::default());
        assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 0);
    }

    #[test]
    fn unfinished_manifest_leaves_the_old_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sums");
        let part = directory.path().join("sums.part");
        fs::write(&path, "old").expect("written");
        std::os::unix::fs::symlink(&path, &part).expect("a trap");
        let mut manifest = Manifest::create(path.as_os_str().as_encoded_bytes()).expect("created");
        manifest.item(&item(b"a", Outcome::Published));
        let written = manifest.finish(false).expect("finished");
        assert_eq!(written.unfinished, Some(part.clone()));
        assert_eq!(fs::read(&path).expect("read"), b"old");
        assert!(fs::read_to_string(&part).expect("read").ends_with("  a\n"));
    }
}
