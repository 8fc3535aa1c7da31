//! Transfers between two ends in this process, one of which panics somewhere: both end, and say why.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use carrack_core::ids::StreamId;
use carrack_core::request::{Durability, Verify};
use carrack_core::tuning::Tuning;
use carrack_core::wire::Version;
use carrack_core::wire::control::Ended;
use carrack_core::wire::expected::Expected;
use carrack_sys::dir::Dir;

use super::*;
use crate::data::stream::Protection;
use crate::net::socket::Socket;
use crate::storage::null::Null;
use crate::storage::over::{Act, Call, Hook, over_source};
use crate::storage::posix::tree::Tree;
use crate::storage::properties::Writes;
use crate::storage::read::{Root, Source};
use crate::storage::sequential::Sequential;
use crate::storage::source::{PosixSource, RootKind};
use crate::storage::synthetic::Synthetic;
use crate::storage::write::Destination;

/// As long as somebody may wait who waits in vain.
const PATIENCE: Duration = Duration::from_secs(60);

/// Panics when it is touched for the n-th time.
#[derive(Clone)]
struct Fuse(Arc<AtomicI64>);

impl Fuse {
    fn at(touch: i64) -> Self {
        Self(Arc::new(AtomicI64::new(touch)))
    }

    fn never() -> Self {
        Self::at(0)
    }

    fn touch(&self) {
        assert_ne!(self.0.fetch_sub(1, Ordering::Relaxed), 1, "a fuse has blown");
    }

    fn has_blown(&self) -> bool {
        self.0.load(Ordering::Relaxed) < 1
    }
}

/// Panics at a call.
struct Panics(Call);

impl Hook for Panics {
    fn before(&self, call: Call, _bytes: u64) -> Act {
        assert_ne!(call.name(), self.0.name(), "it panics, as a test wants it");
        Act::Go
    }
}

/// A stream that takes everything and panics at a write or at its end.
struct Sink {
    writes: Fuse,
    ends: Fuse,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.touch();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ends.touch();
        Ok(())
    }
}

pub(super) fn options() -> TransferOptions {
    TransferOptions {
        item_events: true,
        durability: Durability::None,
        ..TransferOptions::of(&Default::default(), Verify::Wire, 1 << 20, Version::NEWEST)
    }
}

/// Runs a transfer; how the sender and the receiver ended. `None` instead, after some time, for one that never did.
fn run(source: Box<dyn Source>, destination: impl Destination + 'static, fuses: [Fuse; 2]) -> [Option<Ended>; 2] {
    run_tuned(source, destination, fuses, &Arc::default()).0
}

/// The same with other knobs; and how many files were offered.
fn run_tuned(
    source: Box<dyn Source>,
    destination: impl Destination + 'static,
    fuses: [Fuse; 2],
    tuning: &Arc<Tuning>,
) -> ([Option<Ended>; 2], usize) {
    let [sender, receiver] = fuses;
    run_measured(source, destination, &[sender, receiver, Fuse::never()], tuning)
}

