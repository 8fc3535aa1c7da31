//! Paths below an endpoint's root, as rights are compared: by component, after everything that could mean another place
//! is refused.

use std::fmt;

use carrack_core::location::encode_path;

/// A path that means one place below a root: no `.`, no `..`, in no spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopePath {
    components: Vec<String>,
    is_directory: bool,
}

/// Why a text is no such path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopePathError {
    /// It does not begin with `/`.
    NotAbsolute,
    /// It holds `.` or `..`, plain or by `%`.
    Dots,
    /// It holds `//`.
    EmptyComponent,
    /// It holds a NUL, or a `/` by `%`.
    Hidden,
    /// A `%` is followed by something else than two hexadecimal digits.
    BadPercent,
    /// It is longer than any path.
    TooLong,
}

impl fmt::Display for ScopePathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAbsolute => "a path below an endpoint begins with /",
            Self::Dots => "a path below an endpoint holds no . and no ..",
            Self::EmptyComponent => "a path below an endpoint holds no //",
            Self::Hidden => {
                "a path below an endpoint holds no NUL and no / by %2F; a name with the text %2F is written %252F"
            }
            Self::BadPercent => "a % in a path is written %25; two hexadecimal digits behind it are a byte",
            Self::TooLong => "the path is longer than any path is",
        })
    }
}

impl std::error::Error for ScopePathError {}

/// In its one spelling.
impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.is_directory && !self.components.is_empty() { "/" } else { "" };
        write!(f, "/{}{slash}", self.components.join("/"))
    }
}

impl ScopePath {
    /// Parses a path as tasks and scopes have it: bytes that are no text stand as `%HH`.
    ///
    /// # Errors
    /// Every [`ScopePathError`].
    pub fn parse(text: &str) -> Result<Self, ScopePathError> {
        if text.len() > 16 << 10 {
            return Err(ScopePathError::TooLong);
        }
        let rest = text.strip_prefix('/').ok_or(ScopePathError::NotAbsolute)?;
        let is_directory = rest.is_empty() || rest.ends_with('/');
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let mut components = Vec::new();
        if !rest.is_empty() {
            for component in rest.split('/') {
                components.push(normal(component)?);
            }
        } else if text.len() > 1 {
            return Err(ScopePathError::EmptyComponent);
        }
        Ok(Self { components, is_directory })
    }

    /// A path of a location, decoded already.
    ///
    /// # Errors
    /// As [`ScopePath::parse`].
    pub fn of(path: &[u8]) -> Result<Self, ScopePathError> {
        Self::parse(&encode_path(path))
    }

    /// The root itself.
    pub const fn root() -> Self {
        Self { components: Vec::new(), is_directory: true }
    }

    /// Whether this is `other` or lies below it: `/foo` is not below `/foobar`, nor the other way round.
    pub fn is_within(&self, other: &Self) -> bool {
        self.components.starts_with(&other.components)
    }

    /// What it is below the root, as bytes, without a slash at either end; nothing for the root itself.
    pub fn bytes(&self) -> Vec<u8> {
        // In its one spelling every component can be decoded.
        let plain = |text: &String| decode(text.as_bytes()).unwrap_or_else(|_| text.clone().into_bytes());
        self.components.iter().map(plain).collect::<Vec<_>>().join(&b'/')
    }

    /// The same path below another one.
    #[must_use]
    pub fn below(&self, above: &Self) -> Self {
        let components = above.components.iter().chain(&self.components).cloned().collect();
        Self { components, is_directory: self.is_directory }
    }

    /// Whether it ends with `/`: for a source, its contents are meant.
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }
}

/// A component in its one spelling: letters, digits, `-`, `_`, `.` and `~` plain, whatever else by `%HH`.
fn normal(component: &str) -> Result<String, ScopePathError> {
    // Decoded once, here. The one spelling is encoded again, so whoever parses it gets the same bytes; a name that
    // holds the text %2F or %2E%2E is a name like any other.
    let bytes = decode(component.as_bytes())?;
    check(&bytes)?;
    Ok(crate::model::percent(&bytes))
}

fn check(bytes: &[u8]) -> Result<(), ScopePathError> {
    match bytes {
        b"" => Err(ScopePathError::EmptyComponent),
        b"." | b".." => Err(ScopePathError::Dots),
        _ if bytes.contains(&0) || bytes.contains(&b'/') => Err(ScopePathError::Hidden),
        _ => Ok(()),
    }
}

