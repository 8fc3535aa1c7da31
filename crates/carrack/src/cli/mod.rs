//! The command line: the tree of verbs and flags, and the parsers that turn text into types. Nothing past this module
//! reads text from a user.
//!
//! clap sees values as uninterpreted bytes: a value may also come from `CARRACK_<FLAG>`, and both ways have to be
//! parsed by the same code and blamed by the right name. That is what [`flags::Flags`] is for.

pub mod bare;

pub mod duration;
pub mod environment;
pub mod files_from;
pub mod flags;
pub mod location;
pub mod ports;
pub mod size;
pub mod words;

use std::ffi::{OsStr, OsString};
use std::sync::LazyLock;

use carrack_core::words::Word;
use clap::builder::{PossibleValue, StyledStr, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, Command};

use crate::exit;

/// Where `carrack serve` listens and a `carrack://` location without a port points to.
pub const DEFAULT_PORT: u16 = 7420;

const ABOUT: &str = "Moves research data between machines: parallel, encrypted, verified";

const NOTES: &str = "\
`carrack SRC... DST` is `carrack copy SRC... DST`: its flags are in `carrack help copy`.

Locations:
  PATH                        here (./a:b if it has a colon)
  [USER@]HOST:PATH            over ssh; an IPv6 address in brackets
  carrack://NODE[:PORT]/PATH[#sha256:FINGERPRINT]
                              a `carrack serve`, by default on port 7420
  -                           standard input or output
  zero:SIZE  random:SIZE      sources for measuring
  null:                       a sink for measuring

SRC/ with a slash at its end means its contents, as in rsync. A SIZE is a number with K, M, G,
T (1024ⁿ) or KB, MB, GB, TB (1000ⁿ).

Environment:
  CARRACK_<FLAG>              a value for a flag that is not given, for instance CARRACK_STREAMS=8
  NO_COLOR                    honoured: nothing is coloured

";

/// What `carrack --version` prints behind the name.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let protocol = carrack_core::wire::PROTOCOL_VERSION;
        let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("CARRACK_BUILD_COMMIT"));
        format!("{version} ({commit}) protocol {protocol}")
    });
    &VERSION
}

/// The whole tree.
pub fn command() -> Command {
    people_command().subcommand(agent())
}

/// The tree without what only programs call.
pub fn people_command() -> Command {
    let verbs = [crate::command::copy::flags::copy(), ls(), stat(), mkdir(), mv(), rm(), sum(), gc(), token(), serve()];
    Command::new("carrack")
        .version(version())
        .about(ABOUT)
        .override_usage("carrack [OPTIONS] SRC... DST\n       carrack VERB [OPTIONS] ...")
        .after_help(format!("{NOTES}{}", exit::HELP))
        .subcommand_help_heading("Verbs")
        .subcommand_value_name("VERB")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(false)
        .subcommands(verbs)
        .subcommands(terminal_verbs())
}

/// Verbs that only a person at a terminal needs.
fn terminal_verbs() -> Vec<Command> {
    #[cfg(feature = "terminal")]
    return vec![completions(), man()];
    #[cfg(not(feature = "terminal"))]
    Vec::new()
}

fn ls() -> Command {
    let verb = Command::new("ls")
        .about("List a directory, or one file")
        .arg(flag("recursive", Some('R'), "List what is below, too: paths relative to LOCATION"))
        .arg(flag("long", Some('l'), "Mode, size in bytes, modification time (UTC), name, target of a link"))
        .arg(location("location", "LOCATION").required(true));
    with_reach(verb)
}

fn stat() -> Command {
    let verb = Command::new("stat")
        .about("Show what a name stands for: kind, size, mode, modification time")
        .arg(locations("locations", "LOCATION").required(true));
    with_reach(verb)
}

fn mkdir() -> Command {
    let verb = Command::new("mkdir")
        .about("Make directories")
        .arg(flag("parents", Some('p'), "Make missing directories above, too; one that exists is no error"))
        .arg(locations("locations", "LOCATION").required(true));
    with_reach(verb)
}

