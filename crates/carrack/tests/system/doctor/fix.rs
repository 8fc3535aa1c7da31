//! `carrack doctor --fix`, `--diff` and `--undo`, in a network namespace with mounts of its own: no file and no
//! parameter of this machine is touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use carrack_faults::netns::Namespace;
use carrack_faults::strace::{Inject, counts};
use serde_json::Value;

use crate::support::netns::{self, ADDRESSES, Host, Hosts};
use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Ran, Sandbox, ran};

/// Calls at which the program is killed: those after which something lasts.
const CALLS: [&str; 6] = ["write", "rename", "renameat", "renameat2", "unlink", "unlinkat"];
/// Of each call so many are tried, the last ones: a fix comes after everything else.
const LAST: u64 = 8;
/// Parameters of a namespace that are planted: name, what is planted, what is right.
const PLANTED: [(&str, &str, &str); 3] =
    [("ipv4/tcp_sack", "0", "1"), ("ipv4/tcp_timestamps", "0", "1"), ("ipv4/tcp_window_scaling", "0", "1")];

/// What a sandbox's host has in the place of /etc/sysctl.d.
const DROP_INS: &str = "sysctl.d";
const DROP_IN: &str = "sysctl.d/99-zz-carrack.conf";

struct Scene {
    sandbox: Sandbox,
    host: Namespace,
}

impl Scene {
    /// `None`, and why is printed, where such things cannot be made.
    fn new() -> Option<Self> {
        if !carrack_faults::netns::can_make() || !Path::new("/etc/sysctl.d").is_dir() {
            return None;
        }
        let (sandbox, host) = (Sandbox::new(), Namespace::new(&netns::name()).unwrap());
        PLANTED.iter().for_each(|(name, bad, _)| host.set(name, bad).unwrap());
        sandbox.write(format!("{DROP_INS}/10-site.conf"), "net.ipv4.tcp_sack = 0\n");
        Some(Self { sandbox, host })
    }

    /// The same command on that host.
    fn on(&self, command: &Command) -> Command {
        with_own_files(&self.sandbox, &self.host.on(command))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.carrack();
        command.arg("doctor").args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.on(&self.command(arguments)).output_in_time().unwrap())
    }

    /// Every parameter of the network and of memory that can be read, and the files for the next boot.
    fn dump(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = BTreeMap::new();
        self.host.inside(|| read_below(Path::new("/proc/sys/net"), &mut all)).unwrap();
        read_below(Path::new("/proc/sys/vm"), &mut all);
        read_below(&self.sandbox.path(DROP_INS), &mut all);
        all
    }
}

/// The command with a directory of the sandbox in the place of /etc/sysctl.d.
fn with_own_files(sandbox: &Sandbox, command: &Command) -> Command {
    let mut mounted = Command::new("unshare");
    mounted.current_dir(sandbox.path(".")).env_clear();
    mounted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    mounted.args(["-m", "sh", "-c", "mount --bind \"$0\" /etc/sysctl.d && exec \"$@\"", DROP_INS]);
    mounted.arg(command.get_program()).args(command.get_args());
    mounted
}

fn read_below(directory: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            read_below(&path, all);
        } else if let Ok(text) = fs::read(&path) {
            // How many connections there are now is no setting.
            if !path.ends_with("nf_conntrack_count") {
                all.insert(path.to_string_lossy().into_owned(), text);
            }
        }
    }
}

fn state(ran: &Ran) -> Value {
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.rev().find(|line| line["type"] == "state").unwrap_or_else(|| panic!("{}{}", ran.stdout, ran.stderr))
}

