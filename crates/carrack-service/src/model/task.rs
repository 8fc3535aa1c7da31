//! A task: a managed transfer, accepted once, never lost, ended with a state for each item.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use carrack_core::growing::GrowingSources;
use carrack_core::options::AskedOptions;
use carrack_core::request::{Compare, InPlace, Verify};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{Ceilings, Estimate, InFlight, RunGuard, TaskPlan, TokenUse, option_schema, text_schema, word_enum};
use crate::clock::Moment;

word_enum! {
    /// What a task does.
    #[derive(Default)]
    pub enum TaskKind {
        #[default]
        Copy "copy" "copy files and trees"
        Move "move" "copy, verify, make durable, then delete the sources"
        Delete "delete" "delete files and trees"
        Check "check" "compare two trees or files, and change nothing"
    }
}

word_enum! {
    /// Where a task stands.
    pub enum TaskState {
        Queued "QUEUED" "waits for its turn, or for what blocks it to pass"
        /// Reserved.
        Staging "STAGING" "waits for files to come back from tape"
        Active "ACTIVE" "a worker carries it out"
        Paused "PAUSED" "waits until somebody resumes it"
        Cancelling "CANCELLING" "its worker has been told to end"
        Succeeded "SUCCEEDED" "every item is done and verified as asked"
        Partial "PARTIAL" "some items failed, all others are done; of a check: something differs, or could not be read"
        Failed "FAILED" "it ended before all items were tried, or no item is done"
        Cancelled "CANCELLED" "somebody ended it"
    }
}

word_enum! {
    /// An end of a task that is told about by the log and the events.
    pub enum Notice {
        Succeeded "succeeded" "every item is done"
        Failed "failed" "it ended before all items were tried, or no item is done"
        Partial "partial" "some items failed"
        Cancelled "cancelled" "a user ended it"
    }
}

word_enum! {
    /// By what tasks are sorted. Among equal ones the latest comes first.
    pub enum TaskSort {
        Created "created" "when they were submitted"
        State "state" "where they stand, in the order of their lives"
        Bytes "bytes" "bytes at the destination"
        Rate "rate" "bytes a second over all time in which bytes moved"
        Source "source" "where their first pair comes from"
        Destination "destination" "where their first pair goes"
        Ended "ended" "when they ended; those that have not come before all others"
    }
}

impl TaskState {
    /// Whether nothing more happens to it by itself.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Partial | Self::Failed | Self::Cancelled)
    }
}

/// From where to where. Locations are written as at the command line: `@NAME:/path`, `carrack://host/path#sha256:…`,
/// `ssh://user@host/path`, or, for the account that runs the service, an absolute path of its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// What is copied, moved or deleted.
    #[schema(schema_with = text_schema::location)]
    pub source: String,
    /// Where it goes; without meaning for a task that deletes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = text_schema::location_or_null)]
    pub destination: Option<String>,
}

/// How a task copies; what is left out is as at the command line. Words are those of the flags of the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskOptions(pub AskedOptions);

impl Deref for TaskOptions {
    type Target = AskedOptions;

    fn deref(&self) -> &AskedOptions {
        &self.0
    }
}

impl DerefMut for TaskOptions {
    fn deref_mut(&mut self) -> &mut AskedOptions {
        &mut self.0
    }
}

impl PartialSchema for TaskOptions {
    fn schema() -> RefOr<Schema> {
        option_schema::task_options().into()
    }
}

impl ToSchema for TaskOptions {
    fn name() -> Cow<'static, str> {
        "TaskOptions".into()
    }
}

