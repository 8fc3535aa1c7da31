//! Journals that are torn, damaged, of another program, and paged through.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use carrack_core::report::ItemKind;
use proptest::prelude::*;

use super::format::*;
use super::*;
use crate::clock::Moment;
use crate::model::{
    CheckTally, EndVisit, EventKind, ItemState, Progress, Rates, TaskFailure, TaskPlan, VisitedDirectory,
};

fn item(path: &[u8], state: ItemState) -> Item {
    let failure = (state == ItemState::Failed).then(|| TaskFailure {
        code: "permission-denied".into(),
        side: "source".into(),
        endpoint: Some("lab".to_owned()),
        why: "open: permission denied".into(),
        retryable: false,
        hints: vec!["ask".into()],
    });
    let digest = (state == ItemState::Done).then_some([7; 32]);
    Item { pair: 0, path: path.to_vec(), kind: ItemKind::File, state, size: 1 << 40, digest, failure }
}

fn records() -> Vec<Record> {
    let rates = Rates { now: 1.5, five_minutes: 2.5, all: 3.5 };
    let progress = Progress {
        items_total: 9,
        items_done: 8,
        bytes_moved: 7,
        rates,
        eta_seconds: Some(6),
        limited_by: Some("the network".into()),
        unkept: [("owner".to_owned(), 3), ("acl".to_owned(), u64::MAX)].into(),
        plan: Some(TaskPlan { held_by: Some("too many".into()), ..TaskPlan::default() }),
        source_file_system: Some("ab".into()),
        ..Progress::default()
    };
    let time = Moment(1_700_000_000_000_000);
    let failure = item(b"", ItemState::Failed).failure;
    vec![
        Record::Began { fence: 3, time, process: 77, program: "1.2.3".into() },
        Record::Item(item(b"a/\xff", ItemState::Done)),
        Record::Item(item(b"b", ItemState::Failed)),
        Record::Item(item(b"c", ItemState::Skipped)),
        Record::Item(item(b"d", ItemState::Planned)),
        Record::Item(item(b"e", ItemState::ToDelete)),
        Record::Sample(Sample {
            time,
            progress: progress.clone(),
            streams: 4,
            source: Some(EndCounts { processor_us: 1, storage_wait_us: 2, retransmits: 3 }),
            destination: None,
        }),
        Record::Event { time, kind: EventKind::Fault, text: "lost".into(), detail: "{\"a\":1}".into() },
        Record::PassBegan { pair: 6, place: vec![0, 255] },
        Record::Visited(EndVisit {
            host: "h".into(),
            disk: Some("d".into()),
            directory: b"/\xff".to_vec(),
            directories: vec![VisitedDirectory { path: b"a".to_vec(), faults: vec!["no-space".into()] }],
            ..EndVisit::default()
        }),
        Record::Checked(CheckMark {
            pair: 1,
            after: b"a\xfe".to_vec(),
            tally: CheckTally { same: 5, different: 1, ..CheckTally::default() },
            failed: 2,
        }),
        Record::Item(item(b"x", ItemState::Different)),
        Record::Item(item(b"y", ItemState::OnlySource)),
        Record::Item(item(b"z", ItemState::OnlyDestination)),
        Record::Reached,
        Record::PairEnded(PairEnd { pair: 5, of_sources: true, of_look: true, time, progress: progress.clone() }),
        Record::Ended(AttemptEnd { time, kind: EndKind::Failed, progress, failure, got_somewhere: true, late: true }),
    ]
}

fn write(directory: &Path, records: &[Record]) {
    let recovered = recover(directory, &mut |_| {}).unwrap();
    let mut writer = Writer::open(&recovered).unwrap();
    records.iter().for_each(|record| writer.append(record).unwrap());
    writer.finish().unwrap();
}

fn read(directory: &Path) -> Result<Vec<Record>, JournalError> {
    let mut reader = Reader::open(directory);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok(records)
}

#[test]
fn journal_gives_back_every_kind_of_record() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(read(directory.path()).unwrap(), []);
    write(directory.path(), &records());
    assert_eq!(read(directory.path()).unwrap(), records());
    write(directory.path(), &records()[..2]);
    assert_eq!(read(directory.path()).unwrap().len(), records().len() + 2);
}

