//! Sending a bundle: small files, links and directories.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use carrack_core::attributes::{Attributes, OtherAttributes, Time};
use carrack_core::digest::BlockDigest;
use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::report::{Failure, ItemKind};
use carrack_core::request::Verify;
use carrack_core::special::SpecialFile;
use carrack_core::timeline::Work;
use carrack_core::transfer::sender::{Bundle, SentItem, changed_unseen};
use carrack_core::transfer::{Fingerprint, ScannedItem};
use carrack_core::wire::attributes;
use carrack_core::wire::frame::{EntryHeader, EntryKind, Header, Trailer};
use carrack_core::wire::linked::LinkedNames;
use carrack_core::wire::patch;
use carrack_sys::host::clock_seconds;

use super::SendRun;
use super::stream::SendStream;
use crate::data::hasher::BlockHasher;
use crate::storage::read::Reader;
use crate::storage::workers::MeasuredCall;

impl SendRun {
    /// What announces an item; `size` are the bytes of content, of its patch, or of what a link says.
    pub(super) fn entry(&self, kind: EntryKind, item: &ScannedItem, target: &[u8], size: usize) -> EntryHeader {
        // Of a directory they come at the end.
        let is_directory = kind == EntryKind::Directory;
        let others = Some(&item.attributes.others).filter(|_| !is_directory);
        EntryHeader {
            kind,
            fingerprinted: !is_directory && item.fingerprint.is_some(),
            patched: false,
            attribute_bytes: others.map_or(0, |others| others.encoded_bytes() as u16),
            path_bytes: target.len() as u16,
            mode: item.attributes.mode,
            size: size as u32,
            // The header has no word for none. Where the source keeps no times, a file has that of its copy.
            mtime: item.attributes.mtime.unwrap_or_else(|| Time::new(clock_seconds(), 0)),
        }
    }
}

/// What a link leads to, and what the link is known by.
type LeadsTo = Result<(Vec<u8>, Option<Fingerprint>), Failure>;

/// What the threads that read ahead took, in nanoseconds, summed over them.
#[derive(Default)]
struct AheadTimes {
    finding: AtomicU64,
    reading: AtomicU64,
}

fn timed<T>(time: &AtomicU64, call: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = call();
    time.fetch_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    result
}

/// What of a bundle's item has been read before its turn.
pub(super) enum Ahead {
    /// Nothing.
    No,
    /// A file: its content, what it is, and whether all went well.
    File(Vec<u8>, Box<ScannedItem>, Result<(), Failure>),
    /// What a link leads to.
    Link(LeadsTo),
}

/// What is read before its turn, of one bundle, in bytes: as much as a bundle has. Files that are longer than they say,
/// and come later, are read when it is their turn.
const AHEAD_BYTES: usize = 4 << 20;

/// Bytes of attributes of the files of one bundle. Beyond, extended ones are left out.
const ATTRIBUTES_BYTES: usize = limits::BUNDLE_BYTES as usize / 4;

impl SendRun {
    /// Reads the items of a bundle by several threads, where that is worth it; else nothing.
    pub(super) fn read_ahead(&self, stream: StreamId, items: &[ScannedItem]) -> Vec<Ahead> {
        if !self.finding.are_several() {
            return Vec::new();
        }
        let (read, times) = (AtomicUsize::new(0), AheadTimes::default());
        let one = |item: &ScannedItem| match item.kind {
            _ if item.other_names.is_some() => Ahead::No,
            ItemKind::File if read.load(Ordering::Relaxed) < AHEAD_BYTES => {
                let mut content = Vec::new();
                let (described, result) = self.find_file(stream, item, &mut content, &times);
                read.fetch_add(content.len(), Ordering::Relaxed);
                Ahead::File(content, Box::new(described), result)
            }
            ItemKind::Symlink => Ahead::Link(timed(&times.finding, || self.link_target(item))),
            _ => Ahead::No,
        };
        let took = || [&times.finding, &times.reading].map(|time| time.load(Ordering::Relaxed));
        self.driver.stages.wait_parted([Work::Find, Work::Read], took, || self.finding.each(items, one))
    }

    fn link_target(&self, item: &ScannedItem) -> LeadsTo {
        let find = || self.root(item).and_then(|root| root.link_target(&item.path, self.filters.links));
        self.finding.call(|job| job.measure(|_| find()))
    }

    /// Opens and reads a file of a bundle in the thread of a stream: what it is now, and whether all went well.
    fn read_file(
        &self,
        stream: StreamId,
        item: &ScannedItem,
        content: &mut Vec<u8>,
    ) -> (ScannedItem, Result<(), Failure>) {
        content.clear();
        let stages = &self.driver.stages;
        self.finding.call(|job| {
            let opened = stages.wait_briefly(Work::Find, || self.open_measured(job, item, stream));
            stages.wait_briefly(Work::Read, || self.read_opened(opened, item, content))
        })
    }

