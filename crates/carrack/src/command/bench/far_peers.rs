//! `carrack bench peers` between two other hosts, seen from here: the programs are started at the first, by this
//! program, which must be installed there (`peers_part`). What is measured there is told here, a line each.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::SshHost;
use carrack_core::path::display_bytes;
use carrack_core::request::{Push, Reach};
use carrack_engine::{Context, FarPart, io_failure, system_failure, threads};
use carrack_measure::result::{Measurement, Row, Warning};
use carrack_sys::sync::lock;
use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::bench::document;
use crate::bench::ladder::{TellRow, incomplete};
use crate::crowd::far::next_line;

/// What the program is called with at the first host.
pub const VERB: &str = "agent --part peers";
/// What is measured.
const KIND: &str = "peers";
const GLANCE: Duration = Duration::from_millis(100);
/// How long the first host may take to remove what it has made, once it is told to stop.
const END: Duration = Duration::from_secs(30);

/// Has the first host measure. `words` are those of the verb there.
///
/// # Errors
/// Why nothing was measured.
pub fn measure_at(
    host: &SshHost,
    words: &[OsString],
    reach: &Reach,
    context: &Context,
    tell: &mut dyn TellRow,
) -> Result<(Measurement, Option<Failure>), Failure> {
    let (noter, notes) = channel();
    let noter = Mutex::new(noter);
    let note: Arc<dyn Fn(String) + Send + Sync> = Arc::new(move |text| drop(lock(&noter).send(text)));
    // What is sent to hosts without Carrack does not measure.
    let reach = Reach { push: Push::Never, ..reach.clone() };
    let part = FarPart::start(VERB, host, &reach, &context.stop, &note);
    let FarPart { input, mut output, session: _session, .. } = part?;
    let mut input = Some(input);
    let order = json!({ "words": words.iter().map(|word| BASE64.encode(word.as_bytes())).collect::<Vec<_>>() });
    let written = input.as_mut().map_or(Ok(()), |input| input.write_all(format!("{order}\n").as_bytes()));
    written.map_err(|error| io_failure(Side::Command, format!("tell {host} what to measure"), &error))?;
    let (teller, told) = channel();
    let read = move || {
        while let Some(line) = next_line(&mut output) {
            if teller.send(line).is_err() {
                return;
            }
        }
    };
    threads::start("what the first host tells", read).map_err(|error| system_failure(Side::Command, &error))?;
    let mut stopped: Option<(Failure, Instant)> = None;
    let mut rows = TellKeeping { rows: Vec::new(), tell };
    let (began, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    loop {
        notes.try_iter().for_each(|text| rows.note(&text));
        if let (None, Err(why)) = (&stopped, context.stop.check()) {
            // The end of its input is its sign to end.
            drop(input.take());
            stopped = Some((why, Instant::now() + END));
        }
        match told.recv_timeout(GLANCE) {
            Ok(line) => {
                if let Some(ended) = take(&line, host, &mut rows) {
                    let (mut measured, failure) = ended?;
                    // Results are kept by this host's clock.
                    measured.started = started;
                    return Ok((measured, stopped.map(|(why, _)| why).or(failure)));
                }
            }
            Err(RecvTimeoutError::Timeout) if stopped.as_ref().is_none_or(|(_, end)| Instant::now() < *end) => {}
            Err(_) => {
                let lost = || failed(ErrorCode::ConnectionLost, format!("{host}: the connection to it was lost"));
                let why = stopped.map_or_else(lost, |(why, _)| why);
                if rows.rows.is_empty() {
                    return Err(why);
                }
                rows.note("A and B may have a hidden directory left, .carrack-ladder-…; the next measurement there removes it");
                let measured = Measurement {
                    kind: KIND.to_owned(),
                    started,
                    elapsed: began.elapsed(),
                    warnings: vec![incomplete(&why)],
                    rows: rows.rows,
                    ..Measurement::default()
                };
                return Ok((measured, Some(why)));
            }
        }
    }
}

/// Keeps the rows that are told: all that is left of a host that goes away.
struct TellKeeping<'a> {
    rows: Vec<Row>,
    tell: &'a mut dyn TellRow,
}

impl TellRow for TellKeeping<'_> {
    fn row(&mut self, row: &Row) {
        self.rows.push(row.clone());
        self.tell.row(row);
    }

    fn warning(&mut self, warning: &Warning) {
        self.tell.warning(warning);
    }

    fn note(&mut self, text: &str) {
        self.tell.note(text);
    }
}

/// One line; the end of all, if it is that.
fn take(
    line: &Value,
    host: &SshHost,
    tell: &mut dyn TellRow,
) -> Option<Result<(Measurement, Option<Failure>), Failure>> {
    let text = |value: &Value| value.as_str().map(|text| display_bytes(text.as_bytes()).to_string());
    let fault = |value: &Value| {
        let code = value["code"]
            .as_u64()
            .and_then(|code| code.try_into().ok())
            .map_or(ErrorCode::Other, ErrorCode::from_number);
        Some(failed(code, format!("{host}: {}", text(&value["text"])?)))
    };
    if let Ok(row) = document::row_from(&line["row"]) {
        tell.row(&row);
    } else if let Some(note) = text(&line["note"]) {
        tell.note(&format!("{host}: {note}"));
    } else if let (Some(word), Some(warning)) = (text(&line["warning"]["word"]), text(&line["warning"]["text"])) {
        tell.warning(&Warning { word, text: format!("{host}: {warning}") });
    } else if let Some(why) = fault(&line["refused"]) {
        return Some(Err(why));
    } else if line["measured"].is_object() {
        let measured = document::from_json(&line["measured"]).and_then(|measured| match measured.kind.as_str() {
            KIND => Ok(measured),
            _ => Err("it is of another kind".to_owned()),
        });
        let measured =
            measured.map_err(|why| failed(ErrorCode::ProtocolViolation, format!("{host}: its result: {why}")));
        return Some(measured.map(|measured| (measured, fault(&line["failed"]))));
    }
    None
}

fn failed(code: ErrorCode, why: String) -> Failure {
    Failure::new(code, Side::Command, why)
}
