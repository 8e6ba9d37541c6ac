//! Findings: their reports, their replay from schedules, and their discovery by random runs.

use super::{
    coherence,
    litmus::two_puts,
    losses::raises_flags,
    outcomes::{A, B, C, explorer, words},
};
use explore::{Event, Explorer, LiveJob};
use rdma_fabric::{Amo, Caps, Deps, Fabric, FabricError, Group, ProgramResult, Rank, Time, op};
use std::future::Future;

/// Asserts that `program` fails with `wrong`, that the timeline has these `lines`, and that the
/// schedule reproduces the run. Returns the schedule.
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
    let again = explorer().replay(&found.schedule, program);
    assert_eq!((again.what.as_ref(), &again.timeline), (Some(&found.what), &found.timeline));
    let lines = found.timeline.iter().map(|line| format!("  {line}\n"));
    assert_eq!(again.to_string(), lines.fold(format!("{}\n", found.what), |text, line| text + &line));
    found.schedule.clone()
}

/// Asserts that `runs` random runs fail with a message that contains `wrong`. Returns the timeline.
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
        // Each rank waits before it notifies the other.
        fabric.wait_until(&word, Deps::All, |bits| bits == 1).await?;
        fabric.put_word(&fabric.remote_word(region.at(other, 0))?, 1u64).await?;
        Ok(())
    });
    let found = report.expect_violation();
    assert!(found.what.starts_with("deadlock") && found.what.contains("rank 0") && found.what.contains("rank 1"));
    assert!(found.shortest && found.moves == 0);
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

#[test]
fn a_violation_is_replayed_and_sampled() {
    let program = |fabric| async move {
        two_puts(fabric, false).await.map(|seen| assert_ne!(seen, 12, "the second put overtook the first"))
    };
    finds(|| explorer(2), program, "overtook", &["put arrives at rank 1's region 0+8"]);
    samples(explorer(2), 1_000, program, "overtook");
}

/// Detaches a future when it is dropped, as guards do.
struct Guard(Fabric);

impl Drop for Guard {
    fn drop(&mut self) {
        let fabric = self.0.clone();
        self.0.detach(async move { fabric.flush_all().await.expect("no error") });
    }
}

/// B believes that a rank which has announced a value will send it.
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
    let again = explorer(2).replay(&schedule, believes);
    assert!(again.what.is_some_and(|what| what.contains("die, which can't")));
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

/// A counter that its owner resets by a store, which a concurrent addition undoes.
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
fn a_lost_store_is_found_replayed_and_sampled() {
    let (coherent, loses) = (|| coherence::explorer(2, true), || coherence::explorer(2, false));
    coherent().run(resets).expect_exhausted();
    finds(loses, resets, "the store is lost", &["reads 0x1 and will write"]);
    assert!(coherent().sample(1, 2_000, resets).failure.is_none());
    samples(loses(), 2_000, resets_by_put, "the put is lost");
}

/// Resets a counter by a put, which a concurrent addition undoes. It is a put and not a store
/// because in a random run a CPU executes as much as it can in one event, including stores.
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

/// A signals B to continue and then adds to B's memory. Whether or not B waits for the addition, a
/// barrier keeps the region alive for it.
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

/// A region that is dropped too early is a finding: it is reported, replayed, and found by random
/// runs. With a barrier at the end there is no finding.
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

/// A job can't be aborted during exhaustive exploration: the call is refused by name, and so the
/// rank fails.
#[test]
fn an_abort_is_refused_and_a_finding() {
    let aborts = |fabric: Fabric| async move {
        let Err(error) = fabric.abort("on purpose", 3);
        assert!(matches!(error, FabricError::Unsupported { .. }), "{error}");
        Err(error.into())
    };
    finds(|| Explorer::new(2), aborts, "does not support ending a whole job", &[]);
}
