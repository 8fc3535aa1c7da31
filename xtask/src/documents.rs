//! What documents point at: files and headings by their links, messages of the program by their text.
//!
//! Links to other sites are not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::Finding;
use crate::source::Source;

/// The page whose headings in backquotes are messages of the program. `…` stands for what differs each time.
pub const MESSAGES: &str = "docs/troubleshooting.md";
/// A piece of a message that is shorter is found anywhere, and says nothing.
const PIECE_MIN: usize = 8;

/// Links of documents, each with its text, that lead to no file or to no heading. `is_there` tells of a path below the
/// root whether there is a file or directory.
pub fn check_links(documents: &BTreeMap<String, String>, is_there: impl Fn(&str) -> bool) -> Vec<Finding> {
    let headings: BTreeMap<&str, BTreeSet<String>> =
        documents.iter().map(|(path, text)| (path.as_str(), anchors(text))).collect();
    let mut findings = Vec::new();
    for (path, text) in documents {
        for (line, link) in links(text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { path.clone() } else { resolve(path, file) };
            let mut add = |what: String| findings.push(Finding::new(path, line, what));
            if !is_there(&target) {
                add(format!("there is no {target}, to which {link} leads"));
            } else if !anchor.is_empty() && headings.get(target.as_str()).is_some_and(|all| !all.contains(anchor)) {
                add(format!("{target} has no heading #{anchor}"));
            }
        }
    }
    findings
}

/// Lines of prose, numbered from 1, without code.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// Where the links of a text lead, but for other sites, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        // What stands between backquotes is code.
        let plain: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in plain.split("](").skip(1) {
            let link = rest.split([')', ' ']).next().unwrap_or_default();
            if !link.is_empty() && !link.contains(':') {
                found.push((line, link.to_owned()));
            }
        }
    }
    found
}

/// The names by which headings of a text are reached, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect();
        let again = (1..).map(|number| format!("{name}-{number}"));
        let name = std::iter::once(name.clone()).chain(again).find(|name| !names.contains(name)).unwrap_or(name);
        names.insert(name);
    }
    names
}

/// The path below the root to which `link` of the document at `path` leads.
fn resolve(path: &str, link: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in link.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Messages that the page has and the program does not.
pub fn check_messages(text: &str, sources: &[Source]) -> Vec<Finding> {
    let ours = sources.iter().filter(|source| source.path.starts_with("crates/"));
    let literals: Vec<String> = ours.map(said).collect();
    let mut findings = Vec::new();
    for (line, heading) in prose(text).into_iter().filter(|(_, line)| line.starts_with("###")) {
        for message in heading.split('`').skip(1).step_by(2) {
            let pieces: Vec<&str> = message.split('…').map(str::trim).filter(|piece| !piece.is_empty()).collect();
            let told = |piece: &str| literals.iter().any(|all| all.contains(piece));
            if pieces.iter().all(|piece| piece.len() < PIECE_MIN) {
                findings.push(Finding::new(MESSAGES, line, format!("too little of a message: {message}")));
            } else if let Some(piece) = pieces.iter().find(|piece| !told(piece)) {
                findings.push(Finding::new(MESSAGES, line, format!("no part of the program says: {piece}")));
            }
        }
    }
    findings
}

/// What the literals of a source say, each on one line.
fn said(source: &Source) -> String {
    let lines =
        source.product_literals().into_iter().map(|(_, line)| line.trim_end().trim_end_matches('\\').to_owned());
    let joined = lines.collect::<Vec<_>>().join(" ").replace("\\\"", "\"");
    joined.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a path below the root is there.
pub fn is_there(root: &Path, path: &str) -> bool {
    root.join(path).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(documents: &[(&str, &str)]) -> Vec<String> {
        let documents: BTreeMap<String, String> =
            documents.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        let is_there = |path: &str| documents.contains_key(path) || path == "docs" || path == "bench/a.py";
        let findings = check_links(&documents, is_there);
        findings.into_iter().map(|f| f.to_string()).collect()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let there =
            "# One\n## A `b` – c, d\n## Twice\n## Twice\n[up](../README.md#all) [here](#twice-1) [x](#a-b--c-d)\n";
        let top =
            "# All\n[one](docs/one.md#twice) [dir](docs/) [py](bench/a.py)\n[web](https://x.org/#y)\n    [no](no.md)\n";
        assert_eq!(whats(&[("docs/one.md", there), ("README.md", top)]), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let text = "a [b](two.md)\n`[c](three.md)` [d](#none)\n[e](../README.md#none) [f](../bench/b.py)\n";
        let expected = [
            "docs/one.md:1: there is no docs/two.md, to which two.md leads",
            "docs/one.md:2: docs/one.md has no heading #none",
            "docs/one.md:3: README.md has no heading #none",
            "docs/one.md:3: there is no bench/b.py, to which ../bench/b.py leads",
        ];
        assert_eq!(whats(&[("docs/one.md", text), ("README.md", "# All\n")]), expected);
    }

    #[test]
    fn messages_are_those_of_the_program() {
        let code = "//! A.\nfn f() {\n    say(\"no such \\\n        host: {x}: try \\\"again\\\"\");\n}\n";
        let sources = [Source::new("crates/a/src/a.rs", code.to_owned())];
        let whats = |text: &str| {
            let findings = check_messages(text, &sources);
            findings.into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect::<Vec<_>>()
        };
        assert!(whats("### `no such host: …: try \"again\"`\n\n`other text` is no message\n").is_empty());
        assert_eq!(whats("### `no such host: … today`"), ["1: no part of the program says: today"]);
        assert_eq!(whats("### `no such node`"), ["1: no part of the program says: no such node"]);
        assert_eq!(whats("### `… try …`"), ["1: too little of a message: … try …"]);
    }
}
