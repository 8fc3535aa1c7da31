//! What a receipt says as a whole: its last line.

use std::collections::BTreeMap;

use carrack_core::attributes::KeptAttributes;
use carrack_core::filter::Filters;
use carrack_core::plan::check::CheckCounts;
use carrack_core::report::{Counts, EndFacts, LinkReport, Report};
use carrack_core::request::{Compare, CopyOptions, Verify};
use carrack_core::words;
use carrack_engine::check::ComparisonReport;
use serde::{Deserialize, Serialize};

words! {
    /// What a receipt is of.
    pub enum Deed {
        Copy "copy" "files were copied"
        Sync "sync" "a directory was made like another"
        Task "task" "a service carried out a task"
        Check "check" "two places were compared"
    }
}

words! {
    /// How it ended.
    pub enum Ending {
        Complete "complete" "each item has come to a good end"
        Partial "partial" "some items failed, or are different; the others are as the receipt says"
        Cut "cut" "it came to an early end, and more items may exist than the receipt names"
    }
}

/// What a receipt says as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The version of the form, [`crate::VERSION`].
    pub carrack_receipt: u32,
    /// 32 hexadecimal digits by chance; of a task, its identifier.
    pub id: String,
    /// A word of [`Deed`].
    pub of: String,
    /// A word of [`Ending`].
    pub ending: String,
    /// Why it came to an early end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it began, by the clock of the host that signed, RFC 3339.
    pub began: String,
    /// When the receipt was made.
    pub made: String,
    /// The version of the program that signed.
    pub program: String,
    /// The places, in words that can be typed; secrets are left out.
    pub sources: Vec<String>,
    /// The directory that paths of items are relative to.
    pub destination: String,
    /// Both ends, as they said of themselves.
    pub hosts: Vec<HostFacts>,
    /// How the bytes travelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// How each file was proved while it was copied, a word of `--verify`; none where nothing was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// What had to reach stable storage, a word of `--durable`,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<String>,
    /// and whether all of it had when the copy ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_durable: Option<bool>,
    /// By what two sides were compared, a word; none where nothing was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<String>,
    /// Attributes that were to be kept beside permissions and times, as [`KeptAttributes::bits`] has them.
    pub kept: u32,
    /// Items that lost something, by what it was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unkept: BTreeMap<String, u64>,
    /// Items that were left out, by why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
    /// Items by what became of them.
    pub outcomes: BTreeMap<String, u64>,
    /// Bytes of the files that the destination has.
    pub bytes: u64,
    /// What the receipt does not say, a sentence each.
    pub not_claimed: Vec<String>,
    /// Lines of items.
    pub items: u64,
    /// BLAKE3 of these lines with their ends: a tree of digests, which `b3sum` makes as well.
    pub items_blake3: String,
}

/// An end, as it said of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// `source` or `destination`.
    pub side: String,
    /// As messages call it.
    pub name: String,
    /// Its operating system.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// Version of its program.
    pub program: String,
    /// The key that it has shown, where it is a node: its fingerprint. An ssh host's key is ssh's to check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// How bytes travelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transport {
    /// A word of `--link`, or `memory`.
    pub link: String,
    /// Where data connections went.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Their cipher; `none` in the clear.
    pub cipher: String,
    /// Whether blocks were compressed on the way.
    #[serde(default)]
    pub compressed: bool,
}

impl HostFacts {
    /// Of an end.
    pub fn of(side: &str, facts: &EndFacts) -> Self {
        let EndFacts { name, program, system, key, .. } = facts;
        Self {
            side: side.into(),
            name: name.clone(),
            system: system.clone(),
            program: program.clone(),
            key: key.clone(),
        }
    }
}

impl Transport {
    fn of(link: &LinkReport, counts: &Counts) -> Self {
        Self {
            link: link.kind.name().into(),
            address: link.address.clone(),
            cipher: link.cipher.clone(),
            compressed: counts.bytes_compressed > 0,
        }
    }
}

