//! Checks on names before they reach the kernel, and the cutting of long paths into hops.

use std::io;

/// A hop is shorter than this: half of Linux's `PATH_MAX`, which bounds the path of one call.
#[cfg(target_os = "linux")]
const HOP_BYTES: usize = 2048;
/// The same for macOS and the BSDs, whose `PATH_MAX` is 1,024.
#[cfg(not(target_os = "linux"))]
const HOP_BYTES: usize = 1000;

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// Accepts a name that can only mean an entry of the directory it is used in.
pub(super) fn single(name: &[u8]) -> io::Result<&[u8]> {
    if name.is_empty() || name == b"." || name == b".." {
        return Err(invalid("a path here has no empty name, `.` or `..` in it"));
    }
    if name.contains(&b'/') {
        return Err(invalid("a file name may not contain `/`"));
    }
    if name.contains(&0) {
        return Err(invalid("a file name may not contain a NUL byte"));
    }
    Ok(name)
}

/// Splits a relative path; empty components and `.` mean nothing and are dropped, so an empty
/// result is the directory itself.
pub(super) fn components(rel: &[u8]) -> io::Result<Vec<&[u8]>> {
    if rel.first() == Some(&b'/') {
        return Err(invalid("the path must be relative"));
    }
    let parts = rel.split(|&byte| byte == b'/');
    parts.filter(|part| !part.is_empty() && *part != b".").map(single).collect()
}

/// Joins components into paths the kernel takes in one call: those to pass through, and the last.
pub(super) fn hops(parts: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut passed = Vec::new();
    let mut hop: Vec<u8> = Vec::new();
    for part in parts {
        if !hop.is_empty() && hop.len() + 1 + part.len() >= HOP_BYTES {
            passed.push(std::mem::take(&mut hop));
        }
        if !hop.is_empty() {
            hop.push(b'/');
        }
        hop.extend_from_slice(part);
    }
    if hop.is_empty() {
        hop.push(b'.');
    }
    (passed, hop)
}
