//! `carrack service config`: what `carrack serve` would do with the configuration that there is.

use std::path::PathBuf;

use clap::Command;
use serde_json::json;

use crate::cli::config_file::{ConfigKey, ValueKind};
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::settings::Settings;
use crate::command::reach::JSON;
use crate::command::serve::{ANONYMOUS, KEYS, check_values, command as serve_command, host_name, read_settings_at};
use crate::command::task::told;
use crate::directories::state_directory;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::{service_directory, socket_in};
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

/// The value of a key that nothing was said of; none: its default is no value, and told in words.
fn default_of(key: &ConfigKey, settings: &Settings) -> Option<String> {
    let state = || settings.text("state-dir").map_or_else(service_directory, PathBuf::from);
    let path = match (key.table, key.name) {
        ("node", "root") => state().join("files"),
        ("node", "token_file") if settings.has(&ANONYMOUS) => return None,
        ("node", "token_file") => state_directory().join("node.token"),
        ("node", "key_file") => state_directory().join("node.key"),
        ("service", "state_dir") => service_directory(),
        ("service", "socket") => socket_in(&state()),
        ("service", "names") => return Some(host_name()),
        ("service", "keep_tasks" | "tls_certificate" | "tls_key" | "proxies") | ("node", "dial_to") => return None,
        _ => return Some(key.default.to_owned()),
    };
    Some(path.to_string_lossy().into_owned())
}

/// A value as `carrack.toml` has it.
fn written(key: &ConfigKey, value: &str) -> String {
    // A string of JSON is one of TOML, too.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match key.kind {
        ValueKind::Switch => value.to_owned(),
        ValueKind::One if value.parse::<i64>().is_ok() => value.to_owned(),
        ValueKind::One => quoted(value),
        ValueKind::Several => format!("[{}]", value.split(',').map(quoted).collect::<Vec<_>>().join(", ")),
    }
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
        let holds = value.clone().or_else(|| default_of(key, &settings));
        if json {
            let name = format!("{}.{}", key.table, key.name);
            let fields =
                json!({ "key": name, "value": value, "holds": holds, "default": key.default, "origin": origin });
            out.json(&told::object("service-config-key", &fields));
            continue;
        }
        if key.table != table {
            table = key.table;
            out.line(format!("[{table}]").as_bytes());
        }
        let line = match (&value, &holds) {
            (Some(value), _) => format!("{} = {}", key.name, written(key, value)),
            (None, Some(holds)) => format!("# {} = {}", key.name, written(key, holds)),
            (None, None) => format!("# {}: {}", key.name, key.default),
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
