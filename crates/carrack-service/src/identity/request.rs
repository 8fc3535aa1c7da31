//! Whether a task may be what it asks for: its form, and its owner's right to every place that it names. Asked when a
//! task or a timer is submitted, and again before each attempt: rights can be withdrawn meanwhile.

use std::fmt;

use carrack_core::location::Location;
use carrack_core::options::{check_label, parse_priority};
use carrack_core::path::display_bytes;
use carrack_core::reference::{ReferenceDirectories, below_root};

use super::targets::clash;
use super::{Action, Caller, Decision, Object, Place, ScopePath, Verdict, may};
use crate::model::{Endpoint, NewTask, Pair, TaskKind, Verb};

/// Pairs of one task.
pub const PAIRS_MAX: usize = 10_000;
const TEXTS_MAX: usize = 1_000_000;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It is not what a task can be: in words.
    Wrong(String),
    /// There is no such endpoint, or the owner has no right to it: from outside these are the same.
    NoEndpoint {
        /// As it was named.
        name: String,
        /// The rule that hides it; none: there is none.
        rule: Option<&'static str>,
    },
    /// The token lacks verbs that a task of this kind needs.
    Lacks {
        /// The kind.
        kind: TaskKind,
        /// The verbs.
        verbs: Vec<Verb>,
    },
    /// A rule forbids it.
    Forbidden {
        /// The location, as it was named.
        location: String,
        /// The rule.
        rule: &'static str,
    },
}

impl fmt::Display for RequestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(why) => f.write_str(why),
            Self::NoEndpoint { name, .. } => write!(f, "there is no endpoint {name}, or you have no right to it"),
            Self::Lacks { kind, verbs } => {
                let names: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
                write!(f, "a {} task needs a token with {}", kind.name(), names.join(","))
            }
            Self::Forbidden { location, rule } => write!(f, "{location}: this is not allowed ({rule})"),
        }
    }
}

impl std::error::Error for RequestFault {}

/// Checks a request of this caller, and names the endpoints that it uses, each once. `endpoint` looks one up.
///
/// # Errors
/// The first [`RequestFault`]; those of `endpoint`.
pub fn check_request<E: From<RequestFault>>(
    caller: &Caller,
    request: &NewTask,
    endpoint: impl FnMut(&str) -> Result<Option<Endpoint>, E>,
) -> Result<Vec<String>, E> {
    check_form(request)?;
    check_rights(caller, request, endpoint)
}

/// Checks that a caller may do at every place what a request asks for. The endpoints that it uses, each once.
///
/// # Errors
/// As [`check_request`].
pub fn check_rights<E: From<RequestFault>>(
    caller: &Caller,
    request: &NewTask,
    mut endpoint: impl FnMut(&str) -> Result<Option<Endpoint>, E>,
) -> Result<Vec<String>, E> {
    // All at once: who adds one verb to the token is not told of the next one.
    let lacks = caller.scope.as_ref().map(|scope| scope.lacks(needed(request))).unwrap_or_default();
    if !lacks.is_empty() {
        return Err(RequestFault::Lacks { kind: request.kind, verbs: lacks }.into());
    }
    let decision = may(caller, &Action { verb: Verb::Tasks, object: Object::Nothing });
    if decision.verdict != Verdict::Allowed {
        return Err(RequestFault::Forbidden { location: "a task".into(), rule: decision.rule }.into());
    }
    let mut known: Vec<Endpoint> = Vec::new();
    for pair in &request.pairs {
        let source: &[Verb] = match request.kind {
            TaskKind::Copy | TaskKind::Check => &[Verb::Read],
            TaskKind::Move => &[Verb::Read, Verb::Delete],
            TaskKind::Delete => &[Verb::Delete],
        };
        let destination: &[Verb] = match request.kind {
            TaskKind::Check => &[Verb::Read],
            _ if request.options.deletes() => &[Verb::Write, Verb::Delete],
            _ => &[Verb::Write],
        };
        let ends = [(Some(&pair.source), source), (pair.destination.as_ref(), destination)];
        for (text, verbs) in ends {
            let Some(text) = text else { continue };
            let location = Location::parse_document(text).map_err(RequestFault::Wrong)?;
            if let Some(name) = location.endpoint()
                && !known.iter().any(|endpoint| endpoint.name == name)
            {
                let found = endpoint(name)?;
                known.push(found.ok_or_else(|| RequestFault::NoEndpoint { name: name.to_owned(), rule: None })?);
            }
            for verb in verbs {
                check_location(caller, text, &location, &known, *verb)?;
            }
        }
        if let (Some(destination), Ok(Some(references))) = (&pair.destination, request.options.references()) {
            check_references(caller, destination, &known, &references)?;
        }
    }
    Ok(known.into_iter().map(|endpoint| endpoint.name).collect())
}

