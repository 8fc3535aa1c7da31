//! `--inplace` and `--append`: large files that are written over where they stand, which is told, and repaired when it
//! was not finished.

use std::fs::{self, File, OpenOptions, hard_link};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::time::{Duration, SystemTime};

use carrack_faults::strace::Inject;

use crate::crash;
use crate::delta::BLOCK_CHUNK;
use crate::faults::{NOBODY, open_to_all, under};
use crate::support::counted::CountedNode;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
#[cfg(feature = "service")]
use crate::support::service::{Service, add_endpoints};
use crate::support::{Ran, Sandbox, is_root, ran, tree, wait_until};

const MIB: usize = 1 << 20;
const BLOCK: usize = 256 << 10;
const LARGE: usize = 24 * MIB + 17;

fn scene() -> CountedNode {
    CountedNode::start(&["--block=256K", "--streams=2"])
}

fn numbers(ran: &Ran) -> (u64, u64) {
    let summary = ran.summary();
    (summary["files_in_place"].as_u64().unwrap(), summary["bytes_taken_over"].as_u64().unwrap())
}

/// A file whose time is not that of its source.
fn old(sandbox: &Sandbox, name: &str, content: &[u8]) {
    let path = sandbox.write(name, content);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// It is what its source is, with its time, and nothing is left.
#[track_caller]
fn check(sandbox: &Sandbox, from: &str, to: &str) {
    assert!(fs::read(sandbox.path(from)).unwrap() == fs::read(sandbox.path(to)).unwrap(), "{to} is another");
    assert_eq!(sandbox.modified(from), sandbox.modified(to));
    let directory = sandbox.path(to).parent().unwrap().to_owned();
    assert!(sandbox.parts(&directory).is_empty() && sandbox.markers(&directory).is_empty());
}

#[test]
fn file_stays_where_it_is_and_only_its_blocks_that_differ_are_written() {
    let scene = scene();
    let sandbox = &scene.sandbox;
    let new = tree::bytes(LARGE, 1);
    sandbox.write("tree/large", &new);
    let longer = [&tree::changed(&new, BLOCK, &[7])[..], &[7; 3 * MIB]].concat();
    let cases: [(&[u8], usize); 5] = [
        (&tree::changed(&new, BLOCK, &[0, 40, 41]), LARGE - 3 * BLOCK_CHUNK),
        (&longer, LARGE - BLOCK_CHUNK),
        (&new[..10 * BLOCK + 5], 10 * BLOCK),
        (b"", 0),
        (b"short", 0),
    ];
    for (before, taken_over) in cases {
        for flags in [&["--verify=wire"][..], &["--verify=disk", "--durable=each"], &["--verify=source", "-z"]] {
            let flags = &[&["--delta=always"], flags].concat()[..];
            old(sandbox, "root/to/large", before);
            let at = sandbox.inode("root/to/large");
            let (ran, sent) = scene.copy(&[&["--inplace"], flags].concat());
            assert_eq!(numbers(&ran), (1, taken_over as u64), "{} bytes, {flags:?}", before.len());
            assert!(sent < (LARGE - taken_over + MIB) as u64, "{} bytes: {sent}", before.len());
            assert_eq!(sandbox.inode("root/to/large"), at);
            check(sandbox, "tree/large", "root/to/large");
        }
    }
    // What cannot be compared is sent, and so is what need not be.
    for flags in [&["--verify=none", "--digest=none"][..], &["--delta=never"], &["--digest=xxh128", "--encrypt=none"]] {
        old(sandbox, "root/to/large", &tree::changed(&new, BLOCK, &[5]));
        let at = sandbox.inode("root/to/large");
        assert_eq!(numbers(&scene.copy(&[&["--inplace"], flags].concat()).0).0, 1, "{flags:?}");
        assert_eq!(sandbox.inode("root/to/large"), at);
        check(sandbox, "tree/large", "root/to/large");
    }
    // Nothing stands there, a link does, or the file is small: it is replaced, or made, as ever.
    sandbox.write("tree/small", "small");
    old(sandbox, "root/to/small", b"old");
    fs::remove_file(sandbox.path("root/to/large")).unwrap();
    assert_eq!(numbers(&scene.copy(&["--inplace"]).0).0, 0);
    fs::remove_file(sandbox.path("root/to/large")).unwrap();
    symlink("small", sandbox.path("root/to/large")).unwrap();
    assert_eq!(numbers(&scene.copy(&["--inplace"]).0).0, 0);
    check(sandbox, "tree/large", "root/to/large");
    check(sandbox, "tree/small", "root/to/small");
}

/// Holes of the source are holes of what had content there.
#[test]
fn holes_take_the_place_of_content() {
    let sandbox = Sandbox::in_memory();
    let sparse = sandbox.write("tree/large", tree::bytes(2 * MIB, 1));
    let file = OpenOptions::new().write(true).open(&sparse).unwrap();
    file.set_len(LARGE as u64).unwrap();
    file.write_all_at(&tree::bytes(MIB, 2), 20 * MIB as u64).unwrap();
    for flags in ["--delta=always", "--delta=never", "--verify=disk"] {
        old(&sandbox, "to/large", &tree::bytes(LARGE + 5, 3));
        let at = sandbox.inode("to/large");
        sandbox.ok(["copy", "--inplace", "--block=256K", flags, "tree/", "to"]);
        assert_eq!(sandbox.inode("to/large"), at);
        check(&sandbox, "tree/large", "to/large");
    }
}

#[test]
fn file_is_written_on_where_it_is_shorter_and_what_it_has_is_compared() {
    let scene = scene();
    let sandbox = &scene.sandbox;
    let new = tree::bytes(LARGE, 1);
    sandbox.write("tree/large", &new);
    let wrong = tree::changed(&new[..10 * BLOCK], BLOCK, &[3]);
    let same_size = tree::changed(&new, BLOCK, &[3]);
    let cases: [(&[u8], bool, usize); 5] = [
        (&new[..10 * BLOCK + 5], true, 10 * BLOCK),
        (&new[..11 * BLOCK - 5], true, 11 * BLOCK - BLOCK_CHUNK),
        // Its beginning is another: that is sent again, whatever the size says.
        (&wrong, true, 10 * BLOCK - BLOCK_CHUNK),
        // One that is not shorter is replaced, once the new one is whole.
        (&same_size, false, 0),
        (&[7; LARGE + 1], false, 0),
    ];
    for (before, in_place, taken_over) in cases {
        old(sandbox, "root/to/large", before);
        let at = sandbox.inode("root/to/large");
        // The flag of a delta says nothing of it.
        let (ran, _) = scene.copy(&["--append", "--delta=never"]);
        assert_eq!(numbers(&ran), (u64::from(in_place), taken_over as u64), "{} bytes", before.len());
        assert_eq!(sandbox.inode("root/to/large") == at, in_place);
        check(sandbox, "tree/large", "root/to/large");
    }
}

/// It is told before anything is written, and after.
#[test]
fn mixture_is_told_before_the_first_byte_and_in_the_report() {
    let sandbox = Sandbox::in_memory();
    let new = tree::bytes(LARGE, 1);
    sandbox.write("tree/large", &new);
    old(&sandbox, "to/large", &tree::changed(&new, BLOCK, &[3]));
    let ran = sandbox.ok(["copy", "--inplace", "tree/", "to"]);
    let (told, done) = (ran.stderr.find("holds a mixture"), ran.stderr.find("written in place: 1 file"));
    assert!(told.is_some() && told < done, "{}", ran.stderr);
    let plan = sandbox.ok(["sync", "-n", "--inplace", "tree/", "to"]);
    assert!(!plan.stderr.contains("written in place"), "{}", plan.stderr);
}

#[test]
fn files_with_other_names_and_what_must_stay_whole_are_refused() {
    let sandbox = Sandbox::in_memory();
    let new = tree::bytes(2 * MIB, 1);
    sandbox.write("tree/large", &new);
    let other = tree::bytes(2 * MIB, 2);
    old(&sandbox, "to/large", &other);
    hard_link(sandbox.path("to/large"), sandbox.path("snapshot")).unwrap();
    let before = sandbox.modified("snapshot");
    for flag in ["--inplace", "--append"] {
        if flag == "--append" {
            OpenOptions::new().write(true).open(sandbox.path("snapshot")).unwrap().set_len(MIB as u64).unwrap();
            old(&sandbox, "snapshot", &other[..MIB]);
        }
        let ran = sandbox.run(["copy", flag, "tree/", "to"]);
        ran.failed_with(23, &["large", "has other names", "without --inplace"]);
        assert!(other.starts_with(&fs::read(sandbox.path("snapshot")).unwrap()));
        assert_eq!(sandbox.modified("to/large"), before);
        assert!(sandbox.markers("to").is_empty());
    }
    for (flags, why) in [
        (&["--inplace", "--backup"][..], "is not kept"),
        (&["--append", "--backup-dir=old"], "is not kept"),
        (&["--inplace", "--link-dest=../monday"], "must not change"),
        (&["--append", "--copy-dest=../monday"], "must not change"),
        (&["--inplace", "--remove-source-files"], "whole or not there"),
    ] {
        sandbox.run([&["copy"], flags, &["tree/", "to"]].concat()).failed_with(2, &[why]);
    }
}

/// Killed, or told to end: what is there is a mixture that says so, and the next run makes it whole, whatever that
/// compares by and whatever it leaves as it is.
#[test]
fn mixture_that_is_left_is_repaired_by_the_next_run() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let (at, token) = (node.at("to"), node.token());
    let new = tree::bytes(LARGE, 1);
    for (number, flags) in
        [&["--size-only"][..], &["-u"], &["--ignore-existing"], &["--existing"], &["-c"], &["--no-times"], &[]]
            .into_iter()
            .enumerate()
    {
        sandbox.write("tree/large", &new);
        old(&sandbox, "root/to/large", &tree::bytes(LARGE, 2));
        let begin = ["sync", "--inplace", "--block=256K", "--bwlimit=10M", "--delta=never", "tree/", &at, &token];
        let running = Running::start(sandbox.carrack().args(begin));
        let there = sandbox.path("root/to/large");
        let is_mixture = || fs::read(&there).unwrap().iter().zip(&new).take(20 * BLOCK).any(|(a, b)| a == b);
        wait_until("some has been written", || sandbox.modified("root/to/large") != old_time() && is_mixture());
        // At once, or in good order.
        signal(running.id(), if number % 2 == 0 { "KILL" } else { "TERM" });
        assert_ne!(running.end().code, 0);
        wait_until("the node has ended it", || !sandbox.markers("root/to").is_empty());
        assert!(there.exists() && fs::read(&there).unwrap() != new);
        // Whoever collects what is left over takes no file for a part.
        sandbox.ok(["gc", "--older-than=0s", sandbox.path("root/to").to_str().unwrap(), "-n"]);
        assert!(there.exists());
        let words = [&["sync", "--json"], flags, &["tree/", &at, &token]].concat();
        wait_until("the same again makes it whole", || {
            let ran = sandbox.run(&words);
            ran.code == 0 && fs::read(&there).unwrap() == new
        });
        if !flags.contains(&"--no-times") {
            check(&sandbox, "tree/large", "root/to/large");
        }
    }
}

