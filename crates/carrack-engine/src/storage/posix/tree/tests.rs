//! A destination over several sessions: what is taken up, what is started over, what is left behind.

mod directories;
mod known;
mod names;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::storage::write::EarlierItem;
use carrack_core::attributes::{Attributes, OtherAttributes, Time};
use carrack_core::limits::BLOCK_BYTES_MIN;
use carrack_core::request::Verify;

use super::*;
use crate::data::hasher::BlockHasher;

const BLOCK: usize = BLOCK_BYTES_MIN as usize;
const BLAKE3: Digests = Digests::BLAKE3;

fn options() -> WriteOptions {
    WriteOptions {
        block_bytes: BLOCK_BYTES_MIN,
        digests: BLAKE3,
        verify: Verify::Wire,
        existing: Existing::Replace,
        durability: Durability::Group,
    }
}

fn request() -> MarkerRequest {
    MarkerRequest { key: [5; 8], anew: false }
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
        OpenedPart::Resumed { part, held, doubtful } => (part, held, doubtful),
        OpenedPart::Fresh(_) => panic!("started over"),
        OpenedPart::Keep | OpenedPart::Present(_) => panic!("not opened"),
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

/// Whatever has become of the source, each block is compared with what it has now; only another size
/// leaves nothing to compare.
#[test]
fn part_is_taken_up_for_a_source_of_its_size_and_no_other() {
    let timeless = Attributes { mode: 0o640, ..Attributes::default() };
    let same: [(&str, NewFile<'_>); 4] = [
        ("the same", offer("f")),
        ("mtime", NewFile { attributes: Attributes::new(0o640, Time::new(500, 6)), ..offer("f") }),
        ("fingerprint", NewFile { fingerprint: Some([7; 16]), ..offer("f") }),
        ("nothing to know it by", NewFile { attributes: timeless, fingerprint: None, ..offer("f") }),
    ];
    for (what, same) in same {
        let directory = tempfile::tempdir().unwrap();
        cut_off(directory.path());
        let (_, held, doubtful) = resumed(&begin(directory.path()), &same);
        assert_eq!((indexes(&held), doubtful), (vec![0, 1, 3], vec![]), "{what}");
    }
    let others: [(&str, NewFile<'_>); 2] = [
        ("size", NewFile { size: Some(5 * BLOCK as u64), ..offer("f") }),
        ("no size", NewFile { size: None, ..offer("f") }),
    ];
    for (what, other) in others {
        let directory = tempfile::tempdir().unwrap();
        cut_off(directory.path());
        let tree = begin(directory.path());
        drop(fresh(&tree, &other));
        assert_eq!(hidden(directory.path()).len(), 2, "{what}: {:?}", hidden(directory.path()));
    }
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let tree = begin(directory.path());
    let blocks = WriteOptions { block_bytes: 2 * BLOCK_BYTES_MIN, ..options() };
    assert!(matches!(tree.open_part(&offer("f"), &blocks, true).unwrap(), OpenedPart::Fresh(_)));
}

/// The part file that a session left in a directory.
fn left_part(directory: &Path) -> std::path::PathBuf {
    directory.join(hidden(directory).into_iter().find(|name| name.ends_with(".part")).unwrap())
}

/// Whatever is done to a part file after its session, its blocks are digested as they are then.
#[test]
fn part_that_was_altered_since_it_was_left_is_read_again() {
    type Change = fn(&Path);
    let open = |part: &Path| std::fs::File::options().write(true).open(part).unwrap();
    let changes: [(&str, Change); 4] = [
        ("a byte", |part| {
            file::write_all_at(&std::fs::File::options().write(true).open(part).unwrap(), b"!", 7).unwrap()
        }),
        ("a byte, and the time put back", |part| {
            let times = std::fs::metadata(part).unwrap().modified().unwrap();
            let file = std::fs::File::options().write(true).open(part).unwrap();
            // However coarse the clock is, it goes on.
            let before = stat_file(&file).unwrap().ctime;
            while stat_file(&file).unwrap().ctime == before {
                file::write_all_at(&file, b"!", 7).unwrap();
                file.set_modified(times).unwrap();
            }
        }),
        ("cut and filled with a hole", |part| {
            let file = std::fs::File::options().write(true).open(part).unwrap();
            file.set_len(5).unwrap();
            file.set_len(4 * BLOCK as u64).unwrap();
        }),
        ("another file in its place", |part| {
            let mut content = std::fs::read(part).unwrap();
            content[7] = b'!';
            let times = std::fs::metadata(part).unwrap().modified().unwrap();
            let other = part.with_file_name("other");
            std::fs::write(&other, content).unwrap();
            std::fs::File::options().write(true).open(&other).unwrap().set_modified(times).unwrap();
            std::fs::rename(&other, part).unwrap();
        }),
    ];
    for (what, change) in changes {
        let directory = tempfile::tempdir().unwrap();
        cut_off(directory.path());
        let part = left_part(directory.path());
        assert!(open(&part).metadata().unwrap().len() == 4 * BLOCK as u64);
        change(&part);
        let (part, held, doubtful) = resumed(&begin(directory.path()), &offer("f"));
        assert_eq!((held, &doubtful[..]), (vec![], &[0, 1, 3][..]), "{what}");
        let found = part.rehash(&doubtful);
        assert!(found.iter().any(|(index, _)| *index == 0), "{what}");
        assert!(!found.contains(&(0, digest(0, false))), "{what}: told as it is, not as it was claimed");
    }
}

/// A destination that was copied, marker and part files together.
#[test]
fn part_that_was_copied_elsewhere_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let copy = tempfile::tempdir().unwrap();
    for name in hidden(directory.path()) {
        let (from, to) = (directory.path().join(&name), copy.path().join(&name));
        std::fs::copy(&from, &to).unwrap();
        let times = std::fs::metadata(&from).unwrap().modified().unwrap();
        std::fs::File::options().write(true).open(&to).unwrap().set_modified(times).unwrap();
    }
    let (_, held, doubtful) = resumed(&begin(copy.path()), &offer("f"));
    assert_eq!((held, doubtful), (vec![], vec![0, 1, 3]));
    assert_eq!(indexes(&resumed(&begin(directory.path()), &offer("f")).1), [0, 1, 3]);
}

/// A write through a mapping moves no time there.
#[test]
fn part_in_memory_is_always_read_again() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
    cut_off(directory.path());
    let (part, held, doubtful) = resumed(&begin(directory.path()), &offer("f"));
    assert_eq!((held, &doubtful[..]), (vec![], &[0, 1, 3][..]));
    assert_eq!(indexes(&part.rehash(&doubtful)), [0, 1, 3]);
}

#[test]
fn file_without_a_time_does_not_get_that_of_a_part_that_was_left() {
    let directory = tempfile::tempdir().unwrap();
    let synthetic = NewFile { attributes: Attributes { mode: 0o640, ..Attributes::default() }, ..offer("zeros") };
    let tree = begin(directory.path());
    let part = fresh(&tree, &synthetic);
    write(&part, &[0, 1, 2, 3]);
    part.leave();
    tree.finish(false);
    let tree = begin(directory.path());
    let (part, held, _) = resumed(&tree, &synthetic);
    assert_eq!(indexes(&held), [0, 1, 2, 3]);
    part.finish(4 * BLOCK as u64).unwrap();
    part.publish(FileDigests::default()).unwrap();
    let now = carrack_sys::host::clock_seconds();
    assert!(directory.path().join("zeros").metadata().unwrap().mtime() > now - 1000);
}

#[test]
fn blocks_of_another_boot_or_other_digests_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    set_boot(&marker(directory.path()));
    // One of them was lost on the way down.
    let part = hidden(directory.path()).into_iter().find(|name| name.ends_with(".part")).unwrap();
    let file = std::fs::File::options().write(true).open(directory.path().join(part)).unwrap();
    file::write_all_at(&file, &[0; 100], BLOCK as u64).unwrap();
    let tree = begin(directory.path());
    let (part, held, doubtful) = resumed(&tree, &offer("f"));
    assert_eq!((held, doubtful.clone()), (vec![], vec![0, 1, 3]));
    let found = part.rehash(&doubtful);
    let ours: Vec<bool> = found.iter().map(|(index, found)| *found == digest(*index, false)).collect();
    assert_eq!(ours, [true, false, true], "told as it is, not as it was claimed");
    part.leave();
    tree.finish(false);
    // What was read in this boot is sure from now on.
    let tree = begin(directory.path());
    let (_, held, doubtful) = resumed(&tree, &offer("f"));
    assert_eq!((held, doubtful), (found, vec![]));
    drop(tree);
    let tree = begin(directory.path());
    let more = WriteOptions { digests: Digests { crc32c: true, ..BLAKE3 }, ..options() };
    let OpenedPart::Resumed { held, doubtful, .. } = tree.open_part(&offer("f"), &more, true).unwrap() else {
        panic!()
    };
    assert_eq!((held, doubtful), (vec![], vec![0, 1, 3]));
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
fn damaged_marker_has_what_has_data_read_again() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let mut bytes = std::fs::read(marker(directory.path())).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(marker(directory.path()), bytes).unwrap();
    let tree = begin(directory.path());
    let (part, held, doubtful) = resumed(&tree, &offer("f"));
    // What was claimed before the damage may have been taken back behind it.
    assert!(held.is_empty() && [0, 1, 3].iter().all(|index| doubtful.contains(index)), "{held:?} {doubtful:?}");
    let found = part.rehash(&doubtful);
    assert!(found.contains(&(0, digest(0, false))) && found.contains(&(3, digest(3, false))));
}

