//! Who may import whom, and which module stands on which floor of its crate ([`floors`]). See ARCHITECTURE.md for why.
//!
//! The arrows are those of the manifests, as cargo reads them. What the core and the engine may touch is said in
//! their `clippy.toml`, and that `unsafe` stands in `carrack-sys` alone in the lints of the workspace: clippy and
//! the compiler check both.

use std::path::Path;

use crate::Finding;
use crate::floors;
use crate::metadata::{self, Dependency, Package};
use crate::source;

/// Which crates of ours each crate may depend on, also for its tests and its build.
const ARROWS: &[(&str, &[&str])] = &[
    ("carrack-core", &[]),
    ("carrack-sys", &[]),
    // Its tests see its inside.
    ("carrack-engine", &["carrack-core", "carrack-sys", "carrack-engine", "carrack-faults"]),
    ("carrack-measure", &["carrack-core", "carrack-sys"]),
    ("carrack-receipt", &["carrack-engine", "carrack-core"]),
    // Rules are pure; their tests read fixtures.
    ("carrack-doctor", &["carrack-core", "carrack-sys"]),
    // A program of somebody else's that has the engine inside.
    ("carrack-face", &["carrack-engine", "carrack-core"]),
    // For tests alone; see DEV_ONLY.
    ("carrack-faults", &["carrack-engine", "carrack-core", "carrack-sys"]),
    ("carrack-service", &["carrack-engine", "carrack-core", "carrack-receipt"]),
    (
        "carrack",
        &[
            "carrack-service",
            "carrack-engine",
            "carrack-doctor",
            "carrack-measure",
            "carrack-receipt",
            "carrack-core",
            "carrack-sys",
            "carrack-faults",
        ],
    ),
];

/// What may be depended on by tests only.
const DEV_ONLY: &str = "carrack-faults";

/// Packages of others that the core may name: each is as pure as the core is.
const CORE_PACKAGES: &[&str] = &["blake3", "crc32c", "data-encoding", "prost", "serde"];

/// Crates whose `clippy.toml` says which calls are not theirs to make.
const RESTRAINED: &[&str] = &["carrack-core", "carrack-doctor", "carrack-engine", "carrack-measure"];

pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for package in metadata::members(root)?.iter().filter(|package| package.name.starts_with("carrack")) {
        findings.extend(arrows(package));
    }
    for name in RESTRAINED {
        let path = format!("crates/{name}/clippy.toml");
        if !source::read(&root.join(&path))?.contains("disallowed-methods") {
            findings.push(Finding::new(&path, 1, "forbids no calls"));
        }
    }
    findings.extend(floors::check(&source::read_all(root, &["crates"])?));
    Ok(findings)
}

/// Checks what one package of ours depends on.
fn arrows(package: &Package) -> Vec<Finding> {
    let name = package.name.as_str();
    let path = format!("crates/{name}/Cargo.toml");
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![Finding::new(&path, 1, format!("{name} has no arrows; add it to xtask layers"))];
    };
    let judge = |found: &Dependency| {
        let to = found.name.as_str();
        if !to.starts_with("carrack") {
            let pure = name != "carrack-core" || found.is_dev || CORE_PACKAGES.contains(&to);
            return (!pure).then(|| Finding::new(&path, 1, format!("{to} is not known to be pure, as {name} is")));
        }
        if !allowed.contains(&to) {
            Some(Finding::new(&path, 1, format!("{name} may not depend on {to}")))
        } else if to == DEV_ONLY && !found.is_dev {
            Some(Finding::new(&path, 1, format!("{to} is for tests: only a dev-dependency")))
        } else {
            None
        }
    };
    package.dependencies.iter().filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depending(name: &str, to: &str, is_dev: bool) -> Package {
        let dependencies = vec![Dependency { name: to.to_owned(), is_dev }];
        Package { name: name.to_owned(), dependencies, ..Package::default() }
    }

    #[test]
    fn arrows_point_one_way() {
        for (name, to, allowed) in [
            ("carrack-core", "blake3", true),
            ("carrack-core", "carrack-sys", false),
            ("carrack-sys", "carrack-core", false),
            ("carrack-engine", "carrack-core", true),
            ("carrack-engine", "carrack-service", false),
            ("carrack-service", "carrack-engine", true),
            ("carrack-service", "carrack-sys", false),
            ("carrack", "carrack-service", true),
            ("carrack-new", "blake3", false),
        ] {
            for is_dev in [false, true] {
                let findings = arrows(&depending(name, to, is_dev));
                assert_eq!(findings.is_empty(), allowed, "{name} to {to}: {findings:?}");
            }
        }
    }

    #[test]
    fn makers_of_faults_are_for_tests() {
        for (is_dev, name, count) in [(true, "carrack", 0), (false, "carrack", 1), (true, "carrack-core", 1)] {
            assert_eq!(arrows(&depending(name, DEV_ONLY, is_dev)).len(), count, "{name} {is_dev}");
        }
    }

    #[test]
    fn core_depends_on_what_is_pure() {
        assert_eq!(arrows(&depending("carrack-core", "rand", false)).len(), 1);
        assert!(arrows(&depending("carrack-core", "rand", true)).is_empty());
        assert!(arrows(&depending("carrack-engine", "rand", false)).is_empty());
    }
}
