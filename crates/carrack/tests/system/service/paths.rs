//! The path between two endpoints that the service measures, by its own program.

use std::fs;
use std::time::Duration;

use carrack_service::client::{Call, Client, ClientError, Target};
use carrack_service::model::{BenchState, EndpointLimits, PathStatus};
use serde_json::json;

use crate::support::node::Node;
use crate::support::process::{is_alive, workers};
use crate::support::service::Service;
use crate::support::{Sandbox, wait_until_within};

const PATH: &str = "/endpoints/one/paths/two";
/// Slow enough that neither host has anything else to wait for.
const RATE: u64 = 8_000_000;
/// Six seconds each way, and what looking for the routers takes.
const PATIENCE: Duration = Duration::from_secs(120);

fn client(sandbox: &Sandbox) -> Client {
    Client::new(Target::Socket(sandbox.path("home/.local/state/carrack/service/service.sock")), None).unwrap()
}

/// Endpoints at two nodes of this host, which they know by two names.
fn add(sandbox: &Sandbox, nodes: [(&str, &Node); 2]) {
    for ((name, node), host) in nodes.into_iter().zip(["127.0.0.1:", "localhost:"]) {
        let (at, token) = (node.at("").replace("127.0.0.1:", host), node.token_file.display().to_string());
        sandbox.ok(["endpoint", "add", name, &at, "--token-file", &token]);
        let limits = EndpointLimits { rate: Some(RATE), ..EndpointLimits::default() };
        let limited = Call::patch(format!("/endpoints/{name}")).body(&json!({ "limits": limits })).unwrap();
        client(sandbox).call(&limited).unwrap();
    }
}

fn node(sandbox: &Sandbox, root: &str, more: &[&str]) -> Node {
    Node::start(sandbox, root, &[&["--dial-to=127.0.0.0/8"], more].concat())
}

fn ended(client: &Client) -> PathStatus {
    let mut status = None;
    wait_until_within("it is measured", PATIENCE, || {
        status = client.get(PATH).ok().filter(|status: &PathStatus| status.state != BenchState::Running);
        status.is_some()
    });
    status.unwrap()
}

#[test]
fn path_between_two_nodes_is_measured_both_ways_and_kept_over_a_restart() {
    let sandbox = Sandbox::new();
    let (one, two) = (node(&sandbox, "one", &[]), node(&sandbox, "two", &["--read-only"]));
    let mut service = Service::start(&sandbox, &[]);
    add(&sandbox, [("one", &one), ("two", &two)]);
    assert_eq!(client(&sandbox).call(&Call::post(PATH)).unwrap().status, 202);
    let status = ended(&client(&sandbox));
    assert_eq!((status.state, &status.failure), (BenchState::Finished, &None), "{status:?}");
    let result = status.result.unwrap();
    assert_eq!((result.rate_limit, result.program.as_str()), (Some(RATE), env!("CARGO_PKG_VERSION")));
    for way in [&result.there, &result.back] {
        let rate = way.bytes_per_second.unwrap_or_else(|| panic!("{result:?}"));
        assert!(rate > 0.0 && way.streams.is_some_and(|streams| streams > 0), "{result:?}");
        assert!(way.error.is_none() && !way.labels.iter().any(|label| label == "tunnel"), "{result:?}");
        // What the sending host's kernel knows of its connections.
        assert!(way.round_trip_us.is_some_and(|us| us > 0.0), "{result:?}");
        assert!(way.resent_share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{result:?}");
        assert!(way.round_trip_longest_us >= way.round_trip_us, "{result:?}");
    }
    for kept in fs::read_dir(sandbox.path("home/.local/state/carrack/service/bench")).unwrap() {
        assert!(!fs::read_to_string(kept.unwrap().path()).unwrap().contains(Node::TOKEN));
    }
    service.kill();
    drop(service);
    let _service = Service::start(&sandbox, &[]);
    let kept: PathStatus = client(&sandbox).get("/endpoints/two/paths/one").unwrap();
    assert_eq!((kept.state, kept.result), (BenchState::Idle, Some(result.turned())));
}

#[test]
fn path_to_a_node_that_takes_no_measurements_fails_with_what_to_try() {
    let sandbox = Sandbox::new();
    let (one, two) = (node(&sandbox, "one", &[]), node(&sandbox, "two", &["--measure=nobody"]));
    let _service = Service::start(&sandbox, &[]);
    add(&sandbox, [("one", &one), ("two", &two)]);
    client(&sandbox).call(&Call::post(PATH)).unwrap();
    let status = ended(&client(&sandbox));
    assert_eq!((status.state, &status.result), (BenchState::Failed, &None), "{status:?}");
    let failure = status.failure.unwrap();
    assert_eq!(failure.code, "permission-denied", "{failure:?}");
    assert!(failure.why.contains("takes no measurements"), "{failure:?}");
    assert!(failure.hints.iter().any(|hint| hint.contains("--measure token")), "{failure:?}");
}

#[test]
fn path_of_which_an_end_is_gone_fails_and_names_the_endpoint() {
    let sandbox = Sandbox::new();
    let (one, mut two) = (node(&sandbox, "one", &[]), node(&sandbox, "two", &[]));
    let _service = Service::start(&sandbox, &[]);
    add(&sandbox, [("one", &one), ("two", &two)]);
    two.kill();
    client(&sandbox).call(&Call::post(PATH)).unwrap();
    let failure = ended(&client(&sandbox)).failure.unwrap();
    assert_eq!((failure.code.as_str(), failure.endpoint.as_deref()), ("connect-failed", Some("two")), "{failure:?}");
    assert!(failure.why.starts_with("@two") && !failure.hints.is_empty(), "{failure:?}");
}

#[test]
fn path_is_measured_no_further_once_the_service_has_ended() {
    for is_killed in [true, false] {
        let sandbox = Sandbox::new();
        let (one, two) = (node(&sandbox, "one", &[]), node(&sandbox, "two", &[]));
        let mut service = Service::start(&sandbox, &[]);
        add(&sandbox, [("one", &one), ("two", &two)]);
        client(&sandbox).call(&Call::post(PATH)).unwrap();
        let mut pids = Vec::new();
        wait_until_within("it measures", PATIENCE, || {
            pids = workers(&sandbox.path("home"));
            !pids.is_empty()
        });
        for pid in &pids {
            for of in ["cmdline", "environ"] {
                let shown = fs::read_to_string(format!("/proc/{pid}/{of}")).unwrap_or_default();
                assert!(!shown.contains(Node::TOKEN), "the token of a node stands in {of} of the process");
            }
        }
        match client(&sandbox).call(&Call::post(PATH)) {
            Err(ClientError::Problem(problem)) => assert_eq!(problem.status, 409),
            other => panic!("two at once: {other:?}"),
        }
        if is_killed {
            service.kill();
        } else {
            assert_eq!(service.terminate(), Some(0));
        }
        wait_until_within("no process is left", PATIENCE, || pids.iter().all(|pid| !is_alive(*pid)));
        let kept = sandbox.path("home/.local/state/carrack/service/bench");
        assert!(!kept.exists(), "something is kept of a measurement that was cut off");
    }
}
