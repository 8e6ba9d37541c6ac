//! The possible values of a word after concurrent atomics, puts and stores, and the agreement of
//! its readers: small programs whose possible outcomes are all known.

use super::outcomes::{A, B, C, seen};
use explore::{Explorer, Probe, View};
use rdma_fabric::Caps;

use std::collections::BTreeSet;

/// Creates an explorer; `coherent` states whether atomics are also atomic with respect to puts and
/// stores.
pub(crate) fn explorer(ranks: usize, coherent: bool) -> Explorer<'static> {
    let mut caps = Caps::weakest();
    caps.coherent_atomics = coherent;
    Explorer::new(ranks).leave_together().caps(caps)
}

fn word(view: &View<'_>) -> u64 {
    view.words().next().map_or(0, |(_, value)| value)
}

/// Returns the values that a word of B's may end with when A adds 1 and another rank writes 10: B
/// by a store, or C by a put.
fn left(coherent: bool, by_put: bool) -> BTreeSet<u64> {
    seen(explorer(3, coherent), word, move |fabric| async move {
        let region = fabric.alloc_symmetric(8).await?;
        let there = fabric.remote_word::<u64>(region.at(B, 0))?;
        match fabric.rank() {
            A => drop(fabric.fetch_add(&there, 1).await?),
            B if !by_put => fabric.store(&region.word::<u64>(&fabric, 0)?, 10)?,
            C if by_put => fabric.put_word(&there, 10).await?,
            _ => {}
        }
        Ok(())
    })
}

#[test]
fn a_write_in_the_middle_of_an_atomic_is_lost_unless_they_are_coherent() {
    for by_put in [false, true] {
        assert_eq!(left(true, by_put), BTreeSet::from([10, 11]));
        assert_eq!(left(false, by_put), BTreeSet::from([1, 10, 11]));
    }
}

/// The write is visible until it is lost.
#[test]
fn a_write_that_is_lost_may_have_been_seen() {
    let ends = |coherent| {
        let look = |view: &View<'_>| (view.fact(0), word(view));
        seen(explorer(2, coherent), look, |fabric| async move {
            let region = fabric.alloc_symmetric(8).await?;
            if fabric.rank() == A {
                fabric.fetch_add(&fabric.remote_word::<u64>(region.at(B, 0))?, 1).await?;
                return Ok(());
            }
            let own = region.word::<u64>(&fabric, 0)?;
            fabric.store(&own, 10)?;
            let seen = fabric.load(&own)?;
            Probe::of(&fabric).set(0, seen);
            Ok(())
        })
    };
    let coherent = BTreeSet::from([(10, 10), (10, 11), (11, 11)]);
    assert_eq!(ends(true), coherent);
    let lost = BTreeSet::from([(10, 1), (1, 1)]);
    assert_eq!(ends(false), &coherent | &lost);
}

#[test]
fn atomics_are_atomic_against_each_other_and_a_comparison_that_fails_writes_nothing() {
    for coherent in [false, true] {
        let two = seen(explorer(2, coherent), word, |fabric| async move {
            let region = fabric.alloc_symmetric(8).await?;
            fabric.fetch_add(&fabric.remote_word::<u64>(region.at(B, 0))?, 1).await?;
            Ok(())
        });
        assert_eq!(two, BTreeSet::from([2]));
        let compared = seen(explorer(2, coherent), word, |fabric| async move {
            let region = fabric.alloc_symmetric(8).await?;
            if fabric.rank() == A {
                fabric.compare_swap(&fabric.remote_word::<u64>(region.at(B, 0))?, 5, 6).await?;
            } else {
                fabric.store(&region.word::<u64>(&fabric, 0)?, 10)?;
            }
            Ok(())
        });
        assert_eq!(compared, BTreeSet::from([10]));
    }
}

