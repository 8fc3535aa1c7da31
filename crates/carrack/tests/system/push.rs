//! What a host without the program is sent: how much, what it is, and what it can do there. `ssh` shows how it is
//! found, kept and replaced.

use std::path::Path;
use std::process::Command;

use crate::support::running::InTime;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, b3sum, program, ran, same_tree, sent_program, slim_program, tool, tree};

/// The most that a host with `gzip` is sent.
const BYTES_MAX: u64 = 4_150_000;

fn far(sandbox: &Sandbox) -> Sshd {
    Sshd::with(sandbox, &Setup { has_agent: false, ..Setup::default() })
}

fn there(sandbox: &Sandbox, name: &str) -> String {
    format!("far:{}", sandbox.path(name).display())
}

/// What `--json` says of a program that was sent.
fn said(ran: &Ran) -> Option<serde_json::Value> {
    let mut lines = ran.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.find(|line| line["type"] == "program")
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn push_tells_program_and_bytes_and_comes_once() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let far = far(&sandbox);
    let ran = sandbox.ok(["--json", &far.rsh, "tree/", &there(&sandbox, "first")]);
    let sent = said(&ran).unwrap_or_else(|| panic!("{}", ran.stdout));
    same_tree(&sandbox.path("tree"), &sandbox.path("first"));
    assert_eq!((sent["host"].as_str(), sent["size"].as_u64()), (Some("far"), Some(length(&sent_program()))));
    assert_eq!(b3sum(&far.cached()[0]), b3sum(&sent_program()));
    let bytes = sent["bytes"].as_u64().unwrap();
    match slim_program() {
        Some(slim) => {
            assert_eq!((sent["program"].as_str(), sent["compressed"].as_bool()), (Some("slim"), Some(true)));
            assert!(bytes < length(&slim) && bytes <= BYTES_MAX, "{bytes}");
        }
        None => {
            assert_eq!((sent["program"].as_str(), sent["compressed"].as_bool()), (Some("itself"), Some(false)));
            assert_eq!(bytes, length(&program()));
        }
    }
    let again = sandbox.ok(["--json", &far.rsh, "tree/", &there(&sandbox, "second")]);
    assert_eq!(said(&again), None);
}

#[test]
fn push_without_gzip_sends_program_as_it_is() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    let far = far(&sandbox);
    std::fs::remove_file(far.bin.join("gzip")).unwrap();
    let ran = sandbox.ok(["-v", &far.rsh, "tree/", &there(&sandbox, "there")]);
    same_tree(&sandbox.path("tree"), &sandbox.path("there"));
    assert_eq!(b3sum(&far.cached()[0]), b3sum(&sent_program()));
    let which = if slim_program().is_some() { "the slim program" } else { "this program itself" };
    let line = ran.stderr.lines().find(|line| line.starts_with("far: ")).unwrap_or_else(|| panic!("{}", ran.stderr));
    let bytes = format!("({} bytes) through ssh, as it is", digits(length(&sent_program())));
    assert!(line.contains(which) && line.contains(&bytes), "{line}");
}

/// A number as a person is shown it.
fn digits(number: u64) -> String {
    let text = number.to_string();
    let places = text.char_indices().map(|(place, digit)| {
        let comma = place > 0 && (text.len() - place).is_multiple_of(3);
        if comma { format!(",{digit}") } else { digit.to_string() }
    });
    places.collect()
}

#[test]
fn push_is_told_by_verbs_that_read() {
    let sandbox = Sandbox::new();
    sandbox.write("there/file", "content");
    let far = far(&sandbox);
    let ran = sandbox.ok(["ls", "--json", &far.rsh, &there(&sandbox, "there")]);
    assert_eq!(said(&ran).unwrap()["size"].as_u64(), Some(length(&sent_program())));
    assert!(ran.stdout.contains("\"path\":\"file\""), "{}", ran.stdout);
}

/// Both ends have to agree on the protocol, and what is kept serves the next command as well as an installed one.
#[test]
fn sent_program_is_of_the_same_version_and_has_every_verb_of_a_far_side() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let sent = sent_program();
    let version = |program: &Path| {
        let said = tool(Command::new(program).arg("-V"));
        // The commit stands in parentheses, and with it whether a file has been changed since.
        let (number, rest) = said.split_once(" (").unwrap();
        format!("{number}, {}", rest.rsplit_once(") ").unwrap().1)
    };
    assert_eq!(version(&sent), version(&program()));
    for verb in ["copy", "ls", "stat", "mkdir", "mv", "rm", "sum", "gc", "token", "serve", "agent"] {
        assert!(tool(Command::new(&sent).args([verb, "--help"])).contains("Usage"), "{verb}");
    }
    // As somebody would use it who has logged in there, or who has it as their only one.
    let far = far(&sandbox);
    let copied = Command::new(&sent)
        .args([&far.rsh, "file", &there(&sandbox, "there")])
        .current_dir(sandbox.path(""))
        .output_in_time();
    assert!(copied.unwrap().status.success());
    assert_eq!(std::fs::read_to_string(sandbox.path("there")).unwrap(), "content");
    assert_eq!(b3sum(&far.cached()[0]), b3sum(&sent));
}

