//! Ranks that write garbage into everything they can access, while other ranks work.
//!
//! Whatever values headers, region tables, rings, control records and the job's own words hold, an
//! operation ends with success or an error: no panic, no overflow, no access outside a mapping
//! (Miri runs this too), no hang beyond a wait's deadline. Each run prints its seed;
//! `ONESIDED_GARBAGE_SEED` repeats it. (Threads interleave arbitrarily; the steps of one thread
//! repeat exactly.)

use super::{
    endpoint::Endpoint,
    job::{Job, State},
    memory::{
        Mapping,
        adopted::Outside,
        layout,
        place::{Bytes, LocatedPlace},
    },
    notices::ring,
    testing::{self, Chance},
    waiting::block_on,
};
use core::{
    future::Future,
    pin::pin,
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll, Waker},
    time::Duration,
};
use rdma_fabric::{Deps, Fabric, FabricError, Group, Rank, RegionKey, RemoteAddr, RemoteSpan, Result, op};

const RANKS: u32 = 3;
const HEAP: usize = 1 << 20;

impl Chance {
    fn rank(&mut self) -> Rank {
        Rank::new(self.below(RANKS as usize) as u32)
    }
}

/// Writes one word of garbage somewhere. Words that end everything immediately (those of lost
/// ranks) are written less often.
fn vandalise(job: &Job, chance: &mut Chance) {
    let rank = chance.rank();
    let Ok(segment) = job.segment(rank).map(|segment| &**segment) else { return };
    let small = chance.below(9);
    match chance.below(16) {
        0 => write(segment, layout::RING_HEAD, chance),
        1 => write(segment, layout::RING_TAIL, chance),
        2..=5 => {
            // Near the head, where a rank reads.
            let head = segment.word(layout::RING_HEAD).load(Relaxed) as usize;
            let index = (head % layout::RING_CAPACITY + small) % layout::RING_CAPACITY;
            write(segment, layout::RING + index * layout::RING_SLOT + 8 * chance.below(4), chance);
        }
        6..=8 => {
            let first = chance.one(&[0, layout::SYMMETRIC_SLOTS]);
            write(segment, layout::TABLE + (first + small) * layout::ENTRY + 8 * chance.below(4), chance);
        }
        9 => segment.doorbell().doorbell.store(chance.next() as u32, Relaxed),
        10 => write(segment, layout::WATCH, chance),
        11 => {
            let words =
                [layout::CHANGES, layout::ARRIVALS, layout::NO_HEAVY_BARRIER, layout::FIRST_LOST, layout::MAGIC];
            garble(job.control.word(chance.one(&words)), chance);
        }
        12 => garble(job.control.control_record(rank.index(), layout::RECORD_PHASE), chance),
        13 | 14 => {
            let side = chance.one(&layout::RECORD_SIDES);
            let field = [layout::SIDE_BYTES, layout::SIDE_VERDICT, layout::SIDE_DROPPED, layout::SIDE_DROPPED + 8];
            garble(job.control.control_record(rank.index(), side + chance.one(&field)), chance);
        }
        _ if chance.below(50) == 0 => match chance.below(3) {
            0 => write(segment, layout::LOST, chance),
            1 => garble(job.control.control_record(rank.index(), layout::RECORD_STATE), chance),
            _ => garble(job.control.control_record(rank.index(), layout::RECORD_ENDED), chance),
        },
        _ => {
            // Anywhere.
            let at = chance.below(layout::HEAP / 8) * 8;
            if ![layout::DOORBELL, layout::LOST].contains(&at) {
                write(segment, at, chance);
            }
        }
    }
}

fn write(segment: &Mapping, at: usize, chance: &mut Chance) {
    garble(segment.word(at), chance);
}

