//! What is wrong with a session on a host, with its ssh server, and with what stands in front of it.

use carrack_faults::netns;

use super::{Found, doctor, doctor_by, tune};
use crate::support::browser::{Look, open};
use crate::support::netns::{ADDRESSES, Host, Hosts};
use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Sandbox, ran};

/// Nothing is sent over the path but questions.
const ASK: &str = "--no-measure";
/// Below the ports that the kernel gives to those who connect.
const DATA_PORTS: &str = "20000-20100";

/// Two hosts with an sshd on the far one.
struct Scene {
    // In the order in which they have to go.
    far: Sshd,
    hosts: Hosts,
    sandbox: Sandbox,
}

impl Scene {
    fn new(directives: &str) -> Option<Self> {
        let hosts = Hosts::new()?;
        for host in [Host::Near, Host::Far] {
            tune(hosts.host(host));
            hosts.host(host).ip(&["link", "set", "cable", "mtu", "9000"]).unwrap();
        }
        let sandbox = Sandbox::new();
        let prefix = hosts.prefix(Host::Far);
        let setup = Setup { addresses: &ADDRESSES[1..], prefix: &prefix, directives, ..Setup::default() };
        Some(Self { far: Sshd::with(&sandbox, &setup), hosts, sandbox })
    }

    fn doctor(&self) -> Found {
        let arguments = [&self.far.rsh, ASK, "--ports", DATA_PORTS, "far:"];
        doctor(self.hosts.host(Host::Near), &self.sandbox, &arguments)
    }
}

#[test]
fn doctor_names_a_firewall_before_one_host_and_before_both() {
    let Some(scene) = Scene::new("") else { return };
    scene.doctor().is_healthy();
    scene.hosts.block(Host::Far, DATA_PORTS);
    let found = scene.doctor();
    found.has_only(&[("far", "path.firewall")]);
    assert_eq!((found.get("far", "path.firewall")["severity"].as_str(), found.code_of_own()), (Some("warning"), 1));
    assert!(found.fix("far", "path.firewall").contains("--ports"), "{}", found.text);
    scene.hosts.block(Host::Near, DATA_PORTS);
    let found = scene.doctor();
    found.has_only(&[("far", "path.firewall")]);
    assert_eq!((found.get("far", "path.firewall")["severity"].as_str(), found.code_of_own()), (Some("failure"), 3));
    assert!(found.fix("far", "path.firewall").contains("--ports"), "{}", found.text);
}

#[test]
fn doctor_names_the_ssh_server_s_limit_of_startups() {
    let Some(scene) = Scene::new("MaxStartups 4:50:8") else { return };
    let found = scene.doctor();
    found.has_only(&[("far", "sshd.startups")]);
    let told = found.get("far", "sshd.startups");
    assert!(
        told["value"].as_str().unwrap().starts_with("MaxStartups begins to refuse at 4 and refuses all at 8"),
        "{told}"
    );
    assert!(found.fix("far", "sshd.startups").contains("MaxStartups 100:30:300"), "{}", found.text);
}

#[test]
fn doctor_names_commands_that_a_login_shell_does_not_find() {
    let Some(scene) = Scene::new("") else { return };
    scene.doctor().is_healthy();
    std::fs::write(scene.far.home.join(".profile"), "PATH=/usr/games\n").unwrap();
    let found = scene.doctor();
    found.has_only(&[("far", "host.commands")]);
    let told = found.get("far", "host.commands");
    assert!(
        told["value"].as_str().unwrap().contains("sysctl") && told["value"].as_str().unwrap().ends_with("/usr/games"),
        "{told}"
    );
    assert!(found.fix("far", "host.commands").starts_with("echo 'PATH=$PATH:/"), "{}", found.text);
}

#[test]
fn doctor_names_a_limit_of_open_files() {
    let sandbox = Sandbox::new();
    let with = |files: &str| {
        let line = format!("ulimit -n {files} && exec \"$@\"");
        doctor_by(&["sh", "-c", &line, "sh"].map(String::from), &sandbox, &[])
    };
    let of =
        |found: &Found| found.findings.iter().find(|one| one["rule"] == "host.open-files").unwrap()["severity"].clone();
    assert_eq!(of(&with("4096")), "warning");
    let found = with("256");
    assert_eq!((of(&found), found.code), ("failure".into(), 3));
    assert!(found.fix("near", "host.open-files").contains("nofile"), "{}", found.text);
}

