//! Opening a path without ever leaving the directory it starts from.
//!
//! Two implementations give the same answers: `openat2(2)` (Linux 5.6), and a walk that opens one
//! component at a time with `O_NOFOLLOW` and reads links itself. The walk serves older kernels,
//! sandboxes that refuse `openat2` (older Docker seccomp profiles answer `EPERM`), and systems that
//! never had it. It is also the slow path for a link that leaves its hop but not the root.
//!
//! Invariant: nothing outside the root is opened, whoever renames things meanwhile, unless the caller
//! says [`Links::Anywhere`]. The walk never asks the kernel for `..`: a directory moved away under us
//! would lead up another tree.

use super::{Kind, Links, Stat, name, stat_entry, stat_file};
use crate::retry;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;

/// Opens something only to look at it or pass through it: needs no read permission and, on a
/// device, has no effect.
#[cfg(target_os = "linux")]
pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Elsewhere the nearest is a read that cannot block.
#[cfg(not(target_os = "linux"))]
pub(super) const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// As [`LOOK`], for a directory on the way.
pub(super) const PASS: OFlags = LOOK.union(OFlags::DIRECTORY);

/// Links followed in one resolution; Linux's own `MAXSYMLINKS`.
const LINKS_MAX: usize = 40;

/// Directories opened again because links said `..`: bounds what a hostile tree can cost. The one
/// answer that differs from the kernel's, for links of a shape nobody makes in earnest.
const STEPS_BACK_MAX: usize = 10_000;

/// Opens `parts` below `root`, by whichever implementation this system has.
pub(super) fn open(root: BorrowedFd<'_>, parts: &[&[u8]], links: Links, flags: OFlags) -> io::Result<OwnedFd> {
    if links == Links::Anywhere {
        return anywhere(root, parts, flags);
    }
    #[cfg(target_os = "linux")]
    if kernel_resolves() {
        return by_kernel(root, parts, links, flags);
    }
    by_walk(root, parts, links, flags)
}

/// Opens `parts` as the system resolves them, wherever links lead.
fn anywhere(root: BorrowedFd<'_>, parts: &[&[u8]], flags: OFlags) -> io::Result<OwnedFd> {
    let (passed, last) = name::hops(parts);
    let mut here: Option<OwnedFd> = None;
    for hop in &passed {
        here = Some(plain_hop(here.as_ref().map_or(root, AsFd::as_fd), hop, PASS)?);
    }
    Ok(plain_hop(here.as_ref().map_or(root, AsFd::as_fd), &last, flags)?)
}

fn plain_hop(at: BorrowedFd<'_>, hop: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    retry(|| rustix::fs::openat(at, hop, flags, Mode::empty()))
}

/// Asked once: a later `EPERM` must mean the file's permissions, never the sandbox's.
#[cfg(target_os = "linux")]
pub(super) fn kernel_resolves() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        if crate::PORTABLE {
            return false;
        }
        let probe = kernel_hop(rustix::fs::CWD, b".", Links::Refuse, PASS);
        !matches!(probe, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
    })
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
pub(super) fn kernel_resolves() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn kernel_hop(at: BorrowedFd<'_>, hop: &[u8], links: Links, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let confined = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let resolve = match links {
        Links::Refuse => confined | ResolveFlags::NO_SYMLINKS,
        // Those that lead anywhere come by another way.
        Links::Beneath | Links::Anywhere => confined,
    };
    retry(|| rustix::fs::openat2(at, hop, flags, Mode::empty(), resolve))
}

/// Resolution by `openat2`, one call for each hop (one in all, for nearly every path).
#[cfg(target_os = "linux")]
pub(super) fn by_kernel(root: BorrowedFd<'_>, parts: &[&[u8]], links: Links, flags: OFlags) -> io::Result<OwnedFd> {
    let (passed, last) = name::hops(parts);
    let mut here: Option<OwnedFd> = None;
    let hops = passed.iter().map(|hop| (hop, PASS));
    for (hop, want) in hops.chain([(&last, flags)]) {
        let at = here.as_ref().map_or(root, AsFd::as_fd);
        match kernel_hop(at, hop, links, want) {
            Ok(fd) => here = Some(fd),
            // The kernel confines a link to the hop it is in; it may still be beneath the root.
            Err(Errno::XDEV) if !passed.is_empty() => return by_walk(root, parts, links, flags),
            // A rename elsewhere kept the kernel from proving a `..` safe (openat2(2), EAGAIN).
            Err(Errno::AGAIN) => return by_walk(root, parts, links, flags),
            Err(error) => return Err(error.into()),
        }
    }
    here.ok_or_else(|| Errno::NOENT.into())
}