#[test]
fn slim_program_says_of_endpoints_that_it_has_no_service() {
    let Some(slim) = slim_program() else { return eprintln!("not tried: CARRACK_AGENTS names no agents") };
    let sandbox = Sandbox::new();
    for words in [&["ls", "@lab:/x"][..], &["@lab:/x", "here"], &["here", "@lab:/x"], &["rm", "@lab:/x"]] {
        let mut command = std::process::Command::new(&slim);
        let ran = ran(command.args(words).current_dir(sandbox.path("")).output_in_time().unwrap());
        ran.failed_with(2, &["@lab:/x", "built without the service", "install the full carrack", "./@lab:/x"]);
    }
}

/// The far side's tools say that it is another host.
fn poses(far: &Sshd, tool: &str, script: &str) {
    let path = far.bin.join(tool);
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// Names its own processor again.
fn is_itself(far: &Sshd) {
    let path = far.bin.join("uname");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/bin/uname", path).unwrap();
}

/// One that no agent is built for.
const OTHER_PROCESSOR: &str = "case $1 in -s) echo Linux;; *) echo riscv64;; esac";

/// What it has inside, as `agent list` shows it: a line each, this host's among them.
fn inside(sandbox: &Sandbox) -> Vec<String> {
    sandbox.ok(["agent", "list"]).stdout.lines().map(str::to_owned).collect()
}

/// What the agent for this host needs: `glibc 2.17`, or that of the host that has built it without zig.
fn own_need(sandbox: &Sandbox) -> String {
    let own = format!("Linux {} (", std::env::consts::ARCH);
    let inside = inside(sandbox);
    let line = inside.iter().find_map(|line| line.strip_prefix(&own)).unwrap_or_else(|| panic!("{inside:?}"));
    line.split_once(')').unwrap().0.to_owned()
}

#[test]
fn host_that_can_run_no_agent_is_told_in_a_sentence_and_sent_nothing() {
    if slim_program().is_none() {
        return eprintln!("not tried: CARRACK_AGENTS names no agents");
    }
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    let far = far(&sandbox);
    let fails = |words: &[&str]| {
        let ran = sandbox.run(["--retries", "0", &far.rsh, "file", &there(&sandbox, "there")]);
        ran.failed_with(10, words);
        assert!(!ran.stderr.contains("cache") && !ran.stderr.contains("sending"), "{}", ran.stderr);
        assert_eq!(far.cached(), Vec::<std::path::PathBuf>::new());
    };
    let needs = format!("Carrack's agent needs {}", own_need(&sandbox));
    poses(&far, "getconf", "echo glibc 2.12");
    fails(&["far: that host has glibc 2.12;", &needs, "carrack agent add"]);
    poses(&far, "getconf", "exit 1");
    poses(&far, "ldd", "echo 'musl libc (x86_64)' >&2; exit 1");
    fails(&["far: that host has musl;", &needs]);
    poses(&far, "uname", OTHER_PROCESSOR);
    fails(&["far: that host is Linux riscv64; this carrack has agents for Linux "]);
    // One that is installed there is used as ever.
    std::os::unix::fs::symlink(program(), far.bin.join("carrack")).unwrap();
    sandbox.ok([&far.rsh, "file", &there(&sandbox, "there")]);
}

/// The slim program, said to be for another processor: it is chosen, kept and named as one that is would be.
fn for_other_processor(slim: &Path) -> Vec<u8> {
    const MACHINE_AT: usize = 18;
    const RISCV: u8 = 0xf3;
    let mut bytes = std::fs::read(slim).unwrap();
    bytes[MACHINE_AT] = RISCV;
    bytes
}

#[test]
fn agents_that_were_added_are_sent_where_they_fit_and_a_shared_home_has_both() {
    let Some(slim) = slim_program() else { return eprintln!("not tried: CARRACK_AGENTS names no agents") };
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    sandbox.write("other", for_other_processor(&slim));
    let own = inside(&sandbox);
    let is_listed = |more: &[&str]| {
        let told = inside(&sandbox);
        assert_eq!(told[..own.len()], own, "{told:?}");
        assert_eq!(told.len() - own.len(), more.len(), "{told:?}");
        told[own.len()..].iter().zip(more).for_each(|(line, word)| assert!(line.starts_with(word), "{told:?}"));
    };
    let need = own_need(&sandbox);
    let added = sandbox.ok(["agent", "add", "--json", "other"]).stdout;
    let added: serde_json::Value = serde_json::from_str(&added).unwrap();
    let glibc = need.trim_start_matches("glibc ");
    assert_eq!(
        (&added["machine"], &added["glibc"], &added["inside"]),
        (&"riscv64".into(), &glibc.into(), &false.into())
    );
    is_listed(&["Linux riscv64 ("]);
    // What others may change, or was cut short, is not sent anywhere.
    let path = std::path::PathBuf::from(added["path"].as_str().unwrap());
    let set_mode = |mode| std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    set_mode(0o620);
    is_listed(&[]);
    set_mode(0o600);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    is_listed(&[]);
    // What has rotted is found out before it is sent.
    let mut rotten = whole.clone();
    rotten[whole.len() / 2] ^= 1;
    std::fs::write(&path, rotten).unwrap();
    let far = far(&sandbox);
    poses(&far, "uname", OTHER_PROCESSOR);
    let ran = sandbox.run(["--retries", "0", &far.rsh, "file", &there(&sandbox, "there")]);
    ran.failed_with(10, &["Linux riscv64", "has changed since it was added; add it again"]);
    std::fs::write(&path, whole).unwrap();
    is_itself(&far);
    sandbox.ok([&far.rsh, "file", &there(&sandbox, "there")]);
    let kept = far.cached();
    assert_eq!(kept.iter().map(|path| b3sum(path)).collect::<Vec<_>>(), [b3sum(&slim)]);
    // It came whole, and only then showed that it does not run here.
    poses(&far, "uname", OTHER_PROCESSOR);
    let ran = sandbox.run(["--retries", "0", &far.rsh, "file", &there(&sandbox, "there")]);
    ran.failed_with(10, &["that host does not run programs for the processor that its `uname -m` names"]);
    assert_eq!(far.cached(), kept);
    // Where the first one fits, it is used again.
    is_itself(&far);
    assert_eq!(said(&sandbox.ok(["--json", &far.rsh, "file", &there(&sandbox, "there")])), None);
}

#[test]
fn what_is_no_agent_is_not_added() {
    let Some(slim) = slim_program() else { return eprintln!("not tried: CARRACK_AGENTS names no agents") };
    let sandbox = Sandbox::new();
    sandbox.write("text", "content");
    let bytes = std::fs::read(&slim).unwrap();
    sandbox.write("short", &bytes[..bytes.len() / 2]);
    let mark = b"carrack speaks protocol 0";
    let at = bytes.windows(mark.len()).position(|part| part == mark).unwrap() + mark.len();
    let mut other = bytes.clone();
    other[at..at + 3].copy_from_slice(b"999");
    sandbox.write("newer", other);
    for (file, words) in [
        ("text", "no program for Linux"),
        ("short", "no program for Linux"),
        ("newer", "it speaks protocol 999"),
        ("/bin/true", "it is no carrack"),
    ] {
        sandbox.run(["agent", "add", file]).failed_with(2, &[file, words, "carrack agent add --help"]);
    }
    sandbox.run(["agent", "add", "nowhere"]).failed_with(11, &["nowhere"]);
    assert!(inside(&sandbox).iter().all(|line| line.ends_with("; inside")), "{:?}", inside(&sandbox));
}

/// What it needs of a host: the C library of CentOS 7, and nothing that came later.
#[test]
fn agents_need_glibc_2_17_and_nothing_else() {
    let Some(slim) = slim_program() else { return eprintln!("not tried: CARRACK_AGENTS names no agents") };
    let versions = tool(Command::new("readelf").args(["-V", "-W"]).arg(&slim));
    let names = versions.split(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c)));
    let minors: Vec<u32> =
        names.filter_map(|name| name.strip_prefix("GLIBC_2.")?.split('.').next()?.parse().ok()).collect();
    assert!(!minors.is_empty() && minors.iter().all(|minor| *minor <= 17), "built without zig? {versions}");
    let dynamic = tool(Command::new("readelf").args(["-d", "-W"]).arg(&slim));
    assert!(!dynamic.contains("RELR") && !dynamic.contains("RUNPATH") && !dynamic.contains("RPATH"), "{dynamic}");
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let needed: Vec<&str> = needed.filter_map(|line| line.split(['[', ']']).nth(1)).collect();
    let own = [
        "libc.so.6",
        "libpthread.so.0",
        "libdl.so.2",
        "libm.so.6",
        "librt.so.1",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
    ];
    assert!(needed.contains(&"libc.so.6") && needed.iter().all(|name| own.contains(name)), "{needed:?}");
    let told = tool(Command::new(program()).arg("--version"));
    assert!(told.contains(&format!("Linux {} (glibc 2.17)", std::env::consts::ARCH)), "{told}");
}
