//! One word, one meaning: no two types of the crates below share a name, but those that are listed with a reason.

use std::collections::BTreeMap;

use crate::Finding;
use crate::source::{Source, leading_word};

/// What stands in for another is named as that is: models of tests, and the structures of prost that a checked type
/// is made of.
const EXCEPT: &[&str] = &["/raw", "/simulation", "/hostile", "/orders.rs"];
const CRATES: &[&str] = &["carrack", "carrack-core", "carrack-engine", "carrack-sys"];

/// Names that several types have, and why.
const SHARED: &[(&str, &str)] = &[
    ("Answer", "to an offer; of another clock"),
    ("Bar", "the terminal's bar, and what stands there where that is not built in"),
    ("Busy", "how busy processors are; how long threads are"),
    ("Entry", "of a listing, as it is told; an item that waits for its name"),
    ("Mark", "of a timeline; of a plot's axis"),
    ("Measured", "by an end, of itself; by a copy, of both ends"),
    ("Page", "of a report; of a benchmark's results"),
    ("Phase", "of a search for the number of streams; of a timeline"),
    ("Pressure", "as the system tells it; as a timeline keeps it"),
    ("Processors", "as the system tells them; as the number of streams needs them"),
    ("ReadError", "each of one format: of a channel, of a timeline"),
    ("Reason", "of a failure; of another number of streams"),
    ("Sample", "of streams, for their number; of a timeline"),
    ("StageTimes", "what a limit is found from; as a timeline keeps it"),
    ("Side", "at which something failed; of a verdict on speed"),
    ("Stages", "as an end tells them; as it counts them"),
    ("Streams", "of a sender: who carries what; of a copy: how many there are"),
    ("Throttled", "as the system tells it; as a timeline keeps it"),
    ("Unit", "what a stream carries; of a plot's axis"),
    ("Verdict", "on what is left over; on a step of a timeline"),
];

pub fn check(sources: &[Source]) -> Vec<Finding> {
    check_with(sources, SHARED)
}

fn check_with(sources: &[Source], shared: &[(&str, &str)]) -> Vec<Finding> {
    let mut types: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| is_checked(&source.path)) {
        for (line, code) in source.product_lines() {
            if let Some(name) = declared(code) {
                types.entry(name).or_default().push((&source.path, line));
            }
        }
    }
    let is_shared = |name: &str| shared.iter().any(|&(one, _)| one == name);
    let stale = shared.iter().filter(|&&(name, _)| types.get(name).is_none_or(|places| places.len() < 2));
    let stale = stale.map(|(name, _)| Finding::new("xtask/src/names.rs", 1, format!("{name} is no longer shared")));
    let twins = types.iter().filter(|(name, places)| places.len() > 1 && !is_shared(name));
    let twins = twins.flat_map(|(name, places)| {
        let first = format!("{}:{}", places[0].0, places[0].1);
        let what = format!("{name} is a type of {first}, too: one word, one meaning");
        places[1..].iter().map(move |&(path, line)| Finding::new(path, line, what.clone()))
    });
    stale.chain(twins).collect()
}

fn is_checked(path: &str) -> bool {
    let of_ours = CRATES.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    of_ours && !EXCEPT.iter().any(|part| path.contains(part))
}

/// The name of the type that this line declares.
fn declared(code: &str) -> Option<&str> {
    let code = code.trim_start();
    let visible = code.strip_prefix("pub").map_or(code, |rest| {
        let rest = rest.trim_start();
        rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest.trim_start())
    });
    ["struct ", "enum ", "trait "]
        .iter()
        .find_map(|word| visible.strip_prefix(word))
        .map(leading_word)
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)], shared: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, (*text).to_owned())).collect();
        check_with(&sources, shared).into_iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }

    #[test]
    fn types_of_one_name_are_found() {
        let here = ("crates/carrack/src/a.rs", "//! A.\npub(in crate::a) struct Walk<'a>(&'a u8);\n");
        let there = ("crates/carrack-sys/src/b.rs", "//! B.\n\nenum Walk {}\n");
        assert_eq!(lines(&[here, there], &[]), ["crates/carrack-sys/src/b.rs:3"]);
        assert!(lines(&[here, there], &[("Walk", "a reason")]).is_empty());
        assert_eq!(lines(&[here], &[("Walk", "a reason")]), ["xtask/src/names.rs:1"]);
        let text = "//! B.\n// struct Walk;\n#[cfg(test)]\nmod tests {\n    pub trait Walk {}\n}\n";
        assert!(lines(&[here, ("crates/carrack-sys/src/b.rs", text)], &[]).is_empty());
        assert!(lines(&[here, ("crates/carrack-core/src/wire/raw.rs", there.1)], &[]).is_empty());
        assert!(lines(&[here, ("crates/carrack-faults/src/b.rs", there.1)], &[]).is_empty());
    }
}
