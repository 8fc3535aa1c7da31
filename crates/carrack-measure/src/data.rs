//! Bytes to write that nothing on the way can make fewer: no file system or controller compresses or deduplicates them.
//!
//! Making each byte anew would take longer than writing it to memory. So a pool of random bytes is made once, and each
//! record is the next piece of it, with a number that was never used before in each of its 512-byte sectors. Within any
//! distance below the pool's size there is nothing that repeats, and no two sectors ever are the same.

use carrack_core::chance::{STEP, mixed};
use std::time::{Duration, Instant};

/// The smallest unit that storage could find twice.
const SECTOR: usize = 512;
/// What direct access asks of memory, on every device there is.
const ALIGNMENT: usize = 4096;
/// The pool of one worker, unless a record is larger: what a file system compresses at a time (128 KiB on Btrfs, at
/// most 1 MiB on ZFS unless it is told otherwise) has nothing that repeats, and the cache of one core has room for it.
/// A larger pool made writing to memory slower by a tenth.
const POOL: usize = 1 << 20;

/// Memory that direct access takes.
#[derive(Debug)]
pub struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// Zeros.
    pub fn new(len: usize) -> Self {
        let memory = vec![0; len + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { memory, start, len }
    }

    /// All of it.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Records to write, one after the other.
#[derive(Debug)]
pub struct Records {
    pool: Aligned,
    record: usize,
    at: usize,
    number: u64,
}

impl Records {
    /// Records of `record` bytes. Those of different workers differ if their seeds do.
    pub fn new(record: usize, seed: u64) -> Self {
        let mut pool = Aligned::new(Self::pool_bytes(record));
        fill(seed, pool.bytes());
        Self { pool, record, at: 0, number: mix(seed ^ 0x5eed) }
    }

    /// Memory that records of `record` bytes take, in bytes: at least one record, else as many as the pool has room
    /// for, so that all lie at offsets that direct access takes.
    pub fn pool_bytes(record: usize) -> usize {
        (POOL / record.max(1)).max(1).saturating_mul(record)
    }

    /// The next record.
    pub fn next_record(&mut self) -> &[u8] {
        let (start, end) = (self.at, self.at + self.record);
        self.at = if end + self.record <= self.pool.len { end } else { 0 };
        let record = &mut self.pool.bytes()[start..end];
        for sector in record.chunks_mut(SECTOR) {
            self.number = self.number.wrapping_add(1);
            let stamp = mix(self.number).to_le_bytes();
            let len = stamp.len().min(sector.len());
            sector[..len].copy_from_slice(&stamp[..len]);
        }
        record
    }
}

/// Fills memory with random bytes: SplitMix64.
pub fn fill(seed: u64, out: &mut [u8]) {
    let mut state = seed;
    for chunk in out.chunks_mut(8) {
        state = state.wrapping_add(STEP);
        let word = mixed(state).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// A number that looks random, another one for each number.
pub fn mix(number: u64) -> u64 {
    mixed(number.wrapping_add(STEP))
}

/// Bytes a second that one worker can make in records of this size, measured for `time`.
pub fn rate(record: usize, time: Duration) -> f64 {
    let mut records = Records::new(record, 1);
    let start = Instant::now();
    let mut bytes = 0u64;
    loop {
        // Some at a time: the clock takes as long as a small record.
        for _ in 0..64 {
            bytes += std::hint::black_box(records.next_record()).len() as u64;
        }
        let elapsed = start.elapsed();
        if elapsed >= time {
            return bytes as f64 / elapsed.as_secs_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_sectors_are_the_same() {
        for (record, seeds) in [(512, 2), (4096, 2), (1 << 20, 2), (6 << 20, 1)] {
            let mut seen = HashSet::new();
            let mut sectors = 0;
            for seed in 0..seeds {
                let mut records = Records::new(record, seed);
                for _ in 0..(12 << 20) / record {
                    for sector in records.next_record().chunks(SECTOR) {
                        sectors += 1;
                        seen.insert(blake3::hash(sector));
                    }
                }
            }
            assert_eq!(seen.len(), sectors, "{record}");
        }
    }

    #[test]
    fn nothing_repeats_within_a_pool() {
        // What LZ4, Zstandard and others look for: the same eight bytes a second time.
        let mut records = Records::new(4096, 3);
        let mut written = Vec::new();
        while written.len() < POOL {
            written.extend_from_slice(records.next_record());
        }
        let words: HashSet<&[u8]> = written.chunks_exact(8).collect();
        assert_eq!(words.len(), written.len() / 8);
        // Every byte value is about as frequent as any other: there is nothing for an entropy coder.
        let mut counts = [0u32; 256];
        written.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let expected = written.len() as f64 / 256.0;
        assert!(counts.iter().all(|count| (f64::from(*count) / expected - 1.0).abs() < 0.05), "{counts:?}");
    }

    #[test]
    fn memory_is_aligned_and_records_too() {
        let mut aligned = Aligned::new(1000);
        assert_eq!((aligned.bytes().as_ptr() as usize % ALIGNMENT, aligned.bytes().len()), (0, 1000));
        let mut records = Records::new(8192, 1);
        for _ in 0..300 {
            let record = records.next_record();
            assert_eq!((record.as_ptr() as usize % ALIGNMENT, record.len()), (0, 8192));
        }
    }
}
