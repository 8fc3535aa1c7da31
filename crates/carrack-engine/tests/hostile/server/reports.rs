//! Reports of a hostile node: items and numbers that cannot be.

use super::*;

/// Two bytes each, and two hundred in memory.
#[test]
fn items_that_are_nothing() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    // Made as bytes: as items they would be the memory that they must not be.
    let items = [0x0a, 0].repeat(500_000);
    let message = [&[0x62, 0xc0, 0x84, 0x3d][..], &items].concat();
    let failure = failed_pull(&sandbox, move |node| {
        let _stream = node.begin();
        (0..10).for_each(|_| node.payload(Channel::CONTROL, &message));
    });
    assert_told(&failure, ErrorCode::ProtocolViolation, "an answer of 500001 parts");
}

/// What it makes up about items is bounded, and never becomes a path that is used.
#[test]
fn items_that_never_were() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let node = FakeNode::start(|node| {
        let mut stream = node.begin();
        bundle(&mut stream, 1, &[Entry::File(b"f", b"bytes")]);
        while !matches!(node.heard(), None | Some(PeerMessage::BundleDone { .. })) {}
        // Now the command takes what comes: before the link was made, only so much would have been kept for later.
        for _ in 0..200 {
            let list = (0..20).map(|number| item(format!("f/{number}").as_bytes())).collect();
            node.tell(0, Tell::Items(Items { list }));
        }
        node.say(&PeerMessage::Finish);
        while !matches!(node.heard(), None | Some(PeerMessage::Finished { .. })) {}
        node.tell(
            0,
            Tell::Ended(ended(Counts {
                files_failed: u64::MAX,
                files: u64::MAX,
                bytes: u64::MAX,
                ..Counts::default()
            })),
        );
    });
    let report: Report = pull(&node, "/f", &sandbox);
    node.join();
    assert_eq!(report.error, None);
    assert_eq!(report.failures.len(), carrack_core::limits::FAILURES_TOLD);
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), ["f"]);
}

/// An item that failed for no reason.
fn item(path: &[u8]) -> Item {
    let failure = Failure::new(ErrorCode::Other, carrack_core::report::Side::Source, "x");
    Item { path: path.to_vec(), outcome: 2, failure: Some(failure.into()), ..Item::default() }
}

/// What is told of goes into manifests and lists, which other programs read: paths of what was asked for, and
/// told by the source alone.
#[test]
fn items_that_were_not_asked_for() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut paths: Vec<Vec<u8>> =
        hostile_paths().into_iter().map(|(path, _)| path).filter(|path| !path.is_empty()).collect();
    paths.extend([b"g".to_vec(), b"ff".to_vec(), b".bashrc".to_vec()]);
    for path in paths {
        let sent = path.clone();
        let failure = failed_pull(&sandbox, move |node| {
            node.begin();
            node.tell(0, Tell::Items(Items { list: vec![item(b"f"), item(&sent)] }));
            while node.next().is_some() {}
        });
        assert_told(&failure, ErrorCode::BadPath, "the peer sent the path \"");
    }
    let nameless = Item { path: Vec::new(), outcome: 0, failure: None, ..item(b"") };
    let failure = failed_pull(&sandbox, move |node| {
        node.begin();
        node.tell(0, Tell::Items(Items { list: vec![nameless] }));
        while node.next().is_some() {}
    });
    assert_told(&failure, ErrorCode::BadPath, "empty");
    let (file, node) = large_file_to(&sandbox, |node| {
        node.begin();
        node.tell(0, Tell::Items(Items { list: vec![item(b"there")] }));
        while node.next().is_some() {}
    });
    let report = push(&file, &node, "/there", CopyOptions { retries: 0, ..CopyOptions::default() });
    node.join();
    assert_told(&report.error.expect("refused"), ErrorCode::ProtocolViolation, "told of items");
}