#[test]
fn journal_torn_anywhere_is_read_to_there_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(JOURNAL);
    write(directory.path(), &records());
    let whole = fs::read(&path).unwrap();
    let ends = ends(&whole);
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let expected = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(read(directory.path()).unwrap(), records()[..expected], "cut at {length}");
        let mut reader = Reader::open(directory.path());
        while reader.next_record().unwrap().is_some() {}
        let recovered = recover(directory.path(), &mut |_| {}).unwrap();
        assert!(recovered.kept_aside.is_none());
        let mut writer = Writer::open(&recovered).unwrap();
        writer.append(&records()[4]).unwrap();
        writer.flush().unwrap();
        // A reader that stood before the torn end reads what has taken its place.
        assert_eq!(reader.next_record().unwrap().as_ref(), Some(&records()[4]), "cut at {length}");
        assert_eq!(reader.next_record().unwrap(), None);
        assert_eq!(read(directory.path()).unwrap().len(), expected + 1, "cut at {length}");
    }
}

/// Where each record ends.
fn ends(whole: &[u8]) -> Vec<usize> {
    let mut at = MAGIC.len();
    let mut ends = Vec::new();
    while let Some(length) = whole[at..].first_chunk() {
        at += HEAD_BYTES + u32::from_le_bytes(*length) as usize + TAIL_BYTES;
        ends.push(at);
    }
    ends
}

#[test]
fn journal_damaged_in_the_middle_says_where_and_its_rest_is_kept_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(JOURNAL);
    write(directory.path(), &records());
    let whole = fs::read(&path).unwrap();
    let ends = ends(&whole);
    let last_begins = ends[ends.len() - 2];
    for place in MAGIC.len()..last_begins {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let before = ends.iter().filter(|end| **end <= place).count();
        let begins = before.checked_sub(1).map_or(MAGIC.len(), |last| ends[last]);
        match read(directory.path()) {
            Err(JournalError::Damaged { offset, path: told }) => {
                assert_eq!((offset, told), (begins as u64, path.clone()))
            }
            other => panic!("flipped at {place}: {other:?}"),
        }
        let mut heard = Vec::new();
        let recovered = recover(directory.path(), &mut |record| heard.push(record)).unwrap();
        assert_eq!(heard, records()[..before]);
        let aside = recovered.kept_aside.clone().unwrap();
        assert_eq!(fs::read(&aside).unwrap(), damaged[begins..]);
        fs::remove_file(aside).unwrap();
        drop(Writer::open(&recovered).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().len(), begins as u64);
    }
}

#[test]
fn journal_that_grows_while_it_is_read_is_not_taken_for_damaged() {
    const BATCHES: usize = 20_000;
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().to_owned();
    let writing = std::thread::spawn(move || {
        let mut writer = Writer::open(&recover(&directory, &mut |_| {}).unwrap()).unwrap();
        for _ in 0..BATCHES {
            for _ in 0..3 {
                writer.append(&Record::Reached).unwrap();
            }
            writer.flush().unwrap();
        }
    });
    let mut reader = Reader::open(home.path());
    let mut read = 0;
    while read < 3 * BATCHES {
        read += usize::from(reader.next_record().unwrap().is_some());
    }
    writing.join().unwrap();
}

#[test]
fn journal_of_something_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(JOURNAL), b"CRKJRNL2 and more").unwrap();
    assert!(matches!(read(directory.path()), Err(JournalError::Foreign { .. })));
    assert!(matches!(recover(directory.path(), &mut |_| {}), Err(JournalError::Foreign { .. })));
}

#[test]
fn journal_passes_over_kinds_of_a_later_version() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &records()[..1]);
    let mut later = vec![3, 0, 0, 0, 40, 1, 2, 3];
    later.extend(crc32c::crc32c(&later).to_le_bytes());
    fs::OpenOptions::new().append(true).open(directory.path().join(JOURNAL)).unwrap().write_all(&later).unwrap();
    write(directory.path(), &records()[1..]);
    assert_eq!(read(directory.path()).unwrap(), records());
}

#[test]
fn journal_takes_at_most_150_bytes_an_item_beside_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<Vec<u8>> = (0..1000).map(|number| format!("run/{number:07}/detector.h5").into_bytes()).collect();
    let items =
        paths.iter().map(|path| Record::Item(Item { pair: 999, size: u64::MAX, ..item(path, ItemState::Done) }));
    write(directory.path(), &items.collect::<Vec<_>>());
    let taken = fs::metadata(directory.path().join(JOURNAL)).unwrap().len() - MAGIC.len() as u64;
    let beside = taken - paths.iter().map(|path| path.len() as u64).sum::<u64>();
    assert!(beside <= 150 * 1000, "{beside} bytes for 1,000 items");
    let promised = 64 * 1000;
    assert!(beside <= promised, "{beside} bytes for 1,000 items, where {promised} were enough");
}

