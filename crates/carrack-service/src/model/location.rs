//! Locations of tasks, parsed. They come from the API, so whatever could be taken for an option, a shell's word or
//! another place is refused here.

use std::net::Ipv6Addr;

use carrack_core::pin;

/// The port of a node where none is written.
const DEFAULT_PORT: u16 = 7420;
/// Bytes of a location, and of a path below an endpoint's root.
pub(super) const LOCATION_BYTES_MAX: usize = 16 << 10;

/// Where a source or a destination of a task is. Bytes of a path that are no text stand as `%HH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskLocation {
    /// `@NAME:/path`: below the root of an endpoint.
    Endpoint {
        /// The endpoint.
        name: String,
        /// Below its root; begins with `/`.
        path: String,
    },
    /// `/path`: on the service's host.
    Local {
        /// Absolute.
        path: String,
    },
    /// `carrack://host[:port]/path[#sha256:…]`.
    Node {
        /// A name or an address, without brackets.
        host: String,
        /// Its TCP port.
        port: u16,
        /// SHA-256 of its public key, in hexadecimal.
        fingerprint: Option<String>,
        /// Below the node's root; begins with `/`.
        path: String,
    },
    /// `ssh://[user@]host/path`.
    Ssh {
        /// The login.
        user: Option<String>,
        /// A name or an alias of `ssh_config`.
        host: String,
        /// Absolute; or `~/…` below the login directory, written `ssh://host/~/…`.
        path: String,
    },
    /// `null:`, `zero:SIZE` or `random:SIZE`.
    Synthetic {
        /// As typed.
        text: String,
    },
}

impl TaskLocation {
    /// Parses one location.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, printable.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LOCATION_BYTES_MAX {
            return Err("a location is longer than any path is".into());
        }
        if text.contains(char::is_control) {
            return Err(format!("{text:?}: a control character in a path is written %HH"));
        }
        parse_kind(text).map_err(|why| format!("{text:?}: {why}"))
    }

    /// The endpoint's name, where it is at one.
    pub fn endpoint(&self) -> Option<&str> {
        if let Self::Endpoint { name, .. } = self { Some(name) } else { None }
    }
}

fn parse_kind(text: &str) -> Result<TaskLocation, String> {
    if let Some(rest) = text.strip_prefix('@') {
        let (name, path) = rest.split_once(':').ok_or("a location at an endpoint is @NAME:/path")?;
        let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if name.is_empty() || name.len() > 64 || !is_plain(name) {
            return Err("that is no name of an endpoint".into());
        }
        if !path.starts_with('/') {
            return Err("the path at an endpoint begins with /".into());
        }
        return Ok(TaskLocation::Endpoint { name: name.into(), path: path.into() });
    }
    if let Some(rest) = text.strip_prefix("carrack://") {
        return parse_node(rest);
    }
    if let Some(rest) = text.strip_prefix("ssh://") {
        return parse_ssh(rest);
    }
    if text.starts_with('/') {
        return Ok(TaskLocation::Local { path: text.into() });
    }
    let is_size = |size: &str| {
        size.starts_with(|first: char| first.is_ascii_digit()) && size.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let size = text.strip_prefix("zero:").or_else(|| text.strip_prefix("random:"));
    if text == "null:" || size.is_some_and(is_size) {
        return Ok(TaskLocation::Synthetic { text: text.into() });
    }
    Err("a location is @NAME:/path, carrack://host/path, ssh://host/path or an absolute path".into())
}

/// `host[:port]/path[#sha256:PIN]`.
fn parse_node(rest: &str) -> Result<TaskLocation, String> {
    let (rest, fingerprint) = match rest.split_once('#') {
        Some((rest, pin)) => (rest, Some(data_encoding::HEXLOWER.encode(&pin::parse_pin(pin.as_bytes())?))),
        None => (rest, None),
    };
    if rest.contains('?') {
        return Err("a node takes no query; a ? in a path is written %3F".into());
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err("a node takes no user".into());
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("the bracket is not closed")?;
            (parse_v6(host)?, port)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            (parse_host(host)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => DEFAULT_PORT,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|&port: &u16| port > 0).ok_or("that is no port")?
        }
        _ => return Err("after the address only :PORT or /PATH may stand".into()),
    };
    let path = if path.is_empty() { "/" } else { path };
    Ok(TaskLocation::Node { host, port, fingerprint, path: path.into() })
}

