//! The note of a fix: what there was before it, so that it can be undone.

use serde_json::{Value, json};

/// The form of notes. A program refuses those of a form that it does not know.
const VERSION: u64 = 1;

/// What there was before a fix, and what it sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    /// Its name.
    pub label: String,
    /// Counts fixes: a later one has a larger number.
    pub number: u64,
    /// Seconds since 1970.
    pub time: i64,
    /// Each parameter that the fix changes, and those that the kernel changes with them, as they were.
    pub before: Vec<(String, String)>,
    /// What the fix sets.
    pub wanted: Vec<(String, String)>,
    /// The drop-in as it was; `None` if there was none.
    pub drop_in: Option<String>,
}

impl SavedState {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let list = |pairs: &[(String, String)]| -> Vec<Value> {
            pairs.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
        };
        let fields = json!({
            "version": VERSION,
            "label": self.label,
            "number": self.number,
            "time": self.time,
            "before": list(&self.before),
            "wanted": list(&self.wanted),
            "drop_in": self.drop_in,
        });
        format!("{fields:#}\n")
    }

    /// From JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match value["version"].as_u64() {
            Some(VERSION) => {}
            version => return Err(format!("it has version {version:?}, and this program knows {VERSION}")),
        }
        let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned).ok_or_else(|| format!("no {key}"));
        let list = |key: &str| {
            let list = value[key].as_array().ok_or_else(|| format!("no {key}"))?;
            list.iter().map(|pair| Ok((text(pair, "name")?, text(pair, "value")?))).collect::<Result<_, String>>()
        };
        let drop_in = match &value["drop_in"] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => return Err("drop_in is no text".to_owned()),
        };
        Ok(Self {
            label: text(&value, "label")?,
            number: value["number"].as_u64().ok_or("no number")?,
            time: value["time"].as_i64().ok_or("no time")?,
            before: list("before")?,
            wanted: list("wanted")?,
            drop_in,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_comes_back_as_it_was_written() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let state = SavedState {
            label: "before-sc".into(),
            number: 3,
            time: 1_800_000_000,
            before: vec![pair("net.ipv4.tcp_rmem", "4096\t131072\t6291456")],
            wanted: vec![pair("net.ipv4.tcp_rmem", "4096 131072 268435456")],
            drop_in: None,
        };
        assert_eq!(SavedState::parse(&state.to_json()), Ok(state.clone()));
        let with = SavedState { drop_in: Some("# ours\n".into()), ..state };
        assert_eq!(SavedState::parse(&with.to_json()), Ok(with.clone()));
        for wrong in ["", "{}", "[]", &with.to_json().replace("\"version\": 1", "\"version\": 2")] {
            assert!(SavedState::parse(wrong).is_err(), "{wrong}");
        }
    }
}
