//! Copies to and from a node by somebody who has a grant.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use carrack_core::credential::{Credential, Token};
use carrack_core::filter::{Filters, RuleForm};
use carrack_core::grant::{Ceilings, Claims, GrantKey, Right, Rights};
use carrack_core::location::{Location, NodeAddress, SyntheticKind};
use carrack_core::report::{ErrorCode, Event, Failure, Reason, Report};
use carrack_core::request::{CopyOptions, CopyRequest, Delta, EndOptions, LinkKind, LinkSet};
use carrack_engine::node::{Access, Measure, Node, NodeConfig, NodeHandle, RevokedGrants};
use carrack_engine::{Context, Copy, Handle};

use super::{ID, SECRET, bytes, claims, limited, now, only, shown, tree};
use crate::sandbox::{directory, node_config};
use crate::watch::Watch;

/// A node whose token is [`SECRET`].
struct Served {
    root: tempfile::TempDir,
    _own: tempfile::TempDir,
    revoked: RevokedGrants,
    node: NodeHandle,
}

impl Served {
    fn start() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let (root, own) = (directory(), directory());
        tree(root.path());
        let file = own.path().join("token");
        fs::write(&file, SECRET).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let revoked = RevokedGrants::default();
        let config = NodeConfig {
            access: Access::TokenFile(file),
            measure: Measure::Token,
            revoked: revoked.clone(),
            host_grants: Some(host_key()),
            ..node_config(root.path(), own.path())
        };
        Self { root, _own: own, revoked, node: Node::start(config).unwrap() }
    }

    fn at(&self, path: &str) -> Location {
        let (port, pin) = (self.node.address().port(), Some(self.node.fingerprint()));
        Location::Node { node: NodeAddress { host: "127.0.0.1".into(), port, pin }, path: bytes(path) }
    }
}

/// Another key than any that is derived from the node's token.
fn host_key() -> GrantKey {
    GrantKey::of(&Token::new(b"of-the-program-that-runs-the-node").unwrap())
}

fn with(grant: &str) -> EndOptions {
    EndOptions { credential: Credential::Value(Token::new(grant.as_bytes()).unwrap()), ..EndOptions::default() }
}

fn copy_options(grant: &str, rate: Option<u64>) -> CopyOptions {
    let (source, destination) = (with(grant), with(grant));
    CopyOptions { retries: 3, resume: false, rate_limit: rate, source, destination, ..CopyOptions::default() }
}

/// A copy to or from a node, whose other end is here.
fn copying(source: Location, destination: Location, grant: &str, rate: Option<u64>) -> Handle {
    let options = copy_options(grant, rate);
    Copy::start(CopyRequest { sources: vec![source], destination, options }, &Context::default())
}

fn copied(source: Location, destination: Location, grant: &str) -> Report {
    copying(source, destination, grant, None).wait()
}

fn local(path: &Path) -> Location {
    Location::Local(path.as_os_str().as_encoded_bytes().to_vec())
}

#[test]
fn copies_with_a_grant_go_both_ways_and_no_further() {
    let _watch = Watch::start();
    let served = Served::start();
    let here = directory();
    let grant = shown(&claims());
    let out = copied(served.at("/foo/"), local(&here.path().join("copy")), &grant);
    assert!(out.error.is_none() && out.counts.files_failed == 0, "{out:?}");
    assert_eq!(fs::read(here.path().join("copy/sub/c")).unwrap(), b"ccc");
    let back = copied(local(&here.path().join("copy")), served.at("/foo/back/"), &grant);
    assert!(back.error.is_none() && back.counts.files_failed == 0, "{back:?}");
    assert_eq!(fs::read(served.root.path().join("foo/back/copy/sub/c")).unwrap(), b"ccc");
    for (source, destination) in
        [(served.at("/foobar"), local(here.path())), (local(&here.path().join("copy")), served.at("/foobar/"))]
    {
        let report = copied(source, destination, &grant);
        assert_eq!(report.error.expect("it is refused").reason, Some(Reason::GrantOutside));
    }
    assert_eq!(fs::read_dir(served.root.path().join("foobar")).unwrap().count(), 2);
}

