//! Listings and reads that break off, and directories that stand in themselves.

use super::*;

#[test]
fn listing_that_breaks_off_is_an_error_and_no_end() {
    let sandbox = Sandbox::in_memory();
    for index in 0..6000 {
        sandbox.write(format!("many/{index:030}"), "");
    }
    for count in ["1", "2", "3"] {
        let inject = format!("inject=getdents64:error=EIO:when={count}");
        let tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=getdents64", "-e", &inject];
        let out = format!("out-{count}");
        for (arguments, code) in [
            (vec!["many", &out], 23),
            (vec!["ls", "many"], 11),
            (vec!["sum", "many"], 11),
            (vec!["rm", "-r", "many"], 11),
            (vec!["-n", "many", "out"], 11),
        ] {
            let removes = arguments[0] == "rm";
            if removes {
                tool(Command::new("cp").arg("-r").arg(sandbox.path("many")).arg(sandbox.path("spare")));
            }
            let ran = under(&sandbox, &tracer, &arguments);
            let expected = [code, 23];
            assert!(expected.contains(&ran.code), "{arguments:?} {count}: {} {}", ran.code, ran.stderr);
            assert!(ran.stderr.contains("nput/output error"), "{arguments:?}: {}", ran.stderr);
            if removes {
                let _ = fs::remove_dir_all(sandbox.path("many"));
                fs::rename(sandbox.path("spare"), sandbox.path("many")).unwrap();
            }
        }
    }
}

/// Nested, so that what is listed after the first directory fails too: of nothing that could not be read is
/// it said that it is empty.
#[test]
fn listing_that_breaks_off_below_is_told_by_every_verb() {
    let sandbox = Sandbox::in_memory();
    let fill = || {
        for index in 0..40 {
            sandbox.write(format!("tree/a/b{}/{index}", index % 4), "x");
        }
    };
    fill();
    let count = |name: &str| tree::walk(&sandbox.path(name)).iter().filter(|path| path.is_file()).count();
    // Each directory is listed by two calls, the second of which finds the end.
    for call in 1..=12 {
        let inject = format!("inject=getdents64:error=EIO:when={call}");
        let tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=getdents64", "-e", &inject];
        let out = format!("out-{call}");
        for arguments in [vec!["tree", &out], vec!["ls", "-R", "tree"], vec!["sum", "tree"], vec!["rm", "-r", "tree"]] {
            let ran = under(&sandbox, &tracer, &arguments);
            assert!([11, 23].contains(&ran.code), "{arguments:?} {call}: {} {}", ran.code, ran.stderr);
            assert!(ran.stderr.contains("nput/output error"), "{arguments:?} {call}: {}", ran.stderr);
            if arguments[0] == "rm" {
                // What could not be listed to its end is not removed, nor the directories above; all else goes.
                assert!(sandbox.path("tree").is_dir(), "{call}");
                fill();
            }
        }
        // What was listed has been copied, and nothing else.
        assert!(count(&out) <= count("tree"));
    }
}

#[test]
fn directory_that_stands_in_itself_is_not_entered_again() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("tree/a/file", "content");
    fs::create_dir(sandbox.path("tree/a/again")).unwrap();
    tool(Command::new("mount").arg("--bind").arg(sandbox.path("tree")).arg(sandbox.path("tree/a/again")));
    let _mounted = Mounted(sandbox.path("tree/a/again"));
    for (arguments, code) in
        [(&["tree", "copy"][..], 23), (&["ls", "-R", "tree"], 23), (&["sum", "tree"], 23), (&["rm", "-r", "tree"], 23)]
    {
        let ran = sandbox.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("a/again") && ran.stderr.contains("stands in"), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(fs::read(sandbox.path("copy/tree/a/file")).unwrap(), b"content");
    assert!(sandbox.path("copy/tree/a/again").is_dir() && !sandbox.path("copy/tree/a/again/a").exists());
}

#[test]
fn read_error_names_the_place_and_costs_one_file() {
    let sandbox = Sandbox::new();
    for (name, size) in [("large", 8 * MIB), ("other-large", 2 * MIB), ("small", 5000), ("other-small", 10)] {
        sandbox.write(format!("tree/{name}"), tree::bytes(size, size as u64));
    }
    // The twentieth slice of 256 KiB; and the only one of a small file.
    for (name, when, place) in [("large", 20, 19 << 18), ("small", 1, 0)] {
        let path = sandbox.path("tree").join(name).display().to_string();
        let inject = format!("inject=pread64:error=EIO:when={when}");
        let tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", &path, "-e", "trace=pread64", "-e", &inject];
        let out = format!("out-{name}");
        let ran = under(&sandbox, &tracer, &["tree/", &out, "--streams=1", "--block=4M"]);
        ran.failed_with(23, &[&format!("{name}: read at {place}: Input/output error")]);
        for other in ["large", "other-large", "small", "other-small"] {
            let copy = sandbox.path(&out).join(other);
            assert_eq!(copy.exists(), other != name, "{other}");
            if other != name {
                same_tree(&sandbox.path("tree").join(other), &copy);
            }
        }
        assert!(sandbox.parts(&out).is_empty());
    }
}
