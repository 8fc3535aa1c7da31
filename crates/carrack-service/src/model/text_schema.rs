//! How the description of the API shows texts that the service parses: paths and locations of tasks, labels, digests.
//! The patterns are of ECMA 262, as the description's format has them; tests hold them against the parsers.

use carrack_core::limits::{LABEL_CHARACTERS_MAX, LOCATION_BYTES};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type};

/// Characters that a location holds only by `%HH`.
const CONTROLS: &str = r"\u0000-\u001f\u007f-\u009f";
/// Characters that no name of a host has, beside white space.
const NOT_IN_HOSTS: &str = r#"'`"$\\;&<>|(){},/@\[\]:%"#;
/// The same of a login, beside the backslash, which stands anywhere but at its end.
const NOT_IN_LOGINS: &str = r#"'`"$;&<>|(){}/:"#;
/// A byte by `%HH`, but for a NUL.
const BYTE: &str = "%(?:0[1-9A-Fa-f]|[1-9A-Fa-f][0-9A-Fa-f])";
const SIZE: &str = r"(?:[0-9]+(?:B|[KMGTPkmgtp](?:iB|B)?)?|[0-9]+\.[0-9]{1,18}[KMGTPkmgtp](?:iB|B)?)";
const PORT: &str = "0*(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})";
const PIN: &str = "#sha256:(?:[0-9A-Fa-f]{64}|[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]=?)";

/// A path below an endpoint's root: no component is empty, `.` or `..`, and none holds a NUL or a `/`, plain or by `%`.
fn path_pattern(refused: &str) -> String {
    let dot = r"(?:\.|%2[Ee])";
    let other = format!(r"(?:[^%/.{refused}]|%(?:0[1-9A-Fa-f]|2[0-9A-Da-d]|[13-9A-Fa-f][0-9A-Fa-f]))");
    let component = format!("(?:{dot}{{0,2}}{other}|{dot}{{3}})(?:{dot}|{other})*");
    format!("/(?:{component}(?:/{component})*/?)?")
}

/// A location of a task, whoever may name it.
fn location_pattern() -> String {
    let endpoint = format!("@[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}:{}", path_pattern(CONTROLS));
    let rest = |refused: &str| format!("(?:/(?:[^%{refused}{CONTROLS}]|{BYTE})*)");
    let local = rest("");
    let host = |more: &str| {
        let refused = format!(r"{NOT_IN_HOSTS}{more}\s{CONTROLS}");
        format!(r"(?:[^-{refused}][^{refused}]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])")
    };
    let node = format!("carrack://{}(?::{PORT})?{}?(?:{PIN})?", host("?#"), rest("?#"));
    let not_in_login = format!(r"{NOT_IN_LOGINS}\s{CONTROLS}");
    let login = format!(r"(?:[^-\\{not_in_login}]|[^-{not_in_login}][^{not_in_login}]*[^\\{not_in_login}])@");
    let ssh = format!("ssh://(?:{login})?{}{}?", host(""), rest(""));
    format!("^(?:{endpoint}|{local}|{node}|{ssh}|null:|(?:zero|random):{SIZE})$")
}

fn text(pattern: String, longest: usize) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).max_length(Some(longest))
}

fn or_null(text: ObjectBuilder) -> Object {
    text.schema_type(SchemaType::Array(vec![Type::String, Type::Null])).build()
}

fn below_a_root() -> ObjectBuilder {
    let words = "A path from the endpoint's root. A byte that is no text, a % too, stands as %HH.";
    text(format!("^{}$", path_pattern(r"\u0000")), LOCATION_BYTES).description(Some(words))
}

/// A path below an endpoint's root.
pub(super) fn path() -> Schema {
    below_a_root().into()
}

/// The same where it may be left out.
pub(super) fn path_or_null() -> Schema {
    or_null(below_a_root()).into()
}

/// Paths below an endpoint's root.
pub(super) fn paths() -> Schema {
    ArrayBuilder::new().items(below_a_root()).into()
}

fn place() -> ObjectBuilder {
    let words = "@NAME:/PATH at an endpoint; for the account that runs the service also a path of its host, \
        carrack://HOST[:PORT]/PATH[#sha256:PIN], ssh://[USER@]HOST/PATH, and null:, zero:SIZE, random:SIZE. A byte of a \
        path that is no text, a % too, stands as %HH.";
    text(location_pattern(), LOCATION_BYTES).description(Some(words))
}

/// A location of a task.
pub(super) fn location() -> Schema {
    place().into()
}

/// The same where it may be left out.
pub(super) fn location_or_null() -> Schema {
    or_null(place()).into()
}

/// What somebody calls a task.
pub(super) fn label() -> Schema {
    let label = text(format!("^[^{CONTROLS}]+$"), LABEL_CHARACTERS_MAX).min_length(Some(1));
    or_null(label.description(Some("Printable characters."))).into()
}

/// Digests by path.
pub(super) fn digests() -> Schema {
    let digest = text("^[0-9A-Fa-f]{64}$".to_owned(), 64);
    let words = "BLAKE3 digests that files must have, by the path relative to the destination.";
    let object = ObjectBuilder::new().description(Some(words));
    object.additional_properties(Some(Schema::from(digest))).into()
}

