//! A client that has shown a grant and wants more: other verbs, other paths, more of everything, and for longer.

mod copies;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use carrack_core::credential::Token;
use carrack_core::grant::{Ceilings, Claims, GrantKey, Right, Rights};
use carrack_core::report::{ErrorCode, Failure, Reason};
use carrack_core::wire::control::raw::*;
use carrack_engine::node::RevokedGrants;
use carrack_engine::testing::agent::NodeToken;

use crate::sandbox::Sandbox;
use crate::session::{Session, bytes, receive, send};
use crate::watch::Watch;
use crate::wire::{Entry as Sent, bundle};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const ID: [u8; 16] = [7; 16];

fn key() -> GrantKey {
    GrantKey::of(&Token::new(SECRET).unwrap())
}

fn token() -> Arc<NodeToken> {
    Arc::new(NodeToken::new(&Token::new(SECRET).unwrap(), RevokedGrants::default()))
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// Everything below `foo`, for an hour.
fn claims() -> Claims {
    let (prefix, expires) = (b"foo".to_vec(), now() + 3600);
    Claims { id: ID, rights: Rights::all(), prefix, expires, ceilings: Ceilings::default() }
}

fn only(verbs: &[Right]) -> Claims {
    Claims { rights: Rights::of(verbs), ..claims() }
}

fn limited(ceilings: Ceilings) -> Claims {
    Claims { ceilings, ..claims() }
}

fn shown(claims: &Claims) -> String {
    key().seal(claims).unwrap().reveal().to_owned()
}

/// What the grants are for, something beside it whose name begins alike, and links out.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("foo/sub")).unwrap();
    fs::create_dir_all(root.join("foobar/sub")).unwrap();
    for (path, content) in [("foo/a", "a"), ("foo/b", "bb"), ("foo/sub/c", "ccc"), ("foobar/canary", "left alone")] {
        fs::write(root.join(path), content).unwrap();
    }
    symlink("../foobar", root.join("foo/out")).unwrap();
    symlink(root.join("foobar"), root.join("foo/absolute")).unwrap();
    symlink("sub", root.join("foo/inside")).unwrap();
    symlink("foobar", root.join("link")).unwrap();
}

fn session(root: &Path, claims: &Claims) -> Session {
    Session::with_grant(root, &token(), &shown(claims)).unwrap()
}

fn list(path: &str) -> Ask {
    Ask::List(List { path: bytes(path), recursive: true, ..List::default() })
}

fn sum(path: &str) -> Ask {
    Ask::Sum(Sum { path: bytes(path), digests: 1, one_file: false })
}

fn read(path: &str) -> Ask {
    Ask::Read(Read { path: bytes(path), length: 1, ..Read::default() })
}

/// A session with a grant of so many bytes below `foo`.
pub fn with_bytes(root: &Path, bytes: u64) -> Session {
    session(root, &limited(Ceilings { bytes: Some(bytes), ..Ceilings::default() }))
}

fn make(path: &str, parents: bool) -> Ask {
    Ask::MakeDirectory(MakeDirectory { path: bytes(path), parents })
}

fn rename(from: &str, to: &str) -> Ask {
    Ask::Rename(Rename { from: bytes(from), to: bytes(to), no_replace: false })
}

fn remove(path: &str) -> Ask {
    Ask::Remove(Remove { path: bytes(path), recursive: true, ..Remove::default() })
}

fn refer(path: &str) -> Ask {
    Ask::Refer(References { used: 0, paths: vec![bytes(path)] })
}

fn told(result: Result<Tell, Failure>) -> (ErrorCode, Option<Reason>) {
    let why = result.expect_err("it is refused");
    (why.code, why.reason)
}

