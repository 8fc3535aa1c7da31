//! The marker of a destination: what it resumes where it is damaged, whose it is, and where none can be kept.

use super::*;
use carrack_core::backup::Backup;

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
            OpenedPart::Resumed { part, held, doubtful, .. } => {
                indexes(&held);
                let found = part.rehash(&doubtful);
                assert!(found.iter().all(|(index, found)| *index == 2 || *found == digest(*index, false)), "{length}");
            }
            OpenedPart::Keep | OpenedPart::Present(_) => panic!("{length}"),
        }
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
fn marker_that_somebody_else_may_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    std::fs::set_permissions(marker(directory.path()), std::fs::Permissions::from_mode(0o666)).unwrap();
    drop(fresh(&begin(directory.path()), &offer("f")));
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

#[test]
fn files_of_anybodys_mode_can_be_markers_where_the_directory_is_so_too() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    cut_off(directory.path());
    std::fs::set_permissions(marker(directory.path()), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(indexes(&resumed(&begin(directory.path()), &offer("f")).1), [0, 1, 3]);
}

/// What a session has put in the place of an old file is not what the next one keeps under its second name: also where
/// the first one has left nothing else, and where it is still at work because its end of the connection is not lost.
#[test]
fn session_that_goes_on_leaves_what_the_first_one_has_kept() {
    for is_at_work in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("f"), "original").unwrap();
        let publish = || {
            let tree = begin(directory.path()).keeping(Some(Backup::new(None, None).unwrap()));
            let unknown = SmallFile { fingerprint: None, ..small("f", b"new") };
            tree.write_small(&unknown, Existing::Replace, b"new").unwrap().unwrap().publish().unwrap();
            tree
        };
        let first = publish();
        if !is_at_work {
            first.finish(false);
        }
        publish().finish(true);
        assert_eq!(std::fs::read(at("f~")).unwrap(), b"original", "{is_at_work}");
        assert_eq!(std::fs::read(at("f~~")).unwrap(), b"new", "{is_at_work}");
    }
}

/// The next run keeps what is there then.
#[test]
fn run_that_ended_whole_leaves_what_it_kept_to_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("f"), "original").unwrap();
    for content in [&b"first"[..], b"second"] {
        let tree = begin(directory.path()).keeping(Some(Backup::new(None, None).unwrap()));
        put_small(&tree, "f", content).publish().unwrap();
        tree.finish(true);
    }
    assert_eq!((std::fs::read(at("f~")).unwrap(), at("f~~").exists()), (b"first".to_vec(), false));
}

/// A mixture that a session with another marker has left is one for the next session, too, until it is whole.
#[test]
fn mixture_is_known_whichever_marker_of_the_copy_names_it() {
    use carrack_core::request::InPlace;
    let directory = tempfile::tempdir().unwrap();
    let size = 2 << 20;
    std::fs::write(directory.path().join("f"), vec![1; size]).unwrap();
    let offered = NewFile { size: Some(size as u64), ..offer("f") };
    let options = WriteOptions { in_place: InPlace::Always, ..options() };
    // One whose connection was lost holds the first marker, and one beside it is killed in the midst of the file.
    let first = begin(directory.path());
    let beside = begin(directory.path());
    let (part, _) = in_place(&beside, &offered, &options);
    part.write(0, &[2; BLOCK]).unwrap();
    part.written(0, BLOCK as u64);
    drop((part, beside));
    assert!(!first.is_mixture(b"f"));
    // It ends well, and does not forget what the other names.
    first.finish(true);
    drop(first);
    for anew in [false, true] {
        let next = session(directory.path(), MarkerRequest { anew, ..request() }, Durability::Group);
        assert!(next.is_mixture(b"f"));
        next.finish(true);
    }
    let last = begin(directory.path());
    let (part, _) = in_place(&last, &offered, &options);
    part.write(0, &vec![3; size]).unwrap();
    part.finish(size as u64).unwrap();
    part.publish(FileDigests::default()).unwrap();
    last.finish(true);
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}
