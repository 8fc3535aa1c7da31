//! Symbolic links of a source: copied, followed or left out as rsync does it, and never followed out of what a node or
//! an endpoint serves.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use carrack_faults::race::Racer;
use carrack_faults::watch::is_hidden;

use super::numbers;
use super::oracle::shown;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::{Ran, Sandbox, ran, same_tree, wait_until};

const CANARY: &str = "nobody may read this";

/// `src` with a link of each kind, and what some of them lead to beside it.
fn grown(sandbox: &Sandbox, below: &str) {
    let at = |path: &str| sandbox.path(below).join(path);
    for (path, content) in [("src/f", "file"), ("src/d/g", "deep"), ("src/d/e/h", "deeper"), ("out/secret", CANARY)] {
        sandbox.write(at(path), content);
    }
    for (name, leads_to) in [
        ("to-file", "f"),
        ("to-directory", "d"),
        ("chain", "to-directory"),
        ("dangling", "none"),
        ("circle", "circle"),
        ("out", "../out/secret"),
        ("out-directory", "../out"),
        ("d/inside", "../f"),
        ("d/e/up", "../../d/g"),
        ("d/e/far", "../../../out/secret"),
    ] {
        symlink(leads_to, at("src").join(name)).unwrap();
    }
    symlink(at("out/secret"), at("src/absolute")).unwrap();
}

fn has_rsync() -> bool {
    let version = Command::new("rsync").arg("--version").output();
    let is_there = version.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("version 3.5."));
    if !is_there {
        println!("skipped: there is no rsync 3.5 to compare with");
    }
    is_there
}

fn rsync(sandbox: &Sandbox, words: &[&str]) -> Ran {
    ran(Command::new("rsync").arg("-rlpt").args(words).current_dir(sandbox.path("")).output_in_time().unwrap())
}

#[test]
fn links_are_copied_followed_and_left_out_as_by_rsync() {
    if !has_rsync() {
        return;
    }
    let sandbox = Sandbox::new();
    grown(&sandbox, "");
    let cases: [&[&str]; 9] = [
        &[],
        &["--links"],
        &["-L"],
        &["-k"],
        &["--copy-unsafe-links"],
        &["--safe-links"],
        &["-L", "--exclude=dangling", "--exclude=circle"],
        &["--copy-links", "--exclude=to-dir*/", "--exclude=/chain"],
        &["--copy-dirlinks", "--exclude=to-dir*/", "--max-size=4"],
    ];
    for flags in cases {
        for source in ["src/", "src"] {
            for to in ["rsync", "carrack"] {
                let _ = fs::remove_dir_all(sandbox.path(to));
            }
            let theirs = rsync(&sandbox, &[flags, &[source, "rsync"]].concat());
            let ours = sandbox.run([&["sync"], flags, &[source, "carrack"]].concat());
            assert_eq!(ours.code, theirs.code, "{flags:?} {source}: {}{}", ours.stderr, theirs.stderr);
            assert_eq!(shown(&sandbox.path("carrack")), shown(&sandbox.path("rsync")), "{flags:?} {source}");
            // Nothing differs any more, and a dry run says the same.
            let again = sandbox.run([&["sync", "-n", "--json"], flags, &[source, "carrack"]].concat());
            assert_eq!(numbers(&again, &["files"]), [0], "{flags:?} {source}");
        }
    }
}

/// What a link led to is not taken for something that only the destination has, nor is a link that is left out.
#[test]
fn names_of_links_are_not_deleted() {
    if !has_rsync() {
        return;
    }
    let sandbox = Sandbox::new();
    grown(&sandbox, "");
    for name in ["src/dangling", "src/circle"] {
        fs::remove_file(sandbox.path(name)).unwrap();
    }
    for flags in [&["-L"][..], &["-k"], &["--copy-unsafe-links"], &["--safe-links"]] {
        for to in ["rsync", "carrack"] {
            let _ = fs::remove_dir_all(sandbox.path(to));
            rsync(&sandbox, &[flags, &["src/", to]].concat());
            sandbox.write(format!("{to}/only"), "x");
            sandbox.write(format!("{to}/d/only/x"), "x");
            if !sandbox.path(to).join("absolute").exists() {
                // Of one time in both, whatever second it is.
                super::set_mtime(&sandbox.write(format!("{to}/absolute"), "of the destination"), 1_000_000_000);
            }
        }
        let theirs = rsync(&sandbox, &[flags, &["--delete-after", "src/", "rsync"]].concat());
        assert_eq!(theirs.code, 0, "{}", theirs.stderr);
        let ours = sandbox.ok([&["sync", "--delete", "--json"], flags, &["src/", "carrack"]].concat());
        assert_eq!(numbers(&ours, &["items_deleted"]), [3], "{flags:?}");
        assert_eq!(shown(&sandbox.path("carrack")), shown(&sandbox.path("rsync")), "{flags:?}");
    }
    // With a link that leads nowhere nothing is deleted: its name may be what the destination still has.
    symlink("none", sandbox.path("src/only")).unwrap();
    sandbox.write("carrack/only", "x");
    sandbox.run(["sync", "--delete", "-L", "src/", "carrack"]).failed_with(23, &["only: is a symbolic link to none"]);
    sandbox.run(["sync", "--delete", "--ignore-errors", "-L", "src/", "carrack"]).failed_with(23, &["none"]);
    assert!(sandbox.path("carrack/only").exists());
}

