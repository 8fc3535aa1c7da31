//! Hosts without the program: it is found, sent, kept for the next copy, and replaced where it is spoiled.

use super::*;

#[test]
fn host_without_the_program_gets_it_once() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let first = sandbox.ok([&far.rsh, "tree/", &at(&sandbox, "far", "first")]);
    assert!(first.stderr.contains(SENDING), "{}", first.stderr);
    let second = sandbox.ok([&far.rsh, "tree/", &at(&sandbox, "far", "second")]);
    assert!(!second.stderr.contains(SENDING), "{}", second.stderr);
    for there in ["first", "second"] {
        same_tree(&sandbox.path("tree"), &sandbox.path(there));
    }
    let cached = far.cached();
    assert_eq!(cached.len(), 1, "{cached:?}");
    assert_eq!(std::fs::metadata(&cached[0]).unwrap().permissions().mode() & 0o777, 0o700);
    let program = b3sum(&sent_program());
    assert_eq!(cached[0], far.cache.join(format!("carrack/agent-{}", &program[..32])));

    // One that was cut short, or altered since, is not trusted for its name alone: it does not speak, and is replaced.
    wait_until("the agent before has ended", || std::fs::write(&cached[0], "#!/bin/sh\nexit 1\n").is_ok());
    let third = sandbox.ok([&far.rsh, "tree/", &at(&sandbox, "far", "third")]);
    assert!(third.stderr.contains(SENDING), "{}", third.stderr);
    assert_eq!(b3sum(&far.cached()[0]), program);
    assert_eq!(far.cached().len(), 1);
}

#[test]
fn push_for_a_dry_run_is_said_and_can_be_forbidden() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let there = at(&sandbox, "far", "there");
    let refused = sandbox.run([&far.rsh, "--no-push", "--dry-run", "file", &there]);
    refused.failed_with(10, &["far: no carrack on its PATH"]);
    assert!(!far.cache.exists());
    let ran = sandbox.ok([&far.rsh, "--dry-run", "file", &there]);
    assert!(ran.stderr.contains(SENDING) && ran.stderr.contains(" MiB), kept in "), "{}", ran.stderr);
    assert_eq!(far.cached().len(), 1);
    assert!(!sandbox.path("there").exists());
    let help = sandbox.ok(["help", "copy"]).stdout;
    assert!(
        help.split_whitespace().collect::<Vec<_>>().join(" ").contains("a host without carrack is still sent one"),
        "{help}"
    );
}

#[test]
fn push_by_two_at_once_spoils_neither() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    std::thread::scope(|scope| {
        for there in ["a", "b", "c"] {
            let (sandbox, far) = (&sandbox, &far);
            scope.spawn(move || sandbox.ok([&far.rsh, "file", &at(sandbox, "far", there)]));
        }
    });
    assert_eq!(far.cached().len(), 1);
}

#[test]
fn push_that_is_not_allowed_says_what_to_do() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let ran = sandbox.run([&far.rsh, "--no-push", "file", &at(&sandbox, "far", "there")]);
    ran.failed_with(10, &["far: no carrack on its PATH", "--remote-path", "--no-push"]);
    assert!(!sandbox.path("there").exists() && !far.cache.exists());
}

/// Puts a script in the place of a tool that the far side has.
fn replace_tool(far: &Sshd, name: &str, script: &str) {
    let path = far.bin.join(name);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn push_that_can_keep_nothing_names_the_reasons_and_no_words_of_the_protocol() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    for tool in ["mkdir", "mktemp"] {
        replace_tool(&far, tool, "echo \"${0##*/}: cannot make it: Read-only file system\" >&2; exit 1");
    }
    let ran = sandbox.run([&far.rsh, "file", &at(&sandbox, "far", "there")]);
    let cache = far.cache.join("carrack").display().to_string();
    ran.failed_with(
        10,
        &["far: the agent could not be kept", "XDG_CACHE_HOME", "/var/tmp", &cache, "mkdir: cannot make it"],
    );
    for word in ["carrack-need", "carrack-failed", "carrack-agent"] {
        assert!(!ran.stderr.contains(word), "{}", ran.stderr);
    }
    assert!(!sandbox.path("there").exists());
}

/// What the far side's cache may be that nothing can be kept in.
enum Cache {
    /// A file stands there.
    File,
    /// No file fits.
    Full,
    /// No program may be run there.
    NoExec,
    /// Nothing can be written.
    ReadOnly,
    /// Others may write there, and somebody has put a program there.
    Shared,
    /// A link to a private directory of the user's.
    Link,
}

