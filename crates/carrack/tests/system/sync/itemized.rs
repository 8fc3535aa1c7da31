//! Lines of `-i` and `--out-format`: rsync's, wherever both do the same; and times that are not kept.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::node::Node;
use crate::support::tree::walk;
use crate::support::{Sandbox, tool};

/// Before all that a test does: whole seconds tell it from now.
const LONG_AGO: u64 = 1_000_000_000;

fn touch(path: &Path, seconds: u64) {
    tool(Command::new("touch").arg("-hd").arg(format!("@{seconds}")).arg(path));
}

fn copy_tree(from: &Path, to: &Path) {
    tool(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// A source, and a destination that had all of it before it changed in every way that there is a letter for.
fn changed(sandbox: &Sandbox) {
    for name in ["same", "size", "time", "mode", "both", "d/deep/same", "d/deep/size", "perms/f", "to-link"] {
        sandbox.write(format!("src/{name}"), name);
    }
    let (src, dst) = (sandbox.path("src"), sandbox.path("dst"));
    for (name, says) in [("link", "same"), ("other-link", "same"), ("d/old-link", "gone")] {
        symlink(says, src.join(name)).unwrap();
    }
    walk(&src).iter().chain([&src]).for_each(|path| touch(path, LONG_AGO));
    copy_tree(&src, &dst);
    for (name, content, mode) in [("size", "another size", 0o644), ("both", "longer than it was", 0o755)] {
        fs::write(src.join(name), content).unwrap();
        fs::set_permissions(src.join(name), Permissions::from_mode(mode)).unwrap();
    }
    touch(&src.join("size"), LONG_AGO);
    touch(&src.join("time"), LONG_AGO + 7);
    for (name, mode) in [("mode", 0o600), ("perms", 0o700)] {
        fs::set_permissions(src.join(name), Permissions::from_mode(mode)).unwrap();
    }
    fs::write(src.join("d/deep/size"), "x").unwrap();
    for (name, says) in [("other-link", "another"), ("to-link", "same")] {
        fs::remove_file(src.join(name)).unwrap();
        symlink(says, src.join(name)).unwrap();
    }
    for name in ["new", "fresh/one", "fresh/below/two", "skipped.o"] {
        sandbox.write(format!("src/{name}"), name);
    }
    fs::create_dir(src.join("empty")).unwrap();
    symlink("new", src.join("fresh/link")).unwrap();
    // Large enough to travel in blocks.
    sandbox.write("src/large", vec![b'x'; 5 << 20]);
    for name in ["only/file", "only/below/file", "gone", "gone.o"] {
        sandbox.write(format!("dst/{name}"), name);
    }
    symlink("x", dst.join("only/link")).unwrap();
    // What has been written into since has another time; of one it shall differ.
    ["", "d", "d/deep", "perms"].iter().for_each(|name| touch(&dst.join(name), LONG_AGO));
    ["", "d/deep", "perms"].iter().for_each(|name| touch(&src.join(name), LONG_AGO));
    touch(&src.join("d"), LONG_AGO + 3);
}

fn sorted(lines: &str) -> Vec<String> {
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn rsync(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let told = tool(Command::new("rsync").current_dir(sandbox.path("")).args(words));
    // Where the destination is made, it says so in a sentence of its own.
    sorted(&told).into_iter().filter(|line| !line.starts_with("created ")).collect()
}

/// A dry run says what the run does, in rsync's words; the run after it has nothing to say.
#[test]
fn itemized_lines_are_those_of_rsync() {
    let cases: [&[&str]; 6] = [
        &[],
        &["--delete"],
        &["--delete", "--exclude=*.o"],
        &["--size-only", "--delete"],
        &["-c", "--delete"],
        &["--existing", "--delete"],
    ];
    for flags in cases {
        let sandbox = Sandbox::new();
        changed(&sandbox);
        copy_tree(&sandbox.path("dst"), &sandbox.path("theirs"));
        for dry in [&["-n"][..], &[]] {
            let expected = rsync(&sandbox, &[&["-ai"], dry, flags, &["src/", "theirs/"]].concat());
            let ran = sandbox.ok([&["sync", "-i", "src/", "dst"], dry, flags].concat());
            assert_eq!(sorted(&ran.stdout), expected, "{flags:?} {dry:?}");
        }
        let again = sandbox.ok([&["sync", "-i", "src/", "dst"], flags].concat());
        assert_eq!(again.stdout, rsync(&sandbox, &[&["-ai"], flags, &["src/", "theirs/"]].concat()).concat());
    }
}

/// A destination that is not there, one directory with and without a slash, and one that is empty.
#[test]
fn itemized_lines_of_what_is_new_are_those_of_rsync() {
    let sandbox = Sandbox::new();
    changed(&sandbox);
    for source in ["src/", "src"] {
        for (ours, theirs) in [("a/ours", "b/theirs"), ("ours", "theirs")] {
            ["a", "b"].iter().for_each(|name| fs::create_dir_all(sandbox.path(name)).unwrap());
            for dry in [&["-n"][..], &[]] {
                let expected = rsync(&sandbox, &[&["-ai"], dry, &[source, theirs]].concat());
                let ran = sandbox.ok([&["sync", "-i", source, ours], dry].concat());
                assert_eq!(sorted(&ran.stdout), expected, "{source} {ours} {dry:?}");
            }
            let [ours, theirs] = [ours, theirs].map(|name| sandbox.path(name));
            [ours, theirs].iter().for_each(|tree| fs::remove_dir_all(tree).unwrap());
        }
    }
}

/// The same lines wherever the two sides are; only content that leaves this host is told by another sign.
#[test]
fn itemized_lines_tell_which_way_content_goes() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    changed(&sandbox);
    let beside = rsync(&sandbox, &["-ain", "--delete", "src/", "dst/"]);
    let mut pushed: Vec<String> = beside.iter().map(|line| line.replacen(">f", "<f", 1)).collect();
    pushed.sort();
    for name in ["src", "dst", "dst2"] {
        copy_tree(&sandbox.path(name.trim_end_matches('2')), &sandbox.path(format!("root/{name}")));
    }
    let token = node.token();
    for (from, to, expected) in [
        ("src/".to_owned(), node.at("dst"), &pushed),
        (node.at("src/"), "dst".to_owned(), &beside),
        (node.at("src/"), node.at("dst2"), &beside),
    ] {
        for dry in [&["-n"][..], &[]] {
            let words = [&["sync", "-i", "--delete", &token, &from, &to][..], dry].concat();
            assert_eq!(&sorted(&sandbox.ok(words).stdout), expected, "{from} {to} {dry:?}");
        }
    }
}

/// Permissions and time of the destination itself, too.
#[test]
fn dry_run_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("src/a", "a");
    fs::create_dir(sandbox.path("dst")).unwrap();
    for (name, mode) in [("src", 0o700), ("dst", 0o755)] {
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(mode)).unwrap();
    }
    touch(&sandbox.path("dst"), LONG_AGO);
    for flags in [&["-n"][..], &["-n", "-i"], &["-n", "-i", "--top-attributes"], &["-n", "--delete"]] {
        let ran = sandbox.ok([&["sync", "src/", "dst"], flags].concat());
        let there = fs::metadata(sandbox.path("dst")).unwrap();
        assert_eq!((there.mtime(), there.mode() & 0o777), (LONG_AGO as i64, 0o755), "{flags:?}");
        let lines = match flags.len() {
            3 => ".d..tp..... ./\n>f+++++++++ a\n",
            _ if flags.contains(&"-i") => ".d..t...... ./\n>f+++++++++ a\n",
            _ => "",
        };
        assert_eq!(ran.stdout, lines);
    }
}

