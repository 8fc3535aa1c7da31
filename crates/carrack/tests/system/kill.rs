//! What is left when one of those who take part in a copy is killed in the midst of it: nothing under a final name that
//! is not whole, nobody who waits for the dead, no open port, and something from which the same command goes on.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::support::node::Node;
use crate::support::process::{agents, all_listening, descendants, is_alive, listening, signal};
use crate::support::running::Running;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Sandbox, tree, wait_until};

/// Slow enough to be met in the midst of the large file, which takes several seconds then; and with one attempt, so
/// that what is left is left by that.
const FLAGS: [&str; 2] = ["--bwlimit=8MB", "--retries=0"];
const LARGE_BYTES: usize = 32 << 20;

/// A copy under way.
struct Scene {
    sandbox: Sandbox,
}

impl Scene {
    /// One large file and many small ones.
    fn new() -> Self {
        let sandbox = Sandbox::in_memory();
        tree::many(&sandbox.path("tree"), 60, 100_000);
        sandbox.write("tree/large", tree::bytes(LARGE_BYTES, 7));
        Self { sandbox }
    }

    fn there(&self) -> PathBuf {
        self.sandbox.path("there")
    }

    fn over_ssh(&self, name: &str) -> String {
        format!("far:{}", self.sandbox.path(name).display())
    }

    /// Starts a copy and returns in its midst: some small files have their names, and of the large one
    /// the beginning is written.
    fn start(&self, arguments: &[&str]) -> Running {
        let mut running = Running::start(self.sandbox.carrack().args(FLAGS).args(arguments));
        let mut ended = false;
        wait_until("the copy is in its midst", || {
            ended = !running.is_running();
            if ended {
                return true;
            }
            let files: Vec<PathBuf> = tree::walk(&self.there()).into_iter().filter(|path| path.is_file()).collect();
            let (parts, whole): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(|path| is_hidden(path));
            let begun = |part: &&PathBuf| part.to_string_lossy().contains(".large.") && begins_with_data(part);
            !whole.is_empty() && parts.iter().any(begun)
        });
        if ended {
            let ran = running.end();
            panic!("it ended early: {}{}", ran.stdout, ran.stderr);
        }
        running
    }

    /// Every name that is there is that of a whole file, and not all are.
    #[track_caller]
    fn assert_nothing_wrong(&self) {
        let (from, there) = (self.sandbox.path("tree"), self.there());
        let mut whole = 0;
        for path in tree::walk(&there).into_iter().filter(|path| path.is_file() && !is_hidden(path)) {
            let name = path.strip_prefix(&there).unwrap();
            assert!(
                std::fs::read(&path).unwrap() == std::fs::read(from.join(name)).unwrap(),
                "{name:?} has wrong content"
            );
            whole += 1;
        }
        assert!(whole > 0 && !there.join("large").exists(), "the copy was not met in its midst: {whole}");
    }

    /// Small files that were not whole go; what has come of the large one may stay.
    #[track_caller]
    fn wait_for_no_small_parts(&self) {
        let is_small = |path: &PathBuf| !path.to_string_lossy().contains(".large.");
        wait_until("part files go", || !self.sandbox.parts("there").iter().any(is_small));
    }

    /// The same command goes on from there, and leaves nothing hidden behind.
    #[track_caller]
    fn finish(&self, arguments: &[&str]) {
        self.sandbox.ok(arguments);
        crate::support::same_tree(&self.sandbox.path("tree"), &self.there());
        let hidden: Vec<PathBuf> = tree::walk(&self.there()).into_iter().filter(|path| is_hidden(path)).collect();
        assert_eq!(hidden, Vec::<PathBuf>::new());
    }
}

/// A part file or a marker: the tree itself has no such names.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// Its blocks are reserved from the start: only what is in them tells whether something has come.
fn begins_with_data(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 4096];
    std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start != [0; 4096]
}

/// Everything that a running copy has brought to life, on both sides.
struct Involved {
    agents: Vec<u32>,
    helpers: Vec<u32>,
    ports: HashSet<u64>,
}

impl Involved {
    /// With agents that ssh has started, each on a host of its own, and a port that one of the sides listens on.
    #[track_caller]
    fn find(scene: &Scene, command: &Running, agent_count: usize) -> Self {
        let agents = agents(&scene.sandbox.path(""));
        assert_eq!(agents.len(), agent_count);
        let ports = listening(&[&agents[..], &[command.id()]].concat());
        assert!(!ports.is_empty(), "nobody listens");
        Self { agents, helpers: descendants(command.id()), ports }
    }

    /// The command's helpers and the agents end, and with them their ports.
    #[track_caller]
    fn wait_for_end(&self) {
        wait_until("agents and ssh processes end", || {
            !self.agents.iter().chain(&self.helpers).any(|&pid| is_alive(pid))
        });
        wait_until("ports are closed", || all_listening().is_disjoint(&self.ports));
    }
}

