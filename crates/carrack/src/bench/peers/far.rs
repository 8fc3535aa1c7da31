//! A shell at the ssh host that stays open while it is measured: it says which programs are there, and what its sshd
//! has used of the processor.
//!
//! An sshd that listens waits for each of its sessions. So the time of all sessions that have ended, with everything
//! that ran in them, is in the listener's own entry of `/proc`. This shell's session has not ended, and does not count.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_engine::{Context, StopReason, threads};
use carrack_sys::host;

use super::processor::{self, ProcessStat};

/// How long a session may take to leave after its client has left.
const LEAVES: Duration = Duration::from_secs(2);
/// So long nothing changes where sessions are open that are not of the run.
const UNCHANGED: Duration = Duration::from_millis(500);
/// Between two looks at that.
const AGAIN: Duration = Duration::from_millis(20);
/// How often to look whether the command was stopped.
const LOOK: Duration = Duration::from_millis(50);
/// Processes between a shell and the sshd that listens, and more.
const ANCESTORS_MOST: usize = 12;

/// The shell.
pub struct Observer {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// How the end of an answer begins.
    mark: String,
    timeout: Duration,
    context: Context,
    /// The sshd that listens there, where one was found.
    listener: Option<u32>,
    /// Sessions that were open before a run.
    open: usize,
    /// Of the last question.
    asked: u64,
}

impl Observer {
    /// Logs in.
    ///
    /// # Errors
    /// That no shell answered, or that the command was stopped.
    pub fn open(wrapper: &Path, login: &str, timeout: Duration, context: &Context) -> Result<Self, Failure> {
        let mut command = Command::new(wrapper);
        // What the ssh command starts ends with it.
        command
            .process_group(0)
            .args([login, "exec sh"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let failed = |why: String| Failure::new(ErrorCode::ConnectFailed, Side::Command, format!("{login}: {why}"));
        let mut child = command.spawn().map_err(|error| failed(format!("cannot start ssh: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("ssh has no pipes".to_owned()));
        };
        let (sender, lines) = channel();
        let read = move || {
            let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
            lines.map(|line| String::from_utf8_lossy(&line).into_owned()).try_for_each(|line| sender.send(line)).ok();
        };
        if let Err(error) = threads::start("what a host says", read) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(error.to_string()));
        }
        let mut random = [0; 8];
        let _ = host::random_bytes(&mut random);
        let mark = format!("carrack-{:016x}", u64::from_le_bytes(random));
        let context = context.clone();
        let mut observer = Self { child, input, lines, mark, timeout, context, listener: None, open: 0, asked: 0 };
        // What a login shell prints comes before this.
        match observer.ask(":") {
            Ok(_) => {
                observer.listener = observer.find_listener();
                Ok(observer)
            }
            Err(why) if why.code != ErrorCode::ConnectFailed => Err(why),
            Err(_) => Err(failed("no shell answered by ssh".to_owned())),
        }
    }

    /// Runs a line of shell, and answers with what it printed.
    ///
    /// # Errors
    /// That the shell has gone or does not answer, or that the command was stopped.
    pub fn ask(&mut self, script: &str) -> Result<Vec<String>, Failure> {
        self.ask_within(script, self.timeout)
    }

    /// The same of a line that may take so long.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_within(&mut self, script: &str, patience: Duration) -> Result<Vec<String>, Failure> {
        let gone = |why: &str| Failure::new(ErrorCode::ConnectFailed, Side::Command, format!("ssh: {why}"));
        // A mark of its own for each question: the answer to one that took too long is not taken for that to the next.
        self.asked += 1;
        let mark = format!("{}-{}", self.mark, self.asked);
        let line = format!("{script}\necho\necho {mark}\n");
        self.input.write_all(line.as_bytes()).map_err(|_| gone("the shell has ended"))?;
        let deadline = Instant::now() + patience;
        let mut answer = Vec::new();
        loop {
            match self.lines.recv_timeout(LOOK) {
                // What belongs to an earlier question.
                Ok(line) if line.strip_prefix(&self.mark).is_some_and(|rest| rest.starts_with('-')) && line != mark => {
                    answer.clear();
                }
                Ok(line) if line == mark => {
                    // The line feed before the mark.
                    answer.pop_if(|line: &mut String| line.is_empty());
                    return Ok(answer);
                }
                Ok(line) => answer.push(line),
                Err(RecvTimeoutError::Disconnected) => return Err(gone("the shell has ended")),
                Err(RecvTimeoutError::Timeout) => stopped(&self.context)?,
            }
            if Instant::now() > deadline {
                return Err(gone("the shell does not answer"));
            }
        }
    }

    /// The first line of an answer.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn line(&mut self, script: &str) -> Result<String, Failure> {
        Ok(self.ask(script)?.into_iter().next().unwrap_or_default())
    }

