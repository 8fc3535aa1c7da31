//! What says that a host cannot be reached as it was named, however often it is tried.
//!
//! ssh ends with 255 whatever went wrong, so its words decide. Of the locale it takes the character set alone: they are
//! the same in every language. Only what is listed here counts; whatever else it says may pass.

use carrack_core::agents::HostKind;
use carrack_core::report::ErrorCode;

/// Lines of OpenSSH: how one starts, what stands in it, how it ends, and what it means.
const LINES: &[(&str, &str, &str, ErrorCode)] = &[
    // USER@HOST: Permission denied (publickey,password).
    ("", ": Permission denied (", ").", ErrorCode::AuthenticationFailed),
    ("Received disconnect from ", ": Too many authentication failures", "", ErrorCode::AuthenticationFailed),
    ("Host key verification failed.", "", "", ErrorCode::AuthenticationFailed),
    ("ssh: Could not resolve hostname ", ": ", "", ErrorCode::HostUnknown),
    // What it cannot read of its configuration, or of its arguments, it says before it connects.
    ("", ": terminating, ", " bad configuration options", ErrorCode::Usage),
    ("command-line", "line 0: ", "", ErrorCode::Usage),
    ("Bad owner or permissions on ", "", "", ErrorCode::Usage),
    ("Can't open user config file ", ": ", "", ErrorCode::Usage),
    ("usage: ssh [", "", "", ErrorCode::Usage),
];

/// What the resolvers of glibc, musl and macOS say of a name that is none. That they got no answer is said otherwise.
const NO_SUCH_NAME: [&str; 4] = [
    "Name or service not known",
    "No address associated with hostname",
    "Name does not resolve",
    "nodename nor servname provided, or not known",
];

/// What ssh's lines say, if it is something that trying again does not change.
pub fn of_ssh<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<ErrorCode> {
    lines.find_map(|line| {
        let (.., code) = LINES.iter().find(|(start, within, end, _)| {
            line.starts_with(start) && line[start.len()..].contains(within) && line.ends_with(end)
        })?;
        (*code != ErrorCode::HostUnknown || is_no_such_name(line)).then_some(*code)
    })
}

/// What shells say that cannot start another process: dash, busybox, bash and zsh.
const NO_PROCESS: [&str; 4] = [
    "Cannot fork",
    "can't fork: Resource temporarily unavailable",
    "fork: Resource temporarily unavailable",
    "fork failed: resource temporarily unavailable",
];

/// Whether a far shell has said that its host has no process left.
pub fn lacks_processes<'a>(mut lines: impl Iterator<Item = &'a str>) -> bool {
    lines.any(|line| NO_PROCESS.iter().any(|end| line.ends_with(end)))
}

/// What shells say, in small letters, of a program whose loader (`ld-linux-x86-64.so.2` and the like) is not there:
/// bash, busybox, dash, ksh, mksh and zsh.
const NO_LOADER: [&str; 3] = ["not found", "no such file or directory", "cannot execute: required file not found"];
/// What they say of a program for another kind of processor. busybox takes it for a script.
const OTHER_PROCESSOR: [&str; 5] = [
    "exec format error",
    "cannot execute binary file",
    "cannot execute [exec format error]",
    "not executable: ",
    "line 2: syntax error",
];

/// What a line says of the program that was sent, in small letters. `sh: 1: ./push.01234567: not found` says it behind
/// the name, zsh before it.
fn said_of_program(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("./push.")?;
    let said = match rest.split_once(": ") {
        Some((_, behind)) => behind,
        None => before.trim_end_matches(": ").rsplit(':').next().unwrap_or_default(),
    };
    Some(said.trim().to_ascii_lowercase())
}

