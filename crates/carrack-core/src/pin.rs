//! The pin of a node's key, `sha256:` with 64 hex digits or unpadded base64url, as in `carrack://host/path#sha256:…` and in the list
//! of known nodes.

/// Parses what stands behind the `#`.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse_pin(text: &[u8]) -> Result<[u8; 32], String> {
    let digest = text.strip_prefix(b"sha256:").ok_or("after # only sha256:FINGERPRINT may stand")?;
    let bytes = match digest.len() {
        64 => decode_hex(digest),
        43 => decode_base64url(digest),
        44 if digest.ends_with(b"=") => decode_base64url(&digest[..43]),
        _ => None,
    };
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| "the fingerprint is neither 64 hex digits nor 43 characters of base64url".to_owned())
}

fn decode_hex(text: &[u8]) -> Option<Vec<u8>> {
    text.chunks(2).map(|pair| Some(hex_digit(pair[0])? << 4 | hex_digit(*pair.get(1)?)?)).collect()
}

/// The value of a hex digit.
pub fn hex_digit(byte: u8) -> Option<u8> {
    // A radix of 16 keeps the value below 16.
    char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn decode_base64url(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for &byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xfff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    // Two texts must not mean one key: what is left over has to be zero.
    (bits & ((1 << count) - 1) == 0).then_some(bytes)
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
