//! A timeline that is written is read again: whole, cut off, long and altered.

use std::io::Cursor;
use std::time::{Duration, SystemTime};

use carrack_core::report::{Counts, EndSample, Event, Failure, RateFall, Report, Side};
use carrack_core::timeline::{Point, Sample};
use serde_json::json;

use super::read::{ReadError, Recording, read};
use super::write::TimelineFile;
use crate::output::sample::tests::full;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn recorded(tell: impl FnOnce(&mut TimelineFile), report: Option<&Report>) -> (Vec<u8>, Recording) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let asked = json!({ "sources": ["a"], "destination": "b" });
    let mut file = TimelineFile::create(path.as_os_str().as_encoded_bytes(), asked, NOW).unwrap();
    tell(&mut file);
    match report {
        Some(report) => file.finish(report, false, 0, NOW).unwrap(),
        None => drop(file),
    }
    let bytes = std::fs::read(path).unwrap();
    let recording = read(&bytes[..]).unwrap();
    (bytes, recording)
}

fn sample(side: Side, second: u64) -> Event {
    let sample = Sample { at_us: second * 1_000_000, bytes: second, ..full(side).point.sample };
    let point = Point { at_us: second * 1_000_000, error_us: 9, sample };
    Event::Sample(Box::new(EndSample { side, session: 0, point }))
}

#[test]
fn timeline_is_read_as_it_was_written() {
    let lost = Failure::new(carrack_core::report::ErrorCode::ConnectionLost, Side::Link, "gone");
    let fall = RateFall { rate: 1e6, usual: 2e6, over: Duration::from_secs(10), limit: None };
    let (_, recording) = recorded(
        |file| {
            file.event(&Event::Ends(Box::default()), NOW);
            file.event(&sample(Side::Source, 1), NOW);
            file.event(&sample(Side::Destination, 1), NOW);
            file.event(&Event::StreamEnded { failure: Some(lost) }, NOW);
            file.event(&Event::RateFell(fall), NOW);
            file.event(&sample(Side::Source, 2), NOW);
        },
        Some(&Report { counts: Counts { bytes: 77, ..Counts::default() }, ..Report::default() }),
    );
    assert_eq!(recording.header["asked"]["destination"], "b");
    let kinds: Vec<&str> = recording.events.iter().map(|event| &event.kind[..]).collect();
    assert_eq!(kinds, ["ends", "stream-ended", "rate-fell"]);
    assert_eq!(recording.events[2].fields["before"], 2_000_000);
    assert_eq!((recording.samples, recording.is_cut), (3, false));
    let points = recording.timeline.series(Side::Source).unwrap().points();
    assert_eq!(points.len(), 2);
    let Event::Sample(told) = sample(Side::Source, 2) else { panic!() };
    assert_eq!(points[1], told.point);
    assert_eq!(recording.summary.unwrap()["bytes"], 77);
}

