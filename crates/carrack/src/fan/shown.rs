//! What a command on many hosts says: by line with the host's name before it, into a directory by host, or as JSON; and
//! at the end how it went.

use carrack_sys::sync::{lock, unpoisoned};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use carrack_core::location::SshHost;
use carrack_core::path::{display_bytes, drives_terminal};
use serde_json::{Value, json};

use super::{FanEnded, FanListener, HostEnd, Said};
use crate::error::CommandError;
use crate::output::lines::Lines;
use crate::output::{json as objects, say};

/// A line that is longer is shown in pieces.
const LINE_BYTES: usize = 64 << 10;
/// What an object of `--json` has of each of the two outputs of a host, at most.
const KEPT_BYTES: usize = 64 << 10;

/// Where output goes.
pub struct FanOutput {
    /// Objects instead of lines.
    json: bool,
    /// A file for each host and output in it.
    directory: Option<PathBuf>,
    state: Mutex<FanState>,
}

struct FanState {
    out: Lines,
    /// What is not shown yet of each host and output, or what is kept of it.
    waiting: HashMap<(SshHost, bool), FanWaiting>,
    /// The first file that could not be written.
    unwritten: Option<CommandError>,
}

#[derive(Default)]
struct FanWaiting {
    bytes: Vec<u8>,
    is_cut: bool,
    file: Option<File>,
}

impl FanOutput {
    /// Makes the directory, if one is asked for and not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(json: bool, directory: Option<&[u8]>) -> Result<Self, CommandError> {
        use std::os::unix::ffi::OsStrExt;
        let directory = directory.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path)));
        if let Some(path) = &directory {
            std::fs::create_dir_all(path)
                .map_err(|error| CommandError::file("cannot make", path.as_os_str().as_encoded_bytes(), &error))?;
        }
        let state = FanState { out: Lines::stdout(true), waiting: HashMap::new(), unwritten: None };
        state.out.check()?;
        Ok(Self { json, directory, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, FanState> {
        lock(&self.state)
    }

    /// Tells how it went, and ends the output.
    ///
    /// # Errors
    /// What could not be written.
    pub fn finish(
        self,
        ends: &[HostEnd],
        elapsed_seconds: f64,
        exit_code: u8,
        quiet: bool,
    ) -> Result<(), CommandError> {
        let FanState { mut out, unwritten, .. } = unpoisoned(self.state.into_inner());
        let good = ends.iter().filter(|end| end.ended.is_good()).count();
        if self.json {
            let fields = json!({
                "verb": "fan",
                "exit_code": exit_code,
                "done": good,
                "failed": ends.len() - good,
                "elapsed_seconds": elapsed_seconds,
            });
            out.json(&objects::object("summary", SystemTime::now(), fields));
        } else if !quiet || good < ends.len() {
            summary(ends, elapsed_seconds).iter().for_each(|line| say(line));
        }
        out.finish()?;
        unwritten.map_or(Ok(()), Err)
    }
}

impl FanListener for FanOutput {
    fn said(&self, host: &SshHost, said: Said, bytes: &[u8]) {
        let mut state = self.lock();
        let key = (host.clone(), said == Said::Err);
        if let Some(directory) = &self.directory {
            let waiting = state.waiting.entry(key).or_default();
            if let Err(error) = append(waiting, &file_of(directory, host, said), bytes) {
                let path = file_of(directory, host, said);
                let why = CommandError::file("cannot write", path.as_os_str().as_encoded_bytes(), &error);
                state.unwritten.get_or_insert(why);
            }
        } else if self.json {
            let waiting = state.waiting.entry(key).or_default();
            let room = KEPT_BYTES - waiting.bytes.len();
            waiting.is_cut |= bytes.len() > room;
            waiting.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        } else {
            let mut held = state.waiting.remove(&key).unwrap_or_default();
            held.bytes.extend_from_slice(bytes);
            while let Some(end) = line_end(&held.bytes) {
                let line: Vec<u8> = held.bytes.drain(..end).collect();
                show(&mut state.out, host, said, &line);
            }
            state.waiting.insert(key, held);
        }
    }

    fn ended(&self, end: &HostEnd) {
        let mut state = self.lock();
        let [out, err] = [false, true].map(|is_err| state.waiting.remove(&(end.host.clone(), is_err)));
        if self.json {
            let object = object(end, out, err, self.directory.is_some());
            state.out.json(&objects::object("host", SystemTime::now(), object));
        } else if self.directory.is_none() {
            for (said, rest) in [(Said::Out, out), (Said::Err, err)] {
                let rest = rest.map(|rest| rest.bytes).unwrap_or_default();
                if !rest.is_empty() {
                    show(&mut state.out, &end.host, said, &rest);
                }
            }
        }
    }
}

fn file_of(directory: &Path, host: &SshHost, said: Said) -> PathBuf {
    directory.join(format!("{host}.{}", if said == Said::Out { "out" } else { "err" }))
}

/// A file is begun anew with the first bytes of a run.
fn append(waiting: &mut FanWaiting, path: &Path, bytes: &[u8]) -> io::Result<()> {
    if waiting.file.is_none() {
        waiting.file = Some(File::create(path)?);
    }
    waiting.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
    end.or((bytes.len() >= LINE_BYTES).then_some(LINE_BYTES))
}

fn show(out: &mut Lines, host: &SshHost, said: Said, line: &[u8]) {
    let line = format!("{host}: {}", printable(line.strip_suffix(b"\n").unwrap_or(line)));
    match said {
        Said::Out => out.line(line.as_bytes()),
        Said::Err => say(&line),
    }
}

/// Text as it was written, but for what drives a terminal. Tabulators stay.
fn printable(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\t' || !drives_terminal(character) {
                text.push(character);
            } else {
                text.push_str(&display_bytes(character.encode_utf8(&mut [0; 4]).as_bytes()).to_string());
            }
        }
        text.push_str(&display_bytes(chunk.invalid()).to_string());
    }
    text
}

