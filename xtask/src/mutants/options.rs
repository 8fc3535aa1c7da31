//! What an option of a copy or a task may be.

use super::{Mutation, mutation};

const CORE: &str = "-p carrack-core --features serde --lib options";
const SERVICE: &str = "-p carrack-service --lib options";

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "in the clear nothing covers the content",
        "crates/carrack-core/src/request.rs",
        ["None if verify == Verify::None && encrypt != Encrypt::None =>", "None if verify == Verify::None =>"],
        CORE,
    ),
    mutation(
        "a copy verifies by no digest",
        "crates/carrack-core/src/request.rs",
        ["Some(_) if verify == Verify::None => Ok(Self::NONE),", "Some(_) if verify.name() != \"\" => Ok(Self::NONE),"],
        CORE,
    ),
    mutation(
        "of two digests the last one counts",
        "crates/carrack-core/src/request.rs",
        ["is_some_and(|other| other != main)", "is_some_and(|other| other != main && text.is_empty())"],
        CORE,
    ),
    mutation(
        "a number in quotes is a number",
        "crates/carrack-core/src/options/json.rs",
        ["if text.starts_with(|first: char| first.is_ascii_digit()) {", "if text.is_empty() {"],
        CORE,
    ),
    mutation(
        "a task may move what it does not verify",
        "crates/carrack-service/src/model/task.rs",
        ["if kind == TaskKind::Move && self.verify", "if kind == TaskKind::Delete && self.verify"],
        SERVICE,
    ),
    mutation(
        "a row whose options cannot be read copies by default",
        "crates/carrack-service/src/ledger/sqlite/tasks.rs",
        [
            "        unreadable = Some(format!(\"request: {error}\"));\n        without_options(submitted)",
            "        let _ = error;\n        without_options(submitted)",
        ],
        SERVICE,
    ),
    mutation(
        "a refusal repeats all of a long value",
        "crates/carrack-core/src/words.rs",
        ["match text.char_indices().nth(QUOTED_CHARACTERS) {", "match text.char_indices().nth(usize::MAX) {"],
        CORE,
    ),
    mutation(
        "a token for two endpoints opens every one",
        "crates/carrack-service/src/model/identity.rs",
        [
            "self.endpoints.iter().any(|endpoint| endpoint == name)",
            "self.endpoints.iter().any(|endpoint| !endpoint.is_empty() || endpoint == name)",
        ],
        "-p carrack-service --lib token",
    ),
    mutation(
        "a token tells whether another's endpoint is there",
        "crates/carrack-service/src/api/tokens.rs",
        ["Verdict::Forbidden | Verdict::Hidden => Err(unknown()),", "Verdict::Forbidden | Verdict::Hidden => Ok(()),"],
        "-p carrack-service --lib token",
    ),
];
