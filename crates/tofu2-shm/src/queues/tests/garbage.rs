//! Garbage in queues' words, while other ranks use the queues ([`crate::garbage`]).

use super::*;
use crate::{
    queues::view::{self, View, directory_at},
    testing::Chance,
};
use core::{sync::atomic::Ordering::Relaxed, time::Duration};
use fabric_offload::{ControlQueue, control_queue::Width};
use rdma_fabric::{Amo, Fabric, Refused};

fn garble(word: &core::sync::atomic::AtomicU64, chance: &mut Chance) {
    let now = word.load(Relaxed);
    let value = match chance.below(10) {
        0 => 0,
        1 => u64::MAX - chance.below(3) as u64,
        2 => now.wrapping_add(1),
        3 => now.wrapping_sub(1),
        4 | 5 => now ^ 1 << chance.below(64),
        6 => chance.below(20) as u64,
        7 => now.wrapping_add(1 << 32),
        8 => u64::MAX >> 1,
        _ => chance.next(),
    };
    word.store(value, Relaxed);
}

/// Writes one word of garbage into one of the queues' data.
fn vandalise(job: &Job, queues: &[QueueId], chance: &mut Chance) {
    let id = chance.one(queues);
    let Ok(segment) = job.segment(id.rank()).map(|segment| &**segment) else { return };
    match chance.below(12) {
        0 => garble(segment.word(directory_at(id).unwrap()), chance),
        1 => garble(segment.word(layout::NODE_QUEUES + 8 * chance.below(64)), chance),
        2 => garble(segment.word(layout::QUEUES_PENDING), chance),
        3 => garble(
            segment.word(
                layout::TABLE + (layout::SYMMETRIC_SLOTS + chance.below(8)) * layout::ENTRY + 8 * chance.below(4),
            ),
            chance,
        ),
        kind => {
            // The words before the rings, some of the rings, or the tags.
            let Ok(view) = View::find(job, id) else { return };
            let at = match kind {
                4..=7 => chance.below(view::MRQ),
                _ => chance.below(view.geometry.bytes() / 8),
            };
            if kind == 11 {
                garble(view.tag(chance.below(300)).0, chance);
            } else {
                garble(view.word(at), chance);
            }
        }
    }
}

struct Worker {
    fabric: Fabric,
    /// The rank's queues, each with the memory registered on it.
    queues: Vec<(fabric_offload::ControlQueue, Region)>,
}

impl Worker {
    fn new(fabric: Fabric) -> Self {
        Worker { fabric, queues: Vec::new() }
    }

    fn act(&mut self, names: &mut Vec<QueueId>, chance: &mut Chance) -> Result<()> {
        match chance.below(12) {
            0 if self.queues.len() < 3 => {
                let mode = chance.one(&[QueueMode::Normal, QueueMode::Session, QueueMode::Session]);
                let spec = QueueSpec { mrq_depth: 8, ..QueueSpec::new(mode).depth(16).checked(chance.below(2) == 0) };
                let queue = ControlQueue::open(&self.fabric, spec.ahead(chance.below(16) as u32))?;
                let region = self.fabric.alloc(4096)?;
                queue.register_fixed(&region, 1)?;
                names.push(queue.id());
                self.queues.push((queue, region));
            }
            1 if chance.below(5) == 0 && !self.queues.is_empty() => {
                let (queue, _region) = self.queues.swap_remove(chance.below(self.queues.len()));
                let _ = queue.close()?;
            }
            _ if self.queues.is_empty() || names.is_empty() => {}
            kind => {
                let (queue, _) = &self.queues[chance.below(self.queues.len())];
                let to = if chance.below(9) == 0 {
                    QueueId::from_bits(chance.next() >> 24).expect("40 bits")
                } else {
                    chance.one(names)
                };
                let address = |chance: &mut Chance| match chance.below(9) {
                    0 => Stadd::from_bits(chance.next()),
                    _ => Stadd::fixed(1) + 8 * chance.below(520) as u64,
                };
                let (from, at, len) = (address(chance), address(chance), chance.below(200) as u32);
                let command = match kind {
                    2..=4 => Command::put(to, from, at, len),
                    5 => Command::get(to, from, at, len),
                    6 => Command::Atomic { to, at, width: Width::Eight, amo: Amo::Add(1) },
                    7 => Command::PutInline { to, bytes: Inline::new(&[7; 20]).unwrap(), at },
                    8 => Command::Atomic { to, at, width: Width::Four, amo: Amo::CompareSwap { expected: 0, new: 1 } },
                    9 => return queue.poll_tcq().map(drop),
                    10 => return queue.poll_mrq().map(drop),
                    _ => {
                        let _ = queue.pointers();
                        return Ok(());
                    }
                };
                let bits = chance.next() as u8;
                let posting = Posting {
                    sps: if command.advances() { bits & 15 } else { 0 },
                    tcq_notice: bits & 16 != 0,
                    local_notice: bits & 32 != 0,
                    remote_notice: bits & 64 != 0,
                    delay_start: bits >> 5 == 7,
                    ..Posting::new(command)
                };
                match queue.try_post(posting) {
                    Ok(()) | Err(Refused::Full(())) => {}
                    Err(Refused::Failed(error, ())) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

#[test]
fn every_call_beside_a_vandal_ends_well_or_with_an_error() {
    let (jobs, steps) = if cfg!(miri) { (1, 100) } else { (60, 1500) };
    let mut chance = Chance::seeded();
    let (mut well, mut errors, mut damaged) = (0, 0, 0);
    for _ in 0..jobs {
        let job = job(4 << 20);
        let mut workers: Vec<_> = (0..RANKS).map(|rank| Worker::new(testing::fabric(&job, rank))).collect();
        let mut names = Vec::new();
        for step in 0..steps {
            // First, the ranks are given a chance to open queues.
            if step > 100 && chance.below(6) == 0 && !names.is_empty() {
                vandalise(&job, &names, &mut chance);
            }
            match workers[chance.below(RANKS as usize)].act(&mut names, &mut chance) {
                Ok(()) => well += 1,
                Err(FabricError::Queue(error)) if matches!(*error, QueueError::Corrupt { .. }) => damaged += 1,
                Err(_) => errors += 1,
            }
        }
    }
    println!("{well} calls ended well, {damaged} found damage, {errors} ended with another error");
    assert!(well > jobs && errors > jobs && (damaged > jobs || cfg!(miri)));
}

#[test]
fn nobody_hangs_beside_a_vandal() {
    let (calls, writes) = if cfg!(miri) { (60, 60) } else { (60_000, 60_000) };
    let job = job(4 << 20);
    let theirs = job.clone();
    // Every possible id, since all are known to the vandal.
    let all = |rank| (0..4u8).map(move |engine| QueueId::new(Rank::new(rank), engine, 0, 0));
    let names: Vec<_> = (0..RANKS).flat_map(all).collect();
    testing::all_end(&job, move |rank, fabric, mut chance| {
        if rank == RANKS - 1 {
            (0..writes).for_each(|_| vandalise(&theirs, &names, &mut chance));
            return;
        }
        let mut worker = Worker::new(fabric.clone());
        for call in 0..calls {
            let _ = worker.act(&mut names.clone(), &mut chance);
            if call % 1000 == 999
                && let Some((queue, _)) = worker.queues.first()
            {
                let soon = fabric.now() + Duration::from_millis(1);
                let _ = block_on(fabric.before(soon, queue.next_notice(Deps::All)));
            }
        }
    });
}
