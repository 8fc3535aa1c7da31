//! Where output goes, and what becomes of a command whose output goes nowhere: closed streams, readers that leave,
//! readers that do not read, files that are no files.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carrack_core::tuning::{STREAM_SILENCE, Tuning};

use crate::support::process::signal;
use crate::support::running::{InTime, own_memory};
use crate::support::{Ran, Sandbox, is_root, program, ran, tool, tree, wait_until};

/// Runs a line of shell in which `$0` is the program.
fn shell(sandbox: &Sandbox, line: &str) -> Ran {
    let mut command = sandbox.carrack();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line).arg(program()).current_dir(sandbox.path(".")).env_clear().stdin(Stdio::null());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    ran(shell.output_in_time().unwrap_or_else(|error| panic!("{line}: {error} {:?}", command.output_in_time())))
}

/// A device of the sandbox's own, if such can be made here.
fn device(sandbox: &Sandbox, name: &str, minor: &str) -> bool {
    let path = sandbox.path(name);
    let made = is_root() && Command::new("mknod").arg(&path).args(["c", "1", minor]).status().unwrap().success();
    made && File::options().write(true).open(path).is_ok()
}

#[test]
fn manifest_and_failed_list_never_replace_what_is_no_file() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a", "a");
    tool(Command::new("mkfifo").arg(sandbox.path("tree/fifo")));
    for flag in ["--manifest", "--failed-list"] {
        let pipe = sandbox.path("pipe");
        tool(Command::new("mkfifo").arg(&pipe));
        symlink("pipe", sandbox.path("link")).unwrap();
        symlink("file", sandbox.path("to-file")).unwrap();
        sandbox.write("file", "old");
        for name in ["pipe", "link"] {
            let from = pipe.clone();
            let reader = std::thread::spawn(move || {
                let mut got = String::new();
                File::open(from).unwrap().read_to_string(&mut got).unwrap();
                got
            });
            assert_eq!(sandbox.run(["tree", "there", flag, name]).code, 23);
            // Were it replaced, nobody would ever write to it.
            drop(File::options().read(true).write(true).open(&pipe));
            assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{flag} {name}");
            assert!(reader.join().unwrap().contains("tree/"), "{flag} {name}");
        }
        assert_eq!(sandbox.run(["tree", "there", flag, "to-file"]).code, 23);
        assert!(sandbox.path("to-file").is_symlink());
        assert!(fs::read_to_string(sandbox.path("file")).unwrap().contains("tree/"), "{flag}");
        assert_eq!(sandbox.run(["tree", "there", flag, "home"]).code, 11);
        for name in ["pipe", "link", "to-file", "file"] {
            fs::remove_file(sandbox.path(name)).unwrap();
        }
    }
    if device(&sandbox, "full", "7") && device(&sandbox, "null", "3") {
        sandbox.run(["tree/a", "there", "--manifest=full"]).failed_with(11, &["full", "No space left"]);
        sandbox.ok(["tree/a", "there", "--manifest=null", "--failed-list=null"]);
        let is_device = |name| fs::symlink_metadata(sandbox.path(name)).unwrap().file_type().is_char_device();
        assert!(is_device("full") && is_device("null"));
    }
}

#[test]
fn descriptor_named_by_a_path_is_written_to_at_its_end() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    sandbox.write("sums", "before\n");
    symlink("/proc/self/fd/1", sandbox.path("out")).unwrap();
    let ran = shell(&sandbox, r#""$0" a there --manifest=out >> sums"#);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let sums = fs::read_to_string(sandbox.path("sums")).unwrap();
    assert!(sums.starts_with("before\n") && sums.ends_with("  there\n"), "{sums}");
    assert!(sandbox.path("out").is_symlink());
}

