//! `carrack bench peers` at the first of two other hosts: what is measured here is told to the command elsewhere that
//! has started this process, a line each.

use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::os::unix::ffi::OsStringExt;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_engine::{Context, FarPart, system_failure, threads};
use carrack_measure::result::{Measurement, Row, Warning};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::peers;
use crate::bench::document;
use crate::bench::ladder::TellRow;
use crate::bench::peers::measure;
use crate::cli::flags::Flags;
use crate::crowd::client::stop;
use crate::crowd::far::next_line;

/// Measures at the first host: announces itself, and does what it is told. The end of its input ends it.
///
/// # Errors
/// When standard output cannot be written to.
pub fn run(nonce: &str, context: &Context) -> io::Result<()> {
    let mut input = BufReader::new(io::stdin());
    FarPart::announce(&mut io::stdout(), nonce)?;
    let words = next_line(&mut input).map(|order| words_of(&order)).unwrap_or_default();
    let ended = context.clone();
    // It waits for input until the process ends.
    let listen = move || {
        while next_line(&mut input).is_some() {}
        stop(&ended);
    };
    let mut lines = TellLines { context: context.clone() };
    if let Err(error) = threads::start("the end of the input", listen) {
        lines.say(&json!({ "refused": fault(&system_failure(Side::Command, &error)) }));
        return Ok(());
    }
    let last = match measured(&words, context, &mut lines) {
        Ok((measured, failure)) => {
            json!({ "measured": document::to_json(&measured), "failed": failure.as_ref().map(fault) })
        }
        Err(why) => json!({ "refused": fault(&why) }),
    };
    lines.say(&last);
    Ok(())
}

fn words_of(order: &Value) -> Vec<OsString> {
    let words = order["words"].as_array().into_iter().flatten().filter_map(Value::as_str);
    words.filter_map(|word| BASE64.decode(word.as_bytes()).ok()).map(OsString::from_vec).collect()
}

fn fault(why: &Failure) -> Value {
    json!({ "code": why.code.number(), "text": why.to_string() })
}

fn measured(
    words: &[OsString],
    context: &Context,
    tell: &mut TellLines,
) -> Result<(Measurement, Option<Failure>), Failure> {
    let usage = |why: String| Failure::new(ErrorCode::Usage, Side::Command, why);
    let line = std::iter::once(OsString::from("peers")).chain(words.iter().cloned());
    let matches = peers::command().try_get_matches_from(line).map_err(|why| usage(why.to_string()))?;
    let request = peers::request(&Flags::new(&matches, &|_| None)).map_err(|why| usage(why.to_string()))?;
    measure(&request, context, tell)
}

/// Tells in lines of JSON.
struct TellLines {
    context: Context,
}

impl TellLines {
    fn say(&mut self, line: &Value) {
        let mut out = io::stdout();
        // Nobody is there any more.
        if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
            stop(&self.context);
        }
    }
}

impl TellRow for TellLines {
    fn row(&mut self, row: &Row) {
        self.say(&json!({ "row": document::row(row) }));
    }

    fn warning(&mut self, warning: &Warning) {
        self.say(&json!({ "warning": { "word": warning.word, "text": warning.text } }));
    }

    fn note(&mut self, text: &str) {
        self.say(&json!({ "note": text }));
    }
}
