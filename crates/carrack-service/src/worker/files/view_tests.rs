//! Views of small directories, and the pattern of a filter against a plain one.

use carrack_core::attributes::Time;
use carrack_core::report::ItemKind;
use carrack_engine::files::ListEntry;
use proptest::prelude::*;

use super::*;

pub fn entry(name: &[u8], kind: ItemKind, size: u64, seconds: i64) -> ListEntry {
    ListEntry {
        path: name.to_vec(),
        kind,
        size,
        mode: 0o644,
        mtime: Time { seconds, nanos: 0 },
        link_target: Vec::new(),
        error: None,
        allocated: None,
        twin: None,
        names: 0,
        attributes: Default::default(),
    }
}

fn rows(entries: &[(&str, ItemKind, u64, i64)]) -> Rows {
    let mut rows = Rows::default();
    for (name, kind, size, seconds) in entries {
        assert!(rows.push(&entry(name.as_bytes(), *kind, *size, *seconds)));
    }
    rows
}

fn shown(rows: &Rows, field: SortField, filter: &str, hidden: bool, descending: bool) -> Vec<String> {
    let view = View::of(rows, &Sorted::of(rows, field), filter, hidden);
    (0..view.len()).map(|index| text_of(rows.name(view.place(index, descending).unwrap()))).collect()
}

fn some() -> Rows {
    use ItemKind::{Directory, File, Special, Symlink};
    rows(&[
        ("run 10", File, 5, 30),
        ("run 9", File, 50, -5),
        ("Zeta", Directory, 4096, 1),
        ("alpha", Directory, 64, 2),
        ("fifo", Special, 0, 4),
        ("link", Symlink, 3, 3),
        (".hidden", File, 7, 5),
        ("RUN 2", File, 6, 6),
    ])
}

#[test]
fn view_is_sorted_by_each_field_in_both_directions() {
    let rows = some();
    let view = |field, descending| shown(&rows, field, "", false, descending);
    assert_eq!(view(SortField::Name, false), ["alpha", "Zeta", "fifo", "link", "RUN 2", "run 9", "run 10"]);
    // Directories stay first.
    assert_eq!(view(SortField::Name, true), ["Zeta", "alpha", "run 10", "run 9", "RUN 2", "link", "fifo"]);
    assert_eq!(view(SortField::Size, false), ["fifo", "link", "run 10", "RUN 2", "run 9", "alpha", "Zeta"]);
    assert_eq!(view(SortField::Size, true), ["Zeta", "alpha", "run 9", "RUN 2", "run 10", "link", "fifo"]);
    assert_eq!(view(SortField::Modified, false)[..2], ["run 9", "Zeta"]);
    assert_eq!(view(SortField::Modified, true)[0], "run 10");
    assert_eq!(view(SortField::Kind, false), ["alpha", "Zeta", "RUN 2", "run 9", "run 10", "link", "fifo"]);
    assert_eq!(view(SortField::Kind, true), ["Zeta", "alpha", "fifo", "link", "run 10", "run 9", "RUN 2"]);
}

#[test]
fn view_leaves_out_what_the_filter_does_not_take() {
    let rows = some();
    let view = |filter: &str, hidden| shown(&rows, SortField::Name, filter, hidden, false);
    assert_eq!(view("run", false), ["RUN 2", "run 9", "run 10"]);
    assert_eq!(view("RUN 1", false), ["run 10"]);
    assert_eq!(view("run ?", false), ["RUN 2", "run 9"]);
    assert_eq!(view("*A", false), ["alpha", "Zeta"]);
    assert_eq!(view("*hid*", false), Vec::<String>::new());
    assert_eq!(view("*hid*", true), [".hidden"]);
    let view = View::of(&rows, &Sorted::of(&rows, SortField::Size), "", true);
    assert_eq!((view.len(), view.bytes), (8, 5 + 50 + 7 + 6));
}

#[test]
fn filter_takes_names_as_they_are_shown() {
    let mut rows = Rows::default();
    for name in [&b"\xff odd"[..], "\u{c4}pfel".as_bytes(), b"50%", b"a\nb"] {
        rows.push(&entry(name, ItemKind::File, 0, 0));
    }
    let view = |filter: &str| shown(&rows, SortField::Name, filter, false, false);
    assert_eq!(view("%ff"), ["%FF odd"]);
    assert_eq!(view("\u{c4}PF"), ["\u{c4}pfel"]);
    assert_eq!(view("%0a"), ["a%0Ab"]);
}

#[test]
fn view_finds_a_name_or_what_begins_with_it() {
    let rows = some();
    let view = View::of(&rows, &Sorted::of(&rows, SortField::Name), "", false);
    let find = |name: &str, descending| view.find(&rows, name.as_bytes(), name, descending);
    assert_eq!(find("run 9", false), Some(5));
    assert_eq!(find("run", false), Some(4));
    assert_eq!(find("run", true), Some(2));
    assert_eq!(find("ZE", false), Some(1));
    assert_eq!(find("none", false), None);
    assert_eq!(find(".hidden", false), None);
}

#[test]
fn names_that_differ_late_are_sorted_by_all_of_their_bytes() {
    // Longer than a key, and with two beginnings, so that no common one is left out.
    let long = "measurement of the year 2026 at the long beamline, run ";
    let names: Vec<String> =
        (0..50).rev().flat_map(|number| [format!("{long}{number}"), format!("x{long}{number}")]).collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), ItemKind::File, 0, 0)).collect();
    let sorted = shown(&rows(&entries), SortField::Name, "", false, false);
    let expected: Vec<String> =
        ["", "x"].iter().flat_map(|first| (0..50).map(move |number| format!("{first}{long}{number}"))).collect();
    assert_eq!(sorted, expected);
}

/// What a pattern means, in the plainest way.
fn plain(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=text.len()).any(|taken| plain(rest, &text[taken..])),
        (['?', rest @ ..], [_, text @ ..]) => plain(rest, text),
        ([one, rest @ ..], [other, text @ ..]) => one == other && plain(rest, text),
        _ => false,
    }
}

proptest! {
    #[test]
    fn pattern_fits_as_the_plainest_comparison_says(pattern in "[ab*?]{0,6}", text in "[ab]{0,8}") {
        let (parsed, characters): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(fits(&parsed, &text), plain(&parsed, &characters));
    }

    #[test]
    fn view_by_name_is_in_the_order_of_names(names in proptest::collection::hash_set("[a-bA0-1]{1,30}", 1..40)) {
        let entries: Vec<_> = names.iter().map(|name| (name.as_str(), ItemKind::File, 0, 0)).collect();
        let mut sorted: Vec<String> = names.iter().cloned().collect();
        let mut comparer = Comparer::default();
        sorted.sort_by(|one, other| comparer.compare(one.as_bytes(), other.as_bytes()));
        prop_assert_eq!(shown(&rows(&entries), SortField::Name, "", true, false), sorted);
    }
}
