//! What a part tells: as it happens, and what it found at its end. One line each over ssh.
//!
//! What another host says is believed within bounds: its texts are short and drive no terminal.

use std::time::Duration;

use carrack_core::path::display_bytes;
use carrack_core::words;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::order::{ClientWay, way};

words! {
    /// How one attempt to carry a file ended, as its client saw it.
    pub enum CarryOutcome {
        Done "done" "the client was told that the file is there"
        Refused "refused" "the server did not take the connection or the session"
        Lost "lost" "the connection was lost, or the server fell silent"
        TimedOut "timed-out" "the time of the whole crowd was over"
        Failed "failed" "anything else went wrong"
        Stopped "stopped" "the user ended the crowd"
    }
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// How it ended.
    pub outcome: CarryOutcome,
    /// Why, for people; empty where there is nothing to say.
    pub why: String,
}

impl Attempt {
    /// An attempt with what is printable of why.
    pub fn new(outcome: CarryOutcome, why: &str) -> Self {
        Self { outcome, why: short(why) }
    }
}

/// What became of one file, as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCarried {
    /// The client's number.
    pub client: u32,
    /// The file's number, from 0 on.
    pub file: u32,
    /// Which way it went.
    pub way: ClientWay,
    /// Which of the different files it is.
    pub source: u32,
    /// When the client began with it, since the common start.
    pub began: Duration,
    /// When the client was done with it.
    pub ended: Duration,
    /// Its attempts in their order; none where its turn never came.
    pub attempts: Vec<Attempt>,
    /// Data connections that were lost and made again, without an attempt being lost.
    pub streams_lost: u64,
}

impl FileCarried {
    /// Whether the client was told that all went well.
    pub fn said_done(&self) -> bool {
        self.attempts.last().is_some_and(|last| last.outcome == CarryOutcome::Done)
    }
}

/// What was found of a fetched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFound {
    /// The client's number.
    pub client: u32,
    /// The file's number.
    pub file: u32,
    /// Its size in bytes, and its BLAKE3.
    pub content: (u64, [u8; 32]),
}

/// One thing that is told.
#[derive(Clone, Debug, PartialEq)]
pub enum PartTold {
    /// The files are made: the BLAKE3 of each, in their order.
    Ready(Vec<[u8; 32]>),
    /// Bytes that have come to their ends since the last such line, and clients at work.
    Progress {
        /// Since the common start; zero before it.
        at: Duration,
        /// Bytes sent, and bytes fetched.
        bytes: [u64; 2],
        /// Clients that are not done.
        active: u32,
        /// Processors of the host that were busy, as a share of all, where that is known.
        busy: Option<f64>,
    },
    /// A client is done with a file.
    FileCarried(Box<FileCarried>),
    /// All clients are done. What they fetched is looked at.
    Ended,
    /// What was found of a fetched file. Of files that are not there nothing is told.
    FileFound(FileFound),
    /// Everything is told.
    Over,
    /// The part could not begin, or go on: why.
    Failed(String),
    /// What a person should know.
    Note(String),
    /// The answer to a question of that number.
    Pong(u64),
}

/// No text of a line is longer.
const TEXT_CHARACTERS: usize = 300;
/// No list of attempts is longer: the last ones count.
const ATTEMPTS_MAX: usize = 64;

/// Text that is short and drives no terminal.
pub fn short(text: &str) -> String {
    let shown: String = display_bytes(text.trim().as_bytes()).to_string();
    // Shown twice, a backslash would be four.
    let shown = shown.replace("\\\\", "\\");
    if shown.chars().count() <= TEXT_CHARACTERS {
        return shown;
    }
    shown.chars().take(TEXT_CHARACTERS - 1).chain(['…']).collect()
}

