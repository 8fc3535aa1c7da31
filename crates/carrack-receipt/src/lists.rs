//! Names in the lists of a BagIt bag (RFC 8493).

/// What `bagit.txt` says.
pub const BAGIT_TXT: &str = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";

/// A line of a manifest of a bag: the digest in hexadecimal, and the file's path within the bag. Line ends and percent
/// signs are escaped, as the specification asks. `None` for a name that is not UTF-8: a bag cannot have it.
pub fn bag_line(digest_hex: &str, path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok()?;
    let escaped = path.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D");
    Some(format!("{digest_hex}  {escaped}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_or_refused() {
        assert_eq!(bag_line("00", b"data/a b").as_deref(), Some("00  data/a b\n"));
        assert_eq!(bag_line("00", b"data/50%\n\r").as_deref(), Some("00  data/50%25%0A%0D\n"));
        assert_eq!(bag_line("00", b"data/\xff"), None);
    }
}
