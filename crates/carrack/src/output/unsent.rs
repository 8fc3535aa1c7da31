//! What a copy had no need to send as it is, in words: it was there, is shared, or was compressed. And what it sent
//! beyond what was listed.

use carrack_core::pace::packing::Compressible;
use carrack_core::report::{Counts, Report};

use super::format::{self, counted};

/// What an earlier attempt had brought.
pub fn resumed(report: &Report) -> Option<String> {
    let (files, bytes) = (report.counts.files_resumed, report.counts.bytes_resumed);
    let there = format!("{}, {}", counted(files, "file", "files"), format::size_exact(bytes));
    (files > 0 || bytes > 0).then(|| format!("resumed: {there} were there from an earlier attempt"))
}

/// What of changed files was there already.
pub fn taken_over(report: &Report) -> Option<String> {
    let bytes = report.counts.bytes_taken_over;
    let size = format::size_exact(bytes);
    (bytes > 0).then(|| format!("delta: {size} of changed files were there already, and were not sent"))
}

/// What shares its blocks with its source.
pub fn shared(report: &Report) -> Option<String> {
    let (files, bytes) = (report.counts.files_shared, report.counts.bytes_shared);
    let which = format!("{}, {}", counted(files, "file", "files"), format::size_exact(bytes));
    (files > 0).then(|| format!("shared with the source: {which}, without a second copy of their blocks; nothing of them was read or verified"))
}

/// What grew while it was copied.
pub fn followed(report: &Report) -> Option<String> {
    let files = report.counts.files_followed;
    let which = counted(files, "file", "files");
    (files > 0).then(|| format!("followed: {which} grew during the copy, until nothing more was appended"))
}

/// What has travelled compressed, and why the rest has not.
pub fn compressed(can: Compressible, report: &Report) -> String {
    let Counts { bytes_compressed, bytes_compressed_to, bytes_not_shrunk, .. } = report.counts;
    let [from, to, not] = [bytes_compressed, bytes_compressed_to, bytes_not_shrunk].map(format::size);
    let rest = sent(report).saturating_sub(bytes_compressed).saturating_sub(bytes_not_shrunk);
    let why = match (rest > sent(report) / 20, bytes_not_shrunk > 0) {
        _ if can != Compressible::Yes => can.meaning().to_owned(),
        (true, _) => "the path is quicker than this work".to_owned(),
        (false, true) => format!("{not} did not shrink"),
        (false, false) if bytes_compressed > 0 => return format!("compressed: {from} travelled as {to}"),
        (false, false) => "there was next to nothing to send".to_owned(),
    };
    match bytes_compressed {
        0 => format!("compressed: nothing: {why}"),
        _ => format!("compressed: {from} travelled as {to}, the rest as it is: {why}"),
    }
}

/// Bytes that were sent, as far as is known.
fn sent(report: &Report) -> u64 {
    let Counts { bytes, bytes_resumed, bytes_taken_over, bytes_shared, .. } = report.counts;
    bytes.saturating_sub(bytes_resumed).saturating_sub(bytes_taken_over).saturating_sub(bytes_shared)
}
