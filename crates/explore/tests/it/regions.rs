//! Regions that are dropped while others may still address them: small programs whose possible
//! outcomes are all known.

use super::outcomes::{A, B, seen};
use explore::{Explorer, Probe};
use rdma_fabric::{Deps, Fabric, FabricError, LocalSpan, ProgramResult, Rank, RemoteAddr, Result, op};
use std::{collections::BTreeSet, rc::Rc};

/// Returns 1 for success, 2 if `owner` had dropped the region.
fn told<T>(end: &Result<T>, owner: Rank) -> u64 {
    match end {
        Ok(_) => 1,
        Err(FabricError::StaleRegion { rank, .. }) if *rank == owner => 2,
        Err(error) => panic!("{error}"),
    }
}

/// A flushes a put to B, whose program ends immediately. Fact 0 is the step that reported the drop:
/// 1 resolving, 2 posting, 3 flushing, or 0 for none.
async fn puts_to_one_that_leaves(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == B {
        return Ok(());
    }
    let puts = async {
        let word = fabric.remote_word::<u64>(region.at(B, 0)).map_err(|error| (1, error))?;
        fabric.put_word(&word, 7).await.map_err(|error| (2, error))?;
        fabric.flush(B).await.map_err(|error| (3, error))
    };
    let (at, end) = match puts.await {
        Ok(()) => (0, Ok(())),
        Err((at, error)) => (at, Err(error)),
    };
    assert_eq!(told(&end, B), if at == 0 { 1 } else { 2 });
    // The error is reported only once.
    fabric.flush(B).await?;
    fabric.flush_all().await?;
    Probe::of(&fabric).set(0, at);
    Ok(())
}

