//! `carrack completions`: a script for a shell, from the tree of verbs and flags itself.

use clap::ArgMatches;
use clap_complete::{Shell, generate};

use crate::error::CommandError;
use crate::output::stream;
use crate::{cli, exit};

/// Runs the verb.
pub fn run(matches: &ArgMatches) -> Result<u8, CommandError> {
    let name = matches.get_one::<String>("shell").map(String::as_str).unwrap_or_default();
    let script = script(name)?;
    stream::print(&script)?;
    Ok(exit::DONE)
}

fn script(shell: &str) -> Result<Vec<u8>, CommandError> {
    let shell = match shell {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => {
            return Err(CommandError::usage("completions are for bash, zsh and fish"));
        }
    };
    // Into memory first: the generator panics when its writer fails.
    let mut script = Vec::new();
    generate(shell, &mut cli::people_command(), "carrack", &mut script);
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_learns_every_verb() {
        for shell in ["bash", "zsh", "fish"] {
            let script = String::from_utf8(script(shell).expect("a script")).expect("text");
            for word in ["mkdir", "bwlimit", "completions", "token"] {
                assert!(script.contains(word), "{shell} {word}");
            }
            assert!(!script.contains("agent"), "{shell}: a verb that is not for people");
        }
        assert!(script("tcsh").is_err());
    }
}
