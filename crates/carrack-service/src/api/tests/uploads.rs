//! Uploads: blocks that come and go on, and files that are published whole or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::files::{Files, ask, code, post};
use crate::client::{Call, Client};
use crate::clock::Moment;
use crate::identity::digest::sha256;
use crate::model::{Problem, Role};

const BLOCK: usize = 4 << 20;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 251) as u8 ^ (index >> 13) as u8).collect()
}

/// What the page sends for a file.
fn wanted(path: &str, bytes: &[u8], existing: &str) -> Value {
    let blocks: Vec<String> = bytes.chunks(BLOCK).map(|block| HEXLOWER.encode(&sha256(block))).collect();
    json!({
        "path": path, "size": bytes.len(), "block_bytes": BLOCK, "blocks": blocks,
        "modified": "2026-11-20T08:00:00.125Z", "existing": existing,
    })
}

/// A service with an endpoint `here` that takes uploads, and somebody who may use it.
struct Uploads {
    files: Files,
    bob: Client,
}

impl Uploads {
    fn start() -> Self {
        let files = Files::start();
        let bob = files.rig.user("bob", Role::User);
        let uploads = Self { files, bob };
        uploads.edit(json!({ "uploads": true }));
        uploads
    }

    fn edit(&self, change: Value) {
        self.files.rig.local().call(&Call::patch("/endpoints/here").body(&change).unwrap()).unwrap();
    }

    fn begin(&self, wanted: &Value) -> Result<Value, Problem> {
        post(&self.bob, "/endpoints/here/uploads", wanted)
    }

    /// The status of the answer, too.
    fn begin_again(&self, wanted: &Value) -> (u16, Value) {
        let answer = self.bob.call(&Call::post("/endpoints/here/uploads").body(wanted).unwrap()).unwrap();
        (answer.status, answer.json().unwrap())
    }

    fn put(&self, id: &str, block: usize, bytes: &[u8]) -> Result<Value, Problem> {
        put(&self.bob, id, block, bytes)
    }

    /// Sends all blocks of a file.
    fn send(&self, wanted: &Value, bytes: &[u8]) -> String {
        let id = id_of(&self.begin(wanted).unwrap());
        for (block, part) in bytes.chunks(BLOCK).enumerate() {
            self.put(&id, block, part).unwrap();
        }
        id
    }

    /// Publishes, and waits for the end as the page does.
    fn publish(&self, id: &str) -> Value {
        let mut now = ask(&self.bob, &Call::post(format!("/uploads/{id}/publish"))).unwrap();
        while now["state"] == "publishing" || now["state"] == "receiving" {
            now = ask(&self.bob, &Call::get(format!("/uploads/{id}?wait=published"))).unwrap();
        }
        now
    }

    fn spool(&self, id: &str) -> PathBuf {
        self.files.rig.directory.path().join("uploads").join(id)
    }

    /// What is at the endpoint.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.files.root).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn put(client: &Client, id: &str, block: usize, bytes: &[u8]) -> Result<Value, Problem> {
    ask(client, &Call::put(format!("/uploads/{id}/blocks/{block}")).bytes(bytes.to_vec()))
}

fn id_of(upload: &Value) -> String {
    upload["id"].as_str().unwrap().to_owned()
}

#[test]
fn upload_goes_on_after_another_service_has_started_and_is_published_as_it_is() {
    let mut uploads = Uploads::start();
    let bytes = content(2 * BLOCK + 12_345);
    let wanted = wanted("/run.dat", &bytes, "fail");
    let (status, upload) = uploads.begin_again(&wanted);
    let id = id_of(&upload);
    assert_eq!((status, &upload["state"], &upload["missing"]), (201, &json!("receiving"), &json!([[0, 2]])));
    assert_eq!(id.len(), 32);
    for block in [0, 2] {
        uploads.put(&id, block, bytes.chunks(BLOCK).nth(block).unwrap()).unwrap();
    }
    assert_eq!(code(ask(&uploads.bob, &Call::post(format!("/uploads/{id}/publish")))), (409, "conflict"));
    uploads.files.rig.restart();
    let (status, again) = uploads.begin_again(&wanted);
    assert_eq!((status, id_of(&again), &again["missing"]), (200, id.clone(), &json!([[1, 1]])));
    assert_eq!(uploads.names(), [""; 0]);
    uploads.put(&id, 1, &bytes[BLOCK..2 * BLOCK]).unwrap();
    let published = uploads.publish(&id);
    assert_eq!((&published["state"], &published["missing"]), (&json!("published"), &json!([])), "{published}");
    let path = uploads.files.root.join("run.dat");
    assert!(fs::read(&path).unwrap() == bytes, "other bytes");
    let modified: Moment = fs::metadata(&path).unwrap().modified().unwrap().into();
    assert_eq!(modified.to_string(), "2026-11-20T08:00:00.125Z");
    assert!(!uploads.spool(&id).join("content").exists(), "its space is not free again");
    assert_eq!(code(uploads.put(&id, 0, &bytes[..BLOCK])), (409, "conflict"));
    // It is there: nothing is to be sent. Once it is gone all of it is.
    let (status, again) = uploads.begin_again(&wanted);
    assert_eq!((status, &again["state"]), (200, &json!("published")));
    fs::remove_file(&path).unwrap();
    let (status, again) = uploads.begin_again(&wanted);
    assert_eq!((status, &again["state"], &again["missing"]), (201, &json!("receiving"), &json!([[0, 2]])));
}

