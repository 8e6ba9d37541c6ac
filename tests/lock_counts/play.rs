//! Playing a scene: over virtual time or threads, with the lock as it is or with one made wrong.

use crate::{
    broken::{Fault, Faulty},
    mutant::{Subject, assert_idle},
    scene::{Act, Cue, PHASE, Scene},
    tally::Tally,
};
use onesided::{
    Fabric, Group, Program, ProgramResult, PutOptions, Rank, RegionKey, RemoteAddr, RemoteSpan, Time,
    explore::mutant::mutant,
    lock::{
        Guard, LockError, RmaLock,
        locks::{FairLock, PackedLock, RpLock, WritersFirstLock},
    },
    observe::{self, RankCounts, Recorder},
    sim::{
        shm::Threads,
        virt::{Job, Platform},
    },
};
use std::{fmt::Write as _, sync::Mutex, time::Duration};

/// When the first phase begins.
const BEGIN: Time = Time::from_picos(1_000_000_000);
/// The simulator's key of a job's first symmetric region: the lock.
pub(crate) const FIRST_SYMMETRIC: u32 = 1 << 31;
/// 8-byte words of the lock at each rank.
const WORDS: usize = 16;
const HOME: Rank = Rank::new(0);

/// A scene in virtual time.
pub(crate) fn simulate(scene: &Scene, fault: Fault) -> Result<Played<'_>, String> {
    let play = Play::new(scene, fault, false);
    Job::new(&Platform::fx100(), scene.ranks).run(&play).map_err(|error| error.to_string())?;
    Ok(play.played())
}

/// A calm scene over ranks as threads.
pub(crate) fn spawn(scene: &Scene) -> Result<Played<'_>, String> {
    assert!(scene.calm, "{}: threads have no common time", scene.name);
    let play = Play::new(scene, Fault::None, true);
    Threads::new(scene.ranks).segment_bytes(1 << 20).run(&play).map_err(|error| error.to_string())?;
    Ok(play.played())
}

/// What was counted.
pub(crate) struct Played<'a> {
    scene: &'a Scene,
    ordered: bool,
    /// All ranks' counters before the first phase and after each.
    looks: Vec<Vec<RankCounts>>,
}

impl Played<'_> {
    /// What a rank did in a phase.
    pub(crate) fn tally(&self, phase: u32, rank: u32) -> Tally {
        let at = |look: u32| &self.looks[look as usize][rank as usize];
        Tally::between(rank, at(phase), at(phase + 1))
    }

    /// Where it is not what the lines say; empty if nowhere.
    pub(crate) fn differences(&self) -> String {
        let mut text = String::new();
        for phase in 0..self.scene.phases() {
            for rank in 0..self.scene.ranks as u32 {
                let line = self.scene.line(phase, rank);
                let wanted = Tally::of_steps(line.map_or("", |line| line.steps), self.ordered);
                let counted = self.tally(phase, rank);
                if counted != wanted {
                    let name = format!("{:?}, {}", self.scene.lock, self.scene.name);
                    let _ = writeln!(text, "{name}, phase {phase}, rank {rank}: {counted}; expected {wanted}");
                }
            }
        }
        text
    }
}

/// The scene as a program.
struct Play<'a> {
    scene: &'a Scene,
    fault: Fault,
    threads: bool,
    recorders: Vec<Recorder>,
    looks: Mutex<Vec<Vec<RankCounts>>>,
}

impl<'a> Play<'a> {
    fn new(scene: &'a Scene, fault: Fault, threads: bool) -> Self {
        let recorders = (0..scene.ranks as u32).map(|rank| Recorder::new(Rank::new(rank), None)).collect();
        Play { scene, fault, threads, recorders, looks: Mutex::default() }
    }

