//! What the sender says that it has, to be compared with what the receiver has, and the answer. Part of
//! [`super::PeerMessage`]: how it becomes bytes, and what is checked of it.
//!
//! Of a million files it is all that travels, so it is packed: a path by what it shares with the one before, a time by
//! its distance from the one before.

use super::PeerMessage;
use super::raw::{AskStillThere, Compare, Compared, Content, ContentCompared, Listed, StillThere};
use crate::attributes::{OtherAttributes, Time};
use crate::ids::BundleId;
use crate::judgment::Judgment;
use crate::limits;
use crate::path;
use crate::report::ItemKind;
use crate::special::SpecialFile;
use crate::wire::fields::varint;
use crate::wire::{ProtocolError, attributes, patch};

/// What a sender has: files to be compared, and names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Files, at most [`limits::ASKED_ITEMS`].
    pub items: Vec<AskedItem>,
    /// Paths of links, directories and whatever else stands in the source; where the receiver is to find what only it
    /// has. At most [`limits::ASKED_ITEMS`].
    pub names: Vec<Vec<u8>>,
    /// Directories of which every name has been told, in this question or an earlier one, and whether these are all
    /// that it has. The empty path is the destination itself.
    pub listed: Vec<(Vec<u8>, bool)>,
}

/// A file of the source. Where nothing is written it may be a link or a directory as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedItem {
    /// Relative to the destination; empty for that itself, a directory.
    pub path: Vec<u8>,
    /// A file, or where nothing is written anything.
    pub kind: ItemKind,
    /// Bytes of a file; else 0.
    pub size: u64,
    /// When its content was last modified; `None` where the source has no such time.
    pub mtime: Option<Time>,
    /// Permission bits that it is to have.
    pub mode: u32,
    /// Attributes of further kinds, where they are compared.
    pub others: OtherAttributes,
    /// What a link says, or what something special is ([`SpecialFile::encode`]); else empty.
    pub leads_to: Vec<u8>,
    /// It is to be another name of a file that is there.
    pub hard_link: Option<AskedLink>,
}

/// Names at the destination of a file that is to get another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedLink {
    /// Relative to the destination; at least one, at most [`limits::NAMES_OF_ONE`].
    pub names: Vec<Vec<u8>>,
    /// What stands at them becomes another file.
    pub anew: bool,
}

/// A file of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskedIndex {
    /// The question's number.
    pub number: BundleId,
    /// The place of the file in the question.
    pub index: u32,
}

/// What a file holds, as a message.
pub(super) fn content(asked: AskedIndex, digest: Option<[u8; 32]>) -> Content {
    Content { number: asked.number.0, index: asked.index, blake3: digest.map(|digest| digest.to_vec()) }
}

/// The answer to that, as a message.
pub(super) fn content_compared(asked: AskedIndex, same: bool, chunks: Vec<u32>) -> ContentCompared {
    let chunks = patch::chunks_to_bytes(&chunks);
    ContentCompared { number: asked.number.0, index: asked.index, same, chunks }
}

/// The message that says what a file holds.
pub(super) fn read_content(raw: Content) -> Result<PeerMessage, ProtocolError> {
    let wrong = |_| ProtocolError::violation("the peer sent a digest of the wrong length");
    let asked = AskedIndex { number: BundleId(raw.number), index: raw.index };
    let digest = raw.blake3.map(|bytes| bytes.try_into().map_err(wrong)).transpose()?;
    Ok(PeerMessage::Content { asked, digest })
}

/// The message that answers that.
pub(super) fn read_content_compared(raw: ContentCompared) -> Result<PeerMessage, ProtocolError> {
    let ContentCompared { number, index, same, chunks } = raw;
    let chunks = patch::chunks_from_bytes(&chunks)?;
    if chunks.len() > limits::FILE_CHUNKS || (same && !chunks.is_empty()) {
        return Err(ProtocolError::violation("the peer told of chunks that no file has"));
    }
    let asked = AskedIndex { number: BundleId(number), index };
    Ok(PeerMessage::ContentCompared { asked, same, chunks })
}

/// Bits of an item's first byte.
const HAS_TIME: u8 = 1;
const HAS_NANOS: u8 = 2;
const HAS_MODE: u8 = 4;
const IS_LINK: u8 = 8;
const IS_DIRECTORY: u8 = 16;
/// Its attributes of further kinds are others than those of the item before.
const HAS_OTHERS: u8 = 32;
/// It is to be another name of a file that is there.
const HAS_HARD_LINK: u8 = 64;

