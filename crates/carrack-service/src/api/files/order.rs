//! The order of a file worker: an endpoint, and no more than its caller may do there.

use std::time::Duration;

use crate::api::problem::{ApiError, Done};
use crate::api::{Api, grants};
use crate::clock::Moment;
use crate::files::{Key, LENT};
use crate::identity::{Action, Caller, Object, ScopePath, Verdict, may};
use crate::ledger::EndpointRow;
use crate::model::{Endpoint, Verb};
use crate::worker::EndOrder;
use crate::worker::files::FilesOrder;

/// How long a worker's grant holds.
const GRANTED: Duration = Duration::from_secs(2 * LENT.as_secs());

/// What a caller may do with the files of an endpoint, and where.
pub fn key(caller: &Caller, endpoint: &Endpoint) -> Key {
    let within = caller.scope.as_ref().and_then(|scope| scope.path.clone());
    let path = within.as_deref().and_then(|text| ScopePath::parse(text).ok());
    let within = path.unwrap_or(ScopePath::root());
    let is_allowed = |verb: &Verb| {
        let object = Object::Endpoint { endpoint, path: Some(&within) };
        may(caller, &Action { verb: *verb, object }).verdict == Verdict::Allowed
    };
    Key {
        user: caller.user.clone(),
        token: caller.token.clone(),
        expires: caller.expires,
        run_time: run_time(caller),
        rights: [Verb::Read, Verb::Write, Verb::Delete].into_iter().filter(is_allowed).collect(),
        within: within.to_string(),
        endpoint: endpoint.name.clone(),
        owner: endpoint.owner.clone(),
        version: (endpoint.added, endpoint.version),
    }
}

fn run_time(caller: &Caller) -> Option<Duration> {
    caller.ceilings().run_seconds.map(Duration::from_secs)
}

/// The key of a worker at a location that is no endpoint's.
pub fn key_of_location(caller: &Caller, location: &str) -> Key {
    Key {
        user: caller.user.clone(),
        token: caller.token.clone(),
        expires: caller.expires,
        run_time: run_time(caller),
        rights: vec![Verb::Write],
        within: ScopePath::root().to_string(),
        endpoint: location.to_owned(),
        owner: caller.user.clone(),
        version: (Moment(0), 0),
    }
}

/// The order of the worker with this key, at a location that is no endpoint's.
pub fn at_location(end: EndOrder, key: &Key) -> FilesOrder {
    FilesOrder { name: key.endpoint.clone(), end, within: key.within.clone(), rights: key.rights.clone() }
}

/// The order of the worker with this key.
pub fn make(api: &Api, caller: &Caller, row: &EndpointRow, key: &Key) -> Done<FilesOrder> {
    let endpoint = &row.endpoint;
    api.check_open(endpoint)?;
    let expires = api.now().after(GRANTED);
    let expires: Moment = caller.expires.map_or(expires, |ends| ends.min(expires));
    let path = endpoint.location.node_path().filter(|_| row.sealed_token.is_some());
    let token = path.map(|path| grants::of_worker(api, caller, row, path, &key.rights, expires)).transpose()?;
    let root = endpoint.location.location().map_err(|why| ApiError::conflict(format!("location: {why}")))?;
    let mut end = EndOrder::at_endpoint(root, b"", endpoint.read_only, token);
    // Whoever added it was let in by an admin's right, or only to other hosts.
    end.far_only = !api.is_admin(&endpoint.owner)?;
    Ok(FilesOrder { name: endpoint.name.clone(), end, within: key.within.clone(), rights: key.rights.clone() })
}
