//! A listener that shows the right public key, which anybody can record, and does not have the private one. TLS'
//! verifiers are two: one compares the key with the pin, the other checks that whoever shows it can sign with it. Each
//! link is shown here to use the second, too.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use carrack_core::report::ErrorCode;
use carrack_core::wire::control::raw::{Ask, Dial};
use carrack_engine::testing::net::dial_rule::{DialRule, Network};
use carrack_engine::testing::net::tls::{ALPN_CONTROL, ALPN_DATA, Key, ReadState, Tls, server_config};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::{CertifiedKey, SigningKey};

use crate::fake_node::{FakeNode, pull};
use crate::sandbox::Sandbox;
use crate::session::Session;
use crate::watch::Watch;

fn signing(key: &Key) -> Arc<dyn SigningKey> {
    any_supported_type(&PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.pkcs8().to_vec()))).unwrap()
}

/// A listener's TLS that shows `shown` and signs with `own`.
fn tls(shown: &Key, own: &Key) -> Tls {
    let public = signing(shown).public_key().unwrap().to_vec();
    let certified = CertifiedKey::new(vec![CertificateDer::from(public)], signing(own));
    let mut config = server_config(own, &[ALPN_CONTROL, ALPN_DATA]).unwrap();
    config.cert_resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified)));
    Tls::server(config).unwrap()
}

/// What a client says after the handshake; an error when it does not finish that.
fn hear(socket: &TcpStream, mut tls: Tls) -> io::Result<Vec<u8>> {
    tls.handshake(socket)?;
    let mut said = Vec::new();
    while tls.open(&mut |piece| said.extend_from_slice(piece))? == ReadState::More && said.is_empty() {
        let read = (&mut &*socket).read(tls.space())?;
        if read == 0 {
            break;
        }
        tls.filled(read);
    }
    Ok(said)
}

/// Takes one connection, as whoever has `own` and shows `shown`.
fn listen(shown: Key, own: Key) -> (String, JoinHandle<io::Result<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let take = move || hear(&listener.accept().unwrap().0, tls(&shown, &own));
    (address, std::thread::Builder::new().name("impostor".into()).spawn(take).unwrap())
}

/// The command's control connection to a node: pinned, and at the first meeting. It says nothing: no token, no path.
#[test]
fn control_connection_to_impostor_is_refused() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    for is_impostor in [false, true] {
        let (tell, told) = std::sync::mpsc::channel();
        let node = FakeNode::raw(move |socket, key| {
            let own = if is_impostor { Key::generate().unwrap() } else { key.clone() };
            tell.send(hear(&socket, tls(&key, &own))).unwrap();
        });
        let report = pull(&node, "/f", &sandbox);
        node.join();
        let error = report.error.unwrap();
        let heard = told.recv().unwrap();
        if is_impostor {
            assert_eq!(error.code, ErrorCode::KeyMismatch, "{error:?}");
            assert!(error.message().contains("a key that it does not have"), "{error:?}");
            assert!(heard.is_err(), "{heard:?}");
        } else {
            // The same listener with its own key hears the greeting: it is the key that is refused.
            assert!(!heard.unwrap().is_empty());
        }
    }
    sandbox.assert_untouched();
}

/// Data connections that the agent of a command or of an ssh host makes (direct), and that a node makes back to
/// whoever listens (reverse).
#[test]
fn data_connection_to_impostor_is_refused() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let told = vec![Network::parse("127.0.0.1").unwrap()];
    let rule = DialRule { listens: "127.0.0.1:1".parse().unwrap(), only_who_asks: false, told };
    for reverse in [false, true] {
        for is_impostor in [false, true] {
            let root = sandbox.root();
            let mut dialer = if reverse { Session::at_node(&root, rule.clone()) } else { Session::start(&root) };
            let key = Key::generate().unwrap();
            let own = if is_impostor { Key::generate().unwrap() } else { key.clone() };
            let (address, listener) = listen(key.clone(), own);
            let session = Some(dialer.key().into());
            let (addresses, pin) = (vec![address], key.pin.to_vec());
            let dial = Dial { session, addresses, pin, count: 1, timeout_ms: 5000, ..Dial::default() };
            let dialed = dialer.request(Ask::Dial(dial));
            let heard = listener.join().unwrap();
            assert_eq!(dialed.is_err(), is_impostor, "reverse {reverse}: {dialed:?}");
            // The proof of the session's secret goes to nobody else.
            assert_eq!(heard.is_err(), is_impostor, "reverse {reverse}: {heard:?}");
            dialer.assert_alive();
            dialer.leave().unwrap();
        }
    }
    sandbox.assert_untouched();
}
