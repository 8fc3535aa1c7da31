//! The page's scripts as one, and its styles as one. It reads JavaScript by lines, as the page writes it: an import is
//! a line at the top of a file, and `export` stands at the begin of a line; libraries, which come as they are, have
//! both within a line. What it does not understand ends the build.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A file as it is served.
#[derive(Debug)]
pub struct Served {
    /// Below `/page/`.
    pub name: String,
    /// The name of the constant that says what it is.
    pub kind: &'static str,
    /// Another content would have another name.
    pub is_named_by_content: bool,
    pub text: String,
}

/// Where the page begins, and what names everything else.
const ENTRY: &str = "js/app.js";
const INDEX: &str = "index.html";
/// In the order in which they apply.
const STYLES: &[&str] = &["css/base.css", "css/parts.css", "css/views.css", "css/files.css", "vendor/uPlot.min.css"];
/// What is loaded by itself: where it lies, the begin of its new name, its end, what it is.
const ALONE: &[(&str, &str, &str, &str)] = &[
    ("icon.svg", "icon", "svg", "IMAGE"),
    ("vendor/uPlot.iife.min.js", "plot", "js", "SCRIPT"),
    ("js/files/upload-worker.js", "upload", "js", "SCRIPT"),
];
const LICENCES: &[&str] = &["vendor/LICENSE-htm", "vendor/LICENSE-preact", "vendor/LICENSE-uPlot"];

/// Reads a file of the page by its path.
pub type Read<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// All files that are served.
///
/// # Errors
/// If a file cannot be read, or has something that this does not understand; with the file.
pub fn bundle(read: &Read<'_>) -> Result<Vec<Served>, String> {
    let mut served = Vec::new();
    let mut names: Vec<(String, String)> = Vec::new();
    let mut add = |begin: &str, end: &str, kind, text: String| {
        let name = format!("{begin}-{}.{end}", digest(&text));
        served.push(Served { name: name.clone(), kind, is_named_by_content: true, text });
        name
    };
    for (path, begin, end, kind) in ALONE {
        let text = read(path)?;
        let text = if path.starts_with("js/") { without_comments(&text) } else { text };
        names.push((format!("/page/{path}"), format!("/page/{}", add(begin, end, kind, text))));
    }
    let mut script = script(read)?;
    for (from, to) in &names {
        script = script.replace(from, to);
    }
    let script = add("app", "js", "SCRIPT", script);
    let styles = STYLES.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let style = add("style", "css", "STYLE", style(&styles.concat())?);
    served.push(Served {
        name: INDEX.to_owned(),
        kind: "HTML",
        is_named_by_content: false,
        text: document(&read(INDEX)?, &names, &script, &style)?,
    });
    for path in LICENCES {
        let text = read(path)?;
        served.push(Served { name: (*path).to_owned(), kind: "TEXT", is_named_by_content: false, text });
    }
    match served.iter().find(|file| file.kind != "TEXT" && names_of_sources(&file.text)) {
        Some(file) => Err(format!("{}: it names a file of the page that is not served", file.name)),
        None => Ok(served),
    }
}

fn names_of_sources(text: &str) -> bool {
    ["/page/js/", "/page/css/", "/page/vendor/"].iter().any(|begin| text.contains(begin))
}

fn digest(text: &str) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, text).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

/// The document, with one line for the style and one for the script in place of those for each file.
fn document(html: &str, names: &[(String, String)], script: &str, style: &str) -> Result<String, String> {
    let (mut out, mut styles, mut scripts) = (String::new(), 0, 0);
    for line in html.lines() {
        if line.contains("rel=\"stylesheet\"") {
            if styles == 0 {
                let _ = writeln!(out, "<link rel=\"stylesheet\" href=\"/page/{style}\">");
            }
            styles += 1;
        } else if line.starts_with("<script") {
            let _ = writeln!(out, "<script type=\"module\" src=\"/page/{script}\"></script>");
            scripts += 1;
        } else if !line.contains("rel=\"modulepreload\"") {
            let _ = writeln!(out, "{line}");
        }
    }
    if styles != STYLES.len() || scripts != 1 {
        return Err(format!("{INDEX}: {styles} styles and {scripts} scripts, not {} and 1", STYLES.len()));
    }
    Ok(names.iter().fold(out, |out, (from, to)| out.replace(from, to)))
}

