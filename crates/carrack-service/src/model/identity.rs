//! Users, and the tokens that act for them.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::{text_schema, word_enum};
use crate::clock::Moment;

word_enum! {
    /// What a user may do.
    pub enum Role {
        Admin "admin" "everything, with everybody's tasks and endpoints"
        User "user" "submit tasks, use endpoints they have a right to, add their own"
        Viewer "viewer" "see their own tasks and the endpoints they have a right to"
    }
}

word_enum! {
    /// What a token may be used for.
    pub enum Verb {
        Read "read" "list, stat and copy from an endpoint"
        Write "write" "copy to an endpoint, make directories, rename"
        Delete "delete" "delete at an endpoint"
        Ownership "ownership" "with write: have owners, special bits and devices set at an endpoint that sets them"
        Tasks "tasks" "submit, change and cancel tasks and timers"
        View "view" "see tasks, endpoints, timers and events"
        Metrics "metrics" "read metrics"
        Admin "admin" "users, tokens of others, all endpoints, the service itself"
    }
}

/// Somebody who may use the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// Unique; letters, digits, `-`, `_`, `.` and `@`.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// The account of the service's host that is this user over the local socket.
    pub account: Option<u32>,
    /// Whether they may come in at all.
    pub enabled: bool,
    /// When they were added.
    pub added: Moment,
}

/// What a token allows. Everything that is not named is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scope {
    /// What it may be used for.
    pub verbs: Vec<Verb>,
    /// Only these endpoints; empty: all that its user may use. An earlier version wrote one, as `endpoint`.
    #[serde(alias = "endpoint", deserialize_with = "one_or_several", skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// Only this path of the one endpoint and what is below it, compared by component.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = text_schema::path_or_null)]
    pub path: Option<String>,
    /// How much it may be used for.
    pub ceilings: Ceilings,
}

impl Scope {
    /// Whether it is for some endpoints alone.
    pub fn is_placed(&self) -> bool {
        !self.endpoints.is_empty()
    }

    /// Whether it is for an endpoint of this name, among others.
    pub fn has_endpoint(&self, name: &str) -> bool {
        !self.is_placed() || self.endpoints.iter().any(|endpoint| endpoint == name)
    }

    /// The verbs among these that it lacks.
    pub fn lacks(&self, wanted: &[Verb]) -> Vec<Verb> {
        wanted.iter().copied().filter(|verb| !self.verbs.contains(verb)).collect()
    }
}

/// Names, where one may stand by itself.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        None,
        One(String),
        Several(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::None => Vec::new(),
        Names::One(name) => vec![name],
        Names::Several(names) => names,
    })
}

/// How much may be done with a token: by all its tasks and all its requests about files together, as far as it is not
/// time. What is left out is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ceilings {
    /// Files, links and directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Bytes of contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Items that are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// Seconds of one attempt of a task, and of one request about files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_seconds: Option<u64>,
}

impl Ceilings {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something is limited that is counted over all that a token does.
    pub fn are_counted(&self) -> bool {
        Self { run_seconds: None, ..*self } != Self::default()
    }

    /// What is left of them after so much.
    #[must_use]
    pub fn after(&self, used: &TokenUse) -> Self {
        let left = |most: Option<u64>, used| most.map(|most| most.saturating_sub(used));
        Self {
            entries: left(self.entries, used.entries),
            bytes: left(self.bytes, used.bytes),
            deletions: left(self.deletions, used.deletions),
            run_seconds: self.run_seconds,
        }
    }
}

/// What has been done by a token, as its ceilings count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUse {
    /// Files, links and directories that were made, or renamed.
    pub entries: u64,
    /// Bytes of contents that were moved, or read.
    pub bytes: u64,
    /// Items that were deleted.
    pub deletions: u64,
}

impl TokenUse {
    /// So many items that are made, and bytes that go with them.
    pub fn of(entries: u64, bytes: u64) -> Self {
        Self { entries, bytes, deletions: 0 }
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        Self {
            entries: self.entries.saturating_add(more.entries),
            bytes: self.bytes.saturating_add(more.bytes),
            deletions: self.deletions.saturating_add(more.deletions),
        }
    }

    /// What is more than `other`.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        Self {
            entries: self.entries.saturating_sub(other.entries),
            bytes: self.bytes.saturating_sub(other.bytes),
            deletions: self.deletions.saturating_sub(other.deletions),
        }
    }

    /// Whether any of these ceilings limits what this has.
    pub fn is_limited_by(&self, most: &Ceilings) -> bool {
        let limits = [(self.entries, most.entries), (self.bytes, most.bytes), (self.deletions, most.deletions)];
        limits.into_iter().any(|(used, most)| used > 0 && most.is_some())
    }

    /// The first ceiling that this is above, in words.
    pub fn over(&self, most: &Ceilings) -> Option<String> {
        let ceilings = [
            (self.entries, most.entries, "items"),
            (self.bytes, most.bytes, "bytes"),
            (self.deletions, most.deletions, "deletions"),
        ];
        let mut over = ceilings.into_iter().filter_map(|(used, most, what)| Some((used, most?, what)));
        over.find(|(used, most, _)| used > most).map(|(_, most, what)| format!("{most} {what}"))
    }
}

/// A token as the ledger knows it: never the secret, only its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRow {
    /// Identifier; part of the token, not secret.
    pub id: String,
    /// The user it acts for.
    pub user: String,
    /// What it is for, in its owner's words.
    pub label: String,
    /// What it allows; none: all that its user may do.
    pub scope: Option<Scope>,
    /// When it was made.
    pub made: Moment,
    /// When it ends.
    pub expires: Option<Moment>,
    /// When it was last shown, to the minute.
    pub used: Option<Moment>,
    /// Whether it is of a login, and so in a cookie or kept by `carrack login`.
    pub is_session: bool,
}
