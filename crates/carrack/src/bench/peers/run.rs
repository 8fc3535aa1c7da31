//! One run: the commands of all its sessions are started together and waited for.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use carrack_core::failure::{Failure, Side};
use carrack_core::path::display_bytes;
use carrack_engine::{Context, io_failure, threads};
use carrack_sys::host;

use super::far::stopped;
use super::over_time::{EVERY, OverTime, counters};
use super::tool::Command;

/// How often to look whether the command was stopped.
const LOOK: Duration = Duration::from_millis(20);
/// What a command that was asked to end may take for it: it may have files to remove.
const ENDS: Duration = Duration::from_secs(5);
/// So much of what a program said is shown.
const SAID_MOST: usize = 200;

/// How a run ended.
#[derive(Debug, Default)]
pub struct RunEnd {
    /// From the start of the commands to the end of the last.
    pub seconds: f64,
    /// Processor time of all programs of this host that were started.
    pub cpu_seconds: f64,
    /// What went wrong, in a line.
    pub fault: Option<String>,
    /// What the first of them said.
    pub said: String,
    /// What the network carried meanwhile.
    pub over: OverTime,
}

/// Runs commands together. What they say goes to files in `private`; `environment` is added to theirs.
///
/// # Errors
/// That one cannot be started because of this host, or that this command was stopped: then none runs any more.
pub fn run(
    commands: &[Command],
    environment: &[(OsString, OsString)],
    private: &Path,
    (timeout, within_host): (Duration, bool),
    context: &Context,
) -> Result<RunEnd, Failure> {
    let mut running = RunningTools::default();
    let (cpu, began) = (host::children_cpu_seconds(), Instant::now());
    for (number, command) in commands.iter().enumerate() {
        let log = private.join(format!("said-{number}"));
        if let Err(why) = running.start(command, environment, log) {
            // The others are ended, and no number counts.
            return Ok(RunEnd { fault: Some(why), ..RunEnd::default() });
        }
    }
    let mut over = OverTime::default();
    let mut next = Duration::ZERO;
    let look = &mut || {
        if began.elapsed() >= next {
            over.add(began.elapsed(), counters(), within_host);
            next = began.elapsed() + EVERY;
        }
    };
    let is_late = running.wait(began + timeout, context, look)?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu_seconds = host::children_cpu_seconds() - cpu;
    let said = running.logs.first().map(|log| read(log)).unwrap_or_default();
    let fault =
        if is_late { Some(format!("stopped after {} s (--timeout)", timeout.as_secs())) } else { running.fault() };
    Ok(RunEnd { seconds, cpu_seconds, fault, said, over })
}

/// Commands that were started. Dropped, it ends those that still run.
#[derive(Default)]
struct RunningTools {
    /// Which of them has ended, and how; in the order in which they end.
    ends: Option<Receiver<(usize, Option<ExitStatus>)>>,
    leaders: Vec<u32>,
    ended: Vec<Option<ExitStatus>>,
    logs: Vec<PathBuf>,
    senders: Option<std::sync::mpsc::Sender<(usize, Option<ExitStatus>)>>,
}

impl RunningTools {
    fn start(&mut self, command: &Command, environment: &[(OsString, OsString)], log: PathBuf) -> Result<(), String> {
        let Some((program, words)) = command.words.split_first() else { return Err("no command".to_owned()) };
        let shown = display_bytes(program.as_encoded_bytes()).to_string();
        let open = || -> std::io::Result<Child> {
            let said = File::create(&log)?;
            let mut process = Process::new(program);
            // A group of its own: a key that interrupts goes to this program, which then ends the group.
            process.args(words).process_group(0).stdout(said.try_clone()?).stderr(said);
            process.envs(environment.iter().map(|(name, value)| (name, value)));
            process.stdin(if command.input.is_some() { Stdio::piped() } else { Stdio::null() });
            process.spawn()
        };
        let mut child = open().map_err(|error| format!("cannot start {shown}: {error}"))?;
        if let (Some(mut input), Some(text)) = (child.stdin.take(), &command.input) {
            // Less than any pipe holds.
            let _ = input.write_all(text.as_bytes());
        }
        if self.senders.is_none() {
            let (sender, receiver) = channel();
            (self.senders, self.ends) = (Some(sender), Some(receiver));
        }
        let (number, sender) = (self.leaders.len(), self.senders.clone());
        self.leaders.push(child.id());
        self.ended.push(None);
        self.logs.push(log);
        let wait = move || {
            let status = child.wait().ok();
            sender.map(|sender| sender.send((number, status)))
        };
        threads::start("a tool's end", wait).map(drop).map_err(|error| format!("{shown}: {error}"))
    }

    fn left(&self) -> impl Iterator<Item = u32> {
        self.leaders.iter().zip(&self.ended).filter(|(_, ended)| ended.is_none()).map(|(leader, _)| *leader)
    }

