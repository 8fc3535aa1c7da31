//! Owners and groups of files.

use std::io;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};

use super::Dir;
use super::name::single;
use crate::retry;

/// Gives something open an owner and a group; `None` leaves the one that it has. The kernel takes the set-user-id and
/// set-group-id bits away by that.
///
/// # Errors
/// With [`io::ErrorKind::PermissionDenied`] where this process may not.
pub fn set_owner(open: impl AsFd, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
    let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
    Ok(retry(|| rustix::fs::fchown(&open, owner, group))?)
}

impl Dir {
    /// The same of a symbolic link, and of nothing that has come to stand in its place.
    ///
    /// # Errors
    /// As [`set_owner`]; when it is no link.
    pub fn set_link_owner(&self, name: &[u8], owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = single(name)?;
        let link = retry(|| rustix::fs::openat(&self.fd, name, flags, Mode::empty()))?;
        if FileType::from_raw_mode(rustix::fs::fstat(&link)?.st_mode) != FileType::Symlink {
            return Err(io::Error::other("something else has come to stand in the link's place"));
        }
        let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        Ok(retry(|| rustix::fs::chownat(&link, c"", owner, group, flags))?)
    }

    /// The same of the directory itself.
    ///
    /// # Errors
    /// As [`set_owner`].
    pub fn set_own_owner(&self, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        set_owner(&self.fd, owner, group)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::dir::stat_path;
    use crate::host::user_id;

    #[test]
    fn owners_are_of_what_is_named_and_never_of_where_a_link_leads() {
        if user_id() != 0 {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let (path, link) = (place.path().join("f"), place.path().join("link"));
        let file = File::create(&path).unwrap();
        symlink("f", &link).unwrap();
        let dir = Dir::open_ambient(place.path()).unwrap();
        let owners = |path| stat_path(path, false).map(|stat| (stat.uid, stat.gid)).unwrap();
        set_owner(&file, Some(4321), None).unwrap();
        assert_eq!(owners(&path), (4321, 0));
        set_owner(&file, None, Some(99)).unwrap();
        dir.set_link_owner(b"link", Some(7), Some(8)).unwrap();
        assert!(dir.set_link_owner(b"f", Some(1), None).is_err(), "it is no link");
        assert_eq!((owners(&path), owners(&link)), ((4321, 99), (7, 8)));
        dir.set_own_owner(Some(5), Some(6)).unwrap();
        assert_eq!(owners(place.path()), (5, 6));
        assert!(dir.set_link_owner(b"../link", Some(1), None).is_err(), "a name is one component");
        set_owner(&file, None, None).unwrap();
        assert_eq!(owners(&path), (4321, 99));
    }
}