/// The same, with a fuse in what both ends measure.
fn run_measured(
    source: Box<dyn Source>,
    destination: impl Destination + 'static,
    fuses: &[Fuse; 3],
    tuning: &Arc<Tuning>,
) -> ([Option<Ended>; 2], usize) {
    let offers = Arc::new(AtomicUsize::new(0));
    let (ended, hear) = mpsc::channel();
    let (to_receiver, for_receiver) = mpsc::channel();
    let (to_sender, for_sender) = mpsc::channel();
    let voice = |side: Side, fuse: &Fuse, peer: &mpsc::Sender<Vec<u8>>| {
        let (told, peer) = (ended.clone(), peer.clone());
        let (say, tell, measured, offers) = (fuse.clone(), fuse.clone(), fuses[2].clone(), Arc::clone(&offers));
        Voice {
            peer: Arc::new(move |message| {
                say.touch();
                offers.fetch_add(usize::from(matches!(message, PeerMessage::Offer(_))), Ordering::Relaxed);
                peer.send(message.encode()).map_err(|_| io::ErrorKind::BrokenPipe.into())
            }),
            command: Arc::new(move |said| {
                // Samples are not the pump's words.
                match &said {
                    Tell::Sample(_) => measured.touch(),
                    _ => tell.touch(),
                }
                if let Tell::Ended(how) = said {
                    let _ = told.send((side, *how));
                }
            }),
            measured: Default::default(),
        }
    };
    // What is written in order comes on one.
    let streams = if destination.properties().writes == Writes::InOrder { 1 } else { 2 };
    let receiver_voice = voice(Side::Destination, &fuses[1], &to_sender);
    let expected = Expected::new([b"item".to_vec()]);
    let chosen = receive::ReceiveChoice { expected, ..receive::ReceiveChoice::default() };
    let receiver = Running::Receive(
        receive::ReceiveRun::start(options(), Box::new(destination), chosen, receiver_voice, Arc::clone(tuning))
            .unwrap(),
    );
    let root = Root { source, target: b"item".to_vec(), typed: Vec::new() };
    let sender_voice = voice(Side::Source, &fuses[0], &to_receiver);
    let (roots, all) = (vec![root], send::SendChoice::default());
    let sender =
        Running::Send(send::SendRun::start(options(), roots, all, false, sender_voice, Arc::clone(tuning)).unwrap());
    sender.started();
    let carriers = [(for_receiver, &receiver), (for_sender, &sender)].map(|(words, to)| carry(words, to.clone()));
    for number in 0..streams {
        let (near, far) = UnixStream::pair().unwrap();
        for (running, socket) in [(&receiver, near), (&sender, far)] {
            let socket = Arc::new(Socket::Unix(socket));
            running.add_stream(Connection {
                socket,
                protection: Protection::Memory,
                early: Vec::new(),
                number: StreamId(number),
            });
        }
    }
    let mut ends = [None, None];
    while ends.contains(&None)
        && let Ok((side, how)) = hear.recv_timeout(PATIENCE)
    {
        ends[usize::from(side == Side::Destination)] = Some(how);
    }
    if !ends.contains(&None) {
        [&sender, &receiver].into_iter().for_each(Running::join);
        // Empty: the last.
        let _ = [to_receiver, to_sender].map(|words| words.send(Vec::new()));
        carriers.into_iter().for_each(|carrier| carrier.join().unwrap());
    }
    (ends, offers.load(Ordering::Relaxed))
}

/// Hands what one says to the other, as the thread does that reads a control connection.
fn carry(words: mpsc::Receiver<Vec<u8>>, to: Running) -> JoinHandle<()> {
    std::thread::spawn(move || {
        words.iter().take_while(|message| !message.is_empty()).for_each(|message| to.handle_peer(&message));
    })
}

fn code(ended: &Ended) -> Option<ErrorCode> {
    ended.failure.as_ref().map(|failure| failure.code)
}

#[track_caller]
fn both_say_internal(what: &str, ends: &[Option<Ended>; 2]) {
    for (side, ended) in ["sender", "receiver"].into_iter().zip(ends) {
        let ended = ended.as_ref().unwrap_or_else(|| panic!("{what}: the {side} never ended"));
        assert_eq!(code(ended), Some(ErrorCode::Internal), "{what}: {side}: {ended:?}");
    }
}

#[test]
fn source_that_panics_fails_the_transfer() {
    for (what, size, call) in [
        ("listing", 5, Call::Walk),
        ("a stream of blocks", 5 << 20, Call::Open),
        ("reading blocks", 5 << 20, Call::ReadAt),
        ("a stream of a bundle", 5, Call::Open),
        ("reading a bundle", 5, Call::ReadWhole),
    ] {
        let hook: Arc<dyn Hook> = Arc::new(Panics(call));
        let source = over_source(Box::new(Synthetic::Random(size)), &hook);
        let ends = run(source, Null { takes: false }, [Fuse::never(), Fuse::never()]);
        both_say_internal(what, &ends);
    }
}

#[test]
fn destination_that_panics_fails_the_transfer() {
    let sink = |writes, ends| Sequential::new(Box::new(Sink { writes, ends }));
    let cases = [
        ("a stream of blocks", 5 << 20, sink(Fuse::at(3), Fuse::never())),
        ("a stream of a bundle", 5, sink(Fuse::at(1), Fuse::never())),
        ("the commits", 5 << 20, sink(Fuse::never(), Fuse::at(1))),
    ];
    for (what, size, destination) in cases {
        let ends = run(Box::new(Synthetic::Zeros(size)), destination, [Fuse::never(), Fuse::never()]);
        both_say_internal(what, &ends);
    }
}

fn directory(path: &Path) -> Box<dyn Source> {
    Box::new(PosixSource::from(RootKind::Directory(Arc::new(Dir::open_ambient(path).unwrap()))))
}

fn write_sources(directory: &Path) {
    std::fs::write(directory.join("large"), vec![7; 3 << 20]).unwrap();
    for number in 0..5 {
        std::fs::write(directory.join(format!("small-{number}")), "content").unwrap();
    }
}

