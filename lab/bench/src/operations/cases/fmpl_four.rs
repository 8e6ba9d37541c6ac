//! Collectives of four ranks on two cores, beside a counter and words in bare memory; waiting ranks
//! yield.

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
    outside::{bare::Bare, lines},
};
use core::{
    hint::black_box,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use fmpl::{Fmpl, Op};
use rdma_fabric::{Fabric, ProgramResult};
use std::{thread, time::Instant};

const BARRIER: Case =
    Case::new("fmpl-barrier-4", "barrier of 4 on 2 cores; beside a bare one that yields", Takes::Both)
        .at_most(1.3, Fault::Software);
const SUM: Case = Case::new("fmpl-sum-4", "sum of 8 B of 4 on 2 cores; beside a bare one that yields", Takes::Both)
    .at_most(1.3, Fault::Software);
const BROADCAST: Case =
    Case::new("fmpl-broadcast-4", "broadcast of 8 B to 3 others on 2 cores; beside words that all read", Takes::Both)
        .at_most(1.3, Fault::Software);

pub(super) const CASES: &[Case] = &[BARRIER, SUM, BROADCAST];

/// Measures the cases; rank 0 has the results.
pub(super) async fn measure(job: &mut Crowd<'_>, fabric: &Fabric, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    let mut done = Vec::new();
    if !CASES.iter().any(|case| plan.wants(case)) {
        return Ok(done);
    }
    let fmpl = Fmpl::init(fabric).await?;
    let (world, bare, me) = (fmpl.world(), job.bare, job.me);
    let span = world.buffer::<f64>(1)?;
    let mut limits = Limits { bare, me, ranks: job.ranks as u64, broadcasts: 0 };
    let (samples, times) = if plan.quick { (3, 500) } else { (20, 2000) };
    for case in CASES.iter().filter(|case| plan.wants(case)) {
        job.announce(case);
        let (mut by_fmpl, mut by_words) = (Vec::new(), Vec::new());
        for sample in 0..=samples {
            let ours = job.repeat(times, async || match case.name {
                name if name == SUM.name => Ok(world.allreduce(&span, Op::Sum).await?),
                name if name == BROADCAST.name => Ok(world.broadcast(&span, 0).await?),
                _ => Ok(world.barrier().await?),
            });
            let ours = ours.await?;
            let theirs = job.repeat(times, async || {
                match case.name {
                    name if name == SUM.name => _ = black_box(limits.sum(1)),
                    name if name == BROADCAST.name => limits.broadcast(),
                    _ => limits.barrier(),
                }
                Ok(())
            });
            let theirs = theirs.await?;
            // The first iteration is a warm-up.
            if sample > 0 {
                by_fmpl.push(ours);
                by_words.push(theirs);
            }
        }
        done.push(measured(case, 0, vec![("fmpl", by_fmpl), ("bare, yielding", by_words)]));
    }
    fmpl.finalize().await?;
    Ok(if job.me == 0 { done } else { Vec::new() })
}

/// One rank's collectives over bare memory.
struct Limits<'a> {
    bare: &'a Bare,
    me: usize,
    ranks: u64,
    broadcasts: u64,
}

impl Limits<'_> {
    /// The last rank to arrive releases the others.
    fn barrier(&self) {
        self.meet(|| ());
    }

    /// The last rank to arrive adds the numbers of all.
    fn sum(&self, number: u64) -> u64 {
        self.bare.word(lines::GIVEN + self.me).store(number, Relaxed);
        let sum = self.bare.word(lines::SUM);
        self.meet(|| {
            let all = (0..self.ranks as usize).map(|rank| self.bare.word(lines::GIVEN + rank).load(Relaxed));
            sum.store(all.sum(), Relaxed);
        });
        sum.load(Relaxed)
    }

    fn meet(&self, last: impl FnOnce()) {
        let (came, over) = (self.bare.word(lines::COLLECTIVE + 2), self.bare.word(lines::COLLECTIVE + 3));
        let round = over.load(Acquire);
        if came.fetch_add(1, AcqRel) + 1 == self.ranks {
            last();
            came.store(0, Release);
            // Release: pairs with the acquire of the waiting ranks.
            over.store(round + 1, Release);
        } else {
            yield_until(|| over.load(Acquire) != round);
        }
    }

    /// Rank 0 writes to the next of the slots, which all others read; each counts the halves that
    /// it has read.
    fn broadcast(&mut self) {
        const HALF: u64 = lines::BROADCASTS as u64 / 2;
        self.broadcasts += 1;
        let number = self.broadcasts;
        let slot = self.bare.word(lines::BROADCAST + number as usize % lines::BROADCASTS);
        let taken = |rank| self.bare.word(lines::TAKEN + rank);
        if self.me == 0 {
            let used = number.saturating_sub(2 * HALF).div_ceil(HALF);
            (1..self.ranks as usize).for_each(|rank| yield_until(|| taken(rank).load(Acquire) >= used));
            slot.store(number, Release);
        } else {
            yield_until(|| slot.load(Acquire) == number);
            if number.is_multiple_of(HALF) {
                taken(self.me).store(number / HALF, Release);
            }
        }
    }
}

fn yield_until(is_done: impl Fn() -> bool) {
    while !is_done() {
        thread::yield_now();
    }
}

impl Crowd<'_> {
    /// Takes a sample of `times` calls.
    async fn repeat(&mut self, times: u32, mut call: impl AsyncFnMut() -> ProgramResult<()>) -> ProgramResult<Sample> {
        let ping_pong = self.ping_pong()?;
        self.assemble()?;
        let begun = Instant::now();
        for _ in 0..times {
            call().await?;
        }
        let took = begun.elapsed();
        self.assemble()?;
        Ok(Sample { ns: took.as_nanos() as f64 / f64::from(times), ping_pong, clean: false })
    }
}
