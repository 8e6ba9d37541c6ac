//! Sets, multisets, maps and multimaps.

mod concurrent;
mod lost;
mod misuse;
mod model;
mod single;

use acp::{Acp, Options, Result};
use rdma_fabric::{Fabric, Rank};

const HEAP: usize = 256 << 10;

async fn begin(fabric: &Fabric) -> Result<Acp> {
    Acp::init_with(fabric, Options::default().heap_bytes(HEAP)).await
}

/// Checks that nothing is allocated at any rank.
async fn assert_freed(acp: &Acp) -> Result<()> {
    for rank in 0..acp.ranks() as u32 {
        // The heap without its own words and the marks of a block.
        let all = acp.malloc(HEAP - 56, Rank::new(rank)).await?;
        acp.free(all).await?;
    }
    Ok(())
}