impl TaskOptions {
    /// Whether the options go together in a task of this kind.
    ///
    /// # Errors
    /// The sentence that refuses them.
    pub fn check(&self, kind: TaskKind) -> Result<(), &'static str> {
        self.digests()?;
        self.references()?;
        self.renames()?;
        if kind == TaskKind::Check && self.compare == Some(Compare::Nothing) {
            return Err("a check compares something: size, size and time, or content");
        }
        let in_place = self.in_place()? != InPlace::Never;
        if in_place && (self.deletes() || kind != TaskKind::Copy) {
            return Err(
                "a task that deletes or moves writes nothing in place: while a file is written over, no side has it whole",
            );
        }
        if self.deletes() {
            if kind != TaskKind::Copy {
                return Err("only a task that copies can make its destination like its source");
            }
            if self.only.is_some() {
                return Err("with a list of paths nothing can be deleted: only the paths of the list are looked at");
            }
        }
        if kind != TaskKind::Copy && self.follows_links() {
            return Err("only a task that copies follows links: what they lead to is neither moved nor deleted");
        }
        if kind != TaskKind::Copy && self.references()?.is_some() {
            return Err("only a task that copies looks into other directories: a move deletes what it has brought");
        }
        if kind != TaskKind::Copy && self.growing == Some(GrowingSources::Follow) {
            return Err("only a task that copies follows files that grow: a move deletes what was listed");
        }
        if kind == TaskKind::Delete && (self.leaves_out() || self.keeps()) {
            return Err(
                "a task that deletes takes all that is below its paths: nothing is left out, and nothing is kept",
            );
        }
        if kind == TaskKind::Move && self.verify == Some(Verify::None) {
            return Err("a move deletes its sources: what arrived must be verified first");
        }
        Ok(())
    }
}

impl ItemState {
    /// Whether it is that of an item of the source.
    pub fn is_of_source(self) -> bool {
        !matches!(self, Self::Deleted | Self::ToDelete | Self::OnlyDestination)
    }

    /// Whether a check has found that both sides have not the same.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Different | Self::OnlySource | Self::OnlyDestination)
    }

    /// Whether it only tells of a plan.
    pub fn is_plan(self) -> bool {
        matches!(self, Self::Planned | Self::ToDelete)
    }

    /// Whether nothing is left to be done of an item of the source.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A task as somebody submits it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewTask {
    /// What it does.
    pub kind: TaskKind,
    /// From where to where; at least one.
    #[schema(min_items = 1, max_items = 10000)]
    pub pairs: Vec<Pair>,
    /// How it copies.
    pub options: TaskOptions,
    /// What its owner calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = text_schema::label)]
    pub label: Option<String>,
    /// When it fails, if it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
    /// 0 to 9; of one owner's tasks, higher ones go first. 4 where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "carrack_core::options::json::priority")]
    #[schema(schema_with = option_schema::priority)]
    pub priority: Option<u8>,
    /// Sources that are missing or may not be read do not keep the task from SUCCEEDED; they are told as skipped.
    #[serde(skip_serializing_if = "is_false")]
    pub skip_source_errors: bool,
    /// End at the first item that a quota refuses.
    #[serde(skip_serializing_if = "is_false")]
    pub fail_on_quota_errors: bool,
    /// Leave a signed receipt of each pair: `GET /tasks/{id}/receipt`. A copy, a move or a check.
    #[serde(skip_serializing_if = "is_false")]
    pub receipt: bool,
    /// BLAKE3 digests that files must have, in hexadecimal, by the path relative to the destination.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(schema_with = text_schema::digests)]
    pub expect_digests: BTreeMap<String, String>,
    /// Ends that are told about by the log and the events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<Notice>,
    /// Count and list what a copy would send and delete, and change nothing: `progress.plan` tells it.
    #[serde(skip_serializing_if = "is_false")]
    pub preview: bool,
    /// The timer that submitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<String>,
    /// What the timer's last run that succeeded has found, where its runs delete. The service sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<RunGuard>,
    /// The token with which it was submitted: where that is revoked, the task is cancelled. The service sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How much it may do, by that token. The service sets it.
    #[serde(skip_serializing_if = "Ceilings::is_none")]
    pub ceilings: Ceilings,
}

impl NewTask {
    /// Whether it deletes anything, at its sources or at its destination.
    pub fn deletes(&self) -> bool {
        !self.preview && (matches!(self.kind, TaskKind::Move | TaskKind::Delete) || self.options.deletes())
    }

    /// Whether it makes its destination like its source, and deletes there what the source has not.
    pub fn deletes_at_destination(&self) -> bool {
        self.kind == TaskKind::Copy && self.deletes()
    }
}

