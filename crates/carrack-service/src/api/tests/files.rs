//! Routes of files, over workers that are threads, on directories of this host.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::rig::{Rig, add_endpoint, endpoint};
use crate::client::{Call, Client, ClientError};
use crate::model::{EndpointLocation, NewEndpoint, Problem, Role, Scope, Verb, text_of};

/// A service with an endpoint `here` of a directory, which `bob` may use.
pub struct Files {
    pub rig: Rig,
    pub root: PathBuf,
}

impl Files {
    pub fn start() -> Self {
        let rig = Rig::start();
        let root = rig.directory.path().join("files");
        std::fs::create_dir(&root).unwrap();
        let files = Self { rig, root };
        files.add("here", false);
        files
    }

    fn add(&self, name: &str, read_only: bool) {
        let location = EndpointLocation::Local { root: self.root.to_str().unwrap().to_owned() };
        let new = NewEndpoint { location, read_only, ..endpoint(name, &["bob"]) };
        add_endpoint(&self.rig.local(), &new).unwrap();
    }
}

pub fn ask(client: &Client, call: &Call) -> Result<Value, Problem> {
    match client.call(call) {
        Ok(answer) if answer.status == 204 => Ok(Value::Null),
        Ok(answer) => Ok(answer.json().unwrap()),
        Err(ClientError::Problem(problem)) => Err(*problem),
        Err(error) => panic!("{error}"),
    }
}

pub fn post(client: &Client, path: &str, body: &Value) -> Result<Value, Problem> {
    ask(client, &Call::post(path).body(body).unwrap())
}

pub fn code(result: Result<Value, Problem>) -> (u16, &'static str) {
    result.map_or_else(|problem| (problem.status, problem.code.name()), |_| (200, ""))
}

#[test]
fn files_are_made_renamed_and_described() {
    let files = Files::start();
    let bob = files.rig.user("bob", Role::User);
    let mkdir = |path: &str| post(&bob, "/endpoints/here/files/mkdir", &json!({ "path": path }));
    mkdir("/run").unwrap();
    assert_eq!(code(mkdir("/run")), (409, "exists"));
    assert_eq!(code(mkdir("/none/below")), (404, "not-found"));
    post(&bob, "/endpoints/here/files/mkdir", &json!({ "path": "/a/b/c", "parents": true })).unwrap();
    assert!(files.root.join("a/b/c").is_dir());
    std::fs::write(files.root.join("run/one"), "12345").unwrap();
    std::fs::write(files.root.join("run/two"), "2").unwrap();
    let rename = |from: &str, to: &str, replace: bool| {
        post(&bob, "/endpoints/here/files/rename", &json!({ "from": from, "to": to, "replace": replace }))
    };
    assert_eq!(code(rename("/run/one", "/run/two", false)), (409, "exists"));
    // A directory is never replaced, and takes nothing into itself.
    assert_eq!(code(rename("/run/one", "/a", true)), (409, "exists"));
    rename("/run/one", "/run/two", true).unwrap();
    rename("/run/two", "/run/three", false).unwrap();
    let told = ask(&bob, &Call::get("/endpoints/here/files/properties?path=/run/three")).unwrap();
    assert_eq!((&told["name"], &told["kind"], &told["size"]), (&json!("three"), &json!("file"), &json!(5)));
    assert_eq!((&told["path"], &told["error"]), (&json!("/run/three"), &Value::Null));
    let root = ask(&bob, &Call::get("/endpoints/here/files/properties?path=/")).unwrap();
    assert_eq!((&root["name"], &root["kind"]), (&json!(""), &json!("directory")));
    let none = ask(&bob, &Call::get("/endpoints/here/files/properties?path=/run/one"));
    assert_eq!(code(none), (404, "not-found"));
}

#[test]
fn files_have_names_of_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let files = Files::start();
    let local = files.rig.local();
    for name in [
        &b"<img src=x onerror=alert(1)>&\"'"[..],
        b"line\nbreak",
        b"\xff\xfe not text",
        "\u{202e}gpj.exe".as_bytes(),
        b"100%",
        b"a%2Fb",
        b"%2E%2E",
        b"%00",
        b"%252e",
        b"-rf",
        b" ",
    ] {
        let path = format!("/{}", text_of(name));
        // What of it stands for something in a query is escaped once more.
        let query: String = path.bytes().map(|byte| format!("%{byte:02X}")).collect();
        post(&local, "/endpoints/here/files/mkdir", &json!({ "path": path })).unwrap();
        assert!(files.root.join(OsStr::from_bytes(name)).is_dir(), "{path}");
        let told = ask(&local, &Call::get(format!("/endpoints/here/files/properties?path={query}"))).unwrap();
        assert_eq!((&told["name"], &told["path"]), (&json!(text_of(name)), &json!(path)));
    }
}

