//! Several ranks: the rank whose put releases a command executes it, in any rank's queue.

use super::fixture::session_of;
use core::time::Duration;
use fabric_offload::{
    ControlQueue,
    control_queue::{Blocks, Command, Inline, MrqKind, Posting, QueueId, QueueMode, QueueSpec, Stadd, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use tofu2_shm::{JobError, Threads, block_on};

const MEMORY: Stadd = Stadd::fixed(1);

fn threads(ranks: usize) -> Threads {
    checks::jobs::threads(ranks).segment_bytes(8 << 20).ranks_per_node(1)
}

/// Returns the id of a rank's queue on engine `engine`.
fn name(rank: u32, engine: u8) -> QueueId {
    QueueId::new(Rank::new(rank), engine, 0, 0)
}

fn at(spec: QueueSpec, engine: u8) -> QueueSpec {
    QueueSpec { number: Some(0), ..spec.on(engine) }
}

/// A pipelined chain broadcast: ranks in the middle forward each block as it arrives, without their
/// CPUs.
async fn broadcast(fabric: Fabric) -> ProgramResult<()> {
    const BLOCKS: u32 = 32;
    const LEN: u32 = 8192;
    let (me, last) = (fabric.rank().number(), fabric.ranks() as u32 - 1);
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc((BLOCKS * LEN) as usize)?;
    let words = (BLOCKS * LEN / 8) as usize;
    let span = region.span::<u64>(&fabric, 0, words)?;
    let mode = if me == 0 { QueueMode::Normal } else { QueueMode::Session };
    let queue = ControlQueue::open(&fabric, at(QueueSpec::new(mode).checked(true), 0))?;
    queue.register_fixed(&region, 1)?;
    for round in 1..=20u64 {
        let blocks = Blocks { count: BLOCKS, stride: LEN.into() };
        let put = Command::Put { to: name(me + 1, 0), from: MEMORY, at: MEMORY, len: LEN, blocks };
        let forward = Posting::new(put);
        let forward = if me + 1 == last { forward.remote(round as u8) } else { forward.sps(1) };
        if me != 0 && me != last {
            queue.try_post(forward).expect("room");
        }
        world.barrier().await?;
        if me == 0 {
            let data: Vec<u64> = (0..words as u64).map(|word| word << 32 | round).collect();
            fabric.write(&span, &data)?;
            queue.try_post(forward).expect("room");
        }
        if me == last {
            for _ in 0..BLOCKS {
                let notice = queue.next_notice(Deps::All).await?;
                assert_eq!(
                    (notice.kind, notice.edata, notice.peer),
                    (MrqKind::RemotePut, round as u8, name(me - 1, 0))
                );
            }
            let mut data = vec![0; words];
            fabric.read(&span, &mut data)?;
            assert!(data.iter().zip(0..).all(|(&word, index)| word == index << 32 | round));
        }
        world.barrier().await?;
    }
    Ok(())
}

#[test]
fn a_chain_broadcast_needs_nobody_in_the_middle() {
    threads(4).run_with(|fabric| block_on(broadcast(fabric))).unwrap();
}

/// All ranks advance all ranks' queues concurrently; every released command is executed exactly
/// once.
#[test]
fn releases_from_everywhere_are_executed_once() {
    const RANKS: u32 = 4;
    const EACH: u64 = 4000;
    let run = |fabric: Fabric| {
        block_on(async {
            let mut world = Group::world(&fabric).await?;
            let region = fabric.alloc(64)?;
            let me = fabric.rank().number();
            let normal = ControlQueue::open(&fabric, at(QueueSpec::new(QueueMode::Normal), 0))?;
            // Deep enough for all commands, so that credit never gets a whole ring ahead.
            let session = ControlQueue::open(&fabric, at(session_of(1 << 14).checked(true), 1))?;
            normal.register_fixed(&region, 1)?;
            session.register_fixed(&region, 1)?;
            // Every command adds one at the next rank and is reported to this one.
            let to = name((me + 1) % RANKS, 0);
            let add = Command::Atomic { to, at: MEMORY, width: Width::Eight, amo: Amo::Add(1) };
            let wanted = EACH * u64::from(RANKS);
            (0..wanted).for_each(|tag| session.try_post(Posting::new(add).tcq(tag)).expect("room"));
            world.barrier().await?;
            let bytes = Inline::new(&[]).expect("short");
            for _ in 0..EACH {
                for rank in 0..RANKS {
                    let release = Command::PutInline { to: name(rank, 1), bytes, at: MEMORY };
                    normal.try_post(Posting::new(release).sps(1)).expect("a normal queue has room");
                }
            }
            for tag in 0..wanted {
                let done = session.next_completion(Deps::All).await?;
                assert_eq!((done.tag, done.status), (tag, Ok(())));
            }
            world.barrier().await?;
            assert_eq!(fabric.load(&region.word::<u64>(&fabric, 0)?)?, wanted);
            Ok(())
        })
    };
    threads(RANKS as usize).run_with(run).unwrap();
}

/// A computing rank is served by its progress thread: a cycle of queues that other ranks hand over
/// to it keeps running.
#[test]
fn a_progress_thread_goes_on_while_its_rank_computes() {
    const ROUNDS: u64 = 20_000;
    let run = |fabric: Fabric| {
        let region = fabric.alloc(64)?;
        let spec = session_of(1 << 16);
        let [a, b] = [0, 1].map(|engine| ControlQueue::open(&fabric, at(spec, engine)).expect("a queue"));
        let count = ControlQueue::open(&fabric, at(QueueSpec::new(QueueMode::Normal), 2))?;
        [&a, &b, &count].into_iter().try_for_each(|queue| queue.register_fixed(&region, 1).map(drop))?;
        let empty = Inline::new(&[]).expect("short");
        let release = |to| Posting::new(Command::PutInline { to, bytes: empty, at: MEMORY }).sps(1);
        for _ in 0..ROUNDS {
            a.try_post(release(b.id())).expect("room");
            b.try_post(release(a.id())).expect("room");
        }
        let word = Command::PutInline { to: count.id(), bytes: Inline::word(1), at: MEMORY };
        a.try_post(word.into()).expect("room");
        count.try_post(release(a.id())).expect("room");
        // This is many times the number that one call executes. From here on the rank makes no call
        // but loads of its own memory.
        let done = region.word::<u64>(&fabric, 0)?;
        let start = std::time::Instant::now();
        while fabric.load(&done)? == 0 {
            assert!(start.elapsed() < Duration::from_secs(10), "nobody goes on");
            std::thread::yield_now();
        }
        Ok(())
    };
    threads(1).segment_bytes(64 << 20).progress_thread(true).run_with(run).unwrap();
}

#[test]
fn a_wait_ends_with_the_loss_of_whom_it_depends_on() {
    let run = |fabric: Fabric| {
        block_on(async {
            let queue = ControlQueue::open(&fabric, at(session_of(4), 0))?;
            Group::world(&fabric).await?.barrier().await?;
            if fabric.rank() == Rank::new(1) {
                return Err("on purpose".into());
            }
            (0..3).for_each(|_| queue.try_post(Command::Nop.into()).expect("room"));
            let lost = FabricError::PeerLost { rank: Rank::new(1) };
            let deps = Deps::One(Rank::new(1));
            assert_eq!(queue.next_completion(deps).await, Err(lost.clone()));
            assert_eq!(queue.next_notice(deps).await, Err(lost.clone()));
            assert_eq!(queue.post(Command::Nop.into(), deps).await, Err(lost));
            Ok(())
        })
    };
    assert!(matches!(threads(2).run_with(run), Err(JobError::RankFailed { rank, .. }) if rank == Rank::new(1)));
}

/// Notices and completions from other CPUs wake the waiting rank: a ring of ranks, each parked most
/// of the time.
#[test]
fn what_others_execute_wakes_who_waits() {
    const RANKS: u32 = 3;
    const ROUNDS: u64 = 400;
    let run = |fabric: Fabric| {
        block_on(async {
            let mut world = Group::world(&fabric).await?;
            let me = fabric.rank().number();
            let region = fabric.alloc(64)?;
            let session = ControlQueue::open(&fabric, at(session_of(8), 0))?;
            let normal = ControlQueue::open(&fabric, at(QueueSpec::new(QueueMode::Normal), 1))?;
            session.register_fixed(&region, 1)?;
            normal.register_fixed(&region, 1)?;
            world.barrier().await?;
            let (next, before) = ((me + 1) % RANKS, Rank::new((me + RANKS - 1) % RANKS));
            let bytes = Inline::new(&[]).expect("short");
            for round in 0..ROUNDS {
                if round % 50 == u64::from(me) {
                    // Long enough for the others to park.
                    std::thread::sleep(Duration::from_millis(3));
                }
                // The previous rank's release executes this; its reports go to this rank and the
                // next.
                let command = Command::PutInline { to: name(next, 1), bytes: Inline::word(round), at: MEMORY };
                session.post(Posting::new(command).tcq(round).remote(round as u8), Deps::All).await?;
                let release = Command::PutInline { to: name(next, 0), bytes, at: MEMORY };
                normal.post(Posting::new(release).sps(1), Deps::All).await?;
                assert_eq!(session.next_completion(Deps::One(before)).await?.tag, round);
                assert_eq!(normal.next_notice(Deps::One(before)).await?.edata, round as u8);
            }
            world.barrier().await?;
            Ok(())
        })
    };
    threads(RANKS as usize).run_with(run).unwrap();
}
