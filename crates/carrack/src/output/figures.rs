//! The figures that rsync's report tells, for scripts that look for them.

use carrack_core::report::Report;

use super::format::count;

/// What rsync's report tells, in its words, as far as a copy counts it.
pub fn figures(report: &Report) -> Vec<String> {
    let counts = &report.counts;
    let items = [counts.names_made(), counts.directories, counts.files_same, counts.files_kept];
    let bytes = |bytes: u64| format!("{} bytes", count(bytes));
    [
        ("Number of files", count(items.iter().copied().fold(counts.files_failed, u64::saturating_add))),
        ("Number of deleted files", count(report.at_destination.items_deleted)),
        ("Number of regular files transferred", count(counts.files)),
        ("Total file size", bytes(counts.bytes.saturating_add(counts.bytes_same))),
        ("Total transferred file size", bytes(counts.bytes)),
    ]
    .map(|(what, figure)| format!("{what}: {figure}"))
    .into()
}
