//! The ends of waits and jobs after failures.

use crate::start::{NETWORKS, add, at, fx100, meet};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank};
use std::time::Duration;
use tofu2_virt::JobError;

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Return,
    Fail,
    Panic,
}

#[derive(Clone, Copy, Debug)]
enum On {
    All,
    One,
    Some,
}

/// The others end after 1 us times their rank, according to `others`. Rank 0's wait for them must
/// fail.
async fn left_alone(fabric: Fabric, others: End, on: On, notice: bool) -> ProgramResult<Option<FabricError>> {
    let home = fabric.alloc_symmetric(64).await?;
    let me = fabric.rank().number();
    if me > 0 {
        fabric.sleep(Duration::from_micros(me.into())).await;
        match others {
            End::Fail if me == 2 => return Err("as told".into()),
            End::Panic if me == 2 => panic!("as told"),
            _ => return Ok(None),
        }
    }
    let some = [Rank::new(2), Rank::new(1)];
    let deps = match on {
        On::All => Deps::All,
        On::One => Deps::One(Rank::new(2)),
        On::Some => Deps::Ranks(&some),
    };
    let error = if notice {
        fabric.next_notice(deps).await.unwrap_err()
    } else {
        let word = home.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&word, deps, |value| value == 1).await.unwrap_err()
    };
    // The wait ends immediately, not only when everything else has completed.
    let expected = if let (On::All, End::Return) = (on, others) { 4 } else { 2 };
    assert_eq!(fabric.now().as_picos(), expected * 1_000_000);
    Ok(Some(error))
}

#[test]
fn peers_that_end_end_the_waits_for_them() {
    for on in [On::All, On::One, On::Some] {
        for notice in [false, true] {
            let run = |others| fx100(5).run(&async |fabric| left_alone(fabric, others, on, notice).await);
            assert_eq!(run(End::Return).unwrap().outs[0], Some(FabricError::PeersLeft), "{on:?}");
            assert_eq!(run(End::Fail).unwrap_err().to_string(), "rank 2 failed: as told");
            assert_eq!(run(End::Panic).unwrap_err().to_string(), "rank 2 panicked: as told");
        }
    }
}

/// Rank 1 fails. The others check the result of each way of using it, and abort if it is not as
/// expected.
async fn lost_peer(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let me = fabric.rank().number();
    let lost = FabricError::PeerLost { rank: Rank::new(1) };
    if me == 1 {
        fabric.sleep(Duration::from_micros(1)).await;
        return Err("as told".into());
    }
    let word = fabric.remote_word::<u64>(at(1, home.key(), 0))?;
    let mine = home.word::<u64>(&fabric, 0)?;
    let waited = fabric.wait_until(&mine, Deps::One(Rank::new(1)), |v| v == 1).await;
    let posted = fabric.fetch_add(&word, 1).await;
    let put = fabric.put_word(&word, 1).await;
    let located = fabric.remote_word::<u64>(at(1, home.key(), 8)).map(drop);
    let flushed = fabric.flush(Rank::new(1)).await;
    let room = fabric.room(Some(Rank::new(1))).await;
    // A wait for another rank is not affected.
    if me == 0 {
        fabric.sleep(Duration::from_micros(5)).await;
        fabric.put_word(&fabric.remote_word::<u64>(at(2, home.key(), 0))?, 1).await?;
        fabric.flush(Rank::new(2)).await?;
    } else if fabric.rank().number() == 2 {
        let other = fabric.wait_until(&mine, Deps::One(Rank::new(0)), |v| v == 1).await;
        assert_eq!(other, Ok(1));
    }
    let all = [waited.map(drop), posted.map(drop), put, located, flushed, room];
    for (i, result) in all.into_iter().enumerate() {
        // A failed assertion would be hidden by rank 1's failure, which came first.
        if result != Err(lost.clone()) {
            eprintln!("use {i} of a lost rank gave {result:?}");
            std::process::abort();
        }
    }
    Ok(())
}

#[test]
fn every_use_of_a_lost_rank_says_so() {
    let error = fx100(3).run(&lost_peer).unwrap_err();
    assert!(matches!(error, JobError::RankFailed { rank, .. } if rank == Rank::new(1)), "{error}");
}

