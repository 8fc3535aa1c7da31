//! Access control lists of NFS version 4, as a server keeps them: every item has one. Setting permissions makes it anew
//! of these, and what is made in a directory whose list is inherited begins with that.

use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use rustix::io::Errno;

/// By which name clients know it.
pub const NAME: &str = "system.nfs4_acl";
/// By which it is kept in the backing directory.
const KEPT: &str = "user.nfs4_acl";
const FILE_INHERIT: u32 = 0x1;
const LONGEST: usize = 4096;

/// The list of an item. One that nobody has set says that everybody may do what the permissions allow.
///
/// # Errors
/// Those of the backing file system.
pub fn list(path: &Path) -> io::Result<Vec<u8>> {
    let mut value = vec![0; LONGEST];
    match getxattr(path, KEPT, &mut value[..]) {
        Ok(length) => {
            value.truncate(length);
            Ok(value)
        }
        Err(Errno::NODATA) => {
            Ok([&[0, 0, 0, 1][..], &[0; 8], &[0, 0x16, 0, 0xa9, 0, 0, 0, 9], b"EVERYONE@\0\0\0"].concat())
        }
        Err(error) => Err(error.into()),
    }
}

/// Sets it.
///
/// # Errors
/// Those of the backing file system.
pub fn set(path: &Path, value: &[u8]) -> io::Result<()> {
    Ok(setxattr(path, KEPT, value, XattrFlags::empty())?)
}

/// Permissions have been set: the list says the same.
pub fn made_of_permissions(path: &Path) {
    // There may be none.
    let _ = removexattr(path, KEPT);
}

/// Something has been made in a directory.
///
/// # Errors
/// Those of the backing file system.
pub fn inherit(path: &Path) -> io::Result<()> {
    let parent = list(path.parent().unwrap_or(path))?;
    let flags = parent.get(8..12).and_then(|flags| flags.try_into().ok()).map_or(0, u32::from_be_bytes);
    if flags & FILE_INHERIT == 0 { Ok(()) } else { set(path, &parent) }
}
