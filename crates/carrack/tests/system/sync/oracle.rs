//! rsync says what is right: random trees, changes, rules and flags, and the same set has to be copied, kept and
//! deleted by both.
//!
//! `CARRACK_SWEEP` is how many cases are tried, `CARRACK_SYNC_SEED` the first of them; a case that differs is made
//! smaller before it is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use carrack_core::chance::Chance;

use crate::support::running::InTime;
use crate::support::{Sandbox, ran, tool};

const CASES: u64 = 200;

/// Names of directories are no names of files: what one side has as the one and the other as the other is another test.
const DIRECTORIES: [&str; 5] = ["d", "e", "foodir", "keep", ".h"];
const FILES: [&str; 9] = ["a", "b.o", "c.c", "foo.o", "x y", "tmp~", ".hid", "bar", "keep.o"];
const LINKS: [&str; 2] = ["l1", "l2"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File(String),
    Link(String),
}

#[derive(Clone, Debug)]
struct Entry {
    path: String,
    kind: Kind,
    mode: u32,
    /// Seconds and nanoseconds.
    mtime: (u64, u32),
}

#[derive(Clone, Debug, Default)]
struct Case {
    from: Vec<Entry>,
    to: Vec<Entry>,
    rules: Vec<String>,
    flags: Vec<String>,
}

/// What a case has, so that what is not tried is seen.
#[derive(Debug, Default)]
struct Tried {
    with_rules: u64,
    conflicting: u64,
    anchored: u64,
    stars: u64,
    per_directory: u64,
    protecting: u64,
    deleting: u64,
}

/// So often in a thousand.
fn happens(chance: &mut Chance, often: u64) -> bool {
    chance.below(1000) < often
}

fn one<'a>(chance: &mut Chance, of: &[&'a str]) -> &'a str {
    of[chance.below(of.len() as u64) as usize]
}

fn grow(chance: &mut Chance, into: &mut Vec<Entry>, directory: &str, depth: u32) {
    let entry = |chance: &mut Chance, name: &str, kind| Entry {
        path: format!("{directory}{name}"),
        kind,
        mode: [0o644, 0o600, 0o755][chance.below(3) as usize],
        mtime: (1_600_000_000 + chance.below(3), [0, 5][chance.below(2) as usize]),
    };
    for name in FILES {
        if happens(chance, 350) {
            let content = one(chance, &["", "one", "two", "three", "longer content"]).to_owned();
            into.push(entry(chance, name, Kind::File(content)));
        }
    }
    for name in LINKS {
        if happens(chance, 150) {
            let target = one(chance, &["a", "/none", "../x", "d/../a", "../../x"]).to_owned();
            into.push(entry(chance, name, Kind::Link(target)));
        }
    }
    for name in DIRECTORIES {
        if depth < 3 && happens(chance, 400) {
            let mut made = entry(chance, name, Kind::Directory);
            made.mode = 0o755;
            into.push(made);
            grow(chance, into, &format!("{directory}{name}/"), depth + 1);
        }
    }
}

fn pattern(chance: &mut Chance) -> String {
    let (directory, file) = (one(chance, &DIRECTORIES), one(chance, &FILES));
    match chance.below(16) {
        0 => file.to_owned(),
        1 => format!("/{file}"),
        2 => format!("{directory}/"),
        3 => format!("/{directory}/"),
        4 => format!("{directory}/*"),
        5 => format!("{directory}/**"),
        6 => format!("{directory}/***"),
        7 => format!("/{directory}/***"),
        8 => format!("**/{file}"),
        9 => format!("{directory}/**/{file}"),
        10 => one(chance, &["*.o", "*.[oc]", "*~", ".*", "?", "*", "*/", "[!a-c]*", "**.o", "foo*", "k**o"]).to_owned(),
        11 => format!("{directory}/{file}"),
        12 => format!("/{directory}/{file}"),
        13 => format!("{directory}/{}/{file}", one(chance, &DIRECTORIES)),
        14 => format!("/*/{file}"),
        _ => format!("[[:alpha:]]/{file}"),
    }
}

