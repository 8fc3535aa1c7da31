//! The exceptions to *whole or old*: what is written in place, and what grows while it is copied.

use super::{Mutation, mutation};

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
        ["if !lock_patiently(&file) {", "if !lock_patiently(&file) && stat.links > 9 {"],
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
        "crates/carrack-engine/src/storage/posix/marker.rs",
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
            "        if self.entry.in_place {\n            let _ = self.mark_mixture();\n            // As in `leave`.\n            let _ = file::unlock(&self.file);\n            return;\n        }\n",
            "",
        ],
        IN_PLACE,
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
