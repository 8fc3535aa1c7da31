//! Tasks.

use std::time::Duration;

use carrack_service::clock::Moment;
use carrack_service::model::{
    ActedTask, Blocked, CheckTally, DIFFERENCES, Pair, Planned, Progress, Task, TaskKind, TaskLeftovers, TaskState,
};

use super::{maybe_time, shortened, time};
use crate::output::{format, human};

/// Headings of [`task_row`].
pub const TASK_HEADINGS: [&str; 5] = ["TASK", "STATE", ">DONE", ">BYTES", "WHAT"];

/// A task in a list.
pub fn task_row(task: &Task) -> [String; 5] {
    let Progress { items_total, items_done, items_skipped, bytes_moved, scan_complete, .. } = task.progress;
    let of = match (items_total, scan_complete) {
        (0, false) => String::new(),
        (total, true) => format!("/{}", format::count(total)),
        (total, false) => format!("/{}+", format::count(total)),
    };
    let what = match &task.request.label {
        Some(label) => label.clone(),
        None => task.request.pairs.first().map(|pair| pair_words(task.request.kind, pair)).unwrap_or_default(),
    };
    [
        task.id.clone(),
        task.state.name().to_owned(),
        format!("{}{of}", format::count(items_done + items_skipped)),
        format::size(bytes_moved),
        shortened(&what, 60),
    ]
}

/// A task in full.
pub fn task_lines(task: &Task) -> Vec<String> {
    let request = &task.request;
    let mut lines = vec![format!("task {}", task.id), format!("  state: {}", state_words(task))];
    let mut line = |name: &str, text: String| lines.push(format!("  {name}: {text}"));
    if let Some(label) = &request.label {
        line("label", label.clone());
    }
    line("owner", task.owner.clone());
    if request.preview {
        line("preview", "nothing is changed".to_owned());
    }
    for pair in request.pairs.iter().take(PAIRS_SHOWN) {
        line(request.kind.name(), pair_words(request.kind, pair));
    }
    if request.pairs.len() > PAIRS_SHOWN {
        line(request.kind.name(), format!("and {} more", format::count((request.pairs.len() - PAIRS_SHOWN) as u64)));
    }
    waiting(task, &mut line);
    estimate(task, &mut line);
    let progress = &task.progress;
    if !request.preview {
        line("items", items_words(progress));
        if matches!(request.kind, TaskKind::Copy | TaskKind::Move) {
            line("bytes", bytes_words(progress));
        }
    }
    if let Some(check) = &progress.check {
        line("found", check_words(check));
    }
    plan_words(task).into_iter().for_each(|(name, text)| line(name, text));
    rates(progress, &mut line);
    if let Some(limited) = &progress.limited_by {
        line("limited by", limited.clone());
    }
    if !progress.unkept.is_empty() {
        let told = progress.unkept.iter().map(|(what, items)| human::unkept_named(what, *items));
        line("not kept", told.collect::<Vec<_>>().join(", "));
    }
    line("attempts", format!("{}, {} recovered", task.fence, format::counted(progress.faults, "fault", "faults")));
    line("submitted", time(task.submitted));
    if task.started.is_some() {
        line("started", maybe_time(task.started));
    }
    if task.ended.is_some() {
        line("ended", maybe_time(task.ended));
    }
    if let Some(deadline) = request.deadline {
        line("deadline", time(deadline));
    }
    if let Some(failure) = &task.failure {
        let is_done = failure.code == DIFFERENCES;
        line("why", if is_done { failure.why.clone() } else { format!("{}: {}", failure.side, failure.why) });
        failure.hints.iter().for_each(|hint| line("hint", hint.clone()));
    }
    lines.iter().map(|line| human::safe(line)).collect()
}

/// What a task has left unfinished, below the lines of the task.
pub fn leftover_lines(id: &str, left: &TaskLeftovers) -> Vec<String> {
    let mut lines = Vec::new();
    if left.files > 0 {
        lines.push(format!("  unfinished: {}", leftover_words(left)));
        lines.extend(leftover_names(left, "  unfinished: "));
        lines.push(format!("  hint: carrack task retry {id} goes on from there"));
        lines.push(format!("  hint: carrack task cancel --clean {id} removes what is unfinished"));
    }
    let unknown = left.unknown.iter().map(|one| format!("  unfinished: not known at {}: {}", one.destination, one.why));
    lines.extend(unknown);
    lines.iter().map(|line| human::safe(line)).collect()
}

