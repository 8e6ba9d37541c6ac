//! Helpers: second CPUs of a rank.

use crate::start::{NETWORKS, add, at, fx100};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult};
use std::{sync::Arc, time::Duration};
use tofu2_virt::{Faults, HelperFailed, JobError, Stats};

const MICRO: u64 = 1_000_000;

/// Program and helper each put four words to a neighbour and compute for 5 us.
async fn side_by_side(fabric: Fabric) -> ProgramResult<[u64; 2]> {
    let region = Arc::new(fabric.alloc_symmetric(128).await?);
    let next = (fabric.rank().index() + 1) % fabric.ranks();
    let shared = Arc::clone(&region);
    fabric.helper("mover", move |fabric| async move {
        for offset in [64, 72, 80, 88] {
            let there = fabric.remote_word::<u64>(at(next, shared.key(), offset))?;
            drop(fabric.try_post(rdma_fabric::op::Put { to: &there.as_span(), from: [1u64], notice: Some(7) }));
        }
        fabric.compute(Duration::from_micros(5)).await;
        let now = fabric.now().as_picos();
        fabric.flush_all().await?;
        fabric.store(&shared.word::<u64>(&fabric, 0)?, now)?;
        Ok(())
    })?;
    for offset in [32, 40, 48, 56] {
        let there = fabric.remote_word::<u64>(at(next, region.key(), offset))?;
        drop(fabric.try_post(rdma_fabric::op::Put { to: &there.as_span(), from: [1u64], notice: None }));
    }
    fabric.compute(Duration::from_micros(5)).await;
    let mine = fabric.now().as_picos();
    for _ in 0..4 {
        let notice = fabric.next_notice(Deps::All).await?;
        assert_eq!(notice.from.index(), (fabric.rank().index() + fabric.ranks() - 1) % fabric.ranks());
    }
    let word = region.word::<u64>(&fabric, 0)?;
    let theirs = fabric.wait_until(&word, Deps::One(fabric.rank()), |it| it != 0).await?;
    fabric.sleep_until(rdma_fabric::Time::from_picos(100 * MICRO)).await;
    Ok([mine, theirs])
}

#[test]
fn each_has_a_cpu_of_its_own() {
    for network in NETWORKS {
        let job = || fx100(3).network(network);
        let run = job().run(&side_by_side).unwrap();
        // Posting takes 150 ns of the posting CPU, four times; the other CPU's posts add nothing.
        assert_eq!(run.outs, [[5 * MICRO + 600_000; 2]; 3]);
        let counted = job().count_ops(true).run(&side_by_side).unwrap();
        assert!(counted.ops_by_rank.unwrap().iter().all(|ops| (ops.puts, ops.notices) == (8, 4)));
        let same = |stats: Stats| (stats.trace_hash, stats.events, stats.polls);
        assert_eq!(same(job().run(&side_by_side).unwrap().stats), same(run.stats), "a run that differs");
    }
}

#[test]
fn a_helper_has_a_track() {
    let run = fx100(3).timeline(10_000, rdma_fabric::Time::ZERO).run(&side_by_side).unwrap();
    assert_eq!(run.stats.trace_hash, fx100(3).run(&side_by_side).unwrap().stats.trace_hash);
    let mut text = Vec::new();
    run.timeline.expect("a timeline").write(&mut text).expect("written");
    let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let events = document["traceEvents"].as_array().expect("an array");
    for rank in 0..3u64 {
        let track = |name: String| {
            let named = |event: &&serde_json::Value| event["name"] == "thread_name" && event["args"]["name"] == *name;
            let found = events.iter().find(named).unwrap_or_else(|| panic!("no track {name}"));
            assert_eq!(found["pid"], rank);
            found["tid"].clone()
        };
        let tracks = [track(format!("rank {rank}: CPU")), track(format!("rank {rank}: mover"))];
        assert_ne!(tracks[0], tracks[1]);
        for tid in tracks {
            let on = |event: &&serde_json::Value| event["pid"] == rank && event["tid"] == tid && event["ph"] == "X";
            let slices: Vec<_> = events.iter().filter(on).map(|event| event["name"].as_str().unwrap()).collect();
            assert_eq!(slices, ["post put", "post put", "post put", "post put", "compute"]);
            assert!(events.iter().filter(on).filter(|e| e["cat"] == "command").all(|e| e["args"]["from rank"] == rank));
        }
    }
}

