//! A link: from where to where tasks go.

use std::fmt;

/// From where to where, by the endpoints' names or, where a task names none, by the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// `@NAME`, or a host.
    pub source: String,
    /// `@NAME`, or a host; the source again for a task that deletes.
    pub destination: String,
}

impl Link {
    /// From here to there.
    pub fn new(source: &str, destination: &str) -> Self {
        Self { source: source.to_owned(), destination: destination.to_owned() }
    }

    /// Names of the endpoints at its ends, without `@`.
    pub fn endpoints(&self) -> impl Iterator<Item = &str> {
        let destination = (self.destination != self.source).then_some(&self.destination);
        [Some(&self.source), destination].into_iter().flatten().filter_map(|end| end.strip_prefix('@'))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.source, self.destination)
    }
}