/// What was removed of a task's unfinished files.
pub fn removed_lines(id: &str, removed: &TaskLeftovers) -> Vec<String> {
    let mut lines = vec![match removed.files {
        0 => format!("{id} has left nothing unfinished"),
        _ => format!("{id}: removed {}", leftover_words(removed)),
    }];
    lines.extend(leftover_names(removed, "  removed: "));
    lines.extend(removed.unknown.iter().map(|one| format!("  not removed at {}: {}", one.destination, one.why)));
    lines.iter().map(|line| human::safe(line)).collect()
}

fn leftover_words(left: &TaskLeftovers) -> String {
    format!("{}, {}", format::counted(left.files, "file", "files"), format::size(left.bytes))
}

fn leftover_names(left: &TaskLeftovers, before: &str) -> Vec<String> {
    let named = left.items.iter().take(LEFTOVERS_SHOWN);
    let mut lines: Vec<String> = named.map(|item| format!("{before}{} of {}", item.path, item.destination)).collect();
    let others = left.files - lines.len() as u64;
    if others > 0 {
        lines.push(format!("{before}and {} more", format::count(others)));
    }
    lines
}

/// Of unfinished files, as many are shown; `--json` has a thousand.
const LEFTOVERS_SHOWN: usize = 10;

/// Of a batch, as many pairs are shown; `--json` has all.
const PAIRS_SHOWN: usize = 10;

/// From where to where.
pub fn pair_words(kind: TaskKind, pair: &Pair) -> String {
    match (&pair.destination, kind) {
        (Some(destination), TaskKind::Copy | TaskKind::Move) => format!("{} -> {destination}", pair.source),
        (Some(destination), TaskKind::Check) => format!("{} and {destination}", pair.source),
        _ => pair.source.clone(),
    }
}

fn state_words(task: &Task) -> String {
    let state = task.state.name();
    match task.state {
        TaskState::Active if task.pause_wanted => format!("{state}, to be paused"),
        TaskState::Queued => match (task.position, task.expected_start) {
            (Some(position), Some(start)) => {
                format!("{state}, number {position}, expected to begin at {}", time(start))
            }
            (Some(position), None) => format!("{state}, number {position}"),
            _ => state.to_owned(),
        },
        _ => state.to_owned(),
    }
}

/// Why a task waits, where it is not only because somebody wants it to.
fn waits_for(task: &Task) -> Option<&Blocked> {
    task.blocked.as_ref().filter(|_| task.state == TaskState::Queued || task.is_held())
}

/// What a preview has found, a line each.
pub fn plan_lines(task: &Task) -> Vec<String> {
    let words = plan_words(task).into_iter();
    words.map(|(name, text)| human::safe(&format!("{name}: {text}"))).collect()
}

/// What a task would do. Of one that is no preview, only what it would delete and did not.
fn plan_words(task: &Task) -> Vec<(&'static str, String)> {
    let Some(plan) = &task.progress.plan else { return Vec::new() };
    let is_preview = task.request.preview;
    let files = |planned: Planned| {
        format!("{}, {}", format::counted(planned.items, "file", "files"), format::size(planned.bytes))
    };
    let mut words = Vec::new();
    if is_preview {
        words.extend([("new", files(plan.new)), ("changed", files(plan.changed)), ("same", files(plan.same))]);
    }
    if plan.left.items > 0 {
        words.push(("left as they are", files(plan.left)));
    }
    if plan.to_delete.items > 0 || (is_preview && task.request.options.deletes()) {
        let Planned { items, bytes } = plan.to_delete;
        words.push(("to delete", format!("{}, {}", format::counted(items, "item", "items"), format::size(bytes))));
    }
    if let Some(why) = &plan.held_by {
        words.push((if is_preview { "would keep it from deleting" } else { "not deleted" }, why.clone()));
    }
    words
}

