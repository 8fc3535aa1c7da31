//! What an operator has: the configuration, the service manager, the log.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::service::{Service, add_endpoints, object};
use crate::support::{Sandbox, wait_until};

/// The first start makes all that it needs; a second service on the same directory is refused.
#[test]
fn serve_needs_nothing_at_its_first_start_and_has_its_directory_to_itself() {
    let sandbox = Sandbox::new();
    let mut service = Service::start(&sandbox, &[]);
    let state = sandbox.path("home/.local/state/carrack/service");
    for name in ["ledger.db", "seal.key", "tls.crt", "tls.key", "tasks", "files", "service.sock"] {
        assert!(state.join(name).exists(), "{name}");
    }
    for name in ["seal.key", "tls.key", "ledger.db"] {
        assert_eq!(crate::support::mode(&state.join(name)) & 0o077, 0, "{name}");
    }
    sandbox
        .run(["serve", "--listen=127.0.0.1:0"])
        .failed_with(10, &["another service uses", "--node-only", "--state-dir"]);
    assert!(object(&sandbox, &["whoami"])["role"] == "admin");
    assert_eq!(service.terminate(), Some(0), "{}", service.log());
    assert!(!state.join("service.sock").exists());
}

#[test]
fn config_is_checked_and_shown_with_where_values_come_from() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("carrack.toml", "[service]\nworkers = 3\n[log]\nformat = \"json\"\n");
    let config = format!("--config={}", path.display());
    sandbox.ok(["service", "config", "check", &config]);
    let shown = sandbox.ok(["service", "config", "show", "--origin", &config]).stdout;
    assert!(shown.contains("workers = 3") && shown.contains("carrack.toml: service.workers"), "{shown}");
    assert!(shown.contains("# listen = \"[::]:7420\"    # default"), "{shown}");
    // What holds, and not the words for it.
    let socket = sandbox.path("home/.local/state/carrack/service/service.sock");
    assert!(shown.contains(&format!("# socket = \"{}\"    # default", socket.display())), "{shown}");
    // It is a configuration: read again, it means the same.
    let again = sandbox.write("again.toml", &shown);
    let again = sandbox.ok(["service", "config", "show", &format!("--config={}", again.display())]).stdout;
    let plain =
        |text: &str| text.lines().map(|line| line.split("    #").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(plain(&again), plain(&shown));
    let mut command = sandbox.carrack();
    command.env("CARRACK_WORKERS", "5").args(["service", "config", "show", "--origin", &config]);
    let shown = String::from_utf8(command.output_in_time().unwrap().stdout).unwrap();
    assert!(shown.contains("workers = 5    # CARRACK_WORKERS"), "{shown}");
    for (text, words) in [
        ("[service]\nworker = 3\n", ["worker", "did you mean workers?"]),
        ("[service]\nworkers = \"many\"\n", ["service.workers", "is not a number"]),
        ("[node]\nlisten = \"nowhere\"\n", ["node.listen", "nowhere"]),
        ("[node\n", ["line 1", "carrack.toml"]),
    ] {
        fs::write(&path, text).unwrap();
        sandbox.run(["service", "config", "check", &config]).failed_with(2, &words);
        sandbox.run(["serve", &config]).failed_with(2, &words);
    }
}

#[test]
fn clients_find_the_socket_wherever_it_was_moved() {
    let sandbox = Sandbox::new();
    let (moved, state) = (sandbox.path("run.sock"), sandbox.path("state"));
    let (moved, state) = (moved.to_str().unwrap(), state.to_str().unwrap());
    let whoami = |variables: &[(&str, &str)]| {
        let mut command = sandbox.carrack();
        command.envs(variables.iter().copied()).arg("whoami");
        command.output_in_time().unwrap().status.code().unwrap()
    };
    // By a flag: its usual place leads there.
    let mut service = Service::start(&sandbox, &["--socket", moved]);
    assert_eq!((whoami(&[]), whoami(&[("CARRACK_SOCKET", moved)])), (0, 0));
    assert_eq!(service.terminate(), Some(0), "{}", service.log());
    assert_eq!(whoami(&[]), 10);
    // A relative path is one of the directory where the service was started.
    let mut service = Service::start(&sandbox, &["--socket", "near.sock"]);
    let ran = sandbox.carrack().current_dir("/").arg("whoami").output_in_time().unwrap();
    assert!(ran.status.success());
    assert_eq!(service.terminate(), Some(0), "{}", service.log());
    // By variables, to another state directory.
    let mut serve = sandbox.carrack();
    serve.env("CARRACK_STATE_DIR", state).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut service = Service::run(&sandbox, &mut serve);
    assert_eq!((whoami(&[]), whoami(&[("CARRACK_STATE_DIR", state)])), (10, 0));
    assert_eq!(service.terminate(), Some(0), "{}", service.log());
    let mut serve = sandbox.carrack();
    serve.env("CARRACK_STATE_DIR", state).env("CARRACK_SOCKET", moved).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut service = Service::run(&sandbox, &mut serve);
    assert_eq!((whoami(&[]), whoami(&[("CARRACK_SOCKET", moved)])), (10, 0));
    assert_eq!(service.terminate(), Some(0), "{}", service.log());
    // By the configuration.
    let file = format!("[service]\nstate_dir = {state:?}\nsocket = {moved:?}\n");
    sandbox.write("home/.config/carrack/carrack.toml", file);
    let mut service = Service::start(&sandbox, &[]);
    assert_eq!(whoami(&[]), 0);
    // What is said to the command itself outweighs it.
    assert_eq!(whoami(&[("CARRACK_SOCKET", "/nowhere.sock")]), 10);
    assert_eq!(service.terminate(), Some(0), "{}", service.log());
}

