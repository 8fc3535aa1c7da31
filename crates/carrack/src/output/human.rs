//! What a person is told: events and the report of a copy as lines of text. Only text is made here; `Screen` and `Log`
//! put it somewhere.

use std::fmt;

use carrack_core::attributes::{AttributeKind, Time};
use carrack_core::judgment::Judgment;
use carrack_core::pace::limit::{Limit, Stage};
use carrack_core::pace::streams::Change;
use carrack_core::path::display_bytes;
use carrack_core::report::{
    Counts, ErrorCode, Event, Failure, ItemFailure, ItemKind, ItemReport, LinkReport, Outcome, ProgramSent, Report,
    Side, StreamsFrom, Unfinished, Unkept, UnkeptAttributes,
};
use carrack_core::request::{Durability, Existing, LinkKind, MainDigest, Verify};
use carrack_core::words::shell_word;
use data_encoding::HEXLOWER;

use super::format::{self, count, counted};
use super::hints;
use super::options::CopyTarget;
use super::{synced, unsent};
use crate::error::CommandError;

/// The lines that an event is worth; `verbose` is how often `-v` was given.
pub fn event(event: &Event, verbose: u8) -> Vec<String> {
    match event {
        Event::Resolved { sources, targets, .. } => {
            // Names come from the far side, too: made harmless, and harmlessly so if they are already.
            sources
                .iter()
                .zip(targets)
                .map(|(source, target)| format!("{} -> {}", safe(source), safe(target)))
                .collect()
        }
        Event::Note(text) => vec![format!("note: {}", safe(text))],
        // The report says it again; who watches wants to know now.
        Event::Linked(link) if verbose > 0 => vec![format!("{}{}", self::link(link, "in the clear"), kept(link))],
        Event::Item(report) => item(report, verbose).into_iter().collect(),
        Event::SessionLost { .. } => vec![format!("note: {}", session_lost(event))],
        Event::Streams(change) if verbose > 0 => vec![streams(change)],
        Event::ProgramSent(sent) if verbose > 0 => vec![program(sent)],
        // What a person has to know of these is in notes, in the report, and in lines of their own (`itemized`).
        Event::Linked(_)
        | Event::Changed(_)
        | Event::Progress(_)
        | Event::InFlight(_)
        | Event::Streams(_)
        | Event::ProgramSent(_)
        | Event::Ends(_)
        | Event::Sample(_)
        | Event::StreamEnded { .. }
        | Event::Step { .. }
        | Event::RateFell(_)
        | Event::Path { .. } => Vec::new(),
    }
}

/// That both ends are reached anew, and why; empty for any other event.
pub fn session_lost(event: &Event) -> String {
    let Event::SessionLost { failure, attempt, pause } = event else { return String::new() };
    let pause = format::duration(*pause);
    // What a person could try is not said: it is tried again without one.
    let why = format!("{}{}", side(failure), safe(&failure.message()));
    format!("{why}; trying again in {pause} (attempt {attempt} in a row)")
}

fn item(report: &ItemReport, verbose: u8) -> Option<String> {
    let path = display_bytes(&report.path);
    match &report.outcome {
        // The report names those that failed, together and where they are seen.
        Outcome::Failed(_) => None,
        _ if verbose == 0 => None,
        Outcome::Kept => Some(format!("kept: {path}")),
        Outcome::Same if verbose == 1 => None,
        Outcome::Same => Some(format!("same: {path}")),
        Outcome::Deleted => Some(format!("deleted: {path}")),
        Outcome::ToDelete => Some(format!("only there: {path}")),
        // Nobody has asked whether it is there.
        Outcome::Planned if report.kind == ItemKind::Directory => None,
        Outcome::Planned => Some(format!("{}: {path}", compared(report))),
        Outcome::Published if verbose == 1 => Some(path.to_string()),
        Outcome::Published => {
            let digest = report.digests.blake3.map(|digest| format!("  {}", HEXLOWER.encode(&digest)));
            Some(format!("{path}  {} bytes{}", count(report.size), digest.unwrap_or_default()))
        }
    }
}

/// Why an item would be copied.
fn compared(report: &ItemReport) -> &'static str {
    match report.judgment {
        Some(Judgment::Differs(_)) => "changed",
        // Nothing was compared.
        None => "would copy",
        _ => "new",
    }
}

