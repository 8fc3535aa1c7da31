//! Failures by the names that people know the places by: an endpoint's in place of its host and of its root there.

use carrack_core::failure::{Failure, Side};
use carrack_core::location::Location;
use carrack_core::path::{bare, display_bytes, ends_in};

use super::ends::OpenEnd;
use super::failures::told;
use super::order::{EndpointRoot, PairOrder};
use crate::model::TaskFailure;

/// What the ends of a pair are called.
#[derive(Clone, Debug, Default)]
pub struct Called {
    source: Option<CalledEnd>,
    destination: Option<CalledEnd>,
}

#[derive(Clone, Debug)]
struct CalledEnd {
    endpoint: String,
    base: Vec<u8>,
    /// Where it is, once it has been opened.
    location: Option<Location>,
}

impl Called {
    /// The ends of a pair of which nothing has been opened.
    pub fn of(pair: &PairOrder) -> Self {
        let end = |root: &Option<EndpointRoot>| {
            let EndpointRoot { name, base } = root.clone()?;
            Some(CalledEnd { endpoint: name, base, location: None })
        };
        Self { source: end(&pair.source_endpoint), destination: end(&pair.destination_endpoint) }
    }

    /// What was opened, so that its spellings are known.
    pub fn opened(&mut self, source: &OpenEnd, destination: Option<&OpenEnd>) {
        for (end, opened) in [(&mut self.source, Some(source)), (&mut self.destination, destination)] {
            if let (Some(end), Some(opened)) = (end, opened) {
                end.location = Some(opened.location.clone());
            }
        }
    }

    /// A failure by the names of the endpoints.
    pub fn name(&self, mut failure: Failure) -> Failure {
        failure.source = failure.source.map(|source| Box::new(self.name(*source)));
        let Some(end) = self.end_of(&failure) else { return failure };
        if let Some(path) = end.path_of(&failure).map(<[u8]>::to_vec) {
            failure.at.get_or_insert_default().path = Some(path);
        }
        rename(failure, &end.endpoint, &end.base)
    }

    /// As a journal has it, of an item with this path.
    pub fn told(&self, failure: &Failure, path: &[u8], reached: bool) -> TaskFailure {
        let named = self.name(failure.clone());
        let own = failure.path().or_else(|| self.end_of(failure)?.path_of(failure));
        let why = match (own, named.path()) {
            // The name has taken the path in.
            (Some(own), None) if path.is_empty() || ends_in(bare(own), path) => named.message(),
            (Some(_), None) => format!("{}: {named}", display_bytes(path)),
            _ => named.message_of(path),
        };
        let endpoint = self.end_of(failure).map(|end| end.endpoint.clone());
        TaskFailure { why, endpoint, ..told(failure, path, reached) }
    }

    /// The end that a failure is of. One that is named decides: what fails on one side may be the other end's.
    fn end_of(&self, failure: &Failure) -> Option<&CalledEnd> {
        let spelled = |end: &Option<CalledEnd>| failure.end().is_some_and(|said| is_spelled(end.as_ref(), said));
        match (spelled(&self.source), spelled(&self.destination), failure.side) {
            (true, false, _) => self.source.as_ref(),
            (false, true, _) => self.destination.as_ref(),
            (_, _, Side::Source) => self.source.as_ref(),
            (_, _, Side::Destination) => self.destination.as_ref(),
            // Both are at that host.
            (true, true, Side::Command | Side::Link) => self.source.as_ref(),
            (false, false, Side::Command | Side::Link) => None,
        }
    }
}

impl CalledEnd {
    /// The path of a failure that names all of this end, its path too, in one text.
    fn path_of(&self, failure: &Failure) -> Option<&[u8]> {
        let location = self.location.as_ref()?;
        let is_whole = failure.path().is_none() && failure.end() == Some(&location.to_string());
        location.path().filter(|_| is_whole)
    }
}

fn is_spelled(end: Option<&CalledEnd>, said: &str) -> bool {
    let Some(location) = end.and_then(|end| end.location.as_ref()) else { return false };
    let host = match location {
        Location::Node { node, .. } => node.to_string(),
        Location::Ssh { host, .. } => host.to_string(),
        other => other.to_string(),
    };
    said == host || said == location.to_string()
}

/// The same by the name that callers know the place by, as `@lab:/run/file`: where its host is, and below what its root
/// lies there, is none of what they have asked for. `base` is that root. What failed at the service itself stays.
pub fn of_endpoint(mut failure: Failure, name: &str, base: &[u8]) -> Failure {
    failure.source = failure.source.map(|source| Box::new(of_endpoint(*source, name, base)));
    rename(failure, name, base)
}

