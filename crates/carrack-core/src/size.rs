//! Sizes as people type them.
//!
//! `K M G T P` and `KiB …` are powers of 1024, `KB …` powers of 1000, as in dd and rsync. A small `b` is refused: the
//! user who types `100Mb` may mean megabits, and would get eight times the rate.

use crate::words::quoted;

/// Parses a number of bytes: `4096`, `64K`, `1.5GiB`, `20MB`. A fraction of a byte is rounded down.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits_end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let unit_bytes = parse_unit(unit).ok_or_else(|| describe_bad_unit(text, unit))?;
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let bad_number = || format!("{} is not a size: use digits and a suffix, like 64K or 1.5G", quoted(text));
    let whole: u64 = whole.parse().map_err(|_| match whole.len() {
        0 => bad_number(),
        _ => too_large(text),
    })?;
    let mut bytes = u128::from(whole) * u128::from(unit_bytes);
    if let Some(fraction) = fraction {
        // 18 digits are finer than one byte in the largest unit, and the product still fits.
        if fraction.is_empty() || fraction.len() > 18 || fraction.contains('.') {
            return Err(bad_number());
        }
        if unit_bytes == 1 {
            return Err(format!("{} is not a size: there is no fraction of a byte", quoted(text)));
        }
        let numerator: u128 = fraction.parse().map_err(|_| bad_number())?;
        let digits = u32::try_from(fraction.len()).map_err(|_| bad_number())?;
        bytes += numerator * u128::from(unit_bytes) / 10u128.pow(digits);
    }
    u64::try_from(bytes).map_err(|_| too_large(text))
}

fn parse_unit(unit: &str) -> Option<u64> {
    let (letter, base) = match unit.as_bytes() {
        [] | [b'B'] => return Some(1),
        [letter] | [letter, b'i', b'B'] => (letter, 1024u64),
        [letter, b'B'] => (letter, 1000u64),
        _ => return None,
    };
    let power = match letter.to_ascii_uppercase() {
        b'K' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        b'P' => 5,
        _ => return None,
    };
    Some(base.pow(power))
}

fn describe_bad_unit(text: &str, unit: &str) -> String {
    if unit.ends_with('b') && parse_unit(&unit.replace('b', "B")).is_some() {
        return format!("{} is not a size: a small b reads as bits; write B for bytes", quoted(text));
    }
    format!("{} is not a size: use K, M, G, T (1024ⁿ) or KB, MB, GB, TB (1000ⁿ)", quoted(text))
}

fn too_large(text: &str) -> String {
    format!("{} is too large a size", quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let good = [
            ("0", 0),
            ("4096", 4096),
            ("512B", 512),
            ("1K", 1 << 10),
            ("1k", 1 << 10),
            ("64KiB", 64 << 10),
            ("10M", 10 << 20),
            ("10MB", 10_000_000),
            ("10MiB", 10 << 20),
            ("2G", 2 << 30),
            ("3TB", 3_000_000_000_000),
            ("1P", 1 << 50),
            ("1.5G", 3 << 29),
            ("0.5kB", 500),
            ("1.0001KB", 1000),
            ("16383P", 16383 << 50),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in good {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn size_that_is_none_is_refused() {
        for text in [
            "",
            " ",
            "K",
            ".",
            ".5K",
            "5.K",
            "1.5",
            "-1",
            "+1",
            "1 K",
            " 1K",
            "1K ",
            "1e9",
            "0x10",
            "1,000",
            "1_000",
            "1.5.5K",
            "10Q",
            "10KK",
            "10iB",
            "NaN",
            "inf",
            "1K\n",
            "１K",
            "10Mbit",
            "18446744073709551616",
            "99999999999999999999999",
            "16384P",
            "1.1234567890123456789K",
        ] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
        assert!(parse_size("100Mb").unwrap_err().contains("bits"));
        assert!(parse_size("100Mib").unwrap_err().contains("bits"));
    }
}
