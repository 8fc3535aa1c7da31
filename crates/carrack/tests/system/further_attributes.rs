//! Access times, labels of SELinux, access control lists of NFS version 4: what few ask for.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use carrack_faults::fuse::Features;

use crate::disk::faulty;
use crate::fidelity::{ACCESS, list, set};
use crate::support::node::Node;
use crate::support::{Sandbox, is_root, tree};

fn accessed(path: &Path) -> (i64, i64) {
    let stat = path.symlink_metadata().unwrap();
    (stat.atime(), stat.atime_nsec())
}

#[test]
fn access_times_are_kept_and_reading_leaves_them_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("in/small", tree::bytes(3000, 1));
    sandbox.write("in/large", tree::bytes(3 << 20, 2));
    symlink("small", sandbox.path("in/link")).unwrap();
    for (name, time) in
        [("small", "2001-02-03 04:05:06.789"), ("large", "1969-01-02 03:04:05.5"), ("link", "2030-01-01")]
    {
        let set = Command::new("touch").args(["-h", "-a", "-d", time]).arg(sandbox.path("in").join(name)).status();
        assert!(set.unwrap().success());
    }
    let names = ["small", "large", "link"];
    let of = |top: &str| names.map(|name| accessed(&sandbox.path(top).join(name)));
    let had = of("in");
    for (number, flags) in [&["-U"][..], &["-aX", "--atimes"], &["-U", "--verify=disk"], &["-U", "--digest=xxh128"]]
        .into_iter()
        .enumerate()
    {
        let to = format!("out{number}");
        let words = [&["sync"], flags, &["in/", &to]].concat();
        let ran = sandbox.ok(words.iter().copied());
        assert_eq!((of(&to), of("in")), (had, had), "{flags:?}");
        assert!(!ran.stderr.contains("not kept"), "{}", ran.stderr);
        // Alone they are no difference.
        let touched =
            Command::new("touch").args(["-a", "-d", "2020-01-01"]).arg(sandbox.path(&to).join("small")).status();
        assert!(touched.unwrap().success());
        assert_eq!(sandbox.ok([&words[..], &["-i"]].concat()).stdout, "", "{flags:?}");
    }
    // Nobody has asked: a copy has been read when it was made.
    sandbox.ok(["sync", "in/", "plain"]);
    assert_ne!(accessed(&sandbox.path("plain/small")), had[0]);
}

/// What chattr sets is not kept, which is said.
#[test]
fn inode_flags_are_counted() {
    let sandbox = Sandbox::new();
    sandbox.write("in/f", "content");
    sandbox.write("in/g", "content");
    if !Command::new("chattr").arg("+d").arg(sandbox.path("in/f")).status().is_ok_and(|ran| ran.success()) {
        assert!(!is_root(), "this file system has such flags");
        return;
    }
    let ran = sandbox.ok(["-a", "in/", "out"]);
    assert!(ran.stderr.contains("not kept: inode flags of 1 item; first f"), "{}", ran.stderr);
}

/// This kernel has no SELinux: here a label is an attribute that root sets as it likes.
#[test]
fn labels_of_selinux_are_kept_where_that_is_asked_for_and_never_taken_away() {
    const LABEL: &str = "security.selinux";
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("in/labelled", "content");
    sandbox.write("in/plain", "content");
    fs::create_dir_all(sandbox.path("in/dir")).unwrap();
    fs::create_dir_all(sandbox.path("served")).unwrap();
    let of = |path: &str| value(&sandbox.path(path), LABEL);
    let label = |path: &str, label: &str| set(&sandbox.path(path), LABEL, label.as_bytes());
    label("in/labelled", "system_u:object_r:etc_t:s0");
    label("in/dir", "system_u:object_r:var_t:s0");
    let node = Node::start(&sandbox, "served", &["--allow-ownership"]);
    let other = Node::start(&sandbox, "served", &[]);
    for (place, at, more) in
        [("out".to_owned(), "out", "--retries=0".to_owned()), (node.at("a"), "served/a", node.token())]
    {
        // Unasked, even with all others: the destination's policy rules, and nothing is counted as lost.
        let ran = sandbox.ok(["sync", "-aX", "--trusted", "--strict", "in/", &place, &more]);
        assert!(of(&format!("{at}/labelled")).is_none(), "{}", ran.stderr);
        sandbox.ok(["sync", "--selinux", "--strict", "in/", &place, &more]);
        for name in ["labelled", "dir", "plain"] {
            assert_eq!(of(&format!("{at}/{name}")), of(&format!("in/{name}")), "{at}/{name}");
        }
        // One that only the destination has is its own; another one is a difference.
        label(&format!("{at}/plain"), "mine");
        assert_eq!(sandbox.ok(["sync", "--selinux", "-i", "in/", &place, &more]).stdout, "");
        label(&format!("{at}/labelled"), "mine");
        sandbox.run(["check", "--selinux", "--exclude=plain", "in", &place, &more]).failed_with(27, &["1 different"]);
        let ran = sandbox.ok(["sync", "--selinux", "-v", "in/", &place, &more]);
        assert_eq!(of(&format!("{at}/labelled")), of("in/labelled"), "{}", ran.stderr);
        assert!(of(&format!("{at}/plain")).is_some());
    }
    // A node sets them only where it may set owners.
    let ran = sandbox.run(["copy", "--selinux", "--strict", "in/", &other.at("b"), &other.token()]);
    assert!(ran.code == 23 && ran.stderr.contains("not kept: extended attributes of 2 items"), "{}", ran.stderr);
}

