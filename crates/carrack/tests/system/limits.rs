//! Many files, odd names, deep trees, and little to do it with.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use carrack_sys::dir::{Dir, Links};
use serde_json::Value;

use crate::support::node::Node;
use crate::support::running::{InTime, peak_resident};
use crate::support::{Sandbox, ran, same_tree, tree};

#[test]
fn small_files_twenty_thousand() {
    let sandbox = Sandbox::in_memory();
    tree::many(&sandbox.path("tree"), 20_000, 4096);
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.ok(["tree", &node.at("there/"), &node.token()]);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/there/tree"));
    sandbox.ok([&node.at("there/tree"), "back/", &node.token(), "--encrypt=none"]);
    same_tree(&sandbox.path("tree"), &sandbox.path("back/tree"));
}

#[test]
fn files_of_a_mebibyte_a_thousand() {
    let sandbox = Sandbox::in_memory();
    // Half of them just too large for a bundle.
    tree::many(&sandbox.path("tree/bundled"), 500, 1 << 20);
    tree::many(&sandbox.path("tree/offered"), 500, (1 << 20) + 1);
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.ok(["tree/", &node.at("there"), &node.token()]);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/there"));
}

/// A command that tells what it does as JSON, looked at line by line.
struct Told(Child);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn directory_of_a_million_files_in_bounded_memory_while_the_scan_goes_on() {
    const FILES: u64 = 1_000_000;
    const MEMORY: u64 = 256 << 20;
    let sandbox = Sandbox::in_memory();
    fs::create_dir(sandbox.path("many")).unwrap();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let directory = sandbox.path("many");
            scope.spawn(move || {
                for index in (part..FILES).step_by(4) {
                    File::create(directory.join(format!("{index:06}"))).unwrap();
                }
            });
        }
    });
    let node = Node::start(&sandbox, "root", &[]);
    let mut command = sandbox.carrack();
    command.args(["many", &node.at(""), &node.token(), "--json", "--stats=20ms"]);
    let mut told = Told(command.stdout(Stdio::piped()).spawn().unwrap());
    let there = sandbox.path("root/many");
    let (mut peak, mut published_before_scanned, mut scanned) = (0, false, false);
    let mut summary = Value::Null;
    for line in BufReader::new(told.0.stdout.take().unwrap()).lines().map(Result::unwrap) {
        // A million of these, each like the other.
        if line.contains(r#""type":"item""#) {
            continue;
        }
        let event: Value = serde_json::from_str(&line).unwrap();
        peak = peak.max(peak_resident(told.0.id()).unwrap_or_default());
        scanned |= event["scan_complete"] == true;
        let done = event["files_done"].as_u64().unwrap_or_default();
        if !scanned && event["type"] == "progress" && done > 0 && !published_before_scanned {
            published_before_scanned = has_final_name(&there);
        }
        summary = event;
    }
    assert!(told.0.wait().unwrap().success());
    assert!(published_before_scanned, "no name appeared before the scan had ended");
    assert_eq!((summary["type"].as_str(), summary["files"].as_u64()), (Some("summary"), Some(FILES)));
    assert_eq!(fs::read_dir(&there).unwrap().count() as u64, FILES);
    let of_node = peak_resident(node.child.id()).unwrap();
    assert!(peak > 0 && peak < MEMORY, "the command took {peak} bytes");
    assert!(of_node < MEMORY, "the node took {of_node} bytes");
}

fn has_final_name(directory: &Path) -> bool {
    fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| !entry.file_name().as_bytes().starts_with(b"."))
}

#[test]
fn levels_two_hundred() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let deep = vec!["d"; 200].join("/");
    sandbox.write(format!("tree/{deep}/file"), "bottom");
    sandbox.write(format!("tree/{deep}/large"), tree::bytes((1 << 20) + 3, 1));
    sandbox.ok(["tree", &node.at(""), &node.token()]);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/tree"));
    sandbox.ok([&node.at("tree"), "back", &node.token()]);
    same_tree(&sandbox.path("tree"), &sandbox.path("back/tree"));
}

#[test]
fn levels_three_thousand() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    let deep = vec!["d"; 3000].join("/").into_bytes();
    fs::create_dir(sandbox.path("tree")).unwrap();
    let top = Dir::open_ambient(&sandbox.path("tree")).unwrap();
    let bottom = top.make_dir_all(&deep, Links::Refuse).unwrap();
    std::io::Write::write_all(&mut bottom.create_new(b"file").unwrap(), b"bottom").unwrap();
    for (destination, copied) in [(node.at(""), "root/tree"), ("here/".to_string(), "here/tree")] {
        sandbox.ok(["tree", &destination, &node.token()]);
        let copied = Dir::open_ambient(&sandbox.path(copied)).unwrap().open_dir(&deep, Links::Refuse).unwrap();
        let mut content = String::new();
        copied.open_read(b"file", Links::Refuse).unwrap().read_to_string(&mut content).unwrap();
        assert_eq!(content, "bottom");
    }
    sandbox.ok(["rm", "-r", &node.at("tree"), &node.token()]);
    sandbox.ok(["rm", "-r", "here"]);
}

