//! A *location*: where a source or a destination is, as a user or a document says it. What it resolves to at its host
//! (a directory, a store, a stream) is the engine's.

mod parse;
mod text;

pub use parse::{DEFAULT_PORT, check_endpoint_name, decode_path, parse_host, parse_port};
pub use text::encode_path;
#[cfg(feature = "serde")]
pub use text::{encoded_path, encoded_path_or_none};

/// One end of a copy, or the object of a file manager's verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path on this machine, as typed (a trailing slash is kept: it has a meaning).
    Local(Vec<u8>),
    /// A path on a host that the user's own ssh reaches. An empty path is the login directory.
    Ssh {
        /// What is handed to `ssh`.
        host: SshHost,
        /// The path as the user typed it.
        path: Vec<u8>,
    },
    /// A path below the root of a `carrack serve`.
    Node {
        /// The address that the node listens on.
        node: NodeAddress,
        /// Below its root.
        path: Vec<u8>,
    },
    /// A path below the root of an endpoint. Only its service knows where that is.
    Endpoint {
        /// Its name.
        name: String,
        /// Below its root; begins with `/`.
        path: Vec<u8>,
    },
    /// A path in a store that the program has given this name to. No text becomes one.
    Store {
        /// The name.
        scheme: String,
        /// In the store.
        path: Vec<u8>,
    },
    /// Standard input as a source, standard output as a destination.
    Stdio,
    /// A sink that forgets.
    Null,
    /// A source of so many zero bytes.
    Zero(u64),
    /// A source of so many bytes that neither a file system nor a network card can compress.
    Random(u64),
    /// Bytes that are made or dropped at the host of a place. No text becomes one.
    Synthetic {
        /// A place on that host; its path means nothing.
        host: Box<Location>,
        /// Which bytes, or that they are dropped.
        what: SyntheticKind,
    },
}

/// What is at no path of a host, but made there, or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntheticKind {
    /// A source of so many zero bytes.
    Zeros(u64),
    /// A source of so many bytes that nothing on the way can compress.
    Random(u64),
    /// A sink that forgets. The kernel may throw the bytes away itself.
    Null,
    /// A sink that takes the bytes into memory, as an application does, and forgets them there.
    Memory,
}

/// What is handed to `ssh` to name a host: its own configuration decides the rest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SshHost {
    /// The login, when one was typed.
    pub user: Option<String>,
    /// A name, an alias of `ssh_config`, an IPv4 or an IPv6 literal without brackets. Never starts with `-`.
    pub host: String,
}

/// Where a node listens, and which key it must show.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeAddress {
    /// A name, an IPv4 or an IPv6 literal without brackets.
    pub host: String,
    /// The node's one TCP port.
    pub port: u16,
    /// SHA-256 of the node's public key, when `#sha256:…` was typed.
    pub pin: Option<[u8; 32]>,
}

