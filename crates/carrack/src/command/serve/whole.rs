//! The service beside the node: its flags and its configuration file, how it is started, looked after and ended.

use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::display_bytes;
use carrack_core::request::Reach;
use carrack_engine::node::{NodeHandle, NodeLog};
use carrack_engine::secrets::{Unread, read_secret};
use carrack_service::api::CertificateFiles;
use carrack_service::model::{Notice, Secret};
use carrack_service::operate::log::{LogFormat, LogLevel};
use carrack_service::operate::notify::NotifyConfig;
use carrack_service::operate::{Config, Operation, OwnNode, StartError, log, systemd};
use carrack_service::service::Settings as ServiceSettings;
use clap::{ArgAction, Command};

use super::announce::{AnnouncedService, announce, host_name, host_to_type};
use super::{ANONYMOUS, Beside, JSON, LISTEN, NODE_ONLY, path_of, start_node};
use crate::agents;
use crate::cli::config_file::{ConfigFile, ConfigKey, ValueKind};
use crate::cli::flag::Value;
use crate::cli::flags::Flags;
use crate::cli::settings::Settings;
use crate::cli::words::split_words;
use crate::command::context::{context, stop};
use crate::directories::config_directory;
use crate::doctor::endpoint;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::{SOCKET, STATE_DIR, service_directory, socket_in};
use crate::output::lines::Lines;
use crate::output::{say, stream};
use carrack_core::duration::parse_duration;
use carrack_core::location::parse_host;

const CONFIG: Value<Vec<u8>> = Value::path(
    "config",
    "FILE",
    "Configuration; flags outweigh it [default: ~/.config/carrack/carrack.toml, else /etc/carrack/carrack.toml]",
);
const TLS_CERTIFICATE: Value<Vec<u8>> = Value::path(
    "tls-certificate",
    "FILE",
    "Certificate chain of the API, in PEM; read again when it changes [default: one that the service signs itself]",
);
const TLS_KEY: Value<Vec<u8>> = Value::path("tls-key", "FILE", "Private key of the certificate, in PEM");
const PROXY: Value<IpAddr> = Value::new(
    "proxy",
    "ADDR",
    |text| text.parse().map_err(|_| format!("{text:?} is no address")),
    "Proxy before the API: it may come in the clear, and says where clients are [repeatable]",
);
const NAME: Value<String> = Value::new(
    "name",
    "NAME",
    parse_name,
    "Name by which browsers reach the API and the page, beside the host's own: others are refused [repeatable]",
);
const WORKERS: Value<u32> = Value::new("workers", "N", parse_most, "Tasks that run at once [default: 16]");
const PER_PAIR: Value<u32> =
    Value::new("per-pair", "N", parse_most, "Of these, tasks between the same two endpoints [default: 8]");
const WORKER_NICE: Value<u8> = Value::new(
    "worker-nice",
    "N",
    |text| text.parse().ok().filter(|nice| *nice < 20).ok_or_else(|| format!("{text:?} is not a number from 0 to 19")),
    "By how much workers give way to other processes, 0 to 19 [default: 0]",
);
const KEEP_TASKS: Value<Duration> = Value::new(
    "keep-tasks",
    "TIME",
    parse_duration,
    "How long tasks that have ended are kept, like 90d [default: for ever]",
);
const KEEP_EVENTS: Value<Duration> =
    Value::new("keep-events", "TIME", parse_duration, "How long events are kept [default: 90d]");
const LOG_FORMAT: Value<LogFormat> =
    Value::new("log-format", "text|json", parse_format, "Form of the log, on standard error [default: text]");
