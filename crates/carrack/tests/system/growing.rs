//! Sources that grow while they are copied: `--growing refuse`, `snapshot` and `follow`.
//!
//! A writer appends at a pace of its own; what a test waits for are files and ends of programs.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime};

use carrack_faults::proxy::Proxy;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, b3sum, same_tree, tree, wait_until};

const MIB: usize = 1 << 20;
const FOLLOW: [&str; 3] = ["--growing=follow", "--growing-idle=500ms", "--json"];

/// Something that is appended to, in pieces of a size, until it is told to stop.
struct Log {
    path: PathBuf,
    piece: usize,
    is_over: AtomicBool,
    appended: AtomicUsize,
}

impl Log {
    fn new(path: PathBuf, piece: usize) -> Self {
        Self { path, piece, is_over: AtomicBool::new(false), appended: AtomicUsize::new(0) }
    }

    /// Appends all the while, every few milliseconds; as a program that keeps its log open.
    fn write<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> ScopedJoinHandle<'scope, ()> {
        let mut log = OpenOptions::new().append(true).open(&self.path).unwrap();
        scope.spawn(move || {
            while !self.is_over.load(Ordering::Relaxed) {
                let number = self.appended.fetch_add(1, Ordering::Relaxed);
                log.write_all(&tree::bytes(self.piece, number as u64)).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        })
    }

    /// Waits until so many more pieces have been appended.
    fn wait_for(&self, more: usize) {
        let before = self.appended.load(Ordering::Relaxed);
        wait_until("the log has grown", || self.appended.load(Ordering::Relaxed) >= before + more);
    }

    fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn long_ago(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn begun(sandbox: &Sandbox, below: &str, running: &mut Running) {
    wait_until("the copy has begun", || !sandbox.parts(below).is_empty() || !running.is_running());
}

#[track_caller]
fn count(ran: &Ran, name: &str) -> u64 {
    ran.summary()[name].as_u64().unwrap()
}

/// Follows `log` of a sandbox while it grows; the copy is `to`, where another stands until the end.
#[track_caller]
fn follow(sandbox: &Sandbox, to: &str, words: &[&str]) -> Ran {
    let source = sandbox.write("src/log", tree::bytes(2 * MIB + 5, 1));
    let copy = sandbox.write(to, "old");
    let (log, directory) = (Log::new(source, 20_000), Path::new(to).parent().unwrap().to_str().unwrap());
    let ran = std::thread::scope(|scope| {
        let writer = log.write(scope);
        let mut running = Running::start(sandbox.carrack().args(FOLLOW).args(words));
        begun(sandbox, directory, &mut running);
        // More than a second of blocks.
        log.wait_for(60);
        let whole = running.is_running() && fs::read(&copy).unwrap() == b"old";
        log.stop();
        writer.join().unwrap();
        let ran = running.end();
        assert!(whole, "the name appears when it is whole: {words:?}: {}{}", ran.stdout, ran.stderr);
        ran
    });
    assert_eq!(ran.code, 0, "{words:?}: {}{}", ran.stdout, ran.stderr);
    assert!(fs::read(&log.path).unwrap() == fs::read(&copy).unwrap(), "{words:?}");
    assert!(sandbox.parts(directory).is_empty());
    ran
}

/// All that is appended comes along, with the time of the last piece; a later comparison finds nothing to send.
#[test]
fn growing_log_is_followed_until_it_rests() {
    let sandbox = Sandbox::in_memory();
    let nodes = ["root", "two"].map(|root| Node::start(&sandbox, root, &["--dial-to=127.0.0.0/8"]));
    let node = &nodes[0];
    let ran = follow(&sandbox, "root/log", &["src/log", &node.at("log"), &node.token()]);
    assert_eq!((count(&ran, "files"), count(&ran, "files_followed")), (1, 1));
    let told = |line: &str| -> serde_json::Value { serde_json::from_str(line).unwrap() };
    let item = ran.stdout.lines().map(told).find(|event| event["path"] == "log").unwrap();
    let (source, copy) = (sandbox.path("src/log"), sandbox.path("root/log"));
    assert_eq!(item["size"], fs::metadata(&copy).unwrap().len());
    assert_eq!(item["blake3"], b3sum(&copy));
    assert_eq!(sandbox.modified(&source), sandbox.modified(&copy));
    let again = sandbox.ok(["sync", "src/", &node.at(""), &node.token(), "--json"]);
    assert_eq!((count(&again, "files"), count(&again, "files_same")), (0, 1));
    // Between two nodes, from one, and within this host.
    fs::create_dir_all(sandbox.path("root/src")).unwrap();
    let tokens = [nodes[0].token_as("source"), nodes[1].token_as("destination")];
    let far = sandbox.path("root/src/log");
    for (to, words) in [
        ("two/log", vec![node.at("src/log"), nodes[1].at("log"), tokens[0].clone(), tokens[1].clone()]),
        ("pulled/log", vec![node.at("src/log"), "pulled/".into(), node.token()]),
    ] {
        let _ = fs::remove_file(&far);
        sandbox.write("src/log", "");
        fs::hard_link(sandbox.path("src/log"), &far).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(count(&follow(&sandbox, to, &words), "files_followed"), 1);
    }
    assert_eq!(count(&follow(&sandbox, "here/log", &["src/log", "here/", "--reflink=auto"]), "files_followed"), 1);
}

#[test]
fn growing_log_of_an_ssh_host_is_followed_there() {
    let sandbox = Sandbox::in_memory();
    let far = Sshd::start(&sandbox);
    let at = format!("far:{}", sandbox.path("src/log").display());
    follow(&sandbox, "pulled/log", &[&far.rsh, &at, "pulled/"]);
}

/// Whatever else was asked for holds for what is followed, too.
#[test]
fn growing_log_is_followed_with_other_options() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let ways: [&[&str]; 7] = [
        &["--verify=disk", "--durable=each", "--streams=1"],
        &["--verify=source", "-z", "--block=64K"],
        &["--verify=none", "--digest=none", "--encrypt=none", "--streams=4"],
        &["--digest=xxh128", "--encrypt=none"],
        &["--digest=blake3,crc32c,adler32", "--no-resume"],
        &["--delta=always", "-c", "--block=64K"],
        &["--no-times", "-u", "--backup", "--failed-list=failed"],
    ];
    for flags in ways {
        fs::create_dir_all(sandbox.path("root")).unwrap();
        let (at, token) = (node.at("log"), node.token());
        let words = [&["src/log", &at, &token], flags].concat();
        if flags.contains(&"-u") {
            sandbox.write("root/log", "old");
            long_ago(&sandbox.path("root/log"));
        }
        let ran = follow(&sandbox, "root/log", &words);
        assert_eq!(count(&ran, "files_followed"), 1, "{flags:?}");
        let kept = flags.contains(&"--no-times");
        assert_eq!(sandbox.modified("src/log") == sandbox.modified("root/log"), !kept, "{flags:?}");
    }
}

/// To whom it is not said that the file is whole, and who cannot take anything back: a pipe.
#[test]
fn growing_log_is_followed_to_standard_output() {
    let sandbox = Sandbox::in_memory();
    let log = Log::new(sandbox.write("log", tree::bytes(3000, 1)), 3000);
    let out = sandbox.path("out");
    std::thread::scope(|scope| {
        let writer = log.write(scope);
        let words = ["copy", "log", "-", "--growing=follow", "--growing-idle=500ms"];
        let mut running = sandbox.carrack().args(words).stdout(File::create(&out).unwrap()).spawn().unwrap();
        log.wait_for(60);
        assert!(running.try_wait().unwrap().is_none(), "it follows");
        log.stop();
        writer.join().unwrap();
        assert!(running.wait().unwrap().success());
    });
    assert!(fs::read(&log.path).unwrap() == fs::read(&out).unwrap());
}

type Fate = fn(&Path);

const FATES: [(&str, &str, Fate); 5] = [
    ("truncated", "truncated while it was followed", |path| {
        OpenOptions::new().write(true).open(path).unwrap().set_len(1000).unwrap();
    }),
    ("rotated", "another file took its name", |path| {
        fs::rename(path, path.with_extension("1")).unwrap();
        fs::write(path, "new log\n").unwrap();
    }),
    ("replaced", "another file took its name", |path| {
        let other = path.with_extension("other");
        fs::write(&other, tree::bytes(5 * MIB, 9)).unwrap();
        fs::rename(&other, path).unwrap();
    }),
    ("removed", "renamed or deleted", |path| fs::remove_file(path).unwrap()),
    ("truncated and written anew", "while it was followed", |path| {
        let mut log = OpenOptions::new().write(true).truncate(true).open(path).unwrap();
        log.write_all(&tree::bytes(8 * MIB, 8)).unwrap();
    }),
];

/// What is followed and is not what it was any more fails, and says why; what stood there stays.
#[test]
fn followed_log_that_is_truncated_rotated_or_replaced_gets_no_name() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    for (fate, why, happens) in FATES {
        let log = Log::new(sandbox.write("src/log", tree::bytes(2 * MIB, 1)), 1000);
        sandbox.write("src/other", "other");
        sandbox.write("root/dst/log", "old");
        let ran = std::thread::scope(|scope| {
            log.write(scope);
            let words = ["src/", &node.at("dst/"), &node.token(), "--growing=follow", "--growing-idle=1s"];
            let mut running = Running::start(sandbox.carrack().args(words));
            begun(&sandbox, "root", &mut running);
            wait_until("the other file is there", || sandbox.path("root/dst/other").exists() || !running.is_running());
            happens(&log.path);
            let ran = running.end();
            log.stop();
            ran
        });
        ran.failed_with(23, &["log", why]);
        assert_eq!(fs::read(sandbox.path("root/dst/log")).unwrap(), b"old", "{fate}");
        assert_eq!(fs::read(sandbox.path("root/dst/other")).unwrap(), b"other", "{fate}");
        assert!(sandbox.parts("root").is_empty(), "{fate}");
        fs::remove_dir_all(sandbox.path("root/dst")).unwrap();
        fs::remove_dir_all(sandbox.path("src")).unwrap();
    }
}

