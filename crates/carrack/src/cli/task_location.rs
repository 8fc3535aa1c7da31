//! Text → the locations of managed tasks and endpoints.
//!
//! A task runs without the terminal that submitted it: relative local paths become absolute, and `-` is refused. In the
//! texts that the service gets, `%XX` stands for a byte of a path; what a user types as a path means itself.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::location::{Location, NodeAddress, SshHost};
use carrack_core::path::{display_bytes, drives_terminal};
use carrack_core::pin::format_pin;
use carrack_service::model::EndpointLocation;
use data_encoding::HEXLOWER;

use super::location::parse_location;

/// Parses a location of a task: those of the command line, `ssh://[USER@]HOST/PATH`, and `@NAME:/PATH`. The answer is
/// what the service understands.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
pub fn parse_task_location(text: &[u8]) -> Result<String, String> {
    if let Some(endpoint) = text.strip_prefix(b"@") {
        return parse_at_endpoint(endpoint).map_err(|why| format!("{}: {why}", display_bytes(text)));
    }
    if text.starts_with(b"/") {
        return Ok(encode(text));
    }
    Ok(match parse(text)? {
        Location::Local(path) => encode(&absolute(&path)?),
        Location::Ssh { host, path } => shown_ssh(&host, &path),
        Location::Node { node, path } => shown_node(&node, &path),
        Location::Null => "null:".to_owned(),
        Location::Zero(size) => format!("zero:{size}"),
        Location::Random(size) => format!("random:{size}"),
        Location::Stdio => return Err("a task runs without this terminal: - is none of its locations".to_owned()),
        other => return Err(format!("{other} is no location of a task")),
    })
}

/// Refuses a source that is typed as a path relative to the current directory, where nothing has that path: it was
/// meant to be at an endpoint, or is misspelt.
///
/// # Errors
/// A sentence that says so, printable.
pub fn check_typed_source(text: &[u8]) -> Result<(), String> {
    if text.starts_with(b"/") || text.starts_with(b"@") {
        return Ok(());
    }
    let Ok(Location::Local(path)) = parse(text) else { return Ok(()) };
    match std::fs::symlink_metadata(std::ffi::OsStr::from_bytes(&path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(format!(
            "{}: the current directory has no such file or directory; a path at an endpoint is written @NAME:/PATH",
            display_bytes(text)
        )),
        _ => Ok(()),
    }
}

/// Parses where an endpoint's root is.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
pub fn parse_endpoint_location(text: &[u8]) -> Result<EndpointLocation, String> {
    let refused = |why: &str| Err(format!("{}: {why}", display_bytes(text)));
    match parse(text)? {
        Location::Local(path) => Ok(EndpointLocation::Local { root: encode(&absolute(&path)?) }),
        Location::Node { node, path } => Ok(EndpointLocation::Node {
            host: node.host,
            port: node.port,
            fingerprint: node.pin.map(|pin| HEXLOWER.encode(&pin)),
            path: with_slash(&path),
        }),
        Location::Ssh { host, path } => {
            let path = below_login(&path);
            Ok(EndpointLocation::Ssh { user: host.user, host: host.host, path })
        }
        _ => refused("an endpoint is a directory of this host, a node (carrack://HOST/PATH) or a host behind ssh"),
    }
}

/// Where an endpoint's root is, as it is typed.
pub fn shown_endpoint_location(location: &EndpointLocation) -> String {
    match location {
        EndpointLocation::Local { root } => root.clone(),
        EndpointLocation::Node { host, port, fingerprint, path } => {
            let address = NodeAddress { host: host.clone(), port: *port, pin: None }.known_as();
            let pin = fingerprint.as_ref().map(|pin| format!("#sha256:{pin}")).unwrap_or_default();
            format!("carrack://{address}{path}{pin}")
        }
        EndpointLocation::Ssh { user, host, path } => {
            let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
            let slash = if path.starts_with('/') { "" } else { "/" };
            format!("ssh://{user}{}{slash}{path}", bracketed(host))
        }
    }
}

/// What the command line knows, and `ssh://[USER@]HOST/PATH`.
fn parse(text: &[u8]) -> Result<Location, String> {
    let Some(rest) = text.strip_prefix(b"ssh://") else { return parse_location(text) };
    let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(slash);
    // As elsewhere: /~/x is below the login directory.
    let path = if path.starts_with(b"/~") { &path[1..] } else { path };
    let refused = |why: String| format!("{}: {why}", display_bytes(text));
    let port = match host.iter().rposition(|byte| *byte == b']') {
        Some(bracket) => host[bracket..].contains(&b':'),
        None => host.contains(&b':'),
    };
    if port {
        return Err(refused("a port of ssh stands in ssh_config, under an alias of the host".to_owned()));
    }
    let plain = [host, b":", path].concat();
    match parse_location(&plain) {
        Ok(ssh @ Location::Ssh { .. }) => Ok(ssh),
        Ok(_) => Err(refused("the host is missing".to_owned())),
        Err(why) => Err(why),
    }
}

/// What follows the `@` of `@NAME:/PATH`.
fn parse_at_endpoint(rest: &[u8]) -> Result<String, String> {
    let (name, path) = parse_at(rest)?;
    Ok(format!("@{name}:{}", encode(path)))
}

/// The name of an endpoint and a path below its root, of what follows the `@` of `@NAME:/PATH`.
///
/// # Errors
/// What is wrong with it.
pub fn parse_at(rest: &[u8]) -> Result<(&str, &[u8]), String> {
    let colon = rest.iter().position(|byte| *byte == b':').ok_or("an endpoint is written @NAME:/PATH")?;
    let (name, path) = (&rest[..colon], &rest[colon + 1..]);
    let name = check_name(name)?;
    if !path.starts_with(b"/") {
        return Err("a path of an endpoint begins with / (its root)".to_owned());
    }
    Ok((name, path))
}

/// Checks the name of an endpoint.
///
/// # Errors
/// What it may consist of.
pub fn check_name(name: &[u8]) -> Result<&str, String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() && text.len() <= 64 && name.iter().all(plain) && !text.starts_with(['.', '-']) => {
            Ok(text)
        }
        _ => Err(format!(
            "{:?} is not a name of an endpoint: 1 to 64 letters, digits, -, _ and .",
            display_bytes(name).to_string()
        )),
    }
}

