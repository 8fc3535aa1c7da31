//! Flags in files: those that `-C` names, and the one that every line begins with; and the list of sources of `-I`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::cli::foreign::BBCP_FLAGS;
use crate::command::names::line::{LineError, OldLine, by_letters};
use crate::error::CommandError;

/// Files that name each other.
const DEPTH: u32 = 3;
/// What such a file may hold, in bytes.
const BYTES_MAX: u64 = 1 << 20;

impl OldLine {
    /// This line's flags, and then another's.
    pub fn before(mut self, mut other: Self) -> Self {
        self.flags.append(&mut other.flags);
        self.places.append(&mut other.places);
        self
    }
}

/// The flags of the file that every line begins with: the one that `bbcp_CONFIGFN` names, or `~/.bbcp.cf`, if it is
/// there.
///
/// # Errors
/// What is in it and is not taken.
pub fn implicit() -> Result<OldLine, LineError> {
    let named = std::env::var_os("bbcp_CONFIGFN").map(PathBuf::from);
    let path = named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".bbcp.cf")));
    match path.filter(|path| path.is_file()) {
        Some(path) => read(path.as_os_str().as_bytes()),
        None => Ok(OldLine::default()),
    }
}

/// Puts the flags of the files that `-C` names in the places where it stands.
///
/// # Errors
/// A file that cannot be read, and what is in it and is not taken.
pub fn spread(line: OldLine) -> Result<OldLine, LineError> {
    spread_below(line, DEPTH)
}

fn spread_below(line: OldLine, depth: u32) -> Result<OldLine, LineError> {
    let mut spread = OldLine { flags: Vec::new(), places: line.places };
    for given in line.flags {
        match &given.value {
            Some(path) if given.row.names[0] == "-C" => {
                if depth == 0 {
                    return Err(LineError::value("-C", path, format!("files name each other more than {DEPTH} deep")));
                }
                spread.flags.append(&mut spread_below(read(path)?, depth - 1)?.flags);
            }
            _ => spread.flags.push(given),
        }
    }
    Ok(spread)
}

/// The flags in a file: one a line, with the rest of the line behind it as its value.
fn read(path: &[u8]) -> Result<OldLine, LineError> {
    let text = text(path).map_err(|why| LineError::value("-C", path, why))?;
    let mut words = Vec::new();
    for line in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        if line.starts_with(b"#") {
            continue;
        }
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        words.push(line[..end].to_vec());
        words.extend(Some(line[end..].trim_ascii()).filter(|value| !value.is_empty()).map(<[u8]>::to_vec));
    }
    let line = by_letters(BBCP_FLAGS, &words)?;
    match line.places.first() {
        None => Ok(line),
        Some(place) => Err(LineError::value("-C", path, format!("{} is no flag", super::shown(place)))),
    }
}

fn text(path: &[u8]) -> Result<Vec<u8>, String> {
    let path = OsStr::from_bytes(path);
    let size = std::fs::metadata(path).map(|found| found.len()).map_err(|error| error.to_string())?;
    if size > BYTES_MAX {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// The sources that a file lists, one a line.
///
/// # Errors
/// A file that cannot be read, or lists none.
pub fn sources(path: &[u8]) -> Result<Vec<Vec<u8>>, CommandError> {
    let text =
        std::fs::read(OsStr::from_bytes(path)).map_err(|error| CommandError::file("cannot read", path, &error))?;
    let lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let found: Vec<Vec<u8>> = lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    match found.is_empty() {
        true => Err(CommandError::usage(format!("-I {}: it lists no source", super::shown(path)))),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_of(directory: &std::path::Path, name: &str) -> Result<String, LineError> {
        let path = directory.join(name).into_os_string().into_encoded_bytes();
        let line = spread(by_letters(BBCP_FLAGS, &[b"-v".to_vec(), b"-C".to_vec(), path, b"a".to_vec()])?)?;
        Ok(line.flags.iter().map(|given| given.row.names[0]).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn files_have_a_flag_a_line_and_may_name_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text).expect("written");
        write("one", "# mine\n-P 2\n\n  -S ssh -x %I -l %U %H bbcp\n-f\n".into());
        assert_eq!(spread_of(directory.path(), "one").as_deref(), Ok("-v -P -S -f"));
        write("two", format!("-k\n-C {}\n", directory.path().join("one").display()));
        assert_eq!(spread_of(directory.path(), "two").as_deref(), Ok("-v -k -P -S -f"));
        write("round", format!("-C {}\n", directory.path().join("round").display()));
        write("place", "file\n".into());
        write("unknown", "-Q\n".into());
        for name in ["round", "place", "unknown", "absent"] {
            assert!(spread_of(directory.path(), name).is_err(), "{name}");
        }
    }
}
