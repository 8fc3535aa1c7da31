//! `carrack bench load`: a crowd at a node and at other servers, from here and from other hosts; its counts through a
//! relay that refuses and cuts; and that nothing stays.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use carrack_faults::proxy::Proxy;
use serde_json::Value;

use crate::support::browser::{Look, open};
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, b3sum, sent_program, wait_until};

fn rows(ran: &Ran, name: &str) -> Vec<Value> {
    let all = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|object| object["type"] == "row" && object["name"] == name).collect()
}

/// A count of a row.
#[track_caller]
fn count(row: &Value, name: &str) -> u64 {
    row["values"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {row}"))
}

fn content(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A directory of the clients, which must be empty in the end.
fn scratch(sandbox: &Sandbox) -> String {
    fs::create_dir_all(sandbox.path("scratch")).unwrap();
    format!("--scratch={}", sandbox.path("scratch").display())
}

#[track_caller]
fn nothing_stays(sandbox: &Sandbox, root: &str) {
    assert_eq!(content(&sandbox.path(root)), Vec::<String>::new());
    assert_eq!(content(&sandbox.path("scratch")), Vec::<String>::new());
}

#[test]
fn load_of_a_hundred_clients_finds_every_file_whole() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let arguments = ["--clients=100", "--files=10", "--size=16K", "--direction=put"];
    let scratch = scratch(&sandbox);
    let ran =
        sandbox.ok([&["bench", "load", &node.at(""), &node.token(), &scratch, "--json"], &arguments[..]].concat());
    let put = &rows(&ran, "put")[0];
    assert_eq!(["files", "whole"].map(|name| count(put, name)), [1000, 1000], "{put}");
    for name in ["short", "wrong", "missing", "silent", "failed", "timed_out"] {
        assert_eq!(count(put, name), 0, "{name}: {put}");
    }
    assert_eq!((count(put, "bytes"), &put["latency"]["count"]), (1000 * (16 << 10), &1000.into()));
    let jain = put["values"]["jain"].as_f64().unwrap();
    assert!(jain > 0.0 && jain <= 1.0, "{put}");
    let seconds = |name: &str| put["values"][name].as_f64().unwrap();
    assert!(seconds("first_done_seconds") > 0.0 && seconds("first_done_seconds") <= seconds("seconds"), "{put}");
    let clients = rows(&ran, "client");
    assert!(clients.len() == 100 && clients.iter().all(|client| count(client, "whole") == 10));
    // Every file of which something is to be said was carried again, and is whole.
    assert_eq!(rows(&ran, "file").len() as u64 > 0, count(put, "repeated") > 0);
    nothing_stays(&sandbox, "root");
}

#[test]
fn load_both_ways_is_kept_and_shown_as_table_and_page() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let (place, token, scratch) = (node.at("."), node.token(), scratch(&sandbox));
    let crowd =
        ["bench", "load", &place, &token, &scratch, "--clients=8", "--files=4", "--size=2M", "--direction=both"];
    let shown = sandbox.ok([&crowd[..], &["--html=page.html", "--link=direct", "--streams=1"]].concat());
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 80), "{}", shown.stdout);
    assert_eq!(shown.stdout.matches("16 of 16 whole, 0 short, 0 wrong, 0 missing").count(), 2, "{}", shown.stdout);
    nothing_stays(&sandbox, "root");
    let again = sandbox.ok([&crowd[..], &["--json"]].concat());
    assert_eq!(rows(&again, "get").iter().map(|row| count(row, "whole")).collect::<Vec<_>>(), [16]);
    assert_eq!(again.summary()["kind"], "load");
    let table = sandbox.ok(["bench", "show"]).stdout;
    assert!(table.contains("load: carrack://127.0.0.1:") && !table.contains("sha256"), "{table}");
    let diff = sandbox.ok(["bench", "diff"]).stdout;
    assert!(diff.contains("put 4x4 of 2M") && !diff.contains("client"), "{diff}");
    let page = fs::read(sandbox.path("page.html")).unwrap();
    let text = String::from_utf8(page.clone()).unwrap();
    for title in
        ["Files sent", "Files fetched", "Clients at work", "What each client sends a second", "Time of one file"]
    {
        assert!(text.contains(title), "{title}");
    }
    let (light, dark) = ([[0xf6, 0xf7, 0xf8], [0x0b, 0x62, 0xa8]], [[0x12, 0x14, 0x17], [0x63, 0xb3, 0xf4]]);
    for (is_dark, width, colours) in [(false, 1200, light), (true, 700, dark)] {
        let look = Look { dark: is_dark, width };
        let opened = open(&sandbox, page.clone(), look);
        assert!(opened.requests.iter().all(|request| request.starts_with("GET / ") || request.contains("favicon")));
        assert!(opened.console.is_empty(), "{:?}", opened.console);
        for (colour, least) in colours.into_iter().zip([20_000, 300]) {
            let pixels = opened.picture.count(colour);
            assert!(pixels > least, "{look:?}: {pixels} pixels of {colour:?}");
        }
    }
}