#[test]
fn upload_of_an_empty_file_is_published() {
    let uploads = Uploads::start();
    let upload = uploads.begin(&wanted("/empty", b"", "fail")).unwrap();
    assert_eq!(upload["missing"], json!([]));
    assert_eq!(uploads.publish(&id_of(&upload))["state"], "published");
    assert_eq!(fs::read(uploads.files.root.join("empty")).unwrap(), b"");
}

#[test]
fn upload_keeps_no_block_that_is_another_than_its_digest_says() {
    let uploads = Uploads::start();
    let bytes = content(BLOCK + 7);
    let wanted = wanted("/f", &bytes, "fail");
    let id = id_of(&uploads.begin(&wanted).unwrap());
    let mut other = bytes[..BLOCK].to_vec();
    other[17] ^= 1;
    for wrong in [&other[..], &bytes[BLOCK..], &bytes[..BLOCK - 1], b""] {
        assert_eq!(code(uploads.put(&id, 0, wrong)), (409, "digest-mismatch"), "{} bytes", wrong.len());
    }
    assert_eq!(code(uploads.put(&id, 0, &content(BLOCK + 1))), (400, "malformed"));
    assert_eq!(code(uploads.put(&id, 2, b"")), (404, "not-found"));
    assert_eq!(uploads.begin(&wanted).unwrap()["missing"], json!([[0, 1]]));
    let spooled = fs::read(uploads.spool(&id).join("content")).unwrap();
    assert!(spooled.iter().all(|byte| *byte == 0), "something of a wrong block was kept");
}

#[test]
fn upload_whose_block_has_changed_on_disk_is_not_published() {
    let uploads = Uploads::start();
    let bytes = content(3 * BLOCK);
    let wanted = wanted("/f", &bytes, "fail");
    let id = uploads.send(&wanted, &bytes);
    let path = uploads.spool(&id).join("content");
    let mut spooled = fs::read(&path).unwrap();
    spooled[BLOCK + 1] ^= 1;
    fs::write(&path, spooled).unwrap();
    let failed = uploads.publish(&id);
    assert_eq!((&failed["state"], &failed["failure"]["code"]), (&json!("failed"), &json!("digest-mismatch")));
    assert_eq!((uploads.names(), &failed["missing"]), (Vec::new(), &json!([[1, 1]])));
    // Going on sends what is wrong, and no more.
    assert_eq!(uploads.begin(&wanted).unwrap()["state"], "receiving");
    uploads.put(&id, 1, &bytes[BLOCK..2 * BLOCK]).unwrap();
    assert_eq!(uploads.publish(&id)["state"], "published");
    assert!(fs::read(uploads.files.root.join("f")).unwrap() == bytes, "other bytes");
}

#[test]
fn upload_replaces_a_file_only_where_that_is_asked_for_and_never_a_directory() {
    let uploads = Uploads::start();
    fs::write(uploads.files.root.join("f"), "before").unwrap();
    fs::create_dir(uploads.files.root.join("d")).unwrap();
    let id = uploads.send(&wanted("/f", b"after", "fail"), b"after");
    let failed = uploads.publish(&id);
    assert_eq!((&failed["state"], &failed["failure"]["code"]), (&json!("failed"), &json!("exists")), "{failed}");
    assert_eq!(fs::read(uploads.files.root.join("f")).unwrap(), b"before");
    let again = uploads.begin(&wanted("/f", b"after", "replace")).unwrap();
    assert_eq!((id_of(&again), &again["missing"]), (id.clone(), &json!([])));
    assert_eq!(uploads.publish(&id)["state"], "published");
    assert_eq!(fs::read(uploads.files.root.join("f")).unwrap(), b"after");
    let id = uploads.send(&wanted("/d", b"after", "replace"), b"after");
    assert_eq!(uploads.publish(&id)["failure"]["code"], "exists");
    assert_eq!(fs::read_dir(uploads.files.root.join("d")).unwrap().count(), 0);
    // What is there already has its name, also where a worker has published it and nobody has heard of it.
    fs::write(uploads.files.root.join("same"), "after").unwrap();
    let id = uploads.send(&wanted("/same", b"after", "fail"), b"after");
    assert_eq!(uploads.publish(&id)["state"], "published");
}

