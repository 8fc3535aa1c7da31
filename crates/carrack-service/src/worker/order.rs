//! What a worker is told to do, on its standard input: one JSON document. It holds secrets, so it is written to no
//! file, no argument and no environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use carrack_core::location::{Location, encoded_path, encoded_path_or_none};
use carrack_core::path::bare;
use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::model::{Ceilings, Fence, RunGuard, Secret, TaskKind, TaskOptions};

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
    /// When the task was submitted: the ages of files are counted from then.
    pub submitted: Moment,
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
    /// Only plan: nothing is changed.
    #[serde(default)]
    pub preview: bool,
    /// What the run of a timer is held to before it deletes.
    #[serde(default)]
    pub guard: Option<RunGuard>,
    /// Signs the receipt of each pair, where the task is to have them: the service's key for receipts.
    #[serde(default)]
    pub receipt: Option<Secret>,
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
                hasher.update(&(word.len() as u64).to_le_bytes()).update(&word);
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
    #[serde(with = "encoded_path")]
    pub base: Vec<u8>,
}

impl EndpointRoot {
    /// The name of an endpoint that is at this location.
    pub fn of(name: &str, location: &Location) -> Self {
        let base = match location {
            Location::Node { path, .. } => path.clone(),
            // Below the root, paths are the endpoint's own.
            _ => Vec::new(),
        };
        Self { name: name.to_owned(), base }
    }
}

/// One end, with all that is needed to reach it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndOrder {
    /// Where it is. With a root, its path stands below that.
    pub location: Location,
    /// Nothing outside this directory of this host, or of a host behind ssh, is reached, told as a path below is; none:
    /// the whole host, for whoever runs the service. What a node lets nobody out of is what it serves.
    #[serde(default, with = "encoded_path_or_none", skip_serializing_if = "Option::is_none")]
    pub root: Option<Vec<u8>>,
    /// Nothing outside this path below the root is reached, by no link either.
    #[serde(default, with = "encoded_path_or_none", skip_serializing_if = "Option::is_none")]
    pub within: Option<Vec<u8>>,
    /// Nothing there may be changed.
    #[serde(default)]
    pub read_only: bool,
    /// Owners, special bits and devices are asked for there, and set where it is on this host. A node looks at its
    /// grant as well.
    #[serde(default)]
    pub ownership: bool,
    /// What a node is shown.
    #[serde(default)]
    pub credentials: Credentials,
    /// A node may not be at an address of the service's own host: no admin has added it.
    #[serde(default)]
    pub far_only: bool,
}

impl PairOrder {
    /// Its one or two ends.
    pub fn ends(&self) -> impl Iterator<Item = &EndOrder> {
        [Some(&self.source), self.destination.as_ref()].into_iter().flatten()
    }
}

impl EndOrder {
    /// A location that is no endpoint's.
    pub fn at_location(location: Location) -> Self {
        Self {
            location,
            root: None,
            within: None,
            read_only: false,
            ownership: false,
            credentials: Credentials::default(),
            far_only: false,
        }
    }

    /// A path at an endpoint, which is at a location. It begins with `/`, or is empty for the root itself; `token` is
    /// what a node is shown.
    pub fn at_endpoint(endpoint: Location, path: &[u8], read_only: bool, token: Option<Secret>) -> Self {
        let from_root = if path.is_empty() { b"/" } else { path };
        let (location, root) = match &endpoint {
            Location::Node { path: base, .. } => (endpoint.with_path(below(base, path)), None),
            _ => (endpoint.with_path(from_root.to_vec()), endpoint.path().map(<[u8]>::to_vec)),
        };
        Self { root, read_only, credentials: Credentials { token }, ..Self::at_location(location) }
    }

    /// What identifies the place, as bytes.
    fn place(&self) -> Vec<Vec<u8>> {
        let location = match (&self.location, &self.root) {
            // A pair that was begun by the whole path is the same one.
            (Location::Ssh { path, .. }, Some(root)) => self.location.with_path(below(root, path)),
            (location, _) => location.clone(),
        };
        let local_root = self.root.clone().filter(|_| matches!(location, Location::Local(_)));
        vec![location.document().unwrap_or_default().into_bytes(), local_root.unwrap_or_default()]
    }
}

/// A path that begins with `/`, or none, below another.
fn below(base: &[u8], path: &[u8]) -> Vec<u8> {
    match [bare(base), path].concat() {
        path if path.is_empty() => b"/".to_vec(),
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

    fn at(text: &str) -> Location {
        Location::parse_document(text).expect("a location")
    }

    #[test]
    fn place_of_a_pair_is_its_addresses_keys_and_paths_and_no_token() {
        let node = |host: &str, port: u16, pin: &str, path: &str, token: &str| EndOrder {
            credentials: Credentials { token: Some(Secret::new(token)) },
            ..EndOrder::at_location(at(&format!("carrack://{host}:{port}{path}#sha256:{}", pin.repeat(32))))
        };
        let local = |root: &str| EndOrder::at_endpoint(at(root), b"", false, None);
        let place = |source| PairOrder::new(source, Some(local("/data"))).place();
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
        assert_ne!(first, PairOrder::new(node("h", 1, "aa", "/x", "t"), Some(local("/other"))).place());
        assert_ne!(place(local("/data")), PairOrder::new(local("/data"), None).place());
    }

    #[test]
    fn path_at_an_endpoint_stands_below_its_root() {
        for (base, path, whole) in [
            ("/data", "/a/", "/data/a/"),
            ("/data/", "/a", "/data/a"),
            ("/data", "", "/data"),
            ("/", "/a", "/a"),
            ("/", "", "/"),
        ] {
            let node = at(&format!("carrack://h{base}"));
            let order = EndOrder::at_endpoint(node, path.as_bytes(), false, None);
            assert_eq!(order.location, at(&format!("carrack://h{whole}")), "{base} {path}");
        }
        let order = EndOrder::at_endpoint(at("ssh://h/~/data"), b"/a", false, None);
        assert_eq!((order.root.as_deref(), order.location.path()), (Some(&b"~/data"[..]), Some(&b"/a"[..])));
        let raw = EndOrder::at_location(at("ssh://h/~/data/a"));
        assert_eq!(PairOrder::new(order, None).place(), PairOrder::new(raw, None).place());
        let order = EndOrder::at_endpoint(at("/data"), b"", true, None);
        assert_eq!((order.root.as_deref(), order.location.path()), (Some(&b"/data"[..]), Some(&b"/"[..])));
        assert!(order.read_only);
    }

    #[test]
    fn order_keeps_every_byte_of_a_path() {
        let location = Location::Local(b"/a%\xff\n".to_vec());
        let order =
            EndOrder { within: Some(b"/\xfe".to_vec()), ..EndOrder::at_endpoint(location, b"/b\x01", false, None) };
        let told: EndOrder = serde_json::from_str(&serde_json::to_string(&order).unwrap()).unwrap();
        assert_eq!((&told.location, &told.root, &told.within), (&order.location, &order.root, &order.within));
    }
}
