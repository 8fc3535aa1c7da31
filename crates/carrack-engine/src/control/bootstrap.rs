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

use carrack_core::agents::HostKind;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::Reach;
use carrack_core::wire::PROTOCOL_VERSION;

use super::program::Program;
use crate::error::failure;

/// What the program is called with to be an agent.
pub const AGENT: &str = "agent";
/// No agent there: a program is to be sent. Its hash follows, and [`GZIP`].
pub const NEED_LINE: &str = "carrack-need";
/// No agent there, and none of the programs starts there. System, kind of processor and C library follow.
pub const UNFIT_LINE: &str = "carrack-unfit";
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
const UNPACKS: &str = "[ -z \"$z\" ] || [ \"$(echo $n | gzip -c 2>/dev/null | gzip -dc 2>/dev/null)\" = $n ] || z=; ";

/// What comes, as it is to be kept. `head` takes the announced bytes and no more.
const TAKE: &str = "take() { if [ \"$z\" ]; then head -c $z | gzip -dc; else head -c $s; fi; }; ";

/// What the host is, `$y`, and which C library it has, `$l`: `glibc 2.17`, `musl`, or empty where it does not tell.
const HOST: &str = "y=\"$(uname -s) $(uname -m)\"; \
     l=$(getconf GNU_LIBC_VERSION 2>/dev/null) || l=$(ldd --version 2>&1 | head -n 1); \
     case $l in glibc*) ;; *GNU*|*GLIBC*) l=\"glibc ${l##* }\";; musl*) l=musl;; esac; \
     case $l in \"glibc 2.\"[0-9]*|musl) ;; *) l=;; esac; ";

/// Whether the C library is glibc 2 of at least the second number `$1`. Where it does not tell, only what needs
/// none is sent; `$2` is empty where there is no such program, and then this one is tried.
const FITS: &str = "fits() { case $l in \"\") [ -z \"$2\" ];; musl) false;; \
     *) [ ${l#glibc 2.} -ge $1 ] 2>/dev/null || [ $? = 2 ];; esac; }; ";

/// Takes the first program that fits.
const PICK: &str = "pick() { [ \"$h\" ] || { h=agent-$1; s=$2; k=\"$3 $2\"; z=$4; }; }; ";

/// The line. `verb` is what the program is called with there; a program that does not know it does not fit. `programs`
/// are those of which one is sent where there is none; empty where none may be.
///
/// # Errors
/// When the path given for the program cannot stand in it.
pub fn script(verb: &str, nonce: &str, reach: &Reach, programs: &[Program]) -> Result<String, Failure> {
    // First, one more process: where there can be none, the shell says so, and is heard.
    let mut script = format!(
        "(:) || exit 71; n={nonce}; hi() {{ [ \"$(\"$@\" --hello $n --speaks {PROTOCOL_VERSION} </dev/null)\" = $n ]; }}; \
         by() {{ hi \"$c\" {verb} 2>/dev/null && exec \"$c\" {verb} --hello $n; }}; "
    );
    if let Some(path) = &reach.remote_path {
        let _ = write!(script, "c={}; by; ", double_quoted(path)?);
    }
    script += "c=$(command -v carrack 2>/dev/null) && by; ";
    if programs.is_empty() {
        let _ = write!(script, "echo; echo {MISSING_LINE} $n; exit 127");
        return Ok(script);
    }
    script += HOST;
    script += FITS;
    script += PICK;
    script += "h=; ";
    for program in programs {
        let Program { hash, size, cksum, kind, .. } = program;
        let HostKind { system, machine, .. } = kind;
        let needs_none = programs.iter().any(|other| other.kind.glibc.is_none() && other.kind.is_like(kind));
        let or_none = if needs_none { " none" } else { "" };
        let fits = kind.glibc.map(|minor| format!("fits {minor}{or_none} && ")).unwrap_or_default();
        let packed = program.gzip_size().map(|size| size.to_string()).unwrap_or_default();
        let _ = write!(script, "[ \"$y\" = \"{system} {machine}\" ] && {fits}pick {hash} {size} {cksum} {packed}; ");
    }
    let _ = write!(script, "[ \"$h\" ] || {{ echo; echo {UNFIT_LINE} $n $y $l; exit 127; }}; ");
    let short = &nonce[..nonce.len().min(8)];
    let _ = write!(script, "t=push.{short}; u=$(id -u); w=$PWD; o=; g=; m=; ");
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
    script += UNPACKS;
    let _ = write!(script, "echo; echo {NEED_LINE} $n ${{h#agent-}} ${{z:+{GZIP}}}; ");
    let _ = write!(
        script,
        "take 1<>$t && {{ same $t || {{ echo $d: it did not come whole >&2; false; }}; }} && \
         hi ./$t {verb} --sync && mv -f $t $h && go; rm -f $t; }}; "
    );
    let _ = write!(script, "[ -z \"$m\" ] || echo \"$m\" >&2; echo; echo {FAILED_LINE} $n; exit 127");
    Ok(script)
}

