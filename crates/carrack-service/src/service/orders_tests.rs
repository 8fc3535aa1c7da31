//! What holds when a task starts: that whoever submitted it may still do it, and that its worker reaches no more.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::clock::SystemClock;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{NewEvent, Submission, TaskChange, TaskGuard, UserChange, UserRow};
use crate::model::{Ceilings, Endpoint, EndpointLocation, EventKind, TokenRow, TokenUse, User, Verb};

const TOKEN: &str = "the-node's-own-token";

struct Opens;

impl Unseal for Opens {
    fn open(&self, _: &str, _: &[u8]) -> Result<Secret, String> {
        Ok(Secret::new(TOKEN))
    }
}

struct Host {
    ledger: Arc<MemoryLedger>,
    orders: Orders,
}

fn event() -> NewEvent {
    let (kind, owner) = (EventKind::EndpointChanged, String::new());
    NewEvent { kind, owner, task: None, subject: None, text: String::new(), detail: json!({}) }
}

impl Host {
    /// With `root`, an admin, who has an endpoint of each kind for everybody, and `ann`, a user.
    fn new() -> Self {
        let ledger = Arc::new(MemoryLedger::new());
        let orders = Orders {
            ledger: ledger.clone(),
            seal: Arc::new(Opens),
            clock: Arc::new(SystemClock::default()),
            tasks: PathBuf::from("/tasks"),
            receipt_key: Secret::new("the key"),
            service_owner: "local".to_owned(),
        };
        let host = Self { ledger, orders };
        let now = host.orders.clock.now();
        for (name, role) in [("root", Role::Admin), ("ann", Role::User)] {
            let user = User { name: name.to_owned(), role, account: None, enabled: true, added: now };
            host.ledger.add_user(&UserRow { user, password: None }).unwrap();
        }
        let node = EndpointLocation::Node {
            host: "192.0.2.1".to_owned(),
            port: 7420,
            fingerprint: None,
            path: "/base".to_owned(),
        };
        for (name, location) in [
            ("here", EndpointLocation::Local { root: "/srv".to_owned() }),
            ("node", node),
            ("ssh", EndpointLocation::Ssh { user: None, host: "lab".to_owned(), path: "/data".to_owned() }),
        ] {
            let sealed_token = matches!(location, EndpointLocation::Node { .. }).then(Vec::new);
            let endpoint = Endpoint {
                name: name.to_owned(),
                owner: "root".to_owned(),
                location,
                read_only: false,
                uploads: false,
                ownership: false,
                limits: Default::default(),
                defaults: Default::default(),
                description: String::new(),
                users: vec!["*".to_owned()],
                has_token: sealed_token.is_some(),
                added: now,
                version: 1,
                health: None,
            };
            host.ledger.add_endpoint(&EndpointRow { endpoint, sealed_token }, &event()).unwrap();
        }
        host
    }

    fn set_role(&self, name: &str, role: Role) {
        self.ledger.change_user(name, &UserChange { role: Some(role), ..UserChange::default() }).unwrap();
    }

    /// A token of ann's, for a path.
    fn token(&self, endpoint: &str, expires: Option<Moment>) -> String {
        let scope = Scope {
            verbs: vec![Verb::Tasks, Verb::Read, Verb::Write],
            endpoints: vec![endpoint.to_owned()],
            path: Some("/sub".to_owned()),
            ..Scope::default()
        };
        let row = TokenRow {
            id: format!("of-{endpoint}"),
            user: "ann".to_owned(),
            label: String::new(),
            scope: Some(scope),
            made: self.orders.clock.now(),
            expires,
            used: None,
            is_session: false,
        };
        self.ledger.add_token(&row, &[0; 32]).unwrap();
        row.id
    }

    /// One token of ann's for everything, made once.
    fn counted(&self) -> String {
        if self.ledger.token("counted").is_err() {
            let row = TokenRow {
                id: "counted".to_owned(),
                user: "ann".to_owned(),
                label: String::new(),
                scope: None,
                made: self.orders.clock.now(),
                expires: None,
                used: None,
                is_session: false,
            };
            self.ledger.add_token(&row, &[0; 32]).unwrap();
        }
        "counted".to_owned()
    }

    fn task(&self, from: &str, to: &str, token: Option<&str>) -> Task {
        let pair = Pair { source: from.to_owned(), destination: Some(to.to_owned()) };
        let request = NewTask { pairs: vec![pair], token: token.map(str::to_owned), ..NewTask::default() };
        let id = format!("task of {from} by {token:?}");
        let (owner, endpoints) = ("ann".to_owned(), Vec::new());
        let submission = Submission { id, owner, submission_id: None, request, endpoints, estimate: None };
        self.ledger.submit(&submission, self.orders.clock.now()).unwrap().task
    }

    fn order(&self, task: &Task) -> Result<Order, String> {
        self.orders.make(task, 1, &|_| None).map_err(|why| match why {
            NoOrder::Failure(failure) => format!("{}: {}", failure.code, failure.why),
            NoOrder::Ledger(error) => panic!("{error}"),
        })
    }
}

fn refused(order: Result<Order, String>, word: &str) {
    let why = order.expect_err("it may run");
    assert!(why.starts_with("permission-denied: ") && why.contains(word), "{why}");
}