#[test]
fn items_page_through_failed_ones_first_and_then_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let all: Vec<Record> = (0..50u32)
        .map(|number| {
            let state = [ItemState::Done, ItemState::Failed, ItemState::Skipped][number as usize % 3];
            Record::Item(Item { pair: number % 2, ..item(format!("{number}").as_bytes(), state) })
        })
        .collect();
    write(directory.path(), &all);
    // Of the attempt before, nothing failed stays.
    let mut failed = Writer::begin_failed(directory.path()).unwrap();
    failed.append(&Record::Item(item(b"earlier", ItemState::Failed))).unwrap();
    failed.finish().unwrap();
    let mut failed = Writer::begin_failed(directory.path()).unwrap();
    let is_failed = |record: &&Record| matches!(record, Record::Item(item) if item.state == ItemState::Failed);
    all.iter().filter(is_failed).for_each(|record| failed.append(record).unwrap());
    failed.finish().unwrap();
    for limit in [1, 2, 7, 100] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = items(directory.path(), &ItemFilter::default(), after, limit).unwrap();
            assert!(page.items.len() <= limit);
            found.extend(page.items);
            let Some(next) = page.next else { break };
            after = Some(Cursor::parse(&next.to_string()).unwrap());
        }
        let (one, other): (Vec<_>, Vec<_>) = found.iter().partition(|item| item.state == ItemState::Failed);
        assert_eq!((one.len(), other.len()), (17, 33), "{limit} at a time");
        assert_eq!(found[..17].iter().filter(|item| item.state == ItemState::Failed).count(), 17);
    }
    let filter = ItemFilter { states: vec![ItemState::Skipped], pair: Some(1) };
    let mut seen = 0;
    each_item::<JournalError>(directory.path(), &filter, |item| {
        assert_eq!((item.state, item.pair), (ItemState::Skipped, 1));
        seen += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, 8);
    assert_eq!([Cursor::parse(""), Cursor::parse("x1"), Cursor::parse("f-1"), Cursor::parse("é1")], [None; 4]);
}

#[test]
fn writer_keeps_storage_free_behind_its_end_and_gives_it_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(&recover(directory.path(), &mut |_| {}).unwrap()).unwrap();
    writer.reserve().unwrap();
    writer.append(&records()[0]).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(directory.path()).unwrap(), records()[..1]);
    use std::os::unix::fs::MetadataExt;
    let facts = fs::metadata(directory.path().join(JOURNAL)).unwrap();
    assert!(facts.blocks() * 512 <= 64 << 10, "{} blocks for {} bytes", facts.blocks(), facts.len());
}

