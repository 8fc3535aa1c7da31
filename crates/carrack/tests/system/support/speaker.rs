//! One side of a control connection that says any bytes: over TLS, one frame after the other,
//! with no thread of its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use carrack_core::wire::mux::{Channel, HEADER_BYTES, decode_header, encode_header};
use carrack_engine::testing::net::tls::{ALPN_CONTROL, Key, ReadState, Tls, server_config};

/// Longer than anything takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Speaker {
    socket: TcpStream,
    tls: Tls,
    plain: Vec<u8>,
}

impl Speaker {
    /// Connects to a node.
    pub fn connect(address: &str) -> io::Result<Self> {
        Self::begin(TcpStream::connect(address)?, Tls::client(None, &[ALPN_CONTROL])?)
    }

    /// Takes a command's connection, as a node with this key.
    pub fn accept(socket: TcpStream, key: &Key) -> io::Result<Self> {
        Self::begin(socket, Tls::server(server_config(key, &[ALPN_CONTROL])?)?)
    }

    fn begin(socket: TcpStream, mut tls: Tls) -> io::Result<Self> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        tls.handshake(&socket)?;
        Ok(Self { socket, tls, plain: Vec::new() })
    }

    pub fn send(&mut self, channel: Channel, payload: &[u8]) -> io::Result<()> {
        let mut sealed = Vec::new();
        let frame = [&encode_header(channel, payload.len())[..], payload].concat();
        self.tls.seal(&frame, &mut sealed)?;
        self.socket.write_all(&sealed)
    }

    /// The next frame that is no heartbeat; `None` at the end of the connection.
    ///
    /// # Panics
    /// When nothing comes for a minute: the other side hangs.
    pub fn next(&mut self) -> Option<(Channel, Vec<u8>)> {
        loop {
            if let Some(header) = self.plain.first_chunk::<HEADER_BYTES>() {
                let (channel, length) = decode_header(*header).unwrap();
                if self.plain.len() >= HEADER_BYTES + length {
                    let rest = self.plain.split_off(HEADER_BYTES + length);
                    let payload = std::mem::replace(&mut self.plain, rest).split_off(HEADER_BYTES);
                    if length > 0 || channel != Channel::CONTROL {
                        return Some((channel, payload));
                    }
                    continue;
                }
            }
            if !self.read() {
                return None;
            }
        }
    }

    /// Whether more has come.
    fn read(&mut self) -> bool {
        let plain = &mut self.plain;
        let before = plain.len();
        loop {
            match self.tls.open(&mut |piece| plain.extend_from_slice(piece)) {
                Ok(_) if plain.len() > before => return true,
                Ok(ReadState::Closed) | Err(_) => return false,
                Ok(ReadState::More) => {}
            }
            match self.socket.read(self.tls.space()) {
                Ok(0) => return false,
                Ok(read) => self.tls.filled(read),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    panic!("the other side hangs");
                }
                Err(_) => return false,
            }
        }
    }

    /// Says nothing more, and listens to the end.
    pub fn leave(mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
        while self.next().is_some() {}
    }
}
