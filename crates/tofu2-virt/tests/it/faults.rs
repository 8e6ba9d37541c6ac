//! Faults: each kind has its documented effect, a recorded list replays, and protocols survive the
//! faults that they must survive.

use crate::start::{NETWORKS, add, fx100, opened};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueError, QueueId, QueueMode, QueueSpec, Stadd, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, FabricError, Group, ProgramResult, Rank, Time};
use std::time::Duration;
use tofu2_virt::{Fault, FaultKind, Faults, JobError, Odds, Run};

/// The address at which every region is registered.
const AT: Stadd = Stadd::fixed(0);
const SOON: Time = Time::from_picos(50_000_000);

fn one(kind: FaultKind) -> Faults {
    Faults::new(vec![Fault { at: SOON, kind }])
}

fn struck<T>(run: &Run<T>) -> Vec<bool> {
    run.faults.as_ref().expect("a report").struck.clone()
}

/// After the fault's time, rank 0 sends `bytes` bytes to rank 1 through control queues, with a
/// notice and credit. Returns the times at which each rank saw them, in ns.
async fn sent(fabric: Fabric, bytes: u32) -> ProgramResult<[u64; 3]> {
    let mut world = Group::world(&fabric).await?;
    let (region, queue) = opened(&fabric, bytes as usize + 64, QueueSpec::new(QueueMode::Session).ahead(9)).await?;
    let ids = world.allgather(queue.id().to_bits()).await?;
    let to = QueueId::from_bits(ids[1]).ok_or("an id")?;
    let own = region.word::<u64>(&fabric, 0)?;
    let last = region.word::<u64>(&fabric, bytes as usize - 8)?;
    fabric.sleep_until(SOON + Duration::from_micros(5)).await;
    let start = fabric.now();
    let after = |now: Time| (now - start).as_nanos() as u64;
    if fabric.rank() == Rank::new(0) {
        let words = region.span::<u64>(&fabric, 0, bytes as usize / 8)?;
        fabric.write(&words, &vec![7; bytes as usize / 8])?;
        let put = Posting::new(Command::put(to, AT, AT, bytes)).tcq(1).remote(5).sps(1);
        queue.post(put, Deps::All).await?;
        let done = queue.next_completion(Deps::All).await?;
        done.status?;
        let at = after(fabric.now());
        fabric.sleep(Duration::from_micros(200)).await;
        return Ok([at, 0, 0]);
    }
    let first = async { fabric.wait_until(&own, Deps::All, |v| v == 7).await.map(|_| after(fabric.now())) };
    let whole = async { fabric.wait_until(&last, Deps::All, |v| v == 7).await.map(|_| after(fabric.now())) };
    let (first, whole) = rdma_fabric::join::join(first, whole).await;
    let notice = queue.next_notice(Deps::All).await;
    if matches!(&notice, Err(FabricError::Queue(error)) if matches!(**error, QueueError::MrqOverflow { .. })) {
        return Ok([first?, whole?, u64::MAX]);
    }
    // The tenth slot of credit releases the last of these.
    for _ in 0..10 {
        queue.post(Posting::new(Command::Nop).tcq(0), Deps::All).await?;
    }
    for _ in 0..10 {
        queue.next_completion(Deps::All).await?;
    }
    Ok([first?, whole?, after(fabric.now())])
}

/// Returns the times that both ranks saw without the fault and with it.
fn compared(kind: FaultKind) -> ([[u64; 3]; 2], [[u64; 3]; 2]) {
    let program = async move |fabric| sent(fabric, 1 << 16).await;
    let outs = |run: Run<[u64; 3]>| [run.outs[0], run.outs[1]];
    let well = outs(fx100(2).run(&program).expect("a run"));
    let run = fx100(2).faults(one(kind)).run(&program).expect("a run");
    assert_eq!(struck(&run), [true], "{kind:?}");
    (well, outs(run))
}

#[test]
fn a_partial_put_is_seen_in_halves() {
    let ([_, well], [_, ill]) = compared(FaultKind::PartialPut { rank: 1 });
    assert_eq!(well[0], well[1], "without it all bytes come at once");
    assert_eq!(well[1], ill[1], "the whole is there no later");
    assert!(ill[0] + 1000 < ill[1], "the first half is seen early: {ill:?}");
}

/// After the fault's time, rank 0 sends atomics to rank 1 and then a long put in strong order. Rank
/// 1 returns the number of atomics it saw when it saw the beginning of the put.
async fn ordered(fabric: Fabric, atomics: u64) -> ProgramResult<u64> {
    const BYTES: usize = 4096;
    let mut world = Group::world(&fabric).await?;
    let (region, queue) = opened(&fabric, BYTES + 8, QueueSpec::new(QueueMode::Normal)).await?;
    let ids = world.allgather(queue.id().to_bits()).await?;
    let to = QueueId::from_bits(ids[1]).ok_or("an id")?;
    let (first, count) = (region.word::<u64>(&fabric, 0)?, region.word::<u64>(&fabric, BYTES)?);
    fabric.sleep_until(SOON + Duration::from_micros(5)).await;
    if fabric.rank() == Rank::new(0) {
        fabric.store(&first, 7)?;
        let add = Command::Atomic { to, at: AT + BYTES as u64, width: Width::Eight, amo: Amo::Add(1) };
        for _ in 0..atomics {
            queue.post(add.into(), Deps::All).await?;
        }
        let put = Posting::new(Command::put(to, AT, AT, BYTES as u32)).strong_order().local(1);
        queue.post(put, Deps::All).await?;
        queue.next_notice(Deps::All).await?.status?;
        return Ok(atomics);
    }
    fabric.wait_until(&first, Deps::All, |v| v == 7).await?;
    let seen = fabric.load(&count)?;
    fabric.sleep(Duration::from_micros(200)).await;
    Ok(seen)
}

