//! The program that is run for an event: by itself, in a process group of its own, for a bounded time.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use carrack_core::path::display_bytes;
use carrack_engine::threads;
use data_encoding::HEXLOWER;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::model::{Event, Secret};
use crate::supervise::kept_environment;

/// What is kept of what it says.
const SAID_BYTES: usize = 2 << 10;
/// How often it is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What it has said is waited for so long after its end: a process that it has left behind may hold the pipe.
const SAID_MOST: Duration = Duration::from_millis(500);

/// A program, and what bounds it.
pub struct NoticeProgram<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// What signs the document.
    pub key: Option<&'a Secret>,
    /// How long it may run.
    pub most: Duration,
    /// It is to be killed.
    pub is_over: &'a dyn Fn() -> bool,
}

impl NoticeProgram<'_> {
    /// Runs it for an event, with this document on its standard input.
    ///
    /// # Errors
    /// Why the event counts as not told, in words: it was not started, did not end in time, or ended otherwise than
    /// by 0.
    pub fn run(&self, event: &Event, body: &[u8]) -> Result<(), String> {
        let [program, arguments @ ..] = self.command else { return Err("there is no program".to_owned()) };
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir("/").process_group(0);
        for name in kept_environment() {
            command.envs(std::env::var_os(&name).map(|value| (name, value)));
        }
        command.env("CARRACK_EVENT", event.kind.name()).env("CARRACK_EVENT_ID", event.id.to_string());
        command.envs(self.key.map(|key| ("CARRACK_SIGNATURE", signature(key, body))));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{program}: it cannot be started: {error}"))?;
        let said = converse(&mut child, body);
        let ended = self.wait(&mut child);
        let said = said.and_then(|said| said.recv_timeout(SAID_MOST).ok()).unwrap_or_default();
        let said = display_bytes(said.trim_ascii()).to_string();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        ended.map_err(|why| format!("{program} {why}{said}"))
    }

    fn wait(&self, child: &mut Child) -> Result<(), String> {
        let until = Instant::now() + self.most;
        let why = loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(match (status.code(), status.signal()) {
                        (Some(code), _) => format!("ended with exit code {code}"),
                        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
                    });
                }
                Ok(None) if (self.is_over)() => break "was ended with the service".to_owned(),
                Ok(None) if Instant::now() >= until => {
                    break format!("did not end within {} s", self.most.as_secs_f64());
                }
                Ok(None) => std::thread::sleep(LOOK_EVERY),
                Err(error) => break format!("cannot be waited for: {error}"),
            }
        };
        end(child);
        Err(why)
    }
}

/// Kills it with all that it has started, and waits for it.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Gives it the document, and begins to read what it says. It need not read, nor say anything; without threads it is
/// not listened to.
fn converse(child: &mut Child, body: &[u8]) -> Option<Receiver<Vec<u8>>> {
    let (mut input, output) = (child.stdin.take()?, child.stderr.take()?);
    let body = body.to_vec();
    // One that does not read has it closed in its face at its end.
    threads::start_named("notify-input", move || drop(input.write_all(&body))).ok()?;
    let (tell, said) = mpsc::channel();
    let read = move || {
        let (mut output, mut kept, mut part) = (output, Vec::new(), [0; 1024]);
        while let Ok(read) = output.read(&mut part) {
            if read == 0 {
                break;
            }
            kept.extend_from_slice(&part[..read.min(SAID_BYTES - kept.len())]);
        }
        // Nobody waits for one that was given up.
        let _ = tell.send(kept);
    };
    threads::start_named("notify-output", read).ok()?;
    Some(said)
}

/// `sha256=HEX`: HMAC-SHA256 of the document, as receivers of webhooks compare it.
pub fn signature(key: &Secret, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.reveal().as_bytes());
    format!("sha256={}", HEXLOWER.encode(hmac::sign(&key, body).as_ref()))
}