fn rule(chance: &mut Chance) -> String {
    let pattern = pattern(chance);
    match chance.below(14) {
        0..4 => format!("--exclude={pattern}"),
        4..7 => format!("--include={pattern}"),
        7 => format!("--filter=P {pattern}"),
        8 => format!("--filter=R {pattern}"),
        9 => format!("--filter=H {pattern}"),
        10 => format!("--filter=S {pattern}"),
        11 => {
            format!("--filter={} {pattern}", one(chance, &["-s", "-r", "+s", "+r", "-!", "-p", "-,s", "exclude", "+"]))
        }
        12 => format!("--filter={}", one(chance, &[": .rules", ":- .rules", ":n .rules", "dir-merge,n- .rules"])),
        _ => "--filter=!".to_owned(),
    }
}

impl Case {
    fn new(seed: u64) -> Self {
        let chance = &mut Chance::new(seed);
        let mut case = Self::default();
        grow(chance, &mut case.from, "", 0);
        for entry in &case.from {
            // What the destination has of it is the same, or differs, or is not there.
            let mut entry = entry.clone();
            match (chance.below(8), &mut entry.kind) {
                (0, Kind::Directory) => {}
                (0, _) => continue,
                (1, Kind::File(content)) => content.push_str("more"),
                (2, Kind::Link(target)) => target.push('x'),
                (3, _) => entry.mtime.0 += chance.below(3),
                (4, _) => entry.mtime.1 = 0,
                (5, Kind::File(_)) => entry.mode = 0o640,
                _ => {}
            }
            case.to.push(entry);
        }
        let mut others = Vec::new();
        grow(chance, &mut others, "", 0);
        let has = |path: &str| case.to.iter().any(|entry| entry.path == path);
        let others: Vec<Entry> = others.into_iter().filter(|entry| !has(&entry.path) && happens(chance, 500)).collect();
        for entry in others {
            let parent = entry.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            if parent.is_empty() || case.to.iter().any(|other| other.path == parent) {
                case.to.push(entry);
            }
        }
        case.rules = (0..chance.below(6)).map(|_| rule(chance)).collect();
        // Without another rule they have no effect, and Carrack refuses them where something may be deleted.
        if case.rules.iter().all(|rule| rule.starts_with("--include")) {
            case.rules.clear();
        }
        if case.rules.iter().any(|rule| rule.contains(".rules")) {
            case.add_rule_files(chance);
        }
        if happens(chance, 700) {
            case.flags.push(one(chance, &["--delete", "--delete", "--delete-excluded"]).to_owned());
        }
        let level = one(chance, &["", "", "", "--size-only", "--ignore-existing", "--existing", "-u"]);
        let bound = one(chance, &["", "", "", "--max-size=3", "--min-size=1", "--min-size=4"]);
        let kept = one(chance, &["", "", "", "", "-b --suffix=-was", "--backup-dir=.bak"]);
        // What leads out rsync does not keep, and Carrack does.
        let links = one(chance, &["", "", "", if kept.is_empty() { "--safe-links" } else { "" }]);
        case.flags.extend(
            [level, bound, links].into_iter().chain(kept.split(' ')).filter(|flag| !flag.is_empty()).map(str::to_owned),
        );
        if !kept.is_empty() {
            // It would clear the rule that keeps rsync from deleting what it keeps.
            case.rules.retain(|rule| rule != "--filter=!");
        }
        case
    }

