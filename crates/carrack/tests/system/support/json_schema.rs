//! Holds what the program prints against `docs/json.schema.json`.
//!
//! Of JSON Schema it knows what that file uses, and refuses a schema that uses more: nothing stands there that is not
//! checked. It is stricter than the schema in one thing: a key that the schema does not name is a fault here, so that
//! nothing is printed that is not documented.

use serde_json::{Map, Value};

/// A schema.
pub struct Schema {
    root: Value,
}

/// Keywords that say nothing of a value.
const ANNOTATIONS: [&str; 4] = ["$schema", "$defs", "title", "description"];

impl Schema {
    /// The one in the documents.
    pub fn published() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.schema.json");
        Self::new(&std::fs::read_to_string(path).expect("the schema")).expect("JSON")
    }

    /// One whose types stand under `$defs`.
    #[allow(dead_code, reason = "of two programs of tests only one asks")]
    pub fn of(text: &str) -> Self {
        Self::new(text).expect("JSON")
    }

    /// Checks a value as one of those types.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    #[allow(dead_code, reason = "of two programs of tests only one asks")]
    pub fn check_as(&self, name: &str, value: &Value) -> Result<(), String> {
        self.value(self.at(&format!("/$defs/{name}")), value, "")
    }

    fn new(text: &str) -> serde_json::Result<Self> {
        Ok(Self { root: serde_json::from_str(text)? })
    }

    /// The part of the schema at a JSON Pointer.
    pub fn at(&self, pointer: &str) -> &Value {
        self.root.pointer(pointer).unwrap_or_else(|| panic!("nothing at {pointer}"))
    }

    /// Whether there is something at a JSON Pointer.
    #[allow(dead_code, reason = "of two programs of tests only one asks")]
    pub fn has(&self, pointer: &str) -> bool {
        self.root.pointer(pointer).is_some()
    }

    /// The types of lines that it knows.
    #[allow(dead_code, reason = "of two programs of tests only one asks")]
    pub fn types(&self) -> Vec<&str> {
        let lines = self.at("/oneOf").as_array().expect("lines").iter();
        lines.map(|line| self.resolved(line)["properties"]["type"]["const"].as_str().expect("a type")).collect()
    }

    /// Checks a line.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn check(&self, line: &Value) -> Result<(), String> {
        // Of several types the one that the line says it has is told of: what is wrong with the others says nothing.
        let own = |schema: &&Value| {
            let properties = &self.resolved(schema)["properties"];
            properties["type"]["const"] == line["type"]
                && (properties["verb"]["const"] == line["verb"]
                    || properties["verb"]["enum"].as_array().is_some_and(|verbs| verbs.contains(&line["verb"]))
                    || properties["verb"].is_null())
        };
        let lines = self.at("/oneOf").as_array().expect("lines");
        let schema = lines.iter().find(own).ok_or_else(|| format!("no such type of line: {line}"))?;
        self.value(schema, line, "").map_err(|why| format!("{why}: {line}"))
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.at(reference.trim_start_matches('#')),
            None => schema,
        }
    }

    fn value(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let rules = schema.as_object().ok_or_else(|| format!("{place}: the schema is no object"))?;
        for (rule, wanted) in rules {
            let holds = match rule.as_str() {
                "$ref" => self.value(self.resolved(schema), value, place).map(|()| true)?,
                "const" => value == wanted,
                "enum" => list(wanted).contains(value),
                "type" => is_of_type(value, wanted),
                "minimum" => value.as_f64() >= wanted.as_f64(),
                "maximum" => value.as_f64() <= wanted.as_f64(),
                "pattern" => matches(wanted.as_str().expect("a pattern"), value.as_str().unwrap_or_default()),
                "required" => list(wanted).iter().all(|name| value.get(name.as_str().expect("a name")).is_some()),
                "properties" => {
                    self.properties(wanted, &schema["additionalProperties"], value, place).map(|()| true)?
                }
                // With the others: see above.
                "additionalProperties" => true,
                "items" => self.items(wanted, value, place).map(|()| true)?,
                "minItems" => list(value).len() as u64 >= wanted.as_u64().expect("a number"),
                "maxItems" => list(value).len() as u64 <= wanted.as_u64().expect("a number"),
                "oneOf" => list(wanted).iter().filter(|one| self.value(one, value, place).is_ok()).count() == 1,
                other if ANNOTATIONS.contains(&other) => true,
                other => panic!("the schema uses {other:?}, which is not checked"),
            };
            if !holds {
                return Err(format!("{place} is not as {rule} {wanted} says"));
            }
        }
        Ok(())
    }

    fn properties(&self, schemas: &Value, others: &Value, value: &Value, place: &str) -> Result<(), String> {
        let none = Map::new();
        for (name, field) in value.as_object().unwrap_or(&none) {
            let place = format!("{place}/{name}");
            let schema = schemas.get(name).or(Some(others).filter(|others| others.is_object()));
            let schema = schema.ok_or_else(|| format!("{place} is not in the schema"))?;
            self.value(schema, field, &place)?;
        }
        Ok(())
    }

    fn items(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
        values.iter().enumerate().try_for_each(|(index, item)| self.value(schema, item, &format!("{place}/{index}")))
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list in the schema")
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        other => panic!("the schema has a type {other:?}, which is not checked"),
    }
}