fn any_item() -> impl Strategy<Value = Record> {
    let path = proptest::collection::vec(1u8..=255, 0..300);
    (path, 0..3usize, any::<u64>(), any::<u32>(), any::<bool>()).prop_map(|(path, state, size, pair, digest)| {
        let state = [ItemState::Done, ItemState::Failed, ItemState::Skipped][state];
        let digest = digest.then_some([9; 32]);
        Record::Item(Item { pair, size, digest, ..item(&path, state) })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn journal_cut_or_flipped_never_gives_what_was_not_written(
        written in proptest::collection::vec(any_item(), 1..40),
        cut in any::<prop::sample::Index>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 0..3),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(JOURNAL);
        write(directory.path(), &written);
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(MAGIC.len() + cut.index(bytes.len() - MAGIC.len() + 1));
        for (place, bit) in flips {
            if bytes.len() > MAGIC.len() {
                let place = MAGIC.len() + place.index(bytes.len() - MAGIC.len());
                bytes[place] ^= 1 << bit;
            }
        }
        fs::write(&path, &bytes).unwrap();
        let mut heard = Vec::new();
        let recovered = recover(directory.path(), &mut |record| heard.push(record)).unwrap();
        prop_assert_eq!(&heard[..], &written[..heard.len()]);
        let mut writer = Writer::open(&recovered).unwrap();
        writer.append(&records()[0]).unwrap();
        writer.finish().unwrap();
        let again = read(directory.path()).unwrap();
        prop_assert_eq!(&again[..heard.len()], &heard[..]);
        prop_assert_eq!(&again[heard.len()..], &records()[..1]);
    }
}

/// Whatever window is asked for, it is a part of the list that pages give.
#[test]
fn item_windows_are_parts_of_the_list_while_it_grows() {
    let directory = tempfile::tempdir().unwrap();
    let state = |number: usize| match number % 7 {
        0 => ItemState::Skipped,
        1 => ItemState::Failed,
        _ => ItemState::Done,
    };
    let records = |numbers: std::ops::Range<usize>| -> Vec<Record> {
        let one = |number: usize| Record::Item(item(format!("run/{number:05}").as_bytes(), state(number)));
        numbers.map(one).collect()
    };
    let fail = |count: usize| {
        let mut failed = Writer::begin_failed(directory.path()).unwrap();
        (0..count).for_each(|number| {
            failed.append(&Record::Item(item(format!("bad/{number}").as_bytes(), ItemState::Failed))).unwrap();
        });
        failed.finish().unwrap();
    };
    let queries = [(vec![], None), (vec![ItemState::Skipped], None), (vec![], Some("9")), (vec![], Some("*/0001?"))];
    let mut indexes = queries.map(|(states, text)| {
        let query = ItemQuery { states: states.clone(), text: text.map(str::to_owned) };
        (ItemIndex::new(directory.path(), query), states, text)
    });
    let mut check = || {
        for (index, states, text) in &mut indexes {
            let filter = ItemFilter { states: states.clone(), pair: None };
            let mut all = Vec::new();
            each_item::<JournalError>(directory.path(), &filter, |item| {
                let path = String::from_utf8(item.path.clone()).unwrap();
                let passes = match text {
                    Some("9") => path.contains('9'),
                    Some(_) => path.len() == 9 && path.starts_with("run/0001"),
                    None => true,
                };
                all.extend(passes.then_some(item));
                Ok(())
            })
            .unwrap();
            for offset in [0, 1, 2, 255, 256, 257, 1000, all.len().saturating_sub(3), all.len(), all.len() + 5] {
                let window = index.window(offset as u64, 4, [Duration::from_secs(600); 2]).unwrap();
                assert_eq!((window.total, window.is_complete), (all.len() as u64, true), "{states:?} {text:?}");
                let expected: Vec<_> = all.iter().skip(offset).take(4).cloned().collect();
                assert_eq!(window.items, expected, "{states:?} {text:?} from {offset}");
            }
        }
    };
    check();
    write(directory.path(), &records(0..5000));
    fail(3);
    check();
    // The next attempt goes on with the journal, and begins the list of failed items anew.
    write(directory.path(), &records(5000..9000));
    fail(700);
    check();
    fail(1);
    check();
}

#[test]
fn item_window_tells_what_it_has_when_its_time_is_up_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<Record> =
        (0..5000).map(|number| Record::Item(item(format!("{number}").as_bytes(), ItemState::Done))).collect();
    write(directory.path(), &records);
    let mut index = ItemIndex::new(directory.path(), ItemQuery::default());
    let mut totals = Vec::new();
    loop {
        let window = index.window(0, 1, [Duration::ZERO; 2]).unwrap();
        totals.push(window.total);
        if window.is_complete {
            break;
        }
    }
    assert!(totals.len() > 2 && totals.is_sorted() && totals.last() == Some(&5000), "{totals:?}");
    // Items that are found are not held up by the number of all.
    let mut index = ItemIndex::new(directory.path(), ItemQuery::default());
    for (offset, is_complete) in [(0, false), (2500, false), (4998, true)] {
        let window = index.window(offset, 2, [Duration::from_secs(600), Duration::ZERO]).unwrap();
        let found: Vec<Record> = window.items.into_iter().map(Record::Item).collect();
        assert_eq!((&found[..], window.is_complete), (&records[offset as usize..][..2], is_complete), "{offset}");
    }
}