/// Connections of the crowd at a relay are those behind the command's own two.
const OWN: usize = 2;

/// A crowd through a relay, which refuses some of its connections and cuts others in the middle of a file. Each copy
/// has one connection. Tells the row, and how many were refused and cut.
fn disturbed(sandbox: &Sandbox, retries: &str) -> (Ran, u64, u64) {
    let node = Node::start(sandbox, "root", &[]);
    let relay = Proxy::start(node.address.parse().unwrap());
    relay.rate(Some(20 << 20));
    let place = format!("carrack://{}/{}", relay.address(), node.fingerprint);
    let mut line = sandbox.carrack();
    line.args(["bench", "load", &place, &node.token(), &scratch(sandbox), "--json", "--link=tunnel", retries]);
    line.args(["--clients=12", "--files=2", "--size=3M", "--timeout=5m"]);
    let running = Running::start(&mut line);
    wait_until("the command has its own connections", || relay.connections().len() >= OWN);
    relay.refuse_next(5);
    let mut cut = 0;
    wait_until("four connections are cut in the middle of a file", || {
        for (at, one) in relay.connections().iter().enumerate().skip(OWN) {
            if cut < 4 && one.open && one.up > 600 << 10 && one.up < 2 << 20 {
                cut += u64::from(relay.reset(at));
            }
        }
        cut == 4
    });
    relay.rate(None);
    let ran = running.end();
    let made = relay.made();
    assert_eq!((made.refused, made.resets), (5, 4));
    (ran, made.refused, made.resets)
}

#[test]
fn load_through_a_relay_counts_what_is_refused_and_cut() {
    let sandbox = Sandbox::new();
    let (ran, refused, cut) = disturbed(&sandbox, "--retries=0");
    assert_eq!((ran.code, &ran.summary()["exit_code"]), (23, &23.into()), "{}{}", ran.stdout, ran.stderr);
    let put = &rows(&ran, "put")[0];
    let counts = ["files", "whole", "missing", "refused", "lost", "repeated"].map(|name| count(put, name));
    assert_eq!(counts, [24, 24 - refused - cut, refused + cut, refused, cut, 0], "{put}");
    // By file, each with what its client was told.
    let files = rows(&ran, "file");
    let sum = |name: &str| files.iter().map(|file| count(file, name)).sum::<u64>();
    assert_eq!((files.len() as u64, sum("refused"), sum("lost")), (refused + cut, refused, cut));
    assert!(files.iter().all(|file| file["conditions"]["fate"] == "missing" && file["error"].is_string()), "{files:?}");
    let whole: u64 = rows(&ran, "client").iter().map(|client| count(client, "whole")).sum();
    assert_eq!(whole, 24 - refused - cut);
    nothing_stays(&sandbox, "root");
}

#[test]
fn load_through_a_relay_counts_what_is_repeated() {
    let sandbox = Sandbox::new();
    let (ran, refused, cut) = disturbed(&sandbox, "--retries=5");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let put = &rows(&ran, "put")[0];
    let counts = ["files", "whole", "missing", "refused", "lost", "repeated"].map(|name| count(put, name));
    assert_eq!(counts, [24, 24, 0, refused, cut, refused + cut], "{put}");
    nothing_stays(&sandbox, "root");
}

/// A running `rsync --daemon` with one module; ended when dropped.
struct Rsyncd(Child, u16);

