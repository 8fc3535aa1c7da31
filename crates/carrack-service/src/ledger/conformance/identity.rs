//! Rules on users and tokens.

use super::{Rule, at, note, rules};
use crate::clock::Moment;
use crate::ledger::{Ledger, LedgerError, Submission, TaskChange, TaskGuard, UseTaken, UserChange, UserRow};
use crate::model::{
    Ceilings, NewTask, Pair, Progress, Role, Scope, Task, TaskKind, TaskState, TokenRow, TokenUse, User, Verb,
};

pub const RULES: &[Rule] = rules! {
    user_is_kept_as_it_was_added
    user_with_a_name_or_an_account_in_use_is_refused
    user_is_found_by_account
    user_changes_to_an_account_in_use_are_refused
    user_change_ends_sessions_where_rights_change
    user_change_leaves_what_it_does_not_name
    user_change_needs_the_password_that_it_says
    token_is_kept_with_its_digest_and_its_user
    token_needs_its_user_and_an_identifier_of_its_own
    token_use_is_noted_to_the_minute
    token_removed_is_gone
    tokens_are_told_by_user_the_latest_first
    use_of_a_token_is_counted_over_its_tasks_and_files_up_to_its_ceilings
    sessions_are_removed_of_one_user
    revoked_grants_are_kept_until_they_expire_or_are_restored
};

fn row(name: &str, account: Option<u32>) -> UserRow {
    let user = User { name: name.to_owned(), role: Role::User, account, enabled: true, added: at(1) };
    UserRow { user, password: Some("$argon2id$v=19$...".to_owned()) }
}

fn parts(row: UserRow) -> (User, Option<String>) {
    (row.user, row.password)
}

fn token(id: &str, user: &str, is_session: bool) -> TokenRow {
    TokenRow {
        id: id.to_owned(),
        user: user.to_owned(),
        label: "for the beamline's script".to_owned(),
        scope: Some(Scope {
            verbs: vec![Verb::Read, Verb::Tasks],
            endpoints: vec!["here".to_owned()],
            path: Some("/run 4".to_owned()),
            ceilings: Ceilings { bytes: Some(u64::MAX), ..Ceilings::default() },
        }),
        made: at(2),
        expires: Some(at(100)),
        used: None,
        is_session,
    }
}

