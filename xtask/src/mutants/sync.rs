//! What is the same is not sent, and nothing is deleted that somebody still has.

use super::{Mutation, mutation};

const SYNC: &str = "-p carrack --test system sync::";
const DELTA: &str = "-p carrack --test system delta::";
const REFLINK: &str = "-p carrack --test system reflink::";
const RENAMES: &str = "-p carrack --test system sync::renames::";
const SWEEP: &str = "-p carrack-engine --lib transfer::receive::sweep::";
const WORKER: &str = "-p carrack --test system worker::deletion::";
const REQUEST: &str = "-p carrack-service --lib identity::request::";
const COMPARING: &str = "-p carrack-core --lib transfer::hostile::comparing::";
const REMOVAL: &str = "-p carrack-engine --lib storage::posix::removal::";
const ON_RECEIPT: &str = "-p carrack-engine --lib transfer::receive::tests::";

const LINKS: &str = "-p carrack-engine --lib storage::posix::links::";
const REFERRED: &str = "-p carrack-engine --lib storage::posix::tree::tests::referred::";

/// The safeguards of a sync.
pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "a file shares what its source has become",
        "crates/carrack-engine/src/transfer/send/sources.rs",
        ["        opened.check_listed(&scanned).ok()?;\n", ""],
        REFLINK,
    ),
    mutation(
        "a file that shares its blocks counts as verified",
        "crates/carrack/src/output/json.rs",
        ["report.counts.files.saturating_sub(report.counts.files_shared)", "report.counts.files"],
        REFLINK,
    ),
    mutation(
        "what shares its blocks needs room for a second file",
        "crates/carrack-engine/src/storage/posix/tree.rs",
        ["if !options.shares\n", "if (!options.shares || options.shares)\n"],
        REFLINK,
    ),
    mutation(
        "a patch is believed to make the file",
        "crates/carrack-engine/src/transfer/receive/patching.rs",
        ["if !trailer.whole || ours.main != trailer.digest.main {", "if !trailer.whole {"],
        DELTA,
    ),
    mutation(
        "a patched block is believed to be what was sent",
        "crates/carrack-engine/src/transfer/receive/patching.rs",
        ["slices.for_each(|slice| stages.work(Work::Hash, slice.len(), || hasher.update(slice)));", "let _ = slices;"],
        DELTA,
    ),
    mutation(
        "a block that was patched into another comes as a patch again",
        "crates/carrack-core/src/transfer/sender/offered.rs",
        ["        self.chunks.remove(&index);\n        self.patched.remove(&index);\n", ""],
        "-p carrack-core --lib transfer::hostile::earlier_sender::",
    ),
    mutation(
        "a patch is taken of a block of which nobody was told",
        "crates/carrack-engine/src/transfer/receive/patching.rs",
        ["        self.run.driver.lock().check_patch(item, offset)?;\n", ""],
        "-p carrack-engine --test hostile comparing::",
    ),
    mutation(
        "a small file that could not be patched comes as a patch again",
        "crates/carrack-core/src/transfer/sender/ends.rs",
        ["ScannedItem { chunks: None, ..item.clone() }", "item.clone()"],
        DELTA,
    ),
    mutation(
        "a patch is taken of what nobody may read",
        "crates/carrack-engine/src/transfer/receive/patching.rs",
        ["if !options.patches() || !lock", "if !lock"],
        "-p carrack-engine --test hostile comparing::",
    ),
    mutation(
        "a link is followed out of the root of a node",
        "crates/carrack-engine/src/storage/posix/links.rs",
        ["open(outer, &join(way, path), Links::Beneath)", "open(outer, &join(way, path), Links::Anywhere)"],
        LINKS,
    ),
    mutation(
        "a link that leads nowhere is no name of the source",
        "crates/carrack-engine/src/storage/posix/walk.rs",
        ["Err(Unseen::Link(_)) => Kind::Symlink,", "Err(Unseen::Link(_)) => return false,"],
        LINKS,
    ),
    mutation(
        "a link that leads out is copied although such are left out",
        "crates/carrack-engine/src/storage/read.rs",
        ["filters.links != SourceLinks::Safe ||", "filters.links == SourceLinks::Safe ||"],
        SYNC,
    ),
    mutation(
        "what the source has by now is deleted",
        "crates/carrack-engine/src/transfer/receive/sweep/deleting.rs",
        ["(true, _) => self.ended.appeared += 1,", "(true, _) => self.one(item.path, item.kind, item.size),"],
        SWEEP,
    ),
    mutation(
        "an old name goes although the source has it again",
        "crates/carrack-engine/src/transfer/receive/sweep/deleting.rs",
        [
            "(true, _) => self.ended.appeared",
            "(_, Some(file)) => self.forget(&item.path, file),\n(true, None) => self.ended.appeared",
        ],
        RENAMES,
    ),
    mutation(
        "an old name goes whatever stands there by now",
        "crates/carrack-engine/src/storage/posix/tree/standing.rs",
        ["(it.device, it.inode) == file", "it.device == file.0"],
        REFERRED,
    ),
    mutation(
        "a file that only samples tell counts as verified",
        "crates/carrack-engine/src/transfer/receive/renaming.rs",
        ["(if taken.by_samples { by_samples } else { read })", "(if taken.by_samples { read } else { by_samples })"],
        RENAMES,
    ),
    mutation(
        "samples tell which of several files it is",
        "crates/carrack-engine/src/transfer/receive/renaming.rs",
        ["alike.count == 1 && files.left_out == 0", "alike.count >= 1 && files.left_out == 0"],
        RENAMES,
    ),
    mutation(
        "a time in whole seconds tells which file it is",
        "crates/carrack-engine/src/transfer/receive/renaming.rs",
        ["mtime.filter(|mtime| mtime.nanos != 0)", "mtime.filter(|mtime| mtime.nanos < u32::MAX)"],
        RENAMES,
    ),
    mutation(
        "a deletion goes on when its transfer has ended",
        "crates/carrack-engine/src/transfer/receive/sweep/deleting.rs",
        ["if self.source.is_over() {", "if self.source.is_over() && item.path.is_empty() {"],
        SWEEP,
    ),
    mutation(
        "rules of a directory beside it decide of a name",
        "crates/carrack-core/src/filter.rs",
        ["else { continue };\n            if !of.inherits", "else { return None };\n            if !of.inherits"],
        SWEEP,
    ),
    mutation(
        "something is deleted although an item failed",
        "crates/carrack-engine/src/transfer/receive/sweep.rs",
        ["if failed > 0 && !self.may.order.ignore_errors {", "if failed > 0 && self.may.order.ignore_errors {"],
        SYNC,
    ),
    mutation(
        "an empty source empties the destination",
        "crates/carrack-engine/src/transfer/receive/sweep.rs",
        ["if !state.has_names && !self.may.order.allow_empty {", "if !state.has_names && self.may.order.allow_empty {"],
        SYNC,
    ),
    mutation(
        "that a source is there counts as something in it",
        "crates/carrack-engine/src/transfer/receive/sweep.rs",
        ["state.has_names |= !names.is_empty();", "state.has_names |= !names.is_empty() || directories.len() < 2;"],
        SYNC,
    ),
    mutation(
        "what is only queued to be read is waited for",
        "crates/carrack-engine/src/transfer/receive/renaming.rs",
        [
            "files.files.get(number as usize).filter(is_unread).map(|_| OldName(number))",
            "files.files.get(number as usize).filter(is_unread).is_some().then(|| OldName(u32::MAX))",
        ],
        "-p carrack-engine --lib transfer::receive::renaming",
    ),
    mutation(
        "a mixture is told by its marker alone",
        "crates/carrack-engine/src/transfer/receive/comparing.rs",
        ["there.is_mixture || self.has_time_of_mixture(judged, item, there)", "there.is_mixture"],
        "-p carrack --test system in_place::time_of_a_mixture",
    ),
    mutation(
        "more is deleted than may be",
        "crates/carrack-engine/src/transfer/receive/sweep.rs",
        ["Some(most) if found > most && !self.may.order.partial", "Some(most) if most == u64::MAX"],
        SYNC,
    ),
    mutation(
        "what is in a directory that was not listed to its end is deleted",
        "crates/carrack-engine/src/transfer/receive/sweep.rs",
        ["if *complete {", "if *complete || &directory[..] != b\"?\" {"],
        SYNC,
    ),
    mutation(
        "what an earlier run has kept is deleted",
        "crates/carrack-engine/src/transfer/receive/sweep/finding.rs",
        ["|| self.may.protects(path) ||", "||"],
        SYNC,
    ),
    mutation(
        "a file that is left out by its size counts as one that the source has not",
        "crates/carrack-engine/src/transfer/send/scan.rs",
        ["Found::LeftOut(item) => machine.handle_left_out(now, &item),", "Found::LeftOut(_) => {}"],
        SYNC,
    ),
    mutation(
        "another file system of the source is entered",
        "crates/carrack-engine/src/storage/posix/walk.rs",
        [
            "self.device.is_none_or(|only| only == device);",
            "self.device.is_none_or(|only| only > 0 || only == device);",
        ],
        SYNC,
    ),
    mutation(
        "an item of the source goes where an old file is kept",
        "crates/carrack-engine/src/storage/read.rs",
        ["(Some(true), false) => Found::Item(item),", "(Some(true), _) => Found::Item(item),"],
        SYNC,
    ),
    mutation(
        "what an interrupted run has kept gives way to what took its place",
        "crates/carrack-engine/src/storage/posix/backup.rs",
        [
            "is_none_or(|journal| journal.may_go_on());",
            "is_none_or(|journal| journal.is_resumed() && path.is_empty());",
        ],
        SYNC,
    ),
    mutation(
        "a file that cannot be kept is replaced",
        "crates/carrack-engine/src/storage/posix/part/entry.rs",
        ["{ shared.keep(&self.path())? }", "{ shared.keep(&self.path()).unwrap_or(None) }"],
        SYNC,
    ),
    mutation(
        "another file system below the destination is emptied",
        "crates/carrack-engine/src/transfer/receive/sweep/finding.rs",
        ["if device != self.device || ", "if "],
        SYNC,
    ),
    mutation(
        "a name in another form is taken for another name",
        "crates/carrack-engine/src/transfer/receive/sweep.rs",
        ["paths = without_twins(destination, paths, &told)?;", "without_twins(destination, paths.clone(), &told)?;"],
        SYNC,
    ),
    mutation(
        "a rule protects nothing from deletion",
        "crates/carrack-engine/src/transfer/receive/sweep/finding.rs",
        ["|| !self.scope.takes(path, is_directory, is_below)", "|| path.is_empty()"],
        SYNC,
    ),
    mutation(
        "what stands at a name is told of to a grant that may not read",
        "crates/carrack-engine/src/agent/begin.rs",
        ["grant.check_right(Right::Read).is_err()", "grant.check_right(Right::Write).is_err()"],
        "-p carrack-engine --test hostile grants::",
    ),
    mutation(
        "what was taken over is digested as it was in the old file",
        "crates/carrack-engine/src/storage/posix/part/reading.rs",
        ["copy(&standing, &self.file, start, length).ok()?;", "let _ = copy;"],
        "-p carrack-engine --test stores",
    ),
    mutation(
        "a hole of the source keeps what was taken over",
        "crates/carrack-engine/src/storage/posix/part/reading.rs",
        [
            "                self.touched.note(index);\n                self.cache.bypassed();",
            "                self.cache.bypassed();",
        ],
        DELTA,
    ),
    mutation(
        "of a file that was cut off nothing more is taken over",
        "crates/carrack-engine/src/storage/posix/tree/resume.rs",
        ["standing: Mutex::new(file), ..part", "standing: Mutex::default(), ..part"],
        DELTA,
    ),
    mutation(
        "a file of a reference directory is linked though it has other permissions",
        "crates/carrack-engine/src/transfer/receive/referring.rs",
        ["=> ReferredAs::Made(found, is_as_wanted),", "=> ReferredAs::Made(found, true),"],
        SYNC,
    ),
    mutation(
        "a file that was exchanged meanwhile is linked",
        "crates/carrack-engine/src/storage/posix/tree/referred.rs",
        ["if !is_one(&stat, referred.found) {", "if stat.kind != referred.found.kind {"],
        REFERRED,
    ),
    mutation(
        "attributes of a file that other directories have, too, are set in place",
        "crates/carrack-engine/src/storage/posix/tree/standing.rs",
        ["if self.keeps_shared && before.kind == Kind::File && before.links > 1 {", "if before.links > 1 << 20 {"],
        REFERRED,
    ),
    mutation(
        "a reference directory lies outside of what a node serves",
        "crates/carrack-core/src/reference.rs",
        ["b\"..\" => drop(names.pop()?),", "b\"..\" => drop(names.pop()),"],
        "-p carrack-core --lib reference::",
    ),
    mutation(
        "a link at the destination leads out of it",
        "crates/carrack-engine/src/storage/posix/kept_links.rs",
        [
            "b\"..\" if at.is_empty() => return Err(leads_astray(\"leads out of the destination\")),",
            "b\"..\" if at.is_empty() => continue,",
        ],
        SYNC,
    ),
    mutation(
        "two directories of a source become one by a link",
        "crates/carrack-engine/src/storage/posix/kept_links.rs",
        [
            "if meant.is_empty() || *self.owners.entry(key(meant)).or_insert_with(|| key(path)) != key(path) {",
            "if meant.is_empty() {",
        ],
        SYNC,
    ),
    mutation(
        "the receiver asks what the source has when it likes",
        "crates/carrack-core/src/transfer/sender/comparing.rs",
        [
            "if !self.delete_told || self.doubt.is_some() || self",
            "if (!self.delete_told && self.doubt.is_some()) || self",
        ],
        COMPARING,
    ),
    mutation(
        "an answer to another question counts",
        "crates/carrack-core/src/transfer/receiver/comparing.rs",
        ["number.0 == self.doubts.number && self", "self"],
        COMPARING,
    ),
    mutation(
        "a block of a file that has been removed lands",
        "crates/carrack-engine/src/transfer/receive/stream.rs",
        ["if is_wanted && part.is_none() { Err", "if !is_wanted && part.is_none() { Err"],
        ON_RECEIPT,
    ),
    mutation(
        "a pass over what failed deletes nothing, and its task succeeds",
        "crates/carrack-service/src/worker/copying.rs",
        ["history.is_by_paths() && !attempt.order.options.deletes();", "history.is_by_paths();"],
        WORKER,
    ),
    mutation(
        "a later attempt looks for what was deleted",
        "crates/carrack-service/src/worker/look.rs",
        [
            "if !item.state.is_of_source() {\n                return Ok(());",
            "if self.to_file && !item.state.is_of_source() {\n                return Ok(());",
        ],
        WORKER,
    ),
    mutation(
        "a source inside its destination is deleted",
        "crates/carrack-engine/src/copy/resolve.rs",
        ["harmed.filter(|_| holds)", "harmed.filter(|_| holds && target.is_empty())"],
        SYNC,
    ),
    mutation(
        "a task that was to delete and did not succeeds",
        "crates/carrack-service/src/worker/copying.rs",
        ["= &report.undeleted {", "= &report.undeleted.clone().filter(|_| durable && !durable) {"],
        WORKER,
    ),
    mutation(
        "a task deletes at its destination without the right to",
        "crates/carrack-service/src/identity/request.rs",
        ["TaskKind::Copy if request.options.deletes() =>", "TaskKind::Copy if request.pairs.is_empty() =>"],
        REQUEST,
    ),
    mutation(
        "one pair of a task deletes what another has copied",
        "crates/carrack-service/src/identity/request.rs",
        ["if request.options.deletes() && request.pairs.len() > 1 {", "if request.pairs.len() > PAIRS_MAX {"],
        REQUEST,
    ),
    mutation(
        "what has changed since it was copied is deleted at its source",
        "crates/carrack-engine/src/storage/posix/removal.rs",
        ["if !self.is_what_was_copied(&shown, item) {", "if shown.size == u64::MAX {"],
        REMOVAL,
    ),
    mutation(
        "a source whose times have changed is deleted",
        "crates/carrack-engine/src/storage/posix/removal.rs",
        ["is_same && (is_untouched || lock", "is_same && (is_untouched || !is_untouched || lock"],
        REMOVAL,
    ),
    mutation(
        "sources are deleted before what was copied is durable",
        "crates/carrack-core/src/transfer/sender/messages.rs",
        ["if self.config.options.removes_sources && durable {", "if self.config.options.removes_sources {"],
        COMPARING,
    ),
    mutation(
        "a source that was skipped by size and time is deleted",
        "crates/carrack-core/src/transfer/sender/ends.rs",
        ["None) => compare == Compare::Content ||", "None) => compare != Compare::Nothing ||"],
        SYNC,
    ),
    mutation(
        "what is deleted first goes although something could not be listed",
        "crates/carrack-core/src/transfer/sender/comparing.rs",
        ["self.first.failed += 1;", "self.first.failed += 0;"],
        COMPARING,
    ),
];
