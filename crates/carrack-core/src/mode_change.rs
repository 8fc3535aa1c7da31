//! Permission bits that are changed on the way: `--chmod`.

use crate::words::quoted;

/// Changes of permission bits, as rsync's `--chmod` has them: clauses separated by commas, each for directories (`D`),
/// for all else (`F`) or for both; octal, or `u`, `g`, `o`, `a` with `+`, `-`, `=` and `r`, `w`, `x`, `X`, `s`, `t`. A
/// clause that names nobody is for all, whatever the umask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeChange {
    directory: BitChange,
    /// Of what somebody may run or enter.
    program: BitChange,
    other: BitChange,
}

/// Bits that stay, and bits that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BitChange {
    and: u16,
    or: u16,
}

impl BitChange {
    const NONE: Self = Self { and: 0o7777, or: 0 };

    fn then(self, and: u16, or: u16) -> Self {
        Self { and: self.and & and, or: self.or & and | or }
    }

    fn apply(self, mode: u32) -> u32 {
        mode & u32::from(self.and) | u32::from(self.or)
    }
}

/// What one clause does.
struct Clause {
    and: u16,
    or: u16,
    /// Bits to run and enter come only where there are some, or to directories.
    is_careful: bool,
}

impl ModeChange {
    /// The longest text.
    pub const CHARACTERS_MAX: usize = 200;

    /// Parses clauses.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused =
            || format!("{} changes no permissions: use clauses such as Du=rwx,Fg-w,o-rwx or D755,F644", quoted(text));
        let mut change = Self { directory: BitChange::NONE, program: BitChange::NONE, other: BitChange::NONE };
        if text.len() > Self::CHARACTERS_MAX {
            return Err(refused());
        }
        for clause in text.split(',') {
            let (directories, files, clause) = match clause.split_at_checked(1) {
                Some(("D", rest)) => (true, false, rest),
                Some(("F", rest)) => (false, true, rest),
                _ => (true, true, clause),
            };
            let Clause { and, or, is_careful } = parse_clause(clause).ok_or_else(refused)?;
            if directories {
                change.directory = change.directory.then(and, or);
            }
            if files {
                change.program = change.program.then(and, or);
                change.other = change.other.then(and, if is_careful { or & !0o111 } else { or });
            }
        }
        Ok(change)
    }

    /// The permission bits of a directory that has these.
    pub fn of_directory(self, mode: u32) -> u32 {
        self.directory.apply(mode)
    }

    /// The permission bits of anything else that has these.
    pub fn of_file(self, mode: u32) -> u32 {
        if mode & 0o111 != 0 { self.program.apply(mode) } else { self.other.apply(mode) }
    }

    /// As it travels: what stays and what comes, of directories, of programs and of all else, in octal.
    pub fn encode(self) -> String {
        let Self { directory, program, other } = self;
        [directory, program, other].map(|BitChange { and, or }| format!("{and:04o}{or:04o}")).concat()
    }

    /// What such a text says; `None` where that is nothing.
    pub fn decode(text: &str) -> Option<Self> {
        let is_octal = text.len() == 24 && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let number = |at: usize| u16::from_str_radix(&text[at..at + 4], 8).ok();
        let bits = |at: usize| Some(BitChange { and: number(at)?, or: number(at + 4)? });
        is_octal.then(|| Some(Self { directory: bits(0)?, program: bits(8)?, other: bits(16)? })).flatten()
    }
}

fn parse_clause(text: &str) -> Option<Clause> {
    if text.bytes().next()?.is_ascii_digit() {
        let or = u16::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777 && text.len() <= 4)?;
        return Some(Clause { and: 0, or, is_careful: false });
    }
    let at = text.find(['+', '-', '='])?;
    let (who, rest) = text.split_at(at);
    let (operator, what) = rest.split_at(1);
    let (mut whom, mut special) = (0, 0);
    for letter in who.chars() {
        whom |= match letter {
            'u' => {
                special |= 0o4000;
                0o700
            }
            'g' => {
                special |= 0o2000;
                0o070
            }
            'o' => 0o007,
            'a' => 0o777,
            _ => return None,
        };
    }
    let whom: u16 = if who.is_empty() { 0o777 } else { whom };
    let (mut bits, mut is_careful, mut has_special) = (0, false, false);
    for letter in what.chars() {
        bits |= match letter {
            'r' => 0o444 & whom,
            'w' => 0o222 & whom,
            'x' => 0o111 & whom,
            'X' => {
                is_careful = true;
                0o111 & whom
            }
            's' => {
                has_special = true;
                if special == 0 { 0o4000 } else { special }
            }
            't' => {
                has_special = true;
                0o1000
            }
            _ => return None,
        };
    }
    // Special bits stay where the clause names none.
    let all = whom | if has_special { special } else { 0 };
    Some(match operator {
        "+" => Clause { and: 0o7777, or: bits, is_careful },
        "-" => Clause { and: 0o7777 & !bits, or: 0, is_careful: false },
        _ => Clause { and: 0o7777 & !all, or: bits, is_careful },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_change_bits_as_rsync_does() {
        const DIRECTORY: bool = true;
        const FILE: bool = false;
        let cases = [
            ("a+rX", FILE, 0o600, 0o644),
            ("a+rX", FILE, 0o700, 0o755),
            ("a+rX", DIRECTORY, 0o600, 0o755),
            ("go-w", FILE, 0o666, 0o644),
            ("-w", FILE, 0o666, 0o444),
            ("D755,F644", FILE, 0o4711, 0o644),
            ("D755,F644", DIRECTORY, 0o3700, 0o755),
            ("Dg+s,ug+w,Fo-w,+X", DIRECTORY, 0o755, 0o2775),
            ("Dg+s,ug+w,Fo-w,+X", FILE, 0o646, 0o664),
            ("u=rwx,g=rx,o=", FILE, 0o666, 0o750),
            ("u=rw", FILE, 0o4755, 0o4655),
            ("+t", DIRECTORY, 0o777, 0o1777),
            ("u+s", FILE, 0o755, 0o4755),
            ("g+s", FILE, 0o755, 0o2755),
            ("ug-s", FILE, 0o6755, 0o755),
            ("u=s", FILE, 0o6755, 0o6055),
            ("a=", FILE, 0o7777, 0o7000),
            ("o+s", FILE, 0o755, 0o4755),
            ("F+x,Fo-rwx", FILE, 0o644, 0o750),
        ];
        for (text, is_directory, from, to) in cases {
            let change = ModeChange::parse(text).unwrap();
            let changed = if is_directory { change.of_directory(from) } else { change.of_file(from) };
            assert_eq!(changed, to, "{text} {is_directory} {from:o}: {changed:o}");
            assert_eq!(ModeChange::decode(&change.encode()), Some(change));
        }
        for text in ["", "x", "u", "8", "77777", "u+q", "z+r", "u+r,", "D", "Du", "0o755", "u~r", "+\u{e9}"] {
            assert!(ModeChange::parse(text).is_err(), "{text:?}");
        }
        for text in ["", "777", "777777777777777777777778", "77770000777700007777000\u{e9}"] {
            assert_eq!(ModeChange::decode(text), None);
        }
    }
}
