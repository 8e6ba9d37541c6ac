//! Thread ranks over shared memory: collectives, waiting, and every way an operation or a rank can fail.

use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, Group, LocalWord, ProgramResult, Rank, Refused, RegionKey, RemoteAddr,
    error::OutOfMemory, join::join, op,
};
use std::time::{Duration, Instant};
use tofu2_sim::{
    JobError,
    shm::{Threads, block_on},
};

const SMALL: usize = if cfg!(miri) { 1 << 16 } else { 1 << 20 };
/// Miri is slow: less of everything.
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 20 };
/// Far more than anything here takes on a busy machine.
const HANG: Duration = Duration::from_secs(20);

fn threads(ranks: usize) -> Threads {
    Threads::new(ranks).segment_bytes(SMALL)
}

fn word(rank: u32, region: RegionKey, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank::new(rank), region, offset }
}

fn text(error: JobError) -> String {
    error.to_string()
}

/// All collectives, several times, with results that depend on everybody.
async fn collectives(fabric: Fabric, rounds: u64) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len() as u64, world.me() as u64);
    let counter = fabric.alloc_symmetric(8).await?;
    let mut sum = 0;
    for round in 0..rounds {
        for target in 0..n {
            let cell = fabric.remote_word::<u64>(word(target as u32, counter.key(), 0))?;
            fabric.fetch_add(&cell, me + round).await?;
        }
        world.barrier().await?;
        let own = fabric.load(&counter.word::<u64>(&fabric, 0)?)?;
        let all = world.allgather((me + 1) * (round + 1)).await?;
        assert_eq!(all, (0..n).map(|r| (r + 1) * (round + 1)).collect::<Vec<_>>());
        let root = (round % n) as usize;
        assert_eq!(world.broadcast(root, all[me as usize]).await?, (root as u64 + 1) * (round + 1));
        sum = own;
        world.barrier().await?;
    }
    let mut half = world.split(Some(me % 2), n - me).await?.ok_or("not in a group")?;
    let members = half.allgather(me).await?;
    assert_eq!(members, (0..n).rev().filter(|r| r % 2 == me % 2).collect::<Vec<_>>());
    assert!(world.split(None, 0).await?.is_none());
    Ok(sum)
}

