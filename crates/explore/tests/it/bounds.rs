//! The effects of the answer limit, steps, set-ups and nodes on an exploration.

use super::outcomes::{A, B, explorer, words};
use explore::{Explorer, Probe, Report, Stop, Verdict};
use rdma_fabric::{Fabric, Rank};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
};

#[test]
fn an_endless_step_is_cut_and_reported() {
    assert!(matches!(retrying(true).verdict, Verdict::Exhausted));
    let report = retrying(false);
    assert!(matches!(report.verdict, Verdict::Stopped(Stop::Steps(8))), "{report}");
    assert!(report.cut > 0);
}

fn retrying(ends: bool) -> Report {
    // An increment by compare-and-swap retries whenever it conflicts with others; without
    // conflicts, it ends.
    explorer(2).patience(8).run(move |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let mut known = 0;
        loop {
            let seen = fabric.compare_swap(&word, known, known + 1).await?;
            if seen == known && ends {
                return Ok(());
            }
            known = seen;
        }
    })
}

#[test]
fn a_program_with_hidden_state_is_refused() {
    let hidden = Rc::new(Cell::new(0u64));
    let report = explorer(1).run(move |fabric| {
        let hidden = hidden.clone();
        async move {
            let region = words(&fabric).await?;
            let word = fabric.remote_word::<u64>(region.at(A, 0))?;
            hidden.set(hidden.get() + 1);
            fabric.fetch_add(&word, hidden.get()).await?;
            Ok(())
        }
    });
    assert!(report.expect_violation().what.contains("not deterministic"), "{report}");
}

/// Explores ranks that remember, across the end of a step, whether they came second; if `tells`, they
/// declare this to the explorer.
fn remembers(tells: bool) -> Report {
    explorer(2).run(move |fabric| async move {
        let probe = Probe::of(&fabric);
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let met = fabric.fetch_add(&word, 1).await?;
        probe.step(if tells { met } else { 0 });
        fabric.fetch_add(&word, 10).await?;
        // This happens long after the end of the step.
        if met == 1 {
            fabric.put_word(&fabric.remote_word(region.at(B, 8))?, 1u64).await?;
        }
        Ok(())
    })
}

#[test]
fn a_step_that_forgets_too_much_is_found() {
    remembers(true).expect_exhausted();
    let report = remembers(false);
    assert!(report.contradiction.is_some(), "{report}");
}

#[test]
fn steps_make_states_after_different_histories_the_same() {
    let run = |steps: bool| {
        explorer(3).run(move |fabric| async move {
            let probe = Probe::of(&fabric);
            let region = words(&fabric).await?;
            let word = fabric.remote_word::<u64>(region.at(A, 0))?;
            for round in 0..2 {
                fabric.fetch_add(&word, 1).await?;
                if steps {
                    probe.step(round);
                }
            }
            Ok(())
        })
    };
    let (with, without) = (run(true), run(false));
    with.expect_exhausted();
    without.expect_exhausted();
    // With steps, each rank is in one of three states; without, in one for each history of answers.
    assert_eq!(with.states, 27);
    assert!(without.states > 100, "{without}");
}

/// Four words are got in 2^4 orders, or in one; in either case, the put still in flight arrives at
/// any time afterwards.
#[test]
fn a_set_up_has_one_order_and_what_follows_all() {
    let explore = |explorer: Explorer<'static>| {
        let seen = Rc::new(RefCell::new(BTreeSet::new()));
        let all = Rc::clone(&seen);
        let explorer = explorer.at_end("outcome", move |view| {
            all.borrow_mut().insert(view.fact(9));
            true
        });
        let report = explorer.run(|fabric| async move {
            let region = fabric.alloc_symmetric(64).await?;
            fabric.get(&fabric.remote_span::<u64>(region.at(A, 0), 4)?, [0; 4]).await?;
            if fabric.rank() == A {
                fabric.put_word(&fabric.remote_word(region.at(B, 32))?, 1u64).await?;
            }
            Probe::of(&fabric).set(fabric.rank().number(), 1);
            if fabric.rank() == B {
                let put: u64 = fabric.load(&region.word(&fabric, 32)?)?;
                Probe::of(&fabric).set(9, 1 + put);
            }
            Ok(())
        });
        report.expect_exhausted();
        (report.states, seen.take())
    };
    let (all, one) = (explore(explorer(2)), explore(explorer(2).set_up(0)));
    assert_eq!((&all.1, &one.1), (&BTreeSet::from([1, 2]), &BTreeSet::from([1, 2])));
    assert!(all.0 > 200 && one.0 < 40, "{} states, and {} with one order of the set-up", all.0, one.0);
}

/// Ranks share nodes as configured; by default each rank is on a separate node.
#[test]
fn ranks_are_on_their_nodes() {
    let placed = |fabric: &Fabric| (0..3).map(|rank| fabric.node(Rank::new(rank)).unwrap().index()).collect::<Vec<_>>();
    let apart = explorer(3).run(move |fabric| async move {
        assert_eq!((placed(&fabric), fabric.facts().node_count()), (vec![0, 1, 2], 3));
        Ok(())
    });
    apart.expect_exhausted();
    let together = explorer(3).nodes(&[0, 1, 0]).run(move |fabric| async move {
        assert_eq!((placed(&fabric), fabric.facts().node_count()), (vec![0, 1, 0], 2));
        assert_eq!(fabric.facts().rank_on(fabric.node(A)?, 1), Some(Rank::new(2)));
        Ok(())
    });
    together.expect_exhausted();
}