/// What a token has to allow for a task.
fn needed(request: &NewTask) -> &'static [Verb] {
    match request.kind {
        TaskKind::Copy if request.options.deletes() => &[Verb::Tasks, Verb::Read, Verb::Write, Verb::Delete],
        TaskKind::Copy => &[Verb::Tasks, Verb::Read, Verb::Write],
        TaskKind::Move => &[Verb::Tasks, Verb::Read, Verb::Write, Verb::Delete],
        TaskKind::Delete => &[Verb::Tasks, Verb::Delete],
        TaskKind::Check => &[Verb::Tasks, Verb::Read],
    }
}

/// What stands in a reference directory may come to stand at the destination: it has to be readable.
fn check_references(
    caller: &Caller,
    destination: &str,
    known: &[Endpoint],
    references: &ReferenceDirectories,
) -> Result<(), RequestFault> {
    let location = Location::parse_document(destination).map_err(RequestFault::Wrong)?;
    for typed in references.paths() {
        let at = match &location {
            Location::Endpoint { name, path } => {
                let out = || format!("{}: this leads out of the endpoint {name}", display_bytes(typed));
                let below = below_root(path, typed).ok_or_else(|| RequestFault::Wrong(out()))?;
                Location::Endpoint { name: name.clone(), path: [b"/", &below[..]].concat() }
            }
            other => other.clone(),
        };
        check_location(caller, destination, &at, known, Verb::Read)?;
    }
    Ok(())
}

fn check_location(
    caller: &Caller,
    text: &str,
    location: &Location,
    known: &[Endpoint],
    verb: Verb,
) -> Result<(), RequestFault> {
    let path;
    let object = match location {
        Location::Endpoint { name, path: below } => {
            path = ScopePath::of(below).map_err(|error| RequestFault::Wrong(format!("{text:?}: {error}")))?;
            let endpoint = known.iter().find(|endpoint| endpoint.name == *name);
            let endpoint = endpoint.ok_or_else(|| RequestFault::NoEndpoint { name: name.clone(), rule: None })?;
            Object::Endpoint { endpoint, path: Some(&path) }
        }
        _ => Object::RawLocation,
    };
    match (may(caller, &Action { verb, object }), location.endpoint()) {
        (Decision { verdict: Verdict::Allowed, .. }, _) => Ok(()),
        (Decision { verdict: Verdict::Hidden, rule }, Some(name)) => {
            Err(RequestFault::NoEndpoint { name: name.to_owned(), rule: Some(rule) })
        }
        (Decision { rule, .. }, _) => Err(RequestFault::Forbidden { location: text.to_owned(), rule }),
    }
}

/// The places of a request, for rules about rows. What cannot be read any more is at no endpoint.
pub fn places(request: &NewTask) -> Vec<Place> {
    let ends = request.pairs.iter().flat_map(|Pair { source, destination }| [Some(source), destination.as_ref()]);
    let place = |text: &String| {
        if let Ok(Location::Endpoint { name, path }) = Location::parse_document(text)
            && let Ok(path) = ScopePath::of(&path)
        {
            return Place { endpoint: Some(name), path };
        }
        Place { endpoint: None, path: ScopePath::root() }
    };
    ends.flatten().map(place).collect()
}

