//! TLS 1.3 with raw public keys (RFC 7250), pinned: no certificate, no name, no authority. Whoever listens
//! shows a key; whoever connects knows its SHA-256 beforehand, from the session that introduced the two, or
//! from its list of known nodes.
//!
//! rustls does the handshake, driven through its unbuffered interface; the records after it are `records`':
//! [`Tls::seal_to`] encrypts from the caller's slice into the caller's buffer, [`Tls::open_to`] decrypts what
//! [`Tls::space`] was filled with the same way.

mod config;
mod pinned;

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{CipherSuite, ConnectionTrafficSecrets, ServerConfig};

#[cfg(any(test, feature = "testing"))]
pub use self::config::client_config;
use self::config::pinning;
pub use self::config::{Key, nameless, server_config};
use self::pinned::RawKey;
pub use self::pinned::{PinnedKey, ShownKey};
pub use super::records::RECORD_BYTES_MAX;
use super::records::{Kernel, RecordHead, Records};

/// ALPN of control connections to a node.
pub const ALPN_CONTROL: &[u8] = b"carrack-control/1";
/// ALPN of data connections; see `hello`.
pub const ALPN_DATA: &[u8] = b"carrack-data/1";
/// Separates [`Tls::binding`] from whatever else is made of the same key.
const BINDING_CONTEXT: &str = "carrack 2026-11 binding of a data connection's hello to its TLS keys";

enum TlsState {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
    Established(Box<Records>),
    /// The handshake has failed.
    Failed,
}

/// One TLS connection's state, without its socket.
pub struct Tls {
    connection: TlsState,
    /// The connecting side's: the key that the listener shows.
    verifier: Option<Arc<PinnedKey<RawKey>>>,
    /// What both sides agreed on.
    agreed: Agreed,
    incoming: Vec<u8>,
    start: usize,
    end: usize,
    outgoing: Vec<u8>,
}

#[derive(Default)]
struct Agreed {
    #[cfg(test)]
    alpn: Option<Vec<u8>>,
    suite: Option<CipherSuite>,
    /// See [`Tls::binding`].
    binding: Option<[u8; 32]>,
}

/// What [`Tls::open`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// All complete records have been handed out; more bytes are needed.
    More,
    /// The peer has closed its side.
    Closed,
}

impl Tls {
    /// The connecting side. Without a pin any key is taken, and [`Tls::peer_pin`] tells which: for
    /// the first use of a node.
    ///
    /// # Errors
    /// When rustls refuses the configuration, which would be a bug.
    pub fn client(pin: Option<[u8; 32]>, alpn: &[&[u8]]) -> io::Result<Self> {
        let (config, verifier) = pinning(pin, alpn)?;
        let connection = UnbufferedClientConnection::new(Arc::new(config), nameless()?).map_err(io::Error::other)?;
        Ok(Self::new(TlsState::Client(Box::new(connection)), Some(verifier)))
    }

    /// The listening side, as [`server_config`] has it.
    ///
    /// # Errors
    /// When rustls refuses the configuration, which would be a bug.
    pub fn server(config: impl Into<Arc<ServerConfig>>) -> io::Result<Self> {
        let connection = UnbufferedServerConnection::new(config.into()).map_err(io::Error::other)?;
        Ok(Self::new(TlsState::Server(Box::new(connection)), None))
    }

    fn new(connection: TlsState, verifier: Option<Arc<PinnedKey<RawKey>>>) -> Self {
        Self {
            connection,
            verifier,
            agreed: Agreed::default(),
            incoming: vec![0; 2 * RECORD_BYTES_MAX],
            start: 0,
            end: 0,
            outgoing: Vec::new(),
        }
    }

    /// More room for records that wait to be opened, in bytes: fewer reads.
    pub fn reserve(&mut self, bytes: usize) {
        if self.incoming.len() < bytes {
            self.incoming.resize(bytes, 0);
        }
    }