    /// Whether it is this very host: the same boot, and a directory of a name that is nowhere else is seen here, too.
    pub fn is_here(&mut self, directory: &Path) -> bool {
        let boot = self.line("tr -d - </proc/sys/kernel/random/boot_id").unwrap_or_default();
        let own = host::boot_id().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        boot == own && directory.exists()
    }

    /// Which of these programs are on the PATH there.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn has(&mut self, programs: &[&str]) -> Result<Vec<String>, Failure> {
        let script = format!("for p in {}; do command -v $p >/dev/null && echo $p; done; :", programs.join(" "));
        self.ask(&script)
    }

    /// Processor time that all sessions have used that have ended; `None` where it cannot be known. Which sessions are
    /// open now is remembered for [`Self::cpu_seconds_after`].
    pub fn cpu_seconds(&mut self) -> Option<f64> {
        let (seconds, open) = self.sessions()?;
        self.open = open;
        Some(seconds)
    }

    /// The same after a run, once no more sessions are open than before it. Some of others may have come: a time
    /// without a change is taken for the end, too.
    pub fn cpu_seconds_after(&mut self) -> Option<f64> {
        let deadline = Instant::now() + LEAVES;
        let mut last = self.sessions()?;
        let mut changed = Instant::now();
        loop {
            let now = Instant::now();
            // One is open always, that of this shell: none is what a kernel says that does not list them.
            let have_left = last.1 > 0 && last.1 <= self.open;
            if have_left || now > deadline || now.duration_since(changed) > UNCHANGED {
                return Some(last.0);
            }
            std::thread::sleep(AGAIN);
            let next = self.sessions()?;
            if next != last {
                (last, changed) = (next, Instant::now());
            }
        }
    }

    /// The time of all sessions that have ended, and how many are open; none where the kernel does not list them.
    fn sessions(&mut self) -> Option<(f64, usize)> {
        let listener = self.listener?;
        // The children first: a session that leaves in between is in neither number otherwise.
        let script =
            format!("cat /proc/{listener}/task/{listener}/children 2>/dev/null; echo; cat /proc/{listener}/stat");
        let lines = self.ask(&script).ok()?;
        let stat = ProcessStat::parse(lines.last()?)?;
        let open = if lines.len() > 1 { lines[0].split_whitespace().count() } else { 0 };
        Some((stat.waited_seconds, open))
    }

    /// The sshd that listens: an ancestor of this shell that is no session.
    fn find_listener(&mut self) -> Option<u32> {
        let mut process: u32 = self.line("echo $PPID").ok()?.trim().parse().ok()?;
        for _ in 0..ANCESTORS_MOST {
            let stat = ProcessStat::parse(&self.line(&format!("cat /proc/{process}/stat 2>/dev/null")).ok()?)?;
            let title = self.line(&format!("tr '\\000' ' ' </proc/{process}/cmdline")).ok()?;
            if processor::is_listener(&stat.name, &title) {
                return Some(process);
            }
            process = stat.parent;
        }
        None
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        // Its input ends with it, and so does the shell; ssh is not waited for longer than that takes.
        host::end_group(self.child.id(), true);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a stop of the command is for whoever waits.
///
/// # Errors
/// The stop.
pub fn stopped(context: &Context) -> Result<(), Failure> {
    let failure = |code, why: &str| Err(Failure::new(code, Side::Command, why));
    match context.stop.requested() {
        None => Ok(()),
        Some(StopReason::Terminate) => failure(ErrorCode::Terminated, "terminated"),
        Some(_) => failure(ErrorCode::Interrupted, "interrupted"),
    }
}
