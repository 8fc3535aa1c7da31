//! Text → [`Location`].
//!
//! A user types paths as they are, relative ones, too; only in `carrack://` and `ssh://` addresses `%XX` stands for a
//! byte. Documents have absolute paths, and `%XX` stands for a byte in all of them. What is handed to ssh as a host
//! or a login can be neither an option nor anything that a shell (ssh expands `%h` into the user's own
//! `ProxyCommand`) would act on.

use std::net::Ipv6Addr;

use data_encoding::HEXLOWER_PERMISSIVE;

use super::{Location, NodeAddress, SshHost};
use crate::limits;
use crate::path::{display_bytes, drives_terminal};
use crate::pin;
use crate::size::parse_size;

/// The port of a node where none is written.
pub const DEFAULT_PORT: u16 = 7420;

/// What no host may hold: what ssh itself refuses since 9.6 (CVE-2023-51385), and what belongs to our own syntax.
const NOT_IN_HOSTS: &str = "'`\"$\\;&<>|(){},/@[]:%";
/// What no login may hold. `DOMAIN\user` is one.
const NOT_IN_LOGINS: &str = "'`\"$;&<>|(){}/:";

/// What can be wrong with a document's location whose form is none.
const FORMS: &str = "a location is @NAME:/path, carrack://host/path, ssh://host/path or an absolute path";

impl Location {
    /// What a user types: `PATH`, `[USER@]HOST:PATH`, `ssh://[USER@]HOST/PATH`, `carrack://HOST[:PORT]/PATH[#PIN]`,
    /// `@NAME:/PATH`, `-`, `null:`, `zero:SIZE`, `random:SIZE`. A `:` before the first `/` makes it remote; `./a:b`
    /// is a local file.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, printable.
    pub fn parse_typed(text: &[u8]) -> Result<Self, String> {
        match text {
            b"" => return Err("a location is empty".to_owned()),
            b"-" => return Ok(Self::Stdio),
            _ => {}
        }
        if let Some(parsed) = parse_synthetic(text).or_else(|| parse_address(text)) {
            return parsed;
        }
        let head_end = text.iter().position(|&byte| byte == b'/').unwrap_or(text.len());
        let head = &text[..head_end];
        if !head.contains(&b':') {
            return Ok(Self::Local(text.to_vec()));
        }
        if let Some(scheme) = scheme_of(text) {
            return Err(format!("{}: {}", display_bytes(text), of_other_scheme(scheme, &text[scheme.len() + 3..])));
        }
        let parsed = match text {
            [b'@', rest @ ..] => parse_endpoint(rest, |path| Ok(path.to_vec())),
            _ => parse_host_and_path(text, head_end),
        };
        parsed.map_err(|why| format!("{}: {why} (a local file of that name: ./{0})", display_bytes(text)))
    }

    /// What documents have: the same without relative paths, `HOST:PATH` and `-`. [`Location::document`] writes it.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, printable.
    pub fn parse_document(text: &str) -> Result<Self, String> {
        if text.len() > limits::LOCATION_BYTES {
            return Err("a location is longer than any path is".to_owned());
        }
        let shown = display_bytes(text.as_bytes());
        if text.contains(char::is_control) {
            return Err(format!("{shown}: a control character in a path is written %HH"));
        }
        let bytes = text.as_bytes();
        if let Some(parsed) = parse_synthetic(bytes).or_else(|| parse_address(bytes)) {
            return parsed.map(Self::begun_at_root);
        }
        let parsed = match bytes {
            [b'@', rest @ ..] => parse_endpoint(rest, decode_below_root),
            [b'/', ..] => decode_path(bytes).map(Self::Local),
            _ => Err(FORMS.to_owned()),
        };
        parsed.map_err(|why| format!("{shown}: {why}"))
    }

    /// In a document a node's root is `/`, a login directory `~/`.
    fn begun_at_root(self) -> Self {
        match self {
            Self::Node { node, path } if path.is_empty() => Self::Node { node, path: b"/".to_vec() },
            Self::Ssh { host, path } if path.is_empty() || path == b"~" => Self::Ssh { host, path: b"~/".to_vec() },
            other => other,
        }
    }
}