#[test]
fn journal_passes_over_what_was_withdrawn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let time = Moment(1);
    let of = |pair, name: &[u8]| Record::Item(Item { pair, ..item(name, ItemState::Done) });
    let end = |pair| {
        let progress = Progress::default();
        Record::PairEnded(PairEnd { pair, of_sources: false, of_look: false, time, progress })
    };
    write(path, &[of(0, b"a"), of(1, b"b"), of(1, b"c"), end(1), end(0)]);
    let listed = || {
        let page = items(path, &ItemFilter::default(), None, 10).unwrap();
        let names: Vec<Vec<u8>> = page.items.into_iter().map(|item| item.path).collect();
        let mut index = ItemIndex::new(path, ItemQuery::default());
        let window = index.window(0, 10, [std::time::Duration::from_secs(60); 2]).unwrap();
        assert_eq!(window.items.into_iter().map(|item| item.path).collect::<Vec<_>>(), names);
        assert_eq!(window.total, names.len() as u64);
        names
    };
    let mut index = ItemIndex::new(path, ItemQuery::default());
    let mut total = || index.window(0, 10, [std::time::Duration::from_secs(60); 2]).unwrap().total;
    assert_eq!((listed().len(), total()), (3, 3));
    let mut reader = Reader::open(path);
    let mut places = Vec::new();
    while reader.next_record().unwrap().is_some() {
        places.push(reader.record_began());
    }
    let mut withdrawn = Withdrawn::default();
    withdrawn.item(places[1]);
    withdrawn.save(path).unwrap();
    assert_eq!(Withdrawn::load(path).unwrap(), withdrawn);
    assert_eq!(listed(), [b"a".to_vec(), b"c".to_vec()]);
    // An index that was made before notices.
    assert_eq!(total(), 2);
    // Of a pair that begins anew nothing counts, not even that it had ended.
    withdrawn.pair(1, reader.offset());
    withdrawn.save(path).unwrap();
    write(path, &[of(1, b"d")]);
    assert_eq!(listed(), [b"a".to_vec(), b"d".to_vec()]);
    let mut ended = Vec::new();
    recover(path, &mut |record| {
        if let Record::PairEnded(end) = record {
            ended.push(end.pair);
        }
    })
    .unwrap();
    assert_eq!(ended, [0]);
    // What stands where a cut was made is something else.
    let whole = fs::read(path.join(JOURNAL)).unwrap();
    fs::write(path.join(JOURNAL), &whole[..usize::try_from(places[1]).unwrap()]).unwrap();
    fs::OpenOptions::new().append(true).open(path.join(JOURNAL)).unwrap().write_all(b"torn").unwrap();
    write(path, &[of(1, b"e")]);
    assert_eq!(listed(), [b"a".to_vec(), b"e".to_vec()]);
    fs::write(path.join("withdrawn"), "item x\n").unwrap();
    assert!(items(path, &ItemFilter::default(), None, 10).is_err());
}

#[test]
fn what_failed_last_is_known_whatever_was_told_of_it_before() {
    let (time, progress) = (Moment(1), Progress::default());
    let began = |fence| Record::Began { fence, time, process: 1, program: String::new() };
    let of = |name: &[u8], state| Record::Item(item(name, state));
    let end = |of_sources| {
        Record::PairEnded(PairEnd { pair: 0, of_sources, of_look: false, time, progress: progress.clone() })
    };
    let (done, failed) = (ItemState::Done, ItemState::Failed);
    let told = |records: &[Record]| {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), records);
        let names = failed_last(directory.path(), 0).unwrap().into_iter();
        names.map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>().join(" ")
    };
    // It was copied, then altered, and could not be sent again.
    let altered = [began(1), of(b"a", done), of(b"b", done), began(2), of(b"a", failed), of(b"b", done), end(false)];
    assert_eq!(told(&altered), "a");
    assert_eq!(told(&[&altered[..], &[began(3)]].concat()), "a");
    assert_eq!(told(&[&altered[..], &[began(3), of(b"a", done)]].concat()), "");
    // A pass that tells both, in either order.
    assert_eq!(told(&[began(1), of(b"a", failed), of(b"a", done), end(false)]), "");
    assert_eq!(told(&[began(1), of(b"a", done), of(b"a", failed), end(false)]), "a");
    // One that was broken off, and a source that could not be deleted.
    assert_eq!(told(&[began(1), of(b"a", failed), began(2), of(b"b", done), end(false)]), "");
    assert_eq!(told(&[began(1), of(b"a", done), end(false), of(b"a", failed), end(true)]), "");
    let of_other = Record::Item(Item { pair: 1, ..item(b"a", failed) });
    assert_eq!(told(&[began(1), of_other, end(false)]), "");
}
