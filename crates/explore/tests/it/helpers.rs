//! Helpers: clauses H1 and H3 to H6 of the contract, as far as they involve a choice of orders. H2
//! is about time, which does not pass here.

use super::outcomes::{A, B, expect, explorer, seen, words};
use explore::{Explorer, Probe};
use fabric_offload::barrier::ColourBarrier;
use rdma_fabric::{Caps, Deps, Fabric, FabricError, Group, ProgramResult, Region};
use std::sync::Arc;

fn helped(ranks: usize) -> Explorer<'static> {
    explorer(ranks).caps(caps())
}

fn caps() -> Caps {
    let mut caps = Caps::weakest();
    caps.helpers = true;
    caps
}

/// Waits until a word of local memory, written by a task of this rank or by a peer, is 1.
async fn wait_for(fabric: &Fabric, region: &Region, offset: usize) -> ProgramResult<()> {
    let word = region.word::<u64>(fabric, offset)?;
    fabric.wait_until(&word, Deps::One(fabric.rank()), |value| value == 1).await?;
    Ok(())
}

/// Increments a word of rank A by a get and a put.
async fn count_unsafely(fabric: &Fabric, region: &Region) -> ProgramResult<()> {
    let word = fabric.remote_word::<u64>(region.at(A, 8))?;
    let before = fabric.get_word(&word).await?;
    fabric.put_word(&word, before + 1).await?;
    Ok(fabric.flush(A).await?)
}

#[test]
fn without_the_capability_they_are_refused_by_name() {
    let report = explorer(1).run(|fabric: Fabric| async move {
        assert!(!fabric.caps().helpers);
        let refused = fabric.helper("ordering", |_| async { Ok(()) });
        assert_eq!(refused, Err(FabricError::Unsupported { feature: &"helpers" }));
        Ok(())
    });
    report.expect_exhausted();
}

#[test]
fn hardware_barriers_are_refused_by_name() {
    let report = explorer(1).run(|fabric: Fabric| async move {
        assert_eq!(ColourBarrier::colours(&fabric), 0);
        let refused = ColourBarrier::claim(&mut Group::world(&fabric).await?, 0).await.map(drop);
        assert_eq!(refused, Err(FabricError::Unsupported { feature: &"hardware barriers" }));
        Ok(())
    });
    report.expect_exhausted();
}

/// H1, H3: a helper is the same rank, starts another, and all wait for each other's stores.
#[test]
fn a_rank_and_its_helpers_wake_each_other() {
    let program = |fabric: Fabric| async move {
        let region = Arc::new(words(&fabric).await?);
        let (asked, shared) = (region.word::<u64>(&fabric, 0)?, region.clone());
        fabric.helper("first", move |fabric| async move {
            let second = shared.clone();
            fabric.helper("second", move |fabric| async move {
                assert_eq!(fabric.rank(), A);
                wait_for(&fabric, &second, 8).await?;
                Ok(fabric.store(&second.word(&fabric, 16)?, 1u64)?)
            })?;
            wait_for(&fabric, &shared, 0).await?;
            Ok(fabric.store(&shared.word(&fabric, 8)?, 1u64)?)
        })?;
        fabric.store(&asked, 1u64)?;
        wait_for(&fabric, &region, 16).await
    };
    helped(1).run(program).expect_exhausted();
    assert!(helped(1).sample(1, 20, program).failure.is_none());
}

/// H3: a peer's put wakes a helper while its program waits for something else.
#[test]
fn a_peer_wakes_a_helper() {
    let program = |fabric: Fabric| async move {
        let region = Arc::new(words(&fabric).await?);
        if fabric.rank() == B {
            fabric.put_word(&fabric.remote_word(region.at(A, 0))?, 1u64).await?;
            return wait_for(&fabric, &region, 0).await;
        }
        let shared = region.clone();
        fabric.helper("answers", move |fabric| async move {
            wait_for(&fabric, &shared, 0).await?;
            fabric.put_word(&fabric.remote_word(shared.at(B, 0))?, 1u64).await?;
            fabric.flush(B).await?;
            Ok(fabric.store(&shared.word(&fabric, 8)?, 1u64)?)
        })?;
        wait_for(&fabric, &region, 8).await
    };
    helped(2).run(program).expect_exhausted();
    assert!(helped(2).sample(1, 20, program).failure.is_none());
}

