//! What the sender and the receiver of one transfer say to each other. The command carries it
//! between them and does not look.
//!
//! Tagged fields (protobuf). Decoding gives [`PeerMessage`], in which paths, lengths and counts have been checked.

use prost::Message as _;

mod question;
mod raw;
mod resume;

pub use question::{AskedIndex, AskedItem, AskedLink, Question};
pub use resume::QueryItem;

use crate::attributes::{Attributes, OtherAttributes, Time};
use crate::digest::{BlockDigest, FileDigests};
use crate::failure::{ErrorCode, Failure, Side};
use crate::fingerprint::Fingerprint;
use crate::ids::{BundleId, ItemId, StreamId};
use crate::judgment::Judgment;
use crate::wire::codec::decode;
use crate::wire::{ProtocolError, attributes, fields};
use crate::{limits, path};

/// One message between sender and receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerMessage {
    /// Sender: here is a file too large for a bundle; may its blocks come?
    Offer(Offer),
    /// Receiver: the answer to an offer.
    Answer {
        /// The item offered.
        item: ItemId,
        /// What is to happen.
        answer: Answer,
    },
    /// Receiver: these have been written (not yet published); they need not be sent again.
    Landed {
        /// Item and offset of each block.
        blocks: Vec<(ItemId, u64)>,
        /// Numbers of bundles.
        bundles: Vec<BundleId>,
    },
    /// Receiver: this block's digest did not match; send it again.
    SendAgain {
        /// Number of the item.
        item: ItemId,
        /// Where the block starts.
        offset: u64,
    },
    /// Sender: all blocks have been sent, and this is what the file must be.
    Complete {
        /// Number of the item.
        item: ItemId,
        /// The file's size in bytes.
        size: u64,
        /// The BLAKE3 of the file, or the sum of its blocks' XXH3-128, where digests are on.
        digest: Option<[u8; 32]>,
        /// Its modification time, where it was offered with another.
        modified: Option<Time>,
    },
    /// Sender: the source failed; forget the item.
    Abandon {
        /// Number of the item.
        item: ItemId,
    },
    /// Receiver: how an offered item ended.
    Done {
        /// Number of the item.
        item: ItemId,
        /// How the item ended.
        result: ItemResult,
    },
    /// Receiver: how a bundle's items ended. Those not named were published.
    BundleDone {
        /// Number of the bundle.
        bundle: BundleId,
        /// Index within the bundle and what happened instead.
        exceptions: Vec<(u32, ItemResult)>,
    },
    /// Sender: permissions and times of directories, children before parents. Only after every item has ended.
    Directories(Vec<DirectoryAttributes>),
    /// Sender: that was all.
    Finish,
    /// Sender: that was all, and what was copied are the contents of a directory, whose permissions and time are
    /// these. The path is empty.
    FinishContents(DirectoryAttributes),
    /// Sender: if every offered item that is open is published, that was all, as by [`Self::Finish`]; else this has not
    /// been said. Over a long path it saves the round trip of the last word.
    FinishOncePublished {
        /// Offered items that have ended in another way so far, as the sender knows. Where there are more, this has not
        /// been said either.
        ended_otherwise: u64,
    },
    /// Receiver: everything is published.
    Finished {
        /// And has reached stable storage.
        durable: bool,
    },
    /// Receiver: the permissions or times of these directories could not be set. Each that was
    /// told is named once at most.
    DirectoriesFailed(Vec<(Vec<u8>, Failure)>),
    /// Either: the transfer cannot go on.
    Fail(Failure),
    /// Sender: this data stream is given up; what it carried and has not landed comes on another.
    StreamLost {
        /// The stream's number.
        stream: StreamId,
    },
    /// Receiver, before it accepts an offer: these blocks of the item are there already.
    /// They count as landed only once the sender has found the same in its source and has confirmed it.
    Held {
        /// Number of the item.
        item: ItemId,
        /// Index of the first block.
        first: u64,
        /// Digests of the blocks from there on, one after the other; at most [`limits::HELD_BLOCKS`].
        digests: Vec<BlockDigest>,
        /// They are from what stands at the item's name, else from an earlier attempt.
        taken_over: bool,
        /// Digests of the chunks of each of the blocks, one block after the other, as
        /// [`told_chunks`](super::patch::told_chunks) has them; none where blocks are sent whole.
        chunks: Vec<u32>,
    },
    /// Sender: held blocks that are what the source has.
    Confirm {
        /// Number of the item.
        item: ItemId,
        /// Index of the first block.
        first: u64,
        /// How many from there on.
        count: u64,
    },
    /// Sender: which items of this bundle, not yet sent, are there from an earlier attempt?
    Query {
        /// Number of the bundle.
        bundle: BundleId,
        /// Its files and links.
        items: Vec<QueryItem>,
    },
    /// Receiver: those. They need not be sent.
    Known {
        /// Number of the bundle.
        bundle: BundleId,
        /// Index within the bundle, and the digests that the receiver computed when it wrote the item.
        items: Vec<(u32, FileDigests)>,
    },
    /// Sender: what it has. What has to be sent?
    Compare {
        /// Number of the question; bundles have others.
        number: BundleId,
        /// Files and names.
        question: Question,
    },
    /// Receiver: what becomes of each file that was asked about.
    Compared {
        /// Number of the question.
        number: BundleId,
        /// In the order of the question.
        judgments: Vec<Judgment>,
    },
    /// Sender: what a file that is [`Judgment::Undecided`] holds.
    Content {
        /// Which file: the question's number, and its index there.
        asked: AskedIndex,
        /// The BLAKE3 of all of it; `None` where it cannot be read, has changed since it was listed, or has the size
        /// and time of another file, so that samples do not tell the two apart.
        digest: Option<[u8; 32]>,
    },
    /// Receiver: whether what stands there holds the same; and of a file that is [`Judgment::Chunked`] what it holds.
    ContentCompared {
        /// Which file.
        asked: AskedIndex,
        /// It does.
        same: bool,
        /// The digest of each of its [chunks](super::patch), at most [`limits::FILE_CHUNKS`]; none where all of the
        /// file is to be sent.
        chunks: Vec<u32>,
    },
    /// Sender: every item has ended, or none has been sent yet, and every name has been told. Now what only the
    /// destination has may be deleted, as the command has ordered.
    Delete {
        /// Items that failed.
        failed: u64,
    },
    /// Receiver: what was to be deleted first is deleted, or stays. Now items may come.
    Deleted,
    /// Receiver: whether the source has by now what is about to be deleted. Nothing else is asked until it is answered.
    AskStillThere {
        /// Number of the question, counting up from 1.
        number: BundleId,
        /// Relative to the destination; at most [`limits::ASKED_ITEMS`].
        paths: Vec<Vec<u8>>,
    },
    /// Sender: what there is at each of those paths that no rule leaves out, or cannot be looked at.
    StillThere {
        /// Number of the question.
        number: BundleId,
        /// In the order of the question.
        there: Vec<bool>,
    },
}

