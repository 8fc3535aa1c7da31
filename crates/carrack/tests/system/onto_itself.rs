//! Copies onto or into themselves, whichever ways the two ends are reached by.

use crate::support::Sandbox;
use crate::support::node::Node;

#[test]
fn directory_is_not_copied_into_itself_through_a_node() {
    let sandbox = Sandbox::new();
    sandbox.write("root/d/file", "content");
    let node = Node::start(&sandbox, "root", &[]);
    let at = |path: &str| node.at(path);
    let token = node.token();
    let pairs = [
        ("root/d".to_owned(), at("d/below")),
        ("root/d/".to_owned(), at("d")),
        ("root/".to_owned(), at("d/new")),
        (at("d"), "root/d/below/more".to_owned()),
        (at(""), "root/d".to_owned()),
        (at("d"), at("d/below")),
    ];
    for (from, to) in pairs {
        sandbox.run([&from, &to, &token]).failed_with(2, &["nothing was copied"]);
    }
    assert_eq!(std::fs::read_dir(sandbox.path("root/d")).unwrap().count(), 1);
    sandbox.ok([&at("d"), "elsewhere", &token]);
    sandbox.ok(["root/d", &at("beside"), &token]);
    assert_eq!(std::fs::read(sandbox.path("root/beside/d/file")).unwrap(), b"content");
}
