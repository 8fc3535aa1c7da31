//! Programs and named pipes in the place of files: what one prints is copied, or what is copied is fed to one.
//!
//! A program that fails ends the copy, so that what it has printed by then does not pass for the whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::words::shell_word;
use carrack_engine::{Stop, StopReason, threads};
use carrack_sys::sync::lock;

use super::step::OldPlace;
use crate::cli::words::split_words;
use crate::error::CommandError;

/// A program, or a named pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipeSide {
    /// A named pipe of this host, or another file that is read from its beginning to its end.
    File(Vec<u8>),
    /// A program: its words, the first its name.
    Program(Vec<String>),
}

impl PipeSide {
    /// What a place of a line stands for. On another host it is run by the words `ssh`, which end before the host.
    ///
    /// # Errors
    /// Quotes that do not end, and what is no text.
    pub fn of(place: &OldPlace, ssh: &[String], reads: bool) -> Result<Self, CommandError> {
        let text = std::str::from_utf8(&place.path)
            .map_err(|_| CommandError::usage(format!("{} is no name of a program", display_bytes(&place.path))))?;
        let words = split_words(text).map_err(CommandError::usage)?;
        let Some(host) = &place.host else {
            let is_pipe =
                std::fs::metadata(OsStr::from_bytes(&place.path)).is_ok_and(|found| found.file_type().is_fifo());
            return Ok(if is_pipe { Self::File(place.path.clone()) } else { Self::Program(words) });
        };
        let host = carrack_core::location::Location::parse_typed(&[&host[..], b":"].concat());
        let host = match host.map_err(CommandError::usage)? {
            carrack_core::location::Location::Ssh { host, .. } => host,
            other => return Err(CommandError::usage(format!("{other} is no host that ssh reaches"))),
        };
        let login = host.user.map_or(host.host.clone(), |user| format!("{user}@{}", host.host));
        let quoted = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        let pipe = if reads { "exec cat <" } else { "exec cat >" };
        let line = match words.as_slice() {
            [one] => format!("if [ -p {0} ]; then {pipe}{0}; else exec {0}; fi", shell_word(one)),
            _ => format!("exec {quoted}"),
        };
        Ok(Self::Program(ssh.iter().cloned().chain(["--".to_owned(), login, line]).collect()))
    }

    fn shown(&self) -> String {
        match self {
            Self::File(path) => display_bytes(path).to_string(),
            Self::Program(words) => display_bytes(words.join(" ").as_bytes()).to_string(),
        }
    }

    fn start(&self, words: &[String], stdin: Stdio, stdout: Stdio) -> Result<Child, CommandError> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(stdin).stdout(stdout);
        command.spawn().map_err(|error| CommandError::file("cannot start", self.shown().as_bytes(), &error))
    }
}

/// Opens what `-` stands for.
type OpenStream = Arc<dyn Fn() -> io::Result<File> + Send + Sync>;

/// What is read, while it is.
pub struct PipeReading {
    stream: PipeSide,
    relay: Option<Relay>,
}

/// The thread that passes on what a program prints.
struct Relay {
    thread: JoinHandle<io::Result<ExitStatus>>,
    /// Dropped when the copy has ended.
    copying: Sender<()>,
}

/// What is fed, while it is.
pub struct PipeFeeding {
    stream: PipeSide,
    child: Option<Child>,
}

/// A file that is given out once: another session of the copy would miss what the first has taken.
fn once(file: File) -> OpenStream {
    let file = Mutex::new(Some(file));
    Arc::new(move || {
        lock(&file)
            .take()
            .ok_or_else(|| io::Error::other("what a program prints can be read once, and the connection was lost"))
    })
}

impl PipeReading {
    /// Begins to read. `stop` is told where the program fails.
    ///
    /// # Errors
    /// What cannot be started or opened.
    pub fn start(stream: PipeSide, stop: &Stop) -> Result<(Self, OpenStream), CommandError> {
        let failed = |error: io::Error| CommandError::file("cannot read", stream.shown().as_bytes(), &error);
        match &stream {
            PipeSide::File(path) => {
                let file = File::open(OsStr::from_bytes(path)).map_err(failed)?;
                Ok((Self { stream, relay: None }, once(file)))
            }
            PipeSide::Program(words) => {
                let mut child = stream.start(words, Stdio::null(), Stdio::piped())?;
                let printed = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
                let (from, to) = io::pipe().map_err(failed)?;
                let (copying, ended) = channel();
                let (stop, to) = (stop.clone(), File::from(OwnedFd::from(to)));
                let thread = threads::start("what a program prints", move || relay(child, printed, to, &stop, &ended));
                let thread = thread.map_err(failed)?;
                let relay = Some(Relay { thread, copying });
                Ok((Self { stream, relay }, once(File::from(OwnedFd::from(from)))))
            }
        }
    }

    /// Waits for the program, when the copy has ended.
    ///
    /// # Errors
    /// A program that failed.
    pub fn finish(self) -> Result<(), CommandError> {
        let Some(Relay { thread, copying }) = self.relay else { return Ok(()) };
        drop(copying);
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that read it ended")));
        judged(&self.stream, ended)
    }
}

/// Passes on what a program prints. The copy sees its end only where the program ended well: else it is told to stop,
/// and the pipe stays open until it has.
fn relay(
    mut child: Child,
    mut printed: ChildStdout,
    mut to: File,
    stop: &Stop,
    ended: &Receiver<()>,
) -> io::Result<ExitStatus> {
    let copied = io::copy(&mut printed, &mut to);
    drop(printed);
    let status = child.wait()?;
    // A reader that has gone is told of by the copy itself.
    if copied.is_err() || !status.success() {
        stop.request(StopReason::Terminate);
        // Nothing is ever sent: the other side is dropped.
        let _ = ended.recv();
    }
    Ok(status)
}

impl PipeFeeding {
    /// Begins to feed.
    ///
    /// # Errors
    /// What cannot be started or opened.
    pub fn start(stream: PipeSide) -> Result<(Self, OpenStream), CommandError> {
        let failed = |error: io::Error| CommandError::file("cannot write to", stream.shown().as_bytes(), &error);
        match &stream {
            PipeSide::File(path) => {
                let file = File::options().write(true).open(OsStr::from_bytes(path)).map_err(failed)?;
                Ok((Self { stream, child: None }, once(file)))
            }
            PipeSide::Program(words) => {
                let mut child = stream.start(words, Stdio::piped(), Stdio::inherit())?;
                let fed: Option<ChildStdin> = child.stdin.take();
                let fed = fed.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
                Ok((Self { stream, child: Some(child) }, once(File::from(OwnedFd::from(fed)))))
            }
        }
    }

    /// Waits for the program. The file that was given out must have been dropped.
    ///
    /// # Errors
    /// A program that failed.
    pub fn finish(self) -> Result<(), CommandError> {
        self.child.map_or(Ok(()), |mut child| judged(&self.stream, child.wait()))
    }
}

fn judged(stream: &PipeSide, ended: io::Result<ExitStatus>) -> Result<(), CommandError> {
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let why = format!("{} ended with {status}: what it printed is not copied", stream.shown());
            Err(CommandError::from(Failure::new(ErrorCode::InputOutput, Side::Command, why)))
        }
        Err(error) => Err(CommandError::file("cannot wait for", stream.shown().as_bytes(), &error)),
    }
}
