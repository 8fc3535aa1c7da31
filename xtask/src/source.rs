//! Reads Rust text just far enough to check it: which characters are code, which lines are tests, which modules there
//! are, what each `use` imports.
//!
//! Not a parser. It knows comments, literals, lifetimes and brackets, and relies on `rustfmt` for
//! the rest (an attribute is written one way only). Macros are read as the text that they are.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold no file of the project.
const NOT_OURS: &[&str] = &["target", ".git", "node_modules"];

/// One Rust file, read and sorted out.
pub struct Source {
    /// Relative to the workspace's root, with `/`.
    pub path: String,
    pub text: String,
    /// `text` with comments and literals blanked out: same lines, other bytes.
    pub code: String,
    /// First and last line of each item under `#[cfg(test)]`.
    tests: Vec<(usize, usize)>,
    whole_is_test: bool,
}

impl Source {
    pub fn new(path: &str, text: String) -> Self {
        let code = code_only(&text);
        let tests = test_items(&code);
        let in_tests =
            path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.split('/').any(|part| part == "tests");
        let whole_is_test = in_tests || code.contains("#![cfg(test)]");
        Self { path: path.to_owned(), text, code, tests, whole_is_test }
    }

    pub fn is_test(&self, line: usize) -> bool {
        self.whole_is_test || self.tests.iter().any(|&(from, to)| (from..=to).contains(&line))
    }

    /// The lines of code, numbered from 1; of tests none.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.code.lines().enumerate().map(|(index, line)| (index + 1, line));
        numbered.filter(|&(line, _)| !self.is_test(line))
    }

    /// The lines with nothing but their literals, numbered from 1; of tests none.
    pub fn product_literals(&self) -> Vec<(usize, String)> {
        let literals = only(&self.text, |part| part == Part::Literal);
        let numbered = literals.lines().enumerate().map(|(index, line)| (index + 1, line.to_owned()));
        numbered.filter(|&(line, _)| !self.is_test(line)).collect()
    }

    /// The text with nothing but its comments: same lines, other bytes.
    pub fn comments(&self) -> String {
        only(&self.text, |part| part == Part::Comment)
    }

    /// Paths, within this file's module, of the functions under `#[test]`.
    pub fn tests(&self) -> Vec<String> {
        let modules = self.module_bodies();
        let found = self.code.match_indices("#[test]").filter_map(|(at, _)| {
            let function = at + words(&self.code[at..], "fn").next()?;
            let name = leading_word(self.code[function + 2..].trim_start());
            let around = modules.iter().filter(|(from, to, _)| (*from..*to).contains(&at)).map(|(_, _, name)| *name);
            Some(around.chain([name]).collect::<Vec<_>>().join("::"))
        });
        found.collect()
    }

    /// Files that this one declares by `#[path = "…"] mod name;`, and the paths, without `.rs`, at which
    /// they would stand otherwise.
    pub fn placed_modules(&self) -> Vec<(String, String)> {
        let parent = self.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let lines: Vec<&str> = self.text.lines().collect();
        let placed = lines.iter().enumerate().filter_map(|(index, line)| {
            let file = line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]")?;
            let name = lines.get(index + 1)?.trim().strip_suffix(';')?.rsplit(' ').next()?;
            Some((format!("{parent}/{file}"), format!("{}/{name}", self.own_dir())))
        });
        placed.collect()
    }

    /// Where the files of this one's modules stand.
    fn own_dir(&self) -> &str {
        let parent = self.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        match self.path.rsplit('/').next() {
            Some("lib.rs" | "main.rs" | "mod.rs") => parent,
            _ => self.path.trim_end_matches(".rs"),
        }
    }

    /// Every path that a `use` brings in, one per leaf, with the line of its `use` and the name that it has here.
    pub fn bindings(&self) -> Vec<(usize, String, String)> {
        let mut found = Vec::new();
        for at in self.uses() {
            let tree = self.code[at + 3..].split(';').next().unwrap_or_default();
            let mut leaves = Vec::new();
            flatten("", tree, &mut leaves);
            let line = line_of(&self.code, at);
            found.extend(leaves.into_iter().map(|(path, name)| (line, path, name)));
        }
        found
    }

    /// The code with each `use` blanked out: what is named where it is used.
    pub fn without_imports(&self) -> String {
        let mut code = self.code.clone();
        for at in self.uses() {
            let end = code[at..].find(';').map_or(code.len(), |length| at + length);
            let blank: String = code[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
            // A word of another alphabet has more bytes than characters.
            let rest = code.split_off(end);
            code.truncate(at);
            code.push_str(&blank);
            code.push_str(&" ".repeat(end - code.len()));
            code.push_str(&rest);
        }
        code
    }

    /// Where a `use` stands that imports something.
    fn uses(&self) -> Vec<usize> {
        // `use<'a>` in a return type captures lifetimes and imports nothing.
        let imports = |at: &usize| !self.code[at + 3..].trim_start().starts_with('<');
        words(&self.code, "use").filter(imports).collect()
    }

    /// Modules with a body in this file: first and last line, and the name.
    pub fn inline_modules(&self) -> Vec<(usize, usize, &str)> {
        let bodies = self.module_bodies().into_iter();
        bodies.map(|(from, to, name)| (line_of(&self.code, from), line_of(&self.code, to), name)).collect()
    }

    fn module_bodies(&self) -> Vec<(usize, usize, &str)> {
        let found = words(&self.code, "mod").filter_map(|at| {
            let name = leading_word(self.code[at + 3..].trim_start());
            let end = item_end(&self.code, at);
            (self.code.as_bytes().get(end) == Some(&b'}')).then_some((at, end, name))
        });
        found.collect()
    }

    /// Paths, without `.rs`, of the modules that this file declares for tests only.
    fn test_modules(&self) -> Vec<String> {
        let mut found = Vec::new();
        let own_dir = self.own_dir();
        for (index, line) in self.code.lines().enumerate() {
            let declared = words(line, "mod").next().map(|at| &line[at + 3..]);
            let name = declared.and_then(|rest| rest.trim().strip_suffix(';'));
            if let Some(name) = name
                && self.is_test(index + 1)
            {
                found.push(format!("{own_dir}/{name}"));
            }
        }
        found
    }
}

