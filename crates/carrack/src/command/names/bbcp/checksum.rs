//! `-E`: the MD5 of what is copied, printed, appended to a file, or compared with one that was named.
//!
//! It is computed in a pass of its own over files of this host, before anything is sent, together with their BLAKE3.
//! That is what the copy then expects: a file that is another by then gets no name at the target.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use carrack_core::expected::ExpectedDigests;
use carrack_core::path::display_bytes;
use carrack_core::report::ErrorCode;
use carrack_core::request::{CopyRequest, Reflink};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

use super::failure;
use crate::command::names::line::LineError;
use crate::command::names::step::{OldPlace, trimmed};
use crate::error::CommandError;
use crate::output::stream;

/// Algorithms that bbcp has. Without a value behind them they only ask for what is done anyway.
const ALGORITHMS: [&str; 5] = ["a32", "c32", "md5", "c32z", "c32c"];
/// What is read at once.
const READ_BYTES: usize = 256 << 10;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Checksum {
    ask: ChecksumUse,
    sources: Vec<OldPlace>,
    target: OldPlace,
}

#[derive(Clone, Debug)]
enum ChecksumUse {
    Print,
    Append(Vec<u8>),
    Compare([u8; 16]),
}

/// Of the files of a copy, to be told once they are there.
pub struct ChecksumLines {
    ask: ChecksumUse,
    lines: Vec<Vec<u8>>,
}

impl Checksum {
    /// Of `[%]ALGORITHM[=[VALUE|FILE]]`; none where nothing is to be told or compared.
    ///
    /// # Errors
    /// What is none, or is not computed.
    pub fn of(value: &[u8], sources: &[OldPlace], target: &OldPlace) -> Result<Option<Self>, LineError> {
        let refused = |why: &str| Err(LineError::value("-E", value, why));
        let spec = value.strip_prefix(b"%").unwrap_or(value);
        let end = spec.iter().position(|&byte| byte == b'=').unwrap_or(spec.len());
        let algorithm = std::str::from_utf8(&spec[..end]).unwrap_or_default();
        if !ALGORITHMS.contains(&algorithm) {
            return refused("a32, c32, md5, c32z or c32c is expected");
        }
        let Some(asked) = spec.get(end + 1..) else { return Ok(None) };
        if algorithm != "md5" {
            return refused("of these only the MD5 is printed or compared: use md5");
        }
        if sources.iter().any(|source| source.host.is_some()) {
            return refused(
                "the MD5 of files on other hosts is not computed; carrack sum HOST:PATH prints their BLAKE3",
            );
        }
        if let Some(directory) = sources.iter().find(|source| source.is_local_directory()) {
            let why = format!("{} is a directory: the MD5 is that of files", display_bytes(&directory.path));
            return refused(&why);
        }
        let ask = match asked {
            b"" => ChecksumUse::Print,
            hex if hex.len() == 32 && HEXLOWER_PERMISSIVE.decode(hex).is_ok() => {
                let mut expected = [0; 16];
                expected.copy_from_slice(&HEXLOWER_PERMISSIVE.decode(hex).unwrap_or_default());
                ChecksumUse::Compare(expected)
            }
            path if path.contains(&b'/') || path.starts_with(b".") => ChecksumUse::Append(path.to_vec()),
            _ => return refused("an MD5 has 32 hexadecimal digits, and the path of a file a slash"),
        };
        if matches!(ask, ChecksumUse::Compare(_)) && sources.len() > 1 {
            return refused("one MD5 is that of one file");
        }
        Ok(Some(Self { ask, sources: sources.to_vec(), target: target.clone() }))
    }

