//! Owners and what else gives rights, at endpoints that set them.

use std::fs;

use super::Other;
use crate::ownership;
use crate::support::node::Node;
use crate::support::{Ran, Sandbox};

/// Whether a copy of the scene has the owners and bits of its source; else it has none of them.
fn is_owned(sandbox: &Sandbox, top: &str) -> bool {
    match ownership::owned(&sandbox.path(top).join("d/sub/both")) {
        (1234, 2345, 0o6755) => true,
        (0, 0, 0o755) => false,
        other => panic!("{top}: {other:?}"),
    }
}

/// Tasks and copies set owners at an endpoint only where an admin has said so, where its node does, and by a token that
/// may.
#[test]
fn endpoint_sets_owners_only_where_an_admin_allows_it() {
    let Some(tree) = ownership::scene() else { return };
    let scene = super::Scene::new();
    let sandbox = &scene.sandbox;
    let free = Node::start(sandbox, "free", &["--allow-ownership"]);
    scene.add("free", &free.at(""), &[]);
    // Its node sets none, whatever is said of the endpoint.
    sandbox.ok(["endpoint", "edit", "two", "--ownership", "--users", "*"]);
    fs::create_dir_all(sandbox.path("here")).unwrap();
    for (name, root) in [("in", tree.path("in")), ("here", sandbox.path("here"))] {
        sandbox.ok(["endpoint", "add", name, root.to_str().unwrap(), "--users", "*"]);
    }
    let words = |to: &str| {
        let words = ["task", "submit", "--wait", "--timeout=60s", "-a", "@in:/", to];
        words.map(str::to_owned)
    };
    let submit = |to: &str| sandbox.ok(words(to));
    for (to, place) in [("free", "free"), ("two", "two"), ("here", "here")] {
        submit(&format!("@{to}:/first"));
        assert!(!is_owned(sandbox, &format!("{place}/first")), "{to}");
    }
    for name in ["free", "here"] {
        sandbox.ok(["endpoint", "edit", name, "--ownership", "--users", "*"]);
        let told = sandbox.ok(["endpoint", "show", name]).stdout;
        assert!(told.contains("owners, special bits and devices are set"), "{told}");
        submit(&format!("@{name}:/second"));
        assert!(is_owned(sandbox, &format!("{name}/second")), "{name}");
        assert_eq!(ownership::left_to_rsync(&tree.path("in"), &sandbox.path(name).join("second")), "");
    }
    // A copy, by a grant of its own.
    scene.ok(["-a", &tree.path("in/").display().to_string(), "@free:/copied/"]);
    assert!(is_owned(sandbox, "free/copied"));
    // A token is for what it names.
    let of = |user: &str, verbs: &str| -> (String, Ran) {
        let other: Other<'_> = scene.log_in(user, &["--verbs", verbs]);
        let to = format!("of-{user}");
        let typed = words(&format!("@free:/{to}"));
        let ran = other.run(&typed.each_ref().map(String::as_str));
        // So is a grant that it is given: the node looks at that alone.
        let from = tree.path("in/").display().to_string();
        other.ok(&["-a", &from, &format!("@free:/{to}-itself/")]);
        (format!("free/{to}"), ran)
    };
    for (user, verbs, expected) in
        [("ann", "read,write,tasks,view", false), ("bob", "read,write,tasks,view,ownership", true)]
    {
        let (to, ran) = of(user, verbs);
        assert!(ran.code == 0 && is_owned(sandbox, &to) == expected, "{verbs}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(is_owned(sandbox, &format!("{to}-itself")), expected, "{verbs}");
    }
    // Taken back, it ends with the next attempt.
    sandbox.ok(["endpoint", "edit", "free", "--no-ownership"]);
    submit("@free:/last");
    assert!(!is_owned(sandbox, "free/last"));
    // Behind ssh nothing of it is set, which is said; and elsewhere nobody has allowed it yet.
    let ssh = sandbox.run(["endpoint", "add", "far", "ssh://far/data", "--ownership"]);
    assert!(ssh.code != 0 && ssh.stderr.contains("an endpoint behind ssh sets no owners"), "{}", ssh.stderr);
    fs::create_dir(sandbox.path("elsewhere")).unwrap();
    sandbox.ok(["endpoint", "edit", "here", "--location", sandbox.path("elsewhere").to_str().unwrap()]);
    assert!(!sandbox.ok(["endpoint", "show", "here"]).stdout.contains("are set"));
    // Who is no admin allows it nobody.
    let eve = scene.log_in("eve", &[]);
    let refused = eve.run(&["endpoint", "add", "mine", "carrack://192.0.2.1/x", "--ownership"]);
    refused.failed_with(77, &["only an admin"]);
}
