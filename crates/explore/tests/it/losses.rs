//! The loss of ranks: small programs whose possible outcomes are all known.

mod operations;

use super::outcomes::{A, B, C, explorer, seen, words};
use explore::{Explorer, Probe};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank, Region, Result, Time};
use std::{collections::BTreeSet, future::Future};

/// Returns every end that a program may have if A is mortal: facts 0 to 2, and whether A died.
fn outcomes<Fut>(explorer: Explorer<'_>, program: impl Fn(Fabric) -> Fut) -> BTreeSet<[u64; 4]>
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    seen(explorer.mortal(A), |view| [view.fact(0), view.fact(1), view.fact(2), view.is_lost(A).into()], program)
}

/// Returns the values of fact 0, over all outcomes.
fn firsts(outcomes: &BTreeSet<[u64; 4]>) -> BTreeSet<u64> {
    outcomes.iter().map(|outcome| outcome[0]).collect()
}

/// Returns the result of something that depends on A as a number: 1 if it succeeded, 2 if A is
/// lost.
fn told<T>(end: Result<T>) -> u64 {
    match end {
        Ok(_) => 1,
        Err(FabricError::PeerLost { rank: A }) => 2,
        Err(error) => panic!("{error}"),
    }
}

/// Waits until A is known to be lost.
async fn notice_the_loss(fabric: &Fabric, region: &Region) -> ProgramResult<()> {
    let never = region.word::<u64>(fabric, 24)?;
    let end = fabric.wait_until(&never, Deps::One(A), |value| value != 0).await;
    assert_eq!(end, Err(FabricError::PeerLost { rank: A }));
    Ok(())
}

/// Returns whether A is known to be lost before a deadline that may expire at any moment.
async fn known_in_time(fabric: &Fabric, region: &Region) -> ProgramResult<bool> {
    Ok(fabric.before(Time::from_picos(1), notice_the_loss(fabric, region)).await.transpose()?.is_some())
}

/// A raises B's flag, then C's; each of them waits for its own flag.
pub(crate) async fn raises_flags(fabric: Fabric) -> ProgramResult<()> {
    let region = words(&fabric).await?;
    let me = fabric.rank();
    if me == A {
        for other in [B, C] {
            fabric.put_word(&fabric.remote_word(region.at(other, 0))?, 1u64).await?;
            fabric.flush(other).await?;
        }
        return Ok(());
    }
    let flag = region.word::<u64>(&fabric, 0)?;
    let end = fabric.wait_until(&flag, Deps::All, |value| value == 1).await;
    Probe::of(&fabric).set(me.number(), told(end));
    Ok(())
}

#[test]
fn waits_for_one_that_dies_end() {
    let seen = outcomes(explorer(3), raises_flags);
    let pairs: BTreeSet<_> = seen.iter().map(|outcome| (outcome[1], outcome[2], outcome[3])).collect();
    // (2, 1) is impossible: C's flag is raised only after B's, no rank lowers B's, and a satisfied
    // wait succeeds even if B checks late.
    assert_eq!(pairs, BTreeSet::from([(1, 1, 0), (1, 1, 1), (1, 2, 1), (2, 2, 1)]));
}

#[test]
fn a_wait_for_a_waiting_rank_ends_only_with_its_death() {
    let report = explorer(2).mortal(A).run(|fabric| async move {
        let region = words(&fabric).await?;
        // Both wait. The possible death of A does not resolve the deadlock.
        let flag = region.word::<u64>(&fabric, 0)?;
        let end = fabric.wait_until(&flag, Deps::All, |value| value == 1).await;
        assert_eq!(told(end), 2);
        Ok(())
    });
    assert!(report.expect_violation().what.starts_with("deadlock"), "{report}");
}

#[test]
fn waits_without_the_dead_go_on() {
    for ranks in [false, true] {
        let seen = outcomes(explorer(3), move |fabric| async move {
            let region = words(&fabric).await?;
            let me = fabric.rank();
            match me {
                A => drop(fabric.fetch_add(&fabric.remote_word::<u64>(region.at(C, 8))?, 1).await?),
                B => {
                    fabric.get_word(&fabric.remote_word::<u64>(region.at(C, 8))?).await?;
                    fabric.put_word(&fabric.remote_word(region.at(C, 0))?, 1u64).await?;
                }
                _ => {
                    let some = [B, me];
                    let deps = if ranks { Deps::Ranks(&some) } else { Deps::One(B) };
                    let flag = region.word::<u64>(&fabric, 0)?;
                    let end = fabric.wait_until(&flag, deps, |value| value == 1).await;
                    Probe::of(&fabric).set(0, told(end));
                }
            }
            Ok(())
        });
        assert_eq!(firsts(&seen), BTreeSet::from([1]));
        assert!(seen.iter().any(|outcome| outcome[3] == 1), "A never died");
    }
}

