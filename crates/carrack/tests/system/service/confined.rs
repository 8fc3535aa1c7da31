//! Endpoints keep their users below their roots, and tokens for a path theirs below that path: at this host, at a node
//! and through a real sshd, whatever links there are and whoever exchanges them meanwhile.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use carrack_faults::race::Racer;
use serde_json::json;

use super::add_node;
use super::files::{ENDPOINTS, Scene};
use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::service::{Service, object};
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, race_time, ran, tree};

/// The state that a task ends in.
fn ended(sandbox: &Sandbox, words: &[&str]) -> String {
    let submitted = sandbox.ok(["task", "submit"].iter().chain(words)).stdout;
    sandbox.run(["task", "wait", submitted.trim(), "--timeout=60s"]);
    object(sandbox, &["task", "show", submitted.trim()])["state"].as_str().unwrap().to_owned()
}

#[test]
fn task_leaves_no_endpoint_by_a_link_that_it_has_brought_there() {
    let scene = Scene::new();
    let sandbox = &scene.sandbox;
    sandbox.write("outside/secret", "canary");
    sandbox.write("root/plain", "plain");
    // What a user would bring: a link by a path, and one to where this host has its users.
    let links = sandbox.path("from/links");
    fs::create_dir_all(&links).unwrap();
    symlink(sandbox.path("outside"), links.join("whole")).unwrap();
    symlink("../../outside", links.join("climbs")).unwrap();
    sandbox.ok(["endpoint", "add", "from", sandbox.path("from").to_str().unwrap()]);
    for endpoint in ENDPOINTS {
        let at = |path: &str| format!("@{endpoint}:/{path}");
        assert_eq!(ended(sandbox, &["@from:/links", &at("")]), "SUCCEEDED", "{endpoint}");
        assert!(sandbox.path("root/links/whole").is_symlink(), "{endpoint}");
        for link in ["links/whole", "links/climbs"] {
            let (secret, put) = (at(&format!("{link}/secret")), at(&format!("{link}/put")));
            assert_ne!(ended(sandbox, &[&secret, &at("got")]), "SUCCEEDED", "{endpoint}");
            assert_ne!(ended(sandbox, &[&at("plain"), &put]), "SUCCEEDED", "{endpoint}");
            assert_ne!(ended(sandbox, &["--kind=delete", &secret]), "SUCCEEDED", "{endpoint}");
        }
        assert!(!sandbox.path("outside/put").exists() && !sandbox.path("root/got").exists(), "{endpoint}");
        assert_eq!(fs::read(sandbox.path("outside/secret")).unwrap(), b"canary");
        fs::remove_dir_all(sandbox.path("root/links")).unwrap();
    }
}

#[test]
fn directory_of_an_endpoint_that_is_exchanged_for_a_link_leads_nobody_out() {
    let scene = Scene::new();
    let sandbox = &scene.sandbox;
    tree::many(&sandbox.path("outside"), 2, 20);
    sandbox.write("outside/SECRET", "canary");
    let before = tree::walk(&sandbox.path("outside"));
    for endpoint in ENDPOINTS {
        tree::many(&sandbox.path("root/sub"), 2, 20);
        sandbox.write(format!("root/run-{endpoint}/NEW"), "new");
        symlink(sandbox.path("outside"), sandbox.path("root/bait")).unwrap();
        let racer = Racer::start(&sandbox.path("root/sub"), &sandbox.path("root/bait"));
        let end = Instant::now() + race_time();
        let post = |what: &str, body: serde_json::Value| {
            // Each may fail: what it was to change may be a link just now.
            scene.post(&format!("/endpoints/{endpoint}/files/{what}"), &body)
        };
        let mut round = 0;
        while Instant::now() < end || round < 20 {
            let (made, moved) = (format!("/sub/made{round}"), format!("/sub/moved{round}"));
            let _ = post("mkdir", json!({ "path": made }));
            let _ = post("rename", json!({ "from": made, "to": moved }));
            let read = post("sum", json!({ "path": "/sub/SECRET" }));
            assert!(read.as_ref().map_or(true, |told| told["digest"].is_null()), "{endpoint}: {read:?}");
            round += 1;
        }
        for _ in 0..2 {
            ended(sandbox, &[&format!("@{endpoint}:/sub/"), &format!("@here:/copy-{endpoint}/")]);
            ended(sandbox, &[&format!("@here:/run-{endpoint}/"), &format!("@{endpoint}:/sub/")]);
        }
        ended(sandbox, &["--kind=delete", &format!("@{endpoint}:/sub/d000")]);
        assert!(racer.swaps() > 100, "{endpoint}: {} exchanges", racer.swaps());
        drop(racer);
        assert_eq!(tree::walk(&sandbox.path("outside")), before, "{endpoint} changed what is outside");
        let copied = tree::walk(&sandbox.path("root"));
        let came = copied.iter().find(|path| path.ends_with("SECRET"));
        assert!(came.is_none(), "{endpoint} has read what is outside: {came:?}");
        for name in ["root/sub", "root/bait"] {
            let path = sandbox.path(name);
            let gone = if path.is_symlink() { fs::remove_file(&path) } else { fs::remove_dir_all(&path) };
            gone.unwrap();
        }
    }
}

