//! The style that a machine can check, and neither rustfmt nor clippy does: lengths of files, width of documents and
//! comments, headers, words, names that two types share, and that the tests, files and messages which documents name
//! are there.
//!
//! What needs judgement (whether a name fits, comments, order) is left to the reader of a change.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Finding;
use crate::documents;
use crate::faults;
use crate::names;
use crate::source::{self, Source, words};

const FILE_LINES_MAX: usize = 600;
/// A map longer than this is not read.
const ARCHITECTURE_LINES_MAX: usize = 330;

/// Columns of a document's prose and of a Rust file's comments, as rustfmt has it for the code: it wraps neither.
const COLUMNS_MAX: usize = 120;
/// Documents that a program writes.
const WRITTEN_BY_PROGRAMS: &str = "bench/results/";

/// What must not be committed; written in halves, so that this file passes.
const BANNED_WORDS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// Paths of one developer's machine.
const BANNED_PATHS: &[&str] = &[concat!("../", "shared"), concat!("/wo", "rk/")];

/// Where nothing may name a flag: what these say is shown by a terminal, a page, a log, each in its own words.
const WITHOUT_FLAGS: &[&str] = &["crates/carrack-core/src/", "crates/carrack-engine/src/"];
/// The line of shell that starts an agent: a command line itself.
const COMMAND_LINE: &str = "crates/carrack-engine/src/control/bootstrap.rs";

pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let sources = source::read_all(root, &["crates", "xtask", "fuzz"])?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(rust).collect();
    findings.extend(sources.iter().flat_map(flags));
    findings.extend(names::check(&sources));
    let tests = faults::names(&sources);
    findings.extend(faults::check(&source::read(&root.join(faults::TABLE))?, &tests));
    for name in faults::SHOWN_ELSEWHERE {
        let text = source::read(&root.join(name))?;
        findings.extend(faults::check_shown(name, &text, &tests, |script| root.join(script).is_file()));
    }
    let messages = source::read(&root.join(documents::MESSAGES))?;
    findings.extend(documents::check_messages(&messages, &sources));
    let mut texts = BTreeMap::new();
    for path in source::files(root)? {
        let name = source::relative(root, &path);
        if is_text(&name) {
            let text = source::read(&path)?;
            findings.extend(foreign_paths(&name, &text));
            if name.ends_with(".md") && !name.starts_with(WRITTEN_BY_PROGRAMS) {
                findings.extend(document_columns(&name, &text));
                texts.insert(name.clone(), text.clone());
            }
            if name == "ARCHITECTURE.md" {
                findings.extend(length(&name, &text, ARCHITECTURE_LINES_MAX));
            }
        }
    }
    findings.extend(documents::check_links(&texts, |path| documents::is_there(root, path)));
    Ok(findings)
}

fn is_text(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    matches!(extension, "rs" | "md" | "sh" | "py" | "toml") || file == "Makefile" || name == ".ci/run"
}

fn rust(source: &Source) -> Vec<Finding> {
    let mut findings = length(&source.path, &source.text, FILE_LINES_MAX);
    let mut add = |line, what: String| findings.push(Finding::new(&source.path, line, what));
    if !source.text.starts_with("//!") {
        add(1, "no `//!` line to say what this module is".to_owned());
    }
    for (index, line) in source.text.lines().enumerate() {
        for word in BANNED_WORDS {
            if words(line, word).count() > 0 {
                add(index + 1, format!("{word} left behind"));
            }
        }
    }
    findings.extend(comment_columns(source));
    findings
}

/// Lines with a comment that are wider than [`COLUMNS_MAX`]. Literals and what cannot be broken, such as long links,
/// may be wider.
fn comment_columns(source: &Source) -> Vec<Finding> {
    let comments = source.comments();
    let lines = source.text.lines().zip(comments.lines()).enumerate().filter_map(|(index, (line, comment))| {
        let columns = line.chars().count();
        let words = comment.trim().trim_start_matches(['/', '!']).trim();
        let what = || format!("a comment in {columns} columns of at most {COLUMNS_MAX}");
        (columns > COLUMNS_MAX && words.contains(' ')).then(|| Finding::new(&source.path, index + 1, what()))
    });
    lines.collect()
}

/// Flags of the command line, and commands, in the literals of a crate that knows none.
fn flags(source: &Source) -> Vec<Finding> {
    if source.path == COMMAND_LINE || !WITHOUT_FLAGS.iter().any(|start| source.path.starts_with(start)) {
        return Vec::new();
    }
    let is_flag = |line: &str| {
        let at_end = |at: usize| line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-');
        let mut starts = line.match_indices("--").filter(|&(at, _)| !at_end(at));
        let flag = starts.any(|(at, dashes)| line[at + dashes.len()..].starts_with(|c: char| c.is_ascii_lowercase()));
        flag || line.contains("`carrack ")
    };
    let named = source.product_literals().into_iter().filter(|(_, line)| is_flag(line));
    let what = "names a flag or a command: what to try is said by whoever shows it (carrack's output/hints)";
    named.map(|(line, _)| Finding::new(&source.path, line, what.to_owned())).collect()
}

