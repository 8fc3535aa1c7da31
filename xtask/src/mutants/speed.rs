//! What makes a copy faster, and must change nothing else.

use super::{HOSTILE, Mutation, mutation};

const LAST_WORD: &str = "-p carrack-core --lib transfer::hostile::last_word";
const RECEIVING: &str = "-p carrack-engine --lib transfer::receive::";

pub(super) const MUTATIONS: &[Mutation] = &[
    mutation(
        "last word: it counts although an item has failed that the sender has not heard of",
        "crates/carrack-core/src/transfer/receiver.rs",
        [
            "self.finishes_once_published = ended_otherwise == self.ended_otherwise;",
            "self.finishes_once_published = true;",
        ],
        LAST_WORD,
    ),
    mutation(
        "last word: it counts after a failure",
        "crates/carrack-core/src/transfer/receiver/answers.rs",
        ["self.finishes_once_published = false;", ""],
        LAST_WORD,
    ),
    mutation(
        "last word: the sender takes it for said after a failure",
        "crates/carrack-core/src/transfer/sender/messages.rs",
        ["self.finish_told = false;", ""],
        LAST_WORD,
    ),
    mutation(
        "last word: it is said while files are not complete",
        "crates/carrack-core/src/transfer/sender.rs",
        ["let is_whole = |item: &Offered| item.completed &&", "let is_whole = |item: &Offered|"],
        LAST_WORD,
    ),
    mutation(
        "last word: it is said although directories follow",
        "crates/carrack-core/src/transfer/sender.rs",
        ["let directories = self.directories.count() > 0 || self.contents.is_some();", "let directories = false;"],
        LAST_WORD,
    ),
    mutation(
        "last word: what a sender says of what is published ends the transfer",
        "crates/carrack-core/src/transfer/receiver/machine.rs",
        [
            "PeerMessage::Abandon { item } if self.finishes_once_published =>",
            "PeerMessage::Abandon { item } if false =>",
        ],
        LAST_WORD,
    ),
    mutation(
        "publishing: a bundle is told of before its last item has its name",
        "crates/carrack-engine/src/transfer/receive/commit.rs",
        ["AtomicUsize::new(entries.len() + 1)", "AtomicUsize::new(entries.len())"],
        RECEIVING,
    ),
    mutation(
        "publishing: threads share a directory",
        "crates/carrack-engine/src/transfer/receive/commit.rs",
        ["let directory = entry.1.directory();", "let directory = &entry.0.to_le_bytes()[..];"],
        RECEIVING,
    ),
    mutation(
        "publishing: what an item came to is not told",
        "crates/carrack-engine/src/transfer/receive/commit.rs",
        ["lock(&bundle.said).extend(exception);", "let _ = exception;"],
        RECEIVING,
    ),
    mutation(
        "turns: streams write to a file in memory at once",
        "crates/carrack-engine/src/storage/posix/turns.rs",
        ["if !self.are_taken {", "if self.are_taken {"],
        "-p carrack-engine --lib storage::posix::turns",
    ),
    mutation(
        "a file is not looked at where nobody has seen that its time is kept",
        "crates/carrack-engine/src/storage/posix/unkept.rs",
        ["&& (mtime.nanos == 0 || self.nanoseconds.load(Ordering::Relaxed))", ""],
        "-p carrack-engine --lib storage::posix::unkept",
    ),
    mutation(
        "prepared: a connection with another key is taken",
        "crates/carrack-engine/src/data/prepared.rs",
        ["if wanted != self.way {", "if wanted.address != self.way.address {"],
        "-p carrack-engine --lib data::prepared",
    ),
    mutation(
        "prepared: those that nobody wants stay open",
        "crates/carrack-engine/src/data/prepared.rs",
        ["let spare = state.made.split_off(keep);", "let spare = state.made.split_off(keep.max(state.made.len()));"],
        "-p carrack-engine --lib data::prepared",
    ),
    mutation(
        "early words: those that came first are heard last",
        "crates/carrack-engine/src/agent/begin.rs",
        ["state.early.pop_front()", "state.early.pop_back()"],
        "-p carrack-engine --test hostile order::words",
    ),
    mutation(
        "early words: any number of them may wait",
        "crates/carrack-engine/src/agent/mod.rs",
        [
            "if self.early_bytes > limits::REQUEST_BYTES_WAITING || self.early.len() >= 2 * limits::OFFERED_ITEMS {",
            "if self.early_bytes == 0 {",
        ],
        "-p carrack-engine --test hostile order::words",
    ),
    mutation(
        "far: data connections wait for the greeting",
        "crates/carrack-engine/src/copy/open.rs",
        ["ends.prepared = connect::prepare(self.request, ends, self.context);", ""],
        HOSTILE,
    ),
    mutation(
        "far: the first offer waits for the receiver's answer",
        "crates/carrack-engine/src/copy/session.rs",
        ["let ahead = early && plan.all_offered && !plan.may_clash();", "let ahead = false;"],
        HOSTILE,
    ),
    mutation(
        "short calls: one thread makes a long list of them",
        "crates/carrack-engine/src/storage/workers.rs",
        ["spread(list, || self.short, work)", "spread(list, || 1, work)"],
        "-p carrack-engine --lib storage::workers",
    ),
];
