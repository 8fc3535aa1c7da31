//! The flags of rules that leave names out, in the order in which they were typed, and the files that they name.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use carrack_core::attributes::Time;
use carrack_core::filter::{AddedRule, Filters, RuleForm, entries_of};
use carrack_core::limits;
use carrack_core::options::{DELETE, DELETE_BEFORE, DELETE_EXCLUDED};
use carrack_core::path::display_bytes;
use carrack_sys::host::clock_seconds;
use clap::{Arg, ArgAction};

use super::files_from::{FROM0, end_of_entries};
use super::flag::Value;
use super::flags::{Flags, Given};
use super::foreign::patterns;
use super::option_flags;
use crate::error::CommandError;
use crate::output::{say, stream};

const EXCLUDE: Value<Vec<u8>> =
    Value::path("exclude", "PATTERN", "Leave out what matches; like rsync's, and the first rule that matches decides");
const INCLUDE: Value<Vec<u8>> =
    Value::path("include", "PATTERN", "Take what matches, though a later rule would leave it out");
const FILTER: Value<Vec<u8>> =
    Value::path("filter", "RULE", "A rule with its kind: `- *.o`, `+ */`, `protect keep/`, `dir-merge .rules`")
        .letter('f');
const EXCLUDE_FROM: Value<Vec<u8>> =
    Value::path("exclude-from", "FILE", "Read patterns to leave out from FILE, one a line; - is standard input");
const INCLUDE_FROM: Value<Vec<u8>> =
    Value::path("include-from", "FILE", "Read patterns to take from FILE, one a line; - is standard input");

/// Files that rules name, and that are named by rules in them.
const MERGE_DEPTH: u32 = 8;

/// The flags as clap knows them.
pub fn args() -> impl Iterator<Item = Arg> {
    [EXCLUDE, INCLUDE, FILTER, EXCLUDE_FROM, INCLUDE_FROM]
        .into_iter()
        .map(|flag| flag.arg().action(ArgAction::Append).allow_hyphen_values(true))
        .chain([FROM0.arg()])
}

/// The flags of a verb that lists or counts: what they leave out of a copy, they leave out there.
pub fn of_listing() -> impl Iterator<Item = Arg> {
    args().chain(option_flags::of_files()).map(|arg| arg.help_heading("Which files"))
}

/// What such a verb leaves out.
///
/// # Errors
/// As [`filters`].
pub fn of_verb(flags: &Flags) -> Result<Filters, CommandError> {
    let mut filters = filters(flags, false)?;
    option_flags::asked_files(flags)?.choose_files(Time::new(clock_seconds(), 0), &mut filters);
    Ok(filters)
}

/// The rules that were given.
///
/// # Errors
/// A usage error that names the flag, and the line of a file; a file that cannot be read.
pub fn filters(flags: &Flags, deletes_excluded: bool) -> Result<Filters, CommandError> {
    let mut filters = Filters::new(deletes_excluded);
    let end = end_of_entries(flags);
    let given = flags.in_order(&[EXCLUDE.name, INCLUDE.name, FILTER.name, EXCLUDE_FROM.name, INCLUDE_FROM.name]);
    let are_all_include = given.iter().all(|(flag, _)| [INCLUDE.name, INCLUDE_FROM.name].contains(flag));
    for (flag, Given { origin, value }) in given {
        let added = match flag {
            "exclude" => add(&mut filters, RuleForm::Exclude, &value, (0, end)),
            "include" => add(&mut filters, RuleForm::Include, &value, (0, end)),
            "filter" => add(&mut filters, RuleForm::Rule, &value, (0, end)),
            "exclude-from" => merge(&mut filters, RuleForm::Exclude, &value, (0, end)),
            _ => merge(&mut filters, RuleForm::Include, &value, (0, end)),
        };
        added.map_err(|why| match why {
            RuleRefusal::Rule(why) => CommandError::usage(format!("{origin}: {why}")),
            RuleRefusal::File(error) => error,
        })?;
    }
    let may_delete = [DELETE, DELETE_BEFORE, DELETE_EXCLUDED];
    let deletes = may_delete.iter().any(|one| flags.knows(one.flag.name()) && flags.option(one).is_some());
    match are_all_include && patterns::only_include(&filters) {
        // Whoever means what rclone does with it would lose what he does not name.
        true if deletes => {
            Err(CommandError::usage(format!("{INCLUDE_ALONE}, and all would be deleted that SRC lacks"))
                .hint(patterns::INCLUDE_ONLY)
                .hint("if all is meant, leave --include out"))
        }
        true => {
            say(&format!("note: {INCLUDE_ALONE}: {}", patterns::INCLUDE_ONLY));
            Ok(filters)
        }
        false => {
            patterns::note_of_directories(&filters).into_iter().for_each(say);
            Ok(filters)
        }
    }
}

const INCLUDE_ALONE: &str = "--include alone leaves nothing out";

enum RuleRefusal {
    Rule(String),
    File(CommandError),
}

/// Adds a rule that a flag has, or a file so many deep, whose entries end with that byte.
fn add(filters: &mut Filters, form: RuleForm, line: &[u8], (depth, end): (u32, u8)) -> Result<(), RuleRefusal> {
    patterns::check_braces(line).map_err(RuleRefusal::Rule)?;
    match filters.add(form, line).map_err(RuleRefusal::Rule)? {
        AddedRule::Taken => Ok(()),
        AddedRule::Merge(file, form) if depth < MERGE_DEPTH => merge(filters, form, &file, (depth + 1, end)),
        AddedRule::Merge(..) => Err(RuleRefusal::Rule(format!("files name each other more than {MERGE_DEPTH} deep"))),
    }
}

fn merge(filters: &mut Filters, form: RuleForm, file: &[u8], (depth, end): (u32, u8)) -> Result<(), RuleRefusal> {
    let mut text = Vec::new();
    let most = limits::FILTER_BYTES as u64 + 1;
    let read = match file {
        b"-" => stream::input().and_then(|input| input.take(most).read_to_end(&mut text)),
        path => File::open(std::ffi::OsStr::from_bytes(path)).and_then(|file| file.take(most).read_to_end(&mut text)),
    };
    read.map_err(|error| RuleRefusal::File(CommandError::file("cannot read the rules in", file, &error)))?;
    if text.len() > limits::FILTER_BYTES {
        let most = limits::FILTER_BYTES;
        return Err(RuleRefusal::Rule(format!("{} has more than {most} bytes", display_bytes(file))));
    }
    for (number, line) in entries_of(&text, end) {
        add(filters, form, line, (depth, end)).map_err(|why| match why {
            RuleRefusal::Rule(why) => RuleRefusal::Rule(format!("line {number} of {}: {why}", display_bytes(file))),
            other => other,
        })?;
    }
    Ok(())
}
