//! Files that describe a task: `--batch` (from where to where, one pair a line) and `--expect-digests` (as `b3sum`
//! prints them).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use carrack_core::path::{check_relative, display_bytes};
use carrack_service::model::{Pair, TaskKind};

use super::location::parse_task_location;
use super::words::split_words;
use crate::error::CommandError;
use crate::output::stream;

/// The most that such a file may have: a task is one document.
const FILE_BYTES: u64 = 64 << 20;

/// Reads the pairs of a task; `-` is standard input. Words are separated by white space, quotes keep it; what begins
/// with `#` is a comment.
///
/// # Errors
/// A file that cannot be read; a usage error that names the first bad line.
pub fn read_batch(path: &[u8], kind: TaskKind) -> Result<Vec<Pair>, CommandError> {
    let text = read_text(path, "cannot read the batch")?;
    let pairs = parse_batch(&text, kind).map_err(|why| named("--batch", path, &why))?;
    if pairs.is_empty() {
        return Err(named("--batch", path, "it has no line with a location"));
    }
    Ok(pairs)
}

/// Reads the digests that files must have, by path relative to the destination.
///
/// # Errors
/// A file that cannot be read; a usage error that names the first bad line.
pub fn read_digests(path: &[u8]) -> Result<BTreeMap<String, String>, CommandError> {
    let text = read_text(path, "cannot read the digests")?;
    parse_sums(&text).map_err(|why| named("--expect-digests", path, &why))
}

fn named(flag: &str, path: &[u8], why: &str) -> CommandError {
    CommandError::usage(format!("{flag} {}: {why}", display_bytes(path)))
}

/// The text of a file, `-` being standard input.
///
/// # Errors
/// `what` could not be done; a file that is too long, or no text.
pub fn read_text(path: &[u8], what: &str) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let read = if path == b"-" {
        stream::input().and_then(|input| input.take(FILE_BYTES + 1).read_to_end(&mut bytes))
    } else {
        let file = File::open(std::ffi::OsStr::from_bytes(path));
        file.and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| CommandError::file(what, path, &error))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(CommandError::usage(format!("{} has more than {FILE_BYTES} bytes", display_bytes(path))));
    }
    String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("{} is not UTF-8", display_bytes(path))))
}

fn parse_batch(text: &str, kind: TaskKind) -> Result<Vec<Pair>, String> {
    let mut pairs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |why: String| format!("line {}: {why}", index + 1);
        let words = split_words(line).map_err(at)?;
        let locations: Result<Vec<String>, String> =
            words.iter().map(|word| parse_task_location(word.as_bytes())).collect();
        let pair = match (kind, &locations.map_err(at)?[..]) {
            (TaskKind::Delete, [source]) => Pair { source: source.clone(), destination: None },
            (TaskKind::Delete, _) => return Err(at("one location is deleted a line".to_owned())),
            (_, [source, destination]) => Pair { source: source.clone(), destination: Some(destination.clone()) },
            _ => return Err(at("a line has a source and a destination; quote a name with a space".to_owned())),
        };
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Lines of `b3sum`: 64 hexadecimal digits, two spaces, a path. One that begins with `\` has `\\` and `\n` in its path.
fn parse_sums(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut sums = BTreeMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let at = |why: &str| format!("line {}: {why}", index + 1);
        let (escaped, line) = match line.strip_prefix('\\') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (digest, path) =
            line.split_once("  ").ok_or_else(|| at("not a line of b3sum: DIGEST, two spaces, PATH"))?;
        let digits = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if digest.len() != 64 || !digits {
            return Err(at("a BLAKE3 digest has 64 hexadecimal digits"));
        }
        let path =
            if escaped { unescape(path).ok_or_else(|| at("\\ is followed by \\ or n"))? } else { path.to_owned() };
        let path = path.strip_prefix("./").unwrap_or(&path);
        check_relative(path.as_bytes()).map_err(|why| at(&why.to_string()))?;
        let digest = digest.to_ascii_lowercase();
        if sums.insert(path.to_owned(), digest.clone()).is_some_and(|other| other != digest) {
            return Err(at("the path stands there twice, with two digests"));
        }
    }
    Ok(sums)
}

fn unescape(path: &str) -> Option<String> {
    let mut text = String::with_capacity(path.len());
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_has_a_pair_a_line() {
        let text = "# a comment\n\n@a:/x @b:/y/\n'@a:/with space'\t\"@b:/o\"\n";
        let pairs = parse_batch(text, TaskKind::Copy).expect("good");
        assert_eq!(pairs.len(), 2);
        assert_eq!((&pairs[1].source[..], pairs[1].destination.as_deref()), ("@a:/with space", Some("@b:/o")));
        let deleted = parse_batch("@a:/x\n", TaskKind::Delete).expect("good");
        assert_eq!(deleted[0].destination, None);
        for (text, kind, line) in [
            ("@a:/x\n", TaskKind::Copy, "line 1"),
            ("@a:/x @b:/y\n@a:/x @b:/y z\n", TaskKind::Move, "line 2"),
            ("@a:/x @b:/y\n", TaskKind::Delete, "line 1"),
            ("'@a:/x @b:/y\n", TaskKind::Copy, "line 1"),
            ("@a:x @b:/y\n", TaskKind::Copy, "line 1"),
        ] {
            assert!(parse_batch(text, kind).expect_err(text).contains(line), "{text}");
        }
    }

    #[test]
    fn digests_are_read_as_b3sum_writes_them() {
        let one = "aB".repeat(32);
        let text = format!("{one}  run42/a b\n\\{one}  x\\ny\\\\n\n{one}  ./c\n");
        let sums = parse_sums(&text).expect("good");
        let paths: Vec<&str> = sums.keys().map(String::as_str).collect();
        assert_eq!(paths, ["c", "run42/a b", "x\ny\\n"]);
        assert!(sums.values().all(|digest| *digest == "ab".repeat(32)));
        for text in ["abc  x\n", &format!("{one} x\n"), &format!("{one}  /x\n"), &format!("{one}  a/../x\n")] {
            assert!(parse_sums(text).is_err(), "{text}");
        }
        let twice = format!("{}  a\n{}  a\n", "a".repeat(64), "b".repeat(64));
        assert!(parse_sums(&twice).expect_err("twice").contains("line 2"));
    }
}
