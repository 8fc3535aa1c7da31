//! `carrack.toml`: what `carrack serve` is told by a file. Each key stands for a flag, and its value is read by the
//! same code. A key that nobody knows is an error that names the nearest one: what is misspelt must not be passed over.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::path::display_bytes;

use super::flag::{Switch, Value};
use crate::error::CommandError;

/// A key of the file.
#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    /// The table that it stands in.
    pub table: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// The flag that it stands for, without dashes.
    pub flag: &'static str,
    /// What its value is.
    pub kind: ValueKind,
    /// What holds where nothing is said, in words.
    pub default: &'static str,
}

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A text or a number.
    One,
    /// One, or several in an array.
    Several,
    /// `true` or `false`.
    Switch,
}

/// A configuration, as it was read.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: Vec<u8>,
    /// By flag: the key, and its values.
    values: BTreeMap<&'static str, (ConfigKey, Vec<String>)>,
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// One that cannot be read; a usage error that names the line, or the key.
    pub fn read(path: &[u8], keys: &[ConfigKey]) -> Result<Self, CommandError> {
        let text = std::fs::read_to_string(Path::new(OsStr::from_bytes(path)))
            .map_err(|error| CommandError::file("cannot read the configuration", path, &error))?;
        Self::parse(path, &text, keys)
    }

    fn parse(path: &[u8], text: &str, keys: &[ConfigKey]) -> Result<Self, CommandError> {
        let shown = display_bytes(path).to_string();
        let tables: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| CommandError::usage(format!("{shown}: {}", one_line(&error, text))))?;
        let mut values = BTreeMap::new();
        for (table, content) in &tables {
            let toml::Value::Table(content) = content else {
                return Err(unknown(&shown, table, keys.iter().map(|key| key.table)));
            };
            if !keys.iter().any(|key| key.table == table) {
                return Err(unknown(&shown, table, keys.iter().map(|key| key.table)));
            }
            for (name, value) in content {
                let own = || keys.iter().filter(|key| key.table == table);
                let Some(key) = own().find(|key| key.name == name) else {
                    return Err(
                        unknown(&shown, name, own().map(|key| key.name)).hint(format!("it stands in [{table}]"))
                    );
                };
                let read = texts(value, key.kind)
                    .map_err(|why| CommandError::usage(format!("{shown}: {table}.{name}: {why}")))?;
                values.insert(key.flag, (*key, read));
            }
        }
        Ok(Self { path: path.to_vec(), values })
    }

    /// A value.
    ///
    /// # Errors
    /// A usage error that names the file and the key.
    pub fn get<T>(&self, flag: &Value<T>) -> Result<Option<T>, CommandError> {
        Ok(self.all(flag)?.pop())
    }

    /// All values of a key.
    ///
    /// # Errors
    /// As [`ConfigFile::get`].
    pub fn all<T>(&self, flag: &Value<T>) -> Result<Vec<T>, CommandError> {
        let Some((_, values)) = self.values.get(flag.name) else { return Ok(Vec::new()) };
        let origin = self.origin(flag.name).unwrap_or_default();
        let read = |text: &String| {
            flag.read(text.clone().into_bytes()).map_err(|why| CommandError::usage(format!("{origin}: {why}")))
        };
        values.iter().map(read).collect()
    }

    /// Whether a key is true.
    pub fn has(&self, flag: &Switch) -> bool {
        self.text(flag.name).is_some_and(|text| text == "true")
    }

    /// The file and the key that stands for a flag.
    pub fn origin(&self, flag: &str) -> Option<String> {
        let (key, _) = self.values.get(flag)?;
        Some(format!("{}: {}.{}", display_bytes(&self.path), key.table, key.name))
    }

    /// A value as it was written.
    pub fn text(&self, flag: &str) -> Option<String> {
        self.values.get(flag).map(|(_, values)| values.join(","))
    }
}

/// The first line of what is wrong, and where.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let why = error.message().lines().next().unwrap_or_default().to_owned();
    match error.span() {
        Some(span) => {
            let line = text.get(..span.start).unwrap_or_default().matches('\n').count() + 1;
            format!("line {line}: {why}")
        }
        None => why,
    }
}

