//! The files in flight, as `--json` has them: in the lines of progress.

use carrack_core::report::ItemInFlight;
use serde_json::{Value, json};

use super::json::with_path;

/// A list of objects.
pub fn value(list: &[ItemInFlight]) -> Value {
    let item = |item: &ItemInFlight| with_path(json!({ "size": item.size, "bytes": item.bytes }), &item.path);
    list.iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_flight_have_any_names_and_perhaps_no_size() {
        let item = |path: &[u8], size, bytes| ItemInFlight { path: path.to_vec(), size, bytes };
        let list = [item(b"a\n\x1b[2J", Some(u64::MAX), 5), item(b"\xff", None, 0)];
        let expected = json!([
            { "path": "a\n\u{1b}[2J", "size": u64::MAX, "bytes": 5 },
            { "path_b64": "/w==", "size": null, "bytes": 0 },
        ]);
        assert_eq!((value(&list), value(&[])), (expected, json!([])));
    }
}
