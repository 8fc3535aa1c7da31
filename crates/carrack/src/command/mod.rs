//! The verbs, one file each. A verb takes its flags and answers with an exit code, or with the error that ended it.

mod agent;
#[cfg(feature = "slim-inside")]
mod agents;
#[cfg(feature = "terminal")]
mod bench;
mod check;
#[cfg(feature = "terminal")]
mod completions;
mod context;
mod copy;
#[cfg(feature = "terminal")]
mod doctor;
mod du;
#[cfg(feature = "service")]
mod endpoint;
mod entry;
#[cfg(feature = "terminal")]
mod fan;
mod gc;
#[cfg(feature = "service")]
mod login;
mod ls;
#[cfg(feature = "terminal")]
mod man;
mod mkdir;
mod mv;
mod named;
#[cfg(feature = "terminal")]
mod names;
mod place;
mod reach;
#[cfg(feature = "terminal")]
mod receipt;
#[cfg(feature = "terminal")]
mod report;
mod rm;
mod serve;
#[cfg(feature = "service")]
mod service;
#[cfg(feature = "terminal")]
mod short_help;
mod stat;
mod sum;
mod sum_list;
#[cfg(feature = "service")]
mod task;
#[cfg(feature = "service")]
mod timer;
mod token;
mod tree;
mod tuning;
#[cfg(feature = "terminal")]
mod verify;
#[cfg(feature = "service")]
mod worker;

use std::ffi::OsString;

use clap::Command;
#[cfg(feature = "terminal")]
use clap::error::ErrorKind;

use self::tree::Verb;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::{cli, exit, output};

/// All of them, in the order of the help text.
const VERBS: &[Verb] = &[
    Verb { name: "copy", command: copy::command, run: copy::run },
    Verb { name: "sync", command: copy::sync_command, run: copy::sync },
    Verb { name: "check", command: check::command, run: check::run },
    Verb { name: "ls", command: ls::command, run: ls::run },
    Verb { name: "stat", command: stat::command, run: stat::run },
    Verb { name: "mkdir", command: mkdir::command, run: mkdir::run },
    Verb { name: "mv", command: mv::command, run: mv::run },
    Verb { name: "rm", command: rm::command, run: rm::run },
    Verb { name: "du", command: du::command, run: du::run },
    Verb { name: "sum", command: sum::command, run: sum::run },
    Verb { name: "gc", command: gc::command, run: gc::run },
    #[cfg(feature = "terminal")]
    Verb { name: "bench", command: bench::command, run: bench::run },
    #[cfg(feature = "terminal")]
    Verb { name: "doctor", command: doctor::command, run: doctor::run },
    #[cfg(feature = "terminal")]
    Verb { name: "report", command: report::command, run: report::run },
    #[cfg(feature = "terminal")]
    Verb { name: "verify", command: verify::command, run: verify::run },
    #[cfg(feature = "terminal")]
    Verb { name: "receipt", command: receipt::command, run: receipt::run },
    #[cfg(feature = "terminal")]
    Verb { name: "fan", command: fan::command, run: fan::run },
    #[cfg(feature = "service")]
    Verb { name: "task", command: task::command, run: task::run },
    #[cfg(feature = "service")]
    Verb { name: "endpoint", command: endpoint::command, run: endpoint::run },
    #[cfg(feature = "service")]
    Verb { name: "timer", command: timer::command, run: timer::run },
    #[cfg(feature = "service")]
    Verb { name: "service", command: service::command, run: service::run },
    #[cfg(feature = "service")]
    Verb { name: "login", command: login::login_command, run: login::login },
    #[cfg(feature = "service")]
    Verb { name: "logout", command: login::logout_command, run: login::logout },
    #[cfg(feature = "service")]
    Verb { name: "whoami", command: login::whoami_command, run: login::whoami },
    Verb { name: "token", command: token::command, run: token::run },
    Verb { name: "tuning", command: tuning::command, run: tuning::run },
    Verb { name: "serve", command: serve::command, run: serve::run },
    #[cfg(feature = "terminal")]
    Verb { name: "names", command: names::command, run: names::run },
    #[cfg(feature = "terminal")]
    Verb {
        name: "completions",
        command: completions::command,
        run: |flags| completions::run(flags, tree::people_tree(VERBS)),
    },
    #[cfg(feature = "terminal")]
    Verb { name: "man", command: man::command, run: |flags| man::run(flags, whole_tree()) },
    Verb { name: "agent", command: agent::command, run: agent::run },
    #[cfg(feature = "service")]
    Verb { name: "worker", command: worker::command, run: |flags| worker::run(flags, run) },
];

