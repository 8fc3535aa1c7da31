//! Copies that are the same in every way that is asked for: trees in which all differs that a copy may lose, judged by
//! rsync and by a program that shares nothing with this one (`tests/fidelity`).

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use carrack_faults::image::{Image, Kind};

use crate::faults::{NOBODY, open_to_all, under};
use crate::support::node::Node;
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, is_root, tree};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fidelity").join(name)
}

fn run(command: &mut Command) -> Output {
    let ran = command.output().unwrap();
    assert!(ran.stderr.is_empty(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
    ran
}

/// Makes such a tree.
fn make(at: &Path, seed: u64, more: &[&str]) {
    let made = run(Command::new("python3").arg(script("make.py")).arg(at).arg(seed.to_string()).args(more));
    assert!(made.status.success(), "{made:?}");
}

/// In what the judge finds that two trees differ.
pub fn judged(one: &Path, other: &Path, but: &str) -> String {
    let ran = run(Command::new("python3").arg(script("judge.py")).args([one, other]).args(["--but", but]));
    let told = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.success(), told.is_empty(), "{told}");
    told
}

/// What rsync would still do to make one like the other.
fn left_to_rsync(from: &Path, to: &Path) -> String {
    let directory = |path: &Path| format!("{}/", path.display());
    let ran = run(Command::new("rsync")
        .args(["-aHAXS", "--numeric-ids", "--dry-run", "--itemize-changes", "--delete"])
        .args(["--filter=-x trusted.*", "--filter=-x security.selinux"])
        .args([directory(from), directory(to)]));
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

pub fn set(path: &Path, name: &str, value: &[u8]) {
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    let code = "import os,sys; os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))";
    let ran = run(Command::new("python3").args(["-c", code]).arg(path).args([name, &hex]));
    assert!(ran.status.success(), "{ran:?}");
}

fn unset(path: &Path, name: &str) {
    let code = "import os,sys; os.removexattr(sys.argv[1], sys.argv[2])";
    assert!(run(Command::new("python3").args(["-c", code]).arg(path).arg(name)).status.success());
}

/// A list in the kernel's form: the bits of the owner, of a user, the group, the mask and all others.
pub fn list([owner, user, group, mask, others]: [u16; 5], of: u32) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, bits, id) in
        [(1, owner, u32::MAX), (2, user, of), (4, group, u32::MAX), (16, mask, u32::MAX), (32, others, u32::MAX)]
    {
        value.extend_from_slice(&u16::to_le_bytes(tag));
        value.extend_from_slice(&bits.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

pub const ACCESS: &str = "system.posix_acl_access";
pub const DEFAULT: &str = "system.posix_acl_default";

/// Numbers of a summary.
fn numbers(ran: &crate::support::Ran, names: &[&str]) -> Vec<u64> {
    let summary = ran.summary();
    names.iter().map(|name| summary[name].as_u64().unwrap()).collect()
}

/// What the file systems of a way from one to the other keep.
struct Way {
    from: Kind,
    to: Kind,
    longest: &'static str,
    seed: u64,
}

const WAYS: [Way; 3] = [
    Way { from: Kind::Ext4, to: Kind::Ext4, longest: "2500", seed: 1 },
    Way { from: Kind::Ext4, to: Kind::Xfs, longest: "2500", seed: 2 },
    Way { from: Kind::Xfs, to: Kind::Btrfs, longest: "3500", seed: 3 },
];

/// rsync has nothing left to do, the judge finds nothing, and a second run sends and sets nothing: over every link and
/// several file systems.
#[test]
fn torture_tree_is_the_same_over_every_link() {
    if !is_root() {
        return;
    }
    for Way { from, to, longest, seed } in WAYS {
        let sandbox = Sandbox::new();
        let images =
            (Image::new(&sandbox.path(""), "source", from, 512), Image::new(&sandbox.path(""), "disk", to, 512));
        let (Some(source), Some(disk)) = images else { return };
        let tree = source.path().join("tree");
        make(&tree, seed, &["--longest-value", longest, "--years"]);
        let node = Node::start(&sandbox, "disk", &["--allow-ownership"]);
        let here = Node::start(&sandbox, "source", &[]);
        let far = Sshd::start(&sandbox);
        let typed = format!("{}/", tree.display());
        let ways: [(&str, Vec<String>); 5] = [
            ("local", vec![typed.clone(), disk.path().join("local").display().to_string()]),
            ("pushed", vec![typed.clone(), node.at("pushed/"), node.token()]),
            ("pulled", vec![here.at("tree/"), disk.path().join("pulled").display().to_string(), here.token()]),
            ("ssh", vec![far.rsh.clone(), typed.clone(), format!("far:{}/", disk.path().join("ssh").display())]),
            ("third", vec![here.at("tree/"), node.at("third/"), here.token_as("source"), node.token_as("destination")]),
        ];
        for (made, words) in ways {
            let words = || words.iter().map(|word| &word[..]);
            let to = disk.path().join(made);
            let what = format!("{made}, seed {seed}");
            let ran = sandbox.ok(["sync", "-aX", "--trusted"].into_iter().chain(words()));
            assert!(!ran.stderr.contains("not kept"), "{what}: {}", ran.stderr);
            assert_eq!(judged(&tree, &to, ""), "", "{what}");
            assert_eq!(left_to_rsync(&tree, &to), "", "{what}");
            let again = sandbox.ok(["sync", "-aX", "--trusted", "--json"].into_iter().chain(words()));
            assert_eq!(numbers(&again, &["files", "bytes", "attributes_set"]), [0, 0, 0], "{what}");
            let told = sandbox.ok(["sync", "-aX", "--trusted", "-i", "-n"].into_iter().chain(words()));
            assert_eq!(told.stdout, "", "{what}");
            fs::remove_dir_all(&to).unwrap();
        }
    }
}

/// Who is not root gets what rsync gets for them, and all of their own tree.
#[test]
fn torture_tree_is_the_same_for_who_is_not_root() {
    let sandbox = Sandbox::new();
    make(&sandbox.path("in"), 4, &["--plain"]);
    if !is_root() {
        sandbox.ok(["sync", "-aX", "in/", "out"]);
        assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
        return;
    }
    open_to_all(&sandbox);
    let owned = Command::new("chown").args(["-Rh", "65534:65534"]).arg(sandbox.path("in")).status().unwrap();
    fs::create_dir(sandbox.path("theirs")).unwrap();
    chown(sandbox.path("theirs"), Some(65534), Some(65534)).unwrap();
    assert!(owned.success());
    let ran = under(&sandbox, &NOBODY, &["sync", "-aX", "in/", "theirs/out"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("not kept"), "{}", ran.stderr);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("theirs/out"), ""), "");
    let again = under(&sandbox, &NOBODY, &["sync", "-aX", "--json", "in/", "theirs/out"]);
    assert_eq!(numbers(&again, &["files", "attributes_set"]), [0, 0], "{}", again.stderr);
    // Also of one's own file that is read-only, what has changed is set, and what has gone is taken away.
    // With one name alone: a file with several is made anew.
    let alone = (0..400).map(|number| format!("in/wide/f{number}"));
    let alone = alone.map(|name| sandbox.path(&name)).find(|path| path.metadata().unwrap().nlink() == 1).unwrap();
    fs::set_permissions(&alone, Permissions::from_mode(0o444)).unwrap();
    for value in [Some(&b"value"[..]), None] {
        match value {
            Some(value) => set(&alone, "user.late", value),
            None => unset(&alone, "user.late"),
        }
        let ran = under(&sandbox, &NOBODY, &["sync", "-aX", "--json", "in/", "theirs/out"]);
        assert_eq!(numbers(&ran, &["files", "attributes_set"]), [0, 1], "{}", ran.stderr);
        assert_eq!(judged(&sandbox.path("in"), &sandbox.path("theirs/out"), ""), "");
    }
}

/// What is spoilt in a copy, and as what the judge has to find it: in Python, in the copy's directory.
const SPOILT: [(&str, &str); 21] = [
    ("names", "os.remove('names/plain')"),
    ("names", "open('names/more', 'w')"),
    ("kind", "os.remove('sizes/0'); os.mkdir('sizes/0')"),
    ("content", "write('sizes/16383', b'x' * 16383)"),
    ("content", "write('sizes/16384', b'x' * 16383)"),
    ("holes", "write('sparse/s3', open('sparse/s3', 'rb').read())"),
    ("mode", "os.chmod('sizes/65536', 0o601)"),
    ("mode", "os.chmod('modes/d1777', 0o777)"),
    ("owner", "os.chown('wide', 7777, -1)"),
    ("group", "os.chown('links/l0', -1, 7777, follow_symlinks=False)"),
    ("time", "touch('sizes/1')"),
    ("time", "touch('names')"),
    ("link", "os.remove('links/l1'); os.symlink('elsewhere', 'links/l1')"),
    ("acl", "set('sizes/4096', 'system.posix_acl_access', os.getxattr('sizes/511', 'system.posix_acl_access'))"),
    ("acl", "os.removexattr('sizes/4096', 'system.posix_acl_access')"),
    ("default-acl", "os.removexattr('deep', 'system.posix_acl_default')"),
    ("user", "set('sizes/511', 'user.x', b'valuE')"),
    ("user", "set('sizes/511', 'user.y', b'')"),
    ("trusted", "os.removexattr('sizes/511', 'trusted.x')"),
    ("capability", "os.removexattr('sizes/4095', 'security.capability')"),
    ("hard-links", "os.remove('wide/f1-too'); shutil.copy2('wide/f1', 'wide/f1-too')"),
];
const SPOIL: &str = "
import os, shutil, sys
os.chdir(sys.argv[1])
set = os.setxattr
def write(path, content):
    found = os.stat(path)
    open(path, 'wb').write(content)
    os.utime(path, ns=(found.st_mtime_ns, found.st_mtime_ns))
def touch(path):
    now = os.stat(path).st_mtime_ns + 1
    os.utime(path, ns=(now, now))
";

/// The judge finds what is spoilt in a copy, each of it.
#[test]
fn judge_finds_every_spoilt_copy() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(disk) = Image::new(&sandbox.path(""), "disk", Kind::Ext4, 512) else { return };
    let (one, other) = (disk.path().join("one"), disk.path().join("other"));
    make(&one, 5, &[]);
    for (name, user) in [("sizes/4096", 4), ("sizes/511", 0)] {
        set(&one.join(name), ACCESS, &list([6, user, 4, 6, 0], 1000));
    }
    set(&one.join("deep"), DEFAULT, &list([7, 4, 4, 7, 0], 1000));
    set(&one.join("sizes/511"), "user.x", b"value");
    set(&one.join("sizes/511"), "trusted.x", b"value");
    set(&one.join("sizes/4095"), "security.capability", &[&[1, 0, 0, 2, 1][..], &[0; 15]].concat());
    fs::hard_link(one.join("wide/f1"), one.join("wide/f1-too")).unwrap();
    for (number, (kind, spoil)) in SPOILT.iter().enumerate() {
        let _ = fs::remove_dir_all(&other);
        let copied = Command::new("cp").args(["-a", "--sparse=auto"]).args([&one, &other]).status().unwrap();
        assert!(copied.success());
        assert_eq!(judged(&one, &other, ""), "", "before {number}");
        let spoilt = run(Command::new("python3").args(["-c", &format!("{SPOIL}{spoil}")]).arg(&other));
        assert!(spoilt.status.success(), "{spoil}");
        let found = judged(&one, &other, "");
        assert!(found.lines().any(|line| line.starts_with(&format!("{kind}: "))), "{number}, {kind}: {found}");
    }
}

/// An attribute, and how a file or a directory gets it in one of several states.
type Change = (&'static str, fn(&Path, u8));
fn none(_: &Path, _: u8) {}
const CHANGES: [Change; 6] = [
    ("nothing", none),
    ("acl", |path, state| set(path, ACCESS, &list([6, state.into(), 4, 7, 0], 1000))),
    ("user", |path, state| set(path, "user.x", &[state; 40])),
    ("trusted", |path, state| set(path, "trusted.x", &[state; 40])),
    ("capability", |path, state| {
        let value = [&[1, 0, 0, 2, state][..], &[0; 15]].concat();
        set(path, "security.capability", &value);
    }),
    ("default", |path, state| {
        if path.is_dir() {
            set(path, DEFAULT, &list([7, state.into(), 4, 7, 0], 1000));
        }
    }),
];

/// What a source loses the copy loses, and what it never had: each attribute, in each state of the destination.
#[test]
fn attributes_are_set_changed_and_taken_away() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let at = |place: &str, name: &str| sandbox.path(place).join(name);
    let write = |path: &Path, size: usize| {
        fs::write(path, tree::bytes(size, 3)).unwrap();
        fs::File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    for place in ["in", "out"] {
        fs::create_dir(sandbox.path(place)).unwrap();
        for (one, _) in CHANGES {
            for (other, _) in CHANGES {
                for state in [1, 2] {
                    let name = format!("{one}-{other}-{state}");
                    write(&at(place, &name), 10);
                    write(&at(place, &format!("{name}-large")), 3 << 20);
                    fs::create_dir(at(place, &format!("{name}-directory"))).unwrap();
                }
            }
        }
    }
    for (one, wanted) in CHANGES {
        for (other, there) in CHANGES {
            for state in [1, 2] {
                for what in ["", "-large", "-directory"] {
                    if (one == "capability" || other == "capability") && what == "-directory" {
                        continue;
                    }
                    let name = format!("{one}-{other}-{state}{what}");
                    wanted(&at("in", &name), 1);
                    there(&at("out", &name), state);
                }
            }
        }
    }
    let told = sandbox.ok(["sync", "-aX", "--trusted", "-n", "-i", "in/", "out"]);
    let ran = sandbox.ok(["sync", "-aX", "--trusted", "-i", "in/", "out"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    assert!(!ran.stderr.contains("not kept"), "{}", ran.stderr);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&told.stdout), sorted(&ran.stdout), "a dry run tells what is done");
    // Only a program that nobody has looked at is sent.
    for line in ran.stdout.lines().filter(|line| line.starts_with('>')) {
        assert!(line.contains("capability"), "{line}");
    }
    let again = sandbox.ok(["sync", "-aX", "--trusted", "--json", "in/", "out"]);
    assert_eq!(numbers(&again, &["files", "bytes", "attributes_set"]), [0, 0, 0]);
    // What is not asked for stays as it is, and is counted.
    let plain = sandbox.ok(["sync", "in/", "plain"]);
    assert!(plain.stderr.contains(" ACLs, capabilities of "), "{}", plain.stderr);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("plain"), "acl,default-acl,user,trusted,capability,mode"), "");
}

