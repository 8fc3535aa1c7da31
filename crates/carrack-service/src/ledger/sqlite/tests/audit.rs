//! The audit's two parts: strangers push nothing else out.

use super::*;
use crate::ledger::Retention;
use crate::ledger::audit::{AuditFilter, NewAuditLine, STRANGERS_LINES_MOST};

#[test]
fn audit_of_admins_is_not_pushed_out_by_strangers_who_were_refused() {
    let place = Place::new();
    let ledger = place.open();
    let line = |user: &str, via: &str, status: u16| NewAuditLine {
        time: Moment(1),
        user: user.to_owned(),
        via: via.to_owned(),
        token: None,
        from: None,
        action: "POST /login".to_owned(),
        object: None,
        status,
    };
    // Of these none is a stranger's: a refusal of somebody who is known, and a login.
    ledger.note(&[line("root", "session", 200), line("root", "token", 403), line("ann", "", 200)]).unwrap();
    ledger.note(&vec![line("stranger", "", 401); STRANGERS_LINES_MOST + 20]).unwrap();
    let retention = Retention { tasks_ended_before: Moment(0), events_before: Moment(0), limit: 100 };
    ledger.forget(&retention).unwrap();
    let count = |text: &str| {
        let filter = AuditFilter { text: Some(text.to_owned()), ..AuditFilter::default() };
        ledger.audit(&filter, usize::MAX >> 1).unwrap().len()
    };
    assert_eq!((count("root"), count("ann"), count("stranger")), (2, 1, STRANGERS_LINES_MOST));
}
