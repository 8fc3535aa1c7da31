//! What a caller may do: a pure function of who they are and what they want. Whatever no rule allows is refused.
//!
//! In this order: the role has the verb; the token's scope has the verb; the row is the caller's own, or the endpoint
//! is open to them; an endpoint that is read-only is not changed; the thing lies within the scope's endpoint and path.
//! Rows and endpoints of others are hidden: a caller learns nothing, not even that there are such things. Only the path
//! of an endpoint that a caller sees is refused openly.

use super::scope_path::ScopePath;
use crate::clock::Moment;
use crate::model::{Ceilings, Endpoint, KnownBy, Role, Scope, Verb};

/// Somebody who has proved who they are.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user's name.
    pub user: String,
    /// What the user may do.
    pub role: Role,
    /// What the token allows; none: all that the user may do.
    pub scope: Option<Scope>,
    /// By what they are known.
    pub via: KnownBy,
    /// The token or the session.
    pub token: Option<String>,
    /// When that ends.
    pub expires: Option<Moment>,
    /// The caller is the account that runs the service, or root, over the local socket.
    pub runs_service: bool,
}

impl Caller {
    /// Whether rows and endpoints of others are open to them.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin && self.scope.as_ref().is_none_or(|scope| scope.verbs.contains(&Verb::Admin))
    }

    /// Whether a token narrows down what they may do.
    pub fn is_scoped(&self) -> bool {
        self.scope.is_some()
    }

    /// How much the token allows.
    pub fn ceilings(&self) -> Ceilings {
        self.scope.as_ref().map(|scope| scope.ceilings).unwrap_or_default()
    }
}

/// A place that a task or a timer uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The endpoint; none: a location of no endpoint.
    pub endpoint: Option<String>,
    /// Below its root.
    pub path: ScopePath,
}

/// On what something is done.
#[derive(Clone, Copy, Debug)]
pub enum Object<'a> {
    /// On nothing in particular: to list what is the caller's, to begin something new.
    Nothing,
    /// On a row that belongs to somebody: a task, a timer, an event.
    Row {
        /// Whose it is.
        owner: &'a str,
        /// The places that it uses.
        places: &'a [Place],
    },
    /// On what lies at an endpoint; with no path, on what is known of it.
    Endpoint {
        /// The endpoint.
        endpoint: &'a Endpoint,
        /// Below its root.
        path: Option<&'a ScopePath>,
    },
    /// On an endpoint's settings; none: on one that is to be added.
    EndpointSettings(Option<&'a Endpoint>),
    /// On a location of no endpoint.
    RawLocation,
    /// On a user's tokens and sessions.
    Tokens {
        /// Whose they are.
        user: &'a str,
    },
    /// On figures over many tasks.
    Figures {
        /// Of everybody's, and not one's own alone.
        of_all: bool,
    },
    /// On users, and on the service itself.
    Service,
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    /// What is needed for it.
    pub verb: Verb,
    /// On what.
    pub object: Object<'a>,
}

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done.
    Allowed,
    /// It may not, and the caller is told so.
    Forbidden,
    /// It may not, and the caller is told that there is no such thing.
    Hidden,
}

/// A decision, with the rule that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is decided.
    pub verdict: Verdict,
    /// By which rule: for the log.
    pub rule: &'static str,
}

const fn allowed(rule: &'static str) -> Decision {
    Decision { verdict: Verdict::Allowed, rule }
}

const fn forbidden(rule: &'static str) -> Decision {
    Decision { verdict: Verdict::Forbidden, rule }
}

const fn hidden(rule: &'static str) -> Decision {
    Decision { verdict: Verdict::Hidden, rule }
}

/// The rule of a token whose scope has not the verb.
pub const SCOPE_LACKS_VERB: &str = "scope-lacks-verb";

/// Decides whether a caller may do something to anything at all: by their role and their token alone.
pub fn may_anywhere(caller: &Caller, action: &Action<'_>) -> Decision {
    if !role_has(caller.role, action) {
        return forbidden("role-lacks-verb");
    }
    if caller.scope.as_ref().is_some_and(|scope| !scope.verbs.contains(&action.verb)) {
        return forbidden(SCOPE_LACKS_VERB);
    }
    allowed("role-has-verb")
}

/// Decides whether a caller may do something.
pub fn may(caller: &Caller, action: &Action<'_>) -> Decision {
    let anywhere = may_anywhere(caller, action);
    if anywhere.verdict != Verdict::Allowed {
        return anywhere;
    }
    // Whose it is goes first: a scope that names another's endpoint must not tell whether there is one.
    let decision = by_owner(caller, action);
    let scope = caller.scope.as_ref().filter(|_| decision.verdict == Verdict::Allowed);
    scope.and_then(|scope| outside(scope, action)).unwrap_or(decision)
}

