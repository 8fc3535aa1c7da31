//! A command that the test does something beside.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{Ran, ran};

/// A started program; ended when dropped.
pub struct Running {
    child: Child,
    /// Read all the while: a full pipe must not hold the program.
    outputs: Option<[Reading; 2]>,
}

/// No command of a test takes longer: what does waits for something that does not come.
const LONGEST: Duration = Duration::from_secs(600);
/// Something that the command has started may hold its output for so long after its end.
const HELD: Duration = Duration::from_secs(60);

/// Runs commands to their end, and not for ever: a test that waits must fail, and not hold all others.
pub trait InTime {
    /// As [`Command::output`], for as long as a command of a test may take.
    fn output_in_time(&mut self) -> std::io::Result<Output>;
}

impl InTime for Command {
    fn output_in_time(&mut self) -> std::io::Result<Output> {
        let shown = format!("{self:?}");
        let child = self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        Ok(output_within(child, &shown, LONGEST, HELD))
    }
}

/// Runs a command to its end whose standard output goes where the test has said.
pub fn errors_of(command: &mut Command) -> std::io::Result<Output> {
    let shown = format!("{command:?}");
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let outputs = [read(std::io::empty()), read(child.stderr.take().unwrap())];
    Ok(finish(&mut child, outputs, &shown, LONGEST, HELD))
}

/// Waits for the end of a child, with what comes of outputs that are pipes, and not for ever, as
/// [`Child::wait_with_output`] may.
pub fn end_of(mut child: Child) -> Output {
    drop(child.stdin.take());
    output_within(child, "the command", LONGEST, HELD)
}

fn output_within(mut child: Child, shown: &str, longest: Duration, held: Duration) -> Output {
    let stdout = child.stdout.take().map_or_else(|| read(std::io::empty()), read);
    let stderr = child.stderr.take().map_or_else(|| read(std::io::empty()), read);
    finish(&mut child, [stdout, stderr], shown, longest, held)
}

fn finish(child: &mut Child, outputs: [Reading; 2], shown: &str, longest: Duration, held: Duration) -> Output {
    let deadline = Instant::now() + longest;
    let mut look = Duration::from_micros(100);
    let mut ended = None;
    while ended.is_none() && Instant::now() < deadline {
        ended = child.try_wait().unwrap();
        if ended.is_none() {
            std::thread::sleep(look);
            look = (look * 2).min(Duration::from_millis(5));
        }
    }
    let Some(status) = ended else {
        let _ = child.kill();
        let _ = child.wait();
        let [stdout, stderr] = outputs.map(|output| output.so_far(Instant::now() + held).0);
        let [stdout, stderr] = [&stdout, &stderr].map(|bytes| String::from_utf8_lossy(bytes));
        panic!("{shown} has not ended after {longest:?}: {stdout}{stderr}");
    };
    let deadline = Instant::now() + held;
    let [stdout, stderr] = outputs.map(|output| {
        let (bytes, is_whole) = output.so_far(deadline);
        assert!(is_whole, "something that {shown} has started holds its output: {}", String::from_utf8_lossy(&bytes));
        bytes
    });
    Output { status, stdout, stderr }
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let outputs = [read(child.stdout.take().unwrap()), read(child.stderr.take().unwrap())];
        Self { child, outputs: Some(outputs) }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let outputs = self.outputs.take().unwrap();
        ran(finish(&mut self.child, outputs, "the command", LONGEST, HELD))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a thread reads from a pipe.
struct Reading(Receiver<Vec<u8>>);

impl Reading {
    /// All until the pipe's end; or what came until then, and whether that is all.
    fn so_far(&self, deadline: Instant) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        loop {
            match self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => all.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => return (all, true),
                Err(RecvTimeoutError::Timeout) => return (all, false),
            }
        }
    }
}

fn read(mut from: impl Read + Send + 'static) -> Reading {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut bytes).unwrap();
            if read == 0 || sender.send(bytes[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    Reading(receiver)
}

#[test]
fn commands_of_tests_that_hang_or_are_held_fail_after_a_while() {
    let said = |script: &str| {
        let mut command = Command::new("sh");
        let child = command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let moment = Duration::from_millis(300);
        let ended = std::panic::catch_unwind(move || output_within(child, "it", moment, moment));
        ended.map_err(|why| why.downcast_ref::<String>().unwrap().clone())
    };
    let right = said("echo out; echo err >&2; exit 3").unwrap();
    assert_eq!((right.status.code(), &right.stdout[..], &right.stderr[..]), (Some(3), &b"out\n"[..], &b"err\n"[..]));
    assert!(said("echo begun; exec sleep 3").unwrap_err().contains("it has not ended after 300ms: begun"));
    assert!(said("echo begun; sleep 3 &").unwrap_err().contains("holds its output: begun"));
}

/// The most memory that a process has had resident, in bytes; `None` when it is gone.
pub fn peak_resident(process: u32) -> Option<u64> {
    memory(process, "VmHWM:")
}

/// The memory that a process has of its own now, in bytes: without the pages of its program, of which a build for tests
/// has many; `None` when it is gone.
pub fn own_memory(process: u32) -> Option<u64> {
    memory(process, "RssAnon:")
}

fn memory(process: u32, what: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
