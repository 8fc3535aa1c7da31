//! A destination over several sessions: what is taken up, what is started over, what is left behind.

mod digests;
mod directories;
mod known;
mod markers;
mod names;
mod parts;
mod referred;
mod stale;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::storage::write::EarlierItem;
use carrack_core::attributes::{Attributes, OtherAttributes, Time};
use carrack_core::limits::BLOCK_BYTES_MIN;
use carrack_core::request::{Digests, Verify};
use carrack_sys::dir::stat_file;

use super::*;
use crate::data::hasher::BlockHasher;
use crate::storage::posix::times::system_time;

const BLOCK: usize = BLOCK_BYTES_MIN as usize;
const BLAKE3: Digests = Digests::BLAKE3;

fn options() -> WriteOptions {
    WriteOptions::in_blocks(BLOCK_BYTES_MIN)
}

fn request() -> MarkerRequest {
    MarkerRequest { key: [5; 8], anew: false, made_top: false, partial: false }
}

/// A session into a directory, as the receiving end would begin it.
fn session(directory: &Path, request: MarkerRequest, durability: Durability) -> Tree {
    Tree::new(Dir::open_ambient(directory).unwrap(), false, Some(request), durability, &Arc::default()).unwrap()
}

fn begin(directory: &Path) -> Tree {
    session(directory, request(), Durability::Group)
}

/// The content of block `index` of a file.
fn block(index: u64) -> Vec<u8> {
    (0..BLOCK as u64).map(|place| (place * 7 + index * 13 + place / 251) as u8).collect()
}

fn digest(index: u64, whole: bool) -> BlockDigest {
    let mut hasher = BlockHasher::new(BLAKE3, index * BLOCK as u64);
    hasher.update(&block(index));
    hasher.finish(whole)
}

/// An offer of a file of four blocks.
fn offer(path: &str) -> NewFile<'_> {
    NewFile {
        path: path.as_bytes(),
        size: Some(4 * BLOCK as u64),
        attributes: Attributes::new(0o640, Time::new(500, 7)),
        sparse: false,
        fingerprint: Some([6; 16]),
    }
}

fn fresh(tree: &Tree, offer: &NewFile<'_>) -> PartFile {
    match tree.open_part(offer, &options(), true).unwrap() {
        OpenedPart::Fresh(part) => part,
        OpenedPart::Keep => panic!("kept"),
        OpenedPart::Resumed { held, .. } => panic!("resumed with {} blocks", held.len()),
        OpenedPart::Present(_) => panic!("present"),
    }
}

fn resumed(tree: &Tree, offer: &NewFile<'_>) -> (PartFile, Vec<(u64, BlockDigest)>, Vec<u64>) {
    match tree.open_part(offer, &options(), true).unwrap() {
        OpenedPart::Resumed { part, held, doubtful, .. } => (part, held, doubtful),
        OpenedPart::Fresh(_) => panic!("started over"),
        OpenedPart::Keep | OpenedPart::Present(_) => panic!("not opened"),
    }
}

/// A file that is written over, and the blocks that are looked at of it.
fn in_place(tree: &Tree, offered: &NewFile<'_>, options: &WriteOptions) -> (PartFile, std::ops::Range<u64>) {
    match tree.open_part(offered, options, true).unwrap() {
        OpenedPart::Resumed { part, standing, .. } => (part, standing),
        _ => panic!("not written in place"),
    }
}

fn write(part: &PartFile, indexes: &[u64]) {
    for &index in indexes {
        part.write(index * BLOCK as u64, &block(index)).unwrap();
    }
    let blocks: Vec<_> = indexes.iter().map(|&index| (index, digest(index, false))).collect();
    assert_eq!(part.checkpoint(&blocks, false).unwrap(), Vec::<u64>::new());
}

fn indexes(held: &[(u64, BlockDigest)]) -> Vec<u64> {
    assert!(held.iter().all(|(index, found)| *found == digest(*index, false)));
    held.iter().map(|block| block.0).collect()
}

