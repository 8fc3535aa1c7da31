//! Connections, nodes and paths that are lost while a copy runs, and come back: nobody has to do
//! anything, and nothing is lost.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use carrack_core::transfer::marker::Left;
use carrack_faults::fuse::{Call, FaultFs, Features};
use carrack_faults::proxy::{Flip, Proxy, Way};
use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Sandbox, same_tree, tool, tree, wait_until};

/// Slow enough to be met in its midst.
const RATE: &str = "--bwlimit=8MB";
const LARGE_BYTES: usize = 24 << 20;
/// In the name of one small file.
const SMALL: &str = "f000014";

/// What a client's first words name in its data connections, with TLS and in the clear.
const DATA_WORDS: [&[u8]; 2] = [b"carrack-data/1", b"CRK1"];

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Control,
    Data,
}

/// The numbers of a relay's connections that are open and of a kind.
fn open(proxy: &Proxy, kind: Kind) -> Vec<usize> {
    let of_kind = |index: &usize| {
        let first = proxy.first_words(*index);
        let names = |word: &&[u8]| first.windows(word.len()).any(|window| window == *word);
        !first.is_empty() && (kind == Kind::Data) == DATA_WORDS.iter().any(names)
    };
    let connections = proxy.connections();
    (0..connections.len()).filter(|&index| connections[index].open).filter(of_kind).collect()
}

/// Resets a relay's connections of a kind: all, or the one made first. How many; they are gone then.
fn lose(proxy: &Proxy, kind: Kind, all: bool) -> usize {
    let chosen = open(proxy, kind).into_iter().take(if all { usize::MAX } else { 1 });
    let lost: Vec<usize> = chosen.filter(|&index| proxy.reset(index)).collect();
    wait_until("they are gone", || lost.iter().all(|&index| !proxy.connections()[index].open));
    lost.len()
}

/// Data connections are made to the host that the command reached and the port that the node names: this one, where no
/// other address is allowed.
fn by(proxy: &Proxy) -> String {
    format!("--data-address={}", proxy.address().ip())
}

/// Bytes that a relay has passed on.
fn carried(proxy: &Proxy) -> u64 {
    let carried = proxy.carried();
    carried.up + carried.down
}

/// A tree, a node, and a relay before it.
struct Scene {
    // In the order in which they have to go.
    proxy: Proxy,
    node: Node,
    sandbox: Sandbox,
}

impl Scene {
    fn new() -> Self {
        Self::with(Sandbox::in_memory())
    }

    /// The node's directory is `root`; something may be mounted there already.
    fn with(sandbox: Sandbox) -> Self {
        tree::many(&sandbox.path("tree"), 40, 50_000);
        sandbox.write("tree/large", tree::bytes(LARGE_BYTES, 7));
        let node = Node::start(&sandbox, "root", &[]);
        let proxy = Proxy::start(node.address.parse().unwrap());
        Self { proxy, node, sandbox }
    }

    /// A place at the node, by way of the relay.
    fn at(&self, path: &str) -> String {
        format!("carrack://{}/{path}{}", self.proxy.address(), self.node.fingerprint)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_by(&self.proxy, &[&[&*self.node.token()], arguments].concat())
    }

    /// A command whose data goes through this relay.
    fn command_by(&self, proxy: &Proxy, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.carrack();
        command.args(["--json", &by(proxy), "--log-file=log", "--streams=4"]);
        command.args(arguments);
        command
    }

    /// Starts a copy to the node.
    fn start(&self, flags: &[&str]) -> Running {
        Running::start(self.command(&[RATE]).args(flags).args(["tree", &self.at("")]))
    }

    /// Starts a copy to the node and returns in its midst.
    fn in_its_midst(&self, flags: &[&str]) -> Running {
        let running = self.start(flags);
        self.wait_for_midst();
        running
    }

    fn wait_for_midst(&self) {
        wait_until("the copy is in its midst", || carried(&self.proxy) > 4 << 20);
    }

    fn log(&self) -> String {
        fs::read_to_string(self.sandbox.path("log")).unwrap_or_default()
    }

    fn wait_for_log(&self, words: &str) {
        wait_until(words, || self.log().contains(words));
    }

    /// The copy has gone well, says so, and has left nothing else; its report.
    #[track_caller]
    fn done(&self, running: Running) -> Value {
        let summary = self.copied(running);
        assert_eq!(self.sandbox.parts("root"), Vec::<PathBuf>::new());
        summary
    }

