//! The main job, on every pair of kinds of location that needs no ssh.

use crate::support::node::Node;
use crate::support::{Sandbox, same_tree, tree};

#[test]
fn mixed_tree_travels_to_a_node_and_back_and_stays_the_same() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let node = Node::start(&sandbox, "root", &[]);
    for encrypt in ["tls", "none"] {
        let there = format!("there-{encrypt}/");
        sandbox.ok(["tree", &node.at(&there), &node.token(), "--encrypt", encrypt]);
        same_tree(&sandbox.path("tree"), &sandbox.path("root").join(&there).join("tree"));
        let back = format!("back-{encrypt}");
        sandbox.ok([&node.at(&format!("{there}tree/")), &back, &node.token(), "--encrypt", encrypt]);
        same_tree(&sandbox.path("tree"), &sandbox.path(&back));
    }
    sandbox.ok(["tree/", "local"]);
    same_tree(&sandbox.path("tree"), &sandbox.path("local"));
    assert_eq!(sandbox.parts("."), Vec::<std::path::PathBuf>::new());
}