    /// Reads the files, compares, and has the copy expect what was read.
    ///
    /// # Errors
    /// A file that cannot be read; another MD5 than was named.
    pub fn prepare(&self, request: &mut CopyRequest) -> Result<ChecksumLines, CommandError> {
        let mut expected = BTreeMap::new();
        let mut lines = Vec::new();
        for source in &self.sources {
            let path = trimmed(&source.path);
            let (md5, blake3) = digests(path).map_err(|error| CommandError::file("cannot read", path, &error))?;
            if let ChecksumUse::Compare(named) = self.ask
                && named != md5
            {
                let (path, found, named) = (display_bytes(path), HEXLOWER.encode(&md5), HEXLOWER.encode(&named));
                let why = format!("{path}: its MD5 is {found}, and {named} was expected: nothing was copied");
                return Err(failure(ErrorCode::DigestMismatch, why));
            }
            // Whether the target is a directory is not known here: it has one of two names there.
            expected.insert(source.name().to_vec(), blake3);
            if self.sources.len() == 1 {
                expected.insert(self.target.name().to_vec(), blake3);
            }
            lines.push(self.line(source, &md5));
        }
        request.options.expected = ExpectedDigests::new(expected);
        // What shares blocks is not read, and so not compared.
        request.options.reflink = Reflink::Never;
        Ok(ChecksumLines { ask: self.ask.clone(), lines })
    }

    fn line(&self, source: &OldPlace, md5: &[u8; 16]) -> Vec<u8> {
        let path = &self.target.path;
        let into = path.ends_with(b"/") || self.sources.len() > 1 || self.target.is_local_directory();
        let slash: &[u8] = if into && !path.ends_with(b"/") { b"/" } else { b"" };
        let name = if into { source.name() } else { b"" };
        let host = self.target.host.as_ref().map(|host| [&host[..], b":"].concat()).unwrap_or_default();
        let shown = display_bytes(&[&host[..], path, slash, name].concat()).to_string();
        format!("Checksum: md5 {} {shown}\n", HEXLOWER.encode(md5)).into_bytes()
    }
}

impl ChecksumLines {
    /// Tells them as was asked for.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn tell(self) -> Result<(), CommandError> {
        let text = self.lines.concat();
        match self.ask {
            ChecksumUse::Compare(_) => Ok(()),
            ChecksumUse::Print => stream::print(&text),
            ChecksumUse::Append(path) => {
                let file = OpenOptions::new().create(true).append(true).open(OsStr::from_bytes(&path));
                file.and_then(|mut file| file.write_all(&text))
                    .map_err(|error| CommandError::file("cannot append to", &path, &error))
            }
        }
    }
}

/// The MD5 and the BLAKE3 of a file.
fn digests(path: &[u8]) -> std::io::Result<([u8; 16], [u8; 32])> {
    let mut file = File::open(OsStr::from_bytes(path))?;
    let (mut md5, mut blake3) = (md5::Context::new(), blake3::Hasher::new());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((md5.finalize().0, blake3.finalize().into())),
            read => {
                md5.consume(&buffer[..read]);
                blake3.update(&buffer[..read]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(value: &str, sources: &[&str]) -> Result<bool, LineError> {
        let sources: Vec<OldPlace> = sources.iter().map(|source| OldPlace::typed(source.as_bytes())).collect();
        Checksum::of(value.as_bytes(), &sources, &OldPlace::typed(b"h:/out/")).map(|asked| asked.is_some())
    }

    #[test]
    fn what_is_done_anyway_is_nothing_and_what_is_not_computed_is_refused() {
        let hex = "b1946ac92492d2347c6235b4d2611184";
        for value in ["md5", "%md5", "c32", "a32"] {
            assert_eq!(asked(value, &["a"]), Ok(false), "{value}");
        }
        for value in ["md5=", "%md5=", "md5=/tmp/sums", &format!("md5={hex}")] {
            assert_eq!(asked(value, &["a"]), Ok(true), "{value}");
        }
        for value in ["sha1=", "a32=", "md5=x", "", "md5=b1946"] {
            assert!(asked(value, &["a"]).is_err(), "{value}");
        }
        assert!(asked("md5=", &["h:a"]).is_err(), "on another host");
        assert!(asked("md5=", &["/"]).is_err(), "a directory");
        assert!(asked(&format!("md5={hex}"), &["a", "b"]).is_err(), "one for two");
    }

    #[test]
    fn digests_are_those_that_md5sum_and_b3sum_print() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, b"hello\n").expect("written");
        let (md5, blake3) = digests(path.as_os_str().as_bytes()).expect("digests");
        assert_eq!(HEXLOWER.encode(&md5), "b1946ac92492d2347c6235b4d2611184");
        assert_eq!(blake3, *blake3::hash(b"hello\n").as_bytes());
    }
}
