//! What sessions leave for later ones of the same copy: a marker's journal, cut into objects.
//!
//! An object cannot be appended to. So the newest one is put again with what is new behind it, until it is large, and
//! then the next one begins. What the service has taken it does not lose: all claims are as sure as its own parts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use carrack_core::digest::FileDigests;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::limits;
use carrack_core::report::Unfinished;
use carrack_core::request::{Digests, Durability};
use carrack_core::transfer::marker::{Chain, Left, PartRecord, Published, Record, Replay, Replayed, SessionRecord};

use super::{Bucket, Object, Overwrite, Upload, below, prefix};
use crate::storage::names::{is_marker, marker_name};
use crate::storage::properties::MarkerRequest;
use crate::sync::lock;

/// From this size on the next object begins.
const SEGMENT_BYTES: usize = 256 << 10;
/// No object of a journal has more, whoever has put it there: what is new at once has a few megabytes at most.
const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// A service has no boots, and no part files whose names would have to be told apart.
const BOOT: [u8; 16] = [1; 16];
const TAG: [u8; 8] = *b"00000000";

/// Whether what is under a key belongs to a journal.
pub(super) fn is_own(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(is_marker)
}

/// The journal of one session.
pub(super) struct ObjectJournal {
    bucket: Arc<dyn Bucket>,
    /// The key of the destination.
    top: Vec<u8>,
    /// The key that its objects are below.
    at: Vec<u8>,
    written: Mutex<JournalContents>,
    /// What earlier sessions published.
    known: Option<Replayed>,
    /// See [`MarkerRequest::partial`].
    partial: bool,
}

struct JournalContents {
    chain: Chain,
    /// The number of the newest object, and what it has.
    segment: u64,
    bytes: Vec<u8>,
    last_part: u64,
    published: Vec<Published>,
    /// Uploads of earlier sessions that nobody has taken up, by path.
    left: BTreeMap<Vec<u8>, Left>,
}

impl ObjectJournal {
    /// Reads what earlier sessions have left, unless it is to begin anew.
    pub fn open(
        bucket: &Arc<dyn Bucket>,
        top: &[u8],
        request: MarkerRequest,
        durability: Durability,
    ) -> Result<Self, Failure> {
        let at = below(top, &marker_name(request.key, 1));
        let mut segments = Vec::new();
        bucket.list(&prefix(&at), &mut |key, object| {
            segments.push((key.to_vec(), object));
            true
        })?;
        let count = segments.len() as u64;
        let (header, chain) = Chain::begin(TAG);
        let written = JournalContents {
            chain,
            segment: 0,
            bytes: header,
            last_part: 0,
            published: Vec::new(),
            left: BTreeMap::new(),
        };
        let mut journal = Self {
            bucket: Arc::clone(bucket),
            top: top.to_vec(),
            at,
            written: Mutex::new(written),
            known: None,
            partial: request.partial,
        };
        let mut found = Self::read(&**bucket, &segments)?;
        if let Some(found) = &mut found {
            let parts = std::mem::take(&mut found.parts).into_values();
            lock(&journal.written).left = parts.map(|left| (left.part.path.clone(), left)).collect();
        }
        // What is damaged is not continued.
        match found.filter(|found| !found.damaged && !request.anew) {
            Some(found) => {
                let mut written = lock(&journal.written);
                (written.chain, written.segment, written.bytes) = (found.chain, count, Vec::new());
                written.last_part = found.last_part;
                drop(written);
                journal.known = Some(found);
            }
            None if count > 0 => journal.remove_all(),
            None => {}
        }
        journal.append(&mut lock(&journal.written), &[Record::Session(SessionRecord { boot: BOOT, durability })])?;
        Ok(journal)
    }