#[test]
fn the_first_to_know_ends_it_for_all() {
    // C reports to B whether it knows of the loss. Even if B does not know itself, nothing arrives
    // from A any longer.
    let seen = outcomes(explorer(3), |fabric| async move {
        let region = words(&fabric).await?;
        match fabric.rank() {
            A => fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?,
            B => {
                let told = region.word::<u64>(&fabric, 8)?;
                let known = fabric.wait_until(&told, Deps::One(C), |value| value != 0).await?;
                let word = region.word::<u64>(&fabric, 0)?;
                let (first, second) = (fabric.load(&word)?, fabric.load(&word)?);
                Probe::of(&fabric).set(0, 100 * known + 10 * first + second);
            }
            _ => {
                let knows = known_in_time(&fabric, &region).await?;
                fabric.put_word(&fabric.remote_word(region.at(B, 8))?, 1 + u64::from(knows)).await?;
            }
        }
        Ok(())
    });
    assert_eq!(firsts(&seen), BTreeSet::from([100, 101, 111, 200, 211]));
}

#[test]
fn a_dead_rank_does_nothing_more() {
    // A counts to three. Its acts take effect only up to the point where it died.
    let report = explorer(2)
        .mortal(A)
        .always("the word follows the fact", |view| view.fact(1) <= view.fact(0))
        .possible("dead in the middle", |view| view.is_lost(A) && view.fact(0) == 2)
        .at_end("only the dead stops early", |view| view.is_lost(A) || view.fact(0) == 3)
        .run(|fabric| async move {
            let (probe, me) = (Probe::of(&fabric), fabric.rank());
            let region = words(&fabric).await?;
            let word = fabric.remote_word::<u64>(region.at(B, 0))?;
            if me == A {
                for _ in 0..3 {
                    probe.add(0, 1);
                    fabric.fetch_add(&word, 1).await?;
                }
                return Ok(());
            }
            let word = region.word::<u64>(&fabric, 0)?;
            told(fabric.wait_until(&word, Deps::One(A), |value| value == 3).await);
            let count = probe.get(0);
            let here = fabric.load(&word)?;
            assert_eq!(probe.get(0), count, "a dead rank went on");
            assert!(here <= count);
            probe.set(1, here);
            Ok(())
        });
    report.expect_exhausted();
}

#[test]
fn it_may_die_after_its_last_act() {
    // Its last act may have taken effect without the put that it would have posted next.
    let seen = outcomes(explorer(2), |fabric| async move {
        let region = words(&fabric).await?;
        if fabric.rank() == A {
            Probe::of(&fabric).set(1, 1);
            fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
            return Ok(());
        }
        let word = region.word::<u64>(&fabric, 0)?;
        Probe::of(&fabric).set(0, told(fabric.wait_until(&word, Deps::All, |value| value == 1).await));
        Ok(())
    });
    assert_eq!(seen, BTreeSet::from([[1, 1, 0, 0], [1, 1, 0, 1], [2, 0, 0, 1], [2, 1, 0, 1]]));
}

#[test]
fn notices_of_the_dead_that_have_arrived_count() {
    let seen = outcomes(explorer(2), |fabric| async move {
        let region = words(&fabric).await?;
        if fabric.rank() == A {
            let to = fabric.remote_span::<u64>(region.at(B, 0), 1)?;
            for round in 1..=2 {
                fabric.put_notify(&to, [round], round).await?;
            }
            return Ok(());
        }
        let mut came = 0;
        while came < 2 {
            match fabric.next_notice(Deps::One(A)).await {
                Ok(notice) => came = notice.data,
                Err(error) => {
                    assert_eq!(told::<()>(Err(error)), 2);
                    assert_eq!(fabric.try_notice()?, None, "no more will come");
                    came += 10;
                }
            }
        }
        Probe::of(&fabric).set(0, came);
        Ok(())
    });
    assert_eq!(firsts(&seen), BTreeSet::from([2, 10, 11]));
}

#[test]
fn a_holder_dies_and_all_receive_an_error() {
    // A flag at B that one rank at a time can hold; A may die while holding it. Each rank tries
    // once, and waits for the holder that it finds, if any.
    let report = explorer(3)
        .mortal(A)
        .always("one inside", |view| view.fact(0) <= 1)
        .possible("the holder is dead", |view| view.is_lost(A) && view.fact(0) == 1)
        .run(|fabric| async move {
            let (probe, me) = (Probe::of(&fabric), fabric.rank());
            let region = words(&fabric).await?;
            let flag = fabric.remote_word::<u64>(region.at(B, 0))?;
            let holder = fabric.compare_swap(&flag, 0, 1 + u64::from(me.number())).await?;
            if holder == 0 {
                probe.add(0, 1);
                probe.subtract(0, 1);
                fabric.swap(&flag, 0).await?;
                return Ok(());
            }
            let holder = Rank::new(holder as u32 - 1);
            let never = region.word::<u64>(&fabric, 24)?;
            let wait = fabric.wait_until(&never, Deps::One(holder), |value| value == 1);
            if let Some(end) = fabric.before(Time::from_picos(1), wait).await {
                assert_eq!(told(end), 2);
            }
            Ok(())
        });
    report.expect_exhausted();
}
