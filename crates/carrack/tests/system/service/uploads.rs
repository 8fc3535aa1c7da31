//! Uploads through a service, block by block, by curl: what is there stays there when the service is killed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::add_node;
use crate::support::node::Node;
use crate::support::service::Service;
use crate::support::{Sandbox, is_root, tool, tree};

const BYTES: usize = 40 << 20;
const BLOCK: usize = 4 << 20;

/// A client of the service.
struct Client<'a> {
    sandbox: &'a Sandbox,
}

impl Client<'_> {
    /// The status and the document of an answer.
    fn call(&self, method: &str, path: &str, body: Option<(&[u8], &str)>) -> (u16, Value) {
        let sent = self.sandbox.path("sent");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--unix-socket"]);
        curl.arg(self.sandbox.path("home/.local/state/carrack/service/service.sock"));
        curl.args(["--request", method, "--write-out", "\n%{http_code}"]);
        if let Some((bytes, kind)) = body {
            fs::write(&sent, bytes).unwrap();
            curl.args(["--header", &format!("Content-Type: {kind}"), "--data-binary", &format!("@{}", sent.display())]);
        }
        let told = curl.arg(format!("http://localhost/api/v1{path}")).output().unwrap();
        assert!(told.status.success(), "{method} {path}: {told:?}");
        let text = String::from_utf8(told.stdout).unwrap();
        let (document, status) = text.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), serde_json::from_str(document).unwrap_or_default())
    }

    fn begin(&self, wanted: &Value) -> Value {
        let body = serde_json::to_vec(wanted).unwrap();
        let (status, upload) = self.call("POST", "/endpoints/one/uploads", Some((&body, "application/json")));
        assert!([200, 201].contains(&status), "{status}: {upload}");
        upload
    }

    fn put(&self, id: &str, block: usize, bytes: &[u8]) {
        let path = format!("/uploads/{id}/blocks/{block}");
        let (status, problem) = self.call("PUT", &path, Some((bytes, "application/octet-stream")));
        assert_eq!(status, 204, "{problem}");
    }

    /// The state in which publishing has ended.
    fn publish(&self, id: &str) -> Value {
        let (status, mut now) = self.call("POST", &format!("/uploads/{id}/publish"), None);
        assert_eq!(status, 202, "{now}");
        while ["receiving", "publishing"].contains(&now["state"].as_str().unwrap()) {
            now = self.call("GET", &format!("/uploads/{id}?wait=published"), None).1;
        }
        now
    }
}

fn digest(sandbox: &Sandbox, block: &[u8]) -> String {
    let path: PathBuf = sandbox.path("block");
    fs::write(&path, block).unwrap();
    let told = Command::new("sha256sum").arg(&path).output().unwrap();
    String::from_utf8(told.stdout).unwrap()[..64].to_owned()
}

#[test]
fn upload_to_a_node_goes_on_after_the_service_was_killed_with_what_is_missing() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "one", &[]);
    let mut service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "one", &node);
    let bytes = tree::bytes(BYTES, 11);
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    let digests: Vec<String> = blocks.iter().map(|block| digest(&sandbox, block)).collect();
    let wanted = json!({
        "path": "/run42.dat", "size": BYTES, "block_bytes": BLOCK, "blocks": digests, "existing": "fail",
    });
    let client = Client { sandbox: &sandbox };
    // The endpoint takes none until its owner says so.
    let body = serde_json::to_vec(&wanted).unwrap();
    let refused = client.call("POST", "/endpoints/one/uploads", Some((&body, "application/json")));
    assert_eq!((refused.0, &refused.1["code"]), (403, &json!("forbidden")), "{}", refused.1);
    let shown = sandbox.ok(["endpoint", "edit", "one", "--uploads"]).stdout;
    assert!(shown.contains("uploads: allowed"), "{shown}");
    let upload = client.begin(&wanted);
    let id = upload["id"].as_str().unwrap().to_owned();
    assert_eq!(upload["missing"], json!([[0, 9]]));
    for block in [0, 1, 2, 5] {
        client.put(&id, block, blocks[block]);
    }
    service.kill();
    drop(service);
    let mut service = Service::start(&sandbox, &[]);
    let upload = client.begin(&wanted);
    assert_eq!((&upload["id"], &upload["missing"]), (&json!(id), &json!([[3, 4], [6, 9]])), "{upload}");
    assert!(!sandbox.path("one/run42.dat").exists());
    for block in [3, 4, 6, 7, 8, 9] {
        client.put(&id, block, blocks[block]);
    }
    // Killed while it publishes, too.
    assert_eq!(client.call("POST", &format!("/uploads/{id}/publish"), None).0, 202);
    service.kill();
    drop(service);
    let _service = Service::start(&sandbox, &[]);
    let upload = client.begin(&wanted);
    assert_eq!((&upload["id"], &upload["missing"]), (&json!(id), &json!([])), "{upload}");
    let published = client.publish(&id);
    assert_eq!(published["state"], "published", "{published}");
    assert!(fs::read(sandbox.path("one/run42.dat")).unwrap() == bytes, "other bytes");
}