/// `[user@]host/path`.
fn parse_ssh(rest: &str) -> Result<TaskLocation, String> {
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(check_word("user", user, "'`\"$\\;&<>|(){}/:")?), host),
        None => (None, authority),
    };
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => parse_v6(host)?,
        None => parse_host(host).map_err(|why| format!("{why} (a port belongs into ssh's own configuration)"))?,
    };
    let path = match path.strip_prefix("/~/") {
        Some(below) => format!("~/{below}"),
        None if path == "/~" || path.is_empty() => "~/".to_owned(),
        None => path.to_owned(),
    };
    Ok(TaskLocation::Ssh { user, host, path })
}

fn parse_v6(text: &str) -> Result<String, String> {
    let (address, zone) = text.split_once('%').unwrap_or((text, "none"));
    let is_plain = !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match address.parse::<Ipv6Addr>() {
        Ok(_) if is_plain => Ok(text.to_owned()),
        _ => Err("the brackets hold no IPv6 address".into()),
    }
}

fn parse_host(text: &str) -> Result<String, String> {
    check_word("host", text, "'`\"$\\;&<>|(){},/@[]:%")
}

/// A word that ssh takes neither for an option nor for anything that a shell acts on.
fn check_word(what: &str, text: &str, refused: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('-') || text.contains(char::is_whitespace) {
        return Err(format!("the {what} is empty, begins with a dash or holds white space"));
    }
    match text.chars().find(|character| refused.contains(*character)) {
        Some(character) => Err(format!("the {what} contains {character}")),
        None => Ok(text.to_owned()),
    }
}

/// Bytes as text for paths and queries: letters, digits, `-`, `_`, `.` and `~` as they are, whatever else as `%HH`.
pub fn percent(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push_str(&data_encoding::HEXUPPER.encode(&[byte]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_is_parsed_by_its_form() {
        let node = |host: &str, port, pin: Option<&str>, path: &str| TaskLocation::Node {
            host: host.into(),
            port,
            fingerprint: pin.map(str::to_owned),
            path: path.into(),
        };
        let ssh = |user: Option<&str>, host: &str, path: &str| TaskLocation::Ssh {
            user: user.map(str::to_owned),
            host: host.into(),
            path: path.into(),
        };
        let pin = "ab".repeat(32);
        for (text, expected) in [
            ("@lab:/run/", TaskLocation::Endpoint { name: "lab".into(), path: "/run/".into() }),
            ("/data/x y", TaskLocation::Local { path: "/data/x y".into() }),
            ("carrack://n/a", node("n", 7420, None, "/a")),
            ("carrack://n:99", node("n", 99, None, "/")),
            (&format!("carrack://[::1]:8/a%20b#sha256:{pin}"), node("::1", 8, Some(&pin), "/a%20b")),
            ("ssh://me@host/a", ssh(Some("me"), "host", "/a")),
            ("ssh://me@realm@host/a", ssh(Some("me@realm"), "host", "/a")),
            ("ssh://host/~/a", ssh(None, "host", "~/a")),
            ("ssh://[fe80::1%eth0]/", ssh(None, "fe80::1%eth0", "/")),
            ("null:", TaskLocation::Synthetic { text: "null:".into() }),
            ("zero:1G", TaskLocation::Synthetic { text: "zero:1G".into() }),
        ] {
            assert_eq!(TaskLocation::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn location_refuses_what_could_be_taken_for_something_else() {
        for text in [
            "",
            "a",
            "./a",
            "a:b",
            "@lab",
            "@lab:a",
            "@:/a",
            "@la b:/a",
            "@../x:/a",
            "ftp://h/a",
            "file:///etc/passwd",
            "carrack://",
            "carrack://u@h/",
            "carrack://h:0/",
            "carrack://h:+1/",
            "carrack://h/?q",
            "carrack://h/#x",
            "carrack://[x]/",
            "carrack://$(id)/",
            "ssh://-oProxyCommand=x/a",
            "ssh://h:22/a",
            "ssh:///a",
            "ssh://a b/",
            "ssh://`id`/",
            "ssh://-x@h/",
            "zero:",
            "zero:-1",
            "null:x",
            "/a\nb",
            "@lab:/a\0b",
            "/\u{9b}",
        ] {
            assert!(TaskLocation::parse(text).is_err(), "{text:?}");
        }
    }
}
