//! An ssh session with an agent at its far end.
//!
//! The user's own `ssh` is started, with their configuration, keys, jump hosts and prompts. What it runs is a line of
//! POSIX shell (`control::bootstrap`) that looks for an agent and otherwise asks for the binary, receives it through
//! the same session, and keeps it. Paths never go through the remote shell: they travel in the protocol. What a login
//! shell prints before is skipped, within a bound: the agent's first line bears a nonce that was made for this session.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::location::SshHost;
use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, ProgramSent, Reason, Side};
use carrack_core::request::Reach;
use carrack_core::wire::PROTOCOL_VERSION;
use carrack_sys::threads;
use data_encoding::HEXLOWER;

use super::bootstrap::{AGENT, FAILED_LINE, GZIP, MISSING_LINE, NEED_LINE, UNFIT_LINE, script};
use super::program::Program;
use super::refusals;
use crate::error::{describe, failure, failure_unless_limited, system_failure};
use crate::stop::Stop;
use crate::sync::lock;

/// How the agent announces itself, followed by the nonce, the protocol version and the program's version.
pub const AGENT_LINE: &str = "carrack-agent";
/// Lines of ssh's own messages kept for an error.
const STDERR_LINES_KEPT: usize = 8;
/// What a pipe that is ready takes without making the writer wait: POSIX's least PIPE_BUF, which is macOS's.
const PIPE_PORTION_BYTES: usize = 512;

/// A session whose agent has announced itself.
pub struct SshSession {
    /// What is written here reaches the agent.
    pub input: ChildStdin,
    /// From the agent, its announcement taken.
    pub output: BufReader<ChildStdout>,
    /// The process of ssh, to end it.
    pub child: SshChild,
    /// What was sent, where there was no agent.
    pub sent: Option<ProgramSent>,
}

/// How long ssh may take to leave by itself: its agent leaves when its input ends, and ssh follows.
const LEAVES_IN: Duration = Duration::from_secs(2);
/// The same where nothing is waited for any more and it has been asked to end.
const ENDS_IN: Duration = Duration::from_millis(200);

/// The ssh process; ended when dropped.
pub struct SshChild {
    child: Child,
    patience: Duration,
}

impl SshChild {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end: it is waited for no longer than a moment.
    fn terminate(&mut self) {
        carrack_sys::host::terminate(self.child.id());
        self.patience = ENDS_IN;
    }
}

