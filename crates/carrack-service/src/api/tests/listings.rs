//! Routes of listings, and those that read all of something, over workers that are threads.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::files::{Files, ask, code, post};
use crate::client::{Call, Client};
use crate::model::{Problem, Role, Scope, Verb, text_of};

/// A listing that was read to its end.
fn list(client: &Client, path: &str) -> Value {
    let made = post(client, "/listings", &json!({ "endpoint": "here", "path": path })).unwrap();
    let id = made["id"].as_str().unwrap();
    loop {
        let window = window(client, id, "limit=0").unwrap();
        if window["state"] != "reading" {
            return ask(client, &Call::get(format!("/listings/{id}?limit=0"))).map(|_| made).unwrap();
        }
    }
}

fn window(client: &Client, id: &str, query: &str) -> Result<Value, Problem> {
    ask(client, &Call::get(format!("/listings/{id}?{query}")))
}

fn id(listing: &Value) -> &str {
    listing["id"].as_str().unwrap()
}

fn names(window: &Value) -> Vec<&str> {
    window["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// A body that is made line by line.
fn lines(client: &Client, call: &Call) -> Vec<Value> {
    let text = client.call(call).unwrap();
    let text = String::from_utf8(text.body().to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn listing_shows_windows_sorted_and_filtered() {
    let files = Files::start();
    let bob = files.rig.user("bob", Role::User);
    for number in 0..300 {
        std::fs::write(files.root.join(format!("run {number}")), vec![b'x'; number]).unwrap();
    }
    std::fs::create_dir(files.root.join("zz")).unwrap();
    std::fs::write(files.root.join(".hidden"), "").unwrap();
    symlink("/etc/passwd", files.root.join("link")).unwrap();
    let listing = list(&bob, "/");
    assert_eq!((&listing["endpoint"], &listing["path"]), (&json!("here"), &json!("/")));
    let show = |query: &str| window(&bob, id(&listing), query).unwrap();
    let first = show("");
    assert_eq!((&first["state"], &first["count"], &first["total"]), (&json!("complete"), &json!(303), &json!(302)));
    assert_eq!((first["entries"].as_array().unwrap().len(), &first["offset"]), (200, &json!(0)));
    assert_eq!(names(&first)[..4], ["zz", "link", "run 0", "run 1"]);
    assert_eq!(first["entries"][1]["link_target"], "/etc/passwd");
    assert!(first.get("found").is_none() && first.get("failure").is_none());
    assert_eq!(first["bytes"], json!((0..300).sum::<usize>()));
    assert_eq!(names(&show("hidden=true&limit=2")), ["zz", ".hidden"]);
    assert_eq!(names(&show("sort=-size&filter=RUN&limit=2")), ["run 299", "run 298"]);
    let pattern = show("filter=run%20%3F9&limit=1000");
    assert_eq!((&pattern["total"], names(&pattern)[0]), (&json!(9), "run 19"));
    assert_eq!(names(&show("offset=300&limit=5")), ["run 298", "run 299"]);
    assert_eq!(names(&show("offset=400&limit=5")), Vec::<&str>::new());
    let around = show("around=run%20150&limit=30");
    assert_eq!((&around["found"], &around["offset"]), (&json!(152), &json!(142)));
    assert_eq!(names(&around)[10], "run 150");
    assert_eq!(show("around=RUN%2029&limit=3")["found"], json!(31));
    let none = show("around=nothing&limit=3");
    assert!(none["found"].is_null() && none.get("found").is_some());
    for query in ["limit=1001", "sort=colour", "sort=", "offset=-1", "what=1"] {
        assert_eq!(code(window(&bob, id(&listing), query)), (400, "malformed"), "{query}");
    }
    let all = lines(&bob, &Call::get(format!("/listings/{}/names?hidden=true", id(&listing))));
    assert_eq!((all.len(), &all[0], &all[1], &all[302]), (303, &json!("zz/"), &json!(".hidden"), &json!("run 299")));
    let some = lines(&bob, &Call::get(format!("/listings/{}/names?filter=run%201*", id(&listing))));
    assert_eq!(some.len(), 111);
    assert_eq!(code(ask(&bob, &Call::delete(format!("/listings/{}", id(&listing))))), (200, ""));
    assert_eq!(code(window(&bob, id(&listing), "")), (404, "not-found"));
}

#[test]
fn listing_shows_names_of_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let files = Files::start();
    let local = files.rig.local();
    let odd = [&b"<b>bold<b>&amp;\""[..], b"a\nb", b"\xff\xfe", "\u{202e}gpj.exe".as_bytes(), b"100%", b"\x1b[2J"];
    for name in odd {
        std::fs::write(files.root.join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let listing = list(&local, "/");
    let shown = window(&local, id(&listing), "").unwrap();
    let mut expected: Vec<String> = odd.iter().map(|name| text_of(name)).collect();
    let mut told: Vec<String> = names(&shown).into_iter().map(str::to_owned).collect();
    expected.sort();
    told.sort();
    assert_eq!(told, expected);
    // What is told leads to the file, and is found as it is told.
    for name in told {
        let query: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let properties = Call::get(format!("/endpoints/here/files/properties?path=/{query}"));
        assert_eq!(ask(&local, &properties).unwrap()["name"], json!(name));
        let around = window(&local, id(&listing), &format!("around={query}&limit=6")).unwrap();
        let place = usize::try_from(around["found"].as_u64().unwrap() - around["offset"].as_u64().unwrap()).unwrap();
        assert_eq!(names(&around)[place], name);
    }
}

#[test]
fn listing_of_what_is_no_directory_has_failed() {
    let files = Files::start();
    let local = files.rig.local();
    std::fs::write(files.root.join("file"), "x").unwrap();
    std::fs::create_dir(files.root.join("full")).unwrap();
    std::fs::write(files.root.join("full/in"), "x").unwrap();
    symlink("full", files.root.join("leads")).unwrap();
    symlink("loop", files.root.join("loop")).unwrap();
    symlink("file", files.root.join("to-file")).unwrap();
    symlink("/etc", files.root.join("out")).unwrap();
    for (path, failure) in [("/none", "not-found"), ("/file", "not-a-directory"), ("/to-file", "not-a-directory")] {
        let listing = list(&local, path);
        let shown = window(&local, id(&listing), "").unwrap();
        assert_eq!((&shown["state"], &shown["failure"]["code"]), (&json!("failed"), &json!(failure)), "{path}");
        assert_eq!(shown["entries"], json!([]), "{path}");
    }
    for path in ["/loop", "/out"] {
        let listing = list(&local, path);
        assert_eq!(window(&local, id(&listing), "").unwrap()["state"], "failed", "{path}");
    }
    let listing = list(&local, "/leads");
    assert_eq!(names(&window(&local, id(&listing), "").unwrap()), ["in"]);
}

#[test]
fn listing_is_its_callers_own() {
    let files = Files::start();
    let (bob, eve) = (files.rig.user("bob", Role::User), files.rig.user("eve", Role::User));
    let listing = list(&bob, "/");
    for client in [&eve, &files.rig.local()] {
        assert_eq!(code(window(client, id(&listing), "")), (404, "not-found"));
        assert_eq!(code(ask(client, &Call::get(format!("/listings/{}/names", id(&listing))))), (404, "not-found"));
        assert_eq!(code(ask(client, &Call::delete(format!("/listings/{}", id(&listing))))), (404, "not-found"));
    }
    // Another token of the same user may be for less.
    let scope = Scope {
        verbs: vec![Verb::Read],
        endpoints: vec!["here".into()],
        path: Some("/run".into()),
        ..Scope::default()
    };
    let narrow = files.rig.with_token(&files.rig.token("bob", Some(scope)).token);
    assert_eq!(code(window(&narrow, id(&listing), "")), (404, "not-found"));
    let refused = post(&narrow, "/listings", &json!({ "endpoint": "here", "path": "/" }));
    assert_eq!(code(refused), (403, "forbidden"));
    assert_eq!(code(post(&eve, "/listings", &json!({ "endpoint": "here", "path": "/" }))), (404, "not-found"));
    assert_eq!(code(window(&bob, id(&listing), "")), (200, ""));
    // At most eight: the one that was not asked for the longest goes.
    let more: Vec<Value> = (0..8).map(|_| list(&bob, "/")).collect();
    assert_eq!(code(window(&bob, id(&listing), "")), (404, "not-found"));
    assert_eq!(code(window(&bob, id(&more[0]), "")), (200, ""));
    // What the caller may not see any more is not shown.
    let update = Call::patch("/endpoints/here").body(&json!({ "users": [] })).unwrap();
    files.rig.local().call(&update).unwrap();
    assert_eq!(code(window(&bob, id(&more[0]), "")), (404, "not-found"));
}

#[test]
fn usage_of_a_tree_counts_what_du_counts() {
    let files = Files::start();
    let local = files.rig.local();
    std::fs::create_dir_all(files.root.join("tree/below")).unwrap();
    std::fs::write(files.root.join("tree/below/one"), vec![1; 5000]).unwrap();
    std::fs::hard_link(files.root.join("tree/below/one"), files.root.join("tree/two")).unwrap();
    std::fs::write(files.root.join("alone"), "123").unwrap();
    let du = |paths: &Value| {
        let call = Call::post("/endpoints/here/files/du").body(&json!({ "paths": paths })).unwrap();
        lines(&local, &call).pop().unwrap()
    };
    let told = du(&json!(["/tree", "/alone"]));
    assert_eq!((&told["files"], &told["directories"], &told["bytes"]), (&json!(2), &json!(2), &json!(5003)));
    assert_eq!((&told["done"], &told["failed"]), (&json!(true), &json!(0)));
    assert!(told["allocated"].as_u64().unwrap() >= 5003, "{told}");
    let missing = du(&json!(["/none", "/alone"]));
    assert_eq!((&missing["files"], &missing["failed"]), (&json!(1), &json!(1)));
    assert_eq!(missing["failures"][0]["path"], "/none");
    let refused = post(&local, "/endpoints/here/files/du", &json!({ "paths": [] }));
    assert_eq!(code(refused), (400, "malformed"));
}

#[test]
fn sum_of_a_file_is_its_digest() {
    let files = Files::start();
    let local = files.rig.local();
    std::fs::write(files.root.join("file"), "content").unwrap();
    let sum = |path: &str| {
        let call = Call::post("/endpoints/here/files/sum").body(&json!({ "path": path })).unwrap();
        lines(&local, &call).pop().unwrap()
    };
    let told = sum("/file");
    assert_eq!(told["digest"], blake3::hash(b"content").to_hex().to_string());
    assert_eq!((&told["size"], &told["done"]), (&json!(7), &json!(true)));
    let told = sum("/none");
    assert_eq!((&told["done"], &told["failure"]["code"]), (&json!(true), &json!("not-found")));
    assert_eq!(sum("/")["failure"]["code"], "is-a-directory");
    let other = post(&local, "/endpoints/here/files/sum", &json!({ "path": "/file", "digest": "md5" }));
    assert_eq!(code(other), (400, "malformed"));
}
