//! `--json`: one object a line on standard output. Keys and meanings are stable: `v` is their version,
//! `docs/json.schema.json` their schema.
//!
//! Within a version keys, types and words may be added; nothing is taken away, and nothing changes its meaning.
//!
//! Bytes are integers, times RFC 3339 in UTC. A path that is UTF-8 stands in `path`, any other in `path_b64`.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use carrack_core::attributes::AttributeKind;
use carrack_core::judgment::{ItemDifference, Judgment, LeftBecause};
use carrack_core::pace::limit::Limit;
use carrack_core::pace::packing::Compressible;
use carrack_core::pace::streams::Change;
use carrack_core::report::{
    Differences, Done, EndFacts, Event, Failure, FileDigests, Hop, ItemChange, ItemKind, ItemReport, LinkReport,
    Outcome, PathTrace, ProgramSent, Progress, RateFall, Report, SessionEnds, Side, Unkept, UnkeptAttributes,
};
use carrack_core::request::{Durability, Encrypt, Existing, MainDigest, Verify};
use carrack_core::timeline::{Fact, StepTaken};
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Map, Value, json};

use super::{format, hints, sample};

/// The version of the keys.
const VERSION: u32 = 1;

/// An object of a type, with the fields every one has.
pub fn object(kind: &str, time: SystemTime, fields: Value) -> Value {
    let mut object = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    object.insert("v".to_owned(), json!(VERSION));
    object.insert("type".to_owned(), json!(kind));
    object.insert("time".to_owned(), json!(format::rfc3339(time)));
    Value::Object(object)
}

/// An object as a line, without the line feed: its version, type and time come first.
pub fn text(object: &Value) -> String {
    const FIRST: [&str; 3] = ["v", "type", "time"];
    let Value::Object(fields) = object else { return object.to_string() };
    let first = FIRST.iter().filter_map(|name| fields.get_key_value(*name));
    let others = fields.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    let mut text = String::from("{");
    for (name, value) in first.chain(others) {
        let comma = if text.len() > 1 { "," } else { "" };
        // Writing into a string cannot fail.
        let _ = write!(text, "{comma}{}:{value}", Value::from(name.as_str()));
    }
    text.push('}');
    text
}

/// What an event is in JSON.
pub fn event(event: &Event, time: SystemTime) -> Value {
    match event {
        Event::Resolved { sources, targets, .. } => {
            object("resolved", time, json!({ "sources": sources, "targets": targets }))
        }
        Event::ProgramSent(sent) => object("program", time, program(sent)),
        Event::Linked(report) => object("link", time, link(report)),
        Event::Streams(change) => object("streams", time, streams(change)),
        Event::Note(text) => object("note", time, json!({ "message": text })),
        Event::SessionLost { failure, attempt, pause } => {
            let error = self::failure(failure);
            object(
                "session-lost",
                time,
                json!({ "error": error, "attempt": attempt, "pause_seconds": seconds(*pause) }),
            )
        }
        Event::Ends(ends) => object("ends", time, self::ends(ends)),
        // Each stream by itself would be more than everything else that is said; `--timeline` keeps it.
        Event::Sample(told) => object("sample", time, sample::value(told, false)),
        Event::StreamEnded { failure } => {
            object("stream-ended", time, json!({ "error": failure.as_ref().map(self::failure) }))
        }
        Event::RateFell(fall) => object("rate-fell", time, rate_fell(fall)),
        Event::Path { side, path } => object("path", time, self::path(*side, path)),
        Event::Step { session, taken } => object("step", time, step(*session, taken)),
        Event::Progress(counts) => object("progress", time, progress(counts)),
        // It has no line of its own: the next one of progress has what it tells.
        Event::InFlight(_) => Value::Null,
        Event::Item(report) => object("item", time, item(report)),
        Event::Changed(told) => object("itemized", time, change(told)),
    }
}

