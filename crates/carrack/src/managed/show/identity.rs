//! Users and tokens.

use carrack_service::model::{Ceilings, Scope, TokenRow, User, Whoami};

use super::{maybe_time, shortened};
use crate::output::{format, human};

/// Headings of [`user_row`].
pub const USER_HEADINGS: [&str; 4] = ["USER", "ROLE", "ACCOUNT", "ENABLED"];

/// A user in a list.
pub fn user_row(user: &User) -> [String; 4] {
    [
        human::safe(&user.name),
        user.role.name().to_owned(),
        user.account.map_or_else(|| "-".to_owned(), |account| account.to_string()),
        if user.enabled { "yes" } else { "no" }.to_owned(),
    ]
}

/// Headings of [`token_row`].
pub const TOKEN_HEADINGS: [&str; 6] = ["TOKEN", "USER", "EXPIRES", "USED", "MAY", "LABEL"];

/// A token in a list. What it consists of is not known any more.
pub fn token_row(token: &TokenRow) -> [String; 6] {
    let label = if token.is_session && token.label.is_empty() { "a login" } else { &token.label };
    [
        human::safe(&token.id),
        human::safe(&token.user),
        maybe_time(token.expires),
        maybe_time(token.used),
        scope_words(token.scope.as_ref()),
        shortened(label, 40),
    ]
}

/// What a token allows.
pub fn scope_words(scope: Option<&Scope>) -> String {
    let Some(scope) = scope else { return "all".to_owned() };
    let mut words = scope.verbs.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(",");
    for endpoint in &scope.endpoints {
        words += &format!(" @{endpoint}:{}", scope.path.as_deref().unwrap_or("/"));
    }
    let Ceilings { entries, bytes, deletions, run_seconds } = scope.ceilings;
    let ceilings = [
        entries.map(|most| format!("{} entries", format::count(most))),
        bytes.map(format::size),
        deletions.map(|most| format!("{} deletions", format::count(most))),
        run_seconds.map(|most| format!("{} s", format::count(most))),
    ];
    for most in ceilings.into_iter().flatten() {
        words += &format!(" <= {most}");
    }
    human::safe(&words)
}

/// Who the caller is, in one line.
pub fn whoami_line(who: &Whoami) -> String {
    let until = who.expires.map(|at| format!(" until {}", super::time(at))).unwrap_or_default();
    let scope = who.scope.as_ref().map(|scope| format!(", allowed: {}", scope_words(Some(scope)))).unwrap_or_default();
    human::safe(&format!("{} ({}), known by {}{until}{scope}", who.user, who.role.name(), who.via.meaning()))
}

#[cfg(test)]
mod tests {
    use carrack_service::model::Verb;

    use super::*;

    #[test]
    fn scopes_are_shown_with_their_ceilings() {
        let scope = Scope {
            verbs: vec![Verb::Read, Verb::Tasks],
            endpoints: vec!["archive".into()],
            path: Some("/run42".into()),
            ceilings: Ceilings { bytes: Some(1 << 30), deletions: Some(0), ..Ceilings::default() },
        };
        assert_eq!(scope_words(Some(&scope)), "read,tasks @archive:/run42 <= 1.0 GiB <= 0 deletions");
        let both = Scope { endpoints: vec!["one".into(), "two".into()], path: None, ..scope };
        assert!(scope_words(Some(&both)).starts_with("read,tasks @one:/ @two:/"));
        assert_eq!(scope_words(None), "all");
    }
}