fn waiting(task: &Task, line: &mut impl FnMut(&str, String)) {
    let Some(blocked) = waits_for(task) else { return };
    line("waits", format!("{} (since {})", blocked.why, time(blocked.since)));
    if let Some(next) = blocked.next_try {
        line("next try", time(next));
    }
    if let Some(hint) = &blocked.hint {
        line("hint", hint.clone());
    }
}

/// What was expected, beside what it took.
fn estimate(task: &Task, line: &mut impl FnMut(&str, String)) {
    let Some(estimate) = &task.estimate else { return };
    let told = match estimate.seconds() {
        Some(range) => takes(range),
        None => "not known".to_owned(),
    };
    line("estimate", format!("{told}; made at {}: {}", time(estimate.made), estimate.why));
    if task.state == TaskState::Queued && task.fence == 0 && task.expected_start.is_none() {
        let start = start_words(estimate.earliest_start, estimate.latest_start);
        line("begin", start.unwrap_or_else(|| "not known".to_owned()));
    }
    let Some(took) = estimate.took_seconds else { return };
    let beside = match estimate.was_kept() {
        None => "",
        Some(true) => ", as was expected",
        Some(false) if estimate.seconds_most.is_some_and(|most| took > most as f64) => ", longer than was expected",
        Some(false) => ", less than was expected",
    };
    line("took", format!("{}{beside}", format::duration(Duration::from_secs_f64(took.max(0.0)))));
}

/// How long something takes.
pub fn takes((least, most): (u64, u64)) -> String {
    let [least, most] = [least, most].map(|seconds| format::duration(Duration::from_secs(seconds)));
    if least == most { least } else { format!("{least} to {most}") }
}

/// When something begins. None: that cannot be told at all.
pub fn start_words(earliest: Option<Moment>, latest: Option<Moment>) -> Option<String> {
    Some(match (earliest, latest) {
        (Some(earliest), Some(latest)) if earliest == latest => format!("at {}", time(earliest)),
        (Some(earliest), Some(latest)) => format!("between {} and {}", time(earliest), time(latest)),
        (Some(earliest), None) => format!("at {} at the earliest, how late is not known", time(earliest)),
        (None, Some(latest)) => format!("by {}", time(latest)),
        (None, None) => return None,
    })
}

/// What became of one of many tasks.
pub fn acted_line(task: &ActedTask) -> String {
    let label = task.label.as_ref().map_or_else(String::new, |label| format!(" {label}"));
    let why = task.why.as_ref().map_or_else(String::new, |why| format!(": {}", why.detail));
    human::safe(&format!("{} {}{label}{why}", task.id, task.state.name()))
}

fn items_words(progress: &Progress) -> String {
    let Progress { items_total, items_done, items_skipped, items_failed, items_remembered, scan_complete, .. } =
        *progress;
    let deleted = match progress.items_deleted {
        0 => String::new(),
        items => {
            format!("; deleted at the destination: {} ({})", format::count(items), format::size(progress.bytes_deleted))
        }
    };
    let still = if scan_complete { "" } else { " found so far" };
    let remembered = match items_remembered {
        0 => String::new(),
        items => format!(" ({} only remembered from an earlier attempt)", format::count(items)),
    };
    format!(
        "{} done{remembered}, {} skipped, {} failed, of {}{still}{deleted}",
        format::count(items_done),
        format::count(items_skipped),
        format::count(items_failed),
        format::count(items_total)
    )
}

/// What a check has found.
fn check_words(check: &CheckTally) -> String {
    let CheckTally { same, bytes, timeless, unlinked, untold, .. } = *check;
    let mut text = format!("{}; {} the same, {} compared", check.words(), format::count(same), format::size(bytes));
    if timeless > 0 {
        let files = format::counted(timeless, "file", "files");
        text += &format!("; not compared: the times of {files}, which one side does not have");
    }
    if unlinked > 0 {
        text += &format!("; not compared: whether {} names are of one file", format::count(unlinked));
    }
    if untold > 0 {
        let items = format::counted(untold, "item", "items");
        text += &format!("; not compared: ACLs or extended attributes of {items}, too long or not readable");
    }
    text
}

