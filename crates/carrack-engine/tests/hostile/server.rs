//! A hostile node: a real `copy` pulls one file from it, or a real listing asks it, and it says
//! and sends something else.

mod listings;
mod reports;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrack_core::attributes::Time;
use carrack_core::credential::Credential;
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::limits;
use carrack_core::path::display_bytes;
use carrack_core::report::{Counts, ErrorCode, Failure, ItemKind, Report, Side};
use carrack_core::request::{CopyOptions, CopyRequest, Encrypt, EndOptions};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::frame::{ENTRY_HEADER_BYTES, HEADER_BYTES, Header, TRAILER_BYTES};
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::{Answer, ItemResult, PeerMessage, QueryItem};
use carrack_engine::files::Files;
use carrack_engine::testing::data::stream::{InStream, OutStream};
use carrack_engine::testing::error::failure;
use carrack_engine::testing::net::tls::{ALPN_CONTROL, Tls, server_config};
use carrack_engine::{Context, Copy};

use crate::fake_node::{Conversation, FakeNode, IMPATIENT, pull, pull_tuned, pull_with, push};
use crate::sandbox::{Sandbox, hostile_paths};
use crate::session::ended;
use crate::watch::Watch;
use crate::wire::{Entry, bundle, directories, offer};

/// A pull of `f` that the fake plays after everything has been agreed; it must fail, and touch nothing.
fn failed_pull(sandbox: &Sandbox, play: impl FnOnce(&mut Conversation) + Send + 'static) -> Failure {
    let node = FakeNode::start(play);
    let report = pull(&node, "/f", sandbox);
    node.join();
    sandbox.assert_untouched();
    report.error.expect("the client took it")
}

/// A file that travels in blocks, and a node that has nothing at the name that it is to get.
fn large_file_to(sandbox: &Sandbox, play: impl FnOnce(&mut Conversation) + Send + 'static) -> (PathBuf, FakeNode) {
    let file = sandbox.outside().join("large");
    std::fs::write(&file, vec![7; 3 << 20]).unwrap();
    let node = FakeNode::start(|node| {
        node.kind = None;
        play(node);
    });
    (file, node)
}

/// Over a long path a data connection is made while the two ends greet each other: this node answers the greeting when
/// there is one.
#[test]
fn data_connection_to_a_node_far_away_is_made_while_the_ends_greet() {
    let _watch = Watch::start();
    for encrypt in [Encrypt::Tls, Encrypt::None] {
        let sandbox = Sandbox::new();
        let node = FakeNode::start(|node| {
            let made = node.next_connection();
            let connection = node.begun_over(Some(made));
            let mut stream = OutStream::new(connection, Arc::default(), &Tuning::DEFAULT);
            bundle(&mut stream, 1, &[Entry::File(b"f", b"bytes")]);
            assert_eq!(node.heard(), Some(PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() }));
            node.say(&PeerMessage::Finish);
            assert!(matches!(node.heard(), Some(PeerMessage::Finished { .. })));
            node.tell(0, Tell::Ended(ended(Counts { files: 1, bytes: 5, ..Counts::default() })));
        });
        let far = Tuning { far_rtt: Duration::ZERO, ..IMPATIENT };
        let options = CopyOptions { retries: 0, encrypt, ..CopyOptions::default() };
        let report = pull_tuned(&node, "/f", &sandbox, options, far);
        node.join();
        assert_eq!((report.error, report.counts.files), (None, 1));
        assert_eq!(std::fs::read(sandbox.root().join("f")).unwrap(), b"bytes");
    }
}

/// The message names the node, and says what it did.
fn assert_told(failure: &Failure, code: ErrorCode, what: &str) {
    assert_eq!(failure.code, code, "{what}: {failure:?}");
    assert!(failure.message().contains(what), "{what}: {failure:?}");
}

fn entry(path: &[u8]) -> carrack_core::wire::control::raw::Entry {
    let kind = ItemKind::File.number();
    carrack_core::wire::control::raw::Entry { path: path.to_vec(), kind, ..Default::default() }
}

