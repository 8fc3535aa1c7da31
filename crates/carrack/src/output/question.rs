//! A question at the terminal, answered by a line.

use std::io::{IsTerminal, Read};

use carrack_sys::standard::{self, Patient};

use super::stream;

/// More than any yes or no.
const ANSWER_BYTES_MAX: usize = 4096;

/// Whether a person is there who can be asked.
pub fn is_watched() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and answers whether it was a yes; anything else, and `is_over`, is a no.
pub fn ask(question: &str, is_over: &dyn Fn() -> bool) -> bool {
    stream::say(question);
    let answer = read_answer(is_over);
    if answer.is_none() {
        // Nobody has ended the line.
        stream::say("\n");
    }
    answer.is_some_and(|answer| is_yes(&answer))
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
    fn only_yes_is_yes() {
        for (answer, yes) in
            [("y", true), (" YES \r", true), ("", false), ("n", false), ("yep", false), ("ye s", false)]
        {
            assert_eq!(is_yes(answer.as_bytes()), yes, "{answer:?}");
        }
    }
}
