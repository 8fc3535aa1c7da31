//! A blocking client of the API, for the command line and tests: over the service's Unix socket, over TLS with a pinned
//! key, or in the clear on this host alone.
//!
//! Every call has a connection of its own. Paths are relative to `/api/v1`, like `/tasks`; [`with_query`] and
//! [`segment`] make them.

mod call;
mod connect;
mod error;
mod events;
mod http;
mod target;

pub use self::call::{API_PREFIX, Answer, Call, segment, with_query};
pub use self::error::{Called, ClientError};
pub use self::events::Events;
pub use self::http::{BodyReader, Client, Rows};
pub use self::target::{Target, parse_login_link};
