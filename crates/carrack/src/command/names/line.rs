//! The line of another program, taken apart by its table.

use carrack_core::path::display_bytes;

use crate::cli::foreign::{Follows, ForeignEffect, ForeignFlag, LEAVE_IT_OUT, WordKind};

/// A line, taken apart.
#[derive(Debug, Default)]
pub struct OldLine {
    /// Flags, in the order in which they were typed.
    pub flags: Vec<GivenFlag>,
    /// Everything behind them: places.
    pub places: Vec<Vec<u8>>,
}

/// A flag as it was typed.
#[derive(Clone, Debug)]
pub struct GivenFlag {
    /// Its row.
    pub row: &'static ForeignFlag,
    /// As it was typed.
    pub typed: String,
    /// The word behind it, if it has one.
    pub value: Option<Vec<u8>>,
}

/// Why a line is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The program has no such flag; `at` is the number of the word on the line, from 1.
    Unknown {
        /// As it was typed, printable.
        typed: String,
        /// The number of its word.
        at: usize,
    },
    /// The word behind a flag is missing.
    NoWord {
        /// As it was typed.
        typed: String,
        /// The number of its word.
        at: usize,
    },
    /// Carrack refuses the flag.
    Refused {
        /// As it was typed.
        typed: String,
        /// Why.
        why: &'static str,
        /// What does the same, or comes nearest to it.
        ours: &'static str,
    },
    /// A value that the flag does not take.
    Value {
        /// The flag and its value, printable.
        typed: String,
        /// What is wrong with it.
        why: String,
    },
}

impl LineError {
    /// A value that a flag does not take.
    pub fn value(flag: &str, value: &[u8], why: impl Into<String>) -> Self {
        Self::Value { typed: format!("{flag} {}", display_bytes(value)), why: why.into() }
    }
}

impl OldLine {
    /// Whether a flag was given; `name` is the first of its row.
    pub fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|given| given.row.names[0] == name)
    }

    /// The value of a flag that was given last.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.flags.iter().rev().find(|given| given.row.names[0] == name)?.value.as_deref()
    }

    /// The same as a number within bounds.
    ///
    /// # Errors
    /// A value that is none.
    pub fn number(&self, name: &str, low: u64, high: u64) -> Result<Option<u64>, LineError> {
        self.value(name).map(|value| Self::number_of(name, value, low, high)).transpose()
    }

    /// The same of a value.
    ///
    /// # Errors
    /// A value that is none.
    pub fn number_of(flag: &str, value: &[u8], low: u64, high: u64) -> Result<u64, LineError> {
        let number = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|text| text.parse().ok()).filter(|number| (low..=high).contains(number));
        let bounds = if high == u64::MAX { format!("{low} on") } else { format!("{low} to {high}") };
        number.ok_or_else(|| LineError::value(flag, value, format!("a number from {bounds} is expected")))
    }

    /// What was given and has no effect.
    pub fn without_effect(&self) -> impl Iterator<Item = &GivenFlag> {
        self.flags.iter().filter(|given| given.row.effect == ForeignEffect::Always)
    }

    fn take(&mut self, row: &'static ForeignFlag, typed: String, value: Option<Vec<u8>>) -> Result<(), LineError> {
        let ours = match row.effect {
            ForeignEffect::Ours(ours) => ours,
            // No line of a program has flags of another meaning than its own.
            ForeignEffect::Refused
            | ForeignEffect::Different(_)
            | ForeignEffect::Unless(_)
            | ForeignEffect::Amid(_) => LEAVE_IT_OUT,
            ForeignEffect::Always | ForeignEffect::Taken(_) => {
                self.flags.push(GivenFlag { row, typed, value });
                return Ok(());
            }
        };
        Err(LineError::Refused { typed, why: row.why, ours })
    }
}

impl WordKind {
    /// Whether a word is of this kind.
    fn has(self, word: &[u8]) -> bool {
        match self {
            Self::NoFlag => !word.starts_with(b"-"),
            Self::Number => !word.is_empty() && word.iter().all(u8::is_ascii_digit),
            Self::Letters(letters) => !word.is_empty() && word.iter().all(|byte| letters.as_bytes().contains(byte)),
            Self::Settings => !word.starts_with(b"-") && (word.contains(&b'=') || word.starts_with(b"/")),
        }
    }
}

