//! `carrack sum -c`: whether files have the digests that a list tells, compared where the files are. A list is what
//! `sum`, `b3sum` or `xxhsum` prints, with tags or without.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;

use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::path::{display_bytes, join};
use carrack_core::report::{ErrorCode, Failure, FileDigests, Side};
use carrack_core::request::Digests;
use carrack_engine::files::Files;
use data_encoding::HEXLOWER_PERMISSIVE;
use serde_json::json;

use super::named::{self, Needs};
use super::place::VerbRun;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::{format, json as objects, manifest, say, stream};

/// The longest line of a list.
const LINE_BYTES: u64 = 4 * limits::PATH_BYTES as u64;

/// A file, and the digest that it is to have.
#[derive(Debug, PartialEq, Eq)]
struct ListedDigest {
    name: Vec<u8>,
    digests: FileDigests,
}

/// What became of a file of a list.
#[derive(Clone, Copy)]
enum ListedOutcome {
    Same,
    Differs,
    Missing,
}

impl ListedOutcome {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Same => ("OK", "same"),
            Self::Differs => ("FAILED", "different"),
            Self::Missing => ("MISSING", "missing"),
        }
    }
}

/// Compares the files of a list. Without a location its names are paths of this host.
///
/// # Errors
/// A list that cannot be read; a line that is none; what ends the verb.
pub fn run(flags: &Flags, list: &[u8], locations: &Positional, short: Digests) -> Result<u8, CommandError> {
    let places = match &named::places(flags, locations, Needs::READ)?[..] {
        [] => vec![Location::Local(Vec::new()).into()],
        [place] => vec![place.clone()],
        _ => return Err(CommandError::usage("a list is compared at one LOCATION")),
    };
    let unread = |error: std::io::Error| CommandError::file("cannot read the list", list, &error);
    let mut input: Box<dyn BufRead> = match list {
        b"-" => Box::new(BufReader::new(stream::input().map_err(unread)?)),
        path => Box::new(BufReader::new(File::open(std::ffi::OsStr::from_bytes(path)).map_err(unread)?)),
    };
    let mut run = VerbRun::new("sum", flags)?;
    let (mut refused, mut counts, mut is_read, mut names_any) = (None, [0_u64; 3], false, false);
    run.each(&places, |run, files, place| {
        is_read = true;
        for number in 1.. {
            let listed = match next(&mut *input).map_err(unread) {
                Ok(None) => break,
                Ok(Some(line)) if line.is_empty() => continue,
                Ok(Some(line)) => parse(&line, short)
                    .map_err(|why| CommandError::usage(format!("line {number} of {}: {why}", display_bytes(list)))),
                Err(error) => Err(error),
            };
            let listed = match listed {
                Ok(listed) => listed,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            };
            names_any = true;
            match compare(files, place.path(), &listed) {
                Ok(outcome) => tell(run, &listed.name, outcome, &mut counts),
                Err(why) if matches!(why.side, Side::Link | Side::Command) => return Err(why),
                Err(why) => run.fail(&listed.name, place.tell(why)),
            }
        }
        Ok(())
    })?;
    if let Some(refused) = refused {
        return Err(refused);
    }
    let [same, different, missing] = counts;
    // A place that was not reached has been told, and the list was not looked at.
    if is_read && !names_any {
        return Err(CommandError::usage(format!("{} names no file: nothing was compared", display_bytes(list))));
    }
    if !run.quiet && !run.json {
        let files = format::counted(same + different + missing, "file", "files");
        say(&format!("compared {files}: {different} different, {missing} missing"));
    }
    let code = if different + missing > 0 { exit::DIFFERENCES } else { exit::DONE };
    run.finish_with(code, json!({ "same": same, "different": different, "missing": missing }))
}

fn tell(run: &mut VerbRun, name: &[u8], outcome: ListedOutcome, counts: &mut [u64; 3]) {
    run.done += 1;
    counts[outcome as usize] += 1;
    let (line, word) = outcome.words();
    if run.json {
        run.json("sum_compared", objects::with_path(json!({ "result": word }), name));
    } else if !run.quiet || !matches!(outcome, ListedOutcome::Same) {
        run.line(format!("{}: {line}", display_bytes(name)).as_bytes());
    }
}

fn compare(files: &mut Files, top: &[u8], listed: &ListedDigest) -> Result<ListedOutcome, Failure> {
    let path = if listed.name.starts_with(b"/") { listed.name.clone() } else { join(top, &listed.name) };
    let FileDigests { blake3, xxh128, adler32, crc32c } = listed.digests;
    let wanted = Digests { adler32: adler32.is_some(), crc32c: crc32c.is_some(), ..Digests::NONE };
    let wanted = match (blake3, xxh128) {
        (Some(_), _) => Digests { main: Digests::BLAKE3.main, ..wanted },
        (_, Some(_)) => Digests { main: Digests::XXH128.main, ..wanted },
        _ => wanted,
    };
    // Of a directory no list has a digest, also where it holds a file that has that one.
    match files.sum_file(&path, wanted) {
        Ok(found) if found == listed.digests => Ok(ListedOutcome::Same),
        Ok(_) => Ok(ListedOutcome::Differs),
        Err(why) if why.code == ErrorCode::NotFound => Ok(ListedOutcome::Missing),
        Err(why) => Err(why),
    }
}

