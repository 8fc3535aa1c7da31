//! The places that a verb about files goes to: each location, and for one at a service's endpoint (`@NAME:/PATH`)
//! the node behind it, with what opens it there.

use carrack_core::credential::Credential;
use carrack_core::grant::Right;
use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::report::Failure;

use crate::cli::flag::Positional;
use crate::cli::flags::Flags;
use crate::error::CommandError;

/// What a verb does at a place.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "service"), allow(dead_code, reason = "only a service asks for them"))]
pub struct Needs {
    /// It cannot do without these rights.
    pub rights: &'static [Right],
    /// It takes these, too, where they can be had.
    pub wishes: &'static [Right],
}

impl Needs {
    /// It looks, and changes nothing.
    pub const READ: Self = Self { rights: &[Right::Read], wishes: &[] };
    /// It reads, and then removes what it has read.
    pub const MOVE: Self = Self { rights: &[Right::Read, Right::Delete], wishes: &[] };
    /// It looks, and writes what is other than it shall be.
    pub const COMPARE_AND_WRITE: Self = Self { rights: &[Right::Read, Right::Write], wishes: &[] };
    /// It makes what is not there.
    pub const WRITE: Self = Self { rights: &[Right::Write], wishes: &[] };
    /// The same, with owners and what else gives rights, where that is allowed.
    pub const WRITE_OWNED: Self = Self { rights: &[Right::Write], wishes: &[Right::Ownership] };
    /// It removes.
    pub const DELETE: Self = Self { rights: &[Right::Delete], wishes: &[] };
    /// It renames: it looks where to, and may replace what is there.
    pub const RENAME: Self = Self { rights: &[Right::Read, Right::Write], wishes: &[Right::Delete] };
}

/// A place, and how messages call it.
#[derive(Clone, Debug)]
pub struct VerbPlace {
    location: Location,
    endpoint: Option<AtEndpoint>,
}

/// What is more at an endpoint.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "service"), allow(dead_code, reason = "without a service there are none"))]
struct AtEndpoint {
    name: String,
    /// Below its root, as typed.
    path: Vec<u8>,
    /// What opens it; none: the user's own ssh.
    credential: Option<Credential>,
}

impl From<Location> for VerbPlace {
    fn from(location: Location) -> Self {
        Self { location, endpoint: None }
    }
}

impl VerbPlace {
    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The path there; nothing for what has none.
    pub fn path(&self) -> &[u8] {
        self.location.path().unwrap_or_default()
    }

    /// The path as the user knows it: of an endpoint, below its root.
    pub fn shown(&self) -> &[u8] {
        self.endpoint.as_ref().map_or_else(|| self.path(), |endpoint| &endpoint.path)
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match &self.endpoint {
            Some(AtEndpoint { name, path, .. }) => format!("@{name}:{}", display_bytes(path)),
            None => self.location.to_string(),
        }
    }

    /// The endpoint that it is at.
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|endpoint| &*endpoint.name)
    }

    /// What opens it, where that does not depend on what the user has for nodes.
    pub fn credential(&self) -> Option<Credential> {
        let endpoint = self.endpoint.as_ref()?;
        Some(endpoint.credential.clone().unwrap_or_default())
    }

    /// A failure there with the path as the user knows it.
    pub fn tell(&self, mut failure: Failure) -> Failure {
        let (Some(endpoint), Some(at)) = (&self.endpoint, &mut failure.at) else { return failure };
        let base = self.path().strip_suffix(&endpoint.path[..]);
        let told = |path: &Vec<u8>| {
            let rest = path.strip_prefix(base?)?;
            let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
            Some([b"/", &rest[start..]].concat())
        };
        if let Some(path) = at.path.as_ref().and_then(told) {
            at.path = Some(path);
        }
        failure
    }

    /// Whether both are reached in the same way, with the same rights.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.endpoint() == other.endpoint() && self.location.is_beside(&other.location)
    }
}

/// The places of an argument without dashes, in order, opened for what the verb does there.
///
/// # Errors
/// A usage error that shows the first bad one; an endpoint that the user has no right to; a service that does not
/// answer.
pub fn places(flags: &Flags, positional: &Positional, needs: Needs) -> Result<Vec<VerbPlace>, CommandError> {
    let named = flags.named(positional)?;
    open(flags, named.into_iter().map(|named| (named, needs)))
}

/// The one place of an argument without dashes.
///
/// # Errors
/// As [`places`].
pub fn place(flags: &Flags, positional: &Positional, needs: Needs) -> Result<VerbPlace, CommandError> {
    let missing = || CommandError::usage(format!("{} is missing", positional.name));
    places(flags, positional, needs)?.pop().ok_or_else(missing)
}

/// Opens places.
///
/// # Errors
/// As [`places`].
#[cfg_attr(not(feature = "service"), allow(unused_variables, reason = "what a service is asked with"))]
pub fn open(flags: &Flags, named: impl IntoIterator<Item = (Location, Needs)>) -> Result<Vec<VerbPlace>, CommandError> {
    #[cfg(feature = "service")]
    let mut grants = crate::managed::grants::Grants::new(flags, super::reach::reach(flags)?, super::context::context);
    let open = |(location, needs): (Location, Needs)| match location {
        #[cfg(feature = "service")]
        Location::Endpoint { name, path } => {
            let (location, credential) = grants.open(&name, &path, needs.rights, needs.wishes)?;
            Ok(VerbPlace { location, endpoint: Some(AtEndpoint { name, path, credential }) })
        }
        location => Ok(location.into()),
    };
    named.into_iter().map(open).collect()
}