#[cfg(test)]
mod tests {
    use carrack_core::location::Location;
    use carrack_core::options::check_label;
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;
    use crate::identity::ScopePath;

    /// Whether a schema takes a text.
    fn takes(schema: Schema, text: &str) -> bool {
        let schema = serde_json::to_value(schema).unwrap();
        let within = |bound: &str, or: u64| schema[bound].as_u64().unwrap_or(or);
        let characters = text.chars().count() as u64;
        let fits = within("minLength", 0) <= characters && characters <= within("maxLength", u64::MAX);
        fits && Regex::new(schema["pattern"].as_str().unwrap()).unwrap().is_match(text)
    }

    /// Whether the service takes a location, with all that it asks of a path at an endpoint.
    fn is_location(text: &str) -> bool {
        match Location::parse_document(text) {
            Ok(Location::Endpoint { path, .. }) => ScopePath::of(&path).is_ok(),
            parsed => parsed.is_ok(),
        }
    }

    #[test]
    fn path_pattern_takes_what_the_service_takes() {
        let long = format!("/{}", "a".repeat(LOCATION_BYTES));
        for text in [
            "",
            "/",
            "//",
            "/a",
            "a",
            "/a/",
            "/a//",
            "/a//b",
            "/.",
            "/..",
            "/...",
            "/.a",
            "/..a",
            "/a..",
            "/a/./b",
            "/%2e",
            "/%2E.",
            "/.%2e/a",
            "/%2E%2e%2E",
            "/%",
            "/%2",
            "/%zz",
            "/%2f",
            "/%2F",
            "/%00",
            "/%01",
            "/%25",
            "/%252F",
            "/a%20b",
            "/é",
            "/\0",
            "/a\n",
            "/a\nb/",
            &long,
            &long[1..],
        ] {
            assert_eq!(takes(path(), text), ScopePath::parse(text).is_ok(), "{text:?}");
            assert_eq!(takes(path_or_null(), text), ScopePath::parse(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn location_pattern_takes_what_the_service_takes() {
        let (hex, base) = ("aB".repeat(32), "b".repeat(42));
        let pins = [hex.clone(), format!("{hex}0"), format!("{base}A"), format!("{base}B"), format!("{base}A=")];
        for pin in pins {
            let text = format!("carrack://n/a#sha256:{pin}");
            assert_eq!(takes(location(), &text), is_location(&text), "{text:?}");
        }
        for text in [
            "@lab:/run",
            "@lab:/run/",
            "@lab:run",
            "@lab",
            "@:/a",
            "@la b:/a",
            "@lab:/../x",
            "@lab:/a\n",
            "@lab:/a%2fb",
            "/data/x y",
            "/",
            "//..",
            "/a\tb",
            "/\u{9b}",
            "a",
            "./a",
            "a:b",
            "",
            "ftp://h/a",
            "carrack://n",
            "carrack://n/",
            "carrack://n:99/a b",
            "carrack://n:0/",
            "carrack://n:65535",
            "carrack://n:65536",
            "carrack://n:0080/",
            "carrack://n:",
            "carrack://n:+1/",
            "carrack://",
            "carrack://-n/",
            "carrack://u@h/",
            "carrack://[::1]:8/a",
            "carrack://[fe80::1%eth0]/",
            "carrack://[]/",
            "carrack://h/?q",
            "carrack://h/#x",
            "carrack://h?/",
            "carrack://$(id)/",
            "ssh://h/a",
            "ssh://h",
            "ssh://h/~/a",
            "ssh://me@h/",
            "ssh://me@r@h/a",
            "ssh://-x@h/",
            "ssh://h:22/a",
            "ssh:///a",
            "ssh://a b/",
            "ssh://`id`/",
            "ssh://[::1]/a",
            "ssh://u:p@h/",
            "null:",
            "null:x",
            "zero:1G",
            "zero:",
            "zero:-1",
            "random:10",
            "random:1.5G",
        ] {
            assert_eq!(takes(location(), text), is_location(text), "{text:?}");
            assert_eq!(takes(location_or_null(), text), is_location(text), "{text:?}");
        }
    }

    #[test]
    fn label_pattern_takes_what_the_service_takes() {
        let long = "é".repeat(LABEL_CHARACTERS_MAX);
        for text in ["", "a", "run 42, \"ψ\"", "a\nb", "a\u{7f}", "\u{85}", &long, &format!("{long}a")] {
            assert_eq!(takes(label(), text), check_label(text).is_ok(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn patterns_take_what_the_service_takes_of_any_text(
            below in r"/?(\.|%|2|e|E|f|0|/|a|é|\x00|\n| ){0,12}",
            host in r"[-ab.:@#?%$/ 0169\\,]{0,12}",
        ) {
            prop_assert_eq!(takes(path(), &below), ScopePath::parse(&below).is_ok(), "{:?}", below);
            for text in [format!("@lab:{below}"), format!("carrack://{host}"), format!("ssh://{host}"), host] {
                prop_assert_eq!(takes(location(), &text), is_location(&text), "{:?}", text);
            }
        }
    }
}
