//! The pin of a node's key, `sha256:` with 64 hex digits or unpadded base64url, as in `carrack://host/path#sha256:…`
//! and in the list of known nodes.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};

/// Parses what stands behind the `#`.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse_pin(text: &[u8]) -> Result<[u8; 32], String> {
    let digest = text.strip_prefix(b"sha256:").ok_or("after # only sha256:FINGERPRINT may stand")?;
    let bytes = match digest.len() {
        64 => HEXLOWER_PERMISSIVE.decode(digest).ok(),
        // Two texts must not mean one key: both decoders refuse bits that are left over and not zero.
        43 => BASE64URL_NOPAD.decode(digest).ok(),
        44 if digest.ends_with(b"=") => BASE64URL_NOPAD.decode(&digest[..43]).ok(),
        _ => None,
    };
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| "the fingerprint is neither 64 hex digits nor 43 characters of base64url".to_owned())
}

/// A pin as it is written everywhere: `sha256:` and 64 hex digits, which [`parse_pin`] takes.
pub fn format_pin(pin: &[u8; 32]) -> String {
    format!("sha256:{}", HEXLOWER.encode(pin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins() {
        let expected: [u8; 32] = std::array::from_fn(|index| (index * 8) as u8);
        let hex: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        let url = "AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg";
        for text in [hex.clone(), hex.to_uppercase(), url.to_owned(), format!("{url}=")] {
            assert_eq!(parse_pin(format!("sha256:{text}").as_bytes()), Ok(expected), "{text}");
        }
        assert_eq!(format_pin(&expected), format!("sha256:{hex}"));
        let ones = format!("sha256:{}8", "_".repeat(42));
        assert_eq!(parse_pin(ones.as_bytes()), Ok([0xff; 32]));
        for text in ["", "sha256:", "sha1:00", &hex, &format!("sha256:{}", &hex[1..]), &format!("sha256:{hex}0")] {
            assert!(parse_pin(text.as_bytes()).is_err(), "{text}");
        }
        for last in ["h", "+", "/", "=", " "] {
            let text = format!("sha256:{}{last}", &url[..42]);
            assert!(parse_pin(text.as_bytes()).is_err(), "{text}");
        }
    }
}