/// Operations in flight when their target region is deregistered.
async fn in_flight(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let (me, ranks) = (fabric.rank().index(), fabric.ranks());
    let data = if me == 1 {
        let data = fabric.alloc(64)?;
        let key = data.key().to_bits() + 1;
        fabric.put_word(&fabric.remote_word::<u64>(at(0, home.key(), 0))?, key).await?;
        // Operations that rank 0 posts now are in flight when the region is deregistered.
        fabric.sleep(Duration::from_nanos(710)).await;
        Some(data)
    } else {
        None
    };
    if me == 0 {
        let mine = home.word::<u64>(&fabric, 0)?;
        let key = fabric.wait_until(&mine, Deps::All, |key| key != 0).await?;
        let key = rdma_fabric::RegionKey::from_bits(key - 1);
        let stale = FabricError::StaleRegion { rank: Rank::new(1), region: key };
        let word = fabric.remote_word::<u64>(at(1, key, 8))?;
        let span = fabric.remote_span::<u64>(at(1, key, 16), 4)?;
        let amo = fabric.post(add(&word, 1)).await?;
        let get = fabric.post(rdma_fabric::op::Get { from: &span, to: [0u64; 4] }).await?;
        fabric.put(&span, [1u64; 4]).await?;
        assert_eq!(amo.await, Err(stale.clone()));
        assert_eq!(get.await, Err(stale.clone()));
        assert_eq!(fabric.flush(Rank::new(1)).await, Err(stale.clone()));
        assert_eq!(fabric.flush(Rank::new(1)).await, Ok(()), "told once");
        assert_eq!(fabric.put(&span, [1u64; 4]).await, Err(stale), "later posts fail at once");
    }
    drop(data);
    if ranks > 2 {
        meet(&fabric, &home, 32).await?;
    }
    Ok(())
}

#[test]
fn deregistration_in_flight_is_reported() {
    for network in NETWORKS {
        fx100(3).network(network).run(&in_flight).unwrap();
    }
}

/// Ranks 1 and 2 wait for each other.
async fn embrace(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    fabric.compute(Duration::from_nanos(3)).await;
    if fabric.rank().number() > 0 {
        let word = home.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&word, Deps::All, |value| value == 1).await?;
    }
    Ok(())
}

#[test]
fn deadlock_is_reported_with_time_and_first_rank() {
    match fx100(3).run(&embrace) {
        Err(error @ JobError::Deadlock { at, waiting, first, .. }) => {
            assert_eq!((at.as_picos(), waiting, first), (3_000, 2, Rank::new(1)));
            let told = error.to_string();
            for rank in [1, 2] {
                assert!(told.contains(&format!("rank {rank} waits for the word at byte 0 of its region ")), "{told}");
            }
        }
        other => panic!("{other:?}"),
    }
}

/// A peer's operation that is in flight when the peer leaves still ends the wait.
async fn last_words(fabric: Fabric) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(64).await?;
    let word = home.word::<u64>(&fabric, 0)?;
    if fabric.rank().number() == 1 {
        let theirs = fabric.remote_word::<u64>(at(0, home.key(), 0))?;
        drop(fabric.post(add(&theirs, 7)).await?);
        return Ok(0);
    }
    let value = fabric.wait_until(&word, Deps::One(Rank::new(1)), |value| value != 0).await?;
    let gone = fabric.wait_until(&word, Deps::All, |value| value == 8).await;
    assert_eq!(gone, Err(FabricError::PeersLeft));
    // The rank's own atomic may end its wait as well.
    drop(fabric.post(add(&word.as_remote(), 1)).await?);
    Ok(value + fabric.wait_until(&word, Deps::All, |value| value == 8).await?)
}

#[test]
fn what_is_under_way_counts() {
    assert_eq!(fx100(2).run(&last_words).unwrap().outs[0], 15);
}

async fn sizes_differ(fabric: Fabric) -> ProgramResult<()> {
    fabric.sleep(Duration::from_nanos((9 - fabric.rank().number()).into())).await;
    fabric.alloc_symmetric(if fabric.rank().number() == 1 { 64 } else { 128 }).await?;
    Ok(())
}