#[test]
fn fix_sets_what_was_planted_and_undo_restores_all_of_it() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.dump();
    let fixed = scene.run(&["--fix", "--label=one", "--json"]);
    let told = state(&fixed);
    let is_set = |name: &str| {
        let settings = told["settings"].as_array().unwrap();
        settings.iter().any(|one| one["name"] == name && one["before"] == "0" && one["now"] == "1")
    };
    for (name, _, right) in PLANTED {
        assert!(is_set(&format!("net.{}", name.replace('/', "."))), "{name}: {told}");
        let now = scene.host.inside(|| fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap()).unwrap();
        assert_eq!(now.trim(), right, "{name}");
    }
    let lines = fs::read_to_string(scene.sandbox.path(DROP_IN)).unwrap();
    assert!(
        lines.contains("net.ipv4.tcp_sack = 1\n") && lines.contains("net.ipv4.tcp_window_scaling = 1\n"),
        "{lines}"
    );
    // Once more there is nothing of it left to set, and the file that says otherwise does not win.
    let again = scene.run(&["--json"]);
    assert!(!again.stdout.contains("\"value\":\"net.ipv4.tcp_sack is off\""), "{}", again.stdout);
    let boot = again.stdout.lines().find(|line| line.contains("settings.next-boot") && line.contains("tcp_sack"));
    assert!(boot.is_some_and(|line| line.contains("99-zz-carrack.conf") && line.contains("\"ok\"")), "{boot:?}");
    let taken = scene.run(&["--fix", "--label=one"]);
    assert!(taken.code == 0 || taken.stdout.contains("nothing to set") || taken.code == 2, "{}", taken.stderr);
    let difference = state(&scene.run(&["--diff=one", "--json"]));
    assert_eq!(difference["settings"].as_array().unwrap().len(), told["settings"].as_array().unwrap().len() + 1);
    let undone = scene.run(&["--undo=one"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert_eq!(scene.dump(), before);
    let none = scene.run(&["--undo=one"]);
    none.failed_with(2, &["no state has the label", "there is none"]);
    assert!(!Path::new("/etc/sysctl.d/99-zz-carrack.conf").exists(), "this machine's own files were touched");
}

/// `sudo` may keep a user's HOME: what the user could have put there is no note of root's.
#[test]
fn root_carries_out_no_note_that_somebody_else_could_have_written() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.dump();
    // It exits by what it has found before.
    scene.run(&["--fix", "--label=of-another", "--quiet"]);
    let fixed = scene.dump();
    assert_ne!(fixed, before);
    let state = scene.sandbox.path("home/.local/state");
    let give = |user: u32| std::os::unix::fs::chown(&state, Some(user), None).unwrap();
    give(65534);
    scene.run(&["--undo=of-another"]).failed_with(2, &["no state has the label"]);
    assert_eq!(scene.dump(), fixed);
    give(0);
    assert_eq!(scene.run(&["--undo=of-another"]).code, 0);
    assert_eq!(scene.dump(), before);
}

#[test]
fn fix_killed_at_any_point_is_undone() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.dump();
    let arguments = ["--fix", "--label=one", "--quiet"];
    let log = scene.sandbox.path("strace.log");
    let traced = Inject::new().watch(&CALLS).log(&log);
    let done = ran(scene.on(&traced.around(&scene.command(&arguments))).output_in_time().unwrap());
    assert!(done.stdout.contains("--undo one"), "{}{}", done.stdout, done.stderr);
    let undo = || {
        let undone = scene.run(&["--undo=one"]);
        let is_new = undone.stderr.contains("no state has the label");
        assert!(undone.code == 0 || is_new, "{} {}", undone.code, undone.stderr);
    };
    undo();
    assert_eq!(scene.dump(), before);
    let (mut tried, mut begun) = (0, 0);
    for (call, count) in counts(&log).into_iter().filter(|(call, _)| CALLS.contains(&call.as_str())) {
        for nth in count.saturating_sub(LAST - 1).max(1)..=count {
            let killing = Inject::new().kill(&call, nth);
            let killed = ran(scene.on(&killing.around(&scene.command(&arguments))).output_in_time().unwrap());
            begun += u32::from(scene.dump() != before);
            tried += 1;
            undo();
            assert_eq!(scene.dump(), before, "killed at {call} {nth} ({})", killed.code);
        }
    }
    // Some of them were in the middle of it.
    assert!(tried >= 8 && begun >= 3, "{tried} {begun}");
}

#[test]
fn fix_measures_the_path_again_and_tells_the_gain() {
    let Some(hosts) = Hosts::new() else { return };
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path(DROP_INS)).unwrap();
    let node = Node::on(&hosts.prefix(Host::Far), &sandbox, "root", ADDRESSES[1]);
    let mut plant = Command::new("sysctl");
    plant.args(["-w", "net.ipv4.tcp_sack=0"]).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    assert!(hosts.on(Host::Near, &plant).output_in_time().unwrap().status.success());
    let run = |arguments: &[&str]| {
        let mut command = sandbox.carrack();
        command.args(["doctor", "--json"]).args(arguments);
        ran(with_own_files(&sandbox, &hosts.on(Host::Near, &command)).output_in_time().unwrap())
    };
    let ran = run(&[&node.at(""), &node.token_as("destination"), "--fix", "--label=sack", "--rate=1GB"]);
    let told = state(&ran);
    let settings = told["settings"].as_array().unwrap();
    assert!(settings.iter().any(|one| one["name"] == "net.ipv4.tcp_sack"), "{told}");
    let gains = told["gains"].as_array().unwrap();
    let there = gains.iter().find(|gain| gain["what"] == "there").unwrap_or_else(|| panic!("{told}{}", ran.stderr));
    let rates =
        |name: &str| there[name].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect::<Vec<_>>();
    assert!(rates("before_bytes_per_second").iter().chain(&rates("after_bytes_per_second")).all(|rate| *rate > 0.0));
    assert!(there["noise"].as_f64().unwrap() >= 0.05 && there["share"].is_number(), "{there}");
    assert_eq!(run(&["--undo=sack"]).code, 0);
}
