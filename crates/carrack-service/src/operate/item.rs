//! Items of journals as documents.

use std::fmt::Write;

use data_encoding::HEXLOWER;

use crate::journal::Item;
use crate::model::TaskItem;

/// An item as the API shows it.
pub fn document(item: &Item) -> TaskItem {
    TaskItem {
        pair: item.pair,
        path: text(&item.path),
        kind: item.kind.name().to_owned(),
        state: item.state,
        size: item.size,
        digest: item.digest.map(|digest| HEXLOWER.encode(&digest)),
        failure: item.failure.clone(),
    }
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
    fn item_paths_of_any_bytes_are_told_apart_as_text() {
        assert_eq!(text(b"a/\xc3\xa9"), "a/é");
        assert_eq!(text(b"a\xff"), "a\\xff");
        assert_eq!(text(b"a\\xff"), "a\\\\xff");
    }
}
