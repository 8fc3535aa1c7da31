//! What a copy does not keep beside permissions and times: owners, further names, access control lists and others, and
//! what a newer peer's files have of kinds that this program does not know. It fails nothing, and the report counts it.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use carrack_core::attributes::{Attribute, AttributeKind, OtherAttributes};
use carrack_core::location::Location;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_engine::testing::agent::{self, Agent, DataPort, Environment};
use carrack_engine::testing::net::mux::MuxWriter;
use carrack_engine::testing::net::opening::{OpenedConnection, ProtocolOpening, open};
use carrack_engine::testing::net::socket::Socket;
use carrack_engine::testing::net::tls::{ALPN_CONTROL, Key};
use carrack_engine::testing::net::tls_duplex;
use carrack_engine::{Context, Copy, Place, Stores};
use carrack_faults::stores::memory::Memory;
use data_encoding::HEXLOWER;

use crate::destination::give;
use crate::faults::{NOBODY, open_to_all, under};
use crate::support::node::Node;
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, is_root, same_tree, tree};

/// A node of one session, whose files are in a store that knows more kinds of attributes than this program.
struct NewerNode {
    url: String,
    thread: JoinHandle<()>,
}

impl NewerNode {
    fn start(store: Memory) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let key = Key::generate().unwrap();
        let url = format!("carrack://{}/#sha256:{}", listener.local_addr().unwrap(), HEXLOWER.encode(&key.pin));
        let thread = std::thread::spawn(move || serve(&listener, &key, store));
        Self { url, thread }
    }
}

/// Serves the first client to its end, as a node does.
fn serve(listener: &TcpListener, key: &Key, store: Memory) {
    let socket = listener.accept().unwrap().0;
    let shared = Arc::new(Socket::Tcp(socket.try_clone().unwrap()));
    let opening = ProtocolOpening::with_key(key, &[ALPN_CONTROL]).unwrap();
    let Ok((_, OpenedConnection::Records(tls))) = open(&shared, &[&opening]) else { panic!("a control connection") };
    let (mut reader, out) = tls_duplex::split(socket, tls).unwrap();
    let end = out.end();
    let writer = MuxWriter::new(Box::new(out), Box::new(move || end.end()));
    let environment = Environment {
        place: Place::Stored("memory".into(), Arc::new(store)),
        read_only: true,
        gives_ownership: false,
        own: None,
        sources: None,
        token: None,
        grant: None,
        busy: false,
        data: DataPort::Own(None),
        local_address: "127.0.0.1".into(),
        peer_address: "127.0.0.1".into(),
        tuning: Arc::default(),
        began: Instant::now(),
    };
    agent::greet(&mut reader, &writer, &environment).unwrap();
    Agent::new(writer, environment).run(reader);
}

/// The tree in a store; a small file, a large one, a link and a directory of it have attributes of these kinds.
fn stored(sandbox: &Sandbox) -> Memory {
    let store = Memory::default();
    let destination = Location::Store { scheme: "memory".into(), path: b"tree".to_vec() };
    let sources = vec![Location::Local(sandbox.path("tree/").into_os_string().into_encoded_bytes())];
    let context = Context { stores: Stores::default().with("memory", Arc::new(store.clone())), ..Context::default() };
    let report = Copy::start(CopyRequest { sources, destination, options: CopyOptions::default() }, &context).wait();
    assert_eq!((&report.error, report.counts.files_failed), (&None, 0));
    for (path, kinds) in [("d/small", &[700][..]), ("d/large", &[701]), ("d/link", &[700, 702]), ("d", &[u16::MAX])] {
        let of = |&kind: &u16| Attribute { kind: AttributeKind(kind), value: Box::from(&b"value"[..]) };
        let others = OtherAttributes::new(kinds.iter().map(of).collect()).unwrap();
        assert!(store.set_other_attributes(format!("tree/{path}").as_bytes(), others), "{path}");
    }
    store
}

/// `tree/` with the items that [`stored`] names, and one that has no such attributes.
fn scene() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tree/d/small", "small");
    sandbox.write("tree/d/plain", "plain");
    sandbox.write("tree/d/large", tree::bytes(5 << 20, 1));
    std::os::unix::fs::symlink("small", sandbox.path("tree/d/link")).unwrap();
    sandbox
}

