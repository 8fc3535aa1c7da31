//! Wildcards as rsync has them: `*` and `?` stop at slashes, `**` does not, `[…]` is a set of characters, and a
//! backslash takes the next character as it is.
//!
//! Crates for globs know `**` only as a whole component of a path, and carry an engine for regular expressions, which
//! an agent of 3 MB has no room for. The states that a pattern can be in are followed all at once, so that no pattern
//! takes longer than its length times that of the path.

use std::ops::RangeInclusive;

/// A pattern, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wild(Vec<WildStep>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum WildStep {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    Star,
    /// `**`
    Stars,
    Set(Set),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Set {
    negated: bool,
    ranges: Vec<RangeInclusive<u8>>,
    classes: Vec<fn(&u8) -> bool>,
}

impl Set {
    fn has(&self, byte: u8) -> bool {
        let within = self.ranges.iter().any(|range| range.contains(&byte));
        byte != b'/' && (within || self.classes.iter().any(|class| class(&byte))) != self.negated
    }
}

/// Whether a text has a wildcard: without one a backslash means itself.
pub fn is_wild(text: &[u8]) -> bool {
    text.iter().any(|byte| b"*?[".contains(byte))
}

impl Wild {
    /// Takes a pattern apart. `None` where a set does not end, or a backslash is the last: such a pattern matches
    /// nothing.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while let [first, after @ ..] = rest {
            rest = after;
            steps.push(match first {
                b'\\' => {
                    let (byte, after) = rest.split_first()?;
                    rest = after;
                    WildStep::Byte(*byte)
                }
                b'?' => WildStep::One,
                b'*' => {
                    let more = rest.iter().take_while(|byte| **byte == b'*').count();
                    rest = &rest[more..];
                    if more == 0 { WildStep::Star } else { WildStep::Stars }
                }
                b'[' => {
                    let (set, after) = set(rest)?;
                    rest = after;
                    WildStep::Set(set)
                }
                byte => WildStep::Byte(*byte),
            });
        }
        Some(Self(steps))
    }

    /// Whether it matches the whole of a text, which comes in pieces.
    pub fn matches<'a>(&self, text: impl Iterator<Item = &'a u8>) -> bool {
        let Self(steps) = self;
        let (mut at, mut next) = (vec![false; steps.len() + 1], vec![false; steps.len() + 1]);
        at[0] = true;
        self.skip(&mut at);
        for byte in text {
            next.fill(false);
            for (index, step) in steps.iter().enumerate().filter(|(index, _)| at[*index]) {
                match step {
                    WildStep::Byte(own) => next[index + 1] |= own == byte,
                    WildStep::One => next[index + 1] |= *byte != b'/',
                    WildStep::Set(set) => next[index + 1] |= set.has(*byte),
                    WildStep::Star => next[index] |= *byte != b'/',
                    WildStep::Stars => next[index] = true,
                }
            }
            self.skip(&mut next);
            if !next.contains(&true) {
                return false;
            }
            std::mem::swap(&mut at, &mut next);
        }
        at[steps.len()]
    }

    /// Stars may stand for nothing.
    fn skip(&self, at: &mut [bool]) {
        for (index, step) in self.0.iter().enumerate() {
            at[index + 1] |= at[index] && matches!(step, WildStep::Star | WildStep::Stars);
        }
    }
}

/// A set of characters, after its bracket, and what follows it.
fn set(text: &[u8]) -> Option<(Set, &[u8])> {
    let mut set = Set::default();
    let mut rest = text;
    if let [b'!' | b'^', after @ ..] = rest {
        set.negated = true;
        rest = after;
    }
    let mut is_first = true;
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        let from = match first {
            b']' if !is_first => return Some((set, rest)),
            b'[' if rest.first() == Some(&b':') => {
                let end = rest.windows(2).position(|two| two == b":]")?;
                set.classes.push(class(&rest[1..end])?);
                rest = &rest[end + 2..];
                is_first = false;
                continue;
            }
            b'\\' => {
                let (byte, after) = rest.split_first()?;
                rest = after;
                *byte
            }
            byte => *byte,
        };
        is_first = false;
        let to = match rest {
            [b'-', b'\\', to, after @ ..] => {
                rest = after;
                *to
            }
            [b'-', to, after @ ..] if *to != b']' => {
                rest = after;
                *to
            }
            _ => from,
        };
        set.ranges.push(from..=to);
    }
}

fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Wild::parse(pattern.as_bytes()).is_some_and(|wild| wild.matches(text.as_bytes().iter()))
    }

    #[test]
    fn wildcards_match_what_rsync_s_do() {
        let yes = [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbc"),
            ("a?c", "abc"),
            ("**", "a/b/c"),
            ("a**c", "a/b/c"),
            ("a/***", "a/b/c"),
            ("*.o", ".o"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[^a-c]x", "dx"),
            ("[]x]", "]"),
            ("[a-]", "-"),
            ("[[:digit:][:upper:]]", "7"),
            ("[[:digit:][:upper:]]", "Q"),
            ("[\\]]", "]"),
            ("\\*", "*"),
            ("a\\b*", "ab"),
            ("*/b", "a/b"),
            ("ä*", "äö"),
        ];
        let no = [
            ("", "a"),
            ("*", "a/b"),
            ("a?c", "a/c"),
            ("?", ""),
            ("[a-c]x", "dx"),
            ("[!a]b", "/b"),
            ("[a", "a"),
            ("[[:nonsense:]]", "n"),
            ("\\", "\\"),
            ("\\*", "a"),
            ("a/**/b", "a/b"),
            ("[c-a]", "b"),
        ];
        yes.iter().for_each(|(pattern, text)| assert!(matches(pattern, text), "{pattern:?} {text:?}"));
        no.iter().for_each(|(pattern, text)| assert!(!matches(pattern, text), "{pattern:?} {text:?}"));
    }

    #[test]
    fn no_pattern_takes_for_ever() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!matches(&pattern, &"a".repeat(4000)));
        assert!(!matches(&("**a".repeat(200) + "b"), &"a/".repeat(2000)));
    }
}
