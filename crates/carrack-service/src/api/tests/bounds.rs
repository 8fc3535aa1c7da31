//! Requests that are too large, too slow, or mean two things: refused, and the service goes on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::rig::Rig;
use crate::model::{Role, Secret};

/// Says something, and reads until the end of the connection.
pub fn exchange(address: SocketAddr, said: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A refusal may come before all is said.
    let _ = socket.write_all(said);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn answers(text: &str) -> Vec<u16> {
    text.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.get(..3)?.parse().ok()).collect()
}

fn request(token: &Secret, more: &str, body: &str) -> Vec<u8> {
    let token = token.reveal();
    format!("POST /api/v1/tasks/cancel HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n{body}").into()
}

/// Whatever a proxy before the service might read differently is refused, or read as RFC 9112 has it, and then the
/// connection ends: no request ever hides in the body of another.
#[test]
fn smuggled_request_is_never_answered() {
    let rig = Rig::start();
    rig.user("ann", Role::User);
    let (port, token) = (rig.port(), rig.token("ann", None).token);
    let hidden = format!(
        "GET /api/v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        token.reveal()
    );
    let whole = hidden.len();
    for (name, head, body) in [
        (
            "length and chunks",
            format!("Content-Length: {whole}\r\nTransfer-Encoding: chunked\r\n"),
            format!("0\r\n\r\n{hidden}"),
        ),
        (
            "chunks and length",
            format!("Transfer-Encoding: chunked\r\nContent-Length: {whole}\r\n"),
            format!("0\r\n\r\n{hidden}"),
        ),
        ("two lengths", format!("Content-Length: 0\r\nContent-Length: {whole}\r\n"), hidden.clone()),
        ("two lengths in one", format!("Content-Length: 0, {whole}\r\n"), hidden.clone()),
        ("length with a sign", "Content-Length: +0\r\n".into(), hidden.clone()),
        ("length with a letter", "Content-Length: 0x0\r\n".into(), hidden.clone()),
        ("length below zero", "Content-Length: -1\r\n".into(), hidden.clone()),
        ("length too large", "Content-Length: 99999999999999999999\r\n".into(), hidden.clone()),
        ("unknown coding", "Transfer-Encoding: xchunked\r\n".into(), format!("0\r\n\r\n{hidden}")),
        ("identity at last", "Transfer-Encoding: chunked, identity\r\n".into(), format!("0\r\n\r\n{hidden}")),
        ("space before the colon", "Content-Length : 0\r\n".into(), hidden.clone()),
        ("folded line", format!("X-Fold: a\r\n Content-Length: {whole}\r\nContent-Length: 0\r\n"), hidden.clone()),
        ("bare CR in a value", "X-Cr: a\rContent-Length: 0\r\nContent-Length: 5\r\n".into(), hidden.clone()),
        ("NUL in a name", "X-\0: 1\r\nContent-Length: 0\r\n".into(), hidden.clone()),
        ("chunk with a sign", "Transfer-Encoding: chunked\r\n".into(), format!("+0\r\n\r\n{hidden}")),
        ("chunk too large", "Transfer-Encoding: chunked\r\n".into(), format!("fffffffffffffffff\r\n{hidden}")),
        ("chunk of a letter", "Transfer-Encoding: chunked\r\n".into(), format!("g\r\n{hidden}")),
        ("two hosts", "Host: y\r\nContent-Length: 0\r\n".into(), hidden.clone()),
    ] {
        let began = std::time::Instant::now();
        let answer = exchange(port, &request(&token, &head, &body));
        let answers = answers(&answer);
        assert!(!answer.contains("\"via\""), "{name}: the hidden request was answered: {answer}");
        // A route that takes no body may answer before it meets what is wrong with one: once, and then no more is read.
        let is_fine = |status: &u16| (400..500).contains(status) || *status == 200;
        assert!(began.elapsed() < Duration::from_secs(10), "{name}: the connection stayed open");
        assert!(answers.len() <= 1 && answers.iter().all(is_fine), "{name}: {answer}");
    }
    // Two honest requests on one connection are two.
    let mut both = request(&token, "Content-Length: 0\r\n", "");
    both.extend(hidden.as_bytes());
    let answer = exchange(port, &both);
    assert_eq!(answers(&answer), [200, 200], "{answer}");
}

