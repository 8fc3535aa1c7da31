//! The endpoint that a file worker serves: conversations with it, which are kept for the next request, and paths there.

use carrack_engine::sync::lock;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::failure::{Blame, ErrorCode, Failure, Side};
use carrack_core::path::join;
use carrack_core::request::Reach;
use carrack_engine::files::Files;
use carrack_engine::{Context, Stop, StopReason};

use super::super::called::of_endpoint;
use super::FilesOrder;
use crate::identity::ScopePath;
use crate::model::Verb;
use crate::worker::ends::{self, OpenEnd};

/// A conversation that nobody has used for so long is tried before it is lent: the other side may have ended it.
const FRESH: Duration = Duration::from_secs(5);
/// Conversations that are kept for the next request.
const KEPT_MAX: usize = 4;

/// The endpoint of a file worker.
pub struct End {
    name: String,
    end: OpenEnd,
    context: Context,
    within: ScopePath,
    rights: Vec<Verb>,
    idle: Mutex<Vec<Idle>>,
}

/// A conversation that nobody uses.
struct Idle {
    files: Files,
    lent_to: LentTo,
    since: Instant,
}

/// The request that a conversation is lent to, if it is.
#[derive(Clone, Default)]
struct LentTo(Arc<Mutex<Option<Stop>>>);

impl LentTo {
    fn set(&self, stop: Option<Stop>) {
        *lock(&self.0) = stop;
    }

    fn requested(&self) -> Option<StopReason> {
        lock(&self.0).as_ref().and_then(Stop::requested)
    }
}

impl End {
    /// The end of an order.
    ///
    /// # Errors
    /// If it cannot be one: see [`ends::open`].
    pub fn open(order: &FilesOrder, reach: &Reach, context: &Context) -> Result<Self, Failure> {
        let usage = |why: String| Failure::new(ErrorCode::Usage, Side::Command, why);
        let within = ScopePath::parse(&order.within).map_err(|error| usage(error.to_string()))?;
        let mut end = ends::open(&order.end, Side::Source, reach)?;
        end.keep_within(within.bytes(), Side::Source)?;
        let context = Context { local: end.place.clone(), ..context.clone() };
        Ok(Self {
            name: order.name.clone(),
            end,
            context,
            within,
            rights: order.rights.clone(),
            idle: Mutex::default(),
        })
    }

    /// A path of a request as the endpoint takes it, if the order allows to do this there.
    ///
    /// # Errors
    /// [`ErrorCode::PermissionDenied`], [`ErrorCode::NodeReadOnly`], [`ErrorCode::OutsideRoot`].
    pub fn path(&self, text: &str, verb: Verb) -> Result<Vec<u8>, Failure> {
        let refused = |code, why: &str| Err(Failure::new(code, Side::Source, why));
        let Ok(path) = ScopePath::parse(text) else {
            return refused(ErrorCode::OutsideRoot, "that is no path below an endpoint");
        };
        if verb != Verb::Read && self.end.read_only {
            return refused(ErrorCode::NodeReadOnly, "the endpoint is for reading only");
        }
        if !self.rights.contains(&verb) || !path.is_within(&self.within) {
            return refused(ErrorCode::PermissionDenied, "the caller may not do this there");
        }
        let base = self.end.location.path().unwrap_or_default();
        Ok(if path == ScopePath::root() { base.to_vec() } else { join(base, &path.bytes()) })
    }

    /// A failure by the name that the caller knows the place by.
    pub fn named(&self, failure: Failure) -> Failure {
        of_endpoint(failure, &self.name, self.end.location.path().unwrap_or_default())
    }

    /// The endpoint as it was opened.
    pub fn opened(&self) -> &OpenEnd {
        &self.end
    }

    /// What the engine works with.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Lends a conversation with the endpoint to a request, and ends it when the request is cancelled.
    ///
    /// # Errors
    /// If the endpoint cannot be reached; those of the work.
    pub fn with_files<T>(
        &self,
        stop: &Stop,
        work: impl FnOnce(&mut Files) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut idle = self.take(stop)?;
        let result = work(&mut idle.files);
        idle.lent_to.set(None);
        // What failed because of the file itself leaves the conversation in order.
        let is_sound = result.as_ref().err().is_none_or(|failure| failure.code.blame() == Blame::File);
        if is_sound && stop.requested().is_none() {
            let mut kept = lock(&self.idle);
            if kept.len() < KEPT_MAX {
                kept.push(Idle { since: Instant::now(), ..idle });
            }
        }
        result
    }

    fn take(&self, stop: &Stop) -> Result<Idle, Failure> {
        stop.check()?;
        loop {
            let kept = lock(&self.idle).pop();
            let Some(mut kept) = kept else { return self.connect(stop) };
            kept.lent_to.set(Some(stop.clone()));
            let base = self.end.location.path().unwrap_or_default();
            let is_alive = kept.since.elapsed() < FRESH
                || kept.files.stat(base).map_or_else(|failure| failure.code.blame() == Blame::File, |_| true);
            if is_alive {
                return Ok(kept);
            }
            stop.check()?;
        }
    }

    fn connect(&self, stop: &Stop) -> Result<Idle, Failure> {
        let (lent_to, whole) = (LentTo::default(), self.context.stop.clone());
        lent_to.set(Some(stop.clone()));
        let watched = lent_to.clone();
        let watching = Stop::watching(move || watched.requested().or_else(|| whole.requested()));
        let context = Context { stop: watching, ..self.context.clone() };
        let files = Files::open(&self.end.location, &self.end.options, &context, &|_| {})?;
        Ok(Idle { files, lent_to, since: Instant::now() })
    }
}
