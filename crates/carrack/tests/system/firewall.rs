//! Hosts between which not every connection can be made: the copy finds a way, and says which.

use crate::support::netns::{ADDRESSES, Host, Hosts};
use crate::support::running::Running;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, same_tree, tree, wait_until};

/// Below the ports that the kernel gives to those who connect, so that no answer is lost with the requests.
const DATA_PORTS: &str = "20000-20100";

/// Two hosts with an `sshd` on the far one, and a tree to copy.
struct Scene {
    // In the order in which they have to go.
    far: Sshd,
    hosts: Hosts,
    sandbox: Sandbox,
}

impl Scene {
    fn new() -> Option<Self> {
        let hosts = Hosts::new()?;
        let sandbox = Sandbox::new();
        tree::mixed(&sandbox.path("tree"));
        let prefix = hosts.prefix(Host::Far);
        let setup = Setup { addresses: &ADDRESSES[1..], prefix: &prefix, ..Setup::default() };
        Some(Self { far: Sshd::with(&sandbox, &setup), hosts, sandbox })
    }

    /// Copies from the near host, on which the command runs, or to it.
    fn copy(&self, more: &[&str], from: &str, to: &str) -> Ran {
        let mut command = self.sandbox.carrack();
        command.args(["--json", &self.far.rsh, "--ports", DATA_PORTS]).args(more).args([from, to]);
        let mut running = Running::start(&mut self.hosts.on(Host::Near, &command));
        wait_until("the copy ends in spite of the firewall", || !running.is_running());
        running.end()
    }

    fn at(&self, name: &str) -> String {
        format!("far:{}", self.sandbox.path(name).display())
    }

    /// A copy there and one back, which must go over links of this kind, to this address.
    #[track_caller]
    fn both_ways(&self, kind: &str, address: &str) -> [Ran; 2] {
        let copies =
            [("tree/".to_owned(), self.at("there")), (self.at("there/"), "back".to_owned())].map(|(from, to)| {
                let ran = self.copy(&[], &from, &to);
                assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
                let link = &ran.summary()["link"];
                assert_eq!(link["kind"], kind, "{}", ran.stdout);
                let told = link["address"].as_str().unwrap();
                assert!(told.starts_with(address) && told.is_empty() == address.is_empty(), "{told} is not {address}");
                ran
            });
        same_tree(&self.sandbox.path("tree"), &self.sandbox.path("there"));
        same_tree(&self.sandbox.path("tree"), &self.sandbox.path("back"));
        copies
    }
}

#[test]
fn direct_link_where_nothing_is_in_the_way() {
    let Some(scene) = Scene::new() else { return };
    scene.both_ways("direct", "10.0.0.2:20");
}

#[test]
fn firewall_before_the_far_host_is_passed_by_connecting_back() {
    let Some(scene) = Scene::new() else { return };
    scene.hosts.block(Host::Far, DATA_PORTS);
    scene.both_ways("reverse", "10.0.0.1:20");
}

#[test]
fn firewalls_before_both_are_passed_inside_the_ssh_connection() {
    let Some(scene) = Scene::new() else { return };
    scene.hosts.block(Host::Far, DATA_PORTS);
    scene.hosts.block(Host::Near, DATA_PORTS);
    let [out, _] = scene.both_ways("tunnel", "");
    // Why is said, with the address that did not answer.
    assert!(out.stdout.contains("no direct data connection") && out.stdout.contains("10.0.0."), "{}", out.stdout);
}

#[test]
fn link_that_must_be_and_cannot_be_is_an_error() {
    let Some(scene) = Scene::new() else { return };
    scene.hosts.block(Host::Far, DATA_PORTS);
    scene.hosts.block(Host::Near, DATA_PORTS);
    for (kind, address) in [("direct", "10.0.0.2:20"), ("reverse", "10.0.0.1:20")] {
        let ran = scene.copy(&["--link", kind], "tree/one", &scene.at("one"));
        assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
        let error = &ran.summary()["error"];
        assert_eq!(error["code"], "no-link");
        let message = format!("{} {}", error["message"], error["hints"]);
        for word in [address, "--link", "--ports", "--data-address"] {
            assert!(message.contains(word), "{word} is missing from: {message}");
        }
    }
    assert!(!scene.sandbox.path("one").exists());
}

/// Whether connections leave from the address that was asked for is seen by what a firewall lets through.
#[test]
fn bind_passes_a_firewall_that_admits_only_that_address() {
    const ADMITTED: &str = "10.0.0.3";
    let Some(scene) = Scene::new() else { return };
    scene.hosts.add_address(Host::Near, ADMITTED);
    scene.hosts.block_from(Host::Far, ADDRESSES[0], DATA_PORTS);
    let link = |more: &[&str], from: &str, to: &str| {
        let ran = scene.copy(more, from, to);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        let link = &ran.summary()["link"];
        let text = |field: &str| link[field].as_str().unwrap().to_owned();
        (text("kind"), text("address").rsplit_once(':').unwrap().0.to_owned())
    };
    let pair = |kind: &str, address: &str| (kind.to_owned(), address.to_owned());
    let bind = format!("--bind={ADMITTED}");
    assert_eq!(link(&[], "tree/", &scene.at("without")), pair("reverse", ADDRESSES[0]), "the system's choice");
    assert_eq!(link(&[&bind], "tree/", &scene.at("there")), pair("direct", ADDRESSES[1]));
    assert_eq!(link(&[&bind], &scene.at("there/"), "back"), pair("direct", ADDRESSES[1]));
    assert_eq!(link(&[&bind, "--link=reverse"], "tree/", &scene.at("called")), pair("reverse", ADMITTED));
    for copied in ["there", "back", "called"] {
        same_tree(&scene.sandbox.path("tree"), &scene.sandbox.path(copied));
    }
}
