//! What encryption costs on a data stream, by three ways of driving the same TLS 1.3: rustls' buffered interface, its
//! handshake with records by `net::records` as Carrack's streams use it, and no TLS at all. Memory to memory over a
//! loopback TCP connection, one thread a side.
//!
//!     cargo run --release --example tls_cost [GIB] [ROUNDS]
//!
//! Prints medians of interleaved rounds: CPU seconds (user and system, both sides) per 10^9 bytes, and GB/s.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // No product.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use carrack_core::ids::StreamId;
use carrack_core::tuning::{SLICE_BYTES, Tuning};
use carrack_engine::testing::data::stream::{Connection, InStream, OutStream, Protection};
use carrack_engine::testing::net::socket::Socket;
use carrack_engine::testing::net::tls::{ALPN_DATA, Key, Tls, client_config, nameless, server_config};
use rustls::{ClientConnection, ServerConnection};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Buffered,
    Records,
    Clear,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Buffered => "TLS, rustls buffered",
            Self::Records => "TLS, records by net::records (Carrack)",
            Self::Clear => "no TLS",
        }
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().map_err(io::Error::other));
    let gib = arguments.next().transpose()?.unwrap_or(4);
    let rounds = arguments.next().transpose()?.unwrap_or(5);
    let slices = gib * (1 << 30) / SLICE_BYTES;
    let ways = [Way::Buffered, Way::Records, Way::Clear];
    let mut results = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for (way, results) in ways.iter().zip(&mut results) {
            results.push(measure(*way, slices)?);
        }
    }
    println!("| way | CPU-s/GB | GB/s |\n|---|---|---|");
    for (way, results) in ways.iter().zip(&mut results) {
        let mut median = |pick: fn(&(f64, f64)) -> f64| {
            results.sort_by(|a, b| pick(a).total_cmp(&pick(b)));
            pick(&results[results.len() / 2])
        };
        println!("| {} | {:.2} | {:.2} |", way.name(), median(|result| result.0), median(|result| result.1));
    }
    Ok(())
}

/// CPU seconds per GB, and GB/s.
fn measure(way: Way, slices: usize) -> io::Result<(f64, f64)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    let key = Key::generate()?;
    let pin = key.pin;
    let (cpu, start) = (carrack_sys::host::cpu_seconds(), Instant::now());
    let receiver = std::thread::spawn(move || receive(way, far, &key, slices));
    send(way, near, pin, slices)?;
    receiver.join().map_err(|_| io::Error::other("the receiver panicked"))??;
    let gigabytes = (slices * SLICE_BYTES) as f64 / 1e9;
    Ok(((carrack_sys::host::cpu_seconds() - cpu) / gigabytes, gigabytes / start.elapsed().as_secs_f64()))
}

fn connection(socket: TcpStream, protection: Protection) -> Connection {
    Connection { socket: Arc::new(Socket::Tcp(socket)), protection, early: Vec::new(), number: StreamId(0) }
}

fn send(way: Way, socket: TcpStream, pin: [u8; 32], slices: usize) -> io::Result<()> {
    let slice = vec![0x5a; SLICE_BYTES];
    if way == Way::Buffered {
        let config = Arc::new(client_config(Some(pin), &[ALPN_DATA])?);
        let tls = ClientConnection::new(config, nameless()?).map_err(io::Error::other)?;
        let mut stream = rustls::StreamOwned::new(tls, socket);
        stream.conn.set_buffer_limit(Some(2 * SLICE_BYTES));
        for _ in 0..slices {
            stream.write_all(&slice)?;
        }
        return stream.flush();
    }
    let protection = if way == Way::Records {
        let mut tls = Tls::client(Some(pin), &[ALPN_DATA])?;
        tls.handshake(&socket)?;
        Protection::Tls(Box::new(tls))
    } else {
        Protection::Memory
    };
    let mut stream = OutStream::new(connection(socket, protection), Arc::default(), &Tuning::DEFAULT);
    for _ in 0..slices {
        stream.payload(&slice)?;
    }
    stream.flush()
}

fn receive(way: Way, socket: TcpStream, key: &Key, slices: usize) -> io::Result<()> {
    if way == Way::Buffered {
        let tls = ServerConnection::new(Arc::new(server_config(key, &[ALPN_DATA])?)).map_err(io::Error::other)?;
        let mut stream = rustls::StreamOwned::new(tls, socket);
        let mut slice = vec![0; SLICE_BYTES];
        for _ in 0..slices {
            stream.read_exact(&mut slice)?;
        }
        return Ok(());
    }
    let protection = if way == Way::Records {
        let mut tls = Tls::server(server_config(key, &[ALPN_DATA])?)?;
        tls.handshake(&socket)?;
        Protection::Tls(Box::new(tls))
    } else {
        Protection::Memory
    };
    let mut stream = InStream::new(connection(socket, protection), Arc::default());
    stream.payload((slices * SLICE_BYTES) as u64, &mut |slice: &[u8]| {
        std::hint::black_box(slice);
        Ok::<(), io::Error>(())
    })
}
