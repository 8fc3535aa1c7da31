//! TLS 1.3 records (RFC 8446, section 5) of a connection whose handshake rustls has done: what the kernel's
//! TLS does, in user space.
//!
//! rustls hands out each record's payload in a buffer of its own, to be copied once more; here a record is sealed from
//! the caller's slice into the caller's buffer and opened the same way, so that the cipher's own pass is the only one
//! over the bytes. The handshake, the keys and the next keys stay rustls' (its `kernel` interface); what is measured of
//! it is in docs/internals/performance.md.

use std::io;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{ConnectionTrafficSecrets, ExtractedSecrets};

/// Payload of the largest record, in bytes.
pub const RECORD_BYTES: usize = 16 << 10;
/// Header, inner type and tag: what sealing adds to a record, in bytes.
pub const RECORD_OVERHEAD: usize = HEADER_BYTES + 1 + TAG_BYTES;
/// What the standard lets a record be, header included, in bytes.
pub const RECORD_BYTES_MAX: usize = HEADER_BYTES + RECORD_BYTES + 256;

const HEADER_BYTES: usize = 5;
const TAG_BYTES: usize = 16;
/// Records under one key: AES-GCM loses its margin after 2^24.5 of full size, so the key is changed well before.
const RECORDS_PER_KEY: u64 = 1 << 23;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
/// What a ticket may have, in bytes: nobody makes one of more, and none is used.
const TICKET_BYTES_MAX: usize = 64 << 10;
/// Type and length of a handshake message, in bytes.
const MESSAGE_HEADER_BYTES: usize = 4;
/// A handshake message: our keys change now, yours need not.
const UPDATE: [u8; 5] = [KEY_UPDATE, 0, 0, 1, 0];

/// Where the next keys come from.
pub enum Kernel {
    /// Of the side that connected.
    Client(KernelConnection<ClientConnectionData>),
    /// Of the side that listened.
    Server(KernelConnection<ServerConnectionData>),
}

/// What stands at the beginning of the bytes that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordHead {
    /// So many bytes of payload, from a record of `taken` bytes.
    Data {
        /// Of what came.
        taken: usize,
        /// Of what was put out.
        payload: usize,
    },
    /// A record of so many bytes, that had nothing for the caller.
    Other(usize),
    /// Not yet a whole record.
    Incomplete,
    /// The peer says that nothing more comes.
    Closed,
}

/// Both directions of one connection.
pub struct Records {
    sealing: Keys,
    opening: Keys,
    kernel: Kernel,
    records_per_key: u64,
    /// The peer asked for new keys from us as well.
    update_asked: bool,
    /// The beginning of a handshake message whose rest comes in the next record.
    unfinished: Vec<u8>,
    /// The peer has said that nothing more comes.
    closed: bool,
}

struct Keys {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl Keys {
    fn new(sequence: u64, secrets: &ConnectionTrafficSecrets) -> io::Result<Self> {
        let (algorithm, key, iv): (&'static Algorithm, _, _) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(io::Error::other("rustls has agreed on a cipher that was not offered")),
        };
        let key = UnboundKey::new(algorithm, key.as_ref())
            .map_err(|_| io::Error::other("rustls made a key of the wrong length"))?;
        let mut bytes = [0; 12];
        bytes.copy_from_slice(iv.as_ref());
        Ok(Self { key: LessSafeKey::new(key), iv: bytes, sequence })
    }