/// A list that new files inherit gives nobody anything that the source does not, at no moment.
#[test]
fn nobody_reads_new_content_whom_the_source_denies_it() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    for number in 0..60 {
        let large = number % 10 == 0;
        let path = sandbox.write(format!("in/d/f{number}"), tree::bytes(if large { 4 << 20 } else { 5000 }, number));
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        if number % 2 == 0 {
            // All others may, but not this one.
            set(&path, ACCESS, &list([6, 0, 4, 4, 4], 65534));
        }
    }
    let inherited = list([7, 7, 7, 7, 7], 65534);
    fs::create_dir_all(sandbox.path("out/d")).unwrap();
    fs::set_permissions(sandbox.path("out"), Permissions::from_mode(0o755)).unwrap();
    for directory in ["out", "out/d"] {
        set(&sandbox.path(directory), DEFAULT, &inherited);
    }
    let (over, reads, opened) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let out = sandbox.path("out/d");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let code = "
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
tries = opened = 0
while not os.path.exists(sys.argv[2]):
    try:
        names = os.listdir(sys.argv[1])
    except OSError:
        names = []
    for name in names:
        tries += 1
        try:
            os.close(os.open(os.path.join(sys.argv[1], name), os.O_RDONLY))
            opened += 1
        except OSError:
            pass
