//! Replay believes a prefix of what was written and nothing else, whatever became of the bytes.

use proptest::prelude::*;

use super::*;
use crate::digest::from_xxh128;

const TAG: Tag = *b"0123abcd";
const BOOT: [u8; 16] = [7; 16];
const OTHER_BOOT: [u8; 16] = [8; 16];
const ALL: Digests = Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 };

fn digest(seed: u64) -> BlockDigest {
    BlockDigest { main: *blake3::hash(&seed.to_le_bytes()).as_bytes(), adler32: seed as u32, crc32c: !seed as u32 }
}

fn session(boot: [u8; 16], durability: Durability) -> Record {
    Record::Session(SessionRecord { boot, durability })
}

fn part(number: u64, blocks: u64) -> PartRecord {
    let block_bytes = BLOCK_BYTES_MIN;
    PartRecord {
        number,
        path: format!("directory/file{number}").into_bytes(),
        part_name: format!(".file{number}.carrack-0123abcd-{number}.part").into_bytes(),
        size: blocks * u64::from(block_bytes) - 5,
        block_bytes,
        digests: ALL,
    }
}

fn blocks(part: u64, first: u64, count: u64) -> Record {
    Record::Blocks { part, first, digests: (first..first + count).map(|index| digest(part << 32 | index)).collect() }
}

fn published(seed: u64) -> Record {
    let item = |seed: u64| Published { key: key(seed), digests: digest(seed).as_file(ALL) };
    Record::Published(vec![item(seed), item(seed + 1)])
}

fn key(seed: u64) -> [u8; 16] {
    let path = seed.to_le_bytes();
    let item = PublishedItem { kind: ItemKind::File, path: &path, source: [1; 16], stored: [2; 16] };
    published_key(&item)
}

/// The records' bytes, and where each ends.
fn write(records: &[Record]) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut chain) = Chain::begin(TAG);
    let mut ends = vec![bytes.len()];
    for record in records {
        chain.append(record, &mut bytes);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn story() -> Vec<Record> {
    vec![
        session(BOOT, Durability::Group),
        Record::Part(part(1, 9)),
        Record::Part(part(2, 3)),
        blocks(1, 0, 4),
        published(10),
        blocks(1, 6, 2),
        blocks(2, 1, 2),
        Record::Dropped { part: 2 },
        Record::Left { part: 1, identity: [4; 16] },
        session(OTHER_BOOT, Durability::None),
        Record::Part(part(5, 2)),
        blocks(5, 0, 1),
        blocks(1, 3, 2),
        published(20),
        Record::Left { part: 5, identity: [5; 16] },
    ]
}

/// What the first so many records say, in this boot.
fn truth(records: &[Record], boot: [u8; 16]) -> Replayed {
    replay(&write(records).0, boot).unwrap()
}

#[test]
fn marker_written_is_read() {
    let found = truth(&story(), BOOT);
    assert_eq!((found.tag, found.damaged, found.last_part), (TAG, false, 5));
    assert_eq!(found.parts.keys().copied().collect::<Vec<_>>(), [1, 5]);
    let left = &found.parts[&1];
    assert_eq!((&left.part, left.identity), (&part(1, 9), None), "more was claimed after it was left");
    assert_eq!(found.parts[&5].identity, Some([5; 16]));
    let claims: Vec<(u64, bool)> = left.claims().iter().map(|claim| (claim.index, claim.sure)).collect();
    assert_eq!(claims, [(0, true), (1, true), (2, true), (3, false), (4, false), (6, true), (7, true)]);
    assert!(left.claims().iter().all(|claim| claim.digest == digest(1 << 32 | claim.index)));
    assert_eq!(found.known(&key(10), ALL), Some(digest(10).as_file(ALL)));
    // Nothing of the other boot was synced.
    assert_eq!((found.known(&key(20), ALL), found.known_count()), (None, 2));
    let there = truth(&story(), OTHER_BOOT);
    assert_eq!(there.known(&key(20), ALL), Some(digest(20).as_file(ALL)));
    assert!(there.known(&key(10), ALL).is_some(), "synced, whatever the boot");
    assert!(truth(&story(), [0; 16]).parts[&1].claims().iter().all(|claim| !claim.sure));
}

/// A later session publishes the same items anew; what it says of them counts. Claims of blocks stay: each has had a
/// sync of its own file.
#[test]
fn marker_believes_no_item_that_was_published_before_a_sync_failed() {
    let mut records = story();
    records.push(Record::Doubted);
    let found = truth(&records, OTHER_BOOT);
    assert_eq!((found.known_count(), found.damaged), (0, false));
    assert_eq!(found.parts, truth(&story(), OTHER_BOOT).parts);
    records.extend([session(BOOT, Durability::Group), published(20)]);
    let found = truth(&records, BOOT);
    assert_eq!(found.known(&key(20), ALL), Some(digest(20).as_file(ALL)));
    assert_eq!((found.known(&key(10), ALL), found.known_count()), (None, 2));
}

#[test]
fn marker_writing_goes_on_where_reading_ended() {
    let records = story();
    let (whole, ends) = write(&records);
    for cut in 0..records.len() {
        let found = replay(&whole[..ends[cut] + 3], BOOT).unwrap();
        assert_eq!((found.bytes, found.damaged), (ends[cut] as u64, true));
        let (mut bytes, mut chain) = (whole[..ends[cut]].to_vec(), found.chain);
        records[cut..].iter().for_each(|record| chain.append(record, &mut bytes));
        assert!(bytes == whole, "{cut}");
    }
}

#[test]
fn marker_in_pieces_of_any_size_says_the_same() {
    let (bytes, _) = write(&story());
    let whole = replay(&bytes, BOOT);
    for step in 1..60 {
        let (mut replay, mut start, mut end) = (Replay::new(BOOT), 0, 0);
        while end < bytes.len() {
            end = (end + step).min(bytes.len());
            start += replay.read(&bytes[start..end]).unwrap();
        }
        assert_eq!(replay.finish(end - start), whole, "{step}");
    }
}

#[test]
fn marker_truncated_anywhere_leaves_a_prefix() {
    let records = story();
    let (bytes, ends) = write(&records);
    for length in 0..bytes.len() {
        let found = replay(&bytes[..length], BOOT);
        let Some(whole) = ends.iter().rposition(|&end| end <= length) else {
            assert_eq!(found, None);
            continue;
        };
        let expected = Replayed { damaged: ends[whole] < length, ..truth(&records[..whole], BOOT) };
        assert_eq!(found, Some(expected), "{length}");
    }
}

#[test]
fn marker_with_any_flipped_bit_leaves_a_prefix() {
    let records = story();
    let (bytes, ends) = write(&records);
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            let found = replay(&flipped, BOOT);
            let Some(whole) = ends.iter().rposition(|&end| end <= place) else {
                assert_eq!(found, None);
                continue;
            };
            assert_eq!(found, Some(Replayed { damaged: true, ..truth(&records[..whole], BOOT) }), "{place} {bit}");
        }
    }
}