/// A file offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The sender's number for it, counting up from 1.
    pub item: ItemId,
    /// Relative to the destination.
    pub path: Vec<u8>,
    /// Bytes; `None` for a source that ends when it ends.
    pub size: Option<u64>,
    /// What the file is to have; the modification time is `None` for a source that has none.
    pub attributes: Attributes,
    /// Whether the source has holes worth keeping: the destination is then not preallocated.
    pub sparse: bool,
    /// What the source is known by in a later session; `None` where nothing tells
    /// that it is still the same.
    pub fingerprint: Option<Fingerprint>,
}

/// The answer to an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Send the blocks.
    Accept,
    /// The name stays as it is, as was asked for.
    Keep,
    /// It cannot be written.
    Refuse(Failure),
    /// An earlier attempt has published it, and it has not changed since.
    Present(FileDigests),
    /// All of it is there, and is what the source holds: it shares its blocks. Nothing is to be read or sent.
    Shared,
}

/// How an item ended at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemResult {
    /// The item is there under its name.
    Published,
    /// Left as it was, as was asked for.
    Kept,
    /// The same was there already.
    Same,
    /// The digest did not match; worth sending again.
    Mismatch,
    /// It failed at the receiver.
    Failed(Failure),
    /// The sender had marked it as failed itself.
    Dropped,
    /// What was written of it is lost, and sending all of it again may help.
    Again(Failure),
}