/// No atomic occurs between the read and the write of another one; only a store can.
#[test]
fn of_two_atomics_and_a_store_only_the_store_is_lost() {
    let ends = |coherent| {
        seen(explorer(3, coherent), word, |fabric| async move {
            let region = fabric.alloc_symmetric(8).await?;
            if fabric.rank() == B {
                fabric.store(&region.word::<u64>(&fabric, 0)?, 10)?;
            } else {
                fabric.fetch_add(&fabric.remote_word::<u64>(region.at(B, 0))?, 1).await?;
            }
            Ok(())
        })
    };
    assert_eq!(ends(true), BTreeSet::from([10, 11, 12]));
    assert_eq!(ends(false), BTreeSet::from([2, 10, 11, 12]));
}

/// Atomics of a CPU on its own memory and those of the network are atomic with respect to each
/// other only if they are coherent; otherwise a provider that mixes them loses one.
#[test]
fn of_two_atomics_of_which_a_cpu_does_one_that_is_lost() {
    let ends = |explorer: Explorer<'static>| {
        seen(explorer, word, |fabric| async move {
            let region = fabric.alloc_symmetric(8).await?;
            let there = fabric.remote_word::<u64>(region.at(B, 0))?;
            fabric.fetch_add(&there, 1 << (8 * fabric.rank().number())).await?;
            Ok(())
        })
    };
    let (all, lost) = (BTreeSet::from([0x01_01_01]), BTreeSet::from([0x01_00_01]));
    assert_eq!(ends(explorer(3, false)), all);
    assert_eq!(ends(explorer(3, true).own_atomics_by_cpu()), all);
    assert_eq!(ends(explorer(3, false).own_atomics_by_cpu()), &all | &lost);
    assert_eq!(ends(explorer(3, false).own_atomics_by_cpu().unreduced()), &all | &lost);
}

/// Two ranks write one word each, at two ranks; two others get both words, in opposite orders. Each
/// of these records twice the first value plus the second value.
fn iriw() -> BTreeSet<[u64; 2]> {
    let look = |view: &View<'_>| [view.fact(2), view.fact(3)];
    seen(explorer(4, false), look, |fabric| async move {
        let region = fabric.alloc_symmetric(8).await?;
        let me = fabric.rank().number();
        let [x, y] = [A, B].map(|rank| fabric.remote_word::<u64>(region.at(rank, 0)));
        let (x, y) = (x?, y?);
        match me {
            0 => fabric.put_word(&y, 1).await?,
            1 => fabric.put_word(&x, 1).await?,
            _ => {
                let (one, other) = if me == 2 { (&x, &y) } else { (&y, &x) };
                let seen = [fabric.get_word(one).await?, fabric.get_word(other).await?];
                Probe::of(&fabric).set(me, 2 * seen[0] + seen[1]);
            }
        }
        Ok(())
    })
}

/// O15: if one reader has seen the second word and not the first, no reader has seen the first and
/// not the second.
#[test]
fn readers_agree_which_of_two_writes_was_first() {
    let all = (0..4).flat_map(|one| (0..4).map(move |other| [one, other]));
    let agreed: BTreeSet<_> = all.filter(|seen| *seen != [2, 2]).collect();
    assert_eq!(iriw(), agreed);
}

/// O15: a rank that sees a value that another rank passed on also sees the writes that the other
/// rank had seen.
#[test]
fn a_value_seen_and_passed_on_is_visible() {
    let look = |view: &View<'_>| view.fact(0);
    let ends = seen(explorer(3, false), look, |fabric| async move {
        let region = fabric.alloc_symmetric(16).await?;
        let [x, y] = [region.at(A, 0), region.at(C, 8)];
        let (x, passed) = (fabric.remote_word::<u64>(x)?, fabric.remote_word::<u64>(y)?);
        match fabric.rank() {
            A => fabric.put_word(&x, 1).await?,
            B => {
                let seen = fabric.get_word(&x).await?;
                fabric.put_word(&passed, 1 + seen).await?;
            }
            _ => {
                let told = fabric.load(&region.word::<u64>(&fabric, 8)?)?;
                let seen = fabric.get_word(&x).await?;
                Probe::of(&fabric).set(0, 10 * told + seen);
            }
        }
        Ok(())
    });
    // Never 20: B had seen the write.
    assert_eq!(ends, BTreeSet::from([0, 1, 10, 11, 21]));
}
