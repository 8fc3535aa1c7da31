//! What opens a path of an endpoint: the service is asked for a grant, with no more rights than the verb needs, and the
//! endpoint's node is shown that. The node's own token stays with the service.
//!
//! A grant holds for minutes. As long as the command has use for it, a later one takes its place: sessions that come
//! anew show it, and those that are under way go on because the node has seen it.

use carrack_sys::sync::lock;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use carrack_core::credential::{Credential, Shown, Token, TokenSource};
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::grant::Right;
use carrack_core::location::{Location, NodeAddress, encode_path};
use carrack_core::path::display_bytes;
use carrack_core::request::{EndOptions, Reach};
use carrack_engine::files::Files;
use carrack_engine::{Context, system_failure, threads};
use carrack_service::client::{Call, Target, segment};
use carrack_service::model::{MadeGrant, NewGrant, Verb};

use super::service::Service;
use crate::cli::flags::Flags;
use crate::error::CommandError;

/// How long a grant is asked for. So long does one go on at a node that nobody tells of a revocation.
const LIFETIME: Duration = Duration::from_secs(600);
/// How often it is renewed.
const RENEWED: Duration = Duration::from_secs(180);
/// After a renewal that failed.
const TRIED_AGAIN: Duration = Duration::from_secs(20);

/// The grants of one command.
pub struct Grants<'a> {
    flags: &'a Flags<'a>,
    reach: Reach,
    context: fn() -> Context,
    service: Option<Arc<Mutex<Service>>>,
    open: Vec<Arc<Granted>>,
}

impl<'a> Grants<'a> {
    /// None yet, by the service that the flags mean. Nodes are reached so, to renew their grants.
    pub fn new(flags: &'a Flags<'a>, reach: Reach, context: fn() -> Context) -> Self {
        Self { flags, reach, context, service: None, open: Vec::new() }
    }

    /// Opens a path of an endpoint for these rights, and for those wished for where they can be had: where it is, and
    /// what opens it there; nothing for what the user's own ssh opens.
    ///
    /// # Errors
    /// That nobody answers, what the service says no to, and an answer that means nothing here.
    pub fn open(
        &mut self,
        name: &str,
        path: &[u8],
        rights: &[Right],
        wishes: &[Right],
    ) -> Result<(Location, Option<Credential>), CommandError> {
        let service = match &self.service {
            Some(service) => Arc::clone(service),
            None => Arc::clone(self.service.insert(Arc::new(Mutex::new(Service::open(self.flags)?)))),
        };
        let wanted = |rights: &[&[Right]]| WantedGrant {
            name: name.to_owned(),
            place: format!("@{name}:{}", display_bytes(path)),
            path: encode_path(path),
            verbs: rights.concat().into_iter().map(verb).collect(),
        };
        let mut wanted_all = wanted(&[rights, wishes]);
        let asking = lock(&service);
        let made = match ask(&asking, &wanted_all) {
            Err(error) if !wishes.is_empty() && error.failure.code == ErrorCode::AuthenticationFailed => {
                wanted_all = wanted(&[rights]);
                ask(&asking, &wanted_all)?
            }
            made => made?,
        };
        drop(asking);
        let asked = Instant::now();
        let (location, token) = made;
        let (Some(node), Some(token)) = (location.node().cloned(), token) else { return Ok((location, None)) };
        // One session for all paths of an endpoint: they have one grant.
        let same = |granted: &&Arc<Granted>| {
            (&granted.wanted.name, &granted.wanted.verbs, &granted.node) == (&wanted_all.name, &wanted_all.verbs, &node)
        };
        let granted = match self.open.iter().find(same) {
            Some(granted) => Arc::clone(granted),
            None => {
                let granted = Arc::new_cyclic(|own| Granted {
                    service,
                    wanted: wanted_all,
                    node,
                    reach: self.reach.clone(),
                    context: self.context,
                    held: Mutex::new(Held { token, asked, is_kept: false }),
                    own: Weak::clone(own),
                });
                self.open.push(Arc::clone(&granted));
                granted
            }
        };
        Ok((location, Some(Credential::Source(granted))))
    }
}

/// What the service is asked for.
struct WantedGrant {
    name: String,
    /// As typed, printable.
    place: String,
    path: String,
    verbs: Vec<Verb>,
}

fn verb(right: Right) -> Verb {
    match right {
        Right::Read => Verb::Read,
        Right::Write => Verb::Write,
        Right::Delete => Verb::Delete,
        Right::Ownership => Verb::Ownership,
    }
}

