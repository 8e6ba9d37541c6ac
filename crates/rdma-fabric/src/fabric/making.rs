//! What is below a fabric, for providers and for what stands in between.

use super::{Fabric, Shared};
use crate::{
    Rank, Triggers,
    provider::{JobFacts, Place, Provider},
};
use std::sync::Arc;

impl Fabric {
    /// The fabric of `rank` over `provider`. [Memory without a key](Fabric::keyless) it may have, but nobody makes references to that.
    pub fn new(rank: Rank, facts: Arc<JobFacts>, provider: impl Provider) -> Self {
        Fabric { shared: Arc::new(Shared { rank, vouched: false, facts, triggers: Triggers::default(), provider }) }
    }

    /// The same for a provider under which references may be made to memory without a key.
    ///
    /// # Safety
    /// The provider keeps the contract: its atomics are atomic, and what they order is ordered for plain accesses to mapped memory, too.
    #[allow(unsafe_code)]
    pub unsafe fn vouched(rank: Rank, facts: Arc<JobFacts>, provider: impl Provider) -> Self {
        Fabric { shared: Arc::new(Shared { rank, vouched: true, facts, triggers: Triggers::default(), provider }) }
    }

    /// Another handle of this rank, over another provider: what this one has armed is armed there, too.
    ///
    /// For providers; a provider that is not what this one's is passes for one that breaks the contract.
    #[must_use]
    pub fn beside(&self, provider: impl Provider) -> Self {
        let Shared { rank, facts, triggers, .. } = &*self.shared;
        let (facts, triggers) = (facts.clone(), triggers.share());
        Fabric { shared: Arc::new(Shared { rank: *rank, vouched: false, facts, triggers, provider }) }
    }

    /// [`Fabric::beside`] for a provider under which references may be made.
    ///
    /// # Safety
    /// As for [`Fabric::vouched`].
    #[allow(unsafe_code)]
    #[must_use]
    pub unsafe fn beside_vouched(&self, provider: impl Provider) -> Self {
        let Shared { rank, facts, triggers, .. } = &*self.shared;
        let (facts, triggers) = (facts.clone(), triggers.share());
        Fabric { shared: Arc::new(Shared { rank: *rank, vouched: true, facts, triggers, provider }) }
    }

    /// This fabric under something that stands in between and does what it likes. It has nothing armed.
    #[must_use]
    pub fn under(&self, provider: impl Provider) -> Self {
        Fabric::new(self.shared.rank, self.shared.facts.clone(), provider)
    }

    /// How many bytes one takes over a provider `P`, its clones together.
    pub const fn bytes_over<P: Provider>() -> usize {
        // The counts of an `Arc`, and what it holds.
        2 * size_of::<usize>() + size_of::<Shared<P>>()
    }

    /// What is below.
    #[inline(always)]
    pub fn provider(&self) -> &dyn Provider {
        &self.shared.provider
    }

    /// Whether there is no other handle over the same provider.
    pub fn is_only_handle(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// What the job looks like.
    #[inline]
    pub fn facts(&self) -> &Arc<JobFacts> {
        &self.shared.facts
    }

    /// Wake who is parked where something was written directly.
    #[inline(always)]
    pub(super) fn rung(&self, place: &Place) {
        if place.may_be_parked_at() {
            self.ring(place);
        }
    }

    /// Out of line, so that the short path keeps what it has in registers.
    #[cold]
    #[inline(never)]
    fn ring(&self, place: &Place) {
        self.provider().ring(place);
    }
}