#[test]
fn streams_that_are_closed_are_no_success() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "content");
    let said = "Bad file descriptor";
    for line in [
        r#""$0" x - >&-"#,
        r#""$0" x - 1</dev/null"#,
        r#""$0" - y <&-"#,
        r#""$0" - y 0>/dev/null"#,
        r#""$0" x y --json >&-"#,
        r#""$0" x y --manifest=- >&-"#,
        r#""$0" --files-from=- . y <&-"#,
        r#""$0" rm --json x >&-"#,
        r#""$0" ls . >&-"#,
        r#""$0" sum x >&-"#,
        r#""$0" --version >&-"#,
        r#""$0" man >&-"#,
        r#""$0" completions bash >&-"#,
    ] {
        let ran = shell(&sandbox, line);
        ran.failed_with(11, &[said]);
        assert!(sandbox.path("x").exists() && !sandbox.path("y").exists(), "{line}");
        // Whoever cannot be told is told by the exit code.
        assert_eq!(shell(&sandbox, &format!("{line} 2>&-")).code, 11, "{line}");
    }
    // What is not used may be closed.
    assert_eq!(shell(&sandbox, r#""$0" x y <&- >&- 2>&-"#).code, 0);
    assert_eq!(fs::read(sandbox.path("y")).unwrap(), b"content");
    if device(&sandbox, "full", "7") {
        for words in ["--version", "x z --json", "x z --manifest=-", "ls .", "x -"] {
            let ran = shell(&sandbox, &format!(r#""$0" {words} > full"#));
            assert_ne!(ran.code, 0, "{words}: {}", ran.stderr);
        }
    }
}

#[test]
fn reader_that_leaves_ends_a_command_without_a_word_and_a_copy_is_whole() {
    let sandbox = Sandbox::new();
    tree::many(&sandbox.path("tree"), 300, 10);
    let status = |line: &str| {
        let ran = shell(&sandbox, &format!(r#"{{ {line}; echo $? > status; }} | head -n 1"#));
        (fs::read_to_string(sandbox.path("status")).unwrap(), ran)
    };
    let (code, ran) = status(r#""$0" tree there --json"#);
    assert_eq!((code.as_str(), ran.stdout.lines().count(), ran.stderr.as_str()), ("141\n", 1, ""));
    crate::support::same_tree(&sandbox.path("tree"), &sandbox.path("there/tree"));
    // What changes something goes on to its end, too.
    let (code, _) = status(r#""$0" rm --json absent absent absent absent there/tree/d000/f000000"#);
    assert_ne!(code, "0\n");
    assert!(!sandbox.path("there/tree/d000/f000000").exists());
}

/// More than a pipe holds, so that the reader is gone before all is written.
#[test]
fn reader_that_leaves_is_told_apart_from_a_full_disk() {
    let sandbox = Sandbox::in_memory();
    tree::many(&sandbox.path("tree"), 6000, 1);
    sandbox.write("small", "content");
    sandbox.write("big", vec![7; 4 << 20]);
    let status = |line: &str| {
        let ran = shell(&sandbox, &format!(r#"{{ {line}; echo $? > status; }} | head -c 9"#));
        (fs::read_to_string(sandbox.path("status")).unwrap(), ran.stderr)
    };
    let verbs = ["ls -lR tree", "ls -R --json tree", "sum tree", "du -a tree", "stat --json tree tree/*/*"];
    for words in ["big -", "big - -v", "zero:64M -"].iter().chain(&verbs) {
        let (code, said) = status(&format!(r#""$0" {words}"#));
        assert_eq!(code, "141\n", "{words}: {said}");
        // Where it goes to is said before the first byte.
        let is_told = |line: &str| !line.contains(" -> -") && !line.starts_with("link: ");
        assert!(!said.lines().any(is_told), "{words}: {said}");
    }
    // A file of which every byte is taken.
    let taken = shell(&sandbox, r#"{ "$0" small - --quiet; echo $? > status; } | cat"#);
    assert_eq!((taken.stdout.as_str(), &*fs::read_to_string(sandbox.path("status")).unwrap()), ("content", "0\n"));
    if device(&sandbox, "full", "7") {
        for words in ["small -", "big -", "ls tree", "zero:64M -", "tree there --json", "small y --manifest=-"] {
            let ran = shell(&sandbox, &format!(r#""$0" {words} > full"#));
            ran.failed_with(11, &["No space left on device"]);
        }
    }
}

/// A command whose output is a pipe that nobody reads, once the pipe is full.
fn unread(sandbox: &Sandbox, words: &[&str], is_error: bool) -> Child {
    let mut command = sandbox.carrack();
    command.args(words).stdin(Stdio::piped());
    let (piped, null) = (Stdio::piped(), Stdio::null());
    if is_error {
        command.stdout(null).stderr(piped)
    } else {
        command.stdout(piped).stderr(null)
    };
    command.spawn().unwrap()
}

fn ended(child: &mut Child, what: &str) -> Option<i32> {
    let mut status = None;
    wait_until(what, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

#[test]
fn reader_that_does_not_read_holds_up_no_signal_and_no_deadline() {
    let sandbox = Sandbox::in_memory();
    tree::many(&sandbox.path("tree"), 3000, 1);
    sandbox.write("big", vec![7; 1 << 20]);
    let copied = |place: &str| tree::walk(&sandbox.path(place)).iter().filter(|path| path.is_file()).count();
    for (number, (is_error, words)) in
        [(false, &["--json"][..]), (true, &["-vv", "--no-progress"]), (true, &["-vv", "-P"])].into_iter().enumerate()
    {
        for (name, code) in [("INT", 20), ("TERM", 75)] {
            let there = format!("there-{number}-{name}");
            let mut child = unread(&sandbox, &[&["tree", &there], words].concat(), is_error);
            // More has been said by then than a pipe holds.
            wait_until("the copy", || copied(&there) == 3000);
            signal(child.id(), name);
            assert_eq!(ended(&mut child, name), Some(code), "{words:?}");
            // It goes on from there.
            sandbox.ok(["tree", &there]);
            crate::support::same_tree(&sandbox.path("tree"), &sandbox.path(&there).join("tree"));
        }
        let mut child = unread(&sandbox, &[&["tree", "late", "--deadline=1s"], words].concat(), is_error);
        assert_eq!(ended(&mut child, "the deadline"), Some(30), "{words:?}");
    }
    // The data itself, and a listing; and who waits for standard input.
    for (words, is_error) in [(&["big", "-"][..], false), (&["ls", "-lR", "tree"], false), (&["-", "y"], true)] {
        let mut child = unread(&sandbox, words, is_error);
        match (&child.stdout, &child.stderr) {
            (Some(out), _) => carrack_sys::socket::wait(out, true, false, None).unwrap(),
            (_, Some(out)) => carrack_sys::socket::wait(out, true, false, None).unwrap(),
            _ => unreachable!("one of them is a pipe"),
        };
        signal(child.id(), "TERM");
        assert_eq!(ended(&mut child, "SIGTERM"), Some(75), "{words:?}");
    }
}

/// A terminal is no pipe: it takes a part of what is written, and keeps the writer waiting with the rest.
#[test]
fn terminal_that_nobody_reads_holds_up_no_signal_and_no_deadline() {
    let sandbox = Sandbox::in_memory();
    tree::many(&sandbox.path("tree"), 3000, 1);
    let copied = |place: &str| tree::walk(&sandbox.path(place)).iter().filter(|path| path.is_file()).count();
    let cases = [(false, &["--json"][..]), (true, &["-vv", "--no-progress"]), (true, &["-vv"])];
    for (number, (is_error, words)) in cases.into_iter().enumerate() {
        for (ending, code) in [("INT", 20), ("TERM", 75), ("deadline", 30)] {
            let there = format!("there-{number}-{ending}");
            let (_person, terminal) = carrack_faults::pty::open().unwrap();
            let mut command = sandbox.carrack();
            command.env("TERM", "xterm").args(["tree", &there]).args(words).stdin(Stdio::null());
            let theirs = || Stdio::from(terminal.try_clone().unwrap());
            let (stdout, stderr) = if is_error { (Stdio::null(), theirs()) } else { (theirs(), Stdio::null()) };
            command.stdout(stdout).stderr(stderr);
            if ending == "deadline" {
                command.arg("--deadline=3s");
            }
            let mut child = command.spawn().unwrap();
            wait_until("the copy, and a full terminal", || {
                let ready = carrack_sys::socket::wait(&terminal, false, true, Some(Duration::ZERO)).unwrap();
                copied(&there) == 3000 && !ready.write
            });
            if ending != "deadline" {
                signal(child.id(), ending);
            }
            assert_eq!(ended(&mut child, ending), Some(code), "{words:?} {ending}");
        }
    }
}

/// More is told than may wait: the copy waits for its reader, and goes on when it reads.
#[test]
fn reader_that_pauses_gets_everything() {
    const FILES: usize = 30_000;
    let sandbox = Sandbox::in_memory();
    tree::many(&sandbox.path("tree"), FILES, 0);
    let node = crate::support::node::Node::start(&sandbox, "root", &[]);
    for (to, place) in [("there".to_owned(), "there"), (node.at("there"), "root/there")] {
        let mut child = unread(&sandbox, &["tree/", &to, &node.token(), "--json", "--durable=none"], false);
        let copied = || tree::walk(&sandbox.path(place)).len();
        wait_until("as much as may be told and not read", || copied() > FILES / 3);
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(ended(&mut child, "the copy"), Some(0));
        assert_eq!(text.lines().filter(|line| line.contains(r#""type":"item""#)).count(), FILES, "{place}");
    }
}

/// Whether a node waits for a client that has no room for anything more: TCP asks now and then whether there is some.
fn is_kept_waiting(node: &crate::support::node::Node) -> bool {
    const ZERO_WINDOW_PROBE: &str = "04";
    let port = format!(":{:04X}", node.address.rsplit(':').next().unwrap().parse::<u16>().unwrap());
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
    sockets.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].ends_with(&port) && fields[5].starts_with(ZERO_WINDOW_PROBE)
    })
}

/// A node tells of more items than fit into everything between it and a reader that has stopped. It is kept waiting for
/// longer than any silence may last, and both sides know that the other is there.
#[test]
fn reader_that_stops_costs_neither_the_session_nor_memory() {
    const FILES: usize = 60_000;
    const MEMORY_BYTES: u64 = 64 << 20;
    let sandbox = Sandbox::in_memory();
    // Each file is told with its whole path.
    let deep = ["d".repeat(200), "e".repeat(200), "f".repeat(200)].join("/");
    tree::many(&sandbox.path("root").join(&deep), FILES, 0);
    let nodes = ["one", "other"].map(|_| crate::support::node::Node::start(&sandbox, "root", &[]));
    let copy = |node: &crate::support::node::Node, to: &str| {
        let words = [&node.at(""), to, &node.token(), "-v", "--json", "--durable=none", "--retries=0"];
        unread(&sandbox, &words, false)
    };
    let (mut pauses, mut stops) = (copy(&nodes[0], "there"), copy(&nodes[1], "nowhere"));
    // What is on its way still moves for a moment. A session that is ended is kept waiting no more.
    let (mut since, longest) = (Instant::now(), Tuning::DEFAULT.silence.max(STREAM_SILENCE) + Duration::from_secs(2));
    wait_until("the nodes are kept waiting for longer than any silence may last", || {
        if !nodes.iter().all(is_kept_waiting) {
            since = Instant::now();
        }
        since.elapsed() > longest
    });
    for process in [pauses.id(), stops.id(), nodes[0].child.id(), nodes[1].child.id()] {
        let held = own_memory(process).unwrap();
        assert!(held < MEMORY_BYTES, "{held} bytes");
    }
    let mut text = String::new();
    pauses.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(ended(&mut pauses, "the copy"), Some(0), "{}", text.lines().next_back().unwrap_or_default());
    let lines = |kind: &str| text.lines().filter(|line| line.contains(&format!(r#""type":"{kind}""#))).count();
    assert_eq!(text.lines().filter(|line| line.contains(r#""kind":"file""#)).count(), FILES);
    assert_eq!((lines("session-lost"), lines("summary")), (0, 1));
    assert_eq!(tree::walk(&sandbox.path("there")).iter().filter(|path| path.is_file()).count(), FILES);
    signal(stops.id(), "INT");
    assert_eq!(ended(&mut stops, "the copy that nobody reads"), Some(20));
}

#[test]
fn pipe_without_a_reader_is_waited_for_until_a_signal() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    tool(Command::new("mkfifo").arg(sandbox.path("pipe")));
    for flag in ["--manifest=pipe", "--failed-list=pipe", "--log-file=pipe"] {
        let mut child = unread(&sandbox, &["a", "there", flag], true);
        signal(child.id(), "TERM");
        assert_ne!(ended(&mut child, flag), Some(0), "{flag}");
        let mut child = unread(&sandbox, &["a", "there", flag], true);
        let mut got = String::new();
        File::open(sandbox.path("pipe")).unwrap().read_to_string(&mut got).unwrap();
        assert_eq!(ended(&mut child, flag), Some(0), "{flag}");
        assert_eq!(got == "# carrack failed-list\n", flag.starts_with("--failed"), "{flag}: {got}");
    }
}
