//! The heap: allocations do not overlap, all of them are freed, and misuse changes nothing.

use crate::harness::{everywhere, held_by, meet, survivors};
use acp::{Acp, AcpError, GlobalAddress, Options, Result};
use core::time::Duration;
use fastrand::Rng;
use rdma_fabric::{Amo, Fabric, FabricError, ProgramResult, Rank};
use std::collections::BTreeMap;

const HEAP: usize = 4 << 10;
/// The largest allocation: the heap without its own words and the two marks of a block.
const MOST: usize = HEAP - 40 - 16;

async fn begin(fabric: &Fabric) -> Result<Acp> {
    Acp::init_with(fabric, Options::default().heap_bytes(HEAP)).await
}

/// Checks that a heap can be allocated in one piece, that is, nothing is allocated and the free
/// blocks have been merged.
async fn assert_whole(acp: &Acp, rank: Rank) -> Result<()> {
    let all = acp.malloc(MOST, rank).await?;
    assert_eq!(acp.malloc(0, rank).await, Err(AcpError::HeapExhausted { rank, bytes: 0 }));
    acp.free(all).await
}

/// Random allocations of one rank in another's heap, compared with a map of the allocated bytes.
#[test]
fn blocks_do_not_overlap_and_grow_together() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        for seed in 0..4 {
            println!("seed {seed}");
            if acp.rank().number() == seed as u32 % 2 {
                let mut random = Rng::with_seed(seed);
                let home = Rank::new(random.usize(..2) as u32);
                let mut taken = BTreeMap::<u64, (GlobalAddress, usize)>::new();
                for _ in 0..200 {
                    if random.usize(..5) < 3 {
                        let bytes = random.usize(..400);
                        match acp.malloc(bytes, home).await {
                            Ok(at) => {
                                assert_eq!((at.rank(), at.offset() % 8), (home, 0));
                                let (start, end) = (at.offset(), at.offset() + bytes as u64);
                                assert!(end <= HEAP as u64);
                                if let Some((before, (_, bytes))) = taken.range(..=start).next_back() {
                                    assert!(before + (*bytes).max(1) as u64 <= start);
                                }
                                assert!(taken.range(start..end.max(start + 1)).next().is_none());
                                acp.write(at, &vec![0xA5u8; bytes]).await?;
                                taken.insert(start, (at, bytes));
                            }
                            Err(AcpError::HeapExhausted { rank, bytes: asked }) => {
                                assert_eq!((rank, asked), (home, bytes as u64));
                                let sum: usize = taken.values().map(|(_, bytes)| bytes.next_multiple_of(8) + 16).sum();
                                assert!(sum > MOST / 4, "only {sum} bytes are taken");
                            }
                            Err(error) => return Err(error.into()),
                        }
                    } else if let Some(start) = taken.keys().copied().nth(random.usize(..taken.len().max(1))) {
                        let (at, bytes) = taken.remove(&start).expect("it is there");
                        let mut seen = vec![0u8; bytes];
                        acp.read(at, &mut seen).await?;
                        assert_eq!(seen, vec![0xA5; bytes]);
                        acp.free(at).await?;
                        assert_eq!(acp.free(at).await, Err(AcpError::NotAllocated { address: at }));
                    }
                }
                for (at, _) in taken.into_values() {
                    acp.free(at).await?;
                }
                assert_whole(&acp, home).await?;
            }
            acp.sync().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn large_blocks_start_at_a_line() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let mut taken = vec![];
        for bytes in [8, 1016, 24, 1100, 16] {
            let at = acp.malloc(bytes, acp.rank()).await?;
            assert!(bytes < 1000 || at.offset() % 64 == 0, "{bytes} bytes at {at}");
            taken.push(at);
        }
        for at in taken {
            acp.free(at).await?;
        }
        assert_whole(&acp, acp.rank()).await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// All ranks at once in one heap; each block has its owner's pattern as long as it is allocated.
#[test]
fn all_ranks_use_one_heap_at_once() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let (me, home) = (u64::from(acp.rank().number()), Rank::new(1));
        let (mut random, mut own) = (Rng::with_seed(me), Vec::new());
        for round in 0..60 {
            let bytes = 8 * (1 + random.usize(..20));
            match acp.malloc(bytes, home).await {
                Ok(at) => {
                    let pattern = vec![me << 32 | round; bytes / 8];
                    acp.write(at, &pattern).await?;
                    own.push((at, pattern));
                }
                Err(AcpError::HeapExhausted { .. }) => assert!(!own.is_empty() || round > 0),
                Err(error) => return Err(error.into()),
            }
            while own.len() > 6 || (!own.is_empty() && random.usize(..3) == 0) {
                let (at, pattern) = own.swap_remove(random.usize(..own.len()));
                let mut seen = vec![0u64; pattern.len()];
                acp.read(at, &mut seen).await?;
                assert_eq!(seen, pattern);
                acp.free(at).await?;
            }
        }
        for (at, _) in own {
            acp.free(at).await?;
        }
        acp.sync().await?;
        if me == 2 {
            assert_whole(&acp, home).await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn misuse_changes_nothing() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let home = Rank::new(1);
            let three = [acp.malloc(24, home).await?, acp.malloc(100, home).await?, acp.malloc(0, home).await?];
            acp.free(three[1]).await?;
            let heap = three[0].checked_sub(three[0].offset()).expect("in the region");
            let mut before = vec![0u8; HEAP];
            acp.read(heap, &mut before).await?;
            let mut wrong: Vec<GlobalAddress> = (0..HEAP as u64).filter_map(|at| heap.checked_add(at)).collect();
            wrong.retain(|at| *at != three[0] && *at != three[2]);
            wrong.push(heap.offset_by(HEAP as u64)?);
            wrong.push(heap.offset_by(1 << 20)?);
            wrong.push(acp.starter(home)?.offset_by(three[0].offset())?);
            let own = acp.allocate(64, 0)?;
            wrong.push(acp.address(own, 40)?);
            for address in wrong {
                assert_eq!(acp.free(address).await, Err(AcpError::NotAllocated { address }), "{address}");
            }
            let none = acp.malloc(1, Rank::new(2)).await;
            assert_eq!(none, Err(AcpError::NoSuchRank { rank: Rank::new(2), ranks: 2 }));
            for bytes in [MOST - 100, HEAP, usize::MAX] {
                let refused = acp.malloc(bytes, home).await;
                assert_eq!(refused, Err(AcpError::HeapExhausted { rank: home, bytes: bytes as u64 }));
            }
            let mut after = vec![0u8; HEAP];
            acp.read(heap, &mut after).await?;
            assert!(before == after);
            // Overwrites the end of the lower neighbour.
            acp.write(three[0].checked_sub(16).expect("inside"), &[7u64]).await?;
            assert!(matches!(acp.free(three[0]).await, Err(AcpError::Damaged { .. })));
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn a_heap_too_small_for_a_block_has_none() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        for (heap_bytes, fits) in [(0, false), (7, false), (40, false), (71, false), (72, true)] {
            let acp = Acp::init_with(&fabric, Options::default().heap_bytes(heap_bytes)).await?;
            match acp.malloc(16, acp.rank()).await {
                Ok(at) => acp.free(at).await?,
                Err(error) => {
                    assert_eq!((error, fits), (AcpError::HeapExhausted { rank: acp.rank(), bytes: 16 }, false))
                }
            }
            acp.finalize().await?;
        }
        Ok(())
    });
}

