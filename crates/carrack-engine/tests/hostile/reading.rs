//! Ranges of files over the control connection: a node that answers with other bytes than were asked for, a client that
//! stops in the midst, and one with a grant.

use std::sync::mpsc;
use std::time::Duration;

use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::report::{ErrorCode, Failure, Reason};
use carrack_core::request::{Confinement, EndOptions, Reach};
use carrack_core::wire::control::raw::*;
use carrack_engine::Context;
use carrack_engine::files::{Files, ReadEvent, ReadRange};

use crate::fake_node::{Conversation, FakeNode};
use crate::sandbox::Sandbox;
use crate::watch::Watch;

const HELD_BACK: Duration = Duration::from_secs(1);
const RANGE: ReadRange = ReadRange { offset: 10, length: 20, identity: Some([7; 16]) };

/// What a client gets of [`RANGE`] from a node that answers so.
fn read_from(answer: impl Fn(&Conversation, u64) + Send + 'static) -> Result<Vec<u8>, Failure> {
    let node = FakeNode::start(move |node| {
        while let Some((request, ask)) = node.next() {
            match (&ask, node.honest(&ask)) {
                (Ask::Read(_), _) => return answer(node, request),
                (_, Some(told)) => node.tell(request, told),
                (_, None) => return,
            }
        }
    });
    let mut files = Files::open(&node.at("/f"), &EndOptions::default(), &Context::default(), &|_| {})?;
    let mut bytes = Vec::new();
    let read = files.read(b"/f", RANGE, &mut |event| {
        if let ReadEvent::Bytes(part) = event {
            bytes.extend_from_slice(part);
        }
        true
    });
    drop(files);
    node.join();
    read.map(|()| bytes)
}

fn opened(size: u64, identity: u8) -> Tell {
    Tell::Opened(Opened { size, identity: vec![identity; 16], ..Opened::default() })
}

fn part(bytes: usize) -> Tell {
    Tell::Part(Part { content: vec![b'x'; bytes] })
}

fn done() -> Tell {
    Tell::Done(Counted { count: 20 })
}

/// Whoever has judged an address is not led elsewhere by what the name is by then.
#[test]
fn node_whose_name_was_looked_up_is_connected_to_at_that_address() {
    let _watch = Watch::start();
    let node = FakeNode::start(|node| {
        while let Some((request, ask)) = node.next() {
            let Some(told) = node.honest(&ask) else { return };
            node.tell(request, told);
        }
    });
    // No name server is asked for a name with an empty part.
    let mut named = node.node.clone();
    named.host = "no..host".to_owned();
    let location = Location::Node { node: named, path: b"/".to_vec() };
    let reach = Reach { node_address: Some("127.0.0.1".parse().unwrap()), ..Reach::default() };
    let open = |reach| {
        let options = EndOptions { reach, ..EndOptions::default() };
        Files::open(&location, &options, &Context::default(), &|_| {}).map(drop).map_err(|failure| failure.code)
    };
    assert_eq!(open(Reach::default()), Err(ErrorCode::HostUnknown));
    assert_eq!(open(reach), Ok(()));
    node.join();
}

/// An agent that says nothing of the root that it was told, and one that keeps to a root unasked.
#[test]
fn end_that_does_not_keep_to_what_it_was_told_is_left() {
    let _watch = Watch::start();
    for (told, keeps, is_right) in
        [(true, false, false), (false, true, false), (true, true, true), (false, false, true)]
    {
        let node = FakeNode::start(move |node| {
            while let Some((request, ask)) = node.next() {
                match node.honest(&ask) {
                    Some(Tell::Welcome(welcome)) => {
                        let root = keeps.then_some(Root { device: 1, inode: 2 });
                        node.tell(request, Tell::Welcome(Welcome { root, ..welcome }));
                    }
                    Some(other) => node.tell(request, other),
                    None => return,
                }
            }
        });
        let confinement = told.then(|| Confinement { root: b"/data".to_vec(), within: Vec::new() });
        let options = EndOptions { confinement, ..EndOptions::default() };
        let opened = Files::open(&node.at("/f"), &options, &Context::default(), &|_| {}).map(drop);
        let expected = if is_right { Ok(()) } else { Err(ErrorCode::ProtocolViolation) };
        assert_eq!(opened.map_err(|failure| failure.code), expected, "told {told}, keeps {keeps}");
        node.join();
    }
}

