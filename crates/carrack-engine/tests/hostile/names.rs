//! Names that lead out: in offers, in bundles, in attributes of directories, and through links
//! that the peer made before.

use carrack_core::attributes::Time;
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::path::display_bytes;
use carrack_core::report::ErrorCode;
use carrack_core::wire::peer::{Answer, ItemResult, PeerMessage};

use crate::sandbox::{CANARY, Sandbox, hostile_paths};
use crate::session::{Session, refused};
use crate::watch::Watch;
use crate::wire::{Entry, block, bundle, bundle_at, directories, offer};

/// Sends each hostile path in one way, and sees it refused by name.
fn all_refused(send: impl Fn(&mut Session, &[u8])) {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for (path, why) in hostile_paths() {
        let shown = display_bytes(&path).to_string();
        let failure = refused(&sandbox, |session| send(session, &path));
        assert_eq!(failure.code, ErrorCode::BadPath, "{shown}: {failure:?}");
        assert!(failure.message().starts_with("the peer sent the path \""), "{shown}: {failure:?}");
        assert!(failure.message().contains(why), "{shown}: {failure:?}");
        assert_eq!(sandbox.names(), Vec::<String>::new(), "{shown}");
    }
}

#[test]
fn offers_with_hostile_names() {
    all_refused(|session, path| session.say(&offer(1, path, Some(5))));
}

#[test]
fn attributes_of_directories_with_hostile_names() {
    all_refused(|session, path| session.say(&directories(&[b"fine", path])));
}

#[test]
fn bundled_files_with_hostile_names() {
    all_refused(|session, path| {
        let mut stream = session.stream(0);
        bundle(&mut stream, 1, &[Entry::File(b"fine", b"x"), Entry::File(path, b"overwritten")]);
    });
}

#[test]
fn bundled_directories_with_hostile_names() {
    all_refused(|session, path| {
        let mut stream = session.stream(0);
        bundle(&mut stream, 1, &[Entry::Directory(path)]);
    });
}

#[test]
fn bundled_links_with_hostile_names() {
    all_refused(|session, path| {
        let mut stream = session.stream(0);
        bundle(&mut stream, 1, &[Entry::Link(path, b"target")]);
    });
}

/// What the receiver says became of the bundle's entries that were not published.
fn exceptions(session: &Session, number: u64) -> Vec<(u32, ItemResult)> {
    match session.heard() {
        PeerMessage::BundleDone { bundle, exceptions } if bundle == BundleId(number) => exceptions,
        other => panic!("instead of the end of bundle {number}: {other:?}"),
    }
}

fn assert_link_refused(result: &ItemResult) {
    let ItemResult::Failed(failure) = result else { panic!("{result:?}") };
    assert_eq!(failure.code, ErrorCode::SymlinkRefused, "{failure:?}");
    assert!(failure.message().contains("a symbolic link stands in the path"), "{failure:?}");
}

/// A link is made, as is anybody's right; whatever then goes through it is not.
#[test]
fn link_made_before_is_not_followed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let outside = sandbox.outside().into_os_string().into_encoded_bytes();
    for target in [outside.as_slice(), b"../outside", b"a/../../outside", b".", b"/proc/self/cwd"] {
        let mut session = Session::start(&sandbox.root());
        session.begin();
        let mut stream = session.stream(0);
        bundle(&mut stream, 1, &[Entry::Directory(b"a"), Entry::Link(b"x", target)]);
        assert_eq!(exceptions(&session, 1), []);
        let through = [
            Entry::File(b"x/canary", b"overwritten"),
            Entry::File(b"x/new", b"planted"),
            Entry::Directory(b"x/made"),
            Entry::Directory(b"x/private/made"),
            Entry::Link(b"x/link", b"canary"),
            Entry::File(b"x/private/canary", b"overwritten"),
        ];
        bundle(&mut stream, 2, &through);
        let results = exceptions(&session, 2);
        assert_eq!(results.len(), through.len(), "{results:?}");
        results.iter().for_each(|(_, result)| assert_link_refused(result));
        session.say(&offer(3, b"x/big", Some(3)));
        let PeerMessage::Answer { item: ItemId(3), answer: Answer::Refuse(why) } = session.heard() else { panic!() };
        assert_link_refused(&ItemResult::Failed(why));
        session.say(&directories(&[b"x/private", b"x"]));
        session.say(&PeerMessage::Finish);
        let PeerMessage::DirectoriesFailed(failures) = session.heard() else { panic!() };
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(matches!(session.heard(), PeerMessage::Finished { .. }));
        session.ended().unwrap();
        session.leave().unwrap();
        sandbox.assert_untouched();
        assert_eq!(sandbox.names(), ["a", "x"]);
        std::fs::remove_file(sandbox.root().join("x")).unwrap();
    }
}

