//! The flags that describe a task, for `carrack task submit` and `carrack timer create`: those of `copy` that make
//! sense without a terminal, and those of Globus's command line that mean something here.

use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::options::{self, FilterLines, FormGroup, Streams, check_label, parse_priority};
use carrack_core::path::display_bytes;
use carrack_core::request::{Compare, Existing, Verify};
use carrack_service::clock::Moment;
use carrack_service::model::{NewTask, Notice, Pair, TaskKind, TaskOptions};
use clap::{Arg, ArgAction};

use crate::cli::files_from::{FileList, end_of_entries, read_list};
use crate::cli::filters;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::foreign::{self, FOREIGN_TASK_FLAGS};
use crate::cli::location::{check_typed_source, parse_task_location, task_location};
use crate::cli::moment::parse_until;
use crate::cli::option_flags;
use crate::cli::relative::{RELATIVE, RelativeSources, check_asked_of_sources};
use crate::cli::task_files::{read_batch, read_digests};
use crate::command::copy::options::FILES_FROM;
use crate::error::CommandError;
use crate::output::say;

const LOCATIONS: Positional = Positional::several("locations", "SRC... DST");
const KIND: Value<TaskKind> = Value::word("kind", "KIND", TaskKind::ALL, "[default: copy]");
const BATCH: Value<Vec<u8>> = Value::path(
    "batch",
    "FILE",
    "Read sources and destinations from FILE, a pair a line; quotes keep spaces, # begins a comment; - is standard input",
);
pub const LABEL: Value<String> = Value::new("label", "TEXT", parse_label, options::LABEL.flag.help());
pub const DEADLINE: Value<Moment> = Value::new(
    "deadline",
    "TIME",
    parse_until,
    "The task fails if it has not ended by then: a duration from now, like 6h, or a time, like 2026-11-23T08:00:00Z",
);
pub const PRIORITY: Value<u8> = Value::new(
    options::PRIORITY.flag.name(),
    options::PRIORITY.flag.value_name(),
    parse_priority,
    options::PRIORITY.flag.help(),
);
const RECEIPT: Switch = Switch::option(&options::RECEIPT);
const SKIP_SOURCE_ERRORS: Switch = Switch::option(&options::SKIP_SOURCE_ERRORS);
const FAIL_ON_QUOTA_ERRORS: Switch = Switch::option(&options::FAIL_ON_QUOTA_ERRORS);
const EXPECT_DIGESTS: Value<Vec<u8>> = Value::path(
    "expect-digests",
    "FILE",
    "Fail each file whose BLAKE3 digest is not the one in FILE, as b3sum writes it, with paths below DST; - is standard \
     input",
);
const NOTIFY: Value<Notice> = Value::new(
    "notify",
    "LIST",
    Notice::parse,
    "Outcomes for which the service runs its notify.command, separated by commas: succeeded, failed, partial, cancelled [default: those that the service's notify.ends names]",
);

// Of Globus's command line: see `FOREIGN_TASK_FLAGS`.
const PERF_CC: Value<u32> = Value::new("perf-cc", "N", parse_number, "As with Globus: N × --perf-p data connections");
const PERF_P: Value<u32> = Value::new("perf-p", "N", parse_number, "As with Globus: N data connections");
const SYNC_LEVEL: Value<SyncLevel> =
    Value::new("sync-level", "LEVEL", parse_sync_level, "As with Globus: exists, size, mtime, checksum");