#[test]
fn files_take_a_right_to_the_verb_the_endpoint_and_the_path() {
    let files = Files::start();
    files.add("frozen", true);
    std::fs::create_dir_all(files.root.join("run")).unwrap();
    let (bob, eve) = (files.rig.user("bob", Role::User), files.rig.user("eve", Role::User));
    let viewer = files.rig.user("vi", Role::Viewer);
    let scope = |verbs: &[Verb]| Scope {
        verbs: verbs.to_vec(),
        endpoints: vec!["here".into()],
        path: Some("/run".into()),
        ..Scope::default()
    };
    let token = |verbs: &[Verb]| files.rig.with_token(&files.rig.token("bob", Some(scope(verbs))).token);
    let (reads, writes) = (token(&[Verb::Read]), token(&[Verb::Write]));
    let mkdir = |client: &Client, endpoint: &str, path: &str| {
        code(post(client, &format!("/endpoints/{endpoint}/files/mkdir"), &json!({ "path": path })))
    };
    assert_eq!(mkdir(&eve, "here", "/a"), (404, "not-found"));
    assert_eq!(mkdir(&eve, "none", "/a"), (404, "not-found"));
    assert_eq!(mkdir(&viewer, "here", "/a"), (403, "forbidden"));
    assert_eq!(mkdir(&bob, "frozen", "/a"), (403, "forbidden"));
    assert_eq!(mkdir(&reads, "here", "/run/a"), (403, "forbidden"));
    assert_eq!(mkdir(&writes, "here", "/runner"), (403, "forbidden"));
    assert_eq!(mkdir(&writes, "here", "/run/a"), (200, ""));
    // Decoded once, this is a name below /run, which is not there; nothing outside is reached.
    std::fs::create_dir_all(files.root.join("out")).unwrap();
    for (path, expected) in [("/run/%252e%252e/out/x", 404), ("/run/%252e%252e%252Fout", 200), ("/%2572un/x", 403)] {
        assert_eq!(mkdir(&writes, "here", path).0, expected, "{path}");
    }
    assert!(files.root.join("run/%2e%2e%2Fout").is_dir());
    assert_eq!(std::fs::read_dir(files.root.join("out")).unwrap().count(), 0);
    for path in ["/run/../x", "/run/%2e%2e/x", "/run//x", "run", "", "/run/a%2fb", "/run/%00", "/run/%2e%2e%2fout"] {
        assert_eq!(mkdir(&writes, "here", path), (400, "malformed"), "{path}");
        assert_eq!(mkdir(&bob, "here", path), (400, "malformed"), "{path}");
    }
    let rename = |client: &Client, from: &str, to: &str, replace: bool| {
        code(post(client, "/endpoints/here/files/rename", &json!({ "from": from, "to": to, "replace": replace })))
    };
    assert_eq!(rename(&writes, "/run/a", "/b", false), (403, "forbidden"));
    assert_eq!(rename(&writes, "/b", "/run/a", false), (403, "forbidden"));
    assert_eq!(rename(&writes, "/run/a", "/run/b", true), (403, "forbidden"), "to replace is to delete");
    assert_eq!(rename(&writes, "/run/a", "/run/b", false), (200, ""));
    assert_eq!(code(ask(&writes, &Call::get("/endpoints/here/files/properties?path=/run"))), (403, "forbidden"));
    assert_eq!(code(ask(&reads, &Call::get("/endpoints/here/files/properties?path=/run"))), (200, ""));
}

#[test]
fn file_workers_end_with_the_right_that_they_stand_on() {
    let files = Files::start();
    let made = files.rig.token("local", None);
    let client = files.rig.with_token(&made.token);
    let look = |client: &Client| ask(client, &Call::get("/endpoints/here/files/properties?path=/")).map(drop);
    let count = || files.rig.api().files.count();
    look(&client).unwrap();
    look(&files.rig.local()).unwrap();
    assert_eq!(count(), 2);
    files.rig.local().call(&Call::delete(format!("/tokens/{}", made.row.id))).unwrap();
    assert_eq!(count(), 1);
    // Whatever the endpoint is now, an earlier worker does not serve it.
    for (update, left) in [(json!({ "description": "other" }), 1), (json!({ "read_only": true }), 0)] {
        files.rig.local().call(&Call::patch("/endpoints/here").body(&update).unwrap()).unwrap();
        assert_eq!(count(), left, "{update}");
    }
    let bob = files.rig.user("bob", Role::User);
    look(&bob).unwrap();
    assert_eq!(count(), 1);
    let made = files.rig.token("bob", None);
    look(&files.rig.with_token(&made.token)).unwrap();
    files.rig.local().call(&Call::delete("/users/bob/sessions")).unwrap();
    assert_eq!(count(), 0);
    look(&bob).unwrap();
    files.rig.local().call(&Call::patch("/users/bob").body(&json!({ "enabled": false })).unwrap()).unwrap();
    assert_eq!(count(), 0);
    look(&files.rig.local()).unwrap();
    files.rig.local().call(&Call::delete("/endpoints/here")).unwrap();
    assert_eq!(count(), 0);
}