fn unknown(file: &str, name: &str, known: impl Iterator<Item = &'static str>) -> CommandError {
    let error =
        CommandError::usage(format!("{file}: there is no key {:?}", display_bytes(name.as_bytes()).to_string()));
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint("carrack service config show names all keys"),
    }
}

/// The word that differs in the fewest letters, if it is near enough to be a slip.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let most = name.chars().count().div_ceil(3);
    let with_distance = known.map(|word| (distance(name, word), word));
    with_distance.filter(|(distance, _)| *distance <= most).min().map(|(_, word)| word)
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, against) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *against);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

fn texts(value: &toml::Value, kind: ValueKind) -> Result<Vec<String>, String> {
    let one = |value: &toml::Value| match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        _ => Err("a text or a number is wanted".to_owned()),
    };
    match (kind, value) {
        (ValueKind::Switch, toml::Value::Boolean(on)) => Ok(vec![on.to_string()]),
        (ValueKind::Switch, _) => Err("true or false is wanted".to_owned()),
        (ValueKind::Several, toml::Value::Array(values)) => values.iter().map(one).collect(),
        (_, value) => one(value).map(|text| vec![text]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[ConfigKey] = &[
        ConfigKey { table: "node", name: "root", flag: "root", kind: ValueKind::One, default: "" },
        ConfigKey { table: "node", name: "read_only", flag: "read-only", kind: ValueKind::Switch, default: "false" },
        ConfigKey { table: "node", name: "dial_to", flag: "dial-to", kind: ValueKind::Several, default: "none" },
        ConfigKey { table: "service", name: "workers", flag: "workers", kind: ValueKind::One, default: "16" },
    ];
    const WORKERS: Value<u32> =
        Value::new("workers", "N", |text| text.parse().map_err(|_| format!("{text:?}: no number")), "");
    const DIAL_TO: Value<Vec<u8>> = Value::path("dial-to", "CIDR", "");
    const READ_ONLY: Switch = Switch::new("read-only", "");

    fn parsed(text: &str) -> Result<ConfigFile, CommandError> {
        ConfigFile::parse(b"/etc/carrack.toml", text, KEYS)
    }

    #[test]
    fn config_values_are_read_as_their_flags_are() {
        let text = "[node]\nread_only = true\ndial_to = [\"10.0.0.0/8\", \"192.168.0.0/16\"]\n[service]\nworkers = 4\n";
        let file = parsed(text).expect("good");
        assert!(file.has(&READ_ONLY));
        assert_eq!(file.get(&WORKERS), Ok(Some(4)));
        assert_eq!(file.all(&DIAL_TO).map(|all| all.len()), Ok(2));
        assert_eq!(file.origin("workers").as_deref(), Some("/etc/carrack.toml: service.workers"));
        assert_eq!((file.origin("root"), file.text("dial-to").as_deref()), (None, Some("10.0.0.0/8,192.168.0.0/16")));
        let bad = parsed("[service]\nworkers = \"many\"\n").expect("TOML");
        let error = bad.get(&WORKERS).expect_err("no number");
        assert!(error.to_string().starts_with("/etc/carrack.toml: service.workers: "), "{error}");
    }

    #[test]
    fn config_keys_that_nobody_knows_are_errors_that_name_the_nearest() {
        for (text, named, hint) in [
            ("[nod]\n", "nod", "did you mean node?"),
            ("[node]\nreadonly = true\n", "readonly", "did you mean read_only?"),
            ("[service]\nworker = 4\n", "worker", "did you mean workers?"),
            ("[service]\nbananas = 4\n", "bananas", "carrack service config show names all keys"),
            ("root = \"/x\"\n", "root", "carrack service config show names all keys"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.to_string().contains(named), "{error}");
            assert_eq!(error.hints[0], hint, "{text}");
            assert_eq!(error.exit_code(), crate::exit::USAGE);
        }
    }

    #[test]
    fn config_that_is_no_toml_is_an_error_with_its_line() {
        let error = parsed("[node]\nroot = \n").expect_err("no value");
        assert!(error.to_string().starts_with("/etc/carrack.toml: line 2: "), "{error}");
        for text in ["[node]\nread_only = \"yes\"\n", "[node]\nroot = true\n", "[node]\ndial_to = [[1]]\n"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