/// Lines without what stands before them, and without comments.
fn style(css: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = css;
    while let Some(begin) = rest.find("/*") {
        let end = rest[begin..].find("*/").ok_or("a comment of the style does not end")?;
        out.push_str(&rest[..begin]);
        rest = &rest[begin + end + 2..];
    }
    out.push_str(rest);
    Ok(lines(&out))
}

fn lines(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).fold(String::new(), |out, line| out + line + "\n")
}

/// A script without lines that are comments, and without comments that name types: nothing else is taken out, whatever
/// it looks like.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        if is_inside {
            is_inside = !line.ends_with("*/");
        } else if line.starts_with("/**") && !line.contains("*/") {
            is_inside = true;
        } else if !line.starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let mut out = String::new();
    let mut rest = &kept[..];
    while let Some(begin) = rest.find("/** ") {
        let Some(end) = rest[begin..].find("*/") else { break };
        out.push_str(&rest[..begin]);
        rest = rest[begin + end + 2..].trim_start_matches(' ');
    }
    out.push_str(rest);
    lines(&out)
}

/// The modules of the page as one, each in a function of its own, those that others need first.
fn script(read: &Read<'_>) -> Result<String, String> {
    let mut modules = Modules { read, numbers: BTreeMap::new(), open: Vec::new(), out: String::new() };
    modules.add(ENTRY)?;
    Ok(modules.out)
}

struct Modules<'a> {
    read: &'a Read<'a>,
    numbers: BTreeMap<String, usize>,
    /// Those that are being added: each needs the next.
    open: Vec<String>,
    out: String,
}

impl Modules<'_> {
    fn add(&mut self, path: &str) -> Result<usize, String> {
        if let Some(number) = self.numbers.get(path) {
            return Ok(*number);
        }
        if self.open.iter().any(|open| open == path) {
            return Err(format!("{path} needs itself: {}", self.open.join(", ")));
        }
        self.open.push(path.to_owned());
        let text = (self.read)(path)?;
        let is_library = path.starts_with("vendor/");
        let text = if is_library { apart(text.trim()) } else { without_comments(&text) };
        let (mut body, mut exports) = (String::new(), Vec::new());
        for line in text.lines() {
            let not_understood = || format!("{path}: not understood: {line}");
            if let Some(import) = line.strip_prefix("import") {
                let (what, from) = import_of(path, import).ok_or_else(not_understood)?;
                let number = self.add(&from)?;
                body.push_str(&bound(what, number).ok_or_else(not_understood)?);
            } else if let Some(export) = line.strip_prefix("export") {
                body.push_str(&export_of(export, &mut exports).ok_or_else(not_understood)?);
            } else {
                body.push_str(line);
            }
            body.push('\n');
        }
        self.open.pop();
        let number = self.numbers.len();
        self.numbers.insert(path.to_owned(), number);
        let _ = writeln!(self.out, "const $m{number}=(()=>{{\n{body}return{{{}}};\n}})();", exports.join(","));
        Ok(number)
    }
}

/// What a file imports, and from which: `{ a, b as c } from "./x.js";` stands behind `import`. None: it is something
/// else.
fn import_of<'a>(path: &str, text: &'a str) -> Option<(&'a str, String)> {
    let (what, from) = text.rsplit_once("from")?;
    let from = from.trim().trim_end_matches(';').strip_prefix('"')?.strip_suffix('"')?;
    Some((what.trim(), resolved(path, from)?))
}

/// The line that binds what is imported from a module: `{ a, b as c }`, `* as x` or `x`.
fn bound(what: &str, number: usize) -> Option<String> {
    Some(if let Some(name) = what.strip_prefix("* as ") {
        format!("const {name}=$m{number};")
    } else if let Some(names) = what.strip_prefix('{').and_then(|names| names.strip_suffix('}')) {
        format!("const {{{}}}=$m{number};", names.replace(" as ", ":"))
    } else if what.chars().all(|letter| letter.is_ascii_alphanumeric()) {
        format!("const {what}=$m{number}.default;")
    } else {
        return None;
    })
}

/// A library with each of its imports and exports on a line of its own.
fn apart(text: &str) -> String {
    let text = text.replace("export default function(", "\nexport default function(");
    let text = text.replace("export{", "\nexport{");
    match text.strip_prefix("import{").and_then(|rest| rest.split_once(';')) {
        Some((import, rest)) => format!("import{{{import};\n{rest}"),
        None => text,
    }
}