#[test]
fn honest_fake_is_believed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let node = FakeNode::start(|node| {
        let mut stream = node.begin();
        bundle(&mut stream, 1, &[Entry::File(b"f", b"bytes")]);
        assert_eq!(node.heard(), Some(PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() }));
        node.say(&PeerMessage::Finish);
        assert!(matches!(node.heard(), Some(PeerMessage::Finished { .. })));
        node.tell(0, Tell::Ended(ended(Counts { files: 1, bytes: 5, ..Counts::default() })));
    });
    let report = pull(&node, "/f", &sandbox);
    node.join();
    assert_eq!((report.error, report.counts.files), (None, 1));
    sandbox.assert_untouched();
    assert_eq!(std::fs::read(sandbox.root().join("f")).unwrap(), b"bytes");
}

/// Over a long path each question that waits for an answer which it does not need costs a round trip: this node answers
/// nothing before it has been asked all that can be asked, and lets nobody have a data connection.
#[test]
fn verbs_do_not_wait_for_what_they_do_not_need() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let (file, node) = large_file_to(&sandbox, |node| {
        let asked: Vec<(u64, Ask)> = (0..3).map(|_| node.next().expect("a question")).collect();
        assert!(
            matches!(&asked[..], [(_, Ask::Hello(_)), (_, Ask::Inspect(_)), (_, Ask::Listen(_))]),
            "{:?}",
            node.seen
        );
        for (request, ask) in asked {
            let answer = node.honest(&ask).unwrap();
            node.tell(request, answer);
        }
        let (request, ask) = node.next().expect("the beginning");
        assert!(matches!(ask, Ask::Begin(_)), "{ask:?}");
        assert!(matches!(node.heard(), Some(PeerMessage::Offer(_))));
        node.tell(request, Tell::Done(Counted::default()));
    });
    let report = push(&file, &node, "/there", CopyOptions { retries: 0, ..CopyOptions::default() });
    node.join();
    assert!(report.error.is_some());
}

/// The end of a connection is told once; whoever takes it for the refusal of one question waits for
/// ever for the next answer.
#[test]
fn node_that_leaves_while_it_is_asked_to_listen_is_noticed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let (file, node) = large_file_to(&sandbox, |node| {
        for _ in 0..2 {
            let (request, ask) = node.next().expect("a question");
            let answer = node.honest(&ask).unwrap();
            node.tell(request, answer);
        }
        assert!(matches!(node.next(), Some((_, Ask::Listen(_)))));
        // The receiver has been asked to begin as well, before the client hears that nobody is there.
        assert!(matches!(node.next(), Some((_, Ask::Begin(_)))));
        node.leave();
    });
    let report = push(&file, &node, "/there", CopyOptions { retries: 0, ..CopyOptions::default() });
    node.join();
    assert_eq!(report.error.map(|error| error.code), Some(ErrorCode::ConnectionLost));
}