/// What only the destination has is found and deleted however deep it is, and the node serves the next command.
#[test]
fn levels_five_thousand_that_only_the_destination_has() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("src/file", "both");
    sandbox.write("root/dst/file", "both");
    let deep = vec!["d"; 5000].join("/").into_bytes();
    let top = Dir::open_ambient(&sandbox.path("root/dst")).unwrap();
    top.make_dir_all(&deep, Links::Refuse).unwrap().create_new(b"only").unwrap();
    for _ in 0..2 {
        sandbox.ok(["sync", "--delete", "--yes", "src/", &node.at("dst"), &node.token()]);
        same_tree(&sandbox.path("src"), &sandbox.path("root/dst"));
    }
}

/// No system call takes such a path whole: each directory has to be opened from the one above.
#[test]
fn paths_longer_than_the_system_takes() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let level = "n".repeat(250);
    let path = vec![level.as_str(); 60].join("/").into_bytes();
    fs::create_dir(sandbox.path("tree")).unwrap();
    let top = Dir::open_ambient(&sandbox.path("tree")).unwrap();
    let bottom = top.make_dir_all(&path, Links::Refuse).unwrap();
    for (name, content) in [("small", tree::bytes(100, 2)), ("large", tree::bytes((1 << 20) + 1, 3))] {
        std::io::Write::write_all(&mut bottom.create_new(name.as_bytes()).unwrap(), &content).unwrap();
    }
    sandbox.ok(["tree", &node.at(""), &node.token()]);
    let copied = Dir::open_ambient(&sandbox.path("root/tree")).unwrap();
    let bottom = copied.open_dir(&path, Links::Refuse).unwrap();
    for (name, expected) in [("small", tree::bytes(100, 2)), ("large", tree::bytes((1 << 20) + 1, 3))] {
        let mut content = Vec::new();
        bottom.open_read(name.as_bytes(), Links::Refuse).unwrap().read_to_end(&mut content).unwrap();
        assert!(content == expected, "{name}");
    }
    let listed = sandbox.ok(["ls", "-R", &node.at("tree"), &node.token()]).stdout;
    assert_eq!(listed.lines().count(), 62);
    assert_eq!(sandbox.ok(["sum", &node.at("tree"), &node.token()]).stdout.lines().count(), 2);
    sandbox.ok(["rm", "-r", &node.at("tree"), &node.token()]);
    assert!(!sandbox.path("root/tree").exists());
}

#[test]
fn names_of_every_kind() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let longest = "l".repeat(255);
    let mut names: Vec<&[u8]> =
        vec![longest.as_bytes(), b" ", b" lead", b"trail ", b"new\nline", b"tab\t", b"-rf", b"--", b"-"];
    names.extend([
        &b"\xff\xfe"[..],
        b"\xc3\x28",
        b"a:b",
        b"host:path",
        b"*?[",
        b"$HOME",
        b"`x`",
        b"\"'",
        b"back\\slash",
        b"...",
    ]);
    names.extend([
        &b".hidden"[..],
        b".carrack-x.part",
        b"\x1b[31m",
        b"\x7f",
        b"~",
        b"#",
        b"%41",
        "\u{202e}".as_bytes(),
    ]);
    for (index, name) in names.iter().enumerate() {
        for (size, above) in [(index, "small"), ((1 << 20) + 1, "large"), (1, "twice")] {
            let mut path = sandbox.path("tree").join(above);
            if above == "twice" {
                path.push(OsStr::from_bytes(name));
            }
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(OsStr::from_bytes(name)), tree::bytes(size, 1)).unwrap();
        }
    }
    sandbox.ok(["tree", &node.at(""), &node.token()]);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/tree"));
    // Each by itself, as a source and as a destination, here.
    for name in &names {
        let output = sandbox
            .carrack()
            .arg(Path::new("tree/small").join(OsStr::from_bytes(name)))
            .arg("one/")
            .output_in_time()
            .unwrap();
        assert_eq!(ran(output).code, 0, "{name:?}");
    }
    same_tree(&sandbox.path("tree/small"), &sandbox.path("one"));
}

#[test]
fn descriptors_may_be_sixty_four() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    // More large files than descriptors, in more directories than descriptors, and deeper.
    for index in 0..150 {
        let directory = format!("tree/{}/d{index}", vec!["deep"; index % 5 * 4].join("/"));
        sandbox.write(format!("{directory}/large"), tree::bytes((1 << 20) + index, index as u64 + 1));
        sandbox.write(format!("{directory}/small"), tree::bytes(index, 5));
    }
    let limited = |arguments: &[&str]| {
        let carrack = sandbox.carrack();
        let mut command = Command::new("prlimit");
        command.arg("--nofile=64").arg(carrack.get_program()).args(arguments).current_dir(sandbox.path("."));
        command.env_clear().envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
        ran(command.output_in_time().unwrap())
    };
    for streams in ["--streams=2", "--streams=8"] {
        let here = format!("here{streams}");
        for arguments in [
            vec!["tree/", &here, streams],
            vec!["tree/", &node.at(&here), &node.token(), streams],
            vec![&node.at(&format!("{here}/")), &format!("back{streams}"), &node.token(), streams],
        ] {
            let ran = limited(&arguments);
            assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        }
        for copy in [here.clone(), format!("root/{here}"), format!("back{streams}")] {
            same_tree(&sandbox.path("tree"), &sandbox.path(copy));
        }
    }
}
