//! The ends of an order as the engine takes them.

use carrack_core::credential::{Credential, Token};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::limits;
use carrack_core::location::{Location, NodeAddress, SshHost};
use carrack_core::options::{BlockSize, RateBound, Streams};
use carrack_core::path::{bare, split_name};
use carrack_core::pin::parse_pin;
use carrack_core::request::{
    Confinement, CopyOptions, Durability, Encrypt, EndOptions, Existing, MainDigest, Reach, Verify,
};
use carrack_engine::Place;
use std::ffi::OsStr;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::order::{EndOrder, Order, PairOrder};
use crate::model::{TaskKind, is_of_this_host};

/// One end, ready to be reached.
#[derive(Clone, Debug)]
pub struct OpenEnd {
    /// Where it is.
    pub location: Location,
    /// How it is reached.
    pub options: EndOptions,
    /// What an end on this host may reach.
    pub place: Place,
    /// Nothing there may be changed.
    pub read_only: bool,
}

fn usage(side: Side, why: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::Usage, side, why)
}

/// The end of an order.
///
/// # Errors
/// If it cannot be one: its root cannot be opened, or its text says nothing.
pub fn open(end: &EndOrder, side: Side, reach: &Reach) -> Result<OpenEnd, Failure> {
    let mut opened = OpenEnd {
        location: Location::Null,
        options: EndOptions { reach: reach.clone(), credential: Credential::None, confinement: None },
        place: Place::anywhere(),
        read_only: false,
    };
    match end {
        EndOrder::Local { root, path, read_only, .. } => {
            if let Some(root) = root {
                let root = decode(root, side)?;
                opened.place = Place::beneath(Path::new(OsStr::from_bytes(&root))).map_err(|error| {
                    carrack_engine::io_failure(side, "open the endpoint's root", &error).at_path("/")
                })?;
            }
            (opened.location, opened.read_only) = (Location::Local(decode(path, side)?), *read_only);
        }
        EndOrder::Node { host, port, fingerprint, path, credentials, far_only } => {
            let pin = fingerprint.as_ref().map(|text| {
                let text = text.strip_prefix("sha256:").unwrap_or(text);
                parse_pin(format!("sha256:{text}").as_bytes()).map_err(|why| usage(side, why))
            });
            let pin = pin.transpose()?;
            if *far_only {
                opened.options.reach.node_address = Some(far_address(host, *port, side)?);
            }
            let node = NodeAddress { host: host.clone(), port: *port, pin };
            if let Some(token) = &credentials.token {
                let token = Token::new(token.reveal().as_bytes());
                let token = token.map_err(|why| usage(side, format!("the node's token cannot be used: {why}")))?;
                opened.options.credential = Credential::Value(token);
            }
            opened.location = Location::Node { node, path: decode(path, side)? };
        }
        EndOrder::Ssh { user, host, root, path, .. } => {
            let host = SshHost { user: user.clone(), host: host.clone() };
            opened.location = Location::Ssh { host, path: decode(path, side)? };
            if let Some(root) = root {
                opened.options.confinement = Some(Confinement { root: decode(root, side)?, within: Vec::new() });
            }
        }
        EndOrder::Synthetic { text } => opened.location = synthetic(text, side)?,
    }
    if let EndOrder::Local { within: Some(within), .. } | EndOrder::Ssh { within: Some(within), .. } = end {
        opened.keep_within(decode(within.trim_matches('/'), side)?, side)?;
    }
    Ok(opened)
}

impl OpenEnd {
    /// Leaves of an endpoint what is below this path: whoever may write elsewhere below its root must not lead the
    /// caller there by a link. A node's grant says the same to the node.
    ///
    /// # Errors
    /// If the end is no endpoint's.
    pub fn keep_within(&mut self, within: Vec<u8>, side: Side) -> Result<(), Failure> {
        if within.is_empty() || matches!(self.location, Location::Node { .. }) {
            return Ok(());
        }
        match (&mut self.options.confinement, &self.place) {
            (Some(kept), _) => kept.within = within,
            (None, Place::Beneath(root)) => self.place = Place::Granted(Arc::clone(root), within),
            _ => return Err(usage(side, "a path within an endpoint, and no endpoint")),
        }
        Ok(())
    }
}

