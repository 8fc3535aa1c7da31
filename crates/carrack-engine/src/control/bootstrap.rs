//! The line of shell that an ssh session runs at the far side: it finds an agent there, or keeps and
//! runs one that is sent to it.
//!
//! It needs a POSIX shell, what coreutils (or busybox) has, and nothing else. It stands between single quotes in a line
//! that the login shell reads, whichever that is: so no single quote, no exclamation mark and no newline are in it.
//!
//! A program is never run by its name alone. One on the PATH, or named by `--remote-path`, has to say the session's
//! nonce. One in a cache has to be the very program that the command would send, by size and checksum, in a directory
//! that is the user's and that nobody else may write to; the shell stands in that directory while it looks and runs, so
//! that no rename above can slip in another. What is sent is run, and synced by itself, before it gets its name. It
//! travels compressed where the far side shows that its `gzip` works.

use std::fmt::Write as _;

use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::Reach;
use carrack_core::wire::PROTOCOL_VERSION;

use super::program::Program;
use crate::error::failure;

/// What the program is called with to be an agent.
pub const AGENT: &str = "agent";
/// No agent there: the program is to be sent. System and kind of processor follow, and [`GZIP`].
pub const NEED_LINE: &str = "carrack-need";
/// Ends [`NEED_LINE`] where the far side unpacks what is sent.
pub const GZIP: &str = "gzip";
/// No agent there, and none may be sent.
pub const MISSING_LINE: &str = "carrack-missing";
/// What was sent could not be kept or run.
pub const FAILED_LINE: &str = "carrack-failed";

/// Whether `$1`, which is here, is the user's, and nobody else may write to it. A link never is.
const OWN: &str = "own() { set -- $(ls -ldn \"$1\" 2>/dev/null); \
     case $1 in [d-]rwx?-??-?*) [ \"$3\" = \"$u\" ];; *) false;; esac; }; ";

/// Goes to a directory `$1` in which nobody else may put anything. A link that somebody has put at its name in `/tmp`
/// is not followed: it could lead to any directory of the user's.
const AT: &str = "at() { own \"$1\" && cd \"$1\" 2>/dev/null && own .; }; ";

/// Whether the file `$1` is as long as the program, and has its checksum; some busyboxes cannot tell the latter.
const SAME: &str = "same() { if command -v cksum >/dev/null; then [ \"$(cksum <$1)\" = \"$k\" ]; \
     else [ \"$(wc -c <$1)\" -eq $s ]; fi; }; ";

/// Makes the directory `$d`, and in it room for the program, under a name for the time being. That programs may be run
/// there is found out by one of a single line: a shell runs it itself, if the system lets it.
const MAKE: &str = "room() { case $d in /*) umask 077; mkdir -p \"$d\" && \
     { at \"$d\" || { echo it is not the directory of this user alone >&2; false; }; } && \
     { { echo : >$t && chmod 700 $t && ./$t </dev/null && head -c $s </dev/zero >$t; } || { rm -f $t; false; }; };; \
     *) false;; esac; }; ";

/// Removes what a push that was killed has left here, once it has been left alone for a day: one that
/// goes on writes to its own.
const OLD: &str = "old() { for f in push.????????; do \
     [ \"$(find $f -prune -type f -mtime +0 2>/dev/null)\" ] && rm -f $f; done; }; ";

/// Leaves `$z`, the number of bytes that come compressed, empty where `gzip` is missing, or does not
/// give back what it was given.
const UNPACKS: &str = "[ \"$(echo $n | gzip -c 2>/dev/null | gzip -dc 2>/dev/null)\" = $n ] || z=; ";

/// What comes, as it is to be kept. `head` takes the announced bytes and no more.
const TAKE: &str = "take() { if [ \"$z\" ]; then head -c $z | gzip -dc; else head -c $s; fi; }; ";

