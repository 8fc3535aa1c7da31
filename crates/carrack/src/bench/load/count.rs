//! What became of each file of a crowd: what its client was told beside what was found afterwards.

use std::time::Duration;

use carrack_core::words;
use carrack_measure::histogram::Histogram;

use crate::crowd::order::ClientWay;
use crate::crowd::told::{CarryOutcome, FileCarried};

words! {
    /// What was found of a file after all were done.
    pub enum Fate {
        Whole "whole" "size and digest are those of what was sent"
        Short "short" "it has fewer bytes"
        Wrong "wrong" "as many bytes or more, and another digest; or it cannot be read"
        Missing "missing" "it is not there"
    }
}

/// Size in bytes, and BLAKE3.
pub type Content = (u64, [u8; 32]);

/// What was found under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenFile {
    /// A file.
    File(Content),
    /// Something that cannot be read: why.
    Unreadable(String),
    /// Nothing.
    Nothing,
}

/// A file of the crowd.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What its client saw.
    pub carried: FileCarried,
    /// Where the client ran.
    pub host: String,
    /// What was found.
    pub seen: SeenFile,
    /// What that means.
    pub fate: Fate,
}

impl Judged {
    /// Compares what was found with what had to be there.
    pub fn new(carried: FileCarried, host: &str, expected: &Content, seen: SeenFile) -> Self {
        let fate = match &seen {
            SeenFile::Nothing => Fate::Missing,
            SeenFile::File((size, _)) if *size < expected.0 => Fate::Short,
            SeenFile::File(content) if content == expected => Fate::Whole,
            SeenFile::File(_) | SeenFile::Unreadable(_) => Fate::Wrong,
        };
        Self { carried, host: host.to_owned(), seen, fate }
    }

    /// Whether anything is to be said of it.
    pub fn is_plain(&self) -> bool {
        self.fate == Fate::Whole && self.carried.said_done() && self.carried.attempts.len() == 1
    }

    /// Its size in bytes, if it is a file.
    pub fn size(&self) -> Option<u64> {
        if let SeenFile::File((size, _)) = self.seen { Some(size) } else { None }
    }

    /// Why it is not as it should be, in a sentence: the last attempt that says something.
    pub fn why(&self) -> String {
        let attempts = self.carried.attempts.iter().rev();
        let said =
            attempts.filter(|attempt| attempt.outcome != CarryOutcome::Done).find(|attempt| !attempt.why.is_empty());
        match (&self.seen, said) {
            (SeenFile::Unreadable(why), _) => why.clone(),
            (_, Some(attempt)) => attempt.why.clone(),
            _ if self.fate != Fate::Whole && self.carried.said_done() => {
                "its client was told that it is there".to_owned()
            }
            _ => self.carried.attempts.last().map(|last| last.outcome.name().to_owned()).unwrap_or_default(),
        }
    }
}

/// Counts over files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// Files that had to be carried. Each is whole, short, wrong or missing.
    pub files: u64,
    pub whole: u64,
    pub short: u64,
    pub wrong: u64,
    pub missing: u64,
    /// Files that are not whole although their clients were told that all went well.
    pub silent: u64,
    /// Attempts that the server did not take, that were lost, that the end of the time ended, and that failed
    /// otherwise.
    pub refused: u64,
    pub lost: u64,
    pub timed_out: u64,
    pub failed: u64,
    /// Attempts behind each file's first.
    pub repeated: u64,
    /// Data connections that were lost and made again without an attempt being lost.
    pub streams_lost: u64,
}

impl LoadCounts {
    /// Counts them.
    pub fn of<'a>(files: impl IntoIterator<Item = &'a Judged>) -> Self {
        let mut counts = Self::default();
        for file in files {
            counts.files += 1;
            *match file.fate {
                Fate::Whole => &mut counts.whole,
                Fate::Short => &mut counts.short,
                Fate::Wrong => &mut counts.wrong,
                Fate::Missing => &mut counts.missing,
            } += 1;
            counts.silent += u64::from(file.fate != Fate::Whole && file.carried.said_done());
            for attempt in &file.carried.attempts {
                match attempt.outcome {
                    CarryOutcome::Refused => counts.refused += 1,
                    CarryOutcome::Lost => counts.lost += 1,
                    CarryOutcome::TimedOut => counts.timed_out += 1,
                    CarryOutcome::Failed => counts.failed += 1,
                    CarryOutcome::Done | CarryOutcome::Stopped => {}
                }
            }
            counts.repeated += file.carried.attempts.len().saturating_sub(1) as u64;
            counts.streams_lost = counts.streams_lost.saturating_add(file.carried.streams_lost);
        }
        counts
    }

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("files", self.files),
            ("whole", self.whole),
            ("short", self.short),
            ("wrong", self.wrong),
            ("missing", self.missing),
            ("silent", self.silent),
            ("refused", self.refused),
            ("lost", self.lost),
            ("timed_out", self.timed_out),
            ("failed", self.failed),
            ("repeated", self.repeated),
            ("streams_lost", self.streams_lost),
        ]
    }
}

