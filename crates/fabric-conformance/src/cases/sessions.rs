//! Control queues in session mode.

use super::fixture::{Fixture, queue_error};
use crate::{ensure, ensure_eq};
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, ProgramResult, Refused,
    control_queue::{Blocks, Command, Inline, Posting, QueueError, QueueMode, QueueSpec, Width},
};
use std::time::Duration;

const SESSION: QueueSpec = QueueSpec::new(QueueMode::Session);

pub(super) async fn the_unit_is_the_slot(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, SESSION, 256).await? else { return Ok(()) };
    let own = fixture.own();
    fixture.nops(1).await?;
    ensure_eq!(fixture.completed().await?, 0, "S1: at first nothing runs");
    let put = Command::PutInline { to: own, bytes: Inline::new(&[1; 9]).ok_or("9 bytes")?, at: fixture.at + 64 };
    let amo = Amo::CompareSwap { expected: 0, new: 1 };
    let swap = Command::Atomic { to: own, at: fixture.at + 128, width: Width::Eight, amo };
    let two = [put, if fixture.has_atomics()? { swap } else { put }];
    for command in two {
        fixture.queue.post(Posting::new(command).tcq(0), Deps::All).await?;
    }
    fixture.nops(1).await?;
    // The commands take slots 0, 1–2, 3–4 and 5.
    for (slot, done) in [1, 0, 1, 0, 1, 1].into_iter().enumerate() {
        ensure_eq!(fixture.credit(own, 1).await?, Ok(()), "S1");
        ensure_eq!(fixture.completed().await?, done, "S1: with credit for slot {slot}");
    }
    let pointers = fixture.queue.pointers();
    ensure_eq!((pointers.read, pointers.write, pointers.scheduled), (6, 6, 6), "S1");
    fixture.leave().await
}

pub(super) async fn which_commands_advance(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, SESSION.checked(false), 1 << 20).await? else { return Ok(()) };
    let (own, at, from) = (fixture.own(), fixture.at, fixture.from);
    let blocks = Blocks { count: 5, stride: 16 };
    let commands = [
        ("a put", Command::put(own, from, at, 64), 1),
        ("an empty put", Command::put(own, from, at, 0), 1),
        ("a long put", Command::put(own, from, at, 1 << 20), 1),
        ("a short inline put", Command::PutInline { to: own, bytes: Inline::word(1), at }, 1),
        ("a long inline put", Command::PutInline { to: own, bytes: Inline::new(&[1; 32]).ok_or("32")?, at }, 1),
        ("a put of blocks", Command::Put { to: own, from, at, len: 8, blocks }, 5),
        ("a get", Command::get(own, at, from, 64), 0),
        ("an atomic", Command::Atomic { to: own, at, width: Width::Eight, amo: Amo::Add(1) }, 0),
        (
            "a compare-and-swap",
            Command::Atomic { to: own, at, width: Width::Four, amo: Amo::CompareSwap { expected: 1, new: 2 } },
            0,
        ),
        ("a nop", Command::Nop, 0),
    ];
    fixture.nops(300).await?;
    let atomics = fixture.has_atomics()?;
    for (what, command, times) in commands {
        if !atomics && matches!(command, Command::Atomic { .. }) {
            continue;
        }
        for sps in [0u8, 1, 15] {
            let before = fixture.queue.pointers().scheduled;
            fixture.sender.post(Posting::new(command).sps(sps).tcq(0), Deps::All).await?;
            for _ in 0..command.commands() {
                fixture.sender.next_completion(Deps::All).await?;
            }
            fixture.settle().await;
            let advanced = fixture.queue.pointers().scheduled - before;
            ensure_eq!(advanced, times * u64::from(sps), "S2, S3: {what} with SPS {sps}");
        }
    }
    let wide = fixture.sender.try_post(Posting::new(Command::put(own, from, at, 8)).sps(16));
    ensure!(
        matches!(&wide, Err(Refused::Failed(FabricError::Queue(error), ())) if matches!(**error, QueueError::Limit { .. })),
        "S2: SPS 16: {wide:?}"
    );
    ensure_eq!(fixture.completed().await?, 10 * 16, "S2: what ran");
    fixture.leave().await
}

pub(super) async fn early_credit_is_kept(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, SESSION.ahead(2), 64).await? else { return Ok(()) };
    ensure_eq!(fixture.queue.pointers().scheduled, 2, "S5: the initial offset");
    ensure_eq!(fixture.credit(fixture.own(), 3).await?, Ok(()), "S4");
    fixture.nops(7).await?;
    ensure_eq!(fixture.completed().await?, 5, "S4, S5: two slots ahead and three of early credit");
    fixture.leave().await
}

