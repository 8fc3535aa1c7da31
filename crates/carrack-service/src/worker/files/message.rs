//! What the service and a file worker say to each other: the heads of frames. The two are one program, so this has no
//! version.

use std::path::PathBuf;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::model::{FileFailure, SortField, Verb};
use crate::worker::EndOrder;

/// What a file worker works on, and what it may do there. It holds secrets, so it goes to the worker's input alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesOrder {
    /// The endpoint's name, by which failures call it.
    pub name: String,
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
    /// So many more parts of the answer to the request with this number are taken.
    Take {
        /// How many.
        parts: u64,
    },
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
    /// Begins to list a directory. The answer's body is a [`crate::model::ListingStatus`].
    OpenListing {
        /// What the listing is called from now on.
        listing: String,
        /// The directory.
        path: String,
    },
    /// Shows some entries of a listing. The answer's body is a [`crate::model::FileWindow`].
    Window {
        /// The listing.
        listing: String,
        /// Which entries.
        window: WindowAsk,
    },
    /// Shows names of a listing that was read, by name. The answer's body is lines of JSON, none behind the last name.
    Names {
        /// The listing.
        listing: String,
        /// As in a window.
        filter: String,
        /// As in a window.
        hidden: bool,
        /// How many names are passed over.
        offset: usize,
    },
    /// Drops a listing.
    CloseListing {
        /// The listing.
        listing: String,
    },
    /// Counts what paths take. Each part of the answer is a [`crate::model::DiskUsage`].
    Usage {
        /// The paths.
        paths: Vec<String>,
    },
    /// Digests a file. The answer's body is a [`crate::model::FileDigest`].
    Sum {
        /// The file.
        path: String,
    },
    /// Describes what a path is, a link not followed. The answer's body is a [`crate::model::FileEntry`].
    Properties {
        /// The path.
        path: String,
    },
    /// Reads a range of a file. The answer's first part is its [`ContentFacts`], the others are bytes; they come as
    /// [`Ask::Take`] allows.
    Content {
        /// The file.
        path: String,
        /// Which part of it.
        range: Range,
    },
    /// Keeps a block of an upload, the body of the request, once it is the block of its digest.
    PutBlock {
        /// The directory of the upload's spool.
        spool: PathBuf,
        /// Which block.
        block: u32,
        /// Where it begins in the file.
        offset: u64,
        /// Its SHA-256, in hexadecimal.
        digest: String,
    },
    /// Copies the file of a spool to the endpoint, and writes into the spool that it is there.
    Publish {
        /// The directory of the upload's spool.
        spool: PathBuf,
    },
    /// Names what a task has left at places, or removes it. The answer's body is a [`crate::model::TaskLeftovers`].
    Leftovers {
        /// Where.
        places: Vec<LeftAt>,
        /// Remove it.
        remove: bool,
    },
    /// Makes an archive. The answer's parts are its bytes; they come as [`Ask::Take`] allows.
    Archive {
        /// What is in it.
        paths: Vec<String>,
    },
}

/// A destination of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftAt {
    /// As the task was submitted with it.
    pub destination: String,
    /// Its path.
    pub path: String,
    /// Keys of the markers that the task has used there, in hexadecimal.
    pub markers: Vec<String>,
}

/// A range of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Where it begins.
    pub offset: u64,
    /// Its bytes; what lies behind the file's end is left out.
    pub length: u64,
    /// Only of the file that is known by this.
    pub identity: Option<[u8; 16]>,
}

/// What a file is that is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentFacts {
    /// Size in bytes.
    pub size: u64,
    /// When its content was last modified.
    pub modified: Option<Moment>,
    /// What this state of it is known by; none where nothing would tell that it has changed.
    pub identity: Option<[u8; 16]>,
}

impl ContentFacts {
    /// The entity tag of this state of the file, which is a strong one: what is known by the same has the same bytes.
    pub fn tag(&self) -> Option<String> {
        self.identity.map(|identity| format!("\"{}\"", HEXLOWER.encode(&identity)))
    }
}

/// Which entries of a listing are wanted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowAsk {
    /// The first one, of those that the filter takes.
    pub offset: usize,
    /// How many.
    pub limit: usize,
    /// By what they are sorted.
    pub field: SortField,
    /// The greatest first; directories stay first where they are.
    pub descending: bool,
    /// Names that have this in them, or that this pattern fits.
    pub filter: String,
    /// Also names that begin with a point.
    pub hidden: bool,
    /// The window stands around this name, in the place of `offset`.
    pub around: Option<String>,
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
