//! Requests that read all of something: how much a tree takes, and the digest of a file.

use std::collections::HashSet;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::join;
use carrack_core::report::ItemKind;
use carrack_core::request::Digests;
use carrack_engine::Stop;
use carrack_engine::files::{ListEntry, UsageEntry};

use super::end::End;
use super::reply::Reply;
use crate::identity::ScopePath;
use crate::model::{DiskUsage, FileDigest, PathFailure, Verb, text_of};

/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(500);
/// Failures that are told; all are counted.
const FAILURES_MAX: usize = 20;

/// Counts what paths take, and tells how far that is now and then. What cannot be read is counted as failed.
///
/// # Errors
/// Those of the end. A path that cannot be looked at at all is none.
pub fn usage(end: &End, stop: &Stop, paths: &[String], reply: &mut Reply) -> Result<(), Failure> {
    let mut count = Count { told: Instant::now(), usage: DiskUsage::default(), unknown: false, twins: HashSet::new() };
    let mut gone = Ok(());
    for path in paths {
        let at = end.path(path, Verb::Read)?;
        // Told as it was asked for: what stands above the endpoint's root is nobody's matter.
        let shown = ScopePath::parse(path).map(|path| [b"/", &path.bytes()[..]].concat()).unwrap_or_default();
        let counted = end.with_files(stop, |files| {
            files.usage(&at, &mut |found| {
                let (entry, name) = match found {
                    UsageEntry::Itself(entry) => (entry, shown.clone()),
                    UsageEntry::Below(entry) => {
                        let name = join(&shown, &entry.path);
                        (entry, name)
                    }
                };
                count.add(&entry, &name);
                if count.told.elapsed() >= TOLD_EVERY && gone.is_ok() {
                    count.told = Instant::now();
                    gone = reply.document(&count.usage(false));
                }
            })
        });
        stop.check()?;
        gone.clone()?;
        if let Err(failure) = counted {
            count.fail(&shown, &failure);
        }
    }
    reply.done_with(&count.usage(true))
}

struct Count {
    told: Instant,
    usage: DiskUsage,
    /// It is not known what something takes.
    unknown: bool,
    /// Files of several names that were counted.
    twins: HashSet<NonZeroU64>,
}

impl Count {
    fn add(&mut self, entry: &ListEntry, name: &[u8]) {
        if let Some(failure) = &entry.error {
            return self.fail(name, failure);
        }
        if entry.twin.is_some_and(|twin| !self.twins.insert(twin)) {
            return;
        }
        let usage = &mut self.usage;
        match entry.kind {
            ItemKind::Directory => usage.directories += 1,
            _ => usage.files += 1,
        }
        if matches!(entry.kind, ItemKind::File | ItemKind::Symlink) {
            usage.bytes = usage.bytes.saturating_add(entry.size);
        }
        match entry.allocated {
            Some(allocated) => usage.allocated = Some(usage.allocated.unwrap_or(0).saturating_add(allocated)),
            None => self.unknown = true,
        }
    }

    fn fail(&mut self, path: &[u8], failure: &Failure) {
        self.usage.failed += 1;
        if self.usage.failures.len() < FAILURES_MAX {
            let message = failure.message_of(path);
            self.usage.failures.push(PathFailure { path: text_of(path), message });
        }
    }

    fn usage(&self, done: bool) -> DiskUsage {
        let failures = if done { self.usage.failures.clone() } else { Vec::new() };
        DiskUsage { allocated: self.usage.allocated.filter(|_| !self.unknown), failures, done, ..self.usage.clone() }
    }
}

/// The BLAKE3 digest of a file.
///
/// # Errors
/// Those of the endpoint; [`ErrorCode::IsADirectory`].
pub fn sum(end: &End, stop: &Stop, path: &str) -> Result<FileDigest, Failure> {
    let at = end.path(path, Verb::Read)?;
    end.with_files(stop, |files| {
        if files.stat(&at)?.kind == ItemKind::Directory {
            let why = "it is a directory, which has no digest of its own";
            return Err(Failure::new(ErrorCode::IsADirectory, Side::Source, why).at_path(&at[..]));
        }
        let mut found = None;
        files.sum(&at, Digests::BLAKE3, &mut |entry| found = Some(entry))?;
        let missing = || Failure::new(ErrorCode::Internal, Side::Source, "the endpoint told no digest");
        let entry = found.ok_or_else(missing)?;
        let digest = entry.result?.blake3.ok_or_else(missing)?;
        Ok(FileDigest { digest: data_encoding::HEXLOWER.encode(&digest), size: entry.size })
    })
}