pub(super) async fn several_posted_together(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, SESSION.ahead(1).depth(16), 64).await? else { return Ok(()) };
    // Each put releases the next; the ring holds fewer than 40.
    let put = |value: u64| Command::PutInline { to: fixture.own(), bytes: Inline::word(value), at: fixture.at };
    let postings: Vec<_> = (1..=40).map(|value| Posting::new(put(value)).sps(1).tcq(value).strong_order()).collect();
    fixture.queue.post_all(&[], Deps::All).await?;
    fixture.queue.post_all(&postings, Deps::All).await?;
    for value in 1..=40 {
        let done = fixture.queue.next_completion(Deps::All).await?;
        ensure_eq!((done.tag, done.status), (value, Ok(())), "Q11: completion {value}");
    }
    ensure_eq!(fixture.until(0, 40).await?, 40, "Q11: the last one's value");

    let nop = |tag| Posting::new(Command::Nop).tcq(tag);
    let refused = fixture.queue.post_all(&[nop(41), Posting::new(put(0)).sps(16), nop(42)], Deps::All).await.err();
    ensure!(matches!(queue_error(&refused), Some(QueueError::Limit { .. })), "Q11: SPS 16: {refused:?}");
    ensure_eq!(fixture.credit(fixture.own(), 5).await?, Ok(()), "Q11");
    ensure_eq!(fixture.completed().await?, 1, "Q11: what was posted before one that is refused");
    fixture.queue.post_all(&[43, 44].map(|tag| Posting { delay_start: true, ..nop(tag) }), Deps::All).await?;
    ensure_eq!(fixture.completed().await?, 0, "Q7, Q11: delayed ones");
    fixture.queue.post_all(&[nop(45), Posting { delay_start: true, ..nop(46) }], Deps::All).await?;
    ensure_eq!(fixture.completed().await?, 3, "Q7, Q11: those before one that is not, and it");
    fixture.leave().await
}

pub(super) async fn credit_wraps_or_is_an_error(fabric: Fabric) -> ProgramResult<()> {
    let spec = SESSION.depth(16).checked(false);
    let Some(fixture) = Fixture::open(fabric.clone(), spec, 64).await? else { return Ok(()) };
    for _ in 0..4 {
        ensure_eq!(fixture.credit(fixture.own(), 10).await?, Ok(()), "S6");
    }
    fixture.nops(10).await?;
    ensure_eq!(fixture.completed().await?, 40 % 16, "S6: credit of 40 in a ring of 16");
    fixture.leave().await?;

    let Some(fixture) = Fixture::open(fabric, spec.checked(true), 64).await? else { return Ok(()) };
    ensure_eq!(fixture.credit(fixture.own(), 15).await?, Ok(()), "S6: a ring less one");
    let _ = fixture.credit(fixture.own(), 1).await?;
    fixture.settle().await;
    let end = fixture.queue.poll_tcq().err();
    let overrun = QueueError::CreditOverrun { queue: fixture.own(), read: 0, scheduled: 16, depth: 16 };
    ensure_eq!(end, Some(overrun.into()), "S6: a whole ring ahead");
    fixture.leave().await
}

pub(super) async fn a_put_to_oneself(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, SESSION, 64).await? else { return Ok(()) };
    let own = fixture.own();
    let put = Posting::new(Command::PutInline { to: own, bytes: Inline::word(4), at: fixture.at }).sps(4).tcq(9);
    fixture.queue.post(put, Deps::All).await?;
    fixture.nops(9).await?;
    ensure_eq!(fixture.credit(own, 2).await?, Ok(()), "S7");
    // Of the two slots of credit, the put takes one, and it gives four more.
    ensure_eq!(fixture.completed().await?, 1 + 5, "S7: the put and five others");
    ensure_eq!(fixture.word(0)?, 4, "S7");
    fixture.leave().await
}