/// What one client did.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientDone {
    /// Its number.
    pub number: u32,
    /// Where it ran.
    pub host: String,
    /// Which way its files went.
    pub way: ClientWay,
    /// Files that are whole, and their bytes.
    pub whole: u64,
    pub bytes: u64,
    /// From the common start to its last file.
    pub time: Duration,
}

impl ClientDone {
    /// Bytes a second over its time.
    pub fn rate(&self) -> f64 {
        let seconds = self.time.as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 }
    }
}

/// The clients of one way, by their numbers.
pub fn clients(files: &[Judged], way: ClientWay, size: u64) -> Vec<ClientDone> {
    let mut clients: Vec<ClientDone> = Vec::new();
    let mut own: Vec<&Judged> = files.iter().filter(|file| file.carried.way == way).collect();
    own.sort_by_key(|file| (file.carried.client, file.carried.file));
    for file in own {
        let number = file.carried.client;
        if clients.last().is_none_or(|client| client.number != number) {
            let (host, time) = (file.host.clone(), Duration::ZERO);
            clients.push(ClientDone { number, host, way, whole: 0, bytes: 0, time });
        }
        if let Some(client) = clients.last_mut() {
            let is_whole = file.fate == Fate::Whole;
            client.whole += u64::from(is_whole);
            client.bytes = client.bytes.saturating_add(if is_whole { size } else { 0 });
            client.time = client.time.max(file.carried.ended);
        }
    }
    clients
}

/// Jain's index of fairness: 1 where all have the same, 1/n where one of n has everything. 1 where nobody has anything.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// How long whole files took, from the client's beginning with each.
pub fn times(files: &[Judged], way: ClientWay) -> Histogram {
    let mut times = Histogram::default();
    for file in files.iter().filter(|file| file.carried.way == way && file.fate == Fate::Whole) {
        times.record(file.carried.ended.saturating_sub(file.carried.began));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::told::Attempt;

    const EXPECTED: Content = (10, [7; 32]);

    fn file(client: u32, outcomes: &[CarryOutcome], seen: SeenFile) -> Judged {
        let carried = FileCarried {
            client,
            file: 0,
            way: ClientWay::Put,
            source: 0,
            began: Duration::from_secs(1),
            ended: Duration::from_secs(u64::from(client) + 1),
            attempts: outcomes.iter().map(|outcome| Attempt::new(*outcome, "")).collect(),
            streams_lost: 1,
        };
        Judged::new(carried, "here", &EXPECTED, seen)
    }

    #[test]
    fn every_file_is_counted_once_and_every_attempt_by_how_it_ended() {
        use CarryOutcome as O;
        let files = [
            file(1, &[O::Done], SeenFile::File(EXPECTED)),
            file(2, &[O::Refused, O::Lost, O::Done], SeenFile::File(EXPECTED)),
            file(3, &[O::Lost], SeenFile::File((4, [7; 32]))),
            file(4, &[O::Done], SeenFile::File((9, [1; 32]))),
            file(5, &[O::Done], SeenFile::File((10, [1; 32]))),
            file(6, &[O::Refused], SeenFile::Nothing),
            file(7, &[O::TimedOut], SeenFile::Nothing),
            file(8, &[O::Failed], SeenFile::Unreadable("input/output error".to_owned())),
        ];
        let expected = LoadCounts {
            files: 8,
            whole: 2,
            short: 2,
            wrong: 2,
            missing: 2,
            silent: 2,
            refused: 2,
            lost: 2,
            timed_out: 1,
            failed: 1,
            repeated: 2,
            streams_lost: 8,
        };
        assert_eq!(LoadCounts::of(&files), expected);
        assert_eq!(files.iter().map(Judged::is_plain).collect::<Vec<_>>()[..2], [true, false]);
        assert_eq!(files[7].why(), "input/output error");
        assert_eq!(files[4].why(), "its client was told that it is there");
        let clients = clients(&files, ClientWay::Put, 10);
        assert_eq!((clients.len(), clients[1].whole, clients[1].rate()), (8, 1, 10.0 / 3.0));
        assert_eq!(clients[2].bytes, 0);
        assert_eq!(times(&files, ClientWay::Put).count(), 2);
        assert!(super::clients(&files, ClientWay::Get, 10).is_empty());
    }

    #[test]
    fn fairness_is_one_where_all_have_the_same_and_a_share_where_one_has_everything() {
        assert!((jain(&[5.0; 100]) - 1.0).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((jain(&[3.0, 1.0]) - 0.8).abs() < 1e-12);
        assert!((jain(&[]) - 1.0).abs() < 1e-12 && (jain(&[0.0, 0.0]) - 1.0).abs() < 1e-12);
    }
}
