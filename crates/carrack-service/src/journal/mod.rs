//! The journal of a task: a file to which its workers append, one after the other, and which the service only reads.
//! What became of each item, what happened, how it went, how each attempt ended.
//!
//! The file `journal` begins with eight bytes that name its format. Records follow: the length of the body (`u32`,
//! little endian), the kind (`u8`), the body (protobuf), and the CRC-32C of all three. A batch of records is appended
//! with one write. After a crash the last batch may be torn: readers take what is whole, and the next worker, which
//! holds the task's lock, cuts the rest. The file `failed` has the same form, and holds only the items that the attempt
//! under way, or the last one, has told as failed. The file `withdrawn` says which items of the journal do not count
//! any more.

mod body;
mod error;
mod format;
mod index;
mod items;
mod reader;
mod record;
mod withdrawn;
mod writer;

pub use error::JournalError;
pub use format::{FAILED, JOURNAL, receipt_path};
pub use index::{ItemIndex, ItemQuery, ItemWindow};
pub use items::{Cursor, ItemFilter, ItemPage, each_item, failed_last, items};
pub use reader::Reader;
pub use record::{AttemptEnd, CheckMark, EndCounts, EndKind, Item, PairEnd, Record, Sample};
pub use withdrawn::Withdrawn;
pub use writer::{Recovered, Writer, recover};

#[cfg(test)]
mod tests;
