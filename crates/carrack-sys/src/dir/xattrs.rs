//! Extended attributes: their names and values.

use std::ffi::{CStr, CString};
use std::io;
use std::sync::OnceLock;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::Dir;
use super::name::single;
use crate::{PORTABLE, retry};

/// Bytes of names that the first call has room for: almost always all of them.
const USUAL_BYTES: usize = 512;
/// The kernel's bound on all names of one file, and on a value.
const MOST_BYTES: usize = 64 << 10;

/// Tells `each` the name of every extended attribute of something open, and every access control list of it, as far as
/// this process may see them.
///
/// # Errors
/// With [`io::ErrorKind::Unsupported`] where there can be none, and others of the system.
pub fn extended_attributes(open: impl AsFd, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    names(each, |list| rustix::fs::flistxattr(&open, list))
}

/// The value of an extended attribute of something open; `None` where it has none of that name.
///
/// # Errors
/// As [`extended_attributes`].
pub fn extended_attribute(open: impl AsFd, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    value(|value| rustix::fs::fgetxattr(&open, name, value))
}

/// Sets an extended attribute of something open.
///
/// # Errors
/// With [`io::ErrorKind::Unsupported`] where there can be none, and others of the system.
pub fn set_extended_attribute(open: impl AsFd, name: &[u8], value: &[u8]) -> io::Result<()> {
    Ok(retry(|| rustix::fs::fsetxattr(&open, name, value, XattrFlags::empty()))?)
}

/// Removes an extended attribute of something open, if it has it.
///
/// # Errors
/// As [`set_extended_attribute`].
pub fn remove_extended_attribute(open: impl AsFd, name: &[u8]) -> io::Result<()> {
    match retry(|| rustix::fs::fremovexattr(&open, name)) {
        Err(Errno::NODATA) => Ok(()),
        removed => Ok(removed?),
    }
}

impl Dir {
    /// The same of an entry; of a link, of the link itself. Neither is opened.
    ///
    /// # Errors
    /// As [`extended_attributes`]; before Linux 6.13, with [`io::ErrorKind::NotFound`] where there is no `/proc`.
    pub fn extended_attributes(&self, name: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        if has_listxattrat() {
            let name = CString::new(single(name)?)?;
            return names(each, |list| listxattrat(self.fd.as_fd(), &name, list));
        }
        let path = self.entry_path(name)?;
        names(each, |list| rustix::fs::llistxattr(&path[..], list))
    }

    /// The value of an extended attribute of an entry; `None` where it has none of that name. No link is followed, and
    /// nothing opened.
    ///
    /// # Errors
    /// As [`Dir::extended_attributes`].
    pub fn extended_attribute(&self, name: &[u8], attribute: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let path = self.entry_path(name)?;
        value(|value| rustix::fs::lgetxattr(&path[..], attribute, value))
    }

    /// The kernel's calls for entries of directories (`getxattrat`) are of 2025; the descriptor's link leads to the
    /// same directory.
    fn entry_path(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        let mut path = format!("/proc/self/fd/{}/", std::os::fd::AsRawFd::as_raw_fd(&self.fd)).into_bytes();
        path.extend_from_slice(single(name)?);
        Ok(path)
    }
}

/// Whether this system has `listxattrat` (Linux 6.13) and lets it through. Asked once, of a name that nothing has.
fn has_listxattrat() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let nothing = listxattrat(rustix::fs::CWD, c"", &mut []);
        !PORTABLE && !matches!(nothing, Err(Errno::NOSYS | Errno::PERM))
    })
}

