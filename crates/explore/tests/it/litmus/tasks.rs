//! Detached tasks, joined operations, barriers and deadlines.

use super::super::outcomes::{A, B, expect, explorer, words};
use explore::{Explorer, Probe};
use rdma_fabric::{Deps, Time, join};
use std::rc::Rc;

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
