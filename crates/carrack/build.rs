//! Puts the commit into the program, so that `carrack --version` names exactly one source text.
//!
//! `CARRACK_COMMIT` overrides what git says, for builds from an archive. Without either the commit is "unknown".

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
