//! Rows under headings, in columns as wide as they have to be.

use carrack_service::model::csv_field;
use serde::Serialize;
use serde_json::Value;

use crate::cli::flag::Switch;
use crate::output::lines::Lines;

/// Writes a list for programs that read tables.
pub const CSV: Switch = Switch::new("csv", "Write values separated by commas, with headings");

/// The columns of a list as lines with commas: what each is called, and where it stands in a row's document.
#[derive(Clone, Copy)]
pub struct CsvColumns(&'static [(&'static str, &'static str)]);

/// Columns of `task list`; of a task with several pairs the first one's places.
pub const TASK_CSV: CsvColumns = CsvColumns(&[
    ("task", "/id"),
    ("state", "/state"),
    ("owner", "/owner"),
    ("label", "/request/label"),
    ("kind", "/request/kind"),
    ("source", "/request/pairs/0/source"),
    ("destination", "/request/pairs/0/destination"),
    ("items_total", "/progress/items_total"),
    ("items_done", "/progress/items_done"),
    ("items_failed", "/progress/items_failed"),
    ("bytes_moved", "/progress/bytes_moved"),
    ("faults", "/progress/faults"),
    ("submitted", "/submitted"),
    ("started", "/started"),
    ("ended", "/ended"),
    ("code", "/failure/code"),
    ("why", "/failure/why"),
]);

/// Columns of `endpoint list`.
pub const ENDPOINT_CSV: CsvColumns = CsvColumns(&[
    ("endpoint", "/name"),
    ("health", "/health/state"),
    ("owner", "/owner"),
    ("location", "/location"),
    ("read_only", "/read_only"),
    ("open_tasks", "/health/open_tasks"),
    ("last_contact", "/health/last_contact"),
    ("last_fault", "/health/last_fault/code"),
    ("added", "/added"),
]);

/// Columns of `timer list`.
pub const TIMER_CSV: CsvColumns = CsvColumns(&[
    ("timer", "/id"),
    ("state", "/state"),
    ("owner", "/owner"),
    ("label", "/label"),
    ("every_seconds", "/schedule/every_seconds"),
    ("cron", "/schedule/cron"),
    ("zone", "/schedule/zone"),
    ("next_run", "/next_run"),
    ("runs", "/runs"),
    ("last_task", "/last_task"),
    ("last_state", "/last/state"),
    ("last_ended", "/last/ended"),
]);

/// Columns of `service user list`.
pub const USER_CSV: CsvColumns =
    CsvColumns(&[("user", "/name"), ("role", "/role"), ("account", "/account"), ("enabled", "/enabled")]);

/// Columns of `service token list`.
pub const TOKEN_CSV: CsvColumns = CsvColumns(&[
    ("token", "/id"),
    ("user", "/user"),
    ("label", "/label"),
    ("made", "/made"),
    ("expires", "/expires"),
    ("used", "/used"),
    ("is_session", "/is_session"),
]);

impl CsvColumns {
    /// The first line.
    pub fn headings(self) -> String {
        self.0.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",")
    }

    /// A row. What its document lacks is empty.
    pub fn line(self, document: &impl Serialize) -> String {
        let document = serde_json::to_value(document).unwrap_or_default();
        let text = |value: Option<&Value>| match value {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let fields = self.0.iter().map(|(_, place)| csv_field(&text(document.pointer(place))));
        fields.collect::<Vec<_>>().join(",")
    }
}

/// Rows of one list.
pub struct AlignedRows<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
    /// Whether a column is of numbers: they end in one line.
    right: [bool; COLUMNS],
}

impl<const COLUMNS: usize> AlignedRows<COLUMNS> {
    /// A table with these headings; those that begin with `>` are of numbers.
    pub fn new(headings: [&str; COLUMNS]) -> Self {
        let right = headings.map(|heading| heading.starts_with('>'));
        Self { rows: vec![headings.map(|heading| heading.trim_start_matches('>').to_owned())], right }
    }

    /// Adds a row.
    pub fn row(&mut self, row: [String; COLUMNS]) {
        self.rows.push(row);
    }

    /// Writes all rows, and tells whether there are any. A table without rows has no headings either.
    pub fn write(&self, out: &mut Lines) -> bool {
        let any = self.rows.len() > 1;
        if any {
            self.lines().iter().for_each(|line| out.line(line.as_bytes()));
        }
        any
    }

    fn lines(&self) -> Vec<String> {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
        let line = |row: &[String; COLUMNS]| {
            let mut line = String::new();
            for (column, word) in row.iter().enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                let gap = " ".repeat(widths[column] - word.chars().count());
                let (before, behind) = if self.right[column] { (&gap[..], "") } else { ("", &gap[..]) };
                line.push_str(before);
                line.push_str(word);
                line.push_str(behind);
            }
            line.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_the_fields_of_the_document_quoted() {
        let user = serde_json::json!({ "name": "a,b", "role": "user", "account": null, "enabled": true });
        assert_eq!(USER_CSV.headings(), "user,role,account,enabled");
        assert_eq!(USER_CSV.line(&user), "\"a,b\",user,,true");
    }

    #[test]
    fn table_aligns_words_to_the_left_and_numbers_to_the_right() {
        let mut table = AlignedRows::new(["NAME", ">BYTES", "WHAT"]);
        table.row(["a".into(), "5".into(), "x".into()]);
        table.row(["märz".into(), "12,345".into(), String::new()]);
        assert_eq!(table.lines(), ["NAME   BYTES  WHAT", "a          5  x", "märz  12,345"]);
    }
}
