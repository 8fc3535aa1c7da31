//! How a sending end is started.

use std::sync::mpsc;
use std::time::Duration;

use carrack_core::wire::peer::PeerMessage;

use super::*;
use crate::storage::synthetic::Synthetic;
use crate::transfer::tests::options;

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
