//! What work is done with: handed in by whoever starts it, and found nowhere else.

use std::fmt;
use std::sync::Arc;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::request::DeletionExtent;
use carrack_core::tuning::Tuning;

use crate::control::known_nodes::{KnownKeys, MemoryKeys};
use crate::error::failure;
use crate::kept_tuning::{ForgetTuning, KeptTuning};
use crate::standard::Standard;
use crate::stop::Stop;
use crate::storage::place::{Place, Stores};

/// Refuses knobs out of their bounds, wherever they are handed in.
///
/// # Errors
/// A usage error that names the knob and its bounds.
pub(crate) fn check_tuning(tuning: &Tuning) -> Result<(), Failure> {
    tuning.check().map_err(|broken| failure(ErrorCode::Usage, Side::Command, format!("tuning: {broken}")))
}

/// Asks whoever the work is done for.
pub trait Asker: fmt::Debug + Send + Sync {
    /// Whether a destination may delete so much. Asked by a thread of its own, which may wait for the answer; when
    /// `is_over`, nobody does any more. A session that is lost meanwhile asks again.
    fn may_delete(&self, extent: &DeletionExtent, is_over: &dyn Fn() -> bool) -> bool;
}

/// What the copies and file verbs of one owner have in common. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    /// Ends everything that was started with this context.
    pub stop: Stop,
    /// The keys of nodes whose address names none.
    pub keys: Arc<dyn KnownKeys>,
    /// What earlier copies have found, and where this one's findings go.
    pub tuned: Arc<dyn KeptTuning>,
    /// Is asked before much is deleted; without one it is deleted unasked.
    pub asker: Option<Arc<dyn Asker>>,
    /// What an end in this process may reach.
    pub local: Place,
    /// What the destination of a copy may reach in this process; `None`: the same.
    pub local_destination: Option<Place>,
    /// An end in this process that may not reach all of this host sets owners, special bits and devices all the same.
    pub gives_ownership: bool,
    /// Stores beside the file systems of this host, by their names in a location.
    pub stores: Stores,
    /// What `-` stands for.
    pub standard: Standard,
    /// Knobs, for what is done in this process. Work is refused whose knobs are out of their bounds.
    pub tuning: Arc<Tuning>,
}

impl Default for Context {
    /// Nobody wants it to stop, no node is known, nothing found is kept, nobody is asked, local paths lead anywhere,
    /// and `-` stands for nothing.
    fn default() -> Self {
        Self {
            stop: Stop::new(),
            keys: Arc::new(MemoryKeys::default()),
            tuned: Arc::new(ForgetTuning),
            asker: None,
            local: Place::anywhere(),
            local_destination: None,
            gives_ownership: false,
            stores: Stores::default(),
            standard: Standard::default(),
            tuning: Arc::default(),
        }
    }
}