#[test]
fn task_whose_owner_has_become_a_viewer_does_not_start() {
    let host = Host::new();
    let task = host.task("@node:/a", "@node:/b", None);
    assert!(host.order(&task).is_ok());
    host.set_role("ann", Role::Viewer);
    refused(host.order(&task), "viewer");
    assert!(host.orders.check_going_on(&task, &links_of(&task.request)).is_err());
}

#[test]
fn task_whose_token_was_revoked_does_not_start_and_one_whose_token_is_over_does() {
    let host = Host::new();
    let token = host.token("node", Some(host.orders.clock.now()));
    let task = host.task("@node:/sub/a", "@node:/sub/b", Some(&token));
    assert!(host.order(&task).is_ok());
    host.ledger.remove_token(&token).unwrap();
    refused(host.order(&task), "revoked");
}

#[test]
fn task_by_a_token_for_a_path_is_confined_to_it() {
    let host = Host::new();
    let of_here = host.token("here", None);
    let order = host.order(&host.task("@here:/sub/a", "@here:/sub/b", Some(&of_here))).unwrap();
    let pair = &order.pairs[0];
    for end in [Some(&pair.source), pair.destination.as_ref()] {
        assert!(end.is_some_and(|end| end.within.as_deref() == Some(b"sub")), "{end:?}");
    }
    let of_node = host.token("node", None);
    let order = host.order(&host.task("@node:/sub/a", "@node:/sub/b", Some(&of_node))).unwrap();
    let credentials = &order.pairs[0].source.credentials;
    let key = GrantKey::of(&Token::new(TOKEN.as_bytes()).unwrap());
    let claims = key.open(credentials.token.as_ref().unwrap().reveal(), 0).unwrap();
    assert_eq!(claims.prefix, b"base/sub");
    let of_ssh = host.token("ssh", None);
    let order = host.order(&host.task("@ssh:/sub/a", "@ssh:/sub/b", Some(&of_ssh))).unwrap();
    for end in order.pairs[0].ends() {
        assert_eq!((end.root.as_deref(), end.within.as_deref()), (Some(&b"/data"[..]), Some(&b"sub"[..])));
        let Location::Ssh { path, .. } = &end.location else { panic!("{end:?}") };
        assert!(path.starts_with(b"/sub/"), "{end:?}");
    }
    // Looked at again: what the token is not for.
    refused(host.order(&host.task("@node:/other", "@node:/sub/b", Some(&of_node))), "not run this task any more");
}

#[test]
fn endpoint_of_the_service_is_closed_while_its_owner_is_no_admin() {
    let host = Host::new();
    host.set_role("root", Role::User);
    for name in ["here", "ssh"] {
        refused(host.order(&host.task(&format!("@{name}:/a"), "@node:/b", None)), "no admin any more");
    }
    assert!(host.order(&host.task("@node:/a", "@node:/b", None)).is_ok());
    let mut row = host.ledger.endpoint("here").unwrap();
    host.set_role("ann", Role::Admin);
    row.endpoint.owner = "ann".to_owned();
    host.ledger.change_endpoint(&row, &event(), host.orders.clock.now()).unwrap();
    assert!(host.order(&host.task("@here:/a/b", "@node:/b", None)).is_ok());
}

#[test]
fn task_gets_what_its_token_has_left_after_all_its_tasks_and_files() {
    let host = Host::new();
    let ceilings = Ceilings { bytes: Some(100), run_seconds: Some(9), ..Ceilings::default() };
    let submit = |id: &str| {
        let pair = Pair { source: "@here:/a".to_owned(), destination: Some("@here:/b".to_owned()) };
        let request = NewTask { pairs: vec![pair], token: None, ceilings, ..NewTask::default() };
        let request = NewTask { token: Some(host.counted()), ..request };
        let (id, owner, endpoints) = (id.to_owned(), "ann".to_owned(), Vec::new());
        let submission = Submission { id, owner, submission_id: None, request, endpoints, estimate: None };
        host.ledger.submit(&submission, host.orders.clock.now()).unwrap().task
    };
    let (one, two) = (submit("one"), submit("two"));
    let progress = Some(Progress { bytes_moved: 40, ..Progress::default() });
    let change = TaskChange { progress, ..TaskChange::default() };
    let one = host.ledger.change_task(&one.id, &TaskGuard::default(), &change, &[], host.orders.clock.now()).unwrap();
    host.ledger.count_use("ann", "counted", &TokenUse::of(0, 25), &ceilings).unwrap();
    // What a task has done itself is not taken from it twice.
    assert_eq!(host.order(&one).unwrap().ceilings, Ceilings { bytes: Some(75), ..ceilings });
    assert_eq!(host.order(&two).unwrap().ceilings, Ceilings { bytes: Some(35), ..ceilings });
}

#[test]
fn links_go_by_places_and_spellings_of_one_node_are_one() {
    for (location, place) in [
        ("carrack://Far.example/run", "far.example:7420"),
        ("carrack://far.example.:7420/other", "far.example:7420"),
        ("carrack://far.example:7421/run", "far.example:7421"),
        ("ssh://me@lab/~/run", "lab"),
        ("@lab:/run", "@lab"),
        ("/data", "this host"),
        ("null:", "no storage"),
        ("nothing that is a place", "nowhere"),
    ] {
        assert_eq!(end_of(location), place, "{location}");
    }
}
