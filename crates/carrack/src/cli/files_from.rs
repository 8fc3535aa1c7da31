//! `--files-from`: which paths are copied, one a line. A list of rsync's has paths below the source; one that
//! `--failed-list` wrote is known by its first line and has paths below the destination.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use carrack_core::filter::entries_of;
use carrack_core::limits;
use carrack_core::path::check_relative;

use crate::cli::flag::Switch;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::output::{FAILED_LIST_LINE, stream};

/// Other lists and files of rules may have names with line ends in them.
pub const FROM0: Switch = Switch::short(
    '0',
    "from0",
    "In files that flags name, of rules or of paths, each entry ends with a NUL, not with its line",
);

/// With what an entry of a list ends.
pub fn end_of_entries(flags: &Flags) -> u8 {
    if flags.has(&FROM0) { 0 } else { b'\n' }
}

/// Paths that are copied, with what is below them.
#[derive(Debug, PartialEq, Eq)]
pub struct FileList {
    /// Relative to the sources, or to the destination.
    pub paths: Vec<Vec<u8>>,
    /// Relative to the sources, each of which is its contents: as with rsync.
    pub is_below_sources: bool,
}

/// Reads a list; `-` is standard input. Its entries end with `end`, but for one of ours.
///
/// # Errors
/// A file that cannot be read; a usage error that names the first bad line.
pub fn read_list(path: &[u8], end: u8) -> Result<FileList, CommandError> {
    // A path of one letter takes two bytes in the file, and up to four for each of its own.
    let most = 4 * limits::SELECTED_BYTES as u64 + limits::SELECTED_PATHS as u64;
    let mut text = Vec::new();
    let read = if path == b"-" {
        stream::input().and_then(|input| input.take(most).read_to_end(&mut text))
    } else {
        File::open(std::ffi::OsStr::from_bytes(path)).and_then(|file| file.take(most).read_to_end(&mut text))
    };
    read.map_err(|error| CommandError::file("cannot read the list of files", path, &error))?;
    let list = parse_list(&text, end).map_err(|why| CommandError::usage(format!("--files-from: {why}")))?;
    let bytes: usize = list.paths.iter().map(Vec::len).sum();
    if list.paths.len() > limits::SELECTED_PATHS || bytes > limits::SELECTED_BYTES {
        return Err(CommandError::usage(format!(
            "--files-from: more than {} paths, or {} bytes of them: name their directories",
            limits::SELECTED_PATHS,
            limits::SELECTED_BYTES
        )));
    }
    Ok(list)
}

/// The paths of a list; empty lines are passed over, and a slash at the end of a line changes nothing. In one that is
/// not ours, lines that begin with `#` or `;` are passed over, and a slash or `./` at the beginning changes nothing.
///
/// # Errors
/// The first line that is no path, and why.
pub fn parse_list(text: &[u8], end: u8) -> Result<FileList, String> {
    let whole = |number: usize, mut path: Vec<u8>| {
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        check_relative(&path).map(|()| path).map_err(|error| format!("line {number}: {error}"))
    };
    if let Some(ours) = text.strip_prefix(FAILED_LIST_LINE) {
        let lines = (2..).zip(ours.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty());
        let paths =
            lines.map(|(number, line)| whole(number, unescape(line).map_err(|why| format!("line {number}: {why}"))?));
        return Ok(FileList { paths: paths.collect::<Result<_, _>>()?, is_below_sources: false });
    }
    let paths = entries_of(text, end).map(|(number, line)| {
        let mut path = line;
        while let Some(rest) = path.strip_prefix(b"/").or_else(|| path.strip_prefix(b"./")) {
            path = rest;
        }
        if matches!(path, b"" | b".") {
            return Err(format!("line {number}: it names everything: leave the list out"));
        }
        whole(number, path.to_vec())
    });
    Ok(FileList { paths: paths.collect::<Result<_, _>>()?, is_below_sources: true })
}

fn unescape(line: &[u8]) -> Result<Vec<u8>, String> {
    let mut path = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                path.push(b'\\');
                after
            }
            (b'\\', [b'n', after @ ..]) => {
                path.push(b'\n');
                after
            }
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok().filter(|text| !text.starts_with('+'));
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                path.push(byte.ok_or("after \\x come two hexadecimal digits")?);
                after
            }
            (b'\\', _) => return Err("a backslash is written \\\\, any other byte may be \\xNN".to_owned()),
            (byte, after) => {
                path.push(*byte);
                after
            }
        };
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let list = parse_list(&[FAILED_LIST_LINE, text].concat(), b'\n')?;
        assert!(!list.is_below_sources);
        Ok(list.paths)
    }

    #[test]
    fn lines_of_ours() {
        let text = b"a\n\nb/c/\n a b \n\\\\x41\\x41\\n\n\xff\n#d\nlast";
        let expected: [&[u8]; 7] = [b"a", b"b/c", b" a b ", b"\\x41A\n", b"\xff", b"#d", b"last"];
        assert_eq!(ours(text).expect("parsed"), expected);
        assert!(ours(b"").expect("parsed").is_empty());
    }

    #[test]
    fn lines_as_rsync_reads_them() {
        let list = |text: &[u8], end| parse_list(text, end).map(|list| (list.paths, list.is_below_sources));
        let text = b"a\r\n# b\n;c\n./#d\n/e/f/\n\n\\x41\n";
        let expected: [&[u8]; 4] = [b"a", b"#d", b"e/f", b"\\x41"];
        assert_eq!(list(text, b'\n'), Ok((expected.map(<[u8]>::to_vec).to_vec(), true)));
        let expected: [&[u8]; 2] = [b"a\r\nb", b"c"];
        assert_eq!(list(b"a\r\nb\0\0#x\0c", 0), Ok((expected.map(<[u8]>::to_vec).to_vec(), true)));
        assert_eq!(list(b"", b'\n'), Ok((Vec::new(), true)));
        for line in ["../a", "a/../b", "a//b", "/", ".", "./", "a\0b"] {
            let why = list(format!("fine\n{line}\n").as_bytes(), b'\n').expect_err(line);
            assert!(why.starts_with("line 2: "), "{line}: {why}");
        }
    }

    #[test]
    fn paths_that_are_none_are_named_by_their_lines() {
        for line in ["/a", "../a", "a/../b", "./a", "a//b", "/", "a\\", "a\\y", "\\x4", "\\xzz", "\\x+1", "\\x00"] {
            let why = ours(format!("fine\n{line}\n").as_bytes()).expect_err(line);
            assert!(why.starts_with("line 3: "), "{line}: {why}");
        }
    }
}
