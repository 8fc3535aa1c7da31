//! Data connections between two ends that are both here.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use carrack_core::ids::StreamId;
use carrack_core::report::{ErrorCode, Failure, Side};

use super::ends::Ends;
use crate::agent::Agent;
use crate::data::stream::{Connection, Protection};
use crate::end::Reached;
use crate::error::{describe, failure};
use crate::net::socket::Socket;

/// One more connection between two ends that are here.
///
/// # Errors
/// When the system has none left.
pub fn connect_here(ends: &Ends, number: u16) -> Result<(), Failure> {
    match (&ends.source.reached, &ends.destination.reached) {
        (Reached::Here(source, _), Reached::Here(destination, _)) => connect_pair(source, destination, number),
        _ => Err(failure(ErrorCode::Internal, Side::Command, "two ends here that are not")),
    }
}

fn connect_pair(source: &Agent, destination: &Agent, number: u16) -> Result<(), Failure> {
    let (out, input) = UnixStream::pair()
        .map_err(|error| failure(ErrorCode::ResourceLimit, Side::Command, describe(&error)).during("a socket pair"))?;
    let connection = |socket| Connection {
        socket: Arc::new(Socket::Unix(socket)),
        protection: Protection::Memory,
        early: Vec::new(),
        number: StreamId(number),
    };
    source.handle_connection(connection(out));
    destination.handle_connection(connection(input));
    Ok(())
}