/// A question, as a message.
pub(super) fn to_raw(number: BundleId, question: Question) -> Compare {
    let mut items = Packer::default();
    for item in &question.items {
        items.item(item);
    }
    let names = pack(&question.names);
    let listed = question.listed.into_iter().map(|(path, complete)| Listed { path, complete });
    Compare { number: number.0, items: items.bytes, names, listed: listed.collect() }
}

/// The message that asks.
pub(super) fn asked(raw: Compare) -> Result<PeerMessage, ProtocolError> {
    Ok(PeerMessage::Compare { number: BundleId(raw.number), question: from_raw(raw)? })
}

/// The message that answers.
pub(super) fn answered(raw: &Compared) -> Result<PeerMessage, ProtocolError> {
    Ok(PeerMessage::Compared { number: BundleId(raw.number), judgments: judgments(raw)? })
}

fn from_raw(raw: Compare) -> Result<Question, ProtocolError> {
    let mut question = Question::default();
    let mut unpacker = Unpacker::new(&raw.items);
    while !unpacker.is_at_end() {
        question.items.push(unpacker.item().ok_or_else(garbled)?);
        check_count(question.items.len())?;
    }
    question.names = unpack(&raw.names)?;
    let is_top = |item: &&AskedItem| item.path.is_empty() && item.kind == ItemKind::Directory;
    let items = question.items.iter().filter(|item| !is_top(item));
    let links = question.items.iter().flat_map(|item| &item.hard_link).flat_map(|link| &link.names);
    let paths = items.map(|item| &item.path).chain(links).chain(&question.names);
    for path in paths.chain(raw.listed.iter().map(|listed| &listed.path).filter(|path| !path.is_empty())) {
        path::check_relative(path).map_err(|error| ProtocolError::path(path, error))?;
    }
    if question.items.iter().any(|item| item.mtime.is_some_and(|time| !time.is_valid())) {
        return Err(ProtocolError::violation("the peer asked about an item with an impossible time"));
    }
    question.listed = raw.listed.into_iter().map(|listed| (listed.path, listed.complete)).collect();
    Ok(question)
}

/// A question about what is about to be deleted, as a message.
pub(super) fn ask_still_there(number: BundleId, paths: &[Vec<u8>]) -> AskStillThere {
    AskStillThere { number: number.0, paths: pack(paths) }
}

/// The message that asks so.
pub(super) fn read_ask_still_there(raw: &AskStillThere) -> Result<PeerMessage, ProtocolError> {
    let paths = unpack(&raw.paths)?;
    paths.iter().try_for_each(|path| path::check_relative(path).map_err(|error| ProtocolError::path(path, error)))?;
    Ok(PeerMessage::AskStillThere { number: BundleId(raw.number), paths })
}

/// The answer to that, as a message.
pub(super) fn still_there(number: BundleId, there: &[bool]) -> StillThere {
    StillThere { number: number.0, there: there.iter().map(|there| u8::from(*there)).collect() }
}

/// The message that answers so.
pub(super) fn read_still_there(raw: &StillThere) -> Result<PeerMessage, ProtocolError> {
    let known = raw.there.iter().map(|byte| (*byte < 2).then_some(*byte == 1));
    let there = known.collect::<Option<_>>().ok_or_else(garbled)?;
    Ok(PeerMessage::StillThere { number: BundleId(raw.number), there })
}

fn pack(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut packer = Packer::default();
    paths.iter().for_each(|path| packer.path(path));
    packer.bytes
}

fn unpack(bytes: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let mut unpacker = Unpacker::new(bytes);
    let mut paths = Vec::new();
    while !unpacker.is_at_end() {
        paths.push(unpacker.path().ok_or_else(garbled)?);
        check_count(paths.len())?;
    }
    Ok(paths)
}

fn garbled() -> ProtocolError {
    ProtocolError::violation("the peer sent a list of what it has that cannot be read")
}

fn check_count(count: usize) -> Result<(), ProtocolError> {
    let fits = count <= limits::ASKED_ITEMS as usize;
    fits.then_some(()).ok_or_else(|| ProtocolError::violation("the peer asked about too many items at once"))
}

/// An answer, as a message: a byte for each item.
pub(super) fn answer(number: BundleId, judgments: &[Judgment]) -> Compared {
    Compared { number: number.0, judgments: judgments.iter().map(|judgment| judgment.number()).collect() }
}

