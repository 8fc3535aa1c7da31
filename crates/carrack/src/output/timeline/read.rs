//! Reading a timeline: bounded in memory, however long the file is.

use std::fmt;
use std::io::{self, BufRead, Read};

use carrack_core::limits;
use carrack_core::report::EndSample;
use carrack_core::timeline::Timeline;
use serde_json::{Map, Value};

use crate::output::sample::{self, number};

/// A line, in bytes: a sample with as many streams as there may be has 200 KB.
const LINE_BYTES: u64 = 1 << 20;
/// What all that happened may take, in bytes of its lines; beyond, it is counted.
const EVENTS_BYTES: usize = 4 << 20;

/// What a file tells.
#[derive(Debug, Default)]
pub struct Recording {
    /// The first line.
    pub header: Map<String, Value>,
    /// What the ends measured, thinned if it was much.
    pub timeline: Timeline,
    /// What happened, in its order, and when, in microseconds since the copy began.
    pub events: Vec<Told>,
    /// How much more happened than is kept.
    pub events_left_out: u64,
    /// Samples read.
    pub samples: u64,
    /// The report; none if the copy was killed, or is still at work.
    pub summary: Option<Map<String, Value>>,
    /// The last line was cut off.
    pub is_cut: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Since the copy began, in microseconds.
    pub at_us: u64,
    /// The line's `type`.
    pub kind: String,
    /// The line.
    pub fields: Map<String, Value>,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The system says so.
    Io(io::Error),
    /// A line is not what it should be.
    Line {
        /// The first being 1.
        number: u64,
        /// For a sentence.
        why: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Line { number, why } => write!(f, "line {number}: {why}"),
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a whole file. A last line without an end, as a copy leaves it that is killed, is passed over.
///
/// # Errors
/// Those of reading, and a line that is no object, is too long, or has a field of a wrong kind. Lines of a type that is
/// not known are passed over.
pub fn read(mut input: impl BufRead) -> Result<Recording, ReadError> {
    let mut recording = Recording::default();
    let (mut line, mut events_bytes) = (Vec::new(), 0);
    for count in 1.. {
        line.clear();
        let read = (&mut input).take(LINE_BYTES).read_until(b'\n', &mut line)?;
        let wrong = |why: String| ReadError::Line { number: count, why };
        let is_whole = line.last() == Some(&b'\n');
        if !is_whole && read as u64 >= LINE_BYTES {
            return Err(wrong(format!("it has more than {LINE_BYTES} bytes")));
        }
        if !is_whole {
            recording.is_cut = read > 0;
            if count == 1 {
                return Err(wrong("it is no timeline".into()));
            }
            return Ok(recording);
        }
        let fields = match serde_json::from_slice(&line) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(wrong("it is no object".into())),
            Err(error) => return Err(wrong(format!("it is no JSON: {error}"))),
        };
        recording.take(fields, count == 1, &mut events_bytes, line.len()).map_err(wrong)?;
    }
    Ok(recording)
}

impl Recording {
    fn take(
        &mut self,
        fields: Map<String, Value>,
        is_first: bool,
        events_bytes: &mut usize,
        bytes: usize,
    ) -> Result<(), String> {
        if fields.get("v").and_then(Value::as_u64) != Some(1) {
            return Err("it is not of version 1".into());
        }
        let kind = sample::text(&fields, "type")?;
        match (&kind[..], is_first) {
            ("timeline", true) => self.header = fields,
            (_, true) => return Err("it is no timeline: the first line of one has the type timeline".into()),
            ("timeline", false) => return Err("a second timeline begins".into()),
            ("sample", _) => {
                let EndSample { side, point, .. } = sample::parse(&fields)?;
                self.samples += 1;
                self.timeline.push(side, point);
            }
            ("summary", _) => self.summary = Some(fields),
            _ => {
                let at_us = number(&fields, "at_us")?;
                *events_bytes += bytes;
                if *events_bytes > EVENTS_BYTES || self.events.len() >= limits::TIMELINE_MARKS * 4 {
                    self.events_left_out += 1;
                } else {
                    self.events.push(Told { at_us, kind, fields });
                }
            }
        }
        Ok(())
    }
}