fn by_owner(caller: &Caller, action: &Action<'_>) -> Decision {
    match action.object {
        Object::Nothing => allowed("role-has-verb"),
        Object::Row { owner, .. } if owner == caller.user => allowed("own-row"),
        Object::Row { .. } if caller.is_admin() => allowed("admin"),
        Object::Row { .. } => hidden("row-of-another"),
        Object::Endpoint { endpoint, .. } => at_endpoint(caller, endpoint, action.verb),
        Object::EndpointSettings(None) => allowed("role-has-verb"),
        Object::EndpointSettings(Some(endpoint)) => match at_endpoint(caller, endpoint, Verb::View) {
            Decision { verdict: Verdict::Allowed, rule: "endpoint-shared" } if caller.is_admin() => allowed("admin"),
            Decision { verdict: Verdict::Allowed, rule: "endpoint-shared" } => forbidden("endpoint-of-another"),
            decision => decision,
        },
        Object::RawLocation if caller.runs_service => allowed("runs-service"),
        Object::RawLocation if caller.is_admin() => allowed("admin"),
        Object::RawLocation => forbidden("raw-location"),
        Object::Tokens { user } if user == caller.user => allowed("own-tokens"),
        Object::Tokens { .. } if caller.is_admin() => allowed("admin"),
        Object::Tokens { .. } => hidden("tokens-of-another"),
        Object::Figures { of_all: false } => allowed("own-figures"),
        Object::Figures { of_all: true } if caller.is_admin() => allowed("admin"),
        Object::Figures { of_all: true } if caller.role == Role::Viewer => allowed("viewer"),
        Object::Figures { of_all: true } => forbidden("figures-of-all"),
        // The role was looked at above.
        Object::Service => allowed("role-has-verb"),
    }
}

fn at_endpoint(caller: &Caller, endpoint: &Endpoint, verb: Verb) -> Decision {
    let rule = if endpoint.owner == caller.user {
        "endpoint-own"
    } else if endpoint.users.iter().any(|user| user == "*" || *user == caller.user) {
        "endpoint-shared"
    } else if caller.is_admin() {
        "admin"
    } else {
        return hidden("endpoint-without-right");
    };
    if endpoint.read_only && matches!(verb, Verb::Write | Verb::Delete) {
        return forbidden("endpoint-read-only");
    }
    if verb == Verb::Ownership && (endpoint.read_only || !endpoint.ownership) {
        return forbidden("endpoint-sets-no-owners");
    }
    allowed(rule)
}

/// What each role may do at all.
fn role_has(role: Role, action: &Action<'_>) -> bool {
    match role {
        Role::Admin => true,
        Role::User => match action.verb {
            Verb::Read | Verb::Write | Verb::Delete | Verb::Ownership | Verb::Tasks | Verb::View => true,
            // Their own ones: whose they are is looked at later.
            Verb::Admin => matches!(action.object, Object::EndpointSettings(_) | Object::Tokens { .. }),
            Verb::Metrics => false,
        },
        Role::Viewer => match action.verb {
            Verb::View => true,
            Verb::Admin => matches!(action.object, Object::Tokens { .. }),
            Verb::Read | Verb::Write | Verb::Delete | Verb::Ownership | Verb::Tasks | Verb::Metrics => false,
        },
    }
}

/// Whether a scope allows nothing that another one does not.
pub fn is_within(scope: &Scope, other: &Scope) -> bool {
    let at_place =
        !other.is_placed() || scope.is_placed() && scope.endpoints.iter().all(|name| other.has_endpoint(name));
    let below = match (&scope.path, &other.path) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(path), Some(above)) => {
            matches!((ScopePath::parse(path), ScopePath::parse(above)), (Ok(path), Ok(above)) if path.is_within(&above))
        }
    };
    let is_least = |one: Option<u64>, most: Option<u64>| most.is_none_or(|most| one.is_some_and(|one| one <= most));
    let (own, most) = (&scope.ceilings, &other.ceilings);
    other.lacks(&scope.verbs).is_empty()
        && at_place
        && below
        && is_least(own.entries, most.entries)
        && is_least(own.bytes, most.bytes)
        && is_least(own.deletions, most.deletions)
        && is_least(own.run_seconds, most.run_seconds)
}

/// Why an action is not at the place that a token is for.
fn outside(scope: &Scope, action: &Action<'_>) -> Option<Decision> {
    if !scope.is_placed() {
        return scope.path.is_some().then(|| forbidden("scope-path-without-endpoint"));
    }
    // A path of several endpoints would be one of each, which nobody meant.
    if scope.path.is_some() && scope.endpoints.len() > 1 {
        return Some(forbidden("scope-path-of-several"));
    }
    let Ok(below) = scope.path.as_deref().map(ScopePath::parse).transpose() else {
        return Some(forbidden("scope-path-unreadable"));
    };
    let is_below = |path: &ScopePath| below.as_ref().is_none_or(|below| path.is_within(below));
    match action.object {
        // Lists show what is within, row by row.
        Object::Nothing => None,
        Object::Row { places, .. } => {
            let is_named = |endpoint: &Option<String>| endpoint.as_ref().is_some_and(|name| scope.has_endpoint(name));
            let is_within = |place: &Place| is_named(&place.endpoint) && is_below(&place.path);
            (places.is_empty() || !places.iter().all(is_within)).then(|| hidden("scope-other-place"))
        }
        Object::Endpoint { endpoint, .. } if !scope.has_endpoint(&endpoint.name) => {
            Some(hidden("scope-other-endpoint"))
        }
        Object::Endpoint { path: Some(path), .. } => (!is_below(path)).then(|| forbidden("scope-other-path")),
        Object::Endpoint { path: None, .. } => None,
        Object::EndpointSettings(_)
        | Object::RawLocation
        | Object::Tokens { .. }
        | Object::Figures { .. }
        | Object::Service => Some(forbidden("scope-one-endpoint")),
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