/// What one component turned out to be.
enum Component {
    Opened(OwnedFd),
    Link(Vec<u8>),
}

/// A walk from a root, one component at a time, with nothing but `openat` and `readlinkat`.
struct PathWalk<'a> {
    root: BorrowedFd<'a>,
    /// What is still to be walked, the next component last.
    todo: Vec<Vec<u8>>,
    /// The link-free names from the root to `here`: the way back when a link says `..`.
    done: Vec<Vec<u8>>,
    here: Option<OwnedFd>,
    moved_up: bool,
    links_left: usize,
    steps_left: usize,
}

impl<'a> PathWalk<'a> {
    fn new(root: BorrowedFd<'a>, parts: &[&[u8]]) -> Self {
        let todo = parts.iter().rev().map(|part| part.to_vec()).collect();
        let (links_left, steps_left) = (LINKS_MAX, STEPS_BACK_MAX);
        Self { root, todo, done: Vec::new(), here: None, moved_up: false, links_left, steps_left }
    }

    /// The directory that has been reached.
    fn at(&self) -> BorrowedFd<'_> {
        self.here.as_ref().map_or(self.root, AsFd::as_fd)
    }

    /// The next component, which is a name; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let part = self.todo.pop();
            if part.as_deref() == Some(b"..") {
                self.done.pop().ok_or(Errno::XDEV)?;
                self.moved_up = true;
                continue;
            }
            // Only now, so that a run of `..` costs one descent.
            if std::mem::take(&mut self.moved_up) {
                self.steps_left = self.steps_left.checked_sub(self.done.len()).ok_or(Errno::LOOP)?;
                self.here = descend(self.root, &self.done)?;
            }
            return Ok(part);
        }
    }

    fn enter(&mut self, directory: OwnedFd, name: Vec<u8>) {
        self.here = Some(directory);
        self.done.push(name);
    }

    fn follow(&mut self, target: &[u8]) -> Result<(), Errno> {
        self.links_left = self.links_left.checked_sub(1).ok_or(Errno::LOOP)?;
        push_target(&mut self.todo, target)
    }
}

/// Resolution one component at a time.
pub(super) fn by_walk(root: BorrowedFd<'_>, parts: &[&[u8]], links: Links, flags: OFlags) -> io::Result<OwnedFd> {
    let mut walk = PathWalk::new(root, parts);
    loop {
        let Some(part) = walk.next()? else {
            // Nothing was named, or a link ended in `..`: the directory reached is what was meant.
            return Ok(retry(|| rustix::fs::openat(walk.at(), ".", flags, Mode::empty()))?);
        };
        let last = walk.todo.is_empty();
        match step(walk.at(), &part, if last { flags } else { PASS })? {
            Component::Opened(fd) if last => return Ok(fd),
            Component::Opened(fd) => walk.enter(fd, part),
            Component::Link(_) if links == Links::Refuse => return Err(Errno::LOOP.into()),
            Component::Link(target) => walk.follow(&target)?,
        }
    }
}