fn old_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000)
}

/// At whatever call it is killed, the file is the old one, the new one, or has no time and is named by the marker.
#[test]
fn kill_sweep_of_a_copy_in_place() {
    const CALLS: [&str; 7] = ["pwrite64", "utimensat", "fsync", "fdatasync", "ftruncate", "write", "unlinkat"];
    let sandbox = Sandbox::in_memory();
    let (new, before) = (tree::bytes(3 * MIB + 5, 1), tree::bytes(4 * MIB, 2));
    sandbox.write("tree/large", &new);
    let there = sandbox.path("to/large");
    let command = |more: &[&str]| {
        let mut command = sandbox.carrack();
        command.args(["sync", "--inplace", "--block=256K", "--streams=2"]).args(more).args(["tree/", "to"]);
        command
    };
    let prepare = || {
        let _ = fs::remove_dir_all(sandbox.path("to"));
        old(&sandbox, "to/large", &before);
    };
    prepare();
    let all = crash::places(&sandbox, &command(&[]), &CALLS);
    assert!(["pwrite64", "utimensat", "ftruncate"].iter().all(|call| all.iter().any(|(other, _)| call == other)));
    let (mut mixtures, mut of_old_or_new) = (0, 0);
    for place in crash::spread(all.len() as u64, crash::points(24)) {
        let (call, nth) = &all[place as usize - 1];
        let what = format!("killed at {call} {nth}");
        prepare();
        ran(Inject::new().kill(call, *nth).around(&command(&[])).output_in_time().unwrap());
        let content = fs::read(&there).unwrap();
        if content == before && sandbox.modified("to/large") == old_time() || content == new {
            of_old_or_new += 1;
        } else {
            mixtures += 1;
            assert_eq!(sandbox.markers("to").len(), 1, "{what}");
        }
        let again = ran(command(&["--size-only", "-u"]).output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what}: {}", again.stderr);
        crash::assert_complete(&sandbox.path("tree"), &sandbox.path("to"));
    }
    assert!(mixtures > 0 && of_old_or_new > 0, "{mixtures} {of_old_or_new}");
}

