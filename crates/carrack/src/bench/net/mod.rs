//! The path between two hosts, without any storage: bytes that one makes and the other drops, over the links of a copy.

pub mod path;
pub mod plan;
pub mod row;

use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::{Location, SyntheticKind};
use carrack_core::report::LinkReport;
use carrack_core::request::{CopyOptions, CopyRequest, Digests, Encrypt, Verify};
use carrack_engine::Context;
use carrack_measure::facts;
use carrack_measure::result::{Measurement, Row, Warning, label, value};

use self::plan::{NetChoice, NetMode, NetStep, NetWay};
use super::ladder::TellRow;
use super::moved::{self, Moved};

/// What to measure.
pub struct NetRequest {
    /// The first host: bytes that go *there* come from it.
    pub from: Location,
    /// The second.
    pub to: Location,
    /// How each is reached, and the rest of how a copy is made.
    pub options: CopyOptions,
    /// Which rows.
    pub choice: NetChoice,
    /// How long each is measured.
    pub time: Duration,
    /// What is left out before that.
    pub warm_up: Duration,
    /// In the clear, the receiver's kernel throws the bytes away.
    pub discard: bool,
    /// Look for the way that packets take, both ways, before the first row.
    pub path: bool,
}

/// More than anybody moves in the time that a measurement may take.
const BYTES: u64 = 1 << 42;

/// Measures, and tells each row when it is there. What ended it early, or kept a row from being measured, stands beside
/// what was measured.
pub fn measure(request: &NetRequest, context: &Context, tell: &mut dyn TellRow) -> (Measurement, Option<Failure>) {
    let (begin, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let mut run = NetRun { request, context, facts: facts::host().0, notes: Vec::new(), first: None, over: None };
    let mut rows = Vec::new();
    if request.path {
        rows.extend(run.path(tell));
        rows.iter().for_each(|row| tell.row(row));
        run.facts.extend(path::facts(&rows));
    }
    for step in request.choice.steps() {
        for row in run.step(step, tell) {
            tell.row(&row);
            rows.push(row);
        }
    }
    let from = if request.from.is_remote() { format!("{} ", request.from) } else { String::new() };
    let incomplete = run
        .first
        .as_ref()
        .map(|why| Warning { word: label::INCOMPLETE.to_owned(), text: format!("not everything was measured: {why}") });
    let measured = Measurement {
        kind: "net".to_owned(),
        target: format!("{from}{}", request.to),
        started,
        elapsed: begin.elapsed(),
        settings: vec![
            ("time_seconds".to_owned(), request.time.as_secs_f64().to_string()),
            ("warm_up_seconds".to_owned(), request.warm_up.as_secs_f64().to_string()),
        ],
        facts: run.facts,
        warnings: incomplete.into_iter().collect(),
        rows,
    };
    (measured, run.first)
}

/// Whether a result has any number at all.
pub fn has_numbers(measured: &Measurement) -> bool {
    measured.rows.iter().any(|row| row.value(value::BYTES_PER_SECOND).is_some())
}

struct NetRun<'a> {
    request: &'a NetRequest,
    context: &'a Context,
    facts: Vec<(String, String)>,
    /// What has been told: each row would say it again.
    notes: Vec<String>,
    /// The first failure of a row.
    first: Option<Failure>,
    /// The failure that no other row would escape.
    over: Option<Failure>,
}

/// One transfer of a step: whether it goes back, what was seen, what ended it early, and what a person should know.
type Watched = (bool, Moved, Option<Failure>, Vec<String>);

