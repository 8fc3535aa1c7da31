//! Owners, groups, set-user-id, set-group-id and sticky bits, where they are kept: rsync says whether they are.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use crate::faults::{NOBODY, open_to_all, under};
use crate::support::node::Node;
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, is_root, tree};

/// A tree in which owners, groups and bits differ: small files, a large one, links and directories.
pub fn scene() -> Option<Sandbox> {
    if !is_root() {
        return None;
    }
    let sandbox = Sandbox::new();
    for (number, name) in ["plain", "d/owner", "d/group", "d/program", "d/sub/both"].iter().enumerate() {
        sandbox.write(format!("in/{name}"), tree::bytes(3000 + number, number as u64));
    }
    sandbox.write("in/large", tree::bytes(3 << 20, 9));
    let at = |name: &str| sandbox.path("in").join(name);
    symlink("owner", at("d/link")).unwrap();
    lchown(at("d/link"), Some(1234), Some(2345)).unwrap();
    for (name, owner, group, mode) in [
        ("d/owner", 1234, 0, 0o644),
        ("d/group", 0, 2345, 0o2755),
        ("d/program", 1, 1, 0o4755),
        ("d/sub/both", 1234, 2345, 0o6755),
        ("large", 4321, 2345, 0o640),
        ("d/sub", 1234, 2345, 0o3775),
        ("d", 0, 2345, 0o2755),
    ] {
        chown(at(name), Some(owner), Some(group)).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    }
    Some(sandbox)
}

