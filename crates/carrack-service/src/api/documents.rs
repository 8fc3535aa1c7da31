//! The documents that callers send: how large each may be, and what a caller must be allowed at all before a large one
//! is read. A route cannot take a body that is not in this table.

use serde::de::DeserializeOwned;

use crate::identity::{Action, Object};
use crate::model::{
    EndpointUpdate, FileRename, LoginRequest, NewDirectory, NewEndpoint, NewGrant, NewListing, NewTask, NewTimer,
    NewToken, NewUpload, NewUser, PasswordChange, SumRequest, TaskActs, TaskClone, TaskRetry, TaskUpdate, TimerUpdate,
    UsageRequest, UserUpdate, Verb,
};

/// A document that is not larger is read for everybody who is known; the handler then says all that is in its way.
pub(super) const SMALL_BYTES: usize = 256 << 10;
/// From a stranger: a name and a password, or a link.
const LOGIN_BYTES: usize = 4 << 10;
/// A task with ten thousand pairs.
pub(super) const TASK_BYTES: usize = 16 << 20;
/// A document takes its text, and what it says beside it.
pub(super) const DOCUMENT_FACTOR: usize = 4;
/// For all bodies, with what is made of them: one of the longest tasks, and 16 MiB for others.
pub(super) const BODIES_BUDGET: usize = 2 * DOCUMENT_FACTOR * TASK_BYTES + (16 << 20);
/// Ten thousand paths, or the digests of the blocks of a large file.
const LIST_BYTES: usize = 4 << 20;

/// A body of JSON that a route takes.
pub(super) trait Document: DeserializeOwned {
    /// How long it may be.
    const BYTES: usize = SMALL_BYTES;
    /// What the caller's role and token must allow somewhere, if it is larger than [`SMALL_BYTES`].
    const ACTION: Option<Action<'static>> = None;
}

const fn to(verb: Verb) -> Option<Action<'static>> {
    Some(Action { verb, object: Object::Nothing })
}

impl Document for LoginRequest {
    const BYTES: usize = LOGIN_BYTES;
}

impl Document for NewTask {
    const BYTES: usize = TASK_BYTES;
    const ACTION: Option<Action<'static>> = to(Verb::Tasks);
}

impl Document for NewTimer {
    const BYTES: usize = TASK_BYTES;
    const ACTION: Option<Action<'static>> = to(Verb::Tasks);
}

impl Document for TimerUpdate {
    const BYTES: usize = TASK_BYTES;
    const ACTION: Option<Action<'static>> = to(Verb::Tasks);
}

impl Document for NewUpload {
    const BYTES: usize = LIST_BYTES;
    const ACTION: Option<Action<'static>> = to(Verb::Write);
}

impl Document for UsageRequest {
    const BYTES: usize = LIST_BYTES;
    const ACTION: Option<Action<'static>> = to(Verb::Read);
}

impl Document for EndpointUpdate {}
impl Document for FileRename {}
impl Document for NewDirectory {}
impl Document for NewEndpoint {}
impl Document for NewGrant {}
impl Document for NewListing {}
impl Document for NewToken {}
impl Document for NewUser {}
impl Document for PasswordChange {}
impl Document for SumRequest {}
impl Document for TaskActs {}
impl Document for TaskClone {}
impl Document for TaskRetry {}
impl Document for TaskUpdate {}
impl Document for UserUpdate {}
