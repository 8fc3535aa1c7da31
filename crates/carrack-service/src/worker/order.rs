//! What a worker is told to do, on its standard input: one JSON document. It holds secrets, so it is written to no
//! file, no argument and no environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::model::{Ceilings, EndpointLocation, Fence, Secret, TaskKind, TaskLocation, TaskOptions};

/// One attempt of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The task.
    pub task: String,
    /// The number of this attempt. A worker with a smaller number than the journal has ends at once.
    pub fence: Fence,
    /// The directory with the task's journal and lock.
    pub directory: PathBuf,
    /// What is done.
    pub kind: TaskKind,
    /// From where to where; one after the other.
    pub pairs: Vec<PairOrder>,
    /// How it is copied, the endpoints' defaults and limits applied.
    pub options: TaskOptions,
    /// When the task fails.
    pub deadline: Option<Moment>,
    /// Missing and unreadable sources are skipped.
    pub skip_source_errors: bool,
    /// The first item that a quota refuses ends the attempt.
    pub fail_on_quota_errors: bool,
    /// BLAKE3 digests that files must have, in hexadecimal, by path.
    pub expect_digests: BTreeMap<String, String>,
    /// How much may be done, by the token that submitted the task.
    pub ceilings: Ceilings,
    /// By how much the worker gives way to other processes: 0 (not at all) to 19.
    #[serde(default)]
    pub nice: u8,
}

/// From where to where.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairOrder {
    /// What is copied, moved or deleted.
    pub source: EndOrder,
    /// Where it goes.
    pub destination: Option<EndOrder>,
    /// The endpoint of the source, if it is at one.
    #[serde(default)]
    pub source_endpoint: Option<EndpointRoot>,
    /// The endpoint of the destination, if it is at one.
    #[serde(default)]
    pub destination_endpoint: Option<EndpointRoot>,
}

impl PairOrder {
    /// From somewhere to somewhere, at no endpoint.
    pub fn new(source: EndOrder, destination: Option<EndOrder>) -> Self {
        Self { source, destination, source_endpoint: None, destination_endpoint: None }
    }

    /// What identifies where the pair leads from and to: 16 bytes. What was done at another place is not done here. A
    /// node is its address, its key and the path; what it is shown, and what it allows, is no part of it.
    pub fn place(&self) -> Vec<u8> {
        let mut hasher = blake3::Hasher::new_derive_key("carrack task place 1");
        for end in [Some(&self.source), self.destination.as_ref()] {
            let words = end.map(EndOrder::place).unwrap_or_default();
            hasher.update(&(words.len() as u64).to_le_bytes());
            for word in words {
                hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
            }
        }
        hasher.finalize().as_bytes()[..16].to_vec()
    }
}

/// By what name people know an end, for what they are told of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointRoot {
    /// The endpoint's name.
    pub name: String,
    /// What stands above the endpoint's paths in those of the order, told as they are.
    pub base: String,
}

impl EndpointRoot {
    /// The name of an endpoint that is there.
    pub fn of(name: &str, location: &EndpointLocation) -> Self {
        let base = match location {
            // Below the root, paths are the endpoint's own.
            EndpointLocation::Local { .. } | EndpointLocation::Ssh { .. } => "",
            EndpointLocation::Node { path, .. } => path,
        };
        Self { name: name.to_owned(), base: base.to_owned() }
    }
}

/// One end, with all that is needed to reach it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum EndOrder {
    /// This host.
    Local {
        /// Nothing outside this directory is reached, told as a path below is; none: the whole host, for whoever runs
        /// the service.
        root: Option<String>,
        /// Below the root; bytes that are no text as in a URL, by `%` and two digits.
        path: String,
        /// Nothing there may be changed.
        read_only: bool,
        /// Nothing outside this path below the root is reached, by no link either.
        #[serde(default)]
        within: Option<String>,
    },
    /// A node.
    Node {
        /// A name or an address, without brackets.
        host: String,
        /// Its TCP port.
        port: u16,
        /// SHA-256 of its public key, in hexadecimal.
        fingerprint: Option<String>,
        /// Below the node's root.
        path: String,
        /// What it is shown.
        credentials: Credentials,
        /// It may not be at an address of the service's own host: no admin has added it.
        #[serde(default)]
        far_only: bool,
    },
    /// A host that ssh of the service's account reaches.
    Ssh {
        /// The login.
        user: Option<String>,
        /// A name or an alias of `ssh_config`.
        host: String,
        /// As of a local end; none: wherever the login may go.
        #[serde(default)]
        root: Option<String>,
        /// Below the root; bytes that are no text as in a URL.
        path: String,
        /// As of a local end.
        #[serde(default)]
        within: Option<String>,
    },
    /// A sink that forgets, or made-up bytes, as `null:`, `zero:1G` and `random:1G` say it.
    Synthetic {
        /// As typed.
        text: String,
    },
}

impl PairOrder {
    /// Its one or two ends.
    pub fn ends(&self) -> impl Iterator<Item = &EndOrder> {
        [Some(&self.source), self.destination.as_ref()].into_iter().flatten()
    }
}

