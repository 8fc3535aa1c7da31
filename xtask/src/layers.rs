//! Who may import whom, which module stands on which floor of its crate ([`floors`]), what the core may touch, where `unsafe` may stand,
//! and that storage reaches files through a directory's handle. See ARCHITECTURE.md for why.
//!
//! The arrows are read from the manifests; the rest is read from the text, tests left out.

use std::fs;
use std::path::Path;

use crate::Finding;
use crate::floors;
use crate::source::{self, Source, words};

/// Which crates of ours each crate may depend on, also for its tests and its build.
const ARROWS: &[(&str, &[&str])] = &[
    ("carrack-core", &[]),
    ("carrack-sys", &[]),
    ("carrack-engine", &["carrack-core", "carrack-sys"]),
    // For tests alone; see DEV_ONLY.
    ("carrack-faults", &["carrack-sys"]),
    ("carrack-service", &["carrack-engine", "carrack-core"]),
    ("carrack", &["carrack-service", "carrack-engine", "carrack-core", "carrack-sys", "carrack-faults"]),
];

/// What may be depended on by tests only.
const DEV_ONLY: &str = "carrack-faults";

const CORE: &str = "crates/carrack-core/src/";
const SYS: &str = "crates/carrack-sys/";
const STORAGE: &str = "crates/carrack-engine/src/storage";

/// Modules and packages that the core may not name.
const IMPURE_PATHS: &[&str] = &["std::fs", "std::net", "std::thread", "std::env", "std::process", "rand", "tokio"];

/// Words that the core may not use, each with what to do instead.
const IMPURE_WORDS: &[(&str, &str)] = &[
    ("SystemTime", "take the time as an argument"),
    ("Instant::now", "take the time as an argument"),
    (".elapsed()", "take the time as an argument"),
    ("async", "be a machine that the engine drives"),
    ("println!", "return what there is to say"),
    ("eprintln!", "return what there is to say"),
    ("print!", "return what there is to say"),
    ("eprint!", "return what there is to say"),
];

/// Calls that open a file by a path that may change under us.
const PATH_CALLS: &[&str] = &["File::open", "File::create", "OpenOptions", "DirBuilder"];

/// Files of the storage that may open by path, each with its reason.
const PATH_CALLS_ALLOWED: &[(&str, &str)] =
    &[("crates/carrack-engine/src/storage/place.rs", "turns what a user typed, who may go anywhere, into handles")];

pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    let crates = root.join("crates");
    let cannot = |e| format!("cannot list {}: {e}", crates.display());
    for entry in fs::read_dir(&crates).map_err(cannot)? {
        let manifest = entry.map_err(cannot)?.path().join("Cargo.toml");
        if manifest.is_file() {
            let path = source::relative(root, &manifest);
            findings.extend(arrows(&path, &source::read(&manifest)?));
        }
    }
    let sources = source::read_all(root, &["crates", "xtask", "fuzz"])?;
    findings.extend(floors::check(&sources));
    for source in sources {
        if source.path.starts_with(CORE) {
            findings.extend(purity(&source));
        }
        if !source.path.starts_with(SYS) {
            findings.extend(no_unsafe(&source));
        }
        if source.path.starts_with(STORAGE) {
            findings.extend(no_path_calls(&source));
        }
    }
    for (path, reason) in PATH_CALLS_ALLOWED {
        if !root.join(path).is_file() {
            findings.push(Finding::new(path, 1, format!("allowed ({reason}), but gone")));
        }
    }
    Ok(findings)
}

/// Checks one manifest at `crates/NAME/Cargo.toml`.
fn arrows(path: &str, manifest: &str) -> Vec<Finding> {
    let name = path.split('/').nth(1).unwrap_or_default();
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![Finding::new(path, 1, format!("{name} has no arrows; add it to xtask layers"))];
    };
    let ours = dependencies(manifest).into_iter().filter(|found| found.name.starts_with("carrack"));
    let judge = |found: Dependency| {
        let to = &found.name;
        if !allowed.contains(&to.as_str()) {
            Some(Finding::new(path, found.line, format!("{name} may not depend on {to}")))
        } else if to == DEV_ONLY && !found.is_dev {
            Some(Finding::new(path, found.line, format!("{to} is for tests: only a dev-dependency")))
        } else {
            None
        }
    };
    ours.filter_map(judge).collect()
}

