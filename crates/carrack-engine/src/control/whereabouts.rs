//! Where a host is that ssh reaches: what its name, or ssh's own configuration, says of it.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use carrack_core::location::SshHost;
use carrack_core::request::Reach;

use super::ssh::{command, is_ssh};
use crate::net::connect::look_up;

/// Where a host is, as far as that can be known here: what its name resolves to, or the `HostName` that ssh's
/// configuration has for it.
pub fn addresses(host: &SshHost, reach: &Reach) -> Vec<SocketAddr> {
    let configured = configured_name(host, reach);
    let name = configured.as_deref().unwrap_or(&host.host);
    let name = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    look_up(&format!("{name}:0")).unwrap_or_default()
}

/// The addresses of the server that ssh tries by itself; none where it goes by way of another host or program, or
/// cannot be asked.
pub fn servers(host: &SshHost, reach: &Reach) -> Vec<SocketAddr> {
    configured_servers(host, reach).unwrap_or_default()
}

fn configured_servers(host: &SshHost, reach: &Reach) -> Option<Vec<SocketAddr>> {
    let said = configuration(host, reach)?;
    let value = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let is_set = |name: &str| value(name).is_some_and(|value| value != "none");
    if is_set("proxyjump") || is_set("proxycommand") {
        return None;
    }
    let (name, port) = (value("hostname")?, value("port").and_then(|port| port.parse().ok()).unwrap_or(22));
    let name = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    // `AddressFamily`, or `ssh -4`.
    let is_tried = |address: &SocketAddr| match value("addressfamily") {
        Some("inet") => address.is_ipv4(),
        Some("inet6") => address.is_ipv6(),
        Some(_) | None => true,
    };
    Some(look_up(&format!("{name}:{port}")).ok()?.into_iter().filter(is_tried).collect())
}

/// What ssh would connect to; `None` where it cannot be asked.
fn configured_name(host: &SshHost, reach: &Reach) -> Option<String> {
    let said = configuration(host, reach)?;
    said.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::to_owned)
}

/// What ssh's configuration has for a host; `None` where it cannot be asked.
fn configuration(host: &SshHost, reach: &Reach) -> Option<String> {
    let mut command = command(host, reach).ok()?;
    if !is_ssh(reach.rsh.first()?) {
        return None;
    }
    // The options before the host's name, and one more.
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(reach.rsh.first()?);
    command.arg("-G").args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().ok().filter(|said| said.status.success())?.stdout;
    String::from_utf8(said).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an alias stands for only ssh knows; a program that is another's is not asked in ssh's words.
    #[test]
    fn addresses_are_those_of_the_configured_name() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let rsh = |name: &str, says: &str| {
            let program = directory.path().join(name);
            std::fs::write(&program, format!("#!/bin/sh\n[ \"$1\" = -G ] || exit 1\n{says}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            Reach { rsh: vec![program.display().to_string()], ..Reach::default() }
        };
        let of = |host: &str, reach: &Reach| {
            let found = addresses(&SshHost { user: None, host: host.into() }, reach);
            found.into_iter().map(|address| address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("far", &rsh("ssh", "echo user me; echo hostname 127.0.0.9; echo port 22")), ["127.0.0.9:0"]);
        assert_eq!(of("::1", &rsh("ssh", "echo hostname ::1")), ["[::1]:0"]);
        assert_eq!(of("127.0.0.1", &rsh("ssh", "exit 1")), ["127.0.0.1:0"]);
        assert_eq!(of("127.0.0.1", &rsh("other", "echo hostname 127.0.0.9")), ["127.0.0.1:0"]);
        assert!(of("no.such.host.invalid", &rsh("ssh", "exit 1")).is_empty());
        let host = SshHost { user: None, host: "far".into() };
        let servers = |says: &str| {
            let found = servers(&host, &rsh("ssh", says));
            found.into_iter().map(|server| server.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(servers("echo hostname 127.0.0.9; echo port 2222"), ["127.0.0.9:2222"]);
        assert_eq!(servers("echo hostname 127.0.0.9; echo proxyjump none"), ["127.0.0.9:22"]);
        for between in ["proxyjump gate", "proxycommand nc -x gate %h %p", "addressfamily inet6"] {
            assert!(servers(&format!("echo hostname 127.0.0.9; echo '{between}'")).is_empty(), "{between}");
        }
        for family in ["inet", "any"] {
            assert_eq!(servers(&format!("echo hostname 127.0.0.9; echo addressfamily {family}")), ["127.0.0.9:22"]);
        }
        assert!(servers("exit 1").is_empty());
    }
}