/// Looks a host up, and refuses one at an address of this host: the name may lead elsewhere than when the endpoint was
/// added. The address that was looked at is the one that is connected to.
fn far_address(host: &str, port: u16, side: Side) -> Result<IpAddr, Failure> {
    let refused = |code, why: String| Err(Failure::new(code, side, why).at_end(host));
    let found: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        Err(_) => match (host, port).to_socket_addrs() {
            Ok(found) => found.map(|socket| socket.ip()).collect(),
            Err(error) => return refused(ErrorCode::HostUnknown, format!("the name cannot be looked up: {error}")),
        },
    };
    if let Some(near) = found.iter().find(|address| is_of_this_host(**address)) {
        let why = format!(
            "{near} is an address of the service's own host, where only an admin can add an endpoint, and its owner is none"
        );
        return refused(ErrorCode::PermissionDenied, why);
    }
    match found.first() {
        Some(address) => Ok(*address),
        None => refused(ErrorCode::HostUnknown, "the name has no address".to_owned()),
    }
}

/// A path as an order has it.
///
/// # Errors
/// If a `%` is not followed by two digits, and if the path holds a NUL.
pub fn decode(path: &str, side: Side) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let byte = byte.filter(|byte| *byte != 0);
        bytes
            .push(byte.ok_or_else(|| usage(side, format!("{path}: behind a % stand two hexadecimal digits, not 00")))?);
        rest = &after[2..];
    }
    if bytes.contains(&0) { Err(usage(side, format!("{path}: a path holds no NUL"))) } else { Ok(bytes) }
}

/// `null:`, `zero:SIZE` and `random:SIZE`; a size is a number of bytes, also with `K`, `M`, `G`, `T` (powers of 1024).
fn synthetic(text: &str, side: Side) -> Result<Location, Failure> {
    let refused = || usage(side, format!("{text}: is none of null:, zero:SIZE and random:SIZE"));
    if text == "null:" {
        return Ok(Location::Null);
    }
    let (kind, size) = text.split_once(':').ok_or_else(refused)?;
    let digits = size.find(|character: char| !character.is_ascii_digit()).unwrap_or(size.len());
    let unit = match size[digits..].trim_end_matches("iB") {
        "" | "B" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1u64 << 40,
        _ => return Err(refused()),
    };
    let size = size[..digits].parse::<u64>().ok().and_then(|size| size.checked_mul(unit));
    let size = size.filter(|size| *size <= limits::FILE_BYTES).ok_or_else(refused)?;
    match kind {
        "zero" => Ok(Location::Zero(size)),
        "random" => Ok(Location::Random(size)),
        _ => Err(refused()),
    }
}

/// Refuses what an endpoint that is only read does not allow.
///
/// # Errors
/// [`ErrorCode::NodeReadOnly`].
pub fn check_may_change(kind: TaskKind, source: &OpenEnd, destination: Option<&OpenEnd>) -> Result<(), Failure> {
    let refused = |side| Failure::new(ErrorCode::NodeReadOnly, side, "the endpoint is for reading only");
    if source.read_only && kind != TaskKind::Copy {
        return Err(refused(Side::Source));
    }
    match destination {
        Some(end) if end.read_only => Err(refused(Side::Destination)),
        Some(end) if kind == TaskKind::Move && (end.location.path().is_none() || source.location.path().is_none()) => {
            Err(usage(Side::Command, "a task moves from a path to a path: nothing else is kept, or can be deleted"))
        }
        _ => Ok(()),
    }
}

/// Sessions that may get nowhere before the attempt ends. What lasts longer is the service's to wait for, which
/// blocks nobody else meanwhile.
const RETRIES: u32 = 4;

/// How an order copies, but for what depends on the pair.
///
/// # Errors
/// If its options do not go together.
pub fn copy_options(order: &Order) -> Result<CopyOptions, Failure> {
    let wanted = &order.options;
    let moves = order.kind == TaskKind::Move;
    let mut verify = wanted.verify.unwrap_or(Verify::Wire);
    let mut durability = wanted.durable.unwrap_or_default();
    let mut digest = wanted.digests().map_err(|why| usage(Side::Command, why))?;
    if moves {
        // What is deleted afterwards has to be whole, and to stay.
        verify = if verify == Verify::None { Verify::Wire } else { verify };
        durability = if durability == Durability::None { Durability::Group } else { durability };
    }
    if (moves && digest.main.is_none()) || !order.expect_digests.is_empty() {
        digest.main = Some(MainDigest::Blake3);
    }
    Ok(CopyOptions {
        existing: wanted.existing.unwrap_or(Existing::Replace),
        verify,
        digest,
        encrypt: wanted.encrypt.unwrap_or(Encrypt::Tls),
        streams: wanted.streams.and_then(Streams::fixed),
        polite: wanted.polite,
        block_bytes: wanted.block_bytes.map(BlockSize::bytes),
        rate_limit: wanted.rate_limit.and_then(RateBound::bytes),
        congestion: wanted.congestion,
        durability,
        allow_growing: wanted.allow_growing,
        item_events: true,
        retries: RETRIES,
        ..CopyOptions::default()
    })
}