/// The line. `verb` is what the program is called with there; a program that does not know it does not fit. `program`
/// is what is sent where there is none; `None` where none may be.
///
/// # Errors
/// When the path given for the program cannot stand in it.
pub fn script(verb: &str, nonce: &str, reach: &Reach, program: Option<&Program>) -> Result<String, Failure> {
    // First, one more process: where there can be none, the shell says so, and is heard.
    let mut script = format!(
        "(:) || exit 71; n={nonce}; hi() {{ [ \"$(\"$@\" --hello $n --supports {PROTOCOL_VERSION} </dev/null)\" = $n ]; }}; \
         by() {{ hi \"$c\" {verb} 2>/dev/null && exec \"$c\" {verb} --hello $n; }}; "
    );
    if let Some(path) = &reach.remote_path {
        let _ = write!(script, "c={}; by; ", quoted(path)?);
    }
    script += "c=$(command -v carrack 2>/dev/null) && by; ";
    let Some(program) = program else {
        let _ = write!(script, "echo; echo {MISSING_LINE} $n; exit 127");
        return Ok(script);
    };
    let Program { hash, size, cksum, .. } = program;
    let compressed = program.gzip_size().map(|size| size.to_string()).unwrap_or_default();
    let short = &nonce[..nonce.len().min(8)];
    let _ = write!(
        script,
        "h=agent-{hash}; s={size}; z={compressed}; k=\"{cksum} {size}\"; t=push.{short}; u=$(id -u); w=$PWD; o=; g=; m=; "
    );
    script += OWN;
    script += AT;
    script += SAME;
    script += MAKE;
    script += TAKE;
    script += OLD;
    let _ = write!(script, "go() {{ exec ./$h {verb} --hello $n --in \"$w\" $o; }}; ");
    script += "c=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}; \
         set -- \"${c:+$c/carrack}\" \"${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/carrack}\" \
         \"${TMPDIR:+$TMPDIR/carrack-$u}\" /tmp/carrack-$u /var/tmp/carrack-$u; ";
    let _ = write!(
        script,
        "for d in \"$@\"; do \
         at \"$d\" && {{ old; [ -f $h ]; }} && own $h && same $h && hi ./$h {verb} 2>/dev/null && go; done; "
    );
    script += "for d in \"$@\"; do \
         r=$(room 2>&1) && at \"$d\" && { g=1; break; }; [ -z \"$d\" ] || m=\"$m$d: $r; \"; done; ";
    // Where all of these are somebody else's, or nothing is to be had there: a directory of its own,
    // which goes with the agent.
    script += "[ \"$g\" ] || { d=$(mktemp -d \"${TMPDIR:-/tmp}/carrack.XXXXXX\" 2>&1) && \
         { r=$(room 2>&1) && at \"$d\" && g=1 && o=--once || rmdir \"$d\"; } || m=\"$m$d\"; }; ";
    script += "[ \"$g\" ] && { m=; ";
    if program.gzip_size().is_some() {
        script += UNPACKS;
    }
    let _ = write!(script, "echo; echo {NEED_LINE} $n $(uname -s) $(uname -m) ${{z:+{GZIP}}}; ");
    let _ = write!(
        script,
        "take 1<>$t && {{ same $t || {{ echo $d: it did not come whole >&2; false; }}; }} && \
         hi ./$t {verb} --sync && mv -f $t $h && go; rm -f $t; }}; "
    );
    let _ = write!(script, "[ -z \"$m\" ] || echo \"$m\" >&2; echo; echo {FAILED_LINE} $n; exit 127");
    Ok(script)
}

/// A path between double quotes. A tilde at its start keeps its meaning.
fn quoted(path: &str) -> Result<String, Failure> {
    if path.chars().any(|character| matches!(character, '\'' | '!') || character.is_control()) {
        let why = "the path of the program on the remote host may not contain quotes, exclamation marks or control characters";
        return Err(failure(ErrorCode::Usage, Side::Command, why).for_reason(Reason::BadRemotePath));
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use carrack_core::request::SlimProgram;

    static SLIM: SlimProgram =
        SlimProgram { gzip: b"packed", size: 70, blake3: [0xab; 32], cksum: 1, unpack: |_| None };

    #[test]
    fn script_survives_any_login_shell() {
        let reach = Reach { remote_path: Some("~/bin/my \"carrack\" $x".into()), ..Reach::default() };
        for program in [None, Some(Program::itself(b"binary".to_vec())), Some(Program::slim(&SLIM))] {
            let script = script(AGENT, "abc", &reach, program.as_ref()).unwrap();
            assert!(!script.contains(['\'', '!', '\n']), "{script}");
            assert!(script.contains("c=\"$HOME/bin/my \\\"carrack\\\" \\$x\""), "{script}");
            let parsed = Command::new("sh").args(["-n", "-c", &script]).status().unwrap();
            assert!(parsed.success());
        }
        assert!(quoted("it's").is_err());
    }

    #[test]
    fn script_names_nothing_that_was_not_compared_run_and_synced() {
        let program = Program::itself(b"binary".to_vec());
        let script = script(AGENT, "abc", &Reach::default(), Some(&program)).unwrap();
        let place = |words: &str| script.find(words).unwrap_or_else(|| panic!("{words} is missing: {script}"));
        let steps = ["take 1<>$t", "same $t", "hi ./$t agent --sync", "mv -f $t $h", "&& go; rm -f $t"].map(place);
        assert!(steps.is_sorted(), "{script}");
    }
}