fn row_of(table: &'static [ForeignFlag], typed: &str) -> Option<&'static ForeignFlag> {
    table.iter().find(|row| row.names.contains(&typed))
}

/// Takes a line apart that has letters behind one dash, several of them perhaps, and names behind two. The first word
/// that is none of these is a place, and so are all behind it.
///
/// # Errors
/// What the table does not take.
pub fn by_letters(table: &'static [ForeignFlag], words: &[Vec<u8>]) -> Result<OldLine, LineError> {
    let mut line = OldLine::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_slice() {
            b"--" => {
                at += 1;
                break;
            }
            [b'-', b'-', _, ..] => at += take_name(table, &words[at..], at + 1, &mut line)?,
            [b'-', _, ..] => at += take_letters(table, &words[at..], at + 1, &mut line)?,
            _ => break,
        }
    }
    line.places = words[at.min(words.len())..].to_vec();
    Ok(line)
}

/// Takes a name behind two dashes. Answers how many words that were.
fn take_name(
    table: &'static [ForeignFlag],
    words: &[Vec<u8>],
    at: usize,
    line: &mut OldLine,
) -> Result<usize, LineError> {
    let word = &words[0];
    let end = word.iter().position(|&byte| byte == b'=').unwrap_or(word.len());
    let typed = display_bytes(&word[..end]).to_string();
    let joined = word.get(end + 1..).map(<[u8]>::to_vec);
    let row = row_of(table, &typed).ok_or_else(|| LineError::Unknown { typed: typed.clone(), at })?;
    let (value, taken) = match (row.follows, joined, words.get(1)) {
        (Follows::Nothing, None, _) => (None, 1),
        (Follows::Nothing, Some(_), _) => {
            return Err(LineError::Unknown { typed: display_bytes(word).to_string(), at });
        }
        (_, Some(joined), _) => (Some(joined), 1),
        (Follows::Word, None, Some(next)) => (Some(next.clone()), 2),
        (Follows::Word, None, None) => return Err(LineError::NoWord { typed, at }),
        (Follows::Perhaps(kind), None, Some(next)) if kind.has(next) => (Some(next.clone()), 2),
        (Follows::Perhaps(_), None, _) => (None, 1),
    };
    line.take(row, typed, value).map(|()| taken)
}

/// Takes letters behind one dash. Answers how many words that were.
fn take_letters(
    table: &'static [ForeignFlag],
    words: &[Vec<u8>],
    at: usize,
    line: &mut OldLine,
) -> Result<usize, LineError> {
    let letters = &words[0][1..];
    for (index, letter) in letters.iter().enumerate() {
        let typed = format!("-{}", display_bytes(&[*letter]));
        let row = row_of(table, &typed).ok_or_else(|| LineError::Unknown { typed: typed.clone(), at })?;
        let rest = &letters[index + 1..];
        match (row.follows, rest, words.get(1)) {
            (Follows::Word, [], None) => return Err(LineError::NoWord { typed, at }),
            (Follows::Word, [], Some(next)) => return line.take(row, typed, Some(next.clone())).map(|()| 2),
            (Follows::Word, rest, _) => return line.take(row, typed, Some(rest.to_vec())).map(|()| 1),
            (Follows::Perhaps(kind), [], Some(next)) if kind.has(next) => {
                return line.take(row, typed, Some(next.clone())).map(|()| 2);
            }
            (Follows::Perhaps(kind), rest, _) if !rest.is_empty() && kind != WordKind::NoFlag && kind.has(rest) => {
                return line.take(row, typed, Some(rest.to_vec())).map(|()| 1);
            }
            _ => line.take(row, typed, None)?,
        }
    }
    Ok(1)
}

