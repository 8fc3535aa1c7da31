//! Blocks of real bytes, delivered to a receiver in any order, doubled and side by side, give the file and what `b3sum`
//! prints for it; blocks in the wrong place never get a name.
#![cfg(test)]

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use blake3::hazmat::HasherExt;
use proptest::prelude::*;

use super::receiver::{BlockStart, Opened, Receiver, ReceiverAction, ReceiverConfig};
use super::simulation::plan::Rng;
use crate::attributes::Attributes;
use crate::digest::{BlockDigest, FileDigests, block_count, block_length, from_xxh128};
use crate::failure::ErrorCode;
use crate::ids::{ItemId, StreamId};
use crate::request::{Digests, MainDigest, Verify};
use crate::transfer::machine::Machine;
use crate::transfer::receiver::ArrivedBlock;
use crate::tuning::Tuning;
use crate::wire::Version;
use crate::wire::control::TransferOptions;
use crate::wire::frame::Trailer;
use crate::wire::peer::{ItemResult, Offer, PeerMessage};

pub(super) fn options(block_bytes: u32) -> TransferOptions {
    TransferOptions {
        digests: Digests { crc32c: true, ..Digests::BLAKE3 },
        item_events: true,
        ..TransferOptions::of(&Default::default(), Verify::Wire, block_bytes, Version::NEWEST)
    }
}

pub(super) fn offer(item: ItemId, size: Option<u64>) -> PeerMessage {
    let path = format!("file{item}").into_bytes();
    PeerMessage::Offer(Offer {
        item,
        path,
        size,
        attributes: Attributes { mode: 0o644, ..Attributes::default() },
        sparse: false,
        fingerprint: None,
    })
}

/// What a bug may do to a block on its way. Its digest is made of what it then is, so that the block alone looks right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Two blocks change places.
    Swap,
    /// A block never comes.
    Drop,
    /// One comes again where another belongs.
    WrongOffset,
}

struct Case {
    main: MainDigest,
    receiver: Receiver,
    rng: Rng,
    data: Vec<u8>,
    block_bytes: u32,
    bug: Bug,
    /// Blocks to be delivered, for each stream.
    queues: BTreeMap<StreamId, VecDeque<u64>>,
    writing: BTreeMap<StreamId, u64>,
    next_stream: u16,
    written: BTreeMap<u64, Vec<u8>>,
    published: Option<(FileDigests, u64)>,
    refused: bool,
}

impl Case {
    fn new(seed: u64, size: usize, block_bytes: u32, streams: u16, bug: Bug, main: MainDigest) -> Self {
        let mut rng = Rng::new(seed);
        let data: Vec<u8> = std::iter::repeat_with(|| rng.next() as u8).take(size).collect();
        let digests = Digests { main: Some(main), ..options(block_bytes).digests };
        let options = TransferOptions { digests, ..options(block_bytes) };
        let mut receiver = Receiver::new(ReceiverConfig { options, checkpoints: false, tuning: Tuning::DEFAULT });
        (0..streams).for_each(|stream| receiver.handle_stream(Instant::now(), StreamId(stream)));
        let told = seed.is_multiple_of(2).then_some(size as u64);
        receiver.handle_message(Instant::now(), offer(ItemId(1), told)).expect("an offer is welcome");
        receiver.handle_opened(Instant::now(), ItemId(1), Opened::Ready);
        let queues = (0..streams).map(|stream| (StreamId(stream), VecDeque::new())).collect();
        let (writing, written) = (BTreeMap::new(), BTreeMap::new());
        let next_stream = streams;
        Self {
            main,
            receiver,
            rng,
            data,
            block_bytes,
            bug,
            queues,
            writing,
            next_stream,
            written,
            published: None,
            refused: false,
        }
    }

    fn blocks(&self) -> u64 {
        block_count(self.data.len() as u64, self.block_bytes)
    }