#[test]
fn links_that_are_left_out_are_counted_and_those_that_lead_nowhere_fail() {
    let sandbox = Sandbox::new();
    grown(&sandbox, "");
    let safe = sandbox.ok(["--safe-links", "src/", "safe", "--json"]);
    assert_eq!(numbers(&safe, &["links_skipped", "symlinks", "files_failed"]), [4, 7, 0]);
    let said = sandbox.ok(["--safe-links", "src/", "again"]).stderr;
    assert!(said.contains("left out: 4 symbolic links"), "{said}");
    let planned = sandbox.ok(["-n", "--safe-links", "src/", "never", "--json"]);
    assert_eq!(numbers(&planned, &["links_skipped"]), [4]);
    let followed = sandbox.run(["-L", "src/", "followed", "--json"]);
    followed.failed_with(23, &[]);
    assert_eq!(numbers(&followed, &["links_skipped", "symlinks", "files_failed"]), [0, 0, 2]);
    sandbox.run(["-L", "src/", "followed"]).failed_with(23, &["dangling: is a symbolic link to none", "in a circle"]);
    for flags in [["-L", "-k"], ["-L", "--safe-links"], ["-k", "--copy-unsafe-links"]] {
        sandbox.run(flags.iter().chain(&["src/", "never"])).failed_with(2, &["cannot be used with"]);
    }
    assert!(!sandbox.path("never").exists());
}

/// A directory that stands in itself by a link ends, and everything else is copied.
#[test]
fn links_that_lead_round_end() {
    let sandbox = Sandbox::new();
    sandbox.write("src/d/f", "file");
    symlink(".", sandbox.path("src/here")).unwrap();
    symlink("../d", sandbox.path("src/d/round")).unwrap();
    symlink("../../src", sandbox.path("src/d/up")).unwrap();
    // Each leads to the other.
    for (from, to) in [("one", "two"), ("two", "one")] {
        fs::create_dir_all(sandbox.path(from)).unwrap();
        symlink(sandbox.path(to), sandbox.path(from).join("link")).unwrap();
    }
    symlink("../one", sandbox.path("src/between")).unwrap();
    let ran = sandbox.run(["-L", "--json", "src/", "dst"]);
    ran.failed_with(23, &[]);
    assert_eq!(numbers(&ran, &["files", "files_failed"]), [1, 4]);
    for name in ["here", "d/round", "d/up", "between/link/link"] {
        assert!(fs::symlink_metadata(sandbox.path("dst").join(name)).is_err(), "{name}");
    }
    assert!(sandbox.path("dst/between/link").is_dir());
    assert_eq!(fs::read_to_string(sandbox.path("dst/d/f")).unwrap(), "file");
}

/// Two names of one file are two files, and what was interrupted goes on.
#[test]
fn files_behind_links_are_known_again() {
    let sandbox = Sandbox::new();
    sandbox.write("src/d/large", vec![b'x'; 3 << 20]);
    symlink("d", sandbox.path("src/link")).unwrap();
    symlink("d/large", sandbox.path("src/other")).unwrap();
    let ran = sandbox.ok(["-L", "--json", "src/", "dst"]);
    assert_eq!(numbers(&ran, &["files", "bytes"]), [3, 9 << 20]);
    let again = sandbox.ok(["sync", "-L", "-c", "--json", "src/", "dst"]);
    assert_eq!(numbers(&again, &["files", "files_same"]), [0, 3]);
    // Another file behind the link is another content, whatever the time says.
    sandbox.write("src/d/small", "small");
    fs::remove_file(sandbox.path("src/other")).unwrap();
    symlink("d/small", sandbox.path("src/other")).unwrap();
    sandbox.ok(["sync", "-L", "src/", "dst"]);
    assert_eq!(fs::read(sandbox.path("dst/other")).unwrap(), b"small");
    assert!(fs::symlink_metadata(sandbox.path("dst/link")).unwrap().is_dir());
    same_tree(&sandbox.path("src/d"), &sandbox.path("dst/link"));
}

