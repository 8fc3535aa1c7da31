//! What callers of the service may do, how much of it they may take, and what is looked at again.

use super::{Mutation, mutation};

const SHARES: &str = "-p carrack-service --lib api::shares";
const BODIES: &str = "-p carrack-service --lib api::tests::bodies";
const TOKENS: &str = "-p carrack-service --lib api::tests::tokens";
const CONFINED: &str = "-p carrack --test system service::confined";
const RIGHTS: &str = "-p carrack --test system service::rights";
const MATRIX: &str = "-p carrack-service --lib api::tests::matrix";
const ORDERS: &str = "-p carrack-service --lib service::orders";

pub(super) const MUTATIONS: &[Mutation] = &[
    mutation(
        "one caller holds all that there is",
        "crates/carrack-service/src/api/shares.rs",
        ["if own > left {", "if own > self.total {"],
        SHARES,
    ),
    mutation(
        "a large body is read before anybody looks who sends it",
        "crates/carrack-service/src/api/bodies.rs",
        ["declared.is_none_or(|length| length > SMALL_BYTES)", "declared.is_none_or(|length| length < SMALL_BYTES)"],
        BODIES,
    ),
    mutation(
        "a document says as much as it likes",
        "crates/carrack-service/src/api/bodies.rs",
        [".count() > VALUES_MAX", ".count() > usize::MAX - VALUES_MAX"],
        BODIES,
    ),
    mutation(
        "any header with credentials makes a request for another host right",
        "crates/carrack-service/src/api/host.rs",
        ["!is_open(method, path) && bearer(headers).is_some()", "headers.contains_key(header::AUTHORIZATION)"],
        "-p carrack-service --lib api::tests::hosts",
    ),
    mutation(
        "a token makes one that lasts longer",
        "crates/carrack-service/src/api/tokens.rs",
        ["ends_before && is_within", "(ends_before || is_within) && is_within"],
        TOKENS,
    ),
    mutation(
        "a scope is within a narrower one",
        "crates/carrack-service/src/identity/rules.rs",
        ["other.lacks(&scope.verbs).is_empty()", "(scope.verbs.is_empty() || at_place)"],
        "-p carrack-service --lib identity::rules",
    ),
    mutation(
        "a token with a scope makes logins",
        "crates/carrack-service/src/api/state.rs",
        ["if !caller.is_scoped() && (caller.via", "if caller.is_scoped() || (caller.via"],
        TOKENS,
    ),
    mutation(
        "an endpoint of this host stays open though its owner is no admin",
        "crates/carrack-service/src/api/state.rs",
        ["|| self.is_admin(&endpoint.owner)? {", "|| self.is_admin(&endpoint.owner).is_ok() {"],
        TOKENS,
    ),
    mutation(
        "tasks use an endpoint of this host though its owner is no admin",
        "crates/carrack-service/src/service/orders.rs",
        ["if !is_admins && endpoint.location.is_of_service() {", "if !is_admins && name.is_empty() {"],
        ORDERS,
    ),
    mutation(
        "a task reaches what its token is not for",
        "crates/carrack-service/src/service/orders.rs",
        ["let within = wanted.within.map(ScopePath::bytes);", "let within = None;"],
        ORDERS,
    ),
    mutation(
        "a viewer's tasks go on",
        "crates/carrack-service/src/service/orders.rs",
        [
            "Ok(row) if row.user.enabled && row.user.role == Role::Viewer",
            "Ok(row) if !row.user.enabled && row.user.role == Role::Viewer",
        ],
        ORDERS,
    ),
    mutation(
        "what a task may do is looked at once",
        "crates/carrack-service/src/service/orders.rs",
        ["self.check_again(task, &caller, scope)?;", "drop(self.check_again(task, &caller, scope));"],
        ORDERS,
    ),
    mutation(
        "each refusal of a stranger is a line of the audit",
        "crates/carrack-service/src/api/strangers.rs",
        ["now.saturating_sub(refusals.since) >= WINDOW", "now.saturating_sub(refusals.since) < WINDOW"],
        "-p carrack-service --lib api::strangers",
    ),
    mutation(
        "a crowd of networks guesses as often as it likes",
        "crates/carrack-service/src/identity/slow.rs",
        ["own.max(of_crowd)", "own.max(of_crowd.filter(|_| user.is_empty()))"],
        "-p carrack-service --lib identity::slow",
    ),
    mutation(
        "an address of this host that a translator makes of another is far",
        "crates/carrack-service/src/model/address.rs",
        ["|| translated(address).is_some_and(|inner| is_near(inner.into(), is_own))", ""],
        "-p carrack-service --lib model::address",
    ),
    mutation(
        "whatever address this host has itself is far",
        "crates/carrack-service/src/model/address.rs",
        ["is_special(address) || is_own(address) ||", "is_special(address) ||"],
        "-p carrack-service --lib model::address",
    ),
    mutation(
        "the address that was judged is not the one that is connected to",
        "crates/carrack-service/src/worker/ends.rs",
        [
            "opened.options.reach.node_address = Some(far_address(&node.host, node.port, side)?);",
            "far_address(&node.host, node.port, side)?;",
        ],
        "-p carrack-service --lib worker::ends",
    ),
    mutation(
        "a name is looked up again though its address was judged",
        "crates/carrack-engine/src/control/node_client.rs",
        ["Some(address) => address.to_string(),", "Some(_) => node.host.clone(),"],
        "-p carrack-engine --test hostile reading::node_whose_name",
    ),
    mutation(
        "an agent behind ssh is told of no root",
        "crates/carrack-service/src/worker/ends.rs",
        [
            "opened.options.confinement = Some(Confinement { root: root.clone(), within: Vec::new() });",
            "opened.location =\n                \
             end.location.with_path([root, end.location.path().unwrap_or_default()].concat());",
        ],
        CONFINED,
    ),
    mutation(
        "a token for a path reaches all of an endpoint behind ssh",
        "crates/carrack-engine/src/agent/greeting.rs",
        ["Ok(if kept.within.is_empty() {", "Ok(if !kept.root.is_empty() {"],
        CONFINED,
    ),
    mutation(
        "a task that runs goes on whatever has changed",
        "crates/carrack-service/src/service/dispatcher.rs",
        ["self.stop_disbarred(times);", ""],
        RIGHTS,
    ),
    mutation(
        "who may not use an endpoint any more keeps what is open",
        "crates/carrack-service/src/api/endpoints.rs",
        ["(all || !is_open_to(&key.user))", "all"],
        RIGHTS,
    ),
    mutation(
        "the storage of a closed endpoint is measured",
        "crates/carrack-service/src/api/bench.rs",
        ["api.check_open(&endpoint)?;", ""],
        MATRIX,
    ),
    mutation(
        "a task at a closed endpoint is accepted",
        "crates/carrack-service/src/api/submit.rs",
        ["self.check_open(&self.ledger.endpoint(name)?.endpoint)?;", ""],
        MATRIX,
    ),
    mutation(
        "who may read has a test write",
        "crates/carrack-service/src/api/endpoints.rs",
        ["![Verb::Write, Verb::Delete].into_iter().all(may_leave)", "false"],
        "-p carrack-service --lib api::tests::tasks",
    ),
    mutation(
        "any account of the host is its proxy",
        "crates/carrack-service/src/api/serve/account.rs",
        ["account.is_some_and(is_trusted)", "account.is_none_or(|_| true)"],
        "-p carrack-service --lib serve::account",
    ),
    mutation(
        "listings take what each may, all together",
        "crates/carrack-service/src/worker/files/rows.rs",
        ["self.all.load(Ordering::Relaxed) >= BYTES_MAX", "self.bytes >= BYTES_MAX"],
        "-p carrack-service --lib worker::files",
    ),
    mutation(
        "as many trees are read at once as anybody asks for",
        "crates/carrack-service/src/worker/files/gate.rs",
        ["while *inside >= self.most {", "while *inside > self.most + 100 {"],
        "-p carrack-service --lib worker::files::gate",
    ),
    mutation(
        "a follower of events whose role has changed goes on",
        "crates/carrack-service/src/api/state.rs",
        ["user.enabled && user.role == caller.role && row.expires", "user.enabled && row.expires"],
        RIGHTS,
    ),
    mutation(
        "a follower of events by the socket goes on whatever their role is",
        "crates/carrack-service/src/api/state.rs",
        [
            "let is_same = |user: &User| user.enabled && user.role == caller.role;",
            "let is_same = |user: &User| user.enabled;",
        ],
        "-p carrack-service --lib api::tests::events",
    ),
    mutation(
        "an agent need not say that it keeps to a root",
        "crates/carrack-engine/src/end/mod.rs",
        ["if self.is_confined != welcome.root.is_some()", "if !self.is_confined && welcome.root.is_some()"],
        "-p carrack-engine --test hostile reading::end_that_does_not",
    ),
    mutation(
        "a client moves a node's root",
        "crates/carrack-engine/src/agent/greeting.rs",
        ["place @ Place::Anywhere { .. } => {", "place => {"],
        "-p carrack-engine --test hostile command::greeting_moves",
    ),
    mutation(
        "root carries out a note of whoever owns its home",
        "crates/carrack/src/doctor/change.rs",
        ["carrack_sys::host::user_id() == 0 && !fix::is_roots_alone(&own)", "false"],
        "-p carrack --test system doctor::fix::root_carries_out",
    ),
    mutation(
        "a note that others may write is read",
        "crates/carrack/src/doctor/fix/machine.rs",
        ["if facts.uid() != carrack_sys::host::user_id() || facts.mode() & 0o022 != 0 {", "if false {"],
        "-p carrack --bin carrack doctor::fix::machine",
    ),
    mutation(
        "a note sets any parameter",
        "crates/carrack/src/doctor/fix/mod.rs",
        ["find(|(name, _)| !is_ours(name))", "find(|_| false)"],
        "-p carrack --bin carrack doctor::fix::tests::note_that",
    ),
    mutation(
        "transfers begin at a drained endpoint",
        "crates/carrack-service/src/service/dispatcher.rs",
        ["drained: drained.clone() })", "drained: None })"],
        "-p carrack --test system service::operation::drained",
    ),
    mutation(
        "programs that a worker starts gain rights",
        "crates/carrack-service/src/worker/yields.rs",
        ["set_no_new_privs(true)", "set_no_new_privs(false)"],
        "-p carrack-service --lib worker::yields",
    ),
    mutation(
        "each task of a token has the token's ceilings anew",
        "crates/carrack-service/src/service/orders.rs",
        ["ceilings: self.ceilings_left(task)?,", "ceilings: task.request.ceilings,"],
        ORDERS,
    ),
    mutation(
        "tasks of one token with ceilings run side by side",
        "crates/carrack-service/src/schedule/plan.rs",
        ["is_some_and(|token| self.tokens.contains(token))", "is_some_and(|_| false)"],
        "-p carrack-service --lib schedule::plan_tests",
    ),
    mutation(
        "what tasks do does not count for their token",
        "crates/carrack-service/src/ledger/tally.rs",
        ["filter(|_| more != TokenUse::default())", "filter(|_| false)"],
        "-p carrack-service --lib passes_the_suite",
    ),
    mutation(
        "ceilings of a token do not hold for files",
        "crates/carrack-service/src/api/state.rs",
        ["filter(|_| ceilings.are_counted())", "filter(|_| false)"],
        TOKENS,
    ),
    mutation(
        "a request about files takes longer than its token allows",
        "crates/carrack-service/src/files/pool.rs",
        ["self.worker.key.run_time.and_then(", "None::<Duration>.and_then("],
        "-p carrack-service --lib files::tests",
    ),
    mutation(
        "each pair of a task has the token's ceilings anew",
        "crates/carrack-service/src/worker/copying.rs",
        ["others.bytes_total, others.bytes_lost", "0, others.bytes_lost"],
        "-p carrack --test system worker::kinds::worker_takes",
    ),
    mutation(
        "a move deletes what its token may not",
        "crates/carrack-service/src/worker/copying.rs",
        ["filter(|_| *kind == TaskKind::Move || options.deletes())", "filter(|_| options.deletes())"],
        "-p carrack --test system worker::kinds::worker_takes",
    ),
    mutation(
        "what is copied again does not count for a token",
        "crates/carrack-service/src/worker/copying.rs",
        ["others.items_total, others.items_lost", "others.items_total, 0"],
        "-p carrack --test system worker::places::retry_copies_again",
    ),
    mutation(
        "a deletion that is cut short does not count for a token",
        "crates/carrack-service/src/worker/removal.rs",
        ["attempt.teller.begin_deleting(count);", "attempt.teller.begin_deleting(0);"],
        "-p carrack --test system worker::kinds::deletion_that",
    ),
    mutation(
        "a request takes what a task of its token takes at the time",
        "crates/carrack-service/src/ledger/sqlite/identity.rs",
        ["state IN ('ACTIVE', 'CANCELLING')", "state IN ('QUEUED')"],
        "-p carrack-service --lib passes_the_suite",
    ),
    mutation(
        "a token makes another that counts anew",
        "crates/carrack-service/src/api/tokens.rs",
        ["ends_before && is_within && !caller.ceilings().are_counted()", "ends_before && is_within"],
        TOKENS,
    ),
    mutation(
        "a request goes on for whoever reads it slowly",
        "crates/carrack-service/src/files/link.rs",
        ["told.ok().filter(|_| Instant::now() < until)", "told.ok()"],
        "-p carrack-service --lib files::tests",
    ),
    mutation(
        "a digest of a link reads more than its token allows",
        "crates/carrack-service/src/api/files/totals.rs",
        ["if kind != FileKind::File {", "if kind == FileKind::Directory {"],
        TOKENS,
    ),
    mutation(
        "a rename that a sandbox forbids is taken for one that the file forbids",
        "crates/carrack-sys/src/dir/mod.rs",
        [
            "!PORTABLE && !matches!(nothing(), Err(Errno::NOSYS | Errno::PERM))",
            "!PORTABLE && !matches!(nothing(), Err(Errno::NOSYS))",
        ],
        "-p carrack-faults --lib refused",
    ),
];