/// Each request with the verb that it takes.
#[test]
fn grant_allows_its_verbs_and_no_other() {
    let _watch = Watch::start();
    let asks: [(Right, fn() -> Ask); 11] = [
        (Right::Read, || list("foo")),
        (Right::Read, || sum("foo/a")),
        (Right::Read, || read("foo/a")),
        (Right::Read, || send("foo/a")),
        (Right::Read, || refer("../sub")),
        (Right::Write, || make("foo/made", false)),
        (Right::Write, || rename("foo/a", "foo/renamed")),
        (Right::Write, || receive("foo/in", 0)),
        (Right::Write, || Ask::Collect(Collect { path: bytes("foo"), marker: vec![7; 8], ..Collect::default() })),
        (Right::Delete, || remove("foo/b")),
        (Right::Delete, || remove("foo")),
    ];
    for (verb, ask) in asks {
        let others: Vec<Right> = Right::ALL.iter().copied().filter(|other| *other != verb).collect();
        let sandbox = Sandbox::new();
        tree(&sandbox.root());
        let before = sandbox.names();
        let mut refused = session(&sandbox.root(), &only(&others));
        let shown = format!("{:?}", ask());
        assert_eq!(
            told(refused.request(ask())),
            (ErrorCode::PermissionDenied, Some(Reason::GrantRight)),
            "{shown}: {others:?}"
        );
        assert!(refused.request(Ask::Inspect(Paths { paths: vec![bytes("foo/a")] })).is_ok());
        refused.leave().unwrap();
        assert_eq!(sandbox.names(), before, "{shown}");
        let mut allowed = session(&sandbox.root(), &only(&[verb]));
        assert!(allowed.request(ask()).is_ok(), "{shown}: {verb:?}");
        allowed.leave().unwrap();
    }
}

#[test]
fn grant_is_no_token_for_what_only_the_token_allows() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let mut session = session(&sandbox.root(), &claims());
    let asks = [
        Ask::Collect(Collect { path: bytes("foo"), ..Collect::default() }),
        Ask::Evidence(EvidenceAbout { directory: bytes("foo"), ..EvidenceAbout::default() }),
    ];
    for ask in asks {
        assert_eq!(told(session.request(ask)), (ErrorCode::PermissionDenied, Some(Reason::GrantRight)));
    }
    session.leave().unwrap();
}

const OUTSIDE: [&str; 8] = ["", "/", "foobar", "/foobar", "//foobar", "foobar/canary", "link/canary", "%2e%2e/foobar"];
const NO_PATHS: [&str; 9] = [
    "..",
    "foo/..",
    "foo/../foobar/canary",
    "/foo/../foobar/canary",
    "foo//a",
    "foo/./a",
    "./foo/a",
    "foo/a\0",
    "foo/sub/../../foobar",
];
/// Through links, and to where nothing is: an encoded name is a name like any other.
const NOWHERE: [&str; 4] = ["foo/out/canary", "foo/absolute/canary", "foo/%2e%2e/foobar/canary", "foo/..%2ffoobar"];

/// Whatever is asked about another path is refused, and nothing of it is told or changed.
#[test]
fn paths_outside_of_a_grant_are_not_read_or_changed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let before = sandbox.names();
    let reasons = OUTSIDE.map(|path| (path, Some((ErrorCode::OutsideRoot, Some(Reason::GrantOutside)))));
    let plain = NO_PATHS.map(|path| (path, Some((ErrorCode::BadPath, None))));
    let nowhere = NOWHERE.map(|path| (path, None));
    for (path, expected) in reasons.into_iter().chain(plain).chain(nowhere) {
        let mut session = session(&sandbox.root(), &claims());
        let below = format!("{path}/x");
        let asks = [
            list(path),
            sum(path),
            read(path),
            make(path, false),
            make(&below, false),
            make(&below, true),
            rename("foo/a", &below),
            rename(&below, "foo/stolen"),
            rename(path, "foo/stolen"),
            remove(path),
            send(path),
            receive(path, 0),
            receive(&below, 0),
        ];
        for ask in asks {
            // What is not there may be made, as long as it is below the grant's path.
            let may_be_made = expected.is_none() && path.contains("%2");
            if may_be_made && matches!(ask, Ask::MakeDirectory(_) | Ask::Begin(_) | Ask::Rename(_)) {
                continue;
            }
            let shown = format!("{path}: {ask:?}");
            let why = session.request(ask).expect_err(&shown);
            assert!(expected.is_none_or(|expected| expected == (why.code, why.reason)), "{shown}: {why:?}");
        }
        let inspect = Ask::Inspect(Paths { paths: vec![bytes(path)] });
        let Ok(Tell::Inspected(Inspected { facts })) = session.request(inspect) else { panic!() };
        assert_eq!(facts[0].kind, 0, "{path}: {facts:?}");
        session.leave().unwrap();
        assert_eq!(sandbox.names(), before, "{path}");
    }
    assert_eq!(fs::read(sandbox.root().join("foobar/canary")).unwrap(), b"left alone");
}

