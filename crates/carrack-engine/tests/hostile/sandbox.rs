//! A root that a peer may write below, and canaries beside it that nobody may touch.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use carrack_engine::node::{NodeConfig, NodeRoot};
use tempfile::TempDir;

/// What stands in the files outside: must never be told, and never change.
pub const CANARY: &[u8] = b"canary: 8c1f0d7e, tell nobody";

/// A marker that nobody holds: what `gc` is for.
pub const LEFTOVER: &str = ".carrack-0000000000000000.marker";

/// `root`, and `outside` beside it.
pub struct Sandbox {
    top: TempDir,
    before: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    inode: u64,
    mode: u32,
    mtime: (i64, i64),
    links: u64,
    content: Option<Vec<u8>>,
}

/// In memory where there is such a file system: what is tested here is not the disk.
pub fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Sandbox {
    pub fn new() -> Self {
        let top = directory();
        std::fs::create_dir(top.path().join("root")).unwrap();
        let outside = top.path().join("outside");
        std::fs::create_dir_all(outside.join("private")).unwrap();
        // The last looks like something that a transfer has left.
        for canary in ["canary", "private/canary", LEFTOVER] {
            std::fs::write(outside.join(canary), CANARY).unwrap();
        }
        let mut sandbox = Self { top, before: BTreeMap::new() };
        sandbox.before = sandbox.look();
        sandbox
    }

    /// Where the peer may write.
    pub fn root(&self) -> PathBuf {
        self.top.path().join("root")
    }

    /// Where it may not.
    pub fn outside(&self) -> PathBuf {
        self.top.path().join("outside")
    }

    /// Everything but what is below the root: names, modes, times, content.
    fn look(&self) -> BTreeMap<PathBuf, Seen> {
        let mut seen = BTreeMap::new();
        let mut waiting = vec![self.top.path().to_path_buf()];
        while let Some(path) = waiting.pop() {
            let facts = std::fs::symlink_metadata(&path).unwrap();
            if path == self.root() {
                // What is made below it changes its time; that it is still the same directory is what counts.
                assert!(facts.is_dir());
                continue;
            }
            if facts.is_dir() {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            let content = facts.is_file().then(|| std::fs::read(&path).unwrap());
            let mtime = (facts.mtime(), facts.mtime_nsec());
            seen.insert(path, Seen { inode: facts.ino(), mode: facts.mode(), mtime, links: facts.nlink(), content });
        }
        seen
    }

    /// Nothing outside was touched, and no unfinished file is left inside.
    pub fn assert_untouched(&self) {
        assert_eq!(self.look(), self.before, "something outside the root was touched");
        let names = self.names();
        assert!(names.iter().all(|name| !name.contains(".part")), "left behind: {names:?}");
    }

    /// Names below the root, links not followed.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut waiting = vec![self.root()];
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(&directory).unwrap() {
                let entry = entry.unwrap();
                names.push(entry.path().strip_prefix(self.root()).unwrap().display().to_string());
                if entry.file_type().unwrap().is_dir() {
                    waiting.push(entry.path());
                }
            }
        }
        names.sort();
        names
    }

    /// Does something hostile, and looks whether it had an effect outside.
    pub fn around<T>(&self, act: impl FnOnce(&Path) -> T) -> T {
        let result = act(&self.root());
        self.assert_untouched();
        result
    }
}

/// Paths that no peer may send, and what is said of each.
pub fn hostile_paths() -> Vec<(Vec<u8>, &'static str)> {
    let mut paths: Vec<(Vec<u8>, &str)> = [
        ("", "is empty"),
        ("/", "is absolute"),
        ("/etc/cron.d/x", "is absolute"),
        ("..", "component . or .."),
        ("../outside/canary", "component . or .."),
        ("a/../../outside/canary", "component . or .."),
        ("a/..", "component . or .."),
        (".", "component . or .."),
        ("./a", "component . or .."),
        ("a/./b", "component . or .."),
        ("a//b", "empty component"),
        ("a/", "empty component"),
        ("outside\0", "NUL byte"),
        ("a\0/../b", "NUL byte"),
    ]
    .map(|(path, why)| (path.as_bytes().to_vec(), why))
    .to_vec();
    paths.push((vec![b'n'; 300], "too long"));
    paths.push(([b"a/".to_vec(), vec![b'n'; 300], b"/b".to_vec()].concat(), "too long"));
    paths
}

/// A node that serves a directory at a free port, which anybody may use; its key is in a directory of its owner.
pub fn node_config(root: &Path, own: &Path) -> NodeConfig {
    carrack_faults::node::node_config(NodeRoot::Directory(root.to_path_buf()), own)
}