#[test]
fn upload_is_its_users_alone_and_ends_with_the_right_to_it() {
    let uploads = Uploads::start();
    let eve = uploads.files.rig.user("eve", Role::User);
    uploads.edit(json!({ "users": ["bob", "eve"] }));
    let wanted = wanted("/f", b"bytes", "fail");
    let id = id_of(&uploads.begin(&wanted).unwrap());
    let calls = |client: &Client| {
        let publish = ask(client, &Call::post(format!("/uploads/{id}/publish")));
        let get = ask(client, &Call::get(format!("/uploads/{id}")));
        [put(client, &id, 0, b"bytes"), publish, get].map(code)
    };
    assert_eq!(calls(&eve), [(404, "not-found"); 3]);
    assert_eq!(code(ask(&eve, &Call::delete(format!("/uploads/{id}")))), (404, "not-found"));
    assert_ne!(id_of(&post(&eve, "/endpoints/here/uploads", &wanted).unwrap()), id);
    for (change, back) in [("uploads", json!(true)), ("read_only", json!(false))] {
        uploads.edit(json!({ change: !back.as_bool().unwrap() }));
        let forbidden = (403, "forbidden");
        assert_eq!(code(uploads.begin(&wanted)), forbidden, "{change}");
        assert_eq!(calls(&uploads.bob)[..2], [forbidden; 2], "{change}");
        uploads.edit(json!({ change: back }));
    }
    uploads.edit(json!({ "users": ["eve"] }));
    assert_eq!(calls(&uploads.bob), [(404, "not-found"); 3]);
    uploads.edit(json!({ "users": ["bob"] }));
    assert_eq!(calls(&uploads.bob)[0], (200, ""));
    // A spool that is removed leaves nothing.
    let id = uploads.send(&self::wanted("/g", b"other", "fail"), b"other");
    ask(&uploads.bob, &Call::delete(format!("/uploads/{id}"))).unwrap();
    assert!(!uploads.spool(&id).exists());
    assert_eq!(code(ask(&uploads.bob, &Call::get(format!("/uploads/{id}")))), (404, "not-found"));
}

#[test]
fn uploads_have_bounds() {
    let uploads = Uploads::start();
    let large = |path: &str, gib: u64| {
        let blocks = vec!["ab".repeat(32); usize::try_from(gib * 256).unwrap()];
        json!({ "path": path, "size": gib << 30, "block_bytes": BLOCK, "blocks": blocks, "existing": "fail" })
    };
    assert_eq!(code(uploads.begin(&large("/f", 65))), (400, "malformed"));
    for (name, value) in
        [("block_bytes", json!(1 << 20)), ("blocks", json!([])), ("path", json!("/")), ("size", json!(9))]
    {
        let mut wrong = large("/f", 1);
        wrong[name] = value;
        assert_eq!(code(uploads.begin(&wrong)), (400, "malformed"), "{name}");
    }
    for file in 0..4 {
        uploads.begin(&large(&format!("/{file}"), 64)).unwrap();
    }
    let one_more = wanted("/more", b"more", "fail");
    assert_eq!(code(uploads.begin(&one_more)), (507, "storage-full"));
    // The same again is no more.
    let again = uploads.begin(&large("/0", 64)).unwrap();
    ask(&uploads.bob, &Call::delete(format!("/uploads/{}", id_of(&again)))).unwrap();
    uploads.begin(&one_more).unwrap();
}

#[test]
fn upload_that_nobody_goes_on_with_is_removed() {
    let mut uploads = Uploads::start();
    let old = uploads.send(&wanted("/old", b"old", "fail"), b"old");
    let new = uploads.send(&wanted("/new", b"new", "fail"), b"new");
    age(&uploads.spool(&old), Duration::from_secs(25 * 3600));
    age(&uploads.spool(&new), Duration::from_secs(23 * 3600));
    uploads.files.rig.restart();
    assert!(!uploads.spool(&old).exists());
    assert_eq!(code(ask(&uploads.bob, &Call::get(format!("/uploads/{old}")))), (404, "not-found"));
    assert_eq!(uploads.publish(&new)["state"], "published");
}

/// Nothing of it has changed for so long.
fn age(spool: &Path, age: Duration) {
    let then = SystemTime::now() - age;
    for entry in fs::read_dir(spool).unwrap() {
        File::options().write(true).open(entry.unwrap().path()).unwrap().set_modified(then).unwrap();
    }
    File::open(spool).unwrap().set_modified(then).unwrap();
}
