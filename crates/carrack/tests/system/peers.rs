//! `carrack bench peers`: every program that is there takes its turn, wrong results are faults, and nothing stays.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bench::seen;
use crate::support::browser::Look;
use crate::support::node::Node;
use crate::support::process::{at_home_in, signal};
use crate::support::running::{InTime, Running};
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, is_root, ran, wait_until};

/// A contest that is soon over.
const SMALL: [&str; 7] =
    ["--json", "--no-keep", "--size=1M", "--files=20", "--file-size=5000", "--runs=1", "--sessions=1,2"];

fn rows(ran: &Ran) -> Vec<Value> {
    let all = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|object| object["type"] == "row").collect()
}

/// The rows of a program that have a rate.
fn measured<'a>(rows: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter(move |row| row["name"] == name && row["values"]["bytes_per_second"].is_number())
}

/// Why a program has none.
fn reason<'a>(rows: &'a [Value], name: &str) -> &'a str {
    let row = rows.iter().find(|row| row["name"] == name && row["error"].is_string());
    row.unwrap_or_else(|| panic!("{name}: {rows:?}"))["error"].as_str().unwrap()
}

fn content(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn make_dirs(sandbox: &Sandbox) {
    ["a", "b"].iter().for_each(|name| fs::create_dir_all(sandbox.path(name)).unwrap());
}

fn nothing_stays(sandbox: &Sandbox) {
    assert_eq!((content(&sandbox.path("a")).len(), content(&sandbox.path("b")).len()), (0, 0));
}

/// A server whose logins find what Debian's do, and the program.
fn far(sandbox: &Sandbox) -> (Sshd, String) {
    let far = Sshd::with(sandbox, &Setup { directives: "Subsystem sftp internal-sftp", ..Setup::default() });
    offer(&far, &["rsync", "scp", "cat", "grep", "tr", "sync", "iperf3"]);
    let place = format!("far:{}", sandbox.path("b").display());
    (far, place)
}

/// Puts programs of this host on the PATH of those who log in there, as far as they are installed.
fn offer(far: &Sshd, programs: &[&str]) {
    for name in programs {
        if let Some(path) = ["/usr/bin", "/bin"].map(|at| Path::new(at).join(name)).iter().find(|path| path.exists()) {
            let _ = std::os::unix::fs::symlink(path, far.bin.join(name));
        }
    }
}

fn is_there(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/bin"].iter().any(|at| Path::new(at).join(program).exists())
}

#[test]
fn peers_by_ssh_take_turns_are_compared_and_leave_nothing_in_both_directions() {
    let sandbox = Sandbox::in_memory();
    make_dirs(&sandbox);
    let (server, there) = far(&sandbox);
    for [a, b] in [["a", there.as_str()], [there.as_str(), "a"]] {
        let ran = sandbox.ok([&["bench", "peers", a, b, &server.rsh], &SMALL[..]].concat());
        let rows = rows(&ran);
        // One file and a tree, each by one session and by two.
        for name in ["carrack", "carrack-node", "scp", "rsync", "rsync-daemon"] {
            assert_eq!(measured(&rows, name).count(), 4, "{a} {name}: {}{}", ran.stdout, ran.stderr);
        }
        for row in measured(&rows, "scp").chain(measured(&rows, "carrack")) {
            let (values, conditions) = (&row["values"], &row["conditions"]);
            let sessions: u64 = conditions["sessions"].as_str().unwrap().parse().unwrap();
            let expected = if conditions["data"] == "1M" { 1 << 20 } else { 20 * 5000 };
            assert_eq!(values["bytes"], expected * sessions, "{row}");
            assert_eq!(values["files_per_second"].is_null(), conditions["data"] == "1M", "{row}");
            // Both sides are known: here by the commands, there by the sshd that listens.
            for side in ["cpu_seconds_here", "cpu_seconds_there", "cpu_seconds_per_gigabyte"] {
                assert!(values[side].as_f64().is_some_and(|seconds| seconds >= 0.0), "{side}: {row}");
            }
            let does = (conditions["encrypts"].as_str().unwrap(), conditions["verifies"].as_str().unwrap());
            assert_eq!(does, if row["name"] == "scp" { ("ssh", "transit") } else { ("TLS", "BLAKE3") });
        }
        // A login costs more than a tick.
        let there: f64 = measured(&rows, "scp").map(|row| row["values"]["cpu_seconds_there"].as_f64().unwrap()).sum();
        assert!(there > 0.0, "{}", ran.stdout);
        if is_there("globus-gridftp-server") && is_there("globus-url-copy") {
            assert_eq!(measured(&rows, "globus-url-copy").count(), 4, "{}", ran.stdout);
        }
        for absent in ["bbcp", "mscp", "rclone", "xrdcp"].iter().filter(|name| !is_there(name)) {
            assert_eq!(reason(&rows, absent), format!("{absent} is not on the PATH here"));
        }
        // Each program that is there has figures for all, or one reason.
        for name in ["sftp", "rclone", "xrdcp", "iperf3"].iter().filter(|name| is_there(name)) {
            let of: Vec<_> = rows.iter().filter(|row| row["name"] == *name).collect();
            let figures = measured(&rows, name).count();
            let expected = if *name == "iperf3" { 1 } else { 4 };
            let is_right = if figures == 0 {
                of.len() == 1 && of[0]["conditions"]["data"] == "-" && of[0]["error"].is_string()
            } else {
                figures == expected && of.len() == expected
            };
            assert!(is_right, "{a} {name}: {of:?}");
        }
        nothing_stays(&sandbox);
    }
}

/// GridFTP's programs ask for the address of this host by its name, which a machine that was just made may not know.
#[test]
fn peers_of_a_host_whose_name_has_no_address_have_gridftp_too() {
    if !is_root() || !is_there("globus-gridftp-server") || !is_there("globus-url-copy") {
        return;
    }
    let sandbox = Sandbox::in_memory();
    make_dirs(&sandbox);
    let carrack = sandbox.carrack();
    let mut command = Command::new("unshare");
    command.args(["--uts", "sh", "-c", "hostname no-such-host && exec \"$@\"", "sh"]).arg(carrack.get_program());
    command.args(["bench", "peers", "a", "b", "--tool=globus-url-copy"]).args(SMALL).current_dir(sandbox.path("."));
    command.env_clear().envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = ran(command.output_in_time().unwrap());
    assert_eq!(measured(&rows(&ran), "globus-url-copy").count(), 4, "{}{}", ran.stdout, ran.stderr);
    nothing_stays(&sandbox);
}

/// The flag by which rclone calls ssh is younger than some of its packages.
#[test]
fn peers_of_an_rclone_that_cannot_call_ssh_say_so_once() {
    let sandbox = Sandbox::in_memory();
    make_dirs(&sandbox);
    let (server, there) = far(&sandbox);
    let script = "echo 'Error: unknown flag: --sftp-ssh' >&2; exit 2";
    let mut command = with_program(&sandbox, "rclone", script);
    command.args(["bench", "peers", "a", &there, &server.rsh, "--tool=carrack,rclone"]).args(SMALL);
    let ran = ran(command.output_in_time().unwrap());
    let rows = rows(&ran);
    let said =
        "this rclone cannot go by the ssh command: 1.64 or later can (exit status: 2: Error: unknown flag: --sftp-ssh)";
    assert_eq!(reason(&rows, "rclone"), said);
    assert_eq!(rows.iter().filter(|row| row["name"] == "rclone").count(), 1, "{}", ran.stdout);
    nothing_stays(&sandbox);
}

#[test]
fn peers_of_two_directories_here_are_those_with_servers_and_are_shown_and_kept() {
    let sandbox = Sandbox::in_memory();
    make_dirs(&sandbox);
    let arguments = [
        "bench",
        "peers",
        "a",
        "b",
        "--size=1M",
        "--files=0",
        "--runs=2",
        "--encrypt=none",
        "--html=page.html",
        "--sync",
    ];
    let ran = sandbox.ok([&arguments[..], &["--tool=carrack,carrack-node,rsync-daemon,scp"]].concat());
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
    for words in
        ["one file of 1M\n", "2 sessions at once", "carrack-node", "no   BLAKE3", "neither A nor B is at an ssh"]
    {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.contains("<h3>one file of 1M</h3>") && page.contains("rsync-daemon"), "{page}");
    // The colour of a bar, in both schemes.
    for (look, bar) in
        [(Look { dark: false, width: 1200 }, [0x0b, 0x62, 0xa8]), (Look { dark: true, width: 700 }, [0x63, 0xb3, 0xf4])]
    {
        assert!(seen(&sandbox, page.as_bytes(), look).count(bar) > 1000, "{look:?}");
    }
    let shown = sandbox.ok(["bench", "show"]);
    let table = |text: &str| {
        text.lines().filter(|line| line.starts_with("rsync-daemon")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(table(&shown.stdout), table(&ran.stdout));
    let again = sandbox.ok([&arguments[..], &["--tool=rsync-daemon"]].concat());
    assert!(again.stdout.contains("rsync-daemon"));
    let diff = sandbox.ok(["bench", "diff"]);
    for words in ["rsync-daemon 1M ", "rsync-daemon 1M 2 sessions", "carrack 1M", "only in the earlier result"] {
        assert!(diff.stdout.contains(words), "{words}: {}", diff.stdout);
    }
    assert!(sandbox.ok(["bench", "show", "--format=csv"]).stdout.contains("rsync-daemon"));
    nothing_stays(&sandbox);
}

#[test]
fn peers_of_a_node_are_carrack_alone_and_each_other_is_named() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    make_dirs(&sandbox);
    fs::create_dir(sandbox.path("root/b")).unwrap();
    let ran = sandbox.ok([&["bench", "peers", "a", &node.at("b"), &node.token()], &SMALL[..]].concat());
    let rows = rows(&ran);
    assert_eq!(measured(&rows, "carrack").count(), 4, "{}", ran.stdout);
    assert!(rows.iter().all(|row| row["name"] == "carrack" || row["error"].is_string()), "{}", ran.stdout);
    // Nobody tells what the node has used.
    assert!(measured(&rows, "carrack").all(|row| row["values"]["cpu_seconds_there"].is_null()));
    assert!(reason(&rows, "scp").contains("is a node"));
    assert!(reason(&rows, "rsync-daemon").contains("--rsyncd URL"));
    // The same directory by both names.
    let there = sandbox.path("root/b").display().to_string();
    let (far, _) = far(&sandbox);
    let named = format!("--node={}", node.at("b"));
    let far_of = format!("far:{there}");
    let arguments = ["bench", "peers", "a", &far_of, &far.rsh, &named, &node.token(), "--tool=carrack,carrack-node"];
    let ran = sandbox.ok([&arguments[..], &SMALL[..]].concat());
    let rows = self::rows(&ran);
    for name in ["carrack", "carrack-node"] {
        assert_eq!(measured(&rows, name).count(), 4, "{}", ran.stdout);
    }
    assert_eq!(content(Path::new(&there)).len(), 0);
}

/// A program of this name that runs before the real one.
fn with_program(sandbox: &Sandbox, name: &str, script: &str) -> Command {
    let path = sandbox.write(format!("fakes/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = sandbox.carrack();
    let usual = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{usual}", sandbox.path("fakes").display()));
    command
}

#[test]
fn peers_with_a_wrong_result_have_a_fault_and_no_rate() {
    // Says that all went well. What it does with the last word, the destination, is in the script.
    let cases = [
        ("for last; do :; done; rm -rf \"$last\"; exit 0", "missing"),
        ("for last; do :; done; head -c 1000 /dev/zero >\"$last\"", "of another size"),
        ("for last; do :; done; head -c 1048576 /dev/zero >\"$last\"", "with other bytes"),
        ("echo it cannot >&2; exit 5", "exit status: 5: it cannot"),
        ("exec sleep 1000", "stopped after 1 s (--timeout)"),
    ];
    for (script, why) in cases {
        let sandbox = Sandbox::new();
        make_dirs(&sandbox);
        // As scp from an ssh host, whose answers are those of this very host.
        let (server, there) = far(&sandbox);
        let mut command = with_program(&sandbox, "scp", script);
        command.args(["bench", "peers", &there, "a", &server.rsh, "--tool=scp,carrack", "--files=0", "--sessions=1"]);
        // A limit that only the program exceeds that never ends.
        let limit = if why.contains("stopped") { "--timeout=1s" } else { "--timeout=60s" };
        command.args(["--json", "--no-keep", "--size=1M", "--runs=3", limit]);
        let ran = ran(command.output_in_time().unwrap());
        let rows = rows(&ran);
        assert!(reason(&rows, "scp").contains(why), "{why}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(measured(&rows, "scp").count(), 0, "{}", ran.stdout);
        nothing_stays(&sandbox);
    }
}

#[test]
fn peers_that_are_interrupted_or_killed_leave_nothing_and_show_what_they_have() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox);
    // The first run is a real one; the second never ends. Whoever asks for the version is told it.
    let script = "[ $1 = --version ] && exec /usr/bin/rsync --version; [ -e ran ] && exec sleep 1000; touch ran; \
                  exec /usr/bin/rsync \"$@\"";
    let (server, there) = far(&sandbox);
    let start = || {
        let _ = fs::remove_file(sandbox.path("ran"));
        let mut command = with_program(&sandbox, "rsync", script);
        command.args(["bench", "peers", "a", &there, &server.rsh, "--tool=rsync", "--files=0", "--sessions=1"]);
        Running::start(command.args(["--json", "--no-keep", "--size=1M", "--runs=2"]))
    };
    let sleepers = || at_home_in(&sandbox.path("home")).into_iter().filter(|pid| is_sleep(*pid)).collect::<Vec<_>>();
    let sleeps = || !sleepers().is_empty();
    let running = start();
    wait_until("the second run hangs", || sandbox.path("ran").exists() && sleeps());
    signal(running.id(), "INT");
    let ended = running.end();
    assert_eq!(ended.code, 20, "{}", ended.stderr);
    let rows = rows(&ended);
    assert_eq!(measured(&rows, "rsync").count(), 1, "the first run was whole: {}", ended.stdout);
    wait_until("the program has ended with it", || !sleeps());
    nothing_stays(&sandbox);
    // Killed: the next one removes what was left.
    let killed = start();
    wait_until("the second run hangs", || sandbox.path("ran").exists() && sleeps());
    let left = sleepers();
    signal(killed.id(), "KILL");
    killed.end();
    left.into_iter().for_each(|pid| signal(pid, "KILL"));
    assert_eq!((content(&sandbox.path("a")).len(), content(&sandbox.path("b")).len()), (1, 1));
    let arguments = ["bench", "peers", "a", &there, &server.rsh, "--tool=carrack"];
    let next = sandbox.ok([&arguments[..], &SMALL[..]].concat());
    assert!(next.stdout.contains("removed what a measurement that was killed had left"), "{}", next.stdout);
    nothing_stays(&sandbox);
}

fn is_sleep(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
}

#[test]
fn peers_refuse_what_cannot_be_compared() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox);
    fs::create_dir(sandbox.path("with space")).unwrap();
    for (arguments, words) in [
        (&["a", "null:"][..], "is none"),
        (&["a", "with space"], "not every program takes such a path"),
        (&["a", "b", "--size=0", "--files=0"], "leave nothing to copy"),
        (&["a", "b", "--tool=scp"], "no program can take part"),
        (&["a", "b", "--size=8000P"], "stays free"),
        (&["a", "b", "--gridftp=-x"], "is no address"),
    ] {
        let ran = sandbox.run([&["bench", "peers"], arguments].concat());
        assert_ne!(ran.code, 0);
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        nothing_stays(&sandbox);
    }
}

/// What the first of two other hosts has beside the programs of the contest.
const OF_THE_FIRST: &[&str] = &["ssh", "sftp", "mkdir", "cp"];

/// A directory at each of two other hosts, and the option by which the first reaches the second.
fn between_two() -> (Sandbox, Sshd, [String; 3]) {
    let sandbox = Sandbox::in_memory();
    make_dirs(&sandbox);
    let (server, there) = far(&sandbox);
    offer(&server, OF_THE_FIRST);
    let first = format!("far:{}", sandbox.path("a").display());
    let far_rsh = server.rsh.replace("--rsh=", "--far-rsh=");
    (sandbox, server, [first, there, far_rsh])
}

/// Two other hosts: the programs are started at the first, by the Carrack that is installed there.
#[test]
fn peers_between_two_other_hosts_are_started_at_the_first() {
    let (sandbox, server, [first, there, far_rsh]) = between_two();
    let tree = sandbox.path("tree");
    for number in 0..5 {
        sandbox.write(format!("tree/f{number}"), vec![b'x'; 1000 * number]);
    }
    let tree = format!("--tree={}", tree.display());
    let some = ["--json", "--size=1M", "--runs=1", "--sessions=1", "--tool=carrack,scp,rsync"];
    let line = [&["bench", "peers", &first, &there, &server.rsh, &far_rsh, &tree], &some[..]].concat();
    let ran = sandbox.ok(&line);
    let told = rows(&ran);
    for name in ["carrack", "scp", "rsync"] {
        assert_eq!(measured(&told, name).count(), 2, "{name}: {}{}", ran.stdout, ran.stderr);
    }
    let sum = measured(&told, "carrack").map(|row| row["values"]["bytes"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(sum, [1 << 20, 10_000], "{}", ran.stdout);
    assert_eq!(ran.summary()["target"], format!("{first} {there}"));
    nothing_stays(&sandbox);
    let shown = sandbox.ok(["bench", "show"]).stdout;
    assert!(shown.contains("one file of 1M") && shown.contains("carrack"), "{shown}");
    // What goes wrong there is told by its host, and interrupted it leaves nothing.
    let gone = format!("far:{}", sandbox.path("none").display());
    sandbox
        .run([&["bench", "peers", &gone, &there, &server.rsh, &far_rsh], &some[..]].concat())
        .failed_with(11, &["far: "]);
    let mut command = sandbox.carrack();
    let long = ["--size=64M", "--files=0", "--runs=99", "--no-keep", "--tool=carrack,scp"];
    command.args(["bench", "peers", &first, &there, &server.rsh, &far_rsh]).args(long);
    let mut running = Running::start(&mut command);
    wait_until("it has begun there", || !content(&sandbox.path("a")).is_empty() || !running.is_running());
    signal(running.id(), "INT");
    let ran = running.end();
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    wait_until("nothing stays", || content(&sandbox.path("a")).is_empty() && content(&sandbox.path("b")).is_empty());
}

/// What the first host has told before it goes away is kept, and what may be left there is said.
#[test]
fn peers_between_two_other_hosts_keep_what_they_have_when_the_first_is_lost() {
    let (sandbox, server, [first, there, far_rsh]) = between_two();
    let mut command = sandbox.carrack();
    let out = sandbox.path("told");
    command.args(["bench", "peers", &first, &there, &server.rsh, &far_rsh, "--json", "--size=1M,64M", "--files=0"]);
    command.args(["--sessions=1", "--runs=3", "--tool=carrack"]).stdout(fs::File::create(&out).unwrap());
    let mut child = command.spawn().unwrap();
    let told = || fs::read_to_string(&out).unwrap();
    wait_until("the first row is told", || told().contains("\"type\":\"row\"") || child.try_wait().unwrap().is_some());
    let is_part = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"peers")
            && line.split(|byte| *byte == 0).nth(1) == Some(b"agent")
    };
    for part in at_home_in(&sandbox.path("")).into_iter().filter(is_part) {
        signal(part, "KILL");
    }
    assert_eq!(child.wait().unwrap().code(), Some(10), "{}", told());
    assert!(told().contains(".carrack-ladder-") && told().contains("the connection to it was lost"), "{}", told());
    let shown = sandbox.ok(["bench", "show"]).stdout;
    assert!(shown.contains("one file of 1M") && shown.contains("not everything was measured"), "{shown}");
}

#[test]
fn peers_between_two_other_hosts_refuse_what_is_of_this_one() {
    let sandbox = Sandbox::new();
    for (arguments, words) in [
        (&["carrack://a/d", "b:d"][..], "the first must be one of ssh"),
        (&["a:d", "b:d", "--bind=127.0.0.1"], "is of this host"),
        (&["here", "b:d", "--far-rsh=ssh"], "is of two other hosts"),
    ] {
        sandbox.run([&["bench", "peers"], arguments].concat()).failed_with(2, &[words]);
    }
}

/// cp within a host; and from another directory than memory.
#[test]
fn peers_within_a_host_have_cp_beside_them_warm_and_cold() {
    // On a disk: what lies in memory alone cannot be dropped from it.
    let sandbox = Sandbox::new();
    make_dirs(&sandbox);
    let memory = Sandbox::in_memory();
    make_dirs(&memory);
    let line = ["bench", "peers", "a", "b", "--json", "--size=1M", "--files=0", "--tool=cp", "--cache=cold"];
    let ran = memory.run(line);
    assert!(ran.stdout.contains("stays in memory"), "{}{}", ran.stdout, ran.stderr);
    let some = ["--json", "--size=1M", "--files=20", "--runs=1", "--sessions=1", "--tool=carrack,cp,wget"];
    let ran = sandbox.ok([&["bench", "peers", "a", "b", "--cache=warm,cold"], &some[..]].concat());
    let told = rows(&ran);
    for name in ["carrack", "cp"] {
        let caches: Vec<&Value> = measured(&told, name).map(|row| &row["conditions"]["cache"]).collect();
        assert_eq!(caches, [&Value::Null, &"cold".into(), &Value::Null, &"cold".into()], "{}", ran.stdout);
    }
    assert_eq!(reason(&told, "wget"), "it only fetches: name the other host's directory first");
    let shown = sandbox.ok(["bench", "show"]).stdout;
    assert!(shown.contains("one file of 1M, not in memory") && shown.lines().all(|line| line.chars().count() <= 80));
    nothing_stays(&sandbox);
}

/// What is fetched from a server of HTTP, which is started here; and a source that the other host drops from memory.
#[test]
fn peers_that_fetch_have_wget_beside_them() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox);
    let (server, there) = far(&sandbox);
    offer(&server, &["find", "dd", "wc"]);
    let line = ["bench", "peers", &there, "a", &server.rsh, "--tool=carrack,wget,cp", "--cache=cold"];
    let ran = sandbox.ok([&line[..], &SMALL].concat());
    let told = rows(&ran);
    let names =
        if is_there("wget") && is_there("python3") { &["carrack", "cp", "wget"][..] } else { &["carrack", "cp"] };
    for name in names {
        assert_eq!(measured(&told, name).count(), 4, "{name}: {}{}", ran.stdout, ran.stderr);
    }
    nothing_stays(&sandbox);
    let node = Node::start(&sandbox, "b", &[]);
    let line = ["bench", "peers", &node.at(""), "a", &node.token(), "--tool=carrack", "--cache=cold"];
    sandbox.run([&line[..], &SMALL].concat()).failed_with(2, &["a node does not drop files from memory"]);
}
