//! Helpers that serve other ranks: their benefits and requirements.

use crate::harness::{everywhere, in_virtual_time, starters};
use acp::{Acp, AcpError, Atomics, Mode, Options, Order};
use checks::jobs::threads;
use fabric_offload::{
    ControlQueue,
    control_queue::{QueueMode, QueueSpec},
};
use rdma_fabric::{Amo, Fabric, FabricError, Group, ProgramResult, Rank};
use std::time::Duration;

/// Rank 0 delegates copies to rank 1, which computes for a millisecond; returns the duration of all
/// of them.
fn copied_beside_a_computation(options: Options) -> Duration {
    let outs = in_virtual_time(3, &async |fabric: Fabric| -> ProgramResult<Duration> {
        let acp = Acp::init_with(&fabric, options).await?;
        let (at, mut took) = (starters(&acp)?, Duration::ZERO);
        match acp.rank().number() {
            0 => {
                let start = fabric.now();
                for word in 0..10 {
                    acp.copy(at[1].offset_by(8 * word)?, at[2], 8, Order::All).await?;
                }
                acp.complete_all().await?;
                took = fabric.now() - start;
            }
            1 => fabric.compute(Duration::from_millis(10)).await,
            _ => {}
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(took)
    });
    outs[0]
}

#[test]
fn a_rank_that_computes_is_served_for_by_its_helper() {
    let direct = Options::default();
    assert!(copied_beside_a_computation(direct) > Duration::from_millis(9), "nobody serves while rank 1 computes");
    for options in [direct.serving_helper(true), direct.mode(Mode::CommandQueue), direct.mode(Mode::Split)] {
        let took = copied_beside_a_computation(options);
        assert!(took < Duration::from_millis(3), "{options:?}: {took:?}");
    }
}

/// Rank 0 reads a word until rank 1 reports that its add, which rank 0 executes, is complete.
#[test]
fn a_rank_whose_calls_are_over_at_once_serves() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, Options::default().atomics(Atomics::Delegated)).await?;
        let (at, me) = (starters(&acp)?, acp.rank().index());
        let told = at[0].offset_by(64)?;
        if me == 0 {
            let begun = fabric.now();
            while acp.load::<u64>(told).await? == 0 {
                assert!(fabric.now() - begun < Duration::from_secs(10), "rank 0 serves nobody");
            }
        } else {
            let added = acp.atomic(at[1], at[0], Amo::Add(1u64), Order::None).await?;
            acp.complete(added).await?;
            acp.store(told, 1u64).await?;
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn two_helpers_need_a_shared_address_space() {
    let ran = threads(2).run(&async |fabric: Fabric| -> ProgramResult<bool> {
        let refused = Acp::init_with(&fabric, Options::default().mode(Mode::Split)).await.err();
        assert_eq!(refused, Some(AcpError::SeparateAddressSpaces { rank: fabric.rank() }));
        // No state remains that would affect another mode.
        Acp::init(&fabric).await?.finalize().await?;
        Ok(true)
    });
    assert_eq!(ran.expect("a job that ends"), [true; 2]);
}

/// A node has 48 control queues; each rank uses two of them, and returns them.
#[test]
fn control_queues_come_back() {
    everywhere(6, &async |fabric: Fabric| -> ProgramResult<()> {
        let free = ControlQueue::limits(&fabric).free;
        for _ in 0..12 {
            let options = Options::default().mode(Mode::Split).atomics(Atomics::Delegated);
            let acp = Acp::init_with(&fabric, options).await?;
            let (at, me) = (starters(&acp)?, acp.rank().index());
            let handle = acp.copy(at[(me + 1) % 6], at[(me + 2) % 6], 8, Order::None).await?;
            acp.complete(handle).await?;
            acp.reset(Rank::new((me as u32 + 1) % 6)).await?;
            let handle = acp.copy(at[(me + 1) % 6], at[(me + 3) % 6], 8, Order::None).await?;
            acp.complete(handle).await?;
            acp.finalize().await?;
        }
        Group::world(&fabric).await?.barrier().await?;
        assert_eq!(ControlQueue::limits(&fabric).free, free);
        Ok(())
    });
}

/// Every rank takes queues until there are none left for the helpers.
#[test]
fn a_helper_without_a_control_queue_is_an_error_of_the_beginning() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut taken = Vec::new();
        while let Ok(queue) = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Exclusive).depth(16)) {
            taken.push(queue);
        }
        Group::world(&fabric).await?.barrier().await?;
        let options = Options::default().mode(Mode::Split).atomics(Atomics::Delegated);
        let refused = Acp::init_with(&fabric, options).await;
        let refused = refused.map(drop).expect_err("there is no queue");
        assert!(matches!(refused, AcpError::Fabric(FabricError::Queue(_))), "{refused}");
        // A rank that ends returns its queues to the others.
        Group::world(&fabric).await?.barrier().await?;
        drop(taken);
        Ok(())
    });
}