#[test]
fn marker_records_moved_or_left_out_do_not_count() {
    let records = story();
    let (bytes, ends) = write(&records);
    for from in 0..records.len() {
        let without = [&bytes[..ends[from]], &bytes[ends[from + 1]..]].concat();
        let found = replay(&without, BOOT).unwrap();
        let last = from + 1 == records.len();
        assert_eq!(found, Replayed { damaged: !last, ..truth(&records[..from], BOOT) }, "{from}");
        let doubled = [&bytes[..ends[from + 1]], &bytes[ends[from]..]].concat();
        let expected = Replayed { damaged: true, ..truth(&records[..=from], BOOT) };
        assert_eq!(replay(&doubled, BOOT), Some(expected), "{from}");
    }
}

#[test]
fn marker_ends_at_what_cannot_have_been_written() {
    let begin = session(BOOT, Durability::Group);
    let bad_parts = [
        PartRecord { path: b"../x".to_vec(), ..part(1, 2) },
        PartRecord { part_name: b"a/b".to_vec(), ..part(1, 2) },
        PartRecord { part_name: b"..".to_vec(), ..part(1, 2) },
        PartRecord { block_bytes: 3 << 16, ..part(1, 2) },
        PartRecord { block_bytes: 1 << 30, ..part(1, 2) },
        PartRecord { size: u64::MAX, ..part(1, 2) },
        PartRecord { number: 0, ..part(1, 2) },
    ];
    for bad in bad_parts {
        let found = replay(&write(&[begin.clone(), Record::Part(bad.clone())]).0, BOOT).unwrap();
        assert!(found.damaged && found.parts.is_empty(), "{bad:?}");
    }
    let good = Record::Part(part(1, 2));
    let far = Record::Blocks { part: 1, first: u64::MAX, digests: vec![digest(0)] };
    for bad in [blocks(1, 1, 2), far, blocks(2, 0, 1), good.clone()] {
        let found = replay(&write(&[begin.clone(), good.clone(), bad]).0, BOOT).unwrap();
        assert!(found.damaged && !found.parts[&1].has_claims());
    }
    assert!(replay(&write(&[good]).0, BOOT).unwrap().parts.is_empty(), "a part of no session");
    assert_eq!(replay(&Chain::begin(*b"../../ab").0, BOOT), None);
}

