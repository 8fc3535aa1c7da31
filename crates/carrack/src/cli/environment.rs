//! Variables that are set and would do nothing: whoever set them thinks that they do.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use carrack_core::path::display_bytes;
use clap::{Arg, Command};

use super::flags::variable;
use crate::error::CommandError;

/// Looks through the environment for `CARRACK_…`. The answer are notes about names that nobody knows: they
/// may be another program's (a container gets `CARRACK_SERVICE_HOST` from a service called carrack), so
/// that they are no errors.
///
/// # Errors
/// A flag of this verb that takes no value, and is read from the command line alone:
/// `CARRACK_DRY_RUN=1` must not move anything.
pub fn check(
    tree: &Command,
    verb: &str,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<String>, CommandError> {
    let ours =
        variables.into_iter().filter(|(name, value)| name.as_bytes().starts_with(b"CARRACK_") && !value.is_empty());
    let mut ours: Vec<OsString> = ours.map(|(name, _)| name).collect();
    // Programs start these, and nobody reads what they say.
    if ours.is_empty() || ["agent", "worker"].contains(&verb) {
        return Ok(Vec::new());
    }
    ours.sort_unstable();
    let people = || tree.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut notes = Vec::new();
    for name in ours {
        let flags = |verb: &Command| -> Vec<Arg> {
            let is_it = |arg: &&Arg| arg.get_long().is_some_and(|long| name == *variable(long));
            arguments(verb).into_iter().filter(is_it).cloned().collect()
        };
        let takes_value = |arg: &Arg| arg.get_action().takes_values();
        let own: Vec<Arg> = tree.find_subcommand(verb).map(flags).unwrap_or_default();
        if let Some(flag) = own.iter().find(|arg| !takes_value(arg)).and_then(Arg::get_long) {
            let message = format!("{}: --{flag} is read from the command line only", display_bytes(name.as_bytes()));
            return Err(CommandError::usage(message).hint(format!("give --{flag}, or unset the variable")));
        }
        // What is another verb's may be set for all of them.
        if people().flat_map(flags).next().is_none() {
            notes.push(format!(
                "note: {} is set, and there is no flag of that name: it does nothing (carrack help {verb} names those that there are)",
                display_bytes(name.as_bytes())
            ));
        }
    }
    Ok(notes)
}

/// The flags of a verb and of all verbs below it.
fn arguments(verb: &Command) -> Vec<&Arg> {
    let below = verb.get_subcommands().flat_map(arguments);
    verb.get_arguments().chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(verb: &str, names: &[(&str, &str)]) -> Result<Vec<String>, CommandError> {
        check(
            &crate::command::whole_tree(),
            verb,
            names.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
    }

    #[test]
    fn variables_without_effect_are_told_or_refused() {
        let quiet = [
            ("CARRACK_STREAMS", "8"),
            ("CARRACK_ROOT", "/"),
            ("CARRACK_NOSUCH", ""),
            ("CARRACK_RECORD", "4K"),
            ("HOME", "/"),
            ("CARRACK", "x"),
        ];
        assert_eq!(checked("copy", &quiet), Ok(Vec::new()));
        let notes = checked("copy", &[("CARRACK_NOSUCH", "1"), ("CARRACK_STREAM", "8")]).expect("no error");
        assert!(notes.len() == 2 && notes[0].contains("CARRACK_NOSUCH") && notes[1].contains("CARRACK_STREAM "));
        for verb in ["agent", "worker"] {
            assert_eq!(checked(verb, &[("CARRACK_NOSUCH", "1")]), Ok(Vec::new()), "{verb}");
        }
        // Flags of verbs below verbs below verbs: carrack service user add --role, service config show --config.
        #[cfg(feature = "service")]
        for verb in ["copy", "service", "task"] {
            assert_eq!(
                checked(verb, &[("CARRACK_ROLE", "viewer"), ("CARRACK_CONFIG", "c.toml")]),
                Ok(Vec::new()),
                "{verb}"
            );
        }
        for (verb, name) in [
            ("copy", "CARRACK_DRY_RUN"),
            ("copy", "CARRACK_NO_CLOBBER"),
            ("serve", "CARRACK_READ_ONLY"),
            ("bench", "CARRACK_FULL"),
            #[cfg(feature = "service")]
            ("service", "CARRACK_DISABLE"),
        ] {
            let error = checked(verb, &[(name, "1")]).expect_err(name);
            assert!(error.to_string().contains(name) && error.exit_code() == crate::exit::USAGE, "{error}");
        }
        assert_eq!(checked("ls", &[("CARRACK_DRY_RUN", "1")]), Ok(Vec::new()));
    }
}