print(tries, opened)
";
            let ran = run(Command::new("python3").args(["-c", code]).arg(&out).arg(sandbox.path("over")));
            let told = String::from_utf8(ran.stdout).unwrap();
            let mut numbers = told.split_whitespace().map(|number| number.parse().unwrap());
            reads.store(numbers.next().unwrap(), Ordering::Relaxed);
            opened.store(numbers.next().unwrap(), Ordering::Relaxed);
            over.store(true, Ordering::Relaxed);
        });
        for _ in 0..5 {
            sandbox.ok(["sync", "-aX", "in/", "out"]);
            for entry in fs::read_dir(&out).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
            set(&out, DEFAULT, &inherited);
        }
        sandbox.ok(["sync", "-aX", "--top-attributes", "in/", "out"]);
        fs::write(sandbox.path("over"), "").unwrap();
    });
    assert!(over.load(Ordering::Relaxed) && reads.load(Ordering::Relaxed) > 100, "the watcher has looked");
    assert_eq!(opened.load(Ordering::Relaxed), 0, "of {} tries", reads.load(Ordering::Relaxed));
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), "names"), "");
}

/// What the destination's file system has no room for is told, by item, and costs neither the item nor its other
/// attributes; the next run sends nothing.
#[test]
fn attributes_that_do_not_fit_are_told_and_cost_nothing_else() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let images = (
        Image::new(&sandbox.path(""), "source", Kind::Xfs, 512),
        Image::new(&sandbox.path(""), "disk", Kind::Ext4, 64),
    );
    let (Some(source), Some(disk)) = images else { return };
    let tree = source.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["small", "large", "directory"] {
        let path = tree.join(name);
        match name {
            "directory" => fs::create_dir(&path).unwrap(),
            "large" => fs::write(&path, tree::bytes(3 << 20, 1)).unwrap(),
            _ => fs::write(&path, "small").unwrap(),
        }
        for (value, length) in [("user.a", 20), ("user.long", 30_000), ("user.longer", 60_000), ("user.z", 20)] {
            set_long(&path, value, length);
        }
    }
    let words = [format!("{}/", tree.display()), disk.path().join("out").display().to_string()];
    let words = || words.iter().map(|word| &word[..]);
    let ran = sandbox.ok(["sync", "-aX"].into_iter().chain(words()));
    assert!(ran.stderr.contains("not kept: extended attributes of 3 items"), "{}", ran.stderr);
    for name in ["small", "large", "directory"] {
        let code = "import os,sys; print(sorted(os.listxattr(sys.argv[1])))";
        let found = run(Command::new("python3").args(["-c", code]).arg(disk.path().join("out").join(name)));
        assert_eq!(String::from_utf8(found.stdout).unwrap(), "['user.a', 'user.z']\n", "{name}");
    }
    let again = sandbox.ok(["sync", "-aX", "--json"].into_iter().chain(words()));
    assert_eq!(numbers(&again, &["files", "bytes", "attributes_set"]), [0, 0, 0]);
}