/// An item that failed.
pub fn failed_item(path: &[u8], failure: &Failure) -> String {
    format!("failed: {}", with_hint(failure, &failure.message_of(path), hints::of(failure)))
}

/// A path that a verb could not do its work on. It has one place, whose name is in the path: no side is told, but that
/// of a connection.
pub fn failed_path(path: &[u8], failure: &Failure) -> String {
    let told = match failure.side {
        Side::Source | Side::Destination => Failure { side: Side::Command, ..failure.clone() },
        _ => failure.clone(),
    };
    format!("failed: {}", with_hint(&told, &told.message_of(path), hints::of(failure)))
}

/// A failure with its side, and what to try.
pub fn failure(failure: &Failure) -> String {
    failure_with(failure, hints::of(failure))
}

/// What to try about what ended a command. A measurement leaves nothing that could be gone on with.
pub fn hint_of_error(error: &CommandError) -> Option<&'static str> {
    match (error.failure.reason, error.failure.code) {
        (None, ErrorCode::Interrupted | ErrorCode::Terminated) if error.is_of_measurement() => {
            Some("run the same command again to measure it anew")
        }
        _ => hints::of(&error.failure),
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&failure_with(&self.failure, hint_of_error(self)))
    }
}

/// The same, with another word on what to try.
pub fn failure_with(failure: &Failure, hint: Option<&str>) -> String {
    with_hint(failure, &failure.message(), hint)
}

fn with_hint(failure: &Failure, message: &str, hint: Option<&str>) -> String {
    let behind =
        |hint: &str| if hint.starts_with(char::is_uppercase) { format!(". {hint}") } else { format!("; {hint}") };
    let hint = hint.map(behind).unwrap_or_default();
    format!("{}{}{hint}", side(failure), safe(message))
}

/// The side, before a failure's text. The command's own need none.
fn side(failure: &Failure) -> String {
    match failure.side {
        Side::Command => String::new(),
        side => format!("{side}: "),
    }
}

/// Text of the engine is printable already; what a peer put into it may not be. A backslash stays as it is, so
/// that what was made printable once is not made so twice.
pub fn safe(text: &str) -> String {
    text.split('\\').map(|part| display_bytes(part.as_bytes()).to_string()).collect::<Vec<_>>().join("\\")
}

/// The report of a copy: what was moved, how it was proved, by which way, and what was not moved.
pub fn report(report: &Report, dry_run: bool) -> Vec<String> {
    let mut lines = vec![moved(report, dry_run)];
    if report.counts.files_kept > 0 {
        lines.push(skipped(report));
    }
    lines.extend(synced::lines(report, dry_run, report.undeleted.as_ref().map(failure)));
    if !dry_run {
        lines.extend(report.verify.map(|verify| verified(verify, report)));
        // The MACs are over headers and digests: only a digest that nobody can forge extends them to the content.
        let clear = match report.digest {
            Some(MainDigest::Blake3) => "in the clear, every frame authenticated",
            _ => "in the clear, headers authenticated, content not",
        };
        lines.extend(report.link.as_ref().map(|report| link(report, clear)));
        lines.extend(report.limit.map(|limit| limited(limit, report)));
        lines.extend(unsent::resumed(report));
        lines.extend(unsent::taken_over(report));
        lines.extend(unsent::shared(report));
        lines.extend(unsent::followed(report));
        lines.extend(report.compress.map(|can| unsent::compressed(can, report)));
        lines.extend(unkept(report));
        lines.extend(report.unkept_attributes.as_ref().map(unkept_attributes));
        lines.extend(reread(report));
        lines.extend(recovered(report));
        lines.extend(report.durable.map(|durable| match durable {
            true => "durable: yes".to_owned(),
            false if report.durability == Some(Durability::None) => {
                "durable: no, received only (--durable none)".to_owned()
            }
            false => "durable: no: not all of it had reached stable storage when the copy ended".to_owned(),
        }));
    }
    lines
}

