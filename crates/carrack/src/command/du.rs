//! `carrack du`: what files and directories take, told by the host that has them.
//!
//! Sums are kept for each directory that is shown, so `--max-depth` bounds the memory of the largest tree. A file with
//! several names is counted once, as du does it.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU64;

use carrack_core::path::{display_bytes, join};
use carrack_core::report::ItemKind;
use carrack_engine::files::{ListEntry, UsageEntry};
use clap::{Arg, ArgAction, Command};
use serde_json::json;

use super::named::{self, Needs};
use super::place::VerbRun;
use super::reach::with_endpoints;
use crate::cli::filters;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::output::{format, json as objects, say};

const ALL: Switch = Switch::short('a', "all", "Show files too, not directories alone");
const SUMMARIZE: Switch = Switch::short('s', "summarize", "Show each LOCATION alone: the same as --max-depth 0");
const MAX_DEPTH: Value<usize> = Value::new(
    "max-depth",
    "N",
    |text| text.parse().map_err(|_| format!("{text:?} is not a number of levels")),
    "Show what lies at most N levels below LOCATION; everything is counted in any case",
)
.letter('d');
const TOTAL: Switch = Switch::short('c', "total", "Show the sum of all LOCATIONs at the end");
const HUMAN: Switch = Switch::short('h', "human-readable", "Show sizes like 1.5 GiB");
const APPARENT: Switch = Switch::new(
    "apparent-size",
    "Show how long files are, not what they take: holes count, what rounding adds does not",
);
const BYTES: Switch = Switch::short('b', "bytes", "Show bytes: the same as --apparent-size in units of one byte");
const LOCATIONS: Positional = Positional::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("du")
        .about("Show what files and directories take, in units of 1024 bytes")
        .after_help(
            "A place that does not tell what its files take, like a store of objects, shows how long they are. With --json, \
             a line has both: size, the length of the files, and allocated, what they take, where it is known.",
        )
        // du's own users mean something else by -h.
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").help("Print help").action(ArgAction::Help))
        .args([ALL.arg(), SUMMARIZE.arg().conflicts_with(MAX_DEPTH.name), MAX_DEPTH.arg(), TOTAL.arg()])
        .args([HUMAN.arg(), APPARENT.arg(), BYTES.arg().conflicts_with(HUMAN.name)])
        .args(filters::of_listing())
        .arg(LOCATIONS.arg().required(true));
    with_endpoints(verb)
}

/// What a tree comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Bytes of content, of files and links.
    size: u64,
    /// What all of it takes of the storage, as far as it is known.
    allocated: u64,
    /// Of something it is not known.
    is_partly_unknown: bool,
    files: u64,
    directories: u64,
}

impl Usage {
    fn of(entry: &ListEntry) -> Self {
        let has_content = matches!(entry.kind, ItemKind::File | ItemKind::Symlink);
        Self {
            size: if has_content { entry.size } else { 0 },
            allocated: entry.allocated.unwrap_or(0),
            is_partly_unknown: entry.allocated.is_none(),
            files: u64::from(entry.kind != ItemKind::Directory),
            directories: u64::from(entry.kind == ItemKind::Directory),
        }
    }

    fn add(&mut self, other: Self) {
        self.size = self.size.saturating_add(other.size);
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.is_partly_unknown |= other.is_partly_unknown;
        self.files += other.files;
        self.directories += other.directories;
    }

    fn known_allocated(&self) -> Option<u64> {
        (!self.is_partly_unknown).then_some(self.allocated)
    }
}

/// The sums below one location.
struct UsageTree {
    depth: usize,
    files_too: bool,
    itself: Usage,
    /// By path below the location.
    below: BTreeMap<Vec<u8>, Usage>,
}

impl UsageTree {
    fn new(depth: usize, files_too: bool) -> Self {
        Self { depth, files_too, itself: Usage::default(), below: BTreeMap::new() }
    }

