//! The standard input of a program that this one started, written to without being held by whoever reads it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrack_sys::{file, socket};

/// How often a wait is broken to see whether the pipe was ended.
const ASK_INTERVAL: Duration = Duration::from_millis(100);

/// Our half of the pipe.
pub struct PipeWriter {
    pipe: File,
    ended: PipeEnd,
}

/// Ends a pipe from outside: whoever writes to it wakes up, also where a program that the first one started
/// holds the other half open.
#[derive(Clone, Default)]
pub struct PipeEnd(Arc<AtomicBool>);

impl PipeEnd {
    /// From now on nothing is written.
    pub fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl PipeWriter {
    /// Of a pipe whose writing half nobody else has.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn new(pipe: impl Into<OwnedFd>) -> io::Result<Self> {
        let pipe = File::from(pipe.into());
        file::set_nonblock(&pipe)?;
        Ok(Self { pipe, ended: PipeEnd::default() })
    }

    /// For whoever ends it.
    pub fn end(&self) -> PipeEnd {
        self.ended.clone()
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if self.ended.0.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket::wait(&self.pipe, false, true, Some(ASK_INTERVAL))?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn pipe_takes_everything_at_its_readers_pace_and_nothing_once_it_was_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut pipe = PipeWriter::new(child.stdin.take().unwrap()).unwrap();
        let end = pipe.end();
        // More than both pipes hold: written while it is read.
        let writer = std::thread::spawn(move || pipe.write_all(&vec![7; 1 << 20]).map(|()| pipe));
        let mut got = vec![0; 1 << 20];
        child.stdout.as_mut().unwrap().read_exact(&mut got).unwrap();
        let mut pipe = writer.join().unwrap().unwrap();
        assert!(got.iter().all(|&byte| byte == 7));
        // Nobody reads any more, and the program is there all the same.
        let writer = std::thread::spawn(move || pipe.write_all(&vec![7; 1 << 20]));
        end.end();
        assert_eq!(writer.join().unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
