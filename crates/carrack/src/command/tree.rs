//! The tree of verbs and flags, each from its verb's file: what clap parses, and what help, manual and
//! completions are made from.

use std::sync::LazyLock;

use clap::Command;

use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::{agents, exit};

/// A verb.
pub struct Verb {
    /// The name of the verb.
    pub name: &'static str,
    /// What clap knows of it: its flags and their help.
    pub command: fn() -> Command,
    /// Runs it, and answers with an exit code.
    pub run: fn(&Flags) -> Result<u8, CommandError>,
}

const ABOUT: &str = "Copies research data between machines: parallel, encrypted, verified";

/// clap's own order, and where the flags of a line without a verb are found.
const TEMPLATE: &str = "\
{before-help}{about-with-newline}
{usage-heading} {usage}

All flags for copying are in `carrack help copy`.

{all-args}{after-help}";

const NOTES: &str = "\
`carrack SRC... DST` is `carrack copy SRC... DST`.

Locations:
  PATH                        a path on this machine; write ./a:b if its name has a colon
  [USER@]HOST:PATH            over ssh; an IPv6 address in brackets; also ssh://[USER@]HOST/PATH
  carrack://NODE[:PORT]/PATH[#sha256:FINGERPRINT]
                              a `carrack serve`, by default on port 7420
  @NAME:/PATH                 an endpoint of a service (`carrack endpoint`)
  -                           standard input or output
  zero:SIZE  random:SIZE      sources for measuring
  null:                       a sink for measuring

SRC/ with a slash at its end means its contents, as in rsync. A SIZE is a number with K, M, G,
T (1024ⁿ) or KB, MB, GB, TB (1000ⁿ).

Environment:
  CARRACK_<FLAG>              a value for a flag that is not given, for instance CARRACK_STREAMS=8
  NO_COLOR                    if it is set, nothing is coloured

";

/// What `carrack --version` prints behind the name: also what hosts without carrack are sent.
fn long_version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let agents: Vec<String> = agents::inside().iter().map(|agent| agent.kind.to_string()).collect();
        let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
        format!("{}\nagents inside: {agents}", version())
    });
    &VERSION
}

/// What `carrack -V` prints behind the name.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let protocol = carrack_core::wire::PROTOCOL_VERSION;
        let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("CARRACK_BUILD_COMMIT"));
        format!("{version} ({commit}) protocol {protocol}")
    });
    &VERSION
}

/// The whole tree.
pub fn tree(verbs: &[Verb]) -> Command {
    with_verbs(verbs, Some)
}

/// The tree without what only programs call.
#[cfg(feature = "terminal")]
pub fn people_tree(verbs: &[Verb]) -> Command {
    with_verbs(verbs, |verb| match verb.get_name() {
        _ if verb.is_hide_set() => None,
        // Completions have flags that are hidden, too.
        #[cfg(feature = "slim-inside")]
        "agent" => Some(super::agents::with_actions(Command::new("agent"))),
        _ => Some(verb),
    })
}

fn with_verbs(verbs: &[Verb], wanted: impl Fn(Command) -> Option<Command>) -> Command {
    Command::new("carrack")
        .version(version())
        .long_version(long_version())
        .about(ABOUT)
        .override_usage("carrack [OPTIONS] SRC... DST\n       carrack VERB [OPTIONS] ...")
        .help_template(TEMPLATE)
        .after_help(format!("{NOTES}{}", exit::HELP))
        .subcommand_help_heading("Verbs")
        .subcommand_value_name("VERB")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(false)
        .subcommands(verbs.iter().filter_map(|verb| wanted(with_aliases((verb.command)()))))
}

/// What the verbs below others are called elsewhere. (At the top a word may be a directory that is to be copied, and
/// stands for no other verb.)
const ALIASES: &[(&str, &[&str])] = &[
    ("add", &["create"]),
    ("create", &["add"]),
    ("submit", &["create", "add"]),
    ("edit", &["update"]),
    ("update", &["edit"]),
    ("list", &["ls"]),
    ("rm", &["remove", "delete"]),
    ("revoke", &["rm", "remove", "delete"]),
    ("cancel", &["rm", "remove", "delete"]),
    ("forget", &["rm", "remove", "delete"]),
    ("clear", &["rm", "remove", "delete"]),
];

/// The same, where the verbs below it answer to those names, too.
fn with_aliases(verb: Command) -> Command {
    let taken: Vec<String> = verb.get_subcommands().flat_map(names).collect();
    verb.mut_subcommands(|below| {
        let others = ALIASES.iter().find(|(name, _)| *name == below.get_name()).map_or(&[][..], |(_, others)| others);
        let free = others.iter().filter(|other| !taken.iter().any(|name| name == *other));
        with_aliases(below.aliases(free.copied().collect::<Vec<&'static str>>()))
    })
}

fn names(verb: &Command) -> Vec<String> {
    std::iter::once(verb.get_name()).chain(verb.get_all_aliases()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{VERBS, whole_tree};

    #[test]
    fn tree_is_consistent() {
        whole_tree().debug_assert();
        for verb in VERBS {
            assert_eq!((verb.command)().get_name(), verb.name);
        }
    }

    #[cfg(feature = "service")]
    #[test]
    fn verbs_below_others_answer_to_create_update_delete_and_remove() {
        let tree = whole_tree();
        let name = |verb: &str, below: &str, typed: &str| {
            let verb = tree.find_subcommand(verb).expect("a verb");
            let verb = if below.is_empty() { verb } else { verb.find_subcommand(below).expect("a verb below it") };
            verb.find_subcommand(typed).map(|found| found.get_name().to_owned()).unwrap_or_default()
        };
        for (verb, below, expected) in [
            ("task", "", ["submit", "update", "cancel", "cancel", "list"]),
            ("endpoint", "", ["add", "edit", "rm", "rm", "list"]),
            ("timer", "", ["create", "edit", "rm", "rm", "list"]),
            ("service", "token", ["create", "", "revoke", "revoke", "list"]),
            ("service", "user", ["add", "edit", "", "", "list"]),
            ("token", "", ["add", "", "rm", "rm", "list"]),
            ("receipt", "", ["", "", "forget", "forget", "keys"]),
            ("tuning", "", ["", "", "clear", "clear", ""]),
        ] {
            let found = ["create", "update", "delete", "remove", "ls"].map(|typed| name(verb, below, typed));
            assert_eq!(found, expected, "{verb} {below}");
        }
    }

    #[test]
    fn version_names_commit_and_protocol() {
        let version = version();
        assert!(version.starts_with("0."), "{version}");
        assert!(version.contains(" (") && version.contains(") protocol "), "{version}");
    }

    #[test]
    fn help_has_what_a_newcomer_needs() {
        let help = whole_tree().render_help().to_string();
        for text in ["copy", "ls", "serve", "sum", "carrack://", "Exit codes:", "77", "CARRACK_"] {
            assert!(help.contains(text), "{text} is not in\n{help}");
        }
        assert!(help.contains("agent ") == cfg!(feature = "slim-inside"), "{help}");
    }
}
