//! Bytes in URLs.

/// Bytes as text for paths and queries: letters, digits, `-`, `_`, `.` and `~` as they are, whatever else as `%HH`.
pub fn percent(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push_str(&data_encoding::HEXUPPER.encode(&[byte]));
        }
    }
    text
}
