//! What is done with arbitrary bytes, by the fuzzer and, over the kept corpus, by an ordinary test.

use std::time::{Duration, Instant};

use carrack_core::attributes::{Attributes, Time};
use carrack_core::credential::Token;
use carrack_core::digest::{BlockDigest, block_count};
use carrack_core::grant::{Claims, GrantError, GrantKey};
use carrack_core::ids::{BundleId, ItemId, StreamId};
use carrack_core::judgment::Judgment;
use carrack_core::path::{check_relative, display_bytes, drives_terminal, join, split_name};
use carrack_core::report::{ErrorCode, Failure, FileDigests, ItemKind, Side};
use carrack_core::request::{Digests, Verify};
use carrack_core::transfer::ScannedItem;
use carrack_core::transfer::machine::Machine;
use carrack_core::transfer::marker::{Chain, PartRecord, replay};
use carrack_core::transfer::receiver::{ArrivedBlock, BlockStart, Opened, Receiver, ReceiverAction, ReceiverConfig};
use carrack_core::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig, SentItem};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::{Ask, Role, Tell, TransferOptions};
use carrack_core::wire::frame::{
    ENTRY_HEADER_BYTES, EntryHeader, HEADER_BYTES, Header, TRAILER_BYTES, Trailer, check_entry_path,
};
use carrack_core::wire::mux;
use carrack_core::wire::patch::{Patch, TakenBlock};
use carrack_core::wire::peer::{AskedItem, ItemResult, PeerMessage};
use carrack_core::wire::piece::{PIECE_HEADER_BYTES, PieceHeader};
use carrack_core::wire::{self, Version};

/// A target's name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Each target and what it does.
pub const TARGETS: [Target; 8] = [
    ("frame", frame),
    ("attributes", attributes),
    ("control", control),
    ("peer", peer),
    ("path", path),
    ("mux", multiplexed),
    ("marker", marker),
    ("grant", grant),
];

/// A marker: as it is, and as records of these kinds and payloads whose checksums are right. What counts is a whole
/// number of records, says the same when it is read again, and claims nothing that cannot be.
pub fn marker(data: &[u8]) {
    let boot = [7; 16];
    check_marker(data, boot);
    let (mut bytes, mut chain) = Chain::begin(*b"01234567");
    let mut rest = data;
    while let Some(([kind, low, high], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high]) % 4096).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        chain.append_raw(kind % 8, payload, &mut bytes);
        rest = behind;
    }
    check_marker(&bytes, boot);
    assert!(replay(&bytes, boot).is_some());
}

fn check_marker(bytes: &[u8], boot: [u8; 16]) {
    let Some(found) = replay(bytes, boot) else { return };
    let good = usize::try_from(found.bytes).expect("no more than was read");
    assert_eq!(found.damaged, good < bytes.len());
    let mut again = replay(&bytes[..good], boot).expect("it was read before");
    again.damaged = found.damaged;
    assert_eq!(again, found);
    for left in found.parts.values() {
        let PartRecord { path, part_name, size, block_bytes, .. } = &left.part;
        assert!(check_relative(path).is_ok() && check_relative(part_name).is_ok() && !part_name.contains(&b'/'));
        let claims = left.claims();
        assert!(claims.is_sorted_by(|a, b| a.index < b.index));
        assert!(claims.last().is_none_or(|last| last.index < block_count(*size, *block_bytes)));
        assert!(left.has_claims() != claims.is_empty());
    }
    let wanted = Digests::NONE;
    assert!(found.known_count() <= carrack_core::limits::KNOWN_ITEMS as u64);
    let _ = found.known(&[0; 16], wanted);
}

/// Grants: claims that are understood lead nowhere but down, and come back byte for byte; a text that nobody sealed is
/// none.
pub fn grant(data: &[u8]) {
    if let Ok(claims) = Claims::decode(data) {
        assert!(claims.prefix.is_empty() || check_relative(&claims.prefix).is_ok());
        assert_eq!(claims.encode().as_deref(), Ok(data));
    }
    let token = Token::new(b"0123456789abcdef").expect("a token");
    let opened = GrantKey::of(&token).open(&String::from_utf8_lossy(data), 0);
    assert_eq!(opened, Err(GrantError::Forged));
}