/// The flags.
pub fn args() -> Vec<Arg> {
    let batch = BATCH.arg().conflicts_with_all([LOCATIONS.name, RELATIVE.name]);
    let what = [KIND.arg(), batch, FILES_FROM.arg(), RELATIVE.arg()];
    let what = what.into_iter().chain(option_flags::args(FormGroup::What)).chain(filters::args());
    let what = what.chain([EXPECT_DIGESTS.arg(), RECEIPT.arg()]);
    let task = [LABEL.arg(), DEADLINE.arg(), PRIORITY.arg(), NOTIFY.arg()];
    let faults = [SKIP_SOURCE_ERRORS.arg(), FAIL_ON_QUOTA_ERRORS.arg()];
    let globus = [PERF_CC.arg(), PERF_P.arg(), SYNC_LEVEL.arg()];
    let locations = LOCATIONS.arg().help("What to copy; the last is where it goes. @NAME:/PATH is at an endpoint");
    let headed = |heading: &'static str, args: Vec<Arg>| args.into_iter().map(move |arg| arg.help_heading(heading));
    std::iter::once(locations)
        .chain(headed("Task", task.to_vec()))
        .chain(headed("What", what.collect()))
        .chain(headed("Deletion", option_flags::deletion().collect()))
        .chain(headed("How", option_flags::args(FormGroup::How).collect()))
        .chain(headed("Faults", option_flags::args(FormGroup::Faults).chain(faults).collect()))
        .chain(globus.map(|arg| arg.hide(true)))
        .chain(foreign::taken(FOREIGN_TASK_FLAGS))
        .map(|arg| if arg.get_id() == NOTIFY.name { arg.action(ArgAction::Append) } else { arg })
        .collect()
}

/// The task that the flags describe.
///
/// # Errors
/// A usage error; a file that cannot be read.
pub fn new_task(flags: &Flags) -> Result<NewTask, CommandError> {
    let kind = flags.get(&KIND)?.unwrap_or_default();
    let inputs = [flags.given(&BATCH), flags.given(&EXPECT_DIGESTS), flags.given(&FILES_FROM)];
    if inputs.iter().flatten().filter(|given| given.value == b"-").count() > 1 {
        return Err(CommandError::usage("standard input can be read once: more than one flag names it by -"));
    }
    let (only, is_below_sources) = only(flags)?.unzip();
    // What is below sources is made with its path.
    let is_implied = is_below_sources == Some(true);
    let relative = flags.has(&RELATIVE) && !is_implied;
    let (mut pairs, only) = if relative { relative_pair(flags, kind, only)? } else { (pairs(flags, kind)?, only) };
    if is_implied {
        pairs.iter_mut().try_for_each(|pair| name_contents(&mut pair.source))?;
    }
    let only = only.map(as_texts).transpose()?;
    let options = task_options(flags, kind, only)?;
    if relative {
        check_asked_of_sources(options.require_mount, options.one_file_system)?;
    }
    Ok(NewTask {
        kind,
        pairs,
        options,
        label: flags.get(&LABEL)?,
        deadline: flags.get(&DEADLINE)?,
        priority: flags.get(&PRIORITY)?,
        receipt: flags.has(&RECEIPT),
        skip_source_errors: flags.has(&SKIP_SOURCE_ERRORS),
        fail_on_quota_errors: flags.has(&FAIL_ON_QUOTA_ERRORS),
        expect_digests: match flags.get(&EXPECT_DIGESTS)? {
            Some(path) => read_digests(&path)?,
            None => Default::default(),
        },
        notify: flags.all(&NOTIFY)?,
        // The rest is the service's to set.
        ..NewTask::default()
    })
}

/// Whether the flags of a verb that may do without describe a task: locations, or a batch.
///
/// # Errors
/// Flags of a task without what it copies: a task is replaced as a whole.
pub fn is_task_given(flags: &Flags) -> Result<bool, CommandError> {
    if flags.words(&LOCATIONS).next().is_some() || flags.given(&BATCH).is_some() {
        return Ok(true);
    }
    let typed = args().into_iter().filter(|arg| arg.get_id() != LABEL.name && arg.get_id() != LOCATIONS.name);
    let typed = typed.filter_map(|arg| flags.origin(arg.get_id().as_str())).find(|origin| origin.starts_with("--"));
    match typed {
        Some(flag) => Err(CommandError::usage(format!("{flag} describes a task, and no task is named"))
            .hint("name SRC... DST, too, with all flags of the task: what a timer submits is replaced as a whole")),
        None => Ok(false),
    }
}