    /// The bytes that come as this block: its own, unless there is a bug.
    fn bytes(&self, index: u64) -> &[u8] {
        let last = self.blocks() - 1;
        let from = match (self.bug, index) {
            (Bug::Swap, 0) | (Bug::WrongOffset, 0) => 1,
            (Bug::Swap, 1) => 0,
            _ => index,
        };
        assert!(from == index || from < last, "full blocks change places");
        let start = from * u64::from(self.block_bytes);
        let length = block_length(from, self.data.len() as u64, self.block_bytes);
        &self.data[start as usize..(start + length) as usize]
    }

    /// Of these bytes at the place of this block. In the place of XXH3-128, which is computed elsewhere, stands another
    /// digest of as many bytes that depends on the place.
    fn digest_at(&self, index: u64, bytes: &[u8]) -> BlockDigest {
        let mut hasher = blake3::Hasher::new();
        let offset = index * u64::from(self.block_bytes);
        let main = match self.main {
            MainDigest::Xxh128 => {
                let digest = hasher.update(&offset.to_be_bytes()).update(bytes).finalize();
                from_xxh128(*digest.as_bytes().first_chunk().expect("it is longer"))
            }
            MainDigest::Blake3 if self.blocks() == 1 => *hasher.update(bytes).finalize().as_bytes(),
            MainDigest::Blake3 => hasher.set_input_offset(offset).update(bytes).finalize_non_root(),
        };
        BlockDigest { main, adler32: 1, crc32c: crc32c::crc32c(bytes) }
    }

    fn digest(&self, index: u64) -> BlockDigest {
        self.digest_at(index, self.bytes(index))
    }

    /// What the sender says that the file must be.
    fn whole(&self) -> [u8; 32] {
        if self.main == MainDigest::Blake3 {
            return *blake3::hash(&self.data).as_bytes();
        }
        let mut chunks = self.data.chunks(self.block_bytes as usize).collect::<Vec<_>>();
        if chunks.is_empty() {
            chunks.push(b"");
        }
        let digests = (0..).zip(chunks).map(|(index, bytes)| self.digest_at(index, bytes).main);
        let numbers = digests.map(|main| u128::from_be_bytes(*main.first_chunk().expect("it is longer")));
        from_xxh128(numbers.fold(0, u128::wrapping_add).to_be_bytes())
    }

    /// Every block at least once, some more often, in any order.
    fn deal(&mut self) {
        let mut deliveries: Vec<u64> = (0..self.blocks()).collect();
        let doubled: Vec<u64> = deliveries.iter().copied().filter(|_| self.rng.chance(300)).collect();
        deliveries.extend(doubled);
        if self.bug == Bug::Drop {
            deliveries.retain(|&index| index != 1);
        }
        while !deliveries.is_empty() {
            let drawn = self.rng.below(deliveries.len() as u64) as usize;
            let index = deliveries.swap_remove(drawn);
            self.queue(index);
        }
    }

    fn queue(&mut self, index: u64) {
        let drawn = self.rng.below(self.queues.len() as u64) as usize;
        let queue = self.queues.values_mut().nth(drawn);
        queue.expect("there is a stream").push_back(index);
    }

    fn run(&mut self) {
        self.deal();
        let size = self.data.len() as u64;
        self.act();
        while self.queues.values().any(|queue| !queue.is_empty()) || !self.writing.is_empty() {
            let drawn = self.rng.below(self.queues.len() as u64) as usize;
            let stream = *self.queues.keys().nth(drawn).expect("there is a stream");
            self.step(stream);
            self.act();
        }
        assert_eq!(self.published, None, "nobody has said that the file is complete");
        let complete = PeerMessage::Complete { item: ItemId(1), size, digest: Some(self.whole()), modified: None };
        self.receiver.handle_message(Instant::now(), complete).expect("every block has been sent");
        self.act();
    }