fn use_of_a_token_is_counted_over_its_tasks_and_files_up_to_its_ceilings(ledger: &dyn Ledger) {
    let most = Ceilings { bytes: Some(100), deletions: Some(1), ..Ceilings::default() };
    let submit = |id: &str, kind| {
        let pair = Pair { source: "@a:/x".to_owned(), destination: Some("@b:/x".to_owned()) };
        let request =
            NewTask { kind, pairs: vec![pair], token: Some("t".to_owned()), ceilings: most, ..NewTask::default() };
        let (id, owner, endpoints) = (id.to_owned(), "ada".to_owned(), Vec::new());
        let submission = Submission { id, owner, submission_id: None, request, endpoints, estimate: None };
        ledger.submit(&submission, at(1)).unwrap().task
    };
    let told = |task: &Task, progress| {
        let change = TaskChange { progress: Some(progress), ..TaskChange::default() };
        ledger.change_task(&task.id, &TaskGuard::default(), &change, &[], at(2)).unwrap();
    };
    let moved = |task: &Task, items_done, bytes_moved| {
        told(task, Progress { items_done, bytes_moved, ..Progress::default() });
    };
    assert_eq!(ledger.token_use("t").unwrap(), TokenUse::default());
    let (copy, other) = (submit("copy", TaskKind::Copy), submit("move", TaskKind::Move));
    moved(&copy, 1, 30);
    moved(&copy, 2, 50);
    // What an attempt begins anew counts again.
    moved(&copy, 0, 0);
    moved(&copy, 1, 10);
    assert_eq!(ledger.token_use("t").unwrap(), TokenUse::of(3, 60));
    // So does what was lost and is there again between two looks.
    told(&copy, Progress { items_done: 1, bytes_moved: 10, items_lost: 1, bytes_lost: 5, ..Progress::default() });
    assert_eq!(ledger.token_use("t").unwrap(), TokenUse::of(4, 65));
    moved(&other, 1, 20);
    assert_eq!(ledger.token_use("t").unwrap(), TokenUse { deletions: 1, ..TokenUse::of(5, 85) });
    // Files: what does not fit is not taken.
    let take = |more: &TokenUse| ledger.count_use("ada", "t", more, &most).unwrap();
    assert_eq!(take(&TokenUse::of(1, 16)), UseTaken::Over("100 bytes".to_owned()));
    assert_eq!(take(&TokenUse::of(6, 15)), UseTaken::Taken);
    let deleted = TokenUse { deletions: 1, ..TokenUse::default() };
    assert_eq!(take(&deleted), UseTaken::Over("1 deletions".to_owned()));
    // A task that is under way may take all that is left.
    let at_state = |state| {
        let change = TaskChange { state: Some(state), ..TaskChange::default() };
        ledger.change_task(&copy.id, &TaskGuard::default(), &change, &[], at(2)).unwrap();
    };
    ledger.claim(&copy.id, at(2), &note(&copy.id, "begins")).unwrap();
    for state in [TaskState::Active, TaskState::Cancelling] {
        if state == TaskState::Cancelling {
            at_state(state);
        }
        let one_byte = TokenUse::of(0, 1);
        assert_eq!(take(&one_byte), UseTaken::Running("copy".to_owned()));
        assert_eq!(ledger.count_use("ada", "other", &one_byte, &most).unwrap(), UseTaken::Taken);
        assert_eq!(ledger.count_use("bob", "u", &one_byte, &most).unwrap(), UseTaken::Taken);
        // Items have no ceiling.
        assert_eq!(take(&TokenUse::of(1, 0)), UseTaken::Taken);
    }
    at_state(TaskState::Cancelled);
    assert_eq!(take(&TokenUse::of(0, 1)), UseTaken::Over("100 bytes".to_owned()));
    assert_eq!(ledger.token_use("t").unwrap(), TokenUse { deletions: 1, ..TokenUse::of(13, 100) });
    assert_eq!(ledger.token_use("another").unwrap(), TokenUse::default());
    ledger.add_user(&row("ada", None)).unwrap();
    ledger.add_token(&token("t", "ada", false), &[1; 32]).unwrap();
    ledger.remove_token("t").unwrap();
    assert_eq!(ledger.token_use("t").unwrap(), TokenUse::default());
}

fn user_is_kept_as_it_was_added(ledger: &dyn Ledger) {
    for (number, role) in (0..).zip(Role::ALL) {
        let mut added = row(&format!("u{number}@lab"), (number > 0).then_some(u32::MAX - number));
        added.user.role = *role;
        added.user.enabled = number != 1;
        added.password = (number == 2).then(|| "hash".to_owned());
        ledger.add_user(&added).unwrap();
        assert_eq!(parts(ledger.user(&added.user.name).unwrap()), parts(added));
    }
    let names: Vec<_> = ledger.users().unwrap().into_iter().map(|user| user.name).collect();
    assert_eq!(names, ["u0@lab", "u1@lab", "u2@lab"]);
    assert!(matches!(ledger.user("u"), Err(LedgerError::Missing)));
}

fn user_with_a_name_or_an_account_in_use_is_refused(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", Some(1000))).unwrap();
    assert_eq!(ledger.add_user(&row("ada", None)), Err(LedgerError::Taken));
    assert_eq!(ledger.add_user(&row("bob", Some(1000))), Err(LedgerError::Taken));
    ledger.add_user(&row("bob", None)).unwrap();
    ledger.add_user(&row("eve", None)).unwrap();
    assert_eq!(ledger.users().unwrap().len(), 3);
    assert_eq!(ledger.user("ada").unwrap().user.account, Some(1000));
}

fn user_is_found_by_account(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", Some(0))).unwrap();
    ledger.add_user(&row("bob", None)).unwrap();
    assert_eq!(ledger.user_of_account(0).unwrap().map(|row| row.user.name).as_deref(), Some("ada"));
    assert!(ledger.user_of_account(1).unwrap().is_none());
}

fn user_changes_to_an_account_in_use_are_refused(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", Some(1))).unwrap();
    ledger.add_user(&row("bob", Some(2))).unwrap();
    let change = |name: &str, account| {
        let change = UserChange { account: Some(account), ..UserChange::default() };
        ledger.change_user(name, &change).map(|(row, _)| row.user.account)
    };
    assert_eq!(change("bob", Some(1)), Err(LedgerError::Taken));
    assert_eq!(change("eve", Some(3)), Err(LedgerError::Missing));
    assert_eq!(ledger.user("bob").unwrap().user.account, Some(2));
    assert_eq!((change("bob", None), change("ada", Some(2))), (Ok(None), Ok(Some(2))));
    assert_eq!(ledger.user_of_account(2).unwrap().map(|row| row.user.name).as_deref(), Some("ada"));
}

