//! Rows under headings, in columns as wide as they have to be.

use crate::output::lines::Lines;

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
    fn table_aligns_words_to_the_left_and_numbers_to_the_right() {
        let mut table = AlignedRows::new(["NAME", ">BYTES", "WHAT"]);
        table.row(["a".into(), "5".into(), "x".into()]);
        table.row(["märz".into(), "12,345".into(), String::new()]);
        assert_eq!(table.lines(), ["NAME   BYTES  WHAT", "a          5  x", "märz  12,345"]);
    }
}
