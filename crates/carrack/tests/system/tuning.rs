//! What a copy has found is what the next one begins with.

use carrack_core::pace::streams::Reason;
use carrack_faults::link::{ADDRESSES, Host, Link, Setup};
use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, netns, same_tree, tree, wait_until};

/// Of a connection, and of the whole link, in bits a second: four fill it.
const EACH: u64 = 8_000_000;
const ALL: u64 = 32_000_000;
const KEPT: &str = "home/.local/state/carrack/tuning";

/// A node behind a slow link, and a file to send there.
struct Scene {
    node: Node,
    link: Link,
    sandbox: Sandbox,
}

impl Scene {
    fn new() -> Option<Self> {
        if !carrack_faults::netns::can_make() {
            return None;
        }
        let sandbox = Sandbox::in_memory();
        sandbox.write("tree/file", tree::bytes(320 << 20, 1));
        let slow = |knobs: &carrack_faults::link::Knobs| {
            knobs.flow_rate(Some(EACH));
            knobs.rate(Some(ALL));
        };
        let link = Link::new(&netns::name(), &Setup::default(), slow).unwrap();
        let node = Node::on(&link.host(Host::Far).prefix(), &sandbox, "root", ADDRESSES[1]);
        Some(Self { node, link, sandbox })
    }

    fn start(&self, log: &str, flags: &[&str]) -> Running {
        let mut command = self.sandbox.carrack();
        command.args(["-v", "--json", "--log-file", log, &self.node.token()]).args(flags);
        command.args(["tree/", &self.node.at("there")]);
        Running::start(&mut self.link.host(Host::Near).on(&command))
    }

    fn logged(&self, log: &str, words: &str) -> usize {
        std::fs::read_to_string(self.sandbox.path(log)).unwrap_or_default().matches(words).count()
    }

    /// Copies until the number of streams has been found, and stops.
    fn find(&self) -> Ran {
        let mut running = self.start("first.log", &[]);
        // What is between the best and one too many has been tried as well.
        let is_found = || self.logged("first.log", Reason::Back.meaning()) > 1;
        wait_until("a number of streams is found", || is_found() || !running.is_running());
        signal(running.id(), "TERM");
        running.end()
    }

    /// Copies with these flags; the link holds nothing back any more once it is made.
    fn copy(&self, log: &str, flags: &[&str]) -> Ran {
        let mut running = self.start(log, flags);
        wait_until("the link is made", || self.logged(log, "link: direct") > 0 || !running.is_running());
        self.link.both(|knobs| knobs.flow_rate(None));
        self.link.both(|knobs| knobs.rate(None));
        let ran = running.end();
        self.link.both(|knobs| knobs.flow_rate(Some(EACH)));
        self.link.both(|knobs| knobs.rate(Some(ALL)));
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        same_tree(&self.sandbox.path("tree"), &self.sandbox.path("root/there"));
        ran
    }

    fn kept(&self) -> Option<Vec<u8>> {
        std::fs::read(self.sandbox.path(KEPT)).ok()
    }
}

/// How the link was begun.
#[track_caller]
fn link(ran: &Ran) -> Value {
    let mut events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.find(|event| event["type"] == "link").unwrap_or_else(|| panic!("{}", ran.stdout))
}

#[test]
fn number_that_a_copy_has_found_is_what_the_next_one_begins_with() {
    let Some(scene) = Scene::new() else { return };
    let first = scene.find();
    assert_eq!((first.code, &link(&first)["streams_from"]), (75, &"path".into()), "{}", first.stderr);
    let shown: Value = serde_json::from_str(&scene.sandbox.ok(["tuning", "show", "--json"]).stdout).unwrap();
    assert_eq!((&shown["type"], &shown["to"]), (&"tuning".into(), &scene.node.address.as_str().into()));
    assert_eq!((&shown["knob"], &shown["link"]), (&"streams".into(), &"direct".into()));
    let (found, begun) = (shown["number"].as_u64().unwrap(), link(&first)["streams"].as_u64().unwrap());
    assert!(found >= 3 && found > begun && shown["rate"].as_u64() > Some(1_000_000), "{shown}");

    // Whoever fixes the number, or the rate, neither reads what is kept nor changes it.
    let kept = scene.kept();
    for (log, flags) in [("streams.log", ["--streams=2"]), ("rate.log", ["--bwlimit=1G"])] {
        let fixed = link(&scene.copy(log, &flags));
        assert_ne!((&fixed["streams_from"], &fixed["streams"]), (&"kept".into(), &found.into()), "{fixed}");
        assert_eq!(scene.kept(), kept);
    }

    let next = scene.copy("next.log", &["--no-resume"]);
    let begun = link(&next);
    assert_eq!((&begun["streams"], &begun["streams_from"]), (&found.into(), &"kept".into()), "{}", next.stdout);
    assert!(scene.logged("next.log", "streams, as this pair had last time") > 0);

    // Forgotten, of this pair alone.
    let host = shown["from"].as_str().unwrap();
    scene.sandbox.ok(["tuning", "clear", host, "elsewhere"]);
    assert!(scene.sandbox.ok(["tuning", "show"]).stdout.contains(&scene.node.address));
    scene.sandbox.ok(["tuning", "clear", &scene.node.address, host]);
    assert_eq!(scene.sandbox.ok(["tuning", "show"]).stdout, "");
    assert_eq!(link(&scene.copy("last.log", &["--no-resume"]))["streams_from"], "path");
}

/// A file that somebody has damaged is no error of a copy: it is set aside, and told of once.
#[test]
fn kept_tuning_that_is_damaged_is_set_aside() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("file", "content");
    for damaged in
        ["carrack-tuning 1\nhere there direct streams 8 1", "\0\0\0\0", "carrack-tuning 1\n\x1b[2J a b c d e f\n"]
    {
        let path = sandbox.write(KEPT, damaged);
        sandbox.run(["tuning", "show"]).failed_with(11, &["tuning clear"]);
        let ran = sandbox.ok(["-v", &node.token(), "file", &node.at("there")]);
        assert!(ran.stderr.contains("tuning.unreadable") && !ran.stderr.contains('\x1b'), "{}", ran.stderr);
        assert!(!path.exists());
        assert_eq!(std::fs::read_to_string(path.with_extension("unreadable")).unwrap(), damaged);
        let ran = sandbox.ok(["-v", &node.token(), "file", &node.at("there")]);
        assert!(!ran.stderr.contains("unreadable"), "{}", ran.stderr);
    }
    sandbox.run(["tuning"]).failed_with(2, &[]);
    sandbox.run(["tuning", "show", "one"]).failed_with(2, &["a pair is two hosts"]);
}