/// By its digests, what stands at a name is told of: to who may read it, and to nobody else.
#[test]
fn grant_that_may_not_read_learns_nothing_of_what_it_replaces() {
    let _watch = Watch::start();
    let served = Served::start();
    let here = directory();
    for (verbs, is_told) in [(&[Right::Read, Right::Write][..], true), (&[Right::Write], false)] {
        for top in [here.path().join("large"), served.root.path().join("foo/large")] {
            fs::write(top, vec![7; 3 << 20]).unwrap();
        }
        let grant = shown(&only(verbs));
        let options = CopyOptions { delta: Delta::Always, ..copy_options(&grant, None) };
        let (sources, destination) = (vec![local(&here.path().join("large"))], served.at("/foo/large"));
        let report = Copy::start(CopyRequest { sources, destination, options }, &Context::default()).wait();
        assert!(report.error.is_none() && report.counts.files == 1, "{report:?}");
        assert_eq!(report.counts.bytes_taken_over > 0, is_told, "{verbs:?}");
    }
}

#[test]
fn copies_end_at_each_ceiling_and_name_it() {
    let _watch = Watch::start();
    let served = Served::start();
    let here = directory();
    fs::create_dir(here.path().join("from")).unwrap();
    for number in 0..20 {
        fs::write(here.path().join(format!("from/{number}")), vec![7; 100_000]).unwrap();
        fs::write(served.root.path().join(format!("foo/{number}")), vec![7; 100_000]).unwrap();
    }
    let few = Ceilings { entries: Some(5), ..Ceilings::default() };
    let small = Ceilings { bytes: Some(150_000), ..Ceilings::default() };
    let cases = [(few, "ceiling of 5 entries"), (small, "ceiling of 150000 bytes")];
    for (number, (ceilings, what)) in cases.into_iter().enumerate() {
        let (one, two) = (number as u8, 100 + number as u8);
        let into = format!("/foo/into-{number}/");
        let report = copied(
            local(&here.path().join("from")),
            served.at(&into),
            &shown(&Claims { id: [one; 16], ..limited(ceilings) }),
        );
        let why = report.error.expect("it is ended");
        assert_eq!((why.code, why.reason), (ErrorCode::PermissionDenied, Some(Reason::GrantCeiling)), "{why:?}");
        assert!(why.message().contains(what), "{why:?}");
        let made = fs::read_dir(served.root.path().join(format!("foo/into-{number}/from"))).map_or(0, Iterator::count);
        assert!(made <= 5, "{made}");
        let copy = here.path().join(format!("copy-{number}"));
        let report = copied(served.at("/foo"), local(&copy), &shown(&Claims { id: [two; 16], ..limited(ceilings) }));
        let why = report.error.expect("it is ended");
        assert!(why.message().contains(what), "{why:?}");
    }
}

/// Much is under way when the node ends the session: over data connections, and inside the control connection. The copy
/// hears why all the same, and at the first attempt.
#[test]
fn copies_hear_why_they_end_whatever_is_under_way() {
    let _watch = Watch::start();
    let served = Served::start();
    let here = directory();
    let most = 1 << 20;
    for path in [here.path().join("large"), served.root.path().join("foo/large")] {
        fs::write(path, vec![7; 64 << 20]).unwrap();
    }
    let ways = [LinkKind::Direct, LinkKind::Tunnel];
    for (number, (kind, into_node)) in ways.into_iter().flat_map(|kind| [(kind, true), (kind, false)]).enumerate() {
        let claims =
            Claims { id: [number as u8; 16], ..limited(Ceilings { bytes: Some(most), ..Ceilings::default() }) };
        let grant = shown(&claims);
        let (theirs, ours) = (served.at("/foo/large"), here.path().join(format!("copy-{number}")));
        let (source, destination) = match into_node {
            true => (local(&here.path().join("large")), served.at("/foo/into")),
            false => (theirs, local(&ours)),
        };
        let options = CopyOptions { links: LinkSet::only(kind), ..copy_options(&grant, None) };
        let copy = Copy::start(CopyRequest { sources: vec![source], destination, options }, &Context::default());
        let report = copy.wait();
        let why = report.error.expect("it is ended");
        assert_eq!(
            (why.code, why.reason),
            (ErrorCode::PermissionDenied, Some(Reason::GrantCeiling)),
            "{kind:?}: {why:?}"
        );
        assert_eq!(report.faults.sessions_lost, 0, "{kind:?}");
    }
}