#[test]
fn push_keeps_the_program_elsewhere_where_the_cache_does_not_do() {
    let mounts = if is_root() { &[Cache::Full, Cache::NoExec, Cache::ReadOnly][..] } else { &[] };
    for (number, cache) in [Cache::File, Cache::Shared, Cache::Link].iter().chain(mounts).enumerate() {
        let sandbox = Sandbox::new();
        tree::mixed(&sandbox.path("tree"));
        let runtime = sandbox.path("runtime");
        std::fs::create_dir(&runtime).unwrap();
        std::fs::set_permissions(&runtime, PermissionsExt::from_mode(0o700)).unwrap();
        let directives = format!("XDG_RUNTIME_DIR={}", runtime.display());
        let far = Sshd::with(&sandbox, &Setup { environment: &directives, has_agent: false, ..Setup::default() });
        let canary = sandbox.path("canary");
        let mounted = match cache {
            Cache::File => {
                std::fs::write(&far.cache, "a file where the directory should be").unwrap();
                None
            }
            Cache::Link => {
                std::fs::create_dir(&far.cache).unwrap();
                std::fs::create_dir(far.home.join("private")).unwrap();
                std::fs::set_permissions(far.home.join("private"), PermissionsExt::from_mode(0o700)).unwrap();
                symlink(far.home.join("private"), far.cache.join("carrack")).unwrap();
                None
            }
            Cache::Full => Some(Mounted::new(&far.cache, "size=256k")),
            Cache::NoExec => Some(Mounted::new(&far.cache, "noexec")),
            Cache::ReadOnly => Some(Mounted::new(&far.cache, "ro")),
            Cache::Shared => {
                let shared = far.cache.join("carrack");
                std::fs::create_dir_all(&shared).unwrap();
                let name = format!("agent-{}", &b3sum(&sent_program())[..32]);
                let planted = shared.join(name);
                std::fs::write(&planted, format!("#!/bin/sh\necho was here >{}\n", canary.display())).unwrap();
                std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o755)).unwrap();
                std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o777)).unwrap();
                None
            }
        };
        for (there, sent) in [("first", true), ("second", false)] {
            let ran = sandbox.ok([&far.rsh, "tree/", &at(&sandbox, "far", there)]);
            assert_eq!(ran.stderr.contains(SENDING), sent, "{number}: {}", ran.stderr);
            same_tree(&sandbox.path("tree"), &sandbox.path(there));
        }
        assert!(!canary.exists());
        assert_eq!(tree::walk(&runtime).iter().filter(|path| path.is_file()).count(), 1, "{number}");
        drop(mounted);
    }
}

/// A file system in memory, mounted over a directory until this is dropped.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(place: &std::path::Path, options: &str) -> Self {
        std::fs::create_dir(place).unwrap();
        tool(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(place));
        Self(place.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        tool(Command::new("umount").arg("-l").arg(&self.0));
    }
}

#[test]
fn push_keeps_the_program_for_one_session_where_no_directory_is_the_users_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let temporary = sandbox.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let environment = format!("TMPDIR={}", temporary.display());
    let far = Sshd::with(&sandbox, &Setup { environment: &environment, has_agent: false, ..Setup::default() });
    // As if every directory that is asked for by its name were somebody else's.
    replace_tool(&far, "mkdir", "case $2 in */carrack.??????) exit 0;; esac; exit 1");
    for there in ["first", "second"] {
        let ran = sandbox.ok([&far.rsh, "file", &at(&sandbox, "far", there)]);
        assert!(ran.stderr.contains(SENDING), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(sandbox.path(there)).unwrap(), "content");
    }
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn program_in_the_cache_that_is_empty_altered_or_hangs_is_replaced() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let copy = |there: &str| {
        let ran = sandbox.ok([&far.rsh, "--connect-timeout=20s", "file", &at(&sandbox, "far", there)]);
        assert_eq!(std::fs::read_to_string(sandbox.path(there)).unwrap(), "content");
        ran.stderr.contains(SENDING)
    };
    assert!(copy("first"));
    let cached = far.cached().remove(0);
    let good = std::fs::read(&cached).unwrap();
    let mut zeros_at_the_end = good.clone();
    zeros_at_the_end[good.len() - 4096..].fill(0);
    let mut hangs = b"#!/bin/sh\nexec /bin/sleep 600\n".to_vec();
    let hangs_short = hangs.clone();
    hangs.resize(good.len(), b'\n');
    let contents =
        [Vec::new(), good[..good.len() / 2].to_vec(), vec![0; good.len()], zeros_at_the_end, hangs_short, hangs];
    for (number, content) in contents.iter().enumerate() {
        // The agent of the copy before may still be ending: a program that runs cannot be written to.
        wait_until("it can be written to", || std::fs::write(&cached, content).is_ok());
        assert!(copy(&format!("there-{number}")), "{number}");
        assert!(std::fs::read(&cached).unwrap() == good, "{number}");
    }
    // One that others may write to is not run, nor a link to one.
    std::fs::set_permissions(&cached, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(copy("open"));
    assert_eq!(mode(&cached), 0o700);
    std::fs::rename(&cached, far.home.join("elsewhere")).unwrap();
    symlink(far.home.join("elsewhere"), &cached).unwrap();
    assert!(copy("link"));
    assert!(!copy("again"));
    assert_eq!(far.cached(), [cached]);
}

