//! `contrib/pscheduler`: its methods answer as pScheduler's own dictionary wants it, and `run` copies by the program.

mod network;

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use carrack_faults::netns;
use serde_json::{Value, json};

use crate::support::json_schema::Schema;
use crate::support::node::Node;
use crate::support::{Ran, Sandbox, program, tool, tree};

/// What pScheduler 5 publishes of a disk-to-disk result, of a tool's description and of an answer of `can-run`: which
/// keys there are, of which types, and which are required. A key that is not here is refused there, too.
const SHAPES: &str = r##"{
    "$defs": {
        "string": {"type": "string"},
        "duration": {"type": "string", "pattern": "^PT[0-9]+\\.?[0-9]*S$"},
        "result": {
            "type": "object",
            "properties": {
                "schema": {"type": "integer", "minimum": 1},
                "succeeded": {"type": "boolean"},
                "diags": {"$ref": "#/$defs/string"},
                "error": {"$ref": "#/$defs/string"},
                "time": {"$ref": "#/$defs/duration"},
                "bytes-sent": {"type": "number"},
                "throughput": {"type": "number"}
            },
            "required": ["succeeded", "time"]
        },
        "tool": {
            "type": "object",
            "properties": {
                "schema": {"type": "integer", "minimum": 1},
                "name": {"$ref": "#/$defs/string"},
                "description": {"$ref": "#/$defs/string"},
                "version": {"type": "string", "pattern": "^[0-9]+[0-9.]*[A-Za-z0-9+-]*$"},
                "tests": {"type": "array", "items": {"$ref": "#/$defs/string"}},
                "preference": {"type": "integer"},
                "maintainer": {
                    "type": "object",
                    "properties": {
                        "name": {"$ref": "#/$defs/string"},
                        "email": {"$ref": "#/$defs/string"},
                        "href": {"$ref": "#/$defs/string"}
                    },
                    "required": ["name"]
                },
                "scheduling-class": {"enum": ["background", "background-multi", "exclusive", "normal"]}
            },
            "required": ["name", "description", "version", "tests", "preference", "maintainer"]
        },
        "can-run": {
            "type": "object",
            "properties": {
                "can-run": {"type": "boolean"},
                "reasons": {"type": "array", "items": {"$ref": "#/$defs/string"}}
            },
            "required": ["can-run"]
        },
        "duration-answer": {
            "type": "object",
            "properties": {"duration": {"$ref": "#/$defs/duration"}},
            "required": ["duration"]
        },
        "run": {
            "type": "object",
            "properties": {
                "succeeded": {"type": "boolean"},
                "diags": {"$ref": "#/$defs/string"},
                "error": {"$ref": "#/$defs/string"},
                "result": {"$ref": "#/$defs/result"}
            },
            "required": ["succeeded", "result"]
        }
    }
}"##;

/// What the published specification of the test has, and of which type: nothing else can come.
const SPEC: [(&str, &str); 8] = [
    ("schema", "integer"),
    ("parallel", "integer"),
    ("host", "string"),
    ("dest", "string"),
    ("source", "string"),
    ("duration", "string"),
    ("timeout", "string"),
    ("cleanup", "boolean"),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/pscheduler/carrack")
}

/// A method with the program on its PATH, in the sandbox's directory.
fn method(sandbox: &Sandbox, name: &str, input: &str) -> Ran {
    method_on(&[], sandbox, name, input)
}

/// The same on another host, started by what runs a command there.
fn method_on(prefix: &[String], sandbox: &Sandbox, name: &str, input: &str) -> Ran {
    let bin = sandbox.path("bin");
    if !bin.join("carrack").exists() {
        std::fs::create_dir_all(&bin).unwrap();
        symlink(program(), bin.join("carrack")).unwrap();
    }
    call(prefix, sandbox, &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()), name, input)
}