#[test]
fn a_partial_put_keeps_strong_order() {
    let run = fx100(2)
        .faults(one(FaultKind::PartialPut { rank: 1 }))
        .run(&async |fabric| ordered(fabric, 100).await)
        .expect("a run");
    assert_eq!(run.outs, [100, 100], "bytes were seen before atomics that come first");
    assert_eq!(struck(&run), [false]);
}

#[test]
fn a_slow_link_and_one_that_is_down_delay() {
    let lasts = Duration::from_micros(20);
    let ([_, well], [_, ill]) =
        compared(FaultKind::LinkSlow { from: 0, to: 1, extra: Duration::from_micros(3), lasts });
    assert_eq!(ill[1], well[1] + 3000);
    let ([_, well], [_, ill]) = compared(FaultKind::LinkDown { from: 0, to: 1, lasts });
    assert!(ill[1] >= well[1] + 14_000, "{ill:?} {well:?}");
}

#[test]
fn late_completions_credits_and_stalled_queues_delay_what_they_say() {
    let by = Duration::from_micros(4);
    let ([well, _], [ill, _]) = compared(FaultKind::LateCompletion { rank: 0, by });
    assert_eq!(ill[0], well[0] + 4000);
    let ([_, well], [_, ill]) = compared(FaultKind::LateCredit { rank: 1, by });
    assert_eq!(ill[..2], well[..2], "bytes and notice are in time");
    assert!(ill[2] > well[2] + 2000, "{ill:?} {well:?}");
    let lasts = Duration::from_micros(30);
    let ([_, well], [_, ill]) = compared(FaultKind::QueueStall { rank: 0, engine: 0, number: 0, lasts });
    assert!(ill[1] > well[1] + 20_000, "{ill:?} {well:?}");
}

#[test]
fn an_overflow_stops_the_queue() {
    let (_, [_, ill]) = compared(FaultKind::MrqOverflow { rank: 1 });
    assert_eq!(ill[2], u64::MAX);
}

/// Rank 0 waits for the others one by one and returns the outcomes of the waits.
async fn bereaved(fabric: Fabric) -> ProgramResult<String> {
    let region = fabric.alloc_symmetric(8).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    if fabric.rank() != Rank::new(0) {
        fabric.sleep_until(SOON + Duration::from_micros(100)).await;
        return Ok("stayed".into());
    }
    let mut ends = String::new();
    for peer in 1..fabric.ranks() as u32 {
        let end = fabric.wait_until(&word, Deps::One(Rank::new(peer)), |v| v == 1).await;
        ends.push(match end {
            Err(FabricError::PeerLost { rank }) if rank == Rank::new(peer) => 'L',
            Err(FabricError::PeersLeft) => 'l',
            other => return Err(format!("{other:?}").into()),
        });
    }
    Ok(ends)
}

#[test]
fn a_node_that_stops_takes_its_ranks_along() {
    let faults = one(FaultKind::NodeStop { node: 1 });
    let (run, failure) = fx100(8).ranks_per_node(2).faults(faults).run_through(&bereaved).expect("it ends");
    assert!(matches!(failure, Some(JobError::RankFailed { rank, .. }) if rank == Rank::new(2)), "{failure:?}");
    assert_eq!(run.outs[0].as_deref(), Some("lLLllll"));
    assert_eq!(run.outs.iter().filter(|out| out.is_none()).count(), 2);
    assert_eq!(struck(&run), [true]);
}

/// Rank 1 posts to rank 0 and fails, immediately or after the operations have arrived. Rank 0
/// returns the contents of its three words a long time later, and the notice.
async fn last_orders(fabric: Fabric, waits: bool) -> ProgramResult<Vec<u64>> {
    let mut world = Group::world(&fabric).await?;
    let (region, queue) = opened(&fabric, 32, QueueSpec::new(QueueMode::Normal)).await?;
    let ids = world.allgather(queue.id().to_bits()).await?;
    let theirs = |offset| fabric.remote_word::<u64>(region.at(Rank::new(0), offset));
    if world.me() == 1 {
        let to = QueueId::from_bits(ids[0]).ok_or("an id")?;
        let put = Command::PutInline { to, bytes: Inline::word(7), at: AT + 16 };
        queue.post(Posting::new(put), Deps::All).await?;
        fabric.put_notify(&theirs(0)?.as_span(), [7], 7).await?;
        drop(fabric.post(add(&theirs(8)?, 7)).await?);
        fabric.sleep(Duration::from_micros(if waits { 20 } else { 0 })).await;
        return Err("lost on purpose".into());
    }
    let word = region.word::<u64>(&fabric, 24)?;
    let end = fabric.wait_until(&word, Deps::One(Rank::new(1)), |v| v == 1).await;
    assert_eq!(end, Err(FabricError::PeerLost { rank: Rank::new(1) }));
    fabric.sleep(Duration::from_micros(50)).await;
    let mut words = vec![0u64; 3];
    fabric.read(&region.span(&fabric, 0, 3)?, &mut words)?;
    words.push(fabric.try_notice()?.map_or(0, |notice| notice.data));
    Ok(words)
}