/// `listxattrat(2)`. Neither libc nor rustix wraps it; its number is the same on these architectures.
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
#[allow(unsafe_code)]
fn listxattrat(at: BorrowedFd<'_>, name: &CStr, list: &mut [u8]) -> rustix::io::Result<usize> {
    use std::os::fd::AsRawFd;
    const LISTXATTRAT: libc::c_long = 465;
    let (raw, flags) = (at.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: the descriptor is borrowed and the name NUL-terminated for the whole call, which writes to the list alone
    // and no more than its length; each argument is passed in the register width that the kernel reads.
    let done = unsafe { libc::syscall(LISTXATTRAT, raw, name.as_ptr(), flags, list.as_mut_ptr(), list.len()) };
    match usize::try_from(done) {
        Ok(length) => Ok(length),
        Err(_) => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn listxattrat(_: BorrowedFd<'_>, _: &CStr, _: &mut [u8]) -> rustix::io::Result<usize> {
    Err(Errno::NOSYS)
}

pub(super) fn value(get: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Option<Vec<u8>>> {
    let mut usual = [0; USUAL_BYTES];
    match retry(|| get(&mut usual)) {
        Ok(length) => Ok(Some(usual[..length].to_vec())),
        Err(Errno::NODATA) => Ok(None),
        Err(Errno::RANGE) => {
            let mut more = vec![0; MOST_BYTES];
            match retry(|| get(&mut more)) {
                Ok(length) => {
                    more.truncate(length);
                    Ok(Some(more))
                }
                // It has gone meanwhile.
                Err(Errno::NODATA) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn names(
    each: &mut dyn FnMut(&[u8]),
    list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
) -> io::Result<()> {
    let mut usual = [0; USUAL_BYTES];
    let mut more = Vec::new();
    let found = match retry(|| list(&mut usual)) {
        Ok(length) => &usual[..length],
        Err(Errno::RANGE) => {
            more.resize(MOST_BYTES, 0);
            let length = retry(|| list(&mut more))?;
            &more[..length]
        }
        Err(error) => return Err(error.into()),
    };
    found.split(|byte| *byte == 0).filter(|name| !name.is_empty()).for_each(each);
    Ok(())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs::File;

    use rustix::fs::fsetxattr;

    use super::*;

    fn collected(list: impl FnOnce(&mut dyn FnMut(&[u8])) -> io::Result<()>) -> Vec<String> {
        let mut names = Vec::new();
        list(&mut |name| names.push(String::from_utf8(name.to_vec()).unwrap())).unwrap();
        names.retain(|name| name.starts_with("user."));
        names.sort_unstable();
        names
    }

    fn of_both(dir: &Dir, name: &str, file: &File) -> Vec<String> {
        let open = collected(|each| extended_attributes(file, each));
        assert_eq!(open, collected(|each| dir.extended_attributes(name.as_bytes(), each)));
        open
    }

    #[test]
    fn extended_attributes_are_named_however_long_the_list_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        let (file, dir) = (File::create(&path).unwrap(), Dir::open_ambient(place.path()).unwrap());
        assert_eq!(of_both(&dir, "f", &file), Vec::<String>::new());
        let mut expected = Vec::new();
        // More than there is room for at first.
        for number in 0..12 {
            let name = format!("user.{number:02}{}", "x".repeat(80));
            match fsetxattr(&file, &*name, b"v", XattrFlags::empty()) {
                // Not every temporary directory keeps them.
                Err(Errno::NOTSUP) => return,
                set => set.unwrap(),
            }
            expected.push(name);
        }
        assert!(expected.iter().map(String::len).sum::<usize>() > USUAL_BYTES);
        assert_eq!(of_both(&dir, "f", &file), expected);
    }

    #[test]
    fn values_are_set_told_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let (path, name) = (place.path().join("f"), b"user.a");
        let (file, dir) = (File::create(&path).unwrap(), Dir::open_ambient(place.path()).unwrap());
        for length in [0, 3, USUAL_BYTES, USUAL_BYTES + 1, 3000] {
            let value = vec![7; length];
            match set_extended_attribute(&file, name, &value) {
                // Not every temporary directory keeps them.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
                set => set.unwrap(),
            }
            assert_eq!(extended_attribute(&file, name).unwrap().as_ref(), Some(&value), "{length}");
            assert_eq!(dir.extended_attribute(b"f", name).unwrap(), Some(value));
        }
        remove_extended_attribute(&file, name).unwrap();
        remove_extended_attribute(&file, name).unwrap();
        assert_eq!(
            (extended_attribute(&file, name).unwrap(), dir.extended_attribute(b"f", name).unwrap()),
            (None, None)
        );
        assert!(dir.extended_attribute(b"../f", name).is_err(), "a name is one component");
    }

    #[test]
    fn extended_attributes_are_those_of_a_link_and_never_of_where_it_leads() {
        let place = tempfile::tempdir().unwrap();
        let file = File::create(place.path().join("f")).unwrap();
        std::os::unix::fs::symlink("f", place.path().join("link")).unwrap();
        let dir = Dir::open_ambient(place.path()).unwrap();
        if fsetxattr(&file, "user.a", b"v", XattrFlags::empty()).is_err() {
            return;
        }
        dir.extended_attributes(b"link", &mut |name| assert!(!name.starts_with(b"user."))).unwrap();
        assert!(dir.extended_attributes(b"../f", &mut |_| {}).is_err(), "a name is one component");
    }
}
