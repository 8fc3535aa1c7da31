//! Downloads: files, ranges and archives, over workers that are threads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::rig::{Rig, add_endpoint, endpoint};
use crate::model::{EndpointLocation, NewEndpoint, Role, Scope, Secret, Verb};

const LARGE: usize = 40 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// A service with an endpoint `here` of a directory, which `bob` may use.
struct Files {
    rig: Rig,
    root: PathBuf,
    port: SocketAddr,
    token: Secret,
}

/// An answer of HTTP.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    /// The body came to its end.
    is_whole: bool,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Files {
    fn start() -> Self {
        let rig = Rig::start();
        let root = rig.directory.path().join("files");
        std::fs::create_dir(&root).unwrap();
        let location = EndpointLocation::Local { root: root.to_str().unwrap().to_owned() };
        add_endpoint(&rig.local(), &NewEndpoint { location, ..endpoint("here", &["bob"]) }).unwrap();
        rig.user("bob", Role::User);
        let (port, token) = (rig.port(), rig.token("bob", None).token);
        Self { rig, root, port, token }
    }

    fn ask(&self, method: &str, route: &str, more: &str) -> TcpStream {
        self.ask_as(&self.token, method, route, more)
    }

    fn ask_as(&self, token: &Secret, method: &str, route: &str, more: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.port).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let path = format!("/api/v1/endpoints/here/files/{route}");
        let token = token.reveal();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{more}\r\n"
        );
        socket.write_all(request.as_bytes()).unwrap();
        socket
    }

    fn get(&self, route: &str, more: &str) -> Answer {
        read(&mut self.ask("GET", route, more), true)
    }
}

/// Reads an answer to its end.
fn read(socket: &mut TcpStream, has_body: bool) -> Answer {
    let mut bytes = Vec::new();
    let ended = socket.read_to_end(&mut bytes).is_ok();
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer { status, head, body: Vec::new(), is_whole: false };
    let rest = &bytes[split + 4..];
    if answer.header("transfer-encoding") == Some("chunked") {
        (answer.body, answer.is_whole) = dechunked(rest);
    } else {
        let length: usize = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.is_whole = !has_body || rest.len() == length;
        answer.body = rest.to_vec();
    }
    answer.is_whole &= ended;
    answer
}

fn dechunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else { return (body, false) };
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        rest = &rest[end + 2..];
        if length == 0 {
            return (body, true);
        }
        if rest.len() < length + 2 {
            body.extend_from_slice(rest);
            return (body, false);
        }
        body.extend_from_slice(&rest[..length]);
        rest = &rest[length + 2..];
    }
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 251) as u8 ^ (index >> 13) as u8).collect()
}

/// Until it is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Descriptors of this process that lead to a file.
fn is_open(path: &Path) -> bool {
    let mut open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.any(|descriptor| std::fs::read_link(descriptor.path()).is_ok_and(|target| target == path))
}

#[test]
fn content_is_the_file_and_its_ranges() {
    let files = Files::start();
    let whole = content((1 << 20) + 77);
    std::fs::write(files.root.join("f"), &whole).unwrap();
    let answer = files.get("content?path=/f", "");
    assert_eq!((answer.status, answer.is_whole), (200, true), "{}", answer.head);
    assert!(answer.body == whole, "other bytes");
    let tag = answer.header("etag").expect("a tag").to_owned();
    assert!(tag.starts_with('"') && tag.len() == 34, "{tag}");
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment; filename*=UTF-8''f"),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{}", answer.head);
    }
    assert!(answer.header("last-modified").is_some_and(|date| date.ends_with(" GMT")), "{}", answer.head);
    let size = whole.len();
    for (range, begin, end) in [("0-0", 0, 1), ("500000-", 500_000, size), ("-7", size - 7, size), ("9-99", 9, 100)] {
        let part = files.get("content?path=/f", &format!("Range: bytes={range}\r\nIf-Range: {tag}\r\n"));
        assert_eq!((part.status, part.is_whole), (206, true), "{range}: {}", part.head);
        assert!(part.body == whole[begin..end], "{range}");
        let said = format!("bytes {begin}-{}/{size}", end - 1);
        assert_eq!(part.header("content-range"), Some(&said[..]));
    }
    let behind = files.get("content?path=/f", &format!("Range: bytes={size}-\r\n"));
    assert_eq!((behind.status, behind.header("content-range")), (416, Some(&format!("bytes */{size}")[..])));
    let mine = files.get("content?path=/f", &format!("If-None-Match: \"x\", {tag}\r\n"));
    assert_eq!((mine.status, mine.body.len()), (304, 0));
    let head = read(&mut files.ask("HEAD", "content?path=/f", ""), false);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!((head.header("content-length"), head.header("etag")), (Some(&size.to_string()[..]), Some(&tag[..])));
    // The file is another now: the range of the earlier one is not continued.
    std::fs::write(files.root.join("f"), b"short").unwrap();
    let anew = files.get("content?path=/f", &format!("Range: bytes=2-\r\nIf-Range: {tag}\r\n"));
    assert_eq!((anew.status, &anew.body[..]), (200, &b"short"[..]));
    std::fs::write(files.root.join("empty"), b"").unwrap();
    let empty = files.get("content?path=/empty&inline=true", "");
    assert_eq!((empty.status, empty.body.len(), empty.is_whole), (200, 0, true));
    assert_eq!(empty.header("content-disposition"), Some("inline; filename*=UTF-8''empty"));
}

