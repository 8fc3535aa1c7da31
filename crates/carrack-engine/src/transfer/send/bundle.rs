//! Sending a bundle: small files, links and directories.

use std::io;
use std::time::Instant;

use carrack_core::attributes::{OtherAttributes, Time};
use carrack_core::digest::BlockDigest;
use carrack_core::report::ItemKind;
use carrack_core::request::Verify;
use carrack_core::timeline::Work;
use carrack_core::transfer::ScannedItem;
use carrack_core::transfer::sender::{Bundle, SentItem, changed_unseen};
use carrack_core::wire::attributes;
use carrack_core::wire::frame::{EntryHeader, EntryKind, Header, Trailer};
use carrack_sys::host::clock_seconds;

use super::SendRun;
use super::stream::SendStream;
use crate::data::hasher::BlockHasher;

impl SendRun {
    pub(super) fn entry(&self, kind: EntryKind, item: &ScannedItem, target: &[u8], size: usize) -> EntryHeader {
        // Of a directory they come at the end.
        let (version, is_directory) = (self.driver.options.version, kind == EntryKind::Directory);
        let others = Some(&item.attributes.others).filter(|_| !is_directory && version.has_attributes());
        EntryHeader {
            kind,
            fingerprinted: !is_directory && version.has_fingerprints() && item.fingerprint.is_some(),
            attribute_bytes: others.map_or(0, |others| others.encoded_bytes() as u16),
            path_bytes: target.len() as u16,
            mode: item.attributes.mode,
            size: size as u32,
            // The header has no word for none. Where the source keeps no times, a file has that of its copy.
            mtime: item.attributes.mtime.unwrap_or_else(|| Time::new(clock_seconds(), 0)),
        }
    }
}

impl SendStream<'_> {
    pub(super) fn send_bundle(&mut self, bundle: &Bundle) -> io::Result<()> {
        let header = Header::Bundle { bundle: bundle.id, entries: bundle.items.len() as u32 };
        self.out.meta(&[&header.encode()])?;
        let mut sent = Vec::with_capacity(bundle.items.len());
        for item in &bundle.items {
            let target = self.run.driver.lock().target(item);
            sent.push(match item.kind {
                ItemKind::File => self.send_file(item, &target)?,
                ItemKind::Symlink => self.send_link(item, &target)?,
                ItemKind::Directory | ItemKind::Special => {
                    self.out.meta(&[&self.run.entry(EntryKind::Directory, item, &target, 0).encode(), &target])?;
                    SentItem { size: 0, digest: BlockDigest::default(), failure: None }
                }
            });
        }
        self.out.flush()?;
        self.run.driver.tell(|machine| machine.handle_bundle_sent(Instant::now(), bundle.id, sent));
        Ok(())
    }

    pub(super) fn send_file(&mut self, item: &ScannedItem, target: &[u8]) -> io::Result<SentItem> {
        self.content.clear();
        let mut described = item.clone();
        let twice = self.run.driver.options.verify == Verify::Source;
        let (run, stream, content) = (self.run, self.number, &mut self.content);
        let stages = &run.driver.stages;
        let opened = stages.wait_briefly(Work::Find, || run.open(item, stream));
        let read = opened.and_then(|source| {
            stages.wait_briefly(Work::Read, || {
                // Those of the file that is open, not those of the listing: content and attributes belong together.
                described.attributes = source.attributes(item);
                let most =
                    item.size.filter(|_| source.size().is_none()).unwrap_or(run.driver.tuning.bundled_file_bytes_max);
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
            })
        });
        // Nothing of it is worth sending: the trailer says that it is not whole, and the receiver drops it.
        if read.is_err() {
            self.content.clear();
        }
        self.run.pace(self.content.len());
        let mut hasher = BlockHasher::new(self.run.driver.options.digests, 0);
        self.run.driver.stages.work(Work::Hash, self.content.len(), || hasher.update(&self.content));
        let digest = hasher.finish(true);
        let header = self.run.entry(EntryKind::File, &described, target, self.content.len());
        let attributes = attributes_of(&header, &described);
        self.out.meta(&[&header.encode(), fingerprint_of(&header, &described), &attributes, target])?;
        self.out.payload(&self.content)?;
        self.out.meta(&[&Trailer { whole: read.is_ok(), digest }.encode()])?;
        Ok(SentItem { size: self.content.len() as u64, digest, failure: read.err() })
    }

    pub(super) fn send_link(&mut self, item: &ScannedItem, target: &[u8]) -> io::Result<SentItem> {
        let find = || self.run.root(item).and_then(|root| root.source.link_target(&item.path));
        let leads_to = self.run.driver.stages.wait_briefly(Work::Find, find);
        // A link that cannot be read is sent as an empty file that is not whole: the receiver drops it.
        match leads_to {
            Ok((leads_to, fingerprint)) => {
                let described = ScannedItem { fingerprint, ..item.clone() };
                let header = self.run.entry(EntryKind::Symlink, &described, target, leads_to.len());
                let attributes = attributes_of(&header, &described);
                let fingerprint = fingerprint_of(&header, &described);
                self.out.meta(&[&header.encode(), fingerprint, &attributes, target, &leads_to])?;
                Ok(SentItem { size: 0, digest: BlockDigest::default(), failure: None })
            }
            Err(why) => {
                // Only a file has a trailer that can say so.
                let mut described = ScannedItem { fingerprint: None, ..item.clone() };
                described.attributes.others = OtherAttributes::default();
                self.out.meta(&[&self.run.entry(EntryKind::File, &described, target, 0).encode(), target])?;
                self.out.meta(&[&Trailer { whole: false, digest: BlockDigest::default() }.encode()])?;
                Ok(SentItem { size: 0, digest: BlockDigest::default(), failure: Some(why) })
            }
        }
    }
}

/// The block of attributes that precedes the path of an entry, if its header says so.
fn attributes_of(header: &EntryHeader, item: &ScannedItem) -> Vec<u8> {
    if header.attribute_bytes == 0 { Vec::new() } else { attributes::encode(&item.attributes.others) }
}

/// What precedes the path of an entry, if its header says so.
fn fingerprint_of<'a>(header: &EntryHeader, item: &'a ScannedItem) -> &'a [u8] {
    item.fingerprint.as_ref().filter(|_| header.fingerprinted).map_or(&[], |fingerprint| fingerprint)
}
