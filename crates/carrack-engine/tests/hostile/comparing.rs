//! A sender that means harm, where both sides are compared and what only the destination has is deleted: it has no more
//! deleted than the command has ordered.

use std::os::unix::fs::symlink;

use carrack_core::attributes::{OtherAttributes, Time};
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::judgment::Judgment;
use carrack_core::report::{ErrorCode, Failure, ItemKind};
use carrack_core::request::Compare;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::patch;
use carrack_core::wire::peer::{Answer, AskedIndex, AskedItem, ItemResult, PeerMessage, Question};

use crate::sandbox::{Sandbox, hostile_paths};
use crate::session::{BLOCK, Session, options};
use crate::watch::Watch;
use crate::wire::{Entry, bundle, offer, patched_block};

fn asked(path: &[u8]) -> AskedItem {
    let (mtime, leads_to) = (Some(Time::new(1, 0)), Vec::new());
    let (path, others) = (path.to_vec(), OtherAttributes::default());
    AskedItem { path, kind: ItemKind::File, size: 5, mtime, mode: 0o644, others, leads_to, hard_link: None }
}

fn compare(number: u64, question: Question) -> PeerMessage {
    PeerMessage::Compare { number: BundleId(number), question }
}

fn listed(number: u64, names: &[&[u8]], directory: &[u8], complete: bool) -> PeerMessage {
    let names = names.iter().map(|name| name.to_vec()).collect();
    compare(number, Question { names, listed: vec![(directory.to_vec(), complete)], ..Question::default() })
}

/// A receiver that compares, and is ordered to delete.
fn begin(sandbox: &Sandbox, compares: Compare, order: Option<RawDeleteOrder>) -> Session {
    let mut session = Session::start(&sandbox.root());
    let role = ReceiveRole { delete: order, ..ReceiveRole::default() };
    let options = RawOptions { compare: compares.number(), tells_names: order.is_some(), ..options() };
    session.request(Ask::Begin(Begin { options: Some(options), role: Some(Role::Receive(role)) })).unwrap();
    session
}

fn refused(sandbox: &Sandbox, session: (Compare, Option<RawDeleteOrder>), says: &[PeerMessage]) -> Failure {
    let mut session = begin(sandbox, session.0, session.1);
    says.iter().for_each(|message| session.say(message));
    let failure = session.ended().expect_err("the receiver took it");
    session.assert_alive();
    session.leave().unwrap();
    sandbox.assert_untouched();
    failure
}

const ORDER: Option<RawDeleteOrder> = Some(RawDeleteOrder {
    most: None,
    partial: false,
    allow_empty: false,
    ignore_errors: false,
    asks: false,
    share: None,
});

#[test]
fn comparisons_that_make_no_sense() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.root().join("mine"), b"mine!").unwrap();
    let items = |items| Question { items, ..Question::default() };
    for (path, why) in hostile_paths() {
        let says = [compare(1, items(vec![asked(&path)]))];
        let failure = refused(&sandbox, (Compare::SizeAndTime, None), &says);
        assert!(failure.code == ErrorCode::BadPath && failure.message().contains(why), "{failure:?}");
        let says = [compare(1, Question { names: vec![path.clone()], ..Question::default() })];
        assert_eq!(refused(&sandbox, (Compare::SizeAndTime, ORDER), &says).code, ErrorCode::BadPath);
        // The destination itself is listed by an empty path.
        if !path.is_empty() {
            let says = [compare(1, Question { listed: vec![(path, true)], ..Question::default() })];
            assert_eq!(refused(&sandbox, (Compare::SizeAndTime, ORDER), &says).code, ErrorCode::BadPath);
        }
    }
    let one = || compare(1, items(vec![asked(b"f")]));
    let cases: Vec<(Compare, Option<RawDeleteOrder>, Vec<PeerMessage>, &str)> = vec![
        (Compare::Nothing, None, vec![one()], "nothing is compared"),
        (Compare::Size, None, vec![listed(1, &[b"f"], b"", true)], "nobody wants to know"),
        (Compare::Size, None, vec![PeerMessage::Delete { failed: 0 }], "says to delete"),
        (Compare::Size, ORDER, vec![PeerMessage::Delete { failed: 0 }, PeerMessage::Delete { failed: 0 }], "or twice"),
        (
            Compare::Size,
            ORDER,
            vec![PeerMessage::Delete { failed: 0 }, listed(2, &[b"f"], b"", true)],
            "nobody wants to know",
        ),
        (
            Compare::Content,
            None,
            vec![PeerMessage::Content { asked: AskedIndex { number: BundleId(1), index: 0 }, digest: None }],
            "nobody asked for",
        ),
    ];
    for (level, order, says, why) in cases {
        let failure = refused(&sandbox, (level, order), &says);
        assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
        assert!(failure.message().contains(why), "{why}: {failure:?}");
    }
    assert_eq!(sandbox.names(), ["mine"]);
}