/// Every Rust file under these directories of `root`, in order of path.
pub fn read_all(root: &Path, dirs: &[&str]) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    for path in dirs.iter().map(|dir| files(&root.join(dir))).collect::<Result<Vec<_>, _>>()?.concat() {
        if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source::new(&relative(root, &path), read(&path)?));
        }
    }
    let modules: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in &mut sources {
        source.whole_is_test |= modules.iter().any(|module| {
            source.path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
    }
    Ok(sources)
}

/// Every file of the project below `dir`, in order; nothing when there is no such directory.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    if !dir.is_dir() {
        return Ok(found);
    }
    let cannot = |e| format!("cannot list {}: {e}", dir.display());
    for entry in fs::read_dir(dir).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let kind = entry.file_type().map_err(cannot)?;
        if kind.is_file() {
            found.push(entry.path());
        } else if kind.is_dir() && !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
            found.extend(files(&entry.path())?);
        }
    }
    found.sort();
    Ok(found)
}

pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

pub fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Where `word` stands in `text` with no letter, digit or `_` around it.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    // A word that itself ends in `!` or `::` is bounded already.
    let ends_itself = !word.ends_with(is_word);
    let apart = |c: Option<char>| !c.is_some_and(is_word);
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        apart(before) && (ends_itself || apart(after))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub fn leading_word(text: &str) -> &str {
    text.split(|c| !is_word(c)).next().unwrap_or_default()
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// `text` with each character of a comment or a literal turned into a space, lines kept.
fn code_only(text: &str) -> String {
    only(text, |part| part == Part::Code)
}

/// What a character of a source belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

/// `text` with each character of any other part turned into a space, lines kept.
fn only(text: &str, keeps: impl Fn(Part) -> bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let (part, end) = match blank_end(&chars, at) {
            Some(end) if chars[at] == '/' => (Part::Comment, end.min(chars.len())),
            Some(end) => (Part::Literal, end.min(chars.len())),
            None => (Part::Code, at + 1),
        };
        kept.extend(chars[at..end].iter().map(|&c| if c == '\n' || keeps(part) { c } else { ' ' }));
        at = end;
    }
    kept
}