/// Headers, entries and trailers: what decodes is encoded to something that decodes to the same.
pub fn frame(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else { return };
    let block_bytes = 1 << (16 + size % 11);
    for bytes in data.chunks_exact(HEADER_BYTES) {
        let bytes: &[u8; HEADER_BYTES] = bytes.try_into().expect("chunks have this size");
        if let Ok(header) = Header::decode(bytes, block_bytes) {
            assert_eq!(Header::decode(&header.encode(), block_bytes), Ok(header));
        }
    }
    for bytes in data.chunks_exact(PIECE_HEADER_BYTES) {
        let bytes: &[u8; PIECE_HEADER_BYTES] = bytes.try_into().expect("chunks have this size");
        if let Ok(piece) = PieceHeader::decode(bytes) {
            assert_eq!(piece.encode(), *bytes);
            assert!(piece.plain <= carrack_core::limits::PIECE_BYTES && piece.packed.is_none_or(|to| to < piece.plain));
        }
    }
    if let Ok(patch) = Patch::decode(data, carrack_core::limits::PATCHED_BYTES) {
        assert!(patch.apply(data).is_none_or(|made| made.len() == patch.size as usize));
    }
    for bytes in data.chunks_exact(TRAILER_BYTES) {
        let bytes: &[u8; TRAILER_BYTES] = bytes.try_into().expect("chunks have this size");
        for wanted in [Digests::BLAKE3, Digests::XXH128] {
            if let Ok(trailer) = Trailer::decode(bytes, wanted) {
                assert_eq!(trailer.encode(), *bytes);
            }
        }
    }
    if let Some((bytes, path)) = data.split_first_chunk::<ENTRY_HEADER_BYTES>() {
        if let Ok(entry) = EntryHeader::decode(bytes) {
            assert_eq!(EntryHeader::decode(&entry.encode()), Ok(entry));
        }
        assert_eq!(check_entry_path(path).is_ok(), check_relative(path).is_ok());
    }
}

/// Blocks of attributes: what is read is within its bounds, and comes back byte for byte.
pub fn attributes(data: &[u8]) {
    if let Ok(attributes) = wire::attributes::decode(data) {
        assert_eq!(wire::attributes::encode(&attributes), data);
        assert!((1..=carrack_core::limits::ATTRIBUTES).contains(&attributes.iter().count()));
        assert!(attributes.iter().is_sorted_by(|one, next| one.kind < next.kind));
    }
}

/// Messages of the control conversation, in both directions: what is taken leads nowhere but down, drives no
/// terminal, and comes back.
pub fn control(data: &[u8]) {
    if let Ok((request, Ok(ask))) = Ask::decode(data) {
        if let Ask::Begin(begin) = &ask
            && let Role::Send(send) = &begin.role
        {
            assert!(
                send.sources.iter().all(|source| source.target.is_empty() || check_relative(&source.target).is_ok())
            );
        }
        assert_eq!(Ask::decode(&ask.clone().encode(request)), Ok((request, Ok(ask))));
    }
    if let Ok((request, tell)) = Tell::decode(data) {
        if let Tell::Note(text) = &tell {
            assert!(!text.contains(drives_terminal));
        }
        if let Tell::Failed(failure) = &tell {
            assert!(!failure.message().contains(drives_terminal));
        }
        assert_eq!(Tell::decode(&tell.clone().encode(request)), Ok((request, tell)));
    }
}

/// Paths: what passes leads nowhere but down, and what is shown drives no terminal.
pub fn path(data: &[u8]) {
    let shown = display_bytes(data).to_string();
    assert!(!shown.contains(drives_terminal));
    if check_relative(data).is_err() {
        return;
    }
    assert!(!data.starts_with(b"/") && !data.contains(&0));
    assert!(data.split(|&byte| byte == b'/').all(|part| !matches!(part, b"" | b"." | b"..")));
    let (directory, name) = split_name(data);
    assert_eq!(join(directory, name), data);
    assert!(directory.is_empty() || check_relative(directory).is_ok());
    assert!(check_relative(name).is_ok());
}

/// Headers of the multiplexed connection.
pub fn multiplexed(data: &[u8]) {
    for bytes in data.chunks_exact(mux::HEADER_BYTES) {
        let bytes: [u8; mux::HEADER_BYTES] = bytes.try_into().expect("chunks have this size");
        if let Ok((channel, length)) = mux::decode_header(bytes) {
            assert!(length <= carrack_core::limits::MUX_FRAME_BYTES);
            assert_eq!(mux::encode_header(channel, length), bytes);
        }
    }
}

