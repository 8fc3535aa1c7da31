//! What a plan owes the store that it writes into: it is asked for nothing that it cannot do, and what that leaves
//! out is told before the first byte.

use std::time::Duration;

use carrack_core::failure::Failure;
use carrack_core::request::{CopyOptions, Durability};

use super::resolve::Plan;
use crate::storage::properties::{BlockBytes, Case, Properties, Writes};

/// Fits a plan to a destination's store. What the user should know of it.
///
/// # Errors
/// With [`carrack_core::failure::Reason::BlockRefused`] where the store does not take blocks of the size that was asked
/// for.
pub fn fit(plan: &mut Plan, options: &CopyOptions, store: &Properties) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    if let Some(takes) = store.block_bytes {
        notes.extend(fit_blocks(plan, options.block_bytes, takes)?);
    }
    if store.writes == Writes::InOrder {
        plan.one_stream = true;
        if options.streams.is_some_and(|streams| streams > 1) {
            notes.push("one stream carries the data: the store takes each file from its beginning to its end".into());
        }
    }
    if !store.keeps {
        return Ok(notes);
    }
    let trees = plan.files.len() < plan.sources.len();
    let lacks = [
        (!store.permissions, "permissions"),
        (store.times.is_none(), "modification times"),
        (!store.links && trees, "symbolic links"),
        (!store.directories && trees, "directories"),
    ];
    let lacks: Vec<&str> = lacks.into_iter().filter_map(|(lacks, what)| lacks.then_some(what)).collect();
    match &lacks[..] {
        [] => {}
        [only] => notes.push(format!("the store keeps no {only}")),
        [first @ .., last] => notes.push(format!("the store keeps no {} and no {last}", first.join(", no "))),
    }
    if let Some(unit) = store.times.filter(|unit| *unit > Duration::from_nanos(1)) {
        notes.push(format!("the store keeps modification times in units of {unit:?}"));
    }
    if store.case == Case::Folds && trees {
        notes.push("names that differ only by upper and lower case are one name in the store".into());
    }
    if !store.sync && options.durability != Durability::None {
        notes.push("the store does not say when data is on stable storage: nothing is synced".into());
    }
    Ok(notes)
}

/// Has blocks the size that a destination's store takes, and tells it where that is another than was chosen here.
///
/// # Errors
/// As [`BlockBytes::check`] where the store does not take the size that was asked for, or none that there is.
fn fit_blocks(plan: &mut Plan, asked: Option<u32>, takes: BlockBytes) -> Result<Option<String>, Failure> {
    let (smallest, largest) = (takes.smallest, takes.largest);
    let chosen = plan.block_bytes;
    let nearest = takes.nearest(chosen);
    if asked.is_some() || nearest.is_none() {
        takes.check(chosen)?;
    }
    let nearest = nearest.unwrap_or(chosen);
    plan.block_bytes = nearest;
    let note = || format!("blocks have {nearest} bytes, not {chosen}: the store takes from {smallest} to {largest}");
    Ok((nearest != chosen).then(note))
}
