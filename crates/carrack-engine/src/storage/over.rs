//! A store over another one: each call is handed to a [`Hook`] before it is carried out. By that a grant
//! ends its transfer, and a test has a store fail, wait or lie in any of its methods.

mod destination;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, io};

use carrack_core::attributes::{Attributes, AttributesTold};
use carrack_core::failure::Failure;
use carrack_core::filter::SourceLinks;
use carrack_core::growing::GrowingLock;
use carrack_core::transfer::{Fingerprint, ScannedItem};

use self::destination::OverDestination;
use super::properties::Properties;
use super::read::{Found, GrownState, OpenOptions, Reader, Source, There, Walk};
use super::store::{Facts, Store, Wanted};
use super::write::Destination;

macro_rules! calls {
    ($($name:ident $shown:literal)*) => {
        /// A method of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Call {
            $(#[doc = $shown] $name,)*
        }

        impl Call {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Type and name of the method.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $shown,)*
                }
            }
        }
    };
}

calls! {
    Look "Store::look"
    OpenSource "Store::source"
    OpenDestination "Store::destination"
    IsDirectory "Source::is_directory"
    Walk "Source::walk"
    LookAgain "Source::look_again"
    Find "Source::find"
    LinkTarget "Source::link_target"
    RemoveSource "Source::remove"
    Open "Source::open"
    Size "Reader::size"
    Attributes "Reader::attributes"
    Fingerprint "Reader::fingerprint"
    CheckListed "Reader::check_listed"
    CheckUnchanged "Reader::check_unchanged"
    IsZeros "Reader::is_zeros"
    IsHole "Reader::is_hole"
    WillRead "Reader::will_read"
    WasRead "Reader::was_read"
    ReadAt "Reader::read_at"
    ReadWhole "Reader::read_whole"
    ReadNext "Reader::read_next"
    KnownCount "Destination::known_count"
    Known "Destination::known"
    Standing "Destination::standing"
    FirstBytes "Destination::first_bytes"
    Content "Destination::content"
    SetAttributes "Destination::set_attributes"
    List "Destination::list"
    Delete "Destination::delete"
    Begin "Destination::begin"
    WriteSmall "Destination::write_small"
    BeginSmall "Destination::begin_small"
    WriteLink "Destination::write_link"
    MakeDirectory "Destination::make_directory"
    SyncGroup "Destination::sync_group"
    WrittenDown "Destination::written_down"
    ApplyDirectories "Destination::apply_directories"
    SyncAll "Destination::sync_all"
    CloseIn "Destination::close_in"
    Unkept "Destination::unkept"
    EndSession "Destination::finish"
    Write "Part::write"
    WriteHole "Part::write_hole"
    EndBlock "Part::end_block"
    Checkpoint "Part::checkpoint"
    Unclaim "Part::unclaim"
    Rehash "Part::rehash"
    TakeOver "Part::take_over"
    ReadPart "Part::read"
    Share "Part::share"
    Finish "Part::finish"
    Verify "Part::verify"
    Publish "Part::publish"
    Remove "Part::remove"
    Leave "Part::leave"
    AwaitsSync "Entry::awaits_sync"
    VerifyEntry "Entry::verify"
    PublishEntry "Entry::publish"
    RemoveEntry "Entry::remove"
    WriteGrowing "Growing::write"
    FinishGrowing "Growing::finish"
}

/// What becomes of a call.
pub enum Act {
    /// It is carried out.
    Go,
    /// It is not, and says why. Calls that cannot fail are carried out.
    Fail(Failure),
    /// It is not, and claims that it was: what a store does that lies.
    Pretend,
    /// Half of it is carried out, and all of it claimed: of calls with bytes or lists. Others are pretended.
    Half,
    /// It is carried out when the session ends, and claimed now: of the `publish` of parts and entries. Others are
    /// pretended.
    Late,
    /// It is carried out without the attributes that it should set. Others are pretended.
    Bare,
}

/// Is asked before each call. It may wait, and may panic.
pub trait Hook: Send + Sync {
    /// What becomes of a call that moves so many bytes of content.
    fn before(&self, call: Call, bytes: u64) -> Act;

    /// What becomes of an item that a walk has found: the walk ends with what this says.
    ///
    /// # Errors
    /// Why neither it nor any further one is found.
    fn found(&self) -> Result<(), Failure> {
        Ok(())
    }
}

type Shared = Arc<dyn Hook>;

/// Parts and entries that get their names late.
type Late = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

/// A store over another one.
pub struct Over {
    inner: Arc<dyn Store>,
    hook: Shared,
}

impl Over {
    /// Over this one.
    pub fn new(inner: Arc<dyn Store>, hook: Shared) -> Self {
        Self { inner, hook }
    }
}

