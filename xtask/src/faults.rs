//! The table of faults names the tests that show what it says: each of them must exist, and a row without one must say
//! so. So do other documents, by tables whose last column is "shown by".
//!
//! A test is named by its crate and its path in it: `core transfer::hostile::sender::name`, `engine
//! hostile::names::name`, `system faults::name`.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::source::Source;

/// Where the table is.
pub const TABLE: &str = "docs/internals/faults.md";
/// Other documents with tables whose last column names tests, or scripts of `bench/`.
pub const SHOWN_ELSEWHERE: &[&str] = &["docs/comparison.md", "docs/operations.md", "docs/internals/testing.md"];
/// What a row says whose last column names no test.
const NOT_SHOWN: &str = "not shown yet";
/// The heading of that column.
const SHOWN_BY: &str = "shown by";

/// Every test of these sources as the table names it.
pub fn names(sources: &[Source]) -> BTreeSet<String> {
    let placed: BTreeMap<String, String> = sources.iter().flat_map(Source::placed_modules).collect();
    let named = |source: &Source| {
        let (package, module) = place(placed.get(&source.path).unwrap_or(&source.path))?;
        let tests = source.tests().into_iter().map(move |test| {
            let parts: Vec<&str> = module.iter().map(String::as_str).chain([test.as_str()]).collect();
            format!("{package} {}", parts.join("::"))
        });
        Some(tests.collect::<Vec<_>>())
    };
    sources.iter().filter_map(named).flatten().collect()
}

/// The short name of a file's crate, and its module there.
fn place(path: &str) -> Option<(String, Vec<String>)> {
    let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    let (package, kind, rest) = match parts.as_slice() {
        ["crates", package, kind, rest @ ..] => (*package, *kind, rest),
        [package, kind, rest @ ..] => (*package, *kind, rest),
        _ => return None,
    };
    let package = package.strip_prefix("carrack-").unwrap_or(package);
    let mut module: Vec<String> = rest.iter().map(|part| part.to_string()).collect();
    if matches!(module.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        module.pop();
    }
    match (package, kind) {
        // The system tests are the program's, and have a name of their own.
        ("carrack", "tests") if !module.is_empty() => Some((module.remove(0), module)),
        (_, "src" | "tests") => Some((package.to_owned(), module)),
        _ => None,
    }
}

/// What is wrong with the table's last column.
pub fn check(table: &str, tests: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in table.lines().enumerate() {
        let mut add = |what: String| findings.push(Finding::new(TABLE, index + 1, what));
        let Some(row) = line.strip_prefix('|') else { continue };
        let cells: Vec<&str> = row.trim_end().trim_end_matches('|').split('|').map(str::trim).collect();
        let is_head = cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' ')));
        let [fault, does, shown] = cells.as_slice() else {
            add(format!("a row of {} cells, not of 3", cells.len()));
            continue;
        };
        if is_head || *shown == SHOWN_BY {
            continue;
        }
        if fault.is_empty() || does.is_empty() {
            add("a row that does not say what happens".to_owned());
        }
        // Between backquotes: every second piece.
        let mut named = shown.split('`').skip(1).step_by(2).peekable();
        if named.peek().is_none() && !shown.contains(NOT_SHOWN) {
            add(format!("no test is named, nor does it say \"{NOT_SHOWN}\""));
        }
        for test in named {
            if !tests.contains(test) {
                add(format!("there is no test `{test}`"));
            }
        }
    }
    findings
}

