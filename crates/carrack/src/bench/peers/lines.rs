//! The rows as a table in 80 columns: one table for each kind of data, the fastest program first.

use carrack_measure::result::{Row, value};

use super::contest::described;
use super::data::Data;
use super::{
    CACHE, CPU_HERE, CPU_OF_GIGABYTE, CPU_THERE, DATA, ENCRYPTS, FELL, FILES_PER_SECOND, LEAST, MOST, NO_DATA, PEAK,
    RUNS, SESSIONS, SourceCache, VERIFIES,
};
use crate::bench::numbers;

/// What a number is that cannot be known.
const UNKNOWN: &str = "unknown";
/// So many columns a word has at most: a result may come from anybody.
const WORD: usize = 15;

/// Whether a row is of this kind.
pub fn is_of_peers(row: &Row) -> bool {
    row.condition(DATA).is_some()
}

/// What a row is about, as a title: `one file of 256M, 2 sessions at once`.
pub fn title(row: &Row) -> String {
    let (data, sessions) = (row.condition(DATA).unwrap_or_default(), row.condition(SESSIONS).unwrap_or("1"));
    if data == NO_DATA {
        return "not measured".to_owned();
    }
    let is_cold = row.condition(CACHE) == Some(SourceCache::Cold.name());
    let cache = if is_cold { SourceCache::Cold } else { SourceCache::Warm };
    match Data::of_condition(data).zip(sessions.parse().ok()) {
        Some((data, sessions)) => described(data, sessions, cache),
        // From another version.
        None => format!("{}, {} sessions", short(data), short(sessions)),
    }
}

/// The line above the rows of one kind of data.
pub fn heading() -> String {
    format!(
        "{:<15}{:>10} {:>6} {:>7} {:>7} {:>7} {:>7} {:<5}{}",
        "", "rate  ", "spread", "seconds", "cpu A", "cpu B", "cpu/GB", "enc", "verified"
    )
}

/// The line of a row; below it comes what went wrong.
pub fn line(row: &Row) -> Option<String> {
    let rate = row.value(value::BYTES_PER_SECOND)?;
    // One run has none.
    let runs = row.value(RUNS).filter(|runs| *runs > 1.0);
    let spread = runs.and(row.value(LEAST).zip(row.value(MOST))).map(|(least, most)| (most - least) / rate);
    let seconds = |name: &str| row.value(name).map_or_else(|| UNKNOWN.to_owned(), numbers::three_digits);
    let shown = match row.value(FILES_PER_SECOND) {
        Some(files) => format!("{} /s", numbers::count(files)),
        None => numbers::rate(rate),
    };
    let line = format!(
        "{:<15}{shown:>10} {:>6} {:>7} {:>7} {:>7} {:>7} {:<5}{}",
        short(&row.name),
        spread.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0)),
        row.value(value::SECONDS).map_or_else(|| "-".to_owned(), numbers::three_digits),
        seconds(CPU_HERE),
        seconds(CPU_THERE),
        seconds(CPU_OF_GIGABYTE),
        short(row.condition(ENCRYPTS).unwrap_or_default()),
        short(row.condition(VERIFIES).unwrap_or_default()),
    );
    Some(line.chars().take(80).collect::<String>().trim_end().to_owned())
}

