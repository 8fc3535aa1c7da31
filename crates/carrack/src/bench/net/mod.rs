//! The path between two hosts, without any storage: bytes that one makes and the other drops, over the links of a copy.

mod at_once;
pub mod listening;
pub mod path;
pub mod plan;
pub mod row;
mod said;
pub mod theirs;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::{Location, SyntheticKind};
use carrack_core::report::LinkReport;
use carrack_core::request::{CopyOptions, CopyRequest, Digests, Encrypt, LinkKind, LinkSet, Verify};
use carrack_engine::{Context, system_failure, threads};
use carrack_measure::facts;
use carrack_measure::result::{Measurement, Row, label, value};

use self::at_once::{AtOnce, PairedWay};
use self::plan::{NetChoice, NetMode, NetStep, NetWay};
use super::ladder::{TellRow, incomplete};
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
    /// Send nothing but what that takes.
    pub only_path: bool,
}

/// More than anybody moves in the time that a measurement may take: five minutes at 2 Tbit/s.
const BYTES: u64 = 1 << 46;
/// The setting that names the congestion control that was asked for.
pub const CONGESTION: &str = "congestion";
/// The fact that says where data connections go to: an address without its port, which is another one in each run.
pub const ADDRESS: &str = "link.address";

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
    let steps = if request.only_path { Vec::new() } else { request.choice.steps() };
    for step in steps {
        for row in run.step(step, tell) {
            tell.row(&row);
            rows.push(row);
        }
    }
    let from = if request.from.is_remote() { format!("{} ", request.from) } else { String::new() };
    let measured = Measurement {
        kind: "net".to_owned(),
        target: format!("{from}{}", request.to),
        started,
        elapsed: begin.elapsed(),
        settings: settings(request),
        facts: run.facts,
        warnings: run.first.as_ref().map(incomplete).into_iter().collect(),
        rows,
    };
    (measured, run.first)
}

