//! Scenarios in which a rank may kill itself at any of its [points](crate::dying::Points): each
//! prepares one operation of the lock.

mod scene;

pub(crate) use scene::Scene;

use crate::{
    checked::{HOME, Protected, Tally},
    dying::{Points, dying},
};
use checks::killed::{die, die_after};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use rma_lock::{
    LockError,
    locks::{RecoverableReadGuard, RecoverableWriteGuard},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::Duration,
};

/// The rank that prepares the victim's situation, and stays alive.
const HELPER: Rank = Rank::new(1);
/// The rank whose points are counted.
pub(crate) const VICTIM: Rank = Rank::new(2);
/// The rank that dies first, if the victim is to recover from that.
const FIRST: Rank = Rank::new(3);

/// The time for other ranks to start to wait.
const SOON: Duration = Duration::from_millis(4);
/// The time for a recovery.
const LATER: Duration = Duration::from_millis(24);

/// The hold of a rank when the scenario starts.
enum HeldGuard<'a> {
    Nothing,
    Read(RecoverableReadGuard<'a>),
    Write(RecoverableWriteGuard<'a>),
}

struct Stage {
    it: Protected,
    points: Arc<Points>,
}

/// Plays one rank's part.
pub(crate) async fn play(fabric: Fabric, scene: Scene, points: Arc<Points>) -> ProgramResult<String> {
    let fabric = dying(&fabric, points.clone());
    let mut world = Group::world(&fabric).await?;
    let stage = Stage { it: Protected::new(&fabric, &[VICTIM, FIRST]).await?, points };
    let me = fabric.rank();
    let lives = me != VICTIM && me != FIRST;
    let survivors = world.split(lives.then_some(0), 0).await?;
    let mut tally = Tally::default();
    let held = stage.begins(scene).await?;
    stage.it.begin(&mut world, &[VICTIM, FIRST]).await?;
    match me {
        VICTIM => {
            stage.acts(scene, held, &mut tally).await?;
            stage.points.over();
            for rank in (0..fabric.ranks() as u32).map(Rank::new).filter(|rank| *rank != VICTIM && *rank != FIRST) {
                fabric.put_word(&stage.it.message(rank, 0)?, 1).await?;
            }
            fabric.flush_all().await?;
            if matches!(scene, Scene::ReadGivesUp | Scene::WriteGivesUp) {
                // The node of its acquisition may still be in the queue.
                stage.home_is_through().await?;
            }
        }
        FIRST => stage.dies(scene, held).await?,
        HELPER => stage.helps(scene, held, &mut tally).await?,
        _ if scene == Scene::HandsOver => {
            if let Some(guard) = stage.it.read().await? {
                stage.it.reader_leaves(guard).await?;
            }
        }
        _ => {}
    }
    if let Some(mut survivors) = survivors {
        stage.victim_is_through().await?;
        for _ in 0..2 {
            stage.it.round(&mut tally).await?;
        }
        survivors.barrier().await?;
        if me == HOME {
            tally.version = stage.it.version().await?;
            stage.tell_victim().await?;
        }
        survivors.barrier().await?;
    }
    Ok(tally.to_string())
}

impl Stage {
    async fn begins(&self, scene: Scene) -> ProgramResult<HeldGuard<'_>> {
        use Scene::*;
        let (reads, writes) = match scene {
            TryReadInVain | TryWriteInVain | ReadWaits | WriteWaits | ReadGivesUp | WriteGivesUp | OpensWithWriter => {
                (None, Some(HELPER))
            }
            WriteWaitsForReader | OpensWithReader => (Some(HELPER), None),
            HandsOver | Panics | WriterStandsIn => (None, Some(VICTIM)),
            LastReaderLeaves | ReaderStandsIn => (Some(VICTIM), None),
            OpensAfterWriter => (None, Some(FIRST)),
            OpensAfterReader => (Some(FIRST), None),
            Read | Write | TryRead | TryWrite | Mend | Suspect => (None, None),
        };
        let me = Some(self.it.fabric.rank());
        if scene == Mend && me == Some(HELPER) {
            self.it.lock.suspect(HELPER).await?;
        }
        Ok(if me == reads {
            self.it.read().await?.map_or(HeldGuard::Nothing, HeldGuard::Read)
        } else if me == writes {
            HeldGuard::Write(self.it.write(&mut Tally::default()).await?)
        } else {
            HeldGuard::Nothing
        })
    }

    /// Plays the victim's part.
    async fn acts(&self, scene: Scene, held: HeldGuard<'_>, tally: &mut Tally) -> ProgramResult<()> {
        use Scene::*;
        let it = &self.it;
        let soon = it.fabric.now() + SOON;
        match scene {
            Read | ReadWaits => {
                self.points.within("read");
                let guard = it.read().await?;
                self.leaves(guard.map_or(HeldGuard::Nothing, HeldGuard::Read)).await?;
            }
            Write | WriteWaits | WriteWaitsForReader | OpensAfterWriter | OpensAfterReader | OpensWithReader
            | OpensWithWriter => {
                self.points.within("write");
                let guard = it.write(tally).await?;
                self.leaves(HeldGuard::Write(guard)).await?;
            }
            TryRead | TryReadInVain => {
                self.points.within("try_read");
                if let Some(guard) = it.lock.try_read().await? {
                    it.comes_in(true).await?;
                    self.leaves(HeldGuard::Read(guard)).await?;
                }
            }
            TryWrite | TryWriteInVain => {
                self.points.within("try_write");
                if let Some(guard) = it.lock.try_write().await? {
                    it.comes_in(false).await?;
                    self.leaves(HeldGuard::Write(guard)).await?;
                }
            }
            ReadGivesUp => {
                self.points.within("read_before");
                match it.lock.read_before(soon).await {
                    Err(LockError::TimedOut) => {}
                    other => return Err(format!("{scene:?} ended with {other:?}").into()),
                }
            }
            WriteGivesUp => {
                self.points.within("write_before");
                match it.lock.write_before(soon).await {
                    Err(LockError::TimedOut) => {}
                    other => return Err(format!("{scene:?} ended with {other:?}").into()),
                }
            }
            Mend => {
                self.points.within("mend");
                let (guard, torn) = it.record.mend(&it.lock).await?;
                tally.torn += u64::from(torn);
                it.comes_in(false).await?;
                self.leaves(HeldGuard::Write(guard)).await?;
            }
            Suspect => {
                self.points.within("suspect");
                it.lock.suspect(HELPER).await?;
            }
            Panics => {
                let HeldGuard::Write(guard) = held else { return Err("nothing to tear".into()) };
                it.record.set_half(0, 7).await?;
                self.points.within("drop by a panic");
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    let _guard = guard;
                    resume_unwind(Box::new("on purpose"));
                }));
                assert!(panicked.is_err());
            }
            HandsOver | LastReaderLeaves => {
                it.fabric.sleep(SOON).await;
                self.leaves(held).await?;
            }
            ReaderStandsIn | WriterStandsIn => {
                self.first_is_dead().await?;
                it.fabric.sleep(LATER).await;
                self.leaves(held).await?;
            }
        }
        Ok(())
    }

    async fn leaves(&self, held: HeldGuard<'_>) -> ProgramResult<()> {
        match held {
            HeldGuard::Nothing => Ok(()),
            HeldGuard::Read(guard) => {
                self.points.within("inside, and release of a reader");
                self.it.reader_leaves(guard).await
            }
            HeldGuard::Write(guard) => {
                self.points.within("inside, and release of a writer");
                self.it.change().await?;
                self.it.writer_leaves(guard).await
            }
        }
    }

    /// Plays the helper's part.
    async fn helps(&self, scene: Scene, held: HeldGuard<'_>, tally: &mut Tally) -> ProgramResult<()> {
        use Scene::*;
        match scene {
            TryReadInVain | TryWriteInVain | ReadGivesUp | WriteGivesUp => self.victim_is_through().await?,
            OpensWithReader | OpensWithWriter => {
                self.first_is_dead().await?;
                self.it.fabric.sleep(LATER).await;
            }
            HandsOver | LastReaderLeaves | ReaderStandsIn | WriterStandsIn => self.it.round(tally).await?,
            _ => self.it.fabric.sleep(SOON).await,
        }
        tally.wrote += u64::from(matches!(held, HeldGuard::Write(_)));
        self.leaves(held).await
    }

    /// Plays the part of the rank that dies first, while others wait.
    async fn dies(&self, scene: Scene, held: HeldGuard<'_>) -> ProgramResult<()> {
        if matches!(held, HeldGuard::Nothing) {
            die_after(2 * SOON);
            // At that time it is waiting, unless the victim was faster.
            let _held = self.it.lock.write().await;
            self.it.fabric.sleep(LATER).await;
            die();
        }
        self.it.fabric.sleep(2 * SOON).await;
        if scene == Scene::OpensAfterWriter {
            self.it.record.set_half(0, 7).await?;
        }
        die()
    }

    /// Notifies the victim that the home has finished.
    async fn tell_victim(&self) -> ProgramResult<()> {
        // The victim may be dead.
        if let Ok(word) = self.it.message(VICTIM, 0) {
            let _ = self.it.fabric.swap(&word, 1).await;
        }
        Ok(())
    }

    async fn home_is_through(&self) -> ProgramResult<()> {
        match self.it.fabric.wait_until(&self.it.told(0)?, Deps::One(HOME), |told| told == 1).await {
            Ok(_) | Err(FabricError::PeersLeft) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn first_is_dead(&self) -> ProgramResult<()> {
        match self.it.fabric.wait_until(&self.it.told(1)?, Deps::One(FIRST), |told| told == 1).await {
            Err(FabricError::PeerLost { rank: FIRST }) => Ok(()),
            other => Err(format!("the first to die said {other:?}").into()),
        }
    }

    /// Waits until the victim is dead, or has left the lock.
    async fn victim_is_through(&self) -> ProgramResult<()> {
        match self.it.fabric.wait_until(&self.it.told(0)?, Deps::One(VICTIM), |told| told == 1).await {
            Ok(_) | Err(FabricError::PeerLost { rank: VICTIM }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
