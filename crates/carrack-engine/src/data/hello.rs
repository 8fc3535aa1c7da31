//! The first words on a data connection: which session it belongs to, and proof of that, in both directions.
//!
//! The dialer sends the session's identifier, the stream's number and a nonce; the listener answers with a nonce and a
//! MAC; the dialer with another MAC. All MACs are keyed BLAKE3 under the session's secret, over everything said and who
//! says it, so that they can be neither guessed, nor replayed, nor reflected.
//!
//! On TLS the listener has proved itself already, by the key that the dialer was told to expect, and what nonces are
//! for the handshake has done. So there the dialer sends its MAC with its first words, over what ties them to this TLS
//! connection, and data right behind: a round trip less.
//!
//! In the clear, four bytes come first that no TLS connection starts with, and the keys of the frames' MACs are
//! derived from the same words. Whoever has a node dial chooses the address, the session's identifier and the
//! number, and could have the node say them to another service. So the dialer's nonce goes first, and they are
//! masked by what is made of it: nobody can choose what goes out.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use carrack_core::ids::StreamId;
use carrack_core::request::Encrypt;
use carrack_core::wire::control::SessionKey;

use crate::data::mac::Mac;
use crate::data::stream::{Connection, Protection};
use crate::net::opening::{OpenedConnection, ProtocolOpening, open};
use crate::net::socket::Socket;
use crate::net::tls::{self, ALPN_DATA, Key, Tls};

/// What a connection in the clear starts with.
pub const CLEAR_MAGIC: [u8; 4] = *b"CRK1";
const HELLO_BYTES: usize = 16 + 2 + 32;
/// What nonce and the rest of a masked hello are told apart by.
const NONCE_BYTES: usize = 32;
/// Separates the mask from whatever else is made of a nonce.
const MASK_CONTEXT: &str = "carrack 2026-11 mask of a data connection's hello in the clear";

/// A connection whose handshake is under way.
pub struct Wire {
    socket: Arc<Socket>,
    tls: Option<Box<Tls>>,
    early: Vec<u8>,
}

impl Wire {
    /// Over TLS, whose handshake is done, or in the clear.
    pub fn new(socket: Arc<Socket>, tls: Option<Tls>) -> Self {
        Self { socket, tls: tls.map(Box::new), early: Vec::new() }
    }

    /// Of whoever listens, after one of the [`openings`].
    ///
    /// # Errors
    /// `InvalidData` where the connection is open for something else.
    pub fn accepted(socket: Arc<Socket>, opening: &ProtocolOpening, opened: OpenedConnection) -> io::Result<Self> {
        match (opened, opening) {
            (OpenedConnection::Records(tls), _) => Ok(Self { tls: Some(tls), ..Self::new(socket, None) }),
            (OpenedConnection::Clear, ProtocolOpening::Clear(first)) if **first == CLEAR_MAGIC => {
                Ok(Self::new(socket, None))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a connection that is open for something else")),
        }
    }

    /// In the clear, masked.
    fn write_hello(&mut self, hello: &[u8; HELLO_BYTES]) -> io::Result<()> {
        let mut masked = *hello;
        masked.rotate_right(NONCE_BYTES);
        mask(&mut masked);
        self.write_all(&masked)
    }

    fn read_hello(&mut self, hello: &mut [u8; HELLO_BYTES]) -> io::Result<()> {
        self.read_exact(hello)?;
        if self.tls.is_none() {
            mask(hello);
            hello.rotate_left(NONCE_BYTES);
        }
        Ok(())
    }

    fn read_exact(&mut self, out: &mut [u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return (&*self.socket).read_exact(out);
        };
        loop {
            let early = &mut self.early;
            let opened = tls.open(&mut |piece| early.extend_from_slice(piece))?;
            if early.len() >= out.len() {
                out.copy_from_slice(&early[..out.len()]);
                early.drain(..out.len());
                return Ok(());
            }
            if opened == tls::ReadState::Closed {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let read = (&*self.socket).read(tls.space())?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            tls.filled(read);
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return (&*self.socket).write_all(bytes);
        };
        let mut sealed = Vec::new();
        tls.seal(bytes, &mut sealed)?;
        (&*self.socket).write_all(&sealed)
    }

    /// Says that nothing more comes, and waits until the peer has heard it: closed earlier, what was said last could be
    /// lost with what the peer has said and nobody has read.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn part(mut self) -> io::Result<()> {
        let mut sealed = Vec::new();
        self.tls.as_mut().map_or(Ok(()), |tls| tls.seal_close(&mut sealed))?;
        (&*self.socket).write_all(&sealed)?;
        match &*self.socket {
            Socket::Tcp(socket) => socket.shutdown(Shutdown::Write)?,
            Socket::Unix(socket) => socket.shutdown(Shutdown::Write)?,
        }
        while (&*self.socket).read(&mut [0; 4096])? > 0 {}
        Ok(())
    }

    /// What the dialer's proof is bound to, where it comes unasked.
    fn binding(&self) -> Option<[u8; 32]> {
        self.tls.as_ref()?.binding().copied()
    }

    fn into_connection(self, number: StreamId, mac_key: [u8; 32]) -> Connection {
        let protection = match self.tls {
            Some(tls) => Protection::Tls(tls),
            None => Protection::Mac(Mac::new(mac_key)),
        };
        Connection { socket: self.socket, protection, early: self.early, number }
    }
}

impl Read for Wire {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(first) = out.first_chunk_mut::<1>() else { return Ok(0) };
        self.read_exact(first).map(|()| 1)
    }

