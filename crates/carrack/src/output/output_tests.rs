//! A whole copy told to a log and a manifest.

use std::fs;
use std::path::Path;

use carrack_core::report::{
    Counts, ErrorCode, Failure, FileDigests, ItemFailure, ItemKind, ItemReport, Progress, Side,
};

use std::time::Duration;

use super::itemized::ContentWay;
use super::*;

fn options(directory: &Path) -> OutputOptions {
    let path = |name: &str| Some(directory.join(name).into_os_string().into_encoded_bytes());
    OutputOptions {
        verbose: 0,
        quiet: true,
        json: false,
        log_file: path("log"),
        failed_list: None,
        timeline: None,
        receipt: None,
        manifest: path("sums"),
        bar: BarChoice::Never,
        stats: Duration::ZERO,
        figures: false,
        lines: None,
        direction: ContentWay::Beside,
        dry_run: false,
        strict: false,
        destination: CopyTarget::Other,
    }
}

fn refused() -> Failure {
    Failure::new(ErrorCode::PermissionDenied, Side::Source, "no")
}

fn item(path: &[u8], outcome: Outcome) -> Event {
    let digests = FileDigests { blake3: Some([0; 32]), ..FileDigests::default() };
    Event::Item(ItemReport { path: path.to_vec(), kind: ItemKind::File, size: 1, digests, judgment: None, outcome })
}

#[test]
fn log_and_manifest_hear_everything_even_when_quiet() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Output::open(options(directory.path())).expect("opened");
    output.event(&Event::Resolved { sources: vec!["a".into()], targets: vec!["b/a".into()], directory: None });
    std::thread::scope(|scope| {
        for name in [b"x", b"y"] {
            let output = &output;
            scope.spawn(move || output.event(&item(name, Outcome::Published)));
        }
    });
    output.event(&Event::Progress(Progress::default()));
    output.event(&item(b"\xff", Outcome::Published));
    output.event(&item(b"z", Outcome::Failed(refused())));
    let report = Report {
        counts: Counts { files: 3, files_failed: 1, ..Counts::default() },
        failures: vec![ItemFailure { path: b"z".to_vec(), failure: refused() }],
        ..Report::default()
    };
    assert_eq!(output.finish(&report, None), exit::PARTIAL);

    let log = fs::read_to_string(directory.path().join("log")).expect("a log");
    for line in ["a -> b/a", "failed: source: z: no", "copied 3 files", "1 file left out of the manifest"] {
        assert_eq!(log.matches(line).count(), 1, "{line} in\n{log}");
    }
    let manifest = fs::read_to_string(directory.path().join("sums")).expect("a manifest");
    assert_eq!(manifest.lines().count(), 2);
}

#[test]
fn copy_that_broke_off_gives_no_manifest() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Output::open(options(directory.path())).expect("opened");
    output.event(&item(b"x", Outcome::Published));
    let error = Failure::new(ErrorCode::Interrupted, Side::Command, "stopped");
    assert_eq!(output.finish(&Report { error: Some(error), ..Report::default() }, None), exit::INTERRUPTED);
    assert!(!directory.path().join("sums").exists());
    let log = fs::read_to_string(directory.path().join("log")).expect("a log");
    assert!(log.contains("error: stopped") && log.contains("sums.part") && !log.contains("copied 0"), "{log}");
}

#[test]
fn outputs_that_cannot_be_opened_are_told_before_anything_moves() {
    let directory = tempfile::tempdir().expect("a directory");
    for bad in ["log", "sums"] {
        let mut options = options(&directory.path().join("missing"));
        if bad == "log" {
            options.manifest = None
        } else {
            options.log_file = None
        }
        let error = Output::open(options).err().expect("refused");
        assert_eq!(error.exit_code(), exit::FILE);
        assert!(error.to_string().contains(bad), "{error}");
    }
}

/// Nothing that a peer counts, times or names can end the command, whatever it is.
#[test]
fn numbers_at_their_ends_are_told() {
    use carrack_core::pace::limit::{Limit, Stage};
    use carrack_core::pace::streams::{Change, Reason};
    use carrack_core::report::{Faults, LinkReport, StreamsFrom};
    use carrack_core::request::LinkKind;

    const MAX: u64 = u64::MAX;
    let directory = tempfile::tempdir().expect("a directory");
    for (rate, time) in
        [(f64::MAX, Duration::MAX), (f64::NAN, Duration::ZERO), (f64::INFINITY, Duration::from_nanos(1))]
    {
        let options = OutputOptions { verbose: 2, stats: Duration::from_nanos(1), ..options(directory.path()) };
        let output = Output::open(options).expect("opened");
        let link = LinkReport {
            kind: LinkKind::Direct,
            address: "\u{202e}".into(),
            from: None,
            streams: u16::MAX,
            streams_from: StreamsFrom::Kept,
            cipher: String::new(),
        };
        output.event(&Event::Linked(link.clone()));
        output.event(&Event::Streams(Change { streams: 0, before: u16::MAX, rate, loss: rate, reason: Reason::Back }));
        let (failure, files_done) = (refused(), MAX);
        output.event(&Event::SessionLost { failure, attempt: u32::MAX, pause: time });
        for (bytes_done, scan_complete) in [(0, true), (MAX, true), (1, true), (MAX, false)] {
            let counts = Progress { files_done, bytes_done, scan_complete, files_failed: MAX, ..Progress::default() };
            output.event(&Event::Progress(counts));
            output.event(&Event::Progress(Progress { bytes_found: MAX, files_found: MAX, ..counts }));
        }
        output.event(&Event::Item(ItemReport {
            path: Vec::new(),
            kind: ItemKind::Special,
            size: MAX,
            digests: FileDigests::default(),
            judgment: None,
            outcome: Outcome::Published,
        }));
        let faults = Faults::from_values(vec![MAX; 64]);
        let counts = Counts { files_vanished: MAX - 1, leftovers_skipped: 0, ..Counts::from_values(vec![MAX; 64]) };
        let report = Report {
            counts,
            elapsed: time,
            moving: time,
            link: Some(link),
            limit: Some(Limit { stage: Stage::Network, share: rate }),
            faults,
            error: Some(refused()),
            ..Report::default()
        };
        assert_eq!(output.finish(&report, None), exit::FILE);
    }
}
