//! What the service and a file worker say to each other: the heads of frames. The two are one program, so this has no
//! version.

use serde::{Deserialize, Serialize};

use crate::model::{FileFailure, Verb};
use crate::worker::EndOrder;

/// What a file worker works on, and what it may do there. It holds secrets, so it goes to the worker's input alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesOrder {
    /// The endpoint's root, with all that is needed to reach it.
    pub end: EndOrder,
    /// Requests lead nowhere else: a path below the root, `/` for all of it.
    pub within: String,
    /// What requests may do: reading, writing, deleting.
    pub rights: Vec<Verb>,
}

/// From the service: one request, or the end of one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToWorker {
    /// The number of the request, which its answers have too. No two requests of one worker have the same.
    pub id: u64,
    /// What is asked for.
    pub ask: Ask,
}

/// To the service: part of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromWorker {
    /// The number of the request.
    pub id: u64,
    /// What is told.
    pub tell: Tell,
}

/// A request. Paths begin with `/`, at the endpoint's root, and stand as in [`crate::identity::ScopePath`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// Ends the request with this number. Nobody waits for its answer any more.
    Cancel,
    /// Makes a directory.
    MakeDirectory {
        /// The directory.
        path: String,
        /// With those above it; then one that exists is no failure.
        parents: bool,
    },
    /// Renames, without replacing a directory.
    Rename {
        /// What has the name.
        from: String,
        /// The new name.
        to: String,
        /// A file that has the new name is replaced; else that is a failure.
        replace: bool,
    },
    /// Describes what a path is, a link not followed. The answer's body is a [`crate::model::FileEntry`].
    Properties {
        /// The path.
        path: String,
    },
}

/// Part of an answer. The last part is [`Tell::Done`] or [`Tell::Failed`]. What an answer consists of is in the frame's
/// body: a document as JSON, or bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tell {
    /// More follows.
    Part,
    /// The request is carried out.
    Done,
    /// It is not.
    Failed {
        /// Why.
        failure: FileFailure,
    },
}
