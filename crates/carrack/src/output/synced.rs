//! What a sync says at its end beside what it copied: what was there already, what was left out, what was deleted.

use carrack_core::path::display_bytes;
use carrack_core::reference::ReferenceDirectories;
use carrack_core::report::{ErrorCode, Report};

use super::format::{self, count, counted};

/// The lines; `undeleted` says why something was not deleted.
pub fn lines(report: &Report, dry_run: bool, undeleted: Option<String>) -> Vec<String> {
    let mut lines: Vec<String> =
        same(report).into_iter().chain(referred(report, dry_run)).chain(renamed(report, dry_run)).collect();
    lines.extend(links_skipped(report));
    lines.extend(replaced_same(report).filter(|_| !dry_run));
    lines.extend(in_place(report));
    lines.extend(deleted(report, dry_run, undeleted));
    lines.extend(removed(report));
    lines
}

/// What the destination had already.
fn same(report: &Report) -> Option<String> {
    let same = counted(report.counts.files_same, "file", "files");
    let set = report.at_destination.attributes_set;
    let set = if set > 0 { format!("; {} of them got other attributes", count(set)) } else { String::new() };
    let size = format::size_exact(report.counts.bytes_same);
    (report.counts.files_same > 0).then(|| format!("same: {same}, {size}, not sent{set}"))
}

/// What of it was made of what other directories have there.
fn referred(report: &Report, dry_run: bool) -> Vec<String> {
    let there = &report.at_destination;
    let from = match report.references.as_ref().map(ReferenceDirectories::paths) {
        Some([one]) => format!(", from {}", display_bytes(one)),
        Some(several) => format!(", from {}", counted(several.len() as u64, "directory", "directories")),
        None => String::new(),
    };
    let ways = [
        (there.files_linked, there.bytes_linked, "linked", "would link"),
        (there.files_copied_there, there.bytes_copied_there, "copied there", "would copy there"),
    ];
    let made = ways.into_iter().filter(|(files, ..)| *files > 0);
    let line = |(files, bytes, did, would)| {
        let done = if dry_run { would } else { did };
        format!("{done}: {}, {}{from}", counted(files, "file", "files"), format::size_exact(bytes))
    };
    made.map(line).collect()
}

/// What got the names that the source has given it.
fn renamed(report: &Report, dry_run: bool) -> Vec<String> {
    let there = &report.at_destination;
    let done = if dry_run { "would rename" } else { "renamed" };
    let ways = [
        (there.files_renamed, there.bytes_renamed, "the same at both sides, as read there"),
        (
            there.files_renamed_unread,
            there.bytes_renamed_unread,
            "of one size and time, three samples read; not verified",
        ),
    ];
    let line = |(files, bytes, why)| {
        format!("{done}: {}, {}, {why}", counted(files, "file", "files"), format::size_exact(bytes))
    };
    ways.into_iter().filter(|(files, ..)| *files > 0).map(line).collect()
}

fn links_skipped(report: &Report) -> Option<String> {
    let links = counted(report.counts.links_skipped, "symbolic link", "symbolic links");
    (report.counts.links_skipped > 0).then(|| format!("left out: {links} that would lead out of what is copied"))
}

/// What a sync would not have sent.
fn replaced_same(report: &Report) -> Option<String> {
    let sent = report.at_destination.files_replaced_same;
    let files = counted(sent, "file", "files");
    (sent > 0).then(|| format!("sent again: {files} of the same size and time; `carrack sync` would have skipped them"))
}

/// What was not replaced once the new one was whole.
fn in_place(report: &Report) -> Option<String> {
    let written = report.at_destination.files_in_place;
    let files = counted(written, "file", "files");
    (written > 0).then(|| format!("written in place: {files}; whoever read one meanwhile may have seen a mixture"))
}

/// What has been copied and is gone from the source.
fn removed(report: &Report) -> Option<String> {
    let removed = report.counts.sources_removed;
    (removed > 0).then(|| format!("deleted at the source: {}", counted(removed, "item", "items")))
}

/// What only the destination had, and what of it is gone.
fn deleted(report: &Report, dry_run: bool, undeleted: Option<String>) -> Vec<String> {
    let there = &report.at_destination;
    let what = |items, bytes| format!("{}, {}", counted(items, "item", "items"), format::size_exact(bytes));
    let mut lines = Vec::new();
    if there.items_deleted > 0 {
        lines.push(format!("deleted: {}", what(there.items_deleted, there.bytes_deleted)));
    }
    if there.items_only_there > 0 {
        let would = if dry_run { "would delete" } else { "not deleted" };
        lines.push(format!("{would}: {}", what(there.items_only_there, there.bytes_only_there)));
    }
    lines.extend(undeleted.map(|why| format!("deletion: {why}")));
    let failed = report.failures.iter().map(|item| &item.failure).chain(&report.error);
    if !dry_run && there.bytes_only_there > 0 && failed.into_iter().any(|why| why.code == ErrorCode::NoSpace) {
        let size = format::size_exact(there.bytes_only_there);
        lines.push(format!(
            "what only the destination has takes {size}: --delete-before deletes it before anything is sent"
        ));
    }
    lines
}
