//! A node behind a proxy, which counts what is copied there.

use carrack_faults::proxy::Proxy;

use super::node::Node;
use super::{Ran, Sandbox};

pub struct CountedNode {
    pub sandbox: Sandbox,
    pub node: Node,
    pub proxy: Proxy,
    flags: &'static [&'static str],
}

impl CountedNode {
    /// Serves `root` of a sandbox in memory. All copies to it have these flags.
    pub fn start(flags: &'static [&'static str]) -> Self {
        let sandbox = Sandbox::in_memory();
        let node = Node::start(&sandbox, "root", &[]);
        let proxy = Proxy::start(node.address.parse().unwrap());
        Self { sandbox, node, proxy, flags }
    }

    /// A path at the node, by way of the proxy.
    pub fn there(&self, path: &str) -> String {
        self.node.at(path).replace(&self.node.address, &self.proxy.address().to_string())
    }

    /// What copies `tree/` to the node, as `to`.
    pub fn words(&self, more: &[&str]) -> Vec<String> {
        let (to, token) = (self.there("to"), self.node.token());
        let own = ["copy", "--json"].iter().chain(self.flags).copied().chain(["tree/", &to[..], &token]);
        own.chain(more.iter().copied()).map(str::to_owned).collect()
    }

    /// Copies it, and tells how many bytes went there.
    pub fn copy(&self, more: &[&str]) -> (Ran, u64) {
        let before = self.proxy.carried().up;
        let ran = self.sandbox.ok(self.words(more));
        (ran, self.proxy.carried().up - before)
    }
}
