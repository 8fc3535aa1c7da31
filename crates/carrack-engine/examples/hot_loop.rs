//! What every byte of a large file passes through, and nothing else: read, digest, seal, send; receive, open, digest,
//! write. For counting instructions, which a busy machine does not change:
//!
//!     cargo xtask instructions
//!     cargo run --release -p carrack-engine --example hot_loop tls 1024
//!
//! The first argument is `tls` or `clear`, the second so many MiB, the third a digest: `blake3` where none is
//! named, `xxh128` or `none`.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // No product.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use carrack_core::ids::{ItemId, StreamId};
use carrack_core::request::Digests;
use carrack_core::tuning::{SLICE_BYTES, Tuning};
use carrack_core::wire::frame::{HEADER_BYTES, Header, TRAILER_BYTES, Trailer};
use carrack_engine::testing::data::hasher::BlockHasher;
use carrack_engine::testing::data::mac::Mac;
use carrack_engine::testing::data::stream::{Connection, InStream, OutStream, Protection};
use carrack_engine::testing::net::socket::Socket;
use carrack_engine::testing::net::tls::{ALPN_DATA, Key, Tls, server_config};
use carrack_sys::file::{read_full_at, write_all_at};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let encrypted = match arguments.next().as_deref() {
        Some("tls") => true,
        Some("clear") => false,
        _ => return Err(io::Error::other("hot_loop tls|clear MIB DIGEST")),
    };
    let mib: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(64);
    let digests = match arguments.next().as_deref() {
        None | Some("blake3") => Digests::BLAKE3,
        Some("xxh128") => Digests::XXH128,
        Some("none") => Digests::NONE,
        Some(other) => return Err(io::Error::other(format!("{other} is no digest of blocks"))),
    };
    let blocks = (mib << 20) / u64::from(Tuning::DEFAULT.block_bytes);
    let directory = tempfile::tempdir()?;
    let open =
        |name| File::options().create(true).truncate(true).read(true).write(true).open(directory.path().join(name));
    let (source, target) = (open("source")?, open("target")?);
    // One block, sent again and again, stays in the cache: storage is not what is counted.
    write_all_at(&source, &vec![0x5a; Tuning::DEFAULT.block_bytes as usize], 0)?;
    let (near, far) = UnixStream::pair()?;
    let key = Key::generate()?;
    let pin = key.pin;
    let receiver = std::thread::spawn(move || {
        let connection = connection(far, encrypted.then(|| server_config(&key, &[ALPN_DATA]).and_then(Tls::server)))?;
        receive(connection, &target, blocks, digests)
    });
    send(connection(near, encrypted.then(|| Tls::client(Some(pin), &[ALPN_DATA])))?, &source, blocks, digests)?;
    receiver.join().map_err(|_| io::Error::other("the receiver panicked"))?
}

fn connection(socket: UnixStream, tls: Option<io::Result<Tls>>) -> io::Result<Connection> {
    let protection = match tls {
        Some(tls) => {
            let mut tls = tls?;
            tls.handshake(&socket)?;
            Protection::Tls(Box::new(tls))
        }
        None => Protection::Mac(Mac::new([7; 32])),
    };
    Ok(Connection { socket: Arc::new(Socket::Unix(socket)), protection, early: Vec::new(), number: StreamId(0) })
}

fn send(connection: Connection, source: &File, blocks: u64, digests: Digests) -> io::Result<()> {
    let mut out = OutStream::new(connection, Arc::default(), &Tuning::DEFAULT);
    let mut slice = vec![0; SLICE_BYTES];
    for block in 0..blocks {
        let offset = block * u64::from(Tuning::DEFAULT.block_bytes);
        let header =
            Header::Block { item: ItemId(0), offset, length: Tuning::DEFAULT.block_bytes, hole: false, whole: false };
        out.meta(&[&header.encode()])?;
        let mut hasher = BlockHasher::new(digests, offset);
        for place in (0..u64::from(Tuning::DEFAULT.block_bytes)).step_by(SLICE_BYTES) {
            read_full_at(source, &mut slice, place)?;
            hasher.update(&slice);
            out.payload(&slice)?;
        }
        out.meta(&[&Trailer { whole: true, digest: hasher.finish(false) }.encode()])?;
        out.flush()?;
    }
    Ok(())
}

fn receive(connection: Connection, target: &File, blocks: u64, digests: Digests) -> io::Result<()> {
    let mut input = InStream::new(connection, Arc::default());
    for block in 0..blocks {
        let (mut header, mut trailer) = ([0; HEADER_BYTES], [0; TRAILER_BYTES]);
        input.meta(&mut header)?;
        let mut hasher = BlockHasher::new(digests, block * u64::from(Tuning::DEFAULT.block_bytes));
        let mut place = 0;
        input.payload(Tuning::DEFAULT.block_bytes.into(), &mut |slice: &[u8]| {
            hasher.update(slice);
            write_all_at(target, slice, place)?;
            place += slice.len() as u64;
            Ok::<(), io::Error>(())
        })?;
        input.meta(&mut trailer)?;
        let theirs = Trailer::decode(&trailer, digests).map_err(io::Error::other)?;
        if theirs.digest != hasher.finish(false) {
            return Err(io::Error::other("the digests differ"));
        }
    }
    Ok(())
}
