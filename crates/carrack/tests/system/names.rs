//! Names and times that somebody chose who means harm: they are copied like any other, and command nobody: no terminal,
//! no log, no reader of JSON, no shell.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, ran, same_tree, tool, tree};
use crate::verbs::on_terminal;

/// What 63 bits of seconds hold.
const FARTHEST: Duration = Duration::from_secs(i64::MAX as u64);

/// Sequences of terminals in 7 and in 8 bits, ends of lines, and what turns the direction of writing.
const NAMES: [&[u8]; 9] = [
    b"\x1b]0;owned\x07",
    b"\x1b[2J\x1b[1;1H",
    b"line\nbreak\n2026-01-01T00:00:00.000Z error: forged",
    b"\r\x1b[Kgone",
    b"\x9b31m \x90q\x9c",
    "\u{9b}31m".as_bytes(),
    "\u{202e}gpj.exe".as_bytes(),
    b"\x7f\x08\x08",
    b"{\"v\":1,\"type\":\"summary\"}\n",
];

fn named(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Nothing that a terminal would obey, and no line more than there are.
#[track_caller]
fn assert_harmless(what: &str, text: &str) {
    let harmful = |character: &char| {
        (character.is_control() && *character != '\n') || matches!(*character, '\u{202a}'..='\u{202e}' | '\u{fffd}')
    };
    let found: Vec<char> = text.chars().filter(harmful).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("2026-01-01T00:00:00.000Z error: forged")), "{what}: {text}");
}

fn run(sandbox: &Sandbox, words: &[OsString]) -> Ran {
    ran(sandbox.carrack().args(words).output_in_time().unwrap())
}

/// Words around a name of the test's.
fn words(before: &[&str], prefix: &str, name: &[u8], after: &[&str]) -> Vec<OsString> {
    let name = OsString::from_vec([prefix.as_bytes(), name].concat());
    before.iter().map(OsString::from).chain([name]).chain(after.iter().map(OsString::from)).collect()
}

/// A tree in which every name is a file, the name of a directory, and a FIFO, which cannot be copied.
fn evil_tree(sandbox: &Sandbox) {
    for name in NAMES {
        for directory in ["tree/files", "tree/fifos"] {
            fs::create_dir_all(sandbox.path(directory)).unwrap();
        }
        fs::write(sandbox.path("tree/files").join(named(name)), name).unwrap();
        let directory = sandbox.path("tree/directories").join(named(name));
        fs::create_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink(named(name), directory.join("link")).unwrap();
        tool(Command::new("mkfifo").arg(sandbox.path("tree/fifos").join(named(name))));
    }
}

#[test]
fn names_drive_no_message() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    evil_tree(&sandbox);
    let (place, token) = (node.at(""), node.token());
    for arguments in [
        &["tree", &place, &token, "-v", "--log-file=log"][..],
        &["tree", "here", "-v", "--log-file=log"],
        &["-n", "-v", "tree", "elsewhere", "--log-file=log"],
        &["ls", "-lR", &place, &token],
        &["ls", "-lR", "tree"],
    ] {
        let ran = sandbox.run(arguments);
        assert!([0, 23].contains(&ran.code), "{arguments:?}: {}", ran.stderr);
        assert_harmless(&format!("{arguments:?}"), &ran.stderr);
        assert_harmless(&format!("{arguments:?}"), &ran.stdout);
    }
    same_tree(&sandbox.path("tree/files"), &sandbox.path("root/tree/files"));
    same_tree(&sandbox.path("tree/directories"), &sandbox.path("root/tree/directories"));
    let log = String::from_utf8(fs::read(sandbox.path("log")).unwrap()).unwrap();
    assert_harmless("the log", &log);
    assert!(log.contains("owned"), "{log}");
    // A line of the log is one event: it begins with the time of this run.
    let forged = |line: &&str| !line.starts_with("20") || line.starts_with("2026-01-01T00:00:00.000Z");
    assert_eq!(log.lines().filter(forged).count(), 0, "{log}");
    // Errors that name what was typed, by each verb and at both places.
    for name in NAMES {
        for (at, token) in [("absent/", "-q"), (&node.at("absent/")[..], &token[..])] {
            for (before, after) in [
                (&[][..], &["there", token][..]),
                (&["tree/files"], &["x", token]),
                (&["ls"], &[token]),
                (&["stat"], &[token]),
                (&["sum"], &[token]),
                (&["rm"], &[token]),
                (&["mkdir"], &[token]),
                (&["mv"], &["there", token]),
            ] {
                let words = words(before, at, name, after);
                let ran = run(&sandbox, &words);
                assert!(ran.code != 0 && !ran.stderr.is_empty(), "{words:?}");
                assert_harmless(&format!("{words:?}"), &ran.stderr);
                assert_harmless(&format!("{words:?}"), &ran.stdout);
            }
        }
    }
}