/// The end of the comment or literal that starts at `at`, if one does.
fn blank_end(chars: &[char], at: usize) -> Option<usize> {
    let next = |n: usize| chars.get(at + n).copied();
    match chars[at] {
        '/' if next(1) == Some('/') => {
            Some(chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |n| at + n))
        }
        '/' if next(1) == Some('*') => Some(block_comment_end(chars, at)),
        '"' => Some(quoted_end(chars, at)),
        // Anything else after a quote is a lifetime or a loop's label.
        '\'' if next(1) == Some('\\') || next(2) == Some('\'') => Some(quoted_end(chars, at)),
        'r' | 'b' | 'c' if at == 0 || !is_word(chars[at - 1]) => raw_string_end(chars, at),
        _ => None,
    }
}

/// Block comments nest.
fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

/// For a string or a character; `start` is its opening quote.
fn quoted_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != chars[start] {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// For `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`; none when this is an ordinary word or `r#word`.
fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let r = if chars[start] == 'r' { start } else { start + 1 };
    if chars.get(r) != Some(&'r') {
        return None;
    }
    let hashes = chars[r + 1..].iter().take_while(|&&c| c == '#').count();
    let open = r + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes = |at: &usize| {
        chars[*at] == '"' && chars[at + 1..].iter().take_while(|&&c| c == '#').take(hashes).count() == hashes
    };
    let close = (open + 1..chars.len()).find(closes)?;
    Some(close + 1 + hashes)
}

/// Where the item that starts at `from` ends: at its body's closing brace, or at a `;` or a brace
/// outside that comes first. The text's length when it never does.
fn item_end(code: &str, from: usize) -> usize {
    let mut brackets = 0usize;
    let mut braces = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            // Braces in a signature's brackets (`[u8; { N }]`) are balanced and are not the body.
            b'{' if brackets == 0 || braces > 0 => braces += 1,
            b'}' if braces > 1 => braces -= 1,
            b'}' if braces == 1 || brackets == 0 => return at,
            b';' if braces == 0 && brackets == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for attribute in ["#[cfg(test)]", "#[cfg(all(test,"] {
        for (at, _) in code.match_indices(attribute) {
            let end = item_end(code, at);
            found.push((line_of(code, at), line_of(code, end)));
        }
    }
    found
}