#[test]
fn attributes_of_kinds_that_only_a_newer_peer_knows_are_reported_as_not_kept() {
    let sandbox = scene();
    let store = stored(&sandbox);
    for json in [true, false] {
        let node = NewerNode::start(store.clone());
        let there = if json { "json" } else { "text" };
        let from = node.url.replace("/#", "/tree/#");
        let ran = sandbox.ok([from.as_str(), there].into_iter().chain(json.then_some("--json")));
        node.thread.join().unwrap();
        same_tree(&sandbox.path("tree"), &sandbox.path(there));
        if json {
            let unkept = ran.summary()["unkept"]["attributes"].clone();
            assert_eq!(unkept["count"], 4, "{unkept}");
            assert_eq!(unkept["kinds"], serde_json::json!([700, 701, 702, u16::MAX]), "{unkept}");
            assert_eq!(unkept["counts"], serde_json::json!({"700": 2, "701": 1, "702": 1, "65535": 1}), "{unkept}");
            assert!(unkept["path"].as_str().is_some_and(|path| path.starts_with("d")), "{unkept}");
        } else {
            let told = "not kept: attributes of kind 700 of 2 items, attributes of kind 701 of 1 item, attributes of kind 702 of 1 item, \
                        attributes of kind 65535 of 1 item; first d";
            assert!(ran.stderr.contains(told), "{}", ran.stderr);
        }
    }
}

/// An access control list as the kernel takes it: the owner reads and writes, user 1234, group and others read.
fn access_control_list() -> Vec<u8> {
    let none = u32::MAX;
    let entries = [(1u16, 6u16, none), (2, 4, 1234), (4, 4, none), (16, 4, none), (32, 4, none)];
    let entries =
        entries.map(|(tag, may, who)| [&tag.to_le_bytes()[..], &may.to_le_bytes(), &who.to_le_bytes()].concat());
    [&2u32.to_le_bytes()[..], &entries.concat()].concat()
}

