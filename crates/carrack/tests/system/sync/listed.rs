//! `ls`, `du` and `sum` leave out what `sync` leaves out, by the same flags.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::{Duration, SystemTime};

use crate::faults::Mounted;
use crate::support::node::Node;
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, is_root, tree};

const HOUR: Duration = Duration::from_secs(3600);

/// Rules of directories that add to each other and clear each other, names at several depths, sizes and ages.
fn ruled(sandbox: &Sandbox) {
    for (name, bytes, hours) in [
        ("a.o", 1, 1),
        ("a.c", 10, 50),
        ("keep.o", 100, 1),
        ("build/x", 10, 1),
        ("d/build/x", 10, 1),
        ("d/b.c", 1000, 100),
        ("d/b.log", 5, 2),
        ("d/e/deep.log", 5, 2),
        ("d/e/f/g/deep.c", 2000, 30),
        ("d/e/f/g/own.x", 20, 3),
        ("cleared/a.o", 1, 1),
        ("cleared/b.log", 3, 90),
        ("cache/only", 7, 1),
        ("d/cache", 7, 1),
    ] {
        let path = sandbox.write(format!("root/src/{name}"), vec![b'x'; bytes]);
        let changed = SystemTime::now() - HOUR * hours;
        fs::File::options().write(true).open(path).unwrap().set_modified(changed).unwrap();
    }
    sandbox.write("root/src/.rules", "+ keep.o\n- *.o\n");
    sandbox.write("root/src/d/.rules", "- /e/*.log\n- own.x\n");
    sandbox.write("root/src/cleared/.rules", "!\n- *.log\n");
    symlink("a.c", sandbox.path("root/src/link.o")).unwrap();
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// All that a sync with these flags has sent into a directory of its own.
fn sent(sandbox: &Sandbox, number: usize, flags: &[&str]) -> Vec<String> {
    let to = format!("to{number}");
    sandbox.ok([&["sync", "root/src/", &to], flags].concat());
    let top = sandbox.path(&to);
    let mut names: Vec<String> = tree::walk(&top)
        .into_iter()
        .map(|path| path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names
}

const CASES: [&[&str]; 12] = [
    &[],
    &["--filter=dir-merge .rules"],
    &["--filter=dir-merge .rules", "--exclude=.rules", "--exclude=/build"],
    &["--exclude=/build/", "--exclude=cache/"],
    &["--exclude=build"],
    &["--include=*/", "--include=*.c", "--exclude=*"],
    &["--include=/d/", "--include=/d/**", "--exclude=*"],
    &["--exclude=d/**/deep.*"],
    &["--filter=:n .rules", "--exclude=*.log"],
    &["--min-size=10", "--max-size=1000"],
    &["--min-age=2h30m", "--exclude=*.x"],
    &["--max-age=60h", "--min-size=2", "--filter=: .rules"],
];

#[test]
fn listing_names_what_a_sync_sends() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let far = Sshd::start(&sandbox);
    ruled(&sandbox);
    let (at_node, token) = (node.at("src"), node.token());
    let ssh = format!("far:{}", sandbox.path("root/src").display());
    let there: [(&str, Option<&str>); 3] = [("root/src", None), (&at_node, Some(&token)), (&ssh, Some(&far.rsh))];
    for (number, flags) in CASES.into_iter().enumerate() {
        let sent = sent(&sandbox, number, flags);
        for (place, more) in there {
            let run = |verb: &[&str]| sandbox.ok([verb, flags, &[place]].concat().into_iter().chain(more)).stdout;
            assert_eq!(lines(&run(&["ls", "-R"])), sent, "{place} {flags:?}");
            // What lies directly in it, and no more.
            let top: Vec<_> = sent.iter().filter(|name| !name.contains('/')).cloned().collect();
            assert_eq!(lines(&run(&["ls"])), top, "{place} {flags:?}");
            let is_file = |name: &&String| sandbox.path("root/src").join(name).symlink_metadata().unwrap().is_file();
            let summed = lines(&run(&["sum"])).len();
            assert_eq!(summed, sent.iter().filter(is_file).count(), "{place} {flags:?}");
            let length = |name: &String| {
                let found = sandbox.path("root/src").join(name).symlink_metadata().unwrap();
                if found.is_dir() { 0 } else { found.size() }
            };
            let counted: u64 = run(&["du", "-bs"]).split('\t').next().unwrap().parse().unwrap();
            assert_eq!(counted, sent.iter().map(length).sum::<u64>(), "{place} {flags:?}");
        }
    }
}

/// A file goes by its own name, size and age; a directory that is named is itself never left out.
#[test]
fn file_that_is_named_is_left_out_by_the_same_flags() {
    let sandbox = Sandbox::new();
    ruled(&sandbox);
    for verb in ["ls", "sum", "du"] {
        let lines = |flags: &[&str], path| sandbox.ok([&[verb], flags, &[path]].concat()).stdout.lines().count();
        assert_eq!(lines(&["--exclude=*.o"], "root/src/a.o"), 0, "{verb}");
        assert_eq!(lines(&["--min-size=2"], "root/src/a.o"), 0, "{verb}");
        assert_eq!(lines(&["--min-size=1", "--exclude=src"], "root/src/a.o"), 1, "{verb}");
        assert_eq!(lines(&["--exclude=cleared"], "root/src/cleared"), if verb == "du" { 1 } else { 3 }, "{verb}");
        sandbox.run([verb, "--filter=no rule", "root/src"]).failed_with(2, &["--filter"]);
        sandbox.run([verb, "--max-age=soon", "root/src"]).failed_with(2, &["--max-age"]);
    }
}

/// Nothing of a directory is listed or read whose rules cannot be read, as nothing of it is copied.
#[test]
fn directory_whose_rules_cannot_be_read_fails() {
    let sandbox = Sandbox::new();
    ruled(&sandbox);
    sandbox.write("root/src/d/.rules", "no such rule\n");
    for verb in [&["ls", "-R"][..], &["sum"], &["du", "-a"]] {
        let ran = sandbox.run([verb, &["--filter=dir-merge .rules", "root/src"]].concat());
        ran.failed_with(23, &["line 1 of .rules in it is no rule"]);
        assert!(!ran.stdout.contains("b.c") && ran.stdout.contains("a.c"), "{}", ran.stdout);
        assert!(!ran.stderr.contains("no such rule"), "{}", ran.stderr);
    }
}

#[test]
fn listing_stays_on_one_file_system() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("src/a", "a");
    let disk = Mounted::new(sandbox.path("src/disk"), "1m");
    fs::write(disk.0.join("f"), "mounted").unwrap();
    assert_eq!(lines(&sandbox.ok(["ls", "-R", "src"]).stdout), ["a", "disk", "disk/f"]);
    assert_eq!(lines(&sandbox.ok(["ls", "-R", "-x", "src"]).stdout), ["a", "disk"]);
    assert_eq!(sandbox.ok(["du", "-bsx", "src"]).stdout, "1\tsrc\n");
    assert_eq!(sandbox.ok(["sum", "-x", "src"]).stdout.lines().count(), 1);
}
