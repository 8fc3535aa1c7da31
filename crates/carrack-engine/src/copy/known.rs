//! What is known before a session has measured anything: what an earlier session of the run has found, and what was
//! kept of earlier copies over the same way. And the other way round: what of a session is worth keeping.

use carrack_core::location::Location;
use carrack_core::pace::streams::{KeptStart, most_found};
use carrack_core::report::StreamsFrom;
use carrack_core::request::{CopyRequest, LinkKind, Reach};
use carrack_core::wire::control::{Origin, Sink};

use super::ends::Ends;
use super::resolve::Plan;
use crate::context::Context;
use crate::end::Note;
use crate::kept_tuning::{FoundNumber, KeptWay, Knob};

/// Links that have a number of streams to find.
const KINDS: [LinkKind; 2] = [LinkKind::Direct, LinkKind::Reverse];

/// What is known of one run.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The number that an earlier session of the run has found best.
    pub found: Option<u16>,
    /// Of each kind of link: its way, and what was kept of it, if anything.
    ways: Vec<(LinkKind, KeptWay, Option<FoundNumber>)>,
    /// What this run has found, and on which way.
    new: Option<(KeptWay, FoundNumber)>,
}

impl Known {
    /// Looks up what was kept. Nothing is looked up, and nothing will be kept, where the user has fixed what decides
    /// the number, and where there is no path between hosts, or no storage, to find it out on.
    pub fn look_up(request: &CopyRequest, plan: &Plan, ends: &Ends, context: &Context, note: &Note) -> Self {
        if !is_tuned(request, plan, ends) {
            return Self::default();
        }
        let most = most_found(&ends.tuning, ends.processors());
        let of = |kind: LinkKind| {
            let way = way(request, kind)?;
            let found = context.tuned.look_up(&way, &|text| note(text));
            let streams = found.into_iter().find(|found| found.knob == Knob::Streams);
            Some((kind, way, streams.map(|found| FoundNumber { number: found.number.min(most), ..found })))
        };
        Self { ways: KINDS.into_iter().filter_map(of).collect(), ..Self::default() }
    }

    /// The number that was kept of a direct link, before it is settled whether it counts.
    pub fn kept_ahead(request: &CopyRequest, context: &Context) -> Option<u16> {
        let found = context.tuned.look_up(&way(request, LinkKind::Direct)?, &|_| ());
        found.into_iter().find(|found| found.knob == Knob::Streams).map(|found| found.number)
    }

    fn kept(&self, kind: LinkKind) -> Option<&FoundNumber> {
        self.ways.iter().find(|(of, ..)| *of == kind).and_then(|(.., found)| found.as_ref())
    }

    /// The number to begin with on a link of this kind, if anything is known.
    pub fn streams(&self, kind: LinkKind) -> Option<u16> {
        self.found.or_else(|| self.kept(kind).map(|found| found.number))
    }

    /// Where the number to begin with comes from.
    pub fn origin(&self, request: &CopyRequest, kind: LinkKind) -> StreamsFrom {
        match (request.options.streams, self.found) {
            (Some(_), _) => StreamsFrom::Asked,
            (None, Some(_)) => StreamsFrom::Run,
            (None, None) if self.kept(kind).is_some() => StreamsFrom::Kept,
            (None, None) => StreamsFrom::Path,
        }
    }

    /// For the controller of the first session that begins with a kept number; `guess` is what it would begin with
    /// otherwise.
    pub fn start(&self, kind: LinkKind, guess: u16) -> Option<KeptStart> {
        let kept = self.kept(kind).filter(|_| self.found.is_none())?;
        Some(KeptStart { rate: kept.rate as f64, guess })
    }

    /// A session over a link of this kind has found so many, which bring so many bytes a second.
    pub fn handle_found(&mut self, kind: LinkKind, (number, rate): (u16, f64)) {
        if let Some((_, way, _)) = self.ways.iter().find(|(of, ..)| *of == kind) {
            let found = FoundNumber { knob: Knob::Streams, number, rate: rate as u64, at: 0 };
            self.new = Some((way.clone(), found));
        }
    }

    /// Hands out what the run has found: worth keeping for the next.
    pub fn take_new(&mut self) -> Option<(KeptWay, FoundNumber)> {
        self.new.take()
    }
}

/// Whether the number of streams is found out, on files and on a path between two hosts.
fn is_tuned(request: &CopyRequest, plan: &Plan, ends: &Ends) -> bool {
    let options = &request.options;
    let is_fixed =
        options.streams.is_some() || options.rate_limit.is_some() || options.congestion.is_some() || options.polite;
    let has_files = plan.sink == Sink::Files
        && plan.sources.iter().all(|source| matches!(source.origin, Origin::Path(_)))
        && !plan.one_stream;
    has_files && !is_fixed && !ends.are_here()
}

fn way(request: &CopyRequest, kind: LinkKind) -> Option<KeptWay> {
    let (source, destination) = (&request.sources[0], &request.destination);
    let options = [&request.options.source.reach, &request.options.destination.reach];
    // Another address is another way: it may lead over another interface.
    let asked = |reach: &Reach| {
        let data = reach.data_address.as_ref().map(|address| format!(",to={address}"));
        let local = reach.local_address.map(|address| format!(",from={address}"));
        [data, local].into_iter().flatten().collect::<String>()
    };
    let link = format!("{}{}{}", kind.name(), asked(options[0]), asked(options[1]));
    KeptWay::new(&host(source), &host(destination), &link)
}

/// The name of the host that a location is on. That of this host, because a home directory may be many hosts'.
fn host(location: &Location) -> String {
    match location.host() {
        Location::Ssh { host, .. } => host.host.to_ascii_lowercase(),
        Location::Node { node, .. } => node.known_as(),
        _ => match carrack_sys::host::host_name() {
            name if name.is_empty() => "localhost".into(),
            name => name,
        },
    }
}
