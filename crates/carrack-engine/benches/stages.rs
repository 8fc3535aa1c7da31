//! What each stage that a byte passes through costs by itself, on one core: the floor of a copy is their sum.
//!
//!     cargo bench -p carrack-engine --bench stages
//!
//! All by slices, as streams handle them. GB/s are 10^9 bytes a second; CPU-seconds per GB are their reciprocal.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // No product.
#![allow(missing_docs)]

use std::fs::File;
use std::hint::black_box;
use std::path::Path;

use aws_lc_rs::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use carrack_core::request::Digests;
use carrack_core::tuning::SLICE_BYTES;
use carrack_engine::testing::data::hasher::BlockHasher;
use carrack_sys::file::{read_full_at, write_all_at};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};

/// Payload of a TLS record.
const RECORD_BYTES: usize = 16 << 10;
/// More than any cache of a core holds.
const FILE_SLICES: usize = (256 << 20) / SLICE_BYTES;

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 251) as u8).collect()
}

fn group<'a>(criterion: &'a mut Criterion, name: &str, length: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::BytesDecimal(length as u64));
    group
}

/// Of slices within a block, and of small files, each with a hasher of its own.
fn digest(criterion: &mut Criterion) {
    let kinds = [
        ("blake3", Digests::BLAKE3),
        ("xxh128", Digests::XXH128),
        ("crc32c", Digests { crc32c: true, ..Digests::NONE }),
        ("adler32", Digests { adler32: true, ..Digests::NONE }),
    ];
    let slice = bytes(SLICE_BYTES);
    let mut group = group(criterion, "digest", slice.len());
    for (name, digests) in kinds {
        // A subtree of BLAKE3 that no measurement comes to the end of.
        let mut hasher = BlockHasher::new(digests, 1 << 50);
        group.bench_function(name, |bencher| bencher.iter(|| hasher.update(black_box(&slice))));
        black_box(hasher.finish(false));
    }
    let file = &slice[..4096];
    group.throughput(Throughput::BytesDecimal(file.len() as u64));
    for (name, digests) in kinds {
        group.bench_function(format!("{name}, a file of 4 KiB"), |bencher| {
            bencher.iter(|| {
                let mut hasher = BlockHasher::new(digests, 0);
                hasher.update(black_box(file));
                hasher.finish(true)
            });
        });
    }
}

/// Records of a slice, sealed from one buffer into another and opened back.
fn cipher(criterion: &mut Criterion) {
    let plain = bytes(SLICE_BYTES);
    let mut group = group(criterion, "cipher", plain.len());
    let ciphers: [(&str, &'static Algorithm); 2] =
        [("AES-128-GCM", &AES_128_GCM), ("ChaCha20-Poly1305", &CHACHA20_POLY1305)];
    for (name, algorithm) in ciphers {
        let key = UnboundKey::new(algorithm, &bytes(algorithm.key_len())).expect("a key of its length");
        let key = LessSafeKey::new(key);
        // The same each time: nothing here is a secret.
        let nonce = || Nonce::assume_unique_for_key([7; 12]);
        let (mut sealed, mut tags) = (vec![0; SLICE_BYTES], vec![[0; 16]; SLICE_BYTES / RECORD_BYTES]);
        let mut seal = || {
            let records = plain.chunks(RECORD_BYTES).zip(sealed.chunks_mut(RECORD_BYTES)).zip(&mut tags);
            for ((plain, sealed), tag) in records {
                let done = key.seal_out_of_place_scatter(nonce(), Aad::empty(), black_box(plain), sealed, &[], tag);
                done.expect("a record of the right size");
            }
        };
        group.bench_function(format!("{name}, seal"), |bencher| bencher.iter(&mut seal));
        let mut opened = vec![0; SLICE_BYTES];
        let mut open = || {
            let records = sealed.chunks(RECORD_BYTES).zip(&tags).zip(opened.chunks_mut(RECORD_BYTES));
            for ((sealed, tag), opened) in records {
                let done = key.open_separate_gather(nonce(), Aad::empty(), black_box(sealed), tag, opened);
                done.expect("it was sealed so");
            }
        };
        group.bench_function(format!("{name}, open"), |bencher| bencher.iter(&mut open));
        assert!(opened == plain);
    }
}

fn copy(criterion: &mut Criterion) {
    let (from, mut to) = (bytes(SLICE_BYTES), vec![0; SLICE_BYTES]);
    let mut group = group(criterion, "copy", SLICE_BYTES);
    group.bench_function("memcpy, in cache", |bencher| bencher.iter(|| to.copy_from_slice(black_box(&from))));
    let many = bytes(FILE_SLICES * SLICE_BYTES);
    let mut slices = many.chunks(SLICE_BYTES).cycle();
    group.bench_function("memcpy, from memory", |bencher| {
        bencher.iter(|| slices.next().map(|slice| to.copy_from_slice(black_box(slice))));
    });
}

/// From and to the page cache, as tmpfs has nothing else.
fn storage(criterion: &mut Criterion) {
    let shm = Path::new("/dev/shm");
    let directory = tempfile::tempdir_in(if shm.is_dir() { shm } else { Path::new(".") }).expect("a directory");
    let made = File::options().create(true).truncate(true).read(true).write(true).open(directory.path().join("file"));
    let file = made.expect("a file");
    let mut slice = bytes(SLICE_BYTES);
    let mut place = 0;
    let mut next = || {
        place = (place + 1) % FILE_SLICES;
        (place * SLICE_BYTES) as u64
    };
    let mut group = group(criterion, "storage", SLICE_BYTES);
    group.bench_function("pwrite, new pages and their end", |bencher| {
        bencher.iter(|| {
            let offset = next();
            if offset == 0 {
                file.set_len(0).expect("room");
            }
            write_all_at(&file, black_box(&slice), offset).expect("room");
        });
    });
    (0..FILE_SLICES).for_each(|_| write_all_at(&file, &slice, next()).expect("room"));
    group.bench_function("pwrite, pages that are there", |bencher| {
        bencher.iter(|| write_all_at(&file, black_box(&slice), next()).expect("room"));
    });
    group.bench_function("pread", |bencher| {
        bencher.iter(|| read_full_at(&file, black_box(&mut slice), next()).expect("it is there"));
    });
}

criterion_group!(stages, digest, cipher, copy, storage);
criterion_main!(stages);