/// What is wrong with the last column of the tables of a document that is headed "shown by": `tests` are all tests,
/// `is_script` tells whether a script exists.
pub fn check_shown(path: &str, text: &str, tests: &BTreeSet<String>, is_script: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut within = false;
    for (index, line) in text.lines().enumerate() {
        let mut add = |what: String| findings.push(Finding::new(path, index + 1, what));
        let last = line.strip_prefix('|').and_then(|row| row.trim_end().trim_end_matches('|').rsplit('|').next());
        let Some(last) = last.map(str::trim) else {
            within = false;
            continue;
        };
        let is_rule = last.chars().all(|c| matches!(c, '-' | ':'));
        if last == SHOWN_BY || !within || is_rule {
            within |= last == SHOWN_BY;
            continue;
        }
        let mut named = last.split('`').skip(1).step_by(2).peekable();
        if named.peek().is_none() && !last.contains(NOT_SHOWN) {
            add(format!("no test is named, nor does it say \"{NOT_SHOWN}\""));
        }
        let may_be_script = |name: &str| ["bench/", "tests/page/"].iter().any(|start| name.starts_with(start));
        let is_there = |name: &&str| tests.contains(*name) || (may_be_script(name) && is_script(name));
        for name in named.filter(|name| !is_there(name)) {
            add(format!("there is no test or script `{name}`"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(path, text.to_owned())
    }

    #[test]
    fn tests_are_named_by_crate_and_path() {
        let two = "#[test]\nfn plain() {}\nfn other() {}\nmod tests {\n    #[test]\n    fn inner() {}\n}\n";
        let one = "#[test]\n#[cfg(unix)]\nfn it() {}\n";
        let sources = [
            source("crates/carrack-core/src/transfer/mod.rs", two),
            source("crates/carrack-core/src/lib.rs", one),
            source("crates/carrack-core/tests/corpus.rs", one),
            source("crates/carrack-engine/tests/hostile/names.rs", one),
            source("crates/carrack/tests/system/faults.rs", one),
            source("crates/carrack/src/cli/size.rs", one),
            source("crates/carrack/src/cli/mod.rs", "#[cfg(test)]\n#[path = \"pin_tests.rs\"]\nmod tests;\n"),
            source("crates/carrack/src/cli/pin_tests.rs", one),
            source("xtask/src/tidy.rs", one),
        ];
        let names: Vec<String> = names(&sources).into_iter().collect();
        let expected = [
            "carrack cli::size::it",
            "carrack cli::tests::it",
            "core corpus::it",
            "core it",
            "core transfer::plain",
            "core transfer::tests::inner",
            "engine hostile::names::it",
            "system faults::it",
            "xtask tidy::it",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn rows_name_tests_that_there_are() {
        let tests = ["core a::b", "system c"].map(str::to_owned).into();
        let whats = |rows: &str| {
            let table = format!("# Faults\n\n| fault | what | shown by |\n|---|:-:|---|\n{rows}");
            let findings = check(&table, &tests);
            findings.into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect::<Vec<_>>()
        };
        assert!(whats("| S1 x | y | `core a::b`, and `system c` |\n| S2 | y | not shown yet |\n").is_empty());
        assert!(whats("| S1 | y | `core a::b`; of two at once not shown yet |\n").is_empty());
        assert_eq!(whats("| S1 | y | `core a::c` |\n"), ["5: there is no test `core a::c`"]);
        assert_eq!(whats("| S1 | y | by looking |\n"), ["5: no test is named, nor does it say \"not shown yet\""]);
        assert_eq!(whats("| S1 | y |\n"), ["5: a row of 2 cells, not of 3"]);
        assert_eq!(whats("| S1 | | `system c` |\n"), ["5: a row that does not say what happens"]);
    }

    #[test]
    fn tables_of_other_documents_name_tests_and_scripts_that_there_are() {
        let tests = ["system c".to_owned()].into();
        let whats = |text: &str| {
            let findings = check_shown("README.md", text, &tests, |name| name == "bench/a.py");
            findings.into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect::<Vec<_>>()
        };
        let head = "| what | shown by |\n|---|---|\n";
        assert!(whats(&format!("{head}| x | `system c`, `bench/a.py` |\n| y | not shown yet |\n")).is_empty());
        assert_eq!(whats(&format!("{head}| x | `system d` |\n")), ["3: there is no test or script `system d`"]);
        assert_eq!(whats(&format!("{head}| x | `bench/b.py` |\n")), ["3: there is no test or script `bench/b.py`"]);
        assert_eq!(whats(&format!("{head}| x | yes |\n")), ["3: no test is named, nor does it say \"not shown yet\""]);
        // Other tables of the same document are left alone.
        assert!(whats(&format!("{head}\n| what | flag |\n|---|---|\n| x | `--flag` |\n")).is_empty());
    }
}