/// Grows with each attempt of a task. What an attempt with a smaller number still says is refused.
pub type Fence = u64;

/// A task as the service knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Identifier.
    pub id: String,
    /// Whoever submitted it: the user's name.
    pub owner: String,
    /// As it was submitted.
    pub request: NewTask,
    /// Where it stands.
    pub state: TaskState,
    /// Whether somebody has asked for it to wait. An ACTIVE task's worker is ended first.
    pub pause_wanted: bool,
    /// Whether somebody has asked for its end.
    pub cancel_wanted: bool,
    /// Why it waits, where it is QUEUED, or PAUSED by a guard.
    pub blocked: Option<Blocked>,
    /// Place in the queue, from 1, where it is QUEUED.
    pub position: Option<u64>,
    /// When it is expected to begin, where it is QUEUED and that can be told.
    pub expected_start: Option<Moment>,
    /// Attempts begun so far; the number of the attempt that may write.
    pub fence: Fence,
    /// Attempts in a row that got nowhere.
    pub futile_attempts: u32,
    /// What it has done.
    pub progress: Progress,
    /// The files in flight while a worker copies, at most 8: each stays at its place until it ends. Of one task alone:
    /// lists do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<InFlight>,
    /// What was expected of it, beside what it took. None: nothing was told so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Why it ended as it did, where it did not succeed.
    pub failure: Option<TaskFailure>,
    /// When it was submitted.
    pub submitted: Moment,
    /// When its first worker began.
    pub started: Option<Moment>,
    /// When it ended.
    pub ended: Option<Moment>,
    /// Grows with every change: the entity tag.
    pub version: u64,
}

word_enum! {
    /// Why a task waits.
    pub enum BlockedCause {
        Turn "turn" "others are before it"
        EndpointLimit "endpoint-limit" "an endpoint carries as many transfers as it may"
        PairLimit "pair-limit" "the pair of endpoints carries as many transfers as it may"
        WorkerLimit "worker-limit" "the service runs as many workers as it may"
        Retry "retry" "the last attempt failed; the next one comes later"
        Confirm "confirm" "the ledger was restored from a backup; what moves or deletes must be confirmed"
        Maintenance "maintenance" "the service takes on no work at present"
        Guard "guard" "a guard keeps the run of a timer from deleting; somebody looks at its plan, and resumes or cancels it"
        Timetable "timetable" "the endpoint's timetable allows no transfers at this hour"
        Drained "drained" "somebody has drained the endpoint: no transfer begins there"
    }
}

/// Why a task waits, and what follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Blocked {
    /// What kind of reason.
    pub cause: BlockedCause,
    /// In words.
    pub why: String,
    /// Since when.
    pub since: Moment,
    /// When the service tries next, where a time is set.
    pub next_try: Option<Moment>,
    /// What somebody can do about it.
    pub hint: Option<String>,
}

impl Task {
    /// What it has done so far, as the ceilings of its token count it.
    pub fn used(&self) -> TokenUse {
        let Progress { items_done, bytes_moved, items_lost, bytes_lost, bytes_resent, items_deleted, .. } =
            self.progress;
        let items = items_done.saturating_add(items_lost);
        let bytes = bytes_moved.saturating_add(bytes_lost).saturating_add(bytes_resent);
        match self.request.kind {
            TaskKind::Copy => TokenUse { deletions: items_deleted, ..TokenUse::of(items, bytes) },
            TaskKind::Move => TokenUse { deletions: items, ..TokenUse::of(items, bytes) },
            TaskKind::Delete => TokenUse { deletions: items, ..TokenUse::default() },
            // It changes nothing, and brings nothing anywhere.
            TaskKind::Check => TokenUse::default(),
        }
    }

    /// Whether a guard keeps it from going on, until somebody has looked at its plan.
    pub fn is_held(&self) -> bool {
        let cause = self.blocked.as_ref().map(|blocked| blocked.cause);
        self.state == TaskState::Paused && cause == Some(BlockedCause::Guard)
    }

