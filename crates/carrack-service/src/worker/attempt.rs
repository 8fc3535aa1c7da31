//! An attempt under way, as all that works on it sees it.

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::request::{CopyOptions, CopyRequest, Reach};
use carrack_engine::{Context, StopReason};
use carrack_receipt::Statement;
use serde_json::json;

use super::called::Called;
use super::ends::{OpenEnd, copy_options};
use super::history::History;
use super::in_flight::InFlightFile;
use super::limit::Over;
use super::markers::Markers;
use super::order::Order;
use super::places;
use super::teller::Teller;
use super::visits::PairVisits;
use crate::model::{EventKind, TaskFailure};

/// One attempt under way.
pub struct Attempt<'a> {
    /// What is to be done.
    pub order: &'a Order,
    /// What the engine works with; its `stop` is the attempt's own.
    pub context: Context,
    /// What earlier attempts have told.
    pub history: History,
    /// Tells.
    pub teller: Teller,
    /// How hosts are reached.
    pub reach: Reach,
    /// Tells the files in flight.
    pub in_flight: InFlightFile,
    /// By which keys its passes have marked what they leave.
    pub markers: Markers,
    /// Bytes at the destinations by passes that earlier attempts have not brought to their end, and that have not been
    /// found there again.
    pub open_bytes: u64,
    /// Hosts have been reached.
    pub reached: bool,
    /// What the ends of the pair under way are called.
    pub called: Called,
    /// Where it is at work, and what fails there.
    pub visits: PairVisits,
    /// What ends the whole attempt.
    pub fatal: Option<Failure>,
    /// Why a guard keeps the task from going on.
    pub held: Option<TaskFailure>,
    /// The first failure of a pair that another attempt can help.
    pub passing: Option<TaskFailure>,
}

impl Attempt<'_> {
    /// Whether nothing more is begun.
    pub fn is_over(&self) -> bool {
        self.fatal.is_some() || self.held.is_some() || self.context.stop.requested().is_some()
    }

    /// Ends the whole attempt.
    pub fn give_up(&mut self, why: Failure) {
        let why = self.called.name(why);
        self.fatal.get_or_insert(why);
        self.context.stop.request(StopReason::Cancel);
    }

    /// A failure of the pair under way, of an item with this path, as the journal has it.
    pub fn told(&self, failure: &Failure, path: &[u8]) -> TaskFailure {
        self.called.told(failure, path, self.reached)
    }

    /// Ends the attempt if its time is over.
    pub fn check_limit(&mut self) -> Option<Over> {
        let over = self.teller.over()?;
        self.fatal.get_or_insert_with(|| Failure::new(ErrorCode::DeadlinePassed, Side::Command, over.why()));
        Some(over)
    }

    /// Whether a pair's receipt was made. The task has done what it was to do without it, too.
    pub fn tell_receipt(&self, pair: u32, made: Result<Statement, String>) {
        match made {
            Ok(made) => {
                let text = format!("a receipt of {} items was signed", made.items);
                self.teller.event(EventKind::Note, text, json!({ "pair": pair, "items": made.items }));
            }
            Err(why) => {
                let text = format!("no receipt was made: {why}");
                self.teller.event(EventKind::Fault, text, json!({ "pair": pair }));
            }
        }
    }

    /// Hosts have been reached: what refuses this attempt or a later one may pass.
    pub fn note_reached(&mut self) {
        if !std::mem::replace(&mut self.reached, true) {
            self.teller.reached();
        }
    }

    /// Forgets what was told of a pair that led elsewhere, once its hosts answer: a mistyped address costs nothing.
    ///
    /// # Errors
    /// If a host cannot be reached, or the journal does not take it.
    pub fn begin_anew(&mut self, pair: u32, source: &OpenEnd, destination: Option<&OpenEnd>) -> Result<(), Failure> {
        let ends = [(Some(source), Side::Source), (destination, Side::Destination)];
        for (end, side) in ends.into_iter().filter_map(|(end, side)| Some((end?, side))) {
            if end.location.path().is_some() {
                places::open(end, &self.context).map_err(|why| Failure { side, ..why })?;
            }
        }
        // The journal counts what broken-off passes have done for the task as a whole. Where no other pair has such a
        // pass, all of it was done for this one.
        let is_only_open = self.history.pairs.iter().all(|(number, other)| *number == pair || !other.is_open);
        let kept = self.teller.begin_anew(&self.order.directory, pair, is_only_open);
        kept.map_err(|why| Failure::new(ErrorCode::InputOutput, Side::Command, why))?;
        if is_only_open {
            self.open_bytes = 0;
        }
        self.history.pairs.remove(&pair);
        let text = format!("pair {pair} leads elsewhere than in the attempt before: all of it is done anew");
        self.teller.event(EventKind::Note, text, serde_json::json!({ "pair": pair }));
        Ok(())
    }

    /// The copy of a pair as a dry run, and what it works with. What is lost begins anew with the next attempt: so each
    /// item is told once.
    ///
    /// # Errors
    /// If the options of the order do not go together.
    pub fn dry_run(&self, source: &OpenEnd, destination: &OpenEnd) -> Result<(CopyRequest, Context), Failure> {
        let only = self.order.options.only.as_ref();
        let options = CopyOptions {
            dry_run: true,
            retries: 0,
            only: only.map(|only| only.iter().map(|path| path.clone().into_bytes()).collect()),
            source: source.options.clone(),
            destination: destination.options.clone(),
            ..copy_options(self.order)?
        };
        let (sources, destination_at) = (vec![source.location.clone()], destination.location.clone());
        let context = Context {
            local: source.place.clone(),
            local_destination: Some(destination.place.clone()),
            ..self.context.clone()
        };
        Ok((CopyRequest { sources, destination: destination_at, options }, context))
    }
}
