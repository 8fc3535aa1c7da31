//! What a line of another program comes to: copies, one after the other, each in the words of `carrack copy`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use carrack_core::location::encode_path;

/// Hosts whose names stand for something else in a location.
const TAKEN_NAMES: [&[u8]; 3] = [b"zero", b"random", b"null"];

/// Where a source or a target is, as another program's line has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldPlace {
    /// `[USER@]HOST`; `None` for this host.
    pub host: Option<Vec<u8>>,
    /// The path there.
    pub path: Vec<u8>,
}

impl OldPlace {
    /// On this host.
    pub fn local(path: &[u8]) -> Self {
        Self { host: None, path: path.to_vec() }
    }

    /// The same place with another path.
    pub fn with_path(&self, path: &[u8]) -> Self {
        Self { host: self.host.clone(), path: path.to_vec() }
    }

    /// `PATH`, `[USER@]HOST:PATH` or `[USER@]HOST::PATH`: a colon before the first slash makes it one of another host.
    pub fn typed(text: &[u8]) -> Self {
        let head = text.split(|&byte| byte == b'/').next().unwrap_or_default();
        // The colons of an address stand in brackets.
        let first = head.iter().position(|&byte| byte == b':').unwrap_or(head.len());
        let has_brackets = head.starts_with(b"[") || head[..first].windows(2).any(|two| two == b"@[");
        let bracket = head.iter().position(|&byte| byte == b']').filter(|_| has_brackets).unwrap_or(0);
        let Some(colon) = head[bracket..].iter().position(|&byte| byte == b':').map(|at| at + bracket) else {
            return Self::local(text);
        };
        let path = text[colon + 1..].strip_prefix(b":").unwrap_or(&text[colon + 1..]);
        Self { host: Some(text[..colon].to_vec()), path: path.to_vec() }
    }

    /// As `carrack copy` reads it.
    pub fn word(&self) -> OsString {
        let word = match &self.host {
            None => {
                let head = self.path.split(|&byte| byte == b'/').next().unwrap_or_default();
                let is_plain = !head.contains(&b':') && !matches!(head.first(), Some(b'-' | b'@'));
                match &self.path[..] {
                    b"" => b"./".to_vec(),
                    path if is_plain => path.to_vec(),
                    path => [b"./", path].concat(),
                }
            }
            Some(host) if TAKEN_NAMES.contains(&host.as_slice()) => {
                let begin: &[u8] = if self.path.starts_with(b"/") { b"" } else { b"/~/" };
                [b"ssh://", &host[..], begin, encode_path(&self.path).as_bytes()].concat()
            }
            Some(host) => [&host[..], b":", &self.path].concat(),
        };
        OsString::from_vec(word)
    }