impl fmt::Debug for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Over").field(&self.inner).finish()
    }
}

impl Store for Over {
    fn properties(&self) -> Properties {
        self.inner.properties()
    }

    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure> {
        match self.hook.before(Call::Look, 0) {
            Act::Go => self.inner.look(path),
            Act::Fail(why) => Err(why),
            _ => Ok(None),
        }
    }

    /// Pretended, it opens another path.
    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure> {
        let source = match self.hook.before(Call::OpenSource, 0) {
            Act::Go => self.inner.source(path),
            Act::Fail(why) => Err(why),
            _ => self.inner.source(b""),
        };
        source.map(|source| over_source(source, &self.hook))
    }

    /// Pretended, it opens another path.
    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure> {
        let destination = match self.hook.before(Call::OpenDestination, 0) {
            Act::Go => self.inner.destination(wanted),
            Act::Fail(why) => Err(why),
            _ => self.inner.destination(&Wanted { path: b"elsewhere", ..*wanted }),
        };
        destination.map(|destination| over_destination(destination, &self.hook))
    }
}

/// A source over another one.
pub fn over_source(inner: Box<dyn Source>, hook: &Shared) -> Box<dyn Source> {
    Box::new(OverSource { inner, hook: Arc::clone(hook) })
}

/// A destination over another one.
pub fn over_destination(inner: Box<dyn Destination>, hook: &Shared) -> Box<dyn Destination> {
    Box::new(OverDestination { inner, hook: Arc::clone(hook), late: Late::default() })
}

struct OverSource {
    inner: Box<dyn Source>,
    hook: Shared,
}

impl Source for OverSource {
    fn tell_attributes(&mut self, told: AttributesTold) {
        self.inner.tell_attributes(told);
    }

    fn is_directory(&self) -> bool {
        let is_directory = self.inner.is_directory();
        if let Act::Go | Act::Fail(_) = self.hook.before(Call::IsDirectory, 0) { is_directory } else { !is_directory }
    }

    fn follow(&mut self, links: SourceLinks, target: &[u8]) {
        self.inner.follow(links, target);
    }

    fn filters(&self) -> bool {
        self.inner.filters()
    }

    fn walks_in_order(&self) -> bool {
        self.inner.walks_in_order()
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        match self.hook.before(Call::Walk, 0) {
            Act::Go => self.inner.walk(walk, &mut |found| match found {
                Found::Item(item) => match self.hook.found() {
                    Ok(()) => each(Found::Item(item)),
                    Err(why) => {
                        each(Found::Failure(item, why));
                        false
                    }
                },
                other => each(other),
            }),
            Act::Fail(why) => {
                each(Found::Failure(walk.item(b"", carrack_core::report::ItemKind::Directory), why));
            }
            // Every second item.
            Act::Half => {
                let mut is_told = false;
                self.inner.walk(walk, &mut |found| {
                    is_told = !is_told;
                    !is_told || each(found)
                });
            }
            _ => {}
        }
    }

    fn is_locked(&self, item: &ScannedItem, lock: GrowingLock) -> io::Result<bool> {
        self.inner.is_locked(item, lock)
    }

    fn look_again(&self, item: &ScannedItem) -> Result<ScannedItem, Failure> {
        match self.hook.before(Call::LookAgain, 0) {
            Act::Go => self.inner.look_again(item),
            Act::Fail(why) => Err(why),
            _ => Ok(item.clone()),
        }
    }

    fn find(&self, path: &[u8]) -> io::Result<There> {
        match self.hook.before(Call::Find, 0) {
            Act::Go => self.inner.find(path),
            Act::Fail(why) => Err(io::Error::other(why.message())),
            _ => Ok(There::Nothing),
        }
    }

    fn has(&self, walk: &Walk<'_>, path: &[u8]) -> bool {
        match self.hook.before(Call::Find, 0) {
            Act::Go => self.inner.has(walk, path),
            _ => true,
        }
    }

    fn link_target(&self, path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
        match self.hook.before(Call::LinkTarget, 0) {
            Act::Go => self.inner.link_target(path),
            Act::Fail(why) => Err(why),
            _ => self.inner.link_target(path).map(|(_, fingerprint)| (b"elsewhere".to_vec(), fingerprint)),
        }
    }

    fn removes(&self) -> bool {
        self.inner.removes()
    }

    fn remove(&self, item: &ScannedItem) -> Result<(), Failure> {
        match self.hook.before(Call::RemoveSource, 0) {
            Act::Go => self.inner.remove(item),
            Act::Fail(why) => Err(why),
            _ => Ok(()),
        }
    }

    fn scratch(&self) -> Result<File, Failure> {
        self.inner.scratch()
    }

