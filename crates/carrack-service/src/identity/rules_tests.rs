//! The rules as a table, and what holds for all of them.

use proptest::prelude::*;

use super::*;
use crate::model::{Ceilings, EndpointDefaults, EndpointLimits, EndpointLocation};

fn endpoint(name: &str, owner: &str, users: &[&str], read_only: bool) -> Endpoint {
    Endpoint {
        name: name.into(),
        owner: owner.into(),
        location: EndpointLocation::Local { root: "/data".into() },
        read_only,
        uploads: false,
        ownership: false,
        limits: EndpointLimits::default(),
        defaults: EndpointDefaults::default(),
        description: String::new(),
        users: users.iter().map(|&user| user.to_owned()).collect(),
        has_token: false,
        added: Moment(0),
        version: 1,
        health: None,
    }
}

fn caller(user: &str, role: Role, scope: Option<Scope>) -> Caller {
    Caller { user: user.into(), role, scope, via: KnownBy::Token, token: None, expires: None, runs_service: false }
}

/// `verbs[@endpoint[+endpoint][:/path]]`; empty: no scope.
fn scope(text: &str) -> Option<Scope> {
    if text.is_empty() {
        return None;
    }
    let (verbs, place) = text.split_once('@').map_or((text, None), |(verbs, place)| (verbs, Some(place)));
    let verbs = verbs.split(',').filter(|verb| !verb.is_empty()).map(|verb| Verb::parse(verb).unwrap()).collect();
    let (endpoints, path) = place.map(|place| place.split_once(':').unwrap_or((place, ""))).unwrap_or_default();
    let endpoints = endpoints.split('+').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(Scope {
        verbs,
        endpoints,
        path: Some(path).filter(|path| !path.is_empty()).map(str::to_owned),
        ceilings: Ceilings::default(),
    })
}

/// An object as the table has it: `row OWNER [@NAME:/path…]`, `at NAME [/path]`, `settings [NAME]`, `raw`, `tokens
/// USER`, `figures [all]`, `service`, `nothing`. The endpoint `lab` is ann's, `shared` is ann's and bob's, `all`
/// everybody's, `ro` everybody's to read.
fn decide(caller: &Caller, verb: &str, object: &str) -> Decision {
    let endpoints = [
        endpoint("lab", "ann", &[], false),
        endpoint("shared", "ann", &["bob"], false),
        endpoint("all", "root", &["*"], false),
        endpoint("ro", "root", &["*"], true),
    ];
    let named = |name: &str| endpoints.iter().find(|endpoint| endpoint.name == name).unwrap();
    let words: Vec<&str> = object.split(' ').collect();
    let places: Vec<Place> = words
        .iter()
        .filter_map(|word| word.strip_prefix('@')?.split_once(':'))
        .map(|(name, path)| Place { endpoint: Some(name.into()), path: ScopePath::parse(path).unwrap() })
        .collect();
    let path;
    let object = match words[0] {
        "nothing" => Object::Nothing,
        "row" => Object::Row { owner: words[1], places: &places },
        "at" => {
            path = words.get(2).map(|path| ScopePath::parse(path).unwrap());
            Object::Endpoint { endpoint: named(words[1]), path: path.as_ref() }
        }
        "settings" => Object::EndpointSettings(words.get(1).map(|name| named(name))),
        "raw" => Object::RawLocation,
        "tokens" => Object::Tokens { user: words[1] },
        "figures" => Object::Figures { of_all: words.get(1) == Some(&"all") },
        "service" => Object::Service,
        other => panic!("{other}"),
    };
    may(caller, &Action { verb: Verb::parse(verb).unwrap(), object })
}

