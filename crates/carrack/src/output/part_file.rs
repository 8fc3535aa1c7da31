//! A file that gets its name when it is complete: written as `FILE.part`, synced, renamed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A file that is being written.
pub struct PartFile {
    out: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
}

impl PartFile {
    /// Begins one.
    ///
    /// # Errors
    /// What the system says to creating `FILE.part`.
    pub fn create(path: &[u8]) -> io::Result<Self> {
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        let mut part = path.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        // Never through a link that somebody left under this name: in a directory like /tmp it need not be ours.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        Ok(Self { out: BufWriter::new(file), part, path })
    }

    /// Forgets what was written.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn start_over(&mut self) -> io::Result<()> {
        self.out.rewind()?;
        self.out.get_ref().set_len(0)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// Those of the system calls; then it has none.
    pub fn publish(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        fs::rename(&self.part, &self.path)?;
        sync_directory(&self.path)
    }

    /// Leaves it as `FILE.part`, which is answered.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn leave(mut self) -> io::Result<PathBuf> {
        self.out.flush()?;
        Ok(self.part)
    }

    /// Removes it.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn discard(self) -> io::Result<()> {
        fs::remove_file(&self.part)
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The rename itself has to survive a power cut.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
