//! The order of names as people expect it: upper and lower case together, numbers by their value.

use std::cmp::Ordering;

/// Writes the key of a name: two names are in the order of their keys as bytes. Names with one key differ in case, or
/// in zeros before a number.
///
/// A number is a `0`, how many digits it has without zeros before it, and those digits; so a longer number comes behind
/// a shorter one, and numbers stand among other characters where digits do.
pub fn write_key(name: &[u8], key: &mut Vec<u8>) {
    let folded;
    let name = match std::str::from_utf8(name) {
        Ok(text) if !text.is_ascii() => {
            folded = text.to_lowercase();
            folded.as_bytes()
        }
        // What is no text has no case but that of its letters of ASCII.
        _ => name,
    };
    let mut rest = name;
    while let [first, after @ ..] = rest {
        if !first.is_ascii_digit() {
            key.push(first.to_ascii_lowercase());
            rest = after;
            continue;
        }
        let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let zeros = number.iter().position(|byte| *byte != b'0').unwrap_or(number.len());
        let digits = &number[zeros..];
        key.push(b'0');
        // One more than there are, so that no number ends like a name. A name has at most 255 bytes on any file system.
        key.push(u8::try_from(digits.len() + 1).unwrap_or(u8::MAX));
        key.extend_from_slice(digits);
        rest = behind;
    }
}

/// Compares names one by one.
#[derive(Default)]
pub struct Comparer {
    one: Vec<u8>,
    other: Vec<u8>,
}

impl Comparer {
    /// The order of two names: by their keys, then by their bytes.
    pub fn compare(&mut self, one: &[u8], other: &[u8]) -> Ordering {
        self.one.clear();
        self.other.clear();
        write_key(one, &mut self.one);
        write_key(other, &mut self.other);
        self.one.cmp(&self.other).then_with(|| one.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stand_in_the_order_of_people() {
        let sorted = [
            "-a", "0", "00", "1", "1.txt", "01a", "2", "10", "100", "a", "A", "a0", "a1", "a01", "a1b", "a2", "a10",
            "ab", "B", "file 9", "file 10", "file10b", "\u{e9}", "\u{c9}1",
        ];
        let mut names: Vec<&str> = sorted.to_vec();
        names.reverse();
        let mut comparer = Comparer::default();
        names.sort_by(|one, other| comparer.compare(one.as_bytes(), other.as_bytes()));
        assert_eq!(
            names,
            [
                "-a", "0", "00", "1", "1.txt", "01a", "2", "10", "100", "A", "a", "a0", "a01", "a1", "a1b", "a2",
                "a10", "ab", "B", "file 9", "file 10", "file10b", "\u{e9}", "\u{c9}1"
            ]
        );
    }

    proptest! {
        #[test]
        fn order_of_names_is_one_order(names in proptest::collection::vec("[a-cA-C0-2. ]{0,6}", 3)) {
            let mut comparer = Comparer::default();
            let [a, b, c] = [&names[0], &names[1], &names[2]].map(|name| name.as_bytes());
            prop_assert_eq!(comparer.compare(a, b), comparer.compare(b, a).reverse());
            prop_assert_eq!(comparer.compare(a, b).is_eq(), a == b);
            if comparer.compare(a, b).is_le() && comparer.compare(b, c).is_le() {
                prop_assert!(comparer.compare(a, c).is_le());
            }
        }

        #[test]
        fn numbers_alone_are_in_the_order_of_their_values(one in any::<u64>(), other in any::<u64>()) {
            let mut comparer = Comparer::default();
            let order = comparer.compare(format!("n{one}").as_bytes(), format!("n{other}").as_bytes());
            prop_assert_eq!(order, one.cmp(&other));
        }
    }
}
