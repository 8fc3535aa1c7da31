//! A node in this process, for tests.

use std::path::Path;

use carrack_core::tuning::Tuning;
use carrack_engine::Context;
use carrack_engine::node::{Access, Measure, NodeConfig, NodeLog, NodeRoot, RevokedGrants};

/// At a free port, which anybody may use, and whose key is in a directory of its owner.
pub fn node_config(root: NodeRoot, own: &Path) -> NodeConfig {
    NodeConfig {
        root,
        listen: ([127, 0, 0, 1], 0).into(),
        listener: None,
        access: Access::Anonymous,
        read_only: false,
        allows_ownership: false,
        measure: Measure::Token,
        dial_to: Vec::new(),
        key_file: own.join("node.key"),
        stop: Context::default().stop,
        revoked: RevokedGrants::default(),
        host_grants: None,
        doors: Vec::new(),
        log: NodeLog::none(),
        tuning: Tuning::DEFAULT,
    }
}
