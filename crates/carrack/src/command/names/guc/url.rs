//! Places of globus-url-copy: `file:` and `sshftp:`, and why others are refused.

use carrack_core::location::{decode_path, parse_port};
use carrack_core::path::display_bytes;

use crate::command::names::step::OldPlace;
use crate::error::CommandError;

/// A place of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// As it was typed, printable.
    pub typed: String,
    /// Where that is.
    pub place: OldPlace,
    /// The port of the host's sshd, if one was typed.
    pub port: Option<u16>,
    /// Its last name was typed with wildcards, or a directory above it: what was written `%HH` is part of a name.
    wild: (bool, bool),
}

impl Url {
    /// Reads a place. `relative` is whether paths at a host begin in the login directory.
    ///
    /// # Errors
    /// What is none, and what Carrack does not speak.
    pub fn parse(text: &[u8], relative: bool) -> Result<Self, CommandError> {
        let typed = display_bytes(text).to_string();
        let refused = |why: String| CommandError::usage(format!("{typed}: {why}"));
        let scheme_end = text.iter().position(|&byte| byte == b':').filter(|&end| {
            end > 1 && text[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        });
        let scheme = scheme_end.map(|end| String::from_utf8_lossy(&text[..end]).to_ascii_lowercase());
        let rest = scheme_end.map_or(text, |end| &text[end + 1..]);
        let decode = |path: &[u8]| decode_path(path).map_err(refused);
        match scheme.as_deref() {
            None => Ok(Self { place: OldPlace::local(text), port: None, wild: wild(text), typed }),
            Some("file") => {
                let path = match rest.strip_prefix(b"//") {
                    Some(rest) => rest.strip_prefix(b"localhost").unwrap_or(rest),
                    None => rest,
                };
                match rest.strip_prefix(b"//").is_some() && !path.starts_with(b"/") {
                    true => Err(refused("a file is on this host: file:///PATH".into())),
                    false => Ok(Self { place: OldPlace::local(&decode(path)?), port: None, wild: wild(path), typed }),
                }
            }
            Some("sshftp") => {
                let rest = rest
                    .strip_prefix(b"//")
                    .ok_or_else(|| refused("it is written sshftp://[USER@]HOST/PATH".into()))?;
                let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
                let (host, port) = host_and_port(&rest[..end]).map_err(refused)?;
                let path = path_at_host(&rest[end..], relative, &decode)?;
                Ok(Self { place: OldPlace { host: Some(host), path }, port, wild: wild(&rest[end..]), typed })
            }
            Some(scheme @ ("gsiftp" | "ftp")) => Err(no_gridftp(scheme, &typed, rest)),
            Some(scheme) => Err(refused(format!("{scheme}: is not spoken here, but file: and sshftp:"))),
        }
    }

    /// The pattern that it ends with, and the directory that it is for.
    pub fn wildcards(&self) -> Option<(OldPlace, Vec<u8>)> {
        self.place.wildcards().filter(|_| self.wild.0)
    }

    /// Whether a directory above its last name has wildcards.
    pub fn has_wild_directory(&self) -> bool {
        self.wild.1
    }

    /// Whether both are on one host, reached in one way.
    pub fn is_at(&self, other: &Self) -> bool {
        self.place.host == other.place.host && self.port == other.port
    }

    /// The directory that it is in, or is.
    pub fn directory(&self) -> OldPlace {
        let path = &self.place.path;
        let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        self.place.with_path(if end == 0 { b"./" } else { &path[..end] })
    }
}

/// GridFTP is neither spoken nor replaced in silence by something else.
fn no_gridftp(scheme: &str, typed: &str, rest: &[u8]) -> CommandError {
    let rest = rest.strip_prefix(b"//").unwrap_or(rest);
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let host = String::from_utf8_lossy(&rest[..end]).into_owned();
    let host = host.rsplit_once('@').map_or(host.clone(), |(_, host)| host.to_owned());
    let host = host.rsplit_once(':').map_or(host.clone(), |(host, _)| host.to_owned());
    let (host, path) = (display_bytes(host.as_bytes()).to_string(), display_bytes(&rest[end..]).to_string());
    let what = if scheme == "ftp" { "FTP" } else { "GridFTP with certificates" };
    CommandError::usage(format!("{typed}: {what} is not spoken here, and nothing else is tried in its place"))
        .hint(format!("where you can log in by ssh: sshftp://{host}{path}, or carrack copy with {host}:{path}"))
        .hint("where a GridFTP server is all there is: the globus-url-copy of the Grid Community Toolkit")
}

/// Whether the last name of a path has wildcards, and whether a directory above it has.
fn wild(path: &[u8]) -> (bool, bool) {
    let has = |part: &[u8]| part.iter().any(|byte| b"*?[".contains(byte));
    let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    (has(&path[at..]), has(&path[..at]))
}

fn host_and_port(text: &[u8]) -> Result<(Vec<u8>, Option<u16>), String> {
    let bracket = text.iter().position(|&byte| byte == b']').unwrap_or(0);
    let Some(colon) = text[bracket..].iter().position(|&byte| byte == b':').map(|at| at + bracket) else {
        return if text.is_empty() { Err("the host is missing".into()) } else { Ok((text.to_vec(), None)) };
    };
    let port = std::str::from_utf8(&text[colon + 1..]).ok().and_then(parse_port).filter(|port| *port > 0);
    match port {
        Some(port) if colon > 0 => Ok((text[..colon].to_vec(), Some(port))),
        _ => Err("it is written sshftp://[USER@]HOST[:PORT]/PATH".into()),
    }
}

/// `/~/` begins in the login directory. With `-rp` all paths do, but those that begin with `%2F`.
fn path_at_host(
    path: &[u8],
    relative: bool,
    decode: &impl Fn(&[u8]) -> Result<Vec<u8>, CommandError>,
) -> Result<Vec<u8>, CommandError> {
    let path = match path.strip_prefix(b"/~/") {
        Some(below) => return decode(below),
        None if relative => path.strip_prefix(b"/").unwrap_or(path),
        None => path,
    };
    decode(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_this_host_and_of_hosts_that_ssh_reaches() {
        for (text, relative, word, port) in [
            ("file:///a%20b", false, "/a b", None),
            ("file:/a", false, "/a", None),
            ("file://localhost/a", false, "/a", None),
            ("a", false, "a", None),
            ("./x:y", false, "./x:y", None),
            ("sshftp://me@h/a/", false, "me@h:/a/", None),
            ("sshftp://h:2222/a*", false, "h:/a*", Some(2222)),
            ("sshftp://[::1]:22/a", false, "[::1]:/a", Some(22)),
            ("sshftp://h/~/a", false, "h:a", None),
            ("sshftp://h/a", true, "h:a", None),
            ("sshftp://h/%2Fa", true, "h:/a", None),
            ("SSHFTP://h/a", false, "h:/a", None),
        ] {
            let url = Url::parse(text.as_bytes(), relative).expect(text);
            assert_eq!((url.place.word(), url.port), (word.into(), port), "{text}");
        }
    }

    #[test]
    fn wildcards_that_are_written_in_hexadecimal_are_names() {
        let wild = |text: &str| {
            let url = Url::parse(text.as_bytes(), false).expect(text);
            (url.wildcards().is_some(), url.has_wild_directory())
        };
        assert_eq!(wild("file:///a/%5Bb%5D"), (false, false));
        assert_eq!(wild("sshftp://[::1]/%5Ba/b*"), (true, false));
        assert_eq!(wild("file:///a*/b"), (false, true));
    }

    #[test]
    fn other_places_are_refused_with_what_to_type() {
        for (text, hint) in [
            ("gsiftp://me@h:2811/a b", "sshftp://h/a b"),
            ("ftp://h/a", "sshftp://h/a"),
            ("http://h/a", ""),
            ("file://other/a", ""),
            ("sshftp:h/a", ""),
            ("sshftp:///a", ""),
            ("sshftp://h:x/a", ""),
            ("file:///a%0", ""),
        ] {
            let error = Url::parse(text.as_bytes(), false).expect_err(text);
            assert!(
                error.hints.iter().any(|shown| shown.contains(hint)) || hint.is_empty(),
                "{text}: {:?}",
                error.hints
            );
        }
    }

    #[test]
    fn directory_of_a_place_ends_with_a_slash() {
        for (text, directory) in [("file:/a/b", "/a/"), ("file:/a/b/", "/a/b/"), ("a", "./"), ("sshftp://h/a", "h:/")] {
            assert_eq!(Url::parse(text.as_bytes(), false).expect(text).directory().word(), directory, "{text}");
        }
    }
}