/// Unfinished files that stay, and what to do with them.
pub fn unfinished(report: &Report, destination: &CopyTarget) -> Option<String> {
    let Unfinished { count, paths } = &report.unfinished;
    let shown: Vec<String> = paths.iter().take(3).map(|path| display_bytes(path).to_string()).collect();
    let more = if *count > shown.len() as u64 { ", …" } else { "" };
    let (files, them) = if *count == 1 { ("1 unfinished file", "it") } else { ("unfinished files", "them") };
    let files = if *count == 1 { files.to_owned() } else { format!("{count} {files}") };
    let place = match destination {
        CopyTarget::Place(place) => place.with_path(report.unfinished_in.clone()).to_string(),
        _ => display_bytes(&report.unfinished_in).to_string(),
    };
    (*count > 0).then(|| {
        format!(
            "left: {files} of an earlier copy that this one left out ({}{more}); the same command without --files-from and without flags \
             that keep files goes on with {them}, `carrack gc --older-than 0s {}` removes {them}",
            shown.join(", "),
            shell_word(&place)
        )
    })
}

/// Items that were left as they are, and by which rule. No content was compared: what they hold may be anything.
fn skipped(report: &Report) -> String {
    let rule = match report.existing {
        Some(Existing::Keep) => "existing there",
        Some(Existing::Only) => "not existing there",
        Some(Existing::Older) => "not older there",
        Some(Existing::Replace) | None => "left as they are",
    };
    format!("skipped: {}, {rule} (content not compared)", count(report.counts.files_kept))
}

fn moved(report: &Report, dry_run: bool) -> String {
    let done = if dry_run { "would copy" } else { "copied" };
    let mut what = counted(report.counts.files, "file", "files");
    if report.counts.symlinks > 0 {
        what = format!("{what}, {}", counted(report.counts.symlinks, "symbolic link", "symbolic links"));
    }
    if report.counts.directories > 0 {
        what = format!("{what}, {}", counted(report.counts.directories, "directory", "directories"));
    }
    if report.counts.hard_links > 0 {
        what = format!("{what}, {}", counted(report.counts.hard_links, "hard link", "hard links"));
    }
    if report.counts.specials > 0 {
        what = format!(
            "{what}, {}",
            counted(report.counts.specials, "device, FIFO or socket", "devices, FIFOs and sockets")
        );
    }
    // In the family of units that rates have.
    let mut line = format!("{done} {what}, {}", format::decimal_size_exact(report.counts.bytes));
    if !dry_run {
        line = format!("{line} in {}", format::duration(report.elapsed));
        line.extend(rate(report).map(|rate| format!("{}: {rate}", moving_time(report))));
    }
    if report.counts.files_failed > 0 {
        line = format!("{line}; {} failed", counted(report.counts.files_failed, "item", "items"));
    }
    line
}

/// Files and bytes a second, over the time in which data moved.
fn rate(report: &Report) -> Option<String> {
    // What an earlier command had brought did not move now. After a lost session it cannot be told from what this
    // command had brought before: all of it is counted then.
    let resumed =
        (report.counts.files_resumed > 0 || report.counts.bytes_resumed > 0) && report.faults.sessions_lost == 0;
    let Counts { bytes, bytes_resumed, bytes_taken_over, bytes_shared, .. } = report.counts;
    let found = bytes_taken_over.saturating_add(bytes_shared);
    let sent = bytes.saturating_sub(if resumed { bytes_resumed } else { 0 }).saturating_sub(found);
    let resumed = resumed || found > 0 && report.faults.sessions_lost == 0;
    let files = format::per_second(report.counts.files, report.moving)?;
    let bytes = format::rate(format::per_second(sent, report.moving)?);
    match resumed {
        true => (sent > 0).then(|| format!("{bytes} for the bytes sent now")),
        // One file's "files a second" says nothing.
        false if report.counts.files > 1 => Some(format!("{} files/s, {bytes}", files_rate(files))),
        false => (sent > 0).then_some(bytes),
    }
}

/// How much of its time a copy moved data, where its rate would else look wrong: by more than a twentieth.
fn moving_time(report: &Report) -> String {
    let [moving, elapsed] = [report.moving, report.elapsed].map(format::duration);
    if moving == elapsed || report.moving * 20 >= report.elapsed * 19 {
        return String::new();
    }
    format!(" ({moving} of transfer)")
}

fn files_rate(files_per_second: f64) -> String {
    if files_per_second < 10.0 { format!("{files_per_second:.1}") } else { count(files_per_second as u64) }
}