fn hidden(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with('.')).collect();
    names.sort();
    names
}

fn marker(directory: &Path) -> std::path::PathBuf {
    directory.join(".carrack-0505050505050505.marker")
}

/// A session that brought blocks 0, 1 and 3 of one file and was cut off.
fn cut_off(directory: &Path) {
    let tree = begin(directory);
    let part = fresh(&tree, &offer("f"));
    write(&part, &[0, 1]);
    write(&part, &[3]);
    part.leave();
    tree.finish(false);
}

fn small<'a>(path: &'a str, content: &[u8]) -> SmallFile<'a> {
    let digests = FileDigests { blake3: Some(*blake3::hash(content).as_bytes()), ..FileDigests::default() };
    SmallFile {
        path: path.as_bytes(),
        attributes: Attributes::new(0o600, Time::new(300, 4)),
        fingerprint: Some([3; 16]),
        digests,
        read_back: false,
    }
}

fn put_small(tree: &Tree, path: &str, content: &[u8]) -> PartEntry {
    tree.write_small(&small(path, content), Existing::Replace, content).unwrap().unwrap()
}

/// None.
static NO_OTHERS: std::sync::LazyLock<OtherAttributes> = std::sync::LazyLock::new(OtherAttributes::default);

fn query(path: &str, kind: ItemKind) -> EarlierItem<'_> {
    EarlierItem {
        path: path.as_bytes(),
        kind,
        fingerprint: Some([3; 16]),
        mode: None,
        mtime: Some(Time::new(300, 4)),
        others: &NO_OTHERS,
        block_bytes: None,
    }
}

#[test]
fn synced_blocks_are_held_and_the_rest_is_not() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let left = hidden(directory.path());
    assert_eq!(left.len(), 2, "{left:?}");
    let tree = begin(directory.path());
    let (part, held, doubtful) = resumed(&tree, &offer("f"));
    assert_eq!((indexes(&held), doubtful), (vec![0, 1, 3], vec![]));
    write(&part, &[2]);
    part.finish(4 * BLOCK as u64).unwrap();
    part.publish(FileDigests::default()).unwrap();
    tree.finish(true);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
    let whole: Vec<u8> = (0..4).flat_map(block).collect();
    assert!(std::fs::read(directory.path().join("f")).unwrap() == whole);
    let metadata = directory.path().join("f").metadata().unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.mtime(), metadata.mtime_nsec()), (0o640, 500, 7));
}

#[test]
fn session_that_was_killed_leaves_as_much() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("d/f"));
    write(&part, &[2]);
    part.write(0, &block(0)).unwrap();
    // Nothing is left or finished: the process is gone.
    drop((part, tree));
    let tree = begin(directory.path());
    let (part, held, doubtful) = resumed(&tree, &offer("d/f"));
    // Who was killed could not say how it left it.
    assert_eq!((held, &doubtful[..]), (vec![], &[2][..]));
    assert_eq!(indexes(&part.rehash(&doubtful)), [2]);
}

#[test]
fn part_without_a_durable_block_does_not_stay() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    part.write(0, &block(0)).unwrap();
    part.leave();
    tree.finish(false);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}

#[test]
fn leftovers_that_nobody_asks_for_again_go_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    begin(directory.path()).finish(false);
    assert_eq!(hidden(directory.path()).len(), 2, "still of use");
    begin(directory.path()).finish(true);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}

