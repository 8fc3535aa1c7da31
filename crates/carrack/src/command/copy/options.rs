//! The flags of `carrack copy`, which are also those of `carrack SRC... DST`, and what they ask for: a [`CopyRequest`],
//! and how to say what happens.

use std::time::Duration;

use carrack_core::attributes::Time;
use carrack_core::credential::Credential;
use carrack_core::duration::{parse_duration, parse_timeout};
use carrack_core::location::{Location, parse_host};
use carrack_core::options::{self as defined, AskedOptions, FormGroup};
use carrack_core::path::display_bytes;
use carrack_core::request::{
    Compare, CopyOptions, CopyRequest, Delta, EndOptions, LinkKind, LinkSet, MainDigest, Reach, Reflink, Verify,
    are_one_node,
};
use carrack_core::words::quoted;
use carrack_sys::host::clock_seconds;
use clap::{Arg, ArgAction, Command};

use crate::cli::files_from::{FileList, end_of_entries, read_list};
use crate::cli::filters;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::foreign::{self, FOREIGN_FLAGS};
use crate::cli::option_flags;
use crate::cli::ports::parse_ports;
use crate::cli::relative::{RELATIVE, RelativeSources, check_asked_of_sources};
use crate::command::copy::checks::{check_deletion, check_places, check_removal, check_standard_output};
use crate::command::copy::examples;
use crate::command::named::{self, Needs, VerbPlace};
use crate::command::reach::{self, JSON, QUIET, TOKEN_FILE, reach};
use crate::error::CommandError;
use crate::output::itemized::{ContentWay, LineFormat};
use crate::output::timeline::write;
use crate::output::{BarChoice, CopyTarget, OutputOptions, TimelineOptions};
use crate::tokens;

/// Between two progress lines where there is no bar.
const STATS_INTERVAL: Duration = Duration::from_secs(5);

// What is copied; see also `cli::option_flags`.
const LOCATIONS: Positional = Positional::several("locations", "SRC... DST");
const DRY_RUN: Switch =
    Switch::short('n', "dry-run", "Show what would be copied; copy nothing (a host without carrack is still sent one)");
pub const FILES_FROM: Value<Vec<u8>> = Value::path(
    "files-from",
    "FILE",
    "Copy only the paths in FILE and what is below them, one a line, relative to SRC; SRC is then its contents. A list \
     that --failed-list wrote is known by its first line: its paths are below DST. - is standard input",
);
const MANIFEST: Value<Vec<u8>> = Value::path(
    "manifest",
    "FILE",
    "Write the BLAKE3 digest of every copied file, for `b3sum -c` in the destination; - is standard output",
);
pub const RECEIPT: Value<Vec<u8>> = Value::path(
    "receipt",
    "FILE",
    "Write a signed account of the copy: each item with its digest and attributes, both hosts, what was not done; \
     `carrack verify` reads it",
);

// What becomes of faults.
pub const RETRIES: Value<u32> = Value::new(
    "retries",
    "N",
    parse_retries,
    "Consecutive attempts without progress before giving up a lost connection or node; 0: one attempt only \
     [default: 40]",
);
const DEADLINE: Value<Duration> =
    Value::new("deadline", "TIME", parse_timeout, "Give up after TIME in all, like 6h [default: none]");
const TIMEOUT: Value<Duration> = Value::new(
    "io-timeout",
    "TIME",
    parse_silence,
    "Give up a connection of this command that has said nothing for TIME, 10s to 1d, and make it again (also: \
     --timeout) [default: 30s]",
);
const NO_RESUME: Switch = Switch::new("no-resume", "Start over: discard what an earlier attempt left");
const STRICT: Switch = Switch::new(
    "strict",
    "End with exit code 23 where anything was not kept that the report counts as \"not kept\": owners, lists, times",
);
const FAILED_LIST: Value<Vec<u8>> =
    Value::path("failed-list", "FILE", "Write the paths of failed items to FILE, one a line, for --files-from");

