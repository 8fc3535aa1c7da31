//! How one port serves several protocols: by what a client says first. Bytes of a clear protocol, or a TLS ClientHello,
//! which names the protocols that the client wants (ALPN) before any certificate is shown. So each protocol has a TLS
//! configuration of its own: raw keys for one, an X.509 certificate for another. A client that names no protocol at all
//! gets HTTP/1.1, where that is served: many HTTPS clients name none, while those of Carrack's own protocols always do.
//!
//! Nothing is allocated for a client before it has said something, and no more than [`limits::CLIENT_HELLO_BYTES`]
//! until its hello is whole. How long all this may take is the caller's to bound.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::sync::Arc;

use carrack_core::limits;
use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::{ServerConfig, ServerConnection};

use super::socket::Socket;
use super::tls::{Key, Tls, server_config};

/// A fatal `no_application_protocol` (RFC 7301 §3.2), as the record that goes out before anything is encrypted.
const NO_APPLICATION_PROTOCOL: [u8; 7] = [21, 3, 3, 0, 2, 2, 120];

/// What a client wants that names no protocol.
const HTTP: &[u8] = b"http/1.1";

/// The type of the record that a TLS client begins with.
const TLS_HANDSHAKE: u8 = 22;

/// What a client says first to be served one protocol.
#[derive(Clone, Debug)]
pub enum ProtocolOpening {
    /// TLS, with one of the configuration's ALPN protocols.
    Tls(Arc<ServerConfig>),
    /// The same, where whoever serves it does the handshake.
    Unshaken(Arc<ServerConfig>),
    /// The same as [`Self::Tls`], with records by [`Tls`]: the configuration lets the secrets out and speaks TLS 1.3
    /// alone.
    Records(Arc<ServerConfig>),
    /// These bytes, in the clear.
    Clear(&'static [u8]),
}

impl ProtocolOpening {
    /// TLS with a raw key, records by [`Tls`].
    ///
    /// # Errors
    /// When rustls refuses the configuration, which would be a bug.
    pub fn with_key(key: &Key, protocols: &[&[u8]]) -> io::Result<Self> {
        Ok(Self::Records(Arc::new(server_config(key, protocols)?)))
    }

    /// Why a client of one of these could not be told from those of another, or from anybody: two say the same first,
    /// or one begins as another does, or as TLS does.
    pub fn confusion(openings: &[&Self]) -> Option<&'static str> {
        let mut protocols = HashSet::new();
        for (index, opening) in openings.iter().enumerate() {
            match opening {
                Self::Clear(first) => {
                    let is_like = |other: &&Self| matches!(other, Self::Clear(bytes) if bytes.starts_with(first));
                    let others = openings.iter().enumerate().filter(|(other, _)| *other != index);
                    if first.is_empty() || first[0] == TLS_HANDSHAKE || others.map(|(_, other)| other).any(is_like) {
                        return Some("the bytes that its clients begin with are nobody's, those of TLS, or another's");
                    }
                }
                Self::Tls(config) | Self::Unshaken(config) | Self::Records(config) => {
                    let own = &config.alpn_protocols;
                    if own.is_empty() || !own.iter().all(|protocol| protocols.insert(protocol)) {
                        return Some("it names no protocol of TLS, or one that is taken");
                    }
                }
            }
        }
        None
    }

    fn speaks(&self, offered: &[Vec<u8>]) -> bool {
        match self {
            Self::Tls(config) | Self::Unshaken(config) | Self::Records(config) => {
                offered.iter().any(|protocol| config.alpn_protocols.contains(protocol))
            }
            Self::Clear(_) => false,
        }
    }
}

/// A connection that is open for its protocol.
pub enum OpenedConnection {
    /// The handshake is done.
    Tls(Box<ServerConnection>),
    /// The handshake is done.
    Records(Box<Tls>),
    /// The client's hello has been read, and nothing was answered.
    Unshaken(Box<Accepted>),
    /// The first bytes have been read.
    Clear,
}

