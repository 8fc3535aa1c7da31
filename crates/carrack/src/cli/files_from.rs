//! `--files-from`: paths relative to the destination, one a line, as `--failed-list` writes them.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use carrack_core::limits;
use carrack_core::path::check_relative;

use crate::error::CommandError;
use crate::output::stream;

/// Reads a list; `-` is standard input.
///
/// # Errors
/// A file that cannot be read; a usage error that names the first bad line.
pub fn read_list(path: &[u8]) -> Result<Vec<Vec<u8>>, CommandError> {
    // A path of one letter takes two bytes in the file, and up to four for each of its own.
    let most = 4 * limits::SELECTED_BYTES as u64 + limits::SELECTED_PATHS as u64;
    let mut text = Vec::new();
    let read = if path == b"-" {
        stream::input().and_then(|input| input.take(most).read_to_end(&mut text))
    } else {
        File::open(std::ffi::OsStr::from_bytes(path)).and_then(|file| file.take(most).read_to_end(&mut text))
    };
    read.map_err(|error| CommandError::file("cannot read the list of files", path, &error))?;
    let paths = parse_list(&text).map_err(|why| CommandError::usage(format!("--files-from: {why}")))?;
    let bytes: usize = paths.iter().map(Vec::len).sum();
    if paths.len() > limits::SELECTED_PATHS || bytes > limits::SELECTED_BYTES {
        return Err(CommandError::usage(format!(
            "--files-from: more than {} paths, or {} bytes of them: name their directories",
            limits::SELECTED_PATHS,
            limits::SELECTED_BYTES
        )));
    }
    Ok(paths)
}

/// The paths of a list; empty lines are passed over, and a slash at the end of a line changes nothing.
///
/// # Errors
/// The first line that is no path, and why.
pub fn parse_list(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let lines = text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    let parsed = lines.map(|(number, line)| {
        let path = unescape(line).and_then(|mut path| {
            while path.len() > 1 && path.ends_with(b"/") {
                path.pop();
            }
            check_relative(&path).map(|()| path).map_err(|error| error.to_string())
        });
        path.map_err(|why| format!("line {}: {why}", number + 1))
    });
    parsed.collect()
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

    #[test]
    fn lines() {
        let text = b"a\n\nb/c/\n a b \n\\\\x41\\x41\\n\n\xff\nlast";
        let expected: [&[u8]; 6] = [b"a", b"b/c", b" a b ", b"\\x41A\n", b"\xff", b"last"];
        assert_eq!(parse_list(text).expect("parsed"), expected);
        assert!(parse_list(b"").expect("parsed").is_empty());
    }

    #[test]
    fn paths_that_are_none_are_named_by_their_lines() {
        for line in ["/a", "../a", "a/../b", "./a", "a//b", "/", "a\\", "a\\y", "\\x4", "\\xzz", "\\x+1", "\\x00"] {
            let why = parse_list(format!("fine\n{line}\n").as_bytes()).expect_err(line);
            assert!(why.starts_with("line 2: "), "{line}: {why}");
        }
    }
}