#[test]
fn what_a_rank_had_on_the_way_is_lost_with_it() {
    for network in NETWORKS {
        for (waits, left) in [(false, 0), (true, 7)] {
            let (run, _) = fx100(2)
                .network(network)
                .run_through(&async |fabric| last_orders(fabric, waits).await)
                .expect("it ends");
            assert_eq!(run.outs[0], Some(vec![left; 4]), "{network:?}, waits: {waits}");
        }
    }
}

/// A ring of session queues runs `laps` laps by itself; every rank checks the values that arrived.
async fn laps(fabric: Fabric, laps: u64) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let (region, queue) = opened(&fabric, 8 * laps as usize, QueueSpec::new(QueueMode::Session)).await?;
    let ids = world.allgather(queue.id().to_bits()).await?;
    let (me, ranks) = (world.me(), world.len());
    let next = QueueId::from_bits(ids[(me + 1) % ranks]).ok_or("an id")?;
    for lap in 0..laps {
        let put = Posting::new(Command::PutInline { to: next, bytes: Inline::word(lap + 1), at: AT + 8 * lap });
        let ends = me + 1 == ranks && lap + 1 == laps;
        queue.post(if ends { put } else { put.sps(1) }, Deps::All).await?;
    }
    world.barrier().await?;
    if me == 0 {
        let starter = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
        let own = QueueId::from_bits(ids[0]).ok_or("an id")?;
        let start =
            Posting::new(Command::PutInline { to: own, bytes: Inline::new(&[]).ok_or("none")?, at: Stadd::fixed(0) });
        starter.post(start.sps(1).tcq(0), Deps::All).await?;
        starter.next_completion(Deps::All).await?.status?;
    }
    fabric.wait_until(&region.word::<u64>(&fabric, 8 * (laps as usize - 1))?, Deps::All, |v| v == laps).await?;
    let mut words = vec![0u64; laps as usize];
    fabric.read(&region.span(&fabric, 0, laps as usize)?, &mut words)?;
    for (lap, word) in words.iter().enumerate() {
        if *word != lap as u64 + 1 {
            return Err(format!("lap {lap} brought {word}").into());
        }
    }
    world.barrier().await?;
    Ok(words.iter().sum())
}

/// Randomised; every message names the seed.
#[test]
fn a_ring_lives_through_drawn_faults_and_a_record_replays_them() {
    let program = async move |fabric| laps(fabric, 60).await;
    let mut any = 0;
    for seed in 0..40 {
        let odds = Odds { faults: 30, within: Duration::from_micros(400), ..Odds::new(8, 2) };
        let faults = Faults::drawn(seed, &odds);
        let run = || fx100(8).ranks_per_node(2).faults(faults.clone()).run(&program);
        let first = run().unwrap_or_else(|error| panic!("seed {seed}: {error}\n{faults}"));
        any += struck(&first).iter().filter(|&&struck| struck).count();
        let record: Faults = first.faults.as_ref().expect("a report").faults.to_string().parse().expect("a record");
        let again = fx100(8).ranks_per_node(2).faults(record).run(&program).expect("the same run");
        assert_eq!(again.stats.trace_hash, first.stats.trace_hash, "seed {seed}");
    }
    assert!(any > 200, "only {any} faults met anything");
}

/// A mutant: the ring does not survive a lost advance of a session offset, so the previous test
/// would detect one.
#[test]
fn a_credit_that_never_comes_stops_the_ring() {
    let never = FaultKind::LateCredit { rank: 3, by: Duration::from_secs(3600) };
    let faults = Faults::new(vec![Fault { at: Time::ZERO, kind: never }]);
    let run = fx100(8).faults(faults).run(&async |fabric| laps(fabric, 60).await);
    let late = run.map(|run| run.stats.end);
    assert!(!matches!(late, Ok(end) if end < Time::from_picos(1_000_000_000_000_000)), "{late:?}");
}

/// An empty list of faults changes nothing.
#[test]
fn no_faults_change_nothing() -> ProgramResult<()> {
    let program = async move |fabric| laps(fabric, 10).await;
    let (plain, none) = (fx100(4).run(&program)?, fx100(4).faults(Faults::default()).run(&program)?);
    assert_eq!(plain.stats.trace_hash, none.stats.trace_hash);
    Ok(())
}
