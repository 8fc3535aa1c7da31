//! Bodies of requests: who may send how much, and that nobody fills the memory of the service.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::rig::{Rig, add_endpoint, endpoint};
use super::slow::wait_until;
use crate::api::documents::BODIES_BUDGET;
use crate::model::{Role, Whoami};

fn send(rig: &Rig, route: &str, length: usize, token: Option<&str>) -> UnixStream {
    let mut socket = UnixStream::connect(rig.socket()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(
        socket,
        "POST /api/v1{route} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{token}\r\n"
    )
    .unwrap();
    socket
}

/// What is answered to a head alone: a status, or that the body may come.
fn status(socket: &mut UnixStream) -> u16 {
    let mut line = [0; 12];
    socket.read_exact(&mut line).unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

#[test]
fn body_is_not_asked_for_where_it_is_too_long_or_its_sender_may_not() {
    let rig = Rig::start();
    for (user, role) in [("vic", Role::Viewer), ("ann", Role::User)] {
        rig.user(user, role);
    }
    let token = |user: &str| rig.token(user, None).token.reveal().to_owned();
    let (vic, ann) = (token("vic"), token("ann"));
    for (route, length, token, expected) in [
        ("/login", 5 << 10, None, 413),
        ("/login", 4 << 10, None, 100),
        ("/tasks", 16 << 20, Some(&vic), 403),
        ("/timers", 16 << 20, Some(&vic), 403),
        ("/endpoints/none/uploads", 4 << 20, Some(&vic), 403),
        ("/endpoints/none/files/du", 4 << 20, Some(&vic), 403),
        ("/tasks", 16 << 20, Some(&ann), 100),
        ("/tasks", (16 << 20) + 1, Some(&ann), 413),
        ("/users", 300 << 10, Some(&ann), 413),
        ("/endpoints/none/uploads", (4 << 20) + 1, Some(&ann), 413),
    ] {
        let mut socket = send(&rig, route, length, token.map(String::as_str));
        assert_eq!(status(&mut socket), expected, "{route} of {length} bytes");
    }
}

#[test]
fn bodies_of_one_user_leave_memory_for_others_and_give_theirs_back() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    rig.user("bob", Role::User);
    add_endpoint(&ann, &endpoint("lab", &[])).unwrap();
    let token = |user: &str| rig.token(user, None).token.reveal().to_owned();
    let (of_ann, of_bob) = (token("ann"), token("bob"));
    let route = "/endpoints/lab/files/du";
    let mut open: Vec<UnixStream> = (0..12).map(|_| send(&rig, route, 4 << 20, Some(&of_ann))).collect();
    let told: Vec<u16> = open.iter_mut().map(status).collect();
    let let_in = told.iter().filter(|status| **status == 100).count();
    assert!(let_in >= 2 && told.iter().all(|status| matches!(status, 100 | 429)) && let_in < 12, "{told:?}");
    assert!(rig.api().bodies.left() >= BODIES_BUDGET / 2 - (16 << 20), "{}", rig.api().bodies.left());
    // Somebody else has room at once, for a large one, too.
    assert_eq!(status(&mut send(&rig, route, 4 << 20, Some(&of_bob))), 100);
    drop(open);
    wait_until("all is given back", || rig.api().bodies.left() == BODIES_BUDGET);
    assert_eq!(ann.get::<Whoami>("/whoami").unwrap().user, "ann");
}

#[test]
fn document_of_countless_small_values_is_too_large() {
    let rig = Rig::start();
    rig.user("ann", Role::User);
    let token = rig.token("ann", None).token.reveal().to_owned();
    let body = format!("{{\"pairs\": [{}0]}}", "0,".repeat(450_000));
    let mut socket = send(&rig, "/tasks", body.len(), Some(&token));
    assert_eq!(status(&mut socket), 100);
    let mut rest = [0; 13];
    socket.read_exact(&mut rest).unwrap();
    socket.write_all(body.as_bytes()).unwrap();
    let mut more = String::new();
    while !more.contains("HTTP/1.1 413") {
        let mut some = [0; 256];
        let count = socket.read(&mut some).unwrap();
        assert!(count > 0, "{more}");
        more.push_str(&String::from_utf8_lossy(&some[..count]));
    }
}
