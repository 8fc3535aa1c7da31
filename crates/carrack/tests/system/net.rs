//! `carrack bench net`: rows between all kinds of hosts, and what a host that cannot be measured leaves of them.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::Child;

use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, wait_until};

/// One row that is soon over.
const SHORT: [&str; 5] = ["--json", "--way=there", "--streams=1", "--mode=clear", "--time=1s"];

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Rows of transfers: those of the way are another matter.
fn is_transfer(object: &Value) -> bool {
    object["type"] == "row" && object["conditions"]["at_once"].is_string()
}

fn rows(ran: &Ran) -> Vec<Value> {
    lines(&ran.stdout).into_iter().filter(is_transfer).collect()
}

/// A row by its conditions.
fn called(row: &Value) -> String {
    let word = |name: &str| row["conditions"][name].as_str().unwrap().to_owned();
    let at_once = if word("at_once") == "yes" { " at once" } else { "" };
    format!("{} {} {}{at_once}", row["name"].as_str().unwrap(), word("mode"), word("connections"))
}

fn labels(row: &Value) -> Vec<&str> {
    row["labels"].as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect()
}

#[track_caller]
fn has_numbers(row: &Value) {
    let number = |name: &str| row["values"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {row}"));
    assert!(number("bytes_per_second") > 0.0 && number("seconds") > 0.8, "{row}");
    for name in ["retransmits", "rtt_us", "cwnd_bytes", "source_processors", "destination_processors", "streams"] {
        number(name);
    }
    assert!(number("segments") > 0.0 && number("fastest_stream_bytes_per_second") > 0.0, "{row}");
    assert!(row["error"].is_null(), "{row}");
}

#[test]
fn net_measures_each_way_each_mode_and_both_at_once_and_is_kept() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let (host, token) = (node.at(""), node.token());
    let measure = || sandbox.ok(["bench", "net", &host, &token, "--json", "--streams=1,2", "--time=2s", "--omit=0"]);
    let ran = measure();
    let rows = rows(&ran);
    let expected = [
        "there clear 1",
        "there clear 2",
        "there encrypted 2",
        "there verified 2",
        "back clear 1",
        "back clear 2",
        "back encrypted 2",
        "back verified 2",
        "there clear 1 at once",
        "back clear 1 at once",
        "there clear 2 at once",
        "back clear 2 at once",
    ];
    assert_eq!(rows.iter().map(called).collect::<Vec<_>>(), expected);
    rows.iter().for_each(has_numbers);
    assert!(rows.iter().all(|row| !labels(row).contains(&"discarded")), "{}", ran.stdout);
    assert_eq!(fs::read_dir(sandbox.path("root")).unwrap().count(), 0, "nothing is written");
    // What was kept has every connection, second by second.
    let id = ran.summary()["id"].as_str().unwrap().to_owned();
    let kept = fs::read(sandbox.path(format!("home/.local/state/carrack/bench/{id}.json"))).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    let intervals = &kept["rows"][3]["intervals"];
    assert_eq!(intervals["columns"][1], "bytes");
    let first = &intervals["each"][0];
    assert_eq!(first["streams"].as_array().unwrap().len(), 2, "{intervals}");
    assert!(first["streams"][0][1].as_u64().unwrap() > 0 && first["seconds"].as_f64().unwrap() > 0.5, "{first}");
    let table = sandbox.ok(["bench", "show", &id]).stdout;
    assert!(table.contains("both back  clear") && table.contains("resent") && table.contains("cwnd"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let csv = sandbox.ok(["bench", "show", &id, "--format=csv"]).stdout;
    let columns: Vec<_> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.len() == 15 && columns.iter().all(|count| *count == columns[0]), "{csv}");
    measure();
    let diff = sandbox.ok(["bench", "diff"]).stdout;
    assert!(diff.contains("there verified 2 streams") && diff.contains("back clear 2 streams at once"), "{diff}");
}

#[test]
fn net_between_two_nodes_is_ordered_by_a_third() {
    let sandbox = Sandbox::new();
    let nodes = ["a", "b"].map(|root| Node::start(&sandbox, root, &["--dial-to=127.0.0.0/8"]));
    let [a, b] = [nodes[0].at(""), nodes[1].at("")];
    // Both nodes of a test have one token.
    let tokens = [nodes[0].token_as("source"), nodes[1].token_as("destination")];
    let ran = sandbox.ok([
        "bench",
        "net",
        &a,
        &b,
        &tokens[0],
        &tokens[1],
        "--json",
        "--streams=1",
        "--mode=clear",
        "--time=1s",
    ]);
    assert_eq!(
        rows(&ran).iter().map(called).collect::<Vec<_>>(),
        ["there clear 1", "back clear 1", "there clear 1 at once", "back clear 1 at once"]
    );
    rows(&ran).iter().for_each(has_numbers);
}

#[test]
fn net_over_ssh_also_to_a_host_without_the_program() {
    for has_agent in [true, false] {
        let sandbox = Sandbox::new();
        let far = Sshd::with(&sandbox, &Setup { has_agent, ..Setup::default() });
        let arguments = ["--json", "--way=there,back", "--streams=2", "--mode=verified", "--time=1s"];
        let ran = sandbox.ok([&["bench", "net", "far:", &far.rsh], &arguments[..]].concat());
        assert_eq!(rows(&ran).iter().map(called).collect::<Vec<_>>(), ["there verified 2", "back verified 2"]);
        rows(&ran).iter().for_each(has_numbers);
    }
}

#[test]
fn net_discards_only_in_the_clear_and_says_so() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let arguments = ["--json", "--way=there", "--streams=1", "--mode=clear,encrypted", "--time=1s", "--discard"];
    let ran = sandbox.ok([&["bench", "net", &node.at(""), &node.token()], &arguments[..]].concat());
    let rows = rows(&ran);
    assert!(labels(&rows[0]).contains(&"discarded"), "{}", ran.stdout);
    assert!(!labels(&rows[1]).contains(&"discarded"), "{}", ran.stdout);
    assert!(sandbox.ok(["bench", "show"]).stdout.contains("uncopied"));
}

