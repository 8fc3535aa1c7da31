//! What the binary links: few packages, none of the banned ones. Read from `cargo tree`, for the
//! host's own target, so that packages for other systems do not count.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::process::Command;

use crate::{Finding, cargo, output};

/// Third-party packages, build scripts' included; each one is somebody to trust.
const PACKAGES_MAX: usize = 60;

/// Packages that may not be linked, each with its reason.
const BANNED: &[(&str, &str)] = &[
    ("ring", "one crypto provider: aws-lc-rs"),
    ("openssl-sys", "one crypto provider: aws-lc-rs"),
    ("native-tls", "one TLS: rustls"),
    ("rsa", "not constant-time"),
    ("async-std", "the data path is plain threads"),
    ("tokio", "the data path is plain threads"),
];

pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let found = third_party(&tree(root, &host()?)?);
    println!("{} third-party packages of at most {PACKAGES_MAX}", found.len());
    Ok(judge(&found))
}

fn judge(found: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |what: String| findings.push(Finding::new("Cargo.lock", 1, what));
    if found.len() > PACKAGES_MAX {
        add(format!("{} third-party packages of at most {PACKAGES_MAX}", found.len()));
    }
    for package in found {
        let name = package.split(' ').next().unwrap_or_default();
        if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == name) {
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
fn tree(root: &Path, host: &str) -> Result<String, String> {
    let tree = |more: &[&str]| {
        let args = "tree -p carrack -e normal,build --prefix none --locked --target".split(' ');
        output(cargo().current_dir(root).args(args).arg(host).args(more))
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
    fn too_many_or_banned_fails() {
        let many = |count| (0..count).map(|n| format!("p{n} v1.0.0")).collect::<BTreeSet<_>>();
        assert!(judge(&many(PACKAGES_MAX)).is_empty());
        assert_eq!(judge(&many(PACKAGES_MAX + 1)).len(), 1);
        let banned = ["ring v0.17.0", "ring-buffer v1.0.0", "tokio v1.0.0"];
        assert_eq!(judge(&banned.map(str::to_owned).into()).len(), 2);
    }
}
