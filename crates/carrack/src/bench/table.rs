//! Results as tables in 80 columns. A row is printed when it is there; a heading comes before the first of its kind.

use std::time::Duration;

use carrack_core::path::display_bytes;
use carrack_measure::network::Route;
use carrack_measure::result::{Measurement, Row, label, value};

use super::ladder::rung::LADDER;
use super::net::path;
use super::net::row::{AT_ONCE, CONNECTIONS, NOT_TRIED, P5, RETRANSMITS, RTT, WINDOW};
use super::{ladder, load, numbers, peers};

/// Labels that stand beside a rate as one sign, explained below the table.
const SIGNS: [(&str, &str); 4] =
    [(label::UNSTEADY, "~"), (label::SHORT, "?"), (label::PROCESSOR, "!"), (label::SHARED, "*")];

/// A terminal has at least as many. Labels for which the line of their row has no room stand on a line of their own.
const COLUMNS: usize = 80;

/// Which columns a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Bytes a second.
    Bytes,
    /// Operations a second and their times.
    Operations,
    /// One processor beside all.
    Processor,
    /// A rung of a ladder.
    Rung,
    /// Bytes over a network.
    Net,
    /// The way that packets take.
    Path,
    /// A program beside others.
    Peers,
    /// One way of a crowd.
    Crowd,
    /// Anything else of a crowd.
    OfCrowd,
}

/// Makes lines of rows, one row after the other.
#[derive(Debug, Default)]
pub struct Table {
    shape: Option<Shape>,
    /// Labels that have been used.
    labels: Vec<String>,
    /// A row of one processor, which waits for that of all of them.
    one: Option<Row>,
    /// Rungs so far, and their rates.
    rungs: Vec<(String, f64)>,
    /// What the rows of programs so far were about, and the words of their last columns.
    peers_title: String,
    peers_words: Vec<String>,
    /// What was shown of a crowd.
    crowd: load::table::CrowdShown,
}

impl Table {
    /// The lines of a row: headings where they are due, the row, and what is to be said of it.
    pub fn row(&mut self, row: &Row) -> Vec<String> {
        // Of several signs one is shown: the others would be explained without being there.
        let hidden = |label: &String| {
            SIGNS.iter().any(|(sign, _)| sign == label) && sign_of(row).is_none_or(|(shown, _)| shown != label)
        };
        for label in row.labels.iter().filter(|label| !hidden(label)) {
            if !self.labels.contains(label) {
                self.labels.push(label.clone());
            }
        }
        let shape = shape(row);
        let is_all = row.condition("processors") == Some("all");
        let one = self.one.take_if(|one| is_all && one.name == row.name);
        let mut lines = self.rest();
        if self.shape != Some(shape) {
            if self.shape.is_some() {
                lines.push(String::new());
            }
            lines.extend(Some(heading(shape).trim_end().to_owned()).filter(|heading| !heading.is_empty()));
            self.shape = Some(shape);
        }
        match shape {
            Shape::Bytes => lines.extend(bytes_row(row)),
            Shape::Operations => lines.extend(operations_row(row)),
            // Whether a row of all follows is known when the next one is there, be it of this host or of another.
            Shape::Processor if row.condition("processors") == Some("one") => self.one = Some(row.clone()),
            Shape::Processor => lines.push(processor_row(row, one.as_ref(), Some(row))),
            Shape::Rung => lines.extend(self.rung_row(row)),
            Shape::Net => lines.extend(net_row(row)),
            Shape::Path => lines.extend(path_row(row)),
            Shape::Peers => lines.extend(self.peers_row(row)),
            Shape::Crowd => lines.extend(load::table::way(row, signs(row))),
            Shape::OfCrowd => lines.extend(self.crowd.other(row)),
        }
        lines
    }

    /// The row that still waits for another, when there is no more.
    pub fn rest(&mut self) -> Vec<String> {
        self.one.take().iter().map(|one| processor_row(one, Some(one), None)).collect()
    }

    /// What the signs and labels mean that were used.
    pub fn legend(&self) -> Vec<String> {
        let used = label::ALL.iter().filter(|(name, _)| self.labels.iter().any(|label| label == name));
        let lines = used.map(|(name, meaning)| {
            let sign = SIGNS.iter().find(|(label, _)| label == name).map_or(*name, |(_, sign)| sign);
            format!("{sign:<14} {meaning}")
        });
        let lines = lines.chain(peers::lines::legend(&self.peers_words));
        self.crowd.rest().into_iter().chain(lines).collect()
    }

