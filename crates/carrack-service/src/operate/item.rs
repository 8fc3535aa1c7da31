//! Items of journals as documents.

use std::fmt::Write;

use carrack_core::location::Location;
use carrack_core::path::bare;
use carrack_core::report::ItemInFlight;
use data_encoding::HEXLOWER;

use crate::journal::Item;
use crate::model::{InFlight, ItemState, NewTask, TaskItem};

/// An item as the API shows it. One without a path of its own, such as a source that is missing, has the whole path of
/// its pair's source.
pub fn document(item: &Item, request: Option<&NewTask>) -> TaskItem {
    let own = if item.path.is_empty() { request.and_then(|request| source_path(request, item.pair)) } else { None };
    TaskItem {
        pair: item.pair,
        path: text(own.as_ref().unwrap_or(&item.path)),
        kind: item.kind.name().to_owned(),
        state: item.state,
        size: item.size,
        digest: item.digest.map(|digest| HEXLOWER.encode(&digest)),
        failure: item.failure.clone().filter(|_| !item.state.is_difference()),
        differs: differs(item),
    }
}

/// A file in flight as the API shows it.
pub fn in_flight(pair: u32, file: &ItemInFlight) -> InFlight {
    InFlight { pair, path: text(&file.path), size: file.size, bytes: file.bytes }
}

/// In what an item differs: a journal has it as why.
fn differs(item: &Item) -> Vec<String> {
    let told = item.failure.as_ref().filter(|_| item.state == ItemState::Different);
    told.map_or_else(Vec::new, |told| told.why.split(", ").map(str::to_owned).collect())
}

/// The path of what a pair copies, moves or deletes, from the endpoint's root.
fn source_path(request: &NewTask, pair: u32) -> Option<Vec<u8>> {
    let pair = request.pairs.get(usize::try_from(pair).ok()?)?;
    let source = Location::parse_document(&pair.source).ok()?;
    let path = bare(source.path()?);
    (!path.is_empty()).then(|| path.to_vec())
}

/// A path as text: bytes that are no UTF-8 as `\xHH`, a backslash doubled.
fn text(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text += &chunk.valid().replace('\\', "\\\\");
        for byte in chunk.invalid() {
            // Writing into a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_without_a_path_has_the_whole_path_of_its_source() {
        use carrack_core::report::ItemKind;
        let pair = |source: &str| serde_json::json!({ "source": source, "destination": "@b:/" });
        let pairs = ["@a:/run/mis%20sing", "@a:/dir/", "/x/y", "@a:/"].map(pair);
        let request: NewTask = serde_json::from_value(serde_json::json!({ "kind": "copy", "pairs": pairs })).unwrap();
        let item = |pair, path: &[u8]| Item {
            pair,
            path: path.to_vec(),
            kind: ItemKind::File,
            state: crate::model::ItemState::Failed,
            size: 0,
            digest: None,
            failure: None,
        };
        let names: Vec<_> = (0..5).map(|pair| document(&item(pair, b""), Some(&request)).path).collect();
        assert_eq!(names, ["/run/mis sing", "/dir", "/x/y", "", ""]);
        assert_eq!(document(&item(0, b"own"), Some(&request)).path, "own");
    }

    #[test]
    fn item_paths_of_any_bytes_are_told_apart_as_text() {
        assert_eq!(text(b"a/\xc3\xa9"), "a/é");
        assert_eq!(text(b"a\xff"), "a\\xff");
        assert_eq!(text(b"a\\xff"), "a\\\\xff");
    }
}
