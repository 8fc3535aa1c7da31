//! A relay before a node, that loses connections, holds them, refuses them, and changes what passes.
//!
//! It listens on another loopback address, on the node's port: so data connections, which are made to the host that the command
//! reached and the port that the node names, come through it too, when `--data-address` allows no other.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What a client's first words name in its data connections, with TLS and in the clear.
const DATA_WORDS: [&[u8]; 2] = [b"carrack-data/1", b"CRK1"];
/// Handshakes are over after so many bytes of a data connection.
const HANDSHAKE_BYTES: u64 = 64 << 10;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Control,
    Data,
}

/// The relay; it takes no more connections when dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    /// `127.0.0.2:PORT`.
    pub address: SocketAddr,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: Vec<(u64, Kind, TcpStream, TcpStream)>,
    made: u64,
    refusing: bool,
    refused: u64,
    stalled: bool,
    /// Bytes of content to change.
    to_change: u64,
    carried: u64,
    ended: bool,
}

impl Proxy {
    /// Before a node at `127.0.0.1:PORT`.
    pub fn before(node: &str) -> Self {
        let target: SocketAddr = node.parse().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 2], target.port()));
        let listener = TcpListener::bind(address).unwrap();
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut state = accepting.lock();
                if state.ended {
                    return;
                }
                if state.refusing {
                    state.refused += 1;
                    continue;
                }
                drop(state);
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || shared.relay(client, target));
            }
        });
        Self { shared, address }
    }

    /// Loses open connections of a kind: all, or the one made first. How many.
    pub fn lose(&self, kind: Kind, all: bool) -> usize {
        let state = self.shared.lock();
        let of_kind = state.open.iter().filter(|(_, of, ..)| *of == kind).take(if all { usize::MAX } else { 1 });
        let mut lost = 0;
        for (_, _, client, node) in of_kind {
            let _ = [client, node].map(|socket| socket.shutdown(Shutdown::Both));
            lost += 1;
        }
        lost
    }

    /// From now on connections are closed as soon as they are made; or no more.
    pub fn refuse(&self, on: bool) {
        self.shared.lock().refusing = on;
    }

    /// Connections refused so far.
    pub fn refused(&self) -> u64 {
        self.shared.lock().refused
    }

    /// From now on nothing passes; or again.
    pub fn stall(&self, on: bool) {
        self.shared.lock().stalled = on;
        self.shared.changed.notify_all();
    }

    /// So many bytes of what follows the handshake of data connections are changed.
    pub fn change(&self, bytes: u64) {
        self.shared.lock().to_change = bytes;
    }

    /// Bytes left to change.
    pub fn left_to_change(&self) -> u64 {
        self.shared.lock().to_change
    }

    /// Bytes that have passed in data connections.
    pub fn carried(&self) -> u64 {
        self.shared.lock().carried
    }

    /// Connections open now.
    pub fn open(&self, kind: Kind) -> usize {
        self.shared.lock().open.iter().filter(|(_, of, ..)| *of == kind).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        (state.ended, state.stalled) = (true, false);
        for (_, _, client, node) in state.open.drain(..) {
            let _ = [client, node].map(|socket| socket.shutdown(Shutdown::Both));
        }
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn relay(self: &Arc<Self>, client: TcpStream, target: SocketAddr) {
        let Ok(node) = TcpStream::connect(target) else { return };
        let mut first = [0; 4096];
        let Ok(length) = (&client).read(&mut first) else { return };
        let first = first[..length].to_vec();
        let names = |word: &&[u8]| first.windows(word.len()).any(|window| window == *word);
        let kind = if DATA_WORDS.iter().any(names) { Kind::Data } else { Kind::Control };
        if (&node).write_all(&first).is_err() {
            return;
        }
        let half = |socket: &TcpStream| socket.try_clone().unwrap();
        let number = {
            let mut state = self.lock();
            state.made += 1;
            let number = state.made;
            state.open.push((number, kind, half(&client), half(&node)));
            number
        };
        let (shared, from, to) = (Arc::clone(self), half(&node), half(&client));
        let back = std::thread::spawn(move || shared.pump(kind, from, to));
        self.pump(kind, half(&client), half(&node));
        back.join().unwrap();
        self.lock().open.retain(|(of, ..)| *of != number);
    }

    fn pump(&self, kind: Kind, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        let mut passed = 0;
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let mut state = self.lock();
            while state.stalled {
                state = self.changed.wait(state).unwrap();
            }
            if kind == Kind::Data {
                passed += length as u64;
                state.carried += length as u64;
                if passed > HANDSHAKE_BYTES && state.to_change > 0 {
                    state.to_change -= 1;
                    buffer[length / 2] ^= 0x40;
                }
            }
            drop(state);
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = [&from, &to].map(|socket| socket.shutdown(Shutdown::Both));
    }
}
