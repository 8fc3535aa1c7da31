//! What is not opened, because opening it would do something: FIFOs, sockets and devices. They are made here, and held
//! while they are given their attributes: what comes to stand at their names meanwhile gets none.

use std::io;
use std::os::fd::AsRawFd as _;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;

use super::name::single;
use super::stat::{Stat, StatSource, stat_at};
use super::xattrs::{names, value};
use super::{Dir, Kind};
use crate::retry;

/// An entry of a directory, held without being opened; whatever it is.
pub struct HeldEntry {
    fd: OwnedFd,
}

impl Dir {
    /// Makes a FIFO, a socket or a device of these numbers, with permissions for the owner alone.
    ///
    /// # Errors
    /// With [`io::ErrorKind::InvalidInput`] of another kind; with [`io::ErrorKind::PermissionDenied`] where devices may
    /// not be made, and others of the system.
    pub fn make_special(&self, name: &[u8], kind: Kind, (major, minor): (u32, u32)) -> io::Result<()> {
        let kind = match kind {
            Kind::Fifo => FileType::Fifo,
            Kind::Socket => FileType::Socket,
            Kind::BlockDevice => FileType::BlockDevice,
            Kind::CharDevice => FileType::CharacterDevice,
            Kind::File | Kind::Dir | Kind::Symlink | Kind::Unknown => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let device = rustix::fs::makedev(major, minor);
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::mknodat(&self.fd, single(name)?, kind, mode, device)?)
    }

    /// Holds an entry, of a link the link itself: until this is dropped it is not freed, also when it has lost its
    /// name. It can neither be read nor written through it. Elsewhere than on Linux nothing can be held so.
    ///
    /// # Errors
    /// Those of the system.
    #[cfg(target_os = "linux")]
    pub fn hold(&self, name: &[u8]) -> io::Result<HeldEntry> {
        let file = self.open_name(name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(HeldEntry { fd: file.into() })
    }

    /// See above.
    #[cfg(not(target_os = "linux"))]
    pub fn hold(&self, _: &[u8]) -> io::Result<HeldEntry> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl HeldEntry {
    /// What it is.
    ///
    /// # Errors
    /// Those of the system.
    pub fn stat(&self) -> io::Result<Stat> {
        use rustix::fd::AsFd as _;
        stat_at(self.fd.as_fd(), b"", AtFlags::EMPTY_PATH, StatSource::Cached)
    }

    /// Gives it an owner and a group; `None` leaves the one that it has.
    ///
    /// # Errors
    /// As [`super::set_owner`].
    pub fn set_owner(&self, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        Ok(retry(|| rustix::fs::chownat(&self.fd, c"", owner, group, flags))?)
    }

    /// Sets its permissions (the low 12 bits of `mode`); on a link it is an error.
    ///
    /// # Errors
    /// Those of the system; with [`io::ErrorKind::NotFound`] where there is no `/proc`.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode((mode & 0o7777) as _);
        Ok(retry(|| rustix::fs::chmod(self.path(), mode))?)
    }

    /// Tells `each` the name of every extended attribute.
    ///
    /// # Errors
    /// As [`super::extended_attributes`]; with [`io::ErrorKind::NotFound`] where there is no `/proc`.
    pub fn extended_attributes(&self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        names(each, |list| rustix::fs::listxattr(self.path(), list))
    }

    /// The value of an extended attribute; `None` where it has none of that name.
    ///
    /// # Errors
    /// As [`Self::extended_attributes`].
    pub fn extended_attribute(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        value(|value| rustix::fs::getxattr(self.path(), name, value))
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// As [`Self::extended_attributes`].
    pub fn set_extended_attribute(&self, name: &[u8], value: &[u8]) -> io::Result<()> {
        Ok(retry(|| rustix::fs::setxattr(self.path(), name, value, XattrFlags::empty()))?)
    }

    /// Removes an extended attribute, if it has it.
    ///
    /// # Errors
    /// As [`Self::extended_attributes`].
    pub fn remove_extended_attribute(&self, name: &[u8]) -> io::Result<()> {
        match retry(|| rustix::fs::removexattr(self.path(), name)) {
            Err(Errno::NODATA) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Leads to what is held, whatever its name has become.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_of_what_is_held_and_not_of_what_has_its_name() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient(place.path()).unwrap();
        dir.make_special(b"fifo", Kind::Fifo, (0, 0)).unwrap();
        let held = dir.hold(b"fifo").unwrap();
        let made = held.stat().unwrap();
        assert_eq!((made.kind, made.mode & 0o7077), (Kind::Fifo, 0), "{made:?}");
        std::fs::rename(place.path().join("fifo"), place.path().join("other")).unwrap();
        std::fs::write(place.path().join("fifo"), b"x").unwrap();
        let before = dir.stat_at(b"fifo").unwrap().mode;
        held.set_mode(0o1642).unwrap();
        assert_eq!((dir.stat_at(b"other").unwrap().mode, dir.stat_at(b"fifo").unwrap().mode), (0o1642, before));
        held.set_owner(None, None).unwrap();
        assert_eq!(held.extended_attribute(b"user.none").unwrap_or_default(), None);
        dir.make_special(b"socket", Kind::Socket, (0, 0)).unwrap();
        assert_eq!(dir.stat_at(b"socket").unwrap().kind, Kind::Socket);
        let wrong = dir.make_special(b"file", Kind::File, (0, 0)).unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
        assert!(dir.make_special(b"../x", Kind::Fifo, (0, 0)).is_err(), "a name is one component");
        assert!(dir.hold(b"nothing").is_err());
    }
}