const LOG_LEVEL: Value<LogLevel> = Value::word("log-level", "LEVEL", LogLevel::ALL, "[default: info]");
const NOTIFY_COMMAND: Value<Vec<String>> = Value::new(
    "notify-command",
    "COMMAND",
    parse_program,
    "Program, with its arguments, that is run when a task or timer ends; it gets the event as JSON on standard input. \
     Its path is absolute; quotes keep spaces, no shell reads it [default: none]",
);
const NOTIFY_ENDS: Value<Notice> = Value::new(
    "notify-ends",
    "LIST",
    Notice::parse,
    "Ends that it is run for, of tasks without --notify: succeeded, failed, partial, cancelled; with failed, also \
     left-out and last runs of timers and tasks that a guard has paused [default: failed,partial]",
);
const NOTIFY_KEY: Value<Vec<u8>> = Value::path(
    "notify-key",
    "FILE",
    "File with a secret: the program gets the HMAC-SHA256 of the event's JSON in the variable CARRACK_SIGNATURE",
);

/// Keys of `carrack.toml`. Each stands for a flag.
pub const KEYS: &[ConfigKey] = &[
    key("node", "root", "root", ValueKind::One, "files, in the state directory"),
    key("node", "listen", "listen", ValueKind::One, "[::]:7420"),
    key("node", "token_file", "token-file", ValueKind::One, "~/.local/state/carrack/node.token"),
    key("node", "anonymous", "anonymous", ValueKind::Switch, "false"),
    key("node", "read_only", "read-only", ValueKind::Switch, "false"),
    key("node", "allow_ownership", "allow-ownership", ValueKind::Switch, "false"),
    key("node", "measure", "measure", ValueKind::One, "token"),
    key("node", "dial_to", "dial-to", ValueKind::Several, "none"),
    key("node", "key_file", "key-file", ValueKind::One, "~/.local/state/carrack/node.key"),
    key("node", "only", "node-only", ValueKind::Switch, "false"),
    key("service", "state_dir", "state-dir", ValueKind::One, "~/.local/state/carrack/service"),
    key("service", "socket", "socket", ValueKind::One, "service.sock, in the state directory"),
    key("service", "tls_certificate", "tls-certificate", ValueKind::One, "one that the service signs itself"),
    key("service", "tls_key", "tls-key", ValueKind::One, "none"),
    key("service", "proxies", "proxy", ValueKind::Several, "none"),
    key("service", "names", "name", ValueKind::Several, "the host's own name"),
    key("service", "workers", "workers", ValueKind::One, "16"),
    key("service", "per_pair", "per-pair", ValueKind::One, "8"),
    key("service", "worker_nice", "worker-nice", ValueKind::One, "0"),
    key("service", "keep_tasks", "keep-tasks", ValueKind::One, "for ever"),
    key("service", "keep_events", "keep-events", ValueKind::One, "90d"),
    key("notify", "command", "notify-command", ValueKind::One, "none"),
    key("notify", "ends", "notify-ends", ValueKind::Several, "failed, partial"),
    key("notify", "key_file", "notify-key", ValueKind::One, "none"),
    key("log", "format", "log-format", ValueKind::One, "text"),
    key("log", "level", "log-level", ValueKind::One, "info"),
];

const fn key(
    table: &'static str,
    name: &'static str,
    flag: &'static str,
    kind: ValueKind,
    default: &'static str,
) -> ConfigKey {
    ConfigKey { table, name, flag, kind, default }
}

/// How often a signal, the watchdog and the configuration are looked after.
const TICK: Duration = Duration::from_millis(200);

/// Adds the flags of the service.
pub fn with_flags(verb: Command) -> Command {
    let flags = [
        STATE_DIR.arg(),
        SOCKET.arg(),
        TLS_CERTIFICATE.arg().requires(TLS_KEY.name),
        TLS_KEY.arg().requires(TLS_CERTIFICATE.name),
        PROXY.arg().action(ArgAction::Append),
        NAME.arg().action(ArgAction::Append),
        WORKERS.arg(),
        PER_PAIR.arg(),
        WORKER_NICE.arg(),
        KEEP_TASKS.arg(),
        KEEP_EVENTS.arg(),
        NOTIFY_COMMAND.arg(),
        NOTIFY_ENDS.arg().action(ArgAction::Append),
        NOTIFY_KEY.arg(),
    ];
    verb.args(flags.map(|flag| flag.help_heading("Service").conflicts_with(NODE_ONLY.name)))
        .args([CONFIG.arg(), LOG_FORMAT.arg(), LOG_LEVEL.arg()].map(|flag| flag.help_heading("Operation")))
}

