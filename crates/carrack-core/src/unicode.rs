//! Characters of names that a person does not see, or that change how others are seen.

/// What Unicode 14.0 calls `Bidi_Control` or `Default_Ignorable_Code_Point`, as ranges with both ends in. The second
/// has all of its blocks in, what is not assigned yet included, so that later versions need no other table. Generated
/// by perl 5.36, whose own tables are made from the Unicode Character Database:
///
/// ```text
/// perl -e 'for (0..0x10ffff) { next if $_ >= 0xd800 && $_ <= 0xdfff;
///     my $m = chr =~ /\p{Default_Ignorable_Code_Point}|\p{Bidi_Control}/;
///     if ($m) { $s //= $_ } elsif (defined $s) { printf "(0x%x, 0x%x),\n", $s, $_ - 1; undef $s } }'
/// ```
const INVISIBLE: [(u32, u32); 17] = [
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x61c, 0x61c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x2060, 0x206f),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfff8),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
];

/// Whether a character leaves no mark of its own: it turns a line around, joins or parts its neighbours, or is nothing
/// at all. Two names that differ in such characters look the same.
pub fn is_invisible(character: char) -> bool {
    let code = u32::from(character);
    let next = INVISIBLE.partition_point(|(_, last)| *last < code);
    INVISIBLE.get(next).is_some_and(|(first, _)| *first <= code)
}

/// A name without regard to case, nearly as file systems compare it that take upper and lower case for one: each has a
/// table of its own.
pub fn fold_case(name: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(name) {
        Ok(text) => text.chars().flat_map(char::to_lowercase).collect::<String>().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_order_and_found_at_its_ends() {
        assert!(INVISIBLE.iter().all(|(first, last)| first <= last));
        assert!(INVISIBLE.is_sorted_by(|a, b| a.1 + 1 < b.0));
        let is = |code| char::from_u32(code).is_some_and(is_invisible);
        for (first, last) in INVISIBLE {
            assert!(is(first) && is(last) && !is(first - 1) && !is(last + 1), "{first:x}");
        }
        for visible in ['a', 'ß', '\u{300}', '한', '\u{1f600}', '\u{10ffff}'] {
            assert!(!is_invisible(visible), "{visible:?}");
        }
    }
    #[test]
    fn names_that_differ_by_case_fold_to_one() {
        for (one, other) in [("README", "readme"), ("\u{dc}ber", "\u{fc}BER"), ("\u{3a9}", "\u{3c9}")] {
            assert_eq!(fold_case(one.as_bytes()), fold_case(other.as_bytes()));
        }
        assert_ne!(fold_case("\u{e9}".as_bytes()), fold_case("e\u{301}".as_bytes()));
        assert_eq!(fold_case(b"A\xff"), b"a\xff");
    }
}