impl Rsyncd {
    fn start(sandbox: &Sandbox) -> Self {
        fs::create_dir_all(sandbox.path("module")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let user = if crate::support::is_root() { "uid = 0\ngid = 0\n" } else { "" };
        let module = sandbox.path("module");
        let text = format!("{user}use chroot = no\n[data]\npath = {}\nread only = no\n", module.display());
        let config = sandbox.write("rsyncd.conf", text);
        let mut daemon = Command::new("rsync");
        daemon.args(["--daemon", "--no-detach", "--address=127.0.0.1", &format!("--port={port}")]);
        daemon.arg(format!("--config={}", config.display())).stdin(Stdio::null()).stdout(Stdio::null());
        let child = daemon.spawn().expect("rsync: bash tests/install-needs.sh installs it");
        wait_until("the daemon listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self(child, port)
    }
}

impl Drop for Rsyncd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn load_at_another_server_counts_its_losses_in_the_same_way() {
    let sandbox = Sandbox::new();
    let daemon = Rsyncd::start(&sandbox);
    let scratch = scratch(&sandbox);
    let whole = |more: &[&str]| {
        let place = format!("rsync://127.0.0.1:{}/data", daemon.1);
        let fixed = ["bench", "load", &place, "--tool=rsync", &scratch, "--json", "--size=256K", "--no-keep"];
        let ran = sandbox.ok([&fixed[..], &["--clients=6", "--files=3"], more].concat());
        Way::ALL.map(|way| rows(&ran, way).iter().map(|row| count(row, "whole")).sum::<u64>())
    };
    // What was sent is looked at where the daemon keeps it, and is fetched again where nobody can look.
    let check = format!("--check={}", sandbox.path("module").display());
    assert_eq!(whole(&[&check]), [18, 0]);
    assert_eq!(whole(&[&check, "--direction=both"]), [9, 9]);
    nothing_stays(&sandbox, "module");
    assert_eq!(whole(&[]), [18, 0]);
    assert_eq!(content(&sandbox.path("module")).len(), 18, "nobody can remove them there");
    // A relay that cuts every connection after half a file. Written in place, files come short.
    let relay = Proxy::start(([127, 0, 0, 1], daemon.1).into());
    relay.reset_after(Some(2 << 20));
    let place = format!("rsync://{}/data", relay.address());
    let put = "--put=rsync -W --inplace {local} {node}/{name}";
    let line = ["bench", "load", &place, put, &check, &scratch, "--json", "--size=4M", "--no-keep", "--retries=1"];
    let ran = sandbox.run([&line[..], &["--clients=4", "--files=2"]].concat());
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    let row = &rows(&ran, "put")[0];
    let counts = ["files", "whole", "wrong", "repeated", "silent"].map(|name| count(row, name));
    assert_eq!(counts, [8, 0, 0, 8, 0], "{row}");
    // A daemon that is slow to begin may have written nothing of one.
    assert!(count(row, "short") > 0 && count(row, "short") + count(row, "missing") == 8, "{row}");
    assert_eq!(relay.made().resets, 16, "each file was tried twice");
    assert_eq!(count(row, "lost") + count(row, "failed"), 16, "{row}");
    assert!(rows(&ran, "file").iter().all(|file| count(file, "found_bytes") < 4 << 20), "{}", ran.stdout);
}

/// The two ways, by their words.
struct Way;

impl Way {
    const ALL: [&str; 2] = ["put", "get"];
}

#[test]
fn load_from_other_hosts_names_those_that_are_not_there() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    // They have no program, and get one.
    let sshd = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let (place, token, scratch) = (node.at(""), node.token(), scratch(&sandbox));
    let line =
        ["bench", "load", &place, &token, &scratch, &sshd.rsh, "--json", "--clients=8", "--files=2", "--size=64K"];
    let from = ["--from=127.0.0.[1-2] 127.0.0.9 far", "--direction=both", "--observe=127.0.0.1,127.0.0.9"];
    let ran = sandbox.ok([&line[..], &from].concat());
    let note = "\"message\":\"127.0.0.9 takes no part, 2 clients are left out: ";
    assert!(ran.stdout.contains(note), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("127.0.0.9 was not observed"), "{}", ran.stdout);
    for way in Way::ALL {
        let row = &rows(&ran, way)[0];
        assert_eq!((count(row, "files"), count(row, "whole")), (6, 6), "{row}");
    }
    let hosts: Vec<Value> = rows(&ran, "client").iter().map(|row| row["conditions"]["host"].clone()).collect();
    assert_eq!(hosts, ["127.0.0.1", "127.0.0.2", "far", "127.0.0.1", "127.0.0.2", "far"]);
    // What was sent is the slim program, where there is one.
    assert_eq!(sshd.cached().iter().map(|sent| b3sum(sent)).collect::<Vec<_>>(), [b3sum(&sent_program())]);
    nothing_stays(&sandbox, "root");
    // Nobody at all.
    let ran = sandbox.run([&line[..], &["--from=127.0.0.[8-9]"]].concat());
    ran.failed_with(10, &["no host of the crowd could begin; 127.0.0.8"]);
    nothing_stays(&sandbox, "root");
}

/// An ssh command that is a script, whose own ssh holds the pipes when the script has ended, holds nobody up.
#[test]
fn load_observes_by_an_ssh_command_that_is_a_script() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let sshd = Sshd::start(&sandbox);
    let script = format!("#!/bin/sh\n{} \"$@\" | cat\n", sshd.rsh.trim_start_matches("--rsh="));
    let file = sandbox.write("script", script);
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (place, token, scratch) = (node.at(""), node.token(), scratch(&sandbox));
    let rsh = format!("--rsh={}", file.display());
    let line = ["bench", "load", &place, &token, &scratch, &rsh, "--json", "--clients=2", "--files=2", "--size=64K"];
    let ran = sandbox.ok([&line[..], &["--observe=127.0.0.1"]].concat());
    assert_eq!(count(&rows(&ran, "put")[0], "whole"), 4, "{}", ran.stdout);
}