/// The flags with the configuration file behind them: the one that is named, else the first of the usual ones.
///
/// # Errors
/// A file that cannot be read, or has what nobody knows.
pub fn read_settings<'a>(flags: &'a Flags<'a>) -> Result<Settings<'a>, CommandError> {
    read_settings_at(flags, flags.get(&CONFIG)?).map(|(_, settings)| settings)
}

/// The same with a file that was named elsewhere, if one was; with the path of the one that was read.
///
/// # Errors
/// As [`read_settings`].
pub fn read_settings_at<'a>(
    flags: &'a Flags<'a>,
    named: Option<Vec<u8>>,
) -> Result<(Option<Vec<u8>>, Settings<'a>), CommandError> {
    let path = match named {
        Some(path) => Some(path),
        None => {
            let usual = [config_directory().join("carrack.toml"), PathBuf::from("/etc/carrack/carrack.toml")];
            let found = usual.into_iter().find(|path| path.exists());
            found.map(|path| path.into_os_string().into_encoded_bytes())
        }
    };
    let file = path.as_ref().map(|path| ConfigFile::read(path, KEYS)).transpose()?;
    Ok((path, Settings::with_file(flags, file)))
}

/// Reads every value as `carrack serve` does.
///
/// # Errors
/// A usage error that names the first bad one.
pub fn check_values(settings: &Settings) -> Result<(), CommandError> {
    super::check_node_values(settings)?;
    settings.get(&LOG_FORMAT)?;
    settings.get(&LOG_LEVEL)?;
    settings.get(&NOTIFY_COMMAND)?;
    settings.all(&NOTIFY_ENDS)?;
    settings.all(&PROXY)?;
    settings.all(&NAME)?;
    service_settings(settings)?;
    certificate(settings).map(|_| ())
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let settings = read_settings(flags)?;
    // Before anything is made or listens.
    check_values(&settings)?;
    log::start(settings.get(&LOG_FORMAT)?.unwrap_or_default(), settings.get(&LOG_LEVEL)?.unwrap_or_default());
    carrack_sys::signal::install_reload();
    let inherited = carrack_sys::inherited::listeners()
        .map_err(|error| CommandError::file("cannot use", b"the sockets that were handed over", &error))?;
    let listener = inherited.tcp.into_iter().next();
    let mut beside = Beside { listener, log: NodeLog::new(log::session), ..Beside::nothing(stop()) };
    if settings.has(&NODE_ONLY) {
        let (node, facts) = start_node(&settings, beside)?;
        announce(&facts, settings.has(&ANONYMOUS), settings.has(&JSON));
        systemd::ready(&format!("serves {}", facts.root.display()));
        look_after(&node, None, flags);
        node.wait();
        return Ok(exit::DONE);
    }
    let operation = start_service(&settings, inherited.unix.into_iter().next())?;
    beside.doors = operation.doors().map_err(|error| refused(&error))?;
    beside.root = Some(own_root(&operation)?);
    let (revoked, host_key) = operation.grants();
    (beside.revoked, beside.host_grants) = (revoked, Some(host_key));
    let (node, mut facts) = start_node(&settings, beside)?;
    if node.token_file().is_some() {
        operation.set_node(OwnNode { address: node.address(), fingerprint: node.fingerprint() });
    }
    let socket = operation.socket().map(Path::to_path_buf).unwrap_or_default();
    facts.service = Some(AnnouncedService {
        is_default: socket == socket_in(&service_directory()),
        socket,
        state: operation.directory().to_path_buf(),
        fingerprint: operation.fingerprint().unwrap_or_default(),
    });
    facts.service_address().into_iter().for_each(|address| operation.set_address(address));
    announce(&facts, settings.has(&ANONYMOUS), settings.has(&JSON));
    if !settings.has(&JSON) {
        announce_link(&operation);
    }
    let (open, running) = operation.counts();
    log::note(&format!("the service has begun: {open} tasks to do, {running} at work"));
    systemd::ready("serves");
    look_after(&node, Some(&operation), flags);
    systemd::stopping();
    log::note("the service ends; transfers under way go on");
    node.stop();
    if let Err(why) = operation.stop() {
        log::warn(why);
    }
    node.wait();
    Ok(exit::DONE)
}

