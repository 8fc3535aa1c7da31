//! Measurements of the path to a node: how long one may take.

use std::time::{Duration, Instant};

use carrack_core::location::{Location, NodeAddress, SyntheticKind};
use carrack_core::report::ErrorCode;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::raw::{Ask, Empty, Tell};
use carrack_engine::node::{Measure, Node, NodeConfig};
use carrack_engine::testing::net::dial_rule::DialRule;
use carrack_engine::{Context, Copy};

use crate::sandbox::{Sandbox, directory, node_config};
use crate::session::{Session, receive_into};
use crate::watch::Watch;

/// More than anybody moves meanwhile.
const ENDLESS: SyntheticKind = SyntheticKind::Zeros(1 << 42);

fn copy(source: Location, destination: Location) -> carrack_core::report::Report {
    let options = CopyOptions { retries: 0, resume: false, ..CopyOptions::default() };
    Copy::start(CopyRequest { sources: vec![source], destination, options }, &Context::default()).wait()
}

#[test]
fn measurement_is_ended_by_the_node_when_its_time_is_over() {
    let _watch = Watch::start();
    let (root, own) = (directory(), directory());
    let longest = Duration::from_millis(700);
    let tuning = Tuning { measure_longest: longest, ..Tuning::DEFAULT };
    let config = NodeConfig { tuning, measure: Measure::Anyone, ..node_config(root.path(), own.path()) };
    let node = Node::start(config).unwrap();
    let pin = Some(node.fingerprint());
    let address = NodeAddress { host: "127.0.0.1".into(), port: node.address().port(), pin };
    let there = Location::Node { node: address, path: Vec::new() };
    let here = Location::Local(Vec::new());
    for (source, destination) in [(&here, &there), (&there, &here)] {
        let start = Instant::now();
        let report = copy(source.synthetic(ENDLESS), destination.synthetic(SyntheticKind::Memory));
        let error = report.error.expect("the node ends it");
        assert_eq!(error.code, ErrorCode::ResourceLimit, "{error:?}");
        assert!(error.message().contains("measures for 0.7 s at most"), "{error:?}");
        assert!(start.elapsed() >= longest, "{:?}", start.elapsed());
    }
    node.stop();
    node.wait();
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

/// The way is that of a measurement, and nobody else's.
#[test]
fn way_is_not_looked_for_without_a_measurement() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let dials = DialRule { listens: "127.0.0.1:1".parse().unwrap(), only_who_asks: false, told: Vec::new() };
    let mut session = Session::at_node(&sandbox.root(), dials);
    let refused = |session: &mut Session| session.request(Ask::Trace(Empty {})).map(|_| ()).map_err(|why| why.code);
    assert_eq!(refused(&mut session), Err(ErrorCode::ProtocolViolation));
    assert!(matches!(session.request(Ask::Begin(receive_into(b"in"))), Ok(Tell::Done(_))));
    assert_eq!(refused(&mut session), Err(ErrorCode::ProtocolViolation), "a copy is no measurement");
    session.assert_alive();
    session.leave().unwrap();
}