/// Writes a marker anew as if another boot had written it.
fn set_boot(path: &Path) {
    use carrack_core::transfer::marker::{Chain, Record, SessionRecord, replay};
    let found = replay(&std::fs::read(path).unwrap(), carrack_sys::host::boot_id()).unwrap();
    let (mut bytes, mut chain) = Chain::begin(found.tag);
    let session = SessionRecord { boot: [0xee; 16], durability: Durability::Group };
    chain.append(&Record::Session(session), &mut bytes);
    for left in found.parts.values() {
        chain.append(&Record::Part(left.part.clone()), &mut bytes);
        for claim in left.claims() {
            let blocks = Record::Blocks { part: left.part.number, first: claim.index, digests: vec![claim.digest] };
            chain.append(&blocks, &mut bytes);
        }
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn published_items_are_known_while_they_stand() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let one = put_small(&tree, "one", b"1");
    let two = put_small(&tree, "two", b"2");
    let link = tree.write_link(&small("link", b""), Existing::Replace, b"nowhere").unwrap().unwrap();
    tree.sync_all().unwrap();
    for entry in [&one, &two, &link] {
        entry.publish().unwrap();
    }
    put_small(&tree, "three", b"3");
    tree.written_down();
    drop((one, two, link, tree));
    let tree = begin(directory.path());
    assert_eq!(tree.known_count(BLAKE3), 3);
    let digests = FileDigests { blake3: Some(*blake3::hash(b"1").as_bytes()), ..FileDigests::default() };
    let known = |item: EarlierItem<'_>| tree.known(&item, &options(), &|| false);
    assert_eq!(known(query("one", ItemKind::File)), Some(digests));
    assert!(known(query("link", ItemKind::Symlink)).is_some());
    for other in [
        query("one", ItemKind::Symlink),
        query("three", ItemKind::File),
        query("elsewhere/one", ItemKind::File),
        EarlierItem { fingerprint: Some([4; 16]), ..query("one", ItemKind::File) },
        EarlierItem { fingerprint: None, ..query("one", ItemKind::File) },
    ] {
        assert_eq!(known(other.clone()), None, "{other:?}");
    }
    // Another file in its place, of the same size and time.
    std::fs::write(directory.path().join("new"), "X").unwrap();
    let new = std::fs::File::options().write(true).open(directory.path().join("new")).unwrap();
    file::set_times(&new, system_time(Time::new(300, 4))).unwrap();
    std::fs::rename(directory.path().join("new"), directory.path().join("two")).unwrap();
    assert_eq!(known(query("two", ItemKind::File)), None);
    // Changed since.
    std::fs::write(directory.path().join("one"), "Y").unwrap();
    assert_eq!(known(query("one", ItemKind::File)), None);
}

#[test]
fn large_file_that_was_published_is_present() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    write(&part, &[0, 1, 2, 3]);
    let digests = FileDigests { blake3: Some([9; 32]), ..FileDigests::default() };
    part.finish(4 * BLOCK as u64).unwrap();
    part.publish(digests).unwrap();
    tree.finish(false);
    drop((part, tree));
    let tree = begin(directory.path());
    let opened = tree.open_part(&offer("f"), &options(), true).unwrap();
    assert!(matches!(opened, OpenedPart::Present(found) if found.digests == digests));
    let kept = WriteOptions { existing: Existing::Keep, ..options() };
    let recent = NewFile { fingerprint: None, ..offer("f") };
    assert!(matches!(tree.open_part(&recent, &kept, true).unwrap(), OpenedPart::Keep));
    drop(fresh(&tree, &recent));
}

#[test]
fn unsynced_files_count_until_the_next_boot_only() {
    let directory = tempfile::tempdir().unwrap();
    let tree = session(directory.path(), request(), Durability::None);
    assert_eq!(tree.sync_all(), Ok(false));
    put_small(&tree, "one", b"1").publish().unwrap();
    let part = fresh(&tree, &offer("f"));
    write(&part, &[0]);
    part.leave();
    tree.finish(false);
    drop((part, tree));
    let tree = begin(directory.path());
    assert!(tree.known(&query("one", ItemKind::File), &options(), &|| false).is_some());
    assert_eq!(indexes(&resumed(&tree, &offer("f")).1), [0]);
}

