//! Owners and groups of files.

use std::io;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Gid, Uid};

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
    /// The same of an entry; of a link, of the link itself.
    ///
    /// # Errors
    /// As [`set_owner`].
    pub fn set_owner(&self, name: &[u8], owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        let (name, owner, group) = (single(name)?, owner.map(Uid::from_raw), group.map(Gid::from_raw));
        Ok(retry(|| rustix::fs::chownat(&self.fd, name, owner, group, AtFlags::SYMLINK_NOFOLLOW))?)
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
        dir.set_owner(b"f", None, Some(99)).unwrap();
        dir.set_owner(b"link", Some(7), Some(8)).unwrap();
        assert_eq!((owners(&path), owners(&link)), ((4321, 99), (7, 8)));
        dir.set_own_owner(Some(5), Some(6)).unwrap();
        assert_eq!(owners(place.path()), (5, 6));
        assert!(dir.set_owner(b"../f", Some(1), None).is_err(), "a name is one component");
        set_owner(&file, None, None).unwrap();
        assert_eq!(owners(&path), (4321, 99));
    }
}
