//! Jobs of processes (or threads) that contend, one for each number of ranks.
//!
//! A case is a workload and a share of writers. In each case the contestants take turns, repetition
//! by repetition, so that a change in the machine's speed affects all of them. A repetition is one
//! run that reads the clock only for its end, which gives the throughput, and one in which every
//! acquisition is timed.

use super::{
    super::{
        bare::Bare,
        job::{Provider, memory_file, path_of},
        lines,
        placement::{PingPong, pin},
        progress::Progress,
        rendezvous::{Rendezvous, share_core},
    },
    RankOptions,
    mutex::{Memory, MutexLock},
};
use core::{fmt, str::FromStr, sync::atomic::Ordering::Release};
use rdma_fabric::{Fabric, ProgramResult};
use repro::{
    lock_bench::{
        LockCase, LockRow, Spread,
        peers::{Competitor, UnknownCompetitor, contention},
    },
    workloads::locks::{EXCLUSIVE, RankRecord, Run, RunLength, SHARED, Workload, WriterShare, compared, contend},
};
use serde::{Deserialize, Serialize};
use std::{
    error::Error,
    fs::{self, File},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use tofu2_sim::shm::{self, Launcher, Threads};

/// The number of keys of each rank in DHT.
const KEYS: u32 = 32;
/// The number of ranks from which on they share cores: repetitions then contain several time slices
/// of each.
const OVERSUBSCRIBED: u32 = 5;

/// A contestant: one of the locks, or the mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Contestant {
    Lock(Competitor),
    Mutex,
}

impl Contestant {
    /// Returns the locks that are compared, and the mutex.
    pub(super) fn all() -> impl Iterator<Item = Contestant> {
        compared().map(|kind| Contestant::Lock(kind.into())).chain([Contestant::Mutex])
    }
}

const MUTEX: &str = "futex-mutex";

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contestant::Lock(lock) => lock.fmt(f),
            Contestant::Mutex => f.write_str(MUTEX),
        }
    }
}

impl FromStr for Contestant {
    type Err = UnknownCompetitor;

    fn from_str(name: &str) -> Result<Self, UnknownCompetitor> {
        if name == MUTEX { Ok(Contestant::Mutex) } else { name.parse().map(Contestant::Lock) }
    }
}

/// The measurements to make: every combination.
#[derive(Clone, Debug)]
pub(super) struct Campaign {
    pub(super) workloads: Vec<Workload>,
    pub(super) writers: Vec<WriterShare>,
    pub(super) ranks: Vec<u32>,
    pub(super) locks: Vec<Contestant>,
    pub(super) repetitions: usize,
    pub(super) length: Duration,
    /// The length of a repetition if ranks share cores.
    pub(super) oversubscribed_length: Duration,
    pub(super) seed: u64,
    /// The cores; rank r runs on core r modulo their number.
    pub(super) cores: Vec<usize>,
}

/// The plan of one job, sent to every rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobPlan {
    cases: Vec<(Workload, WriterShare)>,
    locks: Vec<Contestant>,
    repetitions: usize,
    length: Duration,
    seed: u64,
    cores: Vec<usize>,
    /// The file of the bare memory.
    memory: PathBuf,
    /// The files to which the ranks write their records.
    records: Vec<PathBuf>,
}

/// The record of a rank for one case and contestant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Recorded {
    /// The record of each repetition, without latencies.
    repetitions: Vec<RankRecord>,
    /// The latencies of all repetitions.
    timed: RankRecord,
    /// The ping-pongs in nanoseconds, on ranks 0 and 1.
    ping_pongs: Vec<f64>,
}

/// Makes all measurements of the plan.
pub(super) fn run(plan: &Campaign, provider: Provider) -> Result<Vec<LockRow>, Box<dyn Error>> {
    let cases: Vec<_> =
        plan.workloads.iter().flat_map(|&workload| plan.writers.iter().map(move |&share| (workload, share))).collect();
    let names: Vec<String> = cases.iter().map(|(workload, share)| format!("{workload}, {share} writers")).collect();
    let progress = Progress::stderr(cases.len() * plan.ranks.len());
    let mut rows = Vec::new();
    for (job, &ranks) in plan.ranks.iter().enumerate() {
        let memory = memory_file("onesided-measuring-memory")?;
        Bare::size(&memory)?;
        let records = (0..ranks).map(|_| memory_file("onesided-measured")).collect::<Result<Vec<File>, _>>()?;
        let job_plan = JobPlan {
            cases: cases.clone(),
            locks: plan.locks.clone(),
            repetitions: plan.repetitions,
            length: if ranks < OVERSUBSCRIBED { plan.length } else { plan.oversubscribed_length },
            seed: plan.seed,
            cores: plan.cores.clone(),
            memory: path_of(&memory),
            records: records.iter().map(path_of).collect(),
        };
        let bare = Bare::open(&job_plan.memory)?;
        progress.say(&format!("{ranks} ranks: {} cases", names.len()));
        let at = |case: u64| {
            Some((job * cases.len() + case as usize, format!("{ranks} ranks, {}", names.get(case as usize)?)))
        };
        let recorded = progress.watch(&bare, at, || job_plan.run(ranks as usize, provider))?;
        rows.extend(job_plan.rows(&recorded));
    }
    progress.end();
    Ok(rows)
}