/// It turns out that syncing everything is slow while files have been written that count on it.
#[test]
fn sync_of_a_group_is_waited_for_whatever_is_decided_later() {
    let directory = tempfile::tempdir().unwrap();
    for durability in [Durability::Group, Durability::Each, Durability::None] {
        let tree = session(directory.path(), request(), durability);
        let write = |name: &str| tree.write_small(&small(name, b"1"), Existing::Replace, b"1").unwrap().unwrap();
        let before = write("before");
        tree.shared.sync_each.store(true, Ordering::Relaxed);
        let after = write("after");
        assert_eq!((before.awaits_sync(), after.awaits_sync()), (durability == Durability::Group, false));
        [before, after].iter().for_each(PartEntry::remove);
        tree.finish(true);
    }
}

#[test]
fn small_leftovers_are_replaced_and_twins_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let one = put_small(&tree, "f", b"1");
    let two = put_small(&tree, "f", b"2");
    assert_ne!(one.part.name, two.part.name);
    one.publish().unwrap();
    assert_eq!(std::fs::read(directory.path().join("f")).unwrap(), b"1");
    two.publish().unwrap();
    assert_eq!(std::fs::read(directory.path().join("f")).unwrap(), b"2");
    drop((one, two));
    let left = put_small(&tree, "f", b"left");
    drop((left, tree));
    assert_eq!(hidden(directory.path()).len(), 2);
    let tree = begin(directory.path());
    put_small(&tree, "f", b"3").publish().unwrap();
    assert_eq!(hidden(directory.path()).len(), 1);
    assert_eq!(std::fs::read(directory.path().join("f")).unwrap(), b"3");
}

#[test]
fn names_of_every_length_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let long = ["n".repeat(254) + "a", "n".repeat(254) + "b", "n".repeat(255)];
    let entries: Vec<PartEntry> = long.iter().map(|name| put_small(&tree, name, name.as_bytes())).collect();
    let parts: Vec<PartFile> =
        (0..3).map(|number| fresh(&tree, &offer(&format!("{}{number}", "m".repeat(254))))).collect();
    assert_eq!(hidden(directory.path()).len(), 7);
    for (entry, name) in entries.iter().zip(&long) {
        entry.publish().unwrap();
        assert_eq!(std::fs::read(directory.path().join(name)).unwrap(), name.as_bytes());
    }
    parts.iter().for_each(PartFile::leave);
    tree.finish(true);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}

/// A destination that takes upper and lower case for one. The file system here does not: the test
/// makes the second name itself.
fn folding(directory: &Path) -> Tree {
    use crate::storage::names::{FileSystemTraits, Sameness};
    let shown = FileSystemTraits { names: Sameness { case: true, forms: false }, is_split: false };
    let root = Dir::open_ambient(directory).unwrap();
    Tree::with(root, None, *b"0a1b2c3d", (Durability::Group, Arc::default()), Box::new(move |_| Some(shown))).unwrap()
}

#[test]
fn names_that_are_one_there_are_a_conflict_and_the_first_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("old"), "before").unwrap();
    let tree = folding(directory.path());
    tree.make_directory(b"d").unwrap();
    let late = put_small(&tree, "d/A", b"second");
    put_small(&tree, "d/a", b"first").publish().unwrap();
    std::fs::hard_link(path("d/a"), path("d/A")).unwrap();
    let conflict = late.publish().unwrap_err();
    assert_eq!(conflict.code, ErrorCode::AlreadyExists);
    assert!(conflict.message().contains("d/A") && conflict.message().contains("d/a,"), "{conflict:?}");
    let early = tree.write_small(&small("d/A", b"third"), Existing::Keep, b"third");
    assert_eq!(early.err().map(|failure| failure.code), Some(ErrorCode::AlreadyExists), "not kept: it is another item");
    assert_eq!(std::fs::read(path("d/a")).unwrap(), b"first");
    assert_eq!(std::fs::read_dir(path("d")).unwrap().count(), 2, "no part is left");
    // The same item again is none, nor is a file that was there before.
    put_small(&tree, "d/a", b"again").publish().unwrap();
    put_small(&tree, "old", b"after").publish().unwrap();
    assert_eq!(std::fs::read(path("old")).unwrap(), b"after");
}

