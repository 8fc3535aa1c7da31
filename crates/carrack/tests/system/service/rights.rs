//! Rights that change while things are open: each change against each thing. What may go on goes on; what may not ends,
//! within five seconds where nothing else keeps the processors busy (`CARRACK_RIGHTS_SECONDS=5`).

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use carrack_service::client::{Call, Client, Target};
use carrack_service::clock::{Clock, SystemClock};
use carrack_service::model::{MadeGrant, MadeToken, Secret};
use serde_json::{Value, json};

use crate::support::service::Service;
use crate::support::{Sandbox, tree, wait_until};

const BYTES: usize = 48 << 20;
/// What may go on is looked at after this time, in which all rights have been looked at again.
const GOES_ON_FOR: Duration = Duration::from_secs(3);

/// What may not go on has ended after this time.
fn ends_within() -> Duration {
    let seconds = std::env::var("CARRACK_RIGHTS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(45))
}

/// Things that are open when a right changes.
const OPEN: [&str; 9] = ["running", "queued", "paused", "timer", "upload", "listing", "download", "archive", "events"];

/// A change, as an admin makes it, and what does not outlive it. A grant is shown to the node beside the service.
struct Change {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
    ends: &'static [&'static str],
}

const EVERYTHING: &[&str] =
    &["running", "queued", "paused", "timer", "upload", "listing", "download", "archive", "events", "grant"];
/// What stands on an endpoint. A grant for it goes on until its own end.
const AT_ENDPOINT: &[&str] = &["running", "queued", "paused", "timer", "upload", "listing", "download", "archive"];