/// Lines of changes are printed and read by scripts: only the destination tells them, and of what was asked for.
#[test]
fn changes_that_were_not_asked_for() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let tell = |path: &[u8], kind: ItemKind, done| {
        let change = Change { path: path.to_vec(), kind: kind.number(), done, ..Change::default() };
        Tell::Changes(Changes { list: vec![change] })
    };
    let failure = failed_pull(&sandbox, move |node| {
        node.begin();
        node.tell(0, tell(b"f", ItemKind::File, 0));
        while node.next().is_some() {}
    });
    assert_told(&failure, ErrorCode::ProtocolViolation, "told of changes");
    let pushed = |item_changes, told: Tell| {
        let (file, node) = large_file_to(&sandbox, move |node| {
            node.begin();
            node.tell(0, told);
            while node.next().is_some() {}
        });
        let report = push(&file, &node, "/there", CopyOptions { item_changes, retries: 0, ..CopyOptions::default() });
        node.join();
        report.error.expect("refused")
    };
    assert_told(&pushed(false, tell(b"there", ItemKind::File, 0)), ErrorCode::ProtocolViolation, "told of changes");
    for path in [&b"other"[..], b"../there", b"", b"/there"] {
        let why = pushed(true, tell(path, ItemKind::File, 0));
        assert_told(&why, ErrorCode::BadPath, "");
    }
    // The destination itself was not asked for, and is not deleted where it was.
    for done in [0, 1] {
        assert_told(&pushed(true, tell(b"", ItemKind::Directory, done)), ErrorCode::BadPath, "");
    }
    assert_told(&pushed(true, tell(b"there", ItemKind::File, 7)), ErrorCode::ProtocolViolation, "unknown");
}

/// Files in flight are shown to whoever asked for them: only the source tells them, few at once, and of what was asked
/// for.
#[test]
fn files_in_flight_that_were_not_asked_for() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let one = |path: &[u8]| ItemInFlight { path: path.to_vec(), size: Some(5), bytes: 3 };
    let tell = |list: Vec<ItemInFlight>| Tell::InFlight(InFlight { list });
    let pulled = |items_in_flight, told: Tell| {
        let node = FakeNode::start(move |node| {
            node.begin();
            node.tell(0, told);
            while node.next().is_some() {}
        });
        let options = CopyOptions { items_in_flight, retries: 0, ..CopyOptions::default() };
        let report = pull_with(&node, "/f", &sandbox, options);
        node.join();
        sandbox.assert_untouched();
        report.error.expect("refused")
    };
    assert_told(&pulled(false, tell(vec![one(b"f")])), ErrorCode::ProtocolViolation, "told of files in flight");
    for path in [&b"g"[..], b"../f", b"/f", b"f/", b"f\0", b""] {
        assert_told(&pulled(true, tell(vec![one(b"f"), one(path)])), ErrorCode::BadPath, "");
    }
    assert_told(&pulled(true, tell(vec![one(b"f"); 9])), ErrorCode::ProtocolViolation, "9 files in flight");
    let long = vec![one(&[b'f'; 65_000])];
    assert_told(&pulled(true, tell(long)), ErrorCode::ProtocolViolation, "65000 bytes of paths");
    let (file, node) = large_file_to(&sandbox, move |node| {
        node.begin();
        node.tell(0, tell(vec![one(b"there")]));
        while node.next().is_some() {}
    });
    let options = CopyOptions { items_in_flight: true, retries: 0, ..CopyOptions::default() };
    let report = push(&file, &node, "/there", options);
    node.join();
    assert_told(&report.error.expect("refused"), ErrorCode::ProtocolViolation, "told of files in flight");
}

/// Sizes and counts that are added up may be any numbers.
#[test]
fn numbers_that_do_not_add_up() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let node = FakeNode::start(|node| {
        node.kind = Some(ItemKind::Directory);
        while let Some((request, ask)) = node.next() {
            if let Some(answer) = node.honest(&ask) {
                node.tell(request, answer);
                continue;
            }
            let entries = (0..4).map(|number| carrack_core::wire::control::raw::Entry {
                size: u64::MAX,
                mtime_seconds: i64::MIN,
                mtime_nanos: u32::MAX,
                mode: u32::MAX,
                ..entry(format!("f{number}").as_bytes())
            });
            node.tell(request, Tell::Page(Page { entries: entries.collect() }));
            return node.tell(request, Tell::Done(Counted { count: u64::MAX }));
        }
    });
    let options = CopyOptions { dry_run: true, retries: 0, ..CopyOptions::default() };
    let report = pull_with(&node, "/d", &sandbox, options);
    node.join();
    assert_eq!((report.error, report.counts.files, report.counts.bytes), (None, 4, u64::MAX));
}

/// Answers to what nobody asked are not collected for ever.
#[test]
fn answers_that_nobody_asked_for() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let failure = failed_pull(&sandbox, |node| {
        let (_, hello) = node.next().unwrap();
        assert!(matches!(hello, Ask::Hello(_)));
        let page = Page { entries: vec![entry(&[b'n'; 1000]); 500] };
        for _ in 0..2000 {
            node.tell(999, Tell::Page(page.clone()));
        }
        while node.next().is_some() {}
    });
    assert_told(&failure, ErrorCode::ProtocolViolation, "answers that nobody asked for");
}