fn pairs(flags: &Flags, kind: TaskKind) -> Result<Vec<Pair>, CommandError> {
    if let Some(batch) = flags.get(&BATCH)? {
        return read_batch(&batch, kind);
    }
    let words = flags
        .words(&LOCATIONS)
        .map(|word| parse_task_location(std::os::unix::ffi::OsStrExt::as_bytes(&**word)).map_err(CommandError::usage));
    let mut sources = words.collect::<Result<Vec<String>, CommandError>>()?;
    let typed: Vec<_> = flags.words(&LOCATIONS).collect();
    let count = if kind == TaskKind::Delete { typed.len() } else { typed.len().saturating_sub(1) };
    for word in &typed[..count] {
        check_typed_source(std::os::unix::ffi::OsStrExt::as_bytes(&***word)).map_err(CommandError::usage)?;
    }
    if kind == TaskKind::Delete {
        if sources.is_empty() {
            return Err(CommandError::usage("a task that deletes needs a location"));
        }
        return Ok(sources.into_iter().map(|source| Pair { source, destination: None }).collect());
    }
    let destination = match (sources.pop(), sources.is_empty()) {
        (Some(destination), false) => destination,
        _ => return Err(missing_location()),
    };
    // As with copy: several sources go into a directory.
    let destination = match sources.len() {
        1 => destination,
        _ if destination.ends_with('/') || destination == "null:" => destination,
        _ => match destination.split_once('#') {
            Some((before, pin)) if before.ends_with('/') => format!("{before}#{pin}"),
            Some((before, pin)) => format!("{before}/#{pin}"),
            None => format!("{destination}/"),
        },
    };
    Ok(sources.into_iter().map(|source| Pair { source, destination: Some(destination.clone()) }).collect())
}

/// The one pair of sources whose paths are made at the destination, and what of it is copied.
fn relative_pair(
    flags: &Flags,
    kind: TaskKind,
    listed: Option<Paths>,
) -> Result<(Vec<Pair>, Option<Paths>), CommandError> {
    if kind != TaskKind::Copy {
        return Err(CommandError::usage("--relative is for tasks that copy: a path that is moved or deleted is named"));
    }
    let words = flags.words(&LOCATIONS).map(|word| std::os::unix::ffi::OsStrExt::as_bytes(&**word));
    let mut typed = words.collect::<Vec<&[u8]>>();
    let destination = typed.pop().filter(|_| !typed.is_empty()).ok_or_else(missing_location)?;
    let source = |text: &[u8]| {
        check_typed_source(text)?;
        parse_task_location(text)?;
        Location::parse_typed(text)
    };
    let sources = typed.into_iter().map(source).collect::<Result<Vec<_>, _>>().map_err(CommandError::usage)?;
    let relative = RelativeSources::of(&sources)?;
    let source = task_location(relative.base.clone()).map_err(CommandError::usage)?;
    let destination = parse_task_location(destination).map_err(CommandError::usage)?;
    Ok((vec![Pair { source, destination: Some(destination) }], relative.only(listed)?))
}

fn missing_location() -> CommandError {
    CommandError::usage("a task needs a source and a destination: carrack task submit SRC... DST")
        .hint("or a file with a pair a line: --batch FILE")
}

fn task_options(flags: &Flags, kind: TaskKind, only: Option<Vec<String>>) -> Result<TaskOptions, CommandError> {
    let mut options = TaskOptions(option_flags::asked(flags)?);
    match flags.get(&SYNC_LEVEL)? {
        Some(SyncLevel::Existing(existing)) => options.existing = Some(existing),
        Some(SyncLevel::Compare(compare)) => options.compare = Some(compare),
        None => {}
    }
    if !matches!(options.streams, Some(Streams::Fixed(_))) {
        options.streams = of_globus_streams(flags)?.map(Streams::Fixed).or(options.streams);
    }
    options.only = only;
    options.filters =
        FilterLines::of(&filters::filters(flags, options.delete_excluded)?).map_err(CommandError::usage)?;
    let refused = |why: &str| match options.verify == Some(Verify::None) && !options.deletes() {
        true => CommandError::usage(why).hint("leave --verify none out"),
        false => CommandError::usage(why),
    };
    options.check(kind).map_err(refused)?;
    Ok(options)
}