    /// The protocol that both sides agreed on.
    #[cfg(test)]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.agreed.alpn.as_deref()
    }

    /// What this connection and no other is known by, at both its ends and nowhere else, once the handshake is done:
    /// made of the connecting side's first key.
    pub fn binding(&self) -> Option<&[u8; 32]> {
        self.agreed.binding.as_ref()
    }

    /// The cipher suite's name.
    pub fn cipher(&self) -> String {
        match self.agreed.suite {
            Some(CipherSuite::TLS13_AES_128_GCM_SHA256) => "TLS13_AES_128_GCM_SHA256".into(),
            Some(CipherSuite::TLS13_AES_256_GCM_SHA384) => "TLS13_AES_256_GCM_SHA384".into(),
            Some(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256) => "TLS13_CHACHA20_POLY1305_SHA256".into(),
            other => format!("{other:?}"),
        }
    }

    /// SHA-256 of the key that the listener showed.
    pub fn peer_pin(&self) -> Option<[u8; 32]> {
        let verifier = self.verifier.as_ref()?;
        verifier.shown()
    }

    /// Runs the handshake over a blocking socket, whose timeouts bound it.
    ///
    /// # Errors
    /// Those of the socket; `PermissionDenied` when the listener shows another key than the pinned one, or one that it
    /// does not have; `InvalidData` for whatever else is wrong with what the peer says.
    pub fn handshake(&mut self, mut socket: impl Read + Write) -> io::Result<()> {
        loop {
            let step = self.step()?;
            if !self.outgoing.is_empty() && step != TlsStep::Encoded {
                socket.write_all(&self.outgoing)?;
                self.outgoing.clear();
            }
            match step {
                TlsStep::Ready => return self.establish(),
                TlsStep::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
                TlsStep::Encoded | TlsStep::Transmit => {}
                TlsStep::Starved => {
                    let read = socket.read(self.space())?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.filled(read);
                }
            }
        }
    }

    fn step(&mut self) -> io::Result<TlsStep> {
        let incoming = &mut self.incoming[self.start..self.end];
        let (discard, step) = match &mut self.connection {
            TlsState::Client(connection) => {
                let given = given(connection, incoming);
                handshake_step(connection.process_tls_records(&mut incoming[..given]), &mut self.outgoing)
            }
            TlsState::Server(connection) => {
                let given = given(connection, incoming);
                handshake_step(connection.process_tls_records(&mut incoming[..given]), &mut self.outgoing)
            }
            TlsState::Established(_) => (0, Ok(TlsStep::Ready)),
            TlsState::Failed => (0, Ok(TlsStep::Closed)),
        };
        self.start += discard;
        let waits = match &self.connection {
            TlsState::Client(connection) => connection.is_handshaking(),
            TlsState::Server(connection) => connection.is_handshaking(),
            _ => false,
        };
        // A server may send before the client has finished; what it waits for may be here already.
        let more = Records::is_complete(&self.incoming[self.start..self.end]);
        match step? {
            TlsStep::Ready if waits => Ok(if more { TlsStep::Encoded } else { TlsStep::Starved }),
            // What is to be sent goes together with what comes of the rest.
            TlsStep::Transmit if waits && more => Ok(TlsStep::Encoded),
            TlsStep::Starved if more && discard > 0 => Ok(TlsStep::Encoded),
            step => Ok(step),
        }
    }

    /// Takes over from rustls once the handshake is done and all that it has read is taken.
    fn establish(&mut self) -> io::Result<()> {
        let (secrets, kernel, binding) = match std::mem::replace(&mut self.connection, TlsState::Failed) {
            TlsState::Client(connection) => {
                self.agreed = agreed(&connection);
                let (secrets, kernel) = connection.dangerous_into_kernel_connection().map_err(tls_error)?;
                let binding = binding(&secrets.tx.1)?;
                (secrets, Kernel::Client(kernel), binding)
            }
            TlsState::Server(connection) => {
                self.agreed = agreed(&connection);
                let (secrets, kernel) = connection.dangerous_into_kernel_connection().map_err(tls_error)?;
                let binding = binding(&secrets.rx.1)?;
                (secrets, Kernel::Server(kernel), binding)
            }
            other => {
                self.connection = other;
                return Ok(());
            }
        };
        self.agreed.binding = Some(binding);
        self.connection = TlsState::Established(Box::new(Records::new(&secrets, kernel)?));
        Ok(())
    }

    pub(super) fn records(&mut self) -> io::Result<&mut Records> {
        match &mut self.connection {
            TlsState::Established(records) => Ok(records),
            _ => Err(io::Error::new(io::ErrorKind::NotConnected, "the TLS handshake is not done")),
        }
    }

    /// Where encrypted bytes from the socket go; then call [`Tls::filled`].
    pub fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.incoming.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.incoming[self.end..]
    }

    /// So many bytes were put into [`Tls::space`].
    pub fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    /// Hands out the payload of every complete record that has been filled in.
    ///
    /// # Errors
    /// `InvalidData` when a record was altered, or the peer misbehaves.
    pub fn open(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<ReadState> {
        let mut record = vec![0; RECORD_BYTES_MAX];
        loop {
            match self.open_to(&mut record)? {
                (0, opened) => return Ok(opened),
                (payload, _) => sink(&record[..payload]),
            }
        }
    }

    /// Whether something can be opened without more bytes from the socket.
    pub fn holds_record(&self) -> bool {
        Records::is_complete(&self.incoming[self.start..self.end])
    }

    /// Puts the payload of the next complete record into the beginning of `out`, which has room for
    /// [`RECORD_BYTES_MAX`], and says how many bytes that is: none when more bytes are needed, or the
    /// peer has closed its side.
    ///
    /// # Errors
    /// `InvalidData` when a record was altered, or the peer misbehaves.
    pub fn open_to(&mut self, out: &mut [u8]) -> io::Result<(usize, ReadState)> {
        let TlsState::Established(records) = &mut self.connection else {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the TLS handshake is not done"));
        };
        loop {
            match records.open(&self.incoming[self.start..self.end], out)? {
                RecordHead::Data { taken, payload } => {
                    self.start += taken;
                    if payload > 0 {
                        return Ok((payload, ReadState::More));
                    }
                }
                RecordHead::Other(taken) => self.start += taken,
                RecordHead::Incomplete => return Ok((0, ReadState::More)),
                RecordHead::Closed => return Ok((0, ReadState::Closed)),
            }
        }
    }

    /// Encrypts `plain` and appends the records to `out`.
    ///
    /// # Errors
    /// When the handshake is not done.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        out.resize(start + Records::sealed_bytes(plain.len()), 0);
        let sealed = self.records().and_then(|records| records.seal(plain, &mut out[start..]));
        out.truncate(start + *sealed.as_ref().unwrap_or(&0));
        sealed.map(|_| ())
    }

    /// Says that nothing more comes: appends the record to `out`.
    ///
    /// # Errors
    /// When the handshake is not done.
    pub fn seal_close(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        out.resize(start + Records::sealed_bytes(2), 0);
        let sealed = self.records().and_then(|records| records.seal_close(&mut out[start..]));
        out.truncate(start + *sealed.as_ref().unwrap_or(&0));
        sealed.map(|_| ())
    }

    /// Encrypts `plain` into records at the beginning of `out`, which grows where it has to, and says
    /// how many bytes they are.
    ///
    /// # Errors
    /// When the handshake is not done.
    pub fn seal_to(&mut self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        let room = Records::sealed_bytes(plain.len());
        if out.len() < room {
            out.resize(room, 0);
        }
        self.records()?.seal(plain, out)
    }
}

