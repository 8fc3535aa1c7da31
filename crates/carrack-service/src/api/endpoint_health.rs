//! How endpoints do, as a caller may know it.

use super::Api;
use super::problem::Done;
use super::tasks::sees;
use crate::identity::{Action, Caller, Object, Verdict, may};
use crate::ledger::LedgerError;
use crate::ledger::health::{Fault, HealthRow};
use crate::model::{Endpoint, EndpointFault, EndpointHealth, EndpointTested, HealthState, Verb};

impl Api {
    /// An endpoint with how it does.
    pub(super) fn with_health(&self, caller: &Caller, endpoint: Endpoint) -> Done<Endpoint> {
        let name = endpoint.name.clone();
        let mut one = [endpoint];
        self.tell_health(caller, Some(&name), &mut one)?;
        let [endpoint] = one;
        Ok(endpoint)
    }

    /// Tells how each of these endpoints does.
    pub(super) fn tell_health(&self, caller: &Caller, name: Option<&str>, endpoints: &mut [Endpoint]) -> Done<()> {
        let of_all = Action { verb: Verb::View, object: Object::Figures { of_all: true } };
        let owner = (may(caller, &of_all).verdict != Verdict::Allowed).then_some(caller.user.as_str());
        let mut rows = self.ledger.health(name, owner)?;
        for endpoint in endpoints {
            let row = rows.remove(&endpoint.name).unwrap_or_default();
            endpoint.health = Some(self.health_of(caller, row)?);
        }
        Ok(())
    }

    fn health_of(&self, caller: &Caller, row: HealthRow) -> Done<EndpointHealth> {
        let HealthRow { contact, success, fault, test, open } = row;
        let when = fault.as_ref().map(|fault| (fault.time, fault.unreached));
        Ok(EndpointHealth {
            state: HealthState::of(contact, success, when, self.now()),
            last_contact: contact,
            last_success: success,
            last_fault: fault.map(|fault| self.fault_of(caller, fault)).transpose()?,
            last_test: test.map(|(time, test)| EndpointTested { time, ok: test.ok }),
            open_tasks: open,
        })
    }

    /// What it happened to, and in which words, is told to those who may see the task.
    fn fault_of(&self, caller: &Caller, fault: Fault) -> Done<EndpointFault> {
        let Fault { time, unreached, code, why, task } = fault;
        let Some((task, _)) = task else {
            return Ok(EndpointFault { time, unreached, code, why: Some(why), task: None });
        };
        let seen = match self.ledger.task(&task) {
            Ok(known) => sees(caller, &known),
            Err(LedgerError::Missing) => false,
            Err(error) => return Err(error.into()),
        };
        let (why, task) = if seen { (Some(why), Some(task)) } else { (None, None) };
        Ok(EndpointFault { time, unreached, code, why, task })
    }
}
