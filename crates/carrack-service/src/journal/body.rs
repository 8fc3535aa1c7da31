//! Records as bytes, and back. Numbers of fields and kinds keep their meaning; new ones are added at the end, and
//! readers pass over kinds that they do not know.

use std::collections::BTreeMap;

use carrack_core::report::ItemKind;
use prost::Message;

use super::format::{BODY_BYTES_MAX, HEAD_BYTES};
use super::record::{AttemptEnd, EndCounts, EndKind, Item, PairEnd, Record, Sample};
use crate::clock::Moment;
use crate::model::{EventKind, ItemState, Progress, Rates, TaskFailure};

const BEGAN: u8 = 1;
const ITEM: u8 = 2;
const SAMPLE: u8 = 3;
const EVENT: u8 = 4;
const ENDED: u8 = 5;
const PAIR_ENDED: u8 = 6;
const PASS_BEGAN: u8 = 7;
const REACHED: u8 = 8;

/// The most bytes of a text in a record. What is longer is cut off.
const TEXT_BYTES: usize = 4 << 10;

#[derive(Clone, PartialEq, Message)]
struct RawBegan {
    #[prost(uint64, tag = "1")]
    fence: u64,
    #[prost(sint64, tag = "2")]
    time: i64,
    #[prost(uint32, tag = "3")]
    process: u32,
    #[prost(string, tag = "4")]
    program: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawItem {
    #[prost(uint32, tag = "1")]
    pair: u32,
    #[prost(bytes = "vec", tag = "2")]
    path: Vec<u8>,
    #[prost(uint32, tag = "3")]
    kind: u32,
    #[prost(uint32, tag = "4")]
    state: u32,
    #[prost(uint64, tag = "5")]
    size: u64,
    #[prost(bytes = "vec", tag = "6")]
    digest: Vec<u8>,
    #[prost(message, optional, tag = "7")]
    failure: Option<RawFailure>,
}

#[derive(Clone, PartialEq, Message)]
struct RawFailure {
    #[prost(string, tag = "1")]
    code: String,
    #[prost(string, tag = "2")]
    side: String,
    #[prost(string, tag = "3")]
    why: String,
    #[prost(bool, tag = "4")]
    retryable: bool,
    #[prost(string, repeated, tag = "5")]
    hints: Vec<String>,
    #[prost(string, optional, tag = "6")]
    endpoint: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct RawProgress {
    #[prost(uint64, tag = "1")]
    items_total: u64,
    #[prost(uint64, tag = "2")]
    items_done: u64,
    #[prost(uint64, tag = "3")]
    items_skipped: u64,
    #[prost(uint64, tag = "4")]
    items_failed: u64,
    #[prost(bool, tag = "5")]
    scan_complete: bool,
    #[prost(uint64, tag = "6")]
    bytes_total: u64,
    #[prost(uint64, tag = "7")]
    bytes_moved: u64,
    #[prost(uint64, tag = "8")]
    bytes_verified: u64,
    #[prost(uint64, tag = "9")]
    bytes_skipped: u64,
    #[prost(uint64, tag = "10")]
    bytes_resent: u64,
    #[prost(uint64, tag = "11")]
    faults: u64,
    #[prost(double, tag = "12")]
    rate_now: f64,
    #[prost(double, tag = "13")]
    rate_five_minutes: f64,
    #[prost(double, tag = "14")]
    rate_all: f64,
    #[prost(uint64, optional, tag = "15")]
    eta_seconds: Option<u64>,
    #[prost(string, optional, tag = "16")]
    limited_by: Option<String>,
    #[prost(uint64, tag = "17")]
    items_remembered: u64,
    #[prost(btree_map = "string, uint64", tag = "18")]
    unkept: BTreeMap<String, u64>,
    #[prost(uint64, tag = "19")]
    items_lost: u64,
    #[prost(uint64, tag = "20")]
    bytes_lost: u64,
}

#[derive(Clone, PartialEq, Message)]
struct RawReached {}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(sint64, tag = "1")]
    time: i64,
    #[prost(message, optional, tag = "2")]
    progress: Option<RawProgress>,
    #[prost(uint32, tag = "3")]
    streams: u32,
    #[prost(message, optional, tag = "4")]
    source: Option<RawEndCounts>,
    #[prost(message, optional, tag = "5")]
    destination: Option<RawEndCounts>,
}

#[derive(Clone, PartialEq, Message)]
struct RawEndCounts {
    #[prost(uint64, tag = "1")]
    processor_us: u64,
    #[prost(uint64, tag = "2")]
    storage_wait_us: u64,
    #[prost(uint64, tag = "3")]
    retransmits: u64,
}

#[derive(Clone, PartialEq, Message)]
struct RawEvent {
    #[prost(sint64, tag = "1")]
    time: i64,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(string, tag = "3")]
    text: String,
    #[prost(string, tag = "4")]
    detail: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawEnded {
    #[prost(sint64, tag = "1")]
    time: i64,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(message, optional, tag = "3")]
    progress: Option<RawProgress>,
    #[prost(message, optional, tag = "4")]
    failure: Option<RawFailure>,
    #[prost(bool, tag = "5")]
    got_somewhere: bool,
    #[prost(bool, tag = "6")]
    late: bool,
}

