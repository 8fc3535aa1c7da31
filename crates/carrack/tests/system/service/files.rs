//! Files at endpoints through the API, by real file workers: a directory of this host, a node, a host behind ssh.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;

use carrack_faults::can_mount;
use carrack_faults::fuse::{FaultFs, Features};
use carrack_service::client::{Call, Client, ClientError, Target};
use serde_json::{Value, json};

use crate::support::node::Node;
use crate::support::process::{signal, workers};
use crate::support::service::Service;
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, b3sum, wait_until};

/// A service, whoever runs it, and three endpoints of one tree.
pub(super) struct Scene {
    pub(super) sandbox: Sandbox,
    service: Service,
    node: Node,
    _sshd: Sshd,
    client: Client,
}

pub(super) const ENDPOINTS: [&str; 3] = ["here", "node", "far"];

impl Scene {
    pub(super) fn new() -> Self {
        let sandbox = Sandbox::new();
        let node = Node::start(&sandbox, "root", &[]);
        let sshd = Sshd::start(&sandbox);
        let service = Service::with_ssh(&sandbox, &sshd);
        let root = sandbox.path("root");
        let root = root.to_str().unwrap();
        sandbox.ok(["endpoint", "add", "here", root]);
        sandbox.ok(["endpoint", "add", "far", &format!("ssh://far{root}")]);
        super::add_node(&sandbox, "node", &node);
        let socket = sandbox.path("home/.local/state/carrack/service/service.sock");
        let client = Client::new(Target::Socket(socket), None).unwrap();
        Self { sandbox, service, node, _sshd: sshd, client }
    }

