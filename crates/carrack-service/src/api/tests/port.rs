//! The API on a node's port: TLS with a pinned key beside the node's own protocol, strangers bounded, admitted clients
//! staying.

use std::time::{Duration, Instant};

use carrack_core::tuning::Tuning;

use super::rig::{Rig, add_endpoint, endpoint};
use crate::client::{Client, ClientError, Target};
use crate::model::{Role, Whoami};

fn target(rig: &Rig, tuning: Tuning, pin: Option<[u8; 32]>) -> Target {
    let address = rig.port_with(tuning);
    Target::Tls { host: "127.0.0.1".into(), port: address.port(), pin }
}

#[test]
fn client_takes_the_pinned_key_and_no_other() {
    let rig = Rig::start();
    rig.user("ann", Role::User);
    let token = rig.token("ann", None).token;
    let fingerprint = rig.handle.as_ref().unwrap().fingerprint().unwrap();
    let client = |pin| Client::new(target(&rig, Tuning::DEFAULT, pin), Some(token.clone())).unwrap();
    assert_eq!(client(Some(fingerprint)).get::<Whoami>("/whoami").unwrap().user, "ann");
    let unknown = client(None).get::<Whoami>("/whoami").unwrap_err();
    assert!(matches!(unknown, ClientError::UnknownKey { shown, .. } if shown == fingerprint), "{unknown:?}");
    let changed = client(Some([7; 32])).get::<Whoami>("/whoami").unwrap_err();
    assert!(matches!(changed, ClientError::ChangedKey { shown, .. } if shown == fingerprint), "{changed:?}");
}

/// One deadline for strangers, whatever they speak; who shows a token stays beyond it.
#[test]
fn stranger_is_cut_off_and_admitted_client_stays() {
    let rig = Rig::start();
    let ann = rig.user("ann", Role::User);
    let (token, limit) = (rig.token("ann", None).token, Duration::from_secs(1));
    let tuning = Tuning { authenticate_timeout: limit, ..Tuning::DEFAULT };
    let pin = rig.handle.as_ref().unwrap().fingerprint();
    let (of_tls, address) = (target(&rig, tuning, pin), rig.port());
    let clear = Target::Loopback { address: address.ip(), port: address.port() };
    for target in [of_tls, clear] {
        let client = Client::new(target, Some(token.clone())).unwrap();
        let mut stream = client.events(0, None);
        let began = Instant::now();
        while began.elapsed() < limit * 2 {
            stream.next_within(limit / 4).unwrap();
        }
        add_endpoint(&ann, &endpoint(&format!("lab{}", began.elapsed().as_nanos()), &[])).unwrap();
        assert!(stream.next_within(Duration::from_secs(30)).unwrap().is_some());
        assert_eq!(stream.connections(), 1, "the stream stood all the time");
    }
    // Somebody who says half a request, one byte after the other.
    let silent = std::net::TcpStream::connect(address).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let began = Instant::now();
    std::io::Write::write_all(&mut &silent, b"GET /api/v1/whoami HTTP/1.1\r\nHost: x\r\n").unwrap();
    let mut rest = Vec::new();
    // A reset says the same as an end.
    let _ = std::io::Read::read_to_end(&mut &silent, &mut rest);
    assert!(began.elapsed() >= limit / 2 && began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}