/// The way from an end to the other.
fn path(side: Side, path: &PathTrace) -> Value {
    let hop =
        |hop: &Hop| json!({ "address": hop.address, "rtt_us": hop.round_trip.map(|time| time.as_micros() as u64) });
    json!({
        "side": side.name(),
        "to": path.to,
        "hops": path.hops.iter().map(hop).collect::<Vec<_>>(),
        "reached": path.reached,
        "mtu_bytes": path.mtu_bytes,
        "is_mtu_proved": path.is_mtu_proved,
        "drops_large_packets": path.drops_large_packets,
        "why": path.why,
    })
}

/// The error that ended a command.
pub fn error(failure: &Failure, hint: Option<&str>, more: &[String], exit_code: u8, time: SystemTime) -> Value {
    let mut fields = self::failure(failure);
    fields["exit_code"] = json!(exit_code);
    let all: Vec<&str> = hint.into_iter().chain(more.iter().map(String::as_str)).collect();
    if !all.is_empty() {
        fields["hints"] = json!(all);
    }
    object("error", time, fields)
}

/// The last line of a copy.
pub fn summary(report: &Report, dry_run: bool, exit_code: u8, time: SystemTime) -> Value {
    let failures: Vec<Value> =
        report.failures.iter().map(|item| with_path(self::failure(&item.failure), &item.path)).collect();
    let mut fields = json!({
        "verb": "copy",
        "dry_run": dry_run,
        "exit_code": exit_code,
        "files_verified": files_verified(report),
        "existing": report.existing.map(Existing::name),
        "failures": failures,
        "elapsed_seconds": seconds(report.elapsed),
        "moving_seconds": seconds(report.moving),
        "bytes_per_second": format::per_second(report.counts.bytes, report.moving).map(|rate| rate as u64),
        "link": report.link.as_ref().map(link),
        "verify": report.verify.map(Verify::name),
        "digest": report.digest.map(MainDigest::name),
        "encrypt": report.encrypt.map(Encrypt::name),
        "compress": report.compress.map(Compressible::name),
        "faults": numbers(report.faults.named()),
        "limited_by": report.limit.map(|limit| limited_by(limit, report)),
        "unkept": {
            "permissions": report.unkept_permissions.as_ref().map(|unkept| self::unkept(unkept, |mode| json!(format!("{mode:04o}")))),
            "times": report.unkept_times.as_ref().map(|unkept| {
                self::unkept(unkept, |time| json!(format::rfc3339_nanos(time.seconds, time.nanos)))
            }),
            "attributes": report.unkept_attributes.as_ref().map(unkept_attributes),
            "directories": {
                "count": report.unkept_directories.count,
                "paths": paths(&report.unkept_directories.paths),
            },
        },
        "unfinished": {
            "count": report.unfinished.count,
            "paths": paths(&report.unfinished.paths),
        },
        "undeleted": report.undeleted.as_ref().map(failure),
        "durability": report.durability.map(Durability::name),
        "durable": report.durable,
        "error": report.error.as_ref().map(failure),
    });
    for (name, number) in report.counts.named().chain(report.at_destination.named()) {
        debug_assert!(fields.get(name).is_none(), "two values of {name}");
        fields[name] = json!(number);
    }
    object("summary", time, fields)
}