#[test]
fn head_that_is_too_large_is_refused() {
    let rig = Rig::start();
    rig.user("ann", Role::User);
    let (port, token) = (rig.port(), rig.token("ann", None).token);
    for head in [
        format!("X-Large: {}\r\n", "a".repeat(40 << 10)),
        (0..100).map(|number| format!("X-{number}: 1\r\n")).collect(),
        format!("X-Endless: {}", "a".repeat(1 << 20)),
    ] {
        let answer = exchange(port, &request(&token, &head, ""));
        // Whoever is still writing may see the end of the connection before the answer.
        assert!(answers(&answer).iter().all(|status| *status == 431), "{answer}");
        assert!(!answer.contains("\"tasks\""), "{answer}");
    }
    let path = "a".repeat(60 << 10);
    let answer = exchange(port, format!("GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    assert!(answers(&answer).iter().all(|status| [414, 431].contains(status)), "{answer}");
    assert!(exchange(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ends_with("ok\n"));
}

#[test]
fn body_that_is_too_large_is_refused_before_it_is_read() {
    let rig = Rig::start();
    rig.user("ann", Role::User);
    let (port, token) = (rig.port(), rig.token("ann", None).token);
    let head = |length: &str| {
        format!(
            "POST /api/v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Connection: close\r\n{length}\r\n\r\n",
            token.reveal()
        )
    };
    let answer = exchange(port, head("Content-Length: 5000000000").as_bytes());
    assert_eq!(answers(&answer), [413], "{answer}");
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let answer = exchange(port, format!("{}{}", head("Transfer-Encoding: chunked"), chunk.repeat(20)).as_bytes());
    assert!(answers(&answer).iter().all(|status| *status == 413), "{answer}");
    // Nested deeper than a stack is.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = exchange(port, format!("{}{deep}", head(&format!("Content-Length: {}", deep.len()))).as_bytes());
    assert_eq!(answers(&answer), [400], "{answer}");
}

#[test]
fn problem_is_a_document_on_every_wrong_way() {
    let rig = Rig::start();
    rig.user("ann", Role::User);
    let (port, token) = (rig.port(), rig.token("ann", None).token);
    let token = token.reveal();
    for (line, more, status) in [
        ("GET /api/v1/nothing", "", 404),
        ("GET /nothing", "", 404),
        ("PUT /api/v1/tasks", "Content-Length: 0\r\n", 405),
        ("POST /api/v1/tasks", "Content-Length: 0\r\n", 415),
        ("POST /api/v1/tasks", "Content-Type: application/json\r\nContent-Length: 0\r\n", 400),
        ("GET /api/v1/tasks/%ff", "", 404),
        ("GET /api/v1/tasks?limit=%ff", "", 400),
        ("TRACE /api/v1/tasks", "", 405),
        ("QUERY /api/v1/tasks", "Content-Length: 0\r\n", 405),
        ("CONNECT x:1", "", 405),
    ] {
        let text =
            format!("{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{more}\r\n");
        let answer = exchange(port, text.as_bytes());
        assert_eq!(answers(&answer), [status], "{line}: {answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.to_ascii_lowercase().contains("content-type: application/problem+json"), "{line}: {head}");
        let problem: crate::model::Problem = serde_json::from_str(body).unwrap();
        assert_eq!(problem.status, status);
    }
}

#[test]
fn health_tells_whether_work_is_taken_on() {
    let rig = Rig::start();
    let get = |path: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        exchange(rig.port(), text.as_bytes())
    };
    assert!(get("/healthz").ends_with("ok\n") && get("/readyz").ends_with("ready\n"));
    *rig.backend.trouble.lock().unwrap() = Some("canary: the disk".into());
    let answer = get("/readyz");
    assert!(answers(&answer) == [503] && !answer.contains("canary"), "{answer}");
    assert!(get("/healthz").ends_with("ok\n"));
}