/// What stands elsewhere does not come to have a name where the grant may write.
#[test]
fn reference_directories_of_a_grant_lie_within_it() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    for path in ["/", "/foobar", "/foo/../foobar", "/link", "/foo/out", "/foo/absolute", "../../foobar", "../../.."] {
        let mut session = session(&sandbox.root(), &claims());
        assert!(session.request(refer(path)).is_ok());
        let why = session.request(receive("foo/in", 0)).expect_err(path);
        assert!(!sandbox.root().join("foo/in").exists(), "{path}: {why:?}");
        session.leave().unwrap();
    }
    for path in ["/foo/sub", "../sub", "../inside", "none"] {
        let mut session = session(&sandbox.root(), &claims());
        assert!(session.request(refer(path)).is_ok() && session.request(receive("foo/in", 0)).is_ok(), "{path}");
        session.leave().unwrap();
    }
}

#[test]
fn paths_of_a_grant_are_those_of_the_node() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let mut session = session(&sandbox.root(), &claims());
    let paths = ["foo", "/foo/", "foo/a", "foo/inside/c", "foo/none/deep", "foo/inside/none"].map(bytes).to_vec();
    let Ok(Tell::Inspected(Inspected { facts })) = session.request(Ask::Inspect(Paths { paths })) else { panic!() };
    let names: Vec<_> = facts.iter().map(|facts| String::from_utf8_lossy(&facts.resolved).into_owned()).collect();
    assert_eq!(names, ["/foo", "/foo", "/foo/a", "/foo/sub/c", "/foo/none/deep", "/foo/sub/none"]);
    for ask in [list("/foo"), sum("foo/inside/c"), make("/foo/x/y/z/", true), rename("foo/a", "foo/x"), remove("foo/b")]
    {
        let shown = format!("{ask:?}");
        assert!(session.request(ask).is_ok(), "{shown}");
    }
    assert!(sandbox.names().contains(&"foo/x/a".to_owned()));
    session.leave().unwrap();
}

/// Who may write below another grant's path could have this one lead elsewhere.
#[test]
fn path_of_a_grant_leads_through_no_link() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    for prefix in ["link", "link/sub", "foo/out", "foo/inside"] {
        let mut session = session(&sandbox.root(), &Claims { prefix: bytes(prefix), ..claims() });
        for path in [prefix.to_owned(), format!("{prefix}/canary"), format!("{prefix}/c")] {
            for ask in
                [list(&path), sum(&path), read(&path), send(&path), receive(&path, 0), make(&format!("{path}/x"), true)]
            {
                let shown = format!("{prefix}: {ask:?}");
                let why = session.request(ask).expect_err(&shown);
                assert_eq!(why.code, ErrorCode::SymlinkRefused, "{shown}: {why:?}");
            }
        }
        session.leave().unwrap();
    }
}

/// What the grant covers may be made where it is not there yet, and nothing above it.
#[test]
fn path_of_a_grant_is_made_and_nothing_above_it() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let mut made = session(&sandbox.root(), &Claims { prefix: bytes("foo/new"), ..claims() });
    assert!(made.request(receive("foo/new/deep", 0)).is_ok());
    made.leave().unwrap();
    let mut refused = session(&sandbox.root(), &Claims { prefix: bytes("none/new"), ..claims() });
    assert_eq!(told(refused.request(receive("none/new", 0))).0, ErrorCode::NotFound);
    refused.leave().unwrap();
    assert!(sandbox.root().join("foo/new/deep").is_dir() && !sandbox.root().join("none").exists());
}