/// Whatever the other end is: a hostile destination must not learn the token that opens the source.
#[test]
fn token_is_shown_to_its_own_node_and_to_no_other() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let shown = |token: &'static str| {
        FakeNode::start(move |node| {
            let Some((request, Ask::Hello(hello))) = node.next() else { panic!("a greeting") };
            assert_eq!(hello.token, token);
            let why = failure(ErrorCode::AuthenticationFailed, Side::Link, "another token");
            node.tell(request, Tell::Failed(why.into()));
        })
    };
    let file = |name: &str| {
        let path = sandbox.outside().join(name);
        std::fs::write(&path, format!("{name}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        Credential::File(path.into_os_string().into_encoded_bytes())
    };
    for (source, destination) in [("of-the-source", "of-the-destination"), ("of-the-source", "")] {
        let (from, to) = (shown(source), shown(destination));
        let of_end = |credential| EndOptions { credential, ..EndOptions::default() };
        let for_destination = if destination.is_empty() { Credential::None } else { file(destination) };
        let options = CopyOptions {
            source: of_end(file(source)),
            destination: of_end(for_destination),
            ..CopyOptions::default()
        };
        let request = CopyRequest { sources: vec![from.at("/f")], destination: to.at("/"), options };
        let report = Copy::start(request, &Context::default()).wait();
        assert_eq!(report.error.map(|error| error.code), Some(ErrorCode::AuthenticationFailed));
        from.join();
        to.join();
    }
}

/// What a listener says of its own address and port leads a dialer nowhere: not the command, and not another node.
#[test]
fn listener_does_not_aim_the_dialer() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let decoy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    decoy.set_nonblocking(true).unwrap();
    let aimed_at = decoy.local_addr().unwrap();
    let aiming = move |node: &mut Conversation| {
        node.kind = None;
        while let Some((request, ask)) = node.next() {
            let tell = match (node.honest(&ask).expect("a question before the transfer"), &ask) {
                (Tell::Welcome(welcome), _) => Tell::Welcome(Welcome { local_address: "127.0.0.99".into(), ..welcome }),
                (Tell::Listening(listening), _) => {
                    Tell::Listening(Listening { port: aimed_at.port().into(), ..listening })
                }
                (tell, _) => tell,
            };
            node.tell(request, tell);
            if matches!(ask, Ask::Listen(_)) {
                return;
            }
        }
    };
    let once = || CopyOptions { retries: 0, ..CopyOptions::default() };
    let file = sandbox.outside().join("canary");
    let node = FakeNode::start(aiming);
    assert!(push(&file, &node, "/there", once()).error.is_some());
    node.join();
    // Of two nodes the source's dials, to where it is told to.
    let to = FakeNode::start(aiming);
    let (name, (told, addresses)) = (to.node.to_string(), std::sync::mpsc::channel());
    let from = FakeNode::start(move |node| {
        while let Some((request, ask)) = node.next() {
            if let Ask::Dial(dial) = ask {
                told.send(dial.addresses).unwrap();
                return node.leave();
            }
            let tell = node.honest(&ask).expect("a question before the transfer");
            node.tell(request, tell);
        }
    });
    let request = CopyRequest { sources: vec![from.at("/f")], destination: to.at("/there"), options: once() };
    assert!(Copy::start(request, &Context::default()).wait().error.is_some());
    assert_eq!(addresses.recv().unwrap(), [name]);
    from.join();
    to.join();
    assert_eq!(decoy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody came");
}

/// The receiver has failed, and the node goes on telling how it stands as if nothing had happened.
#[test]
fn node_that_never_stops_talking_does_not_hold_a_copy_that_failed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_over = std::sync::Arc::clone(&over);
    let node = FakeNode::start(move |node| {
        let mut stream = node.begin();
        bundle(&mut stream, 1, &[Entry::File(b"../f", b"planted")]);
        // Six times what the command bears.
        for _ in 0..6000 {
            if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            node.tell(0, Tell::Progress(Progress::default()));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("it was listened to for a minute");
    });
    let report = pull(&node, "/f", &sandbox);
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    node.join();
    assert_eq!(report.error.map(|error| error.code), Some(ErrorCode::BadPath));
}

#[test]
fn hostile_names() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for (path, why) in hostile_paths() {
        let ways: [fn(&Conversation, &mut carrack_engine::testing::data::stream::OutStream, &[u8]); 5] = [
            |node, _, path| node.say(&offer(1, path, Some(5))),
            |node, _, path| node.say(&directories(&[path])),
            |_, stream, path| bundle(stream, 1, &[Entry::File(path, b"planted")]),
            |_, stream, path| bundle(stream, 1, &[Entry::Directory(path)]),
            |_, stream, path| bundle(stream, 1, &[Entry::Link(path, b"target")]),
        ];
        let shown = display_bytes(&path).to_string();
        for send in ways {
            let path = path.clone();
            let failure = failed_pull(&sandbox, move |node| {
                let mut stream = node.begin();
                send(node, &mut stream, &path);
                node.until_failed();
            });
            assert_told(&failure, ErrorCode::BadPath, "the peer sent the path \"");
            assert!(failure.message().contains(why), "{shown}: {failure:?}");
        }
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// Whether an earlier attempt has brought it.
fn question(path: &[u8]) -> PeerMessage {
    let (kind, size, mtime, fingerprint) = (ItemKind::File, 5, Time::new(1, 0), Some([1; 16]));
    let (path, others) = (path.to_vec(), Default::default());
    let item = QueryItem { index: 0, path, kind, size, mode: 0o644, mtime, others, fingerprint };
    PeerMessage::Query { bundle: BundleId(1), items: vec![item] }
}

/// Well-formed names, beside the one that was asked for: what scp once took.
#[test]
fn files_that_nobody_asked_for() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for path in [&b".bashrc"[..], b".ssh/authorized_keys", b"f2", b"F", b"g/f"] {
        let ways: [fn(&Conversation, &mut carrack_engine::testing::data::stream::OutStream, &[u8]); 6] = [
            |node, _, path| node.say(&offer(1, path, Some(5))),
            |node, _, path| node.say(&question(path)),
            |node, _, path| node.say(&directories(&[path])),
            |_, stream, path| bundle(stream, 1, &[Entry::File(path, b"planted")]),
            |_, stream, path| bundle(stream, 1, &[Entry::Directory(path)]),
            |_, stream, path| bundle(stream, 1, &[Entry::Link(path, b"target")]),
        ];
        for send in ways {
            let failure = failed_pull(&sandbox, move |node| {
                let mut stream = node.begin();
                send(node, &mut stream, path);
                node.until_failed();
            });
            assert_told(&failure, ErrorCode::BadPath, "which was not asked for");
        }
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// The file that was asked for turns out to be a link out, and then a directory.
#[test]
fn link_made_before_is_not_followed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let outside = sandbox.outside().into_os_string().into_encoded_bytes();
    let node = FakeNode::start(move |node| {
        let mut stream = node.begin();
        bundle(&mut stream, 1, &[Entry::Link(b"f", &outside)]);
        assert_eq!(node.heard(), Some(PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() }));
        bundle(
            &mut stream,
            2,
            &[Entry::File(b"f/canary", b"overwritten"), Entry::Directory(b"f/a"), Entry::Directory(b"f/b")],
        );
        let Some(PeerMessage::BundleDone { exceptions, .. }) = node.heard() else { panic!() };
        assert!(exceptions.iter().all(|(_, result)| matches!(result, ItemResult::Failed(_))), "{exceptions:?}");
        assert_eq!(exceptions.len(), 3);
        node.say(&offer(3, b"f/big", Some(5)));
        assert!(matches!(node.heard(), Some(PeerMessage::Answer { answer: Answer::Refuse(_), .. })));
        node.say(&directories(&[b"f/private", b"f"]));
        node.say(&PeerMessage::Finish);
        let Some(PeerMessage::DirectoriesFailed(failures)) = node.heard() else { panic!() };
        assert_eq!(failures.len(), 2);
        assert!(matches!(node.heard(), Some(PeerMessage::Finished { .. })));
        node.tell(0, Tell::Ended(ended(Counts { symlinks: 1, ..Counts::default() })));
    });
    let report = pull(&node, "/f", &sandbox);
    node.join();
    assert_eq!(report.error, None);
    sandbox.assert_untouched();
}

#[test]
fn lengths_and_noise_on_data() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let block = Header::Block { item: ItemId(1), offset: 0, length: u32::MAX, hole: true, whole: true }.encode();
    let bundled = Header::Bundle { bundle: BundleId(1), entries: u32::MAX }.encode();
    let cases = [
        (block, "the peer sent a block of 4294967295 bytes"),
        (bundled, "the peer sent a bundle of 4294967295 items"),
        ([0xff; 24], "the peer sent a frame with unknown flags"),
        ([0; 24], "the peer sent a frame of unknown kind 0"),
    ];
    for (bytes, what) in cases {
        let failure = failed_pull(&sandbox, move |node| {
            let mut stream = node.begin();
            let _ = stream.meta(&[&bytes]);
            let _ = stream.flush();
            node.until_failed();
        });
        assert_told(&failure, ErrorCode::ProtocolViolation, what);
    }
    // Bytes that are no TLS record.
    let failure = failed_pull(&sandbox, |node| {
        let stream = node.begin();
        let _ = (&*stream.socket()).write_all(&[0xa5; 1000]);
        // The receiver gives the stream up, and waits for another, which never comes: the node leaves.
        let _ = std::io::copy(&mut &*stream.socket(), &mut std::io::sink());
        node.leave();
    });
    assert_eq!(failure.code, ErrorCode::ConnectionLost, "{failure:?}");
}

