//! Runs a scenario in virtual time or over threads, with the lock unchanged or mutated.

use super::{
    scenarios::{Act, PHASE, Scenario},
    tally::Tally,
};
use checks::lock::mutants::{QueuedMutant, assert_idle, queued_mutant};
use onesided::{
    Fabric, Group, Program, ProgramResult, Rank, RegionKey, RemoteAddr, RemoteSpan, Time,
    lock::{Lock, LockError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    observe::{self, RankCounts, Recorder},
    sim::{
        shm::Threads,
        virt::{Job, Platform},
    },
};
use std::{fmt::Write as _, sync::Mutex, time::Duration};

/// The beginning of the first phase.
const BEGIN: Time = Time::from_picos(1_000_000_000);
/// The simulator's key of a job's first symmetric region: the lock.
const FIRST_SYMMETRIC: u32 = 1 << 31;
/// The number of the lock's 8-byte words at each rank.
const WORDS: usize = 16;
const HOME: Rank = Rank::new(0);

/// Runs a scenario in virtual time.
pub(super) fn simulate(scenario: &Scenario, mutant: Option<QueuedMutant>) -> Result<Outcome<'_>, String> {
    checks::watchdog::watch_test();
    let play = Run::new(scenario, mutant, false);
    Job::new(&Platform::fx100(), scenario.ranks).run(&play).map_err(|error| error.to_string())?;
    Ok(play.outcome())
}

/// Runs a calm scenario over ranks that are threads.
pub(super) fn spawn(scenario: &Scenario) -> Result<Outcome<'_>, String> {
    assert!(scenario.calm, "{}: threads have no common time", scenario.name);
    checks::watchdog::watch_test();
    let play = Run::new(scenario, None, true);
    Threads::new(scenario.ranks).segment_bytes(1 << 20).run(&play).map_err(|error| error.to_string())?;
    Ok(play.outcome())
}

/// The counts of a scenario that was played.
pub(super) struct Outcome<'a> {
    scenario: &'a Scenario,
    ordered: bool,
    /// All ranks' counters before the first phase and after each.
    looks: Vec<Vec<RankCounts>>,
}

impl<'a> Outcome<'a> {
    /// Returns the ranks and phases whose counts differ from those of the lines, with the counts.
    pub(super) fn counted_otherwise(&self) -> Vec<(&'a Scenario, u32, u32, Tally)> {
        let places = (0..self.scenario.phases())
            .flat_map(|phase| (0..self.scenario.ranks as u32).map(move |rank| (phase, rank)));
        let otherwise = |(phase, rank)| {
            let counted = self.tally(phase, rank);
            (counted != self.wanted(phase, rank)).then_some((self.scenario, phase, rank, counted))
        };
        places.filter_map(otherwise).collect()
    }

    fn tally(&self, phase: u32, rank: u32) -> Tally {
        let at = |look: u32| &self.looks[look as usize][rank as usize];
        Tally::between(rank, at(phase), at(phase + 1))
    }

    fn wanted(&self, phase: u32, rank: u32) -> Tally {
        Tally::of_steps(self.scenario.line(phase, rank).map_or("", |line| &line.steps), self.ordered)
    }

    /// Returns a description of these differences; empty if there are none.
    pub(super) fn differences(&self) -> String {
        let mut text = String::new();
        for (scenario, phase, rank, counted) in self.counted_otherwise() {
            let (name, wanted) = (format!("{}, {}", scenario.lock, scenario.name), self.wanted(phase, rank));
            let _ = writeln!(text, "{name}, phase {phase}, rank {rank}: {counted}; expected {wanted}");
        }
        text
    }
}

/// The scenario as a program.
struct Run<'a> {
    scenario: &'a Scenario,
    mutant: Option<QueuedMutant>,
    threads: bool,
    recorders: Vec<Recorder>,
    looks: Mutex<Vec<Vec<RankCounts>>>,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, mutant: Option<QueuedMutant>, threads: bool) -> Self {
        let recorders = (0..scenario.ranks as u32).map(|rank| Recorder::new(Rank::new(rank), None)).collect();
        Run { scenario, mutant, threads, recorders, looks: Mutex::default() }
    }

    fn outcome(self) -> Outcome<'a> {
        Outcome {
            scenario: self.scenario,
            ordered: self.threads,
            looks: self.looks.into_inner().expect("nobody panicked"),
        }
    }

    fn look(&self) {
        let look = self.recorders.iter().map(|recorder| recorder.record().counts).collect();
        self.looks.lock().expect("nobody panicked").push(look);
    }

    /// Plays one rank's part; its operations are counted at `observed`, which may be below a
    /// mutant.
    async fn part(&self, fabric: Fabric, observed: Fabric) -> ProgramResult<()> {
        let lock = RwLock::symmetric_with(&observed, HOME, self.scenario.lock.into()).await?;
        // Allocated after the lock, which must come first.
        let data = observed.alloc_symmetric(8).await?;
        let other = Rank::new(if fabric.rank().number() == 1 { fabric.ranks() as u32 - 1 } else { 1 });
        let data = observed.remote_span::<u64>(data.at(other, 0), 1)?;
        let mut world = Group::world(&fabric).await?;
        let mut player = Actor { fabric: &observed, lock: &lock, data, held: Vec::new() };
        if !self.threads && fabric.now() >= BEGIN {
            return Err(format!("the scene began before all was prepared, at {}", fabric.now()).into());
        }
        for phase in 0..=self.scenario.phases() {
            let begin = BEGIN + PHASE * phase;
            if self.threads {
                world.barrier().await?;
            }
            if fabric.rank() == HOME {
                if !self.threads {
                    fabric.sleep_until(begin).await;
                }
                self.look();
            }
            if self.threads {
                world.barrier().await?;
            }
            if let Some(line) = self.scenario.line(phase, fabric.rank().number()) {
                for act in &line.acts {
                    if !self.threads {
                        // The home reads the counters before any rank continues.
                        fabric.sleep_until(begin + Duration::from_nanos(1 + line.after)).await;
                    }
                    player.act(*act, begin).await?;
                }
            }
        }
        world.barrier().await?;
        if !self.threads && self.mutant.is_none() && fabric.rank() == HOME {
            self.assert_idle(&fabric).await?;
        }
        world.barrier().await?;
        Ok(())
    }

    /// Checks that the lock's words show no holder and no waiter.
    async fn assert_idle(&self, fabric: &Fabric) -> ProgramResult<()> {
        let region = RegionKey { index: FIRST_SYMMETRIC, generation: 0 };
        let mut words = Vec::new();
        for rank in 0..fabric.ranks() {
            for cell in 0..WORDS {
                let addr = RemoteAddr { rank: Rank::new(rank as u32), region, offset: 8 * cell as u64 };
                let value = fabric.get_word(&fabric.remote_word::<u64>(addr)?).await?;
                if value != 0 {
                    words.push((rank, cell, value));
                }
            }
        }
        assert_idle(words);
        Ok(())
    }
}

