//! The exceptions to *whole or old*: what is written in place, and what grows while it is copied.

use super::{Mutation, mutation};

const PARTS: &str = "-p carrack-engine --lib storage::posix::tree::tests::parts::";
const IN_PLACE: &str = "-p carrack --test system in_place::";
const GROWING: &str = "-p carrack --test system growing::";

/// What makes them bearable.
pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "a file with other names is written over",
        "crates/carrack-engine/src/storage/posix/tree/in_place.rs",
        ["match stat.links > 1 {", "match stat.links > 9 {"],
        IN_PLACE,
    ),
    mutation(
        "two write over one file",
        "crates/carrack-engine/src/storage/posix/tree/in_place.rs",
        ["if !self.lock_in_place(&file, &stat) {", "if !self.lock_in_place(&file, &stat) && stat.links > 9 {"],
        IN_PLACE,
    ),
    mutation(
        "what is written on is trusted",
        "crates/carrack-engine/src/storage/posix/tree/in_place.rs",
        [
            "let compares = options.takes_over || options.in_place == InPlace::Append;",
            "let compares = options.takes_over;",
        ],
        IN_PLACE,
    ),
    mutation(
        "the marker names no mixture",
        "crates/carrack-engine/src/storage/posix/marker/mixtures.rs",
        ["self.lock().mixtures.contains_key(path)", "self.lock().mixtures.contains_key(&path[..path.len() / 2])"],
        IN_PLACE,
    ),
    mutation(
        "a marker that names a mixture goes when all else is done",
        "crates/carrack-engine/src/storage/posix/marker.rs",
        ["let whole = whole && state.mixtures.is_empty();", ""],
        IN_PLACE,
    ),
    mutation(
        "what is written in place is removed when it fails",
        "crates/carrack-engine/src/storage/posix/part.rs",
        [
            "                journal.untouched(&self.path, number);\n            }\n            return;\n",
            "                journal.untouched(&self.path, number);\n            }\n",
        ],
        IN_PLACE,
    ),
    mutation(
        "an attempt in place that was given up goes on writing",
        "crates/carrack-engine/src/storage/posix/part/over.rs",
        [
            "        if writing.has_ended {\n            return Err",
            "        if writing.has_ended && writing.threads > 9 {\n            return Err",
        ],
        PARTS,
    ),
    mutation(
        "a file in place is unlocked while a thread writes to it",
        "crates/carrack-engine/src/storage/posix/part/over.rs",
        [
            "            0 => Self::close(file, writing.has_begun),\n",
            "            0..=9 => Self::close(file, writing.has_begun),\n",
        ],
        PARTS,
    ),
    mutation(
        "what nobody has read again vouches for the next session",
        "crates/carrack-engine/src/storage/posix/part.rs",
        ["let is_proven = lock(&self.claims.unproven).is_empty();", "let is_proven = true;"],
        PARTS,
    ),
    mutation(
        "the marker of another session takes the name of a mixture with it",
        "crates/carrack-engine/src/storage/posix/marker/found.rs",
        [
            "None if mixtures.iter().any(is_left) => {",
            "None if mixtures.iter().any(is_left) && mixtures.len() > 9 => {",
        ],
        "-p carrack-engine --lib storage::posix::tree::tests::markers::",
    ),
    mutation(
        "a log that is truncated is followed on",
        "crates/carrack-engine/src/transfer/send/following.rs",
        ["if now.size < self.size {", "if now.size == u64::MAX {"],
        GROWING,
    ),
    mutation(
        "a log whose name is another file's is followed on",
        "crates/carrack-engine/src/transfer/send/following.rs",
        ["Ok(found) if found.file == scanned.file => Ok(()),", "Ok(found) if found.size.is_some() => Ok(()),"],
        GROWING,
    ),
    mutation(
        "a lock file that goes says nothing",
        "crates/carrack-engine/src/transfer/send/following.rs",
        ["Ok(false) if one.is_locked || ", "Ok(false) if "],
        GROWING,
    ),
    mutation(
        "a lock file that is there says nothing",
        "crates/carrack-engine/src/transfer/send/following.rs",
        ["is_there.map_err(", "is_there.map(|_| false).map_err("],
        GROWING,
    ),
];
