//! `carrack bench net` and iperf3: its document, and somebody's iperf3 server or client as the far end.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::{Ran, Sandbox, wait_until};

/// Keys of iperf3's document that ours does not have, because nobody knows their values: the far program's time is
/// told as one number, and so is ours.
const NOT_KNOWN: [&str; 4] = ["host_user", "host_system", "remote_user", "remote_system"];

/// Whatever theirs has ours has, of the same kind.
fn has_all_of(ours: &Value, theirs: &Value, place: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in theirs.iter().filter(|(name, _)| !NOT_KNOWN.contains(&name.as_str())) {
                let place = format!("{place}.{name}");
                has_all_of(ours.get(name).unwrap_or_else(|| panic!("{place} is missing")), value, &place);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            if let (Some(ours), Some(theirs)) = (ours.first(), theirs.first()) {
                has_all_of(ours, theirs, &format!("{place}[]"));
            }
            assert_eq!(ours.is_empty(), theirs.is_empty(), "{place}");
        }
        _ => {
            let same = (ours.is_string(), ours.is_number(), ours.is_boolean())
                == (theirs.is_string(), theirs.is_number(), theirs.is_boolean());
            assert!(same, "{place}: {ours} where iperf3 has {theirs}");
        }
    }
}

/// A port that nobody has.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Whether somebody listens at a port.
fn listens(port: &str) -> bool {
    let hex = format!(":{:04X} ", port.parse::<u16>().unwrap());
    ["tcp", "tcp6"].iter().any(|kind| {
        let table = fs::read_to_string(format!("/proc/net/{kind}")).unwrap_or_default();
        table.lines().any(|line| line.contains(&hex) && line.contains(" 0A "))
    })
}

/// A server of iperf3 that listens; none where it is not installed. Ended when dropped.
struct Iperf3(Child, String);

