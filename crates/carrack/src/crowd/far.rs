//! A part of a crowd at the far side of ssh: its order comes on standard input, and what it tells goes to standard
//! output, a line each. The end of standard input ends it, whatever it does.

use carrack_sys::sync::lock;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_engine::{Context, FarPart, threads};
use serde_json::{Value, json};

use super::client::stop;
use super::order::LoadOrder;
use super::part;
use super::told::PartTold;

/// What the program is called with to be a part.
pub const VERB: &str = "agent --part load";
/// No line of an order is longer, in bytes.
const LINE_BYTES: u64 = 4 << 20;
const GLANCE: Duration = Duration::from_millis(50);

/// The line that begins the work, so long after it is read.
pub fn go_line(after: Duration) -> Value {
    json!({ "go_us": u64::try_from(after.as_micros()).unwrap_or(u64::MAX) })
}

/// A question that is answered at once: it tells how far away the part is.
pub fn ping_line(number: u64) -> Value {
    json!({ "ping": number })
}

/// Is a part: announces itself and does what it is told.
///
/// # Errors
/// When standard output cannot be written to.
pub fn run(nonce: &str, context: &Context) -> io::Result<()> {
    let mut input = BufReader::new(io::stdin());
    FarPart::announce(&mut io::stdout(), nonce)?;
    let out = Mutex::new(io::stdout());
    let broken = context.clone();
    let tell = move |told: PartTold| {
        let line = format!("{}\n", told.to_json());
        let mut out = lock(&out);
        // Nobody is there any more.
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            stop(&broken);
        }
    };
    let tell: Arc<dyn Fn(PartTold) + Send + Sync> = Arc::new(tell);
    let Some(order) = next_line(&mut input).as_ref().and_then(LoadOrder::from_json) else {
        tell(PartTold::Failed("the order is none that this version knows".to_owned()));
        return Ok(());
    };
    let (starter, starts) = channel();
    let (heard, ended) = (Arc::clone(&tell), context.clone());
    // It waits for input until the process ends.
    let listen = move || {
        while let Some(line) = next_line(&mut input) {
            if let Some(number) = line["ping"].as_u64() {
                heard(PartTold::Pong(number));
            } else if let Some(after) = line["go_us"].as_u64() {
                let _ = starter.send(Instant::now() + Duration::from_micros(after).min(Duration::from_secs(3600)));
            }
        }
        stop(&ended);
    };
    if let Err(error) = threads::start("what is ordered", listen) {
        tell(PartTold::Failed(error.to_string()));
        return Ok(());
    }
    part::run(&order, context, &*tell, &mut || wait_for_start(&starts, context));
    Ok(())
}

/// Waits for the common start, or for the end of all.
pub fn wait_for_start(starts: &Receiver<Instant>, context: &Context) -> Option<Instant> {
    loop {
        match starts.recv_timeout(GLANCE) {
            Ok(start) => return Some(start),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if context.stop.requested().is_some() => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The next line as JSON; `None` at the end, and for what is none.
pub fn next_line(input: &mut impl BufRead) -> Option<Value> {
    let mut line = Vec::new();
    io::Read::take(&mut *input, LINE_BYTES).read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
    serde_json::from_slice(&line).ok()
}
