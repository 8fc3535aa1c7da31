//! What is measured, in which order: the short round by default, the full one, or what somebody chose.

use std::time::Duration;

use carrack_core::words;

words! {
    /// One thing that is measured.
    pub enum Operation {
        Write "write" "write a new file from its start to its end"
        Rewrite "rewrite" "write over a file that is there"
        Read "read" "read the file from its start to its end, nothing of it being in the cache"
        Reread "reread" "read it again"
        RandomRead "random-read" "read records in no order, each once"
        RandomWrite "random-write" "write over records in no order, each once"
        Backward "backward" "read from the end to the start"
        Strided "strided" "read every 17th record, then those beside them"
        MmapRead "mmap-read" "read through a memory mapping"
        MmapWrite "mmap-write" "write over the file through a memory mapping"
        Files "files" "create, look up and delete small files, in order and in no order"
    }
}

words! {
    /// How reads and writes reach the storage.
    pub enum Mode {
        Cached "cached" "through the page cache, nothing is synced"
        Fdatasync "fdatasync" "through the page cache, one fdatasync at the end, whose time counts"
        Dsync "dsync" "each write waits until it is on storage (O_DSYNC)"
        Direct "direct" "past the page cache (O_DIRECT)"
    }
}

impl Operation {
    /// Whether it changes the file.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Rewrite | Self::RandomWrite | Self::MmapWrite)
    }

    /// Whether single operations, rather than bytes, are what people look at.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }

    /// Whether this way of reaching storage says something of its own: a read is never synced, and a mapping neither
    /// bypasses the cache nor waits for each write.
    fn has_mode(self, mode: Mode) -> bool {
        match self {
            Self::Files => false,
            Self::MmapRead => mode == Mode::Cached,
            Self::MmapWrite => matches!(mode, Mode::Cached | Mode::Fdatasync),
            write if write.is_write() => true,
            Self::Reread => mode == Mode::Cached,
            _ => matches!(mode, Mode::Cached | Mode::Direct),
        }
    }
}

/// One row to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is done.
    pub operation: Operation,
    /// How.
    pub mode: Mode,
    /// Bytes of one operation.
    pub record: u64,
    /// Operations under way at a time on each file.
    pub depth: usize,
    /// Files, each with its share of the bytes and with its own `depth`.
    pub threads: usize,
    /// At which rate operations arrive.
    pub rate: Option<Rate>,
    /// No operation begins later than this.
    pub limit: Option<Duration>,
}

/// How often an operation is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many a second.
    PerSecond(f64),
    /// This share of the most that the same row without a rate has reached.
    OfMost(f64),
}

/// What somebody chose; every list that is empty has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// What is done.
    pub operations: Vec<Operation>,
    /// How.
    pub modes: Vec<Mode>,
    /// Record sizes.
    pub records: Vec<u64>,
    /// Queue depths.
    pub depths: Vec<usize>,
    /// Numbers of files.
    pub threads: Vec<usize>,
    /// Operations a second, of random reads and writes.
    pub rate: Option<f64>,
    /// The full round.
    pub full: bool,
    /// The most time for a row; zero: as long as it takes.
    pub limit: Option<Duration>,
}

/// Records of the short round.
const SEQUENTIAL_RECORD: u64 = 1 << 20;
const RANDOM_RECORD: u64 = 4096;
/// Time for a row of bytes, and for one of single operations.
const LIMIT: Duration = Duration::from_secs(3);
const RANDOM_LIMIT: Duration = Duration::from_millis(1500);
/// A full round shall end some day, also on a slow disk.
const FULL_LIMIT: Duration = Duration::from_secs(10);
/// Queue depth at which most devices give all they have.
const DEEP: usize = 16;
/// Records of the full round: 4 KiB to 16 MiB.
const FULL_RECORDS: std::ops::RangeInclusive<u32> = 12..=24;

