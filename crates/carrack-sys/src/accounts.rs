//! Users and groups by number and by name, as this host's name service knows them.

use std::ffi::{CStr, CString, c_char, c_int};
use std::{io, ptr};

/// Bytes of an account's texts that the first call has room for.
const USUAL_BYTES: usize = 1 << 10;
/// And at most: a group may have many members.
const MOST_BYTES: usize = 1 << 20;

/// The name of a user; `None` where this host has none of that number.
///
/// # Errors
/// When it cannot tell: a directory service does not answer, or there are no descriptors left.
#[allow(unsafe_code)]
pub fn user_name(id: u32) -> io::Result<Option<Vec<u8>>> {
    let ask = |user: *mut libc::passwd, text: *mut c_char, room, found| {
        // SAFETY: `user` and `found` lead to places for a result, `text` to `room` writable bytes.
        unsafe { libc::getpwuid_r(id, user, text, room, found) }
    };
    asked(ask, |user: &libc::passwd| text_of(user.pw_name)).map(Option::flatten)
}

/// The name of a group.
///
/// # Errors
/// As [`user_name`].
#[allow(unsafe_code)]
pub fn group_name(id: u32) -> io::Result<Option<Vec<u8>>> {
    let ask = |group: *mut libc::group, text: *mut c_char, room, found| {
        // SAFETY: as in `user_name`.
        unsafe { libc::getgrgid_r(id, group, text, room, found) }
    };
    asked(ask, |group: &libc::group| text_of(group.gr_name)).map(Option::flatten)
}

/// The number of the user of a name; `None` where there is none.
///
/// # Errors
/// As [`user_name`].
#[allow(unsafe_code)]
pub fn user_of(name: &[u8]) -> io::Result<Option<u32>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let ask = |user: *mut libc::passwd, text: *mut c_char, room, found| {
        // SAFETY: as in `user_name`; the name ends with a zero.
        unsafe { libc::getpwnam_r(name.as_ptr(), user, text, room, found) }
    };
    asked(ask, |user: &libc::passwd| user.pw_uid)
}

/// The number of the group of a name.
///
/// # Errors
/// As [`user_name`].
#[allow(unsafe_code)]
pub fn group_of(name: &[u8]) -> io::Result<Option<u32>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let ask = |group: *mut libc::group, text: *mut c_char, room, found| {
        // SAFETY: as in `user_of`.
        unsafe { libc::getgrnam_r(name.as_ptr(), group, text, room, found) }
    };
    asked(ask, |group: &libc::group| group.gr_gid)
}

/// Asks with more room while there is too little.
#[allow(unsafe_code)]
fn asked<T, R>(
    ask: impl Fn(*mut T, *mut c_char, usize, *mut *mut T) -> c_int,
    answer: impl Fn(&T) -> R,
) -> io::Result<Option<R>> {
    let mut texts: Vec<c_char> = vec![0; USUAL_BYTES];
    loop {
        let mut account = std::mem::MaybeUninit::<T>::uninit();
        let mut found = ptr::null_mut();
        match ask(account.as_mut_ptr(), texts.as_mut_ptr(), texts.len(), &raw mut found) {
            // SAFETY: `found` is null, or leads to `account`, which the call has filled, with texts in `texts`.
            0 => return Ok(unsafe { found.as_ref() }.map(&answer)),
            libc::ERANGE if texts.len() < MOST_BYTES => texts.resize(texts.len() * 4, 0),
            libc::EINTR => {}
            // What several name services say of an account that there is not.
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

#[allow(unsafe_code)]
fn text_of(text: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: null, or a text with a zero at its end, in the memory that its account was asked with.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_known_by_number_and_by_name() {
        assert_eq!(user_name(0).unwrap().as_deref(), Some(&b"root"[..]));
        let daemon = group_of(b"daemon").unwrap().unwrap();
        assert_eq!(group_name(daemon).unwrap().as_deref(), Some(&b"daemon"[..]));
        let nobody = user_of(b"nobody").unwrap().unwrap();
        assert_eq!((user_of(b"root").unwrap(), user_name(nobody).unwrap()), (Some(0), Some(b"nobody".to_vec())));
        for name in [&b""[..], b"no such account", b"ro\0ot", &[b'x'; 100_000]] {
            assert_eq!((user_of(name).unwrap(), group_of(name).unwrap()), (None, None));
        }
        assert_eq!((user_name(u32::MAX - 7).unwrap(), group_name(u32::MAX - 7).unwrap()), (None, None));
    }
}