#[test]
fn lengths_and_noise_on_control() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let unknown = vec![0x9a, 0x06, 0x01, 0x00];
    let bomb = vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
    for (bytes, what) in [(unknown, "an answer of unknown type"), (bomb, "an answer that cannot be read")] {
        for begun in [false, true] {
            let bytes = bytes.clone();
            let failure = failed_pull(&sandbox, move |node| {
                let _stream = begun.then(|| node.begin());
                node.payload(Channel::CONTROL, &bytes);
            });
            assert_told(&failure, ErrorCode::ProtocolViolation, what);
        }
    }
    let failure = failed_pull(&sandbox, |node| {
        let _stream = node.begin();
        node.payload(Channel::PEER, &[0xff; 50]);
        node.until_failed();
    });
    assert_told(&failure, ErrorCode::ProtocolViolation, "a peer message that cannot be read");
}

/// Before, and instead of, TLS.
#[test]
fn nodes_that_are_none() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let plays: [fn(std::net::TcpStream); 3] = [
        drop,
        |mut socket| drop(socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        |mut socket| drop(socket.write_all(&[0x16, 3, 3, 0xff, 0xff, 0xff, 0xff])),
    ];
    for play in plays {
        let node = FakeNode::raw(move |socket, _| play(socket));
        let report = pull(&node, "/f", &sandbox);
        node.join();
        assert_told(&report.error.unwrap(), ErrorCode::ConnectFailed, "no TLS session");
    }
    // Another key than the one typed.
    let mut node = FakeNode::raw(|socket, key| {
        let mut tls = Tls::server(server_config(&key, &[ALPN_CONTROL]).unwrap()).unwrap();
        let _ = tls.handshake(&carrack_engine::testing::net::socket::Socket::Tcp(socket));
    });
    node.node.pin = Some([7; 32]);
    let report = pull(&node, "/f", &sandbox);
    node.join();
    assert_told(&report.error.unwrap(), ErrorCode::KeyMismatch, "is pinned for it");
    sandbox.assert_untouched();
}

