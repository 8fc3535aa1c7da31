//! How a receiving end is left.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use carrack_core::attributes::{Attributes, Time};
use carrack_core::digest::BlockDigest;
use carrack_core::ids::ItemId;
use carrack_core::limits;
use carrack_core::report::ErrorCode;
use carrack_core::request::Durability;
use carrack_core::wire::peer::Offer;
use carrack_sys::dir::Dir;

use super::*;
use crate::data::hasher::BlockHasher;
use crate::error::failure;
use crate::storage::posix::tree::{OpenedPart, Tree};
use crate::storage::properties::MarkerRequest;
use crate::storage::properties::Properties;
use crate::transfer::tests::options;

const BLOCK: usize = 1 << 20;
/// As long as somebody may wait who waits in vain.
const PATIENCE: Duration = Duration::from_secs(60);

const IMPATIENT: Tuning = Tuning {
    leave_patience: Duration::from_millis(50),
    marker_lock_patience: Duration::from_millis(50),
    ..Tuning::DEFAULT
};

fn session(directory: &Path) -> Tree {
    let request = MarkerRequest { key: [7; limits::MARKER_KEY_BYTES], anew: false, partial: false };
    Tree::new(Dir::open_ambient(directory).unwrap(), false, Some(request), Durability::None, &Arc::new(IMPATIENT))
        .unwrap()
}

fn offer() -> Offer {
    Offer {
        size: Some(2 * BLOCK as u64),
        path: b"f".to_vec(),
        attributes: Attributes::new(0o644, Time::new(1, 2)),
        item: ItemId(1),
        sparse: false,
        fingerprint: None,
    }
}

fn markers(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.as_encoded_bytes().ends_with(b".marker")).count()
}

/// Writes a block of a part file and has the marker claim it.
fn write_block(tree: &Tree) {
    let OpenedPart::Fresh(part) =
        tree.open_part(&new_file(&offer(), &Properties::FILES), &write_options(&options()), true).unwrap()
    else {
        panic!("not fresh")
    };
    let content = vec![3; BLOCK];
    let mut hasher = BlockHasher::new(options().digests, 0);
    hasher.update(&content);
    let digest: BlockDigest = hasher.finish(false);
    part.write(0, &content).unwrap();
    assert_eq!(part.checkpoint(&[(0, digest)], false).unwrap().len(), 0);
    part.leave();
}

#[test]
fn marker_stays_locked_until_the_last_thread_has_left_storage() {
    let directory = tempfile::tempdir().unwrap();
    let tree = session(directory.path());
    write_block(&tree);
    let (told, hear) = mpsc::channel();
    let voice = Voice {
        peer: Arc::new(|_| Ok(())),
        command: Arc::new(move |tell| {
            if let Tell::Ended(ended) = tell {
                let _ = told.send(ended);
            }
        }),
        measured: Default::default(),
    };
    let expected = Expected::new([b"f".to_vec()]);
    let run = ReceiveRun::start(options(), Box::new(tree), expected, voice, Arc::new(IMPATIENT)).unwrap();
    let (let_go, held) = mpsc::channel::<()>();
    // As a stream's thread does whose write does not return.
    run.spawn("a test", move |_| {
        let _ = held.recv();
    });
    run.driver.cancel(failure(ErrorCode::ConnectionLost, Side::Link, "the control connection is gone"));
    // The command does not wait for it.
    assert!(hear.recv_timeout(PATIENCE).unwrap().failure.is_some());
    // Nor does the next session, which has a marker and a tag of its own.
    let next = session(directory.path());
    assert_eq!(markers(directory.path()), 2);
    assert!(matches!(
        next.open_part(&new_file(&offer(), &Properties::FILES), &write_options(&options()), true).unwrap(),
        OpenedPart::Fresh(_)
    ));
    next.finish(false);
    drop(next);
    drop(let_go);
    run.driver.join();
    assert!(hear.try_recv().is_err(), "the end was told twice");
    let last = session(directory.path());
    assert_eq!(markers(directory.path()), 1);
    assert!(matches!(
        last.open_part(&new_file(&offer(), &Properties::FILES), &write_options(&options()), true).unwrap(),
        OpenedPart::Resumed { .. }
    ));
}