impl Iperf3 {
    fn start() -> Option<Self> {
        let port = free_port();
        match Command::new("iperf3").args(["-s", "-p", &port]).stdout(Stdio::null()).spawn() {
            Ok(server) => {
                let server = Self(server, port);
                wait_until("iperf3 listens", || listens(&server.1));
                Some(server)
            }
            Err(error) => {
                println!("skipped: iperf3 is not installed ({error})");
                None
            }
        }
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What iperf3 as a client says of a test of a second.
fn client(port: &str, more: &[&str]) -> Value {
    let arguments = ["-c", "127.0.0.1", "-p", port, "-t", "1", "-J"];
    let output = Command::new("iperf3").args(arguments).args(more).output_in_time().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn iperf3_document_has_what_iperf3_writes() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let (host, token) = (node.at(""), node.token());
    for (theirs, ours) in [(&["-P", "2"][..], "--way=there"), (&["-P", "2", "--bidir"], "--way=both")] {
        let arguments = ["--format=iperf3", "--streams=2", "--time=2s", "--omit=0", ours];
        let ran = sandbox.ok([&["bench", "net", &host, &token], &arguments[..]].concat());
        let ours: Value = serde_json::from_str(&ran.stdout).unwrap();
        let received = &ours["end"]["sum_received"];
        assert!(
            received["bytes"].as_u64().unwrap() > 0 && received["bits_per_second"].as_f64().unwrap() > 0.0,
            "{ours}"
        );
        assert!(ours["intervals"][0]["streams"][0]["rtt"].as_u64().unwrap() > 0, "{ours}");
        if let Some(server) = Iperf3::start() {
            has_all_of(&ours, &client(&server.1, theirs), "document");
        }
    }
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = sandbox.run(["bench", "net", &format!("carrack://{gone}"), "--format=iperf3"]);
    let failed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(ran.code == 10 && failed["error"].as_str().unwrap().contains("refused"), "{failed}");
    sandbox.ok(["bench", "cpu", "--time=1ms"]);
    sandbox.run(["bench", "show", "--format=iperf3"]).failed_with(2, &["a result of bench cpu"]);
}

fn rows(ran: &Ran) -> Vec<Value> {
    let objects = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    objects.filter(|object| object["type"] == "row").collect()
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

/// What each end of a test counts may differ by what is under way when it ends.
#[track_caller]
fn is_about(ours: &Value, theirs: &Value) {
    let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
    assert!(ours > 0.0 && (ours / theirs - 1.0).abs() < 0.1, "{ours} bytes where the client has {theirs}");
}

#[test]
fn iperf3_server_of_somebody_is_the_far_end() {
    let Some(server) = Iperf3::start() else { return };
    let sandbox = Sandbox::new();
    let host = format!("127.0.0.1:{}", server.1);
    let short = ["--streams=2", "--time=2s", "--omit=0"];
    let ran = sandbox.ok([&["bench", "net", "--iperf3", &host, "--json"], &short[..]].concat());
    let told = rows(&ran);
    assert_eq!(names(&told), ["there", "back"], "{}", ran.stdout);
    for row in &told {
        assert!(row["error"].is_null() && row["values"]["streams"] == 2.0, "{row}");
        assert!(row["values"]["bytes_per_second"].as_f64().unwrap() > 0.0, "{row}");
    }
    // The kernel here tells of what is sent from here.
    assert!(told[0]["values"]["rtt_us"].as_f64().unwrap() > 0.0, "{}", told[0]);
    assert!(told[0]["values"]["retransmits"].is_number() && told[1]["values"]["rtt_us"].is_null(), "{told:?}");
    let shown = sandbox.ok(["bench", "show"]).stdout;
    assert!(shown.contains(&format!("iperf3 {host}")) && shown.contains("there"), "{shown}");
    let ran = sandbox.ok([&["bench", "net", "--iperf3", &host, "--way=there", "--each-second"], &short[..]].concat());
    let seconds = ran.stdout.lines().filter(|line| line.contains("Retr") && line.contains("Cwnd")).count();
    assert_eq!(seconds, 2, "{}", ran.stdout);
    drop(server);
    sandbox.run(["bench", "net", "--iperf3", &host, "--way=back", "--time=1s"]).failed_with(10, &["refused"]);
    sandbox.run(["bench", "net", "--iperf3", &host, "--mode=verified"]).failed_with(2, &["in the clear"]);
}

/// Has Carrack wait for a client at `port`.
fn waiting(sandbox: &Sandbox, port: &str, more: &[&str]) -> Running {
    let mut command = sandbox.carrack();
    command.args(["bench", "net", "--iperf3-listen", port]).args(more).process_group(0);
    let mut running = Running::start(&mut command);
    wait_until("it waits for a client", || listens(port) || !running.is_running());
    running
}

#[test]
fn iperf3_client_of_somebody_is_the_far_end() {
    let Some(_) = Iperf3::start() else { return };
    let sandbox = Sandbox::new();
    let port = free_port();
    for (flags, expected) in
        [(&["-P", "2"][..], &["back"][..]), (&["-R"], &["there"]), (&["--bidir"], &["back", "there"])]
    {
        let running = waiting(&sandbox, &port, &["--json"]);
        let theirs = client(&port, flags);
        let ran = running.end();
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let told = rows(&ran);
        assert_eq!(names(&told), expected, "{}", ran.stdout);
        let streams = if flags.contains(&"2") { 2.0 } else { 1.0 };
        assert!(told.iter().all(|row| row["values"]["streams"] == streams && row["error"].is_null()), "{told:?}");
        // What this host has received, or sent.
        let counted = if flags == ["-R"] { "sum_received" } else { "sum_sent" };
        is_about(&told[0]["values"]["bytes"], &theirs["end"][counted]["bytes"]);
        assert_eq!(told[0]["conditions"]["at_once"], if expected.len() == 2 { "yes" } else { "no" });
        assert!(ran.stdout.contains(&format!("iperf3 -c THIS_HOST -p {port}")), "{}", ran.stdout);
    }
    let shown = sandbox.ok(["bench", "show"]).stdout;
    assert!(shown.contains("iperf3 client 127.0.0.1") || shown.contains("iperf3 client ::ffff:127.0.0.1"), "{shown}");
    // A person sees the seconds, too.
    let running = waiting(&sandbox, &port, &["--each-second"]);
    client(&port, &["-R"]);
    let ran = running.end();
    assert!(ran.code == 0 && ran.stdout.contains("Retr"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn waiting_for_an_iperf3_client_ends_in_good_order() {
    let Some(other) = Iperf3::start() else { return };
    let sandbox = Sandbox::new();
    let port = free_port();
    let running = waiting(&sandbox, &port, &["--json"]);
    client(&port, &["-u"]);
    let ran = running.end();
    assert!(ran.code == 10 && ran.stdout.contains("the client measured UDP"), "{}{}", ran.stdout, ran.stderr);
    // Somebody else has the port.
    sandbox.run(["bench", "net", "--iperf3-listen", &other.1]).failed_with(10, &["in use"]);
    // Whoever connects and leaves has made no test.
    let mut running = waiting(&sandbox, &port, &["--json"]);
    drop(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap());
    wait_until("it waits again", || !listens(&port) || !running.is_running());
    wait_until("it listens again", || listens(&port) || !running.is_running());
    let theirs = client(&port, &[]);
    assert!(theirs["error"].is_null(), "{theirs}");
    let ran = running.end();
    assert!(ran.code == 0 && ran.stdout.contains("waits again"), "{}{}", ran.stdout, ran.stderr);
    // A key that interrupts goes to the whole group: iperf3 is not in it, or it would end first, with another reason.
    for (name, group, code) in [("INT", false, Some(20)), ("INT", true, Some(20)), ("KILL", false, None)] {
        let running = waiting(&sandbox, &port, &[]);
        if group {
            Command::new("kill")
                .args([format!("-{name}"), "--".to_owned(), format!("-{}", running.id())])
                .status()
                .unwrap();
        } else {
            signal(running.id(), name);
        }
        let ended = running.end();
        assert!(code.is_none_or(|code| ended.code == code), "{}{}", ended.stdout, ended.stderr);
        wait_until("nobody listens any more", || !listens(&port));
    }
    for (arguments, words) in [
        (&["--iperf3-listen=0"][..], "not a port"),
        (&["--iperf3-listen=5201", "--time=1s"], "cannot be used with"),
        (&["--iperf3-listen=5201", "host:"], "cannot be used with"),
        (&["--iperf3-listen=5201", "--iperf3=host"], "cannot be used with"),
        (&["--iperf3-listen=5201", "--only-path"], "cannot be used with"),
    ] {
        sandbox.run([&["bench", "net"], arguments].concat()).failed_with(2, &[words]);
    }
}