impl Choice {
    /// The rows to measure, in an order in which each finds the file that it needs.
    pub fn steps(&self) -> Vec<Step> {
        let chosen = !self.operations.is_empty()
            || !self.modes.is_empty()
            || !self.records.is_empty()
            || !self.depths.is_empty()
            || !self.threads.is_empty()
            || self.rate.is_some();
        match (self.full, chosen) {
            (true, _) => self.full_round(),
            (false, true) => self.matrix(Operation::ALL, &[SEQUENTIAL_RECORD]),
            (false, false) => self.short_round(),
        }
    }

    fn limit(&self, default: Duration) -> Option<Duration> {
        Some(self.limit.unwrap_or(default)).filter(|limit| !limit.is_zero())
    }

    fn step(&self, operation: Operation, mode: Mode) -> Step {
        let random = operation.is_random();
        Step {
            operation,
            mode,
            record: if random { RANDOM_RECORD } else { SEQUENTIAL_RECORD },
            depth: 1,
            threads: 1,
            rate: None,
            limit: self.limit(if random || operation == Operation::Files { RANDOM_LIMIT } else { LIMIT }),
        }
    }

    /// dd's four modes, bonnie++'s and IOzone's operations once each, and what a device does with single records.
    fn short_round(&self) -> Vec<Step> {
        use Mode::{Cached, Direct, Dsync, Fdatasync};
        use Operation as O;
        let mut steps = Vec::new();
        let mut add = |operation, mode| steps.push(self.step(operation, mode));
        add(O::Write, Cached);
        add(O::Write, Dsync);
        add(O::Write, Direct);
        // The file that all others find.
        add(O::Write, Fdatasync);
        for (operation, mode) in [
            (O::Rewrite, Fdatasync),
            (O::Read, Cached),
            (O::Reread, Cached),
            (O::Read, Direct),
            (O::Backward, Cached),
            (O::Strided, Cached),
            (O::MmapRead, Cached),
            (O::MmapWrite, Fdatasync),
            (O::RandomRead, Direct),
        ] {
            add(operation, mode);
        }
        let deep = Step { depth: DEEP, ..self.step(O::RandomRead, Direct) };
        steps.push(deep.clone());
        steps.push(Step { rate: Some(Rate::OfMost(0.5)), ..deep });
        steps.push(self.step(O::RandomWrite, Dsync));
        steps.push(self.step(O::RandomWrite, Direct));
        steps.push(Step { depth: DEEP, ..self.step(O::RandomWrite, Direct) });
        steps.push(self.step(O::Files, Cached));
        steps
    }

    /// IOzone's grid, then what bonnie++ measures beside it.
    fn full_round(&self) -> Vec<Step> {
        use Operation as O;
        let grid: Vec<O> = O::ALL.iter().copied().filter(|operation| *operation != O::Files).collect();
        let records: Vec<u64> = FULL_RECORDS.map(|power| 1 << power).collect();
        let full = Self { limit: Some(self.limit.unwrap_or(FULL_LIMIT)), ..self.clone() };
        let mut steps = full.matrix(&grid, &records);
        let chosen = &self.operations;
        if chosen.is_empty() || chosen.contains(&O::Files) {
            steps.push(full.step(O::Files, Mode::Cached));
        }
        steps
    }

    /// Everything that was chosen with everything else. The file is written anew for each record size, mode, depth and
    /// number of files; all other operations of these follow.
    fn matrix(&self, operations: &[Operation], records: &[u64]) -> Vec<Step> {
        let operations = or(&self.operations, operations);
        let modes = or(&self.modes, &[Mode::Cached]);
        let mut steps: Vec<Step> = Vec::new();
        for &threads in or(&self.threads, &[1]) {
            for &depth in or(&self.depths, &[1]) {
                for &record in or(&self.records, records) {
                    for &mode in modes {
                        let each = Operation::ALL.iter().filter(|operation| operations.contains(operation));
                        for &operation in each {
                            let step = self.chosen_step(operation, mode, record, depth, threads);
                            if let Some(step) = step.filter(|step| !steps.contains(step)) {
                                steps.push(step);
                            }
                        }
                    }
                }
            }
        }
        steps
    }

