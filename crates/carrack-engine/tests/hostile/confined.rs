//! An end in this process that is confined below a directory: what leads out of it is refused, and as a node that
//! serves the directory refuses it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use carrack_core::location::{Location, NodeAddress};
use carrack_core::report::{ErrorCode, Report};
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_engine::node::{Node, NodeHandle};
use carrack_engine::{Context, Copy, Place};

use crate::sandbox::{CANARY, Sandbox, directory, node_config};
use crate::watch::Watch;

/// Ways out of the root.
const OUT: [&str; 6] = ["../outside/canary", "a/../../outside/canary", "..", "out/canary", "out", "/../outside/canary"];

/// A node that serves the same directory.
fn node(root: &Path, own: &Path) -> NodeHandle {
    Node::start(node_config(root, own)).unwrap()
}

fn local(path: &Path) -> Location {
    Location::Local(path.as_os_str().as_encoded_bytes().to_vec())
}

/// The same path at a local end, and at the node.
fn both(node: &NodeHandle, path: &str) -> [Location; 2] {
    let address = NodeAddress { host: "127.0.0.1".into(), port: node.address().port(), pin: Some(node.fingerprint()) };
    let rooted = format!("/{}", path.trim_start_matches('/'));
    [Location::Local(path.into()), Location::Node { node: address, path: rooted.into() }]
}

fn copy(source: Location, destination: Location, context: &Context) -> Report {
    let options = CopyOptions { retries: 0, ..CopyOptions::default() };
    Copy::start(CopyRequest { sources: vec![source], destination, options }, context).wait()
}

/// The code that ended a copy, or that of its one item.
fn code(report: &Report) -> Option<ErrorCode> {
    let failure = report.error.as_ref().or_else(|| report.failures.first().map(|item| &item.failure));
    failure.map(|failure| failure.code)
}

struct Stage {
    sandbox: Sandbox,
    node: NodeHandle,
    confined: Context,
    free: Context,
    /// Of the test itself.
    own: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let (sandbox, own) = (Sandbox::new(), directory());
        symlink(sandbox.outside(), sandbox.root().join("out")).unwrap();
        fs::write(sandbox.root().join("inside"), "inside").unwrap();
        let node = node(&sandbox.root(), own.path());
        let confined = Context { local: Place::beneath(&sandbox.root()).unwrap(), ..Context::default() };
        Self { sandbox, node, confined, free: Context::default(), own }
    }

    /// No thread of the node outlives the test.
    fn end(self) {
        self.node.stop();
        self.node.wait();
    }

    /// The path of a file outside, as one types it who may go anywhere.
    fn absolute(&self) -> String {
        self.sandbox.outside().join("canary").to_str().unwrap().to_owned()
    }
}

#[test]
fn confined_source_is_read_below_its_directory_only() {
    let _watch = Watch::start();
    let stage = Stage::new();
    // An absolute path begins at the root, and nothing is there.
    for path in OUT.into_iter().chain([&*stage.absolute()]) {
        let [here, there] = both(&stage.node, path);
        // Into a tree that is not confined: a copy has one context, and its other end is the node.
        let to = both(&stage.node, "copy").into_iter().nth(1).unwrap();
        let refused = copy(here, to, &stage.confined);
        let by_node = copy(there, local(&stage.own.path().join("copy")), &stage.free);
        assert!(code(&refused).is_some(), "{path}: it was read");
        assert_eq!(code(&refused), code(&by_node), "{path}: {:?} {:?}", refused.error, by_node.error);
        assert!(!stage.own.path().join("copy").exists() && !stage.sandbox.root().join("copy").is_file(), "{path}");
    }
    let [here, there] = both(&stage.node, "/inside");
    assert_eq!(copy(here, both(&stage.node, "copy")[1].clone(), &stage.confined).error, None);
    assert_eq!(copy(there, local(&stage.own.path().join("copy")), &stage.free).error, None);
    for copied in [stage.sandbox.root().join("copy"), stage.own.path().join("copy")] {
        assert_eq!(fs::read(copied).unwrap(), b"inside");
    }
    stage.sandbox.assert_untouched();
    stage.end();
}

#[test]
fn confined_destination_is_written_below_its_directory_only() {
    let _watch = Watch::start();
    let stage = Stage::new();
    let content = stage.own.path().join("content");
    fs::write(&content, "new").unwrap();
    for path in OUT {
        let [here, there] = both(&stage.node, path);
        let from = both(&stage.node, "inside").into_iter().nth(1).unwrap();
        let refused = copy(from, here, &stage.confined);
        let by_node = copy(local(&content), there, &stage.free);
        assert!(code(&refused).is_some(), "{path}: it was written");
        assert_eq!(code(&refused), code(&by_node), "{path}: {:?} {:?}", refused.error, by_node.error);
        stage.sandbox.assert_untouched();
    }
    // An absolute path begins at the root, and is made there.
    for path in ["/made", &stage.absolute()] {
        let [here, _] = both(&stage.node, path);
        let from = both(&stage.node, "inside").into_iter().nth(1).unwrap();
        assert_eq!(copy(from, here, &stage.confined).error, None);
        assert_eq!(fs::read(stage.sandbox.root().join(path.trim_start_matches('/'))).unwrap(), b"inside");
    }
    assert_eq!(fs::read(stage.sandbox.outside().join("canary")).unwrap(), CANARY);
    stage.sandbox.assert_untouched();
    stage.end();
}
