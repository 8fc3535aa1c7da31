//! What is to be deleted, kept until it is.

use std::io;

use carrack_core::report::{Failure, ItemKind, Side};

use crate::error::io_failure;
use crate::storage::write::Destination;
use crate::transfer::spool::Spool;

/// Paths to be deleted, in that order.
#[derive(Default)]
pub(super) struct DeletionList(Spool);

impl DeletionList {
    pub fn push(
        &mut self,
        destination: &dyn Destination,
        path: &[u8],
        kind: ItemKind,
        size: u64,
    ) -> Result<(), Failure> {
        let write = |record: &mut Vec<u8>| {
            record.push(kind.number() as u8);
            record.extend_from_slice(&size.to_le_bytes());
            record.extend_from_slice(path);
        };
        let fail = |error: &io::Error| io_failure(Side::Destination, "write the list of what is deleted", error);
        self.0.push(write, || destination.scratch(), fail)
    }

    /// Hands each of them to `each`, until that says `false`.
    pub fn each(self, each: &mut dyn FnMut(&[u8], ItemKind, u64) -> bool) -> io::Result<()> {
        self.0.each(&mut |record| {
            let Some(([kind, size @ ..], path)) = record.split_first_chunk::<9>() else { return true };
            let kind = ItemKind::from_number((*kind).into()).unwrap_or(ItemKind::File);
            each(path, kind, u64::from_le_bytes(*size))
        })
    }
}
