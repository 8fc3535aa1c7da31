//! Copies over the user's own ssh, to an `sshd` of the test's own on loopback.

mod push;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::process::{agents, signal};
use crate::support::running::{InTime, Running};
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, b3sum, is_root, mode, program, same_tree, sent_program, tool, tree, wait_until};

/// The words that go with the note that the program is being sent.
const SENDING: &str = "PATH: sending ";

/// How the report says that the bytes travelled, and to what address.
fn link(ran: &Ran) -> (String, String) {
    let link = &ran.summary()["link"];
    let word = |key: &str| link[key].as_str().unwrap().to_owned();
    (word("kind"), word("address"))
}

/// A location below the sandbox on a host.
fn at(sandbox: &Sandbox, host: &str, name: &str) -> String {
    format!("{host}:{}", sandbox.path(name).display())
}

#[test]
fn mixed_tree_travels_out_and_back_and_no_agent_stays() {
    let sandbox = Sandbox::in_memory();
    tree::mixed(&sandbox.path("tree"));
    let far = Sshd::start(&sandbox);
    for encrypt in ["tls", "none"] {
        let (there, back) = (format!("there-{encrypt}"), format!("back-{encrypt}"));
        let out = sandbox.ok(["--json", &far.rsh, "tree", &at(&sandbox, "far", &there), "--encrypt", encrypt]);
        same_tree(&sandbox.path("tree"), &sandbox.path(&there).join("tree"));
        assert_eq!(link(&out).0, "direct");
        assert_eq!(out.summary()["durable"], true);
        let from = at(&sandbox, "far", &format!("{there}/tree/"));
        let home = sandbox.ok(["--json", &far.rsh, &from, &back, "--encrypt", encrypt]);
        same_tree(&sandbox.path("tree"), &sandbox.path(&back));
        assert_eq!(link(&home).0, "direct");
    }
    assert_eq!(sandbox.parts("."), Vec::<std::path::PathBuf>::new());
    wait_until("the agents leave", || agents(&sandbox.path("")).is_empty());
    assert_eq!(far.cached(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn first_copy_makes_directories_as_any_other_does() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let modes = ["first", "second"].map(|parent| {
        sandbox.ok([&far.rsh, "file", &at(&sandbox, "far", &format!("{parent}/there"))]);
        mode(&sandbox.path(parent))
    });
    assert_eq!(modes[0], modes[1], "{modes:?}");
}

#[test]
fn ctrl_c_ends_a_connection_that_is_not_made_yet() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let said = sandbox.path("said");
    let directives = forced(&sandbox, &format!("echo started >{}; exec /bin/sleep 600", said.display()));
    let far = Sshd::with(&sandbox, &Setup { directives: &directives, ..Setup::default() });
    for (name, code) in [("INT", 20), ("TERM", 75)] {
        let mut command = sandbox.carrack();
        let mut running = Running::start(command.args([&far.rsh, "file", &at(&sandbox, "far", "there")]));
        wait_until("the login has begun", || said.exists());
        signal(running.id(), name);
        wait_until("the command ends", || !running.is_running());
        running.end().failed_with(code, &["run the same command again"]);
        std::fs::remove_file(&said).unwrap();
    }
}

/// A run that is given up while it logs in takes its ssh with it, also one that does not end when it is asked to.
#[test]
fn deadline_in_the_middle_of_a_login_leaves_no_ssh_behind() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    for ignoring in ["", "trap '' TERM; "] {
        let hangs = sandbox.write("hangs", format!("#!/bin/sh\n{ignoring}echo $$ >started\nexec sleep 600\n"));
        std::fs::set_permissions(&hangs, PermissionsExt::from_mode(0o755)).unwrap();
        let rsh = format!("--rsh={}", hangs.display());
        let start = Instant::now();
        sandbox.run([&rsh, "--deadline=2s", "file", "far:x"]).failed_with(30, &["--deadline is over"]);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        let started = std::fs::read_to_string(sandbox.path("started")).expect("it has begun to log in");
        assert!(!Path::new("/proc").join(started.trim()).exists(), "{ignoring}{started}");
    }
}