/// Below a node's root links lead anywhere; out of it none is followed, by whichever flag and in whichever direction.
#[test]
fn links_lead_nowhere_outside_a_node() {
    let sandbox = Sandbox::new();
    grown(&sandbox, "root");
    sandbox.write("outside/secret", CANARY);
    sandbox.write("root/beside/b", "beside");
    for (name, leads_to) in [("away", "../../outside/secret"), ("away-directory", "../../outside"), ("b", "../beside")]
    {
        symlink(leads_to, sandbox.path("root/src").join(name)).unwrap();
    }
    symlink(sandbox.path("outside"), sandbox.path("root/src/d/absolute")).unwrap();
    let node = Node::start(&sandbox, "root", &[]);
    fs::remove_dir_all(sandbox.path("root/out")).unwrap();
    for (flag, followed) in [("-L", true), ("-k", true), ("--copy-unsafe-links", true), ("--safe-links", false)] {
        let to = format!("got{flag}");
        let ran = sandbox.run([flag, &node.at("src/"), &to, &node.token(), "--json"]);
        assert_eq!(ran.code, if followed { 23 } else { 0 }, "{flag}: {}", ran.stderr);
        assert_eq!(sandbox.path(&to).join("b/b").exists(), followed, "{flag}");
        for (path, what) in shown(&sandbox.path(&to)) {
            assert!(!what.contains(CANARY) && !path.starts_with("away-directory/"), "{flag}: {path}");
        }
        let summary = ran.summary();
        let away = summary["failures"].as_array().unwrap().iter().filter(|one| one["code"] == "outside-root");
        let away: Vec<&str> = away.filter_map(|one| one["path"].as_str()).collect();
        assert_eq!(away.contains(&"away-directory"), followed, "{flag}: {away:?}");
        assert_eq!(away.contains(&"d/absolute"), followed, "{flag}: {away:?}");
    }
    let ran = sandbox.run(["-L", &node.at("src/"), "words", &node.token()]);
    ran.failed_with(23, &["away: is a symbolic link to ../../outside/secret, which leads outside what is served"]);
}

/// Two directories that only links lead to, and links that are not kept: each with a name of the source.
fn grown_destination(sandbox: &Sandbox) {
    let at = |path: &str| sandbox.path("dst").join(path);
    for path in ["real/old", "other/in/old", "f", "../outside/old"] {
        sandbox.write(at(path), CANARY);
    }
    fs::create_dir_all(at("deep")).unwrap();
    symlink("real", at("link")).unwrap();
    symlink("../chain", at("deep/far")).unwrap();
    symlink("./other//in/", at("chain")).unwrap();
}

/// What the source has below each of them.
fn grown_source(sandbox: &Sandbox) {
    for (path, content) in [("link/a", "one"), ("link/d/b", "two"), ("deep/far/c", "three"), ("plain/p", "four")] {
        sandbox.write(Path::new("src").join(path), content);
    }
    sandbox.write("src/link/large", vec![7; 3 << 20]);
    symlink("a", sandbox.path("src/link/says")).unwrap();
    fs::set_permissions(sandbox.path("src/link"), fs::Permissions::from_mode(0o751)).unwrap();
}

