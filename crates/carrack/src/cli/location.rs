//! Text → [`Location`].
//!
//! A `:` before the first `/` makes it remote; `./a:b` is local. Paths are the bytes that were typed, never decoded,
//! except in `carrack://` addresses, where `%XX` stands for a byte. What is handed to ssh as a host or a user can be
//! neither an option nor anything that a shell (ssh expands `%h` into the user's own `ProxyCommand`) would act on.

use std::net::Ipv6Addr;

use carrack_core::limits;
use carrack_core::location::{Location, NodeAddress, SshHost};
use carrack_core::path::display_bytes;
use carrack_core::pin;
use data_encoding::HEXLOWER_PERMISSIVE;

use super::DEFAULT_PORT;
use super::ports::parse_port;
use super::size::parse_size;

/// Why `@NAME:` is none of these locations.
const NO_ENDPOINT: &str = if cfg!(feature = "service") {
    "an endpoint of a service is no place for this; or the user before @ is missing"
} else {
    "an endpoint of a service, and this carrack was built without the service and its client; name the node or the host \
     itself, or install the full carrack"
};

/// Parses one location as typed.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
pub fn parse_location(text: &[u8]) -> Result<Location, String> {
    if text.is_empty() {
        return Err("a location is empty".to_owned());
    }
    if text == b"-" {
        return Ok(Location::Stdio);
    }
    if let Some(synthetic) = parse_synthetic(text) {
        return synthetic;
    }
    if let Some(rest) = text.strip_prefix(b"carrack://") {
        return parse_node(rest).map_err(|why| format!("{}: {why}", display_bytes(text)));
    }
    let head_end = text.iter().position(|&byte| byte == b'/').unwrap_or(text.len());
    if !text[..head_end].contains(&b':') {
        return Ok(Location::Local(text.to_vec()));
    }
    if let Some(scheme) = scheme_of(text) {
        return Err(format!("{}: {scheme}:// is not a kind of location that carrack knows", display_bytes(text)));
    }
    parse_ssh(text, head_end)
        .map_err(|why| format!("{}: {why} (a local file of that name: ./{0})", display_bytes(text)))
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

/// The scheme, when the text looks like a URL.
fn scheme_of(text: &[u8]) -> Option<&str> {
    let end = text.windows(3).position(|window| window == b"://")?;
    let scheme = std::str::from_utf8(&text[..end]).ok()?;
    let named = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    (named && plain).then_some(scheme)
}

/// `[user@]host:path`, `[user@]host::path` and `[user@][v6]:path`; `head_end` is where the first `/` stands.
fn parse_ssh(text: &[u8], head_end: usize) -> Result<Location, String> {
    let head = &text[..head_end];
    let colon = head.iter().position(|&byte| byte == b':').unwrap_or(head_end);
    let bracket = match head.first() {
        Some(b'[') => Some(0),
        _ => head[..colon].windows(2).position(|window| window == b"@[").map(|at| at + 1),
    };
    let (user, host, path) = match bracket {
        Some(open) => {
            let close = head.iter().position(|&byte| byte == b']').filter(|&close| close > open);
            let Some(close) = close.filter(|&close| text.get(close + 1) == Some(&b':')) else {
                return Err("an address in brackets is written [ADDRESS]:PATH".to_owned());
            };
            let host = parse_v6(&head[open + 1..close])?;
            let user = (open > 0).then(|| &head[..open - 1]);
            (user, host, &text[close + 2..])
        }
        None => {
            refuse_bare_v6(head)?;
            // The login may hold an @ itself (user@domain@host), a host never: ssh splits at the last one too.
            let at = head[..colon].iter().rposition(|&byte| byte == b'@');
            let host = &head[at.map_or(0, |at| at + 1)..colon];
            if at == Some(0) {
                return Err(NO_ENDPOINT.to_owned());
            }
            // bbcp writes two colons.
            let path = &text[colon + 1..];
            let path = path.strip_prefix(b":").unwrap_or(path);
            (at.map(|at| &head[..at]), parse_host(host)?, path)
        }
    };
    let user = user.map(parse_user).transpose()?;
    Ok(Location::Ssh { host: SshHost { user, host }, path: path.to_vec() })
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

/// `[user@]host` alone, as `ssh` takes it; an IPv6 address in brackets.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
#[cfg(feature = "terminal")]
pub fn parse_ssh_host(text: &[u8]) -> Result<SshHost, String> {
    let text = [text, b":"].concat();
    match parse_ssh(&text, text.iter().position(|&byte| byte == b'/').unwrap_or(text.len()))? {
        Location::Ssh { host, path } if path.is_empty() => Ok(host),
        _ => Err(format!("{} is more than a host", display_bytes(&text[..text.len() - 1]))),
    }
}

/// Checks a host name, an alias or an IPv4 literal.
pub fn parse_host(bytes: &[u8]) -> Result<String, String> {
    // Those that ssh itself refuses since 9.6 (CVE-2023-51385), and what belongs to our own syntax.
    check_word("host", bytes, "'`\"$\\;&<>|(){},/@[]:")
}

fn parse_user(bytes: &[u8]) -> Result<String, String> {
    // `DOMAIN\user` is a login; a backslash at the end would quote what follows.
    if bytes.ends_with(b"\\") {
        return Err("the user ends with a backslash".to_owned());
    }
    check_word("user", bytes, "'`\"$;&<>|(){}/")
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
        // What a terminal could be driven with: the same characters that `display_bytes` rewrites.
        _ if display_bytes(text.replace('\\', "").as_bytes()).to_string() != text.replace('\\', "") => {
            Some("contains a control character".to_owned())
        }
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
        return Err("a node takes no user here: use --token-file or `carrack token add`".to_owned());
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
    Ok(Location::Node { node: NodeAddress { host, port, pin }, path: decode_percent(path)? })
}

/// A node, as a verb about nodes takes it: `HOST[:PORT]`, or a location there.
pub fn parse_node_name(text: &[u8]) -> Result<NodeAddress, String> {
    let rest = text.strip_prefix(b"carrack://").unwrap_or(text);
    match parse_node(rest).map_err(|why| format!("{}: {why}", display_bytes(text)))? {
        Location::Node { node, .. } => Ok(node),
        other => Err(format!("{other} is no node")),
    }
}

/// What a path is whose bytes may stand as `%XX`.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn decode_percent(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let byte = match after {
            [high, low, ..] => HEXLOWER_PERMISSIVE.decode(&[*high, *low]).ok().map(|byte| byte[0]),
            _ => None,
        };
        match byte {
            Some(0) => return Err("a path cannot hold a NUL".to_owned()),
            Some(byte) => bytes.push(byte),
            None => {
                return Err("a % is followed by two hex digits; itself it is written %25".to_owned());
            }
        }
        rest = &after[2..];
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "location_tests.rs"]
mod tests;
