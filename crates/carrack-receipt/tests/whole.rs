//! Receipts from their items to a comparison, in memory that does not follow their size.

use std::fs::File;
use std::io::{BufWriter, Cursor, Write};

use carrack_core::attributes::{OtherAttributes, Time};
use carrack_core::plan::check::{CheckFinding, CheckedFacts, CheckedItem, CheckedState, listing_order};
use carrack_core::plan::compare::State;
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, ItemReport, Outcome, Side};
use carrack_receipt::{Deed, Draft, ReadReceipt, ReceiptError, ReceiptKey, Statement, compare, tops};

/// The path of a file of an invented tree, in which 1,000 files lie in a directory.
fn path(number: u64) -> Vec<u8> {
    format!("tree/d{:05}/file-{:03}", number / 1000, number % 1000).into_bytes()
}

fn digest(number: u64) -> [u8; 32] {
    *blake3::hash(&number.to_le_bytes()).as_bytes()
}

fn report(number: u64) -> ItemReport {
    let digests = FileDigests { blake3: Some(digest(number)), ..FileDigests::default() };
    let (kind, outcome) = (ItemKind::File, Outcome::Published);
    ItemReport { path: path(number), kind, size: number, digests, judgment: None, outcome }
}

fn found(number: u64) -> CheckedItem {
    let facts = CheckedFacts {
        state: State { kind: ItemKind::File, size: number, mtime: Some(Time::new(number as i64, 5)) },
        link_target: Vec::new(),
        special: None,
        mode: 0o644,
        others: OtherAttributes::default(),
        digests: FileDigests { blake3: Some(digest(number)), ..FileDigests::default() },
        file: None,
    };
    CheckedItem { path: path(number), told: CheckedState::There(Box::new(facts)) }
}

/// Each number below `count`, in an order that no listing has.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7919 % count)
}

fn make(count: u64, out: &mut dyn Write) -> Statement {
    let mut draft = Draft::new(tempfile::tempfile().expect("a file"));
    scattered(count).for_each(|number| draft.item(&report(number)));
    assert_eq!(draft.tops(), Some(vec![b"tree".to_vec()]));
    let key = ReceiptKey::generate().expect("a key").0;
    let statement = Statement { of: Deed::Copy.name().into(), ..Statement::default() };
    let mut numbers = 0..count;
    draft.write(Some(&mut || Ok(numbers.next().map(found))), statement, &key, out).expect("written")
}

/// Compares a receipt with a listing, and tells the paths that are not the same.
fn differing(
    receipt: &mut ReadReceipt<impl std::io::Read + std::io::Seek>,
    mut listing: impl Iterator<Item = CheckedItem>,
) -> Result<Vec<Vec<u8>>, ReceiptError> {
    let mut paths = Vec::new();
    compare(receipt, None, &mut || Ok::<_, Failure>(listing.next()), &mut |path, finding| {
        if !matches!(finding, CheckFinding::Same(_)) {
            paths.push(path.to_vec());
        }
    })?;
    Ok(paths)
}

#[test]
fn any_byte_that_is_changed_is_noticed() {
    let mut bytes = Vec::new();
    make(7, &mut bytes);
    ReadReceipt::open(Cursor::new(&bytes)).expect("whole");
    for at in 0..bytes.len() {
        for change in [0x01, 0x20] {
            let mut altered = bytes.clone();
            altered[at] ^= change;
            assert!(
                ReadReceipt::open(Cursor::new(&altered)).is_err(),
                "byte {at}: {}",
                String::from_utf8_lossy(&altered)
            );
        }
    }
    for length in 0..bytes.len() {
        assert!(ReadReceipt::open(Cursor::new(&bytes[..length])).is_err(), "cut at {length}");
    }
}

#[test]
fn receipt_that_changes_between_its_signature_and_its_items_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    make(40_000, &mut BufWriter::new(file.as_file()));
    let mut receipt = ReadReceipt::open(file.reopen().expect("opened")).expect("whole");
    let text = std::fs::read_to_string(file.path()).expect("read");
    let at = text.find("\"size\":35000").expect("an item");
    std::os::unix::fs::FileExt::write_all_at(file.as_file(), b"\"size\":35001", at as u64).expect("written");
    let refused = differing(&mut receipt, (0..40_000).map(found)).expect_err("changed");
    assert!(matches!(refused, ReceiptError::Altered(_)), "{refused}");
}