    /// What is written in these objects; damaged where one is none of a journal's, or has changed since it was listed.
    fn read(bucket: &dyn Bucket, segments: &[(Vec<u8>, Object)]) -> Result<Option<Replayed>, Failure> {
        let mut replay = Replay::new(BOOT);
        for (key, object) in segments {
            if object.size > SEGMENT_BYTES_MAX {
                return Ok(replay.finish(1));
            }
            let mut bytes = vec![0; object.size as usize];
            match bucket.get(key, object.version, 0, &mut bytes) {
                // A record is in one object.
                Ok(()) if replay.read(&bytes) == Some(bytes.len()) => {}
                Err(why) if !matches!(why.code, ErrorCode::SourceChanged | ErrorCode::SourceVanished) => {
                    return Err(Failure { side: Side::Destination, ..why });
                }
                _ => return Ok(replay.finish(1)),
            }
        }
        Ok(replay.finish(0))
    }

    fn append(&self, written: &mut JournalContents, records: &[Record]) -> Result<(), Failure> {
        let (mut chain, mut bytes) = (written.chain, written.bytes.clone());
        records.iter().for_each(|record| chain.append(record, &mut bytes));
        // Numbers in order of keys.
        let key = below(&self.at, format!("{:016}", written.segment).as_bytes());
        self.bucket.put(&key, &bytes, Overwrite::Anything)?;
        (written.chain, written.bytes) = (chain, bytes);
        if written.bytes.len() >= SEGMENT_BYTES {
            (written.segment, written.bytes) = (written.segment + 1, Vec::new());
        }
        Ok(())
    }

    /// Writes something down.
    pub fn write(&self, records: &[Record]) -> Result<(), Failure> {
        self.append(&mut lock(&self.written), records)
    }

    /// Writes down an upload, by the next number.
    pub fn begin(&self, part: PartRecord) -> Result<u64, Failure> {
        let mut written = lock(&self.written);
        let number = written.last_part + 1;
        self.append(&mut written, &[Record::Part(PartRecord { number, ..part })])?;
        written.last_part = number;
        Ok(number)
    }

    /// The upload that an earlier session has left of a path, for whoever asks first.
    pub fn take_left(&self, path: &[u8]) -> Option<Left> {
        lock(&self.written).left.remove(path)
    }

    /// Nobody could say what is there of an upload that was asked for: it stays for whoever asks next.
    pub fn put_back(&self, left: Left) {
        lock(&self.written).left.insert(left.part.path.clone(), left);
    }

    /// Something has got its name: [`ObjectJournal::flush`] writes it down.
    pub fn note_published(&self, item: Published) {
        lock(&self.written).published.push(item);
    }

    /// Writes down what has got its name. Where that fails, it is sent again by the next session.
    pub fn flush(&self) {
        let mut written = lock(&self.written);
        let items = std::mem::take(&mut written.published);
        if !items.is_empty() {
            let _ = self.append(&mut written, &[Record::Published(items)]);
        }
    }

    pub fn known_count(&self) -> u64 {
        self.known.as_ref().map_or(0, Replayed::known_count)
    }

    pub fn known(&self, key: &[u8; 16], wanted: Digests) -> Option<FileDigests> {
        self.known.as_ref()?.known(key, wanted)
    }

    /// Uploads of earlier sessions that nobody has asked for: in a session for a part of them they stay for the next.
    pub fn unfinished(&self) -> Unfinished {
        let written = lock(&self.written);
        let left: Vec<Vec<u8>> = written.left.keys().filter(|_| self.partial).cloned().collect();
        Unfinished { count: left.len() as u64, paths: left.into_iter().take(limits::UNFINISHED_PATHS).collect() }
    }

    /// Removes all that was left for a later session. What cannot be removed stays, and a later one removes it.
    pub fn remove_all(&self) {
        let left = std::mem::take(&mut lock(&self.written).left);
        for (path, left) in left {
            let _ = self.bucket.abort(Upload { key: &below(&self.top, &path), name: &left.part.part_name });
        }
        let mut keys = Vec::new();
        let _ = self.bucket.list(&prefix(&self.at), &mut |key, _| {
            keys.push(key.to_vec());
            true
        });
        // The newest first: what is left in between reads as a shorter journal.
        for key in keys.iter().rev() {
            let _ = self.bucket.remove(key);
        }
    }
}