#[test]
fn links_to_directories_are_kept_at_the_destination() {
    let sandbox = Sandbox::new();
    grown_destination(&sandbox);
    grown_source(&sandbox);
    if has_rsync() {
        crate::support::tool(Command::new("cp").args(["-a", "dst", "theirs"]).current_dir(sandbox.path("")));
    }
    sandbox.run(["src/", "dst"]).failed_with(23, &["link"]);
    let counts = |ran: &Ran| numbers(ran, &["files", "files_same", "files_failed"]);
    // What is not below a link has been copied by now.
    assert_eq!(counts(&sandbox.ok(["sync", "--json", "-K", "src/", "dst"])), [4, 1, 0]);
    assert!(sandbox.path("dst/link").is_symlink() && sandbox.path("dst/deep/far").is_symlink());
    assert_eq!(fs::read_to_string(sandbox.path("dst/real/d/b")).unwrap(), "two");
    assert_eq!(fs::read_to_string(sandbox.path("dst/other/in/c")).unwrap(), "three");
    assert_eq!(fs::metadata(sandbox.path("dst/real")).unwrap().permissions().mode() & 0o777, 0o751);
    assert_eq!(counts(&sandbox.ok(["sync", "--json", "-K", "src/", "dst"])), [0, 6, 0]);
    assert_eq!(counts(&sandbox.ok(["sync", "--json", "-K", "-c", "src/", "dst"])), [0, 6, 0]);
    assert_eq!(counts(&sandbox.ok(["sync", "--json", "-n", "-K", "src/", "dst"])), [0, 6, 0]);
    // A link that stands for a directory is one, also where changes are told.
    for words in [&["sync", "-i", "-K", "src/", "dst"][..], &["sync", "-n", "-i", "-K", "src/", "dst"]] {
        assert_eq!(sandbox.ok(words).stdout, "", "{words:?}");
    }
    if has_rsync() {
        let ran = rsync(&sandbox, &["-K", "src/", "theirs"]);
        // Of what a link leads to, rsync 3.5 does not set the permissions.
        assert!(ran.code == 0 || ran.stderr.contains("failed to set permissions on"), "{}", ran.stderr);
        assert_eq!(shown(&sandbox.path("dst")), shown(&sandbox.path("theirs")));
    }
    // Of its own name, a link is a link.
    sandbox.write("one/link", "a file");
    sandbox.ok(["-K", "one/", "dst"]);
    assert!(!sandbox.path("dst/link").is_symlink() && sandbox.path("dst/real/a").exists());
}

#[test]
fn links_that_are_not_kept_fail_and_nothing_outside_is_written() {
    let sandbox = Sandbox::new();
    grown_destination(&sandbox);
    grown_source(&sandbox);
    let leads_to = [
        ("absolute", sandbox.path("dst/real").display().to_string(), "from the root"),
        ("up", "../outside".to_owned(), "leads out of the destination"),
        ("by-the-way", "../dst/real".to_owned(), "leads out of the destination"),
        ("none", "nowhere".to_owned(), "where no directory is"),
        ("file", "f".to_owned(), "where no directory is"),
        ("round", "round".to_owned(), "leads in a circle"),
        ("kept", ".old".to_owned(), "where old files are kept"),
        // It would be one directory with the destination itself.
        ("itself", ".".to_owned(), "where another directory of the source goes"),
    ];
    fs::create_dir(sandbox.path("dst/.old")).unwrap();
    for (name, target, _) in &leads_to {
        symlink(target, sandbox.path("dst").join(name)).unwrap();
        sandbox.write(Path::new("src").join(name).join("old"), "new");
    }
    let ran = sandbox.run(["-K", "--backup-dir", ".old", "src/", "dst"]);
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    for (name, _, why) in leads_to {
        let told = ran.stderr.lines().find(|line| line.contains(&format!(" {name}: ")));
        assert!(told.is_some_and(|told| told.contains(why)), "{name}: {why}: {}", ran.stderr);
    }
    for path in ["dst/real/old", "dst/other/in/old", "dst/f", "outside/old"] {
        assert_eq!(fs::read_to_string(sandbox.path(path)).unwrap(), CANARY, "{path}");
    }
    assert!(sandbox.path("dst/real/a").exists() && !sandbox.path("dst/old").exists());
    // Both may not go together, and nobody has a link followed at a node.
    sandbox.run(["sync", "-K", "--delete", "src/", "dst"]).failed_with(2, &["--keep-dirlinks"]);
    let node = Node::start(&sandbox, "dst", &[]);
    sandbox
        .run(["-K", "src/link", &node.at("link"), &node.token()])
        .failed_with(11, &["are not written through there"]);
}

/// Two directories of a source that would be one, and a source that a link at its destination leads to.
#[test]
fn nothing_is_copied_onto_another_or_onto_itself_by_a_link() {
    let sandbox = Sandbox::new();
    grown_destination(&sandbox);
    sandbox.write("src/link/f", "by the link");
    sandbox.write("src/real/f", "by its name");
    let ran = sandbox.run(["-K", "src/", "dst"]);
    ran.failed_with(23, &["where another directory of the source goes already"]);
    let there = fs::read_to_string(sandbox.path("dst/real/f")).unwrap();
    let lost = if there == "by the link" { " real: " } else { " link: " };
    assert!(ran.stderr.contains(lost), "{there}: {}", ran.stderr);
    // The source lies below the destination: by a link it would be compared with itself, and deleted.
    sandbox.write("dst/a/x/f", "only here");
    symlink("a/x", sandbox.path("dst/x")).unwrap();
    for more in [&[][..], &["-c", "--remove-source-files"]] {
        let words = [&["sync", "-K", "dst/a/", "dst"][..], more].concat();
        sandbox.run(words).failed_with(2, &["a link may lead to it"]);
    }
    assert_eq!(fs::read_to_string(sandbox.path("dst/a/x/f")).unwrap(), "only here");
}

