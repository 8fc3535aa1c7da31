//! Digests of a destination: of another kind, of rotten blocks, and of what is read back.

use super::*;

/// A run that goes on with another digest trusts nothing that it cannot compare.
/// What a pipe brings, and what grows, is read back block by block as it comes: where it ends is not known then.
#[test]
fn blocks_of_a_file_without_a_size_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let tree = begin(directory.path());
    let piped = NewFile { size: None, ..offer("f") };
    let part = fresh(&tree, &piped);
    for last in 0..3 {
        part.write(last * BLOCK as u64, &block(last)).unwrap();
        let blocks: Vec<_> = (0..=last).map(|index| (index, digest(index, false))).collect();
        assert_eq!(part.checkpoint(&blocks, true).unwrap(), Vec::<u64>::new());
    }
    assert_eq!(part.checkpoint(&[(1, digest(2, false))], true).unwrap(), [1]);
    part.remove();
    // The only block of a file, full or short, has the digest of the file.
    for length in [0, 1, BLOCK] {
        let part = fresh(&tree, &piped);
        part.write(0, &block(0)[..length]).unwrap();
        let mut hasher = BlockHasher::new(BLAKE3, 0);
        hasher.update(&block(0)[..length]);
        assert_eq!(part.checkpoint(&[(0, hasher.finish(true))], true).unwrap(), Vec::<u64>::new(), "{length}");
        part.remove();
    }
}

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
        let OpenedPart::Resumed { part, held, doubtful, .. } = opened else { panic!() };
        assert_eq!((held, &doubtful[..]), (vec![], &[0, 2][..]));
        assert_eq!(part.rehash(&doubtful), [0, 2].map(|index| of(second.digests, index)));
        part.leave();
        tree.finish(false);
        drop((part, tree));
        // What was claimed since is believed, and so is what has got its name.
        let tree = begin(directory.path());
        assert_eq!(tree.known(&query("one", ItemKind::File), first, &|| false), Some(digests));
        let OpenedPart::Resumed { part, held, doubtful, .. } = tree.open_part(&offer("f"), second, true).unwrap()
        else {
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