/// A group of numbers as an object.
fn numbers(named: impl Iterator<Item = (&'static str, u64)>) -> Value {
    named.map(|(name, number)| (name.to_owned(), json!(number))).collect::<Map<_, _>>().into()
}

/// Files that were compared by their digests: none of those that were left as they are.
fn files_verified(report: &Report) -> u64 {
    if report.verify.is_some_and(|verify| verify != Verify::None) {
        report.counts.files.saturating_sub(report.counts.files_shared)
    } else {
        0
    }
}

/// How many items did not keep something, and the first of them.
fn unkept<T>(unkept: &Unkept<T>, shown: impl Fn(&T) -> Value) -> Value {
    let fields = json!({ "count": unkept.count, "wanted": shown(&unkept.wanted), "kept": shown(&unkept.kept) });
    with_path(fields, &unkept.path)
}

fn paths(paths: &[Vec<u8>]) -> Vec<Value> {
    paths.iter().map(|path| with_path(json!({}), path)).collect()
}

/// How many items had attributes that were not kept, the first of them, the numbers of the kinds, and how many items
/// each kind stands for.
fn unkept_attributes(unkept: &UnkeptAttributes) -> Value {
    let kinds: Vec<u16> = unkept.kinds.keys().map(|kind| kind.0).collect();
    let name = |kind: &AttributeKind| kind.name().map_or_else(|| kind.0.to_string(), ToOwned::to_owned);
    let counted = unkept.kinds.iter().filter(|(_, items)| **items > 0);
    let counts: Map<String, Value> = counted.map(|(kind, items)| (name(kind), json!(items))).collect();
    with_path(json!({ "count": unkept.count, "kinds": kinds, "counts": counts }), &unkept.path)
}

/// A failure's fields: its text, what to try, and the parts that the text is made of, as far as they are known.
pub fn failure(failure: &Failure) -> Value {
    let mut object = parts(failure);
    if let Some(hint) = hints::of(failure) {
        object["hints"] = json!([hint]);
    }
    object
}

fn parts(failure: &Failure) -> Value {
    let message = failure.message();
    let (code, side) = (failure.code, failure.side);
    let retryable = code.retryable().name();
    let mut object = json!({ "code": code.name(), "side": side.name(), "message": message, "retryable": retryable });
    // Where it is not the whole text.
    if failure.why != message {
        object["why"] = json!(failure.why);
    }
    if let Some(reason) = failure.reason {
        object["reason"] = json!(reason.name());
    }
    if let Some(call) = &failure.call {
        object["call"] = json!(call);
    }
    if let Some(at) = &failure.at {
        let mut place = json!({});
        if let Some(end) = &at.end {
            place["end"] = json!(end);
        }
        if let Some(offset) = at.offset {
            place["offset"] = json!(offset);
        }
        object["at"] = match &at.path {
            Some(path) => with_path(place, path),
            None => place,
        };
    }
    if let Some(source) = &failure.source {
        object["source"] = parts(source);
    }
    object
}

/// Adds a path to an object.
pub fn with_path(mut object: Value, path: &[u8]) -> Value {
    match std::str::from_utf8(path) {
        Ok(path) => object["path"] = json!(path),
        Err(_) => object["path_b64"] = json!(BASE64.encode(path)),
    }
    object
}

/// Adds what a link says to an object.
pub fn with_link_target(mut object: Value, target: &[u8]) -> Value {
    match std::str::from_utf8(target) {
        Ok(target) => object["link_target"] = json!(target),
        Err(_) => object["link_target_b64"] = json!(BASE64.encode(target)),
    }
    object
}

/// Adds the digests that were computed to an object, as the tools of each print them.
pub fn with_digests(mut object: Value, digests: &FileDigests) -> Value {
    if let Some(blake3) = digests.blake3 {
        object["blake3"] = json!(HEXLOWER.encode(&blake3));
    }
    if let Some(xxh128) = digests.xxh128 {
        object["xxh128"] = json!(HEXLOWER.encode(&xxh128));
    }
    if let Some(adler32) = digests.adler32 {
        object["adler32"] = json!(format!("{adler32:08x}"));
    }
    if let Some(crc32c) = digests.crc32c {
        object["crc32c"] = json!(format!("{crc32c:08x}"));
    }
    object
}

/// The fields of what a host was sent.
pub fn program(sent: &ProgramSent) -> Value {
    json!({
        "host": sent.host,
        "program": if sent.slim { "slim" } else { "itself" },
        "bytes": sent.bytes,
        "size": sent.size,
        "compressed": sent.compressed,
    })
}

fn link(report: &LinkReport) -> Value {
    json!({
        "kind": report.kind.name(),
        "address": report.address,
        "streams": report.streams,
        "streams_from": report.streams_from.name(),
        "cipher": report.cipher,
    })
}

fn streams(change: &Change) -> Value {
    json!({
        "streams": change.streams,
        "before": change.before,
        "bytes_per_second": change.rate as u64,
        "loss": change.loss,
        "reason": change.reason.name(),
    })
}

fn limit(limit: Limit) -> Value {
    json!({ "stage": limit.stage.name(), "share": limit.share })
}

/// What held a copy back, with what the kernels say of it and what held it back most after that.
fn limited_by(limit: Limit, report: &Report) -> Value {
    let mut object = self::limit(limit);
    match report.limit_fact {
        Some(Fact::Resent(share)) => object["resent_share"] = json!(share),
        Some(Fact::RoundTripUs(us)) => object["round_trip_us"] = json!(us),
        Some(Fact::WindowBytes(bytes)) => object["window_bytes"] = json!(bytes),
        Some(Fact::Starved(share)) => object["starved_share"] = json!(share),
        None => {}
    }
    if let Some(next) = report.limit_next {
        object["next"] = self::limit(next);
    }
    object
}

fn rate_fell(fall: &RateFall) -> Value {
    json!({
        "bytes_per_second": fall.rate as u64,
        "before": fall.usual as u64,
        "over_seconds": seconds(fall.over),
        "limited_by": fall.limit.map(limit),
    })
}

fn step(session: u32, taken: &StepTaken) -> Value {
    json!({
        "session": session,
        "side": taken.side.name(),
        "step": taken.step.name(),
        "at_us": taken.at_us,
        "error_us": taken.error_us,
        "took_us": taken.took_us,
        "round_trips": taken.round_trips(),
    })
}

fn ends(ends: &SessionEnds) -> Value {
    let end = |facts: &EndFacts| {
        json!({
            "name": facts.name,
            "program": facts.program,
            "protocol": facts.protocol,
            "system": facts.system,
            "processors": facts.processors,
            "congestion": facts.congestion,
        })
    };
    json!({ "session": ends.session, "source": end(&ends.source), "destination": end(&ends.destination) })
}

fn progress(counts: &Progress) -> Value {
    json!({
        "files_done": counts.files_done,
        "bytes_done": counts.bytes_done,
        "files_found": counts.files_found,
        "bytes_found": counts.bytes_found,
        "scan_complete": counts.scan_complete,
        "files_failed": counts.files_failed,
    })
}

fn item(report: &ItemReport) -> Value {
    let (outcome, error) = match &report.outcome {
        Outcome::Published => ("published", None),
        Outcome::Kept => ("kept", None),
        Outcome::Same => ("same", None),
        Outcome::Planned => ("planned", None),
        Outcome::Deleted => ("deleted", None),
        Outcome::ToDelete => ("to-delete", None),
        Outcome::Failed(error) => ("failed", Some(failure(error))),
    };
    let mut fields = json!({ "kind": report.kind.name(), "size": report.size, "outcome": outcome });
    if let Some(judgment) = report.judgment {
        fields["compared"] = json!(compared(judgment));
    }
    if let Some(error) = error {
        fields["error"] = error;
    }
    with_digests(with_path(fields, &report.path), &report.digests)
}

fn change(change: &ItemChange) -> Value {
    let (word, differs) = match change.done {
        Done::Created => ("created", None),
        Done::Replaced(differs) => ("replaced", Some(differs)),
        Done::Set(differs) => ("attributes-set", Some(differs)),
        Done::Deleted => ("deleted", None),
        Done::Linked => ("linked", None),
        Done::Renamed => ("renamed", None),
        Done::Copied(differs) => ("copied-there", Some(differs)),
    };
    let mut fields = json!({ "kind": change.kind.name(), "size": change.size, "change": word });
    if let Some(differs) = differs {
        let Differences { content, size, time, permissions, time_is_of_writing: _, owner, group, acl, xattrs } =
            differs;
        let attributes = [(permissions, "permissions"), (owner, "owner"), (group, "group")];
        let listed = [(acl, "acl"), (xattrs, "extended-attributes")];
        let parts = [(content, "content"), (size, "size"), (time, "time")].into_iter().chain(attributes).chain(listed);
        fields["differs"] = parts.filter(|part| part.0).map(|part| part.1).collect();
    }
    if change.kind == ItemKind::Symlink && change.done != Done::Deleted && !change.is_further_name() {
        fields = with_link_target(fields, &change.leads_to);
    }
    if change.done == Done::Renamed {
        match std::str::from_utf8(&change.leads_to) {
            Ok(old) => fields["renamed_from"] = json!(old),
            Err(_) => fields["renamed_from_b64"] = json!(BASE64.encode(&change.leads_to)),
        }
    }
    if change.is_further_name() {
        match std::str::from_utf8(&change.leads_to) {
            Ok(first) => fields["hard_link"] = json!(first),
            Err(_) => fields["hard_link_b64"] = json!(BASE64.encode(&change.leads_to)),
        }
    }
    with_digests(with_path(fields, &change.path), &change.digests)
}

/// How an item compared with what the destination had.
fn compared(judgment: Judgment) -> Vec<&'static str> {
    match judgment {
        Judgment::New => vec!["new"],
        Judgment::Same => vec!["same"],
        Judgment::Undecided | Judgment::Sampled => vec!["content"],
        Judgment::Left(LeftBecause::Exists) => vec!["exists"],
        Judgment::Left(LeftBecause::Absent) => vec!["absent"],
        Judgment::Left(LeftBecause::Newer) => vec!["newer"],
        Judgment::Differs(difference) | Judgment::Chunked(difference) => {
            let ItemDifference { kind, size, time } = difference;
            let parts = [(kind, "kind"), (size, "size"), (time, "time")];
            parts.into_iter().filter(|part| part.0).map(|part| part.1).collect()
        }
    }
}