impl Statement {
    /// With what a copy reports. Items that were left out never come as items.
    #[must_use]
    pub fn with_report(mut self, report: &Report, options: &CopyOptions) -> Self {
        self.transport = report.link.as_ref().map(|link| Transport::of(link, &report.counts));
        self.verified = report.verify.map(|verify| verify.name().to_owned());
        self.durable = report.durability.map(|durability| durability.name().to_owned());
        self.is_durable = report.durable;
        self.error = report.error.as_ref().map(|why| format!("{}: {}", why.code, why.why));
        let ending = match (&report.error, report.counts.files_failed + u64::from(report.undeleted.is_some())) {
            (Some(_), _) => Ending::Cut,
            (None, 0) => Ending::Complete,
            (None, _) => Ending::Partial,
        };
        self.ending = ending.name().into();
        let Counts { specials_skipped, leftovers_skipped, links_skipped, .. } = report.counts;
        for (why, count) in
            [("special files", specials_skipped), ("unfinished files", leftovers_skipped), ("links", links_skipped)]
        {
            add(&mut self.left_out, why, count);
        }
        let unkept = report.unkept_permissions.as_ref().map_or(0, |unkept| unkept.count);
        add(&mut self.unkept, "permissions", unkept);
        add(&mut self.unkept, "modification times", report.unkept_times.as_ref().map_or(0, |unkept| unkept.count));
        for (kind, count) in report.unkept_attributes.iter().flat_map(|unkept| &unkept.kinds) {
            add(&mut self.unkept, &kind.to_string(), *count);
        }
        self.leave_out(options);
        if report.verify == Some(Verify::None) {
            self.not_claimed.push("content was not proved while it was copied".into());
        }
        if report.durable == Some(false) {
            self.not_claimed.push("not everything had reached stable storage when the copy ended".into());
        }
        self
    }

    /// With what a comparison of two places has found.
    #[must_use]
    pub fn with_comparison(mut self, report: &ComparisonReport, options: &CopyOptions) -> Self {
        let CheckCounts { failed, timeless, unlinked, untold, .. } = report.counts;
        self.hosts = [("source", &report.ends[0]), ("destination", &report.ends[1])]
            .into_iter()
            .filter_map(|(side, end)| end.as_ref().map(|end| HostFacts::of(side, end)))
            .collect();
        self.error = report.error.as_ref().map(|why| format!("{}: {}", why.code, why.why));
        let ending = match (&report.error, report.counts.differences() + failed) {
            (Some(_), _) => Ending::Cut,
            (None, 0) => Ending::Complete,
            (None, _) => Ending::Partial,
        };
        self.ending = ending.name().into();
        self.compared = Some(options.compare.name().into());
        self.kept = listed_attributes(options.kept).bits();
        self.leave_out(options);
        if options.compare != Compare::Content {
            self.not_claimed.push("content: it was not read".into());
        }
        if timeless > 0 {
            self.not_claimed.push(format!("that the times of {timeless} files are the same: one place has none"));
        }
        if unlinked > 0 {
            self.not_claimed.push(format!("whether {unlinked} names are of one file at both places"));
        }
        if untold > 0 {
            self.not_claimed.push(format!("ACLs or extended attributes of {untold} items: they did not come"));
        }
        self
    }

    fn leave_out(&mut self, options: &CopyOptions) {
        if options.filters != Filters::default() || options.only.is_some() {
            self.not_claimed.push("what the rules left out is not named".into());
        }
    }

    /// Attributes that were to be kept; of a later version, those that this one knows none of.
    pub fn kept(&self) -> KeptAttributes {
        KeptAttributes::from_bits(self.kept).unwrap_or_default()
    }

    /// The sentences about what every receipt leaves unsaid, behind those of this one.
    pub(crate) fn complete(&mut self) {
        let named = |outcome: &str| self.outcomes.get(outcome).copied().unwrap_or_default();
        let (failed, kept, changed) = (named("failed"), named("kept"), named("changed"));
        let others = named("differs") + named("missing") + named("extra");
        let mut more = Vec::new();
        if failed > 0 {
            more.push(format!("{failed} items that failed: what the destination has at their names"));
        }
        if kept > 0 {
            more.push(format!("{kept} items that were left alone: what the destination has at their names"));
        }
        if changed > 0 {
            more.push(format!("{changed} items that were something else when the receipt was made"));
        }
        if others > 0 {
            more.push(format!("{others} items that differ, or that one place does not have"));
        }
        more.push("the top, directories that are not listed, and the times of directories and links".into());
        more.push("that nothing else stands at the destination".into());
        more.push("that the clock of the host that signed was right".into());
        self.not_claimed.append(&mut more);
    }
}

/// What is told of items: what was to be kept, but for what no listing tells.
pub(crate) fn listed_attributes(kept: KeptAttributes) -> KeptAttributes {
    KeptAttributes { hard_links: false, access_times: false, ..kept }
}

fn add(counts: &mut BTreeMap<String, u64>, what: &str, count: u64) {
    if count > 0 {
        *counts.entry(what.to_owned()).or_default() += count;
    }
}