    /// Counts something below, in every directory above it that is shown.
    fn add(&mut self, path: &[u8], usage: Usage, is_directory: bool) {
        self.itself.add(usage);
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for (level, end) in slashes.chain([path.len()]).enumerate().take(self.depth) {
            if end == path.len() && !is_directory && !self.files_too {
                break;
            }
            debug_assert!(level < self.depth);
            match self.below.get_mut(&path[..end]) {
                Some(sum) => sum.add(usage),
                None => drop(self.below.insert(path[..end].to_vec(), usage)),
            }
        }
    }

    /// The sums, what lies in a directory before the directory.
    fn into_lines(self) -> Vec<(Vec<u8>, Usage)> {
        let mut lines = Vec::with_capacity(self.below.len());
        let mut open: Vec<(Vec<u8>, Usage)> = Vec::new();
        // By component: a name that goes on with a character before `/` comes behind what is in the directory.
        let mut sums: Vec<_> = self.below.into_iter().collect();
        sums.sort_by(|(one, _), (other, _)| one.split(|byte| *byte == b'/').cmp(other.split(|byte| *byte == b'/')));
        for (path, usage) in sums {
            let is_within = |above: &[u8]| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
            while let Some(last) = open.pop_if(|(above, _)| !is_within(above)) {
                lines.push(last);
            }
            open.push((path, usage));
        }
        lines.extend(open.into_iter().rev());
        lines
    }
}

/// In which unit it is shown.
#[derive(Clone, Copy, Debug)]
struct SizeUnit {
    apparent: bool,
    bytes: bool,
    human: bool,
}

impl SizeUnit {
    fn text(self, usage: &Usage) -> String {
        let amount = match usage.known_allocated().filter(|_| !self.apparent) {
            Some(allocated) => allocated,
            None => usage.size,
        };
        if self.human {
            format::size(amount)
        } else if self.bytes {
            amount.to_string()
        } else {
            amount.div_ceil(1024).to_string()
        }
    }
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let places = named::places(flags, &LOCATIONS, Needs::READ)?;
    let depth = if flags.has(&SUMMARIZE) { Some(0) } else { flags.get(&MAX_DEPTH)? };
    let (depth, files_too) = (depth.unwrap_or(usize::MAX), flags.has(&ALL));
    let bytes = flags.has(&BYTES);
    let shown = SizeUnit { apparent: bytes || flags.has(&APPARENT), bytes, human: flags.has(&HUMAN) };
    let mut run = VerbRun::new("du", flags)?.without(filters::of_verb(flags)?);
    let mut total = Usage::default();
    let mut twins: HashSet<NonZeroU64> = HashSet::new();
    let mut told_unknown = false;
    run.each(&places, |run, files, place| {
        let mut tree = UsageTree::new(depth, files_too);
        let mut is_taken = false;
        files.usage(place.path(), &mut |found| {
            let (entry, below) = match found {
                UsageEntry::Itself(entry) => (entry, false),
                UsageEntry::Below(entry) => (entry, true),
            };
            is_taken = true;
            if let Some(failure) = entry.error {
                let name = if below { join(place.shown(), &entry.path) } else { place.shown().to_vec() };
                return run.fail(&name, place.tell(failure));
            }
            if entry.twin.is_some_and(|twin| !twins.insert(twin)) {
                return;
            }
            let usage = Usage::of(&entry);
            if below {
                tree.add(&entry.path, usage, entry.kind == ItemKind::Directory);
            } else {
                tree.itself.add(usage);
            }
        })?;
        // What was named may itself be left out.
        if !is_taken {
            return Ok(());
        }
        total.add(tree.itself);
        if tree.itself.is_partly_unknown && !shown.apparent && !run.json && !run.quiet && !told_unknown {
            told_unknown = true;
            say("note: it is not known what files take there: shown is how long they are");
        }
        let itself = tree.itself;
        for (path, usage) in tree.into_lines() {
            tell(run, &join(place.shown(), &path), &usage, shown);
        }
        tell(run, place.shown(), &itself, shown);
        run.done += 1;
        Ok(())
    })?;
    if flags.has(&TOTAL) {
        if run.json {
            run.json("usage-total", fields(&total));
        } else {
            run.line(format!("{}\ttotal", shown.text(&total)).as_bytes());
        }
    }
    run.finish()
}

