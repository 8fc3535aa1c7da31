//! The values of bbcp's flags.

use std::ffi::OsString;

use carrack_core::path::display_bytes;

use crate::cli::words::split_words;
use crate::command::names::line::{LineError, OldLine};

/// What stands for another value in a command that starts the far side.
const IDENTITY: &str = "%I";
const LOGIN: &str = "%U";
const HOST: &str = "%H";
const ONLY_IPV4: &str = "%4";

fn text_of<'a>(flag: &str, value: &'a [u8]) -> Result<&'a str, LineError> {
    std::str::from_utf8(value).map_err(|_| LineError::value(flag, value, "text is expected"))
}

/// A number with one of the letters behind it, and what that makes of it.
fn scaled(flag: &str, value: &[u8], letters: &[(char, u64)], what: &str) -> Result<u64, LineError> {
    let refused = || LineError::value(flag, value, format!("{what} is expected"));
    let text = text_of(flag, value)?;
    let last = text.chars().last().map(|last| last.to_ascii_lowercase());
    let scale = last.and_then(|last| letters.iter().find(|(letter, _)| *letter == last));
    let (digits, factor) = scale.map_or((text, 1), |(_, factor)| (&text[..text.len() - 1], *factor));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<u64> = digits.parse().ok().filter(|_| is_number);
    number.and_then(|number| number.checked_mul(factor)).filter(|number| *number > 0).ok_or_else(refused)
}