/// The other modes: what gets the name is what the source was at one moment, whole, or the beginning of it.
#[test]
fn growing_log_that_is_truncated_rotated_or_replaced_is_never_a_mixture() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    for growing in ["refuse", "snapshot"] {
        for (fate, _, happens) in FATES {
            let first = tree::bytes(2 * MIB, 1);
            let log = Log::new(sandbox.write("src/log", &first), 1000);
            sandbox.write("root/dst/log", "old");
            let ran = std::thread::scope(|scope| {
                log.write(scope);
                let mode = format!("--growing={growing}");
                let words = ["src/", &node.at("dst/"), &node.token(), &mode, "--bwlimit=8M", "--block=64K"];
                let mut running = Running::start(sandbox.carrack().args(words));
                begun(&sandbox, "root", &mut running);
                log.stop();
                happens(&log.path);
                running.end()
            });
            let shown = format!("{growing}, {fate}: {}{}", ran.stdout, ran.stderr);
            let copy = fs::read(sandbox.path("root/dst/log")).unwrap();
            let now = fs::read(&log.path).unwrap_or_default();
            let is_old_log = copy.len() >= first.len() && copy.starts_with(&first);
            let is_right = match ran.code {
                0 => copy == now || growing == "snapshot" && (is_old_log || now.starts_with(&copy)),
                _ => copy == b"old",
            };
            assert!(is_right && [0, 23, 24].contains(&ran.code), "{} bytes: {shown}", copy.len());
            assert!(sandbox.parts("root").is_empty(), "{shown}");
            fs::remove_dir_all(sandbox.path("root/dst")).unwrap();
            fs::remove_dir_all(sandbox.path("src")).unwrap();
        }
    }
}