/// Permissions and times of one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryAttributes {
    /// Relative to the destination.
    pub path: Vec<u8>,
    /// What it is to have. A modification time always travels: without one it is the beginning of 1970.
    pub attributes: Attributes,
}

impl PeerMessage {
    /// Encodes it as it travels.
    pub fn encode(&self) -> Vec<u8> {
        raw::Peer { body: Some(to_raw(self)) }.encode_to_vec()
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// When the message cannot be read, or says what no peer may say.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let message: raw::Peer = decode(bytes, "a peer message", fields::PEER)?;
        match message.body {
            Some(body) => from_raw(body),
            None => Err(ProtocolError::violation("the peer sent a message of unknown type")),
        }
    }
}

fn to_raw(message: &PeerMessage) -> raw::Body {
    use raw::Body;
    match message.clone() {
        PeerMessage::Offer(offer) => Body::Offer(raw::Offer {
            item: offer.item.0,
            path: offer.path,
            size: offer.size,
            mode: offer.attributes.mode,
            mtime_seconds: offer.attributes.mtime.map(|time| time.seconds),
            mtime_nanos: offer.attributes.mtime.map_or(0, |time| time.nanos),
            sparse: offer.sparse,
            fingerprint: offer.fingerprint.map(|fingerprint| fingerprint.to_vec()),
            attributes: others_to_raw(&offer.attributes.others),
        }),
        PeerMessage::Answer { item, answer } => Body::Answer(answer_to_raw(item.0, answer)),
        PeerMessage::Landed { blocks, bundles } => {
            let (items, offsets) = blocks.into_iter().map(|(item, offset)| (item.0, offset)).unzip();
            let bundles = bundles.into_iter().map(|bundle| bundle.0).collect();
            Body::Landed(raw::Landed { items, offsets, bundles })
        }
        PeerMessage::SendAgain { item, offset } => Body::SendAgain(raw::SendAgain { item: item.0, offset }),
        PeerMessage::Complete { item, size, digest, modified } => Body::Complete(raw::Complete {
            item: item.0,
            size,
            digest: digest.map(|digest| digest.to_vec()),
            mtime_seconds: modified.map(|time| time.seconds),
            mtime_nanos: modified.map_or(0, |time| time.nanos),
        }),
        PeerMessage::Abandon { item } => Body::Abandon(raw::Abandon { item: item.0 }),
        PeerMessage::Done { item, result } => Body::Done(result_to_raw(item.0, result)),
        PeerMessage::BundleDone { bundle, exceptions } => Body::BundleDone(raw::BundleDone {
            bundle: bundle.0,
            exceptions: exceptions.into_iter().map(|(index, result)| result_to_raw(u64::from(index), result)).collect(),
        }),
        PeerMessage::Directories(list) => {
            Body::Directories(raw::Directories { list: list.into_iter().map(directory_to_raw).collect() })
        }
        PeerMessage::Finish => Body::Finish(raw::Finish::default()),
        PeerMessage::FinishContents(contents) => {
            Body::Finish(raw::Finish { contents: Some(directory_to_raw(contents)), ended_otherwise: None })
        }
        PeerMessage::FinishOncePublished { ended_otherwise } => {
            Body::Finish(raw::Finish { contents: None, ended_otherwise: Some(ended_otherwise) })
        }
        PeerMessage::Finished { durable } => Body::Finished(raw::Finished { durable }),
        PeerMessage::DirectoriesFailed(failures) => {
            Body::DirectoriesFailed(raw::DirectoriesFailed { failures: failures_to_raw(failures) })
        }
        PeerMessage::Fail(failure) => Body::Fail(failure.into()),
        PeerMessage::StreamLost { stream } => Body::StreamLost(raw::StreamLost { stream: u32::from(stream.0) }),
        PeerMessage::Held { item, first, digests, taken_over, chunks } => {
            Body::Held(resume::held(item, first, &digests, taken_over, chunks))
        }
        PeerMessage::Confirm { item, first, count } => Body::Confirm(raw::Confirm { item: item.0, first, count }),
        PeerMessage::Query { bundle, items } => Body::Query(resume::query(bundle, items)),
        PeerMessage::Known { bundle, items } => Body::Known(resume::known(bundle, items)),
        PeerMessage::Compare { number, question } => Body::Compare(question::to_raw(number, question)),
        PeerMessage::Compared { number, judgments } => Body::Compared(question::answer(number, &judgments)),
        PeerMessage::Content { asked, digest } => Body::Content(question::content(asked, digest)),
        PeerMessage::ContentCompared { asked, same, chunks } => {
            Body::ContentCompared(question::content_compared(asked, same, chunks))
        }
        PeerMessage::Delete { failed } => Body::Delete(raw::Delete { failed }),
        PeerMessage::Deleted => Body::Deleted(raw::Deleted {}),
        PeerMessage::AskStillThere { number, paths } => Body::AskStillThere(question::ask_still_there(number, &paths)),
        PeerMessage::StillThere { number, there } => Body::StillThere(question::still_there(number, &there)),
    }
}

