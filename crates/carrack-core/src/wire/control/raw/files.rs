//! The verbs of a file manager and what they answer, and the facts of a path.

use super::{Item, Source};
use crate::wire::values::{RawDigests, RawFailure};

/// Paths to inspect.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Paths {
    /// The paths as the user typed them, not yet resolved.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub paths: Vec<Vec<u8>>,
}

/// What paths are, in the order asked.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Inspected {
    /// The facts of each path, in the order of the request.
    #[prost(message, repeated, tag = "1")]
    pub facts: Vec<PathFacts>,
}

/// What a path is, links followed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PathFacts {
    /// `kind` numbers, 0 where nothing is.
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    /// Size in bytes.
    #[prost(uint64, tag = "2")]
    pub size: u64,
    /// The device it is on.
    #[prost(uint64, tag = "3")]
    pub device: u64,
    /// Its inode on that device.
    #[prost(uint64, tag = "4")]
    pub inode: u64,
    /// The path with links resolved; of something that is not there, that of its nearest existing directory and the
    /// rest. Of a node it begins at the root: where that is stays unsaid.
    #[prost(bytes = "vec", tag = "5")]
    pub resolved: Vec<u8>,
    /// Why it could not be looked at.
    #[prost(message, optional, tag = "6")]
    pub failure: Option<RawFailure>,
    /// Of a directory, what it lies in, the topmost first, and itself: digests of 16 bytes.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub lies_in: Vec<Vec<u8>>,
    /// Of a directory, itself and what is mounted below it, in the same words.
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub holds: Vec<Vec<u8>>,
    /// A directory where a mounted file system begins.
    #[prost(bool, tag = "9")]
    pub is_mount_top: bool,
    /// By which its file system is known: a digest of 16 bytes; empty where it does not tell.
    #[prost(bytes = "vec", tag = "10")]
    pub file_system: Vec<u8>,
}

/// List a directory, or describe a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct List {
    /// The path as the user typed it, not yet resolved.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Lists everything below as well.
    #[prost(bool, tag = "2")]
    pub recursive: bool,
    /// Describe the path itself, even when it is a directory.
    #[prost(bool, tag = "3")]
    pub itself: bool,
    /// The sources of a copy, up to the one of this path: what an earlier one has under the same name is told
    /// as a failure.
    #[prost(message, repeated, tag = "4")]
    pub sources: Vec<Source>,
    /// Tells `allocated` and `twin` of entries.
    #[prost(bool, tag = "5")]
    pub usage: bool,
    /// Tells `names` and `attributes` of entries.
    #[prost(bool, tag = "6")]
    pub details: bool,
    /// Tells `surveyed` and `attributes` of entries, in the order in which two trees are compared.
    #[prost(message, optional, tag = "7")]
    pub survey: Option<Survey>,
}

/// What a tree tells that is compared with another.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Survey {
    /// Digests of files, as in the options of a transfer; 0 for none.
    #[prost(uint32, tag = "1")]
    pub digests: u32,
    /// Attributes, as in the options of a transfer.
    #[prost(uint32, tag = "2")]
    pub kept: u32,
    /// Only what comes after this path; empty for everything.
    #[prost(bytes = "vec", tag = "3")]
    pub after: Vec<u8>,
}

/// A page of a listing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Page {
    /// At most [`crate::limits::PAGE_ENTRIES`].
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
}

