//! The line of shell that an ssh session runs at the far side: it finds an agent there, or keeps and runs one that is sent to it.
//!
//! It needs a POSIX shell, what coreutils (or busybox) has, and nothing else. It stands between single quotes in a line that the login
//! shell reads, whichever that is: so no single quote, no exclamation mark and no newline are in it.
//!
//! A program is never run by its name alone. One on the PATH, or named by `--remote-path`, has to say the session's nonce. One in a cache
//! has to be the very program that the command would send, by size and checksum, in a directory that is the user's and that nobody else
//! may write to; the shell stands in that directory while it looks and runs, so that no rename above can slip in another. What is sent is
//! run, and synced by itself, before it gets its name.

use std::fmt::Write as _;

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::Reach;
use carrack_core::wire::PROTOCOL_VERSION;

use crate::error::failure;

/// No agent there: the program is to be sent.
pub const NEED_LINE: &str = "carrack-need";
/// No agent there, and none may be sent.
pub const MISSING_LINE: &str = "carrack-missing";
/// What was sent could not be kept or run.
pub const FAILED_LINE: &str = "carrack-failed";

/// Whether `$1`, which is here, is the user's, and nobody else may write to it. A link never is.
const OWN: &str = "own() { set -- $(ls -ldn \"$1\" 2>/dev/null); \
     case $1 in [d-]rwx?-??-?*) [ \"$3\" = \"$u\" ];; *) false;; esac; }; ";

/// Goes to a directory `$1` in which nobody else may put anything. A link that somebody has put at its name in `/tmp` is not followed: it
/// could lead to any directory of the user's.
const AT: &str = "at() { own \"$1\" && cd \"$1\" 2>/dev/null && own .; }; ";

/// Whether the file `$1` is as long as the program, and has its checksum; some busyboxes cannot tell the latter.
const SAME: &str = "same() { if command -v cksum >/dev/null; then [ \"$(cksum <$1)\" = \"$k\" ]; \
     else [ \"$(wc -c <$1)\" -eq $s ]; fi; }; ";

/// Makes the directory `$d`, and in it room for the program, under a name for the time being. That programs may be run there is found
/// out by one of a single line: a shell runs it itself, if the system lets it.
const MAKE: &str = "room() { case $d in /*) umask 077; mkdir -p \"$d\" && \
     { at \"$d\" || { echo it is not the directory of this user alone >&2; false; }; } && \
     { { echo : >$t && chmod 700 $t && ./$t </dev/null && head -c $s </dev/zero >$t; } || { rm -f $t; false; }; };; \
     *) false;; esac; }; ";

/// The line. `binary` is what is sent where there is no agent; `None` where none may be.
///
/// # Errors
/// When the path given for the program cannot stand in it.
pub fn script(nonce: &str, reach: &Reach, binary: Option<&[u8]>) -> Result<String, Failure> {
    let mut script = format!(
        "n={nonce}; hi() {{ [ \"$(\"$@\" --hello $n --supports {PROTOCOL_VERSION} </dev/null)\" = $n ]; }}; \
         by() {{ hi \"$c\" agent 2>/dev/null && exec \"$c\" agent --hello $n; }}; "
    );
    if let Some(path) = &reach.remote_path {
        let _ = write!(script, "c={}; by; ", quoted(path)?);
    }
    script += "c=$(command -v carrack 2>/dev/null) && by; ";
    let Some(binary) = binary else {
        let _ = write!(script, "echo; echo {MISSING_LINE} $n; exit 127");
        return Ok(script);
    };
    let hash = blake3::hash(binary).to_hex();
    let (hash, size, sum) = (&hash[..32], binary.len(), posix_checksum(binary));
    let short = &nonce[..nonce.len().min(8)];
    let _ = write!(
        script,
        "h=agent-{hash}; s={size}; k=\"{sum} {size}\"; t=push.{short}; u=$(id -u); w=$PWD; o=; g=; m=; "
    );
    script += OWN;
    script += AT;
    script += SAME;
    script += MAKE;
    script += "go() { exec ./$h agent --hello $n --in \"$w\" $o; }; \
         c=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}; \
         set -- \"${c:+$c/carrack}\" \"${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/carrack}\" \
         \"${TMPDIR:+$TMPDIR/carrack-$u}\" /tmp/carrack-$u /var/tmp/carrack-$u; ";
    script += "for d in \"$@\"; do \
         at \"$d\" && [ -f $h ] && own $h && same $h && hi ./$h agent 2>/dev/null && go; done; ";
    script += "for d in \"$@\"; do \
         r=$(room 2>&1) && at \"$d\" && { g=1; break; }; [ -z \"$d\" ] || m=\"$m$d: $r; \"; done; ";
    // Where all of these are somebody else's, or nothing is to be had there: a directory of its own, which goes with the agent.
    script += "[ \"$g\" ] || { d=$(mktemp -d \"${TMPDIR:-/tmp}/carrack.XXXXXX\" 2>&1) && \
         { r=$(room 2>&1) && at \"$d\" && g=1 && o=--once || rmdir \"$d\"; } || m=\"$m$d\"; }; ";
    let _ = write!(script, "[ \"$g\" ] && {{ m=; echo; echo {NEED_LINE} $n $(uname -s) $(uname -m); ");
    script += "head -c $s 1<>$t && { same $t || { echo $d: it did not come whole >&2; false; }; } && \
         hi ./$t agent --sync && mv -f $t $h && go; rm -f $t; }; ";
    let _ = write!(script, "[ -z \"$m\" ] || echo \"$m\" >&2; echo; echo {FAILED_LINE} $n; exit 127");
    Ok(script)
}