fn user_change_ends_sessions_where_rights_change(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", None)).unwrap();
    let before = UserChange {
        role: Some(Role::User),
        account: Some(None),
        enabled: Some(true),
        password: Some(row("ada", None).password),
        password_was: None,
    };
    let other_account = UserChange { account: Some(Some(5)), ..UserChange::default() };
    let other_role = UserChange { role: Some(Role::Viewer), ..UserChange::default() };
    let no_password = UserChange { password: Some(None), ..UserChange::default() };
    let disabled = UserChange { enabled: Some(false), ..UserChange::default() };
    for (change, ends) in [(other_account, false), (other_role, true), (no_password, true), (disabled, true)] {
        let (mut expected, _) = ledger.change_user("ada", &before).unwrap();
        let id = format!("session {ends}");
        ledger.add_token(&token(&id, "ada", true), &[1; 32]).unwrap();
        ledger.add_token(&token("script", "ada", false), &[2; 32]).unwrap();
        let (after, ended) = ledger.change_user("ada", &change).unwrap();
        expected.user.role = change.role.unwrap_or(Role::User);
        expected.user.account = change.account.unwrap_or(None);
        expected.user.enabled = change.enabled.unwrap_or(true);
        expected.password = change.password.unwrap_or(expected.password);
        assert_eq!(parts(ledger.user("ada").unwrap()), parts(expected.clone()));
        assert_eq!(parts(after), parts(expected));
        assert_eq!(ended.contains(&id), ends);
        assert_eq!(ledger.token(&id).is_err(), ends);
        // What a script has is revoked by its name, or goes unused while its user is disabled.
        assert_eq!(ledger.token("script").unwrap().0.id, "script");
        ledger.remove_token("script").unwrap();
    }
}

/// Two who change different things of a user at once do not undo each other's.
fn user_change_leaves_what_it_does_not_name(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", Some(1))).unwrap();
    let disable = UserChange { enabled: Some(false), ..UserChange::default() };
    ledger.change_user("ada", &disable).unwrap();
    let password = UserChange { password: Some(Some("another".to_owned())), ..UserChange::default() };
    let (after, _) = ledger.change_user("ada", &password).unwrap();
    let mut expected = row("ada", Some(1));
    (expected.user.enabled, expected.password) = (false, Some("another".to_owned()));
    assert_eq!(parts(after), parts(expected));
    let (after, ended) = ledger.change_user("ada", &UserChange::default()).unwrap();
    assert_eq!((after.user.enabled, ended), (false, Vec::new()));
}

fn user_change_needs_the_password_that_it_says(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", None)).unwrap();
    let change = |was: Option<&str>, to: &str| {
        let password = Some(Some(to.to_owned()));
        let password_was = Some(was.map(str::to_owned));
        ledger.change_user("ada", &UserChange { password, password_was, ..UserChange::default() }).map(|_| ())
    };
    for was in [None, Some("another")] {
        assert!(matches!(change(was, "new"), Err(LedgerError::Conflict(_))), "{was:?}");
    }
    let first = row("ada", None).password;
    assert_eq!(change(first.as_deref(), "new"), Ok(()));
    assert!(matches!(change(first.as_deref(), "newer"), Err(LedgerError::Conflict(_))));
    assert_eq!(ledger.user("ada").unwrap().password.as_deref(), Some("new"));
}

fn token_is_kept_with_its_digest_and_its_user(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", Some(7))).unwrap();
    let digest: [u8; 32] = std::array::from_fn(|at| u8::try_from(at).unwrap() * 8);
    let plain = TokenRow { scope: None, expires: None, used: Some(at(3)), ..token("plain", "ada", true) };
    for row in [token("scoped", "ada", false), plain] {
        ledger.add_token(&row, &digest).unwrap();
        assert_eq!(ledger.token(&row.id).unwrap(), (row, digest, ledger.user("ada").unwrap().user));
    }
}

