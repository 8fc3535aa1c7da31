//! What a host without the program is sent: how much, what it is, and what it can do there. `ssh` shows how it is
//! found, kept and replaced.

use std::path::Path;
use std::process::Command;

use crate::support::running::InTime;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, b3sum, program, ran, same_tree, sent_program, slim_program, tool, tree};

/// The most that a host with `gzip` is sent.
const BYTES_MAX: u64 = 4_000_000;

fn far(sandbox: &Sandbox) -> Sshd {
    Sshd::with(sandbox, &Setup { has_agent: false, ..Setup::default() })
}

fn there(sandbox: &Sandbox, name: &str) -> String {
    format!("far:{}", sandbox.path(name).display())
}

/// What `--json` says of a program that was sent.
fn said(ran: &Ran) -> Option<serde_json::Value> {
    let mut lines = ran.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.find(|line| line["type"] == "program")
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn push_tells_program_and_bytes_and_comes_once() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let far = far(&sandbox);
    let ran = sandbox.ok(["--json", &far.rsh, "tree/", &there(&sandbox, "first")]);
    let sent = said(&ran).unwrap_or_else(|| panic!("{}", ran.stdout));
    same_tree(&sandbox.path("tree"), &sandbox.path("first"));
    assert_eq!((sent["host"].as_str(), sent["size"].as_u64()), (Some("far"), Some(length(&sent_program()))));
    assert_eq!(b3sum(&far.cached()[0]), b3sum(&sent_program()));
    let bytes = sent["bytes"].as_u64().unwrap();
    match slim_program() {
        Some(slim) => {
            assert_eq!((sent["program"].as_str(), sent["compressed"].as_bool()), (Some("slim"), Some(true)));
            assert!(bytes < length(&slim) && bytes <= BYTES_MAX, "{bytes}");
        }
        None => {
            assert_eq!((sent["program"].as_str(), sent["compressed"].as_bool()), (Some("itself"), Some(false)));
            assert_eq!(bytes, length(&program()));
        }
    }
    let again = sandbox.ok(["--json", &far.rsh, "tree/", &there(&sandbox, "second")]);
    assert_eq!(said(&again), None);
}

#[test]
fn push_without_gzip_sends_program_as_it_is() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let far = far(&sandbox);
    std::fs::remove_file(far.bin.join("gzip")).unwrap();
    let ran = sandbox.ok(["-v", &far.rsh, "tree/", &there(&sandbox, "there")]);
    same_tree(&sandbox.path("tree"), &sandbox.path("there"));
    assert_eq!(b3sum(&far.cached()[0]), b3sum(&sent_program()));
    let which = if slim_program().is_some() { "the slim program" } else { "this program itself" };
    let line = ran.stderr.lines().find(|line| line.starts_with("far: ")).unwrap_or_else(|| panic!("{}", ran.stderr));
    let bytes = format!("({} bytes) through ssh, as it is", digits(length(&sent_program())));
    assert!(line.contains(which) && line.contains(&bytes), "{line}");
}

/// A number as a person is shown it.
fn digits(number: u64) -> String {
    let text = number.to_string();
    let places = text.char_indices().map(|(place, digit)| {
        let comma = place > 0 && (text.len() - place).is_multiple_of(3);
        if comma { format!(",{digit}") } else { digit.to_string() }
    });
    places.collect()
}

#[test]
fn push_is_told_by_verbs_that_read() {
    let sandbox = Sandbox::new();
    sandbox.write("there/file", "content");
    let far = far(&sandbox);
    let ran = sandbox.ok(["ls", "--json", &far.rsh, &there(&sandbox, "there")]);
    assert_eq!(said(&ran).unwrap()["size"].as_u64(), Some(length(&sent_program())));
    assert!(ran.stdout.contains("\"path\":\"file\""), "{}", ran.stdout);
}

/// Both ends have to agree on the protocol, and what is kept serves the next command as well as an installed one.
#[test]
fn sent_program_is_of_the_same_version_and_has_every_verb_of_a_far_side() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let sent = sent_program();
    let version = |program: &Path| {
        let said = tool(Command::new(program).arg("--version"));
        // The commit stands in parentheses, and with it whether a file has been changed since.
        let (number, rest) = said.split_once(" (").unwrap();
        format!("{number}, {}", rest.rsplit_once(") ").unwrap().1)
    };
    assert_eq!(version(&sent), version(&program()));
    for verb in ["copy", "ls", "stat", "mkdir", "mv", "rm", "sum", "gc", "token", "serve", "agent"] {
        assert!(tool(Command::new(&sent).args([verb, "--help"])).contains("Usage"), "{verb}");
    }
    // As somebody would use it who has logged in there, or who has it as their only one.
    let far = far(&sandbox);
    let copied = Command::new(&sent)
        .args([&far.rsh, "file", &there(&sandbox, "there")])
        .current_dir(sandbox.path(""))
        .output_in_time();
    assert!(copied.unwrap().status.success());
    assert_eq!(std::fs::read_to_string(sandbox.path("there")).unwrap(), "content");
    assert_eq!(b3sum(&far.cached()[0]), b3sum(&sent));
}

#[test]
fn slim_program_says_of_endpoints_that_it_has_no_service() {
    let Some(slim) = slim_program() else { return eprintln!("not tried: CARRACK_SLIM names no slim program") };
    let sandbox = Sandbox::new();
    for words in [&["ls", "@lab:/x"][..], &["@lab:/x", "here"], &["here", "@lab:/x"], &["rm", "@lab:/x"]] {
        let mut command = std::process::Command::new(&slim);
        let ran = ran(command.args(words).current_dir(sandbox.path("")).output_in_time().unwrap());
        ran.failed_with(2, &["@lab:/x", "built without the service", "install the full carrack", "./@lab:/x"]);
    }
}
