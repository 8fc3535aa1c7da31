//! Checks that the tests notice when a promise is broken: each mutation takes one safeguard out of a copy of the tree,
//! and a quick test that is named beside it must then fail. A mutation whose text is no longer found is an error, so
//! that the list cannot rot.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::{Finding, cargo, output};

/// A mutant that makes its test hang has been noticed, too: after so long, and so many times what the test takes without it.
const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_FACTOR: u32 = 4;
/// For a test that has not been run yet.
const FIRST_PATIENCE: Duration = Duration::from_secs(600);

/// One safeguard taken out.
struct Mutation {
    /// What is broken.
    name: &'static str,
    file: &'static str,
    /// Must be there exactly once.
    text: &'static str,
    replacement: &'static str,
    /// What follows `cargo test`.
    test: &'static str,
}

const fn mutation(
    name: &'static str,
    file: &'static str,
    [text, replacement]: [&'static str; 2],
    test: &'static str,
) -> Mutation {
    Mutation { name, file, text, replacement, test }
}

const CORE: &str = "-p carrack-core --lib";
const SIMULATION: &str = "-p carrack-core --lib simulation";
const SYS: &str = "-p carrack-sys --lib";
const ENGINE: &str = "-p carrack-engine --lib";
const TOKEN: &str = "-p carrack --bin carrack tokens::";
const KNOWN_NODES: &str = "-p carrack-engine --lib control::known_nodes::";
const DIAL: &str = "-p carrack-engine --lib data::dial::";
const HOSTILE: &str = "-p carrack-engine --test hostile";
const BINARY: &str = "-p carrack --bin carrack";
const DISK: &str = "-p carrack --test system disk::";
const COLLECT: &str = "-p carrack-engine --lib storage::posix::collect::tests";
const FAULTS: &str = "-p carrack --test system faults::";

const MUTATIONS: &[Mutation] = &[
    mutation(
        "an idle stream asks for ever while the scan goes on and another stream is late",
        "crates/carrack-core/src/transfer/sender/work.rs",
        [".filter(|_| self.phase != Phase::Scanning);", ";"],
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
        "what is kept of an end's words has no bound in bytes",
        "crates/carrack-engine/src/end/inbox.rs",
        ["&& self.kept_bytes + bytes <= limits::WORDS_KEPT_BYTES", ""],
        ENGINE,
    ),
    mutation(
        "a dialer in the clear says what was chosen for it",
        "crates/carrack-engine/src/data/hello.rs",
        ["rest.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);", "drop((rest, mask));"],
        ENGINE,
    ),
    mutation(
        "a node dials its own host",
        "crates/carrack-engine/src/net/connect.rs",
        ["(self.allow)(address)?;", ""],
        "-p carrack-engine --test hostile command::",
    ),
    mutation(
        "a node tells how a dial failed",
        "crates/carrack-engine/src/agent/dial.rs",
        ["let why = if is_node && refused.is_none() {", "let why = if is_node && refused.is_some() {"],
        "-p carrack-engine --test hostile command::",
    ),
    mutation(
        "strangers are cut off whoever came first",
        "crates/carrack-engine/src/net/unproved.rs",
        [
            "max_by_key(|strangers| (strangers.len(), u64::MAX - age(strangers)))",
            "max_by_key(|strangers| u64::MAX - age(strangers))",
        ],
        ENGINE,
    ),
    mutation(
        "every stream has large buffers",
        "crates/carrack-engine/src/data/stream.rs",
        [".filter(|&taken| taken <= limits::LARGE_BUFFER_BYTES);", ";"],
        ENGINE,
    ),
    mutation(
        "a TLS client may give out tickets",
        "crates/carrack-engine/src/net/records.rs",
        ["(NEW_SESSION_TICKET, Kernel::Client(_)) =>", "(NEW_SESSION_TICKET, _) =>"],
        ENGINE,
    ),
    mutation(
        "TLS records may come in the midst of a handshake message",
        "crates/carrack-engine/src/net/records.rs",
        ["if kind != HANDSHAKE && !self.unfinished.is_empty() {", "if kind != HANDSHAKE && self.closed {"],
        ENGINE,
    ),
    mutation(
        "a source that ends early leaves the destination waiting",
        "crates/carrack-engine/src/copy/watch.rs",
        ["ends.destination.ask(Ask::Cancel)?;", "heard = now;"],
        "-p carrack-engine --test hostile server::",
    ),
    mutation(
        "another inode is taken for the same source",
        "crates/carrack-engine/src/storage/posix/identity.rs",
        ["put(&stat.inode.to_le_bytes());", "put(&0u64.to_le_bytes());"],
        "-p carrack-engine --lib storage::posix::identity",
    ),
    mutation(
        "a source that has just changed is known by its times",
        "crates/carrack-engine/src/storage/posix/identity.rs",
        ["(settled && shows_changes(stat, found)).then(", "shows_changes(stat, found).then("],
        "-p carrack-engine --lib storage::posix::identity",
    ),
    mutation(
        "what a hung sync delays gets its name when its session has long failed",
        "crates/carrack-engine/src/storage/posix/part.rs",
        ["        shared.check_open()?;\n", ""],
        ENGINE,
    ),
    mutation(
        "a session that is lost gives up its marker while its threads still write",
        "crates/carrack-engine/src/transfer/receive.rs",
        ["            self.at_work.wait_for_all();\n", ""],
        "-p carrack-engine --lib transfer::receive::tests",
    ),
    mutation(
        "a part file is taken up though somebody else holds it",
        "crates/carrack-engine/src/storage/posix/tree.rs",
        [
            "        if !lock_patiently(&opened) {\n            return None;\n        }\n",
            "        lock_patiently(&opened);\n",
        ],
        "-p carrack-engine --lib storage::posix::tree::tests::part_",
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
        "a part file is believed whatever was done to it",
        "crates/carrack-engine/src/storage/posix/tree.rs",
        ["if claim.sure && comparable && untouched && !damaged {", "if claim.sure && comparable && !damaged {"],
        "-p carrack-engine --lib storage::posix::tree",
    ),
    mutation(
        "a part file counts as it was left once, though more was written to it",
        "crates/carrack-core/src/transfer/marker.rs",
        ["                left.identity = None;\n", ""],
        "-p carrack-core --lib transfer::marker",
    ),
    mutation(
        "what was published is not read back with --verify disk",
        "crates/carrack-engine/src/storage/posix/tree/known.rs",
        ["(verify == Verify::Disk || !self.ground", "(!self.ground"],
        "-p carrack-engine --lib storage::posix::tree::tests::known",
    ),
    mutation(
        "what was published is known without a digest",
        "crates/carrack-engine/src/storage/posix/tree/known.rs",
        ["filter(|_| wanted.main.is_some())", "filter(|_| true)"],
        "-p carrack-engine --lib storage::posix::tree::tests::known",
    ),
    mutation(
        "a node is known by its address",
        "crates/carrack-engine/src/end/mod.rs",
        ["Some(pin) => [b\"node \", &pin[..]].concat(),", "Some(_) => [b\"node \", name.as_bytes()].concat(),"],
        "-p carrack-engine --lib end::",
    ),
    mutation(
        "a block's digest is not compared",
        "crates/carrack-core/src/transfer/receiver.rs",
        ["if self.options.digests.main.is_some() && ours.main != trailer.digest.main {", "if ours.main.is_empty() {"],
        CORE,
    ),
    mutation(
        "a bundled file's digest is not compared",
        "crates/carrack-engine/src/transfer/receive.rs",
        [
            "if self.run.options.digests.main.is_some() && ours.main != trailer.digest.main {",
            "if ours.main.is_empty() {",
        ],
        HOSTILE,
    ),
    mutation(
        "a hole is taken for granted in a resumed part file",
        "crates/carrack-engine/src/storage/posix/part.rs",
        ["let Self::Some(blocks) = self else { return true };", "let Self::Some(blocks) = self else { return false };"],
        "-p carrack-engine --lib storage::posix::tree",
    ),
    mutation(
        "an earlier source's names are nobody's concern",
        "crates/carrack-engine/src/storage/overlap.rs",
        ["filter(|&one| one < number).collect();", "filter(|&one| one < number && one > number).collect();"],
        "-p carrack-engine --lib storage::overlap",
    ),
    mutation(
        "what is not selected of an earlier source is in the way",
        "crates/carrack-engine/src/storage/overlap.rs",
        ["selection.covers(target) == Selected::Wanted", "selection.covers(target) != Selected::No"],
        "-p carrack-engine --lib storage::overlap",
    ),
    mutation(
        "hidden names of other copies are copied",
        "crates/carrack-engine/src/storage/posix/walk.rs",
        [
            "Ok(stat) if is_own(&entry.name, stat.kind) => {",
            "Ok(stat) if is_own(&entry.name, stat.kind) && full.is_empty() => {",
        ],
        "-p carrack --test system torn::markers",
    ),
    mutation(
        "a source that has just changed is read at once",
        "crates/carrack-engine/src/storage/posix/settle.rs",
        ["if age < unit {", "if age > unit && age < unit {"],
        "-p carrack-engine --lib storage::posix::settle",
    ),
    mutation(
        "the second reading of a source is not compared",
        "crates/carrack-core/src/transfer/sender.rs",
        ["if second != first => self.abandon", "if second != first && number == 0 => self.abandon"],
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
        "an end that takes nothing is waited for after the command was told to end",
        "crates/carrack-engine/src/end/watchdog.rs",
        ["told_at = Some(now + grace);", "told_at = state.leave_at;"],
        "-p carrack --test system deaf::",
    ),
    mutation(
        "last words are said to an end for as long as it likes",
        "crates/carrack-engine/src/end/watchdog.rs",
        ["if watched.is_to_leave(&until, grace) {", "if watched.is_to_leave(&until, grace) && watched.lock().over {"],
        "-p carrack-engine --test hostile server::node_that_takes",
    ),
    mutation(
        "a terminal keeps whoever writes to it waiting",
        "crates/carrack-sys/src/standard.rs",
        ["let flags = mode | OFlags::NONBLOCK | OFlags::NOCTTY", "let flags = mode | OFlags::NOCTTY"],
        "-p carrack --test system output::terminal_that",
    ),
    mutation(
        "what a killed push has left stays for ever",
        "crates/carrack-engine/src/control/bootstrap.rs",
        ["-mtime +0 2>/dev/null", "-mtime +9999 2>/dev/null"],
        "-p carrack --test system ssh::leftovers_of_pushes",
    ),
    mutation(
        "a source is not read a second time",
        "crates/carrack-engine/src/transfer/send.rs",
        [
            "if source.size().is_none() {\n            return Ok(None);",
            "if source.stat().is_some() {\n            return Ok(None);",
        ],
        "-p carrack --test system torn::change",
    ),
    mutation(
        "what this system remembers of a source shows that it is unchanged",
        "crates/carrack-engine/src/storage/posix/source.rs",
        ["dir::stat_file_uncached(&self.file)", "dir::stat_file(&self.file)"],
        "-p carrack --test system identity::source",
    ),
    mutation(
        "what this system remembers of a source shows that it is known",
        "crates/carrack-engine/src/transfer/send.rs",
        ["if known { Freshness::Stored }", "if known { Freshness::Cached }"],
        "-p carrack --test system identity::source",
    ),
    mutation(
        "whatever lies below an overlay shows its changes",
        "crates/carrack-engine/src/storage/posix/identity.rs",
        ["ChangeTimes::Layered => stat.born.is_some() || stat.ctime != stat.mtime", "ChangeTimes::Layered => true"],
        "-p carrack-engine --lib storage::posix::identity",
    ),
    mutation(
        "a directory that is mounted elsewhere is another one",
        "crates/carrack-engine/src/copy/resolve.rs",
        ["one.inode != 0 && one.kind", "one.inode == 0 && one.kind"],
        "-p carrack --test system torn::copy",
    ),
    mutation(
        "a file that took another's name may have grown from it",
        "crates/carrack-engine/src/storage/posix/source.rs",
        ["item.file.is_none_or(|file| file == (stat.device, stat.inode))", "item.file.is_none_or(|file| file.1 > 0)"],
        "-p carrack-engine --lib storage::posix::source",
    ),
    mutation(
        "an older end may have sources with the same names",
        "crates/carrack-engine/src/copy/open.rs",
        [
            "source.check_knows(Version::finds_overlaps,",
            "source.check_knows(|_| true,",
        ],
        "-p carrack-engine --test hostile version1::sources",
    ),
    mutation(
        "a large file gets its name before it is synced",
        "crates/carrack-engine/src/storage/posix/part.rs",
        [
            "            self.sync()?;\n            self.cache.synced(&self.file, 0, 0);\n        }\n        // Where room",
            "        }\n        // Where room",
        ],
        DISK,
    ),
    mutation(
        "small files get their names before they are synced",
        "crates/carrack-engine/src/transfer/receive.rs",
        ["if needed { self.destination.sync_group() } else { Ok(()) }", "if needed { Ok(()) } else { Ok(()) }"],
        DISK,
    ),
    mutation(
        "small files that came during a slow sync get their names without one",
        "crates/carrack-engine/src/storage/posix/tree.rs",
        ["entry.awaits_sync = !alone && shared.durability == Durability::Group;", "entry.awaits_sync = false;"],
        "-p carrack --test system durability::",
    ),
    mutation(
        "a thread that panics is waited for",
        "crates/carrack-engine/src/transfer/receive.rs",
        [
            "contain(Side::Destination, what, || work(&run)) {\n                run.cancel(why);",
            "contain(Side::Destination, what, || work(&run)) {\n                drop(why);",
        ],
        ENGINE,
    ),
    mutation(
        "the marker's checksums are not looked at",
        "crates/carrack-core/src/transfer/marker.rs",
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
        "one marker that is abandoned outweighs one that is live",
        "crates/carrack-engine/src/storage/posix/collect.rs",
        ["said.all(|verdict| *verdict == Verdict::Go)", "said.any(|verdict| *verdict == Verdict::Go)"],
        COLLECT,
    ),
    mutation(
        "a marker speaks for directories beside its own",
        "crates/carrack-engine/src/storage/posix/collect.rs",
        [
            "retain(|(above, _)| is_within(path, above));",
            "retain(|(above, _)| is_within(path, path) || above.is_empty());",
        ],
        COLLECT,
    ),
    mutation(
        "a part file that is being written is collected",
        "crates/carrack-engine/src/storage/posix/collect.rs",
        ["(!busy).then_some(Self { _locked: part })", "(!busy || busy).then_some(Self { _locked: part })"],
        COLLECT,
    ),
    mutation(
        "a file is a marker by its name",
        "crates/carrack-engine/src/storage/posix/marker.rs",
        ["if !may_be_marker(&start[..read]) {", "if !may_be_marker(&start[..0]) && read > 0 {"],
        COLLECT,
    ),
    mutation(
        "an agent is run from a directory that others may write to",
        "crates/carrack-engine/src/control/bootstrap.rs",
        ["own \\\"$1\\\" && cd \\\"$1\\\" 2>/dev/null && own .;", "cd \\\"$1\\\" 2>/dev/null;"],
        "-p carrack --test system ssh::push_keeps_the_program_elsewhere",
    ),
    mutation(
        "an agent in a cache is run whatever it holds",
        "crates/carrack-engine/src/control/bootstrap.rs",
        ["own $h && same $h &&", "own $h &&"],
        "-p carrack --test system ssh::program_in_the_cache",
    ),
    mutation(
        "a host may ask for the program again and again",
        "crates/carrack-engine/src/control/ssh.rs",
        ["(NEED_LINE, Some(_)) if sent.is_some() =>", "(NEED_LINE, Some(_)) if sent.is_some() && rest.is_empty() =>"],
        "-p carrack --test system ssh::host_is_given_the_program_once",
    ),
    mutation(
        "a line on ssh's standard error is as long as it likes",
        "crates/carrack-engine/src/control/ssh.rs",
        ["lines.by_ref().take(limits::SSH_MESSAGE_BYTES)", "lines.by_ref().take(u64::MAX)"],
        "-p carrack-engine --lib control::ssh::tests",
    ),
    mutation(
        "an agent gets its name before it is synced",
        "crates/carrack-engine/src/control/bootstrap.rs",
        ["hi ./$t agent --sync && mv -f $t $h", "mv -f $t $h && hi ./$h agent --sync"],
        "-p carrack-engine --lib control::bootstrap::tests",
    ),
    mutation(
        "what a host has unpacked is run without being compared",
        "crates/carrack-engine/src/control/bootstrap.rs",
        ["take 1<>$t && { same $t ||", "take 1<>$t && { true ||"],
        "-p carrack-engine --lib control::push_tests::push_keeps_no_program_other",
    ),
    mutation(
        "a gzip that does not unpack is trusted with the program",
        "crates/carrack-engine/src/control/bootstrap.rs",
        ["\\\" = $n ] || z=; ", "\\\" = $n ] || z=$z; "],
        "-p carrack-engine --lib control::push_tests::push_sends_program_unpacked",
    ),
    mutation(
        "a link that is looked through may lead above the root",
        "crates/carrack-sys/src/dir/beneath.rs",
        ["self.done.pop().ok_or(Errno::XDEV)?;", "self.done.pop();"],
        SYS,
    ),
    mutation(
        "a digest is told of a file that changed meanwhile",
        "crates/carrack-engine/src/agent/verbs.rs",
        ["            source.check_unchanged()?;\n            return Ok((offset", "            return Ok((offset"],
        "-p carrack --test system verbs::sum_tells_no_digest",
    ),
    mutation(
        "a rename between hard links does nothing",
        "crates/carrack-engine/src/agent/verbs.rs",
        ["Names::Links => return from_dir.unlink(&from_name).map_err(fail),", "Names::Links => return Ok(()),"],
        "-p carrack --test system verbs::renaming_one_hard_link",
    ),
    mutation(
        "a node stays with a root that was replaced",
        "crates/carrack-engine/src/node/mod.rs",
        [
            "open.stat_self().map(identity).ok() != Some(identity_there)",
            "open.stat_self().is_err() && identity_there.0 > 0",
        ],
        "-p carrack --test system node::root_that_was_replaced",
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
        "a MAC is always right",
        "crates/carrack-engine/src/data/mac.rs",
        ["difference | (a ^ b)) == 0", "difference | (a ^ b)) <= u8::MAX"],
        ENGINE,
    ),
    mutation(
        "a MAC says nothing of the order",
        "crates/carrack-engine/src/data/mac.rs",
        ["        self.count += 1;\n", ""],
        ENGINE,
    ),
    mutation(
        "any key is the pinned one",
        "crates/carrack-engine/src/net/tls.rs",
        ["Some(pin) if pin != shown => {", "Some(pin) if pin != shown && shown.is_empty() => {"],
        ENGINE,
    ),
    mutation(
        "a listener may show a key that it does not have",
        "crates/carrack-engine/src/net/tls.rs",
        [
            "verify_tls13_signature_with_raw_key(message, &key, signature, &self.provider.signature_verification_algorithms)",
            "Ok(verify_tls13_signature_with_raw_key(message, &key, signature, &self.provider.signature_verification_algorithms)
                .unwrap_or_else(|_| HandshakeSignatureValid::assertion()))",
        ],
        "-p carrack-engine --test hostile impostor::",
    ),
    mutation(
        "a door's client is no stranger",
        "crates/carrack-engine/src/node/door.rs",
        ["stranger: Some(arrival.stranger) })", "stranger: Some(arrival.stranger).filter(|_| false) })"],
        "-p carrack-engine --test hostile doors::door_client",
    ),
    mutation(
        "a door's clients outlive the node",
        "crates/carrack-engine/src/node/port.rs",
        [".for_each(|socket| socket.abort());", ".for_each(drop);"],
        "-p carrack-engine --test hostile doors::door_client",
    ),
    mutation(
        "a client gets the configuration of another protocol",
        "crates/carrack-engine/src/net/opening.rs",
        [
            "offered.iter().any(|protocol| config.alpn_protocols.contains(protocol))",
            "offered.iter().any(|protocol| !protocol.is_empty()) || config.alpn_protocols.is_empty()",
        ],
        "-p carrack-engine --lib net::opening::",
    ),
    mutation(
        "a ClientHello may be of any length",
        "crates/carrack-engine/src/net/opening.rs",
        ["if said.len() >= limits::CLIENT_HELLO_BYTES {", "if said.len() > 4 * limits::CLIENT_HELLO_BYTES {"],
        "-p carrack-engine --lib net::opening::",
    ),
    mutation(
        "a node may show any key",
        "crates/carrack-engine/src/control/node_client.rs",
        ["Some(expected) if expected == pin => {}", "Some(expected) if expected.len() == pin.len() => {}"],
        "-p carrack --test system node::",
    ),
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
        "a secret is read through a link",
        "crates/carrack-sys/src/file.rs",
        [
            "OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK",
            "OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK",
        ],
        TOKEN,
    ),
    mutation(
        "a second name of a file is as good as its first",
        "crates/carrack/src/tokens/mod.rs",
        ["&& facts.nlink() == 1;", "&& facts.nlink() > 0;"],
        TOKEN,
    ),
    mutation(
        "a list of known nodes that cannot be read is an empty one",
        "crates/carrack-engine/src/control/known_nodes.rs",
        [
            "let pins = parse(&text).map_err(|why| unusable(&self.path, &why))?;",
            "let pins = parse(&text).unwrap_or_default();",
        ],
        KNOWN_NODES,
    ),
    mutation(
        "a node met a moment ago counts as pinned",
        "crates/carrack-engine/src/control/known_nodes.rs",
        ["let was_pinned = met.is_none() && ", "let was_pinned = "],
        KNOWN_NODES,
    ),
    mutation(
        "whoever trickles holds a dial",
        "crates/carrack-engine/src/net/deadlines.rs",
        [
            "let result = WATCH.guard(socket, left, handshake);",
            "let result = WATCH.guard(socket, 100 * left, handshake);",
        ],
        DIAL,
    ),
    mutation(
        "a node is dialled at the port that it names",
        "crates/carrack-engine/src/copy/connect.rs",
        ["Reached::Node(address, _) => address.port(),", "Reached::Node(..) => told_port as u16,"],
        "-p carrack-engine --test hostile server::",
    ),
    mutation(
        "a host is dialled at any port that it names",
        "crates/carrack-engine/src/copy/connect.rs",
        ["Some(told).filter(|port| (low..=high).contains(port))", "Some(told).filter(|_| low <= high)"],
        "-p carrack-engine --lib copy::connect::",
    ),
    mutation(
        "who floods moves a deadline",
        "crates/carrack-engine/src/end/inbox.rs",
        ["if late > limits::WORDS_KEPT {", "if late > usize::MAX - 1 {"],
        "-p carrack-engine --lib end::",
    ),
    mutation(
        "who goes on talking holds a copy that has failed",
        "crates/carrack-engine/src/copy/watch.rs",
        [".min(at + 2 * patience)", ".min(at + 200 * patience)"],
        "-p carrack-engine --test hostile server::node_that_never_stops",
    ),
    mutation(
        "an attempt that comes too late is made",
        "crates/carrack-engine/src/net/connect.rs",
        ["if left.is_zero() || self.over.load(Ordering::Relaxed) {", "if left.is_zero() {"],
        "-p carrack-engine --lib net::connect::",
    ),
    mutation(
        "a source that changed meanwhile is no fault",
        "crates/carrack-engine/src/storage/posix/source.rs",
        [
            "None => (now.size, now.mtime, now.ctime) == (before.size, before.mtime, before.ctime),",
            "None => before.size != u64::MAX,",
        ],
        FAULTS,
    ),
    mutation(
        "what a file system did not keep is not noticed",
        "crates/carrack-engine/src/storage/posix/unkept.rs",
        ["mtime.filter(|mtime| *mtime != kept)", "mtime.filter(|mtime| *mtime < kept)"],
        "-p carrack --test system destination::",
    ),
    mutation(
        "attributes of kinds that nobody knows are not counted",
        "crates/carrack-engine/src/storage/posix/unkept.rs",
        ["if !others.is_empty() {", "if others.is_empty() {"],
        "-p carrack-engine --test hostile attributes::",
    ),
    mutation(
        "attributes that a receiver of a version before cannot be told are not counted",
        "crates/carrack-core/src/transfer/sender.rs",
        ["if !self.config.options.version.has_attributes() {", "if self.config.options.version.has_attributes() {"],
        "-p carrack-core --lib transfer::hostile::attributes",
    ),
    mutation(
        "attributes are told to a receiver of a version before",
        "crates/carrack-core/src/transfer/sender.rs",
        ["let has_words = self.config.options.version.has_attributes();", "let has_words = true;"],
        "-p carrack-core --lib transfer::hostile::attributes",
    ),
    mutation(
        "an attribute may come twice",
        "crates/carrack-core/src/attributes.rs",
        ["|one, next| one.kind < next.kind", "|one, next| one.kind <= next.kind"],
        "-p carrack-core --lib attributes::",
    ),
    mutation(
        "attributes of a bundle are not bounded together",
        "crates/carrack-engine/src/transfer/receive.rs",
        ["if *bytes + staged.attribute_bytes > limits::BUNDLE_BYTES {", "if *bytes > limits::BUNDLE_BYTES {"],
        "-p carrack-engine --test hostile attributes::",
    ),
    mutation(
        "it does not matter where the destination's path leads at the end",
        "crates/carrack-engine/src/storage/posix/tree.rs",
        ["        self.check_path()?;\n", ""],
        "-p carrack --test system destination::",
    ),
    mutation(
        "a directory that was exchanged gets the other's attributes",
        "crates/carrack-engine/src/storage/posix/directories.rs",
        [
            "Ok(first == now || !found.file_system.keeps_forgotten())",
            "Ok(first == now || found.file_system.keeps_forgotten())",
        ],
        "-p carrack-engine --lib storage::posix::tree::tests::directories",
    ),
    mutation(
        "a single directory in which names are one is like the others",
        "crates/carrack-engine/src/storage/posix/directories.rs",
        ["Ok(true) => return true,\n", "Ok(true) => {}\n"],
        "-p carrack --test system storage::names_that_are_one",
    ),
    mutation(
        "names differ where nobody could tell whether they do",
        "crates/carrack-engine/src/storage/posix/directories.rs",
        ["shown.get().is_none_or(|shown| shown.names.any())", "shown.get().is_some_and(|shown| shown.names.any())"],
        "-p carrack-engine --lib storage::posix::tree::tests::names",
    ),
    mutation(
        "only the destination's own file system is synced at the end",
        "crates/carrack-engine/src/storage/posix/directories.rs",
        ["tops.chain([&self.root.dir]).try_for_each", "tops.take(0).chain([&self.root.dir]).try_for_each"],
        "-p carrack --test system destination::",
    ),
    mutation(
        "what stands at a name is not looked at again before it is replaced",
        "crates/carrack-engine/src/storage/posix/part.rs",
        [
            "if !may_replace(there, self.source.mtime, self.existing)? {",
            "if there.is_some_and(|stat| stat.kind == Kind::Dir) {",
        ],
        "-p carrack-engine --lib storage::posix::tree::tests::names",
    ),
    mutation(
        "a directory whose listing breaks off is taken for the whole",
        "crates/carrack-engine/src/storage/posix/walk.rs",
        [
            "if !self.fail(&path, ItemKind::Directory, listing_failure(&error)) {",
            "if listing_failure(&error).why.is_empty() {",
        ],
        FAULTS,
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
        "a link is replaced by what a command writes",
        "crates/carrack/src/output/part_file.rs",
        [
            "        if !found.is_symlink() {\n            return Ok((path, found.is_file()));",
            "        if !found.is_dir() {\n            return Ok((path, true));",
        ],
        BINARY,
    ),
    mutation(
        "a source may tell of any item",
        "crates/carrack-engine/src/copy/watch.rs",
        ["        self.expected.check(&item.path)\n", "        Ok(())\n"],
        "-p carrack-engine --test hostile server::items",
    ),
    mutation(
        "in the clear nothing covers the content",
        "crates/carrack/src/command/copy/options.rs",
        ["(verify == Verify::None && encrypt != Encrypt::None)", "(verify == Verify::None)"],
        BINARY,
    ),
    mutation(
        "characters that are not seen are shown",
        "crates/carrack-core/src/path.rs",
        [" || is_invisible(character)\n", " || is_invisible('a')\n"],
        "-p carrack-core --lib path::",
    ),
    mutation(
        "a variable may look as if it did something",
        "crates/carrack/src/cli/environment.rs",
        ["find(|arg| !takes_value(arg))", "find(|arg| !takes_value(arg) && takes_value(arg))"],
        BINARY,
    ),
    mutation(
        "what nobody takes is kept without a bound",
        "crates/carrack-engine/src/end/backlog.rs",
        ["while !held.ended && held.bytes > 0", "while !held.ended && held.bytes > usize::MAX - 1"],
        ENGINE,
    ),
    mutation(
        "a local end that is confined may go anywhere",
        "crates/carrack-engine/src/end/mod.rs",
        ["place: context.local.clone(),", "place: crate::storage::place::Place::anywhere(),"],
        "-p carrack-engine --test hostile confined::",
    ),
    mutation(
        "a copy does not wait for whoever reads its events",
        "crates/carrack-engine/src/copy/events.rs",
        ["while state.bytes > 0\n", "while state.bytes > usize::MAX / 2\n"],
        "-p carrack-engine --lib copy::events",
    ),
    mutation(
        "TCP counts a peer that takes nothing as silent, though it answers",
        "crates/carrack-engine/src/net/tls_duplex.rs",
        ["let _ = set_user_timeout(&socket, Duration::ZERO);", "let _ = (&socket, set_user_timeout::<&TcpStream>, Duration::ZERO);"],
        "-p carrack --test system output::reader_that_stops",
    ),
    mutation(
        "the scan goes on though nobody takes what is told of items",
        "crates/carrack-core/src/transfer/sender.rs",
        ["&& self.report_bytes < limits::REPORT_BYTES_WAITING", "&& self.report_bytes < usize::MAX"],
        "-p carrack-core --lib scan_waits_until",
    ),
    mutation(
        "a peer that is not listened to counts as silent",
        "crates/carrack-engine/src/net/mux.rs",
        ["!handing_on && heard.elapsed()", "(!handing_on || handing_on) && heard.elapsed()"],
        ENGINE,
    ),
    mutation(
        "a stream within one process is cut off",
        "crates/carrack-core/src/transfer/sender/streams.rs",
        ["        self.kept = true;\n", "        self.kept = false;\n"],
        "-p carrack-core --lib transfer::hostile",
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
];