// Between which hosts, and how they meet; see also `reach`.
pub const SOURCE_TOKEN_FILE: Value<Vec<u8>> = Value::path(
    "source-token-file",
    "FILE",
    "The bearer token for the source's node, if the destination is on another",
);
pub const DESTINATION_TOKEN_FILE: Value<Vec<u8>> =
    Value::path("destination-token-file", "FILE", "The bearer token for the destination's node");
pub const PORTS: Value<(u16, u16)> = Value::new(
    "ports",
    "LO-HI",
    parse_ports,
    "Ports on which the listening side accepts data connections; a node has its own [default: any]",
);
pub const DATA_ADDRESS: Value<String> = Value::new(
    "data-address",
    "ADDR",
    parse_data_address,
    "Address that data connections go to [default: where ssh went]",
);
pub const LINK: Value<LinkKind> =
    Value::word("link", "KIND", LinkKind::BETWEEN_HOSTS, "[default: the first that works]");

// What is said of it.
const VERBOSE: Switch = Switch::short('v', "verbose", "Name every file; twice: with size and digest");
const LOG_FILE: Value<Vec<u8>> = Value::path("log-file", "FILE", "Append all messages to FILE, with the time");
const TIMELINE: Value<Vec<u8>> = Value::path(
    "timeline",
    "FILE",
    "Write to FILE what both ends measure each second: stages, connections, processors, disks",
);
const PROGRESS: Switch = Switch::short('P', "progress", "Draw the bar even without a terminal");
const NO_PROGRESS: Switch = Switch::new("no-progress", "Show neither a bar nor progress lines");
const STATS: Value<Stats> = Value::new(
    "stats",
    "TIME",
    parse_stats,
    "Interval between progress lines where no bar is drawn; 0: none [default: 5s]. Without =TIME: at the end, some of the \
     figures that rsync tells, in its words",
);

const ITEMIZE: Switch = Switch::short(
    'i',
    "itemize-changes",
    "Print a line for each item that is made, changed or deleted, in rsync's letters; with -n, that would be",
);
const OUT_FORMAT: Value<LineFormat> = Value::new(
    "out-format",
    "FORMAT",
    LineFormat::parse,
    "The same, in a format of yours: %i letters, %n name, %L target of a link, %f path, %l length, %b bytes copied, \
     %M modification time, %t time of day, %o operation, %C digest",
);

const INFO: Value<()> = Value::new("info", "FLAGS", parse_info, "As with rsync: progress2");

/// What is told in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stats {
    /// Progress, so often.
    Every(Duration),
    /// Figures at the end.
    AtTheEnd,
}

// What is skipped, beside `--compare`; and what is deleted.
const SIZE_ONLY: Switch = Switch::new("size-only", "Skip files of the same size; the same as --compare size");
const CHECKSUM: Switch =
    Switch::short('c', "checksum", "Skip files of the same content, which both sides read; --compare checksum");
const IGNORE_TIMES: Switch = Switch::short('I', "ignore-times", "Send every file; the same as --compare none");

const REMOVE_SOURCE_FILES: Switch = Switch::new(
    "remove-source-files",
    "Delete files and links at the source that have been copied, verified and synced, and of those that were there \
     already the ones whose content was compared (-c). What has changed meanwhile stays, and fails",
);

const WHOLE_FILE: Switch = Switch::short('W', "whole-file", "Send changed files whole; the same as --delta never");
const REFLINK: Value<Reflink> = Value::word(
    "reflink",
    "WHEN",
    Reflink::ALL,
    "Counts for files of more than 1 MiB that are copied within one file system of this host; such a file is not read, \
     and so neither verified nor digested [default: auto]",
);
const KEEP_DIRLINKS: Switch = Switch::short(
    'K',
    "keep-dirlinks",
    "Where DST has a link to a directory below DST, and SRC a directory, copy into that. Not at nodes, not with --delete",
);