/// What stands at a path, links beneath the root followed, and the names that lead there without a link. Both come from
/// one walk, so that no rename meanwhile can make them speak of two different things. Where nothing stands, the names
/// are those that were typed behind what there is.
pub(super) fn look(root: BorrowedFd<'_>, parts: &[&[u8]]) -> io::Result<(Option<Stat>, Vec<Vec<u8>>)> {
    let mut walk = PathWalk::new(root, parts);
    // Of the link that is being followed: where it stands, its name, and how much was typed behind it.
    let mut link: Option<(Vec<Vec<u8>>, Vec<u8>, usize)> = None;
    loop {
        link = link.filter(|(.., behind)| walk.todo.len() > *behind);
        let Some(part) = walk.next()? else { return Ok((Some(stat_file(walk.at())?), walk.done)) };
        let met = if walk.todo.is_empty() { glance(walk.at(), &part) } else { pass(walk.at(), &part) };
        match met {
            Ok(Met::There(stat)) => {
                walk.done.push(part);
                return Ok((Some(stat), walk.done));
            }
            Ok(Met::Directory(fd)) => walk.enter(fd, part),
            Ok(Met::Link(target)) => {
                link.get_or_insert_with(|| (walk.done.clone(), part, walk.todo.len()));
                walk.follow(&target)?;
            }
            Err(Errno::NOENT) => {
                let (mut names, name, behind) = link.unwrap_or((walk.done, part, walk.todo.len()));
                walk.todo.truncate(behind);
                names.push(name);
                names.extend(walk.todo.into_iter().rev());
                return Ok((None, names));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// What [`look`] met.
enum Met {
    There(Stat),
    Directory(OwnedFd),
    Link(Vec<u8>),
}

fn pass(at: BorrowedFd<'_>, part: &[u8]) -> Result<Met, Errno> {
    Ok(match step(at, part, PASS)? {
        Component::Opened(fd) => Met::Directory(fd),
        Component::Link(target) => Met::Link(target),
    })
}

fn glance(at: BorrowedFd<'_>, part: &[u8]) -> Result<Met, Errno> {
    let stat = stat_entry(at, part).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if stat.kind != Kind::Symlink {
        return Ok(Met::There(stat));
    }
    Ok(Met::Link(rustix::fs::readlinkat(at, part, Vec::new())?.into_bytes()))
}

fn step(at: BorrowedFd<'_>, part: &[u8], flags: OFlags) -> Result<Component, Errno> {
    let flags = flags | OFlags::NOFOLLOW;
    let opened = retry(|| rustix::fs::openat(at, part, flags, Mode::empty()));
    let error = match opened {
        // O_PATH with O_NOFOLLOW opens the link itself instead of failing.
        Ok(fd) if !is_link(fd.as_fd(), flags)? => return Ok(Component::Opened(fd)),
        Ok(_) => Errno::LOOP,
        Err(error) => error,
    };
    // A link is ELOOP, or ENOTDIR when a directory was wanted; so is a plain file, which
    // readlinkat then answers with EINVAL.
    if error != Errno::LOOP && error != Errno::NOTDIR {
        return Err(error);
    }
    match rustix::fs::readlinkat(at, part, Vec::new()) {
        Ok(target) => Ok(Component::Link(target.into_bytes())),
        Err(_) => Err(error),
    }
}

#[cfg(target_os = "linux")]
fn is_link(fd: BorrowedFd<'_>, flags: OFlags) -> Result<bool, Errno> {
    // Where a directory is wanted, a link is ENOTDIR.
    if !flags.contains(OFlags::PATH) || flags.contains(OFlags::DIRECTORY) {
        return Ok(false);
    }
    use rustix::fs::FileType;
    let stat = rustix::fs::fstat(fd)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(not(target_os = "linux"))]
fn is_link(_: BorrowedFd<'_>, _: OFlags) -> Result<bool, Errno> {
    Ok(false)
}

/// Puts a link's target in front of what is still to be walked.
fn push_target(todo: &mut Vec<Vec<u8>>, target: &[u8]) -> Result<(), Errno> {
    if target.first() == Some(&b'/') {
        return Err(Errno::XDEV);
    }
    let parts = target.split(|&byte| byte == b'/');
    let meant = parts.filter(|part| !part.is_empty() && *part != b".");
    todo.extend(meant.rev().map(<[u8]>::to_vec));
    Ok(())
}

fn descend(root: BorrowedFd<'_>, names: &[Vec<u8>]) -> Result<Option<OwnedFd>, Errno> {
    let mut here: Option<OwnedFd> = None;
    for part in names {
        let at = here.as_ref().map_or(root, AsFd::as_fd);
        let flags = PASS | OFlags::NOFOLLOW;
        here = Some(retry(|| rustix::fs::openat(at, part, flags, Mode::empty()))?);
    }
    Ok(here)
}
