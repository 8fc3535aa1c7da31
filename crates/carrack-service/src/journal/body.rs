//! Records as bytes, and back. Numbers of fields and kinds keep their meaning; new ones are added at the end, and
//! readers pass over kinds that they do not know.

use carrack_core::report::ItemKind;
use prost::Message;

use super::format::{BODY_BYTES_MAX, HEAD_BYTES};
use super::record::{AttemptEnd, CheckMark, EndCounts, EndKind, Item, PairEnd, Record, Sample};
use crate::clock::Moment;
use crate::model::{EndVisit, EventKind, ItemState, Progress, TaskFailure, TaskPlan};

const BEGAN: u8 = 1;
const ITEM: u8 = 2;
const SAMPLE: u8 = 3;
const EVENT: u8 = 4;
const ENDED: u8 = 5;
const PAIR_ENDED: u8 = 6;
const PASS_BEGAN: u8 = 7;
const REACHED: u8 = 8;
const VISITED: u8 = 9;
const CHECKED: u8 = 10;

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
    failure: Option<TaskFailure>,
}

#[derive(Clone, PartialEq, Message)]
struct RawReached {}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(sint64, tag = "1")]
    time: i64,
    #[prost(message, optional, tag = "2")]
    progress: Option<Progress>,
    #[prost(uint32, tag = "3")]
    streams: u32,
    #[prost(message, optional, tag = "4")]
    source: Option<EndCounts>,
    #[prost(message, optional, tag = "5")]
    destination: Option<EndCounts>,
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
    progress: Option<Progress>,
    #[prost(message, optional, tag = "4")]
    failure: Option<TaskFailure>,
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
    progress: Option<Progress>,
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
            let progress = Some(bounded_progress(&sample.progress));
            let Sample { time, streams, source, destination, .. } = *sample;
            put(&RawSample { time: time.0, progress, streams, source, destination }, to);
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
        Record::Visited(visit) => {
            put(visit, to);
            VISITED
        }
        Record::Checked(mark) => {
            put(mark, to);
            CHECKED
        }
        Record::PairEnded(end) => {
            let progress = Some(bounded_progress(&end.progress));
            let PairEnd { pair, of_sources, of_look, time, .. } = *end;
            put(&RawPairEnded { pair, time: time.0, progress, of_sources, of_look }, to);
            PAIR_ENDED
        }
        Record::Ended(end) => {
            let raw = RawEnded {
                time: end.time.0,
                kind: end.kind.name().into(),
                progress: Some(bounded_progress(&end.progress)),
                failure: end.failure.as_ref().map(bounded_failure),
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
            let RawSample { time, progress, streams, source, destination } = raw;
            let progress = progress.unwrap_or_default();
            Record::Sample(Sample { time: Moment(time), progress, streams, source, destination })
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
        CHECKED => Record::Checked(get::<CheckMark>(body)?),
        VISITED => Record::Visited(get::<EndVisit>(body)?),
        PAIR_ENDED => {
            let raw: RawPairEnded = get(body)?;
            let progress = raw.progress.unwrap_or_default();
            let (pair, of_sources, of_look) = (raw.pair, raw.of_sources, raw.of_look);
            Record::PairEnded(PairEnd { pair, time: Moment(raw.time), progress, of_sources, of_look })
        }
        ENDED => {
            let raw: RawEnded = get(body)?;
            Record::Ended(AttemptEnd {
                time: Moment(raw.time),
                kind: EndKind::parse(&raw.kind).map_err(drop)?,
                progress: raw.progress.unwrap_or_default(),
                failure: raw.failure,
                got_somewhere: raw.got_somewhere,
                late: raw.late,
            })
        }
        _ => return Ok(None),
    }))
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
            ItemState::Deleted => 4,
            ItemState::Planned => 5,
            ItemState::ToDelete => 6,
            ItemState::Different => 7,
            ItemState::OnlySource => 8,
            ItemState::OnlyDestination => 9,
        },
        size: item.size,
        digest: item.digest.map(Vec::from).unwrap_or_default(),
        failure: item.failure.as_ref().map(bounded_failure),
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
            4 => ItemState::Deleted,
            5 => ItemState::Planned,
            6 => ItemState::ToDelete,
            7 => ItemState::Different,
            8 => ItemState::OnlySource,
            9 => ItemState::OnlyDestination,
            _ => return Err(()),
        },
        size: raw.size,
        digest: if raw.digest.is_empty() { None } else { Some(raw.digest.try_into().map_err(drop)?) },
        failure: raw.failure,
    })
}

fn bounded_failure(failure: &TaskFailure) -> TaskFailure {
    TaskFailure {
        code: cut(&failure.code),
        side: cut(&failure.side),
        why: cut(&failure.why),
        retryable: failure.retryable,
        hints: failure.hints.iter().take(8).map(|hint| cut(hint)).collect(),
        endpoint: failure.endpoint.as_deref().map(cut),
    }
}

fn bounded_progress(progress: &Progress) -> Progress {
    let bounded = |plan: &TaskPlan| TaskPlan { held_by: plan.held_by.as_deref().map(cut), ..plan.clone() };
    let plan = progress.plan.as_ref().map(bounded);
    Progress { limited_by: progress.limited_by.as_deref().map(cut), plan, ..progress.clone() }
}