const YES: Switch = Switch::new(
    "yes",
    "Delete without asking. At a terminal you are asked if more than half of what DST has, or more than 1,000 items, would \
     be deleted",
);

/// After how much silence a connection is given up; `None` leaves that to the engine.
///
/// # Errors
/// A time that is none, or out of bounds.
pub fn silence(flags: &Flags) -> Result<Option<Duration>, CommandError> {
    flags.get(&TIMEOUT)
}

/// Whether nobody is to be asked before much is deleted.
pub fn is_agreed(flags: &Flags) -> bool {
    flags.has(&YES)
}

/// What clap knows of the verb `sync`.
pub fn sync_command() -> Command {
    let deletion = option_flags::deletion().chain([YES.arg()]);
    let verb = shared("sync", deletion.map(|arg| arg.help_heading("Deletion")));
    verb.about("Make a directory like another: send what is new or changed, and delete on request")
        .after_help(examples::SYNC)
        .override_usage("carrack sync [OPTIONS] SRC DST")
        .arg(LOCATIONS.arg().help("What to copy, and where it goes; SRC/ means what is in SRC"))
}

/// What clap knows of the verb.
pub fn command() -> Command {
    let verb = shared("copy", std::iter::empty());
    verb.visible_alias("cp")
        .about("Copy files and trees; the same as `carrack SRC... DST`")
        .after_help(examples::COPY)
        .override_usage("carrack [copy] [OPTIONS] SRC... DST")
        .arg(LOCATIONS.arg().help("What to copy; the last is where it goes"))
}

fn shared(name: &'static str, more: impl Iterator<Item = Arg>) -> Command {
    let headed = |heading: &'static str, args: Vec<Arg>| args.into_iter().map(move |arg| arg.help_heading(heading));
    let verb = Command::new(name)
        .args(headed("What", what()))
        .args(more)
        .args(headed("How", option_flags::args(FormGroup::How).chain([whole_file(), REFLINK.arg()]).collect()))
        .args(headed("Faults", option_flags::args(FormGroup::Faults).chain(faults()).collect()))
        .args(reach::args())
        .args(headed("Hosts", hosts()))
        .args(headed("Output", said()))
        .args(foreign::taken(FOREIGN_FLAGS));
    reach::with_service(verb)
}

fn what() -> Vec<Arg> {
    let first = [DRY_RUN.arg(), FILES_FROM.arg(), RELATIVE.arg()];
    first
        .into_iter()
        .chain(option_flags::args(FormGroup::What))
        .chain([
            SIZE_ONLY.arg().conflicts_with_all([CHECKSUM.name, IGNORE_TIMES.name, defined::COMPARE.name]),
            CHECKSUM.arg().conflicts_with_all([IGNORE_TIMES.name, defined::COMPARE.name]),
            IGNORE_TIMES.arg().conflicts_with(defined::COMPARE.name),
        ])
        .chain(filters::args())
        .chain([KEEP_DIRLINKS.arg(), REMOVE_SOURCE_FILES.arg()])
        .chain([MANIFEST.arg().conflicts_with(DRY_RUN.name)])
        .chain(cfg!(feature = "terminal").then(|| RECEIPT.arg().conflicts_with(DRY_RUN.name)))
        .collect()
}

/// An end is heard from every 5 seconds: what is shorter than two of these would cut what works.
fn parse_silence(text: &str) -> Result<Duration, String> {
    let silence = parse_duration(text)?;
    let bounds = Duration::from_secs(10)..=Duration::from_secs(24 * 60 * 60);
    if bounds.contains(&silence) {
        Ok(silence)
    } else {
        Err("a silence is from 10s to 1d, or the flag is left out: an end is heard from every 5 seconds".to_owned())
    }
}

fn whole_file() -> Arg {
    WHOLE_FILE.arg().conflicts_with(defined::DELTA.name)
}