    /// Both sides have the same rules: which of two would hold, rsync says by the way in which it deletes.
    fn add_rule_files(&mut self, chance: &mut Chance) {
        let directories = self.from.iter().filter(|entry| entry.kind == Kind::Directory);
        let places: Vec<String> = directories.map(|entry| format!("{}/", entry.path)).collect();
        let is_plain = !self.rules.iter().any(|rule| rule.contains(": .rules") || rule.contains(":n .rules"));
        for place in places.into_iter().chain([String::new()]).filter(|_| happens(chance, 500)).collect::<Vec<_>>() {
            let mut text = String::from("# rules\n");
            for _ in 0..=chance.below(2) {
                let kind = if is_plain { "" } else { one(chance, &["- ", "+ ", "P ", "H ", "- ", "-s "]) };
                writeln!(text, "{kind}{}", pattern(chance)).unwrap();
            }
            let path = format!("{place}.rules");
            let entry = Entry { path, kind: Kind::File(text), mode: 0o644, mtime: (1_600_000_000, 0) };
            self.from.push(entry.clone());
            let parent = place.trim_end_matches('/');
            if parent.is_empty() || self.to.iter().any(|other| other.path == parent) {
                self.to.push(entry);
            }
        }
    }

    fn count(&self, tried: &mut Tried) {
        let has = |word: &str| self.rules.iter().any(|rule| rule.contains(word));
        let takes =
            self.rules.iter().any(|rule| rule.contains("--include") || rule.contains("=+") || rule.contains("=S"));
        tried.with_rules += u64::from(!self.rules.is_empty());
        tried.conflicting += u64::from(takes && (has("--exclude") || has("=-") || has("=H")));
        tried.anchored += u64::from(has("=/") || has(" /"));
        tried.stars += u64::from(has("**"));
        tried.per_directory += u64::from(has(".rules"));
        tried.deleting += u64::from(self.flags.iter().any(|flag| flag.starts_with("--delete")));
        tried.protecting +=
            u64::from((has("=P") || has("=R")) && self.flags.iter().any(|flag| flag.starts_with("--delete")));
    }

    /// What rsync makes of it, and what Carrack does.
    fn results(&self, sandbox: &Sandbox) -> [BTreeMap<String, String>; 2] {
        let place = sandbox.path("case");
        if place.exists() {
            fs::remove_dir_all(&place).unwrap();
        }
        let make = |name: &str, entries: &[Entry]| {
            let top = place.join(name);
            fs::create_dir_all(&top).unwrap();
            plant(&top, entries);
        };
        make("from", &self.from);
        make("rsync", &self.to);
        make("carrack", &self.to);
        let mut rsync = Command::new("rsync");
        let after = self.flags.iter().any(|flag| flag.starts_with("--delete")).then_some("--delete-after");
        // Without such a rule, in the first place, rsync deletes what it has just kept.
        let protects = self.flags.iter().find_map(|flag| match &flag[..] {
            "--backup-dir=.bak" => Some("--filter=P /.bak"),
            "--suffix=-was" => Some("--filter=P *-was"),
            _ => None,
        });
        rsync
            .args(["-rlpt"])
            .args(protects)
            .args(&self.rules)
            .args(&self.flags)
            .args(after)
            .args(["from/", "rsync"])
            .current_dir(&place);
        let said = ran(rsync.output_in_time().unwrap());
        assert_eq!(said.code, 0, "rsync {self:#?}: {}", said.stderr);
        let mut ours = sandbox.carrack();
        // An empty source is another test.
        let empty = after.map(|_| "--allow-empty");
        ours.args(["sync", "-q", "--durable", "none"]).args(&self.rules).args(&self.flags).args(empty);
        let said = ran(ours.args(["from/", "carrack"]).current_dir(&place).output_in_time().unwrap());
        let mut found = [shown(&place.join("rsync")), shown(&place.join("carrack"))];
        if said.code != 0 {
            found[1].insert("(code)".to_owned(), format!("{} {}", said.code, said.stderr));
        }
        found
    }

    fn differs(&self, sandbox: &Sandbox) -> bool {
        let [rsync, carrack] = self.results(sandbox);
        rsync != carrack
    }