/// Something else than what was asked, at each step.
#[test]
fn answers_of_the_wrong_kind() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let wrong: fn() -> [Tell; 4] = || {
        [
            Tell::Page(Page::default()),
            Tell::Inspected(Inspected { facts: vec![PathFacts::default(); 3] }),
            Tell::Dialed(Dialed::default()),
            Tell::Sums(Sums::default()),
        ]
    };
    type Step = (fn(&Ask) -> bool, &'static str);
    let steps: [Step; 3] = [
        (|ask| matches!(ask, Ask::Hello(_)), "Hello"),
        (|ask| matches!(ask, Ask::Inspect(_)), "Inspect"),
        (|ask| matches!(ask, Ask::Listen(_)), "Listen"),
    ];
    for (is_step, step) in steps {
        for number in 0..wrong().len() {
            let failure = failed_pull(&sandbox, move |node| {
                while let Some((request, ask)) = node.next() {
                    let answer = if is_step(&ask) { Some(wrong()[number].clone()) } else { node.honest(&ask) };
                    let Some(answer) = answer else { return };
                    node.tell(request, answer);
                }
            });
            assert_told(&failure, ErrorCode::ProtocolViolation, "something else than it was asked");
            assert!(failure.message().starts_with("127.0.0.1:"), "{step}: {failure:?}");
        }
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// It says that all went well, and nothing came.
#[test]
fn end_that_is_none() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let failure = failed_pull(&sandbox, |node| {
        let _stream = node.begin();
        node.tell(0, Tell::Ended(Ended { durable: true, ..ended(Counts { files: 1, bytes: 5, ..Counts::default() }) }));
    });
    assert_told(&failure, ErrorCode::ProtocolViolation, "before the other side had");
    // And it goes on talking afterwards, so that it is never silent.
    let failure = failed_pull(&sandbox, |node| {
        let _stream = node.begin();
        node.tell(0, Tell::Ended(Ended::default()));
        node.tell(0, Tell::Progress(Progress::default()));
        node.until_failed();
    });
    // Whichever of the two is noticed first.
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
    assert!(
        ["went on after", "before the other side had"].iter().any(|what| failure.message().contains(what)),
        "{failure:?}"
    );
}

/// A slow receiver: it has said that it has everything, the sender has ended, and it still has to clean up.
/// Nothing but its own word ends the run, however late that comes: this one waits until it is told to stop, and
/// takes that for what it is.
#[test]
fn receiver_may_end_long_after_its_sender() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let file = sandbox.outside().join("small");
    std::fs::write(&file, b"bytes").unwrap();
    let node = FakeNode::start(|node| {
        node.kind = None;
        let mut stream = InStream::new(node.begun(), Default::default());
        let before_content = HEADER_BYTES + ENTRY_HEADER_BYTES + "there".len();
        stream.meta(&mut vec![0; before_content + b"bytes".len() + TRAILER_BYTES]).unwrap();
        node.say(&PeerMessage::BundleDone { bundle: BundleId(1), exceptions: Vec::new() });
        assert_eq!(node.heard(), Some(PeerMessage::Finish));
        node.say(&PeerMessage::Finished { durable: true });
        let (request, ask) = node.next().expect("a word");
        assert!(matches!(ask, Ask::Cancel(_)), "{ask:?}");
        node.tell(request, Tell::Done(Counted::default()));
        node.tell(0, Tell::Ended(Ended::default()));
    });
    let report = push(&file, &node, "/there", CopyOptions { retries: 0, ..CopyOptions::default() });
    node.join();
    assert_eq!((report.error, report.counts.files, report.durable), (None, 1, Some(true)));
}