/// Has a source of a task mean what is in it.
fn name_contents(source: &mut String) -> Result<(), CommandError> {
    let contents = Location::parse_document(source).map_err(CommandError::usage)?.contents();
    *source = contents.document().unwrap_or_else(|| std::mem::take(source));
    Ok(())
}

/// The paths of `--files-from`, and whether they are relative to the sources.
fn only(flags: &Flags) -> Result<Option<(Paths, bool)>, CommandError> {
    let Some(file) = flags.get(&FILES_FROM)? else { return Ok(None) };
    let FileList { paths, is_below_sources } = read_list(&file, end_of_entries(flags))?;
    Ok(Some((paths, is_below_sources)))
}

type Paths = Vec<Vec<u8>>;

fn as_texts(paths: Paths) -> Result<Vec<String>, CommandError> {
    let text = |path: Vec<u8>| {
        String::from_utf8(path).map_err(|error| {
            let shown = display_bytes(error.as_bytes()).to_string();
            CommandError::usage(format!("{shown} is not UTF-8, as the paths of a task have to be"))
        })
    };
    paths.into_iter().map(text).collect()
}

/// Globus opens `--perf-p` connections for each of `--perf-cc` files at once. Here all files share all connections.
fn of_globus_streams(flags: &Flags) -> Result<Option<u16>, CommandError> {
    let (files, each) = (flags.get(&PERF_CC)?, flags.get(&PERF_P)?);
    if files.is_none() && each.is_none() {
        return Ok(None);
    }
    let wanted = u64::from(files.unwrap_or(1)) * u64::from(each.unwrap_or(1));
    let streams = u16::try_from(wanted.min(u64::from(limits::STREAMS))).unwrap_or(limits::STREAMS);
    say(&format!(
        "note: --perf-cc and --perf-p together fix {streams} data connections; without them the number is tuned"
    ));
    Ok(Some(streams))
}

/// What a level of Globus leaves out.
#[derive(Clone, Copy)]
enum SyncLevel {
    Existing(Existing),
    Compare(Compare),
}

fn parse_sync_level(text: &str) -> Result<SyncLevel, String> {
    match text {
        "exists" | "0" => Ok(SyncLevel::Existing(Existing::Keep)),
        "size" | "1" => Ok(SyncLevel::Compare(Compare::Size)),
        "mtime" | "2" => Ok(SyncLevel::Existing(Existing::Older)),
        "checksum" | "3" => Ok(SyncLevel::Compare(Compare::Content)),
        _ => Err(format!("{text:?}: use exists, size, mtime or checksum")),
    }
}

fn parse_label(text: &str) -> Result<String, String> {
    check_label(text).map(|()| text.to_owned())
}

fn parse_number(text: &str) -> Result<u32, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|number| digits && *number > 0)
        .ok_or_else(|| format!("{text:?} is not a number from 1 on"))
}

#[cfg(test)]
mod tests {
    use carrack_core::options::{AskedOptions, RateBound};
    use carrack_core::request::{Digests, Durability};

    use super::*;

    fn task(line: &[&str]) -> Result<NewTask, CommandError> {
        let tree = crate::command::whole_tree();
        let matches = tree.try_get_matches_from([&["carrack", "task", "submit"], line].concat()).expect("a good line");
        let (_, matches) = matches.subcommand().expect("task");
        let (_, matches) = matches.subcommand().expect("submit");
        new_task(&Flags::new(matches, &|_| None))
    }