/// One entry of a listing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    /// Relative to the listed directory.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// `kind` numbers.
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    /// Size in bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// Permission bits of the mode.
    #[prost(uint32, tag = "4")]
    pub mode: u32,
    /// When the content was last modified.
    #[prost(sint64, tag = "5")]
    pub mtime_seconds: i64,
    /// Nanoseconds of the modification time.
    #[prost(uint32, tag = "6")]
    pub mtime_nanos: u32,
    /// Of a symbolic link.
    #[prost(bytes = "vec", tag = "7")]
    pub link_target: Vec<u8>,
    /// Why it could not be read: then nothing else is known.
    #[prost(message, optional, tag = "8")]
    pub failure: Option<RawFailure>,
    /// Bytes of the storage that it takes, where that was asked for and is known.
    #[prost(uint64, optional, tag = "9")]
    pub allocated: Option<u64>,
    /// Of a file with several names: a number that all its names have and nothing else on this listing; 0 of others.
    #[prost(uint64, tag = "10")]
    pub twin: u64,
    /// Names that it has; 0 where nobody asked, or where that is not known.
    #[prost(uint32, tag = "11")]
    pub names: u32,
    /// A block of attributes, where that was asked for; extended ones without their values, unless it is surveyed.
    #[prost(bytes = "vec", tag = "12")]
    pub attributes: Vec<u8>,
    /// What a survey tells besides.
    #[prost(message, optional, boxed, tag = "13")]
    pub surveyed: Option<Box<Surveyed>>,
}

/// What a survey tells of an entry besides.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Surveyed {
    /// Digests of a file.
    #[prost(message, optional, tag = "1")]
    pub digests: Option<RawDigests>,
    /// It has no modification time.
    #[prost(bool, tag = "2")]
    pub timeless: bool,
    /// Its size or age, or where it leads, leaves it out.
    #[prost(bool, tag = "3")]
    pub left_out: bool,
    /// Of a FIFO, a socket or a device, which one: 9 bytes, or none.
    #[prost(bytes = "vec", tag = "4")]
    pub special: Vec<u8>,
    /// Of what has several names, which file it is, where names of one file are compared: its device,
    #[prost(uint64, tag = "5")]
    pub device: u64,
    /// and its inode; 0 of all others.
    #[prost(uint64, tag = "6")]
    pub inode: u64,
}

/// Make a directory.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MakeDirectory {
    /// The path as the user typed it, not yet resolved.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// And those above it; then one that exists is fine.
    #[prost(bool, tag = "2")]
    pub parents: bool,
}

/// Which path gets which name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Rename {
    /// The path that is renamed, as the user typed it.
    #[prost(bytes = "vec", tag = "1")]
    pub from: Vec<u8>,
    /// The new path, as the user typed it.
    #[prost(bytes = "vec", tag = "2")]
    pub to: Vec<u8>,
    /// To this very name, and only if nothing has it.
    #[prost(bool, tag = "3")]
    pub no_replace: bool,
}

/// Which path is removed, and how.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Remove {
    /// The path as the user typed it, not yet resolved.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// A directory with everything below it.
    #[prost(bool, tag = "2")]
    pub recursive: bool,
    /// What cannot be removed below it is told in pages, as entries with a failure, and the answer is how many
    /// were. Without that the first such failure is the answer; either way all is removed that can be.
    #[prost(bool, tag = "3")]
    pub go_on: bool,
    /// Of a directory, with everything below it, only directories in which nothing else is; not with `recursive`.
    #[prost(bool, tag = "4")]
    pub empty_only: bool,
    /// Only a file or a link that still is this.
    #[prost(message, optional, tag = "5")]
    pub unchanged: Option<Unchanged>,
}

/// What a file or a link was when it was looked at.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Unchanged {
    /// A file or a link.
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    /// Bytes of a file; 0 of a link.
    #[prost(uint64, tag = "2")]
    pub size: u64,
    /// When it was last modified: seconds since 1970.
    #[prost(sint64, tag = "3")]
    pub mtime_seconds: i64,
    /// And nanoseconds.
    #[prost(uint32, tag = "4")]
    pub mtime_nanos: u32,
}

/// Digests of files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sum {
    /// As typed; a directory stands for all files below it.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Which digests, as in the options of a transfer.
    #[prost(uint32, tag = "2")]
    pub digests: u32,
    /// A directory is refused.
    #[prost(bool, tag = "3")]
    pub one_file: bool,
}