/// Connections that are reset in the midst cost nothing but what was under way.
#[test]
fn lost_session_goes_on_in_place() {
    let scene = scene();
    let sandbox = &scene.sandbox;
    let new = tree::bytes(LARGE, 1);
    sandbox.write("tree/large", &new);
    old(sandbox, "root/to/large", &tree::bytes(LARGE + MIB, 2));
    let at = sandbox.inode("root/to/large");
    let words = scene.words(&["--inplace", "--bwlimit=20M"]);
    let mut running = Running::start(sandbox.carrack().args(words));
    wait_until("some has come", || scene.proxy.carried().up > 5 * MIB as u64 || !running.is_running());
    scene.proxy.reset_all();
    let ran = running.end();
    assert_eq!((ran.code, sandbox.inode("root/to/large")), (0, at), "{}{}", ran.stdout, ran.stderr);
    check(sandbox, "tree/large", "root/to/large");
}

/// Two who write over one file: the second is told, and does nothing.
#[test]
fn file_that_another_writes_in_place_is_refused() {
    let sandbox = Sandbox::in_memory();
    let new = tree::bytes(LARGE, 1);
    sandbox.write("tree/large", &new);
    sandbox.write("other/large", tree::bytes(LARGE, 3));
    old(&sandbox, "to/large", &tree::bytes(LARGE, 2));
    let mut first = Running::start(sandbox.carrack().args(["copy", "--inplace", "--bwlimit=10M", "tree/", "to"]));
    wait_until("the first has begun", || sandbox.modified("to/large") != old_time());
    let second = sandbox.run(["copy", "--inplace", "other/", "to"]);
    second.failed_with(23, &["large", "another program writes it in place"]);
    assert!(first.is_running());
    assert_eq!(first.end().code, 0);
    check(&sandbox, "tree/large", "to/large");
}

