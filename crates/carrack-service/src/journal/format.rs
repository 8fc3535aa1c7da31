//! Names of files, and what stands around the body of a record.

/// All that is told, below a task's directory.
pub const JOURNAL: &str = "journal";
/// Items that failed.
pub const FAILED: &str = "failed";

/// The first bytes of a file: its format, and the version of that.
pub(super) const MAGIC: &[u8; 8] = b"CRKTASK1";
/// Bytes before a record's body.
pub(super) const HEAD_BYTES: usize = 5;
/// Bytes behind it.
pub(super) const TAIL_BYTES: usize = 4;
/// The longest body: a path of 64 KiB and a reason fit.
pub(super) const BODY_BYTES_MAX: usize = 1 << 20;

/// Where the receipt of a pair is, in the task's directory.
pub fn receipt_path(directory: &std::path::Path, pair: u32) -> std::path::PathBuf {
    directory.join(format!("receipt-{pair}.jsonl"))
}