fn absolute(path: &[u8]) -> Result<Vec<u8>, String> {
    let os = std::ffi::OsStr::from_bytes(path);
    let found = std::path::absolute(Path::new(os))
        .map_err(|error| format!("{}: the current directory: {error}", display_bytes(path)))?;
    let mut found = found.as_os_str().as_bytes().to_vec();
    // Has a meaning: the contents of a directory.
    if path.ends_with(b"/.") && !found.ends_with(b"/") {
        found.push(b'/');
    }
    Ok(found)
}

fn shown_ssh(host: &SshHost, path: &[u8]) -> String {
    let user = host.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    let path = below_login(path);
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("ssh://{user}{}{slash}{path}", bracketed(&host.host))
}

fn shown_node(node: &NodeAddress, path: &[u8]) -> String {
    let pin = node.pin.map(|pin| format!("#{}", format_pin(&pin))).unwrap_or_default();
    format!("carrack://{}{}{pin}", node.known_as(), with_slash(path))
}

/// A path as ssh has it: absolute, or below the login directory, `~/`.
fn below_login(path: &[u8]) -> String {
    match path {
        [b'/' | b'~', ..] => encode(path),
        relative => format!("~/{}", encode(relative)),
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn with_slash(path: &[u8]) -> String {
    let slash = if path.starts_with(b"/") { "" } else { "/" };
    format!("{slash}{}", encode(path))
}

/// A path as text: `%`, `#` and `?`, what is no UTF-8, and what could drive a terminal as `%XX`.
pub fn encode(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    let escape = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing into a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    };
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '%' | '#' | '?' => escape(&mut text, &[character as u8]),
                _ if drives_terminal(character) => {
                    escape(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => text.push(character),
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_source_of_a_task_has_to_be_there() {
        for text in ["src", "/none", "@lab:/none", "box:none", "carrack://box/none", "null:"] {
            assert_eq!(check_typed_source(text.as_bytes()), Ok(()), "{text}");
        }
        for text in ["lab/run", "none", "./none"] {
            let why = check_typed_source(text.as_bytes()).unwrap_err();
            assert!(why.contains("@NAME:/PATH") && why.contains(text), "{why}");
        }
    }

    #[test]
    fn task_locations_are_told_so_that_the_service_knows_them() {
        let here = std::env::current_dir().expect("a current directory");
        let here = encode(here.as_os_str().as_bytes());
        let pin = "ab".repeat(32);
        let relative = format!("{here}/run42/");
        let node = format!("carrack://box:7420/x%2520y#sha256:{pin}");
        let cases = [
            ("@archive:/run 42/", "@archive:/run 42/"),
            ("@archive:/100%", "@archive:/100%25"),
            ("/data/a#b", "/data/a%23b"),
            ("run42/", &relative),
            ("me@box:/x", "ssh://me@box/x"),
            ("box:data", "ssh://box/~/data"),
            ("box:", "ssh://box/~/"),
            ("box:~/data", "ssh://box/~/data"),
            ("ssh://me@box/x/", "ssh://me@box/x/"),
            ("ssh://box/~/x", "ssh://box/~/x"),
            ("[::1]:/x", "ssh://[::1]/x"),
            ("ssh://me@[::1]/x", "ssh://me@[::1]/x"),
            ("carrack://box/", "carrack://box:7420/"),
            (&format!("carrack://box/x%2520y#sha256:{pin}")[..], &node),
            ("null:", "null:"),
            ("zero:1K", "zero:1024"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_task_location(text.as_bytes()).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(parse_task_location(b"/a\xff\x1b").as_deref(), Ok("/a%FF%1B"));
        for text in [
            "-",
            "@archive",
            "@archive:x",
            "@:/x",
            "@a b:/x",
            "@../x:/y",
            "ssh:///x",
            "ssh://box:22/x",
            "http://x/",
            "",
        ] {
            assert!(parse_task_location(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn endpoint_locations_are_shown_as_they_are_typed() {
        let pin = "ab".repeat(32);
        let node = format!("carrack://box:7421/data#sha256:{pin}");
        for (text, shown) in [
            ("/data", "/data"),
            (&node[..], &node[..]),
            ("carrack://[::1]/", "carrack://[::1]:7420/"),
            ("me@box:/data", "ssh://me@box/data"),
            ("ssh://box", "ssh://box/~/"),
            ("box:in", "ssh://box/~/in"),
        ] {
            let location = parse_endpoint_location(text.as_bytes()).expect(text);
            assert_eq!(shown_endpoint_location(&location), shown, "{text}");
        }
        for text in ["null:", "-", "zero:1G", "@x:/y"] {
            assert!(parse_endpoint_location(text.as_bytes()).is_err(), "{text}");
        }
    }
}