/// A file alone may be covered.
#[test]
fn grant_of_one_file_covers_that_file() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let mut session = session(&sandbox.root(), &Claims { prefix: bytes("foo/a"), ..claims() });
    assert!(session.request(sum("foo/a")).is_ok());
    assert_eq!(told(session.request(sum("foo/b"))).1, Some(Reason::GrantOutside));
    assert!(session.request(send("/foo/a")).is_ok());
    session.leave().unwrap();
}

#[test]
fn rename_replaces_only_by_the_right_to_delete() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let root = sandbox.root();
    let mut writes = session(&root, &only(&[Right::Write]));
    assert_eq!(told(writes.request(rename("foo/a", "foo/b"))).1, Some(Reason::GrantRight));
    fs::hard_link(root.join("foo/a"), root.join("foo/same")).unwrap();
    assert_eq!(told(writes.request(rename("foo/a", "foo/same"))).1, Some(Reason::GrantRight));
    assert!(writes.request(rename("foo/a", "foo/free")).is_ok());
    writes.leave().unwrap();
    assert_eq!(fs::read(root.join("foo/b")).unwrap(), b"bb");
    let mut deletes = session(&root, &limited(Ceilings { deletions: Some(1), ..Ceilings::default() }));
    assert!(deletes.request(rename("foo/free", "foo/b")).is_ok());
    assert_eq!(told(deletes.request(rename("foo/same", "foo/b"))).1, Some(Reason::GrantCeiling));
    assert_eq!(fs::read(root.join("foo/b")).unwrap(), b"a");
    let _ = deletes.leave();
}

/// The agent does not look first, so what comes to have the name at any moment stays.
#[test]
fn rename_to_a_free_name_replaces_nothing_whatever_is_allowed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let root = sandbox.root();
    fs::hard_link(root.join("foo/a"), root.join("foo/same")).unwrap();
    fs::create_dir_all(root.join("foo/empty")).unwrap();
    fs::create_dir_all(root.join("foo/full/in")).unwrap();
    let only_free = |from: &str, to: &str| Ask::Rename(Rename { from: bytes(from), to: bytes(to), no_replace: true });
    let mut all = session(&root, &only(&[Right::Write, Right::Delete]));
    for (from, to) in [("a", "b"), ("a", "same"), ("a", "empty"), ("empty", "full"), ("full", "empty"), ("empty", "b")]
    {
        let (from, to) = (format!("foo/{from}"), format!("foo/{to}"));
        assert_eq!(told(all.request(only_free(&from, &to))).0, ErrorCode::AlreadyExists, "{from} to {to}");
    }
    for (from, to) in [("a", "free"), ("full", "empty/moved")] {
        assert!(all.request(only_free(&format!("foo/{from}"), &format!("foo/{to}"))).is_ok(), "{from} to {to}");
    }
    all.leave().unwrap();
    assert_eq!(
        (fs::read(root.join("foo/b")).unwrap(), fs::read(root.join("foo/free")).unwrap()),
        ("bb".into(), "a".into())
    );
    assert!(root.join("foo/same").exists() && root.join("foo/empty/moved/in").is_dir());
}

#[test]
fn removal_ends_at_the_ceiling_and_so_does_the_session() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.root().join("foo")).unwrap();
    (0..10).for_each(|number| fs::write(sandbox.root().join(format!("foo/{number}")), "x").unwrap());
    let mut session = session(&sandbox.root(), &limited(Ceilings { deletions: Some(3), ..Ceilings::default() }));
    assert_eq!(told(session.request(remove("foo"))), (ErrorCode::PermissionDenied, Some(Reason::GrantCeiling)));
    let last = session.last_words();
    assert_eq!(last.reason, Some(Reason::GrantCeiling));
    assert!(last.message().contains("ceiling of 3 deletions"), "{last:?}");
    assert!(session.wait(|_, _| false).is_none(), "the session goes on");
    assert_eq!(sandbox.names().len(), 1 + 7);
    session.leave().unwrap();
}