impl PartTold {
    /// The line.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Ready(digests) => {
                json!({ "ready": digests.iter().map(|digest| HEXLOWER.encode(digest)).collect::<Vec<_>>() })
            }
            Self::Progress { at, bytes, active, busy } => {
                json!({ "progress": micros(*at), "bytes": bytes, "active": active, "busy": busy })
            }
            Self::FileCarried(carried) => json!({ "carried": carried_to_json(carried) }),
            Self::Ended => json!({ "ended": true }),
            Self::FileFound(found) => {
                let (size, digest) = found.content;
                json!({ "found": [found.client, found.file, size, HEXLOWER.encode(&digest)] })
            }
            Self::Over => json!({ "over": true }),
            Self::Failed(why) => json!({ "failed": why }),
            Self::Note(text) => json!({ "note": text }),
            Self::Pong(number) => json!({ "pong": number }),
        }
    }

    /// From its line; `None` if it is none.
    pub fn from_json(value: &Value) -> Option<Self> {
        let (name, inside) = ["ready", "progress", "carried", "ended", "found", "over", "failed", "note", "pong"]
            .into_iter()
            .find_map(|name| Some((name, value.get(name)?)))?;
        Some(match name {
            "ready" => Self::Ready(inside.as_array()?.iter().map(digest).collect::<Option<_>>()?),
            "progress" => Self::Progress {
                at: Duration::from_micros(inside.as_u64()?),
                bytes: [value["bytes"][0].as_u64()?, value["bytes"][1].as_u64()?],
                active: number(&value["active"])?,
                busy: value["busy"].as_f64(),
            },
            "carried" => Self::FileCarried(Box::new(carried_from_json(inside)?)),
            "ended" => Self::Ended,
            "found" => Self::FileFound(FileFound {
                client: number(&inside[0])?,
                file: number(&inside[1])?,
                content: (inside[2].as_u64()?, digest(&inside[3])?),
            }),
            "over" => Self::Over,
            "failed" => Self::Failed(short(inside.as_str()?)),
            "note" => Self::Note(short(inside.as_str()?)),
            _ => Self::Pong(inside.as_u64()?),
        })
    }
}

fn carried_to_json(carried: &FileCarried) -> Value {
    let skipped = carried.attempts.len().saturating_sub(ATTEMPTS_MAX);
    let attempts = carried.attempts.iter().skip(skipped);
    json!({
        "client": carried.client,
        "file": carried.file,
        "way": carried.way.name(),
        "source": carried.source,
        "began": micros(carried.began),
        "ended": micros(carried.ended),
        "attempts": attempts.map(|one| json!([one.outcome.name(), one.why])).collect::<Vec<_>>(),
        "streams_lost": carried.streams_lost,
    })
}

fn carried_from_json(value: &Value) -> Option<FileCarried> {
    let attempt = |one: &Value| {
        let outcome = CarryOutcome::ALL.iter().copied().find(|outcome| Some(outcome.name()) == one[0].as_str())?;
        Some(Attempt::new(outcome, one[1].as_str()?))
    };
    Some(FileCarried {
        client: number(&value["client"])?,
        file: number(&value["file"])?,
        way: way(value["way"].as_str()?)?,
        source: number(&value["source"])?,
        began: Duration::from_micros(value["began"].as_u64()?),
        ended: Duration::from_micros(value["ended"].as_u64()?),
        attempts: value["attempts"].as_array()?.iter().take(ATTEMPTS_MAX).map(attempt).collect::<Option<_>>()?,
        streams_lost: value["streams_lost"].as_u64()?,
    })
}

fn number(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn digest(value: &Value) -> Option<[u8; 32]> {
    HEXLOWER.decode(value.as_str()?.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let carried = FileCarried {
            client: 7,
            file: 2,
            way: ClientWay::Get,
            source: 1,
            began: Duration::from_micros(5),
            ended: Duration::from_micros(9),
            attempts: vec![Attempt::new(CarryOutcome::Refused, "no"), Attempt::new(CarryOutcome::Done, "")],
            streams_lost: 3,
        };
        let all = [
            PartTold::Ready(vec![[1; 32], [2; 32]]),
            PartTold::Progress { at: Duration::from_millis(3), bytes: [4, 5], active: 6, busy: Some(0.5) },
            PartTold::FileCarried(Box::new(carried)),
            PartTold::Ended,
            PartTold::FileFound(FileFound { client: 1, file: 2, content: (3, [4; 32]) }),
            PartTold::Over,
            PartTold::Failed("why".to_owned()),
            PartTold::Note("a note".to_owned()),
            PartTold::Pong(8),
        ];
        for told in all {
            let line = told.to_json().to_string();
            assert_eq!(PartTold::from_json(&serde_json::from_str(&line).expect("JSON")), Some(told));
        }
        for wrong in [json!({}), json!({"ready": 1}), json!({"found": [1, 2]}), json!({"carried": {}}), json!(7)] {
            assert_eq!(PartTold::from_json(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn texts_are_short_and_drive_no_terminal() {
        let line = json!({ "note": format!("\u{1b}[2J{}", "x".repeat(1000)) });
        let Some(PartTold::Note(text)) = PartTold::from_json(&line) else { panic!("a note") };
        assert!(text.starts_with("\\x1b[2Jx") && text.chars().count() == TEXT_CHARACTERS, "{text}");
        assert_eq!(short(&short("a\\b")), "a\\b");
    }
}
