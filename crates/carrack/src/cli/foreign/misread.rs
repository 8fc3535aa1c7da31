//! Flags that take a word in another program and none here, where that word would become a source, or letters: it is
//! asked about before anything is copied.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use carrack_core::duration::parse_duration;

use crate::error::CommandError;

/// A flag of ours that takes a word elsewhere.
struct Misread {
    /// Its letter, alone or the last of several, and its name.
    letter: Option<u8>,
    name: &'static str,
    /// Whether a word is of the kind that follows it there.
    is_theirs: fn(&str) -> bool,
    /// Whether the word is a file there, too: then one of its name says nothing.
    is_file: bool,
    /// What the flag does here, and what the word is, as the end of a sentence.
    here: &'static str,
    word: &'static str,
    /// What is typed for what was meant.
    hints: &'static [&'static str],
}

const PORT_OR_COUNT: &[&str] = &["a port of ssh: -e 'ssh -p 2222'", "a number of connections: --streams N"];

const MISREAD: &[Misread] = &[
    Misread {
        letter: Some(b'p'),
        name: "--perms",
        is_theirs: is_number,
        is_file: false,
        here: "keeps special bits",
        word: "a number is an option of something else",
        hints: PORT_OR_COUNT,
    },
    Misread {
        letter: Some(b'P'),
        name: "--progress",
        is_theirs: is_number,
        is_file: false,
        here: "draws the bar",
        word: "a number is an option of something else",
        hints: PORT_OR_COUNT,
    },
    Misread {
        letter: Some(b'i'),
        name: "",
        is_theirs: is_key,
        is_file: true,
        here: "prints what changes",
        word: "a key is an option of ssh",
        hints: &["-e 'ssh -i KEY'", "to copy it: --itemize-changes in place of -i"],
    },
    Misread {
        letter: Some(b'I'),
        name: "",
        is_theirs: is_list,
        is_file: true,
        here: "sends every file",
        word: "a list of what to copy is named otherwise",
        hints: &["--files-from FILE, with paths relative to SRC", "to copy it: --ignore-times in place of -I"],
    },
    Misread {
        letter: Some(b'o'),
        name: "",
        is_theirs: is_ssh_option,
        is_file: false,
        here: "keeps owners",
        word: "a setting is an option of ssh",
        hints: &["-e 'ssh -o OPTION=VALUE'"],
    },
    Misread {
        letter: Some(b'c'),
        name: "",
        is_theirs: is_cipher,
        is_file: false,
        here: "compares by content",
        word: "a cipher is an option of ssh, which data connections do not use",
        hints: &["-e 'ssh -c CIPHER'"],
    },
    Misread {
        letter: Some(b'D'),
        name: "",
        is_theirs: |word| word.ends_with("sftp-server"),
        is_file: true,
        here: "makes devices and FIFOs",
        word: "no server of files is started",
        hints: &["for a Carrack that is not on the PATH there: --remote-path PATH"],
    },
    Misread {
        letter: Some(b'X'),
        name: "",
        is_theirs: |word| word.starts_with("nrequests=") || word.starts_with("buffer="),
        is_file: false,
        here: "keeps extended attributes",
        word: "no requests of SFTP are sent",
        hints: &["--streams N"],
    },
    Misread {
        letter: Some(b'x'),
        name: "",
        is_theirs: is_rate,
        is_file: false,
        here: "stays within one file system",
        word: "a rate is typed otherwise",
        hints: &["--bwlimit RATE"],
    },
    Misread {
        letter: Some(b'l'),
        name: "",
        is_theirs: is_number,
        is_file: false,
        here: "copies links as links",
        word: "a rate is typed otherwise",
        hints: &["scp's -l 8000 (Kbit/s) is --bwlimit 1000K"],
    },
    Misread {
        letter: None,
        name: "--stats",
        is_theirs: |word| parse_duration(word).is_ok(),
        is_file: false,
        here: "adds figures at the end",
        word: "a time is joined to it",
        hints: &["--stats=TIME"],
    },
];

