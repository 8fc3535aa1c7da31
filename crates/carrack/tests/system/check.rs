//! `check`: two trees compared where they are. All that was planted is found, over each link, and nothing else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use carrack_faults::proxy::Proxy;
use data_encoding::BASE64;
use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, same_tree, tool, tree, wait_until};

const DIFFERENCES: i32 = 27;

/// A sign and the words behind it, by path.
type Found = BTreeMap<Vec<u8>, (char, String)>;

/// Compares, and tells what was found.
fn check(sandbox: &Sandbox, words: &[&str]) -> (Found, Ran) {
    let ran = sandbox.run(["check", "--json"].iter().chain(words));
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let differences = lines.filter(|line| line["type"] == "difference").map(|line| {
        let encoded = || BASE64.decode(line["path_b64"].as_str().unwrap().as_bytes()).unwrap();
        let path = line["path"].as_str().map_or_else(encoded, |path| path.as_bytes().to_vec());
        let words = line["differs"].as_array().into_iter().flatten().map(|word| word.as_str().unwrap());
        let sign = line["sign"].as_str().unwrap().chars().next().unwrap();
        (path, (sign, words.collect::<Vec<_>>().join(" ")))
    });
    (differences.collect(), ran)
}

/// Gives a file other content, and the time that it had.
fn alter(path: &Path, change: impl FnOnce(&Path)) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    change(path);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(modified)).unwrap();
}

/// What was planted at a path: the sign, and in what it differs by time, and by content.
type Planted = (&'static [u8], char, &'static str, &'static str);

/// What [`plant`] plants in each of its directories.
const PLANTED: [Planted; 24] = [
    (b"bytes", '*', "", "content"),
    (b"short", '*', "size", "size"),
    (b"long", '*', "size", "size"),
    (b"time", '*', "time", ""),
    (b"new\nline", '*', "time", ""),
    (b"\xffname", '*', "time", ""),
    (b"mode", '*', "mode", "mode"),
    (b"to-dir", '*', "type", "type"),
    (b"to-dir/inside", '-', "", ""),
    (b"to-link", '*', "type", "type"),
    (b"to-fifo", '*', "type", "type"),
    (b"from-link", '*', "type", "type"),
    (b"fifo", '*', "device", "device"),
    (b"link", '*', "target", "target"),
    (b"gone", '+', "", ""),
    (b"Case", '+', "", ""),
    (b"case", '-', "", ""),
    (b"empty-dir", '+', "", ""),
    (b"gone-dir", '+', "", ""),
    (b"gone-dir/below", '+', "", ""),
    (b"gone-dir/below/file", '+', "", ""),
    (b"extra-dir", '-', "", ""),
    (b"extra-dir/file", '-', "", ""),
    (b"extra", '-', "", ""),
];

/// Where the differences are, below both trees.
fn places(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("p{number}"))
}

/// Two trees of so many files below `one` and `root/two`, and in so many directories differences of many kinds.
fn plant(sandbox: &Sandbox, files: usize, count: usize) {
    let one = sandbox.path("one");
    tree::mixed(&one);
    tree::many(&one.join("many"), files, 200);
    sandbox.write("one/skip/file", "left out");
    for place in places(count) {
        plant_source(sandbox, &one.join(place));
    }
    fs::create_dir(sandbox.path("root")).unwrap();
    tool(Command::new("cp").args(["-a", "--sparse=always"]).arg(&one).arg(sandbox.path("root/two")));
    for place in places(count) {
        plant_destination(&sandbox.path("root/two").join(&place), &one.join(place));
    }
    fs::write(sandbox.path("root/two/skip/other"), "left out, too").unwrap();
}

fn plant_source(sandbox: &Sandbox, place: &Path) {
    for name in ["bytes", "short", "long", "time", "mode", "to-dir", "to-link", "to-fifo", "gone", "Case", "new\nline"]
    {
        sandbox.write(place.join(name), format!("{name} as it was"));
    }
    fs::write(place.join(OsStr::from_bytes(b"\xffname")), "not UTF-8").unwrap();
    symlink("bytes", place.join("link")).unwrap();
    symlink("bytes", place.join("from-link")).unwrap();
    fs::create_dir_all(place.join("empty-dir")).unwrap();
    fs::create_dir_all(place.join("gone-dir/below")).unwrap();
    sandbox.write(place.join("gone-dir/below/file"), "gone, too");
    tool(Command::new("mkfifo").arg(place.join("fifo")).arg(place.join("same-fifo")));
    sandbox.write(place.join("linked"), "one of two names");
    fs::hard_link(place.join("linked"), place.join("linked-too")).unwrap();
    sandbox.write(place.join("sparse"), vec![0; 300_000]);
}

