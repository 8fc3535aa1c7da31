//! A private `sshd`: keys, configuration, home and cache of its own, all in the sandbox.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::process::{at_home_in, descendants, signal};
use super::{Sandbox, tool, wait_until};

/// What the line of shell that looks for an agent, or receives one, may call.
const TOOLS: [&str; 15] =
    ["sh", "uname", "mkdir", "mktemp", "head", "wc", "chmod", "mv", "rm", "id", "ls", "cksum", "rmdir", "gzip", "find"];
/// Where it listens unless told otherwise: the loopback's addresses, one of which no resolver has heard of.
const ADDRESSES: [&str; 4] = ["127.0.0.1", "127.0.0.2", "127.0.0.77", "::1"];

/// A server to start.
pub struct Setup<'a> {
    /// The alias that the client's configuration knows it by.
    pub name: &'a str,
    /// Further lines for `sshd_config`.
    pub directives: &'a str,
    /// Further words for the environment of those who log in.
    pub environment: &'a str,
    /// Whether the host has the program on its PATH.
    pub has_agent: bool,
    /// Where it listens; the first is where its alias leads.
    pub addresses: &'a [&'a str],
    /// What to start it by, like `ip netns exec NAME`.
    pub prefix: &'a [String],
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self { name: "far", directives: "", environment: "", has_agent: true, addresses: &ADDRESSES, prefix: &[] }
    }
}

/// A running server; it and every session of it end when dropped.
pub struct Sshd {
    _server: Server,
    /// The ssh command that reaches it, for `--rsh`.
    pub rsh: String,
    /// Where those who log in find themselves at home.
    pub home: PathBuf,
    /// Their `XDG_CACHE_HOME`.
    pub cache: PathBuf,
    /// The only directory on their PATH.
    pub bin: PathBuf,
}

impl Sshd {
    /// A server with the program on its PATH, known as `far`.
    pub fn start(sandbox: &Sandbox) -> Self {
        Self::with(sandbox, &Setup::default())
    }

    /// Puts an `ssh` that reaches it into the sandbox. Tells the `PATH` by which that is found.
    #[cfg(feature = "service")]
    pub fn put_on_path(&self, sandbox: &Sandbox) -> String {
        let ssh = format!("#!/bin/sh\nexec /usr/bin/{} \"$@\"\n", self.rsh.trim_start_matches("--rsh="));
        let path = sandbox.write("bin/ssh", ssh);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        format!("{}:{}", sandbox.path("bin").display(), std::env::var("PATH").unwrap_or_default())
    }

    pub fn with(sandbox: &Sandbox, setup: &Setup<'_>) -> Self {
        let [home, cache, bin] = ["home", "cache", "bin"].map(|kind| sandbox.path(format!("{}.{kind}", setup.name)));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&bin).unwrap();
        for name in TOOLS {
            symlink(find(name), bin.join(name)).unwrap();
        }
        if setup.has_agent {
            symlink(super::program(), bin.join("carrack")).unwrap();
        }
        make_keys(sandbox);
        // Only root's sshd wants this directory, and a machine on which none has run since it started has none.
        let _ = std::fs::create_dir("/run/sshd");
        let [at_home, kept, path] = [&home, &cache, &bin].map(|directory| directory.display());
        let environment = format!("SetEnv HOME={at_home} XDG_CACHE_HOME={kept} PATH={path} {}", setup.environment);
        let (server, port) = serve(sandbox, setup, &environment);
        write_alias(sandbox, setup, port);
        let config = write_client_config(sandbox, setup.name, port);
        Self { _server: server, rsh: format!("--rsh=ssh -F {}", config.display()), home, cache, bin }
    }

    /// What its cache holds of agents, whole or not.
    pub fn cached(&self) -> Vec<PathBuf> {
        super::tree::walk(&self.cache).into_iter().filter(|path| path.is_file()).collect()
    }
}

/// The listening process. Its sessions, and what they started, would outlive it.
struct Server {
    child: Child,
    home: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let sessions = descendants(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
        sessions.into_iter().chain(at_home_in(&self.home)).for_each(|pid| signal(pid, "KILL"));
    }
}

