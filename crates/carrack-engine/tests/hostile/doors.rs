//! Other protocols on a node's port: they get their clients and their certificates, and are bounded as the node's own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use carrack_core::location::{Location, NodeAddress};
use carrack_core::report::ErrorCode;
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions};
use carrack_core::tuning::Tuning;
use carrack_engine::files::Files;
use carrack_engine::node::{Door, Node, NodeConfig, NodeHandle, Visitor};
use carrack_engine::{Context, Copy, Standard};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};
use tempfile::TempDir;

use crate::sandbox::{directory, node_config};
use crate::watch::Watch;

/// Longer than anything takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(30);
const BODY: &str = "a page for browsers\n";

/// An X.509 certificate for this host, signed by itself, as a browser may be told to trust it.
struct Certificate {
    directory: TempDir,
}

impl Certificate {
    fn make() -> Self {
        let certificate = Self { directory: directory() };
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=node", "-addext", "subjectAltName=IP:127.0.0.1"])
            .arg("-keyout")
            .arg(certificate.key_file())
            .arg("-out")
            .arg(certificate.file())
            .output()
            .expect("openssl");
        assert!(made.status.success(), "{made:?}");
        certificate
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    fn key_file(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }

    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![CertificateDer::from_pem_file(self.file()).unwrap()]
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_file(self.key_file()).unwrap()
    }

    fn config(&self) -> ServerConfig {
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain(), self.key())
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }
}

/// A node at a free port, which anybody may use.
fn start(root: &Path, own: &Path, doors: Vec<Door>) -> NodeHandle {
    Node::start(config(root, own, doors)).unwrap()
}

fn config(root: &Path, own: &Path, doors: Vec<Door>) -> NodeConfig {
    NodeConfig { doors, ..node_config(root, own) }
}

fn at(node: &NodeHandle, path: &str) -> Location {
    let pin = Some(node.fingerprint());
    let node = NodeAddress { host: "127.0.0.1".into(), port: node.address().port(), pin };
    Location::Node { node, path: path.as_bytes().to_vec() }
}

/// Reads a request and answers it, as the simplest of servers would.
fn answer(visitor: &mut Visitor) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0; 1];
        visitor.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    visitor.admit();
    let path = request.split(|&byte| byte == b' ').nth(1).unwrap_or_default().to_vec();
    let status = if path == b"/page" { "200 OK" } else { "404 Not Found" };
    // Without a length: that it is whole shows in how the connection ends.
    write!(visitor, "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{BODY}")
}

fn curl(certificate: &Certificate, address: SocketAddr, more: &[&str]) -> Output {
    Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--http1.1", "--noproxy", "*", "--max-time", "30", "--cacert"])
        .arg(certificate.file())
        .args(more)
        .arg(format!("https://{address}/page"))
        .output()
        .expect("curl")
}