fn bytes_words(progress: &Progress) -> String {
    let Progress { bytes_total, bytes_moved, bytes_verified, bytes_skipped, bytes_resent, .. } = *progress;
    format!(
        "{} at the destination of {}; {} verified, {} skipped (content not compared), {} sent again",
        format::size(bytes_moved),
        format::size_exact(bytes_total),
        format::size(bytes_verified),
        format::size(bytes_skipped),
        format::size(bytes_resent)
    )
}

fn rates(progress: &Progress, line: &mut impl FnMut(&str, String)) {
    let rates = progress.rates;
    if rates.all > 0.0 {
        let [now, recent, all] = [rates.now, rates.five_minutes, rates.all].map(format::rate_bytes);
        line("rate", format!("{now} now, {recent} over five minutes, {all} in all"));
    }
    if let Some(eta) = progress.eta_seconds {
        line("time left", format::duration(Duration::from_secs(eta)));
    }
}

/// How far a task is, in one line.
pub fn progress_line(task: &Task) -> String {
    let progress = &task.progress;
    let done = progress.items_done + progress.items_skipped;
    let still = if progress.scan_complete { "" } else { "+" };
    let compared = progress.check.map(|check| {
        let items = format::counted(check.compared(), "item", "items");
        format!("{}: {items} compared, {}, {}", task.state.name(), format::size(check.bytes), check.words())
    });
    let moved = || {
        format!(
            "{}: {} of {}{still} items, {} of {}{still}",
            task.state.name(),
            format::count(done),
            format::count(progress.items_total),
            format::size(progress.bytes_moved),
            format::size(progress.bytes_total)
        )
    };
    let mut text = compared.unwrap_or_else(moved);
    if progress.items_failed > 0 {
        text += &format!(", {} failed", format::count(progress.items_failed));
    }
    if task.state == TaskState::Active && progress.rates.now > 0.0 {
        text += &format!(", {}", format::rate_bytes(progress.rates.now));
    }
    if let Some(eta) = progress.eta_seconds.filter(|_| task.state == TaskState::Active) {
        text += &format!(", {} left", format::clock(Duration::from_secs(eta)));
    }
    if let Some(blocked) = waits_for(task) {
        text += &format!("; {}", blocked.why);
    }
    human::safe(&text)
}

#[cfg(test)]
pub mod tests {
    use carrack_service::model::{BlockedCause, Estimate, NewTask, TaskFailure, TaskPlan};

    use super::*;

    pub fn task() -> Task {
        Task {
            id: "0193".into(),
            owner: "me".into(),
            request: NewTask {
                pairs: vec![Pair { source: "@a:/x".into(), destination: Some("@b:/y\u{1b}".into()) }],
                label: Some("run42".into()),
                ..NewTask::default()
            },
            state: TaskState::Queued,
            pause_wanted: false,
            cancel_wanted: false,
            blocked: None,
            position: Some(3),
            expected_start: None,
            in_flight: Vec::new(),
            fence: 1,
            futile_attempts: 0,
            progress: Progress {
                items_total: 5000,
                items_done: 1200,
                items_failed: 1,
                bytes_total: 1 << 30,
                bytes_moved: 1 << 20,
                ..Progress::default()
            },
            estimate: None,
            failure: None,
            submitted: Moment(1_795_420_800_000_000),
            started: None,
            ended: None,
            version: 1,
        }
    }