/// Calls are cancelled after various times, while another rank uses the heap.
#[test]
fn dropped_calls_leave_nothing_allocated() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let (home, mut unsure) = (Rank::new(1), Vec::new());
        for nanos in (0..400_000).step_by(4_000) {
            let until = fabric.now() + Duration::from_nanos(nanos);
            if let Some(at) = fabric.before(until, acp.malloc(40, home)).await {
                let at = at?;
                let until = fabric.now() + Duration::from_nanos(nanos);
                match fabric.before(until, acp.free(at)).await {
                    Some(freed) => freed?,
                    None => unsure.push(at),
                }
            }
        }
        acp.sync().await?;
        // Frees the allocations of calls that were dropped.
        let last = acp.malloc(8, home).await?;
        acp.free(last).await?;
        acp.sync().await?;
        // The dropped call either freed the block or did not start. If it did, the other rank may
        // have allocated the same block next and be unsure about it too; only the first of the two
        // frees succeeds.
        for at in unsure {
            match acp.free(at).await {
                Ok(()) | Err(AcpError::NotAllocated { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        acp.sync().await?;
        acp.sync().await?;
        if acp.rank().number() == 0 {
            assert_whole(&acp, home).await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// Rank 2 is lost while it holds the heap's lock word, which is the heap's first word.
#[test]
fn a_lost_holder_is_an_error_for_all() {
    let ended = survivors(3, &async |fabric: Fabric| -> ProgramResult<bool> {
        let acp = begin(&fabric).await?;
        let home = Rank::new(0);
        let block = acp.malloc(8, home).await?;
        acp.sync().await?;
        if acp.rank().number() == 2 {
            let lock = block.checked_sub(block.offset()).expect("in the region");
            assert_eq!(acp.fetch(lock, Amo::CompareSwap { expected: 0, new: held_by(2) }).await?, 0);
            meet(&acp, &fabric, &[0, 1, 2], 0).await?;
            return Err("lost".into());
        }
        meet(&acp, &fabric, &[0, 1, 2], 0).await?;
        let lost = AcpError::from(FabricError::PeerLost { rank: Rank::new(2) });
        assert_eq!(acp.malloc(8, home).await, Err(lost.clone()));
        assert_eq!(acp.free(block).await, Err(lost.clone()));
        // Other heaps, and existing allocations, can still be used.
        acp.write(block, &[1u64]).await?;
        let other = acp.malloc(8, Rank::new(1)).await?;
        acp.free(other).await?;
        assert_eq!(acp.malloc(8, Rank::new(2)).await, Err(lost));
        // The memory of both must outlive their users.
        meet(&acp, &fabric, &[0, 1], 1).await?;
        Ok(true)
    });
    assert_eq!(ended, [Some(true), Some(true), None]);
}

/// A block is written to after it was freed: its links are no offsets of the heap.
#[test]
fn overwritten_links_are_no_offsets() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let me = acp.rank();
        // The second one lies before the first, and is merged with it when it is freed.
        let (first, second) = (acp.malloc(64, me).await?, acp.malloc(64, me).await?);
        acp.free(first).await?;
        for link in [u64::MAX, u64::MAX - 7] {
            acp.write(first, &[link; 2]).await?;
            let freed = acp.free(second).await;
            assert!(matches!(freed, Err(AcpError::OutOfBounds(_))), "{link}: {freed:?}");
        }
        acp.finalize().await?;
        Ok(())
    });
}
