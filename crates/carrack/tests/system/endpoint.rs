//! `@NAME:/path`: places of a service's endpoints as locations of the command line, between real nodes.

mod owners;
mod refused;
mod revoked;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Stdio;

use serde_json::Value;

use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::service::Service;
use crate::support::{Ran, Sandbox, b3sum, same_tree, tree};

/// Two nodes, and a service that has an endpoint at each: `one` at the directory `data`, `two` at the root.
struct Scene {
    sandbox: Sandbox,
    one: Node,
    two: Node,
    service: Service,
}

impl Scene {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(more: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("one/data")).unwrap();
        let (one, two) = (Node::start(&sandbox, "one", &[]), Node::start(&sandbox, "two", &["--dial-to=127.0.0.0/8"]));
        let service = Service::start(&sandbox, more);
        let scene = Self { sandbox, one, two, service };
        scene.add("one", &scene.one.at("data"), &[]);
        scene.add("two", &scene.two.at(""), &[]);
        scene
    }

    /// Adds an endpoint whose node has the token of all nodes of these tests.
    fn add(&self, name: &str, location: &str, more: &[&str]) {
        let token = self.one.token_file.display().to_string();
        let words = ["endpoint", "add", name, location, "--token-file", &token];
        self.sandbox.ok(words.iter().chain(more));
    }

    /// Runs a line that must succeed, and holds what it says against secrets.
    #[track_caller]
    fn ok<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Ran {
        let ran = self.sandbox.ok(words);
        without_secrets(&ran);
        ran
    }

    #[track_caller]
    fn fails<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>, code: i32, said: &[&str]) {
        let ran = self.sandbox.run(words);
        without_secrets(&ran);
        ran.failed_with(code, said);
    }

    /// The service's address on the network.
    fn url(&self) -> String {
        self.service
            .said
            .iter()
            .find_map(|line| line.strip_prefix("service https://"))
            .map(|url| format!("https://{url}"))
            .unwrap()
    }

    /// Has somebody else log in: a home of their own, with a token of the service of this kind.
    fn log_in(&self, user: &str, token: &[&str]) -> Other<'_> {
        self.sandbox.run(["service", "user", "add", user]);
        let words = ["service", "token", "create", "--user", user, "--label", "test"];
        let token = self.sandbox.ok(words.iter().chain(token)).stdout.trim().to_owned();
        let home = self.sandbox.path(format!("home-of-{user}"));
        fs::create_dir_all(&home).unwrap();
        let file = self.sandbox.write(format!("token-of-{user}"), &token);
        let mut command = self.sandbox.carrack();
        command.env("HOME", &home).args(["login", "--token", "--service", &self.url()]);
        let output = command.stdin(fs::File::open(file).unwrap()).output_in_time().unwrap();
        assert!(output.status.success(), "{output:?}");
        Other { scene: self, home, token }
    }
}

/// Neither a node's own token nor a grant may be said.
#[track_caller]
fn without_secrets(ran: &Ran) {
    for said in [&ran.stdout, &ran.stderr] {
        assert!(!said.contains(Node::TOKEN) && !said.contains("carrack1."), "a token was told: {said}");
    }
}

/// Somebody who has logged in over the network.
struct Other<'a> {
    scene: &'a Scene,
    home: std::path::PathBuf,
    token: String,
}

