//! What a fix reads and writes: kernel parameters, the files that set them at boot, and our own notes.

use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use carrack_engine::secrets::write_whole;
use carrack_sys::dir::{Dir, Links};

/// Whatever a fix touches. Every change that outlives the process is one call.
pub trait HostSettings {
    /// A kernel parameter, by its name with dots.
    ///
    /// # Errors
    /// That there is none of this name, or that it cannot be read.
    fn parameter(&self, name: &str) -> io::Result<String>;
    /// Sets it.
    ///
    /// # Errors
    /// What the kernel says.
    fn set_parameter(&mut self, name: &str, value: &str) -> io::Result<()>;
    /// The text of the drop-in, if it is there.
    ///
    /// # Errors
    /// Those of reading.
    fn drop_in(&self) -> io::Result<Option<String>>;
    /// Writes the drop-in, whole, or removes it.
    ///
    /// # Errors
    /// Those of writing; the old one stands then.
    fn set_drop_in(&mut self, text: Option<&str>) -> io::Result<()>;
    /// The labels of the notes that there are.
    ///
    /// # Errors
    /// Those of reading.
    fn labels(&self) -> io::Result<Vec<String>>;
    /// A note, by its label.
    ///
    /// # Errors
    /// That there is none, or those of reading.
    fn note(&self, label: &str) -> io::Result<String>;
    /// Writes a note, whole and to the disk, or removes it.
    ///
    /// # Errors
    /// Those of writing.
    fn set_note(&mut self, label: &str, text: Option<&str>) -> io::Result<()>;
}

/// The drop-in, which is read after everything else that ends in `.conf`: names are read in their order.
pub const DROP_IN: &str = "etc/sysctl.d/99-zz-carrack.conf";

/// This host, or a directory that stands for it.
pub struct ThisHost {
    root: PathBuf,
    notes: PathBuf,
}

impl ThisHost {
    /// `root` is `/` but for tests; `notes` is the directory of the notes.
    pub fn new(root: impl Into<PathBuf>, notes: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), notes: notes.into() }
    }

    fn parameter_file(&self, name: &str) -> io::Result<PathBuf> {
        let parts: Vec<&str> = name.split('.').collect();
        // A name is ours or comes from a note; neither may lead elsewhere.
        let is_name = |part: &&str| !part.is_empty() && !part.contains('/');
        if parts.len() < 2 || !parts.iter().all(is_name) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(self.root.join("proc/sys").join(parts.join("/")))
    }

    fn drop_in_file(&self) -> PathBuf {
        self.root.join(DROP_IN)
    }

    fn note_file(&self, label: &str) -> io::Result<PathBuf> {
        if !super::is_label(label) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(self.notes.join(format!("{label}.json")))
    }
}