fn judgments(raw: &Compared) -> Result<Vec<Judgment>, ProtocolError> {
    let judgments = raw.judgments.iter().map(|byte| Judgment::from_number(*byte));
    judgments.collect::<Option<_>>().ok_or_else(|| ProtocolError::violation("the peer gave an unknown judgment"))
}

#[derive(Default)]
struct Packer {
    bytes: Vec<u8>,
    last_path: Vec<u8>,
    last_seconds: i64,
    last_others: OtherAttributes,
}

impl Packer {
    fn item(&mut self, item: &AskedItem) {
        let AskedItem { path, kind, size, mtime, mode, others, leads_to, hard_link } = item;
        let has = |has, bit| if has { bit } else { 0 };
        let nanos = mtime.map_or(0, |time| time.nanos);
        let kinds = match kind {
            ItemKind::File => 0,
            ItemKind::Symlink => IS_LINK,
            ItemKind::Directory => IS_DIRECTORY,
            ItemKind::Special => IS_LINK | IS_DIRECTORY,
        };
        let kinds = kinds | has(hard_link.is_some(), HAS_HARD_LINK);
        let time = has(mtime.is_some(), HAS_TIME) | has(nanos != 0, HAS_NANOS);
        let has_others = *others != self.last_others;
        self.bytes.push(kinds | time | has(*mode != 0o644, HAS_MODE) | has(has_others, HAS_OTHERS));
        self.path(path);
        self.number(*size);
        if let Some(time) = mtime {
            let distance = time.seconds.wrapping_sub(self.last_seconds);
            self.last_seconds = time.seconds;
            self.number(((distance << 1) ^ (distance >> 63)) as u64);
        }
        if nanos != 0 {
            self.number(nanos.into());
        }
        if *mode != 0o644 {
            self.number((*mode).into());
        }
        if has_others {
            let block = attributes::encode(others);
            self.number(block.len() as u64);
            self.bytes.extend_from_slice(&block);
            self.last_others = others.clone();
        }
        if matches!(kind, ItemKind::Symlink | ItemKind::Special) {
            self.number(leads_to.len() as u64);
            self.bytes.extend_from_slice(leads_to);
        }
        if let Some(AskedLink { names, anew }) = hard_link {
            self.number((names.len() as u64) << 1 | u64::from(*anew));
            names.iter().for_each(|name| self.path(name));
        }
    }

