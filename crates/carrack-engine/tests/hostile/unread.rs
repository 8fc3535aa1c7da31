//! An end that tells more than whoever reads the command's output takes: it has to wait, and the
//! command's memory does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use carrack_core::location::Location;
use carrack_core::report::Event;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_core::wire::control::raw::*;

use carrack_engine::{Context, Copy};

use crate::fake_node::FakeNode;
use crate::sandbox::Sandbox;
use crate::watch::Watch;

const MESSAGES: usize = 3000;

/// Until a count has stood still for a while: it is as large as it becomes.
fn settled(count: &AtomicUsize) -> usize {
    let (mut seen, mut since) = (count.load(Ordering::Relaxed), Instant::now());
    while since.elapsed() < Duration::from_millis(700) {
        std::thread::sleep(Duration::from_millis(10));
        let now = count.load(Ordering::Relaxed);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
    seen
}

#[test]
fn reports_that_nobody_takes_wait_at_the_end_that_tells_them() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let sent = Arc::new(AtomicUsize::new(0));
    let sending = Arc::clone(&sent);
    let node = FakeNode::start(move |node| {
        node.begin();
        for _ in 0..MESSAGES {
            let item =
                |number: usize| Item { path: format!("f/{number:0>200}").into_bytes(), kind: 1, ..Item::default() };
            node.tell(0, Tell::Items(Items { list: (0..200).map(item).collect() }));
            sending.fetch_add(1, Ordering::Relaxed);
        }
        node.leave();
    });
    let mut directory = sandbox.root().into_os_string().into_encoded_bytes();
    directory.push(b'/');
    let options = CopyOptions { retries: 0, streams: Some(1), item_events: true, ..CopyOptions::default() };
    let request = CopyRequest { sources: vec![node.at("/f")], destination: Location::Local(directory), options };
    let (mut heard, mut held) = (0, 0);
    let mut copy = Copy::start(request, &Context::default());
    while let Some(event) = copy.next_event() {
        if matches!(event, Event::Item(_)) {
            heard += 1;
            if heard == 1 {
                held = settled(&sent);
            }
        }
    }
    let report = copy.wait();
    node.join();
    assert!(report.error.is_some());
    assert!(held > 0 && held < MESSAGES / 2, "{held} messages were taken although nobody read them");
    assert!(heard > held * 200, "what was told later did not arrive");
    sandbox.assert_untouched();
}
