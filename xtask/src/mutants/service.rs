//! What the service answers, and what its endpoints' tests count.

use super::{Mutation, mutation};

const LEDGER: &str = "-p carrack-service --lib ledger::sqlite::tests::held";

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "the kernel's log counts for devices that do not hold the directory",
        "crates/carrack-doctor/src/rules/hardware.rs",
        ["device || server.is_some_and(names)", "device || server.is_none_or(names)"],
        "-p carrack-doctor --test host_fixtures kernel_log",
    ),
    mutation(
        "the kernel's log counts for ever",
        "crates/carrack-doctor/src/rules/hardware.rs",
        ["age.is_some_and(|age| age <= COUNTS_HOURS * 3600)", "age.is_some_and(|age| age <= COUNTS_HOURS * 3_600_000)"],
        "-p carrack-doctor --test host_fixtures kernel_log",
    ),
    mutation(
        "a fault of the host fails an endpoint's test",
        "crates/carrack/src/doctor/endpoint.rs",
        ["EndpointCheck { ok: None, ..check(", "EndpointCheck { ..check("],
        "-p carrack --bin carrack doctor::endpoint",
    ),
    mutation(
        "a path of the API is decoded twice",
        "crates/carrack-service/src/identity/scope_path.rs",
        ["let bytes = decode(component.as_bytes())?;", "let bytes = decode(&decode(component.as_bytes())?)?;"],
        "-p carrack-service --lib identity::scope_path",
    ),
    mutation(
        "a ledger that is damaged is ready",
        "crates/carrack-service/src/ledger/sqlite/mod.rs",
        ["for reader in &self.readers {", "for reader in self.readers.iter().take(0) {"],
        LEDGER,
    ),
    mutation(
        "damage that a call has met is forgotten",
        "crates/carrack-service/src/ledger/sqlite/mod.rs",
        ["let _ = self.damage.set(told.to_string());", "let _ = told.to_string();"],
        LEDGER,
    ),
    mutation(
        "a parameter that a route does not take is passed over",
        "crates/carrack-service/src/api/query.rs",
        ["find(|name| !is_known(name))", "find(|name| name.is_empty() && !is_known(name))"],
        "-p carrack-service --lib api::tests::closed",
    ),
    mutation(
        "a ledger that has lost attempts is taken for the newest",
        "crates/carrack-service/src/operate/older.rs",
        ["holder.fence > task.fence", "holder.fence > task.fence + 1_000"],
        "-p carrack-service --lib operate::older",
    ),
    mutation(
        "a task that is paused counts as running over time",
        "crates/carrack-service/src/ledger/tally.rs",
        [
            "TaskState::Staging | TaskState::Paused => Self { waiting: 1, running: 0 },\n            TaskState::Active |",
            "TaskState::Staging => Self { waiting: 1, running: 0 },\n            TaskState::Paused | TaskState::Active |",
        ],
        "-p carrack-service --lib ledger::sqlite::tests::queue",
    ),
    mutation(
        "how many tasks waited is forgotten with old figures",
        "crates/carrack-service/src/ledger/tally.rs",
        ["self.queue.entry((edge, owner)).or_default().add(shift, 1);", "let _ = (owner, shift);"],
        "-p carrack-service --lib ledger::",
    ),
    mutation(
        "a task that fails counts against both of its endpoints",
        "crates/carrack-service/src/ledger/health.rs",
        [
            "let Some(name) = failure.endpoint.clone().filter(|name| names.contains(name)) else { continue };",
            "let Some(name) = names.first().cloned() else { continue };",
        ],
        "-p carrack-service --lib ledger::memory",
    ),
    mutation(
        "an endpoint that nobody reaches is not down",
        "crates/carrack-service/src/model/endpoint_health.rs",
        ["if unreached && !later(contact, time) {", "if unreached && later(contact, time) {"],
        "-p carrack-service --lib endpoint_health",
    ),
    mutation(
        "a fault is told with the words of another's task",
        "crates/carrack-service/src/api/endpoint_health.rs",
        ["Ok(known) => sees(caller, &known),", "Ok(_) => true,"],
        "-p carrack-service --lib api::tests::figures",
    ),
    mutation(
        "what was known of an endpoint holds for its new place",
        "crates/carrack-service/src/ledger/rules.rs",
        ["before.0.location != after.0.location", "false"],
        "-p carrack-service --lib ledger::memory",
    ),
];
