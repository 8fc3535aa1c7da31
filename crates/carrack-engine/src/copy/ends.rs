//! The two ends of a copy, as all of its parts see them.

use std::sync::Arc;

use carrack_core::pace::streams::Processors;
use carrack_core::report::{ErrorCode, Failure, LinkReport};
use carrack_core::request::LinkKind;
use carrack_core::tuning::Tuning;
use carrack_core::wire::Version;

use crate::data::prepared::Prepared;
use crate::end::{End, EndId};
use crate::error::failure;

/// The two ends of a copy.
pub struct Ends {
    /// Where the bytes come from.
    pub source: End,
    /// The end that receives.
    pub destination: End,
    /// The knobs of their copy.
    pub tuning: Arc<Tuning>,
    /// Data connections that are made ahead.
    pub prepared: Option<Arc<Prepared>>,
}

impl Ends {
    /// Says good-bye to both.
    pub fn close(self) {
        self.source.close();
        self.destination.close();
    }

    /// Processors of the two hosts.
    pub fn processors(&self) -> Processors {
        Processors {
            source: self.source.welcome.processors as usize,
            destination: self.destination.welcome.processors as usize,
        }
    }

    /// The protocol that both speak.
    pub fn version(&self) -> Version {
        self.source.version().min(self.destination.version())
    }

    /// The end with this id, to look at.
    pub fn at(&self, id: EndId) -> &End {
        match id {
            EndId::Source => &self.source,
            EndId::Destination => &self.destination,
        }
    }

    /// The end with this id.
    pub fn get(&mut self, id: EndId) -> &mut End {
        match id {
            EndId::Source => &mut self.source,
            EndId::Destination => &mut self.destination,
        }
    }

    /// Of the data connections that were made ahead, those that this link does not need are closed.
    pub fn use_prepared(&self, link: &LinkReport) {
        let wanted = if link.kind == LinkKind::Direct { link.streams } else { 0 };
        self.prepared.iter().for_each(|prepared| prepared.limit(wanted));
    }

    /// Whether both are in this process.
    pub fn are_here(&self) -> bool {
        self.source.is_here() && self.destination.is_here()
    }

    /// Who dials in a direct link.
    pub fn dialer(&self) -> EndId {
        if self.destination.is_here() { EndId::Destination } else { EndId::Source }
    }
}

/// The end across.
pub fn other(id: EndId) -> EndId {
    match id {
        EndId::Source => EndId::Destination,
        EndId::Destination => EndId::Source,
    }
}

/// An end that did what it may not do.
pub fn misbehaved(ends: &Ends, id: EndId, what: &str) -> Failure {
    let failed = failure(ErrorCode::ProtocolViolation, id.side(), format!("the {} {what}", id.side()));
    name_end(ends, id, failed)
}

/// A failure, with the name of the host that it is of.
pub fn name_end(ends: &Ends, id: EndId, failure: Failure) -> Failure {
    let end = ends.at(id);
    if end.is_here() { failure } else { failure.at_end(&*end.name) }
}