/// More logs than are followed at once, over one data connection: no other file waits for them.
#[test]
fn followed_logs_leave_streams_to_others() {
    const LOGS: usize = 40;
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    for number in 0..LOGS {
        sandbox.write(format!("src/a{number}"), tree::bytes(1000, number as u64));
    }
    for number in 0..200 {
        long_ago(&sandbox.write(format!("src/b{number}"), tree::bytes(500, number)));
    }
    long_ago(&sandbox.write("src/large", tree::bytes(3 * MIB, 5)));
    let (is_over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let ran = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let open = |number: usize| OpenOptions::new().append(true).open(sandbox.path(format!("src/a{number}")));
            let mut logs: Vec<File> = (0..LOGS).map(|number| open(number).unwrap()).collect();
            while !is_over.load(Ordering::Relaxed) {
                logs.iter_mut().for_each(|log| log.write_all(&tree::bytes(9000, 3)).unwrap());
                rounds.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(30));
            }
        });
        let words = ["src/", &node.at("dst"), &node.token(), "--streams=1", "--block=64K"];
        let mut running = Running::start(sandbox.carrack().args(FOLLOW).args(words));
        let copied = |kind: &str| {
            let names = fs::read_dir(sandbox.path("root/dst")).into_iter().flatten();
            names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().starts_with(kind)).count()
        };
        wait_until("the others are there", || copied("b") + copied("large") == 201 || !running.is_running());
        let waits = running.is_running() && copied("a") == 0;
        let before = rounds.load(Ordering::Relaxed);
        wait_until("all have grown since", || rounds.load(Ordering::Relaxed) > before + 1);
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        let ran = running.end();
        assert!(waits, "the logs are followed: {}{}", ran.stdout, ran.stderr);
        ran
    });
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    same_tree(&sandbox.path("src"), &sandbox.path("root/dst"));
    assert!(count(&ran, "files_followed") >= 32, "{}", ran.stdout);
}

/// A file that was written to long ago is not waited for, and one that has rested for most of the time only for the
/// rest: this would else take a day.
#[test]
fn files_that_have_rested_are_not_waited_for() {
    let sandbox = Sandbox::in_memory();
    for number in 0..500 {
        long_ago(&sandbox.write(format!("src/{number}"), tree::bytes(500, number)));
    }
    long_ago(&sandbox.write("src/large", tree::bytes(2 * MIB, 5)));
    let ran = sandbox.ok(["src/", "dst", "--growing=follow", "--growing-idle=1d", "--json"]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    assert_eq!((count(&ran, "files"), count(&ran, "files_followed")), (501, 0));
    // Written just now, and empty ones among them: as they are, once they have rested.
    for number in 0..100 {
        sandbox.write(format!("new/{number}"), tree::bytes(if number % 3 == 0 { 0 } else { MIB / 2 }, number));
    }
    let ran = sandbox.ok(["new/", "there", "--growing=follow", "--growing-idle=1s", "--block=64K", "--json"]);
    same_tree(&sandbox.path("new"), &sandbox.path("there"));
    assert_eq!((count(&ran, "files"), count(&ran, "files_followed")), (100, 0));
}

/// Over a path of 50 ms whose connections are all reset in the midst.
#[test]
fn growing_log_is_followed_over_a_long_path_that_breaks() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let proxy = Proxy::start(node.address.parse().unwrap());
    proxy.delay(Duration::from_millis(25));
    let at = node.at("log").replace(&node.address, &proxy.address().to_string());
    let log = Log::new(sandbox.write("log", tree::bytes(2 * MIB + 5, 1)), 20_000);
    let ran = std::thread::scope(|scope| {
        let writer = log.write(scope);
        let mut running =
            Running::start(sandbox.carrack().args(FOLLOW).args(["log", &at, &node.token(), "--block=64K"]));
        begun(&sandbox, "root", &mut running);
        log.wait_for(30);
        proxy.reset_all();
        log.wait_for(100);
        assert!(running.is_running());
        log.stop();
        writer.join().unwrap();
        running.end()
    });
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(fs::read(&log.path).unwrap() == fs::read(sandbox.path("root/log")).unwrap());
    assert!(sandbox.parts("root").is_empty());
    assert!(count(&ran, "files_followed") == 1 && proxy.made().resets > 0, "{}", ran.stdout);
}

