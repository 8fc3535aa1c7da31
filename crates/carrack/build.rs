//! Puts the commit into the program, so that `carrack --version` names exactly one source text, and the programs that
//! it sends to hosts which have none.
//!
//! `CARRACK_COMMIT` overrides what git says, for builds from an archive. Without either the commit is "unknown".
//! `CARRACK_AGENTS` is the absolute path of a directory of slim programs, built before with `--no-default-features`
//! (`cargo xtask agents`); without it this program carries none.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=CARRACK_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = match std::env::var("CARRACK_COMMIT") {
        Ok(commit) if !commit.trim().is_empty() => commit.trim().to_owned(),
        _ => commit_of_git().unwrap_or_else(|| "unknown".to_owned()),
    };
    println!("cargo::rustc-env=CARRACK_BUILD_COMMIT={commit}");
    #[cfg(feature = "slim-inside")]
    agents::write();
}

#[cfg(feature = "slim-inside")]
#[path = "src/agents/pack.rs"]
mod pack;

/// The programs for other hosts, compressed, and what is known of them, as source text for `src/agents`.
#[cfg(feature = "slim-inside")]
mod agents {
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    use super::pack::{Packed, pack};

    /// None where nobody names a directory of them. One that cannot be had ends the build.
    pub fn write() {
        println!("cargo::rerun-if-env-changed=CARRACK_AGENTS");
        let mut source = "pub const AGENTS: &[Row] = &[\n".to_owned();
        for path in programs() {
            let named = path.display();
            println!("cargo::rerun-if-changed={named}");
            let program = std::fs::read(&path).unwrap_or_else(|error| panic!("CARRACK_AGENTS: {named}: {error}"));
            let packed = pack(&program).unwrap_or_else(|why| panic!("CARRACK_AGENTS: {named}: {why}"));
            let Packed { machine, glibc, gzip, size, blake3, cksum, protocol } = &packed;
            assert!(protocol.is_some(), "CARRACK_AGENTS: {named}: it is no carrack");
            let name = format!("{machine}-{cksum}.gz");
            put(&name, gzip);
            let bytes = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"))");
            let _ = writeln!(source, "    ({machine:?}, {glibc:?}, {bytes}, {size}, {blake3:?}, {cksum}),");
        }
        source += "];\n";
        put("agents.rs", source.as_bytes());
    }

    fn put(name: &str, content: &[u8]) {
        let directory = std::env::var("OUT_DIR").expect("cargo names it");
        std::fs::write(Path::new(&directory).join(name), content).expect("cargo's directory takes it");
    }

    /// In the order of their names.
    fn programs() -> Vec<PathBuf> {
        let Some(directory) = std::env::var_os("CARRACK_AGENTS").filter(|path| !path.is_empty()) else {
            return Vec::new();
        };
        println!("cargo::rerun-if-changed={}", directory.display());
        let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("CARRACK_AGENTS: {error}"));
        let mut programs: Vec<PathBuf> = entries.map(|entry| entry.expect("it is read").path()).collect();
        programs.sort();
        programs
    }
}

fn commit_of_git() -> Option<String> {
    // An unpacked archive may lie inside somebody else's repository: its commit is not ours.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    watch();
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if changed { format!("{commit}, modified") } else { commit })
}

/// Names what the answer depends on. A file that does not exist would make cargo run this every time.
fn watch() {
    for name in ["HEAD", "index", "packed-refs", "refs/heads"] {
        // Asked of git, because in a linked worktree `.git` is a file.
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // An edited source makes the tree "modified" without git hearing of it.
    if Path::new("../../crates").exists() {
        println!("cargo::rerun-if-changed=../../crates");
    }
}

/// The trimmed output of a git command run in this crate's directory; `None` if it failed or git is not there.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