/// The link and what goes through it in one bundle, and a link put where a directory is.
#[test]
fn link_of_the_same_bundle_is_not_followed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.begin();
    let mut stream = session.stream(0);
    let together = [Entry::Link(b"y", b"../outside"), Entry::File(b"y/canary", b"overwritten")];
    bundle(&mut stream, 1, &together);
    // The directory came to be first, and a link does not replace one.
    let results = exceptions(&session, 1);
    assert!(matches!(results.as_slice(), [(0, ItemResult::Failed(_))]), "{results:?}");
    bundle(&mut stream, 2, &[Entry::Directory(b"d/e/f"), Entry::Link(b"d/e", b"../../outside")]);
    let results = exceptions(&session, 2);
    assert!(matches!(results.as_slice(), [(1, ItemResult::Failed(_))]), "{results:?}");
    bundle(&mut stream, 3, &[Entry::File(b"d/e/canary", b"mine"), Entry::Link(b"d", b"../outside")]);
    let results = exceptions(&session, 3);
    assert!(matches!(results.as_slice(), [(1, ItemResult::Failed(_))]), "{results:?}");
    session.say(&PeerMessage::Finish);
    session.ended().unwrap();
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), ["d", "d/e", "d/e/canary", "d/e/f", "y", "y/canary"]);
}

/// A file offered and accepted, whose directory is exchanged for a link before its last block.
#[test]
fn link_put_there_meanwhile_is_not_followed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.begin();
    let mut stream = session.stream(0);
    session.say(&offer(1, b"d/canary", Some(5)));
    assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(1), answer: Answer::Accept });
    // Somebody else on the host, who may write there, does it.
    std::fs::rename(sandbox.root().join("d"), sandbox.root().join("was d")).unwrap();
    std::os::unix::fs::symlink(sandbox.outside(), sandbox.root().join("d")).unwrap();
    block(&mut stream, 1, 0, b"bytes", true);
    let blake3 = Some(*blake3::hash(b"bytes").as_bytes());
    session.say(&PeerMessage::Complete { item: ItemId(1), size: 5, digest: blake3, modified: None });
    assert_eq!(session.heard(), PeerMessage::Done { item: ItemId(1), result: ItemResult::Published });
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(std::fs::read(sandbox.root().join("was d/canary")).unwrap(), b"bytes");
    assert_eq!(std::fs::read(sandbox.outside().join("canary")).unwrap(), CANARY);
}

/// Bits that give rights are not a peer's to give.
#[test]
fn modes_are_cut() {
    use std::os::unix::fs::PermissionsExt;
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.begin();
    let mut stream = session.stream(0);
    bundle(&mut stream, 1, &[Entry::File(b"tool", b"#!"), Entry::Directory(b"d")]);
    assert_eq!(exceptions(&session, 1), []);
    let mut attributes = directories(&[b"d"]);
    if let PeerMessage::Directories(list) = &mut attributes {
        list[0].attributes.mode = 0o7777;
        list[0].attributes.mtime = Some(Time::new(i64::MAX, 999_999_999));
    }
    session.say(&attributes);
    session.say(&PeerMessage::Finish);
    session.ended().unwrap();
    session.leave().unwrap();
    for name in ["tool", "d"] {
        let mode = std::fs::metadata(sandbox.root().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7000, 0, "{name}");
    }
}

/// Times that no calendar has, of files in bundles and in blocks, links, directories: set, cut or refused by the file
/// system, and nothing else comes of it.
#[test]
fn times_at_the_ends_of_what_can_be_counted() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for (round, seconds) in [i64::MIN, i64::MIN + 1, -1, i64::MAX - 1, i64::MAX].into_iter().enumerate() {
        let mtime = Time::new(seconds, 999_999_999);
        let mut session = Session::start(&sandbox.root());
        session.begin();
        let mut stream = session.stream(0);
        let names = ["small", "link", "directory", "large"].map(|kind| format!("{kind}-{round}").into_bytes());
        let [small, link, directory, large] = &names;
        let entries = [Entry::File(small, b"bytes"), Entry::Link(link, b"target"), Entry::Directory(directory)];
        bundle_at(&mut stream, 1, &entries, mtime);
        assert!(exceptions(&session, 1).iter().all(|(_, result)| matches!(result, ItemResult::Failed(_))));
        let mut offered = offer(2, large, Some(5));
        if let PeerMessage::Offer(offer) = &mut offered {
            offer.attributes.mtime = Some(mtime);
        }
        session.say(&offered);
        assert_eq!(session.heard(), PeerMessage::Answer { item: ItemId(2), answer: Answer::Accept });
        block(&mut stream, 2, 0, b"bytes", true);
        session.say(&PeerMessage::Complete {
            item: ItemId(2),
            size: 5,
            digest: Some(*blake3::hash(b"bytes").as_bytes()),
            modified: None,
        });
        let PeerMessage::Done { item: ItemId(2), result } = session.heard() else { panic!() };
        assert!(matches!(result, ItemResult::Published | ItemResult::Failed(_)), "{result:?}");
        let mut attributes = directories(&[directory]);
        if let PeerMessage::Directories(list) = &mut attributes {
            list[0].attributes.mtime = Some(mtime);
        }
        session.say(&attributes);
        session.say(&PeerMessage::Finish);
        assert!(matches!(session.heard(), PeerMessage::Finished { .. }));
        session.ended().unwrap();
        session.assert_alive();
        session.leave().unwrap();
        sandbox.assert_untouched();
    }
}
