//! What a measurement promises.

use super::{Mutation, mutation};

const MEASURE: &str = "-p carrack-measure --lib";
const SCARCE: &str = "-p carrack --test system bench_disk_leaves_nothing_where_there_is_room";

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "what lies in the cache is measured as the disk's",
        "crates/carrack-measure/src/residency.rs",
        [
            "Some(share)) if share >= MOSTLY => Some(label::CACHED)",
            "Some(share)) if share > 2.0 => Some(label::CACHED)",
        ],
        MEASURE,
    ),
    mutation(
        "test data repeats",
        "crates/carrack-measure/src/data.rs",
        ["            self.number = self.number.wrapping_add(1);\n", ""],
        MEASURE,
    ),
    mutation(
        "a measurement that runs is swept by another",
        "crates/carrack-measure/src/scratch.rs",
        [
            "let is_free = matches!(carrack_sys::file::try_lock(&lock), Ok(true));",
            "let is_free = carrack_sys::file::try_lock(&lock).is_ok();",
        ],
        MEASURE,
    ),
    mutation(
        "a directory stays where there is no room for its lock",
        "crates/carrack-measure/src/scratch.rs",
        ["                    let _ = parent.remove_dir(&name);\n", ""],
        SCARCE,
    ),
    mutation(
        "the time of an operation counts from when it began, however late that was",
        "crates/carrack-measure/src/workers.rs",
        [
            "            own.behind = begin.elapsed();\n",
            "            own.behind = begin.elapsed();\n            begin = Instant::now();\n",
        ],
        MEASURE,
    ),
    mutation(
        "a rate that falls counts as settled",
        "crates/carrack-measure/src/steady.rs",
        ["if change.abs() <= SLOPE_MAX", "if change <= SLOPE_MAX"],
        MEASURE,
    ),
    mutation(
        "text of a result that somebody else wrote drives a terminal",
        "crates/carrack/src/bench/document.rs",
        [
            "    text.chars().map(|character| if drives_terminal(character) { '\\u{fffd}' } else { character }).collect()\n",
            "    let _ = drives_terminal;\n    text.to_owned()\n",
        ],
        "-p carrack --bin carrack bench::hostile_tests",
    ),
    mutation(
        "files that were removed count as laid",
        "crates/carrack-measure/src/disk/data_rows.rs",
        ["let old = self.laid.take().map_or(", "let old = self.laid.map_or("],
        MEASURE,
    ),
    mutation(
        "workers wait for one that could not be made",
        "crates/carrack-measure/src/workers.rs",
        ["                    shared.start_line.fail();\n", ""],
        MEASURE,
    ),
    mutation(
        "a mapping is longer than its file",
        "crates/carrack-sys/src/gauge.rs",
        ["if file.metadata()?.len() < len {", "if file.metadata()?.len() > u64::MAX - len {"],
        "-p carrack-sys --lib gauge::",
    ),
];