    /// The name that it ends with; slashes at the end do not count.
    pub fn name(&self) -> &[u8] {
        let path = trimmed(&self.path);
        path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    /// The pattern that it ends with, and the directory that it is for; none where there are no wildcards.
    pub fn wildcards(&self) -> Option<(Self, Vec<u8>)> {
        let at = self.path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let (directory, pattern) = self.path.split_at(at);
        is_wild(pattern).then(|| {
            let directory: &[u8] = if directory.is_empty() { b"./" } else { directory };
            (self.with_path(directory), pattern.to_vec())
        })
    }

    /// Whether a directory above its last name has wildcards.
    pub fn has_wild_directory(&self) -> bool {
        let at = self.path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        is_wild(&self.path[..at])
    }

    /// Whether it is a directory of this host, links followed.
    pub fn is_local_directory(&self) -> bool {
        self.host.is_none() && std::fs::metadata(OsStr::from_bytes(&self.path)).is_ok_and(|found| found.is_dir())
    }
}

/// Whether a name stands for all that match it.
fn is_wild(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?[".contains(byte))
}

/// A path without slashes at its end; that of the root stays.
pub fn trimmed(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(1, |at| at + 1);
    &path[..end.min(path.len())]
}

/// One copy.
#[derive(Clone, Debug, Default)]
pub struct CopyStep {
    /// Flags of `carrack copy`.
    pub flags: Vec<OsString>,
    /// Its sources,
    pub sources: Vec<OsString>,
    /// and where they go.
    pub destination: OsString,
    /// What the sources were typed as, where they have wildcards: they must match something.
    pub pattern: Option<Vec<u8>>,
}

impl CopyStep {
    /// The line that does it, for the verb itself.
    pub fn words(&self) -> Vec<OsString> {
        let begin = [OsString::from("copy")];
        let places = self.sources.iter().chain([&self.destination]).cloned();
        begin.into_iter().chain(self.flags.iter().cloned()).chain(["--".into()]).chain(places).collect()
    }

    /// The names in a directory that match a pattern, as a shell finds them: what begins with a dot only where the
    /// pattern does, unless `hidden`.
    pub fn take_matching(&mut self, directory: &OldPlace, pattern: &[u8], hidden: bool) {
        let mut rule = |flag: &str, rule: Vec<u8>| {
            self.flags.push(flag.into());
            self.flags.push(OsString::from_vec(rule));
        };
        if !hidden && !pattern.starts_with(b".") {
            rule("--exclude", b"/.*".to_vec());
        }
        rule("--include", [b"/", pattern].concat());
        rule("--exclude", b"/*".to_vec());
        self.sources.push(directory.word());
        self.pattern = Some(directory.with_path(&[&directory.path[..], pattern].concat()).word().into_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_typed_as_bbcp_has_them() {
        for (text, host, path, word) in [
            ("a", None, "a", "a"),
            ("./a:b", None, "./a:b", "./a:b"),
            ("h:a", Some("h"), "a", "h:a"),
            ("me@h::/a b", Some("me@h"), "/a b", "me@h:/a b"),
            ("h:", Some("h"), "", "h:"),
            ("[::1]:/a", Some("[::1]"), "/a", "[::1]:/a"),
            ("me@[::1]:a", Some("me@[::1]"), "a", "me@[::1]:a"),
            ("h:[ab]", Some("h"), "[ab]", "h:[ab]"),
            ("zero:5", Some("zero"), "5", "ssh://zero/~/5"),
            ("null:/a b", Some("null"), "/a b", "ssh://null/a b"),
        ] {
            let place = OldPlace::typed(text.as_bytes());
            assert_eq!(place, OldPlace { host: host.map(Into::into), path: path.into() }, "{text}");
            assert_eq!(place.word(), word, "{text}");
        }
        for (path, word) in
            [("-", "./-"), ("@x", "./@x"), ("a:b", "./a:b"), ("", "./"), ("-f", "./-f"), ("/a:b", "/a:b")]
        {
            assert_eq!(OldPlace::local(path.as_bytes()).word(), word, "{path}");
        }
    }

    #[test]
    fn wildcards_are_those_of_the_last_name() {
        let wild =
            |text: &str| OldPlace::typed(text.as_bytes()).wildcards().map(|(place, pattern)| (place.word(), pattern));
        assert_eq!(wild("h:/d/*.dat"), Some(("h:/d/".into(), b"*.dat".to_vec())));
        assert_eq!(wild("h:[ab]"), Some(("h:./".into(), b"[ab]".to_vec())));
        assert_eq!(wild("h:/d*/x"), None);
        assert!(OldPlace::typed(b"h:/d*/x").has_wild_directory());
        assert!(!OldPlace::typed(b"h:/d/x*").has_wild_directory());
    }

    #[test]
    fn slashes_at_the_end_are_no_part_of_a_name() {
        for (path, expected, name) in [("/a//", "/a", "a"), ("a", "a", "a"), ("/", "/", ""), ("a/b/", "a/b", "b")] {
            assert_eq!(trimmed(path.as_bytes()), expected.as_bytes());
            assert_eq!(OldPlace::local(path.as_bytes()).name(), name.as_bytes());
        }
        assert_eq!(trimmed(b""), b"");
    }
}