/// A part that is taken up with another digest gets its number when it is opened, and its record with its first claim.
#[test]
fn record_of_a_part_may_come_behind_those_of_later_numbers() {
    let taken_up = [part(3, 2), part(2, 2)].map(Record::Part);
    let records = [&[session(BOOT, Durability::Group)][..], &taken_up, &[blocks(2, 0, 1), blocks(3, 0, 1)]].concat();
    let found = truth(&records, BOOT);
    assert_eq!((found.damaged, found.last_part), (false, 3));
    assert!(found.parts[&2].has_claims() && found.parts[&3].has_claims());
}

#[test]
fn digests_that_were_not_computed_do_not_serve() {
    let only = Digests::BLAKE3;
    let item = Published { key: key(1), digests: digest(1).as_file(only) };
    let found = truth(&[session(BOOT, Durability::Group), Record::Published(vec![item])], BOOT);
    assert_eq!(found.known(&key(1), only), Some(digest(1).as_file(only)));
    assert_eq!(found.known(&key(1), ALL), None);
    assert_eq!(found.known(&key(2), only), None);
}

#[test]
fn xxh128_has_its_own_bit_and_nothing_behind_it() {
    const XXH128: Digests = Digests { crc32c: true, ..Digests::XXH128 };
    let short = BlockDigest { main: from_xxh128([5; 16]), adler32: 0, crc32c: 7 };
    let begin = session(BOOT, Durability::Group);
    let made = Record::Part(PartRecord { digests: XXH128, ..part(1, 2) });
    let claim = |main| Record::Blocks { part: 1, first: 0, digests: vec![BlockDigest { main, ..short }] };
    let names = Record::Published(vec![Published { key: key(1), digests: short.as_file(XXH128) }]);
    let found = truth(&[begin.clone(), made.clone(), claim(short.main), names], BOOT);
    assert_eq!((found.damaged, found.parts[&1].part.digests), (false, XXH128));
    assert_eq!(found.parts[&1].claims()[0].digest, short);
    assert_eq!(found.known(&key(1), XXH128), Some(short.as_file(XXH128)));
    assert_eq!(found.known(&key(1), Digests::BLAKE3), None);
    let taken_back = truth(&[begin.clone(), made.clone(), claim(short.main), claim(TAKEN_BACK)], BOOT);
    assert!(taken_back.parts[&1].claims().is_empty());
    // A BLAKE3 is none.
    let wrong = replay(&write(&[begin.clone(), made, claim([5; 32])]).0, BOOT).unwrap();
    assert!(wrong.damaged && !wrong.parts[&1].has_claims());
    // Neither both at once, nor a digest that there is not.
    for bits in [9, 11, 16, 24, 0xff] {
        let (mut bytes, mut chain) = Chain::begin(TAG);
        chain.append(&begin, &mut bytes);
        chain.append_raw(KIND_PUBLISHED, &[&key(1)[..], &[bits], &[0; BlockDigest::BYTES]].concat(), &mut bytes);
        let found = replay(&bytes, BOOT).unwrap();
        assert!(found.damaged && found.known_count() == 0, "{bits}");
    }
}

#[test]
fn marker_keeps_within_a_bound() {
    let size = limits::MARKER_BLOCKS as u64 + 1 + limits::HELD_BLOCKS as u64;
    let mut records = vec![session(BOOT, Durability::Group), Record::Part(part(1, size))];
    for first in (0..size).step_by(limits::HELD_BLOCKS) {
        let count = (size - first).min(limits::HELD_BLOCKS as u64) as usize;
        records.push(Record::Blocks { part: 1, first, digests: vec![digest(0); count] });
    }
    let found = truth(&records, BOOT);
    let kept: usize = found.parts[&1].runs.iter().map(|run| run.digests.len()).sum();
    assert!(!found.damaged && kept <= limits::MARKER_BLOCKS && kept > limits::MARKER_BLOCKS / 2);
    let many: Vec<Published> = (0..limits::KNOWN_ITEMS as u64 + 100)
        .map(|seed| Published { key: u128::from(seed).to_be_bytes(), digests: FileDigests::default() })
        .collect();
    let found = truth(&[session(BOOT, Durability::Group), Record::Published(many)], BOOT);
    assert_eq!((found.known_count(), found.damaged), (limits::KNOWN_ITEMS as u64, false));
}

#[test]
fn long_claims_are_cut_into_records() {
    let count = limits::HELD_BLOCKS as u64 + 7;
    let found = truth(&[session(BOOT, Durability::Group), Record::Part(part(1, count)), blocks(1, 0, count)], BOOT);
    let claims = found.parts[&1].claims();
    assert_eq!(claims.len() as u64, count);
    assert!(
        claims.iter().zip(0..).all(|(claim, index)| claim.index == index && claim.digest == digest(1 << 32 | index))
    );
}

