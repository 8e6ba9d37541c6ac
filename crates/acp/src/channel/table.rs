//! The table of connection requests to a rank.
//!
//! It starts with the *doorbell*, a word that each requesting rank adds to, and has entries of 64
//! bytes: the flag, and the request. The flag is 0 when the entry is free; the requesting rank plus
//! one while that rank fills the entry; and the same with [`READY`] when it is filled.
//!
//! # Protocol
//! 1. The requesting rank claims an entry by compare and swap of its flag. If none is free, it
//!    rings the doorbell, sleeps, and tries again.
//! 2. It puts its request into the entry, and flushes.
//! 3. It marks the flag as ready, and rings the doorbell. A rank that reads the flag as ready sees
//!    the
//!    entire entry.
//! 4. The table's owner, which waits for the doorbell, copies the entry, and frees it.
//!
//! An entry whose claimant is lost before step 3 is taken over by the next rank that finds it:
//! operations of a rank that was reported lost no longer take effect.

use crate::{AcpError, Result, pace::Pace};
use rdma_fabric::{Amo, Fabric, FabricError, LocalWord, Rank, RegionKey, RemoteAddr, RemoteWord};

/// Bit of a flag: the request can be read.
const READY: u64 = 1 << 63;
const ENTRIES_AT: u64 = 64;
const ENTRY_BYTES: u64 = 64;
const WORDS: usize = 4;

/// Returns the size of a table.
#[deny(clippy::arithmetic_side_effects)]
pub(super) fn bytes(entries: usize) -> usize {
    entries.saturating_mul(ENTRY_BYTES as usize).saturating_add(ENTRIES_AT as usize)
}

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Channel,
    Segments,
}

/// The requesting end: its rank, its kind, and its number among that rank's ends to the table's
/// owner.
pub(super) type Asker = (Rank, Kind, u32);

/// A connection request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) asker: Asker,
    /// Its control block, which receives the answer.
    pub(super) block: RegionKey,
    pub(super) slots: u64,
    pub(super) slot_bytes: u64,
}

impl Ask {
    fn to_words(self) -> [u64; WORDS] {
        let (rank, kind, number) = self.asker;
        let kind = u64::from(kind == Kind::Segments);
        let asker = u64::from(rank.number()) << 33 | kind << 32 | u64::from(number);
        [asker, self.block.to_bits(), self.slots, self.slot_bytes]
    }

    fn from_words([asker, block, slots, slot_bytes]: [u64; WORDS]) -> Self {
        let kind = if asker >> 32 & 1 == 0 { Kind::Channel } else { Kind::Segments };
        let asker = (Rank::new((asker >> 33) as u32), kind, asker as u32);
        Ask { asker, block: RegionKey::from_bits(block), slots, slot_bytes }
    }
}

fn entry(table: RemoteAddr, number: u64, offset: u64) -> RemoteAddr {
    RemoteAddr { offset: table.offset + ENTRIES_AT + number * ENTRY_BYTES + offset, ..table }
}

/// Puts a request into the table at `table`.
pub(super) async fn ask(fabric: Fabric, table: RemoteAddr, entries: u64, ask: Ask) -> Result<()> {
    let mine = u64::from(fabric.rank().number()) + 1;
    let doorbell = fabric.remote_word::<u64>(table)?;
    let mut pace = Pace::new(&fabric);
    let claimed = loop {
        if let Some(claimed) = claim(&fabric, table, entries, mine).await? {
            break claimed;
        }
        fabric.fetch_add(&doorbell, 1).await?;
        pace.pause(&fabric).await;
    };
    let place = fabric.remote_span::<u64>(entry(table, claimed, 8), WORDS)?;
    fabric.put(&place, ask.to_words()).await?;
    fabric.flush(table.rank).await?;
    let flag = fabric.remote_word::<u64>(entry(table, claimed, 0))?;
    fabric.fetch_or(&flag, READY).await?;
    fabric.fetch_add(&doorbell, 1).await?;
    Ok(())
}

/// Claims an entry; returns its number, or `None` if all are in use.
async fn claim(fabric: &Fabric, table: RemoteAddr, entries: u64, mine: u64) -> Result<Option<u64>> {
    for turn in 0..entries {
        let number = (mine + turn) % entries;
        let flag = fabric.remote_word::<u64>(entry(table, number, 0))?;
        let before = fabric.compare_swap(&flag, 0, mine).await?;
        if before == 0
            || is_abandoned(fabric, table, before).await && fabric.compare_swap(&flag, before, mine).await? == before
        {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Returns whether a flag belongs to a rank that is gone and has not filled its entry.
async fn is_abandoned(fabric: &Fabric, table: RemoteAddr, flag: u64) -> bool {
    let Ok(claimant) = u32::try_from(flag.wrapping_sub(1)) else { return false };
    // Any access to the rank's memory shows whether it is gone.
    let doorbell = RemoteAddr { rank: Rank::new(claimant), ..table };
    let seen = match fabric.remote_word::<u64>(doorbell) {
        Ok(doorbell) => fabric.get_word(&doorbell).await,
        Err(error) => Err(error),
    };
    matches!(seen, Err(FabricError::PeerLost { .. } | FabricError::StaleRegion { .. }))
}

/// Takes all requests out of this rank's own table.
pub(super) async fn take(fabric: Fabric, table: RemoteAddr, entries: u64) -> Result<Vec<Ask>> {
    let mut asks = Vec::new();
    for number in 0..entries {
        let flag: LocalWord<u64> = fabric.local_word(entry(table, number, 0))?;
        if fabric.load(&flag)? & READY == 0 {
            continue;
        }
        let mut words = [0; WORDS];
        fabric.read(&fabric.local_span::<u64>(entry(table, number, 8), WORDS)?, &mut words)?;
        // Other ranks compare-and-swap the flag, so the owner also changes it through the network.
        let shared: RemoteWord<u64> = flag.as_remote();
        fabric.atomic(&shared, Amo::Swap(0)).await.map_err(AcpError::from)?;
        asks.push(Ask::from_words(words));
    }
    Ok(asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_comes_back() {
        for (rank, kind, number) in [(0, Kind::Channel, 0), (0x1f_fffe, Kind::Segments, u32::MAX)] {
            let block = RegionKey { index: 7, generation: 9 };
            let ask = Ask { asker: (Rank::new(rank), kind, number), block, slots: 3, slot_bytes: 5 };
            assert_eq!(Ask::from_words(ask.to_words()), ask);
        }
    }
}