/// A script in the sandbox for `ForceCommand`, which sshd hands to the login shell.
fn forced(sandbox: &Sandbox, script: &str) -> String {
    let path = sandbox.write("forced", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    format!("ForceCommand {}", path.display())
}

#[test]
fn login_shell_output_before_the_greeting_is_skipped() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let noise = r#"
printf 'Welcome to the cluster!\r\n\n\033[31mMaintenance on Monday\033[0m\n'
printf 'carrack-agent 0123456789abcdef0123456789abcdef 1 0.1.0\ncarrack-need 00 Linux x86_64\ncarrack-missing\n'
i=0; while [ $i -lt 500 ]; do echo "line $i of a long message of the day, and nobody reads it"; i=$((i+1)); done
printf 'carrack-agent'
exec /bin/sh -c "$SSH_ORIGINAL_COMMAND""#;
    let directives = forced(&sandbox, noise);
    for (name, has_agent) in [("with", true), ("without", false)] {
        let far = Sshd::with(&sandbox, &Setup { name, directives: &directives, has_agent, ..Setup::default() });
        sandbox.ok([&far.rsh, "tree/", &at(&sandbox, name, name)]);
        same_tree(&sandbox.path("tree"), &sandbox.path(name));
    }
}

#[test]
fn login_that_prints_without_end_is_given_up() {
    let sandbox = Sandbox::new();
    let directives = forced(&sandbox, "while :; do echo noise noise noise noise noise noise noise noise; done");
    let far = Sshd::with(&sandbox, &Setup { directives: &directives, ..Setup::default() });
    let ran = sandbox.run([&far.rsh, &at(&sandbox, "far", "file"), "here"]);
    ran.failed_with(10, &["far: ", "its login shell printed more than 256 KiB"]);
}

#[test]
fn account_that_does_not_run_commands_is_recognised() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let cases = [
        ("sftp", "ForceCommand internal-sftp", "sftp connections only"),
        ("silent", "ForceCommand /bin/sleep 600", "no agent has spoken after 3 s"),
        ("false", "ForceCommand /bin/false", "exit code 1"),
        ("away", "ForceCommand echo go away", "go away"),
    ];
    for (name, directives, words) in cases {
        let far = Sshd::with(&sandbox, &Setup { name, directives, ..Setup::default() });
        let ran = sandbox.run([&far.rsh, "--connect-timeout=3s", "file", &at(&sandbox, name, "there")]);
        ran.failed_with(10, &[name, words, "forced command"]);
    }
    assert!(!sandbox.path("there").exists());
}

/// Runs a copy to a host by this ssh; how it ended, and whether it was tried again.
fn tried(sandbox: &Sandbox, rsh: &str, host: &str) -> (Ran, bool) {
    let _ = std::fs::remove_file(sandbox.path("log"));
    let ran = sandbox.run([rsh, "--log-file=log", "file", &at(sandbox, host, "there")]);
    let again = std::fs::read_to_string(sandbox.path("log")).unwrap().contains("trying again");
    (ran, again)
}

#[test]
fn host_that_ssh_does_not_trust_is_told_in_its_words_and_not_tried_again() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    let other = std::fs::read_to_string(sandbox.path("user_key.pub")).unwrap();
    let known = sandbox.write("other_hosts", format!("carrack-test {other}"));
    let changed = format!("UserKnownHostsFile={}", known.display());
    tool(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(sandbox.path("wrong_key")));
    let wrong_key = format!("IdentityFile={}", sandbox.path("wrong_key").display());
    let cases = [
        (changed.as_str(), ["REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed"]),
        ("UserKnownHostsFile=/dev/null", ["host key is known", "Host key verification failed"]),
        ("PubkeyAuthentication=no", ["Permission denied (publickey)", "an ssh to that host by hand"]),
        (wrong_key.as_str(), ["Permission denied (publickey)", "an ssh to that host by hand"]),
    ];
    for (option, words) in cases {
        // What is said first counts: in front of the file that says otherwise.
        let rsh = far.rsh.replace("--rsh=ssh", &format!("--rsh=ssh -o {option}"));
        let rsh = if option == wrong_key { without_key(&sandbox, &rsh) } else { rsh };
        let (ran, again) = tried(&sandbox, &rsh, "far");
        ran.failed_with(77, &["far: ssh could not connect", words[0], words[1]]);
        assert!(!again, "{option}");
    }
    assert!(!sandbox.path("there").exists());
}