/// Digests of some files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sums {
    /// In the order of the walk.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Item>,
}

/// Digests that files must have.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Expected {
    /// Each path once.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<ExpectedDigest>,
}

/// What is left out.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Filter {
    /// Rules in their order.
    #[prost(message, repeated, tag = "1")]
    pub rules: Vec<FilterRule>,
    /// What a plain rule leaves out is deleted.
    #[prost(bool, tag = "2")]
    pub deletes_excluded: bool,
    /// The least size of a file, in bytes.
    #[prost(uint64, optional, tag = "3")]
    pub size_min: Option<u64>,
    /// The greatest size.
    #[prost(uint64, optional, tag = "4")]
    pub size_max: Option<u64>,
    /// The earliest modification time, in seconds since 1970.
    #[prost(sint64, optional, tag = "5")]
    pub first_seconds: Option<i64>,
    /// And nanoseconds.
    #[prost(uint32, tag = "6")]
    pub first_nanos: u32,
    /// The latest modification time.
    #[prost(sint64, optional, tag = "7")]
    pub last_seconds: Option<i64>,
    /// And nanoseconds.
    #[prost(uint32, tag = "8")]
    pub last_nanos: u32,
    /// Directories where another file system begins are taken as empty.
    #[prost(bool, tag = "9")]
    pub one_file_system: bool,
    /// Where the destination keeps what it replaces.
    #[prost(message, optional, tag = "10")]
    pub backup: Option<super::RawBackup>,
    /// What becomes of symbolic links: 0 they are copied, 1 all are followed, 2 those to directories, 3 those that lead
    /// out, 4 those that lead out are left out.
    #[prost(uint32, tag = "11")]
    pub links: u32,
}

/// A rule of a filter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FilterRule {
    /// 0 with its kind before it, 1 a pattern to leave out, 2 one to take.
    #[prost(uint32, tag = "1")]
    pub form: u32,
    /// As it was written.
    #[prost(bytes = "vec", tag = "2")]
    pub line: Vec<u8>,
}

/// The digest that one file must have.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExpectedDigest {
    /// Relative to the destination.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// BLAKE3, 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub blake3: Vec<u8>,
}

/// Collect what transfers have left that will not be taken up again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Collect {
    /// As typed: a directory, searched with everything below.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Only what nothing has been written to for so many seconds.
    #[prost(uint64, tag = "2")]
    pub older_seconds: u64,
    /// Report what would be removed, and remove nothing.
    #[prost(bool, tag = "3")]
    pub dry_run: bool,
    /// Only what the copy with this marker key has left, whenever that was.
    #[prost(bytes = "vec", tag = "4")]
    pub marker: Vec<u8>,
}

/// A range of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Read {
    /// The path as the user typed it, not yet resolved.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Where the range begins.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Its bytes; what lies behind the file's end is left out.
    #[prost(uint64, tag = "3")]
    pub length: u64,
    /// Only if the file is still the one that was known by this: 16 bytes; empty for whatever is there.
    #[prost(bytes = "vec", tag = "4")]
    pub identity: Vec<u8>,
}

/// What a file is that is about to be read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Opened {
    /// Size in bytes.
    #[prost(uint64, tag = "1")]
    pub size: u64,
    /// When the content was last modified; absent where that is not known.
    #[prost(sint64, optional, tag = "2")]
    pub mtime_seconds: Option<i64>,
    /// Nanoseconds of the modification time.
    #[prost(uint32, tag = "3")]
    pub mtime_nanos: u32,
    /// What this state of the file is known by: 16 bytes; empty where nothing would tell that it has changed.
    #[prost(bytes = "vec", tag = "4")]
    pub identity: Vec<u8>,
}

/// Bytes of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Part {
    /// 1 to [`crate::limits::PART_BYTES`], each part right behind the one before.
    #[prost(bytes = "vec", tag = "1")]
    pub content: Vec<u8>,
}
