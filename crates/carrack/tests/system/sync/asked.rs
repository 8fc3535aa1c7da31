//! The question before much is deleted: at a terminal, and nowhere else.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::node::Node;
use crate::support::{Sandbox, tree};

const QUESTION: &str = "[y/N] ";

/// Runs words on a terminal of their own, and types an answer once there is a question. The exit code, and what the
/// terminal showed.
fn at_terminal(sandbox: &Sandbox, words: &[&str], answer: &[u8]) -> (i32, String) {
    let carrack = sandbox.carrack();
    let quoted: Vec<String> = std::iter::once(carrack.get_program().to_str().unwrap())
        .chain(words.iter().copied())
        .map(|word| format!("'{word}'"))
        .collect();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("exec {}", quoted.join(" ")), "/dev/null"]).current_dir(sandbox.path("."));
    command.env_clear().envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut typed, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut text, mut byte, mut is_answered) = (Vec::new(), [0], false);
    while shown.read(&mut byte).unwrap() == 1 {
        text.push(byte[0]);
        if !is_answered && text.ends_with(QUESTION.as_bytes()) {
            typed.write_all(answer).unwrap();
            is_answered = true;
        }
    }
    (child.wait().unwrap().code().unwrap(), String::from_utf8(text).unwrap())
}

/// A destination with three items, two of which the source does not have.
fn prepare(sandbox: &Sandbox, place: &str) {
    sandbox.write("src/a", "one");
    for name in ["a", "only", "d/only"] {
        sandbox.write(format!("{place}/{name}"), "123");
    }
    let time = fs::metadata(sandbox.path("src/a")).unwrap().modified().unwrap();
    fs::File::options().write(true).open(sandbox.path(format!("{place}/a"))).unwrap().set_modified(time).unwrap();
}

fn left(sandbox: &Sandbox, place: &str) -> usize {
    tree::walk(&sandbox.path(place)).len()
}

#[test]
fn large_deletion_waits_for_a_yes() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let (there, token) = (node.at("dst"), node.token());
    for (place, to, more) in [("dst", "dst", &[][..]), ("root/dst", &there, &[token.as_str()])] {
        let words = [&["sync", "--delete", "src/", to], more].concat();
        for (answer, code, items) in
            [(&b"n\n"[..], 25, 4), (b"\n", 25, 4), (b"\x04", 25, 4), (b"\x03", 20, 4), (b"y\n", 0, 1), (b"Yes\n", 0, 1)]
        {
            prepare(&sandbox, place);
            let (ended, shown) = at_terminal(&sandbox, &words, answer);
            assert_eq!((ended, left(&sandbox, place)), (code, items), "{answer:?}: {shown}");
            // A node is shown without its key.
            let asks = ["3 items (of 4), 6 bytes are to be deleted at ", "dst. Delete them? [y/N] "];
            assert!(asks.iter().all(|part| shown.contains(part)), "{shown}");
            assert_eq!(code == 25, shown.contains("nobody said yes, so nothing was deleted"), "{shown}");
        }
    }
}

/// Nobody is asked who has agreed, who cannot answer, or whose sync deletes little or nothing.
#[test]
fn deletion_is_not_asked_about_elsewhere() {
    let sandbox = Sandbox::new();
    let words = ["sync", "--delete", "src/", "dst"];
    for more in [&["--yes"][..], &["-q"], &["--json"]] {
        prepare(&sandbox, "dst");
        let (code, shown) = at_terminal(&sandbox, &[&words, more].concat(), b"n\n");
        assert!(code == 0 && !shown.contains(QUESTION), "{shown}");
        assert_eq!(left(&sandbox, "dst"), 1, "{more:?}");
    }
    // Without a terminal.
    prepare(&sandbox, "dst");
    sandbox.ok(words);
    assert_eq!(left(&sandbox, "dst"), 1);
    // What a limit, an error or a dry run keeps is not asked about.
    for (more, code) in [(&["--max-delete=1"][..], 25), (&["-n"], 0), (&["--filter=dir-merge bad"], 23)] {
        prepare(&sandbox, "dst");
        sandbox.write("src/bad", "no such rule\n");
        let (ended, shown) = at_terminal(&sandbox, &[&words, more].concat(), b"y\n");
        assert!(ended == code && !shown.contains(QUESTION), "{more:?}: {shown}");
        assert!(left(&sandbox, "dst") >= 4, "{more:?}");
        fs::remove_file(sandbox.path("src/bad")).unwrap();
        let _ = fs::remove_file(sandbox.path("dst/bad"));
    }
    // One of many.
    for number in 0..5 {
        sandbox.write(format!("src/{number}"), "x");
    }
    sandbox.ok(words);
    sandbox.write("dst/only", "x");
    let (code, shown) = at_terminal(&sandbox, &words, b"n\n");
    assert!(code == 0 && !shown.contains(QUESTION) && !sandbox.path("dst/only").exists(), "{shown}");
}

/// The time that was given goes on while the question stands there, and nothing is deleted when it is over.
#[test]
fn question_that_nobody_answers_ends_with_the_deadline() {
    let sandbox = Sandbox::new();
    prepare(&sandbox, "dst");
    let (code, shown) = at_terminal(&sandbox, &["sync", "--delete", "--deadline=2s", "src/", "dst"], b"");
    assert!(shown.contains(QUESTION) && code == 30, "{code}: {shown}");
    assert_eq!(left(&sandbox, "dst"), 4);
}