impl NetRun<'_> {
    /// Measures a step: a row for each direction. What could not be measured is a row with the reason.
    fn step(&mut self, step: NetStep, tell: &mut dyn TellRow) -> Vec<Row> {
        if let Some(why) = &self.over {
            let ways: &[bool] = match step.way {
                NetWay::There => &[false],
                NetWay::Back => &[true],
                NetWay::Both => &[false, true],
            };
            let error = Some(format!("{}: {why}", row::NOT_TRIED));
            return ways.iter().map(|back| Row { error: error.clone(), ..row::named(step, *back) }).collect();
        }
        let mut rows = Vec::new();
        for (back, moved, failure, notes) in self.transfers(step) {
            self.tell_notes(notes, tell);
            let mut row = row::named(step, back);
            row::fill(&mut row, &moved, self.request.warm_up);
            if self.discards(step.mode) {
                row.labels.push(label::DISCARDED.to_owned());
            }
            moved.link.iter().for_each(|link| self.note_link(link));
            if let Some(why) = failure {
                row.error = Some(why.to_string());
                if row.value(value::BYTES_PER_SECOND).is_some() {
                    row.labels.push(label::INCOMPLETE.to_owned());
                }
                if is_of_all(&why) {
                    self.over.get_or_insert_with(|| why.clone());
                }
                self.first.get_or_insert(why);
            }
            rows.push(row);
        }
        rows
    }

    /// Makes the transfers of a step.
    fn transfers(&self, step: NetStep) -> Vec<Watched> {
        let one = |back: bool| {
            let mut notes = Vec::new();
            let (warm_up, time) = (self.request.warm_up, self.request.time);
            let mut enough = |moved: &Moved| row::is_enough(moved, warm_up, time);
            let copy = self.copy(step, back);
            let mut note = |text: &str| notes.push(text.to_owned());
            let (moved, failure) = moved::watch_until(copy, self.context, &mut note, &mut enough);
            (back, moved, failure, notes)
        };
        match step.way {
            NetWay::There => vec![one(false)],
            NetWay::Back => vec![one(true)],
            NetWay::Both => std::thread::scope(|scope| {
                let back = scope.spawn(|| one(true));
                let there = one(false);
                let lost = || Failure::new(ErrorCode::Internal, Side::Command, "a thread ended by a panic");
                vec![there, back.join().unwrap_or_else(|_| (true, Moved::default(), Some(lost()), Vec::new()))]
            }),
        }
    }

    /// The way in both directions, found beside a transfer that is hardly one.
    fn path(&mut self, tell: &mut dyn TellRow) -> Vec<Row> {
        let step = NetStep { streams: Some(1), mode: NetMode::Verified, way: NetWay::There };
        let mut copy = self.copy(step, false);
        copy.options.rate_limit = Some(path::RATE);
        copy.options.trace = true;
        let since = Instant::now();
        let (mut notes, mut enough) = (Vec::new(), |moved: &Moved| path::is_enough(moved, since));
        let (moved, failure) =
            moved::watch_until(copy, self.context, &mut |text| notes.push(text.to_owned()), &mut enough);
        self.tell_notes(notes, tell);
        moved.link.iter().for_each(|link| self.note_link(link));
        let why = failure.as_ref().map(ToString::to_string);
        if let Some(failure) = failure {
            if is_of_all(&failure) {
                self.over = Some(failure.clone());
            }
            self.first = Some(failure);
        }
        [(&moved.source, false), (&moved.destination, true)]
            .map(|(end, back)| path::row(end.path.as_ref(), back, why.clone()))
            .into()
    }

    /// Tells what was not told before.
    fn tell_notes(&mut self, notes: Vec<String>, tell: &mut dyn TellRow) {
        for note in notes {
            if !self.notes.contains(&note) {
                tell.note(&note);
                self.notes.push(note);
            }
        }
    }

    fn discards(&self, mode: NetMode) -> bool {
        self.request.discard && mode == NetMode::Clear
    }

    fn copy(&self, step: NetStep, back: bool) -> CopyRequest {
        let request = self.request;
        let (from, to) = if back { (&request.to, &request.from) } else { (&request.from, &request.to) };
        let (source, destination) = match back {
            false => (request.options.source.clone(), request.options.destination.clone()),
            true => (request.options.destination.clone(), request.options.source.clone()),
        };
        let (encrypt, digest, verify) = match step.mode {
            NetMode::Clear => (Encrypt::None, Digests::NONE, Verify::None),
            NetMode::Encrypted => (Encrypt::Tls, Digests::NONE, Verify::None),
            NetMode::Verified => (Encrypt::Tls, Digests::BLAKE3, Verify::Wire),
        };
        let options = CopyOptions {
            streams: step.streams,
            encrypt,
            digest,
            verify,
            source,
            destination,
            resume: false,
            retries: 0,
            ..request.options.clone()
        };
        let sink = if self.discards(step.mode) { SyntheticKind::Null } else { SyntheticKind::Memory };
        let sources = vec![from.synthetic(SyntheticKind::Zeros(BYTES))];
        CopyRequest { sources, destination: to.synthetic(sink), options }
    }

    /// What data connections are made of explains other numbers next month.
    fn note_link(&mut self, link: &LinkReport) {
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() && !self.facts.iter().any(|(known, _)| known == name) {
                self.facts.push((name.to_owned(), value.to_owned()));
            }
        };
        put("link.kind", link.kind.name());
        put("link.address", &link.address);
        if link.cipher.starts_with("TLS") {
            put("link.cipher", &link.cipher);
        }
    }
}

/// Whether every other row would fail as well: who waits for a host that is gone waits for each.
fn is_of_all(why: &Failure) -> bool {
    matches!(
        why.code,
        ErrorCode::ConnectFailed
            | ErrorCode::ConnectionLost
            | ErrorCode::Silence
            | ErrorCode::AgentMissing
            | ErrorCode::AgentRefused
            | ErrorCode::HostUnknown
            | ErrorCode::AuthenticationFailed
            | ErrorCode::KeyMismatch
            | ErrorCode::Interrupted
            | ErrorCode::Terminated
    )
}
