//! `--detect-renames`: what the source has renamed is renamed at the destination, and nothing of it is sent.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{numbers, set_mtime};
use crate::support::node::Node;
#[cfg(feature = "service")]
use crate::support::service::{Service, add_endpoints};
use crate::support::{Ran, Sandbox, is_root, same_tree, tree};

/// What was sent, what was renamed as read by both sides, and what by samples.
const TOLD: [&str; 5] = ["files", "files_renamed", "bytes_renamed", "files_renamed_unread", "items_deleted"];
const LARGE: usize = (3 << 20) + 17;

/// A source, and `dst`, which is a copy of it.
fn scene(sandbox: &Sandbox) {
    for (name, content) in [("src/a", "one"), ("src/d/b", "two"), ("src/d/e/c", "three"), ("src/empty", "")] {
        with_nanos(&sandbox.write(name, content));
    }
    with_nanos(&sandbox.write("src/d/large", tree::bytes(LARGE, 1)));
    sandbox.ok(["sync", "src/", "dst"]);
}

/// A time that no other file has.
fn with_nanos(path: &Path) {
    let nanos = 1 + fs::metadata(path).unwrap().ino() % 999_999_000;
    modify(path, SystemTime::UNIX_EPOCH + Duration::new(1_600_000_000, nanos as u32));
}

