//! Items as lines with commas (RFC 4180): the same columns in the API and at the command line.

use super::{TaskFailure, TaskItem};

/// The first line of a list with commas.
pub const ITEM_CSV_HEADINGS: &str = "pair,state,kind,size,digest,path,side,code,why";

impl TaskItem {
    /// The item as a line of a list with commas, without its end.
    pub fn csv(&self) -> String {
        let of_failure = |field: fn(&TaskFailure) -> &str| self.failure.as_ref().map_or("", field);
        let differs = self.differs.join(" ");
        [
            &self.pair.to_string()[..],
            self.state.name(),
            &self.kind,
            &self.size.to_string(),
            self.digest.as_deref().unwrap_or(""),
            &self.path,
            of_failure(|failure| &failure.side),
            of_failure(|failure| &failure.code),
            if self.differs.is_empty() { of_failure(|failure| &failure.why) } else { &differs },
        ]
        .map(csv_field)
        .join(",")
    }
}

/// A field, quoted where it has to be. A spreadsheet takes none of them for a formula.
pub fn csv_field(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@', '\t']) { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ItemState;

    #[test]
    fn csv_of_an_item_is_quoted_and_no_formula() {
        let failure = TaskFailure {
            code: "permission-denied".into(),
            side: "source".into(),
            endpoint: None,
            why: "open: Permission denied, \"no\"".into(),
            retryable: false,
            hints: Vec::new(),
        };
        let item = TaskItem {
            pair: 0,
            path: "=a\nb".into(),
            kind: "file".into(),
            state: ItemState::Failed,
            size: 12_345,
            digest: None,
            failure: Some(failure),
            differs: Vec::new(),
        };
        let csv = "0,failed,file,12345,,\"'=a\nb\",source,permission-denied,\"open: Permission denied, \"\"no\"\"\"";
        assert_eq!(item.csv(), csv);
        assert_eq!(item.csv().split(',').count() - 1, ITEM_CSV_HEADINGS.split(',').count(), "one comma is in a text");
    }
}