/// The next line of a list.
fn next(input: &mut dyn BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = Read::take(input, LINE_BYTES).read_until(b'\n', &mut line)?;
    line.pop_if(|last| *last == b'\n');
    Ok((read > 0).then_some(line))
}

/// One line. Of eight digits nobody sees which digest they are: they are of `short`.
fn parse(line: &[u8], short: Digests) -> Result<ListedDigest, String> {
    let is_escaped = line.starts_with(b"\\");
    let line = line.strip_prefix(b"\\").unwrap_or(line);
    let name = |name: &[u8]| if is_escaped { manifest::unescape(name) } else { name.to_vec() };
    for tag in ["BLAKE3", "XXH128", "ADLER32", "CRC32C"] {
        let rest = line.strip_prefix(tag.as_bytes()).and_then(|rest| rest.strip_prefix(b" ("));
        // A name may have such an end in it.
        let end = rest.and_then(|rest| rest.windows(4).rposition(|end| end == b") = "));
        if let (Some(rest), Some(end)) = (rest, end) {
            return Ok(ListedDigest { name: name(&rest[..end]), digests: digests(tag, &rest[end + 4..])? });
        }
    }
    let none = || "is no line of b3sum, xxhsum or carrack sum: a digest, two spaces and a name".to_owned();
    let end = line.iter().position(|byte| *byte == b' ').ok_or_else(none)?;
    let (digest, rest) = line.split_at(end);
    // A star stands there in a list of a program that tells text from other files.
    let file = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *")).ok_or_else(none)?;
    let tag = match (digest.len(), short.adler32, short.crc32c) {
        (64, ..) => "BLAKE3",
        (32, ..) => "XXH128",
        (8, true, false) => "ADLER32",
        (8, false, true) => "CRC32C",
        (8, ..) => return Err("eight digits are of adler32 or crc32c: say which by --digest".to_owned()),
        _ => return Err(none()),
    };
    Ok(ListedDigest { name: name(file), digests: digests(tag, digest)? })
}

fn digests(tag: &str, hex: &[u8]) -> Result<FileDigests, String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(hex).map_err(|_| format!("has no {tag} digest in hexadecimal"))?;
    let long = || format!("has {} bytes of a {tag} digest", bytes.len());
    let number = || bytes[..].try_into().map(u32::from_be_bytes).map_err(|_| long());
    let none = FileDigests::default();
    Ok(match tag {
        "BLAKE3" => FileDigests { blake3: Some(bytes[..].try_into().map_err(|_| long())?), ..none },
        "XXH128" => FileDigests { xxh128: Some(bytes[..].try_into().map_err(|_| long())?), ..none },
        "ADLER32" => FileDigests { adler32: Some(number()?), ..none },
        _ => FileDigests { crc32c: Some(number()?), ..none },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_each_program_are_read() {
        let hex = |byte: &str, count: usize| byte.repeat(count);
        let none = FileDigests::default();
        let adler = Digests { adler32: true, ..Digests::NONE };
        let cases: Vec<(String, &[u8], FileDigests)> = vec![
            (format!("{}  a b", hex("11", 32)), b"a b", FileDigests { blake3: Some([0x11; 32]), ..none }),
            (format!("{} *a", hex("AB", 16)), b"a", FileDigests { xxh128: Some([0xab; 16]), ..none }),
            (
                format!("\\{}  a\\\\b\\nc\\r", hex("11", 32)),
                b"a\\b\nc\r",
                FileDigests { blake3: Some([0x11; 32]), ..none },
            ),
            ("000000ab  a".to_owned(), b"a", FileDigests { adler32: Some(0xab), ..none }),
            ("CRC32C (a) = b) = 00000001".to_owned(), b"a) = b", FileDigests { crc32c: Some(1), ..none }),
            (format!("\\BLAKE3 (\\n) = {}", hex("11", 32)), b"\n", FileDigests { blake3: Some([0x11; 32]), ..none }),
        ];
        for (line, name, digests) in cases {
            let expected = ListedDigest { name: name.to_vec(), digests };
            assert_eq!(parse(line.as_bytes(), adler), Ok(expected), "{line}");
        }
        for line in ["a", "11  a", &format!("{}  a", hex("zz", 32)), &format!("{} a", hex("11", 32)), "BLAKE3 (a) = 11"]
        {
            assert!(parse(line.as_bytes(), adler).is_err(), "{line}");
        }
        assert!(parse(b"000000ab  a", Digests::BLAKE3).unwrap_err().contains("--digest"));
    }
}