/// Stores a value near the correct one, near the ends of a word's range, or an arbitrary one.
fn garble(word: &core::sync::atomic::AtomicU64, chance: &mut Chance) {
    let now = word.load(Relaxed);
    let lap = (layout::RING_CAPACITY as u64) << 1;
    let value = match chance.below(12) {
        0 => 0,
        1 => u64::MAX,
        2 => u64::MAX - chance.below(3) as u64,
        3 => now.wrapping_add(1),
        4 => now.wrapping_sub(1),
        5 => now ^ 1 << chance.below(64),
        6 => chance.below(9) as u64,
        7 => now.wrapping_add(lap),
        8 => now.wrapping_sub(lap),
        9 => u64::MAX >> 1,
        10 => HEAP as u64,
        _ => chance.next(),
    };
    word.store(value, Relaxed);
}

/// A rank that uses every feature and ignores errors.
struct Worker {
    fabric: Fabric,
    regions: Vec<rdma_fabric::Region>,
    spans: Vec<RemoteSpan<u64>>,
}

impl Worker {
    fn new(fabric: Fabric) -> Self {
        Worker { fabric, regions: Vec::new(), spans: Vec::new() }
    }

    /// Returns a key, usually one that exists or has existed.
    fn key(&self, chance: &mut Chance) -> RegionKey {
        match chance.below(4) {
            0 if !self.regions.is_empty() => self.regions[chance.below(self.regions.len())].key(),
            1 => RegionKey::from_bits(chance.next()),
            _ => {
                let first = chance.one(&[0, layout::SYMMETRIC_SLOTS]);
                RegionKey { index: (first + chance.below(6)) as u32, generation: chance.below(6) as u32 }
            }
        }
    }