fn mv() -> Command {
    let verb = Command::new("mv")
        .about("Rename within one place: both here, both on one host, or both at one node")
        .arg(location("source", "SRC").required(true))
        .arg(location("destination", "DST").required(true));
    with_reach(verb)
}

fn rm() -> Command {
    let verb = Command::new("rm")
        .about("Remove files, and with -r directories")
        .arg(flag("recursive", Some('r'), "Remove directories and what is in them"))
        .arg(flag("force", Some('f'), "What is not there is no error"))
        .arg(locations("locations", "LOCATION").required(true));
    with_reach(verb)
}

fn sum() -> Command {
    let verb = Command::new("sum")
        .about("Print digests where the files are: one kind as b3sum or xxhsum prints it, several with their names")
        .arg(value("digest", "LIST", "blake3 or xxh128, adler32, crc32c, separated by commas [default: blake3]"))
        .arg(locations("locations", "LOCATION").required(true));
    with_reach(verb)
}

fn gc() -> Command {
    let verb = Command::new("gc")
        .about("Remove what copies have left behind that nobody takes up again")
        .arg(value("older-than", "TIME", "Only what nothing has changed for so long [default: 7d]"))
        .arg(flag("dry-run", Some('n'), "Show what would be removed, and remove nothing"))
        .arg(locations("locations", "LOCATION").required(true));
    with_reach(verb)
}

fn serve() -> Command {
    Command::new("serve")
        .about("Serve a directory of this host as a node, on one port")
        .arg(value("root", "DIR", "The directory; nothing outside is reachable [required]"))
        .arg(value("listen", "ADDR:PORT", "Where to listen [default: [::]:7420]"))
        .arg(
            value("token-file", "FILE", "The bearer token clients must show [default: one is made and kept]")
                .conflicts_with("anonymous"),
        )
        .arg(flag("anonymous", None, "Ask nobody who they are: whoever reaches the port reads and writes"))
        .arg(flag("read-only", None, "Nothing may be written"))
        .arg(
            value(
                "dial-to",
                "CIDR",
                "Data connections may also be made to this network: loopback, or this host's [repeatable]",
            )
            .action(ArgAction::Append),
        )
        .arg(value("key-file", "FILE", "The node's private key [default: one is made and kept]"))
        .arg(flag("json", None, "Say where it listens as JSON"))
}

fn token() -> Command {
    let node = |number: bool| {
        let arg =
            Arg::new("nodes").value_name(if number { "NODE..." } else { "NODE" }).value_parser(bytes()).required(true);
        let help = "HOST[:PORT], or a carrack:// location there";
        if number { arg.num_args(1..).help(help) } else { arg.help(help) }
    };
    let add =
        Command::new("add").about("Keep a node's token; read from FILE, or from standard input").arg(node(false)).arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(bytes())
                .help("A file that nobody but you may read; - is standard input"),
        );
    let rm = Command::new("rm").about("Forget the tokens of nodes").arg(node(true));
    let list =
        Command::new("list").visible_alias("ls").about("Name the nodes for which tokens are kept; no token is shown");
    Command::new("token")
        .about("Keep the bearer tokens of nodes, each in a file that only its node is shown")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(flag("json", None, "One JSON object a line on standard output").global(true))
        .subcommands([add, rm, list])
}

#[cfg(feature = "terminal")]
fn completions() -> Command {
    Command::new("completions")
        .about("Print a completion script for a shell")
        .arg(Arg::new("shell").value_name("SHELL").value_parser(["bash", "zsh", "fish"]).required(true))
}

#[cfg(feature = "terminal")]
fn man() -> Command {
    Command::new("man")
        .about("Print the manual page, or write one for each verb into DIR")
        .arg(location("directory", "DIR"))
}