/// `null:`, `zero:SIZE` and `random:SIZE`.
fn parse_synthetic(text: &[u8]) -> Option<Result<Location, String>> {
    if let Some(rest) = text.strip_prefix(b"null:") {
        return Some(match rest {
            b"" => Ok(Location::Null),
            _ => Err("null: takes no path (for a host of that name type USER@null:PATH)".to_owned()),
        });
    }
    let (rest, make): (_, fn(u64) -> Location) = match text {
        [b'z', b'e', b'r', b'o', b':', rest @ ..] => (rest, Location::Zero),
        [b'r', b'a', b'n', b'd', b'o', b'm', b':', rest @ ..] => (rest, Location::Random),
        _ => return None,
    };
    let size = std::str::from_utf8(rest)
        .map_err(|_| "not a size".to_owned())
        .and_then(parse_size)
        .and_then(|size| if size > limits::FILE_BYTES { Err("larger than any file".to_owned()) } else { Ok(size) });
    Some(size.map(make).map_err(|why| {
        let name = String::from_utf8_lossy(&text[..text.len() - rest.len()]).into_owned();
        format!("{}: {why} (for a host type USER@{name}PATH)", display_bytes(text))
    }))
}

/// `carrack://…` and `ssh://…`.
fn parse_address(text: &[u8]) -> Option<Result<Location, String>> {
    let parsed = match (text.strip_prefix(b"carrack://"), text.strip_prefix(b"ssh://")) {
        (Some(rest), _) => parse_node(rest),
        (None, Some(rest)) => parse_ssh(rest),
        (None, None) => return None,
    };
    Some(parsed.map_err(|why| format!("{}: {why}", display_bytes(text))))
}

/// The scheme, when the text looks like a URL.
fn scheme_of(text: &[u8]) -> Option<&str> {
    let end = text.windows(3).position(|window| window == b"://")?;
    let scheme = std::str::from_utf8(&text[..end]).ok()?;
    let named = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    (named && plain).then_some(scheme)
}

/// What to type in the place of a URL whose scheme is none of ours; `rest` is what follows `scheme://`.
fn of_other_scheme(scheme: &str, rest: &[u8]) -> String {
    let refused = format!("carrack takes no {scheme}:// addresses");
    let instead = |typed: String| format!("{refused}; type {typed}");
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let path = decode_path(path).unwrap_or_else(|_| path.to_vec());
    let path = if path.starts_with(b"/~/") { &path[1..] } else { &path[..] };
    let path = display_bytes(path);
    match scheme {
        "file" if matches!(authority, b"" | b"localhost") => instead(path.to_string()),
        "file" | "sftp" | "scp" | "sshftp" | "gsiftp" | "ftp" | "rsync" => {
            let after_bracket = authority.iter().rposition(|&byte| byte == b']').unwrap_or(0);
            let colon = authority[after_bracket..].iter().position(|&byte| byte == b':').map(|at| after_bracket + at);
            let host = display_bytes(&authority[..colon.unwrap_or(authority.len())]);
            let port = if colon.is_some() && matches!(scheme, "sftp" | "scp" | "sshftp") {
                "; a port of ssh stands in ssh_config, under an alias of the host"
            } else {
                ""
            };
            let module = if scheme == "rsync" { ", with the path of the module there" } else { "" };
            instead(format!("{host}:{path} (over ssh{module}){port}"))
        }
        "http" | "https" => {
            format!("{refused}; fetch it with another program, and copy that program's output from -, standard input")
        }
        _ => format!("{scheme}:// is not a kind of location that carrack knows"),
    }
}

/// `[user@]host:path`, `[user@]host::path` and `[user@][v6]:path`; `head_end` is where the first `/` stands.
fn parse_host_and_path(text: &[u8], head_end: usize) -> Result<Location, String> {
    let head = &text[..head_end];
    let colon = head.iter().position(|&byte| byte == b':').unwrap_or(head_end);
    let bracket = match head.first() {
        Some(b'[') => Some(0),
        _ => head[..colon].windows(2).position(|window| window == b"@[").map(|at| at + 1),
    };
    let (authority, path) = match bracket {
        Some(open) => {
            let close = head.iter().position(|&byte| byte == b']').filter(|&close| close > open);
            let Some(close) = close.filter(|&close| text.get(close + 1) == Some(&b':')) else {
                return Err("an address in brackets is written [ADDRESS]:PATH".to_owned());
            };
            (&text[..=close], &text[close + 2..])
        }
        None => {
            refuse_bare_v6(head)?;
            // bbcp writes two colons.
            let path = &text[colon + 1..];
            (&head[..colon], path.strip_prefix(b":").unwrap_or(path))
        }
    };
    Ok(Location::Ssh { host: parse_authority(authority)?, path: path.to_vec() })
}