#[test]
fn reading_takes_the_bytes_that_were_asked_for_and_no_others() {
    let _watch = Watch::memory();
    let answers = |tells: Vec<Tell>| {
        read_from(move |node, request| tells.iter().for_each(|tell| node.tell(request, tell.clone())))
    };
    let whole = answers(vec![opened(100, 7), part(15), part(5), done()]).unwrap();
    assert_eq!(whole, [b'x'; 20]);
    assert_eq!(answers(vec![opened(12, 7), part(2), done()]).unwrap().len(), 2, "the file ends there");
    assert_eq!(answers(vec![opened(5, 7), done()]).unwrap(), b"");
    let lies = [
        // More than was asked for, or than the file has; less of both.
        vec![opened(100, 7), part(21), done()],
        vec![opened(100, 7), part(20), part(1), done()],
        vec![opened(12, 7), part(3), done()],
        vec![opened(u64::MAX, 7), part(19), done()],
        vec![opened(100, 7), done()],
        // Out of order, twice, or nothing at all.
        vec![part(20), opened(100, 7), done()],
        vec![opened(100, 7), opened(100, 7), part(20), done()],
        vec![done()],
        // Another file, too much at once, nothing at once, another answer.
        vec![opened(100, 8), part(20), done()],
        vec![opened(100, 7), part(limits::PART_BYTES + 1)],
        vec![opened(100, 7), part(0)],
        vec![opened(100, 7), Tell::Page(Page::default())],
        vec![Tell::Opened(Opened { size: 100, identity: vec![7; 5], ..Opened::default() })],
    ];
    for lie in lies {
        let shown = format!("{lie:?}");
        let why = answers(lie).expect_err(&shown);
        assert_eq!(why.code, ErrorCode::ProtocolViolation, "{shown}: {why:?}");
    }
    // Its connection ends in the midst: what has come is not the whole.
    let why = read_from(|node, request| {
        node.tell(request, opened(100, 7));
        node.tell(request, part(19));
        node.leave();
    });
    assert_eq!(why.unwrap_err().code, ErrorCode::ConnectionLost);
}

/// More than may wait on both sides and in the sockets.
const TOO_MUCH: usize = 16 * limits::UNHEARD_BYTES;

/// A node that never stops sending is held back by whoever does not take it, and ends with the client.
#[test]
fn reading_is_held_back_by_its_reader_and_ends_when_it_stops() {
    let _watch = Watch::memory();
    let ((too_much, sent_too_much), (end, ended)) = (mpsc::channel(), mpsc::channel());
    let node = FakeNode::start(move |node| {
        while let Some((request, ask)) = node.next() {
            let Ask::Read(_) = ask else {
                let answer = node.honest(&ask).expect("a greeting");
                node.tell(request, answer);
                continue;
            };
            node.tell(request, opened(u64::MAX, 7));
            let bytes = FromAgent { request, tell: Some(part(limits::PART_BYTES)) }.to_bytes();
            let mut sent = 0;
            while node.try_payload(&bytes) {
                sent += limits::PART_BYTES;
                if sent > TOO_MUCH {
                    let _ = too_much.send(());
                }
            }
            return end.send(()).unwrap();
        }
    });
    let mut files = Files::open(&node.at("/f"), &EndOptions::default(), &Context::default(), &|_| {}).unwrap();
    let range = ReadRange { length: u64::MAX, ..RANGE };
    let (mut taken, mut is_held_back) = (0, false);
    let read = files.read(b"/f", range, &mut |event| {
        if let ReadEvent::Bytes(bytes) = event {
            // Nothing is taken for a while, in which it could send a hundred times as much.
            if taken == 0 {
                is_held_back = sent_too_much.recv_timeout(HELD_BACK).is_err();
            }
            taken += bytes.len();
        }
        taken < 2 * TOO_MUCH
    });
    assert!(is_held_back, "it sent more than may wait");
    assert_eq!(read.unwrap_err().code, ErrorCode::Interrupted);
    ended.recv().unwrap();
    node.join();
    // The conversation is over, and says so.
    let why = files.stat(b"/f").unwrap_err();
    assert_eq!(why.code, ErrorCode::Interrupted, "{why:?}");
}

#[test]
fn reading_here_stops_in_the_midst_of_a_file() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let path = sandbox.root().join("huge");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let path = path.into_os_string().into_encoded_bytes();
    let here = carrack_core::location::Location::Local(path.clone());
    let mut files = Files::open(&here, &EndOptions::default(), &Context::default(), &|_| {}).unwrap();
    let whole = ReadRange { offset: 0, length: u64::MAX, identity: None };
    let mut parts = 0;
    let read = files.read(&path, whole, &mut |_| {
        parts += 1;
        parts < 100
    });
    assert_eq!((read.unwrap_err().code, parts), (ErrorCode::Interrupted, 100));
}

/// What the client with a grant gets of a range: bytes, or why not.
pub fn ask_for(session: &mut crate::session::Session, path: &str, offset: u64, length: u64) -> Result<u64, Failure> {
    let number = session.ask(Ask::Read(Read { path: path.as_bytes().to_vec(), offset, length, identity: Vec::new() }));
    let mut bytes = 0;
    loop {
        let Some(tell) = session.wait(|request, _| request == number) else { panic!("the session has ended") };
        match tell {
            Tell::Opened(_) => {}
            Tell::Part(Part { content }) => bytes += content.len() as u64,
            Tell::Done(Counted { count }) => {
                assert_eq!(count, bytes);
                return Ok(bytes);
            }
            Tell::Failed(failure) => return Err(failure.into()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn reading_counts_against_a_ceiling_of_bytes() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.root().join("foo")).unwrap();
    std::fs::write(sandbox.root().join("foo/a"), [1; 100]).unwrap();
    let mut session = crate::grants::with_bytes(&sandbox.root(), 150);
    // To look at what it is costs nothing.
    assert_eq!(ask_for(&mut session, "foo/a", 0, 0).unwrap(), 0);
    assert_eq!(ask_for(&mut session, "foo/a", 0, u64::MAX).unwrap(), 100);
    assert_eq!(ask_for(&mut session, "foo/a", 60, 500).unwrap(), 40);
    let why = ask_for(&mut session, "foo/a", 0, 11).unwrap_err();
    assert_eq!((why.code, why.reason), (ErrorCode::PermissionDenied, Some(Reason::GrantCeiling)));
    let _ = session.leave();
}
