//! Attributes that give privileges, and those that are to be the same.

use super::{Mutation, mutation};

const OWNERSHIP: &str = "-p carrack --test system ownership::";
const FIDELITY: &str = "-p carrack --test system fidelity::";
const GIVING: &str = "-p carrack-engine --lib storage::giving::";
const FURTHER_NAMES: &str = "-p carrack-core --lib further_names::";
const HARD_LINKS: &str = "-p carrack --test system hard_links::";
const TOP: &str = "-p carrack --test system top::";
const FAKE_SUPER: &str = "-p carrack --test system fake_super::";
const NFS4: &str = "-p carrack --test system further_attributes::";
const ENDPOINT: &str = "-p carrack --test system endpoint::owners::";
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
        ["let gives = may && (is_free || self.environment.gives_ownership);", "let gives = true;"],
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
        ["self.gives() && gets_rights || changes_others && (differs || lacks.any())", "self.gives() && gets_rights"],
        GIVING,
    ),
    mutation(
        "other names become links to a file that has taken the place of theirs",
        "crates/carrack-core/src/transfer/sender/groups.rs",
        ["if found.file == Some(file) {", "if true {"],
        FURTHER_NAMES,
    ),
    mutation(
        "names become links to what stayed as it was",
        "crates/carrack-core/src/transfer/sender/groups.rs",
        [
            "if !matches!(outcome, Outcome::Published | Outcome::Same | Outcome::Planned) {",
            "if !matches!(outcome, Outcome::Published | Outcome::Same | Outcome::Planned | Outcome::Kept) {",
        ],
        FURTHER_NAMES,
    ),
    mutation(
        "names wait in memory without a bound",
        "crates/carrack-core/src/transfer/sender/groups.rs",
        ["self.waiting < Self::WAITING", "true"],
        FURTHER_NAMES,
    ),
    mutation(
        "what no link can be made of is linked again for ever",
        "crates/carrack-core/src/transfer/sender/groups.rs",
        ["is_some_and(|there| there.paths != tried.paths);", "is_some();"],
        FURTHER_NAMES,
    ),
    mutation(
        "a name of what has changed is linked to what was sent",
        "crates/carrack-core/src/transfer/sender/groups.rs",
        ["take_if(|_| self.state != state)", "take_if(|_| false)"],
        FURTHER_NAMES,
    ),
    mutation(
        "a link is made of whatever has the name by now",
        "crates/carrack-engine/src/storage/posix/tree/further_names.rs",
        ["into_iter().filter(|(_, stat)| is_it(stat))", "into_iter()"],
        HARD_LINKS,
    ),
    mutation(
        "what was moved is gone by names that nobody proved",
        "crates/carrack-core/src/transfer/sender/ends.rs",
        ["Some(names)) => names.is_proven,", "Some(_)) => true,"],
        HARD_LINKS,
    ),
    mutation(
        "a killed copy sends files again that have got names since",
        "crates/carrack-engine/src/storage/posix/tree/further_names.rs",
        ["let first_name = Some(join(of_parent, of_name));", "let first_name = None;"],
        HARD_LINKS,
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
        "crates/carrack-engine/src/storage/posix/giving.rs",
        [
            "        let (owner, group) = self.give_owners_to(getting, others, born)?;\n",
            "        self.give_mode(getting, mode & 0o7777, others)?;\n        let (owner, group) = self.give_owners_to(getting, others, born)?;\n",
        ],
        OWNERSHIP,
    ),
    mutation(
        "a program that nobody has looked at gets capabilities",
        "crates/carrack-engine/src/storage/giving.rs",
        ["runs_otherwise || self.kept.capabilities && has_capabilities && lacks.capabilities;", "runs_otherwise;"],
        GIVING,
    ),
    mutation(
        "a list that was inherited stays",
        "crates/carrack-engine/src/storage/posix/giving.rs",
        ["if !is_set && there.map_or(true, |there| there.is_some()) {", "if !is_set && false {"],
        FIDELITY,
    ),
    mutation(
        "permissions give what a list that cannot be kept denies",
        "crates/carrack-engine/src/storage/posix/giving.rs",
        ["mode = if is_set { mode } else { lists.narrowed(mode) };", ""],
        FIDELITY,
    ),
    mutation(
        "values that the source has no more stay",
        "crates/carrack-engine/src/storage/posix/giving.rs",
        ["                if_kept(getting.remove_extended(name))?;\n", ""],
        FIDELITY,
    ),
    mutation(
        "what new files inherit stays although the source has none",
        "crates/carrack-engine/src/storage/posix/giving.rs",
        ["                if_kept(getting.remove_extended(DEFAULT))?;\n", ""],
        FIDELITY,
    ),
    mutation(
        "a peer names any extended attribute",
        "crates/carrack-core/src/attributes/extended.rs",
        ["        is_plain && !INTERNAL", "        is_plain || !INTERNAL"],
        "-p carrack-core --lib attributes::extended::",
    ),
    mutation(
        "capabilities are no privilege",
        "crates/carrack-core/src/attributes/kept.rs",
        ["access_times, ..Self::NONE }", "access_times, capabilities: self.capabilities, ..Self::NONE }"],
        "-p carrack-core --lib attributes::kept::",
    ),
    mutation(
        "what is compared is not listed",
        "crates/carrack-engine/src/storage/posix/walk.rs",
        ["stat.size <= LISTED_ABOVE && !telling.lists_all();", "stat.size <= LISTED_ABOVE;"],
        FIDELITY,
    ),
    mutation(
        "a list that is not known leaves the permissions as they are",
        "crates/carrack-engine/src/storage/giving.rs",
        ["            None => mode & 0o7700,\n", "            None => mode,\n"],
        "-p carrack-engine --lib storage::posix::giving::",
    ),
    mutation(
        "what is renamed is looked for at its new name",
        "crates/carrack-engine/src/transfer/receive/comparing.rs",
        [
            "self.is_as_wanted(&rules, &item, (&found, &path));",
            "self.is_as_wanted(&rules, &item, (&found, &item.path));",
        ],
        FIDELITY,
    ),
    mutation(
        "what does not travel is taken away",
        "crates/carrack-engine/src/storage/posix/giving.rs",
        ["let has_to_stay = |name: &[u8]| wanted.are_cut || ", "let has_to_stay = |name: &[u8]| "],
        FIDELITY,
    ),
    mutation(
        "programs of reference directories get capabilities unread",
        "crates/carrack-engine/src/transfer/receive/referring.rs",
        ["Judgment::Same if self.makes_anew(item, &self.found_item(item, (&found, &item.path)), false) => {}\n", ""],
        FIDELITY,
    ),
    mutation(
        "a part that is taken up keeps its permissions",
        "crates/carrack-engine/src/storage/posix/tree/resume.rs",
        ["if stat.mode & 0o7777 != 0o600 {", "if false {"],
        "-p carrack-engine --lib storage::posix::tree::tests::parts",
    ),
    mutation(
        "zeros are not written over what was there",
        "crates/carrack-engine/src/storage/posix/part.rs",
        ["(true, true) => file::zero(&self.file, at, length),", "(true, true) => Ok(()),"],
        "-p carrack-engine --lib storage::posix::tree::tests::",
    ),
    mutation(
        "a destination that was there becomes as its source is",
        "crates/carrack-engine/src/storage/posix/store.rs",
        ["let keeps = keeps && !options.top_attributes;", "let keeps = keeps && false;"],
        TOP,
    ),
    mutation(
        "everybody comes into a destination before it has its permissions",
        "crates/carrack-engine/src/storage/posix/top.rs",
        ["pub const CLOSED: u32 = 0o700;", "pub const CLOSED: u32 = 0o755;"],
        TOP,
    ),
    mutation(
        "a later session does not know that the copy made its destination",
        "crates/carrack-engine/src/storage/posix/store.rs",
        ["let top = top.filter(|_| !tree.made_top());", ""],
        TOP,
    ),
    mutation(
        "what is written down does not count at the destination",
        "crates/carrack-engine/src/storage/posix/faked.rs",
        ["if self.fakes() { shown(stat, holder) } else { stat }", "stat"],
        FAKE_SUPER,
    ),
    mutation(
        "a list of NFS that names somebody is none",
        "crates/carrack-core/src/attributes/nfs4.rs",
        ["entry.flags & INHERITED == 0 && is_of_mode(entry.who);", "entry.flags & INHERITED == 0;"],
        "-p carrack-core --lib attributes::nfs4::",
    ),
    mutation(
        "permissions give what a list of NFS that cannot be kept may deny",
        "crates/carrack-engine/src/storage/giving.rs",
        ["_ if nfs4.is_some_and(names) => mode & 0o7700,", ""],
        NFS4,
    ),
    mutation(
        "reading its source changes an access time that is kept",
        "crates/carrack-engine/src/storage/posix/source.rs",
        ["file::keep_access_time(&file);", ""],
        NFS4,
    ),
    mutation(
        "a grant without that right gives ownership",
        "crates/carrack-engine/src/agent/begin.rs",
        ["grant.check_right(Right::Ownership).is_ok()", "grant.check_right(Right::Write).is_ok()"],
        ENDPOINT,
    ),
    mutation(
        "an endpoint sets owners that no admin has allowed",
        "crates/carrack-service/src/service/orders.rs",
        ["let ownership = endpoint.ownership && wanted.rights", "let ownership = wanted.rights"],
        ENDPOINT,
    ),
];
