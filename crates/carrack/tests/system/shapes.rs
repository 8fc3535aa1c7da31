//! What arrives is what was sent: bytes against `b3sum`, attributes against the source, whatever shape the source has.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use crate::support::node::Node;
use crate::support::{Sandbox, b3sum, mode, same_tree, tree};

const MIB: usize = 1 << 20;

/// A manifest, or the output of `carrack sum`, as pairs of name and digest in the order of names.
fn digests(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| line.split_once("  ").map(|(digest, name)| (name.to_string(), digest.to_string()));
    let mut pairs: Vec<_> = text.lines().filter_map(pair).collect();
    pairs.sort();
    pairs
}

#[test]
fn digests_are_those_of_b3sum_around_every_border_for_any_streams() {
    let sandbox = Sandbox::in_memory();
    let block = 2 * MIB;
    // Up to a mebibyte files travel in bundles, above in blocks.
    let sizes = [0, 1, 4097, MIB - 1, MIB, MIB + 1, block - 1, block, block + 1, 3 * block, 7_654_321];
    let mut expected = Vec::new();
    for size in sizes {
        let path = sandbox.write(format!("files/f{size}"), tree::bytes(size, size as u64));
        expected.push((format!("f{size}"), b3sum(&path)));
    }
    expected.sort();
    let node = Node::start(&sandbox, "root", &[]);
    for (streams, encrypt) in ["1", "2", "7", "16"].iter().flat_map(|streams| [(streams, "tls"), (streams, "none")]) {
        let there = format!("{streams}-{encrypt}");
        let how = ["--block=2M", "--streams", streams, "--encrypt", encrypt, "--manifest=sums"];
        sandbox.ok([&["files/", &node.at(&there), &node.token()][..], &how].concat());
        let manifest = fs::read_to_string(sandbox.path("sums")).unwrap();
        assert_eq!(digests(&manifest), expected, "manifest, {there}");
        for (name, digest) in &expected {
            assert_eq!(&b3sum(&sandbox.path("root").join(&there).join(name)), digest, "{there}/{name}");
        }
        let sums = sandbox.ok(["sum", &node.at(&format!("{there}/")), &node.token()]).stdout;
        let names = expected.iter().map(|(name, digest)| (format!("/{there}/{name}"), digest.clone()));
        let sums: Vec<_> = digests(&sums)
            .into_iter()
            .map(|(name, digest)| (format!("/{}", name.trim_start_matches('/')), digest))
            .collect();
        assert_eq!(sums, names.collect::<Vec<_>>(), "sum, {there}");
    }
}

#[test]
fn streams_sixteen_carry_three_gibibytes() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.ok(["random:3G", &node.at("big"), &node.token(), "--streams=16", "--manifest=sums"]);
    let big = sandbox.path("root/big");
    assert_eq!(fs::metadata(&big).unwrap().len(), 3 << 30);
    let manifest = fs::read_to_string(sandbox.path("sums")).unwrap();
    assert_eq!(digests(&manifest), [("big".to_string(), b3sum(&big))]);
}

/// Runs the program with bytes on its standard input.
fn fed(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = sandbox.carrack();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        crate::support::running::end_of(child)
    });
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn pipes_in_and_out() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let token = node.token();
    // Nothing, less than a block, blocks exactly, and several with a rest.
    for size in [0, 5, MIB, 4 * MIB, 9 * MIB + 4321] {
        let content = tree::bytes(size, 7);
        for encrypt in ["--encrypt=tls", "--encrypt=none"] {
            fed(&sandbox, &["-", &node.at("piped"), &token, "--block=1M", encrypt], &content);
            assert!(fs::read(sandbox.path("root/piped")).unwrap() == content, "to a node, {size}");
            let back = fed(&sandbox, &[&node.at("piped"), "-", &token, "--block=1M", encrypt], b"");
            assert!(back == content, "from a node, {size}");
        }
        fed(&sandbox, &["-", "piped", "--block=1M"], &content);
        assert!(fs::read(sandbox.path("piped")).unwrap() == content, "to a file, {size}");
        assert!(fed(&sandbox, &["piped", "-", "--block=1M"], b"") == content, "from a file, {size}");
        assert!(fed(&sandbox, &["-", "-", "--block=1M"], &content) == content, "through, {size}");
    }
    assert!(sandbox.parts(".").is_empty());
}