/// Waits until so many bytes of an unfinished file lie below a directory.
fn until_unfinished(root: &Path, bytes: u64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let parts = std::fs::read_dir(root).unwrap().filter_map(Result::ok);
        let part = parts.filter(|entry| entry.file_name().to_string_lossy().contains(".part"));
        if part.filter_map(|entry| entry.metadata().ok()).any(|facts| facts.len() >= bytes) {
            return;
        }
        assert!(Instant::now() < deadline, "no part file");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One port: a copy is under way on it, to the node's raw key, while a web client is served with an X.509
/// certificate that it trusts.
#[test]
fn door_serves_web_client_while_a_copy_runs_on_its_port() {
    let _watch = Watch::start();
    let (root, own, certificate) = (directory(), directory(), Certificate::make());
    let met = Arc::new(Mutex::new(Vec::new()));
    let meet = Arc::clone(&met);
    let door = Door::tls(Arc::new(certificate.config()), move |visitor| {
        meet.lock().unwrap().push((visitor.peer().ip().to_string(), visitor.alpn().map(<[u8]>::to_vec)));
        let _ = answer(visitor);
    });
    let node = start(root.path(), own.path(), vec![door]);
    let (reader, mut writer) = io::pipe().unwrap();
    let input = File::from(OwnedFd::from(reader));
    let standard = Standard { input: Some(Arc::new(move || input.try_clone())), ..Standard::default() };
    let content: Vec<u8> = (0..8u32 << 20).map(|byte| (byte % 251) as u8).collect();
    let request = CopyRequest {
        sources: vec![Location::Stdio],
        destination: at(&node, "/f"),
        options: CopyOptions { retries: 0, ..CopyOptions::default() },
    };
    let context = Context { standard, ..Context::default() };
    let copying = Copy::start(request, &context);
    let (first, rest) = content.split_at(6 << 20);
    writer.write_all(first).unwrap();
    until_unfinished(root.path(), 1 << 20);
    // Now the copy waits for its source.
    let page = curl(&certificate, node.address(), &[]);
    assert_eq!((page.status.code(), page.stdout.as_slice()), (Some(0), BODY.as_bytes()), "{page:?}");
    assert!(!copying.has_ended() && !root.path().join("f").exists());
    assert_eq!(*met.lock().unwrap(), [("127.0.0.1".to_owned(), Some(b"http/1.1".to_vec()))]);
    // A client that names no protocol gets this one.
    let page = curl(&certificate, node.address(), &["--no-alpn"]);
    assert_eq!((page.status.code(), page.stdout.as_slice()), (Some(0), BODY.as_bytes()), "{page:?}");
    assert_eq!(met.lock().unwrap()[1..], [("127.0.0.1".to_owned(), None)]);
    writer.write_all(rest).unwrap();
    drop(writer);
    let report = copying.wait();
    assert_eq!(report.error, None);
    assert!(std::fs::read(root.path().join("f")).unwrap() == content);
    assert_eq!(met.lock().unwrap().len(), 2);
    node.stop();
    node.wait();
}

/// Signs with one key, and shows the certificate of another.
#[derive(Debug)]
struct Impostor(Arc<CertifiedKey>);

impl ResolvesServerCert for Impostor {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// A door's certificate is public, too: a client that trusts it must not take somebody for the node who only shows it.
#[test]
fn web_client_refuses_impostor_with_a_doors_certificate() {
    let _watch = Watch::start();
    let (certificate, other) = (Certificate::make(), Certificate::make());
    for (signer, code) in [(&certificate, 0), (&other, 35)] {
        let signing = aws_lc_rs::sign::any_supported_type(&signer.key()).unwrap();
        let mut config = certificate.config();
        config.cert_resolver = Arc::new(Impostor(Arc::new(CertifiedKey::new(certificate.chain(), signing))));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            let connection = ServerConnection::new(Arc::new(config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, listener.accept().unwrap().0);
            let mut request = [0; 4096];
            let read = stream.read(&mut request)?;
            assert!(request[..read].starts_with(b"GET /page "));
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        };
        let serving = std::thread::Builder::new().name("impostor".into()).spawn(serve).unwrap();
        let page = curl(&certificate, address, &[]);
        assert_eq!(page.status.code(), Some(code), "{page:?}");
        assert_eq!(serving.join().unwrap().is_ok(), code == 0);
    }
}

fn is_open(socket: &TcpStream) -> bool {
    socket.set_nonblocking(true).unwrap();
    let read = (&mut &*socket).read(&mut [0; 1]);
    socket.set_nonblocking(false).unwrap();
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Waits for the end of a connection on which nothing is said.
fn until_closed(socket: &TcpStream) {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    match (&mut &*socket).read(&mut [0; 1]) {
        Ok(read) => assert_eq!(read, 0),
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}"),
    }
}

/// One client says a word from time to time and never what it must; the other is admitted, and
/// stays until the node stops.
#[test]
fn door_client_is_cut_off_unless_admitted_and_ends_with_the_node() {
    let _watch = Watch::start();
    let (root, own) = (directory(), directory());
    let (tell, told) = mpsc::channel();
    let door = Door::clear(b"KNOCK", move |visitor| {
        let mut word = [0; 1];
        while visitor.read_exact(&mut word).is_ok() {
            if word == *b"!" {
                visitor.admit();
            }
            tell.send(word[0]).unwrap();
        }
    });
    let limit = Duration::from_secs(1);
    let tuning = Tuning { authenticate_timeout: limit, ..Tuning::DEFAULT };
    let node = Node::start(NodeConfig { tuning, ..config(root.path(), own.path(), vec![door]) }).unwrap();
    let connect = || TcpStream::connect(node.address()).unwrap();
    let (mut silent, mut admitted, started) = (connect(), connect(), Instant::now());
    admitted.write_all(b"KNOCK!").unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(b'!'));
    silent.write_all(b"KNO").unwrap();
    silent.write_all(b"CK?").unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(b'?'));
    until_closed(&silent);
    assert!(started.elapsed() >= limit * 9 / 10, "{:?}", started.elapsed());
    assert!(is_open(&admitted));
    admitted.write_all(b".").unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(b'.'));
    let address = node.address();
    node.stop();
    node.wait();
    until_closed(&admitted);
    assert!(TcpStream::connect(address).is_err(), "the port is closed");
}

/// A door whose clients could not be told from all others would take the node's own.
#[test]
fn door_that_nobody_could_find_is_refused() {
    let _watch = Watch::start();
    let (root, own) = (directory(), directory());
    let mut nameless = Certificate::make().config();
    nameless.alpn_protocols.clear();
    let mut takes_control = nameless.clone();
    takes_control.alpn_protocols.push(b"carrack-control/1".to_vec());
    let clear = |first| Door::clear(first, |_| {});
    let tls = |config| Door::tls(Arc::new(config), |_| {});
    // The node's own data connections in the clear begin with CRK, TLS clients with a handshake record.
    let doors = [clear(b""), tls(nameless), tls(takes_control), clear(b"CR"), clear(b"\x16\x03\x01")];
    for door in doors.map(|door| vec![door]).into_iter().chain([vec![clear(b"GET"), clear(b"GET /")]]) {
        let config = NodeConfig { read_only: true, ..config(root.path(), own.path(), door) };
        assert_eq!(Node::start(config).map(|_| ()).map_err(|failure| failure.code), Err(ErrorCode::Usage));
    }
}

/// A knob that makes no sense is refused before anything is done with it.
#[test]
fn work_with_knobs_out_of_bounds_is_refused() {
    let (root, own) = (directory(), directory());
    let tuning = Tuning { heartbeat: Tuning::DEFAULT.silence, ..Tuning::DEFAULT };
    let refused = Node::start(NodeConfig { tuning, ..config(root.path(), own.path(), Vec::new()) }).map(|_| ());
    let context = Context { tuning: Arc::new(tuning), ..Context::default() };
    let there = |name: &str| Location::Local(root.path().join(name).into_os_string().into_encoded_bytes());
    std::fs::write(root.path().join("from"), "content").unwrap();
    let (sources, options) = (vec![there("from")], CopyOptions::default());
    let request = CopyRequest { sources, destination: there("to"), options };
    let copied = Copy::start(request, &context).wait().error;
    let opened = Files::open(&there(""), &EndOptions::default(), &context, &|_| {}).map(|_| ());
    for failure in [refused.unwrap_err(), copied.unwrap(), opened.unwrap_err()] {
        assert_eq!(failure.code, ErrorCode::Usage, "{failure:?}");
        assert!(failure.message().contains("heartbeat"), "{failure:?}");
    }
    assert!(!root.path().join("to").exists());
}