    fn read_exact(&mut self, out: &mut [u8]) -> io::Result<()> {
        Self::read_exact(self, out)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Masks what comes after the nonce, or takes the mask off.
fn mask(hello: &mut [u8; HELLO_BYTES]) {
    let (nonce, rest) = hello.split_at_mut(NONCE_BYTES);
    let mask = blake3::derive_key(MASK_CONTEXT, nonce);
    rest.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}

/// Everything said, from which MACs and keys are made.
struct Transcript {
    hello: [u8; HELLO_BYTES],
    listener_nonce: [u8; 32],
}

impl Transcript {
    fn mac(&self, key: &SessionKey, purpose: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&key.secret);
        hasher.update(&self.hello).update(&self.listener_nonce).update(purpose);
        hasher.finalize()
    }

    fn number(&self) -> StreamId {
        StreamId(u16::from_be_bytes([self.hello[16], self.hello[17]]))
    }
}

/// The dialer's proof on a TLS connection, over its words and what they are bound to.
fn bound_mac(key: &SessionKey, hello: &[u8; HELLO_BYTES], binding: &[u8; 32]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(&key.secret);
    hasher.update(hello).update(binding).update(b"carrack dialer, bound");
    hasher.finalize()
}

/// The connecting side's part, on a fresh socket. Also tells the cipher; empty in the clear.
///
/// # Errors
/// Those of the socket; `PermissionDenied` when the listener does not prove who it is.
pub fn dial(
    socket: Arc<Socket>,
    key: &SessionKey,
    pin: [u8; 32],
    number: StreamId,
) -> io::Result<(Connection, String)> {
    prove(secure(socket, key.encrypt, pin)?, key, number)
}

/// The same in the clear, whatever the key says: inside a control connection, which has its own protection.
///
/// # Errors
/// As [`dial`].
pub fn dial_clear(socket: Arc<Socket>, key: &SessionKey, number: StreamId) -> io::Result<Connection> {
    prove(Wire::new(socket, None), key, number).map(|(connection, _)| connection)
}

/// The first half of [`dial`], for which no session need be known: the handshake of TLS, if there is to be one.
///
/// # Errors
/// Those of the socket; `PermissionDenied` when the listener shows another key.
pub fn secure(socket: Arc<Socket>, encrypt: Encrypt, pin: [u8; 32]) -> io::Result<Wire> {
    let tls = match encrypt {
        Encrypt::None => None,
        Encrypt::Tls => {
            let mut tls = Tls::client(Some(pin), &[ALPN_DATA])?;
            tls.handshake(&*socket)?;
            Some(tls)
        }
    };
    Ok(Wire::new(socket, tls))
}

/// The second half of [`dial`].
///
/// # Errors
/// As [`dial`].
pub fn prove(wire: Wire, key: &SessionKey, number: StreamId) -> io::Result<(Connection, String)> {
    let cipher = wire.tls.as_ref().map(|tls| tls.cipher()).unwrap_or_default();
    if wire.tls.is_none() {
        (&*wire.socket).write_all(&CLEAR_MAGIC)?;
    }
    Ok((introduce(wire, key, number)?, cipher))
}

/// Says what the connection belongs to, and proves it.
fn introduce(mut wire: Wire, key: &SessionKey, number: StreamId) -> io::Result<Connection> {
    let mut transcript = Transcript { hello: [0; HELLO_BYTES], listener_nonce: [0; 32] };
    transcript.hello[..16].copy_from_slice(&key.id);
    transcript.hello[16..18].copy_from_slice(&number.0.to_be_bytes());
    carrack_sys::host::random_bytes(&mut transcript.hello[18..])?;
    if let Some(binding) = wire.binding() {
        let mac = bound_mac(key, &transcript.hello, &binding);
        wire.write_all(&[&transcript.hello[..], mac.as_bytes()].concat())?;
        return Ok(wire.into_connection(number, [0; 32]));
    }
    wire.write_hello(&transcript.hello)?;
    let mut answer = [0; 64];
    wire.read_exact(&mut answer)?;
    transcript.listener_nonce.copy_from_slice(&answer[..32]);
    let theirs: [u8; 32] = answer[32..].try_into().map_err(io::Error::other)?;
    // Hashes compare in constant time.
    if transcript.mac(key, b"carrack listener") != blake3::Hash::from_bytes(theirs) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the listener does not know the session's secret"));
    }
    wire.write_all(transcript.mac(key, b"carrack dialer").as_bytes())?;
    let mac_key = *transcript.mac(key, b"carrack frames").as_bytes();
    Ok(wire.into_connection(number, mac_key))
}