/// A message as it is; and a conversation: pieces that begin with their length, which are messages to both machines,
/// or, when they are of one to eight bytes, things that happen on streams and disks.
pub fn peer(data: &[u8]) {
    if let Ok(message) = PeerMessage::decode(data) {
        assert_eq!(PeerMessage::decode(&message.encode()), Ok(message));
    }
    let mut both = Both::new();
    let mut rest = data;
    for _ in 0..400 {
        let Some((&length, after)) = rest.split_first() else { return };
        let (piece, after) = after.split_at(after.len().min(usize::from(length)));
        match piece {
            [] => {}
            &[what, a, b, ..] if piece.len() <= 8 && what & 0xe0 == 0xe0 => both.happens(what & 0x1f, a, b),
            _ => both.hear(piece),
        }
        both.act();
        rest = after;
    }
}

const BLOCK: u32 = carrack_core::limits::BLOCK_BYTES_MIN;
const STREAMS: u16 = 3;

/// A receiver and a sender, each with a driver that keeps its contract, whatever the peer says.
struct Both {
    receiver: Receiver,
    sender: Sender,
    now: Instant,
    digests: Digests,
    /// What storage makes of the next checkpoints.
    storage: Storage,
    /// What each stream of the receiver is writing.
    writing: [Option<Unit>; STREAMS as usize],
    /// What each stream of the sender is sending; gone when it is lost.
    sending: [Option<Option<Job>>; STREAMS as usize],
}

/// What a checkpoint comes to.
#[derive(Clone, Copy)]
enum Storage {
    Good,
    Rotten,
    Failing,
}

#[derive(Clone, Copy)]
enum Unit {
    Block(ItemId, u64, u32),
    Bundle(BundleId),
}

fn failure() -> Failure {
    Failure::new(ErrorCode::Other, Side::Link, "fuzzed")
}

fn scanned(name: &str, kind: ItemKind, size: Option<u64>) -> ScannedItem {
    let path = name.as_bytes().to_vec();
    ScannedItem { size, attributes: Attributes::new(0o600, Time::default()), ..ScannedItem::new(0, path, kind) }
}

impl Both {
    fn new() -> Self {
        let digests = Digests { crc32c: true, ..Digests::BLAKE3 };
        let verify = Verify::Disk;
        let options = TransferOptions {
            digests,
            item_events: true,
            ..TransferOptions::of(&Default::default(), verify, BLOCK, Version::NEWEST)
        };
        let mut receiver = Receiver::new(ReceiverConfig { options, checkpoints: true, tuning: Tuning::DEFAULT });
        let mut sender =
            Sender::new(SenderConfig { options, targets: vec![Vec::new()], known: true, tuning: Tuning::DEFAULT });
        let now = Instant::now();
        for stream in (0..STREAMS).map(StreamId) {
            receiver.handle_stream(now, stream);
            sender.handle_stream(now, stream);
        }
        let items = [
            scanned("d", ItemKind::Directory, None),
            scanned("small", ItemKind::File, Some(10)),
            scanned("link", ItemKind::Symlink, None),
            scanned("large", ItemKind::File, Some(20 * u64::from(BLOCK) + 5)),
            scanned("pipe", ItemKind::File, None),
        ];
        let old = ScannedItem { fingerprint: Some([1; 16]), ..scanned("old", ItemKind::File, Some(9)) };
        items.into_iter().chain([old]).for_each(|item| sender.handle_item(now, item));
        let writing = [None; STREAMS as usize];
        let sending = std::array::from_fn(|_| Some(None));
        receiver.handle_time(now);
        Self { receiver, sender, now, digests, storage: Storage::Good, writing, sending }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let Ok(message) = PeerMessage::decode(bytes) else { return };
        // As the drivers do: whoever breaks the protocol has ended the transfer.
        if self.receiver.handle_message(self.now, message.clone()).is_err() && bytes.len().is_multiple_of(8) {
            self.receiver.fail(failure());
        }
        if self.sender.handle_message(self.now, message).is_err() && bytes.len() % 8 == 1 {
            self.sender.fail(failure());
        }
    }

