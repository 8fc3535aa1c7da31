//! One process that measures: how it is started, waited for, and what it prints.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use carrack_engine::threads;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Programs;
use crate::clock::Moment;
use crate::model::{BenchFailure, BenchKind, BenchResult, BenchRow};
use crate::worker::bench::BenchOrder;

/// What a process prints, and what a file of a result holds, at most.
pub const RESULT_BYTES: u64 = 1 << 20;
/// From asking a process to end to killing it, and from there to giving it up.
const GRACE: Duration = Duration::from_secs(15);

/// A process that measures.
pub struct Process {
    child: Child,
    printed: Receiver<io::Result<Vec<u8>>>,
}

/// What was measured; a result once it has its time.
pub struct Measured(BenchResult);

impl Measured {
    /// The result.
    pub fn at(self, time: Moment) -> BenchResult {
        BenchResult { time, ..self.0 }
    }
}

/// A failure that nobody can do anything about here.
pub fn failure(kind: BenchKind, why: String) -> BenchFailure {
    BenchFailure { kind, why, hint: None }
}

/// Why a process has measured nothing.
#[derive(Debug)]
pub enum Unmeasured {
    /// In words.
    Failed(String),
    /// It did not end within this time, and was ended.
    Late(Duration),
    /// It does not end at all.
    Hangs,
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Late(patience) => write!(f, "it took longer than {} s", patience.as_secs()),
            Self::Hangs => f.write_str("the process that measures does not end"),
        }
    }
}

impl Unmeasured {
    /// As a failure of a host.
    pub fn of_host(&self, kind: BenchKind) -> BenchFailure {
        let hint = match self {
            Self::Failed(_) => None,
            Self::Late(_) => Some("the storage is slow, or busy with something else: measure again later".to_owned()),
            Self::Hangs => Some("look at its storage: a call there does not return".to_owned()),
        };
        BenchFailure { kind, why: self.to_string(), hint }
    }
}

/// Starts a process. It goes on as long as its input is kept.
pub fn start(
    programs: &Programs,
    arguments: &[String],
    order: &impl Serialize,
) -> Result<(Process, ChildStdin), Unmeasured> {
    let refused =
        |error: io::Error| Unmeasured::Failed(format!("{}: it cannot be started: {error}", programs.program.display()));
    let mut command = Command::new(&programs.program);
    command.args(arguments).env_clear().current_dir("/");
    for name in &programs.environment {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(refused)?;
    let handed = hand_over(&mut child, order);
    handed
        .map_err(|error| {
            // It is of no use without its order.
            let _ = child.kill();
            let _ = child.wait();
            refused(error)
        })
        .map(|(input, printed)| (Process { child, printed }, input))
}

/// Gives it the order, and begins to read what it prints.
fn hand_over(child: &mut Child, order: &impl Serialize) -> io::Result<(ChildStdin, Receiver<io::Result<Vec<u8>>>)> {
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    input.write_all(&line)?;
    let (tell, printed) = mpsc::channel();
    let read = move || {
        // Nobody waits for a process that was given up.
        let _ = tell.send(read_all(output));
    };
    threads::start_named("bench-output", read)?;
    Ok((input, printed))
}

fn read_all(output: ChildStdout) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    output.take(RESULT_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > RESULT_BYTES { Err(io::Error::other("it printed too much")) } else { Ok(text) }
}

/// Waits for the end of a process; what it has printed, and how it ended. `end` has it end in good order.
pub fn follow(process: Process, patience: Duration, end: &dyn Fn()) -> Result<(Vec<u8>, ExitStatus), Unmeasured> {
    let Process { mut child, printed } = process;
    let mut is_late = false;
    let text = printed.recv_timeout(patience).or_else(|_| {
        is_late = true;
        end();
        printed.recv_timeout(GRACE)
    });
    let text = text.or_else(|_| {
        // It is gone already, or it ends as soon as the system lets it.
        let _ = child.kill();
        printed.recv_timeout(GRACE)
    });
    end();
    let text = match text {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Unmeasured::Failed(error.to_string()));
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(Unmeasured::Hangs),
    };
    // What it printed ends with it, or just before.
    let status = child.wait().map_err(|error| Unmeasured::Failed(error.to_string()))?;
    if is_late { Err(Unmeasured::Late(patience)) } else { Ok((text, status)) }
}

/// The same of a process that ended before it had told everything.
pub fn ended_early(status: ExitStatus) -> Unmeasured {
    Unmeasured::Failed(format!("the process that measures ended: {status}"))
}

/// What `carrack bench --json` has printed.
pub fn read(order: &BenchOrder, text: &[u8], status: ExitStatus) -> Result<Measured, BenchFailure> {
    whole(order, text).unwrap_or_else(|| Err(ended_early(status).of_host(order.kind)))
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    fields: Value,
}

/// The same; none: it ended before it was whole.
fn whole(order: &BenchOrder, text: &[u8]) -> Option<Result<Measured, BenchFailure>> {
    let mut result = BenchResult {
        kind: order.kind,
        time: Moment::default(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        elapsed_seconds: 0.0,
        verdict: None,
        notes: Vec::new(),
        rows: Vec::new(),
    };
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Line { kind, fields } = serde_json::from_slice(line).ok()?;
        let word = |name: &str| fields[name].as_str().map(str::to_owned);
        match kind.as_str() {
            "row" => result.rows.push(serde_json::from_value::<BenchRow>(fields).ok()?),
            "note" => result.notes.extend(word("message")),
            "error" => {
                let hint = word("code").and_then(|code| hint(&code, &order.root));
                let why = word("message").unwrap_or_else(|| "it failed".to_owned());
                return Some(Err(BenchFailure { kind: order.kind, why, hint }));
            }
            "summary" => {
                result.elapsed_seconds = fields["elapsed_seconds"].as_f64().unwrap_or_default();
                result.verdict = word("verdict");
                return Some(Ok(Measured(result)));
            }
            _ => {}
        }
    }
    None
}

/// What mends it.
fn hint(code: &str, root: &[u8]) -> Option<String> {
    let root = std::ffi::OsString::from_vec(root.to_vec());
    let root = root.display();
    Some(match code {
        "no-space" | "quota-exceeded" => format!(
            "free some space below {root}: files of 64 MiB are written there, and a tenth of the file system stays free"
        ),
        "permission-denied" => format!("let the service's account write to {root}"),
        "read-only-file-system" => {
            format!("{root} is mounted for reading: mount it for writing, or leave it unmeasured")
        }
        "not-found" => format!("mkdir -p {root}"),
        _ => return None,
    })
}
