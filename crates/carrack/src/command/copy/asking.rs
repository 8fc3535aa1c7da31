//! The question at a terminal before a sync deletes much.

use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex};

use carrack_core::request::DeletionExtent;
use carrack_engine::Asker;
use carrack_engine::sync::lock;
use carrack_sys::standard::{self, Patient};

use crate::output::{Output, format, stream};

/// More than any yes or no.
const ANSWER_BYTES_MAX: usize = 4096;

/// Asks at the terminal.
pub struct TerminalAsker {
    output: Arc<Output>,
    /// The destination, as it is shown.
    place: String,
    /// There is one terminal: a session that is lost may still be asking when the next one does.
    one_at_a_time: Mutex<()>,
}

impl TerminalAsker {
    /// Of a copy that goes to this place.
    pub fn new(output: Arc<Output>, place: String) -> Self {
        Self { output, place, one_at_a_time: Mutex::default() }
    }
}

impl fmt::Debug for TerminalAsker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalAsker").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Asker for TerminalAsker {
    fn may_delete(&self, extent: &DeletionExtent, is_over: &dyn Fn() -> bool) -> bool {
        let _alone = lock(&self.one_at_a_time);
        if is_over() {
            return false;
        }
        self.output.make_room_for_a_question();
        stream::say(&question(extent, &self.place));
        let answer = read_answer(is_over);
        if answer.is_none() {
            // Nobody has ended the line.
            stream::say("\n");
        }
        answer.is_some_and(|answer| is_yes(&answer))
    }
}

fn question(extent: &DeletionExtent, place: &str) -> String {
    let DeletionExtent { items, of, bytes } = *extent;
    let items_counted = format::counted(items, "item", "items");
    let bytes = bytes.map(|bytes| format!(", {}", format::size(bytes))).unwrap_or_default();
    let (are, them) = if items == 1 { ("is", "it") } else { ("are", "them") };
    let of = format::count(of);
    format!("{items_counted} (of {of}){bytes} {are} to be deleted at {place}. Delete {them}? [y/N] ")
}

fn is_yes(answer: &[u8]) -> bool {
    let answer = answer.trim_ascii();
    [&b"y"[..], b"yes"].iter().any(|yes| answer.eq_ignore_ascii_case(yes))
}

/// A line of standard input; `None` where none came before it was over.
fn read_answer(is_over: &dyn Fn() -> bool) -> Option<Vec<u8>> {
    let mut input = Patient::new(standard::input().ok()?, is_over);
    let (mut line, mut byte) = (Vec::new(), [0]);
    // A byte at a time: what stands behind the line is for somebody else.
    while input.read(&mut byte).ok()? == 1 {
        if byte == *b"\n" {
            return Some(line);
        }
        if line.len() < ANSWER_BYTES_MAX {
            line.push(byte[0]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_names_what_goes_and_only_yes_is_yes() {
        let all = DeletionExtent { items: 1500, of: 2000, bytes: Some(1 << 20) };
        assert_eq!(
            question(&all, "host:/d"),
            "1,500 items (of 2,000), 1.0 MiB are to be deleted at host:/d. Delete them? [y/N] "
        );
        let one = DeletionExtent { items: 1, of: 1, bytes: None };
        assert_eq!(question(&one, "d"), "1 item (of 1) is to be deleted at d. Delete it? [y/N] ");
        for (answer, yes) in
            [("y", true), (" YES \r", true), ("", false), ("n", false), ("yep", false), ("ye s", false)]
        {
            assert_eq!(is_yes(answer.as_bytes()), yes, "{answer:?}");
        }
    }
}