/// Who, role, scope, verb, object, and the rule that decides: `+` allows, `-` forbids, `?` hides.
const TABLE: &[(&str, Role, &str, &str, &str, &str)] = &[
    // Own rows and those of others.
    ("ann", Role::User, "", "view", "row ann", "+own-row"),
    ("bob", Role::User, "", "view", "row ann", "?row-of-another"),
    ("bob", Role::User, "", "tasks", "row ann", "?row-of-another"),
    ("bob", Role::User, "", "view", "row an", "?row-of-another"),
    ("bob", Role::User, "", "view", "row bob ", "+own-row"),
    ("bob", Role::User, "", "view", "row Bob", "?row-of-another"),
    ("root", Role::Admin, "", "view", "row ann", "+admin"),
    ("root", Role::Admin, "", "tasks", "row ann", "+admin"),
    ("root", Role::Admin, "view", "view", "row ann", "?row-of-another"),
    ("root", Role::Admin, "view,admin", "view", "row ann", "+admin"),
    ("root", Role::Admin, "view", "view", "row root", "+own-row"),
    // Roles.
    ("vic", Role::Viewer, "", "view", "row vic", "+own-row"),
    ("vic", Role::Viewer, "", "tasks", "row vic", "-role-lacks-verb"),
    ("vic", Role::Viewer, "", "tasks", "nothing", "-role-lacks-verb"),
    ("vic", Role::Viewer, "", "view", "nothing", "+role-has-verb"),
    ("vic", Role::Viewer, "", "read", "at all /x", "-role-lacks-verb"),
    ("vic", Role::Viewer, "", "admin", "settings", "-role-lacks-verb"),
    ("vic", Role::Viewer, "", "admin", "tokens vic", "+own-tokens"),
    ("bob", Role::User, "", "admin", "service", "-role-lacks-verb"),
    ("bob", Role::User, "", "metrics", "service", "-role-lacks-verb"),
    ("bob", Role::User, "metrics", "metrics", "service", "-role-lacks-verb"),
    ("root", Role::Admin, "", "admin", "service", "+role-has-verb"),
    ("root", Role::Admin, "metrics", "metrics", "service", "+role-has-verb"),
    ("root", Role::Admin, "metrics", "view", "nothing", "-scope-lacks-verb"),
    ("root", Role::Admin, "view", "metrics", "service", "-scope-lacks-verb"),
    // Figures.
    ("bob", Role::User, "", "view", "figures", "+own-figures"),
    ("bob", Role::User, "", "view", "figures all", "-figures-of-all"),
    ("vic", Role::Viewer, "", "view", "figures all", "+viewer"),
    ("root", Role::Admin, "", "view", "figures all", "+admin"),
    ("root", Role::Admin, "view", "view", "figures all", "-figures-of-all"),
    ("ann", Role::User, "tasks", "view", "figures", "-scope-lacks-verb"),
    ("ann", Role::User, "view@lab", "view", "figures", "-scope-one-endpoint"),
    ("vic", Role::Viewer, "view@lab", "view", "figures all", "-scope-one-endpoint"),
    // Endpoints.
    ("ann", Role::User, "", "read", "at lab /x", "+endpoint-own"),
    ("ann", Role::User, "", "delete", "at lab /x", "+endpoint-own"),
    ("bob", Role::User, "", "read", "at lab /x", "?endpoint-without-right"),
    ("bob", Role::User, "", "view", "at lab", "?endpoint-without-right"),
    ("bob", Role::User, "", "write", "at shared /x", "+endpoint-shared"),
    ("eve", Role::User, "", "write", "at shared /x", "?endpoint-without-right"),
    ("eve", Role::User, "", "write", "at all /x", "+endpoint-shared"),
    ("eve", Role::User, "", "read", "at ro /x", "+endpoint-shared"),
    ("eve", Role::User, "", "write", "at ro /x", "-endpoint-read-only"),
    ("eve", Role::User, "", "delete", "at ro /x", "-endpoint-read-only"),
    ("root", Role::Admin, "", "write", "at ro /x", "-endpoint-read-only"),
    ("root", Role::Admin, "", "write", "at lab /x", "+admin"),
    ("root", Role::Admin, "write", "write", "at lab /x", "?endpoint-without-right"),
    ("vic", Role::Viewer, "", "view", "at all", "+endpoint-shared"),
    ("bob", Role::User, "", "admin", "settings", "+role-has-verb"),
    ("ann", Role::User, "", "admin", "settings lab", "+endpoint-own"),
    ("bob", Role::User, "", "admin", "settings lab", "?endpoint-without-right"),
    ("bob", Role::User, "", "admin", "settings shared", "-endpoint-of-another"),
    ("root", Role::Admin, "", "admin", "settings lab", "+admin"),
    // Scopes of verbs.
    ("ann", Role::User, "read", "read", "at lab /x", "+endpoint-own"),
    ("ann", Role::User, "read", "write", "at lab /x", "-scope-lacks-verb"),
    ("ann", Role::User, "read,write", "delete", "at lab /x", "-scope-lacks-verb"),
    ("ann", Role::User, ",", "view", "row ann", "-scope-lacks-verb"),
    ("ann", Role::User, "read,write,delete,tasks,view", "admin", "settings lab", "-scope-lacks-verb"),
    ("ann", Role::User, "tasks", "admin", "tokens ann", "-scope-lacks-verb"),
    ("ann", Role::User, "admin", "admin", "service", "-role-lacks-verb"),
    // Scopes of places.
    ("ann", Role::User, "read@lab", "read", "at lab /x", "+endpoint-own"),
    ("ann", Role::User, "read@lab", "read", "at shared /x", "?scope-other-endpoint"),
    ("ann", Role::User, "read@lab:/foo", "read", "at lab /foo", "+endpoint-own"),
    ("ann", Role::User, "read@lab:/foo", "read", "at lab /foo/bar", "+endpoint-own"),
    ("ann", Role::User, "read@lab:/foo", "read", "at lab /foobar", "-scope-other-path"),
    ("ann", Role::User, "read@lab:/foobar", "read", "at lab /foo", "-scope-other-path"),
    ("ann", Role::User, "read@lab:/foo/", "read", "at lab /", "-scope-other-path"),
    ("ann", Role::User, "read@lab:/foo", "read", "at lab /%66oo/x", "+endpoint-own"),
    ("ann", Role::User, "read@lab:/foo", "read", "at lab /FOO", "-scope-other-path"),
    ("ann", Role::User, "read@lab:/foo/..", "read", "at lab /foo", "-scope-path-unreadable"),
    ("ann", Role::User, "read@lab:foo", "read", "at lab /foo", "-scope-path-unreadable"),
    ("ann", Role::User, "read@lab+all", "read", "at lab /foo", "+endpoint-own"),
    ("ann", Role::User, "read@lab+all", "read", "at all /foo", "+endpoint-shared"),
    ("ann", Role::User, "read@lab+all", "read", "at shared /foo", "?scope-other-endpoint"),
    ("ann", Role::User, "read,view@lab+all", "view", "row ann @lab:/a @all:/b", "+own-row"),
    ("ann", Role::User, "read,view@lab+all", "view", "row ann @lab:/a @shared:/b", "?scope-other-place"),
    ("ann", Role::User, "read@lab+all:/foo", "read", "at lab /foo", "-scope-path-of-several"),
    ("ann", Role::User, "read@lab:/%2e%2e", "read", "at lab /foo", "-scope-path-unreadable"),
    ("bob", Role::User, "read@lab:/foo", "read", "at lab /foo", "?endpoint-without-right"),
    ("ann", Role::User, "view@lab:/foo", "view", "row ann @lab:/foo/x @lab:/foo/y", "+own-row"),
    ("ann", Role::User, "view@lab:/foo", "view", "row ann @lab:/foo/x @lab:/bar", "?scope-other-place"),
    ("ann", Role::User, "view@lab:/foo", "view", "row ann @shared:/foo", "?scope-other-place"),
    ("ann", Role::User, "view@lab", "view", "row ann", "?scope-other-place"),
    ("bob", Role::User, "view@lab", "view", "row ann @lab:/foo", "?row-of-another"),
    ("ann", Role::User, "admin@lab", "admin", "settings lab", "-scope-one-endpoint"),
    ("ann", Role::User, "admin@lab", "admin", "tokens ann", "-scope-one-endpoint"),
    ("root", Role::Admin, "admin@lab", "admin", "service", "-scope-one-endpoint"),
    ("root", Role::Admin, "read@lab", "read", "raw", "-raw-location"),
    ("root", Role::Admin, "read,admin@lab", "read", "raw", "-scope-one-endpoint"),
    ("root", Role::Admin, "", "admin", "settings all", "+endpoint-own"),
    ("amy", Role::Admin, "", "admin", "settings all", "+admin"),
    // Locations of no endpoint, tokens.
    ("ann", Role::User, "", "read", "raw", "-raw-location"),
    ("root", Role::Admin, "", "write", "raw", "+admin"),
    ("root", Role::Admin, "write", "write", "raw", "-raw-location"),
    ("ann", Role::User, "", "admin", "tokens ann", "+own-tokens"),
    ("ann", Role::User, "", "admin", "tokens bob", "?tokens-of-another"),
    ("root", Role::Admin, "", "admin", "tokens ann", "+admin"),
];

