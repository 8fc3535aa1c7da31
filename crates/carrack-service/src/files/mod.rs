//! File workers from the service's side. The [`Pool`] lends the worker of a caller and an endpoint
//! ([`Pool::lease`]), and starts it where there is none. A [`Lease`] carries requests ([`Lease::ask`]), several at
//! once; a [`Conversation`] is the answer to one, and dropping it ends the request in the worker.
//!
//! A worker belongs to one caller, by one token, at one version of an endpoint: nothing that somebody may do is lent to
//! anybody else. It ends when nobody has used it for a while, when a right that it stands on ends
//! ([`Pool::end_where`]), and with the service.

mod error;
mod link;
mod listings;
mod pool;
mod process;
mod uploads;

pub use error::FilesError;
pub use link::{Answer, Conversation, Part};
pub use listings::{Found, Listings};
pub use pool::{Key, LENT, Lease, Pool};
pub use process::{Programs, Start, Started};
pub use uploads::{FoundUpload, Publishing, Refused, Uploads};

#[cfg(test)]
pub(crate) mod tests;
