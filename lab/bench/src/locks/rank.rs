//! The part of a rank that contends.
//!
//! In each case the contestants take turns, repetition by repetition, so that a change in the machine's speed affects
//! all of them. A repetition is one run that reads the clock only for its end, which gives the throughput, and one in
//! which every acquisition is timed.

use super::{
    contestant::Contestant,
    mutex::{Memory, MutexLock},
};
use crate::outside::{
    bare::Bare,
    job::Task,
    lines,
    placement::{PingPong, pin},
    rendezvous::{Rendezvous, share_core},
};
use core::sync::atomic::Ordering::Release;
use rdma_fabric::{Fabric, ProgramResult};
use repro::{
    peers::contention,
    workloads::locks::{EXCLUSIVE, RankRecord, Run, RunLength, SHARED, Workload, WriterShare, contend},
};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The number of keys of each rank in DHT.
const KEYS: u32 = 32;

/// The plan of one job, sent to every rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobPlan {
    pub(super) cases: Vec<(Workload, WriterShare)>,
    pub(super) locks: Vec<Contestant>,
    pub(super) repetitions: usize,
    pub(super) length: Duration,
    pub(super) seed: u64,
    pub(super) cores: Vec<usize>,
}

/// The record of a rank for one case and contestant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// The record of each repetition, without latencies.
    pub(super) repetitions: Vec<RankRecord>,
    /// The latencies of all repetitions.
    pub(super) timed: RankRecord,
    /// The ping-pongs in nanoseconds, on ranks 0 and 1.
    pub(super) ping_pongs: Vec<f64>,
}

impl Task for JobPlan {
    const NAME: &'static str = "locks";
    /// In the order of cases and contestants.
    type Out = Vec<Recorded>;

    async fn measure(self, fabric: Fabric, bare: &Arc<Bare>) -> ProgramResult<Vec<Recorded>> {
        measure(&fabric, bare, &self).await
    }
}

async fn measure(fabric: &Fabric, bare: &Arc<Bare>, job_plan: &JobPlan) -> ProgramResult<Vec<Recorded>> {
    let me = fabric.rank().index();
    pin(job_plan.cores[me % job_plan.cores.len()])?;
    if job_plan.cores.len() < 2 {
        share_core();
    }
    let mut rendezvous = Rendezvous::new(bare, me, fabric.ranks());
    let mut ping_pong = PingPong::default();
    let mut all = Vec::new();
    for (number, &(workload, writers)) in job_plan.cases.iter().enumerate() {
        if me == 0 {
            bare.word(lines::PROGRESS).store(number as u64, Release);
        }
        let mut of_case = vec![Recorded::default(); job_plan.locks.len()];
        for repetition in 0..job_plan.repetitions {
            for (lock, recorded) in job_plan.locks.iter().zip(&mut of_case) {
                rendezvous.assemble()?;
                // The others sleep in the next assembly.
                if me < 2 {
                    recorded.ping_pongs.push(ping_pong.measure(bare, me)?);
                }
                rendezvous.assemble()?;
                let length = RunLength::Lasting { warm_up: job_plan.length / 4, length: job_plan.length };
                let seed = job_plan.seed.wrapping_add(repetition as u64);
                let run = Run { workload, writers, length, timed: true, keys: KEYS, seed };
                let mut timed = one(fabric, bare, *lock, &run).await?;
                add_latencies(&mut recorded.timed, &mut timed);
                recorded.repetitions.push(match workload.is_about_latency() {
                    true => timed,
                    false => one(fabric, bare, *lock, &Run { timed: false, ..run }).await?,
                });
            }
        }
        all.extend(of_case);
    }
    Ok(all)
}

async fn one(fabric: &Fabric, bare: &Arc<Bare>, lock: Contestant, run: &Run) -> ProgramResult<RankRecord> {
    match lock {
        Contestant::Lock(lock) => contention(fabric.clone(), lock, *run).await,
        Contestant::Mutex => contend::<MutexLock>(fabric, run, Memory(Some(bare.clone()))).await,
    }
}

/// Moves latencies from one record to another.
fn add_latencies(all: &mut RankRecord, from: &mut RankRecord) {
    for kind in [SHARED, EXCLUSIVE] {
        all.acquire[kind].add(&std::mem::take(&mut from.acquire[kind]));
        all.pair[kind].add(&std::mem::take(&mut from.pair[kind]));
    }
}
