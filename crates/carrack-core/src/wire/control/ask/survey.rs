//! How a tree is listed that is compared with another.

use super::fields::bounded;
use crate::attributes::KeptAttributes;
use crate::request::Digests;
use crate::wire::ProtocolError;
use crate::wire::control::options::{Travels, checked};
use crate::wire::control::raw;

/// What a tree tells that is compared with another: entries in [the order of a
/// comparison](crate::plan::check::listing_order), without what copies have left unfinished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Digests of each file.
    pub digests: Digests,
    /// Attributes, extended ones with their values.
    pub kept: KeptAttributes,
    /// Only what comes after this path; empty for everything.
    pub after: Vec<u8>,
}

impl TryFrom<raw::Survey> for Survey {
    type Error = ProtocolError;

    fn try_from(raw::Survey { digests, kept, after }: raw::Survey) -> Result<Self, ProtocolError> {
        Ok(Self { digests: checked("digests", digests)?, kept: checked("attributes", kept)?, after: bounded(after)? })
    }
}

impl From<Survey> for raw::Survey {
    fn from(Survey { digests, kept, after }: Survey) -> Self {
        Self { digests: digests.raw(), kept: kept.raw(), after }
    }
}