    /// A program's numbers, under a title where they are about something else than those above.
    fn peers_row(&mut self, row: &Row) -> Vec<String> {
        let title = peers::lines::title(row);
        let mut lines = Vec::new();
        if title != self.peers_title {
            lines.extend((!self.peers_title.is_empty()).then(String::new));
            lines.push(title.clone());
            lines.extend((row.condition(peers::DATA) != Some(peers::NO_DATA)).then(peers::lines::heading));
            self.peers_title = title;
        }
        let error = row.error.as_deref().unwrap_or_default();
        match peers::lines::line(row) {
            Some(line) => {
                let words = [peers::ENCRYPTS, peers::VERIFIES].into_iter().filter_map(|name| row.condition(name));
                self.peers_words.extend(words.map(str::to_owned));
                lines.push(line);
                lines.extend(peers::lines::uneven(row).iter().flat_map(|told| wrapped(told)));
                lines.extend(wrapped(&if error.is_empty() { String::new() } else { format!("then failed: {error}") }));
            }
            None => {
                let failed = if row.condition(peers::DATA) == Some(peers::NO_DATA) { "" } else { "failed: " };
                let name = peers::lines::short(&row.name);
                lines.extend(wrapped_behind(&format!("{name:<15}"), &format!("{failed}{error}")));
            }
        }
        lines
    }

    /// The rate, what is lost of it against which rung, and what it costs at both ends.
    fn rung_row(&mut self, row: &Row) -> Vec<String> {
        let rate = row.value(value::BYTES_PER_SECOND).unwrap_or_default();
        let rung = LADDER.iter().find(|rung| rung.name() == row.name);
        let below = rung.and_then(|rung| rung.stands_on(&self.rungs)).map(|(name, _)| name.clone());
        let share = |share: f64| format!("{:.0}%", share * 100.0);
        let loss = row.value(ladder::LOSS).map_or_else(|| "-".to_owned(), share);
        // Ends that do not tell share this process, or nothing is known of them.
        let used = |name: &str| row.value(name).map_or_else(|| "-".to_owned(), share);
        let streams = row.value(ladder::STREAMS).map_or_else(|| "-".to_owned(), |streams| streams.to_string());
        let line = format!(
            "{:<13}{:>10} {loss:>6} {:<14}{:>6} {:>6} {streams:>7} {:<8}",
            row.name,
            numbers::rate(rate),
            below.unwrap_or_default(),
            used(ladder::SOURCE_PROCESSORS),
            used(ladder::DESTINATION_PROCESSORS),
            row.condition("link").unwrap_or_default(),
        );
        self.rungs.push((row.name.clone(), rate));
        with_words(&line, row)
    }
}

/// One processor beside all of them; either may be missing. The signs are those of `row`.
fn processor_row(row: &Row, one: Option<&Row>, all: Option<&Row>) -> String {
    let columns = |of: Option<&Row>| match of.map(|row| row.value(value::BYTES_PER_SECOND).unwrap_or(0.0)) {
        None => format!("{:>12} {:>12}", "-", "-"),
        Some(rate) => {
            format!("{:>12} {:>12}", numbers::rate(rate), format!("{} Gb/s", numbers::three_digits(rate * 8e-9)))
        }
    };
    format!("{:<22}{}  {} {}", row.name, columns(one), columns(all), signs(row)).trim_end().to_owned()
}

/// What was measured, and where.
pub fn headline(measured: &Measurement) -> Vec<String> {
    let fact = |name: &str| measured.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut words = vec![format!("{}: {}", measured.kind, display_bytes(measured.target.as_bytes()))];
    words.extend(fact("mount.kind").map(str::to_owned));
    let size = measured.settings.iter().find(|(name, _)| name == "size_bytes");
    let size = size.and_then(|(_, size)| size.parse().ok());
    words.extend(size.map(|size| format!("files of {}", crate::output::format::size(size))));
    let mut lines = vec![words.join(", ")];
    let host: Vec<&str> = ["host", "processor", "kernel"].into_iter().filter_map(fact).collect();
    if !host.is_empty() {
        lines.push(host.join(", "));
    }
    lines.extend(measured.warnings.iter().map(|warning| format!("note: {}", warning.text)));
    lines
}