/// A rate that was far from even: its fastest second, and when it fell. A command that has to log in first is slower in
/// the mean than on the way; this much is no news.
pub fn uneven(row: &Row) -> Option<String> {
    const FASTER: f64 = 1.25;
    let (rate, value) = (row.value(value::BYTES_PER_SECOND)?, |name: &str| row.value(name));
    let peak = value(PEAK).filter(|peak| *peak > rate * FASTER);
    let peak = peak.map(|peak| format!("{} in its fastest second", numbers::rate(peak)));
    let [after, before, then] = FELL;
    let fell = value(after).zip(value(before)).zip(value(then)).map(|((after, before), then)| {
        format!("fell after {after:.0} s from {} to {}", numbers::rate(before), numbers::rate(then))
    });
    let told: Vec<String> = peak.into_iter().chain(fell).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// A word of a result that somebody else may have written.
pub fn short(word: &str) -> String {
    word.chars().take(WORD).collect()
}

/// What the words of the last columns mean that were used.
pub fn legend(words: &[String]) -> Vec<String> {
    const MEANINGS: [(&str, &str); 5] = [
        ("transit", "protected by ssh on the way; nobody compares what was written"),
        ("checksum", "a checksum of each file, made while it travels"),
        ("crc32c", "a checksum of each page, made while it travels"),
        ("hash", "both sides read each file once more"),
        ("no", "TCP's checksum alone; as encryption: in the clear"),
    ];
    let used = MEANINGS.iter().filter(|(word, _)| words.iter().any(|used| used == word));
    used.map(|(word, meaning)| format!("{word:<14} {meaning}")).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::peers::contest::{OneRun, Runs};
    use crate::bench::peers::tool::Tool;
    use crate::bench::peers::{PeersCase, absent_row, row};
    use crate::bench::table::Table;
    use carrack_measure::result::Measurement;

    /// A measurement in which Carrack is the second, one program is wrong, and one is not there.
    pub(crate) fn sample() -> Measurement {
        let run =
            |seconds: f64, there: Option<f64>| OneRun { bytes: 268_435_456.0, seconds, here: 0.4, there, over: None };
        let of = |tool: Tool, (data, sessions): (Data, usize), runs: &Runs| {
            let case = PeersCase { data, sessions, cache: SourceCache::Warm };
            row(tool, [tool.encrypts(), tool.verifies()], case, runs)
        };
        let good = |seconds: f64| Runs { each: vec![run(seconds, Some(0.31))], fault: None };
        let file = (Data::File(256 << 20), 1);
        let tree = (Data::Tree { files: 16_384, size: 16 << 10 }, 2);
        let wrong = Runs { each: Vec::new(), fault: Some("the copy is wrong: 1 file missing".to_owned()) };
        let unknown = Runs { each: vec![run(2.0, None), run(1.0, None)], fault: None };
        let rows = vec![
            of(Tool::Gridftp, file, &good(0.2)),
            of(Tool::Carrack, file, &good(0.25)),
            of(Tool::Scp, file, &unknown),
            of(Tool::Bbcp, file, &wrong),
            of(Tool::RsyncDaemon, tree, &good(0.9)),
            absent_row(Tool::Mscp, "mscp is not on the PATH here"),
        ];
        Measurement {
            kind: "peers".to_owned(),
            target: "a far:b".to_owned(),
            started: 1,
            rows,
            ..Measurement::default()
        }
    }

    #[test]
    fn rate_that_was_not_even_has_a_line() {
        let with_peak = |peak: f64| {
            let mut row = Row::default();
            row.put(value::BYTES_PER_SECOND, 100e6);
            row.put(PEAK, peak);
            row
        };
        assert_eq!(uneven(&with_peak(110e6)), None);
        let mut row = with_peak(400e6);
        FELL.into_iter().zip([12.0, 400e6, 60e6]).for_each(|(name, value)| row.put(name, value));
        let told = uneven(&row).expect("it was not even");
        let expected = "400 MB/s in its fastest second; fell after 12 s from 400 MB/s to 60.0 MB/s";
        assert_eq!(told, expected);
        assert_eq!(uneven(&Row::default()), None);
    }

    #[test]
    fn table_of_programs_fits_and_names_who_is_missing() {
        let measured = sample();
        let mut table = Table::default();
        let mut lines: Vec<String> = measured.rows.iter().flat_map(|row| table.row(row)).collect();
        lines.extend(table.rest());
        lines.extend(table.legend());
        let text = lines.join("\n");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        for words in [
            "one file of 256M\n",
            "globus-url-copy 1.34 GB/s      -    0.20    0.40    0.31    2.64 no   no\n",
            "scp              134 MB/s   100%    2.00    0.40 unknown unknown ssh  transit\n",
            "bbcp           failed: the copy is wrong: 1 file missing\n",
            "\n16,384 files of 16K, 2 sessions at once\n",
            "mscp           mscp is not on the PATH here",
            "transit        protected by ssh",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }
}
