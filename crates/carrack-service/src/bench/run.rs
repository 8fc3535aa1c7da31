//! One process that measures: how it is started, waited for, and what it prints.

use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use carrack_engine::threads;
use serde::Deserialize;
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

/// Starts a process. It goes on as long as its input is kept.
pub fn start(programs: &Programs, order: &BenchOrder) -> Result<(Process, ChildStdin), BenchFailure> {
    let refused = |error: io::Error| {
        let why = format!("{}: it cannot be started: {error}", programs.program.display());
        failure(order.kind, why)
    };
    let mut command = Command::new(&programs.program);
    command.args(&programs.arguments).env_clear().current_dir("/");
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
fn hand_over(child: &mut Child, order: &BenchOrder) -> io::Result<(ChildStdin, Receiver<io::Result<Vec<u8>>>)> {
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

/// Waits for the end of a process, and reads what it has measured. `end` has it end in good order.
pub fn follow(
    process: Process,
    order: &BenchOrder,
    programs: &Programs,
    end: &dyn Fn(),
) -> Result<Measured, BenchFailure> {
    let Process { mut child, printed } = process;
    let kind = order.kind;
    let mut why = None;
    let text = printed.recv_timeout(programs.patience).or_else(|_| {
        why = Some(format!("it took longer than {} s", programs.patience.as_secs()));
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
            return Err(failure(kind, error.to_string()));
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            let hint = "look at its storage: a call there does not return".to_owned();
            return Err(BenchFailure { kind, why: "the process that measures does not end".into(), hint: Some(hint) });
        }
    };
    // What it printed ends with it, or just before.
    let status = child.wait().map_err(|error| failure(kind, error.to_string()))?;
    if let Some(why) = why {
        let hint = Some("the storage is slow, or busy with something else: measure again later".to_owned());
        return Err(BenchFailure { kind, why, hint });
    }
    read(order, &text).unwrap_or_else(|| Err(failure(kind, format!("the process that measures ended: {status}"))))
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    fields: Value,
}

/// What `carrack bench --json` has printed. None: it ended before it was whole.
fn read(order: &BenchOrder, text: &[u8]) -> Option<Result<Measured, BenchFailure>> {
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