fn object(end: &HostEnd, out: Option<FanWaiting>, err: Option<FanWaiting>, in_files: bool) -> Value {
    let mut fields = json!({
        "host": end.host.to_string(),
        "outcome": end.ended.name(),
        "elapsed_seconds": end.elapsed.as_secs_f64(),
    });
    match &end.ended {
        FanEnded::Code(code) => fields["code"] = json!(code),
        FanEnded::Unreachable(why) | FanEnded::Lost(why) => fields["message"] = json!(why),
        _ => {}
    }
    if !in_files {
        let is_cut = [&out, &err].into_iter().flatten().any(|kept| kept.is_cut);
        let text = |kept: Option<FanWaiting>| String::from_utf8_lossy(&kept.unwrap_or_default().bytes).into_owned();
        fields["stdout"] = json!(text(out));
        fields["stderr"] = json!(text(err));
        fields["cut"] = json!(is_cut);
    }
    fields
}

/// How it went: a line for all, and one for each host where it did not go well.
fn summary(ends: &[HostEnd], elapsed_seconds: f64) -> Vec<String> {
    let good = ends.iter().filter(|end| end.ended.is_good()).count();
    let hosts = if ends.len() == 1 { "host" } else { "hosts" };
    let time = crate::output::format::duration(std::time::Duration::from_secs_f64(elapsed_seconds));
    let mut lines = vec![format!("{good} of {} {hosts} ended with exit 0, after {time}", ends.len())];
    let bad = ends.iter().filter(|end| !end.ended.is_good());
    lines.extend(bad.map(|end| format!("  {}: {}", end.host, end.ended.told())));
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn end(host: &str, ended: FanEnded) -> HostEnd {
        HostEnd { host: SshHost { user: None, host: host.to_owned() }, ended, elapsed: Duration::from_secs(1) }
    }

    #[test]
    fn summary_names_each_host_where_it_did_not_go_well_and_why() {
        let ends = [
            end("a", FanEnded::Code(0)),
            end("b", FanEnded::Code(3)),
            end("c", FanEnded::Unreachable("no route to host".to_owned())),
            end("d", FanEnded::Lost(String::new())),
        ];
        let expected = [
            "1 of 4 hosts ended with exit 0, after 2.00 s",
            "  b: exit 3",
            "  c: unreachable: no route to host",
            "  d: connection lost",
        ];
        assert_eq!(summary(&ends, 2.0), expected);
    }

    #[test]
    fn line_of_a_host_drives_no_terminal() {
        assert_eq!(printable(b"a\tb\x1b[2Jc\\d\xff\r"), "a\tb\\x1b[2Jc\\d\\xff");
    }

    #[test]
    fn files_of_a_directory_have_each_host_s_output_as_it_was_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("new");
        let output = FanOutput::open(true, Some(below.as_os_str().as_encoded_bytes())).expect("made");
        let host = end("a", FanEnded::Code(0)).host;
        output.said(&host, Said::Out, b"\xff\x1b[2J one");
        output.said(&host, Said::Out, b" two\n");
        output.ended(&end("a", FanEnded::Code(0)));
        assert_eq!(std::fs::read(below.join("a.out")).expect("written"), b"\xff\x1b[2J one two\n");
        assert!(!below.join("a.err").exists(), "nothing was said there");
    }
}
