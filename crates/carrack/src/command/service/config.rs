//! `carrack service config`: what `carrack serve` would do with the configuration that there is.

use clap::Command;
use serde_json::json;

use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::command::reach::JSON;
use crate::command::serve::{KEYS, check_values, command as serve_command, read_settings_at};
use crate::command::task::told;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{human, say};

const CONFIG: Value<Vec<u8>> = Value::path(
    "config",
    "FILE",
    "Configuration [default: ~/.config/carrack/carrack.toml, else /etc/carrack/carrack.toml]",
);
const ORIGIN: Switch = Switch::new("origin", "Show where each value comes from");

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("config")
        .about("Check carrack.toml, or show what holds")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(CONFIG.arg().global(true))
        .subcommands([
            Command::new("check").about("Say whether carrack serve would take the configuration"),
            Command::new("show").about("Show each key with its value, as carrack.toml has it").arg(ORIGIN.arg()),
        ])
}

/// Runs it.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("config needs another word: check or show"));
    };
    let json = flags.has(&JSON);
    // What holds for `carrack serve` without flags.
    let serve = serve_command().get_matches_from(["serve"]);
    let environment = |name: &str| std::env::var_os(name);
    let plain = Flags::new(&serve, &environment);
    let (file, settings) = read_settings_at(&plain, flags.get(&CONFIG)?.or(plain.get(&CONFIG)?))?;
    check_values(&settings)?;
    let mut out = Lines::stdout(json);
    let path = file.as_deref().map(|path| carrack_core::path::display_bytes(path).to_string());
    if action == "check" {
        match &path {
            _ if json => out.json(&told::object("service-config", &json!({ "file": path }))),
            Some(path) => say(&format!("{path} is good")),
            None => say("there is no configuration: defaults hold"),
        }
        out.finish()?;
        return Ok(exit::DONE);
    }
    let mut table = "";
    for key in KEYS {
        let (value, origin) = (settings.text(key.flag), settings.origin(key.flag));
        if json {
            let name = format!("{}.{}", key.table, key.name);
            let fields = json!({ "key": name, "value": value, "default": key.default, "origin": origin });
            out.json(&told::object("service-config-key", &fields));
            continue;
        }
        if key.table != table {
            table = key.table;
            out.line(format!("[{table}]").as_bytes());
        }
        let line = match &value {
            Some(value) => format!("{} = {value}", key.name),
            None => format!("# {}: {}", key.name, key.default),
        };
        let from = match (flags.has(&ORIGIN), &origin) {
            (true, Some(origin)) => format!("    # {origin}"),
            (true, None) => "    # default".to_owned(),
            (false, _) => String::new(),
        };
        out.line(human::safe(&format!("{line}{from}")).as_bytes());
    }
    out.finish()?;
    Ok(exit::DONE)
}