fn set_long(path: &Path, name: &str, length: usize) {
    let code = "import os,sys; os.setxattr(sys.argv[1], sys.argv[2], b'x' * int(sys.argv[3]))";
    let ran = run(Command::new("python3").args(["-c", code]).arg(path).args([name, &length.to_string()]));
    assert!(ran.status.success(), "{ran:?}");
}

pub struct Unmounted<'a>(pub &'a Path);

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// A file system that has no lists gets permissions that give nobody more; nothing is sent or set again and again.
#[test]
fn permissions_stand_in_for_a_list_that_cannot_be_kept() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    // It has no extended attributes of any kind.
    let disk = sandbox.path("disk");
    fs::create_dir(&disk).unwrap();
    assert!(Command::new("mount").args(["-t", "ramfs", "none"]).arg(&disk).status().unwrap().success());
    let _unmounted = Unmounted(&disk);
    for name in ["in/denied", "in/more"] {
        sandbox.write(name, "x");
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(0o644)).unwrap();
    }
    set(&sandbox.path("in/denied"), ACCESS, &list([6, 0, 4, 4, 4], 65534));
    set(&sandbox.path("in/more"), ACCESS, &list([6, 7, 4, 7, 4], 65534));
    let out = disk.join("out");
    let to = out.display().to_string();
    let ran = sandbox.ok(["sync", "-A", "in/", &to]);
    let mode = |name: &str| fs::metadata(out.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("denied"), mode("more")), (0o600, 0o644), "{}", ran.stderr);
    assert!(ran.stderr.contains("not kept: 2 ACLs"), "{}", ran.stderr);
    let told = sandbox.ok(["sync", "-A", "-n", "-i", "in/", &to]);
    assert_eq!(told.stdout, "");
    let again = sandbox.ok(["sync", "-A", "--json", "in/", &to]);
    assert_eq!(numbers(&again, &["files", "bytes", "attributes_set"]), [0, 0, 0]);
}