/// As systemd does it: a socket for notices, and one that listens already.
#[test]
fn serve_tells_its_manager_how_it_is_and_takes_the_sockets_that_it_is_given() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("notify");
    let notices = UnixDatagram::bind(&path).unwrap();
    notices.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    // What listens is opened by the parent, is the fourth descriptor, and belongs to the process that it becomes.
    let script = "import os, socket, sys\n\
        s = socket.create_server(('127.0.0.1', 0))\n\
        os.dup2(s.fileno(), 3)\n\
        os.set_inheritable(3, True)\n\
        os.environ['LISTEN_PID'] = str(os.getpid())\n\
        os.environ['LISTEN_FDS'] = '1'\n\
        os.execv(sys.argv[1], sys.argv[1:])\n";
    let like = sandbox.carrack();
    let mut shell = Command::new("python3");
    shell.args(["-c", script]).arg(crate::support::program()).args(["serve", "--listen", "127.0.0.1:1"]);
    shell.current_dir(sandbox.path("")).env_clear();
    shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000");
    let mut service = Service::run(&sandbox, &mut shell);
    let address = service.told("listening on ").to_owned();
    assert!(address.starts_with("127.0.0.1:") && address != "127.0.0.1:1", "{address}");
    std::net::TcpStream::connect(&address).unwrap();
    let next = || {
        let mut bytes = [0; 1024];
        let count = notices.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    assert!(next().contains("READY=1"));
    assert!(next().contains("WATCHDOG=1"));
    signal(service.child.id(), "HUP");
    let until = |word: &str| {
        for _ in 0..1000 {
            let told = next();
            if told.contains(word) {
                return told;
            }
        }
        panic!("{word} was not told");
    };
    assert!(until("RELOADING=1").contains("MONOTONIC_USEC="));
    until("READY=1");
    signal(service.child.id(), "TERM");
    until("STOPPING=1");
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn config_is_read_again_on_hangup_and_a_bad_one_changes_nothing() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("carrack.toml", "[service]\nworkers = 2\n");
    let service = Service::start(&sandbox, &[&format!("--config={}", path.display())]);
    fs::write(&path, "[service]\nworkers = 0\n").unwrap();
    signal(service.child.id(), "HUP");
    wait_until("it is told", || service.log().contains("stays in use"));
    fs::write(&path, "[service]\nworkers = 4\n").unwrap();
    signal(service.child.id(), "HUP");
    wait_until("it is told", || service.log().contains("was read again"));
    sandbox.ok(["task", "list"]);
}