/// What a push that was killed has left goes when it is a day old, whether or not the program is there meanwhile.
#[test]
fn leftovers_of_pushes_that_were_killed_are_removed_after_a_day() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let cache = far.cache.join("carrack");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::set_permissions(&cache, PermissionsExt::from_mode(0o700)).unwrap();
    let left = |name: &str, hours: u64| {
        let file = std::fs::File::create(cache.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(hours * 3600)).unwrap();
    };
    let is_left = |name: &str| cache.join(name).exists();
    for (there, has_program) in [("first", false), ("second", true)] {
        // The others are those of pushes that may still go on, or nobody's concern.
        for (name, hours) in [("push.01234567", 49), ("push.76543210", 20), ("push.mine", 49)] {
            left(name, hours);
        }
        std::fs::create_dir_all(cache.join("push.aaaaaaaa")).unwrap();
        let ran = sandbox.ok([&far.rsh, "file", &at(&sandbox, "far", there)]);
        assert_eq!(!ran.stderr.contains(SENDING), has_program, "{}", ran.stderr);
        let found = ["push.01234567", "push.76543210", "push.mine", "push.aaaaaaaa"].map(is_left);
        assert_eq!(found, [false, true, true, true], "{there}");
    }
}

#[test]
fn program_on_the_path_that_is_none_is_passed_over() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    std::fs::write(far.bin.join("carrack"), "").unwrap();
    std::fs::set_permissions(far.bin.join("carrack"), PermissionsExt::from_mode(0o755)).unwrap();
    let ran = sandbox.ok([&far.rsh, "file", &at(&sandbox, "far", "there")]);
    assert!(ran.stderr.contains(SENDING), "{}", ran.stderr);
}

#[test]
fn relative_paths_are_below_the_home_directory_also_for_a_program_that_was_sent() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let directives = forced(&sandbox, "cd \"$HOME\" && exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"");
    let far = Sshd::with(&sandbox, &Setup { directives: &directives, has_agent: false, ..Setup::default() });
    for there in ["first", "second"] {
        sandbox.ok([&far.rsh, "file", &format!("far:{there}")]);
        assert_eq!(std::fs::read_to_string(far.home.join(there)).unwrap(), "content");
    }
}

#[test]
fn host_is_given_the_program_once() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let script = r#"
nonce=$(echo "$SSH_ORIGINAL_COMMAND" | /bin/grep -oE "[0-9a-f]{32}" | head -n 1)
for times in 1 2 3; do echo "carrack-need $nonce $HASH"; head -c $SIZE >/dev/null; done"#;
    let script = script.replace("$HASH", &b3sum(&sent_program())[..32]);
    let script = script.replace("$SIZE", &std::fs::metadata(sent_program()).unwrap().len().to_string());
    let directives = forced(&sandbox, &script);
    let far = Sshd::with(&sandbox, &Setup { directives: &directives, ..Setup::default() });
    let ran = sandbox.run([&far.rsh, "--connect-timeout=20s", "file", &at(&sandbox, "far", "there")]);
    ran.failed_with(10, &["asked for a program twice"]);
}

#[test]
fn program_that_stops_taking_what_is_sent_does_not_hold_the_command_for_ever() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    std::fs::remove_file(far.bin.join("head")).unwrap();
    let stuck = sandbox.write("stuck", "#!/bin/sh\nexec /bin/sleep 600\n");
    std::fs::set_permissions(&stuck, PermissionsExt::from_mode(0o755)).unwrap();
    symlink(stuck, far.bin.join("head")).unwrap();
    let ran = sandbox.run([&far.rsh, "--connect-timeout", "2s", "file", &at(&sandbox, "far", "there")]);
    ran.failed_with(10, &["far: ", "--connect-timeout"]);
}

#[test]
fn program_off_the_path_is_found_where_it_is_said_to_be() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = Sshd::with(&sandbox, &Setup { has_agent: false, ..Setup::default() });
    let odd = far.home.join("my $HOME `x` \"tools\"");
    std::fs::create_dir(&odd).unwrap();
    symlink(program(), odd.join("carrack")).unwrap();
    let absolute = odd.join("carrack").display().to_string();
    for (number, path) in [absolute.as_str(), "~/my $HOME `x` \"tools\"/carrack"].into_iter().enumerate() {
        let there = format!("there-{number}");
        sandbox.ok([&far.rsh, "--no-push", "--remote-path", path, "file", &at(&sandbox, "far", &there)]);
        assert_eq!(std::fs::read_to_string(sandbox.path(there)).unwrap(), "content");
    }
    assert!(!far.cache.exists());
    let wrong = sandbox.run([&far.rsh, "--no-push", "--remote-path", "/nowhere/carrack", "file", "far:/tmp/never"]);
    wrong.failed_with(10, &["far: ", "/nowhere/carrack"]);
}