impl Drop for SshChild {
    fn drop(&mut self) {
        let deadline = Instant::now() + self.patience;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What ssh said on its standard error.
type Messages = Arc<Mutex<VecDeque<String>>>;

/// Starts ssh to `host` and brings up an agent there. `note` is given ssh's own messages, line by
/// line, and what was done.
///
/// # Errors
/// When ssh cannot be started or ends before an agent speaks, when the host has none and none can be put there, or
/// when it takes longer than the reach's connect timeout.
pub fn start(
    host: &SshHost,
    reach: &Reach,
    stop: &Stop,
    note: &Arc<dyn Fn(String) + Send + Sync>,
) -> Result<SshSession, Failure> {
    start_as(AGENT, host, reach, stop, note)
}

/// The same for what the program does there if it is called with `verb`: words of letters and dashes.
///
/// # Errors
/// As [`start`].
pub fn start_as(
    verb: &str,
    host: &SshHost,
    reach: &Reach,
    stop: &Stop,
    note: &Arc<dyn Fn(String) + Send + Sync>,
) -> Result<SshSession, Failure> {
    let nonce = nonce()?;
    let offered = Program::of(reach.push, host)?;
    let script = script(verb, &nonce, reach, &offered)?;
    let mut command = command(host, reach)?;
    command.arg(format!("exec sh -c '{script}'"));
    let program = reach.rsh.join(" ");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| {
            let why = format!("{program}: cannot be started: {}", describe(&error));
            failure_unless_limited(ErrorCode::ConnectFailed, Side::Command, &error, why)
        })?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let messages = Messages::default();
    let mut child = SshChild { child, patience: LEAVES_IN };
    let reader = errors.map(|errors| pass_on(host.to_string(), errors, Arc::clone(&messages), Arc::clone(note)));
    let reader = reader.transpose().map_err(|error| {
        child.terminate();
        system_failure(Side::Command, &error)
    })?;
    let (Some(input), Some(output)) = (input, output) else {
        return Err(failure(ErrorCode::Internal, Side::Command, "ssh was started without pipes"));
    };
    let mut starting = Starting {
        host,
        looked: reach.remote_path.as_ref().map_or_else(
            || "no carrack on its PATH".to_owned(),
            |path| format!("no carrack that fits at {}, nor on its PATH", display_bytes(path.as_bytes())),
        ),
        nonce: &nonce,
        input,
        output: BufReader::with_capacity(64 << 10, output),
        child,
        messages,
        reader,
        noise: Vec::new(),
        heard: 0,
        deadline: reach.connect_deadline(Instant::now()),
        patience: reach.connect_timeout,
        stop: stop.clone(),
    };
    let sent = starting.bring_up(&offered, note).inspect_err(|_| {
        // A login that nobody waits for any more may hang for as long as it likes.
        if stop.requested().is_some() {
            starting.child.terminate();
        }
    })?;
    Ok(SshSession { input: starting.input, output: starting.output, child: starting.child, sent })
}

/// Whether a program takes ssh's options.
pub(super) fn is_ssh(program: &str) -> bool {
    program.rsplit('/').next() == Some("ssh")
}

/// The command that reaches a host, without what it runs there.
///
/// # Errors
/// A name that would be taken for an option, or no command at all.
pub(super) fn command(host: &SshHost, reach: &Reach) -> Result<Command, Failure> {
    // A host that starts with a dash would be taken for an option.
    if host.host.starts_with('-') || host.user.as_ref().is_some_and(|user| user.starts_with('-')) {
        return Err(failure(ErrorCode::Usage, Side::Command, "a host or user cannot start with a dash")
            .at_end(host.to_string()));
    }
    let empty = || {
        let why = "the command that reaches other hosts is empty";
        failure(ErrorCode::Usage, Side::Command, why).for_reason(Reason::NoRemoteShell)
    };
    let (program, arguments) = reach.rsh.split_first().ok_or_else(empty)?;
    let mut command = Command::new(program);
    command.args(arguments);
    let is_ssh = is_ssh(program);
    if is_ssh {
        command.args(["-x", "-a", "-T"]);
    }
    if let Some(user) = &host.user {
        command.args(["-l", user]);
    }
    if is_ssh {
        command.arg("--");
    }
    command.arg(&host.host);
    Ok(command)
}

fn nonce() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    carrack_sys::host::random_bytes(&mut bytes)
        .map_err(|error| failure(ErrorCode::Internal, Side::Command, describe(&error)))?;
    Ok(HEXLOWER.encode(&bytes))
}

/// One line of ssh's messages; what is too long of it is left out. `None` at the end.
fn next_message(lines: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    lines.by_ref().take(limits::SSH_MESSAGE_BYTES).read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
    if !line.ends_with(b"\n") {
        lines.skip_until(b'\n').ok()?;
    }
    Some(display_bytes(line.trim_ascii_end()).to_string())
}

fn keep(messages: &Messages, text: String) {
    let mut kept = lock(messages);
    kept.push_back(text);
    if kept.len() > STDERR_LINES_KEPT {
        kept.pop_front();
    }
}

/// Passes ssh's messages on as they come, and keeps the last ones for an error. The far side may write as much there as
/// it likes: it is all read, and only so much of it is passed on. Where `note` waits for a slow reader, ssh waits too.
fn pass_on(
    host: String,
    errors: impl Read + Send + 'static,
    messages: Messages,
    note: Arc<dyn Fn(String) + Send + Sync>,
) -> io::Result<JoinHandle<()>> {
    const LAST: usize = limits::SSH_MESSAGES + 1;
    threads::start("the messages of ssh", move || {
        let mut lines = BufReader::new(errors);
        let mut told = 0;
        while let Some(text) = next_message(&mut lines) {
            if text.is_empty() {
                continue;
            }
            // Kept first: an error that is made meanwhile has the last ones, even if whoever reads notes is slow.
            keep(&messages, text.clone());
            told += 1;
            match told {
                ..=limits::SSH_MESSAGES => note(format!("{host}: {text}")),
                LAST => note(format!("{host}: says more on its standard error, which is not shown")),
                _ => {}
            }
        }
    })
}

