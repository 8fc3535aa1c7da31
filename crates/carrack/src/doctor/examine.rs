//! Examining hosts and the path between them.

use carrack_core::failure::Failure;
use carrack_core::location::Location;
use carrack_core::report::Event;
use carrack_core::request::EndOptions;
use carrack_doctor::{Host, Situation, Way, Wish};
use carrack_engine::Context;
use carrack_engine::examine::{self, Examined, ExaminedPath, ExaminedPlace, HostEvidence};

use super::diagnosis::DoctorRequest;
use super::{measured, path};
use crate::output::hints;

/// Examines, and judges nothing. `observer` hears of what happens meanwhile.
///
/// # Errors
/// When the first host cannot be asked, or the work is to stop.
pub fn examine(
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
) -> Result<Situation, Failure> {
    let place = |(location, options): &'_ (Location, EndOptions)| (location.clone(), options.clone());
    let (location, options) = place(&request.near);
    let near = ExaminedPlace { location: &location, options: &options };
    let mut situation = match &request.far {
        None => Situation { wish: request.wish, ..Situation::of(host(examine::host(near, context, observer)?)) },
        Some(far) => {
            let (location, options) = place(far);
            let examined =
                examine::pair(near, ExaminedPlace { location: &location, options: &options }, context, observer)?;
            let mut situation = situation(examined, request.wish);
            if request.measures && situation.far.is_some() {
                path::measure(request, context, observer, &mut situation)?;
            }
            situation
        }
    };
    if request.measures_host {
        measured::measure(request, context, observer, &mut situation)?;
    }
    Ok(situation)
}

fn situation(examined: Examined, wish: Wish) -> Situation {
    let (far, unreached) = match examined.far {
        Ok(far) => (Some(host(far)), None),
        Err(why) => (None, Some((why.message(), hints::of(&why).map(str::to_owned)))),
    };
    let round_trip = |path: &Option<Result<ExaminedPath, Failure>>| {
        path.as_ref().and_then(|path| path.as_ref().ok()).map(|path| path.round_trip).filter(|time| !time.is_zero())
    };
    let way = |path: &Option<Result<ExaminedPath, Failure>>| Way {
        connection: path.as_ref().map(|path| path.as_ref().map(|_| ()).map_err(Failure::message)),
        ..Way::default()
    };
    let there = Way { trace: examined.approach, ..way(&examined.there) };
    let path = carrack_doctor::Path {
        round_trip: round_trip(&examined.there).or_else(|| round_trip(&examined.back)),
        there,
        back: way(&examined.back),
    };
    Situation { near: host(examined.near), far, unreached, path, wish }
}

fn host(said: HostEvidence) -> Host {
    Host { name: said.name, evidence: said.evidence.map_err(|why| why.message()) }
}