/// What stands behind `export`, without it; the names that it gives are noted as they are returned.
fn export_of(text: &str, exports: &mut Vec<String>) -> Option<String> {
    if let Some(function) = text.strip_prefix(" default function(") {
        exports.push("default:$default".to_owned());
        return Some(format!("const $default=function({function}"));
    }
    if let Some(names) = text.trim().strip_prefix('{') {
        for name in names.trim_end_matches(';').trim_end_matches('}').split(',').filter(|name| !name.trim().is_empty())
        {
            let (inner, outer) = name.trim().split_once(" as ").unwrap_or((name.trim(), name.trim()));
            exports.push(format!("{outer}:{inner}"));
        }
        return Some(String::new());
    }
    let text = text.strip_prefix(' ')?;
    let bare = text.strip_prefix("async ").unwrap_or(text);
    // A binding that changes later would be another one for whoever imports it.
    let rest = ["const ", "function ", "class "].iter().find_map(|word| bare.strip_prefix(word))?;
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$';
    let name: String = rest.chars().take_while(|letter| is_of_name(*letter)).collect();
    if name.is_empty() {
        return None;
    }
    exports.push(name);
    Some(text.to_owned())
}

/// The path that an import in a file means.
fn resolved(path: &str, import: &str) -> Option<String> {
    let mut steps: Vec<&str> = path.split('/').collect();
    steps.pop();
    for step in import.split('/') {
        match step {
            "." => {}
            ".." => _ = steps.pop()?,
            step => steps.push(step),
        }
    }
    Some(steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Result<String, String> {
        script(&|path| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{path} is missing"))
        })
    }

    #[test]
    fn bundle_has_each_module_once_and_before_those_that_need_it() {
        let bundled = of(&[
            (
                "js/app.js",
                "// What it is.\nimport { one, two as both } from \"./a.js\";\nimport * as b from \"./b.js\";\nboth(one, b);\n",
            ),
            ("js/a.js", "import { x } from \"./b.js\";\nexport const one = x;\nexport async function two() {}\n"),
            ("js/b.js", "/**\n * Of it.\n */\nexport const x = /** @type {any} */ (1);\n"),
        ]);
        let expected = "const $m0=(()=>{\nexport const x = (1);\nreturn{x};\n})();\nconst $m1=(()=>{\nconst { x }=$m0;\nconst one = x;\n\
                        async function two() {}\nreturn{one,two};\n})();\nconst $m2=(()=>{\nconst { one, two:both }=$m1;\nconst b=$m0;\nboth(one, b);\n\
                        return{};\n})();\n";
        assert_eq!(bundled.unwrap(), expected.replace("export const", "const"));
    }

    #[test]
    fn bundle_takes_libraries_as_they_are() {
        let bundled = of(&[
            ("js/app.js", "import h from \"../vendor/h.mjs\";\nimport { d } from \"../vendor/p.mjs\";\nh(d);\n"),
            ("vendor/h.mjs", "var n=1;export default function(s){return s+n}"),
            ("vendor/p.mjs", "import{q as n}from\"./q.mjs\";var t=n;export{t as d};"),
            ("vendor/q.mjs", "var a=2;export{a as q};"),
        ]);
        let bundled = bundled.unwrap();
        assert!(bundled.contains("const $default=function(s){return s+n}\nreturn{default:$default}"), "{bundled}");
        assert!(bundled.contains("const {q:n}=$m1;") && bundled.contains("return{d:t}"), "{bundled}");
    }

    #[test]
    fn bundle_refuses_what_it_does_not_understand() {
        for (files, fault) in [
            (&[("js/app.js", "export let x = 1;\n")][..], "js/app.js: not understood: export let x = 1;"),
            (&[("js/app.js", "import \"./a.js\";\n")], "js/app.js: not understood"),
            (&[("js/app.js", "import { a } from \"./a.js\";\n")], "js/a.js is missing"),
            (
                &[("js/app.js", "import { a } from \"./a.js\";\n"), ("js/a.js", "import { b } from \"./app.js\";\n")],
                "js/app.js needs itself: js/app.js, js/a.js",
            ),
        ] {
            let why = of(files).unwrap_err();
            assert!(why.starts_with(fault), "{why}");
        }
    }

    #[test]
    fn bundle_names_files_by_their_content() {
        assert_eq!(digest("a").len(), 32);
        assert_ne!(digest("a"), digest("b"));
    }

    #[test]
    fn styles_keep_all_but_comments_and_indentation() {
        assert_eq!(style("/* a\n b */\na { b: c; }\n\n  d { e: f; } /* g */\n").unwrap(), "a { b: c; }\nd { e: f; }\n");
        assert!(style("a /* b").is_err());
    }
}
