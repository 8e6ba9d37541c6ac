//! Findings: told, replayed by their schedule, and found again by random runs; and what bounds and steps make of an exploration.

use super::{
    coherence,
    litmus::two_puts,
    losses::raises_flags,
    outcomes::{A, B, C, explorer, words},
};
use explore::{Event, Explorer, LiveJob, Probe, Report, Stop, Verdict};
use rdma_fabric::{Amo, Caps, Deps, Fabric, Group, ProgramResult, Rank, Time, op};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    future::Future,
    rc::Rc,
};

/// Asserts that `program` does what is `wrong`, that the timeline has these `lines`, and that the schedule does it again.
/// Returns the schedule.
#[track_caller]
fn finds<Fut>(
    explorer: impl Fn() -> Explorer<'static>,
    program: impl Fn(Fabric) -> Fut + Copy + 'static,
    wrong: &str,
    lines: &[&str],
) -> String
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    let report = explorer().run(program);
    let found = report.expect_violation();
    assert!(found.what.contains(wrong), "{found}");
    for wanted in lines {
        assert!(found.timeline.iter().any(|line| line.contains(wanted)), "{wanted:?} is missing: {found}");
    }
    let (what, timeline) = explorer().replay(&found.schedule, program);
    assert_eq!((what.as_ref(), &timeline), (Some(&found.what), &found.timeline));
    found.schedule.clone()
}

/// Asserts that `runs` random runs find what is `wrong`, and returns the timeline.
#[track_caller]
fn samples<Fut>(
    explorer: Explorer<'static>,
    runs: u64,
    program: impl Fn(Fabric) -> Fut + 'static,
    wrong: &str,
) -> Vec<String>
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    let failure = explorer.sample(1, runs, program).failure.expect("a failure");
    assert!(failure.what.contains(wrong), "{failure:?}");
    failure.timeline
}

#[test]
fn a_rank_that_waits_for_ever_is_found() {
    let report = explorer(2).run(|fabric| async move {
        let region = words(&fabric).await?;
        let word = region.word::<u64>(&fabric, 0)?;
        let other = Rank::new(1 - fabric.rank().number());
        // Each waits before it tells the other.
        fabric.wait_until(&word, Deps::All, |bits| bits == 1).await?;
        fabric.put_word(&fabric.remote_word(region.at(other, 0))?, 1u64).await?;
        Ok(())
    });
    let found = report.expect_violation();
    assert!(found.what.starts_with("deadlock") && found.what.contains("rank 0") && found.what.contains("rank 1"));
    assert!(found.shortest && found.moves == 0);
}

#[test]
fn a_step_without_an_end_is_cut_and_told() {
    assert!(matches!(retrying(true).verdict, Verdict::Exhausted));
    let report = retrying(false);
    assert!(matches!(report.verdict, Verdict::Stopped(Stop::Steps(8))), "{report}");
    assert!(report.cut > 0);
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
    // Each rank is in one of three places; or in one for each of what it was told.
    assert_eq!(with.states, 27);
    assert!(without.states > 100, "{without}");
}

#[test]
fn a_panic_under_a_guard_is_a_finding_and_nothing_worse() {
    let program = |fabric: Fabric| async move {
        let region = words(&fabric).await?;
        let _guard = Guard(fabric.clone());
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        assert_eq!(fabric.fetch_add(&word, 1).await?, 0, "somebody was here");
        Ok(())
    };
    finds(|| explorer(2), program, "somebody was here", &[]);
    samples(explorer(2), 10, program, "somebody was here");
}

/// Four words are got in 2^4 orders, or in one; the put that is on its way arrives at any time afterwards.
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

/// Ranks share nodes as the explorer is told; without a word each has its own.
#[test]
fn ranks_are_on_their_nodes() {
    let placed = |fabric: &Fabric| (0..3).map(|rank| fabric.node(Rank::new(rank)).unwrap().index()).collect::<Vec<_>>();
    let apart = explorer(3).run(move |fabric| async move {
        assert_eq!((placed(&fabric), fabric.nodes()), (vec![0, 1, 2], 3));
        Ok(())
    });
    apart.expect_exhausted();
    let together = explorer(3).nodes(&[0, 1, 0]).run(move |fabric| async move {
        assert_eq!((placed(&fabric), fabric.nodes()), (vec![0, 1, 0], 2));
        assert_eq!(fabric.rank_on(fabric.node(A)?, 1), Some(Rank::new(2)));
        Ok(())
    });
    together.expect_exhausted();
}

