//! Who may do what: every kind of caller asks every route of the router at every kind of endpoint. What is let in is
//! held against a table that knows nothing of the service's rules: a new route fails here until the table has it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::rig::{Rig, endpoint};
use crate::api::{Peer, openapi_json};
use crate::ledger::Page;
use crate::model::{Ceilings, EndpointLocation, MadeToken, NewEndpoint, NewToken, NewUser, Role, Scope, Secret, Verb};

/// What a route needs of whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Nothing.
    Open,
    /// That somebody is known.
    Known,
    /// That somebody is known, by what no scope narrows.
    Whole,
    /// This verb, on nothing in particular.
    Any(Verb),
    /// This verb, and a token that is for no place.
    Everywhere(Verb),
    /// This verb, on a task or timer of ann's at the endpoint.
    Row(Verb),
    /// All that a copy at the endpoint needs.
    Copy,
    /// The same, and the row that is done again.
    Again,
    /// This verb at the endpoint.
    At(Verb),
    /// To read at the endpoint, and a token that counts no bytes.
    Archive,
    /// This verb at the whole endpoint.
    AtRoot(Verb),
    /// This verb, on what the caller has begun: nobody else knows it, whatever they may.
    Own(Verb),
    /// To change the endpoint itself.
    Settings,
    /// The same, and this verb there.
    Measure(Verb),
    /// To add one.
    Add,
    /// To see ann herself.
    Herself,
    /// Ann's tokens and sessions.
    Tokens,
    /// To make what opens everything that ann may do.
    Opens,
    /// Users, and the service itself.
    Service,
    /// To make a user.
    Users,
}

/// What each route needs.
fn need(method: &str, path: &str) -> Option<Need> {
    use Need::*;
    Some(match (method, path) {
        ("post", "/login") => Open,
        ("get", "/whoami" | "/options/task" | "/receipts/key") | ("post", "/logout") => Known,
        ("post", "/password") => Whole,
        ("get", "/tasks" | "/timers" | "/endpoints") => Any(Verb::View),
        ("get", "/events" | "/faults" | "/overview" | "/nodes") => Everywhere(Verb::View),
        ("post", "/tasks/acts" | "/tasks/cancel") => Any(Verb::Tasks),
        ("post", "/tasks" | "/timers") => Copy,
        ("post", "/tasks/{id}/clone" | "/tasks/{id}/retry" | "/timers/{id}/run") => Again,
        ("get", "/tasks/{id}" | "/tasks/{id}/events" | "/tasks/{id}/items" | "/timers/{id}") => Row(Verb::View),
        ("get", "/tasks/{id}/in-flight" | "/tasks/{id}/leftovers" | "/tasks/{id}/receipt") => Row(Verb::View),
        ("patch", "/tasks/{id}" | "/timers/{id}") | ("post", "/timers/{id}/resume") => Row(Verb::Tasks),
        ("post", "/tasks/{id}/cancel" | "/tasks/{id}/pause" | "/tasks/{id}/resume") => Row(Verb::Tasks),
        ("delete", "/tasks/{id}/leftovers" | "/timers/{id}") | ("post", "/timers/{id}/pause") => Row(Verb::Tasks),
        ("post", "/endpoints") => Add,
        ("get", "/endpoints/{name}" | "/endpoints/{name}/bench" | "/endpoints/{name}/paths/{other}") => At(Verb::View),
        ("patch" | "delete", "/endpoints/{name}") => Settings,
        ("post", "/endpoints/{name}/bench") => Measure(Verb::Write),
        ("post", "/endpoints/{name}/paths/{other}") => Measure(Verb::Read),
        ("post", "/endpoints/{name}/test") => AtRoot(Verb::Read),
        ("get", "/endpoints/{name}/files/archive") => Archive,
        ("get", "/endpoints/{name}/files/content" | "/endpoints/{name}/files/properties") => At(Verb::Read),
        ("post", "/endpoints/{name}/files/du" | "/endpoints/{name}/files/sum") => At(Verb::Read),
        ("post", "/endpoints/{name}/files/mkdir" | "/endpoints/{name}/files/rename") => At(Verb::Write),
        ("post", "/endpoints/{name}/grants" | "/listings") => At(Verb::Read),
        ("post", "/endpoints/{name}/uploads") => At(Verb::Write),
        ("get" | "delete", "/listings/{id}") | ("get", "/listings/{id}/names") => Own(Verb::Read),
        ("get" | "delete", "/uploads/{id}") => Own(Verb::Write),
        ("put", "/uploads/{id}/blocks/{n}") | ("post", "/uploads/{id}/publish") => Own(Verb::Write),
        ("get", "/tokens") | ("delete", "/tokens/{id}") | ("delete", "/users/{name}/sessions") => Tokens,
        ("post", "/tokens" | "/users/{name}/links") => Opens,
        ("get", "/users/{name}") => Herself,
        ("get", "/audit" | "/users") | ("patch", "/users/{name}") => Service,
        ("post", "/users") => Users,
        _ => return None,
    })
}