/// A link that is exchanged while it is written through leads what comes nowhere else.
#[test]
fn links_that_are_kept_are_raced() {
    let sandbox = Sandbox::in_memory();
    sandbox.write("out/f0", CANARY);
    for number in 0..40 {
        sandbox.write(format!("src/link/f{number}"), "new");
    }
    let end = std::time::Instant::now() + crate::support::race_time();
    let mut rounds = 0;
    while std::time::Instant::now() < end || rounds < 4 {
        let _ = fs::remove_dir_all(sandbox.path("dst"));
        fs::create_dir_all(sandbox.path("dst/real")).unwrap();
        symlink("real", sandbox.path("dst/link")).unwrap();
        symlink("../out", sandbox.path("bait")).unwrap();
        let racer = Racer::start(&sandbox.path("dst/link"), &sandbox.path("bait"));
        let ran = sandbox.run(["-q", "-K", "--durable=none", "--retries=2", "src/", "dst"]);
        drop(racer);
        assert!(matches!(ran.code, 0 | 23), "{}: {}", ran.code, ran.stderr);
        assert_eq!(fs::read_to_string(sandbox.path("out/f0")).unwrap(), CANARY);
        assert_eq!(fs::read_dir(sandbox.path("out")).unwrap().count(), 1);
        let whole = (0..40).all(|number| sandbox.path(format!("dst/real/f{number}")).exists());
        assert!(whole || ran.code == 23, "{}", ran.stderr);
        fs::remove_file(sandbox.path("bait")).unwrap();
        rounds += 1;
    }
}

/// A copy that was cut off in a directory that a link leads to is taken up there.
#[test]
fn copy_through_a_link_is_taken_up_again() {
    let sandbox = Sandbox::new();
    grown_destination(&sandbox);
    sandbox.write("src/link/large", vec![7; 24 << 20]);
    let words = ["--json", "-K", "--block=1M", "--streams=2", "src/", "dst"];
    let mut copying = Running::start(sandbox.carrack().args(words).arg("--bwlimit=8M"));
    // The part file has its full length from the beginning: a byte of each block tells what has come.
    let came = |path: &Path| {
        let part = fs::File::open(path).unwrap();
        let has = |block: &u64| {
            let mut byte = [0];
            part.read_at(&mut byte, block << 20).is_ok_and(|read| read == 1) && byte == [7]
        };
        (0..24).filter(has).count()
    };
    let parts = || crate::support::tree::walk(&sandbox.path("dst/real")).into_iter().filter(|path| is_hidden(path));
    wait_until("half of it is there", || parts().any(|part| came(&part) > 12) || !copying.is_running());
    signal(copying.id(), "TERM");
    assert_ne!(copying.end().code, 0);
    let ran = sandbox.ok(words);
    assert!(ran.summary()["bytes_resumed"].as_u64().is_some_and(|bytes| bytes > 0), "{}", ran.stdout);
    assert_eq!(fs::read(sandbox.path("dst/real/large")).unwrap(), vec![7; 24 << 20]);
    assert!(!crate::support::tree::walk(&sandbox.path("dst")).iter().any(|path| is_hidden(path)));
}

/// What exists is left alone, with all that it has.
#[test]
fn ignore_existing_leaves_links_and_fifos_as_they_are() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("src")).unwrap();
    fs::create_dir(sandbox.path("dst")).unwrap();
    let touch = |top: &str, date: &str| {
        let names = ["link", "fifo"].map(|name| sandbox.path(top).join(name));
        assert!(Command::new("touch").args(["-h", "-d", date]).args(names).status().unwrap().success());
    };
    for (top, date) in [("src", "2001-02-03"), ("dst", "2011-12-13")] {
        symlink("leads", sandbox.path(top).join("link")).unwrap();
        assert!(Command::new("mkfifo").arg(sandbox.path(top).join("fifo")).status().unwrap().success());
        touch(top, date);
    }
    let times = || ["link", "fifo"].map(|name| sandbox.path("dst").join(name).symlink_metadata().unwrap().mtime());
    let before = times();
    sandbox.ok(["sync", "-a", "--ignore-existing", "src/", "dst"]);
    assert_eq!(times(), before);
    sandbox.ok(["sync", "-a", "src/", "dst"]);
    assert!(times().iter().zip(before).all(|(now, before)| *now != before));
}
