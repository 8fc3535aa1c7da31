//! Standard input, output and error as the process got them.
//!
//! Rust's runtime puts `/dev/null` in the place of those that are closed before `main` begins, and the standard
//! library's own streams take `EBADF` for success: bytes would go nowhere, or come from nowhere, and nobody
//! would be told. So a function that runs before the runtime looks which are open, and the files given out here
//! answer as the system does.
//!
//! [`Patient`] is for whatever may be a pipe that nobody reads: it never waits without asking now
//! and then whether to go on.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::socket;

/// Bit n: descriptor n was closed when the process began.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Called by the loader, before Rust's runtime opens anything. Where there is no such call, none counts as closed.
#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
))]
#[used]
#[allow(unsafe_code)]
// SAFETY: the section is an array of pointers to functions of this signature (those that a loader passes arguments to
// may ignore them); this one touches nothing that the runtime has not set up yet.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[cfg(target_vendor = "apple")]
#[used]
#[allow(unsafe_code)]
// SAFETY: as above.
#[unsafe(link_section = "__DATA,__mod_init_func")]
static LOOK: extern "C" fn() = look;

#[allow(unsafe_code)]
extern "C" fn look() {
    for descriptor in 0..3 {
        // SAFETY: F_GETFD takes no pointer, and of a descriptor that is closed it tells just that.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

/// Standard input.
///
/// # Errors
/// `EBADF` when it was closed, or is not open for reading.
pub fn input() -> io::Result<File> {
    open(0, io::stdin().as_fd(), OFlags::WRONLY)
}

/// Standard output.
///
/// # Errors
/// `EBADF` when it was closed, or is not open for writing.
pub fn output() -> io::Result<File> {
    open(1, io::stdout().as_fd(), OFlags::RDONLY)
}

/// Standard error.
///
/// # Errors
/// `EBADF` when it was closed, or is not open for writing.
pub fn error() -> io::Result<File> {
    open(2, io::stderr().as_fd(), OFlags::RDONLY)
}

fn open(number: u8, stream: BorrowedFd<'_>, wrong: OFlags) -> io::Result<File> {
    let is_open = CLOSED.load(Ordering::Relaxed) & 1 << number == 0;
    if !is_open || rustix::fs::fcntl_getfl(stream)? & OFlags::RWMODE == wrong {
        return Err(Errno::BADF.into());
    }
    Ok(File::from(stream.try_clone_to_owned()?))
}

/// One line of standard input, without what ends it. A terminal does not show what is typed, and does so again after
/// the line, also after a signal that ends the program only later.
///
/// # Errors
/// Those of the system; `InvalidData` for a line with more than `bytes_max` bytes.
pub fn hidden_line(bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut input = input()?;
    let shown = match input.is_terminal() {
        true => Some(UnshownInput::begin(input.try_clone()?)?),
        false => None,
    };
    let mut line = Vec::new();
    let mut byte = [0];
    // A byte at a time: what stands behind the line is for somebody else.
    while input.read(&mut byte)? == 1 && byte != *b"\n" {
        line.push(byte[0]);
        if line.len() > bytes_max {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    drop(shown);
    Ok(line)
}

/// While it exists, a terminal does not show what is typed.
struct UnshownInput {
    terminal: File,
    before: rustix::termios::Termios,
}

impl UnshownInput {
    fn begin(terminal: File) -> io::Result<Self> {
        let before = rustix::termios::tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(&terminal, rustix::termios::OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for UnshownInput {
    fn drop(&mut self) {
        // The terminal may have gone.
        let _ = rustix::termios::tcsetattr(&self.terminal, rustix::termios::OptionalActions::Flush, &self.before);
    }
}

/// Opens what exists for writing at its end, whatever it is: a device, a FIFO, a terminal, an inherited descriptor
/// (`/dev/fd/3`). Of a FIFO it waits for the reader until `is_over`.
///
/// # Errors
/// Those of the system; `TimedOut` when no reader came.
pub fn open_in_place(path: &Path, is_over: impl Fn() -> bool) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = loop {
        match crate::retry(|| rustix::fs::open(path, flags, Mode::empty())) {
            // A FIFO without a reader; a socket says the same for ever.
            Err(Errno::NXIO) if FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode) == FileType::Fifo => {}
            opened => break File::from(opened?),
        }
        if is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(ASK_INTERVAL);
    };
    crate::file::clear_nonblock(&file)?;
    Ok(file)
}

/// How often a wait is broken to ask whether to go on.
const ASK_INTERVAL: Duration = Duration::from_millis(50);
/// A pipe that is ready takes so much without waiting (`PIPE_BUF`, which POSIX lets be 512).
const AT_ONCE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// A file that may be a pipe, a socket or a terminal whose other side does nothing. Others are read
/// and written as they are.
pub struct Patient<F> {
    file: File,
    waits: bool,
    /// Bytes that are written at once, at most.
    portion: usize,
    is_over: F,
}

impl<F: Fn() -> bool> Patient<F> {
    /// Waits for the other side until `is_over`.
    pub fn new(file: File, is_over: F) -> Self {
        let found = rustix::fs::fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let waits = !matches!(found, Ok(FileType::RegularFile | FileType::BlockDevice | FileType::Directory));
        let (file, portion) = match file.is_terminal() {
            false => (file, AT_ONCE),
            true => reopened(&file).map_or_else(|| (file, 1), |file| (file, AT_ONCE)),
        };
        Self { file, waits, portion, is_over }
    }

    /// Waits a moment: the file was said to be ready, and was not.
    fn pause(&self) -> io::Result<()> {
        if (self.is_over)() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(ASK_INTERVAL);
        Ok(())
    }

    fn wait(&self, read: bool) -> io::Result<()> {
        loop {
            let ready = socket::wait(&self.file, read, !read, Some(ASK_INTERVAL))?;
            if ready.read || ready.write {
                return Ok(());
            }
            if (self.is_over)() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// A terminal that is said to be ready takes what it has room for, and keeps the writer waiting with the rest. Opened
/// once more it can be told not to, which would change the description that the program shares with the shell. `None`
/// where it cannot be opened, as a terminal of another user: of that one byte at a time is all that surely is taken.
fn reopened(terminal: &File) -> Option<File> {
    let mode = rustix::fs::fcntl_getfl(terminal).ok()? & OFlags::RWMODE;
    let flags = mode | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = crate::retry(|| rustix::fs::open(path_of(terminal)?, flags, Mode::empty())).ok()?;
    let device = |file: &File| rustix::fs::fstat(file).map(|stat| stat.st_rdev);
    let file = File::from(file);
    (device(&file).ok()? == device(terminal).ok()?).then_some(file)
}

/// Where an open terminal can be opened.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn path_of(terminal: &File) -> Result<String, Errno> {
    use std::os::fd::AsRawFd;
    Ok(format!("/proc/self/fd/{}", terminal.as_raw_fd()))
}

/// Where an open terminal can be opened.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn path_of(terminal: &File) -> Result<std::ffi::CString, Errno> {
    rustix::termios::ttyname(terminal, Vec::new())
}

/// Columns of a terminal; `None` where there are none.
pub fn columns(terminal: impl AsFd) -> Option<u16> {
    rustix::termios::tcgetwinsize(terminal).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

impl<F: Fn() -> bool> Write for Patient<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.waits {
            return self.file.write(bytes);
        }
        loop {
            self.wait(false)?;
            match self.file.write(&bytes[..bytes.len().min(self.portion)]) {
                // Somebody else made it so, and fills it, too; or it is a terminal with less
                // room than a line's end takes.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.pause()?,
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<F: Fn() -> bool> Read for Patient<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.waits {
            return self.file.read(out);
        }
        loop {
            self.wait(true)?;
            match self.file.read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.pause()?,
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Set in the process that this test starts of itself: where it says what it found, because its
    /// own streams may be closed.
    const FOUND: &str = "CARRACK_SYS_TEST_FOUND";

    #[test]
    fn standard_streams_that_are_closed_or_open_the_wrong_way_are_refused() {
        if let Some(path) = std::env::var_os(FOUND) {
            let found: Vec<bool> = [input(), output(), error()].iter().map(Result::is_ok).collect();
            return std::fs::write(path, format!("{found:?}")).unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        let cases = [
            ("</dev/null >/dev/null 2>/dev/null", [true, true, true]),
            ("<&-", [false, true, true]),
            (">&-", [true, false, true]),
            ("2>&-", [true, true, false]),
            ("<&- >&- 2>&-", [false, false, false]),
            ("1</dev/null 0>/dev/null", [false, false, true]),
            ("0<>/dev/null 1<>/dev/null", [true, true, true]),
        ];
        for (redirected, expected) in cases {
            let path = directory.path().join("found");
            let name = "standard_streams_that_are_closed_or_open_the_wrong_way_are_refused";
            let script = format!("exec \"$0\" --nocapture {name} {redirected}");
            let mut command = Command::new("sh");
            command.args(["-c", &script]).arg(std::env::current_exe().unwrap()).env(FOUND, &path);
            // Whether the test harness itself can say anything does not matter.
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{expected:?}"), "{redirected}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn pipe_that_nobody_reads_is_waited_for_until_it_is_over() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        // The first question is when the pipe is full: the second ends it.
        let mut writer = Patient::new(File::from(write), move || seen.swap(true, Ordering::Relaxed));
        let error = writer.write_all(&vec![7; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(writer);
        let mut reader = Patient::new(File::from(read), || true);
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        assert!(got.len() >= AT_ONCE && got.iter().all(|byte| *byte == 7), "{}", got.len());
        let (read, _write) = rustix::pipe::pipe().unwrap();
        assert_eq!(Patient::new(File::from(read), || true).read(&mut [0]).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