/// Prints the link that logs whoever started the service in once, if standard output is a terminal: what goes to a file
/// or to a journal is read by others, and kept.
fn announce_link(operation: &Operation) {
    if !stream::output_is_terminal() {
        return;
    }
    let mut out = Lines::stdout(true);
    match operation.login_link() {
        Ok(made) => {
            out.line(b"to log in once, within ten minutes, from any host: carrack login --link, and then");
            out.line(format!("    {}", made.link.reveal()).as_bytes());
        }
        Err(error) => say(&format!("note: there is no login link: {error}")),
    }
    if let Err(error) = out.finish() {
        say(&format!("error: {error}"));
    }
}

fn start_service(
    settings: &Settings,
    listener: Option<std::os::unix::net::UnixListener>,
) -> Result<Operation, CommandError> {
    let listen = settings.get(&LISTEN)?.map(|listen| host_to_type(listen.ip(), &host_name()));
    let program = std::env::current_exe()
        .map_err(|error| CommandError::file("cannot find", b"the program's own file", &error))?;
    let push = agents::push();
    let config = Config {
        directory: path_of(settings, &STATE_DIR)?.unwrap_or_else(service_directory),
        socket: path_of(settings, &SOCKET)?,
        listener,
        certificate: certificate(settings)?,
        names: [host_name(), "localhost".to_owned()].into_iter().chain(listen).chain(settings.all(&NAME)?).collect(),
        proxies: settings.all(&PROXY)?,
        program,
        settings: service_settings(settings)?,
        notify: notify(settings)?,
        context: context(),
        reach: Reach { push, ..Reach::default() },
        examine: Arc::new(endpoint::checks),
    };
    Operation::start(config).map_err(|error| refused(&error))
}

fn certificate(settings: &Settings) -> Result<Option<CertificateFiles>, CommandError> {
    match (path_of(settings, &TLS_CERTIFICATE)?, path_of(settings, &TLS_KEY)?) {
        (Some(certificate), Some(key)) => Ok(Some(CertificateFiles { certificate, key })),
        (None, None) => Ok(None),
        _ => Err(CommandError::usage("a certificate and its key are named together: tls_certificate and tls_key")),
    }
}

/// Who is told what has ended.
fn notify(settings: &Settings) -> Result<NotifyConfig, CommandError> {
    let key = path_of(settings, &NOTIFY_KEY)?.map(|path| {
        let shown = display_bytes(path.as_os_str().as_encoded_bytes()).to_string();
        let refused = |why: &str| CommandError::usage(format!("notify.key_file: {shown}: {why}"));
        let bytes = read_secret(&path, NOTIFY_KEY_BYTES, |_| None).map_err(|unread| match unread {
            Unread::Absent => refused("there is no such file"),
            Unread::Foreign(why) | Unread::Unfit(why) => refused(&why),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| refused("it is no text"))?;
        match text.trim() {
            "" => Err(refused("it is empty")),
            key => Ok(Secret::new(key)),
        }
    });
    let ends = settings.all(&NOTIFY_ENDS)?;
    Ok(NotifyConfig {
        command: settings.get(&NOTIFY_COMMAND)?.unwrap_or_default(),
        ends: if ends.is_empty() { vec![Notice::Failed, Notice::Partial] } else { ends },
        key: key.transpose()?,
    })
}

/// The most that a key of notices has.
const NOTIFY_KEY_BYTES: usize = 4096;

fn service_settings(settings: &Settings) -> Result<ServiceSettings, CommandError> {
    let mut chosen = ServiceSettings::default();
    chosen.rules.workers = settings.get(&WORKERS)?.unwrap_or(chosen.rules.workers);
    chosen.rules.per_link = settings.get(&PER_PAIR)?.unwrap_or(chosen.rules.per_link);
    chosen.worker_nice = settings.get(&WORKER_NICE)?.unwrap_or(chosen.worker_nice);
    chosen.keep_tasks = settings.get(&KEEP_TASKS)?.or(chosen.keep_tasks);
    chosen.keep_events = settings.get(&KEEP_EVENTS)?.or(chosen.keep_events);
    Ok(chosen)
}

/// The directory that the node serves where none is named: one that is empty at first.
fn own_root(operation: &Operation) -> Result<PathBuf, CommandError> {
    let root = operation.directory().join("files");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&root)
        .map_err(|error| CommandError::file("cannot make", root.as_os_str().as_encoded_bytes(), &error))?;
    Ok(root)
}

