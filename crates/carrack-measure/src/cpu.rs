//! What the processors can do: digests, ciphers and memory, on one processor and on all, and so the rate that each
//! allows a copy on this host.

use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use crate::data;
use crate::error::Error;
use crate::facts;
use crate::residency;
use crate::result::{Measurement, Row, label, value};
use crate::workers::{self, Job, Operate};

/// Bytes that are worked on at a time: a block of a copy, which lies in the processor's cache.
const BLOCK: usize = 1 << 20;
/// What is copied in memory by each thread, and does not fit into the cache of one processor; less where all threads
/// together would take too much memory ([`copy_bytes`]).
const COPY: usize = 64 << 20;
/// Copied at a time.
const COPY_STEP: usize = 8 << 20;

/// One kind of work.
struct Work {
    name: &'static str,
    /// Makes what one thread does again and again; given its number, and the bytes that it copies in memory.
    make: fn(u64, usize) -> Operate<'static>,
}

const WORKS: &[Work] = &[
    Work { name: "blake3", make: |seed, _| digest(seed, |block| u64::from(blake3::hash(block).as_bytes()[0])) },
    Work { name: "xxh128", make: |seed, _| digest(seed, |block| twox_hash::XxHash3_128::oneshot(block) as u64) },
    Work { name: "crc32c", make: |seed, _| digest(seed, |block| u64::from(crc32c::crc32c(block))) },
    Work { name: "adler32", make: |seed, _| digest(seed, |block| u64::from(simd_adler32::adler32(&block))) },
    Work { name: "aes-128-gcm", make: |seed, _| seal(seed, &AES_128_GCM, None) },
    Work { name: "aes-256-gcm", make: |seed, _| seal(seed, &AES_256_GCM, None) },
    Work { name: "chacha20-poly1305", make: |seed, _| seal(seed, &CHACHA20_POLY1305, None) },
    Work {
        name: "blake3+aes-128-gcm",
        make: |seed, _| seal(seed, &AES_128_GCM, Some(|b| u64::from(blake3::hash(b).as_bytes()[0]))),
    },
    Work {
        name: "xxh128+aes-128-gcm",
        make: |seed, _| seal(seed, &AES_128_GCM, Some(|b| twox_hash::XxHash3_128::oneshot(b) as u64)),
    },
    Work { name: "memory-copy", make: |_, bytes| copy(bytes) },
    Work { name: "test-data", make: |seed, _| test_data(seed) },
];

/// A digest of a block.
type Digest = fn(&[u8]) -> u64;

fn block(seed: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    data::fill(seed, &mut block);
    block
}

fn digest(seed: u64, digest: Digest) -> Operate<'static> {
    let block = block(seed);
    Box::new(move |_| {
        std::hint::black_box(digest(std::hint::black_box(&block)));
        Ok(BLOCK as u64)
    })
}

/// Seals a block where it lies, after a digest of it was made, if there is one: what a sender does with each.
fn seal(seed: u64, algorithm: &'static Algorithm, digest: Option<Digest>) -> Operate<'static> {
    let mut block = block(seed);
    let key = UnboundKey::new(algorithm, &vec![7; algorithm.key_len()]).map(LessSafeKey::new);
    Box::new(move |at| {
        if let Some(digest) = digest {
            std::hint::black_box(digest(&block));
        }
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&at.to_le_bytes());
        let sealed = key
            .as_ref()
            .map(|key| key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut block));
        match sealed {
            Ok(Ok(_)) => Ok(BLOCK as u64),
            _ => Err(std::io::Error::other("the cipher refuses its key or its block")),
        }
    })
}

/// Bytes that each of so many threads copies in memory, in whole steps. Each has as many to copy from as to copy to.
///
/// # Errors
/// If all of them together would need too much of `memory` even so.
fn copy_bytes(threads: usize, memory: u64) -> Result<usize, Error> {
    let part = usize::try_from(memory / residency::MEMORY_PART / 2).unwrap_or(usize::MAX) / threads.max(1);
    match part.min(COPY) / COPY_STEP * COPY_STEP {
        0 => {
            let needed = (COPY_STEP * 2) as u64 * threads as u64;
            Err(Error::Memory { needed, memory })
        }
        bytes => Ok(bytes),
    }
}

fn copy(bytes: usize) -> Operate<'static> {
    let (from, mut to) = (vec![1u8; bytes], vec![2u8; bytes]);
    let mut at = 0;
    Box::new(move |_| {
        let range = at..at + COPY_STEP;
        to[range.clone()].copy_from_slice(&from[range]);
        std::hint::black_box(&mut to);
        at = (at + COPY_STEP) % bytes;
        Ok(COPY_STEP as u64)
    })
}