/// It is told of what stands there by name, size and time, and of nothing that a link leads to.
#[test]
fn comparison_follows_no_link() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    symlink(sandbox.outside(), sandbox.root().join("out")).unwrap();
    symlink(sandbox.outside().join("canary"), sandbox.root().join("link")).unwrap();
    let session = begin(&sandbox, Compare::Content, None);
    let items = vec![asked(b"out/canary"), asked(b"link"), asked(b"absent/f")];
    session.say(&compare(1, Question { items, ..Question::default() }));
    let PeerMessage::Compared { judgments, .. } = session.heard() else { panic!("another answer") };
    assert_eq!([judgments[0], judgments[2]], [Judgment::New; 2]);
    assert!(matches!(judgments[1], Judgment::Differs(difference) if difference.kind), "{judgments:?}");
    session.leave().unwrap();
    sandbox.assert_untouched();
}

/// A patch is taken only where chunks are told, makes a file of what stands at its own name or none, and tells nothing
/// of what a link leads to.
#[test]
fn patches_are_of_what_stands_there() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let (mine, new) = (vec![7; 20_000], [vec![7; 19_000], vec![8; 1000]].concat());
    let (patch, _) = patch::patch(&new, 20_000, &patch::digests(&mine, 20_000)).unwrap();
    std::fs::write(sandbox.root().join("mine"), &mine).unwrap();
    let canary = std::fs::read(sandbox.outside().join("canary")).unwrap();
    symlink(sandbox.outside().join("canary"), sandbox.root().join("link")).unwrap();
    symlink(sandbox.outside(), sandbox.root().join("out")).unwrap();
    let sends = |session: &mut Session, entry: Entry<'_>| bundle(&mut session.stream(0), 1, &[entry]);
    // All of it is taken from what stands there; and it is said to be what the canary is.
    let length = (canary.len() as u32).to_be_bytes();
    let all = [&length[..], &1024_u32.to_be_bytes(), &vec![0; canary.len().div_ceil(1024).div_ceil(8)]].concat();
    let untold: [(&[u8], &[u8], Compare); 5] = [
        (b"mine", &patch, Compare::Nothing),
        (b"mine", &patch, Compare::Size),
        (b"link", &all, Compare::Size),
        (b"out/canary", &all, Compare::Size),
        (b"absent", &all, Compare::Size),
    ];
    for (path, sent, compares) in untold {
        let mut session = begin(&sandbox, compares, None);
        sends(&mut session, Entry::Patch(path, sent, if sent == all { &canary } else { &new }));
        let failure = session.ended().expect_err("the receiver took it");
        let is_refused =
            failure.code == ErrorCode::ProtocolViolation && failure.message().contains("told of any chunks");
        assert!(is_refused, "{failure:?}");
        session.leave().unwrap();
        sandbox.assert_untouched();
    }
    // Of a link, and of what it leads to, none are told; of a file they are, and a patch may come.
    let tells = |session: &Session| {
        let question = |path: &[u8]| AskedItem { size: 20_001, ..asked(path) };
        let items = vec![question(b"link"), question(b"out/canary"), question(b"mine")];
        session.say(&compare(1, Question { items, ..Question::default() }));
        let PeerMessage::Compared { judgments, .. } = session.heard() else { panic!("another answer") };
        let chunked: Vec<_> = judgments.iter().map(|judgment| matches!(judgment, Judgment::Chunked(_))).collect();
        assert_eq!(chunked, [false, false, true], "{judgments:?}");
        let PeerMessage::ContentCompared { asked, same: false, chunks } = session.heard() else { panic!("no chunks") };
        assert_eq!((asked.index, chunks.len()), (2, 20));
    };
    for sent in [&patch[..20], b""] {
        let mut session = begin(&sandbox, Compare::Size, None);
        tells(&session);
        sends(&mut session, Entry::Patch(b"mine", sent, &new));
        let failure = session.ended().expect_err("the receiver took it");
        assert!(failure.message().contains("makes nothing"), "{failure:?}");
        session.leave().unwrap();
    }
    // What is said to come of it is something else: it is dropped, and comes again.
    let mut session = begin(&sandbox, Compare::Size, None);
    tells(&session);
    sends(&mut session, Entry::Patch(b"mine", &patch, &canary));
    let heard = [session.heard()].into_iter().find(|heard| !matches!(heard, PeerMessage::Landed { .. }));
    let exceptions = vec![(0, ItemResult::Dropped)];
    let done = heard.unwrap_or_else(|| session.heard());
    assert_eq!(done, PeerMessage::BundleDone { bundle: BundleId(1), exceptions });
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(std::fs::read(sandbox.root().join("mine")).unwrap(), mine);
    assert_eq!(sandbox.names(), ["link", "mine", "out"]);
}