    /// The token whose ceilings count what it does over all that the token does.
    pub fn counted_token(&self) -> Option<&str> {
        self.request.token.as_deref().filter(|_| self.request.ceilings.are_counted())
    }
}

/// What a task has done. Bytes are of files' contents.
// Journals have it, too, as they have the other types here with numbers: a number keeps its meaning.
#[derive(Clone, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Progress {
    /// Files, links and directories found so far; final once `scan_complete`.
    #[prost(uint64, tag = "1")]
    pub items_total: u64,
    /// At their destination (or deleted), verified as asked.
    #[prost(uint64, tag = "2")]
    pub items_done: u64,
    /// Of `items_done`, those that an earlier attempt did and that could not be compared with what is there now.
    #[prost(uint64, tag = "15")]
    pub items_remembered: u64,
    /// Left as they were: they existed, or a missing source was to be skipped.
    #[prost(uint64, tag = "3")]
    pub items_skipped: u64,
    /// Not there, of the attempt under way or the last one.
    #[prost(uint64, tag = "4")]
    pub items_failed: u64,
    /// Whether `items_total` and `bytes_total` are final.
    #[prost(bool, tag = "5")]
    pub scan_complete: bool,
    /// Bytes found so far.
    #[prost(uint64, tag = "6")]
    pub bytes_total: u64,
    /// Bytes at the destination.
    #[prost(uint64, tag = "7")]
    pub bytes_moved: u64,
    /// Of these, bytes whose digest was compared.
    #[prost(uint64, tag = "8")]
    pub bytes_verified: u64,
    /// Bytes that were there already and not sent.
    #[prost(uint64, tag = "9")]
    pub bytes_skipped: u64,
    /// Bytes that had landed and were sent again. What was under way when a process died is not known to anybody.
    #[prost(uint64, tag = "10")]
    pub bytes_resent: u64,
    /// Items that were done and were found gone or changed later: they are copied again, and counted again by a token's
    /// ceilings. Of a deletion under such ceilings: what an attempt that was cut short may have deleted.
    #[prost(uint64, tag = "17")]
    pub items_lost: u64,
    /// Bytes of `items_lost`.
    #[prost(uint64, tag = "18")]
    pub bytes_lost: u64,
    /// Items that were deleted at the destination, which alone had them.
    #[prost(uint64, tag = "19")]
    pub items_deleted: u64,
    /// Bytes of `items_deleted`.
    #[prost(uint64, tag = "20")]
    pub bytes_deleted: u64,
    /// Faults that were recovered: blocks sent again, connections and sessions lost.
    #[prost(uint64, tag = "11")]
    pub faults: u64,
    /// Bytes a second.
    #[prost(message, required, tag = "12")]
    pub rates: Rates,
    /// Seconds until the end, where it can be told.
    #[prost(uint64, optional, tag = "13")]
    pub eta_seconds: Option<u64>,
    /// What holds it back, in words.
    #[prost(string, optional, tag = "14")]
    pub limited_by: Option<String>,
    /// How many items at the destination did not keep something that their sources have, by what it is:
    /// `permissions`, `times`, `owner`, `group`, `special-bits`, `hard-link`, `acl`, `capabilities`,
    /// `extended-attributes`, `symbolic-link`, `directory`, or the number of another kind. Of copies that came to
    /// their end; an item that was copied again counts again.
    #[prost(btree_map = "string, uint64", tag = "16")]
    pub unkept: BTreeMap<String, u64>,
    /// Of a preview, what the task would do; of another task, what it would delete and did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[prost(message, optional, tag = "21")]
    pub plan: Option<TaskPlan>,
    /// By which the file system is known that the source stands on, where a timer's run deletes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "22")]
    pub source_file_system: Option<String>,
    /// Of a check, what was found so far. What is compared counts as done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[prost(message, optional, tag = "23")]
    pub check: Option<CheckTally>,
}

