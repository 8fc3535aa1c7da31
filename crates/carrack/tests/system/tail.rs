//! The end of a copy does not wait for one slow stream.

use carrack_faults::proxy::Proxy;

use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::{Sandbox, same_tree, tree, wait_until};

const MIB: usize = 1 << 20;
const STREAMS: usize = 8;

/// One of eight data connections stops for good in the midst of the copy: nothing is relayed on it any more,
/// not even its end. The copy ends all the same, whole and verified, and not because somebody lost patience
/// with a silent connection.
#[test]
fn last_blocks_do_not_wait_for_a_stream_that_has_stopped() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/file", tree::bytes(96 * MIB, 1));
    for encrypt in ["tls", "none"] {
        let node = Node::start(&sandbox, &format!("root-{encrypt}"), &[]);
        let proxy = Proxy::start(node.address.parse().unwrap());
        proxy.rate(Some(16 << 20));
        let at = node.at("there").replace(&node.address, &proxy.address().to_string());
        let mut command = sandbox.carrack();
        let address = format!("--data-address={}", proxy.address().ip());
        command.args(["--json", &node.token(), &address, "--streams=8", &format!("--encrypt={encrypt}")]);
        let mut running = Running::start(command.args(["tree/", &at]));
        // Those that have carried more than one block: not the control connection.
        let busy = || {
            let connections = proxy.connections();
            let busy = |index: &usize| connections[*index].open && connections[*index].up > 2 * MIB as u64;
            (0..connections.len()).filter(busy).collect::<Vec<_>>()
        };
        wait_until("all streams carry blocks", || busy().len() == STREAMS || !running.is_running());
        let stopped = busy()[STREAMS / 2];
        proxy.stall_one(stopped, true);
        let carried = proxy.connections()[stopped].up;
        proxy.rate(None);
        wait_until("the copy ends", || !running.is_running());
        let ran = running.end();
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        same_tree(&sandbox.path("tree"), &sandbox.path(format!("root-{encrypt}/there")));
        let after = proxy.connections()[stopped];
        assert!(after.open && after.up == carried, "it has stopped, and is there: {after:?}");
        let (summary, faults) = (ran.summary(), &ran.summary()["faults"]);
        assert_eq!(summary["verify"], "wire");
        // Cut off for being slow, before anybody took it for lost, or its path for one that loses large packets.
        assert!(faults["stragglers"].as_u64() > Some(0), "{summary}");
        assert_eq!((&faults["streams_lost"], &faults["sessions_lost"]), (&0.into(), &0.into()), "{summary}");
        assert!(!ran.stdout.contains("black hole") && !ran.stdout.contains("went silent"), "{}", ran.stdout);
    }
}
