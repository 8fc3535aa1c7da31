//! `carrack fan`: a command on many hosts behind a real sshd, what becomes of it at each, and that nothing stays.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::process::{at_home_in, signal};
use crate::support::running::Running;
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, wait_until};

/// Commands at the far side that nothing ends but a signal.
fn sleepers(sshd: &Sshd) -> usize {
    let is_sleep = |pid: &u32| fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"sleep\n");
    at_home_in(&sshd.home).iter().filter(|pid| is_sleep(pid)).count()
}

#[test]
fn fan_names_each_host_where_it_did_not_go_well() {
    let sandbox = Sandbox::new();
    let sshd = Sshd::start(&sandbox);
    // One of them has no server.
    let command = "case $SSH_CONNECTION in *' 127.0.0.2 '*) echo broken >&2; exit 3;; esac; echo \"it's $((40+2))\"";
    let ran = sandbox.run(["fan", &sshd.rsh, "127.0.0.[1-2],127.0.0.9", "far", "--", command]);
    ran.failed_with(
        23,
        &["127.0.0.2: broken\n", "  127.0.0.2: exit 3\n", "  127.0.0.9: unreachable: ", "2 of 4 hosts"],
    );
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["127.0.0.1: it's 42", "far: it's 42"]);
    // Words are joined as ssh joins them, and the far shell reads them.
    let json = sandbox.ok(["fan", &sshd.rsh, "far", "--json", "--", "echo", "$HOME", "&&", "wc", "-c"]);
    let host: Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&host["host"], &host["outcome"], &host["code"]), (&"far".into(), &"exited".into(), &0.into()));
    assert_eq!(host["stdout"], format!("{}\n0\n", sshd.home.display()));
    assert_eq!((&json.summary()["done"], &json.summary()["failed"]), (&1.into(), &0.into()));
    // Nobody at all.
    assert_eq!(sandbox.run(["fan", &sshd.rsh, "127.0.0.[8-9]", "--", "true"]).code, 10);
}

#[test]
fn fan_keeps_what_each_host_says_in_a_directory() {
    let sandbox = Sandbox::new();
    let sshd = Sshd::start(&sandbox);
    let line = "printf 'a\\033[2J\\377'; echo err >&2";
    let ran = sandbox.ok(["fan", &sshd.rsh, "127.0.0.[1-2]", "--output=said/new", "--", line]);
    assert!(ran.stdout.is_empty() && !ran.stderr.contains("err\n"), "{}{}", ran.stdout, ran.stderr);
    for host in ["127.0.0.1", "127.0.0.2"] {
        let of = |end: &str| fs::read(sandbox.path(format!("said/new/{host}.{end}"))).unwrap();
        assert_eq!((of("out"), of("err")), (b"a\x1b[2J\xff".to_vec(), b"err\n".to_vec()));
    }
    // A terminal shows it without being driven.
    let shown = sandbox.ok(["fan", &sshd.rsh, "far", "--", line]);
    assert_eq!(shown.stdout, "far: a\\x1b[2J\\xff\n");
}

#[test]
fn fan_runs_on_so_many_hosts_at_a_time() {
    let sandbox = Sandbox::new();
    let sshd = Sshd::start(&sandbox);
    let lock = sandbox.path("lock").display().to_string();
    // Two at a time would meet.
    let command = format!("mkdir {lock} || exit 9; /bin/sleep 0.3; rmdir {lock}");
    sandbox.ok(["fan", &sshd.rsh, "127.0.0.[1-2] far", "--at-once=1", "--", &command]);
    let meet = format!("touch {lock}.$$; while [ $(ls {lock}.* | wc -l) -lt 3 ]; do /bin/sleep 0.02; done");
    fs::remove_file(sshd.bin.join("touch")).ok();
    std::os::unix::fs::symlink("/usr/bin/touch", sshd.bin.join("touch")).unwrap();
    // Three that wait for each other end only if all run at a time.
    sandbox.ok(["fan", &sshd.rsh, "127.0.0.[1-2] far", "--at-once=3", "--timeout=60s", "--", &meet]);
}

#[test]
fn fan_ends_commands_with_their_time_and_with_a_signal() {
    let sandbox = Sandbox::new();
    let sshd = Sshd::start(&sandbox);
    let command = "/bin/sleep 600; echo never";
    // A busy host needs longer until its commands run.
    let timed_out = |time: &&str| {
        let late = sandbox.run(["fan", &sshd.rsh, "127.0.0.[1-2]", time, "--", command]);
        let both = ["127.0.0.1", "127.0.0.2"].iter().all(|host| late.stderr.contains(&format!("  {host}: timed out")));
        assert!(!both || late.code == 23, "{}", late.stderr);
        both
    };
    assert!(["--timeout=500ms", "--timeout=3s", "--timeout=20s"].iter().any(timed_out));
    wait_until("commands whose time is over have ended", || sleepers(&sshd) == 0);
    for (name, code) in [("INT", 20), ("TERM", 75)] {
        let mut line = sandbox.carrack();
        line.args(["fan", &sshd.rsh, "127.0.0.[1-2] far", "--at-once=2", "--", command]);
        let running = Running::start(&mut line);
        wait_until("the command runs on two hosts", || sleepers(&sshd) == 2);
        signal(running.id(), name);
        let ran = running.end();
        ran.failed_with(code, &["  127.0.0.1: stopped", "  far: not started", "0 of 3 hosts"]);
        assert!(!ran.stdout.contains("never"), "{}", ran.stdout);
        wait_until("commands end with what started them", || sleepers(&sshd) == 0);
    }
    // A command that is killed cannot tell the far side; the connection's end does.
    let mut line = sandbox.carrack();
    line.args(["fan", &sshd.rsh, "far", "--", command]);
    let running = Running::start(&mut line);
    wait_until("the command runs", || sleepers(&sshd) == 1);
    drop(running);
    wait_until("a command ends with its connection", || sleepers(&sshd) == 0);
}

#[test]
fn fan_hands_no_option_to_ssh() {
    let sandbox = Sandbox::new();
    let sshd = Sshd::start(&sandbox);
    let pwned = sandbox.path("pwned");
    let touch = format!("-oProxyCommand=touch${{IFS}}{}", pwned.display());
    for hosts in [format!("far,{touch}"), format!("me@{touch}"), format!("{touch}@far"), "far;id".to_owned()] {
        let ran = sandbox.run(["fan", &sshd.rsh, &hosts, "--", "true"]);
        assert_eq!(ran.code, 2, "{hosts}: {}", ran.stderr);
    }
    assert!(!pwned.exists());
    for wrong in
        [&["fan", "far"][..], &["fan", "--", "true"], &["fan", "c[1", "--", "true"], &["fan", "c[1-9999]", "--", "x"]]
    {
        assert_eq!(sandbox.run(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn fan_waits_no_longer_for_a_silent_host_than_it_is_told() {
    let sandbox = Sandbox::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let rsh = format!("--rsh=ssh -F /dev/null -p {} -o StrictHostKeyChecking=no", silent.local_addr().unwrap().port());
    let began = std::time::Instant::now();
    let ran = sandbox.run(["fan", &rsh, "127.0.0.1", "--connect-timeout=500ms", "--", "true"]);
    ran.failed_with(10, &["  127.0.0.1: unreachable"]);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(Path::new(&sandbox.path("home")).exists());
}