    #[test]
    fn task_is_shown_with_what_it_waits_for() {
        let mut task = task();
        task.blocked = Some(Blocked {
            cause: BlockedCause::Retry,
            why: "the node does not answer".into(),
            since: task.submitted,
            next_try: Some(task.submitted),
            hint: Some("start it".into()),
        });
        let text = task_lines(&task).join("\n");
        for part in [
            "state: QUEUED, number 3",
            "label: run42",
            "copy: @a:/x -> @b:/y\\x1b",
            "waits: the node does not answer (since 2026-11-23T08:00:00Z)",
            "hint: start it",
            "items: 1,200 done, 0 skipped, 1 failed, of 5,000 found so far",
            "bytes: 1.0 MiB at the destination of 1.0 GiB (1,073,741,824 bytes)",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert_eq!(
            progress_line(&task),
            "QUEUED: 1,200 of 5,000+ items, 1.0 MiB of 1.0 GiB+, 1 failed; the node does not answer"
        );
        let row = task_row(&task);
        assert_eq!([&row[1][..], &row[2], &row[4]], ["QUEUED", "1,200/5,000+", "run42"]);
    }

    #[test]
    fn task_shows_what_it_would_do() {
        let planned = |items, bytes| Planned { items, bytes };
        let mut task = task();
        task.request.options.delete = true;
        task.progress.plan = Some(TaskPlan {
            new: planned(1, 7),
            changed: planned(2, 2048),
            to_delete: planned(1200, 5),
            held_by: Some("1,200 of 1,300 items would be deleted\u{1b}".into()),
            ..TaskPlan::default()
        });
        task.request.preview = true;
        let lines = plan_lines(&task);
        assert_eq!(
            lines[..4],
            [
                "new: 1 file, 7 bytes",
                "changed: 2 files, 2.0 KiB",
                "same: 0 files, 0 bytes",
                "to delete: 1,200 items, 5 bytes"
            ]
        );
        assert_eq!(lines[4], "would keep it from deleting: 1,200 of 1,300 items would be deleted\\x1b");
        assert!(!task_lines(&task).iter().any(|line| line.starts_with("  items: ")), "nothing is done");
        task.request.preview = false;
        assert_eq!(plan_lines(&task).len(), 2, "what is done is told by the other lines");
        task.state = TaskState::Paused;
        task.blocked = Some(Blocked {
            cause: BlockedCause::Guard,
            why: "too many".into(),
            since: task.submitted,
            next_try: None,
            hint: None,
        });
        assert!(progress_line(&task).ends_with("; too many"), "{}", progress_line(&task));
    }

    #[test]
    fn task_shows_its_estimate_beside_what_it_took() {
        let moment = |seconds: i64| Some(Moment(1_795_420_800_000_000 + seconds * 1_000_000));
        let estimate = Estimate {
            made: Moment(1_795_420_800_000_000),
            earliest_start: moment(0),
            latest_start: moment(60),
            seconds_least: Some(60),
            seconds_most: Some(150),
            why: "by the last 3 tasks between these endpoints".into(),
            ..Estimate::default()
        };
        let shown = |estimate: &Estimate, state, fence| {
            task_lines(&Task { estimate: Some(estimate.clone()), state, fence, ..task() }).join("\n")
        };
        let text = shown(&estimate, TaskState::Queued, 0);
        let made = "estimate: 1 min 00 s to 2 min 30 s; made at 2026-11-23T08:00:00Z: by the last 3 tasks between";
        assert!(text.contains(made), "{text}");
        assert!(text.contains("begin: between 2026-11-23T08:00:00Z and 2026-11-23T08:01:00Z"), "{text}");
        for (took, words) in [
            (100.0, "took: 1 min 40 s, as was expected"),
            (200.0, "took: 3 min 20 s, longer than was expected"),
            (5.0, "took: 5.00 s, less than was expected"),
        ] {
            let ended = Estimate { took_seconds: Some(took), ..estimate.clone() };
            let text = shown(&ended, TaskState::Succeeded, 1);
            assert!(text.contains(words) && text.contains(made) && !text.contains("begin:"), "{text}");
        }
        let unknown = Estimate { seconds_most: None, latest_start: None, took_seconds: Some(7.0), ..estimate };
        let text = shown(&unknown, TaskState::Succeeded, 1);
        assert!(text.contains("estimate: not known; made at") && text.contains("took: 7.00 s\n"), "{text}");
    }

    #[test]
    fn task_that_failed_says_why() {
        let failure = TaskFailure {
            code: "no-space".into(),
            side: "destination".into(),
            endpoint: None,
            why: "disk full".into(),
            retryable: false,
            hints: vec!["free some".into()],
        };
        let task = Task { state: TaskState::Failed, failure: Some(failure), ..task() };
        let text = task_lines(&task).join("\n");
        assert!(text.contains("why: destination: disk full") && text.contains("hint: free some"), "{text}");
    }
}