/// How files were proved. Where some were not, how many were.
fn verified(verify: Verify, report: &Report) -> String {
    let how = proof(verify, report);
    let proved = report.counts.files.saturating_sub(report.counts.files_shared);
    match verify {
        Verify::None => format!("verified: no, {how}"),
        _ if report.counts.files == 0 => "verified: nothing, because no file was copied".to_owned(),
        _ if proved == 0 => "verified: nothing, because nothing was read".to_owned(),
        _ if report.counts.files_kept > 0 || report.counts.files_shared > 0 => {
            format!("verified: {}, {how}", counted(proved, "file", "files"))
        }
        _ => format!("verified: {how}"),
    }
}

fn proof(verify: Verify, report: &Report) -> String {
    let (what, but) = match report.digest {
        Some(MainDigest::Xxh128) => ("xxh128 of each block", "; it finds accidents, not forgery"),
        _ => ("BLAKE3", ""),
    };
    let named = match report.at_destination.files_in_place {
        0 => "before each name appeared",
        _ => "before each name appeared, but for what was written in place",
    };
    match verify {
        // What is not kept gets no name, and cannot be read back.
        Verify::Wire | Verify::Disk if report.durable.is_none() => {
            format!("{what} of what the receiver got{but}")
        }
        Verify::Wire => format!("{what} of what the receiver wrote, {named}{but}"),
        Verify::Source if report.durable.is_none() => {
            format!("{what} of what the receiver got, and of the source read once more{but}")
        }
        Verify::Source => format!("{what} of what the receiver wrote, and of the source read once more, {named}{but}"),
        // Storage is not said to have given back what it was not asked for.
        Verify::Disk if report.at_destination.files_not_read_back > 0 => format!(
            "{what} of what the receiver wrote, {named}{but}; storage gave it back but for {}, which {}",
            counted(report.at_destination.files_not_read_back, "file", "files"),
            "could not be read past the cache, or had been published by an earlier attempt and was not read again"
        ),
        Verify::Disk => format!("{what} of what storage gave back, {named}{but}"),
        Verify::None => "as asked (--verify none)".to_owned(),
    }
}

fn link(report: &LinkReport, clear: &str) -> String {
    let way = match report.kind {
        LinkKind::Memory => return "link: within this process".to_owned(),
        LinkKind::Direct => {
            let from = report.from.map(|from| format!(" from {from}")).unwrap_or_default();
            format!("direct{from} to {}", safe(&report.address))
        }
        LinkKind::Reverse => format!("reverse to {}", safe(&report.address)),
        LinkKind::Tunnel => "tunnel over the control connection".to_owned(),
    };
    let cipher = match report.cipher.as_str() {
        "none" => clear.to_owned(),
        cipher => safe(cipher),
    };
    format!("link: {way}, {}, {cipher}", counted(report.streams.into(), "stream", "streams"))
}

/// Where the number of streams to begin with comes from, if it is neither asked for nor a guess.
fn kept(report: &LinkReport) -> String {
    let is_kept = report.streams_from == StreamsFrom::Kept && report.kind != LinkKind::Memory;
    let streams = || counted(report.streams.into(), "stream", "streams");
    if is_kept { format!("; {}, {}", streams(), report.streams_from.meaning()) } else { String::new() }
}

fn program(sent: &ProgramSent) -> String {
    let (host, bytes) = (safe(&sent.host), format::size_exact(sent.bytes));
    let which = if sent.slim { "the slim program" } else { "this program itself" };
    let packed = if sent.compressed { "compressed" } else { "as it is" };
    format!("{host}: {which} was sent there, {bytes} through ssh, {packed}; it has {}", format::size_exact(sent.size))
}

fn streams(change: &Change) -> String {
    let (rate, streams) = (format::rate(change.rate), counted(change.streams.into(), "stream", "streams"));
    format!("{streams} from now on, after {} with {rate}: {}", change.before, change.reason)
}

/// What held a copy back, its number, and what held it back most after that.
fn limited(limit: Limit, report: &Report) -> String {
    let fact = report.limit_fact.map(|fact| format!("; {}", fact.words())).unwrap_or_default();
    let next = report.limit_next.map(|next| format!(", then {} ({:.0} %)", named(next.stage), next.share * 100.0));
    format!("limited by: {} ({}{fact}){}", named(limit.stage), limit.amount(), next.unwrap_or_default())
}