/// A regular expression of literals, `[…]`, `\.`, and `{n}`, `{n,}`, `+`, `*` or `?` behind them, from `^` to `$`.
fn matches(pattern: &str, text: &str) -> bool {
    let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).expect("an anchored pattern");
    here(inner.as_bytes(), text.as_bytes())
}

fn here(pattern: &[u8], text: &[u8]) -> bool {
    let Some((&first, _)) = pattern.split_first() else { return text.is_empty() };
    let atom_end = match first {
        b'[' => pattern.iter().position(|byte| *byte == b']').expect("a closed class") + 1,
        b'\\' => 2,
        _ => 1,
    };
    let (atom, rest) = pattern.split_at(atom_end);
    let (least, most, rest) = repeats(rest);
    let taken = text.iter().take(most).take_while(|byte| fits(atom, **byte)).count();
    (least..=taken).rev().any(|count| here(rest, &text[count..]))
}

/// How often the atom before may stand, and what follows.
fn repeats(rest: &[u8]) -> (usize, usize, &[u8]) {
    match rest.first() {
        Some(b'*') => (0, usize::MAX, &rest[1..]),
        Some(b'+') => (1, usize::MAX, &rest[1..]),
        Some(b'?') => (0, 1, &rest[1..]),
        Some(b'{') => {
            let end = rest.iter().position(|byte| *byte == b'}').expect("a closed count");
            let count = std::str::from_utf8(&rest[1..end]).expect("digits");
            let (least, most) = count.split_once(',').unwrap_or((count, count));
            (least.parse().expect("a count"), most.parse().unwrap_or(usize::MAX), &rest[end + 1..])
        }
        _ => (1, 1, rest),
    }
}

fn fits(atom: &[u8], byte: u8) -> bool {
    match atom {
        [b'\\', literal] => *literal == byte,
        [b'[', class @ .., b']'] => in_class(class, byte),
        _ => atom == [byte],
    }
}

fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        [low, b'-', high, rest @ ..] => (*low..=*high).contains(&byte) || in_class(rest, byte),
        [one, rest @ ..] => *one == byte || in_class(rest, byte),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schema_refuses_lines_that_are_not_as_it_says() {
        let good = json!({
            "v": 1, "type": "item", "time": "2026-11-20T13:46:38.224Z", "path": "a", "kind": "file", "size": 4, "outcome": "published",
            "blake3": "ab".repeat(32),
        });
        let schema = Schema::published();
        assert_eq!(schema.check(&good), Ok(()));
        let faults: &[(&str, Value)] = &[
            ("v", json!(2)),
            ("type", json!("items")),
            ("time", json!("yesterday")),
            ("time", json!("2026-11-20T13:46:38Z")),
            ("size", json!(-1)),
            ("size", json!("4")),
            ("size", json!(1.5)),
            ("kind", json!("fifo")),
            ("outcome", json!("done")),
            ("blake3", json!("ab")),
            ("path_b64", json!("YQ==")),
            ("error", json!({ "code": "not-found" })),
            ("more", json!(1)),
        ];
        for (name, value) in faults {
            let mut bad = good.clone();
            bad[*name] = value.clone();
            assert!(schema.check(&bad).is_err(), "{name}: {value}");
        }
        for name in ["v", "type", "time", "path", "outcome"] {
            let mut bad = good.clone();
            bad.as_object_mut().expect("an object").remove(name);
            assert!(schema.check(&bad).is_err(), "{name}");
        }
    }

    #[test]
    fn patterns() {
        let good = [
            ("^a$", "a"),
            ("^[0-9]{2,}Z$", "123Z"),
            ("^-?[0-7]{4}$", "0644"),
            ("^[A-C+/]+=*$", "A+/=="),
            ("^a\\.b$", "a.b"),
        ];
        for (pattern, text) in good {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        let bad = [
            ("^a$", "aa"),
            ("^[0-9]{2,}Z$", "1Z"),
            ("^-?[0-7]{4}$", "06445"),
            ("^[A-C+/]+=*$", "=="),
            ("^a\\.b$", "axb"),
        ];
        for (pattern, text) in bad {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
