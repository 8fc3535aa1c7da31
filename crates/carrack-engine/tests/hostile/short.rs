//! A copy that ends at once: it is not asked for what only a longer one needs.

use std::time::Duration;

use carrack_core::report::{Report, Side};
use carrack_core::request::{CopyOptions, Durability};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::raw::*;

use crate::fake_node::{FakeNode, IMPATIENT, pull_tuned};
use crate::refusing::send_file;
use crate::sandbox::Sandbox;
use crate::watch::Watch;

/// Pulls one small file; how often its node was asked for its clock.
fn pulled(unmeasured: Duration) -> (Report, usize) {
    let sandbox = Sandbox::new();
    let (count, counted) = std::sync::mpsc::channel();
    let node = FakeNode::start(move |node| {
        send_file(node);
        // Until the command leaves: it asks nothing behind that.
        while let Some((request, ask)) = node.next() {
            match node.honest(&ask) {
                Some(answer) => node.tell(request, answer),
                None => break,
            }
        }
        count.send(node.seen.iter().filter(|ask| matches!(ask, Ask::Clock(_))).count()).unwrap();
    });
    let options = CopyOptions { durability: Durability::None, resume: false, ..CopyOptions::default() };
    let report = pull_tuned(&node, "/f", &sandbox, options, Tuning { unmeasured, ..IMPATIENT });
    node.join();
    assert_eq!((report.error.as_ref(), report.counts.files), (None, 1));
    (report, counted.recv().unwrap())
}

#[test]
fn short_copy_asks_for_no_clock() {
    let _watch = Watch::start();
    let (report, questions) = pulled(Duration::from_secs(600));
    assert_eq!(questions, 0);
    // It is measured all the same, once, and without what the host counts.
    let timeline = report.timeline.unwrap();
    let points = timeline.series(Side::Destination).unwrap().points();
    assert_eq!((points.len(), points[0].sample.bytes), (1, 5));
    assert_eq!(points[0].sample.processor_state.cores, 0);
    // The fake tells nothing of its clock in its greeting, and this end does.
    assert!(points[0].error_us < points[0].at_us, "{points:?}");
}

#[test]
fn copy_that_has_run_for_a_while_asks_for_clocks() {
    let _watch = Watch::start();
    let (_, questions) = pulled(Duration::ZERO);
    assert!(questions >= 1, "{questions}");
}
