//! Vectors and deques, compared with those of std.

mod random;

use crate::harness::everywhere;
use acp::{Acp, AcpError, Deque, GlobalAddress, Options, Result, Vector};
use core::time::Duration;
use fastrand::Rng;
use rdma_fabric::{Fabric, ProgramResult, Rank};
use std::collections::VecDeque;

const HEAP: usize = 32 << 10;

async fn begin(fabric: &Fabric) -> Result<Acp> {
    Acp::init_with(fabric, Options::default().heap_bytes(HEAP)).await
}

/// Checks that the whole heap can be allocated in one piece.
async fn assert_whole(acp: &Acp, rank: Rank) -> Result<()> {
    let all = acp.malloc(HEAP - 56, rank).await?;
    acp.free(all).await
}

/// A remote rank uses both ends of a ring, which does not grow.
#[test]
fn a_deque_is_a_ring() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 1 {
            let deque = Deque::<u32>::create(&acp, 10, Rank::new(0)).await?;
            let (mut oracle, mut random) = (VecDeque::new(), Rng::with_seed(9));
            let mut wrapped = 0;
            for n in 0..400u32 {
                match random.usize(..4) {
                    0 if oracle.len() < 10 => {
                        deque.push_front(&n).await?;
                        oracle.push_front(n);
                    }
                    1 if oracle.len() < 10 => {
                        deque.push_back(&n).await?;
                        oracle.push_back(n);
                    }
                    2 => assert_eq!(deque.pop_front().await?, oracle.pop_front()),
                    3 => assert_eq!(deque.pop_back().await?, oracle.pop_back()),
                    _ => {
                        let (mut cursor, mut seen) = (deque.begin(), Vec::new());
                        while let Some(element) = cursor.next().await? {
                            seen.push(element);
                        }
                        assert!(oracle.iter().eq(seen.iter()));
                        assert_eq!(deque.begin().distance(&deque.end().await?), seen.len() as isize);
                    }
                }
                let pieces = deque.pieces(0..oracle.len()).await?;
                wrapped += usize::from(pieces.len() == 2);
                let mut through = Vec::new();
                for (at, bytes) in pieces {
                    let mut words = vec![0u32; bytes / 4];
                    acp.read(at, &mut words).await?;
                    through.extend(words);
                }
                assert!(oracle.iter().eq(through.iter()));
            }
            assert_eq!(deque.capacity().await?, 10);
            assert!(wrapped > 50, "it went on at the beginning only {wrapped} times");
            deque.destroy().await?;
            assert_whole(&acp, Rank::new(0)).await?;
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn the_words_are_those_of_the_interface() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let vector = Vector::<u16>::create(&acp, 0, Rank::new(1)).await?;
            let mut words = [9u64; 4];
            acp.read(vector.address(), &mut words[..3]).await?;
            assert_eq!(words[..3], [0; 3]);
            may_change_threads(vector.extend_from_slice(&[1, 2, 3])).await?;
            acp.read(vector.address(), &mut words[..3]).await?;
            assert_eq!(words[..3], [vector.at(0).await?.to_bits(), 6, 6]);
            // The same, in bytes.
            let bytes = Vector::<u8>::from_address(&acp, vector.address());
            assert_eq!(bytes.to_vec().await?, [1u16, 2, 3].map(u16::to_ne_bytes).concat());
            let deque = Deque::<u16>::create(&acp, 4, Rank::new(1)).await?;
            deque.extend_from_slice(&[1, 2, 3]).await?;
            deque.erase(0..2).await?;
            acp.read(deque.address(), &mut words).await?;
            assert_eq!(words, [deque.at(0).await?.to_bits() - 4, 4, 2, 8]);
            let mut cursor = vector.begin();
            cursor.advance(2)?;
            assert_eq!((cursor.position(), cursor.address().await?), (2, vector.at(2).await?));
            assert!(cursor.advance(-3).is_err());
            assert_eq!((cursor.next().await?, cursor.next().await?), (Some(3), None));
            // Invalid objects.
            acp.write(deque.address(), &[1u64, 2, 3]).await?;
            assert_eq!(deque.len().await, Err(AcpError::Damaged { address: deque.address() }));
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// Futures of calls may be polled by one thread after another.
fn may_change_threads<F: Future + Send>(future: F) -> F {
    future
}

#[test]
fn a_full_heap_changes_nothing() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let home = Rank::new(1);
            let vector = Vector::<u64>::create(&acp, 4, home).await?;
            let mut grown = 0u64;
            // It grows until even the necessary size does not fit beside the current body.
            let error = loop {
                match vector.push_back(&grown).await {
                    Ok(()) => grown += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(error, AcpError::HeapExhausted { rank: home, bytes: 8 * (grown + 1) });
            assert!(grown as usize * 8 > HEAP / 4, "{grown} elements");
            assert_eq!(vector.to_vec().await?, (0..grown).collect::<Vec<_>>());
            let refused = vector.reserve(usize::MAX).await;
            assert!(matches!(refused, Err(AcpError::HeapExhausted { .. })));
            let none = Deque::<u64>::create(&acp, HEAP, home).await.map(drop);
            assert!(matches!(none, Err(AcpError::HeapExhausted { .. })));
            vector.destroy().await?;
            assert_whole(&acp, home).await?;
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// Sources outside of any region, in a dropped region, and beyond the end of a region.
#[test]
fn unreadable_sources_change_nothing() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let board = acp.starter(Rank::new(1))?;
        let key = acp.allocate(64, 0)?;
        if acp.rank().number() == 1 {
            acp.store(board, acp.address(key, 0)?.to_bits()).await?;
        }
        acp.sync().await?;
        let there = GlobalAddress::from_bits(acp.load(board).await?).expect("an address");
        // By now the other rank has resolved the region.
        acp.load::<u64>(there).await?;
        acp.sync().await?;
        acp.unregister(key)?;
        acp.sync().await?;
        if acp.rank().number() == 0 {
            let all: Vec<u64> = (0..10).collect();
            let vector = Vector::<u64>::create(&acp, 16, Rank::new(1)).await?;
            let deque = Deque::<u64>::create(&acp, 16, Rank::new(1)).await?;
            vector.extend_from_slice(&all).await?;
            deque.extend_from_slice(&all).await?;
            for at in [0, 3, 8, 10] {
                let beyond = board.offset_by(10 << 10)?;
                for (from, count) in [(there, 2), (beyond, 2), (there.offset_by(1 << 20)?, 2), (board, usize::MAX)] {
                    assert!(vector.insert_from(at, from, count).await.is_err());
                    assert!(deque.insert_from(at, from, count).await.is_err());
                    assert_eq!((vector.to_vec().await?, deque.to_vec().await?), (all.clone(), all.clone()));
                }
            }
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// Changes are cancelled after various times: each takes effect completely or not at all.
#[test]
fn dropped_changes_are_whole() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let deque = Deque::<u64>::create(&acp, 64, Rank::new(1)).await?;
            let mut now: Vec<u64> = (0..20).collect();
            deque.extend_from_slice(&now).await?;
            for nanos in (0..400_000).step_by(2_000) {
                let until = fabric.now() + Duration::from_nanos(nanos);
                let at = (nanos / 2_000) as usize % 20;
                let mut then = now.clone();
                if at.is_multiple_of(2) {
                    then.splice(at..at, [nanos, nanos + 1]);
                    let _ = fabric.before(until, deque.insert_slice(at, &[nanos, nanos + 1])).await;
                } else if now.len() > 10 {
                    then.drain(at % 8..at % 8 + 2);
                    let _ = fabric.before(until, deque.erase(at % 8..at % 8 + 2)).await;
                }
                // Longer than any work in the background takes.
                fabric.sleep(Duration::from_millis(1)).await;
                let seen = deque.to_vec().await?;
                assert!(seen == now || seen == then, "{seen:?}: neither {now:?} nor {then:?}");
                now = seen;
                if now.len() > 40 || now.len() < 20 {
                    now = (0..20).collect();
                    deque.clear().await?;
                    deque.extend_from_slice(&now).await?;
                }
            }
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn zeroed_sequences_have_their_length_at_once() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let home = Rank::new(1);
            let vector = Vector::<u32>::create_zeroed(&acp, 5, home).await?;
            let deque = Deque::<u32>::create_zeroed(&acp, 0, home).await?;
            assert_eq!((vector.to_vec().await?, deque.to_vec().await?), (vec![0; 5], vec![]));
            let full = Vector::<u32>::create_zeroed(&acp, usize::MAX, home).await;
            assert!(matches!(full, Err(AcpError::HeapExhausted { .. })), "{full:?}");
            vector.destroy().await?;
            deque.destroy().await?;
            assert_whole(&acp, home).await?;
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}
