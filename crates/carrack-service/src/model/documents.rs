//! What the API takes and answers beside the rows themselves.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::{
    EndpointDefaults, EndpointLimits, EndpointLocation, Estimate, ItemState, NewTask, Problem, Role, Scope, Secret,
    Task, TaskFailure, TaskState, TimerSchedule, TokenRow, Verb, option_schema, text_schema, word_enum,
};
use crate::clock::Moment;

/// A field that may be left out, be null, or have a value: these are three different things.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Listed<T> {
    /// The rows of this page.
    pub items: Vec<T>,
    /// Where the next page begins: the value of `cursor` that brings it. None: this page is the last.
    pub next: Option<String>,
}

/// How many tasks something was done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskCount {
    /// So many.
    pub tasks: u64,
}

/// What became of a submission that was only tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    /// The task would be accepted.
    pub valid: bool,
    /// When it would begin at the earliest; where that can be told.
    #[serde(default)]
    pub earliest_start: Option<Moment>,
    /// When it would begin at the latest, by the tasks that wait; where that can be told.
    pub expected_start: Option<Moment>,
    /// How long it would take at least, as a rule; where that can be told.
    #[serde(default)]
    pub expected_seconds_least: Option<u64>,
    /// How long it would take at most, as a rule: three times the least and three, or less.
    #[serde(default)]
    pub expected_seconds_most: Option<u64>,
    /// From what that is known, or why it is not.
    pub why: String,
}

impl DryRun {
    /// What would be told of a task that would be accepted.
    pub fn of(estimate: Estimate) -> Self {
        Self {
            valid: true,
            earliest_start: estimate.earliest_start,
            expected_start: estimate.latest_start,
            expected_seconds_least: estimate.seconds_least,
            expected_seconds_most: estimate.seconds_most,
            why: estimate.why,
        }
    }
}

/// One thing that a test of an endpoint has looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointCheck {
    /// What was looked at.
    pub name: String,
    /// Whether it is as it should be; none: it could not be looked at, or the endpoint can be used all the same.
    pub ok: Option<bool>,
    /// What was found.
    pub told: String,
    /// The line that mends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What a test of an endpoint has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointTest {
    /// Whether all is as it should be.
    pub ok: bool,
    /// What was looked at.
    pub checks: Vec<EndpointCheck>,
}

/// What somebody wants to do at an endpoint's node by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// `read`, `write`, `delete`.
    pub verbs: Vec<Verb>,
    /// Where, below the endpoint's root; begins with `/`.
    #[schema(schema_with = text_schema::path)]
    pub path: String,
    /// For how long, 1 to 600; ten minutes, where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// What lets somebody do it: a place, and a token for it that allows nothing else. This is the only time that it is
/// shown. Whoever shows the node a later one that says the same keeps sessions with the earlier one going.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MadeGrant {
    /// The path at its node, `carrack://host:port/path#sha256:…`; or `ssh://user@host/path`.
    pub location: String,
    /// What to show the node as its token; none for a host behind ssh.
    #[schema(value_type = Option<String>)]
    pub token: Option<Secret>,
    /// The node is on the service's own host: whoever reached the service under another name reaches it under that one.
    pub at_service: bool,
    /// When it ends.
    pub expires: Moment,
}

/// What changes about a task; what is left out stays, null takes it away.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskUpdate {
    /// What its owner calls it.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = text_schema::label)]
    pub label: Option<Option<String>>,
    /// When it fails, if it has not ended.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Moment>)]
    pub deadline: Option<Option<Moment>>,
    /// 0 to 9.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "carrack_core::options::json::priority")]
    #[schema(schema_with = option_schema::priority)]
    pub priority: Option<u8>,
}

/// How a task that has ended is tried again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskRetry {
    /// When it fails, if it has not ended; null: never. What is left out stays, and a deadline that has passed is
    /// refused.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Moment>)]
    pub deadline: Option<Option<Moment>>,
    /// Read what counts as done at the destination once more, and compare its digests: kind, size and modification
    /// time are always compared.
    pub recheck: bool,
}