fn shape(row: &Row) -> Shape {
    if peers::lines::is_of_peers(row) {
        Shape::Peers
    } else if row.condition("sink").is_some() {
        Shape::Rung
    } else if is_path(row) {
        Shape::Path
    } else if row.condition(load::rows::CLIENTS).is_some() {
        Shape::Crowd
    } else if row.condition(load::rows::HOST).is_some() || load::rows::is_of_crowd(row) {
        Shape::OfCrowd
    } else if row.condition(CONNECTIONS).is_some() {
        Shape::Net
    } else if row.condition("processors").is_some() {
        Shape::Processor
    } else if is_random(row) || row.value(value::BYTES).is_none() {
        Shape::Operations
    } else {
        Shape::Bytes
    }
}

/// Whether a row is about the way that packets take.
pub fn is_path(row: &Row) -> bool {
    row.route.is_some() || row.name.starts_with("path ")
}

/// Whether a row is about single reads or writes in no order; a ladder has a rung whose name begins like theirs.
pub fn is_random(row: &Row) -> bool {
    matches!(row.name.as_str(), "random-read" | "random-write")
}

fn heading(shape: Shape) -> String {
    match shape {
        Shape::Bytes => format!(
            "{:<13}{:<10}{:>5} {:>5} {:>11} {:>10} {:>10} {:>5} ",
            "", "mode", "rec", "depth", "rate  ", "settled", "1st done", "cpu"
        ),
        Shape::Operations => format!(
            "{:<13}{:<10}{:>5} {:>5} {:>9} {:>7} {:>7} {:>7} {:>7}",
            "", "mode", "rec", "depth", "per sec ", "p50", "p95", "p99", "max"
        ),
        Shape::Rung => format!(
            "{:<13}{:>10} {:>6} {:<14}{:>6} {:>6} {:>7} {:<8}",
            "", "rate  ", "loss", "against", "cpu A", "cpu B", "streams", "link"
        ),
        Shape::Path | Shape::Peers | Shape::OfCrowd => String::new(),
        Shape::Crowd => load::table::heading(),
        Shape::Net => format!(
            "{:<10} {:<9} {:>7} {:>9}  {:>4} {:>7} {:>6} {:>7}{:>6}{:>6}",
            "", "mode", "streams", "rate  ", "p5", "resent", "rtt", "cwnd", "cpu A", "cpu B"
        ),
        Shape::Processor => format!("{:<22}{:>12} {:>12}  {:>12} {:>12}", "", "one core", "", "all cores", ""),
    }
}

/// The columns that all rows of a disk have.
fn place(row: &Row) -> String {
    let mode = row.condition("mode").or(row.condition("order")).unwrap_or_default();
    let record = row.condition("record_bytes").and_then(|bytes| bytes.parse().ok());
    let record = record.map_or_else(String::new, numbers::record);
    format!("{:<13}{mode:<10}{record:>5} {:>5}", row.name, depth(row))
}

/// Depth, with the number of files before it where there are several: `4x16`.
pub fn depth(row: &Row) -> String {
    let (depth, threads) = (row.condition("depth").unwrap_or("1"), row.condition("threads").unwrap_or("1"));
    if threads == "1" { depth.to_owned() } else { format!("{threads}x{depth}") }
}

fn bytes_row(row: &Row) -> Vec<String> {
    let rate = |name: &str| row.value(name).map_or_else(|| "-".to_owned(), numbers::rate);
    let processors = row.value(value::PROCESSORS).map_or_else(String::new, |used| format!("{:.0}%", used * 100.0));
    let line = format!(
        "{} {:>10}{:<1} {:>9} {:>10} {processors:>5} ",
        place(row),
        rate(value::BYTES_PER_SECOND),
        signs(row),
        rate(value::SETTLED_BYTES_PER_SECOND),
        rate(value::FIRST_DONE_BYTES_PER_SECOND),
    );
    with_words(&line, row)
}

fn operations_row(row: &Row) -> Vec<String> {
    let per_second = row.value(value::OPERATIONS_PER_SECOND).map_or_else(|| "-".to_owned(), numbers::count);
    let quantile = |share: f64| row.latency.as_ref().map_or_else(String::new, |all| numbers::time(all.quantile(share)));
    let longest = row.latency.as_ref().map_or_else(String::new, |all| numbers::time(all.max()));
    let line = format!(
        "{} {per_second:>8}{:<1} {:>7} {:>7} {:>7} {longest:>7}",
        place(row),
        signs(row),
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
    );
    let mut lines = vec![line.trim_end().to_owned()];
    if let Some(arrivals) = row.value(value::ARRIVALS_PER_SECOND) {
        lines.push(format!("{:<13}{} a second were due; times from when each was due", "", numbers::count(arrivals)));
    }
    lines.extend(words_lines(row));
    lines
}

