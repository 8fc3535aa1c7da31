//! The names of extended attributes.

use std::io;

use rustix::fd::AsFd;
use rustix::io::Errno;

use super::Dir;
use super::name::single;
use crate::retry;

/// Bytes of names that the first call has room for: almost always all of them.
const USUAL_BYTES: usize = 512;
/// The kernel's bound on all names of one file.
const MOST_BYTES: usize = 64 << 10;

/// Tells `each` the name of every extended attribute of something open, and every access control list of it, as far as
/// this process may see them.
///
/// # Errors
/// With [`io::ErrorKind::Unsupported`] where there can be none, and others of the system.
pub fn extended_attributes(open: impl AsFd, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    names(each, |list| rustix::fs::flistxattr(&open, list))
}

impl Dir {
    /// The same of an entry; of a link, of the link itself. Neither is opened.
    ///
    /// # Errors
    /// As [`extended_attributes`]; with [`io::ErrorKind::NotFound`] where there is no `/proc`.
    pub fn extended_attributes(&self, name: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        // The kernel's call for this (`listxattrat`) is of 2025; the descriptor's link leads to the same directory.
        let mut path = format!("/proc/self/fd/{}/", std::os::fd::AsRawFd::as_raw_fd(&self.fd)).into_bytes();
        path.extend_from_slice(single(name)?);
        names(each, |list| rustix::fs::llistxattr(&path[..], list))
    }
}

fn names(each: &mut dyn FnMut(&[u8]), list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<()> {
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

    use rustix::fs::{XattrFlags, fsetxattr};

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
