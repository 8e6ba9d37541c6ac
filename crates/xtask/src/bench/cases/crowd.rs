//! Many ranks on few cores: who hands a lock on in good time?
//!
//! All ranks want one exclusive lock all the time, for a fixed time; a figure is that time by the number of acquisitions of all
//! ranks together. A mutex may be barged into, which a queue lock never may, so the share of the rank that got least
//! stands beside nothing here: it is a figure of throughput only.

use super::{
    super::{
        goal::Goal,
        limit::{Bare, FutexMutex},
        lines,
        meeting::Meeting,
        placement::{PingPong, pin},
        sampling::{Form, Measured, Sample, Takes},
    },
    Case, Plan, all,
};
use core::{
    sync::atomic::Ordering::{Acquire, Relaxed, Release},
    time::Duration,
};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::RpLock;
use std::time::Instant;

/// Ranks of the job.
pub(in super::super) const RANKS: usize = 16;

const EXCLUSIVE: Case =
    Case::new("crowd-exclusive", "16 ranks on 2 cores, exclusive lock + unlock", Takes::Both).goal(Goal::Ratio(1.5));

pub(super) const CASES: &[Case] = &[EXCLUSIVE];

rdma_fabric::program! {
    /// Measure all cases of many ranks; rank 0 has the results.
    pub(in super::super) async fn measure_crowd<F>(fabric: F, plan: Plan) -> Vec<Measured> {
        let bare = Bare::open(&plan.memory)?;
        let outcome = measure(&fabric, &bare, &plan).await;
        if outcome.is_err() {
            // Release: whoever waits outside the fabric for this rank stops.
            bare.word(lines::ABANDONED).store(1, Release);
        }
        outcome
    }
}

async fn measure<F: Fabric>(fabric: &F, bare: &Bare, plan: &Plan) -> ProgramResult<Vec<Measured>> {
    let me = fabric.rank().index();
    pin(plan.cores[me % plan.cores.len()])?;
    let mut world = Group::world(fabric).await?;
    let lock = RpLock::symmetric(fabric, Rank::new(0)).await?;
    world.barrier().await?;
    let mut crowd = Crowd { bare, me, meeting: Meeting::new(bare, me, fabric.ranks()), ping_pong: PingPong::default() };
    if let Some(number) = all().position(|case| case.name == EXCLUSIVE.name) {
        bare.word(lines::PROGRESS).store(number as u64 + 1, Release);
    }
    let (samples, length) = if plan.quick { (3, Duration::from_millis(10)) } else { (15, Duration::from_millis(60)) };
    let mutex = FutexMutex(bare.half(lines::MUTEX));
    let mut forms = [("fabric", Vec::new()), ("futex mutex", Vec::new())];
    for _ in 0..samples {
        let over_fabric = crowd.sample(length, async || Ok(lock.write().await?.release().await?)).await?;
        let bare = crowd.sample(length, async || {
            mutex.lock();
            mutex.unlock();
            Ok(())
        });
        let bare = bare.await?;
        forms[0].1.push(over_fabric);
        forms[1].1.push(bare);
    }
    world.barrier().await?;
    if me > 0 {
        return Ok(Vec::new());
    }
    let forms = forms.into_iter().map(|(name, samples)| Form { name: name.to_owned(), samples }).collect();
    Ok(vec![Measured { name: EXCLUSIVE.name.to_owned(), bytes: 0, forms }])
}

struct Crowd<'a> {
    bare: &'a Bare,
    me: usize,
    meeting: Meeting<'a>,
    ping_pong: PingPong,
}

impl Crowd<'_> {
    /// All ranks `enter` again and again for `length`.
    async fn sample(
        &mut self,
        length: Duration,
        mut enter: impl AsyncFnMut() -> ProgramResult<()>,
    ) -> ProgramResult<Sample> {
        let stop = self.bare.word(lines::STOP);
        self.meeting.assemble()?;
        // The others sleep in the next assembly.
        let ping_pong = if self.me < 2 { self.ping_pong.measure(self.bare, self.me)? } else { 0.0 };
        if self.me == 0 {
            stop.store(0, Relaxed);
        }
        self.meeting.assemble()?;
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
        self.meeting.assemble()?;
        let all: u64 = (0..RANKS).map(|rank| self.bare.word(lines::TOOK + rank).load(Acquire)).sum();
        Ok(Sample { ns: took.as_nanos() as f64 / all as f64, ping_pong, clean: false })
    }
}