/// Waits for a command that has lost its peer: it must notice by itself.
#[track_caller]
fn end_with(mut running: Running, code: i32) -> String {
    wait_until("the command ends", || !running.is_running());
    let ran = running.end();
    assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("error: "), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn killed_command_that_sent_has_the_far_side_clean_up() {
    let scene = Scene::new();
    let far = Sshd::start(&scene.sandbox);
    let there = scene.over_ssh("there");
    let command = [&far.rsh, "tree/", &there];
    let running = scene.start(&command);
    let involved = Involved::find(&scene, &running, 1);
    signal(running.id(), "KILL");
    involved.wait_for_end();
    scene.wait_for_no_small_parts();
    scene.assert_nothing_wrong();
    scene.finish(&command);
}

#[test]
fn killed_command_that_received_leaves_nobody_behind() {
    let scene = Scene::new();
    let far = Sshd::start(&scene.sandbox);
    let from = scene.over_ssh("tree/");
    let command = [&far.rsh, &from, "there"];
    let running = scene.start(&command);
    let involved = Involved::find(&scene, &running, 1);
    signal(running.id(), "KILL");
    involved.wait_for_end();
    scene.assert_nothing_wrong();
    scene.finish(&command);
}

#[test]
fn killed_agent_is_noticed_by_the_command() {
    for receives in [true, false] {
        let scene = Scene::new();
        let far = Sshd::start(&scene.sandbox);
        let (from, to) = match receives {
            true => ("tree/".to_owned(), scene.over_ssh("there")),
            false => (scene.over_ssh("tree/"), "there".to_owned()),
        };
        let running = scene.start(&[&far.rsh, &from, &to]);
        let involved = Involved::find(&scene, &running, 1);
        signal(involved.agents[0], "KILL");
        let said = end_with(running, 10);
        assert!(said.contains("far: "), "{said}");
        involved.wait_for_end();
        scene.assert_nothing_wrong();
        scene.finish(&[&far.rsh, &from, &to]);
    }
}

#[test]
fn killed_ssh_is_noticed_by_both_sides() {
    let scene = Scene::new();
    let far = Sshd::start(&scene.sandbox);
    let there = scene.over_ssh("there");
    let command = [&far.rsh, "tree/", &there];
    let running = scene.start(&command);
    let involved = Involved::find(&scene, &running, 1);
    signal(involved.helpers[0], "KILL");
    end_with(running, 10);
    involved.wait_for_end();
    scene.wait_for_no_small_parts();
    scene.assert_nothing_wrong();
    scene.finish(&command);
}

#[test]
fn killed_part_of_a_copy_between_two_hosts_is_noticed_by_the_others() {
    for victim in ["command", "source", "destination"] {
        let scene = Scene::new();
        let far = Sshd::start(&scene.sandbox);
        let away = Sshd::with(&scene.sandbox, &Setup { name: "away", ..Setup::default() });
        let from = format!("away:{}", scene.sandbox.path("tree/").display());
        let there = scene.over_ssh("there");
        let command = [&*far.rsh, &from, &there];
        let running = scene.start(&command);
        let involved = Involved::find(&scene, &running, 2);
        // Whose home is whose tells them apart.
        let agent_of = |home: &Path| *agents(home).first().unwrap();
        match victim {
            "command" => signal(running.id(), "KILL"),
            "source" => signal(agent_of(&away.home), "KILL"),
            _ => signal(agent_of(&far.home), "KILL"),
        }
        if victim != "command" {
            end_with(running, 10);
        }
        involved.wait_for_end();
        if victim != "destination" {
            scene.wait_for_no_small_parts();
        }
        scene.assert_nothing_wrong();
        scene.finish(&command);
    }
}

#[test]
fn killed_node_is_noticed_by_the_command() {
    for receives in [true, false] {
        let scene = Scene::new();
        let root = if receives { "there" } else { "tree" };
        let mut node = Node::start(&scene.sandbox, root, &[]);
        let (from, to) = match receives {
            true => ("tree/".to_owned(), node.at("")),
            false => (node.at(""), "there".to_owned()),
        };
        let running = scene.start(&[&node.token(), &from, &to]);
        node.child.kill().unwrap();
        end_with(running, 10);
        scene.assert_nothing_wrong();
        drop(node);
        // On another port it is another node, and this another copy: it is whole all the same.
        let again = Node::start(&scene.sandbox, root, &[]);
        let (from, to) = match receives {
            true => ("tree/".to_owned(), again.at("")),
            false => (again.at(""), "there".to_owned()),
        };
        scene.sandbox.ok([&again.token(), &from, &to]);
    }
}

#[test]
fn node_cleans_up_after_a_command_that_was_killed_and_serves_the_next() {
    let scene = Scene::new();
    let node = Node::start(&scene.sandbox, "there", &[]);
    let running = scene.start(&[&node.token(), "tree/", &node.at("")]);
    signal(running.id(), "KILL");
    scene.wait_for_no_small_parts();
    scene.assert_nothing_wrong();
    scene.finish(&[&node.token(), "tree/", &node.at("")]);
}

#[test]
fn signal_ends_a_copy_in_good_order_on_both_sides() {
    for (name, code) in [("INT", 20), ("TERM", 75)] {
        for receives in [true, false] {
            let scene = Scene::new();
            let far = Sshd::start(&scene.sandbox);
            let (from, to) = match receives {
                true => ("tree/".to_owned(), scene.over_ssh("there")),
                false => (scene.over_ssh("tree/"), "there".to_owned()),
            };
            let running = scene.start(&[&far.rsh, &from, &to]);
            let involved = Involved::find(&scene, &running, 1);
            signal(running.id(), name);
            end_with(running, code);
            involved.wait_for_end();
            scene.wait_for_no_small_parts();
            scene.assert_nothing_wrong();
            scene.finish(&[&far.rsh, &from, &to]);
        }
    }
}

#[test]
fn signal_ends_a_copy_to_a_node_and_the_node_stays() {
    let scene = Scene::new();
    let node = Node::start(&scene.sandbox, "there", &[]);
    let running = scene.start(&[&node.token(), "tree/", &node.at("")]);
    signal(running.id(), "INT");
    end_with(running, 20);
    scene.wait_for_no_small_parts();
    scene.assert_nothing_wrong();
    scene.finish(&[&node.token(), "tree/", &node.at("")]);
}
