//! Who somebody is, and what they may do. Passwords and tokens prove a user; [`may`] decides, purely, and names the
//! rule; the secrets of endpoints are sealed with a key that the ledger does not hold.

pub mod digest;
mod link;
mod password;
mod request;
mod rules;
mod scope_path;
mod seal;
mod slow;
mod targets;
mod token;

pub use link::{LINK_LIFETIME, LoginLinks};
pub use password::{hash_password, verify_password};
pub use request::{PAIRS_MAX, RequestFault, check_request, check_rights, places};
pub use rules::{Action, Caller, Decision, Object, Place, SCOPE_LACKS_VERB, Verdict, is_within, may, may_anywhere};
pub use scope_path::{ScopePath, ScopePathError};
pub use seal::{Seal, SealError};
pub use slow::{Slow, network};
pub use token::{NewSecret, ShownToken};

/// Why a name cannot be a user's or an endpoint's; none if it can. `more` are the characters beside letters and digits.
pub fn name_fault(name: &str, more: &str) -> Option<&'static str> {
    let plain = |character: char| character.is_ascii_alphanumeric();
    if name.is_empty() || name.len() > 64 {
        Some("it has 1 to 64 characters")
    } else if !name.starts_with(plain) {
        Some("it begins with a letter or a digit")
    } else if !name.chars().all(|character| plain(character) || more.contains(character)) {
        Some("it holds letters, digits and few other characters")
    } else {
        None
    }
}