/// A path between double quotes. A tilde at its start keeps its meaning.
fn quoted(path: &str) -> Result<String, Failure> {
    if path.chars().any(|character| matches!(character, '\'' | '!') || character.is_control()) {
        return Err(failure(
            ErrorCode::Usage,
            Side::Command,
            "--remote-path may not contain quotes, exclamation marks or control characters",
        ));
    }
    let (home, rest) = path.strip_prefix("~/").map_or(("", path), |rest| ("$HOME/", rest));
    let mut text = format!("\"{home}");
    for character in rest.chars() {
        if matches!(character, '"' | '$' | '`' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    Ok(text)
}

/// Of bytes that are eight at a time; by POSIX's polynomial.
static TABLES: [[u32; 256]; 8] = {
    const POLYNOMIAL: u32 = 0x04c1_1db7;
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = ((byte as u32) << 24, 0);
        while bit < 8 {
            sum = (sum << 1) ^ if sum >> 31 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before << 8) ^ tables[0][(before >> 24) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
};

/// What `cksum` prints (POSIX), the one checksum that every far side can make. It is for accidents only: nobody but the user may write
/// what it is made of.
fn posix_checksum(bytes: &[u8]) -> u32 {
    let one = |sum: u32, byte: u8| (sum << 8) ^ TABLES[0][usize::from((sum >> 24) as u8 ^ byte)];
    let mut eights = bytes.chunks_exact(8);
    let mut sum = 0_u32;
    for eight in &mut eights {
        let first = sum.to_be_bytes();
        let next = |place: usize| TABLES[7 - place][usize::from(eight[place] ^ first.get(place).unwrap_or(&0))];
        sum = (0..8).fold(0, |sum, place| sum ^ next(place));
    }
    sum = eights.remainder().iter().fold(sum, |sum, byte| one(sum, *byte));
    let mut length = bytes.len();
    while length > 0 {
        sum = one(sum, (length & 0xff) as u8);
        length >>= 8;
    }
    !sum
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn script_survives_any_login_shell() {
        let reach = Reach { remote_path: Some("~/bin/my \"carrack\" $x".into()), ..Reach::default() };
        for binary in [None, Some(&b"binary"[..])] {
            let script = script("abc", &reach, binary).unwrap();
            assert!(!script.contains(['\'', '!', '\n']), "{script}");
            assert!(script.contains("c=\"$HOME/bin/my \\\"carrack\\\" \\$x\""), "{script}");
            let parsed = Command::new("sh").args(["-n", "-c", &script]).status().unwrap();
            assert!(parsed.success());
        }
        assert!(quoted("it's").is_err());
    }

    #[test]
    fn script_names_nothing_that_was_not_compared_run_and_synced() {
        let script = script("abc", &Reach::default(), Some(b"binary")).unwrap();
        let place = |words: &str| script.find(words).unwrap_or_else(|| panic!("{words} is missing: {script}"));
        let steps =
            ["head -c $s 1<>$t", "same $t", "hi ./$t agent --sync", "mv -f $t $h", "&& go; rm -f $t"].map(place);
        assert!(steps.is_sorted(), "{script}");
    }

    #[test]
    fn checksums_are_those_of_cksum() {
        for (bytes, sum) in [(&b""[..], 4_294_967_295), (b"123456789", 930_766_865)] {
            assert_eq!(posix_checksum(bytes), sum);
        }
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..70_003_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in [1, 7, 8, 9, 255, 256, 65_536, 70_003] {
            let path = directory.path().join("file");
            std::fs::write(&path, &bytes[..length]).unwrap();
            let said = Command::new("cksum").arg(&path).output().unwrap().stdout;
            let said = String::from_utf8(said).unwrap();
            assert_eq!(said.split(' ').next(), Some(posix_checksum(&bytes[..length]).to_string().as_str()), "{length}");
        }
    }
}
