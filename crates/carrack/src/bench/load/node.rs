//! How busy a node is while a crowd is there, as the node tells: a thin stream of zeros keeps a session open whose end
//! there tells what it measures each second.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use carrack_core::failure::Side;
use carrack_core::location::{Location, SyntheticKind};
use carrack_core::report::Event;
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions, LinkSet};
use carrack_core::timeline::Sample;
use carrack_engine::{Context, Copy, StopReason, threads};

/// Bytes a second that keep the session open, and nobody notices.
const RATE: u64 = 64 << 10;
/// More than it ever carries.
const BYTES: u64 = 1 << 40;

/// How busy the node was in about a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeGlance {
    /// When it was told.
    pub at: Instant,
    /// Processors that the node's process kept busy.
    pub processors: f64,
    /// Share of the time that the busiest processor of its host was at work.
    pub busiest: f64,
    /// Share of all processors of its host that were at work, for anybody.
    pub busy: f64,
}

/// What was told, and why it ended early, if it did.
pub type NodeSeen = (Vec<NodeGlance>, Option<String>);

/// Watches a node until it is dropped.
pub struct NodeWatch {
    context: Context,
    thread: Option<JoinHandle<()>>,
    glances: Receiver<Result<NodeGlance, String>>,
}

impl NodeWatch {
    /// Begins to watch over one of these links.
    pub fn start(place: &Location, end: &EndOptions, links: LinkSet, context: &Context) -> Self {
        let context = Context { stop: context.stop.child(), ..context.clone() };
        let (teller, glances) = channel();
        let (place, end, own) = (place.clone(), end.clone(), context.clone());
        let thread = threads::start("the watch over a node", move || watch(&place, &end, links, &own, &teller)).ok();
        Self { context, thread, glances }
    }

    /// Ends, and hands out all that was told.
    pub fn finish(mut self) -> NodeSeen {
        self.end();
        let (mut glances, mut why) = (Vec::new(), None);
        for told in self.glances.try_iter() {
            match told {
                Ok(glance) => glances.push(glance),
                Err(error) => why = Some(error),
            }
        }
        (glances, why)
    }

    fn end(&mut self) {
        self.context.stop.request(StopReason::Cancel);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for NodeWatch {
    fn drop(&mut self) {
        self.end();
    }
}

/// A node ends each such session after some minutes: the next one goes on.
fn watch(
    place: &Location,
    end: &EndOptions,
    links: LinkSet,
    context: &Context,
    teller: &Sender<Result<NodeGlance, String>>,
) {
    loop {
        let options = CopyOptions {
            streams: Some(1),
            rate_limit: Some(RATE),
            resume: false,
            retries: 0,
            destination: end.clone(),
            links,
            ..CopyOptions::default()
        };
        let to = place.synthetic(SyntheticKind::Memory);
        let request = CopyRequest { sources: vec![Location::Zero(BYTES)], destination: to, options };
        let mut copy = Copy::start(request, context);
        let mut before: Option<(u64, Sample)> = None;
        while let Some(event) = copy.next_event() {
            let Event::Sample(told) = event else { continue };
            if told.side != Side::Destination {
                continue;
            }
            let now = (told.point.at_us, told.point.sample);
            let glance = before.as_ref().and_then(|before| glance(before, &now));
            glance.into_iter().for_each(|glance| drop(teller.send(Ok(glance))));
            before = Some(now);
        }
        let report = copy.wait();
        if context.stop.requested().is_some() {
            return;
        }
        if before.is_none() {
            let why = report.error.map_or_else(|| "it tells nothing".to_owned(), |why| why.to_string());
            let _ = teller.send(Err(why));
            return;
        }
    }
}

fn glance((from, before): &(u64, Sample), (to, now): &(u64, Sample)) -> Option<NodeGlance> {
    let seconds = to.checked_sub(*from).filter(|time| *time > 0)? as f64 / 1e6;
    let used = now.processor.since(&before.processor);
    let all = used.busy_us.saturating_add(used.idle_us) as f64;
    Some(NodeGlance {
        at: Instant::now(),
        processors: used.process_us as f64 / 1e6 / seconds,
        busiest: now.processor_state.busiest_core_permille.min(1000) as f64 / 1000.0,
        busy: if all > 0.0 { used.busy_us as f64 / all } else { f64::NAN },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::timeline::{ProcessorState, ProcessorTime};

    #[test]
    fn glance_is_of_the_time_between_two_samples() {
        let sample = |process_us, busy_us, idle_us| Sample {
            processor: ProcessorTime { process_us, busy_us, idle_us, ..ProcessorTime::default() },
            processor_state: ProcessorState { busiest_core_permille: 500, ..ProcessorState::default() },
            ..Sample::default()
        };
        let (before, now) = ((1_000_000, sample(10, 5, 5)), (3_000_000, sample(3_000_010, 3_000_005, 1_000_005)));
        let seen = glance(&before, &now).expect("two samples");
        assert_eq!((seen.processors, seen.busiest, seen.busy), (1.5, 0.5, 0.75));
        assert_eq!(glance(&now, &before), None, "time does not run backwards");
    }
}
