//! The format of archives: ustar, with a record of pax before each entry that does not fit into it. Made as a stream:
//! nothing before an entry depends on what follows.

use std::fmt::Write as _;

use carrack_core::attributes::Time;

/// The unit of the format.
pub const BLOCK_BYTES: usize = 512;
/// The longest name in a header's own field.
const NAME_BYTES: usize = 100;
/// The largest number in a field of twelve bytes: eleven octal digits.
const NUMBER_MAX: u64 = (1 << 33) - 1;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A file of so many bytes, which follow the header.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link, and where it leads.
    Symlink(&'a [u8]),
}

/// The header of an entry, with a record before it where one is needed. A name may be any bytes but NUL.
pub fn header(name: &[u8], kind: Kind<'_>, mode: u32, mtime: Time) -> Vec<u8> {
    let mut name = name.to_vec();
    if kind == Kind::Directory && !name.ends_with(b"/") {
        name.push(b'/');
    }
    let (flag, size, link) = match kind {
        Kind::File(size) => (b'0', size, &b""[..]),
        Kind::Directory => (b'5', 0, &b""[..]),
        Kind::Symlink(target) => (b'2', 0, target),
    };
    let seconds = u64::try_from(mtime.seconds).ok().filter(|seconds| *seconds <= NUMBER_MAX);
    let mut records = Vec::new();
    if name.len() > NAME_BYTES {
        record(&mut records, "path", &name);
    }
    if link.len() > NAME_BYTES {
        record(&mut records, "linkpath", link);
    }
    if size > NUMBER_MAX {
        record(&mut records, "size", size.to_string().as_bytes());
    }
    if seconds.is_none() {
        record(&mut records, "mtime", mtime.seconds.to_string().as_bytes());
    }
    let mut bytes = Vec::new();
    if !records.is_empty() {
        if std::str::from_utf8(&name).is_err() || std::str::from_utf8(link).is_err() {
            let mut charset = Vec::new();
            record(&mut charset, "hdrcharset", b"BINARY");
            charset.append(&mut records);
            records = charset;
        }
        bytes.extend(block(b"././@PaxHeader", b'x', records.len() as u64, b"", 0o644, 0));
        bytes.extend_from_slice(&records);
        bytes.extend(padding(records.len() as u64));
    }
    bytes.extend(block(&name, flag, size, link, mode, seconds.unwrap_or(0)));
    bytes
}

/// What fills up the last block of a file of so many bytes.
pub fn padding(size: u64) -> Vec<u8> {
    let over = (size % BLOCK_BYTES as u64) as usize;
    vec![0; if over == 0 { 0 } else { BLOCK_BYTES - over }]
}

/// What stands behind the last entry. An archive without it was cut off.
pub fn end() -> Vec<u8> {
    vec![0; 2 * BLOCK_BYTES]
}

/// `LENGTH KEY=VALUE`, where the length counts its own digits, too.
fn record(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let digits = |number: usize| number.to_string().len();
    let mut length = rest + digits(rest);
    if digits(length) > digits(rest) {
        length = rest + digits(length);
    }
    records.extend_from_slice(format!("{length} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// One header. What is too long for its field is cut: a record has said it.
fn block(name: &[u8], flag: u8, size: u64, link: &[u8], mode: u32, seconds: u64) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let mut put = |offset: usize, bytes: &[u8]| block[offset..offset + bytes.len()].copy_from_slice(bytes);
    let octal = |number: u64, width: usize| {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = write!(text, "{number:0width$o}");
        text
    };
    put(0, &name[..name.len().min(NAME_BYTES)]);
    put(100, octal(u64::from(mode & 0o7777), 7).as_bytes());
    put(108, octal(0, 7).as_bytes());
    put(116, octal(0, 7).as_bytes());
    put(124, octal(if size > NUMBER_MAX { 0 } else { size }, 11).as_bytes());
    put(136, octal(seconds, 11).as_bytes());
    // The sum counts itself as spaces.
    put(148, b"        ");
    put(156, &[flag]);
    put(157, &link[..link.len().min(NAME_BYTES)]);
    put(257, b"ustar\x0000");
    let sum = block.iter().map(|byte| u64::from(*byte)).sum();
    let text = octal(sum, 6);
    block[148..154].copy_from_slice(text.as_bytes());
    block[154] = 0;
    block
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn time(seconds: i64) -> Time {
        Time::new(seconds, 0)
    }

    /// What the system's own `tar` makes of an archive.
    fn unpacked(archive: &[u8]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar");
        tar.args(["-x", "--same-permissions", "-f", "-", "-C"]).arg(directory.path()).env("LC_ALL", "C.UTF-8");
        let mut child = tar.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(archive).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        directory
    }

    #[test]
    fn archive_is_what_tar_unpacks() {
        let deep: Vec<u8> = [&b"d/"[..], &b"e".repeat(120), b"/", &b"f".repeat(120)].concat();
        let foreign = [&b"d/\xff\n"[..], &b"x".repeat(99)].concat();
        let target = b"../".repeat(60);
        let mut archive = header(b"d", Kind::Directory, 0o750, time(1_000_000_000));
        for (name, content) in
            [(&b"d/empty"[..], &b""[..]), (b"d/\xff", b"short"), (&deep, &[7; 1025]), (&foreign, b"y")]
        {
            archive.extend(header(name, Kind::File(content.len() as u64), 0o640, time(-5)));
            archive.extend_from_slice(content);
            archive.extend(padding(content.len() as u64));
        }
        archive.extend(header(b"d/link", Kind::Symlink(b"empty"), 0o777, time(0)));
        archive.extend(header(b"d/far", Kind::Symlink(&target), 0o777, time(0)));
        archive.extend(end());
        assert_eq!(archive.len() % BLOCK_BYTES, 0);
        let directory = unpacked(&archive);
        let at = |name: &[u8]| directory.path().join(std::ffi::OsStr::from_bytes(name));
        for (name, content) in
            [(&b"d/empty"[..], &b""[..]), (b"d/\xff", b"short"), (&deep, &[7; 1025]), (&foreign, b"y")]
        {
            assert_eq!(std::fs::read(at(name)).unwrap(), content, "{name:?}");
        }
        assert_eq!(std::fs::read_link(at(b"d/far")).unwrap().as_os_str().as_bytes(), target);
        let of = std::fs::metadata(at(b"d")).unwrap();
        assert_eq!(of.permissions().mode() & 0o7777, 0o750);
        let modified = of.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(modified.as_secs(), 1_000_000_000, "a directory's time");
        let file = std::fs::metadata(at(b"d/empty")).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::mtime(&file), -5);
    }

    #[test]
    fn archive_header_tells_sizes_that_its_field_does_not_hold() {
        let header = header(b"huge", Kind::File(1 << 40), 0o600, time(1));
        assert_eq!(header.len(), 3 * BLOCK_BYTES);
        let text = String::from_utf8_lossy(&header[BLOCK_BYTES..2 * BLOCK_BYTES]).into_owned();
        assert!(text.starts_with(&format!("22 size={}\n", 1_u64 << 40)), "{text:?}");
    }

    #[test]
    fn archive_record_counts_its_own_length() {
        for length in 0..2000 {
            let mut records = Vec::new();
            record(&mut records, "path", &b"x".repeat(length));
            let text = String::from_utf8(records).unwrap();
            let said: usize = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(said, text.len(), "{text:?}");
        }
    }
}