fn refused(error: &StartError) -> CommandError {
    let code = match error {
        StartError::InUse(_) => ErrorCode::Busy,
        StartError::Failed { .. } => ErrorCode::Other,
    };
    let refusal = CommandError::from(Failure::new(code, Side::Command, error.to_string()));
    match error {
        StartError::InUse(_) => refusal
            .hint("to serve a directory beside it: carrack serve --node-only --root DIR")
            .hint("a service of its own needs a --state-dir of its own"),
        StartError::Failed { hint: Some(hint), .. } => refusal.hint(hint.clone()),
        StartError::Failed { hint: None, .. } => refusal,
    }
}

/// Until it is to end: tells the watchdog that it lives, and reads the configuration again when told to.
fn look_after(node: &NodeHandle, operation: Option<&Operation>, flags: &Flags) {
    let stop = stop();
    let interval = systemd::watchdog_interval();
    let mut next_sign = interval.map(|interval| Instant::now() + interval);
    while stop.requested().is_none() && !node.has_ended() {
        std::thread::sleep(TICK);
        if carrack_sys::signal::take_reload_request() {
            reload(operation, flags);
        }
        if let (Some(at), Some(interval)) = (next_sign, interval)
            && Instant::now() >= at
        {
            next_sign = Some(Instant::now() + interval);
            match operation.map_or(Ok(()), Operation::health) {
                Ok(()) => systemd::alive(),
                // Without a sign of life systemd starts it anew.
                Err(why) => log::warn(&why),
            }
        }
    }
}

fn reload(operation: Option<&Operation>, flags: &Flags) {
    systemd::reloading();
    match read_settings(flags).and_then(|settings| service_settings(&settings)) {
        Ok(settings) => {
            operation.into_iter().for_each(|operation| operation.reload(settings.clone()));
            log::note("the configuration was read again");
        }
        Err(error) => log::warn(&format!("the configuration before stays in use: {error}")),
    }
    systemd::ready("serves");
}

fn parse_most(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|most| *most > 0).ok_or_else(|| format!("{text:?} is not a number from 1 on"))
}

/// A program by its path: whoever starts the service may have another search path.
fn parse_program(text: &str) -> Result<Vec<String>, String> {
    let words = split_words(text)?;
    match words.first() {
        Some(program) if program.starts_with('/') => Ok(words),
        _ => Err(format!("{text:?} does not begin with the absolute path of a program")),
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    parse_host(text.as_bytes())
}

fn parse_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("{text:?}: use text or json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_keys_stand_for_flags_of_serve_each_once() {
        let verb = super::super::command();
        for key in KEYS {
            let flag = verb.get_arguments().find(|arg| arg.get_long() == Some(key.flag));
            let flag = flag.unwrap_or_else(|| panic!("{}.{} stands for no flag", key.table, key.name));
            assert_eq!(flag.get_action().takes_values(), key.kind != ValueKind::Switch, "{}", key.flag);
            assert_eq!(KEYS.iter().filter(|other| other.flag == key.flag).count(), 1, "{}", key.flag);
        }
    }
}
