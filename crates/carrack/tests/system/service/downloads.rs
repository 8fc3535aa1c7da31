//! Downloads through a service, by curl: from a node, in ranges, as archives, and what becomes of one when a process
//! ends in the midst.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::add_node;
use super::files::{ENDPOINTS, Scene};
use crate::support::node::Node;
use crate::support::process::{signal, workers};
use crate::support::service::Service;
use crate::support::{Sandbox, same_tree, tool, tree, wait_until};

const BYTES: usize = 64 << 20;

/// A service with an endpoint `one` at a node.
struct Downloads {
    sandbox: Sandbox,
    node: Option<Node>,
    _service: Service,
}

fn curl(sandbox: &Sandbox, route: &str, to: &Path, more: &[&str]) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--unix-socket"]);
    curl.arg(sandbox.path("home/.local/state/carrack/service/service.sock"));
    curl.args(more).arg("--output").arg(to);
    curl.arg(format!("http://localhost/api/v1/endpoints/{route}"));
    curl
}

impl Downloads {
    fn start() -> Self {
        let sandbox = Sandbox::new();
        let node = Node::start(&sandbox, "one", &[]);
        let service = Service::start(&sandbox, &[]);
        add_node(&sandbox, "one", &node);
        Self { sandbox, node: Some(node), _service: service }
    }

    fn curl(&self, route: &str, to: &Path, more: &[&str]) -> Command {
        curl(&self.sandbox, &format!("one/files/{route}"), to, more)
    }

    fn get(&self, route: &str, to: &Path, more: &[&str]) -> Output {
        self.curl(route, to, more).output().unwrap()
    }

    /// A download that takes longer than a test, and has begun.
    fn begin(&self, route: &str, to: &Path) -> Child {
        let child =
            self.curl(route, to, &["--limit-rate", "1M", "--no-buffer"]).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the download begins", || fs::metadata(to).is_ok_and(|found| found.len() > 0));
        child
    }

    fn end_workers(&self) {
        let found = workers(&self.sandbox.path("home"));
        assert!(!found.is_empty(), "no worker serves the file");
        found.into_iter().for_each(|pid| signal(pid, "KILL"));
    }
}

#[test]
fn download_of_a_node_s_file_is_whole_and_goes_on_where_it_broke_off() {
    let downloads = Downloads::start();
    downloads.sandbox.write("one/large", tree::bytes(BYTES, 7));
    let (whole, head, part) =
        (downloads.sandbox.path("whole"), downloads.sandbox.path("head"), downloads.sandbox.path("part"));
    let got = downloads.get("content?path=/large", &whole, &["--dump-header", head.to_str().unwrap()]);
    assert!(got.status.success(), "{got:?}");
    let source = fs::read(downloads.sandbox.path("one/large")).unwrap();
    assert!(fs::read(&whole).unwrap() == source, "other bytes");
    let headers = fs::read_to_string(&head).unwrap();
    let tag = headers.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").trim().to_owned();
    // The process that reads it ends, and the service starts another for the next request.
    let mut begun = downloads.begin("content?path=/large", &part);
    downloads.end_workers();
    assert_ne!(begun.wait().unwrap().code(), Some(0), "a download without its end is told as whole");
    let mut bytes = fs::read(&part).unwrap();
    assert!(!bytes.is_empty() && bytes.len() < source.len());
    let (range, condition) = (format!("Range: bytes={}-", bytes.len()), format!("If-Range: {tag}"));
    let rest = downloads.sandbox.path("rest");
    let got = downloads.get("content?path=/large", &rest, &["-H", &range, "-H", &condition]);
    assert!(got.status.success(), "{got:?}");
    bytes.extend(fs::read(&rest).unwrap());
    assert!(bytes == source, "what came in two parts is another file");
}

#[test]
fn archive_of_a_node_s_tree_is_that_tree_and_one_without_its_end_is_no_success() {
    let mut downloads = Downloads::start();
    tree::mixed(&downloads.sandbox.path("one/run42"));
    let archive = downloads.sandbox.path("run42.tar");
    let got = downloads.get("archive?path=/run42", &archive, &[]);
    assert!(got.status.success(), "{got:?}");
    fs::create_dir(downloads.sandbox.path("unpacked")).unwrap();
    let mut tar = Command::new("tar");
    let unpacked = tar.arg("-xpf").arg(&archive).arg("-C").arg(downloads.sandbox.path("unpacked")).output().unwrap();
    assert!(unpacked.status.success(), "{unpacked:?}");
    same_tree(&downloads.sandbox.path("one/run42"), &downloads.sandbox.path("unpacked/run42"));
    // The node goes in the midst.
    downloads.sandbox.write("one/large", tree::bytes(BYTES, 8));
    let cut = downloads.sandbox.path("cut.tar");
    let mut begun = downloads.begin("archive?path=/large", &cut);
    drop(downloads.node.take());
    assert_ne!(begun.wait().unwrap().code(), Some(0), "an archive without its end is told as whole");
    assert!(fs::metadata(&cut).unwrap().len() < BYTES as u64);
}

/// At this host, at a node, and behind ssh.
#[test]
fn downloads_of_every_kind_of_endpoint_are_the_file_its_ranges_and_its_tree() {
    let scene = Scene::new();
    let sandbox = &scene.sandbox;
    let bytes = tree::bytes((9 << 20) + 11, 13);
    sandbox.write("root/large", &bytes);
    tree::mixed(&sandbox.path("root/run42"));
    let (to, last) = (sandbox.path("to"), bytes.len() - 1);
    for endpoint in ENDPOINTS {
        let get = |route: &str, more: &[&str]| {
            let got = curl(sandbox, &format!("{endpoint}/files/{route}"), &to, more).arg("-w%{http_code}").output();
            String::from_utf8(got.unwrap().stdout).unwrap()
        };
        assert_eq!(get("content?path=/large", &[]), "200", "{endpoint}");
        assert!(fs::read(&to).unwrap() == bytes, "{endpoint}: other bytes");
        let edge = 4 << 20;
        let ranges = [
            ("0-0".to_owned(), 0..1),
            (format!("{}-{}", edge - 1, edge + 1), edge - 1..edge + 2),
            (format!("{edge}-"), edge..bytes.len()),
            (format!("{last}-{}", u64::MAX), last..bytes.len()),
            ("-5".to_owned(), bytes.len() - 5..bytes.len()),
        ];
        for (range, expected) in ranges {
            let header = format!("Range: bytes={range}");
            assert_eq!(get("content?path=/large", &["-H", &header]), "206", "{endpoint}: {range}");
            assert!(fs::read(&to).unwrap() == bytes[expected], "{endpoint}: other bytes in {range}");
        }
        let behind = format!("Range: bytes={}-", bytes.len());
        assert_eq!(get("content?path=/large", &["-H", &behind]), "416", "{endpoint}");
        assert_eq!(get("content?path=/none", &[]), "404", "{endpoint}");
        assert_eq!(get("archive?path=/run42", &[]), "200", "{endpoint}");
        let unpacked = sandbox.path(format!("unpacked-{endpoint}"));
        fs::create_dir(&unpacked).unwrap();
        tool(Command::new("tar").arg("-xpf").arg(&to).arg("-C").arg(&unpacked));
        same_tree(&sandbox.path("root/run42"), &unpacked.join("run42"));
    }
}