/// Seconds with microseconds: more digits would be noise.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::pace::streams::Reason;
    use carrack_core::report::{Counts, ErrorCode, ItemFailure, StreamsFrom};
    use carrack_core::request::LinkKind;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn refused() -> Failure {
        Failure::new(ErrorCode::PermissionDenied, Side::Source, "no")
    }

    fn published(path: &[u8], outcome: Outcome) -> Event {
        let digests = FileDigests { blake3: Some([1; 32]), adler32: Some(0xab), ..FileDigests::default() };
        Event::Item(ItemReport { path: path.to_vec(), kind: ItemKind::File, size: 5, digests, judgment: None, outcome })
    }

    fn changed(path: &[u8], kind: ItemKind, done: Done) -> Event {
        let (path, leads_to, digests) = (path.to_vec(), b"\xff".to_vec(), FileDigests::default());
        Event::Changed(ItemChange { path, kind, size: 0, mtime: None, leads_to, digests, done })
    }

    #[test]
    fn events() {
        let link = LinkReport {
            kind: LinkKind::Direct,
            address: "h:1".into(),
            from: None,
            streams: 4,
            streams_from: StreamsFrom::Kept,
            cipher: "C".into(),
        };
        let cases = [
            (
                Event::Resolved { sources: vec!["a".into()], targets: vec!["b/a".into()], directory: None },
                json!({"type": "resolved", "sources": ["a"], "targets": ["b/a"]}),
            ),
            (
                Event::Linked(link),
                json!({
                    "type": "link", "kind": "direct", "address": "h:1", "streams": 4, "streams_from": "kept",
                    "cipher": "C",
                }),
            ),
            (
                Event::ProgramSent(ProgramSent { host: "h".into(), slim: true, bytes: 4, size: 9, compressed: true }),
                json!({"type": "program", "host": "h", "program": "slim", "bytes": 4, "size": 9, "compressed": true}),
            ),
            (Event::Note("n".into()), json!({"type": "note", "message": "n"})),
            (
                Event::Streams(Change { streams: 4, before: 2, rate: 1e6, loss: 0.25, reason: Reason::TryMore }),
                json!({"type": "streams", "streams": 4, "before": 2, "bytes_per_second": 1_000_000, "loss": 0.25, "reason": "try-more"}),
            ),
            (
                Event::SessionLost { failure: refused(), attempt: 2, pause: Duration::from_millis(1500) },
                json!({"type": "session-lost", "attempt": 2, "pause_seconds": 1.5,
                       "error": {"code": "permission-denied", "side": "source", "message": "no", "retryable": "no"}}),
            ),
            (
                Event::Progress(Progress { bytes_done: u64::MAX, ..Progress::default() }),
                json!({"type": "progress", "files_done": 0, "bytes_done": u64::MAX, "files_found": 0,
                       "bytes_found": 0, "scan_complete": false, "files_failed": 0}),
            ),
            (
                published(b"a\n\"b", Outcome::Published),
                json!({"type": "item", "path": "a\n\"b", "kind": "file", "size": 5, "outcome": "published",
                       "blake3": "01".repeat(32), "adler32": "000000ab"}),
            ),
            (
                published(b"\xff\xfe", Outcome::Failed(refused())),
                json!({"type": "item", "path_b64": "//4=", "kind": "file", "size": 5, "outcome": "failed",
                       "error": {"code": "permission-denied", "side": "source", "message": "no", "retryable": "no"},
                       "blake3": "01".repeat(32), "adler32": "000000ab"}),
            ),
        ];
        assert_told(cases);
    }

    #[test]
    fn changes() {
        let said = Differences { content: true, ..Differences::default() };
        assert_told([
            (
                changed(b"d", ItemKind::Directory, Done::Deleted),
                json!({"type": "itemized", "path": "d", "kind": "directory", "size": 0, "change": "deleted"}),
            ),
            (
                changed(b"l", ItemKind::Symlink, Done::Replaced(said)),
                json!({"type": "itemized", "path": "l", "kind": "symlink", "size": 0, "change": "replaced",
                       "differs": ["content"], "link_target_b64": "/w=="}),
            ),
        ]);
    }

    /// Each event is this object, in one line that begins with what every line has.
    fn assert_told(cases: impl IntoIterator<Item = (Event, Value)>) {
        for (told, mut expected) in cases {
            expected["v"] = json!(1);
            expected["time"] = json!("1970-01-01T00:00:00.000Z");
            let value = event(&told, NOW);
            assert_eq!(value, expected);
            let line = text(&value);
            assert!(!line.contains('\n'), "one line");
            let start = format!("{{\"v\":1,\"type\":{},\"time\":\"1970", expected["type"]);
            assert!(line.starts_with(&start), "{line}");
            assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), expected);
        }
    }

    #[test]
    fn summary_has_every_count() {
        let report = Report {
            counts: Counts { files: 2, bytes: 1000, files_failed: 1, ..Counts::default() },
            moving: Duration::from_millis(500),
            failures: vec![ItemFailure { path: b"x".to_vec(), failure: refused() }],
            verify: Some(Verify::Wire),
            digest: Some(MainDigest::Xxh128),
            encrypt: Some(Encrypt::Tls),
            ..Report::default()
        };
        let value = summary(&report, false, 23, NOW);
        assert_eq!(value["type"], "summary");
        assert_eq!(value["exit_code"], 23);
        assert_eq!(value["bytes_per_second"], 2000);
        assert_eq!(value["moving_seconds"], 0.5);
        assert_eq!(value["verify"], "wire");
        assert_eq!(value["digest"], "xxh128");
        assert_eq!(value["failures"][0]["path"], "x");
        assert_eq!(value["failures"][0]["code"], "permission-denied");
        assert_eq!(value["error"], Value::Null);
        assert_eq!(value["link"], Value::Null);
    }

    #[test]
    fn errors_carry_hints_and_the_exit_code() {
        let value = error(&refused(), None, &["try".to_owned()], 11, NOW);
        assert_eq!(value["type"], "error");
        assert_eq!(value["exit_code"], 11);
        assert_eq!(value["hints"], json!(["try"]));
    }
}