/// `[user@]host[/path]`, what follows `ssh://`; `/~` and `/~/path` are at the login directory.
fn parse_ssh(rest: &[u8]) -> Result<Location, String> {
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let after_bracket = authority.iter().rposition(|&byte| byte == b']').unwrap_or(0);
    if authority[after_bracket..].contains(&b':') {
        return Err("a port of ssh stands in ssh_config, under an alias of the host".to_owned());
    }
    let path = match path {
        b"/~" | [b'/', b'~', b'/', ..] => &path[1..],
        path => path,
    };
    Ok(Location::Ssh { host: parse_authority(authority)?, path: decode_path(path)? })
}

/// `[user@]host`, an IPv6 address in brackets.
fn parse_authority(text: &[u8]) -> Result<SshHost, String> {
    // The login may hold an @ itself (user@domain@host), a host never: ssh splits at the last one too.
    let at = text.iter().rposition(|&byte| byte == b'@');
    let host = match &text[at.map_or(0, |at| at + 1)..] {
        [b'[', address @ .., b']'] => parse_v6(address)?,
        host => parse_host(host)?,
    };
    let user = at.map(|at| parse_login(&text[..at])).transpose()?;
    Ok(SshHost { user, host })
}

impl SshHost {
    /// `[USER@]HOST` alone, as `ssh` takes it; an IPv6 address in brackets.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, printable.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        refuse_bare_v6(text)?;
        parse_authority(text)
    }
}

fn parse_v6(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let (address, zone) = text.split_once('%').unwrap_or((text, "none"));
    let zone_plain =
        !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match address.parse::<Ipv6Addr>() {
        Ok(_) if zone_plain => Ok(text.to_owned()),
        _ => Err(format!("{} is not an IPv6 address", display_bytes(bytes))),
    }
}

/// `fe80::1:path` would silently become the host `fe80`.
fn refuse_bare_v6(head: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(head).unwrap_or_default();
    let address = text.rsplit_once('@').map_or(text, |(_, address)| address);
    let found = [Some(address), address.strip_suffix(':'), address.rsplit_once(':').map(|(before, _)| before)]
        .into_iter()
        .flatten()
        .find(|candidate| candidate.parse::<Ipv6Addr>().is_ok());
    match found {
        Some(address) => Err(format!("an IPv6 address is written in brackets: [{address}]:PATH")),
        None => Ok(()),
    }
}

/// Checks a host name, an alias or an IPv4 literal.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
pub fn parse_host(bytes: &[u8]) -> Result<String, String> {
    check_word("host", bytes, NOT_IN_HOSTS)
}

fn parse_login(bytes: &[u8]) -> Result<String, String> {
    // A backslash at the end would quote what follows.
    if bytes.ends_with(b"\\") {
        return Err("the user ends with a backslash".to_owned());
    }
    check_word("user", bytes, NOT_IN_LOGINS)
}

fn check_word(what: &str, bytes: &[u8], refused: &str) -> Result<String, String> {
    let shown = display_bytes(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(format!("the {what} {shown} is not UTF-8"));
    };
    let fault = match text.chars().next() {
        None => return Err(format!("the {what} is empty")),
        Some('-') => Some("starts with a dash, which ssh would take for an option".to_owned()),
        _ if text.contains(char::is_whitespace) => Some("contains white space".to_owned()),
        _ if text.contains(drives_terminal) => Some("contains a control character".to_owned()),
        _ => {
            text.chars().find(|character| refused.contains(*character)).map(|character| format!("contains {character}"))
        }
    };
    match fault {
        Some(fault) => Err(format!("the {what} {shown} {fault}")),
        None => Ok(text.to_owned()),
    }
}

