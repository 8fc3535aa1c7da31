//! Part files over several sessions: which are taken up, which are read again, which are left alone.

use super::*;

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

/// What was claimed of a file that is another by now stays doubtful until somebody has read it, however many sessions
/// end before that.
#[test]
fn part_that_nobody_has_read_again_is_as_doubtful_to_the_next_session() {
    for (is_cut, is_doubtful) in [(false, &[0, 1, 3][..]), (true, &[0])] {
        let what = if is_cut { "cut" } else { "altered" };
        let directory = tempfile::tempdir().unwrap();
        cut_off(directory.path());
        let part = std::fs::File::options().write(true).open(left_part(directory.path())).unwrap();
        let change = if is_cut { part.set_len(BLOCK as u64) } else { file::write_all_at(&part, b"!", 7) };
        change.unwrap();
        // Its connection is lost before it has read all of what is there.
        let tree = begin(directory.path());
        let (part, held, doubtful) = resumed(&tree, &offer("f"));
        assert_eq!((held, &doubtful[..]), (vec![], is_doubtful), "{what}");
        part.rehash(&doubtful[..1]);
        part.leave();
        tree.finish(false);
        drop((part, tree));
        let tree = begin(directory.path());
        let (part, held, doubtful) = resumed(&tree, &offer("f"));
        assert_eq!((held, &doubtful[..]), (vec![], &[0, 1, 3][..]), "{what}");
        // Once all has been read it is believed, as it was read.
        let found = part.rehash(&doubtful);
        part.leave();
        tree.finish(false);
        drop((part, tree));
        let (_, held, doubtful) = resumed(&begin(directory.path()), &offer("f"));
        assert_eq!((held, doubtful), (found, vec![]), "{what}");
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

/// A session may be cut off when its file has its permissions already; what comes next may be for fewer.
#[test]
fn part_that_is_taken_up_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let left = hidden(directory.path()).into_iter().map(|name| directory.path().join(name));
    let part = left.filter(|path| path.is_file()).max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    std::fs::set_permissions(&part, std::fs::Permissions::from_mode(0o644)).unwrap();
    let tree = begin(directory.path());
    let (taken_up, ..) = resumed(&tree, &offer("f"));
    assert_eq!(stat_file(&taken_up.file).unwrap().mode & 0o7777, 0o600);
    taken_up.remove();
}

/// What is written over a file where it stands is open to nobody who is not to read all of it.
#[test]
fn file_that_is_written_in_place_is_open_to_no_more_than_before_and_after() {
    use carrack_core::request::InPlace;
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    std::fs::write(&path, vec![1; 2 << 20]).unwrap();
    let offered = NewFile { size: Some(2 << 20), ..offer("f") };
    let options = WriteOptions { in_place: InPlace::Always, ..options() };
    // Nor does what comes run as the owner of the file.
    let modes = [(0o664, 0o640, 0o640), (0o600, 0o644, 0o600), (0o644, 0o600, 0o600), (0o6755, 0o755, 0o755)];
    for (had, wanted, meanwhile) in modes {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(had)).unwrap();
        let tree = begin(directory.path());
        let attributes = Attributes::new(wanted, Time::new(300, 4));
        let offered = NewFile { attributes, ..offered.clone() };
        let (part, _) = in_place(&tree, &offered, &options);
        assert_eq!(stat_file(&part.file).unwrap().mode & 0o7777, meanwhile, "{had:o} {wanted:o}");
        part.finish(2 << 20).unwrap();
        assert_eq!(stat_file(&part.file).unwrap().mode & 0o7777, wanted);
        drop(part);
        tree.finish(true);
    }
}

/// A file of 2 MiB that is to be written over, and the one that stands there.
fn over<'a>(directory: &Path) -> (std::path::PathBuf, NewFile<'a>, WriteOptions) {
    let path = directory.join("f");
    std::fs::write(&path, vec![1; 2 << 20]).unwrap();
    file::set_times(&std::fs::File::options().write(true).open(&path).unwrap(), system_time(Time::new(300, 0)))
        .unwrap();
    let offered = NewFile { size: Some(2 << 20), ..offer("f") };
    (path, offered, WriteOptions { in_place: carrack_core::request::InPlace::Always, ..options() })
}

/// A stream that is in the midst of a block of a file that comes anew does not write into what comes.
#[test]
fn attempt_in_place_that_was_given_up_writes_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let (path, offered, options) = over(directory.path());
    let tree = begin(directory.path());
    let (before, _) = in_place(&tree, &offered, &options);
    before.write(0, &[2; BLOCK / 2]).unwrap();
    before.remove();
    let (now, _) = in_place(&tree, &offered, &options);
    now.write(0, &[3; BLOCK]).unwrap();
    for late in [before.write(BLOCK as u64 / 2, &[2; BLOCK / 2]), before.write_hole(0, 9), before.finish(9)] {
        assert!(late.unwrap_err().message().contains("given up"));
    }
    before.written(0, BLOCK as u64);
    now.write(BLOCK as u64, &vec![3; (2 << 20) - BLOCK]).unwrap();
    now.finish(2 << 20).unwrap();
    now.publish(FileDigests::default()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), vec![3; 2 << 20]);
    assert_eq!(stat_file(&now.file).unwrap().mtime, system_time(Time::new(500, 7)));
    tree.finish(true);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}