#[test]
fn rules_decide_as_the_table_says() {
    assert!(TABLE.len() >= 60);
    for &(user, role, text, verb, object, expected) in TABLE {
        let decision = decide(&caller(user, role, scope(text)), verb, object);
        let sign = match decision.verdict {
            Verdict::Allowed => '+',
            Verdict::Forbidden => '-',
            Verdict::Hidden => '?',
        };
        assert_eq!(format!("{sign}{}", decision.rule), expected, "{user} {role:?} {text:?}: {verb} {object}");
    }
    let mut own = caller("local", Role::User, None);
    own.runs_service = true;
    assert_eq!(decide(&own, "read", "raw"), allowed("runs-service"));
}

#[test]
fn scope_with_a_path_and_no_endpoint_allows_nothing() {
    let scope = Scope { verbs: vec![Verb::Read], path: Some("/foo".into()), ..Scope::default() };
    let decision = decide(&caller("ann", Role::User, Some(scope)), "read", "at lab /foo");
    assert_eq!(decision, forbidden("scope-path-without-endpoint"));
}

proptest! {
    /// A scope only takes away: whatever a token allows, its user may do without it. And what a role below admin may
    /// do, an admin may do.
    #[test]
    fn scope_never_adds_a_right(
        user in "ann|bob|eve|root", role in prop::sample::select(Role::ALL),
        verbs in prop::sample::subsequence(Verb::ALL, 0..=Verb::ALL.len()), verb in prop::sample::select(Verb::ALL),
        place in "|@lab|@shared:/foo|@all:/|@ro:/a/b",
        object in "nothing|row (ann|bob)|row bob @all:/x|at (lab|shared|all|ro) /(foo/x|foobar|a/b/c)|settings lab|raw|tokens (ann|bob)|service",
    ) {
        let words: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
        let scope = scope(&format!("{},{place}", words.join(",")));
        let scoped = decide(&caller(&user, role, scope), verb.name(), &object);
        let whole = decide(&caller(&user, role, None), verb.name(), &object);
        let admin = decide(&caller(&user, Role::Admin, None), verb.name(), &object);
        if scoped.verdict == Verdict::Allowed {
            prop_assert_eq!(whole.verdict, Verdict::Allowed);
            prop_assert!(verbs.contains(&verb));
        }
        if whole.verdict == Verdict::Allowed {
            prop_assert_eq!(admin.verdict, Verdict::Allowed);
        }
    }
}