/// Turns `a::{b, c::{self, d as e}}` into `a::b`, `a::c`, `a::c::d`, with the names `b`, `c`, `e`.
fn flatten(prefix: &str, tree: &str, paths: &mut Vec<(String, String)>) {
    let tree = tree.trim().trim_start_matches("::");
    let Some((head, rest)) = tree.split_once('{') else {
        let mut leaf = tree.split_whitespace();
        if let Some(path) = leaf.next() {
            let path = format!("{prefix}{path}");
            let path = path.trim_end_matches("::self");
            // What stands behind the path is `as NAME`.
            let name = leaf.nth(1).unwrap_or_else(|| path.rsplit("::").next().unwrap_or_default());
            paths.push((path.to_owned(), name.to_owned()));
        }
        return;
    };
    let prefix = format!("{prefix}{head}");
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                flatten(&prefix, &inner[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    flatten(&prefix, &inner[start..], paths);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("crates/x/src/a.rs", text.to_owned())
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        for (text, left) in [
            ("a // {\nb", "a b"),
            ("a /* { /* } */ { */ b", "a b"),
            ("f(\"{ \\\" }\") g", "f( ) g"),
            ("f(r\"\\\", '{') g", "f( , ) g"),
            ("f(r#\"} \" {\"#) g", "f( ) g"),
            ("f(br##\"\"#{\"##) g", "f( ) g"),
            ("f(b\"{\", c\"{\") g", "f(b , c ) g"),
            ("r#type { }", "r#type { }"),
            (r"['{', '\'', '\\', '\u{7d}', b'}', '─'] a", "[ , , , , b , ] a"),
            ("fn f<'a, 'b: 'a>(x: &'a str) {", "fn f<'a, 'b: 'a>(x: &'a str) {"),
            ("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }"),
            ("a \"never closed {", "a"),
            ("a /* never closed {", "a"),
            ("a \"ends in \\", "a"),
        ] {
            let code = code_only(text);
            assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), left, "{text}");
            assert_eq!(code.chars().count(), text.chars().count(), "{text}");
        }
    }

    #[test]
    fn lines_survive_blanking() {
        let text = "a(\"x\ny\n\", r#\"\n\"#); /*\n*/ b\n";
        assert_eq!(code_only(text).matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn items_end_at_their_closing_brace() {
        for text in [
            "fn one() {}",
            "fn f() {\n  \"}\";\n}",
            "fn f() {\n  r#\"}\n\"}\"#;\n}",
            "fn f<'a>(\n  x: &'a str,\n) -> &'a str {\n  x // }\n}",
            "mod m {\n  fn inner() {\n  }\n}",
            "fn f(x: [u8; { 2 + 2 }]) {\n}",
            "fn f(g: impl Fn([u8; 4]) -> u8) where u8: Copy {\n  [0; 4];\n}",
            "fn f() {\n  x(|| { (1, [2]) });\n}",
            "type F = fn(u8) -> u8;",
            "#[cfg(test)]\nmod tests;",
        ] {
            assert_eq!(item_end(&code_only(&format!("{text} fn g() {{}}")), 0), text.len() - 1, "{text}");
        }
    }

    #[test]
    fn tests_are_told_from_the_product() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { \"}\" }\n}\nfn c() {}\n";
        let product: Vec<usize> = source(text).product_lines().map(|(line, _)| line).collect();
        assert_eq!(product, [1, 6]);
        let text = "#[cfg(test)]\n#[path = \"x\"]\nmod tests;\nuse a;\n#[cfg(not(test))]\nuse b;\n";
        let product: Vec<usize> = source(text).product_lines().map(|(line, _)| line).collect();
        assert_eq!(product, [4, 5, 6]);
    }

    #[test]
    fn file_is_a_test_by_name_or_by_attribute() {
        for path in
            ["crates/x/src/a/tests.rs", "crates/x/src/a_tests.rs", "crates/x/tests/a.rs", "crates/x/src/tests/a.rs"]
        {
            assert!(Source::new(path, String::new()).is_test(1), "{path}");
        }
        assert!(source("//! Doc.\n#![cfg(test)]\n").is_test(1));
        assert!(!source("//! Doc.\n").is_test(1));
    }

    #[test]
    fn modules_declared_for_tests_are_found() {
        let text = "mod real;\n#[cfg(test)]\nmod fake;\n";
        let in_lib = Source::new("crates/x/src/lib.rs", text.to_owned());
        assert_eq!(in_lib.test_modules(), ["crates/x/src/fake"]);
        assert_eq!(source(text).test_modules(), ["crates/x/src/a/fake"]);
    }

    #[test]
    fn imports_are_flattened() {
        let text = "use std::{fs, io::{self, Read as R}, net};\npub use a::b;\nuse c::*;\n\
                    fn f() -> impl Sized + use<'_> {}\n";
        let expected =
            [(1, "std::fs"), (1, "std::io"), (1, "std::io::Read"), (1, "std::net"), (2, "a::b"), (3, "c::*")];
        let expected = expected.map(|(line, path)| (line, path.to_owned()));
        let found: Vec<_> = source(text).bindings().into_iter().map(|(line, path, _)| (line, path)).collect();
        assert_eq!(found, expected);
        let named: Vec<String> = source("use a::{self, b as c};").bindings().into_iter().map(|it| it.2).collect();
        assert_eq!(named, ["a", "c"]);
        assert_eq!(source("use a::{b,\n c};\na::d();").without_imports(), "          \n   ;\na::d();");
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(words("unsafe_code unsafe xunsafe", "unsafe").collect::<Vec<_>>(), [12]);
        assert_eq!(words("print!(x) eprint!(y)", "print!").collect::<Vec<_>>(), [0]);
    }
}
