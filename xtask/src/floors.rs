//! The floors of modules inside a crate: what stands on one floor may use what stands below, and nothing else. Where a
//! folder of a crate in [`HOUSE`] has no floors, its modules may at least not stand in a circle.
//!
//! Arrows are read from the paths in the code, tests left out. A path belongs to the module that defines what it
//! names: names that are handed on by a `use` are followed to where they come from. So a module's own file may
//! re-export what is below it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

mod house;

use self::house::HOUSE;
use crate::Finding;
use crate::source::{Source, words};

/// A folder of modules, and the floors they stand on.
struct Folder {
    /// Of `crates/`.
    name: &'static str,
    /// Path of the module within the crate; empty for the crate itself.
    module: &'static str,
    /// From top to bottom. What the folder's own file defines (`mod.rs`, `lib.rs`) is called [`OWN`]; unless
    /// it is named, it is on top.
    floors: &'static [&'static [&'static str]],
}

/// Stands for a folder's own file.
const OWN: &str = "mod";

/// A module's path within its crate.
type Path = Vec<String>;

/// One module that uses another of the same folder, and where it does first.
type Arrows = BTreeMap<(String, String), (String, usize)>;

/// The product's modules of one crate, and what names mean in them.
struct Modules {
    all: BTreeSet<Path>,
    /// What a module imports, by the name that it has there.
    bindings: BTreeMap<(Path, String), Path>,
    /// From which module, naming which path, in which file and line.
    uses: Vec<(Path, Path, String, usize)>,
}

pub fn check(sources: &[Source]) -> Vec<Finding> {
    judge(sources, HOUSE)
}

fn judge(sources: &[Source], house: &[Folder]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.product_lines().next().is_some()) {
        if let Some((name, rest)) = source.path.strip_prefix("crates/").and_then(|path| path.split_once('/'))
            && rest.starts_with("src/")
        {
            crates.entry(name).or_default().push(source);
        }
    }
    let mut findings = Vec::new();
    for (name, sources) in crates.iter().filter(|(name, _)| house.iter().any(|folder| folder.name == **name)) {
        let modules = Modules::read(sources);
        for folder in modules.folders() {
            let arrows = modules.arrows(&folder);
            match house.iter().find(|known| known.name == *name && known.module == folder.join("::")) {
                Some(known) => findings.extend(climbs(known, &modules.children(&folder), &arrows)),
                None => findings.extend(circles(&folder, &arrows)),
            }
        }
    }
    let known = |folder: &&Folder| crates.contains_key(folder.name);
    findings.extend(house.iter().filter(|folder| !known(folder)).map(|folder| gone(folder, folder.name)));
    findings
}

fn gone(folder: &Folder, what: &str) -> Finding {
    Finding::new(&format!("crates/{}", folder.name), 1, format!("{what} has a floor, but is gone"))
}

/// What uses something that is not below it, and modules without a floor.
fn climbs(folder: &Folder, children: &BTreeSet<String>, arrows: &Arrows) -> Vec<Finding> {
    let floor = |name: &str| folder.floors.iter().position(|floor| floor.contains(&name));
    let mut findings = Vec::new();
    for name in folder.floors.concat() {
        if name != OWN && !children.contains(name) {
            findings.push(gone(folder, name));
        }
    }
    for name in children.iter().filter(|name| floor(name).is_none()) {
        let what = format!("{} has no floor; give it one in xtask/src/floors/house.rs", shown(folder.module, name));
        findings.push(Finding::new(&format!("crates/{}", folder.name), 1, what));
    }
    // The own file is above the top floor unless it has one, and what has none was told already.
    let height =
        |name: &str| if name == OWN { Some(floor(name).map_or(0, |at| at + 1)) } else { floor(name).map(|at| at + 1) };
    for ((from, to), (path, line)) in arrows {
        if let (Some(upper), Some(lower)) = (height(from), height(to))
            && upper >= lower
        {
            let (from, to) = (shown(folder.module, from), shown(folder.module, to));
            findings.push(Finding::new(path, *line, format!("{from} uses {to}, which is not on a floor below it")));
        }
    }
    findings
}

fn shown(module: &str, name: &str) -> String {
    match (module, name) {
        ("", OWN) => "the crate's own file".to_owned(),
        (module, OWN) => format!("{module}'s own file"),
        ("", name) => name.to_owned(),
        (module, name) => format!("{module}::{name}"),
    }
}