/// What has been renamed with all that it has gets its new name, and nothing is sent of it.
#[test]
fn renamed_files_keep_what_they_have() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    for (name, size) in [("small", 5000), ("large", 3 << 20)] {
        let path = sandbox.write(format!("in/old/{name}"), tree::bytes(size, 1));
        set(&path, ACCESS, &list([6, 4, 4, 6, 0], 1000));
        set(&path, "user.x", b"value");
    }
    let words = ["sync", "-aX", "--delete", "--detect-renames", "--json", "in/", "out"];
    sandbox.ok(words);
    fs::rename(sandbox.path("in/old"), sandbox.path("in/new")).unwrap();
    let ran = sandbox.ok(words);
    assert_eq!(numbers(&ran, &["files", "files_renamed", "attributes_set"]), [0, 2, 0], "{}", ran.stderr);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
    // What has changed besides comes with it.
    fs::rename(sandbox.path("in/new"), sandbox.path("in/newer")).unwrap();
    set(&sandbox.path("in/newer/large"), "user.x", b"other");
    unset(&sandbox.path("in/newer/small"), "user.x");
    let ran = sandbox.ok(words);
    assert_eq!(numbers(&ran, &["files", "files_copied_there"]), [0, 2], "{}", ran.stderr);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "");
}

/// A file of a reference directory is linked only if it has all that the source has; and of what nobody has read no
/// program is made that has rights.
#[test]
fn reference_directories_have_what_is_kept_or_are_not_linked() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    for name in ["same", "list", "value", "program"] {
        sandbox.write(format!("in/{name}"), tree::bytes(5000, 1));
    }
    set(&sandbox.path("in/same"), ACCESS, &list([6, 4, 4, 6, 0], 1000));
    set(&sandbox.path("in/same"), "user.x", b"value");
    sandbox.ok(["sync", "-aX", "in/", "first"]);
    set(&sandbox.path("in/list"), ACCESS, &list([6, 4, 4, 4, 4], 1000));
    set(&sandbox.path("in/value"), "user.x", b"value");
    set(&sandbox.path("in/program"), "security.capability", &[&[1, 0, 0, 2, 1][..], &[0; 15]].concat());
    let time = fs::metadata(sandbox.path("first/program")).unwrap().modified().unwrap();
    fs::write(sandbox.path("first/program"), vec![7; 5000]).unwrap();
    fs::File::options().write(true).open(sandbox.path("first/program")).unwrap().set_modified(time).unwrap();
    let ran = sandbox.ok(["sync", "-aX", "--json", "--link-dest=../first", "in/", "second"]);
    assert_eq!(numbers(&ran, &["files", "files_linked", "files_copied_there"]), [1, 1, 2], "{}", ran.stderr);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("second"), "hard-links"), "");
}