#[test]
fn marker_that_is_cut_off_anywhere_resumes_with_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let bytes = std::fs::read(marker(directory.path())).unwrap();
    for length in (0..bytes.len()).step_by(7) {
        let copy = tempfile::tempdir().unwrap();
        for name in hidden(directory.path()) {
            std::fs::copy(directory.path().join(&name), copy.path().join(&name)).unwrap();
        }
        std::fs::write(marker(copy.path()), &bytes[..length]).unwrap();
        let tree = begin(copy.path());
        match tree.open_part(&offer("f"), &options(), true).unwrap() {
            OpenedPart::Fresh(_) => {}
            OpenedPart::Resumed { part, held, doubtful } => {
                indexes(&held);
                let found = part.rehash(&doubtful);
                assert!(found.iter().all(|(index, found)| *index == 2 || *found == digest(*index, false)), "{length}");
            }
            OpenedPart::Keep | OpenedPart::Present(_) => panic!("{length}"),
        }
    }
}

#[test]
fn part_that_is_not_what_was_left_is_not_taken_up() {
    type Swap = fn(&Path);
    let swaps: [(&str, Swap); 4] = [
        ("gone", |part| std::fs::remove_file(part).unwrap()),
        ("a link", |part| {
            let other = part.with_file_name("other");
            std::fs::rename(part, &other).unwrap();
            std::os::unix::fs::symlink("other", part).unwrap();
        }),
        ("another name of a file", |part| std::fs::hard_link(part, part.with_file_name("other")).unwrap()),
        ("longer", |part| std::fs::File::options().write(true).open(part).unwrap().set_len(1 << 30).unwrap()),
    ];
    for (what, swap) in swaps {
        let directory = tempfile::tempdir().unwrap();
        cut_off(directory.path());
        let part = hidden(directory.path()).into_iter().find(|name| name.ends_with(".part")).unwrap();
        swap(&directory.path().join(part));
        let tree = begin(directory.path());
        write(&fresh(&tree, &offer("f")), &[0]);
        assert_eq!(hidden(directory.path()).len(), 2, "{what}");
    }
}