/// A copy that is killed at any moment leaves a file that is read up to its last whole line.
#[test]
fn timeline_of_a_killed_copy_is_read_wherever_it_was_cut() {
    let tell = |file: &mut TimelineFile| (1..4).for_each(|second| file.event(&sample(Side::Source, second), NOW));
    let (bytes, whole) = recorded(tell, None);
    assert!(whole.summary.is_none() && !whole.is_cut && whole.samples == 3);
    let first = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for end in (0..bytes.len()).step_by(7) {
        let cut = &bytes[..end];
        match read(cut) {
            Ok(recording) => {
                assert_eq!(recording.is_cut, cut.last() != Some(&b'\n'));
                let lines = cut.iter().filter(|&&byte| byte == b'\n').count() as u64;
                assert_eq!(recording.samples, lines - 1);
            }
            Err(ReadError::Line { number, .. }) => assert!(number == 1 && end < first, "at {end}"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A copy of a week with many streams: the file stays within bounds, the first and the last sample of each end are
/// there, and so is what happened.
#[test]
fn timeline_of_a_long_copy_is_thinned_and_has_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let mut file = TimelineFile::create(path.as_os_str().as_encoded_bytes(), json!({}), NOW).unwrap();
    // As large as with 256 streams, without the time that those would take here.
    const SECONDS: u64 = 40_000;
    for second in 1..=SECONDS {
        file.event(&sample(Side::Source, second), NOW);
        file.event(&sample(Side::Destination, second), NOW);
    }
    file.finish(&Report::default(), false, 0, NOW).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() < 48 << 20, "{} bytes", bytes.len());
    let recording = read(Cursor::new(&bytes)).unwrap();
    for side in [Side::Source, Side::Destination] {
        let points = recording.timeline.series(side).unwrap().points();
        let seconds = |point: &Point| point.at_us / 1_000_000;
        assert_eq!((seconds(&points[0]), seconds(&points[points.len() - 1])), (1, SECONDS));
    }
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert!(lines < SECONDS && recording.samples == lines - 2, "{lines} lines");
}

#[test]
fn read_names_the_line_that_is_wrong() {
    let first = r#"{"v":1,"type":"timeline","time":"","asked":{}}"#;
    let cases = [
        (String::new(), 1, "no timeline"),
        ("{\"v\":1,\"type\":\"sample\"}\n".into(), 1, "no timeline"),
        ("hello\n".into(), 1, "no JSON"),
        (format!("{first}\n{first}\n"), 2, "second"),
        (format!("{first}\n[]\n"), 2, "no object"),
        (format!("{first}\n{{}}\n"), 2, "version"),
        (format!("{first}\n\n"), 2, "no JSON"),
        (format!("{first}\n{{\"v\":2,\"type\":\"sample\"}}\n"), 2, "version"),
        (format!("{first}\n{{\"v\":1,\"type\":\"x\"}}\n{{\"v\":1,\"type\":\"sample\",\"side\":1}}\n"), 3, "side"),
        (format!("{first}\n{{\"v\":1,\"type\":\"x\",\"at_us\":-1}}\n"), 2, "at_us"),
        (format!("{first}\n{}\n", "x".repeat(2 << 20)), 2, "bytes"),
        (format!("{first}\n{}\n", "[".repeat(1 << 19)), 2, "no JSON"),
    ];
    for (text, line, word) in cases {
        match read(text.as_bytes()) {
            Err(ReadError::Line { number, why }) => {
                assert!(number == line && why.contains(word), "{number}: {why}, not {line}: {word}");
            }
            other => panic!("{other:?} of {:?}", &text[..text.len().min(200)]),
        }
    }
}

/// The corpus of the fuzzer, and a file of ours.
fn seeds() -> Vec<Vec<u8>> {
    let (bytes, _) = recorded(
        |file| (1..3).for_each(|second| file.event(&sample(Side::Source, second), NOW)),
        Some(&Report::default()),
    );
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/timeline");
    let mut files: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    files.iter().map(|file| std::fs::read(file).unwrap()).chain([bytes]).collect()
}

/// Reads a file, and shows it in every way if it can be read.
fn is_read(bytes: &[u8]) -> bool {
    let Ok(recording) = read(bytes) else { return false };
    #[cfg(feature = "terminal")]
    {
        use super::{page, phases, start, terminal, view::View};
        let view = View::of(&recording);
        let paper = crate::output::plot::text::Paper { columns: 80, is_ascii: true };
        assert!(terminal::lines(&view, paper).iter().all(|line| line.is_ascii() && !line.contains('\u{1b}')));
        assert!(page::page(&view).ends_with("</html>\n"));
        drop((phases::phases(&view), start::rows(&recording)));
    }
    drop(recording);
    true
}

#[test]
fn corpus_of_the_fuzzer_can_be_read() {
    seeds().iter().for_each(|seed| assert!(is_read(seed), "{}", String::from_utf8_lossy(seed)));
}

/// Whatever a file has in it, reading and showing it ends with an answer.
#[test]
fn read_of_an_altered_file_does_not_panic() {
    let seeds = seeds();
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for round in 0..4000 {
        let mut altered = seeds[round % seeds.len()].clone();
        for _ in 0..=next(3) {
            let (at, with) = (next(altered.len()), b"{}[]\",:0919eE-.\n\xff\0tn"[next(20)]);
            match next(4) {
                0 => altered[at] = with,
                1 => altered.insert(at, with),
                2 => drop(altered.remove(at)),
                _ => {
                    let end = (at + next(60)).min(altered.len());
                    drop(altered.drain(at..end));
                }
            }
        }
        refused += u32::from(!is_read(&altered));
    }
    assert!(refused > 400, "{refused}");
}
