//! Attributes that give privileges.

use super::{Mutation, mutation};

const OWNERSHIP: &str = "-p carrack --test system ownership::";
const GIVING: &str = "-p carrack-engine --lib storage::giving::";
const OWNERS: &str = "-p carrack-engine --lib transfer::receive::owners::";

/// What keeps them from whoever may not have them.
pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "a program runs as who copied it",
        "crates/carrack-engine/src/storage/giving.rs",
        ["without(is(AttributeKind::OWNER, now.owner), SET_USER_ID)", "without(true, SET_USER_ID)"],
        GIVING,
    ),
    mutation(
        "a program runs with the group of who copied it",
        "crates/carrack-engine/src/storage/giving.rs",
        ["without(is(AttributeKind::GROUP, now.group), SET_GROUP_ID)", "without(true, SET_GROUP_ID)"],
        GIVING,
    ),
    mutation(
        "a node gives ownership to everybody",
        "crates/carrack-engine/src/agent/begin.rs",
        [
            "let gives = self.environment.grant.is_none() && (is_free || self.environment.gives_ownership);",
            "let gives = true;",
        ],
        OWNERSHIP,
    ),
    mutation(
        "a name of another host leads to root",
        "crates/carrack-engine/src/transfer/receive/owners.rs",
        ["Ok(Some(found)) if found != 0 => found,", "Ok(Some(found)) => found,"],
        OWNERS,
    ),
    mutation(
        "another's program stays one with a new owner",
        "crates/carrack-engine/src/storage/giving.rs",
        [
            "let had = if is_new { before.mode & !(SET_USER_ID | SET_GROUP_ID) } else { before.mode };",
            "let had = before.mode;",
        ],
        GIVING,
    ),
    mutation(
        "a file with other names is given another owner",
        "crates/carrack-engine/src/storage/giving.rs",
        ["self.gives() && differs && (is_shared || ", "self.gives() && differs && ("],
        GIVING,
    ),
    mutation(
        "patches come of what was not told",
        "crates/carrack-engine/src/transfer/receive/patching.rs",
        [
            "if !options.patches() || !lock(&run.contents.told).contains(&short_digest(small.path)) {",
            "if !options.patches() {",
        ],
        "-p carrack-engine --test hostile comparing::",
    ),
    mutation(
        "permissions are given before the owner",
        "crates/carrack-engine/src/storage/posix/part.rs",
        [
            "    let has_others = giving.give_owners(Getting::File(part), others)?;\n    // Always: a part file is made 0600, but for what the umask takes away.\n    let has_mode = giving.give_new_mode(Getting::File(part), mode, others)?;\n",
            "    let has_mode = giving.give_new_mode(Getting::File(part), mode, others)?;\n    let has_others = giving.give_owners(Getting::File(part), others)?;\n",
        ],
        OWNERSHIP,
    ),
];