    fn played(self) -> Played<'a> {
        Played { scene: self.scene, ordered: self.threads, looks: self.looks.into_inner().expect("nobody panicked") }
    }

    fn look(&self) {
        let look = self.recorders.iter().map(|recorder| recorder.record().counts).collect();
        self.looks.lock().expect("nobody panicked").push(look);
    }

    /// One rank's part, with what it did counted at `observed`, which may be below a mutation.
    async fn part(&self, fabric: Fabric, observed: Fabric) -> ProgramResult<()> {
        match self.scene.lock {
            Subject::Flat => self.part_with::<RpLock>(fabric, observed).await,
            Subject::Packed => self.part_with::<PackedLock>(fabric, observed).await,
            Subject::WritersFirst => self.part_with::<WritersFirstLock>(fabric, observed).await,
            Subject::Fair => self.part_with::<FairLock>(fabric, observed).await,
        }
    }

    async fn part_with<L: RmaLock>(&self, fabric: Fabric, observed: Fabric) -> ProgramResult<()> {
        let lock = L::symmetric(&observed, HOME).await?;
        // After the lock, which must be the first.
        let data = observed.alloc_symmetric(8).await?;
        let other = Rank::new(if fabric.rank().number() == 1 { fabric.ranks() as u32 - 1 } else { 1 });
        let data = observed.remote_span::<u64>(data.at(other, 0), 1)?;
        let mut world = Group::world(&fabric).await?;
        let mut player = Player::<L> { fabric: &observed, lock: &lock, data, held: Vec::new() };
        if !self.threads && fabric.now() >= BEGIN {
            return Err(format!("the scene began before all was prepared, at {}", fabric.now()).into());
        }
        for phase in 0..=self.scene.phases() {
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
            let mine = |cue: &&Cue| (cue.phase, cue.rank) == (phase, fabric.rank().number());
            for cue in self.scene.cues.iter().filter(mine) {
                if !self.threads {
                    // The home looks before anybody goes on.
                    fabric.sleep_until(begin + Duration::from_nanos(1 + cue.after)).await;
                }
                player.act(cue.act, begin).await?;
            }
        }
        world.barrier().await?;
        if !self.threads && self.fault == Fault::None && fabric.rank() == HOME {
            self.assert_idle(&fabric).await?;
        }
        world.barrier().await?;
        Ok(())
    }

    /// The words say that nobody holds or waits.
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

impl Program for Play<'_> {
    type Out = ();

    async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
        let recorder = self.recorders[fabric.rank().index()].clone();
        let observed = observe::observed(&fabric, recorder);
        match self.fault {
            Fault::None => self.part(fabric, observed).await,
            fault => self.part(fabric, mutant(observed, Faulty::new(fault))).await,
        }
    }
}

enum Held<S, E> {
    Shared(S),
    Exclusive(E),
}

impl<S: Guard, E: Guard> Held<S, E> {
    async fn release(self) -> Result<(), LockError> {
        match self {
            Held::Shared(guard) => guard.release().await,
            Held::Exclusive(guard) => guard.release().await,
        }
    }
}

/// A rank and what it holds.
struct Player<'a, L: RmaLock> {
    fabric: &'a Fabric,
    lock: &'a L,
    /// A word of another rank.
    data: RemoteSpan<u64>,
    held: Vec<Held<L::Shared<'a>, L::Exclusive<'a>>>,
}

impl<L: RmaLock> Player<'_, L> {
    async fn act(&mut self, act: Act, begin: Time) -> ProgramResult<()> {
        let lock = self.lock;
        let at = |nanos| begin + Duration::from_nanos(nanos);
        let unexpected = || Err(format!("{act:?} went another way").into());
        match act {
            Act::Read => self.held.push(Held::Shared(lock.read().await?)),
            Act::Write => self.held.push(Held::Exclusive(lock.write().await?)),
            Act::TryRead => match lock.try_read().await? {
                Some(guard) => self.held.push(Held::Shared(guard)),
                None => return unexpected(),
            },
            Act::TryWrite => match lock.try_write().await? {
                Some(guard) => self.held.push(Held::Exclusive(guard)),
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
                        let put = self.fabric.try_put(&self.data, [1], PutOptions::default());
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

    /// Look at `acquisition` until `until`, and drop it at `dropped`. False if it was over before.
    async fn forget<T>(&self, until: Time, dropped: Time, acquisition: impl Future<Output = T>) -> bool {
        let mut acquisition = Box::pin(acquisition);
        let waits = self.fabric.before(until, &mut acquisition).await.is_none();
        self.fabric.sleep_until(dropped).await;
        waits
    }
}
