//! The guarantees of the contract and their limits: small programs whose possible outcomes are all
//! known.

mod tasks;

use super::outcomes::{A, B, expect, explorer, words};
use rdma_fabric::{Amo, Caps, Deps, Fabric, LocalSpan, ProgramResult, PutOrder, Rank, join, op};

/// A puts to two words of B; B reads the second, then the first.
pub(crate) async fn two_puts(fabric: Fabric, flush: bool) -> ProgramResult<u64> {
    let region = words(&fabric).await?;
    if fabric.rank() == A {
        fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
        if flush {
            fabric.flush(B).await?;
        }
        fabric.put_word(&fabric.remote_word(region.at(B, 8))?, 1u64).await?;
        return Ok(0);
    }
    let second: u64 = fabric.load(&region.word(&fabric, 8)?)?;
    let first: u64 = fabric.load(&region.word(&fabric, 0)?)?;
    Ok(10 + 2 * second + first)
}

#[test]
fn puts_are_ordered_by_a_flush_only() {
    expect(explorer(2), &[10, 11, 12, 13], |fabric| two_puts(fabric, false));
    expect(explorer(2), &[10, 11, 13], |fabric| two_puts(fabric, true));
}

/// A puts to B and then adds to a word of `counter`; B gets that word, then reads the word that was
/// put.
async fn put_then_atomic(fabric: Fabric, counter: Rank) -> ProgramResult<u64> {
    let region = words(&fabric).await?;
    let count = fabric.remote_word::<u64>(region.at(counter, 8))?;
    if fabric.rank() == A {
        fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
        fabric.fetch_add(&count, 1).await?;
        return Ok(0);
    }
    let added = fabric.get_word(&count).await?;
    let put = fabric.load::<u64>(&region.word(&fabric, 0)?)?;
    Ok(10 + 2 * added + put)
}

#[test]
fn puts_are_ordered_before_atomics_as_far_as_the_capabilities_say() {
    let (any, ordered): (&[u64], &[u64]) = (&[10, 11, 12, 13], &[10, 11, 13]);
    for (order, counter, outcomes) in [
        (PutOrder::None, B, any),
        (PutOrder::SameTarget, B, ordered),
        (PutOrder::SameTarget, A, any),
        (PutOrder::AllTargets, A, ordered),
    ] {
        let mut caps = Caps::weakest();
        caps.put_order = order;
        expect(explorer(2).caps(caps), outcomes, move |fabric| put_then_atomic(fabric, counter));
    }
}

#[test]
fn awaited_operations_have_happened_and_dropped_ones_happen_later() {
    let program = |dropped: bool| {
        move |fabric: Fabric| async move {
            let region = words(&fabric).await?;
            let word = fabric.remote_word::<u64>(region.at(A, 0))?;
            let handle = fabric.try_post(op::Atomic { word: &word, amo: Amo::Add(1) }).expect("room");
            if dropped {
                drop(handle);
            } else {
                handle.await?;
            }
            Ok(10 + fabric.load::<u64>(&region.word(&fabric, 0)?)?)
        }
    };
    expect(explorer(1), &[11], program(false));
    expect(explorer(1), &[10, 11], program(true));
}

#[test]
fn a_test_may_fail_when_the_effect_is_there() {
    expect(explorer(1), &[10, 11, 12, 13], |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let mut handle = fabric.try_post(op::Atomic { word: &word, amo: Amo::Add(1) }).expect("room");
        let value = fabric.load::<u64>(&region.word(&fabric, 0)?)?;
        Ok(10 + 2 * u64::from(handle.test()) + value)
    });
}

