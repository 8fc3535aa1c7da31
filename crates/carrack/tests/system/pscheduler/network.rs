//! The tests throughput and trace: what pScheduler demands of their results, and what a host really sends.

use std::net::{IpAddr, TcpListener};

use carrack_faults::netns::{self, Namespace};

use super::*;
use crate::support::netns::{ADDRESSES, Host, Hosts, name};
use crate::support::sshd::Sshd;

/// What pScheduler 5 publishes of a participant's result, and of the results of throughput and trace. A key that is not
/// here is refused there in a throughput. `shown` is what its own text of a result reads besides.
const NETWORK_SHAPES: &str = r##"{
    "$defs": {
        "string": {"type": "string"},
        "number-or-null": {"oneOf": [{"type": "number"}, {"type": "null"}]},
        "integer-or-null": {"oneOf": [{"type": "integer"}, {"type": "null"}]},
        "participant": {
            "type": "object",
            "properties": {
                "schema": {"type": "integer", "minimum": 1},
                "succeeded": {"type": "boolean"},
                "diags": {"$ref": "#/$defs/string"},
                "error": {"$ref": "#/$defs/string"},
                "result": {}
            },
            "required": ["succeeded", "result"]
        },
        "data": {
            "type": "object",
            "properties": {
                "throughput-bits": {"type": "number"},
                "throughput-bytes": {"type": "number"},
                "receiver-throughput-bits": {"type": "number"},
                "sent": {"$ref": "#/$defs/integer-or-null"},
                "lost": {"$ref": "#/$defs/integer-or-null"},
                "jitter": {"$ref": "#/$defs/number-or-null"},
                "stream-id": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "start": {"type": "number"},
                "end": {"type": "number"},
                "rtt": {"$ref": "#/$defs/number-or-null"},
                "tcp-window-size": {"$ref": "#/$defs/integer-or-null"},
                "retransmits": {"$ref": "#/$defs/integer-or-null"},
                "omitted": {"type": "boolean"}
            }
        },
        "shown-data": {
            "$ref": "#/$defs/data",
            "required": ["start", "end", "throughput-bits"]
        },
        "shown-stream": {
            "$ref": "#/$defs/shown-data",
            "required": ["stream-id"]
        },
        "parts": {
            "type": "object",
            "properties": {
                "streams": {"type": "array", "items": {"$ref": "#/$defs/data"}},
                "summary": {"$ref": "#/$defs/data"}
            }
        },
        "shown-parts": {
            "type": "object",
            "properties": {
                "streams": {"type": "array", "items": {"$ref": "#/$defs/shown-stream"}},
                "summary": {"$ref": "#/$defs/shown-data"}
            },
            "required": ["streams", "summary"]
        },
        "throughput": {
            "type": "object",
            "properties": {
                "schema": {"type": "integer", "minimum": 1},
                "succeeded": {"type": "boolean"},
                "error": {"$ref": "#/$defs/string"},
                "diags": {"$ref": "#/$defs/string"},
                "mss": {"type": "integer"},
                "mtu": {"type": "integer"},
                "tcp-window-size": {"type": "integer"},
                "requested-tcp-window-size": {"type": "integer"},
                "intervals": {"type": "array", "items": {"$ref": "#/$defs/parts"}},
                "summary": {"$ref": "#/$defs/parts"}
            },
            "required": ["succeeded", "diags", "intervals", "summary"]
        },
        "hop": {
            "type": "object",
            "properties": {
                "ip": {"type": "string"},
                "hostname": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9.-]*$"},
                "rtt": {"type": "string", "pattern": "^PT[0-9]+\\.?[0-9]*S$"},
                "as": {"type": "object"},
                "error": {"type": "string"},
                "mtu": {"type": "integer", "minimum": 1}
            }
        },
        "trace": {
            "type": "object",
            "properties": {
                "schema": {"type": "integer", "minimum": 1},
                "paths": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/hop"}}},
                "succeeded": {"type": "boolean"},
                "error": {"$ref": "#/$defs/string"},
                "diags": {"$ref": "#/$defs/string"}
            },
            "required": ["paths", "succeeded"]
        }
    }
}"##;

