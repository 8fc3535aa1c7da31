//! What is wrong with a session on a host, with its ssh server, and with what stands in front of it.

use super::{Found, doctor, doctor_by, tune};
use crate::support::netns::{ADDRESSES, Host, Hosts};
use crate::support::node::Node;
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
    assert_eq!((found.get("far", "path.firewall")["severity"].as_str(), found.code), (Some("warning"), 1));
    scene.hosts.block(Host::Near, DATA_PORTS);
    let found = scene.doctor();
    found.has_only(&[("far", "path.firewall")]);
    assert_eq!((found.get("far", "path.firewall")["severity"].as_str(), found.code), (Some("failure"), 3));
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
    let found = Found::of(ran(command.output().unwrap()));
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
    let found = Found::of(ran(command.output().unwrap()));
    let far = found.findings.iter().filter(|one| one["side"] == "far").count();
    let told = found.findings.iter().find(|one| one["rule"] == "host.evidence" && one["side"] == "far");
    assert!(told.is_some_and(|told| told["value"].as_str().unwrap().contains("wants no token")), "{}", found.text);
    assert_eq!(far, 1, "{}", found.text);
}