/// What was asked for. What was not, and is as always, is left out.
fn settings(request: &NetRequest) -> Vec<(String, String)> {
    let options = &request.options;
    let links = Some(options.links).filter(|links| *links != LinkSet::ALL);
    let links = links.map(|links| LinkKind::BETWEEN_HOSTS.iter().filter(move |kind| links.allows(**kind)));
    let links = links.map(|kinds| kinds.map(|kind| kind.name()).collect::<Vec<_>>().join(" "));
    let settings = [
        ("time_seconds", Some(request.time.as_secs_f64().to_string())),
        ("warm_up_seconds", Some(request.warm_up.as_secs_f64().to_string())),
        (CONGESTION, options.congestion.map(|control| control.name().to_owned())),
        ("discard", request.discard.then(|| "yes".to_owned())),
        ("link", links),
        ("bind", options.source.reach.local_address.map(|address| address.to_string())),
    ];
    settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
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

/// One transfer of a step.
struct Watched {
    /// Whether it goes back.
    back: bool,
    moved: Moved,
    /// What of its beginning is left out.
    warm_up: Duration,
    /// What ended it early.
    failure: Option<Failure>,
    /// What a person should know.
    notes: Vec<String>,
}

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
        for watched in self.transfers(step) {
            self.tell_notes(&watched.notes, tell);
            rows.push(self.row(step, watched));
        }
        rows
    }

    fn row(&mut self, step: NetStep, watched: Watched) -> Row {
        let Watched { back, moved, warm_up, failure, .. } = watched;
        let mut row = row::named(step, back);
        row::fill(&mut row, &moved, warm_up);
        if self.discards(step.mode) {
            row.labels.push(label::DISCARDED.to_owned());
        }
        let has_numbers = row.value(value::BYTES_PER_SECOND).is_some();
        if has_numbers && (failure.is_some() || !row::is_whole(&moved, warm_up, self.request.time)) {
            row.labels.push(label::INCOMPLETE.to_owned());
        }
        moved.link.iter().for_each(|link| self.note_link(link));
        row.error = failure.as_ref().map(ToString::to_string);
        if !has_numbers {
            row.error.get_or_insert_with(|| row::NOTHING_CAME.to_owned());
        }
        if let Some(why) = failure {
            if is_of_all(&why) {
                self.over.get_or_insert_with(|| why.clone());
            }
            self.first.get_or_insert(why);
        }
        row
    }

    /// Makes the transfers of a step.
    fn transfers(&self, step: NetStep) -> Vec<Watched> {
        if step.way != NetWay::Both {
            return vec![self.transfer(step, step.way == NetWay::Back, None)];
        }
        let all = AtOnce::default();
        std::thread::scope(|scope| {
            let lost = |failure| Watched {
                back: true,
                moved: Moved::default(),
                warm_up: Duration::ZERO,
                failure: Some(failure),
                notes: Vec::new(),
            };
            let transfer = || self.transfer(step, true, Some(all.begin(true)));
            let back = match threads::start_scoped(scope, "the way back", transfer) {
                Ok(back) => back,
                Err(error) => return vec![lost(system_failure(Side::Command, &error))],
            };
            let there = self.transfer(step, false, Some(all.begin(false)));
            let panicked = || Failure::new(ErrorCode::Internal, Side::Command, "a thread ended by a panic");
            vec![there, back.join().unwrap_or_else(|_| lost(panicked()))]
        })
    }

    /// Makes a transfer; `way` knows the other one that is made at the same time.
    fn transfer(&self, step: NetStep, back: bool, way: Option<PairedWay<'_>>) -> Watched {
        let mut notes = Vec::new();
        let (warm_up, time) = (self.request.warm_up, self.request.time);
        let mut enough = |moved: &Moved| match &way {
            Some(way) => way.is_enough(moved, warm_up, time),
            None => row::is_enough(moved, warm_up, time),
        };
        let copy = self.copy(step, back);
        let mut note = |text: &str| notes.push(text.to_owned());
        let (moved, failure) = moved::watch_until(copy, self.context, &mut note, &mut enough);
        let lag = way.map_or(Duration::ZERO, |way| way.lag());
        Watched { back, moved, warm_up: warm_up + lag, failure, notes }
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
        self.tell_notes(&notes, tell);
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
    fn tell_notes(&mut self, notes: &[String], tell: &mut dyn TellRow) {
        for note in notes {
            if !self.notes.contains(note) {
                tell.note(note);
                self.notes.push(note.clone());
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
        put(ADDRESS, &host_part(&link.address));
        if link.cipher.starts_with("TLS") {
            put("link.cipher", &link.cipher);
        }
    }
}

/// An address without its port: behind ssh that is another one in each run.
fn host_part(address: &str) -> String {
    address.parse::<SocketAddr>().map_or_else(|_| address.to_owned(), |address| address.ip().to_string())
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
            | ErrorCode::PermissionDenied
            | ErrorCode::VersionMismatch
            | ErrorCode::Interrupted
            | ErrorCode::Terminated
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::request::{CongestionControl, EndOptions, Reach};

    #[test]
    fn rows_are_not_tried_that_would_fail_for_the_same_reason() {
        let why = |code| Failure::new(code, Side::Link, "why");
        for code in [ErrorCode::PermissionDenied, ErrorCode::VersionMismatch, ErrorCode::ConnectFailed] {
            assert!(is_of_all(&why(code)), "{code:?}");
        }
        assert!(!is_of_all(&why(ErrorCode::Busy)));
    }

    #[test]
    fn settings_have_whatever_was_asked_for() {
        let place = |text: &str| crate::cli::location::parse_location(text.as_bytes()).unwrap();
        let mut request = NetRequest {
            from: place("."),
            to: place("carrack://far"),
            options: CopyOptions::default(),
            choice: NetChoice::default(),
            time: Duration::from_secs(3),
            warm_up: Duration::from_secs(1),
            discard: false,
            path: true,
            only_path: false,
        };
        assert_eq!(settings(&request).len(), 2, "{:?}", settings(&request));
        let reach = Reach { local_address: "10.0.0.7".parse().ok(), ..Reach::default() };
        request.options = CopyOptions {
            congestion: CongestionControl::new("bbr"),
            links: LinkSet::only(LinkKind::Reverse),
            source: EndOptions { reach, ..EndOptions::default() },
            ..CopyOptions::default()
        };
        request.discard = true;
        let told: Vec<_> = settings(&request).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        let more = ["congestion bbr", "discard yes", "link reverse", "bind 10.0.0.7"];
        assert_eq!(told, [["time_seconds 3", "warm_up_seconds 1"].as_slice(), &more[..]].concat());
    }

    #[test]
    fn address_of_a_link_is_known_without_its_port() {
        let of = ["10.0.0.2:40123", "[fd77::2]:7420", "far", ""].map(host_part);
        assert_eq!(of, ["10.0.0.2", "fd77::2", "far", ""]);
    }
}
