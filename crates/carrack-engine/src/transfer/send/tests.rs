//! How a sending end is started.

use std::sync::mpsc;
use std::time::Duration;

use carrack_core::report::ItemKind;
use carrack_core::timeline::Work;
use carrack_core::wire::peer::PeerMessage;

use super::*;
use crate::storage::over::{Act, Call, Hook, over_source};
use crate::storage::synthetic::Synthetic;
use crate::transfer::tests::options;

/// Opens quickly and reads slowly.
struct SlowReads;

impl Hook for SlowReads {
    fn before(&self, call: Call, _: u64) -> Act {
        match call {
            Call::Open => std::thread::sleep(Duration::from_millis(1)),
            Call::ReadWhole => std::thread::sleep(Duration::from_millis(30)),
            _ => {}
        }
        Act::Go
    }
}

/// Files of a bundle are opened and read by threads that a stream waits for: it waits for what they do.
#[test]
fn slow_reads_of_small_files_are_not_taken_for_finding_them() {
    let voice = Voice { peer: Arc::new(|_| Ok(())), command: Arc::new(|_| {}), measured: Default::default() };
    let hook: Arc<dyn Hook> = Arc::new(SlowReads);
    let source = over_source(Box::new(Synthetic::Zeros(1000)), &hook);
    let root = Root { source, target: b"zeros".to_vec(), typed: Vec::new() };
    let tuning = Arc::new(Tuning { metadata_workers: 8, ..Tuning::default() });
    let run = SendRun::start(options(), vec![root], SendChoice::default(), false, voice, tuning).unwrap();
    let items = vec![ScannedItem::new(0, Vec::new(), ItemKind::File); 8];
    assert_eq!(run.read_ahead(StreamId(0), &items).len(), items.len());
    let mut sample = Sample::default();
    run.driver.stages.fill(&mut sample);
    run.driver.cancel(failure(ErrorCode::Interrupted, Side::Command, "the test is over"));
    run.driver.join();
    let [found, read] = [Work::Find, Work::Read].map(|work| sample.stages.of(work));
    assert!(read.waited_us > 3 * found.waited_us && read.calls == 1, "{found:?} {read:?}");
}

/// What the peer answers is handed in by whoever has started the run: it must know the run before
/// there is anything to answer.
#[test]
fn offers_wait_until_the_owner_knows_the_run_and_then_for_no_stream() {
    let options = TransferOptions { item_events: false, ..options() };
    let (said, hear) = mpsc::channel();
    let voice = Voice {
        peer: Arc::new(move |message| {
            let _ = said.send(message.clone());
            Ok(())
        }),
        command: Arc::new(|_| {}),
        measured: Default::default(),
    };
    let root = Root { source: Box::new(Synthetic::Zeros(5 << 20)), target: b"zeros".to_vec(), typed: Vec::new() };
    let run = SendRun::start(options, vec![root], SendChoice::default(), false, voice, Arc::default()).unwrap();
    let early = hear.recv_timeout(Duration::from_millis(200));
    run.look_for_sources();
    let offered = hear.recv_timeout(Duration::from_secs(20)).unwrap();
    run.driver.cancel(failure(ErrorCode::Interrupted, Side::Command, "the test is over"));
    run.driver.join();
    assert!(matches!(offered, PeerMessage::Offer(_)), "{offered:?}");
    assert!(early.is_err(), "{early:?}");
}
