//! `-h`: help for who types nothing else, and rsync's `--human-readable` among other letters or beside places.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};

use super::TypedAt;

/// What a line means that clap takes for a question about its verb.
///
/// # Errors
/// What clap says of it: help, too.
pub fn parsed_as_meant(tree: &Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let parse = |words: &[OsString]| tree.clone().try_get_matches_from(words);
    let parsed = parse(arguments);
    let is_help = parsed.as_ref().is_err_and(|answer| answer.kind() == ErrorKind::DisplayHelp);
    let place = TypedAt::of(arguments).filter(|_| is_help && !arguments.iter().any(|word| word == "--help"));
    let verb = place.and_then(|place| {
        let path = &arguments[1..place.words() + 1];
        path.iter().try_fold(tree, |verb, name| verb.find_subcommand(name))
    });
    let Some(verb) = verb else { return parsed };
    let mut words = arguments.to_vec();
    let mut is_among_letters = false;
    for word in words.iter_mut().take_while(|word| word.as_os_str() != "--") {
        if let Some(rest) = word.to_str().and_then(|word| without_letter(verb, word)) {
            is_among_letters |= !rest.is_empty();
            *word = OsString::from(format!("-{rest}"));
        }
    }
    // What is left of `-h` alone would be standard input.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let bare = |at: usize| at < end && words[at] == "-" && arguments[at] != "-";
    let words: Vec<OsString> = (0..words.len()).filter(|at| !bare(*at)).map(|at| words[at].clone()).collect();
    let again = parse(&words);
    let names_places = again.as_ref().is_ok_and(|matches| {
        let mut below = matches;
        while let Some((_, deeper)) = below.subcommand() {
            below = deeper;
        }
        below.try_get_many::<OsString>("locations").ok().flatten().is_some_and(|places| places.len() > 1)
    });
    if is_among_letters || names_places { again } else { parsed }
}

/// The letters of a word without `h`, if that is one of them; what stands behind a letter with a value is that.
fn without_letter(verb: &Command, word: &str) -> Option<String> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let has_value = |letter: char| {
        verb.get_arguments().any(|arg| arg.get_short() == Some(letter) && arg.get_action().takes_values())
    };
    let (flags, value) = letters.split_at(letters.find(has_value).unwrap_or(letters.len()));
    flags.contains('h').then(|| format!("{}{value}", flags.replace('h', "")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::whole_tree;

    fn parsed(line: &str) -> Result<ArgMatches, clap::Error> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parsed_as_meant(&whole_tree(), &crate::cli::bare::with_verb(&whole_tree(), words))
    }

    #[test]
    fn letter_h_is_help_alone_and_without_effect_among_letters_or_beside_places() {
        let places = |line: &str| {
            let matches = parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (_, verb) = matches.subcommand().expect("a verb");
            let places = verb.get_many::<OsString>("locations").into_iter().flatten();
            places.map(|place| place.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        for line in [
            "carrack -avh a b",
            "carrack -h a b",
            "carrack sync -ahP a b",
            "carrack sync -a -h --delete a b",
            "carrack copy a -vh b",
            "carrack sync -he ssh a b",
            "carrack -vhessh a b",
        ] {
            assert_eq!(places(line), "a b", "{line}");
        }
        assert_eq!(places("carrack -vh - b"), "- b");
        for line in ["carrack -h", "carrack copy -h", "carrack sync -h", "carrack sync -h a", "carrack -av --help a b"]
        {
            let answer = parsed(line).expect_err(line);
            assert_eq!(answer.kind(), ErrorKind::DisplayHelp, "{line}");
        }
        // What is wrong beside it is not answered by help.
        for line in ["carrack -avhN a b", "carrack sync -hQ a b"] {
            assert_eq!(parsed(line).expect_err(line).kind(), ErrorKind::UnknownArgument, "{line}");
        }
    }

    #[cfg(feature = "service")]
    #[test]
    fn letter_h_is_no_help_among_the_letters_of_a_task() {
        assert!(parsed("carrack task submit -ah @a:/x @b:/y").is_ok());
        assert_eq!(parsed("carrack task submit -h").expect_err("help").kind(), ErrorKind::DisplayHelp);
    }
}
