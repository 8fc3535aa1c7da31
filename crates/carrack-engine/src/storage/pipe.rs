//! Writing to a FIFO: its reader may come later, or never, or read nothing. Who writes waits for it, and can
//! be told to stop waiting.

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use carrack_sys::dir::Dir;
use carrack_sys::errno::ENXIO;
use carrack_sys::socket;

/// How often it is looked whether there is a reader, and whether anybody still wants to write.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A FIFO, opened when there is a reader.
pub struct FifoWriter {
    parent: Dir,
    name: Vec<u8>,
    file: Option<File>,
    is_over: Box<dyn Fn() -> bool + Send>,
}

impl FifoWriter {
    /// Of an entry of a directory. `is_over` tells when nobody waits for the reader any more.
    pub fn new(parent: Dir, name: Vec<u8>, is_over: Box<dyn Fn() -> bool + Send>) -> Self {
        Self { parent, name, file: None, is_over }
    }

    fn check_wanted(&self) -> io::Result<()> {
        if (self.is_over)() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    fn opened(&mut self) -> io::Result<&File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => loop {
                match self.parent.open_write(&self.name) {
                    Err(error) if error.raw_os_error() == Some(ENXIO) => {}
                    opened => break opened?,
                }
                self.check_wanted()?;
                std::thread::sleep(LOOK_INTERVAL);
            },
        };
        Ok(self.file.insert(file))
    }
}

impl Write for FifoWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.opened()?.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            self.check_wanted()?;
            socket::wait(self.opened()?, false, true, Some(LOOK_INTERVAL))?;
        }
    }

    /// Waits for a reader even if there is nothing to write: it must see the end.
    fn flush(&mut self) -> io::Result<()> {
        self.opened().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn fifo(is_over: &Arc<AtomicBool>) -> (tempfile::TempDir, FifoWriter) {
        let place = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(place.path().join("fifo")).status().unwrap();
        assert!(made.success());
        let (parent, is_over) = (Dir::open_ambient(place.path()).unwrap(), Arc::clone(is_over));
        let writer = FifoWriter::new(parent, b"fifo".to_vec(), Box::new(move || is_over.load(Ordering::Relaxed)));
        (place, writer)
    }

    #[test]
    fn reader_that_comes_late_gets_everything() {
        let is_over = Arc::default();
        let (place, mut writer) = fifo(&is_over);
        // More than a pipe holds.
        let content: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        let sent = content.clone();
        let write = std::thread::spawn(move || writer.write_all(&sent));
        let mut got = Vec::new();
        File::open(place.path().join("fifo")).unwrap().read_to_end(&mut got).unwrap();
        write.join().unwrap().unwrap();
        assert!(got == content);
        let (place, mut writer) = fifo(&is_over);
        let end = std::thread::spawn(move || writer.flush());
        assert_eq!(File::open(place.path().join("fifo")).unwrap().read_to_end(&mut got).unwrap(), 0);
        end.join().unwrap().unwrap();
    }

    #[test]
    fn pipe_that_waits_can_be_given_up() {
        let is_over = Arc::new(AtomicBool::new(false));
        let (place, mut writer) = fifo(&is_over);
        let write = std::thread::spawn(move || writer.write_all(b"nobody reads this"));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(write.join().unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        drop(place);
        // A reader that reads nothing.
        let is_over = Arc::new(AtomicBool::new(false));
        let (place, mut writer) = fifo(&is_over);
        let write = std::thread::spawn(move || writer.write_all(&vec![0; 1_000_000]));
        let _reader = File::open(place.path().join("fifo")).unwrap();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(write.join().unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