#[test]
fn collectives_for_small_groups() {
    for n in 1..=if cfg!(miri) { 3 } else { 5 } {
        let out = threads(n as usize).run(&async |fabric| collectives(fabric, ROUNDS).await).unwrap();
        let each: u64 = (0..ROUNDS).map(|round| (0..n).map(|r| r + round).sum::<u64>()).sum();
        assert_eq!(out, vec![each; n as usize]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn many_ranks_on_few_cpus_make_progress() {
    let start = Instant::now();
    threads(16).run(&async |fabric| collectives(fabric, 10).await).unwrap();
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
}

/// A waiter that has been parked for long is woken by a put, by an atomic and by a notice.
async fn wakes(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let region = fabric.alloc_symmetric(64).await?;
    let (cell, addr) = (region.word::<u64>(&fabric, 0)?, word(1, region.key(), 0));
    let mut late = Vec::new();
    if fabric.rank() == Rank::new(0) {
        let there = fabric.remote_word::<u64>(addr)?;
        for step in 1..=3u64 {
            std::thread::sleep(Duration::from_millis(40));
            let told = fabric.now().as_picos();
            let time = fabric.remote_span::<u64>(word(1, region.key(), 8), 1)?;
            fabric.put(&time, [told]).await?;
            match step {
                1 => fabric.put_word(&there, 1).await?,
                2 => drop(fabric.fetch_add(&there, 1).await?),
                _ => drop(fabric.put_notify(&time, [told], 77).await?),
            }
            fabric.wait_until(&cell, Deps::One(Rank::new(1)), |seen| seen >= step).await?;
        }
    } else {
        let back = fabric.remote_word::<u64>(word(0, region.key(), 0))?;
        let time = region.word::<u64>(&fabric, 8)?;
        for step in 1..=3u64 {
            if step < 3 {
                fabric.wait_until(&cell, Deps::One(Rank::new(0)), |seen| seen == step).await?;
            } else {
                let notice = fabric.next_notice(Deps::All).await?;
                assert_eq!((notice.from, notice.data, notice.end), (Rank::new(0), 77, 16));
            }
            late.push((fabric.now().as_picos() - fabric.load(&time)?) / 1000);
            fabric.put_word(&back, step).await?;
        }
    }
    Ok(late)
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn parked_waiters_are_woken() {
    let late = threads(2).run(&wakes).unwrap().swap_remove(1);
    println!("woken after {late:?} ns");
    // A lost wake-up would cost 10 ms every time.
    assert!(late.iter().min().is_some_and(|&ns| ns < 5_000_000), "{late:?}");
}

/// One rank goes wrong while the others wait for it.
async fn one_fails(fabric: Fabric, panics: bool) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(2) {
        std::thread::sleep(Duration::from_millis(30));
        assert!(!panics, "on purpose");
        return Err("on purpose".into());
    }
    let start = Instant::now();
    let mine = region.word::<u64>(&fabric, 0)?;
    let error = fabric.wait_until(&mine, Deps::All, |seen| seen != 0).await.unwrap_err();
    assert_eq!(error, FabricError::PeerLost { rank: Rank::new(2) });
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    let gone = RemoteAddr { rank: Rank::new(2), region: region.key(), offset: 0 };
    assert_eq!(fabric.remote_word::<u64>(gone).unwrap_err(), error);
    assert_eq!(fabric.flush(Rank::new(2)).await, Err(error.clone()));
    assert_eq!(fabric.room(Some(Rank::new(2))).await, Err(error.clone()));
    assert_eq!(fabric.alloc_symmetric(8).await.map(drop), Err(error.clone()));
    assert_eq!(fabric.next_notice(Deps::One(Rank::new(2))).await, Err(error.clone()));
    // Others still work with each other.
    let peer = fabric.remote_word::<u64>(word(1 - fabric.rank().number(), region.key(), 0))?;
    fabric.put_word(&peer, 1).await?;
    let other = [Rank::new(1 - fabric.rank().number())];
    fabric.wait_until(&mine, Deps::Ranks(&other), |seen| seen == 1).await?;
    Err(error.into())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_lost_rank_ends_the_waits_that_depend_on_it() {
    let error = text(threads(3).run(&async |fabric| one_fails(fabric, false).await).unwrap_err());
    assert_eq!(error, "rank 2 failed: on purpose");
    let error = text(threads(3).run(&async |fabric| one_fails(fabric, true).await).unwrap_err());
    assert_eq!(error, "rank 2 panicked: on purpose");
}

/// Operations through pointers resolved before their target was lost.
async fn stale_pointers(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(64).await?;
    if fabric.rank() == Rank::new(1) {
        let go = region.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&go, Deps::All, |seen| seen == 1).await?;
        return Err("on purpose".into());
    }
    let there = fabric.remote_word::<u64>(word(1, region.key(), 0))?;
    fabric.put_word(&there, 1).await?;
    let mine = region.word::<u64>(&fabric, 0)?;
    fabric.wait_until(&mine, Deps::All, |_| false).await.unwrap_err();
    let lost = FabricError::PeerLost { rank: Rank::new(1) };
    assert_eq!(fabric.put_word(&there, 1).await, Err(lost.clone()));
    assert_eq!(fabric.get_word(&there).await, Err(lost.clone()));
    assert_eq!(fabric.fetch_add(&there, 1).await, Err(lost.clone()));
    assert_eq!(fabric.put(&there.as_span(), vec![1]).await, Err(lost.clone()));
    assert_eq!(fabric.get(&there.as_span(), vec![1]).await, Err(lost.clone()));
    assert_eq!(fabric.put_notify(&there.as_span(), [1], 1).await, Err(lost));
    Ok(())
}

#[test]
fn operations_on_a_lost_rank_are_refused() {
    assert_eq!(text(threads(2).run(&stale_pointers).unwrap_err()), "rank 1 failed: on purpose");
}

/// Everybody leaves but rank 0, which waits for something that never comes.
async fn all_leave(fabric: Fabric) -> ProgramResult<u64> {
    let region = fabric.alloc_symmetric(8).await?;
    let mine = region.word::<u64>(&fabric, 0)?;
    if fabric.rank() != Rank::new(0) {
        let there = fabric.remote_word::<u64>(word(0, region.key(), 0))?;
        fabric.fetch_add(&there, 1).await?;
        return Ok(0);
    }
    // What they wrote before leaving counts.
    let n = fabric.ranks() as u64;
    fabric.wait_until(&mine, Deps::All, |seen| seen == n - 1).await?;
    let start = Instant::now();
    assert_eq!(fabric.wait_until(&mine, Deps::All, |seen| seen == n).await, Err(FabricError::PeersLeft));
    assert_eq!(fabric.next_notice(Deps::One(Rank::new(1))).await, Err(FabricError::PeersLeft));
    assert_eq!(fabric.alloc_symmetric(8).await.map(drop), Err(FabricError::PeersLeft));
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    // A joined task of this rank may still end a wait.
    let here = mine.as_remote();
    let (waited, _) = join(fabric.wait_until(&mine, Deps::All, |seen| seen == n), fabric.fetch_add(&here, 1)).await;
    Ok(waited?)
}

#[test]
fn waits_for_ranks_that_left_end() {
    for n in [2, 4] {
        assert_eq!(threads(n).run(&all_leave).unwrap()[0], n as u64);
    }
}

/// Each error of the contract that one rank can cause.
async fn errors(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc(100)?;
    let (me, key) = (fabric.rank(), region.key());
    let at = |offset| RemoteAddr { rank: me, region: key, offset };
    let nobody = FabricError::NoSuchRank { rank: Rank::new(9), ranks: 1 };
    assert_eq!(fabric.remote_word::<u64>(word(9, key, 0)).unwrap_err(), nobody);
    assert_eq!(fabric.node(Rank::new(9)).unwrap_err(), nobody);
    assert_eq!(fabric.flush(Rank::new(9)).await.unwrap_err(), nobody);
    let wait = fabric.wait_until(&region.word::<u64>(&fabric, 0)?, Deps::One(Rank::new(9)), |_| false).await;
    assert_eq!(wait, Err(nobody));
    let misaligned = FabricError::misaligned(at(4), 8);
    assert_eq!(fabric.remote_word::<u64>(at(4)).unwrap_err(), misaligned);
    let outside = FabricError::out_of_bounds(at(96), 8, 100);
    assert_eq!(fabric.remote_word::<u64>(at(96)).unwrap_err(), outside);
    assert!(fabric.remote_word::<u32>(at(96)).is_ok());
    let unknown = RegionKey { index: key.index + 1, generation: 1 };
    assert_eq!(
        fabric.remote_word::<u64>(word(0, unknown, 0)).unwrap_err(),
        FabricError::NoSuchRegion { rank: me, region: unknown }
    );
    let span = fabric.remote_span::<u32>(at(0), 4)?;
    let mismatch = FabricError::length_mismatch(3, 4);
    assert_eq!(fabric.put(&span, [0u32; 3]).await.unwrap_err(), mismatch);
    assert_eq!(fabric.read(&region.span::<u32>(&fabric, 0, 4)?, &mut [0; 3]).unwrap_err(), mismatch);
    let out_of_memory = fabric.alloc(SMALL + 1).map(drop).unwrap_err();
    let none = OutOfMemory { rank: me, requested: SMALL + 1, available: SMALL - 128, segment: SMALL };
    assert_eq!(out_of_memory, none.into());
    let own = region.span::<u32>(&fabric, 0, 4)?;
    drop(region);
    let stale = FabricError::StaleRegion { rank: me, region: key };
    assert_eq!(fabric.put(&span, [0u32; 4]).await.unwrap_err(), stale);
    assert_eq!(fabric.get(&span, vec![0u32; 4]).await.unwrap_err(), stale);
    assert_eq!(fabric.read(&own, &mut [0; 4]).unwrap_err(), stale);
    assert_eq!(fabric.remote_word::<u64>(at(0)).unwrap_err(), stale);
    match fabric.try_post(op::Put { to: &span, from: vec![5u32; 4], notice: None }) {
        Err(Refused::Failed(error, op)) => assert_eq!((error, op.from), (stale, vec![5; 4])),
        _ => panic!("posted to a stale region"),
    }
    let all: Vec<_> = (0..).map_while(|_| fabric.alloc(0).ok()).collect();
    let full = fabric.alloc(0).map(drop).unwrap_err();
    assert_eq!(full, FabricError::TooManyRegions { rank: me, limit: all.len() });
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn misuse_is_a_typed_error() {
    threads(1).run(&errors).unwrap();
}

#[test]
fn impossible_jobs_are_refused() {
    for job in [Threads::new(0), threads(1).segment_bytes(0), threads(1).ranks_per_node(0)] {
        assert!(matches!(job.run(&errors), Err(JobError::Fabric(FabricError::Setting(_)))), "{job:?}");
    }
    let huge = Threads::new(1).segment_bytes(usize::MAX);
    assert!(matches!(huge.run(&errors), Err(JobError::Fabric(FabricError::Setting(_)))));
}

/// Notices until the target's queue is full, then more.
async fn notices(fabric: Fabric, count: u64) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8 * 1024).await?;
    let me = fabric.rank().number();
    if me == 0 {
        let mut next = vec![0; fabric.ranks()];
        let data = region.span::<u64>(&fabric, 0, 1024)?;
        let senders = fabric.ranks() as u64 - 1;
        std::thread::sleep(Duration::from_millis(20));
        for _ in 0..count * senders {
            let notice = fabric.next_notice(Deps::All).await?;
            let from = notice.from.index();
            assert_eq!(notice.data, next[from]);
            assert_eq!((notice.region, notice.end), (region.key(), 8 * (from as u64 + 1)));
            let mut bytes = vec![0; 1024];
            fabric.read(&data, &mut bytes)?;
            assert!(bytes[from] >= notice.data, "the notice overtook its put");
            next[from] += 1;
        }
        assert_eq!(fabric.try_notice()?, None);
    } else {
        let place = fabric.remote_span::<u64>(word(0, region.key(), 8 * u64::from(me)), 1)?;
        let mut refused = 0;
        for data in 0..count {
            let notice = Some(data);
            match fabric.try_post(op::Put { to: &place, from: [data], notice }) {
                Ok(handle) => drop(handle.await?),
                Err(Refused::Full(op)) => {
                    refused += 1;
                    fabric.post(op).await?.await?;
                }
                Err(Refused::Failed(error, _)) => return Err(error.into()),
            }
        }
        assert!(refused > 0, "the queue was never full");
    }
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn notices_arrive_in_order_after_their_data_and_never_get_lost() {
    threads(3).run(&async |fabric| notices(fabric, 20_000).await).unwrap();
}

/// Rank 0 fills the queue of rank 1 and waits for room, while rank 1 leaves without having taken a notice.
async fn no_reader(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(1) {
        let go = region.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&go, Deps::All, |seen| seen == 1).await?;
        std::thread::sleep(Duration::from_millis(20));
        return Ok(());
    }
    let there = fabric.remote_word::<u64>(word(1, region.key(), 0))?;
    let notice = Some(0);
    let span = there.as_span();
    while fabric.try_post(op::Put { to: &span, from: [0u64], notice }).is_ok() {}
    // What no room could help is no want of room.
    match fabric.try_post(op::Put { to: &span, from: vec![0u64; 2], notice }) {
        Err(Refused::Failed(error, _)) => assert_eq!(error, FabricError::length_mismatch(2, 1)),
        _ => panic!("two elements put to one"),
    }
    fabric.put_word(&there, 1).await?;
    let start = Instant::now();
    assert_eq!(fabric.room(Some(Rank::new(1))).await, Err(FabricError::PeersLeft));
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn nobody_waits_for_room_at_a_rank_that_left() {
    threads(2).run(&no_reader).unwrap();
}

/// Symmetric regions: equal keys, reuse only when all have dropped, mismatches, exhaustion.
async fn symmetric(fabric: Fabric) -> ProgramResult<Vec<RegionKey>> {
    let (me, n) = (fabric.rank().number(), fabric.ranks() as u32);
    let mut world = Group::world(&fabric).await?;
    let mut keys = Vec::new();
    let first = fabric.alloc_symmetric(1000).await?;
    // Local allocations in between do not matter.
    let _local: Vec<_> = (0..me).map(|_| fabric.alloc(5000)).collect::<Result<_, _>>()?;
    let second = fabric.alloc_symmetric(2000).await?;
    fabric.write(&first.span::<u8>(&fabric, 0, 1000)?, &[7; 1000])?;
    world.barrier().await?;
    let kept = (me == 0).then_some(first);
    let third = fabric.alloc_symmetric(1000).await?;
    assert_ne!(third.key().index, keys.first().map_or(0, |key: &RegionKey| key.index));
    if let Some(kept) = &kept {
        assert_ne!(third.key().index, kept.key().index, "rank 0 has not dropped it");
    }
    drop(kept);
    let fourth = fabric.alloc_symmetric(1000).await?;
    let fifth = fabric.alloc_symmetric(1000).await?;
    let mut bytes = vec![1; 1000];
    fabric.read(&fourth.span::<u8>(&fabric, 0, 1000)?, &mut bytes)?;
    assert_eq!(bytes, vec![0; 1000], "zeroed again");
    keys.extend([second.key(), third.key(), fourth.key(), fifth.key()]);
    // Sizes differ: everybody is told, nobody hangs, the next one works.
    let error = fabric.alloc_symmetric(if me == 1 { 8 } else { 16 }).await.map(drop).unwrap_err();
    assert!(matches!(&error, FabricError::Mismatch(differ) if differ.collective == "alloc_symmetric"), "{error}");
    // One rank has no room: all fail.
    let big = if me == n - 1 { Some(fabric.alloc(SMALL / 2)?) } else { None };
    let error = fabric.alloc_symmetric(SMALL * 2 / 3).await.map(drop).unwrap_err();
    assert!(matches!(error, FabricError::OutOfMemory(_)), "{error}");
    drop(big);
    keys.push(fabric.alloc_symmetric(SMALL * 2 / 3).await?.key());
    // Two at once, and one whose future is dropped half-way.
    let (a, b) = join(fabric.alloc_symmetric(64), fabric.alloc_symmetric(128)).await;
    keys.extend([a?.key(), b?.key()]);
    if me == 0 {
        let now = fabric.now();
        drop(fabric.before(now, fabric.alloc_symmetric(192)).await);
    } else {
        keys.push(fabric.alloc_symmetric(192).await?.key());
    }
    keys.push(fabric.alloc_symmetric(256).await?.key());
    if me == 0 {
        keys.insert(keys.len() - 1, RegionKey::from_bits(0));
    }
    Ok(keys)
}

#[test]
fn symmetric_keys_agree() {
    for n in if cfg!(miri) { vec![2] } else { vec![2, 5] } {
        let mut out = threads(n).run(&symmetric).unwrap();
        let hole = out[0].len() - 2;
        out[0][hole] = out[1][hole];
        assert!(out.windows(2).all(|pair| pair[0] == pair[1]), "{out:?}");
    }
}

/// Data of all element sizes, between registered and private memory, at odd offsets.
async fn transfers(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(1 << 16).await?;
    let peer = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
    let mut world = Group::world(&fabric).await?;
    for len in (0..70).chain([255, 1024, 5000, 30_001]) {
        for offset in [0u64, 1, 7, 64] {
            let there = RemoteAddr { rank: peer, region: region.key(), offset };
            let span = fabric.remote_span::<u8>(there, len)?;
            let data: Vec<u8> = (0..len).map(|i| (i * 31 + len) as u8).collect();
            let back = fabric.put(&span, data.clone()).await?;
            assert_eq!(back, data);
            fabric.flush(peer).await?;
            assert_eq!(fabric.get(&span, vec![0; len]).await?, data);
            let own = region.span::<u8>(&fabric, 32 * 1024 + 3, len)?;
            fabric.get(&span, own.clone()).await?;
            let mut copy = vec![0; len];
            fabric.read(&own, &mut copy)?;
            assert_eq!(copy, data);
        }
    }
    world.barrier().await?;
    let there = RemoteAddr { rank: peer, region: region.key(), offset: (1 << 16) - 4 };
    let small = fabric.remote_word::<u32>(there)?;
    let minus = u32::wrapping_neg;
    assert_eq!(fabric.swap(&small, minus(5)).await?, 0);
    assert_eq!(fabric.fetch_add(&small, minus(5)).await?, minus(5));
    assert_eq!(fabric.compare_swap(&small, minus(10), 12).await?, minus(10));
    assert_eq!(fabric.fetch_or(&small, 3).await?, 12);
    assert_eq!(fabric.fetch_and(&small, 6).await?, 15);
    assert_eq!(fabric.atomic(&small, Amo::Xor(2)).await?, 6);
    assert_eq!(fabric.get_word(&small).await?, 4);
    world.barrier().await?;
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn bytes_arrive_as_they_were_sent() {
    threads(2).run(&transfers).unwrap();
}

/// An idle rank uses almost no CPU.
async fn idle(fabric: Fabric, millis: u64) -> ProgramResult<u64> {
    let region = fabric.alloc_symmetric(8).await?;
    let mine: LocalWord<u64> = region.word(&fabric, 0)?;
    let before = thread_cpu_ns();
    let at = fabric.now() + Duration::from_millis(millis);
    // Depends on itself only: the other one may be done a little earlier, which would end the wait.
    let itself = Deps::One(fabric.rank());
    assert!(fabric.before(at, fabric.wait_until(&mine, itself, |seen| seen != 0)).await.is_none());
    assert!(fabric.now() >= at);
    Ok(thread_cpu_ns() - before)
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn idle_ranks_use_little_cpu() {
    let used = threads(2).run(&async |fabric| idle(fabric, 500).await).unwrap();
    println!("CPU of 500 ms idle: {used:?} ns");
    assert!(used.iter().all(|&ns| ns < 50_000_000), "{used:?}");
}

#[test]
fn endpoints_and_their_futures_may_move_between_threads() {
    fn sync<T: Send + Sync>() {}
    fn send<T: Send>(_: T) {}
    sync::<rdma_fabric::Fabric>();
    sync::<rdma_fabric::Region>();
    fn check(fabric: &Fabric, region: &rdma_fabric::Region) -> Result<(), FabricError> {
        let cell = region.word::<u64>(fabric, 0)?;
        let there = cell.as_remote();
        send(fabric.fetch_add(&there, 1));
        send(fabric.put_word(&there, 1));
        send(fabric.put(&there.as_span(), vec![1]));
        send(fabric.get(&there.as_span(), [1]));
        send(fabric.put_notify(&there.as_span(), [1], 1));
        send(fabric.wait_until(&cell, Deps::All, |_| true));
        send(fabric.next_notice(Deps::All));
        send(fabric.alloc_symmetric(8));
        send(fabric.sleep(Duration::ZERO));
        send(fabric.room(None));
        send(Group::world(fabric));
        Ok(())
    }
    let _ = check;
}

/// The smallest executor that is not ours.
fn foreign<T: Future>(future: T) -> T::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut cx = std::task::Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(out) => return out,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

/// Waits under another executor's waker.
async fn elsewhere(fabric: Fabric) -> ProgramResult<u64> {
    let region = foreign(fabric.alloc_symmetric(8))?;
    let (mine, peer) = (region.word::<u64>(&fabric, 0)?, 1 - fabric.rank().number());
    foreign(fabric.sleep(Duration::from_millis(20)));
    let there = fabric.remote_word::<u64>(word(peer, region.key(), 0))?;
    foreign(fabric.put_notify(&there.as_span(), [7], 1))?;
    foreign(fabric.next_notice(Deps::All))?;
    let seen = foreign(fabric.wait_until(&mine, Deps::All, |seen| seen == 7))?;
    foreign(Group::world(&fabric))?.barrier().await?;
    Ok(seen)
}

#[test]
fn waits_end_under_other_executors() {
    assert_eq!(threads(2).run(&elsewhere).unwrap(), [7, 7]);
}

#[test]
fn block_on_runs_foreign_futures() {
    let (sender, mut receiver) = (std::sync::Arc::new(std::sync::Mutex::new((false, None::<std::task::Waker>))), 0);
    let theirs = sender.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        let mut state = theirs.lock().unwrap();
        state.0 = true;
        state.1.take().unwrap().wake();
    });
    block_on(std::future::poll_fn(|cx| {
        let mut state = sender.lock().unwrap();
        receiver += 1;
        state.1 = Some(cx.waker().clone());
        if state.0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }));
    thread.join().unwrap();
    assert!(receiver > 1);
}