#[test]
fn a_region_goes_with_its_program() {
    let run = |explorer: Explorer<'_>| seen(explorer, |view| view.fact(0), puts_to_one_that_leaves);
    assert_eq!(run(Explorer::new(2)), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(run(Explorer::new(2).unreduced()), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(run(Explorer::new(2).leave_together()), BTreeSet::from([0]));
}

/// A resolves a word of B and does not use it.
#[test]
fn resolving_reports_a_drop() {
    for explorer in [Explorer::new(2), Explorer::new(2).unreduced()] {
        let ends = seen(
            explorer,
            |view| view.fact(0),
            |fabric| async move {
                let region = fabric.alloc_symmetric(8).await?;
                if fabric.rank() == A {
                    let end = told(&fabric.remote_word::<u64>(region.at(B, 0)).map(drop), B);
                    Probe::of(&fabric).set(0, end);
                }
                Ok(())
            },
        );
        assert_eq!(ends, BTreeSet::from([1, 2]));
    }
}

/// B drops its region itself, before its program ends. A's atomic or get is in flight, or is posted
/// later.
#[test]
fn handles_report_late_operations() {
    let program = |atomic: bool| {
        move |fabric: Fabric| async move {
            let region = fabric.alloc_symmetric(8).await?;
            if fabric.rank() == B {
                drop(region);
                Probe::of(&fabric).set(1, 1);
                return Ok(());
            }
            let Ok(word) = fabric.remote_word::<u64>(region.at(B, 0)) else { return Ok(()) };
            let end = match atomic {
                true => told(&fabric.fetch_add(&word, 1).await, B),
                false => told(&fabric.get_word(&word).await, B),
            };
            Probe::of(&fabric).set(0, end);
            Ok(())
        }
    };
    // The result that A received, and the word's value at the drop.
    let ends = |atomic| {
        let look = |view: &explore::View<'_>| (view.fact(0), view.words().map(|(_, value)| value).sum::<u64>());
        seen(Explorer::new(2), look, program(atomic))
    };
    assert_eq!(ends(true), BTreeSet::from([(0, 0), (1, 1), (2, 0)]));
    assert_eq!(ends(false), BTreeSet::from([(0, 0), (1, 0), (2, 0)]));
}

/// A put of two words with a notice, to a region that is dropped: either word may have been
/// written, and the notice comes after both or never.
#[test]
fn a_notice_that_is_there_has_its_bytes() {
    for words in [0, 2] {
        let ends = seen(
            Explorer::new(2),
            |view| view.fact(0) + view.fact(1),
            move |fabric| async move {
                let region = fabric.alloc_symmetric(16).await?;
                let (me, probe) = (fabric.rank(), Probe::of(&fabric));
                if me == A {
                    let to = fabric.remote_span::<u64>(region.at(B, 0), words);
                    let Ok(to) = to else { return Ok(()) };
                    if fabric.put_notify(&to, vec![3u64; words], 1).await.is_ok() {
                        let end = told(&fabric.flush(B).await, B);
                        probe.set(0, 10 * end);
                    }
                    return Ok(());
                }
                let bytes: LocalSpan<u64> = region.span(&fabric, 0, 2)?;
                let mut seen = [0; 2];
                fabric.read(&bytes, &mut seen)?;
                let noticed = fabric.try_notice()?.is_some();
                drop(region);
                let later = fabric.try_notice()?.is_some();
                assert!(!(noticed && later));
                probe.set(1, 4 * u64::from(noticed) + 2 * u64::from(later) + seen[0] / 3 * (seen[1] / 3));
                Ok(())
            },
        );
        // 20 means that A received an error; in that case the notice never arrived.
        assert!(ends.iter().all(|end| end / 10 != 2 || end % 10 < 2), "{words} words: {ends:?}");
        // Among the ends are: all went well and was seen; and a notice that came after the drop, of
        // bytes that had arrived.
        let all = if words == 0 { [20, 14, 10, 12] } else { [20, 15, 10, 12] };
        assert!(all.iter().all(|end| ends.contains(end)), "{words} words: {ends:?}");
    }
}

#[test]
fn parts_of_a_symmetric_region_end_alone() {
    let ends = seen(
        Explorer::new(3).leave_together(),
        |view| view.fact(0),
        |fabric| async move {
            let (key, region) = (fabric.alloc_symmetric(8).await?, fabric.rank() != B);
            let at = |rank| RemoteAddr { rank, ..key.at(rank, 0) };
            let others = [Rank::new(2), B].map(at);
            if !region {
                drop(key);
                // The rank's own part has been dropped; those of others still exist.
                let own = fabric.local_word::<u64>(at_of(others[1], B)).map(drop);
                assert_eq!(told(&own, B), 2);
                fabric.fetch_add(&fabric.remote_word::<u64>(others[0])?, 1).await?;
            } else if fabric.rank() == A {
                fabric.fetch_add(&fabric.remote_word::<u64>(others[0])?, 1).await?;
                let end = match fabric.remote_word::<u64>(others[1]) {
                    Ok(word) => told(&fabric.get_word(&word).await, B),
                    Err(error) => 2 + told::<()>(&Err(error), B),
                };
                Probe::of(&fabric).set(0, end);
            }
            Ok(())
        },
    );
    assert_eq!(ends, BTreeSet::from([1, 2, 4]));
}

fn at_of(addr: RemoteAddr, rank: Rank) -> RemoteAddr {
    RemoteAddr { rank, ..addr }
}

#[test]
fn nothing_can_be_done_with_an_own_region_that_is_dropped() {
    let report = Explorer::new(1).run(|fabric| async move {
        let kept = fabric.alloc(8)?;
        let region = fabric.alloc(8)?;
        let (own, part) = (region.word::<u64>(&fabric, 0)?, region.span::<u64>(&fabric, 0, 1)?);
        let there = fabric.remote_span::<u64>(kept.at(A, 0), 1)?;
        let get = fabric.try_post(op::Get { from: &there, to: part.clone() }).expect("room");
        drop(region);
        let ends = [
            fabric.load(&own).map(drop),
            fabric.store(&own, 1),
            fabric.read(&part, &mut [0]),
            fabric.write(&part, &[0]),
            fabric.wait_until(&own, Deps::All, |_| true).await.map(drop),
            fabric.fetch_add(&own.as_remote(), 1).await.map(drop),
            fabric.put(&there, part.clone()).await.map(drop),
            fabric.get(&there, part.clone()).await.map(drop),
        ];
        assert!(ends.iter().all(|end| told(end, A) == 2), "{ends:?}");
        // A get that was in flight into the region fails, or had arrived before the drop.
        told(&get.await.map(drop), A);
        Ok(())
    });
    report.expect_exhausted();
}

/// A region that only a detached future uses is dropped unless the future owns it.
#[test]
fn what_a_detached_future_uses_it_has_to_own() {
    let run = |owns: bool| {
        Explorer::new(1).leave_together().run(move |fabric| async move {
            let region = Rc::new(fabric.alloc(8)?);
            let word = fabric.remote_word::<u64>(region.at(A, 0))?;
            let (owner, owned) = (fabric.clone(), owns.then(|| region.clone()));
            fabric.detach(async move {
                let end = owner.fetch_add(&word, 1).await;
                assert!(end.is_ok(), "it went");
                drop(owned);
            });
            Ok(())
        })
    };
    run(true).expect_exhausted();
    assert!(run(false).expect_violation().what.contains("it went"));
}

/// A dropped region and a death are reported by different errors.
#[test]
fn a_loss_and_a_drop_are_distinguished() {
    let ends = seen(
        Explorer::new(2).mortal(B),
        |view| view.fact(0),
        |fabric| async move {
            let region = fabric.alloc_symmetric(8).await?;
            if fabric.rank() == A {
                let end = match fabric.remote_word::<u64>(region.at(B, 0)) {
                    Ok(word) => fabric.fetch_add(&word, 1).await.map(drop),
                    Err(error) => Err(error),
                };
                let end = match end {
                    Err(FabricError::PeerLost { rank: B }) => 3,
                    end => told(&end, B),
                };
                Probe::of(&fabric).set(0, end);
            }
            Ok(())
        },
    );
    assert_eq!(ends, BTreeSet::from([1, 2, 3]));
}
