//! How many streams a copy has while it runs: what both ends tell goes to the controller, and what that decides is
//! carried out by [`Streams`].

use carrack_core::pace::limit::StageTimes;
use carrack_core::pace::streams::{Change, Sample, StreamControl};
use carrack_core::report::Progress;
use carrack_core::request::CopyRequest;
use carrack_core::wire::control::Stages;

use super::connect::Link;
use super::ends::Ends;
use super::streams::Streams;
use crate::end::EndId;

/// The controller of a session, and what it was told last.
pub struct Tune {
    control: StreamControl,
    progress: Progress,
    destination: StageTimes,
    /// Both ends are here: no kernel counts what their connections have delivered.
    is_here: bool,
}

impl Tune {
    /// `None` where the number stays: it was asked for, or the link has no second connection to give (a tunnel, bytes
    /// that go in order).
    pub fn new(request: &CopyRequest, one_stream: bool, link: &Link, ends: &Ends) -> Option<Self> {
        let fixed = request.options.streams.is_some() || one_stream || link.more.is_none() && link.here.is_none();
        if fixed {
            return None;
        }
        let control = StreamControl::new(&ends.tuning, link.report.streams, ends.processors(), request.options.polite);
        let control = if let Some(kept) = link.kept { control.kept(kept) } else { control };
        let (progress, destination) = (Progress::default(), StageTimes::default());
        Some(Self { control, progress, destination, is_here: link.here.is_some() })
    }

    /// How far the copy has come.
    pub fn handle_progress(&mut self, progress: &Progress) {
        self.progress = *progress;
    }

    /// The best number that is known.
    pub fn best(&self) -> u16 {
        self.control.best()
    }

    /// The number that the search has come to rest at, and bytes a second with it.
    pub fn found(&self) -> Option<(u16, f64)> {
        self.control.found()
    }

    /// An end tells where its time has gone, and what its streams carry.
    pub fn handle_stages(&mut self, end: EndId, stages: Stages, streams: &mut Streams) -> Option<Change> {
        if end == EndId::Destination {
            self.destination = stages.times;
            return None;
        }
        let progress = &self.progress;
        let left = progress.bytes_found.saturating_sub(progress.bytes_done);
        let change = self.control.handle_sample(Sample {
            at: stages.at,
            delivered: if self.is_here { progress.bytes_done } else { stages.delivered },
            segments: stages.segments,
            repeated: stages.repeated,
            alive: streams.alive(),
            items: progress.files_done,
            left: progress.scan_complete.then_some(left),
            source: stages.times,
            destination: self.destination,
        })?;
        streams.want(change.streams);
        Some(change)
    }
}
