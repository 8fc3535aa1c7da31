//! The form of a receipt.

/// The version of the form that this program writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// The longest line of an item, in bytes: a path, where a link leads, and why it failed, escaped at the worst.
pub(crate) const LINE_BYTES: usize = 1 << 20;

/// The longest line of a statement, in bytes: it names all sources.
pub(crate) const STATEMENT_BYTES: usize = 16 << 20;
