//! Many ranks on few cores: the hand-over time of locks.
//!
//! All ranks contend for one lock for a fixed time; a figure is that time divided by the number of
//! acquisitions of all ranks together. Readers do not wait. The mutex allows barging, as does the
//! lock that backs off, so that a running rank takes it repeatedly; a queue hands it over to a rank
//! that must first be given a core. The queue that parks shows the minimum cost of this.

use super::{
    Case,
    crowd::{Crowd, measured},
};
use crate::{
    goal::Fault,
    operations::{
        ranks::JobPlan,
        sampling::{Measured, Sample, Takes},
    },
    outside::{
        bare::Bare,
        futex::{FutexMutex, FutexQueue},
        lines,
    },
};
use core::{
    sync::atomic::Ordering::{Acquire, Relaxed, Release},
    time::Duration,
};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{
    Guard, Lock, RmaLock, RwLock,
    locks::{BackOffLock, RpLock},
};
use std::time::Instant;

/// The number of ranks of the job.
pub(in super::super) const RANKS: usize = 16;

const EXCLUSIVE: Case = Case::new("crowd-exclusive", "16 ranks on 2 cores, exclusive lock + unlock", Takes::Both)
    .at_most(1.3, Fault::Protocol);

const IN_ORDER: Case =
    Case::new("crowd-in-order", "16 ranks on 2 cores, exclusive lock + unlock in order of arrival", Takes::Both);

const BACK_OFF: Case =
    Case::new("crowd-back-off", "16 ranks on 2 cores, exclusive lock + unlock that backs off", Takes::Both)
        .at_most(1.5, Fault::Protocol);

const SHARED: Case =
    Case::new("crowd-shared", "16 ranks on 2 cores, shared lock + unlock", Takes::Both).at_most(1.5, Fault::Protocol);

const QUEUE: Case = Case::new("machine-crowd-queue", "16 ranks on 2 cores, bare queue lock that parks", Takes::Both);

pub(super) const CASES: &[Case] = &[EXCLUSIVE, IN_ORDER, BACK_OFF, SHARED, QUEUE];

/// Measures all cases of many ranks; rank 0 has the results.
pub(super) async fn measure(fabric: &Fabric, bare: &Bare, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    let mut job = Crowd::new(fabric, bare, plan)?;
    let mut world = Group::world(fabric).await?;
    let lock = RwLock::symmetric(fabric, Rank::new(0)).await?;
    let in_order = RpLock::symmetric(fabric, Rank::new(0)).await?;
    let back_off = BackOffLock::symmetric(fabric, Rank::new(0)).await?;
    world.barrier().await?;
    let (samples, length) = if plan.quick { (3, Duration::from_millis(10)) } else { (15, Duration::from_millis(60)) };
    let mut done = Vec::new();
    let mutex = FutexMutex(bare.half(lines::MUTEX));
    for case in [&EXCLUSIVE, &IN_ORDER, &BACK_OFF, &SHARED].into_iter().filter(|case| plan.wants(case)) {
        let (mut over_fabric, mut by_mutex) = (Vec::new(), Vec::new());
        job.announce(case);
        for _ in 0..samples {
            over_fabric.push(match case.name {
                name if name == SHARED.name => {
                    job.sample(length, async || Ok(lock.read().await?.release().await?)).await?
                }
                name if name == IN_ORDER.name => job.sample(length, || write(&in_order)).await?,
                name if name == BACK_OFF.name => job.sample(length, || write(&back_off)).await?,
                _ => job.sample(length, || write(&lock)).await?,
            });
            let sample = job.sample(length, async || {
                mutex.lock();
                mutex.unlock();
                Ok(())
            });
            by_mutex.push(sample.await?);
        }
        done.push(measured(case, 0, vec![("fabric", over_fabric), ("futex mutex", by_mutex)]));
    }
    if plan.wants(&QUEUE) {
        let queue = FutexQueue::new(bare, job.me);
        let mut by_queue = Vec::new();
        job.announce(&QUEUE);
        for _ in 0..samples {
            let sample = job.sample(length, async || {
                queue.lock();
                queue.unlock();
                Ok(())
            });
            by_queue.push(sample.await?);
        }
        done.push(measured(&QUEUE, 0, vec![("bare", by_queue)]));
    }
    world.barrier().await?;
    Ok(if job.me == 0 { done } else { Vec::new() })
}

/// Takes and releases any lock exclusively.
#[inline(always)]
async fn write<L: RmaLock>(lock: &L) -> ProgramResult<()> {
    Ok(lock.write().await?.release().await?)
}

impl Crowd<'_> {
    /// Takes a sample in which all ranks call `enter` repeatedly for `length`.
    async fn sample(
        &mut self,
        length: Duration,
        mut enter: impl AsyncFnMut() -> ProgramResult<()>,
    ) -> ProgramResult<Sample> {
        let stop = self.bare.word(lines::STOP);
        let ping_pong = self.ping_pong()?;
        if self.me == 0 {
            stop.store(0, Relaxed);
        }
        self.assemble()?;
        let (begun, mut entered) = (Instant::now(), 0u64);
        let mut took = Duration::ZERO;
        while stop.load(Relaxed) == 0 {
            enter().await?;
            entered += 1;
            if self.me == 0 {
                took = begun.elapsed();
                if took >= length {
                    stop.store(1, Relaxed);
                }
            }
        }
        self.bare.word(lines::TOOK + self.me).store(entered, Release);
        self.assemble()?;
        let all: u64 = (0..RANKS).map(|rank| self.bare.word(lines::TOOK + rank).load(Acquire)).sum();
        Ok(Sample { ns: took.as_nanos() as f64 / all as f64, ping_pong, clean: false })
    }
}