/// A command that is killed leaves nothing that a later one could take for a part of the same file.
#[test]
fn followed_log_starts_over_after_a_kill() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let log = Log::new(sandbox.write("log", tree::bytes(3 * MIB, 1)), 20_000);
    let words = ["log", &node.at("log"), &node.token(), "--block=64K"];
    let ran = std::thread::scope(|scope| {
        let writer = log.write(scope);
        let mut killed = Running::start(sandbox.carrack().args(FOLLOW).args(words));
        begun(&sandbox, "root", &mut killed);
        log.wait_for(30);
        signal(killed.id(), "KILL");
        drop(killed);
        let mut running = Running::start(sandbox.carrack().args(FOLLOW).args(words));
        log.wait_for(30);
        assert!(running.is_running());
        log.stop();
        writer.join().unwrap();
        // What it had before is another file now, whose beginning is not what was sent.
        running.end()
    });
    assert_eq!((ran.code, count(&ran, "bytes_resumed")), (0, 0), "{}{}", ran.stdout, ran.stderr);
    assert!(fs::read(&log.path).unwrap() == fs::read(sandbox.path("root/log")).unwrap());
    wait_until("nothing is left", || sandbox.parts("root").is_empty() && sandbox.markers("root").is_empty());
}

/// As long as its lock file is there, a file is followed however long it rests; it is whole when that goes, which would
/// else take a day. One that has rested long before is followed, too, and a file without one is copied as ever.
#[test]
fn growing_log_is_followed_until_its_lock_file_goes() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    long_ago(&sandbox.write("src/done", "whole"));
    sandbox.write("src/free", "has just been written");
    let (at, token) = (node.at("dst"), node.token());
    let locks = ["--growing=follow", "--growing-lock=.*.lock", "--exclude=.*.lock", "--json"];
    for (words, idle, copy) in [
        (vec!["src/", &at, &token], "--growing-idle=100ms", "root/dst/log"),
        (vec!["src/log", "here/", "--streams=1"], "--growing-idle=1d", "here/log"),
    ] {
        let log = sandbox.write("src/log", tree::bytes(2 * MIB, 1));
        long_ago(&log);
        let lock = sandbox.write("src/.log.lock", "");
        let directory = Path::new(copy).parent().unwrap().to_str().unwrap();
        let mut running = Running::start(sandbox.carrack().args(locks).arg(idle).args(&words));
        begun(&sandbox, directory, &mut running);
        // One that has no lock file has rested for long enough, where that is not a day.
        wait_until("the other has its name", || idle.ends_with('d') || sandbox.path("root/dst/free").exists());
        let mut appended = OpenOptions::new().append(true).open(&log).unwrap();
        appended.write_all(&tree::bytes(70_000, 2)).unwrap();
        assert!(running.is_running() && !sandbox.path(copy).exists(), "{words:?}");
        fs::remove_file(lock).unwrap();
        let ran = running.end();
        assert_eq!((ran.code, count(&ran, "files_followed")), (0, 1), "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert!(fs::read(&log).unwrap() == fs::read(sandbox.path(copy)).unwrap(), "{words:?}");
    }
    assert_eq!(fs::read(sandbox.path("root/dst/done")).unwrap(), b"whole");
    assert!(!sandbox.path("root/dst/.log.lock").exists());
}

/// A plan does not wait; what is deleted afterwards must not grow; and a time that makes no sense is refused.
#[test]
fn following_is_refused_where_it_cannot_be() {
    let sandbox = Sandbox::new();
    sandbox.write("src/log", "a line\n");
    let plan = sandbox.ok(["sync", "-n", "src/", "dst", "--growing=follow", "--growing-idle=1d", "--json"]);
    assert_eq!(count(&plan, "files"), 1);
    let move_it = ["src/log", "dst/", "--growing=follow", "--remove-source-files"];
    sandbox.run(move_it).failed_with(2, &["--remove-source-files", "--growing follow"]);
    for (flag, why) in [
        ("--growing=some", "refuse, snapshot or follow"),
        ("--growing-idle=0", "use 100ms to 1d"),
        ("--growing-idle=2d", "use 100ms to 1d"),
        ("--growing-lock=*", "no name of a lock file"),
        ("--growing-lock=../lock", "no name of a lock file"),
        ("--allow-growing", "--allow-growing"),
    ] {
        sandbox.run(["src/log", "dst/", flag]).failed_with(2, &[why]);
    }
    assert!(!sandbox.path("dst").exists());
}