fn faults() -> Vec<Arg> {
    vec![
        RETRIES.arg(),
        DEADLINE.arg(),
        TIMEOUT.arg().alias("timeout"),
        NO_RESUME.arg(),
        STRICT.arg(),
        FAILED_LIST.arg().conflicts_with(DRY_RUN.name),
    ]
}

fn hosts() -> Vec<Arg> {
    vec![SOURCE_TOKEN_FILE.arg(), DESTINATION_TOKEN_FILE.arg(), PORTS.arg(), DATA_ADDRESS.arg(), LINK.arg()]
}

fn said() -> Vec<Arg> {
    vec![
        VERBOSE.arg().action(ArgAction::Count),
        QUIET.arg().conflicts_with_all([VERBOSE.name, PROGRESS.name, ITEMIZE.name, OUT_FORMAT.name]),
        ITEMIZE.arg(),
        OUT_FORMAT.arg().conflicts_with(JSON.name),
        JSON.arg(),
        LOG_FILE.arg(),
        TIMELINE.arg().conflicts_with(DRY_RUN.name),
        PROGRESS.arg().conflicts_with(NO_PROGRESS.name),
        NO_PROGRESS.arg(),
        INFO.arg().hide(true),
        STATS.arg().num_args(0..=1).require_equals(true).default_missing_value(AT_THE_END),
    ]
}

/// Everything that `carrack copy` was asked for.
pub fn copy(flags: &Flags) -> Result<(CopyRequest, OutputOptions), CommandError> {
    asked_for(flags, Compare::Nothing, false)
}

/// Everything that `carrack sync` was asked for.
pub fn sync(flags: &Flags) -> Result<(CopyRequest, OutputOptions), CommandError> {
    asked_for(flags, Compare::SizeAndTime, true)
}

fn asked_for(flags: &Flags, compare: Compare, keeps_links: bool) -> Result<(CopyRequest, OutputOptions), CommandError> {
    let (typed, destination) = typed(flags)?;
    check_places(&typed, &destination)?;
    let asked = option_flags::asked(flags)?;
    let list = list(flags, &typed)?;
    // What is below sources is made with its path.
    let is_implied = list.as_ref().is_some_and(|list| list.is_below_sources);
    let relative = (flags.has(&RELATIVE) && !is_implied).then(|| RelativeSources::of(&typed)).transpose()?;
    let typed = relative.as_ref().map_or(typed, |relative| vec![relative.base.clone()]);
    let (sources, destination) = open(flags, &asked, typed, destination)?;
    let credentials_there = (sources.first().and_then(VerbPlace::credential), destination.credential());
    // The user's own tokens are not for endpoints.
    let own = |place: &VerbPlace| match place.endpoint() {
        Some(_) => Location::Local(place.name().into_bytes()),
        None => place.location().clone(),
    };
    let (own_sources, own_destination) = (sources.iter().map(own).collect::<Vec<_>>(), own(&destination));
    let mut sources: Vec<Location> = sources.iter().map(|place| place.location().clone()).collect();
    let destination = destination.location().clone();
    let mut output = output(flags)?;
    check_standard_output(&destination, &output)?;
    let mut options = CopyOptions { compare, ..Default::default() };
    options.kept.hard_links = keeps_links;
    let mut options = copy_options(flags, asked, &output, sources.contains(&Location::Stdio), options)?;
    if relative.is_some() {
        check_asked_of_sources(options.require_mount, options.filters.one_file_system)?;
    }
    if is_implied {
        sources = sources.iter().map(Location::contents).collect();
    }
    options.only = list.map(|list| list.paths);
    if let Some(relative) = relative {
        options.only = relative.only(options.only.take())?;
    }
    options.keep_directory_links = flags.has(&KEEP_DIRLINKS);
    options.delta = if flags.has(&WHOLE_FILE) { Delta::Never } else { options.delta };
    // A manifest tells digests.
    let reflink = flags.get(&REFLINK)?.unwrap_or(Reflink::Auto);
    options.reflink = if output.proves() { Reflink::Never } else { reflink };
    check_deletion(&sources, &options)?;
    options.remove_sources = flags.has(&REMOVE_SOURCE_FILES);
    check_removal(&sources, &destination, &options)?;
    let (of_source, of_destination) = credentials(flags, &own_sources, &own_destination)?;
    options.source.credential = credentials_there.0.unwrap_or(of_source);
    options.destination.credential = credentials_there.1.unwrap_or(of_destination);
    let request = CopyRequest { sources, destination, options };
    output.direction = direction(&request);
    output.destination = match &request.destination {
        Location::Stdio => CopyTarget::Stdout,
        // An endpoint's paths are below its root, whose verbs are another name for.
        _ if own_destination != request.destination => CopyTarget::Other,
        place => CopyTarget::Place(place.clone()),
    };
    let timeline = timeline(flags)?;
    output.timeline = timeline.map(|path| TimelineOptions { path, asked: write::asked(&request) });
    Ok((request, output))
}

