//! The first exchange of a control connection, before its peer is known.

use std::io::{self, Read};
use std::sync::Arc;

use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::Confinement;
use carrack_core::wire::control::{Ask, Hello, Tell, Welcome};
use carrack_core::wire::mux::{Channel, HEADER_BYTES, decode_header};
use carrack_core::wire::{PROTOCOL_VERSION, PROTOCOL_VERSION_MIN, ProtocolError, Version};

use super::grants::GrantInForce;
use super::{DataPort, Environment};
use crate::data::hello::Wire;
use crate::error::{failure, io_failure, protocol_failure};
use crate::net::mux::{MuxWriter, ReadError, write_frame};
use crate::storage::identity::machine;
use crate::storage::place::Place;

/// What a greeting leaves of an [`Environment`].
#[derive(Default)]
pub struct Greeted {
    /// It was shown instead of the token: the session may do no more than it says.
    grant: Option<Arc<GrantInForce>>,
    /// What the session keeps to.
    place: Option<Place>,
}

impl Environment {
    /// Leaves only what the client may do that has greeted so.
    pub fn restrict(&mut self, greeted: Greeted) {
        let Greeted { grant, place } = greeted;
        if let (Some(grant), Place::Beneath(root)) = (&grant, &self.place) {
            self.place = grant.place(Arc::clone(root));
        }
        self.grant = grant;
        if let Some(place) = place {
            self.place = place;
        }
    }
}

/// The first exchange: versions, the token where one is wanted, what the session keeps to. Nothing else is read from
/// the connection before.
///
/// # Errors
/// When the connection ends, breaks the protocol, does not show the token, or names a root that cannot be kept to; the
/// peer has been told.
pub fn greet(input: &mut impl Read, writer: &MuxWriter, environment: &Environment) -> Result<Greeted, Failure> {
    let (request, hello) = read_hello(input).map_err(|error| match error {
        ReadError::Connection(error) => io_failure(Side::Link, "first message", &error),
        ReadError::Protocol(error) => protocol_failure(Side::Link, &error).during("first message"),
    })?;
    let answer = check_hello(&hello, environment);
    // A refusal is told before the connection ends, or the command could only say that it ended.
    let tell = match &answer {
        Ok((version, greeted)) => Tell::Welcome(Welcome {
            version: *version,
            program: env!("CARGO_PKG_VERSION").into(),
            host_id: carrack_sys::host::host_id(),
            machine: machine_told(environment),
            system: system_told(environment),
            processors: u32::try_from(carrack_sys::host::cpu_count()).unwrap_or(1),
            local_address: environment.local_address.clone(),
            peer_address: environment.peer_address.clone(),
            clock_seconds: carrack_sys::host::clock_seconds(),
            congestion: carrack_sys::host::default_congestion_control(),
            root: greeted.place.as_ref().and_then(Place::root),
            compresses: true,
            // Last: the command takes it for the moment at which the answer left.
            clock_us: Some(environment.clock_us()),
        }),
        Err(failure) => Tell::Failed(failure.clone()),
    };
    writer.send(Channel::CONTROL, &tell.encode(request)).map_err(|error| io_failure(Side::Link, "welcome", &error))?;
    answer.map(|(_, greeted)| greeted)
}

/// A node is known by its key, and need not say more of its host to whoever asks.
fn machine_told(environment: &Environment) -> Option<[u8; 32]> {
    match environment.data {
        DataPort::Own(_) => Some(machine()),
        DataPort::Shared(_) => None,
    }
}

/// A node tells its system to those who have shown its token: a report says what both ends run on. What anybody may
/// reach does not say which faults of that system to try.
fn system_told(environment: &Environment) -> String {
    match environment.data {
        DataPort::Shared(_) if environment.token.is_none() => String::new(),
        DataPort::Shared(_) | DataPort::Own(_) => carrack_sys::host::system_version(),
    }
}