/// A patch of a block is taken only where its chunks were told, and makes a file only of what it is said to make.
#[test]
fn patched_blocks_are_of_what_is_taken_over() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let block = BLOCK as usize;
    let old: Vec<u8> = (0..2 * block).map(|at| (at / 7) as u8).collect();
    std::fs::write(sandbox.root().join("mine"), &old).unwrap();
    let mut new = old.clone();
    new[5] ^= 1;
    let chunks: Vec<u32> = old[..block].chunks(4096).map(crc32c::crc32c).collect();
    let (patch, _) = patch::of_chunks(&new[..block], 4096, &chunks).unwrap();
    let refused = |path: &[u8], patch: &[u8], why: &str| {
        let mut session = begin(&sandbox, Compare::Size, None);
        session.say(&offer(1, path, Some(2 * u64::from(BLOCK))));
        while !matches!(session.heard(), PeerMessage::Answer { answer: Answer::Accept, .. }) {}
        patched_block(&mut session.stream(0), 1, 0, patch, &new[..block]);
        let failure = session.ended().expect_err("the receiver took it");
        assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
        assert!(failure.message().contains(why), "{why}: {failure:?}");
        session.leave().unwrap();
    };
    refused(b"absent", &patch, "nobody told of any chunks");
    refused(b"mine", &patch[..patch.len() - 1], "a patch that makes nothing");
    let long = [&(BLOCK + 1).to_be_bytes(), &patch[4..]].concat();
    refused(b"mine", &long, "a patch that makes nothing");
    let short = [&4096_u32.to_be_bytes()[..], &4096_u32.to_be_bytes(), &[1], &new[..4096]].concat();
    refused(b"mine", &short, "with a length or place that the file's size does not allow");

    let mut session = begin(&sandbox, Compare::Size, None);
    session.say(&offer(1, b"mine", Some(2 * u64::from(BLOCK))));
    let PeerMessage::Held { digests, chunks: told, taken_over: true, .. } = session.heard() else { panic!() };
    assert!(digests.len() == 2 && told[..chunks.len()] == chunks && told.len() == 2 * chunks.len());
    assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
    // It makes something else than it is said to make: the block is to come again.
    let mut stream = session.stream(0);
    patched_block(&mut stream, 1, 0, &patch, &old[..block]);
    assert_eq!(session.heard(), PeerMessage::SendAgain { item: ItemId(1), offset: 0 });
    session.leave().unwrap();
    assert_eq!(std::fs::read(sandbox.root().join("mine")).unwrap(), old);
    sandbox.assert_untouched();
}

/// Whatever it claims to have or to have listed, only names of directories that it told of go, nothing outside, nothing
/// through a link, and nothing that the order's guards keep.
#[test]
fn deletion_is_the_command_s_order() {
    let sandbox = Sandbox::new();
    let fill = || {
        std::fs::create_dir_all(sandbox.root().join("d")).unwrap();
        for name in ["a", "b", "d/c"] {
            std::fs::write(sandbox.root().join(name), b"mine!").unwrap();
        }
        let _ = symlink(sandbox.outside(), sandbox.root().join("out"));
    };
    // Before anything goes, the source is asked about it: it says of all that it has it by now, or not.
    let ends_asked = |order, says: &[PeerMessage], has: Option<bool>| {
        let _watch = Watch::start();
        fill();
        let mut session = begin(&sandbox, Compare::SizeAndTime, order);
        for message in says {
            session.say(message);
            if let PeerMessage::Compare { .. } = message {
                session.heard();
            }
        }
        session.say(&PeerMessage::Delete { failed: 0 });
        if let Some(has) = has {
            let PeerMessage::AskStillThere { number, paths } = session.heard() else { panic!("another question") };
            session.say(&PeerMessage::StillThere { number, there: vec![has; paths.len()] });
        }
        session.say(&PeerMessage::Finish);
        let ended = session.ended();
        session.leave().unwrap();
        ended.unwrap();
        sandbox.assert_untouched();
        let mut names = sandbox.names();
        names.sort();
        names
    };
    let ends = |order, says: &[PeerMessage]| ends_asked(order, says, None);
    let all = ["a", "b", "d", "d/c", "out"];
    // Nothing was listed; nothing is there at all; it was not all; a link's own content.
    assert_eq!(ends(ORDER, &[]), all);
    assert_eq!(ends(ORDER, &[listed(1, &[], b"", true)]), all);
    assert_eq!(ends(ORDER, &[listed(1, &[b"a"], b"", false)]), all);
    assert_eq!(ends(ORDER, &[listed(1, &[b"a"], b"out", true)]), all);
    let most = Some(RawDeleteOrder { most: Some(1), ..ORDER.unwrap() });
    assert_eq!(ends(most, &[listed(1, &[b"a"], b"", true)]), all);
    // What the source has by now stays; else the link goes, and what it leads to stays.
    let without_link = [listed(1, &[b"a", b"d", b"d/c"], b"", true)];
    assert_eq!(ends_asked(ORDER, &without_link, Some(true)), all);
    assert_eq!(ends_asked(ORDER, &without_link, Some(false)), ["a", "d", "d/c"]);
}
