//! What the core and the system calls promise.

use super::{CORE, DISK, Mutation, SIMULATION, SYS, TOKEN, mutation};

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "an idle stream asks for ever while the scan goes on and another stream is late",
        "crates/carrack-core/src/transfer/sender/work.rs",
        [".filter(|_| self.phase != SenderPhase::Scanning);", ";"],
        "-p carrack-core --lib idle_stream_waits",
    ),
    mutation(
        "elements of lists are not counted before they are decoded",
        "crates/carrack-core/src/wire/fields.rs",
        ["if count > most.fields {", "if count > most.fields && bytes.is_empty() {"],
        CORE,
    ),
    mutation(
        "failures that led to one another have no bound",
        "crates/carrack-core/src/wire/values.rs",
        ["parts.source.filter(|_| depth < limits::FAILURE_SOURCES)", "parts.source.filter(|_| depth < usize::MAX)"],
        CORE,
    ),
    mutation(
        "the answer to a bundle is as long as its failures",
        "crates/carrack-core/src/transfer/receiver.rs",
        ["            shorten_failures(&mut exceptions);\n", ""],
        "-p carrack-core --lib transfer::hostile::receiver",
    ),
    mutation(
        "a stream that waits for the rate limit is called slow",
        "crates/carrack-core/src/transfer/sender/streams.rs",
        [" + self.limited(unit))", ")"],
        "-p carrack-core --lib transfer::hostile::sender",
    ),
    mutation(
        "a part file counts as it was left once, though more was written to it",
        "crates/carrack-core/src/transfer/marker/replay.rs",
        ["                left.identity = None;\n", ""],
        "-p carrack-core --lib transfer::marker",
    ),
    mutation(
        "a block's digest is not compared",
        "crates/carrack-core/src/transfer/receiver/blocks.rs",
        ["if self.options.digests.main.is_some() && ours.main != trailer.digest.main {", "if ours.main.is_empty() {"],
        CORE,
    ),
    mutation(
        "the second reading of a source is not compared",
        "crates/carrack-core/src/transfer/sender.rs",
        ["if second != first => self.abandon", "if second != first && id.0 == 0 => self.abandon"],
        "-p carrack-core --lib transfer::hostile::read_twice",
    ),
    mutation(
        "a block that goes again need not be what the second reading saw",
        "crates/carrack-core/src/transfer/receiver/incoming.rs",
        [
            ".filter(|digests| digests.main() == theirs)",
            ".filter(|digests| digests.main().is_some() == theirs.is_some())",
        ],
        "-p carrack-core --lib transfer::hostile::read_twice",
    ),
    mutation(
        "a terminal keeps whoever writes to it waiting",
        "crates/carrack-sys/src/standard.rs",
        ["let flags = mode | OFlags::NONBLOCK | OFlags::NOCTTY", "let flags = mode | OFlags::NOCTTY"],
        "-p carrack --test system output::terminal_that",
    ),
    mutation(
        "the marker's checksums are not looked at",
        "crates/carrack-core/src/transfer/marker/replay.rs",
        ["if sum.to_le_bytes() == crc { decode(", "if sum.to_le_bytes().len() == crc.len() { decode("],
        CORE,
    ),
    mutation(
        "a held block counts without being compared",
        "crates/carrack-core/src/transfer/sender/offered.rs",
        ["if claim.as_file(self.wanted) != digest.as_file(self.wanted) {", "if claim.main.is_empty() {"],
        SIMULATION,
    ),
    mutation(
        "blocks that are missing do not matter",
        "crates/carrack-core/src/transfer/ranges.rs",
        ["self.count == end && (end == 0 || self.by_start.get(&0) == Some(&end))", "self.count <= end"],
        SIMULATION,
    ),
    mutation(
        "a path may lead up",
        "crates/carrack-core/src/path.rs",
        ["b\".\" | b\"..\" => Err(PathError::Dots),", "b\"..\" if name.is_empty() => Err(PathError::Dots),"],
        CORE,
    ),
    mutation(
        "a path may be absolute",
        "crates/carrack-core/src/path.rs",
        ["if path[0] == b'/' {", "if path[0] == 0xff {"],
        CORE,
    ),
    mutation(
        "a link that is looked through may lead above the root",
        "crates/carrack-sys/src/dir/beneath.rs",
        ["self.done.pop().ok_or(Errno::XDEV)?;", "self.done.pop();"],
        SYS,
    ),
    mutation(
        "the kernel may resolve out of a directory",
        "crates/carrack-sys/src/dir/beneath.rs",
        ["ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS", "ResolveFlags::NO_MAGICLINKS"],
        SYS,
    ),
    mutation(
        "links are followed below a destination",
        "crates/carrack-sys/src/dir/beneath.rs",
        ["Links::Refuse => confined | ResolveFlags::NO_SYMLINKS,", "Links::Refuse => confined,"],
        SYS,
    ),
    mutation(
        "an offset may wrap",
        "crates/carrack-sys/src/file.rs",
        ["let sum = offset.checked_add(by as u64);", "let sum = Some(offset.wrapping_add(by as u64));"],
        SYS,
    ),
    mutation(
        "a short write is taken for a whole one",
        "crates/carrack-sys/src/file.rs",
        [
            "Ok(count) => written += count,\n            Err(error) if",
            "Ok(_) => written = bytes.len(),\n            Err(error) if",
        ],
        DISK,
    ),
    mutation(
        "a file's sync fails and nobody cares",
        "crates/carrack-sys/src/file.rs",
        ["    file.sync_data()\n}", "    let _ = file.sync_data();\n    Ok(())\n}"],
        DISK,
    ),
    mutation(
        "a secret is read through a link",
        "crates/carrack-sys/src/file.rs",
        [
            "OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK",
            "OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK",
        ],
        TOKEN,
    ),
    mutation(
        "an attribute may come twice",
        "crates/carrack-core/src/attributes.rs",
        ["|one, next| one.kind < next.kind", "|one, next| one.kind <= next.kind"],
        "-p carrack-core --lib attributes::",
    ),
    mutation(
        "a standard stream that was closed counts as open",
        "crates/carrack-sys/src/standard.rs",
        ["CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);", "CLOSED.fetch_or(0, Ordering::Relaxed);"],
        SYS,
    ),
    mutation(
        "whoever does not read is waited for without asking",
        "crates/carrack-sys/src/standard.rs",
        [
            "if ready.read || ready.write {\n                return Ok(());",
            "if ready.read || !read {\n                return Ok(());",
        ],
        SYS,
    ),
    mutation(
        "characters that are not seen are shown",
        "crates/carrack-core/src/path.rs",
        [" || is_invisible(character)\n", " || is_invisible('a')\n"],
        "-p carrack-core --lib path::",
    ),
    mutation(
        "the scan goes on though nobody takes what is told of items",
        "crates/carrack-core/src/transfer/sender.rs",
        ["&& self.report_bytes < limits::REPORT_BYTES_WAITING", "&& self.report_bytes < usize::MAX"],
        "-p carrack-core --lib scan_waits_until",
    ),
    mutation(
        "a stream within one process is cut off",
        "crates/carrack-core/src/transfer/sender/streams.rs",
        ["        self.kept = true;\n", "        self.kept = false;\n"],
        "-p carrack-core --lib transfer::hostile",
    ),
    mutation(
        "parking: a stream that was lost is woken",
        "crates/carrack-core/src/transfer/sender/streams.rs",
        [
            ".filter(|stream| stream.alive && stream.retiring).take(count);",
            ".filter(|stream| stream.retiring).take(count);",
        ],
        "-p carrack-core --lib hostile::retired",
    ),
    mutation(
        "parking: a stream that was woken keeps its first minute",
        "crates/carrack-core/src/transfer/sender/streams.rs",
        [
            "chosen.map(|stream| (stream.retiring, stream.parked_until) = (false, None)).count()",
            "chosen.map(|stream| stream.retiring = false).count()",
        ],
        "-p carrack-core --lib hostile::retired",
    ),
    mutation(
        "anchor: a rate of long ago holds a step down back",
        "crates/carrack-core/src/pace/streams/anchor.rs",
        [
            "let recent = self.means.iter().filter(|(at, _)| now <= at.saturating_add(KEPT));",
            "let recent = self.means.iter().filter(|(at, _)| *at <= at.saturating_add(now));",
        ],
        "-p carrack-core --lib anchor",
    ),
    mutation(
        "anchor: its means have no bound",
        "crates/carrack-core/src/pace/streams/anchor.rs",
        ["if self.means.len() == MEANS {", "if self.means.len() == 10 * MEANS {"],
        "-p carrack-core --lib anchor",
    ),
    mutation(
        "timeline: the latest answer of a clock is believed, however slow it was",
        "crates/carrack-core/src/timeline/clock.rs",
        ["if self.best.is_none_or(|best| error_us <= best.error_us(came_us)) {", "if came_us >= asked_us {"],
        "-p carrack-core --lib timeline::",
    ),
    mutation(
        "timeline: samples of a long copy have no bound",
        "crates/carrack-core/src/timeline/series.rs",
        [
            "while self.samples_bytes + self.room_bytes() > SAMPLES_BYTES && self.points.len() > 2 {",
            "while self.samples_bytes + self.room_bytes() > 100 * SAMPLES_BYTES && self.points.len() > 2 {",
        ],
        "-p carrack-core --lib timeline::",
    ),
    mutation(
        "timeline: what is waited for after the last byte is nobody's",
        "crates/carrack-core/src/timeline/verdict.rs",
        ["let last = last_wait(source, destination, span_us)", "let last = None"],
        "-p carrack-core --lib timeline::verdict",
    ),
    mutation(
        "timeline: steps of the start are told before both ends have told theirs",
        "crates/carrack-core/src/timeline/start.rs",
        ["let both = self.heard_source && self.heard_destination;", "let both = self.heard_source;"],
        "-p carrack-core --lib timeline::",
    ),
    mutation(
        "timeline: an end tells steps of the command",
        "crates/carrack-core/src/wire/control/tell/sample.rs",
        [".filter(|step| step.is_of_an_end())", ".filter(|step| step.number() > 0)"],
        "-p carrack-core --lib tell::sample",
    ),
];
