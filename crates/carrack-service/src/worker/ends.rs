//! The ends of an order as the engine takes them.

use carrack_core::credential::{Credential, Token};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::path::{bare, split_name};
use carrack_core::request::{Confinement, CopyOptions, Durability, EndOptions, MainDigest, Reach, Verify};
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
    /// Owners, special bits and devices are asked for there.
    pub ownership: bool,
}

fn usage(side: Side, why: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::Usage, side, why)
}

/// The end of an order.
///
/// # Errors
/// If it cannot be one: its root cannot be opened, its node is too near, its token is none.
pub fn open(end: &EndOrder, side: Side, reach: &Reach) -> Result<OpenEnd, Failure> {
    let mut opened = OpenEnd {
        location: end.location.clone(),
        options: EndOptions { reach: reach.clone(), credential: Credential::None, confinement: None },
        place: Place::anywhere(),
        read_only: end.read_only,
        ownership: end.ownership,
    };
    match (&end.location, &end.root) {
        (Location::Local(_), Some(root)) => {
            opened.place = Place::beneath(Path::new(OsStr::from_bytes(root)))
                .map_err(|error| carrack_engine::io_failure(side, "open the endpoint's root", &error).at_path("/"))?;
        }
        (Location::Ssh { .. }, Some(root)) => {
            opened.options.confinement = Some(Confinement { root: root.clone(), within: Vec::new() });
        }
        (Location::Node { node, .. }, _) => {
            if end.far_only {
                opened.options.reach.node_address = Some(far_address(&node.host, node.port, side)?);
            }
            if let Some(token) = &end.credentials.token {
                let token = Token::new(token.reveal().as_bytes());
                let token = token.map_err(|why| usage(side, format!("the node's token cannot be used: {why}")))?;
                opened.options.credential = Credential::Value(token);
            }
        }
        _ => {}
    }
    if let Some(within) = &end.within {
        let within = within.strip_prefix(b"/").unwrap_or(within);
        opened.keep_within(bare(within).to_vec(), side)?;
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

/// Refuses what an endpoint that is only read does not allow.
///
/// # Errors
/// [`ErrorCode::NodeReadOnly`].
pub fn check_may_change(kind: TaskKind, source: &OpenEnd, destination: Option<&OpenEnd>) -> Result<(), Failure> {
    let refused = |side| Failure::new(ErrorCode::NodeReadOnly, side, "the endpoint is for reading only");
    if kind == TaskKind::Check {
        return Ok(());
    }
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
    let mut options = CopyOptions { item_events: true, retries: RETRIES, ..CopyOptions::default() };
    order.options.apply(order.submitted.into(), &mut options).map_err(|why| usage(Side::Command, why))?;
    let moves = order.kind == TaskKind::Move;
    if moves {
        // What is deleted afterwards has to be whole, and to stay.
        options.verify = if options.verify == Verify::None { Verify::Wire } else { options.verify };
        let durability = options.durability;
        options.durability = if durability == Durability::None { Durability::Group } else { durability };
    }
    if (moves && options.digest.main.is_none()) || !order.expect_digests.is_empty() {
        options.digest.main = Some(MainDigest::Blake3);
    }
    Ok(options)
}

/// What a pair is called in messages.
pub fn name(pair: &PairOrder) -> Vec<u8> {
    let source = &pair.source.location;
    match source.path() {
        Some(path) => split_name(bare(path)).1.to_vec(),
        None => source.to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::location::NodeAddress;
    use carrack_core::request::Digests;

    use super::*;

    fn opened(host: &str, far_only: bool) -> Result<OpenEnd, ErrorCode> {
        let node = NodeAddress { host: host.to_owned(), port: 7420, pin: Some([0xab; 32]) };
        let end = EndOrder::at_location(Location::Node { node, path: b"/".to_vec() });
        let end = EndOrder { far_only, ..end };
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
            "submitted": "2026-11-27T00:00:00Z",
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