#[test]
fn net_takes_as_many_streams_as_a_copy() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let arguments = ["--json", "--way=there", "--streams=256,auto", "--mode=clear", "--time=1s"];
    let ran = sandbox.ok([&["bench", "net", &node.at(""), &node.token()], &arguments[..]].concat());
    let rows = rows(&ran);
    assert_eq!((&rows[0]["values"]["streams"], called(&rows[1])), (&256.into(), "there clear auto".to_owned()));
    rows.iter().for_each(has_numbers);
}

/// Rows of what cannot be measured have the reason, are not kept, and the command ends as the reason says.
#[track_caller]
fn refused(sandbox: &Sandbox, arguments: &[&str], code: i32, words: &str, count: usize) {
    let ran =
        sandbox.run([&["bench", "net"], arguments, &["--json", "--streams=1,2", "--mode=clear", "--time=1s"]].concat());
    assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
    let all = rows(&ran);
    assert_eq!(all.len(), count, "{}", ran.stdout);
    for row in &all {
        let error = row["error"].as_str().unwrap_or_else(|| panic!("{row}"));
        assert!(error.contains(words) && row["values"].as_object().unwrap().is_empty(), "{row}");
    }
    // What refuses one row refuses all.
    let error = |row: &Value| row["error"].as_str().unwrap().to_owned();
    assert!(all[1..].iter().all(|row| error(row).starts_with("not tried: ")), "{}", ran.stdout);
    let summary = lines(&ran.stdout).into_iter().find(|line| line["type"] == "summary").unwrap();
    assert_eq!((&summary["exit_code"], &summary["id"]), (&code.into(), &Value::Null));
    assert!(!sandbox.path("home/.local").exists(), "nothing is kept");
}

