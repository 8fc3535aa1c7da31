//! Text → what a verb about files goes to: a [`Location`], or a path of a service's endpoint, `@NAME:/PATH`.

use carrack_core::location::Location;
#[cfg(feature = "service")]
use carrack_core::path::display_bytes;

use super::location::parse_location;

/// Where something is, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedLocation {
    /// A location that needs nobody's help.
    Location(Location),
    /// Of a service's endpoint.
    #[cfg(feature = "service")]
    Endpoint {
        /// Its name.
        name: String,
        /// Below its root; begins with a slash.
        path: Vec<u8>,
    },
}

impl TypedLocation {
    /// The path, where it has one.
    pub fn path(&self) -> Option<&[u8]> {
        match self {
            Self::Location(location) => location.path(),
            #[cfg(feature = "service")]
            Self::Endpoint { path, .. } => Some(path),
        }
    }
}

/// Parses one location as typed. Without a service in the program there are no endpoints, and its error says so.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
pub fn parse_named(text: &[u8]) -> Result<TypedLocation, String> {
    #[cfg(feature = "service")]
    if let Some(rest) = endpoint(text) {
        return super::task_location::parse_at(rest)
            .map(|(name, path)| TypedLocation::Endpoint { name: name.to_owned(), path: path.to_vec() })
            .map_err(|why| format!("{}: {why} (a local file of that name: ./{0})", display_bytes(text)));
    }
    parse_location(text).map(TypedLocation::Location)
}

/// What follows the `@`, where the text is one of an endpoint: a name, a colon, and no slash before it.
#[cfg(feature = "service")]
fn endpoint(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b"@")?;
    let head = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
    head.contains(&b':').then_some(rest)
}

#[cfg(all(test, feature = "service"))]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_told_from_files_and_hosts() {
        let at = |name: &str, path: &[u8]| TypedLocation::Endpoint { name: name.into(), path: path.to_vec() };
        let local = |path: &str| TypedLocation::Location(Location::Local(path.into()));
        for (text, named) in [
            (&b"@lab:/run 42/"[..], at("lab", b"/run 42/")),
            (b"@lab:/100%", at("lab", b"/100%")),
            (b"@a.b-c_1:/\xff:x", at("a.b-c_1", b"/\xff:x")),
            (b"@lab", local("@lab")),
            (b"@lab/x:y", local("@lab/x:y")),
            (b"./@lab:/x", local("./@lab:/x")),
        ] {
            assert_eq!(parse_named(text), Ok(named));
        }
        for text in ["@lab:", "@lab:x", "@:/x", "@a b:/x", "@-a:/x", "@user@host:/x"] {
            assert!(parse_named(text.as_bytes()).is_err(), "{text}");
        }
        assert!(matches!(parse_named(b"u@lab:/x"), Ok(TypedLocation::Location(Location::Ssh { .. }))));
    }
}