/// A mount, until this is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

impl Mounted {
    /// A directory of so many bytes.
    fn new(path: PathBuf, bytes: u64) -> Self {
        fs::create_dir_all(&path).unwrap();
        tool(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "carrack-test"]).arg(&path));
        Self(path)
    }

    fn grow(&self, bytes: u64) {
        tool(Command::new("mount").args(["-o", &format!("remount,size={bytes}")]).arg(&self.0));
    }
}

#[test]
fn upload_to_a_full_state_directory_says_so_and_goes_on_once_there_is_room() {
    if !is_root() {
        eprintln!("skipped: only root may mount");
        return;
    }
    let sandbox = Sandbox::new();
    // What the service leaves free for itself takes no memory here.
    let spare = carrack_core::limits::UPLOAD_SPARE_BYTES;
    let mounted = Mounted::new(sandbox.path("home/.local/state/carrack"), spare + (3 * BLOCK) as u64);
    let service = Service::start(&sandbox, &[]);
    fs::create_dir(sandbox.path("root")).unwrap();
    sandbox.ok(["endpoint", "add", "one", sandbox.path("root").to_str().unwrap(), "--uploads"]);
    let bytes = tree::bytes(6 * BLOCK, 12);
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    let digests: Vec<String> = blocks.iter().map(|block| digest(&sandbox, block)).collect();
    let wanted = json!({
        "path": "/run42.dat", "size": bytes.len(), "block_bytes": BLOCK, "blocks": digests, "existing": "fail",
    });
    let client = Client { sandbox: &sandbox };
    let id = client.begin(&wanted)["id"].as_str().unwrap().to_owned();
    let put = |block: usize| {
        let path = format!("/uploads/{id}/blocks/{block}");
        client.call("PUT", &path, Some((blocks[block], "application/octet-stream")))
    };
    let (full_at, problem) = (0..blocks.len())
        .find_map(|block| match put(block) {
            (204, _) => None,
            (status, problem) => Some((block, (status, problem))),
        })
        .expect("no block is refused");
    assert_eq!((problem.0, &problem.1["code"]), (507, &json!("storage-full")), "{}", problem.1);
    for (field, words) in [("detail", "the service's state directory is full"), ("hints", "make room")] {
        assert!(problem.1[field].to_string().contains(words), "{}", problem.1);
    }
    // What came before is kept, the rest is missing, and nothing has the name.
    assert!(full_at > 0);
    let upload = client.begin(&wanted);
    assert_eq!((&upload["id"], &upload["missing"]), (&json!(id), &json!([[full_at, 5]])), "{upload}");
    assert_eq!(client.call("POST", &format!("/uploads/{id}/publish"), None).0, 409);
    assert_eq!(fs::read_dir(sandbox.path("root")).unwrap().count(), 0);
    mounted.grow(2 * spare);
    for block in full_at..blocks.len() {
        assert_eq!(put(block).0, 204, "block {block}");
    }
    let published = client.publish(&id);
    assert_eq!(published["state"], "published", "{published}");
    assert!(fs::read(sandbox.path("root/run42.dat")).unwrap() == bytes, "other bytes");
    drop(service);
}
