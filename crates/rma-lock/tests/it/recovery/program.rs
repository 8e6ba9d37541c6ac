//! What ranks do with the lock, and what must hold of it whoever dies.

use rdma_fabric::{Fabric, ProgramResult, Rank, RemoteWord};
use rma_lock::{Lock, LockError, RecoverableLock, RecoverableWriteGuard, Recovery};
use std::time::Duration;

pub(crate) const HOME: Rank = Rank::new(0);

/// What a survivor has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Versions it wrote and released.
    pub(crate) wrote: u64,
    /// Times it found torn data.
    pub(crate) torn: u64,
    /// The version at the end; at the home only.
    pub(crate) version: u64,
}

/// Two words that are always the same under the lock.
struct Record([RemoteWord<u64>; 2]);

impl Record {
    async fn look(&self, fabric: &Fabric) -> ProgramResult<[u64; 2]> {
        Ok([fabric.get_word(&self.0[0]).await?, fabric.get_word(&self.0[1]).await?])
    }

    async fn set(&self, fabric: &Fabric, version: u64) -> ProgramResult<()> {
        for word in &self.0 {
            fabric.put_word(word, version).await?;
        }
        Ok(())
    }
}

/// Reads and writes in turn, `rounds` times. A rank that dies may leave the record torn; who finds it mends it.
pub(crate) async fn rounds(
    fabric: Fabric,
    deaths: usize,
    rounds: u64,
    busy: Duration,
    end: Duration,
) -> ProgramResult<Tally> {
    let lock = RecoverableLock::symmetric_with(&fabric, HOME, Recovery::of_deaths(deaths)).await?;
    let region = fabric.alloc_symmetric(16).await?;
    let record = Record([0, 8].map(|offset| fabric.remote_word(region.at(HOME, offset)).expect("two words")));
    let mut tally = Tally::default();
    for round in 0..rounds {
        if (round + u64::from(fabric.rank().number())).is_multiple_of(2) {
            let guard = match lock.write().await {
                Err(LockError::Torn { .. }) => {
                    let mut guard = lock.mend().await?;
                    if guard.torn().is_some() {
                        tally.torn += 1;
                        let [a, b] = record.look(&fabric).await?;
                        record.set(&fabric, a.max(b)).await?;
                        fabric.flush(HOME).await?;
                        guard.clear_torn().await?;
                    }
                    guard
                }
                guard => guard?,
            };
            write(&fabric, &record, busy, guard).await?;
            tally.wrote += 1;
        } else {
            match lock.read().await {
                Err(LockError::Torn { .. }) => continue,
                guard => {
                    let guard = guard?;
                    let [a, b] = record.look(&fabric).await?;
                    assert_eq!(a, b, "a reader saw a torn record");
                    guard.release().await?;
                }
            }
        }
    }
    if fabric.rank() == HOME {
        // Its memory is needed.
        fabric.sleep(end).await;
        let [a, b] = record.look(&fabric).await?;
        tally.version = a.max(b);
    }
    Ok(tally)
}

async fn write(
    fabric: &Fabric,
    record: &Record,
    busy: Duration,
    guard: RecoverableWriteGuard<'_>,
) -> ProgramResult<()> {
    let [a, b] = record.look(fabric).await?;
    assert_eq!(a, b, "a writer saw a torn record");
    fabric.put_word(&record.0[0], a + 1).await?;
    fabric.compute(busy).await;
    fabric.put_word(&record.0[1], a + 1).await?;
    Ok(guard.release().await?)
}
