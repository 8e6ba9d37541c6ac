//! Deadlocked jobs over shared memory report the wait of each rank; other jobs are not affected.

use crate::other_executor;
use rdma_fabric::{Deps, Fabric, FabricError, Program, ProgramResult, Rank, join::join, op::Put};
use std::{
    future::{Future, poll_fn},
    sync::{Arc, Mutex},
    task::Poll,
    thread,
    time::{Duration, Instant},
};
use tofu2_shm::{Awaited, JobError, Stuck, Threads, Whom};

/// A bound short enough for a test.
const BOUND: Duration = Duration::from_millis(150);
/// Several times the bound: long enough for a false report.
const LONG: Duration = Duration::from_millis(700);

fn threads(ranks: usize) -> Threads {
    checks::jobs::threads(ranks).segment_bytes(1 << 20).stuck_after(Some(BOUND))
}

/// Returns the waits of a deadlocked job's ranks.
fn stuck(ended: Result<(), JobError>) -> Vec<Stuck> {
    match ended {
        Err(JobError::Deadlock { waiting, first, stuck, .. }) => {
            assert_eq!((waiting, first), (stuck.len(), stuck[0].rank));
            stuck
        }
        other => panic!("{other:?}"),
    }
}

fn told(stuck: &[Stuck]) -> Vec<String> {
    stuck.iter().map(ToString::to_string).collect()
}

/// Each rank waits for a write that the other never makes, as after a lost wake-up.
async fn embrace(fabric: Fabric) -> ProgramResult<()> {
    let flags = fabric.alloc_symmetric(64).await?;
    let other = Rank::new(1 - fabric.rank().number());
    let at = 8 * (2 + fabric.rank().index());
    fabric.wait_until(&flags.word::<u64>(&fabric, at)?, Deps::One(other), |flag| flag == 1).await?;
    Ok(())
}

/// Waits in every way.
async fn all_kinds(fabric: Fabric) -> ProgramResult<()> {
    let words = fabric.alloc_symmetric(64).await?;
    let word = |at| words.word::<u64>(&fabric, at);
    match fabric.rank().number() {
        0 => drop(fabric.next_notice(Deps::All).await?),
        1 => drop(fabric.alloc_symmetric(8).await?),
        2 => {
            let some = [Rank::new(0), Rank::new(1)];
            let (a, b) = (word(8)?, word(40)?);
            let (first, second) = join(
                fabric.wait_until(&a, Deps::Ranks(&some), |v| v == 1),
                fabric.wait_until(&b, Deps::All, |v| v == 1),
            )
            .await;
            first.and(second)?;
        }
        _ => {
            // Rank 2 takes none of these notices.
            let to = fabric.remote_span::<u8>(words.at(Rank::new(2), 0), 0)?;
            loop {
                let put = Put { to: &to, from: Vec::new(), notice: Some(1) };
                drop(fabric.post(put).await?);
            }
        }
    }
    Ok(())
}

#[test]
fn threads_that_wait_for_each_other_are_told() {
    let begun = Instant::now();
    let error = threads(2).run(&embrace).map(drop);
    assert!(begun.elapsed() < Duration::from_secs(8), "told too late: {:?}", begun.elapsed());
    let text = error.as_ref().expect_err("a deadlock").to_string();
    assert!(text.contains("rank 1 waits for rank 0 (the word at byte 24 of its region 0.1)"), "{text}");
    for (rank, stuck) in stuck(error).into_iter().enumerate() {
        let Awaited::Word(word) = stuck.awaited else { panic!("{stuck:?}") };
        assert_eq!((stuck.rank.index(), word.rank, word.offset), (rank, stuck.rank, 8 * (2 + rank as u64)));
        assert_eq!(stuck.whom, Some(Whom::One(Rank::new(1 - rank as u32))));
    }
}

#[test]
fn each_kind_of_wait_is_named() {
    let stuck = stuck(threads(4).run(&all_kinds).map(drop));
    let want = [
        "rank 0 waits for any rank (a notice)",
        "rank 1 waits for any rank (the others to allocate symmetric memory)",
        "rank 2 waits for any of 2 ranks (the word at byte 8 of its region 0.1); and for 1 more",
        "rank 3 waits for any rank (room in the notice queue of rank 2)",
    ];
    assert_eq!(told(&stuck), want);
}

/// Ranks receive a deadlock like any other error, and may still succeed.
async fn lives_with_it(fabric: Fabric) -> ProgramResult<bool> {
    let memory = fabric.alloc(8)?;
    let word = memory.word::<u64>(&fabric, 0)?;
    let first = fabric.wait_until(&word, Deps::All, |v| v == 1).await;
    let again = fabric.next_notice(Deps::All).await.map(drop);
    assert_eq!(first.map(drop), Err(FabricError::Deadlock { waiting: 3 }));
    assert_eq!(again, Err(FabricError::Deadlock { waiting: 3 }));
    Ok(true)
}

#[test]
fn a_rank_may_go_on_and_the_job_is_stuck_all_the_same() {
    assert_eq!(stuck(threads(3).run(&lives_with_it).map(drop)).len(), 3);
}

