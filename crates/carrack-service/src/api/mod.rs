//! The API: HTTP over the service's Unix socket and the node's port. It checks who asks and whether they may, reads and
//! writes the ledger, and wakes the loop that does the work. It decides nothing about tasks itself.
//!
//! Every route but health and login is closed until a token, a session or the account behind the socket opens it:
//! `admit` stands before all of them.

mod acts;
mod admit;
mod audit;
mod backend;
mod bench;
mod bodies;
mod caller;
mod counters;
mod device;
mod documents;
mod endpoint_health;
mod endpoints;
mod events;
mod extract;
mod faults;
mod files;
mod grants;
mod hands;
mod health;
mod host;
mod items;
mod leftover;
mod login;
mod metrics;
mod nodes;
mod noted;
mod openapi;
mod options;
mod overview;
mod page;
mod paths;
mod place_counters;
mod place_metrics;
mod problem;
mod query;
mod receipts;
mod router;
mod serve;
mod sessions;
mod shares;
mod space;
mod state;
mod strangers;
mod stream;
mod submit;
mod tasks;
mod timers;
mod tls;
mod tokens;
mod users;

use std::sync::Arc;

pub use self::backend::{Backend, TaskSize};
pub use self::caller::Peer;
pub use self::router::{openapi_json, router};
pub use self::serve::{ApiHandle, Patience, ServeConfig, start};
pub use self::state::{Api, LOCAL_USER, OwnNode, Parts};
pub use self::tls::{Certificate, CertificateError, CertificateFiles};
use crate::ledger::LedgerError;

/// The API over these parts. The user [`LOCAL_USER`] is made if there is none; tasks whose token was revoked while the
/// service did not run are cancelled.
///
/// # Errors
/// Those of the ledger.
pub fn open(parts: Parts) -> Result<Arc<Api>, LedgerError> {
    let api = Api::over(parts)?;
    tokens::cancel_orphans(&api)?;
    Ok(api)
}

#[cfg(test)]
mod tests;