#[test]
fn settings_and_sizes_are_checked() {
    let error = fx100(3).run(&sizes_differ).unwrap_err();
    assert_eq!(error.to_string(), "rank 1 failed: rank 1 called alloc_symmetric with 64, rank 2 with 128");
    for job in [
        fx100(0),
        fx100(64).ranks_per_node(49),
        fx100(64).ranks_per_node(0),
        fx100(64).receive_tnis(5),
        fx100(64).receive_tnis(0),
        fx100(64).torus(tofu2_virt::Torus::line(63)),
    ] {
        let error = job.run(&embrace).unwrap_err();
        assert!(matches!(error, JobError::Fabric(FabricError::Setting(_))), "{error}");
    }
}

async fn greedy(fabric: Fabric) -> ProgramResult<()> {
    let half = fabric.alloc(20 << 30)?;
    match fabric.alloc(20 << 30) {
        Err(FabricError::OutOfMemory(none)) => assert_eq!(none.available, 12 << 30),
        other => panic!("{other:?}"),
    }
    drop(half);
    fabric.alloc(20 << 30)?;
    assert!(fabric.alloc(usize::MAX).is_err());
    assert!(fabric.alloc_symmetric(usize::MAX).await.is_err());
    Ok(())
}

#[test]
fn memory_is_limited_and_lazy() {
    fx100(2).run(&greedy).unwrap();
}

async fn too_late(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let word = fabric.remote_word::<u64>(at(1 - fabric.rank().index(), home.key(), 0))?;
    fabric.sleep_until(rdma_fabric::Time::from_picos(u64::MAX - 5)).await;
    fabric.put(&word.as_span(), [1]).await?;
    fabric.fetch_add(&word, 1).await?;
    fabric.compute(Duration::MAX).await;
    Ok(())
}

#[test]
fn at_the_end_of_time_jobs_end() {
    for network in NETWORKS {
        let error = fx100(2).network(network).run(&too_late).unwrap_err();
        assert!(matches!(error, JobError::Deadlock { waiting: 2, .. }), "{error}");
    }
}

/// Rank 0 computes past the end of time; the others wait for it.
async fn beyond(fabric: Fabric, long: Duration) -> ProgramResult<Option<FabricError>> {
    let home = fabric.alloc_symmetric(8).await?;
    fabric.sleep(Duration::from_micros(5)).await;
    if fabric.rank() == Rank::new(0) {
        fabric.compute(long).await;
    }
    let word = home.word::<u64>(&fabric, 0)?;
    Ok(fabric.wait_until(&word, Deps::One(Rank::new(0)), |value| value == 1).await.err())
}

#[test]
fn computing_beyond_the_end_of_time_is_an_error_of_who_does_it() {
    for long in [Duration::MAX, Duration::from_secs(214 * 24 * 3600)] {
        let (run, failure) = fx100(3).run_through(&async |fabric| beyond(fabric, long).await).unwrap();
        let lost = Some(FabricError::PeerLost { rank: Rank::new(0) });
        assert_eq!(run.outs, [None, Some(lost.clone()), Some(lost)]);
        let Some(JobError::RankFailed { rank, error }) = failure else { panic!("{failure:?}") };
        let found = error.downcast_ref::<tofu2_virt::EndOfTime>().expect("the end of time");
        assert_eq!((rank, found.at.as_picos()), (Rank::new(0), 5_000_000));
        assert!(error.to_string().starts_with("virtual time ends at 18446744.07"), "{error}");
    }
}

#[test]
fn faults_of_what_a_job_has_not_are_refused() {
    for (line, said) in [
        ("1 node-stop node=3", "line 2: `1.000 node-stop node=3` is not a fault: there is no node 3, only 0 to 2"),
        ("1 partial-put rank=6", "line 2: `1.000 partial-put rank=6` is not a fault: there is no rank 6, only 0 to 5"),
    ] {
        let faults = format!("# of six ranks on three nodes\n{line}\n").parse().expect("faults");
        let job = fx100(6).ranks_per_node(2).faults(faults);
        let error = job.run(&async |fabric| beyond(fabric, Duration::ZERO).await).unwrap_err();
        assert!(matches!(&error, JobError::Fault(bad) if bad.number == Some(2)), "{error:?}");
        assert_eq!(error.to_string(), said);
    }
}