fn fields(usage: &Usage) -> serde_json::Value {
    let mut fields = json!({ "size": usage.size, "files": usage.files, "directories": usage.directories });
    if let Some(allocated) = usage.known_allocated() {
        fields["allocated"] = json!(allocated);
    }
    fields
}

fn tell(run: &mut VerbRun, path: &[u8], usage: &Usage, shown: SizeUnit) {
    if run.json {
        return run.json("usage", objects::with_path(fields(usage), path));
    }
    // What was named by nothing is the place where one is.
    let name = if path.is_empty() { ".".to_owned() } else { display_bytes(path).to_string() };
    run.line(format!("{}\t{name}", shown.text(usage)).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64) -> Usage {
        Usage { size, allocated: size.next_multiple_of(4096), files: 1, ..Usage::default() }
    }

    const DIRECTORY: Usage = Usage { size: 0, allocated: 4096, is_partly_unknown: false, files: 0, directories: 1 };

    fn tree(depth: usize, files_too: bool) -> UsageTree {
        let mut tree = UsageTree::new(depth, files_too);
        tree.itself.add(DIRECTORY);
        // In any order: a place may list as it likes.
        tree.add(b"a/b/c", file(5000), false);
        tree.add(b"a-", DIRECTORY, true);
        tree.add(b"a/b", DIRECTORY, true);
        tree.add(b"a", DIRECTORY, true);
        tree.add(b"a/f", file(1), false);
        tree.add(b"top", file(10), false);
        tree
    }

    fn paths(lines: &[(Vec<u8>, Usage)]) -> Vec<String> {
        lines.iter().map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect()
    }

    #[test]
    fn sums_of_directories_stand_behind_what_is_in_them() {
        let all = tree(usize::MAX, false);
        assert_eq!((all.itself.size, all.itself.allocated), (5011, 4 * 4096 + 8192 + 2 * 4096));
        assert_eq!((all.itself.files, all.itself.directories), (3, 4));
        let lines = all.into_lines();
        assert_eq!(paths(&lines), ["a/b", "a", "a-"]);
        assert_eq!((lines[0].1.size, lines[1].1.size, lines[2].1.size), (5000, 5001, 0));
        assert_eq!(lines[1].1.allocated, 2 * 4096 + 8192 + 4096);
        assert_eq!(paths(&tree(usize::MAX, true).into_lines()), ["a/b/c", "a/b", "a/f", "a", "a-", "top"]);
        assert_eq!(paths(&tree(1, false).into_lines()), ["a", "a-"]);
        assert_eq!(paths(&tree(1, true).into_lines()), ["a", "a-", "top"]);
        let none = tree(0, true);
        assert_eq!(none.itself.size, 5011);
        assert!(none.into_lines().is_empty());
    }

    #[test]
    fn sizes_are_rounded_up_as_du_does_and_fall_back_to_the_length() {
        let known = file(5000);
        let shown = |apparent, bytes, human| SizeUnit { apparent, bytes, human };
        assert_eq!(shown(false, false, false).text(&known), "8");
        assert_eq!(shown(true, false, false).text(&known), "5");
        assert_eq!(shown(true, true, false).text(&known), "5000");
        assert_eq!(shown(false, false, true).text(&known), "8.0 KiB");
        let unknown = Usage { is_partly_unknown: true, allocated: 0, ..known };
        assert_eq!(shown(false, false, false).text(&unknown), "5");
        assert!(fields(&unknown).get("allocated").is_none() && fields(&known)["allocated"] == 8192);
    }
}
