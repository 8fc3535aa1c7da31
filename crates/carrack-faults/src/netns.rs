//! Hosts of a test's own: network namespaces, which share everything with this host but the network.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace under a name that `ip netns` knows; the name is gone when the value is dropped, and so is the
/// namespace once nobody is in it.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes it, its loopback up. What an earlier run left under this name goes first.
    pub fn new(name: &str) -> Result<Self, String> {
        if path(name).exists() {
            ip(&["netns", "delete", name])?;
        }
        ip(&["netns", "add", name])?;
        let namespace = Self { name: name.to_owned() };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// As `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` with these arguments inside.
    pub fn ip(&self, arguments: &[&str]) -> Result<(), String> {
        ip(&[&["-n", &self.name], arguments].concat())
    }

    /// What runs a command inside, when put in front of it.
    pub fn prefix(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(String::from).to_vec()
    }

    /// The same command, inside; see [`after`].
    pub fn on(&self, command: &Command) -> Command {
        after(&self.prefix(), command)
    }

    /// Does something in a thread that is inside: sockets and devices made there belong there, and
    /// `/proc/sys/net` is its own.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> io::Result<T> {
        let handle = File::open(path(&self.name))?;
        let enter = || -> io::Result<T> {
            move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(act())
        };
        std::thread::scope(|scope| scope.spawn(enter).join().expect("what is done inside does not panic"))
    }

    /// Sets one of the network's parameters by its name with slashes, such as `ipv4/tcp_mtu_probing`.
    pub fn set(&self, parameter: &str, value: &str) -> Result<(), String> {
        let path = format!("/proc/sys/net/{parameter}");
        let written = self.inside(|| std::fs::write(&path, value)).and_then(|written| written);
        written.map_err(|error| format!("cannot set {path} to {value} in {}: {error}", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

/// The same command with words before it. Its environment is what was set explicitly.
pub fn after(prefix: &[String], command: &Command) -> Command {
    let Some((program, arguments)) = prefix.split_first() else { panic!("there must be something before it") };
    let mut wrapped = Command::new(program);
    wrapped.args(arguments).arg(command.get_program()).args(command.get_args()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        wrapped.current_dir(directory);
    }
    wrapped
}

/// Runs `ip`.
pub fn ip(arguments: &[&str]) -> Result<(), String> {
    let line = || format!("ip {}", arguments.join(" "));
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("{}: {error}", line()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", line(), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Whether namespaces can be made here. If not, why is printed, for the test that is passed over.
pub fn can_make() -> bool {
    if carrack_sys::host::user_id() != 0 || ip(&["netns", "list"]).is_err() {
        println!("skipped: network namespaces need root and the ip command (iproute2)");
        return false;
    }
    let trial = Namespace::new(&format!("carrack-trial-{}-{:?}", std::process::id(), std::thread::current().id()));
    if trial.is_err() {
        println!("skipped: this machine does not let root make network namespaces");
    }
    trial.is_ok()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(name)
}