fn failures_to_raw(failures: Vec<(Vec<u8>, Failure)>) -> Vec<raw::PathFailure> {
    failures.into_iter().map(|(path, failure)| raw::PathFailure { path, failure: Some(failure.into()) }).collect()
}

/// Of directories; the destination itself has no path.
fn failures_from_raw(failures: Vec<raw::PathFailure>) -> Result<Vec<(Vec<u8>, Failure)>, ProtocolError> {
    let checked = failures.into_iter().map(|entry| {
        if !entry.path.is_empty() {
            path::check_relative(&entry.path).map_err(|error| ProtocolError::path(&entry.path, error))?;
        }
        Ok((entry.path, entry.failure.map_or_else(unexplained, Failure::from)))
    });
    checked.collect()
}

fn result_to_raw(item: u64, result: ItemResult) -> raw::ItemResult {
    let kind = match result {
        ItemResult::Published => raw::PUBLISHED,
        ItemResult::Kept => raw::KEPT,
        ItemResult::Mismatch => raw::MISMATCH,
        ItemResult::Failed(_) => raw::FAILED,
        ItemResult::Dropped => raw::DROPPED,
        ItemResult::Again(_) => raw::AGAIN,
        ItemResult::Same => raw::SAME,
    };
    let failure = match result {
        ItemResult::Failed(failure) | ItemResult::Again(failure) => Some(failure.into()),
        _ => None,
    };
    raw::ItemResult { item, kind, failure, digests: None }
}

fn answer_to_raw(item: u64, answer: Answer) -> raw::ItemResult {
    let kind = match answer {
        Answer::Accept => raw::ACCEPTED,
        Answer::Keep => raw::KEPT,
        Answer::Refuse(_) => raw::FAILED,
        Answer::Present(_) => raw::PRESENT,
        Answer::Shared => raw::SHARED,
    };
    let (mut failure, mut digests) = (None, None);
    match answer {
        Answer::Refuse(why) => failure = Some(why.into()),
        Answer::Present(found) => digests = Some(found.into()),
        Answer::Accept | Answer::Keep | Answer::Shared => {}
    }
    raw::ItemResult { item, kind, failure, digests }
}

