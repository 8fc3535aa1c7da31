//! File systems that cannot do everything, or that fail at the last moment: system calls that strace makes fail.

use std::fs;
use std::path::Path;
use std::process::Command;

use carrack_faults::image::Image;
use carrack_faults::strace::Inject;

use crate::support::running::InTime;
use crate::support::{PORTABLE, Ran, Sandbox, ran, same_tree, tool, tree};

const MIB: usize = 1 << 20;

/// A small file, a large one, a link; and a destination where all of them stand already, otherwise.
fn scene() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("in/small", tree::bytes(5_000, 1));
    sandbox.write("in/large", tree::bytes(5 * MIB, 2));
    std::os::unix::fs::symlink("small", sandbox.path("in/link")).unwrap();
    for name in ["small", "large", "link"] {
        sandbox.write(format!("out/{name}"), "old");
    }
    sandbox
}

fn copy(sandbox: &Sandbox, inject: &Inject, more: &[&str]) -> Ran {
    ran(inject.around(sandbox.carrack().args(["in/", "out"]).args(more)).output_in_time().unwrap())
}

fn is_untouched(sandbox: &Sandbox) {
    for name in ["small", "large", "link"] {
        assert_eq!(fs::read(sandbox.path("out").join(name)).unwrap(), b"old", "{name}");
    }
    assert!(sandbox.parts("out").is_empty(), "{:?}", sandbox.parts("out"));
}

#[test]
fn space_that_cannot_be_reserved_is_found_by_writing() {
    let sandbox = scene();
    let ran = copy(&sandbox, &Inject::new().error("fallocate", "EOPNOTSUPP", "1+"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    same_tree(&sandbox.path("in"), &sandbox.path("out"));
}

#[test]
fn rename_that_may_not_replace_exchanges() {
    if PORTABLE {
        return;
    }
    let sandbox = scene();
    let refused = Inject::new().error("renameat", "EEXIST", "1+");
    let ran = copy(&sandbox, &refused, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    same_tree(&sandbox.path("in"), &sandbox.path("out"));

    let sandbox = scene();
    let ran = copy(&sandbox, &refused.error("renameat2", "EINVAL", "1+"), &[]);
    ran.failed_with(23, &["small", "large", "link", "cannot replace a file by renaming another"]);
    is_untouched(&sandbox);
}

#[test]
fn room_that_is_missed_only_when_it_is_synced_is_told_and_nothing_is_published() {
    let sandbox = scene();
    let inject = Inject::new().error("fdatasync", "EDQUOT", "1+").error("syncfs", "EDQUOT", "1+");
    let ran = copy(&sandbox, &inject, &[]);
    ran.failed_with(11, &["small", "large", "quota"]);
    is_untouched(&sandbox);
}

/// `A` and `a`, or a letter with its accent in one piece and in two: where these are one name, neither takes the place
/// of the other. Of two that differ by case alone, neither is copied.
#[test]
fn names_that_are_one_at_the_destination_are_told() {
    use carrack_faults::fuse::{FaultFs, Features};
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    let twins = [("Same", "same"), ("caf\u{e9}", "cafe\u{301}")];
    for (index, (one, other)) in twins.into_iter().enumerate() {
        // Small ones travel together, large ones are offered.
        for size in [10, (1 << 20) + 1] {
            let sandbox = Sandbox::new();
            let contents =
                [one, other].map(|name| (name, tree::bytes(size, name.len() as u64 + u64::from(name == one))));
            for (name, content) in &contents {
                sandbox.write(format!("tree/{name}"), content);
            }
            for name in ["backing", "disk"] {
                std::fs::create_dir(sandbox.path(name)).unwrap();
            }
            let features = Features { folds_case: index == 0, decomposes: index == 1, ..Features::default() };
            let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("disk"), features).unwrap();
            let ran = sandbox.run(["tree/", "disk"]);
            ran.failed_with(23, &["failed: destination: "]);
            if index == 0 {
                assert_eq!(ran.stderr.matches("neither is copied").count(), 2, "{}", ran.stderr);
                assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0);
                continue;
            }
            assert_eq!(ran.stderr.matches("failed: ").count(), 1, "{}", ran.stderr);
            let kept = std::fs::read(disk.path().join(one)).unwrap();
            assert!(contents.iter().any(|(_, content)| *content == kept), "{one}: {} bytes", kept.len());
            assert!(sandbox.parts("backing").is_empty());
        }
    }
}

/// Two names that are one in the directory `folds` of a disk and in those below it, and two elsewhere. The first gets
/// its name, the second is an item error; what goes elsewhere is not held up.
fn assert_twins_are_told(sandbox: &Sandbox, disk: &Path) {
    for (round, size) in [10, (1 << 20) + 1].into_iter().enumerate() {
        let to = disk.join(format!("to{round}"));
        let names = ["folds/name", "folds/below/name", "folds/new/name"];
        for (seed, name) in names.iter().chain(&["plain/name"]).enumerate() {
            let twin = name.replace("/name", "/NAME");
            sandbox.write(format!("tree/{name}"), tree::bytes(size, 2 * seed as u64));
            sandbox.write(format!("tree/{twin}"), tree::bytes(size, 2 * seed as u64 + 1));
        }
        let ran = sandbox.run(["tree/", to.to_str().unwrap()]);
        ran.failed_with(23, &["failed: destination: ", "the same name as"]);
        assert_eq!(ran.stderr.matches("failed: ").count(), names.len(), "{}", ran.stderr);
        same_tree(&sandbox.path("tree/plain"), &to.join("plain"));
        for name in names {
            let from = sandbox.path("tree").join(name);
            let contents = [fs::read(&from).unwrap(), fs::read(from.with_file_name("NAME")).unwrap()];
            assert!(contents.contains(&fs::read(to.join(name)).unwrap()), "{name}");
        }
    }
}

#[test]
fn names_that_are_one_in_a_single_directory_are_told() {
    use carrack_faults::fuse::{FaultFs, Features};
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    let sandbox = Sandbox::new();
    for name in ["backing/to0/folds/below", "backing/to1/folds/below", "disk"] {
        fs::create_dir_all(sandbox.path(name)).unwrap();
    }
    let features = Features { folds_case_in: Some("folds"), ..Features::default() };
    let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("disk"), features).unwrap();
    assert_twins_are_told(&sandbox, disk.path());
}