fn length(path: &str, text: &str, max: usize) -> Vec<Finding> {
    let lines = text.lines().count();
    if lines <= max {
        return Vec::new();
    }
    vec![Finding::new(path, lines, format!("{lines} lines of at most {max}"))]
}

/// Prose of a document that is wider than [`COLUMNS_MAX`]. Tables, code blocks and words that cannot be
/// broken, such as long links, may be wider.
fn document_columns(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let columns = line.chars().count();
        let code = fenced || line.starts_with("    ");
        let words = line.trim_start_matches(['-', ' ']);
        if columns > COLUMNS_MAX && !code && !line.starts_with('|') && words.contains(' ') {
            let what = format!("{columns} columns of at most {COLUMNS_MAX}");
            findings.push(Finding::new(path, index + 1, what));
        }
    }
    findings
}

fn foreign_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for banned in BANNED_PATHS {
            // Further down a path it may be an example: only a path that starts so is meant.
            let starts = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}".contains(c));
            if line.match_indices(banned).any(|(at, _)| starts(at)) {
                findings.push(Finding::new(path, index + 1, format!("{banned} exists nowhere else")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        let findings = rust(&Source::new(path, text.to_owned()));
        findings.into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect()
    }

    #[test]
    fn tidy_file_passes() {
        assert!(whats("crates/x/src/a.rs", "//! A.\n\nfn f() {}\n").is_empty());
    }

    #[test]
    fn files_have_a_limit() {
        let text = format!("//! A.\n{}", "\n".repeat(600));
        assert_eq!(whats("crates/x/src/a.rs", &text), ["601: 601 lines of at most 600"]);
    }

    #[test]
    fn leftovers_in_a_source_are_found() {
        let text = ["//! A.\n\n// ", BANNED_WORDS[0], " later\n// ", BANNED_WORDS[1], "\n"].concat();
        let expected = [(3, BANNED_WORDS[0]), (4, BANNED_WORDS[1])];
        let expected = expected.map(|(line, word)| format!("{line}: {word} left behind"));
        assert_eq!(whats("crates/x/src/a.rs", &text), expected);
        assert!(whats("crates/x/src/a.rs", "//! A template: part.XXXXXX\n").is_empty());
        assert_eq!(whats("crates/x/src/a.rs", "fn f() {}\n").len(), 1);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let text = format!("cd {0}main\nls /home/me{0}\nsee {1}/x\n", BANNED_PATHS[1], BANNED_PATHS[0]);
        let lines: Vec<usize> = foreign_paths("a.md", &text).into_iter().map(|f| f.line).collect();
        assert_eq!(lines, [1, 3]);
    }

    #[test]
    fn document_prose_is_at_most_120_columns() {
        let wide = "ä ".repeat(61);
        let text = format!(
            "{0}\n| {wide}|\n    {wide}\n```\n{wide}\n```\n{wide}\n- [{1}](x)\n",
            "ä".repeat(118) + " ä",
            "x".repeat(130)
        );
        let lines: Vec<usize> = document_columns("a.md", &text).into_iter().map(|f| f.line).collect();
        assert_eq!(lines, [7]);
    }

    #[test]
    fn comment_lines_are_at_most_120_columns() {
        let wide = "ä ".repeat(61);
        let text = format!(
            "//! {0}\n//! {wide}\nfn f() {{\n    // {wide}\n    g(\"// {wide}\"); // of it\n    g(\"{wide}\");\n    \
             // <https://{1}>\n}}\n",
            "ä".repeat(116),
            "x".repeat(130)
        );
        let lines: Vec<usize> = comment_columns(&Source::new("a.rs", text)).into_iter().map(|f| f.line).collect();
        assert_eq!(lines, [2, 4, 5]);
    }

    #[test]
    fn flags_in_messages_of_core_and_engine_are_found() {
        let text = "//! --a.\nfn f() {\n    let a = \"try --bind\"; // --c\n    let b = \"a \\\n        --two\";\n    \
                    let c = r#\"(--raw)\"#;\n    let d = \"a -- b--c ---d -5\";\n    let e = \"by `carrack -`\";\n}\n#[cfg(test)]\nmod tests {\n    \
                    const T: &str = \"--e\";\n}\n";
        let lines = |path| flags(&Source::new(path, text.to_owned())).into_iter().map(|f| f.line).collect::<Vec<_>>();
        assert_eq!(lines("crates/carrack-engine/src/a.rs"), [3, 5, 6, 8]);
        assert_eq!(lines("crates/carrack-core/src/b/c.rs"), [3, 5, 6, 8]);
        for elsewhere in [COMMAND_LINE, "crates/carrack/src/a.rs", "crates/carrack-engine/tests/a.rs"] {
            assert!(lines(elsewhere).is_empty(), "{elsewhere}");
        }
    }

    #[test]
    fn text_is_told_by_name() {
        for (name, text) in
            [("README.md", true), (".ci/run", true), ("a/Makefile", true), ("logo.png", false), ("LICENSE-MIT", false)]
        {
            assert_eq!(is_text(name), text, "{name}");
        }
    }
}