    /// The copy has gone well, and says so; its report.
    #[track_caller]
    fn copied(&self, running: Running) -> Value {
        let ran = running.end();
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        for path in tree::walk(&self.sandbox.path("tree")).into_iter().filter(|path| path.is_file()) {
            let copy = self.sandbox.path("root").join(path.strip_prefix(self.sandbox.path("")).unwrap());
            assert!(fs::read(&path).unwrap() == fs::read(&copy).unwrap(), "{} is another", copy.display());
        }
        let summary = ran.summary();
        assert_eq!((summary["files"].as_u64(), summary["files_failed"].as_u64()), (Some(41), Some(0)));
        assert_eq!(summary["durable"], true);
        summary
    }
}

fn fault(summary: &Value, name: &str) -> u64 {
    summary["faults"][name].as_u64().unwrap_or_else(|| panic!("{name}: {summary}"))
}

#[test]
fn lost_stream_is_made_again() {
    let scene = Scene::new();
    let running = scene.in_its_midst(&[]);
    assert_eq!(lose(&scene.proxy, Kind::Data, false), 1);
    wait_until("there are four again", || open(&scene.proxy, Kind::Data).len() == 4);
    let summary = scene.done(running);
    assert_eq!(fault(&summary, "sessions_lost"), 0);
    assert!(fault(&summary, "streams_lost") >= 1);
}

#[test]
fn streams_that_are_lost_again_and_again_cost_time_only() {
    let scene = Scene::new();
    // A block is through before the next loss, though not on every stream.
    let mut running = scene.in_its_midst(&["--block=64K"]);
    let mut rounds = 0;
    while running.is_running() && rounds < 20 {
        let before = carried(&scene.proxy);
        rounds += u32::from(lose(&scene.proxy, Kind::Data, true) > 0);
        wait_until("something passes again", || !running.is_running() || carried(&scene.proxy) > before + (1 << 20));
    }
    assert!(rounds >= 3, "the copy was too quick to be disturbed");
    let summary = scene.done(running);
    assert_eq!(fault(&summary, "sessions_lost"), 0);
    assert!(fault(&summary, "streams_lost") >= 3);
}

#[test]
fn lost_control_connection_is_a_new_session() {
    let scene = Scene::new();
    let running = scene.in_its_midst(&["--manifest=sums"]);
    assert_eq!(lose(&scene.proxy, Kind::Control, true), 1);
    let summary = scene.done(running);
    assert_eq!(fault(&summary, "sessions_lost"), 1);
    assert!(scene.log().contains("trying again in"), "{}", scene.log());
    // Every file is in the manifest, once.
    let manifest = fs::read_to_string(scene.sandbox.path("sums")).unwrap();
    assert_eq!(manifest.lines().count(), 41, "{manifest}");
    tool(Command::new("b3sum").args(["--check", "--quiet", "../sums"]).current_dir(scene.sandbox.path("root")));
}

/// Nobody knows how many items a session has deleted whose connection was lost: a run deletes no more than it may.
#[test]
fn sessions_of_one_run_delete_no_more_than_they_may_together() {
    let scene = Scene::new();
    let only = |number: usize| format!("root/tree/only-{number}");
    (0..20).for_each(|number| drop(scene.sandbox.write(only(number), "x")));
    let surplus = || (0..20).filter(|number| scene.sandbox.path(only(*number)).exists()).count();
    let mut command = scene.sandbox.carrack();
    command.args(["sync", "--json", "--delete-before", "--max-delete=2,partial", RATE, "tree/", &scene.at("tree")]);
    let running = Running::start(command.args([&by(&scene.proxy), &scene.node.token()]));
    wait_until("two are deleted", || surplus() == 18);
    scene.wait_for_midst();
    assert_eq!(lose(&scene.proxy, Kind::Control, true), 1);
    let ran = running.end();
    ran.failed_with(25, &[]);
    assert!(ran.stdout.contains("nobody knows how many items had been deleted"), "{}", ran.stdout);
    assert_eq!(surplus(), 18);
}

