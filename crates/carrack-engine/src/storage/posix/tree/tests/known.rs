//! What an earlier session published: when it is believed, and when it is read first.

use carrack_core::attributes::{Attribute, AttributeKind};

use super::*;

/// Publishes a file, with digests that are not of its content where that is `wrong`.
fn published(directory: &Path, path: &str, content: &[u8], wrong: bool) {
    let tree = begin(directory);
    let told = if wrong { b"something else" } else { content };
    let small = SmallFile { digests: small(path, told).digests, ..small(path, content) };
    let entry = tree.write_small(&small, Existing::Replace, content).unwrap().unwrap();
    tree.sync_all().unwrap();
    entry.publish().unwrap();
    tree.finish(false);
}

fn with(verify: Verify) -> WriteOptions {
    WriteOptions { verify, ..options() }
}

/// As if the content had changed and no time had shown it.
#[test]
fn published_file_is_read_back_where_that_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    published(directory.path(), "right", b"content", false);
    published(directory.path(), "wrong", b"content", true);
    let tree = begin(directory.path());
    let known = |path, verify| tree.known(&query(path, ItemKind::File), &with(verify), &|| false).is_some();
    assert!(known("right", Verify::Wire) && known("wrong", Verify::Wire));
    assert!(known("right", Verify::Disk) && !known("wrong", Verify::Disk));
    assert!(tree.known(&query("right", ItemKind::File), &with(Verify::Disk), &|| true).is_none(), "nobody waits");
}

#[test]
fn published_file_in_memory_is_always_read() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
    published(directory.path(), "right", b"content", false);
    published(directory.path(), "wrong", b"content", true);
    let tree = begin(directory.path());
    let known = |path| tree.known(&query(path, ItemKind::File), &options(), &|| false).is_some();
    assert!(known("right") && !known("wrong"));
    assert_eq!(tree.files_in_memory(), 1);
}

#[test]
fn large_published_file_is_read_back_block_by_block() {
    for digests in [BLAKE3, Digests::XXH128] {
        let directory = tempfile::tempdir().unwrap();
        let options = WriteOptions { digests, verify: Verify::Disk, ..options() };
        let mut whole = carrack_core::digest::FileTree::new(BLOCK_BYTES_MIN, digests);
        let tree = begin(directory.path());
        let OpenedPart::Fresh(part) = tree.open_part(&offer("f"), &options, true).unwrap() else { panic!() };
        for index in 0..4 {
            part.write(index * BLOCK as u64, &block(index)).unwrap();
            let mut hasher = BlockHasher::new(digests, index * BLOCK as u64);
            hasher.update(&block(index));
            whole.insert(index, BLOCK as u64, hasher.finish(false));
        }
        let found = whole.finish(4 * BLOCK as u64).unwrap();
        part.finish(4 * BLOCK as u64).unwrap();
        part.publish(found).unwrap();
        tree.finish(false);
        drop((part, tree));
        let tree = begin(directory.path());
        let OpenedPart::Present(standing) = tree.open_part(&offer("f"), &options, true).unwrap() else { panic!() };
        assert!(standing.needs_reading(Verify::Disk) && !standing.needs_reading(Verify::Wire));
        let same = |block_bytes| tree.is_still_the_same(b"f", &standing, Some(block_bytes), &options, &|| false);
        assert!(same(BLOCK_BYTES_MIN));
        // A sum of other blocks' digests is another; the file is then sent again.
        assert_eq!(same(2 * BLOCK_BYTES_MIN), digests == BLAKE3);
        assert!(matches!(tree.open_part(&offer("f"), &options, false).unwrap(), OpenedPart::Fresh(_)));
    }
}

#[test]
fn published_file_without_a_digest_is_not_known() {
    let directory = tempfile::tempdir().unwrap();
    published(directory.path(), "one", b"content", false);
    let tree = begin(directory.path());
    let none = WriteOptions { digests: Digests { adler32: true, ..Digests::NONE }, ..with(Verify::None) };
    assert_eq!((tree.known_count(none.digests), tree.known_count(BLAKE3)), (0, 1));
    assert_eq!(tree.known(&query("one", ItemKind::File), &none, &|| false), None);
}

