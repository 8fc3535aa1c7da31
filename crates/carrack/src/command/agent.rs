//! `carrack agent`: what a command starts on the far side of an ssh connection.

use carrack_core::wire::PROTOCOL_VERSION;
use clap::ArgMatches;

use crate::error::CommandError;
use crate::exit;

/// Runs the verb: the protocol on standard input and output, or only whether it is spoken.
pub fn run(matches: &ArgMatches) -> Result<u8, CommandError> {
    if let Some(version) = matches.get_one::<u32>("supports") {
        return Ok(if *version == PROTOCOL_VERSION { exit::DONE } else { exit::OTHER });
    }
    let nonce = matches.get_one::<String>("hello").map(String::as_str).unwrap_or_default();
    check_nonce(nonce)?;
    carrack_engine::agent::run_stdio(nonce)?;
    Ok(exit::DONE)
}

/// The nonce is echoed in the agent's first line: it must not be able to end that line.
fn check_nonce(nonce: &str) -> Result<(), CommandError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte);
    if nonce.is_empty() || nonce.len() > 128 || !nonce.bytes().all(plain) {
        return Err(CommandError::usage("--hello takes 1 to 128 letters and digits"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces() {
        assert!(check_nonce("0123456789abcdefXYZ-_").is_ok());
        for nonce in ["", "a b", "a\nb", "ä", &"x".repeat(129)] {
            assert!(check_nonce(nonce).is_err(), "{nonce:?}");
        }
    }

    #[test]
    fn supports_only_what_is_spoken() {
        for (version, code) in [(PROTOCOL_VERSION, exit::DONE), (PROTOCOL_VERSION + 1, exit::OTHER), (0, exit::OTHER)] {
            let matches = crate::cli::command()
                .try_get_matches_from(["carrack", "agent", "--supports", &version.to_string()])
                .expect("a good line");
            let (_, matches) = matches.subcommand().expect("agent");
            assert_eq!(run(matches), Ok(code));
        }
    }
}