    fn path(&mut self, path: &[u8]) {
        let shared = path.iter().zip(&self.last_path).take_while(|(one, other)| one == other).count();
        self.number(shared as u64);
        self.number((path.len() - shared) as u64);
        self.bytes.extend_from_slice(&path[shared..]);
        self.last_path.truncate(shared);
        self.last_path.extend_from_slice(&path[shared..]);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

struct Unpacker<'a> {
    rest: &'a [u8],
    last_path: Vec<u8>,
    last_seconds: i64,
    last_others: OtherAttributes,
    /// Bytes of what a few bytes may say once more, of all items so far.
    shared_bytes: usize,
}

impl<'a> Unpacker<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            last_path: Vec::new(),
            last_seconds: 0,
            last_others: OtherAttributes::default(),
            shared_bytes: 0,
        }
    }

    fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn item(&mut self) -> Option<AskedItem> {
        let (flags, rest) = self.rest.split_first()?;
        self.rest = rest;
        let kind = match flags & (IS_LINK | IS_DIRECTORY) {
            0 => ItemKind::File,
            IS_LINK => ItemKind::Symlink,
            IS_DIRECTORY => ItemKind::Directory,
            _ => ItemKind::Special,
        };
        if flags & !(HAS_TIME | HAS_NANOS | HAS_MODE | HAS_OTHERS | IS_LINK | IS_DIRECTORY | HAS_HARD_LINK) != 0 {
            return None;
        }
        let path = self.path()?;
        let size = varint(&mut self.rest)?;
        let mut mtime = None;
        if flags & HAS_TIME != 0 {
            let distance = varint(&mut self.rest)?;
            let distance = (distance >> 1) as i64 ^ -((distance & 1) as i64);
            self.last_seconds = self.last_seconds.wrapping_add(distance);
            mtime = Some(Time::new(self.last_seconds, 0));
        }
        if flags & HAS_NANOS != 0 {
            mtime.as_mut()?.nanos = u32::try_from(varint(&mut self.rest)?).ok()?;
        }
        let mode = if flags & HAS_MODE != 0 { u32::try_from(varint(&mut self.rest)?).ok()? } else { 0o644 };
        if flags & HAS_OTHERS != 0 {
            let block = self.counted(limits::ATTRIBUTE_BYTES)?;
            let is_none = block.is_empty();
            self.last_others = if is_none { OtherAttributes::default() } else { attributes::decode(block).ok()? };
        }
        self.count(self.last_others.encoded_bytes())?;
        let others = self.last_others.clone();
        let leads_to = match kind {
            ItemKind::Symlink => self.counted(limits::PATH_BYTES)?.to_vec(),
            ItemKind::Special => SpecialFile::decode(self.counted(SpecialFile::BYTES)?)?.encode().to_vec(),
            ItemKind::File | ItemKind::Directory => Vec::new(),
        };
        let hard_link = if flags & HAS_HARD_LINK != 0 { Some(self.link()?) } else { None };
        Some(AskedItem { path, kind, size, mtime, mode, others, leads_to, hard_link })
    }

    fn link(&mut self) -> Option<AskedLink> {
        let number = varint(&mut self.rest)?;
        let count = usize::try_from(number >> 1).ok().filter(|count| (1..=limits::NAMES_OF_ONE).contains(count))?;
        let names = (0..count).map(|_| self.path()).collect::<Option<Vec<_>>>()?;
        Some(AskedLink { names, anew: number & 1 != 0 })
    }

    /// Bytes with their number before them.
    fn counted(&mut self, most: usize) -> Option<&'a [u8]> {
        let bytes = usize::try_from(varint(&mut self.rest)?).ok().filter(|bytes| *bytes <= most)?;
        let (counted, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(counted)
    }

    /// A few bytes may say the same of many items: what they come to is bounded as a message is.
    fn count(&mut self, bytes: usize) -> Option<()> {
        self.shared_bytes += bytes;
        (self.shared_bytes <= limits::MESSAGE_BYTES).then_some(())
    }

    fn path(&mut self) -> Option<Vec<u8>> {
        let shared = usize::try_from(varint(&mut self.rest)?).ok().filter(|shared| *shared <= self.last_path.len())?;
        let most = limits::PATH_BYTES.checked_sub(shared)?;
        let own = usize::try_from(varint(&mut self.rest)?).ok().filter(|own| *own <= most)?;
        self.count(shared + own)?;
        let (own, rest) = self.rest.split_at_checked(own)?;
        self.rest = rest;
        self.last_path.truncate(shared);
        self.last_path.extend_from_slice(own);
        Some(self.last_path.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::{Attribute, AttributeKind};
    use crate::special::SpecialKind;

    fn item(path: &str, size: u64, mtime: Option<Time>, mode: u32) -> AskedItem {
        let (path, others) = (path.as_bytes().to_vec(), OtherAttributes::default());
        AskedItem { path, kind: ItemKind::File, size, mtime, mode, others, leads_to: Vec::new(), hard_link: None }
    }

    #[test]
    fn questions_come_back_and_are_short() {
        let time = |seconds, nanos| Some(Time::new(seconds, nanos));
        let owned = |id| OtherAttributes::new(vec![Attribute::number(AttributeKind::OWNER, id)]).unwrap();
        let fifo = SpecialFile { kind: SpecialKind::Fifo, major: 0, minor: 0 };
        let link = |anew, names: &[&str]| {
            Some(AskedLink { names: names.iter().map(|name| name.as_bytes().to_vec()).collect(), anew })
        };
        let question = Question {
            items: vec![
                item("a/b/file1", 5, time(1_700_000_000, 123_456_789), 0o644),
                item("a/b/file2", u64::MAX, time(1_700_000_001, 0), 0o755),
                AskedItem { kind: ItemKind::Symlink, leads_to: b"../x".to_vec(), ..item("a/b", 0, None, 0) },
                AskedItem { kind: ItemKind::Directory, ..item("", 0, time(5, 0), 0o755) },
                AskedItem { kind: ItemKind::Directory, ..item("d", 0, time(5, 0), 0o700) },
                AskedItem { others: owned(1000), ..item("y", 1, time(5, 0), 0o644) },
                AskedItem { others: owned(1000), ..item("ya", 1, time(5, 0), 0o644) },
                AskedItem { kind: ItemKind::Special, leads_to: fifo.encode().to_vec(), ..item("yb", 0, None, 0o644) },
                AskedItem { hard_link: link(true, &["a/b/file1", "c"]), ..item("yc", 3, time(5, 0), 0o644) },
                AskedItem { hard_link: link(false, &["a/b/file2"]), ..item("yd", 3, time(5, 0), 0o644) },
                item("z", 1, time(i64::MIN, 1), 0o7777),
                item("za", 1, time(i64::MAX, 999_999_999), 0o644),
            ],
            names: vec![b"a".to_vec(), b"a/link".to_vec()],
            listed: vec![(Vec::new(), true), (b"a".to_vec(), false)],
        };
        assert_eq!(from_raw(to_raw(BundleId(3), question.clone())).unwrap(), question);
        let many = (0..1000).map(|n| item(&format!("directory/f{n:06}"), 2048, time(1_700_000_000 + n % 7, 5), 0o644));
        let many = Question { items: many.collect(), ..Question::default() };
        assert!(to_raw(BundleId(1), many).items.len() < 14 * 1000);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let packed = |items: &[u8]| Compare { number: 1, items: items.to_vec(), ..Compare::default() };
        let good = to_raw(
            BundleId(1),
            Question { items: vec![item("ab", 300, Some(Time::new(7, 8)), 0o600)], ..Question::default() },
        );
        assert!(from_raw(good.clone()).is_ok());
        for end in 1..good.items.len() {
            assert!(from_raw(packed(&good.items[..end])).is_err(), "{end}");
        }
        // Flags that nobody knows, something special that is nothing, no name or too many of another, one that leads
        // out, a link that says more than there is, a path that shares more than there is, one too long, a number too
        // long, nanoseconds without a time, a path that leads out, a file without one.
        for items in [
            &[128, 0, 1, b'a', 0][..],
            &[32, 0, 1, b'a', 0],
            &[32, 0, 1, b'a', 0, 5, 0, 1, 0, 2, 9],
            &[24, 0, 1, b'a', 0, 0],
            &[24, 0, 1, b'a', 0, 9, 4, 0, 0, 0, 0, 0, 0, 0, 0],
            &[64, 0, 1, b'a', 0, 0],
            &[64, 0, 1, b'a', 0, 18, 0, 1, b'b'],
            &[64, 0, 1, b'a', 0, 2, 0, 2, b'.', b'.'],
            &[8, 0, 1, b'a', 0, 2, b'x'],
            &[0, 1, 1, b'a', 0],
            &[0, 0, 0xff, 0xff, 3, b'a'],
            &[0, 0, 1, b'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
            &[2, 0, 1, b'a', 0, 1],
            &[0, 0, 2, b'.', b'.', 0],
            &[0, 0, 0, 0],
        ] {
            assert!(from_raw(packed(items)).is_err(), "{items:?}");
        }
        let out = Compare { listed: vec![Listed { path: b"../x".to_vec(), complete: true }], ..Compare::default() };
        assert!(from_raw(out).is_err());
    }

    #[test]
    fn few_bytes_do_not_become_many_and_no_number_is_too_large() {
        let longest = vec![b'n'; limits::PATH_BYTES];
        let again = |times: usize| [pack(std::slice::from_ref(&longest)), [0xff, 0xff, 0x03, 0].repeat(times)].concat();
        assert_eq!(unpack(&again(2)).unwrap(), [longest.clone(), longest.clone(), longest.clone()]);
        assert!(unpack(&again(limits::MESSAGE_BYTES / limits::PATH_BYTES)).is_err());
        let endless = [vec![1], vec![0xff; 9], vec![1]].concat();
        assert!(unpack(&[pack(&[b"ab".to_vec()]), endless].concat()).is_err());
    }

    #[test]
    fn chunks_are_few_and_of_what_differs() {
        let told = |same, bytes: usize| ContentCompared { number: 1, index: 2, same, chunks: vec![7; bytes] };
        let taken = |same, bytes| read_content_compared(told(same, bytes)).is_ok();
        assert!(taken(true, 0) && taken(false, 0) && taken(false, 4 * limits::FILE_CHUNKS));
        assert!(!taken(false, 4 * limits::FILE_CHUNKS + 4) && !taken(true, 4) && !taken(false, 6));
    }

    #[test]
    fn unknown_judgment_is_refused() {
        assert!(judgments(&Compared { number: 1, judgments: vec![1, 0] }).is_ok());
        assert!(judgments(&Compared { number: 1, judgments: vec![1, 7] }).is_err());
    }
}