/// The listening side's part, after TLS or after [`CLEAR_MAGIC`]. `session` finds the key of a
/// session by its identifier.
///
/// # Errors
/// Those of the socket; `PermissionDenied` when the session is not known, wants the other kind of protection, or the
/// dialer does not know its secret.
pub fn answer(mut wire: Wire, session: &dyn Fn(&[u8; 16]) -> Option<SessionKey>) -> io::Result<(Connection, [u8; 16])> {
    let mut transcript = Transcript { hello: [0; HELLO_BYTES], listener_nonce: [0; 32] };
    wire.read_hello(&mut transcript.hello)?;
    let id: [u8; 16] = transcript.hello[..16].try_into().map_err(io::Error::other)?;
    let refused = |why: &'static str| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let key = session(&id).ok_or_else(|| refused("no such session"))?;
    if (key.encrypt == Encrypt::Tls) != wire.tls.is_some() {
        return Err(refused("the session was agreed with another kind of protection"));
    }
    let stranger = || refused("the dialer does not know the session's secret");
    if let Some(binding) = wire.binding() {
        let mut theirs = [0; 32];
        wire.read_exact(&mut theirs)?;
        if bound_mac(&key, &transcript.hello, &binding) != blake3::Hash::from_bytes(theirs) {
            return Err(stranger());
        }
        return Ok((wire.into_connection(transcript.number(), [0; 32]), id));
    }
    carrack_sys::host::random_bytes(&mut transcript.listener_nonce)?;
    let mut reply = transcript.listener_nonce.to_vec();
    reply.extend_from_slice(transcript.mac(&key, b"carrack listener").as_bytes());
    wire.write_all(&reply)?;
    let mut theirs = [0; 32];
    wire.read_exact(&mut theirs)?;
    if transcript.mac(&key, b"carrack dialer") != blake3::Hash::from_bytes(theirs) {
        return Err(stranger());
    }
    let mac_key = *transcript.mac(&key, b"carrack frames").as_bytes();
    let number = transcript.number();
    Ok((wire.into_connection(number, mac_key), id))
}

/// Does the listening side's part from the first byte on, with TLS or without.
///
/// # Errors
/// As [`answer`]; `InvalidData` for a connection that is neither.
pub fn accept(
    socket: Arc<Socket>,
    tls_key: &Key,
    session: &dyn Fn(&[u8; 16]) -> Option<SessionKey>,
) -> io::Result<(Connection, [u8; 16])> {
    let openings = openings(tls_key)?;
    let (index, opened) = open(&socket, &openings.each_ref())?;
    answer(Wire::accepted(socket, &openings[index], opened)?, session)
}

