//! An ssh session with an agent at its far end.
//!
//! The user's own `ssh` is started, with their configuration, keys, jump hosts and prompts. What it runs is a line of POSIX shell that
//! looks for an agent (at `--remote-path`, on PATH, in the cache) and otherwise asks for the binary, receives it through the
//! same session, and keeps it under a name made from its hash. Paths never go through the remote shell: they travel in the protocol.
//!
//! Whatever a login shell prints before is skipped: the agent's first line bears a nonce that was made for this session.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::location::SshHost;
use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::Reach;
use carrack_core::wire::PROTOCOL_VERSION;

use super::dial::look_up;
use super::refusals;
use crate::end::stopped;
use crate::error::{describe, failure};

/// How the agent announces itself, followed by the nonce, the protocol version and the program's version.
pub const AGENT_LINE: &str = "carrack-agent";
const NEED_LINE: &str = "carrack-need";
const MISSING_LINE: &str = "carrack-missing";
const FAILED_LINE: &str = "carrack-failed";
/// Lines of ssh's own messages kept for an error.
const STDERR_LINES_KEPT: usize = 8;
/// What a pipe that is ready takes without making the writer wait: POSIX's least PIPE_BUF, which is macOS's.
const PIPE_PORTION_BYTES: usize = 512;

/// A session whose agent has announced itself.
pub struct SshSession {
    /// To the agent.
    pub input: ChildStdin,
    /// From the agent, its announcement taken.
    pub output: BufReader<ChildStdout>,
    /// Ends ssh.
    pub child: SshChild,
}

/// The ssh process; ended when dropped.
pub struct SshChild {
    child: Child,
}

impl SshChild {
    /// Kills it: whoever waits for its output wakes up.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for SshChild {
    fn drop(&mut self) {
        // The agent leaves when its input ends; ssh follows. One that does not is ended.
        let deadline = Instant::now() + Duration::from_secs(2);
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

/// Starts ssh to `host` and brings up an agent there. `note` is given ssh's own messages, line by line, and what was done.
///
/// # Errors
/// When ssh cannot be started or ends before an agent speaks, when the host has none and none can be put there, or
/// when it takes longer than the reach's connect timeout.
pub fn start(host: &SshHost, reach: &Reach, note: &Arc<dyn Fn(String) + Send + Sync>) -> Result<SshSession, Failure> {
    let nonce = nonce()?;
    let binary = if reach.push { Some(own_binary(host)?) } else { None };
    let script = script(&nonce, reach, binary.as_deref())?;
    let mut command = command(host, reach)?;
    command.arg(format!("exec sh -c '{script}'"));
    let program = reach.rsh.join(" ");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| {
            failure(
                ErrorCode::ConnectFailed,
                Side::Command,
                format!("{program}: cannot be started: {}", describe(&error)),
            )
        })?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let messages = Messages::default();
    let reader = errors.map(|errors| pass_on(host.to_string(), errors, Arc::clone(&messages), Arc::clone(note)));
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
        child: SshChild { child },
        messages,
        reader,
        noise: Vec::new(),
        deadline: Instant::now() + reach.connect_timeout,
        patience: reach.connect_timeout,
    };
    starting.bring_up(binary.as_deref(), note)?;
    Ok(SshSession { input: starting.input, output: starting.output, child: starting.child })
}

/// Where a host is, as far as that can be known here: what its name resolves to, or the `HostName` that ssh's configuration has for it.
pub fn addresses(host: &SshHost, reach: &Reach) -> Vec<SocketAddr> {
    let configured = configured_name(host, reach);
    let name = configured.as_deref().unwrap_or(&host.host);
    let name = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    look_up(&format!("{name}:0")).unwrap_or_default()
}

/// What ssh would connect to; `None` where it cannot be asked.
fn configured_name(host: &SshHost, reach: &Reach) -> Option<String> {
    let mut command = command(host, reach).ok()?;
    if !is_ssh(reach.rsh.first()?) {
        return None;
    }
    // The options before the host's name, and one more.
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(reach.rsh.first()?);
    command.arg("-G").args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().ok().filter(|said| said.status.success())?.stdout;
    let said = String::from_utf8(said).ok()?;
    said.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::to_owned)
}