/// Ends that wait for a pipe still say that they are there; and a peer that takes nothing for a while, and
/// answers, is no silent one.
#[test]
fn pipe_may_pause_for_longer_than_silence_is_borne() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let mut waiting: Vec<_> = [node.at("piped"), "piped".to_string()]
        .iter()
        .map(|place| {
            let mut command = sandbox.carrack();
            let child = command.args(["-q", "-", place, &node.token()]).stdin(Stdio::piped()).stderr(Stdio::piped());
            child.spawn().unwrap()
        })
        .collect();
    // More than all buffers on the way hold, for readers that read nothing yet; the node stands
    // where a TCP window closes.
    let large = sandbox.write("root/large", tree::bytes(48 * MIB, 5));
    let mut unread: Vec<_> = ["tls", "none"]
        .iter()
        .map(|encrypt| {
            let mut command = sandbox.carrack();
            command.args(["-q", &node.at("large"), "-", &node.token(), "--streams=1", "--encrypt", encrypt]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    std::thread::sleep(carrack_core::tuning::Tuning::DEFAULT.silence + Duration::from_secs(5));
    for child in &mut unread {
        let mut content = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut content).unwrap();
        assert!(content == fs::read(&large).unwrap(), "{} bytes came", content.len());
        assert!(child.wait().unwrap().success());
    }
    for child in &mut waiting {
        let _ = child.stdin.take().unwrap().write_all(b"late");
    }
    for child in waiting {
        let output = crate::support::running::end_of(child);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for place in ["root/piped", "piped"] {
        assert_eq!(fs::read(sandbox.path(place)).unwrap(), b"late");
    }
}

#[test]
fn sources_and_sinks_for_measuring() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.ok(["zero:3M", "zeros"]);
    assert!(fs::read(sandbox.path("zeros")).unwrap() == vec![0; 3 * MIB]);
    sandbox.ok(["zero:0", "none"]);
    assert_eq!(fs::metadata(sandbox.path("none")).unwrap().len(), 0);
    sandbox.ok(["random:3M", &node.at("noise"), &node.token()]);
    sandbox.ok(["random:3M", "noise"]);
    let noise = fs::read(sandbox.path("noise")).unwrap();
    assert!(noise.len() == 3 * MIB && noise == fs::read(sandbox.path("root/noise")).unwrap());
    assert!(noise.chunks(4096).all(|page| page.iter().any(|&byte| byte != page[0])));
    assert!(fed(&sandbox, &["zero:70000", "-"], b"") == vec![0; 70_000]);
    tree::mixed(&sandbox.path("tree"));
    for sink in ["null:", "/dev/null"] {
        sandbox.ok(["tree", sink]);
        sandbox.ok(["tree/blocks", "tree/one", sink]);
        sandbox.ok([&node.at("noise"), sink, &node.token()]);
        sandbox.ok(["random:10M", sink]);
        fed(&sandbox, &["-", sink], &noise);
    }
    let device = fs::symlink_metadata("/dev/null").unwrap();
    assert!(std::os::unix::fs::FileTypeExt::is_char_device(&device.file_type()));
}

#[test]
fn several_sources_and_a_file_under_another_name() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("a", "aaa");
    sandbox.write("x/b", tree::bytes(2 * MIB, 3));
    tree::mixed(&sandbox.path("d"));
    sandbox.write("contents/inner", "c");
    for (place, token, root) in
        [("here".to_string(), "-q".to_string(), "here"), (node.at("there"), node.token(), "root/there")]
    {
        sandbox.ok(["a", "x/b", "d", "contents/", &place, &token]);
        let root = sandbox.path(root);
        assert_eq!(fs::read(root.join("a")).unwrap(), b"aaa");
        same_tree(&sandbox.path("x/b"), &root.join("b"));
        same_tree(&sandbox.path("d"), &root.join("d"));
        assert_eq!(fs::read(root.join("inner")).unwrap(), b"c");
    }
    sandbox.ok(["a", "renamed"]);
    sandbox.ok(["a", &node.at("new/renamed"), &node.token()]);
    sandbox.ok(["x/b", &node.at("new/made/"), &node.token()]);
    assert_eq!(fs::read(sandbox.path("renamed")).unwrap(), b"aaa");
    assert_eq!(fs::read(sandbox.path("root/new/renamed")).unwrap(), b"aaa");
    same_tree(&sandbox.path("x/b"), &sandbox.path("root/new/made/b"));
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn set_time(path: &Path, seconds: u64, nanos: u32) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    File::open(path).unwrap().set_modified(time).unwrap();
}