/// Who, from where, what, bytes and outcome, a line a session; also without the service.
#[test]
fn log_has_a_line_for_each_session_of_a_node() {
    let sandbox = Sandbox::new();
    sandbox.write("root/f", vec![7; 100_000]);
    let service = Service::start(&sandbox, &["--root=root", "--log-format=json"]);
    let fingerprint = service.told("fingerprint ").to_owned();
    let at = format!("carrack://{}/f{fingerprint}", service.told("listening on "));
    let token = format!("--token-file={}", sandbox.path("home/.local/state/carrack/node.token").display());
    sandbox.ok([&at, "here", &token]);
    sandbox.run([&at, "here", "--token-file=absent"]);
    let wrong = sandbox.write("wrong", format!("{}\n", Node::TOKEN));
    fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    sandbox.run([&at, "here", &format!("--token-file={}", wrong.display())]).failed_with(77, &[]);
    let sessions = || {
        let log = service.log();
        let lines: Vec<serde_json::Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.into_iter().filter(|line| line["target"] == "carrack::node").collect::<Vec<_>>()
    };
    wait_until("both sessions are told", || sessions().len() >= 2);
    let told = sessions();
    let sent = told.iter().find(|line| line["what"] == "send").unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(
        (&sent["who"], &sent["peer"], &sent["path"], &sent["outcome"]),
        (&"token".into(), &"127.0.0.1".into(), &"/f".into(), &"done".into())
    );
    assert!(sent["bytes_sent"].as_u64().unwrap() > 100_000, "{sent}");
    let refused = told.iter().find(|line| line["outcome"] == "refused").unwrap();
    assert_eq!((&refused["level"], &refused["code"]), (&"WARN".into(), &"authentication-failed".into()), "{refused}");
    assert!(!service.log().contains(Node::TOKEN));
}

#[test]
fn systemd_units_are_good_where_it_can_be_asked() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    let unit = fs::read_to_string(directory.join("carrack.service")).unwrap();
    for line in ["Type=notify", "KillMode=process", "StateDirectory=carrack", "WatchdogSec=60", "NoNewPrivileges=true"]
    {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    // Its program is somewhere else here.
    let sandbox = Sandbox::new();
    let unit = unit.replace("/usr/bin/carrack", &crate::support::program().display().to_string());
    let service = sandbox.write("carrack.service", unit);
    let socket = sandbox.write("carrack.socket", fs::read_to_string(directory.join("carrack.socket")).unwrap());
    match Command::new("systemd-analyze").arg("verify").args([&service, &socket]).output_in_time() {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            let about_ours = told.lines().filter(|line| line.contains("carrack")).collect::<Vec<_>>();
            // A man page of a program that is not installed is no fault of the unit.
            let faults: Vec<&&str> = about_ours.iter().filter(|line| !line.contains("man carrack")).collect();
            assert!(faults.is_empty(), "{faults:?}");
        }
        Err(error) => eprintln!("not verified: systemd-analyze: {error}"),
    }
}

/// Backup and check while it runs, restore only without it.
#[test]
fn ledger_is_backed_up_checked_and_restored() {
    let sandbox = Sandbox::new();
    let mut service = Service::start(&sandbox, &[]);
    sandbox.write("from/a", "a");
    let id = sandbox.ok(["task", "submit", "from/", "to/", "--wait", "--timeout=120s"]).stdout.trim().to_owned();
    sandbox.ok(["service", "backup", "ledger.backup"]);
    sandbox.ok(["service", "check"]);
    assert_ne!(sandbox.run(["service", "restore", "ledger.backup"]).code, 0);
    let later = sandbox.ok(["task", "submit", "from/", "to/", "--wait", "--timeout=120s"]).stdout.trim().to_owned();
    service.terminate();
    sandbox.ok(["service", "restore", "ledger.backup"]);
    let _service = Service::start(&sandbox, &[]);
    sandbox.ok(["task", "show", &id]);
    sandbox.run(["task", "show", &later]).failed_with(11, &[]);
}

/// As Python's `ssl` and old libraries do by themselves.
#[test]
fn client_of_tls_that_names_no_protocol_is_served_by_http() {
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    let address = service.told("listening on ").split_whitespace().next().unwrap().to_owned();
    for more in [&["--no-alpn"][..], &[]] {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--insecure", "--write-out", "\n%{http_version} %{http_code}"]);
        let told = curl.args(more).arg(format!("https://{address}/api/v1/whoami")).output().unwrap();
        let (text, problem) = (String::from_utf8(told.stdout).unwrap(), String::from_utf8(told.stderr).unwrap());
        assert!(text.ends_with("\n1.1 401"), "{more:?}: {text}: {problem}");
    }
}