impl JobPlan {
    /// Returns the records of every rank, in the order of cases and contestants.
    fn run(&self, ranks: usize, provider: Provider) -> Result<Vec<Vec<Recorded>>, Box<dyn Error>> {
        match provider {
            Provider::Shm => {
                let rank = ["bench-locks-rank".into(), serde_json::to_string(self)?];
                let launcher = Launcher::new(ranks).grace(Duration::from_secs(1));
                match launcher.command(std::env::current_exe()?, rank).run()? {
                    0 => {}
                    code => return Err(format!("the contending ranks ended with code {code}").into()),
                }
                let read = |path| Ok(serde_json::from_slice(&fs::read(path)?)?);
                self.records.iter().map(read).collect()
            }
            Provider::Threads => {
                Ok(Threads::new(ranks).run(&async |fabric| measure_contention(fabric, self.clone()).await)?)
            }
        }
    }

    fn rows(&self, recorded: &[Vec<Recorded>]) -> Vec<LockRow> {
        let mut rows = Vec::new();
        for (at, &(workload, writers)) in self.cases.iter().enumerate() {
            for (of, lock) in self.locks.iter().enumerate() {
                let of_ranks: Vec<_> = recorded.iter().map(|rank| &rank[at * self.locks.len() + of]).collect();
                let repetition = |n: usize| of_ranks.iter().map(|rank| rank.repetitions[n].clone()).collect::<Vec<_>>();
                let repetitions: Vec<_> = (0..self.repetitions).map(repetition).collect();
                let timed = [of_ranks.iter().map(|rank| rank.timed.clone()).collect()];
                let ping_pong = Spread::of(of_ranks[0].ping_pongs.iter().copied());
                let case = LockCase { workload, writers, ranks: recorded.len(), lock: lock.to_string() };
                let row = LockRow::of(case, &repetitions, &timed);
                rows.extend(row.map(|row| LockRow { ping_pong_ns: ping_pong.map(|all| all.median), ..row }));
            }
        }
        rows
    }
}

/// Runs a rank that [`run`] started.
pub(crate) fn be_rank(options: &RankOptions) -> Result<ExitCode, Box<dyn Error>> {
    let job_plan: JobPlan = serde_json::from_str(&options.plan)?;
    let endpoint = tofu2_sim::shm::from_env()?.ok_or("only `bench-locks` starts its ranks")?;
    let me = endpoint.rank().index();
    let place = job_plan.records.get(me).ok_or("there are more ranks than places for their records")?.clone();
    let recorded = shm::run_rank(endpoint, &async |fabric| measure_contention(fabric, job_plan.clone()).await)?;
    fs::write(place, serde_json::to_vec(&recorded)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures all cases of a job plan.
async fn measure_contention(fabric: Fabric, job_plan: JobPlan) -> ProgramResult<Vec<Recorded>> {
    let bare = Arc::new(Bare::open(&job_plan.memory)?);
    let outcome = measure(&fabric, &bare, &job_plan).await;
    if outcome.is_err() {
        // Release: ranks that wait outside the fabric for this rank stop.
        bare.word(lines::ABANDONED).store(1, Release);
    }
    outcome
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

#[cfg(test)]
mod tests {
    use super::*;
    use repro::lock_bench::peers::Peer;
    use rma_lock::locks::LockKind;

    #[test]
    fn contestants_are_read_back() {
        for contestant in Contestant::all().chain(Peer::ALL.map(|peer| Contestant::Lock(Competitor::Peer(peer)))) {
            assert_eq!(contestant.to_string().parse(), Ok(contestant));
            let json = serde_json::to_string(&contestant).unwrap_or_default();
            assert_eq!(serde_json::from_str::<Contestant>(&json).ok(), Some(contestant));
        }
        let fair = serde_json::to_string(&Contestant::Lock(LockKind::Fair.into())).unwrap_or_default();
        assert_eq!(fair, r#"{"Lock":"fair"}"#);
        assert!("none".parse::<Contestant>().is_err());
    }

    #[test]
    fn all_workloads_and_contestants_make_rows() {
        let plan = Campaign {
            workloads: Workload::ALL.to_vec(),
            writers: vec![WriterShare::per_mille(250)],
            ranks: vec![3],
            locks: Contestant::all().chain(Peer::ALL.map(|peer| Contestant::Lock(Competitor::Peer(peer)))).collect(),
            repetitions: 2,
            length: Duration::from_millis(2),
            oversubscribed_length: Duration::from_millis(2),
            seed: 1,
            cores: super::super::super::placement::allowed_cores().expect("cores"),
        };
        let rows = run(&plan, Provider::Threads).expect("a run");
        assert_eq!(rows.len(), 6 * plan.locks.len());
        for row in &rows {
            assert!(row.throughput.median > 0.0 && row.repetitions == 2, "{row:?}");
            assert!(row.waits.pair.is_some() && row.ping_pong_ns.is_some_and(|ns| ns > 0.0), "{row:?}");
            assert!(!row.cut && row.simulation.is_none(), "{row:?}");
        }
    }
}