const CHANGES: [Change; 9] = [
    Change {
        name: "the user becomes a viewer",
        method: "patch",
        path: "/users/ada",
        body: Some(r#"{"role": "viewer"}"#),
        // A viewer may see events, but who follows them asks anew: the role is another one.
        ends: EVERYTHING,
    },
    Change {
        name: "the user is disabled",
        method: "patch",
        path: "/users/ada",
        body: Some(r#"{"enabled": false}"#),
        ends: EVERYTHING,
    },
    Change { name: "the token is revoked", method: "delete", path: "/tokens/TOKEN", body: None, ends: EVERYTHING },
    Change {
        name: "the endpoint is shared no more",
        method: "patch",
        path: "/endpoints/here",
        body: Some(r#"{"users": []}"#),
        ends: AT_ENDPOINT,
    },
    Change {
        name: "the endpoint is closed, for its owner is no admin",
        method: "patch",
        path: "/endpoints/here",
        body: Some(r#"{"owner": "bob"}"#),
        ends: AT_ENDPOINT,
    },
    Change {
        name: "the endpoint is for reading only",
        method: "patch",
        path: "/endpoints/here",
        body: Some(r#"{"read_only": true}"#),
        // Who reads asks anew, too: by which rights the worker was started is not told apart.
        ends: AT_ENDPOINT,
    },
    Change {
        name: "the endpoint is given to another admin",
        method: "patch",
        path: "/endpoints/here",
        body: Some(r#"{"owner": "root"}"#),
        ends: &["listing", "download", "archive"],
    },
    Change {
        name: "somebody else may use the endpoint, too",
        method: "patch",
        path: "/endpoints/here",
        body: Some(r#"{"users": ["ada", "bob"]}"#),
        ends: &[],
    },
    Change {
        name: "the endpoint has other limits and another description",
        method: "patch",
        path: "/endpoints/here",
        body: Some(r#"{"description": "other", "limits": {"transfers": 1, "streams": 2}}"#),
        ends: &[],
    },
];

/// An answer that is read slowly: its first bytes, and then nothing until it is told to.
struct Slow {
    socket: UnixStream,
    read: usize,
}

impl Slow {
    fn begin(scene: &Scene, path: &str) -> Self {
        let mut socket = UnixStream::connect(&scene.socket).unwrap();
        let token = scene.token.token.reveal();
        let head = format!(
            "GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut first = [0; 64];
        socket.read_exact(&mut first).unwrap();
        assert!(first.starts_with(b"HTTP/1.1 200"), "{path}: {}", String::from_utf8_lossy(&first));
        Self { socket, read: first.len() }
    }

    /// Reads for as long as something comes, or to the end. True: it has ended.
    fn ends_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut buffer = vec![0; 1 << 16];
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.socket.set_read_timeout(Some(left)).unwrap();
            match self.socket.read(&mut buffer) {
                Ok(0) => return true,
                Ok(read) => self.read += read,
                Err(error)
                    if [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut].contains(&error.kind()) => {}
                Err(_) => return true,
            }
        }
        false
    }
}

/// A service, and what ada has open there.
struct Scene {
    sandbox: Sandbox,
    _service: Service,
    socket: PathBuf,
    admin: Client,
    ada: Client,
    token: MadeToken,
    tasks: [String; 3],
    timer: String,
    upload: String,
    listing: String,
    grant: (String, String),
    streams: [Option<Slow>; 3],
}

impl Scene {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let service = Service::start(&sandbox, &[]);
        sandbox.write("root/large", tree::bytes(BYTES, 5));
        let socket: PathBuf = service.told("service socket ").into();
        let admin = Client::new(Target::Socket(socket.clone()), None).unwrap();
        for (name, role) in [("ada", "user"), ("bob", "user"), ("root", "admin")] {
            post(&admin, "/users", &json!({ "name": name, "role": role }));
        }
        let here = json!({
            "name": "here", "location": { "kind": "local", "root": sandbox.path("root") },
            "users": ["ada"], "uploads": true, "limits": { "transfers": 1 },
        });
        post(&admin, "/endpoints", &here);
        let token: MadeToken =
            serde_json::from_value(post(&admin, "/tokens", &json!({ "user": "ada", "label": "test" }))).unwrap();
        let ada = Client::new(Target::Socket(socket.clone()), Some(Secret::new(token.token.reveal()))).unwrap();
        let copy = |to: &str| {
            let pairs = json!([{ "source": "@here:/large", "destination": format!("@here:/{to}") }]);
            json!({ "pairs": pairs, "options": { "rate_limit": 1_000_000 } })
        };
        let id = |made: Value| made["id"].as_str().unwrap().to_owned();
        let tasks = ["running", "queued", "paused"].map(|name| id(post(&ada, "/tasks", &copy(name))));
        post(&ada, &format!("/tasks/{}/pause", tasks[2]), &json!({}));
        let start = SystemClock::new().now().after(Duration::from_secs(6));
        let timer = id(post(&ada, "/timers", &json!({ "schedule": { "start": start }, "task": copy("timed") })));
        let block = ["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"; 2];
        let upload = json!({ "path": "/up", "size": 8 << 20, "block_bytes": 4 << 20, "blocks": block });
        let upload = id(post(&ada, "/endpoints/here/uploads", &upload));
        let listing = id(post(&ada, "/listings", &json!({ "endpoint": "here", "path": "/" })));
        let grant = post(&ada, "/endpoints/here/grants", &json!({ "verbs": ["read"], "path": "/" }));
        let grant: MadeGrant = serde_json::from_value(grant).unwrap();
        let secret = sandbox.write("grant", grant.token.as_ref().unwrap().reveal());
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        let mut scene = Self {
            sandbox,
            _service: service,
            socket,
            admin,
            ada,
            token,
            tasks,
            timer,
            upload,
            listing,
            grant: (grant.location, format!("--token-file={}", secret.display())),
            streams: [None, None, None],
        };
        wait_until("the task runs", || scene.task(0)["progress"]["bytes_moved"].as_u64().unwrap_or(0) > 0);
        let paths =
            ["/endpoints/here/files/content?path=/large", "/endpoints/here/files/archive?path=/large", "/events"];
        scene.streams = paths.map(|path| Some(Slow::begin(&scene, path)));
        assert_eq!(scene.listed(), 200);
        assert_eq!(scene.sandbox.run(["ls", &scene.grant.0, &scene.grant.1]).code, 0);
        scene
    }

    fn task(&self, number: usize) -> Value {
        self.admin.get(&format!("/tasks/{}", self.tasks[number])).unwrap()
    }

    fn state(&self, number: usize) -> String {
        self.task(number)["state"].as_str().unwrap().to_owned()
    }

    fn listed(&self) -> u16 {
        status(&self.ada, &Call::get(format!("/listings/{}", self.listing)))
    }

    fn timer_has_run(&self) -> bool {
        let timer: Value = self.admin.get(&format!("/timers/{}", self.timer)).unwrap();
        timer["next_run"].is_null() || timer["state"] != "waiting"
    }

    /// Whether a thing has ended, or does not go on.
    fn is_over(&mut self, thing: &str) -> bool {
        let has_ended = |state: &str| ["FAILED", "CANCELLED"].contains(&state);
        match thing {
            "running" => has_ended(&self.state(0)),
            "queued" => has_ended(&self.state(1)),
            "paused" => {
                // It asks for nothing until somebody has it go on.
                let _ = self.admin.call(&Call::post(format!("/tasks/{}/resume", self.tasks[2])));
                has_ended(&self.state(2))
            }
            "timer" => {
                let of_it: Value = self.admin.get(&format!("/tasks?timer={}", self.timer)).unwrap();
                let all = of_it["items"].as_array().unwrap();
                self.timer_has_run() && all.iter().all(|task| has_ended(task["state"].as_str().unwrap()))
            }
            "upload" => {
                let path = format!("/uploads/{}/blocks/0", self.upload);
                // What is let in is told that this is not the block that was promised.
                [401, 403, 404].contains(&status(&self.ada, &Call::put(path).bytes(vec![0; 4 << 20])))
            }
            "listing" => self.listed() != 200,
            "download" | "archive" => {
                let stream = self.streams[usize::from(thing == "archive")].as_mut().unwrap();
                stream.ends_within(Duration::from_secs(20)) && stream.read < BYTES
            }
            "events" => self.streams[2].as_mut().unwrap().ends_within(Duration::from_millis(200)),
            "grant" => self.sandbox.run(["ls", &self.grant.0, &self.grant.1]).code != 0,
            other => panic!("{other}"),
        }
    }
}

fn post(client: &Client, path: &str, body: &Value) -> Value {
    let answer = client.call(&Call::post(path).body(body).unwrap()).unwrap_or_else(|error| panic!("{path}: {error}"));
    if answer.body().is_empty() { Value::Null } else { answer.json().unwrap() }
}

fn status(client: &Client, call: &Call) -> u16 {
    match client.call(call) {
        Ok(answer) => answer.status,
        Err(carrack_service::client::ClientError::Problem(problem)) => problem.status,
        Err(error) => panic!("{error}"),
    }
}

fn cross(change: &Change) -> Vec<String> {
    let mut scene = Scene::new();
    let path = change.path.replace("TOKEN", &scene.token.row.id);
    let call = match change.method {
        "patch" => Call::patch(path),
        _ => Call::delete(path),
    };
    let body = change.body.map(|body| serde_json::from_str::<Value>(body).unwrap());
    let call = body.into_iter().fold(call, |call, body| call.body(&body).unwrap());
    scene.admin.call(&call).unwrap_or_else(|error| panic!("{}: {error}", change.name));
    let (changed, mut wrong) = (Instant::now(), Vec::new());
    let (ends, stays): (Vec<&str>, Vec<&str>) =
        OPEN.into_iter().chain(["grant"]).partition(|thing| change.ends.contains(thing));
    // Tasks first: what is asked of the others takes its time.
    for thing in ends {
        let within = ends_within() + if thing == "timer" { Duration::from_secs(6) } else { Duration::ZERO };
        let mut is_over = scene.is_over(thing);
        while !is_over && changed.elapsed() < within {
            std::thread::sleep(Duration::from_millis(50));
            is_over = scene.is_over(thing);
        }
        if !is_over {
            wrong.push(format!("{}: {thing} goes on", change.name));
        }
    }
    // That something has not ended shows only after a while.
    std::thread::sleep(GOES_ON_FOR.saturating_sub(changed.elapsed()));
    for thing in stays {
        if thing == "timer" {
            wait_until("the timer has run", || scene.timer_has_run());
        }
        if scene.is_over(thing) {
            wrong.push(format!("{}: {thing} has ended: {}", change.name, scene.task(0)));
        }
    }
    assert!(!fs::exists(scene.sandbox.path("root/timed")).unwrap() || change.ends.is_empty(), "{}", change.name);
    wrong
}

#[test]
fn change_of_rights_ends_what_may_not_go_on_and_nothing_else() {
    let mut wrong = Vec::new();
    for changes in CHANGES.chunks(3) {
        std::thread::scope(|scope| {
            let crossed: Vec<_> = changes.iter().map(|change| scope.spawn(move || cross(change))).collect();
            wrong.extend(crossed.into_iter().flat_map(|crossed| crossed.join().unwrap()));
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
