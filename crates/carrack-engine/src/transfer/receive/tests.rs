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
use carrack_core::transfer::receiver::BlockStart;
use carrack_core::wire::frame::{Header, Trailer};
use carrack_core::wire::peer::{Answer, Offer};
use carrack_sys::dir::Dir;

use super::*;
use crate::data::hasher::BlockHasher;
use crate::data::stream::Protection;
use crate::error::failure;
use crate::net::socket::Socket;
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
    let request = MarkerRequest { key: [7; limits::MARKER_KEY_BYTES], anew: false, made_top: false, partial: false };
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
    let OpenedPart::Fresh(part) = tree
        .open_part(&new_file(&offer(), offer().attributes, &Properties::FILES), &write_options(&options()), true)
        .unwrap()
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
    let run = ReceiveRun::start(
        options(),
        Box::new(tree),
        ReceiveChoice { expected, ..ReceiveChoice::default() },
        voice,
        Arc::new(IMPATIENT),
    )
    .unwrap();
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
        next.open_part(&new_file(&offer(), offer().attributes, &Properties::FILES), &write_options(&options()), true)
            .unwrap(),
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
        last.open_part(&new_file(&offer(), offer().attributes, &Properties::FILES), &write_options(&options()), true)
            .unwrap(),
        OpenedPart::Resumed { .. }
    ));
}

/// A file may be discarded just before a block of it is written: its stream goes on, and nothing has landed.
#[test]
fn block_of_a_file_that_has_just_been_removed_does_not_land() {
    let place = tempfile::tempdir().unwrap();
    let (told, hear) = mpsc::channel();
    let voice = Voice {
        peer: Arc::new(move |message| {
            let _ = told.send(message.clone());
            Ok(())
        }),
        command: Arc::new(|_| ()),
        measured: Default::default(),
    };
    let expected = Expected::new([b"f".to_vec()]);
    let tree = Box::new(session(place.path()));
    let run = ReceiveRun::start(
        options(),
        tree,
        ReceiveChoice { expected, ..ReceiveChoice::default() },
        voice,
        Arc::new(IMPATIENT),
    )
    .unwrap();
    run.driver.tell(|machine| machine.handle_message(Instant::now(), PeerMessage::Offer(offer()))).unwrap();
    let accepted = |message| matches!(message, PeerMessage::Answer { answer: Answer::Accept, .. });
    assert!(accepted(hear.recv_timeout(PATIENCE).unwrap()));
    // As `Discard` does, between the machine's word and the first byte.
    lock(&run.parts).clear();
    let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let socket = Arc::new(Socket::Unix(far));
    run.add_stream(Connection { socket, protection: Protection::Memory, early: Vec::new(), number: StreamId(0) });
    let content = vec![3; BLOCK];
    let mut hasher = BlockHasher::new(options().digests, BLOCK as u64);
    hasher.update(&content);
    let (item, length) = (ItemId(1), BLOCK as u32);
    let header = Header::Block { item, offset: BLOCK as u64, length, hole: false, whole: false };
    let trailer = Trailer { whole: true, digest: hasher.finish(false) };
    for bytes in [&header.encode()[..], &content, &trailer.encode(), &Header::End.encode()] {
        std::io::Write::write_all(&mut near, bytes).unwrap();
    }
    let PeerMessage::Done { item: ended, result: ItemResult::Failed(_) } = hear.recv_timeout(PATIENCE).unwrap() else {
        panic!("it has landed")
    };
    assert_eq!(ended, item);
    run.driver.cancel(failure(ErrorCode::Interrupted, Side::Command, "the test is over"));
    run.driver.join();
}

/// Where entries of two directories are published: each lets the first of the other begin before it ends.
#[derive(Default)]
struct Meeting {
    begun: Mutex<[usize; 2]>,
    changed: std::sync::Condvar,
}

