//! Receipts: what a copy, a sync or a task has done, item by item, signed, so that it can be proved years later.
//!
//! A receipt is a text file of JSON lines. The first says that it is one; then comes an [`item`](ReceiptItem) a line,
//! in the order in which trees are compared; the last is the [`Statement`]. An SSH signature over all of these follows,
//! as `ssh-keygen -Y sign` makes it. docs/archives.md describes the form.
//!
//! Nothing here is held in memory but a few lines: a receipt may have ten million items. Files and streams come from
//! whoever uses the crate.

mod compare;
mod error;
mod form;
mod item;
mod key;
mod lists;
mod making;
mod read;
mod signature;
mod signers;
mod sorted;
mod ssh;
mod statement;
mod tops;
mod write;

pub use compare::compare;
pub use error::ReceiptError;
pub use form::VERSION;
pub use item::{FoundFacts, ItemOutcome, ReceiptItem};
pub use key::{PublicKey, ReceiptKey, Sha256};
pub use lists::{BAGIT_TXT, bag_line};
pub use making::Making;
pub use read::{ReadReceipt, ReceiptItems, tops};
pub use signature::{NAMESPACE, Signature};
pub use signers::{KeptSigner, Signers};
pub use statement::{Deed, Ending, HostFacts, Statement, Transport};
pub use write::{Draft, Pull};