#[test]
fn marker_gets_no_other_file_removed() {
    use carrack_core::transfer::marker::{Chain, PartRecord, Record, SessionRecord};
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("precious"), "kept").unwrap();
    std::fs::write(directory.path().join(".precious.carrack-ffffffff-1.part"), "kept").unwrap();
    let (mut bytes, mut chain) = Chain::begin(*b"00000000");
    let session = SessionRecord { boot: [0; 16], durability: Durability::Group };
    chain.append(&Record::Session(session), &mut bytes);
    for (number, name) in [(1, "precious"), (2, ".precious.carrack-ffffffff-1.part")] {
        chain.append(
            &Record::Part(PartRecord {
                number,
                path: b"f".to_vec(),
                part_name: name.as_bytes().to_vec(),
                size: 4 * BLOCK as u64,
                block_bytes: BLOCK_BYTES_MIN,
                digests: BLAKE3,
            }),
            &mut bytes,
        );
        chain.append(&Record::Blocks { part: number, first: 0, digests: vec![digest(0, false)] }, &mut bytes);
    }
    std::fs::write(marker(directory.path()), &bytes).unwrap();
    let tree = begin(directory.path());
    drop(fresh(&tree, &offer("f")));
    tree.finish(true);
    assert_eq!(std::fs::read(directory.path().join("precious")).unwrap(), b"kept");
    assert!(directory.path().join(".precious.carrack-ffffffff-1.part").exists());
}