/// While a call of an earlier attempt has not returned, nobody else begins.
#[test]
fn file_in_place_is_locked_until_the_last_write_has_returned() {
    let directory = tempfile::tempdir().unwrap();
    let (_, offered, options) = over(directory.path());
    let tree = begin(directory.path());
    let (part, _) = in_place(&tree, &offered, &options);
    let late = part.over.as_ref().unwrap().enter(&part.file).unwrap();
    part.remove();
    let waited = &tree.shared.in_place.waited;
    // All of the session's patience is spent.
    *lock(waited) = tree.shared.tuning.other_end_patience;
    let refused = tree.open_part(&offered, &options, true).map(drop).unwrap_err();
    assert_eq!(refused.reason, Some(carrack_core::report::Reason::WrittenByOther));
    // With some left, the next attempt begins as soon as the write has returned.
    *lock(waited) = std::time::Duration::ZERO;
    std::thread::scope(|scope| {
        let again = scope.spawn(|| in_place(&tree, &offered, &options));
        drop(late);
        again.join().unwrap().0.remove();
    });
}

/// What nobody has written to is what it was, for whoever looks at it and by the marker.
#[test]
fn file_in_place_that_was_not_written_to_is_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (path, offered, options) = over(directory.path());
    let before = std::fs::metadata(&path).unwrap();
    let tree = begin(directory.path());
    let (part, _) = in_place(&tree, &offered, &options);
    assert_eq!(std::fs::metadata(&path).unwrap().mtime(), 0);
    part.remove();
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!((after.modified().unwrap(), after.mode()), (before.modified().unwrap(), before.mode()));
    assert!(!tree.is_mixture(b"f"));
    tree.finish(true);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}

/// After a sync that failed the cache says nothing of storage: the next attempt takes nothing over.
#[test]
fn file_in_place_of_which_a_sync_failed_is_written_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (_, offered, options) = over(directory.path());
    let options = WriteOptions { takes_over: true, ..options };
    let tree = begin(directory.path());
    let (part, standing) = in_place(&tree, &offered, &options);
    assert_eq!(standing, 0..(2 << 20) / BLOCK as u64);
    let stat = stat_file(&part.file).unwrap();
    lock(&tree.shared.in_place.lost).insert((stat.device, stat.inode));
    part.remove();
    let (part, standing) = in_place(&tree, &offered, &options);
    assert!(standing.is_empty());
    part.remove();
}

/// Owner, group and those on the list of the old content see nothing of the new one that is not for them.
#[test]
fn file_that_is_written_in_place_is_nobody_elses_until_it_has_its_owner_and_lists() {
    use crate::storage::posix::extended::to_kernel;
    use carrack_core::attributes::{AccessEntry, Attribute, AttributeKind, KeptAttributes, Who};
    use carrack_core::request::InPlace;
    use std::os::unix::fs::PermissionsExt;

    if carrack_sys::host::user_id() != 0 {
        return;
    }
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let given = |owner, group| {
        vec![Attribute::number(AttributeKind::OWNER, owner), Attribute::number(AttributeKind::GROUP, group)]
    };
    let kept = KeptAttributes { owner: true, group: true, acls: true, ..KeptAttributes::NONE };
    let who = [(Who::Owner, 6), (Who::User(1), 4), (Who::Group, 4), (Who::Mask, 4), (Who::Others, 0)];
    let list = to_kernel(&who.map(|(who, permissions)| AccessEntry::new(who, permissions)));
    let options = WriteOptions { in_place: InPlace::Always, ..options() };
    for (owner, group, with_list, meanwhile) in [
        (0, 0, false, (0, 0o600)),
        (NOBODY, 0, false, (NOBODY, 0o600)),
        (NOBODY, NOBODY, false, (NOBODY, 0o640)),
        (NOBODY, NOBODY, true, (NOBODY, 0o600)),
    ] {
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, vec![1; 2 << 20]).unwrap();
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let opened = std::fs::File::open(&path).unwrap();
        if with_list {
            carrack_sys::dir::set_extended_attribute(&opened, b"system.posix_acl_access", &list).unwrap();
        }
        let tree = begin(directory.path()).giving(kept, false);
        let others = OtherAttributes::new(given(owner, group)).unwrap();
        let attributes = Attributes { others, ..Attributes::new(0o640, Time::new(300, 4)) };
        let offered = NewFile { size: Some(2 << 20), attributes, ..offer("f") };
        let (part, _) = in_place(&tree, &offered, &options);
        let now = || stat_file(&opened).unwrap();
        assert_eq!((now().uid, now().mode & 0o7777), meanwhile, "{owner} {group} {with_list}");
        part.finish(2 << 20).unwrap();
        assert_eq!((now().uid, now().gid, now().mode & 0o7777), (owner, group, 0o640), "{owner} {group} {with_list}");
        drop(part);
        tree.finish(true);
    }
}

/// Whoever may write into the directory can make a marker that names a file of theirs.
#[test]
fn part_of_another_user_or_with_another_name_is_not_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    let part = || {
        let left = hidden(directory.path()).into_iter().map(|name| directory.path().join(name));
        left.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap()
    };
    cut_off(directory.path());
    if carrack_sys::host::user_id() == 0 {
        std::os::unix::fs::chown(part(), Some(65534), None).unwrap();
        let tree = begin(directory.path());
        let made = fresh(&tree, &offer("f"));
        assert_eq!(stat_file(&made.file).unwrap().uid, 0);
        made.remove();
        tree.finish(true);
    }
    // A marker is nobody's to bring.
    let tree = begin(directory.path());
    let marker = format!("d/.carrack-{}.marker", "0123456789abcdef");
    tree.make_directory(b"d").unwrap();
    let refused = tree.write_small(&small(&marker, b"x"), Existing::Replace, b"x").err().unwrap();
    assert!(refused.message().contains("marker"), "{refused:?}");
    let refused = tree.open_part(&offer(&marker), &options(), true).err().unwrap();
    assert!(refused.message().contains("marker"), "{refused:?}");
}