impl EndOrder {
    fn place(&self) -> Vec<String> {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
        match self {
            Self::Local { root, path, .. } => vec!["local".into(), or_none(root), path.clone()],
            Self::Node { host, port, fingerprint, path, .. } => {
                vec!["node".into(), host.clone(), port.to_string(), or_none(fingerprint), path.clone()]
            }
            Self::Ssh { user, host, root, path, .. } => {
                let whole = root.as_ref().map_or_else(|| path.clone(), |root| below(root, path));
                vec!["ssh".into(), or_none(user), host.clone(), whole]
            }
            Self::Synthetic { text } => vec!["synthetic".into(), text.clone()],
        }
    }

    /// A location that is no endpoint's.
    ///
    /// # Errors
    /// The endpoint's name and the path below its root, where it is one's.
    pub fn at_location(location: TaskLocation) -> Result<Self, (String, String)> {
        Ok(match location {
            TaskLocation::Local { path } => Self::Local { root: None, path, read_only: false, within: None },
            TaskLocation::Node { host, port, fingerprint, path } => {
                Self::Node { host, port, fingerprint, path, credentials: Credentials::default(), far_only: false }
            }
            TaskLocation::Ssh { user, host, path } => Self::Ssh { user, host, root: None, path, within: None },
            TaskLocation::Synthetic { text } => Self::Synthetic { text },
            TaskLocation::Endpoint { name, path } => return Err((name, path)),
        })
    }

    /// A path at an endpoint. It begins with `/`, or is empty for the root itself; `token` is what a node is shown.
    pub fn at_endpoint(location: &EndpointLocation, path: &str, read_only: bool, token: Option<Secret>) -> Self {
        match location {
            EndpointLocation::Local { root } => {
                Self::Local { root: Some(root.clone()), path: below("", path), read_only, within: None }
            }
            EndpointLocation::Node { host, port, fingerprint, path: base } => Self::Node {
                host: host.clone(),
                port: *port,
                fingerprint: fingerprint.clone(),
                path: below(base, path),
                credentials: Credentials { token },
                far_only: false,
            },
            EndpointLocation::Ssh { user, host, path: base } => Self::Ssh {
                user: user.clone(),
                host: host.clone(),
                root: Some(base.clone()),
                path: below("", path),
                within: None,
            },
        }
    }
}

/// A path that begins with `/`, or none, below another.
fn below(base: &str, path: &str) -> String {
    match format!("{}{path}", base.trim_end_matches('/')) {
        path if path.is_empty() => "/".to_owned(),
        path => path,
    }
}

/// What a node is shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// A bearer token.
    pub token: Option<Secret>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_of_a_pair_is_its_addresses_keys_and_paths_and_no_token() {
        let node = |host: &str, port, pin: &str, path: &str, token: &str| EndOrder::Node {
            host: host.into(),
            port,
            fingerprint: Some(pin.into()),
            path: path.into(),
            credentials: Credentials { token: Some(Secret::new(token)) },
            far_only: false,
        };
        let to = || EndOrder::Local { root: Some("/data".into()), path: "/".into(), read_only: false, within: None };
        let place = |source| PairOrder::new(source, Some(to())).place();
        let first = place(node("h", 1, "aa", "/x", "t"));
        assert_eq!(first, place(node("h", 1, "aa", "/x", "another")));
        for other in [
            node("i", 1, "aa", "/x", "t"),
            node("h", 2, "aa", "/x", "t"),
            node("h", 1, "ab", "/x", "t"),
            node("h", 1, "aa", "/y", "t"),
        ] {
            assert_ne!(first, place(other.clone()), "{other:?}");
        }
        let elsewhere =
            EndOrder::Local { root: Some("/other".into()), path: "/".into(), read_only: false, within: None };
        assert_ne!(first, PairOrder::new(node("h", 1, "aa", "/x", "t"), Some(elsewhere)).place());
        assert_ne!(place(to()), PairOrder::new(to(), None).place());
    }

    #[test]
    fn path_at_an_endpoint_stands_below_its_root() {
        let node =
            |path: &str| EndpointLocation::Node { host: "h".into(), port: 7420, fingerprint: None, path: path.into() };
        for (base, path, whole) in [
            ("/data", "/a/", "/data/a/"),
            ("/data/", "/a", "/data/a"),
            ("/data", "", "/data"),
            ("/", "/a", "/a"),
            ("/", "", "/"),
        ] {
            let order = EndOrder::at_endpoint(&node(base), path, false, None);
            assert!(matches!(&order, EndOrder::Node { path, .. } if path == whole), "{base} {path}: {order:?}");
        }
        let ssh = EndpointLocation::Ssh { user: None, host: "h".into(), path: "~/data".into() };
        let order = EndOrder::at_endpoint(&ssh, "/a", false, None);
        assert!(
            matches!(&order, EndOrder::Ssh { root: Some(root), path, .. } if root == "~/data" && path == "/a"),
            "{order:?}"
        );
        // A pair that an older service has begun is the same one.
        let raw = TaskLocation::Ssh { user: None, host: "h".into(), path: "~/data/a".into() };
        let raw = EndOrder::at_location(raw).unwrap_or_else(|_| panic!("it is no endpoint's"));
        assert_eq!(PairOrder::new(order, None).place(), PairOrder::new(raw, None).place());
        let local = EndpointLocation::Local { root: "/data".into() };
        let order = EndOrder::at_endpoint(&local, "", true, None);
        assert!(
            matches!(&order, EndOrder::Local { root: Some(root), path, read_only: true, .. } if root == "/data" && path == "/")
        );
    }
}