/// Who asks.
struct Who {
    name: &'static str,
    /// What stands in `Authorization`.
    token: Option<Secret>,
    /// The account behind the socket.
    account: Option<u32>,
    /// The user; none: nobody.
    user: Option<&'static str>,
    role: Role,
    /// What a token leaves.
    scope: Option<Scope>,
}

impl Who {
    /// The identifier of the token.
    fn id(&self) -> String {
        let shown = self.token.as_ref().unwrap().reveal();
        shown.split('_').nth(1).unwrap().to_owned()
    }

    fn has(&self, verb: Verb) -> bool {
        let by_role = match self.role {
            Role::Admin => true,
            Role::User => !matches!(verb, Verb::Admin | Verb::Metrics),
            Role::Viewer => verb == Verb::View,
        };
        by_role && self.token_has(verb)
    }

    fn token_has(&self, verb: Verb) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.verbs.contains(&verb))
    }

    fn is_admin(&self) -> bool {
        self.role == Role::Admin && self.token_has(Verb::Admin)
    }

    fn is_placed(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| !scope.endpoints.is_empty())
    }

    /// Whether the table lets them in.
    fn may(&self, need: Need, place: &Place) -> bool {
        let Some(user) = self.user else { return need == Need::Open };
        // The endpoint is shared with ann and eve.
        let sees = ["ann", "eve"].contains(&user) || self.is_admin() || place.owner == user;
        let is_closed = place.is_of_service() && place.owner == "dan";
        // A user's endpoint leads to no address of this host, where nobody answers in this test.
        let leads_here = place.owner == "ann";
        let has_all = |verbs: &[Verb]| verbs.iter().all(|verb| self.has(*verb));
        let is_row = user == "ann" || self.is_admin();
        let admits = self.token_has(Verb::Admin) && !self.is_placed();
        match need {
            Need::Open | Need::Known => true,
            Need::Whole => self.scope.is_none(),
            Need::Any(verb) => self.has(verb),
            Need::Everywhere(verb) => self.has(verb) && !self.is_placed(),
            Need::Row(verb) => self.has(verb) && is_row && self.is_at_sub(),
            Need::Copy => sees && has_all(&[Verb::Tasks, Verb::Read, Verb::Write]) && self.is_at_sub() && !is_closed,
            Need::Again => is_row && self.has(Verb::View) && self.may(Need::Copy, place),
            Need::At(Verb::View) => sees && self.has(Verb::View),
            Need::At(verb) => sees && self.has(verb) && self.is_at_sub() && !is_closed,
            Need::Archive => {
                let counts = self.scope.as_ref().is_some_and(|scope| scope.ceilings.bytes.is_some());
                self.may(Need::At(Verb::Read), place) && !counts
            }
            Need::AtRoot(verb) => {
                let is_whole = self.scope.as_ref().is_none_or(|scope| scope.path.is_none());
                sees && self.has(verb) && is_whole && !is_closed
            }
            Need::Own(verb) => self.may(Need::At(verb), place) && !leads_here,
            Need::Add => self.role != Role::Viewer && admits,
            Need::Settings => {
                let own = self.role != Role::Viewer && place.owner == user;
                (own || self.is_admin()) && admits && sees
            }
            Need::Measure(verb) => self.may(Need::Settings, place) && self.has(verb) && !is_closed,
            Need::Herself => is_row && self.has(Verb::View) && !self.is_placed(),
            Need::Tokens => is_row && admits,
            Need::Opens => is_row && self.scope.is_none(),
            Need::Service => self.is_admin() && !self.is_placed(),
            Need::Users => self.is_admin() && self.scope.is_none(),
        }
    }

    /// Whether a token leaves `/sub`, where all that is asked for is.
    fn is_at_sub(&self) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.path.as_deref().is_none_or(|path| path == "/sub"))
    }
}