/// A line with the labels behind it, or below it where they do not fit.
fn with_words(line: &str, row: &Row) -> Vec<String> {
    let whole = format!("{line}{}", words(row)).trim_end().to_owned();
    if whole.chars().count() <= COLUMNS {
        return vec![whole];
    }
    std::iter::once(line.trim_end().to_owned()).chain(words_lines(row)).collect()
}

/// The labels on lines of their own: as many as they need.
fn words_lines(row: &Row) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for label in written(row) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + label.chars().count() + 2 <= COLUMNS => *line += &format!(", {label}"),
            _ => lines.push(format!("{:<13}{label}", "")),
        }
    }
    lines
}

/// Rate and what TCP had to do for it, and below it why it is not what was asked for.
fn net_row(row: &Row) -> Vec<String> {
    let shown = |name: &str, show: &dyn Fn(f64) -> String| row.value(name).map_or_else(|| "-".to_owned(), show);
    let share = |share: f64| format!("{:.0}%", share * 100.0);
    let name = if row.condition(AT_ONCE) == Some("yes") { format!("both {}", row.name) } else { row.name.clone() };
    let asked = row.condition(CONNECTIONS).unwrap_or_default();
    // What a copy chose is its answer.
    let auto = row.value(ladder::STREAMS).filter(|_| asked == "auto").map(|streams| format!("auto {streams}"));
    let streams = auto.as_deref().unwrap_or(asked);
    let place = format!("{name:<10} {:<9} {streams:>7}", row.condition("mode").unwrap_or_default());
    let Some(rate) = row.value(value::BYTES_PER_SECOND) else {
        let error = row.error.as_deref().unwrap_or("nothing came");
        // The reason stands below the row that met it.
        let (word, why) = if error.starts_with(NOT_TRIED) { (NOT_TRIED, "") } else { ("not measured", error) };
        let mut lines = vec![format!("{place} {word}")];
        lines.extend(wrapped(why));
        return lines;
    };
    let line = format!(
        "{place} {:>9}{:<1} {:>4} {:>7} {:>6} {:>7}{:>6}{:>6}",
        numbers::rate(rate),
        signs(row),
        shown(P5, &|slow| if rate > 0.0 { share(slow / rate) } else { "-".to_owned() }),
        shown(RETRANSMITS, &numbers::count),
        shown(RTT, &|micros| numbers::time(Duration::from_micros(micros as u64))),
        shown(WINDOW, &numbers::amount),
        shown(ladder::SOURCE_PROCESSORS, &share),
        shown(ladder::DESTINATION_PROCESSORS, &share),
    );
    let mut lines = vec![line.trim_end().to_owned()];
    let told = [Some(words(row)).filter(|words| !words.is_empty()), row.error.clone()];
    lines.extend(wrapped(&told.into_iter().flatten().collect::<Vec<_>>().join(": ")));
    lines
}

/// The largest packet of a way, as far as it is known.
pub fn largest_packet(row: &Row, route: &Route) -> String {
    let Some(bytes) = row.value(path::MTU) else { return "packets of unknown size".to_owned() };
    let proof = match (route.is_mtu_proved, route.drops_large_packets) {
        (true, false) => "",
        (true, true) => "; larger ones vanish without a word",
        (false, _) => " at most, unproved",
    };
    format!("packets of {bytes} bytes{proof}")
}

/// The way in one direction: what is known of it, and a line for each step.
fn path_row(row: &Row) -> Vec<String> {
    let Some(route) = &row.route else {
        let mut lines = vec![format!("{:<10} not measured", row.name)];
        lines.extend(wrapped(row.error.as_deref().unwrap_or_default()));
        return lines;
    };
    let hops = if route.hops.len() == 1 { "1 hop".to_owned() } else { format!("{} hops", route.hops.len()) };
    let mut lines = vec![format!("{:<10} {hops}, {}", row.name, largest_packet(row, route))];
    for (distance, hop) in route.hops.iter().enumerate() {
        let time = hop.rtt_us.map(|micros| numbers::time(Duration::from_nanos((micros * 1e3) as u64)));
        // No address is longer; a result may come from anybody.
        let address: String = hop.address.as_deref().unwrap_or("no answer").chars().take(40).collect();
        let line = format!("{:>13}  {address:<40} {:>8}", distance + 1, time.unwrap_or_default());
        lines.push(line.trim_end().to_owned());
    }
    lines.extend(wrapped(&route.why));
    lines
}