/// In a chain, the queues forward the arriving data without any action of the ranks in between.
pub(super) async fn arrivals_are_forwarded(fabric: Fabric) -> ProgramResult<()> {
    const ROUNDS: u64 = 8;
    const BYTES: usize = 4096;
    let Some(mut fixture) = Fixture::open(fabric, SESSION, BYTES * ROUNDS as usize).await? else { return Ok(()) };
    let (me, last) = (fixture.me(), fixture.ids.len() - 1);
    let piece = |round: u64| fixture.at + round * BYTES as u64;
    let to = fixture.next();
    if 0 < me && me < last {
        for round in 0..ROUNDS {
            let put = Posting::new(Command::put(to, piece(round), piece(round), BYTES as u32));
            let put = if me + 1 == last { put.remote(round as u8) } else { put.sps(1) };
            fixture.queue.post(put, Deps::All).await?;
        }
    }
    fixture.world.barrier().await?;
    if me == 0 {
        for round in 0..ROUNDS {
            let words = vec![round + 1; BYTES / 8];
            let own = fixture.region.span::<u64>(&fixture.fabric, BYTES * round as usize, BYTES / 8)?;
            fixture.fabric.write(&own, &words)?;
            let from = fixture.from + round * BYTES as u64;
            let put = Posting::new(Command::put(to, from, piece(round), BYTES as u32));
            let put = if last == 1 { put.remote(round as u8) } else { put.sps(1) };
            fixture.sender.post(put, Deps::All).await?;
        }
    } else if me == last {
        for round in 0..ROUNDS {
            let notice = fixture.queue.next_notice(Deps::All).await?;
            ensure_eq!(notice.edata, round as u8, "S8: out of order");
            let own = fixture.region.span::<u64>(&fixture.fabric, BYTES * round as usize, BYTES / 8)?;
            let mut words = vec![0; BYTES / 8];
            fixture.fabric.read(&own, &mut words)?;
            ensure!(words.iter().all(|word| *word == round + 1), "S8: forwarded before it had arrived");
        }
    } else {
        // This rank makes no queue calls.
        fixture.fabric.compute(Duration::from_micros(50)).await;
    }
    fixture.leave().await
}

pub(super) async fn other_queues_ignore_credit(fabric: Fabric) -> ProgramResult<()> {
    let normal = QueueSpec::new(QueueMode::Normal);
    for checked in [false, true] {
        let Some(fixture) = Fixture::open(fabric.clone(), normal.checked(checked), 64).await? else { return Ok(()) };
        let ignored = QueueError::CreditIgnored { queue: fixture.sender.id(), sps: 3 };
        let put = Posting::new(Command::PutInline { to: fixture.own(), bytes: Inline::word(5), at: fixture.at }).sps(3);
        let status = fixture.acknowledged(&fixture.sender, put).await?.status;
        ensure_eq!(status, if checked { Err(ignored) } else { Ok(()) }, "S9: checked {checked}");
        ensure_eq!(fixture.word(0)?, 5, "S9: the bytes, checked {checked}");
        let nop = fixture.sender.try_post(Posting::new(Command::Nop).sps(3));
        let told = matches!(&nop, Err(Refused::Failed(FabricError::Queue(error), ()))
            if matches!(**error, QueueError::CreditIgnored { .. }));
        ensure_eq!(told, checked, "S9: a nop with SPS, checked {checked}: {nop:?}");
        fixture.leave().await?;
    }
    Ok(())
}

pub(super) async fn closing_tells_what_never_started(fabric: Fabric) -> ProgramResult<()> {
    let Some(fixture) = Fixture::open(fabric, SESSION, 64).await? else { return Ok(()) };
    fixture.nops(5).await?;
    ensure_eq!(fixture.credit(fixture.own(), 2).await?, Ok(()), "S10");
    ensure_eq!(fixture.completed().await?, 2, "S10");
    let Fixture { queue, mut world, .. } = fixture;
    ensure_eq!(queue.close()?, 3, "S10: commands that never started");
    Ok(world.barrier().await?)
}

/// Commands circulate: every rank's queue releases the next rank's, and finally its own is released
/// again.
pub(super) async fn a_ring_runs_by_itself(fabric: Fabric) -> ProgramResult<()> {
    const LAPS: u64 = 50;
    let Some(mut fixture) = Fixture::open(fabric, SESSION.checked(true), 4096).await? else { return Ok(()) };
    let me = fixture.me();
    for lap in 0..LAPS {
        let at = fixture.at + 8 * lap;
        let put = Posting::new(Command::PutInline { to: fixture.next(), bytes: Inline::word(lap + 1), at });
        let last = me == fixture.ids.len() - 1 && lap + 1 == LAPS;
        fixture.queue.post(if last { put } else { put.sps(1) }, Deps::All).await?;
    }
    fixture.world.barrier().await?;
    if me == 0 {
        ensure_eq!(fixture.credit(fixture.own(), 1).await?, Ok(()), "S8");
    }
    fixture.until(8 * (LAPS as usize - 1), LAPS).await?;
    for lap in 0..LAPS {
        ensure_eq!(fixture.word(8 * lap as usize)?, lap + 1, "S8: lap {lap}");
    }
    fixture.leave().await
}