fn direction(request: &CopyRequest) -> ContentWay {
    let from_afar = request.sources.iter().any(Location::is_remote);
    match (from_afar, request.destination.is_remote()) {
        (false, true) => ContentWay::Push,
        (true, false) => ContentWay::Pull,
        _ => ContentWay::Beside,
    }
}

/// What the flags say that are short for `--compare`.
fn compare_by(flags: &Flags) -> Option<Compare> {
    let by = [(&SIZE_ONLY, Compare::Size), (&CHECKSUM, Compare::Content), (&IGNORE_TIMES, Compare::Nothing)];
    by.into_iter().find(|(flag, _)| flags.has(flag)).map(|(_, compare)| compare)
}

/// The paths that alone are copied.
fn list(flags: &Flags, sources: &[Location]) -> Result<Option<FileList>, CommandError> {
    let Some(path) = flags.get(&FILES_FROM)? else { return Ok(None) };
    if path == b"-" && sources.contains(&Location::Stdio) {
        return Err(CommandError::usage("the source - and --files-from - would both be read from standard input"));
    }
    read_list(&path, end_of_entries(flags)).map(Some)
}

/// Where the copy begins, and where it goes, as typed.
fn typed(flags: &Flags) -> Result<(Vec<Location>, Location), CommandError> {
    let mut typed = flags.named(&LOCATIONS)?;
    match (typed.pop(), typed.is_empty()) {
        (Some(destination), false) => Ok((typed, destination)),
        (Some(last), true) => Err(missing_location(Some(last))),
        _ => Err(missing_location(None)),
    }
}

/// Opens where the copy begins, and where it goes.
fn open(
    flags: &Flags,
    asked: &AskedOptions,
    typed: Vec<Location>,
    destination: Location,
) -> Result<(Vec<VerbPlace>, VerbPlace), CommandError> {
    let of_source = if flags.has(&REMOVE_SOURCE_FILES) { Needs::MOVE } else { Needs::READ };
    let mut options = CopyOptions::default();
    asked.apply(Time::new(clock_seconds(), 0), &mut options).map_err(CommandError::usage)?;
    let to = if options.kept.gives_rights() && !options.fake_super { Needs::WRITE_OWNED } else { Needs::WRITE };
    let needs = typed.into_iter().map(|source| (source, of_source)).chain([(destination, to)]);
    let mut sources = named::open(flags, needs)?;
    let Some(destination) = sources.pop() else { return Err(missing_location(None)) };
    if let Some(other) = sources.iter().find(|place| place.endpoint() != sources[0].endpoint()) {
        let (one, other) = (sources[0].name(), other.name());
        return Err(CommandError::usage(format!("{one} and {other} are two places: a copy has one source place"))
            .hint("copy from one endpoint at a time"));
    }
    Ok((sources, destination))
}