/// The same ssh with a configuration that names no key: those of options would only be added.
fn without_key(sandbox: &Sandbox, rsh: &str) -> String {
    let config = std::fs::read_to_string(sandbox.path("far.ssh_config")).unwrap();
    let lines: Vec<&str> = config.lines().filter(|line| !line.contains("IdentityFile")).collect();
    let path = sandbox.write("keyless.ssh_config", lines.join("\n") + "\n");
    rsh.replace(&sandbox.path("far.ssh_config").display().to_string(), &path.display().to_string())
}

#[test]
fn host_that_cannot_be_reached_may_be_later_and_one_without_a_name_may_not() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    // A port that was free a moment ago.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (ran, again) = tried(&sandbox, &format!("{} -p {closed}", far.rsh), "far");
    ran.failed_with(10, &["Connection refused", "ssh could not connect"]);
    assert!(again);

    // No name server is asked for a name with an empty part.
    let (ran, again) = tried(&sandbox, &far.rsh, "no..host");
    ran.failed_with(10, &["no..host: ssh could not connect", "Could not resolve hostname", "Check the name"]);
    assert!(!again);
    let ran = sandbox.run(["--json", "--log-file=log", "file", "carrack://no..host/there"]);
    ran.failed_with(10, &["no..host"]);
    assert_eq!(ran.summary()["error"]["code"], "host-unknown");

    let ran = sandbox.run(["--rsh=/no/such/program", "file", "far:there"]);
    ran.failed_with(10, &["/no/such/program: cannot be started", "No such file"]);
    assert!(!sandbox.path("there").exists());
}

#[test]
fn ssh_that_cannot_read_its_configuration_is_not_tried_again() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let bad = sandbox.write("bad_config", "Host *\n  Nonsense yes\n");
    for rsh in [format!("--rsh=ssh -F {}", bad.display()), "--rsh=ssh -o Nonsense=yes".into(), "--rsh=ssh -%".into()] {
        let (ran, again) = tried(&sandbox, &rsh, "far");
        ran.failed_with(2, &["far: ssh could not connect", "Not tried again"]);
        assert!(!again, "{rsh}");
    }
}

#[test]
fn start_up_file_that_ends_the_shell_is_named_as_a_cause() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let directives = forced(&sandbox, "set -e; false; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"");
    let far = Sshd::with(&sandbox, &Setup { directives: &directives, ..Setup::default() });
    let ran = sandbox.run([&far.rsh, "file", &at(&sandbox, "far", "there")]);
    ran.failed_with(10, &["exit code 1", "start-up file of the shell (.bashrc, .zshenv, .cshrc)"]);
}

/// Whatever the connection has carried by then, whoever reads of it learns which host it was and that it ended.
#[test]
fn ssh_that_ends_early_is_told_as_a_lost_connection() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    let ssh = far.rsh.strip_prefix("--rsh=").unwrap();
    for bytes in [0, 1, 40, 75, 100, 200] {
        // What it has brought by then is handed on, and then it is killed.
        let script = format!(
            "#!/usr/bin/env python3\n\
            import os, shlex, signal, subprocess, sys\n\
            ssh = subprocess.Popen(shlex.split({ssh:?}) + sys.argv[1:], stdout=subprocess.PIPE)\n\
            left = {bytes}\n\
            while left > 0 and (more := os.read(ssh.stdout.fileno(), left)):\n    \
                os.write(1, more)\n    \
                left -= len(more)\n\
            ssh.kill()\n\
            os.kill(os.getpid(), signal.SIGKILL)\n"
        );
        let path = sandbox.write("cut", script);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let rsh = format!("--rsh={}", path.display());
        let ran = sandbox.run([&rsh, "--retries=0", "file", &at(&sandbox, "far", "there")]);
        ran.failed_with(10, &["far: "]);
        let said = &ran.stderr;
        assert!(said.contains("ended") || said.contains("lost"), "{bytes}: {said}");
        assert!(!said.contains("fill whole buffer"), "{bytes}: {said}");
    }
    assert!(!sandbox.path("there").exists());
}