fn decode(text: &[u8]) -> Result<Vec<u8>, ScopePathError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = after.get(..2).ok_or(ScopePathError::BadPercent)?;
            let byte = data_encoding::HEXLOWER_PERMISSIVE.decode(digits).map_err(|_| ScopePathError::BadPercent)?;
            bytes.extend(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn path_is_told_in_one_spelling_and_as_bytes() {
        for (text, shown, bytes) in [
            ("/", "/", &b""[..]),
            ("/a/b", "/a/b", b"a/b"),
            ("/a/b/", "/a/b/", b"a/b"),
            ("/%61%20%fF/%25", "/a%20%FF/%25", b"a \xff/%"),
            ("/a%252fb", "/a%252fb", b"a%2fb"),
            ("/%252E%252E/%2500", "/%252E%252E/%2500", b"%2E%2E/%00"),
            ("/%25252e", "/%25252e", b"%252e"),
        ] {
            let path = ScopePath::parse(text).unwrap();
            assert_eq!((path.to_string().as_str(), &path.bytes()[..]), (shown, bytes));
        }
        let (root, a, b) = (ScopePath::root(), ScopePath::parse("/a/").unwrap(), ScopePath::parse("/b").unwrap());
        assert_eq!([b.below(&a), b.below(&root), a.below(&root)].map(|path| path.to_string()), ["/a/b", "/b", "/a/"]);
        assert_eq!(root.below(&a).to_string(), "/a/");
    }

    fn within(path: &str, other: &str) -> bool {
        ScopePath::parse(path).unwrap().is_within(&ScopePath::parse(other).unwrap())
    }

    #[test]
    fn scope_path_is_compared_by_component() {
        for (path, other, is) in [
            ("/foo", "/foo", true),
            ("/foo/", "/foo", true),
            ("/foo", "/foo/", true),
            ("/foo/bar", "/foo", true),
            ("/foobar", "/foo", false),
            ("/foo", "/foobar", false),
            ("/fo", "/foo", false),
            ("/", "/foo", false),
            ("/foo", "/", true),
            ("/", "/", true),
            ("/%66oo/x", "/foo", true),
            ("/foo%20bar", "/foo bar", true),
            ("/foo", "/FOO", false),
            ("/...", "/", true),
            ("/é", "/%C3%A9", true),
            ("/é", "/%c3%a9", true),
        ] {
            assert_eq!(within(path, other), is, "{path} in {other}");
        }
    }

    #[test]
    fn scope_path_refuses_what_could_mean_another_place() {
        use ScopePathError::{BadPercent, Dots, EmptyComponent, Hidden, NotAbsolute};
        for (path, error) in [
            ("", NotAbsolute),
            ("foo", NotAbsolute),
            ("//", EmptyComponent),
            ("//foo", EmptyComponent),
            ("/foo//bar", EmptyComponent),
            ("/foo//", EmptyComponent),
            ("/.", Dots),
            ("/..", Dots),
            ("/foo/..", Dots),
            ("/foo/../", Dots),
            ("/foo/./bar", Dots),
            ("/%2e%2e/x", Dots),
            ("/.%2E", Dots),
            ("/%2e", Dots),
            ("/a%2fb", Hidden),
            ("/a%2F..%2Fb", Hidden),
            ("/a%00", Hidden),
            ("/a\0", Hidden),
            ("/a%", BadPercent),
            ("/a%4", BadPercent),
            ("/a%zz", BadPercent),
            ("/a%+1", BadPercent),
        ] {
            assert_eq!(ScopePath::parse(path), Err(error), "{path:?}");
        }
        assert_eq!(ScopePath::parse(&format!("/{}", "a".repeat(20_000))), Err(ScopePathError::TooLong));
    }

    proptest! {
        /// A name leads to itself, however it looks when it is decoded again, and stays the only component.
        #[test]
        fn scope_path_is_decoded_once(name in "[%2Ee0fF.a5]{1,12}") {
            prop_assume!(name != "." && name != "..");
            let path = ScopePath::parse(&format!("/run/{}", crate::model::percent(name.as_bytes()))).unwrap();
            let again = ScopePath::parse(&path.to_string()).unwrap();
            prop_assert_eq!(&again, &path);
            prop_assert_eq!(path.bytes(), [b"run/", name.as_bytes()].concat());
            prop_assert!(path.is_within(&ScopePath::parse("/run").unwrap()));
            prop_assert_eq!(path.components.len(), 2);
        }

        /// Whatever is within a scope is there by the plainest of comparisons, too: after decoding, the scope's text
        /// stands at its beginning, and a component ends there; and no component leads up.
        #[test]
        fn scope_path_never_lets_out(path in "[/.%a2eEfF0b ]{0,24}", scope in "(/[ab.]{1,3}){0,3}") {
            let (Ok(path_parsed), Ok(scope_parsed)) = (ScopePath::parse(&path), ScopePath::parse(&scope)) else {
                return Ok(());
            };
            let plain = String::from_utf8_lossy(&decode(path.as_bytes()).unwrap()).into_owned();
            prop_assert!(!plain.split('/').any(|component| component == "." || component == ".."));
            let scope = scope.trim_end_matches('/');
            let below = plain == scope || plain.starts_with(&format!("{scope}/"));
            prop_assert_eq!(path_parsed.is_within(&scope_parsed), below || plain.trim_end_matches('/') == scope);
        }
    }
}