impl Program for Run<'_> {
    type Out = ();

    async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
        let recorder = self.recorders[fabric.rank().index()].clone();
        let observed = observe::observed(&fabric, recorder);
        match self.mutant {
            None => self.part(fabric, observed).await,
            Some(mutant) => self.part(fabric, queued_mutant(observed, self.scenario.lock, mutant)).await,
        }
    }
}

enum HeldGuard<'a> {
    Shared(RwLockReadGuard<'a>),
    Exclusive(RwLockWriteGuard<'a>),
}

impl HeldGuard<'_> {
    async fn release(self) -> Result<(), LockError> {
        match self {
            HeldGuard::Shared(guard) => guard.release().await,
            HeldGuard::Exclusive(guard) => guard.release().await,
        }
    }
}

/// A rank and the guards that it holds.
struct Actor<'a> {
    fabric: &'a Fabric,
    lock: &'a RwLock,
    /// A word of another rank.
    data: RemoteSpan<u64>,
    held: Vec<HeldGuard<'a>>,
}

impl Actor<'_> {
    async fn act(&mut self, act: Act, begin: Time) -> ProgramResult<()> {
        let lock = self.lock;
        let at = |nanos| begin + Duration::from_nanos(nanos);
        let unexpected = || Err(format!("{act:?} went another way").into());
        match act {
            Act::Read => self.held.push(HeldGuard::Shared(lock.read().await?)),
            Act::Write => self.held.push(HeldGuard::Exclusive(lock.write().await?)),
            Act::TryRead => match lock.try_read().await? {
                Some(guard) => self.held.push(HeldGuard::Shared(guard)),
                None => return unexpected(),
            },
            Act::TryWrite => match lock.try_write().await? {
                Some(guard) => self.held.push(HeldGuard::Exclusive(guard)),
                None => return unexpected(),
            },
            Act::TryReadFails if lock.try_read().await?.is_none() => {}
            Act::TryWriteFails if lock.try_write().await?.is_none() => {}
            Act::ReadRefused if matches!(lock.read().await, Err(LockError::TooManyWaiting { .. })) => {}
            Act::ReadUntil(nanos) if matches!(lock.read_before(at(nanos)).await, Err(LockError::TimedOut)) => {}
            Act::WriteUntil(nanos) if matches!(lock.write_before(at(nanos)).await, Err(LockError::TimedOut)) => {}
            Act::ReadDropped(nanos) if self.fabric.before(at(nanos), lock.read()).await.is_none() => {}
            Act::WriteDropped(nanos) if self.fabric.before(at(nanos), lock.write()).await.is_none() => {}
            Act::ReadForgotten(until, dropped) if self.forget(at(until), at(dropped), lock.read()).await => {}
            Act::WriteForgotten(until, dropped) if self.forget(at(until), at(dropped), lock.write()).await => {}
            Act::Release | Act::PutAndRelease | Act::ReleaseDropped(_) | Act::DropGuard => {
                let held = self.held.pop().ok_or("nothing is held")?;
                match act {
                    Act::Release => held.release().await?,
                    Act::PutAndRelease => {
                        let put = self.fabric.try_put(&self.data, [1], None);
                        drop(put.map_err(|_| "the put was refused")?);
                        held.release().await?;
                    }
                    Act::ReleaseDropped(nanos) => match self.fabric.before(at(nanos), held.release()).await {
                        None => {}
                        Some(_) => return unexpected(),
                    },
                    _ => drop(held),
                }
            }
            _ => return unexpected(),
        }
        Ok(())
    }

    /// Polls `acquisition` until `until`, and drops it at `dropped`. Returns false if it ended
    /// before `until`.
    async fn forget<T>(&self, until: Time, dropped: Time, acquisition: impl Future<Output = T>) -> bool {
        let mut acquisition = Box::pin(acquisition);
        let waits = self.fabric.before(until, &mut acquisition).await.is_none();
        self.fabric.sleep_until(dropped).await;
        waits
    }
}
