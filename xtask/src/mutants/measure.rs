//! What a measurement promises.

use super::{Mutation, mutation};

const MEASURE: &str = "-p carrack-measure --lib";

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
            "if matches!(carrack_sys::file::try_lock(&lock), Ok(true)) && remove(",
            "if carrack_sys::file::try_lock(&lock).is_ok() && remove(",
        ],
        MEASURE,
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
];