/// Storage answers the last call for a small file of the first session when the second session has written the same
/// file under its hidden name. What the first session does then must not touch that.
#[test]
fn sessions_of_one_run_never_share_a_part_file() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    let sandbox = Sandbox::in_memory();
    let [backing, root] = ["backing", "root"].map(|name| sandbox.path(name));
    [&backing, &root].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    let storage = FaultFs::mount(&backing, &root, Features::default()).unwrap();
    let scene = Scene::with(sandbox);
    // Released before the node is waited for.
    let storage = storage;
    let small = || scene.sandbox.parts("backing").iter().filter(|path| path.to_string_lossy().contains(SMALL)).count();
    let markers = || scene.sandbox.markers("root");

    storage.hold(SMALL, Call::Flush);
    let running = Running::start(scene.command(&["--bwlimit=4MB", "--block=256K"]).args(["tree", &scene.at("")]));
    wait_until("a thread of the first session hangs", || storage.held() == 1);
    // So that the first session leaves its marker.
    let has_claims = || scene.sandbox.marked("root").is_some_and(|found| found.parts.values().any(Left::has_claims));
    wait_until("blocks are claimed", has_claims);
    assert_eq!((markers().len(), lose(&scene.proxy, Kind::Control, true)), (1, 1));
    wait_until("the second session has got as far", || storage.held() == 2);
    let before = small();
    storage.let_one_go();
    wait_until("the first session has removed what it wrote", || small() < before);
    let is_free = |path: &PathBuf| carrack_sys::file::try_lock(&fs::File::open(path).unwrap()).unwrap();
    wait_until("the first session has ended", || markers().len() == 1 || markers().iter().any(is_free));
    storage.release();

    let summary = scene.done(running);
    assert_eq!(fault(&summary, "sessions_lost"), 1);
    assert_eq!(markers(), Vec::<PathBuf>::new());
}

#[test]
fn copy_from_a_node_outlives_its_control_connection() {
    let scene = Scene::new();
    scene.sandbox.ok(["tree", "root/"]);
    let running = Running::start(scene.command(&[RATE]).args([&scene.at("tree"), "back"]));
    scene.wait_for_midst();
    assert_eq!(lose(&scene.proxy, Kind::Control, true), 1);
    let ran = running.end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&scene.sandbox.path("tree"), &scene.sandbox.path("back/tree"));
    assert_eq!(fault(&ran.summary(), "sessions_lost"), 1);
}

#[test]
fn node_that_was_killed_and_started_again_goes_on() {
    let mut scene = Scene::new();
    let running = scene.in_its_midst(&[]);
    scene.node.kill();
    scene.wait_for_log("(attempt 2 in a row)");
    scene.node.restart(&scene.sandbox);
    let summary = scene.copied(running);
    assert!(fault(&summary, "sessions_lost") >= 2);
}

#[test]
fn node_that_hangs_is_left_and_found_again() {
    let scene = Scene::new();
    let running = scene.in_its_midst(&["--timeout=10"]);
    signal(scene.node.child.id(), "STOP");
    scene.wait_for_log("nothing was heard for 10 s");
    signal(scene.node.child.id(), "CONT");
    let summary = scene.done(running);
    assert!(fault(&summary, "sessions_lost") >= 1);
}

#[test]
fn node_that_refuses_at_first_is_tried_again() {
    let scene = Scene::new();
    scene.proxy.refuse(1.0);
    let running = scene.start(&[]);
    wait_until("it was tried twice", || scene.proxy.made().refused >= 2);
    scene.proxy.refuse(0.0);
    scene.done(running);
}

#[test]
fn node_that_never_answers_is_given_up_before_long() {
    let scene = Scene::new();
    scene.proxy.refuse(1.0);
    let ran = scene.start(&[]).end();
    ran.failed_with(10, &["given up after 5 attempts in a row"]);
    assert_eq!(scene.proxy.made().refused, 5);
}

#[test]
fn retries_of_none_make_the_first_loss_the_last() {
    let scene = Scene::new();
    let running = scene.in_its_midst(&["--retries=0"]);
    lose(&scene.proxy, Kind::Control, true);
    let ran = running.end();
    ran.failed_with(10, &["the control connection was"]);
    assert!(!scene.log().contains("trying again"), "{}", scene.log());
}