/// What a command runs on the far side. Not for people, and free to change with the protocol.
fn agent() -> Command {
    Command::new("agent")
        .hide(true)
        .about("Speak the protocol on standard input and output")
        .arg(Arg::new("hello").long("hello").value_name("NONCE").required_unless_present("supports"))
        .arg(Arg::new("supports").long("supports").value_name("N").value_parser(clap::value_parser!(u32)))
        .arg(Arg::new("in").long("in").value_name("DIR").value_parser(clap::value_parser!(std::path::PathBuf)))
        .arg(flag("sync", None, "Sync the program's own file before answering"))
        .arg(flag("once", None, "Remove the program's own file, and its directory"))
}

/// Flags of every verb that reaches another host.
fn with_reach(verb: Command) -> Command {
    verb.args(reach_flags())
        .arg(flag("quiet", Some('q'), "Print errors only").help_heading("Output"))
        .arg(flag("json", None, "One JSON object a line on standard output").help_heading("Output"))
}

pub fn reach_flags() -> [Arg; 5] {
    [
        value("rsh", "COMMAND", "The ssh command and its arguments [default: ssh]").short('e'),
        value("remote-path", "PATH", "Where the remote carrack is, if not on the PATH there"),
        flag("no-push", None, "Never put the program on a host that has none"),
        value(
            "connect-timeout",
            "TIME",
            "From starting ssh, or connecting to a node, to its first word; typing a password counts \
             [default: 60s]",
        ),
        value(
            "token-file",
            "FILE",
            "The bearer token for the node, which nobody but you may read [default: the one kept by `carrack token \
             add`, else BEARER_TOKEN, BEARER_TOKEN_FILE, bt_uUID]",
        ),
    ]
    .map(|arg| arg.help_heading("Hosts"))
}

pub fn flag(name: &'static str, short: Option<char>, help: &'static str) -> Arg {
    let arg = Arg::new(name).long(name).help(help).action(ArgAction::SetTrue);
    match short {
        Some(letter) => arg.short(letter),
        None => arg,
    }
}

/// A flag with a value, which `CARRACK_<FLAG>` may give instead.
pub fn value(name: &'static str, value_name: &'static str, help: impl Into<StyledStr>) -> Arg {
    // Unparsed here: see the module's comment. A value that starts with a dash is written `--flag=-value`.
    Arg::new(name).long(name).value_name(value_name).help(help).value_parser(bytes())
}

/// A flag that takes one of a few words. clap only names them to shells: like every value, it is parsed later, and by the same code whether it comes
/// from the command line or the environment.
pub fn word<W: Word>(
    name: &'static str,
    value_name: &'static str,
    words: &'static [W],
    help: impl Into<StyledStr>,
) -> Arg {
    let words = words.iter().map(|word| PossibleValue::new(word.name()).help(word.meaning())).collect();
    value(name, value_name, help).value_parser(Named(words)).hide_possible_values(true)
}

/// Takes any bytes, and can name the words that will be good.
#[derive(Clone)]
struct Named(Vec<PossibleValue>);

impl TypedValueParser for Named {
    type Value = OsString;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned()))
    }
}

pub fn locations(name: &'static str, value_name: &'static str) -> Arg {
    Arg::new(name).value_name(value_name).num_args(1..).value_parser(bytes()).action(ArgAction::Append)
}

/// Exactly one: a second is refused, not taken instead of the first.
fn location(name: &'static str, value_name: &'static str) -> Arg {
    Arg::new(name).value_name(value_name).value_parser(bytes())
}

fn bytes() -> ValueParser {
    clap::value_parser!(OsString)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn version_names_commit_and_protocol() {
        let version = version();
        assert!(version.starts_with("0."), "{version}");
        assert!(version.contains(" (") && version.contains(") protocol "), "{version}");
    }

    #[test]
    fn help_has_what_a_newcomer_needs() {
        let help = command().render_help().to_string();
        for text in ["copy", "ls", "serve", "sum", "carrack://", "Exit codes:", "77", "CARRACK_"] {
            assert!(help.contains(text), "{text} is not in\n{help}");
        }
        assert!(!help.contains("agent"), "agent is hidden");
    }
}
