//! The loss of a rank: its reported number, and the state that it leaves behind.

use crate::harness::{held_by, survivors};
use acp::{Acp, AcpError, Mode, Options, Order};
use checks::jobs::virtual_time;
use rdma_fabric::{
    Amo, Fabric, FabricError, Group, ProgramResult, Rank, forward,
    provider::{Place, Posted, Provider},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tofu2_sim::virt::Platform;

const RANKS: u32 = 4;

fn is_named<T>(outcome: acp::Result<T>, lost: Rank) -> bool {
    matches!(outcome, Err(AcpError::Fabric(FabricError::PeerLost { rank })) if rank == lost)
}

/// Each rank takes the number of the next one; the last rank, which becomes rank 0, fails.
#[test]
fn a_lost_rank_has_its_number_after_a_reset() {
    for mode in [Mode::Direct, Mode::CommandQueue] {
        let ended = survivors(RANKS as usize, &async |fabric: Fabric| -> ProgramResult<Vec<bool>> {
            let acp = Acp::init_with(&fabric, Options::default().mode(mode)).await?;
            let lost = Rank::new(0);
            let mut world = Group::world(&fabric).await?;
            let survivors = world.split((fabric.rank().number() != RANKS - 1).then_some(0), 0).await?;
            acp.reset(Rank::new((fabric.rank().number() + 1) % RANKS)).await?;
            let (theirs, own) = (acp.starter(lost)?, acp.starter(acp.rank())?);
            let block = acp.malloc(8, Rank::new(1)).await?;
            acp.load::<u64>(theirs).await?;
            acp.sync().await?;
            if acp.rank() == lost {
                // The failing rank holds the lock of another rank's heap.
                let lock = block.checked_sub(block.offset()).expect("in the region");
                acp.store(lock, held_by(0)).await?;
                // The others have completed set-up.
                while acp.load::<u64>(own).await? < u64::from(RANKS) - 1 {
                    acp.while_serving(fabric.sleep(Duration::from_micros(100))).await;
                }
                return Err("lost".into());
            }
            let (to, from) = (acp.sender(lost)?, acp.receiver(lost)?);
            acp.fetch(theirs, Amo::Add(1u64)).await?;
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
            acp.while_serving(survivors.ok_or("no survivor")?.barrier()).await?;
            Ok(named)
        });
        for (place, named) in ended.iter().enumerate() {
            let expected = (place != 3).then(|| vec![true; 8]);
            assert_eq!(*named, expected, "{mode:?}: rank {place} of the fabric");
        }
    }
}

/// Records that a slot was requested.
#[derive(Debug)]
struct Watched {
    below: Fabric,
    claims: Arc<AtomicBool>,
}

impl Provider for Watched {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake, put, get, copy, nop);
    forward!(poll, test, forget, try_notice, poll_wait, end_wait, now, detach, optional);

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.claims.fetch_or(matches!(amo, Amo::CompareSwap { .. }), Relaxed);
        self.below.provider().atomic(word, amo)
    }
}

/// Rank 1 fails after it has claimed rank 0's only slot for requests, and ranks 2 and 3 need it.
#[test]
fn the_slot_of_a_lost_rank_is_taken_over() {
    let program = async |fabric: Fabric| -> ProgramResult<u64> {
        let claims = Arc::new(AtomicBool::new(false));
        let watched = fabric.layered(Watched { below: fabric.clone(), claims: claims.clone() });
        let acp = Acp::init_with(&watched, Options::default().delegation_slots(1)).await?;
        let (me, at) = (acp.rank().number(), acp.starter(Rank::new(0))?);
        let mine = at.offset_by(8 * u64::from(me))?;
        acp.store(acp.starter(acp.rank())?, 7 + u64::from(me)).await?;
        acp.sync().await?;
        match me {
            0 => {
                let end = fabric.now() + Duration::from_millis(20);
                acp.while_serving(fabric.sleep_until(end)).await;
                return Ok(0);
            }
            1 => {
                acp.copy(mine, at, 8, Order::None).await?;
                assert!(claims.load(Relaxed), "the network copies by itself");
                // Time for the claim only.
                fabric.sleep(Duration::from_micros(100)).await;
                return Err("lost".into());
            }
            // Rank 2 continues when the slot is taken but the loss is not yet known; rank 3 when
            // all ranks know of the loss.
            _ => fabric.sleep(Duration::from_micros(if me == 2 { 50 } else { 5_000 })).await,
        }
        acp.complete(acp.copy(mine, at, 8, Order::None).await?).await?;
        Ok(acp.load(mine).await?)
    };
    let (run, _) = virtual_time(&Platform::fx100(), 4).run_through(&program).expect("virtual time");
    assert_eq!(run.outs, [Some(0), None, Some(7), Some(7)]);
}