#[test]
fn altered_bytes_are_sent_again() {
    for (encrypt, digest) in [("tls", "blake3"), ("none", "blake3"), ("tls", "xxh128"), ("none", "xxh128")] {
        let scene = Scene::new();
        // Far enough in that the control connection never comes to it.
        scene.proxy.flip(Way::Up, Flip::Every(1 << 20), 5);
        let running = scene.start(&["--encrypt", encrypt, "--digest", digest]);
        let summary = scene.done(running);
        assert_eq!(scene.proxy.made().flips, 5);
        assert_eq!(fault(&summary, "sessions_lost"), 0);
        let (altered, blocks) = (fault(&summary, "streams_altered"), fault(&summary, "digest_mismatches"));
        assert!(altered + blocks > 0, "{summary}");
        assert!(encrypt == "none" || altered > 0, "{summary}");
    }
}

#[test]
fn deadline_ends_what_hangs_at_any_point() {
    let scene = Scene::new();
    // In the midst of a copy.
    let running = scene.in_its_midst(&["--deadline=4s"]);
    scene.proxy.stall(true);
    running.end().failed_with(30, &["--deadline is over", "run the same command again"]);
    scene.proxy.stall(false);
    // Between two attempts.
    scene.proxy.refuse(1.0);
    let ran = scene.start(&["--deadline=500ms"]).end();
    ran.failed_with(30, &["--deadline is over", "the last attempt failed"]);
    // While a connection is made with somebody who takes it and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = format!("carrack://{}/", silent.local_addr().unwrap());
    let ran = scene.sandbox.run(["--deadline=500ms", &scene.node.token(), "tree", &there]);
    ran.failed_with(30, &["--deadline is over"]);
}

#[test]
fn signal_ends_the_pause_between_two_attempts() {
    for (name, code) in [("INT", 20), ("TERM", 75)] {
        let mut scene = Scene::new();
        let running = scene.in_its_midst(&[]);
        scene.node.kill();
        // By then pauses are of several seconds.
        scene.wait_for_log("(attempt 5 in a row)");
        signal(running.id(), name);
        let ran = running.end();
        assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
        assert!(!scene.log().contains("attempt 7"), "{}", scene.log());
    }
}

#[test]
fn nodes_that_copy_between_them_may_each_be_lost() {
    for lost in ["source", "destination"] {
        let scene = Scene::new();
        let other = Node::start(&scene.sandbox, "other", &[]);
        let before_other = Proxy::start(other.address.parse().unwrap());
        scene.sandbox.ok(["tree", "root/"]);
        let there = format!("carrack://{}/{}", before_other.address(), other.fingerprint);
        let mut command = scene.command_by(&before_other, &[RATE, &scene.node.token_as("source")]);
        let tokens = other.token_as("destination");
        let running = Running::start(command.args([&tokens, &scene.at("tree"), &there]));
        wait_until("the copy is in its midst", || carried(&before_other) > 4 << 20);
        let proxy = if lost == "source" { &scene.proxy } else { &before_other };
        assert_eq!(lose(proxy, Kind::Control, true), 1);
        let ran = running.end();
        assert_eq!(ran.code, 0, "{lost}: {}{}", ran.stdout, ran.stderr);
        same_tree(&scene.sandbox.path("tree"), &scene.sandbox.path("other/tree"));
        assert_eq!(fault(&ran.summary(), "sessions_lost"), 1, "{lost}");
    }
}

#[test]
fn pipes_are_not_tried_again() {
    let scene = Scene::new();
    let mut command = scene.command(&[RATE, "-", &scene.at("piped")]);
    command.stdin(fs::File::open(scene.sandbox.path("tree/large")).unwrap());
    let running = Running::start(&mut command);
    scene.wait_for_midst();
    lose(&scene.proxy, Kind::Control, true);
    running.end().failed_with(10, &["standard input cannot be read twice"]);
    assert!(!scene.sandbox.path("root/piped").exists());

    scene.sandbox.ok(["tree/large", "root/"]);
    let before = carried(&scene.proxy);
    let mut command = scene.sandbox.carrack();
    command.args([RATE, &by(&scene.proxy), &scene.node.token(), &scene.at("large"), "-"]);
    let running = Running::start(&mut command);
    wait_until("the copy is in its midst", || carried(&scene.proxy) > before + (4 << 20));
    lose(&scene.proxy, Kind::Control, true);
    running.end().failed_with(10, &["cannot be undone"]);
}