fn plant_destination(place: &Path, source: &Path) {
    let at = |name: &str| place.join(name);
    alter(&at("bytes"), |path| fs::write(path, "bytes as it wes").unwrap());
    alter(&at("short"), |path| fs::write(path, "short").unwrap());
    alter(&at("long"), |path| fs::write(path, "long as it was, and more").unwrap());
    for name in [OsStr::new("time"), OsStr::new("new\nline"), OsStr::from_bytes(b"\xffname")] {
        let file = File::open(place.join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
    fs::set_permissions(at("mode"), Permissions::from_mode(0o600)).unwrap();
    for name in ["to-dir", "to-link", "to-fifo", "from-link", "gone", "Case", "fifo", "linked-too", "link"] {
        fs::remove_file(at(name)).unwrap();
    }
    fs::create_dir(at("to-dir")).unwrap();
    fs::write(at("to-dir/inside"), "").unwrap();
    symlink("bytes", at("to-link")).unwrap();
    tool(Command::new("mkfifo").arg(at("to-fifo")));
    fs::write(at("from-link"), "bytes").unwrap();
    fs::write(at("case"), "Case as it was").unwrap();
    drop(UnixListener::bind(at("fifo")).unwrap());
    fs::set_permissions(at("fifo"), fs::metadata(source.join("fifo")).unwrap().permissions()).unwrap();
    tool(Command::new("cp").arg("-a").arg(at("linked")).arg(at("linked-too")));
    symlink("short", at("link")).unwrap();
    fs::remove_dir(at("empty-dir")).unwrap();
    fs::remove_dir_all(at("gone-dir")).unwrap();
    fs::create_dir(at("extra-dir")).unwrap();
    fs::write(at("extra-dir/file"), "").unwrap();
    fs::write(at("extra"), "").unwrap();
    fs::write(at(".bytes.carrack-0a1b2c3d.part"), "what a copy has left").unwrap();
}

/// What a comparison has to find of what was planted: what only one side has, it finds in any case.
fn expected(count: usize, by_content: bool) -> Found {
    let words = |place: &str, &(path, sign, by_time, content): &Planted| {
        ([place.as_bytes(), b"/", path].concat(), (sign, if by_content { content } else { by_time }.to_owned()))
    };
    let all = places(count).flat_map(|place| PLANTED.map(|planted| words(&place, &planted)));
    all.filter(|(_, (sign, words))| *sign != '*' || !words.is_empty()).collect()
}

/// That all that was planted is found, and nothing else, by time and by content.
fn find_planted(sandbox: &Sandbox, count: usize, words: &[&str]) {
    for by_content in [false, true] {
        let flags: &[&str] = if by_content { &["-pc", "--exclude=/skip"] } else { &["-p", "--exclude=/skip"] };
        let (found, ran) = check(sandbox, &[words, flags].concat());
        assert!(found == expected(count, by_content), "{words:?} {flags:?}: {found:?} {}", ran.stderr);
        assert_eq!(ran.code, DIFFERENCES, "{}", ran.stderr);
        let (summary, signs) = (ran.summary(), |sign| found.values().filter(|(of, _)| *of == sign).count());
        let counts = [('+', "only_source"), ('-', "only_destination"), ('*', "different")];
        counts.into_iter().for_each(|(sign, key)| assert_eq!(summary[key], signs(sign), "{key}"));
        assert_eq!((&summary["verb"], &summary["failed"]), (&"check".into(), &0.into()));
    }
}

#[test]
fn check_finds_all_that_was_planted_and_invents_nothing() {
    let sandbox = Sandbox::in_memory();
    plant(&sandbox, 2000, 2);
    find_planted(&sandbox, 2, &["one", "root/two"]);

    let node = Node::start(&sandbox, "root", &[]);
    find_planted(&sandbox, 2, &["one", &node.at("two"), &node.token()]);

    fs::rename(sandbox.path("one"), sandbox.path("left-one")).unwrap();
    fs::create_dir(sandbox.path("left")).unwrap();
    fs::rename(sandbox.path("left-one"), sandbox.path("left/one")).unwrap();
    let left = Node::start(&sandbox, "left", &[]);
    let tokens = [left.token_as("source"), node.token_as("destination")];
    find_planted(&sandbox, 2, &[&left.at("one"), &node.at("two/"), &tokens[0], &tokens[1]]);

    let sshd = Sshd::start(&sandbox);
    let far = format!("far:{}", sandbox.path("root/two").display());
    find_planted(&sandbox, 2, &["left/one", &far, &sshd.rsh]);
    let near = format!("far:{}", sandbox.path("left/one").display());
    find_planted(&sandbox, 2, &[&near, &far, &sshd.rsh]);
}

/// By time 1,150 differences, by content 1,050, of 24 kinds.
#[test]
fn thousand_differences_among_100_000_files_are_found() {
    let sandbox = Sandbox::in_memory();
    plant(&sandbox, 100_000, 50);
    assert_eq!([false, true].map(|by_content| expected(50, by_content).len()), [1150, 1050]);
    let node = Node::start(&sandbox, "root", &[]);
    find_planted(&sandbox, 50, &["one", &node.at("two"), &node.token()]);
}

#[test]
fn check_after_a_sync_is_silent() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("one"));
    let node = Node::start(&sandbox, "root", &[]);
    let sshd = Sshd::start(&sandbox);
    let far = format!("far:{}", sandbox.path("by-ssh").display());
    for (to, more) in [("here".to_owned(), "-q".to_owned()), (node.at("two"), node.token()), (far, sshd.rsh.clone())] {
        sandbox.ok(["sync", "one/", &to, &more]);
        for flags in ["-p", "-cp", "--size-only"] {
            let ran = sandbox.ok(["check", flags, "one", &to, &more]);
            assert_eq!(ran.stdout, "", "{flags} {to}");
        }
        let ran = sandbox.ok(["check", "-v", "one", &to, &more]);
        let count = tree::walk(&sandbox.path("one")).len() + 1;
        assert_eq!(ran.stdout.lines().filter(|line| line.starts_with("= ")).count(), count, "{}", ran.stdout);
    }
}

