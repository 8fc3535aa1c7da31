//! Opening a path without ever leaving the directory it starts from.
//!
//! Two implementations give the same answers: `openat2(2)` (Linux 5.6), and a walk that opens one
//! component at a time with `O_NOFOLLOW` and reads links itself. The walk serves older kernels,
//! sandboxes that refuse `openat2` (older Docker seccomp profiles answer `EPERM`), and systems that
//! never had it. It is also the slow path for a link that leaves its hop but not the root.
//!
//! Invariant: nothing outside the root is opened, whoever renames things meanwhile. The walk never
//! asks the kernel for `..`: a directory moved away under us would lead up another tree.

use super::{Links, name};
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
    #[cfg(target_os = "linux")]
    if kernel_resolves() {
        return by_kernel(root, parts, links, flags);
    }
    by_walk(root, parts, links, flags)
}

/// Asked once: a later `EPERM` must mean the file's permissions, never the sandbox's.
#[cfg(target_os = "linux")]
pub(super) fn kernel_resolves() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        let probe = kernel_hop(rustix::fs::CWD, b".", Links::Refuse, PASS);
        !matches!(probe, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
    })
}

#[cfg(target_os = "linux")]
fn kernel_hop(at: BorrowedFd<'_>, hop: &[u8], links: Links, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let confined = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let resolve = match links {
        Links::Refuse => confined | ResolveFlags::NO_SYMLINKS,
        Links::Beneath => confined,
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
enum Step {
    Opened(OwnedFd),
    Link(Vec<u8>),
}

/// Resolution one component at a time, with nothing but `openat` and `readlinkat`.
pub(super) fn by_walk(root: BorrowedFd<'_>, parts: &[&[u8]], links: Links, flags: OFlags) -> io::Result<OwnedFd> {
    let mut todo: Vec<Vec<u8>> = parts.iter().rev().map(|part| part.to_vec()).collect();
    // The link-free names from the root to `here`: the way back when a link says `..`.
    let mut done: Vec<Vec<u8>> = Vec::new();
    let mut here: Option<OwnedFd> = None;
    let mut moved_up = false;
    let mut links_left = LINKS_MAX;
    let mut steps_left = STEPS_BACK_MAX;
    loop {
        let part = todo.pop();
        if part.as_deref() == Some(b"..") {
            done.pop().ok_or(Errno::XDEV)?;
            moved_up = true;
            continue;
        }
        // Only now, so that a run of `..` costs one descent.
        if std::mem::take(&mut moved_up) {
            steps_left = steps_left.checked_sub(done.len()).ok_or(Errno::LOOP)?;
            here = descend(root, &done)?;
        }
        let at = here.as_ref().map_or(root, AsFd::as_fd);
        let Some(part) = part else {
            // Nothing was named, or a link ended in `..`: the directory reached is what was meant.
            return Ok(retry(|| rustix::fs::openat(at, ".", flags, Mode::empty()))?);
        };
        let last = todo.is_empty();
        match step(at, &part, if last { flags } else { PASS })? {
            Step::Opened(fd) if last => return Ok(fd),
            Step::Opened(fd) => {
                here = Some(fd);
                done.push(part);
            }
            Step::Link(_) if links == Links::Refuse => return Err(Errno::LOOP.into()),
            Step::Link(target) => {
                links_left = links_left.checked_sub(1).ok_or(Errno::LOOP)?;
                push_target(&mut todo, &target)?;
            }
        }
    }
}

fn step(at: BorrowedFd<'_>, part: &[u8], flags: OFlags) -> Result<Step, Errno> {
    let flags = flags | OFlags::NOFOLLOW;
    let opened = retry(|| rustix::fs::openat(at, part, flags, Mode::empty()));
    let error = match opened {
        // O_PATH with O_NOFOLLOW opens the link itself instead of failing.
        Ok(fd) if !is_link(fd.as_fd(), flags)? => return Ok(Step::Opened(fd)),
        Ok(_) => Errno::LOOP,
        Err(error) => error,
    };
    // A link is ELOOP, or ENOTDIR when a directory was wanted; so is a plain file, which
    // readlinkat then answers with EINVAL.
    if error != Errno::LOOP && error != Errno::NOTDIR {
        return Err(error);
    }
    match rustix::fs::readlinkat(at, part, Vec::new()) {
        Ok(target) => Ok(Step::Link(target.into_bytes())),
        Err(_) => Err(error),
    }
}

#[cfg(target_os = "linux")]
fn is_link(fd: BorrowedFd<'_>, flags: OFlags) -> Result<bool, Errno> {
    if !flags.contains(OFlags::PATH) {
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