    /// Each is used once: the sequence number never repeats under one key.
    fn next_nonce(&mut self) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        self.sequence += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Records {
    /// From where rustls stopped.
    ///
    /// # Errors
    /// When rustls has agreed on something that was not offered, which would be a bug.
    pub fn new(secrets: &ExtractedSecrets, kernel: Kernel) -> io::Result<Self> {
        Ok(Self {
            sealing: Keys::new(secrets.tx.0, &secrets.tx.1)?,
            opening: Keys::new(secrets.rx.0, &secrets.rx.1)?,
            kernel,
            records_per_key: RECORDS_PER_KEY,
            update_asked: false,
            unfinished: Vec::new(),
            closed: false,
        })
    }

    /// Room that [`Records::seal`] needs for so much payload, in bytes.
    pub const fn sealed_bytes(plain: usize) -> usize {
        // Before each record there may be another, which changes the keys.
        plain + plain.div_ceil(RECORD_BYTES) * (2 * RECORD_OVERHEAD + UPDATE.len())
    }

    /// Seals payload into records at the beginning of `out`, and says how many bytes they are.
    ///
    /// # Errors
    /// `InvalidInput` when `out` is shorter than [`Records::sealed_bytes`].
    pub fn seal(&mut self, plain: &[u8], out: &mut [u8]) -> io::Result<usize> {
        let mut end = 0;
        for piece in plain.chunks(RECORD_BYTES) {
            if self.update_asked || self.sealing.sequence >= self.records_per_key {
                self.update_asked = false;
                end += self.seal_record(&UPDATE, HANDSHAKE, &mut out[end..])?;
                let (sequence, secrets) = match &mut self.kernel {
                    Kernel::Client(kernel) => kernel.update_tx_secret(),
                    Kernel::Server(kernel) => kernel.update_tx_secret(),
                }
                .map_err(io::Error::other)?;
                self.sealing = Keys::new(sequence, &secrets)?;
            }
            end += self.seal_record(piece, APPLICATION_DATA, &mut out[end..])?;
        }
        Ok(end)
    }

    /// Says that nothing more comes (RFC 8446, 6.1): a record at the beginning of `out`, and how many bytes it is.
    ///
    /// # Errors
    /// `InvalidInput` when `out` is shorter than [`Records::sealed_bytes`] of two bytes.
    pub fn seal_close(&mut self, out: &mut [u8]) -> io::Result<usize> {
        const WARNING: u8 = 1;
        self.seal_record(&[WARNING, CLOSE_NOTIFY], ALERT, out)
    }

    fn seal_record(&mut self, plain: &[u8], kind: u8, out: &mut [u8]) -> io::Result<usize> {
        let no_room = || io::Error::new(io::ErrorKind::InvalidInput, "no room for a TLS record");
        let whole = plain.len() + RECORD_OVERHEAD;
        let out = out.get_mut(..whole).ok_or_else(no_room)?;
        let header = header(whole);
        let (start, rest) = out.split_at_mut(HEADER_BYTES);
        start.copy_from_slice(&header);
        let (sealed, tail) = rest.split_at_mut(plain.len());
        let nonce = self.sealing.next_nonce();
        self.sealing
            .key
            .seal_out_of_place_scatter(nonce, Aad::from(header), plain, sealed, &[kind], tail)
            .map_err(|_| io::Error::other("a TLS record could not be sealed"))?;
        Ok(whole)
    }

    /// Whether `incoming` starts with a whole record, or with what can be none.
    pub fn is_complete(incoming: &[u8]) -> bool {
        let Some((header, rest)) = incoming.split_first_chunk::<HEADER_BYTES>() else { return false };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        rest.len() >= length || HEADER_BYTES + length > RECORD_BYTES_MAX
    }

    /// The length of the first record, as far as it is here: all of what is here, if that is not all of it.
    pub fn first_bytes(incoming: &[u8]) -> usize {
        let header = incoming.first_chunk::<HEADER_BYTES>();
        let whole =
            |header: &[u8; HEADER_BYTES]| HEADER_BYTES + usize::from(u16::from_be_bytes([header[3], header[4]]));
        header.map_or(incoming.len(), whole).min(incoming.len())
    }

    /// Opens the first record of `incoming` into the beginning of `out`, which has room for [`RECORD_BYTES_MAX`].
    ///
    /// # Errors
    /// `InvalidData` when it was altered, or is none; `InvalidInput` when `out` is too short.
    pub fn open(&mut self, incoming: &[u8], out: &mut [u8]) -> io::Result<RecordHead> {
        // What comes after the peer's last word is not looked at.
        if self.closed {
            return Ok(RecordHead::Closed);
        }
        let Some((header, rest)) = incoming.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(RecordHead::Incomplete);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let taken = HEADER_BYTES + length;
        if header[0] != APPLICATION_DATA {
            return Err(invalid("bytes that are no TLS record"));
        }
        if taken > RECORD_BYTES_MAX || length <= TAG_BYTES {
            return Err(invalid("a TLS record of a length that cannot be"));
        }
        let Some(sealed) = rest.get(..length) else { return Ok(RecordHead::Incomplete) };
        let (sealed, tag) = sealed.split_at(length - TAG_BYTES);
        if sealed.len() > RECORD_BYTES + 1 {
            return Err(invalid("a TLS record of more than 2^14 bytes"));
        }
        let no_room = || io::Error::new(io::ErrorKind::InvalidInput, "no room for a TLS record's payload");
        let out = out.get_mut(..sealed.len()).ok_or_else(no_room)?;
        let nonce = self.opening.next_nonce();
        self.opening
            .key
            .open_separate_gather(nonce, Aad::from(*header), sealed, tag, out)
            .map_err(|_| invalid("a TLS record that was altered on the way"))?;
        // Zeros after the inner type are padding.
        let last = out.iter().rposition(|&byte| byte != 0).ok_or_else(|| invalid("a TLS record without a type"))?;
        let kind = out[last];
        if kind != HANDSHAKE && !self.unfinished.is_empty() {
            return Err(invalid("another TLS record in the midst of a handshake message"));
        }
        match kind {
            APPLICATION_DATA => Ok(RecordHead::Data { taken, payload: last }),
            HANDSHAKE => self.take_handshake(&out[..last]).map(|()| RecordHead::Other(taken)),
            ALERT if last == 2 && out[1] == CLOSE_NOTIFY => {
                self.closed = true;
                Ok(RecordHead::Closed)
            }
            // A closing alert follows.
            ALERT if last == 2 && out[1] == USER_CANCELED => Ok(RecordHead::Other(taken)),
            ALERT => Err(invalid("a TLS alert")),
            _ => Err(invalid("a TLS record of an unknown type")),
        }
    }

    /// Takes the messages of a record (RFC 8446, 5.1): several may be in one, and one in several.
    fn take_handshake(&mut self, record: &[u8]) -> io::Result<()> {
        if record.is_empty() {
            return Err(invalid("an empty TLS handshake record"));
        }
        let mut all = std::mem::take(&mut self.unfinished);
        all.extend_from_slice(record);
        let mut messages = &all[..];
        while let Some((&[kind, high, middle, low], rest)) = messages.split_first_chunk::<MESSAGE_HEADER_BYTES>() {
            let length = u32::from_be_bytes([0, high, middle, low]) as usize;
            let most = match (kind, &self.kernel) {
                // Nothing is resumed with them. Only a server gives them out.
                (NEW_SESSION_TICKET, Kernel::Client(_)) => TICKET_BYTES_MAX,
                (KEY_UPDATE, _) => 1,
                _ => return Err(invalid("a TLS handshake message that has no place here")),
            };
            if length > most {
                return Err(invalid("a TLS handshake message of a length that cannot be"));
            }
            let Some((body, rest)) = rest.split_at_checked(length) else { break };
            if kind == KEY_UPDATE {
                self.take_key_update(body, rest)?;
            }
            messages = rest;
        }
        self.unfinished = messages.to_vec();
        Ok(())
    }

    /// What is sealed from here on has new keys, so nothing may follow in the same record.
    fn take_key_update(&mut self, body: &[u8], rest: &[u8]) -> io::Result<()> {
        let (&[asked @ (0 | 1)], []) = (body, rest) else {
            return Err(invalid("a TLS key update that has no place here"));
        };
        self.update_asked |= asked == 1;
        let (sequence, secrets) = match &mut self.kernel {
            Kernel::Client(kernel) => kernel.update_rx_secret(),
            Kernel::Server(kernel) => kernel.update_rx_secret(),
        }
        .map_err(io::Error::other)?;
        self.opening = Keys::new(sequence, &secrets)?;
        Ok(())
    }
}

/// The header of a record of so many bytes, which is authenticated with it.
fn header(whole: usize) -> [u8; HEADER_BYTES] {
    let [high, low] = ((whole - HEADER_BYTES) as u16).to_be_bytes();
    [APPLICATION_DATA, 3, 3, high, low]
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the peer sent {what}"))
}
#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::{ClientConnection, ServerConnection, StreamOwned};

