//! `carrack service backup`, `restore` and `check`: the ledger in the state directory of this host.

use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_service::ledger::sqlite::backup::{BackupError, backup, restore};
use carrack_service::ledger::sqlite::check::check;
use clap::Command;

use crate::cli::flag::{Positional, Value};
use crate::cli::flags::Flags;
use crate::command::reach::JSON;
use crate::command::task::told;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::service_directory;
use crate::output::lines::Lines;
use crate::output::{format, human, say};

const FILE: Positional = Positional::one("file", "FILE");
const STATE_DIR: Value<Vec<u8>> =
    Value::path("state-dir", "DIR", "State directory of the service [default: ~/.local/state/carrack/service]");

/// What clap knows of them.
pub fn commands() -> [Command; 3] {
    let of = |name: &'static str, about: &'static str| Command::new(name).about(about).arg(STATE_DIR.arg());
    [
        of("backup", "Write the ledger to a new file, while the service runs or not").arg(FILE.arg().required(true)).after_help(
            "It holds tasks, endpoints, users and timers. The key that seals tokens of endpoints (seal.key) and the journals\n\
             of tasks are not in it: keep the key elsewhere.",
        ),
        of("restore", "Replace the ledger by a backup; no service may run").arg(FILE.arg().required(true)).after_help(
            "Tasks that move or delete, and have not ended by the backup, wait until somebody resumes them: they may have\n\
             been carried out since.",
        ),
        of("check", "Check the database and the journals; exit code 1 on any fault"),
    ]
}

fn ledger(flags: &Flags) -> Result<PathBuf, CommandError> {
    let named = flags.get(&STATE_DIR)?.map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
    Ok(named.unwrap_or_else(service_directory).join("ledger.db"))
}

/// Runs one of them.
pub fn run(what: &str, flags: &Flags) -> Result<u8, CommandError> {
    let (ledger, json) = (ledger(flags)?, flags.has(&JSON));
    let file = || flags.words(&FILE).next().map(PathBuf::from).unwrap_or_default();
    let now = SystemTime::now().into();
    let mut out = Lines::stdout(json);
    let mut code = exit::DONE;
    match what {
        "backup" => {
            let report = backup(&ledger, &file(), now).map_err(|error| refused(&error))?;
            if json {
                out.json(&told::object("service-backup", &report));
            } else {
                let (path, size) = (shown(&report.path), format::size_exact(report.bytes));
                say(&format!("{path}: {}, {size}", format::counted(report.tasks, "task", "tasks")));
            }
        }
        "restore" => {
            let report = restore(&ledger, &file(), now).map_err(|error| refused(&error))?;
            if json {
                out.json(&told::object("service-restore", &report));
            } else {
                say(&format!("the ledger has {} now", format::counted(report.tasks, "task", "tasks")));
                if let Some(replaced) = &report.replaced {
                    say(&format!("the one before is {}", shown(replaced)));
                }
                for task in &report.to_confirm {
                    say(&format!("waits to be confirmed: {task}; look at it, then carrack task resume or cancel"));
                }
                for timer in &report.paused_timers {
                    say(&format!("paused: timer {timer}, which moves or deletes; carrack timer resume"));
                }
            }
        }
        _ => {
            let report = check(&ledger).map_err(|error| error_with_hint(&error, error.kind.hint()))?;
            if !report.findings.is_empty() {
                code = exit::OTHER;
            }
            if json {
                out.json(&told::object("service-check", &report));
            } else {
                for finding in &report.findings {
                    out.line(human::safe(&format!("{}: {}; {}", finding.kind, finding.why, finding.hint)).as_bytes());
                }
                let (tasks, open) = (format::counted(report.tasks, "task", "tasks"), format::count(report.open_tasks));
                let found = format::counted(report.findings.len() as u64, "finding", "findings");
                say(&format!("{}: {tasks}, {open} of them to do; {found}", shown(&report.path)));
            }
        }
    }
    out.finish()?;
    Ok(code)
}

fn refused(error: &BackupError) -> CommandError {
    error_with_hint(error, error.hint())
}

fn error_with_hint(error: &impl Display, hint: &str) -> CommandError {
    let error = CommandError::from(Failure::new(ErrorCode::InputOutput, Side::Command, error.to_string()));
    if hint.is_empty() { error } else { error.hint(hint) }
}

fn shown(path: &Path) -> String {
    carrack_core::path::display_bytes(path.as_os_str().as_bytes()).to_string()
}