fn if_any(read: io::Result<String>) -> io::Result<Option<String>> {
    match read {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

impl HostSettings for ThisHost {
    fn parameter(&self, name: &str) -> io::Result<String> {
        Ok(std::fs::read_to_string(self.parameter_file(name)?)?.trim().to_owned())
    }

    fn set_parameter(&mut self, name: &str, value: &str) -> io::Result<()> {
        // One call: the kernel takes a value whole. The file is not made where there is none.
        let mut file = std::fs::File::options().write(true).truncate(true).open(self.parameter_file(name)?)?;
        file.write_all(format!("{value}\n").as_bytes())
    }

    fn drop_in(&self) -> io::Result<Option<String>> {
        if_any(std::fs::read_to_string(self.drop_in_file()))
    }

    fn set_drop_in(&mut self, text: Option<&str>) -> io::Result<()> {
        let file = self.drop_in_file();
        let Some(directory) = file.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let new = directory.join(".99-zz-carrack.new");
        // What a killed one has left.
        remove(&new)?;
        let Some(text) = text else { return remove(&file).and_then(|()| sync(directory)) };
        std::fs::create_dir_all(directory)?;
        let written = std::fs::File::options().write(true).create_new(true).mode(0o644).open(&new);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        let written = written.and_then(|()| std::fs::rename(&new, &file));
        if written.is_err() {
            let _ = remove(&new);
        }
        written.and_then(|()| sync(directory))
    }

    fn labels(&self) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.notes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let labels = names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()));
        let mut labels: Vec<String> = labels.filter(|label| super::is_label(label)).collect();
        labels.sort();
        Ok(labels)
    }

    fn note(&self, label: &str) -> io::Result<String> {
        let name = self.note_file(label)?;
        let name = name.file_name().unwrap_or_default();
        let mut file = Dir::open_ambient(&self.notes)?.open_read(name.as_bytes(), Links::Refuse)?;
        let facts = file.metadata()?;
        if facts.uid() != carrack_sys::host::user_id() || facts.mode() & 0o022 != 0 {
            let why = "somebody else could have written the note: it belongs to another user, or others may write it";
            return Err(io::Error::other(why));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    fn set_note(&mut self, label: &str, text: Option<&str>) -> io::Result<()> {
        let file = self.note_file(label)?;
        match text {
            Some(text) => write_whole(&file, text.as_bytes()),
            None => remove(&file).and_then(|()| sync(&self.notes)),
        }
    }
}

/// Whether only root can have made what is at this path: it and all directories above belong to root, and nobody else
/// may write them. What is not there yet is made by whoever asks.
pub fn is_roots_alone(path: &Path) -> bool {
    path.ancestors().all(|above| match std::fs::symlink_metadata(above) {
        Ok(facts) => {
            let is_closed = facts.mode() & 0o022 == 0 || facts.mode() & 0o1000 != 0;
            facts.uid() == 0 && is_closed && !facts.is_symlink()
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    })
}

fn sync(directory: &Path) -> io::Result<()> {
    match Dir::open_ambient(directory) {
        Ok(directory) => directory.sync(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_keeps_parameters_drop_in_and_notes_where_they_belong() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("proc/sys/net/ipv4/tcp_rmem");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "4096\t131072\t6291456\n").unwrap();
        let mut host = ThisHost::new(root.path(), root.path().join("notes"));
        assert_eq!(host.parameter("net.ipv4.tcp_rmem").unwrap(), "4096\t131072\t6291456");
        host.set_parameter("net.ipv4.tcp_rmem", "1 2 3").unwrap();
        assert_eq!(host.parameter("net.ipv4.tcp_rmem").unwrap(), "1 2 3");
        // Where the kernel has none, none is made.
        assert_eq!(host.set_parameter("net.ipv4.none", "1").unwrap_err().kind(), io::ErrorKind::NotFound);
        for name in ["net", "", "net..x", "net./etc/passwd"] {
            assert!(host.set_parameter(name, "1").is_err() && host.parameter(name).is_err(), "{name}");
        }
        assert_eq!(host.drop_in().unwrap(), None);
        host.set_drop_in(Some("a = 1\n")).unwrap();
        host.set_drop_in(Some("a = 2\n")).unwrap();
        assert_eq!(host.drop_in().unwrap().as_deref(), Some("a = 2\n"));
        let names = std::fs::read_dir(root.path().join("etc/sysctl.d")).unwrap();
        assert_eq!(names.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), ["99-zz-carrack.conf"]);
        host.set_drop_in(None).unwrap();
        host.set_drop_in(None).unwrap();
        assert_eq!(host.drop_in().unwrap(), None);
        assert!(host.labels().unwrap().is_empty() && host.note("../x").is_err());
        host.set_note("first", Some("{}")).unwrap();
        assert_eq!((host.labels().unwrap(), host.note("first").unwrap()), (vec!["first".to_owned()], "{}".to_owned()));
        host.set_note("first", None).unwrap();
        assert!(host.labels().unwrap().is_empty());
    }

    #[test]
    fn note_that_somebody_else_could_have_written_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let notes = root.path().join("notes");
        let mut host = ThisHost::new(root.path(), &notes);
        host.set_note("one", Some("{}")).unwrap();
        let file = notes.join("one.json");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert!(host.note("one").unwrap_err().to_string().contains("somebody else"));
        std::fs::rename(&file, root.path().join("real")).unwrap();
        std::os::unix::fs::symlink(root.path().join("real"), &file).unwrap();
        assert!(host.note("one").is_err());
        if carrack_sys::host::user_id() != 0 {
            return;
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "{}").unwrap();
        assert!(host.note("one").is_ok() && is_roots_alone(&notes) && is_roots_alone(&notes.join("none/yet")));
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        assert!(host.note("one").unwrap_err().to_string().contains("somebody else"));
        std::os::unix::fs::chown(root.path(), Some(65534), None).unwrap();
        assert!(!is_roots_alone(&notes) && !is_roots_alone(&notes.join("none/yet")));
    }
}
