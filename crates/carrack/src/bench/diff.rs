//! Two results beside each other: which numbers changed, and what changed on the host between them.

use carrack_measure::result::{Measurement, Row, value};

use super::net::row::{AT_ONCE, CONNECTIONS};
use super::peers::{DATA, SESSIONS};
use super::{load, numbers};

/// Shows a number.
type Show = fn(f64) -> String;

/// The number of a row that people compare, and how it is shown.
const HEADLINES: [(&str, Show); 2] =
    [(value::BYTES_PER_SECOND, numbers::rate), (value::OPERATIONS_PER_SECOND, per_second)];

/// Facts that are other in each run and explain nothing.
const FLEETING: [&str; 1] = ["load"];

fn per_second(number: f64) -> String {
    format!("{} /s", numbers::count(number))
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// A fact of the host, or a setting of the measurement; empty where it was not known.
    Fact {
        /// Its name.
        name: String,
        /// Before.
        old: String,
        /// Now.
        new: String,
    },
    /// A number of a row that both have.
    Number {
        /// The row.
        row: Row,
        /// The name of the number.
        value: &'static str,
        /// Before.
        old: f64,
        /// Now.
        new: f64,
    },
    /// A row whose trust changed: its labels before and now.
    Labels {
        /// The row.
        row: Row,
        /// Before.
        old: Vec<String>,
        /// Now.
        new: Vec<String>,
    },
    /// A row that only one of them has.
    Only {
        /// The row.
        row: Row,
        /// Whether it is the later one.
        is_new: bool,
    },
}

/// Everything that differs; numbers that both have are always there.
pub fn changes(old: &Measurement, new: &Measurement) -> Vec<Difference> {
    let mut changes = facts(&old.facts, &new.facts);
    changes.extend(facts(&old.settings, &new.settings));
    // Clients and files of a crowd are not the same twice, nor is what held it back.
    let is_compared = |row: &&Row| {
        let own = [load::rows::CLIENT, load::rows::FILE, load::rows::LIMIT, load::rows::FALL];
        !own.contains(&row.name.as_str())
    };
    for row in new.rows.iter().filter(is_compared) {
        match old.rows.iter().find(|candidate| is_same(candidate, row)) {
            None => changes.push(Difference::Only { row: row.clone(), is_new: true }),
            Some(before) => changes.extend(of_row(before, row)),
        }
    }
    let gone =
        old.rows.iter().filter(is_compared).filter(|row| !new.rows.iter().any(|candidate| is_same(candidate, row)));
    changes.extend(gone.map(|row| Difference::Only { row: row.clone(), is_new: false }));
    changes
}

