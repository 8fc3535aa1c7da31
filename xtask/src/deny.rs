//! What cargo-deny checks, where it is not installed: licences, bans, packages of two versions, and where packages come
//! from. The rules are those of `deny.toml`, which cargo-deny reads as well; a rule that is not understood here is an
//! error. Advisories need a database from the network and are left to cargo-deny.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use spdx::{Expression, Licensee, ParseMode};
use toml_edit::{DocumentMut, Item, Value};

use crate::Finding;
use crate::metadata::{self, Package};
use crate::source;

const RULES: &str = "deny.toml";
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What `deny.toml` says.
#[derive(Debug, Default)]
struct Rules {
    targets: Vec<String>,
    licenses: Vec<Licensee>,
    /// Packages that may not be there, each with its reason.
    banned: Vec<(String, String)>,
    /// Packages and the start of their version that may stand beside another version.
    doubled: Vec<(String, String)>,
}

pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let rules = Rules::read(&source::read(&root.join(RULES))?)?;
    let mut packages = BTreeSet::new();
    for target in &rules.targets {
        packages.extend(metadata::all(root, target)?);
    }
    println!("{} packages of {} targets compared with {RULES}", packages.len(), rules.targets.len());
    Ok(rules.judge(&packages))
}

impl Rules {
    fn read(text: &str) -> Result<Self, String> {
        let document: DocumentMut = text.parse().map_err(|e| format!("{RULES}: {e}"))?;
        let mut rules = Self::default();
        for (table, keys) in document.iter() {
            let keys = keys.as_table().ok_or(format!("{RULES}: {table} is no table"))?;
            for (key, value) in keys.iter() {
                rules.take(table, key, value).map_err(|why| format!("{RULES}: {table}.{key}: {why}"))?;
            }
        }
        let empty = [("graph.targets", rules.targets.is_empty()), ("licenses.allow", rules.licenses.is_empty())];
        match empty.iter().find(|(_, empty)| *empty) {
            Some((what, _)) => Err(format!("{RULES}: {what} names nothing")),
            None => Ok(rules),
        }
    }

    fn take(&mut self, table: &str, key: &str, value: &Item) -> Result<(), String> {
        match (table, key) {
            ("graph", "targets") => self.targets = texts(value)?,
            ("licenses", "allow") => {
                let parse = |name: String| Licensee::parse(&name).map_err(|e| e.to_string());
                self.licenses = texts(value)?.into_iter().map(parse).collect::<Result<_, _>>()?;
            }
            ("bans", "deny") => self.banned = named(value)?,
            ("bans", "skip") => {
                let parts = |(name, _): (String, String)| {
                    let (name, version) = name.split_once('@').ok_or(format!("{name} has no version"))?;
                    Ok((name.to_owned(), version.to_owned()))
                };
                self.doubled = named(value)?.into_iter().map(parts).collect::<Result<_, String>>()?;
            }
            // Checked always.
            ("bans", "multiple-versions") | ("sources", "unknown-registry" | "unknown-git")
                if value.as_str() == Some("deny") => {}
            // Nothing to check here.
            ("licenses", "unused-allowed-license") | ("advisories", _) => {}
            _ => return Err(format!("{} is not understood", value.to_string().trim())),
        }
        Ok(())
    }

    fn judge(&self, packages: &BTreeSet<Package>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |what: String| findings.push(Finding::new("Cargo.lock", 1, what));
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        // Ours have a path.
        for package in packages {
            let (name, version) = (package.name.as_str(), package.version.as_str());
            let Some(source) = &package.source else { continue };
            if let Err(why) = self.licence(package) {
                add(format!("{name} {version}: {why}"));
            }
            if source != CRATES_IO {
                add(format!("{name} {version} comes from {source}"));
            }
            if let Some((_, reason)) = self.banned.iter().find(|(banned, _)| banned == name) {
                add(format!("{name} {version} is banned: {reason}"));
            }
            if !self.doubled.iter().any(|(skipped, from)| skipped == name && starts(version, from)) {
                versions.entry(name).or_default().push(version);
            }
        }
        for (name, versions) in versions.into_iter().filter(|(_, versions)| versions.len() > 1) {
            add(format!("{name} is there in versions {}", versions.join(", ")));
        }
        findings
    }

    fn licence(&self, package: &Package) -> Result<(), String> {
        let text = package.license.as_deref().ok_or("it names no licence")?;
        // Old packages write a slash for "or".
        let expression = Expression::parse_mode(text, ParseMode::LAX).map_err(|e| format!("licence {text:?}: {e}"))?;
        let allowed = expression.evaluate(|asked| self.licenses.iter().any(|licence| licence.satisfies(asked)));
        if allowed { Ok(()) } else { Err(format!("licence {text} is not allowed")) }
    }
}