fn binding(connecting: &ConnectionTrafficSecrets) -> io::Result<[u8; 32]> {
    let (key, iv) = match connecting {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
        _ => return Err(io::Error::other("rustls has agreed on a cipher that was not offered")),
    };
    Ok(*blake3::Hasher::new_derive_key(BINDING_CONTEXT).update(key.as_ref()).update(iv.as_ref()).finalize().as_bytes())
}

fn agreed(connection: &rustls::CommonState) -> Agreed {
    Agreed {
        binding: None,
        #[cfg(test)]
        alpn: connection.alpn_protocol().map(<[u8]>::to_vec),
        suite: connection.negotiated_cipher_suite().map(|suite| suite.suite()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsStep {
    /// The handshake is over, and data may pass.
    Ready,
    /// More bytes from the peer are needed.
    Starved,
    /// Something was put into the outgoing buffer.
    Encoded,
    /// The outgoing buffer is to be sent now.
    Transmit,
    /// The peer has closed.
    Closed,
}

/// How much of what has come is rustls' to see: one record at a time, and none once the handshake is done. A change of
/// keys behind it is ours to answer.
fn given(connection: &rustls::CommonState, incoming: &[u8]) -> usize {
    if connection.is_handshaking() { Records::first_bytes(incoming) } else { 0 }
}

fn handshake_step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    outgoing: &mut Vec<u8>,
) -> (usize, io::Result<TlsStep>) {
    let step = match status.state {
        Err(error) => Err(tls_error(error)),
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            encode(outgoing, |out| data.encode(out)).map(|()| TlsStep::Encoded)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(TlsStep::Transmit)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(TlsStep::Starved),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(TlsStep::Ready),
        Ok(ConnectionState::ReadTraffic(_)) => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the peer sent data before the handshake was done"))
        }
        Ok(_) => Ok(TlsStep::Closed),
    };
    (status.discard, step)
}

fn encode(outgoing: &mut Vec<u8>, mut encoder: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) -> io::Result<()> {
    let start = outgoing.len();
    outgoing.resize(start + RECORD_BYTES_MAX, 0);
    let encoded = encoder(&mut outgoing[start..]).map_err(io::Error::other)?;
    outgoing.truncate(start + encoded);
    Ok(())
}

fn tls_error(error: rustls::Error) -> io::Error {
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::BadSignature) => {
            io::Error::new(io::ErrorKind::PermissionDenied, "the listener shows a key that it does not have")
        }
        rustls::Error::InvalidCertificate(_) => {
            io::Error::new(io::ErrorKind::PermissionDenied, "the listener shows another key than the pinned one")
        }
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair(pin: Option<[u8; 32]>, key: &Key) -> (io::Result<Tls>, io::Result<Tls>) {
        let (near, far) = UnixStream::pair().unwrap();
        let server_key = key.clone();
        let server = std::thread::spawn(move || {
            let mut tls = Tls::server(server_config(&server_key, &[ALPN_DATA])?)?;
            tls.handshake(&far)?;
            Ok(tls)
        });
        let client = Tls::client(pin, &[ALPN_DATA]).and_then(|mut tls| {
            tls.handshake(&near)?;
            Ok(tls)
        });
        drop(near);
        (client, server.join().unwrap())
    }

    #[test]
    fn pinned_key_is_accepted_and_records_pass() {
        let key = Key::from_pkcs8(Key::generate().unwrap().pkcs8()).unwrap();
        let (client, server) = pair(Some(key.pin), &key);
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        assert_eq!(server.alpn(), Some(ALPN_DATA));
        assert_eq!(client.peer_pin(), Some(key.pin));
        let plain: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let mut sealed = Vec::new();
        client.seal(&plain, &mut sealed).unwrap();
        let mut received = Vec::new();
        for part in sealed.chunks(10_000) {
            server.space()[..part.len()].copy_from_slice(part);
            server.filled(part.len());
            server.open(&mut |piece| received.extend_from_slice(piece)).unwrap();
        }
        assert_eq!(received, plain);
    }

    #[test]
    fn another_key_is_refused() {
        let key = Key::generate().unwrap();
        let (client, _) = pair(Some([7; 32]), &key);
        assert_eq!(client.err().map(|error| error.kind()), Some(io::ErrorKind::PermissionDenied));
    }

    #[test]
    fn altered_record_is_refused() {
        let key = Key::generate().unwrap();
        let (client, server) = pair(Some(key.pin), &key);
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        let mut sealed = Vec::new();
        client.seal(b"some bytes", &mut sealed).unwrap();
        sealed[8] ^= 1;
        server.space()[..sealed.len()].copy_from_slice(&sealed);
        server.filled(sealed.len());
        assert!(server.open(&mut |_| {}).is_err());
    }
}