#[test]
fn token_for_a_path_reaches_nothing_else_by_a_link_in_a_task() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "node", &[]);
    let sshd = Sshd::start(&sandbox);
    let service = Service::with_ssh(&sandbox, &sshd);
    add_node(&sandbox, "node", &node);
    let root = |name: &str| {
        fs::create_dir_all(sandbox.path(name)).unwrap();
        sandbox.path(name).to_str().unwrap().to_owned()
    };
    sandbox.ok(["endpoint", "add", "here", &root("here")]);
    sandbox.ok(["endpoint", "add", "behind", &format!("ssh://far{}", root("behind"))]);
    sandbox.ok(["service", "user", "add", "ada"]);
    let url = format!("https://{}", service.told("service https://"));
    for name in ["here", "node", "behind"] {
        sandbox.ok(["endpoint", "edit", name, "--users", "ada"]);
        let root = sandbox.path(name);
        sandbox.write(root.join("other/secret"), "canary");
        sandbox.write(root.join("other/kept"), "kept");
        sandbox.write(root.join("sub/file"), "open");
        symlink("../other", root.join("sub/link")).unwrap();
        let create = ["service", "token", "create", "--user", "ada", "--label", "test", "--verbs"];
        let scope = ["tasks,read,write,delete,view", "--endpoint", name, "--path", "/sub"];
        let token = sandbox.write("ada.token", sandbox.ok(create.iter().chain(&scope)).stdout.trim());
        let ada = |words: &[&str]| {
            let mut command = sandbox.carrack();
            command.env("HOME", sandbox.path(format!("ada-{name}"))).args(words).args(["--service", &url]);
            ran(command.stdin(fs::File::open(&token).unwrap()).output_in_time().unwrap())
        };
        assert_eq!(ada(&["login", "--token"]).code, 0);
        let place = |path: &str| format!("@{name}:/sub/{path}");
        let state = |words: &[&str]| {
            let submitted = ada(words);
            assert_eq!(submitted.code, 0, "{words:?}: {}", submitted.stderr);
            sandbox.run(["task", "wait", submitted.stdout.trim(), "--timeout=120s"]);
            object(&sandbox, &["task", "show", submitted.stdout.trim()])["state"].as_str().unwrap().to_owned()
        };
        assert_eq!(state(&["task", "submit", &place("file"), &place("copy")]), "SUCCEEDED", "{name}");
        for (from, to) in [("link/secret", "got"), ("file", "link/put"), ("link/", "all/")] {
            assert_ne!(state(&["task", "submit", &place(from), &place(to)]), "SUCCEEDED", "{name} {from} {to}");
        }
        assert_ne!(state(&["task", "submit", "--kind=delete", &place("link/kept")]), "SUCCEEDED", "{name}");
        // A task that follows links follows those below the path.
        fs::create_dir_all(root.join("sub/d")).unwrap();
        for (link, leads_to) in [("in", "../file"), ("up", "../../other/secret"), ("out", "../../other")] {
            symlink(leads_to, root.join("sub/d").join(link)).unwrap();
        }
        assert_eq!(state(&["task", "submit", "-L", &place("d/"), &place("followed")]), "PARTIAL", "{name}");
        assert_eq!(fs::read(root.join("sub/followed/in")).unwrap(), b"open", "{name}");
        assert_eq!(fs::read_dir(root.join("sub/followed")).unwrap().count(), 1, "{name}");
        assert_eq!(fs::read(root.join("other/kept")).unwrap(), b"kept");
        assert!(!root.join("other/put").exists() && !root.join("sub/got").exists() && !root.join("sub/all").exists());
    }
}