struct Starting<'a> {
    host: &'a SshHost,
    /// Where no agent was found, for messages.
    looked: String,
    nonce: &'a str,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    child: SshChild,
    messages: Messages,
    /// The thread that reads them.
    reader: Option<JoinHandle<()>>,
    /// What came before the agent's first line and is none of ours.
    noise: Vec<u8>,
    /// Bytes of all that has come.
    heard: usize,
    deadline: Instant,
    patience: Duration,
    stop: Stop,
}

impl Starting<'_> {
    fn bring_up(
        &mut self,
        offered: &[Program],
        note: &Arc<dyn Fn(String) + Send + Sync>,
    ) -> Result<Option<ProgramSent>, Failure> {
        let mut sent = None;
        loop {
            let line = self.next_line()?;
            let mut words = line.split_ascii_whitespace();
            let word = words.next().unwrap_or_default().to_string();
            if words.next() != Some(self.nonce) {
                self.noise.extend_from_slice(line.as_bytes());
                continue;
            }
            let rest: Vec<&str> = words.collect();
            match word.as_str() {
                AGENT_LINE => return Ok(sent),
                NEED_LINE if sent.is_some() => return Err(self.refusal("it asked for a program twice")),
                NEED_LINE => {
                    let asked = offered.iter().find(|program| rest.first() == Some(&program.hash.as_str()));
                    let program = asked.ok_or_else(|| self.refusal("it asked for another program"))?;
                    sent = Some(self.send(program, rest.contains(&GZIP), note)?);
                }
                UNFIT_LINE => {
                    let why = refusals::of_unfit(&rest, offered.iter().map(|program| &program.kind));
                    return Err(self.failure_of(ErrorCode::AgentMissing, why).for_reason(Reason::AgentNotFitting));
                }
                MISSING_LINE => {
                    let missing = self.failure_of(ErrorCode::AgentMissing, self.looked.clone());
                    return Err(missing.for_reason(Reason::AgentNotSent));
                }
                FAILED_LINE => return Err(self.not_started()),
                _ => {}
            }
        }
    }

    /// What was sent, or was there, has not said what it is.
    fn not_started(&mut self) -> Failure {
        self.settle();
        let refusal = {
            let messages = lock(&self.messages);
            refusals::of_loader(messages.iter().map(String::as_str))
        };
        if let Some(why) = refusal {
            return self.failure_of(ErrorCode::AgentMissing, why).for_reason(Reason::AgentNotFitting);
        }
        let why = format!(
            "the agent could not be kept and run there, neither in its cache directory (XDG_CACHE_HOME or ~/.cache) nor in \
             XDG_RUNTIME_DIR, TMPDIR, /tmp or /var/tmp: {}",
            self.last_words()
        );
        self.failure_of(ErrorCode::AgentMissing, why).for_reason(Reason::AgentNotKept)
    }

    /// Sends the program that was asked for.
    fn send(
        &mut self,
        program: &Program,
        unpacks: bool,
        note: &Arc<dyn Fn(String) + Send + Sync>,
    ) -> Result<ProgramSent, Failure> {
        let compressed = unpacks && program.gzip_size().is_some();
        let bytes = program.bytes(compressed)?;
        let which = if program.is_slim() { "a small one" } else { "this one" };
        let mebibytes = bytes.len() as f64 / f64::from(1 << 20);
        // The far side chooses the directory: the first of several that is fit.
        note(format!(
            "{} has {}: sending {which} ({mebibytes:.1} MiB), kept in ~/.cache/carrack there, or in another cache \
             directory",
            self.host, self.looked
        ));
        Ok(ProgramSent {
            host: self.host.to_string(),
            slim: program.is_slim(),
            bytes: self.push(&bytes)?,
            size: program.size,
            compressed,
        })
    }

    /// Sends bytes; tells how many went through the pipe. As long as something is taken, that is not the silence
    /// which the deadline is for.
    fn push(&mut self, bytes: &[u8]) -> Result<u64, Failure> {
        let mut pushed = 0;
        for portion in bytes.chunks(PIPE_PORTION_BYTES) {
            self.wait(false)?;
            if self.input.write_all(portion).is_err() {
                // Nobody takes it any more: why is found in what comes back.
                break;
            }
            pushed += portion.len() as u64;
            self.deadline = Instant::now() + self.patience;
        }
        Ok(pushed)
    }

    /// Waits until ssh has something to say, or takes something, within the deadline.
    fn wait(&self, read: bool) -> Result<(), Failure> {
        const GLANCE: Duration = Duration::from_millis(100);
        loop {
            self.stop.check()?;
            let left = self.deadline.saturating_duration_since(Instant::now());
            // Also of one who says a little all the time.
            if left.is_zero() {
                return Err(self.silence_failure());
            }
            let waited = if read {
                carrack_sys::socket::wait(self.output.get_ref(), true, false, Some(left.min(GLANCE)))
            } else {
                carrack_sys::socket::wait(&self.input, false, true, Some(left.min(GLANCE)))
            };
            match waited {
                Ok(ready) if ready.read || ready.write => return Ok(()),
                Ok(_) => {}
                Err(_) => return Err(self.silence_failure()),
            }
        }
    }

    /// The next line, within the deadline.
    fn next_line(&mut self) -> Result<String, Failure> {
        let mut line = Vec::new();
        loop {
            if self.output.buffer().is_empty() {
                self.wait(true)?;
            }
            let buffer = self.output.fill_buf().unwrap_or_default();
            if buffer.is_empty() {
                self.noise.extend_from_slice(&line);
                return Err(self.end_failure());
            }
            let end = buffer.iter().position(|&byte| byte == b'\n').map_or(buffer.len(), |place| place + 1);
            line.extend_from_slice(&buffer[..end]);
            self.output.consume(end);
            self.heard += end;
            if self.heard > limits::SHELL_NOISE_BYTES {
                return Err(self.refusal(&format!(
                    "its login shell printed more than {} KiB, and no agent had spoken: shorten its banner, or have it printed to \
                     terminals alone",
                    limits::SHELL_NOISE_BYTES >> 10
                )));
            }
            if line.ends_with(b"\n") {
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
        }
    }

    /// What ssh or the remote side said last, for an error.
    fn last_words(&self) -> String {
        let messages = lock(&self.messages);
        let noise = display_bytes(self.noise.trim_ascii()).to_string();
        let noise: String = noise.chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect();
        let said: Vec<&str> =
            messages.iter().map(String::as_str).chain((!noise.is_empty()).then_some(noise.as_str())).collect();
        if said.is_empty() {
            "it said nothing".into()
        } else {
            format!("it said: {}", said.join(" / ").trim_end_matches('.'))
        }
    }

    /// Gives ssh a moment to end and to be heard to its last word, which comes on another pipe; tells its exit code.
    fn settle(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            let status = self.child.child.try_wait().ok().flatten();
            // A connection that ssh shares (ControlPersist) may keep the pipe open for hours.
            if status.is_some() && self.reader.as_ref().is_none_or(JoinHandle::is_finished)
                || Instant::now() >= deadline
            {
                return status.and_then(|status| status.code());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn end_failure(&mut self) -> Failure {
        let code = self.settle();
        // Ctrl-C at a terminal reaches ssh, too.
        if let Err(stopped) = self.stop.check() {
            return stopped;
        }
        match code {
            // ssh's own code for its own failures.
            Some(255) => self.connect_failure(),
            Some(code) => self.refusal(&format!("the session ended before an agent spoke, with exit code {code}")),
            None => self.refusal("the session ended before an agent spoke"),
        }
    }

    fn connect_failure(&self) -> Failure {
        let refusal = {
            let messages = lock(&self.messages);
            // Who has got as far as a login shell has not been refused.
            refusals::of_ssh(messages.iter().map(String::as_str)).filter(|_| self.noise.is_empty())
        };
        let reason = refusal.map(|code| match code {
            ErrorCode::HostUnknown => Reason::SshHostUnknown,
            ErrorCode::Usage => Reason::SshConfiguration,
            _ => Reason::SshRefused,
        });
        let why = format!("ssh could not connect; {}", self.last_words());
        Failure { reason, ..self.failure_of(refusal.unwrap_or(ErrorCode::ConnectFailed), why) }
    }

    fn refusal(&self, what: &str) -> Failure {
        if refusals::lacks_processes(lock(&self.messages).iter().map(String::as_str)) {
            let why = format!("the host cannot start another process ({what}); {}", self.last_words());
            return self.failure_of(ErrorCode::ResourceLimit, why);
        }
        let why = format!(
            "ssh connected, but the remote side did not run the agent ({what}); {}. A forced command (ForceCommand, or command= in \
             authorized_keys), a restricted shell, or a start-up file of the shell (.bashrc, .zshenv, .cshrc) that ends it or starts \
             another does this",
            self.last_words()
        );
        self.failure_of(ErrorCode::AgentRefused, why).for_reason(Reason::AgentEnded)
    }

    fn silence_failure(&self) -> Failure {
        let why = format!(
            "no agent has spoken after {} s; {}. A forced command that is not a shell does this, and a start-up file of the shell \
             (.bashrc, .zshenv, .cshrc) that starts another or waits",
            self.patience.as_secs_f64(),
            self.last_words()
        );
        self.failure_of(ErrorCode::AgentRefused, why).for_reason(Reason::AgentSilent)
    }

    fn failure_of(&self, code: ErrorCode, why: impl Into<String>) -> Failure {
        failure(code, Side::Link, why).at_end(self.host.to_string())
    }
}

/// The agent's announcement.
///
/// # Errors
/// Those of writing.
pub fn announce(out: &mut impl Write, nonce: &str) -> io::Result<()> {
    // The newline first ends whatever a login shell left unfinished.
    write!(out, "\n{AGENT_LINE} {nonce} {PROTOCOL_VERSION} {}\n", env!("CARGO_PKG_VERSION"))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `pass_on` passes on of what is said, and what it keeps.
    fn passed_on(said: impl Read + Send + 'static) -> (Vec<String>, Messages) {
        let (messages, notes) = (Messages::default(), Arc::new(Mutex::new(Vec::new())));
        let told = Arc::clone(&notes);
        let note: Arc<dyn Fn(String) + Send + Sync> = Arc::new(move |text| told.lock().unwrap().push(text));
        pass_on("far".into(), said, Arc::clone(&messages), note).unwrap().join().unwrap();
        let notes = notes.lock().unwrap().clone();
        (notes, messages)
    }

    #[test]
    fn messages_without_end_take_bounded_memory() {
        let (notes, _) = passed_on(io::repeat(b'x').take(64 << 20).chain(&b"\nlast"[..]));
        assert_eq!(notes.len(), 2);
        assert!(notes[0].len() < 2 * limits::SSH_MESSAGE_BYTES as usize && notes[1] == "far: last");
        let (notes, kept) = passed_on(io::Cursor::new("word\n".repeat(100_000) + "last words"));
        assert_eq!(notes.len(), limits::SSH_MESSAGES + 1);
        assert!(notes.last().unwrap().contains("says more"));
        let kept = kept.lock().unwrap();
        assert_eq!((kept.len(), kept.back().unwrap().as_str()), (STDERR_LINES_KEPT, "last words"));
    }

    #[test]
    fn dash_is_no_host() {
        let host = |user: Option<&str>, host: &str| SshHost { user: user.map(Into::into), host: host.into() };
        assert!(command(&host(None, "-oProxyCommand=touch x"), &Reach::default()).is_err());
        assert!(command(&host(Some("-x"), "h"), &Reach::default()).is_err());
        let good = command(&host(Some("u"), "::1"), &Reach::default()).unwrap();
        let arguments: Vec<_> = good.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
        assert_eq!(arguments, ["-x", "-a", "-T", "-l", "u", "--", "::1"]);
    }
}