#[test]
fn check_says_what_each_line_means_and_what_was_compared() {
    let sandbox = Sandbox::new();
    sandbox.write("one/a", "1");
    sandbox.write("one/b\n", "2");
    sandbox.write("one/same", "3");
    tool(Command::new("cp").args(["-a", "one", "two"]).current_dir(sandbox.path("")));
    sandbox.write("two/a", "12");
    fs::remove_file(sandbox.path("two/b\n")).unwrap();
    sandbox.write("two/c", "4");
    let ran = sandbox.run(["check", "one", "two"]);
    assert_eq!(ran.stdout, "* a (size, time)\n+ b\\x0a\n- c\n");
    ran.failed_with(DIFFERENCES, &["compared 5 items", "1 different, 1 only in A, 1 only in B", "modification time"]);
    // A file in the place of a directory, a file each, and the same file twice.
    assert_eq!(sandbox.run(["check", "one/a", "two"]).stdout, "* one/a (type)\n- a\n- c\n- same\n");
    assert_eq!(sandbox.run(["check", "-q", "one/a", "two/a"]).stdout, "* one/a (size, time)\n");
    sandbox.ok(["check", "-c", "one/same", "two/same"]);
    sandbox.ok(["check", "one", "one"]);
    sandbox.write("list", "same\nc\nabsent\n");
    assert_eq!(sandbox.run(["check", "--files-from=list", "one", "two"]).stdout, "- c\n");
    assert_eq!(sandbox.run(["check", "--max-size=1", "one", "two"]).stdout, "+ b\\x0a\n- c\n");
    sandbox.run(["check", "one", "absent"]).failed_with(11, &["not finished", "destination", "absent"]);
    sandbox.run(["check", "one", "null:"]).failed_with(2, &["check needs a place with files"]);
}