/// What is different about a task that is submitted once more.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskClone {
    /// When it fails, if it has not ended; null: never. Where it is left out, that of the first stays; one that has
    /// passed is refused.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Moment>)]
    pub deadline: Option<Option<Moment>>,
    /// Of a preview: do what it has planned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
}

word_enum! {
    /// What is done to tasks that exist.
    pub enum TaskAct {
        Pause "pause" "have them wait"
        Resume "resume" "have them go on"
        Retry "retry" "try again what failed"
        Cancel "cancel" "end them"
    }
}

/// Which tasks an act is for, in the words of the list of tasks. A task has to have all that is named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskSelection {
    /// All of them, where nothing else is named.
    pub all: bool,
    /// In one of these states; those that the act can be done to, where none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<TaskState>,
    /// Whose label contains this, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// That use this endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Whose first pair comes from this endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whose first pair goes to this endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Of this user; `*` for every user; one's own, where it is left out. Others than oneself for admins alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Of this timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<String>,
    /// That failed with this error code, or wait for this cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Submitted at this moment or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// Submitted before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Moment>,
    /// Whose label, identifier or a path of which contains this, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
}

/// The same act on many tasks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskActs {
    /// What is done.
    pub act: TaskAct,
    /// To which tasks.
    pub filter: TaskSelection,
    /// Tell which tasks they are, and do nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// With `retry`: when they fail, if they have not ended; null: never.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Moment>)]
    pub deadline: Option<Option<Moment>>,
    /// With `retry`: compare digests of what counts as done.
    #[serde(default)]
    pub recheck: bool,
    /// Tasks at a time, 1 to 1000; 100 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// The `next` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// What became of many tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskActed {
    /// So many are meant, of this page.
    pub tasks: u64,
    /// To so many of them it was done.
    pub done: u64,
    /// Each of them.
    pub items: Vec<ActedTask>,
    /// Where the next page begins: the value of `cursor` that goes on. None: this page is the last.
    pub next: Option<String>,
}

/// What became of one of many tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActedTask {
    /// The task.
    pub id: String,
    /// Whoever submitted it.
    pub owner: String,
    /// What its owner calls it.
    pub label: Option<String>,
    /// Where it stands now.
    pub state: TaskState,
    /// Why it was not done; none: it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Problem>,
}

impl ActedTask {
    /// Of a task as it is now.
    pub fn of(task: &Task, why: Option<Problem>) -> Self {
        let Task { id, owner, request, state, .. } = task;
        Self { id: id.clone(), owner: owner.clone(), label: request.label.clone(), state: *state, why }
    }
}

/// What became of one item of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskItem {
    /// The pair of the task that it is of, from 0.
    pub pair: u32,
    /// Relative to the destination (to the source, where a task deletes). All of a pair's source, such as one that is
    /// missing, has that source's whole path. Bytes that are no UTF-8 are written `\xHH`, a backslash `\\`.
    pub path: String,
    /// `file`, `directory`, `symlink` or `special`.
    pub kind: String,
    /// What became of it.
    pub state: ItemState,
    /// Bytes of content.
    pub size: u64,
    /// BLAKE3 of the file, in hexadecimal, as the receiver computed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
    /// Of an item that a check has found to be different, in what: `type`, `size`, `time`, `content`, `target` (where a
    /// link leads), `device`, `mode`, `owner`, `group`, `acl`, `xattrs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// An endpoint to be added.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEndpoint {
    /// What it is called: letters, digits, `-`, `_` and `.`; unique.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub name: String,
    /// Where its root is.
    pub location: EndpointLocation,
    /// Nothing there may be changed.
    #[serde(default)]
    pub read_only: bool,
    /// Files may be uploaded to it through the service.
    #[serde(default)]
    pub uploads: bool,
    /// Owners, special bits and devices that a task keeps are set there, where its node or the service may. Only an
    /// admin allows it: whoever may write there can make programs that run as others.
    #[serde(default)]
    pub ownership: bool,
    /// What it allows.
    #[serde(default)]
    pub limits: EndpointLimits,
    /// What its tasks do where they do not say it.
    #[serde(default)]
    pub defaults: EndpointDefaults,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Users who may use it beside its owner; `*` stands for every user.
    #[serde(default)]
    pub users: Vec<String>,
    /// The node's token. It is sealed at once, and no document shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
}