#[test]
fn scope_is_within_another_only_if_each_part_of_it_is() {
    let of = |verbs: &[Verb], endpoints: &[&str], path: Option<&str>, bytes: Option<u64>| {
        let mut scope = Scope {
            verbs: verbs.to_vec(),
            endpoints: endpoints.iter().map(|name| (*name).to_owned()).collect(),
            path: path.map(str::to_owned),
            ..Scope::default()
        };
        scope.ceilings.bytes = bytes;
        scope
    };
    let wide = of(&[Verb::Read, Verb::Write], &["lab", "box"], None, Some(10));
    for (narrow, expected) in [
        (of(&[Verb::Read], &["lab"], None, Some(10)), true),
        (of(&[Verb::Read], &["lab"], Some("/a"), Some(1)), true),
        (of(&[Verb::Read, Verb::Admin], &["lab"], None, Some(10)), false),
        (of(&[Verb::Read], &["other"], None, Some(10)), false),
        (of(&[Verb::Read], &[], None, Some(10)), false),
        (of(&[Verb::Read], &["lab"], None, None), false),
        (of(&[Verb::Read], &["lab"], None, Some(11)), false),
    ] {
        assert_eq!(is_within(&narrow, &wide), expected, "{narrow:?}");
    }
    let below = of(&[Verb::Read], &["lab"], Some("/a"), None);
    for (path, expected) in [(Some("/a"), true), (Some("/a/b"), true), (Some("/ab"), false), (None, false)] {
        assert_eq!(is_within(&of(&[Verb::Read], &["lab"], path, None), &below), expected, "{path:?}");
    }
}
