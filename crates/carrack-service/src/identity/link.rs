//! Login links: printed on the terminal of whoever starts the service, or made for a user; good for one login within a
//! few minutes.

use carrack_engine::sync::lock;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;

use super::digest::{is_same, random, sha256};
use crate::model::Secret;

/// How long a link works.
pub const LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Links of one user, and in all: of more the oldest goes.
const LINKS_OF_ONE: usize = 4;
const LINKS_MAX: usize = 1024;

/// The links that nobody has used yet. In memory alone: a restart forgets them.
#[derive(Default)]
pub struct LoginLinks {
    open: Mutex<Vec<Link>>,
}

struct Link {
    user: String,
    digest: [u8; 32],
    until: Duration,
}

impl LoginLinks {
    /// Makes one for this user; `now` is of a steady clock.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn make(&self, user: &str, now: Duration) -> io::Result<Secret> {
        let secret = BASE64URL_NOPAD.encode(&random::<32>()?);
        let mut open = lock(&self.open);
        open.retain(|link| link.until > now);
        // First those of the same user: nobody's links go because somebody else makes many.
        let of_user = |link: &Link| link.user == user;
        while open.iter().filter(|link| of_user(link)).count() >= LINKS_OF_ONE
            && let Some(oldest) = open.iter().position(of_user)
        {
            open.remove(oldest);
        }
        if open.len() >= LINKS_MAX {
            open.remove(0);
        }
        open.push(Link { user: user.to_owned(), digest: sha256(secret.as_bytes()), until: now + LINK_LIFETIME });
        Ok(Secret::new(secret))
    }

    /// The user whose link this is. It works once.
    pub fn take(&self, shown: &Secret, now: Duration) -> Option<String> {
        let digest = sha256(shown.reveal().as_bytes());
        let mut open = lock(&self.open);
        open.retain(|link| link.until > now);
        let found = open.iter().position(|link| is_same(&link.digest, &digest))?;
        Some(open.remove(found).user)
    }

    /// Forgets a user's links.
    pub fn forget(&self, user: &str) {
        let mut open = lock(&self.open);
        open.retain(|link| link.user != user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_link_works_once_and_for_a_while() {
        let links = LoginLinks::default();
        let (one, other) = (links.make("ann", Duration::ZERO).unwrap(), links.make("bob", Duration::ZERO).unwrap());
        assert_eq!(links.take(&Secret::new("no such link"), Duration::ZERO), None);
        assert_eq!(links.take(&one, Duration::from_secs(1)), Some("ann".to_owned()));
        assert_eq!(links.take(&one, Duration::from_secs(1)), None);
        assert_eq!(links.take(&other, LINK_LIFETIME), None);
    }

    #[test]
    fn login_links_of_one_user_do_not_push_out_those_of_another() {
        let links = LoginLinks::default();
        let first = links.make("ann", Duration::ZERO).unwrap();
        let made: Vec<Secret> = (0..=LINKS_OF_ONE).map(|_| links.make("bob", Duration::ZERO).unwrap()).collect();
        assert_eq!(links.take(&first, Duration::ZERO), Some("ann".to_owned()));
        let works: Vec<bool> = made.iter().map(|link| links.take(link, Duration::ZERO).is_some()).collect();
        assert_eq!((works[0], works[1..].iter().all(|&works| works)), (false, true), "{works:?}");
        let forgotten = links.make("bob", Duration::ZERO).unwrap();
        links.forget("bob");
        assert_eq!(links.take(&forgotten, Duration::ZERO), None);
    }
}