    /// The same in a thread beside the streams, whose time is counted by whoever waits for it.
    fn find_file(
        &self,
        stream: StreamId,
        item: &ScannedItem,
        content: &mut Vec<u8>,
        times: &AheadTimes,
    ) -> (ScannedItem, Result<(), Failure>) {
        self.finding.call(|job| {
            let opened = timed(&times.finding, || self.open_measured(job, item, stream));
            timed(&times.reading, || self.read_opened(opened, item, content))
        })
    }

    fn open_measured(
        &self,
        job: &mut MeasuredCall,
        item: &ScannedItem,
        stream: StreamId,
    ) -> Result<Box<dyn Reader>, Failure> {
        job.measure(|job| self.open(item, stream, &mut |time| job.rested(time)))
    }

    fn read_opened(
        &self,
        opened: Result<Box<dyn Reader>, Failure>,
        item: &ScannedItem,
        content: &mut Vec<u8>,
    ) -> (ScannedItem, Result<(), Failure>) {
        let mut described = item.clone();
        let read = opened.and_then(|source| self.read_small(&*source, item, &mut described, content));
        // Nothing of it is worth sending: the trailer says that it is not whole, and the receiver drops it.
        if read.is_err() {
            content.clear();
        }
        (described, read)
    }

    fn read_small(
        &self,
        source: &dyn Reader,
        item: &ScannedItem,
        described: &mut ScannedItem,
        content: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let twice = self.driver.options.verify == Verify::Source;
        // Those of the file that is open, not those of the listing: content and attributes belong together.
        described.attributes = source.attributes(item);
        described.change_mode(self.driver.options.mode_change);
        let most = item.size.filter(|_| source.size().is_none()).unwrap_or(self.driver.tuning.bundled_file_bytes_max);
        source.read_whole(content, most as usize)?;
        // Of what grows, a part is copied: that is not what is known by it.
        if let Some(size) = source.size() {
            described.fingerprint = source.fingerprint().filter(|_| size == content.len() as u64);
        }
        let same = !twice || source.size().is_none() || {
            let mut second = Vec::with_capacity(content.len());
            source.read_whole(&mut second, most as usize)?;
            second == *content
        };
        source.check_unchanged().and_then(|()| if same { Ok(()) } else { Err(changed_unseen()) })
    }
}