/// Values that are too many to travel stay where they are, at either side.
#[test]
fn values_that_do_not_travel_are_not_taken_away() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(disk) = Image::new(&sandbox.path(""), "disk", Kind::Xfs, 512) else { return };
    let (one, other) = (disk.path().join("one"), disk.path().join("other"));
    fs::create_dir(&one).unwrap();
    fs::write(one.join("f"), "content").unwrap();
    for name in ["user.a", "user.b"] {
        set_long(&one.join("f"), name, 40_000);
    }
    assert!(Command::new("cp").arg("-a").args([&one, &other]).status().unwrap().success());
    set(&one.join("f"), "user.c", b"new");
    let words = [format!("{}/", one.display()), other.display().to_string()];
    let ran = sandbox.ok(["sync", "-aX"].into_iter().chain(words.iter().map(|word| &word[..])));
    assert_eq!(judged(&one, &other, ""), "", "{}", ran.stderr);
    assert!(ran.stderr.contains("not kept: extended attributes of 1 item"), "{}", ran.stderr);
}

/// Files that are followed as they grow, and those that links lead to, have theirs, too.
#[test]
fn followed_files_have_their_lists_and_values() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    for (name, size) in [("in/small", 100), ("in/large", 3 << 20), ("beside/f", 100)] {
        let path = sandbox.write(name, tree::bytes(size, 1));
        set(&path, ACCESS, &list([6, 4, 0, 6, 0], 1000));
        set(&path, "user.x", b"value");
    }
    let ran = sandbox.ok(["-aX", "--growing=follow", "--growing-idle=1s", "in/", "out"]);
    assert_eq!(judged(&sandbox.path("in"), &sandbox.path("out"), ""), "", "{}", ran.stderr);
    fs::create_dir(sandbox.path("links")).unwrap();
    std::os::unix::fs::symlink("../beside", sandbox.path("links/d")).unwrap();
    std::os::unix::fs::symlink("../beside/f", sandbox.path("links/l")).unwrap();
    sandbox.ok(["-aXL", "links/", "led"]);
    assert_eq!(judged(&sandbox.path("beside"), &sandbox.path("led/d"), ""), "");
    sandbox.ok(["-aX", "beside/f", "alone"]);
    fs::create_dir(sandbox.path("alone-in")).unwrap();
    fs::rename(sandbox.path("alone"), sandbox.path("alone-in/f")).unwrap();
    assert_eq!(judged(&sandbox.path("beside"), &sandbox.path("alone-in"), "time"), "");
}

/// Who cannot read what is to be kept copies nothing as if it were not there.
#[test]
fn attributes_of_root_are_refused_to_everybody_else() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let file = sandbox.write("in/f", "content");
    set(&file, "trusted.x", b"value");
    open_to_all(&sandbox);
    fs::create_dir(sandbox.path("theirs")).unwrap();
    chown(sandbox.path("theirs"), Some(65534), Some(65534)).unwrap();
    under(&sandbox, &NOBODY, &["sync", "--trusted", "in/", "theirs/out"])
        .failed_with(11, &["source", "of the kind trusted", "copy without them"]);
    let ran = under(&sandbox, &NOBODY, &["sync", "-X", "in/", "theirs/out"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