/// A program and its helper interleave in every order: one of two counts may be lost.
#[test]
fn a_program_and_its_helper_race() {
    expect(helped(1), &[1, 2], |fabric: Fabric| async move {
        let region = Arc::new(words(&fabric).await?);
        let shared = region.clone();
        fabric.helper("counts", move |fabric| async move {
            count_unsafely(&fabric, &shared).await?;
            Ok(fabric.store(&shared.word(&fabric, 0)?, 1u64)?)
        })?;
        count_unsafely(&fabric, &region).await?;
        wait_for(&fabric, &region, 0).await?;
        Ok(fabric.load(&region.word::<u64>(&fabric, 8)?)?)
    });
}

#[test]
fn notices_are_the_programs() {
    let report = helped(1).run(|fabric: Fabric| async move {
        let region = Arc::new(words(&fabric).await?);
        let shared = region.clone();
        fabric.helper("listens", move |fabric| async move {
            let refused = FabricError::Unsupported { feature: &"notices of a helper" };
            assert_eq!(fabric.try_notice(), Err(refused.clone()));
            assert_eq!(fabric.next_notice(Deps::All).await, Err(refused));
            Ok(fabric.store(&shared.word(&fabric, 0)?, 1u64)?)
        })?;
        wait_for(&fabric, &region, 0).await
    });
    report.expect_exhausted();
}

/// Counts its drops in a fact.
struct Dropped(Probe);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add(0, 1);
    }
}

/// H5: a helper is dropped when its program has returned, in any of its waits.
#[test]
fn helpers_end_with_their_program() {
    let ends = seen(
        helped(1),
        |view| [view.fact(0), view.fact(1)],
        |fabric: Fabric| async move {
            let region = Arc::new(words(&fabric).await?);
            let shared = region.clone();
            fabric.helper("waits", move |fabric| async move {
                let probe = Probe::of(&fabric);
                let _dropped = Dropped(probe.clone());
                fabric.fetch_add(&fabric.remote_word::<u64>(shared.at(A, 8))?, 1).await?;
                probe.set(1, 1);
                wait_for(&fabric, &shared, 0).await?;
                unreachable!("nobody writes the word");
            })?;
            fabric.fetch_add(&fabric.remote_word::<u64>(region.at(A, 8))?, 1).await?;
            Ok(())
        },
    );
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [[1, 0], [1, 1]], "in its first wait, or in its second one");
}

/// H5, H6: an error that a helper returns before its program has returned is a finding that names
/// the helper; a later one is not.
#[test]
fn a_helper_that_fails_is_named() {
    let program = |waits: bool| {
        move |fabric: Fabric| async move {
            let region = Arc::new(words(&fabric).await?);
            fabric.helper("ordering", |_| async { Err("out of order".into()) })?;
            if waits { wait_for(&fabric, &region, 0).await } else { Ok(()) }
        }
    };
    let report = helped(1).run(program(true));
    let found = report.expect_violation();
    assert!(found.what.contains("helper \"ordering\": out of order"), "{}", found.what);
    helped(1).run(program(false)).expect_exhausted();
    let failure = helped(1).sample(1, 1, program(true)).failure.expect("a failure");
    assert!(failure.what.contains("helper \"ordering\""), "{}", failure.what);
}

/// The death of a rank immediately ends its program and its helper.
#[test]
fn a_helper_dies_with_its_rank() {
    let ends = seen(
        helped(2).mortal(A),
        |view| (view.is_lost(A), view.fact(0)),
        |fabric: Fabric| async move {
            let region = Arc::new(words(&fabric).await?);
            if fabric.rank() == A {
                let shared = region.clone();
                fabric.helper("tells", move |fabric| async move {
                    fabric.put_word(&fabric.remote_word(shared.at(B, 0))?, 1u64).await?;
                    fabric.flush(B).await?;
                    Ok(fabric.store(&shared.word(&fabric, 0)?, 1u64)?)
                })?;
                return wait_for(&fabric, &region, 0).await;
            }
            let told = region.word::<u64>(&fabric, 0)?;
            let told = fabric.wait_until(&told, Deps::One(A), |told| told == 1).await;
            Probe::of(&fabric).set(0, if told.is_ok() { 1 } else { 2 });
            Ok(())
        },
    );
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [(false, 1), (true, 1), (true, 2)]);
}