/// A size: bytes, or with K, M, G.
pub fn size(flag: &str, value: &[u8]) -> Result<u64, LineError> {
    scaled(flag, value, &[('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)], "a size such as 512K, 2M or 1G")
}

/// A time in seconds, or with S, M, H.
pub fn seconds(flag: &str, value: &[u8]) -> Result<u64, LineError> {
    scaled(flag, value, &[('s', 1), ('m', 60), ('h', 3600)], "a time such as 90, 15m or 2h")
}

/// Looks at the values that have no effect, as bbcp does.
///
/// # Errors
/// The first that bbcp refuses, too.
pub fn check_without_effect(line: &OldLine) -> Result<(), LineError> {
    for given in line.without_effect() {
        let Some(value) = &given.value else { continue };
        match given.row.names[0] {
            "-w" => size("-w", value.strip_prefix(b"=").unwrap_or(value)).map(drop)?,
            name @ ("-B" | "-U") => size(name, value).map(drop)?,
            "-b" => OldLine::number_of("-b", value.strip_prefix(b"+").unwrap_or(value), 1, 4096).map(drop)?,
            "-q" => OldLine::number_of("-q", value, 0, 255).map(drop)?,
            "-u" if !matches!(value.as_slice(), b"s" | b"t" | b"st" | b"ts") => {
                return Err(LineError::value("-u", value, "s, t or st is expected"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What `--ports` has of `LO[:HI]`.
pub fn ports(value: &[u8]) -> Result<String, LineError> {
    let text = text_of("-Z", value)?;
    let range = text.replacen(':', "-", 1);
    match crate::cli::ports::parse_ports(&range) {
        Ok(_) => Ok(range),
        Err(_) => Err(LineError::value("-Z", value, "a port is expected, or a range such as 50000:51000")),
    }
}

/// What `--chmod` has of `[DMODE/][FMODE]`.
pub fn modes(value: Option<&[u8]>) -> Result<String, LineError> {
    let (mut directory, mut file) = ("755".to_owned(), "644".to_owned());
    let Some(value) = value else { return Ok(format!("D{directory},F{file}")) };
    let text = text_of("-m", value)?;
    let octal = |mode: &str| {
        let is_one = (1..=4).contains(&mode.len()) && mode.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let refused = "octal permissions are expected: [DIRECTORIES/][FILES], such as 640 or 2755/644";
        is_one.then(|| mode.to_owned()).ok_or_else(|| LineError::value("-m", value, refused))
    };
    match text.split_once('/') {
        Some((of_directory, "")) => directory = octal(of_directory)?,
        Some((of_directory, of_file)) => (directory, file) = (octal(of_directory)?, octal(of_file)?),
        None => file = octal(text)?,
    }
    Ok(format!("D{directory},F{file}"))
}

/// Flags of `carrack copy` for a file that grows, of `i=SECONDS`, a path of a lock file, and others without effect.
pub fn growing(value: Option<&[u8]>) -> Result<Vec<OsString>, LineError> {
    let mut flags: Vec<OsString> = ["--growing", "follow"].map(Into::into).to_vec();
    let Some(value) = value else { return Ok(flags) };
    for setting in text_of("-R", value)?.split(',') {
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
        match setting.split_once('=') {
            Some(("i", idle)) if number(idle) => flags.extend(["--growing-idle".into(), format!("{idle}s").into()]),
            Some(("c", every)) if number(every) => {}
            None if matches!(setting, "b" | "h" | "t" | "v") => {}
            None if setting.starts_with('/') => {
                let name = setting.rsplit('/').next().unwrap_or_default();
                flags.extend(["--growing-lock".into(), name.into()]);
            }
            _ => {
                return Err(LineError::value(
                    "-R",
                    value,
                    "c=SECONDS, i=SECONDS, b, h, v or the path of a lock file is expected",
                ));
            }
        }
    }
    Ok(flags)
}

/// The words that start ssh, of a command in which `%I`, `%U`, `%H` and `%4` stand for other words. What stands behind
/// the host is the other program at the far side, and no concern of ours.
pub fn ssh_words(
    flag: &str,
    command: &[u8],
    identity: Option<&str>,
    only_ipv4: bool,
) -> Result<Vec<String>, LineError> {
    let text = text_of(flag, command.strip_prefix(b"+").unwrap_or(command))?;
    let words = split_words(text).map_err(|why| LineError::value(flag, command, why))?;
    let Some(host) = words.iter().position(|word| word.contains(HOST)) else {
        return Err(LineError::value(flag, command, "%H has to stand in it, for the host"));
    };
    if !words[0].rsplit('/').next().is_some_and(|program| program.contains("ssh")) {
        return Err(LineError::value(flag, command, "it has to begin with ssh, which is how the far side is reached"));
    }
    let mut found: Vec<String> = Vec::new();
    for word in &words[..host] {
        match word.as_str() {
            IDENTITY => found.extend(identity.into_iter().flat_map(|key| ["-i".to_owned(), key.to_owned()])),
            ONLY_IPV4 => found.extend(only_ipv4.then(|| "-4".to_owned())),
            // The login stands before the host.
            LOGIN => found.truncate(found.len() - usize::from(found.last().is_some_and(|last| last == "-l"))),
            word if word.contains(LOGIN) => {}
            // ssh has had no rsh for long.
            word if word.to_ascii_lowercase().contains("fallbacktorsh") => {
                found.truncate(found.len() - usize::from(found.last().is_some_and(|last| last == "-o")));
            }
            word => found.push(word.to_owned()),
        }
    }
    Ok(found)
}

/// One word for `--rsh`.
pub fn joined(words: &[String]) -> String {
    let quote = |word: &String| match (word.is_empty() || word.contains(char::is_whitespace), word.contains('\'')) {
        (_, true) => format!("\"{word}\""),
        (true, false) => format!("'{word}'"),
        (false, false) => word.clone(),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// A path, for a message.
pub fn shown(path: &[u8]) -> String {
    display_bytes(path).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_and_its_flags_are_taken_of_a_command() {
        let words =
            |command: &str, key, ipv4| ssh_words("-S", command.as_bytes(), key, ipv4).map(|words| joined(&words));
        for (command, key, ipv4, expected) in [
            ("ssh -x -a -oFallBackToRsh=no %I -l %U %H /usr/common/usg/bin/bbcp", None, false, "ssh -x -a"),
            ("ssh -x -a -oFallBackToRsh=no %4 %I -l %U %H bbcp", Some("k"), true, "ssh -x -a -4 -i k"),
            ("ssh -o FallBackToRsh=no -p 2222 %U@%H bbcp", None, false, "ssh -p 2222"),
            ("+/usr/bin/ssh -l me %H bbcp", None, false, "/usr/bin/ssh -l me"),
            ("ssh -o 'ProxyCommand=nc a b' %H bbcp -D", None, false, "ssh -o 'ProxyCommand=nc a b'"),
            ("ssh %I %H bbcp", Some("my key"), false, "ssh -i 'my key'"),
        ] {
            assert_eq!(words(command, key, ipv4).as_deref(), Ok(expected), "{command}");
        }
        for command in ["rsh %H bbcp", "ssh host bbcp", "ssh 'x %H", ""] {
            assert!(words(command, None, false).is_err(), "{command}");
        }
    }

    #[test]
    fn values_are_read_as_bbcp_does() {
        assert_eq!(size("-w", b"2M"), Ok(2 << 20));
        assert_eq!(size("-w", b"262144"), Ok(262_144));
        assert_eq!(seconds("-t", b"15m"), Ok(900));
        assert_eq!(ports(b"50000:51000").as_deref(), Ok("50000-51000"));
        assert_eq!(ports(b"5031").as_deref(), Ok("5031"));
        assert_eq!(modes(None).as_deref(), Ok("D755,F644"));
        assert_eq!(modes(Some(b"600")).as_deref(), Ok("D755,F600"));
        assert_eq!(modes(Some(b"2755/644")).as_deref(), Ok("D2755,F644"));
        assert_eq!(modes(Some(b"700/")).as_deref(), Ok("D700,F644"));
        let flags = |value: &[u8]| growing(Some(value)).map(|flags| flags.join(" ".as_ref()).into_string());
        assert_eq!(
            flags(b"c=1,i=9,h,/x/run.lock"),
            Ok(Ok("--growing follow --growing-idle 9s --growing-lock run.lock".into()))
        );
        for value in [&b""[..], b"0", b"x", b"2Q", b"-1", b"99999999999999999999"] {
            assert!(size("-w", value).is_err() && seconds("-t", value).is_err(), "{value:?}");
        }
        for value in [&b"8"[..], b"0:5", b"5:4", b"", b"a"] {
            assert_eq!(ports(value).is_err(), value != b"8", "{value:?}");
        }
        for value in [&b"9"[..], b"", b"/644", b"75555", b"u+x"] {
            assert!(modes(Some(value)).is_err(), "{value:?}");
        }
        assert!(flags(b"q=1").is_err());
    }
}