#[derive(Clone, PartialEq, Message)]
struct RawPairEnded {
    #[prost(uint32, tag = "1")]
    pair: u32,
    #[prost(sint64, tag = "2")]
    time: i64,
    #[prost(message, optional, tag = "3")]
    progress: Option<RawProgress>,
    #[prost(bool, tag = "4")]
    of_sources: bool,
    #[prost(bool, tag = "5")]
    of_look: bool,
}

#[derive(Clone, PartialEq, Message)]
struct RawPassBegan {
    #[prost(uint32, tag = "1")]
    pair: u32,
    #[prost(bytes = "vec", tag = "2")]
    place: Vec<u8>,
}

/// Appends a record.
pub fn encode(record: &Record, to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(&[0; HEAD_BYTES]);
    let kind = encode_body(record, to);
    // A path has at most 64 KiB and a text is cut: no body is longer than its bound.
    let length = to.len() - start - HEAD_BYTES;
    debug_assert!(length <= BODY_BYTES_MAX, "{length}");
    to[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    to[start + 4] = kind;
    let sum = crc32c::crc32c(&to[start..]);
    to.extend_from_slice(&sum.to_le_bytes());
}

fn encode_body(record: &Record, to: &mut Vec<u8>) -> u8 {
    // A `Vec` grows as it is written to: encoding into it cannot fail.
    fn put(raw: &impl Message, to: &mut Vec<u8>) {
        raw.encode_raw(to);
    }
    match record {
        Record::Began { fence, time, process, program } => {
            put(&RawBegan { fence: *fence, time: time.0, process: *process, program: program.clone() }, to);
            BEGAN
        }
        Record::Item(item) => {
            put(&raw_item(item), to);
            ITEM
        }
        Record::Sample(sample) => {
            let progress = Some(raw_progress(&sample.progress));
            let (source, destination) = (sample.source.map(raw_counts), sample.destination.map(raw_counts));
            put(&RawSample { time: sample.time.0, progress, streams: sample.streams, source, destination }, to);
            SAMPLE
        }
        Record::Event { time, kind, text, detail } => {
            let (text, detail) = (cut(text), if detail.len() > TEXT_BYTES { "{}".into() } else { detail.clone() });
            put(&RawEvent { time: time.0, kind: kind.name().into(), text, detail }, to);
            EVENT
        }
        Record::PassBegan { pair, place } => {
            put(&RawPassBegan { pair: *pair, place: place.clone() }, to);
            PASS_BEGAN
        }
        Record::Reached => {
            put(&RawReached {}, to);
            REACHED
        }
        Record::PairEnded(end) => {
            let progress = Some(raw_progress(&end.progress));
            let PairEnd { pair, of_sources, of_look, time, .. } = *end;
            put(&RawPairEnded { pair, time: time.0, progress, of_sources, of_look }, to);
            PAIR_ENDED
        }
        Record::Ended(end) => {
            let raw = RawEnded {
                time: end.time.0,
                kind: end.kind.name().into(),
                progress: Some(raw_progress(&end.progress)),
                failure: end.failure.as_ref().map(raw_failure),
                got_somewhere: end.got_somewhere,
                late: end.late,
            };
            put(&raw, to);
            ENDED
        }
    }
}

/// Whether a record may be of this kind.
pub fn is_kind(kind: u8) -> bool {
    (1..=63).contains(&kind)
}

/// Whether a record of this kind tells of an item.
pub fn is_item(kind: u8) -> bool {
    kind == ITEM
}

/// A record from its kind and body; `None` if a later version of this program has written it.
///
/// # Errors
/// If the body is none of that kind.
pub fn decode(kind: u8, body: &[u8]) -> Result<Option<Record>, ()> {
    fn get<M: Message + Default>(body: &[u8]) -> Result<M, ()> {
        M::decode(body).map_err(drop)
    }
    Ok(Some(match kind {
        BEGAN => {
            let RawBegan { fence, time, process, program } = get(body)?;
            Record::Began { fence, time: Moment(time), process, program }
        }
        ITEM => Record::Item(item(get(body)?)?),
        SAMPLE => {
            let raw: RawSample = get(body)?;
            let progress = progress(raw.progress.unwrap_or_default());
            let (source, destination) = (raw.source.map(counts), raw.destination.map(counts));
            Record::Sample(Sample { time: Moment(raw.time), progress, streams: raw.streams, source, destination })
        }
        EVENT => {
            let raw: RawEvent = get(body)?;
            let kind = EventKind::parse(&raw.kind).unwrap_or(EventKind::Note);
            Record::Event { time: Moment(raw.time), kind, text: raw.text, detail: raw.detail }
        }
        PASS_BEGAN => {
            let RawPassBegan { pair, place } = get(body)?;
            Record::PassBegan { pair, place }
        }
        REACHED => {
            let RawReached {} = get(body)?;
            Record::Reached
        }
        PAIR_ENDED => {
            let raw: RawPairEnded = get(body)?;
            let progress = progress(raw.progress.unwrap_or_default());
            let (pair, of_sources, of_look) = (raw.pair, raw.of_sources, raw.of_look);
            Record::PairEnded(PairEnd { pair, time: Moment(raw.time), progress, of_sources, of_look })
        }
        ENDED => {
            let raw: RawEnded = get(body)?;
            Record::Ended(AttemptEnd {
                time: Moment(raw.time),
                kind: EndKind::parse(&raw.kind).map_err(drop)?,
                progress: progress(raw.progress.unwrap_or_default()),
                failure: raw.failure.map(failure),
                got_somewhere: raw.got_somewhere,
                late: raw.late,
            })
        }
        _ => return Ok(None),
    }))
}

fn raw_counts(EndCounts { processor_us, storage_wait_us, retransmits }: EndCounts) -> RawEndCounts {
    RawEndCounts { processor_us, storage_wait_us, retransmits }
}

fn counts(RawEndCounts { processor_us, storage_wait_us, retransmits }: RawEndCounts) -> EndCounts {
    EndCounts { processor_us, storage_wait_us, retransmits }
}

fn cut(text: &str) -> String {
    let end = (0..=TEXT_BYTES.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text[..end.unwrap_or(0)].to_owned()
}

fn raw_item(item: &Item) -> RawItem {
    RawItem {
        pair: item.pair,
        path: item.path.clone(),
        kind: item.kind.number(),
        state: match item.state {
            ItemState::Done => 1,
            ItemState::Skipped => 2,
            ItemState::Failed => 3,
        },
        size: item.size,
        digest: item.digest.map(Vec::from).unwrap_or_default(),
        failure: item.failure.as_ref().map(raw_failure),
    }
}

fn item(raw: RawItem) -> Result<Item, ()> {
    Ok(Item {
        pair: raw.pair,
        path: raw.path,
        kind: ItemKind::from_number(raw.kind).ok_or(())?,
        state: match raw.state {
            1 => ItemState::Done,
            2 => ItemState::Skipped,
            3 => ItemState::Failed,
            _ => return Err(()),
        },
        size: raw.size,
        digest: if raw.digest.is_empty() { None } else { Some(raw.digest.try_into().map_err(drop)?) },
        failure: raw.failure.map(failure),
    })
}

fn raw_failure(failure: &TaskFailure) -> RawFailure {
    RawFailure {
        code: cut(&failure.code),
        side: cut(&failure.side),
        why: cut(&failure.why),
        retryable: failure.retryable,
        hints: failure.hints.iter().take(8).map(|hint| cut(hint)).collect(),
        endpoint: failure.endpoint.as_deref().map(cut),
    }
}

fn failure(raw: RawFailure) -> TaskFailure {
    let RawFailure { code, side, why, retryable, hints, endpoint } = raw;
    TaskFailure { code, side, endpoint, why, retryable, hints }
}

fn raw_progress(progress: &Progress) -> RawProgress {
    RawProgress {
        items_total: progress.items_total,
        items_done: progress.items_done,
        items_skipped: progress.items_skipped,
        items_failed: progress.items_failed,
        scan_complete: progress.scan_complete,
        bytes_total: progress.bytes_total,
        bytes_moved: progress.bytes_moved,
        bytes_verified: progress.bytes_verified,
        bytes_skipped: progress.bytes_skipped,
        bytes_resent: progress.bytes_resent,
        faults: progress.faults,
        rate_now: progress.rates.now,
        rate_five_minutes: progress.rates.five_minutes,
        rate_all: progress.rates.all,
        eta_seconds: progress.eta_seconds,
        limited_by: progress.limited_by.as_deref().map(cut),
        items_remembered: progress.items_remembered,
        unkept: progress.unkept.clone(),
        items_lost: progress.items_lost,
        bytes_lost: progress.bytes_lost,
    }
}

fn progress(raw: RawProgress) -> Progress {
    Progress {
        items_total: raw.items_total,
        items_done: raw.items_done,
        items_skipped: raw.items_skipped,
        items_failed: raw.items_failed,
        scan_complete: raw.scan_complete,
        bytes_total: raw.bytes_total,
        bytes_moved: raw.bytes_moved,
        bytes_verified: raw.bytes_verified,
        bytes_skipped: raw.bytes_skipped,
        bytes_resent: raw.bytes_resent,
        faults: raw.faults,
        rates: Rates { now: raw.rate_now, five_minutes: raw.rate_five_minutes, all: raw.rate_all },
        eta_seconds: raw.eta_seconds,
        limited_by: raw.limited_by,
        items_remembered: raw.items_remembered,
        unkept: raw.unkept,
        items_lost: raw.items_lost,
        bytes_lost: raw.bytes_lost,
    }
}
