//! `carrack agent list` and `add`: the programs that hosts without one are sent.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use carrack_core::agents::AgentProgram;
use carrack_core::path::display_bytes;
use carrack_core::wire::PROTOCOL_VERSION;
use clap::Command;
use serde_json::json;

use super::reach::JSON;
use crate::agents::added::{self, Added};
use crate::agents::inside;
use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{format, json as objects};

const FILE: Positional = Positional::one("file", "FILE");

/// What clap knows of it.
pub fn with_actions(agent: Command) -> Command {
    let list =
        Command::new("list").visible_alias("ls").about("List the agents that this carrack can send").arg(JSON.arg());
    let add = Command::new("add")
        .about("Keep an agent for another kind of host")
        .arg(FILE.arg().required(true).help("A carrack of this version, built for that kind of host"))
        .arg(JSON.arg())
        .after_help(
            "Build it by `cargo xtask agents` on a host that has Rust's library for it, or take it\n\
             from a release. It takes the place of one for the same kind of host, and is kept below\n\
             ~/.local/share/carrack (XDG_DATA_HOME).",
        );
    agent
        .about("List and add the agents that ssh hosts without carrack are sent")
        .subcommand_negates_reqs(true)
        .args_conflicts_with_subcommands(true)
        .arg_required_else_help(true)
        .subcommands([list, add])
}

/// Runs one.
pub fn run(action: &str, flags: &Flags) -> Result<u8, CommandError> {
    let json = flags.has(&JSON);
    let mut out = Lines::stdout(json);
    if action == "list" {
        let mut agents: Vec<_> = inside().into_iter().map(|agent| (agent, None)).collect();
        agents.extend(added::all().into_iter().map(|added| (added.agent, Some(added.path))));
        if agents.is_empty() && !json {
            out.line(b"none: this carrack was built without agents, and sends its own file");
        }
        for (agent, path) in agents {
            tell(&mut out, json, &agent, path.as_deref());
        }
    } else {
        let added = add(flags)?;
        tell(&mut out, json, &added.agent, Some(&added.path));
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn add(flags: &Flags) -> Result<Added, CommandError> {
    let file = flags.words(&FILE).next().ok_or_else(|| CommandError::usage("agent add needs a file"))?;
    let program = fs::read(file).map_err(|error| CommandError::file("cannot read", file.as_bytes(), &error))?;
    added::add(&program).map_err(|why| {
        let why = CommandError::usage(format!("{}: {why}", display_bytes(file.as_bytes())));
        why.hint(format!("`carrack agent add --help` says how to build one of protocol {PROTOCOL_VERSION}"))
    })
}

/// One agent; without a path it is inside.
fn tell(out: &mut Lines, json: bool, agent: &AgentProgram, path: Option<&Path>) {
    let AgentProgram { kind, size, gzip_size, .. } = agent;
    if json {
        let fields = json!({
            "system": kind.system, "machine": kind.machine, "glibc": kind.glibc.map(|minor| format!("2.{minor}")),
            "size": size, "bytes": gzip_size, "inside": path.is_none(),
        });
        let fields = match path {
            Some(path) => objects::with_path(fields, path.as_os_str().as_bytes()),
            None => fields,
        };
        return out.json(&objects::object("agent", SystemTime::now(), fields));
    }
    let place = path.map_or_else(|| "inside".to_owned(), |path| display_bytes(path.as_os_str().as_bytes()).to_string());
    let (sent, size) = (format::size(*gzip_size), format::size(*size));
    out.line(format!("{kind}: {size}, {sent} on the way; {place}").as_bytes());
}
