//! What the program promises.

use super::{BINARY, Mutation, TOKEN, mutation};

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "a token that was found goes to a node at a first meeting",
        "crates/carrack/src/tokens/mod.rs",
        ["        if was_pinned {\n", "        if was_pinned || !token.reveal().is_empty() {\n"],
        TOKEN,
    ),
    mutation(
        "a token that was found goes to each of several nodes",
        "crates/carrack/src/tokens/mod.rs",
        ["if of_several {", "if of_several && was_pinned && !was_pinned {"],
        TOKEN,
    ),
    mutation(
        "two nodes of a copy may share a token",
        "crates/carrack/src/command/copy/options.rs",
        ["_ => Ok(tokens::search(!are_one)),", "_ => Ok(tokens::search(false)),"],
        "-p carrack --bin carrack options",
    ),
    mutation(
        "a second name of a file is as good as its first",
        "crates/carrack/src/tokens/mod.rs",
        ["&& facts.nlink() == 1;", "&& facts.nlink() > 0;"],
        TOKEN,
    ),
    mutation(
        "a link is replaced by what a command writes",
        "crates/carrack/src/output/part_file.rs",
        [
            "        if !found.is_symlink() {\n            return Ok((path, found.is_file()));",
            "        if !found.is_dir() {\n            return Ok((path, true));",
        ],
        BINARY,
    ),
    mutation(
        "a variable may look as if it did something",
        "crates/carrack/src/cli/environment.rs",
        ["find(|arg| !takes_value(arg))", "find(|arg| !takes_value(arg) && takes_value(arg))"],
        BINARY,
    ),
    mutation(
        "output that was not taken is success",
        "crates/carrack/src/output/lines.rs",
        [
            "self.error.as_ref().map_or(Ok(()), |error| Err(stream::not_written(error)))",
            "self.error.as_ref().map_or(Ok(()), |_| Ok(()))",
        ],
        BINARY,
    ),
    mutation(
        "another host is not asked whether it has room for a ladder",
        "crates/carrack/src/bench/ladder/room.rs",
        ["if !directory.is_remote() {", "if !directory.is_remote() || number < usize::MAX {"],
        "-p carrack --test system ladder::ladder_without_room",
    ),
    mutation(
        "a ladder ends where memory that nobody asked for has no room",
        "crates/carrack/src/bench/ladder/room.rs",
        ["        if is_wanted {\n", "        if is_wanted || bytes > 0 {\n"],
        "-p carrack --bin carrack bench::ladder::room",
    ),
    mutation(
        "a ladder takes another process of its number for the one that left a directory",
        "crates/carrack/src/far_scratch.rs",
        ["Some(now) => now != owner,", "Some(now) => now.process != owner.process,"],
        "-p carrack --bin carrack far_scratch",
    ),
    mutation(
        "a ladder waits at its end for each directory of a host that is silent",
        "crates/carrack/src/far_scratch.rs",
        ["if let Some(why) = lost.why(&host) {", "if let Some(why) = lost.why(&host).filter(|_| patience.is_zero()) {"],
        "-p carrack --bin carrack far_scratch",
    ),
    mutation(
        "a row of bench net waits for ever for a sender that tells nothing",
        "crates/carrack/src/bench/net/row.rs",
        ["linked.elapsed() >= warm_up + time + LATE", "linked.elapsed() >= Duration::MAX"],
        "-p carrack --bin carrack bench::net::row",
    ),
    mutation(
        "one of two ways at once ends before the other has been seen for as long",
        "crates/carrack/src/bench/net/at_once.rs",
        ["(own.is_enough && other.is_enough)", "own.is_enough"],
        "-p carrack --bin carrack bench::net::at_once",
    ),
    mutation(
        "bytes that another program has altered are not noticed",
        "crates/carrack/src/bench/peers/data.rs",
        ["source.0 == copy.0 && source.1 != copy.1", "source.0 == copy.0 && source.1 != source.1"],
        "-p carrack --bin carrack bench::peers::data",
    ),
    mutation(
        "another program that failed counts as one that moved its data",
        "crates/carrack/src/bench/peers/run.rs",
        ["status.filter(|status| !status.success())?", "status.filter(|status| status.code().is_none())?"],
        "-p carrack --bin carrack bench::peers::run",
    ),
    mutation(
        "a crowd counts a file of other bytes as whole",
        "crates/carrack/src/bench/load/count.rs",
        ["SeenFile::File(content) if content == expected", "SeenFile::File(content) if content.0 == expected.0"],
        "-p carrack --bin carrack bench::load::count",
    ),
    mutation(
        "fan: a command goes on when nobody waits for it any more",
        "crates/carrack/src/fan/shell.rs",
        ["kill -TERM 0; sleep 2; kill -KILL 0;", "true;"],
        "-p carrack --bin carrack fan::shell",
    ),
    mutation(
        "timeline: the last sample of an end is left out",
        "crates/carrack/src/output/timeline/write.rs",
        [
            "        self.write_held()?;\n        if let Some(error) = &report.error {",
            "        if let Some(error) = &report.error {",
        ],
        "-p carrack --bin carrack output::timeline",
    ),
    mutation(
        "timeline: a line that is cut off is read",
        "crates/carrack/src/output/timeline/read.rs",
        ["let is_whole = line.last() == Some(&b'\\n');", "let is_whole = !line.is_empty();"],
        "-p carrack --bin carrack output::timeline",
    ),
    mutation(
        "timeline: a line has no bound",
        "crates/carrack/src/output/timeline/read.rs",
        [
            "let read = (&mut input).take(LINE_BYTES).read_until(b'\\n', &mut line)?;",
            "let read = (&mut input).read_until(b'\\n', &mut line)?;",
        ],
        "-p carrack --bin carrack output::timeline",
    ),
    mutation(
        "timeline: text of a file drives the terminal",
        "crates/carrack/src/output/timeline/happened.rs",
        ["    display_bytes(text.as_bytes()).to_string()", "    text.to_owned()"],
        "-p carrack --bin carrack output::timeline",
    ),
    mutation(
        "a fix changes a host before its note is kept",
        "crates/carrack/src/doctor/fix/mod.rs",
        [
            "    machine.set_note(label, Some(&state.to_json())).map_err(|error| failed(\"keep the state\", &error))?;\n",
            "    let _ = (carry_out(machine, &state), machine.set_note(label, Some(&state.to_json())));\n",
        ],
        "-p carrack --bin carrack doctor::fix",
    ),
    mutation(
        "undoing a fix sets a parameter that another one has cleared to zero",
        "crates/carrack/src/doctor/fix/mod.rs",
        ["value == \"0\" && other.is_some_and", "value == \"none\" && other.is_some_and"],
        "-p carrack --bin carrack doctor::fix",
    ),
    mutation(
        "a reader that leaves is an error that is told",
        "crates/carrack/src/output/stream.rs",
        ["if error.kind() == io::ErrorKind::BrokenPipe {", "if error.kind() == io::ErrorKind::NotConnected {"],
        "-p carrack --test system output::reader_that_leaves",
    ),
    mutation(
        "a copy to standard output whose disk is full is partial",
        "crates/carrack/src/exit.rs",
        ["Some(item) if report.error.is_none() => of_code(item.failure.code),", ""],
        "-p carrack --test system output::reader_that_leaves_is_told_apart",
    ),
    mutation(
        "skipped items stand in the report as verified",
        "crates/carrack/src/output/human.rs",
        [
            "_ if report.counts.files_kept > 0 || report.counts.files_shared > 0 => {",
            "_ if report.counts.files_kept == u64::MAX => {",
        ],
        "-p carrack --bin carrack output::human",
    ),
    mutation(
        "a name that is immutable is refused in the system's words alone",
        "crates/carrack-engine/src/storage/posix/refusal.rs",
        [
            "let cause = if is_refusal { cause(dir, name) } else { None };",
            "let cause = if is_refusal && name.is_empty() { cause(dir, name) } else { None };",
        ],
        "-p carrack --test system disk::names_that_cannot_be_changed",
    ),
];