/// Whether a version is `from`, or goes on behind it.
fn starts(version: &str, from: &str) -> bool {
    version.strip_prefix(from).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn texts(value: &Item) -> Result<Vec<String>, String> {
    let array = value.as_array().ok_or("no list")?;
    array.iter().map(|text| Ok(text.as_str().ok_or("no text in a list")?.to_owned())).collect()
}

/// A list of `{ crate = "NAME", reason = "WHY" }`.
fn named(value: &Item) -> Result<Vec<(String, String)>, String> {
    let array = value.as_array().ok_or("no list")?;
    let field = |of: &Value, key: &str| {
        let text = of.as_inline_table().and_then(|table| table.get(key)).and_then(Value::as_str);
        text.map(str::to_owned).ok_or(format!("{} has no {key}", of.to_string().trim()))
    };
    array.iter().map(|entry| Ok((field(entry, "crate")?, field(entry, "reason")?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[graph]
targets = ["x86_64-unknown-linux-gnu"]
[licenses]
allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]
[bans]
multiple-versions = "deny"
deny = [{ crate = "ring", reason = "one provider" }]
skip = [{ crate = "syn@2", reason = "derives" }]
[sources]
unknown-registry = "deny"
"#;

    fn package(name: &str, version: &str, license: &str) -> Package {
        let (license, source) = (Some(license.to_owned()), Some(CRATES_IO.to_owned()));
        Package { name: name.to_owned(), version: version.to_owned(), license, source, ..Package::default() }
    }

    fn whats(packages: impl IntoIterator<Item = Package>) -> Vec<String> {
        let rules = Rules::read(TEXT).unwrap();
        rules.judge(&packages.into_iter().collect()).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn licences_are_read_as_expressions() {
        let fine = ["MIT", "MIT/GPL-3.0", "(MIT OR GPL-3.0) AND Unicode-3.0", "Apache-2.0 WITH LLVM-exception OR ISC"];
        for license in fine {
            assert_eq!(whats([package("a", "1.0.0", license)]), [""; 0], "{license}");
        }
        for license in ["GPL-3.0", "MIT AND GPL-3.0", "ISC", "nothing known"] {
            assert_eq!(whats([package("a", "1.0.0", license)]).len(), 1, "{license}");
        }
        let silent = Package { license: None, ..package("a", "1.0.0", "") };
        assert_eq!(whats([silent]), ["a 1.0.0: it names no licence"]);
    }

    #[test]
    fn banned_packages_and_foreign_sources_are_found() {
        assert_eq!(whats([package("ring", "0.17.0", "MIT")]), ["ring 0.17.0 is banned: one provider"]);
        assert_eq!(whats([package("ring-buffer", "1.0.0", "MIT")]), [""; 0]);
        let source = Some("git+https://example.org/a".to_owned());
        let foreign = Package { source, ..package("a", "1.0.0", "MIT") };
        assert_eq!(whats([foreign]), ["a 1.0.0 comes from git+https://example.org/a"]);
        assert_eq!(whats([Package { source: None, ..package("ours", "0.1.0", "GPL-3.0") }]), [""; 0]);
    }

    #[test]
    fn versions_of_one_package_are_found_unless_one_is_skipped() {
        assert_eq!(whats(["2.0.1", "3.0.0"].map(|version| package("syn", version, "MIT"))), [""; 0]);
        let both = ["20.0.1", "3.0.0"].map(|version| package("syn", version, "MIT"));
        assert_eq!(whats(both), ["syn is there in versions 20.0.1, 3.0.0"]);
        let other = ["1.0.0", "2.0.0"].map(|version| package("libc", version, "MIT"));
        assert_eq!(whats(other), ["libc is there in versions 1.0.0, 2.0.0"]);
    }

    #[test]
    fn rule_that_is_not_understood_is_an_error() {
        let cases = [
            ("[bans]\nmultiple-versions = \"warn\"", "bans.multiple-versions: \"warn\" is not understood"),
            ("[licenses]\nexceptions = []", "licenses.exceptions: [] is not understood"),
            ("[bans]\ndeny = [{ name = \"ring\" }]", "bans.deny: { name = \"ring\" } has no crate"),
            ("[bans]\nskip = [{ crate = \"syn\", reason = \"x\" }]", "bans.skip: syn has no version"),
            ("[licenses]\nallow = [\"MIT\"]", "graph.targets names nothing"),
        ];
        for (text, why) in cases {
            assert_eq!(Rules::read(text).unwrap_err(), format!("deny.toml: {why}"));
        }
    }
}