fn named(stage: Stage) -> &'static str {
    // Known to the user by its flag.
    if stage == Stage::RateLimit { "--bwlimit" } else { stage.meaning() }
}

/// What the destination did not keep of permissions and times, with the first of each.
fn unkept(report: &Report) -> Option<String> {
    fn part<T>(kind: &str, unkept: &Unkept<T>, among: &str, shown: impl Fn(&T) -> String) -> String {
        let (items, path) = (counted(unkept.count, "item", "items"), place(&unkept.path));
        format!("{kind} of {items}{among} (first {path}: {} became {})", shown(&unkept.wanted), shown(&unkept.kept))
    }
    let mode = |mode: &u32| format!("{mode:04o}");
    let directories = report.unkept_directories.count;
    let among = format!(", {} of them", counted(directories, "directory", "directories"));
    let among = if directories > 0 { &among } else { "" };
    let permissions = report.unkept_permissions.as_ref().map(|unkept| part("permissions", unkept, among, mode));
    let time = |time: &Time| format::rfc3339_nanos(time.seconds, time.nanos);
    let times = report.unkept_times.as_ref().map(|unkept| part("times", unkept, "", time));
    let parts: Vec<String> = permissions.into_iter().chain(times).collect();
    (!parts.is_empty()).then(|| format!("not kept by the destination: {}", parts.join(", ")))
}

/// A path below the destination; empty for that itself.
fn place(path: &[u8]) -> String {
    display_bytes(if path.is_empty() { b"." } else { path }).to_string()
}

/// Owners, access control lists and whatever else was not kept beside permissions and times.
fn unkept_attributes(unkept: &UnkeptAttributes) -> String {
    let told = if unkept.kinds.values().all(|items| *items > 0) {
        let parts: Vec<String> = unkept.kinds.iter().map(|(kind, items)| unkept_kind(*kind, *items)).collect();
        parts.join(", ")
    } else {
        let kinds: Vec<String> = unkept.kinds.keys().map(ToString::to_string).collect();
        format!("attributes of {} ({})", counted(unkept.count, "item", "items"), kinds.join(", "))
    };
    format!("not kept: {told}; first {}", place(&unkept.path))
}

/// How many items did not keep something, by the name that a task has for it.
#[cfg(feature = "service")]
pub fn unkept_named(what: &str, items: u64) -> String {
    match AttributeKind::named(what) {
        Some(kind) => unkept_kind(kind, items),
        // Permissions, times, and what a newer service counts.
        None => format!("{} of {}", safe(what), counted(items, "item", "items")),
    }
}

fn unkept_kind(kind: AttributeKind, items: u64) -> String {
    let of = |what: &str| format!("{what} of {}", counted(items, "item", "items"));
    match kind {
        AttributeKind::OWNER => counted(items, "owner", "owners"),
        AttributeKind::GROUP => counted(items, "group", "groups"),
        AttributeKind::SPECIAL_BITS => of("set-id or sticky bits"),
        AttributeKind::HARD_LINK => counted(items, "hard link", "hard links"),
        AttributeKind::ACL => counted(items, "ACL", "ACLs"),
        AttributeKind::NFS4_ACL => counted(items, "NFS version 4 ACL", "NFS version 4 ACLs"),
        AttributeKind::CAPABILITIES => of("capabilities"),
        AttributeKind::ACCESS_TIME => counted(items, "access time", "access times"),
        AttributeKind::INODE_FLAGS => of("inode flags"),
        AttributeKind::EXTENDED => of("extended attributes"),
        AttributeKind::SPECIAL_FILE => counted(items, "device, FIFO or socket", "devices, FIFOs and sockets"),
        AttributeKind::SYMBOLIC_LINK => counted(items, "symbolic link", "symbolic links"),
        AttributeKind::DIRECTORY => counted(items, "directory", "directories"),
        // Only a newer program has a name for it.
        other => of(&format!("attributes of {other}")),
    }
}