/// `host[:port][/path][#sha256:PIN]`, what follows `carrack://`.
fn parse_node(rest: &[u8]) -> Result<Location, String> {
    let (rest, pin) = match rest.iter().position(|&byte| byte == b'#') {
        Some(hash) => (&rest[..hash], Some(pin::parse_pin(&rest[hash + 1..])?)),
        None => (rest, None),
    };
    if rest.contains(&b'?') {
        return Err("a node takes no query; a ? in a path is written %3F".to_owned());
    }
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    if authority.contains(&b'@') {
        return Err("a node takes no user: leave USER@ out; a token says who comes".to_owned());
    }
    let (host, port) = match authority.strip_prefix(b"[") {
        Some(bracketed) => {
            let close = bracketed.iter().position(|&byte| byte == b']').ok_or("the bracket is not closed")?;
            (parse_v6(&bracketed[..close])?, &bracketed[close + 1..])
        }
        None => {
            let colon = authority.iter().position(|&byte| byte == b':').unwrap_or(authority.len());
            (parse_host(&authority[..colon])?, &authority[colon..])
        }
    };
    let port = match port {
        b"" => DEFAULT_PORT,
        [b':', digits @ ..] => std::str::from_utf8(digits)
            .ok()
            .and_then(parse_port)
            .filter(|&port| port > 0)
            .ok_or_else(|| format!("{} is not a port", display_bytes(digits)))?,
        _ => return Err("after the address only :PORT or /PATH may stand".to_owned()),
    };
    Ok(Location::Node { node: NodeAddress { host, port, pin }, path: decode_path(path)? })
}

impl NodeAddress {
    /// A node, as a verb about nodes takes it: `HOST[:PORT]`, or a location there.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, printable.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let rest = text.strip_prefix(b"carrack://").unwrap_or(text);
        match parse_node(rest).map_err(|why| format!("{}: {why}", display_bytes(text)))? {
            Location::Node { node, .. } => Ok(node),
            other => Err(format!("{other} is no node")),
        }
    }
}

/// A port in plain digits: `str::parse` alone would also take `+1`.
pub fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// `NAME:/PATH`, what follows the `@` of a path at an endpoint.
fn parse_endpoint(rest: &[u8], path_of: impl Fn(&[u8]) -> Result<Vec<u8>, String>) -> Result<Location, String> {
    let colon = rest.iter().position(|&byte| byte == b':').ok_or("an endpoint is written @NAME:/PATH")?;
    let (name, path) = (&rest[..colon], &rest[colon + 1..]);
    let name = check_endpoint_name(name)?.to_owned();
    if !path.starts_with(b"/") {
        return Err("a path of an endpoint begins with / (its root)".to_owned());
    }
    Ok(Location::Endpoint { name, path: path_of(path)? })
}

/// Rights are looked at by component: none holds a `/`.
fn decode_below_root(text: &[u8]) -> Result<Vec<u8>, String> {
    if text.windows(3).any(|window| window.eq_ignore_ascii_case(b"%2F")) {
        return Err("a path at an endpoint holds no / by %2F; a name with the text %2F is written %252F".to_owned());
    }
    decode_path(text)
}

/// Checks the name of an endpoint.
///
/// # Errors
/// What it may consist of.
pub fn check_endpoint_name(name: &[u8]) -> Result<&str, String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    match std::str::from_utf8(name) {
        Ok(text) if (1..=64).contains(&name.len()) && name[0].is_ascii_alphanumeric() && name.iter().all(plain) => {
            Ok(text)
        }
        _ => Err(format!(
            "{:?} is not a name of an endpoint: 1 to 64 letters, digits, -, _ and ., first a letter or a digit",
            display_bytes(name).to_string()
        )),
    }
}

/// What a path is whose bytes may stand as `%XX`. [`encode_path`](super::encode_path) writes it.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn decode_path(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (byte, length) = match (first, after) {
            (b'%', [high, low, ..]) => {
                let decoded = HEXLOWER_PERMISSIVE.decode(&[*high, *low]).ok();
                (decoded.and_then(|bytes| bytes.first().copied()), 3)
            }
            (b'%', _) => (None, 1),
            (plain, _) => (Some(*plain), 1),
        };
        match byte {
            Some(0) => return Err("a path cannot hold a NUL".to_owned()),
            Some(byte) => bytes.push(byte),
            None => return Err("a % is followed by two hex digits; itself it is written %25".to_owned()),
        }
        rest = &rest[length..];
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