/// The same file under its name, but not the same any more.
#[test]
fn published_file_is_not_known_once_anything_was_done_to_it() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("content, and the time put back", |file| {
            let times = std::fs::metadata(file).unwrap().modified().unwrap();
            std::fs::write(file, "CONTENT").unwrap();
            std::fs::File::options().write(true).open(file).unwrap().set_modified(times).unwrap();
        }),
        ("another name of it", |file| std::fs::hard_link(file, file.with_file_name("other")).unwrap()),
        ("moved away and back", |file| {
            let away = file.with_file_name("away");
            std::fs::rename(file, &away).unwrap();
            std::fs::rename(&away, file).unwrap();
        }),
        ("a copy of it", |file| {
            let copy = file.with_file_name("copy");
            std::fs::copy(file, &copy).unwrap();
            std::fs::rename(&copy, file).unwrap();
        }),
    ];
    for (what, change) in changes {
        let directory = tempfile::tempdir().unwrap();
        published(directory.path(), "one", b"content", false);
        let file = directory.path().join("one");
        let before = stat_file(std::fs::File::open(&file).unwrap()).unwrap().ctime;
        while stat_file(std::fs::File::open(&file).unwrap()).unwrap().ctime == before {
            // However coarse the clock is, it goes on.
            change(&file);
            let _ = std::fs::remove_file(file.with_file_name("other"));
        }
        let tree = begin(directory.path());
        assert_eq!(tree.known(&query("one", ItemKind::File), &options(), &|| false), None, "{what}");
    }
}

/// The session that published it may have been asked for other permissions, or for no times.
#[test]
fn published_file_gets_the_permissions_and_the_time_that_this_session_gives() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f");
    let now = || {
        let stat = stat_file(std::fs::File::open(&file).unwrap()).unwrap();
        (stat.mode & 0o7777, stat.mtime.seconds, stat.inode)
    };
    let publish = || {
        published(directory.path(), "f", b"content", false);
        now()
    };
    let (_, _, inode) = publish();
    let tree = begin(directory.path());
    let item = EarlierItem { mode: Some(0o600), ..query("f", ItemKind::File) };
    assert!(tree.known(&item, &options(), &|| false).is_some());
    assert_eq!(now(), (0o600, 300, inode));
    assert!(tree.known(&EarlierItem { mode: Some(0o440), ..item.clone() }, &options(), &|| false).is_some());
    assert_eq!(now(), (0o440, 300, inode));
    let told = tree.unkept();
    assert!(told.permissions.is_none() && told.times.is_none(), "what it has by now is kept");
    tree.finish(false);
    drop(tree);
    // The session after that knows it by what it has become.
    let tree = begin(directory.path());
    assert!(tree.known(&EarlierItem { mode: Some(0o440), ..item.clone() }, &options(), &|| false).is_some());
    drop(tree);
    // A time that was not asked for stays as it is.
    let (_, _, inode) = publish();
    let tree = begin(directory.path());
    assert!(tree.known(&EarlierItem { mtime: None, ..item.clone() }, &options(), &|| false).is_some());
    let later = EarlierItem { mtime: Some(Time::new(900, 4)), ..item };
    assert!(tree.known(&later, &with(Verify::Disk), &|| false).is_some());
    assert_eq!(now(), (0o600, 900, inode));
}

#[test]
fn large_published_file_gets_the_permissions_that_this_session_gives() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("f"));
    write(&part, &[0, 1, 2, 3]);
    part.finish(4 * BLOCK as u64).unwrap();
    let digests = FileDigests { blake3: Some([7; 32]), ..FileDigests::default() };
    part.publish(digests).unwrap();
    tree.finish(false);
    drop((part, tree));
    let tree = begin(directory.path());
    let changed = NewFile { attributes: Attributes::new(0o604, Time::new(500, 7)), ..offer("f") };
    assert!(matches!(tree.open_part(&changed, &options(), true).unwrap(), OpenedPart::Present(_)));
    assert_eq!(std::fs::metadata(directory.path().join("f")).unwrap().mode() & 0o7777, 0o604);
}

/// A session tells of all that it has found at the destination, also of what need not be sent again.
#[test]
fn attributes_of_a_published_file_are_told_as_not_kept_again() {
    let directory = tempfile::tempdir().unwrap();
    published(directory.path(), "f", b"content", false);
    let attribute = Attribute { kind: AttributeKind(700), value: Box::from(&b"value"[..]) };
    let others = OtherAttributes::new(vec![attribute]).unwrap();
    let tree = begin(directory.path());
    let item = EarlierItem { others: &others, ..query("f", ItemKind::File) };
    assert!(tree.known(&EarlierItem { fingerprint: Some([9; 16]), ..item.clone() }, &options(), &|| false).is_none());
    assert!(tree.unkept().attributes.is_none(), "what is not there is not counted");
    assert!(tree.known(&item, &options(), &|| false).is_some());
    let told = tree.unkept().attributes.unwrap();
    assert_eq!(
        (told.count, &told.path[..], told.kinds.first_key_value()),
        (1, &b"f"[..], Some((&AttributeKind(700), &1)))
    );
}
