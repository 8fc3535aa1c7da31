//! A file that gets its name when it is complete: written as `FILE.part`, synced, renamed.
//!
//! A link is followed to its file, as a shell's redirection does. What is no regular file (a device, a pipe, a
//! terminal) is never replaced: what it shall get is kept in a file without a name, and written to it at the end.

use data_encoding::HEXLOWER;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::stream::{self, Out};

/// A file that is being written.
pub struct OutputFile {
    out: BufWriter<File>,
    goal: Goal,
}

/// What becomes of it.
enum Goal {
    /// It is called `part`, and will be called `path`.
    Name { part: PathBuf, path: PathBuf },
    /// It has no name, and is written there.
    Stream(Out),
}

/// Links that are followed before it must be a circle, as by the system.
const LINKS_FOLLOWED: usize = 40;

impl OutputFile {
    /// Begins a part file, or opens what is written in place.
    ///
    /// # Errors
    /// What the system says to creating `FILE.part`, or to opening what is written in place.
    pub fn create(path: &[u8]) -> io::Result<Self> {
        let (path, is_replaced) = followed(PathBuf::from(OsString::from_vec(path.to_vec())))?;
        if !is_replaced {
            let file = carrack_sys::standard::open_in_place(&path, stream::is_over)?;
            return Self::spooled(stream::patient(file));
        }
        let mut part = path.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        remove_old(&part)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        Ok(Self { out: BufWriter::new(file), goal: Goal::Name { part, path } })
    }

    /// Begins one for standard output, which takes nothing back.
    ///
    /// # Errors
    /// When there is no standard output, or no room for what it shall get.
    pub fn standard_output() -> io::Result<Self> {
        Self::spooled(stream::output()?)
    }

    fn spooled(goal: Out) -> io::Result<Self> {
        Ok(Self { out: BufWriter::new(spool()?), goal: Goal::Stream(goal) })
    }

    /// Forgets what was written.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn start_over(&mut self) -> io::Result<()> {
        self.out.rewind()?;
        self.out.get_ref().set_len(0)
    }

    /// Gives it its name, or writes it to where it goes.
    ///
    /// # Errors
    /// Those of the system calls; then it has none.
    pub fn publish(mut self) -> io::Result<()> {
        self.out.flush()?;
        match self.goal {
            Goal::Name { part, path } => {
                self.out.get_ref().sync_all()?;
                fs::rename(&part, &path)?;
                sync_directory(&path)
            }
            Goal::Stream(mut to) => {
                self.out.rewind()?;
                io::copy(self.out.get_mut(), &mut to).and_then(|_| to.flush())
            }
        }
    }

    /// Leaves it as `FILE.part`, which is answered; what was kept for a stream is written to it.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn leave(mut self) -> io::Result<Option<PathBuf>> {
        match self.goal {
            Goal::Name { part, .. } => self.out.flush().map(|()| Some(part)),
            Goal::Stream(_) => self.publish().map(|()| None),
        }
    }

    /// Removes the unfinished file.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn discard(self) -> io::Result<()> {
        match self.goal {
            Goal::Name { part, .. } => fs::remove_file(part),
            Goal::Stream(_) => Ok(()),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What a path leads to through links, and whether that is replaced: a regular file, or a name that does not exist.
fn followed(mut path: PathBuf) -> io::Result<(PathBuf, bool)> {
    for _ in 0..LINKS_FOLLOWED {
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((path, true)),
            found => found?.file_type(),
        };
        if found.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !found.is_symlink() {
            return Ok((path, found.is_file()));
        }
        // The system's own rules of following (in a directory like /tmp the link need not be ours) hold here, too.
        match fs::metadata(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // What stands for an open descriptor (/dev/stdout, /dev/fd/3) is that descriptor, even
        // if it has a name elsewhere.
        let parent = parent(&path);
        if fs::canonicalize(parent)?.starts_with("/proc") {
            return Ok((path, false));
        }
        path = parent.join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Makes room for a part file. Never through a link that somebody left under this name, and
/// what is no file is not ours.
fn remove_old(part: &Path) -> io::Result<()> {
    match fs::symlink_metadata(part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_file() || found.is_symlink() => fs::remove_file(part),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// A file without a name.
fn spool() -> io::Result<File> {
    spool_in(&std::env::temp_dir())
}

/// A file without a name, on the file system of another.
///
/// # Errors
/// Those of the system calls.
#[cfg(feature = "terminal")]
pub fn spool_beside(path: &[u8]) -> io::Result<File> {
    spool_in(parent(&PathBuf::from(OsString::from_vec(path.to_vec()))))
}

fn spool_in(directory: &Path) -> io::Result<File> {
    let mut random = [0; 8];
    carrack_sys::host::random_bytes(&mut random)?;
    let path = directory.join(format!("carrack-output-{}", HEXLOWER.encode(&random)));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// The rename itself has to survive a power cut.
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(parent(path))?.sync_all()
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn written(path: &Path, text: &str) -> io::Result<()> {
        let mut file = OutputFile::create(path.as_os_str().as_encoded_bytes())?;
        file.write_all(text.as_bytes())?;
        file.publish()
    }

    #[test]
    fn link_is_followed_to_its_file_or_makes_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("below")).expect("made");
        for (link, to) in [("one", "below/file"), ("two", "one"), ("new", "below/absent")] {
            symlink(to, at(link)).expect("linked");
        }
        fs::write(at("below/file"), "old").expect("written");
        written(&at("two"), "through two links").expect("published");
        written(&at("new"), "made").expect("published");
        assert_eq!(fs::read(at("below/file")).expect("read"), b"through two links");
        assert_eq!(fs::read(at("below/absent")).expect("read"), b"made");
        assert!(["one", "two", "new"].iter().all(|link| at(link).is_symlink()));
        assert_eq!(fs::read_dir(at("below")).expect("listed").count(), 2);
        symlink("circle", at("circle")).expect("linked");
        written(&at("circle"), "").expect_err("a circle");
        assert_eq!(written(&at("below"), "").expect_err("a directory").kind(), io::ErrorKind::IsADirectory);
        fs::create_dir(at("file.part")).expect("made");
        written(&at("file"), "").expect_err("somebody's directory");
    }

    #[test]
    fn pipe_gets_what_was_written_and_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let (pipe, link) = (directory.path().join("pipe"), directory.path().join("link"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        symlink("pipe", &link).expect("linked");
        for path in [&pipe, &link] {
            let from = pipe.clone();
            let reader = std::thread::spawn(move || {
                let mut got = String::new();
                File::open(from).and_then(|mut file| file.read_to_string(&mut got)).map(|_| got)
            });
            written(path, "lines").expect("written");
            assert_eq!(reader.join().expect("no panic").expect("read"), "lines");
        }
        assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 2);
    }
}