/// Whether the pairs of a request are such as its kind has.
fn check_pairs(request: &NewTask) -> Result<(), RequestFault> {
    let wrong = |why: String| Err(RequestFault::Wrong(why));
    if request.pairs.is_empty() || request.pairs.len() > PAIRS_MAX {
        return wrong(format!("a task has 1 to {PAIRS_MAX} pairs of source and destination"));
    }
    if request.options.deletes() && request.pairs.len() > 1 {
        return wrong("options: a task that deletes at its destination has one pair: of several, each would delete what another has \
             copied"
                .to_owned(),
        );
    }
    if let Some(([one, other], target)) = clash(request.kind, &request.pairs) {
        let of = |number: usize| request.pairs.get(number).map_or("", |pair| pair.source.as_str());
        return wrong(format!(
            "pairs: {:?} and {:?} may both become {target}, and the second would replace the first: give each a \
             destination of its own",
            of(one),
            of(other)
        ));
    }
    for pair in &request.pairs {
        match (&pair.destination, request.kind) {
            (None, TaskKind::Copy | TaskKind::Move) => {
                return wrong(format!("{:?}: a copy and a move have a destination", pair.source));
            }
            (None, TaskKind::Check) => {
                return wrong(format!("{:?}: a check compares it with a destination, and none is named", pair.source));
            }
            (Some(_), TaskKind::Delete) => {
                return wrong(format!("{:?}: a task that deletes has no destination", pair.source));
            }
            _ => {}
        }
        let is_synthetic = |text: &str| Location::parse_document(text).is_ok_and(|location| location.is_synthetic());
        let is_sink = |text: &str| text == "null:";
        if is_sink(&pair.source) || pair.destination.as_deref().is_some_and(|text| is_synthetic(text) && !is_sink(text))
        {
            return wrong(format!("{:?}: nothing is read from null:, and written only to null:", pair.source));
        }
        if request.kind != TaskKind::Copy && is_synthetic(&pair.source) {
            return wrong(format!("{:?}: made-up bytes can be copied only", pair.source));
        }
        if request.kind == TaskKind::Check && pair.destination.as_deref().is_some_and(is_synthetic) {
            return wrong(format!("{:?}: a check compares two places that keep files", pair.source));
        }
    }
    Ok(())
}