    /// Without whatever may go and leaves the difference.
    fn smaller(mut self, sandbox: &Sandbox) -> Self {
        let mut shrinks = true;
        while shrinks {
            shrinks = false;
            let whole = self.clone();
            let mut tries: Vec<Self> = Vec::new();
            for index in 0..whole.rules.len() {
                let mut less = whole.clone();
                less.rules.remove(index);
                tries.push(less);
            }
            for index in 0..whole.flags.len() {
                let mut less = whole.clone();
                let flag = less.flags.remove(index);
                // rsync keeps nothing by a suffix alone, and another suffix is another case.
                let both = ["-b", "--suffix=-was"];
                if both.contains(&&flag[..]) {
                    less.flags.retain(|other| !both.contains(&&other[..]));
                }
                tries.push(less);
            }
            let paths: Vec<&str> = whole.from.iter().chain(&whole.to).map(|entry| &entry.path[..]).collect();
            for path in paths {
                let is_in = |entry: &Entry| entry.path == path || entry.path.starts_with(&format!("{path}/"));
                let mut less = whole.clone();
                less.from.retain(|entry| !is_in(entry));
                less.to.retain(|entry| !is_in(entry));
                tries.push(less);
            }
            if let Some(less) = tries.into_iter().find(|less| less.differs(sandbox)) {
                self = less;
                shrinks = true;
            }
        }
        self
    }
}

fn plant(top: &Path, entries: &[Entry]) {
    for entry in entries {
        let path = top.join(&entry.path);
        match &entry.kind {
            Kind::Directory => fs::create_dir_all(&path).unwrap(),
            Kind::Link(target) => symlink(target, &path).unwrap(),
            Kind::File(content) => {
                fs::write(&path, content).unwrap();
                fs::set_permissions(&path, Permissions::from_mode(entry.mode)).unwrap();
                let (seconds, nanos) = entry.mtime;
                let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
                fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            }
        }
    }
}

/// Everything below a directory: what it is and holds, and of files their permissions and whole seconds.
pub fn shown(top: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let what = if meta.is_dir() {
                waiting.push(path.clone());
                "directory".to_owned()
            } else if meta.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else {
                format!("{:o} {} {:?}", meta.mode() & 0o777, meta.mtime(), fs::read_to_string(&path).unwrap())
            };
            found.insert(path.strip_prefix(top).unwrap().display().to_string(), what);
        }
    }
    found
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn same_set_is_copied_kept_and_deleted_as_by_rsync() {
    let version =
        Command::new("rsync").arg("--version").output().map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    if !version.as_ref().is_ok_and(|version| version.contains("version 3.5.")) {
        return println!("skipped: there is no rsync 3.5 to compare with");
    }
    // What it helps with is what the table of flags knows.
    let help = tool(Command::new("rsync").arg("--help"));
    let known = include_str!("../../golden/rsync-3.5-flags.txt");
    let heads = help.lines().filter(|line| line.starts_with('-')).filter_map(|line| line.split("  ").next());
    for name in heads.flat_map(|head| head.split([',', '=', ' '])).filter(|name| name.starts_with('-')) {
        let is_known = known.lines().any(|line| line.trim_end_matches('=') == name);
        assert!(is_known || ["--no-OPTION", "--version", "-V", "--help"].contains(&name), "{name} of rsync is new");
    }
    let sandbox = Sandbox::in_memory();
    let (cases, first) = (number("CARRACK_SWEEP", CASES), number("CARRACK_SYNC_SEED", 1));
    let mut tried = Tried::default();
    for seed in first..first + cases {
        let case = Case::new(seed);
        case.count(&mut tried);
        if case.differs(&sandbox) {
            let case = case.smaller(&sandbox);
            let [rsync, carrack] = case.results(&sandbox);
            panic!("seed {seed} of {first} to {}: {case:#?}\nrsync: {rsync:#?}\ncarrack: {carrack:#?}", first + cases);
        }
    }
    println!("seeds {first} to {}: {tried:?}", first + cases - 1);
    let hard = [tried.conflicting, tried.anchored, tried.stars, 2 * tried.per_directory, 2 * tried.protecting];
    assert!(cases < CASES || hard.iter().all(|count| 6 * count >= cases), "too few cases are hard: {tried:?}");
}
