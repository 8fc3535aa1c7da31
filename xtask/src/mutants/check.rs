//! Two trees are compared whole, and no difference is invented.

use super::{Mutation, mutation};

const MERGE: &str = "-p carrack-core --lib plan::check::";
const CHECK: &str = "-p carrack --test system check::";

/// The safeguards of a comparison.
pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "what lies below something unreadable counts as a difference",
        "crates/carrack-core/src/plan/check.rs",
        ["(None, Some(There(facts))) if !self.source.hides(path) =>", "(None, Some(There(facts))) =>"],
        MERGE,
    ),
    mutation(
        "a listing out of order is merged",
        "crates/carrack-core/src/plan/check.rs",
        ["listing_order(last, &item.path).is_ge()", "listing_order(last, &item.path).is_gt()"],
        MERGE,
    ),
    mutation(
        "an end that is reached anew tells everything again",
        "crates/carrack-engine/src/check.rs",
        ["after: told.after.clone()", "after: Vec::new()"],
        CHECK,
    ),
    mutation(
        "names are told in the order of the file system",
        "crates/carrack-engine/src/storage/posix/listed.rs",
        ["        if in_order {", "        if in_order && path.is_empty() {"],
        CHECK,
    ),
    mutation(
        "what cannot be read is hidden by a difference",
        "crates/carrack/src/command/place.rs",
        [
            "            exit::DONE => otherwise,\n            code => code,",
            "            exit::DONE => otherwise,\n            code => code.max(otherwise),",
        ],
        CHECK,
    ),
    mutation(
        "a check that is asked for again takes over what was found before",
        "crates/carrack-service/src/worker/history.rs",
        ["pair.is_asked_again |= was_done", "pair.is_asked_again |= false"],
        "-p carrack-service --lib worker::history",
    ),
    mutation(
        "a check that compared nothing succeeds",
        "crates/carrack-service/src/service/outcome.rs",
        ["None if self.task.request.kind == TaskKind::Check => {", "None if false => {"],
        "-p carrack-service --lib service::outcome",
    ),
    mutation(
        "a check leaves out NFSv4 lists",
        "crates/carrack-core/src/plan/check.rs",
        [
            "acl: self.kept.acls && (differs(AttributeKind::ACL) || differs(AttributeKind::NFS4_ACL)),\n            xattrs: (self.kept.has_xattrs() && differs(AttributeKind::EXTENDED))\n                || (self.kept.capabilities && differs(AttributeKind::CAPABILITIES)),\n            ..by_state",
            "acl: self.kept.acls && differs(AttributeKind::ACL),\n            xattrs: (self.kept.has_xattrs() && differs(AttributeKind::EXTENDED))\n                || (self.kept.capabilities && differs(AttributeKind::CAPABILITIES)),\n            ..by_state",
        ],
        "-p carrack-core --lib plan::check",
    ),
    mutation(
        "a receipt of a check forgets what was found before a kill",
        "crates/carrack-service/src/worker/receipts.rs",
        ["let cut = file.set_len(kept)", "let cut = file.set_len(0)"],
        "-p carrack --test system service::checks::check_goes_on",
    ),
];