/// What a pair is called in messages.
pub fn name(pair: &PairOrder) -> Vec<u8> {
    match &pair.source {
        EndOrder::Local { path, .. } | EndOrder::Node { path, .. } | EndOrder::Ssh { path, .. } => {
            let path = decode(path, Side::Source).unwrap_or_else(|_| path.clone().into_bytes());
            split_name(bare(&path)).1.to_vec()
        }
        EndOrder::Synthetic { text } => text.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::request::Digests;

    use super::*;
    use crate::worker::order::Credentials;

    fn opened(host: &str, far_only: bool) -> Result<OpenEnd, ErrorCode> {
        let end = EndOrder::Node {
            host: host.to_owned(),
            port: 7420,
            fingerprint: Some("ab".repeat(32)),
            path: "/".to_owned(),
            credentials: Credentials::default(),
            far_only,
        };
        open(&end, Side::Source, &Reach::default()).map_err(|why| why.code)
    }

    #[test]
    fn address_of_this_host_is_refused_when_the_worker_connects() {
        // By name, too: what it was when the endpoint was added does not matter.
        for near in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "0.0.0.0", "localhost"] {
            assert_eq!(opened(near, true).err(), Some(ErrorCode::PermissionDenied), "{near}");
            assert_eq!(opened(near, false).unwrap().options.reach.node_address, None, "{near}");
        }
        // What was looked at is what is connected to, and its name stays.
        let far = opened("192.0.2.7", true).unwrap_or_else(|why| panic!("it is far away: {why:?}"));
        assert_eq!(far.options.reach.node_address, Some("192.0.2.7".parse().unwrap()));
        let Location::Node { node, .. } = far.location else { panic!("it is a node") };
        assert_eq!((node.host.as_str(), node.port), ("192.0.2.7", 7420));
    }

    fn ordered(kind: TaskKind, options: &str) -> CopyOptions {
        let order = serde_json::json!({
            "task": "t", "fence": 1, "directory": "/", "kind": kind, "pairs": [], "deadline": null,
            "options": serde_json::from_str::<serde_json::Value>(options).unwrap(),
            "skip_source_errors": false, "fail_on_quota_errors": false, "expect_digests": {}, "ceilings": {},
        });
        copy_options(&serde_json::from_value(order).unwrap()).unwrap()
    }

    #[test]
    fn order_copies_as_its_options_say() {
        let copied = |options: &str| ordered(TaskKind::Copy, options);
        let default = CopyOptions::default();
        let plain = copied("{}");
        assert_eq!((plain.verify, plain.digest, plain.encrypt), (default.verify, default.digest, default.encrypt));
        assert_eq!((plain.existing, plain.durability), (default.existing, default.durability));
        // As `copy` does: what nothing is verified by is not computed, but in the clear it is.
        assert_eq!(copied(r#"{"verify": "none"}"#).digest, Digests::NONE);
        assert_eq!(copied(r#"{"verify": "none", "encrypt": "none"}"#).digest, Digests::BLAKE3);
        assert_eq!(copied(r#"{"verify": "none", "digest": "none"}"#).digest, Digests::NONE);
        assert_eq!(copied(r#"{"digest": "xxh128"}"#).digest, Digests::XXH128);
        assert_eq!(copied(r#"{"digest": "crc32c"}"#).digest, Digests { crc32c: true, ..Digests::BLAKE3 });
        let numbers = copied(r#"{"streams": 3, "block_bytes": 65536, "rate_limit": 7, "congestion": "bbr"}"#);
        assert_eq!((numbers.streams, numbers.block_bytes, numbers.rate_limit), (Some(3), Some(65536), Some(7)));
        assert_eq!(numbers.congestion.map(|control| control.name().to_owned()).as_deref(), Some("bbr"));
        let none = copied(r#"{"streams": "auto", "rate_limit": 0}"#);
        assert_eq!((none.streams, none.rate_limit), (None, None));
        // A move keeps what it needs to delete its sources.
        let moved = ordered(TaskKind::Move, r#"{"verify": "none", "durable": "none"}"#);
        assert_eq!((moved.verify, moved.durability), (Verify::Wire, Durability::Group));
        assert_eq!(moved.digest, Digests::BLAKE3);
    }
}