#[test]
fn a_race_may_be_lost_by_what_has_happened() {
    expect(explorer(2), &[10, 21, 22], |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(B, 0))?;
        if fabric.rank() == B {
            let before = fabric.get_word(&word).await?;
            fabric.put_word(&fabric.remote_word(region.at(A, 8))?, 1 + before).await?;
            return Ok(0);
        }
        let told = region.word::<u64>(&fabric, 8)?;
        let told = fabric.wait_until(&told, Deps::All, |value| value != 0);
        match join::race(fabric.fetch_add(&word, 1), told).await {
            join::Either::First(old) => Ok(10 + old?),
            // 22: the other rank had seen the addition before this one knew that it was complete.
            join::Either::Second(told) => Ok(20 + told?),
        }
    });
}

#[test]
fn registered_bytes_are_read_until_the_put_is_complete() {
    let program = |waits: bool| {
        move |fabric: Fabric| async move {
            let region = words(&fabric).await?;
            if fabric.rank() == B {
                let word = region.word::<u64>(&fabric, 0)?;
                return Ok(10 + fabric.wait_until(&word, Deps::All, |bits| bits != 0).await?);
            }
            let source: LocalSpan<u64> = region.span(&fabric, 8, 1)?;
            fabric.write(&source, &[1])?;
            let to = fabric.remote_span::<u64>(region.at(B, 0), 1)?;
            let handle = fabric.try_post(op::Put { to: &to, from: source.clone(), notice: None }).expect("room");
            if waits {
                let back = handle.await?;
                fabric.write(&back, &[2])?;
            } else {
                fabric.write(&source, &[2])?;
            }
            Ok(0)
        }
    };
    expect(explorer(2), &[11], program(true));
    expect(explorer(2), &[11, 12], program(false));
}

#[test]
fn a_long_get_is_torn_between_words_and_not_within() {
    expect(explorer(2), &[10, 11, 12, 13], |fabric| async move {
        let region = words(&fabric).await?;
        let span = fabric.remote_span::<u64>(region.at(B, 0), 2)?;
        if fabric.rank() == A {
            fabric.put(&span, [0x1_0000_0001u64, 0x1_0000_0001]).await?;
            return Ok(0);
        }
        let [a, b] = fabric.get(&span, [0u64; 2]).await?;
        assert!([0, 0x1_0000_0001].contains(&a), "torn: {a:#x}");
        Ok(10 + 2 * (a & 1) + (b & 1))
    });
}

#[test]
fn half_words_stand_beside_each_other() {
    expect(explorer(1), &[1], |fabric| async move {
        let region = words(&fabric).await?;
        let [low, high] = [0, 4].map(|offset| fabric.remote_word::<u32>(region.at(A, offset)));
        assert_eq!(fabric.fetch_add(&low?, u32::MAX).await?, 0);
        assert_eq!(fabric.fetch_add(&high?, 7).await?, 0);
        assert_eq!(fabric.fetch_add(&fabric.remote_word::<u32>(region.at(A, 0))?, 2).await?, u32::MAX);
        let mut both = [0u32; 2];
        fabric.read(&region.span(&fabric, 0, 2)?, &mut both)?;
        assert_eq!(both, [1, 7]);
        Ok(1)
    });
}

#[test]
fn notices_come_in_posting_order_and_after_their_bytes() {
    let report = explorer(3).run(|fabric| async move {
        let region = words(&fabric).await?;
        let me = u64::from(fabric.rank().number());
        if me < 2 {
            let to = fabric.remote_span::<u64>(region.at(Rank::new(2), 8 * me), 1)?;
            for round in 1..=2 {
                fabric.put_notify(&to, [round], round).await?;
            }
            return Ok(());
        }
        let mut last = [0, 0];
        for _ in 0..4 {
            let notice = fabric.next_notice(Deps::All).await?;
            let from = notice.from.index();
            assert_eq!(notice.data, last[from] + 1, "notices of one poster overtook each other");
            last[from] += 1;
            let word = fabric.load::<u64>(&region.word(&fabric, 8 * from)?)?;
            // The other round's put may be on top of it.
            assert!(word != 0, "a notice came before its bytes");
        }
        assert_eq!(fabric.try_notice()?, None);
        Ok(())
    });
    report.expect_exhausted();
}