/// An endpoint, by its kind.
struct Place {
    name: &'static str,
    location: EndpointLocation,
    owner: &'static str,
}

impl Place {
    /// Only an admin's word makes it.
    fn is_of_service(&self) -> bool {
        !matches!(self.location, EndpointLocation::Node { .. })
    }
}

/// The service, as its router answers.
struct Scene {
    rig: Rig,
    router: Router,
    runtime: tokio::runtime::Runtime,
    made: u32,
}

impl Scene {
    fn new() -> Self {
        let rig = Rig::start();
        let router = crate::api::router(rig.api(), Duration::from_secs(20), &["localhost".to_owned()]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { rig, router, runtime, made: 0 }
    }

    fn ask(&self, who: &Who, method: &str, path: &str, body: Option<&[u8]>) -> (u16, String) {
        let peer = match who.account {
            Some(account) => Peer::Account(account),
            None => Peer::Address { address: [127, 0, 0, 1].into(), admit: Arc::new(|| ()), by_proxy: false },
        };
        let mut request = Request::builder()
            .method(method.to_uppercase().as_str())
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .extension(peer);
        if let Some(token) = &who.token {
            request = request.header("authorization", format!("Bearer {}", token.reveal()));
        }
        let request = request.body(Body::from(body.unwrap_or_default().to_vec())).unwrap();
        self.runtime.block_on(async {
            let answer = self.router.clone().oneshot(request).await.unwrap();
            let status = answer.status().as_u16();
            // An answer that lasts is as good as its head.
            let lasts = answer.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
            let body = if lasts { Default::default() } else { answer.into_body().collect().await.unwrap().to_bytes() };
            (status, String::from_utf8_lossy(&body).into_owned())
        })
    }

    fn admin(&self) -> Who {
        Who { name: "admin", token: None, account: Some(0), user: Some("local"), role: Role::Admin, scope: None }
    }

    fn made(&self, who: &Who, path: &str, body: &Value) -> Value {
        let (status, text) = self.ask(who, "post", &format!("/api/v1{path}"), Some(body.to_string().as_bytes()));
        assert!(status < 300, "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn add_user(&self, name: &str, role: Role) {
        let new = NewUser { name: name.into(), role, account: None, password: None };
        self.made(&self.admin(), "/users", &serde_json::to_value(new).unwrap());
    }

    fn with_token(&self, name: &'static str, user: &'static str, role: Role, scope: Option<Scope>) -> Who {
        let new = NewToken { user: Some(user.into()), label: name.into(), scope: scope.clone(), expires: None };
        let made = self.made(&self.admin(), "/tokens", &serde_json::to_value(new).unwrap());
        let made: MadeToken = serde_json::from_value(made).unwrap();
        Who { name, token: Some(made.token), account: None, user: Some(user), role, scope }
    }

    fn add(&self, who: &Who, place: &Place) {
        let users = vec!["ann".to_owned(), "eve".to_owned()];
        let new = NewEndpoint { location: place.location.clone(), uploads: true, users, ..endpoint(place.name, &[]) };
        self.made(who, "/endpoints", &serde_json::to_value(new).unwrap());
    }

    /// Adds an endpoint that is not there, as an admin; then it is its owner's.
    fn ensure(&self, place: &Place) {
        if self.rig.ledger.endpoint(place.name).is_err() {
            let admin = self.admin();
            self.add(&admin, place);
            let (path, owner) =
                (format!("/api/v1/endpoints/{}", place.name), json!({ "owner": place.owner }).to_string());
            assert_eq!(self.ask(&admin, "patch", &path, Some(owner.as_bytes())).0, 200);
        }
    }

    /// All that a request could have changed.
    fn state(&self) -> String {
        let (ledger, all) = (&self.rig.ledger, Page { after: None, limit: 1000 });
        let users = ledger.users().unwrap();
        let tokens = users.iter().flat_map(|user| ledger.tokens(&user.name).unwrap());
        let tokens: Vec<_> = tokens.map(|row| (row.id, row.user, row.scope, row.expires)).collect();
        let endpoints = ledger.endpoints(&all).unwrap();
        // Whatever changes one of them counts its version up.
        let tasks = ledger.tasks(&Default::default(), &all).unwrap();
        let tasks: Vec<_> = tasks.into_iter().map(|task| (task.id, task.version)).collect();
        let timers = ledger.timers(None, &all).unwrap();
        let timers: Vec<_> = timers.into_iter().map(|timer| (timer.id, timer.version)).collect();
        let mut files = tree(&self.rig.directory.path().join("tree"));
        files.sort();
        format!("{users:?} {tokens:?} {endpoints:?} {tasks:?} {timers:?} {files:?}")
    }

    /// What ann has at this place, each anew: by the first part of the route's path.
    fn object(&self, ann: &Who, route: &str, place: &Place) -> String {
        let copy = copy(place, "/sub/file");
        let block = json!({ "path": "/sub/new", "size": 5, "block_bytes": 4 << 20, "blocks": ["ab".repeat(32)] });
        let made = match route.split('/').nth(1) {
            Some("tasks") => self.made(ann, "/tasks", &copy),
            Some("timers") => {
                self.made(ann, "/timers", &json!({ "schedule": { "every_seconds": 3600 }, "task": copy }))
            }
            Some("tokens") => return self.with_token("to be removed", "ann", Role::User, None).id(),
            Some("uploads") => self.made(ann, &format!("/endpoints/{}/uploads", place.name), &block),
            Some("listings") => self.made(ann, "/listings", &json!({ "endpoint": place.name, "path": "/sub" })),
            _ => return String::new(),
        };
        made["id"].as_str().unwrap().to_owned()
    }
}

fn copy(place: &Place, from: &str) -> Value {
    let name = place.name;
    json!({ "pairs": [{ "source": format!("@{name}:{from}"), "destination": format!("@{name}:/sub/copy") }] })
}

/// Paths with what is there.
fn tree(directory: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(tree(&path));
        }
        found.push(format!("{path:?} {:?}", fs::read(&path).ok()));
    }
    found
}

