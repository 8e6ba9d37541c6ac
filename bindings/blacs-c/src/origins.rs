//! The ranks whose loss has made other ranks give up.
//!
//! A process that waits for a lost rank ends, and is itself lost to the ranks that wait for it. So
//! that these ranks report the rank that was lost first, the process writes its number into the memory
//! of all ranks before it ends.

use rdma_fabric::{Fabric, FabricError, Rank, Region};

/// A word for each rank: 0, or one more than the number of the rank whose loss has made it give up.
#[derive(Debug)]
pub(crate) struct Origins(Region);

const WORD: usize = size_of::<u64>();

impl Origins {
    /// Collective over the job.
    ///
    /// # Errors
    /// Those of [`Fabric::alloc_symmetric`].
    pub(crate) async fn new(fabric: &Fabric) -> Result<Self, FabricError> {
        Ok(Origins(fabric.alloc_symmetric(WORD * fabric.ranks()).await?))
    }

    /// Returns the rank whose loss made `lost` give up; `lost` itself if it has not given up.
    pub(crate) fn of(&self, fabric: &Fabric, lost: Rank) -> Rank {
        let word = self.0.word::<u64>(fabric, WORD * lost.index()).and_then(|word| fabric.load(&word));
        let origin = word.ok().and_then(|word| u32::try_from(word.checked_sub(1)?).ok());
        origin.map_or(lost, Rank::new)
    }

    /// Publishes that this rank gives up because of the loss of `origin`. Failed writes to ranks
    /// that are already lost are ignored: they need no notification.
    pub(crate) async fn publish(&self, fabric: &Fabric, origin: Rank) {
        let value = u64::from(origin.number()) + 1;
        for rank in (0..fabric.ranks()).filter_map(|rank| u32::try_from(rank).ok()).map(Rank::new) {
            if let Ok(word) = self.0.word_of::<u64>(fabric, rank, WORD * fabric.rank().index()) {
                let _ = fabric.put_word(&word, value).await;
            }
        }
    }
}
