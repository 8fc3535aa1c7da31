//! Two listings merged: against sets, in random trees; and what each side may tell in between.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::attributes::{Attribute, ExtendedAttributes, Time};
use crate::chance::Chance;
use crate::request::Existing;

fn facts(kind: ItemKind, size: u64, seconds: i64) -> CheckedFacts {
    let mtime = (kind == ItemKind::File).then(|| Time::new(seconds, 7));
    CheckedFacts {
        state: State { kind, size, mtime },
        link_target: Vec::new(),
        special: None,
        mode: 0o644,
        others: OtherAttributes::default(),
        digests: FileDigests::default(),
        file: None,
    }
}

fn there(path: &[u8], facts: CheckedFacts) -> CheckedItem {
    CheckedItem { path: path.to_vec(), told: CheckedState::There(Box::new(facts)) }
}

fn why() -> Failure {
    Failure::new(ErrorCode::PermissionDenied, Side::Source, "no")
}

fn rules(compare: Compare) -> CheckRules {
    let compare = CompareRules { compare, existing: Existing::Replace, window_ns: 0 };
    CheckRules { compare, kept: KeptAttributes::NONE, numeric_ids: false, claims: false }
}

type Found = Vec<(Vec<u8>, CheckFinding)>;

fn merge(source: Vec<CheckedItem>, destination: Vec<CheckedItem>) -> Result<(Found, CheckCounts), Failure> {
    merge_by(rules(Compare::SizeAndTime), source, destination)
}

fn merge_by(
    rules: CheckRules,
    source: Vec<CheckedItem>,
    destination: Vec<CheckedItem>,
) -> Result<(Found, CheckCounts), Failure> {
    let mut comparison = TreeComparison::new(rules);
    let (mut source, mut destination) = (source.into_iter(), destination.into_iter());
    let mut found = Vec::new();
    while let Some(finding) = comparison.next_finding(&mut |side| {
        Ok::<_, Failure>(match side {
            CheckedSide::Source => source.next(),
            CheckedSide::Destination => destination.next(),
        })
    })? {
        found.push(finding);
    }
    Ok((found, comparison.counts()))
}

type Tree = BTreeMap<Vec<u8>, CheckedFacts>;

/// A few names, of which some stand otherwise beside a slash than beside other bytes.
fn grow(chance: &mut Chance, tree: &mut Tree, top: &[u8], depth: u32) {
    for name in [&b"a"[..], b"a.b", b"a\xff", b"a-", b"A", b"\n", b"b"] {
        let path = if top.is_empty() { name.to_vec() } else { [top, b"/", name].concat() };
        match chance.number() % 5 {
            0 => {
                drop(tree.insert(path, facts(ItemKind::File, chance.number() % 2, 100 + (chance.number() % 2) as i64)))
            }
            1 => drop(tree.insert(path, facts(ItemKind::Symlink, 0, 0))),
            2 if depth > 0 => {
                grow(chance, tree, &path, depth - 1);
                tree.insert(path, facts(ItemKind::Directory, 0, 0));
            }
            _ => {}
        }
    }
}

/// As a walk lists it, which knows nothing of the order of paths.
fn walk(tree: &Tree, top: &[u8], listed: &mut Vec<CheckedItem>) {
    let is_in = |path: &&Vec<u8>| split_name(path).0 == top && !path.is_empty();
    let mut names: Vec<&Vec<u8>> = tree.keys().filter(is_in).collect();
    names.sort_by_key(|path| split_name(path).1);
    listed.extend(names.iter().map(|path| there(path, tree[*path].clone())));
    for path in names.into_iter().filter(|path| tree[*path].state.kind == ItemKind::Directory) {
        walk(tree, path, listed);
    }
}

#[test]
fn merge_finds_what_sets_find_in_random_trees() {
    for seed in 0..400 {
        let mut chance = Chance::new(seed);
        let trees = [(); 2].map(|()| {
            let mut tree = Tree::from([(Vec::new(), facts(ItemKind::Directory, 0, 0))]);
            grow(&mut chance, &mut tree, b"", 3);
            tree
        });
        let listings = trees.each_ref().map(|tree| {
            let mut listed = vec![there(b"", tree[&b""[..]].clone())];
            walk(tree, b"", &mut listed);
            assert_eq!(listed.len(), tree.len());
            listed
        });
        let [source, destination] = listings;
        let (found, counts) = merge(source, destination).unwrap();
        let [one, other] = &trees;
        let paths: BTreeSet<&Vec<u8>> = one.keys().chain(other.keys()).collect();
        assert_eq!(found.len(), paths.len(), "seed {seed}");
        for (path, finding) in &found {
            let is_right = match (one.get(path), other.get(path), finding) {
                (Some(_), None, CheckFinding::OnlySource(_)) | (None, Some(_), CheckFinding::OnlyDestination(_)) => {
                    true
                }
                (Some(one), Some(other), CheckFinding::Same(_)) => one == other,
                (Some(one), Some(other), CheckFinding::Differs(..)) => one != other,
                _ => false,
            };
            assert!(is_right, "seed {seed}: {path:?} {finding:?}");
        }
        assert_eq!(counts.same + counts.differences(), paths.len() as u64);
    }
}