#[test]
fn host_may_be_named_in_any_way_that_ssh_understands() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    let user = tool(Command::new("id").arg("-un"));
    let user = user.trim();
    // No resolver knows a name for 127.0.0.77, and nobody asks for one.
    let hosts = [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("127.0.0.77", "127.0.0.77"),
        ("far", "127.0.0.1"),
        (&format!("{user}@127.0.0.2"), "127.0.0.2"),
        (&format!("{user}@[::1]"), "[::1]"),
        // As bbcp writes it: `host::path`.
        ("far:", "127.0.0.1"),
    ];
    for (number, (host, address)) in hosts.into_iter().enumerate() {
        let there = format!("there-{number}");
        let ran = sandbox.ok(["--json", &far.rsh, "file", &at(&sandbox, host, &there)]);
        assert_eq!(std::fs::read_to_string(sandbox.path(there)).unwrap(), "content", "{host}");
        let (kind, to) = link(&ran);
        assert_eq!((kind.as_str(), to.rsplit_once(':').unwrap().0), ("direct", address), "{host}");
    }
    sandbox.ok([&far.rsh, "file", "far:~/at-home"]);
    assert_eq!(std::fs::read_to_string(far.home.join("at-home")).unwrap(), "content");
}

#[test]
fn data_goes_to_the_ports_and_the_address_asked_for() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    // The first port of the range is taken: the next that is free is used.
    let taken = loop {
        let socket = std::net::TcpListener::bind("[::]:0").unwrap();
        if socket.local_addr().unwrap().port() < 65_000 {
            break socket;
        }
    };
    let low = taken.local_addr().unwrap().port();
    let ports = format!("--ports={low}-{}", low + 50);
    let to = at(&sandbox, "far", "there");
    let ran = sandbox.ok(["--json", &far.rsh, &ports, "--data-address=127.0.0.2", "file", &to]);
    let (kind, address) = link(&ran);
    let (host, port) = address.rsplit_once(':').unwrap();
    assert_eq!((kind.as_str(), host), ("direct", "127.0.0.2"));
    assert!((low + 1..=low + 50).contains(&port.parse().unwrap()), "{address} {low}");

    // No port at all is free: the copy is made nevertheless, and why it goes where it goes is said.
    let ports = format!("--ports={low}-{low}");
    let ran = sandbox.ok(["--json", &far.rsh, &ports, "file", &to]);
    assert_eq!(link(&ran).0, "tunnel");
    assert!(ran.stdout.contains(&format!("ports {low}-{low}")), "{}", ran.stdout);
}

#[test]
fn bytes_between_two_hosts_go_straight_from_one_to_the_other() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let left = Sshd::with(&sandbox, &Setup { name: "left", addresses: &["127.0.0.1"], ..Setup::default() });
    let right = Setup { name: "right", addresses: &["127.0.0.2"], has_agent: false, ..Setup::default() };
    let right = Sshd::with(&sandbox, &right);
    let ran = sandbox.ok(["--json", &left.rsh, &at(&sandbox, "left", "tree"), &at(&sandbox, "right", "there")]);
    same_tree(&sandbox.path("tree"), &sandbox.path("there/tree"));
    let (kind, address) = link(&ran);
    assert_eq!(kind, "direct");
    assert!(address.starts_with("127.0.0.2:"), "{address}");
    assert_eq!((left.cached().len(), right.cached().len()), (0, 1));
    // Nothing on the way that could be a way for the bytes: not even this host's own.
    let ran = sandbox.ok([
        "--json",
        &left.rsh,
        "--link=tunnel",
        &at(&sandbox, "left", "tree/"),
        &at(&sandbox, "right", "by"),
    ]);
    same_tree(&sandbox.path("tree"), &sandbox.path("by"));
    assert_eq!(link(&ran), ("tunnel".to_owned(), String::new()));
    assert_eq!(ran.summary()["link"]["cipher"], "inside ssh and ssh");
}

