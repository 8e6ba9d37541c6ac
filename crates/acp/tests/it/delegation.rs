//! Copies between the memory of two other ranks.

use crate::harness::{everywhere, starters};
use acp::{Acp, AcpError, Atomics, GlobalAddress, Mode, Options, Order, Threads};
use checks::jobs::{threads, virtual_time};
use rdma_fabric::{
    Amo, Fabric, FabricError, ProgramResult, Rank,
    join::{Either, race},
};
use std::time::Duration;
use tofu2_sim::virt::Platform;

/// Copies executed by different ranks do not wait for each other.
#[test]
fn different_servers_work_at_the_same_time() {
    const BYTES: usize = 1 << 20;
    let program = async |fabric: Fabric| -> ProgramResult<[Duration; 2]> {
        let acp = Acp::init_with(&fabric, Options::default().starter_bytes(BYTES)).await?;
        let (at, mut took) = (starters(&acp)?, [Duration::ZERO; 2]);
        if acp.rank().number() == 0 {
            for (took, pairs) in took.iter_mut().zip([1, 3]) {
                let start = acp.fabric().now();
                for pair in 0..pairs {
                    acp.copy(at[2 * pair + 1], at[2 * pair + 2], BYTES, Order::None).await?;
                }
                acp.complete_all().await?;
                *took = acp.fabric().now() - start;
            }
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(took)
    };
    let [one, three] = virtual_time(&Platform::fx100(), 7).run(&program).expect("a job that ends").outs[0];
    assert!(three < one * 3 / 2, "one: {one:?}, three: {three:?}");
}

/// Every rank copies between all others, to locations that no other rank uses; there are more
/// copies than some ranks have slots.
#[test]
fn all_ranks_delegate_to_all() {
    for slots in [1, 3, 64] {
        all_ask_all(slots);
    }
}

fn all_ask_all(slots: usize) {
    const RANKS: usize = 6;
    everywhere(RANKS, &async |fabric: Fabric| -> ProgramResult<()> {
        let options = Options::default().starter_bytes(8 * 1024).depth(8).delegation_slots(slots);
        let acp = Acp::init_with(&fabric, options).await?;
        let (at, me) = (starters(&acp)?, acp.rank().index());
        let pattern = |rank: usize, i: u64| (rank as u64 + 1) * 1000 + i;
        for i in 0..8u64 {
            acp.store(at[me].offset_by(8 * i)?, pattern(me, i)).await?;
        }
        acp.sync().await?;
        // Place [initiator][source][i] of each destination.
        let place = |to: usize, by: usize, from: usize, i: u64| {
            at[to].offset_by(64 + (((by * RANKS) + from) as u64 * 8 + i) * 8)
        };
        for i in 0..8 {
            for to in (0..RANKS).filter(|to| *to != me) {
                for from in (0..RANKS).filter(|from| *from != me) {
                    acp.copy(place(to, me, from, i)?, at[from].offset_by(8 * i)?, 8, Order::None).await?;
                }
            }
        }
        acp.complete_all().await?;
        acp.sync().await?;
        for by in (0..RANKS).filter(|by| *by != me) {
            for from in (0..RANKS).filter(|from| *from != by) {
                for i in 0..8 {
                    let seen = acp.load::<u64>(place(me, by, from, i)?).await?;
                    assert_eq!(seen, pattern(from, i), "by {by} from {from}");
                }
            }
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn misuse_is_refused_before_bytes_move() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, Options::default().starter_bytes(64)).await?;
        let at = starters(&acp)?;
        if acp.rank().number() == 0 {
            let beyond = acp.copy(at[1], at[2].offset_by(60)?, 8, Order::None).await;
            assert!(matches!(beyond, Err(AcpError::OutOfBounds(_))), "{beyond:?}");
            acp.store(at[2], GlobalAddress::to_bits(at[1])).await?;
            let nothing = acp.copy(at[1], at[2], 0, Order::None).await?;
            let something = acp.copy(at[1].offset_by(8)?, at[2], 8, nothing).await?;
            acp.complete(something).await?;
            assert_eq!(acp.load::<u64>(at[1].offset_by(8)?).await?, at[1].to_bits());
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// The destination's rank, or the source's, fails when it should execute a copy.
#[test]
fn a_death_ends_what_depends_on_it() {
    for dead in [1u32, 2] {
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init(&fabric).await?;
            let at = starters(&acp)?;
            if acp.rank().number() == dead {
                // By then, the others have completed set-up.
                fabric.sleep(Duration::from_millis(5)).await;
                return Err("as planned".into());
            }
            if acp.rank().number() == 0 {
                let mut lost = false;
                for _ in 0..10_000 {
                    fabric.sleep(Duration::from_micros(100)).await;
                    let copied = match acp.copy(at[1], at[2], 8, Order::None).await {
                        Ok(handle) => acp.complete(handle).await,
                        Err(error) => Err(error),
                    };
                    match copied {
                        Ok(()) => {}
                        Err(AcpError::Fabric(FabricError::PeerLost { rank })) => {
                            assert_eq!(rank.number(), dead);
                            lost = true;
                            break;
                        }
                        // The destination's rank is alive, has been notified of the loss, and has
                        // left.
                        Err(AcpError::NoSuchRegion { address }) if dead == 2 && address.rank().number() == 1 => {
                            lost = true;
                            break;
                        }
                        Err(AcpError::NoSuchRegion { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                assert!(lost, "a dead rank serves");
            } else {
                // Serves until the other ranks end.
                let ended = acp.sync().await;
                assert!(ended.is_err());
            }
            Ok(())
        };
        let (real, _) = threads(3).run_through(&program).expect("threads");
        assert!(real.iter().enumerate().all(|(rank, out)| out.is_ok() == (rank as u32 != dead)), "{real:?}");
        let (simulated, error) = virtual_time(&Platform::fx100(), 3).run_through(&program).expect("virtual time");
        let ended: Vec<bool> = simulated.outs.iter().map(Option::is_some).collect();
        assert!(ended.iter().enumerate().all(|(rank, ok)| *ok == (rank as u32 != dead)), "{ended:?}, {error:?}");
    }
}

/// Adds, and all other atomics, when they are executed by the words' ranks.
#[test]
fn atomics_without_the_networks() {
    let direct = Options::default().atomics(Atomics::Delegated);
    let [queue, split] = [Mode::CommandQueue, Mode::Split].map(|mode| direct.mode(mode));
    let by_helper = direct.serving_helper(true);
    for options in [direct, by_helper, queue, queue.threads(Threads::Many), queue.bypass(true), split] {
        everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init_with(&fabric, options).await?;
            let (at, me) = (starters(&acp)?, acp.rank().index());
            let own = at[me].offset_by(64)?;
            for _ in 0..20 {
                for word in &at {
                    acp.atomic(own, *word, Amo::Add(1u64), Order::None).await?;
                    acp.fetch(word.offset_by(8)?, Amo::Add(1u32)).await?;
                }
            }
            acp.complete_all().await?;
            // Each rank sets one bit of rank 0's word, and then finds it set.
            let bits = at[0].offset_by(16)?;
            acp.fetch(bits, Amo::Or(1u64 << me)).await?;
            let seen = acp.atomic(own, bits, Amo::Xor(1u64 << (8 + me)), Order::All).await?;
            acp.complete(seen).await?;
            assert_ne!(acp.load::<u64>(own).await? & 1 << me, 0);
            acp.sync().await?;
            assert_eq!((acp.load::<u64>(at[me]).await?, acp.load::<u32>(at[me].offset_by(8)?).await?), (80, 80));
            assert_eq!(acp.load::<u64>(bits).await?, 0xf0f);
            acp.finalize().await?;
            Ok(())
        });
    }
}

/// On a machine whose network has no atomics, no option is required.
#[test]
fn a_machine_without_atomics() {
    let machine = Platform::fx100().with("atomics", 0).expect("a constant of the platform");
    let program = async |fabric: Fabric| -> ProgramResult<u64> {
        let acp = Acp::init(&fabric).await?;
        let word = acp.starter(Rank::new(0))?;
        for _ in 0..10 {
            acp.fetch(word, Amo::Add(1u64)).await?;
        }
        acp.sync().await?;
        let sum = acp.load::<u64>(word).await?;
        acp.finalize().await?;
        Ok(sum)
    };
    assert_eq!(virtual_time(&machine, 5).run(&program).expect("virtual time").outs, [50; 5]);
}

/// A delegated operation makes progress even if its future was dropped, and does not affect later
/// operations.
#[test]
fn atomics_without_a_wait_are_executed() {
    for mode in [Mode::Direct, Mode::CommandQueue] {
        everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init_with(&fabric, Options::default().mode(mode).atomics(Atomics::Delegated)).await?;
            let (at, me) = (acp.starter(Rank::new(0))?, u64::from(acp.rank().number()));
            if me > 0 {
                let (dropped, counted) = (at.offset_by(16 * me)?, at.offset_by(16 * me + 8)?);
                for i in 0..100u64 {
                    let soon = fabric.sleep(Duration::from_nanos(37 * i * i));
                    match race(acp.fetch(dropped, Amo::Add(1u64 << 32)), soon).await {
                        Either::First(done) => drop(done?),
                        Either::Second(()) => {}
                    }
                    assert_eq!(acp.fetch(counted, Amo::Add(1u64)).await?, i);
                }
                let all = acp.fetch(dropped, Amo::Or(0u64)).await?;
                assert!(all & 0xffff_ffff == 0 && all >> 32 <= 100, "{all:x}");
            }
            acp.sync().await?;
            acp.finalize().await?;
            Ok(())
        });
    }
}