impl Location {
    /// Whether reaching it needs another host.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Ssh { .. } | Self::Node { .. } => true,
            Self::Synthetic { host, .. } => host.is_remote(),
            _ => false,
        }
    }

    /// Bytes that are made, or dropped, at the host of this place.
    #[must_use]
    pub fn synthetic(&self, what: SyntheticKind) -> Self {
        Self::Synthetic { host: Box::new(self.host().clone()), what }
    }

    /// The place on whose host it is: itself, but for what is at no place.
    pub fn host(&self) -> &Self {
        if let Self::Synthetic { host, .. } = self { host.host() } else { self }
    }

    /// Whether both are reached in the same way: one connection does for them.
    pub fn is_beside(&self, other: &Self) -> bool {
        match (self.host(), other.host()) {
            (Self::Ssh { host: one, .. }, Self::Ssh { host: other, .. }) => one == other,
            (Self::Node { node: one, .. }, Self::Node { node: other, .. }) => one == other,
            (Self::Store { scheme: one, .. }, Self::Store { scheme: other, .. }) => one == other,
            (Self::Endpoint { name: one, .. }, Self::Endpoint { name: other, .. }) => one == other,
            (Self::Store { .. } | Self::Endpoint { .. }, _) | (_, Self::Store { .. } | Self::Endpoint { .. }) => false,
            (one, other) => !one.is_remote() && !other.is_remote(),
        }
    }

    /// What figures and sentences call the place: `@lab`, the name of a host, `this host`.
    pub fn place_name(&self) -> String {
        match self.host() {
            Self::Endpoint { name, .. } => format!("@{name}"),
            Self::Node { node, .. } => node.host.clone(),
            Self::Ssh { host, .. } => host.host.clone(),
            Self::Store { scheme, .. } => format!("{scheme}:"),
            Self::Local(_) | Self::Stdio => "this host".to_owned(),
            Self::Null | Self::Zero(_) | Self::Random(_) | Self::Synthetic { .. } => "no storage".to_owned(),
        }
    }

    /// The path, for the locations that have one.
    pub fn path(&self) -> Option<&[u8]> {
        match self {
            Self::Local(path)
            | Self::Ssh { path, .. }
            | Self::Node { path, .. }
            | Self::Endpoint { path, .. }
            | Self::Store { path, .. } => Some(path),
            Self::Stdio | Self::Null | Self::Zero(_) | Self::Random(_) | Self::Synthetic { .. } => None,
        }
    }

    /// The endpoint that it is at, if it is at one.
    pub fn endpoint(&self) -> Option<&str> {
        if let Self::Endpoint { name, .. } = self { Some(name) } else { None }
    }

    /// Whether it is no place: bytes that are made, or dropped.
    pub fn is_synthetic(&self) -> bool {
        matches!(self, Self::Null | Self::Zero(_) | Self::Random(_) | Self::Synthetic { .. })
    }

    /// The node that it is on, if it is on one.
    pub fn node(&self) -> Option<&NodeAddress> {
        match self {
            Self::Node { node, .. } => Some(node),
            Self::Synthetic { host, .. } => host.node(),
            _ => None,
        }
    }

    /// The same place with another path.
    pub fn with_path(&self, path: Vec<u8>) -> Self {
        match self {
            Self::Ssh { host, .. } => Self::Ssh { host: host.clone(), path },
            Self::Node { node, .. } => Self::Node { node: node.clone(), path },
            Self::Endpoint { name, .. } => Self::Endpoint { name: name.clone(), path },
            Self::Store { scheme, .. } => Self::Store { scheme: scheme.clone(), path },
            Self::Synthetic { host, .. } => host.with_path(path),
            _ => Self::Local(path),
        }
    }

    /// What is in it: the same place with a slash at its end.
    #[must_use]
    pub fn contents(&self) -> Self {
        match self.path() {
            Some(path) if !path.is_empty() && !path.ends_with(b"/") => self.with_path([path, b"/"].concat()),
            _ => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_without_a_host_are_beside_each_other_and_stores_of_one_scheme() {
        let store = |scheme: &str| Location::Store { scheme: scheme.into(), path: b"a".to_vec() };
        let local = Location::Local(b"a".to_vec());
        let far = Location::Ssh { host: SshHost { user: None, host: "h".into() }, path: b"a".to_vec() };
        assert!(store("s3").is_beside(&store("s3")) && !store("s3").is_beside(&store("other")));
        assert!(!store("s3").is_beside(&local) && !local.is_beside(&store("s3")));
        assert!(local.is_beside(&Location::Null) && !local.is_beside(&far));
        let zeros = far.synthetic(SyntheticKind::Zeros(7));
        assert!(zeros.is_beside(&far) && !zeros.is_beside(&local));
    }

    #[test]
    fn synthetic_is_at_its_host_and_has_no_path() {
        let node = NodeAddress { host: "far".into(), port: 7420, pin: None };
        let place = Location::Node { node: node.clone(), path: b"data".to_vec() };
        let zeros = place.synthetic(SyntheticKind::Zeros(7));
        assert_eq!((zeros.is_remote(), zeros.path(), zeros.node()), (true, None, Some(&node)));
        assert_eq!((zeros.host(), zeros.to_string()), (&place, "zero:7 at carrack://far:7420/data".to_owned()));
        assert_eq!(zeros.synthetic(SyntheticKind::Null).host(), &place);
        let here = Location::Local(b"data".to_vec()).synthetic(SyntheticKind::Null);
        assert!(!here.is_remote() && here.with_path(b"x".to_vec()) == Location::Local(b"x".to_vec()));
    }

    #[test]
    fn contents_of_a_place_are_named_by_a_slash() {
        for (typed, contents) in [("d", "d/"), ("d/", "d/"), ("host:d", "host:d/"), ("host:", "host:"), ("-", "-")] {
            let of = |text: &str| Location::parse_typed(text.as_bytes()).unwrap();
            assert_eq!(of(typed).contents(), of(contents), "{typed}");
        }
    }

    #[test]
    fn known_as_is_the_same_for_all_spellings_of_one_node() {
        let known_as = |host: &str| NodeAddress { host: host.into(), port: 7420, pin: None }.known_as();
        for host in ["node.example.org", "Node.Example.ORG", "NODE.example.org."] {
            assert_eq!(known_as(host), "node.example.org:7420");
        }
        for host in ["2001:db8::A", "2001:DB8:0:0::000a"] {
            assert_eq!(known_as(host), "[2001:db8::a]:7420");
        }
        assert_eq!(known_as("fe80::1%Eth0"), "[fe80::1%Eth0]:7420");
        assert_eq!((known_as("10.0.0.1"), known_as(".")), ("10.0.0.1:7420".into(), ".:7420".into()));
        assert_ne!(known_as("node"), known_as("node.."));
    }
}