    /// Executes an operation that never waits.
    fn act(&mut self, chance: &mut Chance) -> Result<()> {
        let fabric = self.fabric.clone();
        match chance.below(10) {
            0 if self.regions.len() < 6 => self.regions.push(fabric.alloc(chance.below(HEAP / 64))?),
            1 if !self.regions.is_empty() => drop(self.regions.swap_remove(chance.below(self.regions.len()))),
            0..=3 => {
                let offset = if chance.below(5) == 0 { chance.next() } else { 8 * chance.below(64) as u64 };
                let addr = RemoteAddr { rank: chance.rank(), region: self.key(chance), offset };
                let span = fabric.remote_span::<u64>(addr, chance.below(40))?;
                let (place, endpoint) = (span.place(), Endpoint::of(&fabric).expect("a rank over shared memory"));
                let piece = match LocatedPlace::of(endpoint.job(), place)?.bytes {
                    Bytes::Segment(piece) => Some((piece.offset(), piece.len())),
                    Bytes::Outside(Outside::Staged(piece)) => Some((piece.offset(), piece.len())),
                    // Memory that is not in any table.
                    Bytes::Outside(_) => None,
                };
                let heap = layout::HEAP..=layout::HEAP + HEAP;
                let inside = |(at, len): (usize, usize)| heap.contains(&at) && heap.contains(&(at + len));
                assert!(piece.is_none_or(inside), "{place:?} is outside the heap");
                if self.spans.len() > 6 {
                    self.spans.swap_remove(chance.below(6));
                }
                self.spans.push(span);
            }
            4 => drop(fabric.try_notice()?),
            _ if self.spans.is_empty() => {}
            kind => {
                let span = &self.spans[chance.below(self.spans.len())];
                let notice = (kind < 8).then(|| chance.next());
                let from = vec![chance.next(); span.len()];
                match kind {
                    5..=7 => drop(fabric.try_post(op::Put { to: span, from, notice }).map_err(failure)?),
                    8 => drop(fabric.try_post(op::Get { from: span, to: from }).map_err(failure)?),
                    _ => {
                        let word = fabric.remote_word::<u64>(span.addr())?;
                        drop(fabric.try_atomic(&word, rdma_fabric::Amo::Add(1)).map_err(failure)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Executes an operation that may wait.
    async fn wait(&mut self, chance: &mut Chance) -> Result<()> {
        let fabric = self.fabric.clone();
        let deps = if chance.below(2) == 0 { Deps::All } else { Deps::One(chance.rank()) };
        match chance.below(8) {
            7 => {
                let Some(span) = self.spans.first() else { return Ok(()) };
                drop(fabric.put_notify(span, vec![1; span.len()], 7).await?);
            }
            0 => drop(fabric.next_notice(deps).await?),
            1 => fabric.room(Some(chance.rank())).await?,
            2 => fabric.flush(chance.rank()).await?,
            3 if self.regions.len() < 6 => {
                let region = fabric.alloc_symmetric(8 * chance.below(3) + 8).await?;
                self.regions.push(region);
            }
            4 => Group::world(&fabric).await?.barrier().await?,
            5 => drop(Group::world(&fabric).await?.allgather(7u64).await?),
            _ => {
                let Some(region) = self.regions.first() else { return Ok(()) };
                let word = region.word::<u64>(&fabric, 0)?;
                let _ = fabric.wait_until(&word, deps, |value| value == 1).await?;
            }
        }
        Ok(())
    }
}

fn failure<Op>(refused: rdma_fabric::Refused<Op>) -> FabricError {
    match refused {
        rdma_fabric::Refused::Failed(error, _) => error,
        rdma_fabric::Refused::Full(_) => FabricError::PeersLeft,
    }
}

/// Polls a future a few times and drops it.
fn poll_some<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    (0..4).find_map(|_| match future.as_mut().poll(&mut cx) {
        Poll::Ready(out) => Some(out),
        Poll::Pending => None,
    })
}

#[test]
fn every_step_beside_a_vandal_ends_well_or_with_an_error() {
    let (jobs, steps) = if cfg!(miri) { (2, 150) } else { (150, 1500) };
    let mut chance = Chance::seeded();
    let (mut well, mut errors) = (0, 0);
    for _ in 0..jobs {
        let job = testing::job(RANKS, HEAP);
        let mut workers: Vec<_> = (0..RANKS).map(|rank| Worker::new(testing::fabric(&job, rank))).collect();
        for _ in 0..steps {
            if chance.below(3) == 0 {
                vandalise(&job, &mut chance);
            }
            if chance.below(20) == 0 {
                // With no other rank posting, a rank for which `has_room` is true must find room or
                // receive an error; otherwise a poster may retry forever without a pause.
                let poster = chance.rank();
                let theirs: &Mapping = job.segment(chance.rank()).unwrap();
                let room = ring::has_room(theirs);
                let claim = ring::claim(theirs, poster);
                assert!(!room || !matches!(claim, Ok(None)));
                claim.ok().flatten().into_iter().for_each(|claim| ring::withdraw(theirs, claim));
            }
            let worker = &mut workers[chance.below(RANKS as usize)];
            let ended = match chance.below(4) {
                0 => poll_some(worker.wait(&mut chance)),
                _ => Some(worker.act(&mut chance)),
            };
            match ended {
                Some(Ok(())) => well += 1,
                Some(Err(_)) => errors += 1,
                None => {}
            }
        }
    }
    println!("{well} operations ended well, {errors} with an error");
    assert!(well > jobs && errors > jobs);
}

#[test]
fn nobody_hangs_beside_a_vandal() {
    let (rounds, writes) = if cfg!(miri) { (4, 40) } else { (300, 60_000) };
    let job = testing::job(RANKS, HEAP);
    let theirs = job.clone();
    testing::all_end(&job, move |rank, fabric, mut chance| {
        if rank == RANKS - 1 {
            for _ in 0..writes {
                vandalise(&theirs, &mut chance);
                for _ in 0..chance.below(200) {
                    core::hint::spin_loop();
                }
            }
        } else {
            let mut worker = Worker::new(fabric.clone());
            for _ in 0..rounds {
                for _ in 0..10 {
                    let _ = worker.act(&mut chance);
                }
                let soon = fabric.now() + Duration::from_millis(1);
                block_on(fabric.before(soon, worker.wait(&mut chance)));
            }
        }
    });
    job.publish(Rank::new(0), State::Left);
}