fn from_raw(body: raw::Body) -> Result<PeerMessage, ProtocolError> {
    use raw::Body;
    Ok(match body {
        Body::Offer(offer) => PeerMessage::Offer(offer_from_raw(offer)?),
        Body::Answer(answer) => {
            let item = ItemId(answer.item);
            let answer = match (answer.kind, answer.failure) {
                (raw::ACCEPTED, _) => Answer::Accept,
                (raw::KEPT, _) => Answer::Keep,
                (raw::FAILED, Some(failure)) => Answer::Refuse(failure.into()),
                (raw::PRESENT, _) => Answer::Present(answer.digests.unwrap_or_default().into()),
                (raw::SHARED, _) => Answer::Shared,
                (kind, _) => {
                    return Err(ProtocolError::violation(format!("the peer sent an answer of unknown kind {kind}")));
                }
            };
            PeerMessage::Answer { item, answer }
        }
        Body::Landed(landed) => {
            if landed.items.len() != landed.offsets.len() {
                return Err(ProtocolError::violation("the peer sent a list of landed blocks with missing offsets"));
            }
            PeerMessage::Landed {
                blocks: landed.items.into_iter().map(ItemId).zip(landed.offsets).collect(),
                bundles: landed.bundles.into_iter().map(BundleId).collect(),
            }
        }
        Body::SendAgain(again) => PeerMessage::SendAgain { item: ItemId(again.item), offset: again.offset },
        Body::Complete(complete) => complete_from_raw(complete)?,
        Body::Abandon(abandon) => PeerMessage::Abandon { item: ItemId(abandon.item) },
        Body::Done(done) => PeerMessage::Done { item: ItemId(done.item), result: result_from_raw(done)?.1 },
        Body::BundleDone(done) => PeerMessage::BundleDone {
            bundle: BundleId(done.bundle),
            exceptions: done.exceptions.into_iter().map(result_from_raw).collect::<Result<_, _>>()?,
        },
        Body::Directories(directories) => {
            PeerMessage::Directories(directories.list.into_iter().map(directory_from_raw).collect::<Result<_, _>>()?)
        }
        Body::Finish(raw::Finish { ended_otherwise: Some(ended_otherwise), .. }) => {
            PeerMessage::FinishOncePublished { ended_otherwise }
        }
        Body::Finish(raw::Finish { contents: None, .. }) => PeerMessage::Finish,
        Body::Finish(raw::Finish { contents: Some(directory), .. }) => {
            PeerMessage::FinishContents(attributes_from_raw(raw::Directory { path: Vec::new(), ..directory })?)
        }
        Body::Finished(finished) => PeerMessage::Finished { durable: finished.durable },
        Body::DirectoriesFailed(failed) => PeerMessage::DirectoriesFailed(failures_from_raw(failed.failures)?),
        Body::Fail(failure) => PeerMessage::Fail(failure.into()),
        Body::StreamLost(lost) => {
            let stream = u16::try_from(lost.stream);
            let unknown = |_| ProtocolError::violation(format!("the peer gave up data connection {}", lost.stream));
            PeerMessage::StreamLost { stream: StreamId(stream.map_err(unknown)?) }
        }
        Body::Held(held) => resume::held_from_raw(&held)?,
        Body::Confirm(confirm) => {
            resume::check_confirm(&confirm)?;
            PeerMessage::Confirm { item: ItemId(confirm.item), first: confirm.first, count: confirm.count }
        }
        Body::Query(query) => PeerMessage::Query { bundle: BundleId(query.bundle), items: resume::asked_items(query)? },
        Body::Known(known) => PeerMessage::Known { bundle: BundleId(known.bundle), items: resume::known_items(known) },
        Body::Compare(raw) => question::asked(raw)?,
        Body::Compared(raw) => question::answered(&raw)?,
        Body::Content(raw) => question::read_content(raw)?,
        Body::ContentCompared(raw) => question::read_content_compared(raw)?,
        Body::Delete(raw::Delete { failed }) => PeerMessage::Delete { failed },
        Body::Deleted(raw::Deleted {}) => PeerMessage::Deleted,
        Body::AskStillThere(raw) => question::read_ask_still_there(&raw)?,
        Body::StillThere(raw) => question::read_still_there(&raw)?,
    })
}

fn complete_from_raw(complete: raw::Complete) -> Result<PeerMessage, ProtocolError> {
    let digest = match complete.digest.map(<[u8; 32]>::try_from) {
        None => None,
        Some(Ok(digest)) => Some(digest),
        Some(Err(_)) => return Err(ProtocolError::violation("the peer sent a digest of the wrong length")),
    };
    if complete.size > limits::FILE_BYTES {
        return Err(ProtocolError::violation(format!("the peer sent a file of {} bytes", complete.size)));
    }
    if !Time::new(0, complete.mtime_nanos).is_valid() {
        return Err(ProtocolError::violation("the peer sent a time with a second of nanoseconds"));
    }
    let modified = complete.mtime_seconds.map(|seconds| Time::new(seconds, complete.mtime_nanos));
    Ok(PeerMessage::Complete { item: ItemId(complete.item), size: complete.size, digest, modified })
}