/// A package named in a manifest.
struct Dependency {
    line: usize,
    name: String,
    is_dev: bool,
}

/// The packages named in any dependency table of a manifest.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let mut found = Vec::new();
    let mut in_table = false;
    let mut is_dev = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            // `[target.'cfg(unix)'.dependencies]` ends in the table's name, `[dependencies.NAME]`
            // holds it just before the package's.
            let (parent, last) = header.rsplit_once('.').unwrap_or(("", header));
            in_table = TABLES.contains(&last);
            is_dev = header.contains("dev-dependencies");
            if TABLES.contains(&parent.rsplit('.').next().unwrap_or_default()) {
                found.push(Dependency { line: index + 1, name: unquoted(last), is_dev });
            }
        } else if let Some(name) = renamed(line) {
            found.push(Dependency { line: index + 1, name, is_dev });
        } else if in_table && !line.is_empty() {
            let key = line.split(['.', '=', ' ']).next().unwrap_or_default();
            found.push(Dependency { line: index + 1, name: unquoted(key), is_dev });
        }
    }
    found
}

/// What `other = { package = "NAME" }` really depends on.
fn renamed(line: &str) -> Option<String> {
    let at = words(line, "package").next()?;
    let value = line[at + "package".len()..].trim_start().strip_prefix('=')?;
    value.split('"').nth(1).map(str::to_owned)
}

fn unquoted(key: &str) -> String {
    key.trim().trim_matches(['"', '\'']).to_owned()
}

fn purity(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut impure = |line, what: &str, instead: &str| {
        let what = format!("the core is pure and may not use {what}: {instead}");
        findings.push(Finding::new(&source.path, line, what));
    };
    for (line, import) in source.imports() {
        let named = IMPURE_PATHS.iter().find(|path| is_within(&import, path));
        if let Some(path) = named
            && !source.is_test(line)
        {
            impure(line, path, "leave it to the engine");
        }
    }
    for (line, code) in source.product_lines() {
        for path in IMPURE_PATHS {
            // `rand` alone may be anyone's name; `rand::` is the package, unless it ends a path.
            let called = format!("{path}::");
            if words(code, &called).any(|at| !code[..at].ends_with("::")) {
                impure(line, path, "leave it to the engine");
            }
        }
        for (word, instead) in IMPURE_WORDS {
            let found = if word.starts_with('.') { code.contains(word) } else { words(code, word).count() > 0 };
            if found {
                impure(line, word, instead);
            }
        }
    }
    findings
}