/// A sentence below a row, in lines that begin where the row's second column does.
fn wrapped(text: &str) -> Vec<String> {
    wrapped_behind(&format!("{:<11}", ""), text)
}

/// A sentence in lines, the first behind `first` and the others as far to the right. No sentence is no line.
fn wrapped_behind(first: &str, text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = display_bytes(text.as_bytes()).to_string();
    let left = first.chars().count();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{:<left$}{word}", "")),
            None => lines.push(format!("{first}{word}")),
        }
    }
    lines
}

/// One sign for what most weakens a rate.
fn signs(row: &Row) -> &'static str {
    sign_of(row).map_or("", |(_, sign)| sign)
}

fn sign_of(row: &Row) -> Option<&'static (&'static str, &'static str)> {
    SIGNS.iter().find(|(label, _)| row.has_label(label))
}

/// The labels that are written out.
fn written(row: &Row) -> impl Iterator<Item = &str> {
    row.labels.iter().map(String::as_str).filter(|label| SIGNS.iter().all(|(sign, _)| sign != label))
}

/// The same in one line.
fn words(row: &Row) -> String {
    written(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::sample;
    use carrack_measure::network::RouteHop;

    #[test]
    fn tables_fit_into_80_columns_and_say_what_is_cached() {
        let mut measured = sample();
        measured.rows[2].labels.push(label::PROCESSOR.to_owned());
        let mut table = Table::default();
        let mut lines = headline(&measured);
        lines.extend(measured.rows.iter().flat_map(|row| table.row(row)));
        lines.extend(table.legend());
        let text = lines.join("\n");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        let cached = lines.iter().find(|line| line.contains("4.80 GB/s")).expect("the first row");
        assert!(cached.ends_with("cached"), "{text}");
        // A sign that no row shows is not explained.
        assert!(!text.contains("a processor was busy"), "{text}");
        for words in ["disk: /data, xfs", "note: the files are small", "p95", "20.0ms", "1st done", "file-create", "~"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    /// A row of this name, with one condition and a rate.
    fn row_of(name: &str, condition: [&str; 2], rate: f64) -> Row {
        let conditions = vec![(condition[0].to_owned(), condition[1].to_owned())];
        let values = vec![(value::BYTES.to_owned(), 1e9), (value::BYTES_PER_SECOND.to_owned(), rate)];
        Row { name: name.to_owned(), conditions, values, ..Row::default() }
    }

    #[test]
    fn every_label_of_every_shape_fits_into_80_columns() {
        let mut rung = row_of("random->disk", ["sink", "disk"], 1.16e9);
        rung.conditions.push(("link".to_owned(), "direct".to_owned()));
        rung.put(ladder::SOURCE_PROCESSORS, 1.0);
        rung.put(ladder::DESTINATION_PROCESSORS, 1.0);
        let rows = [sample().rows, vec![rung, row_of("blake3+aes-128-gcm", ["processors", "all"], 1.2e10)]].concat();
        let every: Vec<Vec<String>> = label::ALL.iter().map(|(name, _)| vec![(*name).to_owned()]).collect();
        for labels in every.iter().cloned().chain([every.concat()]) {
            let mut table = Table::default();
            let labelled = rows.iter().map(|row| Row { labels: labels.clone(), ..row.clone() });
            let mut lines: Vec<String> = labelled.flat_map(|row| table.row(&row)).collect();
            lines.extend(table.legend());
            let text = lines.join("\n");
            assert!(lines.iter().all(|line| line.chars().count() <= 80), "{labels:?}\n{text}");
            if let [label] = &labels[..] {
                let shown = SIGNS.iter().find(|(name, _)| name == label).map_or(label.as_str(), |(_, sign)| sign);
                // A row of processors has signs alone, and a rung has words alone.
                assert!(text.matches(shown).count() >= rows.len() - 1, "{label}\n{text}");
            }
        }
    }

    #[test]
    fn rows_of_one_processor_are_all_shown_wherever_they_were_measured() {
        let one = |name: &str, rate: f64| row_of(name, ["processors", "one"], rate);
        let all = |name: &str, rate: f64| row_of(name, ["processors", "all"], rate);
        let lines = |rows: &[Row]| {
            let mut table = Table::default();
            let mut lines: Vec<String> = rows.iter().flat_map(|row| table.row(row)).collect();
            lines.extend(table.rest());
            lines[1..].iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        // On a host with one processor there is no row of all.
        let alone = lines(&[one("blake3", 1e9), one("xxh128", 2e9), one("crc32c", 3e9)]);
        let expected = ["blake3 1.00 GB/s 8.00 Gb/s - -", "xxh128 2.00 GB/s 16.0 Gb/s - -"];
        assert_eq!((&alone[..2], alone.len()), (&expected.map(str::to_owned)[..], 3));
        let both = lines(&[one("blake3", 1e9), all("blake3", 2e9), one("xxh128", 2e9), all("crc32c", 3e9)]);
        let expected = [
            "blake3 1.00 GB/s 8.00 Gb/s 2.00 GB/s 16.0 Gb/s",
            "xxh128 2.00 GB/s 16.0 Gb/s - -",
            "crc32c - - 3.00 GB/s 24.0 Gb/s",
        ];
        assert_eq!(both, expected);
        // A row of another shape does not come before one that waited.
        let mixed = lines(&[one("blake3", 1e9), sample().rows.remove(0)]);
        assert!(mixed[0].starts_with("blake3") && mixed.last().is_some_and(|line| line.starts_with("write")));
    }

    fn net(name: &str, at_once: &str, values: &[(&str, f64)]) -> Row {
        let conditions = [(CONNECTIONS, "256"), ("mode", "encrypted"), (AT_ONCE, at_once)];
        let mut row = Row { name: name.to_owned(), ..Row::default() };
        row.conditions = conditions.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        values.iter().for_each(|(name, value)| row.put(name, *value));
        row
    }

    #[test]
    fn table_of_a_way_has_a_line_for_each_step() {
        let hop = |address: Option<&str>, rtt_us| RouteHop { address: address.map(str::to_owned), rtt_us };
        let hops = vec![hop(Some("10.0.0.1"), Some(312.0)), hop(None, None)];
        let route = Route { hops, why: "nobody behind hop 1 answers probes".to_owned(), ..Route::default() };
        let mut row = Row { name: "path back".to_owned(), route: Some(route), ..Row::default() };
        row.put(path::MTU, 1500.0);
        let absent = Row { name: "path there".to_owned(), error: Some("refused".to_owned()), ..Row::default() };
        let lines: Vec<String> = [row, absent].iter().flat_map(|row| Table::default().row(row)).collect();
        assert_eq!(lines[0], "path back  2 hops, packets of 1500 bytes at most, unproved");
        assert!(lines[1].ends_with("312us") && lines[2].ends_with("no answer"), "{lines:?}");
        assert_eq!(lines[3].trim(), "nobody behind hop 1 answers probes");
        assert_eq!((lines[4].as_str(), lines[5].trim()), ("path there not measured", "refused"));
    }

    #[test]
    fn table_of_a_network_fits_and_says_why_a_row_has_no_numbers() {
        let values = [
            (value::BYTES_PER_SECOND, 999.6e6),
            (P5, 500e6),
            (RETRANSMITS, 123_456.0),
            (RTT, 312_345.0),
            (WINDOW, 123_456_789.0),
            (ladder::SOURCE_PROCESSORS, 12.34),
            (ladder::DESTINATION_PROCESSORS, 0.5),
        ];
        let mut measured = net("there", "no", &values);
        measured.labels = vec![label::PROCESSOR.to_owned(), label::DISCARDED.to_owned()];
        let why = "carrack://far.example.org:7420: connection refused, and much is to be said about it all";
        let absent = Row { error: Some(why.to_owned()), ..net("back", "yes", &[]) };
        let mut table = Table::default();
        let lines: Vec<String> = [measured, absent].iter().flat_map(|row| table.row(row)).collect();
        let text = lines.join("\n");
        assert!(lines.iter().chain(&table.legend()).all(|line| line.chars().count() <= 80), "{text}");
        for words in ["1000 MB/s!  50%", "123,456", "312ms", "123 MB", "1234%", "discarded", "both back", "refused,"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(table.legend().len(), 2);
        // A row in which nothing came: a share of nothing is none.
        let nothing = table.row(&net("there", "no", &[(value::BYTES_PER_SECOND, 0.0), (P5, 0.0)])).join("\n");
        assert!(nothing.contains("0.00 kB/s     -") && !nothing.contains("NaN"), "{nothing}");
    }
}
