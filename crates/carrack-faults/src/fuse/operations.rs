//! What the kernel asks, answered from the backing directory, with the faults in between.

use carrack_sys::sync::lock;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, CWD, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::tree::{Tree, folds_here, stored};
use super::{Call, Fault, Shared, lists};

/// A value, or how long it is where the caller has room for none.
fn tell_value(value: &[u8], size: u32, reply: ReplyXattr) {
    match size as usize {
        0 => reply.size(value.len() as u32),
        room if room < value.len() => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}

/// How long the kernel keeps names and attributes, if it does.
const KEPT: Duration = Duration::from_secs(3600);

/// `FS_CASEFOLD_FL`, among the flags that `FS_IOC_GETFLAGS` gives.
const CASEFOLD: u32 = 0x4000_0000;

type Listing = Vec<(u64, FileType, OsString)>;

/// The file system as the kernel sees it.
pub struct Operations {
    shared: Arc<Shared>,
    inner: Mutex<Inner>,
}

#[derive(Clone)]
struct Open {
    file: Arc<File>,
    path: PathBuf,
    number: u64,
}

struct Inner {
    tree: Tree,
    files: HashMap<u64, Open>,
    listings: HashMap<u64, Arc<Listing>>,
    next: u64,
}

impl Operations {
    pub fn new(backing: &Path, shared: Arc<Shared>) -> Self {
        let inner = Inner { tree: Tree::new(backing), files: HashMap::new(), listings: HashMap::new(), next: 1 };
        Self { shared, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    fn path(&self, number: INodeNo) -> PathBuf {
        self.lock().tree.path(number)
    }

    fn child(&self, parent: INodeNo, name: &OsStr) -> PathBuf {
        let parent = self.path(parent);
        stored(&parent, name, &self.shared.features)
    }

    /// A call that may only fail.
    fn enter(&self, call: Call, path: &Path) -> io::Result<()> {
        match self.shared.enter(call, path, None) {
            Some((Fault::Fail(error), _)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn file(&self, handle: FileHandle) -> io::Result<(Arc<File>, PathBuf)> {
        let open = self.lock().files.get(&handle.0).cloned();
        open.map(|open| (open.file, open.path)).ok_or_else(|| io::Error::from(rustix::io::Errno::BADF))
    }

    /// A descriptor of a file that somebody has open: the kernel asks by number, and the name may be gone.
    fn open_one(&self, number: INodeNo) -> Option<Arc<File>> {
        self.lock().files.values().find(|open| open.number == number.0).map(|open| Arc::clone(&open.file))
    }

    fn opened(&self, file: File, path: PathBuf) -> FileHandle {
        let mut inner = self.lock();
        let number = inner.tree.number(&path);
        let handle = inner.next;
        inner.next += 1;
        inner.files.insert(handle, Open { file: Arc::new(file), path, number });
        FileHandle(handle)
    }

    fn inherit_list(&self, path: &Path) -> io::Result<()> {
        if self.shared.features.nfs4_lists { lists::inherit(path) } else { Ok(()) }
    }

    /// The list of an item, if the name is that of one.
    fn list_of(&self, number: INodeNo, name: &OsStr) -> io::Result<Vec<u8>> {
        if !self.shared.features.nfs4_lists || name != lists::NAME {
            return Err(rustix::io::Errno::OPNOTSUPP.into());
        }
        lists::list(&self.path(number))
    }

    fn kept(&self) -> Duration {
        if self.shared.features.keeps_attributes { KEPT } else { Duration::ZERO }
    }

    fn flags(&self) -> FopenFlags {
        if self.shared.features.uncached { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() }
    }

    fn attributes(&self, path: &Path) -> io::Result<FileAttr> {
        let meta = std::fs::symlink_metadata(path)?;
        let number = self.lock().tree.number(path);
        Ok(self.describe(number, &meta))
    }

    fn describe(&self, number: u64, meta: &Metadata) -> FileAttr {
        let kept = |nanos| if self.shared.features.whole_seconds { 0 } else { nanos };
        let mtime = time(meta.mtime(), kept(meta.mtime_nsec()));
        let ctime = time(meta.ctime(), kept(meta.ctime_nsec()));
        FileAttr {
            ino: INodeNo(number),
            size: meta.len(),
            blocks: meta.blocks(),
            atime: time(meta.atime(), meta.atime_nsec()),
            mtime,
            ctime: if self.shared.features.no_change_times { mtime } else { ctime },
            crtime: UNIX_EPOCH,
            kind: FileType::from_std(meta.file_type()).unwrap_or(FileType::RegularFile),
            perm: (meta.permissions().mode() & 0o7777) as u16,
            nlink: meta.nlink() as u32,
            uid: meta.uid(),
            gid: meta.gid(),
            rdev: meta.rdev() as u32,
            blksize: 4096,
            flags: 0,
        }
    }

    fn do_write(&self, handle: FileHandle, offset: u64, data: &[u8]) -> io::Result<u32> {
        let (file, path) = self.file(handle)?;
        let count = match self.shared.enter(Call::Write, &path, Some((offset, data.len()))) {
            Some((Fault::Fail(error), _)) => return Err(error.into()),
            Some((Fault::Short(most), _)) => {
                let most = most.min(data.len());
                file.write_all_at(&data[..most], offset)?;
                most
            }
            // The size grows as if it were there: what is missing reads as zeros.
            Some((Fault::Lie, _)) => {
                let end = offset + data.len() as u64;
                if file.metadata()?.len() < end {
                    file.set_len(end)?;
                }
                data.len()
            }
            Some((Fault::Rot, _)) | None => {
                file.write_all_at(data, offset)?;
                data.len()
            }
        };
        Ok(count as u32)
    }

    fn do_read(&self, handle: FileHandle, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        let (file, path) = self.file(handle)?;
        let mut data = vec![0; size as usize];
        let count = carrack_sys::file::read_full_at(&file, &mut data, offset)?;
        data.truncate(count);
        match self.shared.enter(Call::Read, &path, Some((offset, count))) {
            Some((Fault::Fail(error), _)) => Err(error.into()),
            Some((Fault::Rot, at)) => {
                if let Some(byte) = data.get_mut((at - offset) as usize) {
                    *byte ^= 0x10;
                }
                Ok(data)
            }
            _ => Ok(data),
        }
    }

    fn do_create(&self, path: &Path, mode: u32, flags: i32) -> io::Result<(FileAttr, FileHandle)> {
        self.enter(Call::Create, path)?;
        self.refuse_direct(flags)?;
        let mut options = OpenOptions::new();
        // Read, too, whatever was asked: the kernel reads what surrounds a write that is no whole page.
        options.read(true).write(true).create(true).mode(mode);
        if flags & OFlags::EXCL.bits() as i32 != 0 {
            options.create_new(true);
        }
        let file = options.open(path)?;
        self.inherit_list(path)?;
        let attributes = self.attributes(path)?;
        Ok((attributes, self.opened(file, path.into())))
    }

    fn do_open(&self, path: &Path, flags: OpenFlags) -> io::Result<FileHandle> {
        self.enter(Call::Open, path)?;
        self.refuse_direct(flags.0)?;
        let writes = flags.acc_mode() != fuser::OpenAccMode::O_RDONLY;
        let truncates = flags.0 & OFlags::TRUNC.bits() as i32 != 0;
        let file = OpenOptions::new().read(true).write(writes).truncate(writes && truncates).open(path)?;
        Ok(self.opened(file, path.into()))
    }

    fn refuse_direct(&self, flags: i32) -> io::Result<()> {
        let asked = flags & OFlags::DIRECT.bits() as i32 != 0;
        if asked && self.shared.features.no_direct { Err(rustix::io::Errno::INVAL.into()) } else { Ok(()) }
    }

    fn do_rename(&self, from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
        self.enter(Call::Rename, to)?;
        if self.shared.features.no_rename_flags && !flags.is_empty() {
            return Err(rustix::io::Errno::INVAL.into());
        }
        let exchange = flags.contains(RenameFlags::RENAME_EXCHANGE);
        if self.shared.features.rename_refuses && !exchange && std::fs::symlink_metadata(to).is_ok() {
            return Err(rustix::io::Errno::EXIST.into());
        }
        let raw = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        rustix::fs::renameat_with(CWD, from, CWD, to, raw)?;
        let mut inner = self.lock();
        if exchange {
            inner.tree.removed(from);
            inner.tree.removed(to);
        } else {
            inner.tree.renamed(from, to);
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<u64> {
        self.enter(Call::List, path)?;
        let mut listing = Listing::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            listing.push((self.lock().tree.number(&entry.path()), kind, entry.file_name()));
        }
        let mut inner = self.lock();
        let handle = inner.next;
        inner.next += 1;
        inner.listings.insert(handle, Arc::new(listing));
        Ok(handle)
    }
}

fn time(seconds: i64, nanos: i64) -> SystemTime {
    let nanos = Duration::from_nanos(nanos.unsigned_abs());
    match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::from_secs(seconds) + nanos,
        Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + nanos,
    }
}

fn stamp(time: Option<TimeOrNow>, whole_seconds: bool) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => {
            let (tv_sec, nanos) = match time.duration_since(UNIX_EPOCH) {
                Ok(after) => (after.as_secs() as i64, after.subsec_nanos()),
                Err(before) => {
                    let before = before.duration();
                    let whole = before.subsec_nanos() == 0;
                    let seconds = -(before.as_secs() as i64) - i64::from(!whole);
                    (seconds, if whole { 0 } else { 1_000_000_000 - before.subsec_nanos() })
                }
            };
            Timespec { tv_sec, tv_nsec: if whole_seconds { 0 } else { nanos.into() } }
        }
    }
}

/// Answers with a result.
macro_rules! answer {
    ($reply:expr, $result:expr, $value:pat => $done:expr) => {
        match $result {
            Ok($value) => $done,
            Err(error) => $reply.error(Errno::from(std::io::Error::from(error))),
        }
    };
}

impl Filesystem for Operations {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        if self.shared.features.many_at_once {
            // A kernel that does not know it lets one name of a directory be looked up at a time.
            let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let path = self.child(parent, name);
        let found = self.enter(Call::Look, &path).and_then(|()| self.attributes(&path));
        answer!(reply, found, attributes => reply.entry(&self.kept(), &attributes, Generation(0)));
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let path = self.path(number);
        let found = self.enter(Call::Look, &path).and_then(|()| match self.open_one(number) {
            Some(file) => Ok(self.describe(number.0, &file.metadata()?)),
            None => Ok(self.describe(number.0, &std::fs::symlink_metadata(&path)?)),
        });
        answer!(reply, found, attributes => reply.attr(&self.kept(), &attributes));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // A descriptor in /proc leads to the file even if its name is gone.
        let open = self.open_one(number);
        let path = match &open {
            Some(file) => PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file.as_ref()))),
            None => self.path(number),
        };
        let follow = if open.is_some() { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let change = || -> io::Result<FileAttr> {
            self.enter(Call::Change, &self.path(number))?;
            if let Some(size) = size {
                OpenOptions::new().write(true).open(&path)?.set_len(size)?;
            }
            if let Some(mode) = mode {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode & 0o7777))?;
                if self.shared.features.nfs4_lists {
                    lists::made_of_permissions(&path);
                }
            }
            if uid.is_some() || gid.is_some() {
                std::os::unix::fs::lchown(&path, uid, gid)?;
            }
            if atime.is_some() || mtime.is_some() {
                let whole = self.shared.features.whole_seconds;
                let times = Timestamps { last_access: stamp(atime, false), last_modification: stamp(mtime, whole) };
                rustix::fs::utimensat(CWD, &path, &times, follow)?;
            }
            let meta = if open.is_some() { std::fs::metadata(&path)? } else { std::fs::symlink_metadata(&path)? };
            Ok(self.describe(number.0, &meta))
        };
        answer!(reply, change(), attributes => reply.attr(&self.kept(), &attributes));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer!(reply, self.list_of(number, name), value => tell_value(&value, size, reply));
    }

    fn setxattr(&self, _: &Request, number: INodeNo, name: &OsStr, value: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        let set = self.list_of(number, name).and_then(|_| lists::set(&self.path(number), value));
        answer!(reply, set, () => reply.ok());
    }

    fn listxattr(&self, _: &Request, _: INodeNo, size: u32, reply: ReplyXattr) {
        let names = if self.shared.features.nfs4_lists { Ok(lists::NAME) } else { Err(rustix::io::Errno::OPNOTSUPP) };
        answer!(reply, names, names => tell_value(&[names.as_bytes(), b"\0"].concat(), size, reply));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = std::fs::read_link(self.path(number));
        answer!(reply, target, target => reply.data(target.as_os_str().as_encoded_bytes()));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let path = self.child(parent, name);
        let make = || -> io::Result<FileAttr> {
            self.enter(Call::MakeDirectory, &path)?;
            std::fs::create_dir(&path)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode & 0o7777))?;
            self.inherit_list(&path)?;
            self.attributes(&path)
        };
        answer!(reply, make(), attributes => reply.entry(&self.kept(), &attributes, Generation(0)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.child(parent, name);
        let removed = self.enter(Call::Unlink, &path).and_then(|()| std::fs::remove_file(&path));
        answer!(reply, removed, () => { self.lock().tree.removed(&path); reply.ok() });
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.child(parent, name);
        answer!(reply, std::fs::remove_dir(&path), () => { self.lock().tree.removed(&path); reply.ok() });
    }

    fn symlink(&self, _: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let path = self.child(parent, name);
        let made = std::os::unix::fs::symlink(target, &path).and_then(|()| self.attributes(&path));
        answer!(reply, made, attributes => reply.entry(&self.kept(), &attributes, Generation(0)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (self.child(parent, name), self.child(new_parent, new_name));
        answer!(reply, self.do_rename(&from, &to, flags), () => reply.ok());
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let path = self.child(parent, name);
        let made = std::fs::hard_link(self.path(number), &path).and_then(|()| self.attributes(&path));
        answer!(reply, made, attributes => reply.entry(&self.kept(), &attributes, Generation(0)));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        answer!(reply, self.do_open(&self.path(number), flags), handle => reply.opened(handle, self.flags()));
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, flags: i32, reply: ReplyCreate) {
        let path = self.child(parent, name);
        answer!(reply, self.do_create(&path, mode, flags), (attributes, handle) => {
            reply.created(&self.kept(), &attributes, Generation(0), handle, self.flags());
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        answer!(reply, self.do_read(handle, offset, size), data => reply.data(&data));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        answer!(reply, self.do_write(handle, offset, data), count => reply.written(count));
    }

    fn flush(&self, _: &Request, number: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer!(reply, self.enter(Call::Flush, &self.path(number)), () => reply.ok());
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.lock().files.remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, number: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced = self.enter(Call::Sync, &self.path(number)).and_then(|()| self.file(handle)?.0.sync_data());
        answer!(reply, synced, () => reply.ok());
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let path = self.path(number);
        let synced = self.enter(Call::Sync, &path).and_then(|()| File::open(&path)?.sync_all());
        answer!(reply, synced, () => reply.ok());
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if self.shared.features.no_allocate {
            reply.error(Errno::EOPNOTSUPP);
            return;
        }
        let reserve = || -> io::Result<()> {
            self.enter(Call::Allocate, &self.path(number))?;
            let flags = rustix::fs::FallocateFlags::from_bits_retain(mode as u32);
            Ok(rustix::fs::fallocate(self.file(handle)?.0.as_ref(), flags, offset, length)?)
        };
        answer!(reply, reserve(), () => reply.ok());
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        answer!(reply, self.list(&self.path(number)), handle => {
            reply.opened(FileHandle(handle), FopenFlags::empty());
        });
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listing = self.lock().listings.get(&handle.0).cloned().unwrap_or_default();
        for (index, (number, kind, name)) in listing.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(*number), index as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.lock().listings.remove(&handle.0);
        reply.ok();
    }

    fn ioctl(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        command: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        let features = &self.shared.features;
        // The lower bytes are the call's: the rest is the size of what it gives, which differs.
        let is_getflags = command & 0xffff == u32::from_be_bytes([0, 0, b'f', 1]);
        if features.folds_case_in.is_none() || !is_getflags {
            reply.error(Errno::ENOTTY);
            return;
        }
        let flags = if folds_here(&self.path(number), features) { CASEFOLD } else { 0 };
        reply.ioctl(0, &flags.to_ne_bytes());
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        answer!(reply, rustix::fs::statvfs(self.path(number)), all => reply.statfs(
            all.f_blocks,
            all.f_bfree,
            all.f_bavail,
            all.f_files,
            all.f_ffree,
            all.f_bsize as u32,
            all.f_namemax as u32,
            all.f_frsize as u32,
        ));
    }
}
