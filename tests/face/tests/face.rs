//! The process of `src/main.rs` from outside: what it asks its environment, which files it touches, what it
//! prints, and how it ends.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What the program ends with when all that it asserts holds.
const ENDED: i32 = 77;

/// Whose program it is matters to nobody here: these are read by Rust's library when it starts a thread or panics, and
/// by the cryptography when it looks at the processor.
const OTHERS: [&str; 3] = ["RUST_MIN_STACK", "RUST_BACKTRACE", "OPENSSL_ia32cap"];

/// Variables that the command line program, ssh, or a library of somebody else's reads; each leads to the trap.
const TRAPS: [&str; 20] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "TMPDIR",
    "BEARER_TOKEN",
    "BEARER_TOKEN_FILE",
    "CARRACK_TOKEN_FILE",
    "CARRACK_KEY_FILE",
    "CARRACK_ROOT",
    "CARRACK_STREAMS",
    "CARRACK_LIMIT_RATE",
    "CARRACK_LINK",
    "CARRACK_ENCRYPT",
    "CARRACK_DEADLINE",
    "CARRACK_LOG_FILE",
    "CARRACK_RSH",
    "SSH_CONNECTION",
];

/// A trap of our own: files that the command line program would read, or write, if it were led here.
fn trap(directory: &Path) -> PathBuf {
    let trap = directory.join("trap");
    for place in [".config/carrack/tokens", "carrack/tokens"] {
        fs::create_dir_all(trap.join(place)).unwrap();
        fs::write(trap.join(place).parent().unwrap().join("known_nodes"), "no list of nodes\n").unwrap();
    }
    trap
}

fn run(directory: &TempDir, command: &mut Command) -> Output {
    let output = command.arg(directory.path().join("work")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len(), text.as_str()), (Some(ENDED), 0, ""));
    output
}

fn directory() -> TempDir {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fs::create_dir(directory.path().join("work")).unwrap();
    directory
}

fn program() -> &'static OsStr {
    OsStr::new(env!("CARGO_BIN_EXE_carrack-face"))
}

/// What a newcomer has to read: the names at the root of the engine, in order.
const ROOT: [&str; 24] = [
    "Asker",
    "Context",
    "Copy",
    "FarPart",
    "FarSession",
    "FarSide",
    "Handle",
    "Place",
    "Standard",
    "Stop",
    "StopReason",
    "Stores",
    "check",
    "examine",
    "files",
    "io_failure",
    "keys",
    "node",
    "secrets",
    "stores",
    "sync",
    "system_failure",
    "threads",
    "tuned",
];

#[test]
fn face_is_read_in_a_minute() {
    let face = include_str!("../../../crates/carrack-engine/src/lib.rs");
    let (product, _) = face.split_once("#[cfg(feature = \"testing\")]\npub mod testing;").expect("it has an inside");
    let rest = face.split_once("pub mod testing;").map_or("", |(_, rest)| rest);
    let mut names: Vec<&str> = Vec::new();
    for line in product.lines().chain(rest.lines()) {
        if let Some(module) = line.strip_prefix("pub mod ") {
            names.push(module.trim_end_matches([';', ' ', '{']));
        } else if let Some(used) = line.strip_prefix("pub use ") {
            let last = used.trim_end_matches(';').rsplit("::").next().unwrap();
            names.extend(last.trim_matches(['{', '}']).split(", "));
        }
        assert!(!["pub fn", "pub struct", "pub enum", "pub trait"].iter().any(|item| line.starts_with(item)), "{line}");
    }
    names.sort_unstable();
    assert_eq!(names, ROOT);
}

#[test]
fn engine_copies_in_an_empty_environment_and_says_nothing() {
    let directory = directory();
    run(&directory, Command::new(program()).env_clear());
}

#[test]
fn engine_asks_for_no_variable_and_touches_nothing_that_one_leads_to() {
    let directory = directory();
    let trap = trap(directory.path());
    let (asked, calls, watch) =
        (directory.path().join("asked"), directory.path().join("calls"), directory.path().join("watch.so"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/getenv.c");
    let name = format!("-DASKED=\"{}\"", asked.display());
    let built = Command::new("cc").args(["-shared", "-fPIC", &name, "-o"]).arg(&watch).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=%file,chdir,fchdir", "-o"]).arg(&calls);
    command.arg("-E").arg(format!("LD_PRELOAD={}", watch.display()));
    for variable in TRAPS {
        command.arg("-E").arg(format!("{variable}={}", trap.join(".config").display()));
    }
    run(&directory, command.arg(program()));

    // The watch has seen what the library asks for, so that it would have seen more.
    let asked = fs::read_to_string(&asked).unwrap();
    assert!(asked.lines().any(|name| OTHERS.contains(&name)), "nothing was seen: {asked}");
    let found: Vec<&str> = asked.lines().filter(|name| !OTHERS.contains(name)).collect();
    assert_eq!(found, [""; 0]);
    let calls = fs::read_to_string(&calls).unwrap();
    assert!(calls.contains("/one.key"), "nothing was seen");
    let trap = trap.display().to_string();
    let touched: Vec<&str> = calls.lines().filter(|line| line.contains(&trap)).collect();
    assert_eq!(touched, [""; 0]);
    // Only what belongs to this program, to the system, and to the directory that it was given.
    let home: Vec<&str> =
        calls.lines().filter(|line| line.contains("known_nodes") || line.contains("/.config")).collect();
    assert_eq!(home, [""; 0]);
}