    fn step(&mut self, stream: StreamId) {
        if let Some(index) = self.writing.remove(&stream) {
            let bytes = self.bytes(index).to_vec();
            let digest = self.digest(index);
            let (offset, length) = (index * u64::from(self.block_bytes), bytes.len() as u32);
            self.written.insert(index, bytes);
            self.receiver.handle_block(
                Instant::now(),
                stream,
                ArrivedBlock { item: ItemId(1), offset, length },
                digest,
                &Trailer { whole: true, digest },
            );
            return;
        }
        let Some(index) = self.queues.get_mut(&stream).and_then(VecDeque::pop_front) else {
            return;
        };
        let (offset, length) = (index * u64::from(self.block_bytes), self.bytes(index).len() as u32);
        let whole = self.blocks() == 1;
        match self
            .receiver
            .begin_block(stream, ItemId(1), offset, length, whole)
            .expect("the block is one of the file's")
        {
            BlockStart::Write => {
                assert!(!self.written.contains_key(&index), "block {index} is written again");
                self.writing.insert(stream, index);
            }
            BlockStart::Discard => {
                assert!(self.written.contains_key(&index), "block {index} is dropped, and is not there")
            }
            BlockStart::WaitFor(other) => {
                assert_eq!(self.writing.get(&other), Some(&index));
                self.queues.get_mut(&stream).expect("it asks").push_front(index);
            }
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.receiver.poll_action() {
            match action {
                ReceiverAction::CloseStream(stream) => self.replace(stream),
                ReceiverAction::Publish { digests, size, .. } => {
                    assert_eq!(self.published.replace((digests, size)), None, "published twice");
                }
                ReceiverAction::Send(PeerMessage::Done { result, .. }) => {
                    let ItemResult::Again(why) = result else { panic!("{result:?}") };
                    assert_eq!(why.code, ErrorCode::DigestMismatch);
                    self.refused = true;
                }
                _ => {}
            }
        }
    }

    /// Cut off: what it was writing is lost, what it had still to bring comes by another.
    fn replace(&mut self, stream: StreamId) {
        self.receiver.handle_stream_closed(Instant::now(), stream);
        self.writing.remove(&stream);
        let rest = self.queues.remove(&stream).unwrap_or_default();
        let other = StreamId(self.next_stream);
        self.receiver.handle_stream(Instant::now(), other);
        self.queues.insert(other, rest);
        self.next_stream += 1;
    }
}

fn main(xxh128: bool) -> MainDigest {
    if xxh128 { MainDigest::Xxh128 } else { MainDigest::Blake3 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn orders_of_any_kind_give_what_b3sum_prints(seed: u64, size in 0usize..150_000, power in 10u32..15, streams in 0usize..4, xxh128: bool) {
        let mut case = Case::new(seed, size, 1 << power, [1, 2, 7, 16][streams], Bug::None, main(xxh128));
        case.run();
        let (digests, told) = case.published.expect("every block has landed");
        prop_assert_eq!(digests.main(), Some(case.whole()));
        prop_assert_eq!(digests.blake3.is_none(), xxh128);
        prop_assert_eq!(digests.crc32c, Some(crc32c::crc32c(&case.data)));
        prop_assert_eq!(told, size as u64);
        let written: Vec<u8> = case.written.values().flatten().copied().collect();
        prop_assert_eq!(written, case.data);
    }

    #[test]
    fn block_swapped_lost_or_misplaced_is_caught(seed: u64, size in 5_000usize..60_000, streams in 0usize..4, bug in 0usize..3, xxh128: bool) {
        let bug = [Bug::Swap, Bug::Drop, Bug::WrongOffset][bug];
        let mut case = Case::new(seed, size, 1024, [1, 2, 7, 16][streams], bug, main(xxh128));
        case.run();
        prop_assert_eq!(case.published, None);
        prop_assert_eq!(case.refused, bug != Bug::Drop);
    }
}