/// Answers a greeting by a refusal, in the calling thread alone: for a session for which the host has no threads. A
/// client that does not show the token is told that instead. Answers with what it was told.
///
/// # Errors
/// When the connection ends, or breaks the protocol.
pub fn refuse(mut wire: Wire, environment: &Environment, why: Failure) -> io::Result<Failure> {
    let (request, hello) = read_hello(&mut wire).map_err(|error| match error {
        ReadError::Connection(error) => error,
        ReadError::Protocol(error) => io::Error::new(io::ErrorKind::InvalidData, error.what),
    })?;
    let shown = environment.token.as_ref().map_or(Ok(None), |token| token.admit(&hello.token));
    let why = shown.err().unwrap_or(why);
    write_frame(&mut wire, Channel::CONTROL, &Tell::Failed(why.clone()).encode(request))?;
    wire.part().map(|()| why)
}

fn read_hello(input: &mut impl Read) -> Result<(u64, Hello), ReadError> {
    // Before the peer is known its first message may be a token's length, not a megabyte.
    const FIRST_BYTES_MAX: usize = 16 << 10;
    loop {
        let mut header = [0; HEADER_BYTES];
        input.read_exact(&mut header)?;
        let (channel, length) = decode_header(header)?;
        // Looked at before there is memory for it: the header is the word of somebody who has proved nothing.
        if length > FIRST_BYTES_MAX || channel != Channel::CONTROL {
            let what = format!("the peer's first message has {length} bytes on channel {}", channel.0);
            return Err(ProtocolError::violation(what).into());
        }
        let mut payload = vec![0; length];
        input.read_exact(&mut payload)?;
        // A heartbeat: one that is slow to greet may send some first. The deadline for connections that have proved
        // nothing ends it.
        if length == 0 {
            continue;
        }
        return match Ask::decode(&payload)? {
            (request, Ok(Ask::Hello(hello))) => Ok((request, hello)),
            _ => Err(ProtocolError::violation("the peer's first message is not a greeting").into()),
        };
    }
}

/// Opens what the session is to keep to.
fn confined(kept: &Confinement, environment: &Environment) -> Result<Place, Failure> {
    let refused =
        |error: &io::Error| io_failure(Side::Source, "open the endpoint's root", error).at_path(kept.root.clone());
    match &environment.place {
        place @ Place::Anywhere { .. } => {
            let root = Arc::new(place.dir(&kept.root).map_err(|error| refused(&error))?);
            Ok(if kept.within.is_empty() { Place::Beneath(root) } else { Place::Granted(root, kept.within.clone()) })
        }
        // Whoever serves it has said what it keeps to.
        Place::Beneath(_) | Place::Granted(..) | Place::Stored(..) => {
            Err(failure(ErrorCode::Usage, Side::Link, "this side has a root of its own, and takes no other"))
        }
    }
}

fn check_hello(hello: &Hello, environment: &Environment) -> Result<(Version, Greeted), Failure> {
    // The token comes first: strangers learn neither how busy a node is nor what it runs.
    let grant = match &environment.token {
        Some(token) => token.admit(&hello.token)?,
        None => None,
    };
    if grant.is_some() && matches!(environment.place, Place::Stored(..)) {
        let message = "this node serves a store: it takes its own token, and none that was made for a path";
        return Err(failure(ErrorCode::PermissionDenied, Side::Link, message));
    }
    if environment.busy {
        let message = format!("serves {} sessions already, which is as many as it takes", limits::SESSIONS);
        return Err(failure(ErrorCode::Busy, Side::Link, message));
    }
    let Some(version) = Version::common(hello.oldest, hello.newest) else {
        let Hello { oldest, newest, program, .. } = hello;
        let own = env!("CARGO_PKG_VERSION");
        let message = match newest {
            0 => format!("the command (carrack {program}) is a build from before protocol version 1"),
            _ => format!(
                "the command (carrack {program}) speaks protocol {oldest} to {newest}, this side (carrack {own}) \
                 {PROTOCOL_VERSION_MIN} to {PROTOCOL_VERSION}"
            ),
        };
        return Err(failure(ErrorCode::VersionMismatch, Side::Link, message));
    };
    let place = hello.confinement.as_ref().map(|kept| confined(kept, environment)).transpose()?;
    Ok((version, Greeted { grant, place }))
}