/// A path between double quotes. A tilde at its start keeps its meaning.
fn double_quoted(path: &str) -> Result<String, Failure> {
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
    use std::sync::Arc;

    use carrack_core::agents::AgentProgram;

    use super::*;

    fn agent(system: &'static str, machine: &'static str, glibc: Option<u32>) -> Program {
        let kind = HostKind { system: system.into(), machine: machine.into(), glibc };
        let gzip = Arc::new(|| Ok(b"packed"[..].into()));
        let hash = blake3::hash(format!("{kind}").as_bytes());
        let (size, cksum, unpack) = (70, 1, |_: &[u8]| None);
        let agent = AgentProgram { kind, gzip_size: 6, gzip, size, blake3: *hash.as_bytes(), cksum, unpack };
        Program::agent(Box::leak(Box::new(agent)))
    }

    #[test]
    fn script_survives_any_login_shell() {
        let reach = Reach { remote_path: Some("~/bin/my \"carrack\" $x".into()), ..Reach::default() };
        let several = vec![agent("Linux", "x86_64", Some(17)), agent("Linux", "aarch64", None)];
        for programs in [vec![], vec![Program::itself(b"binary".to_vec())], several] {
            let script = script(AGENT, "abc", &reach, &programs).unwrap();
            assert!(!script.contains(['\'', '!', '\n']), "{script}");
            assert!(script.contains("c=\"$HOME/bin/my \\\"carrack\\\" \\$x\""), "{script}");
            let parsed = Command::new("sh").args(["-n", "-c", &script]).status().unwrap();
            assert!(parsed.success());
        }
        assert!(double_quoted("it's").is_err());
    }

    #[test]
    fn script_names_nothing_that_was_not_compared_run_and_synced() {
        let programs = [Program::itself(b"binary".to_vec())];
        let script = script(AGENT, "abc", &Reach::default(), &programs).unwrap();
        let place = |words: &str| script.find(words).unwrap_or_else(|| panic!("{words} is missing: {script}"));
        let steps = ["take 1<>$t", "same $t", "hi ./$t agent --sync", "mv -f $t $h", "&& go; rm -f $t"].map(place);
        assert!(steps.is_sorted(), "{script}");
    }

    /// The first line that a host prints which says this of itself.
    fn asked(uname: &str, getconf: &str, ldd: &str) -> String {
        let programs =
            [agent("Linux", "x86_64", Some(17)), agent("Linux", "x86_64", None), agent("Linux", "aarch64", Some(28))];
        let known: Vec<(String, HostKind)> = programs.iter().map(|of| (of.hash.clone(), of.kind.clone())).collect();
        let line = script(AGENT, "abc", &Reach::default(), &programs).unwrap();
        let cache = tempfile::tempdir().unwrap();
        let tools = format!(
            "uname() {{ case $1 in -s) echo {};; *) echo {};; esac; }}; getconf() {{ {getconf}; }}; ldd() {{ {ldd}; }}; ",
            uname.split(' ').next().unwrap(),
            uname.split(' ').next_back().unwrap()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{tools}{line}")]).env("XDG_CACHE_HOME", cache.path()).env("PATH", "/usr/bin:/bin");
        let said = shell.stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let line = said.lines().find(|line| line.contains(" abc")).unwrap_or_else(|| panic!("{said}"));
        let line = line.replace(" abc", "");
        known.iter().fold(line, |line, (hash, kind)| line.replace(hash.as_str(), &kind.to_string()))
    }

    #[test]
    fn script_asks_for_what_starts_there() {
        let (old, new) = ("echo glibc 2.12", "echo glibc 2.35");
        let none = "return 127";
        let ubuntu = "echo \"ldd (Ubuntu GLIBC 2.35-0ubuntu3.1) 2.35\"; echo more";
        let odd = "echo \"ldd: line 3: GNU: not found\"";
        let musl = "echo \"musl libc (x86_64)\" >&2; return 1";
        for (uname, getconf, ldd, expected) in [
            ("Linux x86_64", new, none, "carrack-need Linux x86_64 (glibc 2.17) gzip"),
            ("Linux x86_64", "echo glibc 2.17", none, "carrack-need Linux x86_64 (glibc 2.17) gzip"),
            ("Linux x86_64", old, none, "carrack-need Linux x86_64 gzip"),
            ("Linux x86_64", none, musl, "carrack-need Linux x86_64 gzip"),
            ("Linux x86_64", none, none, "carrack-need Linux x86_64 gzip"),
            ("Linux x86_64", none, odd, "carrack-need Linux x86_64 gzip"),
            ("Linux aarch64", none, odd, "carrack-need Linux aarch64 (glibc 2.28) gzip"),
            ("Linux aarch64", new, none, "carrack-need Linux aarch64 (glibc 2.28) gzip"),
            ("Linux aarch64", none, ubuntu, "carrack-need Linux aarch64 (glibc 2.28) gzip"),
            ("Linux aarch64", "echo glibc 2.34.9000", none, "carrack-need Linux aarch64 (glibc 2.28) gzip"),
            ("Linux aarch64", none, none, "carrack-need Linux aarch64 (glibc 2.28) gzip"),
            ("Linux aarch64", old, none, "carrack-unfit Linux aarch64 glibc 2.12"),
            ("Linux aarch64", none, musl, "carrack-unfit Linux aarch64 musl"),
            ("Linux riscv64", new, none, "carrack-unfit Linux riscv64 glibc 2.35"),
            ("Darwin x86_64", none, none, "carrack-unfit Darwin x86_64"),
        ] {
            assert_eq!(asked(uname, getconf, ldd), expected, "{uname}: {getconf}: {ldd}");
        }
    }
}