/// Without its sources.
fn rename(mut failure: Failure, name: &str, base: &[u8]) -> Failure {
    let is_own = failure.side == Side::Command;
    let Some(at) = failure.at.as_deref_mut().filter(|at| at.end.is_some() || !is_own) else { return failure };
    // Paths of items begin where the copy does: they are not below a root that is relative, as ssh's may be.
    let is_plain = base.is_empty() || base.starts_with(b"/") || base.starts_with(b"~");
    let below = at.path.as_deref().filter(|_| is_plain).and_then(|path| path.strip_prefix(base));
    let below = below.filter(|below| below.is_empty() || below.starts_with(b"/") || base.ends_with(b"/"));
    match below.map(|below| below.strip_prefix(b"/").unwrap_or(below)) {
        Some(below) => {
            at.end = Some(format!("@{name}:/{}", display_bytes(below)));
            at.path = None;
        }
        None => at.end = Some(format!("@{name}")),
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::failure::ErrorCode;
    use carrack_core::location::NodeAddress;

    #[test]
    fn failure_names_the_endpoint_in_place_of_its_host_and_root() {
        let failed = |side, path: Option<&str>, end: Option<&str>| {
            let failure = Failure::new(ErrorCode::NotFound, side, "gone").during("open");
            let failure = path.into_iter().fold(failure, |failure, path| failure.at_path(path.as_bytes()));
            end.into_iter().fold(failure, Failure::at_end)
        };
        let cases = [
            (Side::Source, Some("/data/run/a"), Some("10.0.0.1:7341"), "/data", "@lab:/run/a: open: gone"),
            (Side::Source, Some("/data"), None, "/data", "@lab:/: open: gone"),
            (Side::Destination, Some("/run/a"), None, "/", "@lab:/run/a: open: gone"),
            (Side::Link, None, Some("10.0.0.1:7341"), "/", "@lab: open: gone"),
            (Side::Source, Some("/data2/a"), None, "/data", "@lab: /data2/a: open: gone"),
            (Side::Source, None, None, "/data", "open: gone"),
            (Side::Command, Some("/data/spool"), None, "/data", "/data/spool: open: gone"),
            (Side::Source, Some("data/a"), Some("h"), "data", "@lab: data/a: open: gone"),
        ];
        for (side, path, end, base, expected) in cases {
            assert_eq!(of_endpoint(failed(side, path, end), "lab", base.as_bytes()).message(), expected);
        }
        let outer =
            Failure { source: Some(Box::new(failed(Side::Link, None, Some("h:1")))), ..failed(Side::Link, None, None) };
        assert_eq!(of_endpoint(outer, "lab", b"").message(), "open: gone: @lab: open: gone");
    }

    #[test]
    fn failure_of_a_pair_names_the_endpoint_that_it_is_of() {
        let end = |endpoint: &str, base: &str, location: Location| {
            Some(CalledEnd { endpoint: endpoint.to_owned(), base: base.into(), location: Some(location) })
        };
        let node = |host: &str, port, path: &str| Location::Node {
            node: NodeAddress { host: host.to_owned(), port, pin: None },
            path: path.into(),
        };
        let called = Called {
            source: end("lab", "/data", node("10.0.0.1", 7341, "/data/run/")),
            destination: end("archive", "", Location::Local(b"/in".to_vec())),
        };
        let failure = |side, end: Option<&str>, path: Option<&str>| {
            let failure = end.into_iter().fold(Failure::new(ErrorCode::NotFound, side, "gone"), Failure::at_end);
            path.into_iter().fold(failure, |failure, path| failure.at_path(path.as_bytes()))
        };
        let whole = "carrack://10.0.0.1:7341/data/run/";
        for (side, end, path, item, expected) in [
            (Side::Source, Some("10.0.0.1:7341"), Some("/data/run/a/b"), "a/b", "@lab:/run/a/b: gone"),
            (Side::Destination, None, Some("/in/a/b"), "a/b", "@archive:/in/a/b: gone"),
            (Side::Destination, None, Some("/in/other"), "a/b", "a/b: @archive:/in/other: gone"),
            (Side::Source, Some("10.0.0.1:7341"), None, "a/b", "@lab: a/b: gone"),
            (Side::Source, Some(whole), None, "run", "@lab:/run/: gone"),
            (Side::Source, Some(whole), None, "", "@lab:/run/: gone"),
            (Side::Link, Some("10.0.0.1:7341"), None, "", "@lab: gone"),
            (Side::Link, Some("10.0.0.9:7341"), None, "", "10.0.0.9:7341: gone"),
            // The destination's host says that it cannot reach the source's.
            (Side::Destination, Some("10.0.0.1:7341"), None, "", "@lab: gone"),
            (Side::Command, None, Some("/state/journal"), "", "/state/journal: gone"),
            (Side::Command, Some(whole), None, "", "@lab:/run/: gone"),
        ] {
            let told = called.told(&failure(side, end, path), item.as_bytes(), false);
            assert_eq!(told.why, expected);
            // The sentence and the endpoint that it is of are told alike.
            let named = expected.split_once('@').map(|(_, name)| name.split([':', ' ']).next().unwrap_or_default());
            assert_eq!(told.endpoint.as_deref(), named, "{expected}");
        }
        let outer = failure(Side::Destination, None, Some("/in/a")).caused_by(failure(Side::Source, Some(whole), None));
        assert_eq!(called.name(outer).message(), "@archive:/in/a: gone: @lab:/run/: gone");
        let both = Called { destination: end("archive", "/in", node("10.0.0.1", 7341, "/in/")), ..called };
        assert_eq!(both.name(failure(Side::Link, Some("10.0.0.1:7341"), None)).message(), "@lab: gone");
        let nowhere = failure(Side::Source, Some("h:1"), Some("/x/a"));
        assert_eq!(Called::default().told(&nowhere, b"a", false).why, "h:1: /x/a: gone");
    }
}
