//! docs/doctor.md has a row for every rule, with what the rule itself says. `CARRACK_GOLDEN=write` writes the table
//! anew.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::path::PathBuf;

use carrack_doctor::rules;

const BEGIN: &str = "<!-- rules: written by a test -->";
const END: &str = "<!-- end of the rules -->";

fn table() -> String {
    let mut text = String::from("| rule | should be | because | from | rests on |\n|---|---|---|---|---|\n");
    for rule in rules::ALL.iter().flat_map(|table| table.iter()) {
        let class = rule.class.name();
        text += &format!("| `{}` | {} | {} | {} | {class} |\n", rule.id, rule.threshold, rule.reason, rule.source);
    }
    text
}

#[test]
fn page_has_every_rule_as_it_is() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the rules");
    let (found, after) = rest.split_once(END).expect("the place for the rules ends");
    let table = table();
    if std::env::var("CARRACK_GOLDEN").is_ok_and(|word| word == "write") {
        std::fs::write(&file, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).unwrap();
    }
    assert_eq!(found.trim(), table.trim());
}

#[test]
fn rules_have_names_of_their_own_and_reasons() {
    let all: Vec<&rules::Rule> = rules::ALL.iter().flat_map(|table| table.iter()).collect();
    let mut ids: Vec<&str> = all.iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "a name is used twice");
    for rule in all {
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-')
        };
        let parts: Vec<&str> = rule.id.split('.').collect();
        assert!(parts.len() == 2 && parts.iter().all(|part| is_name(part)), "{}", rule.id);
        for text in [&rule.threshold.to_string(), rule.reason, rule.source] {
            assert!(!text.is_empty() && !text.contains('|') && !text.contains('\n'), "{}: {text:?}", rule.id);
        }
    }
}
