//! Where a service is.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use carrack_core::pin;

use crate::model::Secret;

/// The port of a node, and so of its service.
const DEFAULT_PORT: u16 = 7420;

/// Where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At a Unix socket of this host. The service knows the caller's account.
    Socket(PathBuf),
    /// At a TCP port, by TLS.
    Tls {
        /// A name or an address, without brackets.
        host: String,
        /// Its TCP port.
        port: u16,
        /// SHA-256 of the public key that it must show; none: no key is taken, and the one that it shows is told
        /// ([`super::error::ClientError::UnknownKey`]).
        pin: Option<[u8; 32]>,
    },
    /// At a TCP port of this host, in the clear.
    Loopback {
        /// An address of this host.
        address: IpAddr,
        /// Its TCP port.
        port: u16,
    },
}

impl Target {
    /// Parses `https://HOST[:PORT][#sha256:…]`, `http://127.0.0.1[:PORT]` or the path of a socket.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let Some(rest) = rest else {
            let path = text.strip_prefix("unix:").unwrap_or(text);
            if path.is_empty() || path.contains("://") {
                return Err(format!("{text:?} is neither https://HOST:PORT nor the path of a socket"));
            }
            return Ok(Self::Socket(path.into()));
        };
        let (rest, pin) = match rest.split_once('#') {
            Some((rest, pin)) => (rest, Some(pin::parse_pin(pin.as_bytes())?)),
            None => (rest, None),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '@']) {
            return Err(format!("{text:?}: only HOST:PORT may stand behind ://"));
        }
        let (host, port) = split_authority(authority).ok_or_else(|| format!("{text:?} names no host and port"))?;
        if text.starts_with("https://") {
            return Ok(Self::Tls { host, port, pin });
        }
        let address = if host == "localhost" { Some(IpAddr::from([127, 0, 0, 1])) } else { host.parse().ok() };
        match address {
            Some(address) if address.is_loopback() => Ok(Self::Loopback { address, port }),
            _ => Err(format!("{text:?}: http:// is for this host alone; another one is reached by https://")),
        }
    }

    /// The same with the key that it must show.
    #[must_use]
    pub fn pinned(self, key: [u8; 32]) -> Self {
        match self {
            Self::Tls { host, port, .. } => Self::Tls { host, port, pin: Some(key) },
            other => other,
        }
    }

    /// For the header `Host`.
    pub(super) fn host_header(&self) -> String {
        match self {
            Self::Socket(_) => "localhost".to_owned(),
            Self::Tls { host, port, .. } => format!("{}:{port}", bracketed(host)),
            Self::Loopback { address, port } => format!("{}:{port}", bracketed(&address.to_string())),
        }
    }
}

/// The service of a login link, where the link names it, and the secret: `https://HOST:PORT#sha256:…&login=SECRET`, or
/// the secret alone.
///
/// # Errors
/// A sentence that says what is wrong, without the secret.
pub fn parse_login_link(text: &str) -> Result<(Option<Target>, Secret), String> {
    let (address, secret) = text.trim().rsplit_once("login=").unwrap_or(("", text.trim()));
    if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err("that is no login link: it ends with login= and letters, digits, - and _".to_owned());
    }
    let target = match address.trim_end_matches(['#', '&']) {
        "" => None,
        address => Some(Target::parse(address)?),
    };
    Ok((target, Secret::new(secret)))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Tls { .. } => write!(f, "https://{}", self.host_header()),
            Self::Loopback { .. } => write!(f, "http://{}", self.host_header()),
        }
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`.
fn split_authority(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, port)
        }
        None => text.find(':').map_or((text, ""), |colon| text.split_at(colon)),
    };
    let is_plain = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte));
    if host.is_empty() || !is_plain(host) {
        return None;
    }
    let port = match port {
        "" => DEFAULT_PORT,
        _ => port.strip_prefix(':')?.parse().ok().filter(|&port: &u16| port > 0)?,
    };
    Some((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_parsed_from_what_people_type() {
        let tls = |host: &str, port, pin| Target::Tls { host: host.into(), port, pin };
        let loopback = |address: &str, port| Target::Loopback { address: address.parse().unwrap(), port };
        let pin = format!("sha256:{}", "00".repeat(32));
        for (text, expected) in [
            ("/run/carrack.sock", Target::Socket("/run/carrack.sock".into())),
            ("unix:x.sock", Target::Socket("x.sock".into())),
            ("https://data.example.org", tls("data.example.org", 7420, None)),
            ("https://data.example.org:443/", tls("data.example.org", 443, None)),
            (&format!("https://[::1]:8#{pin}"), tls("::1", 8, Some([0; 32]))),
            ("http://localhost:99", loopback("127.0.0.1", 99)),
            ("http://[::1]", loopback("::1", 7420)),
        ] {
            assert_eq!(Target::parse(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "unix:",
            "ftp://host",
            "https://",
            "https://a/b",
            "https://user@host",
            "https://h:0",
            "https://h:x",
            "http://example.org",
            "https://[x]:1",
            "https://h#sha256:1",
            "https://a b",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn login_link_names_its_service_and_its_secret() {
        let pin = format!("sha256:{}", "00".repeat(32));
        let tls = |pin| Target::Tls { host: "box".into(), port: 99, pin };
        for (text, target) in [
            (format!("https://box:99#{pin}&login=s3-cr_et\n"), Some(tls(Some([0; 32])))),
            ("https://box:99#login=s3-cr_et".to_owned(), Some(tls(None))),
            ("#login=s3-cr_et".to_owned(), None),
            ("s3-cr_et".to_owned(), None),
        ] {
            assert_eq!(parse_login_link(&text), Ok((target, Secret::new("s3-cr_et"))), "{text}");
        }
        for text in ["", "https://box:99", "https://box:99#login=", "ftp://box#login=x", "https://h#sha256:1&login=x"] {
            assert!(parse_login_link(text).is_err(), "{text}");
        }
    }
}
