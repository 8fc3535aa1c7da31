//! What `-h` prints of a verb with many flags: those that most people need, and where the others are.

use std::ffi::OsString;

use clap::{Arg, Command};

/// A verb with so many flags fits on a screen.
const FLAGS_SHOWN_MOST: usize = 30;

/// Flags that `-h` shows where there are more than fit on a screen, whatever the verb.
const USUAL: &[&str] = &[
    "all",
    "archive",
    "batch",
    "bwlimit",
    "checksum",
    "config",
    "cron",
    "csv",
    "delete",
    "dry-run",
    "every",
    "exclude",
    "files-from",
    "help",
    "human-readable",
    "include",
    "json",
    "label",
    "listen",
    "long",
    "max-delete",
    "node-only",
    "quiet",
    "read-only",
    "recursive",
    "repair",
    "root",
    "rsh",
    "service",
    "streams",
    "token-file",
    "update",
    "verbose",
    "verify",
    "wait",
];

/// The text for a line that asks for help by `-h`; nothing where all of it fits on a screen, or all of it is asked for.
pub fn shortened(tree: &Command, arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    if words.first() == Some(&"help") || words.contains(&"--help") {
        return None;
    }
    let mut path = Vec::new();
    let mut verb = tree;
    for word in words.into_iter().filter(|word| !word.starts_with('-')) {
        let Some(below) = verb.find_subcommand(word) else { break };
        path.push(below.get_name().to_owned());
        verb = below;
    }
    let mut tree = tree.clone();
    tree.build();
    let verb = path.iter().try_fold(&mut tree, |verb, name| verb.find_subcommand_mut(name))?;
    let flags = verb.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set()).count();
    if path.is_empty() || flags <= FLAGS_SHOWN_MOST {
        return None;
    }
    let examples = verb.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let shown = |arg: Arg| {
        let is_usual = arg.is_positional() || USUAL.contains(&arg.get_id().as_str());
        if is_usual { arg } else { arg.hide(true) }
    };
    let all = format!("{examples}All {flags} flags: carrack {} --help", path.join(" "));
    let verb = verb.clone().mut_args(shown).after_help(all);
    Some(verb.clone().render_help().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::whole_tree;

    fn told(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        shortened(&whole_tree(), &words)
    }

    #[test]
    fn short_help_fits_on_a_screen_and_says_where_the_rest_is() {
        let copy = told("carrack copy -h").expect("a verb with many flags");
        assert!(copy.lines().count() <= 50, "{copy}");
        for text in ["--dry-run", "--bwlimit", "Usage: carrack [copy]", "flags: carrack copy --help", "Examples:"] {
            assert!(copy.contains(text), "{text} is not in\n{copy}");
        }
        assert!(!copy.contains("--numeric-ids"), "{copy}");
        let submit = told("carrack task submit @a:/x -h").expect("a verb with many flags");
        assert!(submit.contains("--label") && submit.contains("carrack task submit --help"), "{submit}");
        for line in ["carrack mkdir -h", "carrack copy --help", "carrack help copy", "carrack -h"] {
            assert_eq!(told(line), None, "{line}");
        }
    }

    #[test]
    fn usual_flags_are_flags_of_some_verb() {
        let tree = whole_tree();
        let verbs = tree.get_subcommands().flat_map(|verb| std::iter::once(verb).chain(verb.get_subcommands()));
        let ids: Vec<&str> = verbs.flat_map(Command::get_arguments).map(|arg| arg.get_id().as_str()).collect();
        for usual in USUAL {
            assert!(*usual == "help" || ids.contains(usual), "{usual}");
        }
    }
}