#[test]
fn part_is_as_it_was_left_until_more_is_claimed_of_it() {
    let begin = session(BOOT, Durability::Group);
    let left = |part, byte| Record::Left { part, identity: [byte; 16] };
    let made = Record::Part(part(1, 9));
    let identity = |records: &[Record]| truth(records, BOOT).parts[&1].identity;
    let mut records = vec![begin.clone(), made, blocks(1, 0, 2)];
    assert_eq!(identity(&records), None, "killed");
    records.push(left(1, 1));
    assert_eq!(identity(&records), Some([1; 16]));
    records.push(begin);
    assert_eq!(identity(&records), Some([1; 16]));
    records.push(Record::Blocks { part: 1, first: 1, digests: vec![BlockDigest { main: TAKEN_BACK, ..digest(0) }] });
    assert_eq!(identity(&records), None, "written over");
    records.push(left(1, 2));
    assert_eq!(identity(&records), Some([2; 16]));
    // Of a part that is gone nothing is kept, and one that never was cannot be left.
    let gone = [&records[..], &[Record::Dropped { part: 1 }, left(1, 3)]].concat();
    assert!(!truth(&gone, BOOT).damaged);
    let never = replay(&write(&[&records[..], &[left(2, 3)]].concat()).0, BOOT).unwrap();
    assert!(never.damaged && never.parts[&1].identity == Some([2; 16]));
}

#[test]
fn published_key_tells_every_part_of_an_item_apart() {
    let item = PublishedItem { kind: ItemKind::File, path: b"a", source: [1; 16], stored: [2; 16] };
    let others = [
        PublishedItem { kind: ItemKind::Symlink, ..item },
        PublishedItem { path: b"b", ..item },
        PublishedItem { source: [3; 16], ..item },
        PublishedItem { stored: [3; 16], ..item },
        PublishedItem { source: [2; 16], stored: [1; 16], ..item },
    ];
    assert_eq!(published_key(&item), published_key(&item.clone()));
    assert!(others.iter().all(|other| published_key(other) != published_key(&item)));
}

proptest! {
    #[test]
    fn marker_of_any_story_survives_any_damage(
        steps in proptest::collection::vec((0u8..7, 0u64..40, 1u64..9), 0..60),
        cut in any::<proptest::sample::Index>(),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), 1u8..), 0..3),
    ) {
        let mut records = vec![session(BOOT, Durability::Group)];
        let mut parts = Vec::new();
        for (step, a, b) in steps {
            match step {
                0 => records.push(session(if a % 2 == 0 { BOOT } else { OTHER_BOOT }, Durability::Each)),
                1 => {
                    parts.push(parts.len() as u64 + 1);
                    records.push(Record::Part(part(parts.len() as u64, 50)));
                }
                2 | 3 if !parts.is_empty() => records.push(blocks(parts[a as usize % parts.len()], a, b)),
                4 => records.push(published(a)),
                5 if !parts.is_empty() => {
                    let gone = parts[a as usize % parts.len()];
                    records.push(Record::Dropped { part: gone });
                }
                6 if !parts.is_empty() => {
                    let identity = [b as u8; 16];
                    records.push(Record::Left { part: parts[a as usize % parts.len()], identity });
                }
                _ => {}
            }
        }
        let (bytes, ends) = write(&records);
        let length = cut.index(bytes.len() + 1);
        let mut damaged = bytes[..length].to_vec();
        let mut first = length;
        for (place, flip) in flips.iter().filter(|_| length > 0) {
            damaged[place.index(length)] ^= flip;
        }
        first = damaged.iter().zip(&bytes).position(|(a, b)| a != b).unwrap_or(first);
        let found = replay(&damaged, BOOT);
        let whole = ends.iter().rposition(|&end| end <= first);
        let told = |count: usize| truth(&records[..count], BOOT);
        match (found, whole) {
            (Some(found), Some(whole)) => {
                // A story may itself end early: blocks of a part that was dropped are nothing that was written.
                let expected = told(whole);
                prop_assert_eq!((found.bytes, found.parts, found.known), (expected.bytes, expected.parts, expected.known));
            }
            (found, whole) => prop_assert!(found.is_none() && whole.is_none(), "{found:?} {whole:?}"),
        }
    }

    #[test]
    fn marker_of_any_bytes_is_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000), boot in any::<[u8; 16]>()) {
        let (header, _) = Chain::begin(TAG);
        let _ = replay(&bytes, boot);
        let found = replay(&[header, bytes].concat(), boot).unwrap();
        prop_assert!(found.parts.is_empty() && found.known_count() == 0);
    }
}