#[test]
fn large_file_is_a_twin_too() {
    let directory = tempfile::tempdir().unwrap();
    let tree = folding(directory.path());
    put_small(&tree, "f", b"first").publish().unwrap();
    std::fs::hard_link(directory.path().join("f"), directory.path().join("F")).unwrap();
    let refused = tree.open_part(&offer("F"), &options(), true).err().unwrap();
    assert_eq!(refused.code, ErrorCode::AlreadyExists);
    assert_eq!(std::fs::read(directory.path().join("F")).unwrap(), b"first");
}

#[test]
fn calls_to_a_disk_that_hangs_are_told_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    let _entered = tree.shared.watch.enter("write", &part.path);
    assert_eq!(tree.stalled(Instant::now()), Vec::<String>::new());
    let told = tree.stalled(Instant::now() + Duration::from_secs(11));
    assert!(told.len() == 1 && told[0].starts_with("f: "), "{told:?}");
}

#[test]
fn sync_that_lost_something_keeps_it_lost() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    write(&part, &[0]);
    // As after an error of fdatasync: a second one would say that all is well.
    part.void.store(true, Ordering::Release);
    assert_eq!(part.checkpoint(&[(1, digest(1, false))], false).unwrap_err().code, ErrorCode::InputOutput);
    assert_eq!(part.finish(4 * BLOCK as u64).unwrap_err().code, ErrorCode::InputOutput);
    part.leave();
    tree.finish(false);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}

#[test]
fn hole_is_written_wherever_something_may_have_been() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let tree = begin(directory.path());
    let (part, held, _) = resumed(&tree, &offer("f"));
    assert_eq!(held.len(), 3);
    let stored = |index: u64| {
        let mut found = vec![1; BLOCK];
        assert_eq!(file::read_full_at(&part.file, &mut found, index * BLOCK as u64).unwrap(), BLOCK);
        found
    };
    for index in [1, 2] {
        part.write_hole(index * BLOCK as u64, BLOCK as u64).unwrap();
        assert!(stored(index) == vec![0; BLOCK], "block {index}");
    }
    assert!(stored(0) == block(0) && stored(3) == block(3));
    // Zeros among what is written are none where nothing was, and take the place of what was.
    let new = NewFile { sparse: true, ..offer("zeros") };
    let part = fresh(&tree, &new);
    let blocks = || stat_file(&part.file).unwrap().blocks_512;
    let mut some = vec![0; BLOCK];
    some[BLOCK / 2] = 1;
    part.write(0, &some).unwrap();
    let few = blocks();
    part.write(0, &block(3)).unwrap();
    assert!(blocks() > few, "{few}");
    part.write(0, &some).unwrap();
    let mut found = vec![1; BLOCK];
    assert_eq!(file::read_full_at(&part.file, &mut found, 0).unwrap(), BLOCK);
    assert!(found == some && blocks() == few, "{} of {few}", blocks());
    part.remove();
    // The same block twice in one session, with data first.
    let new = NewFile { sparse: true, ..offer("new") };
    let part = fresh(&tree, &new);
    part.write(2 * BLOCK as u64, &block(2)).unwrap();
    for index in 0..4 {
        part.write_hole(index * BLOCK as u64, BLOCK as u64).unwrap();
    }
    let mut found = vec![1; 4 * BLOCK];
    assert_eq!(file::read_full_at(&part.file, &mut found, 0).unwrap(), found.len());
    assert!(found.iter().all(|&byte| byte == 0));
    assert!(stat_file(&part.file).unwrap().blocks_512 * 512 < BLOCK as u64);
}