/// What is refused is not told as done, nor is what would be refused.
#[test]
fn itemized_deletions_are_those_that_happen() {
    for (flag, code, lines) in [("--max-delete=2", 25, 0), ("--max-delete=2,partial", 25, 2), ("--max-delete=9", 0, 3)]
    {
        let sandbox = Sandbox::new();
        sandbox.write("src/a", "a");
        ["dst/x", "dst/y", "dst/z"].iter().for_each(|name| drop(sandbox.write(name, "x")));
        let told = |more: &[&str]| {
            let ran = sandbox.run([&["sync", "-i", "--delete", flag, "src/", "dst"], more].concat());
            let lines = ran.stdout.lines().filter(|line| line.starts_with("*deleting   ")).count();
            (lines, ran.code)
        };
        assert_eq!(told(&["-n"]).0, lines, "{flag}");
        assert_eq!(told(&[]), (lines, code), "{flag}");
    }
}

/// A copy says what it finds at the destination; what was not copied, it does not name.
#[test]
fn itemized_copy_tells_what_was_there() {
    let sandbox = Sandbox::new();
    sandbox.write("src/a\n\u{1b}[2Jb", "x");
    sandbox.write("src/plain", "x");
    let escaped = "src/a\\x0a\\x1b[2Jb";
    for dry in [&["-n"][..], &[]] {
        let ran = sandbox.ok([&["-i", "src", "dst"], dry].concat());
        let new = [format!(">f+++++++++ {escaped}"), ">f+++++++++ src/plain".into(), "cd+++++++++ src/".into()];
        assert_eq!(sorted(&ran.stdout), new, "{dry:?}");
        assert!(!ran.stderr.contains("+++"), "{}", ran.stderr);
    }
    fs::set_permissions(sandbox.path("src/plain"), Permissions::from_mode(0o600)).unwrap();
    for dry in [&["-n"][..], &[]] {
        let ran = sandbox.ok([&["-i", "src", "dst"], dry].concat());
        let replaced = [format!(">f......... {escaped}"), ">f...p..... src/plain".into()];
        assert_eq!(sorted(&ran.stdout), replaced, "{dry:?}");
    }
    assert_eq!(sandbox.ok(["-i", "--no-clobber", "src", "dst"]).stdout, "");
    // An item that fails is not told of.
    fs::remove_file(sandbox.path("dst/src/plain")).unwrap();
    sandbox.write("dst/src/plain/in-the-way", "x");
    for dry in [&["-n"][..], &[]] {
        let ran = sandbox.run([&["-i", "src/plain", "dst/src/"], dry].concat());
        assert_eq!(ran.stdout.lines().filter(|line| line.contains("f+++")).count(), 0, "{dry:?}: {}", ran.stdout);
    }
    let ran = sandbox.ok(["-i", "--json", "src", "other"]);
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let changes: Vec<_> = lines.filter(|line| line["type"] == "itemized").collect();
    let words: Vec<_> = changes.iter().map(|line| (line["kind"].as_str(), line["change"].as_str())).collect();
    assert_eq!(words.iter().filter(|word| **word == (Some("file"), Some("created"))).count(), 2, "{changes:?}");
    assert_eq!(words.iter().filter(|word| **word == (Some("directory"), Some("created"))).count(), 1, "{changes:?}");
    let log = sandbox.path("log");
    let ran = sandbox.ok(["--out-format=%o %n %l %b %i", "--log-file", "log", "src/plain", "third"]);
    assert_eq!(ran.stdout, "send third 1 1 >f+++++++++\n");
    assert!(fs::read_to_string(log).unwrap().contains("send third 1 1"));
}

