//! Time that a program spends by itself.

use crate::{
    event::{Event, Kind},
    recorder::Recorder,
};
use rdma_fabric::Fabric;

/// Written into the trace when it is dropped, if there was any.
pub(crate) struct Spent<'a, F: Fabric> {
    recorder: &'a Recorder,
    /// For the clock.
    below: &'a F,
    event: Event,
}

impl<'a, F: Fabric> Spent<'a, F> {
    pub(crate) fn begin(recorder: &'a Recorder, below: &'a F, kind: Kind) -> Self {
        Spent { recorder, below, event: Event::new(kind, None, below.now().as_picos()) }
    }
}

impl<F: Fabric> Drop for Spent<'_, F> {
    fn drop(&mut self) {
        let end_ps = self.below.now().as_picos();
        // On wall clock, computing takes its time elsewhere.
        if self.event.kind == Kind::Sleep || end_ps - self.event.begin_ps > 1_000_000 {
            self.recorder.lock().happened(Event { end_ps, ..self.event });
        }
    }
}
