//! A store at a far end: a node serves it, and whoever copies there needs to know nothing of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use carrack_core::credential::{Credential, Token};
use carrack_core::failure::{ErrorCode, Reason};
use carrack_core::grant::{Ceilings, Claims, GrantKey, Rights};
use carrack_core::location::{Location, NodeAddress};
use carrack_core::report::Report;
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions};
use carrack_engine::files::Files;
use carrack_engine::node::{Access, Node, NodeConfig, NodeHandle, NodeRoot};
use carrack_engine::stores::over::{Call, Over};
use carrack_engine::stores::properties::{BlockBytes, Properties, Writes};
use carrack_engine::stores::store::Store;
use carrack_engine::{Context, Copy};
use carrack_faults::node::node_config;
use carrack_faults::stores::fault::{Fault, StoreFaults};

use crate::object::Service;
use crate::{Saying, expect_no_changes, expect_only, filled, got, here, is_whole, store};

/// The token of each node here.
const SECRET: &[u8] = b"0123456789abcdef";

struct StoreNode {
    node: NodeHandle,
    own: tempfile::TempDir,
}

impl StoreNode {
    fn start(store: Arc<dyn Store>) -> Self {
        let own = tempfile::tempdir().unwrap();
        let token = own.path().join("token");
        std::fs::write(&token, SECRET).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        Self::start_as(own, 0, store)
    }

    /// The same node, with another store behind it.
    fn anew(self, store: Arc<dyn Store>) -> Self {
        let (port, Self { node, own }) = (self.node.address().port(), self);
        node.stop();
        node.wait();
        Self::start_as(own, port, store)
    }

    fn start_as(own: tempfile::TempDir, port: u16, store: Arc<dyn Store>) -> Self {
        let root = NodeRoot::Store { name: "objects".into(), store };
        let config = NodeConfig {
            listen: ([127, 0, 0, 1], port).into(),
            access: Access::TokenFile(own.path().join("token")),
            ..node_config(root, own.path())
        };
        Self { node: Node::start(config).unwrap(), own }
    }

    fn at(&self, path: &str) -> Location {
        let (port, pin) = (self.node.address().port(), Some(self.node.fingerprint()));
        Location::Node { node: NodeAddress { host: "127.0.0.1".into(), port, pin }, path: path.as_bytes().to_vec() }
    }
}

fn end(token: &[u8]) -> EndOptions {
    EndOptions { credential: Credential::Value(Token::new(token).unwrap()), ..EndOptions::default() }
}

fn copy(from: Location, to: Location) -> Report {
    let options = CopyOptions { retries: 0, source: end(SECRET), destination: end(SECRET), ..CopyOptions::default() };
    let request = CopyRequest { sources: vec![from], destination: to, options };
    Copy::start(request, &Context::default()).wait()
}

fn expect_back(back: &Path, files: &[(&'static str, Vec<u8>)]) {
    for (name, content) in files {
        assert!(std::fs::read(back.join(name)).unwrap() == *content, "{name}");
    }
}

#[test]
fn node_serves_a_store_as_destination_as_source_and_from_one_to_another() {
    let ((place, files), service, other) = (filled(), Service::default(), Service::default());
    let (node, second) = (StoreNode::start(store(&service)), StoreNode::start(store(&other)));
    let report = copy(here(&place.path().join("from/")), node.at("/bucket"));
    assert!(is_whole(&report), "{report:?}");
    expect_only(&service, &files);
    let report = copy(node.at("/bucket/"), second.at("/bucket"));
    assert!(is_whole(&report), "{report:?}");
    expect_only(&other, &files);
    let report = copy(second.at("/bucket/"), here(&place.path().join("back")));
    assert!(is_whole(&report), "{report:?}");
    expect_back(&place.path().join("back"), &files);
}

#[test]
fn copy_to_a_far_store_is_taken_up() {
    let ((place, files), service) = (filled(), Service::default());
    let from = here(&place.path().join("from/"));
    let faults = StoreFaults::new([Fault::panics(Call::EndBlock).after(5)]);
    let broken = StoreNode::start(Arc::new(Over::new(store(&service), Arc::new(faults))));
    assert!(copy(from.clone(), broken.at("/bucket")).error.is_some());
    assert!(got(&service, "bucket/large").is_none());
    let mended = broken.anew(store(&service));
    let report = copy(from, mended.at("/bucket"));
    assert!(report.error.is_none() && report.counts.files_failed == 0, "{report:?}");
    assert!(report.counts.bytes_resumed > 0, "{report:?}");
    expect_only(&service, &files);
}

/// Nobody who copies to a far store has planned for what it takes: it says so before the first byte.
#[test]
fn far_store_says_which_blocks_it_takes() {
    let ((place, _), service) = (filled(), Service::default());
    let large = |says| Properties { block_bytes: Some(BlockBytes { smallest: 5 << 20, largest: 64 << 20 }), ..says };
    let node = StoreNode::start(Arc::new(Saying(store(&service), large)));
    let report = copy(here(&place.path().join("from/")), node.at("/bucket"));
    let refused = report.error.as_ref().expect("blocks of 256 KiB");
    assert_eq!((refused.code, refused.reason), (ErrorCode::Unsupported, Some(Reason::BlockRefused)), "{report:?}");
    assert!(refused.message().contains("the nearest has 8388608"), "{refused}");
    assert!(service.lock().objects.is_empty() && service.lock().uploads.is_empty());
    // And none that takes bytes in one order alone is served.
    let own = tempfile::tempdir().unwrap();
    let in_order = |says| Properties { writes: Writes::InOrder, ..says };
    let root = NodeRoot::Store { name: "tapes".into(), store: Arc::new(Saying(store(&service), in_order)) };
    assert_eq!(Node::start(node_config(root, own.path())).err().map(|why| why.code), Some(ErrorCode::Unsupported));
}

/// What a grant is for is the path of a directory: a store keeps nobody below one.
#[test]
fn far_store_takes_no_grants_and_says_what_it_cannot_do() {
    let ((place, files), service) = (filled(), Service::default());
    let node = StoreNode::start(store(&service));
    assert!(is_whole(&copy(here(&place.path().join("from/")), node.at("/bucket"))));
    let at = node.at("/bucket");
    let open = |token: &[u8]| Files::open(&at, &end(token), &Context::default(), &|_| {});
    for prefix in [&b""[..], b"bucket", b"elsewhere"] {
        let (id, rights, prefix, ceilings) = ([1; 16], Rights::all(), prefix.to_vec(), Ceilings::default());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let claims = Claims { id, rights, prefix, expires: now + 3600, ceilings };
        let grant = GrantKey::of(&Token::new(SECRET).unwrap()).seal(&claims).unwrap();
        let refused = open(grant.reveal().as_bytes()).err().expect("a grant was taken");
        assert!(
            refused.code == ErrorCode::PermissionDenied && refused.message().contains("serves a store"),
            "{refused}"
        );
    }
    let mut verbs = open(SECRET).unwrap();
    assert_eq!(verbs.stat(b"/bucket/large").unwrap().size, 40 << 20);
    expect_no_changes(&mut verbs, "/");
    expect_only(&service, &files);
}