#[test]
fn all_that_has_changed_is_found_and_nothing_else() {
    let count = 20_000;
    let mut bytes = Vec::new();
    let statement = make(count, &mut bytes);
    assert_eq!((statement.items, statement.outcomes["copied"]), (count, count));
    let mut receipt = ReadReceipt::open(Cursor::new(bytes)).expect("whole");
    assert_eq!(receipt.statement, statement);
    assert_eq!(tops(&mut receipt).expect("read"), Some(vec![b"tree".to_vec()]));
    assert_eq!(differing(&mut receipt, (0..count).map(found)).expect("compared"), <[Vec<u8>; 0]>::default());
    let altered = |number: u64| {
        let mut item = found(number);
        let CheckedState::There(facts) = &mut item.told else { unreachable!("a file") };
        match number % 997 {
            0 => facts.digests.blake3 = Some([0; 32]),
            1 => facts.mode = 0o600,
            2 => facts.state.mtime = Some(Time::new(number as i64, 6)),
            3 => facts.state.size += 1,
            4 => facts.state.kind = ItemKind::Symlink,
            5 => return None,
            _ => {}
        }
        Some(item)
    };
    let expected: Vec<Vec<u8>> = (0..count).filter(|number| number % 997 < 6).map(path).collect();
    assert_eq!(differing(&mut receipt, (0..count).filter_map(altered)).expect("compared"), expected);
}

#[test]
fn item_that_was_not_found_when_the_receipt_was_made_is_not_claimed() {
    let mut draft = Draft::new(tempfile::tempfile().expect("a file"));
    (0..4).for_each(|number| draft.item(&report(number)));
    let key = ReceiptKey::generate().expect("a key").0;
    let mut listing = (0..4).filter(|number| *number != 1).map(|number| {
        let mut item = found(number);
        let CheckedState::There(facts) = &mut item.told else { unreachable!("a file") };
        facts.state.size += u64::from(number == 2);
        item
    });
    let mut bytes = Vec::new();
    let statement =
        draft.write(Some(&mut || Ok(listing.next())), Statement::default(), &key, &mut bytes).expect("written");
    assert_eq!((statement.outcomes["copied"], statement.outcomes["changed"], statement.bytes), (2, 2, 3));
    assert!(statement.not_claimed.iter().any(|what| what.starts_with("2 items that were something else")));
    let mut receipt = ReadReceipt::open(Cursor::new(bytes)).expect("whole");
    let only = [0, 3].map(found);
    assert_eq!(differing(&mut receipt, only.into_iter()).expect("compared"), <[Vec<u8>; 0]>::default());
}

#[test]
fn item_below_a_directory_that_cannot_be_listed_is_claimed_without_attributes() {
    let mut draft = Draft::new(tempfile::tempfile().expect("a file"));
    // Each in a directory of its own.
    [0, 1000, 2000].into_iter().for_each(|number| draft.item(&report(number)));
    let key = ReceiptKey::generate().expect("a key").0;
    let unlisted = |path: &[u8]| CheckedItem {
        path: path.to_vec(),
        told: CheckedState::Unlisted(Failure::new(ErrorCode::PermissionDenied, Side::Destination, "no")),
    };
    let mut listing = [unlisted(b"tree/d00000"), unlisted(b"tree/d00001")].into_iter();
    let statement = Statement::default();
    let made = draft.write(Some(&mut || Ok(listing.next())), statement, &key, &mut Vec::new()).expect("written");
    assert_eq!((made.outcomes["copied"], made.outcomes["changed"]), (2, 1));
}

#[test]
fn order_of_items_is_that_of_listings() {
    let paths = scattered(3000).map(path).collect::<Vec<_>>();
    let mut sorted = paths.clone();
    sorted.sort_by(|one, other| listing_order(one, other));
    assert_eq!(sorted, (0..3000).map(path).collect::<Vec<_>>());
}

/// Minutes, and so by name alone.
#[test]
#[ignore = "10,000,000 items: cargo test --release -p carrack-receipt --test whole ten_million -- --ignored"]
fn ten_million_items_are_signed_and_compared_in_256_megabytes() {
    let count = 10_000_000;
    let mut file = tempfile::tempfile().expect("a file");
    let mut out = BufWriter::new(&mut file);
    make(count, &mut out);
    out.flush().expect("written");
    drop(out);
    let mut receipt = ReadReceipt::open(rewound(file)).expect("whole");
    assert_eq!(differing(&mut receipt, (0..count).map(found)).expect("compared"), <[Vec<u8>; 0]>::default());
    let status = std::fs::read_to_string("/proc/self/status").expect("read");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    println!("peak: {} MB", kilobytes / 1000);
    assert!(kilobytes < 256_000, "{kilobytes} kB");
}

fn rewound(mut file: File) -> File {
    std::io::Seek::rewind(&mut file).expect("rewound");
    file
}
