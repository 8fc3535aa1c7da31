//! `carrack completions`: a script for a shell, from the tree of verbs and flags itself.

use clap::{Arg, Command};
use clap_complete::{Shell, generate};

use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::stream;

const SHELL: &str = "shell";

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("completions")
        .about("Print a completion script for a shell")
        .arg(Arg::new(SHELL).value_name("SHELL").value_parser(["bash", "zsh", "fish"]).required(true))
}

/// Runs the verb, with the tree that people see.
pub fn run(flags: &Flags, tree: Command) -> Result<u8, CommandError> {
    let name = flags.typed_one::<String>(SHELL).map(String::as_str).unwrap_or_default();
    let script = script(name, tree)?;
    stream::print(&script)?;
    Ok(exit::DONE)
}

fn script(shell: &str, mut tree: Command) -> Result<Vec<u8>, CommandError> {
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
    generate(shell, &mut tree, "carrack", &mut script);
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::VERBS;
    use crate::command::tree::people_tree;

    #[test]
    fn completions_of_every_shell_know_every_verb() {
        let tree = || people_tree(VERBS);
        for shell in ["bash", "zsh", "fish"] {
            let script = String::from_utf8(script(shell, tree()).expect("a script")).expect("text");
            for word in ["mkdir", "bwlimit", "completions", "token"] {
                assert!(script.contains(word), "{shell} {word}");
            }
            assert!(!script.contains("speaks"), "{shell}: a flag that is not for people");
        }
        assert!(script("tcsh", tree()).is_err());
    }
}
