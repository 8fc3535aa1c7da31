//! A newer peer: its files have attributes of kinds that this program does not know. They cost nothing, and the report
//! tells that they were not kept.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use carrack_core::attributes::{Attribute, AttributeKind, OtherAttributes};
use carrack_core::location::Location;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_engine::stores::memory::Memory;
use carrack_engine::testing::agent::{self, Agent, DataPort, Environment};
use carrack_engine::testing::net::mux::MuxWriter;
use carrack_engine::testing::net::opening::{OpenedConnection, ProtocolOpening, open};
use carrack_engine::testing::net::socket::Socket;
use carrack_engine::testing::net::tls::{ALPN_CONTROL, Key};
use carrack_engine::testing::net::tls_duplex;
use carrack_engine::{Context, Copy, Place, Stores};
use data_encoding::HEXLOWER;

use crate::support::{Sandbox, same_tree, tree};

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
        own: None,
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
    assert_eq!((&report.error, report.counts.failed), (&None, 0));
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
            assert!(unkept["path"].as_str().is_some_and(|path| path.starts_with("d")), "{unkept}");
        } else {
            let told = "not kept by the destination: attributes of 4 items (first ";
            assert!(ran.stderr.contains(told) && ran.stderr.contains("kinds 700 701 702 65535"), "{}", ran.stderr);
        }
    }
}