#[test]
fn anew_removes_all_that_was_left_under_the_key() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let anew = MarkerRequest { anew: true, ..request() };
    let tree = session(directory.path(), anew, Durability::Group);
    assert_eq!((tree.known_count(BLAKE3), hidden(directory.path()).len()), (0, 1));
    drop(fresh(&tree, &offer("f")));
}

#[test]
fn marker_is_not_shared_by_two_runs_of_one_copy() {
    let directory = tempfile::tempdir().unwrap();
    let one = begin(directory.path());
    let first = fresh(&one, &offer("f"));
    let impatient = Tuning { marker_lock_patience: Duration::from_millis(50), ..Tuning::DEFAULT };
    let root = Dir::open_ambient(directory.path()).unwrap();
    let two = Tree::new(root, false, Some(request()), Durability::Group, &Arc::new(impatient)).unwrap();
    let second = fresh(&two, &offer("f"));
    write(&first, &[0]);
    write(&second, &[1]);
    assert_eq!(hidden(directory.path()).len(), 4);
    assert_ne!(first.entry.part.name, second.entry.part.name);
    first.leave();
    one.finish(false);
    second.remove();
    two.finish(false);
    assert_eq!(hidden(directory.path()).len(), 2);
    assert_eq!(indexes(&resumed(&begin(directory.path()), &offer("f")).1), [0]);
}

#[test]
fn marker_lock_is_free_as_soon_as_its_session_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let one = begin(directory.path());
    write(&fresh(&one, &offer("f")), &[0]);
    let waiting = std::thread::spawn({
        let path = directory.path().to_path_buf();
        move || resumed(&begin(&path), &offer("f")).2
    });
    drop(one);
    assert_eq!(waiting.join().unwrap(), [0]);
    let held = hidden(directory.path());
    assert!(held.iter().all(|name| !name.contains("-2.marker")), "{held:?}");
}

#[test]
fn part_file_that_somebody_holds_is_not_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    let one = begin(directory.path());
    let part = fresh(&one, &offer("f"));
    write(&part, &[0]);
    let name = part.entry.part.name.clone();
    part.leave();
    drop(part);
    one.finish(false);
    let left = Dir::open_ambient(directory.path()).unwrap().open_existing(&name).unwrap();
    left.set_len(BLOCK as u64).unwrap();
    assert!(file::try_lock(&left).unwrap());
    let again = fresh(&begin(directory.path()), &offer("f"));
    assert_ne!(again.entry.part.name, name);
    assert_eq!(left.metadata().unwrap().len(), BLOCK as u64, "what another holds has been changed");
}

#[test]
fn marker_that_somebody_else_may_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    std::fs::set_permissions(marker(directory.path()), std::fs::Permissions::from_mode(0o666)).unwrap();
    drop(fresh(&begin(directory.path()), &offer("f")));
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