/// It sends what cannot be written, takes none of the many words that are said of it, and says that it is
/// there. That keeps nobody.
#[test]
fn node_that_takes_nothing_more_holds_up_no_deadline() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.root().join("f"), "a file, and no directory").unwrap();
    let node = FakeNode::start(|node| {
        let mut stream = node.begin();
        let deaf = node.stop_hearing();
        let paths: Vec<Vec<u8>> = (0..limits::BUNDLE_ITEMS).map(|number| format!("f/{number}").into_bytes()).collect();
        let entries: Vec<Entry> = paths.iter().map(|path| Entry::File(path, b"")).collect();
        // As many as may wait for their answers: one more, and the copy ends because of that.
        let sent = limits::UNACKNOWLEDGED_BUNDLES;
        let socket = stream.socket();
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=sent as u64).for_each(|number| bundle(&mut stream, number, &entries)));
            node.until_gone();
            // Whoever writes to a peer that has closed a full window may not learn of it for a minute.
            socket.abort();
        });
        // More was to be answered than all buffers on the way hold.
        drop(deaf);
        let answers = std::iter::from_fn(|| node.heard());
        let answered = answers.filter(|answer| matches!(answer, PeerMessage::BundleDone { .. })).count();
        assert!(answered < sent, "{answered} answers fit into the buffers");
    });
    let deadline = Some(std::time::Duration::from_secs(10));
    let options = CopyOptions { retries: 0, deadline, ..CopyOptions::default() };
    let report = pull_with(&node, "/f", &sandbox, options);
    assert_eq!(
        report.error.as_ref().map(|failure| failure.code),
        Some(ErrorCode::DeadlinePassed),
        "{:?}",
        report.error
    );
    // TCP would give up at last; that is not waited for.
    assert!(report.elapsed < std::time::Duration::from_secs(30), "{:?}", report.elapsed);
    node.join();
    sandbox.assert_untouched();
}
