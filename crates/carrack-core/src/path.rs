//! Names from a peer, checked before anything else is done with them; names for a terminal, made harmless.
//!
//! A relative path is bytes: components of 1 to 255 bytes joined by single slashes, none of them `.` or `..`, no NUL,
//! not absolute, not empty. Whatever passes [`check_relative`] names something below the directory it is opened in,
//! as long as no symbolic link is followed on the way, which is the storage's part.

use std::fmt;

use crate::limits;
use crate::unicode::is_invisible;

/// Why a path from a peer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// Nothing at all.
    Empty,
    /// It starts with a slash.
    Absolute,
    /// A component is empty: two slashes, or one at the end.
    EmptyComponent,
    /// A component is `.` or `..`.
    Dots,
    /// It contains a NUL byte.
    Nul,
    /// A component is longer than [`limits::NAME_BYTES`], or the whole longer than [`limits::PATH_BYTES`].
    TooLong,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the path is empty",
            Self::Absolute => "the path is absolute",
            Self::EmptyComponent => "the path has an empty component",
            Self::Dots => "the path has a component . or ..",
            Self::Nul => "the path has a NUL byte",
            Self::TooLong => "the path is too long",
        })
    }
}

impl std::error::Error for PathError {}

/// Checks a path that a peer sent, or that a scan made.
///
/// # Errors
/// The first reason found why it may not be used.
pub fn check_relative(path: &[u8]) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.len() > limits::PATH_BYTES {
        return Err(PathError::TooLong);
    }
    if path[0] == b'/' {
        return Err(PathError::Absolute);
    }
    if path.contains(&0) {
        return Err(PathError::Nul);
    }
    path.split(|&byte| byte == b'/').try_for_each(check_component)
}

fn check_component(name: &[u8]) -> Result<(), PathError> {
    match name {
        b"" => Err(PathError::EmptyComponent),
        b"." | b".." => Err(PathError::Dots),
        _ if name.len() > limits::NAME_BYTES => Err(PathError::TooLong),
        _ => Ok(()),
    }
}

/// Splits a checked path into its directory (empty at the top) and its name.
pub fn split_name(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// The directories above a relative path, the outermost first; not the top.
pub fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| &path[..end])
}

/// What a path is called in a directory (empty: the top) that it lies in, or is: then empty.
pub fn within<'a>(path: &'a [u8], directory: &[u8]) -> Option<&'a [u8]> {
    match path.strip_prefix(directory)? {
        rest if rest.is_empty() || directory.is_empty() => Some(rest),
        rest => rest.strip_prefix(b"/"),
    }
}

/// Joins a directory (empty: the top) and a name or path below it.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        return name.to_vec();
    }
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !directory.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Without the slashes behind its name.
pub fn bare(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    &path[..end]
}

/// Whether a path is this one, or ends in it.
pub fn ends_in(path: &[u8], end: &[u8]) -> bool {
    path.strip_suffix(end).is_some_and(|above| above.is_empty() || above.ends_with(b"/"))
}

/// Shows bytes on a terminal or in a log: control characters and bytes that are not UTF-8 come out as `\xNN`, a
/// backslash doubled, so that a name can neither move the cursor nor break a line.
pub fn display_bytes(bytes: &[u8]) -> DisplayBytes<'_> {
    DisplayBytes(bytes)
}

/// Whether a terminal does other with a character than show it: C0, DEL and C1 (which may be obeyed even in UTF-8),
/// ends of lines and paragraphs, and whatever is not seen (`unicode`).
pub fn drives_terminal(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') || is_invisible(character)
}

/// See [`display_bytes`].
#[derive(Clone, Copy, Debug)]
pub struct DisplayBytes<'a>(&'a [u8]);

impl fmt::Display for DisplayBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\\' => f.write_str("\\\\")?,
                    _ if drives_terminal(character) => {
                        let mut buffer = [0; 4];
                        for byte in character.encode_utf8(&mut buffer).bytes() {
                            write!(f, "\\x{byte:02x}")?;
                        }
                    }
                    _ => write!(f, "{character}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_refuses_every_way_out() {
        let long_name = vec![b'a'; 256];
        let cases: &[(&[u8], PathError)] = &[
            (b"", PathError::Empty),
            (b"/etc/passwd", PathError::Absolute),
            (b"..", PathError::Dots),
            (b"a/../b", PathError::Dots),
            (b"a/..", PathError::Dots),
            (b"./a", PathError::Dots),
            (b"a//b", PathError::EmptyComponent),
            (b"a/", PathError::EmptyComponent),
            (b"a\0b", PathError::Nul),
            (&long_name, PathError::TooLong),
        ];
        for (path, error) in cases {
            assert_eq!(check_relative(path), Err(*error), "{}", display_bytes(path));
        }
        for path in [&b"a"[..], b"...", b"-rf", b"a b/\n", b"\xff\xfe", b"..a/b..", &[b'a'; 255]] {
            assert_eq!(check_relative(path), Ok(()), "{}", display_bytes(path));
        }
    }

    #[test]
    fn path_splits_and_joins() {
        assert_eq!(split_name(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(split_name(b"c"), (&b""[..], &b"c"[..]));
        assert_eq!(join(b"a/b", b"c"), b"a/b/c");
        assert_eq!(join(b"/", b"c"), b"/c");
        assert_eq!(join(b"", b"c"), b"c");
    }

    #[test]
    fn name_cannot_drive_a_terminal() {
        let shown = display_bytes(b"a\x1b]0;x\x07\n\xc2\x9b\xff\\\xe2\x80\xae").to_string();
        assert_eq!(shown, "a\\x1b]0;x\\x07\\x0a\\xc2\\x9b\\xff\\\\\\xe2\\x80\\xae");
        for hidden in ['\u{61c}', '\u{200b}', '\u{200d}', '\u{2028}', '\u{2064}', '\u{feff}', '\u{e0041}'] {
            let shown = display_bytes(format!("a{hidden}b").as_bytes()).to_string();
            assert!(shown.is_ascii() && shown.len() > "ab".len(), "{shown:?}");
        }
    }
}