#[test]
fn hard_links_are_compared_over_each_link() {
    let sandbox = Sandbox::new();
    for name in ["a", "b/single", "c"] {
        sandbox.write(format!("one/{name}"), name);
    }
    for (of, name) in [("a", "b/a-too"), ("a", "z"), ("c", "c-too")] {
        fs::hard_link(sandbox.path("one").join(of), sandbox.path("one").join(name)).unwrap();
    }
    fs::create_dir(sandbox.path("root")).unwrap();
    tool(Command::new("cp").args(["-a", "one", "root/two"]).current_dir(sandbox.path("")));
    tool(Command::new("cp").args(["-a", "one", "root/three"]).current_dir(sandbox.path("")));
    // One name becomes a file of its own, and a file a name of another.
    let at = |name: &str| sandbox.path("root/three").join(name);
    fs::rename(at("z"), at("old")).unwrap();
    tool(Command::new("cp").arg("-p").arg(at("old")).arg(at("z")));
    fs::remove_file(at("old")).unwrap();
    fs::remove_file(at("b/single")).unwrap();
    fs::hard_link(at("c"), at("b/single")).unwrap();

    let node = Node::start(&sandbox, "root", &[]);
    let sshd = Sshd::start(&sandbox);
    let ssh = |name: &str| format!("far:{}", sandbox.path("root").join(name).display());
    for (two, three, flag) in [
        ("root/two".to_owned(), "root/three".to_owned(), "-q".to_owned()),
        (node.at("two"), node.at("three"), node.token()),
        (ssh("two"), ssh("three"), sshd.rsh.clone()),
    ] {
        sandbox.ok(["check", "-aH", "one", &two, &flag]);
        let (found, ran) = check(&sandbox, &["-H", "--size-only", "one", &three, &flag]);
        // By the order of the listing, the first names stand for their files.
        let expected = [("z", "links"), ("b/single", "size links")]
            .map(|(path, words)| (path.as_bytes().to_vec(), ('*', words.to_owned())));
        assert_eq!(found, BTreeMap::from(expected), "{}", ran.stderr);
        sandbox.ok(["check", "--size-only", "--exclude=single", "one", &three, &flag]);
    }
    let repairing = ["check", "-H", "--repair", "--size-only", "--exclude=single", "one", "root/three"];
    sandbox.run(repairing).failed_with(DIFFERENCES, &["not repaired: hard links of 1 item; `carrack sync -H`"]);
}

