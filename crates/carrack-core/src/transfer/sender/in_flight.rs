//! The files in flight, as the command is told of them: those that have begun to arrive and have no name yet.
//!
//! The sender tells, and not the receiver: it has heard of each block that has landed, and it tells counts and items,
//! too, so all three agree and come in one order. What is told is found out when it is due, from what the machine has
//! anyway; nothing is done for a block.

use std::cmp::Reverse;
use std::time::Instant;

use super::Sender;
use super::offered::Offered;
use crate::ids::ItemId;
use crate::limits;
use crate::report::ItemInFlight;

/// What was told of the files in flight.
#[derive(Debug, Default)]
pub struct InFlight {
    told: Vec<(ItemId, ItemInFlight)>,
    /// When it is looked at again.
    due: Option<Instant>,
}

impl InFlight {
    /// The files in flight, where they are to be told now: somebody has asked, it is time, and they have changed. One
    /// that was told before stays until it ends, so that nobody sees files come and go; behind these come those of
    /// which the most is missing.
    pub fn look(&mut self, now: Instant, sender: &Sender) -> Option<Vec<ItemInFlight>> {
        if !sender.config.options.items_in_flight || self.due.is_some_and(|due| now < due) {
            return None;
        }
        self.due = Some(now + sender.config.tuning.sample_interval);
        let list = self.list(sender);
        if list == self.told {
            return None;
        }
        self.told = list;
        Some(self.told.iter().map(|(_, item)| item.clone()).collect())
    }

    fn list(&self, sender: &Sender) -> Vec<(ItemId, ItemInFlight)> {
        if sender.has_ended() {
            return Vec::new();
        }
        let is_told = |id: &ItemId| self.told.iter().any(|(told, _)| told == id);
        let others = sender.items.iter().filter(|(id, item)| is_in_flight(item) && !is_told(id));
        let mut others: Vec<_> = others.map(|(id, item)| (Reverse(missing(item)), *id)).collect();
        others.sort_unstable();
        let open = |id: ItemId| {
            let item = sender.items.get(&id).filter(|item| is_in_flight(item))?;
            let path = sender.target(&item.scanned);
            Some((id, ItemInFlight { path, size: item.size, bytes: item.landed_bytes().0 }))
        };
        let mut room = limits::IN_FLIGHT_PATHS_BYTES;
        let fits = |(_, item): &(ItemId, ItemInFlight)| {
            let left = room.checked_sub(item.path.len());
            room = left.unwrap_or(room);
            left.is_some()
        };
        let all = self.told.iter().map(|(id, _)| *id).chain(others.into_iter().map(|(_, id)| id));
        all.filter_map(open).filter(fits).take(limits::IN_FLIGHT).collect()
    }
}

fn is_in_flight(item: &Offered) -> bool {
    item.abandoned.is_none() && item.has_begun()
}

/// Bytes that have not landed; of a file whose end is not known, more than of any other.
fn missing(item: &Offered) -> u64 {
    item.size.map_or(u64::MAX, |size| size.saturating_sub(item.landed_bytes().0))
}