fn offer_from_raw(offer: raw::Offer) -> Result<Offer, ProtocolError> {
    path::check_relative(&offer.path).map_err(|error| ProtocolError::path(&offer.path, error))?;
    let has_valid_time = Time::new(0, offer.mtime_nanos).is_valid();
    if offer.size.is_some_and(|size| size > limits::FILE_BYTES) || !has_valid_time || offer.item == 0 {
        return Err(ProtocolError::violation(format!(
            "the peer offered a file of {:?} bytes, number {}",
            offer.size, offer.item
        )));
    }
    Ok(Offer {
        item: ItemId(offer.item),
        path: offer.path,
        size: offer.size,
        attributes: Attributes {
            mode: offer.mode & 0o7777,
            mtime: offer.mtime_seconds.map(|seconds| Time::new(seconds, offer.mtime_nanos)),
            others: others_from_raw(offer.attributes)?,
        },
        sparse: offer.sparse,
        fingerprint: resume::fingerprint(offer.fingerprint)?,
    })
}

/// Attributes as a block, where there are some.
fn others_to_raw(others: &OtherAttributes) -> Option<Vec<u8>> {
    if others.is_empty() { None } else { Some(attributes::encode(others)) }
}

fn others_from_raw(block: Option<Vec<u8>>) -> Result<OtherAttributes, ProtocolError> {
    block.map_or_else(|| Ok(OtherAttributes::default()), |block| attributes::decode(&block))
}

fn directory_to_raw(directory: DirectoryAttributes) -> raw::Directory {
    let DirectoryAttributes { path, attributes: Attributes { mode, mtime, others } } = directory;
    let mtime = mtime.unwrap_or_default();
    let attributes = others_to_raw(&others);
    raw::Directory { path, mode, mtime_seconds: mtime.seconds, mtime_nanos: mtime.nanos, attributes }
}

fn directory_from_raw(directory: raw::Directory) -> Result<DirectoryAttributes, ProtocolError> {
    path::check_relative(&directory.path).map_err(|error| ProtocolError::path(&directory.path, error))?;
    attributes_from_raw(directory)
}

fn attributes_from_raw(directory: raw::Directory) -> Result<DirectoryAttributes, ProtocolError> {
    let mtime = Time::new(directory.mtime_seconds, directory.mtime_nanos);
    if !mtime.is_valid() {
        return Err(ProtocolError::violation("the peer sent a directory with an impossible time"));
    }
    let (mode, others) = (directory.mode & 0o7777, others_from_raw(directory.attributes)?);
    Ok(DirectoryAttributes { path: directory.path, attributes: Attributes { mode, mtime: Some(mtime), others } })
}

fn result_from_raw(result: raw::ItemResult) -> Result<(u32, ItemResult), ProtocolError> {
    let outcome = match result.kind {
        raw::PUBLISHED => ItemResult::Published,
        raw::KEPT => ItemResult::Kept,
        raw::MISMATCH => ItemResult::Mismatch,
        raw::DROPPED => ItemResult::Dropped,
        raw::FAILED => ItemResult::Failed(result.failure.map_or_else(unexplained, Failure::from)),
        raw::SAME => ItemResult::Same,
        raw::AGAIN => ItemResult::Again(result.failure.map_or_else(unexplained, Failure::from)),
        kind => {
            return Err(ProtocolError::violation(format!("the peer sent a result of unknown kind {kind}")));
        }
    };
    // Offered items are named by the message around it; only a bundle's index has to fit.
    Ok((u32::try_from(result.item).unwrap_or(u32::MAX), outcome))
}

fn unexplained() -> Failure {
    Failure::new(ErrorCode::Other, Side::Destination, "the peer gave no reason")
}

#[cfg(test)]
mod tests;
