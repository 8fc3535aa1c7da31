//! What the API tells of files, and takes to change them. Names and paths are text; bytes that are none, control
//! characters and `%` itself stand as `%HH`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{text_schema, word_enum};
use crate::clock::Moment;

word_enum! {
    /// What an entry of a directory is.
    pub enum FileKind {
        File "file" "a regular file"
        Directory "directory" "a directory"
        Symlink "symlink" "a symbolic link"
        Special "special" "a FIFO, a socket or a device"
    }
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// When its content was last modified; none where the host tells a time beyond any clock.
    pub modified: Option<Moment>,
    /// Permission bits.
    pub mode: u32,
    /// Of a symbolic link, where it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_target: Option<String>,
    /// Why nothing more than the name is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileProperties {
    /// The path, below the endpoint's root.
    pub path: String,
    /// What it is.
    #[serde(flatten)]
    pub entry: FileEntry,
}

/// Why something could not be done with files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileFailure {
    /// What kind, from the table of error codes.
    pub code: String,
    /// In words.
    pub message: String,
    /// What to try.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// A directory that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDirectory {
    /// The directory, below the endpoint's root; begins with `/`.
    #[schema(schema_with = text_schema::path)]
    pub path: String,
    /// Make those above it as well; then one that exists is no failure.
    #[serde(default)]
    pub parents: bool,
}

/// A thing that is to have another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRename {
    /// Its path below the endpoint's root; begins with `/`.
    #[schema(schema_with = text_schema::path)]
    pub from: String,
    /// Its new path.
    #[schema(schema_with = text_schema::path)]
    pub to: String,
    /// Replace a file that has the new path. A directory is never replaced.
    #[serde(default)]
    pub replace: bool,
}

word_enum! {
    /// How far a listing is.
    pub enum ListingState {
        Reading "reading" "the directory is being read"
        Complete "complete" "all of it was read"
        Failed "failed" "it could not be read to its end"
    }
}

word_enum! {
    /// By what entries are sorted.
    pub enum SortField {
        Name "name" "by name: case aside, numbers by their value, directories first"
        Size "size" "by size"
        Modified "modified" "by the time of the last modification"
        Kind "kind" "by what they are, then by name, directories first"
    }
}

/// A directory that is to be listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewListing {
    /// The endpoint.
    pub endpoint: String,
    /// The directory, below the endpoint's root; begins with `/`.
    #[schema(schema_with = text_schema::path)]
    pub path: String,
}

/// How far a listing is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListingStatus {
    /// Whether all was read.
    pub state: ListingState,
    /// Entries so far.
    pub count: u64,
    /// Why it could not be read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FileFailure>,
}

/// A listing: one look at a directory, kept until nobody asks for it any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileListing {
    /// Its identifier.
    pub id: String,
    /// The endpoint.
    pub endpoint: String,
    /// The directory, below the endpoint's root.
    pub path: String,
    /// How far it is.
    #[serde(flatten)]
    pub status: ListingStatus,
}

/// Some entries of a listing, sorted and filtered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileWindow {
    /// Whether all was read. Until then a window shows what is there, and may lag a little behind `count`.
    pub state: ListingState,
    /// Entries of the directory so far.
    pub count: u64,
    /// Entries that the filter takes.
    pub total: u64,
    /// Bytes of the files among those.
    pub bytes: u64,
    /// Which of them is the first of `entries`.
    pub offset: u64,
    /// The entries.
    pub entries: Vec<FileEntry>,
    /// Where the name of `around` is among all that the filter takes; null: it is not there. Only where `around` was
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Option<u64>>,
    /// Why the directory could not be read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FileFailure>,
}

/// Paths whose use of storage is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageRequest {
    /// Below the endpoint's root; each begins with `/`.
    #[schema(schema_with = text_schema::paths)]
    pub paths: Vec<String>,
}

/// What paths take, so far or in all: a line of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskUsage {
    /// Files, links and the like. A file with several names counts once.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Bytes of the storage that all of it takes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<u64>,
    /// What could not be read.
    pub failed: u64,
    /// The first of those, in the last line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<PathFailure>,
    /// This is the last line: all was counted.
    pub done: bool,
}

/// Why something at one path could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathFailure {
    /// The path.
    pub path: String,
    /// In words.
    pub message: String,
}

/// A file whose digest is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SumRequest {
    /// The file, below the endpoint's root; begins with `/`.
    #[schema(schema_with = text_schema::path)]
    pub path: String,
    /// `blake3`, which it is where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The digest of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileDigest {
    /// BLAKE3, in hexadecimal.
    pub digest: String,
    /// Size of the file in bytes.
    pub size: u64,
}

/// A name or a path as text: what is no UTF-8, control characters and `%` stand as `%HH`.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let escape = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing into a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '%' || character.is_control() {
                escape(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(character);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::identity::ScopePath;

    #[test]
    fn name_is_told_as_text_that_can_be_asked_for() {
        for (name, text) in [
            (&b"a b<c>&"[..], "a b<c>&"),
            (b"100%", "100%25"),
            (b"a\nb\x7f", "a%0Ab%7F"),
            (b"\xff\xc3\xa9", "%FFé"),
            ("\u{202e}\u{85}".as_bytes(), "\u{202e}%C2%85"),
        ] {
            assert_eq!(text_of(name), text);
        }
    }

    proptest! {
        #[test]
        fn name_of_any_bytes_leads_to_itself(name in proptest::collection::vec(any::<u8>(), 1..40)) {
            let is_a_name = !name.contains(&b'/') && !name.contains(&0) && name != b"." && name != b"..";
            let path = ScopePath::parse(&format!("/{}", text_of(&name)));
            if is_a_name {
                prop_assert_eq!(path.unwrap().bytes(), name);
            }
        }
    }
}
