//! The interface of a provider with multicasts.

use super::{Place, Posted, Source};
use crate::{Rank, Result};

/// Puts to several ranks at once: see [`MulticastSpan`](crate::MulticastSpan).
pub trait Multicast {
    /// Checks that one multicast can reach these ranks, which exist.
    ///
    /// # Errors
    /// [`FabricError::Multicast`](crate::FabricError::Multicast).
    fn reaches(&self, members: &[Rank]) -> Result<()>;
    /// Posts a put of the same bytes to each of these places, at least one, which are as long as the
    /// source and are the same part of the same region of [reachable](Multicast::reaches) ranks.
    /// [`Provider::poll`](super::Provider::poll) polls it, and it counts among the puts to each of
    /// the ranks.
    fn multicast(&self, to: &[Place], from: Source<'_>) -> Posted;
}
