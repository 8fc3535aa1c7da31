//! `--bind`: which of a host's addresses connections leave from, and which accepts them.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::node::Node;
use crate::support::{Sandbox, same_tree, tree};

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

/// Passes every connection on to a node, and keeps where each came from. It ends with the test's process.
struct Gate {
    address: SocketAddr,
    from: Arc<Mutex<Vec<IpAddr>>>,
}

impl Gate {
    fn before(node: &Node) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Self { address: listener.local_addr().unwrap(), from: Arc::default() };
        let (target, from) = (node.address.clone(), Arc::clone(&gate.from));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                from.lock().unwrap().push(client.peer_addr().unwrap().ip());
                let node = TcpStream::connect(&target).unwrap();
                pass(client.try_clone().unwrap(), node.try_clone().unwrap());
                pass(node, client);
            }
        });
        gate
    }

    /// Where the connections came from since it was asked last.
    fn seen(&self) -> Vec<IpAddr> {
        std::mem::take(&mut *self.from.lock().unwrap())
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        // However it ends, the other side is told.
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
}

#[test]
fn bind_is_where_connections_to_a_node_leave_from() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let gate = Gate::before(&node);
    let at = |path: &str| format!("carrack://{}/{path}{}", gate.address, node.fingerprint);
    tree::mixed(&sandbox.path("tree"));
    for encrypt in ["tls", "none"] {
        let there = at(encrypt);
        let flags = ["--bind=127.0.0.2", "--streams=2", "--link=direct", &node.token(), "--encrypt", encrypt];
        let ran = sandbox.ok(flags.into_iter().chain(["tree/", &there]));
        let told = format!("link: direct from {LOCAL} to {}, ", gate.address);
        assert!(ran.stderr.contains(&told), "{}", ran.stderr);
        same_tree(&sandbox.path("tree"), &sandbox.path(format!("root/{encrypt}")));
        assert_eq!(gate.seen(), [LOCAL; 3], "the control connection and two streams");
    }
    let back = at("tls/");
    sandbox.ok(["--bind=127.0.0.2", "--link=tunnel", &node.token(), &back, "back"]);
    same_tree(&sandbox.path("tree"), &sandbox.path("back"));
    sandbox.ok(["ls", "--bind", "127.0.0.2", &node.token(), &at("tls")]);
    assert_eq!(gate.seen(), [LOCAL; 2]);
    sandbox.ok(["ls", &node.token(), &at("tls")]);
    assert_eq!(gate.seen(), [IpAddr::from([127, 0, 0, 1])], "the system's choice");
}

#[test]
fn bind_is_where_data_connections_are_accepted() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    tree::mixed(&sandbox.path("tree"));
    let ran = sandbox.ok(["--json", "--bind=127.0.0.2", "--link=reverse", &node.token(), "tree/", &node.at("there")]);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/there"));
    let address = ran.summary()["link"]["address"].as_str().unwrap().parse::<SocketAddr>().unwrap();
    assert_eq!(address.ip(), LOCAL);
}

#[test]
fn bind_to_an_address_of_the_other_family_is_refused() {
    let sandbox = Sandbox::new();
    if TcpListener::bind("[::1]:0").is_err() {
        println!("not tested: this host has no IPv6");
        return;
    }
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("file", "content");
    let ran = sandbox.run(["--bind=::1", &node.token(), "file", &node.at("file")]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot connect from ::1 to 127.0.0.1: one is IPv6, the other IPv4"), "{}", ran.stderr);
}
