//! What a process that measures the path between two endpoints is told, and what it tells. How a path is measured is up
//! to whoever calls.

use std::io::{self, BufRead};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::request::{EndOptions, Reach};
use serde::{Deserialize, Serialize};

use super::bench::read_order;
use super::called::Called;
use super::ends::{self, OpenEnd};
use super::order::PairOrder;
use crate::model::{PathWay, TaskFailure, keep_out_of_cores};

/// Which path is to be measured. It holds secrets, so it is written to no file, no argument and no environment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathOrder {
    /// The two ends, with the names of their endpoints.
    pub pair: PairOrder,
    /// Data connections; none: as many as a copy chooses.
    pub streams: Option<u16>,
    /// Bytes a second at most.
    pub rate_limit: Option<u64>,
}

impl PathOrder {
    /// Reads the order, which is one line of JSON, as the work of this process: its secrets are in no core dump.
    ///
    /// # Errors
    /// Those of reading, and an order that is none.
    pub fn receive(input: &mut impl BufRead) -> io::Result<Self> {
        keep_out_of_cores()?;
        let order: Self = read_order(input)?;
        super::give_up_rights(order.pair.ends());
        super::go_first();
        Ok(order)
    }
}

/// The two ends of a path, and how each is reached.
#[derive(Clone, Debug)]
pub struct PathEnds {
    /// Where bytes that go there come from.
    pub from: (Location, EndOptions),
    /// Where they go.
    pub to: (Location, EndOptions),
}

/// What was measured: a line of standard output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathTold {
    /// One direction.
    pub there: PathWay,
    /// The other one.
    pub back: PathWay,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Why something is missing.
    pub failure: Option<TaskFailure>,
}

/// Opens the ends of an order and has the path between them measured. A failure names the endpoints.
pub fn measured(
    order: &PathOrder,
    reach: &Reach,
    measure: impl FnOnce(PathEnds) -> (PathTold, Option<Failure>),
) -> PathTold {
    let mut called = Called::of(&order.pair);
    let (told, failure) = match open(&order.pair, reach) {
        Ok((source, destination)) => {
            called.opened(&source, Some(&destination));
            let end = |end: OpenEnd| (end.location, end.options);
            measure(PathEnds { from: end(source), to: end(destination) })
        }
        Err(failure) => (PathTold::default(), Some(failure)),
    };
    PathTold { failure: failure.map(|failure| called.told(&failure, b"", false)), ..told }
}

fn open(pair: &PairOrder, reach: &Reach) -> Result<(OpenEnd, OpenEnd), Failure> {
    let none = || Failure::new(ErrorCode::Usage, Side::Destination, "a path has two ends");
    let destination = pair.destination.as_ref().ok_or_else(none)?;
    Ok((ends::open(&pair.source, Side::Source, reach)?, ends::open(destination, Side::Destination, reach)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{EndOrder, EndpointRoot};

    fn order(source: &str, destination: &str) -> PathOrder {
        let at = |text: &str| Location::parse_document(text).expect("a location");
        let end = |text: &str| EndOrder { far_only: true, ..EndOrder::at_location(at(text)) };
        let root = |name: &str, text: &str| Some(EndpointRoot::of(name, &at(text)));
        let pair = PairOrder {
            source_endpoint: root("lab", source),
            destination_endpoint: root("archive", destination),
            ..PairOrder::new(end(source), Some(end(destination)))
        };
        PathOrder { pair, streams: Some(3), rate_limit: None }
    }

    #[test]
    fn path_is_measured_between_ends_that_are_opened_and_a_failure_names_the_endpoint() {
        let order = order("carrack://192.0.2.7:7420/data", "ssh://far/data");
        let order: PathOrder = serde_json::from_str(&serde_json::to_string(&order).unwrap()).unwrap();
        let told = measured(&order, &Reach::default(), |ends| {
            assert_eq!(ends.from.1.reach.node_address, Some("192.0.2.7".parse().unwrap()));
            assert!(ends.to.1.confinement.is_none(), "no file is looked at");
            let why = Failure::new(ErrorCode::ConnectFailed, Side::Link, "refused").at_end("192.0.2.7:7420");
            (PathTold { notes: vec!["a note".to_owned()], ..PathTold::default() }, Some(why))
        });
        let failure = told.failure.unwrap();
        assert_eq!((failure.why.as_str(), failure.endpoint.as_deref()), ("@lab: refused", Some("lab")));
        assert_eq!((failure.code.as_str(), told.notes.len()), (ErrorCode::ConnectFailed.name(), 1));
    }

    #[test]
    fn path_to_an_address_of_this_host_is_not_measured_for_whoever_may_not_offer_it() {
        let order = order("carrack://192.0.2.7:7420/data", "carrack://127.0.0.1:7420/");
        let told = measured(&order, &Reach::default(), |_| panic!("it is connected to"));
        let failure = told.failure.unwrap();
        assert_eq!(failure.code, ErrorCode::PermissionDenied.name());
        assert_eq!(failure.endpoint.as_deref(), Some("archive"));
    }
}
