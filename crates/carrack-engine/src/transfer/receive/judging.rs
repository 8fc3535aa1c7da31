//! What becomes of items that hold nothing, and what would be written in a dry run.

use carrack_core::attributes::KeptAttributes;
use carrack_core::judgment::{ItemDifference, Judgment, LeftBecause};
use carrack_core::plan::compare::CompareRules;
use carrack_core::report::ItemKind;
use carrack_core::request::Existing;
use carrack_core::wire::peer::{AskedItem, AskedLink};

use super::ReceiveRun;
use super::changes::says_the_same;
use super::referring::state_of;
use crate::storage::properties::Properties;
use crate::storage::write::StandingItem;

impl ReceiveRun {
    /// What would become of a further name of a file, in a dry run.
    pub(super) fn judge_further_name(
        &self,
        rules: &CompareRules,
        item: &AskedItem,
        there: Option<&StandingItem>,
    ) -> Judgment {
        let Some(AskedLink { names, anew }) = &item.hard_link else { return Judgment::New };
        let judged = rules.judge(&state_of(item), there.map(|there| &there.state));
        if matches!(judged, Judgment::Left(_)) {
            return judged;
        }
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        if !anew {
            let found: Vec<_> = self.destination.standing(&names, None).into_iter().flatten().flatten().collect();
            let file = there.and_then(|there| there.file);
            let is_one = |first: &StandingItem| first.file.is_some() && first.file == file;
            if found.iter().any(is_one) || found.is_empty() && self.leaves_what_is_elsewhere() {
                return Judgment::Same;
            }
        }
        if let Some(changes) = &self.changes {
            changes.push(changes.further_name(item, names[0], there));
        }
        if there.is_some() { Judgment::Differs(ItemDifference::default()) } else { Judgment::New }
    }

    /// What becomes of a link. What it says has no time: one that says something else is replaced whatever its age.
    /// The same holds for what is special.
    pub(super) fn judge_link(&self, rules: &CompareRules, item: &AskedItem, there: Option<&StandingItem>) -> Judgment {
        let judged = rules.judge(&state_of(item), there.map(|there| &there.state));
        let is_link = there.is_some_and(|there| there.state.kind == item.kind);
        let says_the_same = || says_the_same(&*self.destination, item);
        match judged {
            _ if is_link && self.driver.options.skips() && says_the_same() => Judgment::Same,
            Judgment::Same | Judgment::Undecided | Judgment::Left(LeftBecause::Newer) => {
                Judgment::Differs(ItemDifference::default())
            }
            judged => judged,
        }
    }

    /// What would become of a directory: it is made, or gets its attributes.
    pub(super) fn judge_directory(&self, item: &AskedItem, there: Option<&StandingItem>) -> Judgment {
        match there {
            None if self.driver.options.existing == Existing::Only => Judgment::Left(LeftBecause::Absent),
            None => {
                self.plan_to_write(item, None);
                Judgment::New
            }
            // A link may stand for one.
            Some(there) if there.state.kind == ItemKind::Symlink && self.driver.options.keeps_links => {
                let there = self.destination.standing_directory(&item.path).ok().flatten();
                let is_kept = there.filter(|there| there.state.kind == ItemKind::Directory);
                match is_kept {
                    Some(_) => self.judge_directory(item, is_kept.as_ref()),
                    None => Judgment::Differs(ItemDifference { kind: true, ..ItemDifference::default() }),
                }
            }
            Some(there) if there.state.kind == ItemKind::Directory => {
                self.changes.iter().for_each(|changes| changes.attributes_set(item, there));
                Judgment::Same
            }
            Some(_) => Judgment::Differs(ItemDifference { kind: true, ..ItemDifference::default() }),
        }
    }

    /// In a dry run, tells of an item that would be written. Nothing takes the place of a directory, or of what is
    /// never copied; and nothing is made that the store does not have.
    pub(super) fn plan_to_write(&self, item: &AskedItem, there: Option<&StandingItem>) {
        let KeptAttributes { devices, specials, .. } = self.giving.kept();
        let is_in_the_way = there.is_some_and(|there| match there.state.kind {
            ItemKind::Directory => true,
            ItemKind::Special => !devices && !specials,
            ItemKind::File | ItemKind::Symlink => false,
        });
        let Properties { keeps, links, directories, .. } = self.properties;
        let is_left_out = match item.kind {
            ItemKind::Symlink => keeps && !links,
            ItemKind::Directory => keeps && !directories,
            ItemKind::File | ItemKind::Special => false,
        };
        let would = self.driver.options.plan_only && !is_in_the_way && !is_left_out;
        if let Some(changes) = self.changes.as_ref().filter(|_| would) {
            changes.push(changes.written(&*self.destination, item, there));
        }
    }
}