#[test]
fn content_has_names_of_any_bytes_and_no_way_out() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let files = Files::start();
    std::fs::write(files.root.join(OsStr::from_bytes(b"\xff\n\"x\".html")), b"odd").unwrap();
    let odd = files.get("content?path=/%25FF%250A%22x%22.html", "");
    assert_eq!((odd.status, &odd.body[..]), (200, &b"odd"[..]), "{}", odd.head);
    let named = "attachment; filename*=UTF-8''%25FF%250A%22x%22.html";
    assert_eq!(odd.header("content-disposition"), Some(named));
    std::fs::create_dir(files.root.join("d")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", files.root.join("out")).unwrap();
    for (path, status) in
        [("/../x", 400), ("/d", 409), ("/none", 404), ("/out", 403), ("d", 400), ("/d/%252e%252e/out", 400)]
    {
        let answer = files.get(&format!("content?path={path}"), "");
        assert_eq!(answer.status, status, "{path}: {}", String::from_utf8_lossy(&answer.body));
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
    }
    let scope = |verbs: &[Verb], path: &str| Scope {
        verbs: verbs.to_vec(),
        endpoints: vec!["here".into()],
        path: Some(path.into()),
        ..Scope::default()
    };
    std::fs::write(files.root.join("d/in"), b"in").unwrap();
    for (scope, path, status) in [
        (scope(&[Verb::Read], "/d"), "/d/in", 200),
        (scope(&[Verb::Read], "/d"), "/%25FF%250A%22x%22.html", 403),
        (scope(&[Verb::Write], "/d"), "/d/in", 403),
    ] {
        let token = files.rig.token("bob", Some(scope)).token;
        for route in ["content", "archive"] {
            let answer = read(&mut files.ask_as(&token, "GET", &format!("{route}?path={path}"), ""), true);
            assert_eq!(answer.status, status, "{route} {path}");
        }
    }
}

/// The reader takes a little and stops: nothing is read ahead without bound, others are served by the same worker, and
/// the file is closed when the reader goes.
#[test]
fn content_waits_for_its_reader_and_ends_with_it() {
    let files = Files::start();
    let large = files.root.join("large");
    std::fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    std::fs::write(files.root.join("small"), b"small").unwrap();
    let mut slow: Vec<TcpStream> = (0..8).map(|_| files.ask("GET", "content?path=/large", "")).collect();
    for socket in &mut slow {
        socket.read_exact(&mut [0; 1024]).unwrap();
    }
    assert!(is_open(&large));
    for _ in 0..20 {
        assert_eq!(files.get("content?path=/small", "").body, b"small");
    }
    drop(slow);
    wait_until("the file stays open", || !is_open(&large));
}

/// What has come is never a mixture of two files: the connection is cut, or what came is one of them.
#[test]
fn content_that_changes_while_it_is_sent_is_cut_off() {
    let files = Files::start();
    let path = files.root.join("f");
    std::fs::write(&path, content(LARGE)).unwrap();
    for is_archive in [false, true] {
        let route = if is_archive { "archive?path=/f" } else { "content?path=/f" };
        let mut socket = files.ask("GET", route, "");
        // It has begun, and waits for the reader.
        let mut first = vec![0; 64];
        socket.read_exact(&mut first).unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap();
        let mut rest = Vec::new();
        let ended = socket.read_to_end(&mut rest);
        first.extend(rest);
        assert!(ended.is_err() || first.len() < LARGE, "{route}: all of it came");
        assert!(!first.ends_with(b"0\r\n\r\n"), "{route}: its end was told");
    }
}

#[test]
fn archive_is_what_tar_unpacks_to_the_same_tree() {
    let files = Files::start();
    let at = |path: &str| files.root.join(path);
    std::fs::create_dir_all(at("run/deep/er")).unwrap();
    std::fs::create_dir(at("run/empty")).unwrap();
    let (long, large) = ("n".repeat(200), content((3 << 20) + 5));
    for (path, bytes) in [("run/a", &b"a"[..]), ("run/deep/er/large", &large), ("run/none", b""), ("other", b"other")] {
        std::fs::write(at(path), bytes).unwrap();
    }
    std::fs::write(at("run/deep").join(&long), b"long").unwrap();
    std::os::unix::fs::symlink("../a", at("run/deep/link")).unwrap();
    (0..2000)
        .for_each(|number| std::fs::write(at("run/empty").join(format!("{number}")), format!("{number}")).unwrap());
    let answer = files.get("archive?path=/run&path=/other", "");
    assert_eq!((answer.status, answer.is_whole), (200, true), "{}", answer.head);
    assert_eq!(answer.header("content-disposition"), Some("attachment; filename*=UTF-8''here.tar"));
    let there = tempfile::tempdir().unwrap();
    let archive = there.path().join("archive.tar");
    std::fs::write(&archive, &answer.body).unwrap();
    let unpacked = there.path().join("unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = std::process::Command::new(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stdout));
    };
    run("tar", &["-x".as_ref(), "-f".as_ref(), archive.as_os_str(), "-C".as_ref(), unpacked.as_os_str()]);
    run("diff", &["-r".as_ref(), "--no-dereference".as_ref(), files.root.as_os_str(), unpacked.as_os_str()]);
    // Below one directory the names begin there; of the root they are those in it.
    let one = files.get("archive?path=/run/deep", "");
    assert!(one.body.starts_with(b"deep/") && one.is_whole, "{}", one.head);
    assert_eq!(one.header("content-disposition"), Some("attachment; filename*=UTF-8''deep.tar"));
    assert!(files.get("archive?path=/", "").is_whole);
    for (query, status) in [("", 400), ("path=/none", 404), ("path=/run&x=1", 400), ("path=/run&path=/../x", 400)] {
        assert_eq!(files.get(&format!("archive?{query}"), "").status, status, "{query}");
    }
}