#[test]
fn failed_items_are_listed_and_copied_by_the_list() {
    let sandbox = Sandbox::new();
    let odd = "odd\\name\nwith a line feed";
    for name in ["tree/a", "tree/deep/b", "tree/other/c"] {
        sandbox.write(name, name);
    }
    let fifos = ["tree/fifo", "tree/deep/er/fifo", &format!("tree/{odd}")].map(|name| sandbox.path(name));
    fs::create_dir_all(sandbox.path("tree/deep/er")).unwrap();
    fifos.iter().for_each(|fifo| drop(tool(Command::new("mkfifo").arg(fifo))));
    let ran = sandbox.run(["--failed-list=failed", "tree", "there"]);
    ran.failed_with(23, &["FIFO"]);
    let mut lines: Vec<String> =
        fs::read_to_string(sandbox.path("failed")).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines.remove(0), "# carrack failed-list");
    assert_eq!(lines, ["tree/deep/er/fifo", "tree/fifo", "tree/odd\\\\name\\x0awith a line feed"]);
    // Now they can be copied, and nothing else is.
    for fifo in &fifos {
        fs::remove_file(fifo).unwrap();
        fs::write(fifo, "a file now").unwrap();
    }
    sandbox.write("tree/a", "changed meanwhile");
    let dry = sandbox.ok(["-n", "--json", "--files-from=failed", "tree", "there"]);
    assert_eq!(dry.summary()["files"], 3);
    let ran = sandbox.ok(["--json", "--files-from=failed", "--failed-list=failed", "tree", "there"]);
    assert_eq!(ran.summary()["files"], 3);
    assert_eq!(fs::read_to_string(sandbox.path("there/tree/a")).unwrap(), "tree/a");
    assert_eq!(fs::read_to_string(sandbox.path(format!("there/tree/{odd}"))).unwrap(), "a file now");
    assert_eq!(fs::read(sandbox.path("failed")).unwrap(), b"# carrack failed-list\n", "nothing failed");
    // A list of nothing copies nothing.
    assert_eq!(sandbox.ok(["--json", "--files-from=failed", "tree", "nowhere"]).summary()["files"], 0);
}

#[test]
fn list_takes_directories_and_names_what_is_not_there() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    for name in ["a", "deep/b", "deep/c/d", "other/e"] {
        sandbox.write(format!("root/{name}"), name);
    }
    sandbox.write("list", "deep/c\nother\ngone/away\na/below a file\n");
    let ran = sandbox.run(["--json", "--files-from=list", &node.token(), &node.at(""), "there"]);
    ran.failed_with(23, &["gone/away", "a/below a file", "--files-from names it"]);
    assert_eq!(ran.summary()["files"], 2);
    let mut found: Vec<_> = tree::walk(&sandbox.path("there")).into_iter().filter(|path| path.is_file()).collect();
    found.sort();
    assert_eq!(found, [sandbox.path("there/deep/c/d"), sandbox.path("there/other/e")]);
    // As rsync's, it is below the source, which is then its contents.
    sandbox.write("list", "./c/\n# not this\n\n");
    sandbox.ok(["--files-from=list", "root/deep", "below"]);
    assert!(sandbox.path("below/c/d").exists() && !sandbox.path("below/b").exists());
    sandbox.write("list", "c\0/b\0");
    sandbox.ok(["-0", "--files-from=list", "root/deep", "below"]);
    assert!(sandbox.path("below/b").exists());
    // What is outside what is copied is a mistake, told before anything is moved.
    sandbox.write("list", "# carrack failed-list\nother\n");
    let ran = sandbox.run(["--files-from=list", "root/deep", "elsewhere"]);
    ran.failed_with(2, &["other", "not among what would be copied"]);
    assert!(!sandbox.path("elsewhere").exists());
}

#[test]
fn list_of_failures_is_not_written_by_a_copy_that_broke_off() {
    let scene = Scene::new();
    scene.sandbox.write("failed", "of the run before\n");
    let running = scene.in_its_midst(&["--retries=0", "--failed-list=failed"]);
    lose(&scene.proxy, Kind::Control, true);
    running.end().failed_with(10, &[]);
    assert!(scene.log().contains("failed was not written"), "{}", scene.log());
    assert_eq!(fs::read_to_string(scene.sandbox.path("failed")).unwrap(), "of the run before\n");
    assert!(!scene.sandbox.path("failed.part").exists());
}