/// Sessions with one grant count together, whether they follow each other or not.
#[test]
fn ceiling_is_that_of_all_sessions_with_the_grant() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    tree(&sandbox.root());
    let grant = shown(&limited(Ceilings { deletions: Some(2), ..Ceilings::default() }));
    let token = token();
    let start = || Session::with_grant(&sandbox.root(), &token, &grant).unwrap();
    let (mut one, mut two) = (start(), start());
    assert!(one.request(remove("foo/a")).is_ok());
    one.leave().unwrap();
    assert!(two.request(remove("foo/b")).is_ok());
    assert_eq!(told(two.request(remove("foo/sub/c"))).1, Some(Reason::GrantCeiling));
    let _ = two.leave();
    let mut three = start();
    assert_eq!(told(three.request(remove("foo/sub/c"))).1, Some(Reason::GrantCeiling));
    let _ = three.leave();
    assert!(sandbox.root().join("foo/sub/c").exists());
}

/// A sender that sends more than the grant lets it make: nothing beyond appears, whatever it has announced.
#[test]
fn entries_of_a_hostile_sender_end_at_the_ceiling() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.root().join("foo")).unwrap();
    let mut session = session(&sandbox.root(), &limited(Ceilings { entries: Some(2), ..Ceilings::default() }));
    let mut stream = {
        session.listen();
        session.request(receive("foo", 0)).unwrap();
        session.stream(0)
    };
    let entries = [
        Sent::Directory(b"d"),
        Sent::File(b"d/one", b"1"),
        Sent::File(b"d/two", b"22"),
        Sent::Link(b"link", b"d"),
        Sent::File(b"three", b"333"),
    ];
    bundle(&mut stream, 1, &entries);
    let why = session.ended().expect_err("it is ended");
    assert_eq!(why.reason, Some(Reason::GrantCeiling), "{why:?}");
    assert!(why.message().contains("ceiling of 2 entries"), "{why:?}");
    drop(stream);
    let _ = session.leave();
    assert!(sandbox.names().len() <= 1 + 2, "{:?}", sandbox.names());
}

#[test]
fn bytes_of_a_hostile_sender_end_at_the_ceiling() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.root().join("foo")).unwrap();
    let mut session = session(&sandbox.root(), &limited(Ceilings { bytes: Some(10), ..Ceilings::default() }));
    session.listen();
    session.request(receive("foo", 0)).unwrap();
    let mut stream = session.stream(0);
    bundle(&mut stream, 1, &[Sent::File(b"one", b"0123456789"), Sent::File(b"two", b"0")]);
    let why = session.ended().expect_err("it is ended");
    assert!(why.message().contains("ceiling of 10 bytes"), "{why:?}");
    drop(stream);
    let _ = session.leave();
    assert!(!sandbox.names().contains(&"foo/two".to_owned()), "{:?}", sandbox.names());
}

/// Whoever has proved nothing is told nothing: an expired grant proves that it was made with the token.
#[test]
fn grants_that_prove_nothing_are_refused_at_the_greeting() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let good = shown(&claims());
    let other = GrantKey::of(&Token::new(b"fedcba9876543210").unwrap()).seal(&claims()).unwrap();
    let (encoded, mac) = good.rsplit_once('.').unwrap();
    let cases = [
        (other.reveal().to_owned(), Reason::TokenWrong),
        (format!("{encoded}.{}", mac.chars().rev().collect::<String>()), Reason::TokenWrong),
        (
            shown(&Claims { prefix: Vec::new(), ..claims() }).rsplit_once('.').unwrap().0.to_owned() + "." + mac,
            Reason::TokenWrong,
        ),
        (encoded.to_owned(), Reason::TokenWrong),
        ("carrack1.".to_owned(), Reason::TokenWrong),
        (good.replace("carrack1.", "carrack2."), Reason::TokenWrong),
        (shown(&Claims { expires: now(), ..claims() }), Reason::GrantExpired),
        (String::new(), Reason::TokenMissing),
    ];
    for (text, reason) in cases {
        let why = Session::with_grant(&sandbox.root(), &token(), &text).map(|_| ()).expect_err(&text);
        assert_eq!((why.code, why.reason), (ErrorCode::AuthenticationFailed, Some(reason)), "{text}: {why:?}");
        assert!(!why.message().contains(mac), "{why:?}");
    }
    for text in [&good, std::str::from_utf8(SECRET).unwrap()] {
        Session::with_grant(&sandbox.root(), &token(), text).unwrap().leave().unwrap();
    }
}