const LIST: &str = "system.nfs4_acl";

/// One entry: its type, its flags, and whom it is about.
fn nfs4(kind: u32, flags: u32, who: &str) -> Vec<u8> {
    let mut list = Vec::new();
    [1, kind, flags, 0x16_00a9, who.len() as u32].iter().for_each(|number: &u32| list.extend(number.to_be_bytes()));
    list.extend_from_slice(who.as_bytes());
    list.resize(list.len().next_multiple_of(4), 0);
    list
}

fn read(path: &Path) -> String {
    value(path, LIST).unwrap()
}

/// The value of an extended attribute in hexadecimal digits; none where there is no such attribute.
fn value(path: &Path, name: &str) -> Option<String> {
    let code = "import os,sys; sys.stdout.write(os.getxattr(sys.argv[1], sys.argv[2]).hex())";
    let ran = Command::new("python3").args(["-c", code]).arg(path).arg(name).output().unwrap();
    ran.status.success().then(|| String::from_utf8(ran.stdout).unwrap())
}

/// Lists of NFS version 4 are kept between two such file systems, set and taken away; elsewhere they are counted, and
/// nobody may do more than they let them.
#[test]
fn lists_of_nfs_version_4_are_kept_where_both_sides_have_them() {
    let sandbox = Sandbox::new();
    let features = || Features { nfs4_lists: true, ..Features::default() };
    let Some(from) = faulty(&sandbox, "from", features()) else { return };
    let Some(to) = faulty(&sandbox, "to", features()) else { return };
    let at = |name: &str| from.path().join("in").join(name);
    fs::create_dir_all(at("d")).unwrap();
    for name in ["plain", "named", "denied", "d/below"] {
        fs::write(at(name), tree::bytes(3000, 3)).unwrap();
    }
    fs::write(at("large"), tree::bytes(2 << 20, 4)).unwrap();
    set(&at("named"), LIST, &nfs4(0, 0, "ann@example.org"));
    set(&at("large"), LIST, &nfs4(0, 0, "a@b"));
    set(&at("denied"), LIST, &nfs4(1, 0, "bob@example.org"));
    set(&at("d"), LIST, &nfs4(0, 0x3, "staff@example.org"));
    let names = ["plain", "named", "denied", "d", "d/below", "large"];
    let words = ["sync", "-A", "from/in/", "to/out"];
    let check = |what: &str| {
        sandbox.ok(words);
        for name in names {
            assert_eq!(read(&to.path().join("out").join(name)), read(&at(name)), "{what}: {name}");
        }
        assert_eq!(sandbox.ok([&words[..], &["-n", "-i"]].concat()).stdout, "", "{what}: nothing is left");
    };
    check("all of it");
    set(&at("plain"), LIST, &nfs4(0, 0, "cid@example.org"));
    check("given to what had none");
    set(&at("named"), LIST, &nfs4(0, 0, "dan@example.org"));
    check("another");
    fs::write(to.path().join("out/d/new"), "in the way").unwrap();
    fs::write(at("d/new"), "what comes").unwrap();
    for name in ["named", "d/new"] {
        fs::set_permissions(at(name), fs::metadata(at(name)).unwrap().permissions()).unwrap();
    }
    let ran = sandbox.ok(words);
    assert!(!ran.stderr.contains("not kept"), "{}", ran.stderr);
    // Taken away it says what the permissions say, and so does what was inherited.
    for name in ["named", "d/new"] {
        let list = read(&to.path().join("out").join(name));
        assert!(!list.contains(&hex("example.org")), "{name}: {list}");
    }
    // What nobody has asked for is counted. Elsewhere there are none, and nobody gets more than they let them.
    let plain = sandbox.ok(["sync", "from/in/", "to/plain"]);
    assert!(plain.stderr.contains("not kept: 4 NFS version 4 ACLs"), "{}", plain.stderr);
    let elsewhere = sandbox.ok(["sync", "-A", "from/in/", "elsewhere"]);
    assert!(elsewhere.stderr.contains("not kept: 4 NFS version 4 ACLs"), "{}", elsewhere.stderr);
    let mode = |name: &str| fs::metadata(sandbox.path("elsewhere").join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("denied"), mode("plain"), mode("named")), (0o600, 0o600, 0o644));
    assert_eq!(sandbox.ok(["sync", "-A", "-n", "-i", "from/in/", "elsewhere"]).stdout, "");
    if is_root() {
        // And the other way: a POSIX list is not one of these.
        sandbox.write("posix/f", "content");
        set(&sandbox.path("posix/f"), ACCESS, &list([6, 0, 4, 4, 4], 4321));
        let ran = sandbox.ok(["sync", "-A", "posix/", "to/posix"]);
        assert!(ran.stderr.contains("not kept: 1 ACL"), "{}", ran.stderr);
        assert_eq!(fs::metadata(to.path().join("posix/f")).unwrap().mode() & 0o077, 0);
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
