//! What a session did, for the log of whoever runs a node.

use std::sync::Mutex;

use carrack_core::report::Failure;
use carrack_core::wire::control::{Ask, Origin, Role};

use crate::sync::lock;

/// What a session did. Sums over all that it did; texts are of the first.
#[derive(Clone, Debug, Default)]
pub struct SessionWork {
    /// What was asked for: `send`, `receive`, `list`, `sum`, `read`, `mkdir`, `rename`, `remove` or `collect`. Of
    /// several kinds the first one; none: nothing.
    pub verb: Option<&'static str>,
    /// Requests of these kinds.
    pub requests: u64,
    /// The first path that was asked for, as the client typed it.
    pub path: Vec<u8>,
    /// Bytes that left over data connections and were acknowledged: content and what goes with it; and bytes of files
    /// that were read over the control connection.
    pub bytes_sent: u64,
    /// Bytes that came over data connections.
    pub bytes_received: u64,
    /// The first failure: of a request, or of a transfer as a whole.
    pub failure: Option<Failure>,
}

/// Written while the session goes on.
#[derive(Default)]
pub struct SessionTally(Mutex<SessionWork>);

impl SessionTally {
    /// A request has come.
    pub fn asked(&self, ask: &Ask) {
        let (verb, path) = match ask {
            Ask::Begin(begin) => match &begin.role {
                Role::Send(role) => {
                    let of_source = role.sources.iter().find_map(|source| match &source.origin {
                        Origin::Path(path) => Some(&path[..]),
                        _ => None,
                    });
                    ("send", of_source.unwrap_or_default())
                }
                Role::Receive(role) => ("receive", &role.directory[..]),
            },
            Ask::List(list) => ("list", &list.path[..]),
            Ask::Sum(sum) => ("sum", &sum.path[..]),
            Ask::Read(read) => ("read", &read.path[..]),
            Ask::MakeDirectory(make) => ("mkdir", &make.path[..]),
            Ask::Rename(rename) => ("rename", &rename.from[..]),
            Ask::Remove(remove) => ("remove", &remove.path[..]),
            Ask::Collect(collect) => ("collect", &collect.path[..]),
            _ => return,
        };
        let mut work = lock(&self.0);
        work.requests += 1;
        if work.verb.is_none() {
            work.verb = Some(verb);
            work.path = path.to_vec();
        }
    }

    /// Something failed.
    pub fn failed(&self, failure: &Failure) {
        lock(&self.0).failure.get_or_insert_with(|| failure.clone());
    }

    /// A transfer has carried so much over its data connections, or a reading over the control connection.
    pub fn carried(&self, (sent, received): (u64, u64)) {
        let mut work = lock(&self.0);
        work.bytes_sent += sent;
        work.bytes_received += received;
    }

    /// What has been done so far.
    pub fn so_far(&self) -> SessionWork {
        lock(&self.0).clone()
    }
}
