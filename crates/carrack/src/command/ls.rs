//! `carrack ls`: a directory, sorted as far as it is held. What is longer than that is told as it is read.

use std::cmp::Ordering;

use carrack_engine::files::{Files, ListEntry};
use clap::{Arg, ArgAction, Command};

use super::entry;
use super::named::{self, Needs, VerbPlace};
use super::place::VerbRun;
use super::reach::with_endpoints;
use crate::cli::filters;
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::output::say;

const RECURSIVE: Switch = Switch::short('R', "recursive", "List subdirectories too; paths are relative to LOCATION");
const LONG: Switch = Switch::short(
    'l',
    "long",
    "Show mode (+: it has an ACL; @: extended attributes), names, owner, group, size in bytes, modification time (UTC), name, target of a link",
);
const HUMAN: Switch = Switch::short('h', "human-readable", "With -l, show sizes like 1.5 GiB");
const BY_TIME: Switch = Switch::short('t', "sort-time", "Sort by modification time, the latest first");
const BY_SIZE: Switch = Switch::short('S', "sort-size", "Sort by size, the largest first");
const UNSORTED: Switch = Switch::short('U', "unsorted", "List names as they are read, at once; else by name");
const REVERSE: Switch = Switch::short('r', "reverse", "Turn the order round");
/// As `ls` has them; it is so already.
const ONE_A_LINE: Switch = Switch::short('1', "one-a-line", "List one name a line, as always");
const ALL: Switch = Switch::short('a', "all", "List names that begin with a dot, too, as always");
const LOCATION: Positional = Positional::one("location", "LOCATION");

/// Names that are held to be sorted, some 300 bytes each.
const HELD_MOST: usize = 200_000;

const EXAMPLES: &str = "\
Examples:
  carrack ls -l cluster:/scratch/run42         # over ssh
  carrack ls -lht @archive:/2026               # an endpoint of a service, the latest first
  carrack ls -R --min-size 1G /data            # large files, in all directories below";

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("ls")
        .about("List a directory, or one file")
        .after_help(EXAMPLES)
        // ls's own users mean something else by -h.
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").help("Print help").action(ArgAction::Help))
        .args([RECURSIVE.arg(), LONG.arg(), HUMAN.arg()])
        .args([BY_TIME.arg().conflicts_with_all([BY_SIZE.name, UNSORTED.name]), BY_SIZE.arg()])
        .args([UNSORTED.arg().conflicts_with_all([BY_SIZE.name, REVERSE.name]), REVERSE.arg()])
        .args([ONE_A_LINE.arg().hide(true), ALL.arg().hide(true)])
        .args(filters::of_listing())
        .arg(
            LOCATION
                .arg()
                .default_value(".")
                .help("What to list [default: the current directory]")
                .hide_default_value(true),
        );
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let place = named::place(flags, &LOCATION, Needs::READ)?;
    let look = ListingView { recursive: flags.has(&RECURSIVE), long: flags.has(&LONG), human: flags.has(&HUMAN) };
    let order = ListingOrder::of(flags);
    let mut run = VerbRun::new("ls", flags)?.without(filters::of_verb(flags)?);
    run.each(&[place], |run, files, place| list(run, files, place, look, order))?;
    run.finish()
}

/// How much is listed, and how it is shown.
#[derive(Clone, Copy)]
struct ListingView {
    recursive: bool,
    long: bool,
    human: bool,
}

/// In which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListingOrder {
    Name { reverse: bool },
    Time { reverse: bool },
    Size { reverse: bool },
    AsRead,
}

impl ListingOrder {
    fn of(flags: &Flags) -> Self {
        let reverse = flags.has(&REVERSE);
        match (flags.has(&UNSORTED), flags.has(&BY_TIME), flags.has(&BY_SIZE)) {
            (true, ..) => Self::AsRead,
            (_, true, _) => Self::Time { reverse },
            (_, _, true) => Self::Size { reverse },
            _ => Self::Name { reverse },
        }
    }