/// Asks for a grant: where the path is, and the token.
fn ask(service: &Service, wanted: &WantedGrant) -> Result<(Location, Option<Token>), CommandError> {
    let place = &wanted.place;
    let told = |mut error: CommandError| {
        error.failure.why = format!("{place}: {}", error.failure.why);
        match error.failure.code {
            ErrorCode::NotFound => error.hint("carrack endpoint list names the endpoints that you may use"),
            _ => error,
        }
    };
    let new = NewGrant { verbs: wanted.verbs.clone(), path: wanted.path.clone(), seconds: Some(LIFETIME.as_secs()) };
    let call = service.with(Call::post(format!("/endpoints/{}/grants", segment(&wanted.name))), &new)?;
    let made: MadeGrant = service.call(&call).map_err(told)?;
    let strange = |why: String| {
        let why = format!("{place}: the service's answer is not what this program knows: {why}");
        CommandError::from(Failure::new(ErrorCode::Other, Side::Command, why))
    };
    let token = made.token.map(|token| Token::new(token.reveal().as_bytes())).transpose().map_err(strange)?;
    let mut location = Location::parse_document(&made.location).map_err(strange)?;
    if !matches!(location, Location::Node { .. } | Location::Ssh { .. }) {
        return Err(strange("it names neither a node nor a host".to_owned()));
    }
    // The service does not know under which name it is reached.
    if let (true, Target::Tls { host, .. }, Location::Node { node, .. }) =
        (made.at_service, service.target(), &mut location)
    {
        node.host.clone_from(host);
    }
    Ok((location, token))
}

/// What opens one endpoint for one command.
pub struct Granted {
    service: Arc<Mutex<Service>>,
    wanted: WantedGrant,
    node: NodeAddress,
    reach: Reach,
    context: fn() -> Context,
    held: Mutex<Held>,
    own: Weak<Self>,
}

/// The grant of the moment.
struct Held {
    token: Token,
    asked: Instant,
    /// A thread renews it.
    is_kept: bool,
}

/// Neither the token nor what the service is shown.
impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Granted").field("endpoint", &self.wanted.name).finish_non_exhaustive()
    }
}

impl Granted {
    /// Asks for a later grant.
    fn renew(&self) -> Result<Token, Failure> {
        let asked = Instant::now();
        let (location, token) = ask(&lock(&self.service), &self.wanted).map_err(|error| error.failure)?;
        // Whoever shows a token to another node shows it to somebody else.
        let (Some(node), Some(token)) = (location.node(), token) else { return Err(self.moved()) };
        if *node != self.node {
            return Err(self.moved());
        }
        let mut held = lock(&self.held);
        (held.token, held.asked) = (token.clone(), asked);
        Ok(token)
    }

    fn moved(&self) -> Failure {
        let why = format!("the endpoint @{} is elsewhere now than when this command began", self.wanted.name);
        Failure::new(ErrorCode::Usage, Side::Command, why)
    }

    /// Renews it as long as anybody has use for it.
    fn keep(own: &Weak<Self>) {
        let mut pause = RENEWED;
        loop {
            std::thread::sleep(pause);
            let Some(granted) = own.upgrade() else { return };
            pause = match granted.renew().and_then(|token| granted.show(token)) {
                Ok(()) => RENEWED,
                // What goes on ends with the last grant; whoever begins anew is told why.
                Err(_) => TRIED_AGAIN,
            };
        }
    }

    /// Shows it to the node: its sessions go on until this grant ends.
    fn show(&self, token: Token) -> Result<(), Failure> {
        let location = Location::Node { node: self.node.clone(), path: Vec::new() };
        let options =
            EndOptions { reach: self.reach.clone(), credential: Credential::Value(token), ..EndOptions::default() };
        Files::open(&location, &options, &(self.context)(), &|_| {}).map(drop)
    }
}

impl TokenSource for Granted {
    fn token(&self, _: &NodeAddress, was_pinned: bool) -> Result<Shown, Failure> {
        if !was_pinned {
            let why = format!(
                "the grant for @{} was not shown, because this is the first meeting with its node",
                self.wanted.name
            );
            let why = Failure::new(ErrorCode::AuthenticationFailed, Side::Command, why);
            return Ok(Shown { token: None, withheld: Some(Box::new(why.for_reason(Reason::FirstMeeting))) });
        }
        let (token, is_fresh, is_kept) = {
            let mut held = lock(&self.held);
            let is_kept = std::mem::replace(&mut held.is_kept, true);
            (held.token.clone(), held.asked.elapsed() < RENEWED, is_kept)
        };
        if !is_kept {
            let own = Weak::clone(&self.own);
            let keep = threads::start("renewing a grant", move || Self::keep(&own));
            keep.map_err(|error| {
                lock(&self.held).is_kept = false;
                system_failure(Side::Command, &error)
            })?;
        }
        if is_fresh { Ok(token.into()) } else { self.renew().map(Shown::from) }
    }
}
