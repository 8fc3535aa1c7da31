//! The line of a difference: for a person, as JSON, as CSV.

use carrack_core::attributes::Time;
use carrack_core::path::display_bytes;
use carrack_core::plan::check::{CheckDifferences, CheckedFacts};
use carrack_core::report::{Failure, ItemKind};
use serde_json::{Value as Json, json};

use super::Checking;
use crate::command::place::VerbRun;
use crate::output::{csv, format, human, json as objects, say};

/// Columns of the lines with commas; those of one side are empty where it has nothing.
const HEADINGS: [&str; 13] = [
    "sign", "path", "differs", "a_kind", "a_size", "a_mtime", "a_mode", "b_kind", "b_size", "b_mtime", "b_mode",
    "code", "why",
];

/// How differences are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A sign, the path, and in what it differs.
    Text,
    /// An object a line.
    Json,
    /// Values with commas.
    Csv,
}

impl Form {
    /// Without a flag for another.
    pub fn of(run: &VerbRun) -> Self {
        if run.json { Self::Json } else { Self::Text }
    }
}

impl Checking<'_> {
    /// What stands above the differences.
    pub(super) fn head(&mut self) {
        if self.form == Form::Csv {
            self.run.line(csv::line(&HEADINGS).as_bytes());
        }
    }

    pub(super) fn line(
        &mut self,
        sign: char,
        name: &[u8],
        sides: [Option<&CheckedFacts>; 2],
        differs: CheckDifferences,
    ) {
        let words: Vec<&str> = differs.words().collect();
        match self.form {
            Form::Text => {
                let why = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
                self.run.line(format!("{sign} {}{why}", display_bytes(name)).as_bytes());
            }
            Form::Csv => self.run.line(csv_line(sign, name, &words, sides, None).as_bytes()),
            Form::Json => {
                let mut fields = json!({ "sign": sign });
                if !words.is_empty() {
                    fields["differs"] = json!(words);
                }
                for (key, facts) in ["source", "destination"].into_iter().zip(sides) {
                    if let Some(facts) = facts {
                        fields[key] = side(facts);
                    }
                }
                self.run.json("difference", objects::with_path(fields, name));
            }
        }
    }

    pub(super) fn failed(&mut self, name: &[u8], why: Failure) {
        match self.form {
            Form::Text => self.run.line(format!("! {}", display_bytes(name)).as_bytes()),
            Form::Csv => self.run.line(csv_line('!', name, &[], [None, None], Some(&why)).as_bytes()),
            Form::Json => {}
        }
        say(&format!("failed: {}", human::failure(&why.clone().at_path(name))));
        self.run.count_failed(name, why);
    }
}

fn csv_line(
    sign: char,
    name: &[u8],
    differs: &[&str],
    sides: [Option<&CheckedFacts>; 2],
    why: Option<&Failure>,
) -> String {
    let mut fields = vec![sign.to_string(), csv::text(&display_bytes(name).to_string()), differs.join(" ")];
    for facts in sides {
        let is_file = |facts: &&CheckedFacts| facts.state.kind == ItemKind::File;
        fields.push(facts.map_or("", |facts| facts.state.kind.name()).to_owned());
        fields.push(facts.filter(is_file).map_or_else(String::new, |facts| facts.state.size.to_string()));
        fields.push(facts.and_then(|facts| facts.state.mtime).map_or_else(String::new, time));
        fields.push(facts.map_or_else(String::new, |facts| format!("{:04o}", facts.mode)));
    }
    fields.push(why.map_or_else(String::new, |why| why.code.to_string()));
    fields.push(why.map_or_else(String::new, |why| csv::text(&why.why.to_string())));
    csv::line(&fields)
}

fn time(Time { seconds, nanos }: Time) -> String {
    format::rfc3339_nanos(seconds, nanos)
}

/// What one side has.
fn side(facts: &CheckedFacts) -> Json {
    let CheckedFacts { state, link_target, mode, digests, .. } = facts;
    let mut fields = json!({ "kind": state.kind.name(), "mode": format!("{mode:04o}") });
    if state.kind == ItemKind::File {
        fields["size"] = state.size.into();
    }
    if let Some(mtime) = state.mtime {
        fields["mtime"] = time(mtime).into();
    }
    if state.kind == ItemKind::Symlink {
        fields = objects::with_link_target(fields, link_target);
    }
    objects::with_digests(fields, digests)
}
