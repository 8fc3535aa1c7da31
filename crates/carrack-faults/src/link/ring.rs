//! Packets under way, in the order in which they leave: one piece of memory, used round and round.

use std::collections::VecDeque;

/// Places begin at multiples of this: a cache line.
const ALIGN: usize = 64;

/// A queue of packets, each with the moment when it is due.
pub struct Ring {
    bytes: Vec<u8>,
    records: VecDeque<Record>,
    /// Where the next one goes.
    tail: usize,
}

struct Record {
    due: u64,
    at: usize,
    len: usize,
}

impl Ring {
    /// Of so many bytes, which the system gives only as they are used.
    pub fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], records: VecDeque::new(), tail: 0 }
    }

    /// Where a packet of up to so many bytes may be written, to be kept by [`Ring::push`]; `None`
    /// if there is no such place.
    pub fn room(&mut self, want: usize) -> Option<&mut [u8]> {
        let Some(first) = self.records.front() else {
            // Small traffic stays in the memory that the cache holds already.
            self.tail = 0;
            return self.bytes.get_mut(..want);
        };
        let head = first.at;
        let end = if self.tail > head {
            if self.bytes.len() - self.tail >= want {
                self.bytes.len()
            } else {
                self.tail = 0;
                head
            }
        } else {
            head
        };
        // One that would end where the first begins could not be told from an empty ring.
        let fits =
            self.tail + want.next_multiple_of(ALIGN) < end || (end == self.bytes.len() && self.tail + want <= end);
        fits.then(|| &mut self.bytes[self.tail..self.tail + want])
    }

    /// Keeps what was written to the beginning of the room asked for last.
    pub fn push(&mut self, len: usize, due: u64) {
        self.records.push_back(Record { due, at: self.tail, len });
        self.tail = (self.tail + len).next_multiple_of(ALIGN).min(self.bytes.len());
    }

    /// When the first is due.
    pub fn due(&self) -> Option<u64> {
        self.records.front().map(|record| record.due)
    }

    /// The packet that comes out next.
    pub fn first(&self) -> Option<&[u8]> {
        self.records.front().map(|record| &self.bytes[record.at..record.at + record.len])
    }

    /// Forgets the first.
    pub fn pop(&mut self) {
        self.records.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::chance::Chance;

    /// Against a plain queue: what goes in comes out, whole and in order, and a ring that is
    /// nearly empty takes everything.
    #[test]
    fn ring_gives_out_what_went_in() {
        for seed in 0..50 {
            let (mut chance, mut ring, mut model) = (Chance::new(seed), Ring::new(4096), VecDeque::new());
            let (mut refused, mut held) = (0, 0);
            for step in 0..5000_u64 {
                if chance.happens(0.55) {
                    let want = 1 + chance.below(1000) as usize;
                    let len = 1 + chance.below(want as u64) as usize;
                    let byte = step as u8;
                    let Some(room) = ring.room(want) else {
                        refused += 1;
                        assert!(held > 1000, "seed {seed}: {want} bytes were refused beside {held}");
                        continue;
                    };
                    room[..len].fill(byte);
                    ring.push(len, step);
                    model.push_back((step, vec![byte; len]));
                    held += len.next_multiple_of(ALIGN);
                } else if let Some((due, bytes)) = model.pop_front() {
                    assert_eq!((ring.due(), ring.first()), (Some(due), Some(&bytes[..])), "seed {seed}");
                    ring.pop();
                    held -= bytes.len().next_multiple_of(ALIGN);
                } else {
                    assert_eq!((ring.due(), ring.first()), (None, None));
                }
            }
            assert!(refused > 0, "seed {seed} never filled it");
        }
    }
}