#[test]
fn json_stays_one_object_a_line_whatever_the_names() {
    let sandbox = Sandbox::new();
    evil_tree(&sandbox);
    for arguments in [&["tree", "there", "--json"][..], &["ls", "-R", "--json", "tree"], &["sum", "--json", "tree"]] {
        let ran = sandbox.run(arguments);
        assert_harmless(&format!("{arguments:?}"), &ran.stdout);
        let events: Vec<Value> = ran
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect();
        let summaries = events.iter().filter(|event| event["type"] == "summary").count();
        assert_eq!(summaries, 1, "{arguments:?}: {}", ran.stdout);
        // Each name comes back as it is: as text, or in base64 where it is none.
        for name in NAMES {
            let path = [b"files/", name].concat();
            let is_it = |event: &Value| match (event["path"].as_str(), event["path_b64"].as_str()) {
                (Some(text), _) => text.as_bytes().ends_with(&path),
                (None, Some(encoded)) => decode(encoded).ends_with(&path),
                _ => false,
            };
            assert!(events.iter().any(is_it), "{arguments:?}: {name:?} in {}", ran.stdout);
        }
    }
}

fn decode(base64: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = base64.bytes().filter_map(|byte| DIGITS.iter().position(|&digit| digit == byte));
    let bits: Vec<u8> = digits.flat_map(|digit| (0..6).rev().map(move |bit| (digit >> bit & 1) as u8)).collect();
    bits.chunks_exact(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit)).collect()
}

/// In a file the manifest holds names as `b3sum` reads them; before a person's eyes it holds nothing
/// that the terminal obeys.
#[test]
fn manifest_has_one_line_for_each_file() {
    let sandbox = Sandbox::new();
    evil_tree(&sandbox);
    fs::remove_dir_all(sandbox.path("tree/fifos")).unwrap();
    let ran = sandbox.ok(["tree/", "there", "--manifest=sums"]);
    // One name is no text.
    assert!(ran.stderr.contains("1 file left out of the manifest"), "{}", ran.stderr);
    assert_eq!(fs::read(sandbox.path("sums")).unwrap().split(|&byte| byte == b'\n').count(), NAMES.len());
    let checked = tool(Command::new("b3sum").arg("-c").arg(sandbox.path("sums")).current_dir(sandbox.path("there")));
    assert_eq!(checked.matches(": OK").count(), NAMES.len() - 1, "{checked}");
    for words in [&["-q", "tree/files/", "again", "--manifest=-"][..], &["sum", "tree/files"]] {
        let shown = on_terminal(&sandbox, words).replace("\r\n", "\n");
        assert_harmless(&format!("{words:?}"), &shown);
        assert!(shown.contains("owned"), "{words:?}: {shown}");
    }
}

/// The user of `user@host` reaches `ssh` as one word, or not at all.
#[test]
fn user_is_never_an_option_or_a_command() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::start(&sandbox);
    let is_there = || sandbox.path("canary").exists() || far.home.join("canary").exists();
    for user in [
        "$(touch canary)",
        "`touch canary`",
        "a;touch canary;",
        "a|touch canary|",
        "a&touch canary&",
        "a\ntouch canary\n",
        "-oProxyCommand=touch canary",
        "-oLocalCommand=touch${IFS}canary",
        "a -oProxyCommand=touch canary",
        "'a",
        "\"a",
        "%h$(touch canary)",
        "",
    ] {
        for arguments in [["file", &format!("{user}@far:there")], [&format!("{user}@far:/etc/hostname"), "here"]] {
            let output = sandbox.carrack().arg(&far.rsh).arg("--").args(arguments).output_in_time().unwrap();
            let ran = ran(output);
            assert!([2, 10].contains(&ran.code), "{user:?}: {} {}", ran.code, ran.stderr);
            assert!(!is_there() && !sandbox.path("here").exists(), "{user:?}");
            assert_harmless(user, &ran.stderr);
        }
    }
}

/// Times that no calendar has, as far as the file system keeps them: copied or refused, printed, never a crash.
#[test]
fn times_at_the_ends_of_what_can_be_counted() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let (before, after) = (SystemTime::UNIX_EPOCH - FARTHEST, SystemTime::UNIX_EPOCH + FARTHEST);
    for (index, time) in [before, after, SystemTime::UNIX_EPOCH - Duration::from_nanos(1)].into_iter().enumerate() {
        for (name, size) in [("small", 5), ("large", (1 << 20) + 5)] {
            let path = sandbox.write(format!("tree/{index}/{name}"), tree::bytes(size, 3));
            // Not every file system keeps every time; what it makes of it is as good.
            let _ = File::options().write(true).open(path).unwrap().set_modified(time);
        }
        let _ = File::open(sandbox.path(format!("tree/{index}"))).unwrap().set_modified(time);
    }
    for verb in [&["ls", "-lR", "tree"][..], &["ls", "-R", "--json", "tree"], &["stat", "tree/0/small", "tree/1"]] {
        sandbox.ok(verb);
    }
    sandbox.ok(["tree", &node.at(""), &node.token()]);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/tree"));
    let time = |path: &str| fs::metadata(sandbox.path(path)).map(|found| (found.mtime(), found.mtime_nsec())).unwrap();
    for index in 0..3 {
        for name in ["", "/small", "/large"] {
            assert_eq!(
                time(&format!("root/tree/{index}{name}")),
                time(&format!("tree/{index}{name}")),
                "{index}{name}"
            );
        }
    }
}