fn mtime(path: &Path) -> (i64, i64) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.mtime(), found.mtime_nsec())
}

#[test]
fn modes_and_times_are_kept_and_privileges_are_not() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let top = sandbox.path("tree");
    let mut paths = Vec::new();
    for (index, wanted) in [0o600, 0o644, 0o755, 0o444, 0o640].into_iter().enumerate() {
        // Small ones travel in bundles, large ones in blocks.
        for size in [10, MIB + 10] {
            let name = format!("in/file-{wanted:o}-{size}");
            let path = sandbox.write(format!("tree/{name}"), tree::bytes(size, 1));
            set_mode(&path, wanted);
            set_time(&path, 1_000_000_000 + index as u64, 123_456_789);
            paths.push((name, wanted));
        }
    }
    for (name, size) in [("setuid-small", 10), ("setuid-large", MIB + 10)] {
        let path = sandbox.write(format!("tree/{name}"), tree::bytes(size, 1));
        set_mode(&path, 0o6755);
        paths.push((name.to_string(), 0o755));
    }
    std::os::unix::fs::symlink("in", top.join("link")).unwrap();
    fs::create_dir_all(top.join("hollow/within")).unwrap();
    for (name, wanted) in [("hollow/within", 0o711), ("hollow", 0o1777), ("in", 0o750)] {
        set_mode(&top.join(name), wanted);
        set_time(&top.join(name), 900_000_000, 1);
        paths.push((name.to_string(), wanted & 0o777));
    }
    for (place, token, root) in
        [("here".to_string(), "-q".to_string(), "here"), (node.at("there"), node.token(), "root/there")]
    {
        sandbox.ok(["tree/", &place, &token]);
        let root = sandbox.path(root);
        for (name, wanted) in &paths {
            assert_eq!(format!("{:o}", mode(&root.join(name))), format!("{wanted:o}"), "{name:?}");
            assert_eq!(mtime(&root.join(name)), mtime(&top.join(name)), "{name:?}");
        }
        assert_eq!(mtime(&root.join("link")), mtime(&top.join("link")));
        assert!(fs::read_dir(root.join("hollow/within")).unwrap().next().is_none());
    }
}

#[test]
fn reader_of_a_file_that_is_replaced_sees_the_old_or_the_new_whole() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    // One size travels in a bundle, the other in blocks.
    for size in [300_000, 2 * MIB] {
        let contents = [vec![b'a'; size], vec![b'b'; size]];
        for (name, content) in ["a", "b"].iter().zip(&contents) {
            sandbox.write(name, content);
        }
        let target = sandbox.write("root/target", &contents[1]);
        let ended = AtomicBool::new(false);
        let reads = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = [0usize; 2];
                while !ended.load(Ordering::Relaxed) || seen[0] == 0 {
                    let read = fs::read(&target).unwrap();
                    let which = contents.iter().position(|content| *content == read);
                    seen[which.unwrap_or_else(|| panic!("{} bytes, torn", read.len()))] += 1;
                }
                seen
            });
            for round in 0..6 {
                sandbox.ok([["b", "a"][round % 2], &node.at("target"), &node.token()]);
            }
            ended.store(true, Ordering::Relaxed);
            reader.join().unwrap()
        });
        assert!(reads[0] > 0 && reads[1] > 0, "{reads:?}");
    }
}