/// Finds which of the openings a client means, and does the TLS handshake if there is one. An earlier opening wins over
/// a later one. The socket blocks.
///
/// # Errors
/// Those of the socket; `InvalidData` for a client that means none of them, or does not keep to TLS.
pub fn open(socket: &Socket, openings: &[&ProtocolOpening]) -> io::Result<(usize, OpenedConnection)> {
    let said = match read_clear(socket, openings)? {
        FirstBytes::Clear(index) => return Ok((index, OpenedConnection::Clear)),
        FirstBytes::Other(said) => said,
    };
    let hello = read_hello(socket, said)?;
    let offered: Vec<Vec<u8>> = match hello.accepted.client_hello().alpn() {
        Some(offered) => offered.map(<[u8]>::to_vec).collect(),
        None => vec![HTTP.to_vec()],
    };
    let Some(index) = openings.iter().position(|opening| opening.speaks(&offered)) else {
        let _ = (&mut &*socket).write_all(&NO_APPLICATION_PROTOCOL);
        return Err(invalid("the client names no protocol that is spoken here"));
    };
    let opened = match openings[index] {
        ProtocolOpening::Tls(config) => OpenedConnection::Tls(hello.finish(socket, config)?),
        ProtocolOpening::Unshaken(_) => OpenedConnection::Unshaken(Box::new(hello.accepted)),
        ProtocolOpening::Records(config) => OpenedConnection::Records(hello.finish_with_records(socket, config)?),
        ProtocolOpening::Clear(_) => OpenedConnection::Clear,
    };
    Ok((index, opened))
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

enum FirstBytes {
    /// All the bytes of this opening.
    Clear(usize),
    /// Bytes with which none begins.
    Other(Vec<u8>),
}

/// Reads as many bytes as it takes to tell whether the client means a clear protocol.
fn read_clear(mut socket: &Socket, openings: &[&ProtocolOpening]) -> io::Result<FirstBytes> {
    let clear = || {
        openings.iter().enumerate().filter_map(|(index, opening)| match opening {
            ProtocolOpening::Clear(bytes) => Some((index, *bytes)),
            _ => None,
        })
    };
    let mut said = Vec::new();
    loop {
        if let Some((index, _)) = clear().find(|(_, bytes)| *bytes == said) {
            return Ok(FirstBytes::Clear(index));
        }
        let possible = clear().filter(|(_, bytes)| bytes.starts_with(&said));
        let Some(shortest) = possible.map(|(_, bytes)| bytes.len()).min() else {
            return Ok(FirstBytes::Other(said));
        };
        let known = said.len();
        said.resize(shortest, 0);
        socket.read_exact(&mut said[known..])?;
    }
}

/// A ClientHello that has been understood.
struct ParsedHello {
    accepted: Accepted,
    /// All that the client has said.
    said: Vec<u8>,
}

fn read_hello(mut socket: &Socket, mut said: Vec<u8>) -> io::Result<ParsedHello> {
    let mut acceptor = Acceptor::default();
    let mut given = 0;
    loop {
        while given < said.len() {
            given += acceptor.read_tls(&mut &said[given..])?;
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(ParsedHello { accepted, said }),
            Ok(None) => {}
            Err((error, alert)) => return Err(refuse(socket, error, alert)),
        }
        if said.len() >= limits::CLIENT_HELLO_BYTES {
            return Err(invalid("the client's hello is too long"));
        }
        let known = said.len();
        said.resize((known + 4096).min(limits::CLIENT_HELLO_BYTES), 0);
        let read = socket.read(&mut said[known..])?;
        said.truncate(known + read);
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Tells the client why, if there is something to tell.
fn refuse(mut socket: &Socket, error: rustls::Error, mut alert: AcceptedAlert) -> io::Error {
    let _ = alert.write_all(&mut socket);
    invalid(error)
}

impl ParsedHello {
    fn finish(self, mut socket: &Socket, config: &Arc<ServerConfig>) -> io::Result<Box<ServerConnection>> {
        let connection = self.accepted.into_connection(Arc::clone(config));
        let mut connection = Box::new(connection.map_err(|(error, alert)| refuse(socket, error, alert))?);
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(connection)
    }

    /// rustls' unbuffered connections have no acceptor: the hello is told once more.
    fn finish_with_records(self, socket: &Socket, config: &Arc<ServerConfig>) -> io::Result<Box<Tls>> {
        let mut tls = Tls::server(Arc::clone(config))?;
        let space = tls.space();
        let said = space.get_mut(..self.said.len()).ok_or_else(|| invalid("the client's hello is too long"))?;
        said.copy_from_slice(&self.said);
        tls.filled(self.said.len());
        tls.handshake(socket)?;
        Ok(Box::new(tls))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::net::tls::client_config;
    use rustls::ClientConnection;
    use rustls::pki_types::ServerName;

    const FIRST: &[u8] = b"first/1";
    const SECOND: &[u8] = b"second/1";

    fn openings(key: &Key) -> Vec<ProtocolOpening> {
        let tls = ProtocolOpening::Tls(Arc::new(server_config(key, &[SECOND]).unwrap()));
        vec![
            ProtocolOpening::with_key(key, &[FIRST]).unwrap(),
            ProtocolOpening::Clear(b"KNOCK"),
            ProtocolOpening::Clear(b"KNEEL"),
            tls,
        ]
    }

    /// What a client comes to that does this, and closes.
    fn meet(key: &Key, client: impl FnOnce(UnixStream) + Send + 'static) -> io::Result<(usize, OpenedConnection)> {
        let (near, far) = UnixStream::pair().unwrap();
        let client = std::thread::spawn(move || client(near));
        let openings = openings(key);
        let opened = open(&Socket::Unix(far), &openings.iter().collect::<Vec<_>>());
        client.join().unwrap();
        opened
    }

    fn hello(offered: &[&[u8]]) -> Vec<u8> {
        let config = Arc::new(client_config(None, offered).unwrap());
        let mut client = ClientConnection::new(config, ServerName::try_from("carrack").unwrap()).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        hello
    }

    #[test]
    fn opening_is_chosen_by_alpn() {
        let key = Key::generate().unwrap();
        for (offered, expected) in [(vec![FIRST], 0), (vec![SECOND], 3), (vec![b"other", SECOND, FIRST], 0)] {
            let protocols = offered.clone();
            let opened = meet(&key, move |socket| Tls::client(None, &protocols).unwrap().handshake(&socket).unwrap());
            let (index, opened) = opened.unwrap();
            assert_eq!(index, expected, "{offered:?}");
            match opened {
                OpenedConnection::Records(tls) => assert_eq!((index, tls.alpn()), (0, Some(FIRST))),
                OpenedConnection::Tls(connection) => assert_eq!((index, connection.alpn_protocol()), (3, Some(SECOND))),
                OpenedConnection::Unshaken(_) | OpenedConnection::Clear => panic!("that was TLS"),
            }
        }
    }

    #[test]
    fn openings_that_begin_alike_are_found() {
        let key = Key::generate().unwrap();
        let is_clear = |more: ProtocolOpening| {
            let mut all = openings(&key);
            all.push(more);
            ProtocolOpening::confusion(&all.iter().collect::<Vec<_>>()).is_none()
        };
        assert!(
            is_clear(ProtocolOpening::Clear(b"KNIT"))
                && is_clear(ProtocolOpening::with_key(&key, &[b"third/1"]).unwrap())
        );
        for first in [&b""[..], b"KNOCK", b"KN", b"KNOCK KNOCK", b"\x16\x03"] {
            assert!(!is_clear(ProtocolOpening::Clear(first)), "{first:?}");
        }
        for protocols in [&[][..], &[FIRST], &[b"third/1", SECOND], &[b"third/1", b"third/1"]] {
            assert!(!is_clear(ProtocolOpening::with_key(&key, protocols).unwrap()), "{protocols:?}");
        }
    }

    #[test]
    fn client_of_another_protocol_is_told_so() {
        let key = Key::generate().unwrap();
        for offered in [&[b"other".as_slice()][..], &[]] {
            let hello = hello(offered);
            let refused = meet(&key, move |mut socket| {
                socket.write_all(&hello).unwrap();
                let mut answer = Vec::new();
                socket.shutdown(std::net::Shutdown::Write).unwrap();
                socket.read_to_end(&mut answer).unwrap_or_default();
                // Version and length belong to the record, level and description to the alert.
                assert_eq!(answer, NO_APPLICATION_PROTOCOL);
            });
            assert_eq!(refused.err().map(|error| error.kind()), Some(io::ErrorKind::InvalidData));
        }
    }

    #[test]
    fn client_that_names_no_protocol_gets_http_where_it_is_served() {
        let key = Key::generate().unwrap();
        let own = ProtocolOpening::with_key(&key, &[FIRST]).unwrap();
        let web = ProtocolOpening::Unshaken(Arc::new(server_config(&key, &[b"h2", HTTP]).unwrap()));
        for (openings, expected) in [(vec![&own, &web], Some(1)), (vec![&own], None)] {
            let (mut near, far) = UnixStream::pair().unwrap();
            near.write_all(&hello(&[])).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(open(&Socket::Unix(far), &openings).ok().map(|(index, _)| index), expected);
        }
    }

    #[test]
    fn opening_is_chosen_by_first_bytes() {
        let key = Key::generate().unwrap();
        for (said, expected) in [("KNOCK", Some(1)), ("KNEEL", Some(2)), ("KNACK and more", None), ("GET / HTTP", None)]
        {
            let opened = meet(&key, move |mut socket| {
                said.bytes().for_each(|byte| socket.write_all(&[byte]).unwrap_or_default());
            });
            assert_eq!(opened.ok().map(|(index, _)| index), expected, "{said}");
        }
    }

    /// In any portions, and without an end.
    #[test]
    fn hello_is_read_in_portions_and_bounded() {
        let key = Key::generate().unwrap();
        for portion in [1, 7, 100] {
            let opened = meet(&key, move |socket| {
                let mut tls = Tls::client(None, &[FIRST]).unwrap();
                tls.handshake(Portions(socket, portion)).unwrap();
            });
            assert_eq!(opened.unwrap().0, 0);
        }
        // A ClientHello that says it has 60 KB, in records of 1 KB.
        let record = [&[22, 3, 1, 4, 0][..], &[0; 1024]].concat();
        let mut first = record.clone();
        first[5..9].copy_from_slice(&[1, 0, 0xea, 0x60]);
        let refused = meet(&key, move |mut socket| {
            let mut said = 0;
            let mut next = first;
            while said < 60_000 && socket.write_all(&next).is_ok() {
                said += next.len();
                next.clone_from(&record);
            }
        });
        let error = refused.err().unwrap();
        assert_eq!(error.to_string(), "the client's hello is too long");
    }

    /// Writes so many bytes at once.
    struct Portions(UnixStream, usize);

    impl Read for Portions {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Portions {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(&bytes[..bytes.len().min(self.1)])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