/// A run that goes on with another digest trusts nothing that it cannot compare.
#[test]
fn digest_of_another_kind_has_blocks_read_again_or_come_again() {
    let xxh128 = WriteOptions { digests: Digests::XXH128, ..options() };
    let of = |digests: Digests, index: u64| {
        let mut hasher = BlockHasher::new(digests, index * BLOCK as u64);
        hasher.update(&block(index));
        (index, hasher.finish(false))
    };
    for (first, second) in [(&options(), &xxh128), (&xxh128, &options())] {
        let directory = tempfile::tempdir().unwrap();
        let tree = begin(directory.path());
        let OpenedPart::Fresh(part) = tree.open_part(&offer("f"), first, true).unwrap() else { panic!() };
        [0, 2].iter().for_each(|&index| part.write(index * BLOCK as u64, &block(index)).unwrap());
        let blocks = [0, 2].map(|index| of(first.digests, index));
        assert_eq!(part.checkpoint(&blocks, true).unwrap(), Vec::<u64>::new());
        let mut hasher = BlockHasher::new(first.digests, 0);
        hasher.update(b"1");
        let digests = hasher.finish(true).as_file(first.digests);
        let whole = SmallFile { digests, read_back: true, ..small("one", b"1") };
        let entry = tree.write_small(&whole, Existing::Replace, b"1").unwrap().unwrap();
        tree.sync_all().unwrap();
        entry.verify().unwrap();
        entry.publish().unwrap();
        part.leave();
        tree.finish(false);
        drop((entry, part, tree));
        let tree = begin(directory.path());
        assert_eq!(tree.known(&query("one", ItemKind::File), second, &|| false), None);
        assert_eq!(tree.known(&query("one", ItemKind::File), first, &|| false), Some(digests));
        let opened = tree.open_part(&offer("f"), second, true).unwrap();
        let OpenedPart::Resumed { part, held, doubtful } = opened else { panic!() };
        assert_eq!((held, &doubtful[..]), (vec![], &[0, 2][..]));
        assert_eq!(part.rehash(&doubtful), [0, 2].map(|index| of(second.digests, index)));
        part.leave();
        tree.finish(false);
        drop((part, tree));
        // What was claimed since is believed, and so is what has got its name.
        let tree = begin(directory.path());
        assert_eq!(tree.known(&query("one", ItemKind::File), first, &|| false), Some(digests));
        let OpenedPart::Resumed { part, held, doubtful } = tree.open_part(&offer("f"), second, true).unwrap() else {
            panic!()
        };
        assert_eq!((&held[..], doubtful), (&[0, 2].map(|index| of(second.digests, index))[..], vec![]));
        part.leave();
        tree.finish(false);
        drop((part, tree));
        // A run that only looked with the other one again, and ended before anything was
        // digested, has taken nothing away.
        let tree = begin(directory.path());
        let OpenedPart::Resumed { part, doubtful, .. } = tree.open_part(&offer("f"), first, true).unwrap() else {
            panic!()
        };
        assert_eq!(doubtful, [0, 2]);
        part.leave();
        tree.finish(false);
        drop((part, tree));
        let tree = begin(directory.path());
        let OpenedPart::Resumed { part, held, .. } = tree.open_part(&offer("f"), second, true).unwrap() else {
            panic!()
        };
        assert_eq!(held.len(), 2);
        part.leave();
        tree.finish(false);
        drop((part, tree));
        // And without any digest nothing of it is taken up.
        let none = WriteOptions { digests: Digests::NONE, ..options() };
        let tree = begin(directory.path());
        assert!(matches!(tree.open_part(&offer("f"), &none, true).unwrap(), OpenedPart::Fresh(_)));
    }
}

