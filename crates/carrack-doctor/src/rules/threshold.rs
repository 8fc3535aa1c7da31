//! What should be, with the numbers by which a rule judges. A number stands once, as a constant: the words, the
//! comparison and the advice take it from there.

use std::fmt;
use std::time::Duration;

use crate::units;

/// What should be. Numbers are not written out in the words: each `{}` is the next limit.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    words: &'static str,
    limits: &'static [Limit],
}

/// A number, and how it is written.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// As it is.
    Count(u64),
    /// Bytes of memory or storage, in powers of two.
    Bytes(u64),
    /// Bits a second, as interfaces count.
    Bits(u64),
    /// A time.
    Time(Duration),
    /// A time in hours.
    Hours(u64),
    /// So many of a hundred.
    Percent(u64),
    /// So many times as much.
    Times(f64),
    /// A release of the kernel.
    Release(u32, u32),
}

impl Threshold {
    /// Words that need no number.
    pub(super) const fn plain(words: &'static str) -> Self {
        Self { words, limits: &[] }
    }

    /// Words with a `{}` for each limit.
    pub(super) const fn of(words: &'static str, limits: &'static [Limit]) -> Self {
        Self { words, limits }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limits = self.limits.iter();
        for (number, words) in self.words.split("{}").enumerate() {
            if number > 0 {
                limits.next().map_or(Ok(()), |limit| write!(f, "{limit}"))?;
            }
            f.write_str(words)?;
        }
        Ok(())
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Bytes(bytes) => f.write_str(&units::bytes(bytes as f64)),
            Self::Bits(bits) => f.write_str(&units::bits(bits as f64)),
            Self::Time(time) => f.write_str(&units::time(time)),
            Self::Hours(hours) => write!(f, "{hours} hours"),
            Self::Percent(percent) => write!(f, "{percent} %"),
            Self::Times(times) => write!(f, "{times} times"),
            Self::Release(major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::ALL;

    /// Names of settings that have digits.
    const NAMES: [&str; 1] = ["layer3+4"];

    #[test]
    fn numbers_of_all_rules_are_limits_and_each_has_its_place() {
        for rule in ALL.iter().flat_map(|table| table.iter()) {
            let words = NAMES.iter().fold(rule.threshold.words.to_owned(), |words, name| words.replace(name, ""));
            assert!(!words.contains(|one: char| one.is_ascii_digit()), "{}: {words}", rule.id);
            assert_eq!(words.matches("{}").count(), rule.threshold.limits.len(), "{}: {words}", rule.id);
            let told = rule.threshold.to_string();
            assert!(!told.contains(['{', '}']), "{}: {told}", rule.id);
        }
    }
}