fn modify(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn told(ran: &Ran) -> Vec<u64> {
    numbers(ran, &TOLD)
}

fn rename(sandbox: &Sandbox, from: &str, to: &str) {
    let to = sandbox.path(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(sandbox.path(from), to).unwrap();
}

#[test]
fn renamed_directory_is_renamed_and_nothing_of_it_is_sent() {
    for how in ["--detect-renames", "--detect-renames=quick"] {
        let sandbox = Sandbox::new();
        scene(&sandbox);
        let (large, c) = (sandbox.inode("dst/d/large"), sandbox.inode("dst/d/e/c"));
        rename(&sandbox, "src/d", "src/new/d");
        rename(&sandbox, "src/new/d/e/c", "src/c of another name");
        let planned = sandbox.ok(["sync", "-n", "--json", "--delete", how, "src/", "dst"]);
        assert!(sandbox.path("dst/d/large").exists());
        let ran = sandbox.ok(["sync", "--json", "--delete", how, "src/", "dst"]);
        let read = if how.ends_with("quick") { [0, 0, 3] } else { [3, 8 + LARGE as u64, 0] };
        // The directories that nothing is in any more are deleted.
        assert_eq!(told(&ran), [0, read[0], read[1], read[2], 2], "{how}");
        assert_eq!(told(&planned)[..4], told(&ran)[..4], "{how}");
        assert_eq!(numbers(&planned, &["items_only_there"]), [2], "{how}");
        same_tree(&sandbox.path("src"), &sandbox.path("dst"));
        assert_eq!(sandbox.inode("dst/new/d/large"), large);
        assert_eq!(sandbox.inode("dst/c of another name"), c);
        assert_eq!(fs::metadata(sandbox.path("dst/new/d/large")).unwrap().nlink(), 1);
        assert_eq!(told(&sandbox.ok(["sync", "--json", "--delete", how, "src/", "dst"])), [0; 5], "{how}");
    }
}

/// What a file holds that has the samples of another, and not its content.
fn same_samples(path: &Path) -> Vec<u8> {
    let mut content = fs::read(path).unwrap();
    content[1 << 20] ^= 1;
    content
}

/// Two files of one size, time, beginning, middle sample and end.
#[test]
fn only_quick_is_fooled_by_samples_and_says_that_nothing_is_verified() {
    for how in ["--detect-renames", "--detect-renames=quick"] {
        let sandbox = Sandbox::new();
        scene(&sandbox);
        let content = same_samples(&sandbox.path("src/d/large"));
        fs::remove_file(sandbox.path("src/d/large")).unwrap();
        modify(&sandbox.write("src/other", &content), sandbox.modified("dst/d/large"));
        let ran = sandbox.ok(["sync", "--json", "--delete", how, "src/", "dst"]);
        let is_fooled = fs::read(sandbox.path("dst/other")).unwrap() != content;
        assert_eq!(is_fooled, how.ends_with("quick"), "{how}");
        assert_eq!(told(&ran), if is_fooled { [0, 0, 0, 1, 0] } else { [1, 0, 0, 0, 1] }, "{how}");
        if is_fooled {
            // Who wants to know reads.
            let ran = sandbox.ok(["sync", "--json", "-c", "--delete", how, "src/", "dst"]);
            assert_eq!(told(&ran)[0], 1);
            same_tree(&sandbox.path("src"), &sandbox.path("dst"));
        }
    }
    let sandbox = Sandbox::new();
    scene(&sandbox);
    rename(&sandbox, "src/d/large", "src/other");
    let ran = sandbox.ok(["sync", "--delete", "--detect-renames=quick", "src/", "dst"]);
    assert!(ran.stderr.contains("not verified"), "{}", ran.stderr);
}

/// A file with other permissions gets no further name: a copy of what only samples were read of is no more verified.
#[test]
fn quick_says_of_a_copy_too_that_it_is_not_verified() {
    for words in [&["--json"][..], &[]] {
        let sandbox = Sandbox::new();
        scene(&sandbox);
        let content = same_samples(&sandbox.path("src/d/large"));
        fs::remove_file(sandbox.path("src/d/large")).unwrap();
        let other = sandbox.write("src/other", content);
        modify(&other, sandbox.modified("dst/d/large"));
        fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        let sync = |dry: &[&str]| {
            let quick = ["--delete", "--detect-renames=quick", "src/", "dst"];
            sandbox.ok([&["sync"], words, dry, &quick].concat())
        };
        let (planned, ran) = (sync(&["-n"]), sync(&[]));
        assert_eq!(fs::metadata(sandbox.path("dst/other")).unwrap().mode() & 0o777, 0o600);
        assert!(!sandbox.path("dst/d/large").exists());
        if words.is_empty() {
            assert!(planned.stderr.contains("not verified"), "{}", planned.stderr);
            assert!(ran.stderr.contains("not verified"), "{}", ran.stderr);
            continue;
        }
        assert_eq!(told(&planned)[..4], [0, 0, 0, 1]);
        assert_eq!(told(&ran), [0, 0, 0, 1, 1]);
        assert_eq!(numbers(&ran, &["files_copied_there"]), [0]);
    }
}

/// Whichever of them is asked about first. Names of one file are one.
#[test]
fn quick_believes_nothing_of_what_two_files_of_the_source_may_be() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    rename(&sandbox, "src/d/large", "src/n2");
    let content = same_samples(&sandbox.path("src/n2"));
    modify(&sandbox.write("src/n1", content), sandbox.modified("src/n2"));
    let quick = |words: &[&str]| {
        sandbox.ok([&["sync", "--delete", "--detect-renames=quick"], words, &["src/", "dst"]].concat())
    };
    let planned = quick(&["-n", "-i"]);
    for name in [" n1\n", " n2\n"] {
        assert!(planned.stdout.contains(name), "{}", planned.stdout);
    }
    assert_eq!(told(&quick(&["--json"])), [2, 0, 0, 0, 1]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    fs::remove_file(sandbox.path("src/n1")).unwrap();
    quick(&[]);
    rename(&sandbox, "src/n2", "src/n3");
    fs::hard_link(sandbox.path("src/n3"), sandbox.path("src/n4")).unwrap();
    assert_eq!(numbers(&quick(&["--json"]), &["files", "files_renamed_unread"]), [0, 1]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
}

/// Whoever owns a file can alter it at any time, under its new name as well.
#[test]
fn file_of_another_user_is_copied_and_gets_no_new_name() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    scene(&sandbox);
    let owner = |path: &str| fs::metadata(sandbox.path(path)).unwrap().uid();
    chown(sandbox.path("dst/d/large"), Some(65534), None).unwrap();
    rename(&sandbox, "src/d/large", "src/large");
    let words = ["sync", "--json", "--delete", "--detect-renames", "src/", "dst"];
    let ran = sandbox.ok(words);
    assert_eq!(numbers(&ran, &["files", "files_renamed", "files_copied_there"]), [0, 0, 1]);
    assert_eq!(owner("dst/large"), 0);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    // Where owners are given, it is the one that is wanted.
    for path in ["src/large", "dst/large"] {
        chown(sandbox.path(path), Some(65534), None).unwrap();
    }
    rename(&sandbox, "src/large", "src/larger");
    let ran = sandbox.ok([&words[..], &["--owner"]].concat());
    assert_eq!(numbers(&ran, &["files", "files_renamed"]), [0, 1]);
    assert_eq!(owner("dst/larger"), 65534);
}

#[test]
fn quick_believes_no_whole_second_no_empty_file_and_not_one_of_several() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    set_mtime(&sandbox.path("src/a"), 1_600_000_000);
    modify(&sandbox.write("src/d/b2", "owt"), sandbox.modified("src/d/b"));
    sandbox.ok(["sync", "src/", "dst"]);
    for (from, to) in [("a", "A"), ("d/b", "B"), ("d/b2", "B2"), ("empty", "EMPTY")] {
        rename(&sandbox, &format!("src/{from}"), &format!("src/{to}"));
    }
    let ran = sandbox.ok(["sync", "--json", "--delete", "--detect-renames=quick", "src/", "dst"]);
    assert_eq!(told(&ran), [4, 0, 0, 0, 4]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    // By content each finds its own, whatever is alike; an empty one has none.
    for (from, to) in [("A", "a"), ("B", "d/b2"), ("B2", "d/b"), ("EMPTY", "empty")] {
        rename(&sandbox, &format!("src/{from}"), &format!("src/{to}"));
    }
    let ran = sandbox.ok(["sync", "--json", "--delete", "--detect-renames", "src/", "dst"]);
    assert_eq!(told(&ran), [1, 3, 9, 0, 1]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
}

#[test]
fn many_of_one_size_are_each_read_once_and_each_finds_its_own() {
    let sandbox = Sandbox::new();
    for number in 0..300 {
        sandbox.write(format!("src/old/{number}"), format!("content {number:04}"));
    }
    sandbox.ok(["sync", "src/", "dst"]);
    for number in 0..300 {
        rename(&sandbox, &format!("src/old/{number}"), &format!("src/new/of {}", (number * 7) % 300));
    }
    // Two of the source that one of the destination could be; one gets it.
    let twin = fs::read(sandbox.path("src/new/of 0")).unwrap();
    modify(&sandbox.write("src/new/twin", twin), sandbox.modified("src/new/of 0"));
    let ran = sandbox.ok(["sync", "--json", "--delete", "--detect-renames", "src/", "dst"]);
    assert_eq!(told(&ran), [1, 300, 300 * 12, 0, 0]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
}

/// What else is asked for holds: rules that protect, bounds of what is deleted, what is kept, failed items.
#[test]
fn rename_is_no_deletion_and_takes_nothing_that_is_to_stay() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    rename(&sandbox, "src/d", "src/new");
    let sync = |words: &[&str]| sandbox.run([&["sync", "--json", "--delete"], words, &["src/", "dst"]].concat());
    // Without deletion nothing is renamed: the old names are to stay.
    let ran = sandbox.ok(["sync", "--json", "-n", "--detect-renames", "src/", "dst"]);
    assert_eq!(told(&ran)[..2], [3, 0]);
    assert!(ran.stderr.contains("mean nothing without --delete"), "{}", ran.stderr);
    sync(&["--detect-renames", "--delete-before"]).failed_with(2, &["delete-before and detect-renames"]);
    // What a rule protects keeps its name.
    let ran = sync(&["-n", "--detect-renames", "--filter=P /d/large"]);
    assert_eq!(told(&ran)[..2], [1, 2]);
    // Two directories are deleted; the files are not counted.
    let ran = sync(&["--detect-renames", "--max-delete=1"]);
    assert_eq!((ran.code, told(&ran)), (25, vec![0, 3, 8 + LARGE as u64, 0, 0]), "{}", ran.stderr);
    assert!(!sandbox.path("dst/d/large").exists() && sandbox.path("dst/d/e").exists());
    let ran = sync(&["--detect-renames", "--max-delete=2"]);
    assert_eq!((ran.code, told(&ran)), (0, vec![0, 0, 0, 0, 2]));
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    // What has another name is not kept under its old one.
    rename(&sandbox, "src/new/large", "src/large");
    sandbox.write("src/new/e/c", "changed");
    let ran = sync(&["--detect-renames", "--backup-dir=.old"]);
    assert_eq!(told(&ran)[..3], [1, 1, LARGE as u64]);
    assert_eq!(fs::read_to_string(sandbox.path("dst/.old/new/e/c")).unwrap(), "three");
    assert!(!sandbox.path("dst/.old/new/large").exists());
    // Of several deletions that are refused, renames are none.
    rename(&sandbox, "src/large", "src/larger");
    fs::remove_file(sandbox.path("src/a")).unwrap();
    sandbox.write("dst/one more", "x");
    let ran = sync(&["--detect-renames", "--max-delete=1"]);
    assert_eq!((ran.code, told(&ran)[1]), (25, 1));
    assert!(!sandbox.path("dst/large").exists() && sandbox.path("dst/a").exists());
}

/// What is renamed leaves nothing where it was, so its directory goes; one in which a deleted file is kept stays. Both
/// are counted before anything is deleted.
#[test]
fn emptied_directories_go_where_deleted_files_are_kept_beside() {
    for how in ["--detect-renames", "--detect-renames=quick"] {
        let sandbox = Sandbox::new();
        scene(&sandbox);
        let sync = |more: &[&str]| {
            let words = ["sync", "--json", "--delete", "-b", "--max-delete=2", how, "src/", "dst"];
            sandbox.ok([&words[..], more].concat())
        };
        rename(&sandbox, "src/d", "src/new");
        let planned = sync(&["-n"]);
        assert_eq!(numbers(&planned, &["items_only_there", "items_deleted"]), [2, 0], "{how}");
        assert_eq!(numbers(&sync(&[]), &["items_only_there", "items_deleted"]), [0, 2], "{how}");
        same_tree(&sandbox.path("src"), &sandbox.path("dst"));
        // Beside what has other names by now, a file is gone for good.
        rename(&sandbox, "src/new/e", "src/e");
        rename(&sandbox, "src/new/large", "src/large");
        fs::remove_dir_all(sandbox.path("src/new")).unwrap();
        let planned = sync(&["-n"]);
        assert_eq!(numbers(&planned, &["items_only_there", "items_deleted"]), [2, 0], "{how}");
        assert_eq!(numbers(&sync(&[]), &["items_only_there", "items_deleted"]), [0, 2], "{how}");
        assert_eq!(fs::read_to_string(sandbox.path("dst/new/b~")).unwrap(), "two");
        assert_eq!(fs::read_dir(sandbox.path("dst/new")).unwrap().count(), 1, "{how}");
        assert_eq!(numbers(&sync(&[]), &["items_only_there", "items_deleted"]), [0, 0], "{how}");
        fs::remove_dir_all(sandbox.path("dst/new")).unwrap();
        same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    }
}

/// What differs in permissions or time from what is to be is copied there, and is never set in place.
#[test]
fn renamed_file_gets_what_its_source_has() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    fs::hard_link(sandbox.path("dst/d/large"), sandbox.path("elsewhere")).unwrap();
    rename(&sandbox, "src/d/large", "src/large");
    rename(&sandbox, "src/d/b", "src/b");
    fs::set_permissions(sandbox.path("src/large"), Permissions::from_mode(0o600)).unwrap();
    set_mtime(&sandbox.path("src/b"), 1_500_000_000);
    let before = fs::metadata(sandbox.path("elsewhere")).unwrap().mode();
    let ran = sandbox.ok(["sync", "--json", "--delete", "--detect-renames", "src/", "dst"]);
    assert_eq!(numbers(&ran, &["files", "files_renamed", "files_copied_there"]), [0, 0, 2]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    assert_eq!(fs::metadata(sandbox.path("elsewhere")).unwrap().mode(), before);
    assert_eq!(fs::metadata(sandbox.path("elsewhere")).unwrap().nlink(), 1);
}

#[test]
fn renames_go_with_every_other_option() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    let flags: [&[&str]; 14] = [
        &["-c"],
        &["--size-only"],
        &["-I"],
        &["-u"],
        &["--existing"],
        &["--ignore-existing"],
        &["--verify=disk"],
        &["--verify=source"],
        &["--verify=none", "--durable=none"],
        &["--durable=each"],
        &["--no-times"],
        &["--link-dest=../mirror"],
        &["-z", "--streams=4"],
        &["--delta=always", "--exclude=*.tmp"],
    ];
    for (number, flags) in flags.into_iter().enumerate() {
        let (from, to) = if number % 2 == 0 { ("d", "e/f") } else { ("e/f", "d") };
        let words = [&["sync", "--json", "--delete", "--detect-renames"], flags, &["src/", "dst"]].concat();
        sandbox.ok(["sync", "--delete", "src/", "dst"]);
        rename(&sandbox, &format!("src/{from}"), &format!("src/{to}"));
        sandbox.write("src/late.tmp", format!("{number}"));
        let ran = sandbox.ok(&words);
        let renamed = if flags == ["--existing"] { 0 } else { 3 };
        assert_eq!(told(&ran)[1], renamed, "{flags:?} {}", ran.stderr);
        if flags == ["--existing"] || flags.contains(&"--exclude=*.tmp") {
            continue;
        }
        fs::remove_file(sandbox.path("src/late.tmp")).unwrap();
        sandbox.ok(["sync", "--delete", "src/", "dst"]);
        same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    }
}

#[test]
fn changes_tell_the_old_name() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    rename(&sandbox, "src/d/b", "src/b");
    for flags in ["-ni", "-i"] {
        let ran = sandbox.ok(["sync", flags, "--delete", "--detect-renames", "src/", "dst"]);
        assert!(ran.stdout.contains("hf          b <= d/b\n"), "{flags}: {}", ran.stdout);
        assert!(!ran.stdout.contains("deleting"), "{flags}: {}", ran.stdout);
    }
}

/// The same over a node, which may refuse, and by a task.
#[test]
fn node_renames_what_may_be_deleted_there() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    let node = Node::start(&sandbox, "dst", &[]);
    rename(&sandbox, "src/d", "src/new");
    let words = ["sync", "--json", "--delete", "--detect-renames", "src/", &node.at(""), &node.token()];
    let ran = sandbox.ok(words);
    assert_eq!(told(&ran), [0, 3, 8 + LARGE as u64, 0, 2]);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    let pulled = ["sync", "--json", "--delete", "--detect-renames", &node.at(""), "pulled", &node.token()];
    sandbox.ok(pulled);
    rename(&sandbox, "dst/new", "dst/newer");
    assert_eq!(told(&sandbox.ok(pulled))[..2], [0, 3]);
}

