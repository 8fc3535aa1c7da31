//! Names of the source that would become one at the destination: neither takes the place of the other, in no run.

use std::fs;
use std::path::Path;

use carrack_faults::fuse::Features;

use super::{numbers, set_mtime};
use crate::disk::faulty;
use crate::support::{Sandbox, same_tree, tree};

fn names(top: &Path) -> Vec<String> {
    let found = tree::walk(top).into_iter();
    let mut names: Vec<String> =
        found.map(|path| path.strip_prefix(top).unwrap().to_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

/// Both are named before anything of their directory is written, and nothing is deleted.
#[test]
fn names_that_differ_by_case_alone_are_not_copied() {
    let sandbox = Sandbox::new();
    for name in ["Same", "same", "plain", "d/Deep/x", "d/DEEP/y", "d/deep", "d/own", "Left.o", "left.o"] {
        sandbox.write(format!("src/{name}"), name);
    }
    std::os::unix::fs::symlink("plain", sandbox.path("src/PLAIN2")).unwrap();
    let Some(disk) = faulty(&sandbox, "disk", Features { folds_case: true, ..Features::default() }) else { return };
    fs::create_dir(disk.path().join("dst")).unwrap();
    for verb in ["sync", "copy"] {
        let ran = sandbox.run([verb, "--json", "--exclude=left.o", "src/", "disk/dst"]);
        assert_eq!(ran.code, 23, "{}", ran.stderr);
        for (one, other) in [("Same", "same"), ("same", "Same"), ("d/deep", "d/D")] {
            let line = ran.stderr.lines().find(|line| line.contains(&format!("destination: {one}: ")));
            assert!(line.is_some_and(|line| line.contains(&format!("same name as {other}"))), "{}", ran.stderr);
        }
        assert_eq!(ran.stderr.matches("neither is copied").count(), 5, "{}", ran.stderr);
        assert_eq!(numbers(&ran, &["files_failed"]), [5]);
        assert_eq!(names(&disk.path().join("dst")), ["Left.o", "PLAIN2", "d", "d/own", "plain"], "{verb}");
    }
    for more in [&[][..], &["--ignore-errors"]] {
        sandbox.write("disk/dst/same", "kept");
        sandbox.write("disk/dst/d/DEEP/z", "kept");
        let words = ["sync", "--delete", "--yes", "--exclude=left.o", "src/", "disk/dst"];
        assert_eq!(sandbox.run([&words, more].concat()).code, 23);
        assert_eq!(fs::read_to_string(disk.path().join("dst/same")).unwrap(), "kept", "the source has it");
        assert!(disk.path().join("dst/d/DEEP/z").exists());
    }
    // Where they are two names, both are copied.
    sandbox.ok(["sync", "src/", "two"]);
    same_tree(&sandbox.path("src"), &sandbox.path("two"));
}

#[test]
fn sources_whose_names_differ_by_case_alone_are_not_copied() {
    let sandbox = Sandbox::new();
    for size in [10, 2 << 20] {
        for name in ["one/Same", "two/same", "two/other"] {
            sandbox.write(name, vec![7; size]);
        }
        let name = format!("disk{size}");
        let features = Features { folds_case: true, ..Features::default() };
        let Some(disk) = faulty(&sandbox, &name, features) else { return };
        let ran = sandbox.run(["sync", "one/Same", "two/same", "two/other", &format!("{name}/")]);
        ran.failed_with(23, &["Same: ", "the same name as same", "the same name as Same"]);
        assert_eq!(names(disk.path()), ["other"]);
    }
}

/// What is not found before the first write is found when the second would get its name; nor is one taken for the
/// other in a later run.
#[test]
fn second_form_of_a_name_never_takes_the_place_of_the_first() {
    let sandbox = Sandbox::new();
    let forms = ["caf\u{e9}", "cafe\u{301}"];
    for (content, name) in ["composed..", "decomposed"].iter().zip(forms) {
        set_mtime(&sandbox.write(format!("src/{name}"), content), 1_500_000_000);
    }
    let Some(disk) = faulty(&sandbox, "disk", Features { decomposes: true, ..Features::default() }) else { return };
    let read = || fs::read(disk.path().join(forms[0])).unwrap();
    let mut first = None;
    for verb in ["sync", "sync", "sync"] {
        let ran = sandbox.run([verb, "src/", "disk"]);
        ran.failed_with(23, &["failed: destination: ", "the same name as"]);
        assert_eq!(&read(), first.get_or_insert_with(read));
        assert_eq!(ran.stderr.matches("failed: ").count(), 1, "{}", ran.stderr);
    }
}

/// A second hard link is a file of its own, and no other form of the first.
#[test]
fn hard_links_of_the_destination_are_no_clash() {
    let sandbox = Sandbox::new();
    for name in ["one", "two", "caf\u{e9}"] {
        set_mtime(&sandbox.write(format!("src/{name}"), "1"), 1_500_000_000);
    }
    let features = Features { folds_case: true, ..Features::default() };
    let Some(disk) = faulty(&sandbox, "disk", features) else { return };
    sandbox.ok(["sync", "src/", "disk"]);
    for name in ["two", "caf\u{e9}"] {
        fs::remove_file(disk.path().join(name)).unwrap();
        if fs::hard_link(disk.path().join("one"), disk.path().join(name)).is_err() {
            return;
        }
    }
    assert_eq!(numbers(&sandbox.ok(["sync", "--json", "src/", "disk"]), &["files", "files_same"]), [0, 3]);
}