#[test]
fn itemized_lines_have_standard_output_for_themselves() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "x");
    for words in [
        &["-i", "a", "-"][..],
        &["-i", "--manifest", "-", "a", "b"],
        &["--out-format=%n", "a", "-"],
        &["--out-format=%n", "--json", "a", "b"],
        &["-i", "-q", "a", "b"],
        &["--out-format=%a", "a", "b"],
        &["-i", ".ssh/key", "a", "b"],
    ] {
        sandbox.run(words).failed_with(2, &[]);
    }
    assert!(!sandbox.path("b").exists());
}

/// As with rsync: what is compared by its time goes again and again, and what is compared otherwise does not.
#[test]
fn times_are_left_unset_on_request() {
    let sandbox = Sandbox::new();
    changed(&sandbox);
    copy_tree(&sandbox.path("dst"), &sandbox.path("theirs"));
    let both = |flags: &[&str]| {
        let expected = rsync(&sandbox, &[&["-ai", "--no-times"], flags, &["src/", "theirs/"]].concat());
        let ran = sandbox.ok([&["sync", "-i", "--no-times", "src/", "dst"], flags].concat());
        assert_eq!(sorted(&ran.stdout), expected, "{flags:?}");
        expected
    };
    both(&[]);
    let mtime = |name: &str| fs::metadata(sandbox.path(name)).unwrap().mtime();
    assert_eq!(mtime("dst/same"), LONG_AGO as i64, "what is the same stays as it is");
    assert_eq!(mtime("dst/d"), LONG_AGO as i64, "nothing was written into it");
    for name in ["size", "fresh", "large"] {
        assert!(mtime(&format!("dst/{name}")) > LONG_AGO as i64 + 7, "{name}");
    }
    // Whole seconds apart: rsync compares no others.
    walk(&sandbox.path("src")).iter().for_each(|path| touch(path, LONG_AGO + 50));
    assert!(both(&[]).iter().any(|line| line.starts_with(">f..T...... ")), "everything that was sent is sent again");
    for flags in [&["--size-only"][..], &["-c"], &["-u"]] {
        assert!(both(flags).is_empty(), "{flags:?}");
    }
    let ran = sandbox.ok(["copy", "--no-times", "src/", "dst2", "--json"]);
    assert_eq!(ran.summary()["unkept"]["times"], serde_json::Value::Null);
    assert!(mtime("dst2/size") > LONG_AGO as i64 + 7);
}
