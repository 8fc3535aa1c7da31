//! Files that are written over where they stand, as markers name them: until such a file is whole, nobody takes it for
//! that, whichever session of the copy began to write it.

use std::fs::File;

use carrack_core::transfer::marker::{PartRecord, Record, Replayed};
use carrack_sys::file;

use super::found::{hold, mixtures_of};
use super::{Journal, MARKERS, replay};
use crate::storage::posix::names::marker_name;

/// Writes down in a marker that is held that these records of it say nothing any more.
fn drop_records(marker: &File, found: &Replayed, parts: &[PartRecord]) {
    // What may have been taken back behind damage must stay doubted.
    if parts.is_empty() || found.damaged {
        return;
    }
    let (mut chain, mut bytes) = (found.chain, Vec::new());
    parts.iter().for_each(|part| chain.append(&Record::Dropped { part: part.number }, &mut bytes));
    let written = file::write_all_at(marker, &bytes, found.bytes).and_then(|()| file::sync_data(marker));
    // Else they are named twice.
    let _ = written;
}

impl Journal {
    /// Writes down a file that is about to be written in place, and waits until that is on stable storage. Its record
    /// names the file itself as its part, so nobody takes it for one that may be removed. Tells whether it is there.
    pub fn mixture(&self, file: PartRecord) -> bool {
        let written = {
            let mut state = self.lock();
            state.mixtures.entry(file.path.clone()).or_default().push(file.number);
            self.append(&mut state, &[Record::Part(file)])
        };
        written && self.sync()
    }

    /// Whether a file was being written in place when it was last told of.
    pub fn is_mixture(&self, path: &[u8]) -> bool {
        self.lock().mixtures.contains_key(path)
    }

    /// A file that was to be written in place is what it was: this record of it says nothing.
    pub fn untouched(&self, path: &[u8], number: u64) {
        let mut state = self.lock();
        if let Some(numbers) = state.mixtures.get_mut(path) {
            numbers.retain(|one| *one != number);
            if numbers.is_empty() {
                state.mixtures.remove(path);
            }
        }
        self.append(&mut state, &[Record::Dropped { part: number }]);
    }

    /// Something whole has the name: writes down that what was written in place there is no mixture any more.
    pub fn is_whole(&self, path: impl FnOnce() -> Vec<u8>) {
        let mut state = self.lock();
        if state.mixtures.is_empty() {
            return;
        }
        let numbers = state.mixtures.remove(&path()).unwrap_or_default();
        let records: Vec<_> = numbers.into_iter().map(|part| Record::Dropped { part }).collect();
        self.append(&mut state, &records);
    }

    /// Names the files of markers that are no more, and of the copy's other markers that nobody holds: these name them
    /// no more.
    pub(super) fn name_earlier(&self, forgotten: &[PartRecord]) {
        self.name_mixtures(forgotten);
        let others = (1..=MARKERS).map(|number| marker_name(self.key, number)).filter(|name| *name != self.name);
        for name in others {
            let Some(held) = hold(&self.root, &name) else { continue };
            if let Ok(Some(found)) = replay(&held) {
                let parts = mixtures_of(&self.root, &found);
                if self.name_mixtures(&parts) {
                    drop_records(&held, &found, &parts);
                }
            }
            let _ = file::unlock(&held);
        }
    }

    /// Tells whether all of them are written down.
    fn name_mixtures(&self, parts: &[PartRecord]) -> bool {
        let unnamed = parts.iter().filter(|part| !self.is_mixture(&part.path));
        let is_lost = |part: &&PartRecord| !self.mixture(PartRecord { number: self.next_part(), ..(*part).clone() });
        unnamed.filter(is_lost).count() == 0
    }
}