#[test]
fn merge_takes_nothing_below_what_could_not_be_read_for_a_difference() {
    let file = || facts(ItemKind::File, 1, 1);
    let directory = || facts(ItemKind::Directory, 0, 0);
    let destination = || vec![there(b"d", directory()), there(b"e", file()), there(b"d/x", file())];
    let unlisted = CheckedItem { path: b"d".to_vec(), told: CheckedState::Unlisted(why()) };
    let failed = CheckedItem { path: b"d".to_vec(), told: CheckedState::Failed(why()) };
    let signs = |source: Vec<CheckedItem>| {
        let (found, counts) = merge(source, destination()).unwrap();
        let sign = |(path, finding): &(Vec<u8>, CheckFinding)| match finding {
            CheckFinding::Same(_) => (path.clone(), '='),
            CheckFinding::OnlySource(_) => (path.clone(), '+'),
            CheckFinding::OnlyDestination(_) => (path.clone(), '-'),
            CheckFinding::Differs(..) => (path.clone(), '*'),
            CheckFinding::Failed(_) => (path.clone(), '!'),
        };
        (found.iter().map(sign).collect::<Vec<_>>(), counts.failed)
    };
    let (d, e) = (b"d".to_vec(), b"e".to_vec());
    let listed = [(d.clone(), '='), (e.clone(), '='), (d.clone(), '!')];
    assert_eq!(signs(vec![there(b"d", directory()), there(b"e", file()), unlisted.clone()]), (listed.to_vec(), 1));
    assert_eq!(signs(vec![failed.clone(), there(b"e", file())]), (vec![(d.clone(), '!'), (e.clone(), '=')], 1));
    // Told again by an end that was reached anew, it is no second failure.
    let again = signs(vec![there(b"d", directory()), there(b"e", file()), unlisted.clone(), unlisted]);
    assert_eq!(again, (listed.to_vec(), 1));
}

#[test]
fn merge_passes_over_what_either_side_leaves_out() {
    let left_out = || CheckedItem { path: b"a".to_vec(), told: CheckedState::LeftOut };
    for other in [None, Some(there(b"a", facts(ItemKind::File, 1, 1))), Some(left_out())] {
        let (found, counts) = merge(vec![left_out()], other.clone().into_iter().collect()).unwrap();
        assert_eq!((found.len(), counts), (0, CheckCounts::default()), "{other:?}");
    }
}

#[test]
fn listing_out_of_order_is_refused() {
    let item = |path: &[u8]| there(path, facts(ItemKind::File, 1, 1));
    for listed in [[&b"b"[..], b"a"], [b"a", b"a"], [b"a/b", b"b"]] {
        let refused = merge(Vec::new(), listed.map(item).to_vec()).unwrap_err();
        assert_eq!((refused.code, refused.side), (ErrorCode::ProtocolViolation, Side::Destination), "{listed:?}");
    }
    // What cannot be listed may come late.
    let late = CheckedItem { path: b"a".to_vec(), told: CheckedState::Unlisted(why()) };
    assert!(merge(vec![item(b"a/b"), late], Vec::new()).is_ok());
}

