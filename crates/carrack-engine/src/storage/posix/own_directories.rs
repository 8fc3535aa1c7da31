//! Read-only directories of this user: whose they are may change them, and so lets itself write there.

use std::io;

use carrack_sys::dir::Dir;
use carrack_sys::host;

/// What its owner needs to write to a directory.
pub const OWNERS: u32 = 0o700;

/// Permissions of a directory, and which it is: its device and inode.
pub type Had = (u32, (u64, u64));

/// Lets its owner write to a directory, if that is this user; the permissions that it had, if they were changed.
///
/// # Errors
/// Those of the system.
pub fn let_owner_write(dir: &Dir) -> io::Result<Option<Had>> {
    let stat = dir.stat_self()?;
    let user = host::user_id();
    if user == 0 || stat.uid != user || stat.mode & OWNERS == OWNERS {
        return Ok(None);
    }
    dir.set_own_mode(stat.mode | OWNERS)?;
    Ok(Some((stat.mode, (stat.device, stat.inode))))
}

/// Changes names in a directory. One of this user's that is read-only is not while that is done.
///
/// # Errors
/// Those of the change.
pub fn writable<T>(dir: &Dir, change: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match change() {
        Err(denied) if denied.kind() == io::ErrorKind::PermissionDenied => {
            let Ok(had) = let_owner_write(dir) else { return Err(denied) };
            // Another thread may have let itself in meanwhile.
            let changed = change();
            had.into_iter().for_each(|(mode, _)| drop(dir.set_own_mode(mode)));
            changed
        }
        changed => changed,
    }
}

/// Removes something of our own from a directory that may have its attributes already: it keeps them.
///
/// # Errors
/// Those of the system.
pub fn remove_unseen(dir: &Dir, name: &[u8]) -> io::Result<()> {
    let before = dir.stat_self()?;
    let removed = writable(dir, || dir.unlink(name));
    // Refused where the directory is somebody else's, who then sees that something happened there.
    let _ = dir.set_own_times(before.mtime);
    removed
}
