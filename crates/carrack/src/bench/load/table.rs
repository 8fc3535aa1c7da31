//! A crowd's rows as lines of a table in 80 columns.

use std::time::Duration;

use carrack_core::path::display_bytes;
use carrack_measure::result::{Row, value};

use super::held;
use super::rows::{
    BUSY, CLIENT, DISK_READ, DISK_WRITTEN, FATE, FILE, HOST, INTERFACE, JAIN, NODE, NODE_PROCESSORS, OBSERVED, PROGRAM,
    RECEIVED, SENT,
};
use crate::bench::numbers;
use crate::output::format;

/// Reasons that are shown, and hosts of clients.
const GROUPS_SHOWN: usize = 10;
const HOSTS_SHOWN: usize = 5;

/// What was shown so far.
#[derive(Debug, Default)]
pub struct CrowdShown {
    groups: Vec<FateGroup>,
    /// Files for which there was no group any more.
    others: u64,
    hosts: usize,
}

/// The line above the rows of the ways.
pub fn heading() -> String {
    format!(
        "{:<5}{:>7} {:>7} {:>10}  {:>8} {:>9} {:>5} {:>7} {:>7} {:>6}",
        "", "clients", "files", "rate  ", "1st done", "last done", "Jain", "p50", "max", "node"
    )
}

/// The lines of a way: its numbers, what became of the files, and how often they were tried. `sign` says what weakens
/// the rate.
pub fn way(row: &Row, sign: &str) -> Vec<String> {
    let shown = |name: &str, show: &dyn Fn(f64) -> String| row.value(name).map_or_else(|| "-".to_owned(), show);
    let count = |name: &str| format::count(row.value(name).unwrap_or(0.0).max(0.0).round() as u64);
    let latency =
        |share: f64| row.latency.as_ref().map_or_else(|| "-".to_owned(), |all| numbers::time(all.quantile(share)));
    let numbers = format!(
        "{:<5}{:>7} {:>7} {:>10}{sign:<1} {:>8} {:>9} {:>5} {:>7} {:>7} {:>6}",
        row.name,
        row.condition(super::rows::CLIENTS).unwrap_or_default(),
        count("files"),
        shown(value::BYTES_PER_SECOND, &numbers::rate),
        shown(value::FIRST_DONE_SECONDS, &clock),
        shown(value::SECONDS, &clock),
        shown(JAIN, &|jain| format!("{jain:.3}")),
        latency(0.5),
        latency(1.0),
        shown(NODE_PROCESSORS, &|used| format!("{:.0}%", used * 100.0)),
    );
    let files = format!(
        "{:<5}{} of {} whole, {} short, {} wrong, {} missing",
        "",
        count("whole"),
        count("files"),
        count("short"),
        count("wrong"),
        count("missing")
    );
    let attempts = format!(
        "{:<5}{} refused, {} lost, {} timed out, {} failed, {} repeated",
        "",
        count("refused"),
        count("lost"),
        count("timed_out"),
        count("failed"),
        count("repeated")
    );
    let mut lines = vec![numbers, files, attempts];
    if row.value("silent").is_some_and(|silent| silent > 0.0) {
        lines.push(format!(
            "{:<5}{} not whole although their clients were told that all went well",
            "",
            count("silent")
        ));
    }
    lines
}

fn clock(seconds: f64) -> String {
    numbers::time(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

impl CrowdShown {
    /// The lines of any other row; none for a row that only the page and programs want.
    pub fn other(&mut self, row: &Row) -> Vec<String> {
        if let Some(sentence) = held::sentence(row) {
            return text("crowd", &sentence);
        }
        match row.name.as_str() {
            NODE => text("node", &node(row)),
            OBSERVED => text(host(row), &observed(row)),
            CLIENT => Vec::new(),
            FILE => self.file(row),
            _ => self.clients_host(row),
        }
    }

    fn clients_host(&mut self, row: &Row) -> Vec<String> {
        self.hosts += 1;
        if self.hosts > HOSTS_SHOWN {
            return Vec::new();
        }
        let busy = format!("runs clients: processors {} busy, {} at most", share(row, BUSY), share(row, "busy_most"));
        text(host(row), &busy)
    }

    /// Files with one fate for one reason are told together, at the end.
    fn file(&mut self, row: &Row) -> Vec<String> {
        let key = (row.condition(FATE).unwrap_or_default().to_owned(), row.error.clone().unwrap_or_default());
        match self.groups.iter().position(|group| (&group.fate, &group.why) == (&key.0, &key.1)) {
            Some(at) => self.groups[at].count += 1,
            None if self.groups.len() == GROUPS_SHOWN => self.others += 1,
            None => {
                let number = |name: &str| row.value(name).map(|number| format::count(number.max(0.0) as u64));
                let size = match (key.0.as_str(), number("found_bytes"), number("expected_bytes")) {
                    ("short", Some(found), Some(expected)) => format!(" with {found} of {expected} bytes"),
                    _ => String::new(),
                };
                let name = row.condition(FILE).unwrap_or_default();
                let first = format!("{name} from {}{size}", host(row));
                self.groups.push(FateGroup { fate: key.0, why: key.1, first, count: 1 });
            }
        }
        Vec::new()
    }

    /// The files of which something is to be said.
    pub fn rest(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for FateGroup { fate, why, first, count } in &self.groups {
            // One that is whole in the end was tried more than once.
            let fate = if fate == "whole" { "whole at last" } else { fate };
            let which = if *count == 1 { first.clone() } else { format!("the first {first}") };
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            lines.extend(text(&format!("{} {fate}", format::count(*count)), &format!("{which}{why}")));
        }
        if self.others > 0 {
            lines.push(format!("and {} for other reasons; --json and --html name each", format::count(self.others)));
        }
        lines
    }
}

/// Files with one fate for one reason.
#[derive(Debug)]
struct FateGroup {
    fate: String,
    why: String,
    first: String,
    count: u64,
}

fn host(row: &Row) -> &str {
    row.condition(HOST).unwrap_or_default()
}

fn share(row: &Row, name: &str) -> String {
    row.value(name).map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0))
}