fn timeline(flags: &Flags) -> Result<Option<Vec<u8>>, CommandError> {
    match flags.get(&TIMELINE)?.filter(|_| !flags.has(&DRY_RUN)) {
        Some(path) if path == b"-" => {
            Err(CommandError::usage("--timeline needs a file; --json prints samples on standard output"))
        }
        path => Ok(path),
    }
}

fn missing_location(only: Option<Location>) -> CommandError {
    let error = CommandError::usage("a copy needs a source and a destination: carrack SRC... DST");
    match only {
        Some(Location::Local(word)) if !word.contains(&b'/') => {
            error.hint(format!("{} is not a verb; see carrack --help", display_bytes(&word)))
        }
        _ => error,
    }
}

fn copy_options(
    flags: &Flags,
    mut asked: AskedOptions,
    output: &OutputOptions,
    takes_stdin: bool,
    default: CopyOptions,
) -> Result<CopyOptions, CommandError> {
    if asked.verify == Some(Verify::Source) && takes_stdin {
        return Err(CommandError::usage("--verify source reads the source twice, and standard input can be read once"));
    }
    let digest = asked.digests().map_err(CommandError::usage)?;
    if output.proves() && digest.main != Some(MainDigest::Blake3) {
        let left_out = digest.main.map_or("none", MainDigest::name);
        let flag = if output.manifest.is_some() { "--manifest" } else { "--receipt" };
        let message = format!("{flag} needs the BLAKE3 digest of each file, which --digest {left_out} leaves out");
        return Err(CommandError::usage(message));
    }
    let reach = Reach { ports: flags.get(&PORTS)?, data_address: flags.get(&DATA_ADDRESS)?, ..reach(flags)? };
    let mut options = CopyOptions {
        dry_run: flags.has(&DRY_RUN),
        source: EndOptions { reach: reach.clone(), ..EndOptions::default() },
        destination: EndOptions { reach, ..EndOptions::default() },
        links: flags.get(&LINK)?.map_or(default.links, LinkSet::only),
        item_events: output.wants_items(),
        item_changes: output.lines.is_some(),
        items_in_flight: output.json && !output.stats.is_zero(),
        retries: flags.get(&RETRIES)?.unwrap_or(default.retries),
        deadline: flags.get(&DEADLINE)?,
        resume: !flags.has(&NO_RESUME),
        ..default
    };
    options.filters = filters::filters(flags, asked.delete_excluded)?;
    asked.compare = asked.compare.or(compare_by(flags));
    asked.apply(Time::new(clock_seconds(), 0), &mut options).map_err(CommandError::usage)?;
    Ok(options)
}

/// What the node of the sources is shown, and what the node of the destination is. One file for two nodes is refused:
/// each would learn the other's token.
///
/// # Errors
/// That, and a token for what is no node.
pub fn credentials(
    flags: &Flags,
    sources: &[Location],
    destination: &Location,
) -> Result<(Credential, Credential), CommandError> {
    let general = flags.given(&TOKEN_FILE);
    let are_one = are_one_node(sources.iter().chain([destination]).filter_map(Location::node));
    let of_end = |flag, location: Option<&Location>| {
        let own = flags.given(flag);
        let node = location.and_then(Location::node);
        match (own, &general, node) {
            // The environment may hold what another command needs.
            (Some(own), _, None) if own.origin.starts_with("--") => {
                let what = location.map(Location::to_string).unwrap_or_default();
                Err(CommandError::usage(format!("{} is for a node, and {what} is not on one", own.origin)))
            }
            (Some(own), _, Some(_)) => Ok(Credential::File(own.value)),
            (None, Some(general), Some(node)) if !are_one => Err(CommandError::usage(format!(
                "{} names one token, and this command is between two nodes: each would learn the token of the other",
                general.origin
            ))
            .hint("name two files: --source-token-file FILE and --destination-token-file FILE")
            .hint(format!("or keep each node's token once: carrack token add {} <FILE", node.known_as()))),
            (None, Some(general), Some(_)) => Ok(Credential::File(general.value.clone())),
            _ => Ok(tokens::search(!are_one)),
        }
    };
    Ok((of_end(&SOURCE_TOKEN_FILE, sources.first())?, of_end(&DESTINATION_TOKEN_FILE, Some(destination))?))
}