#[test]
fn differences_are_written_with_commas() {
    let sandbox = Sandbox::new();
    for name in ["one/a,\"b\"", "one/gone", "one/same", "two/a,\"b\"", "two/same", "two/-new"] {
        sandbox.write(name, name);
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(0o640)).unwrap();
        let file = File::open(sandbox.path(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
    sandbox.write("two/a,\"b\"", "longer than it was");
    let file = File::open(sandbox.path("two/a,\"b\"")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::new(1_000_000_001, 5)).unwrap();
    let ran = sandbox.run(["check", "--csv", "one", "two"]);
    let expected = "\
sign,path,differs,a_kind,a_size,a_mtime,a_mode,b_kind,b_size,b_mtime,b_mode,code,why
-,'-new,,,,,,file,8,2001-09-09T01:46:40.000000000Z,0640,,
*,\"a,\"\"b\"\"\",size time,file,9,2001-09-09T01:46:40.000000000Z,0640,file,18,2001-09-09T01:46:41.000000005Z,0640,,
+,gone,,file,8,2001-09-09T01:46:40.000000000Z,0640,,,,,,
";
    assert_eq!((ran.code, &ran.stdout[..]), (DIFFERENCES, expected), "{}", ran.stderr);
    sandbox.run(["check", "--csv", "--json", "one", "two"]).failed_with(2, &["--csv"]);
}

#[test]
fn check_tells_what_cannot_be_read_and_ends_with_its_code() {
    let sandbox = Sandbox::new();
    sandbox.write("one/d/a", "1");
    tool(Command::new("cp").args(["-a", "one", "two"]).current_dir(sandbox.path("")));
    symlink("nowhere", sandbox.path("two/d/bad")).unwrap();
    sandbox.write("one/d/bad", "a file");
    let ran = sandbox.run(["check", "-L", "one", "two"]);
    assert_eq!(ran.stdout, "! d/bad\n");
    ran.failed_with(23, &["failed: destination: ", "d/bad"]);
    // A difference beside it does not hide it, nor is it hidden.
    sandbox.write("two/d/more", "");
    let ran = sandbox.run(["check", "-L", "one", "two"]);
    assert_eq!((ran.code, &ran.stdout[..]), (23, "! d/bad\n- d/more\n"));
}

#[test]
fn check_by_content_moves_digests_alone() {
    let sandbox = Sandbox::in_memory();
    for index in 0..8 {
        let content = tree::bytes(4 << 20, index);
        sandbox.write(format!("left/one/f{index}"), &content);
        sandbox
            .write(format!("root/two/f{index}"), tree::changed(&content, 1 << 20, if index == 5 { &[3] } else { &[] }));
    }
    let nodes = [Node::start(&sandbox, "left", &[]), Node::start(&sandbox, "root", &[])];
    let proxies = nodes.each_ref().map(|node| Proxy::start(node.address.parse().unwrap()));
    let at = |index: usize, path: &str| {
        nodes[index].at(path).replace(&nodes[index].address, &proxies[index].address().to_string())
    };
    let tokens = [nodes[0].token_as("source"), nodes[1].token_as("destination")];
    let ran = sandbox.run(["check", "-c", &at(0, "one"), &at(1, "two"), &tokens[0], &tokens[1]]);
    assert_eq!((ran.code, &ran.stdout[..]), (DIFFERENCES, "* f5 (content)\n"), "{}", ran.stderr);
    let carried: u64 = proxies.iter().map(|proxy| proxy.carried().up + proxy.carried().down).sum();
    assert!(carried > 1000 && carried < (8 * (4 << 20)) / 100, "{carried} bytes");
}

#[test]
fn check_goes_on_where_a_lost_connection_stood() {
    let sandbox = Sandbox::in_memory();
    plant(&sandbox, 2000, 1);
    let node = Node::start(&sandbox, "root", &[]);
    let proxy = Proxy::start(node.address.parse().unwrap());
    let there = node.at("two").replace(&node.address, &proxy.address().to_string());
    find_planted(&sandbox, 1, &["one", &there, &node.token()]);
    let without_loss = proxy.connections().len();
    proxy.reset_after(Some(60_000));
    find_planted(&sandbox, 1, &["one", &there, &node.token()]);
    // How much passes before a connection is cut depends on how busy this host is; one is, in any case.
    assert!(proxy.connections().len() > 2 * without_loss, "nothing was lost");

    // Without another attempt it says how far it came.
    let ran = sandbox.run(["check", "-p", "--exclude=/skip", "--retries=0", "one", &there, &node.token()]);
    ran.failed_with(10, &["not finished: compared "]);
}

#[test]
fn check_goes_on_when_a_node_comes_back() {
    let sandbox = Sandbox::in_memory();
    plant(&sandbox, 2000, 1);
    let mut node = Node::start(&sandbox, "root", &[]);
    let proxy = Proxy::start(node.address.parse().unwrap());
    let there = node.at("two").replace(&node.address, &proxy.address().to_string());
    let token = node.token();
    proxy.rate(Some(100_000));
    let words = ["check", "-p", "--exclude=/skip", "one", &there, &token];
    let running = Running::start(sandbox.carrack().args(words));
    wait_until("a part of the listing has come", || proxy.carried().down > 30_000);
    node.kill();
    node.restart(&sandbox);
    proxy.reset_all();
    proxy.rate(None);
    let ran = running.end();
    assert_eq!(ran.code, DIFFERENCES, "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), expected(1, false).len(), "{}", ran.stdout);
    assert!(ran.stderr.contains("trying again"), "{}", ran.stderr);
}

#[test]
fn check_that_is_interrupted_ends_and_says_how_far_it_came() {
    let sandbox = Sandbox::in_memory();
    plant(&sandbox, 2000, 1);
    let node = Node::start(&sandbox, "root", &[]);
    let proxy = Proxy::start(node.address.parse().unwrap());
    let there = node.at("two").replace(&node.address, &proxy.address().to_string());
    proxy.rate(Some(50_000));
    let running = Running::start(sandbox.carrack().args(["check", "one", &there, &node.token()]));
    wait_until("a part of the listing has come", || proxy.carried().down > 20_000);
    proxy.stall(true);
    signal(running.id(), "INT");
    running.end().failed_with(20, &["not finished: compared ", "interrupted"]);
}

#[test]
fn repair_sends_what_differs_and_deletes_nothing() {
    for flags in [&["-p", "--exclude=/skip"][..], &["-pc", "--exclude=/skip"]] {
        let sandbox = Sandbox::in_memory();
        plant(&sandbox, 100, 1);
        let node = Node::start(&sandbox, "root", &[]);
        let (there, token) = (node.at("two"), node.token());
        // A directory or a FIFO is in the place of a file, or a FIFO would have to be made: that is not repaired.
        let ran = sandbox.run(["check", "--repair", "one", &there, &token].iter().chain(flags));
        assert_eq!(ran.code, DIFFERENCES, "{}", ran.stderr);
        assert!(ran.stderr.contains("repaired: ") && ran.stderr.contains("still different: "), "{}", ran.stderr);
        let (found, _) = check(&sandbox, &[&["one", &there, &token], flags].concat());
        let left: Vec<&[u8]> = found.keys().map(Vec::as_slice).collect();
        let stays: [&[u8]; 8] = [
            b"p0/case",
            b"p0/extra",
            b"p0/extra-dir",
            b"p0/extra-dir/file",
            b"p0/fifo",
            b"p0/to-dir",
            b"p0/to-dir/inside",
            b"p0/to-fifo",
        ];
        assert_eq!(left, stays, "{flags:?}");
        assert_eq!(fs::read(sandbox.path("root/two/skip/other")).unwrap(), b"left out, too");
    }
    let sandbox = Sandbox::new();
    // The directories that are named differ as well: that is not for a copy of what is in them.
    for (name, mode) in [("one", 0o700), ("two", 0o750)] {
        sandbox.write(format!("{name}/f"), name);
        fs::set_permissions(sandbox.path(name), Permissions::from_mode(mode)).unwrap();
    }
    let words = ["not repaired: the directory two itself", "repaired: 1 item", "still different: 1 item"];
    sandbox.run(["check", "-cp", "--repair", "one", "two"]).failed_with(DIFFERENCES, &words);
    sandbox.run(["check", "-cp", "--repair", "one", "two"]).failed_with(DIFFERENCES, &words[..1]);
    let (found, _) = check(&sandbox, &["-cp", "one", "two"]);
    assert_eq!(found.into_values().collect::<Vec<_>>(), [('*', "mode".to_owned())]);
    ["one", "two"].iter().for_each(|name| fs::remove_dir_all(sandbox.path(name)).unwrap());
    // What is left beside what was repaired counts.
    for name in ["one", "two"] {
        sandbox.write(format!("{name}/f"), name);
        sandbox.write(format!("{name}/linked"), "");
    }
    fs::hard_link(sandbox.path("one/linked"), sandbox.path("one/too")).unwrap();
    sandbox.write("two/too", "");
    let words = ["not repaired: hard links of 1 item", "repaired: 1 item", "still different: 1 item"];
    sandbox.run(["check", "-cH", "--repair", "one", "two"]).failed_with(DIFFERENCES, &words);
    ["one", "two"].iter().for_each(|name| fs::remove_dir_all(sandbox.path(name)).unwrap());
    sandbox.write("one/a", "newer");
    sandbox.write("two/a", "old");
    sandbox.write("two/b", "stays");
    sandbox
        .run(["check", "--repair", "one", "two"])
        .failed_with(DIFFERENCES, &["repaired: 1 item", "different: 1 item"]);
    fs::remove_file(sandbox.path("two/b")).unwrap();
    same_tree(&sandbox.path("one"), &sandbox.path("two"));
    sandbox.write("a", "another");
    sandbox.ok(["check", "-c", "--repair", "a", "two/a"]);
    assert_eq!(fs::read(sandbox.path("two/a")).unwrap(), b"another");
}

#[test]
fn sum_compares_a_list_with_files_wherever_they_are() {
    let sandbox = Sandbox::new();
    for (name, content) in [("d/a", "1"), ("d/b\n", "2"), ("d/gone", "3"), ("d/e/c", "4")] {
        sandbox.write(format!("root/{name}"), content);
    }
    let node = Node::start(&sandbox, "root", &[]);
    let (gone, token) = (node.at("d"), node.token());
    let lists = [("blake3", "list"), ("xxh128", "list-x"), ("adler32", "list-a"), ("blake3,crc32c", "list-tagged")];
    for (digest, list) in lists {
        fs::write(sandbox.path(list), sandbox.ok(["sum", "--digest", digest, "--relative", "root/d"]).stdout).unwrap();
    }
    let shown = tool(Command::new("b3sum").args(["a", "b\n", "gone", "e/c"]).current_dir(sandbox.path("root/d")));
    assert_eq!(fs::read_to_string(sandbox.path("list")).unwrap(), shown, "as b3sum has it, and in order");
    for (digest, list) in lists {
        let at = node.at("d");
        for place in [vec!["root/d"], vec![&at, &node.token()]] {
            let words = [&["sum", "-c", list, "--digest", digest], &place[..]].concat();
            let ran = sandbox.ok(&words);
            assert!(ran.stdout.contains("a: OK\n") && ran.stdout.contains("b\\x0a: OK\n"), "{}", ran.stdout);
        }
    }
    fs::write(sandbox.path("root/d/a"), "5").unwrap();
    fs::remove_file(sandbox.path("root/d/gone")).unwrap();
    let ran = sandbox.run(["sum", "-q", "-c", "list", "root/d"]);
    assert_eq!((ran.code, &ran.stdout[..]), (DIFFERENCES, "a: FAILED\ngone: MISSING\n"));
    let ran = sandbox.run(["sum", "--json", "-c", "list", &node.at("d"), &node.token()]);
    let summary = ran.summary();
    assert_eq!(["same", "different", "missing"].map(|key| summary[key].as_u64()), [Some(2), Some(1), Some(1)]);
    // Names as they were typed are paths here; a directory has no digest; and what is no list is refused.
    fs::write(sandbox.path("typed"), sandbox.ok(["sum", "root/d"]).stdout).unwrap();
    sandbox.ok(["sum", "-q", "-c", "typed"]);
    fs::write(sandbox.path("typed"), format!("{}  root/d\n", "11".repeat(32))).unwrap();
    sandbox.run(["sum", "-c", "typed"]).failed_with(11, &["root/d: is no file"]);
    // Nor one that has come to stand in the place of a file, and holds it.
    sandbox.write("root/file", "file");
    fs::write(sandbox.path("typed"), sandbox.ok(["sum", "root/file"]).stdout).unwrap();
    for within in ["file", "other"] {
        fs::create_dir(sandbox.path("root/held")).unwrap();
        fs::rename(sandbox.path("root/file"), sandbox.path("root/held").join(within)).unwrap();
        fs::rename(sandbox.path("root/held"), sandbox.path("root/file")).unwrap();
        sandbox.run(["sum", "-c", "typed"]).failed_with(11, &["root/file: is no file"]);
        fs::rename(sandbox.path("root/file").join(within), sandbox.path("root/back")).unwrap();
        fs::remove_dir(sandbox.path("root/file")).unwrap();
        fs::rename(sandbox.path("root/back"), sandbox.path("root/file")).unwrap();
    }
    fs::write(sandbox.path("typed"), "\nno digest\n").unwrap();
    sandbox.run(["sum", "-c", "typed"]).failed_with(2, &["line 2 of typed", "is no line of b3sum"]);
    drop(node);
    let ran = sandbox.run(["sum", "-c", "list", &gone, &token]);
    assert!(ran.code != 2 && ran.code != 0 && ran.stderr.contains("127.0.0.1"), "{}: {}", ran.code, ran.stderr);
    fs::write(sandbox.path("typed"), "\n").unwrap();
    sandbox.run(["sum", "-c", "typed"]).failed_with(2, &["typed names no file", "nothing was compared"]);
    sandbox.run(["sum", "-c", "absent"]).failed_with(11, &["cannot read the list", "absent"]);
    let chosen = sandbox.run(["sum", "-c", "list", "--exclude", "*.o"]);
    chosen.failed_with(2, &["--check compares the files that its list names"]);
    sandbox.run(["sum"]).failed_with(2, &["LOCATION"]);
}