impl Misread {
    /// As which a flag was typed, if it is this one.
    fn typed(&self, flag: &str) -> Option<String> {
        if flag.starts_with("--") {
            return (flag == self.name).then(|| flag.to_owned());
        }
        let [before @ .., last] = flag.strip_prefix('-')?.as_bytes() else { return None };
        // What follows `-e` or `-f` in one word is no flag.
        let is_it = Some(*last) == self.letter && !before.contains(&b'e') && !before.contains(&b'f');
        is_it.then(|| format!("-{}", char::from(*last)))
    }

    /// The word that is joined to its letter.
    fn joined<'a>(&self, word: &'a str) -> Option<&'a str> {
        let (letter, value) = word.strip_prefix('-')?.split_at_checked(1)?;
        // `-p0` is two letters of ours.
        let is_it = letter.bytes().next() == self.letter && (self.is_theirs)(value) && value != "0";
        is_it.then_some(value)
    }

    fn refuse(&self, why: &str) -> CommandError {
        let error = CommandError::usage(format!("{why}: {}", self.word));
        self.hints.iter().fold(error, |error, hint| error.hint(*hint))
    }
}

/// The refusal of the first flag that has a word in another program, where such a word follows, or is joined to it, and
/// no file has its name. A key may be there: nobody means to copy it.
pub fn value_of_theirs(words: &[OsString]) -> Option<CommandError> {
    let text = |at: usize| words.get(at).and_then(|word| word.to_str());
    (0..words.len()).find_map(|at| {
        let flag = text(at)?;
        let apart = MISREAD.iter().find_map(|row| {
            let typed = row.typed(flag)?;
            let word = text(at + 1).filter(|word| (row.is_theirs)(word))?;
            let is_there = !row.is_file && Path::new(word).symlink_metadata().is_ok();
            (!is_there).then(|| row.refuse(&format!("{typed} {}, and {word} would be copied", row.here)))
        });
        let joined = || {
            MISREAD.iter().find_map(|row| {
                let value = row.joined(flag)?;
                Some(row.refuse(&format!("-{} {}, and takes no {value}", &flag[1..2], row.here)))
            })
        };
        apart.or_else(joined)
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_rate(word: &str) -> bool {
    is_number(word.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']).unwrap_or(word))
}

/// The first bytes of a file, as text.
fn beginning(path: &str) -> Option<String> {
    let mut text = Vec::new();
    // A FIFO would wait for whoever writes to it.
    let file =
        Path::new(path).metadata().ok().filter(std::fs::Metadata::is_file).and_then(|_| File::open(path).ok())?;
    file.take(4096).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Whether a word is the key that scp takes there: by its name, or by what the file says.
fn is_key(word: &str) -> bool {
    let (directory, name) = word.rsplit_once('/').unwrap_or(("", word));
    let ends = [".pem", ".key", ".ppk", "_rsa", "_dsa", "_ecdsa", "_ed25519"];
    let is_named = directory.ends_with(".ssh") || name.starts_with("id_") || ends.iter().any(|end| name.ends_with(end));
    let says_so = |text: String| {
        let first = text.lines().next().unwrap_or_default();
        first.starts_with("PuTTY-User-Key") || (first.starts_with("-----BEGIN ") && first.contains("PRIVATE KEY-----"))
    };
    is_named || beginning(word).is_some_and(says_so)
}

/// Whether a word is the list of sources that bbcp takes there: a file whose first line is a path that exists, or one
/// on a host.
fn is_list(word: &str) -> bool {
    let is_source = |line: &str| {
        let is_on_a_host = line.split_once(':').is_some_and(|(host, path)| {
            !host.is_empty() && !host.contains(['/', ' ']) && path.trim_start_matches(':').starts_with('/')
        });
        is_on_a_host || Path::new(line).symlink_metadata().is_ok()
    };
    beginning(word).is_some_and(|text| text.lines().next().is_some_and(is_source))
}

/// `StrictHostKeyChecking=no`
fn is_ssh_option(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// `aes128-gcm@openssh.com`
fn is_cipher(word: &str) -> bool {
    ["aes1", "aes2", "chacha20", "3des", "arcfour", "blowfish"].iter().any(|known| word.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &[&str]) -> Option<CommandError> {
        value_of_theirs(&line.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_of_other_programs_behind_letters_of_ours_are_asked_about() {
        for (line, word, hint) in [
            (&["-P", "2222"][..], "2222", "-e 'ssh -p 2222'"),
            (&["--progress", "2"], "--progress draws the bar, and 2 would be copied", "--streams N"),
            (&["-p", "22"], "22", "-e 'ssh -p 2222'"),
            (&["-rP", "8"], "8", "--streams N"),
            (&["-i", "/home/u/.ssh/key"], "/home/u/.ssh/key", "-e 'ssh -i KEY'"),
            (&["-i", "keys/cluster_ed25519"], "keys/cluster_ed25519", "-e 'ssh -i KEY'"),
            (&["-i", "k.ppk"], "k.ppk", "--itemize-changes"),
            (&["-o", "StrictHostKeyChecking=no"], "StrictHostKeyChecking=no", "-e 'ssh -o"),
            (&["-c", "aes128-gcm@openssh.com"], "aes128-gcm@openssh.com", "-e 'ssh -c"),
            (&["-D", "/usr/lib/openssh/sftp-server"], "sftp-server", "--remote-path"),
            (&["-X", "nrequests=64"], "nrequests=64", "--streams N"),
            (&["-x", "100M"], "100M", "--bwlimit"),
            (&["-l", "8000"], "8000", "--bwlimit 1000K"),
            (&["--stats", "5s"], "--stats adds figures at the end, and 5s would be copied", "--stats=TIME"),
            (&["-P2222", "a"], "-P draws the bar, and takes no 2222", "-e 'ssh -p 2222'"),
            (&["-i/home/u/.ssh/key", "a"], "takes no /home/u/.ssh/key", "-e 'ssh -i KEY'"),
            (&["-oBatchMode=yes", "a"], "takes no BatchMode=yes", "-e 'ssh -o"),
            (&["-caes128-ctr", "a"], "takes no aes128-ctr", "-e 'ssh -c"),
            (&["-p4", "a"], "takes no 4", "--streams N"),
        ] {
            let error = told(line).unwrap_or_else(|| panic!("{line:?}"));
            assert!(error.failure.why.contains(word), "{error}");
            assert!(error.hints.iter().any(|told| told.contains(hint)), "{line:?}: {:?}", error.hints);
        }
        for line in [
            ["-P", "run42"],
            ["-p", "22/"],
            ["-c", "a.dat"],
            ["-o", "a=b/c"],
            ["--update", "22"],
            ["--to", "A=b"],
            ["-e", "22"],
            ["-c", "src"],
            ["-X", "x"],
            ["-I", "no-such-list"],
            ["-i", "run_ed"],
            ["--stats", "run"],
            ["-p0", "a"],
            ["-caessh", "a"],
        ] {
            assert_eq!(told(&line), None, "{line:?}");
        }
    }

    #[test]
    fn keys_and_lists_are_known_by_what_they_say_as_well() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("text").to_owned()
        };
        let data = file("data", "1 2 3\n");
        for (flag, path) in [
            ("-i", file("cluster", "-----BEGIN OPENSSH PRIVATE KEY-----\n")),
            ("-i", file("putty", "PuTTY-User-Key-File-3: ssh-ed25519\n")),
            ("-I", file("here.lst", &format!("{data}\n"))),
            ("-I", file("there.lst", "cluster:/data/a\n")),
        ] {
            let error = told(&[flag, &path, "b"]).unwrap_or_else(|| panic!("{path}"));
            assert!(error.failure.why.contains(&path), "{error}");
        }
        let public = file("cluster.pub", "ssh-ed25519 AAAA\n");
        for line in [["-i", &data], ["-i", &public], ["-I", &data], ["-I", directory.path().to_str().expect("text")]] {
            assert_eq!(told(&line), None, "{line:?}");
        }
    }
}