impl SendStream<'_> {
    pub(super) fn send_bundle(&mut self, bundle: &Bundle) -> io::Result<()> {
        let header = Header::Bundle { bundle: bundle.id, entries: bundle.items.len() as u32 };
        self.out.meta(&[&header.encode()])?;
        self.begin_content(None);
        let mut sent = Vec::with_capacity(bundle.items.len());
        let mut ahead = Vec::new().into_iter();
        self.attributes_left = ATTRIBUTES_BYTES;
        for (index, item) in bundle.items.iter().enumerate() {
            // Also where calls are found to be slow in the midst of a bundle.
            if ahead.len() == 0 {
                ahead = self.run.read_ahead(self.number, &bundle.items[index..]).into_iter();
            }
            let target = self.run.driver.lock().target(item);
            let ahead = ahead.next().unwrap_or(Ahead::No);
            sent.push(match item.kind {
                _ if item.other_names.is_some() => self.send_further_name(item, &target)?,
                ItemKind::File => self.send_file(item, &target, ahead)?,
                ItemKind::Symlink => self.send_link(item, &target, ahead)?,
                ItemKind::Special => self.send_special(item, &target)?,
                ItemKind::Directory => {
                    self.out.meta(&[&self.run.entry(EntryKind::Directory, item, &target, 0).encode(), &target])?;
                    nothing_sent()
                }
            });
        }
        self.out.flush()?;
        self.run.driver.tell(|machine| machine.handle_bundle_sent(Instant::now(), bundle.id, sent));
        Ok(())
    }

    fn send_file(&mut self, item: &ScannedItem, target: &[u8], ahead: Ahead) -> io::Result<SentItem> {
        let (described, read) = if let Ahead::File(content, described, read) = ahead {
            self.content = content;
            (*described, read)
        } else {
            self.run.read_file(self.number, item, &mut self.content)
        };
        let described = self.within_bundle(described);
        let mut hasher = BlockHasher::new(self.run.driver.options.digests, 0);
        self.run.driver.stages.work(Work::Hash, self.content.len(), || hasher.update(&self.content));
        let digest = hasher.finish(true);
        let digests = digest.as_file(self.run.driver.options.digests);
        // The receiver drops what is not whole.
        let read = read.and_then(|()| self.run.expected.check(|| target.to_vec(), digests.blake3));
        let content = std::mem::take(&mut self.content);
        let (size, patched) = (item.size.unwrap_or(0), item.chunks.as_deref());
        let patched = patched.filter(|_| read.is_ok()).and_then(|chunks| patch::patch(&content, size, chunks));
        let (sent, taken_over) = patched.as_ref().map_or((&content, 0), |(patch, taken_over)| (patch, *taken_over));
        let header = self.run.entry(EntryKind::File, &described, target, sent.len());
        let header = EntryHeader { patched: patched.is_some(), ..header };
        let attributes = attributes_of(&header, &described);
        self.out.meta(&[&header.encode(), fingerprint_of(&header, &described), &attributes, target])?;
        self.send_content(sent)?;
        self.out.meta(&[&Trailer { whole: read.is_ok(), digest }.encode()])?;
        self.content = content;
        Ok(SentItem { size: self.content.len() as u64, taken_over, digest, failure: read.err() })
    }

    /// With as many attributes as a bundle has room for: nobody has counted them before.
    fn within_bundle(&mut self, described: ScannedItem) -> ScannedItem {
        let Attributes { others, .. } = &described.attributes;
        let fits = others.encoded_bytes() <= self.attributes_left;
        let others = if fits { others.clone() } else { others.without_values() };
        self.attributes_left = self.attributes_left.saturating_sub(others.encoded_bytes());
        ScannedItem { attributes: Attributes { others, ..described.attributes }, ..described }
    }

    /// Of a further name of a file only that is told.
    fn send_further_name(&mut self, item: &ScannedItem, target: &[u8]) -> io::Result<SentItem> {
        let linked = item.other_names.as_ref();
        let linked =
            linked.map(|names| LinkedNames { names: names.paths.clone(), size: names.size, digests: names.digests });
        let linked = linked.unwrap_or_default().encode();
        let mut described = item.clone();
        described.attributes.others = OtherAttributes::default();
        // The name that was sent is known by what its source was then.
        let of_sent = item.other_names.as_ref().and_then(|names| names.fingerprint);
        described.fingerprint = item.fingerprint.filter(|known| of_sent == Some(*known));
        let header = self.run.entry(EntryKind::HardLink, &described, target, linked.len());
        self.out.meta(&[&header.encode(), fingerprint_of(&header, &described), target, &linked])?;
        Ok(nothing_sent())
    }

    fn send_special(&mut self, item: &ScannedItem, target: &[u8]) -> io::Result<SentItem> {
        let described = self.within_bundle(ScannedItem { fingerprint: None, ..item.clone() });
        let what = described.special.map(SpecialFile::encode).unwrap_or_default();
        let header = self.run.entry(EntryKind::Special, &described, target, what.len());
        self.out.meta(&[&header.encode(), &attributes_of(&header, &described), target, &what])?;
        Ok(nothing_sent())
    }

    fn send_link(&mut self, item: &ScannedItem, target: &[u8], ahead: Ahead) -> io::Result<SentItem> {
        let leads_to = if let Ahead::Link(leads_to) = ahead {
            leads_to
        } else {
            self.run.driver.stages.wait_briefly(Work::Find, || self.run.link_target(item))
        };
        // A link that cannot be read is sent as an empty file that is not whole: the receiver drops it.
        match leads_to {
            Ok((leads_to, fingerprint)) => {
                let described = ScannedItem { fingerprint, ..item.clone() };
                let header = self.run.entry(EntryKind::Symlink, &described, target, leads_to.len());
                let attributes = attributes_of(&header, &described);
                let fingerprint = fingerprint_of(&header, &described);
                self.out.meta(&[&header.encode(), fingerprint, &attributes, target, &leads_to])?;
                Ok(nothing_sent())
            }
            Err(why) => {
                // Only a file has a trailer that can say so.
                let mut described = ScannedItem { fingerprint: None, ..item.clone() };
                described.attributes.others = OtherAttributes::default();
                self.out.meta(&[&self.run.entry(EntryKind::File, &described, target, 0).encode(), target])?;
                self.out.meta(&[&Trailer { whole: false, digest: BlockDigest::default() }.encode()])?;
                Ok(SentItem { size: 0, taken_over: 0, digest: BlockDigest::default(), failure: Some(why) })
            }
        }
    }
}

/// Of an item without content.
fn nothing_sent() -> SentItem {
    SentItem { size: 0, taken_over: 0, digest: BlockDigest::default(), failure: None }
}

/// The block of attributes that precedes the path of an entry, if its header says so.
fn attributes_of(header: &EntryHeader, item: &ScannedItem) -> Vec<u8> {
    if header.attribute_bytes == 0 { Vec::new() } else { attributes::encode(&item.attributes.others) }
}

/// What precedes the path of an entry, if its header says so.
fn fingerprint_of<'a>(header: &EntryHeader, item: &'a ScannedItem) -> &'a [u8] {
    item.fingerprint.as_ref().filter(|_| header.fingerprinted).map_or(&[], |fingerprint| fingerprint)
}
