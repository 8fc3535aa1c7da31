//! A file that another program carries: a line of shell in a process group of its own, ended with its time.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use carrack_core::words::shell_word;
use carrack_engine::Stop;
use carrack_sys::socket::wait;

use super::told::{Attempt, CarryOutcome};

/// How often it is looked whether its time is over.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a program has to tidy up that is told to end.
const LETS_GO: Duration = Duration::from_millis(300);
/// The end of what it says is kept, to tell why it failed.
const KEPT_BYTES: usize = 4 << 10;
/// What programs and servers say that took no connection. In lower case.
const REFUSALS: [&str; 8] = [
    "connection refused",
    "max connections",
    "too many connections",
    "connection limit",
    "server busy",
    "service busy",
    "service unavailable",
    "unable to connect",
];
/// The same of connections that broke.
const LOSSES: [&str; 6] = [
    "connection reset",
    "broken pipe",
    "connection unexpectedly closed",
    "connection timed out",
    "end-of-file",
    "connection closed",
];

/// A line with what its words in braces stand for, each as one word of the shell.
pub fn expand(line: &str, local: &Path, node: &str, name: &str) -> String {
    let local = local.to_string_lossy();
    let pairs = [("{local}", shell_word(&local)), ("{node}", shell_word(node)), ("{name}", shell_word(name))];
    let mut out = String::new();
    let mut rest = line;
    // One pass: what a word stands for is not looked at again.
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match pairs.iter().find(|(word, _)| rest.starts_with(word)) {
            Some((word, value)) => {
                out.push_str(value);
                rest = &rest[word.len()..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

/// Runs a line to its end, or until its time is over.
pub fn run(line: &str, until: Instant, stop: &Stop) -> Attempt {
    let mut command = Command::new("sh");
    command.args(["-c", line]).process_group(0);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return Attempt::new(CarryOutcome::Failed, &format!("sh cannot be started: {error}")),
    };
    let mut said = Vec::new();
    let mut errors = child.stderr.take();
    loop {
        if let Some(over) = over(until, stop) {
            end(&mut child);
            return over;
        }
        let left = until.saturating_duration_since(Instant::now()).min(GLANCE);
        match &mut errors {
            Some(pipe) => {
                if !hear(pipe, left, &mut said) {
                    errors = None;
                }
            }
            None => std::thread::sleep(left.min(Duration::from_millis(5))),
        }
        if let Ok(Some(status)) = child.try_wait() {
            // What is in the pipe by now was said before it ended.
            if let Some(pipe) = &mut errors {
                for _ in 0..64 {
                    if !is_ready(pipe) || !hear(pipe, Duration::ZERO, &mut said) {
                        break;
                    }
                }
            }
            return verdict(status, &said);
        }
    }
}

fn is_ready(pipe: &ChildStderr) -> bool {
    matches!(wait(pipe, true, false, Some(Duration::ZERO)), Ok(ready) if ready.read)
}

/// Takes what is said within a time. Whether more may come.
fn hear(pipe: &mut ChildStderr, time: Duration, said: &mut Vec<u8>) -> bool {
    match wait(&*pipe, true, false, Some(time)) {
        Ok(ready) if ready.read => {}
        Ok(_) => return true,
        Err(_) => return false,
    }
    let mut piece = [0; 4096];
    match pipe.read(&mut piece) {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            said.extend_from_slice(&piece[..count]);
            let cut = said.len().saturating_sub(KEPT_BYTES);
            said.drain(..cut);
            true
        }
    }
}

fn over(until: Instant, stop: &Stop) -> Option<Attempt> {
    if stop.requested().is_some() {
        return Some(Attempt::new(CarryOutcome::Stopped, ""));
    }
    (Instant::now() >= until).then(|| Attempt::new(CarryOutcome::TimedOut, "it ran when the time was over"))
}

/// Ends it with all that it has started. Its number is its own until it is waited for.
fn end(child: &mut Child) {
    carrack_sys::host::end_group(child.id(), false);
    std::thread::sleep(LETS_GO);
    carrack_sys::host::end_group(child.id(), true);
    let _ = child.wait();
}

fn verdict(status: std::process::ExitStatus, said: &[u8]) -> Attempt {
    if status.success() {
        return Attempt::new(CarryOutcome::Done, "");
    }
    let text = String::from_utf8_lossy(said).into_owned();
    let lower = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let outcome = match () {
        () if says(&REFUSALS) => CarryOutcome::Refused,
        () if says(&LOSSES) => CarryOutcome::Lost,
        () => CarryOutcome::Failed,
    };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(2)..].join(" / ");
    Attempt::new(outcome, &format!("{status}: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn words_in_braces_become_one_word_each() {
        let line = expand("cp {local} \"$D\"/{node}/{name} {other} {", Path::new("/a b/{name}"), "n'1", "x");
        assert_eq!(line, "cp '/a b/{name}' \"$D\"/'n'\\''1'/x {other} {");
    }

    #[test]
    fn program_ends_as_it_says() {
        let outcome = |line: &str| run(line, soon(), &Stop::new()).outcome;
        assert_eq!(outcome("true"), CarryOutcome::Done);
        assert_eq!(outcome("echo rsync: failed to connect: Connection refused >&2; exit 10"), CarryOutcome::Refused);
        assert_eq!(outcome("echo '@ERROR: max connections (4) reached' >&2; exit 5"), CarryOutcome::Refused);
        assert_eq!(outcome("echo 421 Service busy: Connection limit exceeded. >&2; exit 1"), CarryOutcome::Refused);
        assert_eq!(outcome("echo read error: Connection reset by peer >&2; exit 12"), CarryOutcome::Lost);
        let failed = run("echo first >&2; echo no such file >&2; exit 3", soon(), &Stop::new());
        assert_eq!(
            (failed.outcome, failed.why.as_str()),
            (CarryOutcome::Failed, "exit status: 3: first / no such file")
        );
        // One that leaves something behind that holds its standard error.
        assert_eq!(outcome("sleep 30 & exit 0"), CarryOutcome::Done);
    }

    #[test]
    fn program_ends_with_its_time_and_with_all_it_started() {
        let began = Instant::now();
        let late = run("sh -c 'sleep 600; true'", Instant::now() + Duration::from_millis(50), &Stop::new());
        assert_eq!(late.outcome, CarryOutcome::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(60));
        let stop = Stop::new();
        stop.request(carrack_engine::StopReason::Cancel);
        assert_eq!(run("sleep 600", soon(), &stop).outcome, CarryOutcome::Stopped);
    }
}
