//! What may refuse a retry that the policy of its URL permits.
//!
//! Both the budget and the circuit are about all URLs of a run, so they are one for all sessions of
//! a recipe, and sit behind a lock here and nowhere below. A session without them takes no lock.

use super::router::lock;
use crate::error::{Error, Fault};
use crate::policy::{Class, HostCircuit, RetryBudget};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The budget and the circuit of a recipe, as far as there are any.
#[derive(Debug, Clone, Default)]
pub(super) struct Restraint {
    budget: Option<Arc<Mutex<RetryBudget>>>,
    circuit: Option<Arc<Mutex<HostCircuit>>>,
}

impl Restraint {
    pub(super) fn set_budget(&mut self, budget: Option<RetryBudget>) {
        self.budget = budget.map(|budget| Arc::new(Mutex::new(budget)));
    }

    pub(super) fn set_circuit(&mut self, circuit: Option<HostCircuit>) {
        self.circuit = circuit.map(|circuit| Arc::new(Mutex::new(circuit)));
    }

    /// The same for another world, which has seen nothing yet.
    pub(super) fn anew(&self) -> Self {
        let (mut anew, budget) = (Self::default(), self.budget.as_ref());
        anew.set_budget(budget.map(|budget| lock(budget).anew()));
        anew.set_circuit(self.circuit.as_ref().map(|circuit| lock(circuit).anew()));
        anew
    }

    /// A URL is begun.
    pub(super) fn note_request(&self, now: Instant) {
        if let Some(budget) = &self.budget {
            lock(budget).note_request(now);
        }
    }

    /// A host answered.
    pub(super) fn note_status(&self, host: &str, status: u16, now: Instant) {
        if let Some(circuit) = &self.circuit {
            let failed = matches!(Class::of_status(status), Class::Retryable);
            lock(circuit).note(host, failed, now);
        }
    }

    /// An attempt on a host failed.
    pub(super) fn note_error(&self, host: &str, error: &Error, now: Instant) {
        if let Some(circuit) = &self.circuit
            && error.fault() == Fault::Target
        {
            lock(circuit).note(host, true, now);
        }
    }

    /// Why there is no retry, for the history; `None` where there may be one, which is taken then.
    pub(super) fn refuses_retry(&self, host: &str, now: Instant) -> Option<&'static str> {
        // The circuit first: a retry that it refuses takes nothing out of the budget.
        if let Some(circuit) = &self.circuit
            && !lock(circuit).may_retry(host, now)
        {
            return Some("the circuit of this host is open");
        }
        let budget = self.budget.as_ref()?;
        (!lock(budget).take_retry(now)).then_some("the retry budget of the run is used up")
    }

    /// There is no retry after all, right after one was not refused.
    pub(super) fn give_retry_back(&self) {
        if let Some(budget) = &self.budget {
            lock(budget).give_back();
        }
    }
}