#[test]
fn items_differ_in_what_is_compared_alone() {
    let words = |rules: CheckRules, one: &CheckedFacts, other: &CheckedFacts| -> Vec<&str> {
        rules.differences(one, other).words().collect()
    };
    let file = facts(ItemKind::File, 7, 100);
    let digest = |byte| FileDigests { blake3: Some([byte; 32]), ..FileDigests::default() };
    let (mut one, mut other) = (file.clone(), facts(ItemKind::File, 7, 101));
    (one.digests, other.digests) = (digest(1), digest(2));
    assert_eq!(words(rules(Compare::SizeAndTime), &one, &other), ["time"]);
    assert_eq!(words(rules(Compare::Size), &one, &other), [""; 0]);
    assert_eq!(words(rules(Compare::Content), &one, &other), ["content"]);
    other.digests = digest(1);
    assert_eq!(words(rules(Compare::Content), &one, &other), [""; 0]);
    other.state.size = 8;
    assert_eq!(words(rules(Compare::Content), &one, &other), ["size"]);
    assert_eq!(words(rules(Compare::SizeAndTime), &one, &other), ["size", "time"]);
    assert_eq!(words(rules(Compare::Size), &one, &facts(ItemKind::Directory, 0, 0)), ["type"]);
    // A side without times.
    other = file.clone();
    other.state.mtime = None;
    assert_eq!(words(rules(Compare::SizeAndTime), &file, &other), [""; 0]);

    let (link, mut elsewhere) = (facts(ItemKind::Symlink, 0, 0), facts(ItemKind::Symlink, 0, 0));
    elsewhere.link_target = b"x".to_vec();
    assert_eq!(words(rules(Compare::SizeAndTime), &link, &elsewhere), ["target"]);

    let all = CheckRules { kept: KeptAttributes::ALL, ..rules(Compare::SizeAndTime) };
    let told = |owner: u32, name: &[u8], acl: Option<u8>| {
        let owner = Attribute::named(AttributeKind::OWNER, owner, name);
        let acl = acl.map(|byte| Attribute { kind: AttributeKind::ACL, value: Box::new([byte]) });
        OtherAttributes::new([owner].into_iter().chain(acl).collect()).unwrap()
    };
    let with = |others, mode| CheckedFacts { others, mode, ..file.clone() };
    let mine = with(told(5, b"ann", Some(1)), 0o644);
    for (other, expected) in [
        (with(told(6, b"ann", Some(1)), 0o644), vec![]),
        (with(told(5, b"bob", Some(1)), 0o644), vec!["owner"]),
        (with(told(5, b"", Some(1)), 0o644), vec![]),
        (with(told(6, b"", None), 0o4644), vec!["mode", "owner", "acl"]),
    ] {
        assert_eq!(words(all, &mine, &other), expected, "{other:?}");
        assert_eq!(words(rules(Compare::SizeAndTime), &mine, &other), [""; 0]);
    }
    let numbers = CheckRules { numeric_ids: true, ..all };
    assert_eq!(words(numbers, &mine, &with(told(6, b"ann", Some(1)), 0o644)), ["owner"]);
}

#[test]
fn lists_are_compared_and_what_did_not_come_is_told_as_not_compared() {
    let with = |attributes: Vec<Attribute>| {
        let others = OtherAttributes::new(attributes).unwrap();
        vec![there(b"f", CheckedFacts { others, ..facts(ItemKind::File, 1, 1) })]
    };
    let list = |kind, byte| Attribute { kind, value: Box::new([byte]) };
    let cut = |values: &[(&str, &str)], are_cut| {
        let values = values.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        ExtendedAttributes { values, has_others: false, are_cut }.attribute(1000)
    };
    let (acl, nfs4) = (AttributeKind::ACL, AttributeKind::NFS4_ACL);
    for (source, destination, expected, untold) in [
        (vec![list(nfs4, 1)], vec![list(nfs4, 1)], "", 0),
        (vec![list(nfs4, 1)], vec![list(nfs4, 2)], "acl", 0),
        (vec![list(nfs4, 1)], vec![], "acl", 0),
        (vec![list(acl, 1)], vec![list(acl, 2)], "acl", 0),
        (vec![Attribute::present(nfs4)], vec![Attribute::present(nfs4)], "", 1),
        (vec![Attribute::present(acl)], vec![Attribute::present(acl)], "", 1),
        (vec![Attribute::present(acl)], vec![list(acl, 1)], "acl", 0),
        (vec![cut(&[("user.a", "1")], true)], vec![cut(&[("user.a", "1")], true)], "", 1),
        (vec![cut(&[("user.a", "1")], true)], vec![cut(&[("user.a", "2")], true)], "xattrs", 1),
        (vec![cut(&[("user.a", "1")], false)], vec![cut(&[("user.a", "1")], false)], "", 0),
        (vec![cut(&[("user.a", "1")], false)], vec![cut(&[("user.a", "1")], true)], "xattrs", 0),
    ] {
        for (kept, expected, untold) in [(KeptAttributes::ALL, expected, untold), (KeptAttributes::NONE, "", 0)] {
            let rules = CheckRules { kept, ..rules(Compare::SizeAndTime) };
            let (found, counts) = merge_by(rules, with(source.clone()), with(destination.clone())).unwrap();
            let words = match &found[..] {
                [(_, CheckFinding::Differs(_, differs))] => differs.words().collect::<Vec<_>>().join(" "),
                _ => String::new(),
            };
            assert_eq!((&words[..], counts.untold), (expected, untold), "{source:?} {destination:?}");
        }
    }
}