fn test_data(seed: u64) -> Operate<'static> {
    let mut records = data::Records::new(BLOCK, seed);
    Box::new(move |_| {
        std::hint::black_box(records.next_record());
        Ok(BLOCK as u64)
    })
}

/// Measures everything for `time` on one processor, then on all; tells each row when it is there.
///
/// # Errors
/// Being stopped, and too little memory for as many threads as there are processors.
pub fn measure(
    time: Duration,
    stop: &(dyn Fn() -> bool + Sync),
    tell: &mut dyn FnMut(&Row),
) -> Result<Measurement, Error> {
    let (begin, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let processors = carrack_sys::host::cpu_count();
    copy_bytes(processors, residency::memory_bytes())?;
    let mut rows = Vec::new();
    for work in WORKS {
        // One alone first; on a host with one processor that is all.
        let counts = if processors > 1 { vec![1, processors] } else { vec![1] };
        for threads in counts {
            let row = measure_one(work, threads, time, stop)?;
            tell(&row);
            rows.push(row);
        }
    }
    Ok(Measurement {
        kind: "cpu".to_owned(),
        target: "this host".to_owned(),
        started,
        elapsed: begin.elapsed(),
        settings: vec![("limit_seconds".to_owned(), time.as_secs_f64().to_string())],
        facts: facts::host().0,
        warnings: Vec::new(),
        rows,
    })
}

fn measure_one(work: &Work, threads: usize, time: Duration, stop: &(dyn Fn() -> bool + Sync)) -> Result<Row, Error> {
    let copied = copy_bytes(threads, residency::memory_bytes())?;
    let make = |_: usize, worker: usize| (work.make)(worker as u64, copied);
    let finish = |_: usize| Ok(());
    let job = Job {
        files: threads,
        depth: 1,
        operations: u64::MAX,
        claim: 1,
        limit: Some(time),
        rate: None,
        make: &make,
        finish: &finish,
        stop,
    };
    let done = workers::run(&job).map_err(Error::while_doing(work.name))?;
    if done.stopped {
        return Err(Error::Stopped);
    }
    let mut row = Row { name: work.name.to_owned(), ..Row::default() };
    // The number of processors is a fact of the host: a row of all of them is compared with one of all of them.
    let which = if threads == 1 { "one" } else { "all" };
    row.conditions.push(("processors".to_owned(), which.to_owned()));
    let seconds = done.elapsed.as_secs_f64();
    row.put(value::BYTES, done.bytes as f64);
    row.put(value::SECONDS, seconds);
    row.put(value::BYTES_PER_SECOND, done.bytes as f64 / seconds);
    row.put(value::PROCESSORS, done.usage.process);
    // Less than the threads asked for: others had a part of them.
    if done.usage.process < 0.9 * threads as f64 {
        row.labels.push(label::SHARED.to_owned());
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_is_measured_on_one_processor_and_on_all() {
        let mut told = 0;
        let measured = measure(Duration::from_millis(1), &|| false, &mut |_| told += 1).unwrap();
        let each = if carrack_sys::host::cpu_count() > 1 { 2 } else { 1 };
        assert_eq!((measured.rows.len(), told), (WORKS.len() * each, WORKS.len() * each));
        for row in &measured.rows {
            assert!(row.value(value::BYTES_PER_SECOND) > Some(0.0), "{row:?}");
        }
    }

    #[test]
    fn copies_of_all_threads_fit_into_a_quarter_of_memory() {
        for (threads, memory, expected) in
            [(1, 64 << 30, 64 << 20), (64, 64 << 30, 64 << 20), (256, 64 << 30, 32 << 20), (2, 128 << 20, 8 << 20)]
        {
            let bytes = copy_bytes(threads, memory).unwrap();
            assert_eq!(bytes, expected, "{threads} {memory}");
            assert!((bytes * 2 * threads) as u64 <= memory / 4);
        }
        let refused = copy_bytes(128, 1 << 30);
        assert!(matches!(refused, Err(Error::Memory { needed, .. }) if needed == 2 << 30), "{refused:?}");
    }

    #[test]
    fn stop_ends_the_measurement() {
        assert!(matches!(measure(Duration::from_secs(60), &|| true, &mut |_| {}), Err(Error::Stopped)));
    }
}
