//! A node of the test's own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use carrack_faults::netns;
use carrack_faults::threads::ThreadLimit;

use super::Sandbox;
use super::log::Log;

/// A running `carrack serve`; ended when dropped.
pub struct Node {
    pub child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// `#sha256:HEX`.
    pub fingerprint: String,
    pub token_file: PathBuf,
    root: String,
    more: Vec<String>,
    /// What it was started by, if anything.
    prefix: Vec<String>,
    log: Log,
}

impl Node {
    /// What each of them asks for.
    pub const TOKEN: &str = "a-token-for-tests-only-0123456789";

    /// Serves a directory of the sandbox, made if it is not there.
    pub fn start(sandbox: &Sandbox, root: &str, more: &[&str]) -> Self {
        Self::listen(sandbox, root, "127.0.0.1:0", more, &[])
    }

    /// The same on another host, started by what runs a command there.
    pub fn on(prefix: &[String], sandbox: &Sandbox, root: &str, address: &str) -> Self {
        Self::listen(sandbox, root, &format!("{address}:0"), &[], prefix)
    }

    /// The same, with as many threads as a limit lets it have.
    pub fn limited(limit: &ThreadLimit, sandbox: &Sandbox, root: &str) -> Self {
        Self::listen(sandbox, root, "127.0.0.1:0", &[], &limit.prefix())
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Ends it as nothing else does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The same node again, after it was killed: its directory, key, token and address.
    pub fn restart(&mut self, sandbox: &Sandbox) {
        let more: Vec<&str> = self.more.iter().map(String::as_str).collect();
        *self = Self::listen(sandbox, &self.root, &self.address, &more, &self.prefix);
    }

    fn listen(sandbox: &Sandbox, root: &str, address: &str, more: &[&str], prefix: &[String]) -> Self {
        // It may be there already, on a thread that may not look (`refused`).
        let made = std::fs::create_dir_all(sandbox.path(root));
        assert!(made.is_ok() || std::fs::read_dir(sandbox.path(root)).is_ok(), "{made:?}");
        let token_file = sandbox.write(format!("{root}.token"), format!("{}\n", Self::TOKEN));
        std::fs::set_permissions(&token_file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut command = sandbox.carrack();
        command
            .args(["serve", "--node-only", "--listen", address, "--root"])
            .arg(sandbox.path(root))
            .arg("--key-file")
            .arg(sandbox.path(format!("{root}.key")));
        if !more.contains(&"--anonymous") {
            command.arg("--token-file").arg(&token_file);
        }
        command.args(more);
        if !prefix.is_empty() {
            command = netns::after(prefix, &command);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Log::of(child.stderr.take().unwrap());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = |prefix: &str| loop {
            let line = lines.next().unwrap_or_else(|| panic!("the node ended: {}", log.text())).unwrap();
            if let Some(rest) = line.strip_prefix(prefix) {
                return rest.trim().to_string();
            }
        };
        let address = next("listening on ");
        let fingerprint = next("fingerprint ");
        // The rest is read by nobody, but must find somewhere to go.
        std::thread::spawn(move || lines.for_each(drop));
        let (root, more) = (root.to_owned(), more.iter().map(|word| (*word).to_owned()).collect());
        Self { child, address, fingerprint, token_file, root, more, prefix: prefix.to_vec(), log }
    }

    /// A location on the node, its key pinned.
    pub fn at(&self, path: &str) -> String {
        format!("carrack://{}/{path}{}", self.address, self.fingerprint)
    }

    /// For a copy between two nodes.
    pub fn token_as(&self, end: &str) -> String {
        format!("--{end}-token-file={}", self.token_file.display())
    }

    pub fn token(&self) -> String {
        format!("--token-file={}", self.token_file.display())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.log.show_if_failed(&format!("the node {}", self.root));
    }
}