fn token_needs_its_user_and_an_identifier_of_its_own(ledger: &dyn Ledger) {
    assert_eq!(ledger.add_token(&token("t", "ada", false), &[1; 32]), Err(LedgerError::Missing));
    ledger.add_user(&row("ada", None)).unwrap();
    ledger.add_user(&row("bob", None)).unwrap();
    ledger.add_token(&token("t", "ada", false), &[1; 32]).unwrap();
    assert_eq!(ledger.add_token(&token("t", "bob", false), &[2; 32]), Err(LedgerError::Taken));
    let (kept, digest, user) = ledger.token("t").unwrap();
    assert_eq!((kept.user.as_str(), digest, user.name.as_str()), ("ada", [1; 32], "ada"));
}

fn token_use_is_noted_to_the_minute(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", None)).unwrap();
    ledger.add_token(&token("t", "ada", false), &[1; 32]).unwrap();
    let used = |now: Moment| {
        ledger.token_used("t", now).unwrap();
        ledger.token("t").unwrap().0.used.unwrap().0
    };
    let minute = 60_000_000;
    assert_eq!(used(Moment(10 * minute + 1)), 10 * minute);
    assert_eq!(used(Moment(11 * minute - 1)), 10 * minute);
    assert_eq!(used(Moment(11 * minute)), 11 * minute);
    assert_eq!(used(Moment(9 * minute)), 11 * minute);
    // One that was revoked meanwhile is no error.
    assert_eq!(ledger.token_used("nobody's", Moment(0)), Ok(()));
}

fn token_removed_is_gone(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", None)).unwrap();
    ledger.add_token(&token("t", "ada", false), &[1; 32]).unwrap();
    ledger.remove_token("t").unwrap();
    assert_eq!(ledger.token("t"), Err(LedgerError::Missing));
    assert_eq!(ledger.remove_token("t"), Err(LedgerError::Missing));
    assert_eq!(ledger.tokens("ada").unwrap(), []);
}

fn tokens_are_told_by_user_the_latest_first(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", None)).unwrap();
    ledger.add_user(&row("bob", None)).unwrap();
    for (id, user) in [("z", "ada"), ("b", "bob"), ("a", "ada")] {
        ledger.add_token(&token(id, user, false), &[1; 32]).unwrap();
    }
    assert_eq!(ledger.tokens("ada").unwrap(), [token("a", "ada", false), token("z", "ada", false)]);
    assert_eq!(ledger.tokens("eve").unwrap(), []);
}

fn sessions_are_removed_of_one_user(ledger: &dyn Ledger) {
    ledger.add_user(&row("ada", None)).unwrap();
    ledger.add_user(&row("bob", None)).unwrap();
    for (id, user, is_session) in [("1", "ada", true), ("2", "ada", false), ("3", "ada", true), ("4", "bob", true)] {
        ledger.add_token(&token(id, user, is_session), &[1; 32]).unwrap();
    }
    let mut removed = ledger.remove_sessions("ada").unwrap();
    removed.sort();
    assert_eq!(removed, ["1", "3"]);
    assert_eq!(ledger.remove_sessions("ada").unwrap(), [""; 0]);
    assert_eq!(ledger.tokens("ada").unwrap(), [token("2", "ada", false)]);
    assert_eq!(ledger.tokens("bob").unwrap().len(), 1);
}

fn revoked_grants_are_kept_until_they_expire_or_are_restored(ledger: &dyn Ledger) {
    let [one, two, three] = [1, 2, 3].map(|number| [number; 16]);
    ledger.revoke_grants(&two, at(20), at(1)).unwrap();
    ledger.revoke_grants(&one, at(10), at(1)).unwrap();
    assert_eq!(ledger.revoked_grants(at(5)).unwrap(), [(one, at(10)), (two, at(20))]);
    // Later counts, and earlier does not take anything back.
    ledger.revoke_grants(&one, at(15), at(5)).unwrap();
    ledger.revoke_grants(&one, at(12), at(5)).unwrap();
    assert_eq!(ledger.revoked_grants(at(14)).unwrap(), [(one, at(15)), (two, at(20))]);
    assert_eq!(ledger.revoked_grants(at(15)).unwrap(), [(two, at(20))]);
    ledger.restore_grants(&two).unwrap();
    ledger.restore_grants(&three).unwrap();
    ledger.revoke_grants(&three, at(40), at(30)).unwrap();
    // What is over was forgotten by then, whatever the clock says later.
    assert_eq!(ledger.revoked_grants(at(0)).unwrap(), [(three, at(40))]);
}
