//! What each build of the program links: few packages, none of the banned ones. Read from `cargo tree`, for the host's
//! own target, so that packages for other systems do not count.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{Finding, deny, metadata};

/// A way to build the program, and what it may link.
struct Build {
    /// How a person calls it.
    name: &'static str,
    /// What chooses its features.
    features: &'static [&'static str],
    /// Third-party packages, build scripts' included; each one is somebody to trust.
    packages_max: usize,
    /// Packages that may not be linked, beside those that `deny.toml` bans from everything; each with its reason.
    banned: &'static [Banned],
}

/// A package and why it may not be linked.
type Banned = (&'static str, &'static str);

const BUILDS: &[Build] = &[
    // What is sent to hosts that have none.
    Build {
        name: "slim",
        features: &["--no-default-features"],
        packages_max: 60,
        banned: &[("tokio", "the data path is plain threads")],
    },
    Build { name: "full", features: &[], packages_max: 280, banned: &[] },
];

pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let host = metadata::host()?;
    let mut findings = deny::check(root)?;
    for build in BUILDS {
        let found = metadata::used(root, &host, &[&["-p", "carrack", "-e", "normal,build"], build.features].concat())?;
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
        if let Some((_, reason)) = build.banned.iter().find(|(banned, _)| *banned == name) {
            add(format!("{package} is banned: {reason}"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judge_counts_packages_and_finds_banned_ones() {
        let many = |count| (0..count).map(|n| format!("p{n} v1.0.0")).collect::<BTreeSet<_>>();
        let banned: BTreeSet<String> = ["tokio-like v0.1.0", "tokio v1.0.0"].map(str::to_owned).into();
        for build in BUILDS {
            assert!(judge(build, &many(build.packages_max)).is_empty());
            assert_eq!(judge(build, &many(build.packages_max + 1)).len(), 1);
            let findings = judge(build, &banned);
            assert_eq!(findings.len(), usize::from(build.name == "slim"), "{findings:?}");
        }
    }
}