/// An earlier failure of a rank is the job's error.
async fn fails_beside(fabric: Fabric) -> ProgramResult<()> {
    let memory = fabric.alloc(8)?;
    let word = memory.word::<u64>(&fabric, 0)?;
    if fabric.rank().number() == 2 {
        return Err("a reason of its own".into());
    }
    let other = Rank::new(1 - fabric.rank().number());
    fabric.wait_until(&word, Deps::One(other), |v| v == 1).await?;
    Ok(())
}

#[test]
fn a_failure_before_is_the_jobs_error() {
    let error = threads(3).run(&fails_beside).unwrap_err();
    assert!(error.to_string().contains("a reason of its own"), "{error}");
}

/// The ways in which rank 0 keeps the others waiting.
#[derive(Clone, Copy, Debug)]
enum Busy {
    /// It sleeps through the fabric.
    Sleeps,
    /// It is in a wait with a deadline.
    HasADeadline,
    /// It computes without any call.
    Computes,
    /// It is in a system call, which the library cannot observe.
    Blocks,
    /// It is in a future that another thread wakes.
    IsWokenByAThread,
}

struct KeepsWaiting(Busy);

impl Program for KeepsWaiting {
    type Out = ();

    async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
        let words = fabric.alloc_symmetric(16).await?;
        let mine = words.word::<u64>(&fabric, 0)?;
        if fabric.rank().number() > 0 {
            fabric.wait_until(&mine, Deps::One(Rank::new(0)), |v| v == 1).await?;
            return Ok(());
        }
        match self.0 {
            Busy::Sleeps => fabric.sleep(LONG).await,
            Busy::HasADeadline => {
                let never = fabric.wait_until(&mine, Deps::All, |v| v == 1);
                assert!(fabric.before(fabric.now() + LONG, never).await.is_none());
            }
            Busy::Computes => {
                let begun = Instant::now();
                while begun.elapsed() < LONG {}
            }
            Busy::Blocks => thread::sleep(LONG),
            Busy::IsWokenByAThread => {
                let never = fabric.wait_until(&mine, Deps::All, |v| v == 1);
                assert!(matches!(
                    rdma_fabric::join::race(never, woken_by_a_thread()).await,
                    rdma_fabric::join::Either::Second(())
                ));
            }
        }
        for rank in 1..fabric.ranks() as u32 {
            fabric.put_word(&fabric.remote_word::<u64>(words.at(Rank::new(rank), 0))?, 1).await?;
        }
        Ok(())
    }
}

/// Returns a future that another thread completes after a while.
fn woken_by_a_thread() -> impl Future<Output = ()> {
    let waker = Arc::new(Mutex::new((false, None)));
    let mut started = false;
    poll_fn(move |cx| {
        let mut state = waker.lock().expect("nobody panics");
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        drop(state);
        if !std::mem::replace(&mut started, true) {
            let waker = waker.clone();
            thread::spawn(move || {
                thread::sleep(LONG);
                let mut state = waker.lock().expect("nobody panics");
                state.0 = true;
                state.1.take().into_iter().for_each(std::task::Waker::wake);
            });
        }
        Poll::Pending
    })
}

#[test]
fn who_sleeps_computes_or_is_woken_otherwise_is_not_stuck() {
    for busy in [Busy::Sleeps, Busy::HasADeadline, Busy::Computes, Busy::Blocks, Busy::IsWokenByAThread] {
        let ended = threads(3).stuck_after(Some(BOUND / 5)).run(&KeepsWaiting(busy));
        assert!(ended.is_ok(), "{busy:?}: {ended:?}");
    }
}

#[test]
fn the_bound_can_be_none() {
    struct Late;
    impl Program for Late {
        type Out = ();
        async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
            // Only this wait's own predicate ends it, which is not allowed. Without a bound this
            // goes unnoticed.
            let memory = fabric.alloc(8)?;
            let word = memory.word::<u64>(&fabric, 0)?;
            let begun = Instant::now();
            fabric.wait_until(&word, Deps::One(fabric.rank()), |_| begun.elapsed() > LONG).await?;
            Ok(())
        }
    }
    threads(2).stuck_after(None).run(&Late).expect("nobody looks");
    assert_eq!(stuck(threads(2).stuck_after(Some(BOUND / 5)).run(&Late).map(drop)).len(), 2);
}

#[test]
fn ranks_with_threads_or_executors_of_their_own_are_left_alone() {
    for foreign in [false, true] {
        let ended = threads(2).run_with(|endpoint: Fabric| {
            // The rank's second thread writes the word that its first one waits for.
            let region = endpoint.alloc(8)?;
            let word = region.word::<u64>(&endpoint, 0)?;
            let remote = endpoint.remote_word::<u64>(region.at(endpoint.rank(), 0))?;
            let second = endpoint.clone();
            let writer = thread::spawn(move || {
                thread::sleep(LONG);
                other_executor(second.put_word(&remote, 1))
            });
            let wait = endpoint.wait_until(&word, Deps::One(endpoint.rank()), |v| v == 1);
            if foreign { other_executor(wait) } else { tofu2_shm::block_on(wait) }?;
            Ok(writer.join().expect("no panic")?)
        });
        assert!(ended.is_ok(), "{foreign}: {ended:?}");
    }
}