fn call(prefix: &[String], sandbox: &Sandbox, path: &str, name: &str, input: &str) -> Ran {
    let mut command = Command::new(directory().join(name));
    command.current_dir(sandbox.path("")).env_clear().env("PATH", path).env("HOME", sandbox.path("home"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("LC_ALL", "C.UTF-8");
    if !prefix.is_empty() {
        command = netns::after(prefix, &command);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A method that reads no input has closed it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    crate::support::ran(crate::support::running::end_of(child))
}

/// What a method answers, held against the shape of that name.
#[track_caller]
fn answer(sandbox: &Sandbox, name: &str, input: &Value, shape: &str) -> Value {
    let ran = method(sandbox, name, &input.to_string());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    Schema::of(SHAPES).check_as(shape, &answer).unwrap_or_else(|why| panic!("{name}: {why}: {answer}"));
    answer
}

fn task(source: &str, dest: &str, more: &Value) -> Value {
    let mut spec = json!({ "schema": 1, "source": source, "dest": dest, "parallel": 1 });
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    for (name, value) in spec.as_object().unwrap() {
        let (_, kind) = SPEC.iter().find(|(known, _)| known == name).unwrap();
        let is = match *kind {
            "integer" => value.is_u64(),
            "boolean" => value.is_boolean(),
            _ => value.is_string(),
        };
        assert!(is, "{name}: {value}");
    }
    json!({ "type": "disk-to-disk", "spec": spec })
}

/// The input of `run`: the task, and when it begins.
fn run_input(task: &Value, start: &str) -> Value {
    json!({ "participant": 0, "test": task, "schedule": { "start": start, "duration": "PT15S" } })
}

const PAST: &str = "2020-01-01T00:00:00+00:00";
/// Longer than any copy of these tests takes on a machine that does much else.
fn patient() -> Value {
    json!({ "timeout": "PT2M" })
}

#[test]
fn pscheduler_tool_describes_itself_as_published() {
    let sandbox = Sandbox::new();
    let described = answer(&sandbox, "enumerate", &json!(null), "tool");
    let tests = json!(["disk-to-disk", "throughput", "trace"]);
    assert_eq!((&described["name"], &described["tests"]), (&json!("carrack"), &tests));
    // pScheduler's own tools reach hosts without carrack, and the last of them has -100.
    assert_eq!(described["preference"], -100);
    // Every file that pScheduler looks for is there, and the one that installs them names all.
    let makefile = std::fs::read_to_string(directory().join("Makefile")).unwrap();
    for name in ["can-run", "duration", "enumerate", "merged-results", "participant-data", "run"] {
        assert!(directory().join(name).exists() && makefile.contains(name), "{name}");
    }
    let installed = sandbox.path("installed");
    let mut make = Command::new("make");
    tool(make.arg("-C").arg(directory()).arg("install").arg(format!("DESTDIR={}", installed.display())));
    // What is installed has all that it imports.
    let enumerate = tool(Command::new(installed.join("enumerate")).env("PYTHONDONTWRITEBYTECODE", "1"));
    assert_eq!(serde_json::from_str::<Value>(&enumerate).unwrap(), described);
    assert!(installed.join("run").exists());
    assert_eq!(method(&sandbox, "participant-data", "{}").stdout, "{}\n");
}

#[test]
fn pscheduler_tool_says_what_it_can_run_and_for_how_long() {
    let sandbox = Sandbox::new();
    let can = |task: &Value| answer(&sandbox, "can-run", task, "can-run");
    for (source, dest) in [
        ("carrack://a:7420/x#sha256:00", "file:///tmp/x"),
        ("/data/x", "dtn2:/data/"),
        ("zero:1G", "null:"),
        ("/data/x", "carrack://b/x"),
    ] {
        assert_eq!(can(&task(source, dest, &patient()))["can-run"], true, "{source} {dest}");
    }
    for (task, why) in [
        (task("gsiftp://h/x", "/y", &json!({})), "speaks no gsiftp"),
        (task("/x", "https://h/y", &json!({})), "speaks no https"),
        (task("--rsh=touch x", "/y", &json!({})), "is no source or destination"),
        (task("file://h/x", "/y", &json!({})), "file:///PATH"),
        (task("/x", "/y", &json!({ "schema": 2 })), "Schema 2 is not supported"),
        (task("/x", "/y", &json!({ "timeout": "10 s" })), "no ISO 8601 duration"),
        (json!({ "type": "latency", "spec": {} }), "Unsupported test type"),
        (json!({ "spec": {} }), "Missing test type"),
        (json!({ "type": "disk-to-disk" }), "Missing test specification"),
        (json!({ "type": "disk-to-disk", "spec": { "source": "/x" } }), "Missing dest"),
    ] {
        let answer = can(&task);
        assert_eq!(answer["can-run"], false, "{task}");
        assert!(answer["reasons"].to_string().contains(why), "{why}: {answer}");
    }
    for (limit, expected) in [("PT10S", "PT15S"), ("PT1M30.5S", "PT95.5S"), ("P1DT1H", "PT90005S")] {
        let task = task("/x", "/y", &json!({ "timeout": limit }));
        assert_eq!(answer(&sandbox, "duration", &task, "duration-answer")["duration"], expected);
    }
    // Of a task without a limit, as pScheduler's own tools.
    assert_eq!(answer(&sandbox, "duration", &task("/x", "/y", &json!({})), "duration-answer")["duration"], "PT15S");
    method(&sandbox, "can-run", "no JSON").failed_with(1, &["no JSON"]);
    // A host that has no carrack, where none is in the usual places either.
    if !["/usr/bin/carrack", "/usr/local/bin/carrack"].iter().any(|path| Path::new(path).exists()) {
        let path = std::env::var("PATH").unwrap();
        let ran = call(&[], &sandbox, &path, "can-run", &task("/x", "/y", &json!({})).to_string());
        assert!(ran.stdout.contains("carrack is not installed on this host"), "{}", ran.stdout);
    }
}

#[test]
fn pscheduler_tool_copies_and_removes_what_it_has_made_and_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.write("source/one", vec![7; 3_000_000]);
    sandbox.write("source/sub/two", "two");
    sandbox.write("there/mine", "mine");
    let path = |name: &str| sandbox.path(name).display().to_string();
    let run = |source: &str, dest: &str, more: &Value| {
        let mut wanted = patient();
        more.as_object().unwrap().iter().for_each(|(name, value)| wanted[name] = value.clone());
        let ran = answer(&sandbox, "run", &run_input(&task(source, dest, &wanted), PAST), "run");
        let merged = method(&sandbox, "merged-results", &json!({ "results": [ran] }).to_string());
        let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
        Schema::of(SHAPES).check_as("result", &merged).unwrap();
        assert_eq!((&merged, &merged["succeeded"]), (&ran["result"], &ran["succeeded"]));
        ran
    };
    // A file, kept.
    let ran = run(&format!("file://{}", path("source/one")), &path("copy"), &json!({ "cleanup": false }));
    assert_eq!((&ran["succeeded"], &ran["result"]["bytes-sent"]), (&json!(true), &json!(3_000_000)));
    assert!(ran["result"]["throughput"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read(sandbox.path("copy")).unwrap(), vec![7; 3_000_000]);
    // It was there before the next one, which leaves it.
    assert_eq!(run(&path("source/one"), &path("copy"), &json!({}))["succeeded"], true);
    assert!(sandbox.path("copy").exists());
    // A tree, into a directory that is there: what is called as the source goes, the directory and its files stay.
    assert_eq!(run(&path("source"), &path("there"), &json!({ "parallel": 2 }))["succeeded"], true);
    assert_eq!(tree::walk(&sandbox.path("there")), [sandbox.path("there/mine")]);
    // To another name: all of it goes.
    assert_eq!(run(&path("source"), &path("new"), &json!({}))["result"]["bytes-sent"], 3_000_003);
    assert!(!sandbox.path("new").exists());
    // Memory to memory.
    assert_eq!(run("zero:4M", "null:", &json!({}))["result"]["bytes-sent"], 4 << 20);
    // What is not there.
    let ran = run(&path("absent"), &path("new"), &json!({}));
    assert_eq!((&ran["succeeded"], &ran["result"]["bytes-sent"]), (&json!(false), &Value::Null));
    assert!(ran["error"].as_str().unwrap().contains("absent"), "{ran}");
    assert_eq!(ran["result"]["error"], ran["error"]);
}

#[test]
fn pscheduler_tool_copies_to_a_node_at_its_time_and_gives_up_after_the_limit() {
    let sandbox = Sandbox::new();
    sandbox.write("big", vec![1; 2_000_000]);
    let node = Node::start(&sandbox, "root", &["--anonymous"]);
    let start = text_of(SystemTime::now() + Duration::from_secs(1));
    let ran = answer(&sandbox, "run", &run_input(&task("big", &node.at("copy"), &patient()), &start), "run");
    assert_eq!((&ran["succeeded"], &ran["error"]), (&json!(true), &json!("")), "{ran}");
    assert!(SystemTime::now() >= time_of(&start), "it waited");
    assert_eq!(tree::walk(&sandbox.path("root")).len(), 0, "the copy is removed there");
    // A source that never ends, and a limit that does.
    let task = task("zero:100T", "null:", &json!({ "timeout": "PT0.5S" }));
    let ran = answer(&sandbox, "run", &run_input(&task, PAST), "run");
    assert_eq!(ran["succeeded"], false);
    assert!(ran["error"].as_str().unwrap().contains("stopped after 0.5 s"), "{ran}");
}

/// A time as pScheduler writes it, in whole seconds.
fn text_of(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let text = tool(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d", &format!("@{seconds}")]));
    text.trim().to_owned()
}

fn time_of(text: &str) -> SystemTime {
    let seconds = tool(Command::new("date").args(["+%s", "-d", text]));
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.trim().parse().unwrap())
}