/// The whole tree of verbs and flags.
pub fn whole_tree() -> Command {
    tree::tree(VERBS)
}

/// Runs a command line (the program's name first) and answers with the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    #[cfg(feature = "terminal")]
    if let Some(old) = arguments.first().and_then(|program| names::CalledAs::called(program)) {
        return old.run(arguments);
    }
    let tree = whole_tree();
    #[cfg(feature = "terminal")]
    if let Some(error) = no_verb(&tree, &arguments) {
        return exit_code_of(Err(error), false);
    }
    let arguments = cli::bare::with_verb(&tree, arguments);
    let parsed = cli::foreign::parsed_as_meant(&tree, &arguments);
    if let Some(error) = cli::foreign::explain(&parsed, &arguments) {
        return exit_code_of(Err(error), false);
    }
    let matches = match parsed {
        Ok(matches) => matches,
        Err(mut refusal) => {
            cli::foreign::tell_no_file(&mut refusal);
            #[cfg(feature = "terminal")]
            let short = (refusal.kind() == ErrorKind::DisplayHelp).then(|| short_help::shortened(&tree, &arguments));
            #[cfg(not(feature = "terminal"))]
            let short: Option<Option<String>> = None;
            let text = short.flatten().unwrap_or_else(|| refusal.render().to_string());
            if refusal.use_stderr() {
                output::stream::say(&text);
                return u8::try_from(refusal.exit_code()).unwrap_or(exit::USAGE);
            }
            // Help and version come this way, too.
            return exit_code_of(output::stream::print(text.as_bytes()).map(|()| exit::DONE), false);
        }
    };
    // clap has refused a line without a verb.
    let Some((name, matches)) = matches.subcommand() else {
        return exit::USAGE;
    };
    let unknown = match cli::environment::check(&tree, name, std::env::vars_os()) {
        Ok(unknown) => unknown,
        Err(error) => return exit_code_of(Err(error), false),
    };
    unknown.iter().for_each(|note| output::say(note));
    let environment = |name: &str| std::env::var_os(name);
    let flags = Flags::new(matches, &environment);
    if !flags.has_if_known(&reach::QUIET) {
        files_of_hosts(&tree, name, matches).iter().for_each(|note| output::say(note));
    }
    let ended = match VERBS.iter().find(|verb| verb.name == name) {
        Some(verb) => (verb.run)(&flags),
        None => Err(CommandError::usage(format!("{name} is not a verb"))),
    };
    exit_code_of(ended, flags.has_if_known(&reach::JSON))
}

/// What is to be known of words that name a path on a host, where a file here has this name.
fn files_of_hosts(tree: &Command, verb: &str, matches: &clap::ArgMatches) -> Vec<String> {
    let positionals = tree.find_subcommand(verb).into_iter().flat_map(Command::get_positionals);
    let words = positionals.filter_map(|arg| matches.try_get_many::<OsString>(arg.get_id().as_str()).ok().flatten());
    words.flatten().filter_map(|word| cli::location::note_of_file(word)).collect()
}

/// What is said of a word in the place of a verb that is none.
#[cfg(feature = "terminal")]
fn no_verb(tree: &Command, arguments: &[OsString]) -> Option<CommandError> {
    match cli::bare::first_location(tree, arguments) {
        Some(index) => cli::near::misspelt_verb(tree, arguments, index),
        None => cli::near::help_of_nothing(tree, arguments),
    }
}

fn exit_code_of(ended: Result<u8, CommandError>, as_json: bool) -> u8 {
    ended.unwrap_or_else(|error| {
        output::error(&error, as_json);
        error.exit_code()
    })
}

#[cfg(all(test, feature = "service", feature = "terminal"))]
mod reference_tests;