    /// Waits for all; whether they were ended because it became too late.
    fn wait(&mut self, deadline: Instant, context: &Context, look: &mut dyn FnMut()) -> Result<bool, Failure> {
        self.senders = None;
        let mut is_late = false;
        while self.left().next().is_some() {
            let Some(ends) = &self.ends else { break };
            match ends.recv_timeout(LOOK) {
                Ok((number, status)) => self.ended[number] = Some(status.unwrap_or_default()),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            stopped(context)?;
            look();
            if !is_late && Instant::now() > deadline && self.left().next().is_some() {
                is_late = true;
                self.left().for_each(|leader| host::end_group(leader, true));
            }
            // The kernel does not let go of it: a disk or a file server that does not answer.
            if is_late && Instant::now() > deadline + ENDS {
                break;
            }
        }
        Ok(is_late)
    }

    /// What the first program that failed says.
    fn fault(&self) -> Option<String> {
        self.ended.iter().zip(&self.logs).find_map(|(status, log)| {
            let status = status.filter(|status| !status.success())?;
            let said = read(log);
            let line = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing");
            let line: String = display_bytes(line.as_bytes()).to_string().chars().take(SAID_MOST).collect();
            Some(format!("{status}: {line}"))
        })
    }
}

impl Drop for RunningTools {
    fn drop(&mut self) {
        self.senders = None;
        let deadline = Instant::now() + ENDS;
        self.left().for_each(|leader| host::end_group(leader, false));
        while self.left().next().is_some() {
            let Some(ends) = &self.ends else { return };
            match ends.recv_timeout(LOOK) {
                Ok((number, status)) => self.ended[number] = Some(status.unwrap_or_default()),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline + ENDS => return,
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    self.left().for_each(|leader| host::end_group(leader, true));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Bytes that reached the receiver by the word of iperf3, which ends while some are still on their way; and the seconds
/// that this took.
pub fn arrived(said: &str) -> Option<(f64, f64)> {
    let document: serde_json::Value = serde_json::from_str(said.trim()).ok()?;
    let sum = &document["end"]["sum_received"];
    Some((sum["bytes"].as_f64()?, sum["seconds"].as_f64().filter(|seconds| *seconds > 0.0)?))
}

fn read(log: &Path) -> String {
    std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// A directory of this host that only this user may look into.
///
/// # Errors
/// Those of the file system.
pub fn make_private(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| io_failure(Side::Command, format!("make {}", path.display()), &error))
}

/// Writes a file that only this user may read, and may run if `runs`.
///
/// # Errors
/// Those of the file system.
pub fn write_private(path: &Path, text: &str, runs: bool) -> Result<(), Failure> {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if runs { 0o700 } else { 0o600 };
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| io_failure(Side::Command, format!("write {}", path.display()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::failure::ErrorCode;
    use carrack_engine::{Stop, StopReason};

    fn shell(script: &str) -> Command {
        Command { words: ["sh", "-c", script].map(OsString::from).into(), input: None }
    }

    fn run_here(commands: &[Command], timeout: Duration, context: &Context) -> Result<RunEnd, Failure> {
        let private = tempfile::tempdir().expect("a directory");
        run(commands, &[("WORD".into(), "said".into())], private.path(), (timeout, true), context)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn run_waits_for_all_and_tells_who_failed() {
        let both = [shell("echo $WORD"), shell("echo more; echo why >&2; echo; exit 3")];
        let ended = run_here(&both, LONG, &Context::default()).expect("it ran");
        assert_eq!((ended.said.as_str(), ended.fault.as_deref()), ("said\n", Some("exit status: 3: why")));
        let reads = Command { input: Some("hello".to_owned()), ..shell("cat") };
        let ended = run_here(&[reads], LONG, &Context::default()).expect("it ran");
        assert_eq!((ended.said.as_str(), ended.fault), ("hello", None));
        let none = Command { words: vec!["/no/such/program".into()], input: None };
        let ended = run_here(&[shell("sleep 1000"), none], LONG, &Context::default()).expect("it ended");
        assert!(ended.fault.is_some_and(|why| why.contains("cannot start /no/such/program")));
    }

    #[test]
    fn run_that_takes_too_long_is_ended_with_all_that_it_started() {
        let ended = run_here(&[shell("sleep 1000 & wait")], Duration::from_millis(50), &Context::default());
        assert!(ended.expect("it ended").fault.is_some_and(|why| why.contains("stopped after")));
    }

    #[test]
    fn run_ends_with_the_command_that_started_it() {
        let context = Context { stop: Stop::watching(|| Some(StopReason::Interrupt)), ..Context::default() };
        let began = Instant::now();
        let why = run_here(&[shell("sleep 1000 & wait")], LONG, &context).expect_err("it was stopped");
        assert_eq!(why.code, ErrorCode::Interrupted);
        assert!(began.elapsed() < LONG);
    }

    #[test]
    fn bytes_of_iperf3_are_those_that_arrived() {
        let said = r#"{"end":{"sum_sent":{"bytes":9},"sum_received":{"seconds":2.0,"bytes":8}}}"#;
        assert_eq!(arrived(said), Some((8.0, 2.0)));
        assert_eq!((arrived("{}"), arrived("iperf3: error")), (None, None));
    }
}