/// Why a program that came whole does not start, if the far side's loader or shell has said so.
pub fn of_loader<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    // A start-up file of the shell may say the same of other programs; and what several directories said is one line.
    let mut of_program = lines.flat_map(|line| line.split("; ")).filter(|line| line.contains("./push."));
    // ./push.01234567: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./push.01234567)
    let lacking = |line: &'a str| line.split_once(": version `").and_then(|(_, rest)| rest.split_once("' not found"));
    if let Some((version, _)) = of_program.clone().find_map(lacking) {
        return Some(format!("that host's C library is too old for Carrack's agent: it has no {version}"));
    }
    // ./push.01234567: error while loading shared libraries: libm.so.6: cannot open shared object file: …
    const NO_LIBRARY: &str = ": cannot open shared object file: No such file or directory";
    let missing = |line: &'a str| line.split_once(" shared libraries: ")?.1.strip_suffix(NO_LIBRARY);
    if let Some(library) = of_program.clone().find_map(missing) {
        return Some(format!("that host does not have {library}, which Carrack's agent needs"));
    }
    let has = |line: &str, all: &[&str]| {
        said_of_program(line).is_some_and(|said| all.iter().any(|words| said.starts_with(words)))
    };
    if of_program.clone().any(|line| has(line, &OTHER_PROCESSOR)) {
        return Some("that host does not run programs for the processor that its `uname -m` names".to_owned());
    }
    of_program
        .any(|line| has(line, &NO_LOADER))
        .then(|| "that host does not have the loader of glibc, which Carrack's agent needs".to_owned())
}

/// Why none of the programs starts on a host that has described itself: system, kind of processor, C library.
pub fn of_unfit<'a>(described: &[&str], kinds: impl Iterator<Item = &'a HostKind> + Clone) -> String {
    let (system, machine, library) = match described {
        [system, machine, library @ ..] => (*system, *machine, library.join(" ")),
        _ => ("", "", String::new()),
    };
    let of_machine = kinds.clone().filter(|kind| kind.system == system && kind.machine == machine);
    if let Some(minor) = of_machine.filter_map(|kind| kind.glibc).min() {
        return format!("that host has {library}; Carrack's agent needs glibc 2.{minor}");
    }
    let mut known: Vec<String> = kinds.map(|kind| format!("{} {}", kind.system, kind.machine)).collect();
    known.sort();
    known.dedup();
    format!("that host is {system} {machine}; this carrack has agents for {} alone", known.join(", "))
}