/// Modules of a folder that use each other in a circle; one finding for each that is in one. A folder's own file and
/// its modules are one thing in several files: between them there is none.
fn circles(folder: &Path, arrows: &Arrows) -> Vec<Finding> {
    let within: Vec<_> = arrows.iter().filter(|((from, to), _)| from != OWN && to != OWN).collect();
    let mut findings = Vec::new();
    for ((from, to), (path, line)) in &within {
        // The shortest way back, told where its first module is named.
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([to.as_str()]);
        while let Some(at) = queue.pop_front() {
            for ((_, there), _) in within.iter().filter(|((from, _), _)| from == at) {
                if there != to && !before.contains_key(there.as_str()) {
                    before.insert(there, at);
                    queue.push_back(there);
                }
            }
        }
        if !before.contains_key(from.as_str()) {
            continue;
        }
        let mut way = vec![from.as_str()];
        while let Some(earlier) = before.get(way[way.len() - 1]) {
            way.push(earlier);
        }
        way.push(from);
        if way.iter().min() == Some(&from.as_str()) {
            way.reverse();
            let way: Vec<String> = way.iter().map(|name| shown(&folder.join("::"), name)).collect();
            findings.push(Finding::new(path, *line, format!("a circle: {}", way.join(" uses "))));
        }
    }
    findings
}

impl Modules {
    fn read(sources: &[&Source]) -> Self {
        let mut modules = Self { all: BTreeSet::new(), bindings: BTreeMap::new(), uses: Vec::new() };
        for source in sources {
            let own = module_of(&source.path);
            modules.all.extend((0..=own.len()).map(|length| own[..length].to_vec()));
            modules.all.extend(inline(source).into_iter().map(|(_, _, names)| [own.clone(), names].concat()));
        }
        for source in sources {
            modules.read_imports(source);
            modules.read_paths(source);
        }
        modules
    }

    fn read_imports(&mut self, source: &Source) {
        for (line, path, name) in source.bindings() {
            let module = scope(source, line);
            if !source.is_test(line)
                && let Some(path) = self.absolute(&module, &path)
            {
                self.bindings.insert((module.clone(), name), path.clone());
                self.uses.push((module, path, source.path.clone(), line));
            }
        }
    }

    /// Paths outside of imports: `crate::a::f()`, and of modules right below `a::f()`.
    fn read_paths(&mut self, source: &Source) {
        for (index, code) in source.without_imports().lines().enumerate() {
            let line = index + 1;
            if source.is_test(line) {
                continue;
            }
            let module = scope(source, line);
            let below = self.children(&module);
            let starts = ["crate", "super", "self"].into_iter().chain(below.iter().map(String::as_str));
            for at in starts.flat_map(|start| words(code, start)) {
                let end = code[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
                let path = code[at..].get(..end.unwrap_or(code.len() - at)).unwrap_or_default().trim_end_matches(':');
                // The middle of a path, and `pub(in crate::a)`, name nothing of their own.
                let is_whole = !code[..at].ends_with([':', '.']) && !code[..at].ends_with("in ");
                if is_whole
                    && path.contains("::")
                    && let Some(path) = self.absolute(&module, path)
                {
                    self.uses.push((module.clone(), path, source.path.clone(), line));
                }
            }
        }
    }

    /// A path from the crate's root, if it begins in this crate.
    fn absolute(&self, module: &Path, path: &str) -> Option<Path> {
        let mut names = path.split("::").map(str::to_owned).peekable();
        let mut base = match names.peek()?.as_str() {
            "crate" => Path::new(),
            "self" | "super" => module.clone(),
            name if self.all.contains(&[module.clone(), vec![name.to_owned()]].concat()) => module.clone(),
            _ => return None,
        };
        while let Some(step) = names.next_if(|name| matches!(name.as_str(), "crate" | "self" | "super")) {
            if step == "super" {
                base.pop()?;
            }
        }
        base.extend(names);
        Some(base)
    }

    /// The module that defines what a path names.
    fn owner(&self, path: &[String], depth: usize) -> Path {
        let mut module = Path::new();
        for (index, name) in path.iter().enumerate() {
            let below = [module.clone(), vec![name.clone()]].concat();
            if self.all.contains(&below) {
                module = below;
            } else if let Some(origin) = self.bindings.get(&(module.clone(), name.clone()))
                && depth < 8
            {
                return self.owner(&[origin, &path[index + 1..]].concat(), depth + 1);
            } else {
                break;
            }
        }
        module
    }

    /// Modules that have modules.
    fn folders(&self) -> BTreeSet<Path> {
        self.all.iter().filter(|path| !path.is_empty()).map(|path| path[..path.len() - 1].to_vec()).collect()
    }

    fn children(&self, folder: &Path) -> BTreeSet<String> {
        let below = self.all.iter().filter(|path| path.len() == folder.len() + 1 && path.starts_with(folder));
        below.map(|path| path[folder.len()].clone()).collect()
    }

    fn arrows(&self, folder: &Path) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, path, file, line) in &self.uses {
            let to = self.owner(path, 0);
            if from.starts_with(folder) && to.starts_with(folder) {
                let name = |path: &Path| path.get(folder.len()).map_or(OWN, String::as_str).to_owned();
                if name(from) != name(&to) {
                    arrows.entry((name(from), name(&to))).or_insert((file.clone(), *line));
                }
            }
        }
        arrows
    }
}

