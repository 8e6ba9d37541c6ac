//! The loss of a rank, by the number that it has after a reset.

use crate::bed::survivors;
use acp::{Acp, AcpError, Mode, Options, Order};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank};
use std::time::Duration;

const RANKS: u32 = 4;

fn is_named<T>(outcome: acp::Result<T>, lost: Rank) -> bool {
    matches!(outcome, Err(AcpError::Fabric(FabricError::PeerLost { rank })) if rank == lost)
}

/// Each rank becomes the next one, and the last one, rank 0 from then on, fails.
#[test]
fn a_lost_rank_has_its_number_after_a_reset() {
    for mode in [Mode::Direct, Mode::CommandQueue] {
        let ended = survivors(RANKS as usize, &async |fabric: Fabric| -> ProgramResult<Vec<bool>> {
            let acp = Acp::init_with(&fabric, Options::default().mode(mode)).await?;
            let lost = Rank::new(0);
            acp.reset(Rank::new((fabric.rank().number() + 1) % RANKS)).await?;
            let (theirs, own) = (acp.starter(lost)?, acp.starter(acp.rank())?);
            let block = acp.malloc(8, Rank::new(1)).await?;
            acp.load::<u64>(theirs).await?;
            acp.sync().await?;
            if acp.rank() == lost {
                // It holds the lock of another rank's heap.
                let lock = block.checked_sub(block.offset()).expect("in the region");
                acp.store(lock, 1u64).await?;
                acp.sync().await?;
                // The puts of its barrier arrive first.
                fabric.sleep(Duration::from_millis(1)).await;
                return Err("lost".into());
            }
            let (to, from) = (acp.sender(lost)?, acp.receiver(lost)?);
            acp.sync().await?;
            let mut named = vec![is_named(from.recv(&mut [0u8]).await, lost), is_named(to.send(&[0u8]).await, lost)];
            let copied = match acp.copy(theirs, own, 8, Order::None).await {
                Ok(copy) => acp.complete(copy).await,
                Err(error) => Err(error),
            };
            named.push(is_named(copied, lost));
            named.push(is_named(acp.load::<u64>(theirs).await, lost));
            named.push(is_named(acp.write(theirs, &[1u8; 100]).await, lost));
            named.push(is_named(acp.malloc(8, lost).await, lost));
            named.push(is_named(acp.malloc(8, Rank::new(1)).await, lost));
            named.push(is_named(acp.sync().await, lost));
            // The memory of all must outlive its users.
            fabric.sleep(Duration::from_millis(20)).await;
            Ok(named)
        });
        for (place, named) in ended.iter().enumerate() {
            let expected = (place != 3).then(|| vec![true; 8]);
            assert_eq!(*named, expected, "{mode:?}: rank {place} of the fabric");
        }
    }
}