/// A body of this kind, that is carried out if it is let in.
fn body(kind: &str, place: &Place, path: &str, number: u32) -> Value {
    let copy = copy(place, path);
    match kind {
        "" | "LoginRequest" | "EndpointUpdate" | "UserUpdate" | "TaskUpdate" | "TimerUpdate" => json!({}),
        "NewEndpoint" => {
            let location = json!({ "kind": "node", "host": "198.51.100.7", "port": 7420, "path": "/" });
            json!({ "name": format!("new{number}"), "location": location })
        }
        "UsageRequest" => json!({ "paths": [path] }),
        "NewDirectory" | "SumRequest" => json!({ "path": path }),
        // What is there already is not moved by a renaming that is let in.
        "FileRename" if path == "/sub/file" => json!({ "from": path, "to": path }),
        "FileRename" => json!({ "from": path, "to": "/sub/moved" }),
        "NewGrant" => json!({ "verbs": ["read"], "path": path }),
        "NewUpload" => json!({ "path": path, "size": 5, "block_bytes": 4 << 20, "blocks": ["ab".repeat(32)] }),
        "NewListing" => json!({ "endpoint": place.name, "path": path }),
        "PasswordChange" => json!({ "new": "a long new password" }),
        "NewTask" => copy,
        "TaskActs" => json!({ "act": "pause", "filter": {}, "dry_run": true }),
        "NewTimer" => json!({ "schedule": { "every_seconds": 3600 }, "task": copy }),
        "NewToken" => json!({ "user": "ann", "label": "more" }),
        "NewUser" => json!({ "name": format!("user{number}"), "role": "user" }),
        other => panic!("say here what a {other} is"),
    }
}