/// Whether these words of a resolver say that there is no such name.
pub fn is_no_such_name(words: &str) -> bool {
    NO_SUCH_NAME.iter().any(|end| words.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_is_known_by_its_words() {
        let (refused, unknown) = (Some(ErrorCode::AuthenticationFailed), Some(ErrorCode::HostUnknown));
        let usage = Some(ErrorCode::Usage);
        let cases = [
            ("me@far: Permission denied (publickey).", refused),
            ("me@10.0.0.7: Permission denied (publickey,gssapi-keyex,gssapi-with-mic,password).", refused),
            ("Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures", refused),
            ("Host key verification failed.", refused),
            ("ssh: Could not resolve hostname far: Name or service not known", unknown),
            ("ssh: Could not resolve hostname far: No address associated with hostname", unknown),
            ("ssh: Could not resolve hostname far: Name does not resolve", unknown),
            ("ssh: Could not resolve hostname far: nodename nor servname provided, or not known", unknown),
            ("/home/me/.ssh/config: terminating, 1 bad configuration options", usage),
            ("command-line: line 0: Bad configuration option: nonsense", usage),
            ("command-line line 0: Missing argument.", usage),
            ("Bad owner or permissions on /home/me/.ssh/config", usage),
            ("Can't open user config file /none: No such file or directory", usage),
            ("usage: ssh [-46AaCfGgKkMNnqsTtVvXxYy] [-B bind_interface] [-b bind_address]", usage),
            // No answer from a name server is no answer.
            ("ssh: Could not resolve hostname far: Temporary failure in name resolution", None),
            ("ssh: Could not resolve hostname far: Try again", None),
            ("ssh: connect to host far port 22: Connection refused", None),
            ("ssh: connect to host far port 22: Connection timed out", None),
            ("ssh: connect to host far port 22: No route to host", None),
            ("kex_exchange_identification: Connection closed by remote host", None),
            ("Connection closed by 10.0.0.7 port 22", None),
            ("Received disconnect from 10.0.0.7 port 22:11: Bye Bye", None),
            ("client_loop: send disconnect: Broken pipe", None),
            // Said on the way to an answer, or by others.
            ("Permission denied, please try again.", None),
            ("sh: 1: /opt/carrack: Permission denied", None),
            ("mktemp: failed to create file: Permission denied (os error 13)", None),
            ("The last login said: Host key verification failed.", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(of_ssh([line].into_iter()), expected, "{line}");
        }
    }

    #[test]
    fn lack_of_processes_is_known_by_its_words() {
        for line in [
            "sh: 1: Cannot fork",
            "sh: can't fork: Resource temporarily unavailable",
            "bash: fork: Resource temporarily unavailable",
            "zsh:1: fork failed: resource temporarily unavailable",
        ] {
            assert!(lacks_processes(["Last login: today", line].into_iter()), "{line}");
        }
        assert!(!lacks_processes(["sh: 1: carrack: not found", "fork: spoon"].into_iter()));
    }

    #[test]
    fn program_that_does_not_start_is_told_of_in_a_sentence() {
        for (line, words) in [
            (
                "./push.0123abcd: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./push.0123abcd)",
                "it has no GLIBC_2.34",
            ),
            ("sh: 1: ./push.0123abcd: not found", "loader of glibc"),
            ("sh: ./push.0123abcd: No such file or directory", "loader of glibc"),
            ("sh: 1: ./push.0123abcd: Exec format error", "uname -m"),
            ("sh: line 1: ./push.0123abcd: cannot execute: required file not found", "loader of glibc"),
            ("zsh:1: no such file or directory: ./push.0123abcd", "loader of glibc"),
            ("sh: ./push.0123abcd: cannot execute binary file: Exec format error", "uname -m"),
            ("zsh:1: exec format error: ./push.0123abcd", "uname -m"),
            ("ksh: ./push.0123abcd: cannot execute [Exec format error]", "uname -m"),
            ("E: mksh: ./push.0123abcd: not executable: 64-bit ELF file", "uname -m"),
            ("./push.0123abcd: line 2: syntax error: EOF in backquote substitution", "uname -m"),
            (
                "./push.0123abcd: error while loading shared libraries: libm.so.6: cannot open shared object file: \
                 No such file or directory",
                "does not have libm.so.6",
            ),
        ] {
            let told = of_loader(["Welcome", line, "bye"].into_iter()).unwrap_or_else(|| panic!("{line}"));
            assert!(told.contains(words), "{told}");
        }
        let joined = "/home/me/.cache/carrack: mkdir: cannot create directory: No such file or directory; \
                      /tmp/carrack-1: sh: 1: ./push.0123abcd: Permission denied; ";
        let loaders = [
            "./push.0123abcd: error while loading shared libraries: libc.so.6: failed to map segment from shared object",
            "./push.0123abcd: error while loading shared libraries: libc.so.6: cannot open shared object file: Permission denied",
            "Error relocating ./push.0123abcd: fcntl64: symbol not found",
        ];
        let other = "lmod: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by lmod)";
        for line in [
            other,
            "sh: 1: find: not found",
            "mkdir: cannot create directory: No such file or directory",
            "hello",
            joined,
        ]
        .into_iter()
        .chain(loaders)
        {
            assert_eq!(of_loader([line].into_iter()), None);
        }
    }

    #[test]
    fn refusal_is_found_among_other_lines() {
        let lines =
            ["Warning: Permanently added 'far'", "Host key verification failed.", "Connection closed by UNKNOWN"];
        assert_eq!(of_ssh(lines.into_iter()), Some(ErrorCode::AuthenticationFailed));
        assert_eq!(of_ssh(lines[2..].iter().copied()), None);
    }
}
