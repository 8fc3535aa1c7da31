//! Letters that take a word in another program and none here, where that word would become a source: it is asked about
//! before anything is copied.

use std::ffi::OsStr;
use std::path::Path;

use crate::error::CommandError;

/// A letter of ours that takes a word elsewhere.
struct Misread {
    letter: u8,
    /// Whether a word is of the kind that follows it there.
    is_theirs: fn(&str) -> bool,
    /// What the letter does here, and what the word is, as the end of a sentence.
    here: &'static str,
    word: &'static str,
    /// What is typed for what was meant.
    hints: &'static [&'static str],
}

const PORT_OR_COUNT: &[&str] = &["a port of ssh: -e 'ssh -p 2222'", "a number of connections: --streams N"];

const MISREAD: &[Misread] = &[
    Misread {
        letter: b'p',
        is_theirs: is_number,
        here: "keeps special bits",
        word: "a number is an option of something else",
        hints: PORT_OR_COUNT,
    },
    Misread {
        letter: b'P',
        is_theirs: is_number,
        here: "draws the bar",
        word: "a number is an option of something else",
        hints: PORT_OR_COUNT,
    },
    Misread {
        letter: b'i',
        is_theirs: is_key,
        here: "prints what changes",
        word: "a key is an option of ssh",
        hints: &["-e 'ssh -i KEY'", "to copy it: --itemize-changes in place of -i"],
    },
    Misread {
        letter: b'o',
        is_theirs: is_ssh_option,
        here: "keeps owners",
        word: "a setting is an option of ssh",
        hints: &["-e 'ssh -o OPTION=VALUE'"],
    },
    Misread {
        letter: b'c',
        is_theirs: is_cipher,
        here: "compares by content",
        word: "a cipher is an option of ssh, which data connections do not use",
        hints: &["-e 'ssh -c CIPHER'"],
    },
    Misread {
        letter: b'D',
        is_theirs: |word| word.ends_with("sftp-server"),
        here: "makes devices and FIFOs",
        word: "no server of files is started",
        hints: &["for a Carrack that is not on the PATH there: --remote-path PATH"],
    },
    Misread {
        letter: b'X',
        is_theirs: |word| word.starts_with("nrequests=") || word.starts_with("buffer="),
        here: "keeps extended attributes",
        word: "no requests of SFTP are sent",
        hints: &["--streams N"],
    },
    Misread {
        letter: b'x',
        is_theirs: is_rate,
        here: "stays within one file system",
        word: "a rate is typed otherwise",
        hints: &["--bwlimit RATE"],
    },
];

/// The refusal of a flag whose letter takes a word in another program, where such a word follows and no file has its
/// name. A key may be there: nobody means to copy it.
pub fn value_of_theirs(flag: &OsStr, word: &OsStr) -> Option<CommandError> {
    let (letters, word) = (flag.to_str()?.strip_prefix('-')?.as_bytes(), word.to_str()?);
    let [before @ .., last] = letters else { return None };
    let row = MISREAD.iter().find(|row| row.letter == *last && (row.is_theirs)(word))?;
    let is_there = !matches!(row.letter, b'i' | b'D') && Path::new(word).symlink_metadata().is_ok();
    // `--to`, `-eP`.
    if is_there || before.contains(&b'-') || before.contains(&b'e') || before.contains(&b'f') {
        return None;
    }
    let (letter, here, what) = (char::from(row.letter), row.here, row.word);
    let error = CommandError::usage(format!("-{letter} {here}, and {word} would be copied: {what}"));
    Some(row.hints.iter().fold(error, |error, hint| error.hint(*hint)))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_rate(word: &str) -> bool {
    is_number(word.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']).unwrap_or(word))
}

/// Whether a word looks like the key that scp takes there.
fn is_key(word: &str) -> bool {
    let (directory, name) = word.rsplit_once('/').unwrap_or(("", word));
    directory.ends_with(".ssh") || name.starts_with("id_") || name.ends_with(".pem")
}

/// `StrictHostKeyChecking=no`
fn is_ssh_option(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// `aes128-gcm@openssh.com`
fn is_cipher(word: &str) -> bool {
    ["aes", "chacha20", "3des", "arcfour", "blowfish"].iter().any(|known| word.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_programs_behind_letters_of_ours_are_asked_about() {
        for (flag, word, hint) in [
            ("-P", "2222", "-e 'ssh -p 2222'"),
            ("-p", "22", "-e 'ssh -p 2222'"),
            ("-rP", "8", "--streams N"),
            ("-i", "/home/u/.ssh/key", "-e 'ssh -i KEY'"),
            ("-o", "StrictHostKeyChecking=no", "-e 'ssh -o"),
            ("-c", "aes128-gcm@openssh.com", "-e 'ssh -c"),
            ("-D", "/usr/lib/openssh/sftp-server", "--remote-path"),
            ("-X", "nrequests=64", "--streams N"),
            ("-x", "100M", "--bwlimit"),
        ] {
            let error = value_of_theirs(OsStr::new(flag), OsStr::new(word)).expect(flag);
            assert!(error.failure.why.contains(word), "{error}");
            assert!(error.hints.iter().any(|told| told.contains(hint)), "{flag}: {:?}", error.hints);
        }
        for (flag, word) in [
            ("-P", "run42"),
            ("-p", "22/"),
            ("-c", "a.dat"),
            ("-o", "a=b/c"),
            ("--update", "22"),
            ("--to", "A=b"),
            ("-e", "22"),
            ("-c", "src"),
            ("-X", "x"),
        ] {
            assert_eq!(value_of_theirs(OsStr::new(flag), OsStr::new(word)), None, "{flag} {word}");
        }
    }
}