fn output(flags: &Flags) -> Result<OutputOptions, CommandError> {
    let stats = flags.get(&STATS)?;
    Ok(OutputOptions {
        verbose: flags.count(&VERBOSE),
        quiet: flags.has(&QUIET),
        json: flags.has(&JSON),
        log_file: flags.get(&LOG_FILE)?,
        // clap refuses both on the command line; the environment may still name one.
        manifest: flags.get(&MANIFEST)?.filter(|_| !flags.has(&DRY_RUN)),
        receipt: receipt(flags)?,
        failed_list: failed_list(flags)?,
        timeline: None,
        bar: match (flags.has(&PROGRESS) || flags.get(&INFO)?.is_some(), flags.has(&NO_PROGRESS)) {
            (true, _) => BarChoice::Always,
            (_, true) => BarChoice::Never,
            _ => BarChoice::Terminal,
        },
        stats: match stats {
            Some(Stats::Every(interval)) => interval,
            _ => STATS_INTERVAL,
        },
        figures: stats == Some(Stats::AtTheEnd),
        lines: lines(flags)?,
        direction: ContentWay::default(),
        dry_run: flags.has(&DRY_RUN),
        strict: flags.has(&STRICT),
        destination: CopyTarget::Other,
    })
}

/// What is printed of each change. The environment may name a format that nobody reads beside JSON.
fn lines(flags: &Flags) -> Result<Option<LineFormat>, CommandError> {
    let format = flags.get(&OUT_FORMAT)?.filter(|_| !flags.has(&JSON) && !flags.has(&QUIET));
    Ok(format.or_else(|| flags.has(&ITEMIZE).then(LineFormat::itemized)))
}

/// Where the receipt is to be written that was asked for.
///
/// # Errors
/// When that is no file.
pub fn receipt(flags: &Flags) -> Result<Option<Vec<u8>>, CommandError> {
    if cfg!(not(feature = "terminal")) {
        return Ok(None);
    }
    match flags.get(&RECEIPT)?.filter(|_| !flags.has_if_known(&DRY_RUN)) {
        Some(path) if path == b"-" => Err(CommandError::usage("--receipt needs a file: it is written at the end")),
        path => Ok(path),
    }
}

fn failed_list(flags: &Flags) -> Result<Option<Vec<u8>>, CommandError> {
    match flags.get(&FAILED_LIST)?.filter(|_| !flags.has(&DRY_RUN)) {
        Some(path) if path == b"-" => Err(CommandError::usage("--failed-list needs a file: it is written at the end")),
        path => Ok(path),
    }
}

/// The value of a flag that was given without one.
const AT_THE_END: &str = "report";

fn parse_stats(text: &str) -> Result<Stats, String> {
    if text == AT_THE_END { Ok(Stats::AtTheEnd) } else { parse_duration(text).map(Stats::Every) }
}

fn parse_info(text: &str) -> Result<(), String> {
    match text {
        "progress" | "progress2" => Ok(()),
        _ => Err(format!("{} is not told here: use progress2, -v or --stats", quoted(text))),
    }
}

fn parse_retries(text: &str) -> Result<u32, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| format!("{text:?} is not a number of attempts: use 0 to {}", u32::MAX))
}

fn parse_data_address(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<std::net::IpAddr>() {
        Ok(_) => Ok(bare.to_owned()),
        Err(_) => parse_host(text.as_bytes()),
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
