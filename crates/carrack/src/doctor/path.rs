//! What the path between two hosts carries now: bytes from memory to memory, for some seconds each way, and the routers
//! that they pass.

use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure};
use carrack_core::location::{Location, SyntheticKind};
use carrack_core::report::Event;
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions};
use carrack_doctor::{Situation, Way};
use carrack_engine::Context;

use super::diagnosis::DoctorRequest;
use crate::bench::moved::{Moved, watch_until};
use crate::bench::net::path;

/// More than anybody moves in the time that it takes.
const BYTES: u64 = 1 << 42;
/// How long each way is measured, from its first byte on.
const TIME: Duration = Duration::from_secs(3);
/// The path carries so many times more than what losses are measured at: bursts find its queues empty.
const RATE_BELOW: f64 = 4.0;
/// Few streams: each sends its bursts by itself.
const LOSS_STREAMS: u16 = 2;
/// How long each way is measured for losses.
const LOSS_TIME: Duration = Duration::from_secs(4);
/// A path that stalls is not waited for.
const PATIENCE: Duration = Duration::from_secs(15);

/// Measures the path, and puts what was seen into the situation. What cannot be measured stays unknown.
///
/// # Errors
/// When the work is to stop.
pub fn measure(
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    situation: &mut Situation,
) -> Result<(), Failure> {
    let Some(far) = &request.far else { return Ok(()) };
    // Inside the control connections data has no way of its own that could be looked for.
    let is_connected = |way: &Way| matches!(way.connection, Some(Ok(())));
    if is_connected(&situation.path.there) || is_connected(&situation.path.back) {
        // Routers answer seldom: they are asked while next to nothing flows.
        let since = Instant::now();
        let trace = CopyOptions { trace: true, rate_limit: Some(path::RATE), ..CopyOptions::default() };
        let enough = &mut |moved: &Moved| path::is_enough(moved, since);
        let moved = run((&request.near, far, trace), request, context, observer, enough)?;
        situation.path.there.trace = moved.source.path;
        situation.path.back.trace = moved.destination.path;
    }
    rates(request, context, observer, &mut situation.path)?;
    losses(request, context, observer, &mut situation.path)
}

/// Measures the rates of both ways.
///
/// # Errors
/// When the work is to stop.
pub fn rates(
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    path: &mut carrack_doctor::Path,
) -> Result<(), Failure> {
    let Some(far) = &request.far else { return Ok(()) };
    let near = &request.near;
    for (from, to, way) in [(near, far, &mut path.there), (far, near, &mut path.back)] {
        let moved = run((from, to, CopyOptions::default()), request, context, observer, &mut lasting(TIME))?;
        fill(way, &moved);
    }
    Ok(())
}

/// Measures what is lost at a rate that leaves the path's queues empty: streams that fill a path lose what overflows
/// there, however good it is. Of a way that lost nothing when it was full nothing more is asked.
///
/// # Errors
/// When the work is to stop.
fn losses(
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    path: &mut carrack_doctor::Path,
) -> Result<(), Failure> {
    let Some(far) = &request.far else { return Ok(()) };
    let near = &request.near;
    for (from, to, way) in [(near, far, &mut path.there), (far, near, &mut path.back)] {
        let Some((resent, segments)) = way.resent_when_full else { continue };
        if resent == 0 {
            way.resent = Some((resent, segments));
            continue;
        }
        let Some((rate, _)) = way.rate.filter(|(rate, _)| *rate > 0.0) else { continue };
        let below = (rate / RATE_BELOW).max(1.0) as u64;
        let options = CopyOptions { rate_limit: Some(below), streams: Some(LOSS_STREAMS), ..CopyOptions::default() };
        let moved = run_as(options, (from, to), context, observer, &mut lasting(LOSS_TIME))?;
        way.resent = resent_in(&moved);
    }
    Ok(())
}

/// Whether a way has been measured for so long, from its first byte on.
fn lasting(time: Duration) -> impl FnMut(&Moved) -> bool {
    let (begin, mut first) = (Instant::now(), None);
    move |moved| {
        if moved.landed.iter().any(|(_, bytes)| *bytes > 0) {
            first.get_or_insert_with(Instant::now);
        }
        first.is_some_and(|first: Instant| first.elapsed() >= time) || begin.elapsed() >= PATIENCE
    }
}

/// A host, and how it is reached.
type Place = (Location, EndOptions);

fn run(
    (from, to, options): (&Place, &Place, CopyOptions),
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    enough: &mut dyn FnMut(&Moved) -> bool,
) -> Result<Moved, Failure> {
    run_as(CopyOptions { streams: request.wish.streams, ..options }, (from, to), context, observer, enough)
}

fn run_as(
    options: CopyOptions,
    (from, to): (&Place, &Place),
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    enough: &mut dyn FnMut(&Moved) -> bool,
) -> Result<Moved, Failure> {
    let copy = transfer(from, to, options);
    let mut note = |text: &str| observer(Event::Note(text.to_owned()));
    let (moved, failure) = watch_until(copy, context, &mut note, enough);
    match failure {
        Some(why) if matches!(why.code, ErrorCode::Interrupted | ErrorCode::Terminated) => Err(why),
        _ => Ok(moved),
    }
}

fn transfer(from: &(Location, EndOptions), to: &(Location, EndOptions), options: CopyOptions) -> CopyRequest {
    let options =
        CopyOptions { source: from.1.clone(), destination: to.1.clone(), resume: false, retries: 0, ..options };
    let sources = vec![from.0.synthetic(SyntheticKind::Zeros(BYTES))];
    CopyRequest { sources, destination: to.0.synthetic(SyntheticKind::Memory), options }
}

/// What came, and what was sent again.
fn fill(way: &mut Way, moved: &Moved) {
    let landed: Vec<_> = moved.landed.iter().filter(|(_, bytes)| *bytes > 0).collect();
    if let (Some((from, before)), Some((to, after))) = (landed.first(), landed.last())
        && let Some(time) = to.checked_sub(*from).filter(|time| !time.is_zero())
    {
        let streams = moved.link.as_ref().map_or(1, |link| link.streams);
        // A far host may say that less has landed than before.
        way.rate = Some((after.saturating_sub(*before) as f64 / time.as_secs_f64(), streams));
    }
    way.resent_when_full = resent_in(moved);
}

/// Segments sent again, and all: without the first of the samples, in which connections begin.
fn resent_in(moved: &Moved) -> Option<(u64, u64)> {
    let samples = &moved.source.samples;
    let ((_, first), (_, last)) = (samples.first()?, samples.last()?);
    let counts = last.counts.since(&first.counts);
    Some((counts.retransmits, counts.segments)).filter(|(_, segments)| *segments > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_a_host_that_takes_back_what_it_said_is_zero() {
        let at = Duration::from_secs;
        let moved = |landed: &[(Duration, u64)]| Moved { landed: landed.to_vec(), ..Moved::default() };
        let rate = |landed: &[(Duration, u64)]| {
            let mut way = Way::default();
            fill(&mut way, &moved(landed));
            way.rate.map(|(rate, _)| rate)
        };
        assert_eq!(rate(&[(at(1), 100), (at(3), 500)]), Some(200.0));
        assert_eq!(rate(&[(at(1), u64::MAX), (at(3), 1)]), Some(0.0));
        assert_eq!(rate(&[(at(1), 100)]), None);
    }
}
