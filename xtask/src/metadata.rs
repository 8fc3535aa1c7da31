//! The packages of the workspace and of what it depends on, as `cargo metadata` tells them.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{cargo, output};

/// A package, ours or somebody else's.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// An SPDX expression; none where the package has a file instead, or nothing.
    pub license: Option<String>,
    /// Where it comes from; none of a path on this machine.
    pub source: Option<String>,
    /// Named in its manifest, for tests and the build as well.
    pub dependencies: Vec<Dependency>,
}

/// A package named in a manifest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// As it is called in its registry, whatever the manifest calls it.
    pub name: String,
    /// For tests, benches and examples alone.
    pub is_dev: bool,
}

/// The members of the workspace.
pub fn members(root: &Path) -> Result<Vec<Package>, String> {
    packages(&ask(root, &["metadata", "--format-version=1", "--no-deps"])?)
}

/// Every package of others that is built for this target, those of tests included. Metadata also has
/// those that nothing turns on.
pub fn all(root: &Path, target: &str) -> Result<Vec<Package>, String> {
    let used = used(root, target, &["--workspace", "-e", "normal,build,dev"])?;
    let args = ["metadata", "--format-version=1", "--locked", "--filter-platform", target];
    let mut found = packages(&ask(root, &args)?)?;
    found.retain(|package| used.contains(&format!("{} v{}", package.name, package.version)));
    Ok(found)
}

/// The packages of others, each as `NAME vVERSION`, that `cargo tree` prints with these arguments for a target.
pub fn used(root: &Path, target: &str, args: &[&str]) -> Result<BTreeSet<String>, String> {
    Ok(third_party(&ask(root, &[&["tree", "--prefix=none", "--locked", "--target", target], args].concat())?))
}

/// All that `cargo metadata` tells, of every package that the lock file names.
pub fn everything(root: &Path) -> Result<Value, String> {
    let told = ask(root, &["metadata", "--format-version=1", "--locked"])?;
    serde_json::from_str(&told).map_err(|error| format!("cargo metadata is no JSON: {error}"))
}

/// Where cargo puts what it builds.
pub fn target_directory(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |directory| root.join(directory))
}

/// The triple of this machine, such as `x86_64-unknown-linux-gnu`.
pub fn host() -> Result<String, String> {
    let said = output(Command::new(env::var_os("RUSTC").unwrap_or("rustc".into())).arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("rustc -vV names no host:\n{said}"))
}

/// Asks cargo; from the network only when the packages are not all here yet.
fn ask(root: &Path, args: &[&str]) -> Result<String, String> {
    let ask = |more: &[&str]| output(cargo().current_dir(root).args(args).args(more));
    ask(&["--offline"]).or_else(|_| ask(&[]))
}

/// Each package of a tree once; those with a path on this machine are ours.
fn third_party(tree: &str) -> BTreeSet<String> {
    let foreign = tree.lines().filter(|line| !line.is_empty() && !line.contains(" (/"));
    foreign.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

fn packages(metadata: &str) -> Result<Vec<Package>, String> {
    let metadata: Value = serde_json::from_str(metadata).map_err(|e| format!("cargo metadata is no JSON: {e}"))?;
    let all = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    Ok(all.iter().map(package).collect())
}

fn package(package: &Value) -> Package {
    let text = |of: &Value, key: &str| of[key].as_str().map(str::to_owned);
    let named = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice).iter();
    let dependency = |named: &Value| Some(Dependency { name: text(named, "name")?, is_dev: named["kind"] == "dev" });
    Package {
        name: text(package, "name").unwrap_or_default(),
        version: text(package, "version").unwrap_or_default(),
        license: text(package, "license"),
        source: text(package, "source"),
        dependencies: named.filter_map(dependency).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_with_their_dependencies() {
        let text = r#"{"packages": [
            {"name": "a", "version": "1.0.0", "license": "MIT", "source": "registry+x", "dependencies": []},
            {"name": "b", "version": "0.1.0", "license": null, "source": null, "dependencies": [
                {"name": "a", "kind": null, "rename": "other"}, {"name": "c", "kind": "dev", "rename": null},
                {"name": "d", "kind": "build", "rename": null}]}]}"#;
        let found = packages(text).unwrap();
        assert_eq!(found[0].license.as_deref(), Some("MIT"));
        assert_eq!(found[0].source.as_deref(), Some("registry+x"));
        assert_eq!((found[1].name.as_str(), found[1].source.as_ref(), found[1].license.as_ref()), ("b", None, None));
        let named: Vec<_> = found[1].dependencies.iter().map(|named| (named.name.as_str(), named.is_dev)).collect();
        assert_eq!(named, [("a", false), ("c", true), ("d", false)]);
        assert!(packages("{}").is_err());
    }

    #[test]
    fn packages_are_counted_once_and_ours_not_at_all() {
        let tree = "carrack v0.1.0 (/src/crates/carrack)\nsyn v2.0.1\nsyn v3.0.0\nsyn v2.0.1 (*)\n\n\
                    derive v1.0.0 (proc-macro)\nforked v1.0.0 (https://example.org/forked#0123)\n";
        let found: Vec<String> = third_party(tree).into_iter().collect();
        assert_eq!(found, ["derive v1.0.0", "forked v1.0.0", "syn v2.0.1", "syn v3.0.0"]);
    }
}
