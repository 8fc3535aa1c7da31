//! What the programs of this crate share: nodes of their own, and copies to them. All of it is made with
//! `carrack-engine` and `carrack-core`, as somebody else would make it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use carrack_core::credential::{Credential, Token};
use carrack_core::location::{Location, NodeAddress};
use carrack_core::report::{ErrorCode, Event, Report};
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions};
use carrack_core::tuning::Tuning;
use carrack_engine::node::{Access, Measure, Node, NodeConfig, NodeHandle, NodeLog, NodeRoot, RevokedGrants};
use carrack_engine::{Context, Copy, Stop};

/// A node, and what its clients need.
pub struct Site {
    name: &'static str,
    /// What it serves.
    pub root: PathBuf,
    /// What it asks for.
    pub token: Token,
    node: NodeHandle,
}

impl Site {
    /// Serves a new directory below this one.
    pub fn start(directory: &Path, name: &'static str) -> Self {
        let root = directory.join(name);
        fs::create_dir(&root).expect("made");
        let word = format!("{name}-and-thirty-two-more-characters");
        let token_file = directory.join(format!("{name}.token"));
        fs::write(&token_file, &word).expect("written");
        fs::set_permissions(&token_file, Permissions::from_mode(0o600)).expect("the owner's");
        let node = Node::start(NodeConfig {
            root: NodeRoot::Directory(root.clone()),
            listen: "127.0.0.1:0".parse().expect("an address"),
            listener: None,
            access: Access::TokenFile(token_file),
            read_only: false,
            allows_ownership: false,
            revoked: RevokedGrants::default(),
            host_grants: None,
            measure: Measure::Token,
            dial_to: Vec::new(),
            key_file: directory.join(format!("{name}.key")),
            stop: Stop::new(),
            doors: Vec::new(),
            log: NodeLog::none(),
            tuning: Tuning::default(),
        });
        let token = Token::new(word.as_bytes()).expect("a token");
        Self { name, root, token, node: node.expect("it serves") }
    }

    /// A place on this node.
    pub fn at(&self, path: &str) -> Location {
        let (host, port) = ("127.0.0.1".into(), self.node.address().port());
        Location::Node { node: NodeAddress { host, port, pin: Some(self.node.fingerprint()) }, path: path.into() }
    }

    /// What this node has to be shown.
    pub fn shown(&self) -> EndOptions {
        EndOptions { credential: Credential::Value(self.token.clone()), ..EndOptions::default() }
    }

    /// A copy to this node.
    pub fn request(&self, source: Location, path: &str) -> CopyRequest {
        let options = CopyOptions { destination: self.shown(), retries: 0, ..CopyOptions::default() };
        CopyRequest { sources: vec![source], destination: self.at(path), options }
    }

    /// Stops it: of no copy anything is left that is unfinished.
    pub fn end(self) {
        self.node.stop();
        self.node.wait();
        let hidden = |name: &String| name.starts_with('.');
        let left: Vec<String> = names(&self.root).into_iter().filter(hidden).collect();
        assert!(left.is_empty(), "{}: {left:?}", self.name);
    }
}

/// The names in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect()
}

/// Begins a copy, and cancels it as soon as so many bytes have landed.
pub fn begun(request: CopyRequest, context: &Context, bytes: u64) -> Report {
    let mut copy = Copy::start(request, context);
    while let Some(event) = copy.next_event() {
        if matches!(event, Event::Progress(progress) if progress.bytes_done >= bytes) {
            copy.cancel();
        }
    }
    copy.wait()
}

/// What ended a copy early.
pub fn code(report: &Report) -> Option<ErrorCode> {
    report.error.as_ref().map(|why| why.code)
}

/// Bytes that differ everywhere, from a seed.
pub fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes / 8).flat_map(|_| next()).collect()
}
