//! Requests that were meant for another host: a page whose name leads to this host gets nothing (DNS rebinding).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use super::rig::Rig;
use crate::model::Role;

/// The status of the answer to a request with these headers, and its body.
fn ask(mut socket: impl Read + Write, line: &str, headers: &[&str]) -> (u16, String) {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    write!(socket, "{line} HTTP/1.1\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{answer}")), answer)
}

#[test]
fn request_for_another_host_is_refused_whatever_it_asks_for() {
    let rig = Rig::start();
    rig.user("ann", Role::User);
    let token = format!("Authorization: Bearer {}", rig.token("ann", None).token.reveal());
    let address = rig.port();
    let port = address.port();
    let by_port = |line: &str, headers: &[&str]| ask(TcpStream::connect(address).unwrap(), line, headers);
    let evil = format!("Host: rebound.example:{port}");
    for line in ["GET /", "GET /page/vendor/LICENSE-htm", "GET /api/v1/whoami", "GET /api/v1/openapi.json", "HEAD /"] {
        let (status, answer) = by_port(line, &[&evil]);
        assert_eq!(status, 421, "{line}: {answer}");
        assert!(line.starts_with("HEAD") || answer.contains("wrong-host") && answer.contains("--name"), "{answer}");
    }
    let origin = format!("Origin: http://rebound.example:{port}");
    assert_eq!(by_port("POST /api/v1/login", &[&evil, &origin]).0, 421);
    assert_eq!(by_port("GET /api/v1/whoami", &[&evil, "Cookie: __Host-carrack=carrack_a_b"]).0, 421);
    let absolute = format!("GET http://rebound.example:{port}/api/v1/whoami");
    assert_eq!(by_port(&absolute, &[&format!("Host: 127.0.0.1:{port}")]).0, 421);
    // Its own names and addresses.
    for host in ["localhost", "LOCALHOST.", "127.0.0.1", "192.0.2.1", "[::1]"] {
        let host = format!("Host: {host}:{port}");
        assert_eq!(by_port("GET /api/v1/whoami", &[&host]).0, 401, "{host}");
        assert_eq!(by_port("GET /", &[&host]).0, 200, "{host}");
    }
    // What no page can send: a token, and a change without the name of a page.
    assert_eq!(by_port("GET /api/v1/whoami", &[&evil, &token]).0, 200);
    assert_eq!(by_port("POST /api/v1/login", &[&evil]).0, 415, "it was looked at");
    // What a page can send, as its requests are of its own origin: any header, but no token that is one.
    for made_up in ["Authorization: x", "Authorization: Bearer x", "Authorization: Basic eDp4"] {
        for line in ["GET /", "GET /api/v1/whoami"] {
            assert_eq!(by_port(line, &[&evil, made_up]).0, 421, "{line} {made_up}");
        }
    }
    assert_eq!(by_port("POST /api/v1/login", &[&evil, &origin, &token]).0, 421, "a login looks at no token");
    // Whoever only looks whether the service lives; and the socket, where the account says who calls.
    assert_eq!(by_port("GET /healthz", &[&evil]).0, 200);
    assert_eq!(ask(UnixStream::connect(rig.socket()).unwrap(), "GET /api/v1/whoami", &[&evil]).0, 200);
}