#[test]
fn xxh128_finds_what_rots() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let xxh128 = WriteOptions { digests: Digests::XXH128, ..options() };
    let OpenedPart::Fresh(part) = tree.open_part(&offer("f"), &xxh128, true).unwrap() else { panic!() };
    [0, 1].iter().for_each(|&index| part.write(index * BLOCK as u64, &block(index)).unwrap());
    let blocks = [0, 1].map(|index| {
        let mut hasher = BlockHasher::new(Digests::XXH128, index * BLOCK as u64);
        hasher.update(&block(index));
        (index, hasher.finish(false))
    });
    part.write(BLOCK as u64 + 5, b"other").unwrap();
    assert_eq!(part.checkpoint(&blocks, true).unwrap(), [1]);
    let digests = FileDigests { xxh128: Some([7; 16]), ..FileDigests::default() };
    let file = SmallFile { digests, read_back: true, ..small("one", b"1") };
    let entry = tree.write_small(&file, Existing::Replace, b"1").unwrap().unwrap();
    tree.sync_all().unwrap();
    assert_eq!(entry.verify().map_err(|failure| failure.code), Err(ErrorCode::DigestMismatch));
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

#[test]
fn rotten_blocks_are_told_and_not_claimed() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    for index in [0, 1] {
        part.write(index * BLOCK as u64, &block(index)).unwrap();
    }
    part.write(BLOCK as u64 + 5, b"other").unwrap();
    let blocks = [(0, digest(0, false)), (1, digest(1, false))];
    assert_eq!(part.checkpoint(&blocks, true).unwrap(), [1]);
    part.leave();
    tree.finish(false);
    assert_eq!(indexes(&resumed(&begin(directory.path()), &offer("f")).1), [0]);
}

/// A claim that is trusted in the next session must be true of the part file.
#[test]
fn claim_is_taken_back_when_its_block_rots_or_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    write(&part, &[0, 1, 2]);
    let blocks = [0, 1, 2].map(|index| (index, digest(index, false)));
    assert_eq!(part.checkpoint(&blocks, false).unwrap(), Vec::<u64>::new());
    part.leave();
    tree.finish(false);
    drop((part, tree));
    let tree = begin(directory.path());
    let (part, held, _) = resumed(&tree, &offer("f"));
    assert_eq!(indexes(&held), [0, 1, 2]);
    part.write(BLOCK as u64 + 5, b"other").unwrap();
    assert_eq!(part.checkpoint(&blocks, true).unwrap(), [1]);
    part.unclaim(2);
    part.leave();
    tree.finish(false);
    drop((part, tree));
    assert_eq!(indexes(&resumed(&begin(directory.path()), &offer("f")).1), [0]);
}

#[test]
fn small_file_is_read_back_before_it_gets_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    for (content, written, good) in [(b"same", b"same", true), (b"what", b"else", false)] {
        let file = SmallFile { read_back: true, ..small("f", content) };
        let entry = tree.write_small(&file, Existing::Replace, written).unwrap().unwrap();
        tree.sync_all().unwrap();
        assert_eq!(
            entry.verify().map_err(|failure| failure.code),
            if good { Ok(()) } else { Err(ErrorCode::DigestMismatch) }
        );
        entry.remove();
    }
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
    let tree = begin(directory.path());
    assert_eq!(hidden(directory.path()).len(), 2);
    put_small(&tree, "f", b"3").publish().unwrap();
    assert_eq!(hidden(directory.path()).len(), 1, "the leftover has become the file");
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

#[test]
fn directory_that_takes_no_marker_takes_files_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    for number in ["", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9"] {
        std::fs::create_dir(directory.path().join(format!(".carrack-0505050505050505{number}.marker"))).unwrap();
    }
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    write(&part, &[0]);
    part.leave();
    put_small(&tree, "g", b"1").publish().unwrap();
    tree.written_down();
    tree.finish(false);
    assert_eq!(hidden(directory.path()).len(), 9);
}

/// A destination that takes upper and lower case for one. The file system here does not: the test
/// makes the second name itself.
fn folding(directory: &Path) -> Tree {
    use crate::storage::names::{Sameness, Shown};
    let shown = Shown { names: Sameness { case: true, forms: false }, is_split: false };
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
fn files_of_anybodys_mode_can_be_markers_where_the_directory_is_so_too() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    cut_off(directory.path());
    std::fs::set_permissions(marker(directory.path()), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(indexes(&resumed(&begin(directory.path()), &offer("f")).1), [0, 1, 3]);
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