struct MeetingEntry {
    meeting: Arc<Meeting>,
    directory: usize,
    /// Another entry of its directory is being published.
    occupied: Arc<std::sync::atomic::AtomicBool>,
    fails: bool,
}

impl Entry for MeetingEntry {
    fn directory(&self) -> &[u8] {
        [&b"one"[..], b"two"][self.directory]
    }

    fn publish(&self) -> Result<bool, Failure> {
        assert!(!self.occupied.swap(true, Ordering::SeqCst), "two names of one directory are given at once");
        let mut begun = lock(&self.meeting.begun);
        begun[self.directory] += 1;
        self.meeting.changed.notify_all();
        let waited = self.meeting.changed.wait_timeout_while(begun, PATIENCE, |begun| begun.contains(&0)).unwrap();
        assert!(!waited.1.timed_out(), "nobody publishes in the other directory");
        self.occupied.store(false, Ordering::SeqCst);
        if self.fails { Err(failure(ErrorCode::NoSpace, Side::Destination, "full")) } else { Ok(true) }
    }

    fn remove(&self) {}
}

/// Several threads give names, each in a directory of its own, and each bundle is told of when it is whole, with what
/// went wrong in it.
#[test]
fn names_in_several_directories_are_given_at_once() {
    let place = tempfile::tempdir().unwrap();
    let (told, hear) = mpsc::channel();
    let voice = Voice {
        peer: Arc::new(move |message| {
            if let PeerMessage::BundleDone { bundle, exceptions } = message {
                let _ = told.send((*bundle, exceptions.clone()));
            }
            Ok(())
        }),
        command: Arc::new(|_| ()),
        measured: Default::default(),
    };
    let tuning = Arc::new(Tuning { publish_threads: 2, ..IMPATIENT });
    let expected = Expected::new([b"f".to_vec()]);
    let tree = Box::new(session(place.path()));
    let run = ReceiveRun::start(
        options(),
        tree,
        ReceiveChoice { expected, ..ReceiveChoice::default() },
        voice,
        Arc::clone(&tuning),
    )
    .unwrap();
    let (meeting, occupied) = (Arc::<Meeting>::default(), [Arc::default(), Arc::default()]);
    let entry = |bundle: u64, index: u32| -> (u32, Box<dyn Entry>) {
        let directory = index as usize % 2;
        let (meeting, occupied) = (Arc::clone(&meeting), Arc::clone(&occupied[directory]));
        (index, Box::new(MeetingEntry { meeting, directory, occupied, fails: (bundle, index) == (2, 7) }))
    };
    for bundle in 1..=3 {
        let entries = if bundle == 3 { Vec::new() } else { (0..600).map(|index| entry(bundle, index)).collect() };
        lock(&run.staged).insert(BundleId(bundle), Staged { entries, ..Staged::default() });
    }
    run.driver.tell(|machine| {
        machine.handle_stream(Instant::now(), StreamId(0));
        for bundle in (1..=3).map(BundleId) {
            assert_eq!(machine.begin_bundle(StreamId(0), bundle), BlockStart::Write);
            assert!(machine.handle_bundle(Instant::now(), StreamId(0), bundle, 0));
        }
    });
    let mut ended: Vec<_> = (0..3).map(|_| hear.recv_timeout(PATIENCE).unwrap()).collect();
    ended.sort_by_key(|(bundle, _)| *bundle);
    let wrong: Vec<_> = ended.iter().map(|(bundle, wrong)| (bundle.0, wrong.len())).collect();
    assert_eq!(wrong, [(1, 0), (2, 1), (3, 0)]);
    assert!(matches!(&ended[1].1[..], [(7, ItemResult::Failed(why))] if why.code == ErrorCode::NoSpace));
    assert_eq!(run.items_published.load(Ordering::Relaxed), 1199);
    run.driver.cancel(failure(ErrorCode::Interrupted, Side::Command, "the test is over"));
    run.driver.join();
}