impl Other<'_> {
    fn command(&self) -> std::process::Command {
        let mut command = self.scene.sandbox.carrack();
        command.env("HOME", &self.home);
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        let ran = crate::support::ran(self.command().args(words).output_in_time().unwrap());
        without_secrets(&ran);
        ran
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> Ran {
        let ran = self.run(words);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        ran
    }

    /// The token's identifier.
    fn id(&self) -> &str {
        self.token.split('_').nth(1).unwrap()
    }
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn endpoint_is_a_place_for_every_file_verb() {
    let scene = Scene::new();
    scene.sandbox.write("one/data/sub/a", "12345");
    scene.sandbox.write("one/beside", "not below the endpoint");
    assert_eq!(scene.ok(["ls", "@one:/"]).stdout, "sub\n");
    assert_eq!(scene.ok(["ls", "-R", "@one:/"]).stdout, "sub\nsub/a\n");
    // The path is the one that was typed, not the node's.
    let stat = scene.ok(["stat", "@one:/sub/a"]).stdout;
    assert!(stat.contains("path: /sub/a\n") && stat.contains("size: 5 bytes"), "{stat}");
    let digest = b3sum(&scene.sandbox.path("one/data/sub/a"));
    assert_eq!(scene.ok(["sum", "@one:/sub"]).stdout, format!("{digest}  /sub/a\n"));
    scene.ok(["mkdir", "-p", "@one:/new/deep", "@two:/other"]);
    assert!(scene.sandbox.path("one/data/new/deep").is_dir() && scene.sandbox.path("two/other").is_dir());
    scene.sandbox.write("one/data/new/b", "old");
    scene.ok(["mv", "@one:/sub/a", "@one:/new/b"]);
    assert_eq!(fs::read(scene.sandbox.path("one/data/new/b")).unwrap(), b"12345");
    scene.fails(["mv", "@one:/new/b", "@two:/b"], 2, &["@one:/new/b and @two:/b are two"]);
    scene.ok(["rm", "-r", "@one:/new", "@two:/other"]);
    assert!(!scene.sandbox.path("one/data/new").exists() && !scene.sandbox.path("two/other").exists());
    scene.fails(["ls", "@one:/absent"], 11, &["/absent", "No such file"]);
    scene.fails(["rm", "-r", "@one:/"], 2, &["rm does not remove"]);
    scene.fails(["gc", "@one:/"], 2, &["@one:/", "endpoint"]);
}

#[test]
fn endpoint_is_an_end_of_a_copy_on_either_side_and_on_both() {
    let scene = Scene::new();
    tree::mixed(&scene.sandbox.path("one/data/run42"));
    scene.ok(["@one:/run42", "here"]);
    same_tree(&scene.sandbox.path("one/data/run42"), &scene.sandbox.path("here/run42"));
    scene.ok(["here/run42/", "@two:/back", "--verify", "disk"]);
    same_tree(&scene.sandbox.path("here/run42"), &scene.sandbox.path("two/back"));
    // From node to node: this host carries nothing.
    let third = scene.ok(["@one:/run42/", "@two:/third", "--json"]).summary();
    same_tree(&scene.sandbox.path("one/data/run42"), &scene.sandbox.path("two/third"));
    assert_eq!(third["link"]["kind"], "direct", "{third}");
    // A node that the user names is opened by the user's own token, beside an endpoint.
    let token = scene.two.token();
    scene.ok(["@one:/run42/", &scene.two.at("mixed"), &token]);
    same_tree(&scene.sandbox.path("one/data/run42"), &scene.sandbox.path("two/mixed"));
    let dry = scene.ok(["-n", "@one:/run42", "@two:/"]).stdout;
    assert!(!scene.sandbox.path("two/run42").exists(), "{dry}");
    scene.fails(["@one:/run42", "@two:/third", "here2"], 2, &["@one:/run42 and @two:/third are two places"]);
    let token = format!("--source-token-file={}", scene.one.token_file.display());
    scene.fails(["@one:/run42", "here2", &token], 2, &["@one:/run42 is not on one"]);
}

#[test]
fn endpoint_of_the_services_host_is_a_place_for_everybody_who_may_use_it() {
    let scene = Scene::new();
    scene.sandbox.write("archive/2026/a", "12345");
    scene.sandbox.write("secret", "no");
    std::os::unix::fs::symlink("../secret", scene.sandbox.path("archive/out")).unwrap();
    let root = scene.sandbox.path("archive").display().to_string();
    scene.sandbox.ok(["endpoint", "add", "archive", &root, "--users", "ada"]);
    let ada = scene.log_in("ada", &[]);
    assert_eq!(ada.ok(&["ls", "@archive:/2026"]).stdout, "a\n");
    ada.ok(&["copy", "@archive:/2026/a", "ada-has-it"]);
    assert_eq!(fs::read(scene.sandbox.path("ada-has-it")).unwrap(), b"12345");
    scene.ok(["ada-has-it", "@archive:/2026/b"]);
    assert_eq!(fs::read(scene.sandbox.path("archive/2026/b")).unwrap(), b"12345");
    // A link that an owner has put there leads nowhere else.
    let out = ada.run(&["copy", "@archive:/out", "stolen"]);
    assert!(out.code != 0 && !scene.sandbox.path("stolen").exists(), "{}{}", out.stdout, out.stderr);
    scene.sandbox.ok(["endpoint", "edit", "archive", "--read-only"]);
    let refused = ada.run(&["rm", "@archive:/2026/a"]);
    refused.failed_with(77, &["read"]);
    assert!(scene.sandbox.path("archive/2026/a").exists());
}

#[test]
fn endpoint_and_files_may_have_any_names() {
    let scene = Scene::new();
    let name = OsString::from_vec(b"50% #1?\xff x".to_vec());
    let base = scene.sandbox.path("two").join(&name);
    fs::create_dir_all(&base).unwrap();
    fs::write(base.join(OsStr::from_bytes(b"%41 \xfe")), "node").unwrap();
    scene.add("odd", &scene.two.at("50%25%20%231%3F%FF%20x"), &[]);
    let local = scene.sandbox.path("local").join(&name);
    fs::create_dir_all(&local).unwrap();
    fs::write(local.join("a%2e"), "here").unwrap();
    let words = [OsStr::new("endpoint"), OsStr::new("add"), OsStr::new("odd-here"), local.as_os_str()];
    scene.sandbox.ok(words);
    assert_eq!(scene.ok(["ls", "@odd:/"]).stdout, "%41 \\xfe\n");
    scene.ok([OsStr::new("@odd:/"), OsStr::new("got/")]);
    assert_eq!(fs::read(scene.sandbox.path("got").join(OsStr::from_bytes(b"%41 \xfe"))).unwrap(), b"node");
    let named = OsStr::from_bytes(b"@odd:/%41 \xfe");
    scene.ok([named, OsStr::new("one-file")]);
    assert_eq!(fs::read(scene.sandbox.path("one-file")).unwrap(), b"node");
    scene.ok([OsStr::new("one-file"), OsStr::from_bytes(b"@odd-here:/100% \xff")]);
    assert_eq!(fs::read(local.join(OsStr::from_bytes(b"100% \xff"))).unwrap(), b"node");
    // A task, too, means the same by the same names.
    let words: [&OsStr; 7] =
        ["task", "submit", "--wait", "--timeout=120s", "@odd:/", "@odd-here:/by-task/", "--quiet"].map(OsStr::new);
    scene.ok(&words[..6]);
    let by_task = local.join("by-task").join(OsStr::from_bytes(b"%41 \xfe"));
    assert_eq!(fs::read(by_task).unwrap(), b"node");
    scene.ok(["rm", "@odd-here:/a%2e"]);
    assert!(!local.join("a%2e").exists());
}

#[test]
fn endpoint_behind_ssh_is_reached_by_the_users_own_ssh() {
    let scene = Scene::new();
    let sshd = crate::support::sshd::Sshd::start(&scene.sandbox);
    scene.sandbox.write("far/a", "12345");
    let root = scene.sandbox.path("far").display().to_string();
    scene.sandbox.ok(["endpoint", "add", "far", &format!("ssh://far{root}")]);
    assert_eq!(scene.ok(["ls", "@far:/", &sshd.rsh]).stdout, "a\n");
    scene.ok(["@far:/a", "near", &sshd.rsh]);
    assert_eq!(fs::read(scene.sandbox.path("near")).unwrap(), b"12345");
}

#[test]
fn endpoint_copy_that_was_killed_goes_on_where_it_stood_both_ways() {
    let scene = Scene::new();
    let content = tree::bytes(32 << 20, 9);
    scene.sandbox.write("one/data/large", &content);
    for (source, destination, copy) in [("@one:/large", "large", "large"), ("large", "@two:/large", "two/large")] {
        let mut command = scene.sandbox.carrack();
        command.args([source, destination, "--bwlimit=8MB", "--json", "--stats=100ms"]);
        let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(running.stdout.take().unwrap()).lines();
        let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        // What landed within the last second or so may be lost.
        let most = events.find(|event| event["bytes_done"].as_u64().is_some_and(|bytes| bytes > 20 << 20));
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(most.is_some(), "it has ended before");
        let summary = scene.ok([source, destination, "--json"]).summary();
        assert!(summary["bytes_resumed"].as_u64().unwrap() > 4 << 20, "{summary}");
        assert!(fs::read(scene.sandbox.path(copy)).unwrap() == content);
    }
}

#[test]
fn endpoint_copy_keeps_holes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let scene = Scene::new();
    let file = fs::File::create(scene.sandbox.path("one/data/sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(b"end", (64 << 20) - 3).unwrap();
    drop(file);
    scene.ok(["@one:/sparse", "@two:/sparse"]);
    scene.ok(["@two:/sparse", "sparse"]);
    for copy in ["two/sparse", "sparse"] {
        let facts = fs::metadata(scene.sandbox.path(copy)).unwrap();
        assert!(facts.len() == 64 << 20 && facts.blocks() * 512 < 16 << 20, "{copy}: {} blocks", facts.blocks());
    }
    let du = objects(&scene.ok(["du", "--json", "@two:/sparse"]).stdout);
    assert_eq!(du[0]["size"], 64 << 20);
    assert!(du[0]["allocated"].as_u64().unwrap() < 16 << 20, "{du:?}");
}

#[test]
fn endpoints_are_compared_and_repaired() {
    let scene = Scene::new();
    for (name, content) in [("a", "1"), ("d/b", "22")] {
        scene.sandbox.write(format!("one/data/t/{name}"), content);
    }
    scene.ok(["copy", "@one:/t", "@two:/"]);
    assert_eq!(scene.ok(["check", "-cog", "@one:/t", "@two:/t"]).stdout, "");
    scene.sandbox.write("two/t/d/b", "23");
    let ran = scene.sandbox.run(["check", "-c", "@one:/t", "@two:/t"]);
    assert_eq!((ran.code, &ran.stdout[..]), (27, "* d/b (content)\n"), "{}", ran.stderr);
    // Names and lists of others are not shown there.
    scene.fails(["check", "-A", "@one:/t", "@two:/t"], 11, &["/t", "access control lists", "not shown"]);
    scene.fails(["check", "@one:/t", "@two:/absent"], 11, &["destination", "/absent"]);
    scene.ok(["check", "-c", "--repair", "@one:/t", "@two:/t"]);
    assert_eq!(fs::read(scene.sandbox.path("two/t/d/b")).unwrap(), b"22");
}