/// A method and a path with names in braces, and what it takes: the kind of its body, and whether a path in the query.
struct Route {
    method: String,
    path: String,
    body: Option<String>,
    takes_path: bool,
}

fn routes() -> Vec<Route> {
    let description: Value = serde_json::from_str(&openapi_json()).unwrap();
    let paths: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_value(description["paths"].clone()).unwrap();
    let route = |path: &str, (method, said): (String, Value)| {
        let content = said["requestBody"]["content"].as_object();
        let kind = |content: &serde_json::Map<String, Value>| {
            let schema = content.values().next().map(|kind| kind["schema"]["$ref"].as_str().unwrap_or_default());
            schema.unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned()
        };
        let parameters = said["parameters"].as_array();
        let takes_path =
            parameters.is_some_and(|all| all.iter().any(|one| one["in"] == "query" && one["name"] == "path"));
        Route { method, path: path.trim_start_matches("/api/v1").to_owned(), body: content.map(kind), takes_path }
    };
    paths.iter().flat_map(|(path, item)| item.clone().into_iter().map(move |said| route(path, said))).collect()
}

fn places(root: &std::path::Path) -> Vec<Place> {
    let local = || EndpointLocation::Local { root: root.to_str().unwrap().to_owned() };
    let node = |host: &str| EndpointLocation::Node {
        host: host.to_owned(),
        port: 1,
        fingerprint: Some("ab".repeat(32)),
        path: "/".to_owned(),
    };
    let ssh = EndpointLocation::Ssh { user: None, host: "far.invalid".to_owned(), path: "/data".to_owned() };
    vec![
        Place { name: "herelab", location: local(), owner: "local" },
        Place { name: "nodelab", location: node("127.0.0.1"), owner: "local" },
        Place { name: "sshlab", location: ssh, owner: "local" },
        Place { name: "annlab", location: node("127.0.0.1"), owner: "ann" },
        Place { name: "danlab", location: local(), owner: "dan" },
    ]
}

fn callers(scene: &Scene, place: &Place) -> Vec<Who> {
    let verbs = [Verb::View, Verb::Read, Verb::Write, Verb::Delete, Verb::Tasks, Verb::Admin];
    let names = ["only view", "only read", "only write", "only delete", "only tasks", "only admin"];
    let of_path = |path: &str| Scope {
        verbs: verbs.to_vec(),
        endpoints: vec![place.name.to_owned()],
        path: Some(path.to_owned()),
        ..Scope::default()
    };
    let ceilings = Ceilings { bytes: Some(1 << 40), ..Ceilings::default() };
    let bounded = Scope { verbs: verbs.to_vec(), ceilings, ..Scope::default() };
    let (ann, nobody) = (
        |name, scope| scene.with_token(name, "ann", Role::User, scope),
        |name, account| Who { name, token: None, account, user: None, role: Role::Viewer, scope: None },
    );
    let mut all = vec![
        nobody("a stranger", None),
        nobody("an account of the host", Some(54_321)),
        scene.with_token("a viewer", "eve", Role::Viewer, None),
        ann("the user", None),
        scene.with_token("another user", "bob", Role::User, None),
        ann("token for the path", Some(of_path("/sub"))),
        ann("token for another path", Some(of_path("/other"))),
        ann("token with ceilings", Some(bounded)),
        scene.with_token(
            "token of an admin",
            "root",
            Role::Admin,
            Some(Scope { verbs: vec![Verb::Admin], ..Scope::default() }),
        ),
        scene.with_token("demoted admin", "dan", Role::User, None),
        scene.admin(),
    ];
    for (verb, name) in verbs.into_iter().zip(names) {
        all.push(ann(name, Some(Scope { verbs: vec![verb], ..Scope::default() })));
    }
    all
}