fn facts(old: &[(String, String)], new: &[(String, String)]) -> Vec<Difference> {
    let value = |facts: &[(String, String)], name: &str| {
        facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let mut names: Vec<&String> = old.iter().chain(new).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    let names = names.into_iter().filter(|name| !FLEETING.contains(&name.as_str()));
    let both = names.map(|name| (name.clone(), value(old, name), value(new, name)));
    both.filter(|(_, old, new)| old != new).map(|(name, old, new)| Difference::Fact { name, old, new }).collect()
}

fn is_same(one: &Row, other: &Row) -> bool {
    let sorted = |row: &Row| {
        let mut conditions = row.conditions.clone();
        conditions.sort();
        conditions
    };
    one.name == other.name && sorted(one) == sorted(other)
}

fn of_row(old: &Row, new: &Row) -> Vec<Difference> {
    let mut changes = Vec::new();
    // Bytes a second where bytes were moved, unless single operations are what the row is about.
    let random = super::table::is_random(new);
    let name = HEADLINES.iter().map(|(name, _)| *name).find(|name| {
        !(random && *name == value::BYTES_PER_SECOND) && old.value(name).is_some() && new.value(name).is_some()
    });
    if let Some(name) = name
        && let (Some(old), Some(now)) = (old.value(name), new.value(name))
    {
        changes.push(Difference::Number { row: new.clone(), value: name, old, new: now });
    }
    if old.labels != new.labels {
        changes.push(Difference::Labels { row: new.clone(), old: old.labels.clone(), new: new.labels.clone() });
    }
    changes
}

/// By how much a number changed, as a share of what it was.
pub fn share(old: f64, new: f64) -> Option<f64> {
    (old > 0.0).then(|| new / old - 1.0)
}

/// The changes as lines for people.
pub fn lines(changes: &[Difference]) -> Vec<String> {
    let mut lines = Vec::new();
    let facts: Vec<String> = changes.iter().filter_map(fact_line).collect();
    lines.push(if facts.is_empty() { "Nothing changed on the host." } else { "Changed on the host:" }.to_owned());
    lines.extend(facts);
    let numbers: Vec<String> = changes.iter().flat_map(row_lines).collect();
    if !numbers.is_empty() {
        lines.push(String::new());
        lines.push(format!("{:<36} {:>12} {:>12} {:>9}", "", "before", "now", "change"));
        lines.extend(numbers);
    }
    lines
}

fn fact_line(change: &Difference) -> Option<String> {
    let Difference::Fact { name, old, new } = change else { return None };
    let or_none = |text: &str| if text.is_empty() { "(none)".to_owned() } else { text.to_owned() };
    Some(format!("  {name}: {} -> {}", or_none(old), or_none(new)))
}

fn row_lines(change: &Difference) -> Vec<String> {
    match change {
        Difference::Fact { .. } => Vec::new(),
        Difference::Number { row, value, old, new } => {
            let shown = HEADLINES.iter().find(|(name, _)| name == value).map_or(per_second as Show, |(_, f)| *f);
            let change = share(*old, *new).map_or_else(String::new, |share| format!("{:+.1}%", share * 100.0));
            vec![format!("{:<36} {:>12} {:>12} {change:>9}", called(row), shown(*old), shown(*new))]
        }
        Difference::Labels { old, new, .. } => {
            let words = |labels: &[String]| if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
            vec![format!("    labels: {} -> {}", words(old), words(new))]
        }
        Difference::Only { row, is_new } => {
            vec![format!("{:<36} only in the {} result", called(row), if *is_new { "later" } else { "earlier" })]
        }
    }
}

/// A row by its name and conditions: `random-read direct 4K 16`.
pub fn called(row: &Row) -> String {
    let mut words = vec![row.name.clone()];
    words.extend(["mode", "order"].into_iter().filter_map(|name| row.condition(name).map(str::to_owned)));
    let record = row.condition("record_bytes").and_then(|bytes| bytes.parse().ok());
    words.extend(record.map(numbers::record));
    if row.condition("depth").is_some() {
        words.push(super::table::depth(row));
    }
    let connections = row
        .condition(CONNECTIONS)
        .map(|count| if count == "1" { "1 stream".to_owned() } else { format!("{count} streams") });
    words.extend(connections);
    words.extend(row.condition(super::ladder::ASKED).map(|count| format!("{count} streams")));
    words.extend(row.condition(AT_ONCE).filter(|at_once| *at_once == "yes").map(|_| "at once".to_owned()));
    words.extend(row.condition(DATA).map(str::to_owned));
    let sessions = row.condition(SESSIONS).filter(|count| *count != "1");
    words.extend(sessions.map(|count| format!("{count} sessions")));
    words.extend(row.condition("arrivals").map(|_| "at a rate".to_owned()));
    words.extend(row.condition(load::rows::CLIENTS).map(|clients| {
        let size =
            row.condition("size_bytes").and_then(|bytes| bytes.parse().ok()).map_or_else(String::new, numbers::record);
        format!("{clients}x{} of {size}", row.condition("files").unwrap_or_default())
    }));
    words.extend(row.condition(load::rows::HOST).map(str::to_owned));
    words.extend(row.condition("processors").map(|which| format!("({which})")));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::sample;

    #[test]
    fn diff_names_what_changed_on_the_host_and_in_numbers() {
        let old = sample();
        let mut new = sample();
        new.facts[1].1 = "6.19.0".to_owned();
        new.facts.push(("governor".to_owned(), "powersave".to_owned()));
        new.rows[1].values.iter_mut().filter(|(name, _)| name == value::BYTES_PER_SECOND).for_each(|(_, v)| *v /= 2.0);
        new.rows[2].labels.clear();
        new.rows.remove(3);
        let changes = changes(&old, &new);
        let lines = lines(&changes).join("\n");
        for words in [
            "  governor: (none) -> powersave\n  kernel: 6.18.1 -> 6.19.0",
            "write fdatasync 1M 1                    4.20 GB/s    2.10 GB/s    -50.0%",
            "labels: unsteady -> none",
            "read cached 1M 1                     only in the earlier result",
            "random-read direct 4K 16",
        ] {
            assert!(lines.contains(words), "{words}\n{lines}");
        }
        assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
        assert!(super::lines(&super::changes(&old, &old))[0].starts_with("Nothing changed"));
    }
}
