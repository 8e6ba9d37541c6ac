//! The command queue and its helper.

use crate::harness::{everywhere, in_virtual_time, starters};
use acp::{Acp, AcpError, Atomics, EntryState, Handle, Mode, Options, Order, Threads};
use rdma_fabric::{Amo, Fabric, ProgramResult};

/// All user-visible configurations of how operations are executed.
fn ways() -> Vec<Options> {
    let direct = Options::default();
    let [queue, split] = [Mode::CommandQueue, Mode::Split].map(|mode| direct.mode(mode).depth(64));
    vec![
        direct,
        direct.serving_helper(true),
        split,
        split.threads(Threads::Many).bypass(true).atomics(Atomics::LocalByCpu),
        queue,
        queue.threads(Threads::Many),
        queue.bypass(true),
        queue.prepared(true).threads(Threads::Many).bypass(true),
        queue.atomics(Atomics::LocalByCpu),
        queue.depth(2),
    ]
}

/// The paper's figure 3.
#[test]
fn a_broadcast_is_done_by_its_root_alone() {
    for options in ways() {
        let outs = everywhere(4, &async |fabric: Fabric| -> ProgramResult<Vec<u32>> {
            let acp = Acp::init_with(&fabric, options).await?;
            let at = starters(&acp)?;
            let values: Vec<u32> = (0..1000).map(|i| i * i + 1).collect();
            if acp.rank().number() == 0 {
                acp.write(at[0], &values).await?;
                let first = acp.copy(at[1], at[0], 4000, Order::None).await?;
                acp.copy(at[2], at[1], 4000, first).await?;
                acp.copy(at[3], at[1], 4000, first).await?;
                acp.complete_all().await?;
            }
            acp.sync().await?;
            let mut seen = vec![0u32; 1000];
            acp.read(at[acp.rank().index()], &mut seen).await?;
            acp.finalize().await?;
            Ok(seen)
        });
        let right = |seen: &Vec<u32>| seen.iter().enumerate().all(|(i, v)| *v == (i * i + 1) as u32);
        assert!(outs.iter().all(right), "{options:?}");
    }
}

/// Ordered and unordered operations of three ranks on one word, on local memory and on that of
/// others.
#[test]
fn every_operation_takes_effect_once_and_in_order() {
    for options in ways() {
        everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init_with(&fabric, options).await?;
            let (at, me) = (starters(&acp)?, acp.rank().index());
            let own = at[me];
            for round in 0..30u64 {
                for counter in &at {
                    acp.atomic(own.offset_by(64)?, *counter, Amo::Add(1u64), Order::None).await?;
                }
                // The counter's value moves from the word to the local copy and on to the next
                // rank.
                let old = acp.atomic(own.offset_by(72)?, at[(me + 1) % 3].offset_by(8)?, Amo::Swap(round), Order::All);
                let old = old.await?;
                let there = at[(me + 2) % 3].offset_by(128 + 8 * me as u64)?;
                let sent = acp.copy(there, own.offset_by(72)?, 8, old).await?;
                acp.copy(own.offset_by(80)?, there, 8, Order::All).await?;
                acp.complete(sent).await?;
                assert!(acp.is_complete(sent)? && acp.is_complete(Handle::from_number(1 << 40))?);
                acp.complete_all().await?;
                let before = acp.load::<u64>(own.offset_by(80)?).await?;
                assert_eq!(before, round.saturating_sub(1), "round {round} {options:?}");
            }
            acp.sync().await?;
            assert_eq!(acp.load::<u64>(own).await?, 90);
            acp.finalize().await?;
            Ok(())
        });
    }
}

/// A command that waits for another one delays those behind it, and each command passes through its
/// states.
#[test]
fn commands_go_through_their_states() {
    let options = Options::default().mode(Mode::CommandQueue);
    in_virtual_time(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, options).await?;
        let at = starters(&acp)?;
        if acp.rank().number() == 0 {
            let first = acp.copy(at[1], at[0], 4096, Order::None).await?;
            let second = acp.copy(at[1], at[0], 4096, first).await?;
            let third = acp.atomic(at[0], at[0], Amo::Add(1u64), Order::None).await?;
            let mut seen = [first, second, third].map(|handle| vec![acp.entry_state(handle)]);
            while !acp.is_complete(third)? {
                fabric.sleep(std::time::Duration::from_nanos(100)).await;
                for (handle, seen) in [first, second, third].into_iter().zip(&mut seen) {
                    let state = acp.entry_state(handle);
                    if seen.last() != Some(&state) {
                        seen.push(state);
                    }
                }
            }
            use EntryState::{Executing, Free, Queued};
            let states = |states: &[EntryState]| states.iter().copied().map(Some).collect::<Vec<_>>();
            assert_eq!(seen[0], states(&[Queued, Executing, Free]));
            assert_eq!(seen[1], states(&[Queued, EntryState::Order, Executing, Free]));
            assert_eq!(seen[2], states(&[Queued, Executing, Free]));
            assert_eq!(acp.entry_state(Handle::from_number(99)), None);
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// The helper completes operations that the program has posted.
#[test]
fn a_copy_past_the_queue_is_completed() {
    for mode in [Mode::CommandQueue, Mode::Split] {
        everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init_with(&fabric, Options::default().mode(mode).bypass(true)).await?;
            let (at, me) = (starters(&acp)?, acp.rank().index());
            for bytes in [8, 4096] {
                acp.write(at[me], &vec![me as u64 + 1; bytes / 8]).await?;
                let copied = acp.copy(at[1 - me].offset_by(4096)?, at[me], bytes, Order::None).await?;
                acp.complete(copied).await?;
                // Only the sync lets the peer know that the bytes are visible.
                acp.sync().await?;
                let mut seen = vec![0; bytes / 8];
                acp.read(at[me].offset_by(4096)?, &mut seen).await?;
                assert_eq!(seen, vec![2 - me as u64; bytes / 8]);
                acp.sync().await?;
            }
            acp.finalize().await?;
            Ok(())
        });
    }
}

#[test]
fn misuse_is_reported_where_it_is_found() {
    for options in ways() {
        everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init_with(&fabric, options.starter_bytes(64)).await?;
            let (at, me) = (starters(&acp)?, acp.rank().index());
            let foreign = acp.atomic(at[1 - me], at[me], Amo::Add(1u64), Order::None).await;
            assert_eq!(foreign, Err(AcpError::NotOwn { address: at[1 - me] }));
            let crooked = acp.atomic(at[me], at[me].offset_by(4)?, Amo::Add(1u64), Order::None).await;
            assert_eq!(crooked, Err(AcpError::Misaligned { address: at[me].offset_by(4)?, align: 8 }));
            let beyond = match acp.copy(at[me], at[1 - me].offset_by(60)?, 8, Order::None).await {
                Ok(handle) => acp.complete(handle).await,
                Err(error) => Err(error),
            };
            assert!(matches!(beyond, Err(AcpError::OutOfBounds(_))), "{beyond:?} {options:?}");
            // Operations that wait for it when it fails are not started; later ones are.
            let after = acp.copy(at[me].offset_by(8)?, at[1 - me], 8, Order::All).await?;
            acp.complete(after).await?;
            acp.finalize().await?;
            Ok(())
        });
    }
}
