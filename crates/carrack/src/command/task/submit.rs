//! `carrack task submit`.

use std::collections::BTreeMap;

use carrack_service::client::{Call, segment, with_query};
use carrack_service::model::{DryRun, NewTask, Task};
use clap::Command;
use serde_json::{Value as Json, json};

use super::super::reach::JSON;
use super::wait::{self, TIMEOUT};
use super::{submission, told};
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::show;
use crate::output::lines::Lines;
use crate::output::{human, say};

const SUBMISSION_ID: Value<String> = Value::new(
    "submission-id",
    "ID",
    parse_submission_id,
    "By what a repetition is known: the same ID again answers with the same task [default: made up]",
);
const DRY_RUN: Switch =
    Switch::short('n', "dry-run", "Say what would be done, and how long it may take; submit nothing");
const ESTIMATE: Switch =
    Switch::new("estimate", "Count the sources first, so that how long the task may take is told from the beginning");
const WAIT: Switch = Switch::new("wait", "Wait for the end, and exit as `carrack task wait` does");

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("submit")
        .about("Submit a task; its identifier is printed")
        .override_usage("carrack task submit [OPTIONS] SRC... DST\n       carrack task submit [OPTIONS] --batch FILE")
        .args(submission::args())
        .args([
            SUBMISSION_ID.arg(),
            DRY_RUN.arg(),
            ESTIMATE.arg(),
            WAIT.arg().conflicts_with(DRY_RUN.name),
            TIMEOUT.arg(),
        ])
        .after_help(
            "A location is @NAME:/PATH, at an endpoint. Whoever runs the service may also name paths of its host,\n\
             carrack://HOST/PATH and USER@HOST:PATH.",
        )
}

/// What clap knows of `preview`.
pub fn preview_command() -> Command {
    Command::new("preview")
        .about("Tell what a task would send and delete, and change nothing; the flags are those of submit")
        .override_usage("carrack task preview [OPTIONS] SRC... DST\n       carrack task preview [OPTIONS] --batch FILE")
        .args(submission::args())
        .arg(TIMEOUT.arg())
        .after_help(
            "The preview is a task, which goes on when this command is stopped: carrack task show has what it found,\n\
             carrack task items names each item, and carrack task clone --run does it.",
        )
}

/// Runs `preview`.
pub fn preview(flags: &Flags) -> Result<u8, CommandError> {
    let json = flags.has(&JSON);
    let request = NewTask { preview: true, ..submission::new_task(flags)? };
    let service = Service::open(flags)?;
    let call = Call::post("/tasks").header("Idempotency-Key", carrack_service::model::new_id());
    let (task, _): (Task, bool) = service.once(&service.with(call, &request)?)?;
    if !json {
        let mut out = Lines::stdout(false);
        out.line(human::safe(&task.id).as_bytes());
        out.finish()?;
    }
    wait::until_planned(&service, &task.id, flags.get(&TIMEOUT)?, json)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let json = flags.has(&JSON);
    let request = submission::new_task(flags)?;
    let service = Service::open(flags)?;
    let is_dry = flags.has(&DRY_RUN);
    let size = if is_dry || flags.has(&ESTIMATE) { count(&service, &request) } else { None };
    let size = size.map(|(bytes, items)| (bytes.to_string(), items.to_string()));
    let sizes: Vec<(&str, &str)> =
        size.iter().flat_map(|(bytes, items)| [("bytes", bytes.as_str()), ("items", items.as_str())]).collect();
    if is_dry {
        let query: Vec<_> = [("dry_run", "true")].into_iter().chain(sizes).collect();
        let call = Call::post(with_query("/tasks", &query));
        let promise: DryRun = service.call(&service.with(call, &request)?)?;
        return tell_promise(&promise, json);
    }
    let id = match flags.get(&SUBMISSION_ID)? {
        Some(id) => id,
        // Whatever is lost on the way, a call that is repeated below makes no second task.
        None => carrack_service::model::new_id(),
    };
    let call = service.with(Call::post(with_query("/tasks", &sizes)).header("Idempotency-Key", id), &request)?;
    let (task, is_duplicate): (Task, bool) = service.once(&call)?;
    let mut out = Lines::stdout(json);
    if json {
        let mut object = told::object("task", &task);
        object["duplicate"] = json!(is_duplicate);
        out.json(&object);
    } else {
        out.line(human::safe(&task.id).as_bytes());
        if is_duplicate {
            say("note: this submission was accepted before; no second task was made");
        }
    }
    out.finish()?;
    if flags.has(&WAIT) {
        return wait::until_ended(&service, &[task.id], flags.get(&TIMEOUT)?, json);
    }
    Ok(exit::DONE)
}

/// Bytes and items of a task's sources today. `None`: a source is at no endpoint, or could not be counted.
fn count(service: &Service, request: &NewTask) -> Option<(u64, u64)> {
    let mut paths: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pair in &request.pairs {
        let (name, path) = pair.source.strip_prefix('@')?.split_once(':')?;
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        paths.entry(name).or_default().push(if path.is_empty() { "/" } else { path });
    }
    let mut sum = (0u64, 0u64);
    for (name, paths) in paths {
        let call = Call::post(format!("/endpoints/{}/files/du", segment(name)));
        let told = service.answer(&service.with(call, &json!({ "paths": paths })).ok()?).ok()?;
        let last = told.body().trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
        let total: Json = serde_json::from_slice(last).ok().filter(|total: &Json| total["done"] == true)?;
        sum.0 = sum.0.saturating_add(total["bytes"].as_u64()?);
        sum.1 = sum.1.saturating_add(total["files"].as_u64()?).saturating_add(total["directories"].as_u64()?);
    }
    Some(sum)
}

/// What the service thinks of a task that it was not given.
fn tell_promise(promise: &DryRun, json: bool) -> Result<u8, CommandError> {
    let mut out = Lines::stdout(json);
    if json {
        out.json(&told::object("task-promise", promise));
    } else {
        let start = show::start_words(promise.earliest_start, promise.expected_start)
            .map_or_else(|| ", when it would begin is not known".to_owned(), |start| format!(", would begin {start}"));
        let time = promise.expected_seconds_least.zip(promise.expected_seconds_most).map_or_else(
            || ", how long it would take is not known".to_owned(),
            |range| format!(", would take {}", show::takes(range)),
        );
        let accepted = if promise.valid { "accepted" } else { "refused" };
        let text = format!("the task would be {accepted}{start}{time}: {}", promise.why);
        out.line(human::safe(&text).as_bytes());
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn parse_submission_id(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_graphic();
    if text.is_empty() || text.len() > 128 || !text.bytes().all(plain) {
        return Err("a submission's identifier has 1 to 128 letters, digits and signs".to_owned());
    }
    Ok(text.to_owned())
}