    use super::super::tls::{ALPN_DATA, Key, ReadState, Tls, client_config, nameless, server_config};
    use super::*;

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn pair() -> (Tls, Tls) {
        let key = Key::generate().unwrap();
        let (near, far) = sockets();
        let pin = key.pin;
        let server = std::thread::spawn(move || {
            let mut tls = Tls::server(server_config(&key, &[ALPN_DATA]).unwrap()).unwrap();
            tls.handshake(&far).unwrap();
            tls
        });
        let mut client = Tls::client(Some(pin), &[ALPN_DATA]).unwrap();
        client.handshake(&near).unwrap();
        (client, server.join().unwrap())
    }

    fn pass(from: &mut Tls, to: &mut Tls, plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        from.seal(plain, &mut sealed).unwrap();
        let mut received = Vec::new();
        let mut left = &sealed[..];
        while !left.is_empty() {
            let part = left.len().min(10_000);
            to.space()[..part].copy_from_slice(&left[..part]);
            to.filled(part);
            left = &left[part..];
            to.open(&mut |piece| received.extend_from_slice(piece)).unwrap();
        }
        received
    }

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes as u32).map(|n| (n ^ (n >> 8)) as u8).collect()
    }

    #[test]
    fn keys_are_changed_in_time_and_on_request() {
        let (mut client, mut server) = pair();
        client.records().unwrap().records_per_key = 3;
        let plain = content(10 * RECORD_BYTES + 1);
        assert!(pass(&mut client, &mut server, &plain) == plain);
        assert!(client.records().unwrap().sealing.sequence < 3);
        // As if the server had been asked for new keys as well.
        server.records().unwrap().update_asked = true;
        assert!(pass(&mut server, &mut client, &plain) == plain);
        assert!(pass(&mut client, &mut server, &plain) == plain);
    }

    /// What the client makes of one record, sealed as the server would seal it, and the other way round.
    fn outcome(from: &mut Tls, to: &mut Tls, plain: &[u8], kind: u8) -> Result<RecordHead, String> {
        let mut sealed = vec![0; plain.len() + RECORD_OVERHEAD];
        let bytes = from.records().unwrap().seal_record(plain, kind, &mut sealed).unwrap();
        let opened = to.records().unwrap().open(&sealed[..bytes], &mut vec![0; RECORD_BYTES_MAX]);
        opened.map_err(|error| error.to_string())
    }

    #[test]
    fn handshake_messages_may_be_in_pieces_and_nothing_comes_between() {
        let (mut client, mut server) = pair();
        let other =
            |opened: Result<RecordHead, String>| assert!(matches!(opened, Ok(RecordHead::Other(_))), "{opened:?}");
        let ticket = [&[NEW_SESSION_TICKET, 0, 0, 200][..], &[7; 200]].concat();
        for piece in [&ticket[..2], &ticket[2..9], &ticket[9..]] {
            other(outcome(&mut server, &mut client, piece, HANDSHAKE));
        }
        let data = outcome(&mut server, &mut client, b"data", APPLICATION_DATA);
        assert!(matches!(data, Ok(RecordHead::Data { payload: 4, .. })), "{data:?}");
        // A change of keys in two pieces; what follows has the new ones.
        other(outcome(&mut client, &mut server, &UPDATE[..3], HANDSHAKE));
        other(outcome(&mut client, &mut server, &UPDATE[3..], HANDSHAKE));
        assert!(outcome(&mut client, &mut server, b"old keys", APPLICATION_DATA).is_err());
        other(outcome(&mut server, &mut client, &UPDATE[..1], HANDSHAKE));
        let between = outcome(&mut server, &mut client, b"data", APPLICATION_DATA).unwrap_err();
        assert!(between.contains("in the midst"), "{between}");
    }

    #[test]
    fn records_that_the_standard_forbids_are_refused() {
        let ticket = [&[NEW_SESSION_TICKET, 0, 0, 2][..], &[7; 2]].concat();
        let long_ticket = [NEW_SESSION_TICKET, 1, 0, 1];
        let with_rest = [&UPDATE[..], &UPDATE[..]].concat();
        let of_client: [(&[u8], u8, &str); 8] = [
            (&ticket, HANDSHAKE, "no place here"),
            (&[], HANDSHAKE, "empty"),
            (&with_rest, HANDSHAKE, "no place here"),
            (&[KEY_UPDATE, 0, 0, 2, 0, 0], HANDSHAKE, "length that cannot be"),
            (&[KEY_UPDATE, 0, 0, 1, 2], HANDSHAKE, "no place here"),
            (&[0; RECORD_BYTES + 1], APPLICATION_DATA, "more than 2^14"),
            (&[], ALERT, "alert"),
            (&[], 99, "unknown type"),
        ];
        for (plain, kind, why) in of_client {
            let (mut client, mut server) = pair();
            let refused = outcome(&mut client, &mut server, plain, kind).unwrap_err();
            assert!(refused.contains(why), "{why}: {refused}");
        }
        let (mut client, mut server) = pair();
        let refused = outcome(&mut server, &mut client, &long_ticket, HANDSHAKE).unwrap_err();
        assert!(refused.contains("length that cannot be"), "{refused}");
    }

    #[test]
    fn last_word_is_said_and_understood() {
        let (mut client, mut server) = pair();
        let mut sealed = Vec::new();
        client.seal(b"last bytes", &mut sealed).unwrap();
        client.seal_close(&mut sealed).unwrap();
        sealed.extend_from_slice(b"whatever comes then");
        server.space()[..sealed.len()].copy_from_slice(&sealed);
        server.filled(sealed.len());
        let mut received = Vec::new();
        for _ in 0..2 {
            let opened = server.open(&mut |piece| received.extend_from_slice(piece)).unwrap();
            assert_eq!((opened, &received[..]), (ReadState::Closed, &b"last bytes"[..]));
        }
    }

    /// Both directions, with key changes of both, against rustls' own records.
    #[test]
    fn rustls_understands_and_is_understood() {
        let plain = content(9 * RECORD_BYTES + 77);
        for ours_connects in [true, false] {
            let key = Key::generate().unwrap();
            let config = Arc::new(client_config(Some(key.pin), &[ALPN_DATA]).unwrap());
            let (near, far) = sockets();
            let expected = plain.clone();
            let theirs_key = key.clone();
            let theirs = std::thread::spawn(move || {
                let mut got = vec![0; expected.len()];
                if ours_connects {
                    let tls =
                        ServerConnection::new(Arc::new(server_config(&theirs_key, &[ALPN_DATA]).unwrap())).unwrap();
                    let mut stream = StreamOwned::new(tls, far);
                    stream.read_exact(&mut got).unwrap();
                    stream.conn.refresh_traffic_keys().unwrap();
                    stream.write_all(&expected).unwrap();
                    stream.conn.send_close_notify();
                    stream.flush().unwrap();
                } else {
                    let mut stream = StreamOwned::new(ClientConnection::new(config, nameless().unwrap()).unwrap(), far);
                    stream.write_all(&expected[..10]).unwrap();
                    stream.conn.refresh_traffic_keys().unwrap();
                    stream.write_all(&expected[10..]).unwrap();
                    stream.read_exact(&mut got).unwrap();
                    stream.conn.send_close_notify();
                    stream.flush().unwrap();
                }
                assert!(got == expected);
            });
            let mut ours = if ours_connects {
                Tls::client(Some(key.pin), &[ALPN_DATA]).unwrap()
            } else {
                Tls::server(server_config(&key, &[ALPN_DATA]).unwrap()).unwrap()
            };
            ours.handshake(&near).unwrap();
            ours.records().unwrap().records_per_key = 4;
            let mut sealed = Vec::new();
            let mut socket = &near;
            if ours_connects {
                ours.seal(&plain, &mut sealed).unwrap();
                socket.write_all(&sealed).unwrap();
            }
            let mut got = Vec::new();
            while got.len() < plain.len() {
                if !ours.holds_record() {
                    let read = socket.read(ours.space()).unwrap();
                    assert!(read > 0, "they left after {} bytes", got.len());
                    ours.filled(read);
                }
                ours.open(&mut |piece| got.extend_from_slice(piece)).unwrap();
            }
            assert!(got == plain);
            if !ours_connects {
                ours.seal(&plain, &mut sealed).unwrap();
                socket.write_all(&sealed).unwrap();
            }
            theirs.join().unwrap();
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever a byte is changed into, the records before it are opened, and nothing after.
        #[test]
        fn altered_record_ends_the_stream(place in 0usize..3 * (RECORD_BYTES + RECORD_OVERHEAD), change in 1u8..) {
            let (mut client, mut server) = pair();
            let plain = content(3 * RECORD_BYTES);
            let mut sealed = vec![0; Records::sealed_bytes(plain.len())];
            let length = client.records().unwrap().seal(&plain, &mut sealed).unwrap();
            sealed.truncate(length);
            sealed[place] ^= change;
            let (records, mut out, mut opened) = (server.records().unwrap(), vec![0; RECORD_BYTES_MAX], Vec::new());
            let mut rest = &sealed[..];
            let outcome = loop {
                match records.open(rest, &mut out) {
                    Ok(RecordHead::Data { taken, payload }) => {
                        opened.extend_from_slice(&out[..payload]);
                        rest = &rest[taken..];
                    }
                    other => break other,
                }
            };
            // A length made longer waits for bytes that never come.
            let waits = matches!(outcome, Ok(RecordHead::Incomplete));
            prop_assert!(waits || outcome.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData));
            prop_assert_eq!(opened.len(), place / (RECORD_BYTES + RECORD_OVERHEAD) * RECORD_BYTES);
            prop_assert!(plain.starts_with(&opened));
        }

        /// Bytes of a stranger are never opened, and never panic.
        #[test]
        fn strangers_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..600), framed: bool) {
            let (_, mut server) = pair();
            let mut bytes = bytes;
            if framed && bytes.len() > HEADER_BYTES {
                let start = header(bytes.len());
                bytes[..HEADER_BYTES].copy_from_slice(&start);
            }
            let mut out = vec![0; RECORD_BYTES_MAX];
            let outcome = server.records().unwrap().open(&bytes, &mut out);
            let refused = matches!(outcome, Ok(RecordHead::Incomplete) | Err(_));
            prop_assert!(refused, "{:?}", outcome);
        }
    }
}