#[test]
fn identifiers_may_be_shortened_and_objects_have_their_fields_at_the_top() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    sandbox.write("from/f", "content");
    let submit = |to: &str| sandbox.ok(["task", "submit", "from/", to]).stdout.trim().to_owned();
    let (one, other) = (submit("one"), submit("other"));
    let shared = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let shown = object(&sandbox, &["task", "show", &one[..=shared]]);
    assert_eq!(
        (shown["type"].as_str(), shown["id"].as_str(), shown["v"].as_u64()),
        (Some("task"), Some(&*one), Some(1))
    );
    assert!(shown["state"].is_string() && shown.get("document").is_none(), "{shown}");
    sandbox.ok(["task", "wait", &one[..=shared], &other[..=shared], "--timeout=60s"]);
    let several = sandbox.run(["task", "show", &one[..shared]]);
    assert_eq!(several.code, 2);
    assert!(several.stderr.contains("2 tasks begin with"), "{}", several.stderr);
    let none = sandbox.run(["task", "cancel", "ffffffff"]);
    assert_eq!(none.code, 11);
    assert!(
        none.stderr.contains("there is no such task: none has an identifier that begins with \"ffffffff\""),
        "{}",
        none.stderr
    );
    for slip in ["", "0", "0192"] {
        assert_eq!(sandbox.run(["task", "cancel", slip]).code, 2, "{slip:?}");
    }

    let timer = object(&sandbox, &["timer", "create", "--every=1d", "from/", "daily"]);
    let id = timer["id"].as_str().unwrap();
    assert_eq!(object(&sandbox, &["timer", "pause", &id[..12]])["id"], *id);
    let token = object(&sandbox, &["service", "token", "create", "--label=x"]);
    let id = token["id"].as_str().unwrap();
    assert_eq!(object(&sandbox, &["service", "token", "revoke", &id[..12]])["id"], *id);
    assert!(!sandbox.ok(["service", "token", "list"]).stdout.contains(id));
}

