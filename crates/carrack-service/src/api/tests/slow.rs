//! Clients that are slow, or many: each is cut off, and what it held is there for others.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::{Rig, add_endpoint, copy, endpoint, submit};
use crate::api::Patience;
use crate::api::state::STREAMS_AT_ONCE;
use crate::client::{Call, Client};
use crate::ledger::NewEvent;
use crate::model::{EventKind, ItemState, Role, TaskItem, Timer, TimerSchedule, TimerState, Whoami};

const SHORT: Duration = Duration::from_secs(1);
/// On the slowest machine.
const LONG: Duration = Duration::from_secs(30);

fn connect(rig: &Rig, said: &str) -> UnixStream {
    let mut socket = UnixStream::connect(rig.socket()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket.write_all(said.as_bytes()).unwrap();
    socket
}

/// What comes until the connection ends; panics if it does not end.
fn rest(socket: &mut UnixStream) -> String {
    let mut bytes = Vec::new();
    match socket.read_to_end(&mut bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the connection stays open after {LONG:?}")
        }
        // A reset says the same as an end.
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

pub(super) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < LONG, "waited for nothing: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn body_that_trickles_is_cut_off() {
    let rig = Rig::patient(Patience { request: SHORT, ..Patience::default() });
    let head =
        "POST /api/v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n";
    let began = Instant::now();
    let mut socket = connect(&rig, head);
    let mut trickle = socket.try_clone().unwrap();
    // A byte now and then keeps no request alive.
    let trickling = std::thread::spawn(move || {
        while began.elapsed() < LONG && trickle.write_all(b" ").is_ok() {
            std::thread::sleep(SHORT / 20);
        }
    });
    let answer = rest(&mut socket);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"too-slow\""), "{answer}");
    let took = began.elapsed();
    assert!(took >= SHORT && took < LONG, "{took:?}");
    drop(socket);
    trickling.join().unwrap();
    assert_eq!(rig.local().get::<Whoami>("/whoami").unwrap().user, "local");
}

#[test]
fn client_that_writes_all_of_a_body_before_it_reads_learns_why_it_was_refused() {
    let rig = Rig::start();
    let bytes = vec![b' '; 4 << 20];
    let head = |more: &str| {
        format!(
            "PUT /api/v1/uploads/none/blocks/0 HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{more}\r\n",
            bytes.len()
        )
    };
    let mut socket = connect(&rig, &head(""));
    socket.write_all(&bytes).unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
    // The connection is as good as before.
    socket.write_all(head("Connection: close\r\n").as_bytes()).unwrap();
    socket.write_all(&bytes).unwrap();
    assert_eq!(rest(&mut socket).matches("HTTP/1.1 404").count(), 1);
    // Who asks first is answered at once, and sends nothing.
    let mut socket = connect(&rig, &head("Expect: 100-continue\r\n"));
    let answer = rest(&mut socket);
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn head_that_trickles_is_cut_off_and_so_is_a_client_without_a_request() {
    let rig = Rig::patient(Patience { head: SHORT, ..Patience::default() });
    for said in ["", "GET /api/v1/whoami HTTP/1.1\r\nHost: x\r\n", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let began = Instant::now();
        let mut socket = connect(&rig, said);
        let answer = rest(&mut socket);
        assert!(began.elapsed() >= SHORT / 2, "{said:?}: {answer}");
        // One whole request is answered, and then another is waited for.
        assert_eq!(answer.contains("200 OK"), said.ends_with("\r\n\r\n"), "{said:?}: {answer}");
    }
}

/// More than the buffers of a connection hold.
fn fill(rig: &Rig, ann: &Client) -> String {
    let item = |number: u32| TaskItem {
        pair: 0,
        path: format!("{number}/{}", "a".repeat(1000)),
        kind: "file".into(),
        state: ItemState::Done,
        size: 1,
        digest: None,
        failure: None,
        differs: Vec::new(),
    };
    *rig.backend.items.lock().unwrap() = (0..20_000).map(item).collect();
    add_endpoint(ann, &endpoint("lab", &[])).unwrap();
    let task = submit(ann, &copy("@lab:/a", "@lab:/b")).unwrap();
    for number in 0..300 {
        let timer = Timer {
            id: format!("timer{number}"),
            owner: "ann".into(),
            label: None,
            schedule: TimerSchedule::default(),
            task: copy("@lab:/a", "@lab:/b"),
            state: TimerState::Waiting,
            next_run: None,
            runs: 0,
            last_task: None,
            made: task.submitted,
            version: 1,
        };
        let event = NewEvent {
            kind: EventKind::EndpointChanged,
            owner: "ann".into(),
            task: None,
            subject: None,
            text: "a".repeat(20_000),
            detail: json!({}),
        };
        rig.ledger.add_timer(&timer, &event).unwrap();
    }
    task.id
}

/// A reader who takes nothing holds no stream, no memory and no thread for longer than is patient.
#[test]
fn reader_that_takes_nothing_gives_its_stream_back() {
    let rig = Rig::patient(Patience { reader: SHORT, ..Patience::default() });
    let ann = rig.user("ann", Role::User);
    let task = fill(&rig, &ann);
    let token = rig.token("ann", None).token;
    let free = || rig.api().streams.left();
    for (path, accept) in [
        ("/events".to_owned(), "text/event-stream"),
        (format!("/tasks/{task}/items"), "application/x-ndjson"),
        (format!("/tasks/{task}/items"), "text/csv"),
    ] {
        let head = format!(
            "GET /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nAccept: {accept}\r\n\r\n",
            token.reveal()
        );
        let began = Instant::now();
        let sockets: Vec<UnixStream> = (0..8).map(|_| connect(&rig, &head)).collect();
        wait_until("the streams begin", || free() + 8 <= STREAMS_AT_ONCE || began.elapsed() >= SHORT);
        wait_until("the streams are given back", || free() == STREAMS_AT_ONCE);
        assert!(began.elapsed() >= SHORT, "{path} {accept}: they never waited");
        for mut socket in sockets {
            let got = rest(&mut socket);
            assert!(got.starts_with("HTTP/1.1 200") && !got.ends_with("0\r\n\r\n"), "{path} {accept}: it came whole");
        }
    }
    assert_eq!(ann.get::<Whoami>("/whoami").unwrap().user, "ann");
}

/// Whoever opens connections without end keeps nobody else out.
#[test]
fn flood_of_connections_leaves_room_for_others() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    let (port, token) = (rig.port(), rig.token("ann", None).token);
    let other =
        Client::new(crate::client::Target::Loopback { address: port.ip(), port: port.port() }, Some(token)).unwrap();
    let open: Vec<UnixStream> = (0..300).map(|_| connect(&rig, "")).collect();
    open.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
    // Who has a place is told nothing, and who has none is cut off.
    let refused = || open.iter().filter(|socket| matches!((&**socket).read(&mut [0; 1]), Ok(0))).count();
    wait_until("those beyond 256 are cut off", || refused() == 300 - 256);
    // Whoever asks without having a place is told why, and when to come again.
    let mut beyond = connect(&rig, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    let told = rest(&mut beyond);
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("\"too-many\""), "{told}");
    assert!(told.to_ascii_lowercase().contains("retry-after: 5"), "{told}");
    // By another way somebody else is served at once.
    assert_eq!(other.get::<Whoami>("/whoami").unwrap().user, "ann");
    drop(open);
    wait_until("places are given back", || ann.call(&Call::get("/whoami")).is_ok());
}