fn is_within(import: &str, path: &str) -> bool {
    import.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn no_unsafe(source: &Source) -> Vec<Finding> {
    let lines = source.code.lines().enumerate();
    lines
        .filter(|(_, code)| words(code, "unsafe").count() > 0)
        .map(|(index, _)| Finding::new(&source.path, index + 1, "unsafe belongs in carrack-sys"))
        .collect()
}

fn no_path_calls(source: &Source) -> Vec<Finding> {
    if PATH_CALLS_ALLOWED.iter().any(|(path, _)| *path == source.path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut banned = |line, what: &str| {
        let what = format!("{what} goes by path; open relative to the root's handle instead");
        findings.push(Finding::new(&source.path, line, what));
    };
    for (line, import) in source.imports() {
        if !source.is_test(line) && import.strip_prefix("std::fs").is_some_and(names_a_function) {
            banned(line, &import);
        }
    }
    for (line, code) in source.product_lines() {
        for at in words(code, "std::fs::") {
            if names_a_function(&code[at + "std::fs".len()..]) {
                banned(line, "std::fs");
            }
        }
        for call in PATH_CALLS {
            if words(code, call).count() > 0 {
                banned(line, call);
            }
        }
    }
    findings
}

/// Whether what follows `std::fs` is the module itself, all of it, or one of its functions; its
/// types start with a capital.
fn names_a_function(rest: &str) -> bool {
    rest.is_empty()
        || rest.strip_prefix("::").is_some_and(|name| name.starts_with(|c: char| c == '*' || c.is_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<usize> {
        let mut lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        lines.dedup();
        lines
    }

    #[test]
    fn every_way_to_name_a_dependency_is_read() {
        let manifest = "\
[package]
name = \"carrack-x\"

[dependencies]
a = \"1\" # comment
b.workspace = true
\"c\" = { version = \"1\" }
# d = \"1\"
e = { package = \"real\", version = \"1\" }

[dependencies.f]
version = \"1\"

[dev-dependencies]
g = \"1\"

[target.'cfg(unix)'.build-dependencies]
h = \"1\"

[target.'cfg(unix)'.dependencies.i]
package = \"renamed\"

[features]
j = []
";
        let found = dependencies(manifest);
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "real", "f", "g", "h", "i", "renamed"]);
        assert_eq!(found[0].line, 5);
        let dev: Vec<&str> = found.iter().filter(|found| found.is_dev).map(|found| found.name.as_str()).collect();
        assert_eq!(dev, ["g"]);
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
            for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
                let manifest = format!("[{table}]\n{to}.workspace = true\n");
                let findings = arrows(&format!("crates/{name}/Cargo.toml"), &manifest);
                assert_eq!(findings.is_empty(), allowed, "{name} to {to}: {findings:?}");
            }
        }
    }

    #[test]
    fn makers_of_faults_are_for_tests() {
        for (table, name, count) in [
            ("dev-dependencies", "carrack", 0),
            ("dependencies", "carrack", 1),
            ("dev-dependencies", "carrack-core", 1),
        ] {
            let manifest = format!("[{table}]\n{DEV_ONLY}.workspace = true\n");
            assert_eq!(arrows(&format!("crates/{name}/Cargo.toml"), &manifest).len(), count, "{name} {table}");
        }
    }

    #[test]
    fn the_core_may_not_reach_out() {
        let text = "\
use std::time::{Duration, Instant};
use std::{fmt, fs};
fn f(rand: u8) -> crate::rand::Seed { \"std::net::\" }
fn g() { std::thread::spawn(h) }
fn h() { Instant::now() }
async fn i() { println!(\"\") }
fn j(at: Instant, now: Instant) { now.duration_since(at) }
fn k(at: Instant) { at.elapsed() }
fn l() { tokio::spawn() }
#[cfg(test)]
mod tests {
    use std::fs;
}
";
        let findings = purity(&Source::new("crates/carrack-core/src/a.rs", text.to_owned()));
        assert_eq!(lines(&findings), [2, 4, 5, 6, 8, 9], "{findings:#?}");
    }

    #[test]
    fn unsafe_is_found_in_code_only() {
        let text = "#![forbid(unsafe_code)]\n// unsafe\nfn f() { unsafe { g() } }\n";
        let findings = no_unsafe(&Source::new("crates/carrack/src/a.rs", text.to_owned()));
        assert_eq!(lines(&findings), [3]);
    }

    #[test]
    fn storage_may_not_go_by_path() {
        let text = "\
use std::fs::File;
use std::fs::{self, Metadata};
fn f() { File::open(p) }
fn g() { std::fs::rename(a, b) }
fn h(file: &std::fs::File) { sys::openat(dir, name) }
#[cfg(test)]
mod tests {
    use std::fs;
}
";
        let findings = no_path_calls(&Source::new("crates/carrack-engine/src/storage/posix.rs", text.to_owned()));
        assert_eq!(lines(&findings), [2, 3, 4], "{findings:#?}");
    }
}