/// Takes a line apart whose flags are words behind one dash. The first word without a dash is a place, and so are all
/// behind it.
///
/// # Errors
/// What the table does not take.
pub fn by_words(table: &'static [ForeignFlag], words: &[Vec<u8>]) -> Result<OldLine, LineError> {
    let mut line = OldLine::default();
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with(b"-") && word.len() > 1) {
        let typed = display_bytes(word).to_string();
        let row = row_of(table, &typed).ok_or_else(|| LineError::Unknown { typed: typed.clone(), at: at + 1 })?;
        let value = match row.follows {
            Follows::Word => {
                let next = words.get(at + 1).cloned();
                Some(next.ok_or_else(|| LineError::NoWord { typed: typed.clone(), at: at + 1 })?)
            }
            Follows::Nothing | Follows::Perhaps(_) => None,
        };
        at += if value.is_some() { 2 } else { 1 };
        line.take(row, typed, value)?;
    }
    line.places = words[at.min(words.len())..].to_vec();
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::foreign::{BBCP_FLAGS, GLOBUS_URL_COPY_FLAGS};

    type Take = fn(&'static [ForeignFlag], &[Vec<u8>]) -> Result<OldLine, LineError>;

    fn taken(take: Take, table: &'static [ForeignFlag], line: &str) -> Result<String, LineError> {
        let words: Vec<Vec<u8>> = line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        let line = take(table, &words)?;
        let flags = line.flags.iter().map(|given| match &given.value {
            Some(value) => format!("{}={}", given.row.names[0], display_bytes(value)),
            None => given.row.names[0].to_owned(),
        });
        let places = line.places.iter().map(|place| display_bytes(place).to_string());
        Ok(flags.chain(["|".to_owned()]).chain(places).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn letters_are_taken_apart_as_bbcp_does() {
        let cases = [
            ("a h:b", "| a h:b"),
            ("-P 2 -w 2M -s 10 a h:b", "-P=2 -w=2M -s=10 | a h:b"),
            ("-vs 4 -P2 -w=32m a h:b", "-v -s=4 -P=2 -w==32m | a h:b"),
            ("-w =2M a h:b", "-w==2M | a h:b"),
            ("--port 50000:51000 --streams=3 a h:b", "-Z=50000:51000 -s=3 | a h:b"),
            ("-a -s 2 a h:b", "-a -s=2 | a h:b"),
            ("-a dir a h:b", "-a=dir | a h:b"),
            ("-a -- a h:b", "-a | a h:b"),
            ("-c a h:b", "-c | a h:b"),
            ("-c 3 a h:b", "-c=3 | a h:b"),
            ("-c9v a h:b", "-c=9 | a h:b"),
            ("-4 a h:b", "-4 | a h:b"),
            ("-4 st a h:b", "-4=st | a h:b"),
            ("-y dd a h:b", "-y=dd | a h:b"),
            ("-R i=5 a h:b", "-R=i=5 | a h:b"),
            ("-R a h:b", "-R | a h:b"),
            ("a -f h:b", "| a -f h:b"),
            ("- h:b", "| - h:b"),
            ("-- -f h:b", "| -f h:b"),
            ("-# ", "-# |"),
        ];
        for (line, expected) in cases {
            // `-c9v` is no number: the letters go on.
            let expected = if line.starts_with("-c9v") { "unknown -9" } else { expected };
            match taken(by_letters, BBCP_FLAGS, line) {
                Ok(found) => assert_eq!(found, expected, "{line}"),
                Err(LineError::Unknown { typed, .. }) => assert_eq!(format!("unknown {typed}"), expected, "{line}"),
                Err(other) => panic!("{line}: {other:?}"),
            }
        }
        let unknown = |typed: &str, at| Err(LineError::Unknown { typed: typed.to_owned(), at });
        assert_eq!(taken(by_letters, BBCP_FLAGS, "-v -fQ a h:b"), unknown("-Q", 2));
        assert_eq!(taken(by_letters, BBCP_FLAGS, "--nope a h:b"), unknown("--nope", 1));
        assert_eq!(taken(by_letters, BBCP_FLAGS, "--force=1 a h:b"), unknown("--force=1", 1));
        assert!(matches!(taken(by_letters, BBCP_FLAGS, "-s"), Err(LineError::NoWord { at: 1, .. })));
        assert!(matches!(taken(by_letters, BBCP_FLAGS, "-L x a b"), Err(LineError::Refused { .. })));
        assert!(matches!(taken(by_letters, BBCP_FLAGS, "-+ a b"), Err(LineError::Refused { ours: LEAVE_IT_OUT, .. })));
    }

    #[test]
    fn words_are_taken_apart_as_globus_url_copy_does() {
        for (line, expected) in [
            ("-vb -p 4 -fast file:/a file:/b", "-vb -p=4 -fast | file:/a file:/b"),
            ("-parallel 4 -st 9 a b", "-p=4 -stall-timeout=9 | a b"),
            ("a b -vb", "| a b -vb"),
            ("-f -", "-f=- |"),
        ] {
            assert_eq!(taken(by_words, GLOBUS_URL_COPY_FLAGS, line).as_deref(), Ok(expected), "{line}");
        }
        let unknown = Err(LineError::Unknown { typed: "-nope".to_owned(), at: 2 });
        assert_eq!(taken(by_words, GLOBUS_URL_COPY_FLAGS, "-vb -nope a b"), unknown);
        assert!(matches!(taken(by_words, GLOBUS_URL_COPY_FLAGS, "-p"), Err(LineError::NoWord { at: 1, .. })));
        assert!(matches!(taken(by_words, GLOBUS_URL_COPY_FLAGS, "-off 1 a b"), Err(LineError::Refused { .. })));
    }

    #[test]
    fn numbers_have_bounds() {
        let words = ["-s", "65"].map(|word| word.as_bytes().to_vec());
        let line = by_letters(BBCP_FLAGS, &words).expect("a line");
        assert_eq!(line.number("-s", 1, 65), Ok(Some(65)));
        assert_eq!(line.number("-P", 1, 9), Ok(None));
        assert!(
            line.number("-s", 1, 64)
                .is_err_and(|error| matches!(error, LineError::Value { typed, .. } if typed == "-s 65"))
        );
    }
}