#[cfg(feature = "service")]
#[test]
fn task_renames_and_says_so() {
    let sandbox = Sandbox::new();
    scene(&sandbox);
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "src"), ("archive", "dst")]);
    let large = sandbox.inode("dst/d/large");
    rename(&sandbox, "src/d", "src/new");
    let words = ["task", "submit", "--wait", "--timeout=120s", "--delete", "--detect-renames", "@lab:/", "@archive:/"];
    let ran = sandbox.ok(words);
    same_tree(&sandbox.path("src"), &sandbox.path("dst"));
    assert_eq!(sandbox.inode("dst/new/large"), large, "{}", ran.stderr);
}

/// Nobody waits for a file that is only to be read later: all who could read it would wait.
#[test]
fn many_renamed_files_of_one_size_are_found_beside_new_ones() {
    let sandbox = Sandbox::in_memory();
    let frame = |path: String, number: usize| sandbox.write(path, [&number.to_be_bytes()[..], &[7; 4088]].concat());
    (0..3_000).for_each(|number| drop(frame(format!("dst/y/{number}"), number)));
    sandbox.ok(["sync", "dst/", "src"]);
    rename(&sandbox, "src/y", "src/z");
    (0..1_500).for_each(|number| drop(frame(format!("src/a/{number}"), 100_000 + number)));
    let ran = sandbox.ok(["sync", "--json", "--delete", "--yes", "--detect-renames", "src/", "dst"]);
    assert_eq!(numbers(&ran, &["files", "files_renamed"]), [1_500, 3_000]);
}
