//! The files in flight, as `--json` tells them in its lines of progress.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use data_encoding::BASE64;
use serde_json::Value;

use crate::support::Sandbox;
use crate::support::node::Node;

/// Two seconds of the rate: a file is told once a second.
const LARGE: usize = 10 << 20;

/// The path of a file in flight, or of an item.
fn path(told: &Value) -> Vec<u8> {
    match told["path"].as_str() {
        Some(path) => path.as_bytes().to_vec(),
        None => BASE64.decode(told["path_b64"].as_str().expect("a path").as_bytes()).unwrap(),
    }
}

/// Large files, one of which has a name that is not UTF-8, and many small ones.
fn tree(sandbox: &Sandbox) -> [Vec<u8>; 3] {
    let names = [&b"tree/a"[..], b"tree/d/line\nfeed", b"tree/\xff"];
    for (number, name) in names.iter().enumerate() {
        sandbox.write(OsStr::from_bytes(name), vec![number as u8; LARGE]);
    }
    (0..300).for_each(|number| drop(sandbox.write(format!("tree/small/{number}"), "small")));
    names.map(<[u8]>::to_vec)
}

#[test]
fn in_flight_has_large_files_from_their_first_block_to_their_name() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "far", &[]);
    let mut large = tree(&sandbox).to_vec();
    large.sort();
    for flags in [&[][..], &["--encrypt=none", "--streams=1"], &["--link=tunnel"]] {
        let words = ["tree", &node.at("there/"), &node.token(), "--bwlimit=5MB", "--json", "--stats=50ms"];
        let ran = sandbox.ok(words.iter().chain(flags));
        let mut seen: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        let mut ended = Vec::new();
        for line in ran.stdout.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["type"] == "item" {
                ended.push(path(&line));
            }
            for file in line["in_flight"].as_array().into_iter().flatten() {
                assert_eq!((&line["type"], &file["size"]), (&"progress".into(), &LARGE.into()), "{file}");
                assert!(!ended.contains(&path(file)), "{flags:?}: {file} has its name");
                seen.entry(path(file)).or_default().push(file["bytes"].as_u64().unwrap());
            }
        }
        assert_eq!(ended.len(), large.len() + 300);
        assert!(seen.keys().all(|path| large.contains(path)), "{flags:?}: {:?}", seen.keys());
        let moved = |bytes: &Vec<u64>| bytes.iter().any(|&bytes| bytes > 0 && bytes < LARGE as u64);
        assert!(seen.values().any(moved), "{flags:?}: nothing was seen to move: {seen:?}");
        assert!(seen.values().all(|bytes| bytes.is_sorted()), "{flags:?}: {seen:?}");
        sandbox.ok(["rm", "-r", &node.at("there"), &node.token()]);
    }
}

/// What an earlier attempt has brought counts as soon as it has been compared.
#[test]
fn in_flight_begins_where_an_earlier_attempt_has_ended() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "far", &[]);
    sandbox.write("large", vec![7; 2 * LARGE]);
    let words = ["large", &node.at("there"), &node.token(), "--bwlimit=5MB", "--json", "--stats=50ms"];
    let bytes = |stdout: &str| -> Vec<u64> {
        let lines = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| line["in_flight"][0]["bytes"].as_u64()).collect()
    };
    let first = sandbox.run(words.iter().chain(&["--deadline=2500ms"]));
    assert_ne!(first.code, 0, "it was cut short: {}", first.stdout);
    let first = bytes(&first.stdout);
    assert!(first.last().is_some_and(|&bytes| bytes > 1 << 20), "{first:?}");
    let ran = sandbox.ok(words);
    let resumed = ran.summary()["bytes_resumed"].as_u64().unwrap();
    let second = bytes(&ran.stdout);
    let most = second.last().copied().unwrap_or_default();
    assert!(resumed > 0 && most > resumed && most <= 2 * LARGE as u64, "{resumed} of {second:?}");
}

#[test]
fn in_flight_is_empty_where_only_small_files_travel() {
    let sandbox = Sandbox::new();
    (0..2000).for_each(|number| drop(sandbox.write(format!("tree/{number}"), vec![1; 4000])));
    let ran = sandbox.ok(["tree", "there", "--bwlimit=4MB", "--json", "--stats=20ms"]);
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<Value> =
        lines.filter(|line| line["type"] == "progress").map(|line| line["in_flight"].clone()).collect();
    assert!(!told.is_empty() && told.iter().all(|list| *list == Value::Array(Vec::new())), "{told:?}");
}