#[test]
fn what_is_stored_is_seen_when_its_writer_has_got_so_far() {
    let ahead = async |fabric: Fabric| {
        let region = Arc::new(fabric.alloc(128)?);
        let shared = Arc::clone(&region);
        fabric.helper("sees", move |fabric| async move {
            let word = shared.word::<u64>(&fabric, 0)?;
            let stored = fabric.wait_until(&word, Deps::One(fabric.rank()), |it| it != 0).await?;
            assert_eq!(fabric.now().as_picos(), stored, "the program was that far when it stored");
            fabric.compute(Duration::from_micros(1)).await;
            drop(fabric.try_post(rdma_fabric::op::Nop));
            fabric.store(&shared.word::<u64>(&fabric, 64)?, fabric.now().as_picos())?;
            Ok(())
        })?;
        fabric.sleep(Duration::from_micros(1)).await;
        // Its CPU runs ahead of the clock.
        drop(fabric.try_post(rdma_fabric::op::Nop));
        drop(fabric.try_post(rdma_fabric::op::Nop));
        fabric.store(&region.word::<u64>(&fabric, 0)?, fabric.now().as_picos())?;
        let word = region.word::<u64>(&fabric, 64)?;
        let stored = fabric.wait_until(&word, Deps::One(fabric.rank()), |it| it != 0).await?;
        Ok((fabric.now().as_picos(), stored))
    };
    let (seen, stored) = fx100(1).run(&ahead).unwrap().outs[0];
    assert_eq!((seen, stored), (2 * MICRO + 450_000, seen));
}

async fn heedless(fabric: Fabric, panics: bool) -> ProgramResult<()> {
    let region = fabric.alloc(8)?;
    fabric.helper("ordering", move |fabric| async move {
        fabric.sleep(Duration::from_micros(3)).await;
        assert!(!panics, "on purpose");
        Err("on purpose".into())
    })?;
    let end = fabric.wait_until(&region.word::<u64>(&fabric, 0)?, Deps::One(fabric.rank()), |it| it == 1).await;
    assert_eq!((end, fabric.now().as_picos()), (Err(FabricError::HelperFailed { rank: fabric.rank() }), 3 * MICRO));
    Ok(())
}

#[test]
fn a_rank_is_lost_by_its_helper_whatever_its_program_returns() {
    let error = fx100(1).run(&async |fabric| heedless(fabric, false).await).unwrap_err();
    assert_eq!(error.to_string(), "rank 0 failed: its helper `ordering` failed: on purpose");
    let JobError::RankFailed { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.downcast_ref::<HelperFailed>().map(|failed| failed.name), Some("ordering"));
    let error = fx100(1).run(&async |fabric| heedless(fabric, true).await).unwrap_err();
    assert_eq!(error.to_string(), "rank 0 panicked: its helper `ordering` panicked: on purpose");
}

/// Program and helper wait for words that are never written.
async fn both_wait(fabric: Fabric) -> ProgramResult<()> {
    let region = Arc::new(fabric.alloc(128)?);
    let shared = Arc::clone(&region);
    fabric.helper("waits", move |fabric| async move {
        fabric.wait_until(&shared.word::<u64>(&fabric, 64)?, Deps::One(fabric.rank()), |it| it == 1).await?;
        Ok(())
    })?;
    fabric.wait_until(&region.word::<u64>(&fabric, 0)?, Deps::One(fabric.rank()), |it| it == 1).await?;
    Ok(())
}

#[test]
fn program_and_helper_that_wait_for_each_other_are_told() {
    match fx100(2).run(&both_wait) {
        Err(JobError::Deadlock { waiting: 2, stuck, .. }) => {
            assert_eq!(stuck.iter().map(|stuck| stuck.others).collect::<Vec<_>>(), [1, 1]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_stops_with_its_helpers() {
    let faults: Faults = "2 node-stop node=0\n".parse().unwrap();
    let error = fx100(2).faults(faults).run(&side_by_side).unwrap_err();
    assert!(error.to_string().starts_with("rank 0 failed: its node stopped"), "{error}");
}

#[test]
fn each_is_polled_for_itself() {
    async fn sleep(fabric: Fabric, micros: u64) -> ProgramResult<()> {
        fabric.sleep(Duration::from_micros(micros)).await;
        Ok(())
    }
    let plain = async |fabric| sleep(fabric, 2).await;
    let with = async |fabric: Fabric| {
        fabric.helper("sleeps", |fabric| sleep(fabric, 1))?;
        sleep(fabric, 2).await
    };
    let polls = [fx100(8).run(&plain).unwrap().stats.polls, fx100(8).run(&with).unwrap().stats.polls];
    assert_eq!(polls, [16, 32]);
}

/// An operation that the program has posted and its helper awaits.
#[test]
fn a_handle_may_be_moved_into_a_helper() {
    let moved = async |fabric: Fabric| {
        let region = Arc::new(fabric.alloc(16)?);
        let word = fabric.remote_word::<u64>(region.at(fabric.rank(), 0))?;
        let handle = fabric.post(add(&word, 3)).await?;
        let shared = Arc::clone(&region);
        fabric.helper("awaits", move |fabric| async move {
            let before = handle.await?;
            fabric.store(&shared.word::<u64>(&fabric, 8)?, before + 1)?;
            Ok(())
        })?;
        let done = region.word::<u64>(&fabric, 8)?;
        Ok(fabric.wait_until(&done, Deps::One(fabric.rank()), |done| done != 0).await?)
    };
    assert_eq!(fx100(1).run(&moved).unwrap().outs, [1]);
}