    /// Something outside: on a stream of the receiver, on one of the sender, or the clock.
    fn happens(&mut self, what: u8, a: u8, b: u8) {
        let stream = StreamId(u16::from(a) % STREAMS);
        match what {
            8 => self.storage = Storage::Good,
            9 => self.storage = Storage::Rotten,
            10 => self.storage = Storage::Failing,
            _ => self.happens_on_a_stream(what % 8, stream, a, b),
        }
    }

    fn happens_on_a_stream(&mut self, what: u8, stream: StreamId, a: u8, b: u8) {
        match what {
            0 => self.begins(
                stream,
                Unit::Block(ItemId(u64::from(a >> 4)), u64::from(b) * u64::from(BLOCK), BLOCK),
                b & 1 == 1,
            ),
            1 => self.begins(
                stream,
                Unit::Block(ItemId(u64::from(a >> 4)), u64::from(b >> 4) * u64::from(BLOCK), 5),
                b & 1 == 1,
            ),
            2 => self.begins(stream, Unit::Bundle(BundleId(u64::from(b))), false),
            3 => self.finishes(stream, b),
            4 => {
                self.writing[usize::from(stream.0)] = None;
                self.receiver.handle_stream_closed(self.now, stream);
                self.receiver.handle_stream(self.now, stream);
            }
            5 => self.sends(stream, b),
            6 => self.loses(stream),
            _ if b == 0xff => self.sender.handle_scan_complete(self.now),
            _ => {
                self.now += Duration::from_millis(u64::from(b) * 10);
                self.receiver.handle_time(self.now);
            }
        }
    }

    fn begins(&mut self, stream: StreamId, unit: Unit, whole: bool) {
        if self.writing[usize::from(stream.0)].is_some() {
            return;
        }
        let begin = match unit {
            Unit::Block(item, offset, length) => self.receiver.begin_block(stream, item, offset, length, whole),
            Unit::Bundle(bundle) => Ok(self.receiver.begin_bundle(stream, bundle)),
        };
        self.writing[usize::from(stream.0)] = (begin == Ok(BlockStart::Write)).then_some(unit);
    }

    fn finishes(&mut self, stream: StreamId, how: u8) {
        let digest = BlockDigest { main: [how & 3; 32], ..BlockDigest::default() };
        match self.writing[usize::from(stream.0)].take() {
            Some(Unit::Block(item, ..)) if how & 0x10 != 0 => {
                self.receiver.handle_write_failed(self.now, stream, item, failure());
            }
            Some(Unit::Block(item, offset, length)) => {
                let ours = BlockDigest { main: [(how >> 2) & 3; 32], ..digest };
                let trailer = Trailer { whole: how & 0x20 == 0, digest };
                self.receiver.handle_block(self.now, stream, ArrivedBlock { item, offset, length }, ours, &trailer);
            }
            Some(Unit::Bundle(bundle)) => {
                // What it does not want is removed by the driver.
                let _ = self.receiver.handle_bundle(self.now, stream, bundle, 5);
            }
            None => {}
        }
    }

    /// The sender's stream takes what there is, or ends what it has taken.
    fn sends(&mut self, stream: StreamId, how: u8) {
        let Some(carried) = &mut self.sending[usize::from(stream.0)] else { return };
        match carried.take() {
            None => {
                if let Next::Job(job) = self.sender.next_job(self.now, stream) {
                    *carried = Some(job);
                }
            }
            Some(Job::Bundle(bundle)) => {
                let sent = SentItem {
                    size: 5,
                    taken_over: u64::from(how & 4),
                    digest: BlockDigest::default(),
                    failure: (how & 1 == 1).then(failure),
                };
                self.sender.handle_bundle_sent(self.now, bundle.id, vec![sent; bundle.items.len()]);
            }
            Some(Job::Check(block)) => {
                let digest = BlockDigest { main: [how >> 1 & 1; 32], ..BlockDigest::default() };
                let result = if how & 1 == 1 { Err(failure()) } else { Ok(digest) };
                self.sender.handle_block_checked(self.now, stream, block.item, block.offset, result);
            }
            Some(Job::Block(block)) => {
                let (mut length, digest) = (block.length, BlockDigest::default());
                if block.unsized_source {
                    let end = how & 2 == 0;
                    length = if end { u32::from(how) } else { length };
                    self.sender.handle_read(self.now, block.item, block.offset, length, end);
                }
                let result = if how & 1 == 1 { Err(failure()) } else { Ok((length, digest)) };
                self.sender.handle_block_sent(self.now, stream, block.item, block.offset, result);
            }
        }
    }