    /// `None` where the mode means nothing to the operation. Where none of the chosen ones does, the page cache is
    /// what a read goes through.
    fn chosen_step(&self, operation: Operation, mode: Mode, record: u64, depth: usize, threads: usize) -> Option<Step> {
        let modes = or(&self.modes, &[Mode::Cached]);
        let mode = match operation.has_mode(mode) {
            true => mode,
            false if modes.iter().any(|&mode| operation.has_mode(mode)) => return None,
            false => Mode::Cached,
        };
        let step = self.step(operation, mode);
        if operation == Operation::Files {
            return Some(Step { threads, ..step });
        }
        // Unless it was chosen, single operations are those of databases, and all others those of copies.
        let record = if self.records.is_empty() && !self.full { step.record } else { record };
        let rate = self.rate.filter(|_| operation.is_random()).map(Rate::PerSecond);
        Some(Step { record, depth, threads, rate, ..step })
    }
}

fn or<'a, T>(chosen: &'a [T], default: &'a [T]) -> &'a [T] {
    if chosen.is_empty() { default } else { chosen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_round_has_every_operation_and_ends_within_a_minute() {
        let steps = Choice::default().steps();
        for operation in Operation::ALL {
            assert!(steps.iter().any(|step| step.operation == *operation), "{}", operation.name());
        }
        // Files are six rows.
        let rows =
            steps.iter().map(|step| if step.operation == Operation::Files { 6 } else { 1 } * step.limit.unwrap());
        assert!(rows.sum::<Duration>() <= Duration::from_secs(60));
        let writes = steps.iter().filter(|step| step.operation == Operation::Write).map(|step| step.mode);
        assert_eq!(writes.collect::<Vec<_>>(), [Mode::Cached, Mode::Dsync, Mode::Direct, Mode::Fdatasync]);
    }

    #[test]
    fn full_round_is_a_grid_of_records_and_operations() {
        let steps = Choice { full: true, ..Choice::default() }.steps();
        assert_eq!(steps.len(), 13 * 10 + 1);
        assert_eq!((steps[0].record, steps[129].record), (4096, 16 << 20));
        let some = Choice { full: true, records: vec![8192], operations: vec![Operation::Read], ..Choice::default() };
        assert_eq!(some.steps().len(), 1);
    }

    #[test]
    fn matrix_leaves_out_what_means_nothing() {
        let choice = Choice {
            operations: vec![Operation::Read, Operation::Write, Operation::MmapRead],
            modes: vec![Mode::Fdatasync, Mode::Direct],
            records: vec![4096],
            ..Choice::default()
        };
        let rows: Vec<_> = choice.steps().iter().map(|step| (step.operation, step.mode)).collect();
        // A write comes first, whatever the order they were named in.
        let expected = [
            (Operation::Write, Mode::Fdatasync),
            (Operation::MmapRead, Mode::Cached),
            (Operation::Write, Mode::Direct),
            (Operation::Read, Mode::Direct),
        ];
        assert_eq!(rows, expected);
        let depths = Choice { operations: vec![Operation::RandomRead], depths: vec![1, 8], ..Choice::default() };
        assert_eq!(depths.steps().iter().map(|step| step.depth).collect::<Vec<_>>(), [1, 8]);
    }

    #[test]
    fn limit_of_zero_is_none() {
        let choice = |limit| Choice { operations: vec![Operation::Read], limit, ..Choice::default() }.steps()[0].limit;
        assert_eq!(choice(Some(Duration::ZERO)), None);
        assert_eq!(choice(None), Some(LIMIT));
        assert_eq!(choice(Some(Duration::from_secs(9))), Some(Duration::from_secs(9)));
    }
}