#[test]
fn existing_files_are_kept_replaced_or_wanted() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let large = MIB + 5;
    for size in [10, large] {
        let (new, old) = (vec![b'n'; size], vec![b'o'; size]);
        for (flag, existing, missing, later) in [
            ("--no-clobber", false, true, false),
            ("--ignore-existing", false, true, false),
            ("--existing", true, false, true),
            ("--update", true, true, false),
        ] {
            let _ = fs::remove_dir_all(sandbox.path("src"));
            let _ = fs::remove_dir_all(sandbox.path("root/dst"));
            for name in ["there", "missing", "later"] {
                set_time(&sandbox.write(format!("src/{name}"), &new), 2_000, 555);
            }
            set_time(&sandbox.write("root/dst/there", &old), 2_000, 444);
            set_time(&sandbox.write("root/dst/later", &old), 2_000, 666);
            std::os::unix::fs::symlink("new", sandbox.path("src/link")).unwrap();
            std::os::unix::fs::symlink("old", sandbox.path("root/dst/link")).unwrap();
            let ran = sandbox.ok(["src/", &node.at("dst"), &node.token(), flag]);
            assert!(ran.stderr.contains(" (content not compared)"), "{flag}: {}", ran.stderr);
            let copied = [existing, missing, later].iter().filter(|is_copied| **is_copied).count();
            assert!(ran.stderr.contains(&format!("verified: {copied} file")), "{flag}: {}", ran.stderr);
            let is_new = |name: &str| fs::read(sandbox.path("root/dst").join(name)).is_ok_and(|read| read == new);
            let found = (is_new("there"), is_new("missing"), is_new("later"));
            assert_eq!(found, (existing, missing, later), "{flag} {size}");
            let link = fs::read_link(sandbox.path("root/dst/link")).unwrap();
            // What a link says has no time: as with rsync, its age counts for nothing.
            let expected = if matches!(flag, "--existing" | "--update") { "new" } else { "old" };
            assert_eq!(link, Path::new(expected), "{flag}");
        }
    }
    assert!(sandbox.parts("root").is_empty());
}

#[test]
fn file_that_says_it_is_empty_and_is_not() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let expected = fs::read("/proc/version").unwrap();
    sandbox.ok(["/proc/version", "version"]);
    sandbox.ok(["/proc/version", &node.at("there/"), &node.token()]);
    assert_eq!(fs::read(sandbox.path("version")).unwrap(), expected);
    assert_eq!(fs::read(sandbox.path("root/there/version")).unwrap(), expected);
}

#[test]
fn holes_are_neither_sent_nor_stored() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let data = tree::bytes(MIB, 11);
    for (name, size) in [("eight-tebibytes", 8 << 40), ("over-four", (4u64 << 30) + (2 << 20) + 1)] {
        let file = File::create(sandbox.path(name)).unwrap();
        file.set_len(size).unwrap();
        // Across the border of two blocks, on both sides of what 32 bits count.
        file.write_all_at(&data, (1 << 30) - 1000).unwrap();
        file.write_all_at(&data, (1 << 32) - 1000).unwrap();
    }
    let listed = sandbox.ok(["ls", "-l", "eight-tebibytes"]).stdout;
    assert!(listed.contains(&(8u64 << 40).to_string()), "{listed}");
    let expected = b3sum(&sandbox.path("over-four"));
    for encrypt in ["tls", "none"] {
        sandbox.ok(["over-four", &node.at("over-four"), &node.token(), "--encrypt", encrypt, "--manifest=sums"]);
        let there = fs::metadata(sandbox.path("root/over-four")).unwrap();
        assert_eq!(there.len(), (4 << 30) + (2 << 20) + 1);
        assert!(there.blocks() * 512 < 64 << 20, "{} bytes are allocated", there.blocks() * 512);
        let manifest = fs::read_to_string(sandbox.path("sums")).unwrap();
        assert_eq!(digests(&manifest), [("over-four".to_string(), expected.clone())]);
    }
    assert_eq!(b3sum(&sandbox.path("root/over-four")), expected);
}