/// What an operator asks for first, and what is told elsewhere when something ends.
#[test]
fn status_lists_and_notices_tell_what_has_ended() {
    let sandbox = Sandbox::new();
    let told = sandbox.path("told");
    let program = sandbox.write("tell", format!("#!/bin/sh\ncat >> '{}'\n", told.display()));
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    sandbox.run(["serve", "--notify-command=tell", "--listen=127.0.0.1:0"]).failed_with(2, &["the absolute path"]);
    let command = format!("--notify-command={} 'two words'", program.display());
    let mut service = Service::start(&sandbox, &[&command]);
    for (name, directory) in [("one", "one"), ("two", "two")] {
        fs::create_dir(sandbox.path(directory)).unwrap();
        sandbox.write(format!("{directory}/a"), name);
    }
    // One line as typed, one as `carrack serve` prints it; and a line that is refused keeps none from being added.
    let (one, two) = (sandbox.path("one").display().to_string(), sandbox.path("two").display().to_string());
    let lines =
        format!("# ours\none {one}\nto name it in a service: carrack endpoint add two {two} --read-only\none /x\n");
    sandbox.write("endpoints", lines);
    let added = sandbox.run(["endpoint", "add", "--from", "endpoints"]);
    assert_eq!((added.code, added.stdout.as_str()), (23, "endpoint one\nendpoint two\n"), "{}", added.stderr);
    assert!(added.stderr.contains("line 4: one:"), "{}", added.stderr);
    assert!(sandbox.ok(["endpoint", "test", "one"]).stdout.starts_with("one: can be used: "));
    // Nobody is at a terminal: nothing is asked.
    sandbox.ok(["endpoint", "edit", "two", "--read-write"]);
    // One end is asked for, one is told as of old, one is nobody's news.
    let submit = |words: &[&str]| {
        let made = sandbox.run([&["task", "submit", "--wait"], words].concat());
        made.stdout.lines().next().unwrap().to_owned()
    };
    let good = submit(&["@one:/a", "@two:/b", "--notify=succeeded"]);
    submit(&["@one:/a", "@two:/c", "--label", "quiet"]);
    let bad = submit(&["@one:/none", "@two:/d"]);
    let documents = || fs::read_to_string(&told).unwrap_or_default();
    wait_until("both are told", || documents().lines().count() == 2);
    let ids: Vec<String> = documents()
        .lines()
        .map(|line| {
            let told: serde_json::Value = serde_json::from_str(line).unwrap();
            told["task"]["id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(ids, [good.clone(), bad]);
    let id = sandbox.ok(["timer", "create", "--every=1d", "--start=1d", "--jitter=1h", "@one:/a", "@two:/t"]).stdout;
    let id = id.trim();
    sandbox.ok(["timer", "edit", id, "--every=2d", "--label=often"]);
    assert_eq!(object(&sandbox, &["timer", "show", id])["schedule"]["jitter_seconds"], 3600);
    sandbox.run(["timer", "edit", id, "--delete"]).failed_with(2, &["--delete describes a task"]);
    sandbox.run(["timer", "edit", id]).failed_with(2, &["nothing of the timer is changed"]);
    sandbox.ok(["timer", "run", id]);
    wait_until("the timer has run", || sandbox.path("two/t").exists());
    let listed = || sandbox.ok(["timer", "list"]).stdout;
    wait_until("its end is listed", || listed().contains("SUCCEEDED"));
    assert!(listed().contains("every 2 days, up to 1 hour later") && listed().contains("often"), "{}", listed());
    let csv = sandbox.ok(["timer", "list", "--csv"]).stdout;
    assert!(csv.starts_with("timer,state,") && csv.lines().nth(1).unwrap().contains(",172800,,,"), "{csv}");
    let csv = sandbox.ok(["task", "list", "--csv"]).stdout;
    assert!(csv.lines().any(|line| line.starts_with(&format!("{good},SUCCEEDED,"))), "{csv}");
    assert!(sandbox.ok(["endpoint", "list", "--csv"]).stdout.contains("\ntwo,"));
    let status = sandbox.run(["service", "status", "-v"]);
    assert!(status.stdout.contains("  endpoints: 2, ") && status.stdout.contains("SUCCEEDED"), "{}", status.stdout);
    assert!(status.stderr.contains("GET /overview: 200 in "), "{}", status.stderr);
    // The next service knows what was told.
    assert_eq!(service.terminate(), Some(0), "{}", service.log());
    let service = Service::start(&sandbox, &[&command]);
    let third = submit(&["@one:/a", "@two:/e", "--notify=succeeded"]);
    wait_until("it is told, too", || documents().lines().count() >= 3);
    assert!(documents().lines().count() == 3 && documents().contains(&third), "{}{}", documents(), service.log());
}

#[test]
fn drained_endpoint_begins_nothing_and_says_why_until_that_ends() {
    let sandbox = Sandbox::new();
    sandbox.write("lab/large", vec![7; 24 << 20]);
    sandbox.write("lab/small", "x");
    fs::create_dir(sandbox.path("archive")).unwrap();
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "lab"), ("archive", "archive")]);
    let submit = |name: &str, more: &[&str]| {
        let (from, to) = (format!("@lab:/{name}"), format!("@archive:/{name}"));
        let words = ["task", "submit", &from, &to].into_iter().chain(more.iter().copied());
        sandbox.ok(words).stdout.trim().to_owned()
    };
    let show = |id: &str| object(&sandbox, &["task", "show", id]);
    let runs = submit("large", &["--bwlimit", "8MB"]);
    wait_until("it runs", || show(&runs)["state"] == "ACTIVE");
    sandbox.run(["endpoint", "edit", "archive", "--drain", " "]).failed_with(2, &["drained", "the reason"]);
    sandbox.ok(["endpoint", "edit", "archive", "--drain", "new disks until Thursday"]);
    let waits = submit("small", &[]);
    wait_until("it waits for the endpoint", || show(&waits)["blocked"]["cause"] == "drained");
    let why = "endpoint archive takes no new transfers: new disks until Thursday";
    assert_eq!(show(&waits)["blocked"]["why"], why);
    assert!(sandbox.ok(["task", "show", &waits]).stdout.contains("endpoint edit NAME --undrain"));
    // What runs goes on, and other changes leave it so.
    sandbox.ok(["task", "wait", &runs, "--timeout", "60s"]);
    sandbox.ok(["endpoint", "edit", "archive", "--transfers", "4"]);
    let shown = sandbox.ok(["endpoint", "show", "archive"]).stdout;
    assert!(shown.contains("drained: no transfer begins: new disks until Thursday"), "{shown}");
    assert_eq!(show(&waits)["state"], "QUEUED");
    sandbox.ok(["endpoint", "edit", "archive", "--undrain"]);
    sandbox.ok(["task", "wait", &waits, "--timeout", "60s"]);
    assert!(sandbox.path("archive/small").exists());
}

/// A command that waits says that it was told to end, and not that its task was cancelled: the task goes on.
#[test]
fn wait_that_a_signal_ends_is_no_cancelled_task() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    let submitted = sandbox.ok(["task", "submit", "random:1T", "null:", "--bwlimit=1MB"]);
    let id = submitted.stdout.trim();
    let catches = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default().trim();
        u64::from_str_radix(caught, 16).is_ok_and(|caught| caught >> (15 - 1) & 1 == 1)
    };
    for words in [&["task", "wait", id][..], &["task", "watch", id], &["task", "events", "-f"]] {
        for (name, code) in [("INT", 20), ("TERM", 75), ("HUP", 75)] {
            let running = Running::start(sandbox.carrack().args(words));
            wait_until("it catches signals", || catches(running.id()));
            signal(running.id(), name);
            assert_eq!(running.end().code, code, "{words:?} {name}");
        }
    }
    wait_until("the task goes on", || object(&sandbox, &["task", "show", id])["state"] == "ACTIVE");
}