fn retrying(ends: bool) -> Report {
    // The increment by compare-and-swap retries as often as others get in its way; without them it ends.
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

/// A rank that remembers, across the end of a step, whether it met the other one; `tells` or not.
fn remembers(tells: bool) -> Report {
    explorer(2).run(move |fabric| async move {
        let probe = Probe::of(&fabric);
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let met = fabric.fetch_add(&word, 1).await?;
        probe.step(if tells { met } else { 0 });
        fabric.fetch_add(&word, 10).await?;
        // Far behind the end of the step.
        if met == 1 {
            fabric.put_word(&fabric.remote_word(region.at(B, 8))?, 1u64).await?;
        }
        Ok(())
    })
}

#[test]
fn a_violation_is_replayed_and_sampled() {
    let program = |fabric| async move {
        two_puts(fabric, false).await.map(|seen| assert_ne!(seen, 12, "the second put overtook the first"))
    };
    finds(|| explorer(2), program, "overtook", &["put arrives at rank 1's region 0+8"]);
    samples(explorer(2), 1_000, program, "overtook");
}

/// Detaches when it is dropped, as guards do.
struct Guard(Fabric);

impl Drop for Guard {
    fn drop(&mut self) {
        let fabric = self.0.clone();
        self.0.detach(async move { fabric.flush_all().await.expect("no error") });
    }
}

/// B believes that who has announced a value goes on to send it.
async fn believes(fabric: Fabric) -> ProgramResult<()> {
    let region = words(&fabric).await?;
    let [announced, value] = [0, 8].map(|offset| region.at(B, offset));
    if fabric.rank() == A {
        fabric.put_word(&fabric.remote_word(announced)?, 1u64).await?;
        fabric.flush(B).await?;
        fabric.put_word(&fabric.remote_word(value)?, 1u64).await?;
        return Ok(());
    }
    let _ = fabric.wait_until(&fabric.local_word::<u64>(announced)?, Deps::All, |value| value == 1).await;
    let end = fabric.wait_until(&fabric.local_word::<u64>(value)?, Deps::All, |value| value == 1).await;
    assert_eq!(end, Ok(1), "announced, but not sent");
    Ok(())
}

#[test]
fn a_death_is_replayed_and_sampled() {
    explorer(2).run(believes).expect_exhausted();
    let (mortal, wrong) = (|| explorer(2).mortal(A), "announced, but not sent");
    let schedule = finds(mortal, believes, wrong, &["rank 0  DIES", "rank 1  learns that rank 0 is lost"]);
    let (what, _) = explorer(2).replay(&schedule, believes);
    assert!(what.is_some_and(|what| what.contains("die, which can't")));
    let timeline = samples(mortal(), 1_000, believes, wrong);
    assert!(timeline.iter().any(|line| line.contains("DIES")), "{timeline:?}");
    assert!(explorer(2).sample(1, 100, believes).failure.is_none());
    assert!(explorer(3).mortal(A).sample(1, 1_000, raises_flags).failure.is_none());
}

#[test]
fn a_driver_may_let_ranks_die() {
    let mut job = LiveJob::new(3, Caps::weakest(), raises_flags).leave_together().mortal(A);
    let mut events = Vec::new();
    let mut died = false;
    loop {
        job.events(&mut events);
        let die = events.iter().find(|event| matches!(event, Event::Die(_)));
        let Some(next) = die.or(events.first()).copied() else { break };
        died |= die.is_some();
        job.act(next).expect("no error");
    }
    assert!(died && [A, B, C].into_iter().all(|rank| job.has_ended(rank)));
    job.look(|view| assert_eq!((view.is_lost(A), view.fact(1), view.fact(2)), (true, 2, 2)));
}

/// A counter that its owner resets by a store: an addition comes back.
async fn resets(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == A {
        fabric.fetch_add(&fabric.remote_word::<u64>(region.at(B, 0))?, 1).await?;
        fabric.fetch_add(&fabric.remote_word::<u64>(region.at(B, 0))?, 1).await?;
    } else {
        let own = region.word::<u64>(&fabric, 0)?;
        if fabric.load(&own)? == 1 {
            fabric.store(&own, 0)?;
            assert!(fabric.load(&own)? < 2, "the store is lost");
        }
    }
    Ok(())
}

#[test]
fn a_lost_store_is_a_finding_told_replayed_and_sampled() {
    let (coherent, loses) = (|| coherence::explorer(2, true), || coherence::explorer(2, false));
    coherent().run(resets).expect_exhausted();
    finds(loses, resets, "the store is lost", &["reads 0x1 and will write"]);
    assert!(coherent().sample(1, 2_000, resets).failure.is_none());
    samples(loses(), 2_000, resets_by_put, "the put is lost");
}

/// Resets a counter by a put, which is lost beside an addition. A random run's CPU does in one go what it can, which a store is part of.
async fn resets_by_put(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(region.at(B, 0))?;
    if fabric.rank() == A {
        fabric.fetch_add(&word, 1).await?;
    } else {
        fabric.put_word(&word, 10).await?;
        fabric.flush(B).await?;
        fabric.sleep_until(Time::from_picos(1)).await;
        assert!(fabric.load(&region.word::<u64>(&fabric, 0)?)? >= 10, "the put is lost");
    }
    Ok(())
}

/// A tells B to go; what it then does to B comes in time only if B waits for it.
async fn hands_over(fabric: Fabric, waits: bool) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(16).await?;
    if fabric.rank() == A {
        let words = [0, 8].map(|offset| fabric.remote_word::<u64>(region.at(B, offset)));
        let [flag, data] = words;
        let (flag, data) = (flag?, data?);
        fabric.put_word(&flag, 1).await?;
        let sent = fabric.try_post(op::Atomic { word: &data, amo: Amo::Add(1) }).map_err(|_| "refused")?;
        sent.await?;
    } else {
        let at = if waits { 8 } else { 0 };
        let word = region.word::<u64>(&fabric, at)?;
        fabric.wait_until(&word, Deps::All, |value| value == 1).await?;
    }
    Group::world(&fabric).await?.barrier().await?;
    Ok(())
}

/// A region that dies early is a finding: told, replayed, and found by random runs. Behind a barrier there is none.
#[test]
fn an_early_end_is_a_finding() {
    let early = |fabric: Fabric| async move {
        let region = fabric.alloc_symmetric(8).await?;
        if fabric.rank() == A {
            let word = fabric.remote_word::<u64>(region.at(B, 0))?;
            fabric.fetch_add(&word, 1).await?;
        }
        Ok(())
    };
    finds(|| Explorer::new(2), early, "region 0.1 of rank 1 was deregistered", &["drops its region 0"]);
    samples(Explorer::new(2), 200, early, "was deregistered");
    for waits in [false, true] {
        Explorer::new(2).run(move |fabric| hands_over(fabric, waits)).expect_exhausted();
    }
}