/// Directories whose permissions were not kept, by name.
pub fn unkept_directories(report: &Report) -> Vec<String> {
    let told = &report.unkept_directories;
    let mut lines: Vec<String> =
        told.paths.iter().map(|path| format!("permissions not kept: {}", place(path))).collect();
    let more = told.count.saturating_sub(told.paths.len() as u64);
    if more > 0 {
        lines.push(format!("permissions not kept: {}", counted(more, "more directory", "more directories")));
    }
    lines
}

fn reread(report: &Report) -> Option<String> {
    let (parts, bytes) = (report.at_destination.parts_reread, format::size_exact(report.at_destination.bytes_reread));
    let parts = (parts > 0).then(|| counted(parts, "unfinished file", "unfinished files"))?;
    Some(format!("read again: {parts} of an earlier attempt, {bytes}, because they may have been altered since"))
}

fn recovered(report: &Report) -> Option<String> {
    let faults = &report.faults;
    let parts = [
        (faults.digest_mismatches, "sent again after a digest mismatch"),
        (faults.resent_after_loss, "sent again after a stream was lost"),
        (faults.stragglers, "sent again because their stream was slow"),
        (faults.blocks_rotten, "sent again because storage gave back other bytes"),
        (faults.items_again, "files sent again whole"),
        (faults.streams_lost, "streams lost"),
        (faults.streams_altered, "of them because what came was altered"),
    ];
    let mut told: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(*number)))
        .collect();
    told.extend(match faults.sessions_lost {
        0 => None,
        1 => Some("reconnected once".to_owned()),
        times => Some(format!("reconnected {} times", count(times))),
    });
    (!told.is_empty()).then(|| format!("recovered: {}", told.join(", ")))
}

/// What stands in the source and is no part of it.
pub fn left_out(report: &Report) -> Option<String> {
    let count = counted(report.counts.leftovers_skipped, "marker or part file", "markers and part files");
    (report.counts.leftovers_skipped > 0).then(|| format!("left out: {count} of other copies"))
}

/// What failed, told to the end even with `-q`. A directory that cannot be entered fails everything below it: that is
/// one line, which counts the items that the report names.
pub fn failures(report: &Report) -> Vec<String> {
    let unnamed = report.counts.files_failed.saturating_sub(report.failures.len() as u64);
    let by_cause = by_cause(&report.failures);
    let mut lines: Vec<String> = by_cause.iter().flat_map(|items| of_one_cause(items, unnamed == 0)).collect();
    if unnamed > 0 {
        lines.push(format!(
            "failed: {} not named here (--json, --log-file and --failed-list name every one)",
            counted(unnamed, "more item", "more items")
        ));
    }
    lines.extend(report.error.as_ref().map(|error| format!("error: {}", failure(error))));
    lines
}

/// Groups failures that have one cause, in the order of the first of each. A failure that does not name the item or a
/// directory above it is a group of its own.
fn by_cause(failures: &[ItemFailure]) -> Vec<Vec<&ItemFailure>> {
    let mut groups: Vec<Vec<&ItemFailure>> = Vec::new();
    for item in failures {
        let has_cause = cause(item).is_some();
        let is_same = |first: &&ItemFailure| first.failure == item.failure && cause(first).is_some();
        match groups.iter_mut().find(|group| has_cause && group.first().is_some_and(is_same)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// The lines of items that failed for one cause; `is_all` says that the report names every failed item.
fn of_one_cause(items: &[&ItemFailure], is_all: bool) -> Vec<String> {
    let below = items.iter().filter(|item| cause(item) == Some(Cause::Above)).count();
    match items {
        [first, _, ..] if below > 0 => {
            let at_least = if is_all { "" } else { "at least " };
            let below = counted(below as u64, "item", "items");
            vec![format!("failed: {} ({at_least}{below} below it failed as well)", failure(&first.failure))]
        }
        _ => items.iter().map(|item| failed_item(&item.path, &item.failure)).collect(),
    }
}

/// Where the cause of an item's failure lies, where the failure names a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// In the item itself.
    Itself,
    /// In a directory above it.
    Above,
}

fn cause(item: &ItemFailure) -> Option<Cause> {
    match item.path.strip_prefix(item.failure.path()?)? {
        b"" => Some(Cause::Itself),
        below => below.starts_with(b"/").then_some(Cause::Above),
    }
}

#[cfg(test)]
#[path = "human_tests.rs"]
mod tests;