/// Runs those whose name contains `only`.
pub fn check(root: &Path, only: &str) -> Result<Vec<Finding>, String> {
    let copy = root.join("target/mutants/tree");
    let is_chosen = |mutation: &&Mutation| mutation.name.contains(only) || mutation.test.contains(only);
    let chosen: Vec<&Mutation> = MUTATIONS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(format!("no mutation, and no test of one, contains {only:?}"));
    }
    mirror(root, &copy)?;
    // Tests that need a disk work in the target directory beside the sources.
    fs::create_dir_all(copy.join("target")).map_err(|e| format!("cannot make a target directory: {e}"))?;
    // All are looked for first: a rotten list is found before an hour of tests.
    for mutation in &chosen {
        mutated(mutation, &read(&copy.join(mutation.file))?)?;
    }
    let mut tests: Vec<&str> = chosen.iter().map(|mutation| mutation.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let mut patience = HashMap::new();
    for test in tests {
        let (passed, took) = passes(&copy, test, FIRST_PATIENCE)?;
        if !passed {
            return Err(format!("cargo test {test} fails without any mutation"));
        }
        patience.insert(test, PATIENCE + PATIENCE_FACTOR * took);
    }
    let mut findings = Vec::new();
    for mutation in chosen {
        let path = copy.join(mutation.file);
        let text = read(&path)?;
        write(&path, &mutated(mutation, &text)?)?;
        let survived = passes(&copy, mutation.test, patience[mutation.test]);
        write(&path, &text)?;
        // One that cannot be built proves nothing, and is no reason to leave out the others.
        let (end, what) = match survived {
            Ok((false, _)) => ("caught", None),
            Ok((true, _)) => ("SURVIVED", Some(format!("`cargo test {}` passes", mutation.test))),
            Err(why) => ("NOT BUILT", Some(why)),
        };
        println!("{}: {end}", mutation.name);
        if let Some(what) = what {
            let line = text[..text.find(mutation.text).unwrap_or(0)].lines().count() + 1;
            findings.push(Finding::new(mutation.file, line, format!("{}: {what}", mutation.name)));
        }
    }
    Ok(findings)
}