    fn loses(&mut self, stream: StreamId) {
        if self.sending[usize::from(stream.0)].take().is_some() {
            self.sender.handle_stream_lost(self.now, stream);
        }
    }

    fn present(&self) -> FileDigests {
        BlockDigest::default().as_file(self.digests)
    }

    /// By the length of a path, an earlier attempt has left nothing, some blocks, or all.
    fn opened(&self, path: &[u8]) -> Opened {
        match path.len() % 5 {
            2 => {
                let digest = BlockDigest::default();
                let taken = |index: u64| TakenBlock { index, digest, chunks: vec![7; index as usize] };
                let left = (0..6).map(|index| (index * 2 / 3, digest)).collect();
                Opened::Resumed { left, taken_over: [2, 2, 3].map(taken).into() }
            }
            4 => Opened::Present(self.present()),
            _ => Opened::Ready,
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.receiver.poll_action() {
            match action {
                ReceiverAction::Open(offer) if offer.path.len().is_multiple_of(5) => {
                    self.receiver.handle_opened(self.now, offer.item, Opened::Refused(failure()));
                }
                ReceiverAction::Open(offer) => {
                    self.receiver.handle_opened(self.now, offer.item, self.opened(&offer.path))
                }
                ReceiverAction::CloseStream(stream) => {
                    self.writing[usize::from(stream.0)] = None;
                    self.receiver.handle_stream_closed(self.now, stream);
                }
                ReceiverAction::Publish { item, .. } => {
                    self.receiver.handle_published(self.now, item, ItemResult::Published)
                }
                ReceiverAction::Commit(bundle) => self.receiver.handle_committed(self.now, bundle, Vec::new()),
                ReceiverAction::ApplyDirectories(_) => self.receiver.handle_directories_applied(self.now, Vec::new()),
                ReceiverAction::Sync => self.receiver.handle_synced(self.now, true),
                ReceiverAction::Checkpoint { item, blocks } => {
                    let result = match self.storage {
                        Storage::Good => Ok(Vec::new()),
                        Storage::Rotten => Ok(blocks.into_iter().map(|(index, _)| index).collect()),
                        Storage::Failing => Err(failure()),
                    };
                    self.receiver.handle_checkpointed(self.now, item, result);
                }
                ReceiverAction::Look { bundle, items } => {
                    let there = items.iter().filter(|item| item.path.len().is_multiple_of(2));
                    let known = there.map(|item| (item.index, self.present())).collect();
                    self.receiver.handle_looked(self.now, bundle, known);
                }
                ReceiverAction::Compare { number, question } => {
                    // By the length of a path, each judgment that there is.
                    let judgments = (0..=u8::MAX).filter_map(Judgment::from_number).collect::<Vec<_>>();
                    let of = |item: &AskedItem| judgments[item.path.len() % judgments.len()];
                    let judgments = question.items.iter().map(of).collect();
                    self.receiver.handle_compared(self.now, number, judgments);
                }
                ReceiverAction::CompareContent { asked, digest } => {
                    self.receiver.handle_content_compared(self.now, asked, digest.is_some(), Vec::new());
                }
                ReceiverAction::Send(_) | ReceiverAction::Discard(_) | ReceiverAction::Delete { .. } => {}
            }
        }
        while let Some(action) = self.sender.poll_action() {
            match action {
                SenderAction::CheckSource(item) => self.sender.handle_source_checked(self.now, item, Ok(None)),
                SenderAction::Follow(item) => self.sender.handle_followed(self.now, item, 5000, None),
                SenderAction::AbortStream(stream) => self.loses(stream),
                SenderAction::Rescan { scanned, attempt } => {
                    self.sender.handle_rescanned(self.now, &scanned, attempt, Ok(scanned.clone()));
                }
                SenderAction::LookUp { number, paths } => {
                    self.sender.handle_looked_up(self.now, number, vec![true; paths.len()]);
                }
                SenderAction::ReadContent { asked, .. } => {
                    self.sender.handle_content_read(self.now, asked, Ok([7; 32]));
                }
                SenderAction::RemoveSources => self.sender.handle_sources_removed(1),
                SenderAction::Send(_)
                | SenderAction::CloseSource(_)
                | SenderAction::Report(_)
                | SenderAction::Copied(_) => {}
            }
        }
    }
}
