//! What a peer asks to read over the control connection: listings, digests, and ranges of files.

use carrack_core::report::Failure;
use carrack_core::wire::control::{List, ReadFile, Sum, Tell};

use super::{Agent, verbs};

impl Agent {
    pub(super) fn list(&self, request: u64, list: &List) -> Result<u64, Failure> {
        let filters = self.chosen_filters();
        let sees_all = self.environment.grant.is_none();
        let send = &mut |page| self.page(request, Tell::Page(page));
        if let Some(survey) = &list.survey {
            let selection = self.chosen_selection();
            let chosen = verbs::SurveyChoice { filters: &filters, selection: selection.as_ref(), sees_all };
            let work = verbs::Summing { tuning: &self.environment.tuning, unread: &self.unread };
            return verbs::survey(&self.environment.place, (&list.path, survey), &chosen, &work, send);
        }
        verbs::list(&self.environment.place, list, &filters, sees_all, send)
    }

    pub(super) fn sum(&self, request: u64, sum: &Sum) -> Result<u64, Failure> {
        let filters = self.chosen_filters();
        let work = verbs::Summing { tuning: &self.environment.tuning, unread: &self.unread };
        let send = &mut |sums| self.page(request, Tell::Sums(sums));
        verbs::sum(&self.environment.place, sum, &filters, &work, send)
    }

    pub(super) fn read(&self, request: u64, read: &ReadFile) -> Result<u64, Failure> {
        let grant = self.environment.grant.as_ref();
        let work = verbs::Summing { tuning: &self.environment.tuning, unread: &self.unread };
        let over = |source| match grant {
            Some(grant) => grant.count_source(source),
            None => source,
        };
        verbs::read(&self.environment.place, read, &over, &work, &mut |tell| {
            if let Tell::Part(content) = &tell {
                // A session that is being ended does not wait for the end of what it does.
                grant.map_or(Ok(()), |grant| grant.check_in_force())?;
                self.record.carried((content.len() as u64, 0));
            }
            self.page(request, tell)
        })
    }
}