fn mutated(mutation: &Mutation, text: &str) -> Result<String, String> {
    match text.matches(mutation.text).count() {
        1 => Ok(text.replace(mutation.text, mutation.replacement)),
        count => {
            Err(format!("{}: {} has {count} places like {:?}, not one", mutation.name, mutation.file, mutation.text))
        }
    }
}

/// Copies every file that git knows or would take; what is unchanged stays, so that little is built again.
fn mirror(root: &Path, copy: &Path) -> Result<(), String> {
    let listed = output(Command::new("git").current_dir(root).args(["ls-files", "-z", "-co", "--exclude-standard"]))?;
    let names: Vec<&str> = listed.split('\0').filter(|name| root.join(name).is_file()).collect();
    for old in files(&copy.join("crates")) {
        if !old.strip_prefix(copy).is_ok_and(|name| names.iter().any(|known| Path::new(known) == name)) {
            fs::remove_file(&old).map_err(|e| format!("cannot remove {}: {e}", old.display()))?;
        }
    }
    for name in names {
        let (from, to) = (root.join(name), copy.join(name));
        let fresh = fs::read(&from).map_err(|e| format!("cannot read {}: {e}", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == fresh) {
            continue;
        }
        let parent = to.parent().unwrap_or(copy);
        fs::create_dir_all(parent).map_err(|e| format!("cannot make {}: {e}", parent.display()))?;
        fs::copy(&from, &to).map_err(|e| format!("cannot copy to {}: {e}", to.display()))?;
    }
    Ok(())
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (if is_directory { &mut waiting } else { &mut found }).push(entry.path());
        }
    }
    found
}

