//! What a place has now, against what a receipt says.

use std::io::{Read, Seek};

use carrack_core::plan::check::{
    CheckCounts, CheckFinding, CheckRules, CheckedFacts, CheckedItem, CheckedSide, CheckedState, TreeComparison,
};
use carrack_core::plan::compare::{CompareRules, State};
use carrack_core::report::{FileDigests, ItemKind};
use carrack_core::request::{Compare, Existing};

use crate::error::ReceiptError;
use crate::item::{ReceiptItem, condensed};
use crate::read::ReadReceipt;
use crate::write::Pull;

/// Compares what `found` lists, digests included, with the items of a receipt; in the findings the receipt is the
/// source. What the receipt does not claim is not compared. What it does not name is told as only the destination's.
/// With `only` what is listed is a file, and is compared with that item, whatever its name is.
///
/// # Errors
/// When the receipt cannot be read or was changed meanwhile, or the place cannot be listed.
pub fn compare<R: Read + Seek>(
    receipt: &mut ReadReceipt<R>,
    only: Option<&ReceiptItem>,
    found: Pull<'_>,
    each: &mut dyn FnMut(&[u8], &CheckFinding),
) -> Result<CheckCounts, ReceiptError> {
    let compare = CompareRules { compare: Compare::Content, existing: Existing::Replace, window_ns: 0 };
    let rules = CheckRules { compare, kept: receipt.statement.kept(), numeric_ids: false, claims: true };
    let mut comparison = TreeComparison::new(rules);
    let mut items = receipt.items()?;
    loop {
        let next = comparison.next_finding::<ReceiptError>(&mut |side| match side {
            CheckedSide::Source => Ok(items.next_item()?.map(|item| claimed(item, only))),
            CheckedSide::Destination => Ok(found()?.map(|item| as_claimed(item, only))),
        })?;
        let Some((path, finding)) = next else { return Ok(comparison.counts()) };
        each(&path, &finding);
    }
}

/// What a receipt says that the destination has.
fn claimed(item: ReceiptItem, only: Option<&ReceiptItem>) -> CheckedItem {
    let is_meant = only.is_none_or(|only| only.path == item.path);
    let ReceiptItem { path, kind, outcome, size, blake3, found, .. } = item;
    if !outcome.is_claimed() || !is_meant {
        return CheckedItem { path, told: CheckedState::LeftOut };
    }
    let is_found = found.is_some();
    let found = found.unwrap_or_default();
    let has_mode = is_found && kind != ItemKind::Symlink;
    let facts = CheckedFacts {
        state: State { kind, size, mtime: found.mtime },
        link_target: found.link_target,
        special: found.special,
        mode: if has_mode { found.mode } else { CheckedFacts::NO_MODE },
        others: found.others,
        digests: FileDigests { blake3, ..FileDigests::default() },
        file: None,
    };
    CheckedItem { path, told: CheckedState::There(Box::new(facts)) }
}

/// What was found, as a receipt would say it.
fn as_claimed(mut item: CheckedItem, only: Option<&ReceiptItem>) -> CheckedItem {
    if let CheckedState::There(facts) = &mut item.told {
        facts.others = condensed(&facts.others);
        if let (Some(only), true) = (only, item.path.is_empty() && facts.state.kind == ItemKind::File) {
            item.path.clone_from(&only.path);
        }
    }
    item
}