/// A program of the system. `sshd` insists on being called by its full path.
fn find(name: &str) -> PathBuf {
    let directories = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().map(Path::new);
    let mut found = directories.map(|directory| directory.join(name)).filter(|path| path.exists());
    found.next().unwrap_or_else(|| panic!("{name} is not installed (openssh-server, coreutils)"))
}

/// One key for all hosts of a sandbox and one for the user, and the files that trust them.
fn make_keys(sandbox: &Sandbox) {
    if sandbox.path("known_hosts").exists() {
        return;
    }
    for name in ["host_key", "user_key"] {
        let mut keygen = Command::new("ssh-keygen");
        tool(keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(sandbox.path(name)));
    }
    std::fs::copy(sandbox.path("user_key.pub"), sandbox.path("authorized_keys")).unwrap();
    let public = std::fs::read_to_string(sandbox.path("host_key.pub")).unwrap();
    sandbox.write("known_hosts", format!("carrack-test {public}"));
}

/// Starts the server on a port that is free on all its addresses.
fn serve(sandbox: &Sandbox, setup: &Setup<'_>, environment: &str) -> (Server, u16) {
    let log = sandbox.path(format!("{}.log", setup.name));
    for _ in 0..20 {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = server_config(sandbox, setup, environment, port);
        let mut words = setup.prefix.iter().map(PathBuf::from).chain([find("sshd")]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut server = Server { child, home: sandbox.path(format!("{}.home", setup.name)) };
        let mut listens = false;
        wait_until("sshd listens", || {
            let said = std::fs::read_to_string(&log).unwrap();
            listens = said.matches("Server listening on").count() == setup.addresses.len();
            // Somebody may have taken the port on one of the addresses meanwhile: another one, then.
            let taken = said.contains("Bind to port");
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none() || taken, "sshd: {ended:?} {said}");
            listens || taken
        });
        if listens {
            return (server, port);
        }
    }
    panic!("sshd found no port");
}

fn server_config(sandbox: &Sandbox, setup: &Setup<'_>, environment: &str, port: u16) -> PathBuf {
    let mut text = format!("Port {port}\n{environment}\n{}\n", setup.directives);
    for address in setup.addresses {
        writeln!(text, "ListenAddress {address}").unwrap();
    }
    for (keyword, name) in [("HostKey", "host_key"), ("AuthorizedKeysFile", "authorized_keys")] {
        writeln!(text, "{keyword} {}", sandbox.path(name).display()).unwrap();
    }
    // The directory belongs to the test, not to the login.
    text += "StrictModes no\nPidFile none\nUsePAM no\nUseDNS no\nPermitRootLogin yes\nPermitUserRC no\n";
    text += "PasswordAuthentication no\nKbdInteractiveAuthentication no\nLoginGraceTime 60\n";
    // Of this keyword the last line counts, not the first.
    if !setup.directives.contains("MaxStartups") {
        text += "MaxStartups 100\n";
    }
    sandbox.write(format!("{}.sshd_config", setup.name), text)
}

fn write_alias(sandbox: &Sandbox, setup: &Setup<'_>, port: u16) {
    let text = format!("Host {}\n  HostName {}\n  Port {port}\n", setup.name, setup.addresses[0]);
    sandbox.write(format!("aliases/{}", setup.name), text);
}

/// Any other name or address leads to this server's port.
fn write_client_config(sandbox: &Sandbox, name: &str, port: u16) -> PathBuf {
    let user = tool(Command::new("id").arg("-un"));
    let mut text = format!("Include {}\n", sandbox.path("aliases/*").display());
    write!(text, "Host *\n  Port {port}\n  User {user}").unwrap();
    writeln!(text, "  IdentityFile {}", sandbox.path("user_key").display()).unwrap();
    writeln!(text, "  UserKnownHostsFile {}", sandbox.path("known_hosts").display()).unwrap();
    text += "  GlobalKnownHostsFile /dev/null\n  HostKeyAlias carrack-test\n  StrictHostKeyChecking yes\n";
    text += "  IdentitiesOnly yes\n  BatchMode yes\n  ControlPath none\n";
    sandbox.write(format!("{name}.ssh_config"), text)
}