    fn compare(self, one: &ListEntry, other: &ListEntry) -> Ordering {
        let by_path = || by_path(&one.path, &other.path);
        let (order, reverse) = match self {
            Self::AsRead => return Ordering::Equal,
            Self::Name { reverse } => (by_path(), reverse),
            Self::Time { reverse } => {
                let of = |entry: &ListEntry| (entry.mtime.seconds, entry.mtime.nanos);
                (of(other).cmp(&of(one)).then_with(by_path), reverse)
            }
            Self::Size { reverse } => (other.size.cmp(&one.size).then_with(by_path), reverse),
        };
        if reverse { order.reverse() } else { order }
    }
}

/// By the names in them: what is in a directory stands behind it, before what only begins like it.
fn by_path(one: &[u8], other: &[u8]) -> Ordering {
    one.split(|byte| *byte == b'/').cmp(other.split(|byte| *byte == b'/'))
}

fn list(
    run: &mut VerbRun<'_>,
    files: &mut Files,
    place: &VerbPlace,
    look: ListingView,
    order: ListingOrder,
) -> Result<(), carrack_core::report::Failure> {
    let mut held: Vec<ListEntry> = Vec::new();
    let mut is_sorted = order != ListingOrder::AsRead;
    let mut each = |mut listed: ListEntry| {
        if let Some(failure) = listed.error.take() {
            return run.fail(&listed.path, failure);
        }
        if is_sorted {
            held.push(listed);
            if held.len() >= HELD_MOST {
                is_sorted = false;
                say(&format!("note: there are more than {HELD_MOST} names; those behind them are not sorted"));
                show_all(run, &mut held, order, look);
            }
        } else {
            show(run, &listed, look);
        }
    };
    let read = match look.long {
        true => files.list_detailed(place.path(), look.recursive, &mut each),
        false => files.list(place.path(), look.recursive, &mut each),
    };
    // What was read before something failed is shown.
    show_all(run, &mut held, order, look);
    read
}

fn show_all(run: &mut VerbRun<'_>, held: &mut Vec<ListEntry>, order: ListingOrder, look: ListingView) {
    held.sort_by(|one, other| order.compare(one, other));
    held.drain(..).for_each(|listed| show(run, &listed, look));
}

fn show(run: &mut VerbRun<'_>, listed: &ListEntry, look: ListingView) {
    run.done += 1;
    if run.json {
        run.json("entry", entry::fields(&listed.path, listed));
    } else if look.long {
        run.line(entry::long(listed, look.human).as_bytes());
    } else {
        run.line(entry::short(listed).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::attributes::Time;
    use carrack_core::report::ItemKind;

    fn entry(path: &str, size: u64, seconds: i64) -> ListEntry {
        ListEntry {
            path: path.as_bytes().to_vec(),
            kind: ItemKind::File,
            size,
            mode: 0o644,
            mtime: Time::new(seconds, 0),
            link_target: Vec::new(),
            error: None,
            allocated: None,
            twin: None,
            names: 1,
            attributes: Default::default(),
        }
    }

    #[test]
    fn ls_sorts_by_name_time_and_size() {
        let listed = || vec![entry("b", 1, 5), entry("a.x", 3, 7), entry("a/y", 3, 6), entry("a", 2, 7)];
        let sorted = |order: ListingOrder| {
            let mut listed = listed();
            listed.sort_by(|one, other| order.compare(one, other));
            listed.iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(sorted(ListingOrder::Name { reverse: false }), "a a/y a.x b");
        assert_eq!(sorted(ListingOrder::Name { reverse: true }), "b a.x a/y a");
        assert_eq!(sorted(ListingOrder::Time { reverse: false }), "a a.x a/y b");
        assert_eq!(sorted(ListingOrder::Size { reverse: false }), "a/y a.x a b");
        assert_eq!(sorted(ListingOrder::AsRead), "b a.x a/y a");
    }
}
