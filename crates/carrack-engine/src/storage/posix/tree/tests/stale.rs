//! What killed sessions have left: it goes, and nothing of a living session does.

use super::*;

/// Hidden names below a directory that are no markers.
fn parts(directory: &Path) -> Vec<String> {
    let mut found: Vec<String> = hidden(directory).into_iter().filter(|name| name.ends_with(".part")).collect();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(parts(&path));
        }
    }
    found
}

/// A session that is killed with small files and a link without their names.
fn killed(directory: &Path) {
    let tree = begin(directory);
    put_small(&tree, "top", b"1");
    let _one = put_small(&tree, "d/one", b"1");
    put_small(&tree, "d/one", b"again");
    tree.write_link(&small("d/e/link", b""), Existing::Replace, b"nowhere").unwrap().unwrap();
    assert_eq!(parts(directory).len(), 4);
}

#[test]
fn stale_small_parts_go_although_nobody_sends_them_again() {
    let directory = tempfile::tempdir().unwrap();
    killed(directory.path());
    // One in between that comes to nothing forgets nothing.
    begin(directory.path()).finish(false);
    let tree = begin(directory.path());
    let two = put_small(&tree, "d/two", b"2");
    tree.make_directory(b"d/e").unwrap();
    assert_eq!(parts(directory.path()).len(), 1);
    two.publish().unwrap();
    tree.finish(true);
    assert_eq!((hidden(directory.path()), parts(directory.path())), (vec![], vec![]));
    assert_eq!(std::fs::read(directory.path().join("d/two")).unwrap(), b"2");
}

#[test]
fn stale_large_parts_that_no_marker_tells_of_go_and_others_are_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    write(&fresh(&tree, &offer("d/f")), &[0]);
    let unknown = tree.names.numbered(b"g", 77).name.clone();
    std::fs::write(directory.path().join("d").join(std::str::from_utf8(&unknown).unwrap()), "x").unwrap();
    drop(tree);
    assert_eq!(parts(directory.path()).len(), 2);
    let tree = begin(directory.path());
    let (part, _, doubtful) = resumed(&tree, &offer("d/f"));
    assert_eq!((&doubtful[..], parts(directory.path()).len()), (&[0][..], 1));
    part.remove();
    tree.finish(true);
    assert_eq!(parts(directory.path()), Vec::<String>::new());
}

#[test]
fn stale_parts_of_another_marker_go_once_nobody_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let impatient = Arc::new(Tuning { marker_lock_patience: Duration::from_millis(1), ..Tuning::DEFAULT });
    let beside = || {
        let root = Dir::open_ambient(directory.path()).unwrap();
        Tree::new(root, false, Some(request()), Durability::Group, &impatient).unwrap()
    };
    let one = begin(directory.path());
    let two = beside();
    put_small(&two, "d/two", b"2");
    one.finish(true);
    // The second is still at work: what it is writing stays.
    let three = begin(directory.path());
    three.make_directory(b"d").unwrap();
    three.finish(true);
    assert_eq!(parts(directory.path()).len(), 1);
    drop(two);
    let four = begin(directory.path());
    four.make_directory(b"d").unwrap();
    four.finish(true);
    assert_eq!((hidden(directory.path()), parts(directory.path())), (vec![], vec![]));
}

#[test]
fn stale_parts_are_looked_for_once_and_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    killed(directory.path());
    let tree = begin(directory.path());
    let (one, two) = (put_small(&tree, "d/one", b"1"), put_small(&tree, "d/e/f/two", b"2"));
    let top = put_small(&tree, "top", b"3");
    // Directories are opened anew, as where there are too many of them.
    tree.shared.directories.forget_open();
    let three = put_small(&tree, "d/three", b"3");
    for entry in [&one, &two, &top, &three] {
        assert!(entry.publish().unwrap());
    }
    tree.finish(true);
    assert_eq!(parts(directory.path()), Vec::<String>::new());
}

#[test]
fn stale_parts_of_other_copies_stay() {
    let directory = tempfile::tempdir().unwrap();
    killed(directory.path());
    let other = MarkerRequest { key: [6; 8], anew: false, made_top: false, partial: false };
    for _ in 0..2 {
        let tree = session(directory.path(), other, Durability::Group);
        put_small(&tree, "d/one", b"1").publish().unwrap();
        tree.make_directory(b"d/e").unwrap();
        drop(tree);
    }
    session(directory.path(), other, Durability::Group).finish(true);
    assert_eq!(parts(directory.path()).len(), 4);
}

#[test]
fn stale_parts_go_where_a_run_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    killed(directory.path());
    let tree = session(directory.path(), MarkerRequest { anew: true, ..request() }, Durability::Group);
    tree.make_directory(b"d/e").unwrap();
    assert_eq!(parts(directory.path()), Vec::<String>::new());
}