#[test]
fn net_names_hosts_that_are_not_there_or_refuse() {
    let sandbox = Sandbox::new();
    // Nobody listens where somebody did a moment ago.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(&sandbox, &[&format!("carrack://{gone}"), "--way=there,back"], 10, "refused", 4);
    let node = Node::start(&sandbox, "root", &["--measure=nobody"]);
    refused(&sandbox, &[&node.at(""), &node.token(), "--way=there,both"], 11, "takes no measurements", 6);
    let wrong = sandbox.write("wrong.token", "another-token-0123456789\n");
    fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let wrong = format!("--token-file={}", wrong.display());
    refused(&sandbox, &[&node.at(""), &wrong, "--way=back"], 77, "token", 2);
    // People see the reason below the row.
    let ran = sandbox.run(["bench", "net", &node.at(""), &node.token(), "--time=1s", "--way=back", "--mode=clear"]);
    assert!(ran.code == 11 && ran.stdout.contains("takes no measurements"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
}

/// Eight rows, of which the first is there.
fn long(sandbox: &Sandbox, host: &str, token: &str) -> Child {
    let out = sandbox.path("rows");
    let mut command = sandbox.carrack();
    command.args(["bench", "net", host, token, "--json", "--way=there", "--mode=clear", "--time=1s"]);
    command.arg("--streams=1,2,3,4,5,6,7,8").stdout(File::create(&out).unwrap());
    let child = command.spawn().unwrap();
    wait_until("the first row is there", || has_row(&out));
    child
}

fn has_row(file: &Path) -> bool {
    fs::read_to_string(file).unwrap().contains("at_once")
}

/// What it has told, and its exit code.
fn end(sandbox: &Sandbox, mut child: Child) -> (Vec<Value>, i32) {
    let code = child.wait().unwrap().code().unwrap();
    (lines(&fs::read_to_string(sandbox.path("rows")).unwrap()), code)
}

#[test]
fn net_that_ends_early_tells_and_keeps_what_it_has() {
    let sandbox = Sandbox::new();
    let mut node = Node::start(&sandbox, "root", &[]);
    let interrupted = long(&sandbox, &node.at(""), &node.token());
    signal(interrupted.id(), "INT");
    let (told, code) = end(&sandbox, interrupted);
    assert_eq!(code, 20, "{told:?}");
    let check = |told: &[Value], words: &[&str]| {
        let rows: Vec<_> = told.iter().filter(|object| is_transfer(object)).collect();
        assert_eq!(rows.len(), 8, "{rows:?}");
        has_numbers(rows[0]);
        let error = |row: &Value| row["error"].as_str().unwrap_or_default().to_owned();
        let at = rows.iter().position(|row| !error(row).is_empty()).unwrap();
        assert!(words.iter().any(|word| error(rows[at]).contains(word)), "{}", rows[at]);
        assert!(rows[at + 1..].iter().all(|row| error(row).starts_with("not tried: ")), "{rows:?}");
        let summary = told.iter().find(|object| object["type"] == "summary").unwrap();
        let shown = sandbox.ok(["bench", "show", summary["id"].as_str().unwrap()]).stdout;
        assert!(shown.contains("not everything was measured"), "{shown}");
    };
    check(&told, &["interrupted"]);
    let orphan = long(&sandbox, &node.at(""), &node.token());
    node.kill();
    let (told, code) = end(&sandbox, orphan);
    assert_eq!(code, 10, "{told:?}");
    // It may have been killed between two rows, while one connected.
    check(&told, &["lost", "refused", "closed", "no TLS session"]);
}

#[test]
fn node_takes_one_measuring_client_at_a_time() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("here")).unwrap();
    let node = Node::start(&sandbox, "root", &[]);
    let (host, token) = (node.at(""), node.token());
    let mut first = long(&sandbox, &host, &token);
    // Another address is another client.
    let ran = sandbox.run([&["bench", "net", &host, &token, "--bind=127.0.0.2"], &SHORT[..]].concat());
    assert_eq!(ran.code, 10, "{}", ran.stdout);
    assert!(rows(&ran)[0]["error"].as_str().unwrap().contains("one measurement at a time"), "{}", ran.stdout);
    let ladder = ["bench", "ladder", "here", &host, &token, "--bind=127.0.0.2", "--size=8M", "--runs=1", "--no-keep"];
    sandbox.run(ladder).failed_with(10, &["one measurement at a time"]);
    assert!(first.try_wait().unwrap().is_none(), "the first has gone on all the time");
    signal(first.id(), "INT");
    end(&sandbox, first);
    sandbox.ok([&["bench", "net", &host, &token, "--bind=127.0.0.2"], &SHORT[..]].concat());
}

#[test]
fn net_refuses_what_it_cannot_measure() {
    let sandbox = Sandbox::new();
    for (arguments, words) in [
        (&["directory"][..], "names no host"),
        (&["null:"], "names no host"),
        (&[], "required"),
        (&["carrack://a", "here"], "names no host"),
        (&["carrack://a", "--time=0"], "nothing"),
        (&["carrack://a", "--time=500ms"], "too short"),
        (&["carrack://a", "--time=10m"], "too long"),
        (&["carrack://a", "--streams=0"], "number of streams"),
        (&["carrack://a", "--streams=257"], "number of streams"),
        (&["carrack://a", "--mode=fast"], "fast"),
        (&["carrack://a", "--format=bonnie"], "bonnie"),
        (&["carrack://a", "--json", "--format=csv"], "choose one"),
    ] {
        sandbox.run([&["bench", "net"], arguments].concat()).failed_with(2, &[words]);
    }
    assert!(!sandbox.path("home/.local").exists());
}
