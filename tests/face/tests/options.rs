//! What only a program can ask for, and the command line cannot yet: allowed links as a set, and the key by which an
//! earlier attempt is found.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use carrack_core::limits::MARKER_KEY_BYTES;
use carrack_core::location::Location;
use carrack_core::report::{ErrorCode, Report, Side};
use carrack_core::request::{CopyRequest, LinkKind, LinkSet};
use carrack_engine::{Context, Copy};
use carrack_face::{Site, begun, code, content, names};
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn local(path: &Path) -> Location {
    Location::Local(path.as_os_str().as_encoded_bytes().to_vec())
}

fn copy(request: &CopyRequest) -> Report {
    Copy::start(request.clone(), &Context::default()).wait()
}

/// Nobody listens where data connections to either node are to go: only a tunnel works, through this process.
#[test]
fn copy_that_must_not_pass_through_here_is_refused_where_only_a_tunnel_works() {
    let directory = directory();
    let (from, to) = (Site::start(directory.path(), "from"), Site::start(directory.path(), "to"));
    fs::write(from.root.join("file"), content(1 << 20, 3)).unwrap();
    let mut request = to.request(from.at("/file"), "/copied");
    request.options.source = from.shown();
    for end in [&mut request.options.source, &mut request.options.destination] {
        end.reach.data_address = Some("127.0.0.2".into());
    }

    request.options.links = LinkSet::ALL.without(LinkKind::Tunnel);
    let refused = copy(&request);
    let why = refused.error.expect("no data may pass through here");
    assert_eq!((why.code, why.side), (ErrorCode::NoLink, Side::Link), "{why:?}");
    assert!(why.message().contains("no data connection by the links allowed"), "{}", why.message());
    assert_eq!((refused.counts.files, refused.link.map(|link| link.kind)), (0, None));
    // The node is told that the copy is over, and cleans up by itself.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !names(&to.root).is_empty() {
        assert!(Instant::now() < deadline, "{:?} was left", names(&to.root));
        std::thread::yield_now();
    }

    request.options.links = LinkSet::ALL;
    let tunnelled = copy(&request);
    assert_eq!((tunnelled.error, tunnelled.link.map(|link| link.kind)), (None, Some(LinkKind::Tunnel)));
    assert_eq!(fs::read(to.root.join("copied")).unwrap(), content(1 << 20, 3));

    // Where this process is an end, its data passes through nobody else.
    let mut direct = to.request(local(&from.root.join("file")), "/direct");
    direct.options.links = LinkSet::ALL.without(LinkKind::Tunnel);
    let report = copy(&direct);
    assert_eq!((report.error, report.link.map(|link| link.kind)), (None, Some(LinkKind::Direct)));
    [from, to].into_iter().for_each(Site::end);
}

/// The same content stands at two places: the key says that it is the same copy.
#[test]
fn copy_is_resumed_by_the_key_that_its_caller_gives() {
    const BYTES: usize = 24 << 20;
    const PART_BYTES: u64 = 4 << 20;
    let directory = directory();
    let to = Site::start(directory.path(), "to");
    let content = content(BYTES, 4);
    let place = |name: &str| directory.path().join(name).join("file");
    for name in ["one", "other"] {
        fs::create_dir(directory.path().join(name)).unwrap();
        fs::write(place(name), &content).unwrap();
    }
    let request = |from: &str, to_path: &str, key: Option<u8>| {
        let mut request = to.request(local(&place(from)), to_path);
        request.options.marker_key = key.map(|byte| [byte; MARKER_KEY_BYTES]);
        request
    };
    for (again, is_found) in [(Some(7), true), (Some(8), false), (None, false)] {
        let path = format!("/{again:?}");
        let mut first = request("one", &path, Some(7));
        first.options.rate_limit = Some(PART_BYTES);
        assert_eq!(code(&begun(first, &Context::default(), PART_BYTES)), Some(ErrorCode::Interrupted));
        let report = copy(&request("other", &path, again));
        assert_eq!((report.error, report.counts.files), (None, 1));
        let resumed = report.counts.bytes_resumed;
        assert!(if is_found { resumed >= PART_BYTES / 2 } else { resumed == 0 }, "{again:?}: {resumed} bytes");
        assert!(fs::read(to.root.join(&path[1..])).unwrap() == content);
        // Whoever gave the key finds what it left, or it is collected.
        if !is_found {
            assert_eq!(copy(&request("other", &path, Some(7))).error, None);
        }
    }
    to.end();
}