    #[test]
    fn task_with_relative_paths_has_one_source_and_names_what_is_copied_of_it() {
        let made = |words: &[&str]| task(words).map(|task| (task.pairs, task.options.only.clone()));
        let pair = |source: &str| vec![Pair { source: source.into(), destination: Some("@archive:/to".into()) }];
        let only = |paths: &[&str]| Some(paths.iter().map(ToString::to_string).collect::<Vec<_>>());
        let whole = made(&["-R", "@lab:/a/b", "@lab:/c", "@archive:/to"]).expect("a task");
        assert_eq!(whole, (pair("@lab:/"), only(&["a/b", "c"])));
        let marked = made(&["--relative", "@lab:/a/./b", "@archive:/to"]).expect("a task");
        assert_eq!(marked, (pair("@lab:/a/"), only(&["b"])));
        for refused in [&["--kind=move"][..], &["--kind=delete"], &["--delete"]] {
            assert!(task(&[&["-R", "@lab:/a", "@archive:/to"], refused].concat()).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn task_has_a_pair_for_each_source_and_only_the_options_that_were_given() {
        let one = task(&["@a:/x", "@b:/y"]).expect("good");
        assert_eq!(one.options, TaskOptions::default());
        let pair =
            |source: &str, destination: &str| Pair { source: source.into(), destination: Some(destination.into()) };
        assert_eq!(one.pairs, [pair("@a:/x", "@b:/y")]);
        let several = task(&["@a:/x", "/data", "@b:/y"]).expect("good");
        assert_eq!(several.pairs, [pair("@a:/x", "@b:/y/"), pair("/data", "@b:/y/")]);
        let pin = format!("#sha256:{}", "ab".repeat(32));
        let pinned = task(&["@a:/x", "@a:/z", &format!("carrack://box/y{pin}")]).expect("good");
        assert_eq!(pinned.pairs[1].destination, Some(format!("carrack://box:7420/y/{pin}")));
        let deleted = task(&["--kind", "delete", "@a:/x", "@a:/y"]).expect("good");
        assert!(deleted.pairs.iter().all(|pair| pair.destination.is_none()) && deleted.pairs.len() == 2);
        let options =
            ["--update", "--verify=disk", "--streams=4", "--bwlimit=1MB", "--digest=xxh128", "--durable=each"];
        let copied = task(&[&options[..], &["@a:/x", "@b:/y"]].concat()).expect("good").options;
        let expected = TaskOptions(AskedOptions {
            existing: Some(Existing::Older),
            verify: Some(Verify::Disk),
            streams: Some(Streams::Fixed(4)),
            rate_limit: Some(RateBound::new(1_000_000)),
            digest: Some(Digests::XXH128),
            durable: Some(Durability::Each),
            ..AskedOptions::default()
        });
        assert_eq!(copied, expected);
    }

    #[test]
    fn task_flags_of_globus_are_mapped_or_refused_with_the_reason() {
        let with = |flag: &str| task(&[flag, "@a:/x", "@b:/y"]);
        assert_eq!(
            task(&["--perf-cc=4", "--perf-p=8", "@a:/x", "@b:/y"]).expect("good").options.streams,
            Some(Streams::Fixed(32))
        );
        assert_eq!(with("--perf-cc=100000").expect("good").options.streams, Some(Streams::Fixed(limits::STREAMS)));
        assert_eq!(with("--recursive").expect("good").options, TaskOptions::default());
        assert_eq!(with("--sync-level=exists").expect("good").options.existing, Some(Existing::Keep));
        assert_eq!(with("--sync-level=mtime").expect("good").options.existing, Some(Existing::Older));
        assert_eq!(with("--sync-level=size").expect("good").options.compare, Some(Compare::Size));
        assert_eq!(with("--sync-level=checksum").expect("good").options.compare, Some(Compare::Content));
        let error = with("--sync-level=x").expect_err("no such level");
        assert_eq!(error.exit_code(), crate::exit::USAGE);
        assert!(error.to_string().contains("--sync-level"), "{error}");
    }

    #[test]
    fn task_that_cannot_be_is_refused() {
        for line in [
            &[][..],
            &["@a:/x"],
            &["-", "@b:/y"],
            &["--kind=move", "--verify=none", "@a:/x", "@b:/y"],
            &["--priority=10", "@a:/x", "@b:/y"],
            &["--notify=never", "@a:/x", "@b:/y"],
            &["--digest=none", "@a:/x", "@b:/y"],
            &["--batch=-", "--expect-digests=-"],
        ] {
            assert_eq!(task(line).expect_err("refused").exit_code(), crate::exit::USAGE, "{line:?}");
        }
    }
}