/// Begins a copy that takes for ever, does something once bytes have moved, and tells how the copy ended, and how long
/// after that.
fn ended_by(served: &Served, grant: &str, act: impl FnOnce()) -> (Failure, Duration) {
    let file = fs::File::create(served.root.path().join("foo/huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    let here = directory();
    let mut copy = copying(served.at("/foo/huge"), local(&here.path().join("huge")), grant, Some(1 << 20));
    let moves = |event: &Event| matches!(event, Event::Progress(progress) if progress.bytes_found > 0);
    while !moves(&copy.next_event().expect("the copy has not ended")) {}
    act();
    let start = Instant::now();
    let error = copy.wait().error.expect("it is ended");
    (error, start.elapsed())
}

/// What a session may take to notice that it is over: it looks each second, and is given as long again.
const SOON: Duration = Duration::from_secs(4);

#[test]
fn copy_ends_soon_after_its_grant_was_revoked() {
    let _watch = Watch::start();
    let served = Served::start();
    let grant = shown(&claims());
    let (why, after) = ended_by(&served, &grant, || served.revoked.revoke(ID, now() + 3600));
    assert_eq!((why.code, why.reason), (ErrorCode::AuthenticationFailed, Some(Reason::GrantRevoked)), "{why:?}");
    assert!(after < SOON, "{after:?}");
    // Another grant of the same token is not touched.
    let here = directory();
    let refused = copied(served.at("/foo/a"), local(here.path()), &grant).error.expect("it is refused");
    assert_eq!(refused.reason, Some(Reason::GrantRevoked));
    let other = shown(&Claims { id: [8; 16], ..claims() });
    assert!(copied(served.at("/foo/a"), local(here.path()), &other).error.is_none());
}

#[test]
fn copy_ends_soon_after_its_grant_has_expired() {
    let _watch = Watch::start();
    let served = Served::start();
    let expires = now() + 2;
    let (why, _) = ended_by(&served, &shown(&Claims { expires, ..claims() }), || {});
    let late = now() - expires;
    assert_eq!((why.code, why.reason), (ErrorCode::AuthenticationFailed, Some(Reason::GrantExpired)), "{why:?}");
    assert!(late <= SOON.as_secs(), "{late}");
}

/// Whoever comes back with a grant that says the same, and ends later, keeps the session of the first going. One that
/// says anything else does not.
#[test]
fn copy_goes_on_when_its_node_is_shown_a_later_grant_that_says_the_same() {
    let _watch = Watch::start();
    let served = Served::start();
    let here = directory();
    let show = |claims: &Claims| {
        assert!(copied(served.at("/foo/a"), local(here.path()), &shown(claims)).error.is_none());
    };
    let expires = now() + 2;
    let first = Claims { expires, ..claims() };
    let later = expires + 4;
    let (_, after) = ended_by(&served, &shown(&first), || show(&Claims { expires: later, ..first.clone() }));
    assert!(now() >= later && after >= Duration::from_secs(3), "{after:?}");
    let expires = now() + 2;
    let first = Claims { expires, ..claims() };
    let (why, _) = ended_by(&served, &shown(&first), || {
        let later = Claims { expires: expires + 3600, ..first.clone() };
        show(&Claims { id: [8; 16], ..later.clone() });
        show(&Claims { rights: Rights::of(&[Right::Read]), ..later.clone() });
        show(&Claims { prefix: Vec::new(), ..later });
    });
    assert_eq!(why.reason, Some(Reason::GrantExpired));
    assert!(now() - expires <= SOON.as_secs());
}

/// What is counted is what is told without a ceiling: rules of files in directories hold in both.
#[test]
fn ceiling_leaves_nothing_out_that_the_rules_of_a_directory_include() {
    let _watch = Watch::start();
    let served = Served::start();
    let source = served.root.path().join("foo/ruled");
    fs::create_dir_all(&source).unwrap();
    for (name, content) in [(".rules", "+ *.keep\n"), ("1.keep", "x"), ("2.keep", "x"), ("other", "x")] {
        fs::write(source.join(name), content).unwrap();
    }
    let copy = |grant: &str| {
        let to = directory();
        let mut filters = Filters::new(false);
        filters.add(RuleForm::Rule, b": .rules").unwrap();
        filters.add(RuleForm::Exclude, b"*.keep").unwrap();
        let options = CopyOptions { filters, ..copy_options(grant, None) };
        let (sources, destination) = (vec![served.at("/foo/ruled/")], local(&to.path().join("to")));
        let report = Copy::start(CopyRequest { sources, destination, options }, &Context::default()).wait();
        assert_eq!(report.error, None, "{report:?}");
        fs::read_dir(to.path().join("to")).unwrap().count()
    };
    let ceilings = Ceilings { bytes: Some(1 << 20), ..Ceilings::default() };
    assert_eq!((copy(&shown(&claims())), copy(&shown(&limited(ceilings)))), (4, 4));
}

/// A grant of the host is for a directory outside of the node's root; the node's own token makes none.
#[test]
fn grant_of_the_host_covers_its_directory_and_no_other() {
    let _watch = Watch::start();
    let served = Served::start();
    let (elsewhere, here) = (directory(), directory());
    let top = elsewhere.path().canonicalize().unwrap();
    fs::create_dir(top.join("in")).unwrap();
    fs::write(top.join("in/a"), "content").unwrap();
    fs::write(top.join("beside"), "canary").unwrap();
    std::os::unix::fs::symlink("../beside", top.join("in/out")).unwrap();
    let path = |below: &str| top.join(below).to_str().unwrap().to_owned();
    let claims = Claims { prefix: path("in").trim_start_matches('/').as_bytes().to_vec(), ..claims() };
    let grant = host_key().seal(&claims).unwrap();
    let grant = grant.reveal();
    assert!(copied(served.at(&path("in/a")), local(&here.path().join("a")), grant).error.is_none());
    assert_eq!(fs::read(here.path().join("a")).unwrap(), b"content");
    assert!(copied(local(&here.path().join("a")), served.at(&path("in/b")), grant).error.is_none());
    assert_eq!(fs::read(top.join("in/b")).unwrap(), b"content");
    for outside in [path("beside"), path("in/out"), "/foo/a".into(), "/".into()] {
        let report = copied(served.at(&outside), local(&here.path().join("stolen")), grant);
        assert!(report.error.is_some() || report.counts.files_failed > 0, "{outside}: {report:?}");
        assert!(!here.path().join("stolen").exists(), "{outside}");
    }
    // By the node's token the same words are of its root, where there is no such directory.
    let forged = shown(&claims);
    assert!(copied(served.at(&path("in/a")), local(&here.path().join("forged")), &forged).error.is_some());
    served.revoked.revoke(ID, now() + 3600);
    let refused = copied(served.at(&path("in/a")), local(&here.path().join("late")), grant).error;
    assert_eq!(refused.expect("it is refused").reason, Some(Reason::GrantRevoked));
}

#[test]
fn copy_ends_when_its_grant_has_run_for_long_enough() {
    let _watch = Watch::start();
    let served = Served::start();
    let grant = shown(&limited(Ceilings { run_seconds: Some(1), ..Ceilings::default() }));
    let (why, after) = ended_by(&served, &grant, || {});
    assert_eq!(why.reason, Some(Reason::GrantCeiling), "{why:?}");
    assert!(why.message().contains("ceiling of 1 run-seconds"), "{why:?}");
    assert!(after < Duration::from_secs(1) + SOON, "{after:?}");
    // Another session is no other grant.
    let here = directory();
    let again = copied(served.at("/foo/a"), local(here.path()), &grant).error.expect("it is refused");
    assert_eq!(again.reason, Some(Reason::GrantCeiling));
}

/// The path to a node is measured by those who have its token.
#[test]
fn grant_measures_nothing() {
    let _watch = Watch::start();
    let served = Served::start();
    let here = directory();
    let grant = shown(&Claims { prefix: Vec::new(), ..claims() });
    let zeros = served.at("").synthetic(SyntheticKind::Zeros(1000));
    let null = served.at("").synthetic(SyntheticKind::Null);
    fs::write(here.path().join("file"), "content").unwrap();
    let copies = [
        copied(zeros, local(&here.path().join("zeros")), &grant),
        copied(local(&here.path().join("file")), null, &grant),
    ];
    for report in copies {
        let why = report.error.expect("it is refused");
        assert_eq!((why.code, why.reason), (ErrorCode::PermissionDenied, Some(Reason::GrantRight)), "{why:?}");
    }
}