/// Each message, and each word to the command, is where a pump may panic; those of an end that
/// has failed already are few.
#[test]
fn pump_that_panics_at_any_word_leaves_nobody_waiting() {
    let place = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| place.path().join(name));
    std::fs::create_dir(&from).unwrap();
    write_sources(&from);
    for panicking in 0..2 {
        let mut blown = 0;
        for touch in 1.. {
            let _ = std::fs::remove_dir_all(&to);
            std::fs::create_dir(&to).unwrap();
            let source = directory(&from);
            let tree =
                Tree::new(Dir::open_ambient(&to).unwrap(), false, None, Durability::None, &Arc::default()).unwrap();
            let mut fuses = [Fuse::never(), Fuse::never()];
            fuses[panicking] = Fuse::at(touch);
            let ends = run(source, tree, fuses.clone());
            let what = format!("side {panicking}, word {touch}");
            let [sender, receiver] = ends.map(|ended| ended.unwrap_or_else(|| panic!("{what}: somebody never ended")));
            if !fuses[panicking].has_blown() {
                assert_eq!((code(&sender), code(&receiver)), (None, None), "{what}");
                break;
            }
            blown += 1;
            let (own, other) = if panicking == 0 { (sender, receiver) } else { (receiver, sender) };
            assert_eq!(code(&own), Some(ErrorCode::Internal), "{what}: {own:?}");
            // The other had ended before, or has been told.
            assert!(matches!(code(&other), None | Some(ErrorCode::Internal)), "{what}: {other:?}");
            for directory in [&to, &to.join("item")] {
                let names = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().file_name());
                let left: Vec<_> = names.filter(|name| name.as_encoded_bytes().starts_with(b".")).collect();
                assert!(left.is_empty(), "{what}: {left:?}");
            }
        }
        assert!(blown >= 5, "only {blown} words");
    }
}

/// What an end measures is told before its end, and a panic of that leaves the transfer as it is.
#[test]
fn sample_is_told_before_the_end_and_its_panic_costs_nothing() {
    let place = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| place.path().join(name));
    std::fs::create_dir(&from).unwrap();
    write_sources(&from);
    for measured in [Fuse::never(), Fuse::at(1), Fuse::at(2)] {
        let _ = std::fs::remove_dir_all(&to);
        std::fs::create_dir(&to).unwrap();
        let tree = Tree::new(Dir::open_ambient(&to).unwrap(), false, None, Durability::None, &Arc::default()).unwrap();
        let fuses = [Fuse::never(), Fuse::never(), measured.clone()];
        let (ends, _) = run_measured(directory(&from), tree, &fuses, &Arc::default());
        assert!(ends.iter().all(|ended| ended.as_ref().is_some_and(|ended| code(ended).is_none())), "{ends:?}");
        assert!(measured.0.load(Ordering::Relaxed) <= 0, "nothing was measured");
    }
}

/// Both ways that a file can take are taken by files of any size.
#[test]
fn tuning_decides_which_files_are_offered_and_which_are_bundled() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("from");
    std::fs::create_dir(&from).unwrap();
    write_sources(&from);
    let bundling = |bundled_file_bytes_max| Tuning { bundled_file_bytes_max, ..Tuning::DEFAULT };
    let cases = [
        (Tuning::DEFAULT, 1),
        (bundling(0), 6),
        (bundling(4 << 20), 0),
        (Tuning { bundle_items: 1, marker_bytes: 1, ..bundling(4 << 20) }, 0),
        (Tuning { sync_all_patience: Duration::ZERO, past_cache_file_bytes: 1, ..bundling(0) }, 6),
    ];
    for (case, (tuning, offered)) in cases.into_iter().enumerate() {
        assert_eq!(tuning.check(), Ok(()));
        let tuning = Arc::new(tuning);
        let to = place.path().join(format!("to-{case}"));
        std::fs::create_dir(&to).unwrap();
        let source = directory(&from);
        let tree = Tree::new(Dir::open_ambient(&to).unwrap(), false, None, Durability::Group, &tuning).unwrap();
        let (ends, offers) = run_tuned(source, tree, [Fuse::never(), Fuse::never()], &tuning);
        assert!(ends.iter().all(|ended| ended.as_ref().is_some_and(|ended| code(ended).is_none())), "{case}: {ends:?}");
        assert_eq!(offers, offered, "case {case}");
        for entry in std::fs::read_dir(&from).unwrap() {
            let name = entry.unwrap().file_name();
            let [sent, there] =
                [&from, &to.join("item")].map(|directory| std::fs::read(directory.join(&name)).unwrap());
            assert_eq!(sent, there, "case {case}: {name:?}");
        }
    }
}
