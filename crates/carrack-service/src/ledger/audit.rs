//! The audit: what people did and what they were refused, as a ledger keeps it.

use std::collections::BTreeMap;

use crate::clock::Moment;
use crate::model::AuditLine;

/// Lines of the audit that are kept, whatever their age.
pub const AUDIT_LINES_MOST: usize = 500_000;
/// The same of strangers who were refused: however many they are, they push nothing else out.
pub const STRANGERS_LINES_MOST: usize = 50_000;

/// Something that somebody did, or was refused, to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAuditLine {
    /// When.
    pub time: Moment,
    /// Who.
    pub user: String,
    /// By what they were known.
    pub via: String,
    /// The token or the session.
    pub token: Option<String>,
    /// The address that it came from.
    pub from: Option<String>,
    /// The method and the route.
    pub action: String,
    /// What it was about.
    pub object: Option<String>,
    /// The status of the answer.
    pub status: u16,
}

/// Which lines of the audit are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// In whose user, action, object, address or token this stands, in whatever case of ASCII.
    pub text: Option<String>,
    /// At this moment or later.
    pub from: Option<Moment>,
    /// Before this moment.
    pub to: Option<Moment>,
    /// Before the line with this number.
    pub before: Option<u64>,
}

impl AuditFilter {
    fn takes(&self, line: &AuditLine) -> bool {
        let words =
            [Some(&line.user), Some(&line.action), line.object.as_ref(), line.from.as_ref(), line.token.as_ref()];
        let mentions = |text: &String| {
            let text = text.to_ascii_lowercase();
            words.into_iter().flatten().any(|word| word.to_ascii_lowercase().contains(&text))
        };
        self.text.as_ref().is_none_or(mentions)
            && self.from.is_none_or(|from| line.time >= from)
            && self.to.is_none_or(|to| line.time < to)
    }
}

/// Lines in memory, by their numbers.
#[derive(Debug, Default)]
pub struct AuditLines {
    lines: BTreeMap<u64, AuditLine>,
    last: u64,
}

impl AuditLines {
    /// Keeps lines.
    pub fn add(&mut self, lines: &[NewAuditLine]) {
        for NewAuditLine { time, user, via, token, from, action, object, status } in lines.iter().cloned() {
            self.last += 1;
            let id = self.last;
            self.lines.insert(id, AuditLine { id, time, user, via, token, from, action, object, status });
        }
    }

    /// The lines that are meant, the latest first.
    pub fn list(&self, filter: &AuditFilter, limit: usize) -> Vec<AuditLine> {
        let lines = self.lines.range(..filter.before.unwrap_or(u64::MAX)).rev().map(|(_, line)| line);
        lines.filter(|line| filter.takes(line)).take(limit).cloned().collect()
    }

    /// Removes so many lines of before a moment, the oldest first.
    pub fn forget(&mut self, before: Moment, limit: usize) {
        let old = self.lines.values().filter(|line| line.time < before);
        let mut old: Vec<_> = old.map(|line| (line.time, line.id)).collect();
        old.sort_unstable();
        for (_, id) in old.into_iter().take(limit) {
            self.lines.remove(&id);
        }
    }
}