#[test]
fn load_that_is_stopped_or_out_of_time_leaves_nothing() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let sshd = Sshd::start(&sandbox);
    let relay = Proxy::start(node.address.parse().unwrap());
    let place = format!("carrack://{}/{}", relay.address(), node.fingerprint);
    let scratch = scratch(&sandbox);
    let token = node.token();
    let line = ["bench", "load", &place, &token, &scratch, "--json", "--clients=4", "--files=3", "--size=8M"];
    relay.rate(Some(4 << 20));
    let late = sandbox.run([&line[..], &["--timeout=2s"]].concat());
    assert_eq!(late.code, 23, "{}", late.stderr);
    let put = &rows(&late, "put")[0];
    assert_eq!((count(put, "files"), count(put, "whole") + count(put, "missing")), (12, 12), "{put}");
    assert!(count(put, "timed_out") > 0 && count(put, "timed_out") == count(put, "missing"), "{put}");
    relay.rate(None);
    nothing_stays(&sandbox, "root");
    for from in [None, Some("--from=127.0.0.[1-2]")] {
        relay.rate(Some(1 << 20));
        let mut command = sandbox.carrack();
        command.args(line).arg(&sshd.rsh).args(from);
        let before = relay.carried().up;
        let running = Running::start(&mut command);
        wait_until("the crowd is at work", || relay.carried().up > before + (1 << 20));
        signal(running.id(), "INT");
        relay.rate(None);
        let ran = running.end();
        assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
        wait_until("nothing stays", || {
            content(&sandbox.path("root")).is_empty() && content(&sandbox.path("scratch")).is_empty()
        });
    }
}

#[test]
fn load_refuses_what_it_could_not_check() {
    let sandbox = Sandbox::new();
    let refused = |line: &[&str], word: &str| sandbox.run([&["bench", "load"], line].concat()).failed_with(2, &[word]);
    refused(&["here"], "here is no node");
    refused(&["http://far/x"], "takes no http:// addresses");
    refused(&["far", "--put=cp {local} {node}/{name}"], "nothing shows whether what was sent is there");
    refused(&["far", "--get=cp {node}/{name} {local}"], "--get needs --put");
    refused(&["far", "--put=cp {local} x"], "the line lacks {name}");
    refused(&["carrack://far/x", "--check=d"], "--check is for --tool");
    refused(&["carrack://far/x", "--clients=0"], "not a number from 1 to 10000");
    refused(&["carrack://far/x", "--from=c[1"], "bracket");
    refused(&["far:", "--tool=rsync", "--put=x {local} {name}"], "cannot be used with");
}
