//! Somebody who looks at a directory tree all the time, and is not content to find it right at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What a name may hold: a size and a BLAKE3 digest.
pub type Content = (u64, [u8; 32]);

/// What may be seen under each name, relative to the tree. A name that is not here may hold nothing.
pub type Allowed = BTreeMap<PathBuf, BTreeSet<Content>>;

/// The content of a file as [`Allowed`] wants it.
pub fn content(bytes: &[u8]) -> Content {
    (bytes.len() as u64, *blake3::hash(bytes).as_bytes())
}

/// Every regular file below a directory, with what it holds.
pub fn allow(tree: &Path) -> Allowed {
    let mut allowed = Allowed::new();
    for path in files(tree) {
        let seen = content(&std::fs::read(&path).unwrap());
        allowed.entry(path.strip_prefix(tree).unwrap().into()).or_default().insert(seen);
    }
    allowed
}

/// Watches until it is asked what it saw.
pub struct Watcher {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Contents looked at: as often as one was new.
    pub looks: u64,
    /// Times that the whole tree was gone through.
    pub rounds: u64,
    /// What nobody allowed.
    pub violations: Vec<String>,
}

impl Watcher {
    /// Begins to look at everything below `tree`, which need not exist yet. Part and marker files (hidden, `carrack` in
    /// the name) are nobody's business; so are links and directories.
    pub fn start(tree: &Path, allowed: Allowed) -> Self {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Seen::default())));
        let thread = {
            let (stop, seen, tree) = (Arc::clone(&stop), Arc::clone(&seen), tree.to_path_buf());
            std::thread::spawn(move || watch(&tree, &allowed, &stop, &seen))
        };
        Self { stop, seen, thread: Some(thread) }
    }

    /// What has been seen so far.
    pub fn so_far(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Looks once more, and says what was seen.
    pub fn end(mut self) -> Seen {
        self.stop();
        self.so_far()
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a name is that of a part or marker file.
pub fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') && name.contains("carrack-") && (name.ends_with(".part") || name.ends_with(".marker"))
}

/// Every regular file below a directory that is no part or marker file.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(path) = waiting.pop() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() && !is_hidden(&entry.path()) => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// Inode, size and times of a file: what they say it is has been looked at already.
type Known = (u64, u64, i64, i64, i64);

fn watch(tree: &Path, allowed: &Allowed, stop: &AtomicBool, seen: &Mutex<Seen>) {
    let mut known = BTreeMap::<PathBuf, Known>::new();
    loop {
        // Read before the round: the last one begins after the end was asked for.
        let is_last = stop.load(Ordering::Relaxed);
        for path in files(tree) {
            let name = path.strip_prefix(tree).unwrap_or(&path);
            // By the descriptor: the name may be another file's a moment later, and then that one is looked at next.
            let Ok(file) = File::open(&path) else { continue };
            let Ok(meta) = file.metadata() else { continue };
            if meta.file_type().is_fifo() {
                continue;
            }
            let now = (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ctime_nsec());
            if known.get(name) == Some(&now) {
                continue;
            }
            let found = read(file);
            let mut seen = seen.lock().unwrap();
            seen.looks += 1;
            match found {
                Ok(found) if allowed.get(name).is_some_and(|contents| contents.contains(&found)) => {
                    known.insert(name.into(), now);
                }
                Ok((size, _)) => seen.violations.push(format!("{}: {size} bytes that nobody sent", name.display())),
                Err(error) => seen.violations.push(format!("{}: {error}", name.display())),
            }
        }
        seen.lock().unwrap().rounds += 1;
        if is_last {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn read(mut file: File) -> std::io::Result<Content> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((size, *hasher.finalize().as_bytes())),
            count => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_passes_what_was_allowed_and_tells_the_rest_even_if_it_goes_again() {
        let directory = tempfile::tempdir().unwrap();
        let allowed: Allowed = [(PathBuf::from("a/b"), [content(b"old"), content(b"newer")].into())].into();
        let watcher = Watcher::start(directory.path(), allowed);
        let until = |so: &dyn Fn(&Seen) -> bool| {
            while !so(&watcher.so_far()) {
                std::thread::yield_now();
            }
        };
        std::fs::create_dir(directory.path().join("a")).unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let hidden = directory.path().join("a/.b.carrack-0.part");
            std::fs::write(&hidden, bytes).unwrap();
            std::fs::rename(hidden, directory.path().join(name)).unwrap();
        };
        put("a/b", b"old");
        until(&|seen| seen.looks == 1);
        put("a/b", b"newer");
        until(&|seen| seen.looks == 2);
        assert_eq!(watcher.so_far().violations, Vec::<String>::new());
        put("a/b", b"new");
        until(&|seen| !seen.violations.is_empty());
        put("a/b", b"old");
        put("c", b"old");
        let seen = watcher.end();
        assert!(seen.violations[0].starts_with("a/b: 3 bytes"), "{seen:?}");
        assert!(seen.violations.last().unwrap().starts_with("c: "), "{seen:?}");
    }
}
