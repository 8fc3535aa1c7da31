//! `carrack token`: the tokens of nodes, kept one in a file. No token is ever an argument, and none is shown.

use std::ffi::OsStr;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use carrack_core::limits;
use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;
use carrack_engine::secrets::read_token;
use clap::Command;
use serde_json::json;

use super::reach::JSON;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{json as objects, say};
use crate::tokens::kept;

const NODE: Positional = Positional::one("node", "NODE");
const NODES: Positional = Positional::several("nodes", "NODE...");
const FILE: Positional = Positional::one("file", "FILE");

/// What clap knows of it.
pub fn command() -> Command {
    let node =
        |positional: Positional| positional.arg().required(true).help("HOST[:PORT], or a carrack:// location there");
    let add = Command::new("add")
        .about("Keep a node's token; read from FILE, or from standard input")
        .arg(node(NODE))
        .arg(FILE.arg().help("File that only you can read; - is standard input"));
    let rm = Command::new("rm").about("Forget the tokens of nodes").arg(node(NODES));
    let list =
        Command::new("list").visible_alias("ls").about("List the nodes for which tokens are kept; no token is shown");
    Command::new("token")
        .about("Keep the tokens of nodes")
        .after_help("One token is kept for each node. It is shown to this node only.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(JSON.arg().global(true))
        .subcommands([add, rm, list])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("token needs add, rm or list"));
    };
    let json = flags.has(&JSON);
    match action {
        "add" => add(&flags, json)?,
        "rm" => rm(&flags, json)?,
        _ => list(json)?,
    }
    Ok(exit::DONE)
}

fn nodes(flags: &Flags, positional: &Positional) -> Result<Vec<NodeAddress>, CommandError> {
    flags.words(positional).map(|text| NodeAddress::parse(text.as_bytes()).map_err(CommandError::usage)).collect()
}

fn add(flags: &Flags, json: bool) -> Result<(), CommandError> {
    let node = nodes(flags, &NODE)?.pop().ok_or_else(|| CommandError::usage("token add needs a node"))?;
    let file = flags.words(&FILE).next().filter(|file| *file != "-");
    let read = match file {
        Some(file) => read_token(Path::new(file))?.reveal().as_bytes().to_vec(),
        None => from_standard_input(&node)?,
    };
    let path = kept::keep(&node, &read)?;
    tell(json, &node.known_as(), &path, |path| format!("the token for {node} is kept in {path}"))
}

/// One byte more than a token has, at most.
fn from_standard_input(node: &NodeAddress) -> Result<Vec<u8>, CommandError> {
    let input = std::io::stdin();
    if input.is_terminal() {
        say(&format!("the token for {node}, then Enter and Ctrl-D; it is shown as it is typed:"));
    }
    let mut bytes = Vec::new();
    let most = 2 * limits::TOKEN_BYTES as u64;
    let read = input.lock().take(most).read_to_end(&mut bytes);
    read.map_err(|error| CommandError::file("cannot read", b"standard input", &error))?;
    Ok(bytes)
}

fn rm(flags: &Flags, json: bool) -> Result<(), CommandError> {
    for node in nodes(flags, &NODES)? {
        kept::forget(&node)?;
        tell(json, &node.known_as(), Path::new(""), |_| format!("the token for {node} is forgotten"))?;
    }
    Ok(())
}

/// What was done: in JSON on standard output, else for a person.
fn tell(json: bool, node: &str, path: &Path, say_so: impl FnOnce(String) -> String) -> Result<(), CommandError> {
    if !json {
        say(&say_so(display_bytes(path.as_os_str().as_bytes()).to_string()));
        return Ok(());
    }
    let mut fields = json!({ "node": node });
    if path != OsStr::new("") {
        fields = objects::with_path(fields, path.as_os_str().as_bytes());
    }
    let mut out = Lines::stdout(true);
    out.json(&objects::object("token", SystemTime::now(), fields));
    out.finish()
}

fn list(json: bool) -> Result<(), CommandError> {
    let mut out = Lines::stdout(json);
    for kept in kept::kept()? {
        // A file that somebody put there may have any name.
        let node = display_bytes(kept.node.as_bytes()).to_string();
        if let Some(why) = kept.refused.as_ref().filter(|_| !json) {
            say(&format!("note: {why}"));
        }
        if json {
            let fields = json!({ "node": node, "refused": kept.refused });
            let fields = objects::with_path(fields, kept.path.as_os_str().as_bytes());
            out.json(&objects::object("token", SystemTime::now(), fields));
        } else {
            out.line(node.as_bytes());
        }
    }
    out.finish()
}