#[test]
fn names_that_are_one_in_a_single_directory_of_ext4_are_told() {
    let sandbox = Sandbox::new();
    let Some(disk) = Image::of_folding_directories(&sandbox.path(""), "disk", 64) else { return };
    for round in ["to0", "to1"] {
        let folds = disk.path().join(round).join("folds");
        fs::create_dir_all(&folds).unwrap();
        tool(Command::new("chattr").arg("+F").arg(&folds));
        fs::create_dir(folds.join("below")).unwrap();
    }
    assert_twins_are_told(&sandbox, disk.path());
}

/// Where it cannot be found out whether two names are one, both that are and those that are not come out right.
#[test]
fn names_that_are_one_are_told_where_nothing_said_so_before() {
    use carrack_faults::fuse::{Call, Errno, Fault, FaultFs, Features, When};
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    for folds_case in [true, false] {
        for size in [10, (1 << 20) + 1] {
            let sandbox = Sandbox::new();
            sandbox.write("tree/d/same", tree::bytes(size, 1));
            sandbox.write("tree/d/Same", tree::bytes(size, 2));
            for name in ["backing", "disk"] {
                fs::create_dir(sandbox.path(name)).unwrap();
            }
            let features = Features { folds_case, ..Features::default() };
            let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("disk"), features).unwrap();
            // The file that asks.
            disk.fault_on(".A\u{e9}.carrack-", Call::Create, When::Always, Fault::Fail(Errno::ACCESS));
            let ran = sandbox.run(["tree/", "disk"]);
            assert!(disk.hits() > 0);
            if folds_case {
                ran.failed_with(23, &["failed: destination: ", "the same name as"]);
                let kept = fs::read(disk.path().join("d/same")).unwrap();
                assert!(
                    ["same", "Same"].iter().any(|name| fs::read(sandbox.path("tree/d").join(name)).unwrap() == kept)
                );
            } else {
                assert_eq!(ran.code, 0, "{}", ran.stderr);
                same_tree(&sandbox.path("tree"), disk.path());
            }
        }
    }
}
