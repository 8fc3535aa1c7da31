//! A whole copy told to a log and a manifest.

use std::fs;
use std::path::Path;

use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemFailure, ItemKind, ItemReport, Progress, Side};

use super::*;

fn options(directory: &Path) -> OutputOptions {
    let path = |name: &str| Some(directory.join(name).into_os_string().into_encoded_bytes());
    OutputOptions {
        verbose: 0,
        quiet: true,
        json: false,
        log_file: path("log"),
        failed_list: None,
        manifest: path("sums"),
        bar: BarChoice::Never,
        stats: Duration::ZERO,
        dry_run: false,
    }
}

fn refused() -> Failure {
    Failure { code: ErrorCode::PermissionDenied, side: Side::Source, message: "no".to_owned() }
}

fn item(path: &[u8], outcome: Outcome) -> Event {
    let digests = FileDigests { blake3: Some([0; 32]), ..FileDigests::default() };
    Event::Item(ItemReport { path: path.to_vec(), kind: ItemKind::File, size: 1, digests, outcome })
}

#[test]
fn log_and_manifest_hear_everything_even_when_quiet() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Output::open(options(directory.path())).expect("opened");
    output.event(&Event::Resolved { sources: vec!["a".into()], targets: vec!["b/a".into()] });
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
        files: 3,
        files_failed: 1,
        failures: vec![ItemFailure { path: b"z".to_vec(), failure: refused() }],
        ..Report::default()
    };
    assert_eq!(output.finish(&report), exit::PARTIAL);

    let log = fs::read_to_string(directory.path().join("log")).expect("a log");
    for line in ["a -> b/a", "failed: source: z: no", "copied 3 files", "1 file left out of the manifest"] {
        assert_eq!(log.matches(line).count(), 1, "{line} in\n{log}");
    }
    let manifest = fs::read_to_string(directory.path().join("sums")).expect("a manifest");
    assert_eq!(manifest.lines().count(), 2);
}

#[test]
fn a_copy_that_broke_off_gives_no_manifest() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Output::open(options(directory.path())).expect("opened");
    output.event(&item(b"x", Outcome::Published));
    let error = Failure { code: ErrorCode::Interrupted, side: Side::Command, message: "stopped".into() };
    assert_eq!(output.finish(&Report { error: Some(error), ..Report::default() }), exit::INTERRUPTED);
    assert!(!directory.path().join("sums").exists());
    let log = fs::read_to_string(directory.path().join("log")).expect("a log");
    assert!(log.contains("error: stopped") && log.contains("sums.part") && !log.contains("copied 0"), "{log}");
}

#[test]
fn what_cannot_be_opened_is_told_before_anything_moves() {
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
