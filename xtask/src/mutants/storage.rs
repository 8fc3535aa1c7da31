//! What storage promises.

use super::{COLLECT, DISK, ENGINE, FAULTS, Mutation, STORES, mutation};

const UNKEPT: &str = "-p carrack --test system attributes::";
const PARTS: &str = "-p carrack-engine --lib storage::posix::tree::tests::parts::";

pub const MUTATIONS: &[Mutation] = &[
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
        "a source that somebody has open for writing is read at once",
        "crates/carrack-engine/src/storage/posix/settle.rs",
        ["        if writers == Writers::None {\n", "        if writers != Writers::Unknown {\n"],
        "-p carrack-engine --lib storage::posix::settle",
    ),
    mutation(
        "a file is taken for written by nobody though a lease is refused",
        "crates/carrack-sys/src/file.rs",
        ["!is_remote(file) => Writers::Some,", "!is_remote(file) => Writers::None,"],
        "-p carrack-sys --lib file::tests::writers_",
    ),
    mutation(
        "a sync that failed is forgotten",
        "crates/carrack-engine/src/storage/posix/syncs.rs",
        [
            "        lock(&self.state).failed.get_or_insert_with(|| why.clone());\n        self",
            "        lock(&self.state).failed.take_if(|first| first != why);\n        self",
        ],
        "-p carrack-engine --lib storage::posix::syncs",
    ),
    mutation(
        "names that a failed sync puts in doubt are not told after the next",
        "crates/carrack-engine/src/storage/posix/syncs.rs",
        ["        if state.failed.is_none() {\n", "        if synced.is_ok() {\n"],
        "-p carrack-engine --lib storage::posix::syncs",
    ),
    mutation(
        "a sync of one file system settles the names of all",
        "crates/carrack-engine/src/storage/posix/syncs.rs",
        ["device.is_none_or(|device| device == **one)", "**one != u64::MAX || device.is_some()"],
        "-p carrack-engine --lib storage::posix::syncs",
    ),
    mutation(
        "a sync that failed in passing lets the run try again",
        "crates/carrack-engine/src/storage/posix/syncs.rs",
        ["if first.code.may_pass() { ErrorCode::InputOutput } else { first.code }", "first.code"],
        "-p carrack-engine --lib storage::posix::syncs",
    ),
    mutation(
        "names from before a failed sync are believed by the next run",
        "crates/carrack-core/src/transfer/marker/replay.rs",
        ["(Record::Doubted, Some(_)) => self.known.clear(),", "(Record::Doubted, Some(_)) => {}"],
        "-p carrack-core --lib transfer::marker",
    ),
    mutation(
        "a file system that takes no writes is called durable",
        "crates/carrack-engine/src/storage/posix/directories.rs",
        ["Ok(!self.root.file_system.is_read_only && met.iter().all(|met| !met.is_read_only))", "Ok(true)"],
        "-p carrack --test system disk::destination_that_takes_no_writes",
    ),
    mutation(
        "mounts of NFS are told apart by what the system says of them",
        "crates/carrack-sys/src/dir/mounts.rs",
        ["!matches!(kind, b\"nfs\" | b\"nfs4\")", "!kind.is_empty()"],
        "-p carrack-sys --lib dir::mounts",
    ),
    mutation(
        "a directory that is mounted a second time lies where its path says",
        "crates/carrack-sys/src/dir/mounts.rs",
        ["joined(&mount.root, below(path, &mount.point)?)", "path.to_vec()"],
        "-p carrack-sys --lib dir::mounts",
    ),
    mutation(
        "what a hung sync delays gets its name when its session has long failed",
        "crates/carrack-engine/src/storage/posix/part/entry.rs",
        ["        shared.closing.check_open()?;\n", ""],
        ENGINE,
    ),
    mutation(
        "a part file is taken up though somebody else holds it",
        "crates/carrack-engine/src/storage/posix/tree/resume.rs",
        [
            "        if !lock_patiently(&opened) {\n            return None;\n        }\n",
            "        lock_patiently(&opened);\n",
        ],
        "-p carrack-engine --lib storage::posix::tree::tests::part_",
    ),
    mutation(
        "a part file is believed whatever was done to it",
        "crates/carrack-engine/src/storage/posix/tree/resume.rs",
        ["if claim.sure && comparable && untouched && !damaged {", "if claim.sure && comparable && !damaged {"],
        "-p carrack-engine --lib storage::posix::tree",
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
            "Ok(looked) if is_own(&entry.name, looked.stat.kind) => {",
            "Ok(looked) if is_own(&entry.name, looked.stat.kind) && full.is_empty() => {",
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
        "what this system remembers of a source shows that it is unchanged",
        "crates/carrack-engine/src/storage/posix/source.rs",
        ["dir::stat_file_uncached(&self.file)", "dir::stat_file(&self.file)"],
        "-p carrack --test system identity::source",
    ),
    mutation(
        "whatever lies below an overlay shows its changes",
        "crates/carrack-engine/src/storage/posix/identity.rs",
        ["ChangeTimes::Layered => stat.born.is_some() || stat.ctime != stat.mtime", "ChangeTimes::Layered => true"],
        "-p carrack-engine --lib storage::posix::identity",
    ),
    mutation(
        "a file that took another's name may have grown from it",
        "crates/carrack-engine/src/storage/posix/source.rs",
        ["size && item.file.is_none_or(|file| file == (stat.device, stat.inode))", "size"],
        "-p carrack-engine --lib storage::posix::source",
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
        "small files that came during a slow sync get their names without one",
        "crates/carrack-engine/src/storage/posix/tree/growing.rs",
        ["entry.awaits_sync = !alone && shared.durability == Durability::Group;", "entry.awaits_sync = false;"],
        "-p carrack --test system durability::",
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
        "an owner that the copy does not have counts as kept",
        "crates/carrack-core/src/attributes.rs",
        [
            "AttributeKind::OWNER => self.value[..] == copy.owner.to_be_bytes(),",
            "AttributeKind::OWNER => self.value.len() == copy.owner.to_be_bytes().len(),",
        ],
        UNKEPT,
    ),
    mutation(
        "extended attributes of small files are not looked for",
        "crates/carrack-engine/src/storage/posix/source.rs",
        ["others: self.telling.of(&shown, holder) }", "others: self.telling.of_stat(&shown) }"],
        UNKEPT,
    ),
    mutation(
        "extended attributes of what an earlier session published are not looked for",
        "crates/carrack-engine/src/storage/posix/walk.rs",
        ["freshness == Freshness::Cached && stat.size", "stat.size"],
        UNKEPT,
    ),
    mutation(
        "one's own files are said to lose their owner",
        "crates/carrack-engine/src/storage/posix/telling.rs",
        ["(owner || is_program || stat.uid != self.user)", "(owner || is_program || stat.uid != 0)"],
        "-p carrack-engine --lib storage::posix::telling",
    ),
    mutation(
        "directories whose permissions were refused are not named",
        "crates/carrack-engine/src/storage/posix/unkept.rs",
        ["if found.kind == Kind::Dir {", "if found.kind == Kind::Symlink {"],
        "-p carrack --test system destination::directories_whose_permissions_were_refused",
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
        ["tops.chain([root]).try_for_each", "tops.take(0).chain([root]).try_for_each"],
        "-p carrack --test system destination::",
    ),
    mutation(
        "what stands at a name is not looked at again before it is replaced",
        "crates/carrack-engine/src/storage/posix/part/entry.rs",
        [
            "if !may_replace(there, self.source.mtime, rules, shared.giving().kept())? {",
            "if there.is_some_and(|stat| stat.kind == Kind::Dir) {",
        ],
        "-p carrack-engine --lib storage::posix::tree::tests::names",
    ),
    mutation(
        "parts of an upload are held that the service has lost",
        "crates/carrack-engine/src/storage/objects/writing.rs",
        ["claims.retain(|claim| there.contains_key(&claim.index));", "claims.retain(|_| true);"],
        STORES,
    ),
    mutation(
        "parts of an upload are believed whoever has put them",
        "crates/carrack-engine/src/storage/objects/writing.rs",
        [
            "let is_proven = is_same && left.identity == Some(identity(&versions));",
            "let is_proven = is_same && identity(&versions) != Fingerprint::default();",
        ],
        STORES,
    ),
    mutation(
        "a part is held that has changed while it was read again",
        "crates/carrack-engine/src/storage/objects/writing.rs",
        ["there.get(index) == adopted.get(index));", "adopted.contains_key(index));"],
        STORES,
    ),
    mutation(
        "a damaged journal of objects is continued",
        "crates/carrack-engine/src/storage/objects/journal.rs",
        ["filter(|found| !found.damaged && !request.anew)", "filter(|_| !request.anew)"],
        STORES,
    ),
    mutation(
        "a block that an object store does not take is made another in silence",
        "crates/carrack-engine/src/copy/fit.rs",
        ["if asked.is_some() || nearest.is_none() {", "if nearest.is_none() {"],
        STORES,
    ),
    mutation(
        "a far store is sent blocks that it does not take",
        "crates/carrack-engine/src/agent/begin.rs",
        ["store.properties().block_bytes.map_or(Ok(()), |takes| takes.check(options.block_bytes))?;", ""],
        STORES,
    ),
    mutation(
        "a far store takes grants",
        "crates/carrack-engine/src/agent/greeting.rs",
        [
            "if grant.is_some() && matches!(environment.place, Place::Stored(..)) {",
            "if environment.busy && matches!(environment.place, Place::Stored(..)) {",
        ],
        STORES,
    ),
    mutation(
        "a node serves a store whose bytes must come in order",
        "crates/carrack-engine/src/node/mod.rs",
        ["if store.properties().writes == Writes::InOrder => {", "if !store.properties().keeps => {"],
        STORES,
    ),
    mutation(
        "a link is lost where a store keeps none",
        "crates/carrack-engine/src/storage/write.rs",
        [
            "Err(failure(ErrorCode::Unsupported, Side::Destination, \"is a symbolic link, and the store keeps none\"))",
            "Ok(Stored::Done)",
        ],
        STORES,
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
        "a copy of a part removes unfinished files that it left out",
        "crates/carrack-engine/src/storage/posix/marker.rs",
        ["let whole = whole && self.unfinished().count == 0;", "let whole = whole || self.unfinished().count > 0;"],
        "-p carrack --test system left::",
    ),
    mutation(
        "a copy of a selection is taken for one of everything",
        "crates/carrack-engine/src/copy/begin.rs",
        ["partial: options.only.is_some() || !options.filters.is_empty(),", "partial: !options.filters.is_empty(),"],
        "-p carrack --test system left::",
    ),
    mutation(
        "a new owner or group gets what the old permissions gave to another",
        "crates/carrack-engine/src/storage/posix/giving.rs",
        ["if shut == now { Ok(()) }", "if shut == now || mode < 0o10000 { Ok(()) }"],
        "-p carrack --test system crash::attributed::sync_that_is_killed",
    ),
    mutation(
        "a file that is written in place stays open to whom it was for",
        "crates/carrack-engine/src/storage/posix/tree/in_place.rs",
        ["let open = if has_all {", "let open = if has_all || stat.size > 0 {"],
        PARTS,
    ),
    mutation(
        "a file of another user is taken for a part of one's own",
        "crates/carrack-engine/src/storage/posix/tree/resume.rs",
        ["is_made_by_us(&directory.dir, stat.uid);", "stat.uid < u32::MAX;"],
        PARTS,
    ),
    mutation(
        "an item gets the name of a marker",
        "crates/carrack-engine/src/storage/posix/names.rs",
        ["if is_marker(&name.to_ascii_lowercase()) {", "if is_marker(name) && name.is_empty() {"],
        PARTS,
    ),
    mutation(
        "what an earlier attempt has published keeps its permissions",
        "crates/carrack-engine/src/storage/posix/tree/known.rs",
        ["wanted & 0o777 == now.mode & 0o777", "wanted < 0o10000"],
        "-p carrack-engine --lib storage::posix::tree::tests::known::",
    ),
    mutation(
        "what has changed since it was looked at is removed",
        "crates/carrack-engine/src/agent/verbs/remove.rs",
        ["unchanged != state_of(&stat)", "unchanged.kind != state_of(&stat).kind"],
        "-p carrack-engine --lib agent::verbs::remove::",
    ),
];
