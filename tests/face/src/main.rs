//! A program that has the engine inside, as somebody else would write it. In this one process two nodes serve and three
//! copies run: one is cancelled while another goes on, and a third takes up what the cancelled one left.
//!
//! What holds is asserted here; `tests/face.rs` looks at the process from outside. It says nothing, and ends as
//! [`ENDED`] says: by itself.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use carrack_core::location::Location;
use carrack_core::report::{ErrorCode, Event};
use carrack_engine::{Context, Copy, Place, Standard};
use carrack_face::{Site, code, content};

/// No code that anybody else would end a process with.
const ENDED: u8 = 77;

const LARGE_BYTES: usize = 48 << 20;
const SMALL_BYTES: usize = 4 << 20;
/// Of the large file, before its copy is cancelled; and a second's worth.
const PART_BYTES: u64 = 8 << 20;

fn main() -> ExitCode {
    let directory = PathBuf::from(std::env::args_os().nth(1).expect("a directory to work in"));
    let (source, large, small) = (directory.join("source"), content(LARGE_BYTES, 1), content(SMALL_BYTES, 2));
    fs::create_dir(&source).expect("made");
    fs::write(source.join("large"), &large).expect("written");
    let one = Site::start(&directory, "one");
    let other = Site::start(&directory, "other");

    // Its local end reaches one directory and nothing else.
    let confined = || Context { local: Place::beneath(&source).expect("a directory"), ..Context::default() };
    let request = one.request(Location::Local(b"/large".to_vec()), "/large");
    let mut refused = request.clone();
    refused.options.destination = other.shown();
    assert_eq!(code(&Copy::start(refused, &confined()).wait()), Some(ErrorCode::AuthenticationFailed));

    let mut paced = request.clone();
    paced.options.rate_limit = Some(PART_BYTES);
    let mut cancelled = Copy::start(paced, &confined());
    let (input, mut feed) = std::io::pipe().expect("a pipe");
    let input = File::from(OwnedFd::from(input));
    let standard = Standard { input: Some(Arc::new(move || input.try_clone())), ..Standard::default() };
    let goes_on = Copy::start(other.request(Location::Stdio, "/small"), &Context { standard, ..Context::default() });
    feed.write_all(&small[..SMALL_BYTES / 2]).expect("taken");

    while let Some(event) = cancelled.next_event() {
        if matches!(event, Event::Progress(progress) if progress.bytes_done >= PART_BYTES) {
            cancelled.cancel();
        }
    }
    assert_eq!(code(&cancelled.wait()), Some(ErrorCode::Interrupted));
    assert!(!one.root.join("large").exists());

    assert!(!goes_on.has_ended() && !other.root.join("small").exists());
    feed.write_all(&small[SMALL_BYTES / 2..]).expect("taken");
    drop(feed);
    let report = goes_on.wait();
    assert_eq!((report.error, report.counts.files), (None, 1));
    assert!(fs::read(other.root.join("small")).expect("there") == small);

    let report = Copy::start(request, &confined()).wait();
    assert_eq!((report.error.as_ref(), report.counts.files), (None, 1));
    assert!(report.counts.bytes_resumed >= PART_BYTES / 2, "{} bytes were there", report.counts.bytes_resumed);
    assert!(fs::read(one.root.join("large")).expect("there") == large);

    [one, other].into_iter().for_each(Site::end);
    ExitCode::from(ENDED)
}