#[cfg(feature = "service")]
#[test]
fn task_writes_in_place_unless_it_deletes() {
    let sandbox = Sandbox::in_memory();
    let new = tree::bytes(LARGE, 1);
    sandbox.write("src/large", &new);
    old(&sandbox, "dst/large", &tree::changed(&new, BLOCK, &[3]));
    let at = sandbox.inode("dst/large");
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "src"), ("archive", "dst")]);
    let submit = ["task", "submit", "--wait", "--timeout=120s", "--inplace", "@lab:/", "@archive:/"];
    sandbox.run([&submit[..5], &["--delete"], &submit[5..]].concat()).failed_with(2, &["writes nothing in place"]);
    sandbox.ok(submit);
    assert_eq!(sandbox.inode("dst/large"), at);
    check(&sandbox, "src/large", "dst/large");
}

/// A read-only file of one's own is written over like any other, and is read-only again.
#[test]
fn read_only_file_of_ones_own_is_written_over() {
    if !is_root() {
        return;
    }
    for (flag, more) in [("--inplace", 0), ("--append", 2 * MIB)] {
        let sandbox = Sandbox::new();
        open_to_all(&sandbox);
        let new = tree::bytes(3 * MIB, 1);
        old(&sandbox, "to/large", &new[..3 * MIB - more]);
        sandbox.write("tree/large", if more == 0 { tree::changed(&new, BLOCK, &[1]) } else { new });
        for path in ["tree/large", "to/large", "to"] {
            chown(sandbox.path(path), Some(65534), Some(65534)).unwrap();
        }
        for path in ["tree/large", "to/large"] {
            fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(0o444)).unwrap();
        }
        let inode = sandbox.inode("to/large");
        let ran = under(&sandbox, &NOBODY, &["sync", "--json", flag, "tree/", "to"]);
        assert_eq!((ran.code, numbers(&ran).0, sandbox.inode("to/large")), (0, 1, inode), "{flag}: {}", ran.stderr);
        check(&sandbox, "tree/large", "to/large");
        let mode = || fs::metadata(sandbox.path("to/large")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(), 0o444);
        // What is refused is as it was, also under its other name.
        hard_link(sandbox.path("to/large"), sandbox.path("snapshot")).unwrap();
        let grown = File::options().append(true).open(sandbox.path("tree/large")).unwrap();
        grown.set_len(3 * MIB as u64 + 1).unwrap();
        let ran = under(&sandbox, &NOBODY, &["copy", flag, "tree/", "to"]);
        ran.failed_with(23, &["has other names"]);
        assert_eq!(mode(), 0o444);
    }
}