/// Whether tests pass in the copy in the time that is given them, and how long they took. That it cannot be built is an error.
fn passes(copy: &Path, test: &str, patience: Duration) -> Result<(bool, Duration), String> {
    let (words, filter) = match test.rsplit_once(' ') {
        Some((words, filter)) if filter.contains("::") || filter == "simulation" => (words, Some(filter)),
        _ => (test, None),
    };
    let command = |more: &[&str]| {
        let mut command = cargo();
        command.current_dir(copy).env("CARGO_TARGET_DIR", copy.with_file_name("target")).stdin(Stdio::null());
        command.args(["test", "--locked"]).args(words.split(' ')).args(more);
        command
    };
    output(&mut command(&["--no-run"]))?;
    let mut run = command(filter.as_slice());
    // A group of its own: what a hung test has started ends with it.
    let child = run.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn();
    let mut child = child.map_err(|e| format!("cannot run {run:?}: {e}"))?;
    let start = Instant::now();
    loop {
        let ended: Option<ExitStatus> = child.try_wait().map_err(|e| format!("cannot wait for {run:?}: {e}"))?;
        match ended {
            Some(status) => return Ok((status.success(), start.elapsed())),
            None if start.elapsed() > patience => {
                output(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]))?;
                let _ = child.wait();
                return Ok((false, patience));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests;
