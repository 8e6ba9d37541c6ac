//! Counters of operations, and the states that commands go through.

use crate::harness::{everywhere, in_virtual_time, starters};
use acp::{Acp, Atomics, Counters, EntryState, GlobalAddress, Mode, Options, Order};
use rdma_fabric::{Amo, Fabric, ProgramResult};

/// Operations of rank 0 at every location, one of each kind or more.
async fn operations(acp: &Acp, at: &[GlobalAddress]) -> acp::Result<()> {
    let spare = |rank: usize| at[rank].offset_by(512);
    for (bytes, (to, from)) in (1..).zip([(0, 0), (1, 0), (0, 1), (1, 2), (2, 2)]) {
        acp.copy(spare(to)?, at[from], 8 * bytes, Order::None).await?;
    }
    let compare_swap = Amo::CompareSwap { expected: 0, new: 1 };
    for word in [at[0], at[1], at[2]] {
        for (times, amo) in
            (1..).zip([Amo::Add(1u64), Amo::Swap(2), compare_swap, Amo::Or(3), Amo::And(4), Amo::Xor(5)])
        {
            for _ in 0..times {
                acp.atomic(at[0].offset_by(8)?, word, amo, Order::None).await?;
            }
        }
    }
    acp.atomic(at[0].offset_by(8)?, at[1], Amo::Add(1u32), Order::None).await?;
    acp.complete_all().await
}

fn as_issued(counters: &Counters) {
    let [local, puts, gets, third] = [counters.local, counters.puts, counters.gets, counters.third_party];
    let counted = [local, puts, gets, third, counters.copies()].map(|copies| (copies.count, copies.bytes));
    assert_eq!(counted, [(1, 8), (1, 16), (1, 24), (2, 72), (5, 120)]);
    let [local, remote] = [counters.local_atomics, counters.remote_atomics];
    let kinds = [local, remote].map(|of| [of.add, of.swap, of.compare_swap, of.or, of.and, of.xor]);
    assert_eq!(kinds, [[1, 2, 3, 4, 5, 6], [3, 4, 6, 8, 10, 12]]);
    assert_eq!([local.total(), remote.total()], [21, 43]);
}

#[test]
fn every_operation_is_counted_once_by_kind_and_location() {
    let direct = Options::default();
    let queue = direct.mode(Mode::CommandQueue);
    let delegated = direct.atomics(Atomics::Delegated);
    for options in [direct, delegated, queue, queue.bypass(true).atomics(Atomics::LocalByCpu), direct.mode(Mode::Split)]
    {
        everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init_with(&fabric, options).await?;
            let at = starters(&acp)?;
            if acp.rank().number() == 0 {
                operations(&acp, &at).await?;
                let counters = acp.reset_counters()?;
                as_issued(&counters);
                let commands = if options.mode == Mode::Direct { 0 } else { 5 + 21 + 43 };
                let passed = [EntryState::Queued, EntryState::OrderEnd, EntryState::Finished, EntryState::Free];
                assert_eq!(passed.map(|state| counters.entered(state)), [commands; 4], "{options:?}");
                assert_eq!(acp.counters()?, Counters::default());
                operations(&acp, &at).await?;
                as_issued(&acp.counters()?);
            } else {
                assert_eq!(acp.counters()?, Counters::default());
            }
            acp.sync().await?;
            acp.finalize().await?;
            Ok(())
        });
    }
}

/// Nothing of rank 0's is in flight when it issues a copy, so it bypasses the queue.
#[test]
fn bypassed_operations_are_counted() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, Options::default().mode(Mode::CommandQueue).bypass(true)).await?;
        let at = starters(&acp)?;
        if acp.rank().number() == 0 {
            for copies in 1..=3 {
                let copy = acp.copy(at[1], at[0], 8, Order::None).await?;
                acp.complete(copy).await?;
                let counters = acp.counters()?;
                assert_eq!([counters.bypassed, counters.puts.count], [copies; 2]);
            }
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// On FX100 a copy to another rank is never complete when the next call is made.
#[test]
fn waits_are_counted_by_their_reason() {
    let direct = Options::default();
    for options in [direct, direct.mode(Mode::CommandQueue), direct.mode(Mode::Split)] {
        in_virtual_time(2, &async |fabric: Fabric| -> ProgramResult<()> {
            let acp = Acp::init_with(&fabric, options.depth(2)).await?;
            let at = starters(&acp)?;
            if acp.rank().number() == 0 {
                let waits = |counters: Counters| [counters.ordered, counters.full, counters.waits];
                let first = acp.copy(at[1], at[0], 4096, Order::None).await?;
                let second = acp.copy(at[1], at[0], 4096, first).await?;
                assert_eq!(acp.counters()?.waits, 0);
                acp.complete(second).await?;
                acp.complete(first).await?;
                assert_eq!(waits(acp.reset_counters()?), [1, 0, 1], "{options:?}");
                let numbers = [1u64; 3].map(|_| acp.copy(at[1], at[0], 4096, Order::All));
                for copied in numbers {
                    copied.await?;
                }
                acp.complete_all().await?;
                assert_eq!(waits(acp.reset_counters()?), [2, 1, 1], "{options:?}");
            }
            acp.sync().await?;
            acp.finalize().await?;
            Ok(())
        });
    }
}

/// Issues an operation, completes it, and returns the number of entries into each state.
async fn path(acp: &Acp, issued: impl Future<Output = acp::Result<acp::Handle>>) -> acp::Result<[u64; 7]> {
    acp.reset_counters()?;
    let handle = issued.await?;
    acp.complete(handle).await?;
    Ok(acp.counters()?.entries)
}

/// Table 1 of the paper. The numbers are those of entries into free, queued, order, order end,
/// executing, delegated, finished.
#[test]
fn commands_go_through_all_seven_states() {
    const BYTES: usize = 64 << 10;
    let queue = Options::default().atomics(Atomics::Delegated).starter_bytes(BYTES).mode(Mode::CommandQueue);
    for options in [queue, queue.mode(Mode::Split)] {
        let everyone = everywhere(2, &async |fabric: Fabric| -> ProgramResult<Vec<EntryState>> {
            let acp = Acp::init_with(&fabric, options).await?;
            let at = starters(&acp)?;
            let mut entered = EntryState::ALL.to_vec();
            if acp.rank().number() == 0 {
                let (own, peer) = (at[0], at[1]);
                let local = path(&acp, acp.copy(own.offset_by(8)?, own, 8, Order::None)).await?;
                assert_eq!(local, [1, 1, 0, 1, 0, 0, 1]);
                let put = path(&acp, acp.copy(peer, own, 8, Order::None)).await?;
                assert_eq!(put, [1, 1, 0, 1, 1, 0, 1]);
                let delegated = path(&acp, acp.atomic(own, peer, Amo::Add(1u64), Order::None)).await?;
                assert_eq!(delegated, [1, 1, 0, 1, 0, 1, 1]);
                // On real memory the first copy may be complete when the helper takes the second.
                for _ in 0..1000 {
                    let ordered = path(&acp, async {
                        let first = acp.copy(peer, own, BYTES, Order::None).await?;
                        acp.copy(peer, own, 8, first).await
                    });
                    let ordered = ordered.await?;
                    assert_eq!(ordered, [2, 2, ordered[EntryState::Order as usize], 2, 2, 0, 2]);
                    if acp.counters()?.ordered == 1 {
                        break;
                    }
                }
                entered = acp.entered_states();
            }
            acp.sync().await?;
            acp.finalize().await?;
            Ok(entered)
        });
        assert_eq!(everyone, [EntryState::ALL; 2], "{options:?}");
    }
}
