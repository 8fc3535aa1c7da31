//! Text → [`Location`], as far as that depends on where it is typed: which verb takes it, and the current directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::location::Location;
use carrack_core::path::display_bytes;
#[cfg(feature = "service")]
pub use task::{check_typed_source, parse_endpoint_location, parse_task_location, task_location};

/// Why a path at an endpoint is not taken.
const NO_ENDPOINT: &str = if cfg!(feature = "service") {
    "an endpoint of a service is no place for this; or the user before @ is missing"
} else {
    "an endpoint of a service, and this carrack was built without the service and its client; name the node or the host \
     itself, or install the full carrack"
};

/// Parses the location of something that no service has a part in.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
pub fn parse_location(text: &[u8]) -> Result<Location, String> {
    match Location::parse_typed(text)? {
        endpoint @ Location::Endpoint { .. } => {
            Err(format!("{endpoint}: {NO_ENDPOINT} (a local file of that name: ./{endpoint})"))
        }
        location => Ok(location),
    }
}

/// Parses a location that may be at an endpoint, where there is a service in the program.
///
/// # Errors
/// A sentence that says what is wrong with it, printable.
pub fn parse_named(text: &[u8]) -> Result<Location, String> {
    if cfg!(feature = "service") { Location::parse_typed(text) } else { parse_location(text) }
}

/// What is to be known of a word that names a path on a host, where the current directory has a file of this name.
pub fn note_of_file(word: &OsStr) -> Option<String> {
    let text = word.as_bytes();
    let colon = text.iter().position(|&byte| byte == b':')?;
    let Ok(Location::Ssh { host, .. }) = Location::parse_typed(text) else { return None };
    // An address is no name of a file.
    if text[colon..].starts_with(b"://") || Path::new(word).symlink_metadata().is_err() {
        return None;
    }
    let shown = display_bytes(text);
    Some(format!("note: {shown} is a path on the host {}; the file of that name here is typed ./{shown}", host.host))
}

/// Locations of managed tasks and endpoints. A task runs without the terminal that submitted it: relative local paths
/// become absolute, and `-` is refused.
#[cfg(feature = "service")]
mod task {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use carrack_core::location::Location;
    use carrack_core::path::display_bytes;
    use carrack_service::model::EndpointLocation;

    /// Parses a location of a task. The answer is what the service understands.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, printable.
    pub fn parse_task_location(text: &[u8]) -> Result<String, String> {
        task_location(Location::parse_typed(text)?)
    }

    /// A location that was typed, as [`parse_task_location`] has it.
    ///
    /// # Errors
    /// The same.
    pub fn task_location(location: Location) -> Result<String, String> {
        let location = match location {
            Location::Local(path) if path.starts_with(b"@") => {
                return Err(format!("{}: an endpoint is written @NAME:/PATH", display_bytes(&path)));
            }
            Location::Local(path) => Location::Local(absolute(&path)?),
            Location::Stdio => return Err("a task runs without this terminal: - is none of its locations".to_owned()),
            location => location,
        };
        location.document().ok_or_else(|| format!("{location} is no location of a task"))
    }

    /// Refuses a source that is typed as a path relative to the current directory, where nothing has that path: it was
    /// meant to be at an endpoint, or is misspelt.
    ///
    /// # Errors
    /// A sentence that says so, printable.
    pub fn check_typed_source(text: &[u8]) -> Result<(), String> {
        if text.starts_with(b"/") || text.starts_with(b"@") {
            return Ok(());
        }
        let Ok(Location::Local(path)) = Location::parse_typed(text) else { return Ok(()) };
        match std::fs::symlink_metadata(std::ffi::OsStr::from_bytes(&path)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(format!(
                "{}: the current directory has no such file or directory; a path at an endpoint is written @NAME:/PATH",
                display_bytes(text)
            )),
            _ => Ok(()),
        }
    }

    /// Parses where an endpoint's root is.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, printable.
    pub fn parse_endpoint_location(text: &[u8]) -> Result<EndpointLocation, String> {
        let location = match Location::parse_typed(text)? {
            Location::Local(path) => Location::Local(absolute(&path)?),
            location => location,
        };
        EndpointLocation::of(&location).ok_or_else(|| {
            let forms = "an endpoint is a directory of this host, a node (carrack://HOST/PATH) or a host behind ssh";
            format!("{}: {forms}", display_bytes(text))
        })
    }

    fn absolute(path: &[u8]) -> Result<Vec<u8>, String> {
        let os = std::ffi::OsStr::from_bytes(path);
        let found = std::path::absolute(Path::new(os))
            .map_err(|error| format!("{}: the current directory: {error}", display_bytes(path)))?;
        let mut found = found.as_os_str().as_bytes().to_vec();
        // Has a meaning: the contents of a directory.
        if path.ends_with(b"/.") && !found.ends_with(b"/") {
            found.push(b'/');
        }
        Ok(found)
    }
}

#[cfg(all(test, feature = "service"))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use carrack_core::location::encode_path;

    use super::*;

    #[test]
    fn relative_source_of_a_task_has_to_be_there() {
        for text in ["src", "/none", "@lab:/none", "box:none", "carrack://box/none", "null:"] {
            assert_eq!(check_typed_source(text.as_bytes()), Ok(()), "{text}");
        }
        for text in ["lab/run", "none", "./none"] {
            let why = check_typed_source(text.as_bytes()).unwrap_err();
            assert!(why.contains("@NAME:/PATH") && why.contains(text), "{why}");
        }
    }

    #[test]
    fn task_locations_are_told_so_that_the_service_knows_them() {
        let here = std::env::current_dir().expect("a current directory");
        let here = encode_path(here.as_os_str().as_bytes());
        let relative = format!("{here}/run42/");
        for (text, expected) in [
            ("@archive:/run 42/", "@archive:/run 42/"),
            ("/data/a#b", "/data/a%23b"),
            ("run42/", &relative),
            ("box:data", "ssh://box/~/data"),
            ("zero:1K", "zero:1024"),
        ] {
            assert_eq!(parse_task_location(text.as_bytes()).as_deref(), Ok(expected), "{text}");
        }
        for text in ["-", "@archive", "@archive:x", "ssh://box:22/x", "http://x/", ""] {
            assert!(parse_task_location(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn endpoint_locations_are_shown_as_they_are_typed() {
        let pin = "ab".repeat(32);
        let node = format!("carrack://box:7421/data#sha256:{pin}");
        for (text, shown) in [
            ("/data", "/data"),
            (&node[..], &node[..]),
            ("carrack://[::1]/", "carrack://[::1]:7420/"),
            ("me@box:/data", "ssh://me@box/data"),
            ("ssh://box", "ssh://box/~/"),
            ("box:in", "ssh://box/~/in"),
        ] {
            let location = parse_endpoint_location(text.as_bytes()).expect(text);
            assert_eq!(location.text(), shown, "{text}");
        }
        for text in ["null:", "-", "zero:1G", "@x:/y"] {
            assert!(parse_endpoint_location(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn endpoint_is_no_place_where_no_service_has_a_part() {
        assert!(parse_location(b"@lab:/x").is_err_and(|why| why.contains("./@lab:/x")));
        assert!(matches!(parse_named(b"@lab:/x"), Ok(Location::Endpoint { .. })));
        for (text, hint) in [
            (&b"fe80::1:p"[..], "[fe80::1]:PATH"),
            (b"-x:p", "./-x:p"),
            (b"carrack://me@h/", "a token says who comes"),
            (b"https://h", "https://"),
        ] {
            let why = parse_location(text).expect_err("no location");
            assert!(why.contains(hint), "{why}");
        }
    }
}