#[test]
fn every_route_lets_in_whom_the_table_says_at_every_kind_of_endpoint() {
    let mut scene = Scene::new();
    let root = scene.rig.directory.path().join("tree");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/file"), "file").unwrap();
    for (name, role) in
        [("ann", Role::User), ("bob", Role::User), ("eve", Role::Viewer), ("root", Role::Admin), ("dan", Role::Admin)]
    {
        scene.add_user(name, role);
    }
    let ann = scene.with_token("ann", "ann", Role::User, None);
    let places = places(&root);
    for place in &places {
        scene.ensure(place);
    }
    scene.ask(&scene.admin(), "patch", "/api/v1/users/dan", Some(br#"{"role":"user"}"#));
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for place in &places {
        for who in callers(&scene, place) {
            for route in routes() {
                let Route { method, path, .. } = &route;
                let need = need(method, path).unwrap_or_else(|| panic!("say what {method} {path} needs"));
                // Nobody can begin anything there that could be asked for.
                let has_row = path.contains("{id}");
                if has_row && (place.owner == "dan" || place.owner == "ann" && matches!(need, Need::Own(_))) {
                    continue;
                }
                cells += 1;
                scene.made += 1;
                scene.ensure(place);
                let maker = if matches!(need, Need::Own(_)) && who.may(need, place) { &who } else { &ann };
                let id = if has_row { scene.object(maker, path, place) } else { String::new() };
                let name = if path.starts_with("/users") { "ann" } else { place.name };
                let mut asked = path.replace("{id}", &id).replace("{name}", name).replace("{n}", "0");
                asked = asked.replace("{other}", place.name);
                if route.takes_path {
                    asked.push_str("?path=/sub/file");
                }
                if path == "/tokens" && method == "get" {
                    asked.push_str("?user=ann");
                }
                let sent = route.body.as_ref().map(|kind| body(kind, place, "/sub/file", scene.made).to_string());
                let may = who.may(need, place);
                // What is let in changes what it likes.
                let before = (!may).then(|| scene.state());
                let (status, text) =
                    scene.ask(&who, method, &format!("/api/v1{asked}"), sent.as_deref().map(str::as_bytes));
                // That a node cannot be reached, or is at this host, is no answer of the service's rules.
                let is_let_in = ![401, 403, 404].contains(&status) || text.contains("service's own host");
                if is_let_in != may {
                    wrong.push(format!("{} {method} {path} at {}: {status} {text}", who.name, place.name));
                }
                if !is_let_in && before.is_some_and(|before| scene.state() != before) {
                    wrong.push(format!("{} {method} {path} at {}: {status}, and it was done", who.name, place.name));
                }
                if who.user.is_none() && text.contains(place.name) {
                    wrong.push(format!("{} {method} {path}: tells of {}: {text}", who.name, place.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cells > 3000, "{cells}");
}

/// Ways to write what a token for `/sub` is not for. Two links below lead there.
const SPELLINGS: [&str; 18] = [
    "/other/secret",
    "/sub/../other/secret",
    "/sub/%2e%2e/other/secret",
    "/sub/%2E%2E/other/secret",
    "/sub%2f..%2fother/secret",
    "/sub/./../other/secret",
    "/sub//../other/secret",
    "//other/secret",
    "other/secret",
    "/subother/../other/secret",
    "/SUB/../other/secret",
    "/sub/link/secret",
    "/sub/link/../other/secret",
    "/sub/link%2fsecret",
    "/sub/link/",
    "/sub/abs/secret",
    "/sub/abs",
    "/sub%00/../other/secret",
];

#[test]
fn token_for_a_path_gets_no_further_by_any_spelling_on_any_route_that_takes_a_path() {
    let mut scene = Scene::new();
    let root = scene.rig.directory.path().join("tree");
    for (name, content) in [("sub/file", "file"), ("other/secret", "canary"), ("subother/near", "canary")] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), content).unwrap();
    }
    symlink("../other", root.join("sub/link")).unwrap();
    symlink(root.join("other"), root.join("sub/abs")).unwrap();
    scene.add_user("ann", Role::User);
    let place = places(&root).remove(0);
    scene.add(&scene.admin(), &place);
    let verbs = [Verb::View, Verb::Read, Verb::Write, Verb::Delete, Verb::Tasks, Verb::Admin].to_vec();
    let scope = Scope { verbs, endpoints: vec!["herelab".into()], path: Some("/sub".into()), ..Scope::default() };
    let ann = scene.with_token("token for the path", "ann", Role::User, Some(scope));
    let takes = |kind: &str| body(kind, &place, "/canary-path", 0).to_string().contains("/canary-path");
    let routes: Vec<Route> =
        routes().into_iter().filter(|route| route.takes_path || route.body.as_deref().is_some_and(takes)).collect();
    assert!(routes.len() >= 11, "{}", routes.len());
    let (before, mut wrong) = (tree(&root), Vec::new());
    for Route { method, path, body: kind, takes_path } in &routes {
        // A link may be renamed, or looked at: that leads nowhere.
        let is_link = |spelled: &&str| kind.as_deref() == Some("FileRename") && !spelled.contains("secret");
        for spelled in SPELLINGS.into_iter().filter(|spelled| !is_link(spelled)) {
            scene.made += 1;
            let asked = path.replace("{name}", place.name);
            // In the query once more as a browser writes it.
            let asked = if *takes_path { format!("{asked}?path={}", spelled.replace('%', "%25")) } else { asked };
            let sent = kind.as_ref().map(|kind| body(kind, &place, spelled, scene.made).to_string());
            let (status, text) =
                scene.ask(&ann, method, &format!("/api/v1{asked}"), sent.as_deref().map(str::as_bytes));
            let mut told = text.clone();
            if path == "/listings" && status < 300 {
                let id = serde_json::from_str::<Value>(&text).unwrap()["id"].as_str().unwrap().to_owned();
                super::slow::wait_until("the directory is read", || {
                    told = scene.ask(&ann, "get", &format!("/api/v1/listings/{id}"), None).1;
                    !told.contains("\"reading\"")
                });
                told.push_str(if told.contains("\"failed\"") { "" } else { "canary" });
            }
            if told.contains("canary") || told.contains("6 B") {
                wrong.push(format!("{method} {path} by {spelled}: {status} {told}"));
            }
        }
    }
    assert_eq!(tree(&root), before);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each route takes what the token is for.
    for Route { method, path, body: kind, takes_path } in &routes {
        let asked = path.replace("{name}", place.name) + if *takes_path { "?path=/sub/file" } else { "" };
        let sent = kind.as_ref().map(|kind| body(kind, &place, "/sub/file", 0).to_string());
        let (status, text) = scene.ask(&ann, method, &format!("/api/v1{asked}"), sent.as_deref().map(str::as_bytes));
        assert!(![400, 401, 403, 404].contains(&status), "{method} {path}: {status} {text}");
    }
}