#[track_caller]
fn check(shape: &str, value: &Value) {
    Schema::of(NETWORK_SHAPES).check_as(shape, value).unwrap_or_else(|why| panic!("{shape}: {why}: {value}"));
}

fn test(kind: &str, spec: &Value) -> Value {
    json!({ "type": kind, "spec": spec })
}

/// What `can-run` says of a specification: why not, or nothing.
#[track_caller]
fn reasons(sandbox: &Sandbox, kind: &str, spec: &Value) -> Vec<String> {
    let answer = answer(sandbox, "can-run", &test(kind, spec), "can-run");
    let reasons = answer["reasons"].as_array().cloned().unwrap_or_default();
    assert_eq!(answer["can-run"], reasons.is_empty(), "{answer}");
    reasons.iter().map(|reason| reason.as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn seconds_kept_free(sandbox: &Sandbox, kind: &str, spec: &Value) -> String {
    let answer = answer(sandbox, "duration", &test(kind, spec), "duration-answer");
    answer["duration"].as_str().unwrap().to_owned()
}

/// Runs a test as pScheduler does: both participants where there are two, and then what merges their results.
#[track_caller]
fn run_on(prefix: &[String], sandbox: &Sandbox, kind: &str, spec: &Value) -> Value {
    let task = test(kind, spec);
    let both = if kind == "throughput" && spec["single-ended"] != true { 2 } else { 1 };
    let results: Vec<Value> = (0..both)
        .map(|participant| {
            let mut input = run_input(&task, PAST);
            input["participant"] = participant.into();
            let ran = method_on(prefix, sandbox, "run", &input.to_string());
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            let result = serde_json::from_str(&ran.stdout).unwrap();
            check("participant", &result);
            result
        })
        .collect();
    let merged = method(sandbox, "merged-results", &json!({ "test": task, "results": results }).to_string());
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    check(kind, &merged);
    assert_eq!((&merged, &merged["succeeded"]), (&results[0]["result"], &results[0]["succeeded"]));
    merged
}

/// Has the user keep the token and the key of a node: so the tool knows that the host has one, and at which port.
fn keep_token(sandbox: &Sandbox, node: &Node) {
    sandbox.ok(["token", "add", &node.address, &node.token_file.display().to_string()]);
    let pin = node.fingerprint.trim_start_matches('#');
    sandbox.write("home/.config/carrack/known_nodes", format!("{} {pin}\n", node.address));
}

fn port(node: &Node) -> u16 {
    node.address.rsplit(':').next().unwrap().parse().unwrap()
}

fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("no {name}: {object}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// A result of so many connections that agrees with itself.
#[track_caller]
fn agrees(result: &Value, streams: usize) {
    assert_eq!((&result["succeeded"], &result["error"]), (&json!(true), &Value::Null), "{result}");
    list(&result["intervals"]).iter().chain([&result["summary"]]).for_each(|parts| check("shown-parts", parts));
    let all = &result["summary"]["summary"];
    let rate_of = |data: &Value| number(data, "throughput-bytes") * 8.0 / (number(data, "end") - number(data, "start"));
    let near = |one: f64, other: f64| (one - other).abs() <= 0.001 * one.max(other);
    for parts in list(&result["intervals"]).iter().chain([&result["summary"]]) {
        let (sum, each) = (&parts["summary"], list(&parts["streams"]));
        assert_eq!(each.len(), streams, "{parts}");
        for name in ["throughput-bytes", "retransmits"] {
            assert_eq!(each.iter().map(|one| number(one, name)).sum::<f64>(), number(sum, name), "{name}: {parts}");
        }
        assert!(near(number(sum, "throughput-bits"), rate_of(sum)), "{parts}");
        assert!(each.iter().all(|one| number(one, "rtt") > 0.0), "{parts}");
    }
    let counted: Vec<_> = list(&result["intervals"]).iter().map(|parts| &parts["summary"]).collect();
    let counted: Vec<_> = counted.into_iter().filter(|sum| sum["omitted"] == false).collect();
    let bytes: f64 = counted.iter().map(|sum| number(sum, "throughput-bytes")).sum();
    assert!(bytes > 0.0 && bytes == number(all, "throughput-bytes"), "{result}");
    assert_eq!(number(counted[0], "start"), 0.0);
    assert!(
        counted.windows(2).all(|pair| (number(pair[0], "end") - number(pair[1], "start")).abs() < 0.01),
        "{result}"
    );
    assert!(number(all, "receiver-throughput-bits") > 0.0 && number(result, "mtu") > number(result, "mss"), "{result}");
}

#[test]
fn pscheduler_throughput_says_what_it_can_run_and_for_how_long() {
    let sandbox = Sandbox::new();
    for spec in [
        json!({ "schema": 1, "dest": "ps2.example.org" }),
        json!({ "schema": 1, "source": "ps1.example.org", "dest": "2001:db8::1", "ip-version": 6, "parallel": 4 }),
        json!({ "schema": 1, "dest": "b", "duration": "PT30S", "omit": "PT5S", "interval": "PT5S" }),
        json!({ "schema": 3, "dest": "b", "link-rtt": "PT0.1S" }),
        json!({ "schema": 4, "dest": "b", "source-node": "a:8443", "dest-node": "b:8443", "congestion": "bbr" }),
        json!({ "schema": 6, "dest": "b", "reverse": true, "reverse-connections": true, "no-delay": true }),
        json!({ "schema": 7, "dest": "b", "single-ended": true, "single-ended-port": 7421, "local-address": "::1" }),
        // What is switched off is not asked for.
        json!({ "schema": 7, "dest": "b", "udp": false, "zero-copy": false, "loopback": false }),
    ] {
        assert_eq!(reasons(&sandbox, "throughput", &spec), [""; 0], "{spec}");
    }
    for (name, value, why) in [
        ("udp", json!(true), "udp: carrack measures TCP only"),
        ("bandwidth", json!(1_000_000), "bandwidth: carrack sends as fast as the path takes it"),
        ("fq-rate", json!(1_000_000), "fq-rate: carrack sends as fast as the path takes it"),
        ("window-size", json!(65536), "window-size: carrack leaves the size of the TCP window to the kernel"),
        ("mss", json!(1400), "mss: carrack leaves the size of segments to the kernel"),
        ("ip-tos", json!(8), "ip-tos: carrack does not mark packets"),
        ("zero-copy", json!(true), "zero-copy: carrack sends as a copy does, and a copy has no such mode"),
        ("client-cpu-affinity", json!(0), "client-cpu-affinity: carrack leaves the choice of processors to the kernel"),
        ("loopback", json!(true), "loopback: carrack measures the path between two hosts"),
        ("burst-and-rest", json!(1), "burst-and-rest: carrack does not know this option"),
        ("duration", json!("PT5M"), "duration PT5M: carrack takes whole seconds from 1 to 240"),
        ("omit", json!("PT0.5S"), "omit PT0.5S: carrack takes whole seconds from 0 to 30"),
        ("interval", json!("PT0.1S"), "interval PT0.1S: carrack takes whole seconds from 1 to 240"),
        ("parallel", json!(257), "parallel 257: carrack takes from 1 to 256 streams"),
        ("dest", json!("--rsh=touch x"), "dest '--rsh=touch x' is no host"),
        ("local-address", json!("a b"), "local-address 'a b' is no host"),
        ("single-ended-port", json!(0), "single-ended-port 0 is no port"),
        ("schema", json!(8), "Schema 8 is not supported (highest is 7)"),
    ] {
        let mut spec = json!({ "schema": 7, "dest": "b" });
        spec[name] = value;
        assert_eq!(reasons(&sandbox, "throughput", &spec), [why], "{spec}");
    }
    // Each reason is told, not the first alone.
    let spec = json!({ "schema": 1, "dest": "b", "udp": true, "mss": 1400 });
    assert_eq!(reasons(&sandbox, "throughput", &spec).len(), 2);
    assert_eq!(reasons(&sandbox, "throughput", &json!({ "schema": 1 })), ["Missing dest"]);
    // Ten seconds, 3 s and 20 round trips of 0.2 s to begin, 5 s for the rest.
    assert_eq!(seconds_kept_free(&sandbox, "throughput", &json!({ "dest": "b" })), "PT22S");
    let spec = json!({ "dest": "b", "duration": "PT1M", "omit": "PT5S", "link-rtt": "PT0.01S" });
    assert_eq!(seconds_kept_free(&sandbox, "throughput", &spec), "PT73.2S");
    let refused = method(
        &sandbox,
        "run",
        &run_input(&test("throughput", &json!({ "dest": "b", "udp": true })), PAST).to_string(),
    );
    refused.failed_with(1, &["carrack measures TCP only"]);
}

#[test]
fn pscheduler_throughput_measures_a_node_whose_token_is_kept() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    keep_token(&sandbox, &node);
    let spec = json!({
        "schema": 1, "source": "127.0.0.1", "dest": "127.0.0.1", "duration": "PT2S", "omit": "PT1S", "parallel": 2,
    });
    let result = run_on(&[], &sandbox, "throughput", &spec);
    agrees(&result, 2);
    let omitted = |sum: &Value| sum["summary"]["omitted"] == true;
    assert!(list(&result["intervals"]).iter().any(omitted), "the warm-up is told, and marked: {result}");
    // Nothing is kept of it, beside pScheduler's own archive.
    assert!(!sandbox.path("home/.local/state/carrack/bench").exists());
    // Intervals of two seconds have twice as much each.
    let spec =
        json!({ "schema": 1, "dest": "127.0.0.1", "duration": "PT4S", "interval": "PT2S", "congestion": "cubic" });
    let result = run_on(&[], &sandbox, "throughput", &spec);
    agrees(&result, 1);
    let first = &result["intervals"][0]["summary"];
    assert!(number(first, "end") > 1.5 && list(&result["intervals"]).len() <= 3, "{result}");
}

#[test]
fn pscheduler_throughput_sends_from_the_source_and_with_reverse_to_it() {
    let Some(hosts) = Hosts::new() else { return };
    let sandbox = Sandbox::new();
    let node = Node::on(&hosts.prefix(Host::Far), &sandbox, "root", ADDRESSES[1]);
    keep_token(&sandbox, &node);
    // Only from its second address the near host gets through.
    hosts.add_address(Host::Near, "10.0.0.3");
    hosts.block_from(Host::Far, ADDRESSES[0], &port(&node).to_string());
    let near = hosts.host(Host::Near);
    for (reverse, sends) in [(false, 0), (true, 1)] {
        let before = moved(near);
        let spec = json!({
            "schema": 2, "source": "10.0.0.3", "dest": ADDRESSES[1], "duration": "PT1S", "reverse": reverse,
            "single-ended": true, "single-ended-port": port(&node),
        });
        let result = run_on(&hosts.prefix(Host::Near), &sandbox, "throughput", &spec);
        agrees(&result, 1);
        let after = moved(near);
        let [sent, received] = [after[0] - before[0], after[1] - before[1]];
        let bytes = number(&result["summary"]["summary"], "throughput-bytes") as u64;
        let ways = [sent, received];
        // What is counted and still on its way at the end is little.
        assert!(ways[sends] > bytes / 2 && ways[1 - sends] < bytes / 2, "reverse {reverse}: {ways:?}: {result}");
    }
}

/// What a host has sent over the cable, and received, in bytes.
fn moved(host: &Namespace) -> [u64; 2] {
    let table = host.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix("cable:")).unwrap();
    let columns: Vec<u64> = line.split_whitespace().map(|column| column.parse().unwrap()).collect();
    [columns[8], columns[0]]
}

#[test]
fn pscheduler_throughput_measures_an_ssh_host_where_no_token_is_kept() {
    let sandbox = Sandbox::new();
    let far = Sshd::start(&sandbox);
    let ssh = format!("#!/bin/sh\nexec /usr/bin/{} \"$@\"\n", far.rsh.trim_start_matches("--rsh="));
    let path = sandbox.write("bin/ssh", ssh);
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let spec = json!({ "schema": 1, "dest": "far", "duration": "PT1S", "parallel": 2 });
    let result = run_on(&[], &sandbox, "throughput", &spec);
    agrees(&result, 2);
    assert!(result["diags"].as_str().unwrap().contains("BatchMode"), "nobody is asked: {result}");
}

#[test]
fn pscheduler_throughput_and_trace_tell_why_they_failed() {
    let sandbox = Sandbox::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = json!({ "schema": 2, "dest": "127.0.0.1", "single-ended": true, "single-ended-port": gone.port() });
    let node = Node::start(&sandbox, "root", &["--measure=nobody"]);
    keep_token(&sandbox, &node);
    let refuses = json!({ "schema": 1, "dest": "127.0.0.1", "duration": "PT1S" });
    let lacks = json!({ "schema": 1, "dest": "::1", "ip-version": 4 });
    let differ = json!({ "schema": 1, "source": "127.0.0.1", "dest": "::1" });
    for (kind, spec, why) in [
        ("throughput", &nobody, "refused"),
        ("throughput", &refuses, "takes no measurements"),
        ("throughput", &lacks, "::1 has no IPv4 address"),
        ("throughput", &differ, "127.0.0.1 and ::1 have no version of IP in common"),
        ("trace", &json!({ "schema": 1, "dest": "127.0.0.1" }), "takes no measurements"),
        ("trace", &lacks, "::1 has no IPv4 address"),
    ] {
        let result = run_on(&[], &sandbox, kind, spec);
        assert_eq!(result["succeeded"], false, "{spec}");
        assert!(result["error"].as_str().unwrap().contains(why), "{why}: {result}");
        let nothing = if kind == "trace" { &result["paths"] } else { &result["intervals"] };
        assert_eq!(nothing, &json!([]));
    }
    // A participant that has no result says why.
    let results = json!({ "results": [{ "succeeded": false, "error": "Tool failed: gone", "diags": "" }, null] });
    method(&sandbox, "merged-results", &results.to_string()).failed_with(1, &["Tool failed: gone"]);
}

#[test]
fn pscheduler_trace_says_what_it_can_run_and_for_how_long() {
    let sandbox = Sandbox::new();
    for spec in [
        json!({ "schema": 1, "dest": "b" }),
        json!({ "schema": 2, "source": "::2", "source-node": "a", "dest": "::1", "ip-version": 6, "hops": 30 }),
        json!({ "schema": 1, "dest": "b", "probe-type": "udp", "queries": 1, "fragment": false, "as": false }),
    ] {
        assert_eq!(reasons(&sandbox, "trace", &spec), [""; 0], "{spec}");
    }
    for (name, value, why) in [
        ("probe-type", json!("icmp"), "probe-type: carrack sends UDP probes only"),
        ("queries", json!(3), "queries: carrack tells one answer of each router"),
        ("fragment", json!(true), "fragment: carrack sends packets that may not be cut"),
        ("as", json!(true), "as: carrack does not look up autonomous systems"),
        ("length", json!(1500), "length: carrack chooses the size of its probes"),
        ("first-ttl", json!(2), "first-ttl: carrack begins with the first router"),
        ("dest-port", json!(33434), "dest-port: carrack chooses the ports of its probes"),
        ("wait", json!("PT1S"), "wait: carrack chooses how long it waits for answers"),
        ("algorithm", json!("paris-traceroute"), "algorithm: carrack has one way to look for routers"),
        ("ip-version", json!(5), "ip-version 5 is neither 4 nor 6"),
        ("schema", json!(3), "Schema 3 is not supported (highest is 2)"),
    ] {
        let mut spec = json!({ "schema": 1, "dest": "b" });
        spec[name] = value;
        assert_eq!(reasons(&sandbox, "trace", &spec), [why], "{spec}");
    }
    assert_eq!(seconds_kept_free(&sandbox, "trace", &json!({ "dest": "b" })), "PT37S");
    assert_eq!(seconds_kept_free(&sandbox, "trace", &json!({ "dest": "b", "hostnames": false })), "PT35S");
}

#[test]
fn pscheduler_trace_has_names_where_they_are_wanted() {
    let sandbox = Sandbox::new();
    let node = Node::on(&[], &sandbox, "root", "127.0.0.1");
    keep_token(&sandbox, &node);
    let hop = |names: bool| {
        let spec = json!({ "schema": 1, "source": "127.0.0.1", "dest": "127.0.0.1", "hostnames": names });
        let result = run_on(&[], &sandbox, "trace", &spec);
        let [path] = list(&result["paths"]) else { panic!("{result}") };
        let [hop] = list(path) else { panic!("{result}") };
        assert_eq!(hop["ip"], "127.0.0.1", "{result}");
        hop.clone()
    };
    assert_eq!(hop(false)["hostname"], Value::Null);
    let known = tool(Command::new("getent").args(["hosts", "127.0.0.1"]));
    assert_eq!(hop(true)["hostname"], known.split_whitespace().nth(1).unwrap());
}

/// Two hosts with a router between them; packets towards the far one have 1400 bytes at most.
fn routed() -> Option<[Namespace; 3]> {
    if !netns::can_make() {
        return None;
    }
    let here = name();
    let hosts = ["near", "router", "far"].map(|side| Namespace::new(&format!("{here}-{side}")).unwrap());
    let [near, router, far] = &hosts;
    router.set("ipv4/ip_forward", "1").unwrap();
    for (host, device, [own, routers], mtu) in
        [(near, "tonear", ["10.1.0.2", "10.1.0.1"], "1500"), (far, "tofar", ["10.2.0.2", "10.2.0.1"], "1400")]
    {
        let [inside, outside] = [host.name(), router.name()];
        netns::ip(&["link", "add", "cable", "netns", inside, "type", "veth", "peer", "name", device, "netns", outside])
            .unwrap();
        for (end, device, address) in [(host, "cable", own), (router, device, routers)] {
            end.ip(&["addr", "add", &format!("{address}/24"), "dev", device]).unwrap();
            end.ip(&["link", "set", device, "mtu", mtu, "up"]).unwrap();
        }
        // TCP's own packets are small enough for the whole way.
        host.ip(&["route", "add", "default", "via", routers, "advmss", "1200"]).unwrap();
    }
    Some(hosts)
}

/// The hops of a result, each with an address and a time, or none of both.
fn hops(result: &Value) -> Vec<Option<IpAddr>> {
    let [path] = list(&result["paths"]) else { panic!("{result}") };
    let address = |hop: &Value| {
        assert_eq!(hop["ip"].is_null(), hop["rtt"].is_null(), "{result}");
        hop["ip"].as_str().map(|text| text.parse().unwrap())
    };
    list(path).iter().map(address).collect()
}

#[test]
fn pscheduler_trace_tells_routers_and_the_largest_packet() {
    let Some([near, _router, far]) = routed() else { return };
    let sandbox = Sandbox::new();
    let node = Node::on(&far.prefix(), &sandbox, "root", "10.2.0.2");
    keep_token(&sandbox, &node);
    let trace = |more: &Value| {
        let mut spec = json!({ "schema": 1, "source": "10.1.0.2", "dest": "10.2.0.2", "hostnames": false });
        more.as_object().unwrap().iter().for_each(|(name, value)| spec[name] = value.clone());
        let result = run_on(&near.prefix(), &sandbox, "trace", &spec);
        assert_eq!(result["succeeded"], true, "{result}");
        result
    };
    let [router, host] = ["10.1.0.1", "10.2.0.2"].map(|address| address.parse().ok());
    let result = trace(&json!({}));
    assert_eq!(hops(&result), [router, host]);
    assert_eq!(
        (&result["paths"][0][1]["mtu"], &result["paths"][0][0]["mtu"]),
        (&json!(1400), &Value::Null),
        "{result}"
    );
    assert_eq!(hops(&trace(&json!({ "hops": 1 }))), [router]);
    // A firewall of the silent kind before the far host: a hop without an answer stands for what lies behind.
    far.ip(&["rule", "add", "pref", "100", "lookup", "local"]).unwrap();
    far.ip(&["rule", "del", "pref", "0"]).unwrap();
    far.ip(&["rule", "add", "pref", "10", "iif", "cable", "ipproto", "udp", "blackhole"]).unwrap();
    let result = trace(&json!({}));
    assert_eq!(hops(&result), [router, None]);
    assert!(result["diags"].as_str().unwrap().contains("nobody behind hop 1 answers probes"), "{result}");
}
