//! A service of the test's own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::log::Log;
use super::process::{signal, workers};
use super::sshd::Sshd;
use super::{Ran, Sandbox};

/// A running `carrack serve` with its service; it and its workers are ended when dropped.
pub struct Service {
    pub child: Child,
    /// What it prints at its start.
    pub said: Vec<String>,
    /// Its log so far.
    log: Log,
    home: PathBuf,
}

impl Service {
    /// One that whoever lives in the sandbox reaches by its socket.
    pub fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        let mut command = sandbox.carrack();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more);
        Self::run(sandbox, &mut command)
    }

    /// One whose ssh reaches this server.
    pub fn with_ssh(sandbox: &Sandbox, sshd: &Sshd) -> Self {
        let mut command = sandbox.carrack();
        command.env("PATH", sshd.put_on_path(sandbox)).args(["serve", "--listen", "127.0.0.1:0"]);
        Self::run(sandbox, &mut command)
    }

    /// Started by this command.
    pub fn run(sandbox: &Sandbox, command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Log::of(child.stderr.take().unwrap());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            let Some(line) = lines.next() else {
                let status = child.wait().unwrap();
                panic!("the service ended: {status}: {said:?}: {}", log.text());
            };
            said.push(line.unwrap());
            let last = said.last().unwrap();
            if last.starts_with("to submit a task: ") || last.starts_with('{') {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, said, log, home: sandbox.path("home") }
    }

    /// What stands behind a word at the start of a line that it has printed.
    pub fn told(&self, word: &str) -> &str {
        let line = self.said.iter().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("{word} is not in {:?}", self.said))
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Ends it as nothing else does. Its workers run on.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it in good order, and waits until it has ended; whether it did so in time.
    pub fn terminate(&mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        let mut code = None;
        super::wait_until("the service ends", || {
            let ended = self.child.try_wait().unwrap();
            code = ended.and_then(|status| status.code());
            ended.is_some()
        });
        code
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        workers(&self.home).into_iter().for_each(|pid| signal(pid, "KILL"));
        self.log.show_if_failed("the service");
    }
}

/// Names directories of a sandbox as endpoints.
#[track_caller]
pub fn add_endpoints(sandbox: &Sandbox, endpoints: &[(&str, &str)]) {
    for (name, path) in endpoints {
        sandbox.ok(["endpoint", "add", name, sandbox.path(path).to_str().unwrap()]);
    }
}

/// Runs a verb that prints one document of the service, and reads it.
#[track_caller]
pub fn object(sandbox: &Sandbox, words: &[&str]) -> serde_json::Value {
    let ran: Ran = sandbox.ok(words.iter().copied().chain(["--json"]));
    let line: serde_json::Value = serde_json::from_str(ran.stdout.lines().next().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{words:?}: {error}: {}", ran.stdout));
    line
}
