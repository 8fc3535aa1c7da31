//! Rules as rsync has them.

use super::*;

fn filters(rules: &[&str]) -> Filters {
    let mut filters = Filters::default();
    for rule in rules {
        assert_eq!(filters.add(RuleForm::Rule, rule.as_bytes()), Ok(AddedRule::Taken), "{rule}");
    }
    filters
}

fn takes(filters: &Filters, path: &str) -> bool {
    let (path, is_directory) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
    filters.scope(FilterSide::Source).takes(path.as_bytes(), is_directory, false)
}

#[test]
fn patterns_match_where_rsync_s_do() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("- foo", &["foo", "a/foo", "a/b/foo/"], &["foobar", "foo/bar", "xfoo"]),
        ("- /foo", &["foo", "foo/"], &["a/foo"]),
        ("- foo/", &["foo/", "a/foo/"], &["foo", "a/foo"]),
        ("- foo/bar", &["foo/bar", "a/foo/bar"], &["foo", "foo/x/bar", "xfoo/bar"]),
        ("- *.o", &["a.o", "d/a.o"], &["a.c", "a.o.c"]),
        ("- a*/b", &["ax/b", "d/ax/b"], &["ax/c/b", "b"]),
        ("- /a*/b", &["ax/b"], &["d/ax/b"]),
        ("- **/foo", &["foo", "a/foo", "a/b/foo"], &["xfoo"]),
        ("- foo/**", &["foo/a", "foo/a/b", "x/foo/a"], &["foo/", "foo"]),
        ("- foo/***", &["foo/", "foo/a", "foo/a/b", "x/foo/"], &["foo", "xfoo/a"]),
        ("- a**z", &["az", "a/b/z", "d/a/z"], &["ba/z"]),
        ("- [a-c]?", &["ax", "d/bx"], &["dx", "a"]),
        ("-! *.c", &["a.o", "d/"], &["a.c"]),
        ("- a\\b", &["a\\b"], &["ab"]),
    ];
    for (rule, out, taken) in cases {
        let filters = filters(&[rule]);
        out.iter().for_each(|path| assert!(!takes(&filters, path), "{rule:?} {path:?}"));
        taken.iter().for_each(|path| assert!(takes(&filters, path), "{rule:?} {path:?}"));
    }
}

#[test]
fn first_rule_that_matches_decides() {
    let some = filters(&["+ keep.o", "include */", "exclude *.o", "- *"]);
    assert!(takes(&some, "keep.o") && takes(&some, "d/keep.o") && takes(&some, "d/"));
    assert!(!takes(&some, "other.o") && !takes(&some, "x"));
    assert!(takes(&Filters::default(), "anything"));
    let mut cleared = some;
    assert_eq!(cleared.add(RuleForm::Exclude, b"!"), Ok(AddedRule::Taken));
    assert!(cleared.is_empty() && cleared.lines().next().is_none());
    // The forms of --exclude and --include.
    for (form, line) in [(RuleForm::Exclude, "+ a"), (RuleForm::Include, "b"), (RuleForm::Exclude, "*")] {
        cleared.add(form, line.as_bytes()).unwrap();
    }
    assert!(takes(&cleared, "a") && takes(&cleared, "b") && !takes(&cleared, "c"));
    let mut again = Filters::default();
    cleared.lines().for_each(|(form, line)| drop(again.add(form, line).unwrap()));
    assert_eq!(again, cleared);
}

#[test]
fn rules_are_for_one_side_or_both() {
    let may = |filters: &Filters, side, path: &[u8]| filters.scope(side).takes(path, false, false);
    let rules = ["P own", "H hidden", "- both", "-s source", "-r there", "-p gone"];
    let some = filters(&rules);
    use FilterSide::{Destination, Source};
    for (path, source, destination) in [
        (&b"own"[..], true, false),
        (b"hidden", false, true),
        (b"both", false, false),
        (b"source", false, true),
        (b"there", true, false),
    ] {
        assert_eq!((may(&some, Source, path), may(&some, Destination, path)), (source, destination), "{path:?}");
    }
    assert!(
        !some.scope(Destination).takes(b"gone", false, false) && some.scope(Destination).takes(b"gone", false, true)
    );
    // What is excluded is deleted with the rest, where that was asked for; what is protected is not.
    let mut deleting = Filters::new(true);
    rules.iter().for_each(|rule| drop(deleting.add(RuleForm::Rule, rule.as_bytes()).unwrap()));
    assert!(may(&deleting, Destination, b"both") && !may(&deleting, Source, b"both"));
    assert!(!may(&deleting, Destination, b"own") && !may(&deleting, Destination, b"there"));
}

