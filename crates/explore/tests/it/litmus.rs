//! The guarantees of the contract and their limits: small programs whose possible outcomes are all
//! known.

use super::outcomes::{A, B, expect, explorer, words};
use explore::{Explorer, Probe};
use rdma_fabric::{Amo, Caps, Deps, Fabric, LocalSpan, ProgramResult, PutOrder, Rank, Time, join, op};
use std::rc::Rc;

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
fn what_is_awaited_has_happened_and_what_is_dropped_happens_later() {
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

#[test]
fn a_deadline_comes_at_any_moment() {
    expect(explorer(2), &[11, 12, 13], |fabric| async move {
        let region = words(&fabric).await?;
        if fabric.rank() == A {
            fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
            return Ok(0);
        }
        let word = region.word::<u64>(&fabric, 0)?;
        let woken = fabric.wait_until(&word, Deps::All, |bits| bits == 1);
        let woken = fabric.before(Time::from_picos(5), woken).await.is_some();
        let late = fabric.now() >= Time::from_picos(5);
        Ok(10 + 2 * u64::from(woken) + u64::from(late))
    });
}

#[test]
fn detached_futures_run_to_their_end_beside_the_program() {
    // The detached future is first polled immediately or later, but not between the two loads: a
    // rank's tasks take turns where they wait.
    expect(explorer(1), &[10, 12, 13], |fabric| async move {
        let region = Rc::new(words(&fabric).await?);
        let [first, second] = [0, 8].map(|offset| fabric.remote_word::<u64>(region.at(A, offset)));
        let (first, second) = (first?, second?);
        fabric.detach({
            // The future must own everything that it uses, because the program may end first.
            let (fabric, owned) = (fabric.clone(), region.clone());
            async move {
                let _owned = owned;
                fabric.fetch_add(&first, 1).await.expect("no error");
                fabric.fetch_add(&second, 1).await.expect("no error");
            }
        });
        let mut both = [0u64; 2];
        fabric.read(&(*region).span(&fabric, 0, 2)?, &mut both)?;
        Ok(10 + 2 * both[0] + both[1])
    });
    let report = explorer(1).at_end("both added", |view| view.words().count() == 2).run(|fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let other = fabric.remote_word::<u64>(region.at(A, 8))?;
        let owner = fabric.clone();
        fabric.detach(async move {
            let _owned = region;
            owner.fetch_add(&word, 1).await.expect("no error");
            owner.fetch_add(&other, 1).await.expect("no error");
        });
        Ok(())
    });
    report.expect_exhausted();
}

/// A provider that polls a detached future later does so while the program waits for its effect.
#[test]
fn detached_futures_run_while_the_program_waits() {
    let report = Explorer::new(1).run(|fabric| async move {
        let region = words(&fabric).await?;
        let (word, owner) = (region.word::<u64>(&fabric, 0)?, fabric.clone());
        let added = word.as_remote();
        fabric.detach(async move { assert_eq!(owner.fetch_add(&added, 1).await, Ok(0)) });
        fabric.wait_until(&word, Deps::All, |value| value == 1).await?;
        Ok(())
    });
    report.expect_exhausted();
}

#[test]
fn operations_posted_together_complete_in_any_order() {
    expect(explorer(1), &[11, 12], |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let (a, b) = join::join(fabric.fetch_add(&word, 1), fabric.fetch_add(&word, 1)).await;
        Ok(10 + 2 * a? + b?)
    });
}

#[test]
fn a_group_meets_at_its_barrier_in_every_order() {
    for (ranks, rounds) in [(2, 2), (3, 1)] {
        let report = explorer(ranks).run(move |fabric| async move {
            let probe = Probe::of(&fabric);
            let mut world = rdma_fabric::Group::world(&fabric).await?;
            for round in 1..=rounds {
                probe.add(0, 1);
                world.barrier().await?;
                let here = probe.get(0);
                assert!(here >= round * ranks as u64, "{here} had come when somebody left barrier {round}");
            }
            Ok(())
        });
        report.expect_exhausted();
    }
}

/// A wait that is polled concurrently with another future checks again after every act of the other
/// one.
#[test]
fn a_wait_beside_another_wakes_whenever_it_may() {
    let report = explorer(2).run(|fabric| async move {
        let region = words(&fabric).await?;
        let theirs = |rank, at| fabric.remote_word::<u64>(region.at(rank, at));
        let come = async |at| fabric.wait_until(&region.word(&fabric, at)?, Deps::All, |value: u64| value != 0).await;
        if fabric.rank() == A {
            let answers = async {
                come(0).await?;
                fabric.put_word(&theirs(B, 0)?, 1).await
            };
            let looks = async {
                fabric.load::<u64>(&region.word(&fabric, 8)?)?;
                come(8).await
            };
            let (answered, _) = (join::join(answers, looks)).await;
            answered?;
        } else {
            fabric.put_word(&theirs(A, 0)?, 1).await?;
            come(0).await?;
            fabric.put_word(&theirs(A, 8)?, 1).await?;
        }
        Ok(())
    });
    report.expect_exhausted();
}
