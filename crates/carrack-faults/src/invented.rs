//! A tree of as many empty files as are asked for, which stand nowhere: each name and attribute is made up when the
//! kernel asks. For what must hold whatever the number of files.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, MountOption, OpenFlags, ReplyAttr, ReplyDirectory, ReplyDirectoryPlus, ReplyEntry,
    ReplyOpen, Request, Session,
};

/// Files in each directory.
const IN_EACH: u64 = 1000;
/// The first number of a directory; the root is 1.
const FIRST: u64 = 2;
/// How long the kernel may keep what it was told.
const KEPT: Duration = Duration::from_secs(60);
const THREADS: usize = 4;

/// The mounted tree; unmounted when dropped.
pub struct InventedTree {
    _session: BackgroundSession,
}

impl InventedTree {
    /// Mounts a tree of `files` files at the directory `at`. Every `refused`-th of them cannot be opened (0: all can).
    pub fn mount(at: &Path, files: u64, refused: u64) -> io::Result<Self> {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("carrack-invented".into()), MountOption::RO];
        config.acl = fuser::SessionACL::All;
        config.n_threads = Some(THREADS);
        Ok(Self { _session: Session::new(Invented { files, refused }, at, &config)?.spawn()? })
    }
}

struct Invented {
    files: u64,
    refused: u64,
}

impl Invented {
    fn directories(&self) -> u64 {
        self.files.div_ceil(IN_EACH)
    }

    /// The number of the first file.
    fn first_file(&self) -> u64 {
        FIRST + self.directories()
    }

    fn attributes(&self, number: u64) -> Option<FileAttr> {
        let is_file = number >= self.first_file();
        let exists = (INodeNo::ROOT.0..self.first_file() + self.files).contains(&number);
        let time = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        exists.then_some(FileAttr {
            ino: INodeNo(number),
            size: 0,
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: SystemTime::UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o644 } else { 0o755 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Number and name of the entry at a place in a directory; `None` behind the last.
    fn entry(&self, directory: u64, place: u64) -> Option<(u64, String)> {
        if directory == INodeNo::ROOT.0 {
            return (place < self.directories()).then(|| (FIRST + place, format!("d{place:06}")));
        }
        let file = (directory - FIRST) * IN_EACH + place;
        (place < IN_EACH && file < self.files).then(|| (self.first_file() + file, format!("f{place:03}")))
    }

    fn number(&self, directory: u64, name: &OsStr) -> Option<u64> {
        let place = name.to_str()?.get(1..)?.parse().ok()?;
        let (number, real) = self.entry(directory, place)?;
        (name == OsStr::new(&real)).then_some(number)
    }
}

impl Filesystem for Invented {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Names come with their attributes: one question for a thousand files.
        let _ = config.add_capabilities(InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_PARALLEL_DIROPS);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.number(parent.0, name).and_then(|number| self.attributes(number)) {
            Some(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(number.0) {
            Some(attributes) => reply.attr(&KEPT, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let file = number.0.saturating_sub(self.first_file());
        match self.refused {
            0 => reply.opened(FileHandle(0), FopenFlags::empty()),
            every if file % every == every - 1 => reply.error(Errno::EACCES),
            _ => reply.opened(FileHandle(0), FopenFlags::empty()),
        }
    }

    fn readdir(&self, _: &Request, directory: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut place = offset;
        while let Some((number, name)) = self.entry(directory.0, place) {
            let kind = if number >= self.first_file() { FileType::RegularFile } else { FileType::Directory };
            place += 1;
            if reply.add(INodeNo(number), place, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(&self, _: &Request, directory: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let mut place = offset;
        while let Some((number, name)) = self.entry(directory.0, place) {
            let Some(attributes) = self.attributes(number) else { break };
            place += 1;
            if reply.add(INodeNo(number), place, name, &KEPT, &attributes, Generation(0)) {
                break;
            }
        }
        reply.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::can_mount;

    #[test]
    fn invented_tree_has_as_many_files_as_asked_for() {
        if !can_mount("a FUSE file system") {
            return;
        }
        let sandbox = tempfile::tempdir().unwrap();
        let _tree = InventedTree::mount(sandbox.path(), 2_500, 1_000).unwrap();
        let list =
            |path: &Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let files: Vec<_> = list(sandbox.path()).iter().flat_map(|directory| list(directory)).collect();
        assert_eq!(files.len(), 2_500);
        let refused = files.iter().filter(|file| std::fs::File::open(file).is_err()).count();
        assert_eq!(refused, 2);
        assert!(std::fs::metadata(sandbox.path().join("d000002/f500")).is_err());
    }
}