/// What rsync would still do to make one like the other.
pub fn left_to_rsync(from: &Path, to: &Path) -> String {
    let directory = |path: &Path| format!("{}/", path.display());
    let ran = Command::new("rsync")
        .args(["-rlptgoD", "--numeric-ids", "--dry-run", "--itemize-changes", "--delete"])
        .args([directory(from), directory(to)])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

pub fn owned(path: &Path) -> (u32, u32, u32) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

#[test]
fn archive_keeps_owners_groups_and_special_bits_over_every_link() {
    let Some(sandbox) = scene() else { return };
    let node = Node::start(&sandbox, "served", &["--allow-ownership"]);
    let here = Node::start(&sandbox, "in", &[]);
    let far = Sshd::start(&sandbox);
    let at_far = format!("far:{}/", sandbox.path("ssh").display());
    let ways: [(&str, Vec<String>); 4] = [
        ("local", ["in/", "local"].map(str::to_owned).to_vec()),
        ("served/pushed", vec!["in/".into(), node.at("pushed/"), node.token()]),
        ("pulled", vec![here.at(""), "pulled".into(), here.token()]),
        ("ssh", vec![far.rsh.clone(), "in/".into(), at_far]),
    ];
    for (made, words) in ways {
        for ids in [&["-a"][..], &["-a", "--numeric-ids"], &["-ogp"]] {
            for verb in ["copy", "sync"] {
                let _ = fs::remove_dir_all(sandbox.path(made));
                let ran = sandbox.ok([verb]
                    .iter()
                    .copied()
                    .chain(words.iter().map(|word| &word[..]))
                    .chain(ids.iter().copied()));
                assert!(!ran.stderr.contains("not kept"), "{made}: {}", ran.stderr);
                let left = left_to_rsync(&sandbox.path("in"), &sandbox.path(made));
                assert_eq!(left, "", "{made} by {verb} {ids:?}");
            }
        }
        // Nothing is sent again, and nothing set.
        let again = sandbox.ok(["sync", "--json", "-a"].into_iter().chain(words.iter().map(|word| &word[..])));
        assert_eq!(super::sync::numbers(&again, &["files", "attributes_set"]), [0, 0], "{made}");
    }
}

/// A change of attributes alone is set, told, and sends nothing.
#[test]
fn changed_owner_group_or_bit_is_set_where_the_file_stands() {
    let Some(sandbox) = scene() else { return };
    sandbox.ok(["sync", "-a", "in/", "out"]);
    let at = |name: &str| sandbox.path("in").join(name);
    chown(at("plain"), Some(77), None).unwrap();
    chown(at("large"), None, Some(78)).unwrap();
    fs::set_permissions(at("d/owner"), Permissions::from_mode(0o4644)).unwrap();
    fs::set_permissions(at("d/sub/both"), Permissions::from_mode(0o755)).unwrap();
    lchown(at("d/link"), Some(5), Some(6)).unwrap();
    chown(at("d/sub"), Some(79), Some(80)).unwrap();
    fs::set_permissions(at("d/sub"), Permissions::from_mode(0o775)).unwrap();
    let dry = sandbox.ok(["sync", "-a", "-n", "-i", "in/", "out"]);
    let ran = sandbox.ok(["sync", "-a", "-i", "in/", "out"]);
    let counted = sandbox.ok(["sync", "-a", "--json", "in/", "out"]);
    for line in
        [".f....o... plain", ".f.....g... large", ">f...p..... d/owner", ".f...p..... d/sub/both", ".d...pog... d/sub/"]
    {
        let line = if line.contains("plain") { ".f....o.... plain" } else { line };
        for told in [&dry, &ran] {
            assert!(told.stdout.lines().any(|one| one == line), "{line}: {}", told.stdout);
        }
    }
    assert_eq!(super::sync::numbers(&counted, &["files", "bytes", "attributes_set"]), [0, 0, 0], "nothing is left");
    assert_eq!(left_to_rsync(&sandbox.path("in"), &sandbox.path("out")), "");
}

/// Who copies a program without its owner makes none that runs as themselves.
#[test]
fn set_user_id_is_given_with_the_owner_of_the_source_alone() {
    let Some(sandbox) = scene() else { return };
    let at = |place: &str, name: &str| owned(&sandbox.path(place).join(name));
    sandbox.ok(["-p", "in/", "bits"]);
    assert_eq!(at("bits", "d/program"), (0, 0, 0o755), "another's program");
    assert_eq!(at("bits", "d/sub/both"), (0, 0, 0o755));
    assert_eq!(at("bits", "d/sub"), (0, 0, 0o1775), "a sticky bit is nobody's");
    assert_eq!(at("bits", "d/group"), (0, 0, 0o755));
    sandbox.ok(["-op", "in/", "owner"]);
    assert_eq!(at("owner", "d/program"), (1, 0, 0o4755));
    assert_eq!(at("owner", "d/sub/both"), (1234, 0, 0o4755), "not with another group");
    sandbox.ok(["-o", "in/", "plain"]);
    assert_eq!(at("plain", "d/program"), (1, 0, 0o755));
    let ran = sandbox.ok(["in/", "nothing"]);
    assert_eq!(at("nothing", "d/program"), (0, 0, 0o755));
    assert!(ran.stderr.contains("not kept: 6 owners"), "{}", ran.stderr);
    // Who is not root keeps their own, whatever they ask for.
    open_to_all(&sandbox);
    fs::create_dir(sandbox.path("theirs")).unwrap();
    chown(sandbox.path("theirs"), Some(65534), Some(65534)).unwrap();
    fs::set_permissions(sandbox.path("in/large"), Permissions::from_mode(0o644)).unwrap();
    let ran = under(&sandbox, &NOBODY, &["-a", "in/", "theirs/out"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(at("theirs/out", "d/program"), (65534, 65534, 0o755));
    assert!(ran.stderr.contains("not kept: ") && ran.stderr.contains("owners"), "{}", ran.stderr);
    let again = under(&sandbox, &NOBODY, &["sync", "--json", "-a", "in/", "theirs/out"]);
    assert_eq!(super::sync::numbers(&again, &["files", "attributes_set"]), [0, 0], "it is not tried again and again");
}

/// A file whose content nobody has compared does not come to run as somebody, a program does not get a new owner with
/// its bits, and other names of a file keep what they have.
#[test]
fn files_that_stand_there_are_given_nothing_that_could_hurt() {
    let Some(sandbox) = scene() else { return };
    let at = |name: &str| sandbox.path("out").join(name);
    sandbox.ok(["sync", "-a", "in/", "out"]);
    let time = fs::metadata(sandbox.path("in/d/program")).unwrap().modified().unwrap();
    let put = |name: &str, content: &[u8], owner: u32, mode: u32| {
        fs::write(at(name), content).unwrap();
        fs::File::options().write(true).open(at(name)).unwrap().set_modified(time).unwrap();
        chown(at(name), Some(owner), Some(0)).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    };
    // Of the program's size and time, and something else.
    let source = fs::read(sandbox.path("in/d/program")).unwrap();
    put("d/program", &vec![7; source.len()], 4321, 0o755);
    let ran = sandbox.ok(["sync", "-a", "--json", "in/", "out"]);
    assert_eq!(super::sync::numbers(&ran, &["files"]), [1], "it was sent");
    assert!(fs::read(at("d/program")).unwrap() == source && owned(&at("d/program")) == (1, 1, 0o4755));
    // A program of somebody's, which is to become root's, where no bits are kept.
    fs::File::options().write(true).open(sandbox.path("in/plain")).unwrap().set_modified(time).unwrap();
    put("plain", &fs::read(sandbox.path("in/plain")).unwrap(), 4321, 0o6755);
    sandbox.ok(["sync", "-og", "in/plain", "out/"]);
    assert_eq!(owned(&at("plain")), (0, 0, 0o644));
    // A file with another name is made anew.
    fs::hard_link(at("d/owner"), sandbox.path("other")).unwrap();
    chown(sandbox.path("in/d/owner"), Some(99), None).unwrap();
    sandbox.ok(["sync", "-a", "in/", "out"]);
    assert_eq!((owned(&at("d/owner")).0, owned(&sandbox.path("other")).0), (99, 1234));
    assert_eq!(left_to_rsync(&sandbox.path("in"), &sandbox.path("out")), "");
}

/// What an earlier copy has published without owners is not believed by one that keeps them.
#[test]
fn copy_that_is_taken_up_keeps_what_it_asks_for() {
    let Some(sandbox) = scene() else { return };
    crate::support::wait_until("the files have settled", || {
        let changed = fs::metadata(sandbox.path("in/plain")).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        now > changed.ctime() as u64 + 3
    });
    sandbox.write("in/z/last", tree::bytes(8 << 20, 2));
    let words = ["in/", "out", "--bwlimit=2M", "--block=64K"];
    let running = crate::support::running::Running::start(sandbox.carrack().args(words));
    let are_marked = || sandbox.marked("out").is_some_and(|marker| marker.known_count() >= 5);
    crate::support::wait_until("what is small is there, and marked", are_marked);
    crate::support::process::signal(running.id(), "KILL");
    running.end();
    sandbox.ok(["-a", "in/", "out"]);
    assert_eq!(left_to_rsync(&sandbox.path("in"), &sandbox.path("out")), "");
}

/// A node gives no owners and no set-user-id bits, unless who runs it has said so.
#[test]
fn node_gives_ownership_only_where_that_is_allowed() {
    let Some(sandbox) = scene() else { return };
    let node = Node::start(&sandbox, "served", &[]);
    let ran = sandbox.ok(["-a", "in/", &node.at("to/"), &node.token()]);
    assert!(ran.stderr.contains("not kept: 6 owners"), "{}", ran.stderr);
    assert_eq!(owned(&sandbox.path("served/to/d/sub/both")), (0, 0, 0o755));
    assert_eq!(owned(&sandbox.path("served/to/d/program")), (0, 0, 0o755));
    let refused = sandbox.run(["serve", "--node-only", "--root", "served", "--anonymous", "--allow-ownership"]);
    assert!(refused.code == 2 && refused.stderr.contains("let anybody make programs"), "{}", refused.stderr);
}

/// Owners, groups and permissions that become others on the way are compared as they are to be.
#[test]
fn owners_and_permissions_become_others_on_the_way() {
    let Some(sandbox) = scene() else { return };
    let there = |top: &str, name: &str| owned(&sandbox.path(top).join(name));
    let sandboxed = |words: &[&str]| {
        let again = [words, &["-n", "-i"]].concat();
        sandbox.ok(words.iter().copied());
        assert_eq!(sandbox.ok(again).stdout, "", "{words:?}: nothing is left to be done");
    };
    sandboxed(&["sync", "--chown=4321:8765", "in/", "given"]);
    for name in ["plain", "d", "d/sub/both", "d/link"] {
        let stat = sandbox.path("given").join(name).symlink_metadata().unwrap();
        assert_eq!((stat.uid(), stat.gid()), (4321, 8765), "{name}");
    }
    sandboxed(&["sync", "--chown=:daemon", "in/", "group"]);
    assert_eq!((there("group", "plain").0, there("group", "plain").1), (0, 1));
    // By numbers, ranges, patterns and names; the first that fits.
    let from = fs::symlink_metadata(sandbox.path("in/d/sub/both")).unwrap();
    let map = format!("--usermap={}:77,0-9:daemon,*:88", from.uid());
    sandboxed(&["sync", &map, "in/", "mapped"]);
    assert_eq!((there("mapped", "plain").0, there("mapped", "d/sub/both").0), (1, 77));
    sandboxed(&["sync", "-gp", "--chmod=D2750,Fu+x,Fgo-rwx", "in/", "changed"]);
    assert_eq!((there("changed", "d").2, there("changed", "plain").2), (0o2750, 0o700));
    sandboxed(&["sync", "-a", "--chmod=a+X,go-w", "in/", "more"]);
    // What is nobody's is said before anything is written.
    let refused = sandbox.run(["sync", "--chown=nobody-has-this-name", "in/", "refused"]);
    assert!(refused.code != 0 && refused.stderr.contains("no user nobody-has-this-name"), "{}", refused.stderr);
    assert!(!sandbox.path("refused/plain").exists());
    let twice = sandbox.run(["sync", "--chown=1", "--usermap=*:2", "in/", "refused"]);
    assert_eq!(twice.code, 2, "{}", twice.stderr);
    // Over the network it is the receiving node that knows them, and gives them only where it may.
    for (flags, owner) in [(&["--allow-ownership"][..], 4321), (&[], 0)] {
        let served = if flags.is_empty() { "plain-node" } else { "free-node" };
        let node = Node::start(&sandbox, served, flags);
        sandbox.ok(["sync", "--chown=4321:8765", "--chmod=F600", "in/", &node.at("to/"), &node.token()]);
        let stat = fs::metadata(sandbox.path(served).join("to/plain")).unwrap();
        assert_eq!((stat.uid(), stat.mode() & 0o777), (owner, 0o600));
    }
}

/// Whoever asks once more is told once more: what was not kept is not the same because it is there.
#[test]
fn what_cannot_be_kept_is_told_of_what_is_there_too() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    for (name, owner, group) in [("owner", 1234, 65534), ("group", 65534, 2345), ("own", 65534, 65534)] {
        let path = sandbox.path("in").join(name);
        sandbox.write(Path::new("in").join(name), name);
        chown(&path, Some(owner), Some(group)).unwrap();
    }
    fs::create_dir(sandbox.path("out")).unwrap();
    fs::create_dir(sandbox.path("next")).unwrap();
    for top in ["in", "out", "next"] {
        chown(sandbox.path(top), Some(65534), Some(65534)).unwrap();
    }
    let mut before = None;
    for number in 0..3 {
        let ran = under(&sandbox, &NOBODY, &["sync", "-a", "--strict", "in/", "out"]);
        assert_eq!(ran.code, 23, "{number}: {}", ran.stderr);
        let told = ["1 owner", "1 group"].map(|told| ran.stderr.contains(told));
        assert_eq!(told, [true; 2], "{number}: {}", ran.stderr);
        // Telling it changes nothing.
        let now = ["owner", "group", "own"].map(|name| {
            let stat = fs::metadata(sandbox.path("out").join(name)).unwrap();
            (stat.ino(), stat.ctime(), stat.ctime_nsec())
        });
        assert_eq!(*before.get_or_insert(now), now, "{number}");
    }
    // Nor does it part names of one file.
    for number in 0..2 {
        let words = ["sync", "-a", "--strict", "--link-dest=../out", "in/", "next"];
        assert_eq!(under(&sandbox, &NOBODY, &words).code, 23, "{number}");
        assert_eq!(fs::metadata(sandbox.path("next/own")).unwrap().ino(), before.unwrap()[2].0, "{number}");
    }
    let ran = under(&sandbox, &NOBODY, &["sync", "--strict", "in/", "out"]);
    assert_eq!(ran.code, 0, "nobody has asked for owners: {}", ran.stderr);
}
