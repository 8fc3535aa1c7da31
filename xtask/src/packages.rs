//! What each build of the program links: few packages, none of the banned ones. Read from `cargo tree`, for the host's own target, so
//! that packages for other systems do not count.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::process::Command;

use crate::{Finding, cargo, output};

/// A way to build the program, and what it may link.
struct Build {
    /// How a person calls it.
    name: &'static str,
    /// What chooses its features.
    features: &'static [&'static str],
    /// Third-party packages, build scripts' included; each one is somebody to trust.
    packages_max: usize,
    /// Packages that may not be linked, each with its reason.
    banned: &'static [&'static [Banned]],
}

/// A package and why it may not be linked.
type Banned = (&'static str, &'static str);

const BUILDS: &[Build] = &[
    // What is sent to hosts that have none.
    Build {
        name: "slim",
        features: &["--no-default-features"],
        packages_max: 60,
        banned: &[BANNED, BANNED_FROM_DATA_PATH],
    },
    Build { name: "full", features: &[], packages_max: 280, banned: &[BANNED] },
];

const BANNED: &[Banned] = &[
    ("ring", "one crypto provider: aws-lc-rs"),
    ("openssl-sys", "one crypto provider: aws-lc-rs"),
    ("native-tls", "one TLS: rustls"),
    ("rsa", "not constant-time"),
    ("async-std", "no longer maintained"),
];

const BANNED_FROM_DATA_PATH: &[Banned] = &[("tokio", "the data path is plain threads")];

pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let host = host()?;
    let mut findings = Vec::new();
    for build in BUILDS {
        let found = third_party(&tree(root, &host, build.features)?);
        println!("{} build: {} third-party packages of at most {}", build.name, found.len(), build.packages_max);
        findings.extend(judge(build, &found));
    }
    Ok(findings)
}

fn judge(build: &Build, found: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |what: String| findings.push(Finding::new("Cargo.lock", 1, format!("{} build: {what}", build.name)));
    if found.len() > build.packages_max {
        add(format!("{} third-party packages of at most {}", found.len(), build.packages_max));
    }
    for package in found {
        let name = package.split(' ').next().unwrap_or_default();
        if let Some((_, reason)) = build.banned.concat().iter().find(|(banned, _)| *banned == name) {
            add(format!("{package} is banned: {reason}"));
        }
    }
    findings
}

/// The triple of this machine, such as `x86_64-unknown-linux-gnu`.
fn host() -> Result<String, String> {
    let said = output(Command::new(env::var_os("RUSTC").unwrap_or("rustc".into())).arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("rustc -vV names no host:\n{said}"))
}

/// What `cargo tree` prints; from the network only when the packages are not all here yet.
fn tree(root: &Path, host: &str, features: &[&str]) -> Result<String, String> {
    let tree = |more: &[&str]| {
        let args = "tree -p carrack -e normal,build --prefix none --locked --target".split(' ');
        output(cargo().current_dir(root).args(args).arg(host).args(features).args(more))
    };
    tree(&["--offline"]).or_else(|_| tree(&[]))
}

/// Each package as `NAME vVERSION`, once; those with a path on this machine are ours.
fn third_party(tree: &str) -> BTreeSet<String> {
    let foreign = tree.lines().filter(|line| !line.is_empty() && !line.contains(" (/"));
    foreign.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_counted_once_and_ours_not_at_all() {
        let tree = "carrack v0.1.0 (/src/crates/carrack)\nsyn v2.0.1\nsyn v3.0.0\nsyn v2.0.1 (*)\n\n\
                    derive v1.0.0 (proc-macro)\nforked v1.0.0 (https://example.org/forked#0123)\n";
        let found: Vec<String> = third_party(tree).into_iter().collect();
        assert_eq!(found, ["derive v1.0.0", "forked v1.0.0", "syn v2.0.1", "syn v3.0.0"]);
    }

    #[test]
    fn judge_counts_packages_and_finds_banned_ones() {
        let many = |count| (0..count).map(|n| format!("p{n} v1.0.0")).collect::<BTreeSet<_>>();
        let banned: BTreeSet<String> = ["ring v0.17.0", "ring-buffer v1.0.0", "tokio v1.0.0"].map(str::to_owned).into();
        for build in BUILDS {
            assert!(judge(build, &many(build.packages_max)).is_empty());
            assert_eq!(judge(build, &many(build.packages_max + 1)).len(), 1);
            let findings = judge(build, &banned);
            assert_eq!(findings.len(), if build.name == "slim" { 2 } else { 1 }, "{findings:?}");
        }
    }
}
