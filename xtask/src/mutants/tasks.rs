//! What a task that says SUCCEEDED stands for.

use super::{Mutation, mutation};

const PLACES: &str = "-p carrack --test system worker::places::";
const SIMULATION: &str = "-p carrack-service --lib service::simulation::";
const JUDGE: &str = "-p carrack --test system service::judge::";
const LEDGER: &str = "-p carrack-service --lib ledger::";
const ACTS: &str = "-p carrack-service --lib api::tests::acts::";

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "leftovers of a task that goes on are removed",
        "crates/carrack-service/src/api/files/leftovers.rs",
        ["if remove && !task.state.has_ended() {", "if false {"],
        "-p carrack-service --lib api::tests::tasks::leftovers",
    ),
    mutation(
        "what one copy has left is collected with what others have",
        "crates/carrack-engine/src/storage/posix/collect.rs",
        ["if self.rules.only.is_none_or(|key| is_marker_of(key, &name)) {", "{"],
        "-p carrack-engine --lib storage::posix::collect::tests::leftovers_of_one_copy",
    ),
    mutation(
        "parts that no marker of the copy speaks for are collected with its own",
        "crates/carrack-engine/src/storage/posix/collect.rs",
        ["None => self.rules.only.is_none() && self", "None => self"],
        "-p carrack-engine --lib storage::posix::collect::tests::leftovers_of_one_copy",
    ),
    mutation(
        "a grant to read has leftovers removed",
        "crates/carrack-engine/src/agent/grants.rs",
        [
            "Ask::Collect(Collect { marker: Some(_), .. }) => self.check_right(Right::Write),",
            "Ask::Collect(Collect { marker: Some(_), .. }) => Ok(()),",
        ],
        "-p carrack-engine --test hostile grants::grant_allows_its_verbs",
    ),
    mutation(
        "what was done at another place counts",
        "crates/carrack-service/src/worker/history.rs",
        [
            "self.place.is_empty() || place.is_empty() || self.place == place",
            "self.place.is_empty() || place.is_empty() || self.place.len() == place.len()",
        ],
        PLACES,
    ),
    mutation(
        "the judge: what was done at another place counts",
        "crates/carrack-service/src/worker/history.rs",
        [
            "self.place.is_empty() || place.is_empty() || self.place == place",
            "self.place.is_empty() || place.is_empty() || self.place.len() == place.len()",
        ],
        JUDGE,
    ),
    mutation(
        "the path is all that identifies a node",
        "crates/carrack-service/src/worker/order.rs",
        [
            "vec![location.document().unwrap_or_default().into_bytes(),",
            "vec![location.document().unwrap_or_default().split('#').next().unwrap_or_default().into(),",
        ],
        "-p carrack-service --lib worker::order::",
    ),
    mutation(
        "an endpoint moves under its open tasks",
        "crates/carrack-service/src/ledger/rules.rs",
        ["before.location != after.location)", "before.location != after.location && open.is_empty())"],
        LEDGER,
    ),
    mutation(
        "the judge: an endpoint moves under its open tasks",
        "crates/carrack-service/src/ledger/rules.rs",
        ["before.location != after.location)", "before.location != after.location && open.is_empty())"],
        SIMULATION,
    ),
    mutation(
        "what was done is not looked at again",
        "crates/carrack-service/src/worker/copying.rs",
        [
            "Rest::Failed | Rest::Look => look::compare(attempt, pair, source, destination)?,",
            "Rest::Failed | Rest::Look => drop((pair, source, destination)),",
        ],
        PLACES,
    ),
    mutation(
        "the judge: what was done is not looked at again",
        "crates/carrack-service/src/worker/copying.rs",
        [
            "Rest::Failed | Rest::Look => look::compare(attempt, pair, source, destination)?,",
            "Rest::Failed | Rest::Look => drop((pair, source, destination)),",
        ],
        JUDGE,
    ),
    mutation(
        "a file of another time is what was copied",
        "crates/carrack-service/src/worker/look.rs",
        ["&entry.mtime.seconds.to_le_bytes(),", "&entry.size.to_le_bytes(),"],
        PLACES,
    ),
    mutation(
        "what is gone with its source is remembered",
        "crates/carrack-service/src/worker/look.rs",
        [
            "if known.there == 0 || (is_file && known.there_size != item.size) {",
            "if is_file && known.there_size != item.size && known.there != 0 {",
        ],
        PLACES,
    ),
    mutation(
        "digests that differ are the same",
        "crates/carrack-service/src/worker/look.rs",
        ["if digests.blake3 == Some(digest) =>", "if digests.blake3.is_some() && digest != [0; 32] =>"],
        PLACES,
    ),
    mutation(
        "items that were told of another place stay in the list",
        "crates/carrack-service/src/journal/withdrawn.rs",
        ["is_some_and(|before| offset < *before)", "is_some_and(|before| offset < *before && offset == 0)"],
        PLACES,
    ),
    mutation(
        "a worker keeps the deadline that it began with",
        "crates/carrack-service/src/worker/limit.rs",
        [
            "Ok(micros) => self.deadline = instant_of(Moment(micros)),",
            "Ok(micros) => drop(instant_of(Moment(micros))),",
        ],
        PLACES,
    ),
    mutation(
        "a deadline that was put off has passed all the same",
        "crates/carrack-service/src/service/outcome.rs",
        ["if end.late && !self.deadline_is_over() =>", "if end.late && self.deadline_is_over() =>"],
        SIMULATION,
    ),
    mutation(
        "hosts that a dead attempt has reached were never reached",
        "crates/carrack-service/src/worker/history.rs",
        ["Record::Reached => self.reached = true,", "Record::Reached => self.reached |= false,"],
        PLACES,
    ),
    mutation(
        "progress goes back when a session is lost",
        "crates/carrack-service/src/worker/teller/telling.rs",
        ["self.floor = self.progress();", "self.floor = self.before.clone();"],
        PLACES,
    ),
    mutation(
        "a filter of an admin means everybody",
        "crates/carrack-service/src/api/acts.rs",
        [
            "None => filter.owner = Some(caller.user.clone()),",
            "None if !caller.is_admin() => filter.owner = Some(caller.user.clone()),\n        None => {}",
        ],
        ACTS,
    ),
    mutation(
        "a task is tried again after its deadline",
        "crates/carrack-service/src/ledger/rules.rs",
        [
            "deadline.filter(|deadline| *deadline <= now) {",
            "deadline.filter(|deadline| *deadline < now && now < *deadline) {",
        ],
        LEDGER,
    ),
    mutation(
        "a task that has ended keeps no time beside its estimate",
        "crates/carrack-service/src/ledger/rules.rs",
        ["        estimate.took_seconds = took;", "        estimate.took_seconds = took.filter(|took| *took < 0.0);"],
        LEDGER,
    ),
    mutation(
        "an estimate that was told is made anew while the task runs",
        "crates/carrack-service/src/service/settle.rs",
        ["if told || task.fence != 1", "if told && task.fence != 1"],
        "-p carrack-service --lib estimate_is_made_once",
    ),
    mutation(
        "the start of the next task counts workers that are kept for others",
        "crates/carrack-service/src/schedule/forecast.rs",
        ["workers.saturating_sub(view.rules.reserve())", "workers.saturating_sub(view.rules.reserve() / 1000)"],
        "-p carrack-service --lib schedule::plan_tests::",
    ),
    mutation(
        "a move of two hosts that have one disk deletes the only copy",
        "crates/carrack-engine/src/copy/resolve.rs",
        ["} else if request.options.remove_sources || request.options.moves {", "} else if false {"],
        "-p carrack --test system mounts::only_copy",
    ),
    mutation(
        "a run goes on at a host whose disk is not mounted",
        "crates/carrack-engine/src/copy/session.rs",
        ["if let Some(plan) = &self.plan {", "if let Some(plan) = self.plan.as_ref().filter(|_| false) {"],
        "-p carrack --test system mounts::run_goes_on",
    ),
    mutation(
        "a source is deleted whose copy has failed since it was done",
        "crates/carrack-service/src/journal/items.rs",
        ["failed.append(&mut under_way)", "under_way.clear()"],
        "-p carrack-service --lib journal::tests::what_failed_last",
    ),
    mutation(
        "pairs of a move may replace what each other has brought",
        "crates/carrack-service/src/identity/targets.rs",
        ["(is_move || held", "(held"],
        "-p carrack-service --lib identity::targets",
    ),
];
