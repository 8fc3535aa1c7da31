//! The verbs, one file each. A verb takes its flags and answers with an exit code, or with the error that ended it.

mod agent;
#[cfg(feature = "terminal")]
mod completions;
mod context;
pub mod copy;
mod entry;
mod gc;
mod ls;
#[cfg(feature = "terminal")]
mod man;
mod mkdir;
mod mv;
mod place;
mod rm;
mod serve;
mod stat;
mod sum;
mod token;

use std::ffi::OsString;

use clap::ArgMatches;

use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::{cli, exit, output};

/// Runs a command line (the program's name first) and answers with the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let tree = cli::command();
    let arguments = cli::bare::with_verb(&tree, arguments);
    let matches = match tree.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(refusal) => {
            let text = refusal.render().to_string();
            if refusal.use_stderr() {
                output::stream::say(&text);
                return u8::try_from(refusal.exit_code()).unwrap_or(exit::USAGE);
            }
            // Help and version come this way, too.
            return told(output::stream::print(text.as_bytes()).map(|()| exit::DONE), false);
        }
    };
    // clap has refused a line without a verb.
    let Some((verb, matches)) = matches.subcommand() else {
        return exit::USAGE;
    };
    let unknown = match cli::environment::check(verb, std::env::vars_os()) {
        Ok(unknown) => unknown,
        Err(error) => return told(Err(error), false),
    };
    unknown.iter().for_each(|note| output::say(note));
    let environment = |name: &str| std::env::var_os(name);
    let flags = Flags::new(matches, &environment);
    told(dispatch(verb, matches, &flags), flags.has("json"))
}

fn told(ended: Result<u8, CommandError>, as_json: bool) -> u8 {
    ended.unwrap_or_else(|error| {
        output::error(&error, as_json);
        error.exit_code()
    })
}

fn dispatch(verb: &str, matches: &ArgMatches, flags: &Flags) -> Result<u8, CommandError> {
    match verb {
        "copy" => copy::run(flags),
        "ls" => ls::run(flags),
        "stat" => stat::run(flags),
        "mkdir" => mkdir::run(flags),
        "mv" => mv::run(flags),
        "rm" => rm::run(flags),
        "sum" => sum::run(flags),
        "gc" => gc::run(flags),
        "serve" => serve::run(flags),
        "token" => token::run(matches),
        "agent" => agent::run(matches),
        #[cfg(feature = "terminal")]
        "completions" => completions::run(matches),
        #[cfg(feature = "terminal")]
        "man" => man::run(flags),
        _ => Err(CommandError::usage(format!("{verb} is not a verb"))),
    }
}
