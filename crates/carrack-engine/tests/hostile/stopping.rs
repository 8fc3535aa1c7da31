//! Work that takes hours ends soon after it was stopped, whatever it waits for or computes.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carrack_core::location::Location;
use carrack_core::report::{ErrorCode, Event};
use carrack_core::request::{CopyOptions, CopyRequest, Digests, EndOptions};
use carrack_core::tuning::Tuning;
use carrack_engine::files::Files;
use carrack_engine::{Context, Copy, StopReason};

use crate::sandbox::directory;
use crate::watch::Watch;

/// More than any machine digests while a test is waited for.
const HUGE: u64 = 1 << 43;

/// At a byte a second the first slice is paced for three days.
#[test]
fn stop_reaches_streams_that_are_held_back_by_the_rate_limit() {
    let _watch = Watch::start();
    let place = directory();
    std::fs::write(place.path().join("from"), vec![7; 8 << 20]).unwrap();
    let there = |name: &str| Location::Local(place.path().join(name).into_os_string().into_encoded_bytes());
    let options = CopyOptions { rate_limit: Some(1), ..CopyOptions::default() };
    let request = CopyRequest { sources: vec![there("from")], destination: there("to"), options };
    // Quickly told that something waits, so that the test need not guess when it does.
    let tuning = Tuning { stages_interval: Duration::from_millis(20), ..Tuning::DEFAULT };
    let mut copy = Copy::start(request, &Context { tuning: Arc::new(tuning), ..Context::default() });
    let is_found = |event: &Event| matches!(event, Event::Progress(progress) if progress.bytes_found > 0);
    while !copy.next_event().is_some_and(|event| is_found(&event)) {}
    copy.cancel();
    let report = copy.wait();
    assert_eq!(report.error.map(|error| error.code), Some(ErrorCode::Interrupted));
}

#[test]
fn stop_reaches_a_sum_in_the_middle_of_a_file() {
    let _watch = Watch::start();
    let place = directory();
    let file = place.path().join("huge");
    File::create(&file).unwrap().set_len(HUGE).unwrap();
    let context = Context::default();
    let location = Location::Local(place.path().as_os_str().as_encoded_bytes().to_vec());
    let mut files = Files::open(&location, &EndOptions::default(), &context, &|_| {}).unwrap();
    let (stop, path) = (context.stop.clone(), file.clone().into_os_string().into_encoded_bytes());
    let stopper = std::thread::spawn(move || {
        while !is_open(&file) {
            std::thread::yield_now();
        }
        stop.request(StopReason::Cancel);
    });
    let summed = files.sum(&path, Digests::BLAKE3, &mut |_| {});
    stopper.join().unwrap();
    assert_eq!(summed.map_err(|error| error.code), Err(ErrorCode::Interrupted));
    drop(files);
}

/// Whether this process reads it.
fn is_open(file: &Path) -> bool {
    let mut descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    descriptors.any(|descriptor| std::fs::read_link(descriptor.path()).is_ok_and(|open| open == file))
}