/// Whether a request is what a task can be, whoever asks for it.
///
/// # Errors
/// [`RequestFault::Wrong`].
fn check_form(request: &NewTask) -> Result<(), RequestFault> {
    let wrong = |why: String| Err(RequestFault::Wrong(why));
    check_pairs(request)?;
    if request.receipt && request.kind == TaskKind::Delete {
        return wrong("receipt: a delete leaves none: it is an account of what is there".into());
    }
    if request.kind == TaskKind::Check && request.skip_source_errors {
        return wrong("skip_source_errors: what a check cannot read, it has not compared".into());
    }
    if request.kind == TaskKind::Check && !request.expect_digests.is_empty() {
        return wrong("expect_digests: a check compares two places; carrack sum -c compares one with a list".into());
    }
    if let Some(label) = &request.label {
        check_label(label).map_err(|why| RequestFault::Wrong(format!("label: {why}")))?;
    }
    if let Some(priority) = request.priority {
        parse_priority(&priority.to_string()).map_err(|why| RequestFault::Wrong(format!("priority: {why}")))?;
    }
    let by_service = [request.timer.is_some(), request.guard.is_some(), request.token.is_some()];
    if by_service.contains(&true) || !request.ceilings.is_none() {
        return wrong("timer, guard, token and ceilings of a task are set by the service".into());
    }
    if request.preview && request.kind != TaskKind::Copy {
        return wrong(format!("preview: a {} is done or not; only a copy is planned", request.kind.name()));
    }
    let is_digest = |digest: &String| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some((path, _)) = request.expect_digests.iter().find(|(_, digest)| !is_digest(digest)) {
        return wrong(format!("the expected digest of {path:?} is not a BLAKE3 digest: 64 hexadecimal digits"));
    }
    if request.expect_digests.len() > TEXTS_MAX
        || request.options.only.as_ref().is_some_and(|only| only.len() > TEXTS_MAX)
    {
        return wrong(format!("a task names at most {TEXTS_MAX} paths"));
    }
    request.options.check(request.kind).map_err(|why| RequestFault::Wrong(format!("options: {why}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::clock::Moment;
    use crate::model::{
        EndpointDefaults, EndpointLimits, EndpointLocation, KnownBy, OptionKind, OptionPlace, Role, Scope, task_options,
    };

    /// Whether a copy can have this value of an option.
    fn takes(at: OptionPlace, name: &str, value: u64) -> bool {
        let mut task = json!({"kind": "copy", "pairs": [{"source": "@a:/", "destination": "@b:/"}], "options": {}});
        let fields: &mut Value = if at == OptionPlace::Task { &mut task } else { &mut task["options"] };
        fields[name] = value.into();
        serde_json::from_value(task).is_ok_and(|task| check_form(&task).is_ok())
    }

    /// A user with a token of this scope.
    fn ann(scope: Scope) -> Caller {
        Caller {
            user: "ann".into(),
            role: Role::Admin,
            scope: Some(scope),
            via: KnownBy::Token,
            token: None,
            expires: None,
            runs_service: true,
        }
    }

    /// A task that deletes at its destination needs the right to, has one pair, and is a copy.
    #[test]
    fn deletion_at_the_destination_is_asked_for_and_allowed_as_such() {
        let verdict = |verbs: &[Verb], kind: &str, pairs: usize, options: Value| {
            let scope = Scope { verbs: verbs.to_vec(), ..Scope::default() };
            let caller = ann(scope);
            let pair = json!({"source": "/a/", "destination": "/b/"});
            let task = json!({"kind": kind, "pairs": vec![pair; pairs], "options": options});
            let task: NewTask = serde_json::from_value(task).map_err(|error| error.to_string())?;
            check_request(&caller, &task, |_| Ok::<_, RequestFault>(None)).map_err(|fault| fault.to_string())
        };
        let (without, with) =
            (&[Verb::Tasks, Verb::Read, Verb::Write][..], &[Verb::Tasks, Verb::Read, Verb::Write, Verb::Delete][..]);
        for options in [json!({"delete": true}), json!({"delete_excluded": true})] {
            assert!(verdict(without, "copy", 1, options.clone()).is_err_and(|why| why.contains("delete")));
            assert!(verdict(with, "copy", 1, options.clone()).is_ok());
            assert!(verdict(with, "copy", 2, options.clone()).is_err_and(|why| why.contains("one pair")));
            assert!(verdict(with, "move", 1, options).is_err_and(|why| why.contains("only a task that copies")));
        }
        assert!(verdict(without, "copy", 2, json!({})).is_ok());
        assert!(
            verdict(with, "copy", 1, json!({"delete": true, "only": ["x"]})).is_err_and(|why| why.contains("only"))
        );
        for wrong in ["", "# nothing\n", "- \n", "merge /etc/passwd", "no rule"] {
            assert!(verdict(with, "copy", 1, json!({"filters": wrong})).is_err(), "{wrong:?}");
        }
        assert!(verdict(with, "copy", 1, json!({"filters": "- *.o\ndir-merge .rules"})).is_ok());
    }

    #[test]
    fn preview_is_one_of_a_copy_and_nobody_sets_a_guard() {
        let check = |task: Value| {
            serde_json::from_value(task)
                .map_err(|why| why.to_string())
                .and_then(|task| check_form(&task).map_err(|why| why.to_string()))
        };
        let pairs = json!([{"source": "/a/", "destination": "/b/"}]);
        assert_eq!(check(json!({"pairs": pairs, "preview": true, "options": {"delete": true}})), Ok(()));
        let moved = check(json!({"kind": "move", "pairs": pairs, "preview": true}));
        assert!(moved.is_err_and(|why| why.contains("only a copy is planned")));
        let guarded = check(json!({"pairs": pairs, "guard": {"items": 7}}));
        assert!(guarded.is_err_and(|why| why.contains("set by the service")));
    }

    /// Who deletes what is older than a month does not want everything to go.
    #[test]
    fn task_that_deletes_leaves_nothing_out_and_keeps_nothing() {
        let check = |options: &serde_json::Value, kind| {
            serde_json::from_value::<crate::model::TaskOptions>(options.clone()).unwrap().check(kind)
        };
        for options in [
            json!({"filters": "- *.o"}),
            json!({"min_size": 1}),
            json!({"max_size": 1}),
            json!({"min_age": "30d"}),
            json!({"max_age": "30d"}),
            json!({"one_file_system": true}),
            json!({"links": "safe"}),
            json!({"only": ["a"]}),
            json!({"backup": true}),
            json!({"backup_dir": "old"}),
            json!({"backup_suffix": ".old"}),
        ] {
            let refused = check(&options, TaskKind::Delete);
            assert!(refused.is_err_and(|why| why.contains("nothing is left out")), "{options}");
            assert_eq!(
                (check(&options, TaskKind::Copy), check(&options, TaskKind::Move)),
                (Ok(()), Ok(())),
                "{options}"
            );
        }
        assert_eq!(check(&json!({"rate_limit": 1}), TaskKind::Delete), Ok(()));
        for links in ["follow", "follow-directories", "follow-unsafe"] {
            let follows = json!({"links": links});
            assert_eq!(check(&follows, TaskKind::Copy), Ok(()));
            for kind in [TaskKind::Move, TaskKind::Delete] {
                assert!(check(&follows, kind).is_err_and(|why| why.contains("follows links")), "{links}");
            }
        }
        let follows = json!({"growing": "follow", "growing_idle": "1m", "growing_lock": "*.lock"});
        assert_eq!(check(&follows, TaskKind::Copy), Ok(()));
        assert!(check(&follows, TaskKind::Move).is_err_and(|why| why.contains("files that grow")));
    }

    #[test]
    fn reference_directories_are_of_a_copy_and_of_one_kind() {
        let check = |options: Value, kind| {
            serde_json::from_value::<crate::model::TaskOptions>(options).unwrap().check(kind).map_err(str::to_owned)
        };
        for name in ["link_dest", "copy_dest", "compare_dest"] {
            assert_eq!(check(json!({name: "../a\n/b"}), TaskKind::Copy), Ok(()));
            for kind in [TaskKind::Move, TaskKind::Delete] {
                assert!(check(json!({name: "../a"}), kind).is_err_and(|why| why.contains("only a task that copies")));
            }
        }
        let two = json!({"link_dest": "../a", "compare_dest": "../a"});
        assert!(check(two, TaskKind::Copy).is_err_and(|why| why.contains("one kind")));
    }

    /// Who may write below one path of an endpoint has nothing linked there that stands elsewhere.
    #[test]
    fn reference_directories_are_where_the_caller_may_read() {
        let verdict = |directory: &str| {
            let endpoints = vec!["lab".to_owned()];
            let verbs = Verb::ALL.to_vec();
            let scope = Scope { endpoints, path: Some("/mine".to_owned()), verbs, ..Scope::default() };
            let caller = ann(scope);
            let lab = Endpoint {
                name: "lab".into(),
                owner: "ann".into(),
                location: EndpointLocation::Local { root: "/data".into() },
                read_only: false,
                uploads: false,
                ownership: false,
                limits: EndpointLimits::default(),
                defaults: EndpointDefaults::default(),
                description: String::new(),
                users: Vec::new(),
                has_token: false,
                added: Moment(0),
                version: 1,
                health: None,
            };
            let endpoint = |_: &str| Ok::<_, RequestFault>(Some(lab.clone()));
            let pairs = json!([{"source": "@lab:/mine/from/", "destination": "@lab:/mine/to"}]);
            let task = json!({"kind": "copy", "pairs": pairs, "options": {"link_dest": directory}});
            check_request(&caller, &serde_json::from_value(task).unwrap(), endpoint).map(|_| ())
        };
        for within in ["../other", "/mine/x", "below"] {
            assert_eq!(verdict(within), Ok(()), "{within}");
        }
        for outside in ["../..", "/other", "../../other", "../../../x"] {
            assert!(verdict(outside).is_err(), "{outside}");
        }
    }

    #[test]
    fn numbers_of_a_task_are_those_that_the_table_of_options_tells() {
        let table = task_options();
        let options = table.groups.iter().flat_map(|group| &group.options);
        let mut tried = 0;
        for option in options.filter(|option| matches!(option.kind, OptionKind::Number | OptionKind::Bytes)) {
            let takes = |value| takes(option.at, &option.name, value);
            for (bound, beyond) in [
                (option.minimum, option.minimum.and_then(|least| least.checked_sub(1))),
                (option.maximum, option.maximum.and_then(|most| most.checked_add(1))),
            ] {
                if let Some(bound) = bound {
                    assert!(takes(bound), "{}: {bound}", option.name);
                    assert!(!beyond.is_some_and(takes), "{}: {beyond:?}", option.name);
                    tried += 1;
                }
            }
        }
        assert!(tried >= 5, "{tried}");
    }
}
