//! What a grant does not allow.

use super::{Mutation, mutation};

const CORE_GRANTS: &str = "-p carrack-core --lib grant::";
const GRANTS: &str = "-p carrack-engine --test hostile grants::";

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "a grant is believed whatever its MAC",
        "crates/carrack-core/src/grant.rs",
        ["if self.mac(&encoded) != blake3::Hash::from_bytes(mac) {", "if mac == [0; 32] {"],
        CORE_GRANTS,
    ),
    mutation(
        "a claim that is not known is passed over",
        "crates/carrack-core/src/grant.rs",
        ["if raw.encode_to_vec() != encoded {", "if raw.encode_to_vec().is_empty() {"],
        CORE_GRANTS,
    ),
    mutation(
        "a grant never expires",
        "crates/carrack-core/src/grant.rs",
        ["if now >= claims.expires {", "if now == 0 && claims.expires == 0 {"],
        CORE_GRANTS,
    ),
    mutation(
        "a session goes on when its grant has expired",
        "crates/carrack-engine/src/agent/grants.rs",
        ["if now() >= self.expires.load(Ordering::Relaxed) {", "if now() == self.claims.id.len() as u64 {"],
        GRANTS,
    ),
    mutation(
        "any later grant keeps a session going",
        "crates/carrack-engine/src/agent/grants.rs",
        ["said.push(u8::from(of_host));", "said = vec![u8::from(of_host)];"],
        GRANTS,
    ),
    mutation(
        "a node's own token opens the whole host",
        "crates/carrack-engine/src/agent/grants.rs",
        [
            "(opened, _) => (opened, None),",
            "(opened, host) => (opened, host.as_ref().map(|(_, top)| Arc::clone(top))),",
        ],
        GRANTS,
    ),
    mutation(
        "a grant covers names that begin alike",
        "crates/carrack-engine/src/storage/posix/place.rs",
        ["Some([b'/', rest @ ..]) => Ok(rest),", "Some(rest) => Ok(rest.strip_prefix(b\"/\").unwrap_or(rest)),"],
        GRANTS,
    ),
    mutation(
        "a path with dots is looked for below a grant",
        "crates/carrack-engine/src/storage/posix/place.rs",
        [
            "check_relative(plain).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;",
            "let _ = check_relative(plain);",
        ],
        GRANTS,
    ),
    mutation(
        "the path of a grant leads through links",
        "crates/carrack-engine/src/storage/posix/place.rs",
        [
            "rest => Ok((Arc::new(root.open_dir(prefix, Links::Refuse)?),",
            "rest => Ok((Arc::new(root.open_dir(prefix, Links::Beneath)?),",
        ],
        GRANTS,
    ),
    mutation(
        "the path of a grant is a link",
        "crates/carrack-engine/src/storage/posix/place.rs",
        [
            "if links == Links::Refuse && stat.kind == Kind::Symlink {",
            "if links == Links::Refuse && stat.kind == Kind::Fifo {",
        ],
        GRANTS,
    ),
    mutation(
        "a grant has every right",
        "crates/carrack-engine/src/agent/grants.rs",
        [
            "if self.claims.rights.allow(right) {",
            "if self.claims.rights.allow(right) || !self.claims.rights.is_empty() {",
        ],
        GRANTS,
    ),
    mutation(
        "a grant collects leftovers",
        "crates/carrack-engine/src/agent/grants.rs",
        ["Err(self.refuse(\"collect leftovers\"))", "Ok(drop(self.refuse(\"collect leftovers\")))"],
        GRANTS,
    ),
    mutation(
        "a grant measures the path to its node",
        "crates/carrack-engine/src/agent/begin.rs",
        [
            "return Err(grant.refuse(\"measure the path to the node\"));",
            "drop(grant.refuse(\"measure the path to the node\"));",
        ],
        GRANTS,
    ),
    mutation(
        "a ceiling limits nothing",
        "crates/carrack-engine/src/agent/grants.rs",
        [".filter(|sum| *sum <= most);", ";"],
        GRANTS,
    ),
    mutation(
        "each session has the ceilings of its grant for itself",
        "crates/carrack-engine/src/agent/grants.rs",
        ["Ok(Arc::clone(used))", "Ok(Arc::new(Used { began: used.began, ..Used::default() }))"],
        GRANTS,
    ),
    mutation(
        "a grant that has been revoked is taken",
        "crates/carrack-engine/src/agent/grants.rs",
        ["if self.revoked.contains(&self.claims.id) {", "if self.revoked.contains(&[0; 16]) {"],
        GRANTS,
    ),
    mutation(
        "a session whose grant is over goes on",
        "crates/carrack-engine/src/agent/grants.rs",
        ["return agent.end_session(why);", "return drop((why, agent));"],
        GRANTS,
    ),
    mutation(
        "a rename replaces without the right to delete",
        "crates/carrack-engine/src/agent/verbs.rs",
        ["replaces().map_err(named)?;\n            from_dir", "from_dir"],
        GRANTS,
    ),
];
