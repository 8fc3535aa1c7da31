//! [`Location`] → text: for people, and for documents.

use std::fmt::{self, Write as _};

#[cfg(feature = "serde")]
pub use serde_text::{encoded_path, encoded_path_or_none};

use super::{Location, NodeAddress, SshHost, SyntheticKind};
use crate::path::{display_bytes, drives_terminal};
use crate::pin::format_pin;

impl Location {
    /// What documents have, which [`Location::parse_document`] reads: a path at a login directory stands below `/~/`.
    /// None where no document has it: a relative path, standard input and output, a program's store.
    pub fn document(&self) -> Option<String> {
        Some(match self {
            Self::Local(path) if path.starts_with(b"/") => encode_path(path),
            Self::Ssh { host, path } => match &path[..] {
                // Itself, and not the login directory.
                [b'/', b'~'] | [b'/', b'~', b'/', ..] => format!("ssh://{host}/%7E{}", encode_path(&path[2..])),
                [b'/', ..] => format!("ssh://{host}{}", encode_path(path)),
                [b'~'] | [b'~', b'/', ..] => format!("ssh://{host}/{}", encode_path(path)),
                _ => format!("ssh://{host}/~/{}", encode_path(path)),
            },
            Self::Node { node, path } => {
                let pin = node.pin.map(|pin| format!("#{}", format_pin(&pin))).unwrap_or_default();
                format!("carrack://{}:{}{}{pin}", Bracketed(&node.host), node.port, from_root(path))
            }
            Self::Endpoint { name, path } => format!("@{name}:{}", from_root(path)),
            Self::Null | Self::Zero(_) | Self::Random(_) => self.to_string(),
            Self::Local(_) | Self::Stdio | Self::Store { .. } | Self::Synthetic { .. } => return None,
        })
    }
}

fn from_root(path: &[u8]) -> String {
    let slash = if path.starts_with(b"/") { "" } else { "/" };
    format!("{slash}{}", encode_path(path))
}

/// A path as text: `%`, `#` and `?`, what is no UTF-8, and what could drive a terminal as `%XX`.
/// [`decode_path`](super::decode_path) reads it.
pub fn encode_path(path: &[u8]) -> String {
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

#[cfg(feature = "serde")]
mod serde_text {
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Error as _, Serialize, Serializer};

    use super::super::decode_path;
    use super::{Location, encode_path};

    /// As documents have it.
    impl Serialize for Location {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let text = self.document().ok_or_else(|| S::Error::custom(format!("no document has {self}")))?;
            serializer.serialize_str(&text)
        }
    }

    impl<'de> Deserialize<'de> for Location {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Self::parse_document(&String::deserialize(deserializer)?).map_err(D::Error::custom)
        }
    }

    /// A path in a document, with `%XX` for what is no text.
    pub mod encoded_path {
        use super::*;

        /// Writes it.
        ///
        /// # Errors
        /// The serializer's own.
        pub fn serialize<S: Serializer>(path: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(&encode_path(path))
        }

        /// Reads it.
        ///
        /// # Errors
        /// The sentence of [`decode_path`].
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
            decode_path(String::deserialize(deserializer)?.as_bytes()).map_err(D::Error::custom)
        }
    }

    /// The same where it may be left out.
    pub mod encoded_path_or_none {
        use super::*;

        /// Writes it.
        ///
        /// # Errors
        /// The serializer's own.
        pub fn serialize<S: Serializer>(path: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
            path.as_ref().map(|path| encode_path(path)).serialize(serializer)
        }

        /// Reads it.
        ///
        /// # Errors
        /// The sentence of [`decode_path`].
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
            let text = Option::<String>::deserialize(deserializer)?;
            text.map(|text| decode_path(text.as_bytes()).map_err(D::Error::custom)).transpose()
        }
    }
}

impl NodeAddress {
    /// `HOST:PORT` as lists of nodes and of their tokens have it: in lower case, without a final dot, an IPv6 address
    /// in its one spelling. Two ways to type one node give the same.
    pub fn known_as(&self) -> String {
        let (address, zone) = self.host.split_once('%').map_or((&*self.host, None), |(host, zone)| (host, Some(zone)));
        if let Ok(address) = address.parse::<core::net::Ipv6Addr>() {
            let zone = zone.map(|zone| format!("%{zone}")).unwrap_or_default();
            return format!("[{address}{zone}]:{}", self.port);
        }
        let host = self.host.strip_suffix('.').filter(|host| !host.is_empty()).unwrap_or(&self.host);
        format!("{}:{}", host.to_ascii_lowercase(), self.port)
    }
}

/// An address as it is typed: IPv6 literals in brackets.
struct Bracketed<'a>(&'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') { write!(f, "[{}]", self.0) } else { f.write_str(self.0) }
    }
}

impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}", Bracketed(&self.host))
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Bracketed(&self.host), self.port)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "{}", display_bytes(path)),
            Self::Ssh { host, path } => write!(f, "{host}:{}", display_bytes(path)),
            Self::Node { node, path } => {
                let slash = if path.starts_with(b"/") { "" } else { "/" };
                write!(f, "carrack://{node}{slash}{}", display_bytes(path))
            }
            Self::Endpoint { name, path } => write!(f, "@{name}:{}", display_bytes(path)),
            Self::Store { scheme, path } => write!(f, "{scheme}:{}", display_bytes(path)),
            Self::Stdio => f.write_str("-"),
            Self::Null => f.write_str("null:"),
            Self::Zero(size) => write!(f, "zero:{size}"),
            Self::Random(size) => write!(f, "random:{size}"),
            Self::Synthetic { host, what } => write!(f, "{what} at {host}"),
        }
    }
}

impl fmt::Display for SyntheticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros(size) => write!(f, "zero:{size}"),
            Self::Random(size) => write!(f, "random:{size}"),
            Self::Null => f.write_str("null:"),
            Self::Memory => f.write_str("memory:"),
        }
    }
}