/// The right to bind low ports, as the kernel takes it.
fn capability() -> Vec<u8> {
    [0x0200_0000u32, 1 << 10, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A tree with one of everything that is not kept, small files, a large one, a link and a directory; `None` where
/// nothing of the kind can be made.
fn owned_by_many() -> Option<Sandbox> {
    if !is_root() {
        return None;
    }
    let sandbox = Sandbox::new();
    for name in ["plain", "owner", "group", "special", "first", "list", "program", "note"] {
        sandbox.write(format!("in/{name}"), name);
    }
    sandbox.write("in/large", tree::bytes(5 << 20, 1));
    let at = |name: &str| sandbox.path("in").join(name);
    fs::create_dir(at("d")).unwrap();
    symlink("plain", at("link")).unwrap();
    chown(at("owner"), Some(1234), Some(0)).unwrap();
    lchown(at("link"), Some(1234), Some(2345)).unwrap();
    chown(at("group"), Some(0), Some(2345)).unwrap();
    chown(at("large"), Some(1234), Some(0)).unwrap();
    fs::set_permissions(at("special"), Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(at("d"), Permissions::from_mode(0o3775)).unwrap();
    fs::hard_link(at("first"), at("second")).unwrap();
    let given = [
        ("list", "system.posix_acl_access", access_control_list()),
        ("d", "system.posix_acl_default", access_control_list()),
        ("program", "security.capability", capability()),
        ("note", "user.note", b"n".to_vec()),
        ("large", "user.note", b"n".to_vec()),
        ("large", "trusted.note", b"n".to_vec()),
    ];
    given.iter().all(|(name, kind, value)| carrack_faults::set_xattr(&at(name), kind, value)).then_some(sandbox)
}

/// What the report tells of that tree, in words and in JSON.
fn assert_counted(run: impl Fn(&[&str]) -> Ran, way: &str) {
    let ran = run(&[]);
    let told = "not kept: 3 owners, 2 groups, set-id or sticky bits of 2 items, 2 hard links, 2 ACLs, capabilities of 1 item, \
                extended attributes of 2 items; first ";
    assert!(ran.stderr.contains(told), "{way}: {}", ran.stderr);
    let unkept = run(&["--json"]).summary()["unkept"].clone();
    let counts = serde_json::json!({
        "owner": 3, "group": 2, "special-bits": 2, "hard-link": 2, "acl": 2, "capabilities": 1, "extended-attributes": 2,
    });
    assert_eq!(unkept["attributes"]["counts"], counts, "{way}: {unkept}");
    // Several kinds of one item are one item.
    assert_eq!(unkept["attributes"]["count"], 11, "{way}: {unkept}");
    assert_eq!(unkept["attributes"]["kinds"], serde_json::json!([1, 2, 3, 4, 5, 6, 7]), "{way}: {unkept}");
}

#[test]
fn what_root_does_not_keep_is_counted_by_kind_over_every_link() {
    let Some(sandbox) = owned_by_many() else { return };
    let [here, there] = ["in", "served"].map(|root| Node::start(&sandbox, root, &[]));
    let far = Sshd::start(&sandbox);
    let at_far = format!("far:{}/", sandbox.path("ssh").display());
    let ways: [(&str, &[&str]); 5] = [
        ("local", &["in/", "local"]),
        ("to a node", &["in/", &there.at("pushed/"), &there.token()]),
        ("from a node", &[&here.at(""), "pulled", &here.token()]),
        (
            "between nodes",
            &[&here.at(""), &there.at("third/"), &here.token_as("source"), &there.token_as("destination")],
        ),
        ("ssh", &[&far.rsh, "in/", &at_far]),
    ];
    for (way, arguments) in ways {
        assert_counted(|more| sandbox.ok(arguments.iter().chain(more)), way);
    }
    for made in ["local", "served/pushed", "pulled", "served/third", "ssh"] {
        assert_eq!(fs::read(sandbox.path(made).join("large")).unwrap(), fs::read(sandbox.path("in/large")).unwrap());
    }
}

/// What an earlier attempt has published is asked for by what the walk has found, and counts as well.
#[test]
fn what_is_not_kept_is_counted_of_files_that_an_earlier_attempt_has_published() {
    let Some(sandbox) = owned_by_many() else { return };
    // So that the marker knows their times.
    crate::support::wait_until("the files have settled", || {
        let changed = fs::metadata(sandbox.path("in/large")).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        now > std::os::unix::fs::MetadataExt::ctime(&changed) as u64 + 3
    });
    sandbox.write("in/z/last", tree::bytes(8 << 20, 2));
    let running = crate::support::running::Running::start(sandbox.carrack().args([
        "in/",
        "out",
        "--bwlimit=500K",
        "--block=64K",
    ]));
    let are_marked = || sandbox.marked("out").is_some_and(|marker| marker.known_count() >= 8);
    crate::support::wait_until("what is small is there, and marked", are_marked);
    crate::support::process::signal(running.id(), "KILL");
    running.end();
    assert!(!sandbox.path("out/z/last").exists(), "it was cut off");
    let ran = sandbox.ok(["in/", "out", "--json"]);
    let summary = ran.summary();
    assert!(summary["files_resumed"].as_u64().unwrap() >= 8, "{summary}");
    assert_eq!(summary["unkept"]["attributes"]["count"], 11, "{summary}");
}

#[test]
fn copy_of_ones_own_ordinary_files_does_not_speak_of_what_is_not_kept() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    open_to_all(&sandbox);
    for name in ["in/small", "in/d/small", "in/private"] {
        sandbox.write(name, name);
    }
    sandbox.write("in/large", tree::bytes(5 << 20, 1));
    symlink("small", sandbox.path("in/link")).unwrap();
    fs::set_permissions(sandbox.path("in/private"), Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(sandbox.path("out")).unwrap();
    let mine = sandbox.ok(["in", "root-out"]);
    assert!(!mine.stderr.contains("not kept"), "{}", mine.stderr);
    give(&sandbox, "in");
    give(&sandbox, "out");
    let theirs = under(&sandbox, &NOBODY, &["in", "out"]);
    assert_eq!(theirs.code, 0, "{}", theirs.stderr);
    assert!(!theirs.stderr.contains("not kept"), "{}", theirs.stderr);
    // The same files by root, into a directory that hands down its group.
    fs::create_dir(sandbox.path("shared")).unwrap();
    chown(sandbox.path("shared"), Some(0), Some(65534)).unwrap();
    fs::set_permissions(sandbox.path("shared"), Permissions::from_mode(0o2775)).unwrap();
    let ran = sandbox.ok(["in", "shared"]);
    assert!(ran.stderr.contains("not kept: 7 owners; first in"), "{}", ran.stderr);
}

#[cfg(feature = "service")]
#[test]
fn task_counts_what_its_copies_did_not_keep_and_goes_on_counting() {
    use carrack_service::{model::TaskKind, worker::Order};

    use crate::support::tasks::{Tasks, pair};

    let Some(sandbox) = owned_by_many() else { return };
    let mut tasks = Tasks::of(sandbox);
    let order = tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("in", "/"), tasks.local("out", "/"))]);
    let expected: std::collections::BTreeMap<String, u64> = [
        ("owner", 3),
        ("group", 2),
        ("special-bits", 2),
        ("hard-link", 2),
        ("acl", 2),
        ("capabilities", 1),
        ("extended-attributes", 2),
    ]
    .map(|(what, items)| (what.to_owned(), items))
    .into();
    assert_eq!(tasks.run(&order).done().progress.unkept, expected);
    // Another attempt copies nothing again.
    let again = Order { fence: 2, ..order };
    assert_eq!(tasks.run(&again).done().progress.unkept, expected);
}