/// How data connections open: over TLS with this key, and in the clear.
///
/// # Errors
/// When rustls refuses the configuration, which would be a bug.
pub fn openings(key: &Key) -> io::Result<[ProtocolOpening; 2]> {
    Ok([ProtocolOpening::with_key(key, &[ALPN_DATA])?, ProtocolOpening::Clear(&CLEAR_MAGIC)])
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn key(encrypt: Encrypt) -> SessionKey {
        SessionKey { id: [1; 16], secret: [2; 32], encrypt }
    }

    /// What each side came to.
    type Met = (io::Result<(Connection, String)>, io::Result<(Connection, [u8; 16])>);

    fn meet(ours: SessionKey, theirs: SessionKey) -> Met {
        meet_with(|socket, pin| dial(socket, &ours, pin, StreamId(3)), theirs)
    }

    fn meet_with(
        dial: impl FnOnce(Arc<Socket>, [u8; 32]) -> io::Result<(Connection, String)>,
        theirs: SessionKey,
    ) -> Met {
        let (near, far) = UnixStream::pair().unwrap();
        let tls_key = Key::generate().unwrap();
        let pin = tls_key.pin;
        let listener = std::thread::spawn(move || {
            let session = move |id: &[u8; 16]| (*id == theirs.id).then(|| theirs.clone());
            accept(Arc::new(Socket::Unix(far)), &tls_key, &session)
        });
        let dialed = dial(Arc::new(Socket::Unix(near)), pin);
        (dialed, listener.join().unwrap())
    }

    #[test]
    fn hello_proves_both_sides() {
        for encrypt in [Encrypt::Tls, Encrypt::None] {
            let (dialed, accepted) = meet(key(encrypt), key(encrypt));
            assert_eq!(dialed.unwrap().0.number, StreamId(3));
            let (connection, id) = accepted.unwrap();
            assert_eq!((connection.number, id), (StreamId(3), [1; 16]));
        }
    }

    /// As whoever is dialled sees it: nothing of what the client of a dialling node has chosen, twice the same.
    #[test]
    fn dialer_in_the_clear_says_nothing_that_was_chosen() {
        let chosen = *b"\r\nFLUSHALL\r\nxxxx";
        let key = SessionKey { id: chosen, ..key(Encrypt::None) };
        let number = u16::from_be_bytes(*b"\r\n");
        let said: Vec<Vec<u8>> = (0..2)
            .map(|_| {
                let (near, mut far) = UnixStream::pair().unwrap();
                let key = key.clone();
                let dialer =
                    std::thread::spawn(move || dial(Arc::new(Socket::Unix(near)), &key, [0; 32], StreamId(number)));
                let mut said = vec![0; CLEAR_MAGIC.len() + HELLO_BYTES];
                far.read_exact(&mut said).unwrap();
                // Whatever is answered by who does not know the secret, nothing more is said.
                far.write_all(&[7; 64]).unwrap();
                assert!(dialer.join().unwrap().is_err());
                assert_eq!(far.read(&mut [0; 1]).unwrap(), 0);
                said
            })
            .collect();
        for said in &said {
            assert!(!said.windows(4).any(|window| chosen.windows(4).any(|part| part == window)), "{said:?}");
        }
        assert_eq!(said[0][..4], said[1][..4]);
        let same = said[0][4..].iter().zip(&said[1][4..]).filter(|(a, b)| a == b).count();
        assert!(same < HELLO_BYTES / 4, "{same} bytes are the same twice");
    }

    #[test]
    fn wrong_secret_session_or_protection_is_refused() {
        for encrypt in [Encrypt::Tls, Encrypt::None] {
            // On TLS the dialer waits for no answer: it finds a closed connection.
            let waits = encrypt == Encrypt::None;
            for stranger in [SessionKey { secret: [3; 32], ..key(encrypt) }, SessionKey { id: [9; 16], ..key(encrypt) }]
            {
                let (dialed, accepted) = meet(stranger, key(encrypt));
                assert!(dialed.is_err() == waits && accepted.is_err());
            }
        }
        let (dialed, accepted) = meet(key(Encrypt::None), key(Encrypt::Tls));
        assert!(dialed.is_err() && accepted.is_err());
    }
    /// As a listener finds it that reads the first words and the proof from somebody else's connection.
    #[test]
    fn proof_is_good_for_its_own_connection_only() {
        let ours = key(Encrypt::Tls);
        let mut hello = [0; HELLO_BYTES];
        hello[..16].copy_from_slice(&ours.id);
        let replayed = |socket: Arc<Socket>, pin| {
            let mut tls = Tls::client(Some(pin), &[ALPN_DATA])?;
            tls.handshake(&*socket)?;
            let other = bound_mac(&ours, &hello, &[7; 32]);
            let mut wire = Wire::new(socket, Some(tls));
            assert!(wire.binding().is_some_and(|binding| binding != [7; 32]));
            wire.write_all(&[&hello[..], other.as_bytes()].concat())?;
            Ok((wire.into_connection(StreamId(0), [0; 32]), String::new()))
        };
        let (_, accepted) = meet_with(replayed, key(Encrypt::Tls));
        assert_eq!(accepted.err().map(|error| error.kind()), Some(io::ErrorKind::PermissionDenied));
    }
}