/// One whose time its owner alone may set is not written over, and nothing says afterwards that it was.
#[test]
fn file_of_another_that_cannot_be_marked_stays_as_it_is() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    sandbox.write("tree/large", tree::bytes(2 * MIB, 1));
    let other = tree::bytes(2 * MIB, 2);
    old(&sandbox, "to/large", &other);
    fs::set_permissions(sandbox.path("to/large"), fs::Permissions::from_mode(0o666)).unwrap();
    for path in ["tree", "tree/large", "to"] {
        chown(sandbox.path(path), Some(65534), Some(65534)).unwrap();
    }
    let inode = sandbox.inode("to/large");
    let is_as_it_was = || {
        let metadata = fs::metadata(sandbox.path("to/large")).unwrap();
        let (mode, time) = (metadata.permissions().mode() & 0o7777, metadata.modified().unwrap());
        assert_eq!((sandbox.inode("to/large"), mode, time), (inode, 0o666, old_time()));
        assert!(fs::read(sandbox.path("to/large")).unwrap() == other);
    };
    under(&sandbox, &NOBODY, &["copy", "--inplace", "tree/", "to"]).failed_with(23, &["large", "to write in place"]);
    is_as_it_was();
    assert!(sandbox.markers("to").is_empty());
    let again = under(&sandbox, &NOBODY, &["copy", "--ignore-existing", "tree/", "to"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    is_as_it_was();
}

/// The time of a mixture tells of it where no marker does: another run's, one that was collected, none at all.
#[test]
fn time_of_a_mixture_is_believed_without_its_marker() {
    let sandbox = Sandbox::new();
    let content = tree::bytes(2 * MIB, 1);
    sandbox.write("tree/large", &content);
    let there = sandbox.write("to/large", tree::changed(&content, BLOCK, &[1]));
    let zero = SystemTime::UNIX_EPOCH;
    File::options().write(true).open(&there).unwrap().set_modified(zero).unwrap();
    sandbox.ok(["sync", "--size-only", "tree/", "to"]);
    check(&sandbox, "tree/large", "to/large");
    // What is to stay as it is stays: nothing else says that it is a mixture.
    File::options().write(true).open(&there).unwrap().set_modified(zero).unwrap();
    let left = sandbox.ok(["sync", "--json", "--ignore-existing", "tree/", "to"]);
    assert_eq!((left.summary()["files"].as_u64(), sandbox.modified("to/large")), (Some(0), zero));
    // What bears that time at its source is no mixture.
    for path in ["tree/large", "to/large"] {
        File::options().write(true).open(sandbox.path(path)).unwrap().set_modified(zero).unwrap();
    }
    let again = sandbox.ok(["sync", "--json", "--size-only", "tree/", "to"]);
    assert_eq!(again.summary()["files_same"], 1);
}