fn node(row: &Row) -> String {
    format!(
        "its process kept {} of a processor busy, {} at most; busiest processor {}, whole host {}",
        share(row, NODE_PROCESSORS),
        share(row, "node_processors_most"),
        share(row, value::BUSIEST_PROCESSOR),
        share(row, BUSY)
    )
}

fn observed(row: &Row) -> String {
    let rate = |name: &str| row.value(name).map_or_else(|| "-".to_owned(), numbers::rate);
    let interface = row.condition(INTERFACE).unwrap_or("network");
    let programs = row.values.iter().filter_map(|(name, used)| Some((name.strip_prefix(PROGRAM)?, used)));
    let programs: Vec<String> = programs.map(|(name, used)| format!("{name} {:.0}%", used * 100.0)).collect();
    let programs = if programs.is_empty() { String::new() } else { format!(" ({})", programs.join(", ")) };
    format!(
        "processors {}{programs}, disks read {}, written {}; {interface} received {}, sent {}",
        share(row, BUSY),
        rate(DISK_READ),
        rate(DISK_WRITTEN),
        rate(RECEIVED),
        rate(SENT)
    )
}

/// A name and a sentence, in lines of at most 80 columns.
fn text(name: &str, sentence: &str) -> Vec<String> {
    const COLUMNS: usize = 80;
    let words = format!("{}: {}", display_bytes(name.as_bytes()), display_bytes(sentence.as_bytes()));
    // What is shown twice has twice the backslashes.
    let words = words.replace("\\\\", "\\");
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        for piece in pieces(word, COLUMNS - 5) {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + piece.chars().count() <= COLUMNS => {
                    line.push(' ');
                    line.push_str(&piece);
                }
                Some(_) => lines.push(format!("{:<5}{piece}", "")),
                None => lines.push(piece),
            }
        }
    }
    lines
}

/// A word in pieces that fit on a line.
fn pieces(word: &str, most: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(most).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::rows::CLIENTS;

    fn row(name: &str, conditions: &[(&str, &str)], values: &[(&str, f64)]) -> Row {
        let mut row = Row { name: name.to_owned(), ..Row::default() };
        row.conditions = conditions.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        values.iter().for_each(|(name, value)| row.put(name, *value));
        row
    }

    #[test]
    fn table_of_a_crowd_fits_and_counts_what_is_lost() {
        let values = [
            (value::BYTES_PER_SECOND, 999.6e6),
            (value::FIRST_DONE_SECONDS, 1500.0),
            (value::SECONDS, 5518.0),
            (JAIN, 0.8912),
            ("files", 1000.0),
            ("whole", 722.0),
            ("short", 97.0),
            ("missing", 181.0),
            ("refused", 1_234.0),
            ("silent", 3.0),
            (NODE_PROCESSORS, 2.71),
        ];
        let lines = way(&row("put", &[(CLIENTS, "100")], &values), "!");
        let text = lines.join("\n");
        assert!(lines.iter().chain([&heading()]).all(|line| line.chars().count() <= 80), "{text}");
        for words in
            ["722 of 1,000 whole, 97 short, 0 wrong, 181 missing", "1,234 refused", "3 not whole", "271%", "0.891"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(way(&row("get", &[], &[]), "").len(), 3);
    }

    #[test]
    fn files_are_told_by_reason_and_those_beyond_are_counted() {
        let mut shown = CrowdShown::default();
        let conditions = [(FILE, "put-00001-000000"), (HOST, "c081"), (FATE, "short")];
        let mut short =
            row(FILE, &conditions, &[("found_bytes", 93_963_616.0), ("expected_bytes", 1e9), ("attempts", 2.0)]);
        short.error = Some(format!("{} \u{1b}[2J", "why ".repeat(40)));
        assert!((0..97).all(|_| shown.other(&short).is_empty()));
        let lines = shown.rest();
        let told = lines.join("\n");
        let first = "97 short: the first put-00001-000000 from c081 with 93,963,616 of 1,000,000,000\n     bytes: why";
        assert!(told.starts_with(first), "{told}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80) && !told.contains('\u{1b}'), "{told}");
        for number in 0..20 {
            short.error = Some(format!("reason {number}"));
            shown.other(&short);
        }
        assert_eq!(
            shown.rest().last().map(String::as_str),
            Some("and 11 for other reasons; --json and --html name each")
        );
        assert!(shown.other(&row(CLIENT, &[], &[])).is_empty());
        let used = [(BUSY, 0.5), ("program_processors.rsync", 1.25), ("program_processors.sshd", 0.5)];
        let observed = shown.other(&row(OBSERVED, &[(HOST, &"x".repeat(300))], &used));
        assert!(observed.iter().all(|line| line.chars().count() <= 80), "{observed:?}");
        assert!(observed.join(" ").contains("processors 50% (rsync 125%, sshd 50%), disks"), "{observed:?}");
        assert!(shown.other(&row(NODE, &[], &[(NODE_PROCESSORS, 1.5)]))[0].starts_with("node: its process kept 150%"));
        assert!(shown.other(&row("clients' host", &[(HOST, "a")], &[]))[0].starts_with("a: runs clients"));
    }
}