/// The module that a file is, from its path.
fn module_of(path: &str) -> Path {
    let within = path.splitn(4, '/').nth(3).unwrap_or_default().trim_end_matches(".rs");
    let mut names: Path = within.split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

/// Modules in a file, not those for tests: first and last line, and names from the outside in.
fn inline(source: &Source) -> Vec<(usize, usize, Path)> {
    let bodies = source.inline_modules();
    let product = bodies.iter().filter(|(from, _, _)| !source.is_test(*from));
    let named = product.map(|&(from, to, name)| {
        let around = bodies.iter().filter(|other| other.0 < from && to < other.1).map(|other| other.2.to_owned());
        (from, to, around.chain([name.to_owned()]).collect())
    });
    named.collect()
}

/// The module that a line of a file is in.
fn scope(source: &Source, line: usize) -> Path {
    let around = inline(source).into_iter().filter(|(from, to, _)| (*from..=*to).contains(&line));
    let inner = around.map(|(_, _, names)| names).max_by_key(Vec::len).unwrap_or_default();
    [module_of(&source.path), inner].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], floors: &'static [&'static [&'static str]]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(&format!("crates/x/src/{path}"), (*text).to_owned())).collect();
        // Without floors the crate itself is only looked at for circles.
        let module = if floors.is_empty() { "floorless" } else { "" };
        let findings = judge(&sources, &[Folder { name: "x", module, floors }]);
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;\nmod c;\n");

    #[test]
    fn circles_are_found() {
        let a = ("a.rs", "use crate::b::B;\nfn f() {}\n");
        let b = ("b/mod.rs", "mod d;\npub struct B;\n");
        let d = ("b/d.rs", "fn f() {\n    super::super::c::f();\n}\n");
        let c = ("c.rs", "use std::fs;\nuse super::a;\n");
        assert_eq!(found(&[LIB, a, b, d, c], &[]), ["1: a circle: a uses b uses c uses a"]);
        for straight in ["use std::fs;\n", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n", "// crate::a::f()\n"] {
            assert_eq!(found(&[LIB, a, b, d, ("c.rs", straight)], &[]), [""; 0], "{straight}");
        }
        // Between a module and the files it is split into there is none.
        let split = [("b/mod.rs", "mod d;\nuse d::D;\npub struct B;\n"), ("b/d.rs", "use super::B;\npub struct D;\n")];
        assert_eq!(found(&split, &[]), [""; 0]);
    }

    #[test]
    fn arrows_back_up_are_found() {
        const FLOORS: &[&[&str]] = &[&["a"], &["b", "c"]];
        let a = ("a.rs", "use crate::{b, c::C};\npub struct A;\n");
        let c = ("c.rs", "pub struct C;\n");
        for (text, expected) in [
            ("pub struct B;\n", ""),
            ("use crate::a::A;\n", "1: b uses a, which is not on a floor below it"),
            ("fn f(a: crate::a::A) {}\n", "1: b uses a, which is not on a floor below it"),
            ("fn f() {}\nfn g(a: super::a::A) {}\n", "2: b uses a, which is not on a floor below it"),
            ("use crate::{c::C};\n", "1: b uses c, which is not on a floor below it"),
            ("mod e {\n    use super::super::a::A;\n}\n", "2: b uses a, which is not on a floor below it"),
            ("use crate::LIMIT;\n", "1: b uses the crate's own file, which is not on a floor below it"),
            // The name of what is below is as good as its path.
            ("use crate::C;\n", "1: b uses c, which is not on a floor below it"),
            ("pub(in crate::a) struct B;\n", ""),
        ] {
            let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::C;\npub const LIMIT: u8 = 1;\n");
            let expected: &[&str] = if expected.is_empty() { &[] } else { &[expected] };
            assert_eq!(found(&[lib, a, ("b.rs", text), c], FLOORS), expected, "{text}");
        }
    }

    #[test]
    fn names_are_followed_to_where_they_come_from() {
        const FLOORS: &[&[&str]] = &[&["a"], &["b"], &["c"]];
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A as Renamed;\n");
        let files =
            |b| [lib, ("a.rs", "pub use crate::c::C;\npub struct A;\n"), ("b.rs", b), ("c.rs", "pub struct C;\n")];
        assert_eq!(found(&files("use crate::a::C;\n"), FLOORS), [""; 0]);
        assert_eq!(found(&files("use crate::Renamed;\n"), FLOORS), ["1: b uses a, which is not on a floor below it"]);
    }

    #[test]
    fn floors_have_their_modules_and_modules_their_floors() {
        let files = [LIB, ("a.rs", "fn f() {}\n"), ("b.rs", "fn f() {}\n")];
        let expected = ["1: c has a floor, but is gone", "1: b has no floor; give it one in xtask/src/floors/house.rs"];
        assert_eq!(found(&files, &[&["a"], &["c"]]), expected);
    }
}
