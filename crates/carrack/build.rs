//! Puts the commit into the program, so that `carrack --version` names exactly one source text, and the slim program
//! that it sends to hosts which have none.
//!
//! `CARRACK_COMMIT` overrides what git says, for builds from an archive. Without either the commit is "unknown".
//! `CARRACK_SLIM` is the absolute path of the slim program, built before with `--no-default-features`; without it
//! this program carries none.

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
    println!("cargo::rustc-check-cfg=cfg(slim_inside)");
    #[cfg(feature = "slim-inside")]
    slim::pack();
}

/// The slim program, compressed, and what is known of it, as source text for `src/slim.rs`.
#[cfg(feature = "slim-inside")]
mod slim {
    use std::io::Write;
    use std::path::Path;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    /// Nothing where nobody names a program. One that cannot be had ends the build.
    pub fn pack() {
        println!("cargo::rerun-if-env-changed=CARRACK_SLIM");
        let Some(path) = std::env::var("CARRACK_SLIM").ok().filter(|path| !path.is_empty()) else { return };
        println!("cargo::rerun-if-changed={path}");
        let program = std::fs::read(&path).unwrap_or_else(|error| panic!("CARRACK_SLIM: {path}: {error}"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let packed = encoder.write_all(&program).and_then(|()| encoder.finish()).expect("memory takes all");
        let source = format!(
            "/// Packed by the build script.\npub static PROGRAM: SlimProgram = SlimProgram {{ gzip: include_bytes!(\"slim.gz\"), \
             size: {}, blake3: {:?}, cksum: {}, unpack }};\n",
            program.len(),
            blake3::hash(&program).as_bytes(),
            cksum(&program),
        );
        let directory = std::env::var("OUT_DIR").expect("cargo names it");
        for (name, content) in [("slim.gz", &packed[..]), ("slim.rs", source.as_bytes())] {
            std::fs::write(Path::new(&directory).join(name), content).expect("cargo's directory takes it");
        }
        println!("cargo::rustc-cfg=slim_inside");
    }

    /// What POSIX's `cksum` says: bit by bit, for one file in a build.
    fn cksum(bytes: &[u8]) -> u32 {
        let length = bytes.len().to_le_bytes();
        let significant = length.len() - length.iter().rev().take_while(|byte| **byte == 0).count();
        let mut sum = 0_u32;
        for byte in bytes.iter().chain(&length[..significant]) {
            sum ^= u32::from(*byte) << 24;
            for _ in 0..8 {
                sum = (sum << 1) ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 };
            }
        }
        !sum
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