/// What a check has found.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CheckTally {
    /// Items that are the same at both sides.
    #[prost(uint64, tag = "1")]
    pub same: u64,
    /// Items that differ.
    #[prost(uint64, tag = "2")]
    pub different: u64,
    /// Items that only the source has.
    #[prost(uint64, tag = "3")]
    pub only_source: u64,
    /// Items that only the destination has.
    #[prost(uint64, tag = "4")]
    pub only_destination: u64,
    /// Bytes of the source's files that both sides have.
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
    /// Files whose times were to be compared, and of which one side has none.
    #[prost(uint64, tag = "6")]
    pub timeless: u64,
    /// Names of which it was not compared whether they are of one file: too many files have several names.
    #[prost(uint64, tag = "7")]
    pub unlinked: u64,
    /// Items with an ACL or extended attributes that were to be compared, and that are too long or could not be read.
    #[prost(uint64, tag = "8")]
    pub untold: u64,
}

impl CheckTally {
    /// Items that both sides have not the same.
    pub fn differences(&self) -> u64 {
        self.different.saturating_add(self.only_source).saturating_add(self.only_destination)
    }

    /// Items that were compared.
    pub fn compared(&self) -> u64 {
        self.same.saturating_add(self.differences())
    }

    /// Adds what was found of another pair.
    pub fn add(&mut self, more: &Self) {
        let fields = [
            (&mut self.same, more.same),
            (&mut self.different, more.different),
            (&mut self.only_source, more.only_source),
            (&mut self.only_destination, more.only_destination),
            (&mut self.bytes, more.bytes),
            (&mut self.timeless, more.timeless),
            (&mut self.unlinked, more.unlinked),
            (&mut self.untold, more.untold),
        ];
        fields.into_iter().for_each(|(field, more)| *field = field.saturating_add(more));
    }

    /// In words: `3 different, 1 only at the source`.
    pub fn words(&self) -> String {
        let parts = [
            (self.different, "different"),
            (self.only_source, "only at the source"),
            (self.only_destination, "only at the destination"),
        ];
        let parts: Vec<String> =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if parts.is_empty() { "no differences".to_owned() } else { parts.join(", ") }
    }
}

/// The code of the failure of a check that has found differences: the check itself is done.
pub const DIFFERENCES: &str = "differences";

/// Rates in bytes a second.
#[derive(Clone, Copy, PartialEq, prost::Message, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Rates {
    /// Over the last seconds.
    #[prost(double, tag = "1")]
    pub now: f64,
    /// Over the last five minutes.
    #[prost(double, tag = "2")]
    pub five_minutes: f64,
    /// Over all time in which a worker moved bytes.
    #[prost(double, tag = "3")]
    pub all: f64,
}

/// Why a task, or an attempt of it, failed: a [`carrack_core::failure::Failure`] as JSON has it.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize, ToSchema)]
pub struct TaskFailure {
    /// What kind, from the table of error codes; `differences` where a check is done and has found some.
    #[prost(string, tag = "1")]
    pub code: String,
    /// Where: `source`, `destination`, `command` …
    #[prost(string, tag = "2")]
    pub side: String,
    /// The endpoint where it happened; none: it happened at none, or elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[prost(string, optional, tag = "6")]
    pub endpoint: Option<String>,
    /// In words.
    #[prost(string, tag = "3")]
    pub why: String,
    /// Whether another attempt can help, though nobody changes anything.
    #[serde(with = "super::retryable")]
    #[schema(schema_with = super::retryable::schema)]
    #[prost(bool, tag = "4")]
    pub retryable: bool,
    /// What to try.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[prost(string, repeated, tag = "5")]
    pub hints: Vec<String>,
}

word_enum! {
    /// What became of an item.
    pub enum ItemState {
        Done "done" "at the destination, or deleted"
        Skipped "skipped" "left as it was"
        Failed "failed" "not there"
        Deleted "deleted" "deleted at the destination, which alone had it"
        Planned "planned" "would be copied: the task is a preview"
        ToDelete "to-delete" "only the destination has it, and it was not deleted"
        Different "different" "a check has found that it differs"
        OnlySource "only-source" "a check has found it at the source alone"
        OnlyDestination "only-destination" "a check has found it at the destination alone"
    }
}
