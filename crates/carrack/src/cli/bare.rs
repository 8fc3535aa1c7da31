//! `carrack SRC... DST`: a command line without a verb is a copy.
//!
//! clap wants the verb first, so it is put there. Which words are values and not locations is asked of the copy verb's
//! own flags; nothing is parsed twice.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::Command;

/// What stands first behind the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstArgument {
    /// A verb, at this index.
    Verb(usize),
    /// Something else, at this index: a location, or `--`.
    Location(usize),
    /// Nothing: there are flags only.
    Nothing,
}

/// Puts the verb in front, and `copy` where there is none. The first argument is the program's name.
pub fn with_verb(tree: &Command, mut arguments: Vec<OsString>) -> Vec<OsString> {
    match first_word(tree, &arguments) {
        // `carrack -v ls host:` is meant as it reads.
        FirstArgument::Verb(index) => arguments[1..=index].rotate_right(1),
        FirstArgument::Location(_) => arguments.insert(1, "copy".into()),
        FirstArgument::Nothing if asks_about_the_program(&arguments) => {}
        FirstArgument::Nothing => arguments.insert(1, "copy".into()),
    }
    arguments
}

/// Where the first word stands that is neither a flag nor a verb, if that is what stands first.
#[cfg(feature = "terminal")]
pub fn first_location(tree: &Command, arguments: &[OsString]) -> Option<usize> {
    match first_word(tree, arguments) {
        FirstArgument::Location(index) => Some(index),
        FirstArgument::Verb(_) | FirstArgument::Nothing => None,
    }
}

fn first_word(tree: &Command, arguments: &[OsString]) -> FirstArgument {
    let copy = tree.find_subcommand("copy");
    let takes_value = |matching: &dyn Fn(&clap::Arg) -> bool| {
        copy.is_some_and(|copy| {
            copy.get_arguments().any(|arg| matching(arg) && arg.get_action().takes_values() && !arg.is_positional())
        })
    };
    let mut index = 1;
    while let Some(argument) = arguments.get(index) {
        let bytes = argument.as_bytes();
        let value_follows = match bytes {
            b"--" => return FirstArgument::Location(index),
            [b'-', b'-', name @ ..] => takes_value(&|arg| arg.get_long().is_some_and(|long| long.as_bytes() == name)),
            // In `-ve CMD` the value of the last letter follows; in `-eCMD` it is there already.
            [b'-', letters @ ..] if !letters.is_empty() => {
                let valued =
                    letters.iter().position(|&letter| takes_value(&|arg| arg.get_short() == Some(char::from(letter))));
                valued == Some(letters.len() - 1)
            }
            _ if is_verb(tree, argument) => return FirstArgument::Verb(index),
            _ => return FirstArgument::Location(index),
        };
        index += if value_follows { 2 } else { 1 };
    }
    FirstArgument::Nothing
}

fn is_verb(tree: &Command, word: &OsStr) -> bool {
    word == "help"
        || word.to_str().is_some_and(|word| {
            tree.get_subcommands()
                .any(|verb| verb.get_name() == word || verb.get_all_aliases().any(|alias| alias == word))
        })
}

fn asks_about_the_program(arguments: &[OsString]) -> bool {
    match arguments.get(1) {
        None => true,
        Some(first) => ["-h", "--help", "-V", "--version"].iter().any(|known| first == known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        let arguments = std::iter::once("carrack").chain(line.split_whitespace()).map(OsString::from).collect();
        let arguments = with_verb(&crate::command::whole_tree(), arguments);
        let words: Vec<&str> = arguments[1..].iter().filter_map(|word| word.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn bare_line_without_a_verb_is_a_copy() {
        let cases = [
            ("a b", "copy a b"),
            ("copy a b", "copy a b"),
            ("cp a b", "cp a b"),
            ("-v a b", "copy -v a b"),
            ("a -v b", "copy a -v b"),
            ("a ls", "copy a ls"),
            ("./ls b", "copy ./ls b"),
            ("-- ls b", "copy -- ls b"),
            ("-v -- ls b", "copy -v -- ls b"),
            ("- null:", "copy - null:"),
            ("--streams 4 a b", "copy --streams 4 a b"),
            ("--streams ls a b", "copy --streams ls a b"),
            ("--streams=4 ls x", "ls --streams=4 x"),
            ("-e ls a b", "copy -e ls a b"),
            ("-ve ls a b", "copy -ve ls a b"),
            ("-els a b", "copy -els a b"),
            ("-nv cp a b", "cp -nv a b"),
            ("--json ls x", "ls --json x"),
            ("ls x", "ls x"),
            ("help ls", "help ls"),
            ("agent --hello x", "agent --hello x"),
            ("lss x", "copy lss x"),
            ("--help", "--help"),
            ("-V", "-V"),
            ("--version", "--version"),
            ("", ""),
            ("-n", "copy -n"),
            ("a --help", "copy a --help"),
        ];
        for (line, expected) in cases {
            assert_eq!(rewritten(line), expected, "{line}");
        }
    }
}
