//! What held a copy back is said at its end, from what both ends measured: one stage after the other is made slow.

use std::time::Duration;

use carrack_faults::fuse::{FaultFs, Features};
use carrack_faults::proxy::Proxy;

use crate::support::node::Node;
use crate::support::{Ran, Sandbox, tree};

const MIB: usize = 1 << 20;

#[track_caller]
fn held_back_by(ran: &Ran, stage: &str) {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let limit = &ran.summary()["limited_by"];
    assert_eq!(limit["stage"], stage, "{}", ran.stdout);
    assert!(limit["share"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0), "{limit}");
}

#[test]
fn held_back_by_the_rate_that_was_asked_for() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/big", tree::bytes(8 * MIB, 1));
    held_back_by(&sandbox.run(["--json", "--bwlimit=8MB", "tree", "there"]), "rate-limit");
    let said = sandbox.ok(["--bwlimit=8MB", "tree", "again"]).stderr;
    assert!(said.contains("limited by: --bwlimit ("), "{said}");
}

#[test]
fn held_back_by_a_slow_network() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/big", tree::bytes(24 * MIB, 1));
    let node = Node::start(&sandbox, "root", &[]);
    let proxy = Proxy::start(node.address.parse().unwrap());
    // The first message says how to reach the node for data: at the address that it was reached by.
    let address = format!("carrack://{}/{}", proxy.address(), node.fingerprint);
    proxy.rate(Some(8 << 20));
    held_back_by(&sandbox.run(["--json", "--streams=1", "tree", &address, &node.token()]), "network");
}

#[test]
fn held_back_by_a_slow_disk_at_either_side() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("backing/big", tree::bytes(8 * MIB, 1));
    std::fs::create_dir(sandbox.path("disk")).unwrap();
    let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("disk"), Features::default()).unwrap();
    disk.slow(Duration::from_millis(5));
    held_back_by(&sandbox.run(["--json", "disk/big", "there"]), "source-storage");
    // More than lies in the buffers between the two.
    held_back_by(&sandbox.run(["--json", "random:48M", "disk/back"]), "destination-storage");
}