#[test]
fn links_can_each_be_asked_for() {
    let sandbox = Sandbox::in_memory();
    tree::mixed(&sandbox.path("tree"));
    let far = Sshd::start(&sandbox);
    for kind in ["direct", "reverse", "tunnel"] {
        let (there, back) = (format!("there-{kind}"), format!("back-{kind}"));
        let out = sandbox.ok(["--json", &far.rsh, "--link", kind, "tree/", &at(&sandbox, "far", &there)]);
        let home = sandbox.ok(["--json", &far.rsh, "--link", kind, &at(&sandbox, "far", &format!("{there}/")), &back]);
        same_tree(&sandbox.path("tree"), &sandbox.path(&there));
        same_tree(&sandbox.path("tree"), &sandbox.path(&back));
        assert_eq!((link(&out).0.as_str(), link(&home).0.as_str()), (kind, kind));
    }
}

/// The first bytes of a tunnel follow the request that opens it so closely that they could meet
/// an end that is not ready.
#[test]
fn tunnel_is_there_before_its_first_bytes() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (sandbox, far) = (&sandbox, &far);
            scope.spawn(move || {
                for copy in 0..4 {
                    let there = at(sandbox, "far", &format!("there-{thread}-{copy}"));
                    let mut command = sandbox.carrack();
                    let mut running = Running::start(command.args([&far.rsh, "--link=tunnel", "file", &there]));
                    wait_until("the tunnel works", || !running.is_running());
                    assert_eq!(running.end().code, 0);
                }
            });
        }
    });
}

#[test]
fn name_is_never_an_option_or_a_command() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    let canary = sandbox.path("canary");
    let hosts = [
        "-oProxyCommand=touch canary",
        "-oProxyCommand=touch${IFS}canary",
        "-Fcanary",
        "--",
        "$(touch canary)",
        "`touch canary`",
        "far;touch canary",
        "far|touch canary",
        "far\ntouch canary",
        "-oProxyCommand=touch canary@far",
        "$(touch canary)@far",
        "far&touch canary",
        "'far",
        "",
    ];
    for host in hosts {
        for arguments in [["file", &format!("{host}:there")], [&format!("{host}:/etc/hostname"), "here"]] {
            let mut command = sandbox.carrack();
            // After `--`, so that it is a location whatever it looks like.
            let output = command.arg(&far.rsh).arg("--").args(arguments).output_in_time().unwrap();
            let ran = crate::support::ran(output);
            ran.failed_with(2, &["error"]);
            assert!(!canary.exists() && !far.home.join("canary").exists(), "{host:?}");
        }
    }
    assert!(!sandbox.path("here").exists());
}

#[test]
fn path_is_taken_by_the_far_side_as_it_was_typed() {
    let sandbox = Sandbox::in_memory();
    let far = Sshd::start(&sandbox);
    let names = [
        "it's",
        "two  spaces ",
        "new\nline",
        "$(touch canary)",
        "`touch canary`",
        "; touch canary",
        "\"quoted\" \\ back",
        "*",
        "~",
        "$HOME",
        "-rf",
        "a:b",
        "\u{fc}ml\u{e4}ut",
        "!history",
        "%41",
    ];
    // One directory in the other: each is a part of the path that is typed.
    let path = format!("there/{}/file", names.join("/"));
    sandbox.write("file", "content");
    sandbox.ok([&far.rsh, "file", &at(&sandbox, "far", &path)]);
    assert_eq!(std::fs::read_to_string(sandbox.path(&path)).unwrap(), "content");
    let below = tree::walk(&sandbox.path("there"));
    assert_eq!(below.len(), names.len() + 1, "{below:?}");
    sandbox.ok([&far.rsh, &at(&sandbox, "far", &path), "back"]);
    assert_eq!(std::fs::read_to_string(sandbox.path("back")).unwrap(), "content");
    assert!(!far.home.join("canary").exists() && !sandbox.path("canary").exists());
}

#[test]
fn leftovers_are_collected_where_they_are() {
    let sandbox = Sandbox::new();
    let far = Sshd::start(&sandbox);
    let left = sandbox.write("there/.carrack-00112233aabbccdd.marker", "");
    std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o600)).unwrap();
    sandbox.write("there/data", "stays");
    let there = at(&sandbox, "far", "there");
    assert_eq!(sandbox.ok(["gc", &far.rsh, &there]).stdout, "");
    let gone = sandbox.ok(["gc", "--older-than", "0s", &far.rsh, &there]).stdout;
    assert_eq!(gone.trim_end(), left.to_str().unwrap());
    assert!(!left.exists() && sandbox.path("there/data").exists());
}
