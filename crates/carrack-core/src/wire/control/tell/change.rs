//! What was done to items at the destination, as fields of a message, and from there back.

use super::fields::below_second;
use crate::attributes::Time;
use crate::limits;
use crate::report::{Differences, Done, ItemChange, ItemKind};
use crate::wire::ProtocolError;
use crate::wire::control::raw;

const DELETED: u32 = 1;
const LINKED: u32 = 2;
const RENAMED: u32 = 3;
/// And what differs, in the bits below.
const REPLACED: u32 = 4096;
const SET: u32 = 8192;
const COPIED: u32 = 16384;
const DIFFERS: u32 = 511;

impl From<ItemChange> for raw::Change {
    fn from(change: ItemChange) -> Self {
        let ItemChange { path, kind, size, mtime, leads_to, digests, done } = change;
        Self {
            path,
            kind: kind.number(),
            size,
            mtime_seconds: mtime.map(|time| time.seconds),
            mtime_nanos: mtime.map_or(0, |time| time.nanos),
            leads_to,
            digests: Some(digests).filter(|digests| *digests != Default::default()).map(Into::into),
            done: match done {
                Done::Created => 0,
                Done::Deleted => DELETED,
                Done::Linked => LINKED,
                Done::Renamed => RENAMED,
                Done::Replaced(differs) => REPLACED | bits(differs),
                Done::Set(differs) => SET | bits(differs),
                Done::Copied(differs) => COPIED | bits(differs),
            },
        }
    }
}

/// The path is checked by whoever knows what was asked for.
impl TryFrom<raw::Change> for ItemChange {
    type Error = ProtocolError;

    fn try_from(raw: raw::Change) -> Result<Self, ProtocolError> {
        let wrong = |what: &str| ProtocolError::violation(format!("the peer told of a change {what}"));
        if raw.leads_to.len() > limits::PATH_BYTES {
            return Err(wrong("of a link that says too much"));
        }
        Ok(Self {
            path: raw.path,
            kind: ItemKind::from_number(raw.kind).ok_or_else(|| wrong("of an unknown kind of item"))?,
            size: raw.size,
            mtime: raw.mtime_seconds.map(|seconds| Time::new(seconds, below_second(raw.mtime_nanos))),
            leads_to: raw.leads_to,
            digests: raw.digests.unwrap_or_default().into(),
            done: done(raw.done).ok_or_else(|| wrong("that is unknown"))?,
        })
    }
}

fn bits(differs: Differences) -> u32 {
    let Differences { content, size, time, permissions, time_is_of_writing, owner, group, acl, xattrs } = differs;
    let bits = [content, size, time, permissions, time_is_of_writing, owner, group, acl, xattrs];
    bits.into_iter().enumerate().map(|(at, bit)| u32::from(bit) << at).sum()
}

fn done(number: u32) -> Option<Done> {
    let has = |bit: u32| number & bit != 0;
    let differs = Differences {
        content: has(1),
        size: has(2),
        time: has(4),
        permissions: has(8),
        time_is_of_writing: has(16),
        owner: has(32),
        group: has(64),
        acl: has(128),
        xattrs: has(256),
    };
    match number {
        0 => Some(Done::Created),
        DELETED => Some(Done::Deleted),
        LINKED => Some(Done::Linked),
        RENAMED => Some(Done::Renamed),
        _ if number & !DIFFERS == REPLACED => Some(Done::Replaced(differs)),
        _ if number & !DIFFERS == SET => Some(Done::Set(differs)),
        _ if number & !DIFFERS == COPIED => Some(Done::Copied(differs)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::control::Tell;

    #[test]
    fn changes_come_back_and_others_are_refused() {
        let told = |change: raw::Change| {
            let changes = raw::Tell::Changes(raw::Changes { list: vec![change] });
            Tell::decode(&raw::FromAgent { request: 0, tell: Some(changes) }.to_bytes()).map(|(_, tell)| tell)
        };
        let file = raw::Change { path: b"f".to_vec(), kind: ItemKind::File.number(), ..raw::Change::default() };
        for number in (0..32768).chain([u32::MAX, 65536 | SET]) {
            let is_change = number <= RENAMED || [REPLACED, SET, COPIED].contains(&(number & !DIFFERS));
            let Ok(tell) = told(raw::Change { done: number, ..file.clone() }) else {
                assert!(!is_change, "{number}");
                continue;
            };
            assert!(is_change, "{number}");
            let Tell::Changes(changes) = tell.clone() else { panic!("{tell:?}") };
            assert_eq!(raw::Change::from(changes[0].clone()).done, number);
            assert_eq!(Tell::decode(&tell.clone().encode(0)), Ok((0, tell)));
        }
        let long = vec![b'x'; limits::PATH_BYTES + 1];
        assert!(told(raw::Change { leads_to: long, ..file.clone() }).is_err());
        assert!(told(raw::Change { kind: 9, ..file }).is_err());
    }
}