    fn call(&self, call: &Call) -> Result<Value, (u16, String)> {
        match self.client.call(call) {
            Ok(answer) if answer.body().is_empty() => Ok(Value::Null),
            // Of lines the last.
            Ok(answer) => {
                let text = String::from_utf8(answer.body().to_vec()).unwrap();
                Ok(serde_json::from_str(text.lines().last().unwrap()).unwrap())
            }
            Err(ClientError::Problem(problem)) => Err((problem.status, problem.code.name().to_owned())),
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, (u16, String)> {
        self.call(&Call::post(path).body(body).unwrap())
    }

    fn list(&self, endpoint: &str, path: &str) -> String {
        let made = self.post("/listings", &json!({ "endpoint": endpoint, "path": path })).unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    fn window(&self, id: &str) -> Result<Value, (u16, String)> {
        self.call(&Call::get(format!("/listings/{id}?hidden=true")))
    }

    /// The window of a listing that was read to its end.
    fn whole(&self, endpoint: &str, path: &str) -> Value {
        let id = self.list(endpoint, path);
        let mut window = Value::Null;
        wait_until("the directory is read", || {
            window = self.window(&id).unwrap();
            window["state"] != "reading"
        });
        window
    }

    fn workers(&self) -> Vec<u32> {
        workers(&self.sandbox.path("home"))
    }
}

fn names(window: &Value) -> Vec<&str> {
    window["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn files_of_every_kind_of_endpoint_are_listed_and_changed() {
    let scene = Scene::new();
    scene.sandbox.write("root/run/one", "content");
    symlink("loop", scene.sandbox.path("root/loop")).unwrap();
    for (number, endpoint) in ENDPOINTS.into_iter().enumerate() {
        let at = |what: &str| format!("/endpoints/{endpoint}/files/{what}");
        let window = scene.whole(endpoint, "/run");
        assert_eq!((&window["state"], names(&window)), (&json!("complete"), vec!["one"]), "{endpoint}: {window}");
        assert_eq!((&window["entries"][0]["size"], &window["bytes"]), (&json!(7), &json!(7)), "{endpoint}");
        let (made, moved) = (format!("/made {number}"), format!("/run/moved {number}"));
        scene.post(&at("mkdir"), &json!({ "path": made })).unwrap();
        let again = scene.post(&at("mkdir"), &json!({ "path": made }));
        assert_eq!(again, Err((409, "exists".into())), "{endpoint}");
        scene.post(&at("rename"), &json!({ "from": made, "to": moved })).unwrap();
        assert!(scene.sandbox.path(format!("root{moved}")).is_dir(), "{endpoint}");
        let told = scene.call(&Call::get(format!("{}?path=/run/moved%20{number}", at("properties")))).unwrap();
        assert_eq!((&told["kind"], &told["path"]), (&json!("directory"), &json!(moved)), "{endpoint}");
        fs::remove_dir(scene.sandbox.path(format!("root{moved}"))).unwrap();
        let usage = scene.post(&at("du"), &json!({ "paths": ["/run"] })).unwrap();
        assert_eq!((&usage["files"], &usage["bytes"], &usage["done"]), (&json!(1), &json!(7), &json!(true)));
        let sum = scene.post(&at("sum"), &json!({ "path": "/run/one" })).unwrap();
        assert_eq!(sum["digest"], b3sum(&scene.sandbox.path("root/run/one")), "{endpoint}: {sum}");
        // What is not there, what is no directory, and a link that leads to itself.
        for (path, code) in [("/none", Some("not-found")), ("/run/one", Some("not-a-directory")), ("/loop", None)] {
            let window = scene.whole(endpoint, path);
            assert_eq!(window["state"], "failed", "{endpoint} {path}: {window}");
            assert!(code.is_none_or(|code| window["failure"]["code"] == code), "{endpoint} {path}: {window}");
        }
    }
    let log = scene.service.log();
    for words in ["verb=\"mkdir\"", "verb=\"rename\"", "outcome=\"done\""] {
        assert!(log.contains(words) || log.contains(&words.replace('"', "")), "{words}: {log}");
    }
    assert!(!log.contains(Node::TOKEN));
}

#[test]
fn rename_replaces_nothing_unasked_where_the_file_system_cannot_promise_it() {
    if !can_mount("a FUSE file system") {
        return;
    }
    let scene = Scene::new();
    let (backing, mount) = (scene.sandbox.path("backing"), scene.sandbox.path("root/mnt"));
    fs::create_dir_all(&backing).unwrap();
    fs::create_dir_all(&mount).unwrap();
    let features = Features { no_rename_flags: true, ..Features::default() };
    let _mounted = FaultFs::mount(&backing, &mount, features).unwrap();
    for endpoint in ENDPOINTS {
        let own = backing.join(endpoint);
        fs::create_dir_all(own.join("directory/below")).unwrap();
        fs::create_dir(own.join("empty")).unwrap();
        symlink("nowhere", own.join("link")).unwrap();
        for name in ["file", "taken"] {
            fs::write(own.join(name), name).unwrap();
        }
        let rename = |from: &str, to: &str, replace: bool| {
            let at = |name: &str| format!("/mnt/{endpoint}/{name}");
            let body = json!({ "from": at(from), "to": at(to), "replace": replace });
            scene.post(&format!("/endpoints/{endpoint}/files/rename"), &body)
        };
        for from in ["file", "directory", "link"] {
            for to in ["taken", "empty"] {
                assert_eq!(rename(from, to, false), Err((409, "exists".into())), "{endpoint}: {from} to {to}");
            }
            rename(from, "free", false).unwrap();
            assert!(own.join(from).symlink_metadata().is_err(), "{endpoint}: {from}");
            rename("free", from, false).unwrap();
        }
        let read = |name: &str| fs::read_to_string(own.join(name)).unwrap();
        assert_eq!((read("file"), read("taken")), ("file".into(), "taken".into()), "{endpoint}");
        assert!(own.join("directory/below").is_dir() && own.join("link").is_symlink(), "{endpoint}");
        assert_eq!(fs::read_dir(own.join("empty")).unwrap().count(), 0, "{endpoint}");
        rename("file", "taken", true).unwrap();
        assert_eq!(read("taken"), "file", "{endpoint}");
    }
}

#[test]
fn directory_that_is_removed_or_may_not_be_read_fails_as_a_listing_and_nothing_else() {
    let scene = Scene::new();
    scene.sandbox.write("root/gone/file", "x");
    assert_eq!(names(&scene.whole("here", "/gone")), ["file"]);
    fs::remove_dir_all(scene.sandbox.path("root/gone")).unwrap();
    assert_eq!(scene.whole("here", "/gone")["failure"]["code"], "not-found");
    if !crate::support::is_root() {
        scene.sandbox.write("root/shut/file", "x");
        fs::set_permissions(scene.sandbox.path("root/shut"), PermissionsExt::from_mode(0o000)).unwrap();
        assert_eq!(scene.whole("here", "/shut")["failure"]["code"], "permission-denied");
        fs::set_permissions(scene.sandbox.path("root/shut"), PermissionsExt::from_mode(0o700)).unwrap();
    }
    // A link that leads out of the root is followed by nobody.
    scene.sandbox.write("outside/secret", "x");
    symlink("../outside", scene.sandbox.path("root/out")).unwrap();
    for endpoint in ENDPOINTS {
        assert_eq!(scene.whole(endpoint, "/out")["state"], "failed", "{endpoint}");
        let made = scene.post(&format!("/endpoints/{endpoint}/files/mkdir"), &json!({ "path": "/out/new" }));
        assert!(made.is_err(), "{endpoint}");
    }
    assert!(!scene.sandbox.path("outside/new").exists());
    assert_eq!(scene.whole("here", "/")["state"], "complete");
}

#[test]
fn file_worker_that_is_killed_takes_its_requests_with_it_and_another_takes_its_place() {
    let scene = Scene::new();
    scene.sandbox.write("root/run/one", "content");
    // Whatever the worker asks is not answered.
    signal(scene.node.child.id(), "STOP");
    let id = scene.list("node", "/run");
    assert_eq!(scene.window(&id).unwrap()["state"], "reading");
    let [worker] = scene.workers()[..] else { panic!("there is one worker: {:?}", scene.workers()) };
    wait_until("no request is under way", || !is_at_work(worker));
    let waits = std::thread::scope(|threads| {
        let waits = threads.spawn(|| scene.post("/endpoints/node/files/mkdir", &json!({ "path": "/run/new" })));
        wait_until("the request is under way", || is_at_work(worker));
        signal(worker, "KILL");
        waits.join().unwrap()
    });
    assert_eq!(waits, Err((502, "worker-lost".into())));
    wait_until("the listing is gone", || scene.window(&id) == Err((404, "not-found".into())));
    signal(scene.node.child.id(), "CONT");
    assert_eq!(names(&scene.whole("node", "/run")), ["one"]);
    assert_ne!(scene.workers(), [worker]);
}

#[test]
fn file_worker_gives_up_a_request_whose_client_goes_away() {
    let scene = Scene::new();
    scene.sandbox.write("root/run/one", "content");
    assert_eq!(names(&scene.whole("node", "/run")), ["one"]);
    let [worker] = scene.workers()[..] else { panic!("there is one worker: {:?}", scene.workers()) };
    signal(scene.node.child.id(), "STOP");
    wait_until("no request is under way", || !is_at_work(worker));
    let socket = scene.sandbox.path("home/.local/state/carrack/service/service.sock");
    let mut client = UnixStream::connect(socket).unwrap();
    let body = r#"{"path":"/run/new"}"#;
    let length = body.len();
    let head = format!(
        "POST /api/v1/endpoints/node/files/mkdir HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    client.write_all(head.as_bytes()).unwrap();
    wait_until("the request is under way", || is_at_work(worker));
    drop(client);
    wait_until("the request is given up", || !is_at_work(worker));
    assert_eq!(scene.workers(), [worker]);
    wait_until("the log says what became of it", || {
        let log = scene.service.log();
        let mut lines = log.lines().filter(|line| line.contains("/run/new") && line.contains("mkdir"));
        lines.next().is_some_and(|line| line.contains("outcome") && !line.contains("done"))
    });
    // What the node has taken already it may carry out.
    signal(scene.node.child.id(), "CONT");
    assert!(names(&scene.whole("node", "/run")).contains(&"one"));
}

/// Whether a file worker carries out a request.
fn is_at_work(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).any(|name| name.trim() == "request")
}

#[test]
fn node_that_is_killed_in_mid_listing_fails_the_listing_and_the_next_one_works() {
    let mut scene = Scene::new();
    scene.sandbox.write("root/run/one", "content");
    assert_eq!(names(&scene.whole("node", "/run")), ["one"]);
    signal(scene.node.child.id(), "STOP");
    let id = scene.list("node", "/run");
    assert_eq!(scene.window(&id).unwrap()["state"], "reading");
    scene.node.kill();
    wait_until("the listing has failed", || scene.window(&id).unwrap()["state"] == "failed");
    let failed = scene.window(&id).unwrap();
    assert!(failed["failure"]["hints"].as_array().is_some_and(|hints| !hints.is_empty()), "{failed}");
    // Where the node is, its caller may not know.
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.starts_with("@node: ") && !message.contains("127.0.0.1"), "{message}");
    let made = scene.post("/endpoints/node/files/mkdir", &json!({ "path": "/run/new" }));
    assert_eq!(made, Err((502, "unreachable".into())));
    scene.node.restart(&scene.sandbox);
    assert_eq!(names(&scene.whole("node", "/run")), ["one"]);
}

#[test]
fn file_workers_end_with_the_service_however_it_ends() {
    let mut scene = Scene::new();
    for endpoint in ENDPOINTS {
        scene.whole(endpoint, "/");
    }
    assert_eq!(scene.workers().len(), 3);
    signal(scene.node.child.id(), "STOP");
    let id = scene.list("node", "/");
    assert!(scene.window(&id).is_ok());
    scene.service.kill();
    wait_until("no worker is left", || scene.workers().is_empty());
    signal(scene.node.child.id(), "CONT");
}

#[test]
fn file_workers_end_when_the_token_that_they_serve_is_revoked() {
    let scene = Scene::new();
    let made = scene.post("/tokens", &json!({ "label": "test" })).unwrap();
    let (token, id) = (made["token"].as_str().unwrap(), made["row"]["id"].as_str().unwrap());
    let header = format!("Bearer {token}");
    let list = Call::post("/listings").body(&json!({ "endpoint": "here", "path": "/" })).unwrap();
    scene.call(&list.header("authorization", header)).unwrap();
    assert_eq!(scene.workers().len(), 1);
    scene.call(&Call::delete(format!("/tokens/{id}"))).unwrap();
    wait_until("no worker is left", || scene.workers().is_empty());
}