#[test]
fn rules_in_directories_hold_there_and_below() {
    let some = filters(&["+ /top", ": .rules", "- *.tmp"]);
    let mut scope = some.scope(FilterSide::Source);
    let files: &[(&[u8], &[u8])] =
        &[(b"", b"# comment\n\n- /only-here\n- x\n"), (b"a", b"+ x\r\n- b/y\n"), (b"a/c", b"!\n- z\n")];
    let enter = |scope: &mut Scope<'_>, path: &[u8]| {
        let content = files.iter().find(|(directory, _)| *directory == path).map(|(_, content)| content.to_vec());
        scope.enter(path, &mut |name| {
            assert_eq!(name, b".rules");
            Ok(content.clone())
        })
    };
    let takes = |scope: &Scope<'_>, path: &[u8]| scope.takes(path, false, false);
    enter(&mut scope, b"").unwrap();
    assert!(takes(&scope, b"top") && !takes(&scope, b"only-here") && !takes(&scope, b"x") && !takes(&scope, b"a.tmp"));
    enter(&mut scope, b"a").unwrap();
    assert!(takes(&scope, b"a/x") && takes(&scope, b"a/only-here"));
    enter(&mut scope, b"a/b").unwrap();
    assert!(!takes(&scope, b"a/b/y") && takes(&scope, b"a/b/x") && !takes(&scope, b"a/b/q.tmp"));
    enter(&mut scope, b"a/c").unwrap();
    assert!(!takes(&scope, b"a/c/z") && takes(&scope, b"a/c/x"), "given up, and with it what was above");
    assert!(takes(&scope, b"a/x") && takes(&scope, b"a/z") && !takes(&scope, b"a/b/y"));
    enter(&mut scope, b"d").unwrap();
    assert!(!takes(&scope, b"d/x") && takes(&scope, b"d/z"));
    // Mentioned twice, it counts as it was first.
    assert_eq!(filters(&[":n- .rules", ": .rules"]).lines().count(), 1);
    // Where a file has patterns alone, they begin with what they begin with.
    let plain = filters(&[":- .rules"]);
    let mut scope = plain.scope(FilterSide::Source);
    scope.enter(b"", &mut |_| Ok(Some(b"+ x\n- y\n!\n".to_vec()))).unwrap();
    assert!(takes(&scope, b"x") && takes(&scope, b"y") && !takes(&scope, b"- y") && !takes(&scope, b"!"));
    // Without inheritance.
    let alone = filters(&[":n- .rules"]);
    let mut scope = alone.scope(FilterSide::Source);
    scope.enter(b"", &mut |_| Ok(Some(b"x\n".to_vec()))).unwrap();
    assert!(!takes(&scope, b"x"));
    scope.enter(b"a", &mut |_| Ok(None)).unwrap();
    assert!(takes(&scope, b"a/x"));
}

#[test]
fn rule_that_cannot_be_read_shows_nothing_of_its_file() {
    let some = filters(&[": .rules"]);
    for secret in ["root:x:0:0", ". /etc/passwd", ": other", "-/ abs", "-C", "hide"] {
        let why = some.scope(FilterSide::Source).enter(b"", &mut |_| Ok(Some(format!("- a\n{secret}\n").into_bytes())));
        let why = why.unwrap_err();
        assert_eq!(why, "line 2 of .rules in it is no rule", "{secret}");
    }
    let cannot = some.scope(FilterSide::Source).enter(b"", &mut |_| Err("cannot be read".to_owned()));
    assert_eq!(cannot, Err("cannot be read".to_owned()));
}

#[test]
fn what_is_no_rule_is_refused() {
    for line in ["x", "-", "- ", "+", "-/ a", "-z a", ": a/b", ": ..", "! a", "-n a", ":p x", "-\0 a", "exclud a"] {
        let refused = Filters::default().add(RuleForm::Rule, line.as_bytes());
        assert!(refused.is_err_and(|why| why.len() < 300), "{line:?}");
    }
    let merged = Filters::default().add(RuleForm::Rule, b"merge,- /etc/rules");
    assert_eq!(merged, Ok(AddedRule::Merge(b"/etc/rules".to_vec(), RuleForm::OnlyExclude)));
    let mut many = Filters::default();
    let added = (0..=limits::FILTER_RULES).map(|_| many.add(RuleForm::Exclude, b"x"));
    assert_eq!(added.filter(Result::is_err).count(), 1);
}