#[test]
fn names_of_one_file_are_those_of_one_file_at_the_other_side() {
    let named = |names: &[(&str, Option<u64>)]| -> Vec<CheckedItem> {
        let file =
            |inode: Option<u64>| CheckedFacts { file: inode.map(|inode| (8, inode)), ..facts(ItemKind::File, 1, 1) };
        names.iter().map(|(path, inode)| there(path.as_bytes(), file(*inode))).collect()
    };
    for (source, destination, expected) in [
        // Other numbers mean nothing.
        ([Some(1), Some(1), Some(2), Some(2)], [Some(7), Some(7), Some(1), Some(1)], ""),
        // One of the names is a file of its own.
        ([Some(1), Some(1), None, None], [None, None, None, None], "b"),
        ([None, None, None, None], [None, Some(5), None, Some(5)], "d"),
        // The other names of these are elsewhere, at one side or both.
        ([Some(1), Some(2), Some(3), None], [None, Some(2), Some(9), Some(4)], ""),
        // Names of two files are exchanged; two groups are one.
        ([Some(1), Some(1), Some(2), Some(2)], [Some(1), Some(2), Some(2), Some(1)], "bcd"),
        ([Some(1), Some(1), Some(2), Some(2)], [Some(1), Some(1), Some(1), Some(1)], "cd"),
        ([Some(1), Some(1), Some(1), Some(1)], [Some(1), Some(1), Some(2), Some(2)], "cd"),
    ] {
        let side =
            |inodes: [Option<u64>; 4]| named(&[("a", inodes[0]), ("b", inodes[1]), ("c", inodes[2]), ("d", inodes[3])]);
        let kept = KeptAttributes { hard_links: true, ..KeptAttributes::NONE };
        for (kept, expected) in [(kept, expected), (KeptAttributes::NONE, "")] {
            let rules = CheckRules { kept, ..rules(Compare::SizeAndTime) };
            let (found, counts) = merge_by(rules, side(source), side(destination)).unwrap();
            let links = CheckDifferences { links: true, ..CheckDifferences::default() };
            let differs =
                found.iter().filter(|(_, found)| matches!(found, CheckFinding::Differs(_, by) if *by == links));
            let names: Vec<u8> = differs.flat_map(|(path, _)| path.clone()).collect();
            assert_eq!(String::from_utf8_lossy(&names), expected, "{source:?} {destination:?}");
            assert_eq!((counts.differing, counts.unlinked), (expected.len() as u64, 0));
        }
    }
}

#[test]
fn merge_goes_on_behind_any_path_with_the_same_findings_and_counts() {
    let mut chance = Chance::new(41);
    for _ in 0..60 {
        let (mut one, mut other) = (Tree::new(), Tree::new());
        grow(&mut chance, &mut one, b"", 2);
        grow(&mut chance, &mut other, b"", 2);
        let listed = |tree: &Tree| {
            let mut items: Vec<CheckedItem> = tree.iter().map(|(path, facts)| there(path, facts.clone())).collect();
            items.sort_by(|one, other| listing_order(&one.path, &other.path));
            items
        };
        let (whole, counts) = merge(listed(&one), listed(&other)).unwrap();
        for broken_off in 1..whole.len() {
            let after = &whole[broken_off - 1].0;
            let so_far = {
                let mut counts = CheckCounts::default();
                whole[..broken_off].iter().for_each(|(_, finding)| counts.add(finding, Compare::SizeAndTime));
                counts
            };
            let rest = |tree: &Tree| {
                let mut items = listed(tree);
                items.retain(|item| listing_order(&item.path, after).is_gt());
                items.into_iter()
            };
            let mut comparison = TreeComparison::behind(rules(Compare::SizeAndTime), after, so_far, []);
            let (mut source, mut destination) = (rest(&one), rest(&other));
            let mut found = Vec::new();
            let mut pull = |side| {
                Ok::<_, Failure>(match side {
                    CheckedSide::Source => source.next(),
                    CheckedSide::Destination => destination.next(),
                })
            };
            while let Some(finding) = comparison.next_finding(&mut pull).unwrap() {
                found.push(finding);
            }
            assert_eq!((&found[..], comparison.counts()), (&whole[broken_off..], counts));
        }
    }
}

#[test]
fn merge_that_goes_on_takes_nothing_below_what_could_not_be_read_before_for_a_difference() {
    let item = |path: &[u8]| there(path, facts(ItemKind::File, 1, 1));
    let unread = [(Side::Source, b"d".to_vec())];
    let mut comparison = TreeComparison::behind(rules(Compare::Size), b"c", CheckCounts::default(), unread);
    let mut destination = vec![item(b"d/x"), item(b"e/x")].into_iter();
    let mut found = Vec::new();
    while let Some((path, _)) = comparison
        .next_finding(&mut |side| Ok::<_, Failure>(if side == CheckedSide::Source { None } else { destination.next() }))
        .unwrap()
    {
        found.push(path);
    }
    assert_eq!(found, [b"e/x".to_vec()]);
}