fn is_ssh(program: &str) -> bool {
    program.rsplit('/').next() == Some("ssh")
}

fn command(host: &SshHost, reach: &Reach) -> Result<Command, Failure> {
    // A host that starts with a dash would be taken for an option.
    if host.host.starts_with('-') || host.user.as_ref().is_some_and(|user| user.starts_with('-')) {
        return Err(failure(
            ErrorCode::Usage,
            Side::Command,
            format!("{host}: a host or user cannot start with a dash"),
        ));
    }
    let (program, arguments) =
        reach.rsh.split_first().ok_or_else(|| failure(ErrorCode::Usage, Side::Command, "--rsh is empty"))?;
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

/// The line of shell. It stands between single quotes in a line that the login shell reads, whichever that is: so no single quote, no
/// exclamation mark, no newline in it.
fn script(nonce: &str, reach: &Reach, binary: Option<&[u8]>) -> Result<String, Failure> {
    // One that speaks another protocol, or does not run, is no agent; what it has to say is said only where it was just put.
    let check = format!("\"$c\" agent --hello {nonce} --supports {PROTOCOL_VERSION} </dev/null >/dev/null");
    let run = format!("exec \"$c\" agent --hello {nonce}; ");
    let try_agent = |found: &str| format!("{found} && {check} 2>&1 && {run}");
    let mut script = String::new();
    if let Some(path) = &reach.remote_path {
        script += &try_agent(&format!("c={}", quoted(path)?));
    }
    script += &try_agent("c=$(command -v carrack 2>/dev/null)");
    match binary {
        None => script += &format!("echo; echo {MISSING_LINE} {nonce}; exit 127"),
        Some(binary) => {
            let hash = blake3::hash(binary).to_hex();
            let (hash, size) = (&hash[..32], binary.len());
            script += "d=\"${XDG_CACHE_HOME:-$HOME/.cache}/carrack\"; ";
            script += &try_agent(&format!("c=\"$d/agent-{hash}\""));
            script += &format!("echo; echo {NEED_LINE} {nonce} $(uname -s) $(uname -m); ");
            // Between parentheses, so that the agent does not inherit the mask: it makes the user's directories.
            script += "(umask 077; mkdir -p \"$d\" && t=$(mktemp \"$d/push.XXXXXX\") && ";
            script += &format!("{{ head -c {size} >\"$t\" && [ $(wc -c <\"$t\") -eq {size} ] && ");
            script += "chmod 700 \"$t\" && mv -f \"$t\" \"$c\" || { rm -f \"$t\"; false; }; }) && ";
            script += &format!("{check} && {run}echo; echo {FAILED_LINE} {nonce}; exit 127");
        }
    }
    Ok(script)
}

/// A path between double quotes. A tilde at its start keeps its meaning.
fn quoted(path: &str) -> Result<String, Failure> {
    if path.chars().any(|character| matches!(character, '\'' | '!') || character.is_control()) {
        return Err(failure(
            ErrorCode::Usage,
            Side::Command,
            "--remote-path may not contain quotes, exclamation marks or control characters",
        ));
    }
    let (home, rest) = path.strip_prefix("~/").map_or(("", path), |rest| ("$HOME/", rest));
    let mut text = format!("\"{home}");
    for character in rest.chars() {
        if matches!(character, '"' | '$' | '`' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    Ok(text)
}

fn nonce() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    carrack_sys::host::random_bytes(&mut bytes)
        .map_err(|error| failure(ErrorCode::Internal, Side::Command, describe(&error)))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn own_binary(host: &SshHost) -> Result<Vec<u8>, Failure> {
    let path = std::env::current_exe();
    path.and_then(std::fs::read).map_err(|error| {
        let message = format!(
            "{host}: this program's own file, to be pushed there if needed, cannot be read: {}; --no-push does without",
            describe(&error)
        );
        failure(ErrorCode::AgentMissing, Side::Command, message)
    })
}

/// Passes ssh's messages on as they come, and keeps the last ones for an error.
fn pass_on(
    host: String,
    errors: impl Read + Send + 'static,
    messages: Messages,
    note: Arc<dyn Fn(String) + Send + Sync>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(errors);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = display_bytes(line.trim_ascii_end()).to_string();
            line.clear();
            if text.is_empty() {
                continue;
            }
            note(format!("{host}: {text}"));
            let mut kept = messages.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(text);
            if kept.len() > STDERR_LINES_KEPT {
                kept.pop_front();
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
    /// What came before the agent's first line.
    noise: Vec<u8>,
    deadline: Instant,
    patience: Duration,
}

impl Starting<'_> {
    fn bring_up(&mut self, binary: Option<&[u8]>, note: &Arc<dyn Fn(String) + Send + Sync>) -> Result<(), Failure> {
        loop {
            let line = self.next_line()?;
            let mut words = line.split_ascii_whitespace();
            let word = words.next().unwrap_or_default().to_string();
            if words.next() != Some(self.nonce) {
                continue;
            }
            let rest: Vec<&str> = words.collect();
            match (word.as_str(), binary) {
                (AGENT_LINE, _) => return Ok(()),
                (NEED_LINE, Some(binary)) => {
                    self.check_machine(&rest)?;
                    note(format!(
                        "{}: {}; sending this one ({} bytes) into its cache directory",
                        self.host,
                        self.looked,
                        binary.len()
                    ));
                    self.push(binary)?;
                }
                (MISSING_LINE, _) => {
                    let message = format!(
                        "{}: {}; install it there, name it by --remote-path, or leave --no-push out",
                        self.host, self.looked
                    );
                    return Err(failure(ErrorCode::AgentMissing, Side::Link, message));
                }
                (FAILED_LINE, _) => {
                    self.settle();
                    let message = format!(
                        "{}: the agent could not be kept or run in its cache directory (XDG_CACHE_HOME or ~/.cache): {}; install carrack there, or name it by --remote-path",
                        self.host,
                        self.last_words()
                    );
                    return Err(failure(ErrorCode::AgentMissing, Side::Link, message));
                }
                _ => {}
            }
        }
    }

    fn check_machine(&self, described: &[&str]) -> Result<(), Failure> {
        let system = if cfg!(target_os = "macos") { "Darwin" } else { "Linux" };
        let machine = match std::env::consts::ARCH {
            "aarch64" if cfg!(target_os = "macos") => "arm64",
            other => other,
        };
        if described == [system, machine] {
            return Ok(());
        }
        let theirs = described.join(" ");
        let message = format!(
            "{}: {}, and this one ({system} {machine}) does not run there ({theirs}); install one there",
            self.host, self.looked
        );
        Err(failure(ErrorCode::AgentMissing, Side::Link, message))
    }

    /// Sends the agent. As long as something is taken, that is not the silence which the deadline is for.
    fn push(&mut self, binary: &[u8]) -> Result<(), Failure> {
        for portion in binary.chunks(PIPE_PORTION_BYTES) {
            self.wait(false)?;
            if self.input.write_all(portion).is_err() {
                // Nobody takes it any more: why is found in what comes back.
                return Ok(());
            }
            self.deadline = Instant::now() + self.patience;
        }
        Ok(())
    }

    /// Waits until ssh has something to say, or takes something, within the deadline.
    fn wait(&self, read: bool) -> Result<(), Failure> {
        const GLANCE: Duration = Duration::from_millis(100);
        loop {
            if let Some(stop) = stopped() {
                return Err(stop);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            let waited = if read {
                carrack_sys::socket::wait(self.output.get_ref(), true, false, Some(left.min(GLANCE)))
            } else {
                carrack_sys::socket::wait(&self.input, false, true, Some(left.min(GLANCE)))
            };
            match waited {
                Ok(ready) if ready.read || ready.write => return Ok(()),
                Ok(_) if !left.is_zero() => {}
                _ => return Err(self.timed_out()),
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
                return Err(self.ended());
            }
            let end = buffer.iter().position(|&byte| byte == b'\n').map_or(buffer.len(), |place| place + 1);
            line.extend_from_slice(&buffer[..end]);
            self.output.consume(end);
            if self.noise.len() + line.len() > limits::SHELL_NOISE_BYTES {
                return Err(self.refused("its login shell prints without end"));
            }
            if line.ends_with(b"\n") {
                self.noise.extend_from_slice(&line);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
        }
    }

    /// What ssh or the remote side said last, for an error.
    fn last_words(&self) -> String {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn ended(&mut self) -> Failure {
        let code = self.settle();
        // Ctrl-C at a terminal reaches ssh, too.
        if let Some(stop) = stopped() {
            return stop;
        }
        match code {
            // ssh's own code for its own failures.
            Some(255) => self.unconnected(),
            Some(code) => self.refused(&format!("the session ended before an agent spoke, with exit code {code}")),
            None => self.refused("the session ended before an agent spoke"),
        }
    }

    fn unconnected(&self) -> Failure {
        let refusal = {
            let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            // Who has got as far as a login shell has not been refused.
            refusals::of_ssh(messages.iter().map(String::as_str)).filter(|_| self.noise.is_empty())
        };
        let advice = match refusal {
            Some(ErrorCode::HostUnknown) => ". Check the name, or give it a HostName in your ssh configuration",
            Some(_) => ". Not tried again: an ssh to that host by hand must work without it",
            None => "",
        };
        let message = format!("{}: ssh could not connect; {}{advice}", self.host, self.last_words());
        failure(refusal.unwrap_or(ErrorCode::ConnectFailed), Side::Link, message)
    }

    fn refused(&self, what: &str) -> Failure {
        let message = format!(
            "{}: ssh connected, but the remote side did not run the agent ({what}); {}. A forced command (ForceCommand, or command= in authorized_keys) or a restricted shell does this: serve that host with `carrack serve`, or use another account",
            self.host,
            self.last_words()
        );
        failure(ErrorCode::AgentRefused, Side::Link, message)
    }

    fn timed_out(&self) -> Failure {
        let message = format!(
            "{}: no agent has spoken after {} s; {}. If a password or a slow login needs longer, raise --connect-timeout; a forced command that is not a shell also does this",
            self.host,
            self.patience.as_secs_f64(),
            self.last_words()
        );
        failure(ErrorCode::AgentRefused, Side::Link, message)
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

    #[test]
    fn the_script_survives_any_login_shell() {
        let reach = Reach { remote_path: Some("~/bin/my \"carrack\" $x".into()), ..Reach::default() };
        for binary in [None, Some(&b"binary"[..])] {
            let script = script("abc", &reach, binary).unwrap();
            assert!(!script.contains(['\'', '!', '\n']), "{script}");
            assert!(script.contains("c=\"$HOME/bin/my \\\"carrack\\\" \\$x\""), "{script}");
            let parsed = Command::new("sh").args(["-n", "-c", &script]).status().unwrap();
            assert!(parsed.success());
        }
        assert!(quoted("it's").is_err());
    }

    #[test]
    fn a_dash_is_no_host() {
        let host = |user: Option<&str>, host: &str| SshHost { user: user.map(Into::into), host: host.into() };
        assert!(command(&host(None, "-oProxyCommand=touch x"), &Reach::default()).is_err());
        assert!(command(&host(Some("-x"), "h"), &Reach::default()).is_err());
        let good = command(&host(Some("u"), "::1"), &Reach::default()).unwrap();
        let arguments: Vec<_> = good.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
        assert_eq!(arguments, ["-x", "-a", "-T", "-l", "u", "--", "::1"]);
    }
}