/// What changes about an endpoint; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointUpdate {
    /// Where its root is. A token that is kept goes, unless one comes with it: it was for the place before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<EndpointLocation>,
    /// Nothing there may be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Files may be uploaded to it through the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploads: Option<bool>,
    /// Owners, special bits and devices that a task keeps are set there, where its node or the service may. Only an
    /// admin allows it: whoever may write there can make programs that run as others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ownership: Option<bool>,
    /// What it allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<EndpointLimits>,
    /// What its tasks do where they do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<EndpointDefaults>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Users who may use it beside its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    /// Who owns it from now on; for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The node's token; null takes it away.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Secret>)]
    pub token: Option<Option<Secret>>,
}

/// A timer to be made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTimer {
    /// What its owner calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it runs.
    pub schedule: TimerSchedule,
    /// What it submits.
    pub task: NewTask,
}

/// A change of a timer. What is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimerUpdate {
    /// What its owner calls it; null: nothing.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Option<String>>,
    /// When it runs. Its runs so far count on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<TimerSchedule>,
    /// What it submits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<NewTask>,
}

/// A user to be added.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Unique; letters, digits, `-`, `_`, `.` and `@`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@-]*$")]
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// The account of the service's host that is this user over the local socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<u32>,
    /// A password to log in with; none: only tokens and the account let them in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

/// What changes about a user; what is left out stays, null takes it away.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserUpdate {
    /// What they may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The account of the service's host that is this user over the local socket.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub account: Option<Option<u32>>,
    /// Whether they may come in at all. Whatever they have running is cancelled where they may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The new password.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Secret>)]
    pub password: Option<Option<Secret>>,
}

/// A token to be made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewToken {
    /// The user it acts for; the caller, where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What it is for.
    pub label: String,
    /// What it allows; all that its user may do, where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// When it ends; never, where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
}

/// A token that was made. This is the only time that it is shown.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// What to show as `Authorization: Bearer …`.
    #[schema(value_type = String)]
    pub token: Secret,
    /// What the service keeps of it.
    pub row: TokenRow,
}

/// Who logs in: with a name and a password, or with a link that the service printed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoginRequest {
    /// The user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Their password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// What stands behind `login=` in a login link; it works once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Secret>,
    /// Keep the session in a cookie, as browsers do; else its token is in the answer.
    pub cookie: bool,
}

/// A login that worked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// What they may do.
    pub role: Role,
    /// When the session ends.
    pub expires: Moment,
    /// The session's token, where it is not in a cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub token: Option<Secret>,
    /// The value of the header `X-Carrack-Csrf` that changes need beside the cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
}

/// Another password for oneself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The one until now; not needed where there is none, or over the local socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Secret>,
    /// The new one: 10 to 1024 characters.
    pub new: Secret,
}

/// A way in that works once, within a few minutes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoginLink {
    /// Whom it logs in.
    pub user: String,
    /// The service's address with the secret behind its `#`, so that no server's log has it. `carrack login --link`
    /// takes it.
    #[schema(value_type = String)]
    pub link: Secret,
    /// When it ends.
    pub expires: Moment,
}

word_enum! {
    /// By what a caller is known.
    pub enum KnownBy {
        Socket "socket" "the account of a process of this host"
        Token "token" "a token"
        Session "session" "a login"
    }
}

/// The key with which a service signs receipts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptSigner {
    /// As OpenSSH writes public keys.
    pub key: String,
    /// As `ssh-keygen -l` shows it.
    pub fingerprint: String,
}

/// Who the caller is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    /// The user's name.
    pub user: String,
    /// What they may do.
    pub role: Role,
    /// By what they are known.
    pub via: KnownBy,
    /// What the token allows; none: all that the user may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The token or the session, as `GET /tokens` lists it; none: it is the local socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// When token or session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    /// The value of the header `X-Carrack-Csrf` that changes need beside the cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
    /// The service's version.
    pub service: String,
}