    /// Pretended, it gives zeros.
    fn open(&self, item: &ScannedItem, options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        match self.hook.before(Call::Open, 0) {
            Act::Go => {
                let inner = self.inner.open(item, options)?;
                Ok(Box::new(OverReader { inner, hook: Arc::clone(&self.hook), is_spoilt: AtomicBool::new(false) }))
            }
            Act::Fail(why) => Err(why),
            _ => Ok(Box::new(Nothing)),
        }
    }
}

/// An item that nobody has opened.
struct Nothing;

impl Reader for Nothing {
    fn size(&self) -> Option<u64> {
        Some(0)
    }

    fn read_at(&self, _offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        out.fill(0);
        Ok(())
    }
}

struct OverReader {
    inner: Box<dyn Reader>,
    hook: Shared,
    /// A hint was pretended: nothing is read any more, and all of it claimed.
    is_spoilt: AtomicBool,
}

impl OverReader {
    fn take_hint(&self, call: Call) {
        if !self.is_honest(call) {
            self.is_spoilt.store(true, Ordering::Relaxed);
        }
    }

    fn is_honest(&self, call: Call) -> bool {
        matches!(self.hook.before(call, 0), Act::Go | Act::Fail(_))
    }

    fn check(&self, call: Call, check: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        match self.hook.before(call, 0) {
            Act::Go => check(),
            Act::Fail(why) => Err(why),
            _ => Ok(()),
        }
    }
}

impl Reader for OverReader {
    fn size(&self) -> Option<u64> {
        let size = self.inner.size();
        if self.is_honest(Call::Size) { size } else { size.map(|size| size / 2) }
    }

    fn attributes(&self, item: &ScannedItem) -> Attributes {
        if self.is_honest(Call::Attributes) { self.inner.attributes(item) } else { Attributes::default() }
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        if self.is_honest(Call::Fingerprint) { self.inner.fingerprint() } else { Some([1; 16]) }
    }

    fn state(&self) -> Option<Fingerprint> {
        if self.is_honest(Call::Fingerprint) { self.inner.state() } else { Some([1; 16]) }
    }

    fn check_listed(&self, item: &ScannedItem) -> Result<(), Failure> {
        self.check(Call::CheckListed, || self.inner.check_listed(item))
    }

    fn check_unchanged(&self) -> Result<(), Failure> {
        self.check(Call::CheckUnchanged, || self.inner.check_unchanged())
    }

    fn look(&self) -> Result<GrownState, Failure> {
        self.check(Call::CheckUnchanged, || Ok(()))?;
        self.inner.look()
    }

    /// None: all content passes through this process, where it is counted.
    fn file(&self) -> Option<&File> {
        None
    }

    fn is_zeros(&self) -> bool {
        if self.is_honest(Call::IsZeros) { self.inner.is_zeros() } else { true }
    }

    fn is_hole(&self, offset: u64, length: u64) -> bool {
        if self.is_honest(Call::IsHole) { self.inner.is_hole(offset, length) } else { true }
    }

    /// Pretended, it spoils what is read afterwards, as [`Reader::was_read`] does.
    fn will_read(&self, offset: u64, length: u64) -> bool {
        self.take_hint(Call::WillRead);
        self.inner.will_read(offset, length)
    }

    fn was_read(&self, offset: u64, length: u64) {
        self.take_hint(Call::WasRead);
        self.inner.was_read(offset, length);
    }

    /// By half, the rest is what was in `out`.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        match self.hook.before(Call::ReadAt, out.len() as u64) {
            Act::Go if self.is_spoilt.load(Ordering::Relaxed) => Ok(()),
            Act::Go => self.inner.read_at(offset, out),
            Act::Fail(why) => Err(why),
            Act::Half => {
                let half = out.len() / 2;
                self.inner.read_at(offset, &mut out[..half])
            }
            _ => Ok(()),
        }
    }

    fn read_whole(&self, out: &mut Vec<u8>, most: usize) -> Result<usize, Failure> {
        let bytes = self.inner.size().unwrap_or(most as u64);
        match self.hook.before(Call::ReadWhole, bytes) {
            Act::Go => self.inner.read_whole(out, most),
            Act::Fail(why) => Err(why),
            Act::Half => {
                let read = self.inner.read_whole(out, most)?;
                out.truncate(out.len() - read + read / 2);
                Ok(read / 2)
            }
            _ => Ok(0),
        }
    }

    fn read_next(&self, offset: u64, out: &mut [u8], is_over: &dyn Fn() -> bool) -> Result<(usize, bool), Failure> {
        match self.hook.before(Call::ReadNext, out.len() as u64) {
            Act::Go => self.inner.read_next(offset, out, is_over),
            Act::Fail(why) => Err(why),
            _ => Ok((0, true)),
        }
    }
}