#[test]
fn doctor_reads_what_ssh_says_of_a_host_that_it_does_not_reach() {
    let sandbox = Sandbox::new();
    let rsh =
        sandbox.write("rsh", "#!/bin/sh\necho 'ssh: connect to host far port 22: Connection refused' >&2\nexit 255\n");
    std::fs::set_permissions(&rsh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = sandbox.carrack();
    command.args(["doctor", "--json", "far:", ASK]).arg(format!("--rsh={}", rsh.display()));
    let found = Found::of(ran(command.output_in_time().unwrap()));
    let told = found.get("path", "path.reached");
    assert!(told["value"].as_str().unwrap().contains("Connection refused"), "{told}");
    assert_eq!(found.code, 3);
}

#[test]
fn node_says_nothing_of_its_host_to_who_shows_no_token() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &["--anonymous"]);
    let mut command = sandbox.carrack();
    command.args(["doctor", "--json", &node.at(""), ASK]);
    let found = Found::of(ran(command.output_in_time().unwrap()));
    let far = found.findings.iter().filter(|one| one["side"] == "far").count();
    let told = found.findings.iter().find(|one| one["rule"] == "host.evidence" && one["side"] == "far");
    assert!(told.is_some_and(|told| told["value"].as_str().unwrap().contains("wants no token")), "{}", found.text);
    assert_eq!(far, 1, "{}", found.text);
}

#[test]
fn doctor_examines_two_other_hosts_and_records_what_they_say() {
    let Some(scene) = Scene::new("") else { return };
    let node = Node::on(&scene.hosts.prefix(Host::Near), &scene.sandbox, "root", ADDRESSES[0]);
    let arguments = [&scene.far.rsh, ASK, "--record=said", &node.token(), &node.at(""), "far:"];
    let found = doctor(scene.hosts.host(Host::Near), &scene.sandbox, &arguments);
    found.is_healthy();
    let hosts: Vec<&str> = found.findings.iter().filter_map(|one| one["host"].as_str()).collect();
    assert!(hosts.contains(&node.address.as_str()) && hosts.contains(&"far"), "{hosts:?}");
    for (side, address) in [("near", ADDRESSES[0]), ("far", ADDRESSES[1])] {
        let told = std::fs::read_to_string(scene.sandbox.path(format!("said/{side}/address/cable"))).unwrap();
        assert!(told.lines().any(|line| line == format!("{address}/24")), "{side}: {told}");
    }
    // A connection each way was looked at by both.
    for side in ["near", "far"] {
        let known = |rule: &str| {
            found.findings.iter().any(|one| one["rule"] == rule && one["side"] == side && one["severity"] == "ok")
        };
        assert!(known("middlebox.options") && known("path.route"), "{side}: {}", found.text);
    }
}

/// The page in a browser, light and dark: nothing is asked for beside it, and the console stays empty.
#[test]
fn doctor_page_in_a_browser() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.carrack();
    command.args(["doctor", "--html=page.html"]);
    let files = "ulimit -n 256 && exec \"$@\"";
    let prefix = ["sh", "-c", files, "sh"].map(String::from);
    let output = netns::after(&prefix, &command).output_in_time().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read(sandbox.path("page.html")).unwrap();
    assert!(String::from_utf8_lossy(&page).contains("host.open-files"));
    for (dark, page_colour) in [(false, [0xf6, 0xf7, 0xf8]), (true, [0x12, 0x14, 0x17])] {
        let look = Look { dark, width: 1200 };
        let opened = open(&sandbox, page.clone(), look);
        assert_eq!(opened.requests, ["GET / HTTP/1.1 Host: page.invalid"], "{look:?}");
        assert_eq!(opened.console, Vec::<String>::new(), "{look:?}");
        assert!(opened.picture.count(page_colour) > 20_000, "{look:?}");
    }
}
